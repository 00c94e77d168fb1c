/* A policy of scheduler/core as the brain of a replay: what the daemon does with events, in virtual time. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/sched.h"
#include "sim/replay/bound_kinds.h"
#include "sim/replay/brain.h"

#define MOST_LIVE 65536 /* unless asked for more: memory goes with it */

struct decided { /* at the start of a job, for what is learnt at its end */
	double model_s, guard_s, upper_s;
};

struct brain {
	const struct replay_params *p;
	struct bound_kinds kinds;
	struct sched *sched;
	struct decision *decision;
	struct decided *decided; /* by job */
};

static void brain_destroy(void *self)
{
	struct brain *b = self;

	if (!b)
		return;
	sched_free(b->sched);
	bound_kinds_release(&b->kinds);
	free(b->decision);
	free(b->decided);
	free(b);
}

static int set_tenants(struct brain *b, struct err *err)
{
	const struct trace *t = b->p->trace;
	struct sched_tenant *tenant = mem_calloc(t->n_tenants, sizeof *tenant);
	int status;

	if (!tenant)
		return err_nomem(err, "%zu tenants", t->n_tenants);
	for (size_t i = 0; i < t->n_tenants; i++)
		tenant[i] = (struct sched_tenant){ .name = t->tenant[i], .weight = t->weight[i] };
	status = sched_set_tenants(b->sched, 0, tenant, t->n_tenants, err);
	free(tenant); /* names are borrowed from the trace, the rest is copied */
	return status;
}

static int brain_make(const struct replay_params *p, struct world_run *run, void **out_self, struct err *err)
{
	const struct cluster *c = world_cluster(p->world);
	const struct replay_settings *how = &p->settings;
	size_t live = how->max_live ? how->max_live : MOST_LIVE;
	struct sched_params s = {
		.policy = p->policy->choice,
		.model = p->policy->choice.policy->predictor ? p->model : NULL,
		.machine = { .cores = c->cores, .slots = c->slots, .memory_mb = c->memory_mb },
		.max_jobs = live < p->trace->n_jobs ? live : p->trace->n_jobs,
		.seed = p->seed,
		.window_s = how->window_s,
		.adapt = how->adapt,
		.hysteresis = how->hysteresis,
		.explore = how->explore,
	};
	struct brain *b = mem_calloc(1, sizeof *b);
	int status = 0;

	(void)run; /* a policy must not look at the world */
	if (!b)
		return err_nomem(err, "a replay");
	b->p = p;
	b->decision = mem_alloc(sizeof *b->decision);
	b->decided = mem_array(p->trace->n_jobs, sizeof *b->decided);
	if (!b->decision || !b->decided)
		status = err_nomem(err, "a replay of %zu jobs", p->trace->n_jobs);
	if (!status)
		status = bound_kinds_init(&b->kinds, p->trace, p->world, s.model, err);
	if (!status)
		status = sched_new(&s, &b->sched, err);
	if (!status)
		status = set_tenants(b, err);
	if (status)
		brain_destroy(b);
	else
		*out_self = b;
	return status;
}

static int brain_arrive(void *self, int64_t now_ns, size_t job, struct outcome *io, struct err *err)
{
	struct brain *b = self;
	const struct trace_job *j = &b->p->trace->job[job];
	const struct trace_kind *k = &b->p->trace->kind[j->kind];
	const struct bound_kind *bound = &b->kinds.kind[j->kind];
	struct sched_request r = {
		.id = job + 1,
		.values = b->kinds.has_values ? &bound->values : NULL,
		.cpus = k->cpus,
		.batch = bound->batch,
		.n_batches = bound->n_batches,
		.epochs = bound->epochs,
		.n_epochs = bound->n_epochs,
		.tenant = j->tenant,
		.priority = j->priority,
		.type = j->type,
		.recurring = j->recurring,
		.slo_s = j->slo_s,
		.confidence = replay_confidence(b->p, j),
		.best_effort = j->best_effort,
		.chance = isnan(j->slo_s) ? 0.0 : b->p->policy->choice.chance,
		.value = trace_value(j),
		.memory_mb = k->memory_mb,
		.memory_mb_per_record = k->memory_mb_per_record,
		.max_memory_mb = NAN,
	};
	struct decision *d = b->decision;
	enum sched_verdict verdict;
	struct err why = { 0 };
	int status = sched_submit(b->sched, now_ns, &r, d, &verdict, &why);

	if (status == -ERR_BUSY) {
		io->state = OUTCOME_REFUSED;
		return 0;
	}
	if (status) {
		if (err)
			*err = why;
		return err_prefix(err, "%s:%u: job %llu", b->p->trace->name, j->line,
				  (unsigned long long)j->id);
	}
	if (d->chosen >= 0) {
		const struct candidate *c = &d->candidate[d->chosen];

		io->promised_s = c->wait_s + c->time_s;
		io->promised_upper_s = c->wait_upper_s + c->upper_s;
	}
	io->promised = verdict == SCHED_PROMISED;
	io->by_chance = verdict == SCHED_CHANCE;
	io->state = OUTCOME_REJECTED;
	return 0;
}

static bool brain_next(void *self, int64_t now_ns, struct brain_start *out)
{
	struct brain *b = self;
	const struct candidate *c;
	uint64_t id;

	if (!sched_next(b->sched, now_ns, &id, b->decision))
		return false;
	c = &b->decision->candidate[b->decision->chosen >= 0 ? b->decision->chosen : 0];
	*out = (struct brain_start){ .job = (size_t)(id - 1),
				     .batch = c->decision,
				     .epochs = c->epochs,
				     .run_s = c->time_s,
				     .run_upper_s = c->upper_s,
				     .predicted_accuracy = c->accuracy };
	b->decided[out->job] =
		(struct decided){ .model_s = c->model_s, .guard_s = c->guard_s, .upper_s = c->upper_s };
	return true;
}

static bool brain_dropped(void *self, int64_t now_ns, size_t *out_job)
{
	struct brain *b = self;
	uint64_t id;

	if (!sched_hopeless(b->sched, &id))
		return false;
	*out_job = (size_t)(id - 1);
	return !sched_remove(b->sched, now_ns, id, NULL);
}

static int64_t brain_stops_ns(const void *self, size_t *out_job)
{
	uint64_t id = 1;
	int64_t at_ns = sched_overtime_ns(((const struct brain *)self)->sched, &id);

	*out_job = (size_t)(id - 1);
	return at_ns;
}

static int brain_stopped(void *self, int64_t now_ns, size_t job, struct err *err)
{
	return sched_remove(((struct brain *)self)->sched, now_ns, job + 1, err);
}

static int brain_ended(void *self, int64_t now_ns, size_t job, bool failed, double run_s, struct err *err)
{
	struct brain *b = self;
	const struct trace_job *j = &b->p->trace->job[job];
	const struct job_values *values = b->kinds.has_values ? &b->kinds.kind[j->kind].values : NULL;
	const struct sched_observation seen = {
		.type = j->type,
		.family = sched_family(b->sched, 0, values, b->p->trace->kind[j->kind].cpus),
		.confidence = replay_confidence(b->p, j),
		.model_s = b->decided[job].model_s,
		.guard_s = b->decided[job].guard_s,
		.upper_s = b->decided[job].upper_s,
		.foreseen_s = sched_foreseen_s(b->sched, now_ns, job + 1, run_s),
		.actual_s = run_s,
	};
	int status = sched_remove(b->sched, now_ns, job + 1, err);

	if (!status && !failed)
		sched_observe(b->sched, &seen);
	return status;
}

static size_t brain_waiting(const void *self)
{
	return sched_queued(((const struct brain *)self)->sched);
}

const struct brain_ops brain_sched = {
	.make = brain_make,
	.destroy = brain_destroy,
	.arrive = brain_arrive,
	.next = brain_next,
	.dropped = brain_dropped,
	.stops_ns = brain_stops_ns,
	.stopped = brain_stopped,
	.ended = brain_ended,
	.waiting = brain_waiting,
};
