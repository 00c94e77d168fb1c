/* Pieces of other people's text, made fit for a message. */
#include <stdio.h>
#include <string.h>

#include "common/json/utf8.h"
#include "common/text/text.h"

/* Characters that are not seen and change what is: Unicode's Bidi_Control (UAX 9), the separators of lines
 * and paragraphs, zero-width characters, the byte-order mark, and tags. */
static bool is_hidden(uint32_t c)
{
	return (c >= 0x80 && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

static uint32_t decode(const unsigned char *s, size_t len)
{
	uint32_t c = len == 1 ? s[0] : s[0] & (0xffu >> (len + 1));

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

size_t text_show(const char *s, size_t len, char out[TEXT_SHOWN], size_t *out_n)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = utf8_length(u, len);
	uint32_t c = n ? decode(u, n) : u[0];

	if (!n || c < 0x20 || c == 0x7f) {
		*out_n = (size_t)snprintf(out, TEXT_SHOWN, "\\x%02x", (unsigned)(c & 0xff));
		return 1;
	}
	if (is_hidden(c)) {
		*out_n = (size_t)snprintf(out, TEXT_SHOWN, c > 0xffff ? "\\u%05x" : "\\u%04x",
					  (unsigned)c & 0xfffff);
		return n;
	}
	memcpy(out, s, n);
	*out_n = n;
	return n;
}

char *text_printable(const char *s, char *buf, size_t size)
{
	size_t left = strlen(s), n = 0, whole = 0; /* whole: the last end that leaves room for "..." */

	while (left) {
		char one[TEXT_SHOWN];
		size_t shown, taken = text_show(s, left, one, &shown);

		if (n + shown + 1 > size)
			break;
		memcpy(buf + n, one, shown);
		n += shown;
		if (n + 4 <= size)
			whole = n;
		s += taken;
		left -= taken;
	}
	if (left && size >= 4) { /* cut: whole characters only, and say so */
		memcpy(buf + whole, "...", 3);
		n = whole + 3;
	}
	if (size)
		buf[n] = '\0';
	return buf;
}

const char *text_tail(const char *s, size_t max)
{
	size_t len = strlen(s);

	return len > max ? s + len - max : s;
}
