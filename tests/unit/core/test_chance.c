/* The chance of a candidate: it rises with the limit, agrees with the bound, and follows what was
 * learnt. */
#include "common/rng.h"
#include "tests/unit/core/sched_bed.h"

/* Scores spread evenly about 0 in log time: the median run takes what was predicted. */
static void spread(struct bed *b, size_t n, double width)
{
	struct conformal *c = &b->m->time.conformal;

	free(c->score);
	c->score = calloc(n, sizeof *c->score);
	c->n = n;
	for (size_t i = 0; i < n; i++)
		c->score[i] = width * (((double)i + 1.0) / ((double)n + 1.0) - 0.5);
	conformal_set_groups(c, n);
}

static void make_spread(struct bed *b, bool adapt, uint32_t slots)
{
	struct sched_params p;

	make(b, "postrider", slots);
	spread(b, 99, 1.0);
	p = params(b, "postrider", slots);
	p.adapt = adapt;
	remake(b, &p);
}

static struct decision ask(struct bed *b, double slo_s, double confidence)
{
	struct sched_request r = job(b, 1000000, slo_s);
	enum sched_verdict verdict;
	struct decision d;

	r.confidence = confidence;
	if (sched_what_if(b->s, 0, &r, &d, &verdict, &b->err))
		fail_msg("%s", b->err.text);
	return d;
}

/* `n` jobs that took `times` as long as predicted, give or take. */
static void learn(struct bed *b, int n, double times, double noise)
{
	struct rng r = rng_stream(11, 0);

	for (int i = 0; i < n; i++) {
		struct sched_observation o = {
			.confidence = 0.9, .model_s = 100, .upper_s = NAN, .foreseen_s = NAN
		};

		o.actual_s = 100 * times * exp(noise * (rng_uniform(&r) - 0.5));
		sched_observe(b->s, &o);
	}
}

TEST(test_a_chance_is_the_share_of_runs_that_would_be_in_time)
{
	struct belief expected;
	struct bed b;
	struct decision d;

	make_spread(&b, false, 8);
	d = ask(&b, 50, 0.9); /* batch 128 takes 50 s alone */
	near(d.candidate[2].chance, 0.5);
	expected = belief_of_bound(50, d.candidate[2].guard_s, 0.9);
	near(d.candidate[3].chance, belief_chance(expected, 100));
	near(d.candidate[1].chance, belief_chance(expected, 25));
	assert_true(d.candidate[0].chance < 1e-2 && d.candidate[4].chance > 0.99);
	d = ask(&b, 50 * exp(0.25), 0.9);
	near(d.candidate[2].chance, belief_chance(expected, 50 * exp(0.25)));
	d = ask(&b, NAN, 0.9);
	assert_true(isnan(d.candidate[2].chance));
	drop(&b);
}

/* But nobody knows yet what later arrivals do: chances are less certain, and users see wider bounds. */
TEST(test_learning_changes_no_guard_before_the_first_observation)
{
	struct bed fixed, learns;

	make_spread(&fixed, false, 8);
	make_spread(&learns, true, 8);
	for (double slo_s = 5.0; slo_s < 500.0; slo_s *= 1.3) {
		struct decision a = ask(&fixed, slo_s, 0.87), b = ask(&learns, slo_s, 0.87);

		for (size_t i = 0; i < a.n_candidates; i++) {
			assert_true(fabs(a.candidate[i].chance - 0.5) >= fabs(b.candidate[i].chance - 0.5));
			assert_true(a.candidate[i].guard_s == b.candidate[i].guard_s);
			assert_true(a.candidate[i].upper_s <= b.candidate[i].upper_s);
		}
	}
	drop(&fixed);
	drop(&learns);
}

TEST(test_without_residuals_no_chance_is_known)
{
	struct bed b;

	make(&b, "postrider", 8);
	b.m->time.conformal.n = 0;
	conformal_set_groups(&b.m->time.conformal, 0);
	assert_true(isnan(ask(&b, 50, 0.9).candidate[2].chance));
	assert_true(isnan(ask(&b, 1e-9, 0.9).candidate[2].chance));
	drop(&b);
}

/* The limit rises; at each step the chances are those of all candidates. */
static void check_rise(struct bed *b, double confidence, double most_s)
{
	double before[5] = { 0 };
	size_t steps = 0;

	for (double slo_s = 1.0; slo_s < most_s; slo_s *= 1.03, steps++) {
		struct decision d = ask(b, slo_s, confidence);

		for (size_t i = 0; i < d.n_candidates; i++) {
			const struct candidate *c = &d.candidate[i];
			bool in_time = c->wait_upper_s + c->guard_s <= slo_s;

			if (!(c->chance >= before[i] && c->chance <= 1.0))
				fail_msg("objective %g s, batch %g: chance %g after %g", slo_s, c->decision,
					 c->chance, before[i]);
			if (in_time != (c->chance >= confidence))
				fail_msg("objective %g s, batch %g: bound %g s, chance %.17g", slo_s,
					 c->decision, c->guard_s, c->chance);
			before[i] = c->chance;
		}
	}
	assert_true(before[0] > 0.99 && steps > 200);
}

TEST(test_chances_rise_with_the_objective_and_agree_with_the_bound)
{
	static const double confidence[] = { 0.04, 0.3, 0.5, 0.77, 0.9, 0.95, 0.985 };
	struct bed b;

	for (int k = 0; k < 4; k++) {
		make_spread(&b, k > 0, 8);
		if (k > 1)
			learn(&b, 15, 1.4, 0.3); /* what was learnt has some weight */
		if (k > 2)
			learn(&b, 300, 0.8, 0.9); /* and all of it */
		for (size_t i = 0; i < sizeof confidence / sizeof *confidence; i++)
			check_rise(&b, confidence[i], 3000);
		drop(&b);
	}
}

TEST(test_a_wait_is_part_of_the_chance)
{
	struct bed b;
	struct decision d;
	const struct candidate *c;

	make_spread(&b, false, 2);
	submit_batch(&b, 0, 1, &b64, NAN); /* 100 s */
	assert_int_equal(next(&b, 0), 1);
	d = ask(&b, 150, 0.9);
	c = &d.candidate[2]; /* 100 s of waiting and 50 s of its own */
	near(c->wait_s, 100);
	near(c->chance, 0.5);
	check_rise(&b, 0.9, 3000);
	drop(&b);
}

TEST(test_many_jobs_and_few_plays_give_chances_too)
{
	struct bed b;
	uint64_t id = 1;

	make_spread(&b, false, 600); /* five candidates and 300 jobs: not all are played */
	for (; id <= 300; id++) {
		submit_batch(&b, 0, id, &b32, NAN);
		assert_int_equal(next(&b, 0), id);
	}
	check_rise(&b, 0.9, 1e6);
	submit_batch(&b, 0, id++, &b32, 1e7); /* with a promise, all are looked after */
	check_rise(&b, 0.9, 1e6);
	drop(&b);
}

TEST(test_chances_follow_what_was_learnt)
{
	struct bed b;
	struct decision d;

	make_spread(&b, true, 8);
	assert_true(fabs(ask(&b, 50, 0.9).candidate[2].chance - 0.5) < 0.02);
	learn(&b, 300, 2.0, 0.4); /* twice as slow, and spread less: 0.2 to either side in log time */
	d = ask(&b, 50, 0.9);
	assert_true(d.candidate[2].chance < 0.01);
	d = ask(&b, 100, 0.9);
	assert_true(fabs(d.candidate[2].chance - 0.5) < 0.05);
	/* as many are above 0.16 as a tenth of them: the bound */
	assert_true(fabs(d.candidate[2].guard_s / d.candidate[2].time_s - exp(0.16)) < 0.03);
	d = ask(&b, 100 * exp(0.1), 0.9);
	assert_true(fabs(d.candidate[2].chance -
			 belief_chance(belief_of_bound(100, 100 * exp(0.16), 0.9), 100 * exp(0.1))) < 0.05);
	drop(&b);
}

/* A model whose errors are not factors, beside what was learnt. */
TEST(test_errors_in_seconds_have_chances_too)
{
	struct bed b;

	make_spread(&b, true, 8);
	b.m->time.conformal.log = false;
	for (size_t i = 0; i < 99; i++)
		b.m->time.conformal.score[i] = 20.0 * (((double)i + 1.0) / 100.0 - 0.5);
	conformal_set_groups(&b.m->time.conformal, 99);
	near(ask(&b, 55, 0.9).candidate[2].guard_s, 58);
	near(ask(&b, 55, 0.9).candidate[2].chance,
	     belief_chance(belief_with(belief_of_bound(50, 58, 0.9), 0.0, 0.2), 55));
	check_rise(&b, 0.9, 3000);
	learn(&b, 300, 1.3, 0.4);
	check_rise(&b, 0.9, 3000);
	assert_true(fabs(ask(&b, 65, 0.9).candidate[2].chance - 0.5) < 0.05);
	drop(&b);
}
