/* `submit` and `predict`: the decision made and told, and a job admitted. See ops.h; submission.h has what is asked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/rng.h"
#include "scheduler/daemon/ops/submission.h"

/* ---- predict ---- */

static void what_if(struct request *r, struct submission *s)
{
	struct daemon *d = r->d;
	struct sched_request q;
	struct binding b;
	enum sched_verdict verdict;
	struct err err = { 0 };
	const char *field = NULL;
	double before, took_us;

	if (!submission_read(r, s))
		return;
	if (!d->setup->model) {
		reply_error(r, "no_model", NULL, NULL,
			    "the policy %s predicts nothing: no model is configured",
			    d->setup->config->policy);
		return;
	}
	if (binding_make(d->setup, &s->input, &b, &field, &err)) {
		reply_err(r, &err, field);
		return;
	}
	q = (struct sched_request){
		.id = d->next_id,
		.values = &b.values,
		.cpus = s->input.cpus,
		.batch = b.n_batches ? b.batch : NULL,
		.n_batches = b.n_batches,
		.epochs = b.n_epochs ? b.epochs : NULL,
		.n_epochs = b.n_epochs,
		.tenant = s->tenant,
		.priority = s->priority,
		.may_stop = s->may_stop && b.type->early_stop,
		.type = names_number(&d->jobs.names, s->input.type),
		.slo_s = s->slo_s,
		.confidence = s->confidence,
		.best_effort = s->best_effort,
		.memory_mb = b.type->memory_mb,
		.memory_mb_per_record = b.type->memory_mb_per_record,
		.max_memory_mb = s->max_memory_mb,
	};
	before = clock_monotonic_us();
	if (sched_what_if(d->sched, s->now_ns, &q, &d->decision, &verdict, &err)) {
		reply_err(r, &err, NULL);
	} else {
		took_us = clock_monotonic_us() - before;
		tally_decision(&d->tally, took_us);
		reply_begin(r);
		json_kv_string(&r->w, "verdict", sched_verdict_name(verdict));
		if (s->dry_run) {
			json_put_key(&r->w, "job");
			json_put_null(&r->w);
		}
		json_put_key(&r->w, "decision");
		submission_put_decision(d, &r->w, s, took_us);
		reply_send(r, 0);
	}
	binding_release(&b);
}

void op_predict(struct request *r)
{
	struct submission s = { 0 };

	what_if(r, &s);
}

/* ---- submit ---- */

/* Jobs of one user with the same type and parameters are the same job again. */
static uint64_t fingerprint(uid_t uid, const char *type, const char *params)
{
	uint64_t h = rng_mix(uid + 1);

	for (const char *s = type; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
	for (const char *s = params; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
	return rng_mix(h) | 1;
}

static bool may_submit(struct request *r, const struct submission *s)
{
	struct daemon *d = r->d;
	const struct job_type *t = s->type;
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
	if (strcmp(s->mode, "run"))
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

static void reply_duplicate(struct request *r, const struct submission *s, uint64_t id)
{
	struct job *job = jobs_find(&r->d->jobs, id);
	struct err err = { 0 };
	struct later *l;

	r->d->tally.duplicates++;
	if (job) {
		if (s->watch)
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

static int new_job(struct request *r, const struct submission *s, struct binding *b, struct job **out,
		   struct err *err)
{
	struct strbuf params = { 0 }, batches = { 0 };
	struct json_writer w;
	struct job_record row;
	int rc;

	job_record_init(&row);
	row.id = r->d->next_id;
	row.key = s->key;
	row.uid = conn_uid(r->conn);
	row.gid = conn_gid(r->conn);
	row.type = s->input.type;
	row.mode = s->mode;
	row.cpus = s->input.cpus;
	row.slo_s = s->slo_s;
	row.confidence = s->confidence;
	row.max_memory_mb = s->max_memory_mb;
	row.best_effort = s->best_effort;
	row.submitted_ns = s->now_ns;
	row.tenant = tenants_name(&r->d->tenants, s->tenant);
	row.priority = s->priority;
	row.may_stop = s->may_stop;
	row.policy = r->d->setup->config->policy;
	row.model = r->d->setup->model_name[0] ? r->d->setup->model_name : NULL;
	row.tag = s->tag;
	json_begin(&w, &params, false);
	job_params_to_json(b->type, &b->params, &w);
	if (s->input.batches) {
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
	if (!rc)
		binding_give(b, *out);
	strbuf_release(&params);
	strbuf_release(&batches);
	return rc;
}

/* Why nothing could be promised, for people; the candidates have it in detail. */
static void why_rejected(const struct job_record *row, const struct decision *d, char *text, size_t size)
{
	const struct candidate *first = &d->candidate[0];
	unsigned common = ~0u;

	for (size_t i = 0; i < d->n_candidates; i++)
		common &= d->candidate[i].reasons;
	if (!isnan(d->smallest_slo_s))
		snprintf(text, size, "no batch meets %g s at confidence %g; %.6g s could be promised",
			 row->slo_s, row->confidence, d->smallest_slo_s);
	else if (common & REASON_TOO_WIDE)
		snprintf(text, size, "it wants %u cpus, more than are handed out", row->cpus);
	else if (common & REASON_MEMORY)
		snprintf(text, size, "every batch needs more memory than there is");
	else if (common & REASON_NO_BOUND)
		snprintf(text, size, "there are too few observations for a promise at confidence %g",
			 row->confidence);
	else if (common & REASON_BREAKS_PROMISE)
		snprintf(text, size, "every batch would break a promise already made (job %llu)",
			 (unsigned long long)first->breaks);
	else
		snprintf(text, size, "no batch can be promised at any objective");
}

static void take_promise(struct job *job, const struct decision *d, enum sched_verdict verdict)
{
	struct job_record *row = &job->row;
	const struct candidate *c = d->chosen >= 0 ? &d->candidate[d->chosen] : NULL;
	char text[160];

	row->verdict = job_verdict_of(verdict);
	job->row.state = verdict == SCHED_REJECTED ? JOB_REJECTED : JOB_QUEUED;
	if (verdict == SCHED_REJECTED) {
		row->ended_ns = row->submitted_ns;
		why_rejected(row, d, text, sizeof text);
		job_set_reason(job, text);
		return;
	}
	if (!c)
		return;
	record_take_promise(row, c, job->type ? job_type_lr(job->type, c->decision) : NAN);
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

static void submit(struct request *r, const struct submission *s)
{
	struct daemon *d = r->d;
	struct job *job = NULL;
	struct binding b = { 0 };
	struct sched_request q;
	struct json_writer w;
	enum sched_verdict verdict;
	struct err err = { 0 };
	const char *field = NULL;
	char why[192];
	double before, took_us;
	bool known;
	int rc = binding_make(d->setup, &s->input, &b, &field, &err);

	if (!rc)
		rc = new_job(r, s, &b, &job, &err);
	binding_release(&b);
	if (rc) {
		reply_err(r, &err, field);
		return;
	}
	job->tenant = s->tenant;
	job->recurring = fingerprint(job->row.uid, job->row.type, job->row.params);
	binding_request(job, &q);
	/* A job like none the model has seen is taken, and learned from, but nothing is promised. */
	known = learning_knows(d->learning, &job->values, job->n_epoch_choices > 0, job->row.type, why,
			       sizeof why);
	if (!known)
		q.slo_s = NAN;
	before = clock_monotonic_us();
	rc = sched_submit(d->sched, s->now_ns, &q, &d->decision, &verdict, &err);
	took_us = clock_monotonic_us() - before;
	if (rc) {
		reply_err(r, &err, NULL);
		job_free(job);
		return;
	}
	tally_decision(&d->tally, took_us);
	strbuf_reset(&d->text);
	json_begin(&w, &d->text, false);
	submission_put_decision(d, &w, s, took_us);
	take_promise(job, &d->decision, verdict);
	if (!known && verdict != SCHED_REJECTED)
		job_set_reason(job, why);
	rc = d->text.failed ? err_nomem(&err, "a decision")
			    : life_admit(d, job, &d->decision, verdict, strbuf_text(&d->text), &err);
	if (rc) {
		sched_remove(d->sched, s->now_ns, job->id, NULL);
		reply_error(r, rc == -ERR_BUSY ? "storage_failed" : "internal", NULL, NULL, "%s", err.text);
		job_free(job);
		return;
	}
	d->next_id++;
	/* Its own events follow its reply; a watch that cannot be had is no reason to lose the job. */
	if (s->watch)
		watch_add(d, r->conn, job->id, NULL);
	reply_submitted(r, job, &d->decision);
	jobs_trim(&d->jobs, d->setup->config->max_finished); /* a rejected job has ended */
}

void op_submit(struct request *r)
{
	struct submission s = { 0 };
	uint64_t earlier;

	if (!submission_read_handling(r, &s))
		return;
	if (s.dry_run) {
		what_if(r, &s);
		return;
	}
	/* Before anything else is looked at: since the first try a deadline may have passed, a type may have gone. */
	earlier = s.key ? jobs_key_find(&r->d->jobs, conn_uid(r->conn), s.key) : 0;
	if (earlier)
		reply_duplicate(r, &s, earlier);
	else if (submission_read(r, &s) && may_submit(r, &s))
		submit(r, &s);
}
