/* Prior distributions of hyper-parameters, as campaigns write them: 'loguniform(0.01,1)'. */
#ifndef AUTOML_PRIOR_H
#define AUTOML_PRIOR_H

#include <stdbool.h>

#include "common/err.h"
#include "common/rng.h"

enum prior_shape { PRIOR_UNIFORM, PRIOR_NORMAL };

/* A value is v(z) with z uniform in [a, b] or normal with mean a and standard deviation b; v is z, or
 * exp(z) under `log`; then it is rounded to a multiple of the quantum, if there is one.
 *
 *	uniform(low, high)      quniform(low, high, q)      uniformint(low, high), randint([low,] n)
 *	loguniform(low, high)   qloguniform(low, high, q)   the ends are those of the value
 *	normal(mean, sd)        qnormal(mean, sd, q)
 *	lognormal(mean, sd)     qlognormal(mean, sd, q)     mean and sd are those of the logarithm
 */
struct prior {
	enum prior_shape shape;
	bool log;
	double a, b;
	double quantum; /* 0: none */
	double low, high; /* the value's ends; infinite where it has none */
};

/* True if the text is the name of a prior and a parenthesis. */
bool prior_is(const char *text);
/* ERR_ARG names what is wrong with it, an unknown name and the nearest known one included. */
int prior_parse(const char *text, struct prior *out, struct err *err);

double prior_value(const struct prior *p, double z); /* the value of a latent z */
double prior_draw(const struct prior *p, struct rng *rng); /* a latent z */
/* The latent z below which a share u of the prior lies, 0 < u < 1. */
double prior_at(const struct prior *p, double u);

#endif
