/* The metrics of one replay. Counts and shares are of the jobs with a limit (of all jobs where none has
 * one); times, accuracies and errors of prediction are of all jobs that have them. docs/REPLAY_OUTPUT.md has
 * the formulas. */
#include "sim/compare/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text/text.h"
#include "scheduler/core/outcome.h"

#define NS_PER_S 1e9

const struct metric_info metric_info[METRICS] = {
	[METRIC_JOBS] = { "jobs", "jobs with a limit", "jobs", 0 },
	[METRIC_PROMISED] = { "promised", "promised", "jobs", 0 },
	[METRIC_MET] = { "met", "limits met", "jobs", 1 },
	[METRIC_REJECTED] = { "rejected", "rejected", "jobs", 0 },
	[METRIC_FAILED] = { "failed", "failed", "jobs", -1 },
	[METRIC_ATTAINMENT] = { "attainment", "promises kept", "share", 1 },
	[METRIC_ATTAINMENT_ALL] = { "attainment_all", "limits met of all", "share", 1 },
	[METRIC_ATTAINMENT_ADMITTED] = { "attainment_admitted", "limits met of the jobs taken", "share", 1 },
	[METRIC_ATTAINMENT_ORACLE] = { "attainment_oracle", "limits met of those the oracle met", "share",
				       1 },
	[METRIC_ACCURACY] = { "accuracy", "accuracy of all that ended", "share", 1 },
	[METRIC_ACCURACY_MET] = { "accuracy_met", "accuracy of the met", "share", 1 },
	[METRIC_ACCURACY_ZERO] = { "accuracy_zero", "accuracy, missed and rejected as 0", "share", 1 },
	[METRIC_VALUE_ZERO] = { "value_zero", "accuracy x value, missed and rejected as 0", "share", 1,
				.rare = true },
	[METRIC_OF_OPTIMUM] = { "of_optimum", "of the optimum's accuracy", "share", 1, .rare = true },
	[METRIC_REGRET] = { "regret", "accuracy lost against the oracle", "", -1 },
	[METRIC_RESPONSE_MEAN] = { "response_mean_s", "mean response time", "s", -1 },
	[METRIC_RESPONSE_P95] = { "response_p95_s", "response time, 95th percentile", "s", -1 },
	[METRIC_RESPONSE_P99] = { "response_p99_s", "response time, 99th percentile", "s", -1 },
	[METRIC_WAIT_MEAN] = { "wait_mean_s", "mean wait", "s", -1 },
	[METRIC_UTILISATION] = { "utilisation", "cores at work", "share", 0 },
	[METRIC_FAIRNESS] = { "fairness", "fairness between tenants", "share", 1 },
	[METRIC_COVERAGE] = { "coverage", "run times within their bound", "share", 0 },
	[METRIC_MSE] = { "mse", "squared error of the run time", "s\xc2\xb2", -1 },
	[METRIC_MAPE] = { "mape", "relative error of the run time", "", -1 },
	[METRIC_ACCURACY_MAE] = { "accuracy_mae", "error of the accuracy", "", -1 },
	[METRIC_CHANCES] = { "by_chance", "taken by chance", "jobs", 0, .rare = true },
	[METRIC_CHANCES_MET] = { "by_chance_met", "taken by chance, and met", "jobs", 1, .rare = true },
};

int metric_parse(const char *name, enum metric *out, struct err *err)
{
	const char *known[METRICS + 1] = { NULL };
	char shown[64], hint[TEXT_HINT];

	for (int m = 0; m < METRICS; m++) {
		known[m] = metric_info[m].name;
		if (!strcmp(name, metric_info[m].name)) {
			*out = (enum metric)m;
			return 0;
		}
	}
	return err_fail(err, ERR_ARG, "there is no metric '%s'%s", text_printable(name, shown, sizeof shown),
			text_hint(name, known, hint));
}

static bool was_taken(const struct outcome *o)
{
	return o->state != OUTCOME_REJECTED && o->state != OUTCOME_REFUSED;
}

/* Ended with a result: what failed has no accuracy, and a run time that says nothing. */
static bool was_done(const struct outcome *o)
{
	return o->state == OUTCOME_MET || o->state == OUTCOME_MISSED || o->state == OUTCOME_DONE;
}

static double run_time_s(const struct outcome *o)
{
	return (double)(o->end_ns - o->start_ns) / NS_PER_S;
}

bool metrics_bounded(const struct outcome *o, bool *out_within)
{
	return was_done(o) && outcome_bounded(run_time_s(o), o->run_upper_s, out_within);
}

/* The share of 0 things is not known. */
static double ratio(double part, double whole)
{
	return whole > 0.0 ? part / whole : NAN;
}

struct mean {
	double sum, n;
};

static void mean_add(struct mean *m, double v)
{
	if (!isfinite(v))
		return;
	m->sum += v;
	m->n++;
}

static double mean_of(const struct mean *m)
{
	return ratio(m->sum, m->n);
}

/* ---- counts and shares ---- */

struct counts {
	double objectives; /* jobs that have one */
	double jobs, promised, met, taken, failed;
	double kept; /* met of the promised */
	double by_chance, by_chance_met;
	double oracle_met, both_met;
	double bounded, within;
};

static bool has_objective(const struct trace *t, size_t i)
{
	return !isnan(t->job[i].slo_s);
}

static void count_job(struct counts *c, const struct outcome *o, const struct outcome *oracle)
{
	bool met = o->state == OUTCOME_MET;

	c->jobs++;
	c->promised += o->promised;
	c->met += met;
	c->kept += met && o->promised;
	c->taken += was_taken(o);
	c->failed += o->state == OUTCOME_FAILED;
	c->by_chance += o->by_chance;
	c->by_chance_met += met && o->by_chance;
	if (oracle && oracle->state == OUTCOME_MET) {
		c->oracle_met++;
		c->both_met += met;
	}
}

static struct counts count_all(const struct trace *t, const struct replay_result *r,
			       const struct outcome *oracle)
{
	struct counts c = { 0 };

	for (size_t i = 0; i < r->n; i++)
		c.objectives += has_objective(t, i);
	for (size_t i = 0; i < r->n; i++) {
		bool within;

		if (c.objectives == 0.0 || has_objective(t, i))
			count_job(&c, &r->outcome[i], oracle ? &oracle[i] : NULL);
		if (metrics_bounded(&r->outcome[i], &within)) {
			c.bounded++;
			c.within += within;
		}
	}
	return c;
}

static void put_counts(const struct counts *c, bool oracle, double *out)
{
	bool objectives = c->objectives > 0.0;

	out[METRIC_JOBS] = c->jobs;
	out[METRIC_PROMISED] = c->promised;
	out[METRIC_MET] = c->met;
	out[METRIC_REJECTED] = c->jobs - c->taken;
	out[METRIC_FAILED] = c->failed;
	out[METRIC_COVERAGE] = ratio(c->within, c->bounded);
	if (!objectives)
		return;
	out[METRIC_ATTAINMENT] = c->promised > 0.0 ? c->kept / c->promised : ratio(c->met, c->taken);
	out[METRIC_ATTAINMENT_ALL] = c->met / c->jobs;
	out[METRIC_ATTAINMENT_ADMITTED] = ratio(c->met, c->taken);
	if (oracle)
		out[METRIC_ATTAINMENT_ORACLE] = ratio(c->both_met, c->oracle_met);
}

static void fill_nan(double *out)
{
	for (size_t m = 0; m < METRICS; m++)
		out[m] = NAN;
}

void metrics_trials(const struct trace *t, const struct replay_result *r, const struct outcome *oracle,
		    double out[METRICS])
{
	struct counts c = count_all(t, r, oracle);

	fill_nan(out);
	out[METRIC_COVERAGE] = c.bounded;
	if (c.objectives == 0.0)
		return;
	out[METRIC_ATTAINMENT] = c.promised > 0.0 ? c.promised : c.taken;
	out[METRIC_ATTAINMENT_ALL] = c.jobs;
	out[METRIC_ATTAINMENT_ADMITTED] = c.taken;
	if (oracle)
		out[METRIC_ATTAINMENT_ORACLE] = c.oracle_met;
}

/* ---- accuracy ---- */

static void mark_unknown(const struct trace *t, const struct outcome *o, size_t n, bool *unknown)
{
	for (size_t i = 0; i < n; i++)
		if (was_done(&o[i]) && !isfinite(o[i].accuracy))
			unknown[t->job[i].kind] = true;
}

static bool has_values(const struct trace *t)
{
	for (size_t i = 0; i < t->n_jobs; i++)
		if (trace_value(&t->job[i]) != 1.0)
			return true;
	return false;
}

/* Over the jobs with a limit, whatever was not met counted as 0. Jobs of a kind whose accuracy is not
 * always known are left out, met or not: else only their misses would count. NaN: no limits, or a world
 * without accuracies. */
static double accuracy_or_zero(const struct trace *t, const struct outcome *o, const bool *unknown, size_t n,
			       bool by_value)
{
	double sum = 0.0, jobs = 0.0;
	bool done = false, known = false;

	for (size_t i = 0; i < n; i++) {
		bool met = o[i].state == OUTCOME_MET;
		double weight;

		done = done || was_done(&o[i]);
		known = known || (was_done(&o[i]) && isfinite(o[i].accuracy));
		if (!has_objective(t, i) || unknown[t->job[i].kind])
			continue;
		weight = by_value ? trace_value(&t->job[i]) : 1.0;
		jobs += weight;
		sum += met ? weight * o[i].accuracy : 0.0;
	}
	return done && !known ? NAN : ratio(sum, jobs);
}

static int put_accuracies(const struct trace *t, const struct replay_result *r, const struct outcome *oracle,
			  double *out, struct err *err)
{
	bool *unknown = mem_calloc(t->n_kinds ? t->n_kinds : 1, sizeof *unknown);
	struct mean all = { 0 }, met = { 0 }, error = { 0 };

	if (!unknown)
		return err_nomem(err, "%zu kinds of jobs", t->n_kinds);
	mark_unknown(t, r->outcome, r->n, unknown);
	if (oracle)
		mark_unknown(t, oracle, r->n, unknown);
	for (size_t i = 0; i < r->n; i++) {
		const struct outcome *o = &r->outcome[i];

		if (!was_done(o))
			continue;
		mean_add(&all, o->accuracy);
		if (o->state == OUTCOME_MET)
			mean_add(&met, o->accuracy);
		mean_add(&error, fabs(o->predicted_accuracy - o->accuracy));
	}
	out[METRIC_ACCURACY] = mean_of(&all);
	out[METRIC_ACCURACY_MET] = mean_of(&met);
	out[METRIC_ACCURACY_MAE] = mean_of(&error);
	out[METRIC_ACCURACY_ZERO] = accuracy_or_zero(t, r->outcome, unknown, r->n, false);
	if (has_values(t))
		out[METRIC_VALUE_ZERO] = accuracy_or_zero(t, r->outcome, unknown, r->n, true);
	if (oracle)
		out[METRIC_REGRET] = accuracy_or_zero(t, oracle, unknown, r->n, false) -
				     out[METRIC_ACCURACY_ZERO];
	free(unknown);
	return 0;
}

/* ---- times ---- */

static int put_responses(const struct trace *t, const struct replay_result *r, double *out, struct err *err)
{
	double *response = mem_array(r->n ? r->n : 1, sizeof *response);
	struct mean wait = { 0 };
	size_t n = 0;

	if (!response)
		return err_nomem(err, "the response times of %zu jobs", r->n);
	for (size_t i = 0; i < r->n; i++) {
		const struct outcome *o = &r->outcome[i];

		if (!was_taken(o) || o->state == OUTCOME_DROPPED)
			continue;
		response[n++] = (double)(o->end_ns - t->job[i].arrival_ns) / NS_PER_S;
		mean_add(&wait, (double)(o->start_ns - t->job[i].arrival_ns) / NS_PER_S);
	}
	out[METRIC_WAIT_MEAN] = mean_of(&wait);
	out[METRIC_RESPONSE_MEAN] = stats_mean(response, n);
	out[METRIC_RESPONSE_P95] = stats_percentile(response, n, 95.0);
	out[METRIC_RESPONSE_P99] = stats_percentile(response, n, 99.0);
	free(response);
	return 0;
}

static void put_errors(const struct replay_result *r, double *out)
{
	struct mean square = { 0 }, relative = { 0 };

	for (size_t i = 0; i < r->n; i++) {
		const struct outcome *o = &r->outcome[i];
		double run_s = run_time_s(o), miss = o->run_s - run_s;

		if (!was_done(o) || isnan(miss))
			continue;
		mean_add(&square, miss * miss);
		mean_add(&relative, outcome_error(o->run_s, run_s));
	}
	out[METRIC_MSE] = mean_of(&square);
	out[METRIC_MAPE] = mean_of(&relative);
}

/* ---- tenants ---- */

/* Jain, Chiu, Hawe, DEC-TR-301 (1984): (sum x)^2 / (n sum x^2), here of x = met / jobs of a tenant. */
static int put_fairness(const struct trace *t, const struct replay_result *r, double *out, struct err *err)
{
	double *met = mem_calloc(t->n_tenants, 2 * sizeof *met), *jobs, sum = 0.0, squares = 0.0, n = 0.0;

	if (!met)
		return err_nomem(err, "the shares of %zu tenants", t->n_tenants);
	jobs = met + t->n_tenants;
	for (size_t i = 0; i < r->n; i++) {
		if (!has_objective(t, i))
			continue;
		jobs[t->job[i].tenant]++;
		met[t->job[i].tenant] += r->outcome[i].state == OUTCOME_MET;
	}
	for (size_t i = 0; i < t->n_tenants; i++) {
		double x = jobs[i] > 0.0 ? met[i] / jobs[i] : 0.0;

		n += jobs[i] > 0.0;
		sum += x;
		squares += x * x;
	}
	free(met);
	if (n > 0.0) /* nothing for anybody is fair, too */
		out[METRIC_FAIRNESS] = squares > 0.0 ? fmin(sum * sum / (n * squares), 1.0) : 1.0;
	return 0;
}

int metrics_of(const struct trace *t, const struct cluster *c, const struct replay_result *r,
	       const struct outcome *oracle, double out[METRICS], struct err *err)
{
	double value[METRICS];
	struct counts counts;
	int status;

	if (r->n != t->n_jobs || !r->outcome)
		return err_fail(err, ERR_ARG, "%zu outcomes of %zu jobs", r->outcome ? r->n : 0, t->n_jobs);
	fill_nan(value);
	counts = count_all(t, r, oracle);
	if (r->is_bound) { /* a bound is the value of no schedule: there is nothing else to tell */
		fill_nan(out);
		out[METRIC_JOBS] = counts.jobs;
		out[METRIC_ACCURACY_ZERO] = r->bound;
		return 0;
	}
	put_counts(&counts, oracle != NULL, value);
	if (r->chances) {
		value[METRIC_CHANCES] = counts.by_chance;
		value[METRIC_CHANCES_MET] = counts.by_chance_met;
	}
	put_errors(r, value);
	value[METRIC_UTILISATION] = ratio(r->busy_s, c->cores * r->end_s);
	status = put_accuracies(t, r, oracle, value, err);
	if (!status)
		status = put_fairness(t, r, value, err);
	if (!status)
		status = put_responses(t, r, value, err);
	for (size_t m = 0; !status && m < METRICS; m++)
		out[m] = value[m];
	return status;
}
