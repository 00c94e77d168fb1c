/* Remaining work by the reports of a job. See progress.h. */
#include "scheduler/core/learn/progress.h"

#include <math.h>

#define FADE 0.7 /* a difference counts so much less with every later one */
#define NOISE 0.1 /* of a part of the work, relative to it, before the reports have shown their own ... */
#define NOISE_COUNTS 3.0 /* ... and as how many differences that counts */
#define RATE_SPREAD                                                                                          \
	0.04 /* of a rate seen: neighbours slow a job down by a little more or less than thought */
#define START_SPREAD 0.3 /* of a start-up that is expected ... */
#define AT_ONCE 0.05 /* of the time that a part of the work should take: less, and it was told too late */
#define TOO_SOON 0.2 /* of the time that later parts took, for as much work: the first was told as it began */
#define FREEDOM                                                                                              \
	4.0 /* of the t distribution by which a model is less believed the more the reports contradict it */
#define MOST_HIDDEN 0.8 /* of the time expected may be a start-up that nobody knew of */

void progress_begin(struct progress *p, double total_s, double start_share, double spread)
{
	bool known = start_share >= 0.0 && start_share < 1.0;

	*p = (struct progress){ .start_s = known ? start_share * total_s : NAN,
				.rate_s = known ? (1.0 - start_share) * total_s : total_s,
				.spread = spread };
}

bool progress_report(struct progress *p, double done, double at_s)
{
	struct progress_mark next;
	double more, s;

	if (!(done > p->last.done) || isnan(p->rate_s))
		return false;
	if (p->last.n && at_s - p->last.at_s < AT_ONCE * p->rate_s * (done - p->last.done))
		p->last = p->before;
	next = p->before = p->last;
	more = done - next.done;
	s = at_s - next.at_s;
	if (!next.n++) {
		p->first_done = done;
		p->first_s = at_s;
		p->hidden_s = 0.0;
		if (isnan(p->start_s) && done < 1.0)
			p->hidden_s = fmin(fmax((at_s - done * p->rate_s) / (1.0 - done), 0.0),
					   MOST_HIDDEN * p->rate_s);
	} else {
		next.sum_done = FADE * next.sum_done + more;
		next.sum_s = FADE * next.sum_s + s;
		next.sum_squares = FADE * next.sum_squares + s * s / more;
		next.sum_n = FADE * next.sum_n + 1.0;
	}
	next.done = done;
	next.at_s = at_s;
	p->last = next;
	return true;
}

/* Variance of the time of all the work as it adds up from independent parts, relative to its square. */
static double noise_of(const struct progress *p)
{
	double expected = NOISE * NOISE * p->first_done, seen = 0.0;

	if (p->last.sum_s > 0.0)
		seen = fmax(p->last.sum_squares / (p->last.sum_s * p->last.sum_s / p->last.sum_done) - 1.0,
			    0.0) *
		       p->last.sum_done;
	return (NOISE_COUNTS * expected + seen) / (NOISE_COUNTS + fmax(p->last.sum_n - 1.0, 0.0));
}

/* Some jobs tell an epoch when they begin it. The first report then comes at once, and says nothing of the
 * rate. */
static bool first_tells(const struct progress *p, double rest_s)
{
	const struct progress_mark *m = &p->last;

	if (p->hidden_s > 0.0 || !(rest_s > AT_ONCE * p->rate_s * p->first_done))
		return false;
	return !(m->sum_s > 0.0) || rest_s / p->first_done > TOO_SOON * m->sum_s / m->sum_done;
}

/* How much a model counts whose rate is that many spreads from the one seen: it is wrong about this job
 * rather than the job about itself. */
static double believed(double spreads)
{
	return fmin(1.0, (FREEDOM + 1.0) / (FREEDOM + spreads * spreads));
}

double progress_left_s(const struct progress *p, double *out_spread)
{
	double start_s = isnan(p->start_s) ? 0.0 : p->start_s, rate_s = p->rate_s - p->hidden_s;
	double guessed = 0.5 * p->hidden_s / rate_s, rest = p->first_s - start_s;
	double variance = p->spread * p->spread + guessed * guessed, weight = 0.0, sum = 0.0, noise, w;

	*out_spread = p->spread;
	if (!p->last.n)
		return p->rate_s + start_s;
	noise = noise_of(p);
	if (first_tells(p, rest)) {
		double start = START_SPREAD * start_s / rest;

		w = 1.0 / (noise / p->first_done + RATE_SPREAD * RATE_SPREAD + start * start);
		sum += w * log(rest / p->first_done);
		weight += w;
	}
	if (p->last.sum_s > 0.0) {
		w = 1.0 / (noise / p->last.sum_done + RATE_SPREAD * RATE_SPREAD);
		sum += w * log(p->last.sum_s / p->last.sum_done);
		weight += w;
	}
	w = 1.0 / variance;
	if (weight > 0.0)
		w *= believed((log(rate_s) - sum / weight) / sqrt(variance + 1.0 / weight));
	sum += w * log(rate_s);
	weight += w;
	*out_spread = sqrt(1.0 / weight + noise / fmax(1.0 - p->last.done, 1e-9));
	return (1.0 - p->last.done) * exp(sum / weight);
}
