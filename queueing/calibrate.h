/* The calibrated model of a training job on a shared machine: what one iteration costs, with parameters
 * that a person can read and that come from measurements.
 *
 *   T = iterations * ((fixed + record * batch / min(cpus, batch, cores)^a) * max(1, processes / cores)
 *                     + (disk + disk_record * batch) * (1 + processes / saturation))
 *
 * The last factor is the stretch 1 / (1 - rho) of an M/M/1 disk whose load limits itself: in a closed
 * network of P cycling processes an arriving one finds about P rho' others, so the response grows by a
 * line and never explodes (Reiser and Lavenberg, J. ACM 27(2), 1980: the arrival theorem). The max() is
 * processor sharing: more processes than cores share them evenly. `fixed` and `record` may differ between
 * categories (networks): by a factor each, where the data shows it.
 *
 * calibrate.c fits by least squares on log time. predictors/models/queueing_models.c feeds it; the hybrid
 * (predictors/models/hybrid.c) learns what it gets wrong. */
#ifndef QUEUEING_CALIBRATE_H
#define QUEUEING_CALIBRATE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define CALIBRATE_MAX_CATEGORIES 16
#define CALIBRATE_MAX_ROWS 1000 /* a few parameters need no more; larger tables are thinned evenly */

struct calibrate_job {
	double iterations, batch, cpus, processes; /* all > 0 */
	double category[CALIBRATE_MAX_CATEGORIES]; /* 0 or 1 each, n_categories of them */
};

enum calibrate_parameter {
	CALIBRATE_FIXED,       /* s per iteration */
	CALIBRATE_RECORD,      /* s per record and cpu */
	CALIBRATE_EXPONENT,    /* 0..1: 1 is perfect speed-up */
	CALIBRATE_DISK,        /* s per iteration, alone on the machine */
	CALIBRATE_DISK_RECORD, /* s per record more */
	CALIBRATE_SATURATION,  /* processes at which the disk's response has doubled */
	CALIBRATE_CORES,       /* INFINITY: never exceeded */
	CALIBRATE_PARAMETERS,
};
extern const char *const calibrate_name[CALIBRATE_PARAMETERS]; /* "fixed_s", ... */

enum calibrate_state {
	CALIBRATE_FITTED,
	CALIBRATE_STATED, /* the data cannot tell: a value taken instead */
	CALIBRATE_GIVEN,  /* by the caller */
	CALIBRATE_ABSENT, /* no sign of it in the data: 0, or infinite cores */
};
extern const char *const calibrate_state_name[];

#define CALIBRATE_MAX_LOG 50.0 /* of a category's factor, either way */

struct calibrated {
	double value[CALIBRATE_PARAMETERS];
	double se[CALIBRATE_PARAMETERS];  /* standard error (delta method); NaN unless fitted */
	uint8_t state[CALIBRATE_PARAMETERS]; /* enum calibrate_state */
	size_t n_categories;
	uint8_t category_record, category_fixed; /* 1: each category has its factor */
	double record_log[CALIBRATE_MAX_CATEGORIES], record_log_se[CALIBRATE_MAX_CATEGORIES];
	double fixed_log[CALIBRATE_MAX_CATEGORIES], fixed_log_se[CALIBRATE_MAX_CATEGORIES];
	/* goodness of fit, on the rows used */
	size_t n_rows, n_skipped, n_free; /* skipped: something not above 0 */
	double r2, sd, mape;              /* R2 and residual sd in log time; MAPE as a fraction */
};

struct calibrate_params {
	const struct calibrate_job *job; size_t n;
	const double *time_s;
	size_t n_categories;
	double cores;     /* of the machine; 0: not known, fitted where the data shows it */
	double *leverage; /* optional, n: share of each row in its own prediction; NaN where skipped */
	const atomic_bool *stop; /* optional: once set, the fit ends with ERR_STOPPED before its next
	                          * descent */
};

/* Deterministic. ERR_NODATA without a usable row; otherwise there is a model, if need be of one
 * parameter (all costs stated, their common scale fitted). */
int calibrate_fit(const struct calibrate_params *p, struct calibrated *out, struct err *err);

/* Closed form, finite and > 0 for finite positive input; no allocation. */
double calibrate_time_s(const struct calibrated *m, const struct calibrate_job *job);

/* "0.041 s per iteration fixed, 0.11 ms per record per cpu (shared by cpus^0.84), disk 7.4 ms, saturation at
 * 23 processes". Returns buf. */
char *calibrate_sentence(const struct calibrated *m, char *buf, size_t size);

#endif
