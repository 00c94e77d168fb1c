/* What the scheduler learns of families of jobs (predictors/models/spread.h): one that the model's table has
 * corrects its own times, one that is new teaches its own level and nothing else. On the model of
 * hand_model.h, whose table has jobs of 2 and of 4 cpus here. */
#include "predictors/models/spread.h"
#include "tests/unit/core/sched_bed.h"

static void make_families(struct bed *b)
{
	static const uint8_t role[HAND_FEATURES] = { ROLE_CATEGORY, ROLE_CPUS, ROLE_NJOBS, ROLE_BATCH,
						     ROLE_PROCESSES };
	static double x[2 * HAND_FEATURES], y[] = { 1, 1 };
	const struct dataset d = { .n_rows = 2, .n_features = HAND_FEATURES, .x = x, .y = y, .role = role };
	struct sched_params p;

	make(b, "postrider", 8);
	for (int i = 0; i < 2; i++) {
		double *row = x + i * HAND_FEATURES;

		features_encode_job(b->m->features, &b->values, row); /* the network */
		row[HAND_CPUS] = row[HAND_PROCESSES] = 2 << i;
		row[HAND_NJOBS] = 1;
		row[HAND_BATCH] = 64;
	}
	assert_int_equal(spread_make(&d, &b->m->time.spread, NULL), 0);
	spread_set_shared(b->m->time.spread, 0.6);
	p = params(b, "postrider", 8);
	p.adapt = true;
	remake(b, &p);
}

/* Jobs of so many cpus took `factor` times what the model says, give or take 2 %. */
static void observe(struct bed *b, uint32_t cpus, double factor, int n)
{
	for (int i = 0; i < n; i++)
		sched_observe(b->s, &(struct sched_observation){ .confidence = 0.9,
								 .model_s = 10.0,
								 .upper_s = NAN,
								 .values = &b->values,
								 .cpus = cpus,
								 .foreseen_s = NAN,
								 .actual_s = 10.0 * factor *
									     (i % 2 ? 1.02 : 0.98) });
}

/* What is foreseen for a job that has the machine for itself, over what the model says. */
static double factor_of(struct bed *b, uint32_t cpus)
{
	struct sched_request r = job(b, 1, 10000);
	double factor;

	r.cpus = cpus;
	r.batch = &b64;
	r.n_batches = 1;
	submit(b, 0, &r);
	factor = b->d.candidate[0].time_s / b->d.candidate[0].model_s;
	assert_int_equal(sched_remove(b->s, 0, 1, NULL), 0);
	return factor;
}

/* The values of the jobs do not say their cpus: the request does. */
TEST(test_cpus_tell_families_apart)
{
	struct bed b;
	uint64_t two, four;
	bool is_new;

	make_families(&b);
	two = sched_family(b.s, 0, &b.values, 2, &is_new);
	assert_false(is_new);
	four = sched_family(b.s, 0, &b.values, 4, &is_new);
	assert_false(is_new);
	assert_true(two && four && two != four);
	assert_true(sched_family(b.s, 0, &b.values, 7, &is_new) && is_new);
	assert_int_equal(sched_family(b.s, 1, &b.values, 2, &is_new), 0); /* there is no such model */
	drop(&b);
}

TEST(test_times_are_corrected_by_the_past_of_the_family)
{
	struct bed b;

	make_families(&b);
	near(factor_of(&b, 2), 1.0);
	for (int i = 0; i < 100; i++) {
		observe(&b, 2, 2.0, 1);
		observe(&b, 4, 1.0, 1);
	}
	assert_true(fabs(factor_of(&b, 2) - 2.0) < 0.1);
	assert_true(fabs(factor_of(&b, 4) - 1.0) < 0.05);
	drop(&b);
}

TEST(test_a_new_family_teaches_its_own_level_and_nothing_else)
{
	struct bed b;
	struct sched_request r;

	make_families(&b);
	observe(&b, 2, 1.0, 40);
	r = job(&b, 9, NAN);
	r.cpus = 7;
	assert_int_equal(sched_family_known(b.s, &r), 0);
	observe(&b, 7, 3.0, 10);
	assert_int_equal(sched_family_known(b.s, &r), 10);
	assert_true(fabs(factor_of(&b, 7) - 3.0) < 0.2);
	assert_true(fabs(factor_of(&b, 2) - 1.0) < 0.02);
	near(adapt_bias(sched_adapt(b.s, 0), (struct adapt_who){ .type = 0 }),
	     adapt_bias(sched_adapt(b.s, 0), (struct adapt_who){ .family = sched_family(b.s, 0, &b.values, 7,
											&(bool){ false }) }));
	drop(&b);
}
