/* What-ifs: the same comparison with something changed. One setting (--set), several values of one (--sweep), and the
 * question turned round: which is the least value that will do (--capacity). All of it on the same random numbers, so
 * what differs is what was changed. */
#ifndef SIM_COMPARE_SWEEP_H
#define SIM_COMPARE_SWEEP_H

#include "sim/compare/compare.h"

#define SWEEP_MAX_POINTS 100
#define SWEEP_DEFAULT_POINTS 7

enum what_key {
	WHAT_CORES,  /* cluster.cores */
	WHAT_NODES,
	WHAT_SLOTS,
	WHAT_MEMORY, /* cluster.memory_mb */
	WHAT_SLO,    /* slo.scale */
	WHAT_LOAD,   /* load.scale */
	WHAT_NOISE,
	WHAT_KEYS,
};
extern const char *const what_key_name[WHAT_KEYS + 1]; /* "cluster.cores", ...; NULL at the end */
bool what_key_is_whole(enum what_key k);               /* its values are whole numbers */
/* ERR_ARG names the nearest key, or all of them. */
int what_key_parse(const char *name, size_t len, enum what_key *out, struct err *err);

struct what_if {
	double value[WHAT_KEYS]; /* NaN: as it is */
};
void what_if_init(struct what_if *w);
int what_if_set(struct what_if *w, enum what_key k, double value, struct err *err); /* ERR_ARG: out of range */
int what_if_parse(struct what_if *w, const char *text, struct err *err);            /* "key=value" */
/* The comparison with all of it applied; `given` is the machine as it is, `room` holds the other one while io is in use. */
int what_if_apply(const struct what_if *w, const struct cluster *given, struct cluster *room,
                  struct compare_params *io, struct err *err);

/* ---- one comparison a value ---- */
struct sweep {
	enum what_key key;
	double value[SWEEP_MAX_POINTS]; /* ascending as given, no two alike */
	size_t n;
};
/* "key=from..to", "key=from..to:steps" (so many values, ends included), "key=a,b,c". ERR_ARG says what is wrong. */
int sweep_parse(const char *text, struct sweep *out, struct err *err);

struct sweep_params {
	const struct sweep *sweep;
	const struct what_if *base;       /* the other settings */
	const struct cluster *given;
	const struct compare_params *compare; /* keep_outcomes is of point `keep` alone */
	size_t keep;
	/* Called after each point, in order. It may take the result by setting *io to NULL; else it is freed. */
	int (*on_point)(void *owner, size_t i, struct compare_result **io, struct err *err);
	void *owner;
};
int sweep_run(const struct sweep_params *p, struct err *err);

/* ---- the least whole number that will do ---- */
#define CAPACITY_MAX_POINTS 128

struct capacity_point {
	double value;
	struct interval metric;
	bool holds;
};
struct capacity {
	struct capacity_point point[CAPACITY_MAX_POINTS]; size_t n; /* all that were tried, ascending */
	double answer;      /* NaN: none of those tried will do */
	bool contradicts;   /* a value holds and a larger one does not: more is not always better here */
};
struct capacity_params {
	double from, to;    /* whole, 0 < from <= to */
	double target;
	int better;         /* 1: at least the target holds, -1: at most */
	/* What this value gives. */
	int (*measure)(void *owner, double value, struct interval *out, struct err *err);
	void *owner;
};
/* By bisection, as if more were better; the ends and the answer's neighbours are always among the points. Where the
 * largest one fails, some in between are tried before it gives up. */
int capacity_search(const struct capacity_params *p, struct capacity *out, struct err *err);

#endif
