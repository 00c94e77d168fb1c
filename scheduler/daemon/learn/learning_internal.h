/* What the files of this folder share. */
#ifndef SCHEDULER_DAEMON_LEARN_LEARNING_INTERNAL_H
#define SCHEDULER_DAEMON_LEARN_LEARNING_INTERNAL_H

#include "scheduler/core/admit/admit.h"
#include "scheduler/core/learn/drift.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/learn/training_thread.h"
#include "scheduler/daemon/learn/learning.h"

#define LEARNING_MOST_ACCURACY 1e6 /* where no model says what is plausible */
#define LEARNING_FIRST 30    /* jobs that say how a model errs, where it does not say so itself */

/* One for each slot of the setup: a model, and what its jobs teach. */
struct learner {
	struct learning *l;
	char *type;                  /* whose own model it is; NULL: the configuration's */
	uint32_t slot;               /* of the setup in use */
	bool is_new;                 /* it came with a reload, and has not looked for its versions */

	/* what ended jobs tell */
	struct strangers strangers;
	struct drift *drift;         /* NULL: it is not known yet how the model errs */
	double first[LEARNING_FIRST]; size_t n_first; /* scores until then */
	char model_name[64];         /* all of this is about; setup.h */
	uint64_t alarms;             /* since the start */

	/* training */
	struct trainer *trainer;
	char *settings;              /* the trainer's: another one is made when the configuration's differ */
	struct event *result;        /* of a training */
	bool asking;                 /* the store for observations */
	char reason[64];
	size_t since_training;       /* jobs */
	char outcome[512];           /* of the last training, for people; "": none since the start */
	double took_s;               /* it took; NaN */

	/* which model */
	char *own;                   /* file of the version in use; NULL: what the configuration names */
	int64_t own_since_ns;        /* when it was put to use, 1970 UTC */
	uint32_t own_number, in_use; /* of `own`, and of the model of d->setup; 0: the configuration's */
	bool put;                    /* `next` is to be put to use, as soon as no reload is under way */
	char *next; uint32_t next_number; /* NULL: the configuration's */
	struct model *next_model;    /* of `next`, read and compiled; NULL without */
	struct event *put_timer;
	struct later *answer;        /* to the client that asked for it; NULL: none */
};

struct learning {
	struct daemon *d;
	struct learner **learner; size_t n; /* by slot */
	struct learner **fresh; size_t n_fresh; /* of a reload under way: those that are new */
	struct first_batches first;
	struct failing_batches failing;
	uint64_t oom_kills;          /* machine_oom_kills(), when a job was last ended by SIGKILL */
	uint64_t probes;             /* of new families, submitted since the start */
	uint64_t doubted;            /* jobs that nothing was learnt from: learning_doubt() */
};

static inline const struct model_slot *learner_slot(const struct learner *e)
{
	return &e->l->d->setup->slot[e->slot];
}
/* That of a job: of a live one by its slot, of one that ended by its type. */
struct learner *learner_of(const struct learning *l, const struct job *job);
/* Where that of a type with its own model is, or of the configuration's (type NULL); NULL: there is none. */
struct learner **learner_find(const struct learning *l, const char *type);
const struct job_type *learner_type(const struct learner *e); /* NULL: it is the configuration's model */

int learner_train_new(struct learner *e, const struct setup *s, struct err *err); /* its versions and its
                                                                                    thread */
/* At the start of the daemon, before there are jobs: the versions that the journals say are in use. */
void learning_use_versions(struct learning *l);
void learner_train_release(struct learner *e);
void learner_train_due(struct learner *e);     /* one more job has ended */
void learner_train_restore(struct learner *e); /* counts what ended since the last training */
void learner_train_changed(struct learner *e); /* after a reload */
bool learner_train_busy(const struct learner *e);
bool learner_is_young(const struct learner *e); /* training_is_young() of its model */
size_t learner_train_after(const struct learner *e); /* jobs; 0: not automatically */
void learning_first_restore(struct learning *l); /* counts the jobs in memory */
void learning_teach_mixed(struct learning *l); /* at the start, and after other models came: mixed.c */
bool learning_is_observation(const struct job_record *row);
/* One that ended before the daemon started, and is done. met: what it ran beside. */
void learning_observe_again(struct learning *l, const struct job *job, const struct pairs_met *met);

#endif
