/* A job at an engine, and the engine: what engine.c, engine_submit.c, engine_poll.c and engine_end.c share.
 * All of it runs in the loop's thread. engine.c explains the states of `hand`. */
#ifndef SCHEDULER_DAEMON_EXEC_ENGINE_JOB_H
#define SCHEDULER_DAEMON_EXEC_ENGINE_JOB_H

#include "scheduler/daemon/exec/engine.h"
#include "scheduler/engines/errand.h"
#include "scheduler/daemon/exec/local_job.h"
#include "scheduler/daemon/exec/spawn.h"
#include "scheduler/process/identity.h"

enum { ERRAND_SUBMIT, ERRAND_CANCEL, ERRAND_POLL, ERRAND_PAST, ERRAND_LOOK }; /* and the question */
#define ENGINE_MOST_HANDS 4
enum hand { TO_SUBMIT, SUBMITTING, UNSURE, THERE };
enum books { BOOKS_CLOSED, BOOKS_ASKED, BOOKS_READ };

struct engines {
	struct event_base *base;
	struct executor_sink sink;
	struct spawn_program program;
	char boot[RECORD_BOOT_BYTES + 1];
	struct engine **engine;
	size_t n_engines;
	struct engine_job **job;
	size_t n_jobs, cap;
	size_t next; /* where the next turn goes on */
	struct event *tick, *hand_over;
	char scratch[JOB_OUTPUT_MAX_LINE + 1];
};

struct engine {
	struct engines *all;
	char *name;
	const struct config_engine *config; /* borrowed; NULL: it is no longer configured */
	const struct engine_ops *ops;
	/* Its threads. The first asks and cancels; the others hand over, several at once. */
	struct engine_thread {
		struct errands *errands;
		struct event *returned;
		size_t n_submitting;
	} thread[1 + ENGINE_MOST_HANDS];
	size_t n_threads, n_submitting;
	bool polling;
	uint64_t n_polls; /* begun */
	int64_t poll_at_ns, hold_until_ns; /* monotonic */
	double back_off_s; /* 0: it answers */
	char away[ENGINE_MAX_SAID + 64]; /* why it does not; "": it does */
	bool mute; /* the last poll failed */
	/* the look at its cluster (engine_look.c) */
	struct event *look; /* the timer; NULL: never watched */
	char *scope; /* NULL: the cluster is not watched */
	bool looking, looked; /* a look is under way; there was one */
};

struct engine_job {
	struct local_job *run; /* its records and its output */
	struct engine *engine;
	enum hand hand;
	struct engine_call call; /* to submit it; argv NULL: not known, after a restart, or it is under way */
	struct errand *errand;
	char id[ENGINE_MAX_ID + 1];
	enum engine_word word;
	bool placed; /* the engine gave it a node */
	char said[ENGINE_MAX_SAID];
	char told[ENGINE_MAX_SAID + 128]; /* why it waits */
	uint64_t counts_from; /* polls before this one say nothing about it */
	unsigned missing, submits;
	enum books books;
	struct engine_past past; /* what the books say, once they are read */
	/* monotonic; 0: not yet */
	int64_t over_ns;   /* since when the engine says that it is over */
	int64_t end_ns;    /* since when its record says so */
	int64_t cancel_ns; /* when it is cancelled again */
};

/* engine.c */
void engines_tick(struct engines *a, int us); /* looks at the jobs again in `us` */
void engine_tell_waits(struct engine_job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void engines_hand_over(struct engines *a); /* soon: those that wait to be submitted, if there is room */
struct orders *engine_asks(const struct engine *g); /* to the thread for questions */
void engine_take_returned(struct engine *g, size_t thread); /* errands that came back */
void engine_is_away(struct engine *g, const char *why); /* it gave no answer: wait longer and longer */
void engine_is_back(struct engine *g);

/* engine_submit.c */
int engine_make_call(const struct engines *a, const struct engine *g, const struct exec_job *from,
                     const struct local_job *run, struct engine_call *out, struct err *err);
/* Takes the call, also on failure (NULL). */
struct errand *engine_errand(const struct engine *g, int kind, void *owner, struct engine_call *c);
void engine_look_to_submit(struct engine_job *j, int64_t now_ns); /* submits it if the engine takes jobs */
void engine_hand_over(struct engine_job *j, int64_t now_ns); /* the same, if it never was; reads nothing */
void engine_submitted(struct engine *g, struct errand *e); /* ERRAND_SUBMIT came back */

/* engine_poll.c */
bool engine_needs_poll(const struct engine *g);
void engine_ask(struct engine *g);
void engine_polled(struct engine *g, struct errand *e); /* ERRAND_POLL came back */

/* engine_look.c */
/* From now on the cluster is watched, if it is that of the configuration's own executor. */
int engine_watch(struct engine *g, const struct config *c, struct err *err);
void engine_look_done(struct engine *g, struct errand *e); /* ERRAND_LOOK came back */
void engine_look_release(struct engine *g);

/* engine_books.c */
/* Asks what the engine's accounting has about it. False: that is known already, or cannot be asked. */
bool engine_ask_books(struct engine_job *j);
void engine_books_read(struct engine *g, struct errand *e); /* ERRAND_PAST came back */

/* engine_end.c */
void engine_read_records(struct engine_job *j);
void engine_look_at_word(struct engine_job *j, int64_t now_ns); /* it is over, or gone: what now? */
/* Its record says how it ended. False: the engine's word is waited for. */
bool engine_settle_end(struct engine_job *j, int64_t now_ns);

#endif
