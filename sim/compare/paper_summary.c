/* Counts what became of the jobs of the paper's experiment, with intervals. Called by paper_experiment.c. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/outcome.h"
#include "sim/compare/paper_experiment.h"

#define BISECTIONS 60 /* halves 1 down to less than the distance between doubles */

/* P(X <= k) of n trials at this rate, in logarithms: 0.5^1000 is too small for a double. */
static double binomial_at_most(size_t k, size_t n, double rate)
{
	double sum = 0.0;

	for (size_t i = 0; i <= k; i++)
		sum += exp(lgamma((double)n + 1.0) - lgamma((double)i + 1.0) - lgamma((double)(n - i) + 1.0) +
			   (double)i * log(rate) + (double)(n - i) * log1p(-rate));
	return sum;
}

double paper_rate_bound(size_t misses, size_t n, double level)
{
	double low = 0.0, high = 1.0;

	if (!n || misses > n || !(level > 0.0 && level < 1.0))
		return NAN;
	if (misses == n)
		return 1.0;
	for (int i = 0; i < BISECTIONS; i++) {
		double rate = (low + high) / 2.0;

		*(binomial_at_most(misses, n, rate) >= 1.0 - level ? &low : &high) = rate;
	}
	return high;
}

/* With a miss as 0. A job counts for all policies or for none: where the table has no accuracy, NaN, also for
 * a miss. Otherwise only the misses of such jobs would count. */
static double accuracy_zero(const struct paper_set *set, int policy, size_t job)
{
	const struct paper_outcome *o = &set->outcome[(size_t)policy * set->n + job];

	for (size_t k = 0; k < PAPER_POLICIES; k++)
		if (isnan(set->outcome[k * set->n + job].accuracy))
			return NAN;
	return o->met ? o->accuracy : 0.0;
}

static void count(const struct paper_outcome *o, const struct paper_outcome *courier,
		  const struct paper_outcome *oracle, size_t n, struct paper_summary *s)
{
	s->jobs = n;
	for (size_t i = 0; i < n; i++) {
		s->promised += o[i].promised;
		s->kept += o[i].promised && o[i].met;
		s->met += o[i].met;
		s->oracle_met += oracle[i].met;
		s->of_oracle += oracle[i].met && o[i].met;
		s->wins += o[i].met && !courier[i].met;
		s->losses += !o[i].met && courier[i].met;
	}
}

struct mean {
	double sum;
	size_t n;
};

static void mean_add(struct mean *m, double v)
{
	if (isnan(v))
		return;
	m->sum += v;
	m->n++;
}

static double mean_of(const struct mean *m)
{
	return m->n ? m->sum / (double)m->n : NAN;
}

static void errors(const struct paper_outcome *o, size_t n, struct paper_summary *s)
{
	struct mean mse = { 0 }, mape = { 0 }, mae = { 0 }, accuracy_mse = { 0 }, accuracy_mae = { 0 },
		    met = { 0 };

	for (size_t i = 0; i < n; i++) {
		double off_s = o[i].predicted_s - o[i].time_s, off = o[i].predicted_accuracy - o[i].accuracy;

		mean_add(&mse, off_s * off_s);
		mean_add(&mape, outcome_error(o[i].predicted_s, o[i].time_s));
		mean_add(&mae, fabs(off_s));
		mean_add(&accuracy_mse, off * off);
		mean_add(&accuracy_mae, fabs(off));
		mean_add(&met, o[i].met ? o[i].accuracy : NAN);
	}
	s->mse_s2 = mean_of(&mse);
	s->mape = mean_of(&mape);
	s->mae_s = mean_of(&mae);
	s->accuracy_mse = mean_of(&accuracy_mse);
	s->accuracy_mae = mean_of(&accuracy_mae);
	s->accuracy_met = mean_of(&met);
}

/* Of few jobs the interval of a mean reaches beyond what an accuracy can be. */
static struct interval within_0_and_1(struct interval v)
{
	if (isnan(v.low) || isnan(v.high))
		return v;
	return (struct interval){ v.mean, fmax(v.low, 0.0), fmin(v.high, 1.0) };
}

/* For the number of tests against courier: two of every other policy. */
static void correct_tests(struct paper_set *set)
{
	struct paired_result *test[2 * PAPER_POLICIES];
	size_t n = 0;

	for (int k = 0; k < PAPER_POLICIES; k++) {
		struct paper_summary *s = &set->summary[k];

		if (k != PAPER_COURIER && !isnan(s->met_versus.p))
			test[n++] = &s->met_versus;
		if (k != PAPER_COURIER && !isnan(s->accuracy_versus.p))
			test[n++] = &s->accuracy_versus;
	}
	metrics_holm(test, n);
}

int paper_summarise(const struct paper_result *r, struct paper_set *set, struct err *err)
{
	const struct paper_outcome *courier = set->outcome + PAPER_COURIER * set->n;
	const struct paper_outcome *oracle = set->outcome + PAPER_ORACLE * set->n;
	double *v = mem_array(4 * set->n, sizeof *v);
	double *met_courier = v, *zero_courier = v + set->n, *met = v + 2 * set->n, *zero = v + 3 * set->n;

	if (!v)
		return err_nomem(err, "the summary of %zu jobs", set->n);
	for (size_t i = 0; i < set->n; i++) {
		met_courier[i] = courier[i].met;
		zero_courier[i] = accuracy_zero(set, PAPER_COURIER, i);
	}
	for (int k = 0; k < PAPER_POLICIES; k++) {
		const struct paper_outcome *o = set->outcome + (size_t)k * set->n;
		struct paper_summary *s = &set->summary[k];

		*s = (struct paper_summary){ 0 };
		count(o, courier, oracle, set->n, s);
		errors(o, set->n, s);
		for (size_t i = 0; i < set->n; i++) {
			met[i] = o[i].met;
			zero[i] = accuracy_zero(set, k, i);
			s->with_accuracy += !isnan(zero[i]);
		}
		s->met_share = metrics_wilson((double)s->met, (double)s->jobs, r->level);
		s->kept_share = metrics_wilson((double)s->kept, (double)s->promised, r->level);
		s->oracle_share = metrics_wilson((double)s->of_oracle, (double)s->oracle_met, r->level);
		s->miss_bound = paper_rate_bound(s->promised - s->kept, s->promised, r->level);
		s->accuracy_zero = within_0_and_1(metrics_interval(zero, set->n, r->level));
		s->met_versus = metrics_paired(met_courier, met, set->n, r->level);
		s->accuracy_versus = metrics_paired(zero_courier, zero, set->n, r->level);
	}
	correct_tests(set);
	for (int k = 0; k < PAPER_POLICIES; k++)
		set->summary[k].regret = set->summary[PAPER_ORACLE].accuracy_zero.mean -
					 set->summary[k].accuracy_zero.mean;
	free(v);
	return 0;
}

int paper_summarise_fixed(const struct paper_result *r, struct paper_set *set,
			  const struct paper_played *played, const double *batch, size_t n_batches,
			  struct err *err)
{
	double *zero = mem_array(set->n, sizeof *zero);

	set->fixed = mem_calloc(n_batches, sizeof *set->fixed);
	if (!zero || !set->fixed) {
		free(zero);
		return err_nomem(err, "the summary of %zu batches", n_batches);
	}
	set->n_fixed = n_batches;
	for (size_t b = 0; b < n_batches; b++) {
		struct paper_fixed *f = &set->fixed[b];

		f->batch = batch[b];
		for (size_t i = 0; i < set->n; i++) {
			const struct paper_played *p = &played[i * n_batches + b];
			bool met = outcome_met(true, p->time_s, set->job[i].slo_s);

			f->met += met;
			zero[i] = isnan(accuracy_zero(set, PAPER_COURIER, i)) ? NAN : met ? p->accuracy : 0.0;
		}
		f->met_share = metrics_wilson((double)f->met, (double)set->n, r->level);
		f->accuracy_zero = within_0_and_1(metrics_interval(zero, set->n, r->level));
	}
	free(zero);
	return 0;
}
