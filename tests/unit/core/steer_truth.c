/* See steer_truth.h. 8 epochs, 5 batches; an epoch of batch b takes 2 + 640 / b seconds, and what counts
 * for the accuracy is the iterations. */
#include "tests/unit/core/steer_truth.h"

#include <math.h>

#include "common/rng.h"
#include "common/stats.h"
#include "tests/unit/core/sched_bed.h"

#define EPOCHS 8
#define BATCHES 5
#define NOISE 0.03 /* of an epoch */
#define STRETCH 1.5 /* by the neighbour: three processes on two cores */
#define RESIDUALS 99

enum { CPUS = 1, NJOBS, BATCH, AT_EPOCHS, PROCESSES, FEATURES };

static double epoch_s(double batch)
{
	return 2.0 + 640.0 / batch;
}

static double accuracy_of(double effort)
{
	return 0.3 + 0.6 / (1.0 + pow(effort / 0.04, -1.5));
}

static void truth_time(const void *self, const double *x, size_t n_rows, double *out)
{
	(void)self;
	for (size_t i = 0; i < n_rows; i++, x += FEATURES)
		out[i] = x[AT_EPOCHS] * epoch_s(x[BATCH]) * fmax(2.0, x[PROCESSES]) / fmax(2.0, x[CPUS]);
}

static void truth_accuracy(const void *self, const double *x, size_t n_rows, double *out)
{
	(void)self;
	for (size_t i = 0; i < n_rows; i++)
		out[i] = accuracy_of(x[i * FEATURES + AT_EPOCHS] / x[i * FEATURES + BATCH]);
}

/* The quantiles of the normal law, by halving. */
static double quantile(double p)
{
	double low = -8.0, high = 8.0;

	for (int i = 0; i < 60; i++) {
		double middle = 0.5 * (low + high);

		if (0.5 * erfc(-middle / sqrt(2.0)) < p)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void make_truth(struct bed *b, const struct steer_truth *t)
{
	static const char text[] = "network,cpus,njobs,batch,epochs,time_s,accuracy\n"
				   "a,1,1,32,1,1,1\na,8,9,1024,16,1,1\n";
	static struct predictor_ops time_ops, accuracy_ops;
	struct conformal *c;
	struct csv *csv;
	struct table *table;

	make(b, "postrider", 2);
	hand_start = 0.0;
	features_free(b->m->features);
	assert_int_equal(csv_parse("t", text, strlen(text), &csv, NULL), 0);
	assert_int_equal(table_read(csv, b->m->schema, true, &table, NULL), 0);
	assert_int_equal(features_fit(table, &b->m->features, NULL), 0);
	assert_int_equal(b->m->features->n, FEATURES);
	table_free(table);
	csv_free(csv);
	assert_int_equal(job_values_parse(&b->values, b->m->schema, "epochs=8", NULL), 0);
	time_ops = hand_hybrid;
	time_ops.predict = truth_time;
	accuracy_ops = hand_forest;
	accuracy_ops.predict = truth_accuracy;
	b->m->time.predictor = (struct predictor){ .ops = &time_ops, .n_features = FEATURES };
	b->m->accuracy.predictor = (struct predictor){ .ops = &accuracy_ops, .n_features = FEATURES };
	c = &b->m->time.conformal;
	conformal_release(c);
	*c = (struct conformal){
		.n = RESIDUALS, .base = 1, .log = true, .score = calloc(RESIDUALS, sizeof(double))
	};
	for (int i = 0; i < RESIDUALS; i++)
		c->score[i] = t->spread * quantile((i + 1.0) / (RESIDUALS + 1.0));
	conformal_set_groups(c, RESIDUALS);
}

struct run { /* what really happens to one job */
	double pace, of_batch[BATCHES], noise[EPOCHS], limit_s, joins_s;
};

static struct run draw(const struct steer_truth *t, uint64_t job)
{
	struct rng rng = rng_stream(t->seed, job);
	double own = t->own * t->spread, common = sqrt(t->spread * t->spread - own * own);
	double least = log(1.2 * EPOCHS * epoch_s(512)), most = log(1.2 * EPOCHS * epoch_s(32));
	struct run r = { .pace = exp(common * rng_normal(&rng)), .joins_s = INFINITY };

	for (int i = 0; i < BATCHES; i++)
		r.of_batch[i] = exp(own * rng_normal(&rng));
	for (int e = 0; e < EPOCHS; e++)
		r.noise[e] = exp(NOISE * rng_normal(&rng));
	r.limit_s = exp(least + (most - least) * rng_uniform(&rng));
	if (rng_uniform(&rng) < t->joins)
		r.joins_s = r.limit_s * rng_uniform(&rng);
	return r;
}

/* When an epoch ends that begins at `at_s`. */
static double after_epoch_s(const struct run *r, int epoch, double batch, double at_s)
{
	int i = (int)lround(log2(batch / 32.0));
	double work_s = epoch_s(batch) * r->pace * r->of_batch[i] * r->noise[epoch];

	if (at_s + work_s <= r->joins_s)
		return at_s + work_s;
	if (at_s >= r->joins_s)
		return at_s + STRETCH * work_s;
	return r->joins_s + STRETCH * (work_s - (r->joins_s - at_s));
}

static double best_constant(const struct run *r)
{
	double best = 0.0;

	for (double batch = 32; batch <= 512; batch *= 2) {
		double at_s = 0.0;

		for (int e = 0; e < EPOCHS; e++)
			at_s = after_epoch_s(r, e, batch, at_s);
		if (at_s <= r->limit_s)
			best = fmax(best, accuracy_of(EPOCHS / batch));
	}
	return best;
}

/* Runs it as the scheduler says; returns when it ends. */
static double run_steered(struct bed *b, const struct run *r, double *out_effort, double *out_changes)
{
	double batch = b->d.candidate[b->d.chosen].decision, at_s = 0.0;
	bool joined = false;

	*out_effort = *out_changes = 0.0;
	for (int e = 0; e < EPOCHS; e++) {
		struct steer_report report = { .epoch = (uint32_t)e + 1, .epochs = EPOCHS, .accuracy = NAN };
		struct steer_answer a;

		at_s = after_epoch_s(r, e, batch, at_s);
		*out_effort += 1.0 / batch;
		if (!joined && at_s > r->joins_s) {
			joined = true;
			sched_set_other_load(b->s, (int64_t)(r->joins_s * 1e9), 1.0, NULL);
		}
		if (e + 1 == EPOCHS)
			break;
		assert_int_equal(sched_progress(b->s, (int64_t)(at_s * 1e9), 1, (e + 1.0) / EPOCHS, NULL), 0);
		assert_int_equal(sched_steer(b->s, (int64_t)(at_s * 1e9), 1, &report, &a, NULL), 0);
		assert_int_equal(a.last, EPOCHS);
		assert_true(a.changed == (a.batch != batch));
		*out_changes += a.changed;
		batch = a.batch;
	}
	return at_s;
}

struct steer_score steer_truth_play(const struct steer_truth *t)
{
	struct steer_score out = { 0 };
	struct bed b;
	unsigned kept = 0, promised = 0, taken = 0;

	make_truth(&b, t);
	for (unsigned k = 0; k < t->jobs; k++) {
		struct sched_params p = params(&b, t->policy, 2);
		struct run r = draw(t, k);
		struct sched_request q = job(&b, 1, r.limit_s);
		double effort, changes, end_s;

		p.max_jobs = 2;
		remake(&b, &p);
		q.steer = true;
		q.chance = t->chance;
		submit(&b, 0, &q);
		out.best += best_constant(&r) / t->jobs;
		if (b.verdict == SCHED_REJECTED || next(&b, 0) != 1)
			continue;
		end_s = run_steered(&b, &r, &effort, &changes);
		taken++;
		promised += b.verdict == SCHED_PROMISED;
		kept += b.verdict == SCHED_PROMISED && end_s <= r.limit_s;
		out.changes += changes;
		if (end_s <= r.limit_s)
			out.accuracy += accuracy_of(effort) / t->jobs;
	}
	drop(&b);
	out.kept = promised ? (double)kept / promised : 1.0;
	out.promised = (double)promised / t->jobs;
	out.taken = (double)taken / t->jobs;
	out.changes = taken ? out.changes / taken : 0.0;
	return out;
}
