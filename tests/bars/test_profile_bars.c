/* The bars of the committed profile's world, from idle to nearly full: 2, 4 and 8 slots on two cores, loads
 * of 0.1, 0.5, 0.8 and 0.95. The gap to the oracle is at most 0.4 of courier's, or within 0.005 of it where
 * courier is within 0.02 of the oracle already; no baseline is ahead. Courier and the baselines run what they
 * cannot promise; so does `postrider:chance=0.3`, which is judged. `postrider`, which refuses it, is shown,
 * and in how many cells it would do. Jobs, limits and world are those of
 * test_sim_bars.c (without jobs of 4 cpus on 2 slots), 500 jobs and 6 replications each, so that every
 * replication of the profile happens twice. A sanitized run looks at one cell and checks nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/sim/compare_bed.h"

#define POLICIES                                                                                             \
	"postrider:chance=0.3,courier,greedy-oracle,postrider,naive,boost,boost-full,queueing,fifo,edf,"     \
	"courier-waits,fixed:best"
enum { OURS, COURIER, ORACLE, REFUSES };
#define OF_COURIER 0.4
#define THERE 0.02 /* of the oracle: courier is there already */
#define SMALL 0.005

static struct compare_cache *cache;

static struct compare_result *compare(const char *trace, const char *slots, size_t replications)
{
	static const struct cluster two_cores = {
		.cores = 2.0, .slots = 4, .nodes = 1, .memory_mb = INFINITY
	};
	struct compare_params p = {
		.trace = { .spec = trace },
		.world = { .spec = "measured:configs/profiles/two-cores/runs.csv", .given = &two_cores },
		.baseline = COURIER,
		.replications = replications,
		.settings = { .confidence = 0.9, .adapt = true },
		.cache = cache,
	};
	struct err err = { 0 };

	if (what_if_parse(&p.what, slots, &err))
		fail_msg("%s", err.text);
	return compare_bed_run(p, POLICIES);
}

static double value(const struct compare_result *r, size_t policy)
{
	return r->policy[policy].metric[METRIC_ACCURACY_ZERO].mean;
}

/* How many bars of this cell do not hold for one of our policies. */
static int judge(const struct compare_result *r, size_t ours)
{
	double gap = value(r, ORACLE) - value(r, ours), courier = value(r, ORACLE) - value(r, COURIER);
	int broken = 0;

	print_message("#   %s: gap %.4f, courier's %.4f, kept %.3f\n", r->policy[ours].policy.name, gap,
		      courier, r->policy[ours].metric[METRIC_ATTAINMENT].mean);
	for (size_t i = 0; i < r->n_policies; i++)
		if (i != OURS && i != REFUSES && i != ORACLE && value(r, i) > value(r, ours)) {
			print_message("#     does not hold: %s is ahead\n", r->policy[i].policy.name);
			broken++;
		}
	if (gap > OF_COURIER * courier && (courier > THERE || gap > courier + SMALL)) {
		print_message("#     does not hold: the gap is %.2f of courier's\n", gap / courier);
		broken++;
	}
	return broken;
}

static void show(const struct compare_result *r, const char *slots, double load)
{
	print_message("# %s, load %.2f\n", slots, load);
	for (size_t i = 0; i < r->n_policies; i++) {
		const struct interval *m = &r->policy[i].metric[METRIC_ACCURACY_ZERO];

		print_message("#   %-20s %.4f [%.4f, %.4f]\n", r->policy[i].policy.name, m->mean, m->low,
			      m->high);
	}
}

TEST(test_near_the_oracle_at_every_load_and_behind_no_baseline)
{
	static const char *const slots[] = { "cluster.slots=2", "cluster.slots=4", "cluster.slots=8" };
	static const double load[] = { 0.1, 0.5, 0.8, 0.95 };
	const char *san = getenv("SAN");
	bool sanitized = san && *san;
	int broken = 0, refuses = 0;

	assert_int_equal(compare_cache_new(&cache, NULL), 0);
	for (size_t s = 0; s < (sanitized ? 1 : 3); s++)
		for (size_t l = 0; l < (sanitized ? 1 : 4); l++) {
			struct compare_result *r;
			char trace[256];

			snprintf(trace, sizeof trace,
				 "gen:poisson,jobs=%d,load=%g,work=1.2,cores=2,cpus=1|2%s,"
				 "network=lenet5|simplenet,slo=normal:2.2:0.73",
				 sanitized ? 50 : 500, load[l], s ? "|4" : "");
			r = compare(trace, slots[s], sanitized ? 2 : 6);
			show(r, slots[s], load[l]);
			broken += judge(r, OURS);
			refuses += judge(r, REFUSES) == 0;
			compare_free(r);
		}
	compare_cache_free(cache);
	print_message("# without a chance %d cells would hold\n", refuses);
	if (!sanitized)
		assert_int_equal(broken, 0);
}
