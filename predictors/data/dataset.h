/* What a model is fitted to: a matrix of features, one target, and group labels for honest splits. */
#ifndef PREDICTORS_DATA_DATASET_H
#define PREDICTORS_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "queueing/calibrate.h"

/* Of what a model is fitted to. A table has fewer (FEATURES_MAX); campaigns make more of its columns. */
#define DATASET_MAX_FEATURES 4096

/* What a feature means to a model that knows how time comes about. */
enum feature_role {
	ROLE_NONE,
	ROLE_BATCH,     /* the decision */
	ROLE_CPUS,      /* of this job */
	ROLE_NJOBS,     /* jobs that share the machine, this one included */
	ROLE_PROCESSES, /* of all of them */
	ROLE_EPOCHS,
	ROLE_SAMPLES,
	ROLE_OTHER,     /* processes of other programs on the machine; a missing value counts as none */
	ROLE_DEVICES,   /* gpus that only this job uses */
	N_ROLES,
	ROLE_CATEGORY = N_ROLES, /* a 0/1 column of a category; there may be several */
};

struct dataset {
	size_t n_rows, n_features;
	double *x;               /* row-major, n_rows x n_features; NaN = missing */
	double *y;               /* n_rows, finite */
	uint32_t *group;         /* rows that must stay on one side of a split; NULL: each row its own */
	struct calibrate_seen *seen; /* n_rows, what was measured of the runs beside their times; NULL:
	                          * nothing. Evidence for models of queues, not features */
	const char *const *name; /* n_features names, borrowed; may be NULL */
	const uint8_t *factor;   /* n_features, 1 where the feature is a factor, 0 where derived; may be NULL:
	                          * all factors */
	const uint8_t *role;     /* n_features, enum feature_role, borrowed; may be NULL: nothing is known */
	const uint16_t *column;  /* n_features: 0/1 columns of one category have the same number; borrowed;
	                          * may be NULL: nothing is known */
};

/* Copies the rows given (with repetition if asked for); name, factor, role and column stay borrowed. */
int dataset_subset(const struct dataset *d, const uint32_t *row, size_t n, struct dataset **out,
                   struct err *err);
/* Makes names of categories that no row of `train` has missing in `test`, which is what they are in a job: a
 * model is then asked about rows that were held out as it will be asked about strangers. */
int dataset_forget_strangers(const struct dataset *train, struct dataset *test, struct err *err);
/* The distinct values of a feature, ascending, missing ones left out; returns how many. `out` has room for
 * n_rows. */
size_t dataset_levels(const struct dataset *d, size_t feature, double *out);
void dataset_free(struct dataset *d); /* frees x, y, group, seen and d */

/* The logarithms of its targets, to be freed. ERR_ARG: one is not above 0. */
int dataset_logs(const struct dataset *d, double **out, struct err *err);

#endif
