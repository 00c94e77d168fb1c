/* scheduler/store/expire, and how the writer forgets: what goes, what stays, and that the file shrinks. */
#define _GNU_SOURCE
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define S INT64_C(1000000000)
#define ALL ((size_t)1000000)

static const struct store_keep everything = { ALL, ALL, 0, ALL, ALL, 0, ALL };

static void add(struct store *s, uint64_t id, enum job_state state, uid_t uid, double ended_ago_s,
		const char *key)
{
	struct job_record j = plain_job(id);
	struct err err = { 0 };

	j.state = state;
	j.uid = uid;
	j.key = key;
	j.submitted_ns = NOON - (int64_t)(ended_ago_s * 1e9) - S;
	if (!job_state_live(state) && state != JOB_REJECTED) {
		j.started_ns = j.submitted_ns + S / 2;
		j.ended_ns = NOON - (int64_t)(ended_ago_s * 1e9);
		j.identity = "0123456789abcdef0123456789abcdef";
	}
	assert_int_equal(store_add_job(s, &j, &err), 0);
}

/* The jobs that are to go, as "1 3 ", observations as "o4 ". */
static const char *expired(struct store *s, struct store_keep keep)
{
	static char out[20000];
	struct store_filter f = { .uid = -1, .keep = keep, .now_ns = NOON };
	struct answered a = { 0 };
	struct err err = { 0 };
	size_t at = 0;

	commit_all(s);
	assert_int_equal(store_ask(s, STORE_EXPIRED, 0, &f, keep_answer, &a, 77, &err), 0);
	wait_answer(s, &a, 1);
	if (a.err.code)
		fail_msg("%s", a.err.text);
	out[0] = '\0';
	for (size_t i = 0; i < a.text.len / sizeof(struct store_expired); i++) {
		const struct store_expired *e = (const struct store_expired *)a.text.text + i;

		at += (size_t)snprintf(out + at, sizeof out - at, "%s%llu ", e->observation ? "o" : "",
				       (unsigned long long)e->job);
		assert_int_equal(store_forget(s, e, &err), 0);
	}
	strbuf_release(&a.text);
	commit_all(s);
	return out;
}

TEST(test_nothing_goes_while_everything_is_to_be_kept)
{
	struct store *s = open_store(memory_dir());

	add(s, 1, JOB_DONE, 1, 1e8, NULL);
	add(s, 2, JOB_REJECTED, 1, 1e8, NULL);
	add(s, 3, JOB_QUEUED, 1, 1e8, NULL);
	assert_string_equal(expired(s, everything), "");
	store_close(s);
}

TEST(test_the_oldest_go_by_number_and_rejected_ones_have_their_own)
{
	struct store *s = open_store(memory_dir());
	struct store_keep keep = everything;

	for (uint64_t i = 1; i <= 10; i++)
		add(s, i, i % 2 ? JOB_DONE : JOB_REJECTED, 1, 1000 - (double)i, NULL);
	add(s, 11, JOB_RUNNING, 1, 1e6, NULL);
	keep.ended = 3;
	keep.rejected = 1;
	assert_string_equal(expired(s, keep), "1 2 3 4 6 8 ");
	assert_string_equal(expired(s, keep), "");
	assert_string_equal(ask(s, STORE_JOB, 1, NULL), "");
	assert_non_null(strstr(ask(s, STORE_JOB, 5, NULL), "\"done\""));
	store_close(s);
}

TEST(test_age_counts_from_the_end)
{
	struct store *s = open_store(memory_dir());
	struct store_keep keep = everything;

	add(s, 1, JOB_DONE, 1, 5000, NULL);
	add(s, 2, JOB_FAILED, 1, 3000, NULL);
	add(s, 3, JOB_REJECTED, 1, 3000, NULL);
	add(s, 4, JOB_QUEUED, 1, 9000, NULL);
	keep.ended_s = 4000;
	assert_string_equal(expired(s, keep), "1 ");
	keep.rejected_s = 2000;
	assert_string_equal(expired(s, keep), "3 ");
	store_close(s);
}

/* One user's rows push no others out. */
TEST(test_a_user_has_a_quota)
{
	struct store *s = open_store(memory_dir());
	struct store_keep keep = everything;

	add(s, 1, JOB_DONE, 7, 9000, NULL);
	add(s, 2, JOB_REJECTED, 7, 9000, NULL);
	for (uint64_t i = 3; i <= 8; i++)
		add(s, i, JOB_REJECTED, 8, 8000, NULL);
	for (uint64_t i = 9; i <= 12; i++)
		add(s, i, JOB_CANCELLED, 8, 7000, NULL);
	keep.rejected_per_uid = 4;
	assert_string_equal(expired(s, keep), "3 4 ");
	keep.ended_per_uid = 5; /* of all its rows: eight are left */
	assert_string_equal(expired(s, keep), "5 6 7 ");
	store_close(s);
}

/* What a power cut may take back, and what a retried submit looks for. */
TEST(test_fresh_ends_and_keys_stay)
{
	struct store *s = open_store(memory_dir());
	struct store_keep keep = everything;

	add(s, 1, JOB_DONE, 1, 1000, "mine");
	add(s, 2, JOB_DONE, 1, KEEP_SETTLED_S + 5, NULL);
	add(s, 3, JOB_DONE, 1, KEEP_SETTLED_S - 5, NULL);
	add(s, 4, JOB_REJECTED, 1, 0, "rejected");
	add(s, 5, JOB_DONE, 1, KEEP_KEYS_S + 5, "old");
	keep.ended = keep.rejected = 0;
	keep.ended_s = 1;
	assert_string_equal(expired(s, keep), "2 4 5 ");
	keep.ended_per_uid = 0; /* the user's own limit spares no keys */
	assert_string_equal(expired(s, keep), "1 ");
	store_close(s);
}

TEST(test_plausible_observations_outlive_their_jobs)
{
	struct store *s = open_store(memory_dir());
	struct store_keep keep = everything;
	struct store_seen doubtful = { .job = 2, .at_ns = NOON, .type = "a", .time_s = 1, .doubt = "time" };
	struct err err = { 0 };

	for (uint64_t i = 1; i <= 6; i++)
		add(s, i, JOB_DONE, 1, 1000, NULL);
	for (uint64_t i = 1; i <= 6; i++)
		if (i != 2)
			add_seen(s, i, NOON, i < 6 ? "a" : "b", 10.5, 0.5, OBSERVED({ "cpus", NULL, 2 }),
				 &err);
	store_add_observation(s, &doubtful, &err);
	keep.ended = 0;
	assert_string_equal(expired(s, keep), "1 2 3 4 5 6 ");
	assert_string_equal(observed(s, NULL),
			    "1: cpus=2 time_s=10.5 accuracy=0.5\n3: cpus=2 time_s=10.5 accuracy=0.5\n"
			    "4: cpus=2 time_s=10.5 accuracy=0.5\n5: cpus=2 time_s=10.5 accuracy=0.5\n"
			    "6: cpus=2 time_s=10.5 accuracy=0.5\n");
	keep.observations = 2; /* of each type */
	assert_string_equal(expired(s, keep), "o3 o1 ");
	store_close(s);
}

static int64_t number(const char *dir, const char *sql)
{
	char path[256];
	sqlite3 *db = NULL;
	sqlite3_stmt *st = NULL;
	int64_t n;

	snprintf(path, sizeof path, "%s/postrider.db", dir);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}

static void add_large(struct store *s, uint64_t first, uint64_t n)
{
	static char json[40000];
	struct err err = { 0 };

	memset(json, 'x', sizeof json - 1);
	json[0] = json[sizeof json - 2] = '"';
	for (uint64_t i = first; i < first + n; i++) {
		add(s, i, JOB_REJECTED, 1, 0, NULL);
		assert_int_equal(store_add_decision(s, i, NOON, "arrival", json, &err), 0);
	}
	commit_all(s);
}

/* A version 5 file of an earlier postriderd has no list of free pages to give back: it is made anew. */
static void make_old(const char *dir)
{
	char path[256];
	sqlite3 *db = NULL;

	snprintf(path, sizeof path, "%s/postrider.db", dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode=DELETE; PRAGMA auto_vacuum=NONE; VACUUM", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(number(dir, "PRAGMA auto_vacuum"), 0);
}

TEST(test_the_file_shrinks_when_jobs_are_forgotten)
{
	for (int old = 0; old < 2; old++) {
		char dir[128];
		struct store *s;
		struct store_keep keep = everything;
		int64_t before, after;
		double give_up;

		snprintf(dir, sizeof dir, "%s", memory_dir());
		s = open_store(dir);
		if (old) {
			store_close(s);
			make_old(dir);
			s = open_store(dir);
		}
		add_large(s, 1, 400);
		before = number(dir, "PRAGMA page_count");
		keep.rejected = 5;
		for (int parts = 0; *expired(s, keep); parts++) /* 395, in answers of 125 */
			assert_true(parts < 4);
		for (give_up = now_s() + 10; (after = number(dir, "PRAGMA page_count")) > before / 4;) {
			if (now_s() > give_up)
				fail_msg("%lld pages of %lld are left", (long long)after, (long long)before);
			usleep(10000);
		}
		assert_int_equal(number(dir, "SELECT count(*) FROM jobs"), 5);
		assert_int_equal(number(dir, "SELECT count(*) FROM decisions"), 5);
		store_close(s);
		s = open_store(dir); /* and is whole */
		assert_int_equal(store_last_id(s), 400);
		store_close(s);
	}
}
