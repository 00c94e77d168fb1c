/* Which jobs and observations are not to be kept any longer, by the rules of keep.h. The reader finds them;
 * the daemon removes their folders first, then has their rows deleted (store_forget()). So a crash in between
 * leaves a row without a folder, which is found again, and never a folder without a row.
 *
 * Observations are not deleted with their jobs, because models are trained on them for longer. A training
 * that is under way has its own copy of the rows. */
#include <stdio.h>
#include <string.h>

#include "scheduler/store/internal.h"
#include "scheduler/store/schema.h"

#define ENDED "state NOT IN ('queued','running','rejected')"
#define SETTLED "ifnull(ended_ns,submitted_ns)<?2"
#define NO_KEY "(key IS NULL OR submitted_ns<?3)"

/* The statement looks at the oldest jobs, at rejected ones and at indexes: it does not read all rows. Age
 * looks at the oldest few thousand only; what is behind them comes up when they are gone. A user's own limit
 * counts all rows of the user, and takes jobs with a key, too. It goes by the index: to sort the rows of a
 * user with 50,000 jobs took megabytes, every 250 jobs. */
static const char jobs_sql[] =
	"SELECT id,uid,started_ns,identity,key FROM jobs WHERE id IN ("
	"SELECT id FROM (SELECT id FROM jobs WHERE state='rejected' AND submitted_ns<?4 ORDER BY id LIMIT "
	"?1)"
	" UNION SELECT id FROM (SELECT id FROM jobs WHERE state='rejected' ORDER BY id"
	" LIMIT min(?1,max(0,(SELECT count(*) FROM jobs WHERE state='rejected')-?5)))"
	" UNION SELECT id FROM (SELECT id,row_number() OVER (PARTITION BY uid ORDER BY id DESC) AS r FROM "
	"jobs WHERE state='rejected') WHERE r>?6"
	" UNION SELECT id FROM (SELECT id,ended_ns,submitted_ns,key FROM jobs WHERE " ENDED
	" ORDER BY id LIMIT 4*?1) WHERE ended_ns<?7 AND " NO_KEY
	" UNION SELECT id FROM (SELECT id FROM (SELECT id,ended_ns,submitted_ns,key FROM jobs WHERE " ENDED
	" ORDER BY id LIMIT max(0,(SELECT count(*) FROM jobs WHERE " ENDED ")-?8)) WHERE " SETTLED
	" AND " NO_KEY " LIMIT ?1)"
	" UNION SELECT j.id FROM (SELECT uid FROM jobs GROUP BY uid HAVING count(*)>?9) u JOIN jobs j"
	" ON j.uid=u.uid AND j.id<="
	"(SELECT id FROM jobs k WHERE k.uid=u.uid ORDER BY id DESC LIMIT 1 OFFSET ?9)"
	") AND state NOT IN ('queued','running') AND (state='rejected' OR " SETTLED ") ORDER BY id LIMIT ?1";

static const char observations_sql[] =
	"SELECT job FROM (SELECT job,row_number() OVER (PARTITION BY type ORDER BY job DESC) AS r"
	" FROM observations) WHERE r>?10 LIMIT ?1";

static int64_t ago(int64_t now_ns, double s)
{
	return s > 0.0 && s < 9e9 ? now_ns - (int64_t)(s * 1e9) : INT64_MIN;
}

static void bind(sqlite3_stmt *st, const struct store_filter *f)
{
	const struct store_keep *k = &f->keep;
	const int64_t value[] = { STORE_MAX_EXPIRED,           ago(f->now_ns, KEEP_SETTLED_S),
				  ago(f->now_ns, KEEP_KEYS_S), ago(f->now_ns, k->rejected_s),
				  (int64_t)k->rejected,        (int64_t)k->rejected_per_uid,
				  ago(f->now_ns, k->ended_s),  (int64_t)k->ended,
				  (int64_t)k->ended_per_uid,   (int64_t)k->observations };

	for (int i = 0; i < (int)(sizeof value / sizeof *value); i++)
		sqlite3_bind_int64(st, i + 1, value[i]); /* a number that a statement has not is no harm */
}

static void copy(char *to, size_t size, sqlite3_stmt *st, int column)
{
	const unsigned char *text = sqlite3_column_text(st, column);

	snprintf(to, size, "%s", text ? (const char *)text : "");
}

static int put_all(sqlite3 *db, struct question *q, const char *sql, bool observation)
{
	struct store_expired e;
	sqlite3_stmt *st = NULL;
	int step, rc = db_prepare(db, sql, &st, &q->err);

	if (rc)
		return rc;
	bind(st, &q->filter);
	while ((step = sqlite3_step(st)) == SQLITE_ROW) {
		memset(&e, 0, sizeof e); /* the gaps too: they are copied */
		e.job = (uint64_t)sqlite3_column_int64(st, 0);
		e.observation = observation;
		if (!observation) {
			e.uid = (uid_t)sqlite3_column_int64(st, 1);
			e.started = sqlite3_column_type(st, 2) != SQLITE_NULL;
			copy(e.identity, sizeof e.identity, st, 3);
			copy(e.key, sizeof e.key, st, 4);
		}
		strbuf_add(&q->text, &e, sizeof e);
	}
	if (step != SQLITE_DONE)
		rc = db_fail(db, step, "read", STORE_FILE, &q->err);
	sqlite3_finalize(st);
	return rc;
}

int expired_answer(sqlite3 *db, struct question *q)
{
	int64_t n = 0;
	int rc = put_all(db, q, jobs_sql, false);

	if (rc == 0) /* so that the types are counted only where there may be too many */
		rc = db_number(db, "SELECT count(*) FROM observations", &n, &q->err);
	if (rc == 0 && (uint64_t)n > q->filter.keep.observations)
		rc = put_all(db, q, observations_sql, true);
	return rc;
}
