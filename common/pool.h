/* A pool of worker threads for loops whose turns are independent. Turns are handed out in order;
 * a result must depend on its index only, never on the worker, so it is the same for any number
 * of threads. */
#ifndef COMMON_POOL_H
#define COMMON_POOL_H

#include <stddef.h>

#include "common/err.h"

struct pool;

/* n_threads 0: as many as the process may use (or POSTRIDER_THREADS). 1 starts no thread at all. */
int pool_new(size_t n_threads, struct pool **out, struct err *err);
void pool_free(struct pool *p);
size_t pool_threads(const struct pool *p); /* 1 for NULL */

/* Calls fn(ctx, i, worker) for i = 0..n-1 and returns when all are done; worker < pool_threads().
 * A NULL pool runs in the calling thread. Calls from inside a turn run inline, as worker 0: scratch per
 * worker must belong to the call, not to the pool. */
typedef void pool_fn(void *ctx, size_t i, size_t worker);
void pool_run(struct pool *p, size_t n, pool_fn *fn, void *ctx);

#endif
