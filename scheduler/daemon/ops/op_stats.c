/* `stats`: counts, latencies, the queue, the store, tenants, learning and the loop. */
#include <math.h>

#include "scheduler/daemon/learn/learning.h"
#include "scheduler/daemon/ops/ops.h"
#include "scheduler/process/machine.h"

static void put_queue(const struct daemon *d, struct json_writer *w)
{
	uint32_t slots = d->setup->config->slots, used = sched_slots_used(d->sched);
	double up_s = (double)(daemon_now_ns(d) - d->started_ns) / 1e9;
	double since = (double)(daemon_now_ns(d) - d->life.load_since_ns) / 1e9;
	double busy = d->life.processes_integral_s + since * (double)d->life.load_processes;

	json_kv_open(w, "queue", '{');
	json_kv_int(w, "length", (long long)sched_queued(d->sched));
	json_kv_int(w, "running", (long long)sched_running(d->sched));
	json_kv_int(w, "slots", slots);
	json_kv_int(w, "slots_used", used);
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

void stats_json(struct daemon *d, struct json_writer *w, bool sums)
{
	json_kv_open(w, "jobs", '{');
	for (int s = 0; s < N_JOB_STATES; s++)
		json_kv_int(w, job_state_name[s], (long long)d->jobs.count[s]);
	json_close(w, '}');
	outcome_stats_sums_json(&d->stats, w);
	if (!sums)
		outcome_stats_types_json(&d->stats, w);
	put_queue(d, w);
	put_store(d, w);
	if (!sums)
		tenants_json(&d->tenants, d->sched, daemon_now_ns(d), w);
	json_kv_open(w, "outside", '{');
	json_kv_fixed(w, "processes",
		      d->setup->config->outside_load ? other_load_processes(&d->demand.other) : NAN, 3);
	json_close(w, '}');
	learning_json(d->learning, w, sums);
	json_kv_open(w, "loop", '{');
	json_kv_fixed(w, "max_block_ms", d->stats.max_block_ms, 3);
	json_close(w, '}');
	json_kv_int(w, "connections", (long long)server_connections(d->server));
	json_kv_fixed(w, "uptime_s", (double)(daemon_now_ns(d) - d->started_ns) / 1e9, 3);
	json_kv_fixed(w, "rss_mb", machine_resident_mb(), 3);
	json_kv_bool(w, "draining", d->draining);
	json_kv_string(w, "policy", d->setup->config->policy);
	json_kv_string(w, "model", d->setup->model_name[0] ? d->setup->model_name : NULL);
}

void op_stats(struct request *r)
{
	bool history = false;

	field_bool(&r->f, "history", &history);
	if (!request_fine(r))
		return;
	reply_begin(r);
	stats_json(r->d, &r->w, false);
	if (history)
		history_json(&r->d->history, daemon_now_ns(r->d), &r->w);
	reply_send(r, 0);
}
