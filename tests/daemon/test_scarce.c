/* Where the machine lacks descriptors, processes or room on the disk, admitted jobs wait with a reason and
 * start when it is over. None of them fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <dirent.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/daemon/harness.h"
#include "tests/support/test.h"

#define N_JOBS 3
#define USER 70011

/* By a process of the daemon's own user: root in a container may not change the limits of others. */
static void set_limit(const struct fixture *y, int what, rlim_t value)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct rlimit l;

		if (y->uid && (setgid(y->uid) || setuid(y->uid)))
			_exit(1);
		if (prlimit(y->pid, what, NULL, &l))
			_exit(2);
		l.rlim_cur = value < l.rlim_max ? value : l.rlim_max;
		_exit(prlimit(y->pid, what, &l, NULL) ? 3 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("could not limit the daemon");
}

static struct json *await_delay(struct talk *t, uint64_t job)
{
	for (double give_up = now_s() + PATIENCE_S; now_s() < give_up; sleep_s(0.02)) {
		struct json *v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);

		if (!strcmp(text_at(v, "job.waiting.code"), "machine"))
			return v;
		if (strcmp(text_at(v, "job.state"), "failed") == 0)
			die("job %llu failed: %s", (unsigned long long)job, text_at(v, "job.reason"));
		json_free(v);
	}
	die("job %llu does not wait", (unsigned long long)job);
}

/* `uid`: who submits. */
static void check(struct fixture *y, int what, rlim_t value, const char *reason, uid_t uid)
{
	struct talk *t;
	struct json *v;
	uint64_t job[N_JOBS], cancelled, runs;
	char id[24];

	fixture_start(y);
	if (uid && seteuid(uid))
		die("cannot be uid %u: %s", (unsigned)uid, strerror(errno));
	t = talk_open(y);
	if (uid && seteuid(0))
		die("cannot be root again: %s", strerror(errno));
	json_free(await(t, submit(t, ",\"type\":\"line\""), "done")); /* it works, and all files are open */
	runs = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":60}"); /* and goes on all the while */
	json_free(await(t, runs, "running"));
	sleep_s(0.3); /* until it is the command */
	set_limit(y, what, what == RLIMIT_NOFILE ? count_fds(y->pid) : value);
	for (int i = 0; i < N_JOBS; i++)
		job[i] = submit(t, ",\"type\":\"line\"");
	v = await_delay(t, job[0]);
	if (!strstr(text_at(v, "job.waiting.message"), reason))
		fail_msg("it waits because: %s", text_at(v, "job.waiting.message"));
	json_free(v);
	cancelled = submit(t, ",\"type\":\"line\"");
	json_free(await_delay(t, cancelled));
	json_free(talk_ask(t, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)cancelled));
	json_free(await(t, cancelled, "cancelled"));
	sleep_s(1.5); /* it was tried again meanwhile */
	json_free(await_delay(t, job[N_JOBS - 1]));
	set_limit(y, what, RLIM_INFINITY);
	for (int i = 0; i < N_JOBS; i++) {
		json_free(await(t, job[i], "done"));
		snprintf(id, sizeof id, "%llu", (unsigned long long)job[i]);
		assert_int_equal(fixture_runs(y, 'B', id), 1);
	}
	state_of(t, runs, id);
	assert_string_equal(id, "running");
	assert_true(fixture_logged(y, "jobs cannot be started, and wait"));
	assert_true(fixture_logged(y, "jobs can be started again"));
	talk_close(t);
	fixture_close(y);
}

TEST(test_without_descriptors_jobs_wait)
{
	struct fixture y;

	fixture_open(&y);
	fixture_configure(&y, "\"slots\":8,", "");
	check(&y, RLIMIT_NOFILE, 0, "Too many open files", 0);
}

/* So many more files may be made in it. */
static void leave_room(const char *dir, unsigned long more)
{
	struct statvfs v;
	char data[64];

	assert_int_equal(statvfs(dir, &v), 0);
	snprintf(data, sizeof data, "nr_inodes=%lu,mode=0711", v.f_files - v.f_ffree + more);
	assert_int_equal(mount("tmpfs", dir, "tmpfs", MS_REMOUNT, data), 0);
}

static size_t folders_moved_away(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += strstr(e->d_name, ".old-") != NULL;
	closedir(d);
	return n;
}

/* The folder of the runs is full, at each step: the record of the claim, the folder, its files, the record of
 * the end. */
TEST(test_on_a_full_disk_jobs_wait)
{
	struct fixture y;
	struct talk *t;
	char dir[160], id[24];
	size_t waited = 0;

	fixture_open(&y);
	fixture_configure(&y, "\"slots\":8,", "");
	snprintf(dir, sizeof dir, "%s/jobs", y.state);
	if (mkdir(y.state, 0711) || mkdir(dir, 0711) ||
	    mount("tmpfs", dir, "tmpfs", 0, "nr_inodes=100,mode=0711")) {
		printf("skipped: no small file system can be mounted: %s\n", strerror(errno));
		fixture_close(&y);
		skip();
	}
	fixture_start(&y);
	t = talk_open(&y);
	for (unsigned long more = 0; more < 6; more++) {
		uint64_t job;
		struct json *v;

		leave_room(dir, more);
		job = submit(t, ",\"type\":\"line\"");
		sleep_s(2.2); /* it is tried again meanwhile */
		v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);
		if (!strcmp(text_at(v, "job.waiting.code"), "machine")) {
			assert_non_null(strstr(text_at(v, "job.waiting.message"), "No space left on device"));
			waited++;
		}
		json_free(v);
		leave_room(dir, 1000);
		json_free(await(t, job, "done"));
		snprintf(id, sizeof id, "%llu", (unsigned long long)job);
		assert_int_equal(fixture_runs(&y, 'B', id), 1);
	}
	assert_true(waited >= 3);
	assert_int_equal(folders_moved_away(dir), 0);
	talk_close(t);
	fixture_stop(&y, SIGTERM);
	umount2(dir, MNT_DETACH);
	fixture_close(&y);
}

/* The daemon's own user has no process left. */
TEST(test_without_processes_jobs_wait)
{
	struct fixture y;

	if (geteuid()) {
		printf("skipped: needs root, to be another user\n");
		skip();
	}
	fixture_open(&y);
	y.uid = USER;
	fixture_configure(&y, "\"slots\":8,", "");
	assert_int_equal(chown(y.dir, USER, USER) | chown(y.config, USER, USER), 0);
	check(&y, RLIMIT_NPROC, 1, "Resource temporarily unavailable", USER);
}

/* Root's daemon starts, and the user of the job has no process left: the command cannot be run. The claim on
 * the job, which was made by then, is taken back. */
TEST(test_a_user_without_processes_waits)
{
	struct fixture y;

	if (geteuid()) {
		printf("skipped: needs root, to be another user\n");
		skip();
	}
	fixture_open(&y);
	fixture_configure(&y, "\"slots\":8,", "");
	check(&y, RLIMIT_NPROC, 0, "Resource temporarily unavailable", USER + 1);
}
