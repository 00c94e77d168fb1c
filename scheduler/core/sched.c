/* The events of the scheduler. sched_internal.h says what else is where; the decision itself is in
 * decide.c. */
#include "scheduler/core/sched.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/sched_internal.h"

const char *sched_verdict_name(enum sched_verdict v)
{
	switch (v) {
	case SCHED_PROMISED: return "promised";
	case SCHED_BEST_EFFORT: return "best_effort";
	case SCHED_REJECTED: return "rejected";
	case SCHED_CHANCE: return "chance";
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
	if (m->device_memory_mb < 0.0)
		return err_fail(err, ERR_ARG, "devices with %g MB of memory: need 0 (not known) or more",
				m->device_memory_mb);
	if (!(p->window_s >= 0.0 && p->window_s <= 1e9))
		return err_fail(err, ERR_ARG, "a window of %g s: need 0 (the default) to 1e9", p->window_s);
	for (size_t i = 0; i <= p->n_own_models; i++) {
		const struct model *one = i ? p->own_model[i - 1] : p->model;
		int rc;

		if (one && !one->time.predictor.ops)
			return err_fail(err, ERR_ARG, "a model without a model of time");
		if (!one && (i || p->may_lack))
			continue;
		rc = policy_accepts(&p->policy, one, err);
		if (rc)
			return rc;
	}
	return 0;
}

void sched_set(struct sched *s, const struct sched_params *p)
{
	const struct model *first = NULL;

	for (size_t i = 0; i < s->n_learnt && !first; i++)
		first = s->learnt[i].model;
	s->predicts = first != NULL;
	s->rule = policy_resolve(&p->policy);
	s->policy = p->policy;
	s->policy.policy = &s->rule;
	s->machine = p->machine;
	s->most_slots = p->machine.slots;
	s->machine.slots = guest_slots(s);
	s->fluid = decide_machine(first, p->machine.cores, s->machine.slots);
	s->fluid.devices = p->machine.devices;
	s->max_unstarted_cpus = p->max_unstarted_cpus;
	s->window_s = p->window_s > 0.0 ? p->window_s : SCHED_DEFAULT_WINDOW_S;
	s->looks_ahead = s->rule.looks_ahead && first;
	s->adapts = p->adapt && first && s->rule.bounds;
	s->kinds = s->looks_ahead && s->adapts && !(p->policy.without & LAYER_KINDS);
	pairs_set_room(s->pairs, fmin(s->fluid.cores, s->most_slots));
	if (p->policy.without & LAYER_OTHER_WORK)
		s->other_load = s->foreseen.load = s->foreseen.spread = 0.0;
	if (p->policy.without & LAYER_START_LAG)
		s->lag_s = 0.0;
}

/* What belongs to its jobs alone. */
static int make_own(struct sched *s, size_t n, struct err *err)
{
	const struct live_list empty = { .first = NO_JOB, .last = NO_JOB, .root = JOB_ORDER_NONE };

	s->max_jobs = n;
	s->last_ns = s->plan_ns = s->quiet_ns = s->changed_ns = INT64_MIN;
	s->plan = s->running = s->apart = s->apart_waiting = empty;
	s->live = mem_calloc(n, sizeof *s->live);
	s->spare = mem_array(n, sizeof *s->spare);
	s->met_from = mem_array(n, sizeof *s->met_from);
	if (!s->live || !s->spare || !s->met_from || job_order_init(&s->queues, n) || tenants_init(s) ||
	    job_index_init(&s->index, n))
		return err_nomem(err, "a scheduler of %zu jobs", n);
	for (size_t i = n; i-- > 0;)
		s->spare[s->n_spare++] = (uint32_t)i;
	return 0;
}

/* What schedulers may share: memory for one decision at a time, and what is learnt. */
static int make_shared(struct sched *s, const struct sched_params *p, struct err *err)
{
	size_t n = p->max_jobs, scene = n + SCENE_STREAMS + SCHED_MAX_GUESTS;
	int rc;

	s->order.place = mem_array(n + 1, sizeof *s->order.place);
	s->scene_running = mem_array(n + SCHED_MAX_GUESTS + 1, sizeof *s->scene_running);
	s->scene_queued = mem_array(scene + 1, sizeof *s->scene_queued);
	s->neighbour = mem_array(scene + 1, sizeof *s->neighbour);
	s->before = mem_array(scene + 1, sizeof *s->before);
	s->trial = mem_alloc(sizeof *s->trial);
	s->price = mem_calloc(1, sizeof *s->price);
	if (!s->order.place || !s->scene_running || !s->scene_queued || !s->neighbour || !s->before ||
	    !s->trial || !s->price)
		return err_nomem(err, "a scheduler of %zu jobs", n);
	rc = decide_scratch_new(scene, &s->scratch, err);
	if (!rc)
		rc = pairs_new(&s->pairs, err);
	return rc ? rc : learn_use(s, p, err);
}

int sched_new(const struct sched_params *p, struct sched **out, struct err *err)
{
	struct sched *s;
	int rc = sched_check_params(p, err);

	if (rc)
		return rc;
	if (!p->max_jobs || p->max_jobs > FLUID_MAX_JOBS / 2)
		return err_fail(err, ERR_ARG, "room for %zu jobs: need 1 to %u", p->max_jobs,
				FLUID_MAX_JOBS / 2);
	s = mem_calloc(1, sizeof *s);
	if (!s)
		return err_nomem(err, "a scheduler");
	s->seed = p->seed;
	rc = make_own(s, p->max_jobs, err);
	if (!rc)
		rc = make_shared(s, p, err);
	if (rc) {
		sched_free(s);
		return rc;
	}
	sched_set(s, p);
	*out = s;
	return 0;
}

int sched_new_beside(struct sched *first, const struct sched_params *p, struct sched **out, struct err *err)
{
	struct sched *s;
	int rc = sched_check_params(p, err);

	if (rc)
		return rc;
	if (!p->max_jobs || p->max_jobs > first->max_jobs || first->beside)
		return err_fail(err, ERR_ARG, "room for %zu jobs beside %zu: need 1 to as many", p->max_jobs,
				first->max_jobs);
	s = mem_calloc(1, sizeof *s);
	if (!s)
		return err_nomem(err, "a scheduler");
	s->beside = first;
	first->n_beside++;
	s->seed = p->seed;
	rc = make_own(s, p->max_jobs, err);
	if (rc) {
		sched_free(s);
		return rc;
	}
	s->order.place = first->order.place;
	s->scene_running = first->scene_running;
	s->scene_queued = first->scene_queued;
	s->neighbour = first->neighbour;
	s->before = first->before;
	s->trial = first->trial;
	s->scratch = first->scratch;
	s->price = first->price;
	s->pairs = first->pairs;
	s->learnt = first->learnt;
	s->n_learnt = first->n_learnt;
	sched_set(s, p);
	*out = s;
	return 0;
}

static void free_shared(struct sched *s)
{
	decide_scratch_free(s->scratch);
	learn_release(s);
	pairs_free(s->pairs);
	free(s->order.place);
	free(s->before);
	free(s->trial);
	free(s->price);
	free(s->scene_running);
	free(s->scene_queued);
	free(s->neighbour);
}

void sched_free(struct sched *s)
{
	if (!s)
		return;
	if (s->beside)
		s->beside->n_beside--;
	else
		free_shared(s);
	job_index_release(&s->index);
	sched_tenants_release(s);
	job_order_release(&s->queues);
	free(s->live);
	free(s->spare);
	free(s->met_from);
	free(s);
}

/* ---- arrival ---- */

int sched_check_request(const struct sched *s, const struct sched_request *r, struct err *err)
{
	const double amount[] = { r->memory_mb, r->memory_mb_per_record, r->max_memory_mb };
	size_t n, n_epochs = r->epochs ? r->n_epochs : 1;
	const struct model *m = r->model < s->n_learnt ? model_of(s, r) : NULL;
	const double *batch;

	if (r->model >= s->n_learnt)
		return err_fail(err, ERR_ARG, "a job of model %u, and there are %zu", r->model, s->n_learnt);
	batch = live_batches(s, r, &n);
	if (!r->cpus)
		return err_fail(err, ERR_ARG, "a job with 0 cpus: need at least 1");
	if (m && !r->values)
		return err_fail(err, ERR_ARG, "a job without values, and a model that asks for them");
	if (!n || !n_epochs || n > DECIDE_MAX_CANDIDATES / n_epochs)
		return err_fail(err, ERR_ARG,
				"%zu batches x %zu numbers of epochs to choose from: need 1 to %d pairs", n,
				n_epochs, DECIDE_MAX_CANDIDATES);
	for (size_t i = 0; i < n; i++)
		if (!isfinite(batch[i]) || (i && !(batch[i] > batch[i - 1])))
			return err_fail(err, ERR_ARG, "batch %g: need numbers in ascending order", batch[i]);
	for (size_t i = 0; r->epochs && i < n_epochs; i++)
		if (!isfinite(r->epochs[i]) || !(r->epochs[i] > (i ? r->epochs[i - 1] : 0.0)))
			return err_fail(err, ERR_ARG, "%g epochs: need numbers above 0 in ascending order",
					r->epochs[i]);
	if (r->epochs && m && schema_role(m->schema, ROLE_EPOCHS) < 0)
		return err_fail(err, ERR_ARG, "the epochs are open, and the model has no column of them");
	if (s->tenants_given && r->tenant >= s->n_tenants)
		return err_fail(err, ERR_ARG, "a job of tenant %u, and there are %zu", r->tenant,
				s->n_tenants);
	if (!(r->confidence > 0.0 && r->confidence < 1.0))
		return err_fail(err, ERR_ARG, "confidence %g: need a number between 0 and 1", r->confidence);
	if (!(r->chance >= 0.0 && r->chance < 1.0))
		return err_fail(err, ERR_ARG, "chance %g: need 0 (none) to below 1", r->chance);
	for (size_t i = 0; i < sizeof amount / sizeof *amount; i++)
		if (amount[i] < 0.0)
			return err_fail(err, ERR_ARG, "%g MB of memory: need 0 or more", amount[i]);
	if (r->device.records_each < 0.0 || r->device.memory_mb < 0.0 || r->device.memory_mb_per_record < 0.0)
		return err_fail(err, ERR_ARG, "%g records and %g MB for a device: need 0 or more",
				r->device.records_each,
				fmin(r->device.memory_mb, r->device.memory_mb_per_record));
	return 0;
}

int sched_soonest(const struct decision *d, unsigned reasons, bool bounds)
{
	double least_s = INFINITY;
	int least = -1;

	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];
		double s = bounds && !isnan(c->guard_s) ? c->guard_s : c->time_s;

		if (!(c->reasons & reasons) && !isnan(s) && (least < 0 || s < least_s)) {
			least = (int)i;
			least_s = s;
		}
	}
	return least;
}

static enum sched_verdict verdict_of(const struct sched *s, const struct sched_request *r, struct decision *d,
				     bool by_chance)
{
	bool objective = !isnan(r->slo_s);

	if (s->policy.policy->admits_all) {
		if (d->chosen < 0)
			return SCHED_REJECTED; /* it fits nowhere */
		return objective && model_of(s, r) && d->candidate[d->chosen].feasible ? SCHED_PROMISED
										       : SCHED_BEST_EFFORT;
	}
	if (by_chance)
		return SCHED_CHANCE;
	if (d->chosen >= 0)
		return objective && model_of(s, r) ? SCHED_PROMISED : SCHED_BEST_EFFORT;
	if (r->best_effort || !objective)
		d->chosen = sched_soonest(d, REASONS_NO_ROOM, false); /* held, if need be */
	return d->chosen >= 0 ? SCHED_BEST_EFFORT : SCHED_REJECTED;
}

void sched_add_lag(const struct sched *s, struct decision *d)
{
	d->smallest_slo_s += s->lag_s;
	for (size_t i = 0; i < d->n_candidates; i++)
		d->candidate[i].wait_upper_s += s->lag_s;
}

static int arrive(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
		  enum sched_verdict *out_verdict, struct seat *out_seat, struct err *err)
{
	struct sched_request plain = *r;
	bool by_chance;
	int rc = sched_check_request(s, r, err);

	plain.slo_s -= s->lag_s;
	if (s->policy.no_chance)
		plain.chance = 0.0;
	if (!rc && !model_of(s, r) && !s->policy.policy->choose) {
		plain.slo_s = NAN; /* nothing can be said about its time */
		plain.chance = 0.0;
	}
	if (!rc)
		rc = place_arrival(s, live_clock(s, now_ns), &plain, out, out_seat, &by_chance, err);
	if (!rc) {
		sched_add_lag(s, out);
		*out_verdict = verdict_of(s, r, out, by_chance);
	}
	return rc;
}

int sched_what_if(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
		  enum sched_verdict *out_verdict, struct err *err)
{
	struct seat seat;

	return arrive(s, now_ns, r, out, out_verdict, &seat, err);
}

static int check_room(const struct sched *s, const struct sched_request *r, struct err *err)
{
	const struct tenant *t;

	if (!r->id || job_index_find(&s->index, r->id) != JOB_INDEX_NONE)
		return err_fail(err, ERR_ARG, "job id %llu is %s", (unsigned long long)r->id,
				r->id ? "taken by a live job" : "no id");
	if (!s->n_spare)
		return err_fail(err, ERR_BUSY, "%zu jobs are queued or run, and no more may", s->max_jobs);
	if (!s->tenants_given || r->tenant >= s->n_tenants)
		return 0;
	t = &s->tenant[r->tenant];
	if (t->is.max_queued && t->n_queued >= t->is.max_queued && t->is.name)
		return err_fail(err, ERR_BUSY, "%zu jobs of %s are queued, and no more may", t->n_queued,
				t->is.name);
	if (t->is.max_queued && t->n_queued >= t->is.max_queued)
		return err_fail(err, ERR_BUSY, "%zu jobs of tenant %u are queued, and no more may",
				t->n_queued, r->tenant);
	return 0;
}

int sched_submit(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
		 enum sched_verdict *out_verdict, struct err *err)
{
	struct seat seat;
	uint32_t place;
	int rc = check_room(s, r, err);

	if (!rc)
		rc = arrive(s, now_ns, r, out, out_verdict, &seat, err);
	if (!rc && !r->apart)
		price_arrived(s, s->last_ns, r, out);
	if (rc || *out_verdict == SCHED_REJECTED)
		return rc;
	place = live_add(s, r, s->last_ns);
	live_take(s, &s->live[place], &out->candidate[out->chosen]);
	if (*out_verdict == SCHED_PROMISED) {
		s->live[place].promised = true;
		s->n_promised += !r->apart;
		if (r->apart)
			live_wait(s, place);
		else
			place_take(s, place, &seat);
	} else if (*out_verdict == SCHED_CHANCE) {
		s->live[place].by_chance = true;
		s->live[place].hopes_ns = s->last_ns;
		s->n_by_chance++;
		live_wait(s, place);
	} else if (r->priority > 0 && !r->apart) {
		s->live[place].turn_ns = s->last_ns;
		place_unpromised(s, s->last_ns, place);
	} else {
		live_wait(s, place);
	}
	return 0;
}

int sched_not_found(uint64_t id, struct err *err)
{
	return err_fail(err, ERR_NOTFOUND, "there is no live job %llu", (unsigned long long)id);
}

/* ---- while it runs ---- */

int sched_progress(struct sched *s, int64_t now_ns, uint64_t id, double done, struct err *err)
{
	uint32_t place;
	struct live *j = live_find(s, id, &place);
	double left_s, spread;

	if (!j)
		return sched_not_found(id, err);
	if (!j->running)
		return err_fail(err, ERR_ARG, "job %llu does not run yet", (unsigned long long)id);
	if (!(done >= 0.0 && done <= 1.0))
		return err_fail(err, ERR_ARG, "%g of the work done: need 0 to 1", done);
	now_ns = live_clock(s, now_ns);
	live_settle(s, now_ns);
	live_begun(j);
	if (!progress_report(&j->progress, done, j->done_s)) /* what is done stays done */
		return 0;
	live_changed(s);
	left_s = progress_left_s(&j->progress, &spread);
	j->total_s = j->done_s + left_s;
	j->said_late = live_chance(s, j, left_s / j->speed, 0.0, now_ns) < 0.5;
	return 0;
}

static void note_length(struct sched *s, double run_s)
{
	if (run_s > 0.0)
		s->usual_run_s = s->usual_run_s > 0.0 ? exp(0.9 * log(s->usual_run_s) + 0.1 * log(run_s))
						      : run_s;
}

int sched_remove(struct sched *s, int64_t now_ns, uint64_t id, struct err *err)
{
	uint32_t place;
	struct live *j = live_find(s, id, &place);

	if (!j)
		return sched_not_found(id, err);
	now_ns = live_clock(s, now_ns);
	tenants_settle(s, now_ns);
	if (j->running) {
		live_settle(s, now_ns);
		note_length(s, 1e-9 * (double)(now_ns - j->started_ns));
		live_end(s, place);
		live_set_speeds(s);
	} else {
		live_dequeue(s, place);
	}
	live_forget(s, place);
	return 0;
}

int sched_set_other_load(struct sched *s, int64_t now_ns, double processes, struct err *err)
{
	if (!(processes >= 0.0 && processes <= FLUID_MAX_OTHER_LOAD))
		return err_fail(err, ERR_ARG, "%g processes of others: need 0 to %g", processes,
				FLUID_MAX_OTHER_LOAD);
	if (s->policy.without & LAYER_OTHER_WORK)
		processes = 0.0;
	if (processes == s->other_load)
		return 0;
	if (s->last_ns != INT64_MIN || s->running.n) /* else there was no job to slow down */
		live_settle(s, live_clock(s, now_ns));
	if (s->last_ns == INT64_MIN && !s->usual.at_ns)
		usual_load_begin(&s->usual, now_ns, processes);
	else
		usual_load_pass(&s->usual, now_ns, s->other_load);
	s->other_load = processes;
	s->foreseen = (struct load_foreseen){ processes, 0.0 };
	if (!(s->policy.without & LAYER_USUAL_LOAD))
		s->foreseen = usual_load_foresee(&s->usual, s->usual_run_s, processes);
	live_set_speeds(s);
	live_changed(s);
	return 0;
}

/* ---- questions ---- */

size_t sched_running(const struct sched *s)
{
	return s->running.n + s->apart.n;
}

size_t sched_queued(const struct sched *s)
{
	return s->n_queued + s->apart_waiting.n;
}

uint32_t sched_slots_used(const struct sched *s)
{
	return s->slots_used < UINT32_MAX ? (uint32_t)s->slots_used : UINT32_MAX;
}

uint32_t sched_devices_used(const struct sched *s)
{
	return s->devices_used < UINT32_MAX ? (uint32_t)s->devices_used : UINT32_MAX;
}

bool sched_lives(const struct sched *s, uint64_t id)
{
	return job_index_find(&s->index, id) != JOB_INDEX_NONE;
}
