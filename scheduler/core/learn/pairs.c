/* Sums of a weighted regression for each kind, and its solution under each variance of the effects. See
 * pairs.h. */
#include "scheduler/core/learn/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/core/learn/adapt.h"

#define N (1 + PAIRS_KINDS) /* coefficients: a level, and an effect of each kind */
#define VARIANCES 5
#define MEMORY 400.0 /* scores of a kind that count; twice the window of adapt.h, as there is more to tell */
#define USERS 8 /* of a kind that are told apart: the belief is about the two largest */
#define LEVEL_DEVIATION 0.5 /* of the level of a kind, which is not used: wide */
#define PRIOR_SCORES 10.0 /* as many scores as the deviation of the model counts for */
#define MOST_DEVIATIONS 3.0 /* of a score */
#define LEAST_EFFECT 0.01 /* smaller ones are none: they could not be noticed, and cost time */

/* Deviations of effects, in log time. The speeds of public pairs of jobs on one GPU are 0.68 to 1.05, a
 * range of 0.43. That there are no effects is believed as much beforehand as all of the others together. */
static const double deviation[VARIANCES] = { 0.0, 0.05, 0.1, 0.2, 0.4 };
static const double belief[VARIANCES] = { 0.5, 0.125, 0.125, 0.125, 0.125 };

struct row { /* of a kind: what its jobs feel */
	double xx[N][N], xy[N], yy, n; /* weighted sums; 0 is the level */
	double evidence[VARIANCES]; /* logarithms, against no effects */
	double effect[VARIANCES][N];
	double mean[N]; /* of these, by what each variance is believed */
	struct {
		uint32_t user;
		double weight; /* 0: free */
	} user[USERS];
};

struct pairs {
	uint64_t kind[PAIRS_KINDS]; /* 0: free */
	uint64_t used_at[PAIRS_KINDS];
	uint64_t born_at[PAIRS_KINDS]; /* when it took the place of another; 0: it was free */
	uint32_t running[PAIRS_KINDS];
	uint64_t uses; /* starts and observations */
	double spread;
	bool learnt;
	struct fluid_kinds out;
	struct row row[PAIRS_KINDS];
};

int pairs_new(struct pairs **out, struct err *err)
{
	struct pairs *p = mem_calloc(1, sizeof *p);

	if (!p)
		return err_nomem(err, "what kinds of jobs do to each other");
	p->out.room = 1.0;
	p->spread = ADAPT_SPREAD;
	*out = p;
	return 0;
}

void pairs_free(struct pairs *p)
{
	free(p);
}

void pairs_set_room(struct pairs *p, double processes)
{
	p->out.room = processes;
}

static void forget(struct pairs *p, size_t k)
{
	memset(&p->row[k], 0, sizeof p->row[k]);
	p->out.least[k] = p->out.most[k] = 0.0;
	for (size_t i = 0; i < PAIRS_KINDS; i++) {
		struct row *r = &p->row[i];

		p->out.slow[k][i] = p->out.slow[i][k] = 0.0;
		r->xy[1 + k] = r->mean[1 + k] = 0.0;
		for (size_t j = 0; j < N; j++)
			r->xx[1 + k][j] = r->xx[j][1 + k] = 0.0;
		for (size_t v = 0; v < VARIANCES; v++)
			r->effect[v][1 + k] = 0.0;
	}
}

void pairs_reset(struct pairs *p, double spread)
{
	p->spread = spread > 0.0 && isfinite(spread) ? spread : ADAPT_SPREAD;
	p->learnt = false;
	for (size_t k = 0; k < PAIRS_KINDS; k++) {
		forget(p, k);
		if (!p->running[k])
			p->kind[k] = 0;
	}
}

/* ---- numbers of kinds ---- */

uint16_t pairs_find(const struct pairs *p, uint64_t kind)
{
	for (size_t i = 0; kind && i < p->out.n; i++)
		if (p->kind[i] == kind)
			return (uint16_t)(1 + i);
	return 0;
}

/* A free place, or that of a kind that was not seen for as many jobs as are remembered: more kinds than
 * there are places may not drive each other out all the time. */
static uint16_t number_of(struct pairs *p, uint64_t kind)
{
	uint16_t have = pairs_find(p, kind);
	size_t oldest = PAIRS_KINDS;

	p->uses++;
	for (size_t i = 0; !have && i < PAIRS_KINDS; i++) {
		if (p->kind[i] && (p->running[i] || (double)(p->uses - p->used_at[i]) < MEMORY))
			continue;
		if (oldest == PAIRS_KINDS || !p->kind[i] || p->used_at[i] < p->used_at[oldest])
			oldest = i;
		if (!p->kind[i])
			break;
	}
	if (!have && oldest == PAIRS_KINDS)
		return 0;
	if (!have) {
		forget(p, oldest);
		p->born_at[oldest] = p->kind[oldest] ? p->uses : 0;
		p->kind[oldest] = kind;
		p->out.n = oldest + 1 > p->out.n ? oldest + 1 : p->out.n;
		have = (uint16_t)(1 + oldest);
	}
	p->used_at[have - 1] = p->uses;
	return have;
}

uint16_t pairs_enter(struct pairs *p, uint64_t kind)
{
	uint16_t number = kind ? number_of(p, kind) : 0;

	if (number)
		p->running[number - 1]++;
	return number;
}

void pairs_leave(struct pairs *p, uint16_t number)
{
	if (number)
		p->running[number - 1]--;
}

/* ---- what jobs meet ---- */

void pairs_pass(const struct pairs *p, struct pairs_clock *c, double processes, double for_s)
{
	double part_s = for_s / fmax(p->out.room, processes);

	for (size_t i = 1; i <= p->out.n; i++)
		c->share_s[i] += part_s * (double)c->held[i];
	c->passed_s += for_s;
}

struct pairs_start pairs_start(const struct pairs *p, const struct pairs_clock *c)
{
	struct pairs_start from = { .births = p->uses, .passed_s = c->passed_s };

	memcpy(from.share_s, c->share_s, sizeof from.share_s);
	return from;
}

void pairs_meet(const struct pairs *p, const struct pairs_clock *c, const struct pairs_start *from,
		uint16_t number, struct pairs_met *out)
{
	double ran_s = c->passed_s - from->passed_s;

	*out = (struct pairs_met){ .kind = number && ran_s > 0.0 ? p->kind[number - 1] : 0 };
	for (size_t i = 1; out->kind && i <= p->out.n; i++) {
		double share_s = c->share_s[i] - from->share_s[i];

		/* a place that was another kind's before says nothing clear */
		if (i == number || !(share_s > 0.0) || p->born_at[i - 1] > from->births)
			continue;
		out->beside[out->n].kind = p->kind[i - 1];
		out->beside[out->n++].share = fmin(share_s / ran_s, 1.0);
	}
}

/* ---- learning ---- */

/* Of one score, around the level of its kind and without effects: where there are some it is on the safe
 * side. */
static double variance_of_scores(const struct pairs *p)
{
	double sum = PRIOR_SCORES * p->spread * p->spread, n = PRIOR_SCORES;

	for (size_t k = 0; k < p->out.n; k++) {
		const struct row *r = &p->row[k];

		if (r->n > 1.0) {
			sum += fmax(r->yy - r->xy[0] * r->xy[0] / r->n, 0.0);
			n += r->n - 1.0;
		}
	}
	return sum / n;
}

/* Solves L L' x = b for the positive definite m, which becomes L; returns log(evidence) but for a
 * constant. x is b before. */
static double solve(double m[N][N], double *x, size_t n)
{
	double log_det = 0.0, fit = 0.0;

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j <= i; j++) {
			double sum = m[i][j];

			for (size_t k = 0; k < j; k++)
				sum -= m[i][k] * m[j][k];
			m[i][j] = i == j ? sqrt(sum) : sum / m[j][j];
		}
		for (size_t k = 0; k < i; k++)
			x[i] -= m[i][k] * x[k];
		x[i] /= m[i][i];
		fit += x[i] * x[i];
		log_det += log(m[i][i]);
	}
	for (size_t i = n; i-- > 0;) {
		for (size_t k = i + 1; k < n; k++)
			x[i] -= m[k][i] * x[k];
		x[i] /= m[i][i];
	}
	return 0.5 * fit - log_det;
}

/* The regression of a kind, with effects of this deviation. */
static void fit_row(struct row *r, double variance, size_t v)
{
	double m[N][N], x[N], prior = -log(LEVEL_DEVIATION);
	size_t used[N], n = 0;

	for (size_t i = 0; i < N; i++)
		if (!i || (deviation[v] > 0.0 && r->xx[i][i] > 0.0))
			used[n++] = i;
	for (size_t i = 0; i < n; i++) {
		double own = i ? deviation[v] : LEVEL_DEVIATION;

		for (size_t j = 0; j <= i; j++)
			m[i][j] = r->xx[used[i]][used[j]] / variance;
		m[i][i] += 1.0 / (own * own);
		x[i] = r->xy[used[i]] / variance;
		prior -= i ? log(own) : 0.0;
	}
	r->evidence[v] = solve(m, x, n) + prior;
	memset(r->effect[v], 0, sizeof r->effect[v]);
	for (size_t i = 0; i < n; i++)
		r->effect[v][used[i]] = x[i];
}

static void weigh_variances(const struct pairs *p, double *out)
{
	double most = -INFINITY, sum = 0.0;

	for (size_t v = 0; v < VARIANCES; v++) {
		out[v] = log(belief[v]);
		for (size_t k = 0; k < p->out.n; k++)
			out[v] += p->row[k].evidence[v] - p->row[k].evidence[0];
		most = fmax(most, out[v]);
	}
	for (size_t v = 0; v < VARIANCES; v++)
		sum += out[v] = exp(out[v] - most);
	for (size_t v = 0; v < VARIANCES; v++)
		out[v] /= sum;
}

/* The effects of kind k, and what follows for the look-ahead. Returns whether there are any. */
static bool conclude(struct pairs *p, size_t k, const double *weight)
{
	struct row *r = &p->row[k];
	bool any = false;

	p->out.least[k] = p->out.most[k] = 0.0;
	for (size_t i = 0; i < 1 + p->out.n; i++) {
		double effect = 0.0, slow;

		for (size_t v = 0; v < VARIANCES; v++)
			effect += weight[v] * r->effect[v][i];
		r->mean[i] = effect;
		if (!i)
			continue;
		effect = fabs(effect) < LEAST_EFFECT ? 0.0 : fmax(-PAIRS_MOST, fmin(PAIRS_MOST, effect));
		slow = rint(expm1(effect) / FLUID_SLOW_UNIT) * FLUID_SLOW_UNIT;
		p->out.slow[i - 1][k] = slow;
		p->out.least[k] = fmin(p->out.least[k], slow);
		p->out.most[k] = fmax(p->out.most[k], slow);
		any = any || slow != 0.0;
	}
	return any;
}

static void count_user(struct row *r, uint32_t user)
{
	size_t least = 0, own = USERS;

	for (size_t i = 0; i < USERS; i++) {
		r->user[i].weight *= 1.0 - 1.0 / MEMORY;
		if (r->user[i].user == user && r->user[i].weight > 0.0)
			own = i;
		if (r->user[i].weight < r->user[least].weight)
			least = i;
	}
	if (own == USERS) {
		own = least;
		r->user[own].user = user;
		r->user[own].weight = 0.0;
	}
	r->user[own].weight += 1.0;
}

static void add_score(struct pairs *p, struct row *r, const double *x, double score)
{
	double expected = 0.0, reach = MOST_DEVIATIONS * sqrt(variance_of_scores(p)),
	       keep = 1.0 - 1.0 / MEMORY;

	for (size_t i = 0; i < N; i++)
		expected += x[i] * r->mean[i];
	score = fmax(expected - reach, fmin(expected + reach, score));
	for (size_t i = 0; i < N; i++) {
		for (size_t j = 0; j < N; j++)
			r->xx[i][j] = r->xx[i][j] * keep + x[i] * x[j];
		r->xy[i] = r->xy[i] * keep + x[i] * score;
	}
	r->yy = r->yy * keep + score * score;
	r->n = r->n * keep + 1.0;
}

double pairs_part(const struct pairs *p, double held, double processes)
{
	return held / fmax(p->out.room, processes);
}

/* user NULL: everybody believes it. */
static void learn(struct pairs *p, const struct pairs_met *met, const uint32_t *user, double score)
{
	double x[N] = { 1.0 }, weight[VARIANCES], variance;
	uint16_t own = met->kind ? number_of(p, met->kind) : 0;
	struct row *r;

	if (!own || !isfinite(score))
		return;
	r = &p->row[own - 1];
	for (size_t i = 0; i < met->n; i++) {
		uint16_t g = met->beside[i].kind != met->kind ? number_of(p, met->beside[i].kind) : 0;

		if (g)
			x[g] = fmax(0.0, fmin(1.0, met->beside[i].share));
	}
	add_score(p, r, x, score);
	if (user)
		count_user(r, *user);
	variance = variance_of_scores(p);
	for (size_t v = 0; v < VARIANCES; v++)
		fit_row(r, variance, v);
	weigh_variances(p, weight);
	p->learnt = false;
	for (size_t k = 0; k < p->out.n; k++)
		p->learnt |= conclude(p, k, weight);
}

void pairs_observe(struct pairs *p, const struct pairs_met *met, uint32_t user, double score)
{
	learn(p, met, &user, score);
}

void pairs_teach(struct pairs *p, const struct pairs_met *met, double score)
{
	learn(p, met, NULL, score);
}

/* ---- what was learnt ---- */

const struct fluid_kinds *pairs_learnt(const struct pairs *p)
{
	return p->learnt ? &p->out : NULL;
}

uint16_t pairs_felt(const struct pairs *p, uint16_t number, uint32_t user)
{
	const struct row *r = number ? &p->row[number - 1] : NULL;
	double first = 0.0, second = 0.0;

	for (size_t i = 0; r && i < USERS; i++) {
		double w = r->user[i].user == user ? 0.0 : r->user[i].weight;

		second = fmax(second, fmin(first, w));
		first = fmax(first, w);
	}
	return r && first + second < 0.5 * r->n ? number : 0;
}

void pairs_slow(const struct pairs *p, const uint64_t *held, double processes, double *out)
{
	double part = 1.0 / fmax(p->out.room, processes);

	for (size_t k = 0; k <= PAIRS_KINDS; k++)
		out[k] = 1.0;
	for (size_t g = 1; p->learnt && g <= p->out.n; g++)
		for (size_t k = 1; held[g] && k <= p->out.n; k++)
			out[k] += p->out.slow[g - 1][k - 1] * (double)held[g] * part;
}

double pairs_effect(const struct pairs *p, uint64_t kind, uint64_t beside)
{
	uint16_t k = pairs_find(p, kind), g = pairs_find(p, beside);

	return k && g ? log1p(p->out.slow[g - 1][k - 1]) : 0.0;
}
