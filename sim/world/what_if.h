/* What a simulation changes about the real machine and its jobs, to answer "what if": `--set
 * cluster.cores=16`. The random numbers stay the same, so differences in the results come from the change. */
#ifndef SIM_WORLD_WHAT_IF_H
#define SIM_WORLD_WHAT_IF_H

#include "sim/world/cluster.h"

enum what_key {
	WHAT_CORES,  /* cluster.cores */
	WHAT_NODES,
	WHAT_SLOTS,
	WHAT_MEMORY, /* cluster.memory_mb; the last one of the machine */
	WHAT_SLO,    /* slo.scale */
	WHAT_LOAD,   /* load.scale */
	WHAT_NOISE,
	WHAT_KEYS,
};
extern const char *const what_key_name[WHAT_KEYS + 1]; /* "cluster.cores", ...; NULL at the end */

struct what_if { /* all zero: nothing is changed */
	bool set[WHAT_KEYS];
	double value[WHAT_KEYS];
};
/* "key" of `len` bytes. ERR_ARG names the nearest key, or all of them. */
int what_key_parse(const char *name, size_t len, enum what_key *out, struct err *err);
bool what_key_is_whole(enum what_key k); /* its values are whole numbers */
/* A number of `len` bytes within the range of the key. ERR_ARG names the key, the value and the range. */
int what_value_parse(enum what_key k, const char *text, size_t len, double *out, struct err *err);
/* ERR_ARG: out of range */
int what_if_set(struct what_if *w, enum what_key k, double value, struct err *err);
/* "key=value"; ERR_ARG: also for a key twice */
int what_if_parse(struct what_if *w, const char *text, struct err *err);
/* The key in front of '='; *out_rest is the text behind it. */
int what_if_split(const char *text, enum what_key *out, const char **out_rest, struct err *err);
double what_if_or(const struct what_if *w, enum what_key k, double otherwise);
/* Changes the machine: cores, nodes, slots and memory. Slots that are not set follow the cores. */
int what_if_machine(const struct what_if *w, struct cluster *io, struct err *err);

#endif
