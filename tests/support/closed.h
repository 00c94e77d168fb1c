/* Closed networks: a fixed population cycles between stations, e.g. the processes of the running jobs between
 * the cores and the disk. The load limits itself here, so there is no unstable answer. Solved by mean value
 * analysis, exactly or approximately, for one class of customers or several.
 *
 * A station is a place to wait (demand alone), or a queue with one or more servers. Queues are processor
 * sharing with any law of the service time, or first come first served with an exponential law that is the
 * same for all classes; both have the same means (Baskett, Chandy, Muntz, Palacios, J. ACM 22, 1975).
 * Sources: Reiser, Lavenberg, J. ACM 27 (1980); Reiser, Performance Evaluation 1 (1981); Lazowska, Zahorjan,
 * Graham, Sevcik, Quantitative System Performance (1984), chapters 6 to 8; Schweitzer (1979) and Bard
 * (1979) for the approximation: off by 3 % on average and by 14 % at worst over the random networks of few
 * customers in its test, and nearer with more. */
#ifndef TESTS_SUPPORT_CLOSED_H
#define TESTS_SUPPORT_CLOSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum closed_kind {
	CLOSED_QUEUE, /* `servers` of them: a job alone is served at speed 1, n of them at min(n, servers) */
	CLOSED_DELAY, /* no queue: everyone is served at once */
};

struct closed_station {
	enum closed_kind kind;
	unsigned servers; /* 0 stands for 1 */
};

struct closed_network {
	size_t n_stations, n_classes;
	const struct closed_station *station;
	const double *demand_s;     /* [class * n_stations + station]: visits x service time */
	const uint32_t *population; /* of each class */
	const double *think_s;      /* of each class, between two cycles; NULL: none */
};

/* What a caller lets in; 0 stands for the default, which only `cells` may exceed. Checked before anything is
 * allocated. */
struct closed_limits {
	size_t stations;     /* CLOSED_MAX_STATIONS */
	size_t classes;      /* CLOSED_MAX_CLASSES */
	uint64_t population; /* of all classes together: CLOSED_MAX_POPULATION */
	size_t cells;        /* numbers the exact solution may keep, 8 bytes each: CLOSED_MAX_CELLS */
};
#define CLOSED_MAX_STATIONS 64
#define CLOSED_MAX_CLASSES 64
#define CLOSED_MAX_POPULATION 1000000
#define CLOSED_MAX_CELLS ((size_t)1 << 23) /* 64 MiB, about a second */
#define CLOSED_MAX_SERVERS 500  /* of one station in the exact solution; closed.c says why */
#define CLOSED_MAX_SHARED 4     /* stations with several servers in the exact solution */

struct closed_solution {
	bool exact;
	size_t n_stations, n_classes;
	double *throughput_per_s; /* per class: cycles per second */
	double *response_s;       /* per class: one cycle, thinking excluded */
	double *residence_s;      /* [class * n_stations + station]: its part of the response */
	double *number;           /* same shape: mean number there, waiting or served */
	double *utilisation;      /* per station: busy share of the servers; for a delay the mean number */
};

/* ERR_ARG: numbers that make no sense, or over the limits; the text says which. A class with customers must
 * have some demand or think time, or it would cycle infinitely fast. */
int closed_exact(const struct closed_network *net, const struct closed_limits *limits,
                 struct closed_solution *out, struct err *err);
int closed_approximate(const struct closed_network *net, const struct closed_limits *limits,
                       struct closed_solution *out, struct err *err);
/* Exact where `cells` and the server limits allow it, else approximate. */
int closed_solve(const struct closed_network *net, const struct closed_limits *limits,
                 struct closed_solution *out, struct err *err);
void closed_solution_release(struct closed_solution *s);

/* The mean time of a cycle of `n` processes over `cores` cores and one disk; NaN: it has no solution. */
double closed_cycle_s(unsigned cores, uint32_t n, double compute_s, double disk_s);

#endif
