/* The loop of a replay: the earliest of the next arrival and the next end happens; at the same moment ends
 * come first, so that an arriving job finds what they leave. After every event all that may start
 * does. */
#include "sim/replay/replay.h"

#include <math.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/core/outcome.h"
#include "sim/replay/brain.h"

#define PROGRESS_EVERY 1024 /* jobs */

const char *const outcome_state_name[OUTCOME_STATES] = {
	[OUTCOME_REJECTED] = "rejected", [OUTCOME_MET] = "met",       [OUTCOME_MISSED] = "missed",
	[OUTCOME_DONE] = "done",         [OUTCOME_FAILED] = "failed", [OUTCOME_REFUSED] = "refused",
	[OUTCOME_DROPPED] = "dropped",
};

struct replay {
	const struct replay_params *p;
	const struct brain_ops *ops;
	void *brain;
	struct world_nodes *nodes;
	struct replay_result *r;
	int64_t now_ns;
	size_t arrived;
};

static int start_jobs(struct replay *x, struct err *err)
{
	double before_s = clock_monotonic_s(), after_s;
	struct brain_start s;
	int status = 0;

	while (!status && x->ops->next(x->brain, x->now_ns, &s)) {
		const struct trace_job *j = &x->p->trace->job[s.job];
		struct outcome *o = &x->r->outcome[s.job];
		struct world_job w = { .id = s.job + 1,
				       .kind = j->kind,
				       .batch = s.batch,
				       .epochs = s.epochs,
				       .draws =
					       draws_of(world_disturbances(x->p->world), x->p->seed, j->id) };

		after_s = clock_monotonic_s();
		o->decision_s += after_s - before_s;
		o->start_ns = x->now_ns;
		o->batch = s.batch;
		o->epochs = s.epochs;
		o->run_s = s.run_s;
		o->run_upper_s = s.run_upper_s;
		o->predicted_accuracy = s.predicted_accuracy;
		status = world_nodes_start(x->nodes, s.node, x->now_ns, &w, err);
		if (status)
			err_prefix(err, "%s:%u: job %llu", x->p->trace->name, j->line,
				   (unsigned long long)j->id);
		before_s = clock_monotonic_s();
	}
	if (world_nodes_running(x->nodes) > x->r->most_running)
		x->r->most_running = world_nodes_running(x->nodes);
	if (x->ops->waiting(x->brain) > x->r->most_queued)
		x->r->most_queued = x->ops->waiting(x->brain);
	return status;
}

/* Lets go of jobs without a chance, which is an event like any other: others may start after it. */
static int start_and_drop(struct replay *x, struct err *err)
{
	size_t job;
	int status = start_jobs(x, err);

	while (!status && x->ops->dropped && x->ops->dropped(x->brain, x->now_ns, &job)) {
		x->r->outcome[job].state = OUTCOME_DROPPED;
		status = start_jobs(x, err);
	}
	return status;
}

static int arrive(struct replay *x, struct err *err)
{
	struct outcome *o = &x->r->outcome[x->arrived];
	double before_s = clock_monotonic_s();
	int status;

	*o = (struct outcome){ .batch = NAN,
			       .epochs = NAN,
			       .promised_s = NAN,
			       .promised_upper_s = NAN,
			       .run_s = NAN,
			       .run_upper_s = NAN,
			       .predicted_accuracy = NAN,
			       .accuracy = NAN,
			       .processes = NAN,
			       .njobs = NAN };
	status = x->ops->arrive(x->brain, x->now_ns, x->arrived, o, err);
	o->decision_s += clock_monotonic_s() - before_s;
	x->r->events++;
	x->arrived++;
	if (x->p->on_progress && (x->arrived % PROGRESS_EVERY == 0 || x->arrived == x->r->n))
		x->p->on_progress(x->p->owner, x->arrived, x->r->n);
	return status;
}

static int end(struct replay *x, struct err *err)
{
	struct world_end e;
	const struct trace_job *j;
	struct outcome *o;
	double response_s;

	if (!world_nodes_end(x->nodes, &e))
		return err_fail(err, ERR_NUMERIC, "the world said that a job ends, and none did");
	j = &x->p->trace->job[e.id - 1];
	o = &x->r->outcome[e.id - 1];
	o->end_ns = e.at_ns;
	o->accuracy = e.failed ? NAN : e.accuracy;
	o->processes = e.processes;
	o->njobs = e.njobs;
	response_s = 1e-9 * (double)(e.at_ns - j->arrival_ns);
	if (e.failed)
		o->state = OUTCOME_FAILED;
	else if (isnan(j->slo_s))
		o->state = OUTCOME_DONE;
	else
		o->state = outcome_met(true, response_s, j->slo_s) ? OUTCOME_MET : OUTCOME_MISSED;
	return x->ops->ended(x->brain, x->now_ns, e.id - 1, e.failed, 1e-9 * (double)(e.at_ns - o->start_ns),
			     err);
}

/* A job that runs is stopped, before its end. */
static int stop(struct replay *x, size_t job, struct err *err)
{
	struct outcome *o = &x->r->outcome[job];
	struct world_end e = { .processes = NAN, .njobs = NAN };
	int status = world_nodes_stop(x->nodes, o->node, x->now_ns, job + 1, &e, err);

	o->state = OUTCOME_DROPPED;
	o->end_ns = x->now_ns;
	o->processes = e.processes;
	o->njobs = e.njobs;
	return status ? status : x->ops->stopped(x->brain, x->now_ns, job, err);
}

static int play(struct replay *x, struct err *err)
{
	const struct trace *t = x->p->trace;
	bool stops = x->ops->stops_ns && world_can_stop(x->p->world);
	int status = 0;

	while (!status) {
		int64_t arrival_ns = x->arrived < t->n_jobs ? t->job[x->arrived].arrival_ns : WORLD_NEVER;
		int64_t end_ns = world_nodes_next(x->nodes), stop_ns = WORLD_NEVER;
		size_t late = 0;

		if (arrival_ns == WORLD_NEVER && end_ns == WORLD_NEVER)
			break;
		if (stops)
			stop_ns = x->ops->stops_ns(x->brain, &late);
		if (stop_ns < end_ns && stop_ns < arrival_ns) {
			x->now_ns = stop_ns > x->now_ns ? stop_ns : x->now_ns;
			status = stop(x, late, err);
		} else {
			x->now_ns = end_ns <= arrival_ns ? end_ns : arrival_ns;
			status = end_ns <= arrival_ns ? end(x, err) : arrive(x, err);
		}
		if (!status)
			status = start_and_drop(x, err);
	}
	if (!status && x->ops->waiting(x->brain))
		status = err_fail(err, ERR_NUMERIC,
				  "%s: %zu jobs wait on an idle machine and will never start under policy %s",
				  t->name, x->ops->waiting(x->brain), x->p->policy->name);
	return status;
}

int replay_run(const struct replay_params *p, struct replay_result *out, struct err *err)
{
	struct replay_result r = { .n = p->trace->n_jobs, .chances = p->policy->choice.chance > 0.0 };
	struct replay x = { .p = p,
			    .ops = p->policy->oracle    ? &brain_oracle
				   : p->policy->optimum ? &brain_optimum
				   : p->policy->queue   ? &brain_queue
							: &brain_sched,
			    .r = &r };
	int status;

	r.outcome = mem_array(r.n, sizeof *r.outcome);
	if (!r.outcome)
		return err_nomem(err, "%zu outcomes", r.n);
	status = world_nodes_new(p->world, p->fold, &x.nodes, err);
	if (!status && (world_nodes_count(x.nodes) > 1 || p->settings.daemons > 1) && !x.ops->places)
		status = err_fail(err, ERR_ARG,
				  "policy %s decides for one machine that all jobs share, and the cluster "
				  "has %u nodes on which jobs are placed, and %u daemons",
				  p->policy->name, world_nodes_count(x.nodes),
				  p->settings.daemons > 1 ? p->settings.daemons : 1);
	if (!status)
		status = x.ops->make(p, x.nodes, &x.brain, err);
	if (!status)
		status = play(&x, err);
	if (!status) {
		r.end_s = 1e-9 * (double)x.now_ns;
		r.busy_s = world_nodes_busy_s(x.nodes);
		r.events += world_nodes_events(x.nodes);
		r.is_bound = x.ops->bound && x.ops->bound(x.brain, &r.bound);
		*out = r;
	} else {
		free(r.outcome);
	}
	x.ops->destroy(x.brain);
	world_nodes_free(x.nodes);
	return status;
}

void replay_result_release(struct replay_result *r)
{
	if (!r)
		return;
	free(r->outcome);
	*r = (struct replay_result){ 0 };
}
