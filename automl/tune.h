/* Bayesian optimisation with a tree-structured Parzen estimator (Bergstra, Bardenet, Bengio, Kegl, NIPS
 * 2011). Trials are divided into good and bad ones; a Parzen density of each is kept for every
 * hyper-parameter, and the next trial is the candidate, drawn from the good density, with the largest ratio
 * of the two. The first trials are spread evenly over the prior. Everything follows from the seed. */
#ifndef AUTOML_TUNE_H
#define AUTOML_TUNE_H

#include <stddef.h>

#include "automl/prior.h"

struct tune;

/* The priors are borrowed. budget: how many trials there will be. random: never look at results; for
 * tests. */
struct tune_params {
	const struct prior *prior;
	size_t n_priors, budget;
	uint64_t seed;
	bool random;
};
int tune_new(const struct tune_params *p, struct tune **out, struct err *err);
void tune_free(struct tune *t);

void tune_ask(struct tune *t, double *out_value);         /* n_priors values */
void tune_tell(struct tune *t, double loss);              /* of the last one asked for; infinite: it failed */
double tune_best(const struct tune *t, double *out_value);/* its loss; infinite: all failed */

#endif
