/* The calibrated model of a training job on a shared machine: what one iteration costs, with parameters that
 * a person can read and that come from measurements.
 *
 *   T = start + iterations * ((fixed + record * batch / min(cpus, batch)^a) * max(1, processes / cores)
 *                             + (disk + disk_record * batch) * (1 + processes / saturation)
 *                             + delay + delay_record * batch)
 *
 * The disk's factor is the stretch 1 / (1 - rho) of an M/M/1 disk whose load limits itself: in a closed
 * network of P cycling processes an arriving one finds about P rho' others, so the response grows by a line
 * and never explodes (Reiser and Lavenberg, J. ACM 27(2), 1980: the arrival theorem). The max() is processor
 * sharing: more processes than cores share them evenly. `delay` is waiting elsewhere (for an accelerator, for
 * the network): other processes do not stretch it. `start` is paid once, for any number of iterations, and is
 * not stretched either: an interpreter that starts does use the cpu, but a download does not, and a table
 * rarely shows which it is. `record`, `fixed`, `start` and the two delays may differ between categories
 * (networks): by a factor each, where the data shows it. Where the cpus share the fixed cost of an iteration
 * as well, as they do in a job whose whole iteration is parallel, it is divided by min(cpus, batch)^a too:
 * the table says which of the two it is.
 *
 * Devices. Where the runs of a table differ in their devices (gpus), those are a separate station: a job with
 * devices computes its records there and not on the cpus, in delay + delay_record * batch / devices an
 * iteration, and a job without any has no such delay. No other job uses the devices meanwhile, so that time
 * is not stretched either.
 *
 * The time of a run among more processes than cores separates waiting from computing. Where a table has too
 * few such runs, the cores that the runs kept busy separate them, if they were measured: the share of its
 * time that a job computes is one more equation of its row. Without either, everything that is not the disk's
 * counts as computing, so that no neighbour is thought to be harmless.
 *
 * Phases. A run may report how long it fetched, computed and waited. That gives the disk, the cpu, the delay
 * and, by the rest of its time, the start-up: more equations of its row (calibrate_phases.c).
 *
 * calibrate.c fits by least squares on log time. predictors/models/queueing_models.c feeds it; the hybrid
 * (predictors/models/hybrid.c) learns what it gets wrong. */
#ifndef QUEUEING_CALIBRATE_H
#define QUEUEING_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/phases.h"

#define CALIBRATE_MAX_CATEGORIES 16
#define CALIBRATE_POWERS 64 /* cpus of a job, mostly */
#define CALIBRATE_MAX_ROWS 1000 /* a few parameters need no more; larger tables are thinned evenly */

/* What was measured of a run beside its time; 0: not known. Only a fit looks at it. */
struct calibrate_seen {
	double cpu_used; /* cores that it kept busy in the mean */
	double phase_s[N_PHASES]; /* not known where one is NaN, or none is above 0 */
};

struct calibrate_job {
	double iterations, batch, cpus, processes; /* all > 0 */
	double devices;  /* that only this job uses; 0: none */
	struct calibrate_seen seen;
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
	CALIBRATE_START,       /* s, once */
	CALIBRATE_DELAY,       /* s per iteration that others do not stretch */
	CALIBRATE_DELAY_RECORD, /* s per record more */
	CALIBRATE_PARAMETERS,
};
#define CALIBRATE_PARAMETERS_V1 (CALIBRATE_CORES + 1) /* in model files of version 1 */
extern const char *const calibrate_name[CALIBRATE_PARAMETERS]; /* "fixed_s", ... */

enum calibrate_state {
	CALIBRATE_FITTED,
	CALIBRATE_STATED, /* the data cannot tell: a value taken instead */
	CALIBRATE_GIVEN,  /* by the caller */
	CALIBRATE_ABSENT, /* no sign of it in the data: 0, or infinite cores */
};
extern const char *const calibrate_state_name[];

/* What may differ between categories. */
enum calibrate_factor {
	CALIBRATE_OF_RECORD,
	CALIBRATE_OF_FIXED,
	CALIBRATE_OF_START,
	CALIBRATE_OF_DELAY, /* of both delays */
	CALIBRATE_FACTORS,
};
extern const char *const calibrate_factor_name[CALIBRATE_FACTORS]; /* "record", ... */
#define CALIBRATE_FACTORS_V1 (CALIBRATE_OF_FIXED + 1) /* in model files of version 1 */
#define CALIBRATE_MAX_LOG 50.0 /* of a category's factor, either way */

struct calibrated {
	double value[CALIBRATE_PARAMETERS];
	double se[CALIBRATE_PARAMETERS];  /* standard error (delta method); NaN unless fitted */
	uint8_t state[CALIBRATE_PARAMETERS]; /* enum calibrate_state */
	size_t n_categories;
	/* log of a category's factor, 0: none; its standard error, NaN unless it was fitted */
	double factor_log[CALIBRATE_FACTORS][CALIBRATE_MAX_CATEGORIES];
	double factor_se[CALIBRATE_FACTORS][CALIBRATE_MAX_CATEGORIES];
	uint8_t share_within_cores; /* 1, in files of version 1: min(cpus, batch, cores)^a */
	uint8_t share_fixed;        /* 1: the cpus share the fixed cost as they share the records */
	uint8_t uses_devices;       /* 1: the delays are those of devices, which compute the records */
	uint8_t work_errs;          /* 1: what comes after the start-up errs by a factor, not all of it */
	/* calibrate_tabulate(): share^-exponent of whole shares, and the exponentials of factor_log */
	bool tabulated;
	double power[CALIBRATE_POWERS + 1];
	double factor[CALIBRATE_FACTORS][CALIBRATE_MAX_CATEGORIES];
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
	struct calibrate_memo *memo; /* optional: what was found for the same rows before is taken again */
};

/* Calibrations that were made, for fits of the same rows later on; threads may share it. */
int calibrate_memo_new(struct calibrate_memo **out, struct err *err);
void calibrate_memo_free(struct calibrate_memo *m);

/* Deterministic. ERR_NODATA without a usable row; otherwise there is a model, if need be of one
 * parameter (all costs stated, their common scale fitted). */
int calibrate_fit(const struct calibrate_params *p, struct calibrated *out, struct err *err);

/* Makes the tables that the functions below look up instead of reckoning; they say the same without. */
void calibrate_tabulate(struct calibrated *m);

/* Where the time of a job goes. Closed form, finite and >= 0 for finite positive input, the sum > 0; no
 * allocation. */
struct calibrate_parts {
	double start_s, cpu_s, disk_s, delay_s;
};
struct calibrate_parts calibrate_parts_of(const struct calibrated *m, const struct calibrate_job *job);
double calibrate_time_s(const struct calibrated *m, const struct calibrate_job *job); /* their sum */

/* How far off log time is for a job, relative to one without a start-up: 1, or the part of its time that is
 * not start-up, where that is what errs. */
double calibrate_errs(const struct calibrated *m, const struct calibrate_job *job);

/* "0.5 s to start, 0.041 s per iteration fixed, 0.11 ms per record per cpu (shared by cpus^0.84), disk
 * 7.4 ms, saturation at 23 processes, waiting elsewhere 2 ms per record". Returns buf. */
char *calibrate_sentence(const struct calibrated *m, char *buf, size_t size);

#endif
