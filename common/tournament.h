/* The least of many moments (or other whole numbers) that change one at a time: a tree of winners. Each
 * player has a number; a change costs the depth of the tree, and the least is at its top. Equal numbers: the
 * first player. The nodes of a simulated cluster, by the next end on each and by load. */
#ifndef COMMON_TOURNAMENT_H
#define COMMON_TOURNAMENT_H

#include <stddef.h>
#include <stdint.h>

struct tournament { /* all zero: without players */
	int64_t *key;     /* by player, and INT64_MAX for places that are not taken */
	uint32_t *winner; /* by place in the tree, the top at 1 */
	uint32_t n, n_leaves;
};

int tournament_init(struct tournament *t, uint32_t n, int64_t key); /* n >= 1, all equal; 0, or -1 without
                                                                       memory */
void tournament_release(struct tournament *t);
void tournament_set(struct tournament *t, uint32_t player, int64_t key);

static inline uint32_t tournament_first(const struct tournament *t)
{
	return t->winner[1];
}

static inline int64_t tournament_least(const struct tournament *t)
{
	return t->key[t->winner[1]];
}

#endif
