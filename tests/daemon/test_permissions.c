/* Who may do what, and where a daemon refuses to start. Most of it needs root: another user must be there to
 * be refused. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/io.h"
#include "tests/daemon/harness.h"
#include "tests/support/test.h"

#define OTHER 65534 /* nobody */
#define THIRD 65533

static struct fixture fixture;

static int open_one(void **state)
{
	(void)state;
	fixture_open(&fixture);
	return 0;
}

static int close_one(void **state)
{
	(void)state;
	fixture_close(&fixture);
	return 0;
}

static void need_root(void)
{
	if (geteuid() != 0) {
		printf("skipped: needs root, to be another user\n");
		skip();
	}
}

/* One request of another user, in a process of its own; the code of the error, "" where it was answered well.
 * `out_job`: the id in the answer. */
static const char *ask_as(uid_t uid, const char *request, unsigned long long *out_job)
{
	static char code[64];
	char answer[128] = "";
	int pipe_fd[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(pipe_fd), 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct talk *t;
		struct json *v;

		if (setgid(uid) || setuid(uid))
			_exit(1);
		t = talk_try(&fixture, 5.0);
		if (!t || !talk_say(t, "%s", request) || !(v = talk_hear_json(t, PATIENCE_S)))
			_exit(1);
		dprintf(pipe_fd[1], "%s %s", error_of(v)[0] ? error_of(v) : "-", text_at(v, "job.job"));
		_exit(0);
	}
	close(pipe_fd[1]);
	n = read(pipe_fd[0], answer, sizeof answer - 1);
	close(pipe_fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(n > 0);
	code[0] = 0;
	if (out_job)
		*out_job = 0;
	sscanf(answer, "%63s %llu", code, out_job ? out_job : &(unsigned long long){ 0 });
	if (!strcmp(code, "-"))
		code[0] = 0;
	return code;
}

static const char *ask_about_as(uid_t uid, const char *op, unsigned long long job)
{
	char request[96];

	snprintf(request, sizeof request, "{\"op\":\"%s\",\"job\":\"%llu\"}", op, job);
	return ask_as(uid, request, NULL);
}

TEST_WITH(test_another_user_cannot_cancel_a_job_but_an_admin_can, open_one, close_one)
{
	char settings[96];
	struct talk *t;
	uint64_t first, second;

	need_root();
	snprintf(settings, sizeof settings, "\"admins\":{\"users\":[%d]},", THIRD);
	fixture_configure(&fixture, settings, "");
	fixture_start(&fixture);
	t = talk_open(&fixture);
	first = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":30}");
	second = submit(t, ",\"type\":\"advised\",\"mode\":\"advise\"");
	assert_string_equal(ask_about_as(OTHER, "cancel", first), "not_permitted");
	assert_string_equal(ask_about_as(OTHER, "started", second), "not_permitted");
	assert_string_equal(ask_about_as(OTHER, "finished", second), "not_permitted");
	assert_string_equal(ask_as(OTHER, "{\"op\":\"drain\"}", NULL), "not_permitted");
	assert_string_equal(ask_as(OTHER, "{\"op\":\"reload\"}", NULL), "not_permitted");
	assert_string_equal(ask_about_as(OTHER, "status", first), ""); /* the queue is everybody's to see */
	json_free(await(t, first, "running"));
	assert_string_equal(ask_about_as(THIRD, "cancel", first), "");
	assert_string_equal(ask_as(THIRD, "{\"op\":\"reload\"}", NULL), "");
	json_free(await(t, first, "cancelled"));
	talk_close(t);
}

TEST_WITH(test_keys_are_each_users_own, open_one, close_one)
{
	static const char again[] = "{\"op\":\"submit\",\"type\":\"line\",\"key\":\"same\"}";
	unsigned long long mine, theirs, again_theirs;

	need_root();
	fixture_start(&fixture);
	assert_string_equal(ask_as(OTHER, again, &theirs), "");
	assert_string_equal(ask_as(THIRD, again, &mine), "");
	assert_string_equal(ask_as(OTHER, again, &again_theirs), "");
	assert_true(mine != theirs);
	assert_true(theirs == again_theirs);
}

static void is_told(const char *path, const char *want)
{
	char *told = NULL;
	size_t len;

	for (double until = now_s() + PATIENCE_S; now_s() < until; sleep_s(0.05)) {
		free(told);
		told = NULL;
		if (!io_read_file(path, 4096, &told, &len, NULL) && len && !strcmp(told, want))
			break;
	}
	assert_non_null(told);
	assert_string_equal(told, want);
	free(told);
}

TEST_WITH(test_notify_of_an_end_runs_as_the_user_of_the_job, open_one, close_one)
{
	char settings[400], path[192], want[96];
	unsigned long long job;
	struct stat st;

	need_root();
	snprintf(path, sizeof path, "%s/notices", fixture.dir);
	assert_int_equal(mkdir(path, 0777), 0);
	assert_int_equal(chmod(path, 01777), 0);
	snprintf(
		settings, sizeof settings,
		"\"notify_of\":\"ended\",\"notify\":[\"/bin/sh\",\"-c\",\"echo $1 $(id -u) $(id -g) $(id -G) "
		">$0/$2\",\"%s\",\"{job} {event} {state}\",\"{job}\"],",
		path);
	fixture_configure(&fixture, settings, "");
	fixture_start(&fixture);
	assert_string_equal(ask_as(OTHER, "{\"op\":\"submit\",\"type\":\"line\"}", &job), "");
	snprintf(path + strlen(path), sizeof path - strlen(path), "/%llu", job);
	snprintf(want, sizeof want, "%llu ended done %d %d %d\n", job, OTHER, OTHER, OTHER);
	is_told(path, want);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, OTHER);
}

TEST_WITH(test_notify_of_lost_jobs_leaves_out_those_that_end, open_one, close_one)
{
	char settings[300], path[192], want[64];
	uint64_t ended, lost;
	struct talk *t;

	snprintf(path, sizeof path, "%s/notices", fixture.dir);
	snprintf(settings, sizeof settings,
		 "\"advise_timeout_s\":1,\"notify_of\":\"lost\",\"notify\":[\"/bin/sh\",\"-c\",\"echo $1 "
		 ">>$0\","
		 "\"%s\",\"{job} {event} {state}\"],",
		 path);
	fixture_configure(&fixture, settings, "");
	fixture_start(&fixture);
	t = talk_open(&fixture);
	ended = submit(t, ",\"type\":\"line\"");
	json_free(await(t, ended, "done"));
	lost = submit(t, ",\"type\":\"advised\",\"mode\":\"advise\"");
	json_free(await(t, lost, "lost"));
	snprintf(want, sizeof want, "%llu lost lost\n", (unsigned long long)lost);
	is_told(path, want);
	talk_close(t);
}

TEST_WITH(test_a_job_runs_as_the_user_who_submitted_it, open_one, close_one)
{
	char types[320], path[192];
	struct stat st;
	unsigned long long job;
	struct talk *t;

	need_root();
	snprintf(path, sizeof path, "%s/made", fixture.dir);
	assert_int_equal(mkdir(path, 0777), 0);
	assert_int_equal(chmod(path, 0777), 0);
	snprintf(types, sizeof types,
		 ",\"touch\":{\"argv\":[\"/bin/sh\",\"-c\",\"id -u; id -G; : "
		 ">%s/{job}\",\"{batch}\"],\"batches\":[64]}",
		 path);
	fixture_configure(&fixture, "", types);
	fixture_start(&fixture);
	assert_string_equal(ask_as(OTHER, "{\"op\":\"submit\",\"type\":\"touch\"}", &job), "");
	t = talk_open(&fixture);
	json_free(await(t, job, "done"));
	talk_close(t);
	snprintf(path + strlen(path), sizeof path - strlen(path), "/%llu", job);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, OTHER);
	assert_int_equal(st.st_gid, OTHER);
	snprintf(path, sizeof path, "%s/jobs/%llu", fixture.state, job);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, OTHER);
	assert_int_equal(st.st_mode & 0022, 0);
	assert_int_equal(ask_as(OTHER, "{\"op\":\"status\",\"job\":\"1\"}", NULL)[0], 0);
}

/* Users of one lab share their primary group. */
TEST_WITH(test_users_with_the_same_group_cannot_read_each_others_logs, open_one, close_one)
{
	static const char *const name[] = { "", "/stdout", "/stderr" };
	char path[192];
	struct stat st;
	unsigned long long job;
	struct talk *t;
	int status;

	need_root();
	fixture_start(&fixture);
	assert_string_equal(ask_as(OTHER, "{\"op\":\"submit\",\"type\":\"line\"}", &job), "");
	t = talk_open(&fixture);
	json_free(await(t, job, "done"));
	talk_close(t);
	for (size_t i = 0; i < 3; i++) {
		pid_t pid;

		snprintf(path, sizeof path, "%s/jobs/%llu%s", fixture.state, job, name[i]);
		assert_int_equal(lstat(path, &st), 0);
		assert_int_equal(st.st_gid, OTHER);
		assert_int_equal(st.st_mode & 07777, i ? 0600 : 0700);
		pid = fork();
		if (pid == 0)
			_exit(setgroups(0, NULL) || setgid(OTHER) || setuid(THIRD)
				      ? 2
				      : open(path, O_RDONLY) >= 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* A decision without a job needs no rights; it once ended the daemon. */
TEST_WITH(test_anybody_may_ask_for_a_prediction, open_one, close_one)
{
	static const char ask[] = "{\"op\":\"predict\",\"type\":\"line\",\"slo_s\":100000}";

	need_root();
	fixture_train(&fixture);
	fixture_start(&fixture);
	for (int i = 0; i < 3; i++)
		assert_string_equal(ask_as(OTHER, ask, NULL), "");
	assert_string_equal(
		ask_as(THIRD, "{\"op\":\"submit\",\"type\":\"line\",\"slo_s\":9,\"dry_run\":true}", NULL),
		"");
	assert_string_equal(ask_as(0, ask, NULL), "");
	assert_int_equal(fixture_stop(&fixture, SIGTERM), 0);
}

/* The records beside the job's folder are the daemon's: whoever could write them could have root kill for
 * them. */
TEST_WITH(test_a_user_cannot_write_the_records_of_a_job, open_one, close_one)
{
	unsigned long long job;
	struct talk *t;
	struct stat st;
	char path[192];

	need_root();
	fixture_start(&fixture);
	assert_string_equal(ask_as(OTHER, "{\"op\":\"submit\",\"type\":\"line\"}", &job), "");
	t = talk_open(&fixture);
	json_free(await(t, job, "done"));
	talk_close(t);
	assert_int_equal(stat(fixture_record(&fixture, job, ".exit"), &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_mode & 0022, 0);
	snprintf(path, sizeof path, "%s/jobs", fixture.state);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_mode & 0022, 0);
	snprintf(path, sizeof path, "%s/postrider.db", fixture.state);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0077 & ~0040, 0);
}

TEST_WITH(test_a_daemon_that_is_not_root_runs_its_own_users_jobs_only, open_one, close_one)
{
	unsigned long long job;
	struct talk *t;

	need_root();
	fixture.uid = OTHER;
	assert_int_equal(chown(fixture.dir, OTHER, OTHER), 0);
	assert_int_equal(chown(fixture.config, OTHER, OTHER), 0);
	fixture_start(&fixture);
	assert_string_equal(ask_as(THIRD, "{\"op\":\"submit\",\"type\":\"line\"}", NULL), "not_permitted");
	assert_string_equal(
		ask_as(THIRD, "{\"op\":\"submit\",\"type\":\"advised\",\"mode\":\"advise\"}", NULL), "");
	assert_string_equal(ask_as(OTHER, "{\"op\":\"submit\",\"type\":\"line\"}", &job), "");
	t = talk_open(&fixture);
	json_free(await(t, job, "done"));
	talk_close(t);
}

TEST_WITH(test_a_state_folder_that_others_may_write_to_is_refused, open_one, close_one)
{
	static const mode_t loose[] = { 0777, 0770, 01777, 0702 };

	assert_int_equal(mkdir(fixture.state, 0700), 0);
	for (size_t i = 0; i < sizeof loose / sizeof loose[0]; i++) {
		assert_int_equal(chmod(fixture.state, loose[i]), 0);
		assert_int_equal(fixture_refused(&fixture), 7);
	}
	assert_true(fixture_logged(&fixture, "others may write"));
	fixture.flag[0] = "--force";
	fixture_start(&fixture);
	assert_int_equal(fixture_stop(&fixture, SIGTERM), 0);
	fixture.flag[0] = NULL;
	assert_int_equal(chmod(fixture.state, 0700), 0);
	fixture_start(&fixture);
}

TEST_WITH(test_a_state_folder_behind_a_link_or_of_another_user_is_refused, open_one, close_one)
{
	char real[128];

	need_root();
	snprintf(real, sizeof real, "%s/real", fixture.dir);
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink(real, fixture.state), 0);
	assert_int_not_equal(fixture_refused(&fixture), 0);
	assert_int_equal(unlink(fixture.state), 0);
	assert_int_equal(mkdir(fixture.state, 0700), 0);
	assert_int_equal(chown(fixture.state, OTHER, OTHER), 0);
	assert_int_equal(fixture_refused(&fixture), 7);
}

TEST_WITH(test_a_second_daemon_on_the_same_state_or_socket_is_refused, open_one, close_one)
{
	struct fixture second;
	struct talk *t;

	fixture_start(&fixture);
	second = fixture; /* both are the first one's */
	assert_int_equal(fixture_refused(&second), 8);
	snprintf(second.socket, sizeof second.socket, "%s/socket-2", fixture.dir);
	second.flag[0] = "--socket";
	second.flag[1] = second.socket;
	assert_int_equal(fixture_refused(&second), 8); /* the same state */
	snprintf(second.state, sizeof second.state, "%s/state-2", fixture.dir);
	second.flag[0] = "--state";
	second.flag[1] = second.state;
	assert_int_equal(fixture_refused(&second), 8); /* the same socket */
	t = talk_open(&fixture); /* and the first one did not notice */
	json_free(await(t, submit(t, ",\"type\":\"line\""), "done"));
	talk_close(t);
}

TEST_WITH(test_a_stale_socket_is_replaced_and_nothing_else_is, open_one, close_one)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct stat st;
	FILE *f;

	snprintf(at.sun_path, sizeof at.sun_path, "%.107s", fixture.socket);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	close(fd); /* nobody listens there any more */
	fixture_start(&fixture);
	assert_int_equal(fixture_stop(&fixture, SIGKILL), -SIGKILL);
	assert_int_equal(stat(fixture.socket, &st), 0); /* its own, left behind */
	fixture_start(&fixture);
	assert_int_equal(fixture_stop(&fixture, SIGTERM), 0);
	assert_int_not_equal(stat(fixture.socket, &st), 0);
	f = fopen(fixture.socket, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_not_equal(fixture_refused(&fixture), 0);
	assert_int_equal(stat(fixture.socket, &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

TEST_WITH(test_bad_files_are_told_by_the_exit_code, open_one, close_one)
{
	struct fixture bad = fixture;
	char path[160];
	FILE *f;

	snprintf(bad.config, sizeof bad.config, "%s/nowhere.json", fixture.dir);
	assert_int_equal(fixture_refused(&bad), 4);
	fixture_configure(&fixture, "\"slots\":0,", "");
	assert_int_equal(fixture_refused(&fixture), 6);
	fixture_configure(&fixture, "", "");
	assert_int_equal(mkdir(fixture.state, 0700), 0);
	snprintf(path, sizeof path, "%s/postrider.db", fixture.state);
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 5000; i++)
		fputs("this is not a database\n", f);
	fclose(f);
	assert_int_equal(fixture_refused(&fixture), 6);
}
