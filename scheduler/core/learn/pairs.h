/* Neighbours by kind: how much longer a job takes because of who runs beside it, beyond what as many
 * processes of its own kind do to it. The table behind a model has copies of one job side by side, so its
 * law of sharing does not know that one kind of job fills the caches and another waits for the network.
 *
 * A kind is what a job is, whatever its cpus and its batch: its type and categories. Every ended job gives
 * a score, log(actual time / time foreseen by the common law with the load that it met), and the part of
 * the machine that each kind held while it ran. For each kind k a linear regression of the scores of its
 * jobs on those parts gives effects: the logarithm of the factor on the time of a job of kind k if kind g
 * held all of the machine. Effects are drawn towards 0, the common law, as random effects of one variance.
 * That variance is not known: five values, 0 among them, are weighed by the evidence of all scores
 * (Bayesian model averaging), so where kinds do not differ nothing is learnt, however many jobs end.
 *
 * Users do not trust each other (adapt.h). A score counts up to 3 deviations off what was expected, an
 * effect up to a factor of 2, and what was learnt of a kind is not used for the jobs of a user where two
 * other users or fewer gave half of it.
 *
 * There is no clock and no file, and only pairs_new() allocates. The state depends on the starts and the
 * observations and their order alone. */
#ifndef SCHEDULER_CORE_PAIRS_H
#define SCHEDULER_CORE_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "queueing/fluid.h"

#define PAIRS_KINDS FLUID_MAX_KINDS /* that are told apart at a time */
#define PAIRS_MOST 0.6931471805599453 /* of an effect: a factor of 2 */

struct pairs;

int pairs_new(struct pairs **out, struct err *err);
void pairs_free(struct pairs *p);
/* For other models: forgets all kinds but those that run. spread: the standard deviation of the model's
 * errors in log time; NaN: not known. */
void pairs_reset(struct pairs *p, double spread);
void pairs_set_room(struct pairs *p, double processes); /* that fill the machine */

/* A job of this kind (not 0) starts. Returns the number of the kind, 1 to PAIRS_KINDS; it stays until
 * pairs_leave(). 0: too many kinds are in use, and this one is not told from others. */
uint16_t pairs_enter(struct pairs *p, uint64_t kind);
void pairs_leave(struct pairs *p, uint16_t number); /* 0 is ignored */
uint16_t pairs_find(const struct pairs *p, uint64_t kind); /* its number; 0: it has none */

/* What the look-ahead needs; NULL: nothing has been learnt. */
const struct fluid_kinds *pairs_learnt(const struct pairs *p);
/* What a job of the kind with this number feels: the number, or 0 if this user is not to rely on it. */
uint16_t pairs_felt(const struct pairs *p, uint16_t number, uint32_t user);
/* out[i]: the factor on the time of a job that feels i, 0 to PAIRS_KINDS, where held[i] processes of
 * `processes` are of the kind with number i. */
void pairs_slow(const struct pairs *p, const uint64_t *held, double processes, double *out);

struct pairs_clock {                  /* of one machine: what its jobs have met up to now */
	uint64_t held[1 + PAIRS_KINDS]; /* processes that run, by the number of their kind; 0: of none */
	double share_s[1 + PAIRS_KINDS]; /* the integral of the part of the machine that they held */
	double passed_s;
};
void pairs_pass(const struct pairs *p, struct pairs_clock *c, double processes, double for_s);

struct pairs_start {                  /* of a job that runs: the clock then, and which kinds there were */
	double share_s[1 + PAIRS_KINDS], passed_s;
	uint64_t births;
};
struct pairs_start pairs_start(const struct pairs *p, const struct pairs_clock *c);

struct pairs_met {                    /* what an ended job has met; kind 0: not known */
	uint64_t kind;                /* its own */
	double plain;                 /* as it ran: log(time foreseen / that of the common law alone) */
	size_t n;
	struct { uint64_t kind; double share; } beside[PAIRS_KINDS]; /* parts of the machine, means */
};
/* Of a job of the kind with this number, since its start; `plain` is 0. */
void pairs_meet(const struct pairs *p, const struct pairs_clock *c, const struct pairs_start *from,
                uint16_t number, struct pairs_met *out);

/* The part of the machine that so many of all processes hold. */
double pairs_part(const struct pairs *p, double held, double processes);
/* score: log(actual / foreseen by the common law), without what was learnt otherwise. */
void pairs_observe(struct pairs *p, const struct pairs_met *met, uint32_t user, double score);
/* The same of a run of a table: it is the operator's, whom all users believe. */
void pairs_teach(struct pairs *p, const struct pairs_met *met, double score);

/* The effect on a job of `kind` of neighbours of kind `beside`, for people and tests; 0: none. */
double pairs_effect(const struct pairs *p, uint64_t kind, uint64_t beside);

#endif
