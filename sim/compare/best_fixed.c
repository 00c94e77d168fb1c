/* fixed:best: which batch is the best for every job? It is found on a pilot, so that the choice has not seen
 * what it is judged by: a generated trace is drawn again with another seed, and one from a file is played
 * with other random numbers. In the second case the pilot has the same jobs. */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "sim/compare/compare_internal.h"

#define PILOT 0x70696c6f74ULL /* keeps its seeds apart */

static int value_of(const struct compare_params *p, const struct trace *t, const struct world *w, size_t fold,
		    double batch, double *out, struct err *err)
{
	struct sim_policy fixed = { .choice = { .batch = batch } };
	struct replay_params replay = { .trace = t,
					.world = w,
					.fold = fold,
					.policy = &fixed,
					.seed = rng_stream(p->seed ^ PILOT, fold).state,
					.settings = p->settings };
	struct replay_result run;
	double value[METRICS];
	int status = policy_parse("fixed:1", &fixed.choice, err);

	fixed.choice.batch = batch;
	if (!status)
		status = replay_run(&replay, &run, err);
	if (status)
		return status;
	status = metrics_of(t, world_whole(w), &run, NULL, value, err);
	/* without accuracies, as many as can be in time */
	*out = isnan(value[METRIC_ACCURACY_ZERO]) ? value[METRIC_MET] : value[METRIC_ACCURACY_ZERO];
	replay_result_release(&run);
	return status;
}

/* Batches that a job of the trace may have. */
static size_t batches_of(const struct trace *t, const struct world *w, double *out, size_t max)
{
	const double *own;
	size_t n = 0, n_own = world_batches(w, &own);

	for (size_t k = 0; k <= t->n_kinds; k++) {
		const double *from = k < t->n_kinds ? t->kind[k].batch : own;
		size_t n_from = k < t->n_kinds ? t->kind[k].n_batches : n_own;

		for (size_t i = 0; i < n_from; i++) {
			size_t at = 0;

			while (at < n && out[at] != from[i])
				at++;
			if (at == n && n < max)
				out[n++] = from[i];
		}
	}
	return n;
}

static int find(const struct compare_params *p, const struct trace *t, const struct world *w,
		double *out_batch, struct err *err)
{
	double batch[TRACE_MAX_BATCHES], best = -1.0;
	size_t n = batches_of(t, w, batch, TRACE_MAX_BATCHES);
	int status = n ? 0
		       : err_fail(err, ERR_ARG,
				  "fixed:best: neither the trace nor the world says which batches "
				  "there are");

	for (size_t i = 0; !status && i < n; i++) {
		double sum = 0.0, value;

		for (size_t fold = 0; !status && fold < world_folds(w); fold++) {
			status = value_of(p, t, w, fold, batch[i], &value, err);
			sum += value;
		}
		if (!status && sum > best) {
			best = sum;
			*out_batch = batch[i];
		}
	}
	return status;
}

int compare_best_fixed(const struct compare_params *p, struct compare_result *r, struct err *err)
{
	struct compare_result *pilot = NULL;
	struct compare_params q = *p;
	double batch = NAN;
	bool wanted = false;
	int status = 0;

	for (size_t i = 0; i < r->n_policies; i++)
		wanted |= r->policy[i].policy.best_fixed;
	if (!wanted)
		return 0;
	q.replications = 1;
	q.trace.seed ^= PILOT;
	status = compare_open(&q, &pilot, err);
	if (!status)
		status = find(&q, pilot->trace[0], pilot->world[0], &batch, err);
	for (size_t i = 0; !status && i < r->n_policies; i++)
		if (r->policy[i].policy.best_fixed)
			r->policy[i].policy.choice.batch = batch;
	compare_free(pilot);
	return status;
}
