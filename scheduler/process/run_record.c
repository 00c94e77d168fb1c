/* Parses the records that the supervisor leaves beside a job's folder. See run_record.h. */
#include "scheduler/process/run_record.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/text/text.h"

#define NAME_SHOWN 200
#define MAX_PID (1 << 22) /* the largest pid that Linux can be configured for */

struct record { /* a text that is read line by line */
	const char *name, *at, *end;
	int line;
	struct err *err;
};

static int damaged(const struct record *r, const char *why)
{
	return err_fail(r->err, ERR_FORMAT, "%s:%d: damaged: %s", text_tail(r->name, NAME_SHOWN), r->line,
			why);
}

/* The value of the next line, which must have this key; `size` with its NUL. */
static int take_text(struct record *r, const char *key, char *out, size_t size)
{
	const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
	size_t key_len = strlen(key), len;

	r->line++;
	if (!newline)
		return damaged(r, "it ends too early");
	len = (size_t)(newline - r->at);
	if (len < key_len + 1 || memcmp(r->at, key, key_len) != 0 || r->at[key_len] != ' ')
		return damaged(r, "another line was expected");
	len -= key_len + 1;
	if (len >= size || memchr(r->at, '\0', (size_t)(newline - r->at)))
		return damaged(r, "the line is too long, or holds a NUL");
	memcpy(out, r->at + key_len + 1, len);
	out[len] = '\0';
	r->at = newline + 1;
	return 0;
}

static int take_line(struct record *r, const char *whole)
{
	size_t len = strlen(whole);

	r->line++;
	if ((size_t)(r->end - r->at) < len + 1 || memcmp(r->at, whole, len) != 0 || r->at[len] != '\n')
		return damaged(r, r->line == 1 ? "it has another kind or version" : "it ends too early");
	r->at += len + 1;
	return 0;
}

/* Up to two numbers of this key, each at most `max`. */
static int take_numbers(struct record *r, const char *key, uint64_t *out, size_t n, uint64_t max)
{
	char text[64], *word = text;
	int rc = take_text(r, key, text, sizeof text);

	for (size_t i = 0; i < n && !rc; i++) {
		char *blank = i + 1 < n ? strchr(word, ' ') : NULL;

		if (i + 1 < n && !blank)
			return damaged(r, "a number is missing");
		if (blank)
			*blank = '\0';
		if (!text_uint64(word, &out[i]) || out[i] > max)
			return damaged(r, "not a number, or out of range");
		if (blank)
			word = blank + 1;
	}
	return rc;
}

static int take_process(struct record *r, const char *key, pid_t *out_pid, uint64_t *out_ticks)
{
	uint64_t v[2] = { 0 };
	int rc = take_numbers(r, key, v, 2, INT64_MAX);

	if (rc)
		return rc;
	if (v[0] <= 1 || v[0] > MAX_PID)
		return damaged(r, "there can be no such process");
	*out_pid = (pid_t)v[0];
	*out_ticks = v[1];
	return 0;
}

static int take_moment(struct record *r, const char *key, int64_t *out_ns, int64_t *out_boot_ns)
{
	uint64_t v[2] = { 0 };
	int rc = take_numbers(r, key, v, 2, INT64_MAX);

	*out_ns = (int64_t)v[0];
	*out_boot_ns = (int64_t)v[1];
	return rc;
}

static int take_flag(struct record *r, const char *key, bool *out)
{
	uint64_t v = 0;
	int rc = take_numbers(r, key, &v, 1, 1);

	*out = v == 1;
	return rc;
}

/* "-" stands for nothing. */
static int take_optional(struct record *r, const char *key, char *out, size_t size)
{
	int rc = take_text(r, key, out, size);

	if (!rc && strcmp(out, "-") == 0)
		out[0] = '\0';
	return rc;
}

static int take_end(struct record *r)
{
	int rc = take_line(r, "end");

	return rc || r->at == r->end ? rc : damaged(r, "something follows its end");
}

/* The first line, and the identity where the version has one. */
static int take_head(struct record *r, const char *magic, const char *magic_1, char *identity, bool *out_old)
{
	size_t len = strlen(magic_1);
	bool old = (size_t)(r->end - r->at) > len && !memcmp(r->at, magic_1, len) && r->at[len] == '\n';
	int rc = take_line(r, old ? magic_1 : magic);

	*out_old = old;
	return rc || old ? rc : take_optional(r, "identity", identity, RECORD_MAX_IDENTITY + 1);
}

int job_started_parse(const char *name, const char *text, size_t len, struct job_started *out,
		      struct err *err)
{
	struct record r = { .name = name, .at = text, .end = text + len, .err = err };
	struct job_started s = { 0 };
	bool old;
	int rc = take_head(&r, RECORD_STARTED_MAGIC, RECORD_STARTED_MAGIC_1, s.identity, &old);

	if (!rc)
		rc = take_text(&r, "boot", s.boot, sizeof s.boot);
	if (!rc)
		rc = take_process(&r, "supervisor", &s.supervisor, &s.supervisor_ticks);
	if (!rc)
		rc = take_process(&r, "job", &s.job, &s.job_ticks);
	if (!rc)
		rc = take_moment(&r, "started", &s.at_ns, &s.at_boot_ns);
	if (!rc)
		rc = take_optional(&r, "cpus", s.cpus, sizeof s.cpus);
	if (!rc)
		rc = take_end(&r);
	if (!rc)
		*out = s;
	return rc;
}

static int take_status(struct record *r, struct job_exit *x)
{
	char text[32];
	uint64_t v;
	int rc = take_text(r, "status", text, sizeof text);

	if (rc)
		return rc;
	x->exit_code = -1;
	if (strcmp(text, "none") == 0)
		return x->ran ? damaged(r, "it ran, but has no status") : 0;
	if (!x->ran)
		return damaged(r, "it never ran, but has a status");
	if (strncmp(text, "exit ", 5) == 0 && text_uint64(text + 5, &v) && v <= 255)
		x->exit_code = (int)v;
	else if (strncmp(text, "signal ", 7) == 0 && text_uint64(text + 7, &v) && v >= 1 && v <= 64)
		x->exit_signal = (int)v;
	else
		return damaged(r, "not a status");
	return 0;
}

static int take_usage(struct record *r, struct job_exit *x)
{
	uint64_t rss_kb = 0, cpu_us = 0;
	int rc = take_numbers(r, "max_rss_kb", &rss_kb, 1, INT64_MAX);

	if (!rc)
		rc = take_numbers(r, "cpu_us", &cpu_us, 1, INT64_MAX);
	x->max_rss_mb = (double)rss_kb / 1024.0;
	x->cpu_s = 1e-6 * (double)cpu_us;
	return rc;
}

int job_exit_parse(const char *name, const char *text, size_t len, struct job_exit *out, struct err *err)
{
	struct record r = { .name = name, .at = text, .end = text + len, .err = err };
	struct job_exit x = { 0 };
	int64_t from_ns = 0, to_ns = 0;
	bool old;
	int rc = take_head(&r, RECORD_EXIT_MAGIC, RECORD_EXIT_MAGIC_1, x.identity, &old);

	if (!rc && !old)
		rc = take_text(&r, "boot", x.boot, sizeof x.boot);
	if (!rc)
		rc = take_moment(&r, "started", &x.started_ns, &from_ns);
	if (!rc)
		rc = take_moment(&r, "ended", &x.ended_ns, &to_ns);
	x.ran = x.started_ns != 0;
	if (!rc && x.ran && to_ns < from_ns)
		rc = damaged(&r, "it ended before it started");
	if (!rc)
		rc = take_status(&r, &x);
	if (!rc)
		rc = take_flag(&r, "timed_out", &x.timed_out);
	if (!rc)
		rc = take_flag(&r, "stopped", &x.stopped);
	if (!rc)
		rc = take_usage(&r, &x);
	if (!rc)
		rc = take_optional(&r, "reason", x.reason, sizeof x.reason);
	if (!rc)
		rc = take_optional(&r, "note", x.note, sizeof x.note);
	if (!rc)
		rc = take_end(&r);
	if (rc)
		return rc;
	x.started_boot_ns = from_ns;
	x.ended_boot_ns = to_ns;
	x.run_s = x.ran ? 1e-9 * (double)(to_ns - from_ns) : 0.0;
	*out = x;
	return 0;
}

/* ---- from the disk ---- */

static int read_record(const char *dir, const char *suffix, char *path, size_t size, char **out,
		       size_t *out_len, struct err *err)
{
	int n = snprintf(path, size, "%s%s", dir, suffix);

	if (n < 0 || (size_t)n >= size)
		return err_fail(err, ERR_ARG, "%s: the path is too long", text_tail(dir, NAME_SHOWN));
	return io_read_file(path, RECORD_MAX_BYTES, out, out_len, err);
}

static int check_identity(const char *path, const char *found, const char *identity, struct err *err)
{
	if (!strcmp(found, identity))
		return 0;
	return err_fail(err, ERR_FORMAT, "%s is the record of another job", text_tail(path, NAME_SHOWN));
}

int job_started_read(const char *base, const char *identity, struct job_started *out, struct err *err)
{
	char path[PATH_MAX], *text;
	size_t len;
	int rc = read_record(base, RECORD_STARTED, path, sizeof path, &text, &len, err);

	if (rc)
		return rc;
	rc = job_started_parse(path, text, len, out, err);
	free(text);
	return rc ? rc : check_identity(path, out->identity, identity, err);
}

int job_exit_read(const char *base, const char *identity, struct job_exit *out, struct err *err)
{
	char path[PATH_MAX], *text;
	size_t len;
	int rc = read_record(base, RECORD_EXIT, path, sizeof path, &text, &len, err);

	if (rc)
		return rc;
	rc = job_exit_parse(path, text, len, out, err);
	free(text);
	return rc ? rc : check_identity(path, out->identity, identity, err);
}
