/* Ops that change one job: `cancel`, and what the owner of an advised job reports (started, progress, next,
 * finished). The table of ops has found the job, and made sure that the request may change it. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/daemon/ops/ops.h"

#define ROUNDED_S 1e-3 /* a client rounds its times */
#define LATE_WORD_S 1.0 /* how long after its end an advised job may be reported, or */
#define LATE_WORD_SHARE 0.1 /* of its time */

/* The state may not be on disk yet. A client that hears of it and then finds another one after a crash would
 * have been deceived, so the answer waits. */
static void wrong_state(struct request *r, const struct job *job, const char *what)
{
	r->ticket = daemon_ticket(r->d);
	reply_error(r, "wrong_state", "job", NULL, "job %llu is %s: %s", (unsigned long long)job->id,
		    job_state_name[job->row.state], what);
}

void op_cancel(struct request *r)
{
	struct life_event e = carry_event(r->d, LIFE_CANCEL, r->job);
	struct err err = { 0 };

	if (!job_state_live(r->job->row.state))
		wrong_state(r, r->job, "there is nothing to cancel");
	else if (carry_out(r->d, &e, &err))
		reply_err(r, &err, NULL);
	else
		reply_job(r, r->job, daemon_ticket(r->d));
}

/* Is the job an advised one? False: answered. */
static bool is_advised(struct request *r)
{
	if (!strcmp(r->job->row.mode, "advise"))
		return true;
	reply_error(r, "wrong_state", "job", NULL, "job %llu is run by the daemon, which needs no report",
		    (unsigned long long)r->job->id);
	return false;
}

void op_started(struct request *r)
{
	struct job *job = r->job;
	struct err err = { 0 };

	if (!is_advised(r))
		return;
	if (job->row.state != JOB_QUEUED) {
		wrong_state(r, job, "it cannot be started");
	} else if (carry_started_by_owner(r->d, job, &err)) {
		reply_err(r, &err, NULL);
	} else {
		reply_begin(r);
		put_job(r, job);
		json_put_key(&r->w, "decision");
		json_put_raw(&r->w, job->decision_text ? job->decision_text : "null");
		reply_send(r, daemon_ticket(r->d));
	}
}

void op_finished(struct request *r)
{
	struct job *job = r->job;
	struct exec_outcome o = { .id = job->id,
				  .accuracy = NAN,
				  .run_s = NAN,
				  .max_rss_mb = NAN,
				  .cpu_s = NAN,
				  .ended_ns = daemon_now_ns(r->d) };
	double own_s = (double)(o.ended_ns - job->row.started_ns) / 1e9;
	uint64_t code = 0;

	if (!is_advised(r))
		return;
	if (job->row.state != JOB_RUNNING) {
		wrong_state(r, job, "it was not running");
		return;
	}
	field_whole(&r->f, "exit_code", 0, 255, &code);
	field_number(&r->f, "accuracy", -DBL_MAX, DBL_MAX, &o.accuracy);
	field_number(&r->f, "run_s", 0.0, own_s + ROUNDED_S, &o.run_s);
	if (!request_fine(r))
		return;
	o.exit_code = (int)code;
	/* Between `started` and `finished` our own clock has run. A word about the end may come late, but a
	 * time far below ours is not believed. */
	if (!(o.run_s >= own_s - fmax(LATE_WORD_S, LATE_WORD_SHARE * own_s)))
		o.run_s = own_s;
	o.run_s = fmin(o.run_s, own_s);
	o.started_ns = o.ended_ns - (int64_t)(o.run_s * 1e9);
	if (o.exit_code)
		snprintf(o.reason, sizeof o.reason, "its owner reported exit code %d", o.exit_code);
	carry_ended(r->d, job, &o);
	reply_job(r, job, daemon_ticket(r->d));
}

void op_progress(struct request *r)
{
	double done = NAN;

	if (!is_advised(r))
		return;
	field_number(&r->f, "done", 0.0, 1.0, &done);
	if (!r->f.rc && isnan(done))
		fields_fail(&r->f, ERR_ARG, "done", "is needed: a number from 0 to 1");
	if (!request_fine(r))
		return;
	if (r->job->row.state != JOB_RUNNING) {
		wrong_state(r, r->job, "it makes no progress");
	} else {
		carry_progress(r->d, r->job, done, NULL);
		reply_job(r, r->job, 0);
	}
}

/* What is on its way to the disk is not told before it is there. */
static void reply_next(struct request *r)
{
	const struct job *job = r->job;
	struct next next;

	job_next(job, &next);
	reply_begin(r);
	json_kv_number(&r->w, "batch", next.batch);
	json_kv_number(&r->w, "lr", next.lr);
	json_kv_number(&r->w, "last", next.last);
	json_kv_number(&r->w, "after", next.after);
	reply_send(r, job->steering.awaits ? daemon_ticket(r->d) : 0);
}

/* How the next epoch is to be run. With `epoch` it is the report of an advised job, whose owner asks here;
 * the reports of others are in what they print. */
void op_next(struct request *r)
{
	struct life_progress p = { .epoch = NAN, .epochs = NAN, .accuracy = NAN, .batch = NAN, .asks = true };
	struct job *job = r->job;
	uint64_t epoch = 0;
	struct next next;

	field_whole(&r->f, "epoch", 1, EPOCHS_MAX, &epoch);
	field_number(&r->f, "accuracy", -DBL_MAX, DBL_MAX, &p.accuracy);
	field_number(&r->f, "batch", 1.0, DBL_MAX, &p.batch);
	if (!r->f.rc && !epoch && (!isnan(p.accuracy) || !isnan(p.batch)))
		fields_fail(&r->f, ERR_ARG, "epoch", "is needed: the one that has ended, from 1 on");
	if (!request_fine(r))
		return;
	if (job->row.state != JOB_RUNNING) {
		wrong_state(r, job, "it has no next epoch");
		return;
	}
	if (epoch && !is_advised(r))
		return;
	job_next(job, &next);
	p.epoch = (double)epoch;
	p.epochs = next.last;
	if (epoch)
		carry_progress(r->d, job, p.epoch / p.epochs, &p);
	if (job_state_live(job->row.state))
		reply_next(r);
	else
		wrong_state(r, job, "it has no next epoch");
}
