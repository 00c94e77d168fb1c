/* The cluster of the configuration's own engine: what a look at it found goes to the scheduler, as slots and
 * as jobs of others that hold some of them, and to clients that ask. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/exec/engine.h"

#define S_NS INT64_C(1000000000)
#define FIRST_LAG_S 1.0 /* while few are known */
#define LAG_PERCENT 95.0

struct cluster_view {
	char engine[JOB_TYPE_MAX_NAME + 1];
	bool known; /* there was an answer */
	struct cluster last; /* without its guests */
	int64_t at_ns; /* of that answer */
	int64_t next_end_ns; /* of a job of others; SCHED_NEVER: none that is known */
	char why[192]; /* the last look came to nothing; "": it did not */
	struct start_lag lag;
};

bool cluster_known(const struct daemon *d)
{
	return d->cluster && d->cluster->known;
}

void cluster_settle(struct daemon *d)
{
	for (size_t i = 0; d->executors[i]; i++) {
		if (d->executors[i] == &exec_engine_ops && d->executor[i])
			exec_engine_settle(d->executor[i]);
	}
}

/* From the wall clock to the daemon's time line, in whole seconds: the same end is to stay the same. */
static int64_t offset_ns(const struct daemon *d)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)round((double)(daemon_now_ns(d) - (t.tv_sec * S_NS + t.tv_nsec)) / 1e9) * S_NS;
}

double cluster_lag_s(const struct daemon *d)
{
	return start_lag_most_s(&d->cluster->lag, LAG_PERCENT, FIRST_LAG_S);
}

void cluster_began(struct daemon *d, double lag_s)
{
	if (d->cluster)
		start_lag_add(&d->cluster->lag, lag_s);
}

static void set_cluster(struct daemon *d, uint32_t slots, const struct sched_guest *guest, size_t n)
{
	int64_t now_ns = daemon_now_ns(d);
	struct err err = { 0 };

	inputs_cluster(d, now_ns, slots, guest, n);
	if (sched_set_cluster(d->sched, now_ns, slots, guest, n, &err))
		log_error("the cluster: %s", err.text);
}

static void tell_scheduler(struct daemon *d, const struct cluster *c)
{
	uint32_t most = d->setup->config->slots;
	uint64_t spare = c->cpus_leaving + (c->cpus > most ? c->cpus - most : 0);
	struct sched_guest *guest = mem_array(c->n_guests + 1, sizeof *guest);
	int64_t shift_ns = offset_ns(d);
	size_t n = c->n_guests;

	if (!guest)
		return; /* the next look finds more memory */
	d->cluster->next_end_ns = SCHED_NEVER;
	for (size_t i = 0; i < n; i++) {
		int64_t end_s = c->guest[i].end_s;
		bool is_known = end_s > 0 && end_s < INT64_MAX / S_NS / 2;

		guest[i] = (struct sched_guest){ .cpus = c->guest[i].cpus,
						 .end_ns = is_known ? end_s * S_NS + shift_ns : SCHED_NEVER };
		if (guest[i].end_ns < d->cluster->next_end_ns)
			d->cluster->next_end_ns = guest[i].end_ns;
	}
	n = sched_fit_guests(guest, n, spare);
	if (!c->cpus) { /* no node is there: one slot, and nobody knows when it is free */
		guest[0] = (struct sched_guest){ .cpus = 1, .end_ns = SCHED_NEVER };
		n = 1;
	}
	set_cluster(d, c->cpus < most ? (c->cpus ? (uint32_t)c->cpus : 1) : most, guest, n);
	free(guest);
	daemon_changed(d);
}

static void tell_operator(const struct cluster_view *was, const char *engine, const struct cluster *c)
{
	if (!was || !was->known || was->last.nodes != c->nodes || was->last.nodes_away != c->nodes_away ||
	    was->last.cpus != c->cpus)
		log_info("the cluster of %s: %zu nodes, %zu of them away, %" PRIu64 " cpus", engine, c->nodes,
			 c->nodes_away, c->cpus);
}

void cluster_told(void *daemon, const char *engine, const struct cluster *c, const char *why)
{
	struct daemon *d = daemon;
	struct cluster_view *v = d->cluster;

	if (!c && !why) { /* it is watched no more */
		d->cluster = NULL;
		free(v);
		set_cluster(d, UINT32_MAX, NULL, 0);
		carry_lag(d);
		daemon_changed(d);
		return;
	}
	if (!v)
		d->cluster = v = mem_calloc(1, sizeof *v);
	if (!v)
		return;
	if (why && !v->why[0])
		log_warn("the state of the cluster of %s could not be read again: %s", engine, why);
	snprintf(v->why, sizeof v->why, "%s", why ? why : "");
	snprintf(v->engine, sizeof v->engine, "%s", engine);
	if (!c)
		return; /* what was known last is still the best guess */
	tell_operator(v, engine, c);
	memcpy(&v->last, c, sizeof v->last);
	v->known = true;
	carry_lag(d);
	v->at_ns = daemon_now_ns(d);
	tell_scheduler(d, c);
}

/* ---- for those who ask ---- */

void cluster_json(const struct daemon *d, struct json_writer *w)
{
	const struct cluster_view *v = d->cluster;
	const struct cluster *c = v ? &v->last : NULL;

	if (!v)
		return;
	json_kv_open(w, "cluster", '{');
	json_kv_string(w, "engine", v->engine);
	json_kv_string(w, "error", v->why[0] ? v->why : NULL);
	json_kv_fixed(w, "age_s", v->known ? (double)(daemon_now_ns(d) - v->at_ns) / 1e9 : NAN, 3);
	json_kv_fixed(w, "lag_s", v->known ? cluster_lag_s(d) : NAN, 3);
	json_kv_int(w, "nodes", (long long)c->nodes);
	json_kv_int(w, "nodes_away", (long long)c->nodes_away);
	json_kv_int(w, "cpus", (long long)c->cpus);
	json_kv_int(w, "gpus", (long long)c->gpus);
	json_kv_int(w, "gpus_used", (long long)c->gpus_taken);
	json_kv_open(w, "others", '{');
	json_kv_int(w, "running", (long long)c->others);
	json_kv_int(w, "cpus", (long long)c->others_cpus);
	json_kv_int(w, "waiting", (long long)c->others_waiting);
	json_kv_int(w, "waiting_cpus", (long long)c->others_waiting_cpus);
	json_kv_fixed(w, "next_end_s",
		      v->known && v->next_end_ns != SCHED_NEVER
			      ? fmax(0.0, (double)(v->next_end_ns - daemon_now_ns(d)) / 1e9)
			      : NAN,
		      3);
	json_close(w, '}');
	json_close(w, '}');
}

const char *cluster_words(const struct daemon *d, char *out, size_t size)
{
	uint64_t cpus = sched_guest_cpus(d->sched);

	out[0] = '\0';
	if (cluster_known(d) && cpus)
		snprintf(out, size, " (others of %.32s have %" PRIu64 ")", d->cluster->engine, cpus);
	return out;
}
