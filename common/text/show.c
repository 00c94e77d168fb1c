/* Pieces of other people's text, made fit for a message. */
#include <string.h>

#include "common/text/text.h"

char *text_printable(const char *s, char *buf, size_t size)
{
	size_t n = 0;

	for (; *s && n + 1 < size; s++) {
		unsigned char c = (unsigned char)*s;

		buf[n++] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	if (*s && n >= 3) { /* cut: whole characters only, and say so */
		n -= 3;
		while (n > 0 && ((unsigned char)buf[n] & 0xc0) == 0x80)
			n--;
		memcpy(buf + n, "...", 3);
		n += 3;
	}
	buf[n] = '\0';
	return buf;
}

const char *text_tail(const char *s, size_t max)
{
	size_t len = strlen(s);

	return len > max ? s + len - max : s;
}
