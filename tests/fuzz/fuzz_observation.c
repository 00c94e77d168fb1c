/* Observations in the database: any bytes as names, words and numbers of their values, which the store's
 * reader hands to the training. Too many are refused with a reason; what is taken names its values. */
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
static sqlite3_stmt *add, *begin, *clear, *commit;

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

	sqlite3_finalize(add);
	sqlite3_finalize(begin);
	sqlite3_finalize(clear);
	sqlite3_finalize(commit);
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
			   "PRAGMA journal_mode=MEMORY;PRAGMA foreign_keys=OFF;INSERT INTO "
			   "observations(job,at_ns,type,time_s,accuracy)"
			   " VALUES(1,1,'t',1.5,0.9)",
			   NULL, NULL, NULL),
	     sqlite3_errmsg(db));
	must(!sqlite3_prepare_v2(db,
				 "INSERT INTO observed_values(job,n,name,number,word) VALUES(1,?1,?2,?3,?4)",
				 -1, &add, NULL) &&
		     !sqlite3_prepare_v2(db, "BEGIN", -1, &begin, NULL) &&
		     !sqlite3_prepare_v2(db, "DELETE FROM observed_values", -1, &clear, NULL) &&
		     !sqlite3_prepare_v2(db, "COMMIT", -1, &commit, NULL),
	     sqlite3_errmsg(db));
	atexit(close_db);
}

static void run(sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);

	must(rc == SQLITE_DONE && !sqlite3_reset(st), sqlite3_errmsg(db));
}

/* "NAME=WORD", "NAME:8 bytes of a number" or "NAME": any bytes. */
static void add_value(int n, const char *line, size_t len)
{
	const char *equals = memchr(line, '=', len), *colon = memchr(line, ':', len);
	size_t name = equals ? (size_t)(equals - line) : colon ? (size_t)(colon - line) : len;
	double number = 0.0;

	sqlite3_bind_int(add, 1, n);
	sqlite3_bind_text(add, 2, line, (int)name, SQLITE_STATIC);
	sqlite3_bind_null(add, 3);
	sqlite3_bind_null(add, 4);
	if (equals) {
		sqlite3_bind_text(add, 4, equals + 1, (int)(len - name - 1), SQLITE_STATIC);
	} else if (colon) {
		memcpy(&number, colon + 1, len - name - 1 < sizeof number ? len - name - 1 : sizeof number);
		sqlite3_bind_double(add, 3, number);
	}
	run(add);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct question q = { .kind = STORE_OBSERVATIONS };
	struct store_observation o;
	const char *text = (const char *)data;
	size_t at = 0, n = 0;
	int lines = 0;

	if (!db)
		set_up();
	run(begin); /* one commit for all rows: one for each took most of the time */
	run(clear);
	for (size_t from = 0; from < size; lines++) {
		const char *end = memchr(text + from, '\n', size - from);
		size_t len = end ? (size_t)(end - text) - from : size - from;

		add_value(lines, text + from, len);
		from += len + 1;
	}
	run(commit);
	question_answer(db, &q);
	if (q.err.code)
		must(q.err.text[0] != 0 && lines > OBSERVED_MAX - 2, "refused without a reason");
	while (!q.err.code && store_observation_next(strbuf_text(&q.text), q.text.len, &at, &o)) {
		must(o.job == 1 && o.n >= 2 && o.n <= OBSERVED_MAX, "values beyond the limit");
		for (size_t i = 0; i < o.n; i++)
			must(o.value[i].name && strlen(o.value[i].name) < size + 16,
			     "a value without a name");
		n++;
	}
	must(q.err.code || n == 1, "an observation is lost");
	strbuf_release(&q.text);
	return 0;
}
