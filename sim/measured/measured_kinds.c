/* Finds each kind of a trace in a measured table, and refuses kinds that were not measured. */
#include "sim/measured/measured_fold.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "predictors/data/bind.h"

struct binding {
	const struct measured_table *table;
	const struct trace *trace;
	struct job_values values; /* of the kind at hand, under the table's schema */
};

static const char *file_of(const struct measured_table *t)
{
	return text_tail(t->csv->name, 100);
}

int measured_check_range(const struct measured_table *t, uint32_t combo, size_t axis, double v,
			 struct err *err)
{
	double low = t->low[combo * t->n_axes + axis], high = t->high[combo * t->n_axes + axis];

	if (v >= low * (1.0 - MEASURED_SAME) && v <= high * (1.0 + MEASURED_SAME))
		return 0;
	if (low == high)
		return err_fail(err, ERR_ARG, "%.6g, but %s measured %.6g alone", v, file_of(t), low);
	return err_fail(err, ERR_ARG, "%.6g is not within what %s measured, %.6g to %.6g", v, file_of(t), low,
			high);
}

/* Puts the trace and the line of the kind's first job before a reason. */
static int prefix_place(const struct binding *b, size_t kind, struct err *err)
{
	const struct trace_job *j = b->trace->job;
	const char *name = text_tail(b->trace->name, 100);
	size_t i = 0;

	if (err)
		err->code = ERR_FORMAT;
	while (i + 1 < b->trace->n_jobs && j[i].kind != kind)
		i++;
	if (!b->trace->n_jobs || !j[i].line)
		return err_prefix(err, "%s: job %llu", name,
				  b->trace->n_jobs ? (unsigned long long)j[i].id : 0ULL);
	return err_prefix(err, "%s:%u", name, j[i].line);
}

static int refuse(const struct binding *b, size_t kind, const char *column, const char *reason,
		  struct err *err)
{
	err_fail(err, ERR_FORMAT, "column %s: %s", column, reason);
	return prefix_place(b, kind, err);
}

/* ---- categories ---- */

static void list_values(const struct measured_category *c, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < c->n_values && used + 40 < size; i++) {
		char shown[32];
		int n = snprintf(out + used, size - used, "%s%s", i ? ", " : "",
				 text_printable(c->value[i], shown, sizeof shown));

		used += n > 0 ? (size_t)n : 0;
	}
}

static int bind_category(const struct binding *b, size_t kind, size_t index, uint32_t *io_combo,
			 struct err *err)
{
	const struct measured_category *c = &b->table->category[index];
	const char *value = b->values.category[c->column];
	char reason[320], shown[64], list[128];
	size_t i = 0;

	if (!value && c->n_values > 1) {
		list_values(c, list, sizeof list);
		snprintf(reason, sizeof reason, "not given, and %s measured several: %s", file_of(b->table),
			 list);
		return refuse(b, kind, c->name, reason, err);
	}
	while (value && i < c->n_values && strcmp(value, c->value[i]))
		i++;
	if (i == c->n_values) {
		list_values(c, list, sizeof list);
		snprintf(reason, sizeof reason, "'%s' was not measured; %s has %s",
			 text_printable(value, shown, sizeof shown), file_of(b->table), list);
		return refuse(b, kind, c->name, reason, err);
	}
	*io_combo = *io_combo * (uint32_t)c->n_values + (uint32_t)i;
	return 0;
}

/* ---- numbers ---- */

static int check(const struct binding *b, size_t kind, uint32_t combo, size_t axis, double v,
		 const char *hint, struct err *err)
{
	struct err reason;
	char text[sizeof reason.text + 128];

	if (!measured_check_range(b->table, combo, axis, v, &reason))
		return 0;
	snprintf(text, sizeof text, "%s%s", reason.text, hint);
	return refuse(b, kind, b->table->axis[axis].name, text, err);
}

static int bind_batch(const struct binding *b, size_t kind, uint32_t combo, struct err *err)
{
	const struct trace_kind *k = &b->trace->kind[kind];
	int rc = 0;

	for (size_t i = 0; i < k->n_batches && !rc; i++)
		rc = check(b, kind, combo, b->table->batch_axis, k->batch[i], "", err);
	return rc;
}

static int bind_open_epochs(const struct binding *b, size_t kind, uint32_t combo, size_t axis,
			    struct err *err)
{
	const char *hint =
		b->table->curves ? ""
				 : "; with curves (measured:RUNS.csv+CURVES.csv) fewer epochs are known too";
	int rc = check(b, kind, combo, axis, b->trace->kind[kind].epochs_from, hint, err);

	return rc ? rc : check(b, kind, combo, axis, b->trace->kind[kind].epochs_to, hint, err);
}

static int bind_number(const struct binding *b, size_t kind, uint32_t combo, size_t axis, double *out,
		       struct err *err)
{
	const struct measured_axis *a = &b->table->axis[axis];
	size_t at = combo * b->table->n_axes + axis;
	char reason[256];

	*out = b->values.number[a->column];
	if (isnan(*out) && b->table->low[at] == b->table->high[at]) {
		*out = b->table->low[at];
		return 0;
	}
	if (isnan(*out)) {
		snprintf(reason, sizeof reason, "not given, and %s measured several: %.6g to %.6g",
			 file_of(b->table), a->level[0], a->level[a->n_levels - 1]);
		return refuse(b, kind, a->name, reason, err);
	}
	return check(b, kind, combo, axis, *out, "", err);
}

static int bind_axis(const struct binding *b, size_t kind, uint32_t combo, size_t axis, double *out,
		     struct err *err)
{
	*out = NAN;
	if (axis == b->table->batch_axis)
		return bind_batch(b, kind, combo, err);
	if ((int)axis == b->table->epochs_axis && !isnan(b->trace->kind[kind].epochs_from))
		return bind_open_epochs(b, kind, combo, axis, err);
	if (axis == b->table->cpus_axis) {
		*out = b->trace->kind[kind].cpus;
		return check(b, kind, combo, axis, *out, "", err);
	}
	return bind_number(b, kind, combo, axis, out, err);
}

/* ---- kinds ---- */

static int bind_kind(struct binding *b, const struct measured_fold *fold, size_t kind,
		     struct measured_kinds *k, struct err *err)
{
	const struct measured_table *t = b->table;
	uint32_t combo = 0;
	int rc = 0;

	job_values_reset(&b->values, t->schema);
	if (job_values_bind(&b->values, t->schema, (const char *const *)b->trace->column,
			    (const char *const *)b->trace->kind[kind].value, b->trace->n_columns, err))
		return prefix_place(b, kind, err);
	for (size_t c = 0; c < t->n_categories && !rc; c++)
		rc = bind_category(b, kind, c, &combo, err);
	for (size_t f = 0; f < t->n_folds && !rc; f++)
		if (!measured_fold_knows(&fold[f], combo))
			rc = refuse(
				b, kind, t->n_categories ? t->category[0].name : "cpus",
				"these categories together were not measured, or not in every replication",
				err);
	if (!rc && t->epochs_axis < 0 && !isnan(b->trace->kind[kind].epochs_from))
		rc = refuse(b, kind, "epochs",
			    "open, but the table does not say for how many epochs its times are", err);
	for (size_t a = 0; a < t->n_axes && !rc; a++)
		rc = bind_axis(b, kind, combo, a, &k->value[kind * t->n_axes + a], err);
	k->combo[kind] = combo;
	return rc;
}

/* Those inside the range of every combination of categories that the trace has (without a trace: that was
 * measured). */
static int find_batches(const struct binding *b, struct measured_kinds *k, struct err *err)
{
	const struct measured_table *t = b->table;
	const struct measured_axis *a = &t->axis[t->batch_axis];
	size_t n = b->trace ? b->trace->n_kinds : t->n_combos;
	double low = a->level[0], high = a->level[a->n_levels - 1];

	for (size_t i = 0; i < n; i++) {
		size_t at = (b->trace ? k->combo[i] : i) * t->n_axes + t->batch_axis;

		if (b->trace && k->unknown[i])
			continue;
		low = fmax(low, t->low[at]); /* NaN, of what was not measured, is passed over */
		high = fmin(high, t->high[at]);
	}
	k->batch = mem_array(a->n_levels, sizeof *k->batch);
	if (!k->batch)
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the batches", file_of(t));
	for (size_t i = 0; i < a->n_levels; i++)
		if (a->level[i] >= low && a->level[i] <= high)
			k->batch[k->n_batches++] = a->level[i];
	if (!k->n_batches)
		return err_fail(err, ERR_FORMAT,
				"%s: column %s: no batch was measured of all kinds of jobs of the trace",
				file_of(t), a->name);
	return 0;
}

int measured_kinds_bind(const struct measured_table *t, const struct measured_fold *fold,
			const struct trace *trace, bool mark_unknown, struct measured_kinds *out,
			struct err *err)
{
	struct binding b = { .table = t, .trace = trace };
	struct measured_kinds k = { 0 };
	size_t n = trace ? trace->n_kinds : 0, unknown = 0;
	int rc = 0;

	k.combo = mem_array(n, sizeof *k.combo);
	k.value = mem_array(n * t->n_axes, sizeof *k.value);
	k.unknown = mem_calloc(n ? n : 1, sizeof *k.unknown);
	k.n = n;
	if (!k.combo || !k.value || !k.unknown)
		rc = err_fail(err, ERR_NOMEM, "%s: out of memory for %zu kinds of jobs", file_of(t), n);
	if (!rc)
		rc = job_values_init(&b.values, t->schema, err);
	for (size_t i = 0; i < n && !rc; i++) {
		struct err why = { 0 };

		rc = bind_kind(&b, fold, i, &k, &why);
		if (rc && mark_unknown && why.code == ERR_FORMAT) {
			k.unknown[i] = mem_strdup(why.text);
			rc = k.unknown[i] ? 0 : err_nomem(&why, "a reason");
			unknown++;
		}
		if (rc && err)
			*err = why;
	}
	if (!rc && unknown && unknown == n)
		rc = err_fail(err, ERR_FORMAT, "%s", k.unknown[0]);
	if (!rc)
		rc = find_batches(&b, &k, err);
	job_values_release(&b.values);
	if (rc)
		measured_kinds_release(&k);
	else
		*out = k;
	return rc;
}

void measured_kinds_release(struct measured_kinds *k)
{
	if (!k)
		return;
	for (size_t i = 0; k->unknown && i < k->n; i++)
		free(k->unknown[i]);
	free(k->unknown);
	free(k->combo);
	free(k->value);
	free(k->batch);
	*k = (struct measured_kinds){ 0 };
}
