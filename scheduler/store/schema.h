/* The database file: opening a connection, what the tables are, which versions there were, and whether the file is
 * whole. docs/STORE.md describes the tables. */
#ifndef SCHEDULER_STORE_SCHEMA_H
#define SCHEDULER_STORE_SCHEMA_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define STORE_FILE "postrider.db"
#define STORE_LOCK "postrider.lock"
#define STORE_APPLICATION 0x50525244 /* "PRRD" in the header of the file: tells it from other SQLite files */

/* Fills err with what, the file and SQLite's reason (and the system's, where there is one); returns -code. */
int db_fail(sqlite3 *db, int rc, const char *what, const char *path, struct err *err);

/* The file must be there. For reading: nothing can be written through it. */
int db_open(const char *path, bool for_reading, sqlite3 **out, struct err *err);
int db_exec(sqlite3 *db, const char *sql, const char *what, struct err *err);
int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out, struct err *err);
/* The single number a query gives; 0 where it is NULL or there is no row. */
int db_number(sqlite3 *db, const char *sql, int64_t *out, struct err *err);
void db_close(sqlite3 *db, bool checkpoint); /* NULL is allowed; all statements must be gone */

/* A step of migration from version i to i + 1, inside a transaction; SQLite code. */
typedef int schema_step(sqlite3 *db);
/* Brings a file of version 0 (empty) to n_steps to version n_steps. A newer one is ERR_FORMAT, as is a file
 * that is SQLite's but not ours. */
int schema_migrate(sqlite3 *db, const char *path, schema_step *const *step, int n_steps, struct err *err);

/* Makes the file if it is not there, checks and migrates it; the connection is ready to write, with the
 * synchronisation that `durability` (enum config_durability) asks for. */
int schema_open(const char *path, int durability, sqlite3 **out, struct err *err);
/* The same for a file this process has used before: never makes one, never migrates. */
int schema_reopen(const char *path, int durability, sqlite3 **out, struct err *err);

#endif
