/* After a restart: jobs are read from the store and given to the scheduler again, and the state machine of
 * each (jobs/life.h) decides how it continues. See daemon.h. */
#include <stdio.h>

#include "common/log.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/daemon.h"

static int on_row(void *owner, const struct job_record *row, struct err *err)
{
	struct daemon *d = owner;
	struct life_event e;
	struct binding b;
	struct err why = { 0 };
	struct job *job;
	int rc = job_new(&d->jobs.names, row, &job, err);

	if (rc)
		return rc;
	if (job_state_live(row->state) &&
	    (binding_of_row(d->setup, row, &b, &why) == 0 ||
	     (row->state == JOB_RUNNING && binding_without_type(d->setup, row, &b, err) == 0)))
		binding_give(&b, job);
	else if (row->state == JOB_QUEUED) /* it cannot be started: what it lacks is the reason of its end */
		job_set_reason(job, why.text);
	e = carry_event(d, LIFE_RESTORED, job);
	rc = carry_out(d, &e, err);
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
	const char *tenant = job->row.tenant ? job->row.tenant : "earlier";
	struct sched_restored back;
	int rc;

	if (!job->type && job->row.state == JOB_QUEUED)
		return err_fail(err, ERR_NOTFOUND, "%s",
				job->reason ? job->reason : "its type is no longer configured");
	rc = tenants_named(&d->tenants, d->setup->config, d->sched, daemon_now_ns(d), tenant, &job->tenant,
			   err);
	if (rc)
		return rc;
	job->limited = !config_is_admin(d->setup->config, job->row.uid);
	if (job->row.verdict == VERDICT_WAITING)
		return 0; /* its life says so when all are back */
	life_back(job, &back);
	binding_request(job, &back.request);
	return sched_restore(d->sched, &back, err);
}

int daemon_set_devices(struct daemon *d, const struct config *c, struct err *err)
{
	const struct config_resources *r = &c->resources;
	int rc = devices_set(&d->devices, r->gpu_name, r->gpus, err);

	for (struct job *job = r->gpus ? d->jobs.live.first : NULL; job && !rc; job = job->after) {
		if (job->row.devices && (job->row.state == JOB_RUNNING || job->step == STEP_READY))
			devices_hold(&d->devices, job->id, job->row.devices);
	}
	return rc;
}

int daemon_restore(struct daemon *d, struct err *err)
{
	int64_t since_ns = daemon_now_ns(d) - (int64_t)KEEP_KEYS_S * 1000000000;
	int rc = store_each_finished(d->store, d->setup->config->max_finished, on_row, d, err);

	if (!rc)
		rc = store_each_live(d->store, on_row, d, err);
	if (!rc)
		rc = store_each_key(d->store, since_ns, on_key, d, err);
	if (!rc)
		rc = daemon_set_devices(d, d->setup->config, err);
	if (rc)
		return rc;
	tally_begins(&d->tally);
	d->next_id = store_last_id(d->store) + 1;
	/* All of them first: once one of them ends, which is an event, the scheduler takes no more back. */
	for (struct job *job = d->jobs.live.first; job; job = job->after) {
		struct err why = { 0 };

		if (schedule_again(d, job, &why)) {
			log_warn("job %llu: %s", (unsigned long long)job->id, why.text);
			job_set_reason(job, why.text);
		}
	}
	if (d->jobs.live.n > 0)
		log_info("%zu jobs queued, %zu running", d->jobs.count[JOB_QUEUED],
			 d->jobs.count[JOB_RUNNING]);
	for (struct job *job = d->jobs.live.first, *next; job; job = next) {
		struct life_event e = carry_event(d, LIFE_RESUMED, job);

		next = job->after;
		if (job->row.verdict != VERDICT_WAITING && !sched_lives(d->sched, job->id))
			e.text = job->reason ? job->reason : "it could not be scheduled again";
		carry_out(d, &e, NULL);
	}
	return 0;
}
