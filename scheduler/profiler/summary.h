/* What a campaign says, once it has measured: which factors matter, and what to measure next. Called by
 * verb_profile.c at the end. */
#ifndef SCHEDULER_PROFILER_SUMMARY_H
#define SCHEDULER_PROFILER_SUMMARY_H

#include "predictors/anova/anova.h"
#include "predictors/model.h"
#include "scheduler/profiler/table.h"

#define PROFILE_TREES 64 /* whose disagreement is the uncertainty */

/* The campaign's table under a schema made from the design: its factors are the columns, whatever they are
 * called, and only rows with status ok are in it. */
struct profile_data {
	struct schema *schema;
	struct csv *csv;
	struct table *table;
};
/* `text` is what profile_put_table() wrote. Release after failure too. */
int profile_data_open(struct profile_data *p, const struct profile_design *d, const struct strbuf *text,
                      struct err *err);
void profile_data_release(struct profile_data *p);

/* Main effects and pairs on "time" or "accuracy", every value a level of its own; main effects alone where the
 * table is too small for pairs. */
int profile_anova(const struct profile_data *p, const char *target, struct anova **out, struct err *err);

struct profile_suggestion {
	size_t setting;        /* in the full grid */
	double time_s;         /* predicted */
	double uncertainty;    /* of it, as a share of it */
	size_t replications;   /* good ones measured so far */
	bool extrapolated;     /* by the model's own account; only with one */
};
/* The n settings of the full grid whose time is least certain, those first; *out is to be freed, *out_n <= n.
 *
 * Without a model, PROFILE_TREES trees are grown on bootstrap samples of the table and the uncertainty is the
 * standard deviation of their predictions of log time. With one, it is the model's own: (upper bound - time) /
 * time at 90 %, with settings outside what it was trained on first. Among equals the one measured less often
 * goes first. */
int profile_suggest(const struct profile_state *s, const struct profile_verdict *v, const struct profile_data *p,
                    const struct model *m, size_t n, struct profile_suggestion **out, size_t *out_n,
                    struct err *err);

#endif
