/* Logs that are read at once when a line comes, of jobs that ask after each epoch how to go on: a script
 * waits 10 ms for the answer, and the tick of the executor is slower. A job that prints much is left to the
 * tick for the rest of it, and so are all when they print much together. Used by local.c, from the loop's
 * thread. */
#ifndef SCHEDULER_DAEMON_EXEC_WAKE_H
#define SCHEDULER_DAEMON_EXEC_WAKE_H

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct wakes;

/* The log of this job has grown. Returns the bytes that were read. */
typedef size_t wake_fn(void *owner, uint64_t job);

/* *out NULL: the kernel gives none, and the tick has to do. */
int wakes_new(struct event_base *base, wake_fn *fn, void *owner, struct wakes **out, struct err *err);
void wakes_free(struct wakes *w); /* this and the others accept NULL */

/* fd: its open log; -1: it has none as yet, and nothing is done. Also of one that is watched already. */
void wakes_add(struct wakes *w, uint64_t job, int fd);
void wakes_drop(struct wakes *w, uint64_t job); /* before its log is closed */
void wakes_tick(struct wakes *w); /* the tick has looked at all; they are watched again */

#endif
