/* The world `measured`: what happened in an observation table happens again. The rows are in
 * measured_table.h, what they say of a job in measured_fold.h; here jobs run, side by side in sharing.h,
 * each along the course of times by load that was drawn when it started.
 *
 * On a machine with other cores than the table's, what counts is the load per core: P processes on twice the
 * cores are like P / 2, but a job alone is never faster than measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "predictors/models/mixed_run.h"
#include "sim/measured/measured_fold.h"
#include "sim/world/sharing.h"
#include "sim/world/ops.h"

struct measured_world {
	struct measured_table *table;
	struct measured_fold *fold;
	size_t n_folds;
	struct measured_kinds kinds;
	const struct trace *trace; /* borrowed; NULL: none, and no job can start */
	struct cluster given, cluster; /* what jobs share */
	struct disturbances disturbances;
};

struct measured_run {
	const struct measured_world *world;
	const struct measured_fold *fold;
	double load_scale; /* processes here to processes there */
	struct sharing *sharing; /* the payload of a job is its course */
};

#define MOST_POWER 2.0 /* beta of the curve: beyond, it is noise of the table */

enum { EXTRA_ACCURACY }; /* in sharing_job.extra */

/* ---- the world ---- */

static void measured_close(void *self)
{
	struct measured_world *w = self;

	if (!w)
		return;
	measured_kinds_release(&w->kinds);
	for (size_t i = 0; w->fold && i < w->n_folds; i++)
		measured_fold_release(&w->fold[i]);
	free(w->fold);
	measured_table_free(w->table);
	free(w);
}

static int make_folds(struct measured_world *w, struct err *err)
{
	int rc = 0;

	w->n_folds = w->table->n_folds;
	w->fold = mem_calloc(w->n_folds, sizeof *w->fold);
	if (!w->fold)
		return err_nomem(err, "%zu folds of a table", w->n_folds);
	for (size_t i = 0; i < w->n_folds && !rc; i++)
		rc = measured_fold_make(w->table, i, w->given.cores, &w->fold[i], err);
	return rc;
}

static int measured_open(const struct world_open *o, void **out_self, struct world_machines *out,
			 struct err *err)
{
	struct measured_world *w;
	int rc;

	if (!o->argument)
		return err_fail(
			err, ERR_ARG,
			"the world 'measured' is made of an observation table: write measured:TABLE.csv, "
			"or measured:RUNS.csv+CURVES.csv to know fewer epochs too");
	if (!o->given)
		return err_fail(
			err, ERR_ARG,
			"the world 'measured' must know the machine that %s was measured on: its cluster "
			"is not given",
			text_tail(o->argument, 150));
	w = mem_calloc(1, sizeof *w);
	if (!w)
		return err_nomem(err, "a world");
	w->disturbances = o->disturbances;
	w->trace = o->trace;
	rc = world_machines(o, NULL, out, err);
	if (!rc) {
		w->given = cluster_shared(&out->given);
		w->cluster = cluster_shared(&out->cluster);
		rc = measured_table_open(o->argument, o->schema, o->hold_out, &w->table, err);
	}
	if (!rc)
		rc = make_folds(w, err);
	if (!rc)
		rc = measured_kinds_bind(w->table, w->fold, o->trace, o->mark_unknown, &w->kinds, err);
	if (rc) {
		measured_close(w);
		return rc;
	}
	*out_self = w;
	return 0;
}

static size_t measured_folds(const void *self)
{
	return ((const struct measured_world *)self)->n_folds;
}

static const char *measured_unknown(const void *self, uint32_t kind)
{
	return ((const struct measured_world *)self)->kinds.unknown[kind];
}

static size_t measured_runs(const void *self)
{
	return ((const struct measured_world *)self)->table->n_runs;
}

static int measured_training(const void *self, size_t fold, uint64_t seed, struct csv **out, struct err *err)
{
	(void)seed; /* nothing is drawn: the rows are what they are */
	return measured_table_training(((const struct measured_world *)self)->table, fold, out, err);
}

static void measured_split_text(const void *self, size_t fold, char *out, size_t size)
{
	measured_table_split_text(((const struct measured_world *)self)->table, fold, out, size);
}

static void measured_describe(const void *self, struct json_writer *j)
{
	const struct measured_world *w = self;
	const struct measured_table *t = w->table;

	json_kv_string(j, "table", t->csv->name);
	json_kv_bool(j, "curves", t->curves != NULL);
	json_kv_int(j, "rows", (long long)t->n_rows);
	json_kv_int(j, "rows_left_out", (long long)t->n_left_out);
	json_kv_int(j, "settings", (long long)t->n_settings);
	json_kv_int(j, "replications", (long long)t->n_replications);
	json_kv_string(j, "split", t->by_replication ? "replications" : "settings");
	json_kv_int(j, "folds", (long long)w->n_folds);
	json_kv_open(j, "levels", '{');
	for (size_t a = 0; a < t->n_axes; a++) {
		json_kv_open(j, t->axis[a].name, '[');
		for (size_t i = 0; i < t->axis[a].n_levels; i++)
			json_put_number(j, t->axis[a].level[i]);
		json_close(j, ']');
	}
	json_close(j, '}');
	json_put_key(j, "measured_on");
	cluster_to_json(&w->given, j);
}

static size_t measured_batches(const void *self, const double **out)
{
	const struct measured_world *w = self;

	*out = w->kinds.batch;
	return w->kinds.n_batches;
}

/* ---- runs ---- */

static double measured_law(const void *owner, const struct sharing_job *j, double processes)
{
	const struct measured_run *r = owner;
	double load = processes * r->load_scale;

	return measured_course_at(j->payload, load > j->cpus ? load - j->cpus : 0.0);
}

static void measured_run_free(void *run)
{
	struct measured_run *r = run;

	if (!r)
		return;
	sharing_free(r->sharing);
	free(r);
}

static int measured_run_new(const void *self, size_t fold, void **out_run, struct err *err)
{
	const struct measured_world *w = self;
	struct measured_run *r = mem_calloc(1, sizeof *r);
	struct sharing_params p = {
		.law = measured_law,
		.owner = r,
		.payload_size = sizeof(struct measured_course),
		.cores = w->cluster.cores,
		.drift = w->disturbances.drift,
		.drift_at_s = w->disturbances.drift_at_s,
	};
	int rc;

	if (!r)
		return err_nomem(err, "a run of the world 'measured'");
	r->world = w;
	r->fold = &w->fold[fold];
	r->load_scale = w->given.cores / w->cluster.cores;
	rc = sharing_new(&p, &r->sharing, err);
	if (rc)
		measured_run_free(r);
	else
		*out_run = r;
	return rc;
}

static int check_value(const struct measured_table *t, uint32_t combo, size_t axis, double v, uint64_t job,
		       struct err *err)
{
	if (!measured_check_range(t, combo, axis, v, err))
		return 0;
	return err_prefix(err, "job %llu: %s", (unsigned long long)job, t->axis[axis].name);
}

static int put_question(const struct measured_world *w, const struct world_job *j,
			struct measured_question *q, struct err *err)
{
	const struct measured_table *t = w->table;
	unsigned long long id = j->id;
	int rc;

	if (!w->trace)
		return err_fail(err, ERR_ARG, "job %llu: this world was opened without a trace", id);
	q->combo = w->kinds.combo[j->kind];
	memcpy(q->value, w->kinds.value + j->kind * t->n_axes, t->n_axes * sizeof *q->value);
	q->value[t->batch_axis] = j->batch;
	if (w->kinds.unknown[j->kind])
		return err_fail(err, ERR_ARG, "job %llu: %s", id, w->kinds.unknown[j->kind]);
	rc = check_value(t, q->combo, t->batch_axis, j->batch, id, err);
	if (rc || (isnan(j->epochs) && t->epochs_axis < 0))
		return rc;
	if (t->epochs_axis < 0)
		return err_fail(err, ERR_ARG,
				"job %llu: %g epochs, but %s does not say for how many its times are", id,
				j->epochs, text_tail(t->csv->name, 150));
	if (!isnan(j->epochs))
		q->value[t->epochs_axis] = j->epochs;
	return check_value(t, q->combo, (size_t)t->epochs_axis, q->value[t->epochs_axis], id, err);
}

static int shared_job(const struct measured_run *r, const struct world_job *j, struct measured_course *course,
		      struct sharing_job *out, struct err *err)
{
	struct measured_question q = { .time_u = j->draws.time_u, .accuracy_u = j->draws.accuracy_u };
	int rc = put_question(r->world, j, &q, err);

	if (rc)
		return rc;
	*out = (struct sharing_job){ .id = j->id,
				     .cpus = r->world->trace->kind[j->kind].cpus,
				     .slow = j->draws.slow,
				     .until = world_job_until(j),
				     .payload = course };
	if (!measured_ask(r->fold, &q, course, &out->extra[EXTRA_ACCURACY]))
		return err_fail(err, ERR_ARG, "job %llu: its categories were not measured",
				(unsigned long long)j->id);
	if (!isnan(j->draws.fails_at))
		out->extra[EXTRA_ACCURACY] = NAN;
	return 0;
}

static int measured_start(void *run, double now_s, const struct world_job *j, struct err *err)
{
	struct measured_run *r = run;
	struct measured_course course;
	struct sharing_job s;
	int rc = shared_job(r, j, &course, &s, err);

	return rc ? rc : sharing_start(r->sharing, now_s, &s, err);
}

static int measured_law_s(const void *run, const struct world_job *j, double processes, double *out,
			  struct err *err)
{
	struct measured_course course;
	struct sharing_job s;
	int rc = shared_job(run, j, &course, &s, err);

	if (!rc)
		*out = measured_law(run, &s, processes);
	return rc;
}

static double measured_next_s(void *run)
{
	return sharing_next_s(((struct measured_run *)run)->sharing);
}

static struct world_end as_world_end(const struct sharing_end *e)
{
	return (struct world_end){
		.id = e->job.id,
		.accuracy = e->done < 1.0 ? NAN : e->job.extra[EXTRA_ACCURACY],
		.processes = e->processes,
		.njobs = e->njobs,
		.failed = e->job.until < 1.0 || e->done < 1.0,
	};
}

static bool measured_end(void *run, struct world_end *out, double *out_at_s)
{
	struct measured_run *r = run;
	struct sharing_end e;

	if (!sharing_end(r->sharing, &e))
		return false;
	*out_at_s = e.at_s;
	*out = as_world_end(&e);
	return true;
}

static bool measured_stop(void *run, double now_s, uint64_t id, struct world_end *out)
{
	struct sharing_end e;

	if (!sharing_stop(((struct measured_run *)run)->sharing, now_s, id, &e))
		return false;
	*out = as_world_end(&e);
	return true;
}

/* By how much more a larger batch takes from the iterations than fewer epochs do: beta of the law, as the
 * accuracies of these categories have it. NaN: the table does not vary both. */
static double batch_power(const struct measured_run *r, uint32_t combo)
{
	const struct measured_table *t = r->world->table;
	const double *slope = r->fold->accuracy_slope + combo * t->n_axes;
	double by_epochs = t->epochs_axis < 0 ? 0.0 : slope[t->epochs_axis];

	return by_epochs > 0.0 ? fmin(fmax(-slope[t->batch_axis] / by_epochs, 0.0), MOST_POWER) : NAN;
}

static int measured_mixed(const void *run, const struct world_job *j, const struct world_stage *stage,
			  size_t n, double *out, struct err *err)
{
	const struct measured_run *r = run;
	struct mixed_run_curve curve = { 0 };
	struct measured_question q = { .time_u = j->draws.time_u, .accuracy_u = j->draws.accuracy_u };
	struct measured_course course;
	double beta, effort = 0.0, epochs = 0.0, accuracy;
	int rc = put_question(r->world, j, &q, err);

	if (rc)
		return rc;
	beta = batch_power(r, q.combo);
	for (size_t i = 0; i < n; i++) {
		effort += mixed_run_effort(stage[i].epochs, stage[i].batch, beta);
		epochs += stage[i].epochs;
	}
	for (size_t i = 0; i < n + r->world->kinds.n_batches; i++) {
		double batch = i < n ? stage[i].batch : r->world->kinds.batch[i - n];

		q.value[r->world->table->batch_axis] = batch;
		if (!measured_check_range(r->world->table, q.combo, r->world->table->batch_axis, batch,
					  NULL) &&
		    measured_ask(r->fold, &q, &course, &accuracy))
			mixed_run_add(&curve, mixed_run_effort(epochs, batch, beta), accuracy);
	}
	mixed_run_settle(&curve);
	*out = mixed_run_at(&curve, effort);
	return 0;
}

static int measured_copy(void *to_run, const void *from_run, struct err *err)
{
	struct measured_run *to = to_run;
	const struct measured_run *from = from_run;

	to->fold = from->fold;
	return sharing_copy(to->sharing, from->sharing, err);
}

static struct world_count measured_count(const void *run)
{
	const struct sharing *s = ((const struct measured_run *)run)->sharing;

	return (struct world_count){ sharing_busy_s(s), sharing_events(s) };
}

const struct world_ops world_measured = {
	.name = "measured",
	.title = "what happened in an observation table happens again",
	.open = measured_open,
	.close = measured_close,
	.folds = measured_folds,
	.runs = measured_runs,
	.unknown = measured_unknown,
	.training = measured_training,
	.split_text = measured_split_text,
	.describe = measured_describe,
	.batches = measured_batches,
	.run_new = measured_run_new,
	.run_free = measured_run_free,
	.start = measured_start,
	.law_s = measured_law_s,
	.next_s = measured_next_s,
	.end = measured_end,
	.stop = measured_stop,
	.mixed = measured_mixed,
	.copy = measured_copy,
	.count = measured_count,
};
