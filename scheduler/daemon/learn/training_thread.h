/* Learning while the daemon runs: a thread trains on the operator's table and the daemon's own observations,
 * tests the result against the model in use on the latest jobs, and keeps it only if it is better. One
 * training at a time.
 *
 * The test. The latest `test_jobs` observations (at most half of them) are held back; a new model fitted to
 * the rest and the model in use predict them, and Wilcoxon's signed-rank test on |log error|
 * (core/learn/paired.h) says whether the new one is better at `significance`. Only then is a model with its
 * bounds trained on everything, saved as FOLDER/NNNN.model, read back and compiled. Without a model in use,
 * any model that could be trained is taken.
 *
 * The thread and the loop never wait for each other: the loop hands over rows, watches a descriptor and
 * fetches the result. The thread has a lower priority (SCHED_BATCH, nice +15) and no signals. trainer_free()
 * waits for the fit at hand: for the 648 runs of configs/profiles/two-cores a quarter of a second on a free
 * core, where the whole training takes six; while jobs keep all cores busy, the low priority makes both
 * longer. */
#ifndef SCHEDULER_DAEMON_LEARN_TRAINING_THREAD_H
#define SCHEDULER_DAEMON_LEARN_TRAINING_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "predictors/model.h"
#include "scheduler/config/config.h"
#include "scheduler/core/policy/policy.h"
#include "scheduler/daemon/learn/versions.h"

#define TRAINER_NICE 15

struct trainer;

struct trainer_params {
	const struct config_learning *learning; /* copied */
	struct policy_choice policy; /* trained is what it wants */
	const char *folder;          /* of the models; made where it is not there */
	double cores;                /* of the machine; 0: not known */
	uint64_t seed;
	const char *program;         /* "postrider 0.1.0", for the model files; NULL: "" */
	struct schema *schema;       /* of a first model, where the settings name none; taken, also on
	                                failure; NULL: the default one */
};
int trainer_new(const struct trainer_params *p, struct trainer **out, struct err *err);
void trainer_free(struct trainer *l); /* stops a training; its result is dropped */

/* Readable once trainer_poll() has something. To be watched, not read. */
int trainer_fd(const struct trainer *l);
bool trainer_busy(const struct trainer *l); /* under way, or done and not fetched */

/* Takes `observations` (store.h: STORE_OBSERVATIONS, in the order of jobs; from malloc), also on failure.
 * model_path: of the model in use, NULL: there is none. reason: "200 jobs", for people. ERR_BUSY: one is
 * under way. */
int trainer_start(struct trainer *l, char *observations, size_t len, const char *model_path,
                  const char *reason, struct err *err);
/* Back to a version, read and compiled in the thread; 0: to the configuration's model, which the caller has.
 * The result comes as that of a training. ERR_NOTFOUND: there is no file of it; ERR_BUSY. */
int trainer_rollback(struct trainer *l, uint32_t number, const char *reason, struct err *err);

struct training_result {
	bool accepted;               /* use `model` from now on (NULL after a rollback to 0) */
	struct err err;              /* code 0: done, accepted or not; ERR_NODATA: too few jobs to tell; else
	                                a failure */
	struct model_version version; /* number 0: nothing was written to the journal */
	char *path;                  /* of the model; NULL unless accepted */
	struct model *model;         /* compiled; NULL unless accepted */
	double seconds;              /* it took */
};
/* True: there was one. To be released; what is taken out of it is set to NULL first. */
bool trainer_poll(struct trainer *l, struct training_result *out);
void training_result_release(struct training_result *r);

/* From memory, also while a training is under way. */
/* oldest first, of the latest */
size_t trainer_versions(struct trainer *l, struct model_version *out, size_t max);
uint32_t trainer_current(struct trainer *l); /* by the journal; 0: the configuration's model */
char *trainer_path(const struct trainer *l, uint32_t number); /* to be freed; NULL without memory */

#endif
