/* The client's side of docs/PROTOCOL.md: it connects, reads the greeting, sends requests, and reads replies
 * and events. It trusts nothing that it receives: the version, the id and the shape of every line are checked
 * before a verb sees it.
 *
 * Functions return 0 or the exit code of the program; then the fault says why. */
#ifndef SCHEDULER_CLI_CLIENT_CLIENT_H
#define SCHEDULER_CLI_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json/json.h"

#define CLIENT_MAX_REQUEST 65536              /* bytes of a request, without its newline */
#define CLIENT_MAX_REPLY ((size_t)64 << 20)   /* bytes of a reply: all jobs of a large queue are one line */
#define CLIENT_MAX_EVENTS 65536               /* events that may come before a reply */
#define CLIENT_GREETING_S 10.0                /* a daemon that works greets at once */
#define CLIENT_PATIENCE_S 60.0                /* for one reply, without --timeout */

enum client_exit {
	CLIENT_FAILED = 1,
	CLIENT_USAGE = 2,
	CLIENT_REJECTED = 3,
	CLIENT_UNREACHABLE = 5,
	CLIENT_NOT_PERMITTED = 7,
	CLIENT_UNPROMISED = 9, /* taken, but without the promise that was asked for */
	CLIENT_TIMED_OUT = 124,
	CLIENT_INTERRUPTED = 130,
};

struct client;

struct client_fault {
	int exit_code;
	/* the daemon's error code; empty: the client found the fault, and the connection cannot be used
	 * again */
	char code[40];
	char text[1024], hint[512];
};

/* The exit code for an error code of the protocol; 1 for an unknown one. */
int client_exit_code(const char *code);
/* Prints "postrider: TEXT" and the hint on stderr; returns the exit code. It prints nothing about an
 * interruption: the verb says what that means. */
int client_say(const struct client_fault *f);

struct client_params {
	const char *socket;  /* of --socket; NULL: config_socket() finds it */
	double timeout_s;    /* of --timeout, from now until the end of the verb; NaN: none */
	bool own;            /* whoever listens there must be of this user */
};
int client_open(const struct client_params *p, struct client **out, struct client_fault *f);
void client_close(struct client *c);

/* From now on the first SIGINT, SIGTERM or SIGHUP makes the function that waits return CLIENT_INTERRUPTED; a
 * second one ends the program. Ignored signals stay ignored. */
void client_catch_signals(void);
bool client_interrupted(void);
void client_last_words(void); /* after an interruption: what is asked from now on is waited for again */

/* A request is begun, filled in through the writer, and ended, which sends it. Several may be under way. */
struct json_writer *client_begin(struct client *c, const char *op);
int client_end(struct client *c, struct client_fault *f);
/* The reply to the oldest request under way, to be freed. A refusal by the daemon is a fault with its
 * code. */
int client_reply(struct client *c, struct json **out, struct client_fault *f);
/* client_end() and client_reply(), for a verb with one request at a time. */
int client_call(struct client *c, struct json **out, struct client_fault *f);
/* Asks one question on its own connection. It prints what went wrong and returns the exit code. */
struct client_question {
	const char *op;
	const char *job;         /* NULL: none */
	const uint64_t *version; /* NULL: none */
	const char *type;        /* NULL: none */
	uint64_t days;           /* 0: none */
	const char *flag;        /* a member that is true; NULL: none */
	const char *expects;     /* a member that the reply must have; NULL: none */
};
int client_ask(const struct client_params *at, const struct client_question *q, struct json **out);
/* The next event of a watch. *out is NULL if none came within `at_most_s` (NaN: no limit). If the daemon goes
 * away, the result is CLIENT_UNREACHABLE. */
int client_event(struct client *c, double at_most_s, struct json **out, struct client_fault *f);

/* Fills in a fault that a verb found itself; returns the exit code. */
int client_fail(struct client_fault *f, int exit_code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The fault of a reply that does not follow the protocol. */
int client_bad_reply(struct client_fault *f, const char *what);

/* The options of every verb that talks to the daemon, for its table; `p` is a struct client_params. */
#define CLIENT_OPTIONS(p)                                                                                    \
	{ 0, "socket", CLI_TEXT, "PATH",                                                                     \
	  "the daemon's socket (default: $POSTRIDER_SOCKET, then the\nconfiguration's)", &(p).socket },      \
	{ 0, "timeout", CLI_DURATION, "TIME", "give up after this long, with exit code 124", &(p).timeout_s }

#endif
