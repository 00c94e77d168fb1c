/* Words with placeholders, as in the command of a job and in `notify`: `{name}` stands for a value, `{{` for a brace,
 * a lone `}` for itself. For the files of this folder. */
#ifndef SCHEDULER_PROCESS_TEMPLATE_H
#define SCHEDULER_PROCESS_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/json/fields.h"

enum piece_kind { PIECE_END, PIECE_TEXT, PIECE_NAME, PIECE_BAD };

struct piece {
	const char *text; /* what it stands for, or the placeholder's name */
	size_t len;
};

/* The piece at *at, which moves on. */
enum piece_kind piece_next(const char **at, struct piece *out);
bool piece_is(const struct piece *p, const char *name);

/* Reads the list at `key` of an open object: at most JOB_TYPE_MAX_ARGS words of at most JOB_TYPE_MAX_ARG bytes into
 * argv[], which has room for one more. `known` says whether there is such a placeholder; `names` (NULL-terminated, for
 * messages) which there are. The first word is a program: no placeholder; absolute from here on where it has a slash. */
struct template_rules {
	bool (*known)(const void *owner, const struct piece *p);
	const void *owner;
	const char *const *names;
};
void template_read(struct fields *f, const char *key, const struct template_rules *rules, char **argv, size_t *n);

#endif
