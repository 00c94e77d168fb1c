/* Bench of the event loop: an M/M/1 queue at a load of 0.8, in the simulator the tests of queueing/ use and in
 * SimPy. An event is an arrival or a departure, on both sides; times are for a million of them. */
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>

#include "queueing/mm1.h"
#include "tests/support/des.h"

#define EVENTS 4000000
#define PEER_CUSTOMERS "100000" /* two events each; the rest of the million would only take longer */
#define PEER_EVENTS 200000
#define ROUNDS 3
#define ARRIVALS_PER_S 0.8
#define SERVICE_S 1.0

static int ours(double *io_best_s, double *out_response_s, struct err *err)
{
	const struct des_station station = { .service_s = SERVICE_S };
	const struct des_params params = { .station = &station,
					   .n_stations = 1,
					   .arrivals_per_s = ARRIVALS_PER_S,
					   .events = EVENTS,
					   .seed = 1 };
	struct des_result r;
	double start_s = bench_now_s();
	int status = des_run(&params, &r, err);

	if (status)
		return status;
	*io_best_s = fmin(*io_best_s, (bench_now_s() - start_s) * 1e6 / (double)r.events);
	*out_response_s = r.response_s.mean;
	return 0;
}

static int simpy(const struct bench_env *env, struct bench_rival *rival, double *out_response_s,
		 struct err *err)
{
	struct json *answer = NULL;
	char arrivals[32], service[32];
	double s = INFINITY;
	int status;

	snprintf(arrivals, sizeof arrivals, "%g", ARRIVALS_PER_S);
	snprintf(service, sizeof service, "%g", SERVICE_S);
	status = bench_peer_run(env, PEER_SIMPY, &s, &answer, err, "mm1", "--customers", PEER_CUSTOMERS,
				"--arrivals", arrivals, "--service", service, NULL);
	if (!status)
		*out_response_s = json_number(json_get(answer, "mean_response"), NAN);
	json_free(answer);
	return bench_rival_add(rival, PEER_SIMPY, status, s * 1e6 / PEER_EVENTS);
}

int bench_events(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_rival rival = { .seconds = INFINITY };
	double want_s = 0.0, ours_s = NAN, peer_s = NAN;
	int status = mm1_mean_response_s(ARRIVALS_PER_S, SERVICE_S, &want_s, err);
	bool same;

	out->bar = 50;
	out->unit = "s";
	out->ours = INFINITY;
	for (int i = 0; !status && i < ROUNDS; i++) {
		status = ours(&out->ours, &ours_s, err);
		if (!status && !rival.missing)
			status = simpy(env, &rival, &peer_s, err);
	}
	if (status)
		return status;
	bench_what(out, "a million events of an M/M/1 queue at load %g, against SimPy",
		   ARRIVALS_PER_S * SERVICE_S);
	bench_what(out, ": %.3g million events/s", 1.0 / out->ours);
	if (isfinite(rival.seconds))
		bench_what(out, " against %.3g", 1.0 / rival.seconds);
	/* both simulate the queue they claim to; five times the spread of so short a mean at this load */
	same = fabs(ours_s / want_s - 1.0) < 0.05 && !(fabs(peer_s / want_s - 1.0) > 0.2);
	if (!same)
		bench_what(out, "; mean response times %g and %g s, expected %g s", ours_s, peer_s, want_s);
	bench_judge(out, &rival, same);
	return 0;
}
