/* What all worlds share: names, moments, order of events, copies. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "sim/world/world.h"
#include "tests/support/test.h"

/* What every world promises, for every entry of the table. */
static const char *const specs[] = { "measured:configs/profiles/two-cores/runs.csv", "queueing", "fluid" };
enum { WORLDS = sizeof specs / sizeof *specs, KINDS = 2 };

static char *column[] = { "network", "epochs", "samples" };
static char *value[KINDS][3] = { { "lenet5", "4", "12000" }, { "simplenet", "4", "12000" } };
static struct trace_kind kind[KINDS] = {
	{ .value = value[0],
	  .cpus = 2,
	  .epochs_from = NAN,
	  .epochs_to = NAN,
	  .memory_mb = NAN,
	  .memory_mb_per_record = NAN },
	{ .value = value[1],
	  .cpus = 1,
	  .epochs_from = NAN,
	  .epochs_to = NAN,
	  .memory_mb = NAN,
	  .memory_mb_per_record = NAN },
};
static struct trace_job job[KINDS] = { { .id = 1, .kind = 0, .line = 2 }, { .id = 2, .kind = 1, .line = 3 } };
static const struct trace trace = { .name = "hand.csv",
				    .column = column,
				    .n_columns = 3,
				    .kind = kind,
				    .n_kinds = KINDS,
				    .job = job,
				    .n_jobs = KINDS };
static const struct cluster two_cores = { .cores = 2.0, .slots = 4, .nodes = 1, .memory_mb = INFINITY };

static struct world *opened(const char *spec)
{
	struct world_params p = { .spec = spec, .given = &two_cores, .trace = &trace };
	struct world *w = NULL;
	struct err err = { 0 };

	if (world_open(&p, &w, &err))
		fail_msg("%s: %s", spec, err.text);
	return w;
}

static struct world_run *new_run(const struct world *w)
{
	struct world_run *r = NULL;

	assert_int_equal(world_run_new(w, 0, &r, NULL), 0);
	return r;
}

static struct world_job a_job(uint64_t id)
{
	struct world_job j = {
		.id = id, .kind = (uint32_t)(id % KINDS), .batch = 64.0 * (double)(1 << id % 4), .epochs = NAN
	};

	j.draws = draws_of(NULL, 11, id);
	return j;
}

TEST(test_unknown_worlds_are_refused_with_the_nearest_name)
{
	struct world_params p = { .given = &two_cores, .trace = &trace };
	struct world *w = NULL;
	struct err err = { 0 };

	p.spec = "quueing:file.json";
	assert_int_equal(world_open(&p, &w, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "no world 'quueing:file.json'; did you mean 'queueing'?"));
	p.spec = "";
	assert_int_equal(world_open(&p, &w, &err), -ERR_ARG);
	p.spec = "measured-by-somebody-with-a-long-name-and-more:x";
	assert_int_equal(world_open(&p, &w, &err), -ERR_ARG);
	p.spec = "measured";
	assert_int_equal(world_open(&p, &w, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "measured:TABLE.csv"));
	assert_null(w);
	world_free(NULL);
	world_run_free(NULL);
}

TEST(test_every_world_says_what_it_is)
{
	static const char *const names[] = { "measured", "queueing", "fluid" };

	for (int i = 0; i < WORLDS; i++) {
		struct world *w = opened(specs[i]);
		struct strbuf out = { 0 };
		struct json_writer j;
		struct json *v = NULL;
		const double *batch = NULL;
		char said[512] = "x";
		size_t n = world_batches(w, &batch);

		assert_string_equal(world_name(w), names[i]);
		assert_true(world_cluster(w)->cores == 2.0 && world_given(w)->cores == 2.0);
		assert_true(world_folds(w) >= 1 && n >= 1);
		for (size_t b = 1; b < n; b++)
			assert_true(batch[b] > batch[b - 1]);
		for (size_t f = 0; f < world_folds(w); f++) {
			world_split_text(w, f, said, sizeof said);
			assert_true(strlen(said) > 10);
			world_split_text(w, f, said, 5);
			assert_true(strlen(said) == 4);
		}
		world_split_text(w, 99, said, sizeof said);
		assert_string_equal(said, "");
		json_begin(&j, &out, false);
		json_open(&j, '{');
		world_describe(w, &j);
		json_close(&j, '}');
		assert_int_equal(json_parse("describe", out.text, out.len, &v, NULL), 0);
		assert_non_null(json_string(json_get(v, "title"), NULL));
		json_free(v);
		strbuf_release(&out);
		world_free(w);
	}
}

TEST(test_folds_beyond_the_last_are_refused)
{
	for (int i = 0; i < WORLDS; i++) {
		struct world *w = opened(specs[i]);
		struct world_run *r = NULL;
		struct csv *t = NULL;
		struct err err = { 0 };

		assert_int_equal(world_run_new(w, world_folds(w), &r, &err), -ERR_ARG);
		assert_int_equal(world_training(w, world_folds(w), 1, &t, &err), -ERR_ARG);
		assert_non_null(strstr(err.text, world_name(w)));
		world_free(w);
	}
}

TEST(test_starts_that_make_no_sense_are_refused)
{
	for (int i = 0; i < WORLDS; i++) {
		struct world *w = opened(specs[i]);
		struct world_run *r = new_run(w);
		struct world_job bad[4] = { a_job(1), a_job(1), a_job(1), a_job(1) }, good = a_job(2);
		struct world_end e;
		struct err err = { 0 };

		bad[0].kind = KINDS;
		bad[1].batch = NAN;
		bad[2].batch = -64.0;
		bad[3].epochs = -1.0;
		for (int k = 0; k < 4; k++)
			assert_int_equal(world_run_start(r, 100, &bad[k], &err), -ERR_ARG);
		assert_int_equal(world_run_next(r), WORLD_NEVER);
		assert_int_equal(world_run_start(r, 100, &good, NULL), 0);
		good = a_job(3);
		assert_int_equal(world_run_start(r, 99, &good, &err), -ERR_ARG); /* time runs forward */
		assert_int_equal(world_run_start(r, world_run_next(r) + 1, &good, &err),
				 -ERR_ARG); /* and skips no end */
		assert_true(world_run_end(r, &e) && e.id == 2 && !world_run_end(r, &e));
		world_run_free(r);
		world_free(w);
	}
}

struct course { /* of a run: how it stands, and sums for Little's law */
	struct world_run *run;
	size_t running;
	int64_t now_ns, started_ns[256];
	double jobs, responses; /* integral of the jobs there, and sum of the times that they were there */
};

static void pass(struct course *c, int64_t to_ns)
{
	assert_true(to_ns >= c->now_ns);
	c->jobs += (double)c->running * (double)(to_ns - c->now_ns);
	c->now_ns = to_ns;
}

static void play_end(struct course *c)
{
	int64_t next = world_run_next(c->run);
	struct world_end e;

	assert_true(next != WORLD_NEVER);
	pass(c, next);
	assert_true(world_run_end(c->run, &e));
	c->running--;
	assert_int_equal(e.at_ns, next);
	assert_true(e.at_ns > c->started_ns[e.id]); /* nobody takes no time */
	assert_true(e.processes >= 1.0 && e.njobs >= 1.0 && e.njobs <= 8.0 + 1e-9 && !e.failed);
	c->responses += (double)(e.at_ns - c->started_ns[e.id]);
}

/* Jobs that come by chance, as many as 8 at a time. */
static void play(struct course *c, uint64_t from, uint64_t to)
{
	struct rng draw = rng_stream(from, 5);

	for (uint64_t id = from; id < to;) {
		struct world_job j = a_job(id);
		int64_t at, next;

		if (c->running >= 8 || (c->running && rng_uniform(&draw) < 0.5)) {
			play_end(c);
			continue;
		}
		at = c->now_ns + (int64_t)(2e8 * rng_exponential(&draw));
		next = world_run_next(c->run);
		pass(c, at < next ? at : next);
		assert_int_equal(world_run_start(c->run, c->now_ns, &j, NULL), 0);
		c->started_ns[id++] = c->now_ns;
		c->running++;
	}
}

TEST(test_littles_law_holds_and_no_more_works_than_the_cores)
{
	for (int i = 0; i < WORLDS; i++) {
		struct world *w = opened(specs[i]);
		struct course c = { .run = new_run(w) };
		struct world_end e;

		play(&c, 1, 150);
		while (c.running)
			play_end(&c);
		assert_false(world_run_end(c.run, &e));
		assert_int_equal(world_run_next(c.run), WORLD_NEVER);
		assert_true(c.jobs > 0.0 && fabs(c.jobs - c.responses) <= 1e-9 * c.jobs);
		assert_true(world_run_busy_s(c.run) > 0.0);
		assert_true(world_run_busy_s(c.run) <= 2.0 * 1e-9 * (double)c.now_ns * (1.0 + 1e-9));
		assert_true(world_run_events(c.run) >= 2 * 149);
		world_run_free(c.run);
		world_free(w);
	}
}

TEST(test_a_copy_goes_on_as_the_original_does_and_the_same_again)
{
	for (int i = 0; i < WORLDS; i++) {
		struct world *w = opened(specs[i]), *other = opened(specs[i]);
		struct world_run *a = new_run(w), *b = new_run(w), *again = new_run(other);
		struct course first = { .run = a }, second = { .run = again };
		struct world_end x, y, z;
		struct err err = { 0 };

		assert_int_equal(world_run_copy(b, again, &err), -ERR_ARG); /* of another world */
		play(&first, 1, 40);
		play(&second, 1, 40);
		assert_int_equal(world_run_copy(b, a, NULL), 0);
		assert_int_equal(world_run_copy(a, a, NULL), 0);
		while (world_run_end(a, &x)) {
			assert_true(world_run_end(b, &y) && world_run_end(again, &z));
			assert_int_equal(x.id, y.id);
			assert_int_equal(x.at_ns, y.at_ns);
			assert_int_equal(x.id, z.id);
			assert_int_equal(x.at_ns, z.at_ns);
			assert_true(x.accuracy == y.accuracy && x.processes == y.processes &&
				    x.njobs == y.njobs);
			assert_true(x.accuracy == z.accuracy && x.processes == z.processes &&
				    x.njobs == z.njobs);
		}
		assert_false(world_run_end(b, &y));
		assert_true(world_run_busy_s(a) == world_run_busy_s(b) &&
			    world_run_busy_s(a) == world_run_busy_s(again));
		world_run_free(a);
		world_run_free(b);
		world_run_free(again);
		world_free(w);
		world_free(other);
	}
}

TEST(test_equal_jobs_end_together_by_id)
{
	struct world *w = opened(specs[0]);
	struct world_run *r = new_run(w);
	struct world_end e[3];

	for (int i = 0; i < 3; i++) {
		struct world_job j = a_job(4);

		j.id = (const uint64_t[]){ 30, 10, 20 }[i];
		assert_int_equal(world_run_start(r, 1234567891, &j, NULL), 0);
	}
	for (int i = 0; i < 3; i++)
		assert_true(world_run_end(r, &e[i]));
	assert_true(e[0].id == 10 && e[1].id == 20 && e[2].id == 30);
	assert_true(e[0].at_ns == e[1].at_ns && e[1].at_ns == e[2].at_ns);
	world_run_free(r);
	world_free(w);
}

TEST(test_training_tables_have_rows_that_models_can_learn_from)
{
	for (int i = 0; i < WORLDS; i++) {
		struct world *w = opened(specs[i]);
		struct csv *t = NULL;
		struct err err = { 0 };

		if (world_training(w, 0, 5, &t, &err))
			fail_msg("%s: %s", specs[i], err.text);
		assert_true(t->n_rows >= 50);
		assert_true(csv_column(t, "time_s") >= 0 && csv_column(t, "batch") >= 0 &&
			    csv_column(t, "njobs") >= 0);
		csv_free(t);
		world_free(w);
	}
}

TEST(test_what_ifs_change_the_machine_and_not_the_one_given)
{
	const struct cluster eight = { .cores = 8.0, .slots = 16, .nodes = 1, .memory_mb = INFINITY };
	struct what_if what = { 0 };
	struct world_params p = {
		.spec = "fluid", .given = &two_cores, .cluster = &eight, .what = &what, .trace = &trace
	};
	struct world *w = NULL;

	assert_int_equal(what_if_set(&what, WHAT_SLOTS, 5, NULL), 0);
	assert_int_equal(world_open(&p, &w, NULL), 0);
	assert_true(world_cluster(w)->cores == 8.0 && world_cluster(w)->slots == 5);
	assert_true(world_given(w)->cores == 2.0 && world_given(w)->slots == 4);
	world_free(w);
}
