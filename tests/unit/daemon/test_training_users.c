/* A fifth of all observations that a training learns from is hostile: lies about accuracies and times, by
 * one user or by three. What an honest user is told of accuracies moves by less than the noise of that user's
 * runs, and no batch changes. BARS=1: 60 seeds. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/data/table.h"
#include "predictors/model.h"
#include "scheduler/daemon/learn/training_data.h"
#include "scheduler/daemon/learn/training_thread.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/training_world.h"

#define NOISE 0.01 /* of accuracies */
#define HONEST 4
#define ROWS 60 /* of each of them, and of the hostile ones together */
#define BATCHES 4

static const double batches[BATCHES] = { 64, 128, 256, 512 };

struct attack {
	const char *name;
	double only; /* runs with this batch alone; 0: with all */
	double at; /* lies at this batch; 0: at all */
	double more; /* accuracy */
	double times; /* factor */
};

static const struct attack attacks[] = {
	{ "large batches are said to be as good as any", 0, 512, 0.2, 1 },
	{ "nothing else is run", 512, 512, 0.2, 1 },
	{ "just what may pass", 512, 512, 0.8 * NOISE, 1 },
	{ "small batches are said to be bad", 64, 64, -0.3, 1 },
	{ "all are said to be a little better", 0, 0, 3.0 * NOISE, 1 },
	{ "all are said to be fast", 0, 0, 0, 0.3 },
	{ "small ones are said to be slow", 0, 64, 0, 3 },
};
enum { ATTACKS = sizeof attacks / sizeof *attacks };

static void put(struct strbuf *out, size_t row, const char *name, const char *text, double number)
{
	store_observation_put_value(out, row, &(struct observed){ name, text, number });
}

/* a NULL: an honest run. All run on a machine that has become slower, so that a training is worth it. */
static void add_row(struct strbuf *out, size_t job, int64_t uid, const struct attack *a, struct rng *r,
		    double speed)
{
	bool big = rng_below(r, 2), lies;
	double batch = a && a->only > 0.0 ? a->only : batches[rng_below(r, BATCHES)];
	double epochs = 2 + rng_below(r, 3), steps = epochs * 12000.0 / batch;
	double time = 0.3 + steps * (0.002 + (big ? 4e-5 : 1e-5) * batch);
	double accuracy = 0.95 - 3e-4 * batch + 0.01 * epochs + NOISE * rng_normal(r);
	size_t row = store_observation_put(out, job, 0, uid);

	lies = a && (!(a->at > 0.0) || a->at == batch);
	time *= speed * exp(0.05 * rng_normal(r)) * (lies ? a->times : 1.0);
	put(out, row, "network", big ? "lenet5" : "simplenet", NAN);
	put(out, row, "cpus", NULL, 1);
	put(out, row, "njobs", NULL, 1);
	put(out, row, "batch", NULL, batch);
	put(out, row, "epochs", NULL, epochs);
	put(out, row, "samples", NULL, 12000);
	put(out, row, "time_s", NULL, time);
	put(out, row, "accuracy", NULL, accuracy + (lies ? a->more : 0.0));
}

/* Honest rows are the same with and without the others. */
static char *rows_of(uint64_t seed, const struct attack *a, int liars, double speed, size_t *out_len)
{
	struct rng honest = rng_stream(seed, 1), hostile = rng_stream(seed, 2);
	struct strbuf out = { 0 };

	for (size_t i = 0; i < ROWS; i++) {
		for (int64_t u = 0; u < HONEST; u++)
			add_row(&out, 10 * i + (size_t)u + 1, 1000 + u, NULL, &honest, speed);
		if (a)
			add_row(&out, 10 * i + 9, 2000 + (int64_t)i % liars, a, &hostile, speed);
	}
	*out_len = out.len;
	return out.text;
}

static struct trainer *trainer(const char *table)
{
	static int n;
	static struct config_learning c;
	char name[32];
	struct trainer_params p = { .learning = &c, .cores = 2, .seed = 1, .program = "test" };
	struct trainer *l = NULL;
	struct err err = { 0 };

	c = (struct config_learning){ .retrain_after = 200,
				      .min_observations = 30,
				      .test_jobs = 50,
				      .significance = 0.05,
				      .keep_versions = 10,
				      .table = (char *)table };
	snprintf(name, sizeof name, "users%d", n++);
	p.folder = support_path(support_temp_dir(), name);
	if (policy_parse("postrider", &p.policy, &err) || trainer_new(&p, &l, &err))
		fail_msg("%s", err.text);
	return l;
}

static struct training_result learn(struct trainer *l, char *rows, size_t len, const char *model)
{
	struct pollfd p;
	struct training_result r = { 0 };
	struct err err = { 0 };

	if (trainer_start(l, rows, len, model, "a test", &err))
		fail_msg("%s", err.text);
	p = (struct pollfd){ .fd = trainer_fd(l), .events = POLLIN };
	assert_int_equal(poll(&p, 1, 400000), 1);
	assert_true(trainer_poll(l, &r));
	if (r.err.code)
		fail_msg("%s", r.err.text);
	return r;
}

struct told { /* of either network, each batch */
	double time_s[2][BATCHES], accuracy[2][BATCHES];
};

static void ask(const struct model *m, struct told *out)
{
	struct strbuf text = { 0 };
	struct csv *csv = NULL;
	struct table *t = NULL;
	double *x = NULL;

	strbuf_puts(&text, "network,cpus,njobs,batch,epochs,samples,time_s,accuracy\n");
	for (int k = 0; k < 2; k++)
		for (int b = 0; b < BATCHES; b++)
			strbuf_printf(&text, "%s,1,1,%g,3,12000,1,0.5\n", k ? "lenet5" : "simplenet",
				      batches[b]);
	assert_int_equal(csv_parse("q", text.text, text.len, &csv, NULL), 0);
	assert_int_equal(table_read(csv, m->schema, TABLE_NEEDS_FACTORS, &t, NULL), 0);
	assert_int_equal(features_encode_table(m->features, t, &x, NULL), 0);
	predictor_predict(&m->time.predictor, x, 2 * BATCHES, &out->time_s[0][0]);
	predictor_predict(&m->accuracy.predictor, x, 2 * BATCHES, &out->accuracy[0][0]);
	free(x);
	table_free(t);
	csv_free(csv);
	strbuf_release(&text);
}

/* The most accurate in time. */
static int choice(const struct told *t, int k, double limit_s)
{
	int best = -1;

	for (int b = 0; b < BATCHES; b++)
		if (t->time_s[k][b] <= limit_s && (best < 0 || t->accuracy[k][b] > t->accuracy[k][best]))
			best = b;
	return best;
}

/* The model after a training on these rows; where it is not taken, the one before. */
static void after(uint64_t seed, const struct attack *a, int liars, const char *first, struct told *out)
{
	struct trainer *l = trainer(NULL);
	struct model *old = NULL;
	size_t len;
	char *rows = rows_of(seed, a, liars, 1.6, &len);
	struct training_result r = learn(l, rows, len, first);

	if (!r.accepted)
		assert_int_equal(model_load(first, &old, NULL), 0);
	ask(r.accepted ? r.model : old, out);
	model_free(old);
	training_result_release(&r);
	trainer_free(l);
}

static double attack(uint64_t seed, const struct attack *a, int liars, const char *first,
		     const struct told *honest)
{
	struct told told;
	double most = 0.0;

	after(seed, a, liars, first, &told);
	for (int k = 0; k < 2; k++) {
		for (int b = 0; b < BATCHES; b++) {
			double limit_s = 1.2 * honest->time_s[k][b];

			most = fmax(most, fabs(told.accuracy[k][b] - honest->accuracy[k][b]) / NOISE);
			if (choice(&told, k, limit_s) != choice(honest, k, limit_s))
				fail_msg("seed %d, %d: %s: batch %d in place of %d", (int)seed, liars,
					 a->name, choice(&told, k, limit_s), choice(honest, k, limit_s));
		}
	}
	return most;
}

TEST(test_a_hostile_fifth_moves_no_decision)
{
	int seeds = getenv("BARS") ? 60 : 2;
	double most = 0.0;

	for (int seed = 1; seed <= seeds; seed++) {
		struct trainer *l = trainer(NULL);
		size_t len;
		char *rows = rows_of(1000 + (uint64_t)seed, NULL, 1, 1.0, &len);
		struct training_result first = learn(l, rows, len, NULL);
		struct told honest;

		assert_true(first.accepted);
		after((uint64_t)seed, NULL, 1, first.path, &honest);
		for (size_t i = 0; i < ATTACKS; i++) {
			for (int liars = 1; liars <= 3; liars += 2) {
				double moved =
					attack((uint64_t)seed, &attacks[i], liars, first.path, &honest);

				most = fmax(most, moved);
				if (!(moved < 1.0))
					fail_msg("seed %d, %d: %s: accuracies move by %.2f of their noise",
						 seed, liars, attacks[i].name, moved);
			}
		}
		training_result_release(&first);
		trainer_free(l);
	}
	if (getenv("BARS"))
		printf("accuracies move by at most %.2f of their noise\n", most);
}

/* A change that all users see is learnt, whoever they are. */
TEST(test_what_all_see_is_learnt)
{
	struct trainer *l = trainer(NULL);
	size_t len;
	char *rows = rows_of(7, NULL, 1, 1.0, &len);
	struct training_result first = learn(l, rows, len, NULL), next;
	struct told before, told;

	assert_true(first.accepted);
	ask(first.model, &before);
	rows = rows_of(8, NULL, 1, 1.6, &len);
	next = learn(l, rows, len, first.path);
	assert_true(next.accepted);
	assert_null(strstr(next.version.message, "left out"));
	assert_int_equal(next.version.observations, HONEST * ROWS);
	ask(next.model, &told);
	assert_true(told.time_s[0][0] > 1.4 * before.time_s[0][0]);
	training_result_release(&first);
	training_result_release(&next);
	trainer_free(l);
}

static void rows_make(struct training_rows *r, const int64_t *uid, size_t n)
{
	*r = (struct training_rows){ .n = n };
	r->at = calloc(n, sizeof *r->at);
	r->uid = calloc(n, sizeof *r->uid);
	for (size_t i = 0; i < n; i++) {
		r->at[i] = i;
		r->uid[i] = uid ? uid[i] : i < n - 10 ? 1 : 2;
	}
}

TEST(test_a_user_has_no_more_rows_than_all_others_and_the_operator)
{
	struct training_rows r;

	rows_make(&r, NULL, 110); /* 100 of one, 10 of another */
	assert_int_equal(training_rows_share(&r, NULL, 40, NULL), 0);
	assert_int_equal(r.n, 60);
	assert_int_equal(r.n_left_out, 50);
	assert_int_equal(r.at[0], 50); /* the latest stay */
	training_rows_release(&r);
	rows_make(&r, NULL, 110);
	for (size_t i = 0; i < r.n; i++)
		r.uid[i] = 1;
	assert_int_equal(training_rows_share(&r, NULL, 0, NULL), 0); /* there is nobody else */
	assert_int_equal(r.n, 110);
	training_rows_release(&r);
}

TEST(test_no_user_alone_judges_a_new_model)
{
	const int64_t uid[] = { 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1 };
	struct training_rows r;
	size_t own = 0;

	rows_make(&r, uid, 12);
	training_rows_spread(&r, 6);
	for (size_t i = 6; i < 12; i++)
		own += r.uid[i] == 1;
	assert_int_equal(own, 3);
	for (size_t i = 0, sum = 0; i < 12; i++) { /* none is lost */
		sum += r.at[i];
		assert_true(i < 11 || sum == 66);
	}
	training_rows_release(&r);
}
