/* After a restart: jobs come back from the store, running ones are looked for, and nothing is run twice.
 * See daemon.h, life_restore(). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/daemon.h"

#define KEYS_KEPT_S (7 * 86400) /* how long a retried submit finds its job */

static int on_ended_row(void *owner, const struct job_record *row, struct err *err)
{
	struct daemon *d = owner;
	struct job *job;
	int rc = job_new(&d->jobs.names, row, &job, err);

	if (rc)
		return rc;
	rc = jobs_add(&d->jobs, job, err);
	if (rc)
		job_free(job);
	else if (job->row.state == JOB_DONE || job->row.state == JOB_FAILED || job->row.state == JOB_LOST)
		tally_ended(&d->tally, &job->row);
	return rc;
}

/* A row of a live job becomes a job in memory; scheduling it comes later, when all are there. */
static int on_live_row(void *owner, const struct job_record *row, struct err *err)
{
	struct daemon *d = owner;
	struct binding b;
	struct err why = { 0 };
	struct job *job;
	int rc = job_new(&d->jobs.names, row, &job, err);

	if (rc)
		return rc;
	job->cancelling = job->row.state == JOB_RUNNING && row->reason &&
			  !strcmp(row->reason, LIFE_CANCELLED);
	if (binding_of_row(d->setup, row, &b, &why) == 0)
		binding_give(&b, job);
	else
		job_set_reason(job, why.text);
	rc = jobs_add(&d->jobs, job, err);
	if (rc)
		job_free(job);
	return rc;
}

static int on_key(void *owner, uid_t uid, const char *key, uint64_t job, struct err *err)
{
	struct daemon *d = owner;

	return jobs_key_add(&d->jobs, uid, key, job, err);
}

static int schedule_again(struct daemon *d, struct job *job, struct err *err)
{
	const struct job_record *r = &job->row;
	struct sched_restored back = {
		.submitted_ns = r->submitted_ns,
		.promised = r->verdict == VERDICT_PROMISED,
		.running = job->row.state == JOB_RUNNING,
		.started_ns = r->started_ns,
		.taken = record_candidate(r),
	};

	if (tenants_named(&d->tenants, d->setup->config, d->sched, daemon_now_ns(d),
			  r->tenant ? r->tenant : "earlier", &job->tenant, err))
		return -err->code;
	job->stop_told = !isnan(r->stopped_epoch);
	binding_request(job, &back.request);
	return sched_restore(d->sched, &back, err);
}

static void give_up(struct daemon *d, struct job *job, const char *why)
{
	struct exec_outcome o = { .id = job->id, .exit_code = -1, .lost = job->row.state == JOB_RUNNING };

	o.run_s = o.accuracy = o.max_rss_mb = o.cpu_s = NAN;
	snprintf(o.reason, sizeof o.reason, "%s", why);
	life_ended(d, job, &o);
}

int life_restore(struct daemon *d, struct err *err)
{
	size_t running = 0, queued = 0;
	int rc = store_each_finished(d->store, d->setup->config->max_finished, on_ended_row, d, err);

	if (!rc)
		rc = store_each_live(d->store, on_live_row, d, err);
	if (!rc)
		rc = store_each_key(d->store, daemon_now_ns(d) - (int64_t)KEYS_KEPT_S * 1000000000, on_key, d,
				    err);
	if (rc)
		return rc;
	d->next_id = store_last_id(d->store) + 1;
	/* All of them first: once one of them ends, which is an event, the scheduler takes no more back. */
	for (struct job *job = d->jobs.live.first; job; job = job->after) {
		struct err why = { 0 };

		job->unrestored = !job->type && job->row.state == JOB_QUEUED;
		if (!job->unrestored && schedule_again(d, job, &why)) {
			log_warn("job %llu: %s", (unsigned long long)job->id, why.text);
			job->unrestored = true;
			job_set_reason(job, why.text);
		}
	}
	for (struct job *job = d->jobs.live.first, *next; job; job = next) {
		next = job->after;
		if (job->unrestored) {
			give_up(d, job, job->reason ? job->reason : "its type is no longer configured");
		} else if (job->row.state == JOB_RUNNING) {
			running++;
			life_adopt(d, job);
		} else {
			queued++;
		}
	}
	if (running + queued > 0)
		log_info("%zu jobs queued, %zu running", queued, running);
	return 0;
}
