/* From a point of a grid and some rows to a fitted model: hyper-parameters that have priors are tuned,
 * features are selected, and the model is fitted. One experiment, one validation and one final model are
 * all this. */
#ifndef AUTOML_SELECT_H
#define AUTOML_SELECT_H

#include "automl/automl.h"

struct attempt {
	const struct campaign *c;
	const struct prepared *p;
	const struct plan *plan;
	size_t point;
	const struct row_list *rows;
	const struct feature_list *features; /* that may be used */
	uint64_t seed;
	struct bins **bins; /* optional: fit_context's, of these rows and features */
	/* A search that goes on: the losses of its first trials. Every c->save_interval trials `save` gets
	 * those since. */
	const double *loss; size_t n_losses;
	int (*save)(void *owner, const double *loss, size_t n, struct err *err); /* optional */
	void *owner;
};

/* Fills o->tuned and o->features (n 0: all of those that may be used). */
int attempt_search(const struct attempt *t, struct outcome *o, struct err *err);
/* Fits with what the search has found. */
int attempt_fit(const struct attempt *t, const struct outcome *o, struct fitted *out, struct err *err);

/* The features by XGBoost's weights, the largest first, until they make up the campaign's tolerance. */
int select_by_weight(const struct campaign *c, const struct prepared *p, const struct row_list *rows,
                     uint64_t seed, struct feature_list *out, struct err *err);

/* bundle.c: from a fitted technique to a model bundle (model.h), which `postrider predict` and the scheduler
 * read. Takes the model out of f; who made it and when is the caller's to say. Bounds come from residuals of
 * five folds that the technique has not seen. */
int bundle_make(const struct automl *a, size_t technique, const struct attempt *t, struct fitted *f,
                struct model **out, struct err *err);

#endif
