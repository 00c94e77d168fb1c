/* What a world file says by category: factors on the costs, levels of the experiment, accuracies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/trace/trace.h"
#include "sim/world/file_parts.h"

static const struct text_limits factor = { .min = 1e-9, .max = 1e9 };
static const struct text_limits share = { .min = 0.0, .max = 1.0 };

/* ---- factors ---- */

static bool check_name(struct fields *f, const char *key, const char *name)
{
	size_t len = strlen(name);
	char shown[64];

	if (len < 1 || len > TRACE_MAX_VALUE || name[strcspn(name, ",=\"\r\n\t")])
		fields_fail(f, ERR_FORMAT, key,
			    "'%s': a name has 1 to %d bytes and no comma, '=', quote or line end",
			    text_printable(name, shown, sizeof shown), TRACE_MAX_VALUE);
	return !f->rc;
}

static void read_value(struct fields *values, const char *name, struct world_value *out)
{
	static const char *const known[] = { "record", "fixed", "disk", NULL };
	struct fields v;

	*out = (struct world_value){
		.record = 1.0, .fixed = 1.0, .disk = 1.0, .accuracy.best = NAN, .in_campaign = true
	};
	out->name = mem_strdup(name);
	if (!out->name)
		fields_nomem(values, name);
	if (!fields_open_value(&v, values, name, json_get(values->object, name), known))
		return;
	field_within(&v, "record", &factor, &out->record);
	field_within(&v, "fixed", &factor, &out->fixed);
	field_within(&v, "disk", &factor, &out->disk);
	fields_close(&v, values);
}

static void read_category(struct fields *all, struct fields *f, const struct json *v,
			  struct world_category *c)
{
	static const char *const taken[] = { "cpus",   "njobs",    "batch",     "epochs",      "samples",
					     "time_s", "accuracy", "processes", "replication", NULL };
	const char *column = json_key(v);
	size_t n = json_size(v);
	struct fields values;

	check_name(f, "factors", column);
	for (size_t i = 0; taken[i]; i++) {
		if (!strcmp(column, taken[i]))
			fields_fail(f, ERR_FORMAT, "factors", "'%s' is a number, and no category", column);
	}
	if (json_type(v) != JSON_OBJECT || n < 1 || n > WORLD_FILE_MAX_VALUES)
		fields_fail(all, ERR_FORMAT, column, "need an object of 1 to %d values",
			    WORLD_FILE_MAX_VALUES);
	fields_close(f, all);
	if (all->rc)
		return;
	c->column = mem_strdup(column);
	c->value = mem_calloc(n, sizeof *c->value);
	if (!c->column || !c->value)
		fields_nomem(all, column);
	if (!fields_open_value(&values, all, column, v, NULL))
		return;
	for (const struct json *e = json_first(v); e && !values.rc; e = json_next(e)) {
		if (check_name(all, column, json_key(e)))
			read_value(&values, json_key(e), &c->value[c->n_values++]);
		fields_close(all, &values);
	}
	fields_close(&values, all);
}

void world_factors(struct fields *f, struct world_file *file)
{
	struct fields all;
	size_t n;

	if (!fields_open_member(&all, f, "factors", NULL))
		return;
	n = json_size(all.object);
	if (n > WORLD_FILE_MAX_CATEGORIES)
		fields_fail(f, ERR_FORMAT, "factors", "need an object of at most %d columns",
			    WORLD_FILE_MAX_CATEGORIES);
	file->category = mem_calloc(n ? n : 1, sizeof *file->category);
	if (!file->category)
		fields_nomem(f, "factors");
	fields_close(f, &all);
	for (const struct json *e = json_first(all.object); e && !all.rc; e = json_next(e))
		read_category(&all, f, e, &file->category[file->n_categories++]);
	fields_close(&all, f);
}

static struct world_value *value_named(const struct world_category *c, const char *name)
{
	for (size_t i = 0; i < c->n_values; i++)
		if (!strcmp(c->value[i].name, name))
			return &c->value[i];
	return NULL;
}

static void unknown_value(struct fields *f, const char *key, const struct world_category *c, const char *name)
{
	const char *names[WORLD_FILE_MAX_VALUES + 1] = { NULL };
	char shown[64], hint[TEXT_HINT];

	for (size_t i = 0; i < c->n_values; i++)
		names[i] = c->value[i].name;
	text_hint(name, names, hint);
	fields_fail(f, ERR_FORMAT, key, "unknown %s '%s'%s", c->column,
		    text_printable(name, shown, sizeof shown),
		    *hint ? hint : ": factors has none of that name");
}

/* ---- pairs ---- */

/* "lenet5": {"vgg16": 1.3}: what jobs of vgg16 do to the time of one of lenet5. */
static void read_pair_row(struct fields *rows, const char *name, struct world_file *file)
{
	static const struct text_limits pair = { .min = 1.0 / WORLD_FILE_MAX_PAIR,
						 .max = WORLD_FILE_MAX_PAIR };
	const struct world_category *c = &file->category[file->pair_of];
	const struct world_value *own = value_named(c, name);
	struct fields row;

	if (!own) {
		unknown_value(rows, name, c, name);
		return;
	}
	if (!fields_open_value(&row, rows, name, json_get(rows->object, name), NULL))
		return;
	for (const struct json *e = json_first(row.object); e && !row.rc; e = json_next(e)) {
		const struct world_value *beside = value_named(c, json_key(e));
		double factor_of = 1.0;

		if (!beside)
			unknown_value(&row, json_key(e), c, json_key(e));
		else if (beside == own)
			fields_fail(&row, ERR_FORMAT, json_key(e),
				    "jobs of one kind slow each other as the costs say: there is no factor");
		field_within(&row, json_key(e), &pair, &factor_of);
		if (!row.rc)
			file->log_pair[(size_t)(own - c->value) * c->n_values + (size_t)(beside - c->value)] =
				log(factor_of);
	}
	fields_close(&row, rows);
}

void world_pairs(struct fields *f, struct world_file *file)
{
	const char *known[WORLD_FILE_MAX_CATEGORIES + 1] = { NULL };
	struct fields all, rows;
	const struct json *v;
	const char *column;
	size_t n;

	for (size_t k = 0; k < file->n_categories && !f->rc; k++)
		known[k] = file->category[k].column;
	if (!fields_open_member(&all, f, "pairs", known))
		return;
	if (json_size(all.object) != 1)
		fields_fail(f, ERR_FORMAT, "pairs", "need an object of one column of factors");
	fields_close(f, &all);
	if (all.rc) {
		fields_close(&all, f);
		return;
	}
	v = json_first(all.object);
	column = json_key(v);
	while (strcmp(file->category[file->pair_of].column, column))
		file->pair_of++;
	n = file->category[file->pair_of].n_values;
	file->log_pair = mem_calloc(n * n, sizeof *file->log_pair);
	if (!file->log_pair)
		fields_nomem(&all, column);
	if (fields_open_value(&rows, &all, column, v, NULL)) {
		for (const struct json *e = json_first(v); e && !rows.rc; e = json_next(e))
			read_pair_row(&rows, json_key(e), file);
		fields_close(&rows, &all);
	}
	fields_close(&all, f);
}

static void read_category_levels(struct fields *levels, struct world_category *c)
{
	const struct json *v = fields_get(levels, c->column);

	if (!v)
		return;
	if (json_type(v) != JSON_ARRAY || !json_size(v))
		fields_fail(levels, ERR_FORMAT, c->column, "need a list of values");
	for (size_t i = 0; i < c->n_values; i++)
		c->value[i].in_campaign = false;
	for (const struct json *e = json_first(v); e && !levels->rc; e = json_next(e)) {
		const char *name = json_string(e, NULL);
		struct world_value *value = name ? value_named(c, name) : NULL;

		if (!name)
			fields_fail(levels, ERR_FORMAT, c->column, "need a list of values");
		else if (!value)
			unknown_value(levels, c->column, c, name);
		else
			value->in_campaign = true;
	}
}

/* ---- levels ---- */

/* Levels that the file does not name. */
static void fill_campaign(struct fields *f, struct world_file *file)
{
	static const double usual_cpus[] = { 1.0, 2.0, 4.0 }, usual_njobs[] = { 1.0, 3.0, 5.0 },
			    usual_gpus[] = { 0.0, 1.0 };
	struct {
		struct world_list *list;
		const double *v;
		size_t n;
	} usual[] = { { &file->cpus, usual_cpus, 3 },
		      { &file->njobs, usual_njobs, 3 },
		      { &file->epochs_levels, &file->epochs, 1 },
		      { &file->samples_levels, &file->samples, 1 },
		      { &file->gpus, usual_gpus, world_file_has_devices(file) ? 2 : 1 } };

	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
		if (usual[i].list->n)
			continue;
		usual[i].list->v = mem_array(usual[i].n, sizeof(double));
		if (!usual[i].list->v) {
			fields_nomem(f, "levels");
			return;
		}
		memcpy(usual[i].list->v, usual[i].v, usual[i].n * sizeof(double));
		usual[i].list->n = usual[i].n;
	}
}

void world_campaign(struct fields *f, struct world_file *file)
{
	static const struct text_limits cpus = { .min = 1.0, .max = TRACE_MAX_CPUS, .whole = true };
	static const struct text_limits njobs = { .min = 1.0, .max = WORLD_FILE_MAX_NJOBS, .whole = true };
	static const struct text_limits gpus = { .min = 0.0, .max = TRACE_MAX_CPUS, .whole = true };
	const char *known[WORLD_FILE_MAX_CATEGORIES + 6] = { "cpus", "njobs", "epochs", "samples", "gpus" };
	struct fields levels;

	for (size_t k = 0; k < file->n_categories && !f->rc; k++)
		known[5 + k] = file->category[k].column;
	if (fields_open_member(&levels, f, "levels", known)) {
		world_levels(&levels, "cpus", &cpus, &file->cpus);
		world_levels(&levels, "njobs", &njobs, &file->njobs);
		world_levels(&levels, "epochs", &world_epochs, &file->epochs_levels);
		world_levels(&levels, "samples", &world_samples, &file->samples_levels);
		world_levels(&levels, "gpus", &gpus, &file->gpus);
		for (size_t k = 0; k < file->n_categories && !levels.rc; k++)
			read_category_levels(&levels, &file->category[k]);
		fields_close(&levels, f);
	}
	if (file->gpus.n && !world_file_has_devices(file))
		fields_fail(f, ERR_FORMAT, "levels",
			    "gpus, and the costs have no device_s or device_record_s");
	if (!f->rc)
		fill_campaign(f, file);
}

/* ---- accuracies ---- */

static void read_accuracy(struct fields *f, const char *key, struct world_accuracy *out)
{
	static const char *const known[] = { "best", "half_iterations", "noise", NULL };
	struct fields a;

	*out = (struct world_accuracy){ .best = NAN, .half_iterations = NAN };
	if (!fields_open_value(&a, f, key, json_get(f->object, key), known))
		return;
	fields_need(&a, "best");
	fields_need(&a, "half_iterations");
	field_within(&a, "best", &share, &out->best);
	field_number(&a, "half_iterations", 0.0, 1e12, &out->half_iterations);
	field_within(&a, "noise", &share, &out->noise);
	fields_close(&a, f);
}

void world_accuracies(struct fields *f, struct world_file *file)
{
	struct fields all;

	file->accuracy.best = NAN;
	if (!file->n_categories) {
		read_accuracy(f, "accuracy", &file->accuracy);
		return;
	}
	if (!fields_open_member(&all, f, "accuracy", NULL))
		return;
	for (const struct json *e = json_first(all.object); e && !all.rc; e = json_next(e)) {
		struct world_value *value = value_named(&file->category[0], json_key(e));

		if (value)
			read_accuracy(&all, json_key(e), &value->accuracy);
		else
			unknown_value(f, "accuracy", &file->category[0], json_key(e));
		fields_close(f, &all);
	}
	fields_close(&all, f);
}
