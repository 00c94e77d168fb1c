/* The look ahead on scenes made by hand, with the model of hand_model.h: what a candidate does to others, and
 * what is said of candidates when there are too many jobs to play each of them to the end. */
#include "tests/unit/core/sched_bed.h"

#define BY(number) ((struct adapt_who){ .type = (number), .user = 0 }) /* all jobs are of one user */

#define MANY 300 /* seats: with 5 candidates too many to play all */

struct stage {
	struct model *m;
	struct job_values values;
	struct policy_choice policy;
	struct fluid_job running[MANY], queued[MANY];
	struct decide_neighbour neighbour[2 * MANY];
	struct decide_scene scene;
	struct decision d;
};

static void build(struct stage *t, uint32_t slots)
{
	memset(t, 0, sizeof *t);
	hand_disk = 0.0;
	t->m = hand_model(&hand_hybrid);
	t->values = hand_values(t->m);
	t->policy = hand_policy("postrider");
	for (size_t i = 0; i < 2 * MANY; i++)
		t->neighbour[i] =
			(struct decide_neighbour){ .id = 100 + i, .ratio = NAN, .deadline_s = INFINITY };
	t->scene = (struct decide_scene){ .policy = &t->policy,
					  .machine = { .cores = 2, .disk_saturation = 4, .slots = slots },
					  .running = t->running,
					  .queued = t->queued,
					  .neighbour = t->neighbour,
					  .cpus = 2,
					  .most_cpus = slots,
					  .memory_mb = NAN,
					  .memory_mb_per_record = NAN,
					  .memory_limit_mb = INFINITY };
	assert_int_equal(decide_scratch_new(2 * MANY, &t->scene.scratch, NULL), 0);
}

static void strike(struct stage *t)
{
	decide_scratch_free(t->scene.scratch);
	job_values_release(&t->values);
	model_free(t->m);
}

static struct fluid_job work(double work_s, uint32_t cpus)
{
	return (struct fluid_job){ .work_s = work_s, .cpu_share = 1.0, .cpus = cpus };
}

static void run(struct stage *t, double work_s, uint32_t cpus)
{
	t->running[t->scene.n_running++] = work(work_s, cpus);
}

/* Behind the job decided about, which has the first place in the queue unless it starts now. */
static void queue_behind(struct stage *t, size_t n, double work_s)
{
	for (size_t i = 0; i < n; i++)
		t->queued[i + !t->scene.starting] = work(work_s, 1);
	t->scene.n_queued = n;
}

static void ask(struct stage *t, const double *batch, size_t n, double slo_s)
{
	const struct decide_params p = { .model = t->m,
					 .job = &t->values,
					 .candidate = batch,
					 .n_candidates = n,
					 .slo_s = slo_s,
					 .confidence = 0.9,
					 .scene = &t->scene };
	struct err err = { 0 };

	if (decide(&p, &t->d, &err))
		fail_msg("%s", err.text);
}

/* A job of 100 s that is expected in time, while its bound of 120 s is not: its promise is still worth
 * keeping. */
TEST(test_an_expected_end_pushed_past_the_deadline_breaks_the_promise)
{
	struct fluid_job other;
	struct stage t;
	uint64_t breaks;

	build(&t, 4);
	run(&t, 100, 2);
	t.neighbour[0].ratio = 1.2;
	t.neighbour[0].deadline_s = 110;
	t.scene.starting = true;
	other = work(4, 2); /* at half speed for 8 s: it ends after 104 s */
	assert_int_equal(decide_probe(&t.scene, &other, &breaks, NULL, NULL), 0);
	assert_int_equal(breaks, 0);
	other = work(20, 2); /* 120 s */
	assert_int_equal(decide_probe(&t.scene, &other, &breaks, NULL, NULL), 0);
	assert_int_equal(breaks, 100);
	t.neighbour[0].deadline_s = 90; /* already lost: nothing more can be broken */
	assert_int_equal(decide_probe(&t.scene, &other, &breaks, NULL, NULL), 0);
	assert_int_equal(breaks, 0);
	strike(&t);
}

TEST(test_the_bound_that_is_told_lies_between_the_guard_and_the_objective)
{
	static const double batch[] = { 64 };
	const struct candidate *c;
	struct stage t;
	double guard_s;

	build(&t, 4);
	c = &t.d.candidate[0];
	t.scene.starting = true;
	t.scene.later = (struct later_effect){ log(3.0), 0.1 };
	ask(&t, batch, 1, 1e6);
	guard_s = c->guard_s;
	assert_true(c->feasible && c->upper_s > 2.0 * guard_s);
	ask(&t, batch, 1, 1.5 * guard_s); /* it will be promised */
	assert_true(c->feasible && c->guard_s == guard_s);
	assert_true(c->upper_s == 1.5 * guard_s - c->wait_upper_s);
	t.scene.later = (struct later_effect){ 0 };
	ask(&t, batch, 1, 1.5 * guard_s);
	assert_true(c->upper_s == guard_s);
	strike(&t);
}

/* With 60 batches not all are played, and whoever runs at all delays the job with the promise. */
TEST(test_no_objective_is_offered_for_a_candidate_that_was_not_played)
{
	double batch[60];
	struct stage t;
	size_t played = 0;

	for (size_t i = 0; i < 60; i++)
		batch[i] = 32.0 + (double)i;
	build(&t, 64);
	for (int i = 0; i < 30; i++)
		run(&t, 100, 1);
	t.neighbour[0].deadline_s = 1500; /* 30 processes on 2 cores: exactly in time */
	t.scene.starting = true;
	ask(&t, batch, 60, 1.0);
	assert_int_equal(t.d.chosen, -1);
	for (size_t i = 0; i < 60; i++) {
		played += !isnan(t.d.candidate[i].delays_s);
		assert_int_equal(isnan(t.d.candidate[i].delays_s), !t.d.candidate[i].breaks);
	}
	assert_in_range(played, 1, 59);
	assert_true(isnan(t.d.smallest_slo_s)); /* of the others nothing is known for sure */
	t.neighbour[0].deadline_s = INFINITY;
	ask(&t, batch, 60, 1.0);
	assert_true(t.d.smallest_slo_s > 0.0);
	strike(&t);
}

/* The only device is held by one of 30 jobs, of 100 s each on two cores: also candidates that are not played
 * wait for its end. */
TEST(test_a_device_that_is_held_counts_in_the_wait_of_all_candidates)
{
	double batch[60];
	struct stage t;
	size_t played = 0;

	for (size_t i = 0; i < 60; i++)
		batch[i] = 32.0 + (double)i;
	build(&t, 64);
	for (int i = 0; i < 30; i++)
		run(&t, 100, 1);
	t.running[0].devices = 1;
	t.scene.machine.devices = t.scene.most_devices = 1;
	t.scene.device.least = 1;
	ask(&t, batch, 60, 1.0);
	for (size_t i = 0; i < 60; i++) {
		played += !isnan(t.d.candidate[i].delays_s);
		assert_true(fabs(t.d.candidate[i].wait_s - 1500.0) < 1.0);
	}
	assert_in_range(played, 0, 59);
	strike(&t);
}

/* Three processes of others: with the job that runs they are five on two cores, so that it takes 250 s.
 * Approximate times assume the processes of now, with the candidate beside them: seven. The wait is that of
 * the one that was played. */
TEST(test_approximate_times_know_the_other_load)
{
	struct stage t;

	build(&t, 2);
	run(&t, 100, 2);
	queue_behind(&t, MANY - 1, 1e-9);
	t.scene.other_load = 3.0;
	t.scene.indifferent = true;
	ask(&t, NULL, 0, NAN);
	for (size_t i = 0; i < t.d.n_candidates; i++) {
		const struct candidate *c = &t.d.candidate[i];

		near(c->wait_s, 250);
		near(c->wait_upper_s, 300);
		if ((int)i != t.d.chosen) /* that one was played */
			near(c->time_s, 6400.0 / c->decision * 7.0 / 2.0);
	}
	strike(&t);
}

/* A narrow job of 100 s beside a candidate of 12.5 s with both cores: 18.75 s at two thirds of its speed, so
 * it ends after 106.25 s. The jobs that wait take no time, and are so many that plays end early. */
TEST(test_a_short_play_follows_a_promise_that_could_break)
{
	struct stage t;

	build(&t, 64);
	run(&t, 100, 1);
	t.neighbour[0].deadline_s = 106;
	t.scene.starting = true;
	queue_behind(&t, MANY - 1, 0.0);
	ask(&t, &b512, 1, 1000); /* one candidate: all is played */
	assert_int_equal(t.d.candidate[0].breaks, 100);
	ask(&t, NULL, 0, 1000);
	assert_int_equal(t.d.chosen, -1);
	assert_int_equal(t.d.candidate[4].breaks, 100);
	t.neighbour[0].deadline_s = 107;
	ask(&t, NULL, 0, 1000);
	assert_int_equal(t.d.chosen, 4);
	near(t.d.candidate[4].time_s, 18.75);
	strike(&t);
}

/* The job behind the candidate may not start later; it has no promise. */
TEST(test_a_short_play_follows_a_guarded_job)
{
	struct stage t;

	build(&t, 2);
	run(&t, 100, 2);
	queue_behind(&t, MANY - 1, 1e-9);
	t.queued[1] = work(10, 2);
	t.neighbour[2].guarded = true; /* seats: 0 runs, 1 is the candidate's */
	ask(&t, NULL, 0, 1000);
	assert_int_equal(t.d.chosen, -1);
	assert_int_equal(t.d.candidate[4].breaks, 102);
	t.neighbour[2].guarded = false;
	ask(&t, NULL, 0, 1000);
	assert_int_equal(t.d.chosen, 0); /* (100 + 200) * 1.2 is in time */
	strike(&t);
}

/* Of 100 s and 10 s of work side by side the second ends after 20 s, the first after 110 s. With a candidate
 * of 12.5 s that is 30 s and 122.5 s. */
TEST(test_the_longest_delay_is_told)
{
	struct stage t;

	build(&t, 6);
	run(&t, 100, 2);
	run(&t, 10, 2);
	t.scene.starting = true;
	ask(&t, &b512, 1, NAN);
	near(t.d.candidate[0].time_s, 35);
	near(t.d.candidate[0].delays_s, 12.5);
	strike(&t);
}

TEST(test_the_fastest_is_played_when_none_is_in_time)
{
	struct stage t;

	build(&t, 4);
	t.scene.starting = true;
	queue_behind(&t, MANY - 1, 0.0);
	ask(&t, NULL, 0, 1);
	assert_int_equal(t.d.chosen, -1);
	near(t.d.smallest_slo_s, 15); /* 12.5 s at their bound */
	assert_true(isnan(t.d.candidate[0].delays_s));
	strike(&t);
}

static void same_numbers(const struct candidate *a, const struct candidate *b)
{
	const double pair[][2] = { { a->time_s, b->time_s }, { a->guard_s, b->guard_s },
				   { a->wait_s, b->wait_s }, { a->wait_upper_s, b->wait_upper_s },
				   { a->chance, b->chance }, { a->delays_s, b->delays_s } };

	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
		if (!(fabs(pair[i][0] - pair[i][1]) <= 1e-8 * fabs(pair[i][1])))
			fail_msg("batch %g, number %zu: %.12g, alone %.12g", a->decision, i, pair[i][0],
				 pair[i][1]);
	assert_int_equal(a->breaks, b->breaks);
	assert_int_equal(a->feasible, b->feasible);
}

/* Limits that are just missed, so that several candidates look in time and are not. The numbers of those
 * that are found from the play of another are the numbers of an own play; with a promise in question too. */
TEST(test_numbers_from_the_play_of_another_candidate_are_those_of_an_own_play)
{
	struct rng r = rng_stream(23, 0);
	size_t several[2] = { 0 }, broken = 0;

	for (int k = 0; k < 400; k++) {
		bool promise = k % 2;
		struct decision all;
		struct stage t;
		double slo_s;
		size_t known = 0;

		build(&t, MANY + rng_below(&r, 4));
		t.scene.starting = true;
		t.scene.cpus = 20; /* it slows the others down, and they leave later than without it */
		for (int i = 0; i < MANY - 20; i++)
			run(&t, rng_uniform(&r), 1);
		queue_behind(&t, 10, 3.0);
		ask(&t, &b512, 1, 1e6);
		/* the promise can be in question, and it breaks in some of the scenes */
		t.neighbour[1].deadline_s = promise ? (0.5 + rng_uniform(&r)) * t.running[1].work_s * MANY / 2
						    : INFINITY;
		slo_s = (1.0 + rng_uniform(&r)) * (t.d.candidate[0].wait_upper_s + t.d.candidate[0].guard_s);
		ask(&t, NULL, 0, slo_s);
		all = t.d;
		for (size_t i = 0; i < all.n_candidates; i++) {
			const struct candidate *c = &all.candidate[i];
			const double same[] = { c->decision, c->decision, c->decision, c->decision };

			if (isnan(c->delays_s))
				continue;
			ask(&t, same, 4, slo_s); /* the first of them is played */
			same_numbers(c, &t.d.candidate[0]);
			known++;
			broken += c->breaks != 0;
		}
		several[promise] += known > 1;
		strike(&t);
	}
	assert_true(several[0] > 20 && several[1] > 20 && broken > 20);
}

/* The waits of candidates that are not played: for the end of another job, or for slots. */
TEST(test_approximate_waits_know_ends_and_slots)
{
	for (int slots = 0; slots < 2; slots++) {
		struct stage t;

		build(&t, slots ? 3 : 64);
		run(&t, 100, 2);
		t.neighbour[0].deadline_s = 1e6;
		t.scene.after = slots ? 0 : 1;
		queue_behind(&t, MANY - 1, 0.0);
		ask(&t, NULL, 0, 1e6);
		assert_int_equal(t.d.chosen, 0);
		assert_true(isnan(t.d.candidate[3].delays_s));
		near(t.d.candidate[3].wait_s, 100);
		strike(&t);
	}
}

/* A model whose times grow faster with the load than the play's: T = w P / 2 (1 + 0.05 (P - 2)). Beside a job
 * of 100 s, w = 100: alone the load looks like P = 3, so the work is 105. Played with it the candidate meets
 * P = 2 + 400 / 205, and its work is 100 + 5 * 400 / 205. Played with that it ends so much after the 200 s
 * that both need for 100 each. */
static void steeper(const void *self, const double *x, size_t n_rows, double *out)
{
	hand_hybrid.predict(self, x, n_rows, out);
	for (size_t i = 0; i < n_rows; i++)
		out[i] *= 1.0 + 0.05 * (x[i * HAND_FEATURES + HAND_PROCESSES] - 2.0);
}

TEST(test_a_second_play_has_the_work_that_the_first_one_showed)
{
	struct predictor_ops ops = hand_hybrid;
	struct stage t;

	build(&t, 4);
	ops.predict = steeper;
	t.m->time.predictor.ops = &ops;
	run(&t, 100, 2);
	t.scene.starting = true;
	ask(&t, &b64, 1, NAN);
	near(t.d.candidate[0].work_s, 100.0 + 5.0 * 400.0 / 205.0);
	near(t.d.candidate[0].time_s, 200.0 + 5.0 * 400.0 / 205.0);
	t.m->time.predictor.ops = &hand_hybrid;
	strike(&t);
}

/* Jobs take half as long again as the model says. */
TEST(test_approximate_times_are_corrected_like_the_others)
{
	struct adapt *a = NULL;
	struct stage t;

	assert_int_equal(adapt_new(0, &a, NULL), 0);
	for (int i = 0; i < 200; i++)
		assert_true(adapt_observe(a, BY(0), 100, 150 * exp(i % 2 ? 0.01 : -0.01)));
	build(&t, 2);
	run(&t, 100, 2);
	queue_behind(&t, MANY - 1, 1e-9);
	t.scene.indifferent = true;
	t.scene.adapt = a;
	ask(&t, NULL, 0, NAN);
	assert_int_equal(t.d.chosen, 0);
	near(t.d.candidate[4].model_s, 25); /* not played: four processes, as now */
	near(t.d.candidate[4].time_s, 25 * adapt_bias(a, BY(0)));
	assert_true(adapt_bias(a, BY(0)) > 1.45);
	/* with a play without it, what is not played keeps the numbers of the first pass over all */
	t.scene.indifferent = false;
	ask(&t, NULL, 0, 1e6);
	assert_int_equal(t.d.chosen, 0);
	assert_true(isnan(t.d.candidate[4].delays_s) && t.d.candidate[4].model_s > 0.0);
	near(t.d.candidate[4].time_s, t.d.candidate[4].model_s * adapt_bias(a, BY(0)));
	strike(&t);
	adapt_free(a);
}

/* A price that no candidate is worth. */
TEST(test_a_price_turns_a_job_away_only_where_it_could_wait_for_something)
{
	static const struct {
		bool starting, by_chance, beside, queued, objective, taken;
	} c[] = {
		{ .objective = true, .taken = true }, /* it arrives at an idle machine */
		{ .beside = true, .objective = true },
		{ .queued = true, .objective = true },
		{ .beside = true, .taken = true }, /* without a limit nobody is turned away */
		{ .starting = true, .beside = true, .objective = true, .taken = true }, /* it was promised */
		{ .starting = true, .by_chance = true, .beside = true, .objective = true },
		{ .starting = true, .by_chance = true, .objective = true, .taken = true },
	};

	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct stage t;

		build(&t, 4);
		t.scene.price = 10.0;
		t.scene.value = 1.0;
		t.scene.starting = c[i].starting;
		t.scene.by_chance = c[i].by_chance;
		if (c[i].beside)
			run(&t, 10, 1);
		queue_behind(&t, c[i].queued, 10);
		ask(&t, &b64, 1, c[i].objective ? 1000 : NAN);
		assert_true(t.d.candidate[0].cost > 100.0);
		if ((t.d.chosen >= 0) != c[i].taken)
			fail_msg("case %zu", i);
		strike(&t);
	}
}
