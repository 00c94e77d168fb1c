/* Journals of campaigns. See lines.h. */
#include "common/json/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "common/text/text.h"

#define LOCK_TRIES 20 /* a second in total: a program that was killed may still be ending */

static int system_error(const struct json_lines *f, const char *what, struct err *err)
{
	enum err_code code = errno == EACCES || errno == EPERM || errno == EROFS ? ERR_PERM : ERR_IO;

	return err_fail(err, code, "cannot %s %s: %s", what, text_tail(f->path, 300), strerror(errno));
}

int json_lines_open(struct json_lines *f, const char *dir, const char *busy, struct err *err)
{
	struct strbuf path = { 0 };

	*f = (struct json_lines){ .fd = -1 };
	strbuf_printf(&path, "%s/journal.jsonl", dir);
	f->path = path.text;
	if (path.failed)
		return err_nomem(err, "the journal");
	if (!busy)
		return 0;
	f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (f->fd < 0)
		return system_error(f, "open", err);
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(f->fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return system_error(f, "lock", err);
		nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	}
	return err_fail(err, ERR_BUSY, "%s: another postrider %s", text_tail(f->path, 300), busy);
}

void json_lines_close(struct json_lines *f)
{
	free(f->path);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct json_lines){ .fd = -1 };
}

/* Where it is JSON_LINES_STRANGE, *err says of what kind. */
static int take_line(const struct json_lines *f, const struct json_lines_reader *r, const char *text,
		     size_t len, size_t line, struct err *err)
{
	struct err why = { 0 };
	struct json *v;
	int rc = json_parse("line", text, len, &v, &why);

	if (rc == -ERR_NOMEM)
		return err_nomem(err, "the journal");
	if (rc) {
		err_fail(err, ERR_FORMAT, "%s:%zu: the line is damaged: %s; --restart starts again",
			 text_tail(f->path, 120), line, why.text);
		return JSON_LINES_STRANGE;
	}
	rc = r->take(r->owner, v, line, err);
	if (rc == JSON_LINES_STRANGE)
		err_fail(err, ERR_FORMAT, "%s:%zu: %s", text_tail(f->path, 300), line, r->strange);
	json_free(v);
	return rc;
}

int json_lines_read(struct json_lines *f, const struct json_lines_reader *r, struct err *err)
{
	struct err why = { 0 };
	char *text = NULL;
	size_t len = 0, at = 0;
	int rc = io_read_file(f->path, r->max, &text, &len, &why);

	if (rc == -ERR_NOTFOUND) /* nothing was written yet; only a reader comes here */
		return 0;
	if (rc)
		return err_fail(err, why.code, "%s", why.text);
	for (size_t line = 1; at < len; line++) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t next = end ? (size_t)(end - text) + 1 : len;

		rc = end ? take_line(f, r, text + at, next - 1 - at, line, &why) : JSON_LINES_STRANGE;
		if (rc == JSON_LINES_STRANGE && next == len) /* torn */
			rc = 0;
		else if (!rc)
			at = next;
		if (rc || at < next)
			break;
	}
	free(text);
	f->len = (long long)at;
	f->torn = len - at;
	return rc ? err_fail(err, why.code, "%s", why.text) : 0;
}

int json_lines_cut(struct json_lines *f, struct err *err)
{
	f->torn = 0;
	return ftruncate(f->fd, (off_t)f->len) ? system_error(f, "shorten", err) : 0;
}

int json_lines_append(struct json_lines *f, const struct strbuf *line, bool sync, struct err *err)
{
	size_t done = 0;

	if (line->failed)
		return err_nomem(err, "a line of %s", text_tail(f->path, 300));
	while (done < line->len) {
		ssize_t n = pwrite(f->fd, line->text + done, line->len - done, (off_t)f->len + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done < line->len || (sync && fsync(f->fd))) {
		int rc = system_error(f, "write", err);

		if (ftruncate(f->fd, (off_t)f->len)) {
			/* The next one that opens the journal cuts the torn line off. */
		}
		return rc;
	}
	f->len += (long long)line->len;
	return 0;
}
