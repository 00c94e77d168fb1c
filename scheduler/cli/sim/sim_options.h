/* What `postrider replay` and `postrider compare` share: their options, the comparison that these describe,
 * opened and checked before anything runs (sim_setup.c), and the run itself (sim_verb.c). */
#ifndef SCHEDULER_CLI_SIM_SIM_OPTIONS_H
#define SCHEDULER_CLI_SIM_SIM_OPTIONS_H

#include "common/version.h"
#include "scheduler/cli/cli.h"
#include "sim/compare/capacity.h"
#include "sim/compare/record.h"
#include "sim/compare/sweep.h"

#define SIM_OPTIONS 40 /* options of both verbs, and room for a verb's own */
#define SIM_PROGRAM postrider_program

struct sim_options {
	struct compare_params params; /* options that need no reading go here at once */
	/* baseline NULL: courier, or the first policy where it is not among them */
	const char *policies, *baseline;
	bool usual_policies;      /* the user named none: those that cannot run here are left out */
	uint64_t replications;
	const char *history, *schema, *model, *cluster, *daemons;
	const char *noise;        /* a share: "0.05" or "5%" */
	const char *sweep, *capacity, *of, *by;
	uint64_t from, to;        /* 0: not given */
	bool no_adapt, strict, dry_run;
	struct cli_list set;
};
void sim_options_init(struct sim_options *o);
/* Fills in the options of both and returns how many; the verb's own may follow, and an empty one ends the
 * list. */
size_t sim_options_list(struct sim_options *o, struct cli_option *out);

#define SIM_POLICY_HELP 640
/* The help of --policy or --policies: `first`, and which layers of a policy can be left out. Returns out,
 * which has room for SIM_POLICY_HELP. */
const char *sim_policy_help(const char *first, char *out);

/* The command line without the options that change no result (-o, --threads, -q, -v, --json, --no-color). To
 * be called before cli_parse(), which moves arguments. */
void sim_command(int argc, char **argv, struct strbuf *out);

struct sim_setup {
	struct compare_params params; /* complete */
	struct sim_policy policy[SIM_MAX_POLICIES];
	struct schema *schema;    /* NULL: the default one */
	struct model *model;      /* NULL: trained */
	char *model_path;         /* of --model, or of the daemon whose history it is; NULL: trained */
	struct cluster stated;    /* --cluster */
	struct sweep sweep; bool sweeps;
	struct capacity_question capacity; bool wants_capacity;
	/* traces and worlds; of a sweep or capacity those of one replication, as given */
	struct compare_result *opened;
	struct pool *pool;
	struct cli_progress progress;
};
/* Opens and checks everything. Release after failure too. ERR_ARG is a usage error. */
int sim_setup_open(struct sim_setup *s, const struct cli *c, const struct sim_options *o, struct err *err);
void sim_setup_release(struct sim_setup *s);
/* The schema and the machine alone, as --paper needs them. */
int sim_setup_open_world(struct sim_setup *s, const struct cli *c, const struct sim_options *o,
                         struct err *err);
/* What would run, for --dry-run. */
void sim_setup_print(const struct sim_setup *s, struct strbuf *out);

/* ---- sim_verb.c: what both verbs then do ---- */
/* Checks, runs (once, for every value of a sweep, or for a capacity), prints, writes; returns the exit code.
 * `kind` is "replay" or "compare". */
int sim_verb_run(const struct cli *c, const struct sim_options *o, const char *kind, const char *command);
/* Writes the text files into the folder of -o, together. The threads must be gone: they would take the
 * signals. */
struct sim_file { const char *name; const struct strbuf *text; };
int sim_write_files(const char *dir, const struct sim_file *file, size_t n, struct err *err);

#endif
