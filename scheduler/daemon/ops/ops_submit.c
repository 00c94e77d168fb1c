/* `submit` and `predict`: a job's fields checked, the decision made and told. See ops.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/rng.h"
#include "common/text/text.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/ops/decision_json.h"
#include "scheduler/daemon/ops/ops.h"

#define SLO_MAX_S 3e9 /* a century */

struct submit_fields { /* of a request to submit or to predict */
	const char *type;
	uint32_t cpus;
	double slo_s, confidence, max_memory_mb;
	bool best_effort, may_stop;
	int priority;
	uint32_t tenant;
	int64_t now_ns;
	/* only of a submit */
	const char *mode, *key, *tag;
	bool dry_run, watch;
};

static bool take_objective(struct request *r, struct submit_fields *out)
{
	const struct json *v = json_get(r->v, "deadline");
	int64_t at_ns;

	if (!request_number(r, "slo_s", 0.0, SLO_MAX_S, NAN, &out->slo_s))
		return false;
	if (!request_given(v))
		return true;
	if (!isnan(out->slo_s)) {
		reply_error(r, "bad_field", "deadline", NULL,
			    "deadline: slo_s is given too; need one of them");
		return false;
	}
	if (!text_utc_parse(json_string(v, ""), &at_ns)) {
		reply_error(r, "bad_field", "deadline", "for example 2026-11-16T10:05:00Z",
			    "deadline: need a moment as in RFC 3339");
		return false;
	}
	out->slo_s = (double)(at_ns - out->now_ns) / 1e9;
	if (out->slo_s <= 0.0) {
		reply_error(r, "bad_field", "deadline", NULL, "deadline: it is %.0f s ago", -out->slo_s);
		return false;
	}
	return true;
}

static void unknown_type(struct request *r, const char *name)
{
	const char *near = config_nearest_type(r->d->setup->config, name);
	char shown[80], hint[120];

	if (near)
		snprintf(hint, sizeof hint, "did you mean '%s'?", near);
	reply_error(r, "unknown_type", "type", near ? hint : NULL, "there is no job type '%s'",
		    text_printable(name, shown, sizeof shown));
}

static bool in_group(void *owner, uid_t uid, gid_t gid)
{
	(void)uid;
	return conn_in_group(owner, gid);
}

/* Whose job it is, and how urgent: only admins put one before others'. */
static bool take_standing(struct request *r, struct submit_fields *out)
{
	struct daemon *d = r->d;
	int at = config_tenant_of(d->setup->config, conn_uid(r->conn), in_group, r->conn);
	struct err err = { 0 };
	char own[32];
	double priority;

	if (!request_number(r, "priority", -101.0, 100.0, 0.0, &priority) ||
	    !request_bool(r, "may_stop", &out->may_stop))
		return false;
	if (priority != floor(priority)) {
		reply_error(r, "bad_field", "priority", NULL,
			    "priority: need a whole number from -100 to 100");
		return false;
	}
	if (priority > 0.0 && !request_admin(r)) {
		reply_error(r, "not_permitted", "priority", NULL, "only admins may put a job before others");
		return false;
	}
	out->priority = (int)priority;
	snprintf(own, sizeof own, "uid %u", (unsigned)conn_uid(r->conn));
	if (tenants_named(&d->tenants, d->setup->config, d->sched, out->now_ns,
			  at >= 0 ? d->setup->config->tenant[at].name : own, &out->tenant, &err)) {
		reply_err(r, &err, NULL);
		return false;
	}
	return true;
}

/* The parameters as the job gives them, with "epochs" of the request in the place of the parameter that holds them:
 * short for those who do not know what the type calls it. *out_own is to be freed. NULL with an answer given. */
static const struct json *take_params(struct request *r, const struct job_type *t, struct json **out_own,
				      bool *out_ok)
{
	const struct json *given = json_get(r->v, "params"), *epochs = json_get(r->v, "epochs");
	struct strbuf text = { 0 };
	struct json_writer w;
	int rc;

	*out_own = NULL;
	*out_ok = true;
	if (json_type(epochs) == JSON_ABSENT || json_type(epochs) == JSON_NULL)
		return given;
	*out_ok = false;
	if (!t->epochs_param || (json_type(epochs) != JSON_NUMBER && json_type(epochs) != JSON_STRING)) {
		reply_error(r, "bad_field", "epochs", NULL, "%s",
			    t->epochs_param ? "epochs: need a number, or a range as text: \"3..20\""
					    : "epochs: jobs of this type have none");
		return NULL;
	}
	json_begin(&w, &text, false);
	json_open(&w, '{');
	for (const struct json *m = json_type(given) == JSON_OBJECT ? json_first(given) : NULL; m;
	     m = json_next(m)) {
		if (!strcmp(json_key(m), t->epochs_param))
			continue;
		if (json_type(m) == JSON_NUMBER)
			json_kv_number(&w, json_key(m), json_number(m, NAN));
		else
			json_kv_string(&w, json_key(m), json_string(m, NULL));
	}
	if (json_type(epochs) == JSON_NUMBER)
		json_kv_number(&w, t->epochs_param, json_number(epochs, NAN));
	else
		json_kv_string(&w, t->epochs_param, json_string(epochs, NULL));
	json_close(&w, '}');
	rc = text.failed ? -1 : json_parse("params", text.text, text.len, out_own, NULL);
	strbuf_release(&text);
	if (rc)
		reply_error(r, "internal", NULL, NULL, "out of memory");
	*out_ok = !rc;
	return *out_own;
}

/* The same job again: what makes it so. */
static uint64_t fingerprint(uid_t uid, const char *type, const char *params)
{
	uint64_t h = rng_mix(uid + 1);

	for (const char *s = type; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
	for (const char *s = params; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
	return rng_mix(h) | 1;
}

static bool take_fields(struct request *r, struct submit_fields *out)
{
	const struct config *c = r->d->setup->config;
	const struct job_type *t;
	double cpus;

	out->now_ns = daemon_now_ns(r->d);
	out->type = json_string(json_get(r->v, "type"), NULL);
	if (!out->type) {
		reply_error(r, "bad_field", "type", NULL, "type: need the name of a job type, as text");
		return false;
	}
	t = config_type(c, out->type);
	if (!t) {
		unknown_type(r, out->type);
		return false;
	}
	if (!request_number(r, "cpus", 0.0, JOB_TYPE_MAX_CPUS, t->cpus_default, &cpus) ||
	    !take_objective(r, out) ||
	    !request_number(r, "confidence", 0.0, 0.9999, c->confidence, &out->confidence) ||
	    !request_number(r, "max_memory_mb", 0.0, 1e12, NAN, &out->max_memory_mb) ||
	    !request_bool(r, "best_effort", &out->best_effort))
		return false;
	if (cpus != floor(cpus) || cpus < t->cpus_min || cpus > t->cpus_max) {
		reply_error(r, "bad_field", "cpus", NULL,
			    "cpus: need a whole number from %u to %u for jobs of type %s", t->cpus_min,
			    t->cpus_max, t->name);
		return false;
	}
	out->cpus = (uint32_t)cpus;
	return take_standing(r, out);
}

static void put_decision(struct daemon *d, struct json_writer *w, const struct job_type *t,
			 const struct submit_fields *f, double took_us)
{
	struct decision_about about = {
		.at_ns = f->now_ns,
		.when = "arrival",
		.policy = d->setup->config->policy,
		.model = d->setup->model_name,
		.type = t,
		.slo_s = f->slo_s,
		.took_us = took_us,
	};

	decision_json(w, &d->decision, &about);
}

/* What the request says of the job; nothing is decided yet. Text is borrowed. */
static void fields_to_row(const struct request *r, const struct submit_fields *f, struct job_record *row)
{
	const struct setup *s = r->d->setup;

	job_record_init(row);
	row->id = r->d->next_id;
	row->key = f->key;
	row->uid = conn_uid(r->conn);
	row->gid = conn_gid(r->conn);
	row->type = f->type;
	row->mode = f->mode;
	row->cpus = f->cpus;
	row->slo_s = f->slo_s;
	row->confidence = f->confidence;
	row->max_memory_mb = f->max_memory_mb;
	row->best_effort = f->best_effort;
	row->submitted_ns = f->now_ns;
	row->tenant = tenants_name(&r->d->tenants, f->tenant);
	row->priority = f->priority;
	row->may_stop = f->may_stop;
	row->policy = s->config->policy;
	row->model = s->model_name[0] ? s->model_name : NULL;
	row->tag = f->tag;
}

/* Binds the job to the configuration and the model. False: answered with an error. */
static bool bind_job(struct request *r, const struct submit_fields *f, struct binding *out)
{
	const struct setup *s = r->d->setup;
	const char *field = NULL;
	struct err err = { 0 };
	struct json *own;
	bool ok;
	const struct json *params = take_params(r, config_type(s->config, f->type), &own, &ok);
	int rc;

	if (!ok)
		return false;
	rc = binding_make(s, f->type, params, json_get(r->v, "batches"), f->cpus, out, &field, &err);
	json_free(own);
	if (rc)
		reply_err(r, &err, field);
	return !rc;
}

/* ---- predict ---- */

static void what_if(struct request *r, struct submit_fields *f)
{
	struct daemon *d = r->d;
	struct sched_request q;
	struct binding b;
	enum sched_verdict verdict;
	struct err err = { 0 };
	struct job job = { .id = d->next_id }; /* for the length of this question */
	double before, took_us;

	if (!take_fields(r, f))
		return;
	if (!d->setup->model) {
		reply_error(r, "no_model", NULL, NULL,
			    "the policy %s predicts nothing: no model is configured",
			    d->setup->config->policy);
		return;
	}
	if (!bind_job(r, f, &b))
		return;
	fields_to_row(r, f, &job.row);
	job.type_number = names_number(&d->jobs.names, f->type);
	job.tenant = f->tenant;
	binding_give(&b, &job);
	binding_request(&job, &q);
	before = clock_monotonic_us();
	if (sched_what_if(d->sched, f->now_ns, &q, &d->decision, &verdict, &err)) {
		reply_err(r, &err, NULL);
	} else {
		took_us = clock_monotonic_us() - before;
		outcome_stats_decision(&d->stats, took_us);
		reply_begin(r);
		json_kv_string(&r->w, "verdict", sched_verdict_name(verdict));
		if (f->dry_run) {
			json_put_key(&r->w, "job");
			json_put_null(&r->w);
		}
		json_put_key(&r->w, "decision");
		put_decision(d, &r->w, job.type, f, took_us);
		reply_send(r, 0);
	}
	job_drop_live_parts(&job);
}

void op_predict(struct request *r)
{
	struct submit_fields f = { 0 };

	what_if(r, &f);
}

/* ---- submit ---- */

static bool take_submit_fields(struct request *r, struct submit_fields *out)
{
	if (!request_text(r, "mode", 16, &out->mode) || !request_text(r, "key", JOBS_MAX_KEY, &out->key) ||
	    !request_text(r, "tag", JOBS_MAX_TAG, &out->tag) || !request_bool(r, "dry_run", &out->dry_run) ||
	    !request_bool(r, "watch", &out->watch))
		return false;
	if (!out->mode)
		out->mode = "run";
	if (!executor_find(out->mode)) {
		reply_error(r, "bad_field", "mode", NULL, "mode: need \"run\" or \"advise\"");
		return false;
	}
	return true;
}

static bool may_submit(struct request *r, const struct submit_fields *f)
{
	struct daemon *d = r->d;
	const struct job_type *t = config_type(d->setup->config, f->type);
	struct err why = { 0 };
	uid_t uid = conn_uid(r->conn);

	if (d->draining) {
		reply_error(r, "draining", NULL, "try again when the daemon is back",
			    "the daemon takes no more jobs");
		return false;
	}
	if (d->store_failed) {
		store_failed(d->store, &why);
		reply_error(r, "storage_failed", NULL, "the daemon tries to repair it every second", "%s",
			    why.text);
		return false;
	}
	if (sched_queued(d->sched) >= d->setup->config->max_queued) {
		reply_error(r, "queue_full", NULL, NULL, "%zu jobs are queued, as many as are allowed",
			    sched_queued(d->sched));
		return false;
	}
	if (strcmp(f->mode, "run"))
		return true;
	if (t->n_argv == 0) {
		reply_error(r, "bad_field", "mode", NULL,
			    "mode: jobs of type %s are not run here, only advised", t->name);
		return false;
	}
	if (geteuid() != 0 && uid != geteuid()) {
		reply_error(r, "not_permitted", NULL, NULL,
			    "this daemon runs jobs of its own user (uid %u) only, and you are uid %u",
			    (unsigned)geteuid(), (unsigned)uid);
		return false;
	}
	return true;
}

/* The first job's reply again: after a lost answer a client cannot know whether it was taken. */
static void answer_old_duplicate(void *owner, uint64_t token, const struct strbuf *text,
				 const struct err *err)
{
	struct later *l = owner;
	struct json_writer w;
	struct json *row = NULL;

	(void)token;
	if (err->code || text->len == 0) {
		later_error(l, "internal",
			    err->code ? err->text : "the job of this key is not in the database");
		return;
	}
	json_parse("job", strbuf_text(text), text->len, &row, NULL);
	later_begin(l, &w);
	json_kv_string(&w, "verdict", json_string(json_get(row, "verdict"), NULL));
	json_free(row);
	json_kv_bool(&w, "duplicate", true);
	json_put_key(&w, "job");
	json_put_raw(&w, strbuf_text(text));
	json_put_key(&w, "decision");
	json_put_null(&w);
	later_send(l, &w);
}

static void reply_duplicate(struct request *r, const struct submit_fields *f, uint64_t id)
{
	struct job *job = jobs_find(&r->d->jobs, id);
	struct err err = { 0 };
	struct later *l;

	r->d->stats.duplicates++;
	if (job) {
		if (f->watch)
			watch_add(r->d, r->conn, id, NULL);
		reply_begin(r);
		json_kv_string(&r->w, "verdict", job_verdict_name[job->row.verdict]);
		json_kv_bool(&r->w, "duplicate", true);
		put_job(r, job);
		json_put_key(&r->w, "decision");
		json_put_null(&r->w);
		reply_send(r, daemon_ticket(r->d)); /* the first answer may not be out yet */
		return;
	}
	l = later_new(r);
	if (l && ops_ask(r->d, STORE_JOB, id, NULL, answer_old_duplicate, l, 0, &err))
		later_error(l, "internal", err.text);
}

static int new_job(struct request *r, const struct submit_fields *f, struct binding *b, struct job **out,
		   struct err *err)
{
	struct strbuf params = { 0 }, batches = { 0 };
	struct json_writer w;
	struct job_record row;
	int rc;

	fields_to_row(r, f, &row);
	json_begin(&w, &params, false);
	job_params_to_json(b->type, &b->params, &w);
	if (request_given(json_get(r->v, "batches"))) {
		json_begin(&w, &batches, false);
		json_open(&w, '[');
		for (size_t i = 0; i < b->n_batches; i++)
			json_put_number(&w, b->batch[i]);
		json_close(&w, ']');
		row.batches = strbuf_text(&batches);
	}
	row.params = strbuf_text(&params);
	if (params.failed || batches.failed)
		rc = err_nomem(err, "a job");
	else
		rc = job_new(&r->d->jobs.names, &row, out, err);
	if (!rc) {
		binding_give(b, *out);
		(*out)->tenant = f->tenant;
		(*out)->recurring = fingerprint(row.uid, row.type, row.params);
	}
	strbuf_release(&params);
	strbuf_release(&batches);
	return rc;
}

static void reply_submitted(struct request *r, const struct job *job, const struct decision *d)
{
	const struct candidate *c = d->chosen >= 0 ? &d->candidate[d->chosen] : NULL;
	struct job_live live = { 0 };

	/* The decision is the estimate: playing all jobs forward once more would tell the same. */
	if (c && job->row.state == JOB_QUEUED && !isnan(c->time_s)) {
		live.has_estimate = true;
		live.start_s = c->wait_s;
		live.end_s = c->wait_s + c->time_s;
		live.end_low_s = NAN;
		live.end_high_s = c->wait_upper_s + c->upper_s;
	}
	reply_begin(r);
	json_kv_string(&r->w, "verdict", job_verdict_name[job->row.verdict]);
	json_put_key(&r->w, "job");
	job_json(&r->w, &job->row, &live);
	json_put_key(&r->w, "decision");
	json_put_raw(&r->w, strbuf_text(&r->d->text));
	reply_send(r, daemon_ticket(r->d));
}

/* The decision, and its text in d->text. The scheduler has the job if that worked. */
static int decide_arrival(struct daemon *d, struct job *job, const struct submit_fields *f,
			  enum sched_verdict *out_verdict, struct err *err)
{
	struct sched_request q;
	struct json_writer w;
	char why[192];
	double before = clock_monotonic_us(), took_us;
	bool known = learning_knows(d->learning, &job->values, job->n_epoch_choices > 0, job->row.type, why,
				    sizeof why);
	int rc;

	binding_request(job, &q);
	/* A job like none the model has seen is taken, and learned from, but nothing is promised. */
	if (!known)
		q.slo_s = NAN;
	rc = sched_submit(d->sched, f->now_ns, &q, &d->decision, out_verdict, err);
	took_us = clock_monotonic_us() - before;
	if (rc)
		return rc;
	if (!known)
		job_set_reason(job, why);
	outcome_stats_decision(&d->stats, took_us);
	strbuf_reset(&d->text);
	json_begin(&w, &d->text, false);
	put_decision(d, &w, job->type, f, took_us);
	return 0;
}

static void submit(struct request *r, const struct submit_fields *f)
{
	struct daemon *d = r->d;
	struct job *job = NULL;
	struct binding b = { 0 };
	struct life_event e;
	struct err err = { 0 };
	int rc;

	if (!bind_job(r, f, &b))
		return;
	rc = new_job(r, f, &b, &job, &err);
	binding_release(&b);
	if (rc) {
		reply_err(r, &err, NULL);
		return;
	}
	e = carry_event(d, LIFE_SUBMITTED, job);
	rc = decide_arrival(d, job, f, &e.verdict, &err);
	if (rc) {
		reply_err(r, &err, NULL);
		job_free(job);
		return;
	}
	e.now_ns = f->now_ns;
	e.decision = &d->decision;
	e.text = strbuf_text(&d->text);
	rc = d->text.failed ? err_nomem(&err, "a decision") : carry_out(d, &e, &err);
	if (rc) {
		sched_remove(d->sched, f->now_ns, job->id, NULL);
		reply_error(r, rc == -ERR_BUSY ? "storage_failed" : "internal", NULL, NULL, "%s", err.text);
		job_free(job);
		return;
	}
	d->next_id++;
	/* The events of the job follow its reply. Without memory for the watch the job is taken all the same. */
	if (f->watch)
		watch_add(d, r->conn, job->id, NULL);
	reply_submitted(r, job, &d->decision);
	jobs_trim(&d->jobs, d->setup->config->max_finished); /* a rejected job has ended */
}

void op_submit(struct request *r)
{
	struct submit_fields f = { 0 };
	uint64_t earlier;

	if (!take_submit_fields(r, &f))
		return;
	if (f.dry_run) {
		what_if(r, &f);
		return;
	}
	/* Before anything else is looked at: since the first try a deadline may have passed, a type may have gone. */
	earlier = f.key ? jobs_key_find(&r->d->jobs, conn_uid(r->conn), f.key) : 0;
	if (earlier)
		reply_duplicate(r, &f, earlier);
	else if (take_fields(r, &f) && may_submit(r, &f))
		submit(r, &f);
}
