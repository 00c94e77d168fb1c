/* What is known now of live jobs: when each will start and end, and why it waits. See daemon.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/daemon/daemon.h"

/* With more jobs than this the estimates are not updated regularly, only when a client asks for one. */
#define WATCHED_JOBS 1000
#define EVENTS_NS 2000000 /* of one regular look */
#define LOOK_NS 1000000 /* what is told of jobs is as of at most so long ago */

/* The message is valid until the next call. */
static void why_waiting(const struct daemon *d, const struct job *job, const struct sched_waiting *w,
			struct job_live *out)
{
	static char text[192];
	char others[96];

	if (waiting_why(d, job, text, sizeof text)) {
		out->waiting_code = "after";
		out->waiting_message = text;
		return;
	}
	if (job->step == STEP_READY) {
		out->waiting_code = "owner";
		out->waiting_message = "it may start; its owner has not said that it did";
		return;
	}
	if (d->draining) {
		out->waiting_code = "draining";
		out->waiting_message = "the daemon starts no more jobs";
		return;
	}
	if (d->store_failed) {
		out->waiting_code = "storage";
		out->waiting_message = "no job starts while the database cannot be written";
		return;
	}
	if (d->dirty || w->why == SCHED_WAIT_NOT)
		return; /* the turn that may start it is still to come */
	out->waiting_code = sched_wait_name(w->why);
	switch (w->why) {
	case SCHED_WAIT_SLOTS:
		snprintf(text, sizeof text, "%.0f of %u cpus are free%s, it wants %.0f", w->available,
			 sched_slots(d->sched), cluster_words(d, others, sizeof others), w->needed);
		break;
	case SCHED_WAIT_MEMORY:
		snprintf(text, sizeof text, "%.0f MB are free, it wants %.0f", w->available, w->needed);
		break;
	case SCHED_WAIT_HELD:
		snprintf(text, sizeof text, "starting now would break what job %llu was promised",
			 (unsigned long long)w->job);
		break;
	case SCHED_WAIT_PRICE:
		snprintf(text, sizeof text, "starting now would cost other jobs more than it brings");
		break;
	case SCHED_WAIT_QUOTA:
		snprintf(text, sizeof text, "%s may use %.0f cpus more, it wants %.0f", job->row.tenant,
			 w->available, w->needed);
		break;
	case SCHED_WAIT_DEVICES:
		snprintf(text, sizeof text, "%.0f of %u gpus are free, it wants %.0f", w->available,
			 d->setup->config->resources.gpus, w->needed);
		break;
	case SCHED_WAIT_DEVICE_QUOTA:
		snprintf(text, sizeof text, "%s may use %.0f gpus more, it wants %.0f", job->row.tenant,
			 w->available, w->needed);
		break;
	case SCHED_WAIT_UNSTARTED:
		snprintf(text, sizeof text, "uid %u has jobs that may start, and has not started them",
			 (unsigned)job->row.uid);
		break;
	default:
		snprintf(text, sizeof text, "%zu jobs are before it%s", w->ahead,
			 cluster_words(d, others, sizeof others));
		break;
	}
	out->waiting_message = text;
}

/* Many jobs are asked about at the same time, so that one play serves all of them. */
static int64_t look_ns(struct daemon *d)
{
	int64_t now_ns = daemon_now_ns(d);

	if (now_ns - d->look_ns > LOOK_NS || now_ns < d->look_ns)
		d->look_ns = now_ns;
	return d->look_ns;
}

void estimates_live(struct daemon *d, const struct job *job, struct job_live *out)
{
	struct sched_waiting w = { .why = SCHED_WAIT_NOT };
	struct sched_estimate e;

	*out = (struct job_live){ 0 };
	if (!job_state_live(job->row.state))
		return;
	if (!sched_estimate(d->sched, look_ns(d), job->id, &e, NULL) && !isnan(e.end_s)) {
		out->has_estimate = true;
		out->start_s = e.start_s;
		out->end_s = e.end_s;
		out->end_low_s = e.end_low_s;
		out->end_high_s = e.end_high_s;
		out->late = e.late;
	}
	if (job->waits_for) {
		bool machine = job->step == STEP_DELAYED || job->step == STEP_SPAWNED;

		out->waiting_code = machine ? "machine" : "engine";
		out->waiting_message = job->waits_for;
	}
	if (job->row.state == JOB_QUEUED) {
		sched_waiting(d->sched, look_ns(d), job->id, &w, NULL);
		why_waiting(d, job, &w, out);
	}
	out->epoch = job->epoch;
	out->epochs = job->epochs;
	out->accuracy = job->epoch_accuracy;
	out->final_accuracy = own_curve_at(&job->curve, job->epochs);
	out->has_progress = !isnan(job->epoch);
	out->pid = job->pid;
}

/* What there is no time for comes first the next time. */
void estimates_look(struct daemon *d)
{
	int64_t now_ns = daemon_now_ns(d);

	if (d->jobs.live.n > WATCHED_JOBS || d->store_failed)
		return;
	for (size_t n = d->jobs.live.n, k = 0; k < n; k++) {
		struct job *job = jobs_cursor_next(&d->jobs, &d->look);
		struct life_event e;

		if (!job) {
			jobs_cursor_open(&d->jobs, &d->look, true);
			job = jobs_cursor_next(&d->jobs, &d->look);
		}
		if (!job)
			return;
		e = carry_event(d, LIFE_ESTIMATED, job);
		e.on_late = late_rule(d->setup->config, job);
		if (!sched_estimate(d->sched, now_ns, job->id, &e.estimate, NULL) && !isnan(e.estimate.end_s))
			carry_out(d, &e, NULL);
		if (k % 16 == 15 && daemon_now_ns(d) > now_ns + EVENTS_NS)
			return;
	}
}
