/* Jobs that leave their epochs open: all pairs of batch and epochs are candidates. */
#include "tests/unit/core/sched_bed.h"

enum { CPUS = 1, NJOBS, BATCH, EPOCHS, PROCESSES, FEATURES };

/* 640 / batch seconds an epoch alone on two cores. The accuracy rises with the epochs, but for a dip at 4,
 * and falls with the batch. */
static void epochs_time(const void *self, const double *x, size_t n_rows, double *out)
{
	(void)self;
	for (size_t i = 0; i < n_rows; i++, x += FEATURES)
		out[i] = x[EPOCHS] * 640.0 / x[BATCH] * fmax(2.0, x[PROCESSES]) / fmax(2.0, x[CPUS]);
}

static void epochs_accuracy(const void *self, const double *x, size_t n_rows, double *out)
{
	(void)self;
	for (size_t i = 0; i < n_rows; i++, x += FEATURES)
		out[i] = 1.0 - 0.5 / x[EPOCHS] - x[BATCH] / 10000.0 - (x[EPOCHS] == 4.0 ? 0.1 : 0.0);
}

static struct predictor_ops time_ops, accuracy_ops;

static void make_open_by(struct bed *b, const char *policy, uint32_t slots)
{
	static const char text[] = "network,cpus,njobs,batch,epochs,time_s,accuracy\n"
				   "a,1,1,32,1,1,1\na,8,9,1024,16,1,1\n";
	struct sched_params p;
	struct csv *csv;
	struct table *table;

	make(b, policy, slots);
	time_ops = hand_hybrid;
	time_ops.predict = epochs_time;
	accuracy_ops = hand_forest;
	accuracy_ops.predict = epochs_accuracy;
	features_free(b->m->features);
	assert_int_equal(csv_parse("t", text, strlen(text), &csv, NULL), 0);
	assert_int_equal(table_read(csv, b->m->schema, true, &table, NULL), 0);
	assert_int_equal(features_fit(table, &b->m->features, NULL), 0);
	assert_int_equal(b->m->features->n, FEATURES);
	table_free(table);
	csv_free(csv);
	b->m->time.predictor = (struct predictor){ .ops = &time_ops, .n_features = FEATURES };
	b->m->accuracy.predictor = (struct predictor){ .ops = &accuracy_ops, .n_features = FEATURES };
	assert_int_equal(job_values_parse(&b->values, b->m->schema, "epochs=3", NULL), 0);
	p = params(b, policy, slots);
	p.max_jobs = 10;
	remake(b, &p);
}

static void make_open(struct bed *b, uint32_t slots)
{
	make_open_by(b, "postrider", slots);
}

static const double two[] = { 32, 64 }, some[] = { 1, 2, 3, 4, 5, 6, 8 };

static struct sched_request open_job(const struct bed *b, uint64_t id, double slo_s)
{
	struct sched_request r = job(b, id, slo_s);

	r.batch = two;
	r.n_batches = 2;
	r.epochs = some;
	r.n_epochs = 7;
	return r;
}

TEST(test_all_pairs_are_candidates_and_the_most_accurate_in_time_is_taken)
{
	struct bed b;
	struct sched_request r;

	make_open(&b, 2);
	r = open_job(&b, 1, 1.2 * 60);
	submit(&b, 0, &r);
	assert_int_equal(b.verdict, SCHED_PROMISED);
	assert_int_equal(b.d.n_candidates, 14);
	for (size_t i = 0; i < 14; i++) {
		assert_true(b.d.candidate[i].decision == two[i / 7] &&
			    b.d.candidate[i].epochs == some[i % 7]);
		assert_true(fabs(b.d.candidate[i].time_s - 640 / two[i / 7] * some[i % 7]) < 1e-6);
	}
	assert_int_equal(b.d.chosen, 7 + 5); /* 6 epochs at 64: 60 s; 3 at 32 are less accurate */
	r = open_job(&b, 2, NAN);
	r.epochs = NULL; /* the values say 3 */
	submit(&b, 0, &r);
	assert_int_equal(b.d.n_candidates, 2);
	assert_true(isnan(b.d.candidate[0].epochs));
	assert_true(fabs(b.d.candidate[0].time_s - 60) < 1e-6);
	drop(&b);
}

TEST(test_the_accuracy_rises_with_the_epochs)
{
	struct bed b;
	struct sched_request r;

	make_open(&b, 2);
	r = open_job(&b, 1, NAN);
	submit(&b, 0, &r);
	for (size_t i = 0; i < 14; i++)
		if (i % 7)
			assert_true(b.d.candidate[i].accuracy >= b.d.candidate[i - 1].accuracy);
	/* the dip at 4 is shared by its neighbours: 2, 3 and 4 epochs have .7468, .8301 and .7718 */
	assert_true(fabs(b.d.candidate[2].accuracy - (1.0 - 0.5 / 3 + 1.0 - 0.125 - 0.1) / 2 + 0.0032) <
		    1e-9);
	assert_true(b.d.candidate[2].accuracy == b.d.candidate[3].accuracy);
	drop(&b);
}

TEST(test_a_longer_wait_moves_the_choice_to_a_faster_pair)
{
	const double one[] = { 64 };
	struct bed b;
	struct sched_request r;
	uint64_t id;

	make_open(&b, 2);
	r = open_job(&b, 1, NAN);
	r.batch = one;
	r.n_batches = 1;
	r.epochs = some + 6;
	r.n_epochs = 1;
	submit(&b, 0, &r); /* 80 s */
	assert_true(sched_next(b.s, 0, &id, &b.d));
	r = open_job(&b, 2, 1.2 * 140);
	submit(&b, 0, &r);
	assert_int_equal(b.verdict, SCHED_PROMISED);
	assert_int_equal(b.d.chosen, 7 + 5);
	sched_remove(b.s, 120 * S, 1, NULL); /* 40 s later than was thought */
	assert_true(sched_next(b.s, 120 * S, &id, &b.d));
	assert_int_equal(id, 2);
	assert_true(b.d.candidate[b.d.chosen].decision == 64 && b.d.candidate[b.d.chosen].epochs < 6);
	assert_true(b.d.candidate[b.d.chosen].feasible); /* 48 s are left */
	drop(&b);
}

TEST(test_bad_epochs_are_refused)
{
	const double down[] = { 2, 1 }, none[] = { 0, 1 };
	static double many[DECIDE_MAX_CANDIDATES / 2 + 1];
	struct bed b;
	struct sched_request r;

	make_open(&b, 2);
	r = open_job(&b, 1, NAN);
	r.epochs = down;
	r.n_epochs = 2;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	r.epochs = none;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	r.n_epochs = 0;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	for (size_t i = 0; i <= DECIDE_MAX_CANDIDATES / 2; i++)
		many[i] = 1 + (double)i;
	r.epochs = many;
	r.n_epochs = DECIDE_MAX_CANDIDATES / 2 + 1;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	r.n_epochs--;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), 0);
	assert_int_equal(b.d.n_candidates, DECIDE_MAX_CANDIDATES);
	drop(&b);
}

/* So many pairs that not all are played; the one taken is in time, and not far from the best. */
TEST(test_many_pairs_on_a_full_machine_are_tried_sparingly)
{
	static double many[64];
	struct bed b;
	struct sched_request r;
	uint64_t id;

	make_open_by(&b, "greedy", 4);
	for (size_t i = 0; i < 64; i++)
		many[i] = 1 + (double)i;
	for (uint64_t k = 1; k <= 4; k++) {
		r = open_job(&b, k, 1.2 * 400);
		r.cpus = 1;
		r.epochs = many + 9;
		r.n_epochs = 1;
		submit(&b, 0, &r);
		assert_int_equal(b.verdict, SCHED_PROMISED);
		assert_true(sched_next(b.s, 0, &id, &b.d));
	}
	r = open_job(&b, 5, 1.2 * 800);
	r.epochs = many;
	r.n_epochs = 64;
	submit(&b, 0, &r);
	assert_int_equal(b.verdict, SCHED_PROMISED);
	assert_int_equal(b.d.n_candidates, 128);
	assert_true(b.d.candidate[b.d.chosen].feasible && b.d.candidate[b.d.chosen].epochs >= 20);
	drop(&b);
}

TEST(test_a_restored_job_keeps_its_epochs)
{
	struct bed b;
	struct sched_restored r = { .running = true };
	struct sched_estimate e;

	make_open(&b, 2);
	r.request = open_job(&b, 1, NAN);
	r.taken = (struct candidate){ .decision = 64, .epochs = 5, .work_s = NAN };
	assert_int_equal(sched_restore(b.s, &r, NULL), 0);
	assert_int_equal(sched_estimate(b.s, 0, 1, &e, NULL), 0);
	assert_true(fabs(e.end_s - 50) < 1e-9);
	drop(&b);
}

/* ---- time that is given back ---- */

/* Job 1 runs on all slots: 8 epochs of 10 s at batch 64, without a limit. Job 2 has come after 5 s
 * and wants 30 s. */
static void make_giver(struct bed *b, const char *policy, double value, const double *epochs, size_t n_epochs,
		       double slo_s)
{
	struct sched_request r;
	uint64_t id;

	make_open_by(b, policy, 2);
	r = open_job(b, 1, NAN);
	r.batch = &b64;
	r.n_batches = 1;
	r.epochs = epochs;
	r.n_epochs = n_epochs;
	r.may_stop = true;
	r.value = value;
	submit(b, 0, &r);
	assert_true(sched_next(b->s, 0, &id, &b->d));
	assert_true(b->d.candidate[b->d.chosen].epochs == 8.0);
	if (isnan(slo_s))
		return;
	r = open_job(b, 2, slo_s);
	r.batch = &b64;
	r.n_batches = 1;
	r.epochs = NULL; /* the values say 3 */
	r.best_effort = true;
	submit(b, 5, &r);
	assert_false(sched_next(b->s, 5 * S, &id, &b->d));
}

static uint32_t given(struct bed *b, uint32_t done)
{
	int64_t epoch_ns = 10 * (int64_t)S;

	for (uint32_t k = 1; k <= done; k++)
		sched_progress(b->s, k * epoch_ns, 1, k / 8.0, NULL);
	return sched_gives_back(b->s, done * epoch_ns, 1, done, 8);
}

TEST(test_a_job_with_open_epochs_ends_sooner_for_one_that_would_miss)
{
	struct bed b;

	make_giver(&b, "postrider", 1.0, some, 7, 60);
	assert_int_equal(sched_gives_back(b.s, 5 * S, 1, 0, 8), 0); /* it has no result yet */
	assert_int_equal(given(&b, 2), 2); /* after 3 epochs the other would just be in time, or not */
	assert_int_equal(sched_gives_back(b.s, 20 * S, 2, 2, 8), 0); /* it waits */
	assert_int_equal(sched_gives_back(b.s, 20 * S, 3, 2, 8), 0); /* no such job */
	drop(&b);
}

TEST(test_a_job_keeps_its_time_where_no_job_gains_enough)
{
	static const double from_3[] = { 3, 8 };
	static const struct {
		const char *policy;
		double value, slo_s;
	} kept[] = {
		{ "postrider", 1.0, NAN }, /* none is there */
		{ "postrider", 1.0, 400 }, /* it is in time anyway */
		{ "postrider", 1.0, 6 }, /* nothing helps it */
		{ "postrider", 50.0, 60 }, /* it is worth less than what is lost */
		{ "greedy", 1.0, 60 }, /* no price */
		{ "postrider:without=give-back", 1.0, 60 }, /* left out */
	};
	struct bed b;

	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
		make_giver(&b, kept[i].policy, kept[i].value, some, 7, kept[i].slo_s);
		assert_int_equal(given(&b, 2), 0);
		drop(&b);
	}
	make_giver(&b, "postrider", 1.0, from_3, 2, 75);
	assert_int_equal(given(&b, 2), 3); /* not before what its owner wants at least */
	drop(&b);
}

TEST(test_a_job_that_may_not_stop_gives_nothing_back)
{
	struct bed b;
	struct sched_request r;
	uint64_t id;

	make_open_by(&b, "postrider", 2);
	r = open_job(&b, 1, NAN);
	submit(&b, 0, &r);
	assert_true(sched_next(b.s, 0, &id, &b.d));
	r = open_job(&b, 2, 60);
	r.best_effort = true;
	submit(&b, 0, &r);
	assert_int_equal(sched_gives_back(b.s, 20 * S, 1, 2, 8), 0);
	drop(&b);
}

/* Job 2 takes 30 s and has come after 5 s. After 2 epochs, at 20 s, it is looked at which epoch of 10 s is
 * the last; 4 epochs are no better than 3. */
TEST(test_a_job_gives_back_no_more_than_another_needs)
{
	static const struct {
		double slo_s;
		uint32_t end;
	} c[] = { { 50, 2 }, { 85, 3 }, { 100, 5 }, { 130, 6 } };
	struct bed b;

	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		make_giver(&b, "postrider", 1.0, some, 7, c[i].slo_s);
		assert_int_equal(given(&b, 2), c[i].end);
		drop(&b);
	}
}

static const struct job_values *same_values(void *owner, uint64_t id, uint32_t *out_model)
{
	(void)id;
	*out_model = 0;
	return owner;
}

/* From now on a process-second costs those to come so much. */
static void set_price(struct bed *b, const char *policy)
{
	struct sched_params p = params(b, policy, 2);

	if (sched_use(b->s, 5 * S, &p, same_values, &b->values, &b->err))
		fail_msg("%s", b->err.text);
}

/* Ends 6 epochs sooner on 2 cpus, it frees 120 process-seconds. Of its value of 50 it loses 50 x 0.19. */
TEST(test_capacity_for_those_to_come_is_a_part_of_the_gain)
{
	struct bed b;

	make_giver(&b, "postrider", 50.0, some, 7, 60);
	assert_int_equal(given(&b, 2), 0);
	drop(&b);
	make_giver(&b, "postrider", 50.0, some, 7, 60);
	set_price(&b, "postrider:price=0.2");
	assert_int_equal(given(&b, 2), 2);
	drop(&b);
}

/* Whatever capacity costs: those to come are a guess, and the end is for good. Job 2 has no limit. */
TEST(test_a_job_keeps_its_time_where_nobody_who_is_there_gains)
{
	struct bed b;
	struct sched_request r;

	make_giver(&b, "postrider", 1.0, some, 7, NAN);
	r = open_job(&b, 2, NAN);
	submit(&b, 5, &r);
	set_price(&b, "postrider:price=0.2");
	assert_int_equal(given(&b, 2), 0);
	drop(&b);
}

/* Its own limit is not the business of this rule: sched_should_stop() looks at that. After 40 s it has 2
 * of 8 epochs behind it instead of 4, so that it would be late. */
TEST(test_a_late_job_gives_nothing_back_for_its_own_sake)
{
	struct bed b;
	struct sched_request r;
	uint64_t id;

	make_open_by(&b, "postrider", 2);
	r = open_job(&b, 1, 100);
	r.batch = &b64;
	r.n_batches = 1;
	r.may_stop = true;
	submit(&b, 0, &r);
	assert_true(sched_next(b.s, 0, &id, &b.d));
	assert_true(b.d.candidate[b.d.chosen].epochs == 8.0);
	r = open_job(&b, 2, NAN);
	submit(&b, 5, &r);
	sched_progress(b.s, 40 * S, 1, 0.25, NULL);
	assert_int_equal(sched_gives_back(b.s, 40 * S, 1, 2, 8), 0);
	drop(&b);
}

/* The gain is 0.6 or so: a chance of nearly 1 for the 0.83 of job 2, less the 0.19 that job 1 loses. */
TEST(test_a_gain_within_the_noise_of_accuracies_ends_no_job)
{
	struct bed b;

	for (int i = 0; i < 2; i++) {
		struct conformal *c;

		make_giver(&b, "postrider", 1.0, some, 7, 60);
		c = &b.m->accuracy.conformal;
		*c = (struct conformal){ .n = 12, .base = 1, .score = calloc(12, sizeof(double)) };
		for (int k = 6; k < 12; k++)
			c->score[k] = i ? 2.0 * 1.0
					: 2.0 * 0.3; /* half the distance of the quartiles is the noise */
		assert_int_equal(given(&b, 2), i ? 0 : 2);
		drop(&b);
	}
}

/* ---- jobs that steer ---- */

/* 3 epochs: 60 s with 32 and 72 by the bound, 30 and 36 with 64. One epoch with 32 and two with 64 are 48
 * s by their bounds, so that the promise is safe as soon as 32 is expected in time. */
TEST(test_a_promise_to_a_job_that_steers_needs_the_fastest_batch_to_fit_after_one_epoch)
{
	static const struct {
		bool steers;
		const char *policy;
		double slo_s, batch;
	} row[] = {
		{ false, "postrider", 65, 64 },
		{ true, "postrider", 65, 32 },
		{ true, "postrider", 59, 64 },
		{ true, "postrider:steer=no", 65, 64 },
		{ true, "postrider:look_ahead=no", 65, 64 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct sched_request r;
		uint64_t id;
		struct bed b;

		make_open_by(&b, row[i].policy, 2);
		r = open_job(&b, 1, row[i].slo_s);
		r.epochs = NULL;
		r.steer = row[i].steers;
		assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
		assert_true(b.d.candidate[b.d.chosen].decision == row[i].batch);
		assert_true(sched_next(b.s, 0, &id, &b.d));
		assert_true(b.d.candidate[b.d.chosen].decision == row[i].batch);
		assert_true(b.d.candidate[b.d.chosen].guard_s <= row[i].slo_s);
		drop(&b);
	}
	{ /* and what could be promised is what the fastest batch needs */
		struct sched_request r;
		struct bed b;

		make_open(&b, 2);
		r = open_job(&b, 1, 20);
		r.epochs = NULL;
		r.steer = true;
		assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED);
		near(b.d.smallest_slo_s, 36);
		drop(&b);
	}
}

/* Job 1 began with 32, is expected after 60 s, and has 74. With a neighbour for 10 s of its own it would take
 * longer than that by its bound; but after its first epoch it can go on with 64. */
TEST(test_a_job_that_steers_makes_room_for_another)
{
	for (int steers = 0; steers < 2; steers++) {
		struct sched_request r;
		uint64_t id;
		struct bed b;

		make_open_by(&b, "postrider:price=no", 4);
		r = open_job(&b, 1, 74);
		r.epochs = NULL;
		r.steer = steers;
		submit(&b, 0, &r);
		assert_true(sched_next(b.s, 0, &id, &b.d));
		assert_true(b.d.candidate[b.d.chosen].decision == 32);
		r = open_job(&b, 2, 75);
		r.batch = &b64;
		r.n_batches = 1;
		r.epochs = some;
		r.n_epochs = 1; /* 10 s alone */
		submit(&b, 0, &r);
		assert_int_equal(sched_next(b.s, 0, &id, &b.d), steers);
		drop(&b);
	}
}
