/* workloads/allreduce and workloads/train: sums are exact and the same for all, a worker that dies stops the
 * job instead of hanging it, and the number of workers does not change what is learnt. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/support.h"
#include "tests/support/test.h"
#include "workloads/comm.h"
#include "workloads/digits.h"
#include "workloads/train.h"

#define FLOATS 1003 /* no multiple of a cache line or of a number of workers */
#define ROUNDS 200

static int sum_often(struct comm *c, void *ctx, struct err *err)
{
	(void)ctx;
	for (int round = 0; round < ROUNDS; round++) {
		const float *sum;
		double v[COMM_MAX_DOUBLES];
		int rc;

		for (size_t i = 0; i < FLOATS; i++)
			c->vector[i] =
				(float)((c->rank + 1) * (i % 97) + (size_t)round); /* whole: sums are exact */
		rc = comm_sum(c, &sum, err);
		for (size_t i = 0; !rc && i < FLOATS; i++)
			if (sum[i] !=
			    (float)(c->size * (c->size + 1) / 2 * (i % 97) + c->size * (size_t)round))
				return err_fail(err, ERR_NUMERIC, "round %d, place %zu: %g", round, i,
						(double)sum[i]);
		for (size_t i = 0; i < COMM_MAX_DOUBLES; i++)
			v[i] = 0.5 * (double)c->rank + (double)i;
		if (!rc)
			rc = comm_sum_doubles(c, v, COMM_MAX_DOUBLES, err);
		for (size_t i = 0; !rc && i < COMM_MAX_DOUBLES; i++)
			if (v[i] != 0.25 * c->size * (c->size - 1) + (double)(c->size * i))
				return err_fail(err, ERR_NUMERIC, "round %d, double %zu: %g", round, i, v[i]);
		if (rc)
			return rc;
	}
	return 0;
}

TEST(test_allreduce_sums_are_exact)
{
	static const unsigned workers[] = { 1, 2, 3, 4, 7 };

	for (size_t k = 0; k < sizeof workers / sizeof workers[0]; k++) {
		struct err err = { 0 };
		int number = -1;

		if (allreduce_run(workers[k], FLOATS, sum_often, NULL, &number, &err))
			fail_msg("%u workers: %s", workers[k], err.text);
		assert_int_equal(number, 0);
	}
}

static int die_in_round_five(struct comm *c, void *ctx, struct err *err)
{
	for (int round = 0; round < 50; round++) {
		const float *sum;
		int rc;

		if (round == 5 && c->rank == c->size - 1) {
			if (*(int *)ctx)
				raise(*(int *)ctx);
			return err_fail(err, ERR_FORMAT, "record 7 is torn");
		}
		rc = comm_sum(c, &sum, err);
		if (rc)
			return rc;
	}
	return 0;
}

TEST(test_allreduce_survives_a_worker_that_is_killed)
{
	int how = SIGKILL, number;

	alarm(20); /* a hang would otherwise be the test of whoever waits for it */
	for (unsigned n = 2; n <= 4; n++) {
		struct err err = { 0 };

		assert_int_equal(allreduce_run(n, FLOATS, die_in_round_five, &how, &number, &err), -ERR_IO);
		assert_non_null(strstr(err.text, "ended by signal 9"));
	}
	alarm(0);
}

TEST(test_allreduce_gives_the_first_error_of_a_worker)
{
	int how = 0, number;

	alarm(20);
	for (unsigned n = 1; n <= 4; n++) {
		struct err err = { 0 };

		assert_int_equal(allreduce_run(n, FLOATS, die_in_round_five, &how, &number, &err),
				 -ERR_FORMAT);
		assert_string_equal(err.text, "record 7 is torn");
	}
	alarm(0);
}

static int until_stopped(struct comm *c, void *ctx, struct err *err)
{
	const float *sum;
	int rc = 0, *rounds = ctx;

	for (int round = 0; !rc && !c->stop; round++) {
		if (round == 100 && c->rank == c->size - 1)
			raise(SIGTERM); /* any of them may be the one that is told */
		rc = comm_sum(c, &sum, err);
		c->vector[0] = 1.0f;
		__atomic_add_fetch(rounds + 1 + c->rank, 1, __ATOMIC_SEQ_CST);
	}
	return rc;
}

TEST(test_allreduce_workers_agree_when_to_stop)
{
	int *rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(rounds != MAP_FAILED);
	alarm(20);
	for (unsigned n = 1; n <= 4; n++) {
		struct err err = { 0 };
		int number;

		memset(rounds, 0, 4096);
		assert_int_equal(allreduce_run(n, FLOATS, until_stopped, rounds, &number, &err), 0);
		assert_int_equal(number, SIGTERM);
		assert_true(rounds[1] > 100);
		for (unsigned k = 1; k < n; k++)
			assert_int_equal(rounds[1 + k], rounds[1]);
	}
	alarm(0);
	munmap(rounds, 4096);
}

TEST(test_allreduce_refuses_no_workers_and_too_many)
{
	struct err err = { 0 };
	int number;

	assert_int_equal(allreduce_run(0, FLOATS, sum_often, NULL, &number, &err), -ERR_ARG);
	assert_int_equal(allreduce_run(COMM_MAX_WORKERS + 1, FLOATS, sum_often, NULL, &number, &err),
			 -ERR_ARG);
}

/* ---- training ---- */

#define EPOCHS 3

struct curve { /* in shared memory: worker 0 writes it, which may be another process */
	double loss[EPOCHS], accuracy[EPOCHS];
	size_t n, records;
};

static void on_epoch(void *ctx, const struct train_epoch *e)
{
	struct curve *c = ctx;

	c->loss[c->n] = e->loss;
	c->accuracy[c->n++] = e->accuracy;
}

static void on_records(void *ctx, size_t n)
{
	((struct curve *)ctx)->records += n;
}

static struct data train_data, test_data;
static struct curve *curve;

static int make_data(void **state)
{
	struct err err = { 0 };

	(void)state;
	curve = mmap(NULL, sizeof *curve, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (curve == MAP_FAILED || digits_write(support_temp_dir(), 700, 200, 3, &err) ||
	    data_open(support_temp_dir(), DATA_TRAIN, 0, false, &train_data, &err) ||
	    data_open(support_temp_dir(), DATA_TEST, 0, false, &test_data, &err))
		return -1;
	return 0;
}

static int drop_data(void **state)
{
	(void)state;
	data_close(&train_data);
	data_close(&test_data);
	munmap(curve, sizeof *curve);
	return 0;
}

TEST_GROUP(make_data, drop_data);

static int train(const char *network, unsigned workers, struct curve *out, struct train_result *result,
		 struct err *err)
{
	struct net net;
	struct train_params p = { .net = &net,
				  .train = &train_data,
				  .test = &test_data,
				  .batch = 48, /* 700 is 14 batches and a part of 28 */
				  .epochs = EPOCHS,
				  .rate = 0.05,
				  .decay = 0.001,
				  .seed = 5,
				  .test_every = 2,
				  .workers = workers,
				  .on_epoch = on_epoch,
				  .on_records = on_records,
				  .ctx = curve };
	int rc = net_find(network, &net, err);

	memset(curve, 0, sizeof *curve);
	if (!rc)
		rc = train_run(&p, allreduce_run, result, err);
	*out = *curve;
	return rc;
}

TEST(test_train_any_number_of_workers_learns_the_same)
{
	static const char *const network[] = { "simplenet", "lenet5" };

	for (size_t k = 0; k < 2; k++) {
		struct train_result result;
		struct curve one, many;
		struct err err = { 0 };

		assert_int_equal(train(network[k], 1, &one, &result, &err), 0);
		assert_int_equal(one.n, EPOCHS);
		assert_int_equal(one.records, EPOCHS * 700);
		assert_int_equal(result.steps, EPOCHS * 15);
		assert_true(isnan(one.accuracy[0]) && !isnan(one.accuracy[1]) && !isnan(one.accuracy[2]));
		assert_true(one.loss[2] < one.loss[1] && one.loss[1] < one.loss[0]);
		for (unsigned workers = 2; workers <= 5; workers++) {
			assert_int_equal(train(network[k], workers, &many, &result, &err), 0);
			/* sums in another order: the last digits of a float, carried through 45 steps */
			for (size_t e = 0; e < EPOCHS; e++)
				assert_float_equal(many.loss[e], one.loss[e], 1e-4);
			assert_float_equal(result.accuracy, one.accuracy[2], 0.011); /* two of 200 */
			assert_true(result.here && result.max_rss_mb > 1.0 && result.epochs == EPOCHS);
		}
	}
}

TEST(test_train_same_seed_gives_the_same_bits)
{
	for (unsigned workers = 1; workers <= 3; workers++) {
		struct train_result result;
		struct curve a, b;
		struct err err = { 0 };

		assert_int_equal(train("lenet5", workers, &a, &result, &err), 0);
		assert_int_equal(train("lenet5", workers, &b, &result, &err), 0);
		assert_memory_equal(a.loss, b.loss, sizeof a.loss);
		assert_memory_equal(a.accuracy + 1, b.accuracy + 1, sizeof a.accuracy - sizeof a.accuracy[0]);
	}
}

TEST(test_train_refuses_what_cannot_be)
{
	struct net net;
	struct train_params p = { .net = &net,
				  .train = &train_data,
				  .test = &test_data,
				  .batch = 701,
				  .epochs = 1,
				  .rate = 0.1,
				  .workers = 1 };
	struct train_result result;
	struct err err = { 0 };

	assert_int_equal(net_find("simplenet", &net, &err), 0);
	assert_int_equal(train_run(&p, allreduce_run, &result, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "larger than the data"));
	p.batch = 2;
	p.workers = 3;
	assert_int_equal(train_run(&p, allreduce_run, &result, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "cannot share"));
	p.workers = 2;
	p.rate = NAN;
	assert_int_equal(train_run(&p, allreduce_run, &result, &err), -ERR_ARG);
	p.rate = 1e30;
	assert_int_equal(train_run(&p, allreduce_run, &result, &err), -ERR_NUMERIC);
	assert_non_null(strstr(err.text, "smaller learning rate"));
}
