/* The checks that all open models share: valid numbers, a load that has a steady state, an answer that is a
 * number. Read mm1.h first. */
#ifndef QUEUEING_LOAD_H
#define QUEUEING_LOAD_H

#include "common/err.h"

/* load = arrivals_per_s * service_s / servers. ERR_ARG unless both are finite and >= 0 and servers > 0;
 * ERR_UNSTABLE, with the load in the text, at 1 and above. */
int load_check(double arrivals_per_s, double service_s, double servers, double *out_load, struct err *err);

/* `value` must be a finite number >= 0 (ERR_ARG); `what` names it, unit included: "think time of %g s". */
int load_check_size(const char *what, double value, struct err *err);

/* A result leaves by here: ERR_NUMERIC instead of a number too large for a double. */
int load_result(const char *what, double value, double *out, struct err *err);

#endif
