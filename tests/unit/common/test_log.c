/* common/log: one line an event, whatever is in the message. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static int saved_stderr = -1;
static char said[16384];

static int reset(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	log_set_program("postrider");
	log_set_level(LOG_INFO);
	log_set_json(false);
	return 0;
}

static void listen_begin(void)
{
	int fd = open(support_path(support_temp_dir(), "said"), O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	saved_stderr = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

/* What was said on stderr since listen_begin(). */
static const char *listen_end(void)
{
	ssize_t n;

	lseek(STDERR_FILENO, 0, SEEK_SET);
	n = read(STDERR_FILENO, said, sizeof said - 1);
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	assert_true(n >= 0);
	said[n] = '\0';
	return said;
}

TEST_WITH(test_log_line_says_program_level_and_message, reset, NULL)
{
	log_set_program("tester");
	listen_begin();
	log_error("disk %d is full", 3);
	log_warn("nearly");
	log_info("well");
	assert_string_equal(listen_end(),
			    "tester: error: disk 3 is full\ntester: warning: nearly\ntester: info: well\n");
}

TEST_WITH(test_log_level_decides_what_is_said, reset, NULL)
{
	listen_begin();
	log_debug("hidden by default");
	log_set_level(LOG_ERROR);
	log_warn("hidden");
	log_error("shown");
	log_set_level(LOG_DEBUG);
	log_debug("shown too");
	assert_string_equal(listen_end(), "postrider: error: shown\npostrider: debug: shown too\n");
}

TEST_WITH(test_log_keeps_one_event_on_one_line, reset, NULL)
{
	listen_begin();
	log_info("first\nsecond\033[31m\r\x7f");
	assert_string_equal(listen_end(), "postrider: info: first\\x0asecond\\x1b[31m\\x0d\\x7f\n");
}

TEST_WITH(test_log_json_lines_are_json, reset, NULL)
{
	struct json *v = NULL;
	struct err err = { 0 };

	log_set_json(true);
	listen_begin();
	log_warn("say \"hi\"\nand a bad byte \xff");
	listen_end();
	assert_int_equal(strchr(said, '\n') - said, strlen(said) - 1);
	if (json_parse("log", said, strlen(said), &v, &err))
		fail_msg("%s", err.text);
	assert_int_equal(json_size(v), 4);
	assert_string_equal(json_key(json_at(v, 0)), "time");
	assert_string_equal(json_string(json_get(v, "level"), ""), "warning");
	assert_string_equal(json_string(json_get(v, "program"), ""), "postrider");
	assert_string_equal(json_string(json_get(v, "message"), ""),
			    "say \"hi\"\nand a bad byte \xef\xbf\xbd");
	/* 2024-02-29T12:34:56.789Z */
	assert_int_equal(strlen(json_string(json_get(v, "time"), "")), 24);
	assert_int_equal(json_string(json_get(v, "time"), "")[10], 'T');
	assert_int_equal(json_string(json_get(v, "time"), "")[23], 'Z');
	json_free(v);
}

TEST_WITH(test_log_speaks_without_memory, reset, NULL)
{
	log_set_json(true);
	listen_begin();
	mem_fail_at(1, true);
	log_error("out of memory");
	mem_fail_at(0, false);
	assert_string_equal(listen_end(), "postrider: error: out of memory\n");
}

TEST_WITH(test_log_cuts_a_message_that_is_too_long, reset, NULL)
{
	char much[9000];

	memset(much, 'm', sizeof much - 1);
	much[sizeof much - 1] = '\0';
	listen_begin();
	log_info("%s", much);
	listen_end();
	assert_true(strlen(said) < 4200);
	assert_string_equal(said + strlen(said) - 5, "m...\n");
}

TEST_WITH(test_log_cuts_a_program_name_that_is_too_long, reset, NULL)
{
	char much[900];

	memset(much, 'p', sizeof much - 1);
	much[sizeof much - 1] = '\0';
	log_set_program(much);
	listen_begin();
	log_info("short");
	listen_end();
	assert_non_null(strstr(said, "p: info: short\n"));
	assert_true(strlen(said) < 100);
}

TEST_WITH(test_log_leaves_errno_alone, reset, NULL)
{
	listen_begin();
	errno = ENOSPC;
	log_info("noted");
	assert_int_equal(errno, ENOSPC);
	listen_end();
}

TEST_WITH(test_log_colour_is_for_willing_terminals, reset, NULL)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY), other = -1;
	char *name;

	if (terminal < 0 || grantpt(terminal) || unlockpt(terminal) || !(name = ptsname(terminal)) ||
	    (other = open(name, O_RDWR | O_NOCTTY)) < 0) {
		printf("skipped: no pseudo-terminal to be had\n");
		skip();
	}
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	assert_true(log_stream_wants_colour(other));
	setenv("NO_COLOR", "", 1); /* set but empty does not count (no-color.org) */
	assert_true(log_stream_wants_colour(other));
	setenv("NO_COLOR", "1", 1);
	assert_false(log_stream_wants_colour(other));
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	assert_false(log_stream_wants_colour(other));
	unsetenv("TERM");
	assert_false(log_stream_wants_colour(other));
	setenv("TERM", "xterm", 1);
	close(other);
	close(terminal);
	listen_begin();
	assert_false(log_stream_wants_colour(STDERR_FILENO)); /* a file */
	listen_end();
	assert_false(log_stream_wants_colour(-1));
}

TEST_WITH(test_log_colours_the_level_on_a_terminal, reset, NULL)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY), other = -1, saved;
	char *name, got[200] = "";

	if (terminal < 0 || grantpt(terminal) || unlockpt(terminal) || !(name = ptsname(terminal)) ||
	    (other = open(name, O_RDWR | O_NOCTTY)) < 0) {
		printf("skipped: no pseudo-terminal to be had\n");
		skip();
	}
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	saved = dup(STDERR_FILENO);
	dup2(other, STDERR_FILENO);
	log_error("red");
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_true(read(terminal, got, sizeof got - 1) > 0);
	assert_non_null(strstr(got, "postrider: \033[1;31merror:\033[0m red"));
	close(other);
	close(terminal);
}
