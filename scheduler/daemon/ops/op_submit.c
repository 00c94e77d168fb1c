/* `submit` and `predict`: making the decision, answering with it, and admitting a job. See ops.h;
 * submission.h reads the request. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "scheduler/daemon/admission.h"
#include "scheduler/daemon/ops/submission.h"
#include "scheduler/daemon/retention.h"

/* What the request says of the job; nothing is decided yet. Text is borrowed. */
static void submission_to_row(const struct request *r, const struct submission *f, struct job_record *row)
{
	const struct setup *s = r->d->setup;
	const struct model_slot *slot = &s->slot[setup_slot_of(s, f->input.type)];

	job_record_init(row);
	row->id = r->d->next_id;
	row->key = f->key;
	row->uid = conn_uid(r->conn);
	row->gid = conn_gid(r->conn);
	row->type = f->input.type;
	row->mode = f->mode;
	row->cpus = f->input.cpus;
	row->gpus = row->gpus_least = f->gpus;
	row->slo_s = f->slo_s;
	row->confidence = f->confidence;
	row->max_memory_mb = f->max_memory_mb;
	row->best_effort = f->best_effort;
	row->chance = f->chance > 0.0 && !isnan(f->slo_s) ? f->chance : NAN;
	row->value = f->value;
	row->submitted_ns = f->now_ns;
	row->tenant = tenants_name(&r->d->tenants, f->tenant);
	row->priority = f->priority;
	row->may_stop = f->may_stop;
	row->policy = s->config->policy;
	row->model = slot->name[0] ? slot->name : NULL;
	row->tag = f->tag;
	row->after = f->after;
	row->after_more = f->after_more[0] ? f->after_more : NULL;
	row->after_ok = f->after_ok;
	row->retry = (int)f->retry;
	row->array_index = f->index;
}

/* Binds the job to the configuration and the model. False: answered with an error. */
static bool bind_job(struct request *r, const struct submission *f, struct binding *out)
{
	const char *field = NULL;
	struct err err = { 0 };

	if (!binding_make(r->d->setup, &f->input, out, &field, &err))
		return true;
	reply_err(r, &err, field);
	return false;
}

/* The batches that its user named, as the row has them; NULL: they were not named. */
static const char *named_batches(const struct submission *f, const struct binding *b, struct strbuf *out)
{
	struct json_writer w;

	if (!f->input.batches)
		return NULL;
	json_begin(&w, out, false);
	json_open(&w, '[');
	for (size_t i = 0; i < b->n_batches; i++)
		json_put_number(&w, b->batch[i]);
	json_close(&w, ']');
	return strbuf_text(out);
}

/* ---- predict ---- */

static void what_if(struct request *r, struct submission *f)
{
	struct daemon *d = r->d;
	struct admission a;
	struct binding b;
	char rejected[256] = "";
	struct err err = { 0 };
	struct job job = { .id = d->next_id,
			   .limited = !request_admin(r) }; /* for the length of this question */
	struct strbuf batches = { 0 };

	if (!submission_read(r, f))
		return;
	if (!d->setup->slot[setup_slot_of(d->setup, f->input.type)].model) {
		if (d->setup->policy.policy->predictor)
			reply_error(r, "no_model", NULL, "submit some: they teach the first model",
				    "there is no model of jobs of type %s yet", f->input.type);
		else
			reply_error(r, "no_model", NULL, NULL,
				    "the policy %s predicts nothing: no model is configured",
				    d->setup->config->policy);
		return;
	}
	if (!bind_job(r, f, &b))
		return;
	submission_to_row(r, f, &job.row);
	job.row.batches = named_batches(f, &b, &batches);
	job.type_number = names_number(&d->jobs.names, f->input.type);
	job.tenant = f->tenant;
	binding_give(&b, &job);
	if (admission_decide(d, &job, f->now_ns, false, &a, &err)) {
		reply_err(r, &err, NULL);
	} else {
		reply_begin(r);
		json_kv_string(&r->w, "verdict", sched_verdict_name(a.verdict));
		if (a.verdict == SCHED_REJECTED)
			life_why_rejected(&job.row, &a.decision, rejected, sizeof rejected);
		if (rejected[0] || a.why[0])
			json_kv_string(&r->w, "reason", rejected[0] ? rejected : a.why);
		if (f->dry_run) {
			json_put_key(&r->w, "job");
			json_put_null(&r->w);
		}
		json_put_key(&r->w, "decision");
		admission_json(d, &job, f->now_ns, &a, &r->w);
		reply_send(r, 0);
	}
	job_drop_live_parts(&job);
	strbuf_release(&batches);
}

void op_predict(struct request *r)
{
	struct submission f = { 0 };

	what_if(r, &f);
}

/* ---- submit ---- */

/* A user who is not an admin may have as many jobs in the queue as there are places left, so that one user
 * cannot take the last places: one user alone gets half of the queue, two get a third each (the dynamic
 * threshold of Choudhury and Hahne, 1998, for shared buffers). */
static bool has_place(struct request *r)
{
	const struct config *c = r->d->setup->config;
	size_t queued = sched_queued(r->d->sched) + waiting_count(r->d),
	       own = users_queued(&r->d->jobs.users, conn_uid(r->conn));
	size_t left = queued < c->max_queued ? c->max_queued - queued : 0;

	if (!left) {
		reply_error(r, "queue_full", NULL, NULL, "%zu jobs are queued, as many as are allowed",
			    queued);
		return false;
	}
	if (request_admin(r))
		return true;
	if (own >= c->max_queued_per_uid) {
		reply_error(r, "queue_full", NULL, "wait until some of them have started",
			    "you have %zu jobs queued, as many as one user may", own);
		return false;
	}
	if (own && own >= left) {
		reply_error(r, "queue_full", NULL, "wait until some of your jobs have started",
			    "you have %zu jobs queued, and the %zu places left are for other users", own,
			    left);
		return false;
	}
	return true;
}

static bool may_submit(struct request *r, const struct submission *f)
{
	struct daemon *d = r->d;
	const struct job_type *t = f->type;
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
	if (!has_place(r))
		return false;
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

static void reply_duplicate(struct request *r, const struct submission *f, uint64_t id)
{
	struct job *job = jobs_find(&r->d->jobs, id);
	struct err err = { 0 };
	struct later *l;

	r->d->tally.duplicates++;
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

static int new_job(struct request *r, const struct submission *f, struct binding *b, struct job **out,
		   struct err *err)
{
	struct strbuf params = { 0 }, batches = { 0 };
	struct json_writer w;
	struct job_record row;
	char identity[JOB_IDENTITY + 1];
	int rc = job_identity_draw(identity, err);

	if (rc)
		return rc;
	submission_to_row(r, f, &row);
	row.identity = identity;
	json_begin(&w, &params, false);
	job_params_to_json(b->type, &b->bound->params, &w);
	row.batches = named_batches(f, b, &batches);
	row.params = strbuf_text(&params);
	if (params.failed || batches.failed)
		rc = err_nomem(err, "a job");
	else
		rc = job_new(&r->d->jobs.names, &row, out, err);
	if (!rc) {
		binding_give(b, *out);
		(*out)->tenant = f->tenant;
		(*out)->limited = !request_admin(r);
	}
	strbuf_release(&params);
	strbuf_release(&batches);
	return rc;
}

/* d and its text NULL: nothing is decided yet. probe: the job that finds out about its context; 0: none
 * does. */
static void reply_submitted(struct request *r, const struct job *job, const struct decision *d,
			    const char *text, uint64_t probe)
{
	char id[24];
	const struct candidate *c = d && d->chosen >= 0 ? &d->candidate[d->chosen] : NULL;
	struct job_live live = { 0 };

	if (!d)
		estimates_live(r->d, job, &live);
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
	json_put_raw(&r->w, text);
	snprintf(id, sizeof id, "%llu", (unsigned long long)probe);
	if (probe)
		json_kv_string(&r->w, "probe", id);
	reply_send(r, daemon_ticket(r->d));
}

static void submit(struct request *r, const struct submission *f)
{
	struct daemon *d = r->d;
	struct job *job = NULL;
	struct arrival in;
	struct binding b = { 0 };
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
	if (admission_submit(d, job, f->waits, f->now_ns, &in, &err)) {
		if (!in.decided)
			reply_err(r, &err, NULL);
		else
			reply_error(r, err.code == ERR_BUSY ? "storage_failed" : "internal", NULL, NULL, "%s",
				    err.text);
		job_free(job);
		return;
	}
	/* The events of the job follow its reply. Without memory for the watch the job is still taken. */
	if (f->watch)
		watch_add(d, r->conn, job->id, NULL);
	reply_submitted(r, job, f->waits ? NULL : &in.admission.decision, in.text.text,
			learning_probe_submit(d->learning, in.probe, f->now_ns));
	admission_done(d, job, &in);
}

void op_submit(struct request *r)
{
	struct submission f = { 0 };
	int64_t began_ns = clock_thread_ns();
	uint64_t earlier;

	if (!submission_read_handling(r, &f))
		return;
	if (f.dry_run) {
		what_if(r, &f);
		return;
	}
	/* Before anything else is looked at: since the first try a deadline may have passed, a type may have
	 * gone. */
	earlier = f.key ? jobs_key_find(&r->d->jobs, conn_uid(r->conn), f.key) : 0;
	if (earlier)
		reply_duplicate(r, &f, earlier);
	else if (submission_read(r, &f) && may_submit(r, &f))
		submit(r, &f);
	tally_submit(&r->d->tally, (double)(clock_thread_ns() - began_ns) / 1e3);
}
