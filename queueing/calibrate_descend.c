/* The calibrated model as a least-squares problem on log time: what a row costs at a point of the
 * search, its gradient, and one descent by Levenberg and Marquardt (Marquardt, J. SIAM 11(2), 1963). The
 * parameters are few and the descents are many, so each step sums up the normal equations in one pass
 * over the points. calibrate_forms.c chooses the starts and what is free. */
#include <math.h>
#include <string.h>

#include "queueing/calibrate_internal.h"

#define MAX_STEP 3.0 /* of a coordinate: a factor of 20 of a cost */
#define SMALL_GAIN 1e-6 /* of the sum of squares: two such steps end a descent */
#define LEAST_DAMPING 1e-12
#define TOGETHER 4 /* equations */
/* Where categories are crossed, a factor of one is an equation as well: it is 1, by the error of one row of
 * 0.05 in log time if it is 1 within a factor of e. Where the rows tell it, that is nothing. Where a network
 * and a kind of GPU each have a factor and the rows tell neither, the product for a pair never measured could
 * be anything without it. */
#define FACTOR_WEIGHT 0.003
#define LEAST_PIVOT 1e-11 /* of a coordinate's own curvature: below, the others explain it */

static double saturation_of(const struct problem *pr, double u)
{
	return exp(pr->log_low + (pr->log_high - pr->log_low) * calibrate_logistic(u));
}

static double log_cost(const struct solution *s, size_t i)
{
	double fixed = calibrate_clamp(s->u[CALIBRATE_FIXED], -80.0, 80.0);

	switch ((enum hold)s->hold[i]) {
	case HOLD_TIED: return fixed + log(i == CALIBRATE_RECORD ? RECORD_OF_FIXED : DISK_OF_FIXED);
	case HOLD_ABSENT: return -INFINITY;
	default: return calibrate_clamp(s->u[i], -80.0, 80.0);
	}
}

struct costs calibrate_costs(const struct problem *pr, const struct solution *s)
{
	struct costs c = { .a = s->u[CALIBRATE_EXPONENT],
			   .saturation = s->u[CALIBRATE_SATURATION],
			   .share_fixed = s->share_fixed };

	for (size_t i = 0; i < N_SHARED; i++)
		if (calibrate_is_cost(i) && s->hold[i] != HOLD_ABSENT)
			c.cost[i] = exp(log_cost(s, i));
	if (s->hold[CALIBRATE_EXPONENT] == HOLD_FREE)
		c.a = calibrate_logistic(c.a);
	if (s->hold[CALIBRATE_SATURATION] == HOLD_FREE) {
		double p = calibrate_logistic(c.saturation);

		c.saturation = saturation_of(pr, c.saturation);
		c.saturation_slope = (pr->log_high - pr->log_low) * p * (1.0 - p);
	}
	for (size_t f = 0; f < CALIBRATE_FACTORS; f++)
		for (size_t k = 0; k < pr->n_categories; k++) {
			c.log_factor[f][k] = s->u[U_OF(f, k)];
			c.factor[f][k] = exp(c.log_factor[f][k]);
			c.has_factor[f] |= c.log_factor[f][k] != 0.0;
		}
	return c;
}

/* What rows of the same categories on as many cpus have in common. */
struct alike {
	double each, factor[CALIBRATE_FACTORS];
};

static struct alike alike_of(const struct costs *c, const struct row *r, size_t n_categories)
{
	struct alike out = { .each = exp(-c->a * r->log_share), .factor = { 1.0, 1.0, 1.0, 1.0 } };

	for (size_t f = 0; f < CALIBRATE_FACTORS; f++)
		for (size_t k = 0; c->has_factor[f] && k < n_categories; k++)
			if (r->category[k] == 1.0)
				out.factor[f] *= c->factor[f][k];
			else if (r->category[k] != 0.0)
				out.factor[f] *= exp(r->category[k] * c->log_factor[f][k]);
	return out;
}

static struct terms terms_of(const struct costs *c, const struct row *r, const struct alike *alike)
{
	const double *factor = alike->factor, each = alike->each;
	struct terms t = { .stretch = 1.0 + r->processes / c->saturation };

	t.part[CALIBRATE_FIXED] = r->crowd * c->cost[CALIBRATE_FIXED] * factor[CALIBRATE_OF_FIXED] *
				  (c->share_fixed ? each : 1.0);
	t.part[CALIBRATE_RECORD] = r->crowd * c->cost[CALIBRATE_RECORD] * r->batch * each *
				   factor[CALIBRATE_OF_RECORD] * r->on_cpu;
	t.part[CALIBRATE_DISK] = t.stretch * c->cost[CALIBRATE_DISK];
	t.part[CALIBRATE_DISK_RECORD] = t.stretch * c->cost[CALIBRATE_DISK_RECORD] * r->batch;
	t.part[CALIBRATE_START] = r->per_start * c->cost[CALIBRATE_START] * factor[CALIBRATE_OF_START];
	t.part[CALIBRATE_DELAY] = c->cost[CALIBRATE_DELAY] * factor[CALIBRATE_OF_DELAY] * r->at_device;
	t.part[CALIBRATE_DELAY_RECORD] = c->cost[CALIBRATE_DELAY_RECORD] * r->batch *
					 factor[CALIBRATE_OF_DELAY] * r->per_device;
	for (size_t i = 0; i < N_SHARED; i++)
		t.total += t.part[i];
	return t;
}

struct terms calibrate_terms(const struct costs *c, const struct row *r, size_t n_categories)
{
	struct alike alike = alike_of(c, r, n_categories);

	return terms_of(c, r, &alike);
}

void calibrate_gradient(const struct problem *pr, const struct costs *c, const struct solution *s,
			const struct row *r, const struct terms *t, double *out)
{
	for (size_t i = 0; i < N_SHARED; i++) /* most are 0, and a division takes long */
		out[i] = t->part[i] != 0.0 ? t->part[i] / t->total : 0.0;
	for (size_t k = 0; k < pr->n_categories; k++) {
		out[U_OF(CALIBRATE_OF_RECORD, k)] = r->category[k] * out[CALIBRATE_RECORD];
		out[U_OF(CALIBRATE_OF_FIXED, k)] = r->category[k] * out[CALIBRATE_FIXED];
		out[U_OF(CALIBRATE_OF_START, k)] = r->category[k] * out[CALIBRATE_START];
		out[U_OF(CALIBRATE_OF_DELAY, k)] = r->category[k] *
						   (out[CALIBRATE_DELAY] + out[CALIBRATE_DELAY_RECORD]);
	}
	out[CALIBRATE_EXPONENT] = -(out[CALIBRATE_RECORD] + (c->share_fixed ? out[CALIBRATE_FIXED] : 0.0)) *
				  r->log_share * c->a * (1.0 - c->a);
	out[CALIBRATE_SATURATION] = -(out[CALIBRATE_DISK] + out[CALIBRATE_DISK_RECORD]) *
				    (1.0 - 1.0 / t->stretch) * c->saturation_slope;
	for (size_t i = CALIBRATE_RECORD; i <= CALIBRATE_DISK; i++)
		if (s->hold[i] == HOLD_TIED)
			out[CALIBRATE_FIXED] += out[i];
}

/* The costs that are part of each share. */
static const uint8_t at_share[N_SHARED] = {
	[CALIBRATE_FIXED] = 1 << SHARE_CPU,   [CALIBRATE_RECORD] = 1 << SHARE_CPU,
	[CALIBRATE_DISK] = 1 << SHARE_DISK,   [CALIBRATE_DISK_RECORD] = 1 << SHARE_DISK,
	[CALIBRATE_DELAY] = 1 << SHARE_DELAY, [CALIBRATE_DELAY_RECORD] = 1 << SHARE_DELAY,
	[CALIBRATE_START] = 1 << SHARE_START,
};

double calibrate_share(const struct problem *pr, const struct costs *c, const struct solution *s,
		       const struct row *r, const struct terms *t, unsigned which, const double *log_gradient,
		       double *out)
{
	double part[N_SHARED], tied = 0.0, share = 0.0;

	for (size_t i = 0; i < N_SHARED; i++) {
		part[i] = at_share[i] & 1u << which ? t->part[i] / t->total : 0.0;
		share += part[i];
		tied += s->hold[i] == HOLD_TIED ? part[i] : 0.0;
	}
	for (size_t i = 0; i < MAX_U; i++)
		out[i] = -share * log_gradient[i];
	for (size_t i = 0; i < N_SHARED; i++)
		out[i] += part[i] + (i == CALIBRATE_FIXED ? tied : 0.0);
	out[CALIBRATE_EXPONENT] -= (part[CALIBRATE_RECORD] + (c->share_fixed ? part[CALIBRATE_FIXED] : 0.0)) *
				   r->log_share * c->a * (1.0 - c->a);
	out[CALIBRATE_SATURATION] -= (part[CALIBRATE_DISK] + part[CALIBRATE_DISK_RECORD]) *
				     (1.0 - 1.0 / t->stretch) * c->saturation_slope;
	for (size_t k = 0; k < pr->n_categories; k++) {
		out[U_OF(CALIBRATE_OF_RECORD, k)] += r->category[k] * part[CALIBRATE_RECORD];
		out[U_OF(CALIBRATE_OF_FIXED, k)] += r->category[k] * part[CALIBRATE_FIXED];
		out[U_OF(CALIBRATE_OF_START, k)] += r->category[k] * part[CALIBRATE_START];
		out[U_OF(CALIBRATE_OF_DELAY, k)] += r->category[k] *
						    (part[CALIBRATE_DELAY] + part[CALIBRATE_DELAY_RECORD]);
	}
	return share;
}

/* Akaike's criterion with the correction for small samples; the spread is a parameter too. */
double calibrate_aicc(double n, size_t n_free, double rss)
{
	double k = (double)n_free + 1.0, left = n - k - 1.0;

	if (left <= 0.0)
		return INFINITY;
	return n * log(fmax(rss / n, 1e-24)) + 2.0 * k + 2.0 * k * (k + 1.0) / left;
}

/* ---- one descent ---- */

/* At a point of the search: the sum of squares, half its gradient and its curvature (lower triangle). */
struct normal {
	double rss, slope[MAX_U], curve[MAX_U][MAX_U];
};

size_t calibrate_free(const struct solution *s, size_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < MAX_U; i++)
		if (s->hold[i] == HOLD_FREE)
			out[n++] = i;
	return n;
}

/* Equations that are summed up together: each sum is loaded and stored once for all of them. */
struct equations {
	const size_t *free_at;
	size_t n_free, n;
	double g[TOGETHER][MAX_U], w[TOGETHER][MAX_U], e[TOGETHER]; /* gradient, and times the weight */
};

/* The coordinates that play a role in some of these equations. Neighbours are of the same categories, so the
 * factors of all others do not. */
static size_t find_live(const struct equations *q, size_t *out)
{
	size_t n = 0;

	for (size_t a = 0; a < q->n_free; a++) {
		bool any = false;

		for (size_t k = 0; k < q->n; k++)
			any |= q->g[k][a] != 0.0;
		if (any)
			out[n++] = a;
	}
	return n;
}

static void sum_equations(struct equations *q, struct normal *out)
{
	size_t live[MAX_U], n_live = find_live(q, live);

	for (size_t i = 0; i < n_live; i++) {
		size_t a = live[i];
		double *curve = out->curve[a];

		for (size_t k = 0; k < q->n; k++)
			out->slope[a] += q->w[k][a] * q->e[k];
		if (q->n == TOGETHER && n_live == q->n_free)
			for (size_t b = 0; b <= a; b++)
				curve[b] += q->w[0][a] * q->g[0][b] + q->w[1][a] * q->g[1][b] +
					    q->w[2][a] * q->g[2][b] + q->w[3][a] * q->g[3][b];
		else
			for (size_t j = 0; j <= i; j++)
				for (size_t k = 0; k < q->n; k++)
					curve[live[j]] += q->w[k][a] * q->g[k][live[j]];
	}
	q->n = 0;
}

/* One residual e of a weight, with its gradient. */
static void add_equation(struct equations *q, const double *gradient, double weight, double e,
			 struct normal *out)
{
	double *g = q->g[q->n], *w = q->w[q->n];

	out->rss += weight * e * e;
	for (size_t a = 0; a < q->n_free; a++)
		w[a] = weight * (g[a] = gradient[q->free_at[a]]);
	q->e[q->n++] = e;
	if (q->n == TOGETHER)
		sum_equations(q, out);
}

static void sum_up(const struct problem *pr, const struct solution *s, const size_t *free_at, size_t n_free,
		   struct normal *out)
{
	struct costs c = calibrate_costs(pr, s);
	struct alike alike = { 0 };
	struct equations q;
	double all[MAX_U], of_share[MAX_U];

	q.free_at = free_at;
	q.n_free = n_free;
	q.n = 0;
	out->rss = pr->within;
	memset(out->slope, 0, n_free * sizeof *out->slope);
	for (size_t a = 0; a < n_free; a++)
		memset(out->curve[a], 0, (a + 1) * sizeof **out->curve);
	for (size_t i = 0; i < pr->n_points; i++) {
		const struct point *p = &pr->point[i];
		const struct row *r = &pr->row[p->row];
		struct terms t;
		double e;

		if (!i || p->alike != p[-1].alike)
			alike = alike_of(&c, r, pr->n_categories);
		t = terms_of(&c, r, &alike);
		e = log(t.total) - p->log_t;
		calibrate_gradient(pr, &c, s, r, &t, all);
		add_equation(&q, all, p->weight, e, out);
		if (p->busy_weight > 0.0) { /* an error of a share counts as one of a logarithm of a time */
			e = calibrate_share(pr, &c, s, r, &t, SHARE_CPU, all, of_share) - p->busy;
			add_equation(&q, of_share, p->busy_weight, e, out);
		}
		for (unsigned k = 0; k < N_SHARES && pr->uses_phases; k++) {
			double weight = p->share_weight[k] * pr->share_weight[k];

			if (!(weight > 0.0))
				continue;
			e = calibrate_share(pr, &c, s, r, &t, k, all, of_share) - p->share[k];
			add_equation(&q, of_share, weight, e, out);
		}
	}
	sum_equations(&q, out);
	for (size_t a = 0; pr->crossed && a < n_free; a++)
		if (free_at[a] >= N_SHARED) {
			double u = s->u[free_at[a]];

			out->rss += FACTOR_WEIGHT * u * u;
			out->slope[a] += FACTOR_WEIGHT * u;
			out->curve[a][a] += FACTOR_WEIGHT;
		}
}

/* The step of a damped Newton search, by Cholesky's decomposition. False: damp it more. */
static bool step_of(const struct normal *q, size_t n, double damping, double *out)
{
	double l[MAX_U][MAX_U];

	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b <= a; b++) {
			double v = q->curve[a][b];

			if (a == b)
				v += damping * (v + 1e-12);
			for (size_t k = 0; k < b; k++)
				v -= l[a][k] * l[b][k];
			if (a == b && !(v > 0.0))
				return false;
			l[a][b] = a == b ? sqrt(v) : v / l[b][b];
		}
	for (size_t a = 0; a < n; a++) {
		out[a] = -q->slope[a];
		for (size_t k = 0; k < a; k++)
			out[a] -= l[a][k] * out[k];
		out[a] /= l[a][a];
	}
	for (size_t a = n; a-- > 0;) {
		for (size_t k = a + 1; k < n; k++)
			out[a] -= l[k][a] * out[k];
		out[a] /= l[a][a];
	}
	return true;
}

/* The inverse of the curvature, by sweeping out the coordinates (Goodnight, The American Statistician 33(3),
 * 1979), the best determined first. Those that the others explain have zeros. */
static void invert(const struct normal *q, size_t n, double (*out)[MAX_U])
{
	double scale[MAX_U];
	bool swept[MAX_U] = { 0 };

	for (size_t a = 0; a < n; a++)
		scale[a] = q->curve[a][a] > 0.0 ? 1.0 / sqrt(q->curve[a][a]) : 0.0;
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b <= a; b++)
			out[a][b] = out[b][a] = q->curve[a][b] * scale[a] * scale[b];
	for (;;) {
		size_t at = n;
		double pivot;

		for (size_t a = 0; a < n; a++)
			if (!swept[a] && out[a][a] > LEAST_PIVOT && (at == n || out[a][a] > out[at][at]))
				at = a;
		if (at == n)
			break;
		swept[at] = true;
		pivot = out[at][at];
		for (size_t a = 0; a < n; a++)
			for (size_t b = 0; b < n; b++)
				if (a != at && b != at)
					out[a][b] -= out[a][at] * out[at][b] / pivot;
		for (size_t a = 0; a < n; a++) {
			out[a][at] /= pivot;
			out[at][a] = out[a][at];
		}
		out[at][at] = -1.0 / pivot;
	}
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < n; b++)
			out[a][b] = swept[a] && swept[b] ? -out[a][b] * scale[a] * scale[b] : 0.0;
}

void calibrate_covariance(const struct problem *pr, const struct solution *s, double (*out)[MAX_U])
{
	struct normal q;
	size_t free_at[MAX_U], n = calibrate_free(s, free_at);

	sum_up(pr, s, free_at, n, &q);
	invert(&q, n, out);
}

/* What a step would gain if the sum of squares were as its slope and curvature say. */
static double foretold(const struct normal *q, size_t n, double damping, const double *step)
{
	double gain = 0.0;

	for (size_t a = 0; a < n; a++)
		gain += step[a] * (damping * q->curve[a][a] * step[a] - q->slope[a]);
	return gain;
}

/* Damping follows how far the gain was foretold (Nielsen, Damping parameter in Marquardt's method, 1999): a
 * step in a narrow valley is not followed by a bolder one that fails. */
int calibrate_descend(const struct problem *pr, struct solution *s, size_t max_iterations, struct err *err)
{
	struct normal room[2], *here = &room[0], *there = &room[1]; /* large: swapped, not copied */
	size_t free_at[MAX_U], n = calibrate_free(s, free_at), small = 0;
	double damping = 1e-3, harder = 2.0, step[MAX_U], covariance[MAX_U][MAX_U];
	int rc = err_if_stopped(pr->p->stop, err);

	if (rc)
		return rc;
	sum_up(pr, s, free_at, n, here);
	for (size_t i = 0; i < max_iterations && small < 2 && damping < 1e12; i++) {
		struct solution try = *s;
		double gain, ratio, expected;

		if (!step_of(here, n, damping, step)) {
			damping *= 10.0;
			continue;
		}
		for (size_t a = 0; a < n; a++)
			try.u[free_at[a]] += calibrate_clamp(step[a], -MAX_STEP, MAX_STEP);
		sum_up(pr, &try, free_at, n, there);
		gain = here->rss - there->rss;
		if (!(gain >= 0.0)) { /* also a NaN */
			small += gain >= -SMALL_GAIN * here->rss; /* at the bottom, up to rounding */
			damping *= harder;
			harder *= 2.0;
			continue;
		}
		small = gain <= SMALL_GAIN * here->rss ? small + 1 : 0;
		expected = foretold(here, n, damping, step);
		ratio = expected > 0.0 ? 2.0 * gain / expected - 1.0 : 1.0;
		damping = fmax(damping * fmax(0.2, 1.0 - ratio * ratio * ratio), LEAST_DAMPING);
		harder = 2.0;
		*s = try;
		here = there;
		there = here == room ? &room[1] : room;
	}
	invert(here, n, covariance);
	memset(s->variance, 0, sizeof s->variance);
	for (size_t a = 0; a < n; a++)
		s->variance[free_at[a]] = covariance[a][a];
	s->n_free = n;
	s->rss = here->rss;
	s->aicc = calibrate_aicc(pr->count, n, s->rss);
	s->fitted = true;
	return 0;
}
