/* See strangers.h. */
#include "scheduler/core/admit/strangers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define MOST 1024 /* told apart; jobs of further kinds stay without a promise until the next training */

struct strangers_kind {
	int type;
	char why[STRANGERS_TEXT];
	size_t n;
};

void strangers_release(struct strangers *s)
{
	free(s->kind);
	*s = (struct strangers){ 0 };
}

void strangers_count(struct strangers *s, int type, const char *why)
{
	struct strangers_kind *k = NULL;

	for (size_t i = 0; i < s->n && !k; i++)
		if (s->kind[i].type == type && !strcmp(s->kind[i].why, why))
			k = &s->kind[i];
	if (!k && (s->n == MOST || mem_grow((void **)&s->kind, &s->cap, s->n + 1, sizeof *s->kind)))
		return;
	if (!k) {
		k = &s->kind[s->n++];
		*k = (struct strangers_kind){ .type = type };
		snprintf(k->why, sizeof k->why, "%s", why);
	}
	k->n++;
}

void strangers_ended(const struct strangers *s, int type, const char *why, size_t *out_alike,
		     size_t *out_others)
{
	*out_alike = *out_others = 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->kind[i].type == type)
			*(strcmp(s->kind[i].why, why) ? out_others : out_alike) += s->kind[i].n;
}
