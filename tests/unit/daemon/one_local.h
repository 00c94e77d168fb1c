/* The daemon in the process of a test program, and a client of it: what most of these tests set up and end.
 * Beside local_daemon.h. */
#ifndef TESTS_UNIT_DAEMON_ONE_LOCAL_H
#define TESTS_UNIT_DAEMON_ONE_LOCAL_H

#include "tests/unit/daemon/local_daemon.h"

extern struct local_daemon l;
extern struct local_client c;

int open_one(void **state);      /* the set-up of a test: its folder; start() starts the daemon */
int close_one(void **state);     /* its end */
void start(const char *settings); /* and greets */

#endif
