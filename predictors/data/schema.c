/* Reading and checking schemas. The default is kept as the text a user would write, so it
 * passes the same checks as any file; configs/schemas/default.json holds the same. Read schema_use.c next. */
#include "predictors/data/schema.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/fields.h"
#include "common/mem.h"
#include "common/text/text.h"

static const char default_text[] =
	"{\"columns\":["
	"{\"name\":\"network\",\"kind\":\"category\"},"
	"{\"name\":\"cpus\",\"kind\":\"number\",\"alias\":[\"cpu\"]},"
	"{\"name\":\"njobs\",\"kind\":\"number\"},"
	"{\"name\":\"batch\",\"kind\":\"number\"},"
	"{\"name\":\"epochs\",\"kind\":\"number\",\"optional\":true},"
	"{\"name\":\"samples\",\"kind\":\"number\",\"optional\":true},"
	"{\"name\":\"" SCHEMA_OTHER_COLUMN "\",\"kind\":\"number\",\"optional\":true}],"
	"\"derived\":[{\"name\":\"processes\",\"product\":[\"cpus\",\"njobs\"]}],"
	"\"decision\":\"batch\","
	"\"targets\":{\"time\":\"time_s\",\"accuracy\":\"accuracy\"},"
	"\"ignore\":[\"lr\",\"cpu_mean\",\"iowait_mean\",\"job_cpu_mean\",\"job_iowait_mean\",\"max_rss_mb\","
	"\"replication\",\"copy\",\"status\",\"started_at\"]}";

static int nomem(const char *name, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory for the schema", name);
}

/* ---- the parts ---- */

/* A name or a value. A table's own name may hold anything, so this is less strict than field_text(). */
static void read_text(struct fields *f, const char *key, const struct json *v, char **out)
{
	const char *s = json_string(v, NULL);

	if (!s)
		fields_fail(f, ERR_FORMAT, key, "must be a string");
	else if (!*s || strlen(s) > SCHEMA_MAX_NAME)
		fields_fail(f, ERR_FORMAT, key, "'%.40s': need 1 to %d bytes", s, SCHEMA_MAX_NAME);
	else if (!f->rc && !(*out = mem_strdup(s)))
		fields_nomem(f, key);
}

/* Names we give columns ourselves must work in "name=value,name=value"; a table's own, stranger name
 * can be an alias. */
static void read_name(struct fields *f, char **out)
{
	size_t len;

	read_text(f, "name", fields_get(f, "name"), out);
	if (f->rc)
		return;
	len = strlen(*out);
	for (const char *p = *out; *p; p++) {
		if (*p == ',' || *p == '=' || iscntrl((unsigned char)*p))
			fields_fail(
				f, ERR_FORMAT, "name",
				"'%s': a name has no comma, '=' or control character; give the table's own "
				"name as an alias",
				*out);
	}
	if (isspace((unsigned char)**out) || isspace((unsigned char)(*out)[len - 1]))
		fields_fail(f, ERR_FORMAT, "name", "'%s': blank at the ends of a name", *out);
}

/* A list of strings. */
static void read_list(struct fields *f, const char *key, size_t min, size_t max, char ***out, size_t *out_n)
{
	const struct json *list = fields_list(f, key, min, max);
	char place[FIELDS_MAX_KEY];

	if (!list)
		return;
	*out = mem_calloc(json_size(list), sizeof **out);
	if (!*out)
		fields_nomem(f, key);
	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		read_text(f, fields_element(key, *out_n, place), e, &(*out)[*out_n]);
		*out_n += !f->rc;
	}
}

static void read_column(struct fields *f, struct schema_column *c)
{
	int kind = -1;

	read_name(f, &c->name);
	fields_need(f, "kind");
	field_choice(f, "kind", schema_kind_name, &kind);
	c->kind = (enum column_kind)kind;
	field_bool(f, "optional", &c->optional);
	read_list(f, "alias", 0, SCHEMA_MAX_FEW, &c->alias, &c->n_aliases);
}

static void read_columns(struct fields *f, struct schema *s)
{
	static const char *const known[] = { "name", "kind", "optional", "alias", NULL };
	const struct json *list = fields_need(f, "columns") ? fields_list(f, "columns", 0, SCHEMA_MAX_COLUMNS)
							    : NULL;
	char place[FIELDS_MAX_KEY];
	struct fields one;

	s->column = list ? mem_calloc(json_size(list), sizeof *s->column) : NULL;
	if (!s->column)
		fields_nomem(f, "columns");
	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		if (!fields_open_value(&one, f, fields_element("columns", s->n_columns, place), e, known))
			return;
		read_column(&one, &s->column[s->n_columns++]); /* a half-read one is freed too */
		fields_close(&one, f);
	}
}

static void read_derived_one(struct fields *f, struct schema_derived *d)
{
	const struct json *of = NULL;

	read_name(f, &d->name);
	for (int op = 0; schema_op_name[op]; op++) {
		const struct json *found = fields_get(f, schema_op_name[op]);

		if (found && of)
			fields_fail(f, ERR_FORMAT, "name", "'%s': both %s and %s", d->name,
				    schema_op_name[d->op], schema_op_name[op]);
		if (found) {
			of = found;
			d->op = (enum derived_op)op;
		}
	}
	if (!of)
		fields_fail(f, ERR_FORMAT, "name", "'%s': need product, inverse or log", d->name);
	if (f->rc)
		return;
	if (d->op == DERIVED_PRODUCT) {
		read_list(f, schema_op_name[d->op], 1, SCHEMA_MAX_FEW, &d->of, &d->n_of);
		return;
	}
	d->of = mem_calloc(1, sizeof *d->of);
	if (!d->of)
		fields_nomem(f, schema_op_name[d->op]);
	else
		read_text(f, schema_op_name[d->op], of, &d->of[0]);
	d->n_of = d->of && d->of[0] ? 1 : 0;
}

static void read_derived(struct fields *f, struct schema *s)
{
	static const char *const known[] = { "name", "product", "inverse", "log", NULL };
	const struct json *list = fields_list(f, "derived", 0, SCHEMA_MAX_COLUMNS);
	size_t n = json_size(list);
	char place[FIELDS_MAX_KEY];
	struct fields one;

	if (!list)
		return;
	if (s->n_columns + n > SCHEMA_MAX_COLUMNS)
		fields_fail(f, ERR_FORMAT, "derived", "%zu columns and %zu derived ones: at most %d together",
			    s->n_columns, n, SCHEMA_MAX_COLUMNS);
	s->derived = mem_calloc(n, sizeof *s->derived);
	if (!s->derived)
		fields_nomem(f, "derived");
	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		if (!fields_open_value(&one, f, fields_element("derived", s->n_derived, place), e, known))
			return;
		read_derived_one(&one, &s->derived[s->n_derived++]);
		fields_close(&one, f);
	}
}

static void read_candidates(struct fields *f, struct schema *s)
{
	static const struct text_limits any = { .min = -INFINITY, .max = INFINITY };
	const struct json *list = fields_get(f, "candidates");
	struct err why = { 0 };

	if (json_type(list) == JSON_ARRAY && !json_first(list))
		return;
	field_numbers(f, "candidates", &any, SCHEMA_MAX_CANDIDATES, &s->candidate, &s->n_candidates);
	if (text_distinct(s->candidate, s->n_candidates, &why))
		fields_fail(f, ERR_FORMAT, "candidates", "%s", why.text);
}

static void read_targets(struct fields *f, struct schema *s)
{
	static const char *const known[] = { "time", "accuracy", NULL };
	struct fields t;

	if (!fields_need(f, "targets") || !fields_open_member(&t, f, "targets", known))
		return;
	read_text(&t, "time", fields_get(&t, "time"), &s->time);
	if (fields_get(&t, "accuracy"))
		read_text(&t, "accuracy", fields_get(&t, "accuracy"), &s->accuracy);
	fields_close(&t, f);
}

static void add_exclude(struct fields *f, const char *column, const struct json *value, struct schema *s)
{
	struct schema_exclude *e = &s->exclude[s->n_excludes++];

	e->column = mem_strdup(column);
	if (!e->column)
		fields_nomem(f, column);
	read_text(f, column, value, &e->value);
}

static void read_exclude(struct fields *f, struct schema *s)
{
	struct fields x;
	size_t n = 0;

	if (!fields_open_member(&x, f, "exclude", NULL))
		return;
	for (const struct json *m = json_first(x.object); m; m = json_next(m)) {
		if (!*json_key(m) || strlen(json_key(m)) > SCHEMA_MAX_NAME)
			fields_fail(f, ERR_FORMAT, "exclude", "column '%.40s': need 1 to %d bytes",
				    json_key(m), SCHEMA_MAX_NAME);
		n += json_type(m) == JSON_ARRAY ? json_size(m) : 1;
	}
	if (n > SCHEMA_MAX_LIST)
		fields_fail(f, ERR_FORMAT, "exclude", "%zu rules, at most %d", n, SCHEMA_MAX_LIST);
	s->exclude = mem_calloc(n, sizeof *s->exclude);
	if (!s->exclude)
		fields_nomem(f, "exclude");
	fields_close(f, &x);
	for (const struct json *m = json_first(x.object); m && !x.rc; m = json_next(m)) {
		if (json_type(m) != JSON_ARRAY)
			add_exclude(&x, json_key(m), m, s);
		for (const struct json *e = json_type(m) == JSON_ARRAY ? json_first(m) : NULL; e && !x.rc;
		     e = json_next(e))
			add_exclude(&x, json_key(m), e, s);
	}
	fields_close(&x, f);
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
				return err_fail(err, ERR_FORMAT, "%s: exclude '%s': value '%s' appears twice",
						name, s->exclude[i].column, s->exclude[i].value);
	return 0;
}

/* "; did you mean 'x'?" or nothing. */
static const char *hint(const struct schema *s, const char *wrong, size_t n_derived, char *buf)
{
	const char *known[SCHEMA_MAX_COLUMNS + 1] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < s->n_columns; i++)
		known[n++] = s->column[i].name;
	for (size_t i = 0; i < n_derived; i++)
		known[n++] = s->derived[i].name;
	return text_hint(wrong, known, buf);
}

/* Finds the inputs of derived column `index` among the factors and the derived columns before it. */
static int resolve(const char *name, struct schema *s, size_t index, struct err *err)
{
	struct schema_derived *d = &s->derived[index];
	char near[TEXT_HINT];

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
		if (found < 0)
			return err_fail(
				err, ERR_FORMAT,
				"%s: derived column '%s': %s of '%s', which is not a column before it%s",
				name, d->name, schema_op_name[d->op], d->of[k],
				hint(s, d->of[k], index, near));
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
	char near[TEXT_HINT];

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
	return err_fail(err, ERR_FORMAT, "%s: decision '%s' is not among the columns%s", name, s->decision,
			hint(s, s->decision, 0, near));
}

/* {"cpus": "executors"}: the columns must be numbers, factors or derived. The batch is the decision. */
static void read_roles(struct fields *f, struct schema *s)
{
	static const char *const known[] = { "cpus",    "njobs", "processes",        "epochs",
					     "samples", "other", SCHEMA_GPUS_COLUMN, NULL };
	char near[TEXT_HINT];
	struct fields roles;

	if (!fields_open_member(&roles, f, "roles", known))
		return;
	for (int r = ROLE_CPUS; r < N_ROLES && !roles.rc; r++) {
		const struct json *column = fields_get(&roles, schema_role_name[r]);
		int at;

		if (!column)
			continue;
		read_text(&roles, schema_role_name[r], column, &s->role[r]);
		at = roles.rc ? -1 : schema_find_any(s, s->role[r]);
		if (at < 0)
			fields_fail(&roles, ERR_FORMAT, schema_role_name[r],
				    "'%s' is not among the columns%s", s->role[r],
				    hint(s, s->role[r], s->n_derived, near));
		else if ((size_t)at < s->n_columns && s->column[at].kind == COLUMN_CATEGORY)
			fields_fail(&roles, ERR_FORMAT, schema_role_name[r],
				    "'%s' is a category: need a number", s->role[r]);
	}
	fields_close(&roles, f);
}

int schema_from_json(const char *name, const struct json *v, struct schema **out, struct err *err)
{
	static const char *const known[] = { "columns", "derived", "decision", "candidates", "targets",
					     "exclude", "ignore",  "roles",    NULL };
	struct schema *s = mem_calloc(1, sizeof *s);
	struct fields f;
	int rc;

	if (!s)
		return nomem(name, err);
	fields_open(&f, name, ": ", v, known, err);
	read_columns(&f, s);
	read_derived(&f, s);
	if (fields_need(&f, "decision"))
		read_text(&f, "decision", fields_get(&f, "decision"), &s->decision);
	read_candidates(&f, s);
	read_targets(&f, s);
	read_exclude(&f, s);
	read_list(&f, "ignore", 0, SCHEMA_MAX_LIST, &s->ignore, &s->n_ignores);
	rc = f.rc ? f.rc : check_names(name, s, err);
	for (size_t i = 0; i < s->n_derived && !rc; i++)
		rc = resolve(name, s, i, err);
	if (!rc)
		rc = check_decision(name, s, err);
	if (!rc) {
		read_roles(&f, s);
		rc = f.rc;
	}
	if (!rc)
		schema_find_roles(s);
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
	int rc = json_read_settings(path, SCHEMA_MAX_BYTES, &v, err);

	if (rc)
		return rc;
	rc = schema_from_json(path, v, out, err);
	json_free(v);
	return rc;
}
