/* Which parameters a calibration fits.
 *
 * A form of the model is a set of things that may be there: a start-up, delays, a factor of each category.
 * The search begins with none and takes the change that lowers the AICc most, as long as something does.
 * Two steps find what the table does not identify. Factors with too few levels and tables with too few rows
 * never free a parameter. After a fit, a parameter with a standard error so large that it could be anything
 * is fixed, and the rest is fitted again. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/stats.h"
#include "queueing/calibrate_internal.h"

#define ROWS_PER_PARAMETER 2
#define MAX_LOG_SE 1.5 /* a cost within a factor of 20 either way is no knowledge */
#define MAX_SATURATION_SE 1.0
#define MAX_EXPONENT_SE 0.25
#define NEGLIGIBLE 0.02 /* share of the time, in every row, below which such a cost is absent */
#define MIN_CORES_GAIN 4.0 /* of the AICc: a kink is easily found in noise */
#define MIN_FORM_GAIN 4.0 /* a start-up or a delay too */
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
	/* shares of the median iteration: fixed, records, disk, disk by records, and alike what waits; the
	 * exponent; saturation over the median number of processes */
	static const double from[][7] = {
		{ 0.60, 0.30, 0.10, 0.02, 0.10, 0.8, 1.0 },
		{ 0.20, 0.60, 0.20, 0.05, 0.30, 0.5, 1.0 },
		{ 0.30, 0.20, 0.50, 0.10, 0.50, 0.9, 3.0 },
		{ 0.80, 0.10, 0.05, 0.01, 0.03, 0.6, 0.5 },
	};
	const double *f = from[start];
	double log_c = log(pr->median_processes * f[6]);
	double value[N_SHARED] = {
		[CALIBRATE_FIXED] = log(f[0] * pr->median_t),
		[CALIBRATE_RECORD] = log(f[1] * pr->median_t / pr->median_batch),
		[CALIBRATE_EXPONENT] = logit(f[5]),
		[CALIBRATE_DISK] = log(f[2] * pr->median_t),
		[CALIBRATE_DISK_RECORD] = log(f[3] * pr->median_t / pr->median_batch),
		[CALIBRATE_SATURATION] = logit(
			calibrate_clamp((log_c - pr->log_low) / (pr->log_high - pr->log_low), 0.01, 0.99)),
		[CALIBRATE_START] = log(f[4] * pr->least_time),
		[CALIBRATE_DELAY] = log(f[4] * pr->median_t),
		[CALIBRATE_DELAY_RECORD] = log(f[4] * pr->median_t / pr->median_batch),
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

double calibrate_se(const struct problem *pr, const struct solution *s, size_t i)
{
	double df = pr->count - (double)s->n_free;

	if (!(s->variance[i] > 0.0) || df <= 0.0)
		return INFINITY;
	return sqrt(s->variance[i] * s->rss / df);
}

static double largest_share(const struct problem *pr, const struct solution *s, size_t i)
{
	struct costs c = calibrate_costs(pr, s);
	double most = 0.0;

	for (size_t k = 0; k < pr->n; k++) {
		struct terms t = calibrate_terms(&c, &pr->row[k], pr->n_categories);

		most = fmax(most, t.part[i] / t.total);
	}
	return most;
}

static void drop_factors(struct solution *s, enum calibrate_factor factor)
{
	for (size_t k = 0; k < CALIBRATE_MAX_CATEGORIES; k++) {
		s->hold[U_OF(factor, k)] = HOLD_ABSENT;
		s->u[U_OF(factor, k)] = 0.0;
	}
}

static bool has_factors(const struct solution *s, enum calibrate_factor factor)
{
	for (size_t k = 0; k < CALIBRATE_MAX_CATEGORIES; k++)
		if (s->hold[U_OF(factor, k)] == HOLD_FREE)
			return true;
	return false;
}

/* Fixes the first parameter that the data do not identify. Returns false if all are identified. */
static bool fix_one(const struct problem *pr, struct solution *s)
{
	static const size_t order[] = { CALIBRATE_SATURATION, CALIBRATE_EXPONENT, CALIBRATE_DELAY_RECORD,
					CALIBRATE_DELAY,      CALIBRATE_START,    CALIBRATE_DISK_RECORD,
					CALIBRATE_DISK,       CALIBRATE_RECORD,   CALIBRATE_FIXED };
	bool tied = s->hold[CALIBRATE_RECORD] == HOLD_TIED || s->hold[CALIBRATE_DISK] == HOLD_TIED;

	for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
		size_t i = order[k];
		double se = s->hold[i] == HOLD_FREE ? calibrate_se(pr, s, i) : 0.0, p, slope;
		enum calibrate_factor factor = i == CALIBRATE_START ? CALIBRATE_OF_START : CALIBRATE_OF_DELAY;

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
			drop_factors(s, CALIBRATE_OF_FIXED);
			return true;
		case CALIBRATE_START:
		case CALIBRATE_DELAY:
		case CALIBRATE_DELAY_RECORD:
			/* The first category may have none of it while others do: then the error of the
			 * common logarithm says nothing. */
			if ((se <= MAX_LOG_SE || has_factors(s, factor)) &&
			    largest_share(pr, s, i) > NEGLIGIBLE)
				continue;
			s->hold[i] = HOLD_ABSENT;
			if (i == CALIBRATE_START || (s->hold[CALIBRATE_DELAY] != HOLD_FREE &&
						     s->hold[CALIBRATE_DELAY_RECORD] != HOLD_FREE))
				drop_factors(s, factor);
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
				drop_factors(s, CALIBRATE_OF_RECORD);
			return true;
		}
	}
	return false;
}

/* ---- what may be free at all ---- */

/* What a form may have beside the cost of the cpu. */
enum {
	FORM_BY_RECORD = 1 << 0, /* a factor of each category */
	FORM_BY_FIXED = 1 << 1,
	FORM_DISK = 1 << 2,
	FORM_START = 1 << 3,
	FORM_DELAY = 1 << 4,
	FORM_DELAY_RECORD = 1 << 5,
	FORM_BY_START = 1 << 6,
	FORM_BY_DELAY = 1 << 7,
	FORM_SHARE_FIXED = 1 << 8, /* no parameter more: the exponent is in another place */
	FORM_BITS = 9,
};

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

static double iterations_of(const struct row *r)
{
	return r->per_start;
}

/* A tenth of the rows must lie beyond the cores, or have been measured otherwise. */
bool calibrate_waiting_shows(const struct problem *pr)
{
	size_t n = 0;

	if (pr->uses_busy || pr->uses_phases || pr->devices)
		return true;
	for (size_t i = 0; i < pr->n; i++)
		n += pr->row[i].crowd > 1.0;
	return n >= pr->n / 10 + 3;
}

/* Where all runs have as many records, a delay per record is the same thing as a start-up. */
bool calibrate_records_vary(const struct problem *pr)
{
	double first = pr->row[0].batch / pr->row[0].per_start;

	if (pr->devices || pr->uses_phases) /* a start-up has no devices, and is no phase */
		return true;
	for (size_t i = 1; i < pr->n; i++)
		if (fabs(pr->row[i].batch / pr->row[i].per_start / first - 1.0) > 1e-9)
			return true;
	return false;
}

static bool any_category(const struct problem *pr)
{
	for (size_t k = 0; k < pr->n_categories; k++)
		if (pr->usable_category[k])
			return true;
	return false;
}

/* The part of a form that the table could tell. */
static unsigned possible(const struct problem *pr, unsigned form)
{
	if (count_levels(pr, iterations_of, 2) < 2 && !pr->uses_phases)
		form &= ~(unsigned)FORM_START;
	if (!calibrate_waiting_shows(pr))
		form &= ~(unsigned)(FORM_DELAY | FORM_DELAY_RECORD);
	if (!calibrate_records_vary(pr))
		form &= ~(unsigned)FORM_DELAY_RECORD;
	if (!any_category(pr))
		form &= ~(unsigned)(FORM_BY_RECORD | FORM_BY_FIXED | FORM_BY_START | FORM_BY_DELAY);
	if (count_levels(pr, share_of, 2) < 2)
		form &= ~(unsigned)FORM_SHARE_FIXED;
	if (!(form & FORM_START))
		form &= ~(unsigned)FORM_BY_START;
	if (!(form & (FORM_DELAY | FORM_DELAY_RECORD)))
		form &= ~(unsigned)FORM_BY_DELAY;
	return form;
}

static void choose_free(const struct problem *pr, unsigned form, struct solution *s)
{
	static const unsigned by[CALIBRATE_FACTORS] = { FORM_BY_RECORD, FORM_BY_FIXED, FORM_BY_START,
							FORM_BY_DELAY };
	size_t batches = count_levels(pr, batch_of, 3), shares = count_levels(pr, share_of, 3),
	       loads = count_levels(pr, processes_of, 3);
	size_t most = pr->n / ROWS_PER_PARAMETER, n = 1;
	bool disk = form & FORM_DISK && (loads >= 2 || pr->uses_phases);

	*s = (struct solution){ .form = form, .share_fixed = form & FORM_SHARE_FIXED };
	for (size_t i = 0; i < MAX_U; i++)
		s->hold[i] = HOLD_ABSENT;
	s->hold[CALIBRATE_FIXED] = HOLD_FREE;
	s->hold[CALIBRATE_RECORD] = HOLD_TIED;
	s->hold[CALIBRATE_DISK] = form & FORM_DISK ? HOLD_TIED : HOLD_ABSENT;
	s->hold[CALIBRATE_EXPONENT] = s->hold[CALIBRATE_SATURATION] = HOLD_CONSTANT;
	s->u[CALIBRATE_EXPONENT] = STATED_EXPONENT;
	s->u[CALIBRATE_SATURATION] = pr->median_processes;
	if (n < most && (batches >= 2 || shares >= 2))
		s->hold[CALIBRATE_RECORD] = HOLD_FREE, n++;
	if (n < most && form & FORM_START)
		s->hold[CALIBRATE_START] = HOLD_FREE, n++;
	if (n < most && disk)
		s->hold[CALIBRATE_DISK] = HOLD_FREE, n++;
	if (n < most && form & FORM_DELAY)
		s->hold[CALIBRATE_DELAY] = HOLD_FREE, n++;
	if (n < most && form & FORM_DELAY_RECORD)
		s->hold[CALIBRATE_DELAY_RECORD] = HOLD_FREE, n++;
	if (n < most && (shares >= 3 || (shares >= 2 && batches >= 2)))
		s->hold[CALIBRATE_EXPONENT] = HOLD_FREE, n++;
	for (size_t f = 0; f < CALIBRATE_FACTORS; f++)
		for (size_t k = 0; k < pr->n_categories && form & by[f]; k++)
			if (n < most && pr->usable_category[k] &&
			    (f != CALIBRATE_OF_RECORD || s->hold[CALIBRATE_RECORD] == HOLD_FREE))
				s->hold[U_OF(f, k)] = HOLD_FREE, n++;
	if (n < most && disk && batches >= 3)
		s->hold[CALIBRATE_DISK_RECORD] = HOLD_FREE, n++;
	if (n < most && loads >= 3 && form & FORM_DISK)
		s->hold[CALIBRATE_SATURATION] = HOLD_FREE, n++;
}

/* ---- the search ---- */

/* Fits a form from where `from` is (NULL: from several starts). */
static int fit_form(const struct problem *pr, unsigned form, const struct solution *from,
		    struct solution *out, struct err *err)
{
	struct solution at;

	choose_free(pr, form, &at);
	if (from)
		place(pr, &at, 0);
	for (size_t i = 0; from && i < MAX_U; i++)
		if (at.hold[i] == HOLD_FREE && from->hold[i] == HOLD_FREE) {
			at.u[i] = from->u[i];
		} else if (at.hold[i] == HOLD_FREE && !(form & ~from->form) &&
			   at.share_fixed == from->share_fixed) {
			at.u[i] =
				from->u[i]; /* what the larger form could not tell, this one cannot either */
			at.hold[i] = from->hold[i];
		}
	*out = at;
	for (size_t turn = 0;; turn++) {
		int rc = from ? calibrate_descend(pr, out, MAX_ITERATIONS, err)
			      : best_of_starts(pr, out, err);

		if (rc || turn >= N_SHARED || !fix_one(pr, out))
			return rc;
	}
}

/* The changes that the search tries at a form: what comes, and what goes. A disk far from its saturation
 * looks like a start-up or a delay, so these come in its place too. Where some categories compute and
 * others wait, no single step leads there. */
static const struct change {
	unsigned come, go;
} changes[] = {
	{ FORM_BY_RECORD, 0 },
	{ FORM_BY_FIXED, 0 },
	{ FORM_START, 0 },
	{ FORM_START, FORM_DISK },
	{ FORM_DELAY, 0 },
	{ FORM_DELAY, FORM_DISK },
	{ FORM_DELAY_RECORD, 0 },
	{ FORM_DELAY_RECORD, FORM_DISK },
	{ FORM_BY_START, 0 },
	{ FORM_BY_DELAY, 0 },
	{ FORM_DELAY | FORM_DELAY_RECORD | FORM_BY_DELAY | FORM_BY_RECORD | FORM_BY_FIXED, 0 },
	{ FORM_DELAY | FORM_DELAY_RECORD | FORM_BY_DELAY | FORM_BY_RECORD | FORM_BY_FIXED, FORM_DISK },
	{ FORM_DISK, 0 },
	{ 0, FORM_DISK },
	{ 0, FORM_BY_RECORD },
	{ 0, FORM_BY_FIXED },
	{ 0, FORM_START | FORM_BY_START },
	{ 0, FORM_DELAY },
	{ 0, FORM_DELAY_RECORD },
	{ 0, FORM_BY_START },
	{ 0, FORM_BY_DELAY },
};

/* What a form must be better by than one with less, beyond its parameters. Any program takes a while to
 * start. But a delay in the place of a disk says that neighbours do no harm, and must earn it. */
static double price_of(unsigned form)
{
	static const unsigned dear[] = { FORM_DELAY, FORM_DELAY_RECORD, FORM_BY_START, FORM_BY_DELAY };
	double price = form & FORM_START ? 0.5 * MIN_FORM_GAIN : 0.0;

	for (size_t i = 0; i < sizeof dear / sizeof *dear; i++)
		price += form & dear[i] ? MIN_FORM_GAIN : 0.0;
	return price;
}

/* The form with the lowest AICc and price that changes lead to, one after the other. */
static int grow_form(const struct problem *pr, struct solution *s, struct err *err)
{
	for (;;) {
		struct solution best = { 0 };
		bool tried[1 << FORM_BITS] = { 0 };
		double best_gain = 0.0;

		tried[s->form] = true;
		for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
			unsigned next = possible(pr, (s->form | changes[k].come) & ~changes[k].go);
			struct solution try;
			double gain;
			int rc;

			if (tried[next])
				continue;
			tried[next] = true;
			rc = fit_form(pr, next, s, &try, err);
			if (rc)
				return rc;
			gain = s->aicc + price_of(s->form) - try.aicc - price_of(next);
			if (gain > best_gain * (1.0 + 1e-6) + 1e-6) {
				best = try;
				best_gain = gain;
			}
		}
		if (!best.fitted)
			return 0;
		*s = best;
	}
}

/* Tries numbers of processes that occurred as the number of cores, and none; one must earn its parameter
 * clearly. */
static int fit_cores(struct problem *pr, struct solution *s, struct err *err)
{
	double *level = mem_array(pr->n, sizeof *level), best = INFINITY;
	struct solution chosen;
	size_t n = 0;
	int rc;

	if (!level)
		return err_nomem(err, "%zu loads", pr->n);
	for (size_t i = 0; i < pr->n; i++)
		level[i] = pr->row[i].processes;
	stats_sort(level, pr->n);
	for (size_t i = 0; i < pr->n; i++) /* a tenth of the rows must lie beyond it */
		if (i + pr->n / 10 + 3 < pr->n && (n == 0 || level[i] != level[n - 1]))
			level[n++] = level[i];
	calibrate_set_cores(pr, INFINITY);
	rc = fit_form(pr, s->form, s, &chosen, err);
	for (size_t k = 0; !rc && k < MAX_CORES_TRIED && n > 2; k++) {
		struct solution try;

		calibrate_set_cores(pr, level[n - 1 - k * (n - 1) / MAX_CORES_TRIED]);
		rc = fit_form(pr, s->form, s, &try, err);
		try.aicc = calibrate_aicc(pr->count, try.n_free + 1, try.rss);
		if (!rc && 2 * (try.n_free + 2) < pr->n &&
		    try.aicc < chosen.aicc - (isinf(best) ? MIN_CORES_GAIN : 0.0)) {
			chosen = try;
			best = pr->cores;
		}
	}
	calibrate_set_cores(pr, best);
	free(level);
	if (!rc)
		*s = chosen;
	return rc;
}

/* The cores that explain most with what may hide them: a crowd shows only once a start-up and the differences
 * between categories are out of the way. */
static int guess_cores(struct problem *pr, struct err *err)
{
	unsigned form = possible(pr, FORM_DISK | FORM_BY_RECORD | FORM_BY_FIXED | FORM_START);
	struct solution s;

	choose_free(pr, form, &s);
	place(pr, &s, 0);
	return fit_cores(pr, &s, err);
}

/* The way to a form began at a poorer one: the last one from all starts too. */
static int fit_again(const struct problem *pr, struct solution *s, struct err *err)
{
	struct solution again;
	int rc = fit_form(pr, s->form, NULL, &again, err);

	if (!rc && again.rss < s->rss && again.aicc < s->aicc)
		*s = again;
	return rc;
}

/* Do the cpus share the fixed cost as well? That is neither more nor less than what `s` has, so the form that
 * was found without it is fitted with it, and where that is better, what it makes needless goes. */
static int try_sharing(const struct problem *pr, struct solution *s, struct err *err)
{
	unsigned form = possible(pr, s->form | FORM_SHARE_FIXED);
	struct solution try;
	int rc;

	if (form == s->form)
		return 0;
	rc = fit_form(pr, form, s, &try, err);
	if (rc || !(try.aicc < s->aicc))
		return rc;
	*s = try;
	rc = grow_form(pr, s, err);
	return rc ? rc : fit_again(pr, s, err);
}

int calibrate_search(struct problem *pr, double cores, struct solution *out, struct err *err)
{
	int rc = 0;

	calibrate_set_cores(pr, cores > 0.0 ? cores : INFINITY);
	if (!(cores > 0.0))
		rc = guess_cores(pr, err);
	if (!rc)
		rc = fit_form(pr, FORM_DISK, NULL, out, err);
	if (!rc)
		rc = grow_form(pr, out, err);
	if (!rc && !(cores > 0.0))
		rc = fit_cores(pr, out, err);
	if (!rc && out->form != FORM_DISK)
		rc = fit_again(pr, out, err);
	return rc ? rc : try_sharing(pr, out, err);
}
