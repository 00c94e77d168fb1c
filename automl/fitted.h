/* One technique fitted to some rows of a prepared table: features are chosen, scaled and given to the model;
 * predictions are scaled back. */
#ifndef AUTOML_FITTED_H
#define AUTOML_FITTED_H

#include "automl/folds.h"

struct automl_score { /* NaN: not known */
	double mape, rmse, r2;
};

struct feature_list {
	uint32_t *column; /* of the prepared table */
	size_t n;
};

struct fitted {
	struct predictor model;
	struct feature_list features;
	struct scaling *x; /* one for each feature; NULL: none */
	struct scaling y;
};

struct fit_request {
	const struct campaign *c;
	const struct prepared *p;
	const struct technique *technique;
	const struct settings *settings;
	const struct row_list *rows;
	const struct feature_list *features; /* techniques by meaning choose theirs */
	struct fit_context ctx;
};

int fitted_make(const struct fit_request *q, struct fitted *out, struct err *err);
void fitted_release(struct fitted *f); /* accepts an all-zero one */

/* Predicts rows; out has room for rows->n. */
int fitted_predict(const struct fitted *f, const struct prepared *p, const struct row_list *rows, double *out,
                   struct err *err);
int fitted_score(const struct fitted *f, const struct prepared *p, const struct row_list *rows,
                 struct automl_score *out, struct err *err);
/* MAPE as a fraction, with |y| held above the rounding unit as in scikit-learn. */
struct automl_score automl_score_of(const double *y, const double *predicted, size_t n);

/* The mean score of a request over contiguous folds of its rows; NaN in no member. */
int fitted_cross(const struct fit_request *q, size_t folds, struct automl_score *out, struct err *err);

/* The columns of the table itself, for techniques by meaning; to be freed. */
int features_by_meaning(const struct campaign *c, const struct prepared *p, struct feature_list *out,
                        struct err *err);
/* What a column of the table means: as the campaign's roles say, else by its name. */
enum feature_role automl_role(const struct campaign *c, const struct prepared *p, size_t column);

#endif
