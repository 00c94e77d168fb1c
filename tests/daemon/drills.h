/* The drills: short ones in the tests, long ones in postrider-drill. Each sets up a daemon of its own, says
 * on `to` what it saw, and returns how many promises were broken. */
#ifndef TESTS_DAEMON_DRILLS_H
#define TESTS_DAEMON_DRILLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct drill {
	bool model;     /* decide with a model, so that every look-ahead is made */
	uint64_t seed;
	FILE *to;
};

/* kill -9 at random moments under load: of the daemon (some of them while it is starting), of supervisors,
 * and of jobs. */
unsigned long drill_kills(const struct drill *d, unsigned kills);
/* SIGTERM and start, SIGHUP with good and bad configurations, under load. */
unsigned long drill_signals(const struct drill *d, unsigned cycles);
/* `jobs` queued ones; then kill -9 and start, SIGTERM and start: each start in less than a second. */
unsigned long drill_startup(const struct drill *d, unsigned jobs);
/* Memory and descriptors over `advised` jobs run by their owner and `real` ones run by the daemon. */
unsigned long drill_soak(const struct drill *d, unsigned advised, unsigned real);
/* Rounds of jobs at an engine that is away, deaf, forgetful or lies, and of jobs of the machine
 * (drill_engine.c). */
unsigned long drill_engine(const struct drill *d, unsigned rounds);

#endif
