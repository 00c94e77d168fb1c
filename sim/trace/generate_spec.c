/* "KIND,key=value,..." of a generated trace: read, defaults filled in, checked. generate.h says what the
 * keys mean. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/trace/generate_internal.h"
#include "sim/trace/row.h"

#define SHOWN 48

static const char *const kind_name[] = {
	[GENERATE_PAPER] = "paper", [GENERATE_POISSON] = "poisson",     [GENERATE_BURSTY] = "bursty",
	[GENERATE_DAILY] = "daily", [GENERATE_RECURRING] = "recurring", [GENERATE_KINDS] = NULL,
};

static int bad(const struct generate_spec *s, const char *key, const char *value, const char *want,
	       struct err *err)
{
	char shown[SHOWN], shown_key[SHOWN];

	return err_fail(err, ERR_ARG, "gen:%s: %s='%s': need %s", s->kind_name,
			text_printable(key, shown_key, sizeof shown_key),
			text_printable(value, shown, sizeof shown), want);
}

/* ---- keys ---- */

enum shape { /* how a value is read */
	     WHOLE,
	     NUMBER,
	     SECONDS,
	     CPUS,
	     NJOBS,
	     TYPES,
	     BATCHES,
	     WORTHS,
	     PERIODS,
	     TENANTS,
	     SLO,
};

#define AT(member) offsetof(struct generate_spec, member)
#define ALL ((1u << GENERATE_KINDS) - 1)
#define ONLY(kind) (1u << (kind))

static const struct generate_key {
	const char *name;
	enum shape shape;
	size_t at;
	double low, high; /* WHOLE, NUMBER */
	unsigned kinds; /* that know it */
	const char *want;
} keys[] = {
	{ "jobs", WHOLE, AT(jobs), 1, TRACE_MAX_JOBS, ALL, "a whole number from 1 to 20000000" },
	{ "rate", NUMBER, AT(rate), 1e-9, 1e9, ALL, "arrivals per second, from 1e-9 to 1e9" },
	{ "gap", SECONDS, AT(gap_s), 0, 0, ALL, "a duration above 0 between arrivals" },
	{ "load", NUMBER, AT(load), 1e-6, 1e6, ALL, "a load above 0, such as 0.8 (with work and cores)" },
	{ "work", SECONDS, AT(work), 0, 0, ALL, "core-seconds of the mean job, above 0" },
	{ "cores", NUMBER, AT(cores), 1e-3, 1e6, ALL, "a number of cores above 0" },
	{ "cpus", CPUS, AT(cpus), 0, 0, ALL, "whole numbers from 1 to 65536: 1|2|4" },
	{ "type", TYPES, AT(types), 0, 0, ALL, "names: a|b" },
	{ "batches", BATCHES, AT(batch), 0, 0, ALL, "ascending sizes: 64|128|256" },
	{ "value", WORTHS, AT(worth), 0, 0, ALL, "numbers from 0.001 to 1000: 1|5" },
	{ "slo", SLO, AT(slo), 0, 0, ALL,
	  "normal:MEAN:SD, lognormal:MEDIAN:SIGMA, uniform:LOW:HIGH, a duration or none" },
	{ "slo_min", SECONDS, AT(slo_min), 0, 0, ALL, "a duration above 0" },
	{ "confidence", NUMBER, AT(confidence), 1e-6, 1 - 1e-9, ALL, "a number between 0 and 1" },
	{ "priority", WHOLE, AT(priority), -1e9, 1e9, ALL, "a whole number" },
	{ "best_effort", NUMBER, AT(best_effort), 0, 1, ALL, "the share of such jobs, from 0 to 1" },
	{ "steer", NUMBER, AT(steer), 0, 1, ALL, "the share of jobs that steer, from 0 to 1" },
	{ "tenants", TENANTS, AT(tenants), 0, 0, ALL, "different names with weights: a:3|b:1" },
	{ "njobs", NJOBS, AT(njobs), 0, 0, ONLY(GENERATE_PAPER), "whole numbers from 1 to 10000: 1..6" },
	{ "peak", NUMBER, AT(peak), 1, 1e6, ONLY(GENERATE_BURSTY), "how much denser bursts are, at least 1" },
	{ "share", NUMBER, AT(share), 1e-6, 1 - 1e-6, ONLY(GENERATE_BURSTY),
	  "the share of time that is burst, between 0 and 1" },
	{ "burst", SECONDS, AT(burst_s), 0, 0, ONLY(GENERATE_BURSTY), "the mean length of a burst" },
	{ "depth", NUMBER, AT(depth), 0, 1, ONLY(GENERATE_DAILY), "a number from 0 to 1" },
	{ "day", SECONDS, AT(day_s), 0, 0, ONLY(GENERATE_DAILY), "the length of a day" },
	{ "peak_at", SECONDS, AT(peak_at_s), 0, 0, ONLY(GENERATE_DAILY), "the time of day of the peak" },
	{ "series", WHOLE, AT(series), 1, GENERATE_MAX_SERIES, ONLY(GENERATE_RECURRING),
	  "a whole number from 1 to 1000000" },
	{ "period", PERIODS, AT(period_s), 0, 0, ONLY(GENERATE_RECURRING), "durations: 1h|1d" },
	{ "jitter", NUMBER, AT(jitter), 0, 1, ONLY(GENERATE_RECURRING),
	  "a share of the period, from 0 to 1" },
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static bool read_value(struct generate_spec *s, const struct generate_key *k, char *text)
{
	void *at = (char *)s + k->at;
	double v = 0.0;

	switch (k->shape) {
	case WHOLE:
		if (!generate_whole(text, k->low, k->high, &v))
			return false;
		if (k->at == AT(priority))
			s->priority = (int32_t)v;
		else
			*(size_t *)at = (size_t)v;
		return true;
	case NUMBER:
		if (!text_number(text, &v) || !(v >= k->low && v <= k->high))
			return false;
		*(double *)at = v;
		return true;
	case SECONDS: return generate_seconds(text, at);
	case CPUS: return generate_whole_list(text, TRACE_MAX_CPUS, s->cpus, &s->n_cpus);
	case NJOBS: return generate_whole_list(text, 10000, s->njobs, &s->n_njobs);
	case TYPES: return generate_word_list(text, &s->types);
	case BATCHES: return generate_batch_list(text, s);
	case WORTHS: {
		static const struct text_limits worth = { .min = TRACE_MIN_VALUE, .max = TRACE_MAX_WORTH };

		return !text_list(text, '|', &worth, GENERATE_MAX_VALUES, s->worth, &s->n_worths, NULL);
	}
	case PERIODS: return generate_period_list(text, s);
	case TENANTS: return generate_tenant_list(text, &s->tenants);
	case SLO: return generate_slo_law(text, s);
	}
	return false;
}

/* Is `a` `b` with one letter wrong, missing or too many, or two neighbours exchanged? */
static bool one_slip(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), same = 0;

	if (n > m + 1 || m > n + 1)
		return false;
	while (a[same] && a[same] == b[same])
		same++;
	if (strcmp(a + same + (n >= m), b + same + (m >= n)) == 0)
		return true;
	return n == m && same + 1 < n && a[same] == b[same + 1] && a[same + 1] == b[same] &&
	       strcmp(a + same + 2, b + same + 2) == 0;
}

/* Any other name is a column; but one that is nearly a key, or a field of the format, was meant otherwise. */
static int check_column(const struct generate_spec *s, const char *name, struct err *err)
{
	char shown[SHOWN];

	for (size_t i = 0; i < N_KEYS; i++)
		if (strcmp(name, TRACE_GPUS) && one_slip(name, keys[i].name))
			return err_fail(err, ERR_ARG, "gen:%s: there is no key '%s'; did you mean '%s'?",
					s->kind_name, text_printable(name, shown, sizeof shown),
					keys[i].name);
	if (!*name || (trace_field_of(name) != TRACE_FIELDS && trace_field_of(name) != TRACE_EPOCHS))
		return err_fail(err, ERR_ARG, "gen:%s: '%s' is not a key of a generator", s->kind_name,
				text_printable(name, shown, sizeof shown));
	return 0;
}

static struct generate_values *find_column(struct generate_spec *s, const char *name)
{
	for (size_t i = 0; i < s->n_columns; i++)
		if (strcmp(s->column[i].name, name) == 0)
			return &s->column[i];
	return NULL;
}

/* "1..4": left open, so none is drawn. */
static bool open_epochs(struct generate_spec *s, struct generate_values *c, const char *text)
{
	static const struct text_limits epochs = { .min = 1.0, .max = 1e6, .whole = true };

	c->n = 0;
	return text_range(text, &s->epochs_from, &s->epochs_to) && text_within(s->epochs_from, &epochs) &&
	       text_within(s->epochs_to, &epochs) && s->epochs_from <= s->epochs_to;
}

static int read_column(struct generate_spec *s, const char *name, char *text, struct err *err)
{
	struct generate_values *c = find_column(s, name);
	bool epochs = strcmp(name, "epochs") == 0;
	int rc = check_column(s, name, err);

	if (rc)
		return rc;
	if (c && c->given)
		return bad(s, name, text, "it only once", err);
	if (c && !*text) { /* "samples=": no such column */
		memmove(c, c + 1, (size_t)(&s->column[s->n_columns] - (c + 1)) * sizeof *c);
		s->column[--s->n_columns] = (struct generate_values){ 0 };
		if (epochs)
			s->epochs_from = s->epochs_to = NAN;
		return 0;
	}
	if (!c) {
		if (s->n_columns == TRACE_MAX_COLUMNS)
			return err_fail(err, ERR_ARG, "gen:%s: more than %d columns", s->kind_name,
					TRACE_MAX_COLUMNS);
		c = &s->column[s->n_columns++];
		c->name = name;
	}
	c->given = true;
	if (epochs && strstr(text, ".."))
		return open_epochs(s, c, text) ? 0 : bad(s, name, text, "a range of whole epochs: 1..4", err);
	if (!generate_word_list(text, c))
		return bad(s, name, text, "values separated by |, none empty, at most 256", err);
	for (size_t i = 0; epochs && i < c->n; i++) {
		double v;

		if (!generate_whole(c->value[i], 1, 1e6, &v))
			return bad(s, name, c->value[i], "whole numbers of epochs, or a range: 1..4", err);
	}
	return 0;
}

static int read_key(struct generate_spec *s, const char *name, char *text, bool seen[N_KEYS], struct err *err)
{
	char kept[SHOWN];

	text_printable(text, kept, sizeof kept); /* reading a list cuts it */
	for (size_t i = 0; i < N_KEYS; i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		if (seen[i])
			return bad(s, name, kept, "it only once", err);
		seen[i] = true;
		if (!(keys[i].kinds & ONLY(s->kind)))
			return err_fail(err, ERR_ARG, "gen:%s: the key '%s' belongs to another generator",
					s->kind_name, name);
		if (*text && read_value(s, &keys[i], text))
			return 0;
		return bad(s, name, kept, keys[i].want, err);
	}
	return read_column(s, name, text, err);
}

/* ---- defaults ---- */

static void add_column(struct generate_spec *s, const char *name, const char *a, const char *b)
{
	struct generate_values *c = &s->column[s->n_columns++];

	c->name = name;
	c->value[c->n++] = a;
	if (b)
		c->value[c->n++] = b;
}

/* The paper's levels; for the others those of the profile that comes with the program
 * (configs/profiles/two-cores). */
static void set_defaults(struct generate_spec *s)
{
	bool paper = s->kind == GENERATE_PAPER;

	s->jobs = 1000;
	s->gap_s = s->rate = s->load = s->work = s->cores = NAN;
	s->n_cpus = paper ? 4 : 3;
	for (size_t i = 0; i < s->n_cpus; i++)
		s->cpus[i] = 1u << i;
	s->n_njobs = 6;
	for (size_t i = 0; i < s->n_njobs; i++)
		s->njobs[i] = (uint32_t)i + 1;
	add_column(s, "network", "lenet5", "simplenet");
	add_column(s, "epochs", paper ? "10" : "4", NULL);
	add_column(s, "samples", paper ? "60000" : "12000", NULL);
	s->epochs_from = s->epochs_to = s->slo_min = s->confidence = NAN;
	s->slo = paper ? SLO_NORMAL : SLO_LOGNORMAL;
	s->slo_a = paper ? 300.0 : 10.0;
	s->slo_b = paper ? 100.0 : 0.5;
	s->tenants = (struct generate_tenants){ .weight = { 1.0 }, .n = 1, .total = 1.0 };
	s->peak = 10.0;
	s->share = 0.1;
	s->burst_s = NAN;
	s->depth = 0.8;
	s->day_s = 86400.0;
	s->peak_at_s = NAN;
	s->series = 10;
	s->jitter = 0.05;
}

static double slo_mean(const struct generate_spec *s)
{
	switch (s->slo) {
	case SLO_LOGNORMAL: return s->slo_a * exp(0.5 * s->slo_b * s->slo_b);
	case SLO_UNIFORM: return 0.5 * (s->slo_a + s->slo_b);
	case SLO_NONE: return NAN;
	default: return s->slo_a;
	}
}

static double default_gap(const struct generate_spec *s)
{
	double mean = slo_mean(s);

	switch (s->kind) {
	case GENERATE_PAPER: return isnan(mean) ? 6000.0 : 20.0 * mean; /* groups do not meet */
	case GENERATE_DAILY: return s->day_s / (double)s->jobs; /* all of them on one day */
	default: return 2.0;
	}
}

/* One way to say how often jobs come, or none. */
static int settle_gap(struct generate_spec *s, struct err *err)
{
	int said = !isnan(s->gap_s) + !isnan(s->rate) + !isnan(s->load);
	bool with_load = !isnan(s->work) && !isnan(s->cores);

	if (said > 1)
		return err_fail(err, ERR_ARG, "gen:%s: rate, gap and load say the same: give one of them",
				s->kind_name);
	if (said && s->n_periods)
		return err_fail(err, ERR_ARG,
				"gen:%s: period and rate, gap or load say the same: give one of them",
				s->kind_name);
	if (isnan(s->load) ? !isnan(s->work) || !isnan(s->cores) : !with_load)
		return err_fail(err, ERR_ARG,
				"gen:%s: load, work (core-seconds of a job) and cores go together",
				s->kind_name);
	if (!isnan(s->rate))
		s->gap_s = 1.0 / s->rate;
	else if (!isnan(s->load))
		s->gap_s = s->work / (s->load * s->cores);
	else if (!said && s->kind == GENERATE_RECURRING && !s->n_periods)
		s->period_s[s->n_periods++] = 3600.0;
	if (isnan(s->gap_s))
		s->gap_s = default_gap(s);
	return 0;
}

static int settle(struct generate_spec *s, struct err *err)
{
	int rc = settle_gap(s, err);

	if (rc)
		return rc;
	if (isnan(s->slo_min))
		s->slo_min = s->slo == SLO_FIXED ? 0.0 : 0.01 * slo_mean(s);
	else if ((s->slo == SLO_FIXED && s->slo_a < s->slo_min) ||
		 (s->slo == SLO_UNIFORM && s->slo_b < s->slo_min))
		return err_fail(err, ERR_ARG, "gen:%s: slo_min=%g is above every limit", s->kind_name,
				s->slo_min);
	if (isnan(s->burst_s))
		s->burst_s = 20.0 * s->gap_s;
	if (s->kind == GENERATE_BURSTY && s->burst_s < 0.01 * s->gap_s)
		return err_fail(err, ERR_ARG,
				"gen:%s: burst=%g s is below a hundredth of the mean gap of %g s",
				s->kind_name, s->burst_s, s->gap_s);
	if (isnan(s->peak_at_s))
		s->peak_at_s = s->day_s * 14.0 / 24.0; /* two in the afternoon */
	return 0;
}

/* ---- all of it ---- */

static int read_kind(struct generate_spec *s, const char *name, struct err *err)
{
	char shown[SHOWN], hint[TEXT_HINT];

	for (int i = 0; i < GENERATE_KINDS; i++)
		if (strcmp(name, kind_name[i]) == 0) {
			s->kind = (enum generate_kind)i;
			s->kind_name = kind_name[i];
			return 0;
		}
	return err_fail(err, ERR_ARG,
			"gen:%s: no such generator%s; there are paper, poisson, bursty, daily, recurring",
			text_printable(name, shown, sizeof shown), text_hint(name, kind_name, hint));
}

int generate_spec_parse(const char *text, struct generate_spec **out, struct err *err)
{
	struct generate_spec *s;
	bool seen[N_KEYS] = { false };
	char *at, *part;
	int rc;

	if (strlen(text) > GENERATE_MAX_SPEC)
		return err_fail(err, ERR_ARG, "gen: the text is longer than %d bytes", GENERATE_MAX_SPEC);
	s = mem_calloc(1, sizeof *s);
	if (!s || !(s->text = mem_strdup(text))) {
		generate_spec_free(s);
		return err_fail(err, ERR_NOMEM, "gen: out of memory for the trace");
	}
	at = s->text;
	rc = read_kind(s, generate_next_part(&at, ','), err);
	if (rc == 0)
		set_defaults(s);
	while (rc == 0 && (part = generate_next_part(&at, ','))) {
		char *value = part, *name = generate_next_part(&value, '=');

		if (!value)
			rc = err_fail(err, ERR_ARG, "gen:%s: '%.40s' is not key=value", s->kind_name, name);
		else
			rc = read_key(s, name, value, seen, err);
	}
	if (rc == 0)
		rc = settle(s, err);
	if (rc) {
		generate_spec_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void generate_spec_free(struct generate_spec *s)
{
	if (!s)
		return;
	free(s->text);
	free(s);
}
