/* What must hold in every replay, whatever the policy: claims about time, capacity, work and chance, checked
 * on the outcomes alone, against what the world and the scheduler say of themselves. */
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "common/io.h"
#include "common/rng.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/sim/replay_bed.h"

#define TRACE "gen:poisson,jobs=600,rate=1.2,cpus=1|2|4,network=lenet5|simplenet,slo=lognormal:5:0.6"
#define POLICIES "postrider,courier,naive,greedy-oracle,postrider:chance=0.1"

static struct replay_bed bed;

static int open_bed(void **state)
{
	(void)state;
	replay_bed_open(&bed, TRACE, "fluid", "cores=2,slots=6", POLICIES);
	return 0;
}

static int close_bed(void **state)
{
	(void)state;
	replay_bed_close(&bed);
	return 0;
}

TEST_GROUP(open_bed, close_bed);

static uint32_t cpus_of(size_t job)
{
	return bed.trace->kind[bed.trace->job[job].kind].cpus;
}

TEST(test_no_job_runs_before_it_arrives_and_every_one_that_was_taken_ends)
{
	for (size_t p = 0; p < bed.n_policies; p++) {
		struct replay_result r = replay_bed_run(&bed, p, 1);
		size_t taken = 0;

		for (size_t i = 0; i < r.n; i++) {
			const struct outcome *o = &r.outcome[i];

			if (!replay_bed_ran(o)) {
				assert_true(o->start_ns == 0 && o->end_ns == 0 && isnan(o->accuracy));
				continue;
			}
			taken++;
			assert_true(o->start_ns >= bed.trace->job[i].arrival_ns);
			assert_true(o->end_ns > o->start_ns);
			assert_true(o->batch > 0.0);
			if (o->state == OUTCOME_DROPPED) /* it was stopped */
				assert_true(isnan(o->accuracy));
			else
				assert_true(o->accuracy >= 0.0 && o->accuracy <= 1.0);
			assert_int_equal(o->state == OUTCOME_MET,
					 1e-9 * (double)(o->end_ns - bed.trace->job[i].arrival_ns) <=
						 bed.trace->job[i].slo_s);
		}
		assert_true(taken > r.n / 10);
		replay_result_release(&r);
	}
}

TEST(test_chances_are_taken_beside_promises)
{
	size_t by_chance = 0, met = 0, promised = 0, kept = 0;
	struct replay_bed b = { 0 };

	/* random times, and limits of which many are just missed */
	replay_bed_open(
		&b, "gen:poisson,jobs=400,rate=0.5,cpus=1|2,network=lenet5|simplenet,slo=lognormal:0.8:0.6",
		"measured:configs/profiles/two-cores/runs.csv", "cores=2,slots=4", "postrider:chance=0.1");
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct replay_result r = replay_bed_run(&b, 0, seed);

		assert_true(r.chances);
		for (size_t i = 0; i < r.n; i++) {
			const struct outcome *o = &r.outcome[i];

			assert_false(o->by_chance && (o->promised || o->state == OUTCOME_REJECTED));
			assert_true(o->by_chance || o->state != OUTCOME_DROPPED);
			by_chance += o->by_chance;
			met += o->by_chance && o->state == OUTCOME_MET;
			promised += o->promised;
			kept += o->promised && o->state == OUTCOME_MET;
		}
		replay_result_release(&r);
	}
	replay_bed_close(&b);
	print_message("%zu by chance: %zu met; %zu promised: %zu kept\n", by_chance, met, promised, kept);
	assert_true(by_chance > 4 && met > 0 && met < by_chance && kept > promised * 9 / 10);
}

/* A job's own chance counts as a policy's does, and before it. */
TEST(test_jobs_may_ask_for_a_chance_themselves)
{
	struct replay_bed b = { 0 };
	struct replay_result asked, by_policy, never;
	size_t by_chance = 0;

	replay_bed_open(
		&b, "gen:poisson,jobs=300,rate=0.5,cpus=1|2,network=lenet5|simplenet,slo=lognormal:0.8:0.6",
		"measured:configs/profiles/two-cores/runs.csv", "cores=2,slots=4",
		"postrider:chance=0.1,postrider,postrider:chance=0.9,postrider:chance=no");
	assert_false(replay_takes_chances(&b.policy[1], b.trace));
	by_policy = replay_bed_run(&b, 0, 1);
	for (size_t i = 0; i < b.trace->n_jobs; i++)
		b.trace->job[i].chance = 0.1;
	for (size_t policy = 1; policy < 3; policy++) {
		asked = replay_bed_run(&b, policy, 1);
		assert_true(asked.chances);
		for (size_t i = 0; i < asked.n; i++) {
			assert_int_equal(asked.outcome[i].by_chance, by_policy.outcome[i].by_chance);
			assert_int_equal(asked.outcome[i].end_ns, by_policy.outcome[i].end_ns);
			by_chance += asked.outcome[i].by_chance;
		}
		replay_result_release(&asked);
	}
	never = replay_bed_run(&b, 3, 1);
	assert_false(never.chances);
	for (size_t i = 0; i < never.n; i++)
		assert_false(never.outcome[i].by_chance);
	assert_true(by_chance > 2);
	replay_result_release(&never);
	replay_result_release(&by_policy);
	replay_bed_close(&b);
}

/* On a machine with far too much to do, jobs that are worth more are met more often; under a policy without a
 * price they are not. */
TEST(test_jobs_of_more_value_come_first_where_capacity_has_a_price)
{
	struct replay_bed b = { 0 };
	double share[2];

	replay_bed_open(&b,
			"gen:poisson,jobs=400,load=1.5,work=1.2,cores=2,cpus=1|2,network=lenet5|simplenet,"
			"slo=lognormal:2:0.5,value=1|8",
			"measured:configs/profiles/two-cores/runs.csv", "cores=2,slots=4",
			"postrider:chance=0.3,greedy");
	for (size_t p = 0; p < 2; p++) {
		struct replay_result r = replay_bed_run(&b, p, 1);
		double met[2] = { 0 }, n[2] = { 0 };

		for (size_t i = 0; i < r.n; i++) {
			bool dear = b.trace->job[i].value == 8.0;

			n[dear]++;
			met[dear] += r.outcome[i].state == OUTCOME_MET;
		}
		share[p] = met[1] / n[1] - met[0] / n[0];
		print_message("%s: met %.3f of value 8, %.3f of value 1\n", b.policy[p].name, met[1] / n[1],
			      met[0] / n[0]);
		replay_result_release(&r);
	}
	replay_bed_close(&b);
	assert_true(share[0] > 0.1 && fabs(share[1]) < 0.1);
}

TEST(test_capacity_is_never_exceeded)
{
	for (size_t p = 0; p < bed.n_policies; p++) {
		struct replay_result r = replay_bed_run(&bed, p, 2);
		size_t n, most = 0, running = 0;
		struct moment *m = replay_bed_moments(&r, &n);
		long used = 0;

		for (size_t i = 0; i < n; i++) {
			used += m[i].change * (long)cpus_of(m[i].job);
			running += (size_t)m[i].change;
			most = running > most ? running : most;
			assert_in_range(used, 0, world_cluster(bed.world)->slots);
		}
		assert_int_equal(used, 0);
		assert_int_equal(most, r.most_running);
		free(m);
		replay_result_release(&r);
	}
}

/* The integrals of the processes and of the busy cores over time, from the moments alone, are what the world
 * says. */
TEST(test_work_is_conserved)
{
	double cores = world_cluster(bed.world)->cores;

	for (size_t p = 0; p < bed.n_policies; p++) {
		struct replay_result r = replay_bed_run(&bed, p, 3);
		double busy_s = 0.0, jobs_s = 0.0, run_s = 0.0, met_s = 0.0;
		long used = 0, running = 0;
		size_t n;
		struct moment *m = replay_bed_moments(&r, &n);

		for (size_t i = 0; i < n; i++) {
			double dt = i ? 1e-9 * (double)(m[i].at_ns - m[i - 1].at_ns) : 0.0;

			busy_s += dt * fmin(cores, (double)used);
			jobs_s += dt * (double)running * (double)running;
			used += m[i].change * (long)cpus_of(m[i].job);
			running += m[i].change;
		}
		for (size_t i = 0; i < r.n; i++) {
			double s = 1e-9 * (double)(r.outcome[i].end_ns - r.outcome[i].start_ns);

			if (!replay_bed_ran(&r.outcome[i]))
				continue;
			run_s += s;
			met_s += s * r.outcome[i].njobs;
		}
		/* a process at the disk leaves its core alone: at most so much, and not much less */
		assert_true(r.busy_s <= busy_s * (1.0 + 1e-6) && r.busy_s > 0.8 * busy_s);
		/* ends are rounded up to the nanosecond: 1e-9 s an event of some 1 s */
		assert_true(fabs(met_s / jobs_s - 1.0) <
			    1e-6); /* each of n jobs meets n, for as long as they are n */
		assert_true(run_s > 0.0 && r.busy_s <= cores * r.end_s);
		free(m);
		replay_result_release(&r);
	}
}

/* L = lambda W: jobs counted at random moments against their times in the system. */
TEST(test_little_s_law_holds)
{
	enum { LOOKS = 20000 };
	struct rng rng = rng_stream(9, 9);

	for (size_t p = 0; p < bed.n_policies; p++) {
		struct replay_result r = replay_bed_run(&bed, p, 4);
		double span_ns = 1e9 * r.end_s, in_system_s = 0.0, seen = 0.0, seen2 = 0.0, half;

		for (size_t i = 0; i < r.n; i++)
			if (replay_bed_ran(&r.outcome[i]))
				in_system_s += 1e-9 *
					       (double)(r.outcome[i].end_ns - bed.trace->job[i].arrival_ns);
		for (int k = 0; k < LOOKS; k++) {
			int64_t at_ns = (int64_t)(rng_uniform(&rng) * span_ns);
			int there = 0;

			for (size_t i = 0; i < r.n; i++)
				there += replay_bed_ran(&r.outcome[i]) &&
					 bed.trace->job[i].arrival_ns <= at_ns && at_ns < r.outcome[i].end_ns;
			seen += there;
			seen2 += (double)there * there;
		}
		seen /= LOOKS;
		half = 4.0 * sqrt((seen2 / LOOKS - seen * seen) / LOOKS); /* looks are independent: 4 sigma */
		assert_true(fabs(seen - in_system_s / r.end_s) < half);
		replay_result_release(&r);
	}
}

/* A policy that holds nobody back leaves no slots free for the first that waits, and starts in the order of
 * arrival. */
TEST(test_naive_leaves_nobody_waiting_who_could_run)
{
	struct replay_result r = replay_bed_run(&bed, 2, 5);
	int64_t last_ns = 0;
	size_t n, waits = 0;
	struct moment *m = replay_bed_moments(&r, &n);

	assert_string_equal(bed.policy[2].name, "naive");
	for (size_t i = 0; i < r.n; i++) {
		assert_true(replay_bed_ran(&r.outcome[i]));
		assert_true(r.outcome[i].start_ns >= last_ns);
		last_ns = r.outcome[i].start_ns;
	}
	for (size_t i = 0, first = 0; i < n; i++) { /* between moment i and the next */
		long used = 0;

		if (i + 1 < n && m[i + 1].at_ns == m[i].at_ns)
			continue;
		for (size_t k = 0; k <= i; k++)
			used += m[k].change * (long)cpus_of(m[k].job);
		while (first < r.n && r.outcome[first].start_ns <= m[i].at_ns)
			first++;
		if (first == r.n || bed.trace->job[first].arrival_ns > m[i].at_ns)
			continue;
		waits++;
		assert_true(used + (long)cpus_of(first) > (long)world_cluster(bed.world)->slots);
	}
	assert_true(waits > 0); /* the machine was full at times, or this says nothing */
	free(m);
	replay_result_release(&r);
}

TEST(test_same_seed_gives_same_outcomes_and_another_seed_others)
{
	for (size_t p = 0; p < bed.n_policies; p++) {
		struct replay_result a = replay_bed_run(&bed, p, 6), b = replay_bed_run(&bed, p, 6),
				     c = replay_bed_run(&bed, p, 7);
		bool other = false;

		assert_true(a.end_s == b.end_s && a.busy_s == b.busy_s && a.events == b.events);
		for (size_t i = 0; i < a.n; i++) {
			a.outcome[i].decision_s = b.outcome[i].decision_s = 0.0; /* wall-clock */
			assert_memory_equal(&a.outcome[i].start_ns, &b.outcome[i].start_ns,
					    sizeof a.outcome[i] - offsetof(struct outcome, start_ns));
			assert_int_equal(a.outcome[i].state, b.outcome[i].state);
			other |= c.outcome[i].accuracy != a.outcome[i].accuracy &&
				 replay_bed_ran(&a.outcome[i]) && replay_bed_ran(&c.outcome[i]);
		}
		assert_true(other);
		replay_result_release(&a);
		replay_result_release(&b);
		replay_result_release(&c);
	}
}

/* Common random numbers: with the same batch a job is equally accurate under every policy. */
TEST(test_a_job_has_the_same_draws_under_every_policy)
{
	struct replay_result a = replay_bed_run(&bed, 0, 8), b = replay_bed_run(&bed, 2, 8);
	size_t same = 0;

	for (size_t i = 0; i < a.n; i++) {
		if (!replay_bed_ran(&a.outcome[i]) || !replay_bed_ran(&b.outcome[i]) ||
		    a.outcome[i].batch != b.outcome[i].batch)
			continue;
		assert_true(a.outcome[i].accuracy == b.outcome[i].accuracy);
		same++;
	}
	assert_true(same > 10);
	replay_result_release(&a);
	replay_result_release(&b);
}

TEST(test_oracle_keeps_every_promise_to_the_nanosecond)
{
	struct replay_result r = replay_bed_run(&bed, 3, 9);
	size_t promised = 0;

	assert_true(bed.policy[3].oracle);
	for (size_t i = 0; i < r.n; i++) {
		if (!r.outcome[i].promised)
			continue;
		promised++;
		assert_int_equal(r.outcome[i].state, OUTCOME_MET);
	}
	assert_true(promised > r.n / 4);
	replay_result_release(&r);
}

/* One that was taken by chance does not run beyond its deadline. */
TEST(test_a_job_taken_by_chance_is_stopped_at_its_deadline)
{
	size_t stopped = 0;

	for (uint64_t seed = 20; seed < 30; seed++) {
		struct replay_result r = replay_bed_run(&bed, 4, seed);

		for (size_t i = 0; i < r.n; i++) {
			const struct outcome *o = &r.outcome[i];
			double over_s = 1e-9 * (double)(o->end_ns - bed.trace->job[i].arrival_ns) -
					bed.trace->job[i].slo_s;

			if (!o->by_chance)
				continue;
			assert_int_not_equal(o->state, OUTCOME_MISSED);
			if (o->state != OUTCOME_DROPPED || isnan(o->batch))
				continue;
			assert_true(fabs(over_s) < 1e-6);
			assert_true(isnan(o->accuracy));
			stopped++;
		}
		replay_result_release(&r);
	}
	assert_true(stopped > 0);
}

/* In an overload the price tells which jobs to refuse: the priced oracle breaks no promise either, and gets
 * more accuracy than the greedy one. */
TEST(test_the_priced_oracle_is_ahead_of_the_greedy_one)
{
	struct replay_bed b = { 0 };
	double value[2] = { 0 };

	replay_bed_open(&b,
			"gen:poisson,jobs=150,load=0.9,cpus=1|2|4|8,slo=normal:300:100,work=1000,cores=48,"
			"samples=60000,epochs=10",
			"fluid:configs/worlds/bigdl.json", NULL, "greedy-oracle,priced-oracle");
	for (size_t p = 0; p < 2; p++) {
		struct replay_result r = replay_bed_run(&b, p, 7);

		for (size_t i = 0; i < r.n; i++) {
			assert_true(!r.outcome[i].promised || r.outcome[i].state == OUTCOME_MET);
			value[p] += r.outcome[i].state == OUTCOME_MET ? r.outcome[i].accuracy : 0.0;
		}
		replay_result_release(&r);
	}
	print_message("# accuracy met: greedy %.1f, priced %.1f\n", value[0], value[1]);
	assert_true(value[1] > 1.1 * value[0]);
	replay_bed_close(&b);
}

/* Perfect knowledge is worth something: nobody meets more accuracy than the oracle by more than chance. */
TEST(test_oracle_is_ahead_of_the_others)
{
	double value[5] = { 0 };

	for (size_t p = 0; p < bed.n_policies; p++)
		for (uint64_t seed = 20; seed < 23; seed++) {
			struct replay_result r = replay_bed_run(&bed, p, seed);

			for (size_t i = 0; i < r.n; i++)
				if (r.outcome[i].state == OUTCOME_MET)
					value[p] += r.outcome[i].accuracy;
			replay_result_release(&r);
		}
	for (size_t p = 0; p < 5; p++) {
		if (p == 3)
			continue;
		print_message("# accuracy met: %s %.1f, oracle %.1f\n", bed.policy[p].name, value[p],
			      value[3]);
		assert_true(value[p] < value[3]);
	}
}

static const char *file_with(const char *name, const char *text)
{
	const char *path = support_path(support_temp_dir(), name);

	assert_int_equal(io_write_file(path, text, strlen(text), NULL), 0);
	return path;
}

TEST(test_an_end_frees_the_machine_for_an_arrival_of_the_same_moment)
{
	struct replay_bed b = { 0 };
	struct replay_result r;
	char world[600], trace[600];

	snprintf(world, sizeof world, "measured:%s",
		 file_with("table.csv",
			   "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,replication\n"
			   "lenet5,1,1,64,4,12000,10,0.9,1\nlenet5,1,1,128,4,12000,10,0.9,1\n"
			   "lenet5,1,1,64,4,12000,10,0.9,2\nlenet5,1,1,128,4,12000,10,0.9,2\n"));
	snprintf(trace, sizeof trace, "%s",
		 file_with("trace.csv", "arrival_s,network,cpus,epochs,samples\n"
					"0,lenet5,1,4,12000\n10,lenet5,1,4,12000\n"));
	replay_bed_open(&b, trace, world, "cores=1,slots=1", "fixed:64");
	r = replay_bed_run(&b, 0, 1);
	assert_int_equal(r.outcome[1].start_ns, 10000000000);
	assert_int_equal(r.most_queued, 0);
	assert_int_equal(r.most_running, 1);
	replay_result_release(&r);
	replay_bed_close(&b);
}

/* The first job would run for 16 epochs of 10 s; after 35 s one comes that wants 10 of the next 30 s. */
/* Without `later`: as long as it is not known what arrivals do, a job gives back sooner than it has to. */
TEST(test_a_job_with_open_epochs_ends_early_for_one_that_would_miss)
{
	static const char world[] =
		"{\"cluster\":{\"cores\":2,\"slots\":2,\"nodes\":1},\"defaults\":{\"samples\":6400,"
		"\"epochs\":16},"
		"\"batches\":[64],\"levels\":{\"cpus\":[1,2],\"njobs\":[1,2],\"epochs\":[1,2,4,8,16]},"
		"\"costs\":{\"fixed_s\":0.1,\"record_s\":1e-6,\"exponent\":0.9,\"disk_s\":1e-5,"
		"\"disk_record_s\":1e-7},\"factors\":{\"network\":{\"a\":{\"record\":1,\"fixed\":1}}},"
		"\"service\":{\"disk\":\"exponential\"},\"barrier\":false,"
		"\"accuracy\":{\"a\":{\"best\":0.95,\"half_iterations\":20,\"noise\":0.001}}}";
	char at[600], trace[600];

	snprintf(at, sizeof at, "fluid:%s", file_with("world.json", world));
	for (int may = 0; may < 3; may++) { /* it may not; it may; it may under a policy without a price */
		char text[300];
		struct replay_bed b = { 0 };
		struct replay_result r;

		snprintf(text, sizeof text,
			 "arrival_s,slo_s,network,cpus,epochs,samples,may_stop,best_effort\n"
			 "0,,a,2,1..16,6400,%s,\n35,30,a,2,1,6400,,yes\n",
			 may ? "true" : "");
		snprintf(trace, sizeof trace, "%s", file_with("trace.csv", text));
		replay_bed_open(&b, trace, at, NULL, may == 2 ? "greedy" : "postrider:without=later");
		r = replay_bed_run(&b, 0, 1);
		assert_int_equal(r.outcome[0].state, OUTCOME_DONE);
		assert_true(r.outcome[0].accuracy > 0.85);
		if (may == 1) {
			/* not before it has to: after the next epoch but one 15 s are left for 10 */
			assert_true(r.outcome[0].epochs == 5.0);
			assert_true(fabs(1e-9 * (double)r.outcome[0].end_ns - 50.0) < 1.0);
			assert_true(r.outcome[0].accuracy < 0.92);
		} else {
			assert_true(r.outcome[0].epochs > 8.0);
		}
		assert_int_equal(r.outcome[1].state, may == 1 ? OUTCOME_MET : OUTCOME_MISSED);
		replay_result_release(&r);
		replay_bed_close(&b);
	}
}

/* A third of a second has no whole number of nanoseconds. */
TEST(test_no_job_ends_before_its_time)
{
	struct replay_bed b = { 0 };
	struct replay_result r;
	char world[600], trace[600];

	snprintf(world, sizeof world, "measured:%s",
		 file_with("table.csv",
			   "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,replication\n"
			   "lenet5,1,1,64,4,12000,0.3333333333,0.9,1\n"
			   "lenet5,1,1,128,4,12000,0.3333333333,0.9,1\n"
			   "lenet5,1,1,64,4,12000,0.3333333333,0.9,2\n"
			   "lenet5,1,1,128,4,12000,0.3333333333,0.9,2\n"));
	snprintf(trace, sizeof trace, "%s",
		 file_with("trace.csv", "arrival_s,network,cpus,epochs,samples\n0,lenet5,1,4,12000\n"));
	replay_bed_open(&b, trace, world, "cores=1,slots=1", "fixed:64");
	r = replay_bed_run(&b, 0, 1);
	assert_int_equal(r.outcome[0].end_ns, 333333334);
	replay_result_release(&r);
	replay_bed_close(&b);
}

/* Bounds follow what happens, but the run time of a job that failed says nothing about a whole run. */
TEST(test_failed_jobs_teach_nothing)
{
	static const struct disturbances all_fail = { .failures = 1.0 };
	struct world_params w = { .spec = "fluid",
				  .given = world_given(bed.world),
				  .disturbances = &all_fail,
				  .trace = bed.trace };
	struct replay_result r[2];
	struct world *world;
	struct sim_policy policy = bed.policy[0];

	policy.choice.without |= LAYER_LATER; /* which is at work before anything was learnt */
	assert_int_equal(world_open(&w, &world, NULL), 0);
	for (int adapt = 0; adapt < 2; adapt++) {
		struct replay_params p = { .trace = bed.trace,
					   .world = world,
					   .policy = &policy,
					   .model = sim_models_of(bed.models, &bed.policy[0]),
					   .seed = 3,
					   .settings = { .confidence = 0.9, .adapt = adapt } };

		assert_int_equal(replay_run(&p, &r[adapt], NULL), 0);
	}
	for (size_t i = 0; i < r[0].n; i++) {
		const struct outcome *a = &r[0].outcome[i], *b = &r[1].outcome[i];

		assert_int_equal(a->state, b->state);
		assert_int_equal(a->promised, b->promised);
		assert_true(a->run_upper_s == b->run_upper_s ||
			    (isnan(a->run_upper_s) && isnan(b->run_upper_s)));
	}
	replay_result_release(&r[0]);
	replay_result_release(&r[1]);
	world_free(world);
}

/* ---- a model that is off for one kind of jobs ---- */

static const struct model *right;
static size_t cpus_feature;

/* Jobs of one cpu take twice what it says. */
static void half_of_one_cpu(const void *self, const double *x, size_t n_rows, double *out)
{
	right->time.predictor.ops->predict(self, x, n_rows, out);
	for (size_t i = 0; i < n_rows; i++)
		if (x[i * right->time.predictor.n_features + cpus_feature] == 1.0)
			out[i] *= 0.5;
}

/* Jobs have the machine for themselves, so that only the model's error is between what is foreseen and what
 * happens. */
TEST(test_jobs_correct_the_times_of_their_own_family)
{
	struct replay_bed b = { 0 };
	struct replay_result r;
	struct predictor_ops ops;
	struct model wrong;
	struct replay_params p;
	double off[3] = { 0 };
	size_t n[3] = { 0 };

	replay_bed_beside(&b, "gen:poisson,jobs=300,gap=1000,cpus=1|2,slo=lognormal:20:0.2", "fluid",
			  "cores=2,slots=6", &bed);
	right = sim_models_of(b.models, &b.policy[0]);
	while (cpus_feature < right->features->n &&
	       right->features->feature[cpus_feature].source != (size_t)schema_role(right->schema, ROLE_CPUS))
		cpus_feature++;
	assert_true(cpus_feature < right->features->n && right->time.spread);
	ops = *right->time.predictor.ops;
	ops.predict = half_of_one_cpu;
	wrong = *right;
	wrong.time.predictor.ops = &ops;
	p = (struct replay_params){ .trace = b.trace,
				    .world = b.world,
				    .policy = &b.policy[0],
				    .model = &wrong,
				    .seed = 3,
				    .settings = { .confidence = 0.9, .adapt = true } };
	assert_int_equal(replay_run(&p, &r, NULL), 0);
	for (size_t i = r.n / 2; i < r.n; i++) {
		const struct outcome *o = &r.outcome[i];
		uint32_t cpus = b.trace->kind[b.trace->job[i].kind].cpus;

		if (!replay_bed_ran(o))
			continue;
		off[cpus] += log(1e-9 * (double)(o->end_ns - o->start_ns) / o->run_s);
		n[cpus]++;
	}
	for (int k = 1; k <= 2; k++)
		assert_true(n[k] > 50 && fabs(off[k] / (double)n[k]) < 0.05);
	replay_result_release(&r);
	replay_bed_close(&b);
}
