/* What learning curves add to a table of runs. `postrider profile` writes beside runs.csv a curves.csv with a
 * row for each epoch of each run; a run stopped after e epochs would have had the accuracy of that row, and
 * about its time, so each run becomes as many rows as it has epochs.
 *
 * The time of a run is measured from outside and has more in it than elapsed_s of its last epoch: the start
 * of the program before its clock and its end after it. That is a constant however many epochs there are, so
 * a run stopped after e epochs is given
 *
 *	time(e) = elapsed_s(e) + (time - elapsed_s(last))
 *
 * which agrees with the run at its last epoch. Where the clocks disagree (time < elapsed_s(last)) it is
 * elapsed_s(e) scaled to agree there. What this cannot know: neighbours that would have stopped after e
 * epochs too leave the machine to the slower ones in their last moments; here they are still running, so that
 * times under load come out a little long.
 *
 * The rows of one run are not independent. train.h says what is done about it. */
#ifndef PREDICTORS_DATA_CURVES_H
#define PREDICTORS_DATA_CURVES_H

#include "common/csv.h"
#include "predictors/data/schema.h"

struct curves {
	struct csv *csv;       /* the runs as they were, then a row for each epoch before the last of one */
	uint32_t *run;         /* csv->n_rows: the row of the run each row is of; its own for a run as it
	                        * was */
	size_t n_runs, n_added;
	size_t n_without;      /* runs without a row in the curves */
	size_t n_unfinished;   /* runs left as they were because their curve does not reach their last
	                        * epoch */
	size_t n_strangers;    /* rows of the curves without a run */
};

/* A row of `curve` belongs to the run that agrees, letter by letter, in all columns that both tables have
 * (apart from targets, epoch, elapsed_s and loss). It has the columns epoch and at least one of elapsed_s and
 * the accuracy. ERR_FORMAT names the file and line: a missing column, two runs that are equal in all columns,
 * an epoch twice, a value that is not a number. */
int curves_join(const struct csv *runs, const struct csv *curve, const struct schema *schema,
                struct curves **out, struct err *err);
void curves_free(struct curves *c);

#endif
