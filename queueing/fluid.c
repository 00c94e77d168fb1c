/* The fluid look-ahead: see fluid.h for the model. Events are ends and starts; between two events P, the
 * number of processes, is constant, and so is every job's speed 1/S(P).
 *
 * Work done since a moment is the integral of dt / S(P(t)), and S differs from job to job, so there is no
 * single virtual clock as in plain processor sharing. But away from the kink at P = cores, S is linear:
 * S(P) = fixed + slope P. Time is therefore cut into bands, in which P stays on one side of the kink and
 * within hi * 7/8 .. hi. With centre c of the band and x = (P - c) / c, |x| <= 1/15,
 *
 *     1 / S(P) = 1 / (S(c) (1 + lean x)) = speed * sum_m (-lean x)^m,   lean = slope c / S(c) in 0..1,
 *
 * so that the moments integral x^m dt, common to all jobs, give any job's work done at any time in a
 * constant number of operations. TERMS = 10 moments leave less than 15^-10 / (1 - 1/15) = 2e-12 of the
 * work.
 *
 * Which job ends next? A heap holds for each job the earliest time at which it could end while the band
 * lasts. Only those that could end before the best end known so far are looked at exactly; a look
 * multiplies the part of a job's remaining time that is uncertain by about 1/8, so a job is looked at
 * O(log n) times. A new band settles all running jobs. While a machine drains, P falls by 1/8 from band to
 * band: O(n log n) altogether. It is more only where single jobs make up an eighth of many running ones
 * and P swings with each of them; the worst case is n bands of n jobs.
 *
 * Where neighbours disturb by kind, jobs that feel alike share the factor between two events, so there are
 * moments for each kind, integral x^m / factor dt. Nothing else changes: the bound of a job's end uses the
 * least factor. */
#include "queueing/fluid.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define TERMS 10 /* even: the sum is taken in two halves */
#define BAND_FLOOR (7.0 / 8) /* of its top */
#define BAND_ABOVE (16.0 / 15) /* room above the present P, where queued jobs may fill it */

struct live { /* a running job */
	double work_s; /* left at the beginning of the band */
	double fixed, slope; /* S(P) on this side of the kink */
	double speed, lean; /* 1 / S(centre), and the part of S(centre) that grows with P */
	double least; /* S at the least P that the band and the job's own processes allow */
	double cpus;
	size_t feels;
};

struct bound {
	double bound_s; /* the job does not end before */
	uint32_t job;
};

struct imminent {
	double bound_s, end_s; /* it ends at end_s, unless P changes before */
	uint32_t job;
};

struct feel { /* what jobs that feel alike have in common */
	double disturbed; /* the sum of slow x processes */
	double slow, least; /* the factor on their times now, and the least there can be */
	double moment[TERMS];
};

struct fluid_workspace {
	size_t max_jobs;
	struct feel feel[1 + FLUID_MAX_KINDS]; /* the first one: no kind */
	struct live *live;
	struct bound *heap;
	struct imminent *front;
	uint32_t *begun;
};

struct play {
	const struct fluid_scene *scene;
	const struct fluid_job *candidate;
	struct live *live;
	struct bound *heap; /* the earliest on top */
	struct imminent *front; /* jobs that could be the next to end */
	uint32_t *begun; /* those that start now */
	size_t n_heap, n_front, n_begun;
	size_t next, n_jobs; /* all before `next` have started; and how many there are */
	size_t n_wanted; /* that have not ended yet */
	struct fluid_times *out;
	double now_s;
	uint64_t held; /* slots in use: P, as a whole number */
	uint64_t held_devices;
	double widest; /* cpus of a queued job, at most the slots */
	double processes, lo, hi, centre;
	bool crowded; /* P > cores: the other side of the kink */
	struct feel *feel;
	size_t n_feel;
};

/* Unlike fmin() and fmax() no calls; nothing here is NaN. */
static inline double lesser(double a, double b)
{
	return a < b ? a : b;
}

static inline double greater(double a, double b)
{
	return a > b ? a : b;
}

/* ---- the workspace ---- */

int fluid_workspace_new(size_t max_jobs, struct fluid_workspace **out, struct err *err)
{
	struct fluid_workspace *w;

	if (max_jobs > FLUID_MAX_JOBS)
		return err_fail(err, ERR_ARG, "a look-ahead over %zu jobs: at most %u", max_jobs,
				FLUID_MAX_JOBS);
	w = mem_calloc(1, sizeof *w);
	if (w) {
		size_t n = max_jobs ? max_jobs : 1;

		w->max_jobs = max_jobs;
		w->live = mem_array(n, sizeof *w->live);
		w->heap = mem_array(n, sizeof *w->heap);
		w->front = mem_array(n, sizeof *w->front);
		w->begun = mem_array(n, sizeof *w->begun);
	}
	if (!w || !w->live || !w->heap || !w->front || !w->begun) {
		fluid_workspace_free(w);
		return err_nomem(err, "a look-ahead over %zu jobs", max_jobs);
	}
	*out = w;
	return 0;
}

void fluid_workspace_free(struct fluid_workspace *w)
{
	if (!w)
		return;
	free(w->live);
	free(w->heap);
	free(w->front);
	free(w->begun);
	free(w);
}

/* ---- a heap with the smallest bound on top ----
 * Not that of common/: all keys change at once with the band, and equal ones need no order. */

static void sift_down(struct bound *heap, size_t n, size_t at, struct bound b)
{
	size_t child;

	for (; (child = 2 * at + 1) + 1 < n; at = child) {
		child += heap[child + 1].bound_s <
			 heap[child].bound_s; /* no branch: it would be a coin toss */
		if (!(heap[child].bound_s < b.bound_s))
			break;
		heap[at] = heap[child];
	}
	if (child + 1 == n && heap[child].bound_s < b.bound_s) {
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = b;
}

static void bound_push(struct play *p, struct bound b)
{
	size_t at = p->n_heap++;

	while (at && b.bound_s < p->heap[(at - 1) / 2].bound_s) {
		p->heap[at] = p->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	p->heap[at] = b;
}

static void bound_order(struct play *p)
{
	for (size_t i = p->n_heap / 2; i-- > 0;)
		sift_down(p->heap, p->n_heap, i, p->heap[i]);
}

/* ---- jobs and bands ---- */

static const struct fluid_job *job_at(const struct play *p, size_t i)
{
	const struct fluid_scene *s = p->scene;

	if (i < s->n_running)
		return &s->running[i];
	i -= s->n_running;
	return i < s->n_queued ? &s->queued[i] : p->candidate;
}

/* Work done since the band began. Two half sums, since one long one would wait for each product. */
static double done_s(const double *moment, const struct live *l)
{
	double y = l->lean * l->lean, even = moment[TERMS - 2], odd = moment[TERMS - 1];

	for (int m = TERMS - 4; m >= 0; m -= 2) {
		even = even * y + moment[m];
		odd = odd * y + moment[m + 1];
	}
	return (even - l->lean * odd) * l->speed;
}

static double left_s(const double *moment, const struct live *l)
{
	double left = l->work_s - done_s(moment, l);

	return left > 0.0 ? left : 0.0;
}

/* S(P) on this side of the kink. Divided so that neither a huge nor a tiny C or core count overflows. */
static void live_bend(const struct fluid_machine *m, bool crowded, const struct fluid_job *j, struct live *l)
{
	double rest = 1.0 - j->cpu_share - j->disk_share;
	double cpu = j->cpu_share / greater(m->cores, l->cpus);
	double disk = j->disk_share / (m->disk_saturation + l->cpus);

	l->fixed = rest > 0.0 ? rest : 0.0;
	l->slope = disk; /* 0 when C is infinite */
	l->fixed += isinf(m->disk_saturation) ? j->disk_share : disk * m->disk_saturation;
	if (crowded)
		l->slope += cpu;
	else
		l->fixed += isinf(m->cores) ? j->cpu_share : cpu * m->cores;
}

/* What the neighbours of this moment are to each kind. */
static void set_slow(struct play *p)
{
	const struct fluid_kinds *k = p->scene->kinds;
	double part = k ? 1.0 / greater(k->room, p->processes) : 0.0;

	for (size_t i = 1; i < p->n_feel; i++)
		p->feel[i].slow = 1.0 + p->feel[i].disturbed * part;
}

static void disturb(struct play *p, const struct fluid_job *j, double sign)
{
	const double *slow;

	if (p->n_feel == 1 || !j->kind)
		return;
	slow = p->scene->kinds->slow[j->kind - 1];
	for (size_t i = 1; i < p->n_feel; i++)
		p->feel[i].disturbed += sign * slow[i - 1] * j->cpus;
}

/* Fits a job to the band. */
static void live_place(const struct play *p, struct live *l)
{
	l->speed = 1.0 / (l->fixed + l->slope * p->centre);
	l->lean = l->slope * p->centre * l->speed;
	l->least = (l->fixed + l->slope * greater(p->lo, l->cpus)) * p->feel[l->feels].least;
}

/* Chooses the band for the present P. P can only rise while a job waits, and then no further than the slots;
 * the band leaves no room for what cannot happen. */
static void band_choose(struct play *p)
{
	double cores = p->scene->machine.cores, slots = p->scene->machine.slots + p->scene->other_load;

	p->crowded = p->processes > cores;
	p->hi = p->processes;
	if (p->next < p->n_jobs)
		p->hi = greater(p->hi, lesser(slots, p->hi * BAND_ABOVE));
	p->lo = p->hi * BAND_FLOOR;
	if (p->next < p->n_jobs && p->processes >= slots - p->widest)
		p->lo = greater(p->lo, slots - p->widest); /* as long as the next waits for slots alone */
	if (p->crowded)
		p->lo = greater(p->lo, cores);
	else
		p->hi = lesser(p->hi, cores);
	p->centre = 0.5 * (p->lo + p->hi);
	for (size_t i = 0; i < p->n_feel; i++)
		memset(p->feel[i].moment, 0, sizeof p->feel[i].moment);
}

/* Leaves the band: the work of every job is settled and seen from the new one. */
static void band_change(struct play *p)
{
	bool was_crowded = p->crowded;
	double moment[1 + FLUID_MAX_KINDS][TERMS];

	for (size_t i = 0; i < p->n_feel; i++)
		memcpy(moment[i], p->feel[i].moment, sizeof moment[i]);
	band_choose(p);
	for (size_t i = 0; i < p->n_front; i++)
		p->heap[p->n_heap++] = (struct bound){ .job = p->front[i].job };
	p->n_front = 0;
	for (size_t i = 0; i < p->n_heap; i++) {
		struct live *l = &p->live[p->heap[i].job];

		l->work_s = left_s(moment[l->feels], l);
		if (p->crowded != was_crowded)
			live_bend(&p->scene->machine, p->crowded, job_at(p, p->heap[i].job), l);
		live_place(p, l);
		p->heap[i].bound_s = p->now_s + l->work_s * l->least;
	}
	bound_order(p);
}

/* A job begins to run in the band that holds. */
static struct bound live_enter(struct play *p, size_t i)
{
	const struct fluid_job *j = job_at(p, i);
	struct live *l = &p->live[i];

	l->cpus = j->cpus;
	l->feels = j->feels < p->n_feel ? j->feels : 0;
	live_bend(&p->scene->machine, p->crowded, j, l);
	live_place(p, l);
	l->work_s = j->work_s +
		    done_s(p->feel[l->feels].moment, l); /* as if it had been there since the band began */
	p->out[i].start_s = p->now_s;
	return (struct bound){ .bound_s = p->now_s + j->work_s * l->least, .job = (uint32_t)i };
}

/* ---- events ---- */

static struct imminent look(const struct play *p, uint32_t job)
{
	const struct live *l = &p->live[job];
	double left = left_s(p->feel[l->feels].moment, l);

	return (struct imminent){
		.bound_s = p->now_s + left * l->least,
		.end_s = p->now_s + left * (l->fixed + l->slope * p->processes) * p->feel[l->feels].slow,
		.job = job,
	};
}

/* When the next job ends; it is at the front then, with all others that end at this very time. */
static double next_end_s(struct play *p)
{
	double best_s = INFINITY;
	size_t kept = 0;

	for (size_t i = 0; i < p->n_front; i++) {
		p->front[i] = look(p, p->front[i].job);
		best_s = lesser(best_s, p->front[i].end_s);
	}
	for (size_t i = 0; i < p->n_front; i++) {
		if (p->front[i].bound_s <= best_s)
			p->front[kept++] = p->front[i];
		else
			bound_push(p, (struct bound){ p->front[i].bound_s, p->front[i].job });
	}
	p->n_front = kept;
	while (p->n_heap && p->heap[0].bound_s <= best_s) {
		struct imminent seen = look(p, p->heap[0].job);

		best_s = lesser(best_s, seen.end_s);
		if (seen.bound_s > best_s) {
			sift_down(p->heap, p->n_heap, 0, (struct bound){ seen.bound_s, seen.job });
		} else {
			p->front[p->n_front++] = seen;
			p->n_heap--;
			sift_down(p->heap, p->n_heap, 0, p->heap[p->n_heap]);
		}
	}
	return best_s;
}

static void advance(struct play *p, double to_s)
{
	double x = (p->processes - p->centre) / p->centre, term = to_s - p->now_s;

	double power[TERMS];

	for (int m = 0; m < TERMS; m++) {
		p->feel[0].moment[m] += term;
		power[m] = term;
		term *= x;
	}
	for (size_t i = 1; i < p->n_feel; i++) {
		double speed = 1.0 / p->feel[i].slow;

		for (int m = 0; m < TERMS; m++)
			p->feel[i].moment[m] += speed * power[m];
	}
	p->now_s = to_s;
}

static bool is_wanted(const struct play *p, size_t i)
{
	return !p->scene->wanted || p->scene->wanted[i];
}

static void hold(struct play *p, const struct fluid_job *j)
{
	struct fluid_group *g = j->group ? &p->scene->group[j->group - 1] : NULL;

	p->held += j->cpus;
	p->held_devices += j->devices;
	disturb(p, j, 1.0);
	if (g) {
		g->held += j->cpus;
		g->held_devices += j->devices;
	}
}

static void let_go(struct play *p, const struct fluid_job *j)
{
	struct fluid_group *g = j->group ? &p->scene->group[j->group - 1] : NULL;

	p->held -= j->cpus;
	p->held_devices -= j->devices;
	disturb(p, j, -1.0);
	if (g) {
		g->held -= j->cpus;
		g->held_devices -= j->devices;
	}
}

static void end_those_due(struct play *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n_front; i++) {
		uint32_t job = p->front[i].job;

		if (p->front[i].end_s <= p->now_s) {
			p->out[job].end_s = p->now_s;
			p->n_wanted -= is_wanted(p, job);
			let_go(p, job_at(p, job));
		} else {
			p->front[kept++] = p->front[i];
		}
	}
	p->n_front = kept;
}

#define NOT_ENDED (-1.0) /* as an end, until there is one */
#define NOT_STARTED (-2.0)

static bool never(const struct play *p, const struct fluid_job *j)
{
	const struct fluid_machine *m = &p->scene->machine;
	const struct fluid_group *g = j->group ? &p->scene->group[j->group - 1] : NULL;

	return j->cpus > m->slots || j->devices > m->devices ||
	       (g && (j->cpus > g->cpus || j->devices > g->devices));
}

static bool waits(const struct play *p, const struct fluid_job *j)
{
	const struct fluid_group *g = j->group ? &p->scene->group[j->group - 1] : NULL;

	return p->held + j->cpus > p->scene->machine.slots || (g && g->held + j->cpus > g->cpus) ||
	       (j->after && p->out[j->after - 1].end_s < 0.0);
}

static bool lacks_devices(const struct play *p, const struct fluid_job *j)
{
	const struct fluid_group *g = j->group ? &p->scene->group[j->group - 1] : NULL;

	return j->devices && (p->held_devices + j->devices > p->scene->machine.devices ||
			      (g && g->held_devices + j->devices > g->devices));
}

/* Hands out free slots in the order of the queue. The first that has to wait keeps all behind it waiting;
 * where it waits for devices alone, those that want some. Those that start are in p->begun. */
static void start_those_that_fit(struct play *p)
{
	bool short_of_devices = false;

	p->n_begun = 0;
	for (size_t i = p->next; i < p->n_jobs; i++) {
		const struct fluid_job *j = job_at(p, i);

		if (p->out[i].end_s == NOT_STARTED) {
			if (never(p, j)) {
				p->out[i] = (struct fluid_times){ .never = true };
				p->n_wanted -= is_wanted(p, i);
			} else if (waits(p, j)) {
				break;
			} else if ((short_of_devices && j->devices) || lacks_devices(p, j)) {
				short_of_devices = true;
				continue;
			} else {
				hold(p, j);
				p->out[i].end_s = NOT_ENDED;
				p->begun[p->n_begun++] = (uint32_t)i;
			}
		}
		if (!short_of_devices)
			p->next = i + 1;
	}
}

/* What has not happened when the play is over. */
static void leave_open(struct play *p)
{
	for (size_t i = 0; i < p->n_jobs; i++) {
		if (p->out[i].end_s == NOT_STARTED)
			p->out[i].start_s = INFINITY;
		if (p->out[i].end_s < 0.0)
			p->out[i].end_s = INFINITY;
	}
}

static void set_kinds(struct play *p)
{
	const struct fluid_kinds *k = p->scene->kinds;

	p->n_feel = 1 + (k ? k->n : 0);
	for (size_t i = 0; i < p->n_feel; i++) {
		p->feel[i].disturbed = 0.0;
		p->feel[i].slow = 1.0;
		p->feel[i].least = i ? 1.0 + k->least[i - 1] : 1.0;
	}
}

static void run(struct play *p)
{
	size_t first = p->next;

	set_kinds(p);

	for (size_t i = 0; i < p->n_jobs; i++) {
		p->out[i] = (struct fluid_times){ .end_s = i < first ? NOT_ENDED : NOT_STARTED };
		p->n_wanted += is_wanted(p, i);
		if (i >= first && job_at(p, i)->cpus <= p->scene->machine.slots)
			p->widest = greater(p->widest, job_at(p, i)->cpus);
	}
	for (size_t i = 0; i < p->scene->n_groups; i++)
		p->scene->group[i].held = p->scene->group[i].held_devices = 0;
	for (size_t i = 0; i < first; i++)
		hold(p, job_at(p, i));
	start_those_that_fit(p);
	p->processes = (double)p->held + p->scene->other_load;
	set_slow(p);
	band_choose(p);
	for (size_t i = 0; i < first; i++)
		p->heap[p->n_heap++] = live_enter(p, i);
	for (size_t i = 0; i < p->n_begun; i++)
		p->heap[p->n_heap++] = live_enter(p, p->begun[i]);
	bound_order(p);

	while (p->n_wanted > 0 && p->n_heap + p->n_front > 0) {
		advance(p, next_end_s(p));
		end_those_due(p);
		start_those_that_fit(p);
		p->processes = (double)p->held + p->scene->other_load;
		set_slow(p);
		if (!(p->processes >= p->lo && p->processes <= p->hi))
			band_change(p);
		for (size_t i = 0; i < p->n_begun; i++)
			bound_push(p, live_enter(p, p->begun[i]));
	}
	assert(p->n_wanted == 0);
	leave_open(p);
}

/* A job that runs alone: what run() says of it, to the last bit, without a band. */
static void run_alone(struct play *p)
{
	const struct fluid_job *j = job_at(p, 0);
	struct live l = { .cpus = j->cpus };
	double processes = j->cpus + p->scene->other_load;

	live_bend(&p->scene->machine, processes > p->scene->machine.cores, j, &l);
	p->out[0] = (struct fluid_times){ .end_s = j->work_s * (l.fixed + l.slope * processes) };
}

/* ---- what is asked ---- */

static int check_kinds(const struct fluid_kinds *k, struct err *err)
{
	if (!k)
		return 0;
	if (k->n > FLUID_MAX_KINDS || !(k->room > 0.0))
		return err_fail(err, ERR_ARG,
				"%zu kinds in a machine of %g: need at most %d, and more than 0", k->n,
				k->room, FLUID_MAX_KINDS);
	for (size_t i = 0; i < k->n; i++)
		if (!(k->least[i] > -1.0 && k->most[i] >= k->least[i] && isfinite(k->most[i])))
			return err_fail(err, ERR_ARG, "kind %zu is slowed by %g to %g: need more than -1", i,
					k->least[i], k->most[i]);
	return 0;
}

static int check_machine(const struct fluid_machine *m, struct err *err)
{
	if (!(m->cores > 0.0)) /* also catches NaN; infinity is allowed, here and below */
		return err_fail(err, ERR_ARG, "a machine with %g cores: need more than 0", m->cores);
	if (!m->slots)
		return err_fail(err, ERR_ARG, "a machine with 0 slots: need at least 1");
	if (!(m->disk_saturation > 0.0))
		return err_fail(err, ERR_ARG, "disk saturation at %g processes: need more than 0",
				m->disk_saturation);
	return 0;
}

/* at: its index among all. */
static int check_job(const struct fluid_scene *s, const char *which, size_t i, size_t at,
		     const struct fluid_job *j, struct err *err)
{
	if (!(j->work_s >= 0.0 && j->work_s <= FLUID_MAX_WORK_S))
		return err_fail(err, ERR_ARG, "%s job %zu has %g s of work left: need 0 to %g", which, i,
				j->work_s, FLUID_MAX_WORK_S);
	if (!j->cpus)
		return err_fail(err, ERR_ARG, "%s job %zu has 0 cpus: need at least 1", which, i);
	/* three shares that were divided by their sum may add up to a hair more than 1 */
	if (!(j->cpu_share >= 0.0 && j->disk_share >= 0.0 && j->cpu_share + j->disk_share <= 1.0 + 1e-9))
		return err_fail(
			err, ERR_ARG,
			"%s job %zu spends %g of its time on cpus and %g at the disk: need both >= 0 and "
			"at most 1 together",
			which, i, j->cpu_share, j->disk_share);
	if (s->kinds && (j->kind > s->kinds->n || j->feels > s->kinds->n))
		return err_fail(err, ERR_ARG, "%s job %zu is of kind %u and feels as kind %u: there are %zu",
				which, i, j->kind, j->feels, s->kinds->n);
	if (j->after > at || j->group > s->n_groups)
		return err_fail(err, ERR_ARG,
				"%s job %zu waits for job %u and is in group %u: there are %zu before it, "
				"and %zu groups",
				which, i, j->after, j->group, at, s->n_groups);
	return 0;
}

int fluid_play(const struct fluid_scene *scene, const struct fluid_job *candidate, struct fluid_workspace *w,
	       struct fluid_times *out, struct err *err)
{
	size_t most = w->max_jobs, extra = candidate ? 1 : 0;
	struct play p;
	int status = check_machine(&scene->machine, err);

	if (!status)
		status = check_kinds(scene->kinds, err);
	if (status)
		return status;
	if (!(scene->other_load >= 0.0 && scene->other_load <= FLUID_MAX_OTHER_LOAD))
		return err_fail(err, ERR_ARG, "%g processes of others: need 0 to %g", scene->other_load,
				FLUID_MAX_OTHER_LOAD);
	if (extra > most || scene->n_running > most - extra ||
	    scene->n_queued > most - extra - scene->n_running)
		return err_fail(err, ERR_ARG,
				"%zu running, %zu queued and %zu new jobs: the workspace is for %zu",
				scene->n_running, scene->n_queued, extra, most);
	for (size_t i = 0; !status && i < scene->n_running; i++)
		status = check_job(scene, "running", i, i, &scene->running[i], err);
	for (size_t i = 0; !status && i < scene->n_queued; i++)
		status = check_job(scene, "queued", i, scene->n_running + i, &scene->queued[i], err);
	if (!status && candidate)
		status = check_job(scene, "candidate", 0, scene->n_running + scene->n_queued, candidate, err);
	if (status)
		return status;

	p = (struct play){
		.scene = scene,
		.candidate = candidate,
		.live = w->live,
		.heap = w->heap,
		.front = w->front,
		.begun = w->begun,
		.feel = w->feel,
		.next = scene->n_running,
		.n_jobs = scene->n_running + scene->n_queued + extra,
		.out = out,
	};
	if (p.n_jobs == 1 && !scene->kinds && is_wanted(&p, 0) &&
	    (scene->n_running || !never(&p, job_at(&p, 0))))
		run_alone(&p);
	else
		run(&p);
	return 0;
}
