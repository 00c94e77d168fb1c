/* One replay: the jobs of a trace arrive, a policy decides with the code of scheduler/core, a world says
 * what happens. Virtual time, one thread; the same input gives the same outcomes to the bit. */
#ifndef SIM_REPLAY_REPLAY_H
#define SIM_REPLAY_REPLAY_H

#include "sim/replay/models.h"
#include "sim/replay/policies.h"
#include "sim/trace/trace.h"
#include "sim/world/world.h"

/* ---- what became of a job: one array per replay, in the order of the trace ---- */
enum outcome_state {
	OUTCOME_REJECTED,   /* not taken */
	OUTCOME_MET,        /* ended in time */
	OUTCOME_MISSED,     /* ended behind its limit */
	OUTCOME_DONE,       /* ended, and had no limit */
	OUTCOME_FAILED,     /* ended without a result */
	OUTCOME_REFUSED,    /* the queue was full */
	OUTCOME_DROPPED,    /* taken by chance, and given up: no chance was left, or its time was over */
	OUTCOME_STATES,
};
extern const char *const outcome_state_name[OUTCOME_STATES]; /* "rejected", "met", ... */

struct outcome {
	uint8_t state;            /* enum outcome_state */
	uint32_t node;            /* of those taken; 0 where all jobs share the machine */
	/* its limit was predicted to hold; a policy that admits all promises nothing */
	bool promised;
	bool by_chance;           /* taken without a promise, for the chance it had */
	int64_t start_ns, end_ns; /* of those taken; 0 otherwise */
	double batch, epochs;     /* NaN: not taken; epochs NaN: not open */
	double promised_s;        /* at arrival: expected response; NaN: nothing predicted */
	double promised_upper_s;  /* and its bound; NaN: none */
	double run_s, run_upper_s;/* at the start: expected run time and its bound */
	double predicted_accuracy, accuracy; /* NaN: none */
	double processes, njobs;  /* means over its run: the load it met */
	/* wall-clock: arrival and start together. Not reproducible: kept apart in files. */
	double decision_s;
};

/* How several daemons share a cluster: daemons.h. */
enum daemons_share { DAEMONS_PARTS, DAEMONS_ASKED, DAEMONS_SHARED, DAEMONS_SHARES };
extern const char *const daemons_share_name[DAEMONS_SHARES + 1]; /* "parts", "asked", "shared"; NULL */
#define DAEMONS_MOST 64

struct replay_settings {            /* how policies decide; the same in all runs of a comparison */
	double confidence;          /* of jobs that do not give one */
	bool adapt;                 /* bounds follow what happens (core/learn/adapt.h) */
	double window_s; /* as in core/sched.h */
	size_t max_live;            /* jobs queued and running; more are refused; 0: 65,536 */
	uint32_t daemons;           /* that share the cluster, and how; 0: one */
	enum daemons_share share;
};

struct replay_params {
	const struct trace *trace;
	const struct world *world;
	size_t fold;
	const struct sim_policy *policy;
	const struct model *model;  /* NULL: only for a policy that wants none; the oracle needs none */
	uint64_t seed;              /* of the random numbers of jobs and of the policy */
	struct replay_settings settings;
	void (*on_progress)(void *owner, size_t done, size_t total); /* optional; jobs arrived */
	void *owner;
};

struct replay_result {
	struct outcome *outcome; size_t n; /* by job of the trace */
	double end_s;               /* virtual moment of the last event */
	double busy_s;              /* core-seconds worked */
	uint64_t events;            /* arrivals, and the world's own: starts, ends, services */
	size_t most_running, most_queued;
	bool chances;               /* replay_takes_chances() */
	bool is_bound;              /* of the optimum: nothing was played, and ... */
	double bound;               /* ... no schedule has a larger mean accuracy, a miss as 0 */
};
/* Can the policy run on this cluster? ERR_ARG says why not. */
int replay_check(const struct sim_policy *p, const struct cluster *c, const struct replay_settings *how,
                 struct err *err);
/* May it take a job of this trace by chance: for the chance it has as a setting, or for one that a job asks
 * for? */
bool replay_takes_chances(const struct sim_policy *p, const struct trace *t);
int replay_run(const struct replay_params *p, struct replay_result *out, struct err *err);
void replay_result_release(struct replay_result *r);

#endif
