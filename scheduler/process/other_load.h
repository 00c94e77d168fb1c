/* Load by other programs: processes on this machine that are not ours and want a cpu. The daemon reads
 * /proc/stat and /proc/pressure/cpu about once a second and gives the result to the scheduler, so that
 * promises also hold while other users compile on the machine. This file opens nothing: texts go in, a number
 * comes out.
 *
 * The demand at a moment is the processes that run plus those that wait. The kernel counts running by time.
 * It tells only at the moment of reading how many processes wait, but it counts for how long a busy cpu had a
 * process waiting for it (pressure stall information, a mean over the cpus that are not idle), so that
 *
 * 	demand = busy cpus + that share of the time x (busy cpus, or the number that waited where it is
 * 	larger)
 *
 * Without pressure information the number at the moment of reading is used. What our own processes wanted is
 * subtracted (demand.h).
 *
 * How many wait at the moment of reading is a poor sample where threads of ours wait for each other. But the
 * kernel counts how long others ran, and others that want a cpu get one as our processes do. So others want
 * at most
 *
 * 	(busy cpus - ours that ran) x (ours that ran or waited) / (ours that ran)
 *
 * while ours run: nothing where no other process ran, and little where others run with a low priority. The
 * kernel shares the cpus between sessions first, so on a crowded machine this may be a quarter of those that
 * want a cpu. What part of the demand it was while ours ran is remembered, and holds when none of ours runs:
 * else a job that starts alone would be foreseen to take twice as long as the same job a moment later.
 *
 * The result is smoothed by two exponential means in a row of 1.25 s each. A load that stays counts by two
 * thirds after 3 s and by nine tenths after 5 s, and fades as fast; half a second of load moves the result by
 * a twentieth of it. In the first seconds they are plain means of all that was seen, so that the first
 * reading counts at once. Less than a quarter of a process is what a quiet system does anyway, and counts as
 * nothing. */
#ifndef SCHEDULER_PROCESS_OTHER_LOAD_H
#define SCHEDULER_PROCESS_OTHER_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "scheduler/process/proc.h"

#define OTHER_LOAD_MEAN_S 1.25     /* of each of the two means */
#define OTHER_LOAD_LEAST 0.25      /* processes; less is housekeeping */
/* bytes read of /proc/stat: the lines that count come first, or near the end */
#define OTHER_LOAD_MAX_TEXT 65536

/* ERR_FORMAT: the text is not a /proc/stat, or lacks a line that is needed. *out is written on success
 * only. */
int other_load_parse_stat(const char *text, struct proc_cpu *out, struct err *err);
/* Reads from /proc/pressure/cpu for how many seconds since boot a process waited for a cpu. */
int other_load_parse_pressure(const char *text, double *out_waited_s, struct err *err);

struct other_load {              /* all zero: nothing was read yet */
	bool begun, has_waited;
	struct proc_cpu last;
	double last_waited_s;
	/* number that waits when at least one does: a mean over readings that found some */
	double waiting;
	double first, second;    /* the two means, of demand less ours; may be below 0 */
	double sum_s, span_s;    /* demand less ours, added up over the time that was seen; that time */
	double estimate_s;       /* what of it ours felt, added up likewise, without the smoothing */
	double busy_s, ran_s, wanted_s; /* of all cpus, and of ours, added up over the same time */
	/* while ours ran: the demand of others, and the part of it that ours felt; both fade */
	double wanted_others_s, felt_s;
	size_t n_bad;            /* readings that made no sense */
};

struct other_load_ours {         /* our processes, as means over the time since the last reading */
	double wanted;           /* a cpu: they ran or waited for one */
	double ran;              /* NaN: not known */
};

/* Takes a reading `dt_s` seconds after the last one; the first only sets the marks, and its dt_s is not used.
 * pressure_text may be NULL. Returns the estimate. A reading that makes no sense, or that comes less than a
 * tick after the last one, changes nothing. */
double other_load_sample(struct other_load *o, const char *stat_text, const char *pressure_text,
                         struct other_load_ours ours, double dt_s);
double other_load_processes(const struct other_load *o); /* the estimate, without a reading */
/* The mean over all the time that was seen, not an estimate of now; NaN: nothing was seen. */
double other_load_mean(const struct other_load *o);

#endif
