/* scheduler/store: what goes in comes out, and tickets mean what they say. */
#define _GNU_SOURCE
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

/* ---- rows ---- */

static struct job_record full_job(void)
{
	return (struct job_record){
		.id = 42,
		.key = "nightly-17 \"quoted\" ; DROP TABLE jobs; --",
		.uid = 4294967294u, /* above 2^31 */
		.gid = 3000000000u,
		.type = "digits",
		.mode = "advise",
		.params = "{\"text\":\"\\u00e9 'x' \xf0\x9f\x90\x8e\"}",
		.batches = "[64,128]",
		.cpus = 4000000000u,
		.slo_s = 60.25,
		.confidence = 0.95,
		.max_memory_mb = 4096.5,
		.best_effort = true,
		.state = JOB_RUNNING,
		.verdict = VERDICT_BEST_EFFORT,
		.reason = "it's \"complicated\"\nand long",
		.submitted_ns = NOON,
		.started_ns = NOON + 1,
		.ended_ns = INT64_MAX,
		.batch = 128,
		.lr = 1.0 / 3.0,
		.predicted_s = 41.2,
		.upper_s = INFINITY,
		.predicted_accuracy = 0.94,
		.run_predicted_s = 4.9e-324,
		.run_upper_s = 1.7976931348623157e308,
		.work_s = 0.0,
		.cpu_share = 0.7,
		.disk_share = 0.3,
		.accuracy = 0.93,
		.exit_code = 17,
		.exit_signal = 9,
		.max_rss_mb = 312.5,
		.cpu_s = 77.7,
		.policy = "postrider",
		.model = "9f2c",
		.slo_outcome = SLO_MET,
		.tag = "",
		.epochs = 12,
		.model_s = 40.75,
		.guard_s = 44.5,
		.foreseen_s = 41.25,
		.tenant = "uid 4294967294",
		.priority = -100,
		.may_stop = true,
		.stopped_epoch = 7,
		.steered = "[{\"after\":2,\"batch\":64}]",
		.steer_kept = "it knows",
	};
}

struct wanted {
	struct job_record job[4];
	size_t n;
};

static void assert_text(const char *a, const char *b)
{
	if (a && b)
		assert_string_equal(a, b);
	else
		assert_true(a == b);
}

static void assert_number(double a, double b)
{
	assert_true(a == b || (isnan(a) && isnan(b)));
}

static void assert_same_job(const struct job_record *a, const struct job_record *b)
{
	assert_true(a->id == b->id && a->uid == b->uid && a->gid == b->gid && a->cpus == b->cpus);
	assert_true(a->best_effort == b->best_effort);
	assert_true(a->submitted_ns == b->submitted_ns && a->started_ns == b->started_ns &&
		    a->ended_ns == b->ended_ns);
	assert_int_equal(a->exit_code, b->exit_code);
	assert_int_equal(a->exit_signal, b->exit_signal);
	assert_text(a->key, b->key);
	assert_text(a->type, b->type);
	assert_text(a->mode, b->mode);
	assert_text(a->params, b->params);
	assert_text(a->batches, b->batches);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->verdict, b->verdict);
	assert_text(a->reason, b->reason);
	assert_text(a->policy, b->policy);
	assert_text(a->model, b->model);
	assert_int_equal(a->slo_outcome, b->slo_outcome);
	assert_text(a->tag, b->tag);
	assert_text(a->tenant, b->tenant);
	assert_text(a->steered, b->steered);
	assert_text(a->steer_kept, b->steer_kept);
	assert_int_equal(a->priority, b->priority);
	assert_true(a->may_stop == b->may_stop);
	assert_number(a->epochs, b->epochs);
	assert_number(a->model_s, b->model_s);
	assert_number(a->guard_s, b->guard_s);
	assert_number(a->foreseen_s, b->foreseen_s);
	assert_number(a->stopped_epoch, b->stopped_epoch);
	assert_number(a->slo_s, b->slo_s);
	assert_number(a->confidence, b->confidence);
	assert_number(a->max_memory_mb, b->max_memory_mb);
	assert_number(a->batch, b->batch);
	assert_number(a->lr, b->lr);
	assert_number(a->predicted_s, b->predicted_s);
	assert_number(a->upper_s, b->upper_s);
	assert_number(a->predicted_accuracy, b->predicted_accuracy);
	assert_number(a->run_predicted_s, b->run_predicted_s);
	assert_number(a->run_upper_s, b->run_upper_s);
	assert_number(a->work_s, b->work_s);
	assert_number(a->cpu_share, b->cpu_share);
	assert_number(a->disk_share, b->disk_share);
	assert_number(a->accuracy, b->accuracy);
	assert_number(a->max_rss_mb, b->max_rss_mb);
	assert_number(a->cpu_s, b->cpu_s);
}

static int check_next(void *owner, const struct job_record *j, struct err *err)
{
	struct wanted *w = owner;

	(void)err;
	assert_true(w->n < 4);
	assert_same_job(j, &w->job[w->n++]);
	return 0;
}

TEST(test_every_column_comes_back_as_it_was)
{
	const char *dir = fresh_dir();
	struct wanted w = { .job = { plain_job(41), full_job() } };
	struct store *s = open_store(dir);
	struct job_record bare = { .id = 43,
				   .type = "",
				   .mode = "run",
				   .params = "{}",
				   .verdict = VERDICT_REJECTED,
				   .slo_s = NAN,
				   .confidence = NAN,
				   .max_memory_mb = NAN,
				   .batch = NAN,
				   .lr = NAN,
				   .predicted_s = NAN,
				   .upper_s = NAN,
				   .predicted_accuracy = NAN,
				   .run_predicted_s = NAN,
				   .run_upper_s = NAN,
				   .work_s = NAN,
				   .cpu_share = NAN,
				   .disk_share = NAN,
				   .accuracy = NAN,
				   .exit_code = -1,
				   .max_rss_mb = NAN,
				   .cpu_s = NAN };
	struct err err = { 0 };

	w.job[2] = bare;
	for (int i = 0; i < 3; i++)
		assert_int_equal(store_add_job(s, &w.job[i], &err), 0);
	commit_all(s);
	assert_int_equal(store_each_live(s, check_next, &w, &err), 0);
	assert_int_equal(w.n, 3);
	store_close(s);
	s = open_store(dir); /* and after a restart */
	w.n = 0;
	assert_int_equal(store_each_live(s, check_next, &w, &err), 0);
	assert_int_equal(w.n, 3);
	assert_int_equal(store_last_id(s), 43);
	store_close(s);
}

TEST(test_update_replaces_the_whole_row_but_not_the_key)
{
	struct store *s = open_store(fresh_dir());
	struct wanted w = { .job = { full_job() } };
	struct job_record first = plain_job(42);
	struct err err = { 0 };

	first.key = w.job[0].key;
	first.uid = w.job[0].uid;
	assert_int_equal(store_add_job(s, &first, &err), 0);
	commit_all(s);
	assert_int_equal(store_update_job(s, &w.job[0], &err), 0);
	commit_all(s);
	assert_int_equal(store_each_live(s, check_next, &w, &err), 0);
	assert_int_equal(w.n, 1);
	store_close(s);
}

TEST(test_texts_are_copied_when_they_are_added)
{
	struct store *s = open_store(fresh_dir());
	struct job_record j = plain_job(1);
	char type[] = "digits", why[] = "arrival";
	struct err err = { 0 };

	j.type = type;
	assert_int_equal(store_add_job(s, &j, &err), 0);
	assert_int_equal(store_add_estimate(s, 1, NOON, 0, 1, 2, 3, why, &err), 0);
	memset(type, 'x', sizeof type - 1);
	memset(why, 'x', sizeof why - 1);
	commit_all(s);
	assert_non_null(strstr(ask(s, STORE_EXPLAIN, 1, NULL), "\"type\":\"digits\""));
	assert_non_null(strstr(ask(s, STORE_EXPLAIN, 1, NULL), "\"why\":\"arrival\""));
	store_close(s);
}

TEST(test_rows_that_cannot_be_kept_are_refused)
{
	struct store *s = open_store(fresh_dir());
	struct job_record j = plain_job(0);
	struct err err = { 0 };
	char *huge = calloc(1, ((size_t)16 << 20) + 2);

	assert_non_null(huge);
	memset(huge, ' ', ((size_t)16 << 20) + 1);
	assert_int_equal(store_add_job(s, &j, &err), -ERR_ARG);
	j.id = UINT64_MAX;
	assert_int_equal(store_add_job(s, &j, &err), -ERR_ARG);
	j.id = 1;
	j.state = (enum job_state)N_JOB_STATES;
	assert_int_equal(store_add_job(s, &j, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "state"));
	j.state = JOB_QUEUED;
	j.verdict = VERDICT_NONE;
	assert_int_equal(store_add_job(s, &j, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "verdict"));
	j.verdict = VERDICT_PROMISED;
	j.params = NULL;
	assert_int_equal(store_add_job(s, &j, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "params"));
	assert_int_equal(store_add_decision(s, 1, NOON, "arrival", huge, &err), -ERR_ARG);
	assert_int_equal(store_add_decision(s, 1, NOON, "arrival", NULL, &err), -ERR_ARG);
	assert_int_equal(store_add_estimate(s, 0, NOON, 0, 1, 2, 3, "x", NULL), -ERR_ARG);
	assert_int_equal(store_pending(s), 0);
	assert_int_equal(store_commit(s), 0);
	free(huge);
	store_close(s);
}

TEST(test_an_update_makes_a_row_that_is_missing_and_keeps_an_exit_code_of_0)
{
	const char *dir = fresh_dir();
	struct store *s = open_store(dir);
	struct job_record ended = plain_job(3), queued = plain_job(4);
	struct err err = { 0 };

	ended.exit_code = 0;
	assert_int_equal(store_update_job(s, &ended, &err), 0);
	assert_int_equal(store_update_job(s, &queued, &err), 0);
	commit_all(s);
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs WHERE id=3 AND exit_code=0"), 1);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs WHERE id=4 AND exit_code IS NULL"), 1);
}

/* ---- tickets ---- */

TEST(test_tickets_ascend_and_pending_rows_are_counted)
{
	struct store *s = open_store(fresh_dir());
	struct err err = { 0 };
	uint64_t last = 0;

	assert_int_equal(store_commit(s), 0); /* nothing collected: nothing to wait for */
	for (uint64_t i = 1; i <= 20; i++) {
		struct job_record j = plain_job(i);
		uint64_t t;

		assert_int_equal(store_add_job(s, &j, &err), 0);
		assert_true(store_pending(s) > 0);
		t = store_commit(s);
		assert_true(t == last + 1);
		assert_true(store_durable(s) <= t);
		assert_true(store_commit(s) == t);
		last = t;
	}
	assert_true(wait_ticket(s, last));
	assert_true(store_durable(s) == last);
	assert_int_equal(store_pending(s), 0);
	assert_true(store_last_id(s) == 20);
	store_close(s);
}

TEST(test_batches_that_wait_share_a_transaction)
{
	const char *dir = fresh_dir();
	struct store *s = open_store(dir);
	struct store_stats stats;
	struct err err = { 0 };

	for (uint64_t i = 1; i <= 1000; i++) {
		struct job_record j = plain_job(i);

		assert_int_equal(store_add_job(s, &j, &err), 0);
		if (i % 10 == 0)
			store_commit(s);
	}
	commit_all(s);
	store_stats(s, &stats);
	assert_int_equal(stats.rows, 1000);
	assert_true(stats.commits >= 1 && stats.commits < 100);
	assert_true(stats.mean_commit_ms > 0 && stats.max_commit_ms >= stats.mean_commit_ms);
	assert_int_equal(stats.pending, 0);
	assert_true(stats.wal_bytes > 0);
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 1000);
	assert_int_equal(sql_number(dir, "SELECT value FROM meta WHERE name='batch'"), 100);
}

/* Another program holds the file, so twenty batches of 1 MiB gather. They go into transactions of at most 8
 * MiB: one that waits already, and at least two more. */
TEST(test_a_transaction_is_not_larger_than_8_mib)
{
	const char *dir = memory_dir();
	size_t len = (size_t)1 << 20;
	char *text = malloc(len);
	struct store *s = open_store(dir);
	struct store_stats stats;
	struct err err = { 0 };
	sqlite3 *other = NULL;

	assert_non_null(text);
	memset(text, ' ', len - 1);
	text[len - 1] = '\0';
	assert_int_equal(sqlite3_open(support_path(dir, "postrider.db"), &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	for (uint64_t i = 1; i <= 20; i++) {
		assert_int_equal(store_add_decision(s, i, NOON, "arrival", text, &err), 0);
		store_commit(s);
	}
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	commit_all(s);
	store_stats(s, &stats);
	assert_int_equal(stats.rows, 20);
	assert_true(stats.commits >= 3);
	store_close(s);
	free(text);
}

TEST(test_close_commits_what_was_only_collected)
{
	const char *dir = fresh_dir();
	struct store *s = open_store(dir);
	struct job_record j = plain_job(5);
	struct err err = { 0 };

	assert_int_equal(store_add_job(s, &j, &err), 0);
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 1);
}

TEST(test_other_durabilities_write_the_same_rows)
{
	for (int d = DURABLE_INTERVAL; d <= DURABLE_NONE; d++) {
		const char *dir = fresh_dir();
		struct store_params p = { .dir = dir, .durability = d, .interval_s = 0.01 };
		struct store *s = NULL;
		struct err err = { 0 };

		assert_int_equal(store_open(&p, &s, &err), 0);
		for (uint64_t i = 1; i <= 50; i++) {
			struct job_record j = plain_job(i);

			assert_int_equal(store_add_job(s, &j, &err), 0);
			commit_all(s);
		}
		usleep(30000); /* the interval's sync comes by itself */
		assert_false(store_failed(s, NULL));
		store_close(s);
		assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 50);
		assert_whole(dir);
	}
}

/* Syncs of the log while `n` commits become durable one after the other. */
static unsigned long syncs_of(enum store_durability d, double interval_s, unsigned n)
{
	struct store_params p = { .dir = memory_dir(), .durability = d, .interval_s = interval_s };
	struct store *s = NULL;
	struct err err = { 0 };
	unsigned long before;

	assert_int_equal(store_open(&p, &s, &err), 0);
	before = store_syncs_of_log();
	for (unsigned i = 1; i <= n; i++) {
		struct job_record j = plain_job(i);
		unsigned long one = store_syncs_of_log();

		assert_int_equal(store_add_job(s, &j, &err), 0);
		commit_all(s);
		/* What counts as durable has been synced before it does. */
		assert_true(d != DURABLE_ALWAYS || store_syncs_of_log() > one);
	}
	before = store_syncs_of_log() - before;
	store_close(s);
	return before;
}

TEST(test_always_syncs_every_commit_and_the_others_do_not)
{
	assert_true(syncs_of(DURABLE_ALWAYS, 0, 20) >= 20);
	assert_true(syncs_of(DURABLE_INTERVAL, 1000, 20) == 0);
	assert_true(syncs_of(DURABLE_NONE, 0, 20) == 0);
}

TEST(test_interval_syncs_without_further_commits)
{
	struct store_params p = { .dir = fresh_dir(), .durability = DURABLE_INTERVAL, .interval_s = 0.4 };
	struct job_record j = plain_job(1);
	struct store *s = NULL;
	struct err err = { 0 };

	assert_int_equal(store_open(&p, &s, &err), 0);
	assert_int_equal(store_add_job(s, &j, &err), 0);
	commit_all(s);
	store_fail_at(1, false, false); /* the next call to the disk can only be that sync */
	for (int i = 0; i < 500 && !store_failed(s, NULL); i++)
		usleep(10000);
	assert_true(store_failed(s, &err));
	assert_non_null(strstr(err.text, "sync"));
	assert_true(repair_store(s));
	store_close(s);
}

TEST(test_log_is_moved_into_the_database_while_running)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	struct store_stats stats = { 0 };
	struct stat st;
	struct err err = { 0 };
	char *json = calloc(1, 40001);

	assert_non_null(json);
	memset(json, ' ', 40000);
	for (uint64_t i = 1; i <= 2500; i++) { /* 100 MB in all */
		struct job_record j = plain_job(i);

		assert_int_equal(store_add_job(s, &j, &err), 0);
		assert_int_equal(store_add_decision(s, i, NOON, "arrival", json, &err), 0);
		if (i % 10 == 0)
			commit_all(s);
	}
	store_stats(s, &stats);
	assert_true(stats.checkpoints > 2);
	assert_int_equal(stat(support_path(dir, "postrider.db-wal"), &st), 0);
	assert_true(st.st_size < 40 << 20); /* it begins anew, however slow a checkpoint is */
	free(json);
	store_close(s);
}

/* An operator's sqlite3 with a transaction left open: the log grows, but commits go on, and not each with a
 * checkpoint. */
TEST(test_long_reader_stops_neither_commits_nor_sees_them)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	struct store_stats stats = { 0 };
	sqlite3 *other = NULL;
	struct err err = { 0 };
	char *json = calloc(1, 40001);

	assert_non_null(json);
	memset(json, ' ', 40000);
	assert_int_equal(sqlite3_open(support_path(dir, "postrider.db"), &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(number_of(other, "SELECT count(*) FROM decisions"), 0);
	for (uint64_t i = 1; i <= 400; i++) { /* 4,000 pages */
		assert_int_equal(store_add_decision(s, i, NOON, "arrival", json, &err), 0);
		commit_all(s);
	}
	store_stats(s, &stats);
	assert_true(stats.wal_bytes > 16 << 20);
	assert_true(stats.checkpoints >= 1 && stats.checkpoints <= 12); /* at most two for 1,000 pages */
	assert_int_equal(number_of(other, "SELECT count(*) FROM decisions"), 0);
	assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(number_of(other, "SELECT count(*) FROM decisions"), 400);
	sqlite3_close(other);
	/* It begins anew some time after the next checkpoint, which goes on beside the commits. */
	for (uint64_t i = 401; i <= 3000 && stats.wal_bytes > 16 << 20; i++) {
		assert_int_equal(store_add_decision(s, i, NOON, "arrival", json, &err), 0);
		commit_all(s);
		store_stats(s, &stats);
	}
	assert_true(stats.wal_bytes < 16 << 20);
	free(json);
	store_close(s);
}

/* ---- keys ---- */

struct key_seen {
	uint64_t job[8];
	char key[8][16];
	size_t n;
};

static int on_key(void *owner, uid_t uid, const char *key, uint64_t job, struct err *err)
{
	struct key_seen *k = owner;

	(void)err;
	assert_int_equal(uid, 1000);
	assert_true(k->n < 8);
	k->job[k->n] = job;
	snprintf(k->key[k->n++], sizeof k->key[0], "%s", key);
	return 0;
}

TEST(test_keys_are_found_again_and_the_latest_owner_counts)
{
	struct store *s = open_store(fresh_dir());
	struct key_seen seen = { 0 };
	struct err err = { 0 };
	static const char *const key[] = { "a", "b", NULL, "a", "c" };

	for (uint64_t i = 1; i <= 5; i++) {
		struct job_record j = plain_job(i);

		j.key = key[i - 1];
		j.submitted_ns = NOON + (int64_t)i * INT64_C(86400000000000);
		assert_int_equal(store_add_job(s, &j, &err), 0);
		commit_all(s);
	}
	assert_int_equal(store_each_key(s, 0, on_key, &seen, &err), 0);
	assert_int_equal(seen.n, 3);
	assert_true(seen.job[0] == 5 && seen.job[1] == 4 && seen.job[2] == 2);
	assert_string_equal(seen.key[1], "a");
	/* an update of the first owner does not take the key back */
	{
		struct job_record j = plain_job(1);

		j.key = "a";
		j.state = JOB_DONE;
		assert_int_equal(store_update_job(s, &j, &err), 0);
		commit_all(s);
	}
	seen.n = 0;
	assert_int_equal(store_each_key(s, NOON + 3 * INT64_C(86400000000000), on_key, &seen, &err), 0);
	assert_int_equal(seen.n, 2);
	assert_true(seen.job[1] == 4);
	store_close(s);
}

TEST(test_last_id_outlives_deleted_jobs)
{
	const char *dir = fresh_dir();
	struct store *s = open_store(dir);
	struct job_record j = plain_job(900);
	struct err err = { 0 };

	assert_int_equal(store_last_id(s), 0);
	assert_int_equal(store_add_job(s, &j, &err), 0);
	commit_all(s);
	store_close(s);
	sql_run(dir, "DELETE FROM jobs");
	s = open_store(dir);
	assert_int_equal(store_last_id(s), 900);
	store_close(s);
}

/* ---- start-up ---- */

static int count_jobs(void *owner, const struct job_record *j, struct err *err)
{
	uint64_t *last = owner;

	(void)err;
	assert_true(j->id > *last);
	*last = j->id;
	return 0;
}

static int stop_at_once(void *owner, const struct job_record *j, struct err *err)
{
	(void)j;
	++*(int *)owner;
	return err_fail(err, ERR_NODATA, "enough");
}

TEST(test_ten_thousand_live_jobs_are_read_quickly)
{
	const char *dir = fresh_dir();
	struct store *s = open_store(dir);
	uint64_t last = 0;
	struct err err = { 0 };
	double started;
	clock_t used;
	int calls = 0;

	for (uint64_t i = 1; i <= 20000; i++) {
		struct job_record j = plain_job(i);

		j.state = i % 2 ? JOB_DONE : i % 4 ? JOB_RUNNING : JOB_QUEUED;
		assert_int_equal(store_add_job(s, &j, &err), 0);
	}
	commit_all(s);
	store_close(s);
	started = now_s();
	s = open_store(dir);
	print_message("opened in %.1f ms\n", (now_s() - started) * 1e3);
	used = clock();
	assert_int_equal(store_each_live(s, count_jobs, &last, &err), 0);
	used = clock() - used; /* processor time: other tests run meanwhile */
	print_message("10,000 live jobs read in %.1f ms\n", (double)used * 1e3 / CLOCKS_PER_SEC);
	assert_true(last == 20000);
	assert_true(used < (sanitized() ? 2 : 0.5) * CLOCKS_PER_SEC);
	last = 0;
	assert_int_equal(store_each_finished(s, 10, count_jobs, &last, &err),
			 0); /* the latest, oldest first */
	assert_true(last == 19999);
	assert_int_equal(store_each_live(s, stop_at_once, &calls, &err), -ERR_NODATA);
	assert_int_equal(calls, 1);
	store_close(s);
}
