/* What a world file says by category: factors on the costs, levels of the experiment, accuracies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/trace/trace.h"
#include "sim/world/file_reader.h"

/* ---- factors ---- */

static int read_value(const struct world_reader *r, const char *column, const struct json *v,
		      struct world_value *out)
{
	static const char *const known[] = { "record", "fixed", "disk", NULL };
	char where[2 * TRACE_MAX_VALUE + 16];
	int rc;

	*out = (struct world_value){
		.record = 1.0, .fixed = 1.0, .disk = 1.0, .accuracy.best = NAN, .in_campaign = true
	};
	snprintf(where, sizeof where, "factors.%s", column);
	rc = world_reader_check_name(r, where, json_key(v));
	if (rc)
		return rc;
	snprintf(where, sizeof where, "factors.%s.%s", column, json_key(v));
	out->name = mem_strdup(json_key(v));
	rc = out->name ? world_reader_known_keys(r, where, v, known) : world_reader_nomem(r);
	if (!rc)
		rc = world_reader_number(r, where, v, "record", &world_factor_range, &out->record);
	if (!rc)
		rc = world_reader_number(r, where, v, "fixed", &world_factor_range, &out->fixed);
	if (!rc)
		rc = world_reader_number(r, where, v, "disk", &world_factor_range, &out->disk);
	return rc;
}

static int read_category(const struct world_reader *r, const struct json *v, struct world_category *c)
{
	static const char *const taken[] = { "cpus",   "njobs",    "batch",     "epochs",      "samples",
					     "time_s", "accuracy", "processes", "replication", NULL };
	const char *column = json_key(v);
	char where[TRACE_MAX_VALUE + 16];
	size_t n = json_size(v);
	int rc = world_reader_check_name(r, "factors", column);

	for (size_t i = 0; !rc && taken[i]; i++)
		if (!strcmp(column, taken[i]))
			rc = world_reader_refuse(r, "factors", "'%s' is a number, and no category", column);
	if (rc)
		return rc;
	snprintf(where, sizeof where, "factors.%s", column);
	if (json_type(v) != JSON_OBJECT || n < 1 || n > WORLD_FILE_MAX_VALUES)
		return world_reader_refuse(r, where, "need an object of 1 to %d values",
					   WORLD_FILE_MAX_VALUES);
	c->column = mem_strdup(column);
	c->value = mem_calloc(n, sizeof *c->value);
	if (!c->column || !c->value)
		return world_reader_nomem(r);
	for (const struct json *e = json_first(v); e && !rc; e = json_next(e))
		rc = read_value(r, column, e, &c->value[c->n_values++]);
	return rc;
}

int world_reader_factors(const struct world_reader *r, const struct json *v)
{
	struct world_file *f = r->file;
	size_t n = json_size(v);
	int rc = 0;

	if (!v)
		return 0;
	if (json_type(v) != JSON_OBJECT || n > WORLD_FILE_MAX_CATEGORIES)
		return world_reader_refuse(r, "factors", "need an object of at most %d columns",
					   WORLD_FILE_MAX_CATEGORIES);
	f->category = mem_calloc(n ? n : 1, sizeof *f->category);
	if (!f->category)
		return world_reader_nomem(r);
	for (const struct json *e = json_first(v); e && !rc; e = json_next(e))
		rc = read_category(r, e, &f->category[f->n_categories++]);
	return rc;
}

static struct world_value *value_named(const struct world_category *c, const char *name)
{
	for (size_t i = 0; i < c->n_values; i++)
		if (!strcmp(c->value[i].name, name))
			return &c->value[i];
	return NULL;
}

static int unknown_value(const struct world_reader *r, const char *key, const struct world_category *c,
			 const char *name)
{
	const char *names[WORLD_FILE_MAX_VALUES + 1] = { NULL }, *near;
	char shown[64];

	for (size_t i = 0; i < c->n_values; i++)
		names[i] = c->value[i].name;
	near = text_nearest(name, names);
	return world_reader_refuse(r, key, "unknown %s '%s'%s%s%s", c->column,
				   text_printable(name, shown, sizeof shown),
				   near ? "; did you mean '" : ": factors has none of that name",
				   near ? near : "", near ? "'?" : "");
}

static int read_category_levels(const struct world_reader *r, const struct json *v, struct world_category *c)
{
	char key[TRACE_MAX_VALUE + 16];

	snprintf(key, sizeof key, "levels.%s", c->column);
	if (json_type(v) != JSON_ARRAY || !json_size(v))
		return world_reader_refuse(r, key, "need a list of values");
	for (size_t i = 0; i < c->n_values; i++)
		c->value[i].in_campaign = false;
	for (const struct json *e = json_first(v); e; e = json_next(e)) {
		const char *name = json_string(e, NULL);
		struct world_value *value = name ? value_named(c, name) : NULL;

		if (!name)
			return world_reader_refuse(r, key, "need a list of values");
		if (!value)
			return unknown_value(r, key, c, name);
		value->in_campaign = true;
	}
	return 0;
}

/* ---- levels ---- */

/* Levels that the file does not name. */
static int fill_campaign(const struct world_reader *r)
{
	static const double usual_cpus[] = { 1.0, 2.0, 4.0 }, usual_njobs[] = { 1.0, 3.0, 5.0 };
	struct world_file *f = r->file;
	struct {
		struct world_list *list;
		const double *v;
		size_t n;
	} usual[] = { { &f->cpus, usual_cpus, 3 },
		      { &f->njobs, usual_njobs, 3 },
		      { &f->epochs_levels, &f->epochs, 1 },
		      { &f->samples_levels, &f->samples, 1 } };

	for (size_t i = 0; i < 4; i++) {
		if (usual[i].list->n)
			continue;
		usual[i].list->v = mem_array(usual[i].n, sizeof(double));
		if (!usual[i].list->v)
			return world_reader_nomem(r);
		memcpy(usual[i].list->v, usual[i].v, usual[i].n * sizeof(double));
		usual[i].list->n = usual[i].n;
	}
	return 0;
}

int world_reader_campaign(const struct world_reader *r, const struct json *v)
{
	const char *known[WORLD_FILE_MAX_CATEGORIES + 5] = { "cpus", "njobs", "epochs", "samples" };
	struct world_file *f = r->file;
	struct {
		const char *key;
		const struct world_range *range;
		struct world_list *out;
	} list[] = { { "levels.cpus", &world_cpus_range, &f->cpus },
		     { "levels.njobs", &world_njobs_range, &f->njobs },
		     { "levels.epochs", &world_epochs_range, &f->epochs_levels },
		     { "levels.samples", &world_samples_range, &f->samples_levels } };
	int rc = 0;

	for (size_t k = 0; k < f->n_categories; k++)
		known[4 + k] = f->category[k].column;
	if (v)
		rc = world_reader_known_keys(r, "levels", v, known);
	for (size_t i = 0; i < 4 && !rc; i++) {
		const struct json *e = json_get(v, known[i]);

		if (e)
			rc = world_reader_levels(r, list[i].key, e, list[i].range, list[i].out);
	}
	for (size_t k = 0; k < f->n_categories && !rc; k++) {
		const struct json *e = json_get(v, f->category[k].column);

		if (e)
			rc = read_category_levels(r, e, &f->category[k]);
	}
	return rc ? rc : fill_campaign(r);
}

/* ---- accuracies ---- */

static int read_accuracy(const struct world_reader *r, const char *where, const struct json *v,
			 struct world_accuracy *out)
{
	static const char *const known[] = { "best", "half_iterations", "noise", NULL };
	static const struct world_range iterations = { 0.0, 1e12, false };
	int rc = world_reader_known_keys(r, where, v, known);

	*out = (struct world_accuracy){ .best = NAN, .half_iterations = NAN };
	if (!rc)
		rc = world_reader_number(r, where, v, "best", &world_share_range, &out->best);
	if (!rc)
		rc = world_reader_number(r, where, v, "half_iterations", &iterations, &out->half_iterations);
	if (!rc)
		rc = world_reader_number(r, where, v, "noise", &world_share_range, &out->noise);
	return rc;
}

int world_reader_accuracies(const struct world_reader *r, const struct json *v)
{
	struct world_file *f = r->file;
	char where[TRACE_MAX_VALUE + 16];
	int rc = 0;

	f->accuracy.best = NAN;
	if (!v)
		return 0;
	if (!f->n_categories)
		return read_accuracy(r, "accuracy", v, &f->accuracy);
	if (json_type(v) != JSON_OBJECT)
		return world_reader_refuse(r, "accuracy", "need an object by %s", f->category[0].column);
	for (const struct json *e = json_first(v); e && !rc; e = json_next(e)) {
		struct world_value *value = value_named(&f->category[0], json_key(e));

		if (!value)
			return unknown_value(r, "accuracy", &f->category[0], json_key(e));
		snprintf(where, sizeof where, "accuracy.%s", json_key(e));
		rc = read_accuracy(r, where, e, &value->accuracy);
	}
	return rc;
}
