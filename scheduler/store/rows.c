#include "scheduler/store/rows.h"

#include <math.h>
#include <stdint.h>

/* key is the second: job_update_sql() leaves the first two out. */
const struct job_column job_column[JOB_COLUMNS] = {
#define COLUMN(kind, member)                                                                                 \
	{                                                                                                    \
#member, COLUMN_##kind, offsetof(struct store_job, member)                                   \
	}
	COLUMN(ID, id),
	COLUMN(TEXT, key),
	COLUMN(UNSIGNED, uid),
	COLUMN(UNSIGNED, gid),
	COLUMN(NEEDED, type),
	COLUMN(NEEDED, mode),
	COLUMN(NEEDED, params),
	COLUMN(TEXT, batches),
	COLUMN(UNSIGNED, cpus),
	COLUMN(NUMBER, slo_s),
	COLUMN(NUMBER, confidence),
	COLUMN(NUMBER, max_memory_mb),
	COLUMN(BOOL, best_effort),
	COLUMN(NEEDED, state),
	COLUMN(NEEDED, verdict),
	COLUMN(TEXT, reason),
	COLUMN(MOMENT, submitted_ns),
	COLUMN(MOMENT, started_ns),
	COLUMN(MOMENT, ended_ns),
	COLUMN(NUMBER, batch),
	COLUMN(NUMBER, lr),
	COLUMN(NUMBER, predicted_s),
	COLUMN(NUMBER, upper_s),
	COLUMN(NUMBER, predicted_accuracy),
	COLUMN(NUMBER, run_predicted_s),
	COLUMN(NUMBER, run_upper_s),
	COLUMN(NUMBER, work_s),
	COLUMN(NUMBER, cpu_share),
	COLUMN(NUMBER, disk_share),
	COLUMN(NUMBER, accuracy),
	COLUMN(EXIT, exit_code),
	COLUMN(SIGNAL, exit_signal),
	COLUMN(NUMBER, max_rss_mb),
	COLUMN(NUMBER, cpu_s),
	COLUMN(TEXT, policy),
	COLUMN(TEXT, model),
	COLUMN(TEXT, slo_outcome),
	COLUMN(TEXT, tag),
	COLUMN(NUMBER, epochs),
	COLUMN(NUMBER, model_s),
	COLUMN(TEXT, tenant),
	COLUMN(INT, priority),
	COLUMN(BOOL, may_stop),
	COLUMN(NUMBER, stopped_epoch),
	COLUMN(NUMBER, guard_s),
	COLUMN(NUMBER, foreseen_s),
#undef COLUMN
};

_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t), "COLUMN_UNSIGNED");

/* ---- statements ---- */

void job_names(struct strbuf *sql)
{
	for (size_t i = 0; i < JOB_COLUMNS; i++)
		strbuf_printf(sql, "%s%s", i ? "," : "", job_column[i].name);
}

void job_insert_sql(struct strbuf *sql)
{
	strbuf_puts(sql, "INSERT INTO jobs(");
	job_names(sql);
	strbuf_puts(sql, ") VALUES(");
	for (size_t i = 0; i < JOB_COLUMNS; i++)
		strbuf_printf(sql, "%s?%zu", i ? "," : "", i + 1);
	strbuf_puts(sql, ") ON CONFLICT(id) DO UPDATE SET ");
	for (size_t i = 1; i < JOB_COLUMNS; i++)
		strbuf_printf(sql, "%s%s=excluded.%s", i > 1 ? "," : "", job_column[i].name,
			      job_column[i].name);
}

void job_update_sql(struct strbuf *sql)
{
	strbuf_puts(sql, "UPDATE jobs SET ");
	for (size_t i = 2; i < JOB_COLUMNS; i++)
		strbuf_printf(sql, "%s%s=?%zu", i > 2 ? "," : "", job_column[i].name, i + 1);
	strbuf_puts(sql, " WHERE id=?1");
}

/* ---- values ---- */

static int bind_column(sqlite3_stmt *st, int at, const struct job_column *c, const struct store_job *j)
{
	const void *p = (const char *)j + c->offset;
	int n;

	switch (c->kind) {
	case COLUMN_ID: return sqlite3_bind_int64(st, at, (sqlite3_int64) * (const uint64_t *)p);
	case COLUMN_TEXT:
	case COLUMN_NEEDED: return sqlite3_bind_text(st, at, *(const char *const *)p, -1, SQLITE_STATIC);
	case COLUMN_NUMBER:
		return sqlite3_bind_double(st, at, *(const double *)p); /* SQLite makes NaN NULL */
	case COLUMN_MOMENT:
		if (*(const int64_t *)p == 0)
			return sqlite3_bind_null(st, at);
		return sqlite3_bind_int64(st, at, *(const int64_t *)p);
	case COLUMN_UNSIGNED: return sqlite3_bind_int64(st, at, *(const uint32_t *)p);
	case COLUMN_BOOL: return sqlite3_bind_int(st, at, *(const bool *)p);
	case COLUMN_EXIT:
	case COLUMN_SIGNAL:
		n = *(const int *)p;
		if (n == (c->kind == COLUMN_EXIT ? -1 : 0))
			return sqlite3_bind_null(st, at);
		return sqlite3_bind_int(st, at, n);
	case COLUMN_INT: return sqlite3_bind_int(st, at, *(const int *)p);
	}
	return SQLITE_MISUSE;
}

int job_bind(sqlite3_stmt *st, const struct store_job *j)
{
	for (size_t i = 0; i < JOB_COLUMNS; i++) {
		int rc = bind_column(st, (int)i + 1, &job_column[i], j);

		if (rc)
			return rc;
	}
	return SQLITE_OK;
}

static double number_at(sqlite3_stmt *st, int at)
{
	return sqlite3_column_type(st, at) == SQLITE_NULL ? NAN : sqlite3_column_double(st, at);
}

int job_load(sqlite3_stmt *st, struct store_job *out, struct err *err)
{
	for (int i = 0; i < JOB_COLUMNS; i++) {
		const struct job_column *c = &job_column[i];
		void *p = (char *)out + c->offset;
		bool null = sqlite3_column_type(st, i) == SQLITE_NULL;

		switch (c->kind) {
		case COLUMN_ID: *(uint64_t *)p = (uint64_t)sqlite3_column_int64(st, i); break;
		case COLUMN_TEXT:
		case COLUMN_NEEDED:
			*(const char **)p = (const char *)sqlite3_column_text(st, i);
			if (!null && !*(const char **)p)
				return err_fail(err, ERR_NOMEM, "out of memory to read job %llu",
						(unsigned long long)out->id);
			if (null && c->kind == COLUMN_NEEDED)
				return err_fail(err, ERR_FORMAT,
						"the row of job %llu has no %s: the database is damaged",
						(unsigned long long)out->id, c->name);
			break;
		case COLUMN_NUMBER: *(double *)p = number_at(st, i); break;
		case COLUMN_MOMENT: *(int64_t *)p = sqlite3_column_int64(st, i); break;
		case COLUMN_UNSIGNED: *(uint32_t *)p = (uint32_t)sqlite3_column_int64(st, i); break;
		case COLUMN_BOOL: *(bool *)p = sqlite3_column_int(st, i) != 0; break;
		case COLUMN_EXIT: *(int *)p = null ? -1 : sqlite3_column_int(st, i); break;
		case COLUMN_SIGNAL:
		case COLUMN_INT: *(int *)p = sqlite3_column_int(st, i); break;
		}
	}
	return 0;
}
