/* Why a job was rejected. See life.h. */
#include <math.h>
#include <stdio.h>

#include "common/text/text.h"
#include "scheduler/jobs/life.h"

unsigned life_rejected_by(const struct decision *d)
{
	static const unsigned order[] = { REASON_BEYOND_MODEL,   REASON_TOO_WIDE, REASON_DEVICES,
					  REASON_MEMORY,         REASON_UNSTABLE, REASON_NO_BOUND,
					  REASON_BREAKS_PROMISE, REASON_PRICE };
	unsigned common = ~0u;

	if (!isnan(d->smallest_slo_s))
		return REASON_SLO_EXCEEDED;
	if (d->beyond)
		return REASON_BEYOND_MODEL;
	for (size_t i = 0; i < d->n_candidates; i++)
		common &= d->candidate[i].reasons;
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		if (common & order[i])
			return order[i];
	}
	return 0;
}

void life_why_rejected(const struct job_record *row, const struct decision *d, char *text, size_t size)
{
	unsigned by = life_rejected_by(d);
	char limit[32], least[32];
	int n = 0;

	if (by == REASON_SLO_EXCEEDED)
		n = snprintf(text, size,
			     "no batch meets %s at %g %%; the shortest limit that could be promised: %s",
			     text_seconds(row->slo_s, limit), 100.0 * row->confidence,
			     text_seconds_up(d->smallest_slo_s, least));
	else if (by == REASON_BEYOND_MODEL && d->beyond)
		snprintf(text, size,
			 "%s %.6g is too far outside the training table for a promise; the model goes "
			 "from %.6g to %.6g",
			 d->beyond, d->beyond_value, d->beyond_least, d->beyond_most);
	else if (by == REASON_BEYOND_MODEL)
		snprintf(text, size, "every batch is too far outside the training table for a promise");
	else if (by == REASON_TOO_WIDE)
		snprintf(text, size, "it wants %u cpus, more than are handed out", row->cpus);
	else if (by == REASON_DEVICES)
		snprintf(text, size, "every batch wants more gpus than it may have, or more of their memory");
	else if (by == REASON_MEMORY)
		snprintf(text, size, "every batch needs more memory than there is");
	else if (by == REASON_UNSTABLE)
		snprintf(text, size,
			 "the model predicts no time for any batch: its queue would grow for ever");
	else if (by == REASON_NO_BOUND)
		snprintf(text, size, "there are too few observations for a promise at confidence %g",
			 row->confidence);
	else if (by == REASON_BREAKS_PROMISE)
		snprintf(text, size, "every batch would break a promise already made (job %llu)",
			 (unsigned long long)d->candidate[0].breaks);
	else if (by == REASON_PRICE)
		snprintf(text, size,
			 "every batch would cost other jobs more than it brings, as busy as the machine is "
			 "now");
	else
		snprintf(text, size, "no batch can be promised at any limit");
	if (n > 0 && (size_t)n < size && d->other_load > 0.0 && d->other_factor >= 1.05)
		snprintf(text + n, size - (size_t)n, " (other programs make it %.1f times slower)",
			 d->other_factor);
}
