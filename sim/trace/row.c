/* One job of our own trace format, field by field. See row.h. */
#include "sim/trace/row.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/text/text.h"

#define NAME_SHOWN 200
#define SHOWN 48 /* bytes of the user's text in a message */

const char *const trace_field_name[TRACE_FIELDS + 1] = {
	[TRACE_ARRIVAL] = "arrival_s",
	[TRACE_SLO] = "slo_s",
	[TRACE_CPUS] = "cpus",
	[TRACE_ID] = "id",
	[TRACE_CONFIDENCE] = "confidence",
	[TRACE_TENANT] = "tenant",
	[TRACE_WEIGHT] = "weight",
	[TRACE_TYPE] = "type",
	[TRACE_PRIORITY] = "priority",
	[TRACE_BEST_EFFORT] = "best_effort",
	[TRACE_RECURRING] = "recurring",
	[TRACE_BATCHES] = "batches",
	[TRACE_EPOCHS] = "epochs",
	[TRACE_MEMORY] = "memory_mb",
	[TRACE_MEMORY_PER_RECORD] = "memory_mb_per_record",
	[TRACE_VALUE] = "value",
	[TRACE_MAY_STOP] = "may_stop",
	[TRACE_CHANCE] = "chance",
	[TRACE_STEER] = "steer",
};

enum trace_field trace_field_of(const char *name)
{
	int f = 0;

	while (f < TRACE_FIELDS && strcmp(trace_field_name[f], name) != 0)
		f++;
	return (enum trace_field)f;
}

/* ---- times ---- */

bool trace_seconds_parse(const char *text, int64_t *out_ns)
{
	const char *s = text;
	uint64_t whole = 0, part = 0, unit = 1000000000;
	double v;

	for (; *s >= '0' && *s <= '9' && s - text < 10; s++)
		whole = 10 * whole + (uint64_t)(*s - '0');
	if (s > text && *s == '.') {
		for (s++; *s >= '0' && *s <= '9' && unit > 1; s++) {
			part = 10 * part + (uint64_t)(*s - '0');
			unit /= 10;
		}
		part *= unit;
		part += *s >= '5' && *s <= '9'; /* the tenth digit rounds */
		while (*s >= '0' && *s <= '9')
			s++;
	}
	if (s == text || *s) { /* exponents, signs */
		if (!text_number(text, &v) || !(v >= 0.0 && v <= TRACE_MAX_ARRIVAL_S))
			return false;
		*out_ns = (int64_t)llround(v * 1e9);
		return true;
	}
	if (whole > (uint64_t)TRACE_MAX_ARRIVAL_S)
		return false;
	*out_ns = (int64_t)(whole * 1000000000 + part);
	return (double)*out_ns <= TRACE_MAX_ARRIVAL_S * 1e9;
}

char *trace_seconds_text(int64_t ns, char *buf)
{
	int64_t part = ns % 1000000000;
	int len = snprintf(buf, 32, "%" PRId64, ns / 1000000000);

	if (part) {
		len += snprintf(buf + len, (size_t)(32 - len), ".%09" PRId64, part);
		while (buf[len - 1] == '0')
			buf[--len] = '\0';
	}
	return buf;
}

static int bad(struct err *err, const char *text, const char *want)
{
	char shown[SHOWN];

	return err_fail(err, ERR_FORMAT, "'%s' is not %s", text_printable(text, shown, sizeof shown), want);
}

static int read_arrival(struct trace_row *r, const char *text, struct err *err)
{
	int64_t ns = 0;
	enum arrival_style style;

	if (trace_seconds_parse(text, &ns))
		style = ARRIVAL_SECONDS;
	else if (text_utc_parse(text, &ns))
		style = ARRIVAL_TIME;
	else
		return bad(err, text,
			   "a number of seconds from 0 to 3.2e9 or a time such as 2026-11-16T10:00:00Z");
	if (r->style == ARRIVAL_UNKNOWN && style == ARRIVAL_TIME)
		trace_build_absolute(r->build);
	if (r->style != ARRIVAL_UNKNOWN && r->style != style)
		return bad(err, text,
			   r->style == ARRIVAL_TIME ? "a time, as the ones before are"
						    : "a number of seconds, as the ones before are");
	r->style = style;
	r->job.arrival_ns = ns;
	r->has_arrival = true;
	return 0;
}

static int read_slo(struct trace_row *r, const char *text, struct err *err)
{
	double v = 0.0;

	if (!text_number(text, &v) && text_duration(text, &v, NULL))
		return bad(err, text, "a duration: 300, 5m, 2h");
	if (!(v > 0.0 && v <= TRACE_MAX_ARRIVAL_S))
		return bad(err, text, "above 0 and at most 3.2e9 s");
	r->job.slo_s = v;
	return 0;
}

/* ---- numbers ---- */

static int read_whole(const char *text, double low, double high, double *out, struct err *err)
{
	char want[80];
	double v = 0.0;

	if (text_number(text, &v) && v == floor(v) && v >= low && v <= high) {
		*out = v + 0.0;
		return 0;
	}
	snprintf(want, sizeof want, "a whole number from %.0f to %.0f", low, high);
	return bad(err, text, want);
}

static int read_id(const char *text, bool zero, uint64_t *out, struct err *err)
{
	uint64_t v = 0;

	if (!text_uint64(text, &v) || (v == 0 && !zero))
		return bad(err, text, zero ? "a whole number, 0 or more" : "a whole number above 0");
	*out = v;
	return 0;
}

static int read_positive(const char *text, bool zero, double *out, struct err *err)
{
	double v = 0.0;

	if (!text_number(text, &v) || !(zero ? v >= 0.0 : v > 0.0) || v > 1e12)
		return bad(err, text, zero ? "a number from 0 to 1e12" : "a number above 0, at most 1e12");
	*out = v + 0.0;
	return 0;
}

static int read_flag(const char *text, bool *out, struct err *err)
{
	static const char *const yes[] = { "1", "true", "yes" }, *const no[] = { "0", "false", "no" };

	for (size_t i = 0; i < 3; i++)
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*out = strcasecmp(text, yes[i]) == 0;
			return 0;
		}
	return bad(err, text, "true or false");
}

/* "64|128|256", in any order. */
static int read_batches(struct trace_row *r, const char *text, struct err *err)
{
	static const struct text_limits size = { .min = 0.0, .max = 1e12 };
	size_t n = 0;

	if (text_list(text, '|', &size, TRACE_MAX_BATCHES, r->batch, &n, err)) {
		if (err)
			err->code = ERR_FORMAT;
		return -ERR_FORMAT;
	}
	if (text_distinct(r->batch, n, NULL))
		return bad(err, text, "a list of different sizes");
	if (!(r->batch[0] > 0.0))
		return bad(err, text, "a list of sizes above 0");
	r->kind.batch = r->batch;
	r->kind.n_batches = n;
	return 0;
}

/* "4" is a value as any other; "1..4" leaves them open. */
static int read_epochs(struct trace_row *r, size_t column, const char *text, struct err *err)
{
	double from, to;
	int rc;

	if (!strstr(text, "..")) {
		if ((rc = read_positive(text, false, &from, err)))
			return rc;
		r->value[column] = text;
		return 0;
	}
	if (!text_range(text, &from, &to) || from < 1.0 || from > to || to > 1e6)
		return bad(err, text, "a range of epochs such as 1..4, from 1 to 1e6");
	r->kind.epochs_from = from;
	r->kind.epochs_to = to;
	return 0;
}

/* ---- rows ---- */

void trace_row_init(struct trace_row *r, struct trace_build *b)
{
	*r = (struct trace_row){ .build = b };
}

void trace_row_begin(struct trace_row *r, uint32_t line)
{
	size_t n = trace_build_columns(r->build);

	r->line = line;
	r->has_arrival = false;
	r->job = (struct trace_job){ .slo_s = NAN, .confidence = NAN, .type = -1, .line = line };
	r->tenant = r->type = NULL;
	r->weight = NAN;
	r->kind = (struct trace_kind_text){
		.value = r->value,
		.cpus = 1,
		.epochs_from = NAN,
		.epochs_to = NAN,
		.memory_mb = NAN,
		.memory_mb_per_record = NAN,
	};
	for (size_t i = 0; i < n; i++)
		r->value[i] = NULL;
}

int trace_row_field(struct trace_row *r, enum trace_field f, size_t column, const char *text, struct err *err)
{
	double v = 0.0;
	int rc = 0;

	if (!*text)
		return f == TRACE_ARRIVAL ? err_fail(err, ERR_FORMAT, "it is empty: when did the job arrive?")
					  : 0;
	switch (f) {
	case TRACE_ARRIVAL: return read_arrival(r, text, err);
	case TRACE_SLO: return read_slo(r, text, err);
	case TRACE_CPUS:
		rc = read_whole(text, 1, TRACE_MAX_CPUS, &v, err);
		r->kind.cpus = (uint32_t)v;
		return rc;
	case TRACE_ID: return read_id(text, false, &r->job.id, err);
	case TRACE_CONFIDENCE:
		if (!text_number(text, &r->job.confidence) ||
		    !(r->job.confidence > 0.0 && r->job.confidence < 1.0))
			return bad(err, text, "a number between 0 and 1, such as 0.9");
		return 0;
	case TRACE_TENANT: r->tenant = text; return 0;
	case TRACE_WEIGHT:
		if (!text_number(text, &r->weight) || !(r->weight > 0.0 && r->weight <= 1e6))
			return bad(err, text, "a number above 0, at most 1e6");
		return 0;
	case TRACE_TYPE: r->type = text; return 0;
	case TRACE_PRIORITY:
		rc = read_whole(text, -1e9, 1e9, &v, err);
		r->job.priority = (int32_t)v;
		return rc;
	case TRACE_BEST_EFFORT: return read_flag(text, &r->job.best_effort, err);
	case TRACE_RECURRING: return read_id(text, true, &r->job.recurring, err);
	case TRACE_BATCHES: return read_batches(r, text, err);
	case TRACE_EPOCHS: return read_epochs(r, column, text, err);
	case TRACE_MEMORY: return read_positive(text, true, &r->kind.memory_mb, err);
	case TRACE_MEMORY_PER_RECORD: return read_positive(text, true, &r->kind.memory_mb_per_record, err);
	case TRACE_MAY_STOP: return read_flag(text, &r->job.may_stop, err);
	case TRACE_STEER: return read_flag(text, &r->job.steer, err);
	case TRACE_CHANCE:
		if (!text_number(text, &r->job.chance) ||
		    !(r->job.chance >= 0.0 && r->job.chance <= TRACE_MAX_CHANCE))
			return bad(err, text, "a number from 0 to 0.9999, such as 0.5");
		return 0;
	case TRACE_VALUE:
		if (!text_number(text, &r->job.value) ||
		    !(r->job.value >= TRACE_MIN_VALUE && r->job.value <= TRACE_MAX_WORTH))
			return bad(err, text, "a number from 0.001 to 1000");
		return 0;
	case TRACE_FIELDS: r->value[column] = text; return 0;
	}
	return 0;
}

/* The builder knows the file but not the line: its errors open with the name, which is cut off here. */
static int with_line(const struct trace_row *r, const char *name, struct err *err)
{
	const char *shown = text_tail(name, NAME_SHOWN);
	size_t n = strlen(shown);
	char text[sizeof err->text];

	if (!err || err->code != ERR_FORMAT || !r->line || strncmp(err->text, shown, n) != 0 ||
	    strncmp(err->text + n, ": ", 2) != 0)
		return err ? -(int)err->code : -ERR_FORMAT;
	snprintf(text, sizeof text, "%s", err->text + n + 2);
	return err_fail(err, ERR_FORMAT, "%s:%u: %s", shown, r->line, text);
}

int trace_row_add(struct trace_row *r, const char *name, struct err *err)
{
	struct err local = { 0 }, *e = err ? err : &local;

	if (!r->has_arrival)
		return err_fail(e, ERR_FORMAT, "%s:%u: field arrival_s: missing: when did the job arrive?",
				text_tail(name, NAME_SHOWN), r->line);
	if (trace_build_tenant(r->build, r->tenant, r->weight, &r->job.tenant, e) ||
	    trace_build_type(r->build, r->type, &r->job.type, e) ||
	    trace_build_kind(r->build, &r->kind, &r->job.kind, e))
		return with_line(r, name, e);
	return trace_build_job(r->build, &r->job, e);
}

int trace_row_no_arrival(const char *name, uint32_t line, const char *const *have, struct err *err)
{
	const char *near = text_nearest("arrival_s", have);
	char shown[SHOWN], hint[SHOWN + 40] = "";

	if (near)
		snprintf(hint, sizeof hint, "; did you mean that by '%s'?",
			 text_printable(near, shown, sizeof shown));
	return err_fail(err, ERR_FORMAT,
			"%s:%u: field arrival_s: missing: the trace must say when each job arrives%s",
			text_tail(name, NAME_SHOWN), line, hint);
}

int trace_row_doubt(struct trace_build *b, const char *column, struct err *err)
{
	const char *near = text_nearest(column, trace_field_name);
	char shown[SHOWN];

	/* Two letters in three may differ by chance in a short name. */
	if (!near || strlen(column) < 4 || !strcmp(column, TRACE_GPUS))
		return 0;
	return trace_build_notice(b, err,
				  "column '%s' is taken for a property of the jobs; did you mean '%s'?",
				  text_printable(column, shown, sizeof shown), near);
}
