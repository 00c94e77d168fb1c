/* Jobs of a type that has no model yet, or one of few runs: which batch they take, so that all are soon
 * known, and how long such jobs took. How often each batch was taken is counted as jobs come and end, so
 * that choosing one takes no longer where there are many jobs. */
#ifndef SCHEDULER_CORE_ADMIT_FIRST_H
#define SCHEDULER_CORE_ADMIT_FIRST_H

#include <stdbool.h>
#include <stddef.h>

struct first_batches { struct first_type *type; size_t n, cap; }; /* all zero: nothing was tried */

void first_release(struct first_batches *f); /* all zero again */
/* A job without a model, or with a young one, was admitted with this batch. */
void first_taken(struct first_batches *f, int type, double batch);
/* A job has ended well after run_s seconds, has failed, or was cancelled. */
void first_took(struct first_batches *f, int type, double batch, double run_s);
void first_failed(struct first_batches *f, int type, double batch);
void first_cancelled(struct first_batches *f, int type, double batch);
/* Did no job of the type have it, and did none fail with it? */
bool first_untried(const struct first_batches *f, int type, double batch);
/* Of `batch` (at least one) the one that the fewest jobs of the type had, the one nearest to the middle
 * first. *out_guess_s: how long such jobs took on average; NaN: none has ended. */
double first_choose(const struct first_batches *f, int type, const double *batch, size_t n,
                    double *out_guess_s);

#endif
