/* The tables a training needs: the operator's runs (and their curves) and the daemon's own observations as
 * one table under a schema. */
#ifndef SCHEDULER_DAEMON_LEARN_TRAINING_DATA_H
#define SCHEDULER_DAEMON_LEARN_TRAINING_DATA_H

#include "common/csv.h"
#include "predictors/data/curves.h"
#include "predictors/data/table.h"

#define TRAINING_MAX_OBSERVATIONS 5000 /* the latest ones; so that a training takes seconds, however old the
                                          daemon is */

struct training_base {          /* what the operator gave; all zero: nothing */
	struct csv *runs, *curve;
	struct curves *joined; /* NULL without curves */
};
/* Paths may be NULL. */
int training_base_read(const char *table, const char *curves, const struct schema *s,
                       struct training_base *out, struct err *err);
void training_base_release(struct training_base *b);

/* Rows of the observations that can be used under the schema: a time above 0, numbers where numbers are asked
 * for. The others are nobody's fault that should stop training for good. good[] has a flag a row, and only
 * loses some. */
int training_usable(const struct csv *observations, const struct schema *s, bool *good, struct err *err);

/* A table with its csv, and the runs its rows are of (train.h). */
struct training_table {
	struct csv *csv;
	struct table *table;
	uint32_t *run;         /* NULL: each row is its own */
};
/* base (may be NULL) and the rows row[0..n) of the observations (may be NULL), in the schema's names; a
 * column that one of them lacks is missing there. The schema is borrowed by the table. */
int training_table_make(const struct training_base *base, const struct csv *observations,
                        const uint32_t *row, size_t n,
                       const struct schema *s, struct training_table *out, struct err *err);
void training_table_release(struct training_table *t);

#endif
