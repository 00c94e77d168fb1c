/* The jobs of a daemon's database for another program, such as a replay of its history: read, never written,
 * also while the daemon runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/text/text.h"
#include "scheduler/store/rows.h"
#include "scheduler/store/schema.h"

#define PATH_SHOWN 200
#define MAX_PATH 4096

/* The file itself, or the one in this folder. */
static int find_file(const char *path, char *out, size_t size, struct err *err)
{
	struct stat st;
	int n;

	if (stat(path, &st) != 0)
		return err_fail(err, ERR_NOTFOUND, "%s: no such file or folder", text_tail(path, PATH_SHOWN));
	n = snprintf(out, size, "%s%s", path, S_ISDIR(st.st_mode) ? "/" STORE_FILE : "");
	if (n < 0 || (size_t)n >= size)
		return err_fail(err, ERR_ARG, "%s: the path is too long", text_tail(path, PATH_SHOWN));
	if (stat(out, &st) != 0)
		return err_fail(err, ERR_NOTFOUND, "%s: no such file; a daemon keeps its history there",
				text_tail(out, PATH_SHOWN));
	if (!S_ISREG(st.st_mode))
		return err_fail(err, ERR_FORMAT, "%s is not a regular file", text_tail(out, PATH_SHOWN));
	return 0;
}

static bool has_log(const char *path)
{
	char log[MAX_PATH + 8];
	struct stat st;

	snprintf(log, sizeof log, "%s-wal", path);
	return stat(log, &st) == 0;
}

static const char *text_at(sqlite3_stmt *st, int column)
{
	return (const char *)sqlite3_column_text(st, column);
}

static int read_input(sqlite3_stmt *st, const struct store_visitor *v, struct err *err)
{
	struct store_input in = { .at_ns = sqlite3_column_int64(st, 0),
				  .what = text_at(st, 1),
				  .job = (uint64_t)sqlite3_column_int64(st, 2),
				  .number = sqlite3_column_type(st, 3) == SQLITE_NULL
						    ? NAN
						    : sqlite3_column_double(st, 3),
				  .text = text_at(st, 4) };

	return in.what ? v->input(v->owner, &in, err) : err_nomem(err, "the inputs of decisions");
}

static int read_decision(sqlite3_stmt *st, const struct store_visitor *v, struct err *err)
{
	const char *moment = text_at(st, 2), *json = text_at(st, 3);

	return moment && json ? v->decision(v->owner, (uint64_t)sqlite3_column_int64(st, 0),
					    sqlite3_column_int64(st, 1), moment, json, err)
			      : err_nomem(err, "the decisions");
}

typedef int read_row(sqlite3_stmt *st, const struct store_visitor *v, struct err *err);

static int each_row(sqlite3 *db, const char *sql, read_row *read, const struct store_visitor *v,
		    struct err *err)
{
	sqlite3_stmt *st = NULL;
	int step = SQLITE_DONE, rc = db_prepare(db, sql, &st, err);

	while (rc == 0 && (step = sqlite3_step(st)) == SQLITE_ROW)
		rc = read(st, v, err);
	if (rc == 0 && step != SQLITE_DONE)
		rc = db_fail(db, step, "read", db_path(db), err);
	sqlite3_finalize(st);
	return rc;
}

/* Version 10 brought the inputs. */
static int visit_rest(sqlite3 *db, int64_t version, const struct store_visitor *v, struct err *err)
{
	int rc = 0;

	if (v->input && version >= 10)
		rc = each_row(db, "SELECT at_ns,what,job,number,text FROM inputs ORDER BY n", read_input, v,
			      err);
	if (!rc && v->decision)
		rc = each_row(db, "SELECT job,at_ns,moment,json FROM decisions ORDER BY rowid", read_decision,
			      v, err);
	return rc;
}

/* Without a log no daemon has the file open. Opening it in the usual way would make the log and its index in
 * the daemon's folder, as files of our user, so it is opened as a file that does not change. */
static int visit_once(const char *path, bool live, const struct store_visitor *v, struct err *err)
{
	struct job_query q = { .rest = " FROM jobs ORDER BY id" };
	sqlite3 *db = NULL;
	int64_t version = 0;
	int rc = v->begin(v->owner, path, err);

	if (rc == 0)
		rc = db_open(path, live ? DB_READ : DB_READ_FROZEN, &db, err);
	if (rc == 0)
		rc = schema_version(db, path, &version, err);
	if (rc == 0 && version == 0)
		rc = err_fail(err, ERR_FORMAT, "%s is empty, and not a database of a postriderd",
			      text_tail(path, PATH_SHOWN));
	if (rc == 0 && version > STORE_SCHEMA_VERSION)
		rc = err_fail(err, ERR_FORMAT,
			      "%s has schema version %lld, this postrider knows versions up to %d: use the "
			      "postrider that came with its daemon",
			      text_tail(path, PATH_SHOWN), (long long)version, STORE_SCHEMA_VERSION);
	q.version = (int)version;
	if (rc == 0) /* all of it as of one moment */
		rc = db_exec(db, "BEGIN", "read", err);
	if (rc == 0)
		rc = jobs_each(db, &q, v->job, v->owner, err);
	if (rc == 0)
		rc = visit_rest(db, version, v, err);
	db_close(db, false);
	return rc;
}

int store_visit(const char *path, const struct store_visitor *v, struct err *err)
{
	char file[MAX_PATH];
	struct err local = { 0 };
	struct err *e = err ? err : &local;
	int rc = find_file(path, file, sizeof file, e);
	bool live;

	if (rc)
		return rc;
	live = has_log(file);
	rc = visit_once(file, live, v, e);
	if (!live &&
	    has_log(file)) { /* a daemon has opened it meanwhile: what was read may be of several moments */
		*e = (struct err){ 0 };
		rc = visit_once(file, true, v, e);
	}
	return rc;
}
