/* `stats`: counts, latencies, the queue, the store, tenants, learning and the loop. */
#include <math.h>

#include "scheduler/daemon/learn/learning.h"
#include "scheduler/daemon/ops/ops.h"
#include "scheduler/process/machine.h"

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

void op_stats(struct request *r)
{
	const struct daemon *d = r->d;

	reply_begin(r);
	json_kv_open(&r->w, "jobs", '{');
	for (int s = 0; s < N_JOB_STATES; s++)
		json_kv_int(&r->w, job_state_name[s], (long long)d->jobs.count[s]);
	json_close(&r->w, '}');
	outcome_stats_json(&d->stats, &r->w);
	put_queue(r);
	put_store(r);
	tenants_json(&d->tenants, d->sched, daemon_now_ns(d), &r->w);
	json_kv_open(&r->w, "outside", '{');
	json_kv_fixed(&r->w, "processes",
		      d->setup->config->outside_load ? other_load_processes(&d->demand.other) : NAN, 3);
	json_close(&r->w, '}');
	learning_json(d->learning, &r->w);
	json_kv_open(&r->w, "loop", '{');
	json_kv_fixed(&r->w, "max_block_ms", d->stats.max_block_ms, 3);
	json_close(&r->w, '}');
	json_kv_int(&r->w, "connections", (long long)server_connections(d->server));
	json_kv_fixed(&r->w, "uptime_s", (double)(daemon_now_ns(d) - d->started_ns) / 1e9, 3);
	json_kv_fixed(&r->w, "rss_mb", machine_resident_mb(), 3);
	json_kv_bool(&r->w, "draining", d->draining);
	json_kv_string(&r->w, "policy", d->setup->config->policy);
	json_kv_string(&r->w, "model", d->setup->model_name[0] ? d->setup->model_name : NULL);
	reply_send(r, 0);
}
