/* Load that is not ours: processes of others that want a cpu, as the kernel counts them. The daemon reads
 * /proc/stat and /proc/pressure/cpu about once a second, and what comes out goes to sched_set_outside(), so that
 * a compiler on the machine makes promises no worse. This file opens nothing: texts go in, a number comes out.
 *
 * A moment's demand is what runs, which the kernel counts by time, and what waits. How many wait is known only at the
 * moment of reading, but for how long somebody waited is counted (pressure stall information), so that
 *
 *	demand = busy cpus + share of the time in which somebody waited x how many waited when somebody did
 *
 * Without pressure information the moment has to do. Our own processes are taken off; they do not always want a cpu, so
 * the result errs towards 0 while jobs of ours sleep or wait for each other, and is never below 0.
 *
 * Two exponential means in a row, 1.25 s each: a load that stays is believed by two thirds after 3 s and by nine tenths
 * after 5 s, and forgotten likewise; half a second of something moves the result by a twentieth of it. What a quiet
 * system does anyway (below a quarter of a process) counts as nothing. */
#ifndef SCHEDULER_PROCESS_OTHER_LOAD_H
#define SCHEDULER_PROCESS_OTHER_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define OUTSIDE_MEAN_S 1.25      /* of each of the two means */
#define OUTSIDE_LEAST 0.25       /* processes; less is housekeeping */
#define OUTSIDE_MAX_TEXT 65536   /* bytes read of /proc/stat: the lines that count come first, or near the end */

struct outside_reading {         /* of one moment */
	size_t cpus;
	double busy, total;      /* ticks of all cpus since the start; time stolen by a hypervisor counts as busy */
	double running;          /* processes on a cpu or waiting for one, the reader included */
};
/* ERR_FORMAT: it is no /proc/stat. *out is written on success only. */
int outside_parse_stat(const char *text, struct outside_reading *out, struct err *err);
/* Seconds since the start in which somebody waited for a cpu, of /proc/pressure/cpu. */
int outside_parse_pressure(const char *text, double *out_waited_s, struct err *err);

struct outside {                 /* all zero: nothing was read yet */
	bool begun, has_waited;
	struct outside_reading last;
	double last_waited_s;
	double waiting;          /* how many wait when somebody does: a mean over readings that found some */
	double first, second;    /* the two means, of demand less ours; may be below 0 */
	size_t n_bad;            /* readings that made no sense */
};

/* A reading `dt_s` seconds after the last one (not looked at for the first, which only sets the marks). pressure_text
 * may be NULL. our_processes: those of our running jobs together. Returns the estimate; a reading that makes no
 * sense, or comes less than a tick after the last, changes nothing. */
double outside_sample(struct outside *o, const char *stat_text, const char *pressure_text, double our_processes,
                      double dt_s);
double outside_processes(const struct outside *o); /* the estimate, without a reading */

#endif
