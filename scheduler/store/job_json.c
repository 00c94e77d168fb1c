#define _GNU_SOURCE
#include "scheduler/store/job_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

#define NS_PER_S INT64_C(1000000000)

void json_kv_moment(struct json_writer *w, const char *key, int64_t at_ns)
{
	char buf[40];

	json_kv_string(w, key, at_ns ? text_utc(at_ns, buf) : NULL);
}

void json_put_raw(struct json_writer *w, const char *text)
{
	if (!text) {
		json_put_null(w);
		return;
	}
	if (!w->after_key && w->need_comma)
		strbuf_add(w->out, ",", 1);
	while (*text) {
		size_t n = strcspn(text, "\r\n");

		strbuf_add(w->out, text, n);
		text += n;
		if (*text) {
			strbuf_add(w->out, " ", 1);
			text++;
		}
	}
	w->after_key = false;
	w->need_comma = true;
}

static void kv_raw(struct json_writer *w, const char *key, const char *text)
{
	json_put_key(w, key);
	json_put_raw(w, text);
}

static void kv_int_or_null(struct json_writer *w, const char *key, long long v, long long unknown)
{
	json_put_key(w, key);
	if (v == unknown)
		json_put_null(w);
	else
		json_put_int(w, v);
}

/* Seconds between two moments; NaN where one of them has not come. */
static double span_s(int64_t from_ns, int64_t to_ns)
{
	int64_t ns;

	if (!from_ns || !to_ns || __builtin_sub_overflow(to_ns, from_ns, &ns))
		return NAN;
	return (double)ns / 1e9;
}

/* The moment the objective ends; 0: there is none, or none that a calendar can name. */
static int64_t deadline_ns(const struct store_job *j)
{
	double left_ns = j->slo_s * 1e9;
	int64_t at;

	if (!j->submitted_ns || !(fabs(left_ns) < 9e18) ||
	    __builtin_add_overflow(j->submitted_ns, (int64_t)left_ns, &at))
		return 0;
	return at;
}

static void put_estimate(struct json_writer *w, const struct job_live *live)
{
	json_put_key(w, "estimate");
	if (!live || !live->has_estimate) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_fixed(w, "start_s", live->start_s, 6);
	json_kv_fixed(w, "end_s", live->end_s, 6);
	json_kv_fixed(w, "end_low_s", live->end_low_s, 6);
	json_kv_fixed(w, "end_high_s", live->end_high_s, 6);
	json_kv_bool(w, "late", live->late);
	json_close(w, '}');
}

static void put_waiting(struct json_writer *w, const struct job_live *live)
{
	json_put_key(w, "waiting");
	if (!live || !live->waiting_code) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_string(w, "code", live->waiting_code);
	json_kv_string(w, "message", live->waiting_message);
	json_close(w, '}');
}

static void put_progress(struct json_writer *w, const struct job_live *live)
{
	json_put_key(w, "progress");
	if (!live || !live->has_progress) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_fixed(w, "epoch", live->epoch, 6);
	json_kv_fixed(w, "epochs", live->epochs, 6);
	json_kv_fixed(w, "accuracy", live->accuracy, 6);
	json_close(w, '}');
}

static void put_request(struct json_writer *w, const struct store_job *j)
{
	json_kv_string(w, "type", j->type);
	json_kv_string(w, "mode", j->mode);
	kv_raw(w, "params", j->params);
	json_kv_int(w, "cpus", j->cpus);
	json_kv_string(w, "tag", j->tag);
	json_kv_int(w, "uid", j->uid);
	json_kv_string(w, "tenant", j->tenant);
	json_kv_int(w, "priority", j->priority);
	json_kv_fixed(w, "slo_s", j->slo_s, 6);
	json_kv_fixed(w, "confidence", j->confidence, 6);
	json_kv_bool(w, "best_effort", j->best_effort);
	json_kv_bool(w, "may_stop", j->may_stop);
	json_kv_string(w, "verdict", j->verdict);
	kv_raw(w, "batches", j->batches);
	json_kv_fixed(w, "max_memory_mb", j->max_memory_mb, 6);
	json_kv_moment(w, "submitted_at", j->submitted_ns);
	json_kv_moment(w, "started_at", j->started_ns);
	json_kv_moment(w, "ended_at", j->ended_ns);
	json_kv_moment(w, "deadline_at", deadline_ns(j));
}

static void put_decided(struct json_writer *w, const struct store_job *j)
{
	json_kv_number(w, "batch", j->batch);
	json_kv_number(w, "epochs", j->epochs);
	json_kv_number(w, "lr", j->lr); /* not rounded: a learning rate may be tiny */
	json_kv_string(w, "policy", j->policy);
	json_kv_string(w, "model", j->model);
	json_kv_fixed(w, "predicted_s", j->predicted_s, 6);
	json_kv_fixed(w, "upper_s", j->upper_s, 6);
	json_kv_fixed(w, "predicted_accuracy", j->predicted_accuracy, 6);
}

static void put_outcome(struct json_writer *w, const struct store_job *j)
{
	double response_s = span_s(j->submitted_ns, j->ended_ns);

	json_kv_fixed(w, "wait_s", span_s(j->submitted_ns, j->started_ns), 6);
	json_kv_fixed(w, "run_s", span_s(j->started_ns, j->ended_ns), 6);
	json_kv_fixed(w, "response_s", response_s, 6);
	json_kv_fixed(w, "accuracy", j->accuracy, 6);
	json_kv_number(w, "stopped_epoch", j->stopped_epoch);
	kv_int_or_null(w, "exit_code", j->exit_code, -1);
	kv_int_or_null(w, "signal", j->exit_signal, 0);
	json_kv_fixed(w, "max_rss_mb", j->max_rss_mb, 6);
	json_kv_string(w, "slo_outcome", j->slo_outcome);
	/* A job that failed in no time has nothing to spare. */
	json_kv_fixed(w, "slack_s", j->slo_outcome && !strcmp(j->state, "done") ? j->slo_s - response_s : NAN,
		      6);
	json_kv_string(w, "reason", j->reason);
}

void job_json(struct json_writer *w, const struct store_job *j, const struct job_live *live)
{
	char id[24];

	snprintf(id, sizeof id, "%llu", (unsigned long long)j->id);
	json_open(w, '{');
	json_kv_string(w, "job", id);
	json_kv_string(w, "state", j->state);
	put_request(w, j);
	put_decided(w, j);
	put_estimate(w, live);
	put_waiting(w, live);
	put_progress(w, live);
	put_outcome(w, j);
	kv_int_or_null(w, "pid", live ? live->pid : 0, 0);
	json_close(w, '}');
}
