/* Has every policy choose, and plays what they chose. See the header; paper_jobs.c makes the jobs. */
#include "sim/compare/paper_experiment.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/core/outcome.h"
#include "common/rng.h"
#include "common/text/text.h"
#include "scheduler/core/decide.h"

#define MAX_BATCHES 64
#define NS_PER_S 1e9

enum { STREAM_NAIVE = 0x9a9e02, STREAM_DRAWS };

static const char *const policy_name[PAPER_POLICIES] = {
	[PAPER_COURIER] = "courier",  [PAPER_POSTRIDER] = "postrider",   [PAPER_NAIVE] = "naive",
	[PAPER_BOOST] = "boost",      [PAPER_BOOST_FULL] = "boost-full", [PAPER_QUEUEING] = "queueing",
	[PAPER_FIXED] = "fixed:best", [PAPER_ORACLE] = "greedy-oracle",
};

/* ---- what a batch does, and what a policy chooses ---- */

struct play { /* one job, with every batch */
	double time_s[MAX_BATCHES], accuracy[MAX_BATCHES];
};

struct turn { /* a job that is played */
	const struct paper_job *job;
	size_t at, fold; /* its place in the set */
	uint64_t first_id, seed;
	struct world_run *run;
	int64_t now_ns;
};

static int play_batch(struct turn *t, double batch, double *out_time_s, double *out_accuracy, struct err *err)
{
	static const struct disturbances none = { 0 };
	size_t n = (size_t)t->job->njobs, n_accuracies = 0;
	double time_s = 0.0, accuracy = 0.0;
	struct world_end end;
	int rc = 0;

	for (uint64_t rep = 0; rep < PAPER_REPLICATIONS && !rc; rep++) {
		int64_t from_ns = t->now_ns;

		for (size_t k = 0; k < n && !rc; k++) {
			uint64_t id = t->first_id + rep * PAPER_MAX_NJOBS + k;
			struct world_job w = { .id = id,
					       .kind = t->job->kind,
					       .batch = batch,
					       .epochs = NAN,
					       .draws = draws_of(&none, t->seed, id) };

			rc = world_run_start(t->run, from_ns, &w, err);
		}
		while (!rc && world_run_end(t->run, &end)) {
			time_s += (double)(end.at_ns - from_ns) / NS_PER_S;
			if (!isnan(end.accuracy)) {
				accuracy += end.accuracy;
				n_accuracies++;
			}
			t->now_ns = end.at_ns;
		}
	}
	*out_time_s = time_s / (double)(n * PAPER_REPLICATIONS);
	*out_accuracy = n_accuracies ? accuracy / (double)n_accuracies : NAN;
	return rc;
}

static int job_values_of(const struct paper_result *r, const struct paper_job *j, const struct schema *s,
			 struct job_values *out, struct err *err)
{
	const struct trace_kind *kind = &r->trace->kind[j->kind];
	int rc = job_values_init(out, s, err);

	if (!rc)
		rc = job_values_bind(out, s, (const char *const *)r->trace->column,
				     (const char *const *)kind->value, r->trace->n_columns, err);
	if (!rc) {
		job_values_put_role(out, s, ROLE_CPUS, kind->cpus);
		job_values_put_role(out, s, ROLE_NJOBS, j->njobs);
		job_values_put_role(out, s, ROLE_PROCESSES, kind->cpus * j->njobs);
	}
	return rc;
}

struct experiment { /* shared by the turns of the pool */
	const struct paper_params *p;
	struct paper_result *r;
	struct sim_models **models; /* by fold */
	size_t n_folds;
	double batch[MAX_BATCHES];
	size_t n_batches;
	struct paper_set *set;
	struct paper_played *played; /* [job * n_batches + batch] of the set */
	const char *stage;
	size_t done;
	size_t failed_at; /* the first job that failed, in the order of jobs */
	struct err err;
	pthread_mutex_t lock;
};

/* The batch with the shortest predicted time, for a job that has no feasible one; NaN times are never
 * taken. */
static size_t fastest(const struct decision *d)
{
	size_t best = 0;

	for (size_t i = 1; i < d->n_candidates; i++)
		if (!(d->candidate[i].time_s >= d->candidate[best].time_s) && !isnan(d->candidate[i].time_s))
			best = i;
	return best;
}

/* Returns which batch, or an error. */
static int choose(const struct experiment *e, const struct turn *t, enum paper_policy k, struct decision *d,
		  struct paper_outcome *out, struct err *err)
{
	const struct paper_job *j = t->job;
	const struct sim_policy *policy = &e->r->policy[k];
	const struct policy *ops = policy->choice.policy;
	const struct model *m = sim_models_of(e->models[t->fold], policy);
	uint32_t cpus = e->r->trace->kind[j->kind].cpus;
	struct fluid_job running[PAPER_MAX_NJOBS] = { 0 };
	struct decide_scene scene = {
		.policy = &policy->choice,
		.machine = decide_machine(m, world_cluster(e->r->world)->cores, UINT32_MAX),
		.running = running,
		.n_running = (size_t)j->njobs - 1,
		.cpus = cpus,
		.most_cpus = UINT32_MAX,
		.starting = true,
		.memory_mb = NAN,
		.memory_mb_per_record = NAN,
		.memory_limit_mb = INFINITY,
		.rng = rng_stream(e->r->seed ^ STREAM_NAIVE, 2 * t->at + (e->set == &e->r->set[1])),
		.who = { .type = -1 }
	};
	struct job_values values = { 0 };
	struct decide_params p = { .model = m,
				   .job = &values,
				   .candidate = e->batch,
				   .n_candidates = e->n_batches,
				   .slo_s = j->slo_s,
				   .confidence = e->r->confidence,
				   .scene = ops->bounds ? NULL : &scene };
	const struct candidate *c;
	int rc = 0;

	for (size_t n = 0; n < scene.n_running; n++)
		running[n].cpus = cpus;
	if (m)
		rc = job_values_of(e->r, j, m->schema, &values, err);
	if (!rc)
		rc = decide(&p, d, err);
	if (!rc) {
		rc = d->chosen >= 0 ? d->chosen : (int)fastest(d);
		c = &d->candidate[rc];
		*out = (struct paper_outcome){ .promised = d->chosen >= 0 && !ops->admits_all,
					       .predicted_s = c->time_s,
					       .upper_s = c->upper_s,
					       .predicted_accuracy = c->accuracy };
	}
	job_values_release(&values);
	return rc;
}

static bool oracle_prefers(const struct play *p, double slo_s, size_t a, size_t b)
{
	bool in_time = p->time_s[a] <= slo_s;

	if (in_time != (p->time_s[b] <= slo_s))
		return in_time;
	if (in_time && isnan(p->accuracy[a]) != isnan(p->accuracy[b]))
		return isnan(p->accuracy[b]);
	if (in_time && !isnan(p->accuracy[a]) && p->accuracy[a] != p->accuracy[b])
		return p->accuracy[a] > p->accuracy[b];
	return p->time_s[a] < p->time_s[b];
}

/* The most accurate batch that is in time in the world itself; else the fastest. */
static size_t choose_oracle(const struct experiment *e, const struct play *play, double slo_s,
			    struct paper_outcome *out)
{
	size_t best = 0;

	for (size_t b = 1; b < e->n_batches; b++)
		if (oracle_prefers(play, slo_s, b, best))
			best = b;
	*out = (struct paper_outcome){ .promised = play->time_s[best] <= slo_s,
				       .predicted_s = play->time_s[best],
				       .upper_s = play->time_s[best],
				       .predicted_accuracy = play->accuracy[best] };
	return best;
}

static int play_job(struct experiment *e, size_t i, struct err *err)
{
	struct turn t = { .job = &e->set->job[i],
			  .at = i,
			  .fold = i % e->n_folds,
			  .first_id = 1 + i * PAPER_REPLICATIONS * PAPER_MAX_NJOBS,
			  .seed = e->r->seed ^ STREAM_DRAWS ^ ((uint64_t)(e->set == &e->r->set[1]) << 40) };
	struct decision *d = mem_alloc(sizeof *d);
	struct play play;
	int rc = d ? world_run_new(e->r->world, t.fold, &t.run, err) : err_nomem(err, NULL);

	/* All batches with the same random numbers: the choice of a policy is looked up, and the oracle sees
	 * them all. */
	for (size_t b = 0; b < e->n_batches && !rc; b++)
		rc = play_batch(&t, e->batch[b], &play.time_s[b], &play.accuracy[b], err);
	for (size_t b = 0; b < e->n_batches && !rc; b++)
		e->played[i * e->n_batches + b] = (struct paper_played){ play.time_s[b], play.accuracy[b] };
	for (int k = 0; k < PAPER_POLICIES && !rc; k++) {
		struct paper_outcome *o = &e->set->outcome[(size_t)k * e->set->n + i];
		int b;

		if (k == PAPER_FIXED) /* when all are played: choose_fixed() */
			continue;
		if (k == PAPER_ORACLE)
			b = (int)choose_oracle(e, &play, t.job->slo_s, o);
		else
			b = choose(e, &t, (enum paper_policy)k, d, o, err);
		rc = b < 0 ? b : 0;
		if (rc)
			break;
		o->batch = e->batch[b];
		o->time_s = play.time_s[b];
		o->accuracy = play.accuracy[b];
		o->met = outcome_met(true, o->time_s, t.job->slo_s);
	}
	world_run_free(t.run);
	free(d);
	return rc;
}

/* The batch with the largest sum of accuracies in time over the jobs that are not of this group. */
static size_t best_for_others(const struct experiment *e, size_t group, size_t groups)
{
	double best = -1.0;
	size_t chosen = 0;

	for (size_t b = 0; b < e->n_batches; b++) {
		double sum = 0.0;

		for (size_t i = 0; i < e->set->n; i++) {
			const struct paper_played *p = &e->played[i * e->n_batches + b];

			if (i % groups != group && outcome_met(true, p->time_s, e->set->job[i].slo_s))
				sum += isnan(p->accuracy) ? 0.0 : p->accuracy;
		}
		if (sum > best) {
			best = sum;
			chosen = b;
		}
	}
	return chosen;
}

static void choose_fixed(const struct experiment *e)
{
	size_t groups = e->n_folds > 1 ? e->n_folds : 2;

	for (size_t group = 0; group < groups; group++) {
		size_t b = best_for_others(e, group, groups);

		for (size_t i = group; i < e->set->n; i += groups) {
			const struct paper_played *p = &e->played[i * e->n_batches + b];

			e->set->outcome[PAPER_FIXED * e->set->n + i] = (struct paper_outcome){
				.batch = e->batch[b],
				.predicted_s = NAN,
				.upper_s = NAN,
				.predicted_accuracy = NAN,
				.time_s = p->time_s,
				.accuracy = p->accuracy,
				.met = outcome_met(true, p->time_s, e->set->job[i].slo_s),
			};
		}
	}
}

static void turn(void *ctx, size_t i, size_t worker)
{
	struct experiment *e = ctx;
	struct err err = { 0 };
	int rc = play_job(e, i, &err);

	(void)worker;
	pthread_mutex_lock(&e->lock);
	if (rc && (!e->err.code || i < e->failed_at)) {
		e->failed_at = i;
		e->err = err;
	}
	e->done++;
	if (e->p->on_progress)
		e->p->on_progress(e->p->owner, e->stage, e->done, e->set->n);
	pthread_mutex_unlock(&e->lock);
}

/* ---- all together ---- */

static int find_batches(struct experiment *e, struct err *err)
{
	const struct model *m = sim_models_of(e->models[0], &e->r->policy[PAPER_COURIER]);
	const double *batch;
	size_t n = world_batches(e->r->world, &batch);

	if (!n) {
		batch = m->candidate;
		n = m->n_candidates;
	}
	if (!n || n > MAX_BATCHES)
		return err_fail(err, ERR_ARG, "the world has %zu batches to choose from; need 1 to %d", n,
				MAX_BATCHES);
	memcpy(e->batch, batch, n * sizeof *batch);
	e->n_batches = n;
	return 0;
}

static void note_scores(struct paper_result *r, const struct sim_models *models)
{
	const struct model *seen[PAPER_POLICIES];

	for (int k = 0; k < PAPER_POLICIES; k++) {
		const struct model *m = sim_models_of(models, &r->policy[k]);
		struct paper_score *s = &r->score[r->n_scores];
		size_t i = 0;

		while (i < r->n_scores && seen[i] != m)
			i++;
		if (!m || i < r->n_scores)
			continue;
		*s = (struct paper_score){ .policy = &r->policy[k],
					   .model = m->time.predictor.ops->name,
					   .accuracy_model = m->accuracy.predictor.ops
								     ? m->accuracy.predictor.ops->name
								     : NULL,
					   .time = m->time.score.mean,
					   .accuracy = m->accuracy.score.mean };
		memcpy(s->scored_by, m->time.scored_by, sizeof s->scored_by);
		seen[r->n_scores++] = m;
	}
}

static int train_folds(struct experiment *e, const struct schema *schema, struct csv **table, struct err *err)
{
	int rc = 0;

	for (size_t f = 0; f < e->n_folds && !rc; f++) {
		rc = world_training(e->r->world, f, e->r->seed, &table[f], err);
		if (!rc)
			rc = sim_models_train(
				&(struct sim_models_params){ .policy = e->r->policy,
							     .n_policies = PAPER_POLICIES,
							     .table = table[f],
							     .schema = schema,
							     .given = world_given(e->r->world),
							     .cluster = world_cluster(e->r->world),
							     .seed = e->r->seed,
							     .pool = e->p->pool,
							     .on_progress = e->p->on_progress,
							     .owner = e->p->owner },
				&e->models[f], err);
	}
	return rc;
}

static int experiment_run(struct experiment *e, const struct schema *schema, struct err *err)
{
	struct csv **table = mem_calloc(e->n_folds, sizeof *table);
	int rc = 0;

	e->models = mem_calloc(e->n_folds, sizeof(struct sim_models *));
	if (!table || !e->models)
		rc = err_nomem(err, "%zu folds", e->n_folds);
	if (!rc)
		rc = train_folds(e, schema, table, err);
	if (!rc)
		rc = find_batches(e, err);
	if (!rc)
		note_scores(e->r, e->models[0]);
	for (int s = 0; s < 2 && !rc; s++) {
		e->set = &e->r->set[s];
		e->stage = s ? "many jobs" : "five jobs";
		e->done = 0;
		free(e->played);
		e->played = mem_array(e->set->n * e->n_batches, sizeof *e->played);
		if (!e->played) {
			rc = err_nomem(err, "%zu jobs", e->set->n);
			break;
		}
		pool_run(e->p->pool, e->set->n, turn, e);
		if (e->err.code)
			rc = err_fail(err, e->err.code, "%s", e->err.text);
		if (!rc)
			choose_fixed(e);
		if (!rc)
			rc = paper_summarise(e->r, e->set, err);
		if (!rc)
			rc = paper_summarise_fixed(e->r, e->set, e->played, e->batch, e->n_batches, err);
	}
	for (size_t f = 0; f < e->n_folds; f++) {
		if (e->models)
			sim_models_free(e->models[f]);
		if (table)
			csv_free(table[f]);
	}
	free(e->played);
	free(e->models);
	free(table);
	return rc;
}

int paper_run(const struct paper_params *p, struct paper_result **out, struct err *err)
{
	struct experiment e = { .p = p, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct schema *own = NULL;
	const struct schema *schema = p->world.schema;
	struct paper_result *r = mem_calloc(1, sizeof *r);
	size_t n_jobs = p->jobs ? p->jobs : PAPER_JOBS;
	int rc = 0;

	if (!r)
		return err_nomem(err, "the experiment");
	r->seed = p->seed;
	r->confidence = p->confidence > 0.0 ? p->confidence : 0.9;
	r->level = p->level > 0.0 ? p->level : 0.95;
	r->spec = mem_strdup(p->world.spec);
	if (!r->spec)
		rc = err_nomem(err, "the experiment");
	else if (n_jobs > PAPER_MAX_JOBS)
		rc = err_fail(err, ERR_ARG, "%zu jobs: the experiment has at most %d", n_jobs,
			      PAPER_MAX_JOBS);
	for (int k = 0; k < PAPER_POLICIES && !rc; k++)
		rc = sim_policy_parse(policy_name[k], &r->policy[k], err);
	if (!rc && !schema) {
		rc = schema_default(&own, err);
		schema = own;
	}
	if (!rc)
		rc = paper_prepare(p, schema, r, err);
	if (!rc)
		rc = paper_make_sets(r, n_jobs, err);
	if (!rc) {
		e.r = r;
		e.n_folds = world_folds(r->world) ? world_folds(r->world) : 1;
		rc = experiment_run(&e, schema, err);
	}
	pthread_mutex_destroy(&e.lock);
	schema_free(own);
	if (rc)
		paper_free(r);
	else
		*out = r;
	return rc;
}

void paper_free(struct paper_result *r)
{
	if (!r)
		return;
	for (int s = 0; s < 2; s++) {
		free(r->set[s].job);
		free(r->set[s].outcome);
		free(r->set[s].summary);
		free(r->set[s].fixed);
	}
	world_free(r->world);
	trace_free(r->trace);
	free(r->cpus);
	free(r->spec);
	free(r);
}
