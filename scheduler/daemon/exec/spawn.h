/* Starting the supervisor of a job: an order has all that it takes, so that carrying it out is one system
 * call and can be left to a thread (spawner.h). Used by local.c; the other side is
 * scheduler/supervisor/. */
#ifndef SCHEDULER_DAEMON_EXEC_SPAWN_H
#define SCHEDULER_DAEMON_EXEC_SPAWN_H

#include <stdatomic.h>
#include <sys/types.h>

#include "common/orders.h"
#include "common/strbuf.h"
#include "scheduler/daemon/exec/executor.h"

struct spawn_words { /* one text, words ending in NUL; at the end an array that points into it, NULL after the
                        last */
	struct strbuf text;
	size_t n;
	char **word;
};

/* The program, and a copy of our environment from when the program was found, so that a later change of it
 * does not disturb a start on another thread. */
struct spawn_program {
	char *path;
	struct spawn_words environment;
	int sched_class; /* of the thread that found it: SCHED_OTHER, SCHED_BATCH, ... */
};

/* It is $POSTRIDER_SUPERVISOR, beside this program, in ../libexec/postrider from there, or in LIBEXEC. */
int spawn_program_init(struct spawn_program *p, struct err *err);
void spawn_program_release(struct spawn_program *p);

/* The supervisor's command line for a job; `cpus`: a list, or NULL for any. False: out of memory, or a path
 * is too long. To be released, also then. */
bool spawn_words_supervisor(struct spawn_words *w, const char *program, const struct exec_job *j,
                            const char *cpus);
void spawn_words_release(struct spawn_words *w);

enum spawn_state { SPAWN_WAITING, SPAWN_TAKEN, SPAWN_WITHDRAWN };

struct spawn_order {
	struct order order;                /* first: the queue's */
	_Atomic(enum spawn_state) state;   /* spawner.c's */
	void *job;                         /* whose; not looked at here */
	const struct spawn_program *program; /* borrowed until it is freed */
	struct spawn_words argv;
	int report[2];                     /* a pipe, non-blocking: the lines of record_format.h; -1: taken */
	pid_t pid;                         /* 0: not started */
	int error;                         /* why not, an error number */
};

/* ERR_BUSY: spawn_error_passes(). */
int spawn_order_new(const struct spawn_program *p, const struct exec_job *j, const char *cpus,
                    struct spawn_order **out, struct err *err);
/* Sets pid or error; takes as long as the machine is busy. `own_table`: this thread's descriptors are its
 * own, not those of the process. */
void spawn_order_run(struct spawn_order *o, bool own_table);
bool spawn_error_passes(int error); /* the machine lacks something, for now */
int spawn_order_take_report(struct spawn_order *o); /* the end that is read; to be closed */
void spawn_order_empty(struct spawn_order *o); /* nothing but the shell is left */
void spawn_order_free(struct spawn_order *o);

#endif
