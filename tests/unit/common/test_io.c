/* common/io: whole files in, whole files out, and the old file intact whatever fails on the way. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static int disarm(void **state)
{
	(void)state;
	io_fail_at(0, 0);
	mem_fail_at(0, false);
	return 0;
}

static const char *temp(const char *name)
{
	return support_path(support_temp_dir(), name);
}

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void assert_file(const char *path, const char *text)
{
	char *got = NULL;
	size_t len = 0;
	struct err err = { 0 };

	if (io_read_file(path, 1 << 20, &got, &len, &err))
		fail_msg("%s", err.text);
	assert_int_equal(len, strlen(text));
	assert_string_equal(got, text);
	free(got);
}

/* How many files the temporary folder holds: a forgotten temporary file shows. */
static int count_files(void)
{
	DIR *d = opendir(support_temp_dir());
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

static int count_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

/* ---- reading ---- */

TEST_WITH(test_io_read_gives_the_bytes_and_a_nul, NULL, disarm)
{
	const char *path = temp("bytes");
	char *text = NULL;
	size_t len = 0;
	struct err err = { 0 };

	assert_int_equal(io_write_file(path, "a\0b\n", 4, &err), 0);
	assert_int_equal(io_read_file(path, 4, &text, &len, &err), 0);
	assert_int_equal(len, 4);
	assert_memory_equal(text, "a\0b\n", 5);
	free(text);
	unlink(path);
}

TEST_WITH(test_io_read_limit_is_the_last_length_accepted, NULL, disarm)
{
	const char *path = temp("limit");
	char *text = NULL;
	size_t len = 99;
	struct err err = { 0 };

	put_file(path, "1234567");
	assert_int_equal(io_read_file(path, 7, &text, &len, &err), 0);
	free(text);
	text = NULL;
	len = 99;
	assert_int_equal(io_read_file(path, 6, &text, &len, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "limit of 6 bytes"));
	assert_null(text);
	assert_int_equal(len, 99);
	unlink(path);
}

TEST_WITH(test_io_read_takes_an_empty_file, NULL, disarm)
{
	const char *path = temp("empty");
	char *text = NULL;
	size_t len = 99;
	struct err err = { 0 };

	put_file(path, "");
	assert_int_equal(io_read_file(path, 0, &text, &len, &err), 0);
	assert_int_equal(len, 0);
	assert_string_equal(text, "");
	free(text);
	unlink(path);
}

TEST_WITH(test_io_read_tells_missing_folder_and_forbidden_apart, NULL, disarm)
{
	char *text = NULL;
	size_t len;
	struct err err = { 0 };
	const char *path = temp("secret");

	assert_int_equal(io_read_file(temp("nosuch"), 100, &text, &len, &err), -ERR_NOTFOUND);
	assert_non_null(strstr(err.text, "nosuch"));
	assert_int_equal(io_read_file(temp("nosuch/either"), 100, &text, &len, &err), -ERR_NOTFOUND);
	assert_int_equal(io_read_file(support_temp_dir(), 100, &text, &len, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "folder"));
	put_file(path, "s");
	io_fail_at(1, EACCES); /* root may read anything, so the mode alone would not show it */
	assert_int_equal(io_read_file(path, 100, &text, &len, &err), -ERR_PERM);
	assert_null(text);
	unlink(path);
}

TEST_WITH(test_io_read_takes_files_that_do_not_tell_their_size, NULL, disarm)
{
	char *text = NULL;
	size_t len = 0;
	struct err err = { 0 };

	assert_int_equal(io_read_file("/proc/self/maps", 1 << 20, &text, &len, &err), 0);
	assert_true(len > 0);
	assert_int_equal(strlen(text), len);
	free(text);
	text = NULL;
	assert_int_equal(io_read_file("/dev/zero", 100003, &text, &len, &err), -ERR_FORMAT);
	assert_null(text);
}

struct feed {
	int fd;
	size_t len;
};

static void *feed_main(void *arg)
{
	struct feed *feed = arg;

	for (size_t i = 0; i < feed->len; i++) {
		char c = (char)('a' + i % 23);

		if (i % 8191 == 0)
			usleep(100); /* so that reads come back short */
		if (write(feed->fd, &c, 1) != 1)
			break;
	}
	close(feed->fd);
	return NULL;
}

TEST_WITH(test_io_read_dash_is_standard_input_in_short_pieces, NULL, disarm)
{
	int ends[2], saved = dup(STDIN_FILENO);
	struct feed feed;
	pthread_t thread;
	char *text = NULL;
	size_t len = 0;
	struct err err = { 0 };

	assert_int_equal(pipe(ends), 0);
	feed = (struct feed){ ends[1], 150007 };
	assert_int_equal(pthread_create(&thread, NULL, feed_main, &feed), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	close(ends[0]);
	assert_int_equal(io_read_file("-", 1 << 20, &text, &len, &err), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	dup2(saved, STDIN_FILENO);
	close(saved);
	assert_int_equal(len, 150007);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(text[i], 'a' + (int)(i % 23));
	free(text);
}

TEST_WITH(test_io_read_restarts_after_a_signal, NULL, disarm)
{
	const char *path = temp("signal");
	char *text = NULL;
	size_t len = 0;
	struct err err = { 0 };

	put_file(path, "whole");
	for (unsigned long k = 1; k <= 2; k++) {
		io_fail_at(k, EINTR);
		assert_int_equal(io_read_file(path, 100, &text, &len, &err), 0);
		assert_true(io_failed());
		assert_string_equal(text, "whole");
		free(text);
	}
	unlink(path);
}

TEST_WITH(test_io_read_survives_every_failure, NULL, disarm)
{
	const char *path = temp("fails");
	unsigned long k;

	put_file(path, "some text");
	for (k = 1;; k++) {
		char *text = NULL;
		size_t len = 0;
		struct err err = { 0 };
		int before = count_descriptors(), rc;

		io_fail_at(k, EIO);
		rc = io_read_file(path, 100, &text, &len, &err);
		assert_int_equal(count_descriptors(), before);
		if (!io_failed()) {
			assert_int_equal(rc, 0);
			free(text);
			break;
		}
		assert_int_equal(rc, -ERR_IO);
		assert_null(text);
	}
	assert_int_equal(k, 4); /* open, read, the read that finds the end */
	io_fail_at(0, 0);
	mem_fail_at(1, false);
	assert_int_equal(io_read_file(path, 100, &(char *){ NULL }, &(size_t){ 0 }, NULL), -ERR_NOMEM);
	mem_fail_at(2, false); /* the buffer of a pipe has to grow */
	assert_int_equal(io_read_file("/dev/zero", 1 << 20, &(char *){ NULL }, &(size_t){ 0 }, NULL),
			 -ERR_NOMEM);
	unlink(path);
}

/* ---- writing ---- */

TEST_WITH(test_io_write_makes_and_replaces, NULL, disarm)
{
	const char *path = temp("new");
	struct err err = { 0 };

	assert_int_equal(io_write_file(path, "first", 5, &err), 0);
	assert_file(path, "first");
	assert_int_equal(io_write_file(path, "second, longer", 14, &err), 0);
	assert_file(path, "second, longer");
	assert_int_equal(io_write_file(path, NULL, 0, &err), 0);
	assert_file(path, "");
	assert_int_equal(count_files(), 1);
	unlink(path);
}

TEST_WITH(test_io_write_keeps_the_mode_or_follows_the_umask, NULL, disarm)
{
	const char *path = temp("mode");
	struct err err = { 0 };
	mode_t old = umask(027);

	assert_int_equal(io_write_file(path, "a", 1, &err), 0);
	assert_int_equal(mode_of(path), 0640);
	assert_int_equal(chmod(path, 0604), 0);
	assert_int_equal(io_write_file(path, "b", 1, &err), 0);
	assert_int_equal(mode_of(path), 0604);
	umask(old);
	unlink(path);
}

TEST_WITH(test_io_write_in_the_current_folder, NULL, disarm)
{
	char here[4096];
	struct err err = { 0 };

	assert_non_null(getcwd(here, sizeof here));
	assert_int_equal(chdir(support_temp_dir()), 0);
	assert_int_equal(io_write_file("plain", "p", 1, &err), 0);
	assert_file("plain", "p");
	unlink("plain");
	assert_int_equal(chdir(here), 0);
	assert_int_equal(count_files(), 0);
}

TEST_WITH(test_io_write_follows_a_link, NULL, disarm)
{
	const char *target = temp("target"), *link = temp("link");
	struct stat st;
	struct err err = { 0 };

	put_file(target, "old");
	assert_int_equal(symlink("target", link), 0);
	assert_int_equal(io_write_file(link, "new", 3, &err), 0);
	assert_file(target, "new");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	unlink(target);
	assert_int_equal(io_write_file(link, "x", 1, &err), -ERR_NOTFOUND); /* the link leads nowhere now */
	unlink(link);
}

TEST_WITH(test_io_write_goes_straight_into_a_pipe, NULL, disarm)
{
	const char *path = temp("fifo");
	char got[16] = "";
	int fd;
	struct err err = { 0 };

	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_int_equal(io_write_file(path, "through", 7, &err), 0);
	assert_int_equal(read(fd, got, sizeof got), 7);
	assert_string_equal(got, "through");
	io_fail_at(2, ENOSPC);
	assert_int_equal(io_write_file(path, "through", 7, &err), -ERR_IO);
	io_fail_at(1, EACCES);
	assert_int_equal(io_write_file(path, "through", 7, &err), -ERR_PERM);
	close(fd);
	unlink(path);
	assert_int_equal(io_write_file("/dev/null", "gone", 4, &err), 0);
	assert_int_equal(io_write_file("/dev/full", "gone", 4, &err), -ERR_IO);
	assert_non_null(strstr(err.text, "/dev/full"));
}

TEST_WITH(test_io_write_dash_is_standard_output, NULL, disarm)
{
	int ends[2], saved = dup(STDOUT_FILENO), rc;
	char got[16] = "";
	struct err err = { 0 };

	fflush(stdout);
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDOUT_FILENO);
	close(ends[1]);
	rc = io_write_file("-", "said", 4, &err);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(rc, 0);
	assert_int_equal(read(ends[0], got, sizeof got), 4);
	assert_string_equal(got, "said");
	close(ends[0]);
}

TEST_WITH(test_io_write_refuses_what_is_no_place_for_a_file, NULL, disarm)
{
	struct err err = { 0 };
	char *much = malloc(5000);

	assert_int_equal(io_write_file(temp("nosuch/file"), "x", 1, &err), -ERR_NOTFOUND);
	assert_int_equal(io_write_file(support_temp_dir(), "x", 1, &err), -ERR_IO);
	assert_int_equal(io_write_file("", "x", 1, &err), -ERR_ARG);
	assert_non_null(much);
	memset(much, 'p', 4999);
	much[4999] = '\0';
	assert_int_equal(io_write_file(much, "x", 1, &err), -ERR_ARG);
	much[300] = '\0'; /* a name longer than any file system allows */
	assert_int_equal(io_write_file(much, "x", 1, &err), -ERR_IO);
	free(much);
}

TEST_WITH(test_io_write_takes_the_longest_name_there_is, NULL, disarm)
{
	char name[256];
	const char *path;
	struct err err = { 0 };

	memset(name, 'n', 255);
	name[255] = '\0';
	path = temp(name);
	assert_int_equal(io_write_file(path, "long", 4, &err), 0);
	assert_file(path, "long");
	unlink(path);
}

TEST_WITH(test_io_write_respects_a_file_made_read_only, NULL, disarm)
{
	const char *path = temp("readonly");
	struct err err = { 0 };
	int status;
	pid_t child;

	put_file(path, "kept");
	assert_int_equal(chmod(path, 0444), 0);
	assert_int_equal(chmod(support_temp_dir(), 0777), 0);
	child = fork(); /* root may write anything: become nobody for this */
	assert_true(child >= 0);
	if (child == 0) {
		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(77);
		_exit(io_write_file(path, "lost", 4, &err) == -ERR_PERM ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_file(path, "kept");
	assert_int_equal(chmod(support_temp_dir(), 0700), 0);
	unlink(path);
}

TEST_WITH(test_io_write_failure_at_any_call_leaves_the_old_file, NULL, disarm)
{
	static const int errors[] = { EIO, ENOSPC, EACCES };
	const char *path = temp("model.json");

	for (size_t e = 0; e < 3; e++) {
		unsigned long k;

		for (k = 1;; k++) {
			struct err err = { 0 };
			int before = count_descriptors(), rc;

			put_file(path, "the old model");
			io_fail_at(k, errors[e]);
			rc = io_write_file(path, "the new model", 13, &err);
			assert_int_equal(count_descriptors(), before);
			assert_int_equal(count_files(), 1); /* no temporary file stays behind */
			if (!io_failed()) {
				io_fail_at(0, 0); /* the armed one is still to come */
				assert_int_equal(rc, 0);
				assert_file(path, "the new model");
				break;
			}
			assert_true(rc < 0);
			assert_int_equal(rc, -(int)err.code);
			/* Only a folder that could not be synced, after the rename, is too late to undo. */
			if (strstr(err.text, "in place"))
				assert_file(path, "the new model");
			else
				assert_file(path, "the old model");
		}
		assert_int_equal(k, 7); /* open folder, open, write, fsync, rename, fsync folder */
	}
	unlink(path);
}

TEST_WITH(test_io_write_failure_leaves_no_file_where_there_was_none, NULL, disarm)
{
	const char *path = temp("fresh");

	for (unsigned long k = 1; k <= 5; k++) {
		struct err err = { 0 };

		io_fail_at(k, ENOSPC);
		assert_int_equal(io_write_file(path, "x", 1, &err), -ERR_IO);
		assert_non_null(strstr(err.text, "No space left"));
		assert_int_equal(count_files(), 0);
	}
}

TEST_WITH(test_io_write_restarts_after_a_signal, NULL, disarm)
{
	const char *path = temp("signals");

	for (unsigned long k = 1; k <= 6; k++) {
		struct err err = { 0 };

		if (k == 5)
			continue; /* rename is not interrupted */
		io_fail_at(k, EINTR);
		assert_int_equal(io_write_file(path, "whole", 5, &err), 0);
		assert_true(io_failed());
		assert_file(path, "whole");
		unlink(path);
	}
	assert_int_equal(count_files(), 0);
}

TEST_WITH(test_io_write_finds_another_name_when_its_first_is_taken, NULL, disarm)
{
	const char *path = temp("taken");
	struct err err = { 0 };

	io_fail_at(2, EEXIST);
	assert_int_equal(io_write_file(path, "mine", 4, &err), 0);
	assert_true(io_failed());
	assert_file(path, "mine");
	unlink(path);
}

TEST_WITH(test_io_write_accepts_a_folder_that_cannot_be_synced, NULL, disarm)
{
	const char *path = temp("nosync");
	struct err err = { 0 };

	io_fail_at(6, EINVAL); /* what such file systems answer */
	assert_int_equal(io_write_file(path, "fine", 4, &err), 0);
	assert_true(io_failed());
	assert_file(path, "fine");
	unlink(path);
}
