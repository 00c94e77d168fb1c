/* The socket: listening, connections, lines in, lines out. It does not know about jobs, and the handler reads
 * the JSON. One libevent loop, one thread.
 *
 * Replies leave a connection in the order of its requests. A reply may have to wait: for a commit (a ticket),
 * or for an answer of the store's reader (a slot filled later). Later replies of that connection wait behind
 * it; other connections do not notice. */
#ifndef SCHEDULER_DAEMON_NET_SERVER_H
#define SCHEDULER_DAEMON_NET_SERVER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/strbuf.h"

#define SERVER_MAX_LINE 65536 /* bytes of a request, its newline not counted */

struct server;
struct conn;
struct reply; /* a place in a connection's order of replies that is filled later */

struct server_handler {
	void *owner;
	/* A line without its newline (and without a carriage return before it), NUL-terminated; may be
	 * scribbled on. */
	void (*on_line)(void *owner, struct conn *c, char *line, size_t len);
	/* The text, newline included, of the greeting; and of the answers to what the server refuses itself.
	 * Codes: "line_too_long", "too_many_connections", "idle_timeout", "slow_reader". Borrowed until the
	 * next call. */
	const char *(*greeting)(void *owner, struct conn *c, size_t *out_len);
	const char *(*refusal)(void *owner, const char *code, const char *message, size_t *out_len);
	void (*on_close)(void *owner, struct conn *c); /* the last word about c */
	void (*on_turn)(void *owner); /* after every turn of the loop in which something was read: commit
	                                 here */
	void (*turn_begins)(void *owner), (*turn_ends)(void *owner); /* around every turn; may be NULL */
};

struct server_params {
	struct event_base *base;
	const char *path; mode_t mode; gid_t group; bool set_group;
	int listen_fd;            /* of socket activation, taken over; -1: bind `path` */
	bool force;               /* bind in a folder that others may write to, too */
	size_t max_connections, max_connections_per_uid, max_output_bytes; /* 0: no limit; of output: 8 MiB */
	size_t max_output_bytes_per_uid; /* unread output of all connections of a user; beyond it they are not
	                                    read, and one that watches is closed; 0: no limit */
	double idle_timeout_s;    /* 0: never */
	struct server_handler handler;
};
/* A live socket at the path is never stolen (ERR_BUSY, under a lock file beside it), a stale one is replaced.
 * The folder must not be writable by others (ERR_PERM) unless it is sticky. Raises the process's limit of
 * open files to what it may have. Handlers may call everything below but server_free(). */
int server_new(const struct server_params *p, struct server **out, struct err *err);
void server_stop_accepting(struct server *s);
void server_free(struct server *s); /* what can be sent at once is; closes all; removes the socket it made */
void server_set_limits(struct server *s, const struct server_params *p); /* a reload */
size_t server_connections(const struct server *s);

/* Takes a socket whose other end is in this process, as a connection of that user, who has been identified by
 * a token. The groups are those of the system's tables. -1: no memory, or too many connections; the caller
 * still owns the socket. */
int server_adopt(struct server *s, int fd, uid_t uid);

/* Identity, taken with SO_PEERCRED at accept. */
uid_t conn_uid(const struct conn *c);
gid_t conn_gid(const struct conn *c);
bool conn_in_group(const struct conn *c, gid_t group); /* SO_PEERGROUPS */

/* Replies: text with its newline. ticket 0: at once (in order); else when server_durable() reaches it. */
void conn_reply(struct conn *c, const char *text, size_t len, uint64_t ticket);
struct reply *conn_hold(struct conn *c); /* a reply that comes later; NULL without memory: the connection is
                                            closed */
/* Fills it; every reply held is filled exactly once, also after its connection is gone. */
void reply_fill(struct reply *r, const char *text, size_t len);
/* A reply that is made in parts, while the connection has room for them: the peer reads, or no more is made.
 * Parts are made in turns of the loop, a bounded time in each. */
enum reply_part {
	REPLY_MORE,     /* and there is more */
	REPLY_WAITS,    /* what comes next is not known yet: reply_wake() says when it is */
	REPLY_COMPLETE, /* with its newline */
	REPLY_FAILED,   /* the connection is closed: a reply cannot be taken back */
};
struct reply_source {
	void *owner;
	/* Appends the next part, a hundred microseconds' worth. */
	enum reply_part (*make)(void *owner, struct strbuf *out);
	void (*release)(void *owner); /* the last call: all was made, or the connection is gone */
};
/* Fills it so; takes the source. */
void reply_stream(struct reply *r, const struct reply_source *source);
void reply_wake(struct reply *r); /* of a reply that waits; the source was not released yet */

/* Text that answers no request (events of a watch): goes out behind the replies of requests made so far. A
 * connection whose unread output would exceed the limit is closed, with a last line saying so. */
void conn_push(struct conn *c, const char *text, size_t len);
void conn_set_watching(struct conn *c, bool on); /* a watching connection has no idle timeout */
void conn_close(struct conn *c);                 /* after what is queued has gone out; never frees c at
                                                    once */

/* Everything up to this ticket is on disk: replies that waited for it go out. */
void server_durable(struct server *s, uint64_t ticket);

#endif
