/* Bounds and expectations that stay true when the machine changes after the model was trained. Every finished job
 * gives a score s = log(actual / predicted run time). Three things follow from the latest ones, for each job type and
 * for all types together:
 *
 *   bias      where the scores lie now: their median over the last `recent`, drawn towards that of all types (and that
 *             towards 0) as far as it could be chance. A factor on the model's time.
 *   quantile  of the scores around that bias, over a rolling `window`; takes the place of the model's own conformal
 *             quantile as it fills.
 *   level     at which the quantile is read: adaptive conformal inference (Gibbs and Candes, NeurIPS 2021). A broken
 *             promise moves it up by `step` times the confidence, a kept one down by `step` times the rest, so that the
 *             long-run share of kept promises is the confidence whatever the scores do.
 *
 * The first two look at scores, which do not depend on what was promised, and are quick; the third closes the loop on
 * the promises themselves, and is slow on purpose: a result comes back many starts later, and larger steps swing
 * (tests/unit/core/test_adapt.c prints what was tried). Two others were tried: several step
 * sizes weighed by their success (DtACI, Gibbs and Candes 2022) were no sooner back and gave slightly wider bounds;
 * steps on the quantile itself (Angelopoulos et al. 2023, over a plain window) overshot after a shift, 95 % kept where
 * 90 % were asked.
 *
 * Pure: no clock, no file; nothing allocates but adapt_new(). The state is a function of the observations and their
 * order alone: to restore it, observe what the store kept, in the same order. All since the model was put to use give
 * the same state to the last bit; the last few thousand the same windows, and levels that differ by little. */
#ifndef SCHEDULER_CORE_ADAPT_H
#define SCHEDULER_CORE_ADAPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define ADAPT_MAX_TYPES 4096
#define ADAPT_MAX_WINDOW 10000
#define ADAPT_MAX_RECENT 1000

struct adapt;

struct adapt_params {           /* all zero: the defaults */
	size_t max_types;       /* remembered at a time, 64; a new one takes the place of the one unused for longest */
	size_t window;          /* scores behind a quantile, 200; at least 20 */
	size_t recent;          /* scores behind a bias, 30; at least 5 */
	double step;            /* of the level, 0.005; below 0: the level stays */
	bool no_bias;           /* the expectation is left alone, and the bound has to follow by itself */
};
int adapt_new(const struct adapt_params *p, struct adapt **out, struct err *err);
void adapt_free(struct adapt *a);
/* Another model: its scores have nothing to do with those so far. What was kept of promises stays counted. */
void adapt_reset(struct adapt *a);

/* A job has ended by itself. type: any number from 0 on that stays the type's own; below 0: none. predicted_s: the
 * model's own time at the start decision, without the bias. upper_s: the bound promised then; NaN: none was, and
 * only the score counts. False, and nothing has changed, unless both times are finite and above 0. */
bool adapt_observe(struct adapt *a, int type, double confidence, double predicted_s, double upper_s,
                   double actual_s);

/* The factor on the model's time, above 0; 1 while nothing is known. */
double adapt_bias(const struct adapt *a, int type);

enum adapt_source { ADAPT_NONE, ADAPT_MODEL, ADAPT_POOLED, ADAPT_TYPE }; /* what most of the quantile comes from */
const char *adapt_source_name(enum adapt_source s); /* "none", "model", "pooled", "type" */

/* The log-factor between the corrected time and its bound: upper = predicted * adapt_bias() * exp(q). model_q: the
 * model's own, in log time (a model that errs otherwise: log(its bound / its time) of the candidate); NaN: it has none.
 * Scores that cannot carry the confidence (fewer than 9 / 19 / 99 for 90 / 95 / 99 %) have no weight; beyond
 * that their weight grows with every score, from the model's to the pooled and on to the type's, so nothing jumps.
 * True unless there is no bound at all: NaN and ADAPT_NONE then. O(1). */
bool adapt_quantile(const struct adapt *a, int type, double confidence, double model_q, double *out_q,
                    enum adapt_source *out_source);

/* Promises made at a confidence, to the whole percent, and how many of them were kept; `stats` tells it. */
void adapt_share(const struct adapt *a, int percent, uint64_t *out_n, uint64_t *out_kept);

#endif
