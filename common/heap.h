/* A priority queue of numbers with a payload: the smallest key comes out first, equal keys in the order they
 * went in. The events of a simulation, by time; the jobs of a station, by when they will be done.
 *
 * Four children a node and 16 bytes an entry: the four that are compared share a cache line or two. */
#ifndef COMMON_HEAP_H
#define COMMON_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_entry {
	double key;
	uint32_t payload;
	/* Counts the pushes, and wraps: two equal keys less than 2^31 pushes apart stay in order. */
	uint32_t order;
};

struct heap { /* all zero: empty */
	struct heap_entry *entry;
	size_t n, cap;
	uint32_t pushes;
};

int heap_reserve(struct heap *h, size_t n); /* so that n entries fit without allocation; 0 or -1 */
int heap_push(struct heap *h, double key, uint32_t payload); /* 0, or -1 without memory; no NaN */
bool heap_pop(struct heap *h, struct heap_entry *out);       /* false: it is empty */
void heap_replace(struct heap *h, double key, uint32_t payload); /* pop and push in one; not when empty */
void heap_reset(struct heap *h);                             /* empty, the memory kept */
void heap_release(struct heap *h);

static inline const struct heap_entry *heap_top(const struct heap *h) /* NULL: it is empty */
{
	return h->n ? &h->entry[0] : NULL;
}

#endif
