/* Bounds and expectations that stay true when the machine changes after the model was trained. Every
 * finished job gives a score s = log(actual / predicted run time). Two numbers follow from the latest
 * scores, for all types together, for each job type, and for each family in it (spread.h: a network on so
 * many cpus, say; on a loaded machine the errors of a model are similar within a family):
 *
 *   bias      a factor on the model's time: the median of the last 30 scores. That of a family is drawn
 *             towards that of its type, this one towards that of all types, and that one towards 0, as far as
 *             the distance could be chance.
 *   quantile  of the scores around that bias, over the last 200 (the window). It replaces the model's
 *             conformal quantile as the window fills.
 *
 * Both depend on scores, not on promises kept or broken, and are quick. What closes the loop on the bounds
 * that users see is later.h. A level of the quantile that kept and broken promises moved (adaptive
 * conformal inference) was here once, too: it brought 1.5 points of promises in one of six worlds, for
 * 0.02 of accuracy there, and nothing in the others (docs/MEASURED.md).
 *
 * Users do not trust each other, so one may not move another's bounds by much (tests/unit/core/
 * test_adapt_hostile.c: a fifth of all observations is hostile):
 *   - The scores behind a bias are the latest of every user, as many of each as the user's share of the
 *     window. A burst counts no more than that.
 *   - Where two other users or fewer have half of those scores, these do not count: a newcomer gets the bias
 *     of all types, or the model's own time, and the user's own scores count on top.
 *   - A quantile comes from the user's own scores, as far as there are enough. What all users together say
 *     moves the model's quantile by ADAPT_OTHERS of the spread at most, and not at all where it could be the
 *     word of two.
 * With a single user none of this makes a difference.
 *
 * There is no clock and no file, and only adapt_new() allocates. The state depends on the observations and
 * their order alone. To restore it, observe what the store kept, in the same order. All observations since
 * the model was put to use give the same state to the last bit, and the last few thousand nearly the same. */
#ifndef SCHEDULER_CORE_ADAPT_H
#define SCHEDULER_CORE_ADAPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "scheduler/core/policy/layers.h"

#define ADAPT_OTHERS 0.1          /* spreads */
#define ADAPT_SPREAD 0.2          /* of log times, where the model has none */
#define ADAPT_PLAUSIBLE 20.0      /* times the model's time, or a twentieth; more where it errs by more */
#define ADAPT_PLAUSIBLE_SPREADS 8.0
#define ADAPT_PLAUSIBLE_STRANGER 1000.0 /* of a job that the model does not know */

struct adapt;

struct adapt_who {              /* whose job it is */
	int type;               /* a number from 0 on that stays with the type; below 0: none */
	uint32_t user;
	uint64_t family;        /* of the jobs of its type, as the model tells them apart; 0: not known */
};

/* without: LAYER_BIAS, so that the bound has to follow alone; LAYER_QUANTILE, so that the model's quantile
 * stands, around the corrected expectation. */
int adapt_new(unsigned without, struct adapt **out, struct err *err);
void adapt_free(struct adapt *a);
/* For another model: forgets all scores. spread: the standard deviation of its errors in log time; NaN: not
 * known. */
void adapt_reset(struct adapt *a, double spread);

/* Could a job for which the model predicts predicted_s take actual_s? If not, do not learn from it. known:
 * false for a job that the model does not know. */
bool adapt_plausible(const struct adapt *a, double predicted_s, double actual_s, bool known);

/* A job has ended by itself. predicted_s: the model's time at the start, without the bias. Returns false,
 * and changes nothing, unless both times are finite and above 0. */
bool adapt_observe(struct adapt *a, struct adapt_who who, double predicted_s, double actual_s);

/* The factor on the model's time, above 0; 1 while nothing is known. */
double adapt_bias(const struct adapt *a, struct adapt_who who);
/* The same as the user with most of the latest jobs of the type has it, for people. */
double adapt_bias_shown(const struct adapt *a, int type);

/* Was nothing observed since the start or the last reset? Then the model's own bounds stand. */
bool adapt_is_empty(const struct adapt *a);

/* The log-factor between the corrected time and its bound: upper = predicted * adapt_bias() * exp(q).
 * model_q: the model's factor, in log time (for a model whose errors are not factors, log(bound / time) of
 * the candidate); NaN: it has none. Scores too few for the confidence (fewer than 9 / 19 / 99 for 90 / 95 /
 * 99 %) have no weight. Beyond that, weight moves with every score from the model to all types, on to the
 * type and on to the family, so nothing jumps. NaN: there is no bound at all. It is O(1) where all scores
 * are of one user, else O(window). */
double adapt_quantile(const struct adapt *a, struct adapt_who who, double confidence, double model_q);

#endif
