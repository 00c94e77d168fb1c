/* What the phases of a run tell a calibration: shares of its time at the disk, on the cpu, waiting, and, by
 * what is left, starting. They are soft evidence. An error of a share counts as one of the logarithm of a
 * time; where the times are then explained worse than without, shares count less, those that contradict the
 * times first, and in the end not at all. What cannot be true is not looked at. */
#include <math.h>

#include "queueing/calibrate_internal.h"

#define MOST_TOLD 1.02 /* of the time of a run: clocks differ a little */
/* What phases may cost the times, of twice a log likelihood: the truth itself is farther from the times than
 * their own fit, by about one a parameter of that. */
#define MAX_LOSS 4.0
#define WEAKER 4.0 /* from one try to the next */
#define LEAST_STRENGTH 0.01
#define LEAST_ERROR 0.01 /* of times and of shares: agreement beyond it is luck */

/* Shares of the time of a run; false: it did not tell, or not the truth. */
static bool tell(const struct calibrate_job *j, double time_s, double *out)
{
	const double *s = j->seen.phase_s;
	double told = 0.0;

	for (size_t k = 0; k < N_PHASES; k++) {
		if (!(s[k] >= 0.0))
			return false;
		told += s[k];
	}
	if (!(s[PHASE_COMPUTE] > 0.0 && told <= MOST_TOLD * time_s))
		return false;
	out[SHARE_DISK] = s[PHASE_FETCH] / time_s;
	out[SHARE_CPU] = (s[PHASE_COMPUTE] + s[PHASE_TEST]) / time_s;
	out[SHARE_DELAY] = s[PHASE_SYNC] / time_s;
	out[SHARE_START] = fmax(0.0, 1.0 - told / time_s);
	return true;
}

/* The cores that a run kept busy tell more than its own clock. It may count as computing what it waits for,
 * such as an accelerator. Or it computes while it fetches and waits: it copies records from memory, and adds
 * up gradients. In a crowd neither can be told: a barrier waits for workers that wait for a core. */
static void correct(const struct calibrate_job *j, double limit, double *share)
{
	double busy = j->seen.cpu_used / j->cpus, more, on_cpu;

	if (fmax(j->processes, j->cpus) > limit) {
		share[SHARE_CPU] = share[SHARE_DELAY] = NAN;
		return;
	}
	if (!(busy > 0.0))
		return;
	more = busy - share[SHARE_CPU];
	if (more < 0.0) {
		share[SHARE_CPU] += more;
		share[SHARE_DELAY] -= more;
		return;
	}
	on_cpu = fmin(1.0, more / fmax(1e-9, share[SHARE_DISK] + share[SHARE_DELAY] + share[SHARE_START]));
	share[SHARE_CPU] += on_cpu * (share[SHARE_DISK] + share[SHARE_DELAY]);
	share[SHARE_DISK] *= 1.0 - on_cpu;
	share[SHARE_DELAY] *= 1.0 - on_cpu;
}

static void count_equations(struct problem *pr)
{
	pr->count = (double)pr->n;
	for (size_t i = 0; i < pr->n && pr->uses_phases; i++)
		for (size_t k = 0; k < N_SHARES; k++)
			if (!isnan(pr->row[i].share[k]))
				pr->count += pr->share_weight[k];
}

/* The squared errors of the logarithms of times, and of each share; means. */
static double errors(const struct problem *pr, const struct solution *s, double *out_share)
{
	struct costs c = calibrate_costs(pr, s);
	double time = 0.0, known[N_SHARES] = { 0 }, gradient[MAX_U], unused[MAX_U];

	for (size_t k = 0; k < N_SHARES; k++)
		out_share[k] = 0.0;
	for (size_t i = 0; i < pr->n; i++) {
		const struct row *r = &pr->row[i];
		struct terms t = calibrate_terms(&c, r, pr->n_categories);
		double e = log(t.total) - r->log_t;

		time += e * e / (double)pr->n;
		calibrate_gradient(pr, &c, s, r, &t, gradient);
		for (unsigned k = 0; k < N_SHARES; k++) {
			if (isnan(r->share[k]))
				continue;
			e = calibrate_share(pr, &c, s, r, &t, k, gradient, unused) - r->share[k];
			known[k] += 1.0;
			out_share[k] += (e * e - out_share[k]) / known[k];
		}
	}
	return time;
}

static size_t find_shares(struct problem *pr)
{
	double limit = calibrate_uncrowded(pr);
	size_t known = 0;

	for (size_t i = 0; i < pr->n; i++) {
		struct row *r = &pr->row[i];
		const struct calibrate_job *j = &pr->p->job[r->from];

		for (size_t k = 0; k < N_SHARES; k++)
			r->share[k] = NAN;
		if (pr->devices || !tell(j, pr->p->time_s[r->from], r->share))
			continue;
		correct(j, limit, r->share);
		known++;
	}
	return known;
}

void calibrate_find_phases(struct problem *pr)
{
	pr->count = (double)pr->n;
	pr->has_phases = find_shares(pr) >= pr->n / 10 + 3;
}

int calibrate_add_phases(struct problem *pr, struct solution *s, struct err *err)
{
	struct solution plain = *s, try;
	double share[N_SHARES], agrees[N_SHARES] = { 1, 1, 1, 1 }, cores = pr->cores;
	double time = fmax(errors(pr, s, share), LEAST_ERROR * LEAST_ERROR), loss;

	pr->uses_phases = true;
	for (double strength = 1.0; strength >= LEAST_STRENGTH; strength /= WEAKER) {
		int rc;

		for (size_t k = 0; k < N_SHARES; k++)
			pr->share_weight[k] = strength * agrees[k];
		count_equations(pr);
		rc = calibrate_search(pr, pr->p->cores, &try, err);
		if (rc)
			return rc;
		loss = (double)pr->n * log(errors(pr, &try, share) / time);
		if (loss <= (double)plain.n_free + MAX_LOSS) {
			*s = try;
			return 0;
		}
		for (size_t k = 0; k < N_SHARES; k++)
			agrees[k] = fmin(1.0, time / fmax(share[k], 1e-12));
	}
	pr->uses_phases = false;
	pr->count = (double)pr->n;
	calibrate_set_cores(pr, cores);
	*s = plain;
	return 0;
}
