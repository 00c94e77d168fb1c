/* Handwritten digits without a download: random strokes with noise, in the format of MNIST. Record i depends
 * only on the seed and i, so a smaller set is the start of a larger one. */
#ifndef WORKLOADS_DIGITS_H
#define WORKLOADS_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define DIGITS_SIDE 28
#define DIGITS_MAX 10000000u

/* Draws record i; returns its label. Test records use another stream of random numbers. */
uint8_t digits_draw(uint64_t seed, int test, uint64_t i, uint8_t pixel[DIGITS_SIDE * DIGITS_SIDE]);

/* Writes the four files of MNIST to `dir`, which is made if it is missing; each file appears complete. */
int digits_write(const char *dir, size_t n_train, size_t n_test, uint64_t seed, struct err *err);

/* A folder with 60,000 + 10,000 digits, $XDG_CACHE_HOME/postrider/digits-1 or ~/.cache/..., made by the first
 * program that needs it and then renamed into place. `notice` (may be NULL) is called before the work, if
 * there is any. */
int digits_cached(char **out_dir, void (*notice)(const char *dir), struct err *err);

#endif
