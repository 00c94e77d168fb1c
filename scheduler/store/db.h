/* A connection to a database file: opened safely, with errors that name the file and say what can be done. */
#ifndef SCHEDULER_STORE_DB_H
#define SCHEDULER_STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define DB_DAMAGED_ADVICE \
	"; move the file away, or restore a copy (the .recover command of sqlite3 may save rows)"

/* Fills err with what, the file and SQLite's reason (and the system's, where there is one); returns -code. */
int db_fail(sqlite3 *db, int rc, const char *what, const char *path, struct err *err);

enum db_use {
	DB_WRITE,
	DB_READ,         /* nothing can be written through it */
	DB_READ_FROZEN,  /* no other program writes: neither log nor lock is made beside the file */
};
/* The file must be there. */
int db_open(const char *path, enum db_use use, sqlite3 **out, struct err *err);
const char *db_path(sqlite3 *db); /* of its file */
int db_exec(sqlite3 *db, const char *sql, const char *what, struct err *err);
int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out, struct err *err);
/* The single number a query gives; 0 where it is NULL or there is no row. */
int db_number(sqlite3 *db, const char *sql, int64_t *out, struct err *err);
void db_close(sqlite3 *db, bool checkpoint); /* NULL is allowed; all statements must be gone */

#endif
