/* scheduler/daemon/store: loop, writer and reader at the same time (under ThreadSanitizer too), and what it
 * costs the loop. */
#define _GNU_SOURCE
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

static struct {
	int answers, errors, empty;
} seen;

static void count_answer(void *owner, uint64_t token, const struct strbuf *text, const struct err *err)
{
	(void)owner;
	(void)token;
	seen.answers++;
	seen.errors += err->code != ERR_NONE;
	seen.empty += text->len == 0;
}

TEST(test_collecting_writing_and_reading_go_on_at_once)
{
	const char *dir = fresh_dir();
	struct store *s = open_store(dir);
	struct err err = { 0 };
	int asked = 0;

	for (uint64_t i = 1; i <= 3000; i++) {
		struct job_record j = plain_job(i);
		struct store_stats stats;

		assert_int_equal(store_add_job(s, &j, &err), 0);
		assert_int_equal(store_add_decision(s, i, NOON, "arrival", "{\"candidates\":[1,2,3]}", &err),
				 0);
		assert_int_equal(
			add_seen(s, i, NOON, "digits", 1.5, NAN, OBSERVED({ "cpus", NULL, 2 }), &err), 0);
		if (i % 7 == 0)
			store_commit(s);
		if (i % 3 == 0)
			asked += store_ask(s, (enum store_question)(i % 4), i / 2 + 1, NULL, count_answer,
					   NULL, i, &err) == 0;
		if (i % 5 == 0) {
			store_dispatch(s);
			store_stats(s, &stats);
			assert_true(stats.rows <= 3 * i);
			assert_true(store_pending(s) <= 3 * i);
		}
		if (i == 1000 || i == 2000) { /* a failure and a repair in the midst of it */
			store_fail_at(3, false, false);
			store_commit(s);
			for (int k = 0; k < 1000 && !store_failed(s, NULL); k++)
				usleep(1000);
			assert_true(store_failed(s, NULL));
			store_repair(s);
			for (int k = 0; k < 10000 && store_failed(s, NULL); k++) {
				store_dispatch(s); /* answers come as well */
				usleep(1000);
			}
			assert_false(store_failed(s, NULL));
		}
	}
	commit_all(s);
	while (seen.answers < asked) {
		struct pollfd p = { store_fd(s), POLLIN, 0 };

		assert_int_equal(poll(&p, 1, 10000), 1);
		store_dispatch(s);
	}
	assert_int_equal(seen.errors, 0);
	assert_true(asked > 500);
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM decisions"), 3000);
	assert_whole(dir);
}

/* A decision with 16 candidates, as long as a real one. */
static const char *long_decision(void)
{
	static char json[4096];
	size_t n = 0;

	n += (size_t)snprintf(json, sizeof json, "{\"when\":\"arrival\",\"candidates\":[");
	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(
			json + n, sizeof json - n,
			"%s{\"batch\":%d,\"lr\":0.01,\"wait_s\":0,\"wait_upper_s\":0,\"time_s\":70.123456,"
			"\"upper_s\":88.5,\"accuracy\":0.95,\"memory_mb\":null,\"delays_s\":0,\"breaks\":"
			"null,"
			"\"headroom_s\":-28.5,\"feasible\":false,\"reasons\":[\"slo_exceeded\"]}",
			i ? "," : "", 1 << i);
	snprintf(json + n, sizeof json - n, "]}");
	return json;
}

TEST(test_collecting_costs_the_loop_microseconds)
{
	enum { SUBMITS = 4000 };
	struct store *s = open_store(fresh_dir());
	const char *json = long_decision();
	struct store_stats stats;
	struct err err = { 0 };
	double adding = 0, committing = 0, worst = 0, started, all = now_s();

	for (uint64_t i = 1; i <= SUBMITS; i++) {
		struct job_record j = plain_job(i);
		double t;

		started = now_s();
		assert_int_equal(store_add_job(s, &j, &err), 0);
		assert_int_equal(store_add_decision(s, i, NOON, "arrival", json, &err), 0);
		t = now_s() - started;
		adding += t;
		started = now_s();
		if (i % 4 == 0)
			store_commit(s);
		committing += now_s() - started;
		t += now_s() - started;
		if (t > worst)
			worst = t;
		while (store_pending(s) > 400) /* a loop that waits for clients */
			usleep(100);
	}
	commit_all(s);
	all = now_s() - all;
	store_stats(s, &stats);
	print_message(
		"loop: %.2f us a job with a decision of %zu bytes, %.2f us a commit, %.0f us at worst\n",
		adding / SUBMITS * 1e6, strlen(json), committing / (SUBMITS / 4.0) * 1e6, worst * 1e6);
	print_message("disk: %llu commits, %.2f ms each, %.2f ms at worst, %.0f submits/s (%.0f rows/s), "
		      "%llu checkpoints of "
		      "at most %.1f ms\n",
		      (unsigned long long)stats.commits, stats.mean_commit_ms, stats.max_commit_ms,
		      SUBMITS / all, 2 * SUBMITS / all, (unsigned long long)stats.checkpoints,
		      stats.max_checkpoint_ms);
	assert_true(adding / SUBMITS < 200e-6); /* a few us; sanitizers and a busy machine take their share */
	store_close(s);
}
