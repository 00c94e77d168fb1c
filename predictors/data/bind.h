/* The values of one job under a schema: the one place where names and texts meet a schema's columns. The
 * command line, traces and the daemon's parameters all come through here; features.h turns the result into
 * what a model sees. */
#ifndef PREDICTORS_DATA_BIND_H
#define PREDICTORS_DATA_BIND_H

#include "predictors/data/schema.h"

/* A source is an index in the schema's columns, or n_columns + one in its derived columns
 * (schema_find_any()). */
struct job_values {
	double *number;         /* by source; NaN where not given */
	const char **category;  /* by source; NULL where not given */
	struct job_text *text;  /* copies of what job_values_parse() read: `category` points into them */
};
/* Nothing is given yet. Without a schema (NULL) there is nothing to give. */
int job_values_init(struct job_values *v, const struct schema *s, struct err *err);
void job_values_reset(struct job_values *v, const struct schema *s); /* nothing is given any more */
void job_values_release(struct job_values *v);

/* No allocation: a category takes the text (borrowed), a number the number. A source below 0 is left out. */
void job_values_put(struct job_values *v, const struct schema *s, int source, const char *text,
                    double number);
/* The number of the column that plays a role, if one does. */
void job_values_put_role(struct job_values *v, const struct schema *s, enum feature_role role, double number);
/* The same from text: ERR_ARG "column cpus: 'x' is not a number". Names that the schema does not know and
 * texts that are NULL are left out. The texts of categories are borrowed. */
int job_values_bind(struct job_values *v, const struct schema *s, const char *const *name,
                    const char *const *text, size_t n, struct err *err);
/* "network=lenet5,cpus=4": factors, their aliases and derived columns. Unknown names and bad numbers are
 * ERR_ARG naming the nearest column, names given twice and empty values are ERR_ARG too; v is then
 * unchanged. A second text adds to the first and wins over it. */
int job_values_parse(struct job_values *v, const struct schema *s, const char *text, struct err *err);

static inline bool job_values_given(const struct job_values *v, size_t source)
{
	return v->number[source] == v->number[source] || v->category[source];
}

#endif
