/* A sweep (--sweep): the same comparison for several values of one what-if, on the same random numbers. */
#ifndef SIM_COMPARE_SWEEP_H
#define SIM_COMPARE_SWEEP_H

#include "sim/compare/compare.h"

#define SWEEP_MAX_POINTS 100
#define SWEEP_DEFAULT_POINTS 7

struct sweep {
	enum what_key key;
	double value[SWEEP_MAX_POINTS]; /* ascending as given, all different */
	size_t n;
};
/* "key=from..to", "key=from..to:steps" (so many values, ends included), "key=a,b,c". ERR_ARG says what is
 * wrong. */
int sweep_parse(const char *text, struct sweep *out, struct err *err);

struct sweep_params {
	const struct sweep *sweep;
	const struct compare_params *compare; /* keep_outcomes is of point `keep` alone */
	size_t keep;
	/* Called after each point, in order. It may take the result by setting *io to NULL; else it is
	 * freed. */
	int (*on_point)(void *owner, size_t i, struct compare_result **io, struct err *err);
	void *owner;
};
int sweep_run(const struct sweep_params *p, struct err *err);

#endif
