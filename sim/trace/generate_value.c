/* Values in the text of a generator: numbers, durations, lists, laws. Lists are cut up where they stand. */
#include <math.h>
#include <string.h>

#include "common/text/text.h"
#include "sim/trace/generate_internal.h"

/* Cuts the next part off at `separator`; NULL: there is none. */
char *generate_next_part(char **at, char separator)
{
	char *part = *at, *end;

	if (!part)
		return NULL;
	end = strchr(part, separator);
	*at = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	return part;
}

bool generate_whole(const char *text, double low, double high, double *out)
{
	return text_number(text, out) && *out == floor(*out) && *out >= low && *out <= high;
}

bool generate_seconds(const char *text, double *out)
{
	return (text_number(text, out) || text_duration(text, out, NULL) == 0) && *out > 0.0 &&
	       *out <= TRACE_MAX_ARRIVAL_S;
}

/* "1|2|4" or "1..6", mixed as well. */
bool generate_whole_list(const char *text, double high, uint32_t *out, size_t *out_n)
{
	const struct text_limits limits = { .min = 1.0, .max = high, .whole = true, .ranges = true };
	double v[GENERATE_MAX_VALUES];

	if (text_list(text, '|', &limits, GENERATE_MAX_VALUES, v, out_n, NULL))
		return false;
	for (size_t i = 0; i < *out_n; i++)
		out[i] = (uint32_t)v[i];
	return true;
}

bool generate_word_list(char *text, struct generate_values *out)
{
	char *part;

	out->n = 0;
	while ((part = generate_next_part(&text, '|'))) {
		if (!*part || out->n == GENERATE_MAX_VALUES || strlen(part) > TRACE_MAX_VALUE)
			return false;
		out->value[out->n++] = part;
	}
	return true;
}

bool generate_batch_list(const char *text, struct generate_spec *s)
{
	static const struct text_limits size = { .min = 1.0, .max = 1e9, .whole = true, .ranges = true };

	if (text_list(text, '|', &size, TRACE_MAX_BATCHES, s->batch, &s->n_batches, NULL))
		return false;
	for (size_t i = 1; i < s->n_batches; i++)
		if (s->batch[i] <= s->batch[i - 1])
			return false;
	return true;
}

bool generate_period_list(char *text, struct generate_spec *s)
{
	char *part;

	s->n_periods = 0;
	while ((part = generate_next_part(&text, '|')))
		if (s->n_periods == GENERATE_MAX_VALUES ||
		    !generate_seconds(part, &s->period_s[s->n_periods++]))
			return false;
	return true;
}

bool generate_tenant_list(char *text, struct generate_tenants *t)
{
	char *part;

	*t = (struct generate_tenants){ 0 };
	while ((part = generate_next_part(&text, '|'))) {
		char *rest = part, *name = generate_next_part(&rest, ':');
		double weight = 1.0;

		if (!*name || t->n == GENERATE_MAX_VALUES || strlen(name) > TRACE_MAX_VALUE ||
		    (rest && (!text_number(rest, &weight) || !(weight > 0.0 && weight <= 1e6))))
			return false;
		for (size_t i = 0; i < t->n; i++)
			if (strcmp(t->name[i], name) == 0)
				return false;
		t->name[t->n] = name;
		t->weight[t->n++] = weight;
		t->total += weight;
	}
	return true;
}

bool generate_slo_law(char *text, struct generate_spec *s)
{
	static const struct {
		const char *name;
		enum generate_slo law;
	} laws[] = { { "normal", SLO_NORMAL }, { "lognormal", SLO_LOGNORMAL }, { "uniform", SLO_UNIFORM } };
	char *name = text, *a, *b;

	if (strcmp(text, "none") == 0) {
		s->slo = SLO_NONE;
		return true;
	}
	for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
		size_t n = strlen(laws[i].name);

		if (strncmp(name, laws[i].name, n) != 0 || name[n] != ':')
			continue;
		text += n + 1;
		a = generate_next_part(&text, ':');
		b = generate_next_part(&text, ':');
		s->slo = laws[i].law;
		if (!b || text || !generate_seconds(a, &s->slo_a))
			return false;
		if (s->slo == SLO_LOGNORMAL)
			return text_number(b, &s->slo_b) && s->slo_b >= 0.0 && s->slo_b <= 10.0;
		if (s->slo == SLO_NORMAL && strcmp(b, "0") == 0)
			return s->slo_b = 0.0, true;
		return generate_seconds(b, &s->slo_b) && (s->slo == SLO_NORMAL || s->slo_b >= s->slo_a);
	}
	s->slo = SLO_FIXED;
	return generate_seconds(text, &s->slo_a);
}
