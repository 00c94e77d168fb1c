/* Plays the arrivals to come under several prices, and takes the best one. See price.h. */
#include "scheduler/core/policy/price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define MOST_JOBS (PRICE_WINDOW + PRICE_LIVE + 1)

#define CLEARLY 1e-4 /* a higher price has to be worth so much more */

struct played { /* a job in a play */
	double left_s; /* of its work */
	double base, per_cpu, per_disk; /* S(P) = base + per_cpu max(cores, P) + per_disk P */
	double end_by_s; /* its deadline */
	double from_s; /* its arrival */
	double worth, spread; /* value x accuracy */
	uint32_t cpus;
};

struct price {
	struct price_arrival seen[PRICE_WINDOW];
	size_t n, next;
	struct played running[MOST_JOBS], waiting[MOST_JOBS];
	size_t n_running, n_waiting;
	double processes, now_s, total;
	uint64_t held;
	const struct price_scene *scene;
};

int price_new(struct price **out, struct err *err)
{
	struct price *p = mem_calloc(1, sizeof *p);

	if (!p)
		return err_nomem(err, "the arrivals that a price is found from");
	*out = p;
	return 0;
}

void price_free(struct price *p)
{
	free(p);
}

void price_see(struct price *p, const struct price_arrival *a)
{
	p->seen[p->next] = *a;
	p->next = (p->next + 1) % PRICE_WINDOW;
	p->n += p->n < PRICE_WINDOW;
}

size_t price_seen(const struct price *p)
{
	return p->n;
}

/* ---- a play ---- */

/* The chance that a time, expected to be time_s, is at most limit_s: the normal law of its logarithm, by the
 * logistic curve that is nearest to it. */
static double chance(double time_s, double limit_s, double spread)
{
	if (isinf(limit_s))
		return 1.0;
	if (!(limit_s > 0.0))
		return 0.0;
	if (!(time_s > 0.0))
		return 1.0;
	return 1.0 / (1.0 + exp(1.702 * log(time_s / limit_s) / spread));
}

static void law_of(const struct fluid_machine *m, const struct price_candidate *c, uint32_t cpus,
		   struct played *out)
{
	double rest = 1.0 - c->cpu_share - c->disk_share;

	out->per_cpu = c->cpu_share / fmax(m->cores, cpus);
	if (isinf(m->cores)) {
		rest += c->cpu_share;
		out->per_cpu = 0.0;
	}
	if (isinf(m->disk_saturation)) {
		out->base = rest + c->disk_share;
		out->per_disk = 0.0;
	} else {
		out->per_disk = c->disk_share / (m->disk_saturation + cpus);
		out->base = rest + out->per_disk * m->disk_saturation;
	}
	out->left_s = c->work_s;
	out->cpus = cpus;
}

static double stretch(const struct price *p, const struct played *j, double processes)
{
	double cores = p->scene->machine.cores;

	return j->base + j->per_cpu * (processes > cores ? processes : cores) + j->per_disk * processes;
}

static void finish(struct price *p, const struct played *j)
{
	p->total += j->worth * chance(p->now_s - j->from_s, j->end_by_s - j->from_s, j->spread);
}

static void run(struct price *p, const struct played *j)
{
	p->running[p->n_running++] = *j;
	p->processes += j->cpus;
	p->held += j->cpus;
}

static void start_waiting(struct price *p)
{
	uint32_t slots = p->scene->machine.slots;
	size_t kept = 0;

	for (size_t i = 0; i < p->n_waiting; i++) {
		struct played *j = &p->waiting[i];

		if (p->held + j->cpus <= slots)
			run(p, j);
		else if (p->now_s < j->end_by_s) /* after that it is worth nothing */
			p->waiting[kept++] = *j;
	}
	p->n_waiting = kept;
}

/* Up to a moment. */
static void pass(struct price *p, double until_s)
{
	while (p->n_running) {
		double first_s = INFINITY;
		size_t kept = 0, first = 0;
		double step_s;

		for (size_t i = 0; i < p->n_running; i++) {
			double end_s = p->running[i].left_s * stretch(p, &p->running[i], p->processes);

			if (end_s < first_s) {
				first_s = end_s;
				first = i;
			}
		}
		step_s = fmin(first_s, until_s - p->now_s);
		if (!(step_s >= 0.0))
			step_s = 0.0;
		for (size_t i = 0; i < p->n_running; i++)
			p->running[i].left_s -= step_s / stretch(p, &p->running[i], p->processes);
		p->now_s += step_s;
		if (step_s < first_s)
			break;
		p->running[first].left_s = 0.0;
		for (size_t i = 0; i < p->n_running; i++) {
			if (p->running[i].left_s <= 1e-9) {
				finish(p, &p->running[i]);
				p->processes -= p->running[i].cpus;
				p->held -= p->running[i].cpus;
			} else {
				p->running[kept++] = p->running[i];
			}
		}
		p->n_running = kept;
		start_waiting(p);
	}
	if (isfinite(until_s) && p->now_s < until_s)
		p->now_s = until_s;
}

/* Seconds until a job of so many cpus starts behind all that wait: their slots x time over the slots, and
 * what has to end first. */
static double wait_s(const struct price *p, uint32_t cpus)
{
	double ahead = 0.0, slots = p->scene->machine.slots;

	if (p->held + cpus <= p->scene->machine.slots && !p->n_waiting)
		return 0.0;
	for (size_t i = 0; i < p->n_waiting; i++)
		ahead += p->waiting[i].cpus * p->waiting[i].left_s * stretch(p, &p->waiting[i], slots);
	for (size_t i = 0; i < p->n_running; i++)
		ahead += p->running[i].cpus * p->running[i].left_s * stretch(p, &p->running[i], p->processes);
	return ahead / slots;
}

static void arrive(struct price *p, const struct price_arrival *a, double price)
{
	struct played best, j;
	double most = 0.0, wait = wait_s(p, a->cpus), slots = p->scene->machine.slots + p->scene->other_load;
	size_t at;

	for (size_t k = 0; k < a->n_candidates; k++) {
		const struct price_candidate *c = &a->candidate[k];
		double worth = a->value * (isnan(c->accuracy) ? 1.0 : c->accuracy), time_s, gain;

		law_of(&p->scene->machine, c, a->cpus, &j);
		time_s = c->work_s * stretch(p, &j, fmin(p->processes + a->cpus, slots));
		gain = worth * chance(time_s + wait, a->slo_s, a->spread) - price * a->cpus * time_s;
		if (gain > most) {
			most = gain;
			best = j;
			best.worth = worth;
		}
	}
	if (!(most > 0.0) || a->cpus > p->scene->machine.slots)
		return;
	best.from_s = p->now_s;
	best.end_by_s = p->now_s + a->slo_s;
	best.spread = a->spread;
	if (p->held + best.cpus <= p->scene->machine.slots && !p->n_waiting) {
		run(p, &best);
		return;
	}
	for (at = p->n_waiting; at > 0 && p->waiting[at - 1].end_by_s > best.end_by_s; at--)
		p->waiting[at] = p->waiting[at - 1];
	p->waiting[at] = best;
	p->n_waiting++;
}

/* What the jobs that are there and those that come are worth in all; `probe` (NULL: none) is one more that
 * runs, or waits behind all others, and counts for nothing itself. */
static double play(struct price *p, const struct price_scene *s, double price, const struct played *probe)
{
	int64_t last_ns = s->now_ns;
	double at_s = 0.0;

	p->scene = s;
	p->n_running = p->n_waiting = 0;
	p->processes = s->other_load;
	p->held = 0;
	p->now_s = p->total = 0.0;
	for (size_t i = 0; i < s->n_live; i++) {
		const struct price_live *l = &s->live[i];
		struct played j = { .end_by_s = l->left_s, .spread = l->spread };

		law_of(&s->machine, &l->is, l->cpus, &j);
		j.worth = l->value * (isnan(l->is.accuracy) ? 1.0 : l->is.accuracy);
		if (l->running)
			run(p, &j);
		else
			p->waiting[p->n_waiting++] = j;
	}
	if (probe && p->held + probe->cpus <= s->machine.slots)
		run(p, probe);
	else if (probe)
		p->waiting[p->n_waiting++] = *probe;
	start_waiting(p);
	for (size_t k = 0; k < p->n; k++) {
		const struct price_arrival *a = &p->seen[(p->next + 2 * PRICE_WINDOW - 1 - k) % PRICE_WINDOW];

		at_s += 1e-9 * (double)(last_ns - a->at_ns);
		last_ns = a->at_ns;
		pass(p, at_s);
		arrive(p, a, price);
	}
	pass(p, INFINITY);
	return p->total;
}

/* ---- the best price ---- */

/* What a process-second would be worth if each took what it is worth most by itself. */
static double usual(const struct price *p)
{
	double worth = 0.0, use = 0.0;

	for (size_t i = 0; i < p->n; i++) {
		const struct price_arrival *a = &p->seen[i];
		double least = INFINITY;

		for (size_t k = 0; k < a->n_candidates; k++)
			least = fmin(least, a->candidate[k].work_s);
		if (isfinite(least)) {
			worth += a->value;
			use += a->cpus * least;
		}
	}
	return use > 0.0 ? worth / use : 0.0;
}

double price_find(struct price *p, const struct price_scene *s)
{
	static const double step[] = { 0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0 };
	double unit = usual(p), best = 0.0, most = -1.0;

	for (size_t k = 0; k < sizeof step / sizeof *step; k++) {
		double total = play(p, s, step[k] * unit, NULL);

		if (total > most * (1.0 + CLEARLY)) {
			most = total;
			best = step[k] * unit;
		}
	}
	return best;
}

/* The last arrival as wide as this; else the last one. */
static const struct price_arrival *last_alike(const struct price *p, uint32_t cpus)
{
	const struct price_arrival *last = NULL;

	for (size_t k = 0; k < p->n; k++) {
		const struct price_arrival *a = &p->seen[(p->next + 2 * PRICE_WINDOW - 1 - k) % PRICE_WINDOW];

		if (a->cpus == cpus)
			return a;
		last = last ? last : a;
	}
	return last;
}

double price_at_once(struct price *p, const struct price_scene *s, double price, uint32_t cpus)
{
	const struct price_arrival *a = last_alike(p, cpus);
	struct played probe = { .end_by_s = INFINITY, .spread = 1.0 };
	double most_s = 0.0, use;

	if (!a || cpus > s->machine.slots)
		return 0.0;
	for (size_t k = 0; k < a->n_candidates; k++) {
		if (!(a->candidate[k].work_s > most_s))
			continue;
		most_s = a->candidate[k].work_s;
		law_of(&s->machine, &a->candidate[k], cpus, &probe);
	}
	use = cpus * most_s;
	return use > 0.0 ? fmax(play(p, s, price, NULL) - play(p, s, price, &probe), 0.0) / use : 0.0;
}
