/* The jobs of a daemon's database for another program, such as a replay of its history: read, never written,
 * also while the daemon runs. */
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
	if (rc == 0)
		rc = jobs_each(db, &q, v->job, v->owner, err);
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
