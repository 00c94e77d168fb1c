/* Shared by the tests: where things are, temporary folders, and the shared measurements. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/test.h"

/* The path of a file of the real measurements, "courier-bigdl/fullfactorial_rep1.csv"; NULL (and a
 * line "skipped: ..." on stdout) where they are absent: call skip() of cmocka then. */
const char *support_shared_data(const char *name);

/* A fresh temporary folder, removed at exit. The path stays valid. */
const char *support_temp_dir(void);

/* "DIR/NAME" in a static ring of buffers. */
const char *support_path(const char *dir, const char *name);

/* POSTRIDER_SUPERVISOR in the environment becomes the supervisor of this build: that in $BIN, or one that
 * lies somewhere above the test program. */
void support_find_supervisor(void);

/* The seed of a statistical test: the environment variable TEST_SEED if it is set, otherwise `usual`. The
 * claims of such a test have to hold for (nearly) every seed: run it with other ones before you trust it. */
uint64_t support_seed(uint64_t usual);

/* Is a sanitizer at work? Then bars of time and memory do not hold. */
bool sanitized(void);
/* How often a case repeats itself: `full` times, or a tenth of it under a sanitizer, which is slow and looks
 * at the code, not at the numbers. At least once. */
size_t effort(size_t full);

#endif
