/* What the reader answers: jobs as JSON, observations as typed rows. Each question is one read transaction.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/text/text.h"
#include "scheduler/jobs/record.h"
#include "scheduler/store/internal.h"
#include "scheduler/store/rows.h"
#include "scheduler/store/schema.h"

#define ANSWER_MAX_BYTES ((size_t)256 << 20)

struct answer {
	sqlite3 *db;
	struct question *q;
	sqlite3_stmt *st;
};

static int nomem(struct answer *a)
{
	return err_nomem(&a->q->err, "an answer of the database");
}

static int prepare(struct answer *a, const struct strbuf *sql)
{
	sqlite3_finalize(a->st);
	a->st = NULL;
	if (sql->failed)
		return nomem(a);
	return db_prepare(a->db, sql->text, &a->st, &a->q->err);
}

static int prepare_text(struct answer *a, const char *sql)
{
	sqlite3_finalize(a->st);
	a->st = NULL;
	return db_prepare(a->db, sql, &a->st, &a->q->err);
}

/* 1: a row, 0: no more, negative: the error. */
static int step(struct answer *a)
{
	int rc = sqlite3_step(a->st);

	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return db_fail(a->db, rc, "read", STORE_FILE, &a->q->err);
	if (a->q->text.failed)
		return nomem(a);
	if (a->q->text.len > ANSWER_MAX_BYTES)
		return err_fail(&a->q->err, ERR_ARG,
				"the answer is longer than %zu MiB: ask for less at a time",
				ANSWER_MAX_BYTES >> 20);
	return 1;
}

static const char *text_at(struct answer *a, int column)
{
	return (const char *)sqlite3_column_text(a->st, column);
}

static double number_at(struct answer *a, int column)
{
	if (sqlite3_column_type(a->st, column) == SQLITE_NULL)
		return NAN;
	return sqlite3_column_double(a->st, column);
}

/* ---- one job ---- */

/* 1: written, 0: there is no such job. */
static int put_job(struct answer *a, struct json_writer *w)
{
	struct strbuf sql = { 0 };
	struct job_record j;
	int rc;

	strbuf_puts(&sql, "SELECT ");
	job_names(STORE_SCHEMA_VERSION, &sql);
	strbuf_puts(&sql, " FROM jobs WHERE id=?1");
	rc = prepare(a, &sql);
	strbuf_release(&sql);
	if (rc)
		return rc;
	sqlite3_bind_int64(a->st, 1, (sqlite3_int64)a->q->job);
	rc = step(a);
	if (rc <= 0)
		return rc;
	rc = job_load(a->st, &j, &a->q->err);
	if (rc)
		return rc;
	job_json(w, &j, NULL);
	return 1;
}

static int put_decisions(struct answer *a, struct json_writer *w)
{
	int rc = prepare_text(a, "SELECT json FROM decisions WHERE job=?1 ORDER BY rowid");

	if (rc)
		return rc;
	sqlite3_bind_int64(a->st, 1, (sqlite3_int64)a->q->job);
	json_kv_open(w, "decisions", '[');
	while ((rc = step(a)) > 0) {
		if (!text_at(a, 0))
			return nomem(a); /* NOT NULL: there is no other reason */
		json_put_raw(w, text_at(a, 0));
	}
	json_close(w, ']');
	return rc;
}

static int put_estimates(struct answer *a, struct json_writer *w)
{
	static const char *const name[] = { "start_s", "end_s", "end_low_s", "end_high_s" };
	int rc = prepare_text(a, "SELECT at_ns,start_s,end_s,end_low_s,end_high_s,why FROM estimates"
				 " WHERE job=?1 ORDER BY n");

	if (rc)
		return rc;
	sqlite3_bind_int64(a->st, 1, (sqlite3_int64)a->q->job);
	json_kv_open(w, "estimates", '[');
	while ((rc = step(a)) > 0) {
		json_open(w, '{');
		json_kv_moment(w, "at", sqlite3_column_int64(a->st, 0));
		for (int i = 0; i < 4; i++)
			json_kv_fixed(w, name[i], number_at(a, 1 + i), 6);
		json_kv_string(w, "why", text_at(a, 5));
		json_close(w, '}');
	}
	json_close(w, ']');
	return rc;
}

static int answer_explain(struct answer *a)
{
	struct json_writer w;
	int rc;

	json_begin(&w, &a->q->text, false);
	json_open(&w, '{');
	json_put_key(&w, "job");
	rc = put_job(a, &w);
	if (rc <= 0) {
		strbuf_reset(&a->q->text);
		return rc;
	}
	if ((rc = put_decisions(a, &w)) || (rc = put_estimates(a, &w)))
		return rc;
	json_close(&w, '}');
	return 0;
}

static int answer_job(struct answer *a)
{
	struct json_writer w;
	int rc;

	json_begin(&w, &a->q->text, false);
	rc = put_job(a, &w);
	return rc < 0 ? rc : 0;
}

/* ---- lists ---- */

/* Without statistics SQLite takes any index that fits. A plus before a column takes its index away, so that
 * the one likely to leave the fewest rows remains: a state that does not last or is rare, then a user, then a
 * type. Most jobs are done, so that state finds nothing quickly. */
static void list_sql(const struct store_filter *f, struct strbuf *sql)
{
	bool several = strchr(f->state, ',') != NULL;
	bool by_state = f->state[0] && !several && strcmp(f->state, "done") != 0;
	bool by_uid = !by_state && f->uid >= 0;
	bool by_type = !by_state && !by_uid;

	strbuf_puts(sql, "SELECT ");
	job_names(STORE_SCHEMA_VERSION, sql);
	strbuf_puts(sql, " FROM jobs WHERE id<?1");
	if (several)
		strbuf_puts(sql, " AND instr(','||?2||',', ','||state||',')>0");
	else if (f->state[0])
		strbuf_printf(sql, " AND %sstate=?2", by_state ? "" : "+");
	if (f->uid >= 0)
		strbuf_printf(sql, " AND %suid=?3", by_uid ? "" : "+");
	if (f->type[0])
		strbuf_printf(sql, " AND %stype=?4", by_type ? "" : "+");
	strbuf_puts(sql, " ORDER BY id DESC");
}

static int bind_list(struct answer *a)
{
	const struct store_filter *f = &a->q->filter;
	uint64_t before = f->before_id && f->before_id <= INT64_MAX ? f->before_id : INT64_MAX;

	sqlite3_bind_int64(a->st, 1, (sqlite3_int64)before);
	if (f->state[0])
		sqlite3_bind_text(a->st, 2, f->state, -1, SQLITE_STATIC);
	if (f->uid >= 0)
		sqlite3_bind_int64(a->st, 3, f->uid);
	if (f->type[0])
		sqlite3_bind_text(a->st, 4, f->type, -1, SQLITE_STATIC);
	return 0;
}

static int answer_list(struct answer *a)
{
	const struct store_filter *f = &a->q->filter;
	struct strbuf sql = { 0 };
	struct json_writer w;
	size_t n = 0;
	int rc;

	list_sql(f, &sql);
	rc = prepare(a, &sql);
	strbuf_release(&sql);
	if (rc || (rc = bind_list(a)))
		return rc;
	while (n < f->limit && (rc = step(a)) > 0) {
		struct job_record j;

		if ((rc = job_load(a->st, &j, &a->q->err)))
			return rc;
		/* Ids are given in the order of time, so everything below is older. */
		if (f->since_ns && j.submitted_ns < f->since_ns - CLOCK_STEP_NS)
			return 0;
		if (f->since_ns && j.submitted_ns < f->since_ns)
			continue;
		json_begin(&w, &a->q->text, false);
		job_json(&w, &j, NULL);
		strbuf_add(&a->q->text, "\n", 1);
		n++;
	}
	return rc < 0 ? rc : 0;
}

/* ---- observations ---- */

/* Time, accuracy and the job are columns of the row: a parameter of that name does not hide them. */
static bool is_own(const char *name)
{
	return !strcmp(name, "time_s") || !strcmp(name, "accuracy") || !strcmp(name, "job") ||
	       !strcmp(name, "at");
}

static int put_observation(struct answer *a, const struct json *columns)
{
	struct store_observation o = { .job = (uint64_t)sqlite3_column_int64(a->st, 0),
				       .at_ns = sqlite3_column_int64(a->st, 1) };

	for (const struct json *v = json_first(columns); v; v = json_next(v)) {
		if (is_own(json_key(v)))
			continue;
		if (o.n + 2 == STORE_MAX_VALUES)
			return err_fail(&a->q->err, ERR_FORMAT,
					"the observation of job %llu has more than %d values",
					(unsigned long long)o.job, STORE_MAX_VALUES - 2);
		o.value[o.n++] = (struct store_value){
			.name = json_key(v),
			.text = json_type(v) == JSON_BOOL ? json_bool(v, false) ? "true" : "false"
							  : json_string(v, NULL),
			.number = json_number(v, NAN),
		};
	}
	o.value[o.n++] = (struct store_value){ .name = "time_s", .number = number_at(a, 3) };
	o.value[o.n++] = (struct store_value){ .name = "accuracy", .number = number_at(a, 4) };
	store_observation_put(&a->q->text, &o);
	return 0;
}

static int answer_observations(struct answer *a)
{
	const struct store_filter *f = &a->q->filter;
	int rc = prepare_text(
		a, "SELECT * FROM (SELECT job,at_ns,columns,time_s,accuracy FROM observations"
		   " WHERE (?1='' OR type=?1) AND at_ns>=?2 ORDER BY job DESC LIMIT ?3) ORDER BY job");

	if (rc)
		return rc;
	sqlite3_bind_text(a->st, 1, f->type, -1, SQLITE_STATIC);
	sqlite3_bind_int64(a->st, 2, f->since_ns ? f->since_ns : INT64_MIN);
	sqlite3_bind_int64(a->st, 3, f->limit ? (sqlite3_int64)f->limit : -1);
	while ((rc = step(a)) > 0) {
		const char *text = text_at(a, 2);
		struct json *columns = NULL;
		char name[64];

		snprintf(name, sizeof name, "observation of job %lld",
			 (long long)sqlite3_column_int64(a->st, 0));
		rc = text ? json_parse(name, text, strlen(text), &columns, &a->q->err) : nomem(a);
		if (rc == 0)
			rc = put_observation(a, columns);
		json_free(columns);
		if (rc)
			return rc;
	}
	return rc;
}

void question_answer(sqlite3 *db, struct question *q)
{
	static int (*const answer_of[])(struct answer *) = {
		[STORE_JOB] = answer_job,
		[STORE_EXPLAIN] = answer_explain,
		[STORE_LIST] = answer_list,
		[STORE_OBSERVATIONS] = answer_observations,
	};
	struct answer a = { .db = db, .q = q };
	int rc = db_exec(db, "BEGIN", "read", &q->err); /* one snapshot for all statements of an answer */

	if (rc == 0)
		rc = answer_of[q->kind](&a);
	sqlite3_finalize(a.st);
	sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); /* nothing was changed: only ends the snapshot */
	if (rc == 0 && q->text.failed)
		nomem(&a);
}
