/* Bench of the event loop: an M/M/1 queue with processor sharing at a load of 0.8, in the engine of the
 * simulator's worlds (sim/world/sharing.h) and in SimPy. An event is an arrival or a departure, on both
 * sides; times are for a million of them. */
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>

#include "common/rng.h"
#include "queueing/mm1.h"
#include "sim/world/sharing.h"

#define CUSTOMERS 2000000
#define PEER_CUSTOMERS "100000" /* two events each; the rest of the million would only take longer */
#define PEER_EVENTS 200000
#define ROUNDS 3
#define ARRIVALS_PER_S 0.8
#define SERVICE_S 1.0

/* One core: among P processes all takes P times as long. */
static double one_core(const void *owner, const struct sharing_job *j, double processes)
{
	(void)owner;
	return j->extra[0] * processes;
}

static int ours(double *io_best_s, double *out_response_s, struct err *err)
{
	const struct sharing_params params = { .law = one_core, .cores = 1.0 };
	struct rng r = rng_stream(1, 0);
	struct sharing *s;
	struct sharing_end e;
	double start_s, arrival_s = 0.0, total_s = 0.0;
	int status = sharing_new(&params, &s, err);

	if (status)
		return status;
	start_s = bench_now_s();
	for (uint64_t i = 0; !status && i < CUSTOMERS; i++) {
		struct sharing_job j = { .id = i, .cpus = 1, .slow = 1.0, .until = 1.0 };

		arrival_s += rng_exponential(&r) / ARRIVALS_PER_S;
		while (sharing_next_s(s) <= arrival_s && sharing_end(s, &e))
			total_s += e.at_s - e.job.extra[1];
		j.extra[0] = SERVICE_S * rng_exponential(&r);
		j.extra[1] = arrival_s;
		status = sharing_start(s, arrival_s, &j, err);
	}
	while (!status && sharing_end(s, &e))
		total_s += e.at_s - e.job.extra[1];
	*io_best_s = fmin(*io_best_s, (bench_now_s() - start_s) * 1e6 / (2.0 * CUSTOMERS));
	*out_response_s = total_s / CUSTOMERS;
	sharing_free(s);
	return status;
}

/* SimPy's own way of modelling counts; *io_calendar_s is for those who know how to go round its processes. */
static int simpy(const struct bench_env *env, struct bench_rival *rival, double *out_response_s,
		 double *io_calendar_s, struct err *err)
{
	struct json *answer = NULL;
	char arrivals[32], service[32];
	double s = INFINITY;
	int status;

	snprintf(arrivals, sizeof arrivals, "%g", ARRIVALS_PER_S);
	snprintf(service, sizeof service, "%g", SERVICE_S);
	status = bench_peer_run(env, PEER_SIMPY, &s, &answer, err, "ps", "--customers", PEER_CUSTOMERS,
				"--arrivals", arrivals, "--service", service, NULL);
	if (!status) {
		*out_response_s = json_number(json_get(answer, "mean_response"), NAN);
		*io_calendar_s = fmin(*io_calendar_s, json_number(json_get(answer, "calendar_seconds"), NAN) *
							      1e6 / PEER_EVENTS);
	}
	json_free(answer);
	return bench_rival_add(rival, PEER_SIMPY, status, s * 1e6 / PEER_EVENTS);
}

int bench_events(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_rival rival = { .seconds = INFINITY };
	double want_s = 0.0, ours_s = NAN, peer_s = NAN, calendar_s = INFINITY;
	/* the mean response under processor sharing is that of the queue (Kleinrock II, 4.4) */
	int status = mm1_mean_response_s(ARRIVALS_PER_S, SERVICE_S, &want_s, err);
	bool same;

	out->bar = 100;
	out->unit = "s";
	out->ours = INFINITY;
	for (int i = 0; !status && i < ROUNDS; i++) {
		status = ours(&out->ours, &ours_s, err);
		if (!status && !rival.missing)
			status = simpy(env, &rival, &peer_s, &calendar_s, err);
	}
	if (status)
		return status;
	bench_what(out, "a million events of an M/M/1 queue with processor sharing at load %g, against SimPy",
		   ARRIVALS_PER_S * SERVICE_S);
	bench_what(out, ": %.3g million events/s", 1.0 / out->ours);
	if (isfinite(rival.seconds))
		bench_what(out,
			   " against %.3g (a process per customer); SimPy's calendar alone, with the server "
			   "as a "
			   "heap: %.3g",
			   1.0 / rival.seconds, 1.0 / calendar_s);
	/* both simulate the queue they claim to; five times the spread of so short a mean at this load */
	same = fabs(ours_s / want_s - 1.0) < 0.05 && !(fabs(peer_s / want_s - 1.0) > 0.2);
	if (!same)
		bench_what(out, "; mean response times %g and %g s, expected %g s", ours_s, peer_s, want_s);
	bench_judge(out, &rival, same);
	return 0;
}
