/* How busy others have kept the machine over the last seconds, minutes and hours, and what that says of the
 * next ones. Their future load is not known. A mean over the past is one guess, over the longer a past the
 * further it is to reach (sched_ask.c: twice as long); what they do now is another.
 *
 * usual_load_foresee() weighs the two by how such forecasts came true. For each length of time it makes a
 * forecast, waits until that time is over and compares, always in log(1 + load), as times of jobs are about
 * proportional to 1 + load. The weight of what is now is the slope of a regression over the latest forecasts,
 * and the spread is the size of their errors. So a load that jumps up and down is not thought to last, one
 * that stays is believed at once, and promises beside a load that cannot be foreseen are wider. */
#ifndef SCHEDULER_CORE_USUAL_LOAD_H
#define SCHEDULER_CORE_USUAL_LOAD_H

#include <stdint.h>

#define USUAL_LOAD_SCALES 16 /* of 1 s, 2 s, 4 s, ... 9 hours */

struct usual_forecast {          /* one that is not over yet, and what the latest ones taught */
	double begun_s, sum_s;   /* how long ago it was made; the load since, added up over the time */
	double now, usual;       /* what it was made from, as logarithms */
	double spread_xx, spread_xy, error_square; /* means that fade */
	unsigned n;              /* that came true or not; stops at USUAL_LOAD_RECENT */
};
#define USUAL_LOAD_RECENT 20

struct usual_load {
	double mean[USUAL_LOAD_SCALES]; /* faded by time, up to at_ns */
	int64_t at_ns;
	struct usual_forecast forecast[USUAL_LOAD_SCALES];
};

void usual_load_begin(struct usual_load *u, int64_t now_ns, double load);
/* The load was `load` since the last call. */
void usual_load_pass(struct usual_load *u, int64_t now_ns, double load);
/* The mean of the last `seconds`: of the next longer scale, and the past fades instead of ending. */
double usual_load_for(const struct usual_load *u, double seconds);

struct load_foreseen {
	double load;   /* the mean over the time to come */
	double spread; /* standard deviation of log(1 + load) around that; 0: nothing is known of it */
};
/* Of the next `seconds`, if it is `load` now. */
struct load_foreseen usual_load_foresee(const struct usual_load *u, double seconds, double load);

#endif
