/* What an answer says beside the choice: the more accurate candidate that was passed over, the one that more
 * time would bring, and, for a job that is refused, the one that is in time with fewer epochs. Found, written
 * and read here alone; `submit`, `run`, --dry-run, `explain` and `predict` show it in the same words. */
#ifndef SCHEDULER_CORE_ALTERNATIVES_H
#define SCHEDULER_CORE_ALTERNATIVES_H

#include "common/json/json.h"
#include "common/strbuf.h"
#include "scheduler/core/decide.h"

struct alternative {
	double batch, epochs;  /* batch NaN: there is none; epochs NaN: it has none */
	double accuracy;       /* NaN: not known */
	double needs_s;        /* the shortest limit that would be promised; NaN: not known */
	double cost;           /* to other jobs, in accuracy; 0: none */
	char why[32];          /* decide_reason_text() of what it was passed over for; "": nothing */
	char job[24];          /* that would miss its promise; "": none */
};

struct alternatives {
	struct alternative passed;  /* over: more accurate than the chosen one, and in time */
	struct alternative later;   /* the soonest that is more accurate than both, and not in time */
	struct alternative shorter; /* of a refused job: in time, with fewer epochs than asked for */
};

extern const struct alternative alternative_none;
/* given: the epochs of a job that leaves no choice; NaN: none. shorter: none, see alternative_shorter(). Less
 * than the noise of the accuracy model is not more accurate. */
void alternatives_find(const struct decision *d, double given, struct alternatives *out);
/* What a decision chose that was made with fewer epochs. */
struct alternative alternative_shorter(const struct decision *d);

/* As members of an open object; those that there are. And from there. */
void alternatives_json(struct json_writer *w, const struct alternatives *a);
void alternatives_read(const struct json *v, struct alternatives *out);
/* A line for each, behind the words before it: "passed     32 x 3 epochs, accuracy 0.9550: job 12 would miss
 * its promise". */
void alternatives_text(const struct alternatives *a, const char *before, struct strbuf *out);
/* "32 x 3 epochs, accuracy 0.9550" */
void alternative_name(const struct alternative *a, struct strbuf *out);

#endif
