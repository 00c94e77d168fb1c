/* Observations in the database: any bytes as the columns of a row, which the store's reader hands to the
 * training. What is damaged is refused with a reason; what is taken names its values. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/store/internal.h"
#include "scheduler/store/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64];
static sqlite3 *db;
static sqlite3_stmt *change;

static void must(int claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "fuzz_observation: %s\n", what);
	abort();
}

static void close_db(void)
{
	char command[128];

	sqlite3_finalize(change);
	sqlite3_close(db);
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	if (system(command))
		fprintf(stderr, "%s stays\n", dir);
}

static void set_up(void)
{
	struct err err = { 0 };
	char path[96];

	snprintf(dir, sizeof dir, "%s/postrider-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	must(mkdtemp(dir) != NULL, "no temporary folder");
	snprintf(path, sizeof path, "%s/" STORE_FILE, dir);
	must(!schema_open(path, DURABLE_NONE, &db, &err), err.text);
	must(!sqlite3_exec(db,
			   "PRAGMA foreign_keys=OFF;INSERT INTO observations(job,at_ns,type,columns,time_s,"
			   "accuracy) VALUES(1,1,'t','{}',1.5,0.9)",
			   NULL, NULL, NULL),
	     sqlite3_errmsg(db));
	must(!sqlite3_prepare_v2(db, "UPDATE observations SET columns=?1", -1, &change, NULL),
	     sqlite3_errmsg(db));
	atexit(close_db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct question q = { .kind = STORE_OBSERVATIONS };
	struct store_observation o;
	size_t at = 0, n = 0;

	if (!db)
		set_up();
	sqlite3_bind_text(change, 1, (const char *)data, (int)size, SQLITE_STATIC);
	must(sqlite3_step(change) == SQLITE_DONE && !sqlite3_reset(change), "the row cannot be changed");
	question_answer(db, &q);
	if (q.err.code)
		must(q.err.text[0] != 0, "a refusal without a reason");
	while (!q.err.code && store_observation_next(strbuf_text(&q.text), q.text.len, &at, &o)) {
		must(o.job == 1 && o.n >= 2 && o.n <= STORE_MAX_VALUES, "values beyond the limit");
		for (size_t i = 0; i < o.n; i++)
			must(o.value[i].name && strlen(o.value[i].name) < size + 16,
			     "a value without a name");
		n++;
	}
	must(q.err.code || n == 1, "an observation is lost");
	strbuf_release(&q.text);
	return 0;
}
