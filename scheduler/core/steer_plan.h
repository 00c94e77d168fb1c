/* How a steered job goes on from here: with one batch to its end, or with one and then another. It knows
 * no scheduler and no clock; sched_steer.c asks it with what it knows of a running job, and admission asks
 * it for the fastest way.
 *
 * The time of an epoch and its effective iterations (mixed_run.h) are points, a batch each. What n epochs can
 * reach in a given time lies on the upper hull of these points, so that no plan needs more than two batches,
 * neighbours on it. Two rules choose:
 *
 *	the promise   the next epoch is taken with a batch only if, with the fastest one after it, the
 *	              bound of the end is in time. So whatever the next epoch shows, there is a way left.
 *	              While the belief is right, a job is late no more often than its confidence says: each
 *	              report moves the chance by what was not known before, and never on average.
 *	the worth     of these, the plan whose expected end is in time and that is worth most: value x
 *	              accuracy, less what its time costs others.
 *
 * A job keeps its batch to the end if no plan is worth more by `least_gain`, and for the next epoch if its
 * batch is one of the two of the best plan. */
#ifndef SCHEDULER_CORE_STEER_PLAN_H
#define SCHEDULER_CORE_STEER_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "predictors/models/mixed_run.h"
#include "scheduler/core/steer.h"

#define STEER_MOST_BATCHES 256

struct steer_pace {             /* of a batch */
	double epoch_s;         /* expected of an epoch from now on, above 0; NaN: it may not be taken */
	double effort;          /* effective iterations of an epoch */
	bool seen;              /* the job has run it, so that its own pace is known */
};

struct steer_case {
	const struct steer_pace *pace;
	size_t n;               /* 1 to STEER_MOST_BATCHES */
	size_t now;             /* the one that it has */
	unsigned epochs_left;   /* at least 1 */
	double offset_s;        /* of its end, whatever it takes */
	double left_s;          /* to its limit; INFINITY: it has none */
	double spread;          /* of the logarithm of the time that is left, with a batch that it has run */
	double unseen;          /* what a batch that it has not run adds to it */
	double confidence;
	double change_s;        /* a change of the batch costs so much time */
	const struct mixed_run_curve *curve; /* of whole runs with one batch */
	double effort_done;
	double value;           /* of an accuracy of 1 */
	double cost_per_s;      /* to the others, of a second of its time */
	double least_gain;      /* a change has to be worth more by this */
};

struct steer_plan {
	size_t first, then;     /* the next epoch and n_first - 1 more with the first */
	unsigned n_first;
	double end_s, upper_s;  /* expected, and the bound */
	double way_s;           /* the bound with the fastest after the next epoch: the promise rests on it */
	double accuracy, worth; /* NaN: nothing is known of accuracies, and then `worth` is of the effort */
	double way;             /* the part of end_s that it is expected to take so */
	double per_s;           /* accuracy that each second less costs it, on the way to the fastest; 0: it
	                           has none */
	enum steer_reason reason;
};

/* False: no batch may be taken. */
bool steer_plan(const struct steer_case *c, struct steer_plan *out);
/* The index of the batch with the shortest epochs; c->n: none may be taken. */
size_t steer_fastest(const struct steer_case *c);

#endif
