/* See sweep.h. Called by the verbs replay and compare. */
#include "sim/compare/sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

const char *const what_key_name[WHAT_KEYS + 1] = {
	"cluster.cores", "cluster.nodes", "cluster.slots", "cluster.memory_mb",
	"slo.scale",     "load.scale",    "noise",         NULL,
};

#define MAX_SCALE 1e6
#define MAX_NOISE 3.0 /* a factor of 20 one way or the other is then nothing special */
#define MAX_MEMORY_MB 1e12

/* What a value may be; the lower end is not part of it unless `from_included`. */
static const struct what_range {
	double low, high;
	bool from_included, whole;
} what_range[WHAT_KEYS] = {
	[WHAT_CORES] = { 0.0, CLUSTER_MAX_CORES, false, false },
	[WHAT_NODES] = { 1.0, CLUSTER_MAX_NODES, true, true },
	[WHAT_SLOTS] = { 1.0, CLUSTER_MAX_CORES, true, true },
	[WHAT_MEMORY] = { 0.0, MAX_MEMORY_MB, false, false },
	[WHAT_SLO] = { 0.0, MAX_SCALE, false, false },
	[WHAT_LOAD] = { 0.0, MAX_SCALE, false, false },
	[WHAT_NOISE] = { 0.0, MAX_NOISE, true, false },
};

bool what_key_is_whole(enum what_key k)
{
	return what_range[k].whole;
}

int what_key_parse(const char *name, size_t len, enum what_key *out, struct err *err)
{
	char text[64], shown[64];
	const char *near;

	for (int k = 0; k < WHAT_KEYS; k++) {
		if (strlen(what_key_name[k]) == len && !memcmp(what_key_name[k], name, len)) {
			*out = (enum what_key)k;
			return 0;
		}
	}
	snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), name);
	near = text_nearest(text, what_key_name);
	return err_fail(err, ERR_ARG,
			"there is nothing called '%s' to change%s%s%s; there are: cluster.cores, "
			"cluster.nodes, cluster.slots, cluster.memory_mb, slo.scale, load.scale, noise",
			text_printable(text, shown, sizeof shown), near ? "; did you mean '" : "",
			near ? near : "", near ? "'?" : "");
}

void what_if_init(struct what_if *w)
{
	for (int k = 0; k < WHAT_KEYS; k++)
		w->value[k] = NAN;
}

static int check_value(enum what_key k, double v, struct err *err)
{
	const struct what_range *r = &what_range[k];

	if (!(r->from_included ? v >= r->low : v > r->low) || !(v <= r->high))
		return err_fail(err, ERR_ARG, "%s=%g: need a number %s %g and at most %g", what_key_name[k],
				v, r->from_included ? "from" : "above", r->low, r->high);
	if (r->whole && v != floor(v))
		return err_fail(err, ERR_ARG, "%s=%g: need a whole number", what_key_name[k], v);
	return 0;
}

int what_if_set(struct what_if *w, enum what_key k, double value, struct err *err)
{
	int rc = check_value(k, value, err);

	if (!rc)
		w->value[k] = value;
	return rc;
}

/* The key in front of '='; *out_rest is what stands behind it. */
static int parse_key(const char *text, enum what_key *out, const char **out_rest, struct err *err)
{
	const char *eq = strchr(text, '=');
	char shown[64];

	if (!eq)
		return err_fail(err, ERR_ARG, "'%s': write key=value, like cluster.cores=16",
				text_printable(text, shown, sizeof shown));
	*out_rest = eq + 1;
	return what_key_parse(text, (size_t)(eq - text), out, err);
}

static int parse_value(enum what_key k, const char *text, size_t len, double *out, struct err *err)
{
	char buf[64], shown[64];

	snprintf(buf, sizeof buf, "%.*s", (int)(len < sizeof buf ? len : sizeof buf - 1), text);
	if (len >= sizeof buf || !text_number(buf, out))
		return err_fail(err, ERR_ARG, "%s: '%s' is not a number", what_key_name[k],
				text_printable(buf, shown, sizeof shown));
	return check_value(k, *out, err);
}

int what_if_parse(struct what_if *w, const char *text, struct err *err)
{
	enum what_key k;
	const char *rest;
	double v;
	int rc = parse_key(text, &k, &rest, err);

	if (!rc)
		rc = parse_value(k, rest, strlen(rest), &v, err);
	if (!rc && !isnan(w->value[k]))
		rc = err_fail(err, ERR_ARG, "%s is set twice", what_key_name[k]);
	return rc ? rc : what_if_set(w, k, v, err);
}

int what_if_apply(const struct what_if *w, const struct cluster *given, struct cluster *room,
		  struct compare_params *io, struct err *err)
{
	bool other_machine = false;
	int rc = 0;

	*room = io->world.cluster ? *io->world.cluster : *given;
	/* Cores before slots: slots that nobody sets follow the cores. */
	for (int k = WHAT_CORES; k <= WHAT_MEMORY && !rc; k++) {
		if (isnan(w->value[k]))
			continue;
		other_machine = true;
		rc = cluster_set(room, what_key_name[k] + strlen("cluster."), w->value[k], err);
	}
	if (rc)
		return rc;
	if (other_machine)
		io->world.cluster = room;
	if (!isnan(w->value[WHAT_SLO]))
		io->slo_scale = w->value[WHAT_SLO];
	if (!isnan(w->value[WHAT_LOAD]))
		io->load_scale = w->value[WHAT_LOAD];
	if (!isnan(w->value[WHAT_NOISE]))
		io->noise = w->value[WHAT_NOISE];
	return 0;
}

/* ---- sweeps ---- */

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

		rc = parse_value(s->key, at, len, &v, err);
		for (size_t i = 0; i < s->n && !rc; i++)
			if (s->value[i] == v)
				rc = err_fail(err, ERR_ARG, "%s=%g is there twice", what_key_name[s->key], v);
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
	int rc = parse_value(s->key, text, (size_t)(dots - text), &from, err);

	if (!rc)
		rc = parse_value(s->key, high, colon ? (size_t)(colon - high) : strlen(high), &to, err);
	if (!rc && !(from < to))
		rc = err_fail(err, ERR_ARG, "%s=%s: the range must rise", what_key_name[s->key],
			      text_printable(text, shown, sizeof shown));
	if (!rc && colon && (!text_uint64(colon + 1, &steps) || steps < 2 || steps > SWEEP_MAX_POINTS))
		rc = err_fail(err, ERR_ARG, "%s: '%s' values: need a whole number from 2 to %d",
			      what_key_name[s->key], text_printable(colon + 1, shown, sizeof shown),
			      SWEEP_MAX_POINTS);
	/* Nobody has 2.5 cores between 2 and 3, unless the ends say so. */
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
	int rc = parse_key(text, &s.key, &rest, err);

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
		struct what_if w = *p->base;
		struct compare_result *r = NULL;
		struct cluster room;

		c.cache = cache;
		c.keep_outcomes = p->compare->keep_outcomes && i == p->keep;
		rc = what_if_set(&w, p->sweep->key, p->sweep->value[i], err);
		if (!rc)
			rc = what_if_apply(&w, p->given, &room, &c, err);
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

/* ---- capacity ---- */

static struct capacity_point *capacity_try(const struct capacity_params *p, struct capacity *c, double v,
					   struct err *err)
{
	struct capacity_point made = { .value = v };
	size_t at = 0;

	while (at < c->n && c->point[at].value < v)
		at++;
	if (at < c->n && c->point[at].value == v)
		return &c->point[at];
	if (c->n == CAPACITY_MAX_POINTS) {
		err_fail(err, ERR_ARG, "more than %d values were tried", CAPACITY_MAX_POINTS);
		return NULL;
	}
	if (p->measure(p->owner, v, &made.metric, err))
		return NULL;
	made.holds = p->better > 0 ? made.metric.mean >= p->target : made.metric.mean <= p->target;
	memmove(&c->point[at + 1], &c->point[at], (c->n - at) * sizeof *c->point);
	c->point[at] = made;
	c->n++;
	return &c->point[at];
}

/* The largest value fails: perhaps more is not better here, so a few in between are asked before giving up.
 * *out_low fails and *out_high holds then; NaN: none did. */
static int capacity_look_below(const struct capacity_params *p, struct capacity *c, double *out_low,
			       double *out_high, struct err *err)
{
	double low = p->from;

	*out_high = NAN;
	for (int i = 1; i <= 3; i++) {
		double v = floor(p->from + (p->to - p->from) * i / 4.0);
		const struct capacity_point *t;

		if (v <= low || v >= p->to)
			continue;
		t = capacity_try(p, c, v, err);
		if (!t)
			return -(int)err->code;
		if (t->holds) {
			*out_high = v;
			break;
		}
		low = v;
	}
	*out_low = low;
	return 0;
}

static int capacity_bisect(const struct capacity_params *p, struct capacity *c, struct err *err)
{
	const struct capacity_point *t = capacity_try(p, c, p->to, err);
	double low = p->from, high = p->to;
	bool top_holds = t && t->holds;

	if (!t || !(t = capacity_try(p, c, p->from, err)))
		return -(int)err->code;
	if (t->holds) {
		c->answer = p->from;
		return 0;
	}
	if (!top_holds) {
		int rc = capacity_look_below(p, c, &low, &high, err);

		if (rc || isnan(high))
			return rc;
	}
	while (high - low > 1.0) {
		double v = floor(low + (high - low) / 2.0);

		t = capacity_try(p, c, v, err);
		if (!t)
			return -(int)err->code;
		*(t->holds ? &high : &low) = v;
	}
	c->answer = high;
	return 0;
}

int capacity_search(const struct capacity_params *p, struct capacity *out, struct err *err)
{
	struct err own = { 0 };
	bool held = false;
	int rc;

	if (!err)
		err = &own; /* its code is what a failed measure is known by */
	*out = (struct capacity){ .answer = NAN };
	if (!(p->from > 0.0 && p->from <= p->to && p->from == floor(p->from) && p->to == floor(p->to)))
		return err_fail(err, ERR_ARG, "from %g to %g: need whole numbers above 0 that rise", p->from,
				p->to);
	rc = capacity_bisect(p, out, err);
	if (!rc && out->answer < p->to && !capacity_try(p, out, out->answer + 1.0, err))
		rc = -(int)err->code;
	for (size_t i = 0; i < out->n; i++) {
		held |= out->point[i].holds;
		out->contradicts |= held && !out->point[i].holds;
	}
	return rc;
}
