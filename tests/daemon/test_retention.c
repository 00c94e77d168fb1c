/* What ended is kept as `keep` says: rejected submits do not grow the database, and folders go with the rows.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/daemon/harness.h"
#include "tests/support/test.h"

static double database_number(const struct fixture *y, const char *sql)
{
	char *text = ask_database(y, sql);
	double n = atof(text);

	free(text);
	return n;
}

static void reject(struct talk *t, int n)
{
	for (int done = 0; done < n;) { /* pipelined, as one who wants to fill the disk would */
		int some = n - done < 50 ? n - done : 50;

		for (int i = 0; i < some; i++)
			assert_true(talk_say(t, "{\"op\":\"submit\",\"type\":\"line\",\"slo_s\":0.001}"));
		for (int i = 0; i < some; i++) {
			struct json *v = talk_hear_json(t, PATIENCE_S);

			if (strcmp(text_at(v, "verdict"), "rejected") != 0)
				die("not rejected: %s", text_at(v, "error.message"));
			json_free(v);
		}
		done += some;
	}
}

TEST(test_rejected_submits_do_not_grow_the_database)
{
	struct fixture y;
	struct talk *t;
	double rows, pages, give_up;

	fixture_open(&y);
	fixture_train(&y);
	fixture_configure(&y, "\"keep\":{\"rejected\":100},", "");
	fixture_start(&y);
	t = talk_open(&y);
	reject(t, 1000);
	pages = database_number(&y, "SELECT page_count FROM pragma_page_count");
	reject(t, 4000);
	/* 250 may end before the daemon looks, and what came while it deleted. */
	rows = database_number(&y, "SELECT count(*) FROM jobs");
	if (rows > 100 + 1000)
		fail_msg("%g rejected jobs are kept", rows);
	/* Of five times as many the file is not twice as large. */
	if (database_number(&y, "SELECT page_count FROM pragma_page_count") > 2 * pages)
		fail_msg("the file grew from %g to %g pages", pages,
			 database_number(&y, "SELECT page_count FROM pragma_page_count"));
	for (give_up = now_s() + PATIENCE_S; rows > 100 + 250;) {
		if (now_s() > give_up)
			fail_msg("%g rejected jobs are kept", rows);
		sleep_s(0.05);
		rows = database_number(&y, "SELECT count(*) FROM jobs");
	}
	/* one query: the daemon may delete between two */
	assert_true(database_number(&y, "SELECT (SELECT count(*) FROM jobs) = "
					"(SELECT count(DISTINCT job) FROM decisions)") == 1.0);
	assert_true(stat_of(t, "loop.max_busy_ms") < 20 || sanitized());
	talk_close(t);
	fixture_close(&y);
}

static bool there(const struct fixture *y, const char *name)
{
	char path[300];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", y->state, name);
	return lstat(path, &st) == 0;
}

/* Ended long ago, says the database after this. */
static void make_old(const struct fixture *y)
{
	char path[300];
	sqlite3 *db = NULL;

	snprintf(path, sizeof path, "%s/postrider.db", y->state);
	if (sqlite3_open(path, &db) || sqlite3_exec(db,
						    "UPDATE jobs SET submitted_ns=submitted_ns-1000000000000,"
						    "ended_ns=ended_ns-1000000000000",
						    NULL, NULL, NULL))
		die("%s: %s", path, sqlite3_errmsg(db));
	sqlite3_close(db);
}

TEST(test_folders_go_with_the_rows)
{
	struct fixture y;
	struct talk *t;
	struct json *v;
	uint64_t job[4];
	char record[2][300];
	struct stat st;
	double give_up;

	fixture_open(&y);
	fixture_configure(&y, "\"keep\":{\"ended\":1,\"ended_per_uid\":10},", "");
	fixture_start(&y);
	t = talk_open(&y);
	for (int i = 0; i < 4; i++) {
		job[i] = submit(t, i ? ",\"type\":\"line\"" : ",\"type\":\"line\",\"key\":\"kept\"");
		json_free(await(t, job[i], "done"));
	}
	snprintf(record[0], sizeof record[0], "%s", fixture_record(&y, job[1], ".exit"));
	snprintf(record[1], sizeof record[1], "%s", fixture_record(&y, job[3], ".exit"));
	talk_close(t);
	fixture_stop(&y, SIGTERM);
	make_old(&y);
	fixture_start(&y); /* it looks as it starts */
	t = talk_open(&y);
	for (give_up = now_s() + PATIENCE_S;; sleep_s(0.02)) {
		v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job[2]);
		if (!is_ok(v))
			break;
		json_free(v);
		if (now_s() > give_up)
			fail_msg("job %llu is still there", (unsigned long long)job[2]);
	}
	assert_string_equal(error_of(v), "unknown_job");
	json_free(v);
	assert_false(there(&y, "jobs/2") || there(&y, "jobs/3"));
	assert_true(stat(record[0], &st) != 0);
	/* The latest, and the one whose key a retried submit may look for. */
	assert_true(there(&y, "jobs/4/stdout") && stat(record[1], &st) == 0);
	assert_true(there(&y, "jobs/1/stdout"));
	assert_int_equal(submit(t, ",\"type\":\"line\",\"key\":\"kept\""), job[0]);
	/* Numbers are not given twice. */
	assert_int_equal(submit(t, ",\"type\":\"line\""), 5);
	talk_close(t);
	fixture_close(&y);
}
