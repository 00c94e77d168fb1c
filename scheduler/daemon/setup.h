/* A configuration and the models it names, loaded and found to suit each other, with what is derived from
 * them: which parameter of a job type is which column of its model. Immutable; a reload makes a second one,
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
	uint32_t slot;                 /* of its model */
};

struct model_file;                     /* setup.c: a model in memory, shared by the setups that use it */

struct model_slot {
	const char *type;              /* the job type whose own model it is; NULL: the configuration's, of
	                                  all types that do not have one */
	const char *path;              /* of its file, borrowed from the configuration; NULL: none is named */
	struct model_file *file;
	const struct model *model;     /* NULL: the policy needs none, or it is still to be trained */
	char name[64];                 /* "hybrid-0123456789abcdef": kind, and fingerprint of its data; ""
	                                  without */
};

struct setup {
	struct config *config;
	struct model_slot *slot; size_t n_slots; /* slot[0]: the configuration's model; then by type */
	struct policy_choice policy;
	struct type_columns *columns;  /* as config->type[] */
};

struct setup_source {
	const struct setup *before;    /* a model whose file has not changed is taken from there; NULL */
	const char *type;              /* of the slot that `model` is for */
	struct model *model;           /* compiled; NULL: all files are read */
};
/* Takes the configuration and from->model, also on failure. */
int setup_new(struct config *config, const struct setup_source *from, struct setup **out, struct err *err);
void setup_free(struct setup *s);
/* Points STATE/model to the file of the model in use, for those who read the folder: compare
 * --from-history. Where the configuration names none, it is the first that a type has. What goes wrong is
 * logged: no job depends on it. */
void setup_link_model(const struct setup *s);
/* own[]: room for n_slots; borrowed by *out. */
void setup_sched_params(const struct setup *s, const struct model **own, struct sched_params *out);
#define SETUP_MAX_SLOTS (CONFIG_MAX_TYPES + 1)

/* For people: the configuration's model, and how many types have their own. Returns buf. */
const char *models_named(const struct setup *s, char *buf, size_t size);
/* The number of the slot of a type; 0 for a type that is not there. NULL: the configuration's. */
uint32_t setup_slot_of(const struct setup *s, const char *type);
static inline const struct schema *setup_schema(const struct setup *s, uint32_t slot) /* NULL: no model */
{
	return s->slot[slot].model ? s->slot[slot].model->schema : NULL;
}
/* Fills values that were made under the schema of the type's slot; category[] points into `params`. */
void setup_values_fill(const struct setup *s, const struct job_type *t, const struct job_params *params,
                       uint32_t cpus, struct job_values *out);

#endif
