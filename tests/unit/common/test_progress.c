/* common/progress: a bar on a terminal, nothing at all elsewhere. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/progress.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static int terminal = -1, saved_stderr = -1;
static char drawn[65536];
static size_t n_drawn;

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	return 0;
}

/* Makes stderr a terminal of this many columns; false where there are no pseudo-terminals. */
static int terminal_begin(unsigned short columns)
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	char *name;
	int other;

	terminal = posix_openpt(O_RDWR | O_NOCTTY);
	if (terminal < 0 || grantpt(terminal) || unlockpt(terminal) || !(name = ptsname(terminal)) ||
	    (other = open(name, O_RDWR | O_NOCTTY)) < 0) {
		printf("skipped: no pseudo-terminal to be had\n");
		return 0;
	}
	ioctl(other, TIOCSWINSZ, &size);
	setenv("TERM", "xterm", 1);
	saved_stderr = dup(STDERR_FILENO);
	dup2(other, STDERR_FILENO);
	close(other);
	n_drawn = 0;
	drawn[0] = '\0';
	return 1;
}

/* Adds to `drawn` what came so far. */
static void terminal_read(void)
{
	struct pollfd p = { .fd = terminal, .events = POLLIN };

	while (n_drawn < sizeof drawn - 1 && poll(&p, 1, 20) == 1 && (p.revents & POLLIN)) {
		ssize_t n = read(terminal, drawn + n_drawn, sizeof drawn - 1 - n_drawn);

		if (n <= 0)
			break;
		n_drawn += (size_t)n;
	}
	drawn[n_drawn] = '\0';
}

static void terminal_end(void)
{
	terminal_read();
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(terminal);
}

static int count(const char *what)
{
	int n = 0;

	for (const char *p = drawn; (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

TEST_WITH(test_progress_is_null_where_no_terminal_looks, NULL, disarm)
{
	int fd = open("/dev/null", O_WRONLY), saved = dup(STDERR_FILENO);
	struct progress *p;

	dup2(fd, STDERR_FILENO);
	close(fd);
	p = progress_new("trees", 61);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_null(p);
}

TEST_WITH(test_progress_null_is_allowed_everywhere, NULL, disarm)
{
	progress_add(NULL, 3);
	progress_total(NULL, 7);
	progress_free(NULL);
}

TEST_WITH(test_progress_draws_the_share_and_wipes_its_line, NULL, disarm)
{
	struct progress *p;

	if (!terminal_begin(80))
		skip();
	p = progress_new("trees", 61);
	assert_non_null(p);
	progress_add(p, 23); /* 37.7 % */
	terminal_read();
	progress_free(p);
	terminal_end();
	assert_non_null(strstr(drawn, "\rtrees [###############.........................]  37%\033[K"));
	assert_string_equal(drawn + n_drawn - 4, "\r\033[K");
}

TEST_WITH(test_progress_draws_at_most_ten_times_a_second, NULL, disarm)
{
	struct progress *p;

	if (!terminal_begin(80))
		skip();
	p = progress_new("steps", 1000000);
	for (int i = 0; i < 20000; i++)
		progress_add(p, 1);
	usleep(120000);
	progress_add(p, 1);
	progress_free(p);
	terminal_end();
	assert_true(count("steps") >= 2);
	assert_true(count("steps") <= 30); /* as many seconds as the slowest machine might need, times ten */
}

TEST_WITH(test_progress_never_passes_a_hundred_percent, NULL, disarm)
{
	struct progress *p;

	if (!terminal_begin(80))
		skip();
	p = progress_new("over", 10);
	progress_total(p, 4);
	progress_add(p, 9);
	progress_free(p);
	p = progress_new("none", 0);
	progress_add(p, 1);
	progress_free(p);
	terminal_end();
	assert_int_equal(count("100%"), 1);
	assert_int_equal(count("  0%"), 1);
}

TEST_WITH(test_progress_fits_into_any_terminal, NULL, disarm)
{
	static const unsigned short widths[] = { 1, 2, 9, 20, 40, 300 };

	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		struct progress *p;

		if (!terminal_begin(widths[i]))
			skip();
		p = progress_new("a label that is longer than anybody should ever make it, really, truly", 7);
		progress_add(p, 3);
		progress_free(p);
		terminal_end();
		if (drawn[0] == '\r' && strstr(drawn, "\033[K"))
			assert_true(strstr(drawn, "\033[K") - drawn <= (widths[i] > 1 ? widths[i] : 1));
	}
}

TEST_WITH(test_progress_estimates_what_is_left_after_a_second, NULL, disarm)
{
	struct progress *p;

	if (!terminal_begin(80))
		skip();
	p = progress_new("slow", 100);
	usleep(1050000);
	progress_add(p, 50);
	progress_free(p);
	terminal_end();
	assert_int_equal(count(" s left"), 1); /* about as long again */
}

static void *add_main(void *p)
{
	for (int i = 0; i < 5000; i++)
		progress_add(p, 1);
	return NULL;
}

TEST_WITH(test_progress_adds_from_many_threads, NULL, disarm)
{
	pthread_t thread[4];
	struct progress *p;

	if (!terminal_begin(80))
		skip();
	p = progress_new("shared", 20001);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_main, p), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	usleep(120000);
	progress_add(p, 1);
	progress_free(p);
	terminal_end();
	assert_true(count("100%") >= 1); /* none was lost */
}

TEST_WITH(test_progress_does_without_a_bar_when_memory_is_short, NULL, disarm)
{
	struct progress *p;

	if (!terminal_begin(80))
		skip();
	mem_fail_at(1, false);
	p = progress_new("poor", 3);
	setenv("TERM", "dumb", 1);
	assert_null(progress_new("dumb", 3));
	setenv("TERM", "xterm", 1);
	terminal_end();
	assert_null(p);
	assert_true(mem_failed());
}
