/* What the latest jobs of somebody say, in a few numbers: the mean and variance of a score in log time,
 * and a spread that whoever keeps the ledger moves. Two things are kept in such ledgers: how far the model
 * is off for families that are not in its table (predictors/models/spread.h), where one short run of a new
 * family measures the error that all its jobs share; and what later arrivals do to times (later.h).
 *
 * Users do not trust each other, so an entry is of one user and job type: the runs of one user do not
 * change the entries of others. Only ledger_new() allocates; when it is full, the entry unused for longest
 * of a few is forgotten. */
#ifndef SCHEDULER_CORE_LEDGER_H
#define SCHEDULER_CORE_LEDGER_H

#include <stdint.h>

#include "common/err.h"
#include "scheduler/core/learn/adapt.h"

#define LEDGER_RECENT 20 /* jobs behind a mean */

struct ledger;

int ledger_new(struct ledger **out, struct err *err);
void ledger_free(struct ledger *l);

struct ledger_entry {
	unsigned n; /* of the latest jobs, at most LEDGER_RECENT; 0: none */
	double mean, variance;
	double spread;
};
/* All zero: there is none. family: 0 for all of the type. */
struct ledger_entry ledger_of(const struct ledger *l, struct adapt_who who, uint64_t family);
/* The entry, to be changed; a new one is `fresh`. */
struct ledger_entry *ledger_claim(struct ledger *l, struct adapt_who who, uint64_t family,
                                  struct ledger_entry fresh);
void ledger_add(struct ledger_entry *e, double score); /* finite */

#endif
