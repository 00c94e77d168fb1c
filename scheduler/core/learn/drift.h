/* The drift alarm: have the model's errors moved, and since when? A two-sided CUSUM (Page, Biometrika 41,
 * 1954) on standardised scores z = (log(actual / predicted) - centre) / spread, cut off at +-2 so that a few
 * far ones raise no alarm; one for each job type and one for all jobs:
 *
 *   up = max(0, up + z - slack),  down = max(0, down - z - slack),  alarm when either passes the threshold.
 *
 * The slack is half the shift looked for, which is optimal for that shift. The threshold follows from the
 * average number of jobs to a false alarm by Siegmund's approximation (Sequential Analysis, 1985, section
 * 2.6); tests/unit/core/ test_drift.c measures it. A job counts once for its type and once for all, so at
 * 25,000 each a daemon sees a false alarm every 12,500 jobs on average, however many types there
 * are. Cut scores make them rarer; heavy and skewed tails make them more frequent again. Centre and spread
 * are estimates, so slack and spread are widened by half a standard error each (a whole one made some alarms
 * 1.8 times as slow). A model of few residuals may still give more alarms (the test prints how often).
 *
 * There is no clock and no file, and only drift_new() allocates. The state follows from the observations in
 * their order. */
#ifndef SCHEDULER_CORE_DRIFT_H
#define SCHEDULER_CORE_DRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define DRIFT_POOLED (-1)

struct drift;

struct drift_reference {        /* scores of a model that fits */
	double centre, spread;  /* spread above 0 */
	size_t n;               /* scores they come from, at least 8 */
};
/* The reference from log(actual / predicted) of rows the model has not seen, or of the first jobs it met if
 * its residuals are not in log time. These are Huber's estimates of location and scale (his proposal 2) with
 * the same cut, so that the cut scores have mean 0 and variance 1 with any tails and skew. ERR_NODATA: fewer
 * than 8; ERR_NUMERIC: not finite, or all equal. */
int drift_reference_of(const double *score, size_t n, struct drift_reference *out, struct err *err);

int drift_new(const struct drift_reference *r, struct drift **out, struct err *err);
void drift_free(struct drift *d);

/* A job has finished; type below 0: it counts for all jobs only. Returns true if it raises an alarm, of its
 * type or of all. Times that are not finite and above 0 are left out. */
bool drift_observe(struct drift *d, int type, double predicted_s, double actual_s);

struct drift_evidence {
	bool alarm;             /* raised, and not acknowledged since */
	bool slower;            /* the direction of the larger statistic */
	uint64_t jobs;          /* seen since the beginning or the last acknowledgement */
	uint64_t since;         /* how many jobs ago the change began, as far as can be told; 0: no sign of
	                           one */
	double shift_percent;   /* of the times since then against the model: +20 is a fifth longer; NaN:
	                           none */
	double statistic, threshold; /* the statistic stops at twice the threshold, so that it falls again
	                                soon when things return to normal */
};
/* type: a job type, or DRIFT_POOLED for all. Returns false, with all zero, if it was never seen or is
 * forgotten. */
bool drift_evidence(const struct drift *d, int type, struct drift_evidence *out);
/* An operator has seen the alarm: the statistic starts again. */
void drift_acknowledge(struct drift *d, int type);

#endif
