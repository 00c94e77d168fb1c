/* Does the model know jobs like this one? See knowledge.h. */
#include "scheduler/core/admit/knowledge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

/* Which features belong to one column; 0: none, the training table did not have it. */
static size_t features_of(const struct features *f, size_t source, size_t *out_first)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (f->feature[i].source != source)
			continue;
		if (!n++)
			*out_first = i;
	}
	return n;
}

static bool category_seen(const struct feature *f, size_t n, const char *value)
{
	for (size_t i = 0; i < n; i++) {
		if ((f[i].category && !strcmp(f[i].category, value)) ||
		    (f[i].category_zero && !strcmp(f[i].category_zero, value)))
			return true;
	}
	return false;
}

static bool is_ours(const struct schema *s, size_t source, bool epochs_open)
{
	return !strcmp(schema_source_name(s, source), s->decision) ||
	       (int)source == schema_role(s, ROLE_NJOBS) || (int)source == schema_role(s, ROLE_PROCESSES) ||
	       (int)source == schema_role(s, ROLE_OTHER) ||
	       (epochs_open && (int)source == schema_role(s, ROLE_EPOCHS));
}

static void say(char *why, size_t size, const char *what, const char *column, const char *value)
{
	char shown[64] = "";

	if (why && size)
		snprintf(why, size, "%s %s%s%s%s", what, column, value ? " '" : "",
			 value ? text_printable(value, shown, sizeof shown) : "", value ? "'" : "");
}

bool model_knows(const struct model *m, const struct job_values *v, bool epochs_open, char *why, size_t size)
{
	const struct schema *s = m->schema;

	if (why && size)
		why[0] = '\0';
	for (size_t i = 0; i < s->n_columns; i++) { /* derived ones follow from these */
		size_t first = 0, n = features_of(m->features, i, &first);
		const struct feature *f = &m->features->feature[first];

		if (!n || is_ours(s, i, epochs_open))
			continue;
		if (s->column[i].kind == COLUMN_CATEGORY && v->category[i] &&
		    !category_seen(f, n, v->category[i])) {
			say(why, size, "the model has never seen", s->column[i].name, v->category[i]);
			return false;
		}
		/* A column that never changed in training does not tell jobs apart. */
		if (s->column[i].kind == COLUMN_CATEGORY ? !v->category[i] && (n > 1 || f->category)
							 : isnan(v->number[i]) && f->min < f->max) {
			say(why, size, "the model tells jobs apart by", s->column[i].name, NULL);
			return false;
		}
	}
	return true;
}
