/* The tables and their versions, and whether a file is ours and whole. See schema.h. */
#define _GNU_SOURCE
#include "scheduler/store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/text/text.h"
#include "scheduler/store/rows.h"
#include "scheduler/store/store.h"

#define PATH_SHOWN 200
#define CHECK_ALL_BYTES (64 << 20) /* a larger file is not read through at every start */

/* ---- versions ---- */

/* The columns of a job come from the table in jobs/record.c: those that the version brought. */
static int exec_with_columns(sqlite3 *db, const char *before, int version, const char *after)
{
	struct strbuf sql = { 0 };
	int rc;

	strbuf_puts(&sql, before);
	job_columns_sql(version, &sql);
	strbuf_puts(&sql, after);
	rc = sql.failed ? SQLITE_NOMEM : sqlite3_exec(db, strbuf_text(&sql), NULL, NULL, NULL);
	strbuf_release(&sql);
	return rc;
}

/* meta holds what concerns the file as a whole. `batch` counts the hand-overs of the loop that are in the
 * file: a writer that does not know whether its commit arrived looks there. `last_id` outlives jobs that are
 * deleted. */
static int make_version_1(sqlite3 *db)
{
	return exec_with_columns(
		db,
		"CREATE TABLE meta(name TEXT PRIMARY KEY NOT NULL, value ANY) STRICT, WITHOUT ROWID;"
		"INSERT INTO meta "
		"VALUES('created',strftime('%Y-%m-%dT%H:%M:%SZ','now')),('batch',0),('last_id',0);"
		"CREATE TABLE jobs(",
		1,
		") STRICT;"
		/* Each index ends in the id, so it also gives the newest first. */
		"CREATE INDEX jobs_state ON jobs(state);"
		"CREATE INDEX jobs_uid ON jobs(uid);"
		"CREATE INDEX jobs_type ON jobs(type);"
		"CREATE UNIQUE INDEX jobs_key ON jobs(uid,key) WHERE key IS NOT NULL;"
		"CREATE TABLE decisions(job INTEGER NOT NULL, at_ns INTEGER NOT NULL, moment TEXT NOT NULL,"
		" json TEXT NOT NULL) STRICT;"
		"CREATE INDEX decisions_job ON decisions(job);"
		/* Many small rows: kept where they are looked for, without a second tree. */
		"CREATE TABLE estimates(job INTEGER NOT NULL, n INTEGER NOT NULL, at_ns INTEGER NOT NULL,"
		" start_s REAL, end_s REAL, end_low_s REAL, end_high_s REAL, why TEXT NOT NULL,"
		" PRIMARY KEY(job,n)) STRICT, WITHOUT ROWID;"
		"CREATE TABLE observations(job INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, type TEXT NOT "
		"NULL,"
		" columns TEXT NOT NULL, time_s REAL, accuracy REAL) STRICT;");
}

/* A job's tenant, its free epochs, and what bounds that adapt need. Jobs of version 1 have none of it. */
static int make_version_2(sqlite3 *db)
{
	return exec_with_columns(db, "", 2, "");
}

/* The run time under the load that was predicted at the start, and its bound; bounds learn from it. */
static int make_version_3(sqlite3 *db)
{
	return exec_with_columns(db, "", 3, "");
}

/* The chance for which a job is taken without a promise. */
static int make_version_4(sqlite3 *db)
{
	return exec_with_columns(db, "", 4, "");
}

/* Observations in columns with types, instead of one JSON text each, and why nothing is to be learnt from one
 * (`doubt`). Observations of version 4, which accepted any, are checked again: a time 20 times off what the
 * model said, or an accuracy that no schema can mean, is in doubt. A text that is not JSON is left out: it
 * cannot be learnt from either. Jobs have an identity that is drawn once. */
static int make_version_5(sqlite3 *db)
{
	return exec_with_columns(
		db, "", 5,
		"CREATE TABLE observed_values(job INTEGER NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL,"
		" number REAL, word TEXT, PRIMARY KEY(job,n)) STRICT, WITHOUT ROWID;"
		"INSERT INTO observed_values SELECT o.job, row_number() OVER (PARTITION BY o.job ORDER BY "
		"j.id),"
		" j.key, CASE WHEN j.type IN ('integer','real') THEN CAST(j.atom AS REAL) END,"
		" CASE j.type WHEN 'text' THEN j.atom WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' END"
		" FROM observations o, json_each(CASE WHEN json_valid(o.columns) THEN o.columns ELSE '{}' "
		"END) j;"
		"CREATE TABLE observations_5(job INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, type TEXT NOT "
		"NULL,"
		" doubt TEXT, time_s REAL, accuracy REAL) STRICT;"
		"INSERT INTO observations_5 SELECT o.job,o.at_ns,o.type,"
		" CASE WHEN NOT json_valid(o.columns) THEN 'damaged'"
		" WHEN o.time_s IS NULL OR o.time_s<=0 OR o.time_s<j.model_s/20 OR o.time_s>j.model_s*20 "
		"THEN 'time'"
		" WHEN abs(o.accuracy)>1e6 THEN 'accuracy' END,"
		" o.time_s,o.accuracy FROM observations o LEFT JOIN jobs j ON j.id=o.job;"
		"DROP TABLE observations;"
		"ALTER TABLE observations_5 RENAME TO observations;");
}

/* What a job waits for, how often a run that fails is repeated, and its number in an array. */
static int make_version_6(sqlite3 *db)
{
	return exec_with_columns(db, "", 6, "");
}

/* The devices of a job. */
static int make_version_7(sqlite3 *db)
{
	return exec_with_columns(db, "", 7, "");
}

/* What a job is worth beside others. */
static int make_version_8(sqlite3 *db)
{
	return exec_with_columns(db, "", 8, "");
}

/* Further jobs that a job waits for. */
static int make_version_9(sqlite3 *db)
{
	return exec_with_columns(db, "", 9, "");
}

/* What decisions were made from, so that they can be made again. */
static int make_version_10(sqlite3 *db)
{
	return sqlite3_exec(
		db,
		"CREATE TABLE inputs(n INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, what TEXT NOT "
		"NULL, job INTEGER, number REAL, text TEXT) STRICT",
		NULL, NULL, NULL);
}

/* How a job was steered. */
static int make_version_11(sqlite3 *db)
{
	return exec_with_columns(db, "", 11, "");
}

/* steps[i] leads from version i to i + 1. A change of the tables is one more entry here, and one more in
 * STORE_SCHEMA_VERSION; entries that were ever released stay as they are. */
static schema_step *const steps[] = { make_version_1, make_version_2,  make_version_3, make_version_4,
				      make_version_5, make_version_6,  make_version_7, make_version_8,
				      make_version_9, make_version_10, make_version_11 };
_Static_assert(sizeof steps / sizeof *steps == STORE_SCHEMA_VERSION, "a step for every version");

int schema_version(sqlite3 *db, const char *path, int64_t *out, struct err *err)
{
	int64_t application = 0, version = 0, objects = 0, recorded = 0;
	int rc;

	if ((rc = db_number(db, "PRAGMA application_id", &application, err)) ||
	    (rc = db_number(db, "PRAGMA user_version", &version, err)) ||
	    (rc = db_number(db, "SELECT count(*) FROM sqlite_schema", &objects, err)))
		return rc;
	if (objects == 0 && application == 0 && version == 0) {
		*out = 0;
		return 0;
	}
	if (application != STORE_APPLICATION || version <= 0)
		return err_fail(err, ERR_FORMAT,
				"%s is an SQLite database, but not one of a postriderd: move it away",
				text_tail(path, PATH_SHOWN));
	rc = db_number(db, "SELECT value FROM meta WHERE name='schema_version'", &recorded, err);
	if (rc == 0 && recorded != version)
		return err_fail(err, ERR_FORMAT,
				"%s is damaged: its header says version %lld, its table `meta` version %lld: "
				"restore a copy",
				text_tail(path, PATH_SHOWN), (long long)version, (long long)recorded);
	*out = version;
	return rc;
}

static int record_version(sqlite3 *db, int version, struct err *err)
{
	char sql[256];

	snprintf(sql, sizeof sql,
		 "INSERT OR REPLACE INTO meta VALUES('schema_version',%d);"
		 "PRAGMA user_version=%d; PRAGMA application_id=%d",
		 version, version, STORE_APPLICATION);
	return db_exec(db, sql, "write the version of", err);
}

int schema_migrate(sqlite3 *db, const char *path, schema_step *const *step, int n_steps, struct err *err)
{
	int64_t version = 0;
	int rc = schema_version(db, path, &version, err);

	if (rc)
		return rc;
	if (version > n_steps)
		return err_fail(err, ERR_FORMAT,
				"%s has schema version %lld, this postriderd knows versions up to %d: start "
				"the newer "
				"postriderd that made it, or give this one another state_dir",
				text_tail(path, PATH_SHOWN), (long long)version, n_steps);
	if (version == n_steps)
		return 0;
	if ((rc = db_exec(db, "BEGIN IMMEDIATE", "migrate", err)))
		return rc;
	for (; rc == 0 && version < n_steps; version++)
		if ((rc = step[version](db)))
			rc = db_fail(db, rc, "migrate", path, err);
	if (rc == 0)
		rc = record_version(db, n_steps, err);
	if (rc == 0)
		rc = db_exec(db, "COMMIT", "migrate", err);
	if (rc)
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

/* ---- opening ---- */

/* Made by us, before SQLite sees it: SQLite would let all users read it. Its log and shared memory get the
 * same mode. */
static int make_file(const char *path, struct err *err)
{
	char dir[4096];
	struct stat st;
	int fd;

	if (stat(path, &st) == 0) {
		if (S_ISREG(st.st_mode))
			return 0;
		return err_fail(err, ERR_FORMAT, "%s is %s, not a database: move it away",
				text_tail(path, PATH_SHOWN),
				S_ISDIR(st.st_mode) ? "a folder" : "a special file");
	}
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_fail(err, errno == EACCES || errno == EROFS || errno == EPERM ? ERR_PERM : ERR_IO,
				"cannot make %s: %s", text_tail(path, PATH_SHOWN), strerror(errno));
	close(fd);
	snprintf(dir, sizeof dir, "%s", path);
	fd = open(dirname(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0) { /* else a power cut takes the whole file with it */
		err_fail(err, ERR_IO, "cannot sync the folder of %s: %s", text_tail(path, PATH_SHOWN),
			 strerror(errno));
		if (fd >= 0)
			close(fd);
		return -ERR_IO;
	}
	close(fd);
	return 0;
}

/* SQLite takes what is missing of the last page for zeros. The log comes first: a file that was being
 * extended when the power failed is short until its log is moved into it. Where another program reads, that
 * cannot be done, nor told. */
static int check_length(sqlite3 *db, const char *path, int64_t bytes, struct err *err)
{
	int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	struct stat st;

	if ((rc & 0xff) == SQLITE_BUSY)
		return 0;
	if (rc)
		return db_fail(db, rc, "move the log into", path, err);
	if (stat(path, &st) < 0)
		return err_fail(err, ERR_IO, "cannot look at %s: %s", text_tail(path, PATH_SHOWN),
				strerror(errno));
	if (st.st_size >= bytes)
		return 0;
	return err_fail(err, ERR_FORMAT, "%s is damaged: it was cut at %lld of %lld bytes%s",
			text_tail(path, PATH_SHOWN), (long long)st.st_size, (long long)bytes,
			DB_DAMAGED_ADVICE);
}

/* Reads a small file through. Of a large one only what the start needs anyhow: damage elsewhere is found when
 * it is read. */
static int check_file(sqlite3 *db, const char *path, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int64_t bytes = 0;
	char found[200] = "";
	int rc = db_number(db, "SELECT page_count*page_size FROM pragma_page_count, pragma_page_size", &bytes,
			   err);

	if (rc || (rc = check_length(db, path, bytes, err)))
		return rc;
	rc = db_prepare(db, bytes <= CHECK_ALL_BYTES ? "PRAGMA quick_check(1)" : "PRAGMA quick_check(meta)",
			&st, err);
	if (rc)
		return rc;
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW && sqlite3_column_text(st, 0)) {
		text_printable((const char *)sqlite3_column_text(st, 0), found, sizeof found);
		rc = 0;
		if (strcmp(found, "ok") != 0)
			rc = err_fail(err, ERR_FORMAT, "%s is damaged: %s%s", text_tail(path, PATH_SHOWN),
				      found, DB_DAMAGED_ADVICE);
	} else {
		rc = db_fail(db, rc == SQLITE_ROW ? SQLITE_NOMEM : rc, "check", path, err);
	}
	sqlite3_finalize(st);
	return rc;
}

/* journal_mode answers with the mode that is now in force, and not with an error, where it could not change
 * it. */
static int use_wal(sqlite3 *db, const char *path, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = db_prepare(db, "PRAGMA journal_mode=WAL", &st, err);
	const char *mode;

	if (rc)
		return rc;
	rc = sqlite3_step(st);
	mode = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
	if (rc != SQLITE_ROW)
		rc = db_fail(db, rc, "switch to write-ahead logging", path, err);
	else if (!mode || sqlite3_stricmp(mode, "wal") != 0)
		rc = err_fail(err, ERR_IO,
			      "%s cannot have a write-ahead log (journal mode %s): use a local file system",
			      text_tail(path, PATH_SHOWN), mode ? mode : "unknown");
	else
		rc = 0;
	sqlite3_finalize(st);
	return rc;
}

static int set_up_writing(sqlite3 *db, const char *path, enum store_durability durability, struct err *err)
{
	static const char *const synchronous[] = {
		[DURABLE_ALWAYS] = "PRAGMA synchronous=FULL",
		[DURABLE_INTERVAL] = "PRAGMA synchronous=NORMAL",
		[DURABLE_NONE] = "PRAGMA synchronous=OFF",
	};
	int rc;

	if (sqlite3_db_readonly(db, "main") == 1)
		return db_fail(NULL, SQLITE_READONLY, "write", path, err);
	if ((rc = use_wal(db, path, err)) || (rc = db_exec(db, synchronous[durability], "set up", err)))
		return rc;
	/* Two MB of cache hold the ends of all trees, which is where rows go; with 16 MB the daemon's memory
	 * grew by as much over its first thousands of jobs. */
	return db_exec(db, "PRAGMA journal_size_limit=67108864", "set up", err);
}

/* Files that give free pages back. An old file is rewritten for that, once. A large one is left as it is,
 * because that would take long: its free pages are used again, but the file does not shrink. */
static int use_vacuum(sqlite3 *db, const char *path, bool fresh, struct err *err)
{
	int64_t mode = 0, bytes = 0;
	int rc = db_number(db, "PRAGMA auto_vacuum", &mode, err);

	if (rc || mode)
		return rc;
	if (fresh)
		return db_exec(db, "PRAGMA auto_vacuum=INCREMENTAL", "set up", err);
	rc = db_number(db, "SELECT page_count*page_size FROM pragma_page_count, pragma_page_size", &bytes,
		       err);
	if (rc)
		return rc;
	if (bytes > CHECK_ALL_BYTES)
		log_info("%s does not shrink when jobs are forgotten; to change that, stop the daemon and "
			 "run: "
			 "sqlite3 FILE 'PRAGMA auto_vacuum=INCREMENTAL; VACUUM'",
			 text_tail(path, PATH_SHOWN));
	else if (sqlite3_exec(db, "PRAGMA auto_vacuum=INCREMENTAL; VACUUM", NULL, NULL, NULL))
		log_warn("%s will not shrink when jobs are forgotten: %s", text_tail(path, PATH_SHOWN),
			 sqlite3_errmsg(db));
	return 0;
}

int schema_open(const char *path, enum store_durability durability, sqlite3 **out, struct err *err)
{
	int64_t version = 0;
	sqlite3 *db = NULL;
	int rc = make_file(path, err);

	if (rc || (rc = db_open(path, DB_WRITE, &db, err)))
		return rc;
	/* Whose file it is comes before any change to it. */
	rc = schema_version(db, path, &version, err);
	if (rc == 0 && version == 0)
		rc = use_vacuum(db, path, true, err);
	if (rc == 0 && version <= STORE_SCHEMA_VERSION) /* else it is refused below */
		rc = set_up_writing(db, path, durability, err);
	if (rc == 0 && version > 0 && version <= STORE_SCHEMA_VERSION)
		rc = check_file(db, path, err);
	if (rc == 0 && version > 0 && version <= STORE_SCHEMA_VERSION)
		rc = use_vacuum(db, path, false, err);
	if (rc || (rc = schema_migrate(db, path, steps, STORE_SCHEMA_VERSION, err))) {
		db_close(db, false);
		return rc;
	}
	*out = db;
	return 0;
}

int schema_reopen(const char *path, enum store_durability durability, sqlite3 **out, struct err *err)
{
	int64_t version = 0;
	sqlite3 *db = NULL;
	int rc = db_open(path, DB_WRITE, &db, err);

	if (rc)
		return rc;
	if ((rc = schema_version(db, path, &version, err)) == 0 && version != STORE_SCHEMA_VERSION)
		rc = err_fail(err, ERR_FORMAT,
			      "%s is not the file it was: it has schema version %lld instead of %d",
			      text_tail(path, PATH_SHOWN), (long long)version, STORE_SCHEMA_VERSION);
	if (rc == 0)
		rc = set_up_writing(db, path, durability, err);
	if (rc) {
		db_close(db, false);
		return rc;
	}
	*out = db;
	return 0;
}
