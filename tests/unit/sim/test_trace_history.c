/* sim/trace_history: the daemon's database becomes a trace, while it is written too, and nothing is written
 * to it. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "scheduler/store/store.h"
#include "sim/trace/trace.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/sim/trace_bed.h"

/* The tables of docs/STORE.md that a trace is made of, with defaults where a trace does not look. */
#define VERSION_1                                                                                            \
	"CREATE TABLE meta(name TEXT PRIMARY KEY NOT NULL, value ANY) STRICT, WITHOUT ROWID;"                \
	"CREATE TABLE jobs(id INTEGER PRIMARY KEY, key TEXT, uid INTEGER NOT NULL, gid INTEGER DEFAULT 0,"   \
	" type TEXT NOT NULL, mode TEXT DEFAULT 'run', params TEXT NOT NULL, batches TEXT, cpus INTEGER,"    \
	" slo_s REAL, confidence REAL, max_memory_mb REAL, best_effort INTEGER NOT NULL,"                    \
	" state TEXT NOT NULL, verdict TEXT DEFAULT 'promised', reason TEXT,"                                \
	" submitted_ns INTEGER, started_ns INTEGER, ended_ns INTEGER, batch REAL, lr REAL,"                  \
	" predicted_s REAL, upper_s REAL, predicted_accuracy REAL, run_predicted_s REAL, run_upper_s REAL,"  \
	" work_s REAL, cpu_share REAL, disk_share REAL, accuracy REAL, exit_code INTEGER,"                   \
	" exit_signal INTEGER, max_rss_mb REAL, cpu_s REAL, policy TEXT, model TEXT, slo_outcome TEXT,"      \
	" tag TEXT) STRICT;"                                                                                 \
	"PRAGMA application_id=1347572292;"
#define VERSION_2                                                                                            \
	"ALTER TABLE jobs ADD COLUMN tenant TEXT; ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL "    \
	"DEFAULT 0; ALTER TABLE jobs ADD COLUMN epochs REAL; ALTER TABLE jobs ADD COLUMN model_s REAL;"      \
	"ALTER TABLE jobs ADD COLUMN may_stop INTEGER NOT NULL DEFAULT 0;"                                   \
	"ALTER TABLE jobs ADD COLUMN stopped_epoch REAL;"
#define VERSION_4                                                                                            \
	"ALTER TABLE jobs ADD COLUMN guard_s REAL; ALTER TABLE jobs ADD COLUMN foreseen_s REAL;"             \
	"ALTER TABLE jobs ADD COLUMN chance REAL;"
#define COLUMNS "(id,uid,type,params,batches,cpus,slo_s,confidence,best_effort,state,submitted_ns"

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	return 0;
}

static void run(sqlite3 *db, const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &message))
		fail_msg("%s: %s", message, sql);
}

static sqlite3 *make(const char *path, int version)
{
	sqlite3 *db = NULL;
	char sql[120];

	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	run(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF");
	run(db, VERSION_1);
	if (version > 1)
		run(db, VERSION_2);
	if (version > 3)
		run(db, VERSION_4);
	snprintf(sql, sizeof sql, "PRAGMA user_version=%d; INSERT INTO meta VALUES('schema_version',%d)",
		 version, version);
	run(db, sql);
	return db;
}

static void fill(sqlite3 *db)
{
	run(db, "INSERT INTO jobs" COLUMNS ",tenant,priority) VALUES"
		"(1,1000,'digits','{\"network\":\"lenet5\",\"epochs\":\"3..20\",\"samples\":12000}','[64,128]"
		"',2,300,0.9,0,'done',"
		"1763280000000000000,'lab',5),"
		"(2,1001,'digits','{\"network\":\"simplenet\",\"epochs\":4,\"flag\":true,\"cpus\":9}',NULL,1,"
		"NULL,NULL,1,'rejected',"
		"1763280002370000000,NULL,0),"
		"(3,1001,'digits','{}',NULL,1,NULL,NULL,1,'cancelled',1763280003000000000,NULL,0),"
		"(4,1001,'other','{}',NULL,1,12.5,NULL,0,'queued',1763279999000000000,NULL,0),"
		"(5,1001,'other','{}',NULL,1,12.5,NULL,0,'queued',NULL,NULL,0)");
}

static struct trace *history(const char *path)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	if (trace_read_history(path, &t, &err))
		fail_msg("refused: %s", err.text);
	return t;
}

static void refuse(const char *path, enum err_code code, const char *want)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	assert_int_equal(trace_read_history(path, &t, &err), -(int)code);
	if (!strstr(err.text, want))
		fail_msg("'%s' is not in '%s'", want, err.text);
	assert_null(t);
}

static void check_contents(const struct trace *t)
{
	const struct trace_job *j = &t->job[1];

	assert_int_equal(t->n_jobs, 3);
	assert_int_equal(t->job[0].id, 4); /* it came first */
	assert_int_equal(t->job[0].arrival_ns, 0);
	assert_int_equal(j->id, 1);
	assert_int_equal(j->arrival_ns, 1000000000);
	assert_true(j->slo_s == 300.0 && j->confidence == 0.9);
	assert_int_equal(j->priority, 5);
	assert_string_equal(t->tenant[j->tenant], "lab");
	assert_string_equal(t->type[j->type], "digits");
	assert_int_equal(t->kind[j->kind].cpus, 2);
	assert_int_equal(t->kind[j->kind].n_batches, 2);
	assert_true(t->kind[j->kind].epochs_from == 3.0 && t->kind[j->kind].epochs_to == 20.0);
	assert_string_equal(value(t, 1, "network"), "lenet5");
	assert_string_equal(value(t, 1, "samples"), "12000");
	assert_null(value(t, 1, "epochs"));
	j = &t->job[2];
	assert_int_equal(j->arrival_ns, 3370000000);
	assert_true(isnan(j->slo_s) && isnan(j->confidence) && j->best_effort);
	assert_string_equal(t->tenant[j->tenant], "uid-1001");
	assert_string_equal(value(t, 2, "epochs"), "4");
	assert_string_equal(value(t, 2, "flag"), "true");
	assert_int_equal(t->n_notices, 3);
	assert_string_equal(t->notice[0], "1 cancelled job is left out");
	assert_string_equal(t->notice[2], "parameter 'cpus' has the name of a field of traces: left out");
}

TEST(test_a_closed_database_is_read_and_left_alone)
{
	const char *dir = support_temp_dir(), *path = support_path(dir, "postrider.db");
	sqlite3 *db = make(path, 2);
	struct trace *t;
	struct stat before, after;

	fill(db);
	sqlite3_close(db);
	assert_int_equal(stat(path, &before), 0);
	t = history(dir); /* by its folder */
	check_contents(t);
	trace_free(t);
	t = history(path);
	check_contents(t);
	trace_free(t);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_not_equal(access(support_path(dir, "postrider.db-wal"), F_OK), 0);
	assert_int_not_equal(access(support_path(dir, "postrider.db-shm"), F_OK), 0);
}

TEST(test_a_database_in_use_is_read)
{
	const char *path = support_path(support_temp_dir(), "live.db");
	sqlite3 *db = make(path, 2);
	struct trace *t;

	fill(db);
	run(db, "BEGIN IMMEDIATE; INSERT INTO jobs" COLUMNS
		") VALUES(9,1,'x','{}',NULL,1,NULL,NULL,0,'queued',1)");
	t = history(path);
	check_contents(t); /* what is not committed is not there */
	trace_free(t);
	run(db, "COMMIT");
	t = history(path);
	assert_int_equal(t->n_jobs, 4);
	trace_free(t);
	sqlite3_close(db);
}

TEST(test_version_1_has_no_tenants)
{
	const char *path = support_path(support_temp_dir(), "old?#%.db");
	sqlite3 *db = make(path, 1);
	struct trace *t;

	run(db, "INSERT INTO jobs" COLUMNS
		") VALUES(7,1000,'x','{\"a\":1}','[64]',3,5,0.5,0,'done',1763280000000000000)");
	sqlite3_close(db);
	t = history(path);
	assert_int_equal(t->n_jobs, 1);
	assert_string_equal(t->tenant[0], "uid-1000");
	trace_free(t);
}

/* The scheduler gave it up, not its owner: under another policy it might have been in time. */
TEST(test_a_job_taken_by_chance_and_given_up_is_there_with_its_chance)
{
	const char *path = support_path(support_temp_dir(), "chance.db");
	sqlite3 *db = make(path, 4);
	struct trace *t;

	run(db, "INSERT INTO jobs" COLUMNS ",reason,chance) VALUES"
		"(7,1,'x','{}',NULL,3,5,0.9,0,'cancelled',1763280000000000000,'no_chance',0.4),"
		"(8,1,'x','{}',NULL,3,5,0.9,0,'cancelled',1763280000000000000,'cancelled',0.4)");
	sqlite3_close(db);
	t = history(path);
	assert_int_equal(t->n_jobs, 1);
	assert_int_equal(t->job[0].id, 7);
	assert_true(t->job[0].chance == 0.4);
	assert_string_equal(t->notice[0], "1 cancelled job is left out");
	trace_free(t);
}

TEST(test_files_that_are_no_history_are_refused)
{
	const char *dir = support_temp_dir(), *path = support_path(dir, "bad.db");
	struct err err = { 0 };
	sqlite3 *db;
	char newer[96];

	refuse(support_path(dir, "nowhere"), ERR_NOTFOUND, "no such file or folder");
	assert_int_equal(mkdir(support_path(dir, "empty"), 0700), 0);
	refuse(support_path(dir, "empty"), ERR_NOTFOUND, "a daemon keeps its history there");
	assert_int_equal(
		io_write_file(path, "this is no database at all, but long enough to look at", 54, &err), 0);
	refuse(path, ERR_FORMAT, "file is not a database");
	db = make(path, STORE_SCHEMA_VERSION + 1);
	sqlite3_close(db);
	snprintf(newer, sizeof newer, "has schema version %d, this postrider knows versions up to %d",
		 STORE_SCHEMA_VERSION + 1, STORE_SCHEMA_VERSION);
	refuse(path, ERR_FORMAT, newer);
	db = make(path, 2);
	run(db, "PRAGMA application_id=1");
	sqlite3_close(db);
	refuse(path, ERR_FORMAT, "is an SQLite database, but not one of a postriderd");
	db = make(path, 2);
	run(db, "DROP TABLE jobs");
	sqlite3_close(db);
	refuse(path, ERR_FORMAT, "no such table: jobs");
	db = make(path, 2);
	sqlite3_close(db);
	refuse(path, ERR_FORMAT, "there is no job in it");
}

TEST(test_damaged_rows_are_refused_by_job_and_field)
{
	static const struct {
		const char *row, *want;
	} cases[] = {
		{ "(7,1,'x','{',NULL,1,NULL,NULL,0,'done',1)", "job 7: field params: " },
		{ "(7,1,'x','[]',NULL,1,NULL,NULL,0,'done',1)", "job 7: field params: need a JSON object" },
		{ "(7,1,'x','{\"a\":{}}',NULL,1,NULL,NULL,0,'done',1)", "job 7: field a: need text" },
		{ "(7,1,'x','{\"epochs\":\"9..1\"}',NULL,1,NULL,NULL,0,'done',1)",
		  "job 7: field epochs: '9..1' is not" },
		{ "(7,1,'x','{}','64',1,NULL,NULL,0,'done',1)", "job 7: field batches: need a JSON array" },
		{ "(7,1,'x','{}','[\"a\"]',1,NULL,NULL,0,'done',1)", "job 7: field batches: 'nan' is not" },
		{ "(7,1,'x','{}',NULL,0,NULL,NULL,0,'done',1)", "job 7: field cpus: need 1 to 65536" },
		{ "(7,1,'x','{}',NULL,1,-3,NULL,0,'done',1)", "job 7: field slo_s: -3 is not above 0" },
		{ "(7,1,'x','{}',NULL,1,NULL,7,0,'done',1)", "job 7: field confidence: 7 is not between" },
		{ "(7,1,'x','{}',NULL,1,NULL,NULL,0,'done',-1)", "job 7: field arrival_s: " },
		{ "(-7,1,'x','{}',NULL,1,NULL,NULL,0,'done',1)", "field id: need a number above 0" },
	};
	const char *path = support_path(support_temp_dir(), "rows.db");
	char sql[400];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sqlite3 *db = make(path, 2);

		snprintf(sql, sizeof sql, "INSERT INTO jobs" COLUMNS ") VALUES%s", cases[i].row);
		run(db, sql);
		sqlite3_close(db);
		refuse(path, ERR_FORMAT, cases[i].want);
	}
}

TEST(test_equal_jobs_are_one_kind)
{
	const char *path = support_path(support_temp_dir(), "kinds.db");
	sqlite3 *db = make(path, 2);
	struct trace *t;

	run(db, "INSERT INTO jobs" COLUMNS ") VALUES"
		"(1,1,'x','{\"a\":1}',NULL,1,NULL,NULL,0,'done',1),"
		"(2,1,'x','{\"a\":1}',NULL,2,NULL,NULL,0,'done',2),"
		"(3,1,'x','{\"a\":1}','[64]',1,NULL,NULL,0,'done',3),"
		"(4,1,'x','{\"a\":2}',NULL,1,NULL,NULL,0,'done',4),"
		"(5,1,'x','{\"b\":1}',NULL,1,NULL,NULL,0,'done',5),"
		"(6,1,'x','{\"a\":1}',NULL,1,NULL,NULL,0,'done',6),"
		"(7,1,'x','{ \"a\" : 1 }',NULL,1,NULL,NULL,0,'done',7)");
	sqlite3_close(db);
	t = history(path);
	assert_int_equal(t->n_kinds, 5);
	assert_int_equal(t->job[5].kind, t->job[0].kind);
	assert_int_equal(t->job[6].kind, t->job[0].kind); /* written otherwise, and the same */
	assert_null(value(t, 0, "b"));
	assert_string_equal(value(t, 4, "b"), "1");
	trace_free(t);
}

TEST_WITH(test_no_allocation_that_fails_does_harm, NULL, disarm)
{
	const char *path = support_path(support_temp_dir(), "memory.db");
	sqlite3 *db = make(path, 2);

	fill(db);
	sqlite3_close(db);
	for (unsigned long k = 1;; k++) {
		struct trace *t = NULL;
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, k % 2);
		rc = trace_read_history(path, &t, &err);
		if (!mem_failed()) {
			mem_fail_at(0, false);
			assert_int_equal(rc, 0);
			assert_true(k > 10);
			trace_free(t);
			return;
		}
		mem_fail_at(0, false);
		assert_int_equal(rc, -ERR_NOMEM);
		assert_null(t);
	}
}

/* Whatever bytes are turned around: an error or a trace, never a crash. */
TEST(test_a_damaged_file_does_no_harm)
{
	const char *path = support_path(support_temp_dir(), "flip.db"),
		   *bad = support_path(support_temp_dir(), "flipped.db");
	sqlite3 *db = make(path, 2);
	char *text = NULL;
	size_t len = 0, refused = 0;
	struct err err = { 0 };

	fill(db);
	run(db, "PRAGMA journal_mode=DELETE");
	sqlite3_close(db);
	assert_int_equal(io_read_file(path, 1 << 20, &text, &len, &err), 0);
	for (size_t at = 0; at < len; at += at < 120 ? 1 : 211) {
		struct trace *t = NULL;

		text[at] = (char)~text[at];
		FILE *f = fopen(bad, "wb");

		assert_non_null(f);
		assert_int_equal(fwrite(text, 1, len, f), len);
		fclose(f);
		text[at] = (char)~text[at];
		err = (struct err){ 0 };
		if (trace_read_history(bad, &t, &err)) {
			assert_true(err.code != 0 && err.text[0]);
			refused++;
		}
		trace_free(t);
	}
	assert_true(refused > 10);
	free(text);
}
