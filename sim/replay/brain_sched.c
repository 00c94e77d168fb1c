/* A policy of scheduler/core as the brain of a replay: what the daemon does with events, in virtual time. On
 * a cluster in which each job stays on one node there is a scheduler for each node. They share what they
 * learn (sched_new_beside()); an event concerns one of them, and the jobs of its node alone. placement.h says
 * which nodes an arriving job is offered to. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/sched.h"
#include "sim/replay/bound_kinds.h"
#include "sim/replay/brain.h"
#include "sim/replay/placement.h"

#define MOST_LIVE 65536 /* unless asked for more: memory goes with it */
#define LEAST_LIVE_IN_NODE 128

struct decided { /* at the start of a job, for what is learnt at its end */
	double model_s, guard_s, upper_s;
};

struct brain {
	const struct replay_params *p;
	struct bound_kinds kinds;
	struct sched **sched; /* by node */
	uint32_t n_nodes;
	uint32_t now; /* the node that the last event was on */
	uint32_t *node; /* by job: where it is; NULL: there is one */
	struct placement load;
	bool asks; /* nodes are asked for a promise */
	struct tournament overtime; /* by node: the moment of sched_overtime_ns() */
	size_t *queued, n_queued; /* by node as far as is known, and in all */
	struct decision *decision;
	struct decided *decided; /* by job */
};

static void brain_destroy(void *self)
{
	struct brain *b = self;

	if (!b)
		return;
	for (uint32_t i = b->n_nodes; b->sched && i-- > 0;) /* the first lends to the others */
		sched_free(b->sched[i]);
	free(b->sched);
	free(b->node);
	free(b->queued);
	placement_release(&b->load);
	tournament_release(&b->overtime);
	bound_kinds_release(&b->kinds);
	free(b->decision);
	free(b->decided);
	free(b);
}

static int set_tenants(struct brain *b, struct err *err)
{
	const struct trace *t = b->p->trace;
	struct sched_tenant *tenant = mem_calloc(t->n_tenants, sizeof *tenant);
	int status = tenant ? 0 : err_nomem(err, "%zu tenants", t->n_tenants);

	for (size_t i = 0; i < t->n_tenants && !status; i++)
		tenant[i] = (struct sched_tenant){ .name = t->tenant[i], .weight = t->weight[i] };
	for (uint32_t i = 0; i < b->n_nodes && !status; i++)
		status = sched_set_tenants(b->sched[i], 0, tenant, t->n_tenants, err);
	free(tenant); /* names are borrowed from the trace, the rest is copied */
	return status;
}

static int make_scheds(struct brain *b, struct sched_params *s, struct err *err)
{
	size_t jobs = b->p->trace->n_jobs;
	int status = 0;

	b->sched = mem_calloc(b->n_nodes, sizeof *b->sched);
	b->queued = mem_calloc(b->n_nodes, sizeof *b->queued);
	b->node = b->n_nodes > 1 ? mem_array(jobs, sizeof *b->node) : NULL;
	if (!b->sched || !b->queued || (b->n_nodes > 1 && !b->node) || placement_init(&b->load, b->n_nodes) ||
	    tournament_init(&b->overtime, b->n_nodes, WORLD_NEVER))
		return err_nomem(err, "%u nodes", b->n_nodes);
	if (b->n_nodes > 1) {
		s->max_jobs = s->max_jobs / b->n_nodes + 1;
		s->max_jobs = s->max_jobs < LEAST_LIVE_IN_NODE ? LEAST_LIVE_IN_NODE : s->max_jobs;
	}
	s->max_jobs = s->max_jobs < jobs ? s->max_jobs : jobs;
	for (uint32_t i = 0; i < b->n_nodes && !status; i++)
		status = i ? sched_new_beside(b->sched[0], s, &b->sched[i], err)
			   : sched_new(s, &b->sched[0], err);
	return status;
}

static int brain_make(const struct replay_params *p, struct world_nodes *nodes, void **out_self,
		      struct err *err)
{
	const struct cluster *c = world_cluster(p->world);
	const struct replay_settings *how = &p->settings;
	struct sched_params s = {
		.policy = p->policy->choice,
		.model = p->policy->choice.policy->predictor ? p->model : NULL,
		.machine = { .cores = c->cores, .slots = c->slots, .memory_mb = c->memory_mb },
		.max_jobs = how->max_live ? how->max_live : MOST_LIVE,
		.seed = p->seed,
		.window_s = how->window_s,
		.adapt = how->adapt,
		.hysteresis = how->hysteresis,
		.explore = how->explore,
	};
	struct brain *b = mem_calloc(1, sizeof *b);
	int status = 0;

	if (!b)
		return err_nomem(err, "a replay");
	b->p = p;
	b->n_nodes = world_nodes_count(nodes); /* more a policy must not know of the world */
	b->asks = world_whole(p->world)->place == PLACE_PROMISE;
	b->decision = mem_alloc(sizeof *b->decision);
	b->decided = mem_array(p->trace->n_jobs, sizeof *b->decided);
	if (!b->decision || !b->decided)
		status = err_nomem(err, "a replay of %zu jobs", p->trace->n_jobs);
	if (!status)
		status = bound_kinds_init(&b->kinds, p->trace, p->world, s.model, err);
	if (!status)
		status = make_scheds(b, &s, err);
	if (!status)
		status = set_tenants(b, err);
	if (status)
		brain_destroy(b);
	else
		*out_self = b;
	return status;
}

/* ---- nodes ---- */

static uint32_t node_of(const struct brain *b, size_t job)
{
	return b->node ? b->node[job] : 0;
}

/* An event on that node: its scheduler. */
static struct sched *turn_to(struct brain *b, uint32_t node)
{
	b->now = node;
	return b->sched[node];
}

static void note_load(struct brain *b, size_t job, int sign)
{
	const struct trace *t = b->p->trace;

	if (b->n_nodes > 1)
		placement_change(&b->load, node_of(b, job), sign * (int64_t)t->kind[t->job[job].kind].cpus);
}

/* It is gone. */
static int leave(struct brain *b, int64_t now_ns, size_t job, struct err *err)
{
	note_load(b, job, -1);
	return sched_remove(turn_to(b, node_of(b, job)), now_ns, job + 1, err);
}

/* Offers the job to nodes, and stops at the first that promises its objective; if none does, the first has
 * the last word. */
static int offer(struct brain *b, int64_t now_ns, struct sched_request *r, enum sched_verdict *verdict,
		 struct err *err)
{
	uint32_t least[PLACEMENT_TRIES] = { 0 };
	uint32_t n = b->n_nodes == 1 ? 1
				     : placement_least(&b->load, least,
						       b->asks && !isnan(r->slo_s) ? PLACEMENT_TRIES : 1);
	int status;

	r->only_promised = n > 1;
	for (uint32_t i = 0; i < n && n > 1; i++) {
		status = sched_submit(turn_to(b, least[i]), now_ns, r, b->decision, verdict, err);
		if (status != -ERR_BUSY && (status || *verdict == SCHED_PROMISED))
			return status;
	}
	r->only_promised = false;
	return sched_submit(turn_to(b, least[0]), now_ns, r, b->decision, verdict, err);
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
	int status = offer(b, now_ns, &r, &verdict, &why);

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
	io->node = b->now;
	if (verdict != SCHED_REJECTED && b->node) {
		b->node[job] = b->now;
		note_load(b, job, 1);
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

	if (!sched_next(b->sched[b->now], now_ns, &id, b->decision))
		return false;
	c = &b->decision->candidate[b->decision->chosen >= 0 ? b->decision->chosen : 0];
	*out = (struct brain_start){ .job = (size_t)(id - 1),
				     .node = b->now,
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

	if (!sched_hopeless(b->sched[b->now], &id))
		return false;
	*out_job = (size_t)(id - 1);
	return !leave(b, now_ns, *out_job, NULL);
}

/* Only the node of the last event can have changed. */
static int64_t brain_stops_ns(void *self, size_t *out_job)
{
	struct brain *b = self;
	uint64_t id = 1;
	int64_t at_ns = sched_overtime_ns(b->sched[b->now], &id);

	tournament_set(&b->overtime, b->now, at_ns);
	if (tournament_first(&b->overtime) != b->now)
		at_ns = sched_overtime_ns(b->sched[tournament_first(&b->overtime)], &id);
	*out_job = (size_t)(id - 1);
	return at_ns;
}

static int brain_stopped(void *self, int64_t now_ns, size_t job, struct err *err)
{
	return leave(self, now_ns, job, err);
}

static int brain_ended(void *self, int64_t now_ns, size_t job, bool failed, double run_s, struct err *err)
{
	struct brain *b = self;
	const struct trace_job *j = &b->p->trace->job[job];
	const struct job_values *values = b->kinds.has_values ? &b->kinds.kind[j->kind].values : NULL;
	struct sched *s = b->sched[node_of(b, job)];
	const struct sched_observation seen = {
		.type = j->type,
		.family = sched_family(s, 0, values, b->p->trace->kind[j->kind].cpus),
		.confidence = replay_confidence(b->p, j),
		.model_s = b->decided[job].model_s,
		.guard_s = b->decided[job].guard_s,
		.upper_s = b->decided[job].upper_s,
		.foreseen_s = sched_foreseen_s(s, now_ns, job + 1, run_s),
		.actual_s = run_s,
	};
	int status = leave(b, now_ns, job, err);

	if (!status && !failed)
		sched_observe(s, &seen);
	return status;
}

static size_t brain_waiting(void *self)
{
	struct brain *b = self;
	size_t queued = sched_queued(b->sched[b->now]);

	b->n_queued = b->n_queued - b->queued[b->now] + queued;
	b->queued[b->now] = queued;
	return b->n_queued;
}

const struct brain_ops brain_sched = {
	.places = true,
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
