/* common/worker: a thread without signals, and a bell. */
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/worker.h"
#include "tests/support/test.h"

struct seen {
	int fd;
	sigset_t blocked;
};

static void *look(void *arg)
{
	struct seen *s = arg;

	pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
	bell_ring(s->fd);
	return NULL;
}

TEST(test_a_worker_has_all_signals_blocked_and_its_starter_has_not)
{
	static const int known[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD, SIGALRM };
	struct worker w = { 0 };
	struct err err = { 0 };
	struct seen s = { 0 };
	sigset_t before, after;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(bell_new(&s.fd, false, "a test", &err), 0);
	assert_int_equal(worker_start(&w, look, &s, "a test", &err), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	bell_clear(s.fd); /* waits */
	worker_join(&w);
	worker_join(&w); /* once more does no harm */
	bell_free(&s.fd);
	bell_free(&s.fd);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		assert_true(sigismember(&s.blocked, known[i]));
		assert_int_equal(sigismember(&before, known[i]), sigismember(&after, known[i]));
	}
}

TEST(test_a_bell_of_a_loop_rings_until_it_is_cleared)
{
	struct pollfd p = { .events = POLLIN };

	assert_int_equal(bell_new(&p.fd, true, "a test", NULL), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	bell_clear(p.fd); /* does not wait */
	bell_ring(p.fd);
	bell_ring(p.fd);
	assert_int_equal(poll(&p, 1, 0), 1);
	bell_clear(p.fd);
	assert_int_equal(poll(&p, 1, 0), 0);
	bell_free(&p.fd);
}

/* The reload once started its thread by itself and forgot the signals: a SIGTERM could land there. */
TEST(test_only_common_starts_threads)
{
	static const char *const where[] = { "scheduler/*/*.c", "scheduler/*/*/*.c", "predictors/*/*.c",
					     "sim/*/*.c" };
	glob_t found;

	for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
		assert_int_equal(glob(where[i], 0, NULL, &found), 0);
		for (size_t k = 0; k < found.gl_pathc; k++) {
			char *text = NULL;
			size_t len;

			assert_int_equal(io_read_file(found.gl_pathv[k], 1 << 20, &text, &len, NULL), 0);
			if (strstr(text, "pthread_create("))
				fail_msg("%s starts a thread without common/worker", found.gl_pathv[k]);
			free(text);
		}
		globfree(&found);
	}
}
