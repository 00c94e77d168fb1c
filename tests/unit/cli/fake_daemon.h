/* A daemon that says what a test tells it to: one connection, a list of steps, in a thread. */
#ifndef TESTS_UNIT_CLI_FAKE_DAEMON_H
#define TESTS_UNIT_CLI_FAKE_DAEMON_H

#include <pthread.h>
#include <stddef.h>

#define FAKE_GREETING                                                                                        \
	"{\"v\":1,\"greeting\":\"postriderd\",\"version\":\"0.1.0\",\"policy\":\"postrider\",\"max_line\":"  \
	"65536}\n"

enum fake_kind {
	FAKE_END, /* hang up */
	FAKE_SAY, /* the text, all at once */
	FAKE_SPELL, /* the text, a byte at a time */
	FAKE_FLOOD, /* `n` bytes of x, without a newline */
	FAKE_HEAR, /* read a line; it must contain the text */
	FAKE_STAY, /* until the client hangs up */
	FAKE_NAP, /* `n` milliseconds */
};

struct fake_step {
	enum fake_kind kind;
	const char *text;
	size_t n;
};

/* Steps in short; a list of them ends with END. */
#define SAY(t)   { FAKE_SAY, t, 0 }
#define SPELL(t) { FAKE_SPELL, t, 0 }
#define HEAR(t)  { FAKE_HEAR, t, 0 }
#define STAY     { FAKE_STAY, NULL, 0 }
#define END      { FAKE_END, NULL, 0 }

struct fake_daemon {
	char path[108];
	int listener;
	const struct fake_step *step;
	pthread_t thread;
	char heard[1 << 17]; /* the last line, with its newline */
	char complaint[256]; /* empty: all went as told */
};

/* Listens before it returns. `step` ends with FAKE_END and stays valid until fake_stop(). */
struct fake_daemon *fake_start(const struct fake_step *step);

/* Waits for its end. Returns what did not go as told, or ""; valid until the next call. */
const char *fake_stop(struct fake_daemon *d);

#endif
