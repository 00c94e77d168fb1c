/* Does the model know jobs like this one? A model also predicts for a network that it has never seen, from
 * what it knows about others. So such a job runs without a promise until there are observations of it
 * (`promise_after` of the configuration). Pure; called at submission. */
#ifndef SCHEDULER_CORE_ADMIT_KNOWLEDGE_H
#define SCHEDULER_CORE_ADMIT_KNOWLEDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "predictors/model.h"

/* False: a category of the job never occurred in training, or the job does not give a value that differed
 * between the jobs of training. What the scheduler fills in (the decision, njobs, processes, other_load) does
 * not count, and neither do the epochs if they are `open`. Numbers outside their range count as known: bounds
 * are wider there (predictors/models/widening.h). `why` (may be NULL): a sentence, e.g. "the model has never
 * seen network 'resnet'"; empty where it is known. */
bool model_knows(const struct model *m, const struct job_values *v, bool epochs_open, char *why, size_t size);

#endif
