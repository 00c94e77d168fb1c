/* Jobs of a type that has no model yet: which batch they take, and how long they may run. How often each
 * batch was taken is counted as jobs come and end, so that to choose one takes no longer where there are many
 * jobs. See learning.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/daemon/learn/learning_internal.h"

#define FAILED_COUNTS 3 /* jobs, in the turns of a batch that jobs fail with */

static struct first_batches *of_type(const struct learning *l, int type)
{
	for (size_t i = 0; i < l->n_firsts; i++) {
		if (l->first[i].type == type)
			return &l->first[i];
	}
	return NULL;
}

static struct tried *find(const struct first_batches *f, double batch)
{
	for (size_t i = 0; f && i < f->n; i++) {
		if (f->tried[i].batch == batch)
			return (struct tried *)&f->tried[i];
	}
	return NULL;
}

/* NULL: without memory, or for a batch too many, it counts as never tried. */
static struct tried *make(struct learning *l, int type, double batch)
{
	struct first_batches *f = of_type(l, type);
	struct tried *t = find(f, batch);

	if (t)
		return t;
	if (!f) {
		if (mem_grow((void **)&l->first, &l->firsts_cap, l->n_firsts + 1, sizeof *l->first))
			return NULL;
		f = &l->first[l->n_firsts++];
		*f = (struct first_batches){ .type = type };
	}
	t = find(f, 0.0); /* one that is free again */
	if (!t && f->n < LEARNING_BATCHES)
		t = &f->tried[f->n++];
	if (t)
		*t = (struct tried){ .batch = batch };
	return t;
}

void learning_first_taken(struct learning *l, const struct job *job)
{
	struct tried *t;

	if (l->d->setup->slot[setup_slot_of(l->d->setup, job->row.type)].model || !(job->row.batch > 0.0))
		return;
	t = make(l, job->type_number, job->row.batch);
	if (t)
		t->n++;
}

void learning_first_ended(struct learning *l, const struct job *job)
{
	struct tried *t = find(of_type(l, job->type_number), job->row.batch);
	enum job_state state = job->row.state;

	if (state == JOB_FAILED)
		learning_run_failed(l, job, job->row.ended_ns);
	else if (learning_is_observation(&job->row))
		learning_run_went_well(l, job);
	if (state == JOB_FAILED && !t && job->row.batch > 0.0)
		t = make(l, job->type_number, job->row.batch);
	if (!t)
		return;
	if (learning_is_observation(&job->row)) {
		t->n_times++;
		t->log_s += log((double)(job->row.ended_ns - job->row.started_ns) / 1e9);
	} else if (state == JOB_FAILED) {
		t->n_failed++;
	} else if (state == JOB_CANCELLED && t->n) {
		t->n--;
		if (t->n + t->n_failed == 0)
			t->batch = 0.0;
	}
}

/* Jobs failed with it, and none ever ended well. */
static bool fails(const struct tried *t)
{
	return t && t->n_failed && !t->n_times;
}

void learning_first_restore(struct learning *l)
{
	const struct job_list *list[] = { &l->d->jobs.ended, &l->d->jobs.live };

	l->n_firsts = l->n_failing = 0;
	for (size_t i = 0; i < 2; i++) {
		for (const struct job *j = list[i]->first; j; j = j->after) {
			if (j->row.state == JOB_REJECTED)
				continue;
			learning_first_taken(l, j);
			learning_first_ended(l, j);
		}
	}
}

/* How much is known of it, in jobs: one that only failed is tried again when the others are known well. */
static size_t known(const struct tried *t)
{
	return t->n + (fails(t) ? FAILED_COUNTS * t->n_failed : 0);
}

double learning_first_batch(const struct learning *l, const struct job *job, const double *batch, size_t n,
			    double *out_guess_s)
{
	static const struct tried never;
	const struct first_batches *f = of_type(l, job->type_number);
	const struct tried *least = NULL;
	struct tried all = { 0 };
	size_t best = n / 2;

	for (size_t i = 0; i < n; i++) {
		const struct tried *t = find(f, batch[i]);
		size_t off = i > n / 2 ? i - n / 2 : n / 2 - i;
		size_t best_off = best > n / 2 ? best - n / 2 : n / 2 - best;

		if (!t)
			t = &never;
		if (!least || known(t) < known(least) || (known(t) == known(least) && off < best_off)) {
			best = i;
			least = t;
		}
		all.n_times += t->n_times;
		all.log_s += t->log_s;
	}
	if (least && least->n_times)
		all = *least;
	*out_guess_s = all.n_times ? exp(all.log_s / (double)all.n_times) : NAN;
	return batch[best];
}
