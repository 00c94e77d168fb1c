/* The events of the scheduler. The jobs and their work are in sched_live.c, what a decision sees of them in
 * sched_scene.c, restarts and other models in sched_change.c, the decision itself in decide.c. */
#include "scheduler/core/sched.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/sched_internal.h"

/* An early report says little (start-up, the first epoch reads the data): the prediction counts as much as a
 * report at this share of the work. */
#define PRIOR_WEIGHT 0.1

const char *sched_verdict_name(enum sched_verdict v)
{
	switch (v) {
	case SCHED_PROMISED: return "promised";
	case SCHED_BEST_EFFORT: return "best_effort";
	case SCHED_REJECTED: return "rejected";
	}
	return "unknown";
}

/* ---- a scheduler ---- */

int sched_check_params(const struct sched_params *p, struct err *err)
{
	const struct sched_machine *m = &p->machine;

	if (!(m->cores > 0.0)) /* also catches NaN */
		return err_fail(err, ERR_ARG, "a machine with %g cores: need more than 0", m->cores);
	if (!m->slots)
		return err_fail(err, ERR_ARG, "a machine with 0 slots: need at least 1");
	if (!(m->memory_mb > 0.0))
		return err_fail(err, ERR_ARG, "a machine with %g MB of memory: need more than 0",
				m->memory_mb);
	if (p->model && !p->model->time.predictor.ops)
		return err_fail(err, ERR_ARG, "a model without a model of time");
	return policy_accepts(&p->policy, p->model, err);
}

void sched_set(struct sched *s, const struct sched_params *p)
{
	s->policy = p->policy;
	s->model = p->model;
	s->machine = p->machine;
	s->fluid = decide_machine(p->model, p->machine.cores, p->machine.slots);
}

int sched_new(const struct sched_params *p, struct sched **out, struct err *err)
{
	const struct live_list empty = { .first = NOBODY, .last = NOBODY };
	size_t n = p->max_jobs, scene = n + SCENE_STREAMS;
	struct sched *s;
	int rc = sched_check_params(p, err);

	if (rc)
		return rc;
	if (!n || n > FLUID_MAX_JOBS / 2)
		return err_fail(err, ERR_ARG, "room for %zu jobs: need 1 to %u", n, FLUID_MAX_JOBS / 2);
	s = mem_calloc(1, sizeof *s);
	if (!s)
		return err_fail(err, ERR_NOMEM, "no memory for a scheduler");
	s->max_jobs = n;
	s->seed = p->seed;
	s->last_ns = INT64_MIN;
	s->queue = s->running = empty;
	s->live = mem_array(n, sizeof *s->live);
	s->spare = mem_array(n, sizeof *s->spare);
	s->scene_running = mem_array(n + 1, sizeof *s->scene_running);
	s->scene_queued = mem_array(scene, sizeof *s->scene_queued);
	s->neighbour = mem_array(scene + 1, sizeof *s->neighbour);
	if (!s->live || !s->spare || !s->scene_running || !s->scene_queued || !s->neighbour ||
	    job_index_init(&s->index, n))
		rc = err_fail(err, ERR_NOMEM, "no memory for a scheduler of %zu jobs", n);
	if (!rc)
		rc = decide_scratch_new(scene, &s->scratch, err);
	if (rc) {
		sched_free(s);
		return rc;
	}
	for (size_t i = n; i-- > 0;)
		s->spare[s->n_spare++] = (uint32_t)i;
	sched_set(s, p);
	*out = s;
	return 0;
}

void sched_free(struct sched *s)
{
	if (!s)
		return;
	decide_scratch_free(s->scratch);
	job_index_release(&s->index);
	free(s->live);
	free(s->spare);
	free(s->scene_running);
	free(s->scene_queued);
	free(s->neighbour);
	free(s);
}

/* ---- arrival ---- */

int sched_check_request(const struct sched *s, const struct sched_request *r, struct err *err)
{
	const double amount[] = { r->memory_mb, r->memory_mb_per_record, r->max_memory_mb };
	size_t n;
	const double *batch = live_batches(s, r, &n);

	if (!r->cpus)
		return err_fail(err, ERR_ARG, "a job with 0 cpus: need at least 1");
	if (s->model && !r->values)
		return err_fail(err, ERR_ARG, "a job without values, and a model that asks for them");
	if (!n || n > DECIDE_MAX_CANDIDATES)
		return err_fail(err, ERR_ARG, "%zu batches to choose from: need 1 to %d", n,
				DECIDE_MAX_CANDIDATES);
	for (size_t i = 0; i < n; i++)
		if (!isfinite(batch[i]) || (i && !(batch[i] > batch[i - 1])))
			return err_fail(err, ERR_ARG, "batch %g: need numbers in ascending order", batch[i]);
	if (!(r->confidence > 0.0 && r->confidence < 1.0))
		return err_fail(err, ERR_ARG, "confidence %g: need a number between 0 and 1", r->confidence);
	for (size_t i = 0; i < sizeof amount / sizeof *amount; i++)
		if (amount[i] < 0.0)
			return err_fail(err, ERR_ARG, "%g MB of memory: need 0 or more", amount[i]);
	return 0;
}

static int ask(struct sched *s, int64_t now_ns, const struct sched_request *r, double slo_s, bool starting,
	       struct decision *out, struct err *err)
{
	struct decide_scene scene;
	struct decide_params p = { .model = s->model,
				   .job = r->values,
				   .slo_s = slo_s,
				   .confidence = r->confidence,
				   .scene = &scene };

	p.candidate = live_batches(s, r, &p.n_candidates);
	scene_make(s, now_ns, r, starting, &scene);
	return decide(&p, out, err);
}

/* The candidate that is first by time (by its bound where it has one and `bounds` says so) among those with none
 * of these reasons; -1: there is none. */
static int soonest(const struct decision *d, unsigned reasons, bool bounds)
{
	double least_s = INFINITY;
	int least = -1;

	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];
		double s = bounds && !isnan(c->upper_s) ? c->upper_s : c->time_s;

		if (!(c->reasons & reasons) && !isnan(s) && (least < 0 || s < least_s)) {
			least = (int)i;
			least_s = s;
		}
	}
	return least;
}

/* As soonest(), of those whose effect on the others is known: a best-effort job breaks no promise either. */
static int harmless(const struct decision *d)
{
	int least = -1;

	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if (!(c->reasons & (REASON_MEMORY | REASON_TOO_WIDE | REASON_BREAKS_PROMISE)) &&
		    !isnan(c->delays_s) && !isnan(c->time_s) &&
		    (least < 0 || c->time_s < d->candidate[least].time_s))
			least = (int)i;
	}
	return least;
}

static enum sched_verdict verdict_of(const struct sched *s, const struct sched_request *r, struct decision *d)
{
	bool objective = !isnan(r->slo_s);

	if (s->policy.policy->admits_all) {
		if (d->chosen < 0)
			return SCHED_REJECTED; /* it fits nowhere */
		return objective && s->model && d->candidate[d->chosen].feasible ? SCHED_PROMISED
										 : SCHED_BEST_EFFORT;
	}
	if (d->chosen >= 0)
		return objective ? SCHED_PROMISED : SCHED_BEST_EFFORT;
	if (r->best_effort || !objective)
		d->chosen = harmless(d);
	return d->chosen >= 0 ? SCHED_BEST_EFFORT : SCHED_REJECTED;
}

int sched_what_if(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
		  enum sched_verdict *out_verdict, struct err *err)
{
	int rc = sched_check_request(s, r, err);

	if (rc)
		return rc;
	now_ns = live_clock(s, now_ns);
	rc = ask(s, now_ns, r, r->slo_s, false, out, err);
	if (!rc)
		*out_verdict = verdict_of(s, r, out);
	return rc;
}

int sched_submit(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
		 enum sched_verdict *out_verdict, struct err *err)
{
	enum sched_verdict verdict;
	uint32_t place;
	int rc;

	if (!r->id || job_index_find(&s->index, r->id) != JOB_INDEX_NONE)
		return err_fail(err, ERR_ARG, "job id %llu is %s", (unsigned long long)r->id,
				r->id ? "taken by a live job" : "no id");
	if (!s->n_spare)
		return err_fail(err, ERR_BUSY, "%zu jobs are queued or run, and no more may", s->max_jobs);
	rc = sched_what_if(s, now_ns, r, out, &verdict, err);
	if (rc)
		return rc;
	*out_verdict = verdict;
	if (verdict == SCHED_REJECTED)
		return 0;
	place = live_add(s, r, s->last_ns);
	s->live[place].promised = verdict == SCHED_PROMISED;
	live_take(&s->live[place], &out->candidate[out->chosen]);
	live_enqueue(s, place);
	return 0;
}

/* ---- start ---- */

/* Puts another one in the place of the chosen. */
static void choose_instead(struct decision *d, int chosen, unsigned why)
{
	const unsigned lost = REASON_LOWER_ACCURACY | REASON_SLOWER | REASON_NOT_PICKED;

	if (chosen == d->chosen)
		return;
	if (d->chosen >= 0)
		d->candidate[d->chosen].reasons |= why;
	d->chosen = chosen;
	d->candidate[chosen].reasons &= ~lost;
}

static int find_batch(const struct decision *d, double batch)
{
	for (size_t i = 0; i < d->n_candidates; i++)
		if (d->candidate[i].decision == batch)
			return (int)i;
	return -1;
}

/* It was admitted, so it starts: when none of the candidates is in time, as soon as can be. */
static int least_bad(const struct sched *s, const struct live *j, const struct decision *d)
{
	const unsigned room = REASON_MEMORY | REASON_TOO_WIDE;
	bool bounds = s->policy.policy->bounds && j->promised;
	int i = -1;

	if (!j->promised)
		i = harmless(d);
	if (i < 0)
		i = soonest(d, room, bounds);
	if (i < 0)
		i = soonest(d, 0, bounds); /* its owner started it, room or not */
	if (i < 0)
		i = find_batch(d, j->taken.decision);
	return i < 0 ? 0 : i;
}

static void decide_start(struct sched *s, int64_t now_ns, struct live *j, struct decision *out)
{
	double left_s = live_until_s(j->deadline_ns, now_ns);

	if (ask(s, now_ns, &j->r, isinf(left_s) ? NAN : left_s, true, out, NULL)) {
		/* Nothing of what was checked on arrival fails now; the batch decided then would do. */
		out->candidate[0] = j->taken;
		out->n_candidates = 1;
		out->chosen = 0;
		return;
	}
	if (s->policy.policy->choose) { /* drawn once, when it arrived */
		int drawn = find_batch(out, j->taken.decision);

		if (drawn >= 0)
			choose_instead(out, drawn, REASON_NOT_PICKED);
	}
	if (out->chosen < 0)
		choose_instead(out, least_bad(s, j, out), 0);
}

/* From the queue to those that run. */
static void start(struct sched *s, int64_t now_ns, uint32_t place, struct decision *out)
{
	struct live *j = &s->live[place];

	live_dequeue(s, place);
	decide_start(s, now_ns, j, out);
	live_take(j, &out->candidate[out->chosen]);
	live_settle(s, now_ns);
	j->running = true;
	j->started_ns = now_ns;
	live_append(s, &s->running, place);
	s->slots_used += j->r.cpus;
	live_set_speeds(s);
}

/* Memory of the batch it was admitted with; or of its smallest, where a change of the machine has left no room
 * for that. */
static double wanted_mb(const struct sched *s, const struct live *j)
{
	size_t n;
	const double *batch = live_batches(s, &j->r, &n);
	double mb = live_memory_mb(&j->r, j->taken.decision);

	return mb <= s->machine.memory_mb || !n ? mb : live_memory_mb(&j->r, batch[0]);
}

/* The next in turn; NOBODY while it has to wait. Jobs that can never start on the machine as it is now are passed
 * over, as the look-ahead does: they wait for another change. */
static uint32_t in_turn(const struct sched *s)
{
	uint32_t i = s->queue.first;
	const struct live *j;

	while (i != NOBODY &&
	       (s->live[i].r.cpus > s->machine.slots || wanted_mb(s, &s->live[i]) > s->machine.memory_mb))
		i = s->live[i].next;
	if (i == NOBODY)
		return NOBODY;
	j = &s->live[i];
	if (s->slots_used + j->r.cpus > s->machine.slots)
		return NOBODY;
	/* alone it fits, whatever the rounding of a sum says */
	if (s->running.n && isfinite(s->machine.memory_mb) &&
	    live_memory_used_mb(s) + wanted_mb(s, j) > s->machine.memory_mb)
		return NOBODY;
	return i;
}

bool sched_next(struct sched *s, int64_t now_ns, uint64_t *out_id, struct decision *out)
{
	uint32_t place;

	now_ns = live_clock(s, now_ns);
	place = in_turn(s);
	if (place == NOBODY)
		return false;
	start(s, now_ns, place, out);
	*out_id = s->live[place].r.id;
	return true;
}

static int not_found(uint64_t id, struct err *err)
{
	return err_fail(err, ERR_NOTFOUND, "there is no live job %llu", (unsigned long long)id);
}

int sched_start_now(struct sched *s, int64_t now_ns, uint64_t id, struct decision *out, struct err *err)
{
	uint32_t place;
	const struct live *j = live_find(s, id, &place);

	if (!j)
		return not_found(id, err);
	if (j->running)
		return err_fail(err, ERR_ARG, "job %llu runs already", (unsigned long long)id);
	start(s, live_clock(s, now_ns), place, out);
	return 0;
}

/* ---- while it runs ---- */

int sched_progress(struct sched *s, int64_t now_ns, uint64_t id, double done, struct err *err)
{
	uint32_t place;
	struct live *j = live_find(s, id, &place);
	double observed_s;

	if (!j)
		return not_found(id, err);
	if (!j->running)
		return err_fail(err, ERR_ARG, "job %llu does not run yet", (unsigned long long)id);
	if (!(done >= 0.0 && done <= 1.0))
		return err_fail(err, ERR_ARG, "%g of the work done: need 0 to 1", done);
	now_ns = live_clock(s, now_ns);
	live_settle(s, now_ns);
	if (done <= j->reported || isnan(j->prior_s)) /* what is done stays done */
		return 0;
	j->reported = done;
	observed_s = j->done_s / done;
	j->total_s = j->done_s +
		     (1.0 - done) * (PRIOR_WEIGHT * j->prior_s + done * observed_s) / (PRIOR_WEIGHT + done);
	return 0;
}

int sched_remove(struct sched *s, int64_t now_ns, uint64_t id, struct err *err)
{
	uint32_t place;
	struct live *j = live_find(s, id, &place);

	if (!j)
		return not_found(id, err);
	now_ns = live_clock(s, now_ns);
	if (j->running) {
		live_settle(s, now_ns);
		live_unlink(s, &s->running, place);
		s->slots_used -= j->r.cpus;
		live_set_speeds(s);
	} else {
		live_dequeue(s, place);
	}
	live_forget(s, place);
	return 0;
}

/* ---- questions ---- */

size_t sched_running(const struct sched *s)
{
	return s->running.n;
}

size_t sched_queued(const struct sched *s)
{
	return s->queue.n;
}

uint32_t sched_slots_used(const struct sched *s)
{
	return s->slots_used < UINT32_MAX ? (uint32_t)s->slots_used : UINT32_MAX;
}

bool sched_lives(const struct sched *s, uint64_t id)
{
	return job_index_find(&s->index, id) != JOB_INDEX_NONE;
}
