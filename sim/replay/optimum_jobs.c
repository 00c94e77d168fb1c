/* What each job of a trace could be: its options, how accurate each is, and what it takes at the least. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "sim/replay/bound_kinds.h"
#include "sim/replay/brain.h"
#include "sim/replay/optimum.h"

struct world_job optimum_world_job(const struct replay_params *p, size_t job, double batch, double epochs)
{
	const struct trace_job *t = &p->trace->job[job];

	return (struct world_job){ .id = job + 1,
				   .kind = t->kind,
				   .batch = batch,
				   .epochs = epochs,
				   .draws = draws_of(world_disturbances(p->world), p->seed, t->id) };
}

void optimum_jobs_release(struct optimum_jobs *j)
{
	for (size_t i = 0; j->job && i < j->n; i++)
		free(j->job[i].option);
	free(j->job);
	*j = (struct optimum_jobs){ 0 };
}

/* Times beside every load that the slots allow. */
static int take_times(const struct replay_params *p, const struct world_run *run, const struct world_job *w,
		      uint32_t cpus, struct optimum_option *o, bool *io_monotone, struct err *err)
{
	uint32_t slots = world_cluster(p->world)->slots;
	double before = 0.0;

	o->least_s = o->share_s = INFINITY;
	for (uint32_t n = cpus; n <= slots; n++) {
		double s;
		int status = world_run_law_s(run, w, n, &s, err);

		if (status)
			return status;
		*io_monotone &= s >= before;
		before = s;
		o->least_s = fmin(o->least_s, s);
		o->share_s = fmin(o->share_s, s * cpus / n);
	}
	return 0;
}

/* The accuracy does not depend on the load, so a run alone says it. */
static int take_accuracy(const struct replay_params *p, const struct world_job *w, double *out,
			 struct err *err)
{
	struct world_run *alone = NULL;
	struct world_end e = { 0 };
	int status = world_run_new(p->world, p->fold, &alone, err);

	if (!status)
		status = world_run_start(alone, 0, w, err);
	if (!status && world_run_end(alone, &e) && !e.failed && !isfinite(e.accuracy))
		status = err_fail(
			err, ERR_ARG,
			"the world does not say how accurate job %llu is with batch %g, so there is no "
			"best schedule",
			(unsigned long long)p->trace->job[w->id - 1].id, w->batch);
	*out = e.failed ? 0.0 : e.accuracy;
	world_run_free(alone);
	return status;
}

static int by_accuracy(const void *a, const void *b)
{
	const struct optimum_option *x = a, *y = b;

	if (x->accuracy != y->accuracy)
		return x->accuracy > y->accuracy ? -1 : 1;
	return (x->least_s > y->least_s) - (x->least_s < y->least_s);
}

static int add_job(struct optimum_jobs *j, const struct world_run *run, const struct bound_kind *k,
		   size_t job, struct err *err)
{
	const struct trace_job *t = &j->p->trace->job[job];
	size_t n_epochs = k->n_epochs ? k->n_epochs : 1;
	struct optimum_job *to = &j->job[j->n];
	int status = 0;

	*to = (struct optimum_job){ .job = job,
				    .arrival_ns = t->arrival_ns,
				    .deadline_ns = brain_deadline_ns(t),
				    .cpus = j->p->trace->kind[t->kind].cpus };
	to->option = mem_array(k->n_batches * n_epochs, sizeof *to->option);
	if (!to->option)
		return err_nomem(err, "the options of a job");
	for (size_t i = 0; !status && i < k->n_batches * n_epochs; i++) {
		struct optimum_option o = { .batch = k->batch[i / n_epochs],
					    .epochs = k->n_epochs ? k->epochs[i % n_epochs] : NAN };
		struct world_job w = optimum_world_job(j->p, job, o.batch, o.epochs);

		status = take_times(j->p, run, &w, to->cpus, &o, &j->monotone, err);
		if (!status)
			status = take_accuracy(j->p, &w, &o.accuracy, err);
		if (!status && o.accuracy > 0.0 && o.least_s <= t->slo_s)
			to->option[to->n_options++] = o;
	}
	qsort(to->option, to->n_options, sizeof *to->option, by_accuracy);
	if (!status && to->n_options)
		j->n++;
	else
		free(to->option);
	return status;
}

int optimum_jobs_make(const struct replay_params *p, struct optimum_jobs *out, struct err *err)
{
	struct bound_kinds kinds = { 0 };
	struct world_run *run = NULL;
	int status = bound_kinds_init(&kinds, p->trace, p->world, NULL, err);

	*out = (struct optimum_jobs){ .p = p, .monotone = true };
	if (!status)
		status = world_run_new(p->world, p->fold, &run, err);
	out->job = mem_calloc(p->trace->n_jobs, sizeof *out->job);
	if (!status && !out->job)
		status = err_nomem(err, "%zu jobs", p->trace->n_jobs);
	for (size_t i = 0; !status && i < p->trace->n_jobs; i++) {
		if (isnan(p->trace->job[i].slo_s))
			continue;
		out->objectives++;
		status = add_job(out, run, &kinds.kind[p->trace->job[i].kind], i, err);
	}
	world_run_free(run);
	bound_kinds_release(&kinds);
	return status;
}
