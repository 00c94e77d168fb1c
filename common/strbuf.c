/* A string that grows. See strbuf.h. */
#include "common/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* Room for n more bytes and the NUL. */
static bool strbuf_reserve(struct strbuf *b, size_t n)
{
	void *text = b->text;

	if (b->failed)
		return false;
	if (n > SIZE_MAX - b->len - 1 || mem_grow(&text, &b->cap, b->len + n + 1, 1)) {
		b->failed = true;
		return false;
	}
	b->text = text;
	return true;
}

void strbuf_add(struct strbuf *b, const void *bytes, size_t n)
{
	if (!strbuf_reserve(b, n))
		return;
	if (n) /* memcpy from NULL is undefined even for nothing */
		memcpy(b->text + b->len, bytes, n);
	b->len += n;
	b->text[b->len] = '\0';
}

void strbuf_puts(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list args)
{
	va_list again;
	int n;

	/* Most pieces fit into what is there already; ask for the length only when one does not. */
	if (!strbuf_reserve(b, 0))
		return;
	va_copy(again, args);
	n = vsnprintf(b->text + b->len, b->cap - b->len, fmt, args);
	if (n >= 0 && (size_t)n >= b->cap - b->len) {
		b->text[b->len] = '\0'; /* take the cut-off piece back, lest a failure leaves it visible */
		if (strbuf_reserve(b, (size_t)n))
			n = vsnprintf(b->text + b->len, b->cap - b->len, fmt, again);
		else
			n = 0;
	}
	va_end(again);
	if (n < 0) {
		b->text[b->len] = '\0';
		b->failed = true;
		return;
	}
	b->len += (size_t)n;
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(b, fmt, ap);
	va_end(ap);
}

const char *strbuf_text(const struct strbuf *b)
{
	return b->text ? b->text : "";
}

void strbuf_reset(struct strbuf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->text)
		b->text[0] = '\0';
}

void strbuf_release(struct strbuf *b)
{
	if (!b)
		return;
	free(b->text);
	*b = (struct strbuf){ 0 };
}
