/* Policies side by side: the same traces and the same random numbers, so that differences come from the
 * policies. Replications differ in their random numbers, in the generated trace (where it is generated) and
 * in the fold of the world. Runs go through a pool and are put together by index: the result does not depend
 * on the threads. */
#ifndef SIM_COMPARE_COMPARE_H
#define SIM_COMPARE_COMPARE_H

#include "common/pool.h"
#include "sim/compare/metrics.h"

#define COMPARE_MAX_REPLICATIONS 10000
#define COMPARE_LEAST_RUNS 30        /* of a measured world: below, no policy is called better */

struct compare_params {
	/* a generated or resampled one is drawn again in each replication: trace.seed + replication */
	struct trace_source trace;
	struct world_params world;   /* its trace and what-if are filled in here */
	struct what_if what;
	const char *drift, *stragglers, *failures; double noise; /* as given (draws.h) */
	const struct sim_policy *policy; size_t n_policies;
	size_t baseline;             /* index: paired tests are against it */
	size_t replications;
	uint64_t seed;               /* of random numbers, training tables and models */
	struct replay_settings settings;
	double level;                /* of the intervals in the result, 0.95 */
	const struct model *model;   /* for all policies that accept it, instead of training; NULL: trained */
	const char *model_name;      /* what the record calls it; NULL: trained */
	struct compare_cache *cache; /* of trained models; NULL: none are kept */
	bool keep_outcomes;          /* of every run, for jobs.csv; otherwise only the numbers */
	struct pool *pool;
	void (*on_progress)(void *owner, const char *stage, size_t done, size_t total);
	void *owner;
};

struct compare_policy {              /* one of the policies */
	struct sim_policy policy;
	double *value;               /* [replication * METRICS + metric] */
	struct interval metric[METRICS];
	struct paired_result versus[METRICS]; /* against the baseline; all NaN for the baseline itself */
	struct replay_result *run;   /* per replication; outcomes NULL unless kept */
	double decision_mean_s, decision_p99_s; /* wall-clock, over all */
	double *importance; char **feature; size_t n_features; /* of its time model (fold 0); NULL: none */
	/* calibration: by confidence in percent, runs with a bound and within it */
	size_t tracked[101], covered[101];
};

struct compare_result {
	struct compare_policy *policy; size_t n_policies;
	size_t baseline, replications;
	struct trace **trace;        /* per replication; the same pointer where it is not drawn anew */
	struct world **world;        /* per replication, too */
	struct csv *training;        /* what the models of replication 0 learnt from; NULL: --model */
	size_t tests;                /* against the baseline, for whose number p_holm is corrected */
	char note[200];              /* why there is no verdict; "": there is one */
};
/* How often a policy came out so against the baseline, by enum verdict; of the tested measures. */
void compare_verdicts(const struct compare_result *r, size_t policy, double level,
                      size_t out[VERDICT_UNKNOWN + 1]);
/* Trained models kept from one comparison to the next, for what-ifs: only between comparisons that differ in
 * nothing that is learnt from (world, schema, machine as given, noise, seed). One comparison at a time. */
struct compare_cache;
int compare_cache_new(struct compare_cache **out, struct err *err);
void compare_cache_free(struct compare_cache *c);

/* Which policies decide with the model of p->model. ERR_ARG: none of them does, or the model was trained on
 * the very table that happens in this world. */
int compare_check_model(const struct compare_params *p, bool out_takes[SIM_MAX_POLICIES], struct err *err);

/* Opens the trace and the world of every replication. The numbers of the result are still missing. */
int compare_open(const struct compare_params *p, struct compare_result **out, struct err *err);
/* Trains the models, runs every policy and fills in the numbers. The result is to be freed after an error,
 * too. */
int compare_play(const struct compare_params *p, struct compare_result *r, struct err *err);
/* Both. */
int compare_run(const struct compare_params *p, struct compare_result **out, struct err *err);
void compare_free(struct compare_result *r);

#endif
