/* Engines: workload managers to which jobs are handed over instead of being started on this machine. An entry
 * of "engines" in the configuration; "executor" of the configuration, or of a job type, names it. What an
 * engine is asked to do is in daemon/exec/engine.h, docs/ENGINES.md is for the operator. */
#ifndef SCHEDULER_CONFIG_ENGINES_H
#define SCHEDULER_CONFIG_ENGINES_H

#include <stddef.h>

#define CONFIG_MAX_ENGINES 16
#define ENGINE_LOCAL "local" /* no engine: a supervisor on this machine */

enum engine_kind { ENGINE_COMMAND, ENGINE_SLURM };
extern const char *const engine_kind_name[]; /* by it; NULL after the last */

struct engine_command { char **word; size_t n; }; /* a command as types have one; none: 0 */

struct config_engine {
	char *name;
	enum engine_kind kind;
	struct engine_command submit, cancel, poll; /* ENGINE_COMMAND: all three */
	struct engine_command options; /* ENGINE_SLURM: further options of sbatch */
	char *account, *partition; /* of jobs whose tenant has none; NULL: the engine's default */
	char *bin;               /* folder of its programs; NULL: PATH */
	char *supervisor;        /* where postrider-supervisor is on the nodes; NULL: where it is here */
	double poll_s;           /* from one question about all jobs to the next */
	double look_s;           /* the same about the cluster; 0: capacity is as configured */
	double timeout_s;        /* of one call of a program */
	double record_grace_s;   /* for a record to be seen here after the engine said that the job ended */
	double time_factor, time_margin_s; /* time limit: the bound of the run time x factor + margin */
};

/* The placeholders of a command; engines/command.c has their values. */
extern const char *const engine_submit_names[], *const engine_cancel_names[];

struct config;
const struct config_engine *config_engine(const struct config *c, const char *name); /* NULL: none */

#endif
