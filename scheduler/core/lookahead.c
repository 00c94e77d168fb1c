/* The decision's look ahead: the jobs that run and wait are played forward (queueing/fluid.h) without the
 * candidate and with it. From the two plays follow its wait, the load it will meet, its time under that load,
 * and what it does to the others.
 *
 * A candidate's time depends on the load, the load on the jobs that are still there, and that on its time.
 * So:
 *   1. T0 is its time alone. The play without it is made, or the scheduler knows it already. The jobs that
 *      start before it do not depend on it, so its wait follows, except for what those behind it did to them.
 *   2. The load (processes P and jobs n, means over its life) comes from the play without it, T at that load
 *      from the model, and its work is W = T / S(P), the seconds alone that would take T there. These numbers
 *      are approximate: the candidate slows the others down, so they stay longer than without it.
 *   3. A play with W gives P and n, and from these T and W once more. If W has moved by more than WORK_MOVED,
 *      there is a second play.
 * Its time is end - start of the last play, not the T of the model. So wait, time and delays come from one
 * picture, and the work that the job is kept with leads to the end that was promised. The two differ by how
 * the load varies about its mean, and by the step that was not made. The bound is the model's at the row (n,
 * P), around that time.
 *
 * Errors of the machine are shared by all jobs: if this job is slow, so were those before it. A wait is
 * therefore stretched by the same ratio, upper over expected, as the job itself.
 *
 * Playing everything costs candidates x plays x jobs. If that is too much, candidates are taken in order of
 * preference by their approximate numbers, each is played once, and the first that holds is the choice. The
 * others keep approximate numbers (delays_s NaN). If none holds, those that need least are played until one
 * breaks no promise, so that the smallest limit is one that would be taken. If there are very many
 * candidates (pairs of batches and epochs), those with almost as much work as one that failed are left out,
 * and after MOST_PLAYS all but the fastest. A play that is not worth making whole ends when the candidate has
 * ended and every job whose promise could be in question. Jobs whose deadlines lie behind the last possible
 * end (bound_on_ends()) are not in question.
 *
 * All candidates have the same seat and as many cpus, so that until the shorter of two ends, other jobs see
 * no difference. After a play, the numbers of one that ends sooner therefore follow without another
 * (derive_candidate()). Where limits are just missed, several candidates look in time by their
 * approximate numbers and are not; they cost one play instead of one each. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/decide_internal.h"
#include "scheduler/core/policy/price.h"

#define MOST_PLAYS 12
#define MUCH_LESS_WORK 0.9 /* than one that failed: worth a play */
#define WORK_MOVED 1e-3
#define SAME 1e-9 /* ends are good to 1e-11 of themselves, deadlines to a nanosecond */

struct look {
	struct decide_rows *rows;
	const struct decide_scene *s;
	struct decide_scratch *w;
	struct decision *d;
	const struct fluid_times *before; /* by seat */
	size_t n, seat; /* seats, and that of the candidate */
	double wait_s; /* of the candidate, whatever its work */
	double most; /* processes there can be at a time */
	bool whole; /* plays are made to their end */
	bool has_play; /* the last play, in w->with, had a candidate in the seat */
	uint32_t play_devices; /* that this candidate held */
};

/* ---- without the candidate ---- */

static const struct fluid_job *job_at(const struct decide_scene *s, size_t seat)
{
	size_t running = s->n_running + s->starting;

	return seat < running ? &s->running[seat] : &s->queued[seat - running];
}

static uint32_t fewest_devices(const struct decision *d)
{
	uint32_t fewest = d->n_candidates ? d->candidate[0].devices : 0;

	for (size_t i = 1; i < d->n_candidates; i++)
		fewest = d->candidate[i].devices < fewest ? d->candidate[i].devices : fewest;
	return fewest;
}

/* When the candidate starts: those before it have started, the one it waits for has ended, and its slots are
 * free, and as many devices as the most modest candidate wants. */
static double find_wait_s(struct look *l)
{
	const struct decide_scene *s = l->s;
	const struct fluid_times *t = l->before;
	double last_s = 0.0;
	uint64_t held = 0, held_devices = 0, devices = fewest_devices(l->d);
	struct heap_entry first;

	if (s->starting)
		return 0.0;
	if (devices > s->machine.devices)
		devices = s->machine.devices;
	if (s->after)
		last_s = t[s->after - 1].end_s;
	for (size_t i = s->n_running; i < l->seat; i++)
		if (devices || !job_at(s, i)->devices) /* else it may pass one that waits for devices */
			last_s = fmax(last_s, t[i].start_s);
	heap_reset(&l->w->ends);
	for (size_t i = 0; i < l->seat; i++) {
		if (t[i].never || !(t[i].end_s > last_s))
			continue;
		held += job_at(s, i)->cpus;
		held_devices += job_at(s, i)->devices;
		heap_push(&l->w->ends, t[i].end_s, (uint32_t)i);
	}
	while ((held + s->cpus > s->machine.slots || held_devices + devices > s->machine.devices) &&
	       heap_pop(&l->w->ends, &first)) {
		last_s = first.key;
		held -= job_at(s, first.payload)->cpus;
		held_devices -= job_at(s, first.payload)->devices;
	}
	return last_s;
}

/* The candidate and the processes that are not ours. */
static struct decide_load load_alone(const struct decide_scene *s)
{
	return (struct decide_load){ .njobs = 1.0 + s->other_load,
				     .processes = s->cpus + s->other_load,
				     .slow = 1.0 };
}

/* What a process of this job does to the candidate, beyond what one of its own kind does. */
static double disturbs(const struct decide_scene *s, const struct fluid_job *j)
{
	return s->own_feels && j->kind ? s->kinds->slow[j->kind - 1][s->own_feels - 1] : 0.0;
}

/* Adds what these jobs put between two moments, as means over that time; to `slow` that of their
 * processes. */
static void meet(const struct decide_scene *s, const struct fluid_job *job, const struct fluid_times *t,
		 size_t n, double from_s, double to_s, struct decide_load *load)
{
	double jobs_s = 0.0, processes_s = 0.0, slow_s = 0.0;

	for (size_t i = 0; i < n; i++) { /* one that never starts has both times 0 */
		double from = t[i].start_s > from_s ? t[i].start_s : from_s;
		double to = t[i].end_s < to_s ? t[i].end_s : to_s;
		double both_s = to > from ? to - from : 0.0;

		jobs_s += both_s;
		processes_s += both_s * job[i].cpus;
		if (s->kinds)
			slow_s += both_s * job[i].cpus * disturbs(s, &job[i]);
	}
	load->slow += slow_s / (to_s - from_s);
	load->njobs += jobs_s / (to_s - from_s);
	load->processes += processes_s / (to_s - from_s);
}

/* From the sum over processes to the factor: they count by the part of the machine that they hold. */
static void settle_slow(const struct decide_scene *s, struct decide_load *load)
{
	if (s->kinds)
		load->slow = 1.0 + (load->slow - 1.0) / fmax(s->kinds->room, load->processes);
}

/* What the candidate meets between two moments, itself and the processes of others included; its own seat in
 * t has no times. */
static struct decide_load load_between(const struct look *l, const struct fluid_times *t, double from_s,
				       double to_s)
{
	const struct decide_scene *s = l->s;
	size_t running = s->n_running + s->starting;
	struct decide_load load = load_alone(s);

	if (to_s > from_s && !isinf(to_s)) {
		meet(s, s->running, t, running, from_s, to_s, &load);
		meet(s, s->queued, t + running, l->n - running, from_s, to_s, &load);
		settle_slow(s, &load);
	}
	return load;
}

/* The load in which the candidate would run if it did not slow other jobs down. */
static struct decide_load load_without(const struct look *l, const struct candidate *c, double alone_s)
{
	const struct decide_scene *s = l->s;
	struct fluid_job job = decide_fluid_job(c, s->cpus);
	struct decide_load load = load_alone(s);
	double for_s = alone_s;

	for (int pass = 0; pass < 2 && for_s > 0.0 && l->n > 1; pass++) {
		load = load_between(l, l->before, l->wait_s, l->wait_s + for_s);
		load.processes =
			fmin(load.processes, l->most); /* it holds slots that others had without it */
		for_s = alone_s * decide_stretch(&s->machine, &job, load.processes) * load.slow;
	}
	return load;
}

/* The load of the moment, and the candidate in it. */
static struct decide_load load_now(const struct look *l)
{
	const struct decide_scene *s = l->s;
	struct decide_load load = load_alone(s);

	load.njobs += (double)s->n_running;
	for (size_t i = 0; i < s->n_running; i++) {
		load.processes += s->running[i].cpus;
		if (s->kinds)
			load.slow += s->running[i].cpus * disturbs(s, &s->running[i]);
	}
	settle_slow(s, &load);
	load.processes = fmin(load.processes, l->most);
	return load;
}

/* Upper bound over expected time; NaN without a bound. */
static double ratio_of(const struct candidate *c)
{
	return c->time_s > 0.0 ? c->guard_s / c->time_s : c->guard_s * 0.0 + 1.0;
}

static void approximate(struct look *l)
{
	const struct decide_scene *s = l->s;
	struct decision *d = l->d;
	struct decide_load *load = l->w->load;
	bool others = l->n > 1;

	for (size_t i = 0; i < d->n_candidates; i++) {
		load[i] = load_alone(s);
		l->w->has_errors[i] = true;
	}
	decide_predict_all(l->rows, load, d, others, l->w->errors);
	for (size_t i = 0; i < d->n_candidates; i++) {
		struct candidate *c = &d->candidate[i];

		if (others)
			load[i] = l->before ? load_without(l, c, c->time_s) : load_now(l);
		c->wait_s = l->wait_s;
	}
	if (others)
		decide_predict_all(l->rows, load, d, false, l->w->errors);
	for (size_t i = 0; i < d->n_candidates; i++) {
		struct candidate *c = &d->candidate[i];
		double processes = others || l->before ? load[i].processes : load_now(l).processes;

		if (!l->whole) { /* else a play says it */
			decide_bound(l->rows, &l->w->errors[i], c);
			c->chance = decide_chance(l->rows, c);
		}
		c->work_s = decide_work_s(s, c, c->time_s, processes);
		if (load[i].slow != 1.0) {
			c->time_s *= load[i].slow;
			c->model_s *= load[i].slow;
			c->guard_s *= load[i].slow;
		}
		c->wait_upper_s = l->wait_s > 0.0 ? l->wait_s * ratio_of(c) : 0.0;
		c->delays_s = NAN;
		c->behind = s->after ? s->neighbour[s->after - 1].id : 0;
	}
}

/* ---- with it ---- */

/* Plays the scene with the job in the seat; NULL: the seat stays empty. */
static int play(const struct decide_scene *s, const struct fluid_job *job, const bool *wanted,
		struct fluid_times *out, struct err *err)
{
	struct fluid_scene f = { .machine = s->machine,
				 .running = s->running,
				 .n_running = s->n_running + s->starting,
				 .queued = s->queued,
				 .n_queued = s->n_queued + !s->starting,
				 .group = s->group,
				 .n_groups = s->n_groups,
				 .other_load = s->other_load,
				 .kinds = s->kinds,
				 .watched = s->own_feels,
				 .wanted = wanted };
	struct fluid_job *seat = s->starting ? &s->running[s->n_running] : &s->queued[s->position];

	if (job) {
		*seat = *job;
		seat->after = s->after;
		seat->group = s->own_group;
		seat->kind = s->own_kind;
		seat->feels = s->own_feels;
	} else { /* one that is over at once, or passed over */
		*seat = (struct fluid_job){ .cpus = s->starting ? 1 : UINT32_MAX };
	}
	return fluid_play(&f, NULL, s->scratch->workspace, out, err);
}

/* What a job in the seat met in the play just made, if it had these times. */
static struct decide_load load_with(const struct look *l, struct fluid_times own)
{
	struct fluid_times *t = l->w->with, played = t[l->seat];
	struct decide_load load;

	t[l->seat] = (struct fluid_times){ 0 };
	load = load_between(l, t, own.start_s, own.end_s);
	t[l->seat] = played;
	return load;
}

static double deadline_s(const struct decide_neighbour *n)
{
	return n->deadline_s + SAME * fabs(n->deadline_s) + SAME;
}

/* It is expected to end then, and could end so early: it steers. */
static double soonest_s(const struct decide_neighbour *n, double end_s)
{
	return n->way > 0.0 ? end_s * n->way : end_s;
}

double decide_chance_at(const struct decide_neighbour *n, double end_s)
{
	return belief_chance((struct belief){ soonest_s(n, end_s), n->spread }, n->until_s);
}

double decide_worth_at(const struct decide_neighbour *n, double end_s)
{
	double faster_s = fmin(fmax(end_s - n->until_s, 0.0), end_s - soonest_s(n, end_s));

	return n->worth * decide_chance_at(n, end_s) - (faster_s > 0.0 ? n->per_s * faster_s : 0.0);
}

bool decide_in_time(const struct decide_neighbour *n, double end_s)
{
	return end_s * (isnan(n->ratio) ? 1.0 : n->ratio) <= deadline_s(n);
}

/* A promise is broken if its bound was in time and is not any more. The same goes for its expected end: a
 * promise whose bound is already past the deadline is still worth keeping. */
static bool breaks(const struct decide_neighbour *n, const struct fluid_times *before,
		   const struct fluid_times *after)
{
	if (before->never)
		return false;
	if (n->guarded && after->start_s > before->start_s + SAME * before->start_s + SAME)
		return true;
	if (isinf(n->deadline_s))
		return false;
	return (decide_in_time(n, before->end_s) && !decide_in_time(n, after->end_s)) ||
	       (soonest_s(n, before->end_s) <= deadline_s(n) && soonest_s(n, after->end_s) > deadline_s(n));
}

static double most_slow(const struct decide_scene *s, uint16_t feels)
{
	return feels ? s->kinds->most[feels - 1] : 0.0;
}

/* No play with the candidate lasts longer. One after another they would end by the sum of their times among
 * the most processes there can be. Without quotas, while a job waits for slots, fewer are free than the
 * widest job wants, and the same goes for devices; a job that waits for an end waits while that other job
 * runs. */
static double bound_on_ends(const struct look *l, const struct fluid_job *candidate)
{
	const struct decide_scene *s = l->s;
	double sum_s = 0.0, longest_s = 0.0, slot_s = 0.0, device_s = 0.0, afters = s->after > 0, busy;
	uint32_t widest = 1, most_devices = 1;

	for (size_t i = 0; i < l->n; i++) {
		const struct fluid_job *j = i == l->seat ? candidate : job_at(s, i);
		double time_s;

		if ((j->cpus > s->machine.slots || j->devices > s->machine.devices) &&
		    i >= s->n_running + s->starting)
			continue;
		time_s = j->work_s * decide_stretch(&s->machine, j, l->most);
		if (s->kinds)
			time_s *= 1.0 + most_slow(s, i == l->seat ? s->own_feels : j->feels);
		sum_s += time_s;
		slot_s += time_s * j->cpus;
		device_s += time_s * j->devices;
		most_devices = j->devices > most_devices ? j->devices : most_devices;
		longest_s = time_s > longest_s ? time_s : longest_s;
		widest = j->cpus > widest ? j->cpus : widest;
		afters += j->after > 0;
	}
	busy = (double)s->machine.slots - widest + 1.0;
	if (s->own_group || busy < 1.0 || (device_s > 0.0 && most_devices > s->machine.devices))
		return sum_s;
	if (device_s > 0.0) /* a span in which a job waits for slots, or one in which it waits for devices */
		device_s /= (double)s->machine.devices - most_devices + 1.0;
	return fmin(sum_s, slot_s / busy + device_s + (1.0 + afters) * longest_s);
}

/* Whom a play with this candidate has to follow to the end. */
static const bool *find_wanted(const struct look *l, const struct fluid_job *candidate)
{
	const struct decide_scene *s = l->s;
	bool *wanted = l->w->wanted;
	double last_s;

	if (l->whole)
		return NULL;
	last_s = bound_on_ends(l, candidate) * (1.0 + SAME);
	for (size_t i = 0; i < l->n; i++) {
		const struct decide_neighbour *n = &s->neighbour[i];

		wanted[i] =
			i == l->seat || n->guarded ||
			(!isinf(n->deadline_s) && !(decide_in_time(n, last_s) && last_s <= n->deadline_s));
	}
	return wanted;
}

/* What a delay takes from a job that is there. */
static double harm_to(const struct decide_neighbour *n, double before_s, double with_s)
{
	if (isinf(n->until_s) || !(n->worth > 0.0) || !(with_s > 0.2 * n->until_s)) /* in time by far */
		return 0.0;
	return decide_worth_at(n, before_s) - decide_worth_at(n, with_s);
}

/* Jobs that are not wanted count if they ended before the candidate, whose end is end_s. */
static void note_effects(const struct look *l, struct candidate *c, double end_s)
{
	const struct fluid_times *before = l->before, *with = l->w->with;
	bool priced = l->s->policy->policy->priced;

	c->delays_s = c->harm = 0.0;
	c->breaks = 0;
	c->reasons &= ~(unsigned)REASON_BREAKS_PROMISE;
	for (size_t i = 0; i < l->n; i++) {
		double delay_s = with[i].end_s - before[i].end_s;

		if (i == l->seat || (!l->whole && !l->w->wanted[i] && with[i].end_s > end_s))
			continue;
		if (delay_s > c->delays_s && delay_s > SAME * with[i].end_s)
			c->delays_s = delay_s;
		if (priced && !before[i].never && fabs(delay_s) > SAME * with[i].end_s)
			c->harm += harm_to(&l->s->neighbour[i], before[i].end_s, with[i].end_s);
		if (!c->breaks && breaks(&l->s->neighbour[i], &before[i], &with[i]))
			c->breaks = l->s->neighbour[i].id;
	}
	c->harm = fmax(c->harm, 0.0); /* another order of starts may help more than it harms */
	if (c->breaks)
		c->reasons |= REASON_BREAKS_PROMISE;
}

/* Predicts a candidate under a load, unless its prediction is for that load already: on an idle machine the
 * first one is. x: its row; stays as it is if nothing is predicted. */
static void predict_under(const struct look *l, const struct decide_load *load, struct candidate *c,
			  double *x)
{
	size_t i = (size_t)(c - l->d->candidate);
	struct decide_load *have = &l->w->load[i];

	if (have->njobs == load->njobs && have->processes == load->processes && have->slow == 1.0)
		return;
	decide_predict_one(l->rows, load, c, x);
	*have = *load;
	l->w->has_errors[i] = false;
}

/* Judges a candidate by its own times and, if there is a play without it, by what it does to others. x: its
 * row under the load that it met, if predict_under() has made it. */
static void conclude_play(const struct look *l, struct candidate *c, const double *x,
			  const struct fluid_times *own)
{
	size_t i = (size_t)(c - l->d->candidate);
	struct model_errors e = l->w->has_errors[i] ? l->w->errors[i] : decide_errors_at(l->rows, x);

	l->w->load[i].njobs = NAN;
	if (!isnan(c->time_s)) {
		c->time_s = own->end_s - own->start_s;
		c->model_s = c->time_s /
			     l->rows->bias; /* so that what is learnt is about the time promised */
	}
	decide_bound(l->rows, &e, c);
	c->wait_s = own->start_s;
	c->wait_upper_s = c->wait_s > 0.0 ? c->wait_s * ratio_of(c) : 0.0;
	c->chance = decide_chance(l->rows, c);
	if (l->before)
		note_effects(l, c, own->end_s);
	decide_judge(l->rows->p, c);
}

/* Plays candidate c, at most `plays` times, and judges it by what comes out. */
static int play_candidate(struct look *l, struct candidate *c, int plays, struct err *err)
{
	const struct fluid_times *own = &l->w->with[l->seat];
	double x[DECIDE_MAX_FEATURES];

	l->w->played[c - l->d->candidate] = true;
	if (isnan(c->work_s)) {
		c->delays_s = 0.0; /* it has no time, so it is not taken, and delays no job */
		return 0;
	}
	for (;;) {
		struct fluid_job job = decide_fluid_job(c, l->s->cpus);
		struct decide_load load;
		double work_s;
		int status = play(l->s, &job, find_wanted(l, &job), l->w->with, err);

		if (status)
			return status;
		load = load_with(l, *own);
		predict_under(l, &load, c, x);
		work_s = decide_work_s(l->s, c, c->time_s, load.processes);
		if (--plays == 0 || isnan(work_s) || fabs(work_s - c->work_s) <= WORK_MOVED * c->work_s)
			break;
		c->work_s = work_s;
	}
	l->has_play = true;
	l->play_devices = c->devices;
	conclude_play(l, c, x, own);
	return 0;
}

static bool is_alone_wanted(const struct look *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (i != l->seat && l->w->wanted[i])
			return false;
	return true;
}

/* Finds the numbers of a candidate from the play of another, which lasted longer in the same seat: to the
 * others they are the same job, with as many devices, until the shorter one ends. What happens after that is
 * not known, so that it counts as played only if no promise can be in question. Returns false if the play was
 * too short. */
static bool derive_candidate(struct look *l, struct candidate *c)
{
	struct fluid_times own = l->w->with[l->seat];
	struct fluid_job job = decide_fluid_job(c, l->s->cpus);
	double x[DECIDE_MAX_FEATURES];
	struct decide_load load;
	bool harmless;

	if (!l->has_play || isnan(c->work_s) || own.never || c->devices != l->play_devices ||
	    !fluid_instead(l->w->workspace, &l->s->machine, &job, own.start_s, own.end_s, &own.end_s))
		return false;
	find_wanted(l, &job);
	harmless = is_alone_wanted(l);
	load = load_with(l, own);
	predict_under(l, &load, c, x);
	conclude_play(l, c, x, &own);
	l->w->played[c - l->d->candidate] = harmless;
	if (!harmless) { /* promises that look kept may yet break after its end, and the other way round */
		c->breaks = 0;
		c->harm = 0.0;
		c->delays_s = NAN;
		c->reasons &= ~(unsigned)REASON_BREAKS_PROMISE;
		decide_judge(l->rows->p, c);
	}
	return true;
}

/* Derives a candidate if that will do, or plays it. What it does to promises has to be known of one that is
 * in time by its own times, and of any other if `effects` is true. */
static int try_candidate(struct look *l, struct candidate *c, bool effects, struct err *err)
{
	c->reasons &= ~(unsigned)REASON_NOT_TRIED;
	if (derive_candidate(l, c) && (l->w->played[c - l->d->candidate] || (!c->feasible && !effects)))
		return 0;
	return play_candidate(l, c, 1, err);
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

		if (c->reasons & REASONS_HARD & ~(unsigned)REASON_NOT_TRIED || isnan(c->time_s))
			continue;
		if (l->w->played[i])
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

/* After one that failed: leaves out those that are not played yet and have more work than this. */
static void leave_out(struct look *l, const struct candidate *failed, double work_s)
{
	for (size_t i = 0; i < l->d->n_candidates; i++) {
		struct candidate *c = &l->d->candidate[i];

		if (!l->w->played[i] && c != failed && !(c->work_s <= work_s)) {
			c->reasons |= REASON_NOT_TRIED;
			c->feasible = false;
		}
	}
}

static int play_sparingly(struct look *l, struct err *err)
{
	struct decision *d = l->d;
	bool many = d->n_candidates > MOST_PLAYS;
	int i, status, plays = 0;

	for (size_t k = 0; k < d->n_candidates; k++)
		decide_judge(l->rows->p, &d->candidate[k]);
	while ((i = decide_best(l->rows->p, d)) >= 0) {
		double work_s = d->candidate[i].work_s;

		if (l->w->played[i])
			return 0;
		status = try_candidate(l, &d->candidate[i], false, err);
		if (status)
			return status;
		if (many && !d->candidate[i].feasible)
			leave_out(l, &d->candidate[i], ++plays < MOST_PLAYS ? MUCH_LESS_WORK * work_s : 0.0);
	}
	for (int k = 0; l->s->by_chance && k < MOST_PLAYS; k++) {
		i = decide_likeliest(d, 0.0, REASONS_NO_ROOM | REASON_BREAKS_PROMISE);
		if (i < 0 || l->w->played[i])
			break;
		status = try_candidate(l, &d->candidate[i], true, err);
		if (status)
			return status;
	}
	while ((i = next_to_promise(l)) >= 0) {
		status = try_candidate(l, &d->candidate[i], true, err);
		if (status)
			return status;
		if (many && ++plays >= 2 * MOST_PLAYS)
			break;
	}
	return 0;
}

/* Without a first play, all candidates get the wait of one that was played. */
static void share_wait(struct look *l)
{
	const struct candidate *from = NULL;
	const struct decide_load load = load_now(l);
	double x[DECIDE_MAX_FEATURES];
	struct model_errors e;

	for (size_t i = 0; i < l->d->n_candidates; i++)
		if (l->w->played[i] && !isnan(l->d->candidate[i].work_s))
			from = &l->d->candidate[i];
	for (size_t i = 0; i < l->d->n_candidates && from; i++) {
		struct candidate *c = &l->d->candidate[i];

		if (l->w->played[i])
			continue;
		c->wait_s = from->wait_s;
		c->wait_upper_s = c->wait_s > 0.0 ? c->wait_s * ratio_of(c) : 0.0;
		decide_predict_one(l->rows, &load, c, x); /* for the row */
		e = decide_errors_at(l->rows, x);
		decide_bound(l->rows, &e, c);
		c->chance = decide_chance(l->rows, c);
	}
}

int decide_look_ahead(struct decide_rows *rows, struct decision *d, struct err *err)
{
	const struct decide_scene *s = rows->p->scene;
	struct look l = { .rows = rows,
			  .s = s,
			  .w = s->scratch,
			  .d = d,
			  .before = s->before,
			  .n = s->n_running + s->n_queued + 1,
			  .seat = s->n_running + (s->starting ? 0 : s->position) };
	double held = s->cpus;
	int status = 0;

	if (l.n > l.w->max_jobs + 1)
		return err_fail(err, ERR_ARG, "a scene of %zu jobs, and scratch for %zu", l.n - 1,
				l.w->max_jobs);
	for (size_t i = 0; i < s->n_running; i++)
		held += s->running[i].cpus;
	l.most = fmax(held, s->machine.slots) + s->other_load;
	if ((s->cpus > s->most_cpus || fewest_devices(d) > s->most_devices) && !s->starting) {
		/* it never starts: its times alone have to do */
		l.n = 1;
		approximate(&l);
		return 0;
	}
	l.whole = l.n * d->n_candidates <= DECIDE_PLAY_ALL;
	for (size_t i = 0; i < d->n_candidates; i++)
		l.w->played[i] = false;
	if (!l.before && (l.whole || !s->indifferent)) {
		status = play(s, NULL, NULL, l.w->without, err);
		l.w->without[l.seat] = (struct fluid_times){ 0 };
		l.before = l.w->without;
	}
	if (status)
		return status;
	/* Where no play was made its seat is not written yet, and the means over all seats read it. */
	*(s->starting ? &s->running[s->n_running] : &s->queued[s->position]) =
		(struct fluid_job){ .cpus = 1 };
	l.wait_s = l.before ? find_wait_s(&l) : 0.0;
	approximate(&l);
	status = l.whole ? play_all(&l, err) : play_sparingly(&l, err);
	if (!l.before)
		share_wait(&l);
	return status;
}

int decide_probe(const struct decide_scene *s, const struct fluid_job *job, uint64_t *out_breaks,
		 struct fluid_times *out_own, struct err *err)
{
	struct decide_scratch *w = s->scratch;
	const struct fluid_times *before = s->before ? s->before : w->without;
	size_t n = s->n_running + s->n_queued + 1, seat = s->n_running + (s->starting ? 0 : s->position);
	int status = s->before ? 0 : play(s, NULL, NULL, w->without, err);

	if (!status)
		status = play(s, job, NULL, w->with, err);
	if (status)
		return status;
	*out_breaks = 0;
	for (size_t i = 0; i < n && !*out_breaks; i++)
		if (i != seat && breaks(&s->neighbour[i], &before[i], &w->with[i]))
			*out_breaks = s->neighbour[i].id;
	if (out_own)
		*out_own = w->with[seat];
	return 0;
}

/* ---- memory ---- */

int decide_scratch_new(size_t max_jobs, struct decide_scratch **out, struct err *err)
{
	struct decide_scratch *w = mem_calloc(1, sizeof *w);
	int rc = 0;

	if (w) {
		w->max_jobs = max_jobs;
		w->without = mem_array(max_jobs + 1, sizeof *w->without);
		w->with = mem_array(max_jobs + 1, sizeof *w->with);
		w->wanted = mem_array(max_jobs + 1, sizeof *w->wanted);
	}
	if (!w || !w->without || !w->with || !w->wanted || heap_reserve(&w->ends, max_jobs + 1))
		rc = err_nomem(err, "a look-ahead over %zu jobs", max_jobs);
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
	free(w->wanted);
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
