/* Between struct job_record and its row: statements, binding and reading, all from the table of fields. */
#ifndef SCHEDULER_STORE_ROWS_H
#define SCHEDULER_STORE_ROWS_H

#include <sqlite3.h>
#include <stdint.h>

#include "common/err.h"
#include "common/strbuf.h"
#include "scheduler/jobs/record.h"

/* The columns that a version of the file brought: a list for CREATE TABLE of version 1, ALTER TABLE
 * statements of the later ones. */
void job_columns_sql(int version, struct strbuf *sql);
/* id,key,... of the newest version; NULL stands for a column that a file of an older one does not have. */
void job_names(int version, struct strbuf *sql);
/* Both take the values ?1, ?2, ... of job_bind(). An insert of an id that is there replaces its row. */
void job_insert_sql(struct strbuf *sql);
void job_update_sql(struct strbuf *sql);
int job_bind(sqlite3_stmt *st, const struct job_record *j); /* SQLite code; text is borrowed until the next
							       bind */
/* Reads a row selected with job_names(); text is borrowed until the next step. ERR_FORMAT: the row is
 * damaged. */
int job_load(sqlite3_stmt *st, struct job_record *out, struct err *err);

/* Every job that "SELECT ... <rest>" gives, with `number` as ?1; not 0 from fn stops. ERR_FORMAT also where
 * the tables are not what they should be. */
struct job_query {
	int version;         /* of the file */
	const char *rest;    /* " FROM jobs ..." */
	int64_t number;
};
int jobs_each(sqlite3 *db, const struct job_query *q,
              int (*fn)(void *owner, const struct job_record *j, struct err *err), void *owner,
              struct err *err);

#endif
