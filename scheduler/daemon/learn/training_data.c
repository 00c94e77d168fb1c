/* The operator's runs and the daemon's observations as one table. See training_data.h. */
#include "scheduler/daemon/learn/training_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/jobs/told_epochs.h"
#include "scheduler/store/store.h"

/* ---- what the operator gave ---- */

int training_base_read(const char *table, const char *curves, const struct schema *s,
		       struct training_base *out, struct err *err)
{
	int rc = 0;

	*out = (struct training_base){ 0 };
	if (table)
		rc = csv_read_file(table, &out->runs, err);
	if (!rc && table && curves)
		rc = csv_read_file(curves, &out->curve, err);
	if (!rc && out->curve)
		rc = curves_join(out->runs, out->curve, s, &out->joined, err);
	if (rc)
		training_base_release(out);
	return rc;
}

void training_base_release(struct training_base *b)
{
	curves_free(b->joined);
	csv_free(b->curve);
	csv_free(b->runs);
	*b = (struct training_base){ 0 };
}

/* ---- observations that can be used ---- */

/* A row of the store as the builder of tables takes it. To a model without a column of it, other work is more
 * jobs and processes, as it is in a decision (core/other_work.c). */
static size_t values_of(const struct store_observation *o, const struct schema *s, struct table_value *out)
{
	bool apart = schema_role(s, ROLE_OTHER) >= 0;
	double other = 0.0;
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++) {
		if (!strcmp(o->value[i].name, EPOCHS_TOLD))
			continue;
		out[n++] = (struct table_value){ o->value[i].name, o->value[i].text, o->value[i].number };
		if (!apart && !strcmp(o->value[i].name, SCHEMA_OTHER_COLUMN) && o->value[i].number > 0.0)
			other = o->value[i].number;
	}
	for (size_t i = 0; i < n; i++) {
		int at = other > 0.0 ? schema_find_any(s, out[i].name) : -1;

		if (at >= 0 && (at == schema_role(s, ROLE_NJOBS) || at == schema_role(s, ROLE_PROCESSES)))
			out[i].number += other;
	}
	return n;
}

static const char *told_of(const struct store_observation *o)
{
	for (size_t i = 0; i < o->n; i++) {
		if (!strcmp(o->value[i].name, EPOCHS_TOLD))
			return o->value[i].text;
	}
	return NULL;
}

static bool has_time(const struct store_observation *o, const struct schema *s)
{
	for (size_t i = 0; i < o->n; i++) {
		if (!strcmp(o->value[i].name, s->time))
			return o->value[i].number > 0.0;
	}
	return false;
}

/* 1: the row can be used, 0: it cannot. */
static int try_row(struct table_builder *b, const struct schema *s, const struct store_observation *o,
		   struct err *err)
{
	struct table_value value[OBSERVED_MAX];
	struct err why = { 0 };
	int rc;

	if (!has_time(o, s))
		return 0;
	rc = table_builder_row(b, value, values_of(o, s, value), &why);
	return rc == -ERR_NOMEM ? err_nomem(err, "the table to learn from") : rc == 0;
}

static int rows_grow(struct training_rows *r, size_t *cap)
{
	size_t same = *cap;

	if (mem_grow((void **)&r->uid, &same, r->n + 1, sizeof *r->uid))
		return -1;
	return mem_grow((void **)&r->at, cap, r->n + 1, sizeof *r->at);
}

int training_rows_find(const char *packed, size_t len, const struct schema *s, const struct schema *other,
		       struct training_rows *out, struct err *err)
{
	struct store_observation *o = mem_alloc(sizeof *o);
	struct table_builder *b = NULL, *b_other = NULL;
	size_t cap = 0;
	int rc = o ? table_builder_new("observations", s, &b, err)
		   : err_nomem(err, "the table to learn from");

	*out = (struct training_rows){ .packed = packed, .len = len };
	if (!rc && other)
		rc = table_builder_new("observations", other, &b_other, err);
	for (size_t next = 0, at = 0; !rc && store_observation_next(packed, len, &next, o); at = next) {
		int usable = try_row(b, s, o, err);

		if (usable > 0 && other)
			usable = try_row(b_other, other, o, err);
		if (usable < 0)
			rc = usable;
		else if (!usable)
			out->n_unusable++;
		else if (rows_grow(out, &cap))
			rc = err_nomem(err, "the table to learn from");
		else {
			out->at[out->n] = at;
			out->uid[out->n++] = o->uid;
		}
	}
	table_builder_free(b);
	table_builder_free(b_other);
	free(o);
	if (!rc && out->n > TRAINING_MAX_OBSERVATIONS) {
		size_t older = out->n - TRAINING_MAX_OBSERVATIONS;

		out->n = TRAINING_MAX_OBSERVATIONS;
		memmove(out->at, out->at + older, out->n * sizeof *out->at);
		memmove(out->uid, out->uid + older, out->n * sizeof *out->uid);
	}
	if (rc)
		training_rows_release(out);
	return rc;
}

void training_rows_release(struct training_rows *r)
{
	free(r->at);
	free(r->uid);
	*r = (struct training_rows){ 0 };
}

/* ---- one table ---- */

static int add_base(struct table_builder *b, const struct training_base *base, const struct schema *s,
		    struct err *err)
{
	struct table *t = NULL;
	int rc = table_read(base->joined ? base->joined->csv : base->runs, s, TABLE_NEEDS_NOTHING, &t, err);

	if (!rc)
		rc = table_builder_append(b, t, err);
	table_free(t);
	return rc;
}

struct joined { /* rows of the table so far, and the run that each is of */
	struct table_builder *b;
	uint32_t *run;
	size_t n, cap;
	bool split; /* a run has several rows */
};

static int note_run(struct joined *j, uint32_t run, struct err *err)
{
	if (mem_grow((void **)&j->run, &j->cap, j->n + 1, sizeof *j->run))
		return err_nomem(err, "the table to learn from");
	j->run[j->n++] = run;
	return 0;
}

static struct table_value *value_of(struct table_value *v, size_t n, const struct schema *s, int column)
{
	for (size_t i = 0; column >= 0 && i < n; i++) {
		if (schema_find_any(s, v[i].name) == column)
			return &v[i];
	}
	return NULL;
}

static struct table_value *named(struct table_value *v, size_t n, const char *name)
{
	for (size_t i = 0; name && i < n; i++) {
		if (!strcmp(v[i].name, name))
			return &v[i];
	}
	return NULL;
}

/* What the run would have been, had it been stopped after each of the epochs that it told. */
static int add_told(struct joined *j, const char *told, struct table_value *v, size_t n,
		    const struct schema *s, uint32_t run, struct err *err)
{
	struct table_value *epochs = value_of(v, n, s, schema_role(s, ROLE_EPOCHS));
	struct table_value *time = named(v, n, s->time), *accuracy = named(v, n, s->accuracy);
	double whole = epochs ? epochs->number : NAN, whole_s = time ? time->number : NAN;
	struct told_epoch e;
	int rc = 0;

	while (!rc && told && told_epochs_next(&told, &e)) {
		if (!(e.epoch < whole && e.time_s < whole_s))
			continue;
		epochs->number = e.epoch;
		time->number = e.time_s;
		if (accuracy)
			accuracy->number = e.accuracy;
		rc = table_builder_row(j->b, v, n, err);
		if (!rc)
			rc = note_run(j, run, err);
		j->split = true;
	}
	return rc;
}

static int add_rows(struct joined *j, const struct training_rows *rows, size_t first, size_t n,
		    const struct schema *s, bool with_told, struct err *err)
{
	struct store_observation *o = mem_alloc(sizeof *o);
	struct table_value value[OBSERVED_MAX];
	int rc = o ? 0 : err_nomem(err, "the table to learn from");

	for (size_t i = first; !rc && i < first + n; i++) {
		size_t at = rows->at[i], n_values;
		uint32_t run = (uint32_t)j->n;

		store_observation_next(rows->packed, rows->len, &at, o);
		n_values = values_of(o, s, value);
		rc = table_builder_row(j->b, value, n_values, err);
		if (!rc)
			rc = note_run(j, run, err);
		if (!rc && with_told && i + TRAINING_TOLD >= rows->n)
			rc = add_told(j, told_of(o), value, n_values, s, run, err);
	}
	free(o);
	return rc;
}

int training_table_make(const struct training_base *base, const struct training_rows *rows, size_t first,
			size_t n, const struct schema *s, struct training_table *out, struct err *err)
{
	bool has_base = base && base->runs;
	size_t n_base = !has_base ? 0 : base->joined ? base->joined->csv->n_rows : base->runs->n_rows;
	struct joined j = { .split = has_base && base->joined };
	int rc = table_builder_new("runs and observations", s, &j.b, err);

	*out = (struct training_table){ 0 };
	if (!rc && has_base)
		rc = add_base(j.b, base, s, err);
	for (size_t i = 0; !rc && i < n_base; i++)
		rc = note_run(&j, base->joined ? base->joined->run[i] : (uint32_t)i, err);
	if (!rc)
		rc = add_rows(&j, rows, first, n, s, base != NULL, err);
	/* A column that neither has is missing, and the schema says so; one that observations alone lack is
	 * not known of any job. */
	if (!rc)
		rc = table_builder_finish(j.b, has_base ? TABLE_NEEDS_TARGETS : TABLE_NEEDS_NOTHING,
					  &out->table, err);
	table_builder_free(j.b);
	if (!rc && j.split)
		out->run = j.run;
	else
		free(j.run);
	if (rc)
		training_table_release(out);
	return rc;
}

void training_table_release(struct training_table *t)
{
	table_free(t->table);
	free(t->run);
	*t = (struct training_table){ 0 };
}
