/* The table of models. Each is one file that fills in a `struct predictor_ops`; configurations, the
 * command line, model files and tests find it by its name in predictor_all[]. */
#ifndef PREDICTORS_PREDICTOR_H
#define PREDICTORS_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/pool.h"
#include "predictors/file/bytes.h"
#include "predictors/data/dataset.h"
#include "predictors/data/settings.h"

struct fit_context {
	uint64_t seed;
	struct pool *pool;   /* NULL: this thread alone; the result is the same */
	bool want_oob;       /* keep out-of-bag predictions, where the model has them */
	/* Optional. Once it is set, training ends with ERR_STOPPED before the next unit of work: a fit, a
	 * tree of a forest, a round of boosting, a step of the calibration, a shuffled column. */
	const atomic_bool *stop;
	struct calibrate_memo *memo; /* optional: of calibrations (queueing/calibrate.h), for many fits of the
	                                same rows */
	struct bins **bins;  /* optional: of trees (trees/bins.h), for many fits of the same features. The
	                        first fit makes them; the caller frees them */
	bool no_importances; /* the model will only be asked for predictions, so that they may be left out,
	                      * and what else no prediction needs */
};

struct work_shares { /* parts of a time */
	double cpu, disk;
	double start; /* over before the first record; NaN: not known */
};

struct predictor_ops {
	const char *name;                     /* "forest" */
	const char *title;                    /* "random forest": for people */
	const struct setting_spec *spec;
	bool log_errors;                      /* it errs by a factor: bounds rest on residuals in log time */
	/* Writes *out_self only on success. The dataset is not kept. NULL: `postrider automl` fits it. */
	int (*fit)(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
	           void **out_self, struct err *err);
	/* n_rows row-major rows in, n_rows predictions out: no allocation, no locks, thread-safe. NaN: the
	 * model has no answer (a queue without a steady state), which only models with why_none may say. */
	void (*predict)(const void *self, const double *x, size_t n_rows, double *out);
	/* Optional, of a model that errs by a factor: how far off log time is at row x (a standard
	 * deviation), as far as the model itself can tell. Residuals are measured in it. No allocation. */
	double (*spread)(const void *self, const double *x);
	/* Optional: why predict() gave NaN for row x, e.g. "unstable ...: load 1.2 ..."; empty if it did
	 * not. */
	void (*why_none)(const void *self, const double *x, char *out, size_t size);
	/* Optional, for the look-ahead (queueing/fluid.h): which parts of the time of job x, alone on the
	 * machine with its own processes, pass on the cpus and at the disk, whatever its load. Without it all
	 * of it does on the cpus. */
	void (*shares)(const void *self, const double *x, struct work_shares *out);
	/* Optional, for the same use: the cores (INFINITY: never too few) and the processes that double the
	 * time at the disk (INFINITY: none do), as this model has learnt them. Without it they are as
	 * configured. */
	void (*machine)(const void *self, double *out_cores, double *out_disk_saturation);
	/* Optional, of a model of accuracy: beta of mixed_run.h, as this model has learnt it. Without it, or
	 * NaN: not known. */
	double (*batch_power)(const void *self);
	/* Optional: prepares an exact faster form (a look-up table). Never changes a prediction. */
	int (*compile)(void *self, struct err *err);
	/* Optional: n_rows out-of-bag predictions, NaN where a row was in every bag; NULL if not kept. */
	const double *(*oob)(const void *self);
	/* Optional: n_features importances that sum to 1 (or are all 0). */
	void (*importances)(const void *self, double *out);
	/* Optional: extra facts for `model show` and --json: writes members into an open object. */
	void (*describe)(const void *self, const struct dataset *names, struct json_writer *w);
	/* Optional: a sentence about this fit that people should read; empty if there is none. */
	void (*remark)(const void *self, const struct dataset *names, char *out, size_t size);
	int (*save)(const void *self, struct writer *w, struct err *err);
	int (*load)(struct reader *r, size_t n_features, void **out_self, struct err *err);
	void (*destroy)(void *self);          /* accepts NULL */
};

extern const struct predictor_ops *const predictor_all[]; /* NULL-terminated */
const struct predictor_ops *predictor_find(const char *name); /* NULL: no such model */
/* The same for a model in a file, which may also be what a campaign made (models/pipeline.h). */
const struct predictor_ops *predictor_of_file(const char *name);
const char *predictor_names(void); /* "forest, boost, ...": for messages */

/* A fitted model with the settings it was fitted under. */
struct predictor {
	const struct predictor_ops *ops;
	struct settings settings;
	size_t n_features;
	void *self;
	bool log;            /* it was fitted to the logarithm of the target (boost; linear models do so
	                        themselves) */
};
/* Of a model with these settings. */
bool predictor_logs(const struct predictor_ops *ops, const struct settings *s);
int predictor_fit(const struct predictor_ops *ops, const struct settings *s, const struct dataset *d,
                  const struct fit_context *ctx, struct predictor *out, struct err *err);
void predictor_predict(const struct predictor *p, const double *x, size_t n_rows, double *out);
void predictor_release(struct predictor *p); /* accepts an all-zero one */

#endif
