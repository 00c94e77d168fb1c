/* A configuration and the model it names, loaded and found to suit each other, with what is derived from the
 * two: which parameter of a job type is which column of the model. Immutable; a reload makes a second one,
 * in a thread, because a large model takes longer to read than the loop may be blocked. */
#ifndef SCHEDULER_DAEMON_SETUP_H
#define SCHEDULER_DAEMON_SETUP_H

#include "predictors/model.h"
#include "scheduler/config/config.h"
#include "scheduler/core/policy/policy.h"
#include "scheduler/core/sched.h"

struct type_columns {                  /* of one job type */
	int param[JOB_TYPE_MAX_PARAMS]; /* the model's source (schema.h) for each parameter; -1: the model has
	                                   none */
	int cpus;                      /* -1: none */
};

struct setup {
	struct config *config;
	struct model *model;           /* NULL: the policy needs none and none was given */
	struct policy_choice policy;
	char model_name[64];           /* "hybrid-0123456789abcdef": kind, and fingerprint of its data; ""
	                                  without */
	struct type_columns *columns;  /* as config->type[] */
};

/* Takes both, also on failure. model: the compiled one of config->model; NULL: that file is read. */
int setup_new(struct config *config, struct model *model, struct setup **out, struct err *err);
void setup_free(struct setup *s);
/* Points STATE/model to the file of the model in use, for those who read the folder: compare
 * --from-history. What goes wrong is logged: no job depends on it. */
void setup_link_model(const struct setup *s);
void setup_sched_params(const struct setup *s, struct sched_params *out);

static inline const struct schema *setup_schema(const struct setup *s) /* the model's; NULL without a model */
{
	return s->model ? s->model->schema : NULL;
}
/* Fills values that were made under that schema; category[] points into `params`. */
void setup_values_fill(const struct setup *s, const struct job_type *t, const struct job_params *params,
                       uint32_t cpus, struct job_values *out);

#endif
