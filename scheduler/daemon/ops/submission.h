/* What `submit` and `predict` ask for, read and checked once; see docs/PROTOCOL.md. Texts and lists are
 * borrowed from the request. */
#ifndef SCHEDULER_DAEMON_OPS_SUBMISSION_H
#define SCHEDULER_DAEMON_OPS_SUBMISSION_H

#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/ops/ops.h"

struct submission {
	const struct job_type *type;
	struct binding_input input;  /* its type by name, parameters, epochs, batches and cpus */
	double slo_s, confidence, max_memory_mb; /* NaN: none */
	uint32_t gpus;
	bool best_effort, may_stop;
	double chance;               /* 0: none */
	double value;                /* NaN: not stated */
	int priority;
	uint32_t tenant;
	int64_t now_ns;
	/* of `submit` alone */
	const char *mode, *key, *tag; /* key and tag NULL: none */
	bool dry_run, watch;
	uint64_t after;              /* the job that has to end first; 0: none */
	char after_more[WAITING_MAX_TEXT]; /* and others, as the record has them; "": none */
	bool after_ok, waits;        /* and to end well; one has not ended yet */
	uint64_t retry;
	double index;                /* of an array; NaN: none */
};

/* The members that say how the submission is handled: mode, key, tag, dry_run, watch. False: answered. */
bool submission_read_handling(struct request *r, struct submission *out);
/* All others. False: answered. */
bool submission_read(struct request *r, struct submission *out);
#endif
