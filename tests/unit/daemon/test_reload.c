/* A reload of a daemon in this process: what it takes, what it refuses, and what stays then. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/io.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"

#define ADVISED ",\"type\":\"advised\",\"mode\":\"advise\""

static int open_it(void **state)
{
	(void)state;
	local_open(&l);
	local_start(&l);
	client_open(&c, &l);
	return 0;
}

/* Writes another configuration and asks for it; the code of the error. */
static const char *reload_with(const char *settings)
{
	l.settings = settings;
	local_write_config(&l);
	return client_error(&c, "{\"op\":\"reload\"}");
}

TEST_WITH(test_a_reload_takes_new_settings, open_it, close_one)
{
	struct json *v;

	(void)state;
	assert_string_equal(reload_with("\"max_queued\":1,\"slots\":1,\"policy\":\"fixed:64\","), "");
	assert_int_equal(l.d->setup->config->max_queued, 1);
	assert_string_equal(l.d->setup->config->policy, "fixed:64");
	assert_true(client_submit(&c, ADVISED) > 0); /* for the slot */
	assert_true(client_submit(&c, ADVISED) > 0);
	v = client_ask(&c, "{\"op\":\"submit\"" ADVISED "}");
	assert_string_equal(text_at(v, "error.code"), "queue_full");
	json_free(v);
	v = client_ask(&c, "{\"op\":\"hello\"}");
	assert_string_equal(text_at(v, "policy"), "fixed:64");
	json_free(v);
}

TEST_WITH(test_limits_of_connections_follow_a_reload, open_it, close_one)
{
	struct local_client second, third;

	(void)state;
	assert_string_equal(reload_with("\"max_connections\":2,"), "");
	client_open(&second, &l);
	client_open(&third, &l); /* its first line is not a greeting */
	assert_null(client_hear(&third));
	client_close(&third);
	client_close(&second);
}

/* A training hands its model over: it is not read from its file again. */
TEST_WITH(test_a_model_that_is_handed_over_is_the_one_in_use, open_one, close_one)
{
	struct setup_source from = { 0 };
	struct config *config = NULL;
	struct setup *s = NULL;

	(void)state;
	l.model = LOCAL_MODEL;
	start("\"policy\":\"postrider\",");
	from.before = l.d->setup;
	assert_int_equal(config_read(l.config, &config, NULL), 0);
	assert_int_equal(model_load(l.d->setup->slot[0].path, &from.model, NULL), 0);
	assert_int_equal(model_compile(from.model, NULL), 0);
	assert_int_equal(setup_new(config, &from, &s, NULL), 0);
	assert_ptr_equal(s->slot[0].model, from.model);
	setup_free(s);
}

TEST_WITH(test_a_bad_file_changes_nothing, open_it, close_one)
{
	static const char *const bad[] = { "\"slots\":0,", "\"policy\":\"no-such\",", "\"unknown\":1,",
					   "\"socket_group\":\"no-such-group\",",
					   "\"model\":\"/no/such/file\"," };
	struct setup *before = l.d->setup;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_string_equal(reload_with(bad[i]), "bad_field");
		assert_ptr_equal(l.d->setup, before);
	}
	assert_int_equal(io_write_file(l.config, "{", 1, NULL), 0);
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "bad_field");
	assert_int_equal(unlink(l.config), 0);
	assert_string_not_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	assert_ptr_equal(l.d->setup, before);
	assert_string_equal(reload_with(""), "");
	assert_ptr_not_equal(l.d->setup, before);
}

/* Nobody will ever write into it. */
TEST_WITH(test_a_pipe_as_a_model_does_not_hold_up_a_reload, open_it, close_one)
{
	char settings[200], path[160];

	(void)state;
	snprintf(path, sizeof path, "%s/pipe", l.dir);
	snprintf(settings, sizeof settings, "\"model\":\"%s\",", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_string_equal(reload_with(settings), "bad_field");
	assert_string_equal(reload_with("\"slots\":3,"), "");
	assert_int_equal(sched_slots(l.d->sched), 3);
}

TEST_WITH(test_what_needs_a_restart_is_refused_by_name, open_it, close_one)
{
	struct json *v;

	(void)state;
	l.settings = "\"durability\":\"none\",";
	local_write_config(&l);
	v = client_ask(&c, "{\"op\":\"reload\"}");
	assert_string_equal(text_at(v, "error.code"), "bad_field");
	assert_non_null(strstr(text_at(v, "error.message"), "durability has changed"));
	json_free(v);
}

TEST_WITH(test_a_queued_job_must_stay_valid, open_it, close_one)
{
	struct json *v;

	(void)state;
	l.types =
		",\"passing\":{\"batches\":[64,128],\"params\":{\"n\":{\"kind\":\"integer\",\"default\":1}}}";
	assert_string_equal(reload_with("\"slots\":1,"), "");
	assert_true(client_submit(&c, ",\"type\":\"passing\",\"mode\":\"advise\"") == 1);
	l.types = "";
	local_write_config(&l);
	v = client_ask(&c, "{\"op\":\"reload\"}");
	assert_non_null(strstr(text_at(v, "error.message"), "job 1 is queued and would no longer be valid"));
	json_free(v);
	/* a running one needs its type no more */
	assert_string_equal(client_error(&c, "{\"op\":\"started\",\"job\":\"1\"}"), "");
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	assert_string_equal(client_error(&c, "{\"op\":\"finished\",\"job\":\"1\"}"), "");
}

TEST_WITH(test_jobs_are_rebound_to_the_new_configuration, open_it, close_one)
{
	const struct job *job;
	uint64_t id = client_submit(&c, ADVISED);

	(void)state;
	assert_string_equal(reload_with("\"seed\":5,"), "");
	job = jobs_find(&l.d->jobs, id);
	assert_ptr_equal(job->type, config_type(l.d->setup->config, "advised"));
	assert_string_equal(job->bound->params.value[0], "lenet5");
}

TEST_WITH(test_watchers_are_told_of_a_reload, open_it, close_one)
{
	(void)state;
	assert_string_equal(client_error(&c, "{\"op\":\"watch\"}"), "");
	local_write_config(&l);
	client_say(&c, "{\"op\":\"reload\"}");
	json_free(client_event(&c, "reloaded"));
}

/* ---- while it is under way: the configuration is a pipe that nobody has written to yet ---- */

static void make_pipe(void)
{
	assert_int_equal(unlink(l.config), 0);
	assert_int_equal(mkfifo(l.config, 0600), 0);
}

/* Lets the thread go on, with a file that says nothing. */
static void write_pipe(void)
{
	int fd = open(l.config, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "{", 1), 1);
	close(fd);
}

static bool is_reloading(const struct local_daemon *at)
{
	return at->d->loader != NULL;
}

static bool has_reloaded(const struct local_daemon *at)
{
	return !at->d->loader;
}

TEST_WITH(test_there_is_one_reload_at_a_time, open_it, close_one)
{
	struct local_client second;

	(void)state;
	make_pipe();
	client_say(&c, "{\"op\":\"reload\"}");
	local_until(&l, is_reloading);
	client_open(&second, &l);
	assert_string_equal(client_error(&second, "{\"op\":\"reload\"}"), "wrong_state");
	client_close(&second);
	write_pipe();
	local_until(&l, has_reloaded);
}

/* The threads of this process: the highest id is the youngest. */
static pid_t youngest_thread(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	pid_t last = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		last = atoi(e->d_name) > last ? atoi(e->d_name) : last;
	closedir(d);
	return last;
}

static volatile sig_atomic_t n_signals;

static void count_signal(int number)
{
	(void)number;
	n_signals++;
}

TEST_WITH(test_the_thread_of_a_reload_takes_no_signals, open_it, close_one)
{
	pid_t before = youngest_thread(), thread;

	(void)state;
	signal(SIGUSR1, count_signal);
	make_pipe();
	client_say(&c, "{\"op\":\"reload\"}");
	local_until(&l, is_reloading);
	thread = youngest_thread();
	assert_true(thread > before);
	n_signals = 0;
	assert_int_equal(syscall(SYS_tgkill, getpid(), thread, SIGUSR1), 0);
	usleep(50000);
	assert_int_equal(n_signals, 0);
	write_pipe();
	local_until(&l, has_reloaded);
	assert_int_equal(n_signals, 0);
}

TEST_WITH(test_a_daemon_that_leaves_waits_for_its_reload_and_answers, open_it, close_one)
{
	(void)state;
	local_write_config(&l);
	client_say(&c, "{\"op\":\"reload\"}");
	local_until(&l, is_reloading);
	local_stop(&l); /* no thread is left behind: the sanitizers would say so */
}
