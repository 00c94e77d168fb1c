/* Between struct store_job and its row: one table of the columns, from which statements are written, values bound
 * and rows read back. */
#ifndef SCHEDULER_STORE_ROWS_H
#define SCHEDULER_STORE_ROWS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/strbuf.h"
#include "scheduler/store/store.h"

enum column_kind {
	COLUMN_ID,       /* uint64_t */
	COLUMN_TEXT,     /* const char *; NULL is NULL */
	COLUMN_NEEDED,   /* const char *, never NULL */
	COLUMN_NUMBER,   /* double; NaN is NULL */
	COLUMN_MOMENT,   /* int64_t nanoseconds; 0 is NULL */
	COLUMN_UNSIGNED, /* uint32_t, uid_t, gid_t */
	COLUMN_BOOL,
	COLUMN_EXIT,     /* int; -1 is NULL */
	COLUMN_SIGNAL,   /* int; 0 is NULL */
	COLUMN_INT,      /* int, never NULL */
};

struct job_column {
	const char *name;
	enum column_kind kind;
	size_t offset; /* in struct store_job */
};
#define JOB_COLUMNS 46
#define JOB_TEXTS 13 /* how many of them are text */
extern const struct job_column job_column[JOB_COLUMNS];

static inline bool column_is_text(const struct job_column *c)
{
	return c->kind == COLUMN_TEXT || c->kind == COLUMN_NEEDED;
}

/* The text member a column stands for. */
static inline const char **column_text(const struct job_column *c, struct store_job *j)
{
	return (const char **)((char *)j + c->offset);
}

void job_names(struct strbuf *sql);          /* id,key,... */
void job_insert_sql(struct strbuf *sql);     /* values ?1, ?2, ... in the order of the table; again by the same id: harmless */
void job_update_sql(struct strbuf *sql);     /* same numbers; all but id and key */
int job_bind(sqlite3_stmt *st, const struct store_job *j); /* SQLite code; text is borrowed until the next bind */
/* Reads a row selected with job_names(); text is borrowed until the next step. ERR_FORMAT: not such a row. */
int job_load(sqlite3_stmt *st, struct store_job *out, struct err *err);

#endif
