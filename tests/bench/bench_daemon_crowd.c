/* Benches of a daemon with much to hold: 100,000 jobs in its queue; 10,000 connections of 10,000 users. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/stats.h"
#include "tests/bench/bench_daemon.h"

#define FEW 1000
#define MANY 100000
#define MEASURED 2000 /* submits */
#define LISTS 20
#define BLOCK_MS 5.0
#define CROWD 10000 /* connections, each of another user */
#define WATCHERS 500
#define FIRST_UID 200000
#define PREDICTS 2000
#define SUBMIT_EVERY 20 /* predictions: so that watchers have something to hear */

/* ---- the machine's own stalls ---- */

/* A thread that sleeps for short times and adds up how much longer they took: what the machine gave to other
 * programs meanwhile, as far as it can be told from outside. */
struct stalls {
	pthread_t thread;
	atomic_bool stop;
	_Atomic double sum_s;
};

static void *watch_stalls(void *arg)
{
	const struct timespec nap = { .tv_nsec = 200000 };
	struct stalls *s = arg;

	while (!s->stop) {
		double began_s = bench_now_s(), late_s;

		nanosleep(&nap, NULL);
		late_s = bench_now_s() - began_s - 3e-4;
		if (late_s > 0.0)
			s->sum_s = s->sum_s + late_s;
	}
	return NULL;
}

static int stalls_begin(struct stalls *s, struct err *err)
{
	*s = (struct stalls){ 0 };
	return pthread_create(&s->thread, NULL, watch_stalls, s) ? err_fail(err, ERR_IO, "no thread") : 0;
}

static void stalls_end(struct stalls *s)
{
	s->stop = true;
	pthread_join(s->thread, NULL);
}

/* ---- 100,000 jobs ---- */

/* Processor time of the daemon for one submit. */
static int submit_cost(struct bench_site *s, size_t from, double *out_s, struct err *err)
{
	double before_s = bench_server_busy_s(&s->server);
	int status = bench_site_fill(s, from, MEASURED, err);

	*out_s = (bench_server_busy_s(&s->server) - before_s) / MEASURED;
	return status;
}

int bench_daemon_held(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_site site;
	double few_s = NAN, many_s = NAN;
	int status = bench_site_open(&site, env, 1, -1, err);

	out->kind = BAR_AT_MOST;
	out->bar = 1.5;
	out->unit = "times";
	if (status)
		return status;
	bench_say("%d submits beside %d jobs, then beside %d", MEASURED, FEW, MANY);
	status = bench_site_fill(&site, 0, FEW, err);
	if (!status)
		status = submit_cost(&site, FEW, &few_s, err);
	if (!status)
		status = bench_site_fill(&site, FEW + MEASURED, MANY - FEW - MEASURED, err);
	if (!status)
		status = submit_cost(&site, MANY, &many_s, err);
	if (!status) {
		out->ours = many_s / few_s;
		out->holds = out->ours <= out->bar ? HOLDS_YES : HOLDS_NO;
		bench_what(
			out,
			"processor time of the daemon for a durable submit with %d jobs held over that with "
			"%d: %.3g ms and %.3g ms, %.0f MB with all of them",
			MANY, FEW, 1e3 * many_s, 1e3 * few_s, bench_server_rss_mb(&site.server));
	}
	bench_site_close(&site);
	return status;
}

/* The longest of several lists, without the machine's stalls. */
static int time_lists(struct bench_site *s, const char *request, double *out_s, double *out_median_s,
		      struct err *err)
{
	double took_s[LISTS];
	struct stalls stalls;
	int status = stalls_begin(&stalls, err);

	for (int i = 0; i < LISTS && !status; i++) {
		double began_s = bench_now_s(), stalled_s = stalls.sum_s;
		const char *reply;
		size_t len;

		status = bench_client_ask(&s->client, request, strlen(request), &reply, &len, err);
		took_s[i] = bench_now_s() - began_s;
		took_s[i] = fmax(took_s[i] - (stalls.sum_s - stalled_s), 0.0);
		if (!status && (!bench_reply_ok(reply, len, false, 0) || len < 100 * FEW))
			status = err_fail(err, ERR_IO, "a list was answered with %.100s", reply);
	}
	stalls_end(&stalls);
	*out_s = status ? NAN : stats_percentile(took_s, LISTS, 100);
	*out_median_s = status ? NAN : stats_percentile(took_s, LISTS, 50);
	return status;
}

int bench_daemon_list(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_site site;
	struct json *stats = NULL;
	double live_s = NAN, live_median_s = NAN, all_s = NAN, all_median_s = NAN, busy_ms;
	int status = bench_site_open(&site, env, 1, -1, err);

	out->kind = BAR_AT_MOST;
	out->bar = 20;
	out->unit = "ms";
	if (status)
		return status;
	bench_say("lists of %d of %d jobs", FEW, MANY);
	status = bench_site_fill(&site, 0, MANY + 1, err);
	if (!status)
		status = time_lists(&site, "{\"op\":\"list\",\"limit\":1000,\"state\":\"queued\"}\n", &live_s,
				    &live_median_s, err);
	if (!status)
		status = time_lists(&site, "{\"op\":\"list\",\"limit\":1000}\n", &all_s, &all_median_s, err);
	if (!status)
		status = bench_site_ask(&site, "{\"op\":\"stats\"}\n", &stats, err);
	if (!status) {
		busy_ms = bench_stat(stats, "loop", "max_busy_ms");
		out->ours = 1e3 * fmax(live_s, all_s);
		out->holds = out->ours <= out->bar && busy_ms <= BLOCK_MS ? HOLDS_YES : HOLDS_NO;
		bench_what(
			out,
			"the longest of %d lists of 1,000 jobs, %d held, without the machine's stalls as a "
			"thread beside saw them; queued jobs: median %.3g ms, max %.3g ms; all: median %.3g "
			"ms, max %.3g ms; the loop was never busy longer than %.3g ms (at most %g), and away "
			"%.3g ms by the clock",
			2 * LISTS, MANY, 1e3 * live_median_s, 1e3 * live_s, 1e3 * all_median_s, 1e3 * all_s,
			busy_ms, BLOCK_MS, bench_stat(stats, "loop", "max_block_ms"));
	}
	json_free(stats);
	bench_site_close(&site);
	return status;
}

/* ---- 10,000 connections ---- */

struct crowd {
	int fd[CROWD];
	size_t n;
};

static void crowd_leave(struct crowd *c)
{
	for (size_t i = 0; i < c->n; i++)
		close(c->fd[i]);
	c->n = 0;
}

/* Reads until so many lines have come; the last of them must be ok. */
static int hear(int fd, size_t lines, struct err *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[65536];
	size_t heard = 0;

	while (heard < lines) {
		ssize_t n = poll(&p, 1, 10000) == 1 ? recv(fd, text, sizeof text, 0) : -1;

		if (n <= 0)
			return err_fail(err, ERR_IO, "one of the crowd hears nothing");
		for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + n - at))); at++)
			heard++;
		if (memmem(text, (size_t)n, "\"ok\":false", 10))
			return err_fail(err, ERR_IO, "one of the crowd is refused: %.*s",
					(int)(n < 160 ? n : 160), text);
	}
	return 0;
}

/* Each of another user, who has one job that waits without a promise: so each is a tenant with a job. */
static int crowd_come(struct crowd *c, const struct bench_site *s, struct err *err)
{
	static const char job[] = "{\"op\":\"submit\",\"type\":\"digits\",\"mode\":\"advise\","
				  "\"params\":{\"network\":\"lenet5\"}}\n";
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int status = 0;

	if (strlen(s->socket) >= sizeof at.sun_path)
		return err_fail(err, ERR_ARG, "%s: the path is too long for a socket", s->socket);
	memcpy(at.sun_path, s->socket, strlen(s->socket) + 1);
	while (c->n < CROWD && !status) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			return err_fail(err, ERR_IO, "no socket for one of the crowd: %s", strerror(errno));
		if (seteuid(FIRST_UID + (uid_t)c->n) || connect(fd, (struct sockaddr *)&at, sizeof at))
			status =
				err_fail(err, ERR_IO, "one of the crowd cannot connect: %s", strerror(errno));
		if (seteuid(0) && !status)
			status = err_fail(err, ERR_IO, "cannot be root again");
		c->fd[c->n++] = fd;
		if (!status && send(fd, job, sizeof job - 1, 0) != sizeof job - 1)
			status = err_fail(err, ERR_IO, "one of the crowd cannot send");
		if (!status && c->n % 100 == 0)
			for (size_t i = c->n - 100; i < c->n && !status; i++)
				status = hear(c->fd[i], 2, err);
	}
	for (size_t i = 0; i < WATCHERS && !status; i++) {
		static const char watch[] = "{\"op\":\"watch\"}\n";

		if (send(c->fd[i], watch, sizeof watch - 1, 0) != sizeof watch - 1)
			status = err_fail(err, ERR_IO, "one of the crowd cannot send");
		else
			status = hear(c->fd[i], 1, err);
	}
	return status;
}

/* Predictions of another user, among submits that the watchers hear of. */
static int ask_beside(struct bench_site *s, double *took_s, struct err *err)
{
	static const char predict[] = "{\"op\":\"predict\",\"type\":\"digits\",\"slo_s\":600,"
				      "\"params\":{\"network\":\"lenet5\"}}\n";
	const struct timespec pause = { .tv_nsec = 2000000 };
	struct stalls stalls;
	int status = stalls_begin(&stalls, err);

	for (size_t i = 0; i < PREDICTS && !status; i++) {
		double began_s, stalled_s = stalls.sum_s;
		const char *reply;
		size_t len;

		if (i % SUBMIT_EVERY == 0)
			status = bench_site_fill(s, i, 1, err);
		nanosleep(&pause, NULL);
		began_s = bench_now_s();
		if (!status)
			status = bench_client_ask(&s->client, predict, sizeof predict - 1, &reply, &len, err);
		took_s[i] = bench_now_s() - began_s;
		took_s[i] = fmax(took_s[i] - (stalls.sum_s - stalled_s), 0.0);
		if (!status && !bench_reply_ok(reply, len, false, 0))
			status = err_fail(err, ERR_IO, "a prediction was answered with %.100s", reply);
	}
	stalls_end(&stalls);
	return status;
}

static int crowd_measure(struct bench_site *s, struct crowd *c, struct bench_result *out, struct err *err)
{
	double *took_s = mem_array(PREDICTS, sizeof *took_s), rss_mb, began_s = bench_now_s(), came_s,
	       busy_ms;
	struct json *stats = NULL;
	int status = took_s ? crowd_come(c, s, err) : err_fail(err, ERR_NOMEM, "out of memory");

	came_s = bench_now_s() - began_s;
	if (!status)
		status = ask_beside(s, took_s, err);
	rss_mb = bench_server_rss_mb(&s->server);
	if (!status)
		status = bench_site_ask(s, "{\"op\":\"stats\"}\n", &stats, err);
	if (!status) {
		busy_ms = bench_stat(stats, "loop", "max_busy_ms");
		out->ours = 1e3 * stats_percentile(took_s, PREDICTS, 99);
		out->holds = out->ours <= out->bar && rss_mb <= 200.0 && busy_ms <= BLOCK_MS ? HOLDS_YES
											     : HOLDS_NO;
		bench_what(out,
			   "p99 of %d predictions of one user, without the machine's stalls, beside %d "
			   "connections of %zu tenants with a waiting job each, %d of them watching; median "
			   "%.3g "
			   "ms; daemon %.0f MB (at most 200); the loop was never busy longer than %.3g ms "
			   "(at most "
			   "%g); the crowd came in %.3g s",
			   PREDICTS, CROWD, json_size(json_get(stats, "tenants")), WATCHERS,
			   1e3 * stats_percentile(took_s, PREDICTS, 50), rss_mb, busy_ms, BLOCK_MS, came_s);
	}
	json_free(stats);
	free(took_s);
	return status;
}

int bench_daemon_crowd(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct crowd *c = mem_calloc(1, sizeof *c);
	struct bench_site site;
	struct rlimit l = { 0 };
	int status;

	out->kind = BAR_AT_MOST;
	out->bar = 5;
	out->unit = "ms";
	out->holds = HOLDS_UNKNOWN;
	out->ours = NAN;
	if (!c)
		return err_fail(err, ERR_NOMEM, "out of memory");
	getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
	if (geteuid() || l.rlim_cur < CROWD + 100) {
		bench_what(out, "needs root (connections of %d users) and %d open files", CROWD, CROWD + 100);
		free(c);
		return 0;
	}
	chmod(env->dir, 0711);
	status = bench_site_open(&site, env, 1, -1, err);
	if (!status) {
		bench_say("%d connections of %d users", CROWD, CROWD);
		status = crowd_measure(&site, c, out, err);
		crowd_leave(c);
		bench_site_close(&site);
	}
	free(c);
	return status;
}
