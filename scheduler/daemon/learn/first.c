/* Jobs of a type that has no model yet: which batch they take, and how long they may run. See learning.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/daemon/learn/learning_internal.h"

struct tried {
	size_t n; /* jobs of this batch, ended or not */
	size_t n_times;
	double log_s; /* sum of the logarithms of their run times */
};

static void count(const struct job_list *l, const struct job *like, const double *batch, size_t n,
		  struct tried *out)
{
	for (const struct job *j = l->first; j; j = j->after) {
		double run_s = (double)(j->row.ended_ns - j->row.started_ns) / 1e9;

		if (j->type_number != like->type_number || j->row.state == JOB_REJECTED ||
		    j->row.state == JOB_CANCELLED || j->row.state == JOB_FAILED)
			continue;
		for (size_t i = 0; i < n; i++) {
			if (batch[i] != j->row.batch)
				continue;
			out[i].n++;
			if (learning_is_observation(&j->row)) {
				out[i].n_times++;
				out[i].log_s += log(run_s);
			}
		}
	}
}

double learning_first_batch(const struct learning *l, const struct job *job, const double *batch, size_t n,
			    double *out_guess_s)
{
	struct tried tried[JOB_TYPE_MAX_BATCHES] = { 0 }, all = { 0 };
	size_t best = n / 2;

	count(&l->d->jobs.ended, job, batch, n, tried);
	count(&l->d->jobs.live, job, batch, n, tried);
	for (size_t i = 0; i < n; i++) {
		size_t off = i > n / 2 ? i - n / 2 : n / 2 - i;
		size_t best_off = best > n / 2 ? best - n / 2 : n / 2 - best;

		if (tried[i].n < tried[best].n || (tried[i].n == tried[best].n && off < best_off))
			best = i;
		all.n_times += tried[i].n_times;
		all.log_s += tried[i].log_s;
	}
	if (tried[best].n_times)
		all = tried[best];
	*out_guess_s = all.n_times ? exp(all.log_s / (double)all.n_times) : NAN;
	return batch[best];
}
