/* Comparisons for tests: what they all say is said once. Tests of bars use it, too. */
#ifndef TESTS_UNIT_SIM_COMPARE_BED_H
#define TESTS_UNIT_SIM_COMPARE_BED_H

#include "sim/compare/compare.h"

/* Runs what `p` says with these policies on all processors: seed 1, intervals of 95 %. What goes wrong fails
 * the test. To be freed with compare_free(). */
struct compare_result *compare_bed_run(struct compare_params p, const char *policies);

#endif
