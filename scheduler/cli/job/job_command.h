/* A user's command becomes a design: which of its words vary, and over which values. */
#ifndef SCHEDULER_CLI_JOB_JOB_COMMAND_H
#define SCHEDULER_CLI_JOB_JOB_COMMAND_H

#include "scheduler/cli/cli.h"
#include "scheduler/profiler/design.h"

/* The numbers that stand in the command itself: a job of it has them. */
#define JOB_COMMAND_TYPED 16
struct job_typed {
	char batch[JOB_COMMAND_TYPED], epochs[JOB_COMMAND_TYPED]; /* "": a placeholder, or there are none */
	bool has_epochs;
};
/* The words of the command into d->command. Without {batch}, it takes the place of the value of an option
 * with such a name ("--batch-size 64"); the same for {epochs}; `talk` (NULL: nobody) says so, and `out` has
 * what was there. {steps} are what epochs are elsewhere, the parts that work comes in: they become {epochs},
 * and lines such as "step 50/1000" end one. ERR_ARG: there is no batch in it. */
int job_command_take(struct profile_design *d, char *const *word, size_t n, const struct cli *talk,
                     struct job_typed *out, struct err *err);
/* Values that neither time nor accuracy depends on: of an option that gives a seed, names the run or says
 * where its output goes. They become placeholders and free values of the design, and `set` has this command's
 * own, "typed_seed=17", to be freed by job_command_names_free(). Commands that differ in nothing else are
 * one. */
int job_command_free(struct profile_design *d, char **set, size_t max, size_t *out_n, struct err *err);
/* A factor as an option has it, "NAME=A,B"; {steps}, of which a command has none any more, are its epochs. */
int job_command_factor(struct profile_design *d, const char *text, struct err *err);
/* The number that training is about, by the options --metric and --goal. Each may be NULL. */
int job_command_metric(struct profile_design *d, const char *metric, const char *goal, struct err *err);
/* Values for a placeholder, as "16,32,64": around those that the command had, or d->epochs, or the usual
 * ones; "": none are usual. */
void job_command_levels(const struct profile_design *d, const char *name, char *const *word, size_t n,
                        char *out, size_t size);
/* The placeholders of the command that are not built in, each once, "batch" first; returns how many. Names
 * are to be freed by job_command_names_free(). */
size_t job_command_names(const struct profile_design *d, char **out, size_t max);
void job_command_names_free(char **name, size_t n);

#endif
