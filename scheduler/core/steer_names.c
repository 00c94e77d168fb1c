/* The names of reasons and rules of steering, and the rate that goes with a batch: what a client needs of it.
 * See steer.h. */
#include "scheduler/core/steer.h"

#include <math.h>
#include <stddef.h>

const char *const steer_rule_name[] = { "none", "linear", "sqrt", NULL };

double steer_lr(const struct steer_rate *r, double batch)
{
	double times = r->batch > 0.0 && batch > 0.0 ? batch / r->batch : 1.0;

	if (!(r->lr > 0.0))
		return NAN;
	switch (r->rule) {
	case STEER_RATE_LINEAR: return r->lr * times;
	case STEER_RATE_SQRT: return r->lr * sqrt(times);
	case STEER_RATE_NONE: break;
	}
	return r->lr;
}

static const struct {
	const char *name, *text;
} reason_all[] = {
	[STEER_KEEPS] = { "keeps", "keeps its batch" },
	[STEER_FASTER] = { "faster", "faster to keep the promise" },
	[STEER_ACCURATE] = { "accurate", "more accurate, there is time" },
	[STEER_GIVES_BACK] = { "gives_back", "gives time back to other jobs" },
	[STEER_LATE] = { "late", "as soon as can be, it is late" },
};

const char *steer_reason_name(enum steer_reason r)
{
	return reason_all[r].name;
}

const char *steer_reason_text(enum steer_reason r)
{
	return reason_all[r].text;
}
