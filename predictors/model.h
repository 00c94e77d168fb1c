/* A model bundle: everything needed to answer "what would this batch do for this job" and to say
 * where the answer comes from. One file on disk (docs/MODEL_FORMAT.md). Immutable once trained or
 * loaded, so threads may share it. */
#ifndef PREDICTORS_MODEL_H
#define PREDICTORS_MODEL_H

#include "predictors/belief.h"
#include "predictors/models/conformal.h"
#include "predictors/models/mixed.h"
#include "predictors/models/spread.h"
#include "predictors/data/features.h"
#include "predictors/predictor.h"
#include "predictors/data/score.h"

#define MODEL_MAX_BYTES ((size_t)1 << 30)
#define MODEL_FORMAT_VERSION 6 /* written; all from 1 on are read */

struct model_target {                   /* the model of one target; ops NULL: there is none */
	struct predictor predictor;
	struct conformal conformal;     /* n = 0: no bounds */
	struct score_summary score;     /* on held-out rows */
	char scored_by[96];             /* "5-fold, grouped by network,cpus,njobs,batch" */
	char residuals_by[48];          /* "out-of-bag" or "5-fold" */
	size_t n_rows;                  /* it was trained on; those of one run are one */
	double *importance;             /* features->n, NULL if the model has none */
	double *permutation;            /* features->n: rise of the MSE when the column is shuffled, or
	                                 * NULL */
	struct spread *spread;          /* scales of the scores by what the table knows; NULL: 1 everywhere */
	double *widening;               /* features->n: see widening.h; NULL: bounds are as wide everywhere */
};

#define MODEL_LEARNT_FROM_JOBS "runs and observations" /* data_name of what a daemon trained */

struct model {
	struct schema *schema;
	struct features *features;
	struct model_target time, accuracy;
	struct mixed_runs mixed;        /* runs beside jobs of another kind; none: the table has none */
	double *candidate; size_t n_candidates; /* values of the decision a what-if tries, ascending */
	uint64_t seed, data_fingerprint;
	size_t data_rows;
	char data_name[256];            /* as given on the command line */
	char created[32];               /* RFC 3339, UTC; set by the program */
	char program[48];               /* "postrider 0.1.0" */
};

void model_free(struct model *m);

/* How far off the target may be at row x, in units of the scores: by the model's own word (predictor.h) and
 * by what the table knows of it (spread.h). */
double model_scale(const struct model_target *t, const double *x);
/* How far off the target may be at one row, found once for all that is asked about it: a Gaussian process
 * takes long for its scale. */
struct model_errors {
	double scale;    /* model_scale() */
	double widening; /* plain, or more where there is more work than the table has */
	double plain;    /* widening_at(): of numbers, or of names that are not known */
	double room;     /* such a bound is at most so much above the plain one, in log time */
};
/* The logarithm of a bound over the time: `above` within the table. */
double model_widened(const struct model_errors *e, double above);
/* runs: of the family of x, which the table does not have, have ended and told (spread.h). */
struct model_errors model_errors_at(const struct model *m, const struct model_target *t, const double *x,
                                    double runs);
/* The upper bound of the time (or accuracy) of row x, whose prediction and quantile are at hand: wider
 * outside the training ranges (widening.h). */
double model_upper(const struct model *m, const struct model_target *t, const double *x, double q,
                   double predicted);

/* What the model alone believes of row x, as wide as its residuals say for this confidence. */
struct belief model_belief(const struct model *m, const struct model_target *t, const double *x,
                           double predicted, double confidence);

/* The bound of a job over its expected time, if the table knows so much of it and the model's own word on its
 * errors is that of a job in the middle of the table. NaN: there is no such bound, or it is not a factor. */
double model_bound_factor(const struct model *m, const struct model_target *t, enum familiarity knows,
                          double confidence);
/* The same at a feature beyond its range, where the factor is largest. */
double model_outside_factor(const struct model *m, const struct model_target *t, size_t feature,
                            double confidence);

int model_save(const struct model *m, const char *path, struct err *err);
int model_load(const char *path, struct model **out, struct err *err);
/* The same on memory; `name` is what errors call it. For tests and fuzzing too. */
int model_encode(const struct model *m, struct writer *w, struct err *err);
int model_decode(const char *name, const void *bytes, size_t len, struct model **out, struct err *err);

/* Builds the exact look-up tables where they are small; without it predictions walk the trees. */
int model_compile(struct model *m, struct err *err);

#endif
