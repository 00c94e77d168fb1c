/* Nonlinear least squares on log time, from several starts.
 *
 * Costs are fitted as logarithms, the exponent and the saturation through a logistic, so every point of the
 * search is a sensible model. Two steps find the parameters that the table does not identify. Factors with
 * too few levels and tables with too few rows never free a parameter. After a fit, a parameter with a
 * standard error so large that it could be anything is fixed, and the rest is fitted again.
 * calibrate_descend.c has the fit itself, calibrate_rows.c the rows. */
#include "queueing/calibrate.h"

#include <assert.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "queueing/calibrate_internal.h"

const char *const calibrate_name[] = { "fixed_s",       "record_s",   "exponent", "disk_s",
				       "disk_record_s", "saturation", "cores" };
const char *const calibrate_state_name[] = { "fitted", "stated", "given", "absent" };

#define ROWS_PER_PARAMETER 2
#define MAX_LOG_SE 1.5 /* a cost within a factor of 20 either way is no knowledge */
#define MAX_SATURATION_SE 1.0
#define MAX_EXPONENT_SE 0.25
#define NEGLIGIBLE 0.02 /* share of the time, in every row, below which such a cost is absent */
#define MIN_CORES_GAIN 4.0 /* of the AICc: a kink is easily found in noise */
#define MAX_CORES_TRIED 8
#define QUICK_ITERATIONS 40 /* enough to tell which start is best */
#define MAX_ITERATIONS 200

static double logit(double p)
{
	return log(p / (1.0 - p));
}

/* ---- several starts, and fixing what the data do not identify ---- */

static void place(const struct problem *pr, struct solution *s, size_t start)
{
	/* shares of the median iteration: fixed, records, disk, disk by records; the exponent; saturation
	 * over the median number of processes */
	static const double from[][6] = {
		{ 0.60, 0.30, 0.10, 0.02, 0.8, 1.0 },
		{ 0.20, 0.60, 0.20, 0.05, 0.5, 1.0 },
		{ 0.30, 0.20, 0.50, 0.10, 0.9, 3.0 },
		{ 0.80, 0.10, 0.05, 0.01, 0.6, 0.5 },
	};
	const double *f = from[start];
	double log_c = log(pr->median_processes * f[5]);
	double value[N_SHARED] = {
		log(f[0] * pr->median_t),
		log(f[1] * pr->median_t / pr->median_batch),
		logit(f[4]),
		log(f[2] * pr->median_t),
		log(f[3] * pr->median_t / pr->median_batch),
		logit(calibrate_clamp((log_c - pr->log_low) / (pr->log_high - pr->log_low), 0.01, 0.99)),
	};

	for (size_t i = 0; i < N_SHARED; i++)
		if (s->hold[i] == HOLD_FREE)
			s->u[i] = value[i];
	for (size_t i = N_SHARED; i < MAX_U; i++)
		s->u[i] = 0.0;
}
enum { N_STARTS = 4 };

static int best_of_starts(const struct problem *pr, struct solution *s, struct err *err)
{
	struct solution best = { .rss = INFINITY };

	for (size_t k = 0; k < N_STARTS; k++) {
		struct solution try = *s;
		int rc;

		place(pr, &try, k);
		rc = calibrate_descend(pr, &try, QUICK_ITERATIONS, err);
		if (rc)
			return rc;
		if (!best.fitted || try.rss < best.rss * (1.0 - 1e-9))
			best = try;
	}
	*s = best;
	return calibrate_descend(pr, s, MAX_ITERATIONS, err);
}

/* Standard error of a free coordinate; infinite where the covariance could not tell. */
static double se_of(const struct problem *pr, const struct solution *s, size_t i)
{
	double df = (double)pr->n - (double)s->n_free;

	if (!(s->variance[i] > 0.0) || df <= 0.0)
		return INFINITY;
	return sqrt(s->variance[i] * s->rss / df);
}

static double largest_share(const struct problem *pr, const struct solution *s, size_t i)
{
	struct costs c = calibrate_costs(pr, s);
	double most = 0.0;

	for (size_t k = 0; k < pr->n; k++) {
		struct terms t = calibrate_terms(&c, s, &pr->row[k], pr->n_categories);
		double part = i == CALIBRATE_FIXED    ? t.fixed
			      : i == CALIBRATE_RECORD ? t.record
			      : i == CALIBRATE_DISK   ? t.disk
						      : t.disk_record;
		most = fmax(most, part / t.total);
	}
	return most;
}

/* Fixes the first parameter that the data do not identify. Returns false if all are identified. */
static bool fix_one(const struct problem *pr, struct solution *s)
{
	static const size_t order[] = { CALIBRATE_SATURATION, CALIBRATE_EXPONENT, CALIBRATE_DISK_RECORD,
					CALIBRATE_DISK,       CALIBRATE_RECORD,   CALIBRATE_FIXED };
	bool tied = s->hold[CALIBRATE_RECORD] == HOLD_TIED || s->hold[CALIBRATE_DISK] == HOLD_TIED;

	for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
		size_t i = order[k];
		double se = s->hold[i] == HOLD_FREE ? se_of(pr, s, i) : 0.0, p, slope;

		if (s->hold[i] != HOLD_FREE)
			continue;
		switch (i) {
		case CALIBRATE_SATURATION:
			p = calibrate_logistic(s->u[i]);
			slope = (pr->log_high - pr->log_low) * p * (1.0 - p);
			/* at an end of its range the logistic is flat and the error says nothing */
			if (se * slope <= MAX_SATURATION_SE && p > 0.02 && p < 0.98)
				continue;
			s->u[i] = pr->median_processes;
			s->hold[i] = HOLD_CONSTANT;
			return true;
		case CALIBRATE_EXPONENT:
			p = calibrate_logistic(s->u[i]);
			if (se * p * (1.0 - p) <= MAX_EXPONENT_SE && p > 0.02 && p < 0.98)
				continue;
			s->u[i] = p >= 0.98 ? 1.0 : p <= 0.02 ? 0.0 : STATED_EXPONENT;
			s->hold[i] = HOLD_CONSTANT;
			return true;
		case CALIBRATE_FIXED:
			if (se <= MAX_LOG_SE || tied || s->n_free == 1 ||
			    largest_share(pr, s, i) > NEGLIGIBLE)
				continue;
			s->hold[i] = HOLD_ABSENT;
			for (size_t c = 0; c < CALIBRATE_MAX_CATEGORIES; c++) {
				s->hold[U_FIXED_OF(c)] = HOLD_ABSENT;
				s->u[U_FIXED_OF(c)] = 0.0;
			}
			return true;
		default:
			if (se <= MAX_LOG_SE)
				continue;
			if (largest_share(pr, s, i) <= NEGLIGIBLE || i == CALIBRATE_DISK_RECORD ||
			    s->hold[CALIBRATE_FIXED] != HOLD_FREE)
				s->hold[i] = HOLD_ABSENT;
			else
				s->hold[i] = HOLD_TIED;
			if (i == CALIBRATE_RECORD)
				for (size_t c = 0; c < CALIBRATE_MAX_CATEGORIES; c++) {
					s->hold[U_RECORD_OF(c)] = HOLD_ABSENT;
					s->u[U_RECORD_OF(c)] = 0.0;
				}
			return true;
		}
	}
	return false;
}

static int fit_identified(const struct problem *pr, struct solution *s, struct err *err)
{
	for (size_t turn = 0;; turn++) {
		int rc = best_of_starts(pr, s, err);

		if (rc || turn >= N_SHARED || !fix_one(pr, s))
			return rc;
	}
}

/* ---- what may be free at all ---- */

static size_t count_levels(const struct problem *pr, double (*value)(const struct row *), size_t most)
{
	double seen[4];
	size_t n = 0;

	assert(most <= 4);
	for (size_t i = 0; i < pr->n && n < most; i++) {
		double v = value(&pr->row[i]);
		size_t k = 0;

		while (k < n && seen[k] != v)
			k++;
		if (k == n)
			seen[n++] = v;
	}
	return n;
}

static double batch_of(const struct row *r)
{
	return r->batch;
}

static double share_of(const struct row *r)
{
	return r->log_share;
}

static double processes_of(const struct row *r)
{
	return r->processes;
}

static void choose_free(const struct problem *pr, bool record_by_category, bool fixed_by_category,
			struct solution *s)
{
	size_t batches = count_levels(pr, batch_of, 3), shares = count_levels(pr, share_of, 3),
	       loads = count_levels(pr, processes_of, 3);
	size_t most = pr->n / ROWS_PER_PARAMETER, n = 1;

	*s = (struct solution){ 0 };
	for (size_t i = 0; i < MAX_U; i++)
		s->hold[i] = HOLD_ABSENT;
	s->hold[CALIBRATE_FIXED] = HOLD_FREE;
	s->hold[CALIBRATE_RECORD] = HOLD_TIED;
	s->hold[CALIBRATE_DISK] = HOLD_TIED;
	s->hold[CALIBRATE_EXPONENT] = s->hold[CALIBRATE_SATURATION] = HOLD_CONSTANT;
	s->u[CALIBRATE_EXPONENT] = STATED_EXPONENT;
	s->u[CALIBRATE_SATURATION] = pr->median_processes;
	if (n < most && (batches >= 2 || shares >= 2))
		s->hold[CALIBRATE_RECORD] = HOLD_FREE, n++;
	if (n < most && loads >= 2)
		s->hold[CALIBRATE_DISK] = HOLD_FREE, n++;
	if (n < most && (shares >= 3 || (shares >= 2 && batches >= 2)))
		s->hold[CALIBRATE_EXPONENT] = HOLD_FREE, n++;
	for (size_t k = 0; k < pr->n_categories && record_by_category; k++)
		if (n < most && pr->usable_category[k] && s->hold[CALIBRATE_RECORD] == HOLD_FREE)
			s->hold[U_RECORD_OF(k)] = HOLD_FREE, n++;
	for (size_t k = 0; k < pr->n_categories && fixed_by_category; k++)
		if (n < most && pr->usable_category[k])
			s->hold[U_FIXED_OF(k)] = HOLD_FREE, n++;
	if (n < most && loads >= 2 && batches >= 3)
		s->hold[CALIBRATE_DISK_RECORD] = HOLD_FREE, n++;
	if (n < most && loads >= 3)
		s->hold[CALIBRATE_SATURATION] = HOLD_FREE, n++;
}

/* The best by AICc of: no difference between categories, in the records, in the fixed cost, in both. */
static int fit_categories(const struct problem *pr, struct solution *out, struct err *err)
{
	bool any = false;

	for (size_t k = 0; k < pr->n_categories; k++)
		any |= pr->usable_category[k];
	for (int both = 0; both < (any ? 4 : 1); both++) {
		struct solution s;
		int rc;

		choose_free(pr, both & 1, both & 2, &s);
		rc = fit_identified(pr, &s, err);
		if (rc)
			return rc;
		if (both == 0 || s.aicc < out->aicc)
			*out = s;
	}
	return 0;
}

/* ---- cores ---- */

/* Tries numbers of processes that occurred as the number of cores; one must earn its parameter clearly. */
static int fit_cores(struct problem *pr, struct solution *s, struct err *err)
{
	double *level = mem_array(pr->n, sizeof *level), best = INFINITY;
	struct solution chosen = *s;
	size_t n = 0;

	if (!level)
		return err_nomem(err, "%zu loads", pr->n);
	for (size_t i = 0; i < pr->n; i++)
		level[i] = pr->row[i].processes;
	stats_sort(level, pr->n);
	for (size_t i = 0; i < pr->n; i++) /* a tenth of the rows must lie beyond it */
		if (i + pr->n / 10 + 3 < pr->n && (n == 0 || level[i] != level[n - 1]))
			level[n++] = level[i];
	for (size_t k = 0; k < MAX_CORES_TRIED && n > 2 && 2 * (s->n_free + 2) < pr->n; k++) {
		struct solution try = *s;
		int rc;

		calibrate_set_cores(pr, level[n - 1 - k * (n - 1) / MAX_CORES_TRIED]);
		rc = calibrate_descend(pr, &try, MAX_ITERATIONS, err);
		if (rc) {
			free(level);
			return rc;
		}
		try.aicc = calibrate_aicc(pr->n, try.n_free + 1, try.rss);
		if (try.aicc < chosen.aicc - (isinf(best) ? MIN_CORES_GAIN : 0.0)) {
			chosen = try;
			best = pr->cores;
		}
	}
	calibrate_set_cores(pr, best);
	*s = chosen;
	free(level);
	return 0;
}

/* ---- results ---- */

/* A category without the cost at all sends its logarithm towards minus infinity; from here on it makes no
 * difference to a time. */
static double within_logs(double u)
{
	return u > CALIBRATE_MAX_LOG ? CALIBRATE_MAX_LOG : u < -CALIBRATE_MAX_LOG ? -CALIBRATE_MAX_LOG : u;
}

static void finish(const struct problem *pr, const struct solution *s, bool cores_given,
		   struct calibrated *out)
{
	double mean = 0.0, squares = 0.0, relative = 0.0, p;
	size_t df = pr->n > s->n_free ? pr->n - s->n_free : 0;
	struct costs c = calibrate_costs(pr, s);

	for (size_t i = 0; i < CALIBRATE_PARAMETERS; i++) {
		out->se[i] = NAN;
		out->state[i] = i == CALIBRATE_CORES        ? CALIBRATE_ABSENT
				: s->hold[i] == HOLD_FREE   ? CALIBRATE_FITTED
				: s->hold[i] == HOLD_ABSENT ? CALIBRATE_ABSENT
							    : CALIBRATE_STATED;
	}
	out->value[CALIBRATE_FIXED] = c.fixed;
	out->value[CALIBRATE_RECORD] = c.record;
	out->value[CALIBRATE_EXPONENT] = c.a;
	out->value[CALIBRATE_DISK] = c.disk;
	out->value[CALIBRATE_DISK_RECORD] = c.disk_record;
	out->value[CALIBRATE_SATURATION] = c.saturation;
	out->value[CALIBRATE_CORES] = pr->cores;
	if (isfinite(pr->cores))
		out->state[CALIBRATE_CORES] = cores_given ? CALIBRATE_GIVEN : CALIBRATE_FITTED;
	/* Delta method: se of g(u) is |g'(u)| se of u. */
	for (size_t i = 0; i < N_SHARED; i++) {
		double slope = out->value[i];

		if (i == CALIBRATE_EXPONENT)
			slope = c.a * (1.0 - c.a);
		if (i == CALIBRATE_SATURATION) {
			p = calibrate_logistic(s->u[i]);
			slope *= (pr->log_high - pr->log_low) * p * (1.0 - p);
		}
		if (s->hold[i] == HOLD_FREE && isfinite(se_of(pr, s, i)))
			out->se[i] = slope * se_of(pr, s, i);
	}
	out->n_categories = pr->n_categories;
	out->category_record = out->category_fixed = 0;
	for (size_t k = 0; k < pr->n_categories; k++) {
		bool record = s->hold[U_RECORD_OF(k)] == HOLD_FREE,
		     fixed = s->hold[U_FIXED_OF(k)] == HOLD_FREE;

		out->category_record |= record;
		out->category_fixed |= fixed;
		out->record_log[k] = within_logs(s->u[U_RECORD_OF(k)]);
		out->fixed_log[k] = within_logs(s->u[U_FIXED_OF(k)]);
		out->record_log_se[k] =
			record && isfinite(se_of(pr, s, U_RECORD_OF(k))) ? se_of(pr, s, U_RECORD_OF(k)) : NAN;
		out->fixed_log_se[k] =
			fixed && isfinite(se_of(pr, s, U_FIXED_OF(k))) ? se_of(pr, s, U_FIXED_OF(k)) : NAN;
	}
	/* R2 is of log time itself, not of the time of an iteration. */
	for (size_t i = 0; i < pr->n; i++)
		mean += log(pr->p->time_s[pr->row[i].from]) / (double)pr->n;
	for (size_t i = 0; i < pr->n; i++) {
		double y = log(pr->p->time_s[pr->row[i].from]) - mean;
		double e = log(calibrate_terms(&c, s, &pr->row[i], pr->n_categories).total) -
			   pr->row[i].log_t;

		squares += y * y;
		relative += fabs(expm1(e)) / (double)pr->n;
	}
	out->n_rows = pr->n;
	out->n_free = s->n_free;
	out->r2 = squares > 0.0 ? 1.0 - s->rss / squares : NAN;
	out->sd = df ? sqrt(s->rss / (double)df) : NAN;
	out->mape = relative;
}

/* h_i = g_i' (J'J)^-1 g_i, at the solution. */
static int leverages(const struct problem *pr, const struct solution *s, double *out, struct err *err)
{
	struct costs costs = calibrate_costs(pr, s);
	size_t free_at[MAX_U], p = 0;
	gsl_matrix *J, *c;
	int rc = 0;

	for (size_t i = 0; i < pr->p->n; i++)
		out[i] = calibrate_usable(pr->p, i) ? 0.0 : NAN; /* thinned out: not in the fit at all */
	for (size_t i = 0; i < MAX_U; i++)
		if (s->hold[i] == HOLD_FREE)
			free_at[p++] = i;
	J = gsl_matrix_alloc(pr->n, p);
	c = gsl_matrix_alloc(p, p);
	if (!J || !c) {
		rc = err_nomem(err, "the leverages of %zu rows", pr->n);
		goto out;
	}
	for (size_t i = 0; i < pr->n; i++) {
		double g[MAX_U];

		calibrate_gradient(pr, &costs, s, &pr->row[i], g);
		for (size_t k = 0; k < p; k++)
			gsl_matrix_set(J, i, k, g[free_at[k]]);
	}
	if (gsl_multifit_nlinear_covar(J, 1e-10, c) != GSL_SUCCESS)
		goto out;
	for (size_t i = 0; i < pr->n; i++) {
		double h = 0.0;

		for (size_t a = 0; a < p; a++)
			for (size_t b = 0; b < p; b++)
				h += gsl_matrix_get(J, i, a) * gsl_matrix_get(c, a, b) *
				     gsl_matrix_get(J, i, b);
		out[pr->row[i].from] = isfinite(h) ? calibrate_clamp(h, 0.0, 1.0) : 0.0;
	}
out:
	gsl_matrix_free(J);
	gsl_matrix_free(c);
	return rc;
}

static void gsl_returns_errors(void)
{
	gsl_set_error_handler_off(); /* its own handler aborts */
}

int calibrate_fit(const struct calibrate_params *p, struct calibrated *out, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct problem pr = { .p = p, .n_categories = p->n_categories };
	struct calibrated m = { 0 };
	struct solution s;
	int rc;

	pthread_once(&once, gsl_returns_errors);
	if (p->n_categories > CALIBRATE_MAX_CATEGORIES || !(p->cores >= 0.0))
		return err_fail(err, ERR_ARG, "%zu categories, %g cores: need at most %d and at least 0",
				p->n_categories, p->cores, CALIBRATE_MAX_CATEGORIES);
	rc = calibrate_prepare(&pr, &m.n_skipped, err);
	if (rc)
		goto out;
	calibrate_set_cores(&pr, p->cores > 0.0 ? p->cores : INFINITY);
	rc = fit_categories(&pr, &s, err);
	if (!rc && !(p->cores > 0.0))
		rc = fit_cores(&pr, &s, err);
	if (!rc && p->leverage)
		rc = leverages(&pr, &s, p->leverage, err);
	if (rc)
		goto out;
	finish(&pr, &s, p->cores > 0.0, &m);
	if (!isfinite(s.rss))
		rc = err_fail(err, ERR_NUMERIC, "the times have no finite fit");
	else
		*out = m;
out:
	free(pr.row);
	free(pr.point);
	return rc;
}

double calibrate_time_s(const struct calibrated *m, const struct calibrate_job *j)
{
	const double *v = m->value;
	double record = v[CALIBRATE_RECORD], fixed = v[CALIBRATE_FIXED], log_record = 0.0, log_fixed = 0.0,
	       share;

	for (size_t k = 0; k < m->n_categories; k++) {
		log_record += j->category[k] * m->record_log[k];
		log_fixed += j->category[k] * m->fixed_log[k];
	}
	if (log_record != 0.0)
		record *= exp(log_record);
	if (log_fixed != 0.0)
		fixed *= exp(log_fixed);
	share = fmin(fmin(j->cpus, j->batch), v[CALIBRATE_CORES]);
	return j->iterations * ((fixed + record * j->batch * pow(share, -v[CALIBRATE_EXPONENT])) *
					fmax(1.0, j->processes / v[CALIBRATE_CORES]) +
				(v[CALIBRATE_DISK] + v[CALIBRATE_DISK_RECORD] * j->batch) *
					(1.0 + j->processes / v[CALIBRATE_SATURATION]));
}

/* "7.4 ms", "0.041 s": two digits, in the unit a person would use. */
static const char *cost_text(double s, char *buf, size_t size)
{
	if (s >= 0.01)
		snprintf(buf, size, "%.2g s", s);
	else if (s >= 1e-5)
		snprintf(buf, size, "%.2g ms", 1e3 * s);
	else
		snprintf(buf, size, "%.2g us", 1e6 * s);
	return buf;
}

char *calibrate_sentence(const struct calibrated *m, char *buf, size_t size)
{
	const double *v = m->value;
	char a[32], b[32];
	int used = 0;

	used = snprintf(buf, size, "%s per iteration fixed, %s per record per cpu (shared by cpus^%.2f)",
			cost_text(v[CALIBRATE_FIXED], a, sizeof a),
			cost_text(v[CALIBRATE_RECORD], b, sizeof b), v[CALIBRATE_EXPONENT]);
	if (v[CALIBRATE_DISK] > 0.0 && (size_t)used < size)
		used += snprintf(buf + used, size - (size_t)used, ", disk %s",
				 cost_text(v[CALIBRATE_DISK], a, sizeof a));
	if (v[CALIBRATE_DISK_RECORD] > 0.0 && (size_t)used < size)
		used += snprintf(buf + used, size - (size_t)used, "%s%s per record",
				 v[CALIBRATE_DISK] > 0.0 ? " and " : ", disk ",
				 cost_text(v[CALIBRATE_DISK_RECORD], a, sizeof a));
	if ((v[CALIBRATE_DISK] > 0.0 || v[CALIBRATE_DISK_RECORD] > 0.0) && (size_t)used < size)
		used += snprintf(buf + used, size - (size_t)used, ", saturation at %.3g processes",
				 v[CALIBRATE_SATURATION]);
	if (isfinite(v[CALIBRATE_CORES]) && (size_t)used < size)
		snprintf(buf + used, size - (size_t)used, ", shared evenly beyond %.3g processes",
			 v[CALIBRATE_CORES]);
	return buf;
}
