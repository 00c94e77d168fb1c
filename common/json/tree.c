/* The memory of a tree. See tree.h. */
#include "common/json/tree.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define MAX_GROWTH 32 /* bytes of a tree for a byte of text, at most: "[0,0,0]" is a node for two bytes */
#define FIRST_MAX ((size_t)64 << 10) /* most texts need less; what is not used is not touched */
#define NEXT_MAX ((size_t)1 << 20)

struct json_block {
	struct json_block *next; /* the one before it */
	char *at, *end; /* what is free */
	size_t size;
	max_align_t bytes[];
};

static struct json_block *block_new(size_t size, struct json_block *next)
{
	struct json_block *b = mem_alloc(sizeof *b + size);

	if (!b)
		return NULL;
	b->next = next;
	b->at = (char *)b->bytes;
	b->end = b->at + size;
	b->size = size;
	return b;
}

static void blocks_free(struct json_block *b)
{
	while (b) {
		struct json_block *next = b->next;

		free(b);
		b = next;
	}
}

static void *take(struct json_tree *t, size_t n, size_t align)
{
	size_t skip = -(uintptr_t)t->last->at & (align - 1);
	char *p;

	if ((size_t)(t->last->end - t->last->at) < n + skip) {
		size_t size = t->last->size < NEXT_MAX / 2 ? 2 * t->last->size : NEXT_MAX;
		struct json_block *more = block_new(n > size ? n : size, t->last);

		if (!more)
			return NULL;
		t->last = more;
		skip = 0;
	}
	p = t->last->at + skip;
	t->last->at = p + n;
	return p;
}

bool json_tree_begin(struct json_tree *t, size_t len)
{
	t->last = block_new(len < FIRST_MAX / MAX_GROWTH ? MAX_GROWTH * len + 2 * sizeof(cJSON) : FIRST_MAX,
			    NULL);
	return t->last != NULL;
}

cJSON *json_tree_node(struct json_tree *t, int type)
{
	cJSON *node = take(t, sizeof *node, _Alignof(cJSON));

	if (node) {
		memset(node, 0, sizeof *node);
		node->type = type;
	}
	return node;
}

char *json_tree_bytes(struct json_tree *t, size_t n)
{
	return take(t, n, 1);
}

void json_tree_end(struct json_tree *t, cJSON *root)
{
	if (root)
		root->prev = (cJSON *)(void *)t->last; /* a root has no brothers, so the place is free */
	else
		blocks_free(t->last);
}

void json_tree_free(cJSON *root)
{
	if (root)
		blocks_free((struct json_block *)(void *)root->prev);
}
