/* The builder of a trace from the inside: build.c fills it, done.c makes the trace of it. */
#ifndef SIM_TRACE_BUILD_INTERNAL_H
#define SIM_TRACE_BUILD_INTERNAL_H

#include "sim/trace/build.h"
#include "sim/trace/names.h"

#define TRACE_NAME_SHOWN 200
#define TRACE_MAX_NUMBER 1e12   /* of batches, epochs, megabytes: beyond it is a mistake */
#define TRACE_MAX_WEIGHT 1e6
#define TRACE_MAX_EPOCHS 1e6
#define TRACE_MAX_NOTICES 100

struct kind_found {             /* to find a kind again */
	uint64_t hash;
	uint32_t n_columns;     /* there were when it was made */
};

struct trace_build {
	char *name;
	struct trace_names column, tenant, type;
	double *weight; size_t cap_weights; /* by tenant; NaN: not given */
	struct trace_kind *kind; size_t n_kinds, cap_kinds;
	struct kind_found *kind_found; size_t cap_found;
	uint32_t *kind_slot; size_t n_kind_slots; /* index + 1, by hash; 0: free */
	struct trace_job *job; size_t n_jobs, cap_jobs;
	uint64_t highest_id;
	uint64_t *id_slot; size_t n_id_slots; /* NULL while ids ascend */
	char **notice; size_t n_notices, cap_notices;
	bool absolute;
};

/* ERR_FORMAT: an empty or long text, or one that CSV or JSON could not carry; `what` says what it is. */
int trace_build_check_text(const struct trace_build *b, const char *what, const char *text, struct err *err);
int trace_build_nomem(const struct trace_build *b, struct err *err);

#endif
