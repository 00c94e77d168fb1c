/* A job from admitted to ended. Each step tells the store, the scheduler, the executor and the watchers, in this
 * order: what is not on disk has not happened. A start is spawned only when the row that says "running" is
 * durable, so that after a crash nothing runs that the store does not know. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "scheduler/core/outcome.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/ops/decision_json.h"

#define TURN_US 1000.0 /* of starts in one turn of the loop: others want to be served */

struct pending_start {
	uint64_t ticket, job;
};

static bool is_advised(const struct job *job)
{
	return !strcmp(job->row.mode, "advise");
}

static void *executor_of(const struct daemon *d, const struct job *job, const struct executor_ops **out_ops)
{
	for (size_t i = 0; executor_all[i]; i++) {
		if (!strcmp(executor_all[i]->name, job->row.mode)) {
			*out_ops = executor_all[i];
			return d->executor[i];
		}
	}
	return NULL;
}

/* ---- the load that a job met: mean number of jobs and of processes beside it ---- */

static void load_advance(struct daemon *d)
{
	int64_t now = daemon_now_ns(d);
	double span = (double)(now - d->load_since_ns) / 1e9;

	d->jobs_integral_s += span * (double)d->load_jobs;
	d->processes_integral_s += span * (double)d->load_processes;
	d->load_since_ns = now;
}

static void load_enters(struct daemon *d, struct job *job)
{
	load_advance(d);
	d->load_jobs++;
	d->load_processes += job->row.cpus;
	job->jobs_before_s = d->jobs_integral_s;
	job->processes_before_s = d->processes_integral_s;
}

static void load_leaves(struct daemon *d, struct job *job)
{
	load_advance(d);
	d->load_jobs--;
	d->load_processes -= job->row.cpus;
}

/* ---- saving ---- */

void life_save(struct daemon *d, struct job *job)
{
	struct err err = { 0 };

	job->unsaved = store_update_job(d->store, &job->row, &err) != 0;
	daemon_changed(d);
}

void life_save_unsaved(struct daemon *d)
{
	struct job_list *list[] = { &d->jobs.live, &d->jobs.ended };

	for (size_t i = 0; i < 2; i++) {
		for (struct job *job = list[i]->first; job; job = job->after) {
			if (job->unsaved)
				life_save(d, job);
		}
	}
}

/* ---- admitted ---- */

int life_admit(struct daemon *d, struct job *job, const struct decision *dec, enum sched_verdict verdict,
	       const char *decision_text, struct err *err)
{
	const struct candidate *c = dec->chosen >= 0 ? &dec->candidate[dec->chosen] : NULL;
	int rc = jobs_add(&d->jobs, job, err);

	if (rc)
		return rc;
	rc = store_add_job(d->store, &job->row, err);
	if (rc) {
		jobs_take_out(&d->jobs, job);
		return rc;
	}
	/* From here on the job is taken; without memory for its history it is as good. */
	store_add_decision(d->store, job->id, job->row.submitted_ns, "arrival", decision_text, NULL);
	if (c && verdict != SCHED_REJECTED && !isnan(c->time_s))
		store_add_estimate(d->store, job->id, job->row.submitted_ns, c->wait_s, c->wait_s + c->time_s,
				   NAN, c->wait_upper_s + c->upper_s, "arrival", NULL);
	/* Without memory for the key the job is as good; a retry would make a second one, as without a key. */
	if (job->key)
		jobs_key_add(&d->jobs, job->row.uid, job->key, job->id, NULL);
	tally_verdict(&d->tally, verdict);
	if (verdict == SCHED_REJECTED)
		job_drop_live_parts(job);
	daemon_changed(d); /* first: what is told must not say why it waits before the turn has looked */
	watch_tell(d, verdict == SCHED_REJECTED ? "rejected" : "submitted", job);
	return 0;
}

/* ---- started ---- */

static void starts_push(struct daemon *d, uint64_t job)
{
	struct start_list *l = &d->starts;

	/* jobs_add() of the same job would have failed before this does: it is the smaller of the two */
	if (mem_grow((void **)&l->item, &l->cap, l->n + 1, sizeof *l->item)) {
		log_error("out of memory: job %llu starts when the daemon is restarted",
			  (unsigned long long)job);
		return;
	}
	l->item[l->n++] = (struct pending_start){ .ticket = daemon_ticket(d), .job = job };
}

static void store_start_decision(struct daemon *d, struct job *job, double took_us)
{
	struct decision_about about = {
		.at_ns = daemon_now_ns(d),
		.when = "start",
		.policy = d->setup->config->policy,
		.model = d->setup->model_name,
		.type = job->type,
		.slo_s = job->row.slo_s - (double)(daemon_now_ns(d) - job->row.submitted_ns) / 1e9,
		.took_us = took_us,
	};
	struct json_writer w;

	strbuf_reset(&d->text);
	json_begin(&w, &d->text, false);
	decision_json(&w, &d->decision, &about);
	store_add_decision(d->store, job->id, about.at_ns, "start", strbuf_text(&d->text), NULL);
	if (is_advised(job)) { /* its owner asks for it when it starts */
		free(job->decision_text);
		job->decision_text = mem_strdup(strbuf_text(&d->text));
	}
}

/* The scheduler says that it is this job's turn; d->decision has its batch. */
static void turn_of(struct daemon *d, struct job *job, double took_us)
{
	if (d->decision.chosen >= 0) {
		const struct candidate *c = &d->decision.candidate[d->decision.chosen];

		record_take_candidate(&job->row, c, job->type ? job_type_lr(job->type, c->decision) : NAN);
	}
	job->row.policy = names_keep(&d->jobs.names, d->setup->config->policy);
	job->row.model = names_keep(&d->jobs.names, d->setup->model_name[0] ? d->setup->model_name : NULL);
	tally_decision(&d->tally, took_us);
	load_enters(d, job);
	store_start_decision(d, job, took_us);
	if (is_advised(job)) {
		job->ready = true; /* its owner is asked to start it */
		job->ready_ns = daemon_now_ns(d);
		daemon_changed(d);
		starts_push(d, job->id);
		return;
	}
	job->row.started_ns = daemon_now_ns(d);
	jobs_set_state(&d->jobs, job, JOB_RUNNING);
	job->starting = true;
	life_save(d, job);
	starts_push(d, job->id);
}

void life_pump(struct daemon *d)
{
	double began = clock_monotonic_us();
	uint64_t id;

	while (!d->draining && !d->store_failed) {
		double before = clock_monotonic_us();
		struct job *job;

		if (before - began > TURN_US) {
			daemon_later(d);
			return;
		}
		if (!sched_next(d->sched, daemon_now_ns(d), &id, &d->decision))
			return;
		job = jobs_find(&d->jobs, id);
		if (job)
			turn_of(d, job, clock_monotonic_us() - before);
	}
}

static int exec_job_of(const struct daemon *d, const struct job *job, char **argv, char *dir, size_t dir_size,
		       struct exec_job *out)
{
	static char accuracy[] = "accuracy", epoch[] = "epoch";
	static const struct job_type gone = { .accuracy_path = accuracy, .epoch_path = epoch };
	const struct config *c = d->setup->config;
	const struct job_type *t = job->type ? job->type : &gone;

	snprintf(dir, dir_size, "%s/jobs/%llu", c->state_dir, (unsigned long long)job->id);
	*out = (struct exec_job){
		.id = job->id,
		.type = t,
		.argv = argv,
		.dir = dir,
		.uid = job->row.uid,
		.gid = job->row.gid,
		.cpus = job->row.cpus,
		.epochs = NAN,
		.kill_grace_s = c->kill_grace_s,
		.max_time_s = t->max_time_s,
		.pin = c->pin,
		.cgroup = c->cgroup,
	};
	for (size_t i = 0; t->epochs_param && i < t->n_params; i++) {
		if (!strcmp(t->param[i].name, t->epochs_param))
			out->epochs = isnan(job->row.epochs) ? job->params.number[i] : job->row.epochs;
	}
	return 0;
}

static int spawn(struct daemon *d, struct job *job, struct err *err)
{
	const struct executor_ops *ops = NULL;
	void *self = executor_of(d, job, &ops);
	char dir[4096], id[24], **argv = NULL;
	struct exec_job e;
	struct job_argv_values v = {
		.job = id,
		.dir = dir,
		.batch = job->row.batch,
		.lr = job->row.lr,
		.epochs = job->row.epochs,
		.cpus = job->row.cpus,
		.seed = d->setup->config->seed + job->id,
	};
	int rc;

	if (!job->type || !ops)
		return err_fail(err, ERR_NOTFOUND, "its type %s is no longer configured", job->row.type);
	snprintf(id, sizeof id, "%llu", (unsigned long long)job->id);
	snprintf(dir, sizeof dir, "%s/jobs/%s", d->setup->config->state_dir, id);
	rc = job_type_argv(job->type, &job->params, &v, &argv, err);
	if (rc)
		return rc;
	exec_job_of(d, job, argv, dir, sizeof dir, &e);
	rc = ops->start(self, &e, err);
	argv_free(argv);
	return rc;
}

static void spawn_or_fail(struct daemon *d, struct job *job)
{
	struct err err = { 0 };
	struct exec_outcome o = { .id = job->id, .exit_code = -1, .run_s = NAN, .accuracy = NAN };

	job->starting = false;
	if (!spawn(d, job, &err))
		return;
	o.max_rss_mb = o.cpu_s = NAN;
	o.ended_ns = daemon_now_ns(d);
	snprintf(o.reason, sizeof o.reason, "could not be started: %.200s", err.text);
	life_ended(d, job, &o);
}

void life_durable(struct daemon *d, uint64_t ticket)
{
	struct start_list *l = &d->starts;
	double began = clock_monotonic_us();
	size_t n = 0;

	/* Ended jobs may push new starts: look at the list anew each time. */
	for (; n < l->n && l->item[n].ticket <= ticket; n++) {
		struct job *job = jobs_find(&d->jobs, l->item[n].job);

		if (n > 0 && clock_monotonic_us() - began > TURN_US) {
			daemon_later(d);
			break;
		}
		if (job && job->starting)
			spawn_or_fail(d, job);
		else if (job && job->ready)
			watch_tell(d, "ready", job);
	}
	if (n > 0) {
		memmove(l->item, l->item + n, (l->n - n) * sizeof *l->item);
		l->n -= n;
	}
}

void life_adopt(struct daemon *d, struct job *job)
{
	const struct executor_ops *ops = NULL;
	void *self = executor_of(d, job, &ops);
	struct exec_outcome o = { .id = job->id, .lost = true, .exit_code = -1 };
	struct err err = { 0 };
	struct exec_job e;
	bool unstarted = false;
	char dir[4096];

	load_enters(d, job);
	if (!ops) {
		err_fail(&err, ERR_ARG, "nothing runs jobs of mode %s", job->row.mode);
	} else {
		exec_job_of(d, job, NULL, dir, sizeof dir, &e);
		if (!ops->adopt(self, &e, &unstarted, &err) && !unstarted)
			return;
	}
	if (unstarted && !job->cancelling) { /* its start is on disk already */
		spawn_or_fail(d, job);
		return;
	}
	o.run_s = o.accuracy = o.max_rss_mb = o.cpu_s = NAN;
	snprintf(o.reason, sizeof o.reason, "%.250s", unstarted ? LIFE_CANCELLED : err.text);
	life_ended(d, job, &o);
}

static void on_started(void *owner, uint64_t id, int64_t at_ns, pid_t pid)
{
	struct daemon *d = owner;
	struct job *job = jobs_find(&d->jobs, id);

	if (!job || job->row.state != JOB_RUNNING)
		return;
	job->row.started_ns = at_ns;
	job->pid = pid;
	life_save(d, job);
	tally_wait(&d->tally, (double)(at_ns - job->row.submitted_ns) / 1e9);
	outlook_store(d, job, "start");
	log_info("job %llu started: pid %d, batch %g, %u cpus", (unsigned long long)id, (int)pid,
		 job->row.batch, job->row.cpus);
	watch_tell(d, "started", job);
}

int life_started_by_owner(struct daemon *d, struct job *job, struct err *err)
{
	double before = clock_monotonic_us();

	if (!job->ready) {
		int rc = sched_start_now(d->sched, daemon_now_ns(d), job->id, &d->decision, err);

		if (rc)
			return rc;
		turn_of(d, job, clock_monotonic_us() - before);
	}
	job->ready = false;
	jobs_set_state(&d->jobs, job, JOB_RUNNING);
	job->row.started_ns = daemon_now_ns(d);
	life_save(d, job);
	tally_wait(&d->tally, (double)(job->row.started_ns - job->row.submitted_ns) / 1e9);
	outlook_store(d, job, "start");
	watch_tell(d, "started", job);
	return 0;
}

/* ---- under way ---- */

void life_progress(struct daemon *d, struct job *job, double done)
{
	if (!sched_progress(d->sched, daemon_now_ns(d), job->id, done, NULL))
		outlook_store(d, job, "progress");
	watch_tell(d, "progress", job);
}

/* A job that will be late, and may be stopped, ends after the last epoch that is in time: a result somewhat worse, but
 * there. */
static void stop_early(struct daemon *d, struct job *job)
{
	const struct executor_ops *ops = NULL;
	void *self = executor_of(d, job, &ops);
	struct err err = { 0 };
	uint32_t after;

	if (!job->row.may_stop || job->stop_told || job->cancelling || !(job->epoch >= 1.0) ||
	    job->epoch >= job->epochs)
		return;
	after = sched_should_stop(d->sched, daemon_now_ns(d), job->id, (uint32_t)job->epoch,
				  (uint32_t)job->epochs);
	if (after == 0 || after > (uint32_t)job->epoch)
		return;
	if (!ops || ops->stop(self, job->id, d->setup->config->kill_grace_s, &err)) {
		log_warn("job %llu could not be stopped early: %s", (unsigned long long)job->id, err.text);
		return;
	}
	job->stop_told = true;
	job->row.stopped_epoch = job->epoch;
	log_info("job %llu would be late: stopped after epoch %g of %g", (unsigned long long)job->id,
		 job->epoch, job->epochs);
	life_save(d, job);
	watch_tell(d, "stopping", job);
}

static void on_progress(void *owner, const struct exec_progress *p)
{
	struct daemon *d = owner;
	struct job *job = jobs_find(&d->jobs, p->id);

	if (!job || job->row.state != JOB_RUNNING)
		return;
	job->epoch = p->epoch;
	job->epochs = p->epochs;
	job->epoch_accuracy = p->accuracy;
	if (p->epochs > 0.0 && p->epoch >= 0.0 && p->epoch <= p->epochs) {
		life_progress(d, job, p->epoch / p->epochs);
		stop_early(d, job);
	}
}

/* ---- ended ---- */

static void put_observation(struct daemon *d, struct job *job, double run_s)
{
	struct json_writer w;

	load_advance(d);
	strbuf_reset(&d->text);
	json_begin(&w, &d->text, false);
	json_open(&w, '{');
	for (size_t i = 0; job->type && i < job->type->n_params; i++) {
		if (!job->params.value[i])
			continue;
		if (!isnan(job->row.epochs) && job->type->epochs_param &&
		    !strcmp(job->type->param[i].name, job->type->epochs_param))
			json_kv_number(&w, job->type->param[i].name, job->row.epochs);
		else if (isnan(job->params.number[i]))
			json_kv_string(&w, job->type->param[i].name, job->params.value[i]);
		else
			json_kv_number(&w, job->type->param[i].name, job->params.number[i]);
	}
	json_kv_int(&w, "cpus", job->row.cpus);
	json_kv_fixed(&w, "njobs", fmax(1.0, (d->jobs_integral_s - job->jobs_before_s) / run_s), 3);
	json_kv_number(&w, "batch", job->row.batch);
	json_kv_fixed(&w, "processes",
		      fmax(job->row.cpus, (d->processes_integral_s - job->processes_before_s) / run_s), 3);
	json_kv_number(&w, "lr", job->row.lr);
	json_close(&w, '}');
	store_add_observation(d->store, job->id, job->row.ended_ns, job->row.type, strbuf_text(&d->text),
			      run_s, job->row.accuracy, NULL);
}

/* Keeping the objective is about the answer being there in time, so a job that failed has missed it. */
static enum slo_outcome slo_outcome(const struct job *job, enum job_state state)
{
	double response_s = (double)(job->row.ended_ns - job->row.submitted_ns) / 1e9;

	if (isnan(job->row.slo_s) || state == JOB_CANCELLED)
		return SLO_NONE;
	return outcome_met(state == JOB_DONE, response_s, job->row.slo_s) ? SLO_MET : SLO_MISSED;
}

static enum job_state state_after(const struct job *job, const struct exec_outcome *o)
{
	if (job->stop_told && !job->cancelling && !o->lost) /* as it was told, if it left a result */
		return isnan(o->accuracy) ? JOB_FAILED : JOB_DONE;
	if (job->cancelling ||
	    o->stopped) /* stopped: by a daemon that died before it could write that down */
		return JOB_CANCELLED;
	if (o->lost)
		return JOB_LOST;
	return o->exit_code == 0 && !o->timed_out ? JOB_DONE : JOB_FAILED;
}

void life_ended(struct daemon *d, struct job *job, const struct exec_outcome *o)
{
	enum job_state state = state_after(job, o), was = job->row.state;
	bool ran = was == JOB_RUNNING || job->ready;
	struct job_record *r = &job->row;
	const struct executor_ops *ops = NULL;
	void *self = executor_of(d, job, &ops);

	if (ops && ops->forget)
		ops->forget(self, job->id);
	if (ran && !job->ready && o->started_ns)
		r->started_ns = o->started_ns;
	r->ended_ns = o->ended_ns ? o->ended_ns : daemon_now_ns(d);
	if (was != JOB_RUNNING || (o->exit_code < 0 && !o->started_ns && !is_advised(job)))
		r->started_ns = 0; /* it never ran */
	r->exit_code = o->exit_code;
	r->exit_signal = o->exit_signal;
	r->accuracy = o->accuracy;
	r->max_rss_mb = o->max_rss_mb;
	r->cpu_s = o->cpu_s;
	job_set_reason(job, o->reason[0] ? o->reason : NULL);
	r->slo_outcome = slo_outcome(job, state);
	if (ran && r->started_ns)
		r->foreseen_s = sched_foreseen_s(d->sched, daemon_now_ns(d), job->id,
						 (double)(r->ended_ns - r->started_ns) / 1e9);
	sched_remove(d->sched, daemon_now_ns(d), job->id, NULL);
	if (ran)
		load_leaves(d, job);
	job->starting = job->ready = false;
	job->pid = 0;
	if (state == JOB_DONE && !job->stop_told && r->started_ns && r->ended_ns > r->started_ns)
		put_observation(d, job, (double)(r->ended_ns - r->started_ns) / 1e9);
	jobs_set_state(&d->jobs, job, state);
	life_save(d, job);
	if (state != JOB_CANCELLED)
		tally_ended(&d->tally, r);
	if (state == JOB_DONE && !job->stop_told)
		learning_ended(d->learning, job);
	log_info("job %llu %s%s%s%s%s", (unsigned long long)job->id, job_state_name[r->state],
		 r->reason ? ": " : "", r->reason ? r->reason : "", r->slo_outcome ? ", objective " : "",
		 r->slo_outcome ? slo_outcome_name[r->slo_outcome] : "");
	watch_tell(d, state == JOB_CANCELLED ? "cancelled" : "finished", job);
	job_drop_live_parts(job);
	jobs_trim(&d->jobs, d->setup->config->max_finished);
}

static void on_finished(void *owner, const struct exec_outcome *o)
{
	struct daemon *d = owner;
	struct job *job = jobs_find(&d->jobs, o->id);

	if (job && job_state_live(job->row.state))
		life_ended(d, job, o);
}

const struct executor_sink life_sink = {
	.started = on_started,
	.progress = on_progress,
	.finished = on_finished,
};

int life_cancel(struct daemon *d, struct job *job, struct err *err)
{
	struct exec_outcome o = { .id = job->id, .exit_code = -1, .run_s = NAN, .accuracy = NAN };
	const struct executor_ops *ops = NULL;
	void *self = executor_of(d, job, &ops);

	job->cancelling = true;
	if (job->row.state == JOB_RUNNING && !job->starting && !is_advised(job) && ops) {
		int rc = ops->stop(self, job->id, d->setup->config->kill_grace_s, err);

		if (!rc) { /* on disk before it is answered: a daemon that comes after us must know it, too */
			job_set_reason(job, LIFE_CANCELLED);
			life_save(d, job);
		}
		if (rc != -ERR_NOTFOUND) /* not there: it ended a moment ago, or never began */
			return rc;
	}
	o.max_rss_mb = o.cpu_s = NAN;
	snprintf(o.reason, sizeof o.reason, "%s", LIFE_CANCELLED);
	life_ended(d, job, &o);
	return 0;
}

void life_expire_advised(struct daemon *d)
{
	int64_t before = daemon_now_ns(d) - (int64_t)(d->setup->config->advise_timeout_s * 1e9);

	for (struct job *job = d->jobs.live.first, *next; job; job = next) {
		struct exec_outcome o = { .id = job->id, .lost = true, .exit_code = -1 };

		next = job->after;
		if (!job->ready || job->ready_ns > before)
			continue;
		o.run_s = o.accuracy = o.max_rss_mb = o.cpu_s = NAN;
		snprintf(o.reason, sizeof o.reason, "its owner was told to start it %.0f s ago and did not",
			 d->setup->config->advise_timeout_s);
		life_ended(d, job, &o);
	}
}
