/* One connection to a database file: opening, statements, errors in words. See db.h. */
#define _GNU_SOURCE
#include "scheduler/store/db.h"

#include <errno.h>
#include <string.h>

#include "common/strbuf.h"
#include "common/text/text.h"

#define PATH_SHOWN 200
#define BUSY_TIMEOUT_MS 5000 /* an sqlite3 shell may hold the file for a moment */

/* ---- errors ---- */

static enum err_code code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_NOMEM: return ERR_NOMEM;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT: return ERR_FORMAT;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_INTERRUPT: return ERR_BUSY;
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_AUTH: return ERR_PERM;
	default: return ERR_IO;
	}
}

/* What can be done about it. */
static const char *advice(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_FULL: return "; make room on the disk";
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return "; another program holds the file: end it";
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT: return DB_DAMAGED_ADVICE;
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_AUTH: return "; the daemon's user must own and may write the file";
	default: return "";
	}
}

int db_fail(sqlite3 *db, int rc, const char *what, const char *path, struct err *err)
{
	int extended = db ? sqlite3_extended_errcode(db) : rc, error = db ? sqlite3_system_errno(db) : 0;
	/* The connection remembers its last error: it is only of interest where it is this one. */
	bool same = db && (extended & 0xff) == (rc & 0xff);
	bool system = same && error && ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN);
	const char *reason = same ? sqlite3_errmsg(db) : sqlite3_errstr(rc);

	return err_fail(err, system && (error == EACCES || error == EROFS) ? ERR_PERM : code_of(rc),
			"cannot %s %s: %s%s%s%s%s", what, text_tail(path, PATH_SHOWN), reason,
			system ? " (" : "", system ? strerror(error) : "", system ? ")" : "", advice(rc));
}

const char *db_path(sqlite3 *db)
{
	const char *path = sqlite3_db_filename(db, "main");

	return path ? path : "the database";
}

/* ---- connections ---- */

/* The path as SQLite's URI of a file that does not change while it is open. */
static void put_frozen_uri(const char *path, struct strbuf *uri)
{
	strbuf_puts(uri, *path == '/' ? "file://" : "file:");
	for (const char *s = path; *s; s++) {
		if (strchr("?#%", *s))
			strbuf_printf(uri, "%%%02x", (unsigned char)*s);
		else
			strbuf_add(uri, s, 1);
	}
	strbuf_puts(uri, "?immutable=1");
}

int db_open(const char *path, enum db_use use, sqlite3 **out, struct err *err)
{
	int flags = (use == DB_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX |
		    SQLITE_OPEN_EXRESCODE | (use == DB_READ_FROZEN ? SQLITE_OPEN_URI : 0);
	struct strbuf uri = { 0 };
	sqlite3 *db = NULL;
	int rc = SQLITE_NOMEM;

	if (use == DB_READ_FROZEN)
		put_frozen_uri(path, &uri);
	if (!uri.failed)
		rc = sqlite3_open_v2(uri.text ? uri.text : path, &db, flags, NULL);
	strbuf_release(&uri);
	if (rc) {
		rc = db_fail(db, rc, "open", path, err);
		sqlite3_close(db);
		return rc;
	}
	sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
	/* A file made to harm us must not run anything: no triggers, no views, no odd functions. */
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	/* No memory-mapped reading: an I/O error would arrive as a signal. The cache of a reader is small: it
	 * walks through indexes, which the kernel holds as well. */
	rc = db_exec(db,
		     use == DB_WRITE ? "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA cache_size=-2048"
				     : "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA cache_size=-512",
		     "set up", err);
	if (rc) {
		sqlite3_close(db);
		return rc;
	}
	*out = db;
	return 0;
}

void db_close(sqlite3 *db, bool checkpoint)
{
	if (!db)
		return;
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !checkpoint, NULL);
	sqlite3_close(db);
}

int db_exec(sqlite3 *db, const char *sql, const char *what, struct err *err)
{
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

	return rc ? db_fail(db, rc, what, db_path(db), err) : 0;
}

int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out, struct err *err)
{
	int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);

	return rc ? db_fail(db, rc, "read", db_path(db), err) : 0;
}

int db_number(sqlite3 *db, const char *sql, int64_t *out, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = db_prepare(db, sql, &st, err);

	if (rc)
		return rc;
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
		*out = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
		rc = 0;
	} else {
		rc = db_fail(db, rc, "read", db_path(db), err);
	}
	sqlite3_finalize(st);
	return rc;
}
