/* What the daemon learns from the jobs that end: their times correct the scheduler's bounds at once
 * (core/learn/adapt.h), tell whether the machine has changed (core/learn/drift.h), and after enough of them
 * train another model in the background (training_thread.h), which a reload puts to use if it is better. Each
 * model has a learner: the configuration's, and that of each job type with its own model.
 *
 *   observe.c          what ended jobs teach: bounds, drift, which kinds of jobs are known
 *   past.c             the same of jobs that ended before a restart
 *   mixed.c            what the tables of the models say of neighbours of another kind
 *   shown.c            what `stats` and a monitoring system show of it
 *   batches.c          which batches jobs took and failed with, for core/admit
 *   family_probe.c     a short separate run where a job's context was never measured
 *   retrain.c          when to train, the result, and putting a model to use
 *   training_thread.c  the thread that trains; training.c: what it does; training_data.c: the tables it needs
 *   versions.c         the models that were trained, and their journal
 *
 * In the loop's thread. */
#ifndef SCHEDULER_DAEMON_LEARN_LEARNING_H
#define SCHEDULER_DAEMON_LEARN_LEARNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"
#include "predictors/data/features.h"
#include "scheduler/core/admit/admit.h"
#include "scheduler/core/learn/drift.h"

struct daemon;
struct job;
struct setup;
struct config;
struct learning;

/* After the store and the scheduler, before jobs are restored: if the daemon has trained a model, it replaces
 * the configuration's here, in d->setup and the scheduler. */
int learning_new(struct daemon *d, struct learning **out, struct err *err);
/* Before the server, which its open replies go to; after it d->learning is NULL. */
void learning_free(struct learning *l);
/* After the jobs are back: those in memory that ended are observed again, in the order of their ends, with
 * what they ran beside. */
void learning_restore(struct learning *l);
/* A job has ended as done: observed, counted, and another model trained when that is due. */
void learning_ended(struct learning *l, const struct job *job);
/* Why nothing may be learnt from a job that has ended: "time" or "accuracy", as neither the model nor a
 * schema can mean it. NULL: it is plausible. */
const char *learning_doubt(const struct learning *l, const struct job *job);
/* Before a reload swaps the setup: makes what the fresh one needs beside what there is. */
int learning_prepare(struct learning *l, const struct setup *fresh, struct err *err);
/* After it: another model may be in use, or other settings. */
void learning_model_changed(struct learning *l);
/* ---- batches.c: what admission is to know (core/admit/admit.h) ---- */
struct admit_memory learning_memory(const struct learning *l, const struct job *job);
/* A hash of what jobs of its type run. */
uint64_t learning_command(const struct learning *l, const struct job *job);
/* Is the batch no candidate for this job, because runs failed with it? */
bool learning_fails(const struct learning *l, const struct job *job, double batch);
/* A run has failed: its batch, its reason and its user count, if the failure says anything of the batch. */
struct exec_outcome; /* jobs/life.h */
void learning_run_failed(struct learning *l, const struct job *job, const struct exec_outcome *o,
                         int64_t now_ns);
/* A job was admitted, and a job has ended, in any state: counts how often each batch was taken, and which
 * fail. */
void learning_first_taken(struct learning *l, const struct job *job);
void learning_first_ended(struct learning *l, const struct job *job);
/* ---- family_probe.c ---- */
/* A job arrives and has the next id. If its family was never measured: a probe, with the id behind it, for
 * learning_probe_submit() or job_free(); NULL: none. */
struct job *learning_probe_make(struct learning *l, const struct job *job, int64_t now_ns);
/* The job is there: its probe is, too. Takes the probe (NULL: none); its id, 0: it was not submitted. */
uint64_t learning_probe_submit(struct learning *l, struct job *probe, int64_t now_ns);

bool learning_training(const struct learning *l); /* a model is being trained, or put to use */
/* Member "learning" of `stats`; sums: without those that name types or what was trained. */
void learning_json(struct learning *l, struct json_writer *w, bool sums);
struct learning_now {        /* the same of one model, for those who want numbers */
	const char *type;    /* whose own model it is; NULL: the configuration's */
	uint32_t version;    /* of the model in use; 0: the configuration's */
	bool training, has_drift;
	uint64_t alarms;
	size_t since_training;
	struct drift_evidence drift; /* of all jobs of this model together */
};
/* Of the model in this slot of the setup; false: there is no such slot. */
bool learning_now(const struct learning *l, uint32_t slot, struct learning_now *out);
uint64_t learning_probes(const struct learning *l); /* submitted since the start */

/* ---- retrain.c ---- */
/* The versions in use take the places of the models that the configuration names. In the thread of a reload:
 * which versions are in use does not change during one. l may be NULL. */
int learning_override(const struct learning *l, struct config *c, struct err *err);
struct later; /* ops.h */
/* type: the job type whose own model is meant, NULL: the configuration's; ERR_ARG: it has no model of its
 * own. Trains in the background; the event `retrained`, the log and learning_models_json() have the result.
 * ERR_BUSY: a training is under way, perhaps of another model: they take turns. */
int learning_retrain(struct learning *l, const char *type, const char *reason, struct err *err);
/* Back to a version, 0: to the configuration's model. Takes `answer` (may be NULL) on success: answered as a
 * reload is. ERR_NOTFOUND: there is no such version, or its file is gone; ERR_BUSY. */
int learning_rollback(struct learning *l, const char *type, uint32_t version, struct later *answer,
                      struct err *err);
void learning_models_json(struct learning *l, struct json_writer *w); /* members "current", "model",
                                                                         "training", "models", "types" */

#endif
