/* Carries out what the life of a job asks for (jobs/life.h): rows go to the store, processes to the
 * executors, news to the watchers. carry_events.c is the other way round. See daemon.h. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text/template.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/exec/engine.h"
#include "scheduler/daemon/retention.h"

#define MAX_NEXT 4 /* events that the actions of one event lead to */

struct next_events {
	struct life_event event[MAX_NEXT];
	struct exec_outcome outcome[MAX_NEXT];
	size_t n;
};

struct life_event carry_event(const struct daemon *d, enum life_event_kind kind, struct job *job)
{
	return (struct life_event){ .kind = kind, .job = job, .now_ns = daemon_now_ns(d), .foreseen_s = NAN };
}

static struct life_event *next_event(const struct daemon *d, struct next_events *next,
				     enum life_event_kind kind, struct job *job)
{
	assert(next->n < MAX_NEXT);
	next->event[next->n] = carry_event(d, kind, job);
	return &next->event[next->n++];
}

static void next_ended(const struct daemon *d, struct next_events *next, struct job *job, bool lost,
		       const char *reason)
{
	struct exec_outcome *o = &next->outcome[next->n];

	*o = life_outcome(job->id, lost, reason);
	next_event(d, next, LIFE_ENDED, job)->outcome = o;
}

/* ---- processes ---- */

const char *carry_executor(const struct config *c, const struct job *job)
{
	return job->type && job->type->executor ? job->type->executor : c->executor;
}

/* It is whole: CONFIG_MAX_STATE_DIR leaves room. Cut off, two jobs would share a folder. */
void carry_dir(const struct daemon *d, const struct job *job, char *out, size_t size)
{
	snprintf(out, size, "%s/jobs/%llu", d->setup->config->state_dir, (unsigned long long)job->id);
}

/* Of a job that an engine has, the engine, whatever the configuration says by now. */
enum when { WHEN_STARTED, WHEN_ADOPTED, WHEN_LATER };

static void *executor_of(const struct daemon *d, const struct job *job, enum when when,
			 const struct executor_ops **out_ops)
{
	const struct config *c = d->setup->config;
	bool at_engine = false;
	char dir[4096];

	carry_dir(d, job, dir, sizeof dir);
	for (size_t i = 0; d->executors[i] && !life_advised(job); i++) {
		if (d->executors[i] != &exec_engine_ops || !d->executor[i])
			continue;
		at_engine = when == WHEN_STARTED
				    ? config_engine(c, carry_executor(c, job)) != NULL
				    : exec_engine_knows(d->executor[i], job->id,
							when == WHEN_ADOPTED ? dir : NULL, job->row.identity);
		if (when == WHEN_STARTED && !at_engine && job->row.identity)
			exec_engine_withdraw(dir, job->row.identity);
	}
	*out_ops = NULL;
	for (size_t i = 0; d->executors[i]; i++) {
		if (!strcmp(d->executors[i]->name, at_engine ? exec_engine_ops.name : job->row.mode)) {
			*out_ops = d->executors[i];
			return d->executor[i];
		}
	}
	return NULL;
}

static void exec_job_of(const struct daemon *d, const struct job *job, char **argv, const char *dir,
			struct exec_job *out)
{
	static const struct job_type gone;
	const struct config *c = d->setup->config;
	const struct job_type *t = job->type ? job->type : &gone;
	int tenant = job->row.tenant ? config_tenant_find(c, job->row.tenant) : -1;
	double per_record_mb = isnan(t->memory_mb_per_record) ? 0.0 : t->memory_mb_per_record;

	*out = (struct exec_job){
		.id = job->id,
		.type = t,
		.argv = argv,
		.dir = dir,
		.identity = job->row.identity,
		.uid = job->row.uid,
		.gid = job->row.gid,
		.cpus = job->row.cpus,
		.epochs = NAN,
		.steer = t->steer,
		.kill_grace_s = c->kill_grace_s,
		.max_time_s = t->max_time_s,
		.max_output_mb = (uint64_t)(isnan(t->max_output_mb) ? c->max_output_mb : t->max_output_mb),
		.pin = c->pin,
		.cgroup = c->cgroup,
		.devices = job->row.devices,
		.gpus = job->row.gpus,
		.engine = config_engine(c, carry_executor(c, job)),
		.tenant = job->row.tenant,
		.account = tenant >= 0 ? c->tenant[tenant].account : NULL,
		.partition = tenant >= 0 ? c->tenant[tenant].partition : NULL,
		.bound_s =
			fmax(job->row.run_upper_s, job->row.guard_s), /* of a NaN and a number, the number */
		.memory_mb = t->memory_mb + per_record_mb * job->row.batch,
	};
	if (c->resources.gpus && !out->engine) /* an engine sets its own */
		out->device_variable = c->resources.gpu_variable;
	out->epochs = isnan(job->row.epochs) ? job_epochs_given(job) : job->row.epochs;
}

static int spawn(struct daemon *d, struct job *job, struct err *err)
{
	const struct executor_ops *ops;
	void *self = executor_of(d, job, WHEN_STARTED, &ops);
	char dir[4096], id[24], start[JOB_NEXT_MAX + 1], **argv = NULL;
	struct exec_job e;
	struct next next;
	struct job_argv_values v = {
		.job = id,
		.dir = dir,
		.batch = job->row.batch,
		.lr = job->row.lr,
		.epochs = job->row.epochs,
		.cpus = job->row.cpus,
		.gpus = job->row.gpus,
		.devices = job->row.devices,
		.seed = d->setup->config->seed + job->id,
		.index = job->row.array_index,
	};
	int rc;

	if (!job->type || !ops)
		return err_fail(err, ERR_NOTFOUND, "its type %s is no longer configured", job->row.type);
	snprintf(id, sizeof id, "%llu", (unsigned long long)job->id);
	carry_dir(d, job, dir, sizeof dir);
	rc = job_type_argv(job->type, &job->bound->params, &v, &argv, err);
	if (rc)
		return rc;
	exec_job_of(d, job, argv, dir, &e);
	job_next(job, &next);
	e.start = next_line(&next, start);
	rc = ops->start(self, &e, err);
	argv_free(argv);
	return rc;
}

static void spawn_or_fail(struct daemon *d, struct job *job, struct next_events *next)
{
	struct err err = { 0 };
	char why[240], *lasts = next->outcome[next->n].reason; /* until that event is carried out */
	int rc = spawn(d, job, &err);

	if (!rc)
		return;
	if (rc == -ERR_BUSY || rc == -ERR_NOMEM) {
		snprintf(lasts, sizeof next->outcome[0].reason, "%.240s", err.text);
		next_event(d, next, LIFE_DELAYED, job)->text = lasts;
		return;
	}
	snprintf(why, sizeof why, "could not be started: %.200s", err.text);
	next_ended(d, next, job, false, why);
}

static int stop(struct daemon *d, struct job *job, struct next_events *next, struct err *err)
{
	const struct executor_ops *ops;
	void *self = executor_of(d, job, WHEN_LATER, &ops);
	struct err why = { 0 };
	int rc = ops ? ops->stop(self, job->id, d->setup->config->kill_grace_s, &why)
		     : err_fail(&why, ERR_NOTFOUND, "nothing runs jobs of mode %s", job->row.mode);

	if (!rc)
		return 0;
	next_event(d, next, LIFE_STOP_FAILED, job)->gone = rc == -ERR_NOTFOUND;
	if (rc == -ERR_NOTFOUND)
		return 0;
	log_warn("job %llu could not be stopped: %s", (unsigned long long)job->id, why.text);
	return err_fail(err, why.code, "%s", why.text);
}

static void adopt(struct daemon *d, struct job *job, struct next_events *next)
{
	const struct executor_ops *ops;
	void *self = executor_of(d, job, WHEN_ADOPTED, &ops);
	struct err err = { 0 };
	struct exec_job e;
	bool unstarted = false;
	char dir[4096];
	int rc;

	carry_dir(d, job, dir, sizeof dir);
	exec_job_of(d, job, NULL, dir, &e);
	rc = ops ? ops->adopt(self, &e, &unstarted, &err)
		 : err_fail(&err, ERR_ARG, "nothing runs jobs of mode %s", job->row.mode);
	if (rc)
		next_ended(d, next, job, true, err.text);
	else
		next_event(d, next, unstarted ? LIFE_UNSTARTED : LIFE_ADOPTED, job);
}

static void forget(struct daemon *d, struct job *job, int64_t now_ns)
{
	const struct executor_ops *ops;
	void *self = executor_of(d, job, WHEN_LATER, &ops);

	if (ops && ops->forget)
		ops->forget(self, job->id);
	devices_give_back(&d->devices, job->id);
	sched_remove(d->sched, now_ns, job->id, NULL);
}

/* ---- people ---- */

static void log_event(const char *what, const struct job *job)
{
	const struct job_record *r = &job->row;
	unsigned long long id = job->id;

	if (!strcmp(what, "started") && job->pid)
		log_info("job %llu started: pid %d, batch %g, %u cpus%s%s", id, (int)job->pid, r->batch,
			 r->cpus, r->devices ? ", gpus " : "", r->devices ? r->devices : "");
	else if (!strcmp(what, "steered"))
		log_info("job %llu: batch %g from epoch %g on", id, job->steering.told.batch,
			 job->steering.told.after + 1.0);
	else if (!strcmp(what, "late"))
		log_warn("job %llu is predicted to miss its limit of %g s", id, r->slo_s);
	else if (!strcmp(what, "stopping") && job->step == STEP_EARLY_AWAITS)
		log_info("job %llu would be late: it is stopped after epoch %g of %g", id, job->epoch,
			 job->epochs);
	else if (!strcmp(what, "stopping"))
		log_warn("job %llu has no promise: it is stopped for a job that would be late", id);
	else if (!strcmp(what, "finished") || !strcmp(what, "cancelled"))
		log_info("job %llu %s%s%s%s%s", id, job_state_name[r->state], r->reason ? ": " : "",
			 r->reason ? r->reason : "", r->slo_outcome ? ", limit " : "",
			 r->slo_outcome ? slo_outcome_name[r->slo_outcome] : "");
}

static void ask_estimate(struct daemon *d, struct job *job, const char *why, struct next_events *next)
{
	struct sched_estimate e;
	struct life_event *event;

	if (sched_estimate(d->sched, daemon_now_ns(d), job->id, &e, NULL) || isnan(e.end_s))
		return;
	event = next_event(d, next, LIFE_ESTIMATED, job);
	event->estimate = e;
	event->text = why;
	event->on_late = late_rule(d->setup->config, job);
}

/* ---- one action ---- */

static void start_later(struct start_list *l, uint64_t ticket, uint64_t job)
{
	/* jobs_add() of the same job would have failed before this does: it is the smaller of the two */
	if (mem_grow((void **)&l->item, &l->cap, l->n + 1, sizeof *l->item)) {
		log_error("out of memory: job %llu starts when the daemon is restarted",
			  (unsigned long long)job);
		return;
	}
	l->item[l->n++] = (struct pending_start){ .ticket = ticket, .job = job };
}

static void retry(struct daemon *d, const struct job *job)
{
	if (!d->delay_told)
		log_warn("jobs cannot be started, and wait: %s", job->waits_for ? job->waits_for : "memory");
	d->delay_told = true;
	start_later(&d->delayed, 0, job->id);
}

static int do_action(struct daemon *d, const struct life_action *a, int64_t now_ns, struct next_events *next,
		     struct err *err)
{
	const struct sched_estimate *e = &a->estimate;
	struct job *job = a->job;
	int rc = 0;

	switch (a->kind) {
	case LIFE_ADD_ROW:
		rc = store_add_job(d->store, &job->row, err);
		daemon_changed(d);
		break;
	case LIFE_UPDATE_ROW:
		job->unsaved = store_update_job(d->store, &job->row, NULL) != 0;
		daemon_changed(d);
		break;
	/* A job without its history, for want of memory, is as good as one with it. */
	case LIFE_ADD_DECISION:
		if (d->params.played)
			d->params.played->decided(d->params.played->owner, job, a->what, a->text);
		else
			store_add_decision(d->store, job->id, now_ns, a->what, a->text, NULL);
		break;
	case LIFE_ADD_ESTIMATE:
		store_add_estimate(d->store, job->id, now_ns, e->start_s, e->end_s, e->end_low_s,
				   e->end_high_s, a->what, NULL);
		daemon_changed(d);
		break;
	case LIFE_ADD_OBSERVATION:
		store_add_observation(d->store,
				      &(struct store_seen){ .job = job->id,
							    .at_ns = job->row.ended_ns,
							    .type = job->row.type,
							    .value = a->value,
							    .n_values = a->n_values,
							    .time_s = a->time_s,
							    .accuracy = job->row.accuracy,
							    .doubt = learning_doubt(d->learning, job) },
				      NULL);
		break;
	case LIFE_AWAIT:
		start_later(&d->starts, daemon_ticket(d), job->id);
		daemon_changed(d);
		break;
	case LIFE_SPAWN: spawn_or_fail(d, job, next); break;
	case LIFE_RETRY: retry(d, job); break;
	case LIFE_IDLE: sched_set_idle(d->sched, now_ns, job->id, a->idle, NULL); break;
	case LIFE_STOP: rc = stop(d, job, next, err); break;
	case LIFE_ANSWER: steer_answer(d, job); break;
	case LIFE_ADOPT: adopt(d, job, next); break;
	case LIFE_FORGET: forget(d, job, now_ns); break;
	case LIFE_ADMIT: waiting_add(d, job); break;
	case LIFE_TELL:
		log_event(a->what, job);
		d->tally.late += !strcmp(a->what, "late");
		watch_tell(d, a->what, job);
		break;
	case LIFE_NOTIFY: late_notify(d, job, a->time_s); break;
	case LIFE_ESTIMATE: ask_estimate(d, job, a->what, next); break;
	case LIFE_COUNT_VERDICT:
		tally_verdict(&d->tally, a->verdict, a->decision);
		if (a->verdict != SCHED_REJECTED)
			learning_first_taken(d->learning, job);
		break;
	case LIFE_COUNT_WAIT: tally_wait(&d->tally, a->time_s); break;
	case LIFE_COUNT_ENDED: tally_ended(&d->tally, &job->row, now_ns); break;
	case LIFE_FAILED: learning_run_failed(d->learning, job, a->outcome, now_ns); break;
	case LIFE_LEARN: learning_ended(d->learning, job); break;
	case LIFE_CLOSE:
		waiting_ended(d, job);
		if (job->row.state != JOB_REJECTED) {
			learning_first_ended(d->learning, job);
			late_notify_ended(d, job);
		}
		life_close(&d->life, job, d->setup->config->max_finished);
		retention_ended(d->retention);
		break;
	}
	return rc;
}

int carry_out(struct daemon *d, const struct life_event *e, struct err *err)
{
	struct life_actions actions;
	struct next_events next;
	int rc, failed = 0;

	actions.n = next.n = 0;
	inputs_event(d, e);
	rc = life_event(&d->life, e, &actions, err);
	for (size_t i = 0; !rc && i < actions.n; i++) {
		int one = do_action(d, &actions.item[i], e->now_ns, &next, err);

		if (one && actions.item[i].kind == LIFE_ADD_ROW) { /* nothing has happened */
			life_take_back(&d->life, e->job);
			return one;
		}
		failed = one ? one : failed;
	}
	for (size_t i = 0; i < next.n; i++)
		carry_out(d, &next.event[i], NULL);
	return rc ? rc : failed;
}
