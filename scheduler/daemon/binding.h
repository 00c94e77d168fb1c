/* What ties a live job to the present configuration and model: its type, its checked parameters, its values
 * in the model's columns, and the batches it may take. A binding is made when a job arrives, when it comes
 * back from the store after a restart, and again for every live job when the configuration or the model
 * changes. */
#ifndef SCHEDULER_DAEMON_BINDING_H
#define SCHEDULER_DAEMON_BINDING_H

#include "common/json/json.h"
#include "scheduler/jobs/jobs.h"
#include "scheduler/daemon/setup.h"

struct binding {
	const struct job_type *type;
	struct job_bound *bound;
	uint32_t slot;                /* of its model */
	bool apart;                   /* an engine beside the machine runs it (core/sched.h) */
	double *batch; size_t n_batches;
	double *epochs; size_t n_epochs; /* to choose from; none: they are fixed */
};

struct binding_input {               /* what a job says; NULL: nothing */
	const char *type;
	const struct json *params;
	const struct json *epochs;   /* in the place of the parameter that holds them */
	const struct json *batches;
	uint32_t cpus;
};

/* ERR_NOTFOUND: no such type; ERR_ARG: *out_field says what is wrong with it. */
int binding_make(const struct setup *s, const struct binding_input *in, struct binding *out,
                 const char **out_field, struct err *err);
int binding_of_row(const struct setup *s, const struct job_record *row, struct binding *out, struct err *err);
/* For a running job whose type is not configured any more: the model does not know it, and it keeps its
 * batch. */
int binding_without_type(const struct setup *s, const struct job_record *row, struct binding *out,
                         struct err *err);
void binding_release(struct binding *b);
void binding_give(struct binding *b, struct job *job); /* the job takes what b holds, and drops what it had */
/* The job as the scheduler wants it. Borrows from the job. */
void binding_request(const struct job *job, struct sched_request *out);

#endif
