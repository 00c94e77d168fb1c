/* Handwritten digits without a download: strokes bent, turned, stretched and soiled at random, in the format of
 * MNIST. Record i depends on the seed and i alone, so a smaller set is the beginning of a larger one. */
#ifndef WORKLOADS_DIGITS_H
#define WORKLOADS_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define DIGITS_SIDE 28
#define DIGITS_MAX 10000000u

/* Draws record i; returns its label. Test records are a stream of their own. */
uint8_t digits_draw(uint64_t seed, int test, uint64_t i, uint8_t pixel[DIGITS_SIDE * DIGITS_SIDE]);

/* The four files of MNIST in `dir`, made if it is missing; each appears whole or not at all. */
int digits_write(const char *dir, size_t n_train, size_t n_test, uint64_t seed, struct err *err);

/* A folder with 60,000 + 10,000 digits, $XDG_CACHE_HOME/postrider/digits-1 or ~/.cache/..., made by whoever needs
 * it first and renamed into place whole. `notice` (may be NULL) is called before the work, if there is any. */
int digits_cached(char **out_dir, void (*notice)(const char *dir), struct err *err);

#endif
