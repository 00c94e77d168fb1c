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

/* A text that was JSON when it was stored. A damaged one, or one with a line break in it, becomes null: the
 * answer stays a line of JSON. */
static int put_checked(struct answer *a, struct json_writer *w, const char *text)
{
	struct json *v = NULL;
	struct err why = { 0 };

	if (json_parse("a stored text", text, strlen(text), &v, &why) && why.code == ERR_NOMEM)
		return nomem(a);
	json_put_raw(w, why.code || strpbrk(text, "\n\r") ? NULL : text);
	json_free(v);
	return 0;
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
		if ((rc = put_checked(a, w, text_at(a, 0))))
			return rc;
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

static void put_number(struct answer *a, size_t row, const char *name, double number)
{
	store_observation_put_value(&a->q->text, row, &(struct observed){ name, NULL, number });
}

/* A row for each value, and one without for an observation that has none. */
static int answer_observations(struct answer *a)
{
	const struct store_filter *f = &a->q->filter;
	size_t row = 0, n = 0;
	int64_t job = 0;
	double time_s = NAN, accuracy = NAN;
	int rc = prepare_text(
		a, "SELECT o.job,o.at_ns,o.time_s,o.accuracy,v.name,v.number,v.word,"
		   "coalesce(j.uid,-1) FROM"
		   " (SELECT job,at_ns,time_s,accuracy FROM observations WHERE doubt IS NULL AND"
		   " (?1='' OR type=?1) AND at_ns>=?2 AND (?4 IS NULL OR"
		   " instr(?4,','||type||',')=0) ORDER BY job DESC LIMIT ?3) o LEFT JOIN jobs j ON j.id=o.job"
		   " LEFT JOIN observed_values v ON v.job=o.job ORDER BY o.job,v.n");

	if (rc)
		return rc;
	sqlite3_bind_text(a->st, 1, f->type, -1, SQLITE_STATIC);
	sqlite3_bind_int64(a->st, 2, f->since_ns ? f->since_ns : INT64_MIN);
	sqlite3_bind_int64(a->st, 3, f->limit ? (sqlite3_int64)f->limit : -1);
	sqlite3_bind_text(a->st, 4, f->except, -1, SQLITE_STATIC); /* NULL binds NULL */
	while ((rc = step(a)) > 0) {
		struct observed v = { .name = text_at(a, 4),
				      .text = text_at(a, 6),
				      .number = number_at(a, 5) };

		if (sqlite3_column_int64(a->st, 0) != job) {
			if (job) {
				put_number(a, row, "time_s", time_s);
				put_number(a, row, "accuracy", accuracy);
			}
			job = sqlite3_column_int64(a->st, 0);
			time_s = number_at(a, 2);
			accuracy = number_at(a, 3);
			row = store_observation_put(&a->q->text, (uint64_t)job,
						    sqlite3_column_int64(a->st, 1),
						    sqlite3_column_int64(a->st, 7));
			n = 0;
		}
		if (!v.name || is_own(v.name))
			continue;
		if (++n > OBSERVED_MAX - 2)
			return err_fail(&a->q->err, ERR_FORMAT,
					"the observation of job %lld has more than %d values", (long long)job,
					OBSERVED_MAX - 2);
		store_observation_put_value(&a->q->text, row, &v);
	}
	if (job) {
		put_number(a, row, "time_s", time_s);
		put_number(a, row, "accuracy", accuracy);
	}
	return rc;
}

static int answer_expired(struct answer *a)
{
	return expired_answer(a->db, a->q);
}

void question_answer(sqlite3 *db, struct question *q)
{
	static int (*const answer_of[])(struct answer *) = {
		[STORE_JOB] = answer_job,         [STORE_EXPLAIN] = answer_explain,
		[STORE_LIST] = answer_list,       [STORE_OBSERVATIONS] = answer_observations,
		[STORE_EXPIRED] = answer_expired,
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
