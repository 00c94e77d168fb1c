/* What observe.c and retrain.c share. */
#ifndef SCHEDULER_DAEMON_LEARN_LEARNING_INTERNAL_H
#define SCHEDULER_DAEMON_LEARN_LEARNING_INTERNAL_H

#include "scheduler/core/learn/drift.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/learn/training_thread.h"
#include "scheduler/daemon/learn/learning.h"

#define LEARNING_MOST_ACCURACY 1e6 /* where no model says what is plausible */
#define LEARNING_LEVELS 16   /* confidences told apart, to the whole percent */
#define LEARNING_RECENT 200  /* jobs behind the latest share that was kept */
#define LEARNING_KINDS 1024  /* told apart; jobs of further ones stay without a promise until the next
                                training */
#define LEARNING_FIRST 30    /* jobs that say how a model errs, where it does not say so itself */

struct kept_level {
	int percent;
	uint64_t n, kept;
	bool recent[LEARNING_RECENT]; /* a ring */
};

struct kind {                /* of jobs, since the model came to use */
	int type;
	char stranger[128];  /* why the model does not know them; "": it does */
	size_t n;
};

struct probe_type {          /* the latest decisions of a job type: probe.c */
	int type;
	uint32_t rejected;   /* a bit each, the latest is the lowest */
	size_t n;            /* of them */
	int64_t ended_ns;    /* when a job of it last taught something; 0: not since the start */
	uint64_t job;        /* the latest that was taken to learn; 0: none */
};

struct learning {
	struct daemon *d;
	struct probe_type *probe; size_t n_probes, probes_cap;
	uint64_t probes;             /* taken to learn since the start */

	/* what ended jobs tell */
	struct kept_level level[LEARNING_LEVELS]; size_t n_levels;
	struct kind *kind; size_t n_kinds, kinds_cap;
	struct drift *drift;         /* NULL: it is not known yet how the model errs */
	double first[LEARNING_FIRST]; size_t n_first; /* scores until then */
	char model_name[64];         /* all of this is about; setup.h */
	uint64_t alarms;             /* since the start */
	uint64_t doubted;              /* jobs that nothing was learnt from: learning_doubt() */

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
	const char *given;           /* by the command line; NULL: the configuration's */
	char *own;                   /* the version in d->params.model; NULL: `given` */
	uint32_t own_number, in_use; /* of `own`, and of the model of d->setup; 0: the configuration's */
	bool put;                    /* `next` is to be put to use, as soon as no reload is under way */
	char *next; uint32_t next_number; /* NULL: `given` */
	struct model *next_model;    /* of `next`, read and compiled; NULL without */
	struct event *put_timer;
	struct later *answer;        /* to the client that asked for it; NULL: none */
};

void learning_begin_anew(struct learning *l); /* another model */
int learning_train_new(struct learning *l, struct err *err);
void learning_train_release(struct learning *l);
void learning_train_due(struct learning *l);     /* one more job has ended */
void learning_train_restore(struct learning *l); /* counts what ended since the last training */
void learning_train_changed(struct learning *l); /* after a reload */
bool learning_train_busy(const struct learning *l);
bool learning_is_observation(const struct job_record *row);
void learning_probe_ended(struct learning *l, const struct job *job); /* it taught something */

#endif
