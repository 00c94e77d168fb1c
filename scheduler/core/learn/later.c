/* See later.h. */
#include "scheduler/core/learn/later.h"

#include <math.h>

#include "predictors/belief.h"

#define STEP 0.05
#define MOST 1.0 /* of a spread, and of one score, however long a job took */
#define UNKNOWN 0.2 /* spread, before any job has told */
#define BORROWED 5 /* jobs that what all have counts for */
#define WAITS_REACH 8.0

static const struct adapt_who everybody = { .type = -1 };

static struct ledger_entry of_all(const struct ledger *l)
{
	struct ledger_entry e = ledger_of(l, everybody, 0);

	e.n = e.n < BORROWED ? e.n : BORROWED;
	return e;
}

/* Of a user and type, or of all while they have none. */
static struct ledger_entry entry_of(const struct ledger *l, struct adapt_who who)
{
	struct ledger_entry e = ledger_of(l, who, 0);

	return e.n ? e : of_all(l);
}

static void learn(struct ledger_entry *e, double confidence, double score, double upper_s, double actual_s)
{
	ledger_add(e, fmin(fmax(score, -MOST), MOST));
	if (!(upper_s > 0.0 && confidence > 0.0 && confidence < 1.0))
		return;
	e->spread += STEP * (actual_s <= upper_s ? confidence - 1.0 : confidence);
	e->spread = fmin(fmax(e->spread, 0.0), MOST);
}

void later_observe(struct ledger *l, struct adapt_who who, double confidence, double foreseen_s,
		   double upper_s, double actual_s)
{
	struct ledger_entry fresh = of_all(l);
	double score = log(actual_s) - log(foreseen_s); /* the ratio itself may not fit */

	learn(ledger_claim(l, who, 0, fresh), confidence, score, upper_s, actual_s);
	learn(ledger_claim(l, everybody, 0, fresh), confidence, score, upper_s, actual_s);
}

struct later_effect later_of(const struct ledger *l, struct adapt_who who)
{
	struct ledger_entry e = entry_of(l, who);

	return (struct later_effect){
		.shift = fmax(e.mean, 0.0),
		.spread = fmax(e.spread, UNKNOWN * (1.0 - (double)e.n / LEDGER_RECENT)),
	};
}

double waits_room_s(double end_s, double limit_s)
{
	return fmin(limit_s - end_s, WAITS_REACH * end_s);
}

void waits_observe(struct ledger *l, struct adapt_who who, double confidence, double share, bool held)
{
	const struct adapt_who of[] = { who, everybody };
	struct ledger_entry fresh = of_all(l);

	for (int i = 0; i < 2; i++) {
		struct ledger_entry *e = ledger_claim(l, of[i], 0, fresh);

		ledger_add(e, fmin(fmax(share, 0.0), 1.0));
		e->spread = fmin(fmax(e->spread + STEP * (held ? confidence - 1.0 : confidence), 0.0), 1.0);
	}
}

double waits_share(const struct ledger *l, struct adapt_who who, double confidence)
{
	struct ledger_entry e = entry_of(l, who);

	return fmin(fmax(e.mean + belief_spreads(confidence) * sqrt(e.variance) + e.spread, 0.0), 1.0);
}
