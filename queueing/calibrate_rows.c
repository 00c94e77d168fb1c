/* The rows of a calibration: which of a table can be used, what they say of the categories, and the points
 * that replicates of a setting become. */
#define _GNU_SOURCE /* qsort_r() */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "queueing/calibrate_internal.h"

#define LEAST_WITH_DEVICES 3 /* runs */

static bool above_zero(double v)
{
	return v > 0.0 && isfinite(v);
}

bool calibrate_usable(const struct calibrate_params *p, size_t i)
{
	const struct calibrate_job *j = &p->job[i];

	for (size_t k = 0; k < p->n_categories; k++)
		if (!isfinite(j->category[k]))
			return false;
	return above_zero(j->iterations) && above_zero(j->batch) && above_zero(j->cpus) &&
	       above_zero(j->processes) && above_zero(p->time_s[i]);
}

/* A category column that varies in at least three rows each way and that no earlier ones explain: each
 * column less its projections on those before it (Gram-Schmidt), the constant first. */
static int find_categories(struct problem *pr, struct err *err)
{
	double *basis = mem_array(pr->n_categories + 1, pr->n * sizeof *basis);
	size_t n_basis = 1;

	if (!basis)
		return err_nomem(err, "%zu categories", pr->n_categories);
	for (size_t i = 0; i < pr->n; i++)
		basis[i] = 1.0 / sqrt((double)pr->n);
	for (size_t k = 0; k < pr->n_categories; k++) {
		double *v = basis + n_basis * pr->n, norm = 0.0;
		size_t same = 0;

		for (size_t i = 0; i < pr->n; i++) {
			v[i] = pr->row[i].category[k];
			same += v[i] == pr->row[0].category[k];
		}
		if (same < 3 || pr->n - same < 3)
			continue;
		for (size_t b = 0; b < n_basis; b++) {
			double dot = 0.0;
			for (size_t i = 0; i < pr->n; i++)
				dot += v[i] * basis[b * pr->n + i];
			for (size_t i = 0; i < pr->n; i++)
				v[i] -= dot * basis[b * pr->n + i];
		}
		for (size_t i = 0; i < pr->n; i++)
			norm += v[i] * v[i];
		norm = sqrt(norm);
		if (!(norm > 1e-6))
			continue;
		for (size_t i = 0; i < pr->n; i++)
			v[i] /= norm;
		n_basis++;
		pr->usable_category[k] = true;
	}
	free(basis);
	return 0;
}

void calibrate_set_cores(struct problem *pr, double cores)
{
	pr->cores = cores;
	for (size_t i = 0; i < pr->n; i++) {
		const struct calibrate_job *j = &pr->p->job[pr->row[i].from];

		pr->row[i].log_share = log(fmin(j->cpus, j->batch));
		pr->row[i].crowd = fmax(1.0, fmax(j->processes, j->cpus) / cores);
	}
}

double calibrate_uncrowded(const struct problem *pr)
{
	double most = 0.0;

	if (pr->p->cores > 0.0)
		return pr->p->cores;
	for (size_t i = 0; i < pr->n; i++) {
		const struct calibrate_job *j = &pr->p->job[pr->row[i].from];

		if (above_zero(j->seen.cpu_used)) /* its neighbours are as busy as it is */
			most = fmax(most, j->seen.cpu_used * fmax(1.0, j->processes / j->cpus));
	}
	return most + 0.5;
}

/* The share of its time that a job computes is what it keeps busy of its cpus, where each has a core. Shares
 * are used only if the times cannot tell waiting from computing: they see a barrier as waiting, and what a
 * program does beside its workers as computing. */
static void find_busy(struct problem *pr)
{
	double limit = calibrate_uncrowded(pr);
	size_t beyond = 0, known = 0;

	for (size_t i = 0; i < pr->n; i++) {
		const struct calibrate_job *j = &pr->p->job[pr->row[i].from];

		pr->row[i].busy = NAN;
		if (fmax(j->processes, j->cpus) > limit) {
			beyond++;
		} else if (above_zero(j->seen.cpu_used)) {
			pr->row[i].busy = fmin(1.0, j->seen.cpu_used / j->cpus);
			known++;
		}
	}
	pr->uses_busy = beyond < pr->n / 10 + 3 && known >= pr->n / 10 + 3;
}

/* Devices are a station where enough runs have more or fewer of them than others. */
static void find_devices(struct problem *pr)
{
	double first = pr->p->job[pr->row[0].from].devices;
	size_t others = 0;

	for (size_t i = 0; i < pr->n; i++)
		others += pr->p->job[pr->row[i].from].devices != first;
	pr->devices = others >= LEAST_WITH_DEVICES && pr->n - others >= LEAST_WITH_DEVICES;
	for (size_t i = 0; i < pr->n; i++) {
		struct row *r = &pr->row[i];
		double devices = pr->p->job[r->from].devices;
		bool has = devices > 0.0 && isfinite(devices);

		r->on_cpu = pr->devices && has ? 0.0 : 1.0;
		r->at_device = pr->devices && !has ? 0.0 : 1.0;
		r->per_device = pr->devices ? (has ? 1.0 / devices : 0.0) : 1.0;
	}
}

static bool same_setting(const struct problem *pr, const struct row *a, const struct row *b)
{
	return a->batch == b->batch && a->processes == b->processes && a->per_start == b->per_start &&
	       a->on_cpu == b->on_cpu && a->per_device == b->per_device &&
	       pr->p->job[a->from].cpus == pr->p->job[b->from].cpus &&
	       !memcmp(a->category, b->category, pr->n_categories * sizeof *a->category);
}

/* The mean of a share over the rows of a point, as far as it is known. */
static void add_share(double share, double *mean, double *weight)
{
	if (isnan(share))
		return;
	*weight += 1.0;
	*mean += (share - *mean) / *weight;
}

static void add_row(const struct problem *pr, const struct row *r, struct point *p)
{
	p->weight += 1.0;
	p->log_t += (r->log_t - p->log_t) / p->weight;
	if (pr->uses_busy)
		add_share(r->busy, &p->busy, &p->busy_weight);
	for (size_t k = 0; k < N_SHARES && pr->has_phases; k++)
		add_share(r->share[k], &p->share[k], &p->share_weight[k]);
}

/* Of one column a row has one name at most. */
static bool has_two_categories(const struct problem *pr)
{
	for (size_t i = 0; i < pr->n; i++) {
		size_t n = 0;

		for (size_t k = 0; k < pr->n_categories; k++)
			n += pr->row[i].category[k] == 1.0;
		if (n > 1)
			return true;
	}
	return false;
}

static int compare_alike(const struct row *a, const struct row *b, size_t n_categories)
{
	if (a->log_share != b->log_share)
		return a->log_share < b->log_share ? -1 : 1;
	return memcmp(a->category, b->category, n_categories * sizeof *a->category);
}

static int compare_points(const void *a, const void *b, void *ctx)
{
	const struct problem *pr = ctx;
	const struct point *x = a, *y = b;
	int order = compare_alike(&pr->row[x->row], &pr->row[y->row], pr->n_categories);

	return order ? order : (x->row > y->row) - (x->row < y->row);
}

static void order_points(struct problem *pr)
{
	calibrate_set_cores(pr, INFINITY); /* for the cpus that share an iteration */
	qsort_r(pr->point, pr->n_points, sizeof *pr->point, compare_points, pr);
	for (size_t i = 1; i < pr->n_points; i++)
		pr->point[i].alike = pr->point[i - 1].alike + !!compare_alike(&pr->row[pr->point[i].row],
									      &pr->row[pr->point[i - 1].row],
									      pr->n_categories);
}

/* Merged where the points left are still more than there can be parameters. */
static int make_points(struct problem *pr, struct err *err)
{
	pr->point = mem_array(pr->n, sizeof *pr->point);
	if (!pr->point)
		return err_nomem(err, "%zu rows", pr->n);
	for (size_t i = 0; i < pr->n; i++) {
		struct point *p = pr->point, *end = pr->point + pr->n_points;

		while (p < end && !same_setting(pr, &pr->row[p->row], &pr->row[i]))
			p++;
		if (p == end) {
			*p = (struct point){ .row = i };
			pr->n_points++;
		}
		add_row(pr, &pr->row[i], p);
	}
	if (pr->n_points <= N_SHARED + CALIBRATE_FACTORS * pr->n_categories) {
		pr->n_points = pr->n;
		for (size_t i = 0; i < pr->n; i++) {
			pr->point[i] = (struct point){ .row = i };
			add_row(pr, &pr->row[i], &pr->point[i]);
		}
	}
	for (size_t i = 0; i < pr->n; i++) {
		const struct point *p = pr->point;

		while (p->row != i && !same_setting(pr, &pr->row[p->row], &pr->row[i]))
			p++;
		if (pr->n_points < pr->n)
			pr->within += (pr->row[i].log_t - p->log_t) * (pr->row[i].log_t - p->log_t);
	}
	order_points(pr);
	return 0;
}

int calibrate_prepare(struct problem *pr, size_t *out_skipped, struct err *err)
{
	int rc;

	const struct calibrate_params *p = pr->p;
	size_t n_usable = 0, seen = 0, kept;
	double *v, low = INFINITY, high = 0.0, least = INFINITY;

	for (size_t i = 0; i < p->n; i++)
		n_usable += calibrate_usable(p, i);
	*out_skipped = p->n - n_usable;
	if (!n_usable)
		return err_fail(err, ERR_NODATA, "none of %zu rows has a batch, cpus and a time above 0",
				p->n);
	kept = n_usable < CALIBRATE_MAX_ROWS ? n_usable : CALIBRATE_MAX_ROWS;
	pr->row = mem_calloc(kept, sizeof *pr->row);
	v = mem_array(kept, sizeof *v);
	if (!pr->row || !v) {
		free(v);
		return err_nomem(err, "%zu rows", kept);
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct calibrate_job *j = &p->job[i];
		struct row *r;

		if (!calibrate_usable(p, i) || seen++ * kept / n_usable != pr->n || pr->n == kept)
			continue;
		r = &pr->row[pr->n++];
		r->from = i;
		r->log_t = log(p->time_s[i]) - log(j->iterations);
		r->per_start = 1.0 / j->iterations;
		r->batch = j->batch;
		r->processes = j->processes;
		memcpy(r->category, j->category, p->n_categories * sizeof *r->category);
		least = fmin(least, p->time_s[i]);
		low = fmin(low, j->processes);
		high = fmax(high, j->processes);
	}
	pr->least_time = least;
	pr->log_low = log(low / 8.0); /* saturation beyond these shows in no measurement between them */
	pr->log_high = log(3.0 * high);
	for (size_t i = 0; i < pr->n; i++)
		v[i] = pr->row[i].log_t;
	pr->median_t = exp(calibrate_clamp(stats_median(v, pr->n), -300.0, 300.0));
	for (size_t i = 0; i < pr->n; i++)
		v[i] = pr->row[i].batch;
	pr->median_batch = stats_median(v, pr->n);
	for (size_t i = 0; i < pr->n; i++)
		v[i] = pr->row[i].processes;
	pr->median_processes = stats_median(v, pr->n);
	free(v);
	find_busy(pr);
	find_devices(pr);
	calibrate_find_phases(pr);
	rc = find_categories(pr, err);
	pr->crossed = has_two_categories(pr);
	return rc ? rc : make_points(pr, err);
}
