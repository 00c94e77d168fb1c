/* Shared by anova_data.c, which chooses columns and rows, and anova.c, which analyses them. */
#ifndef PREDICTORS_ANOVA_ANOVA_INTERNAL_H
#define PREDICTORS_ANOVA_ANOVA_INTERNAL_H

#include "predictors/anova/anova.h"

struct anova_raw { /* a column before rows are chosen: one of the two, by table row */
	double *number; /* NaN: missing */
	char **category; /* NULL: missing */
	bool owned;
};

struct anova_work {
	const struct anova_params *p;
	struct anova *a;
	struct anova_raw raw[ANOVA_MAX_FACTORS];
	double *target; /* by table row; NaN: missing */
	size_t target_column; /* of the csv */
	uint32_t *row;
	size_t n; /* table rows in use */
	double *design;
	char **column_name;
	size_t n_columns;
};

/* The factors, the rows in use, the levels and the target. */
int anova_read(struct anova_work *w, struct err *err);
void anova_work_release(struct anova_work *w); /* all but the result */
int anova_note(struct anova *a, struct err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
