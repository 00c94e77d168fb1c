/* Shared by train.c, train_groups.c and train_bounds.c. */
#ifndef PREDICTORS_SEARCH_TRAIN_INTERNAL_H
#define PREDICTORS_SEARCH_TRAIN_INTERNAL_H

#include "predictors/search/train.h"

/* What every target shares. */
struct training {
	const struct train_params *p;
	struct train_report *report;
	struct model *model;
	double *x; /* the whole table as features */
	uint32_t *group; /* NULL without --group and runs */
	uint32_t *first; /* per row of the table: the first of its run; NULL: each is its own */
	struct feature_meaning meaning;
	const char *stage; /* what progress is about */
};

/* Labels 0, 1, ... per row of the table, by the columns of --group; to be freed. */
int train_label_groups(const struct train_params *p, uint32_t **out, struct err *err);
/* The first row of the table with the same run, for each row; to be freed. */
int train_first_of_runs(const struct train_params *p, uint32_t **out, struct err *err);
/* Groups that no run is split by: a row is in that of its run's first row. */
int train_join_runs(const uint32_t *first, size_t n, uint32_t **group, struct err *err);
size_t train_count_groups(const struct dataset *d);

/* Fewer groups than parts make fewer parts. 0: nothing can be held out. */
size_t train_possible_folds(size_t asked, size_t groups);
/* Bounds and permutation importances of the model that was chosen. first: of the run of each row; NULL
 * without runs. */
int train_find_bounds(struct training *tr, const struct dataset *d, const uint32_t *first,
                      const struct grid_point *best, bool is_time, struct model_target *out,
                      struct err *err);

#endif
