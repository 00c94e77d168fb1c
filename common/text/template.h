/* Words with placeholders, the one language of job types, `notify` and profile designs: `{name}` stands for a
 * value, `{{` for a brace, a lone `}` for itself. Any other `{` is an error, which template_check() finds when
 * the configuration is read; filling in comes much later.
 *
 *	template_check(word, names, &err)                           when it is read
 *	template_argv(word, n, put_value, owner, max, &argv, &err)  when it is used
 */
#ifndef COMMON_TEXT_TEMPLATE_H
#define COMMON_TEXT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/strbuf.h"

#define TEMPLATE_MAX_NAME 128 /* bytes of a placeholder's name */

/* `names`: the placeholders there are, NULL-terminated. The error is a sentence without a place. */
int template_check(const char *word, const char *const *names, struct err *err);
bool template_uses(const char *word, const char *name); /* has it {name}? NULL: any placeholder */

/* Appends the word with its placeholders filled in. `put` appends the value of a name, or returns false: it has
 * none. Then the rest is not read, and template_fill() returns false. */
typedef bool template_put(const void *owner, const char *name, struct strbuf *out);
bool template_fill(const char *word, template_put *put, const void *owner, struct strbuf *out);

/* The words of a command filled in, each of at most `max_bytes`; to be freed with argv_free(). A word whose placeholder
 * has no value is left out, and with it a flag just before it that has no value of its own: "--lr", "{lr}". */
int template_argv(char *const *word, size_t n, template_put *put, const void *owner, size_t max_bytes, char ***out,
                  struct err *err);
void argv_free(char **argv); /* NULL-terminated */

#endif
