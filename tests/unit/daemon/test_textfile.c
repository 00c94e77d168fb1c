/* scheduler/daemon/metrics/textfile.c: the metrics as a file. The timer of the file is set off by hand, so
 * that no test waits for it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"

#define LAST "postrider_tenant_usage_cpu_seconds" /* of docs/METRICS.md */

static char folder[120], path[140], settings[200], heard_path[120];
static int stderr_was = -1;

static int open_folder(void **state)
{
	open_one(state);
	snprintf(folder, sizeof folder, "%s/metrics", l.dir);
	snprintf(path, sizeof path, "%s/postrider.prom", folder);
	snprintf(settings, sizeof settings, "\"metrics_file\":\"%s\",", path);
	snprintf(heard_path, sizeof heard_path, "%s/stderr", l.dir);
	return mkdir(folder, 0755);
}

static void hear_no_more(void)
{
	if (stderr_was < 0)
		return;
	dup2(stderr_was, STDERR_FILENO);
	close(stderr_was);
	stderr_was = -1;
}

static int close_folder(void **state)
{
	hear_no_more();
	return close_one(state);
}

#define FILE_TEST(name) TEST_WITH(name, open_folder, close_folder)

/* From now on the log is in a file, warnings and news included. */
static void hear(void)
{
	int fd = open(heard_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	fflush(stderr);
	stderr_was = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	assert_true(stderr_was >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
	close(fd);
	log_set_level(LOG_INFO);
}

static size_t times_heard(const char *words)
{
	char *text = NULL;
	size_t len, n = 0;

	if (io_read_file(heard_path, 1 << 20, &text, &len, NULL))
		return 0;
	for (const char *s = text; (s = strstr(s, words)); s++)
		n++;
	free(text);
	return n;
}

static int set_off_if_ours(const struct event_base *base, const struct event *e, void *textfile)
{
	(void)base;
	if (event_get_callback_arg(e) != textfile)
		return 0;
	event_active((struct event *)e, EV_TIMEOUT, 0);
	return 1;
}

/* As if its five seconds were over. */
static void set_off(void)
{
	assert_non_null(l.d->textfile);
	assert_int_equal(event_base_foreach_event(l.d->base, set_off_if_ours, l.d->textfile), 1);
	local_run(&l, 0.0);
}

static bool is_there(const struct local_daemon *d)
{
	(void)d;
	return access(path, R_OK) == 0;
}

static char *text_of(const char *file)
{
	char *text = NULL;
	size_t len;

	assert_int_equal(io_read_file(file, 1 << 20, &text, &len, NULL), 0);
	assert_int_equal(strlen(text), len);
	return text;
}

static char *text_of_file(void)
{
	return text_of(path);
}

static size_t files_in_folder(void)
{
	DIR *d = opendir(folder);
	size_t n = 0;

	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static int old_fd = -1;

static bool is_replaced(const struct local_daemon *d)
{
	struct stat st;

	(void)d;
	assert_int_equal(fstat(old_fd, &st), 0);
	return st.st_nlink == 0;
}

static void begin(void)
{
	start(settings);
	local_until(&l, is_there);
}

/* ---- the file ---- */

FILE_TEST(test_the_file_has_all_metrics_from_the_start_and_others_may_read_it)
{
	struct strbuf now = { 0 };
	struct stat st;
	char *text;

	begin();
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	text = text_of_file();
	metrics_text(l.d, &now);
	assert_int_equal(text[strlen(text) - 1], '\n');
	for (const char *s = now.text; (s = strstr(s, "# TYPE ")); s++) { /* what the page has it has, too */
		char line[200];

		snprintf(line, sizeof line, "%.*s\n", (int)strcspn(s, "\n"), s);
		assert_non_null(strstr(text, line));
	}
	assert_non_null(strstr(text, "\npostrider_jobs_ended_total{state=\"cancelled\"} 0\n"));
	free(text);
	strbuf_release(&now);
}

/* Who has it open reads the old one to its end, and who opens it a whole one. */
FILE_TEST(test_the_file_is_replaced_whole)
{
	char *before, after[1 << 17];
	ssize_t n;

	begin();
	before = text_of_file();
	old_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(old_fd >= 0);
	client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	json_free(client_ask(&c, "{\"op\":\"cancel\",\"job\":\"1\"}"));
	assert_false(is_replaced(&l));
	set_off();
	local_until(&l, is_replaced);
	n = pread(old_fd, after, sizeof after - 1, 0);
	assert_true(n > 0);
	after[n] = '\0';
	assert_string_equal(after, before);
	close(old_fd);
	free(before);
	before = text_of_file();
	assert_non_null(strstr(before, "\npostrider_jobs_ended_total{state=\"cancelled\"} 1\n"));
	assert_int_equal(files_in_folder(), 1);
	free(before);
}

FILE_TEST(test_a_reader_never_sees_a_part_of_the_file)
{
	begin();
	for (int i = 0; i < 100; i++) {
		char *text;

		if (i % 5 == 0)
			set_off();
		text = text_of_file(); /* it is always there */
		assert_non_null(strstr(text, "\n# TYPE " LAST " "));
		assert_int_equal(text[strlen(text) - 1], '\n');
		free(text);
	}
}

FILE_TEST(test_the_file_goes_with_the_daemon)
{
	begin();
	client_close(&c);
	local_stop(&l);
	assert_int_equal(files_in_folder(), 0); /* numbers of a daemon that is gone mislead */
}

/* ---- what goes wrong ---- */

/* The folder's time of change, which every attempt to write moves on. */
static struct timespec folder_changed(void)
{
	struct stat st;

	assert_int_equal(stat(folder, &st), 0);
	return st.st_mtim;
}

static struct timespec changed;

static bool was_tried(const struct local_daemon *d)
{
	struct timespec now = folder_changed();

	(void)d;
	return (now.tv_sec != changed.tv_sec || now.tv_nsec != changed.tv_nsec) && files_in_folder() == 1;
}

static void set_off_and_wait(void)
{
	changed = folder_changed();
	set_off();
	local_until(&l, was_tried);
}

static bool is_complained(const struct local_daemon *d)
{
	(void)d;
	return times_heard("metrics_file") > 0;
}

static bool is_heard_again(const struct local_daemon *d)
{
	(void)d;
	return times_heard("can be written again") == 1;
}

FILE_TEST(test_a_file_that_cannot_be_written_is_said_once_and_harms_nothing)
{
	begin();
	hear();
	/* a folder that is not empty has its name: the text can be written beside it, but not renamed */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(close(open(support_path(path, "x"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	set_off();
	local_until(&l, is_complained);
	assert_int_equal(times_heard("cannot be written"), 1);
	for (int i = 0; i < 3; i++)
		set_off_and_wait();
	assert_int_equal(times_heard("cannot be written"), 1);
	assert_int_equal(files_in_folder(), 1); /* what could not be renamed is removed */
	assert_string_equal(client_error(&c, "{\"op\":\"submit\",\"type\":\"advised\",\"mode\":\"advise\"}"),
			    "");
	assert_int_equal(unlink(support_path(path, "x")), 0);
	assert_int_equal(rmdir(path), 0);
	set_off();
	local_until(&l, is_heard_again);
	assert_true(is_there(&l));
}

FILE_TEST(test_a_folder_that_goes_away_is_said_and_the_file_is_written_when_it_is_back)
{
	char elsewhere[140];

	begin();
	hear();
	snprintf(elsewhere, sizeof elsewhere, "%s.away", folder);
	assert_int_equal(rename(folder, elsewhere), 0);
	set_off();
	local_until(&l, is_complained);
	assert_int_equal(times_heard("No such file or directory"), 1);
	assert_string_equal(client_error(&c, "{\"op\":\"stats\"}"), "");
	assert_int_equal(rename(elsewhere, folder), 0);
	set_off();
	local_until(&l, is_heard_again);
}

/* A daemon of the same number was killed while it wrote; or somebody put a link there. */
FILE_TEST(test_what_lies_in_the_way_is_removed_and_not_written_through)
{
	char fresh[180], victim[140], *text;

	snprintf(victim, sizeof victim, "%s/victim", l.dir);
	assert_int_equal(io_write_file(victim, "mine", 4, NULL), 0);
	snprintf(fresh, sizeof fresh, "%s.%d.new", path, (int)getpid());
	assert_int_equal(symlink(victim, fresh), 0);
	begin();
	assert_int_equal(files_in_folder(), 1);
	text = text_of(victim);
	assert_string_equal(text, "mine");
	free(text);
	text = text_of_file();
	assert_non_null(strstr(text, LAST));
	free(text);
}

FILE_TEST(test_a_path_that_is_too_long_is_said_and_there_is_no_file)
{
	static char far[5000];

	memset(far, 'x', sizeof far - 1);
	begin();
	hear();
	assert_null(textfile_new(l.d, far));
	assert_int_equal(times_heard("metrics_file is not written"), 1);
	assert_null(textfile_new(l.d, NULL));
	assert_int_equal(times_heard("metrics_file"), 1);
}
