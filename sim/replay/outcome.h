/* What became of a job in a replay. One array per replay, in the order of the trace. */
#ifndef SIM_REPLAY_OUTCOME_H
#define SIM_REPLAY_OUTCOME_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum outcome_state {
	OUTCOME_REJECTED,   /* not taken */
	OUTCOME_MET,        /* ended in time */
	OUTCOME_MISSED,     /* ended behind its objective */
	OUTCOME_DONE,       /* ended, and had no objective */
	OUTCOME_FAILED,     /* ended without a result */
	OUTCOME_REFUSED,    /* the queue was full */
	OUTCOME_STATES,
};
extern const char *const outcome_state_name[OUTCOME_STATES]; /* "rejected", "met", ... */

struct outcome {
	uint8_t state;            /* enum outcome_state */
	bool promised;            /* its objective was predicted to hold; a policy that admits all promises nothing */
	int64_t start_ns, end_ns; /* of those taken; 0 otherwise */
	double batch, epochs;     /* NaN: not taken; epochs NaN: not open */
	double promised_s;        /* at arrival: expected response; NaN: nothing predicted */
	double promised_upper_s;  /* and its bound; NaN: none */
	double run_s, run_upper_s;/* at the start: expected run time and its bound */
	double predicted_accuracy, accuracy; /* NaN: none */
	double processes, njobs;  /* means over its run: the load it met */
	double decision_s;        /* wall-clock: arrival and start together. Not reproducible: kept apart in files. */
};

#endif
