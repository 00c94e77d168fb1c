/* Analysis of variance of a designed experiment: which factors, and which of their interactions, move a
 * target, and by how much.
 *
 * The model is linear, with an intercept, every factor, and products of factors up to an order. Sums of
 * squares are of type II: that of a term is what it adds to the model of all terms that do not contain it, so
 * a main effect is not charged for its own interactions (Fox, Applied Regression Analysis, 3rd ed., section
 * 8.2). F compares it with the residual of the whole model. An observation is a run: the mean of its copies,
 * where the table has several (data/groups.h), since these are not independent. The rest is in lsq.c (fits),
 * anova_plot.c (pictures) and scheduler/cli/model/verb_anova.c (tables). */
#ifndef PREDICTORS_ANOVA_ANOVA_H
#define PREDICTORS_ANOVA_ANOVA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/strbuf.h"
#include "common/err.h"
#include "predictors/data/table.h"

#define ANOVA_MAX_FACTORS 16
#define ANOVA_MAX_TERMS 500
#define ANOVA_MAX_COLUMNS 2000

enum anova_coding {
	ANOVA_NUMBERS, /* a number is one column, its value: 1 degree of freedom, as in the Courier paper */
	ANOVA_LEVELS,  /* k levels are k-1 columns of 0 and 1, the lowest level being the reference */
};                 /* categories are levels in either case */

struct anova_params {
	const struct table *table;
	const char *const *factor; size_t n_factors; /* none: the schema's columns that are there and vary */
	const char *target;       /* NULL or "time", "accuracy", or any column of numbers */
	enum anova_coding coding;
	size_t order;             /* of interactions; 0: as high as there are factors */
	bool log;                 /* of the target */
	/* Only rows where every number is at its lowest or highest: the 2^k r design, analysed by its sign
	 * table (Jain, The Art of Computer Systems Performance Analysis, 1991, chapters 17 and 18). A factor
	 * of two levels is -1 and +1, so that a coefficient is an effect: half the change from low to high.
	 */
	bool extremes;
};

struct anova_factor {
	char *name;
	bool category;            /* levels are words */
	bool levels;              /* enters the model as levels */
	bool signs;               /* as -1 and +1: of two levels, under `extremes` */
	size_t n_levels;
	double *value;            /* of each level, ascending; NULL for a category */
	char **label;             /* of each level */
	uint32_t *at;             /* level of each observation */
};

struct anova_term {
	char *name;               /* "cpus:njobs" */
	uint32_t factors;         /* bit i: factor i */
	size_t first, n_columns;  /* in the design, aliased columns included */
	size_t df;                /* columns that add something */
	double ss, ms, share;     /* sum of squares, per df, of the total; >= 0 */
	double f, p;              /* NaN where there is nothing to test: df 0, or a model that fits exactly */
};

struct anova_coefficient {
	char *name;               /* "(intercept)", "cpus:network=simplenet" */
	double estimate, se, low, high; /* 95 % interval */
	double t, p;              /* NaN where se is 0 */
};

struct anova {
	char *target;             /* name of its column */
	bool log;
	struct anova_factor *factor; size_t n_factors;
	size_t n, order;          /* observations (runs), order of interactions used */
	size_t n_copies;          /* rows that these are the means of; 0: each row is a run */
	bool signs;               /* every factor is -1 and +1: the coefficients are effects */
	double *y;                /* n: the target, or its logarithm */
	double *fitted;           /* n: by the whole model */
	uint32_t *moment;         /* n: which was the first run, the second, ...: by started_at if the table
	                           * has it, else by its rows */
	size_t n_no_target, n_no_factor, n_not_extreme; /* rows left out for each reason */

	struct anova_term *term; size_t n_terms;
	struct anova_coefficient *coefficient; size_t n_coefficients; /* aliased ones are not listed */
	double total_ss, residual_ss, residual_ms, residual_sd;
	size_t model_df, residual_df;
	double r2, adjusted_r2, f, p;

	size_t n_settings, min_replications, max_replications;
	bool has_lack_of_fit;     /* replications leave a pure error, and the model leaves settings to miss */
	size_t lack_df, pure_df;
	double lack_ss, pure_ss, lack_f, lack_p;

	char **note; size_t n_notes; /* sentences for people: what was left out, reduced or aliased */
};

/* ERR_ARG: no such column (the nearest is named), a factor twice. ERR_NODATA: nothing varies, or no order
 * leaves a residual. ERR_NUMERIC: a logarithm or a square that does not exist. */
int anova_run(const struct anova_params *p, struct anova **out, struct err *err);
void anova_free(struct anova *a);

/* The half-width of the 95 % interval of a mean of n observations, from the residual of the model. */
double anova_interval(const struct anova *a, size_t n);

/* ---- anova_plot.c ---- */
/* Main effects (the mean at each level of each factor, with 95 % intervals) and interactions (the same means
 * split by the level of a second factor). Appends one SVG that needs nothing else: no script, no font, light
 * or dark as the viewer prefers. Under `log` the means are geometric ones, in the unit of the target. */
int anova_plot(const struct anova *a, struct strbuf *out, struct err *err);

/* ---- anova_residuals.c ---- */
/* Whether the assumptions behind p hold: residuals that spread alike at every mean, are normal, and do not
 * depend on when a run was made (Jain, 1991, section 18.6). As numbers, as a sentence and as pictures. */
struct anova_check {
	bool none;              /* the model fits exactly: there are no residuals */
	double spread, spread_p; /* rank correlation of their sizes with the fitted values, and its p */
	double ratio;           /* the largest value of the target over the smallest; NaN unless all are
	                         * above 0 */
	double normal;          /* correlation with the quantiles of a normal distribution */
	double after, after_limit; /* correlation with the residual of the run before; chance stays within */
	bool wants_log;         /* sizes grow with the values, which are far apart */
};
int anova_check(const struct anova *a, struct anova_check *out, struct err *err);
/* Two or three sentences; "add --log" among them where that is the cure. */
void anova_check_text(const struct anova *a, const struct anova_check *c, struct strbuf *out);
/* Four panels: against fitted values, normal quantiles, the order of runs, spread against mean. */
int anova_residual_plot(const struct anova *a, const struct anova_check *c, struct strbuf *out,
                        struct err *err);

#endif
