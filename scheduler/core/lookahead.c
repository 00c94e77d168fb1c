/* The decision's look ahead: the jobs that run and wait are played forward (queueing/fluid.h) without the
 * candidate and with it. From the two come its wait, the load it will meet, its time under that load, and
 * what it does to the others.
 *
 * A candidate's time depends on the load, the load on who is still there, and that on its time. So:
 *   1. T0, its time alone, and the play without it. It is the last in the queue, so nothing before its start
 *      depends on it: its wait follows from that play.
 *   2. The load (processes P and jobs n, means over its life) from the play without it; T at that load by the
 *      model; its work W = T / S(P), the seconds alone that would take T there. These are approximate numbers: the
 *      candidate slows the others down, so they stay longer than without it.
 *   3. A play with W; P and n from that play, T and W once more; where W has moved by more than WORK_MOVED, a
 *      second play.
 * Its time is end - start of the last play, not the T of the model: so wait, time and delays come from one
 * picture, and the work that the job is kept with leads to the end that was promised. The two differ by what the
 * load varies about its mean, and by the step that was not made. The bound is the model's at the row (n, P), around
 * that time.
 *
 * Errors of the machine are shared by all: if this job is slow, so were those before it. A wait is therefore
 * stretched by the same ratio, upper over expected, as the job itself.
 *
 * Playing everything costs candidates x plays x jobs. Where that is too much, the candidates are taken in order of
 * preference by their approximate numbers, each is played once, and the first that holds is the choice; the others
 * keep approximate numbers (delays_s NaN). When none holds, those that need least are played until one breaks
 * no promise, so that the smallest objective is one that would be taken. */
#include <math.h>
#include <stdlib.h>

#include "common/heap.h"
#include "common/mem.h"
#include "scheduler/core/decide_internal.h"

#define PLAY_ALL 1024 /* jobs x candidates: 0.5 ms of plays, measured */
#define WORK_MOVED 1e-3
#define SAME 1e-9 /* ends are good to 1e-11 of themselves, deadlines to a nanosecond */

struct decide_scratch {
	size_t max_jobs;
	struct fluid_workspace *workspace;
	struct fluid_times *without, *with;
	struct heap ends;
};

int decide_scratch_new(size_t max_jobs, struct decide_scratch **out, struct err *err)
{
	struct decide_scratch *w = mem_calloc(1, sizeof *w);
	int rc = 0;

	if (w) {
		w->max_jobs = max_jobs;
		w->without = mem_array(max_jobs + 1, sizeof *w->without);
		w->with = mem_array(max_jobs + 1, sizeof *w->with);
	}
	if (!w || !w->without || !w->with || heap_reserve(&w->ends, max_jobs + 1))
		rc = err_fail(err, ERR_NOMEM, "no memory for a look-ahead over %zu jobs", max_jobs);
	if (!rc)
		rc = fluid_workspace_new(max_jobs + 1, &w->workspace, err);
	if (rc)
		decide_scratch_free(w);
	else
		*out = w;
	return rc;
}

void decide_scratch_free(struct decide_scratch *w)
{
	if (!w)
		return;
	fluid_workspace_free(w->workspace);
	heap_release(&w->ends);
	free(w->without);
	free(w->with);
	free(w);
}

int decide_play(struct decide_scratch *w, const struct fluid_scene *f, const struct fluid_times **out,
		struct err *err)
{
	int status = fluid_play(f, NULL, w->workspace, w->without, err);

	if (!status)
		*out = w->without;
	return status;
}

struct look {
	struct decide_rows *rows;
	const struct decide_scene *s;
	struct decide_scratch *w;
	struct decision *d;
	double q;
	size_t n; /* neighbours */
	double wait_s; /* of the candidate, whatever its work */
	double most; /* processes there can be at a time */
};

/* ---- without the candidate ---- */

static const struct fluid_job *job_at(const struct decide_scene *s, size_t i)
{
	return i < s->n_running ? &s->running[i] : &s->queued[i - s->n_running];
}

/* When the candidate starts: the last of the queue has started, and its slots are free. */
static double find_wait_s(struct look *l)
{
	const struct decide_scene *s = l->s;
	const struct fluid_times *t = l->w->without;
	double last_s = 0.0;
	uint64_t held = 0;
	struct heap_entry first;

	if (s->starting)
		return 0.0;
	for (size_t i = s->n_running; i < l->n; i++)
		last_s = fmax(last_s, t[i].start_s);
	heap_reset(&l->w->ends);
	for (size_t i = 0; i < l->n; i++) {
		if (t[i].never || !(t[i].end_s > last_s))
			continue;
		held += job_at(s, i)->cpus;
		heap_push(&l->w->ends, t[i].end_s, (uint32_t)i);
	}
	while (held + s->cpus > s->machine.slots && heap_pop(&l->w->ends, &first)) {
		last_s = first.key;
		held -= job_at(s, first.payload)->cpus;
	}
	return last_s;
}

/* Adds what these jobs put between two moments, as means over that time. */
static void meet(const struct fluid_job *job, const struct fluid_times *t, size_t n, double from_s,
		 double to_s, struct decide_load *load)
{
	double jobs_s = 0.0, processes_s = 0.0;

	for (size_t i = 0; i < n; i++) { /* one that never starts has both times 0 */
		double from = t[i].start_s > from_s ? t[i].start_s : from_s;
		double to = t[i].end_s < to_s ? t[i].end_s : to_s;
		double both_s = to > from ? to - from : 0.0;

		jobs_s += both_s;
		processes_s += both_s * job[i].cpus;
	}
	load->njobs += jobs_s / (to_s - from_s);
	load->processes += processes_s / (to_s - from_s);
}

/* The load in which the candidate would run, as if it disturbed nobody. */
static struct decide_load load_without(const struct look *l, const struct candidate *c, double alone_s)
{
	const struct decide_scene *s = l->s;
	struct fluid_job job = decide_fluid_job(c, s->cpus);
	struct decide_load load = { .njobs = 1.0, .processes = s->cpus };
	double for_s = alone_s;

	for (int pass = 0; pass < 2 && for_s > 0.0 && l->n; pass++) {
		const struct fluid_times *t = l->w->without;
		double to_s = l->wait_s + for_s;

		if (!(to_s > l->wait_s) || isinf(to_s))
			break;
		load = (struct decide_load){ .njobs = 1.0, .processes = s->cpus };
		meet(s->running, t, s->n_running, l->wait_s, to_s, &load);
		meet(s->queued, t + s->n_running, s->n_queued, l->wait_s, to_s, &load);
		load.processes =
			fmin(load.processes, l->most); /* it holds slots that others had without it */
		for_s = alone_s * decide_stretch(&s->machine, &job, load.processes);
	}
	return load;
}

/* Upper bound over expected time; NaN without a bound. */
static double ratio_of(const struct candidate *c)
{
	return c->time_s > 0.0 ? c->upper_s / c->time_s : c->upper_s * 0.0 + 1.0;
}

static void approximate(struct look *l)
{
	const struct decide_scene *s = l->s;
	struct decision *d = l->d;
	struct decide_load load[DECIDE_MAX_CANDIDATES];

	for (size_t i = 0; i < d->n_candidates; i++)
		load[i] = (struct decide_load){ .njobs = 1.0, .processes = s->cpus };
	decide_predict_all(l->rows, load, l->q, d);
	for (size_t i = 0; i < d->n_candidates; i++)
		load[i] = load_without(l, &d->candidate[i], d->candidate[i].time_s);
	if (l->n)
		decide_predict_all(l->rows, load, l->q, d);
	for (size_t i = 0; i < d->n_candidates; i++) {
		struct candidate *c = &d->candidate[i];

		c->work_s = decide_work_s(s, c, c->time_s, load[i].processes);
		c->wait_s = l->wait_s;
		c->wait_upper_s = l->wait_s > 0.0 ? l->wait_s * ratio_of(c) : 0.0;
		c->delays_s = NAN;
	}
}

/* ---- with it ---- */

/* Index, in a play with the candidate, of neighbour i, and of the candidate itself. */
static size_t seat_of(const struct decide_scene *s, size_t i)
{
	return i + (s->starting && i >= s->n_running);
}

static size_t own_seat(const struct look *l)
{
	return l->s->starting ? l->s->n_running : l->n;
}

static int play(struct look *l, const struct fluid_job *candidate, struct fluid_times *out, struct err *err)
{
	const struct decide_scene *s = l->s;
	struct fluid_scene f = { .machine = s->machine,
				 .running = s->running,
				 .n_running = s->n_running,
				 .queued = s->queued,
				 .n_queued = s->n_queued };

	if (candidate && s->starting) {
		s->running[f.n_running++] = *candidate;
		candidate = NULL;
	}
	return fluid_play(&f, candidate, l->w->workspace, out, err);
}

/* What it met in the play just made. */
static struct decide_load load_with(const struct look *l)
{
	const struct decide_scene *s = l->s;
	const struct fluid_times *t = l->w->with, *own = &t[own_seat(l)];
	struct decide_load load = { .njobs = 1.0, .processes = s->cpus };

	if (!(own->end_s > own->start_s))
		return load;
	meet(s->running, t, s->n_running, own->start_s, own->end_s, &load);
	meet(s->queued, t + seat_of(s, s->n_running), s->n_queued, own->start_s, own->end_s, &load);
	return load;
}

/* A promise counts as broken where its bound was in time and is not any more, and likewise its expected end: one
 * whose bound is already past the deadline is still worth keeping. */
static bool breaks(const struct decide_neighbour *n, double without_s, double with_s)
{
	double deadline_s = n->deadline_s + SAME * fabs(n->deadline_s) + SAME;
	double ratio = isnan(n->ratio) ? 1.0 : n->ratio;

	return (without_s * ratio <= deadline_s && with_s * ratio > deadline_s) ||
	       (without_s <= deadline_s && with_s > deadline_s);
}

static void note_effects(const struct look *l, struct candidate *c)
{
	const struct fluid_times *without = l->w->without, *with = l->w->with;

	c->delays_s = 0.0;
	c->breaks = 0;
	c->reasons &= ~(unsigned)REASON_BREAKS_PROMISE;
	for (size_t i = 0; i < l->n; i++) {
		const struct fluid_times *before = &without[i], *after = &with[seat_of(l->s, i)];
		double delay_s = after->end_s - before->end_s;

		if (delay_s > c->delays_s && delay_s > SAME * after->end_s)
			c->delays_s = delay_s;
		if (!c->breaks && !before->never && breaks(&l->s->neighbour[i], before->end_s, after->end_s))
			c->breaks = l->s->neighbour[i].id;
	}
	if (c->breaks)
		c->reasons |= REASON_BREAKS_PROMISE;
}

/* Plays candidate c, at most `plays` times, and judges it by what comes out. */
static int play_candidate(struct look *l, struct candidate *c, int plays, struct err *err)
{
	const struct decide_params *p = l->rows->p;
	const struct fluid_times *own = &l->w->with[own_seat(l)];
	double x[DECIDE_MAX_FEATURES];

	if (isnan(c->work_s)) {
		c->delays_s = 0.0; /* it has no time, so it is not taken, and delays nobody */
		return 0;
	}
	for (;;) {
		struct fluid_job job = decide_fluid_job(c, l->s->cpus);
		struct decide_load load;
		double work_s;
		int status = play(l, &job, l->w->with, err);

		if (status)
			return status;
		load = load_with(l);
		decide_predict_one(l->rows, &load, c, x);
		work_s = decide_work_s(l->s, c, c->time_s, load.processes);
		if (--plays == 0 || isnan(work_s) || fabs(work_s - c->work_s) <= WORK_MOVED * c->work_s)
			break;
		c->work_s = work_s;
	}
	if (!isnan(c->time_s))
		c->time_s = own->end_s - own->start_s;
	c->upper_s = isnan(l->q) || isnan(c->time_s)
			     ? NAN
			     : model_upper(p->model, &p->model->time, x, l->q, c->time_s);
	c->wait_s = own->start_s;
	c->wait_upper_s = c->wait_s > 0.0 ? c->wait_s * ratio_of(c) : 0.0;
	note_effects(l, c);
	decide_judge(p, c);
	return 0;
}

static int play_all(struct look *l, struct err *err)
{
	for (size_t i = 0; i < l->d->n_candidates; i++) {
		int status = play_candidate(l, &l->d->candidate[i], 2, err);

		if (status)
			return status;
	}
	return 0;
}

/* The one that needs least among those not played yet; -1 once one that was played breaks no promise, or all
 * were. */
static int next_to_promise(const struct look *l)
{
	double least_s = INFINITY;
	int least = -1;

	for (size_t i = 0; i < l->d->n_candidates; i++) {
		const struct candidate *c = &l->d->candidate[i];
		double needed_s = decide_needed_s(l->rows->p, c);

		if (c->reasons & REASONS_HARD || isnan(c->time_s))
			continue;
		if (!isnan(c->delays_s))
			return -1;
		if (isnan(needed_s))
			needed_s = c->wait_s +
				   c->time_s; /* no bound: the fastest may yet go without a promise */
		if (least < 0 || needed_s < least_s) {
			least = (int)i;
			least_s = needed_s;
		}
	}
	return least;
}

static int play_sparingly(struct look *l, struct err *err)
{
	struct decision *d = l->d;
	int i, status;

	for (size_t k = 0; k < d->n_candidates; k++)
		decide_judge(l->rows->p, &d->candidate[k]);
	while ((i = decide_best(l->rows->p, d)) >= 0) {
		if (!isnan(d->candidate[i].delays_s))
			return 0;
		status = play_candidate(l, &d->candidate[i], 1, err);
		if (status)
			return status;
	}
	while ((i = next_to_promise(l)) >= 0) {
		status = play_candidate(l, &d->candidate[i], 1, err);
		if (status)
			return status;
	}
	return 0;
}

int decide_look_ahead(struct decide_rows *rows, double q, struct decision *d, struct err *err)
{
	const struct decide_scene *s = rows->p->scene;
	struct look l = {
		.rows = rows, .s = s, .w = s->scratch, .d = d, .q = q, .n = s->n_running + s->n_queued
	};
	double held = s->cpus;
	int status;

	if (l.n > l.w->max_jobs)
		return err_fail(err, ERR_ARG, "a scene of %zu jobs, and scratch for %zu", l.n, l.w->max_jobs);
	for (size_t i = 0; i < s->n_running; i++)
		held += s->running[i].cpus;
	l.most = fmax(held, s->machine.slots);
	if (s->cpus > s->machine.slots && !s->starting) { /* it never starts: its times alone have to do */
		l.n = 0;
		approximate(&l);
		return 0;
	}
	status = play(&l, NULL, l.w->without, err);
	if (status)
		return status;
	l.wait_s = find_wait_s(&l);
	approximate(&l);
	return (l.n + 1) * d->n_candidates <= PLAY_ALL ? play_all(&l, err) : play_sparingly(&l, err);
}
