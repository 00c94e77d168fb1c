/* What `postrider replay` and `postrider compare` share: their options, and from them everything that a comparison needs,
 * opened and checked before anything runs. */
#ifndef SCHEDULER_CLI_SIM_SIM_OPTIONS_H
#define SCHEDULER_CLI_SIM_SIM_OPTIONS_H

#include <signal.h>

#include "scheduler/cli/cli.h"
#include "sim/compare/record.h"
#include "sim/compare/sweep.h"

#define SIM_OPTIONS 32 /* options of both verbs, and room for a verb's own */

struct sim_options {
	const char *history, *map, *schema, *model, *world, *cluster;
	const char *drift, *stragglers, *failures, *noise, *hysteresis, *explore;
	const char *sweep, *capacity, *of, *by;
	uint64_t from, to;        /* 0: not given */
	uint64_t seed;
	double confidence, level;
	bool no_adapt, dry_run;
	struct cli_list set;
};
void sim_options_init(struct sim_options *o);
/* Fills in the options of both and returns how many; the verb's own may follow, and an empty one ends the list. */
size_t sim_options_list(struct sim_options *o, struct cli_option *out);

/* The command line without what changes no result (-o, --threads, -q, -v, --json, --no-color). Before cli_parse(), which moves
 * arguments. */
void sim_command(int argc, char **argv, struct strbuf *out);

struct sim_capacity {             /* of --capacity */
	bool asked;
	enum metric of;
	enum what_key by;
	double target;
	double from, to;
};

struct sim_setup {
	struct sim_policy policy[SIM_MAX_POLICIES]; size_t n_policies;
	struct schema *schema;    /* NULL: the default one */
	struct model *model;      /* NULL: trained */
	struct cluster stated, given, room; /* --cluster; what it comes to; the machine of --set */
	struct what_if what;
	struct sweep sweep; bool sweeps;
	struct sim_capacity capacity;
	struct compare_params params; /* with --set applied */
	struct compare_params plain;  /* without */
	char *trace_about, *world_name; /* for people */
	size_t n_jobs, n_folds;
	char split[256];          /* of the first fold */
	struct pool *pool;
	struct cli_progress progress;
};
/* Opens and checks all of it. baseline: NULL: courier, or the first policy where it is not among them. Release after failure
 * too. ERR_ARG is a usage error. */
int sim_setup_open(struct sim_setup *s, const struct cli *c, const struct sim_options *o, const char *policies,
                   const char *baseline, uint64_t replications, struct err *err);
void sim_setup_release(struct sim_setup *s);
/* The schema and the machine alone, as --paper needs them. */
int sim_setup_open_world(struct sim_setup *s, const struct cli *c, const struct sim_options *o, struct err *err);

/* What would run, for --dry-run. */
void sim_setup_print(const struct sim_setup *s, const struct sim_options *o, struct strbuf *out);
/* "0.05" or "5%" as 0.05; false: neither. */
bool sim_share_parse(const char *text, double *out);

/* Between them signals wait: several files are written, and they belong together. */
void sim_hold_signals(sigset_t *before);
void sim_let_signals(const sigset_t *before);

/* A file into a folder that is there. */
int sim_write_in(const char *dir, const char *name, const struct strbuf *text, struct err *err);
/* Says before the work that the folder can not be made or is of something else. */
int sim_check_folder(const char *dir, struct err *err);

/* ---- sim_verb.c: what both verbs then do ---- */
struct sim_verb {
	const char *kind;         /* "replay" or "compare" */
	const char *policies, *baseline; /* baseline NULL: the usual one */
	uint64_t replications;
	const char *command;
};
/* Checks, runs (once, for every value of a sweep, or for a capacity), prints, writes; returns the exit code. */
int sim_verb_run(const struct cli *c, const struct sim_options *o, const struct sim_verb *v);
/* A file of an earlier call beside the numbers of this one would tell a wrong story. */
void sim_remove_in(const char *dir, const char *name);
/* Makes the folder unless it is there. */
int sim_make_folder(const char *dir, struct err *err);

#endif
