/* Shared by the tests of the whole daemon and by the drill: a real postriderd on a socket in a fresh
 * temporary folder, and a client that speaks the protocol as text. BIN in the environment is the folder of
 * the programs.
 *
 * What cannot be set up ends the program with a sentence: a test that goes on without its daemon tells
 * nothing. */
#ifndef TESTS_DAEMON_HARNESS_H
#define TESTS_DAEMON_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/json/json.h"
#include "common/strbuf.h"
#include "tests/support/support.h"

#define PATIENCE_S 30.0 /* for a loaded machine under a sanitizer; what passes does not wait */

void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
double now_s(void); /* monotonic */
void sleep_s(double s);
const char *program(const char *name); /* in BIN; one of a ring of buffers */
/* Runs a program with its output in a file (NULL: nowhere); its exit code, -1: a signal ended it. argv ends
 * with NULL. */
int run_program(const char *const *argv, const char *output);

/* ---- a daemon and its place ---- */

struct fixture {
	char dir[96];                                /* everything below is in it */
	char config[128], socket[128], state[128], log[128];
	char runs[128];                              /* where jobs write "B id name" as they begin, "E ..." as
	                                                they end */
	char model[128];                             /* empty: none */
	const char *flag[4];                         /* further arguments; NULL after the last */
	uid_t uid;                                   /* that the daemon runs as; 0: as the test */
	pid_t pid;                                   /* 0: it does not run */
};

void fixture_open(struct fixture *y); /* a fresh folder and the configuration "" */
/* Trains a hybrid on rows "network,cpus,njobs,batch,epochs,samples,time_s,accuracy"; it is the fixture's
 * model then. */
void fixture_learn(struct fixture *y, const struct strbuf *rows);
void fixture_train(struct fixture *y); /* a model of an example table; before fixture_configure() */
/* `settings`: members of the configuration, each with a comma behind it; `types`: further job types, each
 * with a comma before it. The types there always are:
 *   line      appends to `runs`, sleeps for `seconds` in between; parameter `name`
 *   stubborn  ignores SIGTERM      fails     exits with 3      missing   a program that is not there
 *   hasty     max_time_s 1, sleeps 60        epochs    prints 3 epochs and an accuracy      advised   no
 *   command */
void fixture_configure(const struct fixture *y, const char *settings, const char *types);
void fixture_spawn(struct fixture *y);
bool fixture_greeted(struct fixture *y, double patience_s); /* it answers; false: not in time, or it left */
double fixture_start(struct fixture *y); /* both; how long it took until the greeting, s */
int fixture_wait(struct fixture *y); /* its exit code; -signal where one ended it */
int fixture_stop(struct fixture *y, int signal); /* likewise */
int fixture_refused(struct fixture *y); /* starts a daemon that leaves by itself; its exit code */
bool fixture_logged(const struct fixture *y, const char *text);
/* The record of a job, ".started" or ".exit": its name has the job's identity. One of a ring of buffers. */
const char *fixture_record(const struct fixture *y, uint64_t job, const char *suffix);
size_t fixture_runs(const struct fixture *y, char mark, const char *job); /* lines "B 17 ..." */
void fixture_close(struct fixture *y); /* stops it; jobs that still run are ended too */

/* ---- a client ---- */

struct talk;
struct talk *talk_try(const struct fixture *y, double patience_s); /* greeted; NULL: not reachable */
struct talk *talk_open(const struct fixture *y); /* or dies */
void talk_close(struct talk *t);
int talk_fd(const struct talk *t);
bool send_all(int fd, const char *text, size_t len); /* false: the other end is gone */
/* A line without its newline. False: the connection is gone. */
bool talk_say(struct talk *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next line, valid until the next call; NULL: none came, or the connection is gone. */
char *talk_hear(struct talk *t, double patience_s);
struct json *talk_hear_json(struct talk *t, double patience_s); /* to be freed; NULL likewise */
/* Says and hears one line; dies if there is no answer. To be freed. */
struct json *talk_ask(struct talk *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* In a reply, by a path as in json_path(); "" and NaN where there is nothing. */
const char *text_at(const struct json *v, const char *path);
double number_at(const struct json *v, const char *path);
bool is_ok(const struct json *v);
const char *error_of(const struct json *v); /* its code; "" */

/* Short cuts; each dies without an answer. */
uint64_t submit(struct talk *t, const char *members); /* ",\"type\":..."; the job's id, 0: refused */
void state_of(struct talk *t, uint64_t job, char out[16]);
/* Waits until the job is in this state; the job's whole status, to be freed; dies if it never is. */
struct json *await(struct talk *t, uint64_t job, const char *state);
void await_reason(struct talk *t, uint64_t job); /* until the daemon says why it waits */
void await_idle(struct talk *t, double patience_s); /* no job queued or running */
double stat_of(struct talk *t, const char *path);

/* ---- the machine ---- */
size_t count_fds(pid_t pid);
double rss_mb(pid_t pid);
double without_core_s(pid_t pid); /* how long it had work and no core; 0 where the kernel does not count it */
/* The first row's first column as text, of a database opened for reading; "" where there is none. To be
 * freed. */
char *ask_database(const struct fixture *y, const char *sql);

#endif
