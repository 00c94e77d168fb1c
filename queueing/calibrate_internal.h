/* Shared by calibrate.c, the model, calibrate_forms.c, which decides what is fitted, calibrate_rows.c, which
 * prepares the rows, calibrate_descend.c, which fits, and calibrate_memo.c, which remembers fits. */
#ifndef QUEUEING_CALIBRATE_INTERNAL_H
#define QUEUEING_CALIBRATE_INTERNAL_H

#include <math.h>
#include <stdbool.h>

#include "queueing/calibrate.h"

/* Stated where the table says nothing: shares of the fixed cost, and the speed-up that the published
 * measurements show. */
#define RECORD_OF_FIXED (1.0 / 300.0) /* 0.1 ms to 30 ms */
#define DISK_OF_FIXED 0.2
#define STATED_EXPONENT 0.8

/* Coordinates: the parameters (that of the cores is not used), then each category's factors. */
enum {
	N_SHARED = CALIBRATE_PARAMETERS,
	MAX_U = N_SHARED + CALIBRATE_FACTORS * CALIBRATE_MAX_CATEGORIES,
};
#define U_OF(factor, k) (N_SHARED + (factor) * CALIBRATE_MAX_CATEGORIES + (k))

/* How a coordinate gets its value. */
enum hold { HOLD_FREE, HOLD_TIED /* to the fixed cost */, HOLD_CONSTANT, HOLD_ABSENT };

/* What phases tell a share of the time of. */
enum { SHARE_DISK, SHARE_CPU, SHARE_DELAY, SHARE_START, N_SHARES };

struct row {
	double log_t; /* of the time of one iteration */
	double per_start; /* 1 / iterations */
	double batch, log_share; /* log of min(cpus, batch) */
	double on_cpu, at_device, per_device; /* 1 each unless devices are a station: whether it computes its
	                                       * records on the cpus, has devices, and 1 / their number */
	double processes, crowd; /* crowd = max(1, processes / cores) */
	double busy; /* share of its time that it computed, as measured; NaN: not known */
	double share[N_SHARES]; /* of its time, as its phases say; NaN: not known */
	double category[CALIBRATE_MAX_CATEGORIES];
	size_t from; /* its index in the caller's table */
};

/* Replicates of a setting pull the fit like their mean, as often as there are of them. */
struct point {
	size_t row; /* the first of them */
	double log_t; /* mean */
	double busy, busy_weight; /* the same of the shares that are known */
	double share[N_SHARES], share_weight[N_SHARES];
	double weight; /* how many */
	size_t alike; /* points with the same number have the same categories and cpus, and are neighbours */
};

struct problem {
	const struct calibrate_params *p;
	struct row *row;
	size_t n, n_categories;
	struct point *point;
	size_t n_points;
	bool devices; /* are a station */
	bool uses_busy; /* the shares that were measured are equations too */
	bool has_phases; /* enough rows tell theirs */
	bool uses_phases; /* the shares that they tell are equations as well */
	double count; /* of the equations: rows, and shares as far as they count */
	double share_weight[N_SHARES]; /* 0..1: how much an equation of that kind counts */
	double within; /* squares of log_t about the means of the points: no fit explains them */
	double cores; /* INFINITY: none */
	double log_low, log_high; /* of the saturation */
	double median_t, median_batch, median_processes; /* t: of an iteration */
	double least_time; /* of a run */
	bool crossed; /* some row has two categories: they have more than one column */
	bool usable_category[CALIBRATE_MAX_CATEGORIES]; /* varies, and is no combination of earlier ones */
};

struct solution {
	double u[MAX_U];
	uint8_t hold[MAX_U];
	unsigned form; /* calibrate_forms.c */
	bool share_fixed; /* the cpus share the fixed cost too */
	size_t n_free;
	double rss, aicc;
	double variance[MAX_U]; /* of the free ones; 0: not known */
	bool fitted;
};

/* What all rows share, out of the coordinates once. */
struct costs {
	double cost[N_SHARED]; /* of the parameters that are costs */
	double a, saturation, saturation_slope; /* d log(saturation) / du */
	bool share_fixed;
	double factor[CALIBRATE_FACTORS][CALIBRATE_MAX_CATEGORIES];
	double log_factor[CALIBRATE_FACTORS][CALIBRATE_MAX_CATEGORIES];
	bool has_factor[CALIBRATE_FACTORS]; /* some category has one */
};

/* The costs of one iteration, stretched by everything that shares the machine. */
struct terms {
	double part[N_SHARED]; /* by the cost it comes from; 0 for the others */
	double total, stretch;
};

static inline bool calibrate_is_cost(size_t parameter)
{
	return parameter != CALIBRATE_EXPONENT && parameter != CALIBRATE_SATURATION &&
	       parameter != CALIBRATE_CORES;
}

static inline double calibrate_clamp(double v, double low, double high)
{
	return v < low ? low : v > high ? high : v;
}

static inline double calibrate_logistic(double u)
{
	return 1.0 / (1.0 + exp(-calibrate_clamp(u, -40.0, 40.0)));
}

/* ---- rows ---- */

bool calibrate_usable(const struct calibrate_params *p, size_t i); /* can row i be fitted? */
/* Fills in the rows and the points, both to be freed. *out_skipped: rows that cannot be used. */
int calibrate_prepare(struct problem *pr, size_t *out_skipped, struct err *err);
void calibrate_set_cores(struct problem *pr, double cores);

/* ---- phases ---- */

/* The number of processes up to which each has its own core: the cores that are given, or the most that were
 * seen busy at a time. */
double calibrate_uncrowded(const struct problem *pr);
void calibrate_find_phases(struct problem *pr); /* fills in the shares of the rows */
/* Takes the fit to times alone, and makes it one to the shares as well, as far as the times allow. */
int calibrate_add_phases(struct problem *pr, struct solution *s, struct err *err);

/* ---- which form ---- */

/* cores: of the machine; 0: fitted where the data shows them. */
int calibrate_search(struct problem *pr, double cores, struct solution *out, struct err *err);
/* The same, with the memo of the parameters (calibrate_memo.c). */
int calibrate_search_once(struct problem *pr, double cores, struct solution *out, struct err *err);
/* Standard error of a free coordinate; infinite where the covariance could not tell. */
double calibrate_se(const struct problem *pr, const struct solution *s, size_t i);
/* Can waiting be separated from computing: by enough runs among more processes than cores, or by the cores
 * that they kept busy? */
bool calibrate_waiting_shows(const struct problem *pr);
bool calibrate_records_vary(const struct problem *pr); /* from run to run? */

/* ---- the fit ---- */

struct costs calibrate_costs(const struct problem *pr, const struct solution *s);
struct terms calibrate_terms(const struct costs *c, const struct row *r, size_t n_categories);
/* d log(total) / du for every coordinate; the caller ignores those that are not free. */
void calibrate_gradient(const struct problem *pr, const struct costs *c, const struct solution *s,
                        const struct row *r, const struct terms *t, double *out);
/* The free coordinates, ascending; returns how many. */
size_t calibrate_free(const struct solution *s, size_t *out);
/* Of the free coordinates, over the variance of a row; zeros where the data cannot tell. */
void calibrate_covariance(const struct problem *pr, const struct solution *s, double (*out)[MAX_U]);
/* Akaike's criterion with the correction for small samples; the spread is a parameter too. */
double calibrate_aicc(double n, size_t n_free, double rss);
/* The share of its time that a row spends at one of the N_SHARES, and d share / du for every coordinate;
 * log_gradient: that of the logarithm of the time. */
double calibrate_share(const struct problem *pr, const struct costs *c, const struct solution *s,
                       const struct row *r, const struct terms *t, unsigned which,
                       const double *log_gradient, double *out);
/* Moves the free coordinates of `s` to the nearest minimum. */
int calibrate_descend(const struct problem *pr, struct solution *s, size_t max_iterations, struct err *err);

#endif
