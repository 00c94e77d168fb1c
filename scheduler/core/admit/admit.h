/* How a job comes in: what it may be promised and which batches it may have, by what ended jobs left. The
 * daemon and the simulator ask it for every job, whether it arrives, has waited for another, is repeated
 * after a failure, or is only asked about (`predict`, --dry-run).
 *
 *   batches that its runs fail with are no candidates, unless its user named them (failing.h);
 *   a job of a type without a model takes the batch that is least known, and nothing is promised (first.h);
 *   where the model has learnt from a few runs, a batch that was never tried and that can be promised comes
 *     first;
 *   a job of a kind that its model has never seen takes the best guess of the model, and nothing is promised
 *     until enough of its kind have ended (knowledge.h, strangers.h);
 *   a job whose run failed gets the rest of its limit, and the next smaller batch where its own fails.
 *
 * Everything else is the scheduler's: sched_submit(), with admit_request(). */
#ifndef SCHEDULER_CORE_ADMIT_ADMIT_H
#define SCHEDULER_CORE_ADMIT_ADMIT_H

#include "scheduler/core/admit/failing.h"
#include "scheduler/core/admit/first.h"
#include "scheduler/core/admit/strangers.h"
#include "scheduler/core/alternatives.h"
#include "scheduler/core/sched.h"

struct admit_memory {                  /* what is known, beside the models */
	const struct strangers *strangers; /* of the job's model */
	const struct first_batches *first;
	const struct failing_batches *failing;
	bool predicts;                 /* the policy wants a model */
	bool adapt;                    /* bounds follow what ended jobs took */
	size_t promise_after;          /* jobs of a kind, before its jobs are promised anything */
	/* of a job's model that is still to be trained */
	bool training;
	bool young;                    /* it has learnt from so few runs that each of them counts */
	size_t first_after, ended;     /* on so many jobs (0: when somebody asks), of which so many ended */
};

struct admit_job {
	const struct sched_request *request; /* as its user wants it */
	const struct model *model;     /* NULL: none */
	uint64_t command;              /* failing.h */
	bool named;                    /* its user named the batches */
	/* of a run that failed, which is repeated */
	bool again;
	bool promised;
	double failed_batch, waited_s; /* since it was submitted */
	const double *all; size_t n_all; /* batches that it could have; 0: those of the request */
};

struct admit_terms {
	bool promise;                  /* false: nothing can be promised yet, and `why` says why */
	bool again;
	char why[192];
	double batch[DECIDE_MAX_CANDIDATES]; size_t n_batches; /* 0: as in the request */
	double epochs;                 /* the only choice; NaN: as in the request */
	double guess_s;                /* without a model: how long such jobs took; NaN: not known */
	double slo_s;                  /* NaN: none */
};

/* scratch: for a question to the scheduler. */
int admit_terms(struct sched *s, int64_t now_ns, const struct admit_memory *m, const struct admit_job *j,
                struct decision *scratch, struct admit_terms *out, struct err *err);
/* What the scheduler is asked under these terms. Borrows the batches and epochs of t. */
struct sched_request admit_request(const struct admit_terms *t, const struct sched_request *r);
/* Of a job that was refused: what would be in time with one of these numbers of epochs, which are fewer than
 * it asked for. */
struct alternative admit_shorter(struct sched *s, int64_t now_ns, const struct sched_request *refused,
                                 const double *epochs, size_t n_epochs, struct decision *scratch);
/* Does the job know what will be promised? Part of admit_terms(), for those who only want to say so. */
bool admit_known(const struct admit_memory *m, const struct admit_job *j, char *why, size_t size);

#endif
