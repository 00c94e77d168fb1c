/* The Gaussian process itself, on points in the units of gp.c: its covariance, its fit, its prediction. */
#ifndef PREDICTORS_MODELS_GP_FIT_H
#define PREDICTORS_MODELS_GP_FIT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define GP_AXES 64

struct gp_process {
	size_t n, n_axes;
	double *z;               /* n_axes rows of n points */
	double *target, *weight; /* n: mean residual of a point, and the runs behind it */
	double rate[GP_AXES];    /* 1 / length */
	double linear, smooth, noise; /* variances */
	double *alpha, *inverse; /* of the covariance: what follows from all of the above */
};

struct gp_shape {                /* what the search for variances and lengths is about */
	unsigned char length_of[GP_AXES]; /* which length an axis has: 0, 1, ... */
	size_t n_lengths;
	double within;           /* squares of residuals about the means of their points */
	size_t n_rows;           /* behind all points */
	const atomic_bool *stop; /* optional */
};

/* Finds variances and lengths; n, n_axes, z, target and weight are given. */
int gp_search(struct gp_process *g, const struct gp_shape *s, struct err *err);
/* alpha and inverse from the rest. */
int gp_solve(struct gp_process *g, struct err *err);
void gp_process_release(struct gp_process *g);

/* Mean and variance (of a run, so with noise) at z[n_axes]; out_variance may be NULL. No allocation. */
double gp_mean(const struct gp_process *g, const double *z, double *out_variance);

#endif
