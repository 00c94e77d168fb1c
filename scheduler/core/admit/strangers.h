/* Jobs of kinds that a model has never seen (strangers), counted as they end, by what is strange about them
 * (knowledge.h); those it knows are counted as the kind "". Of one model, since it came to use. */
#ifndef SCHEDULER_CORE_ADMIT_STRANGERS_H
#define SCHEDULER_CORE_ADMIT_STRANGERS_H

#include <stddef.h>

#define STRANGERS_TEXT 128

struct strangers { struct strangers_kind *kind; size_t n, cap; }; /* all zero: none has ended */

void strangers_release(struct strangers *s); /* all zero again */
void strangers_count(struct strangers *s, int type, const char *why);
/* How many of a kind ended, and of other kinds of its type: what adapts does so by type. */
void strangers_ended(const struct strangers *s, int type, const char *why, size_t *out_alike,
                     size_t *out_others);

#endif
