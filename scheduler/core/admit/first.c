/* See first.h. */
#include "scheduler/core/admit/first.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"

#define FAILED_COUNTS 3 /* jobs, in the turns of a batch that jobs fail with */
#define MOST_BATCHES 256 /* told apart of a type; a further one counts as never tried */

struct tried {
	double batch; /* 0: free */
	size_t n; /* jobs without a model that live, are done, lost or failed */
	size_t n_failed; /* with a model or without one */
	size_t n_times; /* jobs that tell how long they took */
	double log_s; /* sum of the logarithms of these times */
};

struct first_type {
	int type;
	size_t n;
	struct tried tried[MOST_BATCHES];
};

void first_release(struct first_batches *f)
{
	free(f->type);
	*f = (struct first_batches){ 0 };
}

static struct first_type *of_type(const struct first_batches *f, int type)
{
	for (size_t i = 0; f && i < f->n; i++) {
		if (f->type[i].type == type)
			return &f->type[i];
	}
	return NULL;
}

static struct tried *find(const struct first_type *f, double batch)
{
	for (size_t i = 0; f && i < f->n; i++) {
		if (f->tried[i].batch == batch)
			return (struct tried *)&f->tried[i];
	}
	return NULL;
}

/* NULL: without memory, or for a batch too many, it counts as never tried. */
static struct tried *make(struct first_batches *all, int type, double batch)
{
	struct first_type *f = of_type(all, type);
	struct tried *t;

	if (!(batch > 0.0))
		return NULL;
	t = find(f, batch);
	if (t)
		return t;
	if (!f) {
		if (mem_grow((void **)&all->type, &all->cap, all->n + 1, sizeof *all->type))
			return NULL;
		f = &all->type[all->n++];
		*f = (struct first_type){ .type = type };
	}
	t = find(f, 0.0); /* one that is free again */
	if (!t && f->n < MOST_BATCHES)
		t = &f->tried[f->n++];
	if (t)
		*t = (struct tried){ .batch = batch };
	return t;
}

void first_taken(struct first_batches *f, int type, double batch)
{
	struct tried *t = make(f, type, batch);

	if (t)
		t->n++;
}

void first_took(struct first_batches *f, int type, double batch, double run_s)
{
	struct tried *t = find(of_type(f, type), batch);

	if (!t)
		return;
	t->n_times++;
	t->log_s += log(run_s);
}

void first_failed(struct first_batches *f, int type, double batch)
{
	struct tried *t = make(f, type, batch);

	if (t)
		t->n_failed++;
}

void first_cancelled(struct first_batches *f, int type, double batch)
{
	struct tried *t = find(of_type(f, type), batch);

	if (!t || !t->n)
		return;
	t->n--;
	if (t->n + t->n_failed == 0)
		t->batch = 0.0;
}

/* Jobs failed with it, and none ever ended well. */
static bool fails(const struct tried *t)
{
	return t->n_failed && !t->n_times;
}

/* How much is known of it, in jobs: one that only failed is tried again when the others are known well. */
static size_t known(const struct tried *t)
{
	return t->n + (fails(t) ? FAILED_COUNTS * t->n_failed : 0);
}

bool first_untried(const struct first_batches *f, int type, double batch)
{
	return !find(of_type(f, type), batch);
}

double first_choose(const struct first_batches *all_types, int type, const double *batch, size_t n,
		    double *out_guess_s)
{
	static const struct tried never;
	const struct first_type *f = of_type(all_types, type);
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
