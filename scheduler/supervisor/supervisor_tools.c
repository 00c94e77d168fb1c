/* Clocks, texts and /proc for the supervisor. See supervisor.h. */
#define _GNU_SOURCE
#include "scheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

struct moment moment_now(void)
{
	return (struct moment){ .real_ns = clock_ns(CLOCK_REALTIME), .boot_ns = clock_ns(CLOCK_BOOTTIME) };
}

int64_t after_s(int64_t from_ns, double s)
{
	return from_ns + (int64_t)(s * 1e9);
}

/* Makes one line of a text, as the records and the report need it. */
static void one_line(char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
	}
}

bool write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return true;
}

void report(const char *what, const char *text)
{
	char line[RECORD_MAX_TEXT + 32];
	int n = snprintf(line, sizeof line, "%s%s\n", what, text);

	if (n > 0 && (size_t)n < sizeof line)
		write_all(STDOUT_FILENO, line, (size_t)n);
}

bool passes(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE || error == ENOSPC ||
	       error == EDQUOT || error == EIO;
}

int code_of(int error)
{
	return passes(error) ? SUPERVISOR_TRY_AGAIN : SUPERVISOR_NOT_STARTED;
}

void give_up(int code, const char *fmt, ...)
{
	char text[RECORD_MAX_TEXT + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	one_line(text);
	report(REPORT_FAILED, text);
	exit(code);
}

void add_note(struct run *r, const char *fmt, ...)
{
	size_t at = strlen(r->note);
	va_list ap;

	if (at > 0 && at + 2 < sizeof r->note)
		at += (size_t)snprintf(r->note + at, sizeof r->note - at, "; ");
	va_start(ap, fmt);
	vsnprintf(r->note + at, sizeof r->note - at, fmt, ap);
	va_end(ap);
	one_line(r->note);
}

void set_reason(struct run *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->reason, sizeof r->reason, fmt, ap);
	va_end(ap);
	one_line(r->reason);
}

/* The name of the program may hold anything, so the fields are counted from the last ')'. */
bool process_stat(pid_t pid, long *out_parent, unsigned long long *out_ticks)
{
	char path[64], text[1024];
	unsigned long long ticks;
	const char *after;
	long parent;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	after = strrchr(text, ')');
	if (!after ||
	    sscanf(after,
		   ") %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &parent, &ticks) != 2)
		return false;
	*out_parent = parent;
	*out_ticks = ticks;
	return true;
}
