/* workloads/tcp: workers that meet over TCP sum the same bits as those in shared memory, and stop instead of
 * hanging when one is killed, is stopped, or was started with other options. All of it on the loopback. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/support.h"
#include "tests/support/test.h"
#include "workloads/digits.h"
#include "workloads/tcp.h"
#include "workloads/train.h"

#define FLOATS 100003 /* more than a socket's buffer takes at once; no multiple of a number of workers */
#define MAX_WORKERS 5
#define PORT 20000

/* What the workers tell the test, in memory that they share with it. */
static struct seen {
	int rc[MAX_WORKERS];
	struct err err[MAX_WORKERS];
	unsigned rounds[MAX_WORKERS];
	float sum[FLOATS]; /* of rank 0 */
	double loss, accuracy;
} * seen;

static int share(void **state)
{
	(void)state;
	seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return seen == MAP_FAILED ? -1 : 0;
}

static int unshare_it(void **state)
{
	(void)state;
	munmap(seen, sizeof *seen);
	return 0;
}

TEST_GROUP(share, unshare_it);

/* An address of the loopback that no other test process has, so that its ports are free. */
static const char *address(void)
{
	static char text[INET_ADDRSTRLEN];
	unsigned pid = (unsigned)getpid();

	if (!*text) /* a child has that of the process that forked it */
		snprintf(text, sizeof text, "127.%u.%u.%u", pid / 62500 % 250 + 1, pid / 250 % 250 + 1,
			 pid % 250 + 1);
	return text;
}

static void put_peers(unsigned n, char *out, size_t size)
{
	size_t len = 0;

	for (unsigned k = 0; k < n; k++)
		len += (size_t)snprintf(out + len, size - len, "%s%s:%u", k ? "," : "", address(), PORT + k);
}

typedef int one_worker(unsigned rank, unsigned n, struct err *err);

/* Every worker in a process of its own; returns when all have ended. */
static void run_workers(unsigned n, one_worker *worker)
{
	pid_t pid[MAX_WORKERS];
	char peers[256];

	put_peers(n, peers, sizeof peers);
	memset(seen, 0, sizeof *seen);
	for (unsigned k = 0; k < n; k++) {
		pid[k] = fork();
		assert_true(pid[k] >= 0);
		if (pid[k] == 0) {
			unsigned told = 0;

			alarm(100); /* a hang would otherwise be the test of whoever waits for it */
			seen->rc[k] = tcp_setup(peers, k, &told, &seen->err[k]);
			if (!seen->rc[k])
				seen->rc[k] = told == n ? worker(k, n, &seen->err[k]) : -ERR_ARG;
			tcp_release();
			_exit(0);
		}
	}
	for (unsigned k = 0; k < n; k++)
		waitpid(pid[k], NULL, 0);
}

/* ---- sums ---- */

/* Numbers whose sum depends on the order of adding. */
static int sum_thirds(struct comm *c, void *ctx, struct err *err)
{
	const float *sum;
	double v[3] = { 0.1 * (c->rank + 1), 1.0, (double)c->rank };
	int rc = 0;

	(void)ctx;
	for (int round = 0; !rc && round < 20; round++) {
		for (size_t i = 0; i < FLOATS; i++)
			c->vector[i] = (float)(round + 1) / (float)(3 + 7 * c->rank + i % 1009);
		rc = comm_sum(c, &sum, err);
		if (!rc)
			rc = comm_sum_doubles(c, v, 3, err);
	}
	if (!rc && c->rank == 0)
		memcpy(seen->sum, sum, sizeof seen->sum);
	return rc;
}

static int sum_over_tcp(unsigned rank, unsigned n, struct err *err)
{
	int number;

	(void)rank;
	return tcp_run(n, FLOATS, sum_thirds, NULL, &number, err);
}

TEST(test_tcp_sums_have_the_bits_of_shared_memory)
{
	static float expected[FLOATS];

	for (unsigned n = 2; n <= MAX_WORKERS; n++) {
		struct err err = { 0 };
		int number;

		assert_int_equal(allreduce_run(n, FLOATS, sum_thirds, NULL, &number, &err), 0);
		memcpy(expected, seen->sum, sizeof expected);
		run_workers(n, sum_over_tcp);
		for (unsigned k = 0; k < n; k++)
			if (seen->rc[k])
				fail_msg("%u workers, %u: %s", n, k, seen->err[k].text);
		assert_memory_equal(seen->sum, expected, sizeof expected);
	}
}

/* ---- a worker that goes, and one that is told to stop ---- */

static int last_one_dies(struct comm *c, void *ctx, struct err *err)
{
	const float *sum;
	int rc = 0;

	(void)ctx;
	for (int round = 0; !rc && round < 50; round++) {
		if (round == 5 && c->rank == c->size - 1)
			raise(SIGKILL);
		rc = comm_sum(c, &sum, err);
		seen->rounds[c->rank]++;
	}
	return rc;
}

static int die_over_tcp(unsigned rank, unsigned n, struct err *err)
{
	int number;

	(void)rank;
	return tcp_run(n, FLOATS, last_one_dies, NULL, &number, err);
}

TEST(test_tcp_a_killed_worker_ends_the_others)
{
	for (unsigned n = 2; n <= 4; n++) {
		run_workers(n, die_over_tcp);
		for (unsigned k = 0; k + 1 < n; k++) {
			assert_int_equal(seen->rc[k], -ERR_IO);
			assert_non_null(strstr(seen->err[k].text, "has gone"));
			assert_true(seen->rounds[k] <= 6);
		}
	}
}

static int until_stopped(struct comm *c, void *ctx, struct err *err)
{
	const float *sum;
	int rc = 0;

	(void)ctx;
	for (int round = 0; !rc && !c->stop; round++) {
		if (round == 20 && c->rank == c->size - 1)
			raise(SIGTERM);
		rc = comm_sum(c, &sum, err);
		seen->rounds[c->rank]++;
	}
	return rc ? rc : c->stop == SIGTERM ? 0 : -ERR_ARG;
}

static int stop_over_tcp(unsigned rank, unsigned n, struct err *err)
{
	int number;

	(void)rank;
	return tcp_run(n, 1000, until_stopped, NULL, &number, err);
}

TEST(test_tcp_all_stop_in_the_same_round)
{
	for (unsigned n = 2; n <= 4; n++) {
		run_workers(n, stop_over_tcp);
		for (unsigned k = 0; k < n; k++) {
			assert_int_equal(seen->rc[k], 0);
			assert_int_equal(seen->rounds[k], 21);
		}
	}
}

/* ---- workers that do not belong together ---- */

static int other_network(unsigned rank, unsigned n, struct err *err)
{
	int number;

	return tcp_run(n, FLOATS + (rank == 1), sum_thirds, NULL, &number, err);
}

static int fewer_rounds(struct comm *c, void *ctx, struct err *err)
{
	double v[2] = { 0 };
	const float *sum;
	int rc = 0;

	(void)ctx;
	for (int round = 0; !rc && round < (c->rank ? 5 : 4); round++)
		rc = comm_sum(c, &sum, err);
	return rc ? rc : comm_sum_doubles(c, v, c->rank ? 2 : 1, err);
}

static int other_options(unsigned rank, unsigned n, struct err *err)
{
	int number;

	(void)rank;
	return tcp_run(n, FLOATS, fewer_rounds, NULL, &number, err);
}

TEST(test_tcp_other_networks_and_options_are_told)
{
	run_workers(2, other_network);
	for (unsigned k = 0; k < 2; k++) {
		assert_int_equal(seen->rc[k], -ERR_ARG);
		assert_non_null(strstr(seen->err[k].text, "another network"));
	}
	run_workers(2, other_options);
	assert_true(seen->rc[0] == -ERR_ARG || seen->rc[1] == -ERR_ARG); /* the other may see it go first */
	assert_true(strstr(seen->err[0].text, "same options") || strstr(seen->err[1].text, "same options"));
	assert_true(seen->rc[0] && seen->rc[1]);
}

/* Somebody else who finds the port: says nothing, or nonsense, and is not let in. */
static int stranger_first(unsigned rank, unsigned n, struct err *err)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	char junk[200];
	int number;

	if (rank == 1) {
		int fd = -1;

		inet_pton(AF_INET, address(), &to.sin_addr);
		memset(junk, 'x', sizeof junk);
		for (int tries = 0; tries < 2000; tries++) {
			fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
			if (!connect(fd, (struct sockaddr *)&to, sizeof to))
				break;
			close(fd);
			fd = -1;
			usleep(10000);
		}
		if (fd < 0 || send(fd, junk, sizeof junk, MSG_NOSIGNAL) < 0)
			return err_fail(err, ERR_IO, "the stranger did not get through");
		/* fd stays open until this process ends */
	}
	return tcp_run(n, FLOATS, sum_thirds, NULL, &number, err);
}

TEST(test_tcp_a_stranger_is_not_let_in)
{
	run_workers(2, stranger_first);
	for (unsigned k = 0; k < 2; k++)
		if (seen->rc[k])
			fail_msg("worker %u: %s", k, seen->err[k].text);
}

TEST(test_tcp_lists_that_make_no_sense)
{
	static const struct {
		const char *peers;
		unsigned rank;
		const char *why;
	} bad[] = {
		{ "a:1", 0, "from 2 to" },        { "", 0, "from 2 to" },
		{ "a:1,b:1", 2, "it is 0 to 1" }, { "a:1,b", 0, "no HOST:PORT" },
		{ "a:1,", 0, "no HOST:PORT" },    { ":1,b:2", 0, "no HOST:PORT" },
		{ "a:,b:2", 0, "no HOST:PORT" },  { "a:1,b:2,a:1", 0, "both at 'a:1'" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err err = { 0 };
		unsigned n;

		assert_int_equal(tcp_setup(bad[i].peers, bad[i].rank, &n, &err), -ERR_ARG);
		if (!strstr(err.text, bad[i].why))
			fail_msg("'%s': %s", bad[i].peers, err.text);
	}
}

/* ---- training ---- */

static struct data train_data, test_data;

static int train(unsigned n, comm_run *run, struct err *err)
{
	struct net net;
	struct train_params p = { .net = &net,
				  .train = &train_data,
				  .test = &test_data,
				  .batch = 48,
				  .epochs = 2,
				  .rate = 0.05,
				  .seed = 5,
				  .test_every = 1,
				  .workers = n };
	struct train_result result = { 0 };
	int rc = net_find("lenet5", &net, err);

	if (!rc)
		rc = train_run(&p, run, &result, err);
	if (!rc && result.here) {
		seen->loss = result.loss;
		seen->accuracy = result.accuracy;
	}
	return rc;
}

static int train_over_tcp(unsigned rank, unsigned n, struct err *err)
{
	(void)rank;
	return train(n, tcp_run, err);
}

TEST(test_tcp_training_learns_the_same_bits)
{
	struct err err = { 0 };
	double loss, accuracy;

	assert_int_equal(digits_write(support_temp_dir(), 700, 200, 3, &err), 0);
	assert_int_equal(data_open(support_temp_dir(), DATA_TRAIN, 0, false, &train_data, &err), 0);
	assert_int_equal(data_open(support_temp_dir(), DATA_TEST, 0, false, &test_data, &err), 0);
	assert_int_equal(train(3, allreduce_run, &err), 0);
	loss = seen->loss;
	accuracy = seen->accuracy;
	assert_true(loss > 0.0);
	run_workers(3, train_over_tcp);
	for (unsigned k = 0; k < 3; k++)
		if (seen->rc[k])
			fail_msg("worker %u: %s", k, seen->err[k].text);
	assert_memory_equal(&seen->loss, &loss, sizeof loss);
	assert_memory_equal(&seen->accuracy, &accuracy, sizeof accuracy);
	data_close(&train_data);
	data_close(&test_data);
}

/* ---- the workers of a step of Slurm ---- */

static void assert_peers(const char *nodes, const char *tasks, unsigned rank, const char *expected,
			 unsigned node)
{
	struct strbuf out = { 0 };
	struct err err = { 0 };
	unsigned at = 99;

	if (slurm_peers_list(nodes, tasks, 7000, rank, &out, &at, &err))
		fail_msg("%s", err.text);
	assert_string_equal(strbuf_text(&out), expected);
	assert_int_equal(at, node);
	strbuf_release(&out);
}

TEST(test_workers_of_a_step_of_slurm)
{
	static const char *const bad[][2] = { { "", "1" },           { "n[1-3", "1(x3)" },
					      { "n[3-1]", "1(x3)" }, { "n[1-3]", "1" },
					      { "n1", "" },          { "n1", "1(x" },
					      { "n1,,n2", "1(x2)" }, { "n[]", "1" },
					      { "n1", "300" },       { "n[1-999999]", "1(x999999)" },
					      { "n1", "-1" } };

	assert_peers("n1,n2", "1(x2)", 1, "n1:7000,n2:7001", 1);
	assert_peers("n[1-2]", "2,1", 1, "n1:7000,n1:7001,n2:7002", 0);
	assert_peers("n[08-10,12],gpu", "1(x5)", 4, "n08:7000,n09:7001,n10:7002,n12:7003,gpu:7004", 4);
	assert_peers("a[1-2]-ib,b3", "1(x3)", 2, "a1-ib:7000,a2-ib:7001,b3:7002", 2);
	assert_peers("127.0.0.[11-12]", "2(x2)", 2,
		     "127.0.0.11:7000,127.0.0.11:7001,127.0.0.12:7002,127.0.0.12:7003", 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct strbuf out = { 0 };
		unsigned at;

		if (!slurm_peers_list(bad[i][0], bad[i][1], 7000, 0, &out, &at, NULL))
			fail_msg("'%s' with tasks '%s' is '%s'", bad[i][0], bad[i][1], strbuf_text(&out));
		strbuf_release(&out);
	}
}
