/* The design of an experiment: factors and their levels, how they are combined, how often and in which order
 * they are run, and the command that is run. It comes from a JSON file, from flags, or from both; flags
 * override the file.
 *
 * A checked design gives a plan (plan.h): every run in order, the same for the same design. */
#ifndef SCHEDULER_PROFILER_DESIGN_H
#define SCHEDULER_PROFILER_DESIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"
#include "common/strbuf.h"
#include "scheduler/process/output_line.h"

#define PROFILE_MAX_FACTORS 16
#define PROFILE_MAX_LEVELS 64
#define PROFILE_MAX_VALUE 128      /* bytes of a name or a level */
#define PROFILE_MAX_ARGS 256       /* words of the command */
#define PROFILE_MAX_ARG 4096       /* bytes of one of them, placeholders filled in */
#define PROFILE_MAX_JOBS 64        /* copies at the same time */
#define PROFILE_MAX_RUNS 100000    /* replications included; also of the full grid */
#define PROFILE_MAX_REPLICATIONS 1000
#define PROFILE_MAX_MIXED 1000
#define PROFILE_MAX_NEIGHBOURS 3   /* that runs are measured beside */
#define PROFILE_MAX_SEED ((uint64_t)1 << 53) /* JSON numbers are doubles */
#define PROFILE_MAX_BYTES ((size_t)1 << 20)  /* of a design file */

enum profile_kind { PROFILE_FULL, PROFILE_TWO_LEVEL, PROFILE_LHS };

struct profile_factor {
	char *name;
	char **level; size_t n_levels; /* as text, in the order given */
	bool number;                   /* every level is one */
	bool free;                     /* fixed, and nothing depends on it: a job may have any other value,
	                                  and no table has it */
};

/* Another job that may run beside this one: its design, whose settings in the middle are used. */
struct profile_neighbour {
	char name[PROFILE_MAX_VALUE + 1]; /* of its job type */
	const struct profile_design *design;
};

struct profile_design {
	struct profile_factor factor[PROFILE_MAX_FACTORS]; size_t n_factors; /* what varies */
	struct profile_factor fixed[PROFILE_MAX_FACTORS];  size_t n_fixed;   /* one level each */
	enum profile_kind kind;
	size_t lhs_runs;               /* of a Latin hypercube, before replication */
	size_t replications;
	size_t mixed;                  /* runs of one setting beside jobs of another, after the others */
	/* Borrowed. A few runs are measured beside each of them, after all others; what was measured before
	 * stays good where they come and go. */
	const struct profile_neighbour *neighbour; size_t n_neighbours;
	uint64_t seed;
	char *command[PROFILE_MAX_ARGS + 1]; size_t n_command; /* the template; NULL after the last */
	struct output_spec result;     /* where the command's output has accuracy and epoch */
	/* the user said where the accuracy is, so a run without an accuracy has failed */
	bool result_given;
	char *epochs;                  /* of a job that says none: "14", "1..4"; NULL: its range of levels */
	char *work_dir;                /* where the command runs; NULL: where we are */
	bool warm_up;                  /* run the first setting once, unmeasured, before anything else */
	const char *executor;          /* borrowed; NULL: this machine */
	double timeout_s;              /* of one run */
	size_t tries;                  /* how often an unstable run is measured at most */
	double max_spread;             /* (longest - shortest) / mean above which it is; 0: no bound */
};

/* Factor i of all: those that vary come first, then the fixed ones. */
static inline const struct profile_factor *profile_factor_at(const struct profile_design *d, size_t i)
{
	return i < d->n_factors ? &d->factor[i] : &d->fixed[i - d->n_factors];
}
/* NULL: none */
const struct profile_factor *profile_factor_find(const struct profile_design *d, const char *name);

void profile_design_init(struct profile_design *d); /* all defaults, nothing owned */
void profile_design_release(struct profile_design *d);

int profile_design_read(struct profile_design *d, const char *path, struct err *err);
int profile_design_from_json(struct profile_design *d, const char *name, const struct json *v,
                             struct err *err);

/* The same from flags: each replaces what the file said. */
/* "cpus=1,2"; one level: fixed */
int profile_design_free(struct profile_design *d, const char *name, const char *value, struct err *err);
int profile_design_factor(struct profile_design *d, const char *text, struct err *err);
int profile_design_kind(struct profile_design *d, const char *text, struct err *err);   /* full, 2k, lhs:N */
/* split like a shell would */
int profile_design_command(struct profile_design *d, const char *text, struct err *err);
int profile_design_argv(struct profile_design *d, char *const *word, size_t n, struct err *err);
int profile_design_result(struct profile_design *d, const char *accuracy, const char *regex,
                          struct err *err);

/* What only the whole can say: something varies, the command uses every factor and names no other, sizes fit.
 * A design without njobs gets one job. */
int profile_design_check(struct profile_design *d, struct err *err);

/* What makes two campaigns the same one, as one line of JSON. Time limit, tries, bound and
 * warm-up do not belong to it: they do not change what is measured. */
void profile_design_canonical(const struct profile_design *d, struct strbuf *out);
uint64_t profile_design_fingerprint(const struct profile_design *d);
/* What differs, in words, between the canonical text of an earlier design and this one; false: nothing
 * does. */
bool profile_design_differs(const struct profile_design *d, const struct json *earlier, char *out,
                            size_t size);

#endif
