/* scheduler/daemon/exec/engine*.c: jobs that a workload manager runs, in a daemon in this process. The
 * manager is played (played_engine.h). With real ones: tests/cli/engine.sh, tests/slurm/. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "scheduler/daemon/exec/engine_job.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"
#include "tests/unit/daemon/played_engine.h"

static struct played_engine g;
static uint64_t id; /* of the job that a wait is about */

static int close_all(void **state)
{
	played_close(&g);
	return close_one(state);
}

#define ENGINE_TEST(name) TEST_WITH(name, open_one, close_all)

static void begin(bool slurm, const char *more)
{
	played_open(&g, &l, slurm, more);
	start(g.settings);
}

static void restart(void)
{
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
}

static struct job *job(uint64_t n)
{
	return jobs_find(&l.d->jobs, n);
}

static const char *identity(uint64_t n)
{
	return job(n)->row.identity;
}

static uint64_t submit(int gate, int code)
{
	char members[120];
	uint64_t n;

	snprintf(members, sizeof members, ",\"type\":\"work\",\"params\":{\"gate\":%d,\"code\":%d}", gate,
		 code);
	n = client_submit(&c, members);
	assert_true(n > 0);
	return n;
}

static bool has_ended(const struct local_daemon *d)
{
	(void)d;
	return !job_state_live(job(id)->row.state);
}

static bool has_run(const struct local_daemon *d)
{
	(void)d;
	return job(id)->row.started_ns > 0;
}

static void wait_for(uint64_t n, bool (*done)(const struct local_daemon *d))
{
	id = n;
	local_until(&l, done);
}

static void ends(uint64_t n, enum job_state state, const char *reason)
{
	wait_for(n, has_ended);
	if (job(n)->row.state != state || !strstr(job(n)->row.reason ? job(n)->row.reason : "", reason))
		fail_msg("job %d is %s: %s", (int)n, job_state_name[job(n)->row.state], job(n)->row.reason);
}

static char waiting[200];

static bool waits_with(const struct local_daemon *d)
{
	struct job_live live = { 0 };

	(void)d;
	estimates_live(l.d, job(id), &live);
	return live.waiting_code && !strcmp(live.waiting_code, "engine") && live.waiting_message &&
	       strstr(live.waiting_message, waiting);
}

/* Clients see that the job waits for the engine, with these words. */
static void waits(uint64_t n, const char *words)
{
	snprintf(waiting, sizeof waiting, "%s", words);
	wait_for(n, waits_with);
}

static const char *file_of_interest;
static size_t lines_of_interest;

static bool has_lines(const struct local_daemon *d)
{
	(void)d;
	return played_lines(&g, file_of_interest) >= lines_of_interest;
}

static void until_lines(const char *file, size_t n)
{
	file_of_interest = file;
	lines_of_interest = n;
	local_until(&l, has_lines);
}

static bool job_runs(const struct local_daemon *d)
{
	return has_run(d) && played_lines(&g, "runs") >= lines_of_interest;
}

/* Its command runs, and is the n-th that did. */
static void runs(uint64_t n, size_t nth)
{
	lines_of_interest = nth;
	wait_for(n, job_runs);
}

/* Of its record of the start: "supervisor" or "job". */
static pid_t process(uint64_t n, const char *key)
{
	char path[300], *text = NULL, find[32];
	const char *found;
	pid_t pid;
	size_t len;

	snprintf(path, sizeof path, "%s/jobs/%llu.%s" RECORD_STARTED, l.state, (unsigned long long)n,
		 identity(n));
	assert_int_equal(io_read_file(path, 8192, &text, &len, NULL), 0);
	snprintf(find, sizeof find, "\n%s ", key);
	found = strstr(text, find);
	assert_non_null(found);
	pid = (pid_t)atoi(found + strlen(find));
	assert_true(pid > 1);
	free(text);
	return pid;
}

/* The node goes down: no record of the end will come. */
static void node_dies(uint64_t n)
{
	pid_t command = process(n, "job");

	assert_int_equal(kill(process(n, "supervisor"), SIGKILL), 0);
	kill(command, SIGKILL); /* it may have died with its supervisor */
}

/* ---- from submit to end ---- */

/* The engine's word is not needed for that: it never answers. */
ENGINE_TEST(test_start_end_and_accuracy_of_a_job_come_from_its_records)
{
	uint64_t n, failed;

	begin(false, "");
	played_put(&g, "mute", "");
	n = submit(0, 0);
	ends(n, JOB_DONE, "");
	assert_true(job(n)->row.accuracy == 0.91);
	assert_true(job(n)->row.started_ns >= job(n)->row.submitted_ns);
	assert_true(job(n)->row.ended_ns > job(n)->row.started_ns);
	failed = submit(0, 3);
	ends(failed, JOB_FAILED, "exit code 3");
	assert_int_equal(played_lines(&g, "submits"), 2);
	assert_int_equal(played_lines(&g, "runs"), 2);
	assert_true(played_has(&g, "submits", identity(n)) && played_has(&g, "submits", identity(failed)));
	assert_int_equal(played_lines(&g, "polls"), 0);
}

ENGINE_TEST(test_a_job_at_an_engine_has_its_slot_until_it_ends)
{
	uint64_t n;
	struct json *v;

	begin(false, "");
	n = submit(1, 0);
	runs(n, 1);
	v = client_ask(&c, "{\"op\":\"stats\"}");
	assert_true(number_at(v, "queue.slots_used") == 1.0);
	json_free(v);
	played_open_gate(&g);
	ends(n, JOB_DONE, "");
	v = client_ask(&c, "{\"op\":\"stats\"}");
	assert_true(number_at(v, "queue.slots_used") == 0.0);
	json_free(v);
}

/* ---- refused, away, unsure ---- */

ENGINE_TEST(test_a_job_that_the_engine_refuses_fails_with_its_words)
{
	uint64_t n;

	begin(false, "");
	played_put(&g, "how", "no\n");
	n = submit(0, 0);
	ends(n, JOB_FAILED, "q refused it: exit code 1 of submit: no such queue");
	assert_int_equal(job(n)->row.started_ns, 0);
	assert_int_equal(played_lines(&g, "submits"), 1);
}

ENGINE_TEST(test_a_job_waits_for_an_engine_that_is_away_and_then_runs_once)
{
	uint64_t n;

	begin(false, "");
	played_put(&g, "how", "later\n");
	n = submit(0, 0);
	waits(n, "waiting for q: exit code 75 of submit: controller is away");
	until_lines("polls", 2); /* it may have the job all the same: it is asked before it gets it again */
	assert_int_equal(played_lines(&g, "submits"), 1);
	played_put(&g, "how", NULL);
	ends(n, JOB_DONE, "");
	assert_int_equal(played_lines(&g, "submits"), 2);
	assert_int_equal(played_lines(&g, "runs"), 1);
}

ENGINE_TEST(test_a_job_of_an_engine_that_took_it_without_an_answer_is_found_and_not_submitted_again)
{
	uint64_t n;

	begin(false, "");
	played_put(&g, "how", "deaf\n");
	n = submit(1, 0);
	runs(n, 1); /* by its record, while the engine has not answered yet */
	until_lines("polls", 2);
	played_open_gate(&g);
	ends(n, JOB_DONE, "");
	assert_int_equal(played_lines(&g, "submits"), 1);
	assert_int_equal(played_lines(&g, "runs"), 1);
}

ENGINE_TEST(test_a_submit_that_is_not_there_keeps_jobs_waiting)
{
	uint64_t n;

	played_open(&g, &l, false, "");
	start(g.settings);
	assert_int_equal(rename(support_path(g.dir, "submit"), support_path(g.dir, "gone")), 0);
	n = submit(0, 0);
	waits(n, "cannot run");
	assert_int_equal(played_lines(&g, "polls"),
			 0); /* it cannot have a job that it never was asked to take */
	assert_int_equal(rename(support_path(g.dir, "gone"), support_path(g.dir, "submit")), 0);
	ends(n, JOB_DONE, "");
	assert_int_equal(played_lines(&g, "submits"), 1);
}

ENGINE_TEST(test_what_the_engine_says_of_a_waiting_job_is_told)
{
	uint64_t n;

	begin(false, "");
	played_put(&g, "how", "hold\n");
	n = submit(0, 0);
	waits(n, "waiting for q: no room");
	assert_int_equal(client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)n)[0],
			 0);
	ends(n, JOB_CANCELLED, "before it was started");
	assert_true(played_has(&g, "cancels", "1\n"));
	assert_int_equal(played_lines(&g, "runs"), 0);
	assert_int_equal(played_lines(&g, "submits"), 1);
}

/* ---- forgotten ---- */

ENGINE_TEST(test_a_job_that_the_engine_forgot_before_it_ran_is_submitted_again)
{
	uint64_t n;

	begin(false, "");
	played_put(&g, "how", "forget\n");
	n = submit(0, 0);
	waits(n, "waiting for q to start it");
	played_put(&g, "how", NULL);
	ends(n, JOB_DONE, "");
	assert_int_equal(played_lines(&g, "submits"), 2);
	assert_int_equal(played_lines(&g, "runs"), 1);
}

ENGINE_TEST(test_a_job_that_the_engine_always_forgets_fails_after_five_times)
{
	uint64_t n;

	begin(false, "");
	played_put(&g, "how", "forget\n");
	n = submit(0, 0);
	ends(n, JOB_FAILED, "q could not run it");
	assert_int_equal(played_lines(&g, "submits"), 5);
}

ENGINE_TEST(test_a_job_that_ran_and_is_gone_without_a_record_is_lost)
{
	uint64_t n, known;

	begin(false, "");
	n = submit(1, 0);
	runs(n, 1);
	known = submit(1, 0);
	runs(known, 2);
	played_word(&g, 1, identity(n), NULL);
	node_dies(n);
	ends(n, JOB_LOST,
	     "q says that it is over (it is gone from the queue), and there is no record of its end");
	node_dies(known); /* its engine says that it has ended */
	ends(known, JOB_LOST, "q says that it is over (exit code");
	assert_int_equal(played_lines(&g, "submits"), 2); /* half of a run may have had effects: not again */
}

/* ---- the engine's word ---- */

static const struct {
	const char *word, *reason;
	enum job_state with_record, without;
} words[] = {
	{ "time_limit too long", "stopped by q at its time limit (too long)", JOB_FAILED, JOB_FAILED },
	{ "memory too much", "out of memory, says q (too much)", JOB_FAILED, JOB_FAILED },
	{ "node smoke", "its node failed, says q (smoke)", JOB_FAILED, JOB_LOST },
	{ "preempted by another", "q gave its place to another (by another)", JOB_FAILED, JOB_FAILED },
	{ "cancelled by root", "cancelled at q, not by postrider (by root)", JOB_CANCELLED, JOB_CANCELLED },
};
#define N_WORDS (sizeof words / sizeof *words)

/* The record says that a signal ended it, the engine why. */
ENGINE_TEST(test_the_engines_word_says_why_a_signal_ended_a_job)
{
	uint64_t n[N_WORDS];

	begin(false, "");
	for (size_t i = 0; i < N_WORDS; i++) {
		n[i] = submit(1, 0);
		runs(n[i], i + 1);
	}
	for (size_t i = 0; i < N_WORDS; i++) {
		played_word(&g, (unsigned)i + 1, identity(n[i]), words[i].word);
		assert_int_equal(kill(process(n[i], "job"), SIGKILL), 0);
	}
	for (size_t i = 0; i < N_WORDS; i++)
		ends(n[i], words[i].with_record, words[i].reason);
}

ENGINE_TEST(test_the_engines_word_counts_where_there_is_no_record)
{
	uint64_t n[N_WORDS], never;

	begin(false, "");
	for (size_t i = 0; i < N_WORDS; i++) {
		n[i] = submit(1, 0);
		runs(n[i], i + 1);
	}
	for (size_t i = 0; i < N_WORDS; i++) {
		played_word(&g, (unsigned)i + 1, identity(n[i]), words[i].word);
		node_dies(n[i]);
	}
	for (size_t i = 0; i < N_WORDS; i++)
		ends(n[i], words[i].without, words[i].reason);
	played_put(&g, "how", "broken\n");
	never = submit(0, 0);
	ends(never, JOB_FAILED, "q could not run it (bad node)");
	assert_int_equal(job(never)->row.started_ns, 0);
}

ENGINE_TEST(test_a_signal_that_the_engine_says_nothing_about_is_the_jobs_own)
{
	uint64_t n;

	begin(false, "");
	n = submit(1, 0);
	runs(n, 1);
	assert_int_equal(kill(process(n, "job"), SIGKILL), 0);
	ends(n, JOB_FAILED, "signal 9");
}

/* ---- cancel ---- */

ENGINE_TEST(test_a_cancel_reaches_the_job_through_the_engine)
{
	uint64_t n;
	pid_t command;

	begin(false, "");
	n = submit(1, 0);
	runs(n, 1);
	command = process(n, "job");
	assert_int_equal(client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)n)[0],
			 0);
	ends(n, JOB_CANCELLED, "");
	assert_true(played_has(&g, "cancels", "1\n"));
	assert_int_not_equal(kill(command, 0), 0);
	assert_int_equal(played_lines(&g, "submits"), 1);
}

ENGINE_TEST(test_a_job_that_was_cancelled_before_the_engine_took_it_is_not_submitted)
{
	uint64_t n;

	begin(false, "");
	assert_int_equal(rename(support_path(g.dir, "submit"), support_path(g.dir, "gone")), 0);
	n = submit(0, 0);
	waits(n, "cannot run");
	assert_int_equal(client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)n)[0],
			 0);
	ends(n, JOB_CANCELLED, "stopped on request, before it was started");
	assert_int_equal(played_lines(&g, "submits"), 0);
	assert_int_equal(played_lines(&g, "cancels"), 0);
}

/* ---- a restart ---- */

ENGINE_TEST(test_a_job_is_found_again_after_a_restart_and_runs_once)
{
	uint64_t n;

	begin(false, "");
	n = submit(1, 0);
	runs(n, 1);
	restart();
	wait_for(n, has_run);
	played_open_gate(&g);
	ends(n, JOB_DONE, "");
	assert_true(job(n)->row.accuracy == 0.91);
	assert_int_equal(played_lines(&g, "submits"), 1);
	assert_int_equal(played_lines(&g, "runs"), 1);
}

static bool hands_over(const struct local_daemon *d)
{
	(void)d;
	return played_lines(&g, "runs") == 1;
}

/* The hand-over record has no id: the identity has to do. */
ENGINE_TEST(test_a_job_without_an_answer_is_found_by_its_identity_after_a_restart)
{
	uint64_t n;

	begin(false, "");
	played_put(&g, "how", "deaf\n");
	n = submit(1, 0);
	local_until(&l, hands_over);
	restart();
	until_lines("polls", 2);
	assert_int_equal(client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)n)[0],
			 0);
	ends(n, JOB_CANCELLED, "");
	assert_true(played_has(&g, "cancels", "1\n")); /* the poll told its id */
	assert_int_equal(played_lines(&g, "submits"), 1);
}

ENGINE_TEST(test_a_job_that_the_engine_never_got_is_submitted_after_a_restart)
{
	uint64_t n;

	begin(false, "");
	played_put(&g, "how", "later\n");
	n = submit(0, 0);
	waits(n, "controller is away");
	played_put(&g, "how", NULL);
	restart();
	ends(n, JOB_DONE, "");
	assert_int_equal(played_lines(&g, "submits"), 2);
	assert_int_equal(played_lines(&g, "runs"), 1);
}

/* It ended while no daemon was there. */
ENGINE_TEST(test_an_end_without_a_daemon_is_read_after_the_restart)
{
	uint64_t n;

	begin(false, "");
	n = submit(1, 0);
	runs(n, 1);
	client_close(&c);
	local_stop(&l);
	played_open_gate(&g);
	while (!played_has(&g, "queue/1", "ended"))
		usleep(1000);
	local_start(&l);
	client_open(&c, &l);
	ends(n, JOB_DONE, "");
	assert_true(job(n)->row.accuracy == 0.91);
	assert_int_equal(played_lines(&g, "runs"), 1);
}

ENGINE_TEST(test_a_job_of_an_engine_that_is_no_longer_configured_is_not_lost)
{
	uint64_t n;

	begin(false, "");
	n = submit(1, 0);
	runs(n, 1);
	l.settings = "";
	restart();
	wait_for(n, has_run);
	played_open_gate(&g);
	ends(n, JOB_DONE, "");
}

/* ---- Slurm: its accounting, its cluster ---- */

static void books(const char *fmt, long long started_s, long long ended_s)
{
	char line[200];

	snprintf(line, sizeof line, fmt, started_s, ended_s);
	played_put(&g, "books", line);
}

/* It was there, its node died, and Slurm's queue has forgotten it. */
static uint64_t forgotten(size_t nth)
{
	uint64_t n = submit(1, 0);

	runs(n, nth);
	played_word(&g, (unsigned)nth, identity(n), NULL);
	node_dies(n);
	return n;
}

ENGINE_TEST(test_without_a_record_the_accounting_says_how_a_job_ended)
{
	long long now_s = (long long)time(NULL);
	char asked[80];
	uint64_t n;

	begin(true, ",\"look_s\":0");
	books("1|COMPLETED|0:0|%lld|%lld\n", now_s - 1, now_s + 2);
	n = forgotten(1);
	ends(n, JOB_DONE, "by the accounting of q it is COMPLETED after");
	snprintf(asked, sizeof asked, "--jobs=1 ");
	assert_true(played_has(&g, "books_asked", asked));
	assert_int_equal(played_lines(&g, "books_asked"), 1);
	books("2|RUNNING|0:0|%lld|Unknown\n2|FAILED|37:0|%lld|0\n", now_s, now_s);
	n = forgotten(2);
	ends(n, JOB_FAILED, "by the accounting of q it is FAILED after");
	assert_int_equal(job(n)->row.exit_code, 37);
	books("3|TIMEOUT|0:0|%lld|%lld\n", now_s, now_s + 1);
	ends(forgotten(3), JOB_FAILED, "stopped by q at its time limit (TIMEOUT)");
	books("4|NODE_FAIL|0:0|%lld|%lld\n", now_s, now_s + 1);
	ends(forgotten(4), JOB_LOST, "its node failed, says q (NODE_FAIL)");
	played_put(&g, "books", "");
	ends(forgotten(5), JOB_LOST, "q says that it is over (it is gone from the queue)");
	played_put(&g, "books", NULL); /* there are no books: sacct fails */
	ends(forgotten(6), JOB_LOST, "q says that it is over (it is gone from the queue)");
}

ENGINE_TEST(test_a_job_that_could_not_be_launched_says_what_its_report_says)
{
	begin(true, ",\"look_s\":0");
	played_put(&g, "how", "broken\n");
	ends(submit(0, 0), JOB_FAILED, "q could not run it (FAILED, bad node): no such program");
}

/* Slurm cancels a job whose number a node still has from before: no user asked for that. */
ENGINE_TEST(test_a_job_that_was_cancelled_at_its_launch_is_submitted_again)
{
	uint64_t n;

	begin(true, ",\"look_s\":0");
	played_put(&g, "how", "hold\n");
	n = submit(0, 0);
	waits(n, "no room");
	played_put(&g, "how", NULL);
	played_word(&g, 1, identity(n), "cancelled");
	ends(n, JOB_DONE, "");
	assert_int_equal(played_lines(&g, "submits"), 2);
	assert_int_equal(played_lines(&g, "runs"), 1);
}

static double expected_cpus;

static bool cluster_has(const struct local_daemon *d)
{
	struct json *v;
	bool has;

	(void)d;
	v = client_ask(&c, "{\"op\":\"stats\"}");
	has = number_at(v, "cluster.cpus") == expected_cpus && !text_at(v, "cluster.error")[0];
	json_free(v);
	return has;
}

static const char *expected_error;

static bool cluster_fails(const struct local_daemon *d)
{
	struct json *v;
	bool has;

	(void)d;
	v = client_ask(&c, "{\"op\":\"stats\"}");
	has = strstr(text_at(v, "cluster.error"), expected_error) != NULL;
	json_free(v);
	return has;
}

ENGINE_TEST(test_the_cluster_is_looked_at_before_the_socket_opens_and_then_again)
{
	struct json *v;

	played_open(&g, &l, true, ",\"look_s\":0.2");
	played_put(&g, "nodes", "n1|near*|mixed|3/5/0/8|(null)\nn2|near*|down|0/0/4/4|(null)\n");
	played_put(&g, "others", "3|RUNNING|near|NOT_SET|N/A|1|60001|(null)\n");
	start(g.settings);
	v = client_ask(&c, "{\"op\":\"stats\"}");
	assert_string_equal(text_at(v, "cluster.engine"), "q");
	assert_true(number_at(v, "cluster.nodes") == 2.0 && number_at(v, "cluster.nodes_away") == 1.0);
	assert_true(number_at(v, "cluster.cpus") == 8.0);
	assert_true(number_at(v, "cluster.others.running") == 1.0);
	assert_true(number_at(v, "queue.slots") == 8.0); /* not the 20 of the configuration */
	json_free(v);
	played_put(&g, "nodes", "n1|near*|mixed|3/2/0/5|(null)\n");
	expected_cpus = 5.0;
	local_until(&l, cluster_has);
	played_put(&g, "nodes", NULL);
	expected_error = "nodes"; /* what sinfo complained of */
	local_until(&l, cluster_fails);
	played_put(&g, "nodes", "n1|far|idle|0/2/0/2|(null)\n");
	expected_error = "no node in the partitions";
	local_until(&l, cluster_fails);
	v = client_ask(&c, "{\"op\":\"stats\"}"); /* what was known last is still the best guess */
	assert_true(number_at(v, "queue.slots") == 5.0);
	json_free(v);
	played_put(&g, "nodes", "n1|near*|idle|0/6/0/6|(null)\n");
	expected_cpus = 6.0;
	local_until(&l, cluster_has);
	/* a reload without it: the slots are the configuration's again */
	l.settings = "\"slots\":20,";
	local_write_config(&l);
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	v = client_ask(&c, "{\"op\":\"stats\"}");
	assert_int_equal(json_type(json_get(v, "cluster")), JSON_ABSENT);
	assert_true(number_at(v, "queue.slots") == 20.0);
	json_free(v);
}
