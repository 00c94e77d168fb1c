/* A thread that runs the client programs of one engine, one after the other: they talk to a server that may
 * be slow or away, and the loop must not wait for it. An errand has all it takes and comes back with what the
 * program said. No shell, no descriptor of ours but its three streams, a limit of time and of output. Used by
 * daemon/exec/engine.c and those beside it, from the loop's thread; profile_run.c does without the thread. */
#ifndef SCHEDULER_ENGINES_ERRAND_H
#define SCHEDULER_ENGINES_ERRAND_H

#include <stdbool.h>

#include "common/orders.h"
#include "common/strbuf.h"

#define ERRAND_SAID 200 /* bytes kept of what it complained about */

struct errand {
	struct order order;      /* first: the queue's */
	int kind;                /* these two are the owner's */
	void *owner;
	char **argv;             /* owned; the program is looked for in PATH */
	struct strbuf input;     /* for its standard input */
	double timeout_s;
	size_t max_output;
	/* May be NULL; in the thread. `before`: not 0 keeps the program from being run, and err says why. */
	int (*before)(struct errand *e);
	void (*after)(struct errand *e);
	/* what these two need: a record to be written */
	char *path, *text;
	void *result;            /* of `after`; freed with the errand */
	int exit_code;           /* -1: see err, or a signal ended it */
	bool ran;                /* false: nothing was run */
	struct err err;          /* code 0: it was run to its end */
	struct strbuf output;
	char said[ERRAND_SAID];  /* first line of its standard error */
};

struct errands;
/* environment: borrowed, not changed while the thread runs. */
int errands_new(char *const *environment, struct errands **out, struct err *err);
void errands_free(struct errands *s); /* a program under way is given a second, then it is killed */
struct orders *errands_orders(struct errands *s); /* where to add an errand, and where it comes back */
void errand_free(struct errand *e);
/* The same without a thread: argv, input, timeout_s and max_output are given. Once `leaving` the program has
 * a second left. */
void errand_run(struct errand *e, char *const *environment, bool (*leaving)(const void *owner),
                const void *owner);

#endif
