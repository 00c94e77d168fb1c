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

/* On failure *r is as it was, and so is the folder. */
int training_run(const struct training_task *w, struct training_result *r, struct err *err);
int training_roll_back(const struct training_task *w, struct training_result *r, struct err *err);

#endif
