/* The metrics as text: one table of families, each with its help and the place of its samples. See metrics.h.
 * Nothing waits here: all is in memory, or under the store's short lock. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/text/text.h"
#include "common/version.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/metrics/exposition.h"
#include "scheduler/daemon/metrics/metrics.h"
#include "scheduler/process/machine.h"

#define MAX_TENANTS 2048 /* samples of a family: those of the configuration, and their sum for all others */

struct tenant_values {
	double queued, running, cpus, gpus, usage_cpu_s;
};

struct model_values {
	const char *type; /* NULL: the configuration's */
	double version, rows, age_s, training, since_training;
	double drift_alarm, drift_shift, drift_statistic, drift_alarms;
};

struct scrape { /* what is the case now; NaN: it has no sample */
	struct daemon *d;
	struct strbuf *out;
	const char *name; /* of the family at hand */
	struct store_stats store;
	double uptime_s, resident, connections, draining, loop_longest_s, probes;
	double queue, slots, slots_used, gpus, gpus_used, memory, other_load;
	double store_failed, store_pending, store_rows, store_log;
	struct model_values model[CONFIG_MAX_TYPES + 1];
	size_t n_models;
	struct tenant_values tenant[MAX_TENANTS]; /* by number */
	struct tenant_values other; /* users that no tenant of the configuration names */
	size_t n_tenants;
};

static void with(struct scrape *s, const char *label, const char *value, double v)
{
	exposition_labelled(s->out, s->name, label, value, v);
}

/* ---- what is the case now ---- */

static void read_values(struct scrape *s)
{
	const struct daemon *d = s->d;
	const struct config *c = d->setup->config;

	s->uptime_s = (double)(daemon_now_ns(d) - d->started_ns) / 1e9;
	s->resident = machine_resident_mb() * 1048576.0;
	s->connections = (double)server_connections(d->server);
	s->draining = d->draining;
	s->loop_longest_s = d->tally.max_block_ms / 1e3;
	s->probes = (double)learning_probes(d->learning);
	s->queue = (double)sched_queued(d->sched);
	s->slots = c->slots;
	s->slots_used = sched_slots_used(d->sched);
	s->gpus = c->resources.gpus;
	s->gpus_used = sched_devices_used(d->sched);
	s->memory = c->memory_mb * 1048576.0;
	s->other_load = c->other_load ? other_load_processes(&d->demand.other) : NAN;
	store_stats(d->store, &s->store);
	s->store_failed = d->store_failed;
	s->store_pending = (double)s->store.pending;
	s->store_rows = (double)s->store.rows;
	s->store_log = (double)s->store.wal_bytes;
}

/* The configuration's first, then those of job types. */
static void read_models(struct scrape *s)
{
	struct learning_now now;

	for (uint32_t i = 0; i <= CONFIG_MAX_TYPES && learning_now(s->d->learning, i, &now); i++) {
		const struct model *m = s->d->setup->slot[i].model;
		int64_t made_ns;

		s->model[s->n_models++] = (struct model_values){
			.type = now.type,
			.version = now.version,
			.rows = m ? (double)m->data_rows : NAN,
			.age_s = m && text_utc_parse(m->created, &made_ns)
					 ? (double)(daemon_now_ns(s->d) - made_ns) / 1e9
					 : NAN,
			.training = now.training,
			.since_training = (double)now.since_training,
			.drift_alarm = now.has_drift && now.drift.alarm,
			.drift_shift = now.has_drift ? now.drift.shift_percent / 100.0 : NAN,
			.drift_statistic = now.has_drift ? now.drift.statistic / now.drift.threshold : NAN,
			.drift_alarms = (double)now.alarms,
		};
	}
}

/* A user in no tenant is "uid 1000": names of the configuration have no blank. */
static bool configured(const struct scrape *s, size_t i)
{
	return !strchr(tenants_name(&s->d->tenants, (uint32_t)i), ' ');
}

static void take_share(struct scrape *s, uint32_t i, const struct sched_share *share)
{
	if (i < MAX_TENANTS && configured(s, i)) {
		s->tenant[i] = (struct tenant_values){
			.queued = (double)share->queued,
			.running = (double)share->running,
			.cpus = (double)share->cpus,
			.gpus = (double)share->devices,
			/* whole seconds are quick to write, and there may be a thousand */
			.usage_cpu_s = round(share->usage_cpu_s),
		};
		return;
	}
	if (i < MAX_TENANTS)
		s->tenant[i].usage_cpu_s = NAN; /* it has no sample */
	s->other.queued += (double)share->queued;
	s->other.running += (double)share->running;
	s->other.cpus += (double)share->cpus;
	s->other.gpus += (double)share->devices;
	s->other.usage_cpu_s += share->usage_cpu_s;
}

static void read_tenants(struct scrape *s)
{
	int64_t now_ns = daemon_now_ns(s->d);
	size_t n = s->d->tenants.n;

	s->n_tenants = n < MAX_TENANTS ? n : MAX_TENANTS;
	for (uint32_t i = 0; i < n; i++) {
		struct sched_share share;

		if (!sched_share(s->d->sched, now_ns, i, &share, NULL))
			take_share(s, i, &share);
	}
}

/* ---- families whose samples are not in one place ---- */

static void put_build(struct scrape *s)
{
	with(s, "version", postrider_version, 1.0);
}

static void put_jobs(struct scrape *s)
{
	for (int i = 0; i < N_JOB_STATES; i++)
		with(s, "state", job_state_name[i], (double)s->d->jobs.count[i]);
}

static void put_submissions(struct scrape *s)
{
	const struct tally *t = &s->d->tally;

	for (int v = SCHED_PROMISED; v <= SCHED_CHANCE; v++)
		with(s, "verdict", sched_verdict_name((enum sched_verdict)v), (double)t->verdict[v]);
	with(s, "verdict", "duplicate", (double)t->duplicates);
}

static void put_rejections(struct scrape *s)
{
	static const enum decide_reason reason[] = {
		REASON_SLO_EXCEEDED, REASON_NO_BOUND, REASON_MEMORY,   REASON_BREAKS_PROMISE, REASON_TOO_WIDE,
		REASON_BEYOND_MODEL, REASON_DEVICES,  REASON_UNSTABLE, REASON_PRICE
	};
	const struct tally *t = &s->d->tally;

	for (size_t i = 0; i < sizeof reason / sizeof *reason; i++)
		with(s, "reason", decide_reason_text(reason[i]),
		     (double)t->rejected[__builtin_ctz(reason[i])]);
	with(s, "reason", "other", (double)t->rejected[TALLY_CODES - 1]);
}

static void put_ended(struct scrape *s)
{
	for (int i = JOB_DONE; i < N_JOB_STATES; i++) {
		if (i != JOB_REJECTED)
			with(s, "state", job_state_name[i], (double)s->d->tally.here.ended[i]);
	}
}

static void put_bounds(struct scrape *s)
{
	const struct tally_levels *l = &s->d->tally.here.levels;
	char labels[64];

	for (size_t i = 0; i < l->n; i++) {
		const struct tally_level *v = &l->item[i];

		snprintf(labels, sizeof labels, "confidence=\"%.2f\",result=\"within\"", v->percent / 100.0);
		exposition_sample(s->out, s->name, labels, (double)v->inside);
		snprintf(labels, sizeof labels, "confidence=\"%.2f\",result=\"above\"", v->percent / 100.0);
		exposition_sample(s->out, s->name, labels, (double)(v->n - v->inside));
	}
}

static void put_type_bounds(struct scrape *s)
{
	const struct tally_counts *c = &s->d->tally.here;
	char labels[JOB_TYPE_MAX_NAME + 40]; /* names of types need no escape */

	for (size_t i = 0; i < c->n_types; i++) {
		const struct tally_type *t = &c->type[i];

		if (!t->bounded)
			continue;
		snprintf(labels, sizeof labels, "type=\"%s\",result=\"within\"", t->name);
		exposition_sample(s->out, s->name, labels, (double)t->inside);
		snprintf(labels, sizeof labels, "type=\"%s\",result=\"above\"", t->name);
		exposition_sample(s->out, s->name, labels, (double)(t->bounded - t->inside));
	}
}

static void put_type_expected(struct scrape *s)
{
	const struct tally_counts *c = &s->d->tally.here;

	for (size_t i = 0; i < c->n_types; i++) {
		if (c->type[i].bounded)
			with(s, "type", c->type[i].name, c->type[i].expected);
	}
}

/* The share of `stats`, which knows the jobs of earlier starts as well. */
static void put_coverage(struct scrape *s)
{
	const struct tally_levels *l = &s->d->tally.ever.levels;
	char level[16];

	for (size_t i = 0; i < l->n; i++) {
		snprintf(level, sizeof level, "%.2f", l->item[i].percent / 100.0);
		with(s, "confidence", level, (double)l->item[i].inside / (double)l->item[i].n);
	}
}

static void put_model(struct scrape *s)
{
	const struct setup *u = s->d->setup;
	struct strbuf labels = { 0 };

	for (uint32_t i = 0; i < u->n_slots; i++) {
		strbuf_reset(&labels);
		strbuf_puts(&labels, "policy=\"");
		exposition_escape(&labels, u->config->policy);
		strbuf_puts(&labels, "\",model=\"");
		exposition_escape(&labels, u->slot[i].name);
		if (u->slot[i].type) {
			strbuf_puts(&labels, "\",type=\"");
			exposition_escape(&labels, u->slot[i].type);
		}
		strbuf_puts(&labels, "\"");
		exposition_sample(s->out, s->name, strbuf_text(&labels), 1.0);
	}
	s->out->failed |= labels.failed;
	strbuf_release(&labels);
}

static void put_commit(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->store.commit_s);
}

/* ---- the table ---- */

static const char *const steer_reason[] = { [STEER_FASTER - 1] = "faster",
					    [STEER_ACCURATE - 1] = "accurate",
					    [STEER_GIVES_BACK - 1] = "gives_back",
					    [STEER_LATE - 1] = "late",
					    [STEER_LATE] = NULL };
static const char *const slo_result[] = { "met", "missed", NULL }, *const reload_result[] = { "done",
											      "refused",
											      NULL };

#define VALUE(member) .kind = OF_SCRAPE, .at = offsetof(struct scrape, member)
#define COUNT(member) .kind = COUNTED, .at = offsetof(struct tally, member)
#define NAMED(l, names, member)                                                                              \
	.kind = COUNTED_BY, .label = l, .name_of = names, .at = offsetof(struct tally, member)
#define HISTOGRAM(member) .kind = HISTOGRAMS, .at = offsetof(struct tally, member)
#define MODEL(member) .kind = OF_MODELS, .at = offsetof(struct model_values, member)
#define TENANT(member) .kind = OF_TENANTS, .at = offsetof(struct tenant_values, member)
#define WRITTEN(f) .kind = BY_PUT, .put = f

static const struct family {
	const char *name, *type, *help;
	enum { OF_SCRAPE, COUNTED, COUNTED_BY, HISTOGRAMS, OF_MODELS, OF_TENANTS, BY_PUT } kind;
	size_t at; /* a double of what is the case now, or a uint64_t or a histogram of the tally */
	const char *label, *const *name_of; /* of an array of counts, NULL after the last */
	void (*put)(struct scrape *s);
} family_all[] = {
	{ "build_info", "gauge", "1, with the version of the daemon", WRITTEN(put_build) },
	{ "uptime_seconds", "gauge", "since the daemon started", VALUE(uptime_s) },
	{ "resident_memory_bytes", "gauge", "of the daemon itself, without its jobs", VALUE(resident) },
	{ "connections", "gauge", "clients on the socket", VALUE(connections) },
	{ "draining", "gauge", "1: no job is taken or started", VALUE(draining) },
	{ "loop_busy_seconds", "histogram", "how long the loop was busy with one thing",
	  HISTOGRAM(loop_busy_h) },
	{ "loop_lag_seconds", "histogram", "by how much a timer of the loop came late, once a second",
	  HISTOGRAM(loop_lag_h) },
	{ "loop_busy_longest_seconds", "gauge", "the longest of loop_busy_seconds since the start",
	  VALUE(loop_longest_s) },
	{ "scrape_duration_seconds", "histogram", "how long writing these metrics took, the last one aside",
	  HISTOGRAM(scrape_h) },
	{ "request_errors_total", "counter", "requests answered with an error, by its code",
	  NAMED("code", tally_error_code, error) },
	{ "reloads_total", "counter", "configurations and models read again",
	  NAMED("result", reload_result, reloads) },
	{ "jobs", "gauge", "jobs in memory, by state", WRITTEN(put_jobs) },
	{ "submissions_total", "counter", "jobs submitted, by what was answered", WRITTEN(put_submissions) },
	{ "rejections_total", "counter", "jobs rejected, by the reason all candidates share",
	  WRITTEN(put_rejections) },
	{ "jobs_ended_total", "counter", "jobs ended, by state", WRITTEN(put_ended) },
	{ "promises_total", "counter", "promises made", COUNT(verdict[SCHED_PROMISED]) },
	{ "slo_outcomes_total", "counter", "promised jobs that have ended: in time or late",
	  NAMED("result", slo_result, here.slo) },
	{ "chance_outcomes_total", "counter", "the same of jobs taken by chance, without a promise",
	  NAMED("result", slo_result, here.chances) },
	{ "late_total", "counter", "promised jobs that were predicted to be late while they lived",
	  COUNT(late) },
	{ "steered_total", "counter", "running jobs told to go on with another batch or last epoch",
	  NAMED("reason", steer_reason, steered) },
	{ "decision_duration_seconds", "histogram", "how long a decision took", HISTOGRAM(decision_h) },
	{ "wait_seconds", "histogram", "from submission to start, of jobs that started", HISTOGRAM(wait_h) },
	{ "run_seconds", "histogram", "from start to end, of jobs that are done", HISTOGRAM(run_h) },
	{ "response_seconds", "histogram", "from submission to end, of jobs that are done",
	  HISTOGRAM(response_h) },
	{ "bounds_total", "counter",
	  "jobs done, by whether their run time was within the bound given at the start",
	  WRITTEN(put_bounds) },
	{ "type_bounds_total", "counter", "the same by job type, over all confidences",
	  WRITTEN(put_type_bounds) },
	{ "type_bounds_expected_total", "counter",
	  "the sum of the confidences of these jobs: as many should be within", WRITTEN(put_type_expected) },
	{ "interval_coverage_ratio", "gauge",
	  "share of jobs within their bound, by stated confidence; jobs before a restart included",
	  WRITTEN(put_coverage) },
	{ "prediction_error_ratio", "histogram",
	  "abs(predicted - actual) / actual of run times, of jobs done", HISTOGRAM(error_ratio_h) },
	{ "model_info", "gauge", "1, with the policy and the model in use; type: of that job type alone",
	  WRITTEN(put_model) },
	{ "model_version", "gauge", "number of the model in use; 0: the configuration's", MODEL(version) },
	{ "model_rows", "gauge", "rows that the model learnt from", MODEL(rows) },
	{ "model_age_seconds", "gauge", "since the model was trained", MODEL(age_s) },
	{ "model_training", "gauge", "1: a model is being trained", MODEL(training) },
	{ "jobs_since_training", "gauge", "jobs ended since the last training", MODEL(since_training) },
	{ "drift_alarm", "gauge", "1: run times have shifted against the model", MODEL(drift_alarm) },
	{ "drift_shift_ratio", "gauge", "by how much: 0.2 is a fifth longer", MODEL(drift_shift) },
	{ "drift_statistic_ratio", "gauge", "the evidence of a shift over the threshold of the alarm",
	  MODEL(drift_statistic) },
	{ "drift_alarms_total", "counter", "alarms raised, by model", MODEL(drift_alarms) },
	{ "probes_total", "counter", "short runs submitted only to learn from them", VALUE(probes) },
	{ "queue_length", "gauge", "jobs that wait", VALUE(queue) },
	{ "slots", "gauge", "cpus handed out to jobs at the same time", VALUE(slots) },
	{ "slots_used", "gauge", "cpus that running jobs hold", VALUE(slots_used) },
	{ "gpus", "gauge", "gpus handed out to jobs, each to one at a time", VALUE(gpus) },
	{ "gpus_used", "gauge", "gpus that running jobs hold", VALUE(gpus_used) },
	{ "memory_bytes", "gauge", "memory for all jobs together", VALUE(memory) },
	{ "other_load_processes", "gauge", "work of programs that are not ours, in processes that compute",
	  VALUE(other_load) },
	{ "store_failed", "gauge", "1: the database cannot be written, and no job is taken",
	  VALUE(store_failed) },
	{ "store_pending_rows", "gauge", "rows that are not on disk yet", VALUE(store_pending) },
	{ "store_rows_total", "counter", "rows written", VALUE(store_rows) },
	{ "store_log_bytes", "gauge", "the database's log as of the last commit", VALUE(store_log) },
	{ "store_commit_duration_seconds", "histogram", "how long a commit took, the disk included",
	  WRITTEN(put_commit) },
	{ "tenant_queued", "gauge", "jobs that wait, by tenant of the configuration; \"\" is all other users",
	  TENANT(queued) },
	{ "tenant_running", "gauge", "jobs that run, by tenant", TENANT(running) },
	{ "tenant_cpus", "gauge", "cpus that running jobs hold, by tenant", TENANT(cpus) },
	{ "tenant_gpus", "gauge", "gpus that running jobs hold, by tenant", TENANT(gpus) },
	{ "tenant_usage_cpu_seconds", "gauge",
	  "use of the machine, older use fading (fair_window_s), by tenant", TENANT(usage_cpu_s) },
};

static double number_at(const void *base, size_t at)
{
	return *(const double *)((const char *)base + at);
}

static void put_family(struct scrape *s, const struct family *f)
{
	const char *counted = (const char *)&s->d->tally + f->at;

	switch (f->kind) {
	case OF_SCRAPE: exposition_sample(s->out, s->name, "", number_at(s, f->at)); break;
	case COUNTED:
		exposition_sample(s->out, s->name, "", (double)*(const uint64_t *)(const void *)counted);
		break;
	case COUNTED_BY:
		for (size_t i = 0; f->name_of[i]; i++)
			with(s, f->label, f->name_of[i],
			     (double)((const uint64_t *)(const void *)counted)[i]);
		break;
	case HISTOGRAMS: exposition_histogram(s->out, s->name, (const void *)counted); break;
	case OF_MODELS:
		for (size_t i = 0; i < s->n_models; i++) {
			const struct model_values *m = &s->model[i];

			if (m->type)
				with(s, "type", m->type, number_at(m, f->at));
			else
				exposition_sample(s->out, s->name, "", number_at(m, f->at));
		}
		break;
	case OF_TENANTS:
		for (size_t i = 0; i < s->n_tenants; i++) {
			if (!isnan(s->tenant[i].usage_cpu_s))
				with(s, "tenant", tenants_name(&s->d->tenants, (uint32_t)i),
				     number_at(&s->tenant[i], f->at));
		}
		with(s, "tenant", "", number_at(&s->other, f->at));
		break;
	case BY_PUT: f->put(s); break;
	}
}

void metrics_text(struct daemon *d, struct strbuf *out)
{
	static struct scrape s; /* a hundred kilobytes; the loop has one thread */
	int64_t since = clock_monotonic_ns();
	char name[80];

	s = (struct scrape){ .d = d, .out = out };
	read_values(&s);
	read_models(&s);
	read_tenants(&s);
	for (size_t i = 0; i < sizeof family_all / sizeof *family_all; i++) {
		const struct family *f = &family_all[i];

		snprintf(name, sizeof name, "postrider_%s", f->name);
		s.name = name;
		exposition_family(out, name, f->type, f->help);
		put_family(&s, f);
	}
	histogram_add(&d->tally.scrape_h, (double)(clock_monotonic_ns() - since) / 1e9);
}
