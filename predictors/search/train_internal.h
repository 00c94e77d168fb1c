/* Shared by train.c, train_groups.c and train_bounds.c. */
#ifndef PREDICTORS_SEARCH_TRAIN_INTERNAL_H
#define PREDICTORS_SEARCH_TRAIN_INTERNAL_H

#include "predictors/models/spread.h"
#include "predictors/search/train.h"

/* What every target shares. */
struct training {
	const struct train_params *p;
	struct train_report *report;
	struct model *model;
	double *x; /* the whole table as features */
	uint32_t *group; /* of each row: by --group, else the settings; NULL: each row is its own */
	uint32_t *replication; /* of each row: a label of what the column `replication` says; NULL: none */
	uint32_t *first; /* per row of the table: the first of its run; NULL: each is its own */
	uint32_t *copies; /* per row of the table: the run it is a copy of (groups.h); NULL: each is its
	                   * own */
	struct calibrate_seen *seen; /* per row of the table; NULL: nothing was measured */
	struct feature_meaning meaning;
	const char *stage; /* what progress is about */
};

/* The rows of the table that have a target. */
struct target_rows {
	struct dataset *d;
	uint32_t *first; /* per row: of its run; NULL without runs */
	uint32_t *copies; /* per row: the run it is a copy of; NULL: each is its own */
	uint32_t *replication; /* per row; NULL: not known */
	uint32_t *at; /* per row: its row in the table */
	uint8_t *doubted; /* per row: its time looks wrong (doubt.h), no model learns from it; NULL: none */
	bool by_groups; /* the user has said by --group what belongs together */
};
/* n of them, drawn at random. */
int train_thin_rows(const struct target_rows *rows, size_t n, uint64_t seed, struct target_rows *out,
                    struct err *err);
void train_release_rows(struct target_rows *r);

/* Labels 0, 1, ... per row of the table, by the columns of --group; to be freed. */
int train_label_groups(const struct train_params *p, uint32_t **out, struct err *err);
/* The first row of the table with the same run, for each row; to be freed. */
int train_first_of_runs(const struct train_params *p, uint32_t **out, struct err *err);
/* Groups that no run is split by: a row is in that of its run's first row. */
int train_join_runs(const uint32_t *first, size_t n, uint32_t **group, struct err *err);
size_t train_count_groups(const struct dataset *d);
/* Rows that repeat a setting get one label; to be freed. NULL if no row does, or if all rows have the same
 * setting. */
int train_label_settings(const struct dataset *d, uint32_t **out, struct err *err);
/* What the table's column `replication` says, as labels to be freed; NULL without such a column. */
int train_label_replications(const struct table *t, uint32_t **out, struct err *err);
/* Labels of what is held out, by how much the model then knows about a job: contexts, settings or runs (the
 * same setting, replication and contents of --group). Rows of a run stay together. Returns how many there
 * are. */
size_t train_hold_out_label(const struct target_rows *rows, const struct spread *s, enum familiarity knows,
                            uint32_t *out);

/* Labels of the names of the category that starts at feature f, where there are more than two and no group of
 * the user's has several. Returns how many there are; 0: it is none, or not such a one. out_end: where the
 * next column of the table starts. */
size_t train_name_label(const struct target_rows *rows, size_t f, size_t *out_end, uint32_t *out);

/* Fewer groups than parts make fewer parts. 0: nothing can be held out. */
size_t train_possible_folds(size_t asked, size_t groups);
/* Runs beside jobs of another kind, for a model whose time is trained: model->mixed (train_mixed.c). */
int train_mixed(struct training *tr, struct err *err);
struct bounds_job {
	struct training *tr;
	const struct target_rows *rows;  /* that may be held out, doubted rows like the others, so that a slow
	                                  * run is not forgotten in the bounds */
	const struct dataset *believed; /* what the model was fitted to */
	const struct grid_point *best;
	bool is_time;
	struct model_target *out;
};
/* Bounds and permutation importances of the model that was chosen. */
int train_find_bounds(const struct bounds_job *b, struct err *err);

#endif
