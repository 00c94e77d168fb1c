/* The kinds of a trace as a model sees them: values under its schema, and the choices a job of the kind
 * has. */
#ifndef SIM_REPLAY_BOUND_KINDS_H
#define SIM_REPLAY_BOUND_KINDS_H

#include "predictors/model.h"
#include "sim/trace/trace.h"
#include "sim/world/world.h"

struct bound_kind {
	struct job_values values;             /* without a model: empty */
	const double *batch; size_t n_batches; /* borrowed; NULL: the model's candidates */
	double *epochs; size_t n_epochs;      /* open ones; NULL: fixed */
	uint32_t gpus;                        /* that it holds; 0 where the cluster does not count them */
};

struct bound_kinds {
	struct bound_kind *kind; size_t n;
	bool has_values;
};

/* `model` may be NULL. Trace, world and model are borrowed while it lives. A column that the model learnt
 * from must be given by every kind, unless it had a single value in training, which then stands for it.
 * ERR_FORMAT: the line of the kind's first job, the column and the reason. */
int bound_kinds_init(struct bound_kinds *b, const struct trace *t, const struct world *w,
                     const struct model *model, struct err *err);
void bound_kinds_release(struct bound_kinds *b);

#endif
