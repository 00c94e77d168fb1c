/* The experiment of the Courier paper (section 5), by name: `postrider compare --paper`. A job is a network,
 * cpus from the table's levels, 1 to 6 equal jobs that run together, and a limit ~ Normal(300, 100) s. A
 * policy chooses the batch knowing all of this; then the equal jobs start together in the world, three times
 * over, and the means of their times and accuracies count, as in the paper. First the five jobs of its Table
 * 9, then many from its generator.
 *
 * Decisions are those of scheduler/core. Policies that decide on the expected time (courier, the boosting
 * ones, queueing, and naive, which chooses at random) are asked in a scene in which the other equal jobs run;
 * postrider is asked as `postrider predict` does, with njobs among the job's values, and decides on the
 * bound. Where a policy finds no batch for the limit, it runs the fastest one by its own prediction and
 * promises nothing: the paper rejects no job. `fixed:best` gives all jobs of a fold (without folds: of a
 * half) the batch that was the best for the others. No job waits, so the queues of brain_queue.c would be
 * courier here.
 *
 * paper_jobs.c makes the jobs, paper_experiment.c plays, paper_summary.c counts, paper_json.c writes. */
#ifndef SIM_COMPARE_PAPER_EXPERIMENT_H
#define SIM_COMPARE_PAPER_EXPERIMENT_H

#include "common/strbuf.h"
#include "predictors/data/score.h"
#include "sim/compare/compare.h"

#define PAPER_JOBS 1000
#define PAPER_MAX_JOBS 1000000
#define PAPER_REPLICATIONS 3
#define PAPER_MAX_NJOBS 6
#define PAPER_FIVE 5
#define PAPER_MAX_SETTINGS 1024      /* networks and whatever else a table varies */
#define PAPER_TABLE_MEAN_S 298.723   /* mean response time of the paper's own table */

struct paper_params {
	struct world_params world;   /* its trace is made here */
	size_t jobs;                 /* 0: PAPER_JOBS */
	uint64_t seed;
	double confidence, level;    /* 0: 0.9 and 0.95 */
	struct pool *pool;
	void (*on_progress)(void *owner, const char *stage, size_t done, size_t total);
	void *owner;
};

struct paper_job {
	uint32_t kind;               /* of the trace: cpus and values */
	double njobs, slo_s;
};

struct paper_outcome {               /* of one job under one policy */
	double batch;
	bool promised;               /* predicted to be in time; the others got the fastest */
	double predicted_s, upper_s, predicted_accuracy; /* NaN: not predicted */
	/* means over the equal jobs and the replications; accuracy NaN: not known */
	double time_s, accuracy;
	bool met;                    /* time_s within the limit */
};

struct paper_summary {               /* of a policy over the jobs of a set */
	size_t jobs, promised, kept, met, of_oracle, oracle_met;
	struct interval met_share, kept_share, oracle_share; /* Wilson's */
	/* the true rate of broken promises is below it (Clopper and Pearson, one-sided) */
	double miss_bound;
	size_t with_accuracy;        /* jobs whose accuracy the world knows, whatever was chosen */
	struct interval accuracy_zero; /* of these; a miss counts as 0 */
	double accuracy_met, regret; /* regret: the oracle's accuracy_zero minus ours */
	double mse_s2, mape, mae_s;  /* of the time; NaN: it predicts nothing */
	double accuracy_mse, accuracy_mae;
	struct paired_result met_versus, accuracy_versus; /* against courier, job by job */
	size_t wins, losses;         /* jobs met that courier missed, and the other way round */
};

struct paper_fixed {                 /* one batch for all jobs of a set */
	double batch;
	size_t met;
	struct interval met_share, accuracy_zero; /* as above */
};

struct paper_set {
	struct paper_job *job; size_t n;
	struct paper_outcome *outcome; /* [policy * n + job] */
	struct paper_summary *summary; /* by policy */
	struct paper_fixed *fixed; size_t n_fixed; /* by batch */
};

struct paper_score {                 /* Table 11: a model on rows it has not seen */
	const struct sim_policy *policy; /* the first that uses it */
	const char *model;           /* of time: "forest" */
	const char *accuracy_model;  /* NULL: none */
	struct score time, accuracy; /* means over the folds */
	char scored_by[96];
};

enum paper_policy {
	PAPER_COURIER, PAPER_POSTRIDER, PAPER_NAIVE, PAPER_BOOST, PAPER_BOOST_FULL, PAPER_QUEUEING,
	PAPER_FIXED, PAPER_ORACLE, PAPER_POLICIES
};

struct paper_row {                   /* what the paper itself printed: Table 9 */
	double cpus, njobs, slo_s, batch, accuracy, time_s;
};
extern const struct paper_row paper_table9[PAPER_FIVE];

struct paper_result {
	struct sim_policy policy[PAPER_POLICIES];
	char *spec;                  /* of the world */
	struct trace *trace;
	struct world *world;
	/* of the paper's limits and times to this table's; 1: its own table */
	double scale;
	double table_mean_s;
	bool own_table;              /* scale is 1 */
	double *cpus; size_t n_cpus; /* levels */
	/* settings drawn from; those without any accuracy, if others have some */
	size_t n_settings, n_left_out;
	/* a job of Table 9 has cpus that this table has not: the nearest level is taken */
	bool cpus_moved;
	struct paper_set set[2];     /* the five, the many */
	struct paper_score score[PAPER_POLICIES]; size_t n_scores;
	double confidence, level;
	uint64_t seed;
};
int paper_run(const struct paper_params *p, struct paper_result **out, struct err *err);
void paper_free(struct paper_result *r);

/* The upper end of what a rate may be when `misses` of n missed: Clopper and Pearson, one-sided. 0 of 5 at
 * 95 %: 0.4507. */
double paper_rate_bound(size_t misses, size_t n, double level);

/* Between the files of the experiment: the levels, the trace and the world of r; and its sets of jobs
 * (paper_jobs.c). */
int paper_prepare(const struct paper_params *p, const struct schema *schema, struct paper_result *r,
                  struct err *err);
int paper_make_sets(struct paper_result *r, size_t n_jobs, struct err *err);
/* The summaries of a set (paper_summary.c); the outcomes are there. */
int paper_summarise(const struct paper_result *r, struct paper_set *set, struct err *err);
/* What one batch for all jobs would have done; played: [job * n_batches + batch]. */
struct paper_played {
	double time_s, accuracy;
};
int paper_summarise_fixed(const struct paper_result *r, struct paper_set *set,
                          const struct paper_played *played, const double *batch, size_t n_batches,
                          struct err *err);

/* One object, and the jobs one by one: header
 * set,job,cpus,njobs,<columns>,slo_s,policy,batch,promised,predicted_s,upper_s,
 * predicted_accuracy,time_s,accuracy,met */
void paper_json(const struct paper_result *r, const char *program, const char *command,
                struct json_writer *w);
void paper_jobs_csv(const struct paper_result *r, struct strbuf *out);
/* "network=lenet5, cpus 4" */
void paper_job_text(const struct paper_result *r, const struct paper_job *j, struct strbuf *out);

#endif
