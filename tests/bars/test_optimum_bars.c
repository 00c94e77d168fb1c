/* The bar of small instances: what postrider gets of the offline optimum, which knows all arrivals. 200
 * instances of 4 to 8 jobs in the world of configs/worlds/bigdl.json, four loads, Poisson and bursty, 25 of
 * each. A sanitized run uses 2 of each and checks nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/test.h"
#include "tests/unit/sim/compare_bed.h"

#define POLICIES "postrider,postrider:chance=0.3,greedy,fixed:256,fixed:512,optimum"
#define LEAST 0.93 /* of the optimum's value, on average */
#define OF_EACH 25

TEST(test_postrider_gets_93_percent_of_the_optimum)
{
	static const char *const arrivals[] = { "poisson", "bursty" };
	static const double load[] = { 0.3, 0.6, 0.9, 1.5 };
	const char *san = getenv("SAN");
	bool sanitized = san && *san;
	double share[SIM_MAX_POLICIES][2 * 4 * OF_EACH];
	struct compare_cache *cache;
	size_t n = 0, n_policies = 0, bounds = 0;
	double ours = 0.0;

	assert_int_equal(compare_cache_new(&cache, NULL), 0);
	for (size_t a = 0; a < 2; a++)
		for (size_t l = 0; l < 4; l++) {
			struct compare_result *r;
			char trace[256];

			snprintf(trace, sizeof trace,
				 "gen:%s,jobs=%zu,load=%g,work=1000,cores=48,cpus=1|2|4|8,slo=normal:300:100,"
				 "samples=60000,epochs=10",
				 arrivals[a], 8 - l, load[l]);
			r = compare_bed_run(
				(struct compare_params){
					.trace = { .spec = trace },
					.world = { .spec = "fluid:configs/worlds/bigdl.json" },
					.replications = sanitized ? 2 : OF_EACH,
					.settings = { .confidence = 0.9, .adapt = true },
					.cache = cache },
				POLICIES);
			n_policies = r->n_policies;
			for (size_t k = 0; k < r->replications; k++, n++)
				for (size_t i = 0; i < n_policies; i++) {
					share[i][n] = r->policy[i].value[k * METRICS + METRIC_OF_OPTIMUM];
					bounds += r->policy[i].run[k].is_bound;
				}
			print_message("# %-8s %.1f", arrivals[a], load[l]);
			for (size_t i = 0; i < n_policies; i++)
				print_message("  %s %.3f", r->policy[i].policy.name,
					      r->policy[i].metric[METRIC_OF_OPTIMUM].mean);
			print_message("\n");
			compare_free(r);
		}
	compare_cache_free(cache);
	for (size_t i = 0; i < n_policies; i++) {
		static const char *const name[] = { POLICIES };
		struct interval v = metrics_interval(share[i], n, 0.95);

		print_message("# policy %zu of %s: %.4f [%.4f, %.4f] of the optimum, %zu instances\n", i + 1,
			      name[0], v.mean, v.low, v.high, n);
		if (i == 0)
			ours = v.mean;
	}
	assert_int_equal(bounds, 0); /* every optimum is exact */
	if (!sanitized)
		assert_true(ours >= LEAST);
}
