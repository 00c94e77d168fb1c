/* Batches that a user's jobs cannot be run with: too large for the memory, as a rule. One failure that speaks
 * of memory, or two of any kind, and the batch is no candidate for this user's jobs of the type; for others
 * only once several users have found that out. It is tried again after a day, after a change of the type's
 * command, and whenever a user names it. See learning.h. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/hash.h"
#include "scheduler/daemon/learn/learning_internal.h"

#define DAY_NS (86400 * (int64_t)1000000000)
#define ANY_KIND 2 /* failures, whatever they say */
#define SEVERAL 2 /* users */

/* Of the command as it is configured. */
static uint64_t command_of(const struct learning *l, const char *type)
{
	const struct job_type *t = config_type(l->d->setup->config, type);

	return t ? hash_words(HASH_START, t->argv, t->n_argv) : HASH_START;
}

static bool speaks_of_memory(const char *reason)
{
	static const char *const words[] = { "out of memory",   "outofmemory",         "memoryerror",
					     "bad_alloc",       "cannot allocate",     "can't allocate",
					     "unable to alloc", "memory limit exceed", NULL };

	for (size_t i = 0; reason && words[i]; i++)
		if (strcasestr(reason, words[i]))
			return true;
	return false;
}

static struct failing *find(const struct learning *l, const struct job *job, double batch)
{
	for (size_t i = 0; i < l->n_failing; i++) {
		struct failing *f = &l->failing[i];

		if (f->type == job->type_number && f->uid == job->row.uid && f->batch == batch)
			return f;
	}
	return NULL;
}

/* NULL: without memory nothing is remembered. Of too many the one that failed longest ago makes room. */
static struct failing *make(struct learning *l, const struct job *job)
{
	struct failing *f = find(l, job, job->row.batch);

	if (f)
		return f;
	if (l->n_failing < LEARNING_FAILING) {
		if (mem_grow((void **)&l->failing, &l->failing_cap, l->n_failing + 1, sizeof *l->failing))
			return NULL;
		f = &l->failing[l->n_failing++];
	} else {
		f = l->failing;
		for (size_t i = 1; i < l->n_failing; i++)
			if (l->failing[i].last_ns < f->last_ns)
				f = &l->failing[i];
	}
	*f = (struct failing){ .type = job->type_number, .uid = job->row.uid, .batch = job->row.batch };
	return f;
}

void learning_run_failed(struct learning *l, const struct job *job, int64_t now_ns)
{
	uint64_t command = command_of(l, job->row.type);
	struct failing *f = job->row.batch > 0.0 ? make(l, job) : NULL;

	if (!f)
		return;
	if (f->command != command || now_ns - f->last_ns >= DAY_NS)
		f->n = 0, f->memory = false;
	f->command = command;
	f->last_ns = now_ns;
	f->n++;
	f->memory |= speaks_of_memory(job->row.reason);
}

void learning_run_went_well(struct learning *l, const struct job *job)
{
	struct failing *f = find(l, job, job->row.batch);

	if (f)
		*f = l->failing[--l->n_failing];
}

bool learning_fails(const struct learning *l, const struct job *job, double batch)
{
	uint64_t command = l->n_failing ? command_of(l, job->row.type) : 0;
	int64_t now_ns = daemon_now_ns(l->d);
	size_t users = 0;

	for (size_t i = 0; i < l->n_failing; i++) {
		const struct failing *f = &l->failing[i];

		if (f->type != job->type_number || f->batch != batch || f->command != command ||
		    now_ns - f->last_ns >= DAY_NS || !(f->memory || f->n >= ANY_KIND))
			continue;
		if (f->uid == job->row.uid)
			return true;
		users++;
	}
	return users >= SEVERAL;
}

/* What the job may choose from becomes `batch`, n of them, at least one. Without memory it stays. */
static void allow(struct job *job, const double *batch, size_t n)
{
	double *copy = mem_array(n, sizeof *copy);

	if (!copy)
		return;
	memcpy(copy, batch, n * sizeof *copy);
	free(job->batch);
	job->batch = copy;
	job->n_batches = n;
}

void learning_drop_failing(const struct learning *l, struct job *job)
{
	const struct model *m = l->d->setup->slot[job->slot].model;
	const double *from = job->n_batches ? job->batch : m ? m->candidate : NULL;
	size_t n = job->n_batches ? job->n_batches : m ? m->n_candidates : 0, kept = 0;
	double good[DECIDE_MAX_CANDIDATES];

	if (!l->n_failing || job->row.batches)
		return;
	for (size_t i = 0; i < n && i < DECIDE_MAX_CANDIDATES; i++)
		if (!learning_fails(l, job, from[i]))
			good[kept++] = from[i];
	if (kept && kept < n)
		allow(job, good, kept);
}

void learning_next_smaller(const struct learning *l, struct job *job)
{
	const struct model *m = l->d->setup->slot[job->slot].model;
	bool type_has = job->type && job->type->n_batches && !job->row.batches;
	const double *from = type_has         ? job->type->batch
			     : job->n_batches ? job->batch
			     : m              ? m->candidate
					      : NULL;
	size_t n = type_has         ? job->type->n_batches
		   : job->n_batches ? job->n_batches
		   : m              ? m->n_candidates
				    : 0;
	double best = 0.0;

	if (!learning_fails(l, job, job->row.batch))
		return;
	for (size_t i = 0; i < n; i++)
		if (from[i] < job->row.batch && from[i] > best && !learning_fails(l, job, from[i]))
			best = from[i];
	if (best > 0.0)
		allow(job, &best, 1);
}
