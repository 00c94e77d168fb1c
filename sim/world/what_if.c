/* The keys of what-ifs, the range of each, and what they do to a machine. */
#include "sim/world/what_if.h"

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
	char text[64], shown[64], hint[TEXT_HINT];

	for (int k = 0; k < WHAT_KEYS; k++) {
		if (strlen(what_key_name[k]) == len && !memcmp(what_key_name[k], name, len)) {
			*out = (enum what_key)k;
			return 0;
		}
	}
	snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), name);
	return err_fail(err, ERR_ARG,
			"there is nothing called '%s' to change%s; there are: cluster.cores, "
			"cluster.nodes, cluster.slots, cluster.memory_mb, slo.scale, load.scale, noise",
			text_printable(text, shown, sizeof shown), text_hint(text, what_key_name, hint));
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

	if (!rc) {
		w->set[k] = true;
		w->value[k] = value;
	}
	return rc;
}

int what_if_split(const char *text, enum what_key *out, const char **out_rest, struct err *err)
{
	const char *eq = strchr(text, '=');
	char shown[64];

	if (!eq)
		return err_fail(err, ERR_ARG, "'%s': write key=value, like cluster.cores=16",
				text_printable(text, shown, sizeof shown));
	*out_rest = eq + 1;
	return what_key_parse(text, (size_t)(eq - text), out, err);
}

int what_value_parse(enum what_key k, const char *text, size_t len, double *out, struct err *err)
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
	int rc = what_if_split(text, &k, &rest, err);

	if (!rc)
		rc = what_value_parse(k, rest, strlen(rest), &v, err);
	if (!rc && w->set[k])
		rc = err_fail(err, ERR_ARG, "%s is set twice", what_key_name[k]);
	return rc ? rc : what_if_set(w, k, v, err);
}

double what_if_or(const struct what_if *w, enum what_key k, double otherwise)
{
	return w->set[k] ? w->value[k] : otherwise;
}

int what_if_machine(const struct what_if *w, struct cluster *io, struct err *err)
{
	int rc = 0;

	/* Cores before slots: slots that are not set follow the cores. */
	for (int k = WHAT_CORES; k <= WHAT_MEMORY && !rc; k++)
		if (w->set[k])
			rc = cluster_set(io, what_key_name[k] + strlen("cluster."), w->value[k], err);
	return rc;
}
