/* The bars of the replay: policies side by side in the world of the committed profile (two cores, real
 * MNIST), where what happens is drawn from the replication that models have not seen, each replication in
 * turn.
 *
 * The jobs: 1,000 Poisson arrivals at 0.8 of the machine (1.2 core-seconds a job alone, the mean of the
 * profile), both networks, 1, 2 or 4 cpus; limits as in the Courier paper, Normal(300, 100) s where its
 * mean run takes 298.7 s, so Normal(2.2, 0.73) s where the profile's takes 2.19 s; the two cores hand out 4
 * slots, as in configs/demo.json. 20 replications; a sanitized run uses two and checks nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "tests/unit/sim/compare_bed.h"

#define TRACE                                                                                                \
	"gen:poisson,jobs=1000,load=0.8,work=1.2,cores=2,cpus=1|2|4,network=lenet5|simplenet,slo=normal:2."  \
	"2:0.73"
#define WORLD "measured:configs/profiles/two-cores/runs.csv"
#define REPLICATIONS 20
#define CONFIDENCE 0.9

static struct compare_result *compare(const char *policies, const char *drift, bool adapt, bool keep)
{
	static const struct cluster two_cores = {
		.cores = 2.0, .slots = 4, .nodes = 1, .memory_mb = INFINITY
	};
	struct compare_params p = {
		.trace = { .spec = TRACE },
		.world = { .spec = WORLD, .given = &two_cores },
		.replications = sanitized() ? 2 : REPLICATIONS,
		.settings = { .confidence = CONFIDENCE, .adapt = adapt },
		.drift = drift,
		.keep_outcomes = keep,
	};

	return compare_bed_run(p, policies);
}

static double mean_of(const struct compare_result *r, const char *name, enum metric m)
{
	for (size_t i = 0; i < r->n_policies; i++)
		if (!strcmp(r->policy[i].policy.name, name))
			return r->policy[i].metric[m].mean;
	fail_msg("no policy %s", name);
	return NAN;
}

TEST(test_postrider_keeps_its_promises_and_is_nearer_to_the_oracle_than_any_baseline)
{
	static const char *const baseline[] = { "courier",    "naive",    "boost",
						"boost-full", "queueing", "fixed:128" };
	struct compare_result *r =
		compare("postrider,courier,naive,boost,boost-full,queueing,fixed:128,greedy-oracle", NULL,
			true, false);
	double oracle = mean_of(r, "greedy-oracle", METRIC_ACCURACY_ZERO);
	double gap = oracle - mean_of(r, "postrider", METRIC_ACCURACY_ZERO);

	print_message("# %-10s %8s %8s %8s %9s %9s %8s %8s\n", "policy", "promised", "kept", "of all",
		      "of oracle", "accuracy0", "gap", "coverage");
	for (size_t i = 0; i < r->n_policies; i++) {
		const struct interval *m = r->policy[i].metric;

		print_message("# %-10s %8.1f %8.4f %8.4f %9.4f %9.4f %8.4f %8.4f\n", r->policy[i].policy.name,
			      m[METRIC_PROMISED].mean, m[METRIC_ATTAINMENT].mean,
			      m[METRIC_ATTAINMENT_ALL].mean, m[METRIC_ATTAINMENT_ORACLE].mean,
			      m[METRIC_ACCURACY_ZERO].mean, oracle - m[METRIC_ACCURACY_ZERO].mean,
			      m[METRIC_COVERAGE].mean);
	}
	if (!sanitized()) {
		assert_true(mean_of(r, "postrider", METRIC_ATTAINMENT) >= CONFIDENCE);
		assert_true(mean_of(r, "postrider", METRIC_ATTAINMENT_ORACLE) >= 0.9);
		assert_true(gap <= 0.5 * (oracle - mean_of(r, "courier", METRIC_ACCURACY_ZERO)));
		for (size_t i = 0; i < sizeof baseline / sizeof *baseline; i++)
			assert_true(mean_of(r, "postrider", METRIC_ACCURACY_ZERO) >
				    mean_of(r, baseline[i], METRIC_ACCURACY_ZERO));
		assert_true(mean_of(r, "greedy-oracle", METRIC_ATTAINMENT) == 1.0);
	}
	compare_free(r);
}

/* ---- drift ---- */

struct kept {
	double promised, kept;
};

/* Of the jobs that come from `from` to `to`, counted from the drift on, by the order of arrival. */
static double kept_between(const struct compare_result *r, long from, long to)
{
	struct kept k = { 0 };

	for (size_t rep = 0; rep < r->replications; rep++) {
		const struct trace *t = r->trace[rep];
		int64_t first_ns = t->job[0].arrival_ns;
		int64_t middle_ns = first_ns + (t->job[t->n_jobs - 1].arrival_ns - first_ns) / 2;
		long middle = 0;

		while (t->job[middle].arrival_ns < middle_ns)
			middle++;
		for (long i = middle + from; i < middle + to && i < (long)t->n_jobs; i++) {
			const struct outcome *o = &r->policy[0].run[rep].outcome[i];

			k.promised += o->promised;
			k.kept += o->promised && o->state == OUTCOME_MET;
		}
	}
	return k.kept / k.promised;
}

TEST(test_attainment_recovers_from_a_slower_machine_thanks_to_adaptive_bounds)
{
	double before[2], at_once[2], later[2];

	for (int adapt = 0; adapt < 2; adapt++) {
		struct compare_result *r = compare("postrider", "20%@50%", adapt, true);

		before[adapt] = kept_between(r, -250, 0);
		at_once[adapt] = kept_between(r, 0, 50);
		later[adapt] = kept_between(r, 200, 500);
		print_message("# kept of promised, a machine that takes 20 %% longer from the middle on, %s: "
			      "before %.4f, the "
			      "next 50 jobs %.4f, after 200 jobs %.4f\n",
			      adapt ? "adaptive bounds" : "without", before[adapt], at_once[adapt],
			      later[adapt]);
		compare_free(r);
	}
	if (sanitized())
		return;
	assert_true(later[1] >= before[1] - 0.03);
	assert_true(later[0] < before[0] - 0.03);
}
