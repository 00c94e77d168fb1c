/* The mapping of SWF fields to jobs. See trace_swf_map.h. */
#include "sim/trace/swf_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/trace/row.h"

#define NAME_SHOWN 200
#define MAX_VALUES 256

const char *const swf_field_name[SWF_FIELDS + 1] = {
	"job",
	"submit time",
	"wait time",
	"run time",
	"allocated processors",
	"cpu time",
	"used memory",
	"requested processors",
	"requested time",
	"requested memory",
	"status",
	"user",
	"group",
	"executable",
	"queue",
	"partition",
	"preceding job",
	"think time",
	NULL,
};

/* The bytes of configs/traces/swf-map.json, by test. */
static const char builtin[] = "{\n"
			      "  \"cpus\": {\"divisor\": 1, \"cap\": 65536},\n"
			      "  \"tenant\": \"user\",\n"
			      "  \"type\": \"executable\",\n"
			      "  \"values\": {\n"
			      "    \"network\": {\"by\": \"job\", \"of\": [\"lenet5\", \"simplenet\"]},\n"
			      "    \"epochs\": 4\n"
			      "  },\n"
			      "  \"size\": {\"column\": \"samples\", \"records_per_cpu_second\": 10000, "
			      "\"min\": 1000, \"max\": 1000000000, "
			      "\"digits\": 2},\n"
			      "  \"slo\": {\"factor\": 1.5},\n"
			      "  \"take\": [\"completed\", \"failed\", \"unknown\"]\n"
			      "}\n";

const char *swf_map_builtin(void)
{
	return builtin;
}

static int fail(const char *name, const char *member, const char *reason, struct err *err)
{
	char shown[64];

	return err_fail(err, ERR_FORMAT, "%s: %s: %s", text_tail(name, NAME_SHOWN),
			text_printable(member, shown, sizeof shown), reason);
}

static int nomem(const char *name, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory for the mapping", text_tail(name, NAME_SHOWN));
}

/* "user", "queue" ...; "none" and absent: SWF_FIELDS. `all`: also those that only values may go by. */
static int read_choice(const char *name, const char *member, const struct json *v, bool all,
		       enum swf_field *out, struct err *err)
{
	static const enum swf_field fit[] = { SWF_USER,  SWF_GROUP,     SWF_EXECUTABLE,
					      SWF_QUEUE, SWF_PARTITION, SWF_JOB };
	const char *text = json_string(v, "none");

	*out = SWF_FIELDS;
	if (json_type(v) != JSON_ABSENT && json_type(v) != JSON_STRING)
		return fail(name, member, "need text: user, group, executable, queue, partition or none",
			    err);
	if (strcmp(text, "none") == 0)
		return 0;
	for (size_t i = 0; i < sizeof fit / sizeof *fit; i++)
		if (strcmp(text, swf_field_name[fit[i]]) == 0 && (all || fit[i] != SWF_JOB)) {
			*out = fit[i];
			return 0;
		}
	return fail(name, member,
		    all ? "need user, group, executable, queue, partition or job"
			: "need user, group, executable, queue, partition or none",
		    err);
}

/* A number within low..high; absent: as it was. */
static int read_number(const char *name, const char *member, const struct json *v, double low, double high,
		       double *io, struct err *err)
{
	char want[80];
	double x = json_number(v, NAN);

	if (json_type(v) == JSON_ABSENT)
		return 0;
	if (x >= low && x <= high) {
		*io = x;
		return 0;
	}
	snprintf(want, sizeof want, "need a number from %g to %g", low, high);
	return fail(name, member, want, err);
}

static int read_cpus(struct swf_map *m, const char *name, const struct json *v, struct err *err)
{
	static const char *const known[] = { "divisor", "cap", NULL };
	double cap = TRACE_MAX_CPUS;
	char where[NAME_SHOWN + 32];
	int rc;

	if (json_type(v) == JSON_ABSENT)
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return fail(name, "cpus", "need an object", err);
	snprintf(where, sizeof where, "%s: cpus", text_tail(name, NAME_SHOWN));
	if ((rc = json_known_keys(v, where, known, err)) ||
	    (rc = read_number(name, "cpus.divisor", json_get(v, "divisor"), 1e-6, 1e6, &m->divisor, err)) ||
	    (rc = read_number(name, "cpus.cap", json_get(v, "cap"), 1, TRACE_MAX_CPUS, &cap, err)))
		return rc;
	m->cap = (uint32_t)cap;
	return 0;
}

/* ---- values ---- */

/* The value as text: of a string itself, of a number its shortest form. */
static bool value_text(const struct json *v, char *buf, const char **out)
{
	if (json_type(v) == JSON_STRING)
		*out = json_string(v, "");
	else if (json_type(v) == JSON_NUMBER)
		*out = text_shortest(json_number(v, 0.0), buf);
	else
		return false;
	return **out && strlen(*out) <= TRACE_MAX_VALUE;
}

static int add_value(struct swf_map *m, struct swf_values *c, const char *name, const struct json *v,
		     struct err *err)
{
	void *numbers = m->number;
	const char *text = NULL;
	char buf[32];

	if (!value_text(v, buf, &text) || c->n_of == MAX_VALUES)
		return fail(name, c->name, "need texts or numbers, at most 256 of at most 128 bytes", err);
	if (text == buf) {
		if (mem_grow(&numbers, &m->cap_numbers, m->n_numbers + 1, sizeof *m->number))
			return nomem(name, err);
		m->number = numbers;
		text = m->number[m->n_numbers] = mem_strdup(buf);
		if (!text)
			return nomem(name, err);
		m->n_numbers++;
	}
	c->of[c->n_of++] = text;
	return 0;
}

static int read_map(struct swf_values *c, const char *name, const struct json *v, struct err *err)
{
	char buf[32];
	const char *text;
	uint64_t number;

	if (json_type(v) == JSON_ABSENT)
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return fail(name, c->name, "map: need an object such as {\"1\": \"lenet5\"}", err);
	for (const struct json *e = json_first(v); e; e = json_next(e))
		if (!text_uint64(json_key(e), &number) || !value_text(e, buf, &text))
			return fail(name, c->name,
				    "map: need numbers of the field as names, texts or numbers as values",
				    err);
	c->map = v;
	return 0;
}

static int read_values(struct swf_map *m, struct swf_values *c, const char *name, const struct json *v,
		       struct err *err)
{
	static const char *const known[] = { "by", "map", "of", NULL };
	const struct json *of = json_get(v, "of");
	char where[NAME_SHOWN + TRACE_MAX_VALUE + 32];
	int rc;

	if (json_type(v) != JSON_OBJECT) { /* the same for all jobs */
		c->by = SWF_FIELDS;
		return add_value(m, c, name, v, err);
	}
	snprintf(where, sizeof where, "%s: values.%.100s", text_tail(name, NAME_SHOWN), c->name);
	if ((rc = json_known_keys(v, where, known, err)) ||
	    (rc = read_choice(name, c->name, json_get(v, "by"), true, &c->by, err)) ||
	    (rc = read_map(c, name, json_get(v, "map"), err)))
		return rc;
	if (c->by == SWF_FIELDS)
		return fail(name, c->name,
			    "by: which field? user, group, executable, queue, partition or job", err);
	if (json_type(of) != JSON_ARRAY && !(json_type(of) == JSON_ABSENT && c->map))
		return fail(name, c->name, "of: need a list of values to draw from", err);
	for (const struct json *e = json_first(of); e; e = json_next(e))
		if ((rc = add_value(m, c, name, e, err)))
			return rc;
	if (c->n_of == 0 && !c->map)
		return fail(name, c->name, "of: need at least one value", err);
	return 0;
}

static int read_columns(struct swf_map *m, const char *name, const struct json *v, struct err *err)
{
	int rc;

	if (json_type(v) == JSON_ABSENT)
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return fail(name, "values", "need an object: column -> value", err);
	for (const struct json *e = json_first(v); e; e = json_next(e)) {
		struct swf_values *c = &m->column[m->n_columns];
		enum trace_field f = trace_field_of(json_key(e));

		if (m->n_columns == TRACE_MAX_COLUMNS - 1) /* one is for the size */
			return fail(name, "values", "too many columns", err);
		if (f != TRACE_FIELDS && f != TRACE_EPOCHS)
			return fail(name, json_key(e), "is a field of its own, not a column of values", err);
		c->name = json_key(e);
		c->of = mem_array(MAX_VALUES, sizeof *c->of);
		if (!c->of)
			return nomem(name, err);
		m->n_columns++;
		if ((rc = read_values(m, c, name, e, err)))
			return rc;
	}
	return 0;
}

/* ---- the rest ---- */

static int read_size(struct swf_map *m, const char *name, const struct json *v, struct err *err)
{
	static const char *const known[] = {
		"column", "records_per_cpu_second", "min", "max", "digits", NULL
	};
	const char *column = json_string(json_get(v, "column"), "");
	char where[NAME_SHOWN + 32];
	double digits = 2;
	int rc;

	if (json_type(v) == JSON_ABSENT || json_type(v) == JSON_NULL)
		return 0;
	if (json_type(v) != JSON_OBJECT || !*column || strlen(column) > TRACE_MAX_VALUE ||
	    trace_field_of(column) != TRACE_FIELDS)
		return fail(name, "size", "need an object with the name of a column of values", err);
	for (size_t i = 0; i < m->n_columns; i++)
		if (strcmp(m->column[i].name, column) == 0)
			return fail(name, "size", "its column is among the values too", err);
	snprintf(where, sizeof where, "%s: size", text_tail(name, NAME_SHOWN));
	m->size_min = 1.0;
	m->size_max = 1e12;
	m->records_per_cpu_second = NAN;
	if ((rc = json_known_keys(v, where, known, err)) ||
	    (rc = read_number(name, "size.records_per_cpu_second", json_get(v, "records_per_cpu_second"),
			      1e-9, 1e12, &m->records_per_cpu_second, err)) ||
	    (rc = read_number(name, "size.min", json_get(v, "min"), 1, 1e12, &m->size_min, err)) ||
	    (rc = read_number(name, "size.max", json_get(v, "max"), m->size_min, 1e12, &m->size_max, err)) ||
	    (rc = read_number(name, "size.digits", json_get(v, "digits"), 1, 15, &digits, err)))
		return rc;
	if (isnan(m->records_per_cpu_second))
		return fail(name, "size.records_per_cpu_second", "missing", err);
	m->digits = (int)digits;
	snprintf(m->size, sizeof m->size, "%s", column);
	return 0;
}

static int read_slo(struct swf_map *m, const char *name, const struct json *v, struct err *err)
{
	static const char *const known[] = { "factor", NULL };
	char where[NAME_SHOWN + 32];
	int rc;

	if (json_type(v) == JSON_ABSENT || json_type(v) == JSON_NULL)
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return fail(name, "slo", "need an object with a factor, or null", err);
	snprintf(where, sizeof where, "%s: slo", text_tail(name, NAME_SHOWN));
	m->slo_factor = 1.0;
	if ((rc = json_known_keys(v, where, known, err)))
		return rc;
	return read_number(name, "slo.factor", json_get(v, "factor"), 1e-6, 1e6, &m->slo_factor, err);
}

static int read_take(struct swf_map *m, const char *name, const struct json *v, struct err *err)
{
	static const char *const state[SWF_STATES] = { "failed", "completed", "cancelled", "unknown" };

	if (json_type(v) == JSON_ABSENT) {
		m->take[SWF_COMPLETED] = m->take[SWF_FAILED] = m->take[SWF_UNKNOWN] = true;
		return 0;
	}
	if (json_type(v) != JSON_ARRAY)
		return fail(name, "take", "need a list of completed, failed, cancelled, unknown", err);
	for (const struct json *e = json_first(v); e; e = json_next(e)) {
		int i = 0;

		while (i < SWF_STATES && strcmp(json_string(e, ""), state[i]) != 0)
			i++;
		if (i == SWF_STATES)
			return fail(name, "take", "need a list of completed, failed, cancelled, unknown",
				    err);
		m->take[i] = true;
	}
	return 0;
}

int swf_map_parse(const char *name, const char *text, size_t len, struct swf_map *out, struct err *err)
{
	static const char *const known[] = { "cpus", "tenant", "type",  "values", "size",
					     "slo",  "take",   "about", NULL };
	struct swf_map *m = out;
	int rc;

	*m = (struct swf_map){ .divisor = 1.0, .cap = TRACE_MAX_CPUS, .slo_factor = NAN };
	if (!text) {
		name = "the built-in mapping";
		text = builtin;
		len = sizeof builtin - 1;
	}
	if ((rc = json_parse(name, text, len, &m->root, err)))
		return rc;
	if (json_type(m->root) != JSON_OBJECT)
		return fail(name, "the mapping", "need an object", err);
	if ((rc = json_known_keys(m->root, text_tail(name, NAME_SHOWN), known, err)) ||
	    (rc = read_cpus(m, name, json_get(m->root, "cpus"), err)) ||
	    (rc = read_choice(name, "tenant", json_get(m->root, "tenant"), false, &m->tenant, err)) ||
	    (rc = read_choice(name, "type", json_get(m->root, "type"), false, &m->type, err)) ||
	    (rc = read_columns(m, name, json_get(m->root, "values"), err)) ||
	    (rc = read_size(m, name, json_get(m->root, "size"), err)) ||
	    (rc = read_slo(m, name, json_get(m->root, "slo"), err)))
		return rc;
	return read_take(m, name, json_get(m->root, "take"), err);
}

void swf_map_release(struct swf_map *m)
{
	for (size_t i = 0; i < m->n_columns; i++)
		free(m->column[i].of);
	for (size_t i = 0; i < m->n_numbers; i++)
		free(m->number[i]);
	free(m->number);
	json_free(m->root);
	*m = (struct swf_map){ 0 };
}
