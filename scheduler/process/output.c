/* Follows the log of a job. See output.h. */
#define _GNU_SOURCE
#include "scheduler/process/output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/strbuf.h"
#include "common/text/text.h"
#include "scheduler/process/record_format.h"

#define TAIL_BYTES 4096

/* ---- a log that grows ---- */

static const struct job_output nothing = { .log = { { .fd = -1 }, { .fd = -1 } },
					   .accuracy = NAN,
					   .epoch = NAN,
					   .told = NAN,
					   .epoch_accuracy = NAN,
					   .epoch_loss = NAN,
					   .epoch_elapsed_s = NAN };

int job_output_open(struct job_output *o, const char *out_path, const char *err_path,
		    const struct output_spec *spec, double epochs, struct err *err)
{
	const char *const path[2] = { out_path, err_path };
	int rc = 0;

	*o = nothing;
	for (int i = 0; i < 2 && !rc; i++) {
		rc = output_reader_init(&o->log[i].reader, spec, err);
		if (rc)
			break;
		o->log[i].reader.epochs = epochs;
		o->log[i].path = mem_strdup(path[i]);
		if (!o->log[i].path)
			rc = err_nomem(err, "a job's output");
	}
	if (rc)
		job_output_release(o);
	return rc;
}

int job_output_init(struct job_output *o, const char *dir, const struct output_spec *spec, double epochs,
		    struct err *err)
{
	struct strbuf out = { 0 }, talk = { 0 };
	int rc;

	*o = nothing;
	strbuf_printf(&out, "%s/%s", dir, JOB_STDOUT);
	strbuf_printf(&talk, "%s/%s", dir, JOB_STDERR);
	if (out.failed || talk.failed)
		rc = err_nomem(err, "a job's output");
	else
		rc = job_output_open(o, out.text, talk.text, spec, epochs, err);
	strbuf_release(&out);
	strbuf_release(&talk);
	return rc;
}

void job_output_release(struct job_output *o)
{
	if (!o)
		return;
	for (int i = 0; i < 2; i++) {
		if (o->log[i].fd >= 0)
			close(o->log[i].fd);
		free(o->log[i].path);
		output_reader_release(&o->log[i].reader);
	}
	*o = nothing;
}

static void take_line(struct job_output *o, struct output_log *l, const char *line, size_t len,
		      int64_t written_ns)
{
	const struct output_reader *out = &o->log[0].reader, *talk = &o->log[1].reader;
	struct output_point p;

	if (!output_reader_line(&l->reader, line, len, &p))
		return;
	o->accuracy = isnan(out->accuracy) ? talk->accuracy : out->accuracy;
	if (isnan(p.epoch) || (&l->reader == talk && !isnan(out->epoch)))
		return;
	o->told = l->reader.told;
	if (p.epoch <= o->epoch)
		return; /* standard error named it before */
	o->epoch = p.epoch;
	o->epoch_accuracy = p.accuracy;
	o->epoch_loss = p.loss;
	o->epoch_elapsed_s = p.elapsed_s;
	o->epoch_ns = written_ns;
	o->news = true;
	if (o->on_epoch)
		o->on_epoch(o->owner, o->epoch, written_ns);
}

/* A fifo or a device instead of the log must not block us, and is not looked at again. */
static bool ready(struct output_log *o, struct stat *st)
{
	if (o->unfit)
		return false;
	if (o->fd < 0)
		o->fd = open(o->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (o->fd < 0) {
		o->unfit = errno == ELOOP;
		return false; /* not there yet, or no descriptor free: another time */
	}
	if (fstat(o->fd, st) || !S_ISREG(st->st_mode)) {
		o->unfit = true;
		close(o->fd);
		o->fd = -1;
		return false;
	}
	return true;
}

static void find_place(struct output_log *o, int64_t size)
{
	if (size < o->at) { /* the job cut its own log */
		o->at = 0;
		o->inside = false;
	}
	if (size - o->at > JOB_OUTPUT_MAX_BEHIND) {
		o->at = size - JOB_OUTPUT_MAX_BEHIND;
		o->inside = true; /* in the middle of a line, most likely */
	}
}

static const char *line_end(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' || text[i] == '\r')
			return text + i;
	}
	return NULL;
}

/* Takes the lines out of a piece; what is left of it starts a line that is not whole. A progress bar goes
 * back to the start of its line instead of ending it. */
static size_t take_lines(struct job_output *o, struct output_log *l, const char *text, size_t len,
			 int64_t written_ns)
{
	size_t at = 0;
	const char *end;

	while ((end = line_end(text + at, len - at))) {
		size_t n = (size_t)(end - text) - at;

		if (!l->inside)
			take_line(o, l, text + at, n, written_ns);
		l->inside = false;
		at += n + 1;
	}
	return at;
}

/* A bar that is whole, though its line will go on with the next one: "21%|##   | 3/14 [00:30<01:50]". */
static bool is_bar(const char *text, size_t len)
{
	return len && text[len - 1] == ']' && memmem(text, len, "%|", 2);
}

static size_t read_log(struct job_output *o, struct output_log *l, char *scratch, bool ended, bool *out_more)
{
	struct stat st;
	int64_t written_ns, size;
	size_t len, used;
	ssize_t got;

	if (!ready(l, &st))
		return 0;
	size = st.st_size;
	if (size == l->looked && !ended)
		return 0; /* nothing came since; what is left is the start of a line */
	find_place(l, size);
	got = pread(l->fd, scratch, JOB_OUTPUT_MAX_LINE + 1, l->at);
	if (got <= 0)
		return 0;
	len = (size_t)got;
	written_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	used = take_lines(o, l, scratch, len, written_ns);
	if (len - used > JOB_OUTPUT_MAX_LINE)
		l->inside = true;
	else if (!l->inside &&
		 ((ended && l->at + (int64_t)len >= size) || is_bar(scratch + used, len - used)))
		take_line(o, l, scratch + used, len - used, written_ns);
	if (!l->inside && !(ended && l->at + (int64_t)len >= size))
		len = used; /* the rest is read again, with what comes */
	l->looked = l->at + (int64_t)got;
	*out_more |= l->looked < size;
	l->at += (int64_t)len;
	return (size_t)got;
}

size_t job_output_read(struct job_output *o, char *scratch, bool ended, bool *out_more)
{
	size_t n;

	*out_more = false;
	n = read_log(o, &o->log[0], scratch, ended, out_more);
	return n + read_log(o, &o->log[1], scratch, ended, out_more);
}

char *output_last_words(const char *path, char *out, size_t size)
{
	char tail[TAIL_BYTES + 1], *end, *line;
	struct stat st;
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	out[0] = '\0';
	if (fd < 0)
		return out;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		off_t room = (off_t)sizeof tail - 1;

		n = pread(fd, tail, sizeof tail - 1, st.st_size > room ? st.st_size - room : 0);
	}
	close(fd);
	if (n <= 0)
		return out;
	tail[n] = '\0';
	end = tail + strlen(tail); /* a NUL byte in the log ends the text sooner */
	while (end > tail && strchr(" \t\r\n", end[-1]))
		*--end = '\0';
	line = strrchr(tail, '\n');
	return text_printable(line ? line + 1 : tail, out, size);
}

char *job_last_words(const char *dir, char *out, size_t size)
{
	char path[4096];

	out[0] = '\0';
	return (size_t)snprintf(path, sizeof path, "%s/" JOB_STDERR, dir) < sizeof path
		       ? output_last_words(path, out, size)
		       : out;
}
