#define _GNU_SOURCE
#include "common/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/mem.h"

#define POOL_MAX_THREADS 256

struct pool {
	size_t n_threads; /* the caller counts as one */
	size_t n_started;
	pthread_t *thread;
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	unsigned long round; /* changes when there is new work */
	size_t busy;
	bool quit;
	pool_fn *fn;
	void *ctx;
	size_t n;
	atomic_size_t next;
};

struct worker_arg {
	struct pool *pool;
	size_t index;
};

static _Thread_local bool inside_turn;

static void take_turns(struct pool *p, size_t worker)
{
	inside_turn = true;
	for (;;) {
		size_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
		if (i >= p->n)
			break;
		p->fn(p->ctx, i, worker);
	}
	inside_turn = false;
}

static void *worker_main(void *arg_)
{
	struct worker_arg arg = *(struct worker_arg *)arg_;
	struct pool *p = arg.pool;
	unsigned long seen = 0;

	free(arg_);
	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (p->round == seen && !p->quit)
			pthread_cond_wait(&p->work, &p->lock);
		if (p->quit)
			break;
		seen = p->round;
		pthread_mutex_unlock(&p->lock);
		take_turns(p, arg.index);
		pthread_mutex_lock(&p->lock);
		if (--p->busy == 0)
			pthread_cond_signal(&p->idle);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static size_t default_threads(void)
{
	const char *text = getenv("POSTRIDER_THREADS");
	cpu_set_t set;

	if (text && atoi(text) > 0)
		return (size_t)atoi(text);
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		return (size_t)CPU_COUNT(&set);
	return 1;
}

int pool_new(size_t n_threads, struct pool **out, struct err *err)
{
	struct pool *p = mem_calloc(1, sizeof *p);

	if (!p)
		return err_nomem(err, "a thread pool");
	p->n_threads = n_threads ? n_threads : default_threads();
	if (p->n_threads > POOL_MAX_THREADS)
		p->n_threads = POOL_MAX_THREADS;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->idle, NULL);
	p->thread = mem_calloc(p->n_threads, sizeof *p->thread);
	if (!p->thread) {
		pool_free(p);
		return err_nomem(err, "a thread pool");
	}
	for (size_t i = 1; i < p->n_threads; i++) {
		struct worker_arg *arg = mem_alloc(sizeof *arg);
		int failed = ERR_NOMEM;

		if (arg) {
			*arg = (struct worker_arg){ p, i };
			failed = pthread_create(&p->thread[i], NULL, worker_main, arg) ? ERR_IO : 0;
		}
		if (failed) {
			free(arg);
			pool_free(p);
			return err_fail(err, (enum err_code)failed, "cannot start worker thread %zu", i);
		}
		p->n_started++;
	}
	*out = p;
	return 0;
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->quit = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 1; i <= p->n_started; i++)
		pthread_join(p->thread[i], NULL);
	pthread_cond_destroy(&p->work);
	pthread_cond_destroy(&p->idle);
	pthread_mutex_destroy(&p->lock);
	free(p->thread);
	free(p);
}

size_t pool_threads(const struct pool *p)
{
	return p ? p->n_threads : 1;
}

void pool_run(struct pool *p, size_t n, pool_fn *fn, void *ctx)
{
	if (!p || p->n_started == 0 || n < 2 || inside_turn) {
		for (size_t i = 0; i < n; i++)
			fn(ctx, i, 0);
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->fn = fn;
	p->ctx = ctx;
	p->n = n;
	atomic_store(&p->next, 0);
	p->busy = p->n_started;
	p->round++;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	take_turns(p, 0);
	pthread_mutex_lock(&p->lock);
	while (p->busy)
		pthread_cond_wait(&p->idle, &p->lock);
	pthread_mutex_unlock(&p->lock);
}
