/* The database file: what its tables are, which versions there were, and whether a file is whole.
 * docs/STORE.md describes the tables. */
#ifndef SCHEDULER_STORE_SCHEMA_H
#define SCHEDULER_STORE_SCHEMA_H

#include "scheduler/store/db.h"
#include "scheduler/store/store.h"

#define STORE_FILE "postrider.db"
#define STORE_LOCK "postrider.lock"
#define STORE_APPLICATION 0x50525244 /* "PRRD" in the header of the file: tells it from other SQLite files */

/* The version of a file of ours; 0: it is empty. ERR_FORMAT: it is not ours, or contradicts itself. */
int schema_version(sqlite3 *db, const char *path, int64_t *out, struct err *err);

/* A step of migration from version i to i + 1, inside a transaction; SQLite code. */
typedef int schema_step(sqlite3 *db);
/* Brings a file of version 0 (empty) to n_steps to version n_steps. A newer one is ERR_FORMAT, as is a file
 * that is SQLite's but not ours. */
int schema_migrate(sqlite3 *db, const char *path, schema_step *const *step, int n_steps, struct err *err);

/* Makes the file if it is not there, checks and migrates it; the connection is ready to write. */
int schema_open(const char *path, enum store_durability durability, sqlite3 **out, struct err *err);
/* The same for a file this process has used before: never makes one, never migrates. */
int schema_reopen(const char *path, enum store_durability durability, sqlite3 **out, struct err *err);

#endif
