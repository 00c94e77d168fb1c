/* Jobs that steer, in worlds: an epoch after the other, with the batch that the scheduler says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/sim/replay_bed.h"

#define FLUID "fluid:configs/worlds/bigdl.json"
#define MEASURED "measured:configs/profiles/two-cores/runs.csv"
#define FLUID_JOBS "cpus=1|2|4|8,slo=normal:300:100,work=1000,cores=48,samples=60000,epochs=10"
#define MEASURED_JOBS "work=1.2,cores=2,cpus=1|2|4,network=lenet5|simplenet,slo=normal:2.2:0.73"

static const struct place {
	const char *world, *jobs, *cluster;
} fluid = { FLUID, FLUID_JOBS, NULL }, measured = { MEASURED, MEASURED_JOBS, "cores=2,slots=4" };

static struct replay_result play(const struct place *at, const char *load, const char *more,
				 const struct disturbances *d, const char *policy)
{
	struct replay_bed b = { .disturbances = *d };
	struct replay_result r;
	char trace[400];

	snprintf(trace, sizeof trace, "gen:poisson,jobs=%d,load=%s,%s%s", sanitized() ? 40 : 150, load,
		 at->jobs, more);
	replay_bed_open(&b, trace, at->world, at->cluster, policy);
	r = replay_bed_run(&b, 0, 1);
	replay_bed_close(&b);
	return r;
}

/* Told nothing new, a job that runs by epochs is the same as one that runs as a whole: the same end, but for
 * the rounding of each epoch up to a nanosecond, the same accuracy, and the same failures. Alone on the
 * machine, so that no decision hangs on a nanosecond. */
TEST(test_epochs_that_change_nothing_make_up_the_whole_job)
{
	const struct disturbances d = { .failures = 0.3 };
	const struct place *at[] = { &fluid, &measured };

	for (size_t k = 0; k < 2; k++) {
		struct replay_result whole = play(at[k], "0.001", "", &d, "postrider:steer=no");
		struct replay_result parts = play(at[k], "0.001", ",steer=1", &d, "postrider:steer=no");
		size_t ran = 0, failed = 0;

		for (size_t i = 0; i < whole.n; i++) {
			const struct outcome *a = &whole.outcome[i], *b = &parts.outcome[i];

			assert_int_equal(a->state, b->state);
			ran += replay_bed_ran(a);
			failed += a->state == OUTCOME_FAILED;
			if (!replay_bed_ran(a))
				continue;
			assert_true(a->batch == b->batch);
			assert_true(llabs(a->end_ns - b->end_ns) < 20);
			assert_true(a->state == OUTCOME_FAILED ? isnan(b->accuracy)
							       : fabs(a->accuracy - b->accuracy) < 1e-9);
			assert_true(fabs(a->processes - b->processes) < 1e-6);
		}
		assert_true(ran > whole.n / 2 && failed > ran / 6);
		replay_result_release(&whole);
		replay_result_release(&parts);
	}
}

struct sums {
	double accuracy, met, promised, broken;
};

static struct sums sum_of(const struct replay_result *r)
{
	struct sums s = { 0 };

	for (size_t i = 0; i < r->n; i++) {
		const struct outcome *o = &r->outcome[i];

		s.met += o->state == OUTCOME_MET;
		s.accuracy += o->state == OUTCOME_MET ? o->accuracy : 0.0;
		s.promised += o->promised;
		s.broken += o->promised && o->state != OUTCOME_MET;
	}
	return s;
}

/* The machine is slower by 60 % from half of the time on, which no model knows. */
TEST(test_jobs_that_steer_keep_more_promises_on_a_machine_that_has_become_slow)
{
	const struct place *at[] = { &fluid, &measured };

	for (size_t k = 0; k < 2; k++) {
		const struct disturbances d = { .drift = 0.6, .drift_at_s = k ? 60 : 2000 };
		struct replay_result r = play(at[k], "0.3", ",steer=1", &d, "postrider:steer=no"), s;
		struct sums without = sum_of(&r), with;

		s = play(at[k], "0.3", ",steer=1", &d, "postrider");
		with = sum_of(&s);
		printf("%s: kept %.3f steered, %.3f not; accuracy %.3f and %.3f\n", at[k]->world,
		       1 - with.broken / with.promised, 1 - without.broken / without.promised,
		       with.accuracy / (double)s.n, without.accuracy / (double)r.n);
		if (!sanitized())
			assert_true(with.broken / with.promised < without.broken / without.promised &&
				    with.accuracy > without.accuracy);
		replay_result_release(&r);
		replay_result_release(&s);
	}
}

/* The fluid world counts iterations: 4 epochs at 64 and 6 at 256 are as 5.5 at 64. */
TEST(test_a_mixed_run_is_as_accurate_as_the_world_says)
{
	struct world_stage stage[] = { { 64, 4 }, { 256, 6 } };
	struct replay_bed b = { 0 };
	struct world_run *r;
	struct world_job j = { .id = 1, .batch = 64, .epochs = NAN };
	double mixed, as, small, large;

	replay_bed_open(&b, "gen:poisson,jobs=3,load=0.3," FLUID_JOBS, FLUID, NULL, "fixed:64");
	j.draws = draws_of(world_disturbances(b.world), 1, 1);
	assert_int_equal(world_run_new(b.world, 0, &r, NULL), 0);
	assert_int_equal(world_run_mixed(r, &j, stage, 2, &mixed, NULL), 0);
	j.epochs = 5.5;
	assert_int_equal(world_run_accuracy(r, &j, &as, NULL), 0);
	assert_true(fabs(mixed - as) < 1e-4); /* iterations are whole numbers */
	world_run_free(r);
	replay_bed_close(&b);
	b = (struct replay_bed){ 0 };
	replay_bed_open(&b, "gen:poisson,jobs=3,load=0.3," MEASURED_JOBS, MEASURED, "cores=2,slots=4",
			"fixed:64");
	j.draws = draws_of(world_disturbances(b.world), 1, 1);
	j.epochs = NAN;
	assert_int_equal(world_run_new(b.world, 0, &r, NULL), 0);
	assert_int_equal(world_run_mixed(r, &j, stage, 2, &mixed, NULL), 0);
	assert_int_equal(world_run_mixed(r, &j, stage, 1, &small, NULL), 0);
	assert_int_equal(world_run_mixed(r, &j, stage + 1, 1, &large, NULL), 0);
	assert_true(mixed > large && mixed < small);
	world_run_free(r);
	replay_bed_close(&b);
}
