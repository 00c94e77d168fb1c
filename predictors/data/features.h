/* From raw columns to the numbers a model sees. Fitted on the training table: the categories that
 * occurred and the range of every feature. A category with two values becomes one 0/1 column, with more one
 * column per value (`network=lenet5`). One with a single value becomes one column that is always 0: no
 * use to a model, but it lets another value at prediction count as what it is. Missing values are NaN;
 * an unknown category is NaN in all its columns and counts as extrapolation. Columns the training table
 * did not have, and categories without a single value, become no feature. Neither does the column of other
 * work on the machine where no row has any: it says no more than a table without the column. */
#ifndef PREDICTORS_DATA_FEATURES_H
#define PREDICTORS_DATA_FEATURES_H

#include "predictors/data/bind.h"
#include "predictors/data/table.h"

#define FEATURES_MAX 1024

struct feature {
	char *name;         /* "batch", "network" (two values), "network=lenet5" (more than two) */
	size_t source;      /* table column (schema columns, then derived) */
	char *category;     /* value that gives 1; NULL for numbers and for a category of one value */
	char *category_zero;/* for categories of one or two values: the first of them, which gives 0 */
	double min, max;    /* over the training rows, NaN when all missing */
};

struct features {
	const struct schema *schema;  /* borrowed */
	struct feature *feature;      /* by source: factors in the schema's order, derived ones after them */
	size_t n;
	bool derives;                 /* some feature is a derived column */
	int other;                    /* the feature of ROLE_OTHER; -1: none. Missing, it is 0 */
};

/* True for a feature that stands for a category. */
static inline bool feature_is_category(const struct feature *f)
{
	return f->category || f->category_zero;
}

int features_fit(const struct table *t, struct features **out, struct err *err);
int features_to_json(const struct features *f, struct json_writer *w);
int features_from_json(const char *name, const struct json *v, const struct schema *schema,
                       struct features **out, struct err *err);
void features_free(struct features *f);
/* Takes the column of other work out of the schema of these features, if none of them stands for it, so
 * that a model is the same with and without it. in_table: the table has the column, so it is marked to be
 * ignored. */
int features_forget_other(struct features *f, struct schema *s, bool in_table, struct err *err);

/* Row-major matrix n_rows x f->n of the whole table, to be freed. The table was read under a schema
 * equal to f->schema. */
int features_encode_table(const struct features *f, const struct table *t, double **out_x, struct err *err);

/* What features mean, for models that know how time comes about: the arrays of a dataset. The names are
 * borrowed. */
struct feature_meaning {
	const char **name;
	uint8_t *factor, *role;
	uint16_t *column;
};
int features_meaning(const struct features *f, struct feature_meaning *out, struct err *err);
void feature_meaning_release(struct feature_meaning *m);

/* True, with the value set, for a factor that training never varied: it had one value in all of the table.
 * False leaves v as it is. */
bool features_fill_constant(const struct features *f, size_t column, struct job_values *v);

/* No allocation: fills x[f->n]; derived columns are computed from v unless v gives them, and are NaN
 * where they have no finite value. */
void features_encode_job(const struct features *f, const struct job_values *v, double *x);

/* Does x lie outside the training range, is it missing where training had values, or there where training
 * had none? */
bool feature_is_outside(const struct feature *f, double x);
/* The first feature that is; -1: none. */
int features_out_of_range(const struct features *f, const double *x);
static inline bool features_extrapolated(const struct features *f, const double *x)
{
	return features_out_of_range(f, x) >= 0;
}

#endif
