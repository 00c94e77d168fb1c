/* The world `fluid`: the means of the world `queueing`, for long traces. Jobs share the machine as sharing.h
 * says; how long one takes among P processes comes from tables (fluid_laws.h), made when the world is
 * opened. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "predictors/models/mixed_run.h"
#include "sim/world/cost_world.h"
#include "sim/world/sharing.h"
#include "sim/world/fluid_laws.h"

struct choice { /* a batch that a kind of job may have */
	double batch;
	uint32_t law;
};

struct fluid_world {
	struct cost_world base;
	struct choice *choice; /* of kind i: choice[first[i]] to choice[first[i + 1] - 1] */
	size_t *first;
	struct fluid_laws *laws;
};

struct fluid_run {
	const struct fluid_world *world;
	struct sharing *sharing;
	double busy_s;
};

/* What sharing.c keeps with a job until it ends. */
enum { ITERATIONS, ACCURACY, CORE_S, START_S };

/* ---- the world ---- */

static void fluid_close(void *self)
{
	struct fluid_world *w = self;

	if (!w)
		return;
	cost_world_release(&w->base);
	fluid_laws_free(w->laws);
	free(w->choice);
	free(w->first);
	free(w);
}

static int add_choice(struct fluid_world *w, size_t kind, double batch, size_t *io_n, struct err *err)
{
	const struct qkind *k = &w->base.kind[kind];
	struct world_work work = qkind_work(w->base.file, k, batch, NAN);

	for (size_t i = w->first[kind]; i < *io_n; i++)
		if (w->choice[i].batch == batch)
			return 0;
	w->choice[*io_n].batch = batch;
	return fluid_laws_add(w->laws, k->cpus, &work, &w->choice[(*io_n)++].law, err);
}

/* Every kind may have its own batches and the world's. */
static int make_choices(struct fluid_world *w, struct err *err)
{
	size_t n = 0, most = 0;
	int rc = 0;

	for (size_t i = 0; i < w->base.trace->n_kinds; i++)
		most += w->base.kind[i].n_batches + w->base.file->batch.n;
	w->choice = mem_array(most ? most : 1, sizeof *w->choice);
	w->first = mem_array(w->base.trace->n_kinds + 1, sizeof *w->first);
	if (!w->choice || !w->first)
		return err_nomem(err, "%zu kinds of jobs", w->base.trace->n_kinds);
	for (size_t i = 0; i < w->base.trace->n_kinds && !rc; i++) {
		w->first[i] = n;
		for (size_t b = 0; b < w->base.kind[i].n_batches && !rc; b++)
			rc = add_choice(w, i, w->base.kind[i].batch[b], &n, err);
		for (size_t b = 0; b < w->base.file->batch.n && !rc; b++)
			rc = add_choice(w, i, w->base.file->batch.v[b], &n, err);
		w->first[i + 1] = n;
	}
	return rc;
}

static int bind_trace(struct fluid_world *w, struct err *err)
{
	int rc = fluid_laws_new(w->base.file, &w->base.cluster, w->base.cluster.slots, &w->laws, err);

	return rc ? rc : make_choices(w, err);
}

static int fluid_open(const struct world_open *o, void **out_self, struct world_machines *out,
		      struct err *err)
{
	struct fluid_world *w = mem_calloc(1, sizeof *w);
	int rc = w ? cost_world_init(&w->base, o, out, err) : err_nomem(err, "a world");

	if (!rc && w->base.trace)
		rc = bind_trace(w, err);
	if (rc) {
		fluid_close(w);
		return rc;
	}
	*out_self = w;
	return 0;
}

/* A setting of the experiment, by the same laws. */
static int play_fluid(const struct campaign_params *p, const struct campaign_setting *s,
		      const struct draws *draws, double *out_time_s, struct err *err)
{
	struct world_work work = qkind_work(p->file, &s->kind, s->batch, NAN);
	struct fluid_laws *laws = NULL;
	struct sharing *sharing = NULL;
	struct sharing_end e;
	uint32_t law = 0;
	int rc = fluid_laws_new(p->file, p->cluster, (double)s->njobs * s->kind.cpus, &laws, err);

	if (!rc)
		rc = fluid_laws_add(laws, s->kind.cpus, &work, &law, err);
	if (!rc) {
		struct sharing_params sp = { .law = fluid_laws_job_s,
					     .owner = laws,
					     .cores = p->cluster->cores };

		rc = sharing_new(&sp, &sharing, err);
	}
	for (size_t i = 0; i < s->njobs && !rc; i++) {
		struct sharing_job j = { .id = i,
					 .cpus = s->kind.cpus,
					 .tag = law,
					 .slow = draws[i].slow,
					 .until = 1.0,
					 .extra[ITERATIONS] = work.iterations };

		rc = sharing_start(sharing, 0.0, &j, err);
	}
	while (!rc && sharing_end(sharing, &e))
		out_time_s[e.job.id] = e.at_s;
	sharing_free(sharing);
	fluid_laws_free(laws);
	return rc;
}

static int fluid_training(const void *self, size_t fold, uint64_t seed, struct csv **out, struct err *err)
{
	const struct fluid_world *w = self;

	(void)fold;
	return cost_world_training(&w->base, play_fluid, seed, out, err);
}

/* ---- a run ---- */

static void fluid_run_free(void *run)
{
	struct fluid_run *r = run;

	if (!r)
		return;
	sharing_free(r->sharing);
	free(r);
}

static uint32_t kind_of(const struct world_file *f, const struct qkind *k)
{
	return f->log_pair ? (uint32_t)(k->value[f->pair_of] - f->category[f->pair_of].value) : 0;
}

static int fluid_run_new(const void *self, size_t fold, void **out_run, struct err *err)
{
	const struct fluid_world *w = self;
	struct sharing_params p = {
		.law = fluid_laws_job_s,
		.owner = w->laws,
		.cores = w->base.cluster.cores,
		.drift = w->base.disturbances.drift,
		.drift_at_s = w->base.disturbances.drift_at_s,
		.log_pair = w->base.file->log_pair,
		.n_kinds = w->base.file->log_pair ? w->base.file->category[w->base.file->pair_of].n_values
						  : 0,
	};
	struct fluid_run *r = mem_calloc(1, sizeof *r);
	int rc = r ? sharing_new(&p, &r->sharing, err) : err_nomem(err, "a run");

	(void)fold;
	if (rc) {
		fluid_run_free(r);
		return rc;
	}
	r->world = w;
	*out_run = r;
	return 0;
}

static const struct choice *choice_of(const struct fluid_world *w, const struct world_job *j, struct err *err)
{
	if (!w->base.trace || j->kind >= w->base.trace->n_kinds) {
		err_fail(err, ERR_ARG, "job %llu is of kind %u, which the trace does not have",
			 (unsigned long long)j->id, j->kind);
		return NULL;
	}
	for (size_t i = w->first[j->kind]; i < w->first[j->kind + 1]; i++)
		if (w->choice[i].batch == j->batch)
			return &w->choice[i];
	if (qkind_check_batch(w->base.file, &w->base.kind[j->kind], j->batch, err))
		err_prefix(err, "job %llu", (unsigned long long)j->id);
	return NULL;
}

static int shared_job(const struct fluid_world *w, double now_s, const struct world_job *j,
		      struct sharing_job *out, struct err *err)
{
	const struct choice *c = choice_of(w, j, err);
	const struct qkind *k;
	struct world_work work;
	double until = world_job_until(j);

	if (!c)
		return -ERR_ARG;
	k = &w->base.kind[j->kind];
	work = qkind_work(w->base.file, k, j->batch, j->epochs);
	*out = (struct sharing_job){
		.id = j->id,
		.cpus = k->cpus,
		.tag = c->law,
		.kind = kind_of(w->base.file, k),
		.slow = j->draws.slow,
		.until = until,
		.extra = { [ITERATIONS] = work.iterations,
			   [ACCURACY] = qkind_accuracy(w->base.file, k, work.iterations, &j->draws),
			   [CORE_S] = k->cpus * work.iterations * work.compute_s * j->draws.slow * until,
			   [START_S] = now_s },
	};
	return 0;
}

static int fluid_start(void *run, double now_s, const struct world_job *j, struct err *err)
{
	struct fluid_run *r = run;
	struct sharing_job s;
	int rc = shared_job(r->world, now_s, j, &s, err);

	return rc ? rc : sharing_start(r->sharing, now_s, &s, err);
}

static int fluid_law_s(const void *run, const struct world_job *j, double processes, double *out,
		       struct err *err)
{
	const struct fluid_run *r = run;
	struct sharing_job s;
	int rc = shared_job(r->world, 0.0, j, &s, err);

	if (!rc && r->world->base.file->log_pair)
		return err_fail(
			err, ERR_ARG,
			"%s: with pairs the time of a job depends on the kinds beside it, not on their "
			"number alone",
			r->world->base.file->name);
	if (!rc)
		*out = fluid_laws_job_s(r->world->laws, &s, processes);
	return rc;
}

static double fluid_next_s(void *run)
{
	struct fluid_run *r = run;

	return sharing_next_s(r->sharing);
}

/* Core-seconds: computing alone, so less than cores are held. What is done behind the drift takes longer. */
static double core_s(const struct fluid_world *w, const struct sharing_end *e)
{
	double drift = w->base.disturbances.drift, from = e->job.extra[START_S], all = e->at_s - from;
	double behind = fmin(all, fmax(0.0, e->at_s - w->base.disturbances.drift_at_s));

	if (drift == 0.0 || !(all > 0.0))
		return e->job.extra[CORE_S];
	return e->job.extra[CORE_S] * all / (all - behind + behind / (1.0 + drift));
}

static struct world_end as_world_end(struct fluid_run *r, const struct sharing_end *e)
{
	bool cut = e->job.until < 1.0 || e->done < 1.0;

	r->busy_s += core_s(r->world, e) * e->done;
	return (struct world_end){
		.id = e->job.id,
		.accuracy = cut ? NAN : e->job.extra[ACCURACY],
		.processes = e->processes,
		.njobs = e->njobs,
		.failed = cut,
	};
}

static bool fluid_end(void *run, struct world_end *out, double *out_at_s)
{
	struct fluid_run *r = run;
	struct sharing_end e;

	if (!sharing_end(r->sharing, &e))
		return false;
	*out = as_world_end(r, &e);
	*out_at_s = e.at_s;
	return true;
}

static bool fluid_stop(void *run, double now_s, uint64_t id, struct world_end *out)
{
	struct fluid_run *r = run;
	struct sharing_end e;

	if (!sharing_stop(r->sharing, now_s, id, &e))
		return false;
	*out = as_world_end(r, &e);
	return true;
}

static bool fluid_progress(void *run, double now_s, uint64_t id, double *out)
{
	struct fluid_run *r = run;

	return sharing_progress(r->sharing, now_s, id, out);
}

static int fluid_accuracy(const void *run, const struct world_job *j, double *out, struct err *err)
{
	const struct fluid_run *r = run;
	struct sharing_job s;
	int rc = shared_job(r->world, 0.0, j, &s, err);

	if (!rc)
		*out = s.extra[ACCURACY];
	return rc;
}

/* Accuracy is by iterations here, so that beta is 1: the law itself, not a line between batches. */
static int fluid_mixed(const void *run, const struct world_job *j, const struct world_stage *stage, size_t n,
		       double *out, struct err *err)
{
	struct world_job whole = *j;
	double effort = 0.0;

	for (size_t i = 0; i < n; i++)
		effort += mixed_run_effort(stage[i].epochs, stage[i].batch, 1.0);
	whole.epochs = mixed_run_epochs(effort, j->batch, 1.0);
	whole.part = 0.0;
	return fluid_accuracy(run, &whole, out, err);
}

static int fluid_copy(void *to, const void *from, struct err *err)
{
	struct fluid_run *t = to;
	const struct fluid_run *f = from;
	int rc = sharing_copy(t->sharing, f->sharing, err);

	if (!rc)
		t->busy_s = f->busy_s;
	return rc;
}

/* Core-seconds are those of the jobs that have ended. */
static struct world_count fluid_count(const void *run)
{
	const struct fluid_run *r = run;

	return (struct world_count){ r->busy_s, sharing_events(r->sharing) };
}

const struct world_ops world_fluid = {
	.name = "fluid",
	.title = "the means of the world queueing",
	.open = fluid_open,
	.close = fluid_close,
	.training = fluid_training,
	.split_text = cost_world_split_text,
	.describe = cost_world_describe,
	.batches = cost_world_batches,
	.run_new = fluid_run_new,
	.run_free = fluid_run_free,
	.start = fluid_start,
	.law_s = fluid_law_s,
	.next_s = fluid_next_s,
	.end = fluid_end,
	.stop = fluid_stop,
	.progress = fluid_progress,
	.accuracy = fluid_accuracy,
	.mixed = fluid_mixed,
	.copy = fluid_copy,
	.count = fluid_count,
};
