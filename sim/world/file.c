/* Strict reading of a world file: every key known, every number in its range, lists ascending. What the
 * numbers mean for a job is in world_file_work(); queueing_kinds.c binds the kinds of a trace to it. */
#include "sim/world/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "sim/world/file_parts.h"

/* ---- parts of the file ---- */

static const struct text_limits seconds = { .min = 0.0, .max = WORLD_FILE_MAX_SECONDS };
static const struct text_limits share = { .min = 0.0, .max = 1.0 };
static const struct text_limits batches = { .min = 1.0, .max = WORLD_FILE_MAX_BATCH, .whole = true };
const struct text_limits world_samples = { .min = 1.0, .max = WORLD_FILE_MAX_SAMPLES, .whole = true };
const struct text_limits world_epochs = { .min = 1.0, .max = WORLD_FILE_MAX_EPOCHS, .whole = true };

void world_levels(struct fields *f, const char *key, const struct text_limits *want, struct world_list *out)
{
	field_numbers(f, key, want, WORLD_FILE_MAX_LEVELS, &out->v, &out->n);
	for (size_t i = 1; i < out->n; i++) {
		if (out->v[i] <= out->v[i - 1])
			fields_fail(f, ERR_FORMAT, key, "%g behind %g: need an ascending list", out->v[i],
				    out->v[i - 1]);
	}
}

static void read_defaults(struct fields *f, struct world_file *file)
{
	static const char *const known[] = { "samples", "epochs", NULL };
	struct fields d;

	if (!fields_need(f, "defaults") || !fields_open_member(&d, f, "defaults", known))
		return;
	fields_need(&d, "samples");
	fields_need(&d, "epochs");
	field_within(&d, "samples", &world_samples, &file->samples);
	field_within(&d, "epochs", &world_epochs, &file->epochs);
	fields_close(&d, f);
}

static void read_costs(struct fields *f, struct world_file *file)
{
	static const char *const known[] = { "fixed_s",       "record_s", "exponent",        "disk_s",
					     "disk_record_s", "device_s", "device_record_s", NULL };
	struct fields c;

	file->exponent = 1.0;
	if (!fields_need(f, "costs") || !fields_open_member(&c, f, "costs", known))
		return;
	fields_need(&c, "fixed_s");
	fields_need(&c, "record_s");
	field_within(&c, "fixed_s", &seconds, &file->fixed_s);
	field_within(&c, "record_s", &seconds, &file->record_s);
	field_within(&c, "exponent", &share, &file->exponent);
	field_within(&c, "disk_s", &seconds, &file->disk_s);
	field_within(&c, "disk_record_s", &seconds, &file->disk_record_s);
	field_within(&c, "device_s", &seconds, &file->device_s);
	field_within(&c, "device_record_s", &seconds, &file->device_record_s);
	fields_close(&c, f);
	/* Below a nanosecond the sum of many iterations would not move the clock. */
	if (file->fixed_s < 1e-9 && file->record_s < 1e-9)
		fields_fail(f, ERR_FORMAT, "costs",
			    "fixed_s or record_s must be at least 1e-9: computing takes time");
	if (world_file_has_devices(file) && file->fixed_s < 1e-9)
		fields_fail(
			f, ERR_FORMAT, "costs",
			"fixed_s must be at least 1e-9: a job with gpus computes nothing else on the cpus");
}

static void read_measured(struct fields *s, struct world_file *file)
{
	static const char *const known[] = { "measured", NULL };
	double sum = 0.0;
	struct fields d;

	file->disk_law = WORLD_DISK_MEASURED;
	if (!fields_open_member(&d, s, "disk", known))
		return;
	field_numbers(&d, "measured", &seconds, WORLD_FILE_MAX_MEASURED, &file->measured.v,
		      &file->measured.n);
	for (size_t i = 0; i < file->measured.n; i++)
		sum += file->measured.v[i];
	if (!(sum > 0.0))
		fields_fail(&d, ERR_FORMAT, "measured", "all of them are 0: their shape is asked for");
	for (size_t i = 0; i < file->measured.n && !d.rc; i++)
		file->measured.v[i] *= (double)file->measured.n / sum;
	fields_close(&d, s);
}

static void read_service(struct fields *f, struct world_file *file)
{
	static const char *const known[] = { "disk", NULL };
	const struct json *disk;
	const char *law;
	struct fields s;

	if (!fields_open_member(&s, f, "service", known))
		return;
	disk = fields_get(&s, "disk");
	law = json_string(disk, "exponential");
	if (json_get(disk, "measured"))
		read_measured(&s, file);
	else if (!strcmp(law, "constant"))
		file->disk_law = WORLD_DISK_CONSTANT;
	else if (json_type(disk) == JSON_OBJECT || strcmp(law, "exponential"))
		fields_fail(&s, ERR_FORMAT, "disk",
			    "need \"exponential\", \"constant\" or {\"measured\": [service times]}");
	fields_close(&s, f);
}

static void read_cluster(struct fields *f, struct world_file *file)
{
	char where[FIELDS_MAX_WHERE + 16];

	if (!fields_need(f, "cluster"))
		return;
	snprintf(where, sizeof where, "%s: cluster", f->where);
	f->rc = cluster_from_json(where, fields_get(f, "cluster"), &file->cluster, f->err);
}

static int read_all(struct fields *f, struct world_file *file)
{
	read_cluster(f, file);
	read_defaults(f, file);
	fields_need(f, "batches");
	world_levels(f, "batches", &batches, &file->batch);
	read_costs(f, file);
	world_factors(f, file);
	world_pairs(f, file);
	world_campaign(f, file);
	read_service(f, file);
	field_bool(f, "barrier", &file->barrier);
	world_accuracies(f, file);
	return f->rc;
}

int world_file_parse(const char *name, const char *text, size_t len, struct world_file **out, struct err *err)
{
	static const char *const known[] = { "cluster", "defaults", "batches", "levels",   "costs", "factors",
					     "pairs",   "service",  "barrier", "accuracy", NULL };
	const char *shown = text_tail(name, WORLD_NAME_SHOWN);
	struct world_file *file;
	struct json *v = NULL;
	struct fields f;
	int rc = json_parse(shown, text, len, &v, err);

	if (rc)
		return rc;
	file = mem_calloc(1, sizeof *file);
	if (file) {
		file->name = mem_strdup(name);
		file->samples = file->epochs = file->fixed_s = file->record_s = NAN;
	}
	fields_open(&f, shown, ": ", v, known, err);
	rc = file && file->name ? read_all(&f, file) : err_fail(err, ERR_NOMEM, "%s: out of memory", shown);
	json_free(v);
	if (rc)
		world_file_free(file);
	else
		*out = file;
	return rc;
}

int world_file_read(const char *path, struct world_file **out, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	int rc;

	if (!path)
		return world_file_parse("built-in world", world_file_builtin, strlen(world_file_builtin), out,
					err);
	rc = io_read_file(path, WORLD_FILE_MAX_BYTES, &text, &len, err);
	if (!rc)
		rc = world_file_parse(path, text, len, out, err);
	free(text);
	return rc;
}

void world_file_free(struct world_file *f)
{
	if (!f)
		return;
	for (size_t k = 0; k < f->n_categories; k++) {
		for (size_t i = 0; i < f->category[k].n_values; i++)
			free(f->category[k].value[i].name);
		free(f->category[k].value);
		free(f->category[k].column);
	}
	free(f->category);
	free(f->batch.v);
	free(f->cpus.v);
	free(f->njobs.v);
	free(f->epochs_levels.v);
	free(f->samples_levels.v);
	free(f->gpus.v);
	free(f->measured.v);
	free(f->log_pair);
	free(f->name);
	free(f);
}
