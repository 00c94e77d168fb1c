/* Settings of a model, from the command line, a grid file or a model file. Every refusal says what
 * would have been accepted. */
#include "predictors/data/settings.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

static const struct setting_spec no_settings[1];

static size_t spec_count(const struct setting_spec *spec)
{
	size_t n = 0;

	while (spec[n].name)
		n++;
	assert(n <= SETTINGS_MAX);
	return n;
}

static int spec_find(const struct setting_spec *spec, const char *name)
{
	for (int i = 0; spec[i].name; i++)
		if (!strcmp(spec[i].name, name))
			return i;
	return -1;
}

void settings_init(struct settings *s, const struct setting_spec *spec)
{
	size_t n;

	memset(s, 0, sizeof *s);
	s->spec = spec ? spec : no_settings;
	n = spec_count(s->spec);
	for (size_t i = 0; i < n; i++) {
		/* a negative number would read as a word */
		assert(!s->spec[i].words_or_number || s->spec[i].min >= 0.0);
		s->value[i] = s->spec[i].otherwise;
	}
}

/* "squared, absolute" or "all, sqrt, log2 or a number from 0 to 1e+06": for messages. */
static const char *accepted(const struct setting_spec *spec, char *buf, size_t size)
{
	size_t used = 0;
	char low[32], high[32];

	buf[0] = '\0';
	for (size_t i = 0; spec->words && spec->words[i] && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", spec->words[i]);
	if ((!spec->words || spec->words_or_number) && used < size)
		snprintf(buf + used, size - used, "%s%s from %s to %s", used ? " or " : "",
			 spec->integer ? "a whole number" : "a number", text_shortest(spec->min, low),
			 text_shortest(spec->max, high));
	return buf;
}

static int refuse(const struct setting_spec *spec, const char *value, struct err *err)
{
	char buf[256];

	return err_fail(err, ERR_ARG, "%s=%.64s: need %s", spec->name, value,
			accepted(spec, buf, sizeof buf));
}

static int unknown(const struct settings *s, const char *name, struct err *err)
{
	const char *known[SETTINGS_MAX + 1] = { 0 };
	char list[256] = "";
	const char *near;
	size_t n = spec_count(s->spec), used = 0;

	for (size_t i = 0; i < n; i++) {
		known[i] = s->spec[i].name;
		if (used < sizeof list)
			used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
						 known[i]);
	}
	near = text_nearest(name, known);
	if (near)
		return err_fail(err, ERR_ARG, "no setting '%.64s': did you mean '%s'? (known: %s)", name,
				near, list);
	return err_fail(err, ERR_ARG, "no setting '%.64s' (known: %s)", name, n ? list : "none");
}

static bool in_range(const struct setting_spec *spec, double v)
{
	return v >= spec->min && v <= spec->max && (!spec->integer || v == floor(v));
}

int settings_set(struct settings *s, const char *name, const char *value, struct err *err)
{
	int i = spec_find(s->spec, name);
	const struct setting_spec *spec;
	double v;

	if (i < 0)
		return unknown(s, name, err);
	spec = &s->spec[i];
	for (size_t w = 0; spec->words && spec->words[w]; w++) {
		if (!strcmp(spec->words[w], value)) {
			s->value[i] = spec->words_or_number ? -(double)(w + 1) : (double)w;
			return 0;
		}
	}
	if ((spec->words && !spec->words_or_number) || !text_number(value, &v) || !in_range(spec, v))
		return refuse(spec, value, err);
	s->value[i] = v;
	return 0;
}

int settings_set_json(struct settings *s, const char *name, const struct json *value, struct err *err)
{
	int i = spec_find(s->spec, name);
	const struct setting_spec *spec;
	const char *text;
	char buf[32];
	double v;

	if (i < 0)
		return unknown(s, name, err);
	spec = &s->spec[i];
	switch (json_type(value)) {
	case JSON_STRING:
		text = json_string(value, "");
		/* "50" in quotes is a slip worth telling, not a number */
		if (!spec->words || text_number(text, &v))
			return refuse(spec, text, err);
		return settings_set(s, name, text, err);
	case JSON_NUMBER:
		v = json_number(value, NAN);
		if ((spec->words && !spec->words_or_number) || !in_range(spec, v))
			return refuse(spec, text_shortest(v, buf), err);
		s->value[i] = v;
		return 0;
	case JSON_BOOL: return refuse(spec, json_bool(value, false) ? "true" : "false", err);
	case JSON_ARRAY: return refuse(spec, "[...]", err);
	case JSON_OBJECT: return refuse(spec, "{...}", err);
	case JSON_NULL:
	case JSON_ABSENT: break;
	}
	return refuse(spec, "null", err);
}

/* Copies [from, to) without the blank around it; false when it does not fit. */
static bool trimmed(const char *from, const char *to, char *buf, size_t size)
{
	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	if ((size_t)(to - from) >= size)
		return false;
	memcpy(buf, from, (size_t)(to - from));
	buf[to - from] = '\0';
	return true;
}

int settings_parse(struct settings *s, const char *text, struct err *err)
{
	struct settings next = *s; /* so that a refused text changes nothing */
	bool seen[SETTINGS_MAX] = { 0 };
	const char *p = text;

	if (!text[strspn(text, " \t\r\n")])
		return 0;
	for (;;) {
		const char *end = p + strcspn(p, ","), *eq = memchr(p, '=', (size_t)(end - p));
		char name[64], value[64];
		int i, rc;

		if (!eq)
			return err_fail(err, ERR_ARG, "'%.*s': need name=value",
					(int)(end - p > 64 ? 64 : end - p), p);
		if (!trimmed(p, eq, name, sizeof name) || !trimmed(eq + 1, end, value, sizeof value))
			return err_fail(err, ERR_ARG, "'%.60s...': too long for a setting", p);
		rc = settings_set(&next, name, value, err);
		if (rc)
			return rc;
		i = spec_find(s->spec, name);
		if (seen[i])
			return err_fail(err, ERR_ARG, "%s is set twice in '%.128s'", name, text);
		seen[i] = true;
		if (!*end)
			break;
		p = end + 1;
	}
	*s = next;
	return 0;
}

double settings_get(const struct settings *s, const char *name)
{
	int i = spec_find(s->spec, name);

	assert(i >= 0);
	return s->value[i];
}

/* The word a value stands for, or NULL for a number. */
static const char *word_of(const struct setting_spec *spec, double value)
{
	double index = spec->words_or_number ? -value - 1.0 : value;

	for (size_t w = 0; spec->words && spec->words[w]; w++)
		if (index == (double)w)
			return spec->words[w];
	return NULL;
}

void settings_to_json(const struct settings *s, struct json_writer *w)
{
	json_open(w, '{');
	for (size_t i = 0; s->spec[i].name; i++) {
		const char *word = word_of(&s->spec[i], s->value[i]);

		if (word)
			json_kv_string(w, s->spec[i].name, word);
		else
			json_kv_number(w, s->spec[i].name, s->value[i]);
	}
	json_close(w, '}');
}

char *settings_describe(const struct settings *s, char *buf, size_t size)
{
	size_t used = 0;

	if (!size)
		return buf;
	buf[0] = '\0';
	for (size_t i = 0; s->spec[i].name && used < size; i++) {
		const char *word = word_of(&s->spec[i], s->value[i]);
		char number[32];

		if (s->value[i] == s->spec[i].otherwise)
			continue;
		used += (size_t)snprintf(buf + used, size - used, "%s%s=%s", used ? " " : "", s->spec[i].name,
					 word ? word : text_shortest(s->value[i], number));
	}
	return buf;
}
