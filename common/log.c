/* Log lines: formatted on the stack and written with one call, so that lines of two threads do not mix. */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json/json.h"
#include "common/strbuf.h"
#include "common/text/text.h"

#define LOG_MAX_MESSAGE 4096 /* on the stack: an "out of memory" must be sayable without memory */

static char program[64] = "postrider";
static enum log_level threshold = LOG_INFO;
static bool as_json;

static const struct {
	const char *name, *colour;
} level_look[] = {
	[LOG_ERROR] = { "error", "\033[1;31m" },
	[LOG_WARN] = { "warning", "\033[1;33m" },
	[LOG_INFO] = { "info", "\033[32m" },
	[LOG_DEBUG] = { "debug", "\033[2m" },
};

void log_set_program(const char *name)
{
	snprintf(program, sizeof program, "%s", name);
}

void log_set_level(enum log_level level)
{
	threshold = level;
}

void log_set_json(bool on)
{
	as_json = on;
}

bool log_stream_wants_colour(int fd)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no_colour && *no_colour)
		return false;
	return term && *term && strcmp(term, "dumb") != 0 && isatty(fd);
}

/* One write per line, so that lines of several threads or processes do not mix. */
static void write_line(const char *line, size_t len)
{
	while (len > 0) {
		ssize_t done = write(STDERR_FILENO, line, len);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return; /* nowhere left to complain */
		line += done;
		len -= (size_t)done;
	}
}

static void format_time(char *buf, size_t size)
{
	int64_t now_ns = clock_wall_ns();
	time_t now_s = (time_t)(now_ns / 1000000000);
	struct tm utc;
	size_t n;

	gmtime_r(&now_s, &utc);
	n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(buf + n, size - n, ".%03dZ", (int)(now_ns / 1000000 % 1000));
}

static bool write_json(enum log_level level, const char *message)
{
	struct strbuf line = { 0 };
	struct json_writer w;
	char now[40];
	bool ok;

	format_time(now, sizeof now);
	json_begin(&w, &line, false);
	json_open(&w, '{');
	json_kv_string(&w, "time", now);
	json_kv_string(&w, "level", level_look[level].name);
	json_kv_string(&w, "program", program);
	json_kv_string(&w, "message", message);
	json_close(&w, '}');
	strbuf_add(&line, "\n", 1);
	ok = !line.failed;
	if (ok)
		write_line(line.text, line.len);
	strbuf_release(&line);
	return ok;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char message[LOG_MAX_MESSAGE], line[LOG_MAX_MESSAGE + 128];
	int saved = errno, n;
	bool colour;
	va_list ap;

	if (level > threshold)
		return;
	va_start(ap, fmt);
	n = vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	if (n < 0)
		snprintf(message, sizeof message, "(a message that cannot be formatted: %s)", fmt);
	else if ((size_t)n >= sizeof message)
		memcpy(message + sizeof message - 4, "...", 4);

	if (!as_json || !write_json(level, message)) {
		/* One event, one line, and nothing in it that a terminal would obey. */
		char shown[LOG_MAX_MESSAGE];

		text_printable(message, shown, sizeof shown);
		colour = log_stream_wants_colour(STDERR_FILENO);
		n = snprintf(line, sizeof line, "%s: %s%s:%s %s\n", program,
			     colour ? level_look[level].colour : "", level_look[level].name,
			     colour ? "\033[0m" : "", shown);
		if (n > 0)
			write_line(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
	}
	errno = saved;
}
