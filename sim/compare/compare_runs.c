/* Runs every policy in every replication, through the pool, and turns outcomes into numbers as soon as it
 * can. */
#include "sim/compare/compare_internal.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/rng.h"

#define BINS_PER_E 100.0 /* a bin is 1 % wide */
#define FIRST_BIN_S 1e-9
#define DRAW_STREAMS 0x6c75636bULL /* keeps them apart from other streams of the same seed */

/* ---- decision times ---- */

void decision_times_add(struct decision_times *d, double s)
{
	double at = s > FIRST_BIN_S ? BINS_PER_E * log(s / FIRST_BIN_S) : 0.0;

	if (!(s >= 0.0))
		return;
	d->bin[at < DECISION_BINS ? (size_t)at : DECISION_BINS - 1]++;
	d->sum_s += s;
	d->n++;
}

double decision_times_quantile(const struct decision_times *d, double q)
{
	double rank = ceil(q * (double)d->n), seen = 0.0;

	if (!d->n)
		return NAN;
	for (size_t i = 0; i < DECISION_BINS; i++) {
		seen += (double)d->bin[i];
		if (seen >= rank && seen > 0.0)
			return FIRST_BIN_S * exp(((double)i + 0.5) / BINS_PER_E);
	}
	return NAN;
}

/* ---- progress and errors ---- */

void compare_runs_progress(void *runs, const char *stage, size_t done, size_t total)
{
	struct compare_runs *x = runs;

	if (!x->p->on_progress)
		return;
	pthread_mutex_lock(&x->lock);
	x->p->on_progress(x->p->owner, stage, done, total);
	pthread_mutex_unlock(&x->lock);
}

struct run_progress {
	struct compare_runs *x;
	size_t arrived; /* as counted already */
};

static void on_replay_progress(void *owner, size_t done, size_t total)
{
	struct run_progress *r = owner;
	struct compare_runs *x = r->x;

	(void)total;
	pthread_mutex_lock(&x->lock);
	x->done += done - r->arrived;
	r->arrived = done;
	if (x->p->on_progress)
		x->p->on_progress(x->p->owner, "replaying", x->done, x->total);
	pthread_mutex_unlock(&x->lock);
}

/* Keeps the error of the lowest run, whichever fails first on the clock. */
static void run_failed(struct compare_runs *x, size_t run, const struct err *e)
{
	pthread_mutex_lock(&x->lock);
	if (run < x->failed) {
		x->failed = run;
		x->err = *e;
	}
	pthread_mutex_unlock(&x->lock);
}

/* ---- from outcomes to numbers ---- */

static void count_calibration(const struct compare_runs *x, const struct trace *t,
			      const struct replay_result *run, size_t tracked[101], size_t covered[101])
{
	for (size_t i = 0; i < run->n; i++) {
		double c = isnan(t->job[i].confidence) ? x->p->settings.confidence : t->job[i].confidence;
		double percent = nearbyint(100.0 * c);
		bool within;

		if (!(percent >= 0.0 && percent <= 100.0) || !metrics_bounded(&run->outcome[i], &within))
			continue;
		tracked[(size_t)percent]++;
		covered[(size_t)percent] += within;
	}
}

/* Only whole numbers are summed up: the order in which runs end does not show. */
static void add_shares(struct compare_shares *s, const double *value, const double *trials)
{
	for (size_t m = 0; m < METRICS; m++) {
		if (!(trials[m] > 0.0) || isnan(value[m]))
			continue;
		s->part[m] += nearbyint(value[m] * trials[m]);
		s->whole[m] += trials[m];
	}
}

static int measure_run(struct compare_runs *x, size_t policy, size_t replication,
		       const struct outcome *oracle, struct err *err)
{
	struct compare_policy *c = &x->r->policy[policy];
	const struct replay_result *run = &c->run[replication];
	const struct trace *t = x->r->trace[replication];
	double *value = &c->value[replication * METRICS], trials[METRICS];
	size_t tracked[101] = { 0 }, covered[101] = { 0 };
	int status = metrics_of(t, world_whole(x->r->world[replication]), run, oracle, value, err);

	if (status)
		return status;
	metrics_trials(t, run, oracle, trials);
	count_calibration(x, t, run, tracked, covered);
	pthread_mutex_lock(&x->lock);
	add_shares(&x->shares[policy], value, trials);
	for (size_t i = 0; i <= 100; i++) {
		c->tracked[i] += tracked[i];
		c->covered[i] += covered[i];
	}
	for (size_t i = 0; i < run->n; i++)
		decision_times_add(&x->times[policy], run->outcome[i].decision_s);
	pthread_mutex_unlock(&x->lock);
	return 0;
}

static void forget_outcomes(struct compare_runs *x, size_t policy, size_t replication)
{
	struct replay_result *run = &x->r->policy[policy].run[replication];

	if (x->p->keep_outcomes)
		return;
	free(run->outcome);
	run->outcome = NULL;
}

/* The index of the greedy oracle, or of the priced one where that is alone; n_policies: neither is there. */
static size_t oracle_of(const struct compare_params *p)
{
	size_t found = p->n_policies;

	for (size_t i = p->n_policies; i-- > 0;)
		if (p->policy[i].oracle && (found == p->n_policies || !p->policy[i].priced))
			found = i;
	return found;
}

static size_t optimum_of(const struct compare_params *p)
{
	size_t i = 0;

	while (i < p->n_policies && !p->policy[i].optimum)
		i++;
	return i;
}

static void compare_with_optimum(struct compare_runs *x, size_t optimum, size_t replication)
{
	size_t at = replication * METRICS;
	double best = x->r->policy[optimum].value[at + METRIC_ACCURACY_ZERO];

	for (size_t i = 0; best > 0.0 && i < x->p->n_policies; i++) {
		double *value = &x->r->policy[i].value[at];

		value[METRIC_OF_OPTIMUM] = value[METRIC_ACCURACY_ZERO] / best;
	}
}

static void measure(struct compare_runs *x, size_t policy, size_t replication, const struct outcome *oracle)
{
	struct err err = { 0 };

	if (measure_run(x, policy, replication, oracle, &err))
		run_failed(x, replication * x->p->n_policies + policy, &err);
}

/* With the oracle or the optimum, when the last run of a replication has ended: what these did is known then.
 * Without them each run at once, for the sake of memory. */
static void measure_what_is_known(struct compare_runs *x, size_t policy, size_t replication)
{
	size_t n = x->p->n_policies, oracle = oracle_of(x->p), optimum = optimum_of(x->p), left;

	pthread_mutex_lock(&x->lock);
	left = --x->left[replication];
	pthread_mutex_unlock(&x->lock);
	if (oracle == n && optimum == n) {
		measure(x, policy, replication, NULL);
		forget_outcomes(x, policy, replication);
		return;
	}
	for (size_t i = 0; !left && i < n; i++)
		measure(x, i, replication, oracle < n ? x->r->policy[oracle].run[replication].outcome : NULL);
	if (!left && optimum < n)
		compare_with_optimum(x, optimum, replication);
	for (size_t i = 0; !left && i < n; i++)
		forget_outcomes(x, i, replication);
}

/* ---- the runs ---- */

static bool comes_behind_a_failure(struct compare_runs *x, size_t run)
{
	bool skip;

	pthread_mutex_lock(&x->lock);
	skip = run > x->failed;
	pthread_mutex_unlock(&x->lock);
	return skip;
}

static int replay_one(struct compare_runs *x, size_t policy, size_t replication, struct err *err)
{
	const struct compare_params *p = x->p;
	struct run_progress progress = { .x = x };
	size_t fold = replication % x->folds;
	struct replay_params replay = {
		.trace = x->r->trace[replication],
		.world = x->r->world[replication],
		.fold = fold,
		.policy = &x->r->policy[policy].policy, /* as in p, with the batch of fixed:best */
		.model = x->model[fold * p->n_policies + policy],
		/* The same for all policies; unrelated between replications, and between seeds next to each
		 * other. */
		.seed = rng_stream(p->seed ^ DRAW_STREAMS, replication).state,
		.settings = p->settings,
		.on_progress = on_replay_progress,
		.owner = &progress,
	};

	return replay_run(&replay, &x->r->policy[policy].run[replication], err);
}

static void one_turn(void *runs, size_t run, size_t worker)
{
	struct compare_runs *x = runs;
	size_t n = x->p->n_policies, replication = run / n, policy = run % n;
	struct err err = { 0 };

	(void)worker;
	if (comes_behind_a_failure(x, run))
		return;
	if (replay_one(x, policy, replication, &err)) {
		err_prefix(&err, "policy %s, replication %zu", x->p->policy[policy].name, replication + 1);
		run_failed(x, run, &err);
		return;
	}
	measure_what_is_known(x, policy, replication);
}

int compare_runs_all(struct compare_runs *x, struct err *err)
{
	size_t n = x->p->n_policies;

	x->left = mem_array(x->p->replications, sizeof *x->left);
	if (!x->left)
		return err_nomem(err, "%zu replications", x->p->replications);
	x->failed = SIZE_MAX;
	x->done = x->total = 0;
	for (size_t i = 0; i < x->p->replications; i++) {
		x->left[i] = n;
		x->total += n * x->r->trace[i]->n_jobs;
	}
	pool_run(x->p->pool, n * x->p->replications, one_turn, x);
	free(x->left);
	x->left = NULL;
	if (x->failed == SIZE_MAX)
		return 0;
	if (err)
		*err = x->err;
	return -(int)x->err.code;
}
