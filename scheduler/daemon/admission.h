/* The one way in for jobs: those that arrive, those that have waited for others or whose run is repeated
 * (waiting.c), probes, and questions that keep nothing (`predict`, --dry-run). What ended jobs left is asked
 * first (core/admit/admit.h), then the scheduler. */
#ifndef SCHEDULER_DAEMON_ADMISSION_H
#define SCHEDULER_DAEMON_ADMISSION_H

#include "scheduler/core/alternatives.h"
#include "scheduler/daemon/daemon.h"

struct admission {
	struct decision decision;
	enum sched_verdict verdict;
	char why[192];       /* nothing can be promised to such jobs yet: a sentence; "": it can */
	struct alternative shorter; /* of a refused job: in time with fewer epochs */
	double took_us;
};

/* A job that came in: what was decided about it. */
struct arrival {
	struct admission admission; /* of a job that waits for others: nothing yet */
	bool decided;               /* false after an error: the decision itself failed */
	struct strbuf text;         /* the decision as JSON */
	struct job *probe;          /* for learning_probe_submit(); NULL: none */
};
/* Decides about the job, and takes it in with the id d->next_id. After an error the job is the caller's. */
int admission_submit(struct daemon *d, struct job *job, bool waits, int64_t now_ns, struct arrival *out,
                     struct err *err);
/* When the client has its answer. */
void admission_done(struct daemon *d, const struct job *job, struct arrival *a);

/* keep: the scheduler has the job from now on. The job itself gets the batches, and perhaps the epochs, that
 * it may have; its row is as it was. ERR_BUSY: there is no room for it yet. */
int admission_decide(struct daemon *d, struct job *job, int64_t now_ns, bool keep, struct admission *out,
                     struct err *err);
/* The decision as the protocol and the store have it. */
void admission_json(const struct daemon *d, const struct job *job, int64_t now_ns, const struct admission *a,
                    struct json_writer *w);

#endif
