/* scheduler/daemon/store_schema: which files are opened, which are refused, and what the refusal says. */
#define _GNU_SOURCE
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#include "common/io.h"
#include "common/rng.h"
#include "scheduler/store/schema.h"

static int try_open(const char *dir, struct store **out, struct err *err)
{
	*err = (struct err){ 0 };
	return store_open(&(struct store_params){ .dir = dir }, out, err);
}

static void assert_refused(const char *dir, enum err_code code, const char *piece)
{
	struct store *s = NULL;
	struct err err;

	assert_int_equal(try_open(dir, &s, &err), -(int)code);
	if (!strstr(err.text, piece))
		fail_msg("'%s' does not say '%s'", err.text, piece);
	assert_null(s);
}

static void put_bytes(const char *path, const char *bytes, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static char *get_bytes(const char *path, size_t *len)
{
	struct err err = { 0 };
	char *bytes = NULL;

	if (io_read_file(path, 1 << 26, &bytes, len, &err))
		fail_msg("%s", err.text);
	return bytes;
}

/* A folder with `n` committed jobs and a decision each. */
static void fill(const char *dir, uint64_t n)
{
	struct store *s = open_store(dir);
	struct err err = { 0 };

	for (uint64_t i = 1; i <= n; i++) {
		struct job_record j = plain_job(i);

		assert_int_equal(store_add_job(s, &j, &err), 0);
		assert_int_equal(store_add_decision(s, i, NOON, "arrival", "{}", &err), 0);
	}
	commit_all(s);
	store_close(s);
}

TEST(test_empty_folder_and_empty_file_become_a_database)
{
	const char *dir = fresh_dir();
	struct stat st;

	store_close(open_store(dir));
	assert_int_equal(sql_number(dir, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
	assert_int_equal(sql_number(dir, "SELECT value FROM meta WHERE name='schema_version'"),
			 STORE_SCHEMA_VERSION);
	assert_int_equal(sql_number(dir, "SELECT value>'2020' FROM meta WHERE name='created'"), 1);
	assert_int_equal(stat(support_path(dir, "postrider.db"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	dir = fresh_dir();
	put_bytes(support_path(dir, "postrider.db"), "", 0);
	store_close(open_store(dir));
	assert_int_equal(sql_number(dir, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
}

TEST(test_second_daemon_is_refused_by_pid)
{
	const char *dir = fresh_dir();
	struct store *s = open_store(dir);
	char pid[32];

	snprintf(pid, sizeof pid, "pid %ld", (long)getpid());
	assert_refused(dir, ERR_BUSY, pid);
	store_close(s);
	store_close(open_store(dir)); /* free again */
}

TEST(test_missing_folder_is_not_found)
{
	assert_refused(support_path(support_temp_dir(), "nowhere"), ERR_NOTFOUND, "nowhere");
}

TEST(test_lock_that_is_a_link_is_refused)
{
	const char *dir = fresh_dir();

	assert_int_equal(symlink("/etc/hostname", support_path(dir, "postrider.lock")), 0);
	assert_refused(dir, ERR_PERM, "postrider.lock");
}

TEST(test_newer_version_is_refused_with_both_versions)
{
	const char *dir = fresh_dir();

	fill(dir, 3);
	sql_run(dir, "PRAGMA user_version=12; UPDATE meta SET value=12 WHERE name='schema_version'");
	assert_refused(dir, ERR_FORMAT,
		       "has schema version 12, this postriderd knows versions up to 11: start the newer");
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 3); /* and left alone */
}

TEST(test_versions_that_contradict_are_damage)
{
	const char *dir = fresh_dir();

	fill(dir, 1);
	sql_run(dir, "UPDATE meta SET value=12 WHERE name='schema_version'");
	assert_refused(dir, ERR_FORMAT, "header says version 11, its table `meta` version 12");
}

TEST(test_database_of_another_program_is_refused_and_left_alone)
{
	const char *dir = fresh_dir();

	sql_run(dir, "CREATE TABLE songs(title)");
	assert_refused(dir, ERR_FORMAT, "not one of a postriderd");
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM sqlite_schema"), 1);
	assert_int_equal(sql_number(dir, "SELECT journal_mode='delete' FROM pragma_journal_mode"), 1);
}

TEST(test_what_is_no_database_is_refused)
{
	const char *dir = fresh_dir();
	char text[5000];

	memset(text, 'x', sizeof text);
	put_bytes(support_path(dir, "postrider.db"), text, sizeof text);
	assert_refused(dir, ERR_FORMAT, "postrider.db");
	put_bytes(support_path(dir, "postrider.db"), "hello\n", 6);
	assert_refused(dir, ERR_FORMAT, "postrider.db");
	dir = fresh_dir();
	assert_int_equal(mkdir(support_path(dir, "postrider.db"), 0700), 0);
	assert_refused(dir, ERR_FORMAT, "is a folder");
	dir = fresh_dir();
	assert_int_equal(mkfifo(support_path(dir, "postrider.db"), 0600), 0);
	assert_refused(dir, ERR_FORMAT, "a special file");
}

TEST(test_truncated_database_is_refused)
{
	const char *dir = memory_dir();
	char path[256];
	char *bytes;
	size_t len;

	snprintf(path, sizeof path, "%s/postrider.db", dir);
	fill(dir, 200);
	bytes = get_bytes(path, &len);
	for (size_t cut = 2; cut < len; cut += 1531) { /* SQLite takes a single byte for an empty file */
		struct store *s = NULL;
		struct err err;

		put_bytes(path, bytes, cut);
		if (try_open(dir, &s, &err) != -ERR_FORMAT)
			fail_msg("cut at %zu of %zu: '%s'", cut, len, err.text);
		assert_non_null(strstr(err.text, "postrider.db"));
	}
	put_bytes(path, bytes, len);
	store_close(open_store(dir));
	free(bytes);
}

/* SQLite takes what is missing of a page for zeros, and the page of a long text has no structure that would
 * show it. */
TEST(test_database_cut_within_its_last_text_is_refused)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	char path[256], text[20000];
	struct err err = { 0 };
	struct stat st;

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_int_equal(store_add_decision(s, 1, NOON, "arrival", text, &err), 0);
	commit_all(s);
	store_close(s);
	snprintf(path, sizeof path, "%s/postrider.db", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1000), 0);
	assert_refused(dir, ERR_FORMAT, "it was cut at");
}

/* Some bytes of the header mean little; whatever they are, the store opens or says why not, and never more.
 */
TEST(test_no_flipped_byte_does_harm)
{
	const char *dir = memory_dir();
	struct rng rng = rng_stream(5, 0);
	size_t len, refused_header = 0, refused = 0;
	char path[256], *bytes;

	snprintf(path, sizeof path, "%s/postrider.db", dir);
	fill(dir, 50);
	bytes = get_bytes(path, &len);
	for (size_t i = 0; i < 400; i++) {
		size_t at = i < 100 ? i : rng_below(&rng, (uint32_t)len);
		struct store *s = NULL;
		struct answered a = { 0 };
		struct err err;

		bytes[at] ^= (char)0xff;
		put_bytes(path, bytes, len);
		bytes[at] ^= (char)0xff;
		unlink(support_path(dir, "postrider.db-wal"));
		unlink(support_path(dir, "postrider.db-shm"));
		if (try_open(dir, &s, &err)) {
			assert_true(err.code != ERR_NONE && err.text[0]);
			refused_header += i < 100;
			refused++;
		} else {
			assert_int_equal(store_ask(s, STORE_LIST, 0, NULL, keep_answer, &a, 0, NULL), 0);
			wait_answer(s, &a, 1);
			assert_true(a.err.code == ERR_NONE || a.err.text[0]);
		}
		store_close(s);
		strbuf_release(&a.text);
	}
	assert_true(refused_header >= 16); /* the magic at least */
	print_message("%zu of 400 refused, %zu of 100 in the header\n", refused, refused_header);
	free(bytes);
}

/* A machine that lost power: any part of the log may be missing. */
TEST(test_log_cut_anywhere_gives_whole_commits_only)
{
	const char *dir = memory_dir();
	struct store *s = open_store(dir);
	char db[256], wal[256], *db_bytes, *wal_bytes;
	size_t db_len, wal_len;
	long long before = -1;
	struct err err = { 0 };

	snprintf(db, sizeof db, "%s/postrider.db", dir);
	snprintf(wal, sizeof wal, "%s/postrider.db-wal", dir);
	for (uint64_t i = 1; i <= 8; i++) {
		struct job_record j = plain_job(i);

		assert_int_equal(store_add_job(s, &j, &err), 0);
		assert_int_equal(store_add_decision(s, i, NOON, "arrival", "{}", &err), 0);
		commit_all(s);
	}
	db_bytes = get_bytes(db, &db_len);
	wal_bytes = get_bytes(wal, &wal_len);
	store_close(s);
	for (size_t cut = 0; cut <= wal_len;
	     cut += cut + 911 > wal_len && cut < wal_len ? wal_len - cut : 911) {
		long long n;

		/* the tables were made in this log too: a cut before that leaves an empty file, which is made
		 * anew */
		put_bytes(db, db_bytes, db_len);
		put_bytes(wal, wal_bytes, cut);
		unlink(support_path(dir, "postrider.db-shm"));
		store_close(open_store(dir));
		assert_whole(dir);
		n = sql_number(dir, "SELECT count(*) FROM jobs");
		assert_true(n >= before);
		assert_int_equal(sql_number(dir, "SELECT count(*) FROM decisions"), n);
		assert_int_equal(sql_number(dir, "SELECT value FROM meta WHERE name='batch'"), n);
		before = n;
	}
	assert_int_equal(before, 8);
	free(db_bytes);
	free(wal_bytes);
}

/* ---- migration ---- */

static int make_first(sqlite3 *db)
{
	return sqlite3_exec(db,
			    "CREATE TABLE meta(name TEXT PRIMARY KEY, value ANY); CREATE TABLE t(a); INSERT "
			    "INTO t VALUES(5)",
			    NULL, NULL, NULL);
}

static int add_column(sqlite3 *db)
{
	return sqlite3_exec(db, "ALTER TABLE t ADD COLUMN b; UPDATE t SET b=a*2", NULL, NULL, NULL);
}

static int fail_half_way(sqlite3 *db)
{
	return sqlite3_exec(db, "DROP TABLE t; SELECT * FROM nowhere", NULL, NULL, NULL);
}

static int migrate(const char *dir, schema_step *const *step, int n, struct err *err)
{
	sqlite3 *db = NULL;
	int rc;

	*err = (struct err){ 0 };
	assert_int_equal(sqlite3_open(support_path(dir, "postrider.db"), &db), SQLITE_OK);
	rc = schema_migrate(db, "the.db", step, n, err);
	sqlite3_close(db);
	return rc;
}

TEST(test_older_version_is_brought_forward_step_by_step)
{
	const char *dir = fresh_dir();
	schema_step *const first[] = { make_first }, *const both[] = { make_first, add_column };
	schema_step *const bad[] = { make_first, add_column, fail_half_way };
	struct err err;

	assert_int_equal(migrate(dir, first, 1, &err), 0);
	assert_int_equal(sql_number(dir, "PRAGMA user_version"), 1);
	assert_int_equal(migrate(dir, both, 2, &err), 0); /* the first step is not done again */
	assert_int_equal(sql_number(dir, "PRAGMA user_version"), 2);
	assert_int_equal(sql_number(dir, "SELECT sum(b) FROM t"), 10);
	assert_int_equal(migrate(dir, both, 2, &err), 0);
	assert_int_equal(migrate(dir, first, 1, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "version 2"));
	assert_int_equal(migrate(dir, bad, 3, &err), -ERR_IO);
	assert_non_null(strstr(err.text, "nowhere"));
	assert_int_equal(sql_number(dir, "PRAGMA user_version"), 2); /* all or nothing */
	assert_int_equal(sql_number(dir, "SELECT sum(b) FROM t"), 10);
	dir = fresh_dir();
	assert_int_equal(migrate(dir, both, 2, &err), 0); /* from empty through both */
	assert_int_equal(sql_number(dir, "SELECT sum(b) FROM t"), 10);
}

/* A file as version 1 made it, letter for letter, with a job of every state that matters. */
static const char version_1[] =
	"CREATE TABLE meta(name TEXT PRIMARY KEY NOT NULL, value ANY) STRICT, WITHOUT ROWID;"
	"INSERT INTO meta "
	"VALUES('created','2026-11-01T00:00:00Z'),('batch',17),('last_id',9),('schema_version',1);"
	"CREATE TABLE jobs(id INTEGER PRIMARY KEY, key TEXT, uid INTEGER NOT NULL, gid INTEGER NOT NULL,"
	" type TEXT NOT NULL, mode TEXT NOT NULL, params TEXT NOT NULL, batches TEXT, cpus INTEGER NOT NULL,"
	" slo_s REAL, confidence REAL, max_memory_mb REAL, best_effort INTEGER NOT NULL,"
	" state TEXT NOT NULL, verdict TEXT NOT NULL, reason TEXT,"
	" submitted_ns INTEGER, started_ns INTEGER, ended_ns INTEGER, batch REAL, lr REAL,"
	" predicted_s REAL, upper_s REAL, predicted_accuracy REAL, run_predicted_s REAL, run_upper_s REAL,"
	" work_s REAL, cpu_share REAL, disk_share REAL, accuracy REAL, exit_code INTEGER, exit_signal "
	"INTEGER,"
	" max_rss_mb REAL, cpu_s REAL, policy TEXT, model TEXT, slo_outcome TEXT, tag TEXT) STRICT;"
	"CREATE INDEX jobs_state ON jobs(state); CREATE INDEX jobs_uid ON jobs(uid);"
	"CREATE INDEX jobs_type ON jobs(type);"
	"CREATE UNIQUE INDEX jobs_key ON jobs(uid,key) WHERE key IS NOT NULL;"
	"CREATE TABLE decisions(job INTEGER NOT NULL, at_ns INTEGER NOT NULL, moment TEXT NOT NULL,"
	" json TEXT NOT NULL) STRICT; CREATE INDEX decisions_job ON decisions(job);"
	"CREATE TABLE estimates(job INTEGER NOT NULL, n INTEGER NOT NULL, at_ns INTEGER NOT NULL,"
	" start_s REAL, end_s REAL, end_low_s REAL, end_high_s REAL, why TEXT NOT NULL,"
	" PRIMARY KEY(job,n)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE observations(job INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, type TEXT NOT NULL,"
	" columns TEXT NOT NULL, time_s REAL, accuracy REAL) STRICT;"
	"INSERT INTO jobs(id,key,uid,gid,type,mode,params,cpus,slo_s,confidence,best_effort,state,verdict,"
	" submitted_ns,batch) "
	"VALUES(8,'k',1000,100,'digits','run','{}',2,60,0.9,0,'queued','promised',5,128),"
	" (7,NULL,1000,100,'digits','run','{}',2,60,0.9,0,'done','promised',4,64);"
	"INSERT INTO observations VALUES(7,6,'digits','{\"batch\":64}',12.5,0.9);"
	"PRAGMA user_version=1; PRAGMA application_id=1347572292";

static int is_as_before(void *owner, const struct job_record *j, struct err *err)
{
	(void)err;
	*(size_t *)owner += 1;
	assert_true(j->id == 8 || j->id == 7);
	assert_true(j->batch == (j->id == 8 ? 128 : 64) && j->slo_s == 60 && j->cpus == 2);
	assert_true(isnan(j->epochs) && isnan(j->model_s) && isnan(j->stopped_epoch) && isnan(j->guard_s) &&
		    isnan(j->foreseen_s));
	assert_null(j->tenant);
	assert_int_equal(j->priority, 0);
	assert_false(j->may_stop);
	return 0;
}

TEST(test_file_of_version_1_keeps_its_jobs_and_takes_new_ones)
{
	const char *dir = fresh_dir();
	struct job_record j = plain_job(10);
	struct store *s;
	struct err err = { 0 };
	size_t seen = 0;

	assert_int_equal(STORE_APPLICATION, 1347572292);
	sql_run(dir, version_1);
	s = open_store(dir);
	assert_int_equal(store_last_id(s), 9);
	assert_int_equal(store_each_live(s, is_as_before, &seen, &err), 0);
	assert_int_equal(store_each_finished(s, 10, is_as_before, &seen, &err), 0);
	assert_int_equal(seen, 2);
	j.tenant = "lab";
	j.priority = 5;
	j.model_s = 40.5;
	j.chance = 0.25;
	j.value = 2.5;
	j.verdict = VERDICT_CHANCE;
	assert_int_equal(store_add_job(s, &j, &err), 0);
	commit_all(s);
	assert_string_equal(observed(s, NULL), "7: batch=64 time_s=12.5 accuracy=0.9\n");
	assert_non_null(strstr(ask(s, STORE_JOB, 10, NULL), "\"tenant\":\"lab\",\"priority\":5"));
	store_close(s);
	assert_int_equal(sql_number(dir, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs WHERE tenant IS NULL AND priority=0"), 2);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs WHERE model_s=40.5"), 1);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs WHERE chance IS NULL"), 2);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs WHERE value IS NULL"), 2);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs WHERE value=2.5"), 1);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs WHERE chance=0.25 AND verdict='chance'"),
			 1);
	assert_whole(dir);
	store_close(open_store(dir)); /* nothing is done twice */
}

TEST(test_a_trigger_in_the_file_does_not_run)
{
	const char *dir = fresh_dir();
	struct job_record j = plain_job(1);
	struct store *s = open_store(dir);
	struct err err = { 0 };

	store_close(s);
	sql_run(dir, "CREATE TRIGGER harm AFTER INSERT ON jobs BEGIN INSERT INTO decisions "
		     "VALUES(99,1,'x','{}'); END");
	s = open_store(dir);
	assert_int_equal(store_add_job(s, &j, &err), 0);
	commit_all(s);
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 1);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM decisions"), 0);
}

static int not_called(void *owner, const struct job_record *j, struct err *err)
{
	(void)owner;
	(void)err;
	fail_msg("job %llu was taken", (unsigned long long)j->id);
	return 0;
}

TEST(test_a_state_or_verdict_that_does_not_exist_is_damage)
{
	static const char *const harm[] = { "state='asleep'", "verdict='perhaps'", "slo_outcome='both'" };

	for (size_t i = 0; i < 3; i++) {
		const char *dir = fresh_dir();
		struct job_record j = plain_job(7);
		struct store *s = open_store(dir);
		struct err err = { 0 };
		char sql[80];

		assert_int_equal(store_add_job(s, &j, &err), 0);
		commit_all(s);
		store_close(s);
		snprintf(sql, sizeof sql, "UPDATE jobs SET %s", harm[i]);
		sql_run(dir, sql);
		s = open_store(dir);
		if (i > 0)
			assert_int_equal(store_each_live(s, not_called, NULL, &err), -ERR_FORMAT);
		else
			assert_int_equal(store_each_finished(s, 10, not_called, NULL, &err), -ERR_FORMAT);
		assert_non_null(strstr(err.text, "job 7"));
		store_close(s);
	}
}

/* A column of text that must be there: first the rule goes, then the value, and the rule comes back if it is
 * to. */
static void lose_type(const char *dir, bool rule_stays)
{
	const char *rule = "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET "
			   "sql=replace(sql,'type TEXT%s,','type TEXT%s,') WHERE name='jobs'";
	char sql[200];

	snprintf(sql, sizeof sql, rule, " NOT NULL", "");
	sql_run(dir, sql);
	sql_run(dir, "UPDATE jobs SET type=NULL");
	snprintf(sql, sizeof sql, rule, "", " NOT NULL");
	if (rule_stays)
		sql_run(dir, sql);
}

TEST(test_damage_that_the_check_finds_is_told)
{
	const char *dir = fresh_dir();

	fill(dir, 1);
	lose_type(dir, true);
	assert_refused(dir, ERR_FORMAT, "is damaged: NULL value in jobs.type");
}

/* The check does not find this one. */
TEST(test_a_row_without_its_type_is_damage)
{
	const char *dir = fresh_dir();
	struct err err = { 0 };
	struct store *s;

	fill(dir, 1);
	lose_type(dir, false);
	s = open_store(dir);
	assert_int_equal(store_each_live(s, not_called, NULL, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "job 1 has no type"));
	store_close(s);
}

/* A copy of the file alone has all there is. */
TEST(test_a_close_leaves_no_log_behind)
{
	const char *dir = fresh_dir();

	fill(dir, 3);
	assert_int_not_equal(access(support_path(dir, "postrider.db-wal"), F_OK), 0);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs"), 3);
}

#define WITHOUT_6_TO_11                                                                                      \
	"ALTER TABLE jobs DROP COLUMN after; ALTER TABLE jobs DROP COLUMN after_ok;"                         \
	"ALTER TABLE jobs DROP COLUMN retry; ALTER TABLE jobs DROP COLUMN attempt;"                          \
	"ALTER TABLE jobs DROP COLUMN array_index;"                                                          \
	"ALTER TABLE jobs DROP COLUMN gpus; ALTER TABLE jobs DROP COLUMN gpus_least; ALTER TABLE jobs DROP " \
	"COLUMN devices; ALTER TABLE jobs DROP COLUMN value; ALTER TABLE jobs DROP COLUMN after_more;"       \
	"DROP TABLE inputs; ALTER TABLE jobs DROP COLUMN steered; ALTER TABLE jobs DROP COLUMN steer_kept;"

/* A file as version 4 left it: observations were JSON, and whatever a client said was among them. */
TEST(test_version_4_becomes_version_5_with_typed_observations)
{
	const char *dir = fresh_dir();
	struct store *s;

	fill(dir, 6);
	sql_run(dir, "DROP TABLE observed_values; DROP TABLE observations;"
		     "CREATE TABLE observations(job INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, type TEXT "
		     "NOT NULL,"
		     " columns TEXT NOT NULL, time_s REAL, accuracy REAL) STRICT;"
		     "ALTER TABLE jobs DROP COLUMN identity;" WITHOUT_6_TO_11 "UPDATE jobs SET model_s=1.0;"
		     "INSERT INTO observations VALUES"
		     "(1,5,'digits','{\"network\":\"le\\\"net,5\",\"cpus\":2,\"lr\":0.1,\"ok\":true,\"no\":"
		     "null}',2.5,0.93),"
		     "(2,5,'digits','{\"cpus\":4}',1e-9,0.9),"
		     "(3,5,'digits','{\"cpus\":4}',1.5,1e308),"
		     "(4,5,'digits','{\"cpus\":',1.5,0.9),"
		     "(5,5,'digits','{}',1.25,NULL),"
		     "(99,5,'digits','{\"cpus\":8}',7.5,NULL);"
		     "UPDATE meta SET value=4 WHERE name='schema_version'; PRAGMA user_version=4");
	s = open_store(dir);
	assert_string_equal(observed(s, NULL),
			    "1: network='le\"net,5' cpus=2 lr=0.1 ok='true' no=nan time_s=2.5 accuracy=0.93\n"
			    "5: time_s=1.25 accuracy=nan\n"
			    "99: cpus=8 time_s=7.5 accuracy=nan\n");
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM observations"),
			 6); /* nothing is thrown away */
	assert_int_equal(sql_number(dir, "SELECT job FROM observations WHERE doubt='time'"), 2);
	assert_int_equal(sql_number(dir, "SELECT job FROM observations WHERE doubt='accuracy'"), 3);
	assert_int_equal(sql_number(dir, "SELECT job FROM observations WHERE doubt='damaged'"), 4);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM jobs WHERE identity IS NULL"), 6);
	assert_int_equal(sql_number(dir, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
}

static int see_new(void *owner, const struct job_record *j, struct err *err)
{
	(void)err;
	assert_true(j->after == 0 && !j->after_ok && j->retry == 0 && j->attempt == 0 && isnan(j->value));
	assert_true(isnan(j->array_index));
	assert_true(!j->gpus && !j->gpus_least && !j->devices && !j->steered && !j->steer_kept);
	++*(int *)owner;
	return 0;
}

/* Jobs of version 5 wait for no other, are not repeated, have no devices and state no value. */
TEST(test_version_5_becomes_the_latest)
{
	const char *dir = fresh_dir();
	struct store *s;
	int n = 0;

	fill(dir, 3);
	sql_run(dir,
		WITHOUT_6_TO_11 "UPDATE meta SET value=5 WHERE name='schema_version'; PRAGMA user_version=5");
	s = open_store(dir);
	assert_int_equal(store_each_live(s, see_new, &n, NULL), 0);
	assert_int_equal(store_each_finished(s, 10, see_new, &n, NULL), 0);
	assert_int_equal(n, 3);
	store_close(s);
	assert_int_equal(sql_number(dir, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
}

/* A lock file that somebody deletes lets no second daemon in: the folder is locked, too. */
TEST(test_without_the_lock_file_a_second_daemon_is_still_refused)
{
	const char *dir = fresh_dir();
	struct store *s = open_store(dir);

	assert_int_equal(unlink(support_path(dir, "postrider.lock")), 0);
	assert_refused(dir, ERR_BUSY, "another postriderd");
	store_close(s);
	store_close(open_store(dir));
}

/* Flipped bits in texts: what comes out is JSON all the same. */
TEST(test_a_damaged_text_comes_out_as_json)
{
	const char *dir = fresh_dir();
	struct answered a = { 0 };
	struct json *v = NULL;
	struct err err = { 0 };
	struct store *s;

	fill(dir, 1);
	sql_run(dir, "UPDATE jobs SET params='{\"x\":', tag=CAST(x'61ff62' AS TEXT);"
		     "UPDATE decisions SET json='{\"at\":\"2026';"
		     "UPDATE jobs SET batches='[64,'||char(10)||'128]'");
	s = open_store(dir);
	assert_int_equal(store_ask(s, STORE_EXPLAIN, 1, NULL, keep_answer, &a, 1, &err), 0);
	wait_answer(s, &a, 1);
	if (json_parse("answer", a.text.text, a.text.len, &v, &err))
		fail_msg("%s in %s", err.text, a.text.text);
	assert_int_equal(json_type(json_get(json_get(v, "job"), "params")), JSON_NULL);
	assert_null(memchr(a.text.text, '\n', a.text.len)); /* and one line */
	json_free(v);
	strbuf_release(&a.text);
	store_close(s);
}
