/* Which rows of a table belong together: those that agree in some columns, and those of one run. */
#ifndef PREDICTORS_DATA_GROUPS_H
#define PREDICTORS_DATA_GROUPS_H

#include "predictors/data/table.h"

/* Rows that agree in these columns (factors, derived columns, or columns of the file that the schema ignores)
 * get one label of 0, 1, ...; per row of the table, to be freed. ERR_ARG: there is no such column. */
int groups_label(const struct table *t, const char *const *column, size_t n, uint32_t **out, struct err *err);

/* `postrider profile` writes a row for each copy of a command that ran at the same time, numbered in the
 * column `copy`. Copies of one run share its machine and its moment, so they are not independent: the run is
 * what was measured once. A run is the rows that agree in the factors (other work aside, which happens) and
 * in `replication`, where there is such a column; where a copy's number comes again, a new run begins.
 *
 * Labels 0, 1, ... in the order of the runs' first rows, per row of the table, to be freed. NULL, and
 * *out_n = n_rows, where no run has more than one row. */
int groups_runs(const struct table *t, uint32_t **out, size_t *out_n, struct err *err);

#endif
