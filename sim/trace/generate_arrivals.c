/* When generated jobs come. */
#include <math.h>
#include <stdlib.h>

#include "common/heap.h"
#include "common/mem.h"
#include "sim/trace/generate_internal.h"

/* ---- independent jobs ---- */

/* Lengths of calm and burst are exponential, and `share` of the time is burst. */
static double turn_length(struct arrivals *a)
{
	double p = a->s->share;

	return rng_exponential(&a->rng) * (a->bursting ? a->s->burst_s : a->s->burst_s * (1.0 - p) / p);
}

void arrivals_init(struct arrivals *a, const struct generate_spec *s, struct rng rng)
{
	*a = (struct arrivals){ .s = s, .rng = rng };
	if (s->kind == GENERATE_BURSTY) {
		a->bursting = rng_uniform(&a->rng) < s->share;
		a->turn_s = turn_length(a);
	}
}

/* Two-state MMPP (Fischer, Meier-Hellstern, Performance Evaluation 18, 1993). An exponential time that is
 * cut by a turn starts afresh: it has no memory. */
static double next_bursty(struct arrivals *a)
{
	const struct generate_spec *s = a->s;
	double calm_rate = 1.0 / (s->gap_s * (1.0 - s->share + s->share * s->peak));

	for (;;) {
		double wait_s = rng_exponential(&a->rng) / (a->bursting ? s->peak * calm_rate : calm_rate);

		if (a->now_s + wait_s <= a->turn_s)
			return a->now_s += wait_s;
		a->now_s = a->turn_s;
		a->bursting = !a->bursting;
		a->turn_s += turn_length(a);
	}
}

/* Thinning (Lewis, Shedler, Naval Research Logistics 26, 1979). */
static double next_daily(struct arrivals *a)
{
	const struct generate_spec *s = a->s;
	double highest = (1.0 + s->depth) / s->gap_s;

	for (;;) {
		double rate;

		a->now_s += rng_exponential(&a->rng) / highest;
		rate = (1.0 + s->depth * cos(2.0 * M_PI * (a->now_s - s->peak_at_s) / s->day_s)) / s->gap_s;
		if (rng_uniform(&a->rng) * highest < rate)
			return a->now_s;
	}
}

double arrivals_next(struct arrivals *a)
{
	if (a->s->kind == GENERATE_BURSTY)
		return next_bursty(a);
	if (a->s->kind == GENERATE_DAILY)
		return next_daily(a);
	return a->now_s += a->s->gap_s * rng_exponential(&a->rng);
}

/* ---- jobs that come again ---- */

struct member {
	struct rng rng;
	double period_s, due_s; /* due without the jitter */
};

struct series {
	const struct generate_spec *s;
	struct member *member;
	struct heap next;
};

/* At most half the jitter to either side, so that a series never overtakes itself. */
static int schedule(struct series *s, size_t i)
{
	struct member *m = &s->member[i];
	double at_s = m->due_s + s->s->jitter * m->period_s * (rng_uniform(&m->rng) - 0.5);

	m->due_s += m->period_s;
	return heap_push(&s->next, at_s > 0.0 ? at_s : 0.0, (uint32_t)i);
}

struct series *series_new(const struct generate_spec *s, uint64_t seed)
{
	struct series *out = mem_calloc(1, sizeof *out);

	if (!out)
		return NULL;
	out->s = s;
	out->member = mem_array(s->series, sizeof *out->member);
	if (!out->member || heap_reserve(&out->next, s->series)) {
		series_free(out);
		return NULL;
	}
	for (size_t i = 0; i < s->series; i++) {
		struct member *m = &out->member[i];

		m->rng = rng_stream(seed, i);
		m->period_s = s->n_periods ? s->period_s[rng_below(&m->rng, (uint32_t)s->n_periods)]
					   : s->gap_s * (double)s->series;
		m->due_s = m->period_s * rng_uniform(&m->rng);
		schedule(out, i); /* there is room */
	}
	return out;
}

void series_free(struct series *s)
{
	if (!s)
		return;
	heap_release(&s->next);
	free(s->member);
	free(s);
}

double series_next(struct series *s, size_t *out_which)
{
	struct heap_entry e = { 0 };

	heap_pop(&s->next, &e); /* never empty: whatever comes out goes in again */
	*out_which = e.payload;
	schedule(s, e.payload);
	return e.key;
}
