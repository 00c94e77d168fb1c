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

struct steered_run { /* of a job that is told its batch after each epoch */
	uint32_t done, last; /* epochs, and the one it will end after */
	double batch, behind; /* part of its work that is done, as the world counts it */
	int64_t since_ns; /* its epoch began */
	double processes_s, njobs_s; /* times time, of the epochs before */
	struct world_stage stage[TRACE_MAX_BATCHES + 1];
	size_t n;
};

struct replay {
	const struct replay_params *p;
	const struct brain_ops *ops;
	void *brain;
	struct world_nodes *nodes;
	struct replay_result *r;
	int64_t now_ns;
	size_t arrived;
	/* jobs that were started and may end after an earlier epoch; those that have ended leave when they
	 * are met */
	size_t *giver, n_givers, cap_givers;
	struct steered_run **steered; /* by job; NULL: it is not, or none is */
	int64_t look_ns; /* when the next of them has run an epoch more, and may give back then */
};

static struct world_job job_of(const struct replay *x, size_t job, double batch, double epochs)
{
	const struct trace_job *j = &x->p->trace->job[job];

	return (struct world_job){ .id = job + 1,
				   .kind = j->kind,
				   .batch = batch,
				   .epochs = epochs,
				   .draws = draws_of(world_disturbances(x->p->world), x->p->seed, j->id) };
}

static int note_giver(struct replay *x, size_t job, struct err *err)
{
	void *grown = x->giver;

	if (!x->p->trace->job[job].may_stop || isnan(x->r->outcome[job].epochs) || !x->ops->gives_back ||
	    !world_ends_early(x->p->world))
		return 0;
	if (mem_grow(&grown, &x->cap_givers, x->n_givers + 1, sizeof *x->giver))
		return err_nomem(err, "%zu jobs that may end early", x->n_givers + 1);
	x->giver = grown;
	x->giver[x->n_givers++] = job;
	return 0;
}

/* A job that has just started; its first epoch is what begins. */
static int begin_steered(struct replay *x, size_t job, struct world_job *io, struct err *err)
{
	uint32_t last = x->ops->steers ? x->ops->steers(x->brain, job, io->epochs) : 0;
	struct steered_run *g;

	if (!last)
		return 0;
	if (!x->steered)
		x->steered = mem_calloc(x->r->n, sizeof *x->steered);
	g = x->steered ? mem_calloc(1, sizeof *g) : NULL;
	if (!g)
		return err_nomem(err, "a job that steers");
	x->steered[job] = g;
	g->last = last;
	g->batch = io->batch;
	g->since_ns = x->now_ns;
	io->part = 1.0 / last;
	return 0;
}

static void note_epoch(struct steered_run *g, const struct world_end *e)
{
	double for_s = 1e-9 * (double)(e->at_ns - g->since_ns);
	size_t i = 0;

	while (i < g->n && g->stage[i].batch != g->batch)
		i++;
	if (i == g->n && g->n <= TRACE_MAX_BATCHES)
		g->stage[g->n++] = (struct world_stage){ .batch = g->batch };
	g->stage[i < g->n ? i : g->n - 1].epochs++;
	g->done++;
	g->behind += 1.0 / g->last;
	g->processes_s += for_s * e->processes;
	g->njobs_s += for_s * e->njobs;
	g->since_ns = e->at_ns;
}

/* An epoch of it is over. *out_goes_on: the next one has begun; else *io is the end of all of it. */
static int end_epoch(struct replay *x, size_t job, struct world_end *io, bool *out_goes_on, struct err *err)
{
	struct steered_run *g = x->steered[job];
	struct outcome *o = &x->r->outcome[job];
	struct world_job w = job_of(x, job, g->batch, isnan(o->epochs) ? NAN : g->last);
	struct steer_report report = { .accuracy = NAN };
	struct steer_answer a;
	double all_s;
	int status;

	*out_goes_on = false;
	note_epoch(g, io);
	all_s = 1e-9 * (double)(io->at_ns - o->start_ns);
	io->processes = all_s > 0.0 ? g->processes_s / all_s : io->processes;
	io->njobs = all_s > 0.0 ? g->njobs_s / all_s : io->njobs;
	io->failed = g->behind >= w.draws.fails_at; /* NaN: it does not */
	if (io->failed)
		return 0;
	if (g->done >= g->last)
		return world_run_mixed(world_nodes_run(x->nodes, o->node), &w, g->stage, g->n, &io->accuracy,
				       err);
	report.epoch = g->done;
	report.epochs = g->last;
	status = x->ops->steer(x->brain, x->now_ns, job, &report, &a, err);
	if (status)
		return status;
	g->batch = a.batch;
	g->last = a.last;
	if (!isnan(o->epochs))
		o->epochs = a.last;
	w = job_of(x, job, g->batch, o->epochs);
	w.part = 1.0 / g->last;
	w.behind = g->behind;
	*out_goes_on = true;
	return world_nodes_start(x->nodes, o->node, x->now_ns, &w, err);
}

static int start_jobs(struct replay *x, struct err *err)
{
	double before_s = clock_monotonic_s(), after_s;
	struct brain_start s;
	int status = 0;

	while (!status && x->ops->next(x->brain, x->now_ns, &s)) {
		const struct trace_job *j = &x->p->trace->job[s.job];
		struct outcome *o = &x->r->outcome[s.job];
		struct world_job w = job_of(x, s.job, s.batch, s.epochs);

		after_s = clock_monotonic_s();
		o->decision_s += after_s - before_s;
		o->start_ns = x->now_ns;
		o->batch = s.batch;
		o->epochs = s.epochs;
		o->run_s = s.run_s;
		o->run_upper_s = s.run_upper_s;
		o->predicted_accuracy = s.predicted_accuracy;
		status = begin_steered(x, s.job, &w, err);
		if (!status)
			status = world_nodes_start(x->nodes, s.node, x->now_ns, &w, err);
		if (!status && w.part == 0.0)
			status = note_giver(x, s.job, err);
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

/* Gives up jobs without a chance, which is an event like any other: others may start after it. */
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

/* Of a job that ended with a result. */
static enum outcome_state state_at(const struct trace_job *j, int64_t end_ns)
{
	if (isnan(j->slo_s))
		return OUTCOME_DONE;
	return outcome_met(true, 1e-9 * (double)(end_ns - j->arrival_ns), j->slo_s) ? OUTCOME_MET
										    : OUTCOME_MISSED;
}

static int end(struct replay *x, struct err *err)
{
	struct world_end e;
	const struct trace_job *j;
	struct outcome *o;

	if (!world_nodes_end(x->nodes, &e))
		return err_fail(err, ERR_NUMERIC, "the world said that a job ends, and none did");
	j = &x->p->trace->job[e.id - 1];
	o = &x->r->outcome[e.id - 1];
	if (x->steered && x->steered[e.id - 1]) {
		bool goes_on;
		int status = end_epoch(x, e.id - 1, &e, &goes_on, err);

		if (status || goes_on)
			return status;
	}
	o->end_ns = e.at_ns;
	o->accuracy = e.failed ? NAN : e.accuracy;
	o->processes = e.processes;
	o->njobs = e.njobs;
	o->state = e.failed ? OUTCOME_FAILED : state_at(j, e.at_ns);
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

/* It ends now, after the last epoch that it has done. */
static int end_early(struct replay *x, size_t job, double epochs, struct err *err)
{
	struct outcome *o = &x->r->outcome[job];
	struct world_job w = job_of(x, job, o->batch, epochs);
	double accuracy;
	int status = world_run_accuracy(world_nodes_run(x->nodes, o->node), &w, &accuracy, err);

	if (!status)
		status = stop(x, job, err);
	if (status)
		return status;
	o->epochs = epochs;
	o->accuracy = accuracy;
	o->run_s = o->run_upper_s = o->predicted_accuracy = NAN; /* they were of more epochs */
	o->state = state_at(&x->p->trace->job[job], x->now_ns);
	return 0;
}

/* A job that has come may gain from an earlier end of one that runs. The daemon asks when an epoch is
 * reported; here the last whole epoch counts, and what came after it is lost. */
/* It gives back after an epoch to come: it is looked at again when the one that it is in has ended, as it
 * has run so far. */
static void look_again(struct replay *x, const struct outcome *o, double epochs)
{
	double epoch_ns = (double)(x->now_ns - o->start_ns) / epochs;
	int64_t then_ns = x->now_ns + 1 + (int64_t)((floor(epochs) + 1.0 - epochs) * epoch_ns);

	if (then_ns < x->look_ns)
		x->look_ns = then_ns;
}

static int give_back(struct replay *x, struct err *err)
{
	int status = 0;

	x->look_ns = WORLD_NEVER;
	for (size_t i = 0; i < x->n_givers && !status;) {
		size_t job = x->giver[i];
		struct outcome *o = &x->r->outcome[job];
		double part, done;
		uint32_t after;

		if (o->end_ns) {
			x->giver[i] = x->giver[--x->n_givers];
			continue;
		}
		i++;
		status = world_run_progress(world_nodes_run(x->nodes, o->node), x->now_ns, job + 1, &part,
					    err);
		if (status)
			break;
		done = floor(part * o->epochs * (1.0 + 1e-9));
		if (done < 1.0 || done >= o->epochs)
			continue;
		after = x->ops->gives_back(x->brain, x->now_ns, job, part, (uint32_t)o->epochs);
		if (after && after <= done)
			status = end_early(x, job, done, err);
		else if (after)
			look_again(x, o, part * o->epochs);
	}
	return status;
}

static int play(struct replay *x, struct err *err)
{
	const struct trace *t = x->p->trace;
	bool stops = x->ops->stops_ns && world_can_stop(x->p->world);
	int status = 0;

	x->look_ns = WORLD_NEVER;
	while (!status) {
		int64_t arrival_ns = x->arrived < t->n_jobs ? t->job[x->arrived].arrival_ns : WORLD_NEVER;
		int64_t end_ns = world_nodes_next(x->nodes), stop_ns = WORLD_NEVER;
		size_t late = 0;
		bool looks = false;

		if (arrival_ns == WORLD_NEVER && end_ns == WORLD_NEVER)
			break;
		if (stops)
			stop_ns = x->ops->stops_ns(x->brain, &late);
		if (x->look_ns < end_ns && x->look_ns < arrival_ns && x->look_ns < stop_ns) {
			x->now_ns = x->look_ns;
			looks = true;
		} else if (stop_ns < end_ns && stop_ns < arrival_ns) {
			x->now_ns = stop_ns > x->now_ns ? stop_ns : x->now_ns;
			status = stop(x, late, err);
		} else {
			x->now_ns = end_ns <= arrival_ns ? end_ns : arrival_ns;
			status = end_ns <= arrival_ns ? end(x, err) : arrive(x, err);
			looks = end_ns > arrival_ns;
		}
		if (!status)
			status = start_and_drop(x, err);
		if (!status && looks && x->n_givers) {
			status = give_back(x, err);
			if (!status)
				status = start_and_drop(x, err);
		}
	}
	if (!status && x->ops->waiting(x->brain))
		status = err_fail(err, ERR_NUMERIC,
				  "%s: %zu jobs wait on an idle machine and will never start under policy %s",
				  t->name, x->ops->waiting(x->brain), x->p->policy->name);
	return status;
}

static const struct brain_ops *brain_of(const struct sim_policy *p)
{
	return p->oracle    ? &brain_oracle
	       : p->optimum ? &brain_optimum
	       : p->queue   ? &brain_queue
			    : &brain_sched;
}

int replay_check(const struct sim_policy *p, const struct cluster *c, const struct replay_settings *how,
		 struct err *err)
{
	if (brain_of(p)->places)
		return 0;
	if (cluster_parts(c) > 1)
		return err_fail(err, ERR_ARG,
				"policy %s decides for one machine that all jobs share, and in this cluster "
				"each job stays on one of %u nodes",
				p->name, cluster_parts(c));
	if (how->daemons > 1)
		return err_fail(err, ERR_ARG,
				"policy %s decides for one machine alone, and %u daemons share this one",
				p->name, how->daemons);
	if (c->counts_gpus)
		return err_fail(err, ERR_ARG, "policy %s knows no gpus, and the cluster counts them",
				p->name);
	return 0;
}

bool replay_takes_chances(const struct sim_policy *p, const struct trace *t)
{
	if (!p->choice.policy || p->choice.policy->admits_all || p->choice.no_chance)
		return false;
	if (p->choice.chance > 0.0)
		return true;
	for (size_t i = 0; i < t->n_jobs; i++)
		if (t->job[i].chance > 0.0)
			return true;
	return false;
}

int replay_run(const struct replay_params *p, struct replay_result *out, struct err *err)
{
	struct replay_result r = { .n = p->trace->n_jobs,
				   .chances = replay_takes_chances(p->policy, p->trace) };
	struct replay x = { .p = p, .ops = brain_of(p->policy), .r = &r };
	int status;

	r.outcome = mem_array(r.n, sizeof *r.outcome);
	if (!r.outcome)
		return err_nomem(err, "%zu outcomes", r.n);
	status = replay_check(p->policy, world_whole(p->world), &p->settings, err);
	if (!status)
		status = world_nodes_new(p->world, p->fold, &x.nodes, err);
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
	for (size_t i = 0; x.steered && i < r.n; i++)
		free(x.steered[i]);
	free(x.steered);
	free(x.giver);
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
