/* Ops on a daemon in this process: who may do what, which members are refused, and what a job goes
 * through. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json/json.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"

#define OTHER 65534
#define THIRD 65533
#define CREW 4711 /* a group */
#define ADVISED ",\"type\":\"advised\",\"mode\":\"advise\""

/* The request is refused with this code, about this member ("": none). */
static void refused(const char *request, const char *code, const char *field)
{
	struct json *v = client_ask(&c, "%s", request);

	if (strcmp(text_at(v, "error.code"), code) || strcmp(text_at(v, "error.field"), field))
		fail_msg("%s: code '%s', field '%s'", request, text_at(v, "error.code"),
			 text_at(v, "error.field"));
	assert_true(*text_at(v, "error.message"));
	json_free(v);
}

static void submit_refused(const char *members, const char *code, const char *field)
{
	char request[1024];

	snprintf(request, sizeof request, "{\"op\":\"submit\"%s}", members);
	refused(request, code, field);
}

static void state_is(uint64_t job, const char *state)
{
	struct json *v = client_ask(&c, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);

	assert_string_equal(text_at(v, "job.state"), state);
	json_free(v);
}

static struct json *about(const char *op, uint64_t job, const char *more)
{
	return client_ask(&c, "{\"op\":\"%s\",\"job\":\"%llu\"%s}", op, (unsigned long long)job, more);
}

static const char *error_about(const char *op, uint64_t job, const char *more)
{
	return client_error(&c, "{\"op\":\"%s\",\"job\":\"%llu\"%s}", op, (unsigned long long)job, more);
}

static size_t listed(const char *members, bool *more)
{
	struct json *v = client_ask(&c, "{\"op\":\"list\"%s}", members);
	size_t n = json_size(json_get(v, "jobs"));

	assert_true(json_bool(json_get(v, "ok"), false));
	*more = json_bool(json_get(v, "more"), false);
	json_free(v);
	return n;
}

/* An advised job that runs. */
static uint64_t running(void)
{
	uint64_t job = client_submit(&c, ADVISED);

	assert_true(job > 0);
	assert_string_equal(error_about("started", job, ""), "");
	return job;
}

/* ---- who ---- */

static bool is_admin(uid_t uid, gid_t gid, gid_t group)
{
	struct json *v;
	bool admin;

	client_open_as(&c, &l, uid, gid, group);
	v = client_ask(&c, "{\"op\":\"hello\"}");
	assert_int_equal(number_at(v, "uid"), uid);
	admin = json_bool(json_get(v, "admin"), false);
	json_free(v);
	assert_string_equal(client_error(&c, "{\"op\":\"drain\",\"off\":true}"),
			    admin ? "" : "not_permitted");
	client_close(&c);
	return admin;
}

TEST_WITH(test_members_of_an_admin_group_are_admins, open_one, close_one)
{
	(void)state;
	l.settings = "\"admins\":{\"users\":[65533],\"groups\":[4711]},";
	local_start(&l);
	assert_true(is_admin(0, 0, 0));
	assert_true(is_admin(THIRD, THIRD, THIRD)); /* by name */
	assert_true(is_admin(OTHER, CREW, OTHER)); /* by its own group */
	assert_true(is_admin(OTHER, OTHER, CREW)); /* by a further group */
	assert_false(is_admin(OTHER, OTHER, OTHER));
}

TEST_WITH(test_only_the_owner_and_admins_change_a_job, open_one, close_one)
{
	struct local_client other;
	uint64_t job;
	bool more;

	(void)state;
	start("");
	job = client_submit(&c, ADVISED);
	client_open_as(&other, &l, OTHER, OTHER, OTHER);
	assert_string_equal(client_error(&other, "{\"op\":\"cancel\",\"job\":%llu}", (unsigned long long)job),
			    "not_permitted");
	assert_string_equal(
		client_error(&other, "{\"op\":\"started\",\"job\":%llu}", (unsigned long long)job),
		"not_permitted");
	assert_string_equal(client_error(&other, "{\"op\":\"status\",\"job\":%llu}", (unsigned long long)job),
			    "");
	assert_string_equal(client_error(&other, "{\"op\":\"reload\"}"), "not_permitted");
	assert_string_equal(client_error(&other, "{\"op\":\"retrain\"}"), "not_permitted");
	assert_string_equal(client_error(&other, "{\"op\":\"rollback\",\"version\":0}"), "not_permitted");
	assert_string_equal(client_error(&other, "{\"op\":\"models\"}"), "");
	assert_string_equal(client_error(&other, "{\"op\":\"submit\"" ADVISED ",\"priority\":1}"),
			    "not_permitted");
	assert_string_equal(client_error(&other, "{\"op\":\"submit\"" ADVISED ",\"priority\":-1}"), "");
	state_is(job, "queued");
	assert_int_equal(listed(",\"state\":\"queued\"", &more), 2); /* one of each */
	assert_int_equal(listed(",\"state\":\"queued\",\"mine\":true", &more), 1);
	client_close(&other);
	assert_string_equal(client_error(&c, "{\"op\":\"submit\"" ADVISED ",\"priority\":1}"), "");
}

TEST_WITH(test_the_group_of_the_socket_may_be_a_number, open_one, close_one)
{
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	start("\"socket_group\":\"4711\",");
	assert_int_equal(stat(l.socket, &st), 0);
	assert_int_equal(st.st_gid, CREW);
}

TEST_WITH(test_a_group_that_is_not_there_is_refused_by_name, open_one, close_one)
{
	struct err err = { 0 };

	(void)state;
	l.settings = "\"socket_group\":\"no-such-group\",";
	local_write_config(&l);
	assert_int_equal(local_try_start(&l, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "socket_group: there is no group"));
}

/* ---- lines and members ---- */

TEST_WITH(test_a_line_that_is_no_request_is_refused, open_one, close_one)
{
	struct json *v;

	(void)state;
	start("");
	refused("{", "bad_json", "");
	refused("[1]", "bad_json", "");
	refused("{\"op\":1}", "bad_field", "op");
	refused("{}", "bad_field", "op");
	refused("{\"op\":\"hello\",\"v\":2}", "bad_version", "v");
	refused("{\"op\":\"hello\",\"id\":[]}", "bad_field", "id");
	refused("{\"op\":\"hello\",\"id\":"
		"\"0123456789012345678901234567890123456789012345678901234567890123x\"}",
		"bad_field", "id");
	refused("{\"op\":\"helo\"}", "unknown_op", "op");
	refused("{\"op\":\"hello\",\"jobb\":1}", "unknown_field", "jobb");
	v = client_ask(&c, "{\"op\":\"helo\",\"id\":\"a\\u0000b\"}");
	json_free(v);
	v = client_ask(&c, "{\"op\":\"statu\",\"id\":\"mine\"}");
	assert_string_equal(text_at(v, "id"), "mine");
	assert_string_equal(text_at(v, "error.hint"), "did you mean 'status'?");
	json_free(v);
	v = client_ask(&c, "{\"op\":\"status\",\"job\":\"77\",\"id\":2.5}");
	assert_true(number_at(v, "id") == 2.5);
	assert_string_equal(text_at(v, "error.code"), "unknown_job");
	json_free(v);
}

TEST_WITH(test_members_of_a_submission_are_checked, open_one, close_one)
{
	(void)state;
	start("");
	submit_refused("", "bad_field", "type");
	submit_refused(",\"type\":\"advisd\"", "unknown_type", "type");
	submit_refused(ADVISED ",\"slo_s\":0", "bad_field", "slo_s");
	submit_refused(ADVISED ",\"slo_s\":\"5\"", "bad_field", "slo_s");
	submit_refused(ADVISED ",\"slo_s\":4e9", "bad_field", "slo_s");
	submit_refused(ADVISED ",\"deadline\":\"2001-01-01T00:00:00Z\"", "bad_field", "deadline");
	submit_refused(ADVISED ",\"deadline\":\"tomorrow\"", "bad_field", "deadline");
	submit_refused(ADVISED ",\"slo_s\":5,\"deadline\":\"2100-01-01T00:00:00Z\"", "bad_field", "deadline");
	submit_refused(ADVISED ",\"confidence\":1", "bad_field", "confidence");
	submit_refused(ADVISED ",\"confidence\":0", "bad_field", "confidence");
	submit_refused(ADVISED ",\"cpus\":2", "bad_field", "cpus");
	submit_refused(ADVISED ",\"cpus\":0", "bad_field", "cpus");
	submit_refused(ADVISED ",\"priority\":101", "bad_field", "priority");
	submit_refused(ADVISED ",\"priority\":0.5", "bad_field", "priority");
	submit_refused(ADVISED ",\"may_stop\":1", "bad_field", "may_stop");
	submit_refused(ADVISED ",\"best_effort\":\"yes\"", "bad_field", "best_effort");
	submit_refused(ADVISED ",\"max_memory_mb\":0", "bad_field", "max_memory_mb");
	submit_refused(ADVISED ",\"batches\":[100]", "bad_field", "batches");
	submit_refused(ADVISED ",\"epochs\":[]", "bad_field", "epochs");
	submit_refused(ADVISED ",\"epochs\":21", "bad_field", "epochs");
	submit_refused(",\"type\":\"sleepy\",\"epochs\":3", "bad_field", "epochs");
	submit_refused(",\"type\":\"advised\",\"mode\":\"walk\"", "bad_field", "mode");
	submit_refused(",\"type\":\"advised\",\"mode\":\"run\"", "bad_field", "mode"); /* it has no command */
	submit_refused(ADVISED ",\"key\":\"\"", "bad_field", "key");
	submit_refused(ADVISED ",\"tag\":7", "bad_field", "tag");
	submit_refused(ADVISED ",\"dry_run\":true", "no_model", "");
	assert_true(client_submit(&c, ADVISED ",\"slo_s\":null,\"params\":null") ==
		    1); /* none of those was one */
}

TEST_WITH(test_epochs_stand_for_the_parameter_that_holds_them, open_one, close_one)
{
	struct json *v;

	(void)state;
	start("");
	v = client_ask(&c,
		       "{\"op\":\"submit\"" ADVISED ",\"epochs\":7,\"params\":{\"epochs\":3,\"samples\":5}}");
	assert_true(number_at(v, "job.params.epochs") == 7.0 && number_at(v, "job.params.samples") == 5.0);
	json_free(v);
}

/* ---- a job ---- */

TEST_WITH(test_an_advised_job_goes_from_queued_to_done, open_one, close_one)
{
	struct json *v;
	uint64_t job;

	(void)state;
	start("");
	job = client_submit(&c, ADVISED ",\"tag\":\"blue\"");
	assert_string_equal(error_about("progress", job, ",\"done\":0.5"), "wrong_state");
	assert_string_equal(error_about("finished", job, ""), "wrong_state");
	v = about("started", job, "");
	assert_string_equal(text_at(v, "job.state"), "running");
	assert_true(number_at(v, "job.batch") == 128.0);
	json_free(v);
	assert_string_equal(error_about("started", job, ""), "wrong_state");
	assert_string_equal(error_about("progress", job, ",\"done\":1.5"), "bad_field");
	assert_string_equal(error_about("progress", job, ""), "bad_field");
	assert_string_equal(error_about("progress", job, ",\"done\":0.25"), "");
	assert_string_equal(error_about("finished", job, ",\"exit_code\":256"), "bad_field");
	assert_string_equal(error_about("finished", job, ",\"run_s\":1e6"), "bad_field");
	assert_string_equal(error_about("finished", job, ",\"run_s\":-1"), "bad_field");
	v = about("finished", job, ",\"accuracy\":0.75,\"run_s\":0");
	assert_string_equal(text_at(v, "job.state"), "done");
	assert_string_equal(text_at(v, "job.tag"), "blue");
	assert_true(number_at(v, "job.accuracy") == 0.75);
	json_free(v);
	assert_string_equal(error_about("cancel", job, ""), "wrong_state");
	assert_string_equal(error_about("finished", job, ""), "wrong_state");
	v = about("explain", job, "");
	assert_true(json_size(json_get(v, "decisions")) >= 1);
	assert_string_equal(text_at(v, "job.state"), "done");
	json_free(v);
}

TEST_WITH(test_an_exit_code_makes_a_job_failed, open_one, close_one)
{
	struct json *v;

	(void)state;
	start("");
	v = about("finished", running(), ",\"exit_code\":3");
	assert_string_equal(text_at(v, "job.state"), "failed");
	assert_non_null(strstr(text_at(v, "job.reason"), "exit code 3"));
	json_free(v);
}

TEST_WITH(test_a_job_that_the_daemon_runs_is_not_reported_by_its_owner, open_one, close_one)
{
	uint64_t job;

	(void)state;
	start("\"slots\":1,");
	running(); /* the only slot */
	job = client_submit(&c, ",\"type\":\"sleepy\"");
	assert_true(job > 0);
	assert_string_equal(error_about("started", job, ""), "wrong_state");
	assert_string_equal(error_about("finished", job, ""), "wrong_state");
	assert_string_equal(error_about("cancel", job, ""), "");
	state_is(job, "cancelled");
}

static bool has_ended(const struct local_daemon *at)
{
	return at->d->jobs.count[JOB_DONE] == 1;
}

TEST_WITH(test_a_command_is_run, open_one, close_one)
{
	struct json *v;
	uint64_t job;

	(void)state;
	start("");
	job = client_submit(&c, ",\"type\":\"sleepy\"");
	local_until(&l, has_ended);
	v = about("status", job, "");
	assert_string_equal(text_at(v, "job.state"), "done");
	assert_true(number_at(v, "job.exit_code") == 0.0);
	json_free(v);
}

TEST_WITH(test_a_key_makes_a_second_submit_the_same_job, open_one, close_one)
{
	struct json *v;
	uint64_t job;

	(void)state;
	start("");
	job = client_submit(&c, ADVISED ",\"key\":\"k1\"");
	v = client_ask(&c, "{\"op\":\"submit\",\"type\":\"gone\",\"key\":\"k1\"}"); /* before anything else */
	assert_true(json_bool(json_get(v, "duplicate"), false));
	assert_true(strtoull(text_at(v, "job.job"), NULL, 10) == job);
	json_free(v);
	assert_true(client_submit(&c, ADVISED ",\"key\":\"k2\"") == job + 1);
	v = client_ask(&c, "{\"op\":\"stats\"}");
	assert_true(number_at(v, "submissions.duplicates") == 1.0);
	json_free(v);
}

TEST_WITH(test_a_full_queue_and_a_draining_daemon_take_no_jobs, open_one, close_one)
{
	struct json *v;

	(void)state;
	start("\"max_queued\":1,\"slots\":1,");
	running();
	assert_true(client_submit(&c, ADVISED) > 0);
	submit_refused(ADVISED, "queue_full", "");
	v = client_ask(&c, "{\"op\":\"drain\"}");
	assert_true(json_bool(json_get(v, "draining"), false) && number_at(v, "running") == 1.0);
	json_free(v);
	submit_refused(ADVISED, "draining", "");
	refused("{\"op\":\"drain\",\"off\":1}", "bad_field", "off");
	assert_string_equal(client_error(&c, "{\"op\":\"drain\",\"off\":true}"), "");
	assert_false(l.d->draining);
	submit_refused(ADVISED, "queue_full", "");
}

/* As many as are left for all others; an admin may take the last place. */
TEST_WITH(test_the_last_places_of_the_queue_are_for_other_users, open_one, close_one)
{
	struct local_client other;

	(void)state;
	start("\"max_queued\":4,\"max_queued_per_uid\":4,\"slots\":1,");
	running();
	client_open_as(&other, &l, OTHER, OTHER, OTHER);
	assert_true(client_submit(&other, ADVISED) > 0);
	assert_true(client_submit(&other, ADVISED) > 0); /* now he has two, and two are left */
	assert_string_equal(client_error(&other, "{\"op\":\"submit\"" ADVISED "}"), "queue_full");
	assert_true(client_submit(&c, ADVISED) > 0);
	assert_true(client_submit(&c, ADVISED) > 0);
	submit_refused(ADVISED, "queue_full", "");
	client_close(&other);
}

/* ---- lists, watches, counts ---- */

TEST_WITH(test_jobs_are_listed_by_what_is_asked, open_one, close_one)
{
	uint64_t job[5];
	bool more;

	(void)state;
	start("\"slots\":1,");
	job[0] = running();
	json_free(about("finished", job[0], ""));
	job[1] = running();
	for (int i = 2; i < 5; i++)
		job[i] = client_submit(&c, i == 4 ? ",\"type\":\"sleepy\"" : ADVISED);
	assert_int_equal(listed("", &more), 5);
	assert_false(more);
	assert_int_equal(listed(",\"limit\":2", &more), 2);
	assert_true(more);
	assert_int_equal(listed(",\"state\":\"queued\"", &more), 3);
	assert_int_equal(listed(",\"state\":[\"queued\",\"running\"],\"limit\":3", &more), 3);
	assert_true(more);
	assert_int_equal(listed(",\"state\":[\"queued\",\"running\"],\"limit\":4", &more), 4);
	assert_false(more);
	assert_int_equal(listed(",\"state\":\"queued\",\"limit\":3", &more), 3);
	assert_false(more); /* the one before them is running */
	assert_int_equal(listed(",\"state\":\"done\"", &more), 1);
	assert_int_equal(listed(",\"state\":\"queued\",\"type\":\"sleepy\"", &more), 1);
	assert_int_equal(listed(",\"type\":\"advised\"", &more), 4);
	assert_int_equal(listed(",\"mine\":true,\"state\":\"queued\"", &more), 3);
	assert_int_equal(listed(",\"state\":[\"queued\",\"running\"],\"before\":\"3\"", &more), 1);
	refused("{\"op\":\"list\",\"state\":\"asleep\"}", "bad_field", "state");
	refused("{\"op\":\"list\",\"state\":[\"done\",1]}", "bad_field", "state");
	refused("{\"op\":\"list\",\"limit\":0}", "bad_field", "limit");
	refused("{\"op\":\"list\",\"limit\":1001}", "bad_field", "limit");
	refused("{\"op\":\"list\",\"before\":0}", "bad_field", "before");
	refused("{\"op\":\"list\",\"mine\":0}", "bad_field", "mine");
}

TEST_WITH(test_a_watch_tells_of_its_job_alone, open_one, close_one)
{
	struct local_client watcher;
	uint64_t first, second;
	struct json *v;

	(void)state;
	start("");
	first = client_submit(&c, ADVISED);
	second = client_submit(&c, ADVISED);
	client_open(&watcher, &l);
	v = client_ask(&watcher, "{\"op\":\"watch\",\"job\":\"%llu\"}", (unsigned long long)second);
	assert_int_equal(json_size(json_get(v, "jobs")), 1);
	json_free(v);
	assert_string_equal(client_error(&c, "{\"op\":\"watch\"}"), ""); /* another one gets all events */
	json_free(about("cancel", first, ""));
	json_free(about("cancel", second, ""));
	v = client_event(&watcher, "cancelled"); /* the first such event is of the second job */
	assert_true(strtoull(text_at(v, "job.job"), NULL, 10) == second);
	json_free(v);
	assert_string_equal(client_error(&watcher, "{\"op\":\"unwatch\"}"), "");
	assert_string_equal(client_error(&c, "{\"op\":\"unwatch\"}"), "");
	assert_int_equal(l.d->n_watchers, 0);
	v = client_ask(&watcher, "{\"op\":\"watch\"}");
	assert_int_equal(json_size(json_get(v, "jobs")), 0);
	json_free(v);
	first = client_submit(&c, ADVISED);
	v = client_event(&watcher, "submitted");
	assert_true(strtoull(text_at(v, "job.job"), NULL, 10) == first);
	json_free(v);
	assert_string_equal(client_error(&watcher, "{\"op\":\"watch\",\"job\":\"99\"}"), "unknown_job");
	client_close(&watcher);
	local_run(&l, 0.02);
	assert_int_equal(l.d->n_watchers, 0); /* one that has gone is forgotten */
}

TEST_WITH(test_two_watches_of_one_connection_become_one_of_all_jobs, open_one, close_one)
{
	uint64_t job[3];

	(void)state;
	start("");
	for (int i = 0; i < 3; i++)
		job[i] = client_submit(&c, ADVISED);
	json_free(about("watch", job[0], ""));
	json_free(about("watch", job[1], ""));
	assert_int_equal(l.d->n_watchers, 1);
	client_say(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)job[2]);
	json_free(client_event(&c, "cancelled"));
}

TEST_WITH(test_stats_count, open_one, close_one)
{
	struct json *v;

	(void)state;
	start("\"slots\":1,");
	running();
	client_submit(&c, ADVISED);
	v = client_ask(&c, "{\"op\":\"stats\"}");
	assert_true(number_at(v, "jobs.running") == 1.0 && number_at(v, "jobs.queued") == 1.0);
	assert_true(number_at(v, "queue.length") == 1.0 && number_at(v, "queue.running") == 1.0);
	assert_true(number_at(v, "queue.slots") == 1.0 && number_at(v, "queue.slots_used") == 1.0);
	assert_true(number_at(v, "connections") == 1.0);
	assert_string_equal(text_at(v, "policy"), "fixed:128");
	assert_false(json_bool(json_path(v, "store.failed"), true));
	json_free(v);
}

TEST_WITH(test_hello_tells_the_types, open_one, close_one)
{
	const struct json *type;
	struct json *v;

	(void)state;
	start("");
	v = client_ask(&c, "{\"op\":\"hello\"}");
	assert_int_equal(json_size(json_get(v, "types")), 2);
	type = json_first(json_get(v, "types"));
	assert_string_equal(text_at(type, "name"), "advised");
	assert_int_equal(json_size(json_get(type, "mode")), 1);
	assert_int_equal(json_size(json_get(type, "params")), 3);
	assert_int_equal(json_size(json_get(type, "batches")), 4);
	assert_int_equal(json_size(json_get(json_next(type), "mode")), 2);
	json_free(v);
}

/* ---- a restart ---- */

TEST_WITH(test_jobs_are_there_after_a_restart, open_one, close_one)
{
	uint64_t done, live, queued;

	(void)state;
	start("\"slots\":1,");
	done = running();
	json_free(about("finished", done, ""));
	live = running();
	queued = client_submit(&c, ADVISED ",\"key\":\"k\"");
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
	state_is(done, "done");
	state_is(live, "running");
	state_is(queued, "queued");
	assert_true(client_submit(&c, ADVISED ",\"key\":\"k\"") == queued);
	assert_true(client_submit(&c, ADVISED) == queued + 1);
	json_free(about("finished", live, ""));
	assert_string_equal(error_about("started", queued, ""), "");
}
