/* Allocation that checks its sizes and that a test can make fail at the k-th call.
 * Memory from here is given back with plain free(). */
#ifndef COMMON_MEM_H
#define COMMON_MEM_H

#include <stdbool.h>
#include <stddef.h>

void *mem_alloc(size_t size);                             /* NULL when out of memory */
void *mem_calloc(size_t n, size_t size);                  /* zeroed */
void *mem_array(size_t n, size_t size);                   /* n * size, overflow checked */
void *mem_resize(void *p, size_t n, size_t size);         /* like realloc; p survives a failure */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);

/* Makes room for at least `need` elements, doubling; 0 or -1. *p and *cap change on success only. */
int mem_grow(void **p, size_t *cap, size_t need, size_t size);

/* Tests only: the k-th call from now on fails (k = 0: none); `forever`: and all after it. */
void mem_fail_at(unsigned long k, bool forever);
bool mem_failed(void); /* did the armed failure happen? */

#endif
