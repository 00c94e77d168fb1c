/* What jobs that have ended met of other kinds, found again from their starts and ends. Only the daemon asks,
 * after a restart: while a job runs, sched_met() knows it (sched_learn.c). */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/sched_internal.h"

struct past_job { /* one that runs at the time that is played */
	uint64_t id;
	uint32_t cpus, user;
	uint16_t number; /* of its kind */
	double done_s, plain_s; /* as in struct live, where the common law slows nobody down */
	struct pairs_start from;
};

struct sched_past {
	struct sched *s;
	struct pairs_clock clock;
	int64_t at_ns;
	uint64_t cpus;
	struct past_job *job;
	size_t n, cap;
};

int sched_past_new(struct sched *s, struct sched_past **out, struct err *err)
{
	struct sched_past *p = mem_calloc(1, sizeof *p);

	if (!p)
		return err_nomem(err, "what jobs met");
	p->s = s;
	p->at_ns = INT64_MIN;
	*out = p;
	return 0;
}

void sched_past_free(struct sched_past *p)
{
	for (size_t i = 0; p && i < p->n; i++)
		pairs_leave(p->s->pairs, p->job[i].number);
	if (p)
		free(p->job);
	free(p);
}

/* The work of others at that time is not known any more, so a neighbour's part of the machine is taken as
 * large as it was without any. */
static void pass(struct sched_past *p, int64_t now_ns)
{
	double for_s = now_ns > p->at_ns && p->at_ns != INT64_MIN ? 1e-9 * (double)(now_ns - p->at_ns) : 0.0;
	double slow[1 + PAIRS_KINDS];

	pairs_slow(p->s->pairs, p->clock.held, (double)p->cpus, slow);
	for (size_t i = 0; i < p->n; i++) {
		struct past_job *j = &p->job[i];

		j->done_s += for_s / slow[pairs_felt(p->s->pairs, j->number, j->user)];
		j->plain_s += for_s;
	}
	pairs_pass(p->s->pairs, &p->clock, (double)p->cpus, for_s);
	p->at_ns = now_ns > p->at_ns ? now_ns : p->at_ns;
}

int sched_past_start(struct sched_past *p, int64_t at_ns, const struct sched_request *r, struct err *err)
{
	struct past_job *j;

	if (!p->s->kinds)
		return 0;
	if (mem_grow((void **)&p->job, &p->cap, p->n + 1, sizeof *p->job))
		return err_nomem(err, "what jobs met");
	pass(p, at_ns);
	j = &p->job[p->n++];
	*j = (struct past_job){ .id = r->id, .cpus = r->cpus, .user = r->user };
	j->number = pairs_enter(p->s->pairs, learn_kind(p->s, r));
	p->clock.held[j->number] += j->cpus;
	p->cpus += j->cpus;
	j->from = pairs_start(p->s->pairs, &p->clock);
	return 0;
}

void sched_past_end(struct sched_past *p, int64_t at_ns, uint64_t id, struct pairs_met *out)
{
	size_t i = 0;

	*out = (struct pairs_met){ 0 };
	while (i < p->n && p->job[i].id != id)
		i++;
	if (i == p->n)
		return;
	pass(p, at_ns);
	if (p->job[i].number && p->job[i].done_s > 0.0) {
		pairs_meet(p->s->pairs, &p->clock, &p->job[i].from, p->job[i].number, out);
		out->plain = log(p->job[i].plain_s / p->job[i].done_s);
	}
	p->clock.held[p->job[i].number] -= p->job[i].cpus;
	p->cpus -= p->job[i].cpus;
	pairs_leave(p->s->pairs, p->job[i].number);
	p->job[i] = p->job[--p->n];
}
