/* The live jobs: their places, the lists they wait and run in, and how far the work of each has come.
 *
 * Work is counted in seconds alone. While P processes run, a job's grows by 1 / S(P) a second
 * (queueing/fluid.h), so it is settled only when a job starts or ends: in between it is a straight line. */
#include <assert.h>
#include <math.h>

#include "scheduler/core/sched_internal.h"

/* A job that is past its expected work has this part of what it has done still before it: the longer it is
 * late, the less is known of its end, but it never counts as nothing. Not a moment before: what is planned
 * for a job that ends as expected stays as it was. */
#define LATE_REST 0.05
#define LEAST_SPREAD 0.03 /* of a job's time: nothing that runs is sure to the second */

/* ---- places and lists ---- */

struct live *live_find(struct sched *s, uint64_t id, uint32_t *out_place)
{
	uint32_t place = job_index_find(&s->index, id);

	*out_place = place;
	return place == JOB_INDEX_NONE ? NULL : &s->live[place];
}

int live_find_running(struct sched *s, uint64_t id, struct live **out, struct err *err)
{
	uint32_t place;
	struct live *j = live_find(s, id, &place);

	if (!j)
		return sched_not_found(id, err);
	if (!j->running)
		return err_fail(err, ERR_ARG, "the turn of job %llu has not come", (unsigned long long)id);
	*out = j;
	return 0;
}

int64_t live_deadline_ns(int64_t submitted_ns, double slo_s)
{
	/* up, and one more: a job that just fits is not to fail by the rounding of its deadline */
	double ns = ceil(slo_s * 1e9) + 1.0;
	int64_t deadline_ns;

	if (isnan(slo_s) || ns >= 4e18)
		return SCHED_NEVER;
	if (ns < -4e18)
		return INT64_MIN / 2;
	return __builtin_add_overflow(submitted_ns, (int64_t)ns, &deadline_ns) ? SCHED_NEVER : deadline_ns;
}

int64_t live_limit_ns(const struct live *j)
{
	return live_deadline_ns(j->submitted_ns, j->r.slo_s);
}

void live_begun(struct live *j)
{
	j->deadline_ns = live_limit_ns(j);
}

uint32_t live_add(struct sched *s, const struct sched_request *r, int64_t submitted_ns)
{
	uint32_t place = s->spare[--s->n_spare];

	if (place >= s->live_end)
		s->live_end = place + 1;
	s->live[place] = (struct live){ .r = *r,
					.submitted_ns = submitted_ns,
					.deadline_ns = live_deadline_ns(submitted_ns, r->slo_s - s->lag_s),
					.prev = NO_JOB,
					.next = NO_JOB,
					.after = NO_JOB,
					.spread = BELIEF_USUAL, /* until it is decided about */
					.spread_later = BELIEF_USUAL,
					.limit_part = 1.0 };
	s->live[place].kind = s->kinds ? learn_kind(s, r) : 0;
	job_index_put(&s->index, r->id, place);
	return place;
}

void live_forget(struct sched *s, uint32_t place)
{
	if (s->live[place].promised && !s->live[place].r.apart)
		s->n_promised--;
	if (s->live[place].by_chance)
		s->n_by_chance--;
	job_index_remove(&s->index, s->live[place].r.id);
	s->live[place].r.id = 0; /* so that no job waits for its end any more */
	s->spare[s->n_spare++] = place;
}

/* Behind `before`; NO_JOB: first. */
void live_link(struct sched *s, struct live_list *l, uint32_t before, uint32_t place)
{
	uint32_t after = before == NO_JOB ? l->first : s->live[before].next;

	s->live[place].prev = before;
	s->live[place].next = after;
	*(before == NO_JOB ? &l->first : &s->live[before].next) = place;
	*(after == NO_JOB ? &l->last : &s->live[after].prev) = place;
	l->n++;
}

void live_unlink(struct sched *s, struct live_list *l, uint32_t place)
{
	struct live *j = &s->live[place];

	*(j->prev == NO_JOB ? &l->first : &s->live[j->prev].next) = j->next;
	*(j->next == NO_JOB ? &l->last : &s->live[j->next].prev) = j->prev;
	j->prev = j->next = NO_JOB;
	l->n--;
}

void live_weigh(struct sched *s, struct live *j)
{
	struct fluid_job f = decide_fluid_job(&j->taken, j->r.cpus);
	bool never = j->r.cpus > s->machine.slots || live_devices_wanted(s, j) > s->machine.devices;
	/* One that wants a larger part of the devices than of the slots counts as that many slots: the
	 * devices are what those behind it wait for. */
	double part = never || !f.devices ? 0.0 : (double)f.devices / s->machine.devices;
	double width = fmax(f.cpus, fmin(ceil(part * s->machine.slots), s->machine.slots));
	/* With others like it, so many slots are in use: where three of four are, the fourth counts as
	 * well. */
	double used = never ? 1.0 : s->machine.slots - s->machine.slots % j->r.cpus;
	double ns = 1e9 * width * f.work_s * decide_stretch(&s->fluid, &f, used + s->other_load) *
		    (s->machine.slots / used);

	j->slot_cpus = never ? 0 : (uint32_t)width;
	j->slot_ns = never ? 0 : ns < 9e18 ? (uint64_t)ns : (uint64_t)9e18;
}

/* What the order of its queue knows of a job that waits. */
static struct order_item item_of(const struct live *j)
{
	return (struct order_item){
		.turn_ns = j->planned ? j->turn_ns : j->submitted_ns,
		.wake_ns = !j->by_chance ? JOB_ORDER_NEVER
			   : j->gone     ? INT64_MIN
					 : j->hopes_ns,
		.slot_ns = j->slot_ns,
		.slot_cpus = j->slot_cpus,
		.cpus = j->r.cpus,
		.devices = j->taken.devices,
		.priority = j->r.priority,
		.by_chance = j->by_chance,
		.unknown = isnan(j->total_s),
	};
}

void live_reorder(struct sched *s, uint32_t place)
{
	const struct order_item item = item_of(&s->live[place]);

	job_order_change(&s->queues, place, &item);
}

void live_enlist(struct sched *s, struct live_list *l, size_t position, uint32_t place)
{
	const struct order_item item = item_of(&s->live[place]);

	live_link(s, l, position ? job_order_at(&s->queues, l->root, position - 1) : NO_JOB, place);
	job_order_insert(&s->queues, &l->root, position, place, &item);
}

static void queue(struct sched *s, struct live_list *l, size_t position, uint32_t place)
{
	struct live *j = &s->live[place];

	live_weigh(s, j);
	live_enlist(s, l, position, place);
	s->n_queued++;
	tenant_of(s, &j->r)->n_queued++;
	live_changed(s);
}

void live_wait(struct sched *s, uint32_t place)
{
	const struct live *j = &s->live[place];
	struct tenant *t = tenant_of(s, &j->r);

	if (j->r.apart) {
		apart_wait(s, place);
		return;
	}
	queue(s, &t->waiting, job_order_later(&s->queues, t->waiting.root, 0, j->r.priority, j->submitted_ns),
	      place);
	tenants_note_waiting(s, t);
}

/* ---- the plan ---- */

size_t live_plan_position(const struct sched *s, uint32_t place)
{
	assert(s->live[place].planned);
	return job_order_position(&s->queues, place);
}

void live_plan(struct sched *s, uint32_t place, size_t position, uint32_t after)
{
	struct live *j = &s->live[place];

	j->planned = true;
	j->due = !j->promised;
	s->n_due += j->due;
	j->after = after;
	j->after_id = after == NO_JOB ? 0 : s->live[after].r.id;
	queue(s, &s->plan, position, place);
}

const struct live *live_after(const struct sched *s, const struct live *j)
{
	return j->after_id && s->live[j->after].r.id == j->after_id ? &s->live[j->after] : NULL;
}

void live_dequeue(struct sched *s, uint32_t place)
{
	struct live *j = &s->live[place];
	struct tenant *t = tenant_of(s, &j->r);
	struct live_list *l = j->planned ? &s->plan : &t->waiting;

	if (j->r.apart) {
		apart_dequeue(s, place);
		return;
	}
	live_unlink(s, l, place);
	job_order_remove(&s->queues, &l->root, place);
	tenants_note_waiting(s, t);
	s->n_due -= j->due;
	j->planned = j->due = false;
	if (t->due == place)
		t->due = NO_JOB;
	s->n_queued--;
	t->n_queued--;
	live_changed(s);
}

void live_run(struct sched *s, uint32_t place)
{
	struct live *j = &s->live[place];
	struct tenant *t = tenant_of(s, &j->r);
	uint32_t before = s->running.last;

	if (j->r.apart) {
		apart_run(s, place);
		return;
	}
	while (before != NO_JOB && s->live[before].started_ns > j->started_ns)
		before = s->live[before].prev;
	live_link(s, &s->running, before, place);
	j->running = true;
	progress_begin(&j->progress, j->prior_s, j->taken.start_share, j->spread);
	j->said_late = false;
	j->slowed = 1.0;
	j->kind_number = pairs_enter(s->pairs, j->kind);
	j->kind_watched = j->kind_number && j->started_ns == s->last_ns;
	s->met.held[j->kind_number] += j->r.cpus;
	s->met_from[place] = pairs_start(s->pairs, &s->met);
	s->slots_used += j->r.cpus;
	t->cpus += j->r.cpus;
	s->devices_used += j->taken.devices;
	t->devices += j->taken.devices;
	t->n_running++;
	live_changed(s);
}

void live_end(struct sched *s, uint32_t place)
{
	struct live *j = &s->live[place];
	struct tenant *t = tenant_of(s, &j->r);

	if (j->r.apart) {
		apart_end(s, place);
		return;
	}
	live_unlink(s, &s->running, place);
	j->running = false;
	s->met.held[j->kind_number] -= j->r.cpus;
	pairs_leave(s->pairs, j->kind_number);
	s->slots_used -= j->r.cpus;
	t->cpus -= j->r.cpus;
	s->devices_used -= j->taken.devices;
	t->devices -= j->taken.devices;
	t->n_running--;
	live_changed(s);
}

uint64_t live_free_slots(const struct sched *s)
{
	uint64_t taken = s->slots_used + s->guest_cpus; /* they may be more than there are by now */

	return taken < s->machine.slots ? s->machine.slots - taken : 0;
}

/* ---- what was decided ---- */

/* A job that comes back from a record has a guard, which tells. */
static double spread_of(const struct candidate *c, double confidence)
{
	struct belief b = { c->time_s, c->spread };

	if (isnan(b.spread) && belief_asks(confidence) == confidence)
		b = belief_of_bound(c->time_s, c->guard_s, confidence);
	return fmax(isnan(b.spread) ? BELIEF_USUAL : b.spread, LEAST_SPREAD);
}

void live_take(const struct sched *s, struct live *j, const struct candidate *c)
{
	struct later_effect later = learn_later(s, &j->r);

	j->taken = *c;
	j->prior_s = j->total_s = c->work_s;
	j->spread = spread_of(c, j->r.confidence);
	j->spread_later = hypot(j->spread, later.spread);
	j->limit_part = exp(-later.shift);
}

const double *live_batches(const struct sched *s, const struct sched_request *r, size_t *out_n)
{
	const struct model *m = model_of(s, r);

	*out_n = r->batch ? r->n_batches : m ? m->n_candidates : 0;
	return r->batch ? r->batch : m ? m->candidate : NULL;
}

const struct decision *live_ask_epochs(struct sched *s, const struct live *j, const double *epochs,
				       size_t n_epochs)
{
	struct policy_choice alone;
	struct decide_scene scene;
	struct decide_params p = { .model = model_of(s, &j->r),
				   .job = j->r.values,
				   .candidate = &j->taken.decision,
				   .n_candidates = 1,
				   .epochs = epochs,
				   .n_epochs = n_epochs,
				   .slo_s = NAN,
				   .confidence = j->r.confidence,
				   .scene = &scene };

	scene_alone(s, &j->r, &alone, &scene);
	return p.model && j->r.values && !decide(&p, s->trial, NULL) ? s->trial : NULL;
}

/* What the model says of the candidate that it has, alone on the machine; NULL: nothing. */
static const struct candidate *measured(struct sched *s, const struct live *j)
{
	const struct decision *d = live_ask_epochs(s, j, isnan(j->taken.epochs) ? NULL : &j->taken.epochs, 1);

	return d ? &d->candidate[0] : NULL;
}

void live_measure(struct sched *s, struct live *j)
{
	const struct candidate *c = measured(s, j);

	if (c)
		live_take(s, j, c);
}

void live_measure_start(struct sched *s, struct live *j)
{
	const struct candidate *c = isnan(j->taken.start_share) ? measured(s, j) : NULL;

	if (c)
		j->taken.start_share = c->start_share;
}

/* ---- time and work ---- */

double live_until_s(int64_t moment_ns, int64_t now_ns)
{
	int64_t ns;

	if (moment_ns == SCHED_NEVER)
		return INFINITY;
	if (__builtin_sub_overflow(moment_ns, now_ns, &ns))
		return 1e-9 * ((double)moment_ns - (double)now_ns);
	return 1e-9 * (double)ns;
}

static void settle_until(struct sched *s, int64_t now_ns, uint32_t end)
{
	double for_s = now_ns > s->since_ns ? 1e-9 * (double)(now_ns - s->since_ns) : 0.0;

	for (uint32_t i = s->running.first; i != end; i = s->live[i].next) {
		struct live *j = &s->live[i];

		double own_s = for_s;

		if (j->steer.counted_ns > s->since_ns)
			own_s = fmin(for_s, fmax(1e-9 * (double)(now_ns - j->steer.counted_ns), 0.0));
		if (!j->idle) {
			j->done_s += own_s * j->speed;
			j->plain_s += own_s * j->speed * j->slowed;
		}
	}
	if (end == NO_JOB)
		apart_settle(s, for_s);
	if (s->kinds)
		pairs_pass(s->pairs, &s->met, (double)(s->slots_used + s->guest_cpus) + s->other_load, for_s);
	s->since_ns = now_ns;
}

void live_changed(struct sched *s)
{
	s->changes++;
	s->changed_ns = s->last_ns;
	s->plan_ns = s->quiet_ns = INT64_MIN;
}

void live_settle(struct sched *s, int64_t now_ns)
{
	settle_until(s, now_ns, NO_JOB);
}

static void set_speeds_until(struct sched *s, uint64_t processes, uint32_t end)
{
	bool learnt = s->kinds && pairs_learnt(s->pairs);
	double slow[1 + PAIRS_KINDS];

	if (learnt)
		pairs_slow(s->pairs, s->met.held, (double)processes + s->other_load, slow);
	for (uint32_t i = s->running.first; i != end; i = s->live[i].next) {
		struct live *j = &s->live[i];
		struct fluid_job f = decide_fluid_job(&j->taken, j->r.cpus);

		j->slowed = learnt ? slow[pairs_felt(s->pairs, j->kind_number, j->r.user)] : 1.0;
		j->speed = 1.0 /
			   (decide_stretch(&s->fluid, &f, (double)processes + s->other_load) * j->slowed);
	}
}

void live_set_speeds(struct sched *s)
{
	set_speeds_until(s, s->slots_used + s->guest_cpus, NO_JOB);
}

/* Runs the starts of restored jobs again, as far as they are known: jobs that ended before the restart are
 * gone, and what they slowed down is not. */
static void settle_restored(struct sched *s, int64_t now_ns)
{
	uint64_t processes = 0;

	s->unsettled = false;
	for (uint32_t i = s->apart.first; i != NO_JOB; i = s->live[i].next)
		s->live[i].done_s = fmax(0.0, 1e-9 * (double)(now_ns - s->live[i].started_ns));
	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next) {
		int64_t at_ns = s->live[i].started_ns < now_ns ? s->live[i].started_ns : now_ns;

		if (s->live[i].prev == NO_JOB)
			s->since_ns = at_ns;
		settle_until(s, at_ns, i);
		processes += s->live[i].r.cpus;
		set_speeds_until(s, processes, s->live[i].next);
	}
}

int64_t live_clock(struct sched *s, int64_t now_ns)
{
	if (s->last_ns == INT64_MIN)
		s->since_ns = s->changed_ns = s->usage_ns = now_ns;
	if (now_ns > s->last_ns)
		s->last_ns = now_ns;
	if (s->unsettled)
		settle_restored(s, s->last_ns);
	return s->last_ns;
}

double live_left_s(const struct sched *s, const struct live *j, int64_t now_ns)
{
	double for_s = now_ns > s->since_ns ? 1e-9 * (double)(now_ns - s->since_ns) : 0.0;
	double done_s = j->done_s + (j->idle ? 0.0 : for_s * j->speed);

	if (isnan(j->total_s) && s->looks_ahead)
		return FLUID_MAX_WORK_S; /* it may run for ever, as far as is known */
	return done_s < j->total_s ? j->total_s - done_s : LATE_REST * done_s;
}

/* ---- devices and memory ---- */

uint32_t live_devices_wanted(const struct sched *s, const struct live *j)
{
	size_t n;
	const double *batch = live_batches(s, &j->r, &n);
	uint32_t devices = j->taken.devices;

	return devices <= s->machine.devices || !n ? devices : device_need_count(&j->r.device, batch[0]);
}

uint32_t live_devices_free(const struct sched *s)
{
	return s->devices_used < s->machine.devices ? (uint32_t)(s->machine.devices - s->devices_used) : 0;
}

double live_memory_mb(const struct sched_request *r, double batch)
{
	return (isnan(r->memory_mb) ? 0.0 : r->memory_mb) +
	       (isnan(r->memory_mb_per_record) || isnan(batch) ? 0.0 : r->memory_mb_per_record * batch);
}

double live_memory_wanted_mb(const struct sched *s, const struct live *j)
{
	size_t n;
	const double *batch = live_batches(s, &j->r, &n);
	double mb = live_memory_mb(&j->r, j->taken.decision);

	return mb <= s->machine.memory_mb || !n ? mb : live_memory_mb(&j->r, batch[0]);
}

/* Added up again each time: a running sum would drift by rounding as jobs come and go. */
double live_memory_used_mb(const struct sched *s)
{
	double sum = 0.0;

	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next)
		sum += live_memory_mb(&s->live[i].r, s->live[i].taken.decision);
	return sum;
}
