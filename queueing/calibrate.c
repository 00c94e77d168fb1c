/* Nonlinear least squares on log time, from several starts.
 *
 * Costs are fitted as logarithms, the exponent and the saturation through a logistic, so every point of the
 * search is a sensible model. calibrate_forms.c chooses what is fitted, calibrate_descend.c has the fit
 * itself, calibrate_rows.c the rows. */
#include "queueing/calibrate.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "queueing/calibrate_internal.h"

const char *const calibrate_name[] = { "fixed_s",    "record_s", "exponent", "disk_s",  "disk_record_s",
				       "saturation", "cores",    "start_s",  "delay_s", "delay_record_s" };
const char *const calibrate_factor_name[] = { "record", "fixed", "start", "delay" };
const char *const calibrate_state_name[] = { "fitted", "stated", "given", "absent" };

/* ---- results ---- */

/* A category without the cost at all sends its logarithm towards minus infinity; from here on it makes no
 * difference to a time. */
static double within_logs(double u)
{
	return u > CALIBRATE_MAX_LOG ? CALIBRATE_MAX_LOG : u < -CALIBRATE_MAX_LOG ? -CALIBRATE_MAX_LOG : u;
}

#define CLEARLY 2.0 /* of a log likelihood */
#define LEAST_WORK 0.05

static double work_share(double start, double total)
{
	return fmax(LEAST_WORK, 1.0 - start / total);
}

/* A start-up takes as long every time, or nearly: then the rest of the time errs by a factor, and long runs
 * by more of theirs than short ones. Whether it is so, the residuals say: by the likelihood of a normal
 * spread that is as large for all rows, and of one in proportion to the work. */
static bool does_work_err(const struct problem *pr, const struct costs *c)
{
	double all = 0.0, of_work = 0.0, logs = 0.0, n = (double)pr->n;

	if (!(c->cost[CALIBRATE_START] > 0.0))
		return false;
	for (size_t i = 0; i < pr->n; i++) {
		struct terms t = calibrate_terms(c, &pr->row[i], pr->n_categories);
		double e = log(t.total) - pr->row[i].log_t, w = work_share(t.part[CALIBRATE_START], t.total);

		all += e * e / n;
		of_work += e * e / (w * w) / n;
		logs += log(w);
	}
	return all > 0.0 && 0.5 * n * (log(all) - log(of_work)) - logs > CLEARLY;
}

static void finish(const struct problem *pr, const struct solution *s, bool cores_given,
		   struct calibrated *out)
{
	double mean = 0.0, squares = 0.0, relative = 0.0, rss = 0.0, p;
	size_t df = pr->n > s->n_free ? pr->n - s->n_free : 0;
	struct costs c = calibrate_costs(pr, s);

	for (size_t i = 0; i < CALIBRATE_PARAMETERS; i++) {
		double slope = calibrate_is_cost(i) ? c.cost[i] : 0.0;

		out->value[i] = slope;
		out->se[i] = NAN;
		out->state[i] = s->hold[i] == HOLD_FREE     ? CALIBRATE_FITTED
				: s->hold[i] == HOLD_ABSENT ? CALIBRATE_ABSENT
							    : CALIBRATE_STATED;
		if (i == CALIBRATE_EXPONENT) {
			out->value[i] = c.a;
			slope = c.a * (1.0 - c.a);
		}
		if (i == CALIBRATE_SATURATION) {
			p = calibrate_logistic(s->u[i]);
			out->value[i] = c.saturation;
			slope = c.saturation * (pr->log_high - pr->log_low) * p * (1.0 - p);
		}
		/* Delta method: se of g(u) is |g'(u)| se of u. */
		if (s->hold[i] == HOLD_FREE && isfinite(calibrate_se(pr, s, i)))
			out->se[i] = slope * calibrate_se(pr, s, i);
	}
	out->value[CALIBRATE_CORES] = pr->cores;
	out->state[CALIBRATE_CORES] = isinf(pr->cores) ? CALIBRATE_ABSENT
				      : cores_given    ? CALIBRATE_GIVEN
						       : CALIBRATE_FITTED;
	if (!calibrate_waiting_shows(pr)) /* 0: all the rest is computing */
		out->state[CALIBRATE_DELAY] = out->state[CALIBRATE_DELAY_RECORD] = CALIBRATE_STATED;
	if (!calibrate_records_vary(pr)) /* 0: it is in the start-up */
		out->state[CALIBRATE_DELAY_RECORD] = CALIBRATE_STATED;
	out->share_fixed = s->share_fixed;
	out->uses_devices = pr->devices;
	out->work_errs = does_work_err(pr, &c);
	out->n_categories = pr->n_categories;
	for (size_t f = 0; f < CALIBRATE_FACTORS; f++)
		for (size_t k = 0; k < pr->n_categories; k++) {
			double se = s->hold[U_OF(f, k)] == HOLD_FREE ? calibrate_se(pr, s, U_OF(f, k))
								     : INFINITY;

			out->factor_log[f][k] = within_logs(s->u[U_OF(f, k)]);
			out->factor_se[f][k] = isfinite(se) ? se : NAN;
		}
	/* R2 is of log time itself, not of the time of an iteration. */
	for (size_t i = 0; i < pr->n; i++)
		mean += log(pr->p->time_s[pr->row[i].from]) / (double)pr->n;
	for (size_t i = 0; i < pr->n; i++) {
		double y = log(pr->p->time_s[pr->row[i].from]) - mean;
		double e = log(calibrate_terms(&c, &pr->row[i], pr->n_categories).total) - pr->row[i].log_t;

		squares += y * y;
		rss += e * e;
		relative += fabs(expm1(e)) / (double)pr->n;
	}
	out->n_rows = pr->n;
	out->n_free = s->n_free;
	if (!pr->uses_busy && !pr->uses_phases)
		rss = s->rss; /* the same, to the last bit */
	out->r2 = squares > 0.0 ? 1.0 - rss / squares : NAN;
	out->sd = df ? sqrt(rss / (double)df) : NAN;
	out->mape = relative;
}

/* h_i = g_i' (J'J)^-1 g_i, at the solution. */
static void leverages(const struct problem *pr, const struct solution *s, double *out)
{
	struct costs costs = calibrate_costs(pr, s);
	double c[MAX_U][MAX_U];
	size_t free_at[MAX_U], n = calibrate_free(s, free_at);

	for (size_t i = 0; i < pr->p->n; i++)
		out[i] = calibrate_usable(pr->p, i) ? 0.0 : NAN; /* thinned out: not in the fit at all */
	calibrate_covariance(pr, s, c);
	for (size_t i = 0; i < pr->n; i++) {
		struct terms t = calibrate_terms(&costs, &pr->row[i], pr->n_categories);
		double g[MAX_U], h = 0.0;

		calibrate_gradient(pr, &costs, s, &pr->row[i], &t, g);
		for (size_t a = 0; a < n; a++)
			for (size_t b = 0; b < n; b++)
				h += g[free_at[a]] * c[a][b] * g[free_at[b]];
		out[pr->row[i].from] = isfinite(h) ? calibrate_clamp(h, 0.0, 1.0) : 0.0;
	}
}

int calibrate_fit(const struct calibrate_params *p, struct calibrated *out, struct err *err)
{
	struct problem pr = { .p = p, .n_categories = p->n_categories };
	struct calibrated m = { 0 };
	struct solution s;
	int rc;

	if (p->n_categories > CALIBRATE_MAX_CATEGORIES || !(p->cores >= 0.0))
		return err_fail(err, ERR_ARG, "%zu categories, %g cores: need at most %d and at least 0",
				p->n_categories, p->cores, CALIBRATE_MAX_CATEGORIES);
	rc = calibrate_prepare(&pr, &m.n_skipped, err);
	if (rc)
		goto out;
	rc = calibrate_search_once(&pr, p->cores, &s, err);
	if (!rc && pr.has_phases)
		rc = calibrate_add_phases(&pr, &s, err);
	if (rc)
		goto out;
	if (p->leverage)
		leverages(&pr, &s, p->leverage);
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

void calibrate_tabulate(struct calibrated *m)
{
	for (size_t i = 0; i <= CALIBRATE_POWERS; i++)
		m->power[i] = pow((double)i, -m->value[CALIBRATE_EXPONENT]);
	for (size_t f = 0; f < CALIBRATE_FACTORS; f++)
		for (size_t k = 0; k < m->n_categories; k++)
			m->factor[f][k] = exp(m->factor_log[f][k]);
	m->tabulated = true;
}

static double power_of(const struct calibrated *m, double share)
{
	if (m->tabulated && share >= 0.0 && share <= CALIBRATE_POWERS && share == (double)(int)share)
		return m->power[(int)share];
	return pow(share, -m->value[CALIBRATE_EXPONENT]);
}

static void factors_of(const struct calibrated *m, const struct calibrate_job *j, double *out)
{
	bool at_most_one = m->tabulated; /* of the categories is 1, and the others are 0 */
	size_t one = m->n_categories;

	for (size_t k = 0; k < m->n_categories && at_most_one; k++) {
		if (j->category[k] == 1.0 && one == m->n_categories)
			one = k;
		else
			at_most_one = j->category[k] == 0.0;
	}
	for (size_t f = 0; f < CALIBRATE_FACTORS; f++) {
		double sum = 0.0;

		out[f] = at_most_one && one < m->n_categories ? m->factor[f][one] : 1.0;
		for (size_t k = 0; k < m->n_categories && !at_most_one; k++)
			sum += j->category[k] * m->factor_log[f][k];
		if (sum != 0.0)
			out[f] = exp(sum);
	}
}

/* Unlike fmin() and fmax() no calls; nothing here is NaN. */
static inline double lesser(double a, double b)
{
	return b < a ? b : a;
}

static inline double greater(double a, double b)
{
	return b > a ? b : a;
}

struct calibrate_parts calibrate_parts_of(const struct calibrated *m, const struct calibrate_job *j)
{
	const double *v = m->value;
	double factor[CALIBRATE_FACTORS];
	double share = lesser(j->cpus, j->batch), each, processes = j->processes, n = j->iterations;
	bool at_devices = m->uses_devices && j->devices > 0.0, on_cpu = !at_devices;
	double per_device = at_devices ? 1.0 / j->devices : m->uses_devices ? 0.0 : 1.0;

	factors_of(m, j, factor);
	if (m->share_within_cores)
		share = lesser(share, v[CALIBRATE_CORES]);
	else
		processes = greater(processes, j->cpus);
	each = power_of(m, share);
	return (struct calibrate_parts){
		.start_s = v[CALIBRATE_START] * factor[CALIBRATE_OF_START],
		.cpu_s = n *
			 (v[CALIBRATE_FIXED] * factor[CALIBRATE_OF_FIXED] * (m->share_fixed ? each : 1.0) +
			  v[CALIBRATE_RECORD] * factor[CALIBRATE_OF_RECORD] * j->batch * each * on_cpu) *
			 greater(1.0, processes / v[CALIBRATE_CORES]),
		.disk_s = n * (v[CALIBRATE_DISK] + v[CALIBRATE_DISK_RECORD] * j->batch) *
			  (1.0 + j->processes / v[CALIBRATE_SATURATION]),
		.delay_s = n *
			   (v[CALIBRATE_DELAY] * (at_devices || !m->uses_devices) +
			    v[CALIBRATE_DELAY_RECORD] * j->batch * per_device) *
			   factor[CALIBRATE_OF_DELAY],
	};
}

double calibrate_time_s(const struct calibrated *m, const struct calibrate_job *j)
{
	struct calibrate_parts p = calibrate_parts_of(m, j);

	return p.start_s + p.cpu_s + p.disk_s + p.delay_s;
}

double calibrate_errs(const struct calibrated *m, const struct calibrate_job *j)
{
	struct calibrate_parts p;

	if (!m->work_errs)
		return 1.0;
	p = calibrate_parts_of(m, j);
	return work_share(p.start_s, p.start_s + p.cpu_s + p.disk_s + p.delay_s);
}

struct text_room {
	char *buf;
	size_t size, used;
};

static void __attribute__((format(printf, 2, 3))) put(struct text_room *t, const char *fmt, ...)
{
	va_list args;

	if (t->used >= t->size)
		return;
	va_start(args, fmt);
	t->used += (size_t)vsnprintf(t->buf + t->used, t->size - t->used, fmt, args);
	va_end(args);
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

/* One clause of the sentence: what, a cost per iteration and one per record, whichever there are. */
static void put_costs(struct text_room *t, const char *what, double each, double record)
{
	char a[32], b[32];

	if (each > 0.0)
		put(t, "%s %s", what, cost_text(each, a, sizeof a));
	if (record > 0.0)
		put(t, "%s %s per record", each > 0.0 ? " and" : what, cost_text(record, b, sizeof b));
}

char *calibrate_sentence(const struct calibrated *m, char *buf, size_t size)
{
	const double *v = m->value;
	struct text_room t = { buf, size, 0 };
	char a[32], b[32];

	if (v[CALIBRATE_START] > 0.0)
		put(&t, "%s to start, ", cost_text(v[CALIBRATE_START], a, sizeof a));
	put(&t, "%s per iteration fixed, %s per record per cpu (%sshared by cpus^%.2f)",
	    cost_text(v[CALIBRATE_FIXED], a, sizeof a), cost_text(v[CALIBRATE_RECORD], b, sizeof b),
	    m->share_fixed ? "both " : "", v[CALIBRATE_EXPONENT]);
	put_costs(&t, ", disk", v[CALIBRATE_DISK], v[CALIBRATE_DISK_RECORD]);
	if (v[CALIBRATE_DISK] > 0.0 || v[CALIBRATE_DISK_RECORD] > 0.0)
		put(&t, ", saturation at %.3g processes", v[CALIBRATE_SATURATION]);
	put_costs(&t, m->uses_devices ? ", at its devices" : ", waiting elsewhere", v[CALIBRATE_DELAY],
		  v[CALIBRATE_DELAY_RECORD]);
	if (isfinite(v[CALIBRATE_CORES]))
		put(&t, ", shared evenly beyond %.3g processes", v[CALIBRATE_CORES]);
	return buf;
}
