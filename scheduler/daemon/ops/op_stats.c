/* `stats`: counts, latencies, the queue, the store, tenants, learning and the loop. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/daemon/learn/learning.h"
#include "scheduler/daemon/ops/ops.h"
#include "scheduler/process/machine.h"

#define TENANTS_AT_ONCE 100

static void put_queue(const struct daemon *d, struct json_writer *w)
{
	uint32_t slots = sched_slots(d->sched), used = sched_slots_used(d->sched);
	double up_s = (double)(daemon_now_ns(d) - d->started_ns) / 1e9;
	double since = (double)(daemon_now_ns(d) - d->life.load_since_ns) / 1e9;
	double busy = d->life.processes_integral_s + since * (double)d->life.load_processes;

	json_kv_open(w, "queue", '{');
	json_kv_int(w, "length", (long long)sched_queued(d->sched));
	json_kv_int(w, "running", (long long)sched_running(d->sched));
	json_kv_int(w, "slots", slots);
	json_kv_int(w, "slots_used", used);
	json_kv_int(w, "gpus", d->setup->config->resources.gpus);
	json_kv_int(w, "gpus_used", sched_devices_used(d->sched));
	json_kv_fixed(w, "utilisation", up_s > 0.0 ? busy / up_s / slots : NAN, 6);
	json_close(w, '}');
}

static void put_store(const struct daemon *d, struct json_writer *w)
{
	struct store_stats s;

	store_stats(d->store, &s);
	json_kv_open(w, "store", '{');
	json_kv_bool(w, "failed", d->store_failed);
	json_kv_int(w, "pending", (long long)store_pending(d->store));
	json_kv_int(w, "commits", (long long)s.commits);
	json_kv_fixed(w, "mean_commit_ms", s.mean_commit_ms, 6);
	json_kv_fixed(w, "max_commit_ms", s.max_commit_ms, 6);
	json_close(w, '}');
}

/* The members before the tenants, and those behind them. */
static void put_before(const struct daemon *d, struct json_writer *w, bool sums)
{
	json_kv_open(w, "jobs", '{');
	for (int s = 0; s < N_JOB_STATES; s++)
		json_kv_int(w, job_state_name[s], (long long)d->jobs.count[s]);
	json_close(w, '}');
	tally_sums_json(&d->tally, w);
	if (!sums)
		tally_types_json(&d->tally, w);
	put_queue(d, w);
	put_store(d, w);
}

static void put_behind(const struct daemon *d, struct json_writer *w, bool sums)
{
	json_kv_open(w, "outside", '{');
	json_kv_fixed(w, "processes",
		      isnan(d->life.other_load) ? NAN : other_load_processes(&d->demand.other), 3);
	json_close(w, '}');
	json_kv_fixed(w, "start_lag_s", carry_lag_s(d), 6);
	cluster_json(d, w);
	learning_json(d->learning, w, sums);
	json_kv_open(w, "loop", '{');
	json_kv_fixed(w, "max_block_ms", d->tally.max_block_ms, 3);
	json_kv_fixed(w, "max_busy_ms", d->tally.max_busy_ms, 3);
	json_close(w, '}');
	json_kv_int(w, "connections", (long long)server_connections(d->server));
	json_kv_fixed(w, "uptime_s", (double)(daemon_now_ns(d) - d->started_ns) / 1e9, 3);
	json_kv_fixed(w, "rss_mb", machine_resident_mb(), 3);
	json_kv_bool(w, "draining", d->draining);
	json_kv_string(w, "policy", d->setup->config->policy);
	json_kv_string(w, "model", d->setup->slot[0].name[0] ? d->setup->slot[0].name : NULL);
}

void stats_json(struct daemon *d, struct json_writer *w, bool sums)
{
	put_before(d, w, sums);
	if (!sums) {
		json_kv_open(w, "tenants", '[');
		tenants_json(&d->tenants, d->sched, daemon_now_ns(d), 0, TENANTS_AT_ONCE, w);
		json_close(w, ']');
	}
	put_behind(d, w, sums);
}

/* ---- the reply ---- */

/* All but the tenants is written at once; of these there may be thousands. */
struct stats_reply {
	struct daemon *d;
	struct strbuf before, behind; /* the tenants */
	struct json_writer w; /* stands in the list of tenants */
	bool begun;
	size_t next; /* tenant */
};

static void release(void *owner)
{
	struct stats_reply *p = owner;

	strbuf_release(&p->before);
	strbuf_release(&p->behind);
	free(p);
}

static enum reply_part make_part(void *owner, struct strbuf *out)
{
	struct stats_reply *p = owner;
	struct daemon *d = p->d;

	if (!p->begun)
		strbuf_add(out, strbuf_text(&p->before), p->before.len);
	p->begun = true;
	p->w.out = out;
	p->next = tenants_json(&d->tenants, d->sched, daemon_now_ns(d), p->next, TENANTS_AT_ONCE, &p->w);
	if (p->next < d->tenants.n)
		return REPLY_MORE;
	strbuf_add(out, strbuf_text(&p->behind), p->behind.len);
	return REPLY_COMPLETE;
}

void op_stats(struct request *r)
{
	struct reply_source source = { .make = make_part, .release = release };
	struct stats_reply *p;
	struct reply *reply;
	bool history = false;

	field_bool(&r->f, "history", &history);
	if (!request_fine(r))
		return;
	p = mem_calloc(1, sizeof *p);
	if (!p) {
		reply_error(r, "internal", NULL, NULL, "out of memory");
		return;
	}
	p->d = r->d;
	reply_head(&r->w, &p->before, r->id);
	put_before(r->d, &r->w, false);
	json_kv_open(&r->w, "tenants", '[');
	p->w = r->w;
	r->w.out = &p->behind;
	json_close(&r->w, ']');
	put_behind(r->d, &r->w, false);
	if (history)
		history_json(&r->d->tally.history, daemon_now_ns(r->d), &r->w);
	json_close(&r->w, '}');
	strbuf_puts(r->w.out, "\n");
	reply = p->before.failed || p->behind.failed ? NULL : conn_hold(r->conn);
	source.owner = p;
	if (reply) {
		reply_stream(reply, &source);
	} else {
		conn_close(r->conn);
		release(p);
	}
}
