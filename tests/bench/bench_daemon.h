/* What the benches of the daemon share (bench_daemon.c): servers in processes of their own, a daemon with a
 * model and a job type in a folder of its own, and what the kernel knows about them. The benches are in
 * bench_daemon_submit.c, bench_daemon_predict.c and bench_daemon_crowd.c. */
#ifndef TESTS_BENCH_BENCH_DAEMON_H
#define TESTS_BENCH_BENCH_DAEMON_H

#include <sys/types.h>

#include "tests/bench/bench.h"
#include "tests/bench/bench_client.h"

/* ---- servers ---- */

struct bench_server {
	pid_t pid;  /* 0: does not run */
	size_t seat; /* in the list of those that a signal to us ends too */
};

/* Starts a program (argv ends with NULL) whose talk goes to the file `log`; cpu >= 0: on that one alone.
 * ERR_NOTFOUND: there is no such program. */
int bench_server_start(struct bench_server *s, const char *const *argv, const char *log, int cpu,
                       struct err *err);
/* SIGTERM, then SIGKILL if it does not leave within ten seconds. */
void bench_server_stop(struct bench_server *s);

double bench_server_cpu_s(const struct bench_server *s); /* user and system, all threads; NaN: not known */
double bench_server_busy_s(const struct bench_server *s); /* the same to the microsecond; threads that live */
double bench_server_rss_mb(const struct bench_server *s);

/* ---- a daemon ---- */

struct bench_site {
	char dir[300], socket[320], log[320];
	struct bench_server server;
	struct bench_client client; /* the first connection; its greeting is read */
	const char *model; /* the name of its model; borrowed from the bench_env */
};

/* A daemon with so many slots, jobs that sleep, and the default model of the measured profile. */
int bench_site_open(struct bench_site *s, struct bench_env *env, unsigned slots, int cpu, struct err *err);
/* Ends what runs on it, the daemon, and its folder. */
void bench_site_close(struct bench_site *s);

/* One request; the reply parsed and to be freed. Not ok: an error that says why. */
int bench_site_ask(struct bench_site *s, const char *request, struct json **out, struct err *err);
/* Another connection, its greeting read. */
int bench_site_connect(const struct bench_site *s, struct bench_client *out, struct err *err);

/* So many promised jobs that wait, or run if slots are free; their keys are numbered from `from` on. */
int bench_site_fill(struct bench_site *s, size_t from, size_t n, struct err *err);
size_t bench_write_submit(char *out, size_t size, size_t id);
bool bench_is_promised(const char *reply, size_t len, size_t id);
double bench_stat(const struct json *stats, const char *group, const char *name);

/* Is a reply to a request with (or, has_id false, without) this id a good one? */
bool bench_reply_ok(const char *reply, size_t len, bool has_id, size_t id);

#endif
