/* One value of an observation: what a finished job ran with, by the name of its column. It stays a number or
 * a word from the job to the training table. */
#ifndef SCHEDULER_JOBS_OBSERVATION_H
#define SCHEDULER_JOBS_OBSERVATION_H

#define OBSERVED_MAX 256 /* values of an observation, time and accuracy included */

struct observed {
	const char *name;
	const char *text;    /* NULL: the number counts */
	double number;       /* NaN: missing */
};

#endif
