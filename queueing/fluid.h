/* The fluid look-ahead: the jobs that run, their work left and the queue, played forward on the shared
 * machine until the last one ends. The scheduler calls it once without and once with a candidate; the
 * difference is what the candidate does to promises already made.
 *
 * A job's work is measured in the seconds it would take alone. Among P processes it takes, per second of
 * work,
 *
 *     S(P) = rest + cpu_share * max(cores, P) / max(cores, p) + disk_share * (C + P) / (C + p)
 *
 * seconds, with p its own processes and rest = 1 - cpu_share - disk_share: processor sharing on the cores
 * (Kleinrock, Queueing Systems II, 1976, chapter 4), in which a job never gets more than its own
 * processes, and the disk's stretch 1 + P/C of the calibrated model, both relative to being alone, so that
 * S(p) = 1. Where neighbours disturb by kind (struct fluid_kinds), this is multiplied by
 *
 *     1 + sum over kinds g of slow(g, k) * p_g / max(room, P)
 *
 * for a job that feels as kind k does: p_g of the processes are of kind g, so that each kind counts by the
 * part of the machine that it holds. A kind does not disturb itself: copies of one job are what S
 * describes. Queued jobs start in their order, as soon as the first of them finds enough slots free; one
 * that waits for the end of another, or for the quota of its group, keeps all behind it waiting, so that
 * times depend continuously on the works. One that finds its slots and waits for devices alone keeps only
 * those waiting that want devices, too: the others do not compete for what it lacks. fluid.c says how this
 * is done in O(n log n). */
#ifndef QUEUEING_FLUID_H
#define QUEUEING_FLUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define FLUID_MAX_WORK_S 1e15 /* thirty million years; sums and stretches of it stay far from infinity */
#define FLUID_MAX_JOBS (1u << 24)
#define FLUID_MAX_OTHER_LOAD 1e6
#define FLUID_MAX_KINDS 16
#define FLUID_SLOW_UNIT 0x1p-20 /* slow() is a multiple of this: sums over processes are exact in any order */

struct fluid_machine {
	double cores;           /* processes beyond them share; INFINITY: never too few */
	double disk_saturation; /* C: processes that double the time at an idle disk; INFINITY: no
	                         * contention */
	uint32_t slots;         /* cpus that may be handed out; more than the cores: oversubscribed */
	uint32_t devices;       /* handed out whole: never shared */
};

struct fluid_job {
	double work_s;     /* work left, in seconds when alone; may be 0 */
	double cpu_share;  /* of its time alone, the part on the cpus ... */
	double disk_share; /* ... and the part at the disk; together at most 1, the rest never stretches */
	uint32_t cpus;     /* its processes, and the slots that it takes; at least 1 */
	uint32_t devices;  /* that it holds while it runs */
	uint32_t after;    /* queued: starts only when the job with index after - 1 (running ones count first,
	                    * then queued ones; one before it) has ended; 0: does not wait for one */
	uint32_t group;    /* 1 + index of the group that it counts for; 0: none */
	uint16_t kind;     /* as a neighbour: 1 + its kind; 0: none, it disturbs no job beyond S */
	uint16_t feels;    /* disturbed as this kind is, 1 + kind; 0: by S alone */
};

struct fluid_kinds {       /* how kinds of jobs disturb each other */
	size_t n;
	double room;       /* processes that fill the machine, above 0 */
	double slow[FLUID_MAX_KINDS][FLUID_MAX_KINDS]; /* [g][k]: above -1; of a kind to itself 0 */
	/* of the sum above, for a job that feels as k */
	double least[FLUID_MAX_KINDS], most[FLUID_MAX_KINDS];
};

struct fluid_group {       /* jobs that together may hold only so many slots and devices */
	uint32_t cpus;     /* a job that alone wants more never starts; what runs, runs */
	uint32_t devices;  /* the same */
	uint64_t held, held_devices; /* scratch of a play */
};

struct fluid_scene { /* borrowed for the length of a call */
	struct fluid_machine machine;
	const struct fluid_job *running;
	size_t n_running; /* they may hold more than the slots: what runs, runs */
	const struct fluid_job *queued;
	size_t n_queued; /* in the order in which they start */
	struct fluid_group *group;
	size_t n_groups;
	double other_load; /* processes of others, which come and go unseen: they count in P all the time,
	                    * and take no slots */
	const struct fluid_kinds *kinds; /* NULL: `kind` and `feels` of the jobs do not count */
	const bool *wanted; /* by job: the play is over when these have ended, and what has not happened by
	                     * then is at INFINITY; NULL: all are */
};

struct fluid_times {
	double start_s, end_s; /* from now on; a running job has start_s = 0 */
	bool never;            /* wants more slots or devices than there are for it: no start and no end, both
	                        * 0 */
};

struct fluid_workspace; /* scratch for one call at a time, and the only memory the look-ahead needs */
int fluid_workspace_new(size_t max_jobs, struct fluid_workspace **out, struct err *err);
void fluid_workspace_free(struct fluid_workspace *w);

/* Plays the scene; `candidate` (NULL: none) joins the end of the queue, and thus starts at once if none
 * waits and it fits. A job that wants more slots or devices than there are is passed over: it does not
 * hide what becomes of those behind it. out has an element for each running job, each queued job and the
 * candidate, in this order: those of a play without the candidate match one by one.
 * ERR_ARG: a value out of its range (the text names the job), or more jobs than the workspace holds.
 * Never allocates. The same scene gives the same bytes; equal jobs that start together end together. */
int fluid_play(const struct fluid_scene *scene, const struct fluid_job *candidate, struct fluid_workspace *w,
               struct fluid_times *out, struct err *err);

#endif
