/* Jobs that share a machine, as a fluid: each is some part done, and how fast it goes depends on the
 * processes that run at the moment. The engine of the worlds `measured` and `fluid`; they say how long a job
 * takes among P processes. Between two changes of P all rates are constant, so the next end is known
 * exactly: an event costs O(jobs running). Also an M/M/1 queue with processor sharing, in tests and in the
 * bench against SimPy. */
#ifndef SIM_WORLD_SHARING_H
#define SIM_WORLD_SHARING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct sharing;

struct sharing_job {
	uint64_t id;
	uint32_t cpus;
	uint32_t tag;             /* the owner's: which law it follows */
	uint32_t kind;            /* of those in sharing_params.pair */
	double slow;              /* factor on its time, > 0 */
	double until;             /* part of its work after which it ends, 0..1: below 1 for one that fails */
	double extra[4];          /* the owner's */
	/* the owner's, of payload_size bytes: copied at the start, and there for the law */
	const void *payload;
};

struct sharing_end {
	struct sharing_job job;
	double at_s;
	double processes, njobs;  /* means over its run */
	double done;              /* part of what it would have done (up to `until`): below 1 if stopped */
};

/* Seconds that the whole of job j takes if `processes` run all the time, itself included; > 0, finite. */
typedef double sharing_law(const void *owner, const struct sharing_job *j, double processes);

struct sharing_params {
	sharing_law *law;
	const void *owner;        /* of the law; borrowed */
	size_t payload_size;      /* 0: none */
	double cores;             /* for busy_s: min(cores, processes) work at a time */
	/* log_pair[k * n_kinds + g]: the logarithm of the factor on the time of a job of kind k where kind
	 * g has the whole machine; less of it counts in proportion. Borrowed; n_kinds 0: none */
	const double *log_pair;
	size_t n_kinds;
	/* from this moment on all takes (1 + drift) times as long; drift 0: never */
	double drift, drift_at_s;
};
int sharing_new(const struct sharing_params *p, struct sharing **out, struct err *err);
void sharing_free(struct sharing *s);
/* `to` has the jobs of `from` then, and keeps its own law and owner: what the owner knows of a job must be
 * copied too. */
int sharing_copy(struct sharing *to, const struct sharing *from, struct err *err);
/* A moment before the last end counts as that end. ERR_ARG: a value out of range. */
int sharing_start(struct sharing *s, double now_s, const struct sharing_job *j, struct err *err);
double sharing_next_s(struct sharing *s);  /* INFINITY: nothing runs */
/* of ends in one nanosecond the lowest id first */
bool sharing_end(struct sharing *s, struct sharing_end *out);
/* The job is stopped at that moment, before its end. False: no such job runs. */
bool sharing_stop(struct sharing *s, double now_s, uint64_t id, struct sharing_end *out);
/* The part of its whole work that the job has done at that moment, which is not behind the next end; 0..1.
 * False: no such job runs. */
bool sharing_progress(struct sharing *s, double now_s, uint64_t id, double *out);
double sharing_busy_s(const struct sharing *s);
uint64_t sharing_events(const struct sharing *s);

#endif
