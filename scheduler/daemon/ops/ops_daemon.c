/* Ops about the daemon itself: hello, watch, stats, reload, drain, retrain, models, rollback. See ops.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "common/text/text.h"
#include "scheduler/daemon/learn/learning.h"
#include "scheduler/daemon/learn/model_versions.h"
#include "scheduler/daemon/ops/ops.h"

/* ---- hello ---- */

static void put_param(struct json_writer *w, const struct job_param *p)
{
	static const char *const kind[] = { "integer", "number", "word" };

	json_open(w, '{');
	json_kv_string(w, "name", p->name);
	json_kv_string(w, "kind", kind[p->kind]);
	json_kv_bool(w, "required", p->required);
	if (p->kind != PARAM_WORD) {
		double number = NAN;

		if (p->otherwise)
			text_number(p->otherwise, &number);
		json_kv_number(w, "default", number);
		json_kv_number(w, "min", p->min);
		json_kv_number(w, "max", p->max);
	} else {
		json_kv_string(w, "default", p->otherwise);
		json_put_key(w, "values");
		json_open(w, '[');
		for (size_t i = 0; i < p->n_words; i++)
			json_put_string(w, p->word[i]);
		json_close(w, ']');
	}
	json_close(w, '}');
}

static void put_type(struct json_writer *w, const struct job_type *t)
{
	json_open(w, '{');
	json_kv_string(w, "name", t->name);
	json_kv_string(w, "about", t->about);
	json_put_key(w, "mode");
	json_open(w, '[');
	if (t->n_argv)
		json_put_string(w, "run");
	json_put_string(w, "advise");
	json_close(w, ']');
	json_put_key(w, "params");
	json_open(w, '[');
	for (size_t i = 0; i < t->n_params; i++)
		put_param(w, &t->param[i]);
	json_close(w, ']');
	json_put_key(w, "cpus");
	json_open(w, '{');
	json_kv_int(w, "min", t->cpus_min);
	json_kv_int(w, "max", t->cpus_max);
	json_kv_int(w, "default", t->cpus_default);
	json_close(w, '}');
	json_put_key(w, "batches");
	json_open(w, '[');
	for (size_t i = 0; i < t->n_batches; i++)
		json_put_number(w, t->batch[i]);
	json_close(w, ']');
	json_close(w, '}');
}

static void put_model(struct json_writer *w, const struct setup *s)
{
	json_put_key(w, "model");
	if (!s->model) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_string(w, "fingerprint", s->model_name);
	json_kv_string(w, "kind", s->model->time.predictor.ops->name);
	json_kv_string(w, "created", s->model->created);
	json_kv_int(w, "rows", (long long)s->model->data_rows);
	json_close(w, '}');
}

void op_hello(struct request *r)
{
	const struct config *c = r->d->setup->config;

	reply_begin(r);
	json_kv_string(&r->w, "version", DAEMON_VERSION);
	json_kv_int(&r->w, "protocol", 1);
	json_kv_string(&r->w, "policy", c->policy);
	put_model(&r->w, r->d->setup);
	json_put_key(&r->w, "types");
	json_open(&r->w, '[');
	for (size_t i = 0; i < c->n_types; i++)
		put_type(&r->w, &c->type[i]);
	json_close(&r->w, ']');
	json_kv_int(&r->w, "uid", (long long)conn_uid(r->conn));
	json_kv_bool(&r->w, "admin", request_admin(r));
	reply_send(r, 0);
}

/* ---- watch ---- */

#define WATCH_JOBS 200 /* told at once, running ones first as they are the oldest; `list` has them all */

static void answer_watch(struct request *r, const struct job *job)
{
	const struct job *j = job ? NULL : r->d->jobs.live.first;
	size_t n = 0;

	reply_begin(r);
	json_kv_bool(&r->w, "watching", true);
	json_put_key(&r->w, "jobs");
	json_open(&r->w, '[');
	if (job) {
		struct job_live live;

		estimates_live(r->d, job, &live);
		job_json(&r->w, &job->row, &live);
	}
	for (; j && n < WATCH_JOBS; j = j->after, n++) {
		struct job_live live = { 0 };

		estimates_facts(r->d, j, &live);
		job_json(&r->w, &j->row, &live);
	}
	json_close(&r->w, ']');
	json_kv_bool(&r->w, "more", j != NULL);
	reply_send(r, 0);
}

void op_watch(struct request *r)
{
	struct job *job = NULL;
	struct err err = { 0 };

	if (request_given(json_get(r->v, "job"))) {
		job = request_job(r, NULL);
		if (!job)
			return;
	}
	if (watch_add(r->d, r->conn, job ? job->id : 0, &err))
		reply_err(r, &err, NULL);
	else
		answer_watch(r, job);
}

void op_unwatch(struct request *r)
{
	watch_drop(r->d, r->conn);
	conn_set_watching(r->conn, false);
	reply_begin(r);
	json_kv_bool(&r->w, "watching", false);
	reply_send(r, 0);
}

/* ---- stats ---- */

static double resident_mb(void)
{
	char *text = NULL;
	size_t len;
	unsigned long pages = 0;

	/* The second number of /proc/self/statm; the kernel writes it, so it is read like a file. */
	if (io_read_file("/proc/self/statm", 4096, &text, &len, NULL) == 0)
		sscanf(text, "%*u %lu", &pages);
	free(text);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

static void put_queue(struct request *r)
{
	const struct daemon *d = r->d;
	uint32_t slots = d->setup->config->slots, used = sched_slots_used(d->sched);
	double up_s = (double)(daemon_now_ns(d) - d->started_ns) / 1e9;
	double since = (double)(daemon_now_ns(d) - d->life.load_since_ns) / 1e9;
	double busy = d->life.processes_integral_s + since * (double)d->life.load_processes;

	json_put_key(&r->w, "queue");
	json_open(&r->w, '{');
	json_kv_int(&r->w, "length", (long long)sched_queued(d->sched));
	json_kv_int(&r->w, "running", (long long)sched_running(d->sched));
	json_kv_int(&r->w, "slots", slots);
	json_kv_int(&r->w, "slots_used", used);
	json_kv_fixed(&r->w, "utilisation", up_s > 0.0 ? busy / up_s / slots : NAN, 6);
	json_close(&r->w, '}');
}

static void put_store(struct request *r)
{
	struct store_stats s;

	store_stats(r->d->store, &s);
	json_put_key(&r->w, "store");
	json_open(&r->w, '{');
	json_kv_bool(&r->w, "failed", r->d->store_failed);
	json_kv_int(&r->w, "pending", (long long)store_pending(r->d->store));
	json_kv_int(&r->w, "commits", (long long)s.commits);
	json_kv_fixed(&r->w, "mean_commit_ms", s.mean_commit_ms, 6);
	json_kv_fixed(&r->w, "max_commit_ms", s.max_commit_ms, 6);
	json_close(&r->w, '}');
}

void op_stats(struct request *r)
{
	const struct daemon *d = r->d;

	reply_begin(r);
	json_put_key(&r->w, "jobs");
	json_open(&r->w, '{');
	for (int s = 0; s < N_JOB_STATES; s++)
		json_kv_int(&r->w, job_state_name[s], (long long)d->jobs.count[s]);
	json_close(&r->w, '}');
	outcome_stats_json(&d->stats, &r->w);
	put_queue(r);
	put_store(r);
	tenants_json(&d->tenants, d->sched, daemon_now_ns(d), &r->w);
	json_put_key(&r->w, "outside");
	json_open(&r->w, '{');
	json_kv_fixed(&r->w, "processes",
		      d->setup->config->outside_load ? other_load_processes(&d->other_load) : NAN, 3);
	json_close(&r->w, '}');
	learning_json(d->learning, &r->w);
	json_put_key(&r->w, "loop");
	json_open(&r->w, '{');
	json_kv_fixed(&r->w, "max_block_ms", d->stats.max_block_ms, 3);
	json_close(&r->w, '}');
	json_kv_int(&r->w, "connections", (long long)server_connections(d->server));
	json_kv_fixed(&r->w, "uptime_s", (double)(daemon_now_ns(d) - d->started_ns) / 1e9, 3);
	json_kv_fixed(&r->w, "rss_mb", resident_mb(), 3);
	json_kv_bool(&r->w, "draining", d->draining);
	json_kv_string(&r->w, "policy", d->setup->config->policy);
	json_kv_string(&r->w, "model", d->setup->model_name[0] ? d->setup->model_name : NULL);
	reply_send(r, 0);
}

/* ---- for admins ---- */

static bool allowed(struct request *r)
{
	if (request_admin(r))
		return true;
	reply_error(r, "not_permitted", NULL, NULL, "only admins may do that");
	return false;
}

void op_reload(struct request *r)
{
	struct later *l;
	struct err err = { 0 };

	if (!allowed(r))
		return;
	if (r->d->loader) {
		reply_error(r, "wrong_state", NULL, NULL, "a reload is under way");
		return;
	}
	l = later_new(r);
	if (l && daemon_reload(r->d, l, NULL, &err))
		later_error(l, "internal", err.text);
}

void ops_reload_done(struct later *l, const struct err *err)
{
	struct json_writer w;

	if (err) { /* what is wrong with the files, or with the machine */
		later_error(l, err->code == ERR_NOMEM || err->code == ERR_IO ? "internal" : "bad_field",
			    err->text);
		return;
	}
	later_begin(l, &w);
	json_kv_bool(&w, "reloaded", true);
	json_kv_string(&w, "model", l->d->setup->model_name[0] ? l->d->setup->model_name : NULL);
	later_send(l, &w);
}

/* ---- models ---- */

void op_retrain(struct request *r)
{
	struct err err = { 0 };

	if (!allowed(r))
		return;
	if (learning_retrain(r->d->learning, "asked for", &err)) {
		reply_error(r, err.code == ERR_BUSY ? "wrong_state" : "internal", NULL, NULL, "%s", err.text);
		return;
	}
	reply_begin(r);
	json_kv_bool(&r->w, "retraining", true);
	reply_send(r, 0);
}

void op_models(struct request *r)
{
	reply_begin(r);
	learning_models_json(r->d->learning, &r->w);
	reply_send(r, 0);
}

void op_rollback(struct request *r)
{
	double version;
	struct later *l;
	struct err err = { 0 };

	if (!allowed(r) || !request_number(r, "version", -1.0, VERSIONS_MAX_NUMBER, -1.0, &version))
		return;
	if (version < 0.0 || version != floor(version)) {
		reply_error(r, "bad_field", "version", "0 is the configuration's model",
			    "version: need the number of a version");
		return;
	}
	l = later_new(r);
	if (!l || !learning_rollback(r->d->learning, (uint32_t)version, l, &err))
		return;
	later_error(l,
		    err.code == ERR_BUSY       ? "wrong_state"
		    : err.code == ERR_NOTFOUND ? "bad_field"
					       : "internal",
		    err.text);
}

void op_drain(struct request *r)
{
	bool off, stop;

	if (!allowed(r) || !request_bool(r, "off", &off) || !request_bool(r, "stop", &stop))
		return;
	if (off && r->d->leaving) {
		reply_error(r, "wrong_state", NULL, NULL, "the daemon was told by a signal to leave");
		return;
	}
	daemon_drain(r->d, !off, (stop || r->d->leaving) && !off);
	reply_begin(r);
	json_kv_bool(&r->w, "draining", r->d->draining);
	json_kv_int(&r->w, "running", (long long)sched_running(r->d->sched));
	reply_send(r, 0);
}
