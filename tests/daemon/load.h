/* Load on a daemon that may vanish at any moment, and the books that are kept of it: clients submit, each job
 * with an idempotency key, ask again after a lost answer, cancel some; afterwards the books are compared with
 * the database and with what the jobs themselves wrote down. */
#ifndef TESTS_DAEMON_LOAD_H
#define TESTS_DAEMON_LOAD_H

#include <stdint.h>
#include <stdio.h>

#include "tests/daemon/harness.h"

struct load;

struct load_params {
	unsigned clients;
	double pause_s;      /* of a client between two submissions, on average */
	double long_share;   /* of jobs that take about a second; the others end at once */
	double cancel_share;
	uint64_t seed;
};
struct load *load_start(const struct fixture *y, const struct load_params *p);
/* No new submissions; those without an answer are asked until they have one, so a daemon must be up. */
void load_finish(struct load *l);

/* A process of this job was killed: it may fail, or be lost. It must not run twice all the same. */
void load_hit(struct load *l, uint64_t job);

struct load_books {
	unsigned long submitted, retried, duplicates, cancels; /* acknowledged; of them by a second try;
	                                                          answers */
	unsigned long done, failed, cancelled, rejected, lost;
};
/* After the jobs have ended and the daemon has left. Complaints go to `to`, a line each; how many there
 * were. */
unsigned long load_check(struct load *l, struct load_books *out, FILE *to);
void load_free(struct load *l);

#endif
