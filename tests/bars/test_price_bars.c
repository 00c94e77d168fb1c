/* The bars of the priced rule: what postrider gets in the world of configs/worlds/bigdl.json, where a batch
 * trades time for accuracy and the disk is what binds, beside a fixed batch, at loads from idle to overload.
 * Jobs that cannot be promised are taken for a chance of 0.3. The figure is the mean accuracy with a miss
 * or a refusal as 0. 5 replications of 500 jobs; a sanitized run uses two and checks nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/compare/compare.h"
#include "tests/support/support.h"

#define PRICED "postrider:chance=0.3"
#define SLACK 0.005 /* a baseline may be ahead by so much */

static struct compare_cache *cache;

static struct compare_result *compare(const char *arrivals, double load)
{
	struct sim_policy policy[SIM_MAX_POLICIES];
	char trace[256];
	struct compare_params p = {
		.trace = { .spec = trace, .seed = 1 },
		.world = { .spec = "fluid:configs/worlds/bigdl.json" },
		.policy = policy,
		.replications = sanitized() ? 2 : 5,
		.seed = 1,
		.settings = { .confidence = 0.9, .adapt = true },
		.level = 0.95,
		.cache = cache,
	};
	struct compare_result *r;
	struct err err = { 0 };

	snprintf(trace, sizeof trace,
		 "gen:%s,jobs=500,load=%g,cpus=1|2|4|8,slo=normal:300:100,work=1000,cores=48,"
		 "samples=60000,epochs=10",
		 arrivals, load);
	if (sim_policies_parse(PRICED ",greedy,fixed:64,fixed:128,fixed:256,fixed:512", policy,
			       SIM_MAX_POLICIES, &p.n_policies, &err) ||
	    pool_new(0, &p.pool, &err) || compare_run(&p, &r, &err))
		fail_msg("%s", err.text);
	pool_free(p.pool);
	return r;
}

static int misses; /* all loads are printed before the first that does not hold fails the test */

static void miss(double value, double least, const char *what)
{
	if (value >= least || sanitized())
		return;
	print_message("# does not hold: %.4f, and at least %.4f is asked for (%s)\n", value, least, what);
	misses++;
}

/* At least as good as every baseline; promises kept; returns the figure. */
static double hold(const char *arrivals, double load)
{
	struct compare_result *r = compare(arrivals, load);
	double ours = r->policy[0].metric[METRIC_ACCURACY_ZERO].mean;
	double kept = r->policy[0].metric[METRIC_ATTAINMENT].mean;

	assert_string_equal(r->policy[0].policy.name, PRICED);
	for (size_t i = 0; i < r->n_policies; i++) {
		const struct interval *m = r->policy[i].metric;

		print_message("# %-8s %.1f %-20s %.4f [%.4f, %.4f]  met %.3f  kept %.3f\n", arrivals, load,
			      r->policy[i].policy.name, m[METRIC_ACCURACY_ZERO].mean,
			      m[METRIC_ACCURACY_ZERO].low, m[METRIC_ACCURACY_ZERO].high,
			      m[METRIC_ATTAINMENT_ALL].mean, m[METRIC_ATTAINMENT].mean);
	}
	for (size_t i = 1; i < r->n_policies; i++)
		miss(ours, r->policy[i].metric[METRIC_ACCURACY_ZERO].mean - SLACK, r->policy[i].policy.name);
	miss(kept, 0.9 - 0.02, "promises kept");
	compare_free(r);
	return ours;
}

TEST(test_no_fixed_batch_beats_it_when_jobs_come_at_random)
{
	static const double load[] = { 0.1, 0.3, 0.6, 0.9, 1.2, 1.5 };

	assert_int_equal(compare_cache_new(&cache, NULL), 0);
	for (size_t i = 0; i < sizeof load / sizeof *load; i++) {
		double ours = hold("poisson", load[i]);

		if (load[i] >= 0.3 && load[i] <= 0.9)
			miss(ours,
			     load[i] < 0.5   ? 0.875
			     : load[i] < 0.8 ? 0.85
					     : 0.74,
			     "the bar of this load");
	}
	compare_cache_free(cache);
	assert_int_equal(misses, 0);
}
