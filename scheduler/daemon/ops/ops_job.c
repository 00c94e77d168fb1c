/* Ops about jobs that were submitted: status, explain, list, cancel, and what the owner of an advised job
 * reports. See ops.h. Jobs no longer in memory are asked for from the store's reader. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/daemon/ops/ops.h"

#define LIST_DEFAULT 100
#define LIST_MAX 1000

/* ---- one job ---- */

static void reply_job(struct request *r, const struct job *job, uint64_t ticket)
{
	reply_begin(r);
	put_job(r, job);
	reply_send(r, ticket);
}

static void ask(struct request *r, enum store_question q, uint64_t id, const struct store_filter *f,
		store_answer *fn)
{
	struct later *l = later_new(r);
	struct err err = { 0 };

	if (l && ops_ask(r->d, q, id, f, fn, l, id, &err))
		later_error(l, "internal", err.text);
}

static bool answered_badly(struct later *l, uint64_t id, const struct strbuf *text, const struct err *err)
{
	char message[80];

	if (!err->code && text->len > 0)
		return false;
	snprintf(message, sizeof message, "there is no job %llu", (unsigned long long)id);
	later_error(l, err->code ? "internal" : "unknown_job", err->code ? err->text : message);
	return true;
}

static void answer_status(void *owner, uint64_t id, const struct strbuf *text, const struct err *err)
{
	struct later *l = owner;
	struct json_writer w;

	if (answered_badly(l, id, text, err))
		return;
	later_begin(l, &w);
	json_put_key(&w, "job");
	json_put_raw(&w, strbuf_text(text));
	later_send(l, &w);
}

void op_status(struct request *r)
{
	uint64_t old;
	struct job *job = request_job(r, &old);

	if (job)
		reply_job(r, job, 0);
	else if (old)
		ask(r, STORE_JOB, old, NULL, answer_status);
}

/* {"job":...,"decisions":[...],"estimates":[...]}: its members become the reply's. A job in memory is told as it
 * is now. */
static void answer_explain(void *owner, uint64_t id, const struct strbuf *text, const struct err *err)
{
	struct later *l = owner;
	struct job *job = jobs_find(&l->d->jobs, id);
	const char *history;
	struct job_live live;
	struct json_writer w;

	if (answered_badly(l, id, text, err))
		return;
	history = strstr(strbuf_text(text),
			 ",\"decisions\":["); /* inside a string the quotes would be escaped */
	later_begin(l, &w);
	if (job && history) {
		estimates_live(l->d, job, &live);
		json_put_key(&w, "job");
		job_json(&w, &job->row, &live);
		strbuf_add(w.out, history, strlen(history) - 1);
	} else {
		strbuf_puts(w.out, ",");
		strbuf_add(w.out, strbuf_text(text) + 1, text->len - 2);
	}
	later_send(l, &w);
}

void op_explain(struct request *r)
{
	uint64_t id;
	struct job *job = request_job(r, &id);

	if (job)
		id = job->id;
	if (id)
		ask(r, STORE_EXPLAIN, id, NULL, answer_explain);
}

/* ---- list ---- */

struct listing {
	struct store_filter filter;
	bool state[N_JOB_STATES], any_state;
};

static bool take_state(struct request *r, struct listing *l, const char *name)
{
	for (int s = 0; name && s < N_JOB_STATES; s++) {
		if (!strcmp(job_state_name[s], name)) {
			l->state[s] = true;
			return true;
		}
	}
	reply_error(r, "bad_field", "state", NULL,
		    "state: need queued, running, done, failed, cancelled, rejected or lost");
	return false;
}

static bool take_states(struct request *r, struct listing *l)
{
	const struct json *v = json_get(r->v, "state");

	l->any_state = !request_given(v);
	if (l->any_state)
		return true;
	if (json_type(v) != JSON_ARRAY)
		return take_state(r, l, json_string(v, NULL));
	for (const struct json *item = json_first(v); item; item = json_next(item)) {
		if (!take_state(r, l, json_string(item, NULL)))
			return false;
	}
	return true;
}

static bool take_listing(struct request *r, struct listing *l)
{
	double limit;
	const char *type;
	bool mine;

	*l = (struct listing){ .filter = { .uid = -1 } };
	if (!take_states(r, l) || !request_number(r, "limit", 0, LIST_MAX, LIST_DEFAULT, &limit) ||
	    !request_text(r, "type", JOB_TYPE_MAX_NAME, &type) || !request_bool(r, "mine", &mine))
		return false;
	if (limit != floor(limit)) {
		reply_error(r, "bad_field", "limit", NULL, "limit: need a whole number from 1 to %d",
			    LIST_MAX);
		return false;
	}
	l->filter.limit = (size_t)limit;
	if (request_given(json_get(r->v, "before")) && !request_id(r, "before", &l->filter.before_id))
		return false;
	snprintf(l->filter.type, sizeof l->filter.type, "%s", type ? type : "");
	if (mine)
		l->filter.uid = conn_uid(r->conn);
	return true;
}

/* Estimates of all live jobs come from one play: a listing of a thousand would otherwise make a thousand. */
static void live_of(struct daemon *d, const struct job *job, size_t n_played, struct job_live *out)
{
	const struct sched_estimate *e = job->played < n_played ? &d->estimate[job->played] : NULL;

	*out = (struct job_live){ 0 };
	if (e && d->estimate_id[job->played] == job->id && !isnan(e->end_s)) {
		out->has_estimate = true;
		out->start_s = e->start_s;
		out->end_s = e->end_s;
		out->end_low_s = e->end_low_s;
		out->end_high_s = e->end_high_s;
		out->late = e->late;
	}
	estimates_facts(d, job, out);
}

static bool matches(const struct listing *l, const struct job *job)
{
	const struct store_filter *f = &l->filter;

	return (l->any_state || l->state[job->row.state]) &&
	       (f->uid < 0 || f->uid == (int64_t)job->row.uid) &&
	       (!f->type[0] || !strcmp(f->type, job->row.type)) && (!f->before_id || job->id < f->before_id);
}

/* Only live ones are wanted: they are all in memory. */
static void list_live(struct request *r, const struct listing *l)
{
	size_t n = 0, n_played = estimates_play(r->d);
	const struct job *job = r->d->jobs.live.last;

	reply_begin(r);
	json_put_key(&r->w, "jobs");
	json_open(&r->w, '[');
	for (; job && n < l->filter.limit; job = job->before) {
		struct job_live live;

		if (!matches(l, job))
			continue;
		live_of(r->d, job, n_played, &live);
		job_json(&r->w, &job->row, &live);
		n++;
	}
	while (job && !matches(l, job))
		job = job->before;
	json_close(&r->w, ']');
	json_kv_bool(&r->w, "more", job != NULL);
	reply_send(r, 0);
}

struct listing_later {
	struct later *later;
	size_t limit;
};

/* Lines of job objects; those still in memory are told as they are now. */
static void answer_list(void *owner, uint64_t token, const struct strbuf *text, const struct err *err)
{
	struct listing_later *ll = owner;
	struct later *l = ll->later;
	const char *line = strbuf_text(text), *end;
	size_t n = 0, n_played;
	struct json_writer w;

	(void)token;
	if (err->code) {
		later_error(l, "internal", err->text);
		free(ll);
		return;
	}
	n_played = estimates_play(l->d);
	later_begin(l, &w);
	json_put_key(&w, "jobs");
	json_open(&w, '[');
	for (; *line && n < ll->limit; line = end + 1, n++) {
		static const char before_id[] = "{\"job\":\"";
		struct job *job;

		end = strchr(line, '\n');
		if (!end)
			break;
		/* sscanf() would measure all of the text that is left, for every line */
		job = strncmp(line, before_id, sizeof before_id - 1)
			      ? NULL
			      : jobs_find(&l->d->jobs, strtoull(line + sizeof before_id - 1, NULL, 10));
		if (job) {
			struct job_live live;

			live_of(l->d, job, n_played, &live);
			job_json(&w, &job->row, &live);
		} else {
			if (n > 0)
				strbuf_puts(w.out, ",");
			strbuf_add(w.out, line, (size_t)(end - line));
			w.need_comma = true;
		}
	}
	json_close(&w, ']');
	json_kv_bool(&w, "more", *line != 0);
	later_send(l, &w);
	free(ll);
}

void op_list(struct request *r)
{
	struct listing l;
	struct listing_later *ll;
	struct err err = { 0 };
	size_t n_states = 0;

	if (!take_listing(r, &l))
		return;
	for (int s = 0; s < N_JOB_STATES; s++)
		n_states += l.state[s];
	if (!l.any_state && n_states == (size_t)l.state[JOB_QUEUED] + l.state[JOB_RUNNING]) {
		list_live(r, &l);
		return;
	}
	for (int s = 0; s < N_JOB_STATES; s++) {
		size_t used = strlen(l.filter.state);

		if (l.state[s])
			snprintf(l.filter.state + used, sizeof l.filter.state - used, "%s%s", used ? "," : "",
				 job_state_name[s]);
	}
	ll = mem_calloc(1, sizeof *ll);
	if (!ll) {
		reply_error(r, "internal", NULL, NULL, "out of memory");
		return;
	}
	ll->limit = l.filter.limit++; /* one more than asked for: it tells whether there are more */
	ll->later = later_new(r);
	if (!ll->later) {
		free(ll);
	} else if (ops_ask(r->d, STORE_LIST, 0, &l.filter, answer_list, ll, 0, &err)) {
		later_error(ll->later, "internal", err.text);
		free(ll);
	}
}

/* ---- changes ---- */

static void wrong_state(struct request *r, const struct job *job, const char *what)
{
	reply_error(r, "wrong_state", "job", NULL, "job %llu is %s: %s", (unsigned long long)job->id,
		    job_state_name[job->row.state], what);
}

void op_cancel(struct request *r)
{
	struct job *job = request_job(r, NULL);
	struct life_event e = carry_event(r->d, LIFE_CANCEL, job);
	struct err err = { 0 };

	if (!job || !request_may_change(r, job))
		return;
	if (!job_state_live(job->row.state))
		wrong_state(r, job, "there is nothing to cancel");
	else if (carry_out(r->d, &e, &err))
		reply_err(r, &err, NULL);
	else
		reply_job(r, job, daemon_ticket(r->d));
}

/* An advised job that `r` may report about; NULL: answered. */
static struct job *advised(struct request *r)
{
	struct job *job = request_job(r, NULL);

	if (!job || !request_may_change(r, job))
		return NULL;
	if (strcmp(job->row.mode, "advise")) {
		reply_error(r, "wrong_state", "job", NULL,
			    "job %llu is run by the daemon, which sees for itself",
			    (unsigned long long)job->id);
		return NULL;
	}
	return job;
}

void op_started(struct request *r)
{
	struct job *job = advised(r);
	struct err err = { 0 };

	if (!job)
		return;
	if (job->row.state != JOB_QUEUED) {
		wrong_state(r, job, "it cannot be started");
	} else if (carry_started_by_owner(r->d, job, &err)) {
		reply_err(r, &err, NULL);
	} else {
		reply_begin(r);
		put_job(r, job);
		json_put_key(&r->w, "decision");
		json_put_raw(&r->w, job->decision_text ? job->decision_text : "null");
		reply_send(r, daemon_ticket(r->d));
	}
}

void op_finished(struct request *r)
{
	struct job *job = advised(r);
	struct exec_outcome o = { .max_rss_mb = NAN, .cpu_s = NAN, .ended_ns = daemon_now_ns(r->d) };
	double code, lived_s;

	if (!job || !request_number(r, "exit_code", -1.0, 255.0, 0.0, &code) ||
	    !request_number(r, "accuracy", -HUGE_VAL, HUGE_VAL, NAN, &o.accuracy) ||
	    !request_number(r, "run_s", -1.0, HUGE_VAL, NAN, &o.run_s))
		return;
	o.id = job->id;
	lived_s = (double)(o.ended_ns - job->row.submitted_ns) / 1e9;
	if (code < 0.0 || code != floor(code)) {
		reply_error(r, "bad_field", "exit_code", NULL,
			    "exit_code: need a whole number from 0 to 255");
	} else if (job->row.state != JOB_RUNNING) {
		wrong_state(r, job, "it was not running");
	} else if (o.run_s < 0.0 || o.run_s > lived_s) {
		reply_error(r, "bad_field", "run_s", NULL, "run_s: need a number from 0 to %.6f, its age",
			    lived_s);
	} else {
		o.exit_code = (int)code;
		o.started_ns = isnan(o.run_s) ? job->row.started_ns : o.ended_ns - (int64_t)(o.run_s * 1e9);
		if (o.exit_code)
			snprintf(o.reason, sizeof o.reason, "its owner reported exit code %d", o.exit_code);
		carry_ended(r->d, job, &o);
		reply_job(r, job, daemon_ticket(r->d));
	}
}

void op_progress(struct request *r)
{
	struct job *job = advised(r);
	double done = json_number(json_get(r->v, "done"), NAN);

	if (!job)
		return;
	if (!(done >= 0.0 && done <= 1.0)) {
		reply_error(r, "bad_field", "done", NULL, "done: need a number from 0 to 1");
	} else if (job->row.state != JOB_RUNNING) {
		wrong_state(r, job, "it makes no progress");
	} else {
		carry_progress(r->d, job, done, NULL);
		reply_job(r, job, 0);
	}
}
