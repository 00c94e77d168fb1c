/* Capacity (--capacity): the smallest machine that reaches a target, such as 99 % of all SLOs met. */
#ifndef SIM_COMPARE_CAPACITY_H
#define SIM_COMPARE_CAPACITY_H

#include "sim/compare/compare.h"

#define CAPACITY_MAX_POINTS 128

struct capacity_point {
	double value;
	struct interval metric;
	bool holds;
};
struct capacity {
	struct capacity_point point[CAPACITY_MAX_POINTS]; size_t n; /* all that were tried, ascending */
	double answer;      /* NaN: none of those tried will do */
	bool contradicts;   /* a value holds and a larger one does not: more is not always better here */
};
struct capacity_params {
	double from, to;    /* whole, 0 < from <= to */
	double target;
	int better;         /* 1: at least the target holds, -1: at most */
	/* What this value gives. */
	int (*measure)(void *owner, double value, struct interval *out, struct err *err);
	void *owner;
};
/* By bisection, as if more were better; the ends and the answer's neighbours are always among the points.
 * Where the largest one fails, some in between are tried before it gives up. */
int capacity_search(const struct capacity_params *p, struct capacity *out, struct err *err);

struct capacity_question {
	enum metric of;     /* what must reach the target */
	enum what_key by;   /* what may be changed: a key of the machine */
	double target;
	double from, to;    /* the values searched */
};
/* ERR_ARG: the metric has no better direction or depends on the oracle, or the key is not one of the
 * machine. */
int capacity_check(const struct capacity_question *q, struct err *err);
/* Fills in a range that is 0: from 1 to eight times what the machine has. ERR_ARG: an empty range. */
int capacity_fill_range(struct capacity_question *q, const struct cluster *machine, struct err *err);
/* The answer for one policy of the comparison. Models are trained once. */
int capacity_of_policy(const struct compare_params *p, const struct capacity_question *q, size_t policy,
                       struct capacity *out, struct err *err);

#endif
