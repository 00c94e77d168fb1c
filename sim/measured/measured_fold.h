/* What happens in one fold: the times of every setting at each load, its accuracies, and which way they go
 * between settings. And the answer to a question: how long a job takes among how many processes of others
 * (measured_ask).
 *
 * A random number picks the run that a job is like: a quantile of the measured times, the same at every
 * load, so that a job that is fast at one load is fast at all of them.
 *
 * Between measured settings the answer is interpolated: the logarithm of time linearly in the logarithms of
 * the numbers, over the corners of the cell that the question lies in. Corners that did not happen in this
 * fold are left out; where none did, the four nearest settings answer, each by the inverse of its distance.
 * So that a lopsided set of corners does not bend the answer to its side, each corner's time is first
 * carried to where the question lies, along the slopes that least squares find in the whole fold (in the
 * whole table, where folds are dealt settings). With all corners there this changes nothing: the steps
 * cancel out. */
#ifndef SIM_WORLD_MEASURED_FOLD_H
#define SIM_WORLD_MEASURED_FOLD_H

#include "sim/trace/trace.h"
#include "sim/measured/measured_table.h"

#define MEASURED_MAX_LEVELS 16 /* of load; a setting with more has neighbours put together */
#define MEASURED_MAX_KNOTS 24

struct measured_level {
	double others;           /* processes of other jobs */
	uint32_t first, n;       /* its times, ascending, in time[] */
};

struct measured_happened {        /* of a setting, in this fold */
	uint32_t level, n_levels;  /* in level[], ascending in others; none: it did not happen */
	uint32_t accuracy, n_accuracies; /* in accuracy[], ascending */
};

struct measured_fold {
	const struct measured_table *table; /* borrowed */
	double cores;             /* that it was measured on */
	struct measured_happened *happened; /* by setting */
	struct measured_level *level;
	double *time, *accuracy;
	/* by combo and axis, of log time and of accuracy by log of the axis */
	double *time_slope, *accuracy_slope;
	double least_accuracy, most_accuracy;
};

int measured_fold_make(const struct measured_table *t, size_t fold, double cores,
                       struct measured_fold *out, struct err *err);
void measured_fold_release(struct measured_fold *f);
/* did any setting of these categories happen? */
bool measured_fold_knows(const struct measured_fold *f, uint32_t combo);

struct measured_question {
	uint32_t combo;
	double value[MEASURED_MAX_AXES]; /* inside the ranges of the axes */
	double time_u, accuracy_u;
};

/* Time by the processes of others: linear between the knots, constant below the first, a line above the
 * last. Never falls. */
struct measured_course {
	double others[MEASURED_MAX_KNOTS], time_s[MEASURED_MAX_KNOTS];
	double slope;             /* beyond the last knot, >= 0 */
	uint32_t n;               /* at least 1 */
};
/* False: this combination of categories did not happen in this fold. *out_accuracy is NaN where none is
 * known. */
bool measured_ask(const struct measured_fold *f, const struct measured_question *q,
                  struct measured_course *out, double *out_accuracy);
double measured_course_at(const struct measured_course *c, double others);

/* ---- the kinds of a trace in the terms of the table: which categories, and where on each axis
 * (measured_kinds.c). A kind that the table does not have is refused or marked here, before anything runs.
 * ---- */
struct measured_kinds {
	size_t n;                /* kinds */
	uint32_t *combo;         /* by kind */
	double *value;           /* by kind and axis; NaN: chosen when a job starts */
	char **unknown;          /* by kind: why the table says nothing of it; NULL: it does */
	double *batch; size_t n_batches; /* measured ones that every kind may have, ascending */
};

/* trace NULL: no kinds, and all measured batches. ERR_FORMAT names the trace, the line of the kind's first
 * job, the column, what it says and what was measured; with mark_unknown such kinds are marked, and it is
 * an error only if there is no other. */
int measured_kinds_bind(const struct measured_table *t, const struct measured_fold *fold,
                        const struct trace *trace, bool mark_unknown, struct measured_kinds *out,
                        struct err *err);
void measured_kinds_release(struct measured_kinds *k);

/* ERR_ARG: v lies outside of what was measured of these categories, and the text says what was; the caller
 * names the axis. */
int measured_check_range(const struct measured_table *t, uint32_t combo, size_t axis, double v,
                         struct err *err);

#endif
