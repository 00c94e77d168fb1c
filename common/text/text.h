/* Small readers and writers of text: numbers, lists, ranges, durations, moments, near misses of a name.
 * Each part has its file in this folder. Readers take the whole of a text and leave *out as it was when
 * it is not right. */
#ifndef COMMON_TEXT_TEXT_H
#define COMMON_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* ---- number.c; a buffer of TEXT_NUMBER bytes is enough for each of its texts ---- */

#define TEXT_NUMBER 32

/* A finite decimal number, in the C locale: no blanks, no hexadecimal, no "inf". */
bool text_number(const char *s, double *out);
bool text_uint64(const char *s, uint64_t *out); /* digits only */

/* These return buf. */
char *text_shortest(double v, char *buf); /* the shortest text of 15 to 17 digits that reads back the same */
/* Rounded to at most `decimals` (0 to 9) decimals as printf rounds, zeros at the end cut off: 2.5,
 * -0.1, 3. What rounds to zero is 0. From 1e9 on: as text_shortest(). */
char *text_fixed(double v, int decimals, char *buf);
char *text_fixed_end(double v, int decimals, char *buf); /* the same; returns the end, which has no NUL */
/* v / 10^decimals (at most 19), exactly. */
char *text_decimal(bool minus, uint64_t v, int decimals, char *buf);
char *text_int64(int64_t v, char *buf);

/* ---- list.c ---- */

#define TEXT_LIMITS 96 /* bytes for text_limits() */
#define TEXT_RANGE 72  /* bytes for text_range_put() */

struct text_limits { /* what a number may be */
	double min, max; /* infinite: any */
	bool whole;
	bool ranges; /* in a list, "1..4" stands for 1, 2, 3, 4 */
};
bool text_within(double v, const struct text_limits *l);
char *text_limits(const struct text_limits *l, char *buf); /* "a whole number from 1 to 64" */

/* "64,128" or "64|128": at least one and at most `max` numbers. The error is ERR_ARG: "'x' is not a
 * number from 1 to 64" or "more than 64 numbers"; the caller says which list it is about. */
int text_list(const char *s, char separator, const struct text_limits *l, size_t max, double *out,
              size_t *out_n, struct err *err);
/* Sorts the numbers; ERR_ARG "64 appears twice". */
int text_distinct(double *v, size_t n, struct err *err);

/* "3..20": two numbers, which the caller compares with each other and with its limits. */
bool text_range(const char *s, double *out_from, double *out_to);
char *text_range_put(double from, double to, char *buf);

/* ---- duration.c ---- */

/* "90", "90s", "90 s", "1.5m" or "1.5min", "2h", "1d", "500ms", "20us", "1h30m", "2 h 05 min", "D-HH:MM:SS",
 * "HH:MM:SS", "MM:SS" -> seconds, >= 0. */
int text_duration(const char *s, double *out_s, struct err *err);

/* For people: "90 s", "12.3 ms", "2 h 05 min". Returns buf (at least 32 bytes). */
char *text_seconds(double s, char *buf);
/* The same as a limit that is enough when it is typed back: rounded up, in seconds below two minutes. */
char *text_seconds_up(double s, char *buf);

/* An accuracy for people: four decimals, as its noise is about that small; four digits above 1. "-" for
 * NaN. Returns buf (at least 32 bytes). */
char *text_accuracy(double v, char *buf);

/* ---- moment.c ---- */

/* A moment in nanoseconds since 1970 as RFC 3339 in UTC, "2026-11-16T10:00:00.000000Z". Returns buf (at least
 * 40 bytes). */
char *text_utc(int64_t ns, char *buf);
/* The other way round, any offset and any number of decimals ("2026-11-16T11:00:00.5+01:00"); years 1970 to
 * 2200. */
bool text_utc_parse(const char *s, int64_t *out_ns);

/* ---- near.c ---- */

#define TEXT_HINT 96 /* bytes for text_hint() */

/* The name in the NULL-terminated list nearest to `s` by edit distance, or NULL if none is near. */
const char *text_nearest(const char *s, const char *const *names);
/* "; did you mean 'NAME'?" for the end of a sentence, or "" if none is near. Returns buf. */
char *text_hint(const char *s, const char *const *names, char *buf);

/* ---- show.c ---- */

/* The next character of a text from outside, made safe for a terminal and a log. Characters that could
 * control the terminal or hide something are escaped: control characters and bytes that are not UTF-8
 * ("\x1b"), marks that change the direction of writing, separators of lines and other invisible ones
 * ("\u202e"). Takes at most `len` (> 0) bytes of `s`; returns how many, and *out_n bytes in out. */
#define TEXT_SHOWN 8
size_t text_show(const char *s, size_t len, char out[TEXT_SHOWN], size_t *out_n);

/* A piece of a file or of a request, fit for an error message: as text_show(), and what does not fit is cut
 * with "...". Returns buf. */
char *text_printable(const char *s, char *buf, size_t size);

/* The last `max` bytes of `s`: the end of a long path says most. */
const char *text_tail(const char *s, size_t max);

#endif
