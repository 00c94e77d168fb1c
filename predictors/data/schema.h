/* The schema of an observation table: which columns there are, what they mean, what is derived from
 * them. From a JSON file or the built-in default (configs/schemas/default.json says the same).
 * Owned by the dataset layer; a model carries a copy of the schema it was trained under. */
#ifndef PREDICTORS_DATA_SCHEMA_H
#define PREDICTORS_DATA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "common/csv.h"
#include "common/err.h"
#include "common/json/json.h"
#include "predictors/data/dataset.h"

#define SCHEMA_MAX_COLUMNS 256          /* factors and derived columns together */
#define SCHEMA_MAX_NAME 128             /* bytes in a name or in a value of `exclude` */
#define SCHEMA_MAX_CANDIDATES 64
#define SCHEMA_MAX_FEW 16               /* aliases of one column, factors of one product */
#define SCHEMA_MAX_LIST 1024            /* exclude rules, ignored columns */
#define SCHEMA_GPUS_COLUMN "gpus"       /* the same for devices */
#define SCHEMA_OTHER_COLUMN "other_load" /* the column of other work, unless "roles" names another */
#define SCHEMA_MAX_BYTES ((size_t)1 << 20)

enum column_kind { COLUMN_NUMBER, COLUMN_CATEGORY };
enum derived_op { DERIVED_PRODUCT, DERIVED_INVERSE, DERIVED_LOG };

struct schema_column {
	char *name;
	enum column_kind kind;
	bool optional;          /* may be absent from a table */
	char **alias;           /* other names a table may use, e.g. "cpu" for "cpus" */
	size_t n_aliases;
};

struct schema_derived {
	char *name;             /* a table that has a column of this name overrides the derivation */
	enum derived_op op;
	char **of;              /* factors of a product; one column otherwise */
	size_t *source;         /* where they are: an index in column[], or n_columns + one in derived[] */
	size_t n_of;
};

struct schema_exclude {         /* rows whose `column` holds `value` are left out, if the column is there */
	char *column, *value;
};

struct schema {
	struct schema_column *column;    size_t n_columns;   /* the factors, in order */
	struct schema_derived *derived;  size_t n_derived;   /* from factors and from earlier ones of these */
	struct schema_exclude *exclude;  size_t n_excludes;
	char *decision;                  /* the column Postrider chooses, "batch" */
	double *candidate; size_t n_candidates; /* its allowed values, ascending; empty: those seen in
	                                         * training */
	char *time, *accuracy;           /* target columns; accuracy may be NULL */
	char **ignore; size_t n_ignores; /* columns known and not used: no notice about them */
	char *role[N_ROLES];             /* which column is the cpus, the jobs, ...; NULL: the one of that
	                                  * name */
	int role_at[N_ROLES];            /* see schema_role(); kept by what makes and changes a schema */
};

extern const char *const schema_role_name[N_ROLES];   /* "batch", "cpus", ... */
extern const char *const schema_kind_name[], *const schema_op_name[]; /* by their enums; NULL at the end */

int schema_default(struct schema **out, struct err *err);
/* For a table without a schema: the default one without `network` and `cpus` where the table has none; in a
 * table that `postrider profile` wrote all columns before the time are factors. */
int schema_for_table(const struct csv *csv, struct schema **out, struct err *err);
/* Did `postrider profile`, of this version or an earlier one, measure the table? */
bool schema_is_measured(const struct csv *csv);
int schema_read_file(const char *path, struct schema **out, struct err *err);
int schema_from_json(const char *name, const struct json *v, struct schema **out, struct err *err);
void schema_to_json(const struct schema *s, struct json_writer *w); /* reads back to the same schema */
void schema_free(struct schema *s);
int schema_clone(const struct schema *s, struct schema **out, struct err *err);
/* Takes a source (see below) out, and with it the derived columns that are made of it. ignore: a table may
 * still have the column, without a notice. After an error the schema can only be freed. */
int schema_drop(struct schema *s, size_t source, bool ignore, struct err *err);
/* A factor behind those there are. */
int schema_add(struct schema *s, const char *name, enum column_kind kind, struct err *err);
int schema_find(const struct schema *s, const char *column); /* index in column[], aliases too; -1 */
/* The same, or n_columns + the index in derived[] for a derived column. */
int schema_find_any(const struct schema *s, const char *column);

/* The source (as above) that plays a role: the decision is the batch, the others are what "roles" says or go
 * by their own names (other work: "other_load"); -1: none does, or it is a category. */
static inline int schema_role(const struct schema *s, enum feature_role role)
{
	return role > ROLE_NONE && role < N_ROLES ? s->role_at[role] : -1;
}
void schema_find_roles(struct schema *s); /* after a change of columns or roles */

/* The name of source i: column i, or derived column i - n_columns. Borrowed from the schema. */
static inline const char *schema_source_name(const struct schema *s, size_t i)
{
	return i < s->n_columns ? s->column[i].name : s->derived[i - s->n_columns].name;
}

static inline bool schema_is_category(const struct schema *s, size_t source)
{
	return source < s->n_columns && s->column[source].kind == COLUMN_CATEGORY;
}

/* The derived value from the numbers of all sources. NaN where an input is missing; infinite (never NaN)
 * where the operation has no finite answer: the logarithm of 0, the inverse of 0, a product too large. */
double schema_derive(const struct schema_derived *d, const double *number);

#endif
