/* What the learner's thread does, for learner.c: one training with its test, or one rollback, from files to files. */
#ifndef SCHEDULER_DAEMON_LEARN_LEARNER_WORK_H
#define SCHEDULER_DAEMON_LEARN_LEARNER_WORK_H

#include <stdatomic.h>

#include "scheduler/daemon/learn/learner.h"

struct learner_work {                 /* borrowed */
	const struct config_learning *learning;
	const struct policy_choice *policy;
	uint64_t seed;
	const char *program;          /* for the model file */
	const atomic_bool *stop;      /* looked at before each fit */
	struct versions *versions;
	const char *reason;
	const char *observations; size_t len;
	const char *model_path;       /* NULL: there is no model in use */
	uint32_t back_to;             /* of a rollback */
};

/* On failure *r is as it was, and so is the folder. */
int learner_work_train(const struct learner_work *w, struct learner_result *r, struct err *err);
int learner_work_roll_back(const struct learner_work *w, struct learner_result *r, struct err *err);

#endif
