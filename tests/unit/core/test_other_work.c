/* scheduler/core/other_work: the work of other programs counts once in a decision, with a model that has a
 * column of it and with one that has none. Two cores; a batch takes 6400 s over it alone. */
#include "tests/unit/core/sched_bed.h"

enum { OTHER = HAND_BATCH + 1, PROCESSES, FEATURES };

static double seen_njobs, seen_processes, seen_other; /* of the last row */

static void known_time(const void *self, const double *x, size_t n_rows, double *out)
{
	(void)self;
	for (size_t i = 0; i < n_rows; i++, x += FEATURES) {
		seen_njobs = x[HAND_NJOBS];
		seen_processes = x[PROCESSES];
		seen_other = x[OTHER];
		out[i] = 6400.0 / x[HAND_BATCH] * fmax(2.0, x[PROCESSES] + x[OTHER]) /
			 fmax(2.0, x[HAND_CPUS]);
	}
}

static void nothing(void *self)
{
	(void)self;
}

static const struct predictor_ops known = {
	.name = "hybrid", .title = "by hand", .predict = known_time, .destroy = nothing
};

struct stage {
	struct model *m;
	struct job_values values;
	struct policy_choice policy;
	struct fluid_job running[8], queued[8];
	struct decide_neighbour neighbour[16];
	struct decide_scene scene;
	struct decision d;
};

/* A table of one to two jobs, and of one to two processes of others if the column is there. */
static struct model *small_model(bool column)
{
	static const char *const text[] = { "network,cpus,njobs,batch,time_s\na,1,1,32,1\na,2,2,1024,1\n",
					    "network,cpus,njobs,batch,other_load,time_s\n"
					    "a,1,1,32,1,1\na,2,2,1024,2,1\n" };
	struct model *m = hand_model(column ? &known : &hand_hybrid);
	struct csv *csv;
	struct table *table;

	features_free(m->features);
	assert_int_equal(csv_parse("t", text[column], strlen(text[column]), &csv, NULL), 0);
	assert_int_equal(table_read(csv, m->schema, true, &table, NULL), 0);
	assert_int_equal(features_fit(table, &m->features, NULL), 0);
	table_free(table);
	csv_free(csv);
	m->time.predictor.n_features = m->features->n;
	m->accuracy = (struct model_target){ 0 };
	m->time.widening = malloc(m->features->n * sizeof(double));
	for (size_t i = 0; i < m->features->n; i++)
		m->time.widening[i] = 3.0;
	return m;
}

static void build(struct stage *t, bool column, const char *policy)
{
	memset(t, 0, sizeof *t);
	hand_disk = 0.0;
	t->m = small_model(column);
	t->values = hand_values(t->m);
	t->policy = hand_policy(policy);
	for (size_t i = 0; i < 16; i++)
		t->neighbour[i] =
			(struct decide_neighbour){ .id = 100 + i, .ratio = NAN, .deadline_s = INFINITY };
	t->scene = (struct decide_scene){ .policy = &t->policy,
					  .machine = { .cores = 2, .disk_saturation = INFINITY, .slots = 8 },
					  .running = t->running,
					  .queued = t->queued,
					  .neighbour = t->neighbour,
					  .cpus = 1,
					  .most_cpus = 8,
					  .starting = true,
					  .memory_mb = NAN,
					  .memory_mb_per_record = NAN,
					  .memory_limit_mb = INFINITY };
	assert_int_equal(decide_scratch_new(16, &t->scene.scratch, NULL), 0);
}

static void strike(struct stage *t)
{
	decide_scratch_free(t->scene.scratch);
	job_values_release(&t->values);
	model_free(t->m);
}

static const struct candidate *ask(struct stage *t, double other_load)
{
	static const double batch = 64;
	const struct decide_params p = { .model = t->m,
					 .job = &t->values,
					 .candidate = &batch,
					 .n_candidates = 1,
					 .slo_s = 1e6,
					 .confidence = 0.9,
					 .scene = &t->scene };
	struct err err = { 0 };

	t->scene.other_load = other_load;
	if (decide(&p, &t->d, &err))
		fail_msg("%s", err.text);
	return &t->d.candidate[0];
}

TEST(test_a_model_with_the_column_is_asked_with_what_is_seen)
{
	static const char *const policy[] = { "postrider", "courier" };

	for (int i = 0; i < 2; i++) {
		const struct candidate *c;
		struct stage t;

		build(&t, true, policy[i]);
		c = ask(&t, 1.5);
		near(c->time_s, 100.0 * 2.5 / 2.0);
		assert_true(!c->extrapolated && t.d.other_load == 1.5);
		near(t.d.other_factor, 1.25);
		near(c->guard_s, 1.2 * c->time_s);
		t.running[t.scene.n_running++] =
			(struct fluid_job){ .work_s = 1e6, .cpu_share = 1.0, .cpus = 1 };
		c = ask(&t, 2.0);
		near(seen_njobs, 2.0);
		near(seen_processes, 2.0);
		near(seen_other, 2.0);
		assert_false(c->extrapolated);
		near(t.d.other_factor, 2.0);
		c = ask(&t, 5.0); /* more than any run of the table had beside it */
		assert_true(c->extrapolated);
		assert_true(c->guard_s > 1.5 * c->time_s);
		c = ask(&t, 0.0); /* and less, which is no danger */
		assert_true(!c->extrapolated && t.d.other_factor == 1.0);
		strike(&t);
	}
}

TEST(test_without_the_column_other_work_is_processes_and_no_new_level)
{
	static const char *const policy[] = { "postrider", "courier" };

	for (int i = 0; i < 2; i++) {
		const struct candidate *c;
		struct stage t;

		build(&t, false, policy[i]);
		c = ask(&t, 5.0); /* six jobs, and the table has two */
		near(c->time_s, 100.0 * 6.0 / 2.0);
		near(t.d.other_factor, 3.0);
		assert_false(c->extrapolated);
		near(c->guard_s, 1.2 * c->time_s);
		for (int k = 0; k < 4; k++)
			t.running[t.scene.n_running++] =
				(struct fluid_job){ .work_s = 1e6, .cpu_share = 1.0, .cpus = 1 };
		c = ask(&t, 1.0); /* five jobs of ours alone are a new level */
		assert_true(c->extrapolated);
		assert_true(c->guard_s > 1.5 * c->time_s);
		strike(&t);
	}
}

TEST(test_a_job_that_says_its_own_other_work_is_asked_with_that)
{
	struct stage t;

	build(&t, true, "courier");
	job_values_put_role(&t.values, t.m->schema, ROLE_OTHER, 1.0);
	near(ask(&t, 5.0)->time_s, 100.0);
	assert_true(seen_njobs == 1.0 && seen_processes == 1.0 && seen_other == 1.0);
	strike(&t);
}

TEST(test_without_a_scene_nothing_is_said_of_others)
{
	static const double batch = 64;
	struct stage t;
	struct decide_params p;

	build(&t, true, "postrider");
	p = (struct decide_params){ .model = t.m,
				    .job = &t.values,
				    .candidate = &batch,
				    .n_candidates = 1,
				    .slo_s = NAN,
				    .confidence = 0.9 };
	assert_int_equal(decide(&p, &t.d, NULL), 0);
	assert_true(isnan(t.d.other_load) && isnan(t.d.other_factor));
	strike(&t);
}
