/* What the daemon reads when it starts, through a connection that is closed again. */
#include <sqlite3.h>

#include "scheduler/store/internal.h"
#include "scheduler/store/rows.h"
#include "scheduler/store/schema.h"

typedef int job_fn(void *owner, const struct job_record *j, struct err *err);

static int each_job(struct store *s, const char *rest, int64_t number, job_fn *fn, void *owner,
		    struct err *err)
{
	struct job_query q = { .version = STORE_SCHEMA_VERSION, .rest = rest, .number = number };
	sqlite3 *db = NULL;
	int rc = db_open(s->path, DB_READ, &db, err);

	if (rc == 0)
		rc = jobs_each(db, &q, fn, owner, err);
	db_close(db, false);
	return rc;
}

int store_each_live(struct store *s, job_fn *fn, void *owner, struct err *err)
{
	return each_job(s, " FROM jobs INDEXED BY jobs_state WHERE state IN ('queued','running') ORDER BY id",
			0, fn, owner, err);
}

int store_each_finished(struct store *s, size_t n, job_fn *fn, void *owner, struct err *err)
{
	return each_job(s,
			" FROM jobs WHERE id IN (SELECT id FROM jobs WHERE +state NOT IN ('queued','running')"
			" ORDER BY id DESC LIMIT ?1) ORDER BY id",
			n > INT64_MAX ? INT64_MAX : (int64_t)n, fn, owner, err);
}

/* From the newest back: how many jobs there are in all does not matter. */
int store_each_key(struct store *s, int64_t since_ns,
		   int (*fn)(void *owner, uid_t uid, const char *key, uint64_t job, struct err *err),
		   void *owner, struct err *err)
{
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	int step = SQLITE_DONE;
	int rc = db_open(s->path, DB_READ, &db, err);
	bool enough = false;

	if (rc == 0)
		rc = db_prepare(db, "SELECT id,uid,key,submitted_ns FROM jobs ORDER BY id DESC", &st, err);
	while (rc == 0 && !enough && (step = sqlite3_step(st)) == SQLITE_ROW) {
		const char *key = (const char *)sqlite3_column_text(st, 2);
		int64_t submitted_ns = sqlite3_column_int64(st, 3);

		if (!key && sqlite3_column_type(st, 2) != SQLITE_NULL)
			rc = err_fail(err, ERR_NOMEM, "out of memory to read the database");
		else if (key && submitted_ns >= since_ns)
			rc = fn(owner, (uid_t)sqlite3_column_int64(st, 1), key,
				(uint64_t)sqlite3_column_int64(st, 0), err);
		enough = submitted_ns / 2 < since_ns / 2 - CLOCK_STEP_NS / 2; /* halves cannot overflow */
	}
	if (rc == 0 && !enough && step != SQLITE_DONE)
		rc = db_fail(db, step, "read", s->path, err);
	sqlite3_finalize(st);
	db_close(db, false);
	return rc;
}
