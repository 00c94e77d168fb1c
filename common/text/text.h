/* Small readers and writers of text: numbers, durations, near misses of a name. */
#ifndef COMMON_TEXT_TEXT_H
#define COMMON_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* The whole of `s` as a finite decimal number, in the C locale (no blanks, no hexadecimal, no
 * "inf"); false, and *out untouched, otherwise. */
bool text_number(const char *s, double *out);
bool text_uint64(const char *s, uint64_t *out); /* digits only */

/* "90", "90s", "1.5m", "2h", "1d", "D-HH:MM:SS", "HH:MM:SS", "MM:SS" -> seconds, >= 0. */
int text_duration(const char *s, double *out_s, struct err *err);

/* Shortest text of 15 to 17 digits that reads back as the same double; buf of at least 32 bytes. Returns buf. */
char *text_shortest(double v, char *buf);

/* For people: "90 s", "12.3 ms", "2 h 05 min". Returns buf (at least 32 bytes). */
char *text_seconds(double s, char *buf);

/* A moment in nanoseconds since 1970 as RFC 3339 in UTC, "2026-11-16T10:00:00.000000Z". Returns buf (at least
 * 40 bytes). */
char *text_utc(int64_t ns, char *buf);
/* The other way round, any offset and any number of decimals ("2026-11-16T11:00:00.5+01:00"); years 1970 to
 * 2200. False, and *out_ns untouched, for anything else. */
bool text_utc_parse(const char *s, int64_t *out_ns);

/* The name in the NULL-terminated list nearest to `s` by edit distance, or NULL if none is near. */
const char *text_nearest(const char *s, const char *const *names);

/* A piece of somebody's file, fit for an error message: control characters become '?', and what
 * does not fit is cut with "...". Returns buf. */
char *text_printable(const char *s, char *buf, size_t size);

/* The last `max` bytes of `s`: the telling end of a long path. */
const char *text_tail(const char *s, size_t max);

#endif
