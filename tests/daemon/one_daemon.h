/* The daemon that one test program has at a time, and the client that talks to it: a test that stops the
 * daemon and starts it again says leave() and come_back(). Used by tests of the whole daemon, beside
 * harness.h. */
#ifndef TESTS_DAEMON_ONE_DAEMON_H
#define TESTS_DAEMON_ONE_DAEMON_H

#include "tests/daemon/harness.h"

#define TWO_SLOTS "\"slots\":2,\"kill_grace_s\":1,"

extern struct fixture fixture;
extern struct talk *t;           /* NULL: the daemon is away */

int open_two_slots(void **state); /* the set-up of a test: a daemon configured with TWO_SLOTS */
int close_one(void **state);      /* its end */
void leave(int signal);
void come_back(void);
/* A job is `running` from when it is decided; a moment later it has a process. */
double await_pid(uint64_t job);

#endif
