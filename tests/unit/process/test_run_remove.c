/* scheduler/process/run_remove: everything of the run goes, and nothing else. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/process/run_remove.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define IDENTITY "00112233445566778899aabbccddeeff"

static char root[256];

static const char *at(const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof path[n], "%s/%s", root, name);
	return path[n];
}

static void touch(const char *name)
{
	int fd = open(at(name), O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static bool there(const char *name)
{
	struct stat st;

	return lstat(at(name), &st) == 0;
}

static void set_up(void)
{
	static unsigned n;

	snprintf(root, sizeof root, "%s/%u", support_temp_dir(), n++);
	assert_int_equal(mkdir(root, 0700), 0);
	assert_int_equal(mkdir(at("17"), 0700), 0);
}

TEST(test_folder_and_records_go_and_neighbours_stay)
{
	struct err err = { 0 };

	set_up();
	mkdir(at("17/sub"), 0700);
	touch("17/stdout");
	touch("17/sub/model.bin");
	touch("17." IDENTITY ".started");
	touch("17." IDENTITY ".exit");
	mkdir(at("17.old-1"), 0700);
	touch("17.old-1/stdout");
	mkdir(at("170"), 0700);
	touch("170/stdout");
	touch("170." IDENTITY ".exit");
	touch("outside");
	mkdir(at("folder"), 0700);
	touch("folder/file");
	assert_int_equal(symlink(at("outside"), at("17/link")), 0);
	assert_int_equal(symlink(at("folder"), at("17/sub/link")), 0);
	assert_int_equal(run_remove(at("17"), IDENTITY, &err), 0);
	assert_false(there("17") || there("17.old-1"));
	assert_false(there("17." IDENTITY ".started") || there("17." IDENTITY ".exit"));
	assert_true(there("170/stdout") && there("170." IDENTITY ".exit"));
	assert_true(there("outside") && there("folder/file"));
	assert_int_equal(run_remove(at("17"), IDENTITY, &err), 0); /* it is gone already */
}

/* A link in the place of the folder is not followed. */
TEST(test_a_link_instead_of_the_folder)
{
	struct err err = { 0 };

	set_up();
	rmdir(at("17"));
	mkdir(at("folder"), 0700);
	touch("folder/file");
	assert_int_equal(symlink(at("folder"), at("17")), 0);
	assert_true(run_remove(at("17"), IDENTITY, &err) != 0);
	assert_true(there("folder/file"));
}

/* The systemd unit leaves root CHOWN and DAC_READ_SEARCH, but neither DAC_OVERRIDE nor FOWNER. */
static void give_up_powers(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	caps[0].effective = caps[0].permitted = 1u << CAP_CHOWN | 1u << CAP_DAC_READ_SEARCH;
	assert_int_equal(syscall(SYS_capset, &head, caps), 0);
}

TEST(test_root_of_the_service_can_remove_folders_of_users)
{
	struct err err = { 0 };
	int status;
	pid_t pid;

	if (geteuid()) {
		printf("skipped: needs root\n");
		skip();
	}
	set_up();
	mkdir(at("17/a"), 0700);
	mkdir(at("17/a/b"), 0700);
	touch("17/a/b/file");
	chmod(at("17/a/b"), 0500);
	for (const char *const *name = (const char *const[]){ "17", "17/a", "17/a/b", "17/a/b/file", NULL };
	     *name; name++)
		assert_int_equal(chown(at(*name), 70001, 70001), 0);
	pid = fork();
	if (pid == 0) {
		give_up_powers();
		if (run_remove(at("17"), "", &err))
			fprintf(stderr, "%s\n", err.text);
		_exit(err.code != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(there("17"));
}

/* Deeper than there are descriptors, and than a path is long. */
TEST(test_a_deep_tree)
{
	struct rlimit limit = { 64, 64 };
	struct err err = { 0 };
	char here[PATH_MAX];

	set_up();
	assert_non_null(getcwd(here, sizeof here));
	assert_int_equal(chdir(at("17")), 0);
	for (int i = 0; i < 800; i++) {
		assert_int_equal(mkdir("deeper", 0700), 0);
		assert_int_equal(close(open("file", O_CREAT | O_WRONLY, 0600)), 0);
		assert_int_equal(chdir("deeper"), 0);
	}
	assert_int_equal(chdir(here), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (run_remove(at("17"), "", &err))
		fail_msg("%s", err.text);
	assert_false(there("17"));
}
