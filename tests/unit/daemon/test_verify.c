/* The decisions of a daemon made again from its records (verify/), with a real daemon's folder: an owner's
 * jobs, jobs that wait for them, a reload and a restart. tests/cli/verify.sh has more of everything. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/daemon/verify/past.h"
#include "scheduler/daemon/verify/verify.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"

static void owner_runs(uint64_t id)
{
	char name[24];

	snprintf(name, sizeof name, "%llu", (unsigned long long)id);
	assert_string_equal(client_error(&c, "{\"op\":\"started\",\"job\":\"%s\"}", name), "");
	local_run(&l, 0.02);
	assert_string_equal(client_error(&c, "{\"op\":\"progress\",\"job\":\"%s\",\"done\":0.5}", name), "");
	local_run(&l, 0.02);
	assert_string_equal(client_error(&c, "{\"op\":\"finished\",\"job\":\"%s\",\"exit_code\":0}", name),
			    "");
}

static bool none_lives(const struct local_daemon *at)
{
	return at->d->jobs.live.n == 0;
}

static void history(void)
{
	uint64_t first;
	char after[160];

	l.model = LOCAL_MODEL;
	start("");
	first = client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\",\"slo_s\":900");
	snprintf(after, sizeof after, ",\"type\":\"sleepy\",\"batches\":[128],\"after\":\"%llu\"",
		 (unsigned long long)first);
	client_submit(&c, after);
	client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":0.01}");
	owner_runs(first);
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\",\"slo_s\":0.001");
	local_until(&l, none_lives);
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
	owner_runs(client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\",\"slo_s\":900"));
	local_until(&l, none_lives);
	client_close(&c);
	local_stop(&l);
	c.fd = -1;
}

static int verified(double least)
{
	return verify_run(&(struct verify_params){ .state_dir = l.state, .least = least, .json = true });
}

static void change(const char *sql)
{
	char path[200], *why = NULL;
	sqlite3 *db = NULL;

	snprintf(path, sizeof path, "%s/postrider.db", l.state);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &why))
		fail_msg("%s", why);
	sqlite3_close(db);
}

TEST_WITH(test_all_decisions_come_out_again, open_one, close_one)
{
	history();
	assert_int_equal(verified(1.0), 0);
}

TEST_WITH(test_another_record_is_a_difference, open_one, close_one)
{
	history();
	change("UPDATE jobs SET verdict='promised' WHERE verdict='rejected'");
	assert_int_equal(verified(1.0), 1);
	assert_int_equal(verified(0.5), 0);
	assert_int_equal(verified(NAN), 0);
}

TEST_WITH(test_the_past_is_read_in_the_order_of_time, open_one, close_one)
{
	struct past p;
	struct err err = { 0 };

	history();
	if (past_read(l.state, &p, &err))
		fail_msg("%s", err.text);
	assert_int_equal(p.n_jobs, 5);
	assert_true(past_job(&p, 2)->waits &&
		    past_job(&p, 2)->arrived_ns < past_job(&p, 2)->is->row.submitted_ns);
	assert_false(past_job(&p, 3)->waits);
	assert_null(past_job(&p, 6));
	assert_int_equal(past_next_daemon(&p, 0), 0);
	assert_true(past_next_daemon(&p, 1) < p.n_moments);
	for (size_t i = 1; i < p.n_moments; i++)
		assert_true(p.moment[i].at_ns >= p.moment[i - 1].at_ns);
	past_release(&p);
	change("UPDATE inputs SET what='loads', text='0.5:x' WHERE what='started'");
	assert_int_equal(past_read(l.state, &p, &err), -ERR_FORMAT);
}

TEST_WITH(test_what_is_no_state_folder_is_refused, open_one, close_one)
{
	assert_int_equal(verified(NAN), 4);
}
