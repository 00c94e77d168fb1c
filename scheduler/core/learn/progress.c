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
/* Of a job of which nothing was expected: */
#define CHANGE 2.5 /* spreads by which a part is foretold wrongly when more than noise has changed */
#define FEW 2.0 /* how much wider, over the number of parts foretold: a few show too little of their noise */
#define FIRST_SPREAD 0.4 /* of the rate by the first report alone, which a start-up may be in */
#define OWN_NOISE 0.04 /* of a part of its work, before its reports have shown their own ... */
#define OWN_NOISE_COUNTS 1.0 /* ... and as how many foretold parts that counts */

void progress_begin(struct progress *p, double total_s, double start_share, double spread)
{
	bool known = start_share >= 0.0 && start_share < 1.0;

	*p = (struct progress){ .start_s = known ? start_share * total_s : NAN,
				.rate_s = known ? (1.0 - start_share) * total_s : total_s,
				.spread = spread };
}

/* Seconds for all the work by what is known so far, for what came too early to be a report of its own. */
static double usual_rate_s(const struct progress *p)
{
	const struct progress_mark *m = &p->last;

	if (!isnan(p->rate_s))
		return p->rate_s;
	return m->sum_s > 0.0 ? m->sum_s / m->sum_done : p->first_s / p->first_done;
}

/* How much a model counts whose rate is that many spreads from the one seen: it is wrong about this job
 * rather than the job about itself. */
static double believed(double spreads)
{
	return fmin(1.0, (FREEDOM + 1.0) / (FREEDOM + spreads * spreads));
}

/* How much a mean of the differences is worth: that of one part of so much of the work. */
static double worth(const struct progress_mark *m)
{
	return m->sum_done * m->sum_done / m->sum_thin;
}

/* Variance of the time of all the work as it adds up from independent parts, relative to its square, by how
 * wrong its parts were foretold. */
static double own_noise(const struct progress_mark *m, double part)
{
	return (OWN_NOISE_COUNTS * OWN_NOISE * OWN_NOISE * part + m->sum_errors) /
	       (OWN_NOISE_COUNTS + m->n_errors) * (1.0 + FEW / (OWN_NOISE_COUNTS + m->n_errors));
}

/* `more` of the work took s seconds. Where nothing was expected, a part that those before it did not foretell
 * makes them count less: a neighbour has come or gone. */
static void take_difference(const struct progress *p, struct progress_mark *m, double more, double s)
{
	double fade = FADE;

	if (isnan(p->rate_s) && m->sum_s > 0.0 && s > 0.0) {
		double wrong = log(s / more) - log(m->sum_s / m->sum_done);
		double variance = 1.0 / more + 1.0 / worth(m);
		double usual = CHANGE * CHANGE * own_noise(m, more) * variance;
		double counts = fmin(1.0, usual / (wrong * wrong));

		m->sum_errors += counts * wrong * wrong / variance;
		m->n_errors++;
		fade *= counts;
	}
	m->sum_thin = fade * fade * m->sum_thin + more;
	m->sum_done = fade * m->sum_done + more;
	m->sum_s = fade * m->sum_s + s;
	m->sum_squares = fade * m->sum_squares + s * s / more;
	m->sum_n = fade * m->sum_n + 1.0;
}

bool progress_report(struct progress *p, double done, double at_s)
{
	struct progress_mark next;
	double more, s;

	if (!(done > p->last.done))
		return false;
	if (p->last.n && at_s - p->last.at_s < AT_ONCE * usual_rate_s(p) * (done - p->last.done))
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
		take_difference(p, &next, more, s);
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

/* By the reports alone. */
static double own_left_s(const struct progress *p, double *out_spread)
{
	const struct progress_mark *m = &p->last;
	double left = 1.0 - m->done, noise;

	*out_spread = FIRST_SPREAD;
	if (!m->n || !(m->sum_s > 0.0))
		return m->n ? left * p->first_s / p->first_done : NAN;
	noise = own_noise(m, m->done - p->before.done);
	*out_spread = sqrt(noise * (1.0 / worth(m) + 1.0 / fmax(left, 1e-9)));
	return left * m->sum_s / m->sum_done;
}

double progress_left_s(const struct progress *p, double *out_spread)
{
	double start_s = isnan(p->start_s) ? 0.0 : p->start_s, rate_s = p->rate_s - p->hidden_s;
	double guessed = 0.5 * p->hidden_s / rate_s, rest = p->first_s - start_s;
	double variance = p->spread * p->spread + guessed * guessed, weight = 0.0, sum = 0.0, noise, w;

	if (isnan(p->rate_s))
		return own_left_s(p, out_spread);
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

static void scale_mark(struct progress_mark *m, double times)
{
	m->done /= times;
	m->sum_done /= times;
	m->sum_thin /= times;
	m->sum_squares *= times;
	m->sum_errors /= times;
}

void progress_scale(struct progress *p, double times)
{
	if (!(times > 0.0))
		return;
	p->rate_s *= times;
	p->hidden_s *= times;
	p->first_done /= times;
	scale_mark(&p->last, times);
	scale_mark(&p->before, times);
}
