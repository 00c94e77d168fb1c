/* Engines: workload managers that place and run jobs, while Postrider decides about them. An engine is a
 * struct engine_ops, which says how its client programs are called and what their answers mean: slurm.c,
 * command.c. It starts no process and keeps no state. The daemon's executor (daemon/exec/engine.c) and the
 * measurements of `postrider profile` (profile_run.c) use it.
 *
 * The engine is asked to run postrider-supervisor. It claims the job by its identity, so that a job that was
 * submitted twice still runs once, and its records, in a folder that the nodes share, say when the job
 * started and how it ended (process/record_format.h). The engine's own word counts where there is no record.
 *
 * docs/ENGINES.md is for the operator. To add one: a file, a line in engine_all[] (call.c), its name in
 * config/engines.c. */
#ifndef SCHEDULER_ENGINES_OPS_H
#define SCHEDULER_ENGINES_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/strbuf.h"
#include "scheduler/config/engines.h"

#define ENGINE_MAX_ID 63
#define ENGINE_MAX_SAID 160

struct engine_task {             /* a job that is handed over */
	uint64_t job;
	const char *identity, *type, *tenant;
	const char *account, *partition, *gres; /* NULL: none */
	uint32_t cpus;
	double memory_mb, limit_s; /* NaN: not known */
	const char *report;      /* file for what the supervisor says */
	char *const *command;    /* of the supervisor; NULL after the last word */
};

struct engine_call {             /* a program to be run */
	char **argv;             /* argv_free() */
	struct strbuf input;
};

enum engine_answer {
	ENGINE_YES,              /* it has the job: the id */
	ENGINE_NO,               /* it refuses this job, and would again */
	ENGINE_UNSURE,           /* it may have the job, or can not take it now */
};

enum engine_word {               /* the engine's word about a job */
	ENGINE_UNKNOWN, ENGINE_WAITS, ENGINE_RUNS,
	ENGINE_ENDED,            /* and all after it: it has ended */
	ENGINE_FAILED, ENGINE_TIME_LIMIT, ENGINE_MEMORY, ENGINE_NODE, ENGINE_PREEMPTED, ENGINE_CANCELLED,
};

struct engine_line {             /* of what poll() asked for */
	char identity[33], id[ENGINE_MAX_ID + 1];
	enum engine_word word;
	bool placed;             /* it was given a node */
	char said[ENGINE_MAX_SAID]; /* the state and the reason in the engine's own words */
};

struct engine_past {             /* what the books of the engine say of a job that has ended */
	enum engine_word word;   /* ENGINE_UNKNOWN: nothing */
	int exit_code, exit_signal; /* -1 and a signal; the supervisor's, which are the job's */
	int64_t started_s, ended_s; /* since 1970; 0: not known */
	char said[ENGINE_MAX_SAID];
};

/* What an engine says about its cluster and about the jobs of others there: filled in line by line by the
 * engine (slurm_cluster.c), asked for by engine_look.c, used by daemon/cluster.c. */
struct cluster_guest {           /* a running job of others */
	uint32_t cpus;
	int64_t end_s;           /* when the engine expects its end, since 1970; 0: not known */
};

enum cluster_question { CLUSTER_NODES, CLUSTER_JOBS, CLUSTER_QUESTIONS }; /* asked one after the other */

struct cluster;
/* Takes a line of an answer. */
typedef void cluster_line_fn(enum cluster_question q, const char *line, const char *scope,
                             struct cluster *out);

struct cluster {
	size_t nodes, nodes_away; /* in our partitions; of them drained, down or reserved */
	uint64_t cpus;           /* that are usable, free or not */
	uint64_t cpus_leaving;   /* taken, and gone when what runs there has ended */
	uint64_t gpus, gpus_taken;
	size_t others, others_waiting; /* jobs of others that run, that wait */
	uint64_t others_cpus, others_waiting_cpus; /* what those run on, or wait for */
	uint64_t own_cpus;       /* what ours run on */
	/* while it is read */
	cluster_line_fn *line;
	char home[128], last[128]; /* the default partition, the last node */
	size_t n_guests, cap;
	struct cluster_guest guest[]; /* those of `others` */
};

/* Whose nodes count: ",near,far,", with * for the partition that is the engine's default. */
bool cluster_in_scope(const char *scope, const char *partition, bool is_default);

struct engine_ops {
	enum engine_kind kind;
	size_t hands;            /* jobs that are handed over at the same time; 1 to ENGINE_MOST_HANDS */
	const char *const *keep_env; /* variables that it sets for a job; NULL after the last */
	int (*submit)(const struct config_engine *c, const struct engine_task *t, struct engine_call *out,
	              struct err *err);
	/* What submit's program said means. YES: out[] is the id; else why. */
	enum engine_answer (*answer)(int exit_code, const char *output, const char *complaint, char *out,
	                             size_t size);
	int (*cancel)(const struct config_engine *c, uint64_t job, const char *identity, const char *id,
	              struct engine_call *out, struct err *err);
	int (*poll)(const struct config_engine *c, struct engine_call *out, struct err *err);
	bool (*line)(const char *line, struct engine_line *out); /* false: no job of ours */
	/* Both or none: the question about a job that poll() no longer knows, and a line of the answer.
	 * False: it says nothing of an end. */
	int (*past)(const struct config_engine *c, uint64_t job, const char *identity, const char *id,
	            struct engine_call *out, struct err *err);
	bool (*past_line)(const char *line, struct engine_past *out);
	/* Both or none: the questions about the cluster, and a line of an answer. */
	int (*look)(const struct config_engine *c, enum cluster_question q, struct engine_call *out,
	            struct err *err);
	cluster_line_fn *look_line;
};
extern const struct engine_ops engine_slurm, engine_command;
const struct engine_ops *engine_ops_of(enum engine_kind kind);

/* Appends a word of any length to a call that grows; false: out of memory. `fmt` NULL: nothing. */
bool engine_word_add(char ***argv, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void engine_call_release(struct engine_call *c);
/* A word as a POSIX shell reads it. */
void engine_quote(struct strbuf *out, const char *word);

#endif
