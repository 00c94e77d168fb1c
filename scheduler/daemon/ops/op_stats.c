/* `stats`: counts, latencies, the queue, the store, tenants, learning and the loop. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/daemon/learn/learning.h"
#include "scheduler/daemon/ops/ops.h"
#include "scheduler/process/machine.h"

#define TENANTS_AT_ONCE 100

static void put_queue(struct request *r)
{
	const struct daemon *d = r->d;
	uint32_t slots = d->setup->config->slots, used = sched_slots_used(d->sched);
	double up_s = (double)(daemon_now_ns(d) - d->started_ns) / 1e9;
	double since = (double)(daemon_now_ns(d) - d->life.load_since_ns) / 1e9;
	double busy = d->life.processes_integral_s + since * (double)d->life.load_processes;

	json_kv_open(&r->w, "queue", '{');
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
	json_kv_open(&r->w, "store", '{');
	json_kv_bool(&r->w, "failed", r->d->store_failed);
	json_kv_int(&r->w, "pending", (long long)store_pending(r->d->store));
	json_kv_int(&r->w, "commits", (long long)s.commits);
	json_kv_fixed(&r->w, "mean_commit_ms", s.mean_commit_ms, 6);
	json_kv_fixed(&r->w, "max_commit_ms", s.max_commit_ms, 6);
	json_close(&r->w, '}');
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

static void put_behind(struct request *r)
{
	const struct daemon *d = r->d;

	json_close(&r->w, ']');
	json_kv_open(&r->w, "outside", '{');
	json_kv_fixed(&r->w, "processes",
		      d->setup->config->outside_load ? other_load_processes(&d->demand.other) : NAN, 3);
	json_close(&r->w, '}');
	learning_json(d->learning, &r->w);
	json_kv_open(&r->w, "loop", '{');
	json_kv_fixed(&r->w, "max_block_ms", d->stats.max_block_ms, 3);
	json_kv_fixed(&r->w, "max_busy_ms", d->stats.max_busy_ms, 3);
	json_close(&r->w, '}');
	json_kv_int(&r->w, "connections", (long long)server_connections(d->server));
	json_kv_fixed(&r->w, "uptime_s", (double)(daemon_now_ns(d) - d->started_ns) / 1e9, 3);
	json_kv_fixed(&r->w, "rss_mb", machine_resident_mb(), 3);
	json_kv_bool(&r->w, "draining", d->draining);
	json_kv_string(&r->w, "policy", d->setup->config->policy);
	json_kv_string(&r->w, "model", d->setup->model_name[0] ? d->setup->model_name : NULL);
	json_close(&r->w, '}');
	strbuf_puts(r->w.out, "\n");
}

void op_stats(struct request *r)
{
	struct reply_source source = { .make = make_part, .release = release };
	struct stats_reply *p = mem_calloc(1, sizeof *p);
	const struct daemon *d = r->d;
	struct reply *reply;

	if (!p) {
		reply_error(r, "internal", NULL, NULL, "out of memory");
		return;
	}
	p->d = r->d;
	reply_head(&r->w, &p->before, r->id);
	json_kv_open(&r->w, "jobs", '{');
	for (int s = 0; s < N_JOB_STATES; s++)
		json_kv_int(&r->w, job_state_name[s], (long long)d->jobs.count[s]);
	json_close(&r->w, '}');
	outcome_stats_json(&d->stats, &r->w);
	put_queue(r);
	put_store(r);
	json_kv_open(&r->w, "tenants", '[');
	p->w = r->w;
	r->w.out = &p->behind;
	put_behind(r);
	reply = p->before.failed || p->behind.failed ? NULL : conn_hold(r->conn);
	source.owner = p;
	if (reply) {
		reply_stream(reply, &source);
	} else {
		conn_close(r->conn);
		release(p);
	}
}
