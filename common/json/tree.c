/* The memory of a tree. cJSON's constructors take their nodes from here through its hooks, which have no argument
 * to say which tree is meant: that is a variable of the thread. See tree.h. */
#include "common/json/tree.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/mem.h"

#define MAX_GROWTH 32 /* bytes of a tree for a byte of text, at most: "[0,0,0]" is a node for two bytes */
#define FIRST_MAX ((size_t)64 << 10) /* most texts need less; what is not used is not touched */
#define NEXT_MAX ((size_t)1 << 20)

struct block {
	struct block *next; /* the one before it */
	char *at, *end; /* what is free */
	size_t size;
	max_align_t bytes[];
};

static _Thread_local struct block *building;

static struct block *block_new(size_t size, struct block *next)
{
	struct block *b = mem_alloc(sizeof *b + size);

	if (!b)
		return NULL;
	b->next = next;
	b->at = (char *)b->bytes;
	b->end = b->at + size;
	b->size = size;
	return b;
}

static void blocks_free(struct block *b)
{
	while (b) {
		struct block *next = b->next;

		free(b);
		b = next;
	}
}

static void *take(size_t n, size_t align)
{
	size_t skip = -(uintptr_t)building->at & (align - 1);
	char *p;

	if ((size_t)(building->end - building->at) < n + skip) {
		size_t size = building->size < NEXT_MAX / 2 ? 2 * building->size : NEXT_MAX;
		struct block *more = block_new(n > size ? n : size, building);

		if (!more)
			return NULL;
		building = more;
		skip = 0;
	}
	p = building->at + skip;
	building->at = p + n;
	return p;
}

static void *take_node(size_t n)
{
	return building ? take(n, _Alignof(cJSON)) : NULL;
}

static void keep(void *p) /* it goes with its block */
{
	(void)p;
}

static void set_hooks(void)
{
	cJSON_InitHooks(&(cJSON_Hooks){ take_node, keep });
}

bool json_tree_begin(size_t len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	size_t room = len < FIRST_MAX / MAX_GROWTH ? MAX_GROWTH * len + 2 * sizeof(cJSON) : FIRST_MAX;

	pthread_once(&once, set_hooks);
	building = block_new(room, NULL);
	return building != NULL;
}

char *json_tree_bytes(size_t n)
{
	return take(n, 1);
}

void json_tree_end(cJSON *root)
{
	if (root)
		root->prev = (cJSON *)(void *)building; /* a root has no brothers, so the place is free */
	else
		blocks_free(building);
	building = NULL;
}

void json_tree_free(cJSON *root)
{
	if (root)
		blocks_free((struct block *)(void *)root->prev);
}
