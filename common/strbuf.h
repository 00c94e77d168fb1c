/* A growing string. After a failed append `failed` is set and stays set, so that a writer checks
 * once at the end instead of at every call. */
#ifndef COMMON_STRBUF_H
#define COMMON_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct strbuf {
	char *text; /* NUL-terminated once anything was appended; strbuf_text() never gives NULL */
	size_t len, cap;
	bool failed;
};

void strbuf_add(struct strbuf *b, const void *bytes, size_t n);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));
const char *strbuf_text(const struct strbuf *b);
void strbuf_reset(struct strbuf *b);
void strbuf_release(struct strbuf *b);

#endif
