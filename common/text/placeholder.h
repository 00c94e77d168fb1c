/* Placeholders in a file that is the user's own, whatever its language: {name}, where the name is a word. Any
 * other brace is the file's, and so is one behind '{' or '$': "{{x}}" and "${x}" stay as they are. */
#ifndef COMMON_TEXT_PLACEHOLDER_H
#define COMMON_TEXT_PLACEHOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct placeholder {
	const char *begin, *end; /* the brace, and what follows the other one */
	char name[64];
	size_t line; /* from 1 on */
};

/* The first at or after `from`, both in `text`; false: there is none. */
bool placeholder_next(const char *text, const char *from, struct placeholder *out);

#endif
