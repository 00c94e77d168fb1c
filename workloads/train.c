/* The training loop of one worker. See train.h. */
#define _GNU_SOURCE
#include "workloads/train.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"
#include "workloads/kernel.h"
#include "workloads/sgd.h"

#define TEST_AT_ONCE 256 /* records; more do not make it faster */
#define ORDER_STREAM ((uint64_t)1 << 32) /* of random numbers, plus the epoch; net.c has the first few */

static double max_rss_mb(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? 0.0 : (double)usage.ru_maxrss / 1024.0;
}

static double cpu_s(void)
{
	return (double)clock_thread_ns() / 1e9;
}

/* What a worker has in its hands. */
struct worker {
	const struct train_params *p;
	struct comm *comm;
	struct net_room room;
	float *param;
	uint8_t *label;
	uint32_t *order; /* of the records in this epoch, the same for all workers */
	uint64_t steps;
	double loss; /* sum over its records of this epoch */
	size_t records; /* of all workers, this epoch */
	struct train_phases phases; /* this epoch, this worker */
	double begun_cpu_s;
};

/* Behind allreduce_run's ctx: shared, because worker 0 is another process than the caller. */
struct job {
	const struct train_params *p;
	double start_s;
	pid_t worker; /* the process of rank 0 */
	double worker_cpu_s; /* a mean over the workers, from their start to the last epoch's end */
	struct train_result result;
};

static int worker_init(struct worker *w, const struct train_params *p, struct comm *c, struct err *err)
{
	size_t share = (p->batch + c->size - 1) / c->size;
	size_t max = share > TEST_AT_ONCE ? share : TEST_AT_ONCE;

	*w = (struct worker){ .p = p, .comm = c, .begun_cpu_s = cpu_s() };
	w->param = mem_calloc(p->net->n_params + KERNEL_SLACK, sizeof *w->param);
	w->label = mem_array(max, 1);
	w->order = mem_array(p->train->n, sizeof *w->order);
	if (!w->param || !w->label || !w->order)
		return err_nomem(err, "a worker");
	net_first_params(p->net, p->seed, w->param);
	return net_room_init(&w->room, p->net, max, err);
}

static void worker_release(struct worker *w)
{
	net_room_release(&w->room);
	free(w->param);
	free(w->label);
	free(w->order);
}

/* From the order of the file, not from the last epoch's: an epoch's order depends on its number alone. */
static void shuffle(struct worker *w, size_t epoch)
{
	struct rng rng = rng_stream(w->p->seed, ORDER_STREAM + epoch);

	for (size_t i = 0; i < w->p->train->n; i++)
		w->order[i] = (uint32_t)i;
	rng_shuffle(&rng, w->order, w->p->train->n);
}

/* Workers that meet over a network wait for it after each step, whatever the batch. Here that wait is slept,
 * by the size of the gradients and the rate of the link, so that one machine shows the cost of a step. */
static void wait_for_link(const struct train_params *p)
{
	double s = p->link_mbit > 0.0 ? 2.0 * 32.0 * (double)p->net->n_params / (1e6 * p->link_mbit) : 0.0;
	struct timespec pause = { .tv_sec = (time_t)s, .tv_nsec = (long)(1e9 * (s - floor(s))) };

	if (s > 0.0)
		nanosleep(&pause, NULL);
}

/* Records first to first + n of the order, of which each worker takes its part. */
static int step(struct worker *w, size_t first, size_t n, struct err *err)
{
	const struct train_params *p = w->p;
	size_t from = n * w->comm->rank / w->comm->size, to = n * (w->comm->rank + 1) / w->comm->size;
	double t0 = clock_monotonic_s(), t1, t2, t3;
	struct net_score score;
	const float *sum;
	int rc = data_fetch(p->train, w->order + first + from, 0, to - from, w->room.input, w->label, err);

	if (rc)
		return rc;
	t1 = clock_monotonic_s();
	/* Scaled by the whole batch: the sum over the workers is then the mean over the batch, whatever the
	 * parts. */
	net_train(p->net, w->param, &w->room, w->label, to - from, 1.0f / (float)n, w->comm->vector, &score);
	t2 = clock_monotonic_s();
	rc = comm_sum(w->comm, &sum, err);
	if (rc)
		return rc;
	wait_for_link(p);
	t3 = clock_monotonic_s();
	sgd_step(w->param, sum, p->net->n_params, (float)sgd_rate(p->rate, p->decay, w->steps++));
	w->loss += score.loss;
	w->records += n;
	w->phases.fetch_s += t1 - t0;
	w->phases.sync_s += t3 - t2;
	w->phases.compute_s += t2 - t1 + (clock_monotonic_s() - t3);
	if (w->comm->rank == 0 && p->on_records)
		p->on_records(p->ctx, n);
	return 0;
}

static int test(struct worker *w, double *out_correct, struct err *err)
{
	const struct data *d = w->p->test;
	size_t from = d->n * w->comm->rank / w->comm->size, to = d->n * (w->comm->rank + 1) / w->comm->size;
	double start_s = clock_monotonic_s(), start_cpu_s = cpu_s();

	*out_correct = 0.0;
	for (size_t n; from < to; from += n) {
		struct net_score score;
		int rc;

		n = to - from < TEST_AT_ONCE ? to - from : TEST_AT_ONCE;
		rc = data_fetch(d, NULL, from, n, w->room.input, w->label, err);
		if (rc)
			return rc;
		net_test(w->p->net, w->param, &w->room, w->label, n, &score);
		*out_correct += (double)score.correct;
	}
	w->phases.test_s = clock_monotonic_s() - start_s;
	w->phases.test_cpu_s = cpu_s() - start_cpu_s;
	return 0;
}

/* Adds up what the workers counted since the last call. Every worker gets the same numbers. */
static int gather(struct worker *w, bool tested, double correct, struct train_epoch *out, double *out_cpu_s,
		  struct err *err)
{
	double v[] = { w->loss,
		       correct,
		       max_rss_mb(),
		       w->phases.fetch_s,
		       w->phases.compute_s,
		       w->phases.sync_s,
		       w->phases.test_s,
		       w->phases.cpu_s,
		       w->phases.test_cpu_s,
		       cpu_s() - w->begun_cpu_s };
	double n = w->comm->size;
	int rc = comm_sum_doubles(w->comm, v, sizeof v / sizeof v[0], err);

	if (rc)
		return rc;
	out->loss = w->records ? v[0] / (double)w->records : NAN;
	out->accuracy = tested ? v[1] / (double)w->p->test->n : NAN;
	out->max_rss_mb = v[2];
	out->phases = (struct train_phases){ v[3] / n, v[4] / n, v[5] / n, v[6] / n, v[7] / n, v[8] / n };
	*out_cpu_s = v[9] / n;
	w->loss = 0.0;
	w->records = 0;
	w->phases = (struct train_phases){ 0 };
	return 0;
}

static int one_epoch(struct worker *w, size_t epoch, struct train_epoch *out, double *out_cpu_s,
		     struct err *err)
{
	const struct train_params *p = w->p;
	bool tested;
	double correct = 0.0, start_cpu_s;
	int rc = 0;

	shuffle(w, epoch);
	start_cpu_s = cpu_s();
	for (size_t first = 0, n; !rc && first < p->train->n && !w->comm->stop; first += n) {
		n = p->train->n - first < p->batch ? p->train->n - first : p->batch;
		rc = step(w, first, n, err);
	}
	w->phases.cpu_s = cpu_s() - start_cpu_s;
	tested = w->comm->stop || epoch == p->epochs || (p->test_every && epoch % p->test_every == 0);
	if (!rc && tested)
		rc = test(w, &correct, err);
	out->epoch = epoch;
	return rc ? rc : gather(w, tested, correct, out, out_cpu_s, err);
}

static void add_phases(struct train_phases *to, const struct train_phases *v)
{
	to->fetch_s += v->fetch_s;
	to->compute_s += v->compute_s;
	to->sync_s += v->sync_s;
	to->test_s += v->test_s;
	to->cpu_s += v->cpu_s;
	to->test_cpu_s += v->test_cpu_s;
}

static int work(struct comm *c, void *ctx, struct err *err)
{
	struct job *job = ctx;
	const struct train_params *p = job->p;
	struct train_result r = { .accuracy = NAN, .loss = NAN, .here = true };
	struct train_epoch e = { 0 };
	double worker_cpu_s = 0.0;
	struct worker w;
	int rc = worker_init(&w, p, c, err);

	for (size_t epoch = 1; !rc && epoch <= p->epochs && !c->stop; epoch++) {
		bool whole;

		rc = one_epoch(&w, epoch, &e, &worker_cpu_s, err);
		if (rc)
			break;
		/* The last step of an epoch may be the one that agreed to stop: then the epoch is whole. */
		whole = w.steps == epoch * ((p->train->n + p->batch - 1) / p->batch);
		e.elapsed_s = clock_monotonic_s() - job->start_s;
		if (!isfinite(e.loss))
			rc = err_fail(
				err, ERR_NUMERIC,
				"the loss is no longer a number in epoch %zu: try a smaller learning rate "
				"than %g",
				epoch, p->rate);
		r.epochs += whole;
		r.steps = w.steps;
		r.loss = e.loss;
		r.accuracy = e.accuracy;
		r.max_rss_mb = e.max_rss_mb;
		add_phases(&r.phases, &e.phases);
		if (!rc && whole && c->rank == 0 && p->on_epoch)
			p->on_epoch(p->ctx, &e);
	}
	r.stopped_by = r.epochs < p->epochs ? c->stop : 0;
	r.elapsed_s = clock_monotonic_s() - job->start_s;
	if (!rc && c->rank == 0) {
		job->result = r;
		job->worker = getpid();
		job->worker_cpu_s = worker_cpu_s;
	}
	worker_release(&w);
	return rc;
}

int train_run(const struct train_params *p, comm_run *run, struct train_result *out, struct err *err)
{
	double start_cpu_s = cpu_s();
	struct job *job;
	int rc, number;

	if (p->batch < 1 || p->epochs < 1 || !(p->rate > 0.0) || !(p->decay >= 0.0))
		return err_fail(err, ERR_ARG,
				"batch %zu, %zu epochs, rate %g, decay %g: need 1, 1, above 0, 0 at least",
				p->batch, p->epochs, p->rate, p->decay);
	if (p->batch > p->train->n)
		return err_fail(err, ERR_ARG, "a batch of %zu is larger than the data, which has %zu records",
				p->batch, p->train->n);
	if (p->workers > p->batch)
		return err_fail(err, ERR_ARG,
				"%u workers cannot share a batch of %zu: one record each at least",
				p->workers, p->batch);
	job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job == MAP_FAILED)
		return err_fail(err, ERR_NOMEM, "out of memory to share: %s", strerror(errno));
	job->p = p;
	job->start_s = clock_monotonic_s();
	rc = run(p->workers, p->net->n_params, work, job, &number, err);
	if (!rc) {
		*out = job->result;
		out->start_cpu_s = start_cpu_s;
		out->job_cpu_s = cpu_s() - start_cpu_s + (job->worker == getpid() ? 0.0 : job->worker_cpu_s);
	}
	munmap(job, sizeof *job);
	return rc;
}
