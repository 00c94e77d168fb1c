/* The table of policies: how a batch is chosen. Configurations, the command line, the simulator and tests
 * find a policy by its name in policy_all[]; "fixed:128" is `fixed` with an argument, and
 * "postrider:chance=0.5" is `postrider` that takes what it cannot promise for a chance of one half, and
 * "postrider:without=bias+told" is `postrider` without two of its layers (layers.h).
 *
 * A policy says which model it wants, whether it decides on the bound or on the expectation, whether it looks
 * ahead, and how it picks among the candidates. sched.c does the rest, the same for all. */
#ifndef SCHEDULER_CORE_POLICY_H
#define SCHEDULER_CORE_POLICY_H

#include <stdbool.h>

#include "common/err.h"
#include "common/rng.h"
#include "predictors/model.h"
#include "scheduler/core/policy/layers.h"

struct decision;
struct policy;

struct policy_choice {            /* a policy with its argument, as a configuration names it */
	const struct policy *policy;
	double batch;             /* of fixed:B; NaN otherwise */
	double chance;            /* of NAME:chance=C: for jobs that ask for none themselves; 0: none */
	bool no_chance;           /* of NAME:chance=no: no job is taken by chance, whatever it asks for */
	double price;             /* of NAME:price=X: a constant one for a process-second; 0: it is found */
	unsigned without;         /* of NAME:without=L+L: layers that are left out (enum layer, or-ed) */
	const char *model;        /* of NAME:model=M, instead of the one it wants; NULL: none */
};

struct policy {
	const char *name;         /* "courier" */
	const char *title;        /* for people: "the paper's: forests, njobs as a feature, expected time" */
	const char *predictor;    /* model of the time it wants ("hybrid"); NULL: any, it only informs */
	const char *or_predictor; /* one that is accepted as well, though never searched; NULL: none */
	const char *settings;     /* of the predictor, where the policy fixes them; NULL: searched */
	const char *accuracy, *accuracy_settings; /* its own model of accuracy; NULL: recipe_accuracy() */
	bool open_queue;          /* wants a hybrid on the paper's open queue (queueing/paper.h), no other */
	bool without_load;        /* wants a model without njobs and processes (the paper's boosting
	                             baseline) */
	bool bounds;              /* feasible by the upper bound; else by the expected time */
	bool looks_ahead;         /* knows waits, loads to come and others' promises by the fluid look-ahead;
	                             else njobs is the number now running, this one included, and waits are
	                             not known */
	bool priced;              /* charges candidates for the capacity they use (price.h) */
	bool admits_all;          /* never rejects: naive and fixed */
	bool exact;               /* the paper's rule: only equal accuracies tie */
	bool takes_batch;         /* "NAME:B" */
	/* Index of the candidate taken, -1: none; NULL: the best accuracy among the feasible, ties (within
	 * `noise`, or exactly) to the shorter time. Deterministic but for rng. Memory and width are already
	 * among the reasons. */
	int (*choose)(const struct policy_choice *c, const struct decision *d, double noise, struct rng *rng);
};

extern const struct policy *const policy_all[]; /* NULL-terminated */
/* "postrider", "fixed:128", "postrider:chance=0.5"; ERR_ARG names the nearest one, or what is wrong with the
 * argument. */
int policy_parse(const char *text, struct policy_choice *out, struct err *err);
/* The policy as its settings change it. */
struct policy policy_resolve(const struct policy_choice *c);
const char *policy_names(void); /* "courier, postrider, ..., fixed:B": for messages */

/* Is this model one that the policy wants? A policy that wants none takes any; one with open_queue also asks
 * which queue it stands on. */
bool policy_wants_with(const struct policy *p, const struct predictor *predictor);
/* ERR_ARG, with the command that would train the right one, unless the model is what the policy wants. */
int policy_accepts(const struct policy_choice *c, const struct model *m, struct err *err);

/* The schema under which a model for the policy is trained: a copy of s, without the columns of the load and
 * those derived from them (they are ignored where a table has them) if the policy does without. To be
 * freed. */
int policy_schema(const struct policy *p, const struct schema *s, struct schema **out, struct err *err);

#endif
