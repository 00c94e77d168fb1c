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

#include "common/strbuf.h"
#include "common/text/text.h"
#include "scheduler/process/record_format.h"

#define TAIL_BYTES 4096

/* ---- a log that grows ---- */

int job_output_init(struct job_output *o, const char *dir, const struct output_spec *spec, struct err *err)
{
	struct strbuf path = { 0 };
	int rc;

	*o = (struct job_output){ .fd = -1, .epoch_accuracy = NAN };
	rc = output_reader_init(&o->reader, spec, err);
	if (rc)
		return rc;
	strbuf_printf(&path, "%s/%s", dir, JOB_STDOUT);
	o->path = path.text;
	if (!path.failed)
		return 0;
	job_output_release(o);
	return err_nomem(err, "a job's output");
}

void job_output_release(struct job_output *o)
{
	if (!o)
		return;
	if (o->fd >= 0)
		close(o->fd);
	free(o->path);
	output_reader_release(&o->reader);
	*o = (struct job_output){ .fd = -1 };
}

static void take_line(struct job_output *o, const char *line, size_t len, int64_t written_ns)
{
	struct output_point p;

	if (!output_reader_line(&o->reader, line, len, &p) || isnan(p.epoch))
		return;
	o->epoch_accuracy = p.accuracy;
	o->epoch_ns = written_ns;
	o->news = true;
}

/* A fifo or a device instead of the log must not block us, and is not looked at again. */
static bool ready(struct job_output *o, struct stat *st)
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

static void find_place(struct job_output *o, int64_t size)
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

/* Takes the lines out of a piece; what is left of it starts a line that is not whole. */
static size_t take_lines(struct job_output *o, const char *text, size_t len, int64_t written_ns)
{
	size_t at = 0;
	const char *newline;

	while ((newline = memchr(text + at, '\n', len - at))) {
		size_t n = (size_t)(newline - text) - at;

		if (!o->inside)
			take_line(o, text + at, n, written_ns);
		o->inside = false;
		at += n + 1;
	}
	return at;
}

size_t job_output_read(struct job_output *o, char *scratch, bool ended, bool *out_more)
{
	struct stat st;
	int64_t written_ns, size;
	size_t len, used;
	ssize_t got;

	*out_more = false;
	if (!ready(o, &st))
		return 0;
	size = st.st_size;
	if (size == o->looked && !ended)
		return 0; /* nothing came since; what is left is the start of a line */
	find_place(o, size);
	got = pread(o->fd, scratch, JOB_OUTPUT_MAX_LINE + 1, o->at);
	if (got <= 0)
		return 0;
	len = (size_t)got;
	written_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	used = take_lines(o, scratch, len, written_ns);
	if (len - used > JOB_OUTPUT_MAX_LINE)
		o->inside = true;
	else if (ended && o->at + (int64_t)len >= size && !o->inside)
		take_line(o, scratch + used, len - used, written_ns);
	else if (!o->inside)
		len = used; /* the rest is read again, with what comes */
	o->looked = o->at + (int64_t)got;
	*out_more = o->looked < size;
	o->at += (int64_t)len;
	return (size_t)got;
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
