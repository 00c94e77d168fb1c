/* Traces in the Standard Workload Format of the Parallel Workloads Archive, version 2.2: comments that begin
 * with ';', then 18 numbers a line, below 0 where a log does not know. A mapping (swf_map.h) says what these
 * jobs train. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/text/text.h"
#include "sim/trace/build.h"
#include "sim/trace/row.h"
#include "sim/trace/swf_map.h"

#define NAME_SHOWN 200
#define MAX_LINE 4096
#define SHOWN 40

struct swf {
	const char *name;
	uint32_t line;
	struct swf_map map;
	struct trace_build *build;
	double field[SWF_FIELDS];
	char word[SWF_FIELDS][32]; /* the same as they stand there */
	double max_jobs; /* of the header; NaN: not said */
	char computer[64];
	/* Records left out, by reason; and sizes that were cut. */
	size_t partial, states[SWF_STATES], no_run, no_cpus, no_submit, cut, capped;
	struct err *err;
};

/* ---- reading a line ---- */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* "; Key: value" of the header; only what we use is kept. */
static void read_comment(struct swf *s, const char *text, size_t len)
{
	char line[200], *value;

	snprintf(line, sizeof line, "%.*s", (int)(len < sizeof line ? len : sizeof line - 1), text);
	value = strchr(line, ':');
	if (!value)
		return;
	*value++ = '\0';
	value += strspn(value, " \t");
	value[strcspn(value, "\r")] = '\0';
	text = line + strspn(line, "; \t");
	if (strncmp(text, "MaxJobs", 7) == 0)
		text_number(value, &s->max_jobs);
	else if (strncmp(text, "Computer", 8) == 0)
		text_printable(value, s->computer, sizeof s->computer);
}

/* Most numbers are short whole ones; the others go the long way. */
static bool read_number(const char *word, size_t len, double *out)
{
	bool negative = *word == '-';
	int64_t v = 0;

	if (len > 15 || len == (size_t)negative)
		return text_number(word, out);
	for (const char *s = word + negative; *s; s++) {
		if (*s < '0' || *s > '9')
			return text_number(word, out);
		v = 10 * v + (*s - '0');
	}
	*out = negative ? -(double)v : (double)v;
	return true;
}

static int read_fields(struct swf *s, const char *text, size_t len)
{
	const char *end = text + len;
	char shown[SHOWN];
	int n = 0;

	for (;; n++) {
		const char *from;
		size_t keep;

		while (text < end && is_space(*text))
			text++;
		if (text == end)
			break;
		for (from = text; text < end && !is_space(*text);)
			text++;
		if (n == SWF_FIELDS)
			return err_fail(s->err, ERR_FORMAT, "%s:%u: more than the 18 fields of the format",
					text_tail(s->name, NAME_SHOWN), s->line);
		keep = (size_t)(text - from) < sizeof s->word[n] ? (size_t)(text - from)
								 : sizeof s->word[n] - 1;
		memcpy(s->word[n], from, keep);
		s->word[n][keep] = '\0';
		if (strlen(s->word[n]) != (size_t)(text - from) ||
		    !read_number(s->word[n], keep, &s->field[n]))
			return err_fail(s->err, ERR_FORMAT, "%s:%u: field %d (%s): '%s' is not a number",
					text_tail(s->name, NAME_SHOWN), s->line, n + 1, swf_field_name[n],
					text_printable(s->word[n], shown, sizeof shown));
	}
	if (n < SWF_FIELDS)
		return err_fail(s->err, ERR_FORMAT, "%s:%u: %d fields: a line needs 18, with -1 for unknown",
				text_tail(s->name, NAME_SHOWN), s->line, n);
	return 0;
}

/* ---- from fields to a job ---- */

static int bad(const struct swf *s, enum swf_field f, const char *want)
{
	return err_fail(s->err, ERR_FORMAT, "%s:%u: field %d (%s): '%s' is not %s",
			text_tail(s->name, NAME_SHOWN), s->line, f + 1, swf_field_name[f], s->word[f], want);
}

/* True: the record is left out and counted. Status 2 to 4 are the parts of a job whose whole has a
 * line too. */
static bool left_out(struct swf *s)
{
	double status = s->field[SWF_STATUS];
	int state = status < 0.0    ? SWF_UNKNOWN
		    : status == 0.0 ? SWF_FAILED
		    : status == 1.0 ? SWF_COMPLETED
				    : SWF_CANCELLED;

	if (status >= 2.0 && status <= 4.0)
		s->partial++;
	else if (!s->map.take[state])
		s->states[state]++;
	else if (s->field[SWF_SUBMIT] < 0.0)
		s->no_submit++;
	else if (s->field[SWF_RUN] < 0.0)
		s->no_run++;
	else if (s->field[SWF_ALLOCATED] < 1.0 && s->field[SWF_REQUESTED] < 1.0)
		s->no_cpus++;
	else
		return false;
	return true;
}

static double processors(const struct swf *s)
{
	return s->field[SWF_ALLOCATED] >= 1.0 ? s->field[SWF_ALLOCATED] : s->field[SWF_REQUESTED];
}

static uint32_t cpus_of(struct swf *s)
{
	double n = ceil(processors(s) / s->map.divisor);

	if (n > s->map.cap) {
		s->capped++;
		return s->map.cap;
	}
	return n < 1.0 ? 1 : (uint32_t)n;
}

/* The name of a user, group, ... as a tenant or type: "user-3". */
static const char *name_of(const struct swf *s, enum swf_field f, char *buf, size_t size)
{
	if (f == SWF_FIELDS || s->field[f] < 0.0)
		return NULL;
	snprintf(buf, size, "%s-%s", swf_field_name[f], s->word[f]);
	return buf;
}

/* The value of the map; else one of the list, always the same for the same number of the field. NULL: not
 * given. */
static const char *value_of(const struct swf *s, const struct swf_values *c, char *buf)
{
	const struct json *mapped = c->by == SWF_FIELDS ? NULL : json_get(c->map, s->word[c->by]);
	uint64_t key;

	if (json_type(mapped) == JSON_STRING)
		return json_string(mapped, NULL);
	if (json_type(mapped) == JSON_NUMBER)
		return text_shortest(json_number(mapped, 0.0), buf);
	if (c->n_of == 0)
		return NULL;
	if (c->by == SWF_FIELDS)
		return c->of[0];
	key = (uint64_t)(int64_t)(fabs(s->field[c->by]) < 1e18 ? s->field[c->by] : 0.0);
	return c->of[rng_mix(key + 0x9e3779b97f4a7c15ULL) % c->n_of];
}

/* Records = run time x processors x speed, within its bounds, and rounded so that equal enough jobs are one
 * kind. */
static const char *size_of(struct swf *s, char *buf, size_t size)
{
	double v = s->field[SWF_RUN] * processors(s) * s->map.records_per_cpu_second;
	double unit;

	if (v < s->map.size_min || v > s->map.size_max) {
		s->cut++;
		v = v < s->map.size_min ? s->map.size_min : s->map.size_max;
	}
	unit = pow(10.0, floor(log10(v)) + 1.0 - s->map.digits);
	v = unit > 1.0 ? round(v / unit) * unit : round(v);
	if (v < s->map.size_min) /* rounding must not leave the bounds */
		v = ceil(s->map.size_min);
	if (v > s->map.size_max)
		v = floor(s->map.size_max);
	snprintf(buf, size, "%.0f", v);
	return buf;
}

static double slo_of(const struct swf *s)
{
	double time_s = s->field[SWF_REQUESTED_TIME] > 0.0 ? s->field[SWF_REQUESTED_TIME] : s->field[SWF_RUN];

	time_s *= s->map.slo_factor; /* NaN: none */
	return time_s > 0.0 ? time_s : NAN;
}

static int add_job(struct swf *s)
{
	const char *value[TRACE_MAX_COLUMNS];
	char number[TRACE_MAX_COLUMNS][32], size[48], name[64];
	struct trace_kind_text k = { .value = value,
				     .cpus = cpus_of(s),
				     .epochs_from = NAN,
				     .epochs_to = NAN,
				     .memory_mb = NAN,
				     .memory_mb_per_record = NAN };
	struct trace_job j = { .slo_s = slo_of(s), .confidence = NAN, .line = s->line };
	int rc;

	if (!text_uint64(s->word[SWF_JOB], &j.id) || j.id == 0)
		return bad(s, SWF_JOB, "a whole number above 0");
	if (!trace_seconds_parse(s->word[SWF_SUBMIT], &j.arrival_ns))
		return bad(s, SWF_SUBMIT, "a number of seconds, at most 3.2e9");
	for (size_t i = 0; i < s->map.n_columns; i++)
		value[i] = value_of(s, &s->map.column[i], number[i]);
	if (*s->map.size)
		value[s->map.n_columns] = size_of(s, size, sizeof size);
	if ((rc = trace_build_tenant(s->build, name_of(s, s->map.tenant, name, sizeof name), NAN, &j.tenant,
				     s->err)) ||
	    (rc = trace_build_type(s->build, name_of(s, s->map.type, name, sizeof name), &j.type, s->err)) ||
	    (rc = trace_build_kind(s->build, &k, &j.kind, s->err)))
		return rc;
	return trace_build_job(s->build, &j, s->err);
}

static int read_line(struct swf *s, const char *text, size_t len)
{
	int rc;

	while (len > 0 && is_space(*text))
		text++, len--;
	if (len == 0)
		return 0;
	if (*text == ';') {
		read_comment(s, text, len);
		return 0;
	}
	if (len > MAX_LINE)
		return err_fail(s->err, ERR_FORMAT, "%s:%u: longer than %d bytes",
				text_tail(s->name, NAME_SHOWN), s->line, MAX_LINE);
	if ((rc = read_fields(s, text, len)))
		return rc;
	return left_out(s) ? 0 : add_job(s);
}

/* ---- the whole ---- */

static int make_columns(struct swf *s)
{
	size_t at;
	int rc = 0;

	for (size_t i = 0; i < s->map.n_columns && !rc; i++)
		rc = trace_build_column(s->build, s->map.column[i].name, &at, s->err);
	if (rc == 0 && *s->map.size)
		rc = trace_build_column(s->build, s->map.size, &at, s->err);
	return rc;
}

static int add_notices(struct swf *s)
{
	const struct {
		size_t n;
		const char *what;
	} left[] = {
		{ s->states[SWF_CANCELLED], "left out: cancelled" },
		{ s->states[SWF_FAILED], "left out: failed" },
		{ s->states[SWF_COMPLETED], "left out: completed" },
		{ s->states[SWF_UNKNOWN], "left out: of unknown status" },
		{ s->partial, "left out: parts of jobs that have their own line" },
		{ s->no_submit, "left out: no submit time" },
		{ s->no_run, "left out: no run time" },
		{ s->no_cpus, "left out: no processors" },
		{ s->cut, "with a size that was cut to the bounds of the mapping" },
		{ s->capped, "with more cpus than the cap of the mapping" },
	};
	size_t jobs = trace_build_jobs(s->build);
	int rc = 0;

	for (size_t i = 0; i < sizeof left / sizeof *left && !rc; i++)
		if (left[i].n)
			rc = trace_build_notice(s->build, s->err, "%zu record%s %s", left[i].n,
						left[i].n == 1 ? "" : "s", left[i].what);
	if (rc == 0 && !isnan(s->max_jobs) && s->max_jobs < (double)jobs)
		rc = trace_build_notice(s->build, s->err, "the header says %.0f jobs, there are %zu",
					s->max_jobs, jobs);
	return rc;
}

static int read_lines(struct swf *s, const char *text, size_t len)
{
	const char *end = text + len;
	int rc = 0;

	while (text < end && !rc) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		if (!stop)
			stop = end;
		s->line++;
		rc = read_line(s, text, (size_t)(stop - text));
		text = stop + 1;
	}
	return rc;
}

int trace_parse_swf(const char *name, const char *text, size_t len, const char *map_name,
		    const char *map_text, size_t map_len, struct trace **out, struct err *err)
{
	struct swf *s = mem_calloc(1, sizeof *s);
	char about[128];
	int rc;

	if (!s)
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the trace",
				text_tail(name, NAME_SHOWN));
	s->name = name;
	s->max_jobs = NAN;
	s->err = err;
	if ((rc = swf_map_parse(map_name, map_text, map_len, &s->map, err)) == 0 &&
	    (rc = trace_build_new(name, NULL, 0, &s->build, err)) == 0 && (rc = make_columns(s)) == 0 &&
	    (rc = read_lines(s, text, len)) == 0 && (rc = add_notices(s)) == 0) {
		snprintf(about, sizeof about, "from a log in SWF%s%s", *s->computer ? " of " : "",
			 s->computer);
		rc = trace_build_done(s->build, about, out, err);
	}
	trace_build_free(s->build);
	swf_map_release(&s->map);
	free(s);
	return rc;
}

int trace_read_swf(const char *path, const char *map_path, struct trace **out, struct err *err)
{
	char *text = NULL, *map = NULL;
	size_t len = 0, map_len = 0;
	int rc = io_read_file(path, CSV_MAX_BYTES, &text, &len, err);

	if (rc == 0 && map_path)
		rc = io_read_file(map_path, SWF_MAP_MAX_BYTES, &map, &map_len, err);
	if (rc == 0)
		rc = trace_parse_swf(path, text, len, map_path, map, map_len, out, err);
	free(text);
	free(map);
	return rc;
}
