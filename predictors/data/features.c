/* Encoding: tables for training, one job for a decision. features_encode_job() and
 * features_out_of_range() are on the decision path: no allocation, names resolved beforehand. */
#include "predictors/data/features.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

void features_free(struct features *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		free(f->feature[i].name);
		free(f->feature[i].category);
		free(f->feature[i].category_zero);
	}
	free(f->feature);
	free(f);
}

/* ---- encoding ---- */

/* How many features, from `first` on, stand for the same column. */
static size_t group_size(const struct features *f, size_t first)
{
	size_t end = first + 1;

	while (end < f->n && f->feature[end].source == f->feature[first].source)
		end++;
	return end - first;
}

/* Fills the `n` features of one category column. */
static void encode_category(const struct feature *feature, size_t n, const char *value, double *x)
{
	bool known = false;

	if (feature->category_zero) { /* one or two values: one feature */
		if (value && !strcmp(value, feature->category_zero))
			x[0] = 0.0;
		else if (value && feature->category && !strcmp(value, feature->category))
			x[0] = 1.0;
		else
			x[0] = NAN;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		bool is = value && !strcmp(value, feature[i].category);

		x[i] = is ? 1.0 : 0.0;
		known |= is;
	}
	for (size_t i = 0; i < n && !known; i++)
		x[i] = NAN;
}

void features_encode_job(const struct features *f, const struct job_values *v, double *x)
{
	const struct schema *s = f->schema;
	double copy[SCHEMA_MAX_COLUMNS];
	const double *number = v->number;

	if (f->derives) {
		memcpy(copy, v->number, (s->n_columns + s->n_derived) * sizeof *copy);
		for (size_t k = 0; k < s->n_derived; k++) {
			double *d = &copy[s->n_columns + k];

			if (!isnan(*d))
				continue;
			*d = schema_derive(&s->derived[k], copy);
			if (isinf(*d))
				*d = NAN;
		}
		number = copy;
	}
	for (size_t i = 0; i < f->n;) {
		const struct feature *feature = &f->feature[i];
		size_t n = 1;

		if (feature_is_category(feature)) {
			n = group_size(f, i);
			encode_category(feature, n, v->category[feature->source], &x[i]);
		} else {
			x[i] = number[feature->source];
		}
		i += n;
	}
	if (f->other >= 0 && isnan(x[f->other]))
		x[f->other] = 0.0;
}

bool features_fill_constant(const struct features *f, size_t column, struct job_values *v)
{
	const struct feature *only = NULL;

	for (size_t i = 0; i < f->n; i++) {
		if (f->feature[i].source != column)
			continue;
		if (only)
			return false;
		only = &f->feature[i];
	}
	if (!only || only->category || !(only->min == only->max))
		return false;
	v->category[column] = only->category_zero;
	if (!only->category_zero)
		v->number[column] = only->min;
	return true;
}

bool feature_is_outside(const struct feature *f, double x)
{
	/* a missing x compares false with both ends, and so does any x with ends that are NaN */
	return !(x >= f->min && x <= f->max) && !(isnan(x) && isnan(f->min));
}

int features_out_of_range(const struct features *f, const double *x)
{
	for (size_t i = 0; i < f->n; i++) {
		if (feature_is_outside(&f->feature[i], x[i]))
			return (int)i;
	}
	return -1;
}

int features_encode_table(const struct features *f, const struct table *t, double **out_x, struct err *err)
{
	size_t cells;
	double *x;

	assert(t->schema->n_columns == f->schema->n_columns && t->schema->n_derived == f->schema->n_derived);
	if (__builtin_mul_overflow(t->n_rows, f->n, &cells) || !(x = mem_array(cells, sizeof *x)))
		return err_fail(err, ERR_NOMEM, "%s: out of memory for %zu rows of %zu features", t->name,
				t->n_rows, f->n);
	for (size_t i = 0, n; i < f->n; i += n) {
		const struct feature *feature = &f->feature[i];
		const struct table_column *c = &t->column[feature->source];

		n = feature_is_category(feature) ? group_size(f, i) : 1;
		for (size_t r = 0; r < t->n_rows; r++) {
			if (feature_is_category(feature))
				encode_category(feature, n, c->present ? c->category[r] : NULL,
						&x[r * f->n + i]);
			else
				x[r * f->n + i] = c->present ? c->number[r] : NAN;
			if ((int)i == f->other && isnan(x[r * f->n + i]))
				x[r * f->n + i] = 0.0;
		}
	}
	*out_x = x;
	return 0;
}

/* ---- fitting ---- */

/* Appends an empty feature; NULL when out of memory or, with *out_full set, past the limit. */
static struct feature *feature_add(struct features *f, size_t *cap, size_t source, bool *out_full)
{
	void *p = f->feature;

	*out_full = f->n >= FEATURES_MAX;
	if (*out_full || mem_grow(&p, cap, f->n + 1, sizeof *f->feature))
		return NULL;
	f->feature = p;
	f->feature[f->n] = (struct feature){ .source = source, .min = NAN, .max = NAN };
	f->derives |= source >= f->schema->n_columns;
	return &f->feature[f->n++];
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The distinct values of a category column, in alphabetical order; borrowed from the table. */
static int distinct(const struct table *t, const struct table_column *c, char ***out, size_t *out_n,
		    struct err *err)
{
	char **value = mem_array(t->n_rows, sizeof *value);
	size_t n = 0, kept = 0;

	if (!value)
		return err_nomem(err, "the features");
	for (size_t r = 0; r < t->n_rows; r++)
		if (c->category[r])
			value[n++] = c->category[r];
	qsort(value, n, sizeof *value, compare_text);
	for (size_t i = 0; i < n; i++)
		if (!kept || strcmp(value[i], value[kept - 1]))
			value[kept++] = value[i];
	*out = value;
	*out_n = kept;
	return 0;
}

static char *one_hot_name(const char *column, const char *value)
{
	size_t size = strlen(column) + strlen(value) + 2;
	char *name = mem_alloc(size);

	if (name)
		snprintf(name, size, "%s=%s", column, value);
	return name;
}

static int fit_category(const struct table *t, size_t source, struct features *f, size_t *cap,
			struct err *err)
{
	const char *name = schema_source_name(t->schema, source);
	struct feature *feature;
	char **value = NULL;
	size_t n = 0;
	bool full = false;
	int rc = distinct(t, &t->column[source], &value, &n, err);

	if (rc || !n)
		goto out;
	if (n > 2 && n > FEATURES_MAX - f->n) {
		rc = err_fail(err, ERR_FORMAT,
			      "%s: column '%s' has %zu different values: at most %d features in all",
			      text_tail(t->name, 200), name, n, FEATURES_MAX);
		goto out;
	}
	for (size_t i = 0; i < (n > 2 ? n : 1); i++) {
		feature = feature_add(f, cap, source, &full);
		if (!feature)
			goto nomem;
		if (n > 2) {
			feature->name = one_hot_name(name, value[i]);
			feature->category = mem_strdup(value[i]);
		} else {
			feature->name = mem_strdup(name);
			feature->category_zero = mem_strdup(value[0]);
			if (n == 2)
				feature->category = mem_strdup(value[1]);
		}
		if (!feature->name || (n > 1 && !feature->category) || (n <= 2 && !feature->category_zero))
			goto nomem;
	}
out:
	free(value);
	return rc;
nomem:
	free(value);
	if (full)
		return err_fail(err, ERR_FORMAT, "%s: more than %d features", text_tail(t->name, 200),
				FEATURES_MAX);
	return err_nomem(err, "the features");
}

static int fit_number(const struct table *t, size_t source, struct features *f, size_t *cap, struct err *err)
{
	bool full = false;
	struct feature *feature = feature_add(f, cap, source, &full);

	if (full)
		return err_fail(err, ERR_FORMAT, "%s: more than %d features", text_tail(t->name, 200),
				FEATURES_MAX);
	if (!feature)
		return err_nomem(err, "the features");
	feature->name = mem_strdup(schema_source_name(t->schema, source));
	return feature->name ? 0 : err_nomem(err, "the features");
}

static int fit_ranges(struct features *f, const struct table *t, struct err *err)
{
	double *x;
	int rc = features_encode_table(f, t, &x, err);

	if (rc)
		return rc;
	for (size_t r = 0; r < t->n_rows; r++) {
		for (size_t i = 0; i < f->n; i++) { /* of NaN and a number these take the number */
			f->feature[i].min = fmin(f->feature[i].min, x[r * f->n + i]);
			f->feature[i].max = fmax(f->feature[i].max, x[r * f->n + i]);
		}
	}
	free(x);
	return 0;
}

static bool is_never_above_0(const struct table *t, size_t column)
{
	for (size_t r = 0; r < t->n_rows; r++)
		if (t->column[column].number[r] > 0.0)
			return false;
	return true;
}

static void find_other(struct features *f)
{
	int source = schema_role(f->schema, ROLE_OTHER);

	f->other = -1;
	for (size_t i = 0; i < f->n && source >= 0; i++)
		if (f->feature[i].source == (size_t)source)
			f->other = (int)i;
}

int features_forget_other(struct features *f, struct schema *s, bool in_table, struct err *err)
{
	int source = schema_role(s, ROLE_OTHER), rc;

	if (source < 0 || f->other >= 0)
		return 0;
	for (size_t i = 0; i < s->n_derived; i++)
		for (size_t k = 0; k < s->derived[i].n_of; k++)
			if (s->derived[i].source[k] == (size_t)source)
				return 0; /* it would take the derived column with it */
	rc = schema_drop(s, (size_t)source, in_table, err);
	for (size_t i = 0; i < f->n && !rc; i++)
		f->feature[i].source -= f->feature[i].source > (size_t)source;
	return rc;
}

int features_fit(const struct table *t, struct features **out, struct err *err)
{
	const struct schema *s = t->schema;
	struct features *f;
	size_t cap = 0;
	int rc = 0;

	if (!t->n_rows)
		return err_fail(err, ERR_NODATA, "%s: no rows%s", text_tail(t->name, 200),
				t->n_excluded ? " are left after the schema's exclusions" : "");
	f = mem_calloc(1, sizeof *f);
	if (!f)
		return err_nomem(err, "the features");
	f->schema = s;
	for (size_t i = 0; i < s->n_columns + s->n_derived && !rc; i++) {
		if (!t->column[i].present || ((int)i == schema_role(s, ROLE_OTHER) && is_never_above_0(t, i)))
			continue;
		rc = t->column[i].kind == COLUMN_CATEGORY ? fit_category(t, i, f, &cap, err)
							  : fit_number(t, i, f, &cap, err);
	}
	find_other(f);
	if (!rc)
		rc = fit_ranges(f, t, err);
	if (rc)
		features_free(f);
	else
		*out = f;
	return rc;
}

void feature_meaning_release(struct feature_meaning *m)
{
	free(m->name);
	free(m->factor);
	free(m->column);
	free(m->role);
	*m = (struct feature_meaning){ 0 };
}

int features_meaning(const struct features *f, struct feature_meaning *out, struct err *err)
{
	struct feature_meaning m = { .name = mem_array(f->n, sizeof *m.name),
				     .factor = mem_calloc(f->n, 1),
				     .role = mem_calloc(f->n, 1),
				     .column = mem_array(f->n, sizeof *m.column) };

	if (!m.name || !m.factor || !m.role || !m.column) {
		feature_meaning_release(&m);
		return err_nomem(err, "the features");
	}
	for (size_t i = 0; i < f->n; i++) {
		m.name[i] = f->feature[i].name;
		m.factor[i] = f->feature[i].source < f->schema->n_columns;
		m.column[i] = (uint16_t)f->feature[i].source;
		if (feature_is_category(&f->feature[i]))
			m.role[i] = ROLE_CATEGORY;
		for (int r = 1; r < N_ROLES && !m.role[i]; r++)
			if (schema_role(f->schema, (enum feature_role)r) == (int)f->feature[i].source)
				m.role[i] = (uint8_t)r;
	}
	*out = m;
	return 0;
}

/* ---- in a model file ---- */

int features_to_json(const struct features *f, struct json_writer *w)
{
	json_open(w, '[');
	for (size_t i = 0; i < f->n; i++) {
		const struct feature *feature = &f->feature[i];

		json_open(w, '{');
		json_kv_string(w, "name", feature->name);
		json_kv_string(w, "source", schema_source_name(f->schema, feature->source));
		if (feature->category)
			json_kv_string(w, "one", feature->category);
		if (feature->category_zero)
			json_kv_string(w, "zero", feature->category_zero);
		json_kv_number(w, "min", feature->min); /* NaN is written as null */
		json_kv_number(w, "max", feature->max);
		json_close(w, '}');
	}
	json_close(w, ']');
	return w->out->failed ? -ERR_NOMEM : 0;
}

/* Copies the string of a member; an absent one stays NULL. */
static int read_member(const char *where, const struct json *v, const char *key, char **out, struct err *err)
{
	const struct json *m = json_get(v, key);
	const char *text = json_string(m, NULL);

	if (!m)
		return 0;
	if (!text || !*text)
		return err_fail(err, ERR_FORMAT, "%s.%s: need a string", where, key);
	*out = mem_strdup(text);
	return *out ? 0 : err_nomem(err, "the features");
}

static int read_bound(const char *where, const struct json *v, const char *key, double *out, struct err *err)
{
	const struct json *m = json_get(v, key);

	if (json_type(m) != JSON_NUMBER && json_type(m) != JSON_NULL)
		return err_fail(err, ERR_FORMAT, "%s.%s: need a number or null", where, key);
	*out = json_number(m, NAN);
	return 0;
}

static int feature_from_json(const char *where, const struct json *v, const struct schema *s,
			     struct feature *out, struct err *err)
{
	static const char *const known[] = { "name", "source", "one", "zero", "min", "max", NULL };
	char *source = NULL;
	int at, rc;

	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: need an object", where);
	rc = json_known_keys(v, where, known, err);
	if (!rc)
		rc = read_member(where, v, "name", &out->name, err);
	if (!rc)
		rc = read_member(where, v, "source", &source, err);
	if (!rc)
		rc = read_member(where, v, "one", &out->category, err);
	if (!rc)
		rc = read_member(where, v, "zero", &out->category_zero, err);
	if (!rc)
		rc = read_bound(where, v, "min", &out->min, err);
	if (!rc)
		rc = read_bound(where, v, "max", &out->max, err);
	if (!rc && (!out->name || !source))
		rc = err_fail(err, ERR_FORMAT, "%s: need a name and a source", where);
	if (!rc && (isnan(out->min) != isnan(out->max) || out->min > out->max))
		rc = err_fail(err, ERR_FORMAT, "%s: range %g to %g", where, out->min, out->max);
	if (rc)
		goto out;
	at = schema_find_any(s, source);
	if (at < 0 || strcmp(schema_source_name(s, (size_t)at), source)) {
		rc = err_fail(err, ERR_FORMAT, "%s: source '%.*s' is not in the schema", where,
			      SCHEMA_MAX_NAME, source);
		goto out;
	}
	out->source = (size_t)at;
	if (feature_is_category(out) != (out->source < s->n_columns && s->column[at].kind == COLUMN_CATEGORY))
		rc = err_fail(err, ERR_FORMAT, "%s: '%s' is %s in the schema", where, source,
			      feature_is_category(out) ? "a number" : "a category");
out:
	free(source);
	return rc;
}

/* What features_fit() would never make must not come out of a file either: the encoder relies on it. */
static int check_groups(const char *name, const struct features *f, struct err *err)
{
	for (size_t i = 0, n; i < f->n; i += n) {
		const struct feature *first = &f->feature[i];

		n = group_size(f, i);
		if (i && first->source < f->feature[i - 1].source)
			return err_fail(err, ERR_FORMAT, "%s: features[%zu]: not in the schema's order", name,
					i);
		if (n == 1 && (!feature_is_category(first) || first->category_zero))
			continue;
		for (size_t k = 0; k < n; k++) {
			/* alphabetical order also says that no value appears twice */
			if (!first[k].category || first[k].category_zero ||
			    (k && strcmp(first[k - 1].category, first[k].category) >= 0))
				return err_fail(err, ERR_FORMAT,
						"%s: features[%zu]: '%.*s' is not one value of several", name,
						i + k, SCHEMA_MAX_NAME, first[k].name);
		}
	}
	return 0;
}

int features_from_json(const char *name, const struct json *v, const struct schema *schema,
		       struct features **out, struct err *err)
{
	struct features *f;
	size_t n = json_size(v), cap = 0;
	bool full = false;
	int rc = 0;

	if (json_type(v) != JSON_ARRAY || !n || n > FEATURES_MAX)
		return err_fail(err, ERR_FORMAT, "%s: features: need a list of 1 to %d", name, FEATURES_MAX);
	f = mem_calloc(1, sizeof *f);
	if (!f)
		return err_nomem(err, "the features");
	f->schema = schema;
	for (const struct json *e = json_first(v); e && !rc; e = json_next(e)) {
		struct feature *feature = feature_add(f, &cap, 0, &full);
		char where[64];

		snprintf(where, sizeof where, "features[%zu]", f->n - 1);
		rc = feature ? feature_from_json(where, e, schema, feature, err)
			     : err_nomem(err, "the features");
		if (rc && rc != -ERR_NOMEM)
			rc = err_prefix(err, "%s", name);
		else if (!rc)
			f->derives |= feature->source >= schema->n_columns;
	}
	find_other(f);
	if (!rc)
		rc = check_groups(name, f, err);
	if (rc)
		features_free(f);
	else
		*out = f;
	return rc;
}
