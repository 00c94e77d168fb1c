/* Shared by the tests of the store: folders, a job with something in every column, waiting for the writer.
 * Included once a program. */
#ifndef TESTS_UNIT_STORE_STORE_FIXTURE_H
#define TESTS_UNIT_STORE_STORE_FIXTURE_H

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/store/store.h"
#include "tests/support/store_vfs.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/jobs/plain_job.h"

#define FIXTURE __attribute__((unused)) static

FIXTURE double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A fresh folder on the disk, in a static buffer. */
FIXTURE const char *fresh_dir(void)
{
	static unsigned n;
	static char path[128];

	store_vfs_use();
	snprintf(path, sizeof path, "%s/%u", support_temp_dir(), n++);
	assert_int_equal(mkdir(path, 0700), 0);
	return path;
}

/* The same in memory: for tests that do thousands of syncs and do not ask how long they take. */
static char memory_root[64];

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

FIXTURE void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_memory_root(void)
{
	remove_tree(memory_root);
}

FIXTURE const char *memory_dir(void)
{
	static unsigned n;
	static char path[128];

	if (!memory_root[0]) {
		snprintf(memory_root, sizeof memory_root, "/dev/shm/postrider-test-XXXXXX");
		if (!mkdtemp(memory_root)) {
			memory_root[0] = '\0';
			return fresh_dir();
		}
		atexit(remove_memory_root);
	}
	store_vfs_use();
	snprintf(path, sizeof path, "%s/%u", memory_root, n++);
	assert_int_equal(mkdir(path, 0700), 0);
	return path;
}

FIXTURE struct store *open_store(const char *dir)
{
	struct store *s = NULL;
	struct err err = { 0 };

	if (store_open(&(struct store_params){ .dir = dir }, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* Until ticket t is durable or the store has failed; false: neither happened in ten seconds. */
FIXTURE bool wait_ticket(struct store *s, uint64_t t)
{
	double give_up = now_s() + 10;

	while (store_durable(s) < t && !store_failed(s, NULL)) {
		struct pollfd p = { store_fd(s), POLLIN, 0 };

		if (now_s() > give_up)
			return false;
		poll(&p, 1, 100);
		store_dispatch(s);
	}
	return true;
}

FIXTURE void commit_all(struct store *s)
{
	uint64_t t = store_commit(s);

	assert_true(wait_ticket(s, t));
	assert_true(store_durable(s) >= t);
}

/* Asks for a repair and waits for what comes of it: true if the store works again. */
FIXTURE bool repair_store(struct store *s)
{
	struct err why;
	struct pollfd p = { store_fd(s), POLLIN, 0 };

	if (!store_failed(s, &why))
		return true;
	store_dispatch(s);
	store_repair(s);
	assert_int_equal(poll(&p, 1, 10000), 1); /* the answer, whichever it is */
	store_dispatch(s);
	return !store_failed(s, NULL);
}

struct answered {
	int times;
	uint64_t token;
	struct strbuf text;
	struct err err;
};

FIXTURE void keep_answer(void *owner, uint64_t token, const struct strbuf *text, const struct err *err)
{
	struct answered *a = owner;

	a->times++;
	a->token = token;
	a->err = *err;
	strbuf_reset(&a->text);
	strbuf_add(&a->text, text->text, text->len);
}

FIXTURE void wait_answer(struct store *s, const struct answered *a, int times)
{
	double give_up = now_s() + 20;

	while (a->times < times) {
		struct pollfd p = { store_fd(s), POLLIN, 0 };

		assert_true(now_s() < give_up);
		poll(&p, 1, 100);
		store_dispatch(s);
	}
}

/* Asks and waits; the text is valid until the next call. */
FIXTURE const char *ask(struct store *s, enum store_question q, uint64_t job, const struct store_filter *f)
{
	static struct answered a;
	struct err err = { 0 };

	strbuf_release(&a.text);
	a = (struct answered){ 0 };
	if (store_ask(s, q, job, f, keep_answer, &a, 77, &err))
		fail_msg("%s", err.text);
	wait_answer(s, &a, 1);
	assert_int_equal(a.token, 77);
	if (a.err.code)
		fail_msg("%s", a.err.text);
	return strbuf_text(&a.text);
}

/* Values of an observation, and how many. */
#define OBSERVED(...)                              \
	(const struct observed[]){ __VA_ARGS__ },  \
		sizeof((const struct observed[]){ __VA_ARGS__ }) / sizeof(struct observed)

/* An observation of a job, without a doubt. */
FIXTURE int add_seen(struct store *s, uint64_t job, int64_t at_ns, const char *type, double time_s,
		     double accuracy, const struct observed *value, size_t n, struct err *err)
{
	return store_add_observation(s,
				     &(struct store_seen){ .job = job,
							   .at_ns = at_ns,
							   .type = type,
							   .value = value,
							   .n_values = n,
							   .time_s = time_s,
							   .accuracy = accuracy },
				     err);
}

/* The store's observations, one a line: "1: cpus=2 time_s=40.5"; valid until the next call. */
FIXTURE const char *observed(struct store *s, const struct store_filter *f)
{
	static struct store_observation o;
	static char text[2000];
	struct answered a = { 0 };
	struct err err = { 0 };
	size_t at = 0, n = 0;
	char buf[40];

	if (store_ask(s, STORE_OBSERVATIONS, 0, f, keep_answer, &a, 77, &err))
		fail_msg("%s", err.text);
	wait_answer(s, &a, 1);
	text[0] = '\0';
	while (store_observation_next(a.text.text, a.text.len, &at, &o)) {
		n += (size_t)snprintf(text + n, sizeof text - n, "%llu:", (unsigned long long)o.job);
		for (size_t i = 0; i < o.n; i++) {
			if (o.value[i].text)
				n += (size_t)snprintf(text + n, sizeof text - n, " %s='%s'", o.value[i].name,
						      o.value[i].text);
			else
				n += (size_t)snprintf(text + n, sizeof text - n, " %s=%s", o.value[i].name,
						      text_shortest(o.value[i].number, buf));
		}
		n += (size_t)snprintf(text + n, sizeof text - n, "\n");
	}
	strbuf_release(&a.text);
	return text;
}

/* The database by itself, without the store. */
FIXTURE long long number_of(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st = NULL;
	long long v;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	v = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return v;
}

FIXTURE long long sql_number(const char *dir, const char *sql)
{
	sqlite3 *db = NULL;
	long long v;

	assert_int_equal(sqlite3_open(support_path(dir, "postrider.db"), &db), SQLITE_OK);
	v = number_of(db, sql);
	sqlite3_close(db);
	return v;
}

FIXTURE void sql_run(const char *dir, const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(support_path(dir, "postrider.db"), &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

#define NOT_OK "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check<>'ok'"

FIXTURE void assert_whole(const char *dir)
{
	assert_int_equal(sql_number(dir, NOT_OK), 0);
}

#endif
