/* What server.c (listening, turns of the loop), conn.c and conn_out.c (one connection) and server_bind.c (the
 * socket's path) share.
 *
 * A turn: libevent tells which connections can be read and written; their callbacks only note it. The turn
 * event, activated by the first of them, runs behind all others: it reads and hands over lines, a bounded
 * number for each connection and a bounded time in all, calls on_turn(), makes parts of replies that are made
 * so, for a bounded time, and then writes once to each connection that has something to send. What is left
 * over continues in the next turn, after the loop has looked at everything else.
 *
 * Connections are freed only at the end of a turn (or by server_free), so a pointer that a callback holds
 * stays good. */
#ifndef SCHEDULER_DAEMON_NET_SERVER_INTERNAL_H
#define SCHEDULER_DAEMON_NET_SERVER_INTERNAL_H

#include <event2/event_struct.h>
#include <sys/queue.h>

#include "scheduler/daemon/net/server.h"

#define SERVER_READ_CHUNK 32768  /* bytes of one read: about 200 requests */
#define SERVER_SMALL_REST 4096   /* an unfinished line up to here is copied to the read buffer and back */
#define SERVER_MAX_WAITING 1024  /* replies of a connection that wait for a commit; then it is not read */
#define SERVER_MAX_HELD 32       /* replies of a connection that are not filled yet; with more it is not
                                    read */
#define SERVER_SPARE_OUTPUTS 64  /* output buffers kept for the next who writes */
#define SERVER_PART_ROOM 32768   /* unsent bytes up to which more parts of a reply are made */
#define SERVER_UID_BUCKETS 256
#define SERVER_LINGER_NS ((int64_t)10 * 1000000000) /* how long a closed connection may take to read the
                                                       rest */

struct reply {
	TAILQ_ENTRY(reply) link;
	struct conn *conn;   /* NULL: gone */
	uint64_t ticket;
	bool held;           /* not filled yet */
	bool streamed;       /* `source` makes it */
	bool waits;          /* the source has nothing to say for now */
	struct reply_source source;
	size_t len;
	char *text;          /* behind the struct, or allocated if it was filled later */
};

struct output {          /* bytes that may be sent, in [start, start + len) */
	char *bytes;
	size_t start, len, cap;
};

struct uid_count {
	struct uid_count *next;
	uid_t uid;
	size_t n;
	size_t bytes;            /* that its connections have not read */
};

struct conn {
	TAILQ_ENTRY(conn) link;         /* all */
	TAILQ_ENTRY(conn) ready_link;   /* to be served */
	TAILQ_ENTRY(conn) dirty_link;   /* to be written, closed or resumed */
	TAILQ_ENTRY(conn) waiting_link; /* with replies that wait */
	TAILQ_ENTRY(conn) stream_link;  /* parts of its first reply are to be made */
	struct server *server;
	struct event read_event, write_event;
	int fd;
	uid_t uid; gid_t gid;
	struct uid_count *user;
	size_t counted;                 /* bytes of it that user->bytes knows of */
	bool ready, dirty, waiting, streaming; /* in which lists */
	bool read_on, write_on;         /* which events are added */
	bool readable;                  /* the loop said so and nothing was read since */
	bool throttled;                 /* too much output or too many replies wait: not read */
	bool skipping;                  /* inside a line that was too long */
	bool inside_line;               /* the last byte the peer took was no newline */
	bool eof;                       /* the peer will not send more */
	bool closing;                   /* nothing more is taken in; freed when all has gone out */
	bool broken;                    /* nothing can be sent any more */
	bool dead;                      /* being freed */
	bool watching;
	bool adopted;                   /* server_adopt(): the kernel does not know its user */
	int64_t active_ns;              /* last request, or last byte the peer took */
	/* Input that was read and not handed over yet. */
	char *in;
	size_t in_len, in_cap, in_scanned; /* so many bytes hold no newline */
	struct output out;
	TAILQ_HEAD(, reply) replies;    /* in the order of their requests; the first one waits */
	size_t n_waiting, n_held, waiting_bytes;
};
TAILQ_HEAD(conn_list, conn);

struct server_socket {           /* server_bind.c */
	int fd, lock_fd;
	bool bound;              /* we made it and remove it */
	char path[108];
	dev_t dev; ino_t ino;    /* of what we made */
};

struct server {
	struct server_params limit; /* path and base are not used after server_new */
	struct server_handler handler;
	struct event_base *base;
	struct server_socket socket;
	struct event accept_event, accept_again, turn_event, next_turn, sweep;
	bool accept_on, events_made, turn_due;
	int spare_fd;            /* given up to refuse politely when descriptors run out */
	struct conn_list conns, ready, dirty, waiting, streaming;
	size_t n_conns, n_ready;
	struct uid_count *uids[SERVER_UID_BUCKETS];
	uint64_t durable;
	bool handled;            /* lines were, in this turn */
	int64_t now_ns;          /* of this turn */
	struct output spare[SERVER_SPARE_OUTPUTS];
	size_t n_spare;
	struct strbuf part;      /* scratch */
	/* One byte more than is read: the last line before the end of a connection gets a NUL there. */
	char read_buffer[SERVER_SMALL_REST + SERVER_READ_CHUNK + 1];
};

/* ---- server_bind.c ---- */
int server_socket_open(const struct server_params *p, struct server_socket *out, struct err *err);
void server_socket_close(struct server_socket *s); /* the lock goes last; safe on one that was never opened */

/* ---- server.c ---- */
void server_want_turn(struct server *s);
void server_add_ready(struct conn *c);
void server_add_dirty(struct conn *c);
void server_add_streaming(struct conn *c);
void server_uncount(struct server *s, uid_t uid);

/* ---- conn.c ---- */
struct ucred;
int conn_new(struct server *s, int fd, const struct ucred *peer, struct uid_count *user); /* takes fd on
                                                                                             success */
void conn_free(struct conn *c); /* calls on_close */
size_t conn_serve(struct conn *c, size_t max_lines, int64_t until_ns); /* how many lines were taken */
void conn_settle(struct conn *c); /* writes; then resumes reading, or frees */
void conn_sweep(struct conn *c, int64_t now_ns);

/* ---- conn_out.c ---- */
/* A connection that lets its answers pile up is not read: a client that pipelines without reading waits. */
bool conn_is_full(const struct conn *c);
void conn_count(struct conn *c);          /* tells its user's count what is unsent */
bool conn_has_room(const struct conn *c); /* again, and not just for one line */
void conn_send(struct conn *c);           /* what the socket takes */
void conn_refuse(struct conn *c, const char *code, const char *message); /* in the order of replies */
void conn_release(struct conn *c);        /* replies that need not wait any more become output */
bool conn_streams(const struct conn *c);  /* its first reply is made in parts, and there is room for one */
void conn_make_part(struct conn *c);      /* of that reply */
void conn_drop_replies(struct conn *c);   /* all that wait; those held are freed when they are filled */
void conn_out_release(struct conn *c);    /* drops the output and its buffer */
/* Nothing can be sent any more: the output is dropped, and the connection goes at the end of the turn. */
void conn_break_off(struct conn *c);

#endif
