/* A decision as the protocol and the store have it: docs/PROTOCOL.md, "The decision object". */
#ifndef SCHEDULER_DAEMON_OPS_DECISION_JSON_H
#define SCHEDULER_DAEMON_OPS_DECISION_JSON_H

#include "common/json/json.h"
#include "scheduler/config/job_type.h"
#include "scheduler/core/alternatives.h"

struct decision_about {
	int64_t at_ns;
	const char *when;            /* "arrival", "start" */
	const char *policy, *model;  /* model "": none */
	const struct job_type *type; /* for the learning rates */
	double failing[JOB_TYPE_MAX_BATCHES]; size_t n_failing; /* batches left out because runs failed */
	double epochs;               /* where they are not chosen with the batch; NaN: it has none */
	double slo_s;                /* what was left of it; NaN: none */
	double took_us;
	double accuracy_error;       /* within which accuracies are equal; 0: not known */
	const struct alternative *shorter; /* of a refused job: in time with fewer epochs; NULL: not asked */
};
void decision_json(struct json_writer *w, const struct decision *d, const struct decision_about *a);

#endif
