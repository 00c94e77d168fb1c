/* Training for learner.c: a quick trial, the whole thing; all of it in the calling thread, and
 * stopped within one fit of being asked to. */
#ifndef SCHEDULER_DAEMON_LEARN_LEARNER_TRAIN_H
#define SCHEDULER_DAEMON_LEARN_LEARNER_TRAIN_H

#include <stdatomic.h>

#include "scheduler/core/recipe.h"
#include "scheduler/daemon/learn/learner_data.h"

/* A model of time alone, fitted to a table and asked about another: no scores, no bounds, so it is quick. predicted[] is
 * by row of the csv of `test`; rows its table leaves out are not touched. */
int learner_trial(const struct recipe *recipe, const struct learner_table *t, const struct table *test,
                  uint64_t seed, const atomic_bool *stop, double *predicted, struct err *err);
/* The same of a model that is there; the table was read under its schema. */
int learner_ask(const struct model *m, const struct table *test, double *predicted, struct err *err);

/* ERR_STOPPED: `stop` was set. */
int learner_train(const struct recipe *recipe, const struct learner_table *t, uint64_t seed, const char *data_name,
                  const char *created, const char *program, const atomic_bool *stop, struct model **out,
                  struct err *err);

#endif
