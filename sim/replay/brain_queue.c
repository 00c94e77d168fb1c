/* Simple baselines for comparisons: the paper's models and its choice of a batch, with a queue in front. The
 * queue is in the order of arrival or of deadlines, its first job starts when its cpus are free, and no job
 * passes it. It then takes the most accurate batch that is expected to end in time beside those that run, or
 * the fastest one.
 *
 *   fifo           takes every job, in the order of arrival
 *   edf            the same by deadline, the earliest first
 *   courier-waits  fifo that refuses a job if no batch is in time behind the wait: slot-seconds ahead / slots
 *
 * Memory is not looked at. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/core/decide.h"
#include "sim/replay/bound_kinds.h"
#include "sim/replay/brain.h"

struct queued {
	size_t job;
	int64_t key; /* the queue ascends in it */
	double slot_s; /* that it is expected to take */
};

struct running {
	size_t job;
	int64_t end_ns; /* expected */
};

struct queue {
	const struct replay_params *p;
	struct bound_kinds kinds;
	struct queued *waiting; /* [head, n) */
	size_t head, n, cap;
	struct running *running;
	struct fluid_job *scene; /* those that run, for a decision */
	size_t n_running;
	uint32_t slots, used;
	struct decision *decision;
};

static void queue_destroy(void *self)
{
	struct queue *q = self;

	if (!q)
		return;
	bound_kinds_release(&q->kinds);
	free(q->waiting);
	free(q->running);
	free(q->scene);
	free(q->decision);
	free(q);
}

static int queue_make(const struct replay_params *p, struct world_nodes *nodes, void **out_self,
		      struct err *err)
{
	struct queue *q = mem_calloc(1, sizeof *q);
	int status;

	(void)nodes; /* a policy must not look at the world */
	if (!q)
		return err_nomem(err, "a replay");
	q->p = p;
	q->slots = world_cluster(p->world)->slots;
	q->running = mem_array(q->slots, sizeof *q->running);
	q->scene = mem_calloc(q->slots, sizeof *q->scene);
	q->decision = mem_alloc(sizeof *q->decision);
	status = q->running && q->scene && q->decision
			 ? bound_kinds_init(&q->kinds, p->trace, p->world, p->model, err)
			 : err_nomem(err, "a replay");
	if (status)
		queue_destroy(q);
	else
		*out_self = q;
	return status;
}

static uint32_t cpus_of(const struct queue *q, size_t job)
{
	return q->p->trace->kind[q->p->trace->job[job].kind].cpus;
}

/* The paper's decision for a job that would start now; NULL: no batch is in time. */
static int decide_beside(struct queue *q, size_t job, double left_s, const struct candidate **out,
			 struct err *err)
{
	const struct bound_kind *k = &q->kinds.kind[q->p->trace->job[job].kind];
	struct decide_scene scene = {
		.policy = &q->p->policy->choice,
		.machine = decide_machine(q->p->model, world_cluster(q->p->world)->cores, q->slots),
		.running = q->scene,
		.n_running = q->n_running,
		.cpus = cpus_of(q, job),
		.most_cpus = q->slots,
		.starting = true,
		.memory_mb = NAN,
		.memory_mb_per_record = NAN,
		.memory_limit_mb = INFINITY,
		.who = { .type = -1 },
	};
	struct decide_params d = {
		.model = q->p->model,
		.job = &k->values,
		.candidate = k->batch,
		.n_candidates = k->n_batches,
		.epochs = k->epochs,
		.n_epochs = k->n_epochs,
		.slo_s = left_s,
		.confidence = q->p->settings.confidence,
		.scene = &scene,
	};
	int status;

	for (size_t i = 0; i < q->n_running; i++)
		q->scene[i] = (struct fluid_job){ .cpus = cpus_of(q, q->running[i].job) };
	status = decide(&d, q->decision, err);
	if (!status)
		*out = q->decision->chosen >= 0 ? &q->decision->candidate[q->decision->chosen] : NULL;
	return status;
}

static const struct candidate *fastest(const struct decision *d)
{
	const struct candidate *best = d->candidate;

	for (size_t i = 1; i < d->n_candidates; i++)
		if (d->candidate[i].time_s < best->time_s || isnan(best->time_s))
			best = &d->candidate[i];
	return best;
}

static double seconds(int64_t from_ns, int64_t to_ns)
{
	return to_ns == WORLD_NEVER ? NAN : 1e-9 * (double)(to_ns - from_ns);
}

/* Until a job at the end of the queue starts. */
static double wait_s(const struct queue *q, int64_t now_ns, uint32_t cpus)
{
	double slot_s = 0.0;

	if (q->head == q->n && q->used + cpus <= q->slots)
		return 0.0;
	for (size_t i = 0; i < q->n_running; i++)
		slot_s += cpus_of(q, q->running[i].job) * fmax(0.0, seconds(now_ns, q->running[i].end_ns));
	for (size_t i = q->head; i < q->n; i++)
		slot_s += q->waiting[i].slot_s;
	return slot_s / q->slots;
}

static int put_in_queue(struct queue *q, const struct queued *j, struct err *err)
{
	size_t at;

	if (q->head == q->n)
		q->head = q->n = 0;
	if (mem_grow((void **)&q->waiting, &q->cap, q->n + 1, sizeof *q->waiting))
		return err_nomem(err, "a queue of %zu jobs", q->n + 1);
	for (at = q->n++; at > q->head && q->waiting[at - 1].key > j->key; at--)
		q->waiting[at] = q->waiting[at - 1];
	q->waiting[at] = *j;
	return 0;
}

static int queue_arrive(void *self, int64_t now_ns, size_t job, struct outcome *io, struct err *err)
{
	struct queue *q = self;
	const struct trace_job *t = &q->p->trace->job[job];
	int64_t deadline_ns = brain_deadline_ns(t);
	struct queued j = { .job = job };
	const struct candidate *c = NULL;
	double ahead_s;
	int status;

	io->state = OUTCOME_REJECTED;
	if (cpus_of(q, job) > q->slots)
		return 0;
	if (q->p->policy->queue == SIM_QUEUE_EDF)
		j.key = deadline_ns;
	if (q->p->policy->queue == SIM_QUEUE_WAITS) {
		ahead_s = wait_s(q, now_ns, cpus_of(q, job));
		status = decide_beside(q, job, t->slo_s - ahead_s, &c, err);
		if (status || (!c && !t->best_effort))
			return status;
		io->promised = c && deadline_ns != WORLD_NEVER;
		c = c ? c : fastest(q->decision);
		io->promised_s = ahead_s + c->time_s;
		j.slot_s = cpus_of(q, job) * (isnan(c->time_s) ? 0.0 : c->time_s);
	}
	return put_in_queue(q, &j, err);
}

static bool queue_next(void *self, int64_t now_ns, struct brain_start *out)
{
	struct queue *q = self;
	const struct candidate *c = NULL;
	size_t job;

	if (q->head == q->n || q->used + cpus_of(q, q->waiting[q->head].job) > q->slots)
		return false;
	job = q->waiting[q->head++].job;
	/* a decision that was checked on arrival does not fail now */
	if (decide_beside(q, job, seconds(now_ns, brain_deadline_ns(&q->p->trace->job[job])), &c, NULL) || !c)
		c = fastest(q->decision);
	*out = (struct brain_start){ .job = job,
				     .batch = c->decision,
				     .epochs = c->epochs,
				     .run_s = c->time_s,
				     .run_upper_s = NAN,
				     .predicted_accuracy = c->accuracy };
	q->running[q->n_running++] =
		(struct running){ job, now_ns + (c->time_s < 9e9 ? (int64_t)(1e9 * c->time_s) : 0) };
	q->used += cpus_of(q, job);
	return true;
}

static int queue_ended(void *self, int64_t now_ns, size_t job, bool failed, double run_s, struct err *err)
{
	struct queue *q = self;
	size_t i = 0;

	(void)now_ns, (void)failed, (void)run_s, (void)err;
	while (q->running[i].job != job)
		i++;
	q->running[i] = q->running[--q->n_running];
	q->used -= cpus_of(q, job);
	return 0;
}

static size_t queue_waiting(void *self)
{
	const struct queue *q = self;

	return q->n - q->head;
}

const struct brain_ops brain_queue = {
	.make = queue_make,
	.destroy = queue_destroy,
	.arrive = queue_arrive,
	.next = queue_next,
	.ended = queue_ended,
	.waiting = queue_waiting,
};
