/* The layers of a decision: what a policy puts on top of the model's time, from the bound to the price. Each
 * has a name and can be left out, so that `compare` measures what it is worth:
 * "postrider:without=bias+quantile". This file owns the names; the code of each layer asks for its bit
 * (policy_choice.without). */
#ifndef SCHEDULER_CORE_LAYERS_H
#define SCHEDULER_CORE_LAYERS_H

#include <stddef.h>

#include "common/err.h"

enum layer {
	LAYER_BOUNDS = 1 << 0,      /* decide.c */
	LAYER_LOOK_AHEAD = 1 << 1,  /* lookahead.c */
	LAYER_PRICE = 1 << 2,       /* price.h, sched_price.c */
	LAYER_GIVE_BACK = 1 << 3,   /* sched_give.c */
	LAYER_SEATS = 1 << 4,       /* sched_place.c: try_seats() */
	LAYER_LATER = 1 << 5,       /* later.h */
	LAYER_OTHER_WORK = 1 << 6,  /* other_work.c, sched_set_other_load() */
	LAYER_USUAL_LOAD = 1 << 7,  /* usual_load.h */
	LAYER_START_LAG = 1 << 8,   /* start_lag.h, sched_set_lag() */
	LAYER_BIAS = 1 << 9,        /* adapt.h */
	LAYER_QUANTILE = 1 << 10,   /* adapt.h */
	LAYER_NEW_FAMILY = 1 << 11, /* sched_learn.c */
	LAYER_KINDS = 1 << 12,      /* pairs.h */
	LAYER_STEER = 1 << 13,      /* steer.h */
};
#define LAYERS_LEARNT (LAYER_BIAS | LAYER_QUANTILE) /* part of what adapt.h keeps */
#define LAYERS_ALL ((1u << 14) - 1)

struct layer_entry {
	enum layer bit;
	const char *name; /* "other-work" */
	const char *help; /* what it does, in a line */
};
extern const struct layer_entry layer_all[]; /* until a name is NULL */

#define LAYERS_TEXT 192 /* all names, with what stands between them */
/* The names of these layers: "bias+quantile" with "+". Returns out, which has room for LAYERS_TEXT. */
const char *layers_print(unsigned which, const char *between, char *out);
/* "bias+quantile": adds the bits to *io. ERR_ARG: one is none of `allowed`; the message lists those.
 * owner: the policy, for that message. */
int layers_parse(const char *text, const char *owner, unsigned allowed, unsigned *io, struct err *err);

#endif
