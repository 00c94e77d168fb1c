/* Grid search: every setting of every model in a grid, scored on the same folds. Forests share work:
 * the trees of a large forest contain those of a small one, a deep tree contains its shallow self. */
#ifndef PREDICTORS_SEARCH_SEARCH_H
#define PREDICTORS_SEARCH_SEARCH_H

#include "predictors/predictor.h"
#include "predictors/data/score.h"
#include "predictors/data/split.h"

#define GRID_MAX_POINTS 100000

struct grid_point {
	const struct predictor_ops *ops;
	struct settings settings;
};

struct grid {
	struct grid_point *point;
	size_t n;
};

/* JSON: {"forest":{"trees":[50,2000],"depth":[4,6]},"ridge":{"alpha":[0.1]}}: the Cartesian product
 * per model; `name` is what errors call it. */
int grid_from_json(const char *name, const struct json *v, struct grid **out, struct err *err);
int grid_default(struct grid **out, struct err *err);  /* what `train` tries without --grid */
void grid_free(struct grid *g);

struct search_result {               /* one per grid point, same order */
	struct score_summary score;
	bool failed;                 /* not fitted in at least one fold: `why` says so */
	char why[160];
};

struct search_params {
	const struct dataset *data;
	const struct grid *grid;
	const struct split *split;
	struct fit_context ctx;
	/* Optional; called from one thread at a time, in units of grid points x folds. */
	void (*on_progress)(void *owner, size_t done, size_t total);
	void *owner;
};

/* n = grid->n results, to be freed. Fails only where nothing could be fitted at all; models that were all
 * fitted, and all unstable for some row, are `failed` with scores of the rows that got an answer. */
int search_run(const struct search_params *p, struct search_result **out, struct err *err);

/* By which score the best model is chosen. The logarithm: an error of 2 s means something else in a job of 3
 * s than in a job of an hour. Where it is not a number, the MSE counts. */
enum search_by { SEARCH_BY_MSE, SEARCH_BY_LOG, SEARCH_BY_MAPE, SEARCH_BY_MAE, SEARCH_BY_R2 };
extern const char *const search_by_name[]; /* "mse", "log-mse", ...; NULL at the end */

/* Index of the best by its mean over the folds (failed ones never); SIZE_MAX when all failed. A tie goes to
 * the first. */
size_t search_best(const struct search_result *r, size_t n, enum search_by by);
double search_measure(const struct search_result *r, enum search_by by); /* that error; of R2, 1 - R2 */

#endif
