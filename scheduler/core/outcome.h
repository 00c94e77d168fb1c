/* What counts as a kept limit, a bound that held, and the error of a prediction. The daemon (`stats`,
 * learning), the client (`list --outcomes`), the simulator (`compare`) and the report all use these
 * definitions, so that their figures mean the same. */
#ifndef SCHEDULER_CORE_OUTCOME_H
#define SCHEDULER_CORE_OUTCOME_H

#include <math.h>
#include <stdbool.h>

/* Met: the job left a result, and the response time (from arrival to end, waiting included) is at most the
 * limit. A job that failed has missed its limit: the answer was not there in time. */
static inline bool outcome_met(bool has_result, double response_s, double slo_s)
{
	return has_result && response_s <= slo_s;
}

/* Coverage counts jobs with a result whose run time (from start to end) is within the bound of the run time
 * that was given at their start. Returns false for a job that has no bound, and does not count. */
static inline bool outcome_bounded(double run_s, double run_upper_s, bool *out_within)
{
	if (!isfinite(run_upper_s) || !isfinite(run_s))
		return false;
	*out_within = run_s <= run_upper_s;
	return true;
}

/* One term of the mean absolute percentage error, as a fraction: |predicted - actual| / actual, as train and
 * evaluate have it. NaN where the actual time is not positive or nothing was predicted. */
static inline double outcome_error(double predicted_s, double actual_s)
{
	return actual_s > 0.0 ? fabs(predicted_s - actual_s) / actual_s : NAN;
}

#endif
