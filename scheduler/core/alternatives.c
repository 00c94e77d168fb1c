/* Finds what an answer says beside the choice. See alternatives.h; alternatives_text.c has the words, so that
 * a client need not link the models. */
#include "scheduler/core/alternatives.h"

#include <math.h>
#include <stdio.h>

#include "scheduler/core/decide_internal.h"

const struct alternative alternative_none = { .batch = NAN, .epochs = NAN, .accuracy = NAN, .needs_s = NAN };

static double needs_s(const struct decision *d, const struct candidate *c)
{
	return d->by_bounds ? c->wait_upper_s + c->guard_s : c->wait_s + c->time_s;
}

/* Why it was not taken, though it is in time: the one reason that a user can do something about. */
static unsigned passed_for(const struct candidate *c)
{
	static const unsigned order[] = { REASON_BREAKS_PROMISE, REASON_TOO_WIDE,     REASON_DEVICES,
					  REASON_MEMORY,         REASON_BEYOND_MODEL, REASON_NO_BOUND,
					  REASON_PRICE,          REASON_NOT_PICKED };

	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (c->reasons & order[i])
			return order[i];
	return 0;
}

static struct alternative of(const struct decision *d, const struct candidate *c, double given)
{
	struct alternative a = { .batch = c->decision,
				 .epochs = isnan(c->epochs) ? given : c->epochs,
				 .accuracy = c->accuracy,
				 .needs_s = needs_s(d, c),
				 .cost = c->cost };

	return a;
}

void alternatives_find(const struct decision *d, double given, struct alternatives *out)
{
	const struct candidate *chosen = d->chosen >= 0 ? &d->candidate[d->chosen] : NULL, *best = chosen;
	const struct candidate *later = NULL;
	double noise = decide_accuracy_noise(d->model);

	*out = (struct alternatives){ alternative_none, alternative_none, alternative_none };
	if (!chosen || !chosen->feasible || !isfinite(chosen->accuracy))
		return;
	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if (c->accuracy > fmax(best->accuracy, chosen->accuracy + noise) && passed_for(c) &&
		    !(c->reasons & REASON_SLO_EXCEEDED))
			best = c;
	}
	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if (c->accuracy > best->accuracy + noise && c->reasons & REASON_SLO_EXCEEDED &&
		    !(c->reasons & REASONS_HARD) && !isnan(needs_s(d, c)) &&
		    (!later || needs_s(d, c) < needs_s(d, later)))
			later = c;
	}
	if (best != chosen) {
		out->passed = of(d, best, given);
		snprintf(out->passed.why, sizeof out->passed.why, "%s",
			 decide_reason_text((enum decide_reason)passed_for(best)));
		if (best->breaks)
			snprintf(out->passed.job, sizeof out->passed.job, "%llu",
				 (unsigned long long)best->breaks);
	}
	if (later)
		out->later = of(d, later, given);
}

struct alternative alternative_shorter(const struct decision *d)
{
	return d->chosen >= 0 && d->candidate[d->chosen].feasible ? of(d, &d->candidate[d->chosen], NAN)
								  : alternative_none;
}
