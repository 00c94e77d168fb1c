/* Pictures of an analysis of variance: main effects (the mean at each level of each factor, with 95 %
 * intervals) and interactions (the same means split by the level of a second factor). One SVG that needs
 * nothing else: no script, no font, light or dark as the viewer prefers. */
#ifndef PREDICTORS_ANOVA_ANOVA_PLOT_H
#define PREDICTORS_ANOVA_ANOVA_PLOT_H

#include "common/err.h"
#include "common/strbuf.h"
#include "predictors/anova/anova.h"

/* Appends the SVG. Under `log` the means are geometric ones, in the unit of the target. */
int anova_plot(const struct anova *a, struct strbuf *out, struct err *err);

#endif
