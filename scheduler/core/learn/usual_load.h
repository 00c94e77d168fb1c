/* How busy others have kept the machine over the last seconds, minutes and hours. Their future load is not
 * known; a mean over the past is the guess, over the longer a past the further it is to reach (sched_ask.c:
 * twice as long). */
#ifndef SCHEDULER_CORE_USUAL_LOAD_H
#define SCHEDULER_CORE_USUAL_LOAD_H

#include <stdint.h>

#define USUAL_LOAD_SCALES 16 /* of 1 s, 2 s, 4 s, ... 9 hours */

struct usual_load {
	double mean[USUAL_LOAD_SCALES]; /* faded by time, up to at_ns */
	int64_t at_ns;
};

void usual_load_begin(struct usual_load *u, int64_t now_ns, double load);
/* The load was `load` since the last call. */
void usual_load_pass(struct usual_load *u, int64_t now_ns, double load);
/* The mean of the last `seconds`: of the next longer scale, and the past fades instead of ending. */
double usual_load_for(const struct usual_load *u, double seconds);

#endif
