/* Every layer of a decision can be left out by its name, and is then without effect (layers.h). Each case
 * makes the scene in which its layer matters, with the layer and without it. On the model of hand_model.h. */
#include <limits.h>
#include <stdio.h>

#include "predictors/models/spread.h"
#include "tests/unit/core/sched_bed.h"

static const char *const postrider[] = { "postrider", "postrider:without=" };

/* The policy with every layer (0), or without the one of this name (1). */
static const char *policy_of(int without, const char *name)
{
	static char text[64];

	snprintf(text, sizeof text, "%s%s", postrider[without], without ? name : "");
	return text;
}

static void make_with(struct bed *b, int without, const char *name)
{
	struct sched_params p;

	make(b, "postrider", 4);
	p = params(b, policy_of(without, name), 4);
	p.adapt = true;
	remake(b, &p);
}

static struct candidate ask(struct bed *b, int64_t now_s, uint32_t cpus, double slo_s)
{
	struct sched_request r = job(b, 99, slo_s);

	r.cpus = cpus;
	r.batch = &b64;
	r.n_batches = 1;
	assert_int_equal(sched_what_if(b->s, now_s * S, &r, &b->d, &b->verdict, NULL), 0);
	return b->d.candidate[0];
}

/* ---- names ---- */

TEST(test_a_layer_is_left_out_by_its_name)
{
	struct policy_choice c = hand_policy("postrider:without=later+bias,chance=0.5");
	char text[LAYERS_TEXT];

	assert_int_equal(c.without, LAYER_BIAS | LAYER_LATER);
	assert_true(c.chance == 0.5);
	assert_string_equal(layers_print(c.without, "+", text), "later+bias");
	assert_int_equal(hand_policy("greedy:without=later").without, LAYER_LATER);
	assert_int_equal(hand_policy("postrider:price=no").without, LAYER_PRICE);
}

TEST(test_all_layers_can_be_left_out_at_once)
{
	char names[LAYERS_TEXT], text[LAYERS_TEXT + 32];
	unsigned seen = 0;

	for (const struct layer_entry *l = layer_all; l->name; l++) {
		assert_false(seen & l->bit);
		assert_true(strlen(l->help) > 10 && strlen(l->help) < 80);
		seen |= l->bit;
	}
	assert_int_equal(seen, LAYERS_ALL);
	snprintf(text, sizeof text, "postrider:without=%s", layers_print(LAYERS_ALL, "+", names));
	assert_int_equal(hand_policy(text).without, LAYERS_ALL);
}

TEST(test_a_layer_that_is_not_there_is_refused_with_the_names)
{
	static const struct {
		const char *text, *says[2];
	} bad[] = {
		{ "postrider:without=bia",
		  { "postrider has no layer 'bia'", "bounds, look-ahead, price, " } },
		{ "postrider:without=bias+", { "no layer ''", "quantile, new-family" } },
		{ "postrider:without=", { "no layer ''", "new-family" } },
		{ "postrider:without=bias+lat\n", { "no layer 'lat\\x0a'", "later" } },
		{ "greedy:without=price",
		  { "greedy has no layer 'price'", "it has bounds, look-ahead, seats" } },
		{ "courier:without=bias", { "courier has no setting 'without'", "it has chance, model" } },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct policy_choice c = { 0 };
		struct err err = { 0 };

		assert_int_equal(policy_parse(bad[i].text, &c, &err), -ERR_ARG);
		for (int k = 0; k < 2; k++)
			if (!strstr(err.text, bad[i].says[k]))
				fail_msg("'%s': %s", bad[i].text, err.text);
	}
}

/* ---- what is decided ---- */

/* 100 s are expected, 120 s are the bound. */
TEST(test_without_bounds_the_expected_time_decides)
{
	for (int without = 0; without < 2; without++) {
		struct bed b;

		make_with(&b, without, "bounds");
		ask(&b, 0, 2, 110.0);
		assert_int_equal(b.verdict, without ? SCHED_PROMISED : SCHED_REJECTED);
		drop(&b);
	}
}

/* The job beside it ends after 200 s and not 150, and is slowed down by half only until then. */
TEST(test_without_look_ahead_the_load_of_now_stays)
{
	for (int without = 0; without < 2; without++) {
		struct bed b;

		make_with(&b, without, "look-ahead");
		submit_batch(&b, 0, 1, &b128, NAN);
		assert_int_equal(next(&b, 0), 1);
		near(ask(&b, 0, 2, NAN).time_s, without ? 200.0 : 150.0);
		drop(&b);
	}
}

/* Beside another job the first one takes 200 s, and has 300: its promise holds, and its chance is less. */
TEST(test_without_a_price_a_job_costs_nothing)
{
	for (int without = 0; without < 2; without++) {
		struct bed b;

		make_with(&b, without, "price");
		assert_int_equal(submit_batch(&b, 0, 1, &b64, 300), SCHED_PROMISED);
		assert_int_equal(next(&b, 0), 1);
		assert_true((ask(&b, 0, 2, 400).cost == 0.0) == without);
		drop(&b);
	}
}

/* The neighbour takes 2 s and may take 4 s by its bound, and would miss that beside the 10 s of this job. So
 * the job waits for its end, or is refused. */
TEST(test_without_seats_a_job_has_the_place_of_its_deadline_alone)
{
	static const double ten_s = 640, two_s = 3200;

	for (int without = 0; without < 2; without++) {
		struct bed b;

		make_with(&b, without, "seats");
		assert_int_equal(submit_batch(&b, 0, 17, &two_s, 4.0), SCHED_PROMISED);
		assert_int_equal(next(&b, 0), 17);
		assert_int_equal(submit_batch(&b, 0, 18, &ten_s, 20.0),
				 without ? SCHED_REJECTED : SCHED_PROMISED);
		assert_int_equal(b.d.candidate[0].behind, without ? 0 : 17);
		drop(&b);
	}
}

/* Jobs took as long as foreseen but for those that came later: half as long again. */
static void teach(struct bed *b, double foreseen, double actual, double upper, int n)
{
	for (int i = 0; i < n; i++) {
		double noise = exp(0.02 * ((double)(i % 5) - 2.0));

		sched_observe(b->s, &(struct sched_observation){ .type = 1,
								 .confidence = 0.9,
								 .model_s = 100.0,
								 .upper_s = upper,
								 .foreseen_s = 100.0 * foreseen * noise,
								 .actual_s = 100.0 * actual * noise });
	}
}

/* A chance beside a job that could be harmed: the price of one process-second is above 0 then. Limits of
 * 160 s are met by 100 s, and hardly by 150 s. */
TEST(test_without_later_a_chance_takes_the_load_as_foreseen)
{
	double chance[2];

	for (int without = 0; without < 2; without++) {
		struct bed b;
		char policy[64];
		struct sched_params p;

		make_with(&b, 0, "");
		snprintf(policy, sizeof policy, "postrider:price=1e-6%s", without ? ",without=later" : "");
		p = params(&b, policy, 4);
		p.adapt = true;
		remake(&b, &p);
		teach(&b, 1.0, 1.5, NAN, 400);
		chance[without] = ask(&b, 0, 2, 135.0).chance;
		drop(&b);
	}
	assert_true(chance[0] < 0.91 && chance[1] > 0.95);
}

TEST(test_without_other_work_the_machine_is_ours)
{
	for (int without = 0; without < 2; without++) {
		struct bed b;

		make_with(&b, without, "other-work");
		assert_int_equal(sched_set_other_load(b.s, 0, 2.0, NULL), 0);
		near(ask(&b, 0, 2, NAN).time_s, without ? 100.0 : 200.0);
		drop(&b);
	}
}

/* Work of others that has just begun on a machine that was idle for long: a job with 50 s left of 100, and 70
 * s to its deadline, is late only if it stays. */
TEST(test_without_usual_load_what_is_there_now_stays)
{
	for (int without = 0; without < 2; without++) {
		struct bed b;
		struct sched_estimate e;

		make_with(&b, without, "usual-load");
		assert_int_equal(submit_batch(&b, 0, 1, &b64, 125), SCHED_PROMISED);
		assert_int_equal(next(&b, 0), 1);
		assert_int_equal(sched_set_other_load(b.s, 49 * S, 2.0, NULL), 0);
		assert_int_equal(sched_estimate(b.s, 50 * S, 1, &e, NULL), 0);
		assert_int_equal(e.late, without);
		drop(&b);
	}
}

/* Others want 4 processes now, 1 in the second before, and so on for minutes. */
TEST(test_without_usual_load_a_load_that_jumps_is_thought_to_last)
{
	struct candidate c[2];

	for (int without = 0; without < 2; without++) {
		struct bed b;

		make_with(&b, without, "usual-load");
		for (int i = 1; i <= 200; i++)
			assert_int_equal(sched_set_other_load(b.s, i * S, i % 2 ? 1.0 : 4.0, NULL), 0);
		c[without] = ask(&b, 200, 2, NAN);
		drop(&b);
	}
	near(c[1].time_s, 300.0);
	assert_true(c[0].time_s < 250.0 && c[0].time_s > 150.0);
	assert_true(c[0].guard_s / c[0].time_s > 1.05 * c[1].guard_s / c[1].time_s);
}

TEST(test_without_start_lag_a_job_starts_at_once)
{
	for (int without = 0; without < 2; without++) {
		struct bed b;

		make_with(&b, without, "start-lag");
		assert_int_equal(sched_set_lag(b.s, 7.0, NULL), 0);
		near(ask(&b, 0, 2, 200.0).wait_upper_s, without ? 0.0 : 7.0);
		ask(&b, 0, 2, 125.0);
		assert_int_equal(b.verdict, without ? SCHED_PROMISED : SCHED_REJECTED);
		drop(&b);
	}
}

/* ---- what ended jobs teach ---- */

static struct candidate taught(int without, const char *name, double foreseen, double actual, double guard,
			       int n)
{
	struct bed b;
	struct sched_request r;
	struct candidate c;

	make_with(&b, without, name);
	teach(&b, foreseen, actual, guard, n);
	r = job(&b, 99, NAN);
	r.batch = &b64;
	r.n_batches = 1;
	r.type = 1;
	assert_int_equal(sched_what_if(b.s, 0, &r, &b.d, &b.verdict, NULL), 0);
	c = b.d.candidate[0];
	drop(&b);
	return c;
}

TEST(test_without_bias_the_expected_time_is_the_model_s)
{
	assert_true(taught(0, "bias", 1.5, 1.5, NAN, 400).time_s > 145.0);
	near(taught(1, "bias", 1.5, 1.5, NAN, 400).time_s, 100.0);
	assert_true(taught(1, "bias", 1.5, 1.5, NAN, 400).guard_s > 150.0); /* the bound follows alone */
}

/* The model's bound is 1.2 times the time, and the noise that comes asks for 1.04 times. */
TEST(test_without_quantile_the_width_is_the_model_s)
{
	struct candidate c = taught(0, "quantile", 1.5, 1.5, NAN, 400);

	assert_true(c.guard_s / c.time_s < 1.06);
	c = taught(1, "quantile", 1.5, 1.5, NAN, 400);
	assert_true(c.time_s > 145.0);
	near(c.guard_s / c.time_s, 1.2);
}

/* Later arrivals made jobs half as long again, and every bound was broken. */
TEST(test_without_later_users_see_the_guard)
{
	struct candidate c = taught(0, "later", 1.0, 1.5, 120.0, 100);

	assert_true(c.upper_s > 1.5 * c.guard_s && c.guard_s < 125.0);
	c = taught(1, "later", 1.0, 1.5, 120.0, 100);
	assert_true(c.upper_s == c.guard_s);
}

/* The table has jobs of 2 and of 4 cpus; ten of 7 cpus took three times what the model says. */
TEST(test_without_new_family_its_runs_teach_nothing)
{
	static const uint8_t role[HAND_FEATURES] = { ROLE_CATEGORY, ROLE_CPUS, ROLE_NJOBS, ROLE_BATCH,
						     ROLE_PROCESSES };
	double x[2 * HAND_FEATURES], y[] = { 1, 1 };
	const struct dataset d = { .n_rows = 2, .n_features = HAND_FEATURES, .x = x, .y = y, .role = role };

	for (int without = 0; without < 2; without++) {
		struct bed b;
		struct sched_params p;
		struct sched_request r;
		struct candidate c;

		make(&b, "postrider", 8);
		for (int i = 0; i < 2; i++) {
			double *row = x + i * HAND_FEATURES;

			features_encode_job(b.m->features, &b.values, row);
			row[HAND_CPUS] = row[HAND_PROCESSES] = 2 << i;
			row[HAND_NJOBS] = 1;
			row[HAND_BATCH] = 64;
		}
		assert_int_equal(spread_make(&d, &b.m->time.spread, NULL), 0);
		spread_set_shared(b.m->time.spread, 0.6);
		p = params(&b, policy_of(without, "new-family"), 8);
		p.adapt = true;
		remake(&b, &p);
		for (int i = 0; i < 10; i++)
			sched_observe(b.s, &(struct sched_observation){ .confidence = 0.9,
									.model_s = 10.0,
									.upper_s = NAN,
									.values = &b.values,
									.cpus = 7,
									.foreseen_s = NAN,
									.actual_s = 30.0 });
		c = ask(&b, 0, 7, NAN);
		if (without)
			near(c.time_s, c.model_s);
		else
			assert_true(c.time_s > 2.8 * c.model_s);
		r = job(&b, 5, NAN);
		r.cpus = 7;
		assert_int_equal(sched_family_known(b.s, &r), without ? UINT_MAX : 10);
		drop(&b);
	}
}

/* With other layers what was learnt is not of use any more: the same model begins anew. */
TEST(test_learning_begins_anew_when_a_layer_of_it_is_left_out)
{
	struct bed b;
	struct sched_params p;

	make_with(&b, 0, "");
	teach(&b, 1.5, 1.5, NAN, 200);
	p = params(&b, "postrider:without=price", 4);
	p.adapt = true;
	assert_int_equal(sched_use(b.s, 0, &p, NULL, NULL, NULL), 0);
	assert_false(adapt_is_empty(sched_adapt(b.s, 0)));
	p.policy = hand_policy("postrider:without=quantile");
	assert_int_equal(sched_use(b.s, 0, &p, NULL, NULL, NULL), 0);
	assert_true(adapt_is_empty(sched_adapt(b.s, 0)));
	drop(&b);
}

/* What was set before a layer is left out has no effect any more. */
TEST(test_a_layer_can_be_left_out_while_jobs_are_there)
{
	struct bed b;
	struct sched_params p;

	make_with(&b, 0, "");
	assert_int_equal(sched_set_other_load(b.s, 0, 2.0, NULL), 0);
	assert_int_equal(sched_set_lag(b.s, 7.0, NULL), 0);
	p = params(&b, "postrider:without=other-work+start-lag", 4);
	assert_int_equal(sched_use(b.s, 1 * S, &p, NULL, NULL, NULL), 0);
	near(ask(&b, 1, 2, 200.0).time_s, 100.0);
	near(ask(&b, 1, 2, 200.0).wait_upper_s, 0.0);
	drop(&b);
}

/* Jobs of type 1 took half as long again beside as many processes of type 2, and no longer among
 * themselves. */
static void teach_kinds(struct bed *b)
{
	for (int i = 0; i < 120; i++) {
		uint64_t loud = 2 * (uint64_t)i + 1000, quiet = loud + 1;
		struct sched_request r = job(b, loud, NAN);
		struct pairs_met met;
		int64_t now_s = 1000 * (i + 1), took_s;
		double foreseen_s;

		if (i % 2) {
			r.type = 2;
			r.batch = &b128;
			r.n_batches = 1;
			submit(b, now_s, &r);
			assert_int_equal(next(b, now_s), loud);
		}
		r = job(b, quiet, NAN);
		r.type = 1;
		r.batch = &b64;
		r.n_batches = 1;
		submit(b, now_s, &r);
		assert_int_equal(next(b, now_s), quiet);
		took_s = (i % 2 ? 300 : 100) + i % 5 - 2;
		foreseen_s = sched_foreseen_s(b->s, (now_s + took_s) * S, quiet, (double)took_s);
		sched_met(b->s, (now_s + took_s) * S, quiet, &met);
		sched_remove(b->s, (now_s + took_s) * S, quiet, NULL);
		if (i % 2)
			sched_remove(b->s, (now_s + took_s) * S, loud, NULL);
		sched_observe(b->s, &(struct sched_observation){ .type = 1,
								 .confidence = 0.9,
								 .model_s = b->d.candidate[0].model_s,
								 .upper_s = NAN,
								 .foreseen_s = foreseen_s,
								 .actual_s = (double)took_s,
								 .met = &met });
	}
}

/* Beside a job of type 2, and with one more of it in the queue, which has a seat in the scene, too. */
TEST(test_without_kinds_all_neighbours_are_alike)
{
	double ratio[2];

	for (int without = 0; without < 2; without++) {
		double time_s[2];
		struct bed b;

		for (int loud = 0; loud < 2; loud++) {
			struct sched_request r;
			struct candidate c;

			make_with(&b, without, "kinds");
			teach_kinds(&b);
			for (uint64_t id = 1; id <= 3; id++) { /* two run, one waits */
				r = job(&b, id, 5000.0);
				r.type = loud ? 2 : 1;
				r.batch = &b128;
				r.n_batches = 1;
				submit(&b, 500000, &r);
				next(&b, 500000);
			}
			r = job(&b, 99, 9000.0);
			r.type = 1;
			r.batch = &b64;
			r.n_batches = 1;
			assert_int_equal(sched_what_if(b.s, 500000 * S, &r, &b.d, &b.verdict, NULL), 0);
			c = b.d.candidate[0];
			time_s[loud] = c.time_s;
			drop(&b);
		}
		ratio[without] = time_s[1] / time_s[0];
	}
	assert_true(ratio[0] > 1.1);
	near(ratio[1], 1.0);
}

/* A table says the same before any job has ended: runs of type 1 beside type 2 took half as long again. */
TEST(test_runs_of_a_table_beside_another_kind_tell_what_it_does)
{
	double ratio[2];

	for (int without = 0; without < 2; without++) {
		double time_s[2];
		struct bed b;

		for (int loud = 0; loud < 2; loud++) {
			struct sched_request r, of, beside;

			make_with(&b, without, "kinds");
			assert_true(sched_untaught(b.s));
			assert_false(sched_untaught(b.s));
			of = beside = job(&b, 1, NAN);
			of.type = 1;
			beside.type = 2;
			for (int i = 0; i < 60; i++) {
				bool mixed = i % 3 == 0;

				sched_teach(b.s, &(struct sched_mixed){ &of, &beside, mixed ? 2.0 : 0.0, 4.0,
									mixed ? log(1.5) : 0.01 });
			}
			for (uint64_t id = 1; id <= 3; id++) { /* two run, one waits */
				r = job(&b, id, 5000.0);
				r.type = loud ? 2 : 1;
				r.batch = &b128;
				r.n_batches = 1;
				submit(&b, 10, &r);
				next(&b, 10);
			}
			r = job(&b, 99, 9000.0);
			r.type = 1;
			r.batch = &b64;
			r.n_batches = 1;
			r.user = 7; /* nobody's word counts less than the table's */
			assert_int_equal(sched_what_if(b.s, 10 * S, &r, &b.d, &b.verdict, NULL), 0);
			time_s[loud] = b.d.candidate[0].time_s;
			drop(&b);
		}
		ratio[without] = time_s[1] / time_s[0];
	}
	assert_true(ratio[0] > 1.1);
	near(ratio[1], 1.0);
}

/* ---- steer ---- */

TEST(test_without_steer_a_slow_job_keeps_its_batch)
{
	for (int without = 0; without < 2; without++) {
		struct steer_report r = { .epochs = 8, .accuracy = NAN };
		struct steer_answer a = { 0 };
		struct sched_request q;
		struct bed b;

		make_with(&b, without, "steer");
		q = job(&b, 1, 125); /* 64 takes 100 s, in 8 epochs of 12.5 s */
		q.steer = true;
		submit(&b, 0, &q);
		assert_int_equal(next(&b, 0), 1);
		for (r.epoch = 1; r.epoch <= 3; r.epoch++) {
			sched_progress(b.s, r.epoch * 30 * S, 1, r.epoch / 8.0, NULL);
			assert_int_equal(sched_steer(b.s, r.epoch * 30 * S, 1, &r, &a, NULL), 0);
		}
		assert_true(without ? a.batch == 64 : a.batch > 64);
		drop(&b);
	}
}
