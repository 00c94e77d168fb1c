/* What decisions are made from and no row of a job says: when the daemon took note of a start, an end, a
 * report of progress, what other programs did to the machine, when jobs that waited came in, and which
 * configuration and models were in use. They go to the store beside the rows of the same turn, so that
 * verify/ can make the decisions again (docs/STORE.md, table `inputs`). A submission needs none: its row has
 * them. */
#ifndef SCHEDULER_DAEMON_INPUTS_H
#define SCHEDULER_DAEMON_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/strbuf.h"

struct daemon;
struct job;
struct setup;
struct life_event;
struct exec_outcome;
struct sched_guest;
struct life_progress;

/* `what` of a row, and what its number and text are. Times in texts are seconds after the row's. */
#define INPUT_BEGAN "began"           /* the daemon, with the configuration in the text */
#define INPUT_RELOADED "reloaded"     /* the same */
#define INPUT_LOADS "loads"           /* text: other load as "SECONDS:PROCESSES ..."; before the row's time */
#define INPUT_WAITS "waits"           /* the job was submitted, and waits for others */
#define INPUT_ADMITTED "admitted"     /* a job that waited, or whose run is repeated, is with the scheduler */
#define INPUT_LOOKED "looked"         /* the scheduler looked at its queue, and nothing was to start */
#define INPUT_STARTED "started"       /* number: when its command began */
#define INPUT_OWNER "owner_started"   /* an advised job, by its owner */
#define INPUT_DELAYED "delayed"       /* the machine lacked something to start it; text: what */
#define INPUT_AT_ENGINE "at_engine"   /* it waits there; text: why; NULL: no more */
#define INPUT_PROGRESS "progress"     /* number: the share that is done; text: the epoch, and
                                         the batch where it was answered how to go on */
#define INPUT_ENDED "ended"           /* text: the outcome */
#define INPUT_CANCEL "cancel"         /* text: why */
#define INPUT_HOPELESS "hopeless"     /* taken by chance, and it had none any more */
#define INPUT_UNSTARTED "unstarted"   /* after a restart: nothing of the job had run. Before "began" */
#define INPUT_CLUSTER "cluster"       /* number: slots that an engine's cluster leaves to us; text: jobs of
                                         others as "CPUS:SECONDS ...", SECONDS "-" where nobody knows */
#define INPUT_LAG "lag"               /* number: what a start takes there; NaN: nothing is known of it */

struct inputs { /* all zero: none yet */
	double load;          /* of others, as the scheduler was told last */
	struct strbuf loads;  /* that are not written yet */
	size_t n_loads;
	int64_t loads_from_ns;
	double lag_s;         /* the last of a cluster; 0: none */
};

void inputs_began(struct daemon *d);
/* `fresh` takes the place of d->setup. */
void inputs_reloaded(struct daemon *d, int64_t now_ns, const struct setup *fresh);
/* It is kept until there is something to commit, so an idle daemon writes nothing. */
void inputs_load(struct daemon *d, int64_t now_ns, double processes);
void inputs_cluster(struct daemon *d, int64_t now_ns, uint32_t slots, const struct sched_guest *guest,
                    size_t n);
/* That the scheduler is told; only that of a cluster is no consequence of other inputs. */
void inputs_lag(struct daemon *d, double lag_s);
void inputs_flush(struct daemon *d); /* before a commit */
/* Of the life of a job: those that come from the world. */
void inputs_event(struct daemon *d, const struct life_event *e);
/* asks: it is answered how to go on. */
void inputs_progress(struct daemon *d, const struct job *job, int64_t now_ns, double done,
                     const struct life_progress *p, bool asks);
void inputs_ended(struct daemon *d, int64_t now_ns, const struct exec_outcome *o);
/* All others. job NULL: none; number NaN: none; text NULL: none. */
void inputs_add(struct daemon *d, const char *what, int64_t now_ns, const struct job *job, double number,
                const char *text);

#endif
