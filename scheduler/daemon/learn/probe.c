/* Jobs taken to learn from them. A rejected job teaches nothing, so a daemon whose bounds have become too
 * wide, or whose machine has changed, would reject jobs for ever. Where more than half of the latest jobs of
 * a type were rejected and none has ended for a while, one that would be rejected is taken without a promise:
 * behind all promises, one at a time. Off unless the operator allows it: a job with an objective expects a
 * refusal, not a late result. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/daemon/learn/learning_internal.h"

#define PROBE_LATEST 20 /* decisions that count */
#define PROBE_LEAST 5 /* there must be, after a start */

static struct probe_type *probe_of(const struct learning *l, int type)
{
	for (size_t i = 0; i < l->n_probes; i++) {
		if (l->probe[i].type == type)
			return &l->probe[i];
	}
	return NULL;
}

static struct probe_type *probe_add(struct learning *l, int type)
{
	struct probe_type *p = probe_of(l, type);

	if (p || mem_grow((void **)&l->probe, &l->probes_cap, l->n_probes + 1, sizeof *l->probe))
		return p;
	p = &l->probe[l->n_probes++];
	*p = (struct probe_type){ .type = type };
	return p;
}

void learning_decided(struct learning *l, const struct job *job, bool rejected)
{
	struct probe_type *p = probe_add(l, job->type_number);

	if (!p)
		return;
	p->rejected = (p->rejected << 1 | rejected) & ((1u << PROBE_LATEST) - 1);
	p->n += p->n < PROBE_LATEST;
}

void learning_probe_ended(struct learning *l, const struct job *job)
{
	struct probe_type *p = probe_add(l, job->type_number);

	if (p)
		p->ended_ns = job->row.ended_ns;
}

bool learning_probe_allowed(const struct learning *l, const struct job *job)
{
	const struct config *c = l->d->setup->config;
	enum config_probe own = job->type ? job->type->probe : PROBE_DEFAULT;

	return (own == PROBE_DEFAULT ? c->learning.probe : own) == PROBE_AUTO;
}

bool learning_probe_due(const struct learning *l, const struct job *job, int64_t now_ns, char *why,
			size_t size)
{
	const struct config *c = l->d->setup->config;
	const struct probe_type *p = probe_of(l, job->type_number);
	const struct job *before = p && p->job ? jobs_find(&l->d->jobs, p->job) : NULL;
	size_t rejected = p ? (size_t)__builtin_popcount(p->rejected) : 0;
	int64_t since_ns = p && p->ended_ns > l->d->started_ns ? p->ended_ns : l->d->started_ns;

	if (!learning_probe_allowed(l, job) || !p || p->n < PROBE_LEAST || 2 * rejected <= p->n ||
	    (before && job_state_live(before->row.state)) ||
	    (double)(now_ns - since_ns) / 1e9 < c->learning.probe_after_s)
		return false;
	snprintf(why, size,
		 "taken to learn, without a promise: %zu of the last %zu jobs of type %s were rejected",
		 rejected, p->n, job->row.type);
	return true;
}

void learning_probe_taken(struct learning *l, const struct job *job)
{
	struct probe_type *p = probe_add(l, job->type_number);

	l->probes++;
	if (p)
		p->job = job->id;
}
