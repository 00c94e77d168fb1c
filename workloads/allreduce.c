/* All-reduce between processes in shared memory. Every worker computes its gradient directly into a vector in
 * shared memory, so nothing is copied. Summing has two steps. Each worker adds up 1/N of the places of all N
 * vectors in the order of the ranks (reduce-scatter). Then all workers read the whole sum (all-gather, which
 * shared memory gives for free). There is a barrier before and after.
 *
 * The parent process only watches. When a worker dies, the parent marks it in shared memory and opens the
 * barrier, so that no worker waits for the dead one. When the parent dies, the kernel ends the workers. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "workloads/comm.h"
#include "workloads/kernel.h"
#include "workloads/stop.h"

#define LINE 64 /* bytes of a cache line */
#define SPINS 4000 /* looks before sleeping, some 10 us: about what a sleep and a wake-up cost */

/* The beginning of the shared memory; vectors and the sum follow. */
struct shared {
	unsigned n_workers;
	int spins;
	_Atomic unsigned arrived; /* at the barrier */
	_Atomic unsigned generation; /* of the barrier: the futex */
	_Atomic bool failed; /* no barrier will be reached again */
	int agreed_stop; /* written by rank 0 before the first barrier of a sum */
	_Atomic int error_taken; /* the first to fail writes `error` */
	struct err error;
	double doubles[][COMM_MAX_DOUBLES]; /* by rank */
};

struct worker { /* of this process */
	struct shared *shared;
	float *sum;
	float *first_vector;
	size_t stride; /* floats from one worker's vector to the next */
};

/* ---- the barrier ---- */

static long futex(_Atomic unsigned *word, int op, unsigned value)
{
	return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static void open_barrier(struct shared *s)
{
	atomic_fetch_add(&s->generation, 1);
	futex(&s->generation, FUTEX_WAKE, INT32_MAX);
}

/* Ends all waiting. `failed` is set before the generation moves, so that a worker that sees the new
 * generation, or arrives later, sees it too. */
static void give_up(struct shared *s, const struct err *why)
{
	if (why && !atomic_exchange(&s->error_taken, 1))
		s->error = *why;
	atomic_store(&s->failed, true);
	open_barrier(s);
}

static inline void relax(void) /* tells the processor that this loop waits */
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static int barrier(struct shared *s, struct err *err)
{
	unsigned generation = atomic_load(&s->generation);

	if (!atomic_load(&s->failed)) {
		if (atomic_fetch_add(&s->arrived, 1) + 1 == s->n_workers) {
			atomic_store(&s->arrived, 0);
			open_barrier(s);
		}
		for (int i = 0; i < s->spins && atomic_load(&s->generation) == generation; i++)
			relax();
		while (atomic_load(&s->generation) == generation)
			futex(&s->generation, FUTEX_WAIT, generation); /* EINTR, EAGAIN: look again */
	}
	if (atomic_load(&s->failed))
		return err_fail(err, ERR_IO, "another worker of this job failed");
	return 0;
}

/* ---- sums ---- */

static int shared_sum(struct comm *c, const float **out_sum, struct err *err)
{
	struct worker *w = c->self;
	size_t per_line = LINE / sizeof(float);
	size_t lines = (c->n_floats + per_line - 1) / per_line;
	size_t from = lines * c->rank / c->size * per_line, to = lines * (c->rank + 1) / c->size * per_line;
	int rc;

	if (c->rank == 0)
		w->shared->agreed_stop = stop_signal();
	rc = barrier(w->shared, err);
	if (rc)
		return rc;
	c->stop = w->shared->agreed_stop;
	to = to < c->n_floats ? to : c->n_floats;
	for (size_t i = from; i < to; i++)
		w->sum[i] = w->first_vector[i] + w->first_vector[w->stride + i];
	for (unsigned k = 2; k < c->size; k++)
		for (size_t i = from; i < to; i++)
			w->sum[i] += w->first_vector[k * w->stride + i];
	rc = barrier(w->shared, err);
	if (!rc)
		*out_sum = w->sum;
	return rc;
}

static int shared_sum_doubles(struct comm *c, double *v, size_t n, struct err *err)
{
	struct worker *w = c->self;
	int rc;

	memcpy(w->shared->doubles[c->rank], v, n * sizeof *v);
	rc = barrier(w->shared, err);
	if (rc)
		return rc;
	memset(v, 0, n * sizeof *v);
	for (unsigned k = 0; k < c->size; k++)
		for (size_t i = 0; i < n; i++)
			v[i] += w->shared->doubles[k][i];
	return barrier(w->shared, err); /* no worker may write again until all have read */
}

static const struct comm_ops shared_ops = { shared_sum, shared_sum_doubles };

/* ---- one worker ---- */

static int alone_sum(struct comm *c, const float **out_sum, struct err *err)
{
	(void)err;
	c->stop = stop_signal();
	*out_sum = c->vector;
	return 0;
}

static int alone_sum_doubles(struct comm *c, double *v, size_t n, struct err *err)
{
	(void)c;
	(void)v;
	(void)n;
	(void)err;
	return 0;
}

static int run_alone(size_t n_floats, comm_work *work, void *ctx, struct err *err)
{
	static const struct comm_ops ops = { alone_sum, alone_sum_doubles };
	struct comm c = { .size = 1, .n_floats = n_floats, .ops = &ops };
	int rc;

	c.vector = mem_calloc(n_floats + KERNEL_SLACK, sizeof *c.vector);
	if (!c.vector)
		return err_nomem(err, "a gradient of %zu numbers", n_floats);
	rc = work(&c, ctx, err);
	free(c.vector);
	return rc;
}

/* ---- many ---- */

/* What a forked worker does; never returns. */
static void worker_main(struct worker *w, unsigned rank, size_t n_floats, pid_t parent, comm_work *work,
			void *ctx)
{
	struct comm c = { .rank = rank,
			  .size = w->shared->n_workers,
			  .vector = w->first_vector + rank * w->stride,
			  .n_floats = n_floats,
			  .ops = &shared_ops,
			  .self = w };
	struct err err = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before the line above */
		_exit(1);
	if (work(&c, ctx, &err)) {
		give_up(w->shared, &err);
		fflush(NULL);
		_exit(1);
	}
	fflush(NULL);
	_exit(0);
}

/* Waits for all workers. The first one that does not exit cleanly fails the job. */
static void watch(struct shared *s, const pid_t *pid, unsigned n)
{
	unsigned left = n;

	while (left > 0) {
		struct err err = { 0 };
		unsigned rank = 0;
		int status;
		pid_t who = waitpid(-1, &status, 0);

		if (who < 0 && errno == EINTR)
			continue;
		if (who < 0)
			break; /* there are none left */
		while (rank < n && pid[rank] != who)
			rank++;
		if (rank == n)
			continue;
		left--;
		if (WIFSIGNALED(status))
			err_fail(&err, ERR_IO, "worker %u of %u was ended by signal %d (%s)", rank + 1, n,
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
		else if (WIFEXITED(status) && WEXITSTATUS(status))
			err_fail(&err, ERR_IO, "worker %u of %u ended with status %d", rank + 1, n,
				 WEXITSTATUS(status));
		if (err.code)
			give_up(s, &err);
	}
}

static size_t round_up(size_t v, size_t to)
{
	return (v + to - 1) / to * to;
}

static int run_many(unsigned n, size_t n_floats, comm_work *work, void *ctx, struct err *err)
{
	size_t stride = round_up(n_floats + KERNEL_SLACK, LINE / sizeof(float));
	size_t head = round_up(sizeof(struct shared) + n * sizeof(double[COMM_MAX_DOUBLES]), LINE);
	size_t size = head + (n + 1) * stride * sizeof(float);
	pid_t self = getpid(), *pid = mem_calloc(n, sizeof *pid);
	struct worker w = { .stride = stride };
	unsigned started = 0;
	int rc = 0;

	if (!pid)
		return err_nomem(err, "%u workers", n);
	w.shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w.shared == MAP_FAILED) {
		free(pid);
		return err_nomem(err, "the gradients of %u workers: %s", n, strerror(errno));
	}
	w.shared->n_workers = n;
	w.shared->spins = (long)n <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS : 0;
	w.sum = (float *)((char *)w.shared + head);
	w.first_vector = w.sum + stride;
	fflush(NULL); /* otherwise each worker would print what is buffered now */
	for (; started < n && !rc; started++) {
		pid[started] = fork();
		if (pid[started] == 0)
			worker_main(&w, started, n_floats, self, work, ctx);
		if (pid[started] < 0) {
			rc = err_fail(err, ERR_IO, "cannot start worker %u of %u: %s", started + 1, n,
				      strerror(errno));
			give_up(w.shared, err);
			break;
		}
	}
	watch(w.shared, pid, started);
	if (!rc && atomic_load(&w.shared->failed)) {
		if (err)
			*err = w.shared->error;
		rc = -(int)w.shared->error.code;
	}
	munmap(w.shared, size);
	free(pid);
	return rc;
}

int allreduce_run(unsigned n_workers, size_t n_floats, comm_work *work, void *ctx, int *out_signal,
		  struct err *err)
{
	int rc = stop_begin(err);

	if (rc)
		return rc;
	if (n_workers < 1 || n_workers > COMM_MAX_WORKERS)
		rc = err_fail(err, ERR_ARG, "%u workers: from 1 to %u", n_workers, COMM_MAX_WORKERS);
	else if (n_workers == 1)
		rc = run_alone(n_floats, work, ctx, err);
	else
		rc = run_many(n_workers, n_floats, work, ctx, err);
	*out_signal = stop_signal();
	stop_end();
	return rc;
}
