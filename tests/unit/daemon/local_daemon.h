/* A whole daemon in the process of the test: its socket, its loop, its database and its threads in a
 * temporary folder, without a fork. A client that waits for a line runs the loop meanwhile, so a test sees
 * every step, and may look into the daemon between two of them. What cannot be set up fails the test at hand.
 *
 * Job types that are always there: "advised" (no command; parameters network, epochs, samples; batches 64 to
 * 512) and "sleepy" (sleeps for the parameter `seconds`). Without `model` the policy is fixed:128. */
#ifndef TESTS_UNIT_DAEMON_LOCAL_DAEMON_H
#define TESTS_UNIT_DAEMON_LOCAL_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/json/json.h"
#include "common/strbuf.h"
#include "scheduler/daemon/daemon.h"

struct local_daemon {
	char dir[96], config[128], socket[128], state[128];
	const char *model;    /* file; NULL: none */
	const char *settings; /* members of the configuration, each with a comma behind it */
	const char *types;    /* further job types, each with a comma before it */
	struct daemon *d;     /* NULL: it does not run */
};

#define LOCAL_MODEL "tests/fuzz/corpus/model/hybrid.model" /* from the root of the repository, where tests
                                                              run */

void local_open(struct local_daemon *l); /* a fresh folder; settings and types "" */
void local_write_config(const struct local_daemon *l);
void local_start(struct local_daemon *l);             /* writes the configuration, then daemon_new() */
int local_try_start(struct local_daemon *l, struct err *err);
void local_stop(struct local_daemon *l);              /* as after a SIGTERM: daemon_free() */
void local_restart(struct local_daemon *l);
void local_close(struct local_daemon *l);
void local_run(struct local_daemon *l, double seconds); /* turns the loop */
/* Turns the loop until `done` says so; fails the test after half a minute. */
void local_until(struct local_daemon *l, bool (*done)(const struct local_daemon *l));

/* ---- a client ---- */

struct local_client {
	struct local_daemon *l;
	int fd;
	struct strbuf in;
	size_t read;      /* of `in` */
	bool closed;      /* by the daemon */
};

void client_open(struct local_client *c, struct local_daemon *l); /* greeted */
/* As another user, in one further group; needs root, and skips the test without it. */
void client_open_as(struct local_client *c, struct local_daemon *l, uid_t uid, gid_t gid, gid_t group);
void client_close(struct local_client *c);
void client_say(struct local_client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct json *client_hear(struct local_client *c); /* the next line, to be freed; NULL: closed */
/* Says and hears; events that come before the answer are dropped. To be freed. */
struct json *client_ask(struct local_client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, for the code of the error alone; "": it was answered well. */
const char *client_error(struct local_client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next event of that name, others are dropped. To be freed. */
struct json *client_event(struct local_client *c, const char *name);
/* Members of a submit, each with a comma before it; the id of the job, 0: refused. */
uint64_t client_submit(struct local_client *c, const char *members);

const char *text_at(const struct json *v, const char *path); /* "" where there is none */
double number_at(const struct json *v, const char *path);    /* NaN where there is none */

#endif
