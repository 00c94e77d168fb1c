/* scheduler/daemon/store when the disk or the memory fails: at the k-th call, for every k until none fails.
 * Nothing may be lost that was confirmed, nothing applied twice, and a repair must bring the store back. */
#define _GNU_SOURCE
#include <malloc.h>
#include <sys/wait.h>

#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

/* SQLite's memory through common/mem, so that its allocations are counted and fail too. */
static void *sqlite_alloc(int n)
{
	return mem_alloc((size_t)n);
}

static void *sqlite_resize(void *p, int n)
{
	return mem_resize(p, (size_t)n, 1);
}

static int sqlite_size(void *p)
{
	return p ? (int)malloc_usable_size(p) : 0;
}

static int sqlite_round(int n)
{
	return (n + 7) & ~7;
}

static int sqlite_start(void *p)
{
	(void)p;
	return SQLITE_OK;
}

static void sqlite_end(void *p)
{
	(void)p;
}

static int use_counted_memory(void **state)
{
	static const sqlite3_mem_methods methods = { sqlite_alloc, free,         sqlite_resize, sqlite_size,
						     sqlite_round, sqlite_start, sqlite_end,    NULL };

	(void)state;
	return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK ? 0 : -1;
}

TEST_GROUP(use_counted_memory, NULL);

static int disarm(void **state)
{
	(void)state;
	store_fail_at(0, false, false);
	store_lose_log(false);
	mem_fail_at(0, false);
	return 0;
}

/* ---- a small life of a store; every step may be refused ---- */

#define JOBS 3

struct life {
	uint64_t ticket[JOBS + 1]; /* of job i; 0: it was refused, or a part of what was said of it */
	bool durable[JOBS + 1]; /* it was confirmed */
	int repairs;
};

static int add_all(struct store *s, uint64_t i)
{
	struct job_record j = plain_job(i);
	struct err err = { 0 };
	int rc;

	if ((rc = store_add_job(s, &j, &err)) ||
	    (rc = store_add_decision(s, i, NOON, "arrival", "{\"candidates\":[]}", &err)) ||
	    (rc = store_add_estimate(s, i, NOON, 0, 1, 2, 3, "submitted", &err)) ||
	    (rc = add_seen(s, i, NOON, "digits", 1, NAN, OBSERVED({ "cpus", NULL, 2 }), &err))) {
		assert_true(rc == -ERR_BUSY || rc == -ERR_NOMEM);
		assert_true(err.text[0]);
	}
	return rc;
}

static void live(struct store *s, struct life *l)
{
	for (uint64_t i = 1; i <= JOBS; i++) {
		if (add_all(s, i) == 0)
			l->ticket[i] = store_commit(s);
		assert_true(wait_ticket(s, store_commit(s)));
		if (store_failed(s, NULL)) {
			struct job_record j = plain_job(99);
			struct err err = { 0 };

			if (repair_store(s)) {
				l->repairs++;
				assert_true(store_durable(s) ==
					    store_commit(s)); /* all that waited went with it */
			} else {
				assert_int_equal(store_add_job(s, &j, &err), -ERR_BUSY);
				assert_non_null(strstr(err.text, "the storage has failed: "));
			}
		}
	}
	for (int i = 1; i <= JOBS; i++)
		l->durable[i] = l->ticket[i] && l->ticket[i] <= store_durable(s);
}

/* Each job is there once, with all that was taken, or not at all; those confirmed are there. */
static void assert_kept(const char *dir, const struct life *l)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(support_path(dir, "postrider.db"), &db), SQLITE_OK);
	assert_int_equal(number_of(db, NOT_OK), 0);
	for (int i = 1; i <= JOBS; i++) {
		static const char *const table[] = { "decisions WHERE job", "estimates WHERE job",
						     "observations WHERE job" };
		char sql[128];
		long long n;

		snprintf(sql, sizeof sql, "SELECT count(*) FROM jobs WHERE id=%d", i);
		n = number_of(db, sql);
		assert_true(n == 1 || (n == 0 && !l->durable[i]));
		for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
			snprintf(sql, sizeof sql, "SELECT count(*) FROM %s=%d", table[k], i);
			if (l->ticket[i])
				assert_int_equal(number_of(db, sql), n);
			else
				assert_true(number_of(db, sql) <= n);
		}
	}
	sqlite3_close(db);
}

/* Under a sanitizer every third call fails: the calls of a job are alike, and there are three jobs. */
static void fail_disk(bool full, bool forever, int durability)
{
	unsigned long k, step = sanitized() ? 3 : 1;
	int opened = 0, repaired = 0;

	for (k = 1;; k += step) {
		const char *dir = memory_dir();
		struct store_params p = { .dir = dir, .durability = durability, .interval_s = 1e-6 };
		struct store *s = NULL;
		struct life l = { 0 };
		struct err err = { 0 };
		bool happened;

		store_fail_at(k, full, forever);
		if (store_open(&p, &s, &err) == 0) {
			opened++;
			live(s, &l);
			if (forever && store_failed(s, NULL)) { /* the disk comes back */
				assert_false(repair_store(s));
				store_fail_at(0, false, false);
				assert_true(repair_store(s));
				assert_true(store_durable(s) == store_commit(s));
				for (int i = 1; i <= JOBS; i++)
					l.durable[i] = l.ticket[i] != 0;
				store_fail_at(1, full, forever); /* for the loop's end: it did happen */
				l.repairs++;
			} else if (!forever) {
				assert_false(store_failed(s, NULL));
			}
			repaired += l.repairs;
		} else {
			assert_null(s);
			assert_true(err.text[0]);
		}
		store_close(s);
		happened = store_fail_happened() || (forever && l.repairs);
		store_fail_at(0, false, false);
		store_close(open_store(dir)); /* recovers whatever was left */
		assert_kept(dir, &l);
		remove_tree(dir);
		if (!happened)
			break;
	}
	print_message("%lu failures: %d after opening, %d repairs\n", (k - 1) / step, opened - 1, repaired);
	assert_true(opened > 10 && repaired > 10);
}

TEST_WITH(test_no_row_is_lost_when_one_call_fails, NULL, disarm)
{
	fail_disk(false, false, DURABLE_ALWAYS);
	fail_disk(true, false, DURABLE_ALWAYS);
}

TEST_WITH(test_no_row_is_lost_when_all_calls_fail_for_a_while, NULL, disarm)
{
	fail_disk(false, true, DURABLE_ALWAYS);
	fail_disk(true, true, DURABLE_ALWAYS);
}

TEST_WITH(test_interval_durability_survives_failures_as_well, NULL, disarm)
{
	fail_disk(false, false, DURABLE_INTERVAL);
}

/* ---- particular failures ---- */

TEST_WITH(test_failed_store_refuses_keeps_and_recovers, NULL, disarm)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	struct err err = { 0 };
	uint64_t t;

	assert_int_equal(add_all(s, 1), 0);
	commit_all(s);
	assert_string_equal(ask(s, STORE_JOB, 2, NULL), ""); /* the reader has its connection */
	store_fail_at(1, true, true);
	assert_int_equal(add_all(s, 2), 0);
	t = store_commit(s);
	assert_true(wait_ticket(s, t));
	assert_true(store_failed(s, &err));
	assert_non_null(strstr(err.text, "full"));
	assert_non_null(strstr(err.text, "make room"));
	assert_true(store_durable(s) == t - 1);
	assert_int_equal(store_pending(s), 4);
	assert_int_equal(add_all(s, 3), -ERR_BUSY);
	assert_true(store_commit(s) == t);
	assert_non_null(
		strstr(ask(s, STORE_JOB, 1, NULL), "\"job\":\"1\"")); /* what was written can still be read */
	assert_string_equal(ask(s, STORE_JOB, 2, NULL), "");
	assert_false(repair_store(s));
	store_fail_at(0, false, false);
	assert_true(repair_store(s));
	assert_true(store_durable(s) == t);
	assert_int_equal(store_pending(s), 0);
	assert_non_null(strstr(ask(s, STORE_JOB, 2, NULL), "\"job\":\"2\""));
	assert_int_equal(add_all(s, 3), 0);
	commit_all(s);
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM decisions"), 3);
}

TEST_WITH(test_repair_without_failure_does_nothing, NULL, disarm)
{
	struct store *s = open_store(memory_dir());

	store_repair(s);
	assert_int_equal(add_all(s, 1), 0);
	commit_all(s);
	store_close(s);
}

/* The commit arrived, only the word of it did not: the rows must not be applied again. */
TEST_WITH(test_commit_whose_sync_failed_is_not_applied_twice, NULL, disarm)
{
	for (unsigned long k = 1; k < 60; k++) {
		const char *dir = memory_dir();
		struct store *s = open_store(dir);
		struct err err;

		assert_int_equal(add_all(s, 1), 0);
		commit_all(s);
		assert_int_equal(add_all(s, 2), 0);
		store_fail_at(k, false, false);
		assert_true(wait_ticket(s, store_commit(s)));
		if (!store_failed(s, &err)) {
			assert_true(k > 5);
			store_close(s);
			return;
		}
		assert_int_equal(add_all(s, 3), -ERR_BUSY);
		assert_true(repair_store(s));
		assert_int_equal(add_all(s, 3), 0);
		commit_all(s);
		store_close(s);
		assert_int_equal(sql_number(dir, "SELECT count(*) FROM decisions"), 3);
		assert_int_equal(sql_number(dir, "SELECT value FROM meta WHERE name='batch'"), 3);
		remove_tree(dir);
	}
	fail_msg("every call failed");
}

/* A log that the next commit makes long enough for a checkpoint. */
static void fill_log(struct store *s)
{
	size_t size = 3850000; /* 940 pages */
	char *json = malloc(size + 1);
	struct store_stats stats;
	struct err err = { 0 };

	assert_non_null(json);
	memset(json, ' ', size);
	json[size] = '\0';
	assert_int_equal(add_all(s, 1), 0);
	assert_int_equal(store_add_decision(s, 1, NOON, "start", json, &err), 0);
	commit_all(s);
	json[250000] = '\0'; /* 61 more; with the next commit it is a thousand */
	assert_int_equal(store_add_decision(s, 2, NOON, "start", json, &err), 0);
	store_stats(s, &stats);
	assert_int_equal(stats.checkpoints, 0);
	free(json);
}

/* It goes on beside the commits, and nobody waits for it: its failure must be heard of all the same. `leave`:
 * the store is closed meanwhile. Returns whether the commit was through when something failed. */
static bool fail_checkpoint(unsigned long k, bool leave, bool *out_happened)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	struct store_stats stats = { 0 };
	double give_up = now_s() + 10;
	bool committed;
	uint64_t t;

	fill_log(s);
	store_fail_at(k, false, false);
	t = store_commit(s);
	assert_true(wait_ticket(s, t));
	committed = store_durable(s) == t;
	while (!leave && !store_failed(s, NULL) && stats.checkpoints == 0 && now_s() < give_up) {
		usleep(100);
		store_stats(s, &stats);
	}
	*out_happened = store_fail_happened();
	if (!leave) {
		store_fail_at(0, false, false); /* what has not happened by now would hit something else */
		assert_int_equal(store_failed(s, NULL), *out_happened);
		assert_true(*out_happened || stats.checkpoints == 1);
		store_dispatch(s); /* else the news of the failure is taken for that of the repair */
		assert_true(repair_store(s));
		assert_int_equal(add_all(s, 3), 0);
		commit_all(s);
	}
	store_close(s);
	store_fail_at(0, false, false);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM decisions"), leave ? 3 : 4);
	assert_whole(dir);
	remove_tree(dir);
	return committed && *out_happened;
}

TEST_WITH(test_failed_checkpoint_fails_the_store_and_is_repaired, NULL, disarm)
{
	bool happened = true;
	int in_checkpoint = 0;

	for (unsigned long k = 1; happened; k += 97)
		in_checkpoint += fail_checkpoint(k, false, &happened);
	print_message("%d failures in the checkpoint\n", in_checkpoint);
	assert_true(in_checkpoint > 3);
}

TEST_WITH(test_close_beside_a_failing_checkpoint_loses_nothing, NULL, disarm)
{
	bool happened;

	for (unsigned long k = 140; k < 1200; k += 151)
		fail_checkpoint(k, true, &happened);
}

TEST_WITH(test_database_that_vanished_is_not_made_anew, NULL, disarm)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	struct err err = { 0 };

	assert_int_equal(add_all(s, 1), 0);
	commit_all(s);
	store_fail_at(1, false, false);
	assert_int_equal(add_all(s, 2), 0);
	assert_true(wait_ticket(s, store_commit(s)));
	assert_true(store_failed(s, NULL));
	assert_int_equal(rename(support_path(dir, "postrider.db"), support_path(dir, "away.db")), 0);
	assert_false(repair_store(s));
	assert_true(store_failed(s, &err));
	assert_int_not_equal(access(support_path(dir, "postrider.db"), F_OK), 0);
	assert_int_equal(rename(support_path(dir, "away.db"), support_path(dir, "postrider.db")), 0);
	assert_true(repair_store(s));
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 2);
}

/* Nothing has failed before: what is written to a file without a name would be confirmed, and gone. */
TEST_WITH(test_a_database_that_is_removed_while_it_is_used_confirms_nothing, NULL, disarm)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	struct err err = { 0 };
	uint64_t before;

	assert_int_equal(add_all(s, 1), 0);
	commit_all(s);
	before = store_durable(s);
	assert_int_equal(rename(support_path(dir, "postrider.db"), support_path(dir, "away.db")), 0);
	assert_int_equal(add_all(s, 2), 0);
	assert_true(wait_ticket(s, store_commit(s)));
	assert_true(store_failed(s, &err));
	assert_non_null(strstr(err.text, "was removed, renamed or replaced"));
	assert_int_equal(store_durable(s), before);
	assert_false(repair_store(s));
	assert_int_not_equal(access(support_path(dir, "postrider.db"), F_OK), 0);
	assert_int_equal(rename(support_path(dir, "away.db"), support_path(dir, "postrider.db")), 0);
	assert_true(repair_store(s));
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 2);
}

TEST_WITH(test_older_copy_put_in_place_is_noticed, NULL, disarm)
{
	const char *dir = memory_dir(), *old = memory_dir();
	struct store *s;
	struct err err = { 0 };
	char from[256], to[256];

	(void)old;
	snprintf(to, sizeof to, "%s/postrider.db", dir);
	s = open_store(dir);
	assert_int_equal(add_all(s, 1), 0);
	commit_all(s);
	store_close(s);
	snprintf(from, sizeof from, "VACUUM INTO '%s/copy.db'", dir);
	sql_run(dir, from);
	s = open_store(dir);
	assert_int_equal(add_all(s, 2), 0);
	commit_all(s);
	store_fail_at(1, false, false);
	assert_int_equal(add_all(s, 3), 0);
	assert_true(wait_ticket(s, store_commit(s)));
	assert_int_equal(rename(support_path(dir, "copy.db"), to), 0);
	unlink(support_path(dir, "postrider.db-wal"));
	unlink(support_path(dir, "postrider.db-shm"));
	assert_false(repair_store(s));
	assert_true(store_failed(s, &err));
	assert_non_null(strstr(err.text, "went back from commit 2 to 1"));
	store_close(s);
}

/* A file of version 1 in its place, with more commits than were confirmed here. It stays as it is. */
TEST_WITH(test_a_repair_refuses_a_file_of_another_version, NULL, disarm)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	struct err err = { 0 };

	assert_int_equal(add_all(s, 1), 0);
	commit_all(s);
	store_fail_at(1, false, false);
	assert_int_equal(add_all(s, 2), 0);
	assert_true(wait_ticket(s, store_commit(s)));
	assert_true(store_failed(s, NULL));
	unlink(support_path(dir, "postrider.db"));
	unlink(support_path(dir, "postrider.db-wal"));
	unlink(support_path(dir, "postrider.db-shm"));
	sql_run(dir, "CREATE TABLE meta(name TEXT PRIMARY KEY NOT NULL, value ANY) STRICT, WITHOUT ROWID;"
		     "INSERT INTO meta VALUES('batch',17),('schema_version',1);"
		     "PRAGMA user_version=1; PRAGMA application_id=1347572292");
	assert_false(repair_store(s));
	assert_true(store_failed(s, &err));
	assert_int_equal(err.code, ERR_FORMAT);
	assert_non_null(strstr(err.text, "is not the file it was"));
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT journal_mode='delete' FROM pragma_journal_mode"), 1);
}

TEST_WITH(test_repair_looks_whether_the_disk_kept_what_it_was_given, NULL, disarm)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	struct err err = { 0 };
	uint64_t t;

	assert_int_equal(add_all(s, 1), 0);
	commit_all(s);
	store_fail_at(1, false, false);
	assert_int_equal(add_all(s, 2), 0);
	t = store_commit(s);
	assert_true(wait_ticket(s, t));
	assert_true(store_failed(s, NULL));
	store_lose_log(true);
	assert_false(repair_store(s));
	assert_true(store_failed(s, &err));
	assert_true(store_durable(s) == t - 1);
	store_lose_log(false);
	assert_true(repair_store(s));
	assert_true(store_durable(s) == t);
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 2);
	assert_whole(dir);
}

TEST_WITH(test_close_of_a_failed_store_tries_once_more, NULL, disarm)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);

	store_fail_at(1, false, false); /* once: the disk is well again when the store is closed */
	assert_int_equal(add_all(s, 1), 0);
	assert_true(wait_ticket(s, store_commit(s)));
	assert_true(store_failed(s, NULL));
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 1);
}

TEST_WITH(test_question_on_a_bad_disk_gets_an_error, NULL, disarm)
{
	struct store *s = open_store(memory_dir());
	struct answered a = { 0 };
	struct err err = { 0 };

	store_fail_at(1, false, true); /* the reader opens its connection with its first question */
	assert_int_equal(store_ask(s, STORE_JOB, 1, NULL, keep_answer, &a, 1, &err), 0);
	wait_answer(s, &a, 1);
	assert_int_equal(a.err.code, ERR_IO);
	store_fail_at(0, false, false);
	assert_string_equal(ask(s, STORE_JOB, 1, NULL), "");
	strbuf_release(&a.text);
	store_close(s);
}

/* ---- memory ---- */

/* There are thousands of allocations, most of them while opening: there the steps grow with k; `first` shifts
 * them. */
static void fail_memory(bool forever, unsigned long first)
{
	unsigned long k;
	int opened = 0, runs = 0;

	for (k = first;; k += (opened ? 13 : 1 + k / 25) * (sanitized() ? 4 : 1)) {
		const char *dir = memory_dir();
		struct store *s = NULL;
		struct life l = { 0 };
		struct answered a = { 0 };
		struct err err = { 0 };
		bool happened;

		runs++;
		mem_fail_at(k, forever);
		if (store_open(&(struct store_params){ .dir = dir }, &s, &err) == 0) {
			int asked = 0;

			opened++;
			live(s, &l);
			for (int q = STORE_JOB; q <= STORE_OBSERVATIONS; q++)
				asked += store_ask(s, q, 1, NULL, keep_answer, &a, 1, NULL) == 0;
			wait_answer(s, &a, asked);
			happened = mem_failed();
			mem_fail_at(0, false);
			assert_true(repair_store(s));
			assert_true(store_durable(s) == store_commit(s));
			for (int i = 1; i <= JOBS; i++)
				l.durable[i] = l.ticket[i] != 0;
		} else {
			assert_int_equal(err.code, ERR_NOMEM);
			happened = true;
			mem_fail_at(0, false);
		}
		store_close(s);
		strbuf_release(&a.text);
		store_close(open_store(dir));
		assert_kept(dir, &l);
		remove_tree(dir);
		if (!happened)
			break;
	}
	print_message("%d of %lu allocations failed, %d after opening\n", runs - 1, k, opened - 1);
	assert_true(opened > 10);
}

TEST_WITH(test_missing_memory_loses_nothing, NULL, disarm)
{
	fail_memory(false, 1);
}

TEST_WITH(test_memory_missing_for_long_loses_nothing, NULL, disarm)
{
	fail_memory(true, 7);
}
