/* The tables a training needs: the operator's runs (and their curves) and the daemon's own
 * observations as one table under a schema, made in memory. */
#ifndef SCHEDULER_DAEMON_LEARN_TRAINING_DATA_H
#define SCHEDULER_DAEMON_LEARN_TRAINING_DATA_H

#include "common/csv.h"
#include "predictors/data/curves.h"
#include "predictors/data/table.h"

#define TRAINING_MAX_OBSERVATIONS 5000 /* the latest ones: a training takes seconds, however old the daemon
                                          is */

struct training_base {          /* what the operator gave; all zero: nothing */
	struct csv *runs, *curve;
	struct curves *joined; /* NULL without curves */
};
/* Paths may be NULL. */
int training_base_read(const char *table, const char *curves, const struct schema *s,
                       struct training_base *out, struct err *err);
void training_base_release(struct training_base *b);

/* Observations as the store packed them (store_observation_next()), borrowed. */
struct training_rows {
	const char *packed; size_t len;
	size_t *at, n;         /* where each row that can be used begins; the latest is the last */
	int64_t *uid;          /* whose it is; -1: not known */
	size_t n_unusable, n_left_out;
};
/* Finds the rows that can be used under both schemas (`other` may be NULL): a time above 0, numbers where
 * numbers are asked for. Rows that cannot be used are counted and left out, since they must not block all
 * later trainings. */
int training_rows_find(const char *packed, size_t len, const struct schema *s, const struct schema *other,
                      struct training_rows *out, struct err *err);
void training_rows_release(struct training_rows *r);

/* Of so many of the latest jobs the epochs are rows, too; more jobs tell by themselves. */
#define TRAINING_TOLD 40

/* ---- training_users.c ---- */
struct model;
/* Where several users have rows: leaves out those of users who disagree with the others and with the model in
 * use (NULL: there is none), and has no user outweigh all others and the n_base rows of the operator. */
int training_rows_share(struct training_rows *r, const struct model *current, size_t n_base, struct err *err);
/* Of the last n rows, which a model is tested on, no user has more than half where others have rows, too. */
void training_rows_spread(struct training_rows *r, size_t n);

/* A table, and the runs to which its rows belong (train.h). */
struct training_table {
	struct table *table;
	uint32_t *run;         /* NULL: each row is its own */
};
/* base and n of the observations from `first` on; a column that one of them lacks is missing there. Without a
 * base each observation is one row, to be predicted; with one its epochs are rows of the same run, too. The
 * schema is borrowed by the table. */
int training_table_make(const struct training_base *base, const struct training_rows *rows, size_t first,
                        size_t n, const struct schema *s, struct training_table *out, struct err *err);
void training_table_release(struct training_table *t);

#endif
