/* What the training thread does: one training with its test, or one rollback, from files to files. */
#ifndef SCHEDULER_DAEMON_LEARN_TRAINING_H
#define SCHEDULER_DAEMON_LEARN_TRAINING_H

#include <stdatomic.h>

#include "scheduler/daemon/learn/training_thread.h"

struct training_task {
	const struct config_learning *learning;
	const struct policy_choice *policy;
	double cores;                 /* of the machine, by the configuration */
	uint64_t seed;
	const char *program;          /* for the model file */
	const struct schema *schema;  /* of a first model; NULL: the default one */
	const atomic_bool *stop;      /* looked at before each fit */
	struct versions *versions;
	char reason[64];
	char *observations; size_t len; /* NULL: a rollback */
	char *model_path;             /* NULL: there is no model in use */
	uint32_t back_to;             /* of a rollback */
};

/* Trained from so few runs that another run tells more than a test could: it is replaced after each job,
 * without a test. Only where so few rows may be trained on. */
#define TRAINING_YOUNG 12 /* a bound at 90 % needs 9 errors, and a few runs are left out of each fit */
static inline bool training_is_young(const struct model *m, const struct config_learning *c)
{
	return m && m->time.n_rows < TRAINING_YOUNG && c->min_observations < TRAINING_YOUNG;
}

/* On failure *r is as it was, and so is the folder. */
int training_run(const struct training_task *w, struct training_result *r, struct err *err);
int training_roll_back(const struct training_task *w, struct training_result *r, struct err *err);

#endif
