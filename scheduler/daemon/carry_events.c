/* What the scheduler, the store, the executors and the owners of jobs say becomes events of the life of a job
 * (jobs/life.h), which carry_out.c carries out. See daemon.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/ops/decision_json.h"

#define TURN_US 1000.0 /* of starts in one turn of the loop, because others want to be served, too */
/* A bound that the run time exceeds once in ten times, and a start as seldom: both together are rarer. */
#define LAG_PERCENT 90.0
#define FIRST_LAG_S 0.005 /* a few waits for a disk, while few starts are known */

/* ---- time ---- */

void carry_out_all(struct daemon *d, enum life_event_kind kind)
{
	struct job_list *list[] = { &d->jobs.live, &d->jobs.ended };

	for (size_t i = 0; i < 2; i++) {
		for (struct job *job = list[i]->first, *after; job; job = after) {
			struct life_event e = carry_event(d, kind, job);

			after = job->after;
			e.advise_timeout_s = d->setup->config->advise_timeout_s;
			carry_out(d, &e, NULL);
		}
	}
}

/* A running job that was taken by chance is stopped when it has no chance any more. */
static void give_up_in_time(struct daemon *d, struct job *job)
{
	struct life_event e;

	if (job->row.verdict != VERDICT_CHANCE || job->row.state != JOB_RUNNING || life_stops(job) ||
	    !sched_chance_gone(d->sched, daemon_now_ns(d), job->id))
		return;
	e = carry_event(d, LIFE_HOPELESS, job);
	carry_out(d, &e, NULL);
}

/* Its owner did not start it in time: only the clock says so. */
static void note_timeout(struct daemon *d, const struct job *job, int64_t now_ns)
{
	struct exec_outcome o;

	if (job_state_live(job->row.state))
		return;
	o = life_outcome(job->id, job->row.state == JOB_LOST, job->row.reason ? job->row.reason : "");
	inputs_ended(d, now_ns, &o);
}

bool carry_ticks(struct daemon *d)
{
	double until_us = clock_monotonic_us() + TURN_US;
	struct job *job;

	if (!d->tick.at)
		jobs_cursor_open(&d->jobs, &d->tick, true);
	for (size_t n = 1; (job = jobs_cursor_next(&d->jobs, &d->tick)); n++) {
		if (job->step == STEP_READY) { /* the event means nothing to the others */
			struct life_event e = carry_event(d, LIFE_TICK, job);

			e.advise_timeout_s = d->setup->config->advise_timeout_s;
			carry_out(d, &e, NULL);
			note_timeout(d, job, e.now_ns);
		}
		give_up_in_time(d, job);
		if (n % 64 == 0 && clock_monotonic_us() > until_us)
			return !d->tick.at;
	}
	return true;
}

/* ---- the scheduler: whose turn it is ---- */

/* Into `out`, what the job gets; an engine chooses for its jobs. The scheduler has counted, so they are
 * there. */
static const char *take_devices(struct daemon *d, const struct job *job, const struct decision *decision,
				struct strbuf *out)
{
	const struct candidate *c = decision->chosen >= 0 ? &decision->candidate[decision->chosen] : NULL;
	const struct config *config = d->setup->config;

	if (!c || !c->devices || (!life_advised(job) && config_engine(config, carry_executor(config, job))))
		return NULL;
	if (!devices_take(&d->devices, job->id, c->devices, out) || out->failed) {
		log_error("job %llu starts without its %u gpus: %u are free", (unsigned long long)job->id,
			  c->devices, devices_free_count(&d->devices));
		return NULL;
	}
	return out->text;
}

static void turn_of(struct daemon *d, struct job *job, const struct decision *decision, int64_t now_ns,
		    double took_us)
{
	struct life_event e = carry_event(d, LIFE_TURN, job);
	const struct setup *s = d->setup;
	const struct model_slot *slot = &s->slot[job->slot];
	struct decision_about about = {
		.at_ns = now_ns,
		.when = "start",
		.policy = s->config->policy,
		.model = slot->name,
		.type = job->type,
		.epochs = job_epochs_given(job),
		.slo_s = job->row.slo_s - (double)(now_ns - job->row.submitted_ns) / 1e9,
		.took_us = took_us,
		.accuracy_error = decide_accuracy_noise(slot->model),
	};
	struct strbuf devices = { 0 }, text = { 0 };
	struct json_writer w;

	e.now_ns = now_ns;
	daemon_decided(d, took_us);
	json_begin(&w, &text, false);
	decision_json(&w, decision, &about);
	e.decision = decision;
	e.text = strbuf_text(&text);
	e.policy = names_keep(&d->jobs.names, s->config->policy);
	e.model = names_keep(&d->jobs.names, slot->name[0] ? slot->name : NULL);
	e.devices = take_devices(d, job, decision, &devices);
	carry_out(d, &e, NULL);
	strbuf_release(&devices);
	strbuf_release(&text);
}

/* A job without a chance leaves the queue. */
static void give_up(struct daemon *d, uint64_t id, struct job *job)
{
	if (job) {
		struct life_event e = carry_event(d, LIFE_HOPELESS, job);

		carry_out(d, &e, NULL);
	}
	if (sched_lives(d->sched, id)) /* or the scheduler would name it for ever */
		sched_remove(d->sched, daemon_now_ns(d), id, NULL);
}

bool carry_next(struct daemon *d, uint64_t *out_id)
{
	double before = clock_monotonic_us();
	int64_t now_ns = daemon_now_ns(d);
	struct decision decision;
	uint64_t id;
	bool starts = sched_next(d->sched, now_ns, &id, &decision);
	struct job *job;

	if (!starts && sched_looked(d->sched))
		inputs_add(d, INPUT_LOOKED, now_ns, NULL, NAN, NULL);
	if (!starts && !sched_hopeless(d->sched, &id))
		return false;
	job = jobs_find(&d->jobs, id);
	if (job && starts)
		turn_of(d, job, &decision, now_ns, clock_monotonic_us() - before);
	else if (!starts)
		give_up(d, id, job);
	*out_id = starts ? id : 0;
	return true;
}

void carry_turns(struct daemon *d)
{
	double began = clock_monotonic_us();
	uint64_t id;

	while (!d->draining && !d->store_failed && carry_next(d, &id)) {
		if (clock_monotonic_us() - began > TURN_US) {
			daemon_later(d);
			return;
		}
	}
	if (!d->draining && sched_unfinished(d->sched))
		daemon_later(d);
}

/* ---- the store: what is on disk ---- */

void carry_durable(struct daemon *d, uint64_t ticket)
{
	struct start_list *l = &d->starts;
	double began = clock_monotonic_us();
	size_t n = 0;

	/* A start that fails ends its job, which may add to the list: it is read again each time. */
	for (; n < l->n && l->item[n].ticket <= ticket; n++) {
		struct job *job = jobs_find(&d->jobs, l->item[n].job);

		if (n > 0 && clock_monotonic_us() - began > TURN_US) {
			daemon_later(d);
			break;
		}
		if (job) {
			struct life_event e = carry_event(d, LIFE_DURABLE, job);

			carry_out(d, &e, NULL);
		}
	}
	if (n > 0) {
		memmove(l->item, l->item + n, (l->n - n) * sizeof *l->item);
		l->n -= n;
	}
}

/* Not more than one that fails again, because the others would, too. */
void carry_delayed(struct daemon *d)
{
	size_t n = d->delayed.n, done = 0;

	for (; done < n && d->delayed.n == n; done++) {
		struct job *job = jobs_find(&d->jobs, d->delayed.item[done].job);

		if (job) {
			struct life_event e = carry_event(d, LIFE_TRY_AGAIN, job);

			carry_out(d, &e, NULL);
		}
	}
	d->delayed.n -= done;
	if (done)
		memmove(d->delayed.item, d->delayed.item + done, d->delayed.n * sizeof *d->delayed.item);
}

/* ---- executors and owners ---- */

static void started(struct daemon *d, struct job *job, int64_t now_ns, int64_t at_ns, pid_t pid)
{
	struct life_event e = carry_event(d, LIFE_STARTED, job);

	e.now_ns = now_ns;
	e.at_ns = at_ns;
	e.pid = pid;
	if (job->step == STEP_SPAWNED && job->waits_for && d->delay_told) {
		log_info("jobs can be started again");
		d->delay_told = false;
	}
	carry_out(d, &e, NULL);
}

int carry_now(struct daemon *d, struct job *job, int64_t now_ns, struct err *err)
{
	double before = clock_monotonic_us();
	struct decision decision;
	int rc = sched_start_now(d->sched, now_ns, job->id, &decision, err);

	if (!rc)
		turn_of(d, job, &decision, now_ns, clock_monotonic_us() - before);
	return rc;
}

int carry_started_by_owner(struct daemon *d, struct job *job, struct err *err)
{
	int64_t now_ns = daemon_now_ns(d);
	int rc = 0;

	if (job->step == STEP_READY)
		sched_owner_started(d->sched, now_ns, job->id, NULL);
	else
		rc = carry_now(d, job, now_ns, err);
	if (rc)
		return rc;
	inputs_add(d, INPUT_OWNER, now_ns, job, NAN, NULL);
	daemon_changed(d);
	started(d, job, now_ns, now_ns, 0);
	return 0;
}

void carry_progress(struct daemon *d, struct job *job, double done, const struct life_progress *p)
{
	struct life_event e = carry_event(d, LIFE_PROGRESS, job);

	inputs_progress(d, job, e.now_ns, done, p);
	if (done >= 0.0 && done <= 1.0)
		sched_progress(d->sched, e.now_ns, job->id, done, NULL);
	e.progress = p;
	if (p && p->epoch >= 1.0 && life_may_stop_early(job))
		e.stop_after = sched_should_stop(d->sched, e.now_ns, job->id, (uint32_t)p->epoch,
						 (uint32_t)p->epochs);
	if (p && p->epoch >= 1.0 && !e.stop_after && life_may_stop_early(job)) {
		e.stop_after = sched_gives_back(d->sched, e.now_ns, job->id, (uint32_t)p->epoch,
						(uint32_t)p->epochs);
		e.gives_back = e.stop_after;
	}
	carry_out(d, &e, NULL);
	give_up_in_time(d, job);
}

void carry_ended(struct daemon *d, struct job *job, const struct exec_outcome *o)
{
	struct life_event e = carry_event(d, LIFE_ENDED, job);
	double run_s = life_run_s(job, o, e.now_ns);

	e.outcome = o;
	if (!isnan(run_s)) {
		e.foreseen_s = sched_foreseen_s(d->sched, e.now_ns, job->id, run_s);
		sched_met(d->sched, e.now_ns, job->id, &d->met);
	}
	carry_out(d, &e, NULL);
	d->met.kind = 0;
}

double carry_lag_s(const struct daemon *d)
{
	if (d->params.played && d->params.played->lag_s > 0.0)
		return d->params.played->lag_s;
	return cluster_known(d) ? cluster_lag_s(d) : start_lag_most_s(&d->lag, LAG_PERCENT, FIRST_LAG_S);
}

void carry_lag(struct daemon *d)
{
	double lag_s = carry_lag_s(d);

	inputs_lag(d, lag_s);
	sched_set_lag(d->sched, lag_s, NULL);
}

/* It has begun, and its row still says when its turn was; or an earlier daemon saw it start. */
static void note_lag(struct daemon *d, const struct job *job, int64_t at_ns)
{
	double lag_s = (double)(at_ns - job->row.started_ns) / 1e9;

	if (job->step == STEP_AT_ENGINE)
		cluster_began(d, lag_s);
	else if (job->step == STEP_SPAWNED && !job->waits_for && lag_s > 0.0)
		start_lag_add(&d->lag, lag_s);
	carry_lag(d);
}

static void on_started(void *owner, uint64_t id, int64_t at_ns, pid_t pid)
{
	struct daemon *d = owner;
	struct job *job = jobs_find(&d->jobs, id);
	int64_t now_ns = daemon_now_ns(d);

	if (!job)
		return;
	inputs_add(d, INPUT_STARTED, now_ns, job, (double)(at_ns - now_ns) / 1e9, NULL);
	note_lag(d, job, at_ns);
	started(d, job, now_ns, at_ns, pid);
}

/* It has its slots, and an engine has it: nothing of this daemon is in its way. */
static void on_waits(void *owner, uint64_t id, const char *why)
{
	struct daemon *d = owner;
	struct job *job = jobs_find(&d->jobs, id);
	struct life_event e = carry_event(d, LIFE_WAITS, job);

	e.text = why;
	if (job)
		carry_out(d, &e, NULL);
}

static void on_delayed(void *owner, uint64_t id, const char *why)
{
	struct daemon *d = owner;
	struct job *job = jobs_find(&d->jobs, id);

	struct life_event e = carry_event(d, LIFE_DELAYED, job);

	e.text = why;
	if (job)
		carry_out(d, &e, NULL);
}

static void on_progress(void *owner, const struct exec_progress *p)
{
	struct daemon *d = owner;
	struct job *job = jobs_find(&d->jobs, p->id);
	struct life_progress is = {
		.epoch = p->epoch, .epochs = p->epochs, .accuracy = p->accuracy, .run_s = p->elapsed_s
	};

	if (job)
		carry_progress(d, job, p->epoch / p->epochs, &is);
}

static void on_finished(void *owner, const struct exec_outcome *o)
{
	struct daemon *d = owner;
	struct job *job = jobs_find(&d->jobs, o->id);

	if (job && job_state_live(job->row.state)) {
		demand_left(&d->demand, job->pid, o->cpu_s);
		carry_ended(d, job, o);
	}
}

static int64_t on_moment(void *owner, int64_t boot_ns)
{
	const struct daemon *d = owner;

	return boot_ns + d->clock_offset_ns;
}

const struct executor_sink carry_sink = {
	.moment = on_moment,
	.started = on_started,
	.delayed = on_delayed,
	.waits = on_waits,
	.cluster = cluster_told,
	.progress = on_progress,
	.finished = on_finished,
};
