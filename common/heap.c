/* A heap with four children a node. See heap.h. */
#include "common/heap.h"

#include <assert.h>
#include <stdlib.h>

#include "common/mem.h"

static inline bool before(const struct heap_entry *a, const struct heap_entry *b)
{
	if (a->key != b->key)
		return a->key < b->key;
	return (int32_t)(a->order - b->order) < 0; /* serial numbers: right across the wrap */
}

/* Puts e where it belongs on the way from the hole at i to the root. */
static void sift_up(struct heap_entry *v, size_t i, struct heap_entry e)
{
	while (i > 0) {
		size_t parent = (i - 1) / 4;

		if (!before(&e, &v[parent]))
			break;
		v[i] = v[parent];
		i = parent;
	}
	v[i] = e;
}

/* Puts e where it belongs on the way from the hole at the root down. */
static void sift_down(struct heap_entry *v, size_t n, struct heap_entry e)
{
	size_t i = 0, child;

	while ((child = 4 * i + 1) < n) {
		size_t end = child + 4 < n ? child + 4 : n, least = child;

		for (size_t c = child + 1; c < end; c++)
			if (before(&v[c], &v[least]))
				least = c;
		if (!before(&v[least], &e))
			break;
		v[i] = v[least];
		i = least;
	}
	v[i] = e;
}

int heap_reserve(struct heap *h, size_t n)
{
	void *p = h->entry;

	if (n <= h->cap)
		return 0;
	if (mem_grow(&p, &h->cap, n, sizeof *h->entry))
		return -1;
	h->entry = p;
	return 0;
}

int heap_push(struct heap *h, double key, uint32_t payload)
{
	assert(key == key);
	if (h->n == h->cap && heap_reserve(h, h->n + 1))
		return -1;
	sift_up(h->entry, h->n++, (struct heap_entry){ key, payload, h->pushes++ });
	return 0;
}

bool heap_pop(struct heap *h, struct heap_entry *out)
{
	if (!h->n)
		return false;
	*out = h->entry[0];
	if (--h->n)
		sift_down(h->entry, h->n, h->entry[h->n]);
	return true;
}

void heap_replace(struct heap *h, double key, uint32_t payload)
{
	assert(key == key && h->n);
	sift_down(h->entry, h->n, (struct heap_entry){ key, payload, h->pushes++ });
}

void heap_reset(struct heap *h)
{
	h->n = 0;
	h->pushes = 0;
}

void heap_release(struct heap *h)
{
	if (!h)
		return;
	free(h->entry);
	*h = (struct heap){ 0 };
}
