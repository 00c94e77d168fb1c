/* The client's side of docs/PROTOCOL.md: connecting, the greeting, requests and their replies in order,
 * events of a watch, and what a failure means for the exit code. Nothing from the other side is believed:
 * every line is parsed, and the version, the id and the shape are checked before a verb sees it.
 *
 * Functions return 0 or the exit code the program should end with; then the fault says why. */
#ifndef SCHEDULER_CLI_CLIENT_CLIENT_H
#define SCHEDULER_CLI_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json/json.h"

#define CLIENT_MAX_REQUEST 65536              /* bytes of a line we send, its newline not counted */
#define CLIENT_MAX_REPLY ((size_t)64 << 20)   /* of one we take: all jobs of a large queue are one line */
#define CLIENT_MAX_EVENTS 65536               /* events that may come while a reply is waited for */
#define CLIENT_GREETING_S 10.0                /* a daemon that lives greets at once */
#define CLIENT_PATIENCE_S 60.0                /* for one reply, where no --timeout says otherwise */

enum client_exit {
	CLIENT_FAILED = 1,
	CLIENT_USAGE = 2,
	CLIENT_REJECTED = 3,
	CLIENT_UNREACHABLE = 5,
	CLIENT_NOT_PERMITTED = 7,
	CLIENT_TIMED_OUT = 124,
	CLIENT_INTERRUPTED = 130,
};

struct client;

struct client_fault {
	int exit_code;
	/* the daemon's error code; empty: it is we who say so, and the connection is of no more use */
	char code[40];
	char text[1024], hint[512];
};

/* The exit code that belongs to an error code of the protocol; 1 for one that is not known. */
int client_exit_code(const char *code);
/* "postrider: TEXT" and the hint on stderr, fit for a terminal; returns the exit code. Says nothing about an
 * interruption: the verb knows better what that leaves behind. */
int client_say(const struct client_fault *f);

struct client_params {
	const char *socket;  /* of --socket; NULL: config_socket() finds it */
	double timeout_s;    /* of --timeout, from now until the end of the verb; NaN: none */
};
int client_open(const struct client_params *p, struct client **out, struct client_fault *f);
void client_close(struct client *c);
const char *client_path(const struct client *c);

/* From now on the first SIGINT, SIGTERM or SIGHUP makes whatever waits return CLIENT_INTERRUPTED; a second
 * one ends the program. Signals that were ignored stay so. */
void client_catch_signals(void);
bool client_interrupted(void);

/* A request is begun, filled in through the writer, and ended: then it is on its way. Several may be under
 * way. */
struct json_writer *client_begin(struct client *c, const char *op);
int client_end(struct client *c, struct client_fault *f);
/* The reply to the oldest request under way; a refusal of the daemon's is a fault with its code. To be
 * freed. */
int client_reply(struct client *c, struct json **out, struct client_fault *f);
/* client_end and client_reply, for a verb with one request at a time. */
int client_call(struct client *c, struct json **out, struct client_fault *f);
/* One question on its own connection; it says what went wrong and returns the exit code. */
struct client_question {
	const char *op;
	const char *job;         /* NULL: none */
	const uint64_t *version; /* NULL: none */
	const char *expects;     /* a member that the reply must have; NULL: none */
};
int client_ask(const struct client_params *at, const struct client_question *q, struct json **out);
/* The next event of a watch. *out is NULL when `at_most_s` (NaN: as long as it takes) went by without one. A
 * daemon that goes away is CLIENT_UNREACHABLE. */
int client_event(struct client *c, double at_most_s, struct json **out, struct client_fault *f);

/* Fills a fault for something a verb found out itself; returns the exit code. */
int client_fail(struct client_fault *f, int exit_code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* A reply lacks what the protocol promises. */
int client_bad_reply(struct client_fault *f, const char *what);

/* The options of every verb that talks to the daemon, for its table; `p` is a struct client_params. */
#define CLIENT_OPTIONS(p)                                                                                    \
	{ 0, "socket", CLI_TEXT, "PATH",                                                                     \
	  "the daemon's socket (default: $POSTRIDER_SOCKET, then the\nconfiguration's)", &(p).socket },      \
	{ 0, "timeout", CLI_DURATION, "TIME", "give up after this long, with exit code 124", &(p).timeout_s }

#endif
