/* The world `queueing`: the machine itself, iteration by iteration (queueing_machine.h), with the
 * costs of a world file (file.h).
 *
 * When the next job ends is known only once everything up to then has happened; yet another job may start
 * before. So a run has two machines: one as it is at the last moment handed in, and a copy that has gone
 * ahead to the next end. Where a job starts before that end, the copy is thrown away. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/world/cost_world.h"
#include "sim/world/queueing_machine.h"

struct queueing_run {
	const struct cost_world *world;
	struct qmachine *now, *ahead;
	bool is_ahead; /* `ahead` stands at the next end */
};

/* ---- the world ---- */

static void queueing_close(void *self)
{
	if (self)
		cost_world_release(self);
	free(self);
}

/* A job that would take hours to simulate is refused before anything runs. */
static int check_cycles(const struct cost_world *w, struct err *err)
{
	for (size_t i = 0; i < w->trace->n_kinds; i++) {
		const struct qkind *k = &w->kind[i];
		double cycles = qkind_work(w->file, k, k->batch[0], NAN).iterations * k->cpus;

		if (cycles > QKINDS_MAX_CYCLES)
			return err_fail(
				err, ERR_FORMAT,
				"%.160s: a job of %u cpus, %g samples, %g epochs and batch %g has %g "
				"iterations of all processes: at most %g here; the world fluid takes it",
				text_tail(w->trace->name, 160), k->cpus, k->samples, k->epochs, k->batch[0],
				cycles, QKINDS_MAX_CYCLES);
	}
	return 0;
}

static int queueing_open(const struct world_open *o, void **out_self, struct world_machines *out,
			 struct err *err)
{
	struct cost_world *w = mem_calloc(1, sizeof *w);
	int rc = w ? cost_world_init(w, o, out, err) : err_nomem(err, "a world");

	if (!rc && w->file->log_pair)
		rc = err_fail(err, ERR_ARG, "%s: pairs: only the world fluid has them", w->file->name);
	if (!rc && w->trace)
		rc = check_cycles(w, err);
	if (rc) {
		queueing_close(w);
		return rc;
	}
	*out_self = w;
	return 0;
}

static int queueing_training(const void *self, size_t fold, uint64_t seed, struct csv **out, struct err *err)
{
	(void)fold;
	return cost_world_training(self, campaign_play_queueing, seed, out, err);
}

/* ---- a run ---- */

static void queueing_run_free(void *run)
{
	struct queueing_run *r = run;

	if (!r)
		return;
	qmachine_free(r->now);
	qmachine_free(r->ahead);
	free(r);
}

static int queueing_run_new(const void *self, size_t fold, void **out_run, struct err *err)
{
	const struct cost_world *w = self;
	struct queueing_run *r = mem_calloc(1, sizeof *r);
	struct qmachine_params p = {
		.node_cores = w->cluster.cores / w->cluster.nodes,
		.nodes = w->cluster.nodes,
		.barrier = w->file->barrier,
		.law = w->file->disk_law,
		.measured = w->file->measured.v,
		.n_measured = w->file->measured.n,
		.drift = w->disturbances.drift,
		.drift_at_s = w->disturbances.drift_at_s,
	};
	int rc = r ? 0 : err_nomem(err, "a run");

	(void)fold;
	if (!rc) {
		r->world = w;
		rc = qmachine_new(&p, &r->now, err);
	}
	if (!rc)
		rc = qmachine_new(&p, &r->ahead, err);
	if (rc)
		queueing_run_free(r);
	else
		*out_run = r;
	return rc;
}

static void swap(struct queueing_run *r)
{
	struct qmachine *t = r->now;

	r->now = r->ahead;
	r->ahead = t;
	r->is_ahead = false;
}

/* What the machine keeps with a job until it ends: its accuracy, or that it fails. */
#define FAILED -1.0
#define UNKNOWN -2.0

static int job_of(const struct cost_world *w, const struct world_job *j, struct qmachine_job *out,
		  struct err *err)
{
	const struct qkind *k;
	struct world_work work;
	bool fails = !isnan(j->draws.fails_at);
	double cycles, accuracy;
	int rc;

	if (!w->trace || j->kind >= w->trace->n_kinds)
		return err_fail(err, ERR_ARG, "job %llu is of kind %u, which the trace does not have",
				(unsigned long long)j->id, j->kind);
	k = &w->kind[j->kind];
	rc = qkind_check_batch(w->file, k, j->batch, err);
	if (rc)
		return err_prefix(err, "job %llu", (unsigned long long)j->id);
	work = qkind_work(w->file, k, j->batch, j->epochs);
	if (!(work.iterations * k->cpus <= QKINDS_MAX_CYCLES))
		return err_fail(err, ERR_ARG, "job %llu has %g iterations of all processes: at most %g here",
				(unsigned long long)j->id, work.iterations * k->cpus, QKINDS_MAX_CYCLES);
	cycles = fails ? fmax(1.0, ceil(work.iterations * fmin(1.0, j->draws.fails_at))) : work.iterations;
	accuracy = qkind_accuracy(w->file, k, work.iterations, &j->draws);
	*out = (struct qmachine_job){
		.id = j->id,
		.cpus = k->cpus,
		.cycles = (uint64_t)cycles,
		.compute_s = work.compute_s * j->draws.slow,
		.disk_s = work.disk_s * j->draws.slow,
		.device_s = work.device_s * j->draws.slow,
		.seed = j->draws.seed,
		.tag = fails             ? FAILED
		       : isnan(accuracy) ? UNKNOWN
					 : accuracy,
	};
	return 0;
}

/* Started in the copy: if there is no memory for it, the machine is as it was. */
static int queueing_start(void *run, double now_s, const struct world_job *j, struct err *err)
{
	struct queueing_run *r = run;
	struct qmachine_job job;
	int rc = job_of(r->world, j, &job, err);

	if (rc)
		return rc;
	r->is_ahead = false;
	rc = qmachine_copy(r->ahead, r->now, err);
	if (!rc)
		rc = qmachine_start(r->ahead, now_s, &job, err);
	if (!rc)
		rc = qmachine_reserve(r->now, r->ahead, err);
	if (!rc)
		swap(r);
	return rc;
}

static double queueing_next_s(void *run)
{
	struct queueing_run *r = run;

	if (!r->is_ahead) {
		int rc = qmachine_copy(r->ahead, r->now, NULL);

		assert(!rc); /* room was made at the start of the last job */
		(void)rc;
		r->is_ahead = true;
	}
	return qmachine_next_s(r->ahead);
}

static bool queueing_end(void *run, struct world_end *out, double *out_at_s)
{
	struct queueing_run *r = run;
	struct qmachine_end e;

	if (queueing_next_s(r) == INFINITY)
		return false;
	swap(r);
	qmachine_end(r->now, &e);
	*out = (struct world_end){
		.id = e.id,
		.accuracy = e.tag < 0.0 ? NAN : e.tag,
		.processes = e.processes,
		.njobs = e.njobs,
		.failed = e.tag == FAILED,
	};
	*out_at_s = e.at_s;
	return true;
}

static int queueing_copy(void *to, const void *from, struct err *err)
{
	struct queueing_run *t = to;
	const struct queueing_run *f = from;
	int rc;

	t->is_ahead = false;
	rc = qmachine_reserve(t->ahead, f->now, err);
	return rc ? rc : qmachine_copy(t->now, f->now, err);
}

static struct world_count queueing_count(const void *run)
{
	const struct qmachine *m = ((const struct queueing_run *)run)->now;

	return (struct world_count){ qmachine_busy_s(m), qmachine_events(m) };
}

const struct world_ops world_queueing = {
	.name = "queueing",
	.title = "processes that cycle between disk and cores, iteration by iteration",
	.open = queueing_open,
	.close = queueing_close,
	.training = queueing_training,
	.split_text = cost_world_split_text,
	.describe = cost_world_describe,
	.batches = cost_world_batches,
	.run_new = queueing_run_new,
	.run_free = queueing_run_free,
	.start = queueing_start,
	.next_s = queueing_next_s,
	.end = queueing_end,
	.copy = queueing_copy,
	.count = queueing_count,
};
