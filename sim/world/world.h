/* Worlds: what really happens to a job in the simulation. A world knows the machine and what each kind of
 * job of the trace takes; a run of it (world_run) is one course of events, driven by the code that starts
 * jobs: replay.c, and the oracle, which copies one to look ahead.
 *
 *   measured   times and accuracies of an observation table (measured.c)
 *   queueing   processes that cycle between disk and cpus, iteration by iteration (queueing.c)
 *   fluid      the means of the same, for long traces (fluid.c)
 *
 * A world is immutable once made and shared by threads; a run belongs to one. Time is in nanoseconds at this
 * edge and in seconds inside. Ends are rounded up to the next nanosecond, so no job ends before its time. */
#ifndef SIM_WORLD_WORLD_H
#define SIM_WORLD_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/csv.h"
#include "common/err.h"
#include "common/json/json.h"
#include "predictors/data/schema.h"
#include "sim/world/cluster.h"
#include "sim/world/draws.h"
#include "sim/world/what_if.h"
#include "sim/trace/trace.h"

#define WORLD_NEVER INT64_MAX

struct world_job {                /* as it starts */
	uint64_t id;
	uint32_t kind;            /* of the trace */
	double batch;
	double epochs;            /* chosen; NaN: the kind says them */
	/* It ends after this part of its work, 0..1, with so much behind it from before: an epoch of a job
	 * that steers. 0: it is run as a whole. What world_end says of accuracy and failure is of all. */
	double part, behind;
	struct draws draws;
};
/* The part of its work after which this one ends. */
double world_job_until(const struct world_job *j);

struct world_end {
	uint64_t id;
	int64_t at_ns;
	double accuracy;          /* NaN: it failed, or the world knows none */
	double processes;         /* mean over its run, of all jobs and itself: the load it really met */
	double njobs;             /* the same of jobs */
	bool failed;
};

struct world_params {
	const char *spec;         /* "measured:TABLE.csv", "queueing[:FILE.json]", "fluid[:FILE.json]" */
	const struct schema *schema; /* of a table; NULL: the default one. Borrowed. */
	/* The machine as it is: what a table was measured on. NULL: the one of the world's file; ERR_ARG
	 * where there is none. */
	const struct cluster *given;
	const struct cluster *cluster; /* what-if: another machine; NULL: as given */
	const struct what_if *what;  /* what-if: changes of the machine; NULL: none */
	const struct disturbances *disturbances; /* NULL: none */
	/* borrowed while the world lives; every kind of it must be known to the world */
	const struct trace *trace;
	/* kinds that the world does not know are marked (world_unknown) instead of refused */
	bool mark_unknown;
	/* measured: replications that the world is made of (the others are for training); 0: 1 */
	size_t hold_out;
};

struct world;
struct world_run;

/* ERR_FORMAT, ERR_ARG: the file, line, column and reason; for a kind of the trace the line of its first
 * job. */
int world_open(const struct world_params *p, struct world **out, struct err *err);
void world_free(struct world *w);
const char *world_name(const struct world *w);            /* "measured" */
/* The machine as a whole, in effect and as given. It is printed, and utilisation refers to it. */
const struct cluster *world_whole(const struct world *w);
const struct cluster *world_whole_given(const struct world *w);
/* What jobs share of it: one node, where each job stays on one. A run simulates this part. */
const struct cluster *world_cluster(const struct world *w);
/* the machine that the training tables speak of */
const struct cluster *world_given(const struct world *w);

const struct disturbances *world_disturbances(const struct world *w); /* in effect, for draws_of() */

/* Why jobs of this kind of the trace cannot run; NULL: they can. Without mark_unknown always NULL. */
const char *world_unknown(const struct world *w, uint32_t kind);
/* The measured runs that a world is made of; SIZE_MAX: it is made of a law. */
size_t world_runs(const struct world *w);
/* Ways to part what models learn from and what happens. measured: each replication (or `hold_out` of them)
 * once, or settings dealt into folds; the other worlds have 1: their training table is a designed experiment
 * in the same world, with other draws. */
size_t world_folds(const struct world *w);
/* A table of observations for training, columns of the default schema (or the world's own), none of it from
 * what happens in runs of this fold. Measured on world_given(), without drift, stragglers and failures. To
 * be freed. */
int world_training(const struct world *w, size_t fold, uint64_t seed, struct csv **out, struct err *err);
/* For the report: "replication 3 of 3 happens, 1 and 2 are learnt from". */
void world_split_text(const struct world *w, size_t fold, char *out, size_t size);
void world_describe(const struct world *w, struct json_writer *w_json); /* members of an open object */
/* The candidates a job of this kind may have in this world where neither kind nor model say: ascending,
 * borrowed. */
size_t world_batches(const struct world *w, const double **out);

/* ---- one course of events ---- */
int world_run_new(const struct world *w, size_t fold, struct world_run **out, struct err *err);
void world_run_free(struct world_run *r);
/* A job starts now; now_ns never runs backwards, and is not behind world_run_next(). No allocation once as
 * many jobs have run at the same time. ERR_ARG: a batch or epochs that this world does not know. */
int world_run_start(struct world_run *r, int64_t now_ns, const struct world_job *j, struct err *err);
/* Seconds that a whole job takes if this many processes run all the time, its own included, and the machine
 * has not slowed down: the law by which jobs share. ERR_ARG: this world has none (queueing), or does not know
 * the job. */
int world_run_law_s(const struct world_run *r, const struct world_job *j, double processes, double *out,
                    struct err *err);
/* The moment of the next end; WORLD_NEVER: nothing runs. May work its way to it, so it is not const. */
int64_t world_run_next(struct world_run *r);
/* The job that ends then, which is gone afterwards. False: nothing runs. Jobs that end at the same moment
 * come by id. */
bool world_run_end(struct world_run *r, struct world_end *out);
/* A job that runs is stopped now, and gone; it has no accuracy. Not behind world_run_next(). ERR_ARG: no such
 * job runs, or the world cannot stop one (world_can_stop()). */
bool world_can_stop(const struct world *w);
int world_run_stop(struct world_run *r, int64_t now_ns, uint64_t id, struct world_end *out, struct err *err);
/* How much of a job that runs is done now, 0..1, and the accuracy of a job as it would be with these epochs.
 * For worlds in which a job may end after an earlier epoch (world_ends_early()); ERR_ARG: it cannot, or no
 * such job runs. */
bool world_ends_early(const struct world *w);
int world_run_progress(struct world_run *r, int64_t now_ns, uint64_t id, double *out, struct err *err);
int world_run_accuracy(const struct world_run *r, const struct world_job *j, double *out, struct err *err);
/* The accuracy of a job that ran with several batches, so many epochs with each in any order, by its
 * effective iterations (predictors/models/mixed_run.h) with the world's own parameters. Of j the kind, the
 * draws and what its epochs were to be count. ERR_ARG: this world cannot change the batch of a job
 * (world_can_steer()). */
struct world_stage { double batch, epochs; };
bool world_can_steer(const struct world *w);
int world_run_mixed(const struct world_run *r, const struct world_job *j, const struct world_stage *stage,
                    size_t n, double *out, struct err *err);
/* `to` becomes a copy of `from`, both of the same world; what happens in it later is what would have
 * happened in the other. */
int world_run_copy(struct world_run *to, const struct world_run *from, struct err *err);
/* core-seconds worked up to the last moment handed in */
double world_run_busy_s(const struct world_run *r);
uint64_t world_run_events(const struct world_run *r); /* ends, starts, ends of services */

#endif
