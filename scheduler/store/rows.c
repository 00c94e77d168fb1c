/* A job's row: statements, binding and reading, all made from the table of fields in jobs/record.c. */
#include "scheduler/store/rows.h"

#include <math.h>
#include <string.h>
#include <stdint.h>

#include "scheduler/store/db.h"
#include "scheduler/store/store.h"

/* The next field that has a column, or NULL behind the last; NULL begins. Columns count from 1 in this order.
 */
static const struct job_field *next_column(const struct job_field *f)
{
	f = f ? f + 1 : job_field;
	while (f < job_field + n_job_fields && !f->column)
		f++;
	return f < job_field + n_job_fields ? f : NULL;
}

static bool is_text(const struct job_field *f)
{
	return f->kind == FIELD_TEXT || f->kind == FIELD_JSON || f->kind == FIELD_STATE ||
	       f->kind == FIELD_VERDICT || f->kind == FIELD_OUTCOME;
}

static bool is_real(const struct job_field *f)
{
	return f->kind == FIELD_FIXED || f->kind == FIELD_NUMBER;
}

/* ---- statements ---- */

/* Rows that are there already need a value in a new column that is never NULL. */
static void column_sql(const struct job_field *f, bool added, struct strbuf *sql)
{
	strbuf_printf(sql, "%s %s", f->column, is_text(f) ? "TEXT" : is_real(f) ? "REAL" : "INTEGER");
	if (f->kind == FIELD_ID)
		strbuf_puts(sql, " PRIMARY KEY");
	else if (f->needed)
		strbuf_printf(sql, " NOT NULL%s", !added ? "" : is_text(f) ? " DEFAULT ''" : " DEFAULT 0");
}

void job_columns_sql(int version, struct strbuf *sql)
{
	const char *before = "";

	for (const struct job_field *f = next_column(NULL); f; f = next_column(f)) {
		if (f->since != version)
			continue;
		strbuf_puts(sql, version == 1 ? before : "ALTER TABLE jobs ADD COLUMN ");
		column_sql(f, version > 1, sql);
		strbuf_puts(sql, version == 1 ? "" : ";");
		before = ", ";
	}
}

void job_names(int version, struct strbuf *sql)
{
	for (const struct job_field *f = next_column(NULL); f; f = next_column(f))
		strbuf_printf(sql, "%s%s", f == next_column(NULL) ? "" : ",",
			      f->since <= version ? f->column : "NULL");
}

void job_insert_sql(struct strbuf *sql)
{
	const char *before = "";
	int n = 0;

	strbuf_puts(sql, "INSERT INTO jobs(");
	job_names(STORE_SCHEMA_VERSION, sql);
	strbuf_puts(sql, ") VALUES(");
	for (const struct job_field *f = next_column(NULL); f; f = next_column(f), n++)
		strbuf_printf(sql, "%s?%d", n ? "," : "", n + 1);
	strbuf_puts(sql, ") ON CONFLICT(id) DO UPDATE SET ");
	for (const struct job_field *f = next_column(NULL); f; f = next_column(f)) {
		if (f->kind == FIELD_ID)
			continue;
		strbuf_printf(sql, "%s%s=excluded.%s", before, f->column, f->column);
		before = ",";
	}
}

void job_update_sql(struct strbuf *sql)
{
	const char *before = "";
	int n = 0, id = 0;

	strbuf_puts(sql, "UPDATE jobs SET ");
	for (const struct job_field *f = next_column(NULL); f; f = next_column(f)) {
		n++;
		if (f->kind == FIELD_ID)
			id = n;
		if (f->once)
			continue;
		strbuf_printf(sql, "%s%s=?%d", before, f->column, n);
		before = ",";
	}
	strbuf_printf(sql, " WHERE id=?%d", id);
}

/* ---- values ---- */

static int bind_known(sqlite3_stmt *st, int at, int64_t n, int64_t unknown)
{
	return n == unknown ? sqlite3_bind_null(st, at) : sqlite3_bind_int64(st, at, n);
}

static int bind_field(sqlite3_stmt *st, int at, const struct job_field *f, const void *p)
{
	if (is_text(f))
		return sqlite3_bind_text(st, at, job_field_text(f, p), -1, SQLITE_STATIC);
	if (is_real(f))
		return sqlite3_bind_double(st, at, *(const double *)p); /* SQLite makes NaN NULL */
	switch (f->kind) {
	case FIELD_ID: return sqlite3_bind_int64(st, at, (sqlite3_int64) * (const uint64_t *)p);
	case FIELD_REF: return bind_known(st, at, (int64_t) * (const uint64_t *)p, 0);
	case FIELD_MOMENT: return bind_known(st, at, *(const int64_t *)p, 0);
	case FIELD_UNSIGNED: return sqlite3_bind_int64(st, at, *(const uint32_t *)p);
	case FIELD_BOOL: return sqlite3_bind_int(st, at, *(const bool *)p);
	case FIELD_EXIT: return bind_known(st, at, *(const int *)p, -1);
	case FIELD_SIGNAL: return bind_known(st, at, *(const int *)p, 0);
	default: return sqlite3_bind_int(st, at, *(const int *)p);
	}
}

int job_bind(sqlite3_stmt *st, const struct job_record *j)
{
	int at = 0;

	for (const struct job_field *f = next_column(NULL); f; f = next_column(f)) {
		int rc = bind_field(st, ++at, f, (const char *)j + f->offset);

		if (rc)
			return rc;
	}
	return SQLITE_OK;
}

/* A text that is not JSON any more becomes null: the job object stays JSON. Fails where memory does. */
static int mend_json(const char **text, struct err *err)
{
	struct json *v = NULL;
	struct err why = { 0 };

	if (strpbrk(*text, "\n\r")) /* an answer is one line */
		*text = "null";
	else if (!json_parse("a column", *text, strlen(*text), &v, &why))
		json_free(v);
	else if (why.code == ERR_NOMEM)
		return err_nomem(err, "a job's row");
	else
		*text = "null";
	return 0;
}

static int load_text(sqlite3_stmt *st, int at, const struct job_field *f, struct job_record *out,
		     struct err *err)
{
	const char *text = (const char *)sqlite3_column_text(st, at);
	void *member = (char *)out + f->offset;

	if (!text && sqlite3_column_type(st, at) != SQLITE_NULL)
		return err_fail(err, ERR_NOMEM, "out of memory to read job %llu",
				(unsigned long long)out->id);
	if (!text && f->needed)
		return err_fail(err, ERR_FORMAT, "the row of job %llu has no %s: the database is damaged",
				(unsigned long long)out->id, f->column);
	if (text && f->kind == FIELD_JSON && mend_json(&text, err))
		return -ERR_NOMEM;
	if (f->kind == FIELD_TEXT || f->kind == FIELD_JSON)
		*(const char **)member = text;
	else if (text && !job_field_named(f, text, member))
		return err_fail(err, ERR_FORMAT,
				"the row of job %llu has an unknown %s: the database is damaged",
				(unsigned long long)out->id, f->column);
	return 0;
}

static int load_field(sqlite3_stmt *st, int at, const struct job_field *f, struct job_record *out,
		      struct err *err)
{
	void *p = (char *)out + f->offset;

	if (is_text(f))
		return load_text(st, at, f, out, err);
	if (sqlite3_column_type(st, at) == SQLITE_NULL)
		return 0; /* as job_record_init() left it */
	switch (f->kind) {
	case FIELD_FIXED:
	case FIELD_NUMBER: *(double *)p = sqlite3_column_double(st, at); break;
	case FIELD_ID:
	case FIELD_REF: *(uint64_t *)p = (uint64_t)sqlite3_column_int64(st, at); break;
	case FIELD_MOMENT: *(int64_t *)p = sqlite3_column_int64(st, at); break;
	case FIELD_UNSIGNED: *(uint32_t *)p = (uint32_t)sqlite3_column_int64(st, at); break;
	case FIELD_BOOL: *(bool *)p = sqlite3_column_int(st, at) != 0; break;
	default: *(int *)p = sqlite3_column_int(st, at); break;
	}
	return 0;
}

int job_load(sqlite3_stmt *st, struct job_record *out, struct err *err)
{
	int at = 0, rc = 0;

	job_record_init(out);
	for (const struct job_field *f = next_column(NULL); f && !rc; f = next_column(f))
		rc = load_field(st, at++, f, out, err);
	return rc;
}

int jobs_each(sqlite3 *db, const struct job_query *q,
	      int (*fn)(void *owner, const struct job_record *j, struct err *err), void *owner,
	      struct err *err)
{
	struct strbuf sql = { 0 };
	sqlite3_stmt *st = NULL;
	int step = SQLITE_NOMEM, rc = 0;

	strbuf_puts(&sql, "SELECT ");
	job_names(q->version, &sql);
	strbuf_puts(&sql, q->rest);
	if (!sql.failed)
		step = sqlite3_prepare_v2(db, sql.text, -1, &st, NULL);
	strbuf_release(&sql);
	if (step == SQLITE_OK)
		sqlite3_bind_int64(st, 1, q->number); /* without effect where the statement has no ?1 */
	while (rc == 0 && (step == SQLITE_OK || step == SQLITE_ROW)) {
		struct job_record j;

		step = sqlite3_step(st);
		if (step == SQLITE_ROW && !(rc = job_load(st, &j, err)))
			rc = fn(owner, &j, err);
	}
	if (rc == 0 && step != SQLITE_DONE)
		rc = db_fail(db, step, "read", db_path(db), err);
	if (rc && (step & 0xff) == SQLITE_ERROR && err)
		rc = -(int)(err->code = ERR_FORMAT);
	sqlite3_finalize(st);
	return rc;
}
