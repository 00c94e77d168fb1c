/* What the files behind job_type.h share: job_type.c (reading and writing a type), job_params.c (parameters
 * and their values), job_epochs.c (how long a job trains), job_argv.c (the template of the command). */
#ifndef SCHEDULER_CONFIG_TYPE_PARTS_H
#define SCHEDULER_CONFIG_TYPE_PARTS_H

#include "common/json/fields.h"
#include "scheduler/config/job_type.h"

#define PARAM_MAX_WORDS 1024

/* "params" of an open type: t->param[], t->n_params. */
void params_read(struct fields *f, struct job_type *t);
void param_to_json(const struct job_param *p, struct json_writer *w); /* the object alone */
void param_release(struct job_param *p);
const struct job_param *param_find(const struct job_type *t, const char *name, size_t len);

/* "epochs_param", "epochs_choices" and "early_stop" of an open type whose parameters are known. */
void epochs_read(struct fields *f, struct job_type *t);

/* "argv" of an open type whose parameters are known: t->argv[], t->n_argv. */
void argv_read(struct fields *f, struct job_type *t);
/* The list at `key` of an open object: at most JOB_TYPE_MAX_ARGS words of at most JOB_TYPE_MAX_ARG bytes into argv[],
 * which has room for one more. `names`: the placeholders there are. The first word is a program: it has no
 * placeholder, and it becomes absolute where it has a slash. */
void command_read(struct fields *f, const char *key, const char *const *names, char **argv, size_t *n);

#endif
