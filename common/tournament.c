/* A tree of winners in an array: the players' places are its leaves, and each place above has the better one
 * of the two below it. */
#include "common/tournament.h"

#include <stdlib.h>

#include "common/mem.h"

static uint32_t better(const struct tournament *t, uint32_t left, uint32_t right)
{
	return t->key[right] < t->key[left] ? right : left;
}

int tournament_init(struct tournament *t, uint32_t n, int64_t key)
{
	*t = (struct tournament){ .n = n, .n_leaves = 1 };
	while (t->n_leaves < n && t->n_leaves < UINT32_MAX / 4)
		t->n_leaves *= 2;
	t->key = mem_array(t->n_leaves, sizeof *t->key);
	t->winner = mem_array(2 * (size_t)t->n_leaves, sizeof *t->winner);
	if (!t->key || !t->winner || t->n_leaves < n) {
		tournament_release(t);
		return -1;
	}
	for (uint32_t i = 0; i < t->n_leaves; i++) {
		t->key[i] = i < n ? key : INT64_MAX;
		t->winner[t->n_leaves + i] = i;
	}
	for (uint32_t at = t->n_leaves - 1; at > 0; at--)
		t->winner[at] = better(t, t->winner[2 * at], t->winner[2 * at + 1]);
	return 0;
}

void tournament_release(struct tournament *t)
{
	free(t->key);
	free(t->winner);
	*t = (struct tournament){ 0 };
}

void tournament_set(struct tournament *t, uint32_t player, int64_t key)
{
	if (t->key[player] == key)
		return;
	t->key[player] = key;
	for (uint32_t at = (t->n_leaves + player) / 2; at > 0; at /= 2)
		t->winner[at] = better(t, t->winner[2 * at], t->winner[2 * at + 1]);
}
