/* The metrics as text: one table of families, each with its help and a function that writes its samples. See
 * metrics.h. Nothing waits here: all is in memory, or under the store's short lock. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/text/text.h"
#include "common/version.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/metrics/exposition.h"
#include "scheduler/daemon/metrics/metrics_internal.h"
#include "scheduler/process/machine.h"

#define MAX_TENANTS 2048 /* samples of a family: those of the configuration, and their sum for all others */

struct tenant_sum {
	double queued, running, cpus, gpus, usage_cpu_s;
};

struct scrape {
	struct daemon *d;
	struct strbuf *out;
	const char *name; /* of the family at hand */
	struct store_stats store;
	struct sched_share share[MAX_TENANTS]; /* by tenant number */
	struct tenant_sum other; /* users that no tenant of the configuration names */
	size_t n_tenants;
};

static void one(struct scrape *s, double v)
{
	exposition_sample(s->out, s->name, "", v);
}

static void with(struct scrape *s, const char *label, const char *value, double v)
{
	exposition_labelled(s->out, s->name, label, value, v);
}

/* ---- the daemon ---- */

static void put_build(struct scrape *s)
{
	with(s, "version", postrider_version, 1.0);
}

static void put_uptime(struct scrape *s)
{
	one(s, (double)(daemon_now_ns(s->d) - s->d->started_ns) / 1e9);
}

static void put_resident(struct scrape *s)
{
	one(s, machine_resident_mb() * 1048576.0);
}

static void put_connections(struct scrape *s)
{
	one(s, (double)server_connections(s->d->server));
}

static void put_draining(struct scrape *s)
{
	one(s, s->d->draining);
}

static void put_loop_busy(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->d->metrics.loop_busy_s);
}

static void put_loop_lag(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->d->metrics.loop_lag_s);
}

static void put_loop_longest(struct scrape *s)
{
	one(s, s->d->stats.max_block_ms / 1e3);
}

static void put_scrape(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->d->metrics.scrape_s);
}

static void put_errors(struct scrape *s)
{
	for (size_t i = 0; metrics_error_code[i]; i++)
		with(s, "code", metrics_error_code[i], (double)s->d->metrics.error[i]);
}

static void put_reloads(struct scrape *s)
{
	const struct metrics *m = &s->d->metrics;

	with(s, "result", "done", (double)m->reloads);
	with(s, "result", "refused", (double)m->reloads_failed);
}

/* ---- jobs ---- */

static void put_jobs(struct scrape *s)
{
	for (int i = 0; i < N_JOB_STATES; i++)
		with(s, "state", job_state_name[i], (double)s->d->jobs.count[i]);
}

static void put_submissions(struct scrape *s)
{
	const struct metrics *m = &s->d->metrics;

	for (int v = SCHED_PROMISED; v <= SCHED_CHANCE; v++)
		with(s, "verdict", sched_verdict_name((enum sched_verdict)v), (double)m->verdict[v]);
	with(s, "verdict", "duplicate", (double)(s->d->stats.duplicates));
}

static void put_rejections(struct scrape *s)
{
	static const enum decide_reason reason[] = {
		REASON_SLO_EXCEEDED, REASON_NO_BOUND, REASON_MEMORY,   REASON_BREAKS_PROMISE, REASON_TOO_WIDE,
		REASON_BEYOND_MODEL, REASON_DEVICES,  REASON_UNSTABLE, REASON_PRICE
	};
	const struct metrics *m = &s->d->metrics;

	for (size_t i = 0; i < sizeof reason / sizeof *reason; i++)
		with(s, "reason", decide_reason_text(reason[i]),
		     (double)m->rejected[__builtin_ctz(reason[i])]);
	with(s, "reason", "other", (double)m->rejected[METRICS_ERROR_CODES - 1]);
}

static void put_ended(struct scrape *s)
{
	for (int i = JOB_DONE; i < N_JOB_STATES; i++) {
		if (i != JOB_REJECTED)
			with(s, "state", job_state_name[i], (double)s->d->metrics.ended[i]);
	}
}

static void put_promises(struct scrape *s)
{
	one(s, (double)s->d->metrics.verdict[SCHED_PROMISED]);
}

static void put_outcomes(struct scrape *s)
{
	with(s, "result", "met", (double)s->d->metrics.met);
	with(s, "result", "missed", (double)s->d->metrics.missed);
}

static void put_chances(struct scrape *s)
{
	with(s, "result", "met", (double)s->d->metrics.chances_met);
	with(s, "result", "missed", (double)s->d->metrics.chances_missed);
}

static void put_late(struct scrape *s)
{
	one(s, (double)s->d->metrics.late);
}

static void put_decision(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->d->metrics.decision_s);
}

static void put_wait(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->d->metrics.wait_s);
}

static void put_run(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->d->metrics.run_s);
}

static void put_response(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->d->metrics.response_s);
}

/* ---- predictions ---- */

static void put_bounds(struct scrape *s)
{
	const struct metrics *m = &s->d->metrics;
	char labels[64];

	for (size_t i = 0; i < m->n_levels; i++) {
		const struct metrics_level *v = &m->level[i];

		snprintf(labels, sizeof labels, "confidence=\"%.2f\",result=\"within\"", v->percent / 100.0);
		exposition_sample(s->out, s->name, labels, (double)v->inside);
		snprintf(labels, sizeof labels, "confidence=\"%.2f\",result=\"above\"", v->percent / 100.0);
		exposition_sample(s->out, s->name, labels, (double)(v->n - v->inside));
	}
}

static void put_type_bounds(struct scrape *s)
{
	const struct metrics *m = &s->d->metrics;
	char labels[JOB_TYPE_MAX_NAME + 40]; /* names of types need no escape */

	for (size_t i = 0; i < m->n_types; i++) {
		const struct metrics_type *t = &m->type[i];

		snprintf(labels, sizeof labels, "type=\"%s\",result=\"within\"", t->name);
		exposition_sample(s->out, s->name, labels, (double)t->inside);
		snprintf(labels, sizeof labels, "type=\"%s\",result=\"above\"", t->name);
		exposition_sample(s->out, s->name, labels, (double)(t->n - t->inside));
	}
}

static void put_type_expected(struct scrape *s)
{
	const struct metrics *m = &s->d->metrics;

	for (size_t i = 0; i < m->n_types; i++)
		with(s, "type", m->type[i].name, m->type[i].expected);
}

/* The share of `stats`, which knows the jobs of earlier starts as well. */
static void put_coverage(struct scrape *s)
{
	const struct outcome_stats *t = &s->d->stats;
	char level[16];

	for (size_t i = 0; i < t->n_levels; i++) {
		snprintf(level, sizeof level, "%.2f", t->level[i].percent / 100.0);
		with(s, "confidence", level,
		     t->level[i].n ? (double)t->level[i].inside / (double)t->level[i].n : NAN);
	}
}

static void put_error_ratio(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->d->metrics.error_ratio);
}

/* ---- models: the configuration's without a label, then those of job types ---- */

static void put_models(struct scrape *s, double (*of)(const struct scrape *s, const struct learning_now *now,
						      const struct model_slot *slot))
{
	struct learning_now now;

	for (uint32_t i = 0; learning_now(s->d->learning, i, &now); i++) {
		double v = of(s, &now, &s->d->setup->slot[i]);

		if (now.type)
			with(s, "type", now.type, v);
		else
			one(s, v);
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

#define OF_MODEL(name, value)                                                                                \
	static double name##_of(const struct scrape *s, const struct learning_now *now,                      \
				const struct model_slot *slot)                                               \
	{                                                                                                    \
		(void)s;                                                                                     \
		(void)now;                                                                                   \
		(void)slot;                                                                                  \
		return value;                                                                                \
	}                                                                                                    \
	static void put_##name(struct scrape *s)                                                             \
	{                                                                                                    \
		put_models(s, name##_of);                                                                    \
	}

static double age_s(const struct scrape *s, const struct model *m)
{
	int64_t made_ns;

	return m && text_utc_parse(m->created, &made_ns) ? (double)(daemon_now_ns(s->d) - made_ns) / 1e9
							 : NAN;
}

OF_MODEL(model_version, now->version)
OF_MODEL(model_rows, slot->model ? (double)slot->model->data_rows : NAN)
OF_MODEL(model_age, age_s(s, slot->model))
OF_MODEL(training, now->training)
OF_MODEL(since_training, (double)now->since_training)
OF_MODEL(drift_alarm, now->has_drift && now->drift.alarm)
OF_MODEL(drift_shift, now->has_drift ? now->drift.shift_percent / 100.0 : NAN)
OF_MODEL(drift_statistic, now->has_drift ? now->drift.statistic / now->drift.threshold : NAN)
OF_MODEL(drift_alarms, (double)now->alarms)

static void put_probes(struct scrape *s)
{
	one(s, (double)learning_probes(s->d->learning));
}

/* ---- the machine ---- */

static void put_queue(struct scrape *s)
{
	one(s, (double)sched_queued(s->d->sched));
}

static void put_slots(struct scrape *s)
{
	one(s, s->d->setup->config->slots);
}

static void put_slots_used(struct scrape *s)
{
	one(s, sched_slots_used(s->d->sched));
}

static void put_gpus(struct scrape *s)
{
	one(s, s->d->setup->config->resources.gpus);
}

static void put_gpus_used(struct scrape *s)
{
	one(s, sched_devices_used(s->d->sched));
}

static void put_memory(struct scrape *s)
{
	one(s, s->d->setup->config->memory_mb * 1048576.0);
}

static void put_other_load(struct scrape *s)
{
	one(s, s->d->setup->config->other_load ? other_load_processes(&s->d->demand.other) : NAN);
}

/* ---- the store ---- */

static void put_store_failed(struct scrape *s)
{
	one(s, s->d->store_failed);
}

static void put_store_pending(struct scrape *s)
{
	one(s, (double)s->store.pending);
}

static void put_store_rows(struct scrape *s)
{
	one(s, (double)s->store.rows);
}

static void put_store_log(struct scrape *s)
{
	one(s, (double)s->store.wal_bytes);
}

static void put_commit(struct scrape *s)
{
	exposition_histogram(s->out, s->name, &s->store.commit_s);
}

/* ---- tenants: those that the configuration names, and all other users together ---- */

/* A user in no tenant is "uid 1000": names of the configuration have no blank. */
static bool configured(const struct scrape *s, size_t i)
{
	return !strchr(tenants_name(&s->d->tenants, (uint32_t)i), ' ');
}

static void take_share(struct scrape *s, uint32_t i, const struct sched_share *share)
{
	if (i < MAX_TENANTS && configured(s, i)) {
		s->share[i] = *share;
		return;
	}
	if (i < MAX_TENANTS)
		s->share[i].usage_cpu_s = NAN; /* it has no sample */
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

static void put_tenants(struct scrape *s, double (*of)(const struct sched_share *share), double others)
{
	for (size_t i = 0; i < s->n_tenants; i++) {
		if (!isnan(s->share[i].usage_cpu_s))
			with(s, "tenant", tenants_name(&s->d->tenants, (uint32_t)i), of(&s->share[i]));
	}
	with(s, "tenant", "", others);
}

static double queued_of(const struct sched_share *x)
{
	return (double)x->queued;
}

static double running_of(const struct sched_share *x)
{
	return (double)x->running;
}

static double cpus_of(const struct sched_share *x)
{
	return (double)x->cpus;
}

static double gpus_of(const struct sched_share *x)
{
	return (double)x->devices;
}

static double usage_of(const struct sched_share *x)
{
	return round(x->usage_cpu_s); /* whole seconds are quick to write, and there may be a thousand */
}

static void put_tenant_queued(struct scrape *s)
{
	put_tenants(s, queued_of, s->other.queued);
}

static void put_tenant_running(struct scrape *s)
{
	put_tenants(s, running_of, s->other.running);
}

static void put_tenant_cpus(struct scrape *s)
{
	put_tenants(s, cpus_of, s->other.cpus);
}

static void put_tenant_gpus(struct scrape *s)
{
	put_tenants(s, gpus_of, s->other.gpus);
}

static void put_tenant_usage(struct scrape *s)
{
	put_tenants(s, usage_of, s->other.usage_cpu_s);
}

/* ---- the table ---- */

static const struct family {
	const char *name, *type, *help;
	void (*put)(struct scrape *s);
} family_all[] = {
	{ "build_info", "gauge", "1, with the version of the daemon", put_build },
	{ "uptime_seconds", "gauge", "since the daemon started", put_uptime },
	{ "resident_memory_bytes", "gauge", "of the daemon itself, without its jobs", put_resident },
	{ "connections", "gauge", "clients on the socket", put_connections },
	{ "draining", "gauge", "1: no job is taken or started", put_draining },
	{ "loop_busy_seconds", "histogram", "how long the loop was busy with one thing", put_loop_busy },
	{ "loop_lag_seconds", "histogram", "by how much a timer of the loop came late, once a second",
	  put_loop_lag },
	{ "loop_busy_longest_seconds", "gauge", "the longest of loop_busy_seconds since the start",
	  put_loop_longest },
	{ "scrape_duration_seconds", "histogram", "how long writing these metrics took, the last one aside",
	  put_scrape },
	{ "request_errors_total", "counter", "requests answered with an error, by its code", put_errors },
	{ "reloads_total", "counter", "configurations and models read again", put_reloads },

	{ "jobs", "gauge", "jobs in memory, by state", put_jobs },
	{ "submissions_total", "counter", "jobs submitted, by what was answered", put_submissions },
	{ "rejections_total", "counter", "jobs rejected, by the reason all candidates share",
	  put_rejections },
	{ "jobs_ended_total", "counter", "jobs ended, by state", put_ended },
	{ "promises_total", "counter", "promises made", put_promises },
	{ "slo_outcomes_total", "counter", "promised jobs that have ended: their objective was met or missed",
	  put_outcomes },
	{ "chance_outcomes_total", "counter", "the same of jobs taken by chance, without a promise",
	  put_chances },
	{ "late_total", "counter", "promised jobs that were predicted to be late while they lived",
	  put_late },
	{ "decision_duration_seconds", "histogram", "how long a decision took", put_decision },
	{ "wait_seconds", "histogram", "from submission to start, of jobs that started", put_wait },
	{ "run_seconds", "histogram", "from start to end, of jobs that are done", put_run },
	{ "response_seconds", "histogram", "from submission to end, of jobs that are done", put_response },

	{ "bounds_total", "counter",
	  "jobs done, by whether their run time was within the bound given at the start", put_bounds },
	{ "type_bounds_total", "counter", "the same by job type, over all confidences", put_type_bounds },
	{ "type_bounds_expected_total", "counter",
	  "the sum of the confidences of these jobs: as many should be within", put_type_expected },
	{ "interval_coverage_ratio", "gauge",
	  "share of jobs within their bound, by stated confidence; jobs before a restart included",
	  put_coverage },
	{ "prediction_error_ratio", "histogram",
	  "abs(predicted - actual) / actual of run times, of jobs done", put_error_ratio },
	{ "model_info", "gauge", "1, with the policy and the model in use; type: of that job type alone",
	  put_model },
	{ "model_version", "gauge", "number of the model in use; 0: the configuration's", put_model_version },
	{ "model_rows", "gauge", "rows that the model learnt from", put_model_rows },
	{ "model_age_seconds", "gauge", "since the model was trained", put_model_age },
	{ "model_training", "gauge", "1: a model is being trained", put_training },
	{ "jobs_since_training", "gauge", "jobs ended since the last training", put_since_training },
	{ "drift_alarm", "gauge", "1: run times have shifted against the model", put_drift_alarm },
	{ "drift_shift_ratio", "gauge", "by how much: 0.2 is a fifth longer", put_drift_shift },
	{ "drift_statistic_ratio", "gauge", "the evidence of a shift over the threshold of the alarm",
	  put_drift_statistic },
	{ "drift_alarms_total", "counter", "alarms raised, by model", put_drift_alarms },
	{ "probes_total", "counter", "short runs submitted only to learn from them", put_probes },

	{ "queue_length", "gauge", "jobs that wait", put_queue },
	{ "slots", "gauge", "cpus handed out to jobs at the same time", put_slots },
	{ "slots_used", "gauge", "cpus that running jobs hold", put_slots_used },
	{ "gpus", "gauge", "gpus handed out to jobs, each to one at a time", put_gpus },
	{ "gpus_used", "gauge", "gpus that running jobs hold", put_gpus_used },
	{ "memory_bytes", "gauge", "memory for all jobs together", put_memory },
	{ "other_load_processes", "gauge", "work of programs that are not ours, in processes that compute",
	  put_other_load },

	{ "store_failed", "gauge", "1: the database cannot be written, and no job is taken",
	  put_store_failed },
	{ "store_pending_rows", "gauge", "rows that are not on disk yet", put_store_pending },
	{ "store_rows_total", "counter", "rows written", put_store_rows },
	{ "store_log_bytes", "gauge", "the database's log as of the last commit", put_store_log },
	{ "store_commit_duration_seconds", "histogram", "how long a commit took, the disk included",
	  put_commit },

	{ "tenant_queued", "gauge", "jobs that wait, by tenant of the configuration; \"\" is all other users",
	  put_tenant_queued },
	{ "tenant_running", "gauge", "jobs that run, by tenant", put_tenant_running },
	{ "tenant_cpus", "gauge", "cpus that running jobs hold, by tenant", put_tenant_cpus },
	{ "tenant_gpus", "gauge", "gpus that running jobs hold, by tenant", put_tenant_gpus },
	{ "tenant_usage_cpu_seconds", "gauge",
	  "use of the machine, older use fading (fair_window_s), by tenant", put_tenant_usage },
};

void metrics_text(struct daemon *d, struct strbuf *out)
{
	static struct scrape s; /* a hundred kilobytes; the loop has one thread */
	int64_t since = clock_monotonic_ns();
	char name[80];

	s = (struct scrape){ .d = d, .out = out };
	store_stats(d->store, &s.store);
	read_tenants(&s);
	for (size_t i = 0; i < sizeof family_all / sizeof *family_all; i++) {
		const struct family *f = &family_all[i];

		snprintf(name, sizeof name, "postrider_%s", f->name);
		s.name = name;
		exposition_family(out, name, f->type, f->help);
		f->put(&s);
	}
	histogram_add(&d->metrics.scrape_s, (double)(clock_monotonic_ns() - since) / 1e9);
}
