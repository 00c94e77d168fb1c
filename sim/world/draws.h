/* What is random about a job, and about the machine. Everything is drawn from the seed and the job's own id,
 * never from a shared stream. So a job has the same draws under every policy (common random numbers), in any
 * order of starts. */
#ifndef SIM_WORLD_DRAWS_H
#define SIM_WORLD_DRAWS_H

#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"

struct disturbances {             /* all zero: none */
	double noise;             /* sd of the logarithm of a factor on each job's work, whose median is 1 */
	double drift;             /* the machine takes (1 + drift) times as long ... */
	double drift_at_s;        /* ... from this moment on (virtual seconds) */
	double stragglers, straggler_factor; /* share of jobs that take so many times as long */
	double failures;          /* share of jobs that fail, at a point of their work drawn evenly */
};
/* "20%@3600", "20%@50%" (of the time between first and last arrival, span_s); "2%x3"; "1%". ERR_ARG says
 * what is wrong. */
int disturbances_drift(const char *text, double span_s, struct disturbances *io, struct err *err);
int disturbances_stragglers(const char *text, struct disturbances *io, struct err *err);
int disturbances_failures(const char *text, struct disturbances *io, struct err *err);
void disturbances_to_json(const struct disturbances *d, struct json_writer *w); /* an object */

struct draws {                     /* of one job */
	double time_u, accuracy_u; /* uniform on [0,1): which of the measured runs it is like */
	double slow;              /* factor on its work: noise times straggling */
	double fails_at;          /* part of its work after which it fails; NaN: it does not */
	uint64_t seed;            /* of whatever else a world draws for it */
};
struct draws draws_of(const struct disturbances *d, uint64_t seed, uint64_t job);

#endif
