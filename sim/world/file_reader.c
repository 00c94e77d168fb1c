/* Numbers, names and lists of a world file, with errors that name the file and the key. */
#include "sim/world/file_reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/trace/trace.h"

#define FACTOR_LEAST 1e-9
#define FACTOR_MOST 1e9

const struct world_range world_batch_range = { 1.0, WORLD_FILE_MAX_BATCH, true };
const struct world_range world_samples_range = { 1.0, WORLD_FILE_MAX_SAMPLES, true };
const struct world_range world_epochs_range = { 1.0, WORLD_FILE_MAX_EPOCHS, true };
const struct world_range world_cpus_range = { 1.0, TRACE_MAX_CPUS, true };
const struct world_range world_njobs_range = { 1.0, WORLD_FILE_MAX_NJOBS, true };
const struct world_range world_seconds_range = { 0.0, WORLD_FILE_MAX_SECONDS, false };
const struct world_range world_share_range = { 0.0, 1.0, false };
const struct world_range world_factor_range = { FACTOR_LEAST, FACTOR_MOST, false };

int world_reader_refuse(const struct world_reader *r, const char *key, const char *fmt, ...)
{
	char reason[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof reason, fmt, args);
	va_end(args);
	return err_fail(r->err, ERR_FORMAT, "%s: %s: %s", r->name, key, reason);
}

int world_reader_nomem(const struct world_reader *r)
{
	return err_fail(r->err, ERR_NOMEM, "%s: out of memory", r->name);
}

/* "FILE: key" for those who want to know where. */
int world_reader_known_keys(const struct world_reader *r, const char *key, const struct json *object,
			    const char *const *known)
{
	char where[WORLD_READER_NAME + 2 * TRACE_MAX_VALUE];

	snprintf(where, sizeof where, "%s%s%s", r->name, *key ? ": " : "", key);
	return json_known_keys(object, where, known, r->err);
}

/* ---- numbers, names, lists ---- */

static int check_range(const struct world_reader *r, const char *key, double v,
		       const struct world_range *want)
{
	if (v < want->least || v > want->most || (want->whole && v != floor(v)))
		return world_reader_refuse(r, key, "%g: need a %snumber from %g to %g", v,
					   want->whole ? "whole " : "", want->least, want->most);
	return 0;
}

/* A member of the object at `where`; absent: *out stays as it is, and NaN there means that it must be
 * given. */
int world_reader_number(const struct world_reader *r, const char *where, const struct json *object,
			const char *key, const struct world_range *want, double *out)
{
	const struct json *v = json_get(object, key);
	char full[3 * TRACE_MAX_VALUE];
	int rc;

	snprintf(full, sizeof full, "%s.%s", where, key);
	if (!v)
		return isnan(*out) ? world_reader_refuse(r, full, "is not given") : 0;
	if (json_type(v) != JSON_NUMBER)
		return world_reader_refuse(r, full, "need a number");
	rc = check_range(r, full, json_number(v, NAN), want);
	if (!rc)
		*out = json_number(v, NAN);
	return rc;
}

int world_reader_check_name(const struct world_reader *r, const char *key, const char *name)
{
	size_t len = strlen(name);
	char shown[64];

	if (len >= 1 && len <= TRACE_MAX_VALUE && name[strcspn(name, ",=\"\r\n\t")] == '\0')
		return 0;
	return world_reader_refuse(r, key,
				   "'%s': a name has 1 to %d bytes and no comma, '=', quote or line end",
				   text_printable(name, shown, sizeof shown), TRACE_MAX_VALUE);
}

int world_reader_list(const struct world_reader *r, const char *key, const struct json *v, size_t most,
		      const struct world_range *want, struct world_list *out)
{
	size_t n = json_size(v);

	if (json_type(v) != JSON_ARRAY || n < 1 || n > most)
		return world_reader_refuse(r, key, "need a list of 1 to %zu numbers", most);
	free(out->v);
	out->n = 0;
	out->v = mem_array(n, sizeof *out->v);
	if (!out->v)
		return world_reader_nomem(r);
	for (const struct json *e = json_first(v); e; e = json_next(e)) {
		int rc = json_type(e) != JSON_NUMBER
				 ? world_reader_refuse(r, key, "number %zu of the list is none", out->n + 1)
				 : check_range(r, key, json_number(e, NAN), want);

		if (rc)
			return rc;
		out->v[out->n++] = json_number(e, NAN);
	}
	return 0;
}

int world_reader_levels(const struct world_reader *r, const char *key, const struct json *v,
			const struct world_range *want, struct world_list *out)
{
	int rc = world_reader_list(r, key, v, WORLD_FILE_MAX_LEVELS, want, out);

	for (size_t i = 1; !rc && i < out->n; i++)
		if (out->v[i] <= out->v[i - 1])
			rc = world_reader_refuse(r, key, "%g behind %g: need an ascending list", out->v[i],
						 out->v[i - 1]);
	return rc;
}
