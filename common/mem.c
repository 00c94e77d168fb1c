/* Allocation with checked sizes and with failures on demand. See mem.h. */
#include "common/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Armed by tests. An unarmed counter costs one relaxed load per allocation. */
static atomic_ulong fail_countdown;
static atomic_bool fail_forever, fail_happened;

static bool must_fail(void)
{
	unsigned long left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

	if (!left)
		return false;
	if (left == 1) {
		if (!atomic_load(&fail_forever))
			atomic_store(&fail_countdown, 0);
		atomic_store(&fail_happened, true);
		return true;
	}
	atomic_fetch_sub(&fail_countdown, 1);
	return false;
}

void mem_fail_at(unsigned long k, bool forever)
{
	atomic_store(&fail_forever, forever);
	atomic_store(&fail_happened, false);
	atomic_store(&fail_countdown, k);
}

bool mem_failed(void)
{
	return atomic_load(&fail_happened);
}

void *mem_alloc(size_t size)
{
	return must_fail() ? NULL : malloc(size ? size : 1);
}

void *mem_calloc(size_t n, size_t size)
{
	return must_fail() ? NULL : calloc(n ? n : 1, size ? size : 1);
}

void *mem_array(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return mem_alloc(bytes);
}

void *mem_resize(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || must_fail())
		return NULL;
	return realloc(p, bytes ? bytes : 1);
}

char *mem_strndup(const char *s, size_t n)
{
	char *copy = mem_alloc(n + 1);

	if (!copy)
		return NULL;
	memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}

char *mem_strdup(const char *s)
{
	return mem_strndup(s, strlen(s));
}

int mem_grow(void **p, size_t *cap, size_t need, size_t size)
{
	size_t want = *cap ? *cap : 16;
	void *q;

	if (need <= *cap)
		return 0;
	while (want < need) {
		if (want > SIZE_MAX / 2)
			return -1;
		want *= 2;
	}
	q = mem_resize(*p, want, size);
	if (!q)
		return -1;
	*p = q;
	*cap = want;
	return 0;
}
