/* Strict reading of a world file: every key known, every number in its range, lists ascending. What the
 * numbers mean for a job is in world_file_work(); world_queueing_kinds.c binds the kinds of a trace to it. */
#include "sim/world/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "sim/world/file_reader.h"

/* ---- parts of the file ---- */

static int read_defaults(const struct world_reader *r, const struct json *v)
{
	static const char *const known[] = { "samples", "epochs", NULL };
	int rc = world_reader_known_keys(r, "defaults", v, known);

	if (!rc)
		rc = world_reader_number(r, "defaults", v, "samples", &world_samples_range,
					 &r->file->samples);
	if (!rc)
		rc = world_reader_number(r, "defaults", v, "epochs", &world_epochs_range, &r->file->epochs);
	return rc;
}

static int read_costs(const struct world_reader *r, const struct json *v)
{
	static const char *const known[] = { "fixed_s", "record_s",      "exponent",
					     "disk_s",  "disk_record_s", NULL };
	struct world_file *f = r->file;
	int rc = world_reader_known_keys(r, "costs", v, known);

	f->exponent = 1.0;
	if (!rc)
		rc = world_reader_number(r, "costs", v, "fixed_s", &world_seconds_range, &f->fixed_s);
	if (!rc)
		rc = world_reader_number(r, "costs", v, "record_s", &world_seconds_range, &f->record_s);
	if (!rc)
		rc = world_reader_number(r, "costs", v, "exponent", &world_share_range, &f->exponent);
	if (!rc)
		rc = world_reader_number(r, "costs", v, "disk_s", &world_seconds_range, &f->disk_s);
	if (!rc)
		rc = world_reader_number(r, "costs", v, "disk_record_s", &world_seconds_range,
					 &f->disk_record_s);
	/* Below a nanosecond the sum of many iterations would not move the clock. */
	if (!rc && f->fixed_s < 1e-9 && f->record_s < 1e-9)
		rc = world_reader_refuse(r, "costs",
					 "fixed_s or record_s must be at least 1e-9: computing takes time");
	return rc;
}

static int read_service(const struct world_reader *r, const struct json *v)
{
	static const char *const known[] = { "disk", NULL }, *const known_law[] = { "measured", NULL };
	const struct json *disk = json_get(v, "disk");
	const char *law = json_string(disk, NULL);
	struct world_file *f = r->file;
	double sum = 0.0;
	int rc = v ? world_reader_known_keys(r, "service", v, known) : 0;

	if (rc || !disk)
		return rc;
	if (law && !strcmp(law, "exponential"))
		return 0;
	if (law && !strcmp(law, "constant")) {
		f->disk_law = WORLD_DISK_CONSTANT;
		return 0;
	}
	if (json_type(disk) != JSON_OBJECT || !json_get(disk, "measured"))
		return world_reader_refuse(
			r, "service.disk",
			"need \"exponential\", \"constant\" or {\"measured\": [service times]}");
	f->disk_law = WORLD_DISK_MEASURED;
	rc = world_reader_known_keys(r, "service.disk", disk, known_law);
	if (!rc)
		rc = world_reader_list(r, "service.disk.measured", json_get(disk, "measured"),
				       WORLD_FILE_MAX_MEASURED, &world_seconds_range, &f->measured);
	for (size_t i = 0; !rc && i < f->measured.n; i++)
		sum += f->measured.v[i];
	if (!rc && !(sum > 0.0))
		rc = world_reader_refuse(r, "service.disk.measured",
					 "all of them are 0: their shape is asked for");
	for (size_t i = 0; !rc && i < f->measured.n; i++)
		f->measured.v[i] *= (double)f->measured.n / sum;
	return rc;
}

static int read_cluster(const struct world_reader *r, const struct json *v)
{
	char where[WORLD_READER_NAME + 16];

	if (!v)
		return world_reader_refuse(r, "cluster", "is not given");
	snprintf(where, sizeof where, "%s: cluster", r->name);
	return cluster_from_json(where, v, &r->file->cluster, r->err);
}

static int read_barrier(const struct world_reader *r, const struct json *v)
{
	if (v && json_type(v) != JSON_BOOL)
		return world_reader_refuse(r, "barrier", "need true or false");
	r->file->barrier = json_bool(v, false);
	return 0;
}

static int read_all(const struct world_reader *r, const struct json *v)
{
	static const char *const known[] = { "cluster", "defaults", "batches", "levels",   "costs",
					     "factors", "service",  "barrier", "accuracy", NULL };
	int rc = world_reader_known_keys(r, "", v, known);

	if (!rc)
		rc = read_cluster(r, json_get(v, "cluster"));
	if (!rc)
		rc = json_get(v, "defaults") ? read_defaults(r, json_get(v, "defaults"))
					     : world_reader_refuse(r, "defaults", "is not given");
	if (!rc)
		rc = json_get(v, "batches") ? world_reader_levels(r, "batches", json_get(v, "batches"),
								  &world_batch_range, &r->file->batch)
					    : world_reader_refuse(r, "batches", "is not given");
	if (!rc)
		rc = json_get(v, "costs") ? read_costs(r, json_get(v, "costs"))
					  : world_reader_refuse(r, "costs", "is not given");
	if (!rc)
		rc = world_reader_factors(r, json_get(v, "factors"));
	if (!rc)
		rc = world_reader_campaign(r, json_get(v, "levels"));
	if (!rc)
		rc = read_service(r, json_get(v, "service"));
	if (!rc)
		rc = read_barrier(r, json_get(v, "barrier"));
	if (!rc)
		rc = world_reader_accuracies(r, json_get(v, "accuracy"));
	return rc;
}

int world_file_parse(const char *name, const char *text, size_t len, struct world_file **out, struct err *err)
{
	struct world_reader r = { .name = text_tail(name, WORLD_READER_NAME), .err = err };
	struct json *v = NULL;
	int rc = json_parse(r.name, text, len, &v, err);

	if (rc)
		return rc;
	r.file = mem_calloc(1, sizeof *r.file);
	if (r.file) {
		r.file->name = mem_strdup(name);
		r.file->samples = r.file->epochs = r.file->fixed_s = r.file->record_s = NAN;
	}
	rc = r.file && r.file->name ? read_all(&r, v) : world_reader_nomem(&r);
	json_free(v);
	if (rc)
		world_file_free(r.file);
	else
		*out = r.file;
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
	free(f->measured.v);
	free(f->name);
	free(f);
}
