/* How much work a running job has left, by its reports of progress.
 *
 * A job is a start-up and then work in even parts: `done` of it took start + done * rate. The rate comes from
 * the differences between reports, so that a start-up does not count as slowness. It is blended with what was
 * expected before, each by its spread: the model's error, the noise of the reports seen so far, and for the
 * first report the start-up that is in it. An expectation that the reports contradict counts less, and so
 * does a first report that comes at once: some jobs report an epoch when they begin it. If no start-up is
 * known, a first report that comes late is assumed to contain one, until the second report. Older differences
 * fade, since the load may have changed. Reports that come all at once, as from a program that buffers its
 * output, are one: the last of them.
 *
 * A job of which nothing was expected is its own model from its first report on. Its first part may hold a
 * start-up, so that from the second report on only the differences count. How uncertain they leave the rest
 * comes from how wrong each difference would have been foretold by those before it. */
#ifndef SCHEDULER_CORE_PROGRESS_H
#define SCHEDULER_CORE_PROGRESS_H

#include <stdbool.h>

struct progress {
	/* expected: the start-up, NaN where that is not known, and the rest, NaN where nothing is; the
	 * deviation of its logarithm */
	double start_s, rate_s, spread;
	double first_done, first_s;  /* of the first report: share of the work, and seconds of work it took */
	double hidden_s;             /* a start-up that would explain it, where none is known of */
	struct progress_mark {       /* after a report */
		unsigned n;          /* reports */
		double done, at_s;
		double sum_done, sum_s, sum_squares, sum_n; /* differences, faded, and of s^2 / done */
		double sum_thin;     /* of `done`, faded by the square: how much the faded ones are worth */
		/* squares of log(a rate / the one foretold), as of all the work, and how many */
		double sum_errors, n_errors;
	} last, before;              /* the last report, and the one before it */
};

/* total_s: seconds of work expected (NaN: not known), start_share of it start-up (the same), with that
 * spread. */
void progress_begin(struct progress *p, double total_s, double start_share, double spread);

/* `done` (0..1) of the work is behind the job after at_s seconds of work. False: that is nothing new. */
bool progress_report(struct progress *p, double done, double at_s);

/* Work left after the last report, and the standard deviation of its logarithm. Without a report all of
 * it; NaN if that is not known. */
double progress_left_s(const struct progress *p, double *out_spread);

/* What is left was changed: all the work is `times` as much as it was, what is done included, and goes at the
 * same pace. So the same work done is a smaller part of it, by that factor. */
void progress_scale(struct progress *p, double times);

#endif
