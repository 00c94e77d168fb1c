/* What all worlds have in common: found by name, machines, moments as whole nanoseconds, and arguments that
 * make sense before an implementation (ops.h) sees them. */
#include "sim/world/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/world/ops.h"

#define NS_PER_S 1e9
#define MOST_NS 9.2e18 /* fits an int64_t, and is before WORLD_NEVER */
#define NAME_MAX_BYTES 32

static const struct world_ops *const worlds[] = { &world_measured, &world_queueing, &world_fluid };
#define N_WORLDS (sizeof worlds / sizeof *worlds)

struct world {
	const struct world_ops *ops;
	void *self;
	struct world_machines whole;
	struct cluster given, cluster; /* what jobs share of them */
	struct disturbances disturbances;
	const struct trace *trace; /* borrowed; NULL: none */
};

struct world_run {
	const struct world *world;
	void *run;
	int64_t last_ns; /* the last start or end: time does not run backwards */
	double last_s; /* of the last end, as the implementation said it */
	int64_t next_ns;
	bool next_known;
};

/* ---- worlds ---- */

static int find_ops(const char *spec, const struct world_ops **out, const char **out_argument,
		    struct err *err)
{
	const char *names[N_WORLDS + 1];
	char name[NAME_MAX_BYTES], shown[64], hint[TEXT_HINT];
	size_t len = strcspn(spec, ":");

	snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name), spec);
	for (size_t i = 0; i < N_WORLDS; i++) {
		names[i] = worlds[i]->name;
		if (strcmp(name, names[i]))
			continue;
		*out = worlds[i];
		*out_argument = spec[len] && spec[len + 1] ? spec + len + 1 : NULL;
		return 0;
	}
	names[N_WORLDS] = NULL;
	return err_fail(err, ERR_ARG,
			"there is no world \'%s\'%s; write measured:TABLE.csv, queueing[:FILE.json] or "
			"fluid[:FILE.json]",
			text_printable(spec, shown, sizeof shown), text_hint(name, names, hint));
}

int world_open(const struct world_params *p, struct world **out, struct err *err)
{
	struct world_open o = {
		.schema = p->schema,
		.given = p->given,
		.cluster = p->cluster,
		.what = p->what,
		.trace = p->trace,
		.hold_out = p->hold_out ? p->hold_out : 1,
		.mark_unknown = p->mark_unknown,
	};
	struct world *w = mem_calloc(1, sizeof *w);
	int rc;

	if (!w)
		return err_nomem(err, "a world");
	if (p->disturbances)
		o.disturbances = *p->disturbances;
	w->disturbances = o.disturbances;
	w->trace = p->trace;
	rc = find_ops(p->spec, &w->ops, &o.argument, err);
	if (!rc)
		rc = w->ops->open(&o, &w->self, &w->whole, err);
	if (rc) {
		free(w);
		return rc;
	}
	w->given = cluster_shared(&w->whole.given);
	w->cluster = cluster_shared(&w->whole.cluster);
	*out = w;
	return 0;
}

int world_machines(const struct world_open *o, const struct cluster *own, struct world_machines *out,
		   struct err *err)
{
	out->given = o->given ? *o->given : *own;
	out->cluster = o->cluster ? *o->cluster : out->given;
	return o->what ? what_if_machine(o->what, &out->cluster, err) : 0;
}

void world_free(struct world *w)
{
	if (!w)
		return;
	w->ops->close(w->self);
	free(w);
}

const char *world_name(const struct world *w)
{
	return w->ops->name;
}

const struct cluster *world_whole(const struct world *w)
{
	return &w->whole.cluster;
}

const struct cluster *world_whole_given(const struct world *w)
{
	return &w->whole.given;
}

const struct cluster *world_cluster(const struct world *w)
{
	return &w->cluster;
}

const struct disturbances *world_disturbances(const struct world *w)
{
	return &w->disturbances;
}

const struct cluster *world_given(const struct world *w)
{
	return &w->given;
}

const char *world_unknown(const struct world *w, uint32_t kind)
{
	return w->ops->unknown ? w->ops->unknown(w->self, kind) : NULL;
}

size_t world_runs(const struct world *w)
{
	return w->ops->runs ? w->ops->runs(w->self) : SIZE_MAX;
}

size_t world_folds(const struct world *w)
{
	return w->ops->folds ? w->ops->folds(w->self) : 1;
}

static int check_fold(const struct world *w, size_t fold, struct err *err)
{
	if (fold < world_folds(w))
		return 0;
	return err_fail(err, ERR_ARG, "fold %zu of the world '%s', which has %zu", fold, w->ops->name,
			world_folds(w));
}

int world_training(const struct world *w, size_t fold, uint64_t seed, struct csv **out, struct err *err)
{
	int rc = check_fold(w, fold, err);

	return rc ? rc : w->ops->training(w->self, fold, seed, out, err);
}

void world_split_text(const struct world *w, size_t fold, char *out, size_t size)
{
	if (!size)
		return;
	out[0] = '\0';
	if (fold < world_folds(w))
		w->ops->split_text(w->self, fold, out, size);
}

void world_describe(const struct world *w, struct json_writer *w_json)
{
	json_kv_string(w_json, "title", w->ops->title);
	w->ops->describe(w->self, w_json);
}

size_t world_batches(const struct world *w, const double **out)
{
	return w->ops->batches(w->self, out);
}

/* ---- one course of events ---- */

int world_run_new(const struct world *w, size_t fold, struct world_run **out, struct err *err)
{
	struct world_run *r;
	int rc = check_fold(w, fold, err);

	if (rc)
		return rc;
	r = mem_calloc(1, sizeof *r);
	if (!r)
		return err_nomem(err, "a run of the world '%s'", w->ops->name);
	r->world = w;
	rc = w->ops->run_new(w->self, fold, &r->run, err);
	if (rc)
		free(r);
	else
		*out = r;
	return rc;
}

void world_run_free(struct world_run *r)
{
	if (!r)
		return;
	r->world->ops->run_free(r->run);
	free(r);
}

/* Rounded up, and never before what was handed out already. */
static int64_t moment_ns(const struct world_run *r, double at_s)
{
	double ns = ceil(at_s * NS_PER_S);
	int64_t moment = ns < MOST_NS ? (int64_t)ns : (int64_t)MOST_NS;

	return moment < r->last_ns ? r->last_ns : moment;
}

static int check_start(const struct world_run *r, int64_t now_ns, const struct world_job *j, struct err *err)
{
	const struct trace *t = r->world->trace;
	unsigned long long id = j->id;

	if (now_ns < r->last_ns || (r->next_known && now_ns > r->next_ns))
		return err_fail(err, ERR_ARG,
				"job %llu starts at %lld ns: need from %lld on, up to the next end", id,
				(long long)now_ns, (long long)r->last_ns);
	if (t && j->kind >= t->n_kinds)
		return err_fail(err, ERR_ARG, "job %llu is of kind %u, but the trace has %zu", id, j->kind,
				t->n_kinds);
	if (!(j->batch > 0.0 && isfinite(j->batch)))
		return err_fail(err, ERR_ARG, "job %llu: a batch of %g", id, j->batch);
	if (!isnan(j->epochs) && !(j->epochs > 0.0 && isfinite(j->epochs)))
		return err_fail(err, ERR_ARG, "job %llu: %g epochs", id, j->epochs);
	if (!(j->part >= 0.0 && j->part <= 1.0 && j->behind >= 0.0))
		return err_fail(err, ERR_ARG, "job %llu: a part %g of it behind %g", id, j->part, j->behind);
	return 0;
}

#define LEAST_PART 1e-9 /* of a part that fails where it begins */

double world_job_until(const struct world_job *j)
{
	double part = j->part > 0.0 ? j->part : 1.0;

	if (isnan(j->draws.fails_at))
		return part;
	return fmin(part, fmax(j->draws.fails_at - j->behind, LEAST_PART));
}

int world_run_start(struct world_run *r, int64_t now_ns, const struct world_job *j, struct err *err)
{
	double now_s = (double)now_ns / NS_PER_S;
	int rc = check_start(r, now_ns, j, err);

	if (rc)
		return rc;
	/* rounded, the moment of an end may come out a hair before the end itself */
	rc = r->world->ops->start(r->run, now_s < r->last_s ? r->last_s : now_s, j, err);
	if (rc)
		return rc;
	r->last_ns = now_ns;
	r->next_known = false;
	return 0;
}

int world_run_law_s(const struct world_run *r, const struct world_job *j, double processes, double *out,
		    struct err *err)
{
	const struct world *w = r->world;
	int rc = w->ops->law_s ? w->ops->law_s(r->run, j, processes, out, err)
			       : err_fail(err, ERR_ARG, "the world '%s' has no law by which jobs share it",
					  w->ops->name);

	if (!rc)
		*out *= j->draws.slow * fmin(1.0, 1.0 + w->disturbances.drift);
	return rc;
}

int64_t world_run_next(struct world_run *r)
{
	double at_s;

	if (r->next_known)
		return r->next_ns;
	at_s = r->world->ops->next_s(r->run);
	r->next_ns = at_s == INFINITY ? WORLD_NEVER : moment_ns(r, at_s);
	r->next_known = true;
	return r->next_ns;
}

bool world_run_end(struct world_run *r, struct world_end *out)
{
	double at_s;

	if (!r->world->ops->end(r->run, out, &at_s))
		return false;
	out->at_ns = moment_ns(r, at_s);
	r->last_ns = out->at_ns;
	r->last_s = at_s > r->last_s ? at_s : r->last_s;
	r->next_known = false;
	return true;
}

bool world_can_stop(const struct world *w)
{
	return w->ops->stop != NULL;
}

int world_run_stop(struct world_run *r, int64_t now_ns, uint64_t id, struct world_end *out, struct err *err)
{
	double now_s = (double)now_ns / NS_PER_S;

	now_s = now_s < r->last_s ? r->last_s : now_s;
	if (now_ns < r->last_ns || (r->next_known && now_ns > r->next_ns) || !r->world->ops->stop ||
	    !r->world->ops->stop(r->run, now_s, id, out))
		return err_fail(err, ERR_ARG, "job %llu can not be stopped at %lld ns",
				(unsigned long long)id, (long long)now_ns);
	out->at_ns = r->last_ns = now_ns;
	r->last_s = now_s;
	r->next_known = false;
	return 0;
}

bool world_ends_early(const struct world *w)
{
	return w->ops->stop && w->ops->progress && w->ops->accuracy;
}

int world_run_progress(struct world_run *r, int64_t now_ns, uint64_t id, double *out, struct err *err)
{
	double now_s = (double)now_ns / NS_PER_S;

	now_s = now_s < r->last_s ? r->last_s : now_s;
	if (now_ns < r->last_ns || (r->next_known && now_ns > r->next_ns) || !world_ends_early(r->world) ||
	    !r->world->ops->progress(r->run, now_s, id, out))
		return err_fail(err, ERR_ARG, "the progress of job %llu at %lld ns is not known",
				(unsigned long long)id, (long long)now_ns);
	return 0;
}

int world_run_accuracy(const struct world_run *r, const struct world_job *j, double *out, struct err *err)
{
	if (!world_ends_early(r->world))
		return err_fail(err, ERR_ARG, "in this world a job has an accuracy only at its end");
	return r->world->ops->accuracy(r->run, j, out, err);
}

bool world_can_steer(const struct world *w)
{
	return w->ops->mixed && w->ops->stop;
}

int world_run_mixed(const struct world_run *r, const struct world_job *j, const struct world_stage *stage,
		    size_t n, double *out, struct err *err)
{
	if (!world_can_steer(r->world))
		return err_fail(err, ERR_ARG, "the world '%s' cannot change the batch of a job",
				r->world->ops->name);
	return r->world->ops->mixed(r->run, j, stage, n, out, err);
}

int world_run_copy(struct world_run *to, const struct world_run *from, struct err *err)
{
	void *run = to->run;
	int rc;

	if (to->world != from->world)
		return err_fail(err, ERR_ARG, "a run cannot become the copy of one of another world");
	rc = to == from ? 0 : from->world->ops->copy(run, from->run, err);
	if (!rc) {
		*to = *from;
		to->run = run;
	}
	return rc;
}

double world_run_busy_s(const struct world_run *r)
{
	return r->world->ops->count(r->run).busy_s;
}

uint64_t world_run_events(const struct world_run *r)
{
	return r->world->ops->count(r->run).events;
}
