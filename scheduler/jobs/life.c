/* The life of a job, event by event. See life.h for the picture and for what always holds. */
#include "scheduler/jobs/life.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/core/outcome.h"
#include "scheduler/process/other_load.h"

/* An estimate is stored again when its end has moved by this share of the time that is left, and by a
 * second. */
#define MOVED_SHARE 0.05
#define MOVED_S 1.0

static struct life_action *act(struct life_actions *out, enum life_action_kind kind, struct job *job)
{
	assert(out->n < LIFE_MAX_ACTIONS);
	out->item[out->n] = (struct life_action){ .kind = kind, .job = job };
	return &out->item[out->n++];
}

static void tell(struct life_actions *out, const char *what, struct job *job)
{
	act(out, LIFE_TELL, job)->what = what;
}

bool life_advised(const struct job *job)
{
	return !strcmp(job->row.mode, "advise");
}

bool life_stops(const struct job *job)
{
	return job->step >= STEP_EARLY_AWAITS;
}

static bool stops_early(const struct job *job)
{
	return job->step == STEP_EARLY_AWAITS || job->step == STEP_EARLY;
}

/* By request, or because it has no chance. */
static bool cancelling(const struct job *job)
{
	return job->step == STEP_CANCELLING || job->step == STEP_GIVEN_UP;
}

/* ---- the load that a job meets: mean number of jobs and of processes beside it ---- */

static void load_advance(struct life *l, int64_t now_ns)
{
	double span_s = (double)(now_ns - l->load_since_ns) / 1e9;

	l->jobs_integral_s += span_s * (double)l->load_jobs;
	l->processes_integral_s += span_s * (double)l->load_processes;
	l->load_since_ns = now_ns;
}

/* A job of an engine beside the machine meets none of the machine's, and they do not meet it. */
static bool on_machine(const struct job *job)
{
	return !job->apart || life_advised(job);
}

static void load_enters(struct life *l, struct job *job, int64_t now_ns)
{
	load_advance(l, now_ns);
	if (on_machine(job)) {
		l->load_jobs++;
		l->load_processes += job->row.cpus;
	}
	job->counted_ns = now_ns;
	job->jobs_before_s = l->jobs_integral_s;
	job->processes_before_s = l->processes_integral_s;
	job->other_before_s = l->other_sum_s;
	job->other_span_before_s = l->other_span_s;
}

/* The mean over the run of the job; for a short one without a measurement, what is seen now. */
static double other_beside(const struct life *l, const struct job *job)
{
	double span_s = l->other_span_s - job->other_span_before_s;
	double mean = span_s > 0.0 ? (l->other_sum_s - job->other_before_s) / span_s : l->other_load;

	return isnan(l->other_load) ? NAN : mean < OTHER_LOAD_LEAST ? 0.0 : mean;
}

static void load_leaves(struct life *l, struct job *job, int64_t now_ns)
{
	load_advance(l, now_ns);
	if (on_machine(job)) {
		l->load_jobs--;
		l->load_processes -= job->row.cpus;
	}
}

/* ---- submitted ---- */

static const struct candidate *chosen(const struct decision *d)
{
	return d && d->chosen >= 0 ? &d->candidate[d->chosen] : NULL;
}

static double rate_of(const struct job *job, const struct candidate *c)
{
	return job->type ? job_type_lr(job->type, c->decision) : NAN;
}

/* The record has them whether they were chosen or given. */
static void name_epochs(struct job *job)
{
	if (isnan(job->row.epochs))
		job->row.epochs = job_epochs_given(job);
}

/* What the scheduler said of it, into its row. */
static void take_verdict(const struct life_event *e)
{
	struct job_record *r = &e->job->row;
	const struct candidate *c = chosen(e->decision);
	char text[256];

	r->verdict = job_verdict_of(e->verdict);
	if (e->verdict == SCHED_REJECTED) {
		r->state = JOB_REJECTED;
		r->ended_ns = r->submitted_ns;
		life_why_rejected(r, e->decision, text, sizeof text);
		job_set_reason(e->job, text);
	} else if (c) {
		record_take_promise(r, c, rate_of(e->job, c));
		name_epochs(e->job);
	}
}

static void count_verdict(const struct life_event *e, struct life_actions *out)
{
	struct life_action *a = act(out, LIFE_COUNT_VERDICT, e->job);

	a->verdict = e->verdict;
	a->decision = e->decision;
}

static void add_decision(const struct life_event *e, struct life_actions *out)
{
	const struct candidate *c = chosen(e->decision);
	struct life_action *a = act(out, LIFE_ADD_DECISION, e->job);

	a->what = "arrival";
	a->text = e->text;
	if (!c || e->verdict == SCHED_REJECTED || isnan(c->time_s))
		return;
	a = act(out, LIFE_ADD_ESTIMATE, e->job);
	a->what = "arrival";
	a->estimate = (struct sched_estimate){ .start_s = c->wait_s,
					       .end_s = c->wait_s + c->time_s,
					       .end_low_s = NAN,
					       .end_high_s = c->wait_upper_s + c->upper_s };
}

static int submitted(struct life *l, const struct life_event *e, struct life_actions *out, struct err *err)
{
	struct job *job = e->job;
	struct job_record *r = &job->row;
	int rc;

	r->state = JOB_QUEUED;
	if (e->waits)
		r->verdict = VERDICT_WAITING;
	else
		take_verdict(e);
	rc = jobs_add(l->jobs, job, err);
	if (rc)
		return rc;
	act(out, LIFE_ADD_ROW, job);
	if (!e->waits)
		add_decision(e, out);
	/* Without memory for the key a retry makes a second job, as it does without a key. */
	if (job->key)
		jobs_key_add(l->jobs, r->uid, job->key, job->id, NULL);
	if (e->waits)
		act(out, LIFE_ADMIT, job);
	else
		count_verdict(e, out);
	if (r->state == JOB_REJECTED)
		job_drop_live_parts(job);
	tell(out, r->state == JOB_REJECTED ? "rejected" : "submitted", job);
	return 0;
}

/* The scheduler has it (again). Of one that waited this is its arrival; one that failed keeps its verdict. */
static void admitted(struct life *l, const struct life_event *e, struct life_actions *out)
{
	struct job *job = e->job;
	struct job_record *r = &job->row;

	if (r->state != JOB_QUEUED || r->verdict != VERDICT_WAITING)
		return;
	r->submitted_ns = e->now_ns;
	take_verdict(e);
	if (r->state == JOB_REJECTED) {
		r->state = JOB_QUEUED; /* until the lists know */
		jobs_set_state(l->jobs, job, JOB_REJECTED);
	}
	act(out, LIFE_UPDATE_ROW, job);
	add_decision(e, out);
	count_verdict(e, out);
	tell(out, r->state == JOB_REJECTED ? "rejected" : "admitted", job);
	if (r->state == JOB_REJECTED)
		act(out, LIFE_CLOSE, job);
}

void life_take_back(struct life *l, struct job *job)
{
	if (job->key)
		jobs_key_forget_newest(l->jobs, job->id);
	jobs_take_out(l->jobs, job);
}

/* ---- started ---- */

static void save(struct life_actions *out, struct job *job)
{
	act(out, LIFE_UPDATE_ROW, job);
}

/* What was saved is on its way to the disk: DURABLE says that it is there. */
static void await(struct life_actions *out, struct job *job)
{
	job->awaits++;
	act(out, LIFE_AWAIT, job);
}

/* It is this job's turn: `decision` has its batch. */
static void turn(struct life *l, const struct life_event *e, struct life_actions *out)
{
	const struct candidate *c = chosen(e->decision);
	struct job *job = e->job;
	struct life_action *a;

	if (c)
		record_take_candidate(&job->row, c, rate_of(job, c));
	name_epochs(job);
	job->row.policy = e->policy;
	job->row.model = e->model;
	job_set_devices(job, e->devices); /* without memory for the text it runs and sees none */
	load_enters(l, job, e->now_ns);
	a = act(out, LIFE_ADD_DECISION, job);
	a->what = "start";
	a->text = e->text;
	if (life_advised(job)) {
		free(job->decision_text);
		job->decision_text = e->text ? mem_strdup(e->text)
					     : NULL; /* its owner gets it at the start */
		job->step = STEP_READY;
		job->ready_ns = e->now_ns;
	} else {
		job->row.started_ns = e->now_ns;
		jobs_set_state(l->jobs, job, JOB_RUNNING);
		job->step = STEP_STARTING;
		save(out, job);
	}
	await(out, job);
}

static void spawn(struct job *job, struct life_actions *out)
{
	job->step = STEP_SPAWNED;
	act(out, LIFE_SPAWN, job);
}

static void on_disk(struct job *job, struct life_actions *out)
{
	bool waits = job->step == STEP_STARTING || job->step == STEP_EARLY_AWAITS || job->steering.awaits;

	if (waits && job->unsaved) { /* the store has refused the row */
		save(out, job);
		await(out, job);
	} else if (job->step == STEP_STARTING) {
		spawn(job, out);
	} else if (job->step == STEP_EARLY_AWAITS) {
		job->step = STEP_EARLY;
		act(out, LIFE_STOP, job);
	} else if (job->step == STEP_READY) {
		tell(out, "ready", job);
	}
}

/* Of two that are on their way, the first does not say that the second is there. */
static void durable(struct job *job, struct life_actions *out)
{
	if (job->awaits)
		job->awaits--;
	if (job->awaits)
		return;
	on_disk(job, out);
	if (job->steering.awaits && !job->awaits) {
		job->steering.awaits = false;
		act(out, LIFE_ANSWER, job);
	}
}

static void started(struct life *l, const struct life_event *e, struct life_actions *out)
{
	struct job *job = e->job;

	if (job->row.state != JOB_RUNNING && job->step != STEP_READY)
		return;
	if (job->step == STEP_READY)
		jobs_set_state(l->jobs, job, JOB_RUNNING);
	if (!life_stops(job))
		job->step = STEP_BEGUN;
	job_set_waits(job, NULL);
	job->row.started_ns = e->at_ns;
	job->pid = e->pid;
	save(out, job);
	act(out, LIFE_IDLE, job)->idle = false;
	act(out, LIFE_COUNT_WAIT, job)->time_s = (double)(e->at_ns - job->row.submitted_ns) / 1e9;
	act(out, LIFE_ESTIMATE, job)->what = "start";
	tell(out, "started", job);
}

/* ---- ended ---- */

static bool never_ran(const struct job *job, const struct exec_outcome *o)
{
	return job->row.state != JOB_RUNNING || (o->exit_code < 0 && !o->started_ns && !life_advised(job));
}

static void take_times(const struct job *job, const struct exec_outcome *o, int64_t now_ns,
		       int64_t *out_started_ns, int64_t *out_ended_ns)
{
	*out_started_ns = never_ran(job, o) ? 0 : o->started_ns ? o->started_ns : job->row.started_ns;
	*out_ended_ns = o->ended_ns ? o->ended_ns : now_ns;
}

double life_run_s(const struct job *job, const struct exec_outcome *o, int64_t now_ns)
{
	int64_t started_ns, ended_ns;

	take_times(job, o, now_ns, &started_ns, &ended_ns);
	return started_ns ? (double)(ended_ns - started_ns) / 1e9 : NAN;
}

struct exec_outcome life_outcome(uint64_t id, bool lost, const char *reason)
{
	struct exec_outcome o = { .id = id,
				  .lost = lost,
				  .exit_code = -1,
				  .run_s = NAN,
				  .accuracy = NAN,
				  .max_rss_mb = NAN,
				  .cpu_s = NAN };

	snprintf(o.reason, sizeof o.reason, "%s", reason);
	return o;
}

/* Rounded to a thousandth: more of a mean load is noise. */
static double thousandth(double v)
{
	return round(v * 1000.0) / 1000.0;
}

/* The row of the table of observations that the run makes, in l->value. Returns how many values it has. */
static size_t observation(struct life *l, const struct job *job, double run_s)
{
	const struct job_type *t = job->type;
	bool gpus = job->row.gpus > 0; /* unless a parameter of the type is called so */
	/* Means over the time that was counted, which is longer than the run: it has the start and the end of
	 * the supervisor in it. A job that was alone met one job. */
	double span_s = fmax((double)(l->load_since_ns - job->counted_ns) / 1e9, 1e-9);
	double njobs = fmax(1.0, (l->jobs_integral_s - job->jobs_before_s) / span_s);
	double processes = fmax(job->row.cpus, (l->processes_integral_s - job->processes_before_s) / span_s);
	bool lr_is_param = false;
	const char *told;
	size_t n = 0;

	if (!on_machine(job)) {
		njobs = 1.0;
		processes = job->row.cpus;
	}

	_Static_assert(JOB_TYPE_MAX_PARAMS + 9 <= OBSERVED_MAX, "room for all columns");
	for (size_t i = 0; t && i < t->n_params; i++) {
		const char *name = t->param[i].name;
		double number = job->bound->params.number[i];

		gpus &= strcmp(name, "gpus") != 0;
		if (!job->bound->params.value[i] || t->param[i].free)
			continue;
		if (!strcmp(name, "lr")) {
			if (!isnan(job->row.lr))
				continue; /* a rule has set it */
			lr_is_param = true;
		}
		if (!isnan(job->row.epochs) && t->epochs_param && !strcmp(name, t->epochs_param))
			number = job->row.epochs;
		l->value[n++] =
			(struct observed){ name, isnan(number) ? job->bound->params.value[i] : NULL, number };
	}
	l->value[n++] = (struct observed){ "cpus", NULL, job->row.cpus };
	if (gpus)
		l->value[n++] = (struct observed){ "gpus", NULL, job->row.gpus };
	l->value[n++] = (struct observed){ "njobs", NULL, thousandth(njobs) };
	l->value[n++] = (struct observed){ "batch", NULL, job->row.batch };
	l->value[n++] = (struct observed){ "processes", NULL, thousandth(processes) };
	if (!lr_is_param)
		l->value[n++] = (struct observed){ "lr", NULL, job->row.lr };
	if (!isnan(l->other_load))
		l->value[n++] =
			(struct observed){ SCHEMA_OTHER_COLUMN, NULL, thousandth(other_beside(l, job)) };
	told = job->told && t && t->epochs_param ? told_epochs_text(job->told, job->epochs, run_s) : NULL;
	if (told)
		l->value[n++] = (struct observed){ EPOCHS_TOLD, told, NAN };
	return n;
}

static enum slo_outcome slo_outcome(const struct job *job, enum job_state state)
{
	double response_s = (double)(job->row.ended_ns - job->row.submitted_ns) / 1e9;

	if (isnan(job->row.slo_s) || (state == JOB_CANCELLED && job->step != STEP_GIVEN_UP))
		return SLO_NONE;
	return outcome_met(state == JOB_DONE, response_s, job->row.slo_s) ? SLO_MET : SLO_MISSED;
}

static enum job_state state_after(const struct job *job, const struct exec_outcome *o)
{
	if (stops_early(job) && !o->lost) /* it did as it was told, if it left a result */
		return isnan(o->accuracy) ? JOB_FAILED : JOB_DONE;
	if (job->step == STEP_GIVEN_UP && !o->stopped && !o->lost && o->exit_code == 0)
		return JOB_DONE; /* it has ended before the word to stop came */
	/* o->stopped: by a daemon that died before it could write that down */
	if (cancelling(job) || o->stopped)
		return JOB_CANCELLED;
	if (o->lost)
		return JOB_LOST;
	return o->exit_code == 0 && !o->timed_out ? JOB_DONE : JOB_FAILED;
}

/* A run that failed, and may be repeated: the job waits again, under its number. Its limit goes on from
 * its arrival. */
static bool again(struct life *l, struct job *job, const struct exec_outcome *o, enum job_state state,
		  int64_t now_ns, struct life_actions *out)
{
	struct job_record *r = &job->row;
	char why[200];

	if (state != JOB_FAILED || r->state != JOB_RUNNING || r->attempt >= r->retry || stops_early(job) ||
	    life_advised(job))
		return false;
	load_leaves(l, job, now_ns);
	if (o->reason[0])
		snprintf(why, sizeof why, "attempt %d of %d failed: %.120s", r->attempt + 1, r->retry + 1,
			 o->reason);
	else
		snprintf(why, sizeof why, "attempt %d of %d failed: exit code %d", r->attempt + 1,
			 r->retry + 1, o->exit_code);
	job_set_reason(job, why);
	r->attempt++;
	if (job->identity)
		job_identity_next(job->identity);
	r->started_ns = 0;
	job_set_devices(job, NULL);
	job->step = STEP_NONE;
	job_set_waits(job, NULL);
	job->pid = 0;
	job->epoch = job->epochs = job->epoch_accuracy = NAN;
	job->curve = (struct own_curve){ 0 };
	job_steered_forget(job);
	free(job->told);
	job->told = NULL;
	jobs_set_state(l->jobs, job, JOB_QUEUED);
	save(out, job);
	act(out, LIFE_FORGET, job);
	act(out, LIFE_FAILED, job)->outcome = o;
	act(out, LIFE_ADMIT, job);
	tell(out, "retrying", job);
	return true;
}

static bool gave_back(const struct job *job)
{
	return stops_early(job) && job->row.reason && !strcmp(job->row.reason, LIFE_GAVE_BACK);
}

static void ended(struct life *l, struct job *job, const struct exec_outcome *o, double foreseen_s,
		  int64_t now_ns, struct life_actions *out)
{
	enum job_state state = state_after(job, o);
	bool given_up = state == JOB_CANCELLED && job->step == STEP_GIVEN_UP;
	struct job_record *r = &job->row;
	/* A run with several batches is an observation of none of them. */
	bool learn = state == JOB_DONE && !stops_early(job) && !o->rounded && !r->steered;
	int64_t started_ns;

	if (again(l, job, o, state, now_ns, out))
		return;
	take_times(job, o, now_ns, &started_ns, &r->ended_ns);
	r->started_ns = started_ns;
	r->exit_code = o->exit_code;
	r->exit_signal = o->exit_signal;
	r->accuracy = o->accuracy;
	r->max_rss_mb = o->max_rss_mb;
	r->cpu_s = o->cpu_s;
	if (!(state == JOB_DONE && gave_back(job)))
		job_set_reason(job, given_up ? LIFE_NO_CHANCE : o->reason[0] ? o->reason : NULL);
	r->slo_outcome = slo_outcome(job, state);
	r->foreseen_s = started_ns ? foreseen_s : NAN;
	if (job->row.state == JOB_RUNNING || job->step == STEP_READY)
		load_leaves(l, job, now_ns);
	job->step = STEP_NONE;
	job->pid = 0;
	if (learn && started_ns && r->ended_ns > started_ns) {
		struct life_action *a = act(out, LIFE_ADD_OBSERVATION, job);

		a->time_s = (double)(r->ended_ns - started_ns) / 1e9;
		a->value = l->value;
		a->n_values = observation(l, job, a->time_s);
	}
	jobs_set_state(l->jobs, job, state);
	save(out, job);
	act(out, LIFE_FORGET, job);
	act(out, LIFE_COUNT_ENDED, job);
	if (state == JOB_FAILED && (o->exit_code >= 0 || o->exit_signal || o->timed_out)) /* it ran */
		act(out, LIFE_FAILED, job)->outcome = o;
	if (learn)
		act(out, LIFE_LEARN, job);
	tell(out, state == JOB_CANCELLED ? "cancelled" : "finished", job);
	act(out, LIFE_CLOSE, job);
}

static void ended_because(struct life *l, struct job *job, bool lost, const char *why, int64_t now_ns,
			  struct life_actions *out)
{
	struct exec_outcome o = life_outcome(job->id, lost, why);

	ended(l, job, &o, NAN, now_ns, out);
}

void life_close(struct life *l, struct job *job, size_t max_ended)
{
	job_drop_live_parts(job);
	jobs_trim(l->jobs, max_ended);
}

/* as: STEP_CANCELLING or STEP_GIVEN_UP */
static void cancel(struct life *l, struct job *job, enum job_step as, const char *why, int64_t now_ns,
		   struct life_actions *out)
{
	bool at_executor = job->step >= STEP_SPAWNED && !life_advised(job);

	if (job->step == STEP_READY)
		load_leaves(l, job, now_ns);
	job->step = as;
	if (!at_executor) {
		ended_because(l, job, false, why ? why : LIFE_CANCELLED, now_ns, out);
		return;
	}
	job_set_reason(job, as == STEP_GIVEN_UP ? LIFE_NO_CHANCE : LIFE_CANCELLED);
	save(out, job);
	act(out, LIFE_STOP, job);
}

/* It has no chance any more: it leaves the queue, or is stopped. The owner of an advised job decides that. */
static void hopeless(struct life *l, struct job *job, int64_t now_ns, struct life_actions *out)
{
	if (job->row.verdict != VERDICT_CHANCE || life_stops(job) ||
	    (life_advised(job) && job->step != STEP_NONE))
		return;
	if (job->row.state == JOB_RUNNING)
		tell(out, "stopping", job);
	cancel(l, job, STEP_GIVEN_UP, NULL, now_ns, out);
}

static void stop_failed(struct life *l, const struct life_event *e, struct life_actions *out)
{
	struct job *job = e->job;

	if (e->gone) { /* it ended a moment ago, or never began */
		if (cancelling(job))
			ended_because(l, job, false, LIFE_CANCELLED, e->now_ns, out);
		return;
	}
	if (cancelling(job)) {
		job->step = isnan(job->row.stopped_epoch) ? STEP_BEGUN : STEP_EARLY;
		job_set_reason(job, NULL);
	} else {
		if (gave_back(job))
			job_set_reason(job, NULL);
		job->step = STEP_BEGUN;
		job->row.stopped_epoch = NAN;
	}
	save(out, job);
}

/* ---- under way ---- */

bool life_may_stop_early(const struct job *job)
{
	return job->row.may_stop && job->row.state == JOB_RUNNING && !life_stops(job);
}

/* A job that will be late, and may be stopped, ends after the last epoch that is in time: its result is
 * somewhat worse, but it is there. So does one whose time is worth more to others. */
static void progress(const struct life_event *e, struct life_actions *out)
{
	struct job *job = e->job;

	if (job->row.state != JOB_RUNNING)
		return;
	if (e->progress) {
		job->epoch = e->progress->epoch;
		job->epochs = e->progress->epochs;
		job->epoch_accuracy = e->progress->accuracy;
		own_curve_add(&job->curve, job->epoch, job->epoch_accuracy);
		if (!job->told)
			job->told = mem_calloc(1, sizeof *job->told);
		if (job->told)
			told_epochs_add(job->told, job->epoch, e->progress->run_s, job->epoch_accuracy);
		if (!(job->epochs > 0.0 && job->epoch >= 0.0 && job->epoch <= job->epochs))
			return; /* it says nothing about when the job will end */
	}
	act(out, LIFE_ESTIMATE, job)->what = "progress";
	tell(out, "progress", job);
	if (!e->stop_after || !(e->stop_after <= job->epoch) || job->epoch >= job->epochs ||
	    !life_may_stop_early(job))
		return;
	job->step = STEP_EARLY_AWAITS;
	job->row.stopped_epoch = job->epoch;
	if (e->gives_back)
		job_set_reason(job, LIFE_GAVE_BACK);
	save(out, job);
	await(out, job);
	tell(out, "stopping", job);
}

bool life_steers(const struct job *job)
{
	return job->type && job->type->steer && job->row.state == JOB_RUNNING && !life_stops(job) &&
	       !job->steering.deaf && job->steering.changes < JOB_STEERED_MOST;
}

/* It has asked. What is new to it is on disk before it hears of it. */
static void steered(const struct life_event *e, struct life_actions *out)
{
	struct job *job = e->job;
	struct job_steering *s = &job->steering;

	if (job->row.state != JOB_RUNNING || life_stops(job) ||
	    (e->changed && (!life_steers(job) || job_steered_add(job, e->change))))
		return;
	s->deaf |= e->changed && !strcmp(e->change->why, JOB_NOT_FOLLOWED);
	s->told.after = e->change->next.after;
	job_set_steer_kept(job, e->kept); /* without memory a restart goes on from an older one */
	save(out, job);
	if (e->changed) {
		s->awaits = true;
		await(out, job);
		act(out, LIFE_ESTIMATE, job)->what = "steered";
		tell(out, "steered", job);
	} else if (!s->awaits) {
		act(out, LIFE_ANSWER, job);
	}
}

/* Of the jobs that run without a promise, the one that came last. */
static void stop_youngest(struct life *l, int64_t now_ns, struct life_actions *out)
{
	for (struct job *job = l->jobs->live.last; job; job = job->before) {
		if (job->row.state != JOB_RUNNING || job->row.verdict == VERDICT_PROMISED ||
		    cancelling(job) || job->row.priority > 0)
			continue;
		tell(out, "stopping", job);
		cancel(l, job, STEP_CANCELLING, NULL, now_ns, out);
		return;
	}
}

static void estimated(struct life *l, const struct life_event *e, struct life_actions *out)
{
	struct job *job = e->job;
	double end_s = (double)e->now_ns / 1e9 + e->estimate.end_s;
	double moved_s = fabs(end_s - job->estimate_told_s);
	double left_s = job->row.slo_s - (double)(e->now_ns - job->row.submitted_ns) / 1e9;
	bool first_time = !job->late_told;

	if (e->text || (moved_s > MOVED_S && moved_s > MOVED_SHARE * e->estimate.end_s)) {
		struct life_action *a = act(out, LIFE_ADD_ESTIMATE, job);

		a->what = e->text ? e->text : "moved";
		a->estimate = e->estimate;
		job->estimate_told_s = end_s;
	}
	if (!e->estimate.late)
		return;
	job->late_told = true;
	if (first_time)
		tell(out, "late", job);
	if (first_time && e->on_late != ON_LATE_NOTHING)
		act(out, LIFE_NOTIFY, job)->time_s = e->estimate.end_s - left_s;
	if (e->on_late == ON_LATE_STOP_BEST_EFFORT && e->estimate.sure) /* nobody is stopped on an alarm */
		stop_youngest(l, e->now_ns, out);
}

static void tick(struct life *l, const struct life_event *e, struct life_actions *out)
{
	char why[80];

	if (e->job->step != STEP_READY || e->job->ready_ns > e->now_ns - (int64_t)(e->advise_timeout_s * 1e9))
		return;
	snprintf(why, sizeof why, "its owner was told to start it %.0f s ago and did not",
		 e->advise_timeout_s);
	ended_because(l, e->job, true, why, e->now_ns, out);
}

/* ---- not begun yet ---- */

static void delayed(struct life *l, const struct life_event *e, struct life_actions *out)
{
	struct job *job = e->job;

	if (job->row.state != JOB_RUNNING)
		return;
	if (cancelling(job)) { /* it was with its executor when it was told to stop, and is not any more */
		ended_because(l, job, false, LIFE_CANCELLED, e->now_ns, out);
		return;
	}
	job->step = STEP_DELAYED;
	job_set_waits(job, e->text);
	act(out, LIFE_IDLE, job)->idle = true;
	act(out, LIFE_RETRY, job);
}

static void try_again(struct job *job, struct life_actions *out)
{
	if (job->step != STEP_DELAYED)
		return;
	job->step = STEP_STARTING;
	on_disk(job, out); /* its row is on disk, unless the store has failed since */
}

/* A job that runs goes on, whether its engine is there or not. */
static void waits(const struct life_event *e, struct life_actions *out)
{
	struct job *job = e->job;

	if (job->step != STEP_SPAWNED && job->step != STEP_AT_ENGINE)
		return;
	job->step = STEP_AT_ENGINE;
	job_set_waits(job, e->text);
	act(out, LIFE_IDLE, job)->idle = true;
}

/* ---- after a restart ---- */

static int restored(struct life *l, struct job *job, struct life_actions *out, struct err *err)
{
	const char *reason = job->row.reason ? job->row.reason : "";
	int rc;

	if (job->row.state == JOB_RUNNING)
		job->step = !strcmp(reason, LIFE_NO_CHANCE)   ? STEP_GIVEN_UP
			    : !strcmp(reason, LIFE_CANCELLED) ? STEP_CANCELLING
			    : !isnan(job->row.stopped_epoch)  ? STEP_EARLY
			    : life_advised(job)               ? STEP_BEGUN
							      : STEP_SPAWNED;
	if (job->row.state == JOB_QUEUED) /* it gets others at its next turn */
		job_set_devices(job, NULL);
	job_steered_restore(job);
	rc = jobs_add(l->jobs, job, err);
	if (!rc && !job_state_live(job->row.state) && job->row.state != JOB_REJECTED)
		act(out, LIFE_COUNT_ENDED, job);
	return rc;
}

void life_back(const struct job *job, struct sched_restored *out)
{
	const struct job_record *r = &job->row;

	*out = (struct sched_restored){
		.submitted_ns = r->submitted_ns,
		.promised = r->verdict == VERDICT_PROMISED,
		.by_chance = r->verdict == VERDICT_CHANCE,
		.running = r->state == JOB_RUNNING,
		.started_ns = r->started_ns,
		.taken = record_candidate(r),
		.steer = r->steer_kept,
	};
	if (!job->n_epoch_choices) /* the record has them, too, where there was nothing to choose */
		out->taken.epochs = NAN;
}

static void resumed(struct life *l, const struct life_event *e, struct life_actions *out)
{
	struct job *job = e->job;
	bool running = job->row.state == JOB_RUNNING;

	if (running)
		load_enters(l, job, e->now_ns);
	if (e->text)
		ended_because(l, job, running, e->text, e->now_ns, out);
	else if (running)
		act(out, LIFE_ADOPT, job);
	else if (job->row.verdict == VERDICT_WAITING)
		act(out, LIFE_ADMIT, job);
}

/* The daemon that died may have written that the job is to stop, or how it is to go on, without having told
 * it. */
static void adopted(struct job *job, struct life_actions *out)
{
	if (life_stops(job) && !life_advised(job))
		act(out, LIFE_STOP, job);
	else if (!isnan(job->steering.told.batch))
		act(out, LIFE_ANSWER, job);
}

static void unstarted(struct life *l, const struct life_event *e, struct life_actions *out)
{
	if (cancelling(e->job))
		ended_because(l, e->job, false, LIFE_CANCELLED, e->now_ns, out);
	else
		spawn(e->job, out); /* the row on disk says "running" already */
}

/* ---- all events ---- */

int life_event(struct life *l, const struct life_event *e, struct life_actions *out, struct err *err)
{
	struct job *job = e->job;

	if (e->kind == LIFE_SUBMITTED)
		return submitted(l, e, out, err);
	if (e->kind == LIFE_RESTORED)
		return restored(l, job, out, err);
	if (e->kind == LIFE_REPAIRED) { /* of an ended job, too */
		if (job->unsaved)
			save(out, job);
		return 0;
	}
	if (!job_state_live(job->row.state))
		return 0;
	switch (e->kind) {
	case LIFE_ADMITTED: admitted(l, e, out); break;
	case LIFE_TURN: turn(l, e, out); break;
	case LIFE_DURABLE: durable(job, out); break;
	case LIFE_DELAYED: delayed(l, e, out); break;
	case LIFE_TRY_AGAIN: try_again(job, out); break;
	case LIFE_WAITS: waits(e, out); break;
	case LIFE_STARTED: started(l, e, out); break;
	case LIFE_PROGRESS: progress(e, out); break;
	case LIFE_STEERED: steered(e, out); break;
	case LIFE_ESTIMATED: estimated(l, e, out); break;
	case LIFE_ENDED: ended(l, job, e->outcome, e->foreseen_s, e->now_ns, out); break;
	case LIFE_CANCEL: cancel(l, job, STEP_CANCELLING, e->text, e->now_ns, out); break;
	case LIFE_HOPELESS: hopeless(l, job, e->now_ns, out); break;
	case LIFE_STOP_FAILED: stop_failed(l, e, out); break;
	case LIFE_TICK: tick(l, e, out); break;
	case LIFE_RESUMED: resumed(l, e, out); break;
	case LIFE_ADOPTED: adopted(job, out); break;
	case LIFE_UNSTARTED: unstarted(l, e, out); break;
	default: break;
	}
	return 0;
}
