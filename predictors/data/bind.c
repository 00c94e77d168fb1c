/* Binding names and values to the columns of a schema. */
#include "predictors/data/bind.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

struct job_text {
	struct job_text *next;
	char text[];
};

/* Both arrays are one block: the daemon makes one for each job. */
int job_values_init(struct job_values *v, const struct schema *s, struct err *err)
{
	size_t n = s ? s->n_columns + s->n_derived : 0;
	double *block = mem_array(n, sizeof(double) + sizeof(char *));

	if (!block)
		return err_nomem(err, "the values of a job");
	*v = (struct job_values){ .number = block, .category = (const char **)(block + n) };
	job_values_reset(v, s);
	return 0;
}

static void drop_texts(struct job_values *v)
{
	for (struct job_text *t = v->text, *next; t; t = next) {
		next = t->next;
		free(t);
	}
	v->text = NULL;
}

void job_values_reset(struct job_values *v, const struct schema *s)
{
	for (size_t i = 0; s && i < s->n_columns + s->n_derived; i++) {
		v->number[i] = NAN;
		v->category[i] = NULL;
	}
	drop_texts(v);
}

void job_values_release(struct job_values *v)
{
	if (!v)
		return;
	drop_texts(v);
	free(v->number);
	*v = (struct job_values){ 0 };
}

void job_values_put(struct job_values *v, const struct schema *s, int source, const char *text, double number)
{
	if (source < 0)
		return;
	if (schema_is_category(s, (size_t)source))
		v->category[source] = text;
	else
		v->number[source] = number;
}

void job_values_put_role(struct job_values *v, const struct schema *s, enum feature_role role, double number)
{
	job_values_put(v, s, schema_role(s, role), NULL, number);
}

/* The text as a number, if that is what the column holds. */
static int number_of(const struct schema *s, size_t source, const char *text, double *out, struct err *err)
{
	char shown[64];

	*out = NAN;
	if (schema_is_category(s, source) || text_number(text, out))
		return 0;
	return err_fail(err, ERR_ARG, "column %s: '%s' is not a number", schema_source_name(s, source),
			text_printable(text, shown, sizeof shown));
}

int job_values_bind(struct job_values *v, const struct schema *s, const char *const *name,
		    const char *const *text, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		int at = text[i] ? schema_find_any(s, name[i]) : -1, rc;
		double number;

		if (at < 0)
			continue;
		rc = number_of(s, (size_t)at, text[i], &number, err);
		if (rc)
			return rc;
		job_values_put(v, s, at, text[i], number);
	}
	return 0;
}

/* ---- name=value,name=value ---- */

/* Ends the text at `to` and gives its start, both without the blank around. */
static char *trimmed(char *from, char *to)
{
	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	*to = '\0';
	return from;
}

static int unknown_name(const struct schema *s, const char *name, struct err *err)
{
	const char *known[SCHEMA_MAX_COLUMNS + 1] = { 0 };
	const char *near;
	char list[256] = "", shown[64];
	size_t used = 0;

	for (size_t i = 0; i < s->n_columns + s->n_derived; i++) {
		known[i] = schema_source_name(s, i);
		if (used < sizeof list)
			used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
						 known[i]);
	}
	near = text_nearest(name, known);
	text_printable(name, shown, sizeof shown);
	if (near)
		return err_fail(err, ERR_ARG, "no column '%s': did you mean '%s'? (known: %s)", shown, near,
				list);
	return err_fail(err, ERR_ARG, "no column '%s' (known: %s)", shown, list);
}

/* Cuts the copied text into pairs. With `v` NULL it only checks them, and changes nothing. */
static int parse_pairs(struct job_values *v, const struct schema *s, char *text, struct err *err)
{
	bool seen[SCHEMA_MAX_COLUMNS] = { 0 };
	char shown[64];
	char *next;

	for (char *p = text; p; p = next) {
		char *comma = strchr(p, ','), *end = comma ? comma : p + strlen(p);
		char *eq = memchr(p, '=', (size_t)(end - p)), *value;
		const char *name;
		double number;
		int i, rc;

		next = comma ? comma + 1 : NULL;
		if (!eq) {
			*end = '\0';
			return err_fail(err, ERR_ARG, "'%s': need name=value",
					text_printable(p, shown, sizeof shown));
		}
		value = trimmed(eq + 1, end);
		name = trimmed(p, eq);
		i = schema_find_any(s, name);
		if (i < 0)
			return unknown_name(s, name, err);
		name = schema_source_name(s, (size_t)i);
		if (seen[i])
			return err_fail(err, ERR_ARG, "%s is given twice", name);
		seen[i] = true;
		if (!*value)
			return err_fail(err, ERR_ARG, "%s=: need a value", name);
		rc = number_of(s, (size_t)i, value, &number, err);
		if (rc)
			return rc;
		if (v)
			job_values_put(v, s, i, value, number);
	}
	return 0;
}

int job_values_parse(struct job_values *v, const struct schema *s, const char *text, struct err *err)
{
	size_t size = strlen(text) + 1;
	struct job_text *copy;
	int rc = 0;

	if (!text[strspn(text, " \t\r\n")])
		return 0;
	copy = mem_alloc(sizeof *copy + size);
	if (!copy)
		return err_nomem(err, "the values of a job");
	for (int pass = 0; pass < 2 && !rc; pass++) {
		memcpy(copy->text, text, size);
		rc = parse_pairs(pass ? v : NULL, s, copy->text, err);
	}
	if (rc) {
		free(copy);
		return rc;
	}
	copy->next = v->text;
	v->text = copy;
	return 0;
}
