/* Baselines that only a simulation has: queues with the paper's models, and the best fixed batch. */
#include <math.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/sim/compare_bed.h"
#include "tests/unit/sim/replay_bed.h"

#define WORLD "fluid:configs/worlds/bigdl.json"
#define CLUSTER "cores=48,slots=12,nodes=3"
#define KINDS "cpus=1|2|4|8,samples=60000,epochs=10,batches=128|256|512"

enum { COURIER, FIFO, EDF, WAITS, N_POLICIES };

static struct replay_bed school, bed; /* where the models come from; the replay at hand */
static struct replay_result run[N_POLICIES];

static int train_first(void **state)
{
	(void)state;
	replay_bed_open(&school, "gen:poisson,jobs=20,gap=20,slo=uniform:100:900," KINDS, WORLD, CLUSTER,
			"courier,fifo,edf,courier-waits");
	return 0;
}

static int leave_school(void **state)
{
	(void)state;
	replay_bed_close(&school);
	return 0;
}

TEST_GROUP(train_first, leave_school);

static void play(const char *trace)
{
	bed = (struct replay_bed){ 0 };
	replay_bed_beside(&bed, trace, WORLD, CLUSTER, &school);
	for (size_t i = 0; i < N_POLICIES; i++)
		run[i] = replay_bed_run(&bed, i, 7);
}

static void put_away(void)
{
	for (size_t i = 0; i < N_POLICIES; i++)
		replay_result_release(&run[i]);
	replay_bed_close(&bed);
}

static int64_t deadline_ns(size_t i)
{
	return bed.trace->job[i].arrival_ns + (int64_t)(1e9 * bed.trace->job[i].slo_s);
}

TEST(test_queues_start_by_arrival_or_by_deadline_and_nobody_passes)
{
	size_t waits = 0, passed = 0;

	play("gen:poisson,jobs=60,gap=20,slo=uniform:100:900," KINDS);
	for (size_t i = 1; i < bed.trace->n_jobs; i++)
		assert_true(run[FIFO].outcome[i].start_ns >= run[FIFO].outcome[i - 1].start_ns);
	for (size_t i = 0; i < bed.trace->n_jobs; i++)
		for (size_t k = 0; k < bed.trace->n_jobs; k++) {
			int64_t start_ns = run[EDF].outcome[i].start_ns;

			/* whoever was there when i started, and started later, has a later deadline */
			if (bed.trace->job[k].arrival_ns < start_ns &&
			    run[EDF].outcome[k].start_ns > start_ns) {
				assert_true(deadline_ns(k) >= deadline_ns(i));
				waits++;
				passed += k < i;
			}
		}
	assert_true(waits > 20 && passed > 0); /* there was a queue, and deadlines changed its order */
	assert_false(run[FIFO].outcome[0].promised || run[EDF].outcome[0].promised);
	put_away();
}

TEST(test_courier_with_waits_refuses_what_the_queue_makes_late)
{
	size_t rejected = 0, met[2] = { 0 };

	play("gen:poisson,jobs=150,gap=20,slo=uniform:100:600," KINDS);
	for (size_t i = 0; i < bed.trace->n_jobs; i++) {
		const struct outcome *o = &run[WAITS].outcome[i];

		rejected += o->state == OUTCOME_REJECTED;
		met[0] += run[FIFO].outcome[i].state == OUTCOME_MET;
		met[1] += o->state == OUTCOME_MET;
		if (o->state != OUTCOME_REJECTED) {
			assert_true(o->promised && o->promised_s <= bed.trace->job[i].slo_s + 1e-9);
			if (o->start_ns > bed.trace->job[i].arrival_ns) /* and a wait was foreseen */
				assert_true(o->promised_s > 0.0);
		}
	}
	assert_true(rejected > 10 && met[1] > met[0]);
	put_away();
}

TEST(test_on_an_idle_machine_they_choose_as_courier_does)
{
	play("gen:poisson,jobs=20,gap=5000,slo=uniform:200:900," KINDS);
	for (size_t i = 0; i < bed.trace->n_jobs; i++)
		for (size_t k = FIFO; k < N_POLICIES && run[COURIER].outcome[i].state != OUTCOME_REJECTED;
		     k++) {
			assert_float_equal(run[k].outcome[i].batch, run[COURIER].outcome[i].batch, 0.0);
			assert_true(run[k].outcome[i].start_ns == bed.trace->job[i].arrival_ns);
		}
	put_away();
}

/* ---- the best fixed batch ---- */

static double best_batch(const char *trace, double *out_value)
{
	struct compare_result *r =
		compare_bed_run((struct compare_params){ .trace = { .spec = trace },
							 .world = { .spec = WORLD },
							 .replications = 2,
							 .settings = { .confidence = 0.9, .adapt = true } },
				"fixed:best,fixed:64,fixed:128,fixed:256,fixed:512");
	double batch;

	batch = r->policy[0].policy.choice.batch;
	for (size_t i = 1; i < r->n_policies; i++) {
		const double *v = r->policy[i].value;

		if (r->policy[i].policy.choice.batch == batch) /* it is that policy, to the bit */
			assert_memory_equal(v, r->policy[0].value, METRICS * sizeof *v);
		assert_true(v[METRIC_ACCURACY_ZERO] <= r->policy[0].value[METRIC_ACCURACY_ZERO]);
	}
	*out_value = r->policy[0].metric[METRIC_ACCURACY_ZERO].mean;
	compare_free(r);
	return batch;
}

TEST(test_best_fixed_batch_is_found_on_a_pilot)
{
	double tight, loose;

	assert_float_equal(
		best_batch("gen:poisson,jobs=200,gap=40,slo=300,cpus=1|2|4|8,samples=60000,epochs=10",
			   &tight),
		512.0, 0.0);
	assert_float_equal(
		best_batch("gen:poisson,jobs=200,gap=40000,slo=30000,cpus=1|2|4|8,samples=60000,epochs=10",
			   &loose),
		64.0, 0.0);
	assert_true(loose > tight);
}
