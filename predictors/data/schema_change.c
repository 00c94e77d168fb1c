/* A copy of a schema, and a schema with a column less. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/schema.h"

int schema_clone(const struct schema *s, struct schema **out, struct err *err)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	struct json *v = NULL;
	int rc = 0;

	json_begin(&w, &text, false);
	schema_to_json(s, &w);
	if (text.failed)
		rc = err_nomem(err, "a copy of the schema");
	if (!rc)
		rc = json_parse("the schema", strbuf_text(&text), text.len, &v, err);
	if (!rc)
		rc = schema_from_json("the schema", v, out, err);
	json_free(v);
	strbuf_release(&text);
	return rc;
}

/* A table may still have the column; that is not a mistake then. */
static int pass_over(struct schema *s, char *taken, bool ignore, struct err *err)
{
	char **list = NULL;
	int rc = 0;

	if (!ignore) {
		free(taken);
		return 0;
	}
	if (s->n_ignores >= SCHEMA_MAX_LIST)
		rc = err_fail(err, ERR_ARG, "the schema ignores more than %d columns", SCHEMA_MAX_LIST);
	else if (!(list = mem_resize(s->ignore, s->n_ignores + 1, sizeof *list)))
		rc = err_nomem(err, "the columns that are not used");
	if (rc) {
		free(taken);
		return rc;
	}
	s->ignore = list;
	s->ignore[s->n_ignores++] = taken;
	return 0;
}

static int drop_column(struct schema *s, size_t at, bool ignore, struct err *err)
{
	struct schema_column c = s->column[at];
	int rc;

	s->n_columns--;
	memmove(&s->column[at], &s->column[at + 1], (s->n_columns - at) * sizeof *s->column);
	rc = pass_over(s, c.name, ignore, err);
	for (size_t i = 0; i < c.n_aliases; i++) {
		if (!rc)
			rc = pass_over(s, c.alias[i], ignore, err);
		else
			free(c.alias[i]);
	}
	free(c.alias);
	return rc;
}

static int drop_derived(struct schema *s, size_t at, bool ignore, struct err *err)
{
	struct schema_derived d = s->derived[at];

	s->n_derived--;
	memmove(&s->derived[at], &s->derived[at + 1], (s->n_derived - at) * sizeof *s->derived);
	for (size_t i = 0; i < d.n_of; i++)
		free(d.of[i]);
	free(d.of);
	free(d.source);
	return pass_over(s, d.name, ignore, err);
}

int schema_drop(struct schema *s, size_t source, bool ignore, struct err *err)
{
	int rc = 0;

	for (size_t i = s->n_derived; i-- > 0 && !rc;) { /* they use only earlier ones */
		for (size_t k = 0; k < s->derived[i].n_of; k++) {
			if (s->derived[i].source[k] == source) {
				rc = schema_drop(s, s->n_columns + i, ignore, err);
				break;
			}
		}
	}
	if (rc)
		return rc;
	for (int r = 0; r < N_ROLES; r++) {
		if (s->role[r] && schema_find_any(s, s->role[r]) == (int)source) {
			free(s->role[r]);
			s->role[r] = NULL;
		}
	}
	rc = source < s->n_columns ? drop_column(s, source, ignore, err)
				   : drop_derived(s, source - s->n_columns, ignore, err);
	for (size_t i = 0; i < s->n_derived; i++)
		for (size_t k = 0; k < s->derived[i].n_of; k++)
			s->derived[i].source[k] -= s->derived[i].source[k] > source;
	schema_find_roles(s);
	return rc;
}

int schema_add(struct schema *s, const char *name, enum column_kind kind, struct err *err)
{
	void *list = s->column;
	size_t cap = s->n_columns;
	char *copy;

	if (s->n_columns + s->n_derived >= SCHEMA_MAX_COLUMNS || !*name || strlen(name) > SCHEMA_MAX_NAME)
		return err_fail(err, ERR_FORMAT,
				"column '%.40s': a name has 1 to %d bytes, and a table %d columns", name,
				SCHEMA_MAX_NAME, SCHEMA_MAX_COLUMNS);
	copy = mem_strdup(name);
	if (!copy || mem_grow(&list, &cap, s->n_columns + 1, sizeof *s->column)) {
		free(copy);
		return err_nomem(err, "the schema");
	}
	s->column = list;
	s->column[s->n_columns] = (struct schema_column){ .name = copy, .kind = kind };
	for (size_t i = 0; i < s->n_derived; i++)
		for (size_t k = 0; k < s->derived[i].n_of; k++)
			s->derived[i].source[k] += s->derived[i].source[k] >= s->n_columns;
	s->n_columns++;
	schema_find_roles(s);
	return 0;
}
