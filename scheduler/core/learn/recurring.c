/* The table of recurring jobs: an array, an index by fingerprint, and a list in the order of use. */
#include "scheduler/core/learn/recurring.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/job_index.h"

#define NO_JOB UINT32_MAX

struct entry {
	uint64_t key;
	double batch, epochs;
	uint32_t newer, older; /* neighbours in the order of use */
};

struct recurring {
	size_t max, n;
	struct entry *entry;
	struct job_index index;
	uint32_t newest, oldest;
};

int recurring_new(size_t max_jobs, struct recurring **out, struct err *err)
{
	struct recurring *r;

	if (max_jobs == 0 || max_jobs > RECURRING_MAX)
		return err_fail(err, ERR_ARG, "a table of %zu recurring jobs: need 1 to %d", max_jobs,
				RECURRING_MAX);
	r = mem_calloc(1, sizeof *r);
	if (!r)
		return err_nomem(err, "%zu recurring jobs", max_jobs);
	r->max = max_jobs;
	r->newest = r->oldest = NO_JOB;
	r->entry = mem_array(max_jobs, sizeof *r->entry);
	if (!r->entry || job_index_init(&r->index, max_jobs)) {
		recurring_free(r);
		return err_nomem(err, "%zu recurring jobs", max_jobs);
	}
	*out = r;
	return 0;
}

void recurring_free(struct recurring *r)
{
	if (!r)
		return;
	free(r->entry);
	job_index_release(&r->index);
	free(r);
}

/* The index knows no 0; a fingerprint of 0 shares the place of 1, as one in 2^64 may. */
static uint64_t id_of(uint64_t key)
{
	return key ? key : 1;
}

static uint32_t find(const struct recurring *r, uint64_t key)
{
	return job_index_find(&r->index, id_of(key));
}

static void unlink_entry(struct recurring *r, uint32_t at)
{
	const struct entry *e = &r->entry[at];

	*(e->newer == NO_JOB ? &r->newest : &r->entry[e->newer].older) = e->older;
	*(e->older == NO_JOB ? &r->oldest : &r->entry[e->older].newer) = e->newer;
}

static void link_newest(struct recurring *r, uint32_t at)
{
	r->entry[at].newer = NO_JOB;
	r->entry[at].older = r->newest;
	*(r->newest == NO_JOB ? &r->oldest : &r->entry[r->newest].newer) = at;
	r->newest = at;
}

/* A place for a new entry: the next free one, or that of the job not seen for longest. */
static uint32_t make_room(struct recurring *r)
{
	uint32_t at = r->oldest;

	if (r->n < r->max)
		return (uint32_t)r->n++;
	unlink_entry(r, at);
	job_index_remove(&r->index, id_of(r->entry[at].key));
	return at;
}

void recurring_remember(struct recurring *r, uint64_t key, double batch, double epochs)
{
	uint32_t at = find(r, key);

	if (at == JOB_INDEX_NONE) {
		at = make_room(r);
		job_index_put(&r->index, id_of(key), at);
	} else {
		unlink_entry(r, at);
	}
	r->entry[at].key = key;
	r->entry[at].batch = batch;
	r->entry[at].epochs = epochs;
	link_newest(r, at);
}

bool recurring_recall(const struct recurring *r, uint64_t key, double *out_batch, double *out_epochs)
{
	uint32_t at = find(r, key);

	if (at == JOB_INDEX_NONE)
		return false;
	*out_batch = r->entry[at].batch;
	*out_epochs = r->entry[at].epochs;
	return true;
}

/* By what part of `kept` the best one is better; not a number where that cannot be said. */
static double gain(const struct candidate *best, const struct candidate *kept)
{
	if (isnan(best->accuracy) || isnan(kept->accuracy))
		return (kept->time_s - best->time_s) / kept->time_s;
	return kept->accuracy > 0.0 ? (best->accuracy - kept->accuracy) / kept->accuracy : NAN;
}

/* What is not open, now or then, does not count. */
static bool same_epochs(double a, double b)
{
	return isnan(a) || isnan(b) || a == b;
}

int recurring_choice(const struct decision *d, int best, double batch, double epochs, double threshold)
{
	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if (c->decision == batch && same_epochs(c->epochs, epochs) && c->feasible &&
		    gain(&d->candidate[best], c) <= threshold)
			return (int)i;
	}
	return best;
}

int recurring_keep(const struct recurring *r, uint64_t key, const struct decision *d, double threshold)
{
	double batch, epochs;

	if (d->chosen < 0 || !recurring_recall(r, key, &batch, &epochs))
		return d->chosen;
	return recurring_choice(d, d->chosen, batch, epochs, threshold);
}
