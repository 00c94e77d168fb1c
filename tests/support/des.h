/* A small discrete-event simulator, to check formulas against what they describe: customers visit stations
 * in order, coming from outside (Poisson) or cycling for ever. An event costs O(log n), also at a
 * processor-sharing station: jobs there share one clock of attained service and leave in its order.
 *
 * Means come with 99 % confidence intervals by batch means (Law, Simulation Modeling and Analysis, section
 * 9.5.3): 30 batches after a warm-up of a tenth of the run. */
#ifndef TESTS_DES_H
#define TESTS_DES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define DES_MAX_STATIONS 8

enum des_kind {
	DES_FCFS, /* first come first served, `servers` of them */
	DES_PS,   /* processor sharing: each of n jobs at the rate min(processes, servers / n) */
};

enum des_law {
	DES_EXPONENTIAL,
	DES_CONSTANT,
	DES_HYPER, /* two exponentials, balanced means, squared coefficient of variation `scv` > 1 */
};

struct des_station {
	enum des_kind kind;
	unsigned servers;   /* 0 stands for 1 */
	unsigned processes; /* PS: cores one job can use; 0 stands for 1 */
	enum des_law law;
	double service_s;   /* mean; of one core */
	double scv;
};

struct des_params {
	const struct des_station *station; /* visited in this order */
	size_t n_stations;
	double arrivals_per_s; /* more than 0: an open network */
	uint32_t population;   /* of a closed network, when there are no arrivals */
	double think_s;        /* of a closed network: exponential, between two cycles */
	double within_s;       /* a time whose share of responses and of first waits is counted */
	uint64_t events;       /* arrivals, ends of thinking, ends of service: about so many in all */
	uint64_t seed;
};

struct des_mean {
	double mean, half; /* the 99 % interval is mean - half to mean + half */
};

struct des_result {
	struct des_mean response_s;               /* from arrival (or end of thinking) to the end of the last
	                                           * service */
	struct des_mean within;                   /* share of responses of at most within_s */
	struct des_mean wait_within;              /* share of waits at the first station (FCFS) of at most
	                                           * within_s */
	struct des_mean residence_s[DES_MAX_STATIONS];
	struct des_mean throughput_per_s;         /* customers done */
	double number[DES_MAX_STATIONS];          /* time average of the customers there */
	double busy[DES_MAX_STATIONS];            /* time average of the servers or cores in use */
	uint64_t events;
};

/* ERR_UNSTABLE: more than 2^24 customers are there at once. */
int des_run(const struct des_params *params, struct des_result *out, struct err *err);

/* 1; or 25 in a sanitized run (SAN in the environment), which simulates so many times fewer events and may
 * be off by the square root of it more. */
unsigned des_thrift(void);

/* Does the simulation agree with `want`? A right formula fails for about one seed in a million:
 * - `want` is within DES_SURE intervals of the mean. With 30 batches the mean has a t distribution of 29
 * degrees of
 *   freedom, of which 2.756 standard errors hold 99 % (the interval) and 6.06 all but one in a million.
 * - The interval is about `share` of `want` (in a plain run), so that agreement means something. It varies by
 * 1 / sqrt(2 * 29) = 13 %; five times that are allowed. A formula that is off by 4 times the share is always
 * found. */
#define DES_SURE (6.06 / 2.756)
#define DES_WIDEST 1.66
bool des_agrees(struct des_mean sim, double want, double share);

#endif
