/* Reads the output of a job as it grows. See job_log.h. A log belongs to the user of the job and may be
 * anything: only a regular file is read, and no link is followed. */
#define _GNU_SOURCE
#include "scheduler/cli/client/job_log.h"

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

#define PIECE 65536
#define LOOK_S 0.1 /* how often a log is looked at */

int job_log_open(struct job_log *l, struct client *c, const char *id, struct client_fault *f)
{
	static const char *const name[2] = { JOB_STDOUT, JOB_STDERR };
	struct json *reply = NULL;
	const char *dir;
	int rc;

	*l = (struct job_log){ .fd = { -1, -1 } };
	client_begin(c, "hello");
	rc = client_call(c, &reply, f);
	dir = rc ? NULL : json_string(json_get(reply, "state_dir"), NULL);
	if (!rc && (!dir || dir[0] != '/'))
		rc = client_fail(f, CLIENT_FAILED,
				 "the daemon does not say where the output of jobs is; it is older");
	for (int i = 0; i < 2 && !rc; i++) {
		struct strbuf path = { 0 };

		strbuf_printf(&path, "%s/jobs/%s/%s", dir, id, name[i]);
		l->path[i] = path.text;
		if (path.failed)
			rc = client_fail(f, CLIENT_FAILED, "out of memory");
	}
	json_free(reply);
	return rc;
}

void job_log_close(struct job_log *l)
{
	for (int i = 0; i < 2; i++) {
		if (l->fd[i] >= 0)
			close(l->fd[i]);
		free(l->path[i]);
	}
	job_line_end(&l->line);
	*l = (struct job_log){ .fd = { -1, -1 } };
}

/* False: it is not there yet, or *f says what is wrong. */
static bool ready(struct job_log *l, int i, struct stat *st, int *out_rc, struct client_fault *f)
{
	if (l->fd[i] < 0)
		l->fd[i] = open(l->path[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (l->fd[i] < 0 && errno == ENOENT)
		return false;
	if (l->fd[i] < 0)
		*out_rc = client_fail(f, errno == EACCES ? CLIENT_NOT_PERMITTED : CLIENT_FAILED,
				      "cannot read %s: %s", l->path[i], strerror(errno));
	else if (fstat(l->fd[i], st) || !S_ISREG(st->st_mode))
		*out_rc = client_fail(f, CLIENT_FAILED, "%s is not a file", l->path[i]);
	return !*out_rc;
}

void job_log_tail(struct job_log *l, uint64_t n)
{
	char piece[PIECE];
	struct client_fault f;
	struct stat st;
	int rc = 0;

	for (int i = 0; i < 2; i++) {
		uint64_t lines = 0;
		off_t at;

		if (!ready(l, i, &st, &rc, &f))
			continue;
		for (at = st.st_size; at > 0 && lines < n;) {
			off_t from = at > PIECE ? at - PIECE : 0;
			ssize_t got = pread(l->fd[i], piece, (size_t)(at - from), from);

			if (got <= 0)
				break;
			while (got > 0 && lines < n) {
				/* the newline at the very end closes the last line */
				lines += piece[--got] == '\n' && from + got + 1 < st.st_size;
				at = from + got + (lines == n);
			}
		}
		l->at[i] = at;
	}
}

static size_t length_of(unsigned char first)
{
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Escapes what a terminal would obey, but line breaks and tabs. Returns how much was taken: the start of a
 * character whose rest is not there yet is left, unless it is all there is. */
static size_t show(const char *piece, size_t len, FILE *to)
{
	size_t at = 0;

	while (at < len) {
		bool line_end = piece[at] == '\r' && at + 1 < len && piece[at + 1] == '\n';
		char one[TEXT_SHOWN];
		size_t shown, taken;

		if (piece[at] == '\n' || piece[at] == '\t' || line_end) {
			putc(piece[at++], to);
			continue;
		}
		if (at > 0 && at + 4 > len && (unsigned char)piece[at] >= 0xc2 &&
		    length_of((unsigned char)piece[at]) > len - at)
			break;
		taken = text_show(piece + at, len - at, one, &shown);
		if (piece[at]) /* zeros stand where the log was cut */
			fwrite(one, 1, shown, to);
		at += taken;
	}
	return at;
}

/* To the next bytes that were written: a log that was longer than allowed has a hole in it. */
static off_t over_hole(int fd, off_t at)
{
	off_t data = lseek(fd, at, SEEK_DATA);

	return data > at ? data : at;
}

int job_log_copy(struct job_log *l, struct client_fault *f)
{
	char piece[PIECE];
	int rc = 0;

	for (int i = 0; i < 2 && !rc; i++) {
		FILE *to = i ? stderr : stdout;
		struct stat st;
		ssize_t got;

		if (!ready(l, i, &st, &rc, f))
			continue;
		if (st.st_size < l->at[i])
			l->at[i] = 0; /* the job cut its own log */
		while (l->at[i] < st.st_size && (got = pread(l->fd[i], piece, sizeof piece,
							     l->at[i] = over_hole(l->fd[i], l->at[i]))) > 0) {
			job_line_wipe(&l->line);
			l->inside = piece[got - 1] != '\n';
			if (l->raw || !isatty(fileno(to)))
				l->at[i] += (off_t)fwrite(piece, 1, (size_t)got, to);
			else
				l->at[i] += (off_t)show(piece, (size_t)got, to);
			if (ferror(to))
				return client_fail(f, CLIENT_FAILED, "cannot write the output: %s",
						   strerror(errno));
		}
		fflush(to);
	}
	return rc;
}

/* The line is not drawn while the job is inside a line of its own: it would draw over a bar of the job. */
static void show_progress(struct job_log *l, const struct job_view *job, double age_s)
{
	if (!l->line.on || l->inside)
		return;
	strbuf_reset(&l->line.text);
	job_view_progress(job, age_s, &l->line.text);
	if (l->line.text.len)
		job_line_draw(&l->line);
}

int job_log_follow(struct job_log *l, struct client *c, const struct job_view *now, struct json **out_last,
		   struct job_view *out_job, struct client_fault *f)
{
	struct json *event = NULL, *last = NULL;
	struct job_view job = *now, heard;
	double came_s = job_now();
	int rc = 0;

	while (!rc && !job_view_ended(&job)) {
		rc = client_event(c, LOOK_S, &event, f);
		if (!rc)
			rc = job_log_copy(l, f);
		if (!rc)
			show_progress(l, &job, job_now() - came_s);
		if (rc || !event)
			continue;
		if (job_view_read(json_get(event, "job"), &heard) && !strcmp(heard.id, now->id)) {
			json_free(last);
			last = event;
			job = heard;
			came_s = job_now();
			job_line_wipe(&l->line);
			if (l->on_news)
				l->on_news(l->owner, &job);
		} else {
			json_free(event);
		}
		event = NULL;
	}
	json_free(event);
	job_line_wipe(&l->line);
	if (!rc)
		rc = job_log_copy(l, f);
	if (rc) {
		json_free(last);
		return rc;
	}
	*out_last = last;
	*out_job = job;
	return 0;
}
