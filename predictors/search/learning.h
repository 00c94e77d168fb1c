/* "How many runs do I need?": the error of a model of time against the number of runs that it learnt from.
 * Settings are held out, the model is fitted to more and more of the other runs, and this is repeated with
 * other settings. */
#ifndef PREDICTORS_SEARCH_LEARNING_H
#define PREDICTORS_SEARCH_LEARNING_H

#include "predictors/search/train.h"

#define LEARNING_MAX_SIZES 12
#define LEARNING_REPEATS 10

struct learning_point {
	size_t runs;            /* learnt from */
	double mape, half;      /* mean over the repetitions, and half its 95 % interval */
	size_t n;               /* repetitions in which the model could be fitted */
};

struct learning {
	struct learning_point point[LEARNING_MAX_SIZES]; size_t n;
	size_t runs;            /* in the table */
	double last_gain;       /* by how much the error fell over the last doubling; NaN: not known */
	double next;            /* what the error may be with twice the table's runs, if the falls keep
	                         * shrinking as they did; NaN: not known */
};

/* Of p: table, groups, seed, pool, stop, believe_all. ERR_NODATA for fewer than 20 runs or five settings. */
int learning_run(const struct train_params *p, const struct grid_point *model, struct learning *out,
                 struct err *err);
/* One or two sentences. */
void learning_text(const struct learning *l, struct strbuf *out);

#endif
