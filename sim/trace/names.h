/* Names found again by their text: the tenants, types and columns of a trace while it is put together. */
#ifndef SIM_TRACE_NAMES_H
#define SIM_TRACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_names {             /* all zero: none */
	char **name; size_t n, cap;
	uint32_t *slot; size_t n_slots; /* index + 1 of the name that hashes there; 0: free */
};

int64_t trace_names_find(const struct trace_names *s, const char *name); /* -1: not there */
/* Its index, new or not; -1: no memory. */
int64_t trace_names_add(struct trace_names *s, const char *name);
void trace_names_release(struct trace_names *s);

/* Bytes into a hash that was begun with any number. */
uint64_t trace_hash(uint64_t h, const void *bytes, size_t n);

#endif
