/* One run: as many copies of the command as njobs says, at the same time, each in its own session with
 * its own log files, measured from start to exit. No shell is used.
 *
 * Signals are waited for, not handled: between profile_signals_hold() and profile_signals_release() Ctrl-C
 * stays pending until we ask for it, so that nothing is interrupted half-way. */
#ifndef SCHEDULER_PROFILER_RUN_H
#define SCHEDULER_PROFILER_RUN_H

#include <signal.h>

#include "scheduler/profiler/journal.h"

#define PROFILE_STOP_SIGNALS 3
struct profile_signals {
	sigset_t before, watched; /* what the mask was; what is held now */
	struct sigaction old[PROFILE_STOP_SIGNALS];
};
void profile_signals_hold(struct profile_signals *s);
void profile_signals_release(const struct profile_signals *s);
int profile_signals_pending(const struct profile_signals *s); /* takes one that asks us to stop; 0: none */

struct profile_run_params {
	const struct profile_design *design;
	const struct profile_point *point;
	const struct profile_signals *signals;
	const char *dir;         /* logs go to DIR/logs/NAME.copy-1.out and .err */
	const char *name;        /* "run-0012.try-1" */
	double cut_at_s;         /* on the monotonic clock: the run is ended when its next epoch then ends;
	                            at once if it does not tell its epochs. 0: never */
	bool first;              /* nothing was measured before */
	void (*on_tick)(void *owner, double elapsed_s); /* optional: about once a second */
	void *owner;
};

/* 0: *out holds what was measured, a failure of the command included. *out_signal is not 0 where we were
 * asked to stop: the copies were ended and there is no outcome. An error means that no run can work: the
 * program cannot be started, or a log cannot be written. */
int profile_run(const struct profile_run_params *p, struct profile_outcome *out, int *out_signal,
                struct err *err);

/* Parts of it, for those who run copies elsewhere. */
int profile_signals_wait(const struct profile_signals *s, double wait_s); /* the next; 0: none in that time */
bool profile_signals_came(void); /* one that asks us to stop waits to be taken */
/* Makes the folder of the logs, and room for the copies. */
int profile_run_prepare(const struct profile_run_params *p, struct profile_outcome *out, struct err *err);
int profile_log_path(const struct profile_run_params *p, size_t copy, const char *end, char *out,
                     struct err *err); /* copy: from 1; out has PATH_MAX bytes */
/* All copies ended well: reads what they printed. */
int profile_run_results(const struct profile_run_params *p, struct profile_outcome *o, struct err *err);
void profile_run_failed(const struct profile_run_params *p, size_t copy, const char *what,
                        struct profile_outcome *o);
void profile_run_timed_out(const struct profile_run_params *p, struct profile_outcome *o);

/* ---- what a copy printed (result.c) ---- */
/* The last accuracy is the result (output_line.h says which numbers are one). Those that come with the end
 * of an epoch make the curve. Fills accuracy, percent, found and epoch[] of *c. The only failure is
 * ERR_NOMEM. */
int profile_result_parse(const struct profile_design *d, const char *text, size_t len, struct profile_copy *c,
                         struct err *err);
int profile_result_read(const struct profile_design *d, const char *path, struct profile_copy *c,
                        struct err *err);

#endif
