/* The kinds of jobs of a trace that is put together: found again by their contents, so that equal ones are
 * kept once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/trace/build_internal.h"
#include "sim/trace/row.h"

static const char *given(const char *value) /* an empty one is not */
{
	return value && *value ? value : NULL;
}

/* Columns without a value leave no trace in it: so a column that comes later changes nothing. */
static uint64_t kind_hash(const struct trace_kind_text *k, size_t n_columns)
{
	double number[4] = { k->epochs_from, k->epochs_to, k->memory_mb, k->memory_mb_per_record };
	uint64_t h = k->cpus;

	for (size_t i = 0; i < 4; i++)
		if (!isnan(number[i]))
			h = trace_hash(h + i, &number[i], sizeof number[i]);
	h = trace_hash(h, k->batch, k->n_batches * sizeof *k->batch);
	for (size_t i = 0; i < n_columns; i++)
		if (given(k->value[i]))
			h = trace_hash(h + i, k->value[i], strlen(k->value[i]));
	return h;
}

static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool kind_equal(const struct trace_kind *a, size_t n_have, const struct trace_kind_text *b,
		       size_t n_columns)
{
	if (a->cpus != b->cpus || a->n_batches != b->n_batches ||
	    !same_number(a->epochs_from, b->epochs_from) || !same_number(a->epochs_to, b->epochs_to) ||
	    !same_number(a->memory_mb, b->memory_mb) ||
	    !same_number(a->memory_mb_per_record, b->memory_mb_per_record))
		return false;
	for (size_t i = 0; i < a->n_batches; i++)
		if (a->batch[i] != b->batch[i])
			return false;
	for (size_t i = 0; i < n_columns; i++) {
		const char *ours = i < n_have ? a->value[i] : NULL, *theirs = given(b->value[i]);

		if (!ours != !theirs || (ours && strcmp(ours, theirs) != 0))
			return false;
	}
	return true;
}

int trace_kind_copy(const struct trace_kind *k, size_t n_have, size_t n_columns, struct trace_kind *out)
{
	size_t bytes = (n_columns + 1) * sizeof(char *) + k->n_batches * sizeof(double);
	char *text;

	for (size_t i = 0; i < n_have; i++)
		bytes += k->value[i] ? strlen(k->value[i]) + 1 : 0;
	*out = *k;
	out->value = mem_alloc(bytes);
	if (!out->value)
		return -1;
	out->batch = (double *)(void *)(out->value + n_columns + 1);
	if (k->n_batches)
		memcpy(out->batch, k->batch, k->n_batches * sizeof *k->batch);
	text = (char *)(out->batch + k->n_batches);
	for (size_t i = 0; i <= n_columns; i++)
		out->value[i] = NULL;
	for (size_t i = 0; i < n_have; i++) {
		if (!k->value[i])
			continue;
		out->value[i] = strcpy(text, k->value[i]);
		text += strlen(text) + 1;
	}
	return 0;
}

static bool number_is_fit(double v)
{
	return isnan(v) || (v >= 0.0 && v <= TRACE_MAX_NUMBER);
}

/* Open ones are in the kind, fixed ones are a number in the column of that name: what is written reads
 * back. */
static int check_epochs(const struct trace_build *b, const struct trace_kind_text *k, struct err *err)
{
	const char *where = text_tail(b->name, TRACE_NAME_SHOWN), *fixed;
	int64_t at = trace_names_find(&b->column, trace_field_name[TRACE_EPOCHS]);
	bool open = !isnan(k->epochs_from) || !isnan(k->epochs_to);
	char shown[64];
	double v;

	if (open &&
	    !(k->epochs_from >= 1.0 && k->epochs_from <= k->epochs_to && k->epochs_to <= TRACE_MAX_EPOCHS))
		return err_fail(err, ERR_FORMAT, "%s: epochs %g..%g: need 1 <= from <= to <= %g", where,
				k->epochs_from, k->epochs_to, TRACE_MAX_EPOCHS);
	fixed = at < 0 ? NULL : given(k->value[at]);
	if (open && (at < 0 || fixed))
		return err_fail(err, ERR_ARG, "%s: open epochs need a column `epochs` without a value",
				where);
	if (fixed && (!text_number(fixed, &v) || !(v > 0.0 && v <= TRACE_MAX_NUMBER)))
		return err_fail(err, ERR_FORMAT, "%s: epochs '%s': need a number above 0", where,
				text_printable(fixed, shown, sizeof shown));
	return 0;
}

static int check_kind(const struct trace_build *b, const struct trace_kind_text *k, struct err *err)
{
	const char *where = text_tail(b->name, TRACE_NAME_SHOWN);
	char what[64 + TRACE_MAX_VALUE];
	int rc;

	if (k->cpus < 1 || k->cpus > TRACE_MAX_CPUS)
		return err_fail(err, ERR_FORMAT, "%s: %u cpus: need 1 to %d", where, k->cpus, TRACE_MAX_CPUS);
	if (k->n_batches > TRACE_MAX_BATCHES)
		return err_fail(err, ERR_FORMAT, "%s: %zu batch sizes: at most %d", where, k->n_batches,
				TRACE_MAX_BATCHES);
	for (size_t i = 0; i < k->n_batches; i++)
		if (!(k->batch[i] > 0.0 && k->batch[i] <= TRACE_MAX_NUMBER) ||
		    (i && k->batch[i] <= k->batch[i - 1]))
			return err_fail(err, ERR_FORMAT,
					"%s: batch size %g: need sizes above 0, ascending, none twice", where,
					k->batch[i]);
	if ((rc = check_epochs(b, k, err)))
		return rc;
	if (!number_is_fit(k->memory_mb) || !number_is_fit(k->memory_mb_per_record))
		return err_fail(err, ERR_FORMAT, "%s: memory_mb %g, memory_mb_per_record %g: need both >= 0",
				where, k->memory_mb, k->memory_mb_per_record);
	for (size_t i = 0; i < b->column.n; i++) {
		if (!given(k->value[i]))
			continue;
		snprintf(what, sizeof what, "value of column '%s'", b->column.name[i]);
		if ((rc = trace_build_check_text(b, what, k->value[i], err)))
			return rc;
	}
	return 0;
}

static int grow_kinds(struct trace_build *b)
{
	size_t n = b->n_kind_slots ? 2 * b->n_kind_slots : 64;
	void *kinds = b->kind, *found = b->kind_found;
	uint32_t *slot;

	if (mem_grow(&kinds, &b->cap_kinds, b->n_kinds + 1, sizeof *b->kind))
		return -1;
	b->kind = kinds;
	if (mem_grow(&found, &b->cap_found, b->n_kinds + 1, sizeof *b->kind_found))
		return -1;
	b->kind_found = found;
	if (2 * (b->n_kinds + 1) <= b->n_kind_slots)
		return 0;
	slot = mem_calloc(n, sizeof *slot);
	if (!slot)
		return -1;
	for (size_t i = 0; i < b->n_kinds; i++) {
		size_t at = (size_t)b->kind_found[i].hash & (n - 1);

		while (slot[at])
			at = (at + 1) & (n - 1);
		slot[at] = (uint32_t)i + 1;
	}
	free(b->kind_slot);
	b->kind_slot = slot;
	b->n_kind_slots = n;
	return 0;
}

static int add_kind(struct trace_build *b, const struct trace_kind_text *k, uint64_t hash, struct err *err)
{
	char *value[TRACE_MAX_COLUMNS];
	struct trace_kind plain = {
		.value = value,
		.cpus = k->cpus,
		.batch = (double *)k->batch, /* only read */
		.n_batches = k->n_batches,
		.epochs_from = k->epochs_from,
		.epochs_to = k->epochs_to,
		.memory_mb = k->memory_mb,
		.memory_mb_per_record = k->memory_mb_per_record,
	};
	int rc = check_kind(b, k, err);
	size_t at;

	if (rc)
		return rc;
	if (b->n_kinds >= TRACE_MAX_KINDS)
		return err_fail(
			err, ERR_FORMAT,
			"%s: more than %d kinds of jobs: round the columns that differ from job to job",
			text_tail(b->name, TRACE_NAME_SHOWN), TRACE_MAX_KINDS);
	for (size_t i = 0; i < b->column.n; i++)
		value[i] = (char *)given(k->value[i]);
	if (grow_kinds(b) || trace_kind_copy(&plain, b->column.n, b->column.n, &b->kind[b->n_kinds]))
		return trace_build_nomem(b, err);
	b->kind_found[b->n_kinds] = (struct kind_found){ .hash = hash, .n_columns = (uint32_t)b->column.n };
	for (at = (size_t)hash & (b->n_kind_slots - 1); b->kind_slot[at];)
		at = (at + 1) & (b->n_kind_slots - 1);
	b->kind_slot[at] = (uint32_t)++b->n_kinds;
	return 0;
}

int trace_build_kind(struct trace_build *b, const struct trace_kind_text *k, uint32_t *out, struct err *err)
{
	uint64_t hash = kind_hash(k, b->column.n);
	size_t mask = b->n_kind_slots - 1;
	int rc;

	for (size_t at = (size_t)hash & mask; b->n_kind_slots && b->kind_slot[at]; at = (at + 1) & mask) {
		uint32_t i = b->kind_slot[at] - 1;

		if (b->kind_found[i].hash == hash &&
		    kind_equal(&b->kind[i], b->kind_found[i].n_columns, k, b->column.n)) {
			*out = i;
			return 0;
		}
	}
	if ((rc = add_kind(b, k, hash, err)))
		return rc;
	*out = (uint32_t)b->n_kinds - 1;
	return 0;
}
