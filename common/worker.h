/* A thread that works beside an event loop, and the bell by which one side wakes the other. Only the loop
 * handles signals: all of them are blocked in the thread, so that no handler runs there.
 *
 * 	bell_new(&fd, true, err); worker_start(&w, run, arg, "the reload", err);   the loop waits for fd
 * 	bell_ring(fd);                                                             the thread has something
 * 	bell_clear(fd); ... worker_join(&w); bell_free(&fd);                       the loop takes it */
#ifndef COMMON_WORKER_H
#define COMMON_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include "common/err.h"

struct worker { /* all zero: there is no thread */
	pthread_t thread;
	bool runs;
};

/* `what` is for the error: "cannot start a thread for WHAT: reason". */
int worker_start(struct worker *w, void *(*run)(void *arg), void *arg, const char *what, struct err *err);
void worker_join(struct worker *w); /* waits for its end; nothing happens without a thread */

/* An eventfd. Clearing it waits for a ring unless it belongs to a `loop`. */
int bell_new(int *out_fd, bool loop, const char *what, struct err *err);
void bell_ring(int fd);
void bell_clear(int fd); /* clear it before you look for what it rang for: a later ring then counts again */
void bell_free(int *fd); /* -1: there is none */

#endif
