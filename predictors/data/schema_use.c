/* A schema in use: finding its columns and roles, deriving values, and writing it back as JSON. Read table.c
 * next. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/data/schema.h"

const char *const schema_kind_name[] = { "number", "category", NULL }; /* enum column_kind */
const char *const schema_role_name[N_ROLES] = {
	[ROLE_BATCH] = "batch",   [ROLE_CPUS] = "cpus",
	[ROLE_NJOBS] = "njobs",   [ROLE_PROCESSES] = "processes",
	[ROLE_EPOCHS] = "epochs", [ROLE_SAMPLES] = "samples",
	[ROLE_OTHER] = "other",   [ROLE_DEVICES] = SCHEMA_GPUS_COLUMN
};
const char *const schema_op_name[] = { "product", "inverse", "log", NULL }; /* enum derived_op */

static void put_list(struct json_writer *w, const char *key, char *const *item, size_t n)
{
	json_kv_open(w, key, '[');
	for (size_t i = 0; i < n; i++)
		json_put_string(w, item[i]);
	json_close(w, ']');
}

static void put_excludes(const struct schema *s, struct json_writer *w)
{
	json_kv_open(w, "exclude", '{');
	/* the rules of one column follow each other */
	for (size_t i = 0, end; i < s->n_excludes; i = end) {
		for (end = i + 1; end < s->n_excludes; end++)
			if (strcmp(s->exclude[end].column, s->exclude[i].column))
				break;
		json_put_key(w, s->exclude[i].column);
		if (end == i + 1) {
			json_put_string(w, s->exclude[i].value);
			continue;
		}
		json_open(w, '[');
		for (size_t k = i; k < end; k++)
			json_put_string(w, s->exclude[k].value);
		json_close(w, ']');
	}
	json_close(w, '}');
}

static void put_roles(const struct schema *s, struct json_writer *w)
{
	bool any = false;

	for (int r = 0; r < N_ROLES; r++)
		any |= s->role[r] != NULL;
	if (!any)
		return;
	json_kv_open(w, "roles", '{');
	for (int r = 0; r < N_ROLES; r++)
		if (s->role[r])
			json_kv_string(w, schema_role_name[r], s->role[r]);
	json_close(w, '}');
}

void schema_to_json(const struct schema *s, struct json_writer *w)
{
	json_open(w, '{');
	json_kv_open(w, "columns", '[');
	for (size_t i = 0; i < s->n_columns; i++) {
		const struct schema_column *c = &s->column[i];

		json_open(w, '{');
		json_kv_string(w, "name", c->name);
		json_kv_string(w, "kind", schema_kind_name[c->kind]);
		if (c->optional)
			json_kv_bool(w, "optional", true);
		if (c->n_aliases)
			put_list(w, "alias", c->alias, c->n_aliases);
		json_close(w, '}');
	}
	json_close(w, ']');
	if (s->n_derived) {
		json_kv_open(w, "derived", '[');
		for (size_t i = 0; i < s->n_derived; i++) {
			const struct schema_derived *d = &s->derived[i];

			json_open(w, '{');
			json_kv_string(w, "name", d->name);
			if (d->op == DERIVED_PRODUCT)
				put_list(w, schema_op_name[d->op], d->of, d->n_of);
			else
				json_kv_string(w, schema_op_name[d->op], d->of[0]);
			json_close(w, '}');
		}
		json_close(w, ']');
	}
	json_kv_string(w, "decision", s->decision);
	if (s->n_candidates) {
		json_kv_open(w, "candidates", '[');
		for (size_t i = 0; i < s->n_candidates; i++)
			json_put_number(w, s->candidate[i]);
		json_close(w, ']');
	}
	json_kv_open(w, "targets", '{');
	json_kv_string(w, "time", s->time);
	if (s->accuracy)
		json_kv_string(w, "accuracy", s->accuracy);
	json_close(w, '}');
	if (s->n_excludes)
		put_excludes(s, w);
	if (s->n_ignores)
		put_list(w, "ignore", s->ignore, s->n_ignores);
	put_roles(s, w);
	json_close(w, '}');
}

static void free_list(char **item, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(item[i]);
	free(item);
}

void schema_free(struct schema *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_columns; i++) {
		free(s->column[i].name);
		free_list(s->column[i].alias, s->column[i].n_aliases);
	}
	for (size_t i = 0; i < s->n_derived; i++) {
		free(s->derived[i].name);
		free(s->derived[i].source);
		free_list(s->derived[i].of, s->derived[i].n_of);
	}
	for (size_t i = 0; i < s->n_excludes; i++) {
		free(s->exclude[i].column);
		free(s->exclude[i].value);
	}
	free_list(s->ignore, s->n_ignores);
	for (int r = 0; r < N_ROLES; r++)
		free(s->role[r]);
	free(s->column);
	free(s->derived);
	free(s->exclude);
	free(s->decision);
	free(s->candidate);
	free(s->time);
	free(s->accuracy);
	free(s);
}

int schema_find(const struct schema *s, const char *column)
{
	for (size_t i = 0; i < s->n_columns; i++) {
		if (!strcmp(s->column[i].name, column))
			return (int)i;
		for (size_t k = 0; k < s->column[i].n_aliases; k++)
			if (!strcmp(s->column[i].alias[k], column))
				return (int)i;
	}
	return -1;
}

int schema_find_any(const struct schema *s, const char *column)
{
	int found = schema_find(s, column);

	for (size_t i = 0; i < s->n_derived && found < 0; i++)
		if (!strcmp(s->derived[i].name, column))
			found = (int)(s->n_columns + i);
	return found;
}

static int find_role(const struct schema *s, enum feature_role role)
{
	const char *column = role == ROLE_BATCH   ? s->decision
			     : s->role[role]      ? s->role[role]
			     : role == ROLE_OTHER ? SCHEMA_OTHER_COLUMN
						  : schema_role_name[role];
	int at = schema_find_any(s, column);

	return at >= 0 && schema_is_category(s, (size_t)at) ? -1 : at;
}

void schema_find_roles(struct schema *s)
{
	for (int r = 0; r < N_ROLES; r++)
		s->role_at[r] = r == ROLE_NONE ? -1 : find_role(s, (enum feature_role)r);
}

double schema_derive(const struct schema_derived *d, const double *number)
{
	double v = number[d->source[0]];

	for (size_t k = 1; k < d->n_of; k++) {
		double factor = number[d->source[k]];

		if (isnan(factor))
			return NAN;
		v *= factor;
		if (isinf(v))
			/* stop here: times a later 0 it would be NaN, which means missing. But a later input
			 * that is missing comes first. */
			for (k++; k < d->n_of; k++)
				if (isnan(number[d->source[k]]))
					return NAN;
	}
	if (isnan(v))
		return NAN;
	switch (d->op) {
	case DERIVED_PRODUCT: return v;
	case DERIVED_INVERSE: return 1.0 / v;
	case DERIVED_LOG: return v > 0.0 ? log(v) : -INFINITY;
	}
	return NAN;
}
