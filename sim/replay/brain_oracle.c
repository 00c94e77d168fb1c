/* The oracle: knows what will happen to every job that has come, as if it could try before it promises. It
 * keeps a plan of the waiting jobs; an arriving one is put into the plan, the world itself is copied and
 * played to the end of all of them, and only a plan in which every promise holds is taken. What then happens
 * is what was played, so the oracle breaks no promise. It does not know who will arrive later. The greedy one
 * gives each job the highest accuracy that it can have when it comes. The priced one charges for capacity by
 * the rule of `postrider` (scheduler/core/policy/price.h), with what was played in place of predictions: what
 * later arrivals may do to an end is all that it does not know. So they are what perfect predictions are
 * worth under these two rules, not the best schedule there could be.
 *
 * The plan is a list: at every event those at its front that fit start, and others pass one that does not.
 * Priority first, then the earliest deadline. A job whose start breaks a promise is tried behind the end of
 * the job it breaks, at most MOST_STEPS times, and then at the end of the plan in the same way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/core/decide.h"
#include "scheduler/core/policy/price.h"
#include "sim/replay/bound_kinds.h"
#include "sim/replay/brain.h"

#define MOST_STEPS 8
#define NO_JOB SIZE_MAX
#define UNFORESEEN 0.2 /* spread of the time of a job that later arrivals change */

struct planned {
	size_t job;
	size_t after; /* starts when this job has ended; NO_JOB: waits for none */
	double batch, epochs;
	int64_t deadline_ns; /* of its promise; WORLD_NEVER: none */
};

struct fate { /* by job */
	int64_t deadline_ns; /* of its promise; WORLD_NEVER: none */
	uint64_t ended_in; /* the play in which it ended last */
	bool ended; /* in reality */
	double run_s, accuracy; /* as played when it was taken */
	int64_t played_ns,
		before_ns; /* its end in the last play, and in the one without the job that arrives */
};

struct plan {
	struct planned *job;
	size_t n, cap;
};

struct oracle {
	const struct replay_params *p;
	const struct world_run *run; /* what really happens */
	struct world_run *play;
	struct bound_kinds kinds;
	struct plan plan, trial, queue; /* the plan; what is tried; scratch of a play */
	struct fate *fate;
	uint64_t plays;
	uint32_t slots, used, play_used;
	struct price
		price; /* of a process-second, as the last arrivals tell it; stays 0 for the greedy one */
};

static void oracle_destroy(void *self)
{
	struct oracle *o = self;

	if (!o)
		return;
	world_run_free(o->play);
	bound_kinds_release(&o->kinds);
	free(o->plan.job);
	free(o->trial.job);
	free(o->queue.job);
	free(o->fate);
	free(o);
}

static int oracle_make(const struct replay_params *p, struct world_nodes *nodes, void **out_self,
		       struct err *err)
{
	struct oracle *o = mem_calloc(1, sizeof *o);
	int status;

	if (!o)
		return err_nomem(err, "a replay");
	o->p = p;
	o->run = world_nodes_run(nodes, 0);
	o->slots = world_cluster(p->world)->slots;
	o->fate = mem_calloc(p->trace->n_jobs, sizeof *o->fate);
	status = o->fate ? 0 : err_nomem(err, "%zu jobs", p->trace->n_jobs);
	if (!status)
		status = bound_kinds_init(&o->kinds, p->trace, p->world, NULL, err);
	for (size_t i = 0; !status && i < o->kinds.n; i++)
		if (!o->kinds.kind[i].n_batches)
			status = err_fail(err, ERR_ARG,
					  "neither the trace nor the world says which batches a job "
					  "may have");
	if (!status)
		status = world_run_new(p->world, p->fold, &o->play, err);
	if (status)
		oracle_destroy(o);
	else
		*out_self = o;
	return status;
}

static uint32_t cpus_of(const struct oracle *o, size_t job)
{
	return o->p->trace->kind[o->p->trace->job[job].kind].cpus;
}

/* ---- plans ---- */

static int plan_copy(struct plan *to, const struct plan *from, size_t room, struct err *err)
{
	if (mem_grow((void **)&to->job, &to->cap, from->n + room, sizeof *to->job))
		return err_nomem(err, "a plan of %zu jobs", from->n);
	if (from->n)
		memcpy(to->job, from->job, from->n * sizeof *to->job);
	to->n = from->n;
	return 0;
}

static void plan_insert(struct plan *p, size_t at, const struct planned *j)
{
	memmove(&p->job[at + 1], &p->job[at], (p->n - at) * sizeof *p->job);
	p->job[at] = *j;
	p->n++;
}

static void plan_remove(struct plan *p, size_t at)
{
	p->n--;
	memmove(&p->job[at], &p->job[at + 1], (p->n - at) * sizeof *p->job);
}

static bool goes_before(const struct oracle *o, const struct planned *a, const struct planned *b)
{
	int32_t pa = o->p->trace->job[a->job].priority, pb = o->p->trace->job[b->job].priority;

	return pa != pb ? pa > pb : a->deadline_ns < b->deadline_ns;
}

static size_t place_of(const struct oracle *o, const struct plan *p, const struct planned *j)
{
	size_t at = p->n;

	while (at > 0 && goes_before(o, j, &p->job[at - 1]))
		at--;
	return at;
}

/* The first in the plan that may start now; p->n: none. Who has ended, in reality or in this play, is waited
 * for no more; play 0: in reality alone. */
static size_t startable(const struct oracle *o, const struct plan *p, uint32_t used, uint64_t play)
{
	for (size_t i = 0; i < p->n; i++) {
		size_t after = p->job[i].after;

		if (used + cpus_of(o, p->job[i].job) <= o->slots &&
		    (after == NO_JOB || o->fate[after].ended || (play && o->fate[after].ended_in == play)))
			return i;
	}
	return p->n;
}

static struct world_job as_world_job(const struct oracle *o, const struct planned *j)
{
	const struct trace_job *t = &o->p->trace->job[j->job];

	return (struct world_job){ .id = j->job + 1,
				   .kind = t->kind,
				   .batch = j->batch,
				   .epochs = j->epochs,
				   .draws = draws_of(world_disturbances(o->p->world), o->p->seed, t->id) };
}

/* ---- plays ---- */

struct played {
	size_t broken; /* the first whose promise does not hold; NO_JOB: all do */
	size_t last; /* who ends last; NO_JOB: nothing runs */
	int64_t start_ns, end_ns; /* of the job it is about */
	double accuracy;
};

static int play_starts(struct oracle *o, int64_t now_ns, size_t about, struct played *out, struct err *err)
{
	size_t at;
	int status = 0;

	while (!status && (at = startable(o, &o->queue, o->play_used, o->plays)) < o->queue.n) {
		struct planned j = o->queue.job[at];
		struct world_job w = as_world_job(o, &j);

		plan_remove(&o->queue, at);
		o->play_used += cpus_of(o, j.job);
		if (j.job == about)
			out->start_ns = now_ns;
		status = world_run_start(o->play, now_ns, &w, err);
	}
	return status;
}

/* The trial from now on to its last end; `about` is one of its jobs, or NO_JOB. */
static int play_trial(struct oracle *o, int64_t now_ns, size_t about, struct played *out, struct err *err)
{
	struct world_end e;
	int status = world_run_copy(o->play, o->run, err);

	*out = (struct played){ .broken = NO_JOB, .last = NO_JOB, .accuracy = NAN };
	o->plays++;
	o->play_used = o->used;
	if (!status)
		status = plan_copy(&o->queue, &o->trial, 0, err);
	if (!status)
		status = play_starts(o, now_ns, about, out, err);
	while (!status && world_run_end(o->play, &e)) {
		size_t job = (size_t)(e.id - 1);
		struct fate *f = &o->fate[job];

		f->ended_in = o->plays;
		f->played_ns = e.at_ns;
		o->play_used -= cpus_of(o, job);
		out->last = job;
		if (job == about) {
			out->end_ns = e.at_ns;
			out->accuracy = e.accuracy;
		}
		if (out->broken == NO_JOB && f->deadline_ns != WORLD_NEVER &&
		    (e.failed || e.at_ns > f->deadline_ns))
			out->broken = job;
		status = play_starts(o, e.at_ns, about, out, err);
	}
	return status;
}

/* The best place for a job as it is: *out_holds, and then the trial is the plan with it. */
static int find_place(struct oracle *o, int64_t now_ns, const struct planned *wanted, struct played *out,
		      bool *out_holds, struct err *err)
{
	int status = 0;

	*out_holds = false;
	for (int end = 0; end < 2 && !status && !*out_holds; end++) {
		struct planned j = *wanted;

		for (int step = 0; step < MOST_STEPS && !status; step++) {
			status = plan_copy(&o->trial, &o->plan, 1, err);
			if (status)
				break;
			plan_insert(&o->trial, end ? o->trial.n : place_of(o, &o->trial, &j), &j);
			status = play_trial(o, now_ns, j.job, out, err);
			*out_holds = !status && out->broken == NO_JOB;
			if (*out_holds || out->broken == j.job || out->broken == j.after)
				break;
			j.after = out->broken;
		}
	}
	return status;
}

/* ---- what a plan is worth ---- */

static double seconds(int64_t from_ns, int64_t to_ns)
{
	return 1e-9 * (double)(to_ns - from_ns);
}

/* The chance of a job that ends then, as it was played, to be in time whatever arrives later. */
static double chance_of(const struct oracle *o, size_t job, int64_t now_ns, int64_t end_ns)
{
	int64_t deadline_ns = o->fate[job].deadline_ns;

	return belief_chance((struct belief){ seconds(now_ns, end_ns), UNFORESEEN },
			     deadline_ns == WORLD_NEVER ? INFINITY : seconds(now_ns, deadline_ns));
}

/* What the others lose by the play just made, against the one without the job. */
static double harm_of(const struct oracle *o, int64_t now_ns, size_t about)
{
	double harm = 0.0;

	for (size_t i = 0; i <= about; i++) { /* none beyond it has arrived */
		const struct fate *f = &o->fate[i];

		if (i == about || f->ended_in != o->plays || f->played_ns == f->before_ns ||
		    f->deadline_ns == WORLD_NEVER || isnan(f->accuracy))
			continue;
		harm += f->accuracy *
			(chance_of(o, i, now_ns, f->before_ns) - chance_of(o, i, now_ns, f->played_ns));
	}
	return fmax(harm, 0.0);
}

/* The ends of all without the job that arrives. */
static int play_before(struct oracle *o, int64_t now_ns, size_t about, struct err *err)
{
	struct played unused;
	int status = plan_copy(&o->trial, &o->plan, 0, err);

	if (!status)
		status = play_trial(o, now_ns, NO_JOB, &unused, err);
	for (size_t i = 0; !status && i < about; i++)
		o->fate[i].before_ns = o->fate[i].played_ns;
	return status;
}

struct best {
	struct plan plan; /* the trial it was found in */
	struct played played;
	double worth;
	bool found;
	double least_s, least_harm; /* of the shortest that was played: what the arrival tells of the price */
};

static bool is_better(const struct played *a, double worth, const struct best *b)
{
	return !b->found || worth > b->worth || (worth == b->worth && a->end_ns < b->played.end_ns);
}

/* What the system gets of the job as it was just played; -INFINITY: less than it takes. */
static double worth_of(struct oracle *o, int64_t now_ns, const struct planned *j, const struct played *a,
		       struct best *io)
{
	double accuracy = isnan(a->accuracy) ? 0.0 : a->accuracy, run_s = seconds(a->start_ns, a->end_ns);
	double harm, cost;

	if (!o->p->policy->priced)
		return accuracy;
	harm = harm_of(o, now_ns, j->job);
	cost = harm + price_at(&o->price, now_ns) * cpus_of(o, j->job) * run_s;
	if (!(io->least_s <= run_s)) {
		io->least_s = run_s;
		io->least_harm = harm;
	}
	if (!(cost > 0.0)) /* nobody is harmed: the most accurate */
		return accuracy;
	accuracy *= chance_of(o, j->job, now_ns, a->end_ns);
	return accuracy > cost || j->deadline_ns == WORLD_NEVER ? accuracy - cost : -INFINITY;
}

/* All pairs of batch and epochs, each in its best place; of those that break no promise the one that is worth
 * most. */
static int find_best(struct oracle *o, int64_t now_ns, struct planned j, struct best *io, struct err *err)
{
	const struct bound_kind *k = &o->kinds.kind[o->p->trace->job[j.job].kind];
	int status = 0;

	for (size_t b = 0; b < k->n_batches; b++)
		for (size_t e = 0; !status && e < (k->n_epochs ? k->n_epochs : 1); e++) {
			struct played played;
			bool holds;
			double worth;

			j.batch = k->batch[b];
			j.epochs = k->n_epochs ? k->epochs[e] : NAN;
			status = find_place(o, now_ns, &j, &played, &holds, err);
			if (status || !holds)
				continue;
			worth = worth_of(o, now_ns, &j, &played, io);
			if (isinf(worth) || !is_better(&played, worth, io))
				continue;
			status = plan_copy(&io->plan, &o->trial, 0, err);
			io->played = played;
			io->worth = worth;
			io->found = true;
		}
	return status;
}

/* A job that waits until all others have ended breaks no promise. */
static int put_last(struct oracle *o, int64_t now_ns, struct planned j, struct best *io, struct err *err)
{
	const struct bound_kind *k = &o->kinds.kind[o->p->trace->job[j.job].kind];
	struct played played;
	int status = plan_copy(&o->trial, &o->plan, 1, err);

	if (!status)
		status = play_trial(o, now_ns, NO_JOB, &played, err);
	if (status)
		return status;
	j.after = played.last;
	j.batch = k->batch[k->n_batches - 1];
	j.epochs = k->n_epochs ? k->epochs[0] : NAN;
	plan_insert(&o->trial, o->trial.n, &j);
	status = play_trial(o, now_ns, j.job, &io->played, err);
	if (!status)
		status = plan_copy(&io->plan, &o->trial, 0, err);
	io->found = !status;
	return status;
}

/* ---- the brain ---- */

static int oracle_arrive(void *self, int64_t now_ns, size_t job, struct outcome *io, struct err *err)
{
	struct oracle *o = self;
	const struct trace_job *t = &o->p->trace->job[job];
	struct planned j = { .job = job, .after = NO_JOB, .deadline_ns = brain_deadline_ns(t) };
	struct best best = { .least_s = INFINITY };
	int status = 0;

	io->state = OUTCOME_REJECTED;
	if (cpus_of(o, job) > o->slots)
		return 0;
	o->fate[job].deadline_ns = j.deadline_ns;
	if (o->p->policy->priced)
		status = play_before(o, now_ns, job, err);
	if (!status)
		status = find_best(o, now_ns, j, &best, err);
	if (!status && best.least_s > 0.0 && !isinf(best.least_s))
		price_see(&o->price, now_ns, best.least_harm / (cpus_of(o, job) * best.least_s));
	io->promised = best.found && j.deadline_ns != WORLD_NEVER;
	if (!status && !best.found && (t->best_effort || j.deadline_ns == WORLD_NEVER)) {
		o->fate[job].deadline_ns = j.deadline_ns = WORLD_NEVER;
		status = find_best(o, now_ns, j, &best, err);
		if (!status && !best.found)
			status = put_last(o, now_ns, j, &best, err);
	}
	if (!status && best.found)
		status = plan_copy(&o->plan, &best.plan, 0, err);
	free(best.plan.job);
	if (status || !best.found)
		return status;
	io->promised_s = io->promised_upper_s = 1e-9 * (double)(best.played.end_ns - now_ns);
	o->fate[job].run_s = 1e-9 * (double)(best.played.end_ns - best.played.start_ns);
	o->fate[job].accuracy = best.played.accuracy;
	return 0;
}

static bool oracle_next(void *self, int64_t now_ns, struct brain_start *out)
{
	struct oracle *o = self;
	size_t at = startable(o, &o->plan, o->used, 0);
	const struct planned *j;

	(void)now_ns;
	if (at == o->plan.n)
		return false;
	j = &o->plan.job[at];
	*out = (struct brain_start){ .job = j->job,
				     .batch = j->batch,
				     .epochs = j->epochs,
				     .run_s = o->fate[j->job].run_s,
				     .run_upper_s = NAN, /* it bounds nothing: it knows */
				     .predicted_accuracy = o->fate[j->job].accuracy };
	o->used += cpus_of(o, j->job);
	plan_remove(&o->plan, at);
	return true;
}

static int oracle_ended(void *self, int64_t now_ns, size_t job, bool failed, double run_s, struct err *err)
{
	struct oracle *o = self;

	(void)now_ns, (void)failed, (void)run_s, (void)err;
	o->fate[job].ended = true;
	o->used -= cpus_of(o, job);
	return 0;
}

static size_t oracle_waiting(void *self)
{
	return ((const struct oracle *)self)->plan.n;
}

const struct brain_ops brain_oracle = {
	.make = oracle_make,
	.destroy = oracle_destroy,
	.arrive = oracle_arrive,
	.next = oracle_next,
	.ended = oracle_ended,
	.waiting = oracle_waiting,
};
