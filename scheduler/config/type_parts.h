/* What the files behind job_type.h share: job_type.c (the table of a type's keys), job_params.c (parameters
 * and their values), job_epochs.c (how long a job trains), job_argv.c (the template of the command). */
#ifndef SCHEDULER_CONFIG_TYPE_PARTS_H
#define SCHEDULER_CONFIG_TYPE_PARTS_H

#include "scheduler/config/job_type.h"
#include "scheduler/config/keys.h"

#define PARAM_MAX_WORDS 1024

extern const struct key job_type_keys[];
bool env_name_is_good(const char *s); /* of a variable: letters, digits and _, no digit first */

/* "job": a description of the job (profiler/design.h), from which the type takes its command, its parameters,
 * batches, cpus and the place of its result. */
void job_read(struct fields *f, const char *name, void *type);
void job_write(const void *type, struct json_writer *w);
/* "params" and, as its placeholders are known then, "argv". */
void params_read(struct fields *f, const char *name, void *type);
void params_write(const void *type, struct json_writer *w);
bool param_word_is_safe(const char *s);  /* letters, digits and _ . + -, the first neither - nor . */
bool param_word_is_text(const char *s);  /* no control characters: one that the file lists */
bool param_is_range(const char *s);      /* "3..20", of epochs */
bool param_name_is_taken(const char *name); /* Postrider fills it in */
void param_release(struct job_param *p);
const struct job_param *param_find(const struct job_type *t, const char *name, size_t len);
void argv_read(struct fields *f, struct job_type *t);
/* The list at `key` of an open object: at most JOB_TYPE_MAX_ARGS words of at most JOB_TYPE_MAX_ARG bytes into
 * argv[], which has room for one more. `names`: the placeholders there are. The first word is a program: it
 * has no placeholder, and it becomes absolute where it has a slash. */
/* A program with a slash in its name is found from here, or from `dir`, not from where it will run. */
void program_absolute(struct fields *f, const char *key, const char *dir, char **argv);
void command_read(struct fields *f, const char *key, const char *const *names, char **argv, size_t *n);

/* In this order, after the parameters. */
void epochs_param_read(struct fields *f, const char *name, void *type);
void epochs_choices_read(struct fields *f, const char *name, void *type);
void epochs_choices_write(const void *type, struct json_writer *w);
void early_stop_read(struct fields *f, const char *name, void *type);

/* A list of 1 to max_n whole numbers from 1 to `max`, none of them twice; ascending in out[]. */
void counts_read(struct fields *f, const char *key, size_t max_n, double max, double *out, size_t *out_n);

#endif
