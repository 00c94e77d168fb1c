/* Steering: what a running job is told after each of its epochs. See steer.h. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

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

const char *steer_reason_name(enum steer_reason r)
{
	switch (r) {
	case STEER_KEEPS: return "keeps";
	case STEER_FASTER: return "faster";
	case STEER_ACCURATE: return "accurate";
	case STEER_GIVES_BACK: return "gives_back";
	case STEER_LATE: return "late";
	}
	return "unknown";
}

const char *steer_reason_text(enum steer_reason r)
{
	switch (r) {
	case STEER_KEEPS: return "keeps its batch";
	case STEER_FASTER: return "faster to keep the promise";
	case STEER_ACCURATE: return "more accurate, there is time";
	case STEER_GIVES_BACK: return "gives time back to other jobs";
	case STEER_LATE: return "as soon as can be, it is late";
	}
	return "unknown";
}

int sched_steer(struct sched *s, int64_t now_ns, uint64_t id, const struct steer_report *r,
		struct steer_answer *out, struct err *err)
{
	struct live *j;
	struct sched_estimate e;
	int rc = live_find_running(s, id, &j, err);

	if (!rc)
		rc = sched_estimate(s, now_ns, id, &e, err);
	if (rc)
		return rc;
	*out = (struct steer_answer){ .batch = j->taken.decision,
				      .lr = steer_lr(&j->r.rate, j->taken.decision),
				      .last = r->epochs,
				      .reason = STEER_KEEPS,
				      .end_s = e.end_s,
				      .end_upper_s = e.end_high_s,
				      .accuracy = j->taken.accuracy };
	return 0;
}

const char *sched_steer_kept(const struct sched *s, uint64_t id, char *out)
{
	(void)s;
	(void)id;
	*out = '\0';
	return out;
}

int steer_check(const char *kept, struct err *err)
{
	if (kept && *kept)
		return err_fail(err, ERR_FORMAT, "'%.40s' does not say how a job was steered", kept);
	return 0;
}
