/* Policies of scheduler/core as the brain of a replay: what the daemon does with events, in virtual time. On
 * a cluster in which each job stays on one node there is a scheduler for each node, and there may be several
 * daemons (daemons.h). */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/admit/admit.h"
#include "scheduler/core/admit/knowledge.h"
#include "sim/replay/bound_kinds.h"
#include "sim/replay/brain.h"
#include "sim/replay/daemons.h"

#define MOST_LIVE 65536 /* unless asked for more: memory goes with it */
#define LEAST_LIVE_IN_NODE 128
#define PROMISE_AFTER 9 /* as the daemon's promise_after */

struct decided { /* at the start of a job, for what is learnt at its end */
	double model_s, upper_s, told_s, told_upper_s, limit_s;
	double batch;
	double *terms; /* what it may choose from, where that is less than asked for: batches, then epochs */
};

struct brain {
	const struct replay_params *p;
	struct bound_kinds kinds;
	struct daemons *daemons;
	struct decision *decision;
	struct daemons_seat *seat; /* by job: where it is */
	struct decided *decided; /* by job */
	struct strangers strangers; /* jobs that have ended, by kind: core/admit */
	struct failing_batches failing;
	struct err failed; /* what could not be said where it happened */
};

static void brain_destroy(void *self)
{
	struct brain *b = self;

	if (!b)
		return;
	daemons_free(b->daemons);
	bound_kinds_release(&b->kinds);
	strangers_release(&b->strangers);
	failing_release(&b->failing);
	free(b->decision);
	free(b->seat);
	for (size_t i = 0; b->decided && i < b->p->trace->n_jobs; i++)
		free(b->decided[i].terms);
	free(b->decided);
	free(b);
}

static int make_daemons(struct brain *b, struct daemons_params *d, struct err *err)
{
	const struct trace *t = b->p->trace;
	struct sched_tenant *tenant = mem_calloc(t->n_tenants, sizeof *tenant);
	size_t *live = &d->sched.max_jobs;
	int status = tenant ? 0 : err_nomem(err, "%zu tenants", t->n_tenants);

	for (size_t i = 0; i < t->n_tenants && !status; i++)
		tenant[i] = (struct sched_tenant){ .name = t->tenant[i], .weight = t->weight[i] };
	d->tenant = tenant;
	d->n_tenants = t->n_tenants;
	if (d->nodes > 1) {
		*live = *live / d->nodes + 1;
		*live = *live < LEAST_LIVE_IN_NODE ? LEAST_LIVE_IN_NODE : *live;
	}
	*live = *live < t->n_jobs ? *live : t->n_jobs;
	if (!status)
		status = daemons_new(d, &b->daemons, err);
	free(tenant); /* names are borrowed from the trace, the rest is copied */
	return status;
}

static int brain_make(const struct replay_params *p, struct world_nodes *nodes, void **out_self,
		      struct err *err)
{
	const struct cluster *c = world_cluster(p->world);
	const struct replay_settings *how = &p->settings;
	struct daemons_params d = {
		.sched = { .policy = p->policy->choice,
			   .model = p->policy->choice.policy->predictor ? p->model : NULL,
			   .machine = { .cores = c->cores,
					.slots = c->slots,
					.memory_mb = c->memory_mb,
					.devices = c->gpus },
			   .max_jobs = how->max_live ? how->max_live : MOST_LIVE,
			   .seed = p->seed,
			   .window_s = how->window_s,
			   .adapt = how->adapt },
		.nodes = world_nodes_count(nodes), /* more a policy must not know of the world */
		.daemons = how->daemons ? how->daemons : 1,
		.share = how->share,
		.asks = world_whole(p->world)->place == PLACE_PROMISE,
	};
	struct brain *b = mem_calloc(1, sizeof *b);
	size_t n = p->trace->n_jobs;
	int status = 0;

	if (!b)
		return err_nomem(err, "a replay");
	b->p = p;
	b->decision = mem_alloc(sizeof *b->decision);
	b->seat = mem_array(n, sizeof *b->seat);
	b->decided = mem_calloc(n ? n : 1, sizeof *b->decided);
	if (!b->decision || !b->decided || !b->seat)
		status = err_nomem(err, "a replay of %zu jobs", n);
	if (!status)
		status = bound_kinds_init(&b->kinds, p->trace, p->world, d.sched.model, err);
	if (!status)
		status = make_daemons(b, &d, err);
	if (status)
		brain_destroy(b);
	else
		*out_self = b;
	return status;
}

static uint32_t cpus_of(const struct brain *b, size_t job)
{
	return b->p->trace->kind[b->p->trace->job[job].kind].cpus;
}

/* Each tenant has its daemon; of fewer tenants the jobs take turns. */
static uint32_t daemon_of(const struct brain *b, size_t job)
{
	const struct trace *t = b->p->trace;
	uint32_t daemons = b->p->settings.daemons;

	if (daemons < 2)
		return 0;
	return (uint32_t)((t->n_tenants >= daemons ? t->job[job].tenant : job) % daemons);
}

static int leave(struct brain *b, int64_t now_ns, size_t job, struct err *err)
{
	return daemons_leave(b->daemons, now_ns, b->seat[job], job + 1, cpus_of(b, job), err);
}

/* What the job asks for; the policy's own for a job that asks for none. */
static double chance_of(const struct brain *b, const struct trace_job *j)
{
	if (isnan(j->slo_s))
		return 0.0;
	return j->chance > 0.0 ? j->chance : b->p->policy->choice.chance;
}

/* What the job may have, and what may be promised to it: as the daemon admits it. */
static int admit(struct brain *b, int64_t now_ns, size_t job, struct sched_request *io, struct err *err)
{
	const struct admit_memory known = { .strangers = &b->strangers,
					    .failing = &b->failing,
					    .predicts = b->p->policy->choice.policy->predictor,
					    .adapt = b->p->settings.adapt,
					    .promise_after = PROMISE_AFTER };
	const struct admit_job j = { .request = io, .model = known.predicts ? b->p->model : NULL };
	struct admit_terms t;
	struct sched_request q;
	double *own;
	int status = admit_terms(daemons_first(b->daemons, b->seat[job].daemon), now_ns, &known, &j,
				 b->decision, &t, err);

	if (status)
		return status;
	q = admit_request(&t, io);
	if (q.batch == t.batch || q.epochs == &t.epochs) { /* the scheduler borrows them until it ends */
		own = mem_array(t.n_batches + 1, sizeof *own);
		if (!own)
			return err_nomem(err, "the batches of a job");
		for (size_t i = 0; i < t.n_batches; i++)
			own[i] = t.batch[i];
		own[t.n_batches] = t.epochs;
		q.batch = q.batch == t.batch ? own : q.batch;
		q.epochs = q.epochs == &t.epochs ? own + t.n_batches : q.epochs;
		b->decided[job].terms = own;
	}
	*io = q;
	return 0;
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
		.slo_s = j->slo_s,
		.confidence = replay_confidence(b->p, j),
		.best_effort = j->best_effort,
		.steer = j->steer && world_can_steer(b->p->world),
		.may_stop = j->may_stop,
		.chance = chance_of(b, j),
		.value = trace_value(j),
		.memory_mb = k->memory_mb,
		.memory_mb_per_record = k->memory_mb_per_record,
		.max_memory_mb = NAN,
		.device = { .least = bound->gpus },
	};
	struct decision *d = b->decision;
	enum sched_verdict verdict;
	struct err why = { 0 };
	int status;

	b->seat[job].daemon = daemon_of(b, job);
	status = admit(b, now_ns, job, &r, &why);
	if (!status)
		status = daemons_submit(b->daemons, now_ns, &r, &b->seat[job], d, &verdict, &why);

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
		b->decided[job].told_s = io->promised_s;
		b->decided[job].told_upper_s = io->promised_upper_s;
		b->decided[job].limit_s = verdict == SCHED_PROMISED ? j->slo_s : NAN;
	}
	io->node = b->seat[job].node;
	io->promised = verdict == SCHED_PROMISED;
	io->by_chance = verdict == SCHED_CHANCE;
	io->state = OUTCOME_REJECTED;
	return 0;
}

/* When others think that a job ends which starts now: by its bound. */
static int64_t expected_end_ns(int64_t now_ns, const struct candidate *c)
{
	double s = isnan(c->upper_s) ? c->time_s : c->upper_s;

	return s >= 0.0 && s < 1e9 ? now_ns + (int64_t)(1e9 * s) : SCHED_NEVER;
}

static bool brain_next(void *self, int64_t now_ns, struct brain_start *out)
{
	struct brain *b = self;
	struct daemons_seat seat;
	const struct candidate *c;
	uint64_t id;

	if (!daemons_next(b->daemons, now_ns, &id, b->decision, &seat))
		return false;
	c = &b->decision->candidate[b->decision->chosen >= 0 ? b->decision->chosen : 0];
	*out = (struct brain_start){ .job = (size_t)(id - 1),
				     .node = seat.node,
				     .batch = c->decision,
				     .epochs = c->epochs,
				     .run_s = c->time_s,
				     .run_upper_s = c->upper_s,
				     .predicted_accuracy = c->accuracy };
	b->decided[out->job].model_s = c->model_s;
	b->decided[out->job].upper_s = c->upper_s;
	b->decided[out->job].batch = c->decision;
	daemons_started(b->daemons, now_ns, seat, id, cpus_of(b, out->job), expected_end_ns(now_ns, c),
			&b->failed);
	return true;
}

static bool brain_dropped(void *self, int64_t now_ns, size_t *out_job)
{
	struct brain *b = self;
	uint64_t id;

	if (!daemons_hopeless(b->daemons, &id))
		return false;
	*out_job = (size_t)(id - 1);
	return !leave(b, now_ns, *out_job, NULL);
}

static int64_t brain_stops_ns(void *self, size_t *out_job)
{
	uint64_t id = 1;
	int64_t at_ns = daemons_overtime_ns(((struct brain *)self)->daemons, &id);

	*out_job = (size_t)(id - 1);
	return at_ns;
}

static uint32_t brain_gives_back(void *self, int64_t now_ns, size_t job, double part, uint32_t epochs)
{
	struct brain *b = self;
	struct sched *s = daemons_sched(b->daemons, b->seat[job]);

	sched_progress(s, now_ns, job + 1, part, NULL);
	return sched_gives_back(s, now_ns, job + 1, (uint32_t)floor(part * epochs * (1.0 + 1e-9)), epochs);
}

/* Only a policy that can do it is told of epochs; its ablation is, too, so that both know as much. */
static uint32_t brain_steers(void *self, size_t job, double epochs)
{
	struct brain *b = self;
	const struct trace_job *j = &b->p->trace->job[job];
	const struct policy *policy = b->p->policy->choice.policy;
	const struct model *m = b->p->model;
	int at = m ? schema_role(m->schema, ROLE_EPOCHS) : -1;

	if (!j->steer || !world_can_steer(b->p->world) || !policy->looks_ahead || at < 0)
		return 0;
	if (isnan(epochs) && b->kinds.has_values)
		epochs = b->kinds.kind[j->kind].values.number[at];
	return epochs >= 2.0 && epochs <= 1e6 && epochs == floor(epochs) ? (uint32_t)epochs : 0;
}

static int brain_steer(void *self, int64_t now_ns, size_t job, const struct steer_report *r,
		       struct steer_answer *out, struct err *err)
{
	struct brain *b = self;
	struct sched *s = daemons_sched(b->daemons, b->seat[job]);
	int status = sched_progress(s, now_ns, job + 1, (double)r->epoch / r->epochs, err);

	return status ? status : sched_steer(s, now_ns, job + 1, r, out, err);
}

static int brain_stopped(void *self, int64_t now_ns, size_t job, struct err *err)
{
	return leave(self, now_ns, job, err);
}

/* Why the model does not know such jobs; "": it does. */
static void strangeness(const struct brain *b, size_t job, char why[STRANGERS_TEXT])
{
	const struct bound_kind *k = &b->kinds.kind[b->p->trace->job[job].kind];

	why[0] = '\0';
	if (b->kinds.has_values)
		model_knows(b->p->model, &k->values, k->n_epochs > 0, why, STRANGERS_TEXT);
}

/* What its end leaves for the admission of others. */
static void remember(struct brain *b, int64_t now_ns, size_t job, bool failed, const char *stranger)
{
	const struct failing_who who = { .type = b->p->trace->job[job].type };
	double batch = b->decided[job].batch;

	if (failed) {
		failing_add(&b->failing, who, batch, NULL, now_ns);
	} else {
		failing_ended_well(&b->failing, who, batch, now_ns);
		strangers_count(&b->strangers, who.type, stranger);
	}
}

static int brain_ended(void *self, int64_t now_ns, size_t job, bool failed, double run_s, struct err *err)
{
	struct brain *b = self;
	const struct trace_job *j = &b->p->trace->job[job];
	const struct job_values *values = b->kinds.has_values ? &b->kinds.kind[j->kind].values : NULL;
	struct sched *s = daemons_sched(b->daemons, b->seat[job]);
	struct pairs_met met;
	double as_started_s = sched_as_started_s(s, job + 1, run_s);
	char stranger[STRANGERS_TEXT];
	struct sched_observation seen = {
		.type = j->type,
		.values = values,
		.cpus = b->p->trace->kind[j->kind].cpus,
		.confidence = replay_confidence(b->p, j),
		.model_s = b->decided[job].model_s,
		.upper_s = b->decided[job].upper_s,
		.foreseen_s = sched_foreseen_s(s, now_ns, job + 1, as_started_s),
		.actual_s = as_started_s,
		.response_s = 1e-9 * (double)(now_ns - j->arrival_ns),
		.waited_s = 1e-9 * (double)(now_ns - j->arrival_ns) - run_s,
		.told_s = b->decided[job].told_s,
		.told_upper_s = b->decided[job].told_upper_s,
		.limit_s = b->decided[job].limit_s,
		.met = &met,
	};
	int status;

	strangeness(b, job, stranger);
	seen.stranger = *stranger;
	remember(b, now_ns, job, failed, stranger);
	sched_met(s, now_ns, job + 1, &met);
	status = leave(b, now_ns, job, err);

	if (!status && b->failed.code) {
		if (err)
			*err = b->failed;
		return -(int)b->failed.code;
	}
	if (!status && !failed)
		sched_observe(s, &seen);
	return status;
}

static size_t brain_waiting(void *self)
{
	return daemons_queued(((struct brain *)self)->daemons);
}

const struct brain_ops brain_sched = {
	.places = true,
	.make = brain_make,
	.destroy = brain_destroy,
	.arrive = brain_arrive,
	.next = brain_next,
	.dropped = brain_dropped,
	.stops_ns = brain_stops_ns,
	.gives_back = brain_gives_back,
	.steers = brain_steers,
	.steer = brain_steer,
	.stopped = brain_stopped,
	.ended = brain_ended,
	.waiting = brain_waiting,
};
