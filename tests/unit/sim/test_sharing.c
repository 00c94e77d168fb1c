/* Jobs that share a machine: ends, loads, drift, copies, and the queueing formulas they must agree with. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "common/rng.h"
#include "queueing/mm1.h"
#include "tests/support/ps.h"
#include "sim/world/sharing.h"
#include "tests/support/des.h"
#include "tests/support/test.h"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* extra[0] seconds alone, on `owner` cores that all processes share alike. */
static double shared_law(const void *owner, const struct sharing_job *j, double processes)
{
	double cores = *(const double *)owner;

	return j->extra[0] * (processes > cores ? processes / cores : 1.0);
}

static double constant_law(const void *owner, const struct sharing_job *j, double processes)
{
	(void)owner;
	(void)processes;
	return j->extra[0];
}

static struct sharing *machine(sharing_law *law, const double *cores, double drift, double drift_at_s)
{
	struct sharing_params p = {
		.law = law, .owner = cores, .cores = *cores, .drift = drift, .drift_at_s = drift_at_s
	};
	struct sharing *s = NULL;

	assert_int_equal(sharing_new(&p, &s, NULL), 0);
	return s;
}

static struct sharing_job job(uint64_t id, uint32_t cpus, double alone_s)
{
	struct sharing_job j = { .id = id, .cpus = cpus, .slow = 1.0, .until = 1.0, .extra = { alone_s } };

	return j;
}

static void start(struct sharing *s, double now_s, uint64_t id, uint32_t cpus, double alone_s)
{
	struct sharing_job j = job(id, cpus, alone_s);

	assert_int_equal(sharing_start(s, now_s, &j, NULL), 0);
}

static struct sharing_end ends(struct sharing *s, uint64_t id, double at_s)
{
	struct sharing_end e;

	close_to(sharing_next_s(s), at_s, 1e-12);
	assert_true(sharing_end(s, &e));
	assert_int_equal(e.job.id, id);
	close_to(e.at_s, at_s, 1e-12);
	return e;
}

/* ---- known answers ---- */

/* A job that is stopped leaves at that moment, and the others go on faster from there. */
TEST(test_a_job_is_stopped)
{
	const double cores = 1.0;
	struct sharing *s = machine(shared_law, &cores, 0.0, 0.0);
	struct sharing_end e;

	start(s, 0.0, 1, 1, 10.0);
	start(s, 0.0, 2, 1, 10.0);
	assert_false(sharing_stop(s, 4.0, 3, &e));
	assert_true(sharing_stop(s, 4.0, 1, &e));
	assert_int_equal(e.job.id, 1);
	close_to(e.at_s, 4.0, 1e-12);
	close_to(e.processes, 2.0, 1e-12);
	close_to(e.done, 0.2, 1e-12);
	assert_false(sharing_stop(s, 4.0, 1, &e));
	e = ends(s, 2, 12.0); /* 2 of its 10 seconds were done by then */
	assert_true(e.done == 1.0);
	assert_true(sharing_next_s(s) == INFINITY);
	sharing_free(s);
}

TEST(test_three_jobs_worked_by_hand)
{
	const double cores = 2.0;
	struct sharing *s = machine(shared_law, &cores, 0.0, 0.0);
	struct sharing_end e;

	/* up to 2 s A runs alone; then P = 3 and all go at 2/3; from 3 s on P = 4 and all go at 1/2: C's 4 s
	 * end at 11. B has 4/3 s left and goes at 2/3: 13. A has 2 s left, alone: 15. */
	start(s, 0.0, 1, 1, 10.0);
	start(s, 2.0, 2, 2, 6.0);
	start(s, 3.0, 3, 1, 4.0);
	e = ends(s, 3, 11.0);
	close_to(e.processes, 4.0, 1e-12);
	close_to(e.njobs, 3.0, 1e-12);
	e = ends(s, 2, 13.0);
	close_to(e.processes, 41.0 / 11.0, 1e-12);
	close_to(e.njobs, 30.0 / 11.0, 1e-12);
	e = ends(s, 1, 15.0);
	close_to(e.processes, 45.0 / 15.0, 1e-12);
	close_to(e.njobs, 34.0 / 15.0, 1e-12);
	close_to(sharing_busy_s(s), 10.0 + 2.0 * 6.0 + 4.0, 1e-12);
	assert_int_equal(sharing_events(s), 6);
	assert_false(sharing_end(s, &e));
	assert_true(sharing_next_s(s) == INFINITY);
	sharing_free(s);
}

TEST(test_a_slow_job_takes_longer_and_a_failing_one_ends_early)
{
	const double cores = 4.0;
	struct sharing *s = machine(shared_law, &cores, 0.0, 0.0);
	struct sharing_job slow = job(1, 1, 2.0), fails = job(2, 1, 2.0), at_once = job(3, 1, 2.0);

	slow.slow = 1.7;
	fails.until = 0.35;
	at_once.until = 0.0;
	assert_int_equal(sharing_start(s, 5.0, &slow, NULL), 0);
	assert_int_equal(sharing_start(s, 5.0, &fails, NULL), 0);
	assert_int_equal(sharing_start(s, 5.0, &at_once, NULL), 0);
	ends(s, 3, 5.0);
	ends(s, 2, 5.7);
	ends(s, 1, 8.4);
	sharing_free(s);
}

TEST(test_drift_stretches_what_is_left)
{
	const double cores = 2.0;
	struct sharing *s = machine(shared_law, &cores, 0.5, 4.0);

	start(s, 0.0, 1, 1, 10.0); /* 4 s before, 6 s of work after */
	close_to(sharing_next_s(s), 4.0 + 6.0 * 1.5, 1e-12); /* seen before the drift has come */
	start(s, 2.0, 2, 1, 1.5); /* ends before it */
	ends(s, 2, 3.5);
	ends(s, 1, 13.0);
	start(s, 20.0, 3, 1, 2.0); /* starts after it */
	ends(s, 3, 23.0);
	sharing_free(s);
	s = machine(shared_law, &cores, 0.5, 4.0);
	start(s, 0.0, 1, 1, 10.0);
	start(s, 6.0, 2, 1,
	      4.0); /* the drift is passed on the way to a start: 2 s at 2/3 for the first by then */
	ends(s, 2, 12.0);
	ends(s, 1, 13.0);
	sharing_free(s);
	s = machine(shared_law, &cores, -0.25, 0.0); /* faster from the beginning on */
	start(s, 0.0, 1, 4, 10.0);
	ends(s, 1, 15.0);
	sharing_free(s);
}

TEST(test_jobs_that_end_together_come_by_id)
{
	const double cores = 2.0;
	struct sharing *s = machine(shared_law, &cores, 0.0, 0.0);
	struct sharing_end e[3];

	start(s, 0.0, 7, 1, 2.37);
	start(s, 0.0, 3, 1, 2.37);
	start(s, 0.0, 5, 1, 2.37);
	for (int i = 0; i < 3; i++)
		assert_true(sharing_end(s, &e[i]));
	assert_int_equal(e[0].job.id, 3);
	assert_int_equal(e[1].job.id, 5);
	assert_int_equal(e[2].job.id, 7);
	assert_true(e[0].at_s == e[1].at_s && e[1].at_s == e[2].at_s);
	sharing_free(s);
	/* also those that end in the same nanosecond, and only those */
	s = machine(constant_law, &cores, 0.0, 0.0);
	start(s, 0.0, 9, 1, 1.0000000001);
	start(s, 0.0, 4, 1, 1.0000000005);
	start(s, 0.0, 1, 1, 1.0000000015);
	for (int i = 0; i < 3; i++)
		assert_true(sharing_end(s, &e[i]));
	assert_int_equal(e[0].job.id, 4);
	assert_int_equal(e[1].job.id, 9);
	assert_int_equal(e[2].job.id, 1);
	for (int i = 0; i < 2; i++)
		assert_true(ceil(e[i].at_s * 1e9) == 1000000001.0);
	sharing_free(s);
}

TEST(test_a_start_within_the_nanosecond_of_an_end_loses_nothing)
{
	const double cores = 1.0;
	struct sharing *s = machine(constant_law, &cores, 0.0, 0.0);
	struct sharing_end e;

	start(s, 0.0, 1, 1, 1.0000000001);
	start(s, 0.0, 2, 1, 1.0000000002);
	assert_true(sharing_end(s, &e));
	start(s, 1.000000001, 3, 1, 1.0); /* job 2 is due, and has not been taken yet */
	assert_true(sharing_end(s, &e));
	assert_int_equal(e.job.id, 2);
	assert_true(e.at_s == 1.000000001);
	start(s, 0.5, 4, 1, 3.0); /* the past is over: now */
	ends(s, 3, 2.000000001);
	ends(s, 4, 4.000000001);
	sharing_free(s);
}

TEST(test_bad_values_are_refused)
{
	const double cores = 1.0;
	struct sharing *s = machine(shared_law, &cores, 0.0, 0.0);
	struct sharing_params bad[] = {
		{ .law = NULL, .cores = 1.0 },
		{ .law = shared_law, .cores = 0.0 },
		{ .law = shared_law, .cores = 1.0, .drift = -1.0 },
		{ .law = shared_law, .cores = 1.0, .drift = 0.2, .drift_at_s = NAN },
	};
	struct sharing_job j[5];
	struct err err = { 0 };
	struct sharing *none;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(sharing_new(&bad[i], &none, &err), -ERR_ARG);
	for (int i = 0; i < 5; i++)
		j[i] = job(17, 1, 1.0);
	j[0].cpus = 0;
	j[1].slow = 0.0;
	j[2].until = 1.1;
	j[3].slow = NAN;
	for (int i = 0; i < 5; i++)
		assert_int_equal(sharing_start(s, i == 4 ? NAN : 0.0, &j[i], &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "job 17"));
	assert_true(sharing_next_s(s) == INFINITY);
	sharing_free(s);
	sharing_free(NULL);
}

/* ---- a queue ---- */

struct queue_result {
	double mean, half; /* of the response times, 99 %, by 30 batch means */
	double responses_s, jobs_s; /* their sum, and the integral of the jobs there: equal by Little's law */
	double work_s, busy_s;
	double small, large; /* response by size, of jobs below half and above twice the mean size */
	double seconds; /* of cpu time: others share the machine */
	uint64_t events;
};

enum { BATCHES = 30 };

/* M/M/1 with processor sharing, until the last of n jobs is gone. */
static struct queue_result simulate(size_t n, double load, uint64_t seed)
{
	const double cores = 1.0;
	struct sharing *s = machine(shared_law, &cores, 0.0, 0.0);
	struct rng gap = rng_stream(seed, 1), size = rng_stream(seed, 2);
	struct queue_result r = { 0 };
	double batch[BATCHES] = { 0 }, arrival = 0.0, last = 0.0, square = 0.0;
	double response[2] = { 0 }, work[2] = { 0 };
	size_t started = 0, ended = 0, warm = n / 11, each = (n - warm) / BATCHES, in = 0;
	struct timespec from, to;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	while (ended < n) {
		double next = sharing_next_s(s);
		struct sharing_end e;

		if (started < n && arrival <= next) {
			struct sharing_job j = job(started, 1, rng_exponential(&size));

			j.extra[1] = arrival;
			r.jobs_s += (double)in * (arrival - last);
			last = arrival;
			assert_int_equal(sharing_start(s, arrival, &j, NULL), 0);
			r.work_s += j.extra[0];
			in++;
			started++;
			arrival += rng_exponential(&gap) / load;
			continue;
		}
		sharing_end(s, &e);
		r.jobs_s += (double)in * (e.at_s - last);
		last = e.at_s;
		in--;
		r.responses_s += e.at_s - e.job.extra[1];
		if (e.job.extra[0] < 0.5 || e.job.extra[0] > 2.0) {
			response[e.job.extra[0] > 2.0] += e.at_s - e.job.extra[1];
			work[e.job.extra[0] > 2.0] += e.job.extra[0];
		}
		if (e.job.id >= warm && (e.job.id - warm) / each < BATCHES)
			batch[(e.job.id - warm) / each] += (e.at_s - e.job.extra[1]) / (double)each;
		ended++;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	r.seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
	r.busy_s = sharing_busy_s(s);
	r.events = sharing_events(s);
	r.small = response[0] / work[0];
	r.large = response[1] / work[1];
	for (int i = 0; i < BATCHES; i++)
		r.mean += batch[i] / BATCHES;
	for (int i = 0; i < BATCHES; i++)
		square += (batch[i] - r.mean) * (batch[i] - r.mean);
	r.half = 2.756 * sqrt(square / (BATCHES - 1) / BATCHES); /* Student's t, 29 degrees, 99 % */
	sharing_free(s);
	return r;
}

TEST(test_processor_sharing_has_the_response_of_the_closed_form)
{
	size_t n = 1000000 / des_thrift();

	for (int i = 0; i < 3; i++) {
		double load = (const double[]){ 0.3, 0.6, 0.8 }[i], mm1, ps;
		struct queue_result r = simulate(n, load, 20 + (uint64_t)i);

		assert_int_equal(mm1_mean_response_s(load, 1.0, &mm1, NULL), 0);
		assert_int_equal(ps_mean_response_s(load, 1.0, 1, 1, &ps, NULL), 0);
		close_to(mm1, ps, 1e-9);
		printf("load %.1f: mean response %.4f +- %.4f s, closed form %.4f s; %.1f million events/s\n",
		       load, r.mean, r.half, ps, 1e-6 * (double)r.events / r.seconds);
		if (!(fabs(r.mean - ps) <= r.half))
			fail_msg("load %g: simulated %g +- %g, closed form %g", load, r.mean, r.half, ps);
		/* a job's mean response is proportional to its size; fewer jobs make the interval twice as
		 * wide */
		assert_int_equal(ps_response_of_size_s(load, 1.0, 1, 1, 1.0, &ps, NULL), 0);
		if (!(fabs(r.small / ps - 1.0) <= 2.0 * r.half / r.mean &&
		      fabs(r.large / ps - 1.0) <= 2.0 * r.half / r.mean))
			fail_msg("load %g: %g and %g s a second of work, closed form %g", load, r.small,
				 r.large, ps);
	}
}

TEST(test_littles_law_and_conservation_of_work)
{
	struct queue_result r = simulate(20000, 0.9, 5);

	close_to(r.jobs_s, r.responses_s, 1e-9);
	close_to(r.busy_s, r.work_s, 1e-9);
}

TEST(test_a_million_jobs_with_twenty_running)
{
	const double cores = 16.0;
	struct sharing *s = machine(shared_law, &cores, 0.2, 1e4);
	struct rng draw = rng_stream(3, 3);
	size_t n = 1000000 / des_thrift();
	struct timespec from, to;
	struct sharing_end e;
	double now = 0.0, seconds;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (size_t i = 0; i < n; i++) {
		if (i >= 20) {
			assert_true(sharing_end(s, &e));
			assert_true(e.at_s >= now);
			now = e.at_s;
		}
		start(s, now, i, 1 + rng_below(&draw, 4), rng_exponential(&draw));
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
	printf("%zu jobs, 20 at a time: %.2f s\n", n, seconds);
	sharing_free(s);
}

/* ---- copies ---- */

/* *running: the jobs that are there. */
static void drive(struct sharing *s, uint64_t seed, size_t steps, size_t *running, double *now,
		  struct sharing_end *out)
{
	struct rng draw = rng_stream(seed, 0);

	for (size_t i = 0; i < steps; i++) {
		memset(&out[i], 0, sizeof out[i]);
		if (*running > 12 || (*running && rng_uniform(&draw) < 0.4)) {
			assert_true(sharing_end(s, &out[i]));
			--*running;
			*now = out[i].at_s;
		} else {
			double next = sharing_next_s(s), gap = rng_exponential(&draw);

			*now = *now + gap < next ? *now + gap : next;
			start(s, *now, 1000 * seed + i, 1 + rng_below(&draw, 8), rng_exponential(&draw));
			++*running;
		}
	}
}

TEST(test_a_copy_goes_on_as_the_original_does)
{
	enum { STEPS = 300 };
	static struct sharing_end a[STEPS], b[STEPS];
	const double cores = 4.0;
	struct sharing *s = machine(shared_law, &cores, 0.3, 60.0),
		       *copy = machine(shared_law, &cores, 0.3, 60.0);
	double now_a = 0.0, now_b;
	size_t in_a = 0, in_b;

	drive(s, 1, 100, &in_a, &now_a, a);
	start(s, now_a, 99999, 3, 0.7); /* not rated yet when it is copied */
	in_b = ++in_a;
	now_b = now_a;
	start(copy, 0.0, 5, 1, 1.0); /* forgotten */
	assert_int_equal(sharing_copy(copy, s, NULL), 0);
	drive(s, 2, STEPS, &in_a, &now_a, a);
	drive(copy, 2, STEPS, &in_b, &now_b, b);
	assert_memory_equal(a, b, sizeof a);
	assert_true(sharing_busy_s(s) == sharing_busy_s(copy));
	assert_int_equal(sharing_events(s), sharing_events(copy));
	assert_int_equal(sharing_copy(s, s, NULL), 0);
	sharing_free(s);
	sharing_free(copy);
}

TEST(test_without_memory_nothing_changes)
{
	const double cores = 2.0;
	struct sharing_params p = { .law = shared_law, .owner = &cores, .cores = cores };
	struct sharing *s = NULL, *copy;
	struct err err;

	mem_fail_at(1, false);
	assert_int_equal(sharing_new(&p, &s, &err), -ERR_NOMEM);
	mem_fail_at(0, false);
	for (unsigned long k = 1; k <= 4; k++) {
		struct sharing_job j = job(1, 1, 2.0);

		s = machine(shared_law, &cores, 0.0, 0.0);
		copy = machine(shared_law, &cores, 0.0, 0.0);
		mem_fail_at(k, false);
		assert_int_equal(sharing_start(s, 0.0, &j, &err), -ERR_NOMEM);
		mem_fail_at(0, false);
		assert_true(sharing_next_s(s) == INFINITY);
		start(s, 0.0, 1, 1, 2.0);
		mem_fail_at(k, false);
		assert_int_equal(sharing_copy(copy, s, &err), -ERR_NOMEM);
		mem_fail_at(0, false);
		assert_true(sharing_next_s(copy) == INFINITY);
		ends(s, 1, 2.0);
		sharing_free(s);
		sharing_free(copy);
	}
}
