/* Benches of `predict`, a whole decision over the socket: one request at a time against a GET of
 * redis-server's by the very same client, and many requests at a time with the daemon on one core. */
#define _GNU_SOURCE
#include "tests/bench/bench_daemon.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Many short rounds: on a shared machine some of them are not disturbed. */
#define ROUNDS 200
#define REQUESTS 250 /* a round and side */

#define PIPELINE_ROUNDS 240
#define PIPELINE_REQUESTS 2000 /* a round */
#define CHUNK 64
#define WINDOW 256 /* requests on their way: their bytes fit into a socket, so that sending never waits */

#define PREDICT                                                                                              \
	"{\"op\":\"predict\",\"type\":\"digits\",\"params\":{\"network\":\"lenet5\"},\"cpus\":2,\"slo_s\":"  \
	"10}\n"
#define GET "*2\r\n$3\r\nGET\r\n$7\r\nbench:1\r\n"
#define SET "*3\r\n$3\r\nSET\r\n$7\r\nbench:1\r\n$16\r\n0123456789abcdef\r\n"

/* ---- one at a time ---- */

struct side { /* one of the two servers */
	struct bench_client client;
	const char *request, *good; /* how a good reply starts */
	double best_s; /* a request, in the best round */
};

static int play_round(struct side *s, struct err *err)
{
	size_t len = strlen(s->request), good_len = strlen(s->good), reply_len;
	double start_s = bench_now_s();
	const char *reply;
	int status = 0;

	for (int i = 0; !status && i < REQUESTS; i++) {
		status = bench_client_ask(&s->client, s->request, len, &reply, &reply_len, err);
		if (!status && (reply_len < good_len || memcmp(reply, s->good, good_len)))
			status = err_fail(err, ERR_FORMAT, "not a good reply: %.*s",
					  (int)(reply_len < 120 ? reply_len : 120), reply);
	}
	s->best_s = fmin(s->best_s, (bench_now_s() - start_s) / REQUESTS);
	return status;
}

static int start_redis(const struct bench_env *env, struct bench_server *server, struct side *s,
		       struct err *err)
{
	char socket[sizeof env->dir + 16], log[sizeof env->dir + 16];
	const char *const argv[] = { "redis-server", "--port", "0",     "--unixsocket", socket, "--save", "",
				     "--appendonly", "no",     "--dir", env->dir,       NULL };
	const char *reply;
	size_t len;
	int status;

	snprintf(socket, sizeof socket, "%s/redis", env->dir);
	snprintf(log, sizeof log, "%s/redis.log", env->dir);
	status = bench_server_start(server, argv, log, -1, err);
	if (status)
		return status;
	status = bench_client_open(&s->client, socket, FRAMING_BULK, 10.0, err);
	if (!status)
		status = bench_client_ask(&s->client, SET, strlen(SET), &reply, &len, err);
	if (!status && memcmp(reply, "+OK", 3))
		status = err_fail(err, ERR_FORMAT, "redis-server does not take a value");
	return status;
}

int bench_daemon_predict(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct side ours = { .request = PREDICT, .good = "{\"v\":1,\"ok\":true,", .best_s = INFINITY };
	struct side redis = {
		.client.fd = -1, .request = GET, .good = "$16\r\n0123456789abcdef", .best_s = INFINITY
	};
	struct bench_server server = { 0 };
	struct bench_site site;
	bool missing = false;
	const char *model;
	int status = bench_site_open(&site, env, 4, -1, err);

	out->bar = 0.7;
	out->unit = "s";
	if (status)
		return status;
	status = start_redis(env, &server, &redis, err);
	if (status == -ERR_NOTFOUND) {
		bench_say("redis-server is not installed (make bench-peers)");
		missing = true;
		status = 0;
	}
	if (!status)
		status = bench_site_connect(&site, &ours.client, err);
	for (int i = 0; !status && i < ROUNDS; i++) {
		status = play_round(&ours, err);
		if (!status && !missing)
			status = play_round(&redis, err);
	}
	bench_client_close(&ours.client);
	bench_client_close(&redis.client);
	bench_server_stop(&server);
	model = site.model;
	bench_site_close(&site);
	if (status)
		return status;
	out->ours = ours.best_s;
	bench_what(out,
		   "predict over the socket, 4 candidates, the default model (%s), one request at a time: "
		   "%.0f/s",
		   model, 1.0 / ours.best_s);
	if (missing) {
		bench_what(out, "; redis-server is not installed (make bench-peers)");
		out->holds = HOLDS_UNKNOWN;
		return 0;
	}
	out->peer = redis.best_s;
	out->ratio = redis.best_s / ours.best_s;
	out->holds = out->ratio >= out->bar ? HOLDS_YES : HOLDS_NO;
	bench_what(out, "; GET of 16 bytes from redis-server over its socket, the same client: %.0f/s",
		   1.0 / redis.best_s);
	return 0;
}

/* ---- many at a time ---- */

static int stream(struct bench_client *c, size_t n, struct err *err)
{
	static const char good[] = "{\"v\":1,\"ok\":true,";
	char chunk[CHUNK * sizeof PREDICT];
	size_t each = strlen(PREDICT), sent = 0, done = 0, len;
	const char *reply;
	int status = 0;

	for (size_t i = 0; i < CHUNK; i++)
		memcpy(chunk + i * each, PREDICT, each);
	while (!status && done < n) {
		while (!status && sent < n && sent + CHUNK <= done + WINDOW) {
			size_t some = n - sent < CHUNK ? n - sent : CHUNK;

			status = bench_client_send(c, chunk, some * each, err);
			sent += some;
		}
		if (!status)
			status = bench_client_read(c, true, err);
		for (; !status && bench_client_take(c, &reply, &len); done++)
			if (len < sizeof good - 1 || memcmp(reply, good, sizeof good - 1))
				status = err_fail(err, ERR_FORMAT, "not a good reply: %.*s",
						  (int)(len < 120 ? len : 120), reply);
	}
	return status;
}

/* The cpus we may use: the daemon gets the first, we the others. False: there is one only, and it is
 * shared. */
static bool split_cpus(int *out_daemon, cpu_set_t *out_before, cpu_set_t *out_ours)
{
	*out_daemon = -1;
	CPU_ZERO(out_ours);
	if (sched_getaffinity(0, sizeof *out_before, out_before))
		CPU_ZERO(out_before);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET((size_t)i, out_before))
			continue;
		if (*out_daemon < 0)
			*out_daemon = i;
		else
			CPU_SET((size_t)i, out_ours);
	}
	return CPU_COUNT(out_ours) > 0;
}

/* Of a decision, in the best round: by the clock, and the processor time of the daemon. */
static int measure_pipelined(struct bench_site *s, double *out_clock_s, double *out_busy_s, struct err *err)
{
	int status = stream(&s->client, PIPELINE_REQUESTS, err); /* warms up */

	*out_clock_s = *out_busy_s = INFINITY;
	for (int i = 0; !status && i < PIPELINE_ROUNDS; i++) {
		double start_s = bench_now_s(), busy_s = bench_server_busy_s(&s->server);

		status = stream(&s->client, PIPELINE_REQUESTS, err);
		*out_clock_s = fmin(*out_clock_s, (bench_now_s() - start_s) / PIPELINE_REQUESTS);
		*out_busy_s =
			fmin(*out_busy_s, (bench_server_busy_s(&s->server) - busy_s) / PIPELINE_REQUESTS);
	}
	return status;
}

int bench_daemon_pipelined(struct bench_env *env, struct bench_result *out, struct err *err)
{
	double clock_s, busy_s;
	cpu_set_t before, ours;
	struct bench_site site;
	const char *model;
	bool apart;
	int cpu, status;

	out->kind = BAR_AT_MOST;
	out->bar = 7;
	out->unit = "us";
	apart = split_cpus(&cpu, &before, &ours);
	status = bench_site_open(&site, env, 4, cpu, err);
	if (status)
		return status;
	if (apart)
		sched_setaffinity(0, sizeof ours, &ours);
	status = measure_pipelined(&site, &clock_s, &busy_s, err);
	if (apart)
		sched_setaffinity(0, sizeof before, &before);
	model = site.model;
	bench_site_close(&site);
	if (status)
		return status;
	/* by its processor time: where others use its core the clock tells how busy they are */
	out->ours = 1e6 * busy_s;
	out->holds = out->ours <= out->bar ? HOLDS_YES : HOLDS_NO;
	bench_what(out,
		   "predict pipelined, %d at a time, 4 candidates, the default model (%s), the daemon on one "
		   "core%s, processor time of the daemon for a decision, best of %d rounds; by the clock "
		   "%.0f decisions/s",
		   WINDOW, model, apart ? "" : " that the client shares", PIPELINE_ROUNDS, 1.0 / clock_s);
	return 0;
}
