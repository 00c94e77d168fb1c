/* From outcomes to numbers. One table of metrics, read by the printed comparison, --json and the report:
 * each with its name, unit and whether more is better. A metric of a replay is one number; over replications
 * it has a mean and a confidence interval (Student's t over replications; Wilson's for a share in a single
 * replay). */
#ifndef SIM_COMPARE_METRICS_H
#define SIM_COMPARE_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "sim/replay/replay.h"

enum metric {
	METRIC_JOBS,             /* with a limit; all jobs if none has one */
	METRIC_PROMISED,         /* jobs promised */
	METRIC_MET,              /* jobs in time */
	METRIC_REJECTED,         /* rejected or refused */
	METRIC_FAILED,
	/* kept of the promised; for a policy that promises nothing, of those taken */
	METRIC_ATTAINMENT,
	METRIC_ATTAINMENT_ALL,   /* met / all with a limit */
	METRIC_ATTAINMENT_ADMITTED, /* met / taken */
	METRIC_ATTAINMENT_ORACLE,   /* met / those the oracle met, of these; NaN without the oracle */
	METRIC_ACCURACY,         /* mean of all that ended with a result */
	METRIC_ACCURACY_MET,     /* of the met */
	METRIC_ACCURACY_ZERO,    /* over all jobs with a limit, missed and rejected counted as 0 */
	METRIC_VALUE_ZERO,       /* the same with each job counted by its value; NaN where all are worth
	                            1 */
	METRIC_OF_OPTIMUM,       /* ACCURACY_ZERO over the optimum's or its bound; NaN without it */
	METRIC_REGRET,           /* the oracle's minus ours, of ACCURACY_ZERO; NaN without the oracle */
	METRIC_RESPONSE_MEAN, METRIC_RESPONSE_P95, METRIC_RESPONSE_P99, /* s, of those taken */
	METRIC_WAIT_MEAN,        /* s */
	METRIC_UTILISATION,      /* core-seconds worked / (cores x time to the last event) */
	METRIC_FAIRNESS,         /* Jain's index over tenants of (met / jobs); 1 with one tenant */
	METRIC_COVERAGE,         /* run times within their bound */
	METRIC_MSE, METRIC_MAPE, /* of the run time, predicted at the start */
	METRIC_ACCURACY_MAE,
	METRIC_CHANCES, METRIC_CHANCES_MET, /* jobs taken by chance, given up or not, and those of them
	                                       in time; NaN for a policy that takes none */
	METRICS,
};
struct metric_info {
	const char *name;   /* JSON key: "attainment" */
	const char *title;  /* "SLOs kept of those promised" */
	const char *unit;   /* "share", "s", "jobs", "" */
	int better;         /* 1 more, -1 less, 0 neither */
	bool rare;          /* most policies do not have it: left out where it is not known */
};
extern const struct metric_info metric_info[METRICS];
int metric_parse(const char *name, enum metric *out, struct err *err); /* ERR_ARG names the nearest one */

/* oracle: outcomes of the oracle on the same trace and random numbers; NULL: not run. NaN where nothing can
 * be said; METRIC_OF_OPTIMUM is left to the comparison. */
int metrics_of(const struct trace *t, const struct cluster *c, const struct replay_result *r,
               const struct outcome *oracle, double out[METRICS], struct err *err);

/* Of how many jobs a share is one, for metrics_wilson(): of attainments and coverage; NaN for all others. */
void metrics_trials(const struct trace *t, const struct replay_result *r, const struct outcome *oracle,
                    double out[METRICS]);
/* Whether a run time and a bound of it are there to be compared, and whether it held. */
bool metrics_bounded(const struct outcome *o, bool *out_within);

struct interval { double mean, low, high; };
/* Over n replications (NaN ones left out), two-sided; n < 2: low and high are NaN. Allocates nothing. */
struct interval metrics_interval(const double *v, size_t n, double confidence);
struct interval metrics_wilson(double met, double n, double confidence); /* n = 0: all NaN */

struct paired_result {
	double difference, low, high, p;
	size_t n;                /* pairs */
	double p_holm;           /* p, corrected for the number of tests; NaN: not among them */
};
/* b - a, pair by pair; p of Student's paired t, two-sided; NaN below 2 pairs. All differences equal: p is 0
 * or 1. */
struct paired_result metrics_paired(const double *a, const double *b, size_t n, double confidence);

/* The measures that are tested against the baseline. All others have a p, but no verdict. */
#define METRICS_TESTED 6
extern const enum metric metric_tested[METRICS_TESTED];
#define METRICS_MAX_RIVALS 256
/* Sets p_holm of these tests by Holm's step-down; sorts them. None of their p is NaN. */
void metrics_holm(struct paired_result **test, size_t n);
/* Sets p_holm of every test of a comparison, over all policies and tested measures together.
 * versus[i] are the METRICS of a policy; NULL: the baseline. At most METRICS_MAX_RIVALS policies. Returns the
 * number of tests. */
size_t metrics_correct(struct paired_result *const *versus, size_t n_policies);

/* The verdict of a paired test at a confidence level, by p_holm. */
enum verdict {
	VERDICT_WORSE, VERDICT_UNCLEAR, VERDICT_BETTER,
	VERDICT_SAME,            /* no difference in any replication */
	VERDICT_UNKNOWN,         /* not tested */
};
enum verdict metrics_verdict(const struct paired_result *v, enum metric m, double level);

#endif
