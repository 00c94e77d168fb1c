/* The mapping of SWF fields to jobs. See swf_map.h. */
#include "sim/trace/swf_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/fields.h"
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

/* As in configs/traces/swf-map.json; a test compares them. */
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

/* "user", "queue" ...; "none" and absent: SWF_FIELDS. `all`: also those that only values may go by. */
static void read_choice(struct fields *f, const char *key, bool all, enum swf_field *out)
{
	static const enum swf_field fit[] = { SWF_USER,  SWF_GROUP,     SWF_EXECUTABLE,
					      SWF_QUEUE, SWF_PARTITION, SWF_JOB };
	const char *text = "none";

	*out = SWF_FIELDS;
	field_string(f, key, TRACE_MAX_VALUE, &text);
	if (strcmp(text, "none") == 0)
		return;
	for (size_t i = 0; i < sizeof fit / sizeof *fit; i++)
		if (strcmp(text, swf_field_name[fit[i]]) == 0 && (all || fit[i] != SWF_JOB)) {
			*out = fit[i];
			return;
		}
	fields_fail(f, ERR_FORMAT, key, "need user, group, executable, queue, partition or %s",
		    all ? "job" : "none");
}

static void read_cpus(struct fields *f, struct swf_map *m)
{
	static const char *const known[] = { "divisor", "cap", NULL };
	double cap = TRACE_MAX_CPUS;
	struct fields c;

	if (!fields_open_member(&c, f, "cpus", known))
		return;
	field_number(&c, "divisor", 1e-6, 1e6, &m->divisor);
	field_number(&c, "cap", 1, TRACE_MAX_CPUS, &cap);
	fields_close(&c, f);
	m->cap = (uint32_t)cap;
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

static void add_value(struct fields *f, const char *key, struct swf_map *m, struct swf_values *c,
		      const struct json *v)
{
	void *numbers = m->number;
	const char *text = NULL;
	char buf[TEXT_NUMBER];

	if (!value_text(v, buf, &text) || c->n_of == MAX_VALUES) {
		fields_fail(f, ERR_FORMAT, key, "need texts or numbers, at most 256 of at most 128 bytes");
		return;
	}
	if (text == buf) {
		if (mem_grow(&numbers, &m->cap_numbers, m->n_numbers + 1, sizeof *m->number)) {
			fields_nomem(f, key);
			return;
		}
		m->number = numbers;
		text = m->number[m->n_numbers] = mem_strdup(buf);
		if (!text) {
			fields_nomem(f, key);
			return;
		}
		m->n_numbers++;
	}
	c->of[c->n_of++] = text;
}

static void read_map(struct fields *f, struct swf_values *c)
{
	char buf[TEXT_NUMBER];
	const char *text;
	struct fields map;
	uint64_t number;

	if (!fields_open_member(&map, f, "map", NULL))
		return;
	for (const struct json *e = json_first(map.object); e; e = json_next(e))
		if (!text_uint64(json_key(e), &number) || !value_text(e, buf, &text))
			fields_fail(f, ERR_FORMAT, "map",
				    "need numbers of the field as names, texts or numbers as values");
	c->map = map.object;
}

static void read_values(struct fields *all, struct swf_map *m, struct swf_values *c, const struct json *v)
{
	static const char *const known[] = { "by", "map", "of", NULL };
	const struct json *of;
	struct fields f;

	if (json_type(v) != JSON_OBJECT) { /* the same for all jobs */
		c->by = SWF_FIELDS;
		add_value(all, c->name, m, c, v);
		return;
	}
	if (!fields_open_value(&f, all, c->name, v, known))
		return;
	read_choice(&f, "by", true, &c->by);
	if (c->by == SWF_FIELDS)
		fields_fail(&f, ERR_FORMAT, "by",
			    "which field? user, group, executable, queue, partition or job");
	read_map(&f, c);
	of = fields_list(&f, "of", c->map ? 0 : 1, MAX_VALUES);
	if (!c->map)
		fields_need(&f, "of");
	for (const struct json *e = json_first(of); e && !f.rc; e = json_next(e))
		add_value(&f, "of", m, c, e);
	fields_close(&f, all);
}

static void read_columns(struct fields *f, struct swf_map *m)
{
	struct fields all;

	if (!fields_open_member(&all, f, "values", NULL))
		return;
	for (const struct json *e = json_first(all.object); e && !all.rc; e = json_next(e)) {
		struct swf_values *c = &m->column[m->n_columns];
		enum trace_field field = trace_field_of(json_key(e));

		if (m->n_columns == TRACE_MAX_COLUMNS - 1) /* one is for the size */
			fields_fail(f, ERR_FORMAT, "values", "too many columns");
		if (field != TRACE_FIELDS && field != TRACE_EPOCHS)
			fields_fail(&all, ERR_FORMAT, json_key(e),
				    "is a field of the job, not a column of values");
		fields_close(f, &all);
		if (all.rc)
			break;
		c->name = json_key(e);
		c->of = mem_array(MAX_VALUES, sizeof *c->of);
		if (!c->of) {
			fields_nomem(&all, c->name);
			break;
		}
		m->n_columns++;
		read_values(&all, m, c, e);
	}
	fields_close(&all, f);
}

/* ---- the rest ---- */

static void read_size(struct fields *f, struct swf_map *m)
{
	static const char *const known[] = {
		"column", "records_per_cpu_second", "min", "max", "digits", NULL
	};
	const char *column = "";
	double digits = 2;
	struct fields s;

	if (!fields_open_member(&s, f, "size", known))
		return;
	m->size_min = 1.0;
	m->size_max = 1e12;
	field_string(&s, "column", TRACE_MAX_VALUE, &column);
	if (!*column || trace_field_of(column) != TRACE_FIELDS)
		fields_fail(&s, ERR_FORMAT, "column", "need the name of a column of values");
	for (size_t i = 0; i < m->n_columns; i++)
		if (strcmp(m->column[i].name, column) == 0)
			fields_fail(&s, ERR_FORMAT, "column", "it is among the values too");
	fields_need(&s, "records_per_cpu_second");
	field_number(&s, "records_per_cpu_second", 1e-9, 1e12, &m->records_per_cpu_second);
	field_number(&s, "min", 1, 1e12, &m->size_min);
	field_number(&s, "max", m->size_min, 1e12, &m->size_max);
	field_number(&s, "digits", 1, 15, &digits);
	fields_close(&s, f);
	m->digits = (int)digits;
	snprintf(m->size, sizeof m->size, "%s", column);
}

static void read_slo(struct fields *f, struct swf_map *m)
{
	static const char *const known[] = { "factor", NULL };
	struct fields s;

	if (!fields_open_member(&s, f, "slo", known))
		return;
	m->slo_factor = 1.0;
	field_number(&s, "factor", 1e-6, 1e6, &m->slo_factor);
	fields_close(&s, f);
}

static void read_take(struct fields *f, struct swf_map *m)
{
	static const char *const state[SWF_STATES] = { "failed", "completed", "cancelled", "unknown" };
	const struct json *list = fields_list(f, "take", 0, SIZE_MAX);

	if (!fields_get(f, "take"))
		m->take[SWF_COMPLETED] = m->take[SWF_FAILED] = m->take[SWF_UNKNOWN] = true;
	for (const struct json *e = json_first(list); e; e = json_next(e)) {
		int i = 0;

		while (i < SWF_STATES && strcmp(json_string(e, ""), state[i]) != 0)
			i++;
		if (i == SWF_STATES)
			fields_fail(f, ERR_FORMAT, "take",
				    "need a list of completed, failed, cancelled, unknown");
		else
			m->take[i] = true;
	}
}

int swf_map_parse(const char *name, const char *text, size_t len, struct swf_map *out, struct err *err)
{
	static const char *const known[] = { "cpus", "tenant", "type",  "values", "size",
					     "slo",  "take",   "about", NULL };
	struct swf_map *m = out;
	struct fields f;
	int rc;

	*m = (struct swf_map){ .divisor = 1.0, .cap = TRACE_MAX_CPUS, .slo_factor = NAN };
	if (!text) {
		name = "the built-in mapping";
		text = builtin;
		len = sizeof builtin - 1;
	}
	if ((rc = json_parse(name, text, len, &m->root, err)))
		return rc;
	fields_open(&f, text_tail(name, NAME_SHOWN), ": ", m->root, known, err);
	read_cpus(&f, m);
	read_choice(&f, "tenant", false, &m->tenant);
	read_choice(&f, "type", false, &m->type);
	read_columns(&f, m);
	read_size(&f, m);
	read_slo(&f, m);
	read_take(&f, m);
	return f.rc;
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
