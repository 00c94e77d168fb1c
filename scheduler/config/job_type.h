/* What a job may run: a type of the operator's, with an argv template and typed parameters. Clients choose
 * a type and values, never a command; no shell is involved. */
#ifndef SCHEDULER_CONFIG_JOB_TYPE_H
#define SCHEDULER_CONFIG_JOB_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"
#include "common/text/template.h"
#include "scheduler/process/output_line.h"

#define JOB_TYPE_MAX_PARAMS 32
#define JOB_TYPE_MAX_ARGS 256
#define JOB_TYPE_MAX_ARG 4096   /* bytes of one word, placeholders filled in */
#define JOB_TYPE_MAX_NAME 64    /* [a-z0-9][a-z0-9_.-]* */
#define JOB_TYPE_MAX_VALUE 128  /* bytes of a parameter's value */
#define JOB_TYPE_MAX_BATCHES 64
#define JOB_TYPE_MAX_CPUS 4096
#define JOB_TYPE_MAX_EPOCHS 256
#define EPOCHS_MAX 1000000
#define JOB_TYPE_MAX_GPUS 1000000

enum param_kind { PARAM_INTEGER, PARAM_NUMBER, PARAM_WORD };

struct job_param {           /* its name is also the model's column, where the model has one */
	char *name;
	enum param_kind kind;
	bool required;
	char *otherwise;     /* text; NULL: none */
	double min, max;     /* of numbers */
	char **word; size_t n_words; /* PARAM_WORD: allowed values, any text; NULL after the last; none: any
	                             of [A-Za-z0-9_.+-]{1,128} that starts with neither - nor . */
	bool free;           /* PARAM_WORD: any text, and nothing depends on it: no column of a model */
};

enum lr_rule { LR_NONE, LR_LINEAR, LR_SQRT };

/* May jobs run only to learn from them (daemon/learn/family_probe.c)? */
enum config_probe { PROBE_DEFAULT, PROBE_OFF, PROBE_AUTO };
extern const char *const probe_name[]; /* by it; NULL after the last */

struct job_type {
	char *name, *about;
	char *argv[JOB_TYPE_MAX_ARGS + 1]; size_t n_argv; /* NULL after the last; empty: advise only */
	struct job_param *param; size_t n_params;
	uint32_t cpus_min, cpus_max, cpus_default;
	double batch[JOB_TYPE_MAX_BATCHES]; size_t n_batches; /* ascending; none: the model's */
	enum lr_rule lr_rule;
	double lr_base, lr_base_batch;
	double memory_mb, memory_mb_per_record; /* of one job: memory_mb + per_record * batch; NaN: not
	                                           known */
	uint32_t gpus, max_gpus; /* of one job with any batch; the most that a request may ask for */
	double records_per_gpu; /* records of a batch for each gpu; NaN: any number */
	double gpu_memory_mb, gpu_memory_mb_per_record; /* of each gpu: the first, and the second for each of
	                                                   its records; NaN: not known */
	double max_output_mb;   /* of each log; 0: any; NaN: as the configuration says */
	double max_time_s;      /* run time after which the job is stopped; 0: none */
	/* rlimits; 0: as the daemon has */
	uint64_t max_file_mb, max_address_mb; uint32_t max_open_files; int nice;
	struct output_spec result; /* where its output has accuracy and epoch */
	char *epochs_param;     /* parameter that holds the number of epochs; NULL: no progress known */
	double epochs[JOB_TYPE_MAX_EPOCHS]; size_t n_epochs; /* what open epochs are chosen from, ascending;
	                                                        none: any */
	enum config_probe probe; /* PROBE_DEFAULT: the configuration's */
	bool early_stop;        /* a job that would be late may be stopped after an epoch, and still has a
	                           result */
	char *model;            /* its own model file; NULL: the configuration's counts */
	char *table, *schema, *curves; /* that its own model is trained from, beside its jobs; NULL: none */
	size_t first_after;     /* it has its own model, and the daemon trains the first one after so
	                           many jobs; until then they run without a promise; 0: it does not */
	char *job;              /* the description that command and parameters came from; NULL: none */
	char *executor;         /* an engine, or "local"; NULL: the configuration's */
	char *gres;             /* devices that it asks its engine for, "gpu:1"; NULL: none */
	char *work_dir;         /* NULL: the job's own folder */
	char **env; size_t n_env; /* "NAME=value", beside PATH, HOME, LANG, POSTRIDER_JOB */
	bool unbuffered;        /* its environment has OUTPUT_UNBUFFERED */
	bool terminal;          /* its output goes through a pseudo-terminal */
};

/* One job's choice of values, checked against the type: text of every parameter, defaults filled in. */
struct job_params {
	char *value[JOB_TYPE_MAX_PARAMS]; /* by the type's param[] index; NULL: not given, no default */
	double number[JOB_TYPE_MAX_PARAMS]; /* NaN for words, where not given, and of open epochs */
	/* Open epochs: the parameter that holds them was given as "3..20" (its value[] here), and how many it
	 * will be is part of the decision. 0 or NaN (after job_params_read() NaN): they are not open. */
	double epochs_from, epochs_to;
};
static inline bool job_params_open(const struct job_params *p)
{
	return p->epochs_from > 0.0;
}

static inline bool job_type_has_model(const struct job_type *t) /* its own one, now or later */
{
	return t->model || t->table || t->first_after;
}

int job_type_from_json(const char *where, const char *name, const struct json *v, struct job_type *out,
                       struct err *err); /* `where`: "FILE: types.NAME" */
void job_type_to_json(const struct job_type *t, struct json_writer *w);
void job_type_release(struct job_type *t);

/* Numbers may be given as JSON numbers or as their decimal text, the epochs also as a range of whole numbers
 * "FROM..TO", both ends allowed and among them at least one that may be chosen. ERR_ARG: text says which
 * parameter and why; *out_field is its name, borrowed from `t` or `given`. `epochs`: the value of the
 * parameter that holds them, instead of the one in `given`, for those who do not know what the type calls it.
 * given, epochs and out_field may be NULL. */
int job_params_read(const struct job_type *t, const struct json *given, const struct json *epochs,
                    struct job_params *out, const char **out_field, struct err *err);
void job_params_to_json(const struct job_type *t, const struct job_params *p, struct json_writer *w);
void job_params_release(struct job_params *p);

/* What the placeholders of argv stand for, beside the parameters. */
struct job_argv_values {
	const char *job;   /* {job}: the id */
	const char *dir;   /* {dir}: the job's folder */
	double batch, lr;  /* {batch}, {lr} (NaN: no rule) */
	uint32_t cpus;     /* {cpus} */
	uint32_t gpus;     /* {gpus} */
	const char *devices; /* {devices}: their names, "0,3"; NULL: none, or its engine chooses them */
	uint64_t seed;     /* {seed} */
	double index;      /* {index}: of a job of an array; NaN: none */
	double epochs;     /* what was chosen where the epochs are open; else not looked at */
};
/* argv[] and each word are to be freed: argv_free(). Unknown placeholders were refused when the type
 * was read; a word that becomes too long is ERR_ARG. A word whose placeholder has no value (an optional
 * parameter) is left out, together with a flag "--x" directly before it. */
int job_type_argv(const struct job_type *t, const struct job_params *p, const struct job_argv_values *v,
                  char ***out, struct err *err);

/* The counts that open epochs are chosen from, ascending: those of the type from `from` to `to`, or without
 * any every whole number there. More than `max` (at least 2) are thinned out evenly, the first and the last
 * kept. Returns how many. */
size_t job_type_epochs(const struct job_type *t, double from, double to, double *out, size_t max);
/* The least that a job may have. */
double job_type_least_epochs(const struct job_type *t);

/* Does the command have this placeholder? `postrider check-config` asks. */
bool job_type_uses(const struct job_type *t, const char *name);

/* The learning rate that belongs to a batch; LR_NONE: lr_base for every batch. NaN: the type gives none. */
double job_type_lr(const struct job_type *t, double batch);
const char *lr_rule_name(enum lr_rule r); /* "none", "linear", "sqrt" */

#endif
