/* FNV-1a, 64 bits (Fowler, Noll, Vo): tells texts and tables apart, not attackers. A hash goes on from
 * another, so that several parts make one. */
#ifndef COMMON_TEXT_HASH_H
#define COMMON_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325ULL

static inline uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return h;
}

static inline uint64_t hash_text(uint64_t h, const char *s)
{
	return hash_bytes(h, s, strlen(s));
}

/* A list of words; where one ends counts. */
static inline uint64_t hash_words(uint64_t h, char *const *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = hash_text(hash_bytes(h, "\1", 1), word[i]);
	return h;
}

#endif
