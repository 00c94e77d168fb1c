/* Predictions and promises of jobs beside their results: the table of `list --outcomes`, and below it how
 * many promises were kept and how good the predictions were. */
#ifndef SCHEDULER_CLI_CLIENT_OUTCOME_VIEW_H
#define SCHEDULER_CLI_CLIENT_OUTCOME_VIEW_H

#include "scheduler/cli/client/job_view.h"

struct outcome_sums {
	size_t promised, kept, within, predicted, rejected, by_chance, by_chance_met;
	double error; /* sum of |actual / predicted - 1| of the responses */
};

#define OUTCOME_ALIGN "rllrrrrrlrr"
void outcome_header(struct cli_table *t);
void outcome_row(struct cli_table *t, const struct job_view *j, struct outcome_sums *sums);
void outcome_summary(const struct outcome_sums *s, struct strbuf *out);

#endif
