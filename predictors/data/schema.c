/* Reading and checking schemas. The default is kept as the text a user would write, so it
 * passes the same checks as any file; configs/schemas/default.json holds the same. Read schema_use.c next. */
#include "predictors/data/schema.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

static const char default_text[] =
	"{\"columns\":["
	"{\"name\":\"network\",\"kind\":\"category\"},"
	"{\"name\":\"cpus\",\"kind\":\"number\",\"alias\":[\"cpu\"]},"
	"{\"name\":\"njobs\",\"kind\":\"number\"},"
	"{\"name\":\"batch\",\"kind\":\"number\"},"
	"{\"name\":\"epochs\",\"kind\":\"number\",\"optional\":true},"
	"{\"name\":\"samples\",\"kind\":\"number\",\"optional\":true}],"
	"\"derived\":[{\"name\":\"processes\",\"product\":[\"cpus\",\"njobs\"]}],"
	"\"decision\":\"batch\","
	"\"targets\":{\"time\":\"time_s\",\"accuracy\":\"accuracy\"},"
	"\"ignore\":[\"lr\",\"cpu_mean\",\"iowait_mean\",\"job_cpu_mean\",\"job_iowait_mean\",\"max_rss_mb\","
	"\"replication\",\"copy\",\"status\",\"started_at\"]}";

static int nomem(const char *name, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory for the schema", name);
}

/* Reads a name or a value: a string that is neither empty nor too long. `where` says which one. */
static int read_text(const char *name, const char *where, const struct json *v, char **out, struct err *err)
{
	const char *s = json_string(v, NULL);

	if (!s)
		return err_fail(err, ERR_FORMAT, "%s: %s: need a string", name, where);
	if (!*s || strlen(s) > SCHEMA_MAX_NAME)
		return err_fail(err, ERR_FORMAT, "%s: %s: '%.40s': need 1 to %d bytes", name, where, s,
				SCHEMA_MAX_NAME);
	*out = mem_strdup(s);
	return *out ? 0 : nomem(name, err);
}

/* Names we give columns ourselves must work in "name=value,name=value"; a table's own, stranger name
 * can be an alias. */
static int read_name(const char *name, const char *where, const struct json *v, char **out, struct err *err)
{
	int rc = read_text(name, where, v, out, err);

	if (rc)
		return rc;
	for (const char *p = *out; *p; p++)
		if (*p == ',' || *p == '=' || iscntrl((unsigned char)*p))
			return err_fail(
				err, ERR_FORMAT,
				"%s: %s: '%s': a name has no comma, '=' or control character; give the "
				"table's own name as an alias",
				name, where, *out);
	if (isspace((unsigned char)**out) || isspace((unsigned char)(*out)[strlen(*out) - 1]))
		return err_fail(err, ERR_FORMAT, "%s: %s: '%s': blank at the ends of a name", name, where,
				*out);
	return 0;
}

/* A list of strings; `where` names the list. */
static int read_list(const char *name, const char *where, const struct json *v, size_t max, char ***out,
		     size_t *out_n, struct err *err)
{
	size_t n = json_size(v);

	if (json_type(v) != JSON_ARRAY)
		return err_fail(err, ERR_FORMAT, "%s: %s: need a list of strings", name, where);
	if (n > max)
		return err_fail(err, ERR_FORMAT, "%s: %s: %zu entries, at most %zu", name, where, n, max);
	*out = mem_calloc(n, sizeof **out);
	if (!*out)
		return nomem(name, err);
	for (const struct json *e = json_first(v); e; e = json_next(e)) {
		int rc = read_text(name, where, e, &(*out)[*out_n], err);

		if (rc)
			return rc;
		++*out_n;
	}
	return 0;
}

static int read_column(const char *name, size_t index, const struct json *v, struct schema_column *c,
		       struct err *err)
{
	static const char *const known[] = { "name", "kind", "optional", "alias", NULL };
	const struct json *optional = json_get(v, "optional"), *alias = json_get(v, "alias");
	char where[SCHEMA_MAX_NAME + 32];
	const char *kind;
	int rc;

	snprintf(where, sizeof where, "columns[%zu]", index);
	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: %s: need an object", name, where);
	rc = json_known_keys(v, where, known, err);
	if (rc)
		return err_prefix(err, "%s", name);
	snprintf(where, sizeof where, "columns[%zu].name", index);
	rc = read_name(name, where, json_get(v, "name"), &c->name, err);
	if (rc)
		return rc;
	kind = json_string(json_get(v, "kind"), NULL);
	if (!kind || (strcmp(kind, "number") && strcmp(kind, "category")))
		return err_fail(err, ERR_FORMAT, "%s: column '%s': kind: need \"number\" or \"category\"",
				name, c->name);
	c->kind = strcmp(kind, "number") ? COLUMN_CATEGORY : COLUMN_NUMBER;
	if (optional && json_type(optional) != JSON_BOOL)
		return err_fail(err, ERR_FORMAT, "%s: column '%s': optional: need true or false", name,
				c->name);
	c->optional = json_bool(optional, false);
	if (!alias)
		return 0;
	snprintf(where, sizeof where, "column '%s': alias", c->name);
	return read_list(name, where, alias, SCHEMA_MAX_FEW, &c->alias, &c->n_aliases, err);
}

static int check_array(const char *name, const char *key, const struct json *v, size_t *out_n,
		       struct err *err)
{
	*out_n = json_size(v);
	if (json_type(v) != JSON_ARRAY)
		return err_fail(err, ERR_FORMAT, "%s: %s: need a list of objects", name, key);
	if (*out_n > SCHEMA_MAX_COLUMNS)
		return err_fail(err, ERR_FORMAT, "%s: %s: %zu columns, at most %d", name, key, *out_n,
				SCHEMA_MAX_COLUMNS);
	return 0;
}

static int read_columns(const char *name, const struct json *v, struct schema *s, struct err *err)
{
	size_t n;
	int rc;

	if (!v)
		return err_fail(err, ERR_FORMAT, "%s: no 'columns'", name);
	rc = check_array(name, "columns", v, &n, err);
	if (rc)
		return rc;
	s->column = mem_calloc(n, sizeof *s->column);
	if (!s->column)
		return nomem(name, err);
	for (const struct json *e = json_first(v); e && !rc; e = json_next(e)) {
		rc = read_column(name, s->n_columns, e, &s->column[s->n_columns], err);
		s->n_columns++; /* a half-read one is freed too */
	}
	return rc;
}

static int read_derived_one(const char *name, size_t index, const struct json *v, struct schema_derived *d,
			    struct err *err)
{
	static const char *const known[] = { "name", "product", "inverse", "log", NULL };
	const struct json *of = NULL;
	char where[SCHEMA_MAX_NAME + 32];
	int rc;

	snprintf(where, sizeof where, "derived[%zu]", index);
	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: %s: need an object", name, where);
	rc = json_known_keys(v, where, known, err);
	if (rc)
		return err_prefix(err, "%s", name);
	snprintf(where, sizeof where, "derived[%zu].name", index);
	rc = read_name(name, where, json_get(v, "name"), &d->name, err);
	if (rc)
		return rc;
	for (int op = 0; schema_op_name[op]; op++) {
		const struct json *found = json_get(v, schema_op_name[op]);

		if (found && of)
			return err_fail(err, ERR_FORMAT, "%s: derived column '%s': both %s and %s", name,
					d->name, schema_op_name[d->op], schema_op_name[op]);
		if (found) {
			of = found;
			d->op = (enum derived_op)op;
		}
	}
	if (!of)
		return err_fail(err, ERR_FORMAT, "%s: derived column '%s': need product, inverse or log",
				name, d->name);
	snprintf(where, sizeof where, "derived column '%s': %s", d->name, schema_op_name[d->op]);
	if (d->op == DERIVED_PRODUCT) {
		rc = read_list(name, where, of, SCHEMA_MAX_FEW, &d->of, &d->n_of, err);
		if (!rc && !d->n_of)
			rc = err_fail(err, ERR_FORMAT, "%s: %s: of nothing", name, where);
		return rc;
	}
	d->of = mem_calloc(1, sizeof *d->of);
	if (!d->of)
		return nomem(name, err);
	rc = read_text(name, where, of, &d->of[0], err);
	d->n_of = d->of[0] ? 1 : 0;
	return rc;
}

static int read_derived(const char *name, const struct json *v, struct schema *s, struct err *err)
{
	size_t n;
	int rc;

	if (!v)
		return 0;
	rc = check_array(name, "derived", v, &n, err);
	if (rc)
		return rc;
	if (s->n_columns + n > SCHEMA_MAX_COLUMNS)
		return err_fail(err, ERR_FORMAT, "%s: %zu columns and %zu derived ones: at most %d together",
				name, s->n_columns, n, SCHEMA_MAX_COLUMNS);
	s->derived = mem_calloc(n, sizeof *s->derived);
	if (!s->derived)
		return nomem(name, err);
	for (const struct json *e = json_first(v); e && !rc; e = json_next(e)) {
		rc = read_derived_one(name, s->n_derived, e, &s->derived[s->n_derived], err);
		s->n_derived++;
	}
	return rc;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int read_candidates(const char *name, const struct json *v, struct schema *s, struct err *err)
{
	size_t n = json_size(v);

	if (!v)
		return 0;
	if (json_type(v) != JSON_ARRAY)
		return err_fail(err, ERR_FORMAT, "%s: candidates: need a list of numbers", name);
	if (n > SCHEMA_MAX_CANDIDATES)
		return err_fail(err, ERR_FORMAT, "%s: candidates: %zu values, at most %d", name, n,
				SCHEMA_MAX_CANDIDATES);
	s->candidate = mem_array(n, sizeof *s->candidate);
	if (!s->candidate)
		return nomem(name, err);
	for (const struct json *e = json_first(v); e; e = json_next(e)) {
		if (json_type(e) != JSON_NUMBER)
			return err_fail(err, ERR_FORMAT, "%s: candidates[%zu]: need a number", name,
					s->n_candidates);
		s->candidate[s->n_candidates++] = json_number(e, NAN);
	}
	qsort(s->candidate, s->n_candidates, sizeof *s->candidate, compare);
	for (size_t i = 1; i < s->n_candidates; i++)
		if (s->candidate[i] == s->candidate[i - 1])
			return err_fail(err, ERR_FORMAT, "%s: candidates: %g is there twice", name,
					s->candidate[i]);
	return 0;
}

static int read_targets(const char *name, const struct json *v, struct schema *s, struct err *err)
{
	static const char *const known[] = { "time", "accuracy", NULL };
	const struct json *accuracy = json_get(v, "accuracy");
	int rc;

	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: targets: need an object such as {\"time\":\"time_s\"}",
				name);
	rc = json_known_keys(v, "targets", known, err);
	if (rc)
		return err_prefix(err, "%s", name);
	rc = read_text(name, "targets.time", json_get(v, "time"), &s->time, err);
	if (!rc && accuracy)
		rc = read_text(name, "targets.accuracy", accuracy, &s->accuracy, err);
	return rc;
}

static int add_exclude(const char *name, const char *column, const struct json *value, struct schema *s,
		       struct err *err)
{
	struct schema_exclude *e = &s->exclude[s->n_excludes++];
	char where[SCHEMA_MAX_NAME + 32];

	snprintf(where, sizeof where, "exclude '%.*s'", SCHEMA_MAX_NAME, column);
	e->column = mem_strdup(column);
	if (!e->column)
		return nomem(name, err);
	return read_text(name, where, value, &e->value, err);
}

static int read_exclude(const char *name, const struct json *v, struct schema *s, struct err *err)
{
	size_t n = 0;
	int rc = 0;

	if (!v)
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: exclude: need an object such as {\"suspect\":\"yes\"}",
				name);
	for (const struct json *m = json_first(v); m; m = json_next(m)) {
		if (!*json_key(m) || strlen(json_key(m)) > SCHEMA_MAX_NAME)
			return err_fail(err, ERR_FORMAT, "%s: exclude: column '%.40s': need 1 to %d bytes",
					name, json_key(m), SCHEMA_MAX_NAME);
		n += json_type(m) == JSON_ARRAY ? json_size(m) : 1;
	}
	if (n > SCHEMA_MAX_LIST)
		return err_fail(err, ERR_FORMAT, "%s: exclude: %zu rules, at most %d", name, n,
				SCHEMA_MAX_LIST);
	s->exclude = mem_calloc(n, sizeof *s->exclude);
	if (!s->exclude)
		return nomem(name, err);
	for (const struct json *m = json_first(v); m && !rc; m = json_next(m)) {
		if (json_type(m) != JSON_ARRAY) {
			rc = add_exclude(name, json_key(m), m, s, err);
			continue;
		}
		for (const struct json *e = json_first(m); e && !rc; e = json_next(e))
			rc = add_exclude(name, json_key(m), e, s, err);
	}
	return rc;
}

/* ---- what must hold between the parts ---- */

/* Where a name is already taken, for the message; NULL: it is free. Looks at the first n_columns factors
 * with their aliases, the first n_derived derived columns. */
static const char *taken_by(const struct schema *s, const char *name, size_t n_columns, size_t n_derived)
{
	for (size_t i = 0; i < n_columns; i++) {
		if (!strcmp(s->column[i].name, name))
			return "a column";
		for (size_t k = 0; k < s->column[i].n_aliases; k++)
			if (!strcmp(s->column[i].alias[k], name))
				return "an alias";
	}
	for (size_t i = 0; i < n_derived; i++)
		if (!strcmp(s->derived[i].name, name))
			return "a derived column";
	return NULL;
}

static int check_names(const char *name, const struct schema *s, struct err *err)
{
	const char *taken;

	for (size_t i = 0; i < s->n_columns; i++) {
		const struct schema_column *c = &s->column[i];

		taken = taken_by(s, c->name, i, 0);
		if (taken)
			return err_fail(err, ERR_FORMAT, "%s: column '%s': there is %s of that name already",
					name, c->name, taken);
		for (size_t k = 0; k < c->n_aliases; k++) {
			taken = taken_by(s, c->alias[k], i, 0);
			for (size_t j = 0; j < k && !taken; j++)
				taken = strcmp(c->alias[j], c->alias[k]) ? NULL : "an alias";
			if (!strcmp(c->alias[k], c->name))
				taken = "a column";
			if (taken)
				return err_fail(
					err, ERR_FORMAT,
					"%s: column '%s': alias '%s': there is %s of that name already", name,
					c->name, c->alias[k], taken);
		}
	}
	for (size_t i = 0; i < s->n_derived; i++) {
		taken = taken_by(s, s->derived[i].name, s->n_columns, i);
		if (taken)
			return err_fail(err, ERR_FORMAT,
					"%s: derived column '%s': there is %s of that name already", name,
					s->derived[i].name, taken);
	}
	for (int t = 0; t < 2; t++) {
		const char *target = t ? s->accuracy : s->time;

		taken = target ? taken_by(s, target, s->n_columns, s->n_derived) : NULL;
		if (taken)
			return err_fail(err, ERR_FORMAT,
					"%s: targets.%s: '%s' is %s too: a target cannot be a factor", name,
					t ? "accuracy" : "time", target, taken);
	}
	if (s->accuracy && !strcmp(s->time, s->accuracy))
		return err_fail(err, ERR_FORMAT, "%s: targets: '%s' is both time and accuracy", name,
				s->time);
	for (size_t i = 0; i < s->n_ignores; i++) {
		taken = taken_by(s, s->ignore[i], s->n_columns, s->n_derived);
		if (!strcmp(s->ignore[i], s->time) || (s->accuracy && !strcmp(s->ignore[i], s->accuracy)))
			taken = "a target";
		for (size_t k = 0; k < i && !taken; k++)
			taken = strcmp(s->ignore[k], s->ignore[i]) ? NULL : "in the list twice";
		if (taken)
			return err_fail(err, ERR_FORMAT, "%s: ignore: '%s' is %s", name, s->ignore[i], taken);
	}
	for (size_t i = 0; i < s->n_excludes; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(s->exclude[i].column, s->exclude[k].column) &&
			    !strcmp(s->exclude[i].value, s->exclude[k].value))
				return err_fail(err, ERR_FORMAT,
						"%s: exclude '%s': value '%s' is there twice", name,
						s->exclude[i].column, s->exclude[i].value);
	return 0;
}

/* "; did you mean 'x'?" or nothing. */
static void hint(const struct schema *s, const char *wrong, size_t n_derived, char *buf, size_t size)
{
	const char *known[SCHEMA_MAX_COLUMNS + 1] = { 0 };
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < s->n_columns; i++)
		known[n++] = s->column[i].name;
	for (size_t i = 0; i < n_derived; i++)
		known[n++] = s->derived[i].name;
	near = text_nearest(wrong, known);
	buf[0] = '\0';
	if (near)
		snprintf(buf, size, "; did you mean '%s'?", near);
}

/* Finds the inputs of derived column `index` among the factors and the derived columns before it. */
static int resolve(const char *name, struct schema *s, size_t index, struct err *err)
{
	struct schema_derived *d = &s->derived[index];
	char near[SCHEMA_MAX_NAME + 32];

	d->source = mem_array(d->n_of, sizeof *d->source);
	if (!d->source)
		return nomem(name, err);
	for (size_t k = 0; k < d->n_of; k++) {
		int found = -1;

		for (size_t i = 0; i < s->n_columns && found < 0; i++)
			if (!strcmp(s->column[i].name, d->of[k]))
				found = (int)i;
		for (size_t i = 0; i < index && found < 0; i++)
			if (!strcmp(s->derived[i].name, d->of[k]))
				found = (int)(s->n_columns + i);
		if (found < 0) {
			hint(s, d->of[k], index, near, sizeof near);
			return err_fail(err, ERR_FORMAT,
					"%s: derived column '%s': %s of '%s', which is no column before it%s",
					name, d->name, schema_op_name[d->op], d->of[k], near);
		}
		if ((size_t)found < s->n_columns && s->column[found].kind == COLUMN_CATEGORY)
			return err_fail(err, ERR_FORMAT,
					"%s: derived column '%s': %s of '%s', which is a category", name,
					d->name, schema_op_name[d->op], d->of[k]);
		d->source[k] = (size_t)found;
	}
	return 0;
}

static int check_decision(const char *name, const struct schema *s, struct err *err)
{
	char near[SCHEMA_MAX_NAME + 32];

	for (size_t i = 0; i < s->n_columns; i++) {
		const struct schema_column *c = &s->column[i];

		if (strcmp(c->name, s->decision))
			continue;
		if (c->kind != COLUMN_NUMBER)
			return err_fail(err, ERR_FORMAT, "%s: decision '%s' is a category: need a number",
					name, s->decision);
		if (c->optional)
			return err_fail(err, ERR_FORMAT,
					"%s: decision '%s' is optional: every table must have it", name,
					s->decision);
		return 0;
	}
	hint(s, s->decision, 0, near, sizeof near);
	return err_fail(err, ERR_FORMAT, "%s: decision '%s' is not among the columns%s", name, s->decision,
			near);
}

/* {"cpus": "executors"}: the columns must be numbers, factors or derived. The batch is the decision. */
static int read_roles(const char *name, const struct json *v, struct schema *s, struct err *err)
{
	static const char *const known[] = { "cpus", "njobs", "processes", "epochs", "samples", NULL };
	char near[SCHEMA_MAX_NAME + 32], where[32];
	int rc;

	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: roles: need an object such as {\"cpus\":\"executors\"}",
				name);
	rc = json_known_keys(v, "roles", known, err);
	if (rc)
		return err_prefix(err, "%s", name);
	for (int r = ROLE_CPUS; r < N_ROLES && !rc; r++) {
		const struct json *column = json_get(v, schema_role_name[r]);
		int at;

		if (!column)
			continue;
		snprintf(where, sizeof where, "roles.%s", schema_role_name[r]);
		rc = read_text(name, where, column, &s->role[r], err);
		if (rc)
			return rc;
		at = schema_find_any(s, s->role[r]);
		if (at < 0) {
			hint(s, s->role[r], s->n_derived, near, sizeof near);
			return err_fail(err, ERR_FORMAT, "%s: %s: '%s' is not among the columns%s", name,
					where, s->role[r], near);
		}
		if ((size_t)at < s->n_columns && s->column[at].kind == COLUMN_CATEGORY)
			return err_fail(err, ERR_FORMAT, "%s: %s: '%s' is a category: need a number", name,
					where, s->role[r]);
	}
	return rc;
}

int schema_from_json(const char *name, const struct json *v, struct schema **out, struct err *err)
{
	static const char *const known[] = { "columns", "derived", "decision", "candidates", "targets",
					     "exclude", "ignore",  "roles",    NULL };
	struct schema *s;
	const struct json *ignore = json_get(v, "ignore"), *roles = json_get(v, "roles");
	int rc;

	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: a schema is an object", name);
	rc = json_known_keys(v, "schema", known, err);
	if (rc)
		return err_prefix(err, "%s", name);
	s = mem_calloc(1, sizeof *s);
	if (!s)
		return nomem(name, err);
	rc = read_columns(name, json_get(v, "columns"), s, err);
	if (!rc)
		rc = read_derived(name, json_get(v, "derived"), s, err);
	if (!rc)
		rc = read_text(name, "decision", json_get(v, "decision"), &s->decision, err);
	if (!rc)
		rc = read_candidates(name, json_get(v, "candidates"), s, err);
	if (!rc)
		rc = read_targets(name, json_get(v, "targets"), s, err);
	if (!rc)
		rc = read_exclude(name, json_get(v, "exclude"), s, err);
	if (!rc && ignore)
		rc = read_list(name, "ignore", ignore, SCHEMA_MAX_LIST, &s->ignore, &s->n_ignores, err);
	if (!rc)
		rc = check_names(name, s, err);
	for (size_t i = 0; i < s->n_derived && !rc; i++)
		rc = resolve(name, s, i, err);
	if (!rc)
		rc = check_decision(name, s, err);
	if (!rc && roles)
		rc = read_roles(name, roles, s, err);
	if (rc)
		schema_free(s);
	else
		*out = s;
	return rc;
}

int schema_default(struct schema **out, struct err *err)
{
	struct json *v;
	int rc = json_parse("the default schema", default_text, strlen(default_text), &v, err);

	if (rc)
		return rc;
	rc = schema_from_json("the default schema", v, out, err);
	json_free(v);
	return rc;
}

int schema_read_file(const char *path, struct schema **out, struct err *err)
{
	struct json *v;
	int rc = json_read_file(path, SCHEMA_MAX_BYTES, &v, err);

	if (rc)
		return rc;
	rc = schema_from_json(path, v, out, err);
	json_free(v);
	return rc;
}
