/* Which model each policy of a comparison decides with. For compare.c alone. */
#ifndef SIM_COMPARE_COMPARE_MODELS_H
#define SIM_COMPARE_COMPARE_MODELS_H

#include "sim/compare/compare_runs.h"

struct compare_models { /* of all folds that are used */
	size_t n;
	struct csv **table;
	struct sim_models **trained; /* borrowed from a cache, or its own */
	bool cached;
	struct model *given_scaled; /* --model on another machine; NULL: as it is */
	const struct model **of; /* [fold * n_policies + policy] */
};

/* Trains what is to be trained: for each fold once, for policies that do not take the model given. Sets x->folds and
 * x->model, which live as long as `m`. Needs the worlds of x->r. To be released, also after an error. */
int compare_models_of(struct compare_runs *x, struct compare_models *m, struct err *err);
void compare_models_release(struct compare_models *m);
/* Those of the first fold, into the policies of x->r. */
int compare_models_importances(struct compare_runs *x, struct err *err);

#endif
