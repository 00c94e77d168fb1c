/* Words with placeholders, the one language of job types, `notify` and profile designs: `{name}` stands for a
 * value, `{{` for a brace, a lone `}` for itself. Any other `{` is an error, which template_check() finds when
 * the configuration is read; filling in comes much later.
 *
 *	template_check(word, names, &err)             when it is read
 *	template_fill(word, put_value, owner, &out)  when it is used
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
typedef bool template_put(void *owner, const char *name, struct strbuf *out);
bool template_fill(const char *word, template_put *put, void *owner, struct strbuf *out);

#endif
