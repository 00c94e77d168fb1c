/* `postrider predict` on a whole table. */
#ifndef SCHEDULER_CLI_MODEL_PREDICT_TABLE_H
#define SCHEDULER_CLI_MODEL_PREDICT_TABLE_H

#include "predictors/model.h"
#include "scheduler/cli/cli.h"

/* Appends to `out` the table c->arg[1] with columns of predictions. slo_column: the column with a time limit
 * for each row, for a column of chances; NULL: none. */
int predict_table(const struct cli *c, double confidence, const char *slo_column, struct model *m,
		  struct strbuf *out, struct err *err);

#endif
