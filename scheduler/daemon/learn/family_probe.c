/* Probes of new families: when a job with a limit arrives whose family (predictors/models/spread.h) the
 * model's table has none of, and its type allows it, a short run of the same command is submitted beside it,
 * as a job of the same user without a promise: the fewest epochs, the middle batch. What it takes tells how
 * far off the model is for all jobs of that family (core/learn/ledger.h). One a user, job type, family and
 * model: its idempotency key remembers that, also over a restart. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/rng.h"
#include "common/text/hash.h"
#include "scheduler/daemon/admission.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/learn/learning_internal.h"

#define LEAST_SHARED 0.1 /* of the errors: with less a probe would tell nothing of other jobs */

/* By the job's type, or by the configuration. */
static bool is_allowed(const struct learning *l, const struct job *job)
{
	enum config_probe own = job->type ? job->type->probe : PROBE_DEFAULT;

	return (own == PROBE_DEFAULT ? l->d->setup->config->learning.probe : own) == PROBE_AUTO;
}

/* Is a run worth while, and is there none yet? The key of the one that would be. */
static bool is_wanted(const struct learning *l, const struct job *job, char *key, size_t size)
{
	const struct daemon *d = l->d;
	const struct model_slot *slot = &d->setup->slot[job->slot];
	const struct model *m = slot->model;
	struct sched_request q;
	uint64_t h;
	bool is_new;

	binding_request(job, &q);
	if (!m || isnan(q.slo_s) || !job->type || !job->type->n_argv || strcmp(job->row.mode, "run") ||
	    !is_allowed(l, job) || !(spread_shared(m->time.spread) >= LEAST_SHARED) ||
	    sched_family_known(d->sched, &q) > 0 || sched_queued(d->sched) >= d->setup->config->max_queued)
		return false;
	h = rng_mix(hash_text(sched_family(d->sched, q.model, q.values, q.cpus, &is_new), job->row.type));
	snprintf(key, size, "probe-%016" PRIx64, rng_mix(hash_text(h, slot->name)));
	return !jobs_key_find(&d->jobs, job->row.uid, key);
}

/* The fewest epochs that the type allows and the model knows, but no more than the job itself has; NaN: the
 * type does not say where they are. */
static double fewest_epochs(const struct model *m, const struct job *job)
{
	const struct features *f = m->features;
	const struct job_type *t = job->type;
	int column = schema_role(m->schema, ROLE_EPOCHS);
	double least = 1.0, choice[2], own;
	size_t at = 0;

	for (size_t i = 0; i < f->n; i++)
		if (column >= 0 && f->feature[i].source == (size_t)column && f->feature[i].min > least)
			least = ceil(f->feature[i].min);
	while (t->epochs_param && at < t->n_params && strcmp(t->param[at].name, t->epochs_param))
		at++;
	if (!t->epochs_param || at == t->n_params)
		return NAN;
	least = fmin(fmax(least, t->param[at].min), t->param[at].max);
	own = job->bound->params.number[at];
	if (!job_type_epochs(t, least, fmax(least, fmin(t->param[at].max, 1e9)), choice, 2))
		return own;
	return own < choice[0] ? own : choice[0];
}

/* The same job with the fewest epochs and one batch. */
static int bind_probe(const struct daemon *d, const struct job *job, struct binding *out, struct err *err)
{
	const struct model *m = d->setup->slot[job->slot].model;
	const double *batch = job->n_batches ? job->batch : m->candidate;
	size_t n = job->n_batches ? job->n_batches : m->n_candidates;
	double fewest = fewest_epochs(m, job);
	struct binding_input in = { .type = job->row.type, .cpus = job->row.cpus };
	struct json *asked = NULL;
	struct strbuf text = { 0 };
	const char *field;
	int rc;

	strbuf_printf(&text, "{\"params\":%s,\"batches\":[%.17g]", job->row.params ? job->row.params : "{}",
		      batch[(n - 1) / 2]);
	if (!isnan(fewest))
		strbuf_printf(&text, ",\"epochs\":%.17g", fewest);
	strbuf_puts(&text, "}");
	rc = text.failed ? err_nomem(err, "a probe")
			 : json_parse("a probe", text.text, text.len, &asked, err);
	in.params = json_get(asked, "params");
	in.epochs = json_get(asked, "epochs");
	in.batches = json_get(asked, "batches");
	if (!rc)
		rc = binding_make(d->setup, &in, out, &field, err);
	json_free(asked);
	strbuf_release(&text);
	return rc;
}

static int make_job(struct daemon *d, const struct job *job, const char *key, int64_t now_ns,
		    struct job **out, struct err *err)
{
	char identity[JOB_IDENTITY + 1], batches[48];
	struct strbuf params = { 0 };
	struct json_writer w;
	struct job_record row;
	struct binding b = { 0 };
	int rc = job_identity_draw(identity, err);

	if (!rc)
		rc = bind_probe(d, job, &b, err);
	if (rc)
		return rc;
	json_begin(&w, &params, false);
	job_params_to_json(b.type, &b.bound->params, &w);
	snprintf(batches, sizeof batches, "[%.17g]", b.batch[0]);
	job_record_init(&row);
	row.id = d->next_id + 1; /* behind the job itself */
	row.key = key;
	row.uid = job->row.uid;
	row.gid = job->row.gid;
	row.type = job->row.type;
	row.mode = job->row.mode;
	row.params = strbuf_text(&params);
	row.batches = batches;
	row.cpus = job->row.cpus;
	row.confidence = job->row.confidence;
	row.max_memory_mb = job->row.max_memory_mb;
	row.best_effort = true;
	row.submitted_ns = now_ns;
	row.tenant = job->row.tenant;
	row.policy = d->setup->config->policy;
	row.model = d->setup->slot[job->slot].name;
	row.tag = "probe";
	row.identity = identity;
	rc = params.failed ? err_nomem(err, "a probe") : job_new(&d->jobs.names, &row, out, err);
	strbuf_release(&params);
	if (!rc) {
		binding_give(&b, *out);
		(*out)->tenant = job->tenant;
		(*out)->limited = job->limited;
		job_set_reason(*out, "a probe: no job of this context was ever measured");
	}
	binding_release(&b);
	return rc;
}

/* Queues it like any job. */
static int submit(struct daemon *d, struct job *probe, int64_t now_ns, struct err *err)
{
	struct life_event e = carry_event(d, LIFE_SUBMITTED, probe);
	struct admission a;
	struct strbuf text = { 0 };
	struct json_writer w;
	int rc = admission_decide(d, probe, now_ns, true, &a, err);

	if (!rc && a.verdict == SCHED_REJECTED)
		rc = err_fail(err, ERR_BUSY, "there is no room for it");
	if (rc)
		return rc;
	json_begin(&w, &text, false);
	admission_json(d, probe, now_ns, &a, &w);
	e.now_ns = now_ns;
	e.verdict = a.verdict;
	e.decision = &a.decision;
	e.text = strbuf_text(&text);
	rc = text.failed ? err_nomem(err, "a decision") : carry_out(d, &e, err);
	strbuf_release(&text);
	if (rc)
		sched_remove(d->sched, now_ns, probe->id, NULL);
	else
		d->next_id++;
	return rc;
}

struct job *learning_probe_make(struct learning *l, const struct job *job, int64_t now_ns)
{
	struct job *probe = NULL;
	struct err err = { 0 };
	char key[40];

	if (is_wanted(l, job, key, sizeof key) && make_job(l->d, job, key, now_ns, &probe, &err))
		log_warn("no probe of a new context: %s", err.text);
	return probe;
}

uint64_t learning_probe_submit(struct learning *l, struct job *probe, int64_t now_ns)
{
	struct err err = { 0 };

	if (!probe)
		return 0;
	if (submit(l->d, probe, now_ns, &err)) {
		job_free(probe);
		log_warn("no probe of a new context: %s", err.text);
		return 0;
	}
	l->probes++;
	log_info("job %llu is a probe of a context of type %s that was never measured",
		 (unsigned long long)probe->id, probe->row.type);
	return probe->id;
}
