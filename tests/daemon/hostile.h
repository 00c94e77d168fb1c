/* Shared by the tests that treat a daemon badly: whatever was done to it, afterwards it answers, and has
 * neither grown nor kept a descriptor. */
#ifndef TESTS_DAEMON_HOSTILE_H
#define TESTS_DAEMON_HOSTILE_H

#include "tests/daemon/harness.h"

struct health {
	struct fixture fixture;
	size_t fds;             /* before anything was done to it */
	double rss_mb;
};

/* A daemon with these settings and, where `model` is not NULL, one that decides with it. */
void health_start(struct health *h, const char *model, const char *settings);
/* Dies unless it answers, has as many descriptors as before and at most `more_mb` more memory. */
void health_check(struct health *h, double more_mb);
void health_stop(struct health *h); /* and it left well */

bool send_bytes(struct talk *t, const void *bytes, size_t len); /* as they are */
/* Sends a line of `len` bytes as it is, and the newline; the answer, to be freed; dies without one. */
struct json *ask_bytes(struct talk *t, const void *bytes, size_t len);

#endif
