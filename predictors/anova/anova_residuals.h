/* Whether the assumptions behind the p of an analysis of variance hold: residuals that spread alike at every
 * mean, are normal, and do not depend on when a run was made (Jain, 1991, section 18.6). As numbers, as a
 * sentence and as pictures. */
#ifndef PREDICTORS_ANOVA_ANOVA_RESIDUALS_H
#define PREDICTORS_ANOVA_ANOVA_RESIDUALS_H

#include "common/strbuf.h"
#include "predictors/anova/anova.h"

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
