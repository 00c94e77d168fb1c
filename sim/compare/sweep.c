/* Reads the values of a sweep and runs one comparison for each of them. */
#include "sim/compare/sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

static int sweep_add(struct sweep *s, double v, struct err *err)
{
	if (s->n > 0 && v == s->value[s->n - 1])
		return 0; /* whole numbers between near ends repeat themselves */
	if (s->n == SWEEP_MAX_POINTS)
		return err_fail(err, ERR_ARG, "a sweep has at most %d values", SWEEP_MAX_POINTS);
	s->value[s->n++] = v;
	return 0;
}

static int sweep_list(struct sweep *s, const char *at, struct err *err)
{
	int rc = 0;

	while (!rc) {
		size_t len = strcspn(at, ",");
		double v;

		rc = what_value_parse(s->key, at, len, &v, err);
		for (size_t i = 0; i < s->n && !rc; i++)
			if (s->value[i] == v)
				rc = err_fail(err, ERR_ARG, "%s=%g appears twice", what_key_name[s->key], v);
		if (!rc)
			rc = sweep_add(s, v, err);
		if (!at[len])
			break;
		at += len + 1;
	}
	return rc;
}

static int sweep_range(struct sweep *s, const char *text, const char *dots, struct err *err)
{
	const char *high = dots + 2, *colon = strchr(high, ':');
	uint64_t steps = SWEEP_DEFAULT_POINTS;
	double from, to;
	bool whole;
	char shown[64];
	int rc = what_value_parse(s->key, text, (size_t)(dots - text), &from, err);

	if (!rc)
		rc = what_value_parse(s->key, high, colon ? (size_t)(colon - high) : strlen(high), &to, err);
	if (!rc && !(from < to))
		rc = err_fail(err, ERR_ARG, "%s=%s: the range must rise", what_key_name[s->key],
			      text_printable(text, shown, sizeof shown));
	if (!rc && colon && (!text_uint64(colon + 1, &steps) || steps < 2 || steps > SWEEP_MAX_POINTS))
		rc = err_fail(err, ERR_ARG, "%s: '%s' values: need a whole number from 2 to %d",
			      what_key_name[s->key], text_printable(colon + 1, shown, sizeof shown),
			      SWEEP_MAX_POINTS);
	/* Cores between whole ends are whole, too. */
	whole = what_key_is_whole(s->key) ||
		(s->key == WHAT_CORES && !rc && from == floor(from) && to == floor(to));
	for (uint64_t i = 0; i < steps && !rc; i++) {
		double v = i + 1 < steps ? from + (to - from) * (double)i / (double)(steps - 1) : to;

		rc = sweep_add(s, whole ? nearbyint(v) : v, err);
	}
	return rc;
}

int sweep_parse(const char *text, struct sweep *out, struct err *err)
{
	struct sweep s = { 0 };
	const char *rest, *dots;
	int rc = what_if_split(text, &s.key, &rest, err);

	if (rc)
		return rc;
	dots = strstr(rest, "..");
	rc = dots ? sweep_range(&s, rest, dots, err) : sweep_list(&s, rest, err);
	if (!rc)
		*out = s;
	return rc;
}

int sweep_run(const struct sweep_params *p, struct err *err)
{
	/* noise is part of what models learn from; nothing else that is swept is */
	struct compare_cache *cache = NULL;
	int rc = p->sweep->key == WHAT_NOISE ? 0 : compare_cache_new(&cache, err);

	for (size_t i = 0; i < p->sweep->n && !rc; i++) {
		struct compare_params c = *p->compare;
		struct compare_result *r = NULL;

		c.cache = cache;
		c.keep_outcomes = p->compare->keep_outcomes && i == p->keep;
		rc = what_if_set(&c.what, p->sweep->key, p->sweep->value[i], err);
		if (!rc)
			rc = compare_run(&c, &r, err);
		if (rc)
			err_prefix(err, "%s=%g", what_key_name[p->sweep->key], p->sweep->value[i]);
		else
			rc = p->on_point(p->owner, i, &r, err);
		compare_free(r);
	}
	compare_cache_free(cache);
	return rc;
}
