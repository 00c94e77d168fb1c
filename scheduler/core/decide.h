/* The decision: of the candidates of one job, the most accurate one that is predicted to meet the limit,
 * given everything else that runs. It uses no clock, file, socket, thread or allocation. `postrider predict`
 * calls it with a bare model; the daemon and the simulator call it with a scene (sched.c). */
#ifndef SCHEDULER_CORE_DECIDE_H
#define SCHEDULER_CORE_DECIDE_H

#include "predictors/belief.h"
#include "predictors/model.h"
#include "queueing/fluid.h"
#include "scheduler/core/learn/adapt.h"
#include "scheduler/core/learn/later.h"
#include "scheduler/core/policy/policy.h"

#define DECIDE_PLAY_ALL 1024 /* up to so many jobs x candidates a look-ahead plays all: 0.5 ms, measured */
#define DECIDE_MAX_CANDIDATES 256 /* batches x numbers of epochs; a struct decision has 41 kB */

/* Reason bits: why a candidate is not feasible, or lost against the chosen one. */
enum decide_reason {
	REASON_SLO_EXCEEDED = 1,      /* wait and time, at their bounds, above the limit */
	REASON_NO_BOUND = 2,          /* too few residuals for the confidence: nothing can be promised */
	REASON_EXTRAPOLATED = 4,      /* outside the training ranges: a notice, not a refusal */
	REASON_LOWER_ACCURACY = 8,    /* feasible, but another one is predicted more accurate */
	REASON_SLOWER = 16,           /* equal accuracy, another one is faster */
	REASON_UNSTABLE = 32,         /* the model has no time for it: a queue without a steady state */
	REASON_MEMORY = 64,           /* needs more memory than there is, or than the job may have */
	REASON_BREAKS_PROMISE = 128,  /* a job with a promise would miss it, or one that is due would start
	                                 later */
	REASON_TOO_WIDE = 256,        /* wants more cpus than the machine hands out */
	REASON_NOT_PICKED = 512,      /* the policy chooses by a different rule (naive, fixed) */
	REASON_NOT_TRIED = 1024,      /* not looked at, because there are very many candidates and it has
	                                 almost as much work as one that failed */
	REASON_BEYOND_MODEL = 2048,   /* a number so far outside the table that the model cannot carry
	                                 a promise (predictors/models/reach.h) */
	REASON_PRICE = 4096,          /* the capacity it takes is worth more to other jobs: price.h */
	REASON_DEVICES = 8192,        /* wants more devices than there are for it, or more memory of each than
	                                 they have */
};
const char *decide_reason_text(enum decide_reason one); /* stable code, e.g. "slo_exceeded" */

/* What a job wants of devices (GPUs and the like), which are handed out whole. All zero: none. */
struct device_need {
	uint32_t least;               /* with any batch */
	double records_each;          /* records of a batch for each device; 0: any number */
	double memory_mb, memory_mb_per_record; /* of a device's memory: the first on every one, the second
	                                 for each of its records; NaN or 0: not known */
};
uint32_t device_need_count(const struct device_need *n, double batch);
double device_need_memory_mb(const struct device_need *n, double batch); /* on each; 0: not known */

struct candidate {
	double decision;              /* the batch */
	double epochs;                /* NaN: not open; the job's values say them */
	double wait_s, wait_upper_s;  /* until it can start; 0 without a scene */
	double time_s, guard_s;       /* from start to end, and the bound of that, both under the load that is
	                                 foreseen. Promises rest on them: later jobs are admitted only if they
	                                 hold. guard_s NaN: no bound; both NaN: unstable */
	double spread;                /* of the logarithm of time_s (predictors/belief.h); NaN: no bound */
	double way, way_per_s;        /* of a job that steers: the part of time_s that one epoch so and the
	                                 others with the fastest batch would take, and the accuracy that each
	                                 second less costs on this way; 0: it does not steer */
	double upper_s;               /* the bound for users: later jobs may slow it down, but not past an
	                                 limit that is promised. At least guard_s; NaN: no bound */
	double model_s;               /* the model's time, before the corrections learnt since (adapt.h) */
	double accuracy;              /* NaN without an accuracy model */
	double chance;                /* the probability that wait and run time are at most the limit, in
	                                 0..1; at least the confidence if they are by their bounds, and below
	                                 it if not. NaN: no limit, or no residuals to tell from */
	double memory_mb;             /* NaN: not known */
	uint32_t devices;             /* that it holds while it runs */
	double harm;                  /* what the jobs that run and wait lose by it: the sum of their values x
	                                 accuracies x what it takes from their chances; 0: not played */
	double cost;                  /* harm + price x cpus x time: what it takes from those jobs and from
	                                 later ones, in the unit of accuracy; 0 without a price */
	double work_s;                /* for the look-ahead: seconds it would take alone; NaN without a
	                                 scene */
	double cpu_share, disk_share; /* of that */
	double start_share;           /* the part of that before the first record; NaN: not known */
	double delays_s;              /* the longest delay it would cause another job; 0: none. Among very
	                                 many jobs, those count that end before it or whose promise could be
	                                 in question. NaN: it was not played (lookahead.c), and its numbers
	                                 may be approximate */
	uint64_t breaks;              /* the first job whose promise it would break, or that is due and would
	                                 start later; 0: none */
	uint64_t behind;              /* the job whose end it waits for, because starting before would break
	                                 its promise; 0: none */
	int beyond;                   /* the feature that is out of the model's reach; -1: none */
	int out_of_range;             /* the first feature outside the training table; only if extrapolated */
	double out_of_range_value;    /* what it is; NaN: missing, or a category that training never saw */
	bool extrapolated, feasible;
	unsigned reasons;             /* enum decide_reason, or-ed */
};

struct decision {
	struct candidate candidate[DECIDE_MAX_CANDIDATES];
	size_t n_candidates;
	int chosen;                   /* index, -1: none feasible */
	double smallest_slo_s;        /* the smallest limit that could have been promised; NaN: none */
	struct candidate offer;       /* if none is feasible: what a job without a promise would best take
	                                 (decide_likeliest()); its chance is NaN: there is none */
	const char *beyond;           /* the column that keeps every candidate from a promise, as it is out of
	                                 the model's reach; NULL: none. Borrowed from the model */
	double beyond_value, beyond_least, beyond_most; /* what it is, and from where to where one may go */
	const struct model *model;    /* it was made with; NULL: none. Borrowed */
	double confidence;
	double price, value;          /* of a process-second when it was made, and of the job */
	bool by_bounds;               /* upper bounds were compared with the limit; else expected times */
	bool costs;                   /* a candidate costs others something: the largest worth wins, not the
	                                 best accuracy */
	double other_load;            /* processes of other programs that it was made with; NaN: without a
	                                 scene */
	double other_factor;          /* what they do to the time of the chosen candidate, or of the one that
	                                 needs least: with them over without; NaN: not known */
};

/* What is outside the training table in a candidate: a column, its value, and its range in the table. */
struct decide_out_of_range {
	const char *column;           /* borrowed; NULL: nothing is outside, or it is not known */
	double value, least, most;    /* NaN: a category; value: not given; least: none there */
	bool category;
};
struct decide_out_of_range decide_out_of_range(const struct decision *d, const struct candidate *c);
/* "cpus 8 is outside 1 to 4 of the training table" */
void decide_out_of_range_text(const struct decide_out_of_range *o, struct strbuf *out);

/* ---- what else runs ---- */

struct decide_neighbour {             /* a job that runs or waits */
	uint64_t id;
	double ratio;                 /* its upper bound over its expected time; NaN: no bound */
	double deadline_s;            /* of its promise, from now on; INFINITY: none */
	bool guarded;                 /* it waits, and may not start later than without the candidate */
	double until_s;               /* its limit ends then, promised or not; INFINITY: it has none */
	double worth;                 /* value x accuracy, if it is in time then */
	double way, per_s;            /* of one that steers: the part of its time in which it could end, and
	                                 what of its worth each second past until_s costs it, as it goes
	                                 faster then; 0: it does not steer */
	double spread;                /* of the logarithm of its time, what arrivals to come do included */
};

struct decide_scratch;                /* memory for one look-ahead at a time */
int decide_scratch_new(size_t max_jobs, struct decide_scratch **out, struct err *err); /* in a scene */
void decide_scratch_free(struct decide_scratch *w);
/* Plays a scene in that memory, without a decision. The times stay valid until the next play. */
int decide_play(struct decide_scratch *w, const struct fluid_scene *f, const struct fluid_times **out,
                struct err *err);

/* What else there is, borrowed for the length of a call. Beside the other jobs there is a seat for the job
 * decided about: the last of the running ones if it starts now (running[n_running]), else one in the queue
 * (queued[position]). Seats are numbered over the running jobs and then the queued ones, this seat included;
 * `after` of the jobs is a number of a seat, too. */
struct decide_scene {
	const struct policy_choice *policy;
	struct fluid_machine machine;
	double other_load;            /* processes that are not ours */
	double other_spread;          /* of log(1 + other_load): how far it may be off while the job runs */
	const struct fluid_kinds *kinds; /* how kinds of jobs disturb each other; NULL: nothing is known */
	uint16_t own_kind, own_feels; /* of the job, as in a struct fluid_job */
	struct fluid_group *group; size_t n_groups;
	struct fluid_job *running; size_t n_running; /* without the seat; the array has room for it */
	struct fluid_job *queued; size_t n_queued; /* without the seat; the array has room for it */
	const struct decide_neighbour *neighbour; /* by seat; that of the job itself is ignored */
	const struct fluid_times *before; /* by seat: their times without the job; NULL: these are played
	                                     first */
	size_t position;              /* queued jobs that start before it */
	uint32_t after, own_group;    /* of the job, as in a struct fluid_job */
	uint32_t cpus;                /* of the job decided about */
	uint32_t most_cpus;           /* that the job may have: the slots, or a quota */
	double price;                 /* of a process-second (price.h); 0: none, and the most accurate wins */
	double value;                 /* of the job; 0 counts as 1 */
	double guess_s;               /* without a model: its work; NaN: not known */
	bool starting;
	bool by_chance;               /* it asks for no promise: of those that are not in time by their bounds
	                                 the likeliest is to be played */
	bool steers;                  /* it asks again while it runs (steer.h): a promise needs the fastest
	                                 batch to fit after one epoch, and this one to be expected in time */
	bool indifferent;             /* no job has a promise or is guarded, so their times matter little */
	double memory_mb, memory_mb_per_record; /* that the job needs; NaN: not known */
	double memory_limit_mb;       /* a candidate that needs more is not feasible; INFINITY: no limit */
	struct device_need device;    /* what the job wants of them */
	uint32_t most_devices;        /* that it may have: all, a quota, or those free if it starts */
	double device_memory_mb;      /* of each; INFINITY or 0: not known */
	struct rng rng;               /* for a policy that draws */
	const struct adapt *adapt;    /* corrects times and bounds of such jobs; NULL: no correction */
	struct adapt_who who;
	struct spread_level level;    /* what runs of its family say of the job; all zero: nothing */
	bool new_family;              /* the model's table has none of its family */
	struct later_effect later;    /* what arrivals to come do to its time; all zero: nothing */
	double waits_share;           /* if it has to wait: the part of its room (waits_room_s()) that later
	                                 jobs may take (later.h) */
	struct decide_scratch *scratch; /* for a policy that looks ahead */
};

struct decide_params {
	const struct model *model;    /* NULL: nothing is predicted; only for a scene whose policy needs no
	                                 model */
	const struct job_values *job; /* the decision column in it is ignored */
	const double *candidate; size_t n_candidates; /* batches; NULL: the model's own */
	const double *epochs; size_t n_epochs; /* ascending; NULL: not open. All pairs are candidates, batch
	                                          by batch, epochs ascending */
	double slo_s;                 /* NaN: no limit, so every stable candidate is feasible */
	double confidence;            /* e.g. 0.9 */
	const struct decide_scene *scene; /* NULL: the job's values say the load */
};

int decide(const struct decide_params *p, struct decision *out, struct err *err);

/* Accuracies that differ by less than this count as equal: half the distance between the quartiles of the
 * accuracy model's residuals, which for symmetric errors is their median size. */
double decide_accuracy_noise(const struct model *m);

/* What the system gets from a candidate: value x chance x accuracy - cost. */
double decide_worth(const struct decision *d, const struct candidate *c);

#define DECIDE_NO_CHANCE 0.02 /* a chance below this is as good as none */
#define REASONS_NO_ROOM (REASON_MEMORY | REASON_TOO_WIDE | REASON_DEVICES)
/* The candidate with the largest value x chance x accuracy - cost (without accuracies: 1) among those with at
 * least this chance and none of these reasons; -1: none. */
int decide_likeliest(const struct decision *d, double least_chance, unsigned reasons);

/* What a job with this work does to the others if it takes the seat of the scene, without a decision.
 * out_breaks: the id of the first job whose promise it breaks, or that is guarded and starts later; 0: none.
 * out_own (may be NULL): the times of the job. */
int decide_probe(const struct decide_scene *s, const struct fluid_job *job, uint64_t *out_breaks,
                 struct fluid_times *out_own, struct err *err);
/* The chance that the job is in time if it is expected to end then. */
double decide_chance_at(const struct decide_neighbour *n, double end_s);
/* What it is worth then: by that chance, and less accurate if it has to go faster. */
double decide_worth_at(const struct decide_neighbour *n, double end_s);
/* Does a job that is expected to end at end_s meet its deadline by its bound? */
bool decide_in_time(const struct decide_neighbour *n, double end_s);

/* How many seconds a second of work takes among `processes`: S of queueing/fluid.h. */
double decide_stretch(const struct fluid_machine *m, const struct fluid_job *j, double processes);
/* The machine as the model knows it; if the model does not, the configured cores and no disk. */
struct fluid_machine decide_machine(const struct model *m, double cores, uint32_t slots);
/* A candidate as a play sees it: its work and shares. A work that is not known counts as 0. */
struct fluid_job decide_fluid_job(const struct candidate *c, uint32_t cpus);

#endif
