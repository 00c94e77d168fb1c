/* One set of claims over every entry of the table of policies, each with the model it wants, trained on the
 * committed measurements of the reference job. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "predictors/search/train.h"
#include "scheduler/core/sched.h"
#include "tests/support/test.h"

#define LIVE 64
#define EVENTS 400

struct world {
	struct policy_choice policy;
	struct model *m;
	struct job_values values[4];
	struct sched_machine machine;
};

/* Every fourth row of the table: enough for models that are only to be asked. */
static struct csv *read_some(void)
{
	FILE *f = fopen("configs/profiles/two-cores/runs.csv", "r");
	struct strbuf text = { 0 };
	struct csv *csv;
	char line[512];

	assert_non_null(f);
	for (int i = 0; fgets(line, sizeof line, f); i++)
		if (i == 0 || i % 4 == 1)
			strbuf_puts(&text, line);
	fclose(f);
	assert_int_equal(csv_parse("runs.csv", strbuf_text(&text), text.len, &csv, NULL), 0);
	strbuf_release(&text);
	return csv;
}

static struct model *train(const struct policy *policy)
{
	const char *name = policy->predictor ? policy->predictor
					     : "queueing"; /* any, and this is soon trained */
	struct grid_point time = { .ops = predictor_find(name) },
			  accuracy = { .ops = predictor_find("forest") };
	struct grid time_grid = { &time, 1 }, accuracy_grid = { &accuracy, 1 };
	struct train_report report = { 0 };
	struct schema *given, *schema;
	struct csv *csv = read_some();
	struct table *table;
	struct model *m;
	struct err err = { 0 };
	struct train_params p = { .grid = &time_grid,
				  .accuracy_grid = &accuracy_grid,
				  .split = { .kind = SPLIT_KFOLD, .folds = 3, .seed = 1 },
				  .ctx = { .seed = 1, .want_oob = true },
				  .data_name = "runs.csv",
				  .created = "2026-01-01T00:00:00Z",
				  .program = "test" };

	settings_init(&time.settings, time.ops->spec);
	settings_init(&accuracy.settings, accuracy.ops->spec);
	if (policy->settings && settings_parse(&time.settings, policy->settings, &err))
		fail_msg("%s", err.text);
	settings_parse(&time.settings, "trees=20", NULL); /* where there are trees, few will do */
	settings_parse(&accuracy.settings, "trees=20", NULL);
	if (schema_default(&given, &err) || policy_schema(policy, given, &schema, &err) ||
	    table_read(csv, schema, true, &table, &err))
		fail_msg("%s", err.text);
	p.table = table;
	if (train_model(&p, &m, &report, &err) || model_compile(m, &err))
		fail_msg("%s: %s", policy->name, err.text);
	train_report_release(&report);
	table_free(table);
	csv_free(csv);
	schema_free(schema);
	schema_free(given);
	return m;
}

static struct world worlds[16];
static size_t n_worlds, n_unstable;

static int make_worlds(void **state)
{
	(void)state;
	for (; policy_all[n_worlds]; n_worlds++) {
		struct world *w = &worlds[n_worlds];
		char text[96];

		w->policy = (struct policy_choice){ .policy = policy_all[n_worlds],
						    .batch = policy_all[n_worlds]->takes_batch ? 100 : NAN };
		w->m = train(policy_all[n_worlds]);
		w->machine = (struct sched_machine){ .cores = 2, .slots = 5, .memory_mb = 4000 };
		for (int i = 0; i < 4; i++) {
			job_values_init(&w->values[i], w->m->schema, NULL);
			snprintf(text, sizeof text, "network=%s,epochs=%d,samples=12000",
				 i % 2 ? "lenet5" : "simplenet", 2 + 2 * (i / 2));
			assert_int_equal(job_values_parse(&w->values[i], w->m->schema, text, NULL), 0);
		}
	}
	return 0;
}

static int drop_worlds(void **state)
{
	(void)state;
	for (size_t k = 0; k < n_worlds; k++) {
		for (int i = 0; i < 4; i++)
			job_values_release(&worlds[k].values[i]);
		model_free(worlds[k].m);
	}
	return 0;
}

TEST_GROUP(make_worlds, drop_worlds);

struct run {
	const struct world *w;
	struct sched *s;
	struct rng rng;
	uint64_t ids, digest;
	int64_t now_ns;
	struct {
		uint64_t id;
		bool promised;
		double batch;
		const double *list;
		size_t n;
	} live[LIVE];
	size_t n_live, n_admitted, n_started;
	struct decision d;
};

static const double list[] = { 32, 64, 96, 128, 256, 512 };

static void add(struct run *r, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		r->digest = rng_mix(r->digest ^ ((const unsigned char *)bytes)[i]);
}

/* What every decision owes: a batch of the job's list, and no invented or missing numbers. */
static void check_decision(struct run *r, const double *batch, size_t n)
{
	const struct policy *p = r->w->policy.policy;
	const struct decision *d = &r->d;

	assert_int_equal(d->n_candidates, n);
	assert_in_range(d->chosen + 1, 0, n);
	for (size_t i = 0; i < n; i++) {
		const struct candidate *c = &d->candidate[i];

		assert_true(c->decision == batch[i]);
		assert_true(isfinite(c->accuracy));
		if (p->open_queue && isnan(c->time_s)) { /* a queue without a steady state */
			assert_true((c->reasons & REASON_UNSTABLE) && !c->feasible);
			n_unstable++;
			continue;
		}
		assert_true(isfinite(c->time_s) && isfinite(c->upper_s));
		assert_true(isfinite(c->wait_s) && isfinite(c->wait_upper_s) && c->wait_s >= 0.0);
		assert_true(isfinite(c->work_s) && c->work_s >= 0.0 && c->cpu_share >= 0.0 &&
			    c->disk_share >= 0.0);
		assert_true(c->cpu_share + c->disk_share <= 1.0 + 1e-9);
		assert_true(!p->looks_ahead ? c->wait_s == 0.0 && c->delays_s == 0.0 && !c->breaks
					    : !(c->breaks && c->feasible));
		if (c->feasible && (int)i != d->chosen && d->chosen >= 0)
			assert_true(c->reasons != 0);
		add(r, &c->time_s, sizeof c->time_s);
		add(r, &c->upper_s, sizeof c->upper_s);
		add(r, &c->wait_s, sizeof c->wait_s);
	}
	add(r, &d->chosen, sizeof d->chosen);
}

static void arrive(struct run *r)
{
	const struct policy *p = r->w->policy.policy;
	size_t first = rng_below(&r->rng, 4), n = 1 + rng_below(&r->rng, (uint32_t)(6 - first));
	struct sched_request q = {
		.id = ++r->ids,
		.values = &r->w->values[rng_below(&r->rng, 4)],
		.cpus = 1 + rng_below(&r->rng, 2),
		.batch = list + first,
		.n_batches = n,
		.slo_s = rng_below(&r->rng, 5) ? 2.0 + 20.0 * rng_exponential(&r->rng) : NAN,
		.confidence = 0.9,
		.best_effort = rng_below(&r->rng, 3) == 0,
		.memory_mb = 500,
		.memory_mb_per_record = NAN,
		.max_memory_mb = NAN,
	};
	enum sched_verdict verdict;
	struct err err = { 0 };

	if (r->n_live == LIVE)
		return;
	if (sched_submit(r->s, r->now_ns, &q, &r->d, &verdict, &err))
		fail_msg("%s: %s", p->name, err.text);
	check_decision(r, q.batch, n);
	if (p->admits_all)
		assert_int_not_equal(verdict, SCHED_REJECTED);
	if (verdict == SCHED_REJECTED) {
		assert_int_equal(r->d.chosen, -1);
		return;
	}
	if (!p->admits_all && (verdict == SCHED_PROMISED || isnan(q.slo_s)))
		assert_true(r->d.candidate[r->d.chosen].feasible);
	r->live[r->n_live].id = q.id;
	r->live[r->n_live].promised = verdict == SCHED_PROMISED;
	r->live[r->n_live].batch = r->d.candidate[r->d.chosen].decision;
	r->live[r->n_live].list = q.batch;
	r->live[r->n_live++].n = n;
	r->n_admitted++;
}

static void start_all(struct run *r)
{
	const struct policy *p = r->w->policy.policy;
	uint64_t id;

	while (sched_next(r->s, r->now_ns, &id, &r->d)) {
		size_t i = 0;

		while (i < r->n_live && r->live[i].id != id)
			i++;
		assert_true(i < r->n_live);
		check_decision(r, r->live[i].list, r->live[i].n);
		assert_true(r->d.chosen >= 0);
		if (p->choose) /* what was drawn on arrival stays */
			assert_true(r->d.candidate[r->d.chosen].decision == r->live[i].batch);
		r->n_started++;
	}
	assert_true(sched_slots_used(r->s) <= r->w->machine.slots);
}

static void end_one(struct run *r)
{
	size_t running[LIVE], n = 0, gone;

	for (size_t i = 0; i < r->n_live; i++) {
		struct sched_estimate e;

		assert_int_equal(sched_estimate(r->s, r->now_ns, r->live[i].id, &e, NULL), 0);
		assert_true(isfinite(e.start_s) && e.start_s >= 0.0 && e.end_s >= e.start_s);
		assert_true(e.end_low_s <= e.end_s && e.end_s <= e.end_high_s);
		if (e.start_s == 0.0 && n < sched_running(r->s))
			running[n++] = i;
	}
	if (!n)
		return;
	gone = running[rng_below(&r->rng, (uint32_t)n)];
	assert_int_equal(sched_remove(r->s, r->now_ns, r->live[gone].id, NULL), 0);
	r->live[gone] = r->live[--r->n_live];
}

static uint64_t play(const struct world *w, uint64_t seed)
{
	struct sched_params p = {
		.policy = w->policy, .model = w->m, .machine = w->machine, .max_jobs = LIVE, .seed = seed
	};
	struct run *r = calloc(1, sizeof *r);
	struct err err = { 0 };
	uint64_t digest;

	r->w = w;
	r->rng = rng_stream(seed, 5);
	if (sched_new(&p, &r->s, &err))
		fail_msg("%s: %s", w->policy.policy->name, err.text);
	mem_fail_at(1, true); /* nothing may be allocated from here on */
	for (int i = 0; i < EVENTS; i++) {
		r->now_ns += (int64_t)(1e9 * rng_exponential(&r->rng));
		if (rng_below(&r->rng, 5) < 3)
			arrive(r);
		else
			end_one(r);
		start_all(r);
	}
	while (r->n_live) {
		r->now_ns += 100000000;
		end_one(r);
		start_all(r);
	}
	assert_false(mem_failed());
	mem_fail_at(0, false);
	assert_int_equal(r->n_started, r->n_admitted);
	assert_true(r->n_admitted > EVENTS / 20);
	digest = r->digest;
	sched_free(r->s);
	free(r);
	return digest;
}

TEST(test_every_policy_accepts_the_model_trained_for_it)
{
	for (size_t i = 0; i < n_worlds; i++)
		assert_int_equal(policy_accepts(&worlds[i].policy, worlds[i].m, NULL), 0);
}

TEST(test_every_policy_keeps_to_the_rules_over_random_events)
{
	for (size_t i = 0; i < n_worlds; i++)
		assert_true(play(&worlds[i], 1) != 0);
	assert_true(n_unstable > 0); /* card has met a queue without a steady state */
}

TEST(test_every_policy_gives_the_same_answers_again)
{
	for (size_t i = 0; i < n_worlds; i++) {
		uint64_t first = play(&worlds[i], 2);

		assert_true(play(&worlds[i], 2) == first);
		assert_true(play(&worlds[i], 3) != first);
	}
}

/* The look-ahead's stretch and the calibrated model are the same law: a job's time under a load is its time
 * alone, stretched. */
TEST(test_shares_of_the_queueing_model_explain_its_times)
{
	const struct world *w = NULL;

	for (size_t i = 0; i < n_worlds; i++)
		if (!strcmp(worlds[i].policy.policy->name, "queueing"))
			w = &worlds[i];
	assert_non_null(w);
	for (int k = 0; k < 4; k++) {
		const struct predictor *time = &w->m->time.predictor;
		struct fluid_machine machine = decide_machine(w->m, 99, 8);
		struct fluid_job job = { .cpus = 1 + (uint32_t)k % 3 };
		struct job_values v = w->values[k];
		struct work_shares of;
		double alone[64], among[64], t[2];
		int batch = schema_find(w->m->schema, "batch"), cpus = schema_find(w->m->schema, "cpus");
		int processes = schema_find_any(w->m->schema, "processes");

		v.number[batch] = 64 << k;
		v.number[cpus] = job.cpus;
		v.number[processes] = job.cpus;
		features_encode_job(w->m->features, &v, alone);
		for (double p = job.cpus; p < 12; p += 1.37) {
			v.number[processes] = p;
			features_encode_job(w->m->features, &v, among);
			time->ops->predict(time->self, alone, 1, &t[0]);
			time->ops->predict(time->self, among, 1, &t[1]);
			time->ops->shares(time->self, among, &of);
			job.cpu_share = of.cpu;
			job.disk_share = of.disk;
			assert_true(job.cpu_share + job.disk_share < 1.0 + 1e-12);
			assert_true(fabs(t[0] * decide_stretch(&machine, &job, p) / t[1] - 1.0) < 1e-9);
		}
		v.number[batch] = v.number[cpus] = v.number[processes] = NAN;
	}
}
