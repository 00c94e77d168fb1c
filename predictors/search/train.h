/* From a table to a model bundle: search or a fixed model, fit, residuals, bounds, importances. */
#ifndef PREDICTORS_SEARCH_TRAIN_H
#define PREDICTORS_SEARCH_TRAIN_H

#include "predictors/model.h"
#include "predictors/search/search.h"

struct train_params {
	const struct table *table;
	const struct grid *grid;          /* of the time model; one point: no search */
	const struct grid *accuracy_grid; /* of the accuracy model */
	const char *const *group; size_t n_groups; /* --group: columns whose equal values stay together */
	/* Per row of the table's csv: the run it is part of (curves.h); NULL: each row is a run. Rows of a
	 * run are not independent. So they stay together in every split (the group of the first row counts),
	 * out-of-bag residuals are not used, and each run gives one residual, so that no run counts twice.
	 * For the bounds of time it is the run's worst: a bound that holds for it holds for all its epochs,
	 * so a decision may pick the epochs and still keep its confidence. The price is a bound that is wider
	 * than one number of epochs would need. For accuracy, where residuals only say what is noise, it is
	 * that of a row drawn at random. Copies of a run (data/groups.h) count once as well: one of them,
	 * drawn at random, since all copies are equal. */
	const uint32_t *run;
	struct split_params split;        /* how scores are made; kind KFOLD 5 by default */
	const enum search_by *select;     /* what the best is best by; NULL: times by their logarithms,
	                                   * accuracies by the MSE */
	struct fit_context ctx;
	bool plain_bounds;                /* do not normalise the residuals by a spread */
	bool believe_all;                 /* do not look for times that are wrong (doubt.h) */
	size_t search_rows;               /* a search looks at so many rows at most, drawn at random; 0: at
	                                   * all */
	void (*on_progress)(void *owner, const char *stage, size_t done, size_t total); /* optional */
	void *owner;
	const char *data_name, *created, *program;
};

struct train_doubt {
	uint32_t line;                    /* of the file; of a table made in memory the number of the row */
	uint8_t why;                      /* enum doubt */
};

#define TRAIN_LITTLE_R2 0.3 /* below this a model explains little, which is said */

struct train_report {                     /* everything tried, for the table people read */
	struct grid *time_grid, *accuracy_grid;   /* copies; accuracy_grid NULL without accuracy */
	struct search_result *time_result, *accuracy_result;
	size_t time_best, accuracy_best;
	enum search_by time_by, accuracy_by; /* what the best is best by */
	struct train_doubt *doubted; size_t n_doubted; /* rows that no model of time learnt from */
	double time_r2;                   /* of the best over all rows held out; NaN: none were */
	bool leaks;                       /* a random split with replicates on both sides */
	char notice[12][256]; size_t n_notices; /* "12 rows without accuracy: ...", for people */
	unsigned choices;                 /* bits of the notices of what was chosen and how good it is */
};

int train_model(const struct train_params *p, struct model **out, struct train_report *report,
                struct err *err);
/* The search alone: which points of the grids have the least error on rows held out. A target that the table
 * does not have, or that cannot be held out, leaves its point as it is. */
int train_choose(const struct train_params *p, struct grid_point *time, struct grid_point *accuracy,
                 struct err *err);
void train_report_release(struct train_report *r);

/* ---- learning.c ---- */
/* "How many runs do I need?": the error of a model of time against the number of runs that it learnt from.
 * Settings are held out, the model is fitted to more and more of the other runs, and this is repeated with
 * other settings. */
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
