/* Recurring jobs keep their batch. A job that comes again, from the same user with the same type and
 * parameters, takes what it took last time, unless that is not feasible any more or another batch is better
 * by more than a threshold. So learning curves stay comparable, and small changes of load or model do not
 * change the batch.
 *
 * The table is bounded: when it is full, the job not seen for longest is forgotten. Only recurring_new()
 * allocates. */
#ifndef SCHEDULER_CORE_RECURRING_H
#define SCHEDULER_CORE_RECURRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "scheduler/core/decide.h"

#define RECURRING_THRESHOLD 0.05 /* default: 5 % of the accuracy */
#define RECURRING_MAX 10000000

struct recurring;

int recurring_new(size_t max_jobs, struct recurring **out, struct err *err); /* 1 to RECURRING_MAX */
void recurring_free(struct recurring *r);

/* key: a fingerprint of user, type and parameters. epochs: NaN where the job does not leave them open. */
void recurring_remember(struct recurring *r, uint64_t key, double batch, double epochs);
bool recurring_recall(const struct recurring *r, uint64_t key, double *out_batch, double *out_epochs);

/* The candidate to take: the remembered one if it is feasible and d->chosen is predicted to be at most
 * `threshold` more accurate, relative to it (without accuracies: that much faster). Otherwise d->chosen, also
 * if that is -1. It changes nothing, so a what-if may ask. */
int recurring_keep(const struct recurring *r, uint64_t key, const struct decision *d, double threshold);
/* The same with a remembered pair, and `best` (not -1) instead of d->chosen. */
int recurring_choice(const struct decision *d, int best, double batch, double epochs, double threshold);

#endif
