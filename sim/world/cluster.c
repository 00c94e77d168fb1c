/* Reads, checks and changes the machine of a simulation. */
#include "sim/world/cluster.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

#define FILE_MAX_BYTES ((size_t)1 << 16)
#define MEMORY_MAX_MB 1e12

const char *const cluster_place_name[CLUSTER_PLACES + 1] = { "spread", "least-loaded", "promise", NULL };

static const char *const keys[] = { "cores", "slots", "nodes", "memory_mb", "gpus", "place", NULL };
/* all but the last are numbers */
enum { KEY_CORES, KEY_SLOTS, KEY_NODES, KEY_MEMORY, KEY_GPUS, N_NUMBERS, KEY_PLACE = N_NUMBERS, N_KEYS };

struct given { /* what a text or a file says; NaN, -1: nothing */
	double value[N_NUMBERS];
	int place;
};
static const struct given nothing = { { NAN, NAN, NAN, NAN, NAN }, -1 };

static int key_of(const char *name)
{
	for (int k = 0; k < N_KEYS; k++)
		if (!strcmp(name, keys[k]))
			return k;
	return -1;
}

static int unknown_key(const char *name, struct err *err)
{
	char shown[64], hint[TEXT_HINT];

	return err_fail(
		err, ERR_ARG,
		"unknown key '%s' of a cluster%s; there are cores, slots, nodes, memory_mb, gpus, place",
		text_printable(name, shown, sizeof shown), text_hint(name, keys, hint));
}

static int check(int key, double v, struct err *err)
{
	static const double most[N_NUMBERS] = { CLUSTER_MAX_CORES, CLUSTER_MAX_SLOTS, CLUSTER_MAX_NODES,
						MEMORY_MAX_MB, CLUSTER_MAX_GPUS };
	bool whole = key == KEY_SLOTS || key == KEY_NODES || key == KEY_GPUS;

	if ((v > 0.0 || (key == KEY_GPUS && v == 0.0)) && v <= most[key] && (!whole || v == floor(v)))
		return 0;
	if (key == KEY_MEMORY && v == INFINITY)
		return 0;
	return err_fail(err, ERR_ARG, "%s = %g: need %s number above 0, at most %.0f", keys[key], v,
			whole ? "a whole" : "a", most[key]);
}

/* One process a core: jobs share cores only if that is asked for. */
static uint32_t slots_of(double cores)
{
	return cores < 1.0 ? 1 : (uint32_t)cores;
}

static int put_together(const struct given *g, struct cluster *out, struct err *err)
{
	struct cluster c = { .nodes = 1, .memory_mb = INFINITY };
	int rc = 0;

	if (isnan(g->value[KEY_CORES]))
		return err_fail(err, ERR_ARG, "no 'cores': a cluster must say how many it has");
	for (int k = 0; k < N_NUMBERS && !rc; k++)
		rc = isnan(g->value[k]) ? 0 : check(k, g->value[k], err);
	if (rc)
		return rc;
	c.cores = g->value[KEY_CORES];
	c.place = g->place < 0 ? PLACE_SPREAD : (enum cluster_place)g->place;
	if (!isnan(g->value[KEY_NODES]))
		c.nodes = (uint32_t)g->value[KEY_NODES];
	c.slots = isnan(g->value[KEY_SLOTS]) ? slots_of(c.cores / cluster_parts(&c)) * cluster_parts(&c)
					     : (uint32_t)g->value[KEY_SLOTS];
	if (c.slots % cluster_parts(&c))
		return err_fail(err, ERR_ARG,
				"%u slots on %u nodes: need as many on each, where a job stays on one node",
				c.slots, c.nodes);
	if (!isnan(g->value[KEY_MEMORY]))
		c.memory_mb = g->value[KEY_MEMORY];
	c.counts_gpus = !isnan(g->value[KEY_GPUS]);
	c.gpus = c.counts_gpus ? (uint32_t)g->value[KEY_GPUS] : 0;
	if (c.gpus % cluster_parts(&c))
		return err_fail(err, ERR_ARG,
				"%u gpus on %u nodes: need as many on each, where a job stays on one node",
				c.gpus, c.nodes);
	*out = c;
	return 0;
}

struct cluster cluster_shared(const struct cluster *c)
{
	uint32_t parts = cluster_parts(c);
	struct cluster part = *c;

	if (parts == 1)
		return part;
	part.nodes = 1;
	part.cores = c->cores / parts;
	part.slots = c->slots / parts ? c->slots / parts : 1; /* a what-if may have left a remainder */
	part.memory_mb = c->memory_mb / parts;
	part.gpus = c->gpus / parts;
	return part;
}

/* ---- text ---- */

static int parse_place(const char *text, int *out, struct err *err)
{
	char shown[64], hint[TEXT_HINT];

	for (int k = 0; k < CLUSTER_PLACES; k++) {
		if (!strcmp(text, cluster_place_name[k])) {
			*out = k;
			return 0;
		}
	}
	return err_fail(err, ERR_ARG, "place: '%s' is none%s; there are spread, least-loaded, promise",
			text_printable(text, shown, sizeof shown), text_hint(text, cluster_place_name, hint));
}

static int parse_pair(const char *pair, size_t len, struct given *g, struct err *err)
{
	char text[96], shown[64], *value;
	int key;

	if (len >= sizeof text)
		return err_fail(err, ERR_ARG, "'%.40s...' is too long for a key and a number", pair);
	memcpy(text, pair, len);
	text[len] = '\0';
	value = strchr(text, '=');
	if (!value)
		return err_fail(err, ERR_ARG,
				"'%s' is not key=number; a cluster is written cores=16,slots=32",
				text_printable(text, shown, sizeof shown));
	*value++ = '\0';
	key = key_of(text);
	if (key < 0)
		return unknown_key(text, err);
	if (key == KEY_PLACE ? g->place >= 0 : !isnan(g->value[key]))
		return err_fail(err, ERR_ARG, "'%s' is given twice", keys[key]);
	if (key == KEY_PLACE)
		return parse_place(value, &g->place, err);
	if (!text_number(value, &g->value[key]))
		return err_fail(err, ERR_ARG, "%s: '%s' is not a number", keys[key],
				text_printable(value, shown, sizeof shown));
	return 0;
}

static int parse_text(const char *text, struct cluster *out, struct err *err)
{
	struct given g = nothing;
	int rc = 0;

	for (const char *at = text, *end; at && !rc; at = *end ? end + 1 : NULL) {
		end = at + strcspn(at, ",");
		rc = parse_pair(at, (size_t)(end - at), &g, err);
	}
	return rc ? rc : put_together(&g, out, err);
}

/* ---- JSON ---- */

int cluster_from_json(const char *where, const struct json *v, struct cluster *out, struct err *err)
{
	struct given g = nothing;
	const struct json *place;
	struct err reason;
	int rc;

	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%.200s: a cluster is an object such as {\"cores\": 16}",
				where);
	rc = json_known_keys(v, where, keys, err);
	for (int k = 0; k < N_NUMBERS && !rc; k++) {
		const struct json *member = json_get(v, keys[k]);

		if (member && json_type(member) != JSON_NUMBER)
			rc = err_fail(err, ERR_FORMAT, "%.200s: '%s' must be a number", where, keys[k]);
		else if (member)
			g.value[k] = json_number(member, NAN);
	}
	place = json_get(v, keys[KEY_PLACE]);
	if (!rc && place && json_type(place) != JSON_STRING)
		rc = err_fail(err, ERR_FORMAT, "%.200s: 'place' must be a text", where);
	if (!rc && ((place && parse_place(json_string(place, ""), &g.place, &reason)) ||
		    put_together(&g, out, &reason)))
		rc = err_fail(err, ERR_FORMAT, "%.200s: %.250s", where, reason.text);
	return rc;
}

static bool is_text(const char *s)
{
	size_t len = strlen(s);

	return strchr(s, '=') && !(len > 5 && !strcmp(s + len - 5, ".json"));
}

int cluster_parse(const char *text_or_file, struct cluster *out, struct err *err)
{
	struct json *v = NULL;
	int rc;

	if (is_text(text_or_file)) {
		rc = parse_text(text_or_file, out, err);
		return rc ? err_prefix(err, "cluster") : 0;
	}
	rc = json_read_settings(text_or_file, FILE_MAX_BYTES, &v, err);
	if (!rc)
		rc = cluster_from_json(text_tail(text_or_file, 200), v, out, err);
	json_free(v);
	return rc;
}

/* ---- what-if ---- */

/* Jobs that stay on one node get more nodes of the same size; for others the machine is cut into more. */
static void set_nodes(struct cluster *c, uint32_t nodes)
{
	double ratio = (double)nodes / c->nodes, slots = (double)(c->slots / c->nodes) * nodes;

	if (c->place != PLACE_SPREAD) {
		c->cores = fmin(c->cores * ratio, CLUSTER_MAX_CORES);
		c->slots = slots < CLUSTER_MAX_SLOTS ? (uint32_t)slots : CLUSTER_MAX_SLOTS;
		c->memory_mb *= ratio;
		c->gpus = (uint32_t)fmin((double)(c->gpus / c->nodes) * nodes, CLUSTER_MAX_GPUS);
	}
	c->nodes = nodes;
}

int cluster_set(struct cluster *c, const char *key, double value, struct err *err)
{
	int k = key_of(key), rc = k < 0 || k == KEY_PLACE ? unknown_key(key, err) : check(k, value, err);

	if (rc)
		return rc;
	switch (k) {
	case KEY_CORES:
		if (!c->slots_set) {
			/* the half an ulp that the ratio may be short of a whole number */
			double slots = floor((double)c->slots * (value / c->cores) * (1.0 + 1e-12));

			c->slots = slots < 1.0                 ? 1
				   : slots > CLUSTER_MAX_SLOTS ? CLUSTER_MAX_SLOTS
							       : (uint32_t)slots;
		}
		c->cores = value;
		break;
	case KEY_SLOTS:
		c->slots = (uint32_t)value;
		c->slots_set = true;
		break;
	case KEY_NODES: set_nodes(c, (uint32_t)value); break;
	case KEY_GPUS:
		c->gpus = (uint32_t)value;
		c->counts_gpus = true;
		break;
	default: c->memory_mb = value;
	}
	return 0;
}

void cluster_to_json(const struct cluster *c, struct json_writer *w)
{
	json_open(w, '{');
	json_kv_number(w, keys[KEY_CORES], c->cores);
	json_kv_int(w, keys[KEY_SLOTS], c->slots);
	json_kv_int(w, keys[KEY_NODES], c->nodes);
	if (isfinite(c->memory_mb))
		json_kv_number(w, keys[KEY_MEMORY], c->memory_mb);
	if (c->counts_gpus)
		json_kv_int(w, keys[KEY_GPUS], c->gpus);
	if (c->place != PLACE_SPREAD)
		json_kv_string(w, keys[KEY_PLACE], cluster_place_name[c->place]);
	json_close(w, '}');
}
