/* Finds placeholders in a file of any language. See placeholder.h. */
#include "common/text/placeholder.h"

#include <stdio.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

bool placeholder_next(const char *text, const char *from, struct placeholder *out)
{
	for (const char *s = strchr(from, '{'); s; s = strchr(s + 1, '{')) {
		size_t len = strspn(s + 1, LETTERS "0123456789");

		if (!len || len >= sizeof out->name || !strchr(LETTERS, s[1]) || s[1 + len] != '}' ||
		    (s > text && strchr("{$", s[-1])))
			continue;
		out->begin = s;
		out->end = s + len + 2;
		snprintf(out->name, sizeof out->name, "%.*s", (int)len, s + 1);
		out->line = 1;
		for (const char *c = text; c < s; c++)
			out->line += *c == '\n';
		return true;
	}
	return false;
}
