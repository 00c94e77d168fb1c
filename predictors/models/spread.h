/* How far off a predicted time may be depends on what the table has of the job. For a setting that was
 * measured the error is the noise of a run. For a new batch in a context that was measured it is a little
 * more. A context that was never measured has an error that all its jobs share, and no other context shows
 * it.
 *
 * A context is everything that is given with a job (network, cpus, ..., and the load); a setting is a context
 * with a batch and a number of epochs. The load at run time is a number between those of the table, so it
 * counts as the nearest level that the table has. Other work on the machine is not part of either: it is
 * different in every run.
 *
 * A family is what a context has apart from numbers that change from job to job: its categories and its cpus
 * (the nearest level that the table has), say a network on a kind of GPU. All jobs of a family that was never
 * measured share an error, so one run of it says much about the others.
 *
 * train_bounds.c holds out runs, settings, contexts and families in turn and finds one scale for each case;
 * the scores behind the bounds (conformal.h) are residuals over these scales. */
#ifndef PREDICTORS_MODELS_SPREAD_H
#define PREDICTORS_MODELS_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "predictors/data/dataset.h"
#include "predictors/file/bytes.h"

enum familiarity {
	KNOWS_SETTING, /* the table has this very setting */
	KNOWS_CONTEXT, /* it has the context, with other batches or epochs */
	KNOWS_NEITHER, /* the context is new, in a family that it has */
	KNOWS_NOTHING, /* the family is new: other cpus, or names that it has apart */
	KNOWS_NO_NAME, /* a category has a name that the table does not have, or none */
	N_FAMILIARITIES
};

struct spread;

/* From the features of a table: which settings and contexts there are. All scales are 1. */
int spread_make(const struct dataset *d, struct spread **out, struct err *err);
void spread_free(struct spread *s);

enum familiarity spread_knows(const struct spread *s, const double *x);
/* The scale of residuals at x; 1 without a spread (NULL). No allocation. */
double spread_at(const struct spread *s, const double *x);
double spread_scale(const struct spread *s, enum familiarity knows);
/* typical: what a score of 1 is in log time, over all residuals behind the scales. trust: the power of the
 * model's own spread that tells its errors best, 0 to 1. */
void spread_set(struct spread *s, const double scale[N_FAMILIARITIES], double typical, double trust);
/* What counts of a spread that the model states itself. */
double spread_believed(const struct spread *s, double own);
bool spread_asks(const struct spread *s); /* is the model's own spread needed at all? */
double spread_typical(const struct spread *s); /* 1 without a spread (NULL) */

/* shared: the part of the variance of a new family's errors that all its jobs share, in 0..1. A table of one
 * or two families cannot tell, and one half is assumed. */
void spread_set_shared(struct spread *s, double shared);
double spread_shared(const struct spread *s); /* 0 without a spread (NULL) */
/* The family of x; 0: x leaves its cpus open. Names that the table does not have, or none, are one name. */
uint64_t spread_family(const struct spread *s, const double *x);
/* Its categories alone, whatever its cpus; 0: x leaves them open. */
uint64_t spread_kind(const struct spread *s, const double *x);
/* The family if the table has none of it; 0: it has, or it is open. */
uint64_t spread_new_family(const struct spread *s, const double *x);
/* What n runs of a new family, off by `mean` in log time, say of its next one (a random effect of variance
 * `shared`, the rest of each run on its own): how far off that will be, and how much narrower its errors are
 * than without the runs. */
struct spread_level {
	double shift, narrow;
	double n; /* the runs it is told by */
};
/* A width of `own` of the model's usual errors (above 1), because it does not know a family: the part of it
 * that is left after n runs of the family. What a model does not know of a name is the same for all jobs that
 * have it. */
double spread_own_left(double own, double n);
struct spread_level spread_level(double shared, double n, double mean);
/* The same for a model's new family, with the variance of the n runs in log time. Where its table could not
 * tell what families share, the runs themselves do: they count for all the more, the further they are off
 * beyond the model's own errors, and no bound gets tighter. So it is for a name that the table does not have:
 * what families of known names share says nothing about it. */
struct spread_level spread_level_of(const struct spread *s, enum familiarity knows, double n, double mean,
                                    double variance);

/* Labels 0, 1, ... of the rows of the table it was made from: which family (KNOWS_NOTHING: what is held out
 * to meet a family that is new), context (KNOWS_NEITHER) or setting (KNOWS_CONTEXT) they are. Returns how
 * many there are. */
size_t spread_label(const struct spread *s, const struct dataset *d, enum familiarity held_out,
                    uint32_t *out);

void spread_save(const struct spread *s, struct writer *w);
int spread_load(struct reader *r, size_t n_features, struct spread **out, struct err *err);

#endif
