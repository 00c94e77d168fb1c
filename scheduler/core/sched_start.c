/* Which job starts next, with which candidate, and which jobs are held. sched.h has the rules. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

/* Looks ahead in one call of sched_next() that may come to nothing. */
#define MOST_TRIES 16
#define MOST_TRIES_OF_MANY 4 /* with more than MANY jobs to play each time */
#define MOST_TRIES_OF_A_TENANT 4
#define MOST_LOOKS 16384 /* at jobs of the plan, or without a promise, that are not tried */
#define MOST_LOOKS_AT_A_TENANT 256 /* so that one with many does not hide the others */

/* ---- the batch ---- */

/* Puts another one in the place of the chosen. */
static void choose_instead(struct decision *d, int chosen, unsigned why)
{
	const unsigned lost = REASON_LOWER_ACCURACY | REASON_SLOWER | REASON_NOT_PICKED | REASON_PRICE;

	if (chosen == d->chosen)
		return;
	if (d->chosen >= 0)
		d->candidate[d->chosen].reasons |= why;
	d->chosen = chosen;
	d->candidate[chosen].reasons &= ~lost;
}

static int find_taken(const struct decision *d, const struct candidate *taken)
{
	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if (c->decision == taken->decision &&
		    (c->epochs == taken->epochs || isnan(c->epochs) || isnan(taken->epochs)))
			return (int)i;
	}
	return -1;
}

/* As sched_soonest(), of those whose effect on the others is known: without a promise it breaks none
 * either. */
static int harmless(const struct decision *d)
{
	int least = -1;

	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if (!(c->reasons & (REASONS_NO_ROOM | REASON_BREAKS_PROMISE | REASON_NOT_TRIED)) &&
		    !isnan(c->delays_s) && !isnan(c->time_s) &&
		    (least < 0 || c->time_s < d->candidate[least].time_s))
			least = (int)i;
	}
	return least;
}

/* The same by chance. At the start any chance will do that is worth more than it costs the others. */
static int likeliest(const struct sched *s, const struct decision *d)
{
	int i = decide_likeliest(d, 0.0, REASONS_NO_ROOM | REASON_BREAKS_PROMISE | REASON_NOT_TRIED);

	if (i < 0 || isnan(d->candidate[i].delays_s))
		return -1;
	return !s->running.n || decide_worth(d, &d->candidate[i]) > 0.0 ? i : -1;
}

/* It is to start: when none of the candidates is in time, as soon as can be. */
static int least_bad(const struct sched *s, const struct live *j, const struct decision *d)
{
	bool bounds = s->policy.policy->bounds && j->promised;
	int i = sched_soonest(d, REASONS_NO_ROOM, bounds);

	if (i < 0)
		i = sched_soonest(d, REASON_DEVICES, bounds); /* its owner started it, room or not */
	if (i < 0)
		i = find_taken(d, &j->taken);
	return i < 0 ? 0 : i;
}

/* Decides as if it started now; d->chosen is -1 if every candidate is late or harms another job. */
static void decide_now(struct sched *s, int64_t now_ns, uint32_t place, struct decision *out)
{
	struct live *j = &s->live[place];
	const struct scene_place at = {
		.starting = true, .place = place, .promises = true, .by_chance = j->by_chance
	};
	double left_s = live_until_s(j->deadline_ns, now_ns);

	if (place_ask(s, now_ns, &j->r, isinf(left_s) ? NAN : left_s, &at, out, NULL)) {
		/* Nothing of what was checked on arrival fails now; the batch decided then would do. */
		out->candidate[0] = j->taken;
		out->n_candidates = 1;
		out->chosen = 0;
		return;
	}
	if (s->policy.policy->choose) { /* drawn once, when it arrived */
		int drawn = find_taken(out, &j->taken);

		if (drawn >= 0)
			choose_instead(out, drawn, REASON_NOT_PICKED);
	}
	if (out->chosen < 0 && !j->promised) {
		int i = j->by_chance ? likeliest(s, out) : harmless(out);

		if (i >= 0)
			choose_instead(out, i, 0);
	}
	sched_add_lag(s, out);
}

static uint64_t whom_it_harms(const struct decision *d)
{
	for (size_t i = 0; i < d->n_candidates; i++)
		if (d->candidate[i].breaks)
			return d->candidate[i].breaks;
	return 0;
}

/* From the queue to those that run, with what was chosen. */
static void start(struct sched *s, int64_t now_ns, uint32_t place, const struct decision *d)
{
	struct live *j = &s->live[place];

	live_dequeue(s, place);
	live_take(s, j, &d->candidate[d->chosen]);
	live_settle(s, now_ns);
	tenants_settle(s, now_ns);
	j->started_ns = now_ns;
	j->unstarted = j->r.owner != 0;
	live_run(s, place);
	live_set_speeds(s);
}

/* Starts it now, even if that breaks promises of others. */
static void start_at_once(struct sched *s, int64_t now_ns, uint32_t place, struct decision *out)
{
	decide_now(s, now_ns, place, out);
	if (out->chosen < 0)
		choose_instead(out, least_bad(s, &s->live[place], out), 0);
	start(s, now_ns, place, out);
}

/* ---- holding ---- */

/* Its turn in the plan has come. */
static bool planned_now(struct sched *s, int64_t now_ns, const struct live *j)
{
	double shift_s;

	return j->planned && plan_know(s, now_ns, &shift_s) && !j->plan.never &&
	       j->plan.start_s - shift_s <= 1e-6;
}

/* If it waits in its place for the end of the job it would harm, and all jobs are in time then, it does
 * so. */
static bool waits_instead(struct sched *s, int64_t now_ns, uint32_t place, uint64_t harmed)
{
	struct live *j = &s->live[place];
	const struct fluid_job job = decide_fluid_job(&j->taken, j->r.cpus);
	struct scene_place at = { .promises = true, .seat.after = job_index_find(&s->index, harmed) };
	const struct decide_neighbour own = { .ratio = live_ratio(&j->taken, j->taken.guard_s),
					      .deadline_s = live_until_s(j->deadline_ns, now_ns) };
	uint32_t after = live_after(s, j) ? j->after : NO_JOB; /* its place may be another job's by now */
	struct decide_scene scene;
	struct fluid_times times;
	uint64_t breaks = 0;
	bool better;

	if (at.seat.after == JOB_INDEX_NONE || !s->live[at.seat.after].running)
		return false;
	at.seat.position = live_plan_position(s, place);
	live_dequeue(s, place);
	scene_make(s, now_ns, &j->r, &at, &scene);
	better = !decide_probe(&scene, &job, &breaks, &times, NULL) && !breaks &&
		 decide_in_time(&own, times.end_s);
	live_plan(s, place, at.seat.position, better ? at.seat.after : after);
	return better;
}

/* The same for one taken by chance. Waiting costs the others nothing, so it waits until it has no chance even
 * on an idle machine (sched_chance.c). */
static bool start_by_chance(struct sched *s, int64_t now_ns, uint32_t place, struct decision *out)
{
	struct live *j = &s->live[place];

	decide_now(s, now_ns, place, out);
	if (out->chosen >= 0) {
		start(s, now_ns, place, out);
		return true;
	}
	if (!scene_seated(s)) {
		j->gone = decide_likeliest(out, 0.0, 0) < 0; /* memory may yet be free */
		live_reorder(s, place);
	}
	j->held_by = whom_it_harms(out);
	j->held_round = s->round;
	j->too_costly = !j->held_by;
	return false;
}

/* Tries to start it; false: it is held, and out means nothing. */
static bool start_unless_harmful(struct sched *s, int64_t now_ns, uint32_t place, struct decision *out)
{
	struct live *j = &s->live[place];
	uint64_t harmed;

	decide_now(s, now_ns, place, out);
	harmed = out->chosen < 0 ? whom_it_harms(out) : 0;
	if (harmed) {
		bool its_turn = planned_now(s, now_ns, j);

		j->held_by = harmed;
		j->held_round = s->round;
		if (!its_turn)
			return false;
		if (!j->promised) { /* things have changed since it got its seat */
			bool by_waiting = tenant_of(s, &j->r)->due == place;

			live_dequeue(s, place);
			place_unpromised(s, now_ns, place);
			if (by_waiting)
				tenant_of(s, &j->r)->due = place;
			return false;
		}
		if (waits_instead(s, now_ns, place, harmed))
			return false;
	}
	if (out->chosen < 0)
		choose_instead(out, least_bad(s, j, out), 0);
	start(s, now_ns, place, out);
	return true;
}

/* ---- who is next ---- */

enum room { ROOM, NO_ROOM, NO_QUOTA, NEVER };

bool start_owner_is_slow(const struct sched *s, const struct live *j)
{
	uint64_t cpus = 0;

	if (!j->r.owner || !s->max_unstarted_cpus)
		return false;
	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next)
		if (s->live[i].unstarted && s->live[i].r.owner == j->r.owner)
			cpus += s->live[i].r.cpus;
	return cpus && cpus + j->r.cpus > s->max_unstarted_cpus;
}

static enum room room_for(const struct sched *s, const struct live *j, double memory_used_mb)
{
	const struct tenant *t = tenant_of(s, &j->r);
	double wanted_mb = live_memory_wanted_mb(s, j);
	uint32_t devices = live_devices_wanted(s, j);

	if (j->r.cpus > tenant_most_cpus(s, &j->r) || wanted_mb > s->machine.memory_mb ||
	    devices > tenant_most_devices(s, &j->r))
		return NEVER;
	if ((t->is.max_cpus && t->cpus + j->r.cpus > t->is.max_cpus) || devices > tenant_free_devices(t))
		return NO_QUOTA;
	if (j->r.cpus > live_free_slots(s) || devices > live_devices_free(s))
		return NO_ROOM;
	/* alone it fits, whatever the rounding of a sum says */
	if (s->running.n && memory_used_mb + wanted_mb > s->machine.memory_mb)
		return NO_ROOM;
	return start_owner_is_slow(s, j) ? NO_QUOTA : ROOM;
}

struct search {
	struct sched *s;
	int64_t now_ns;
	struct decision *out;
	double memory_used_mb;
	int tries, tries_of_tenant, looks;
	bool stopped; /* no job behind may start */
};

/* While nothing runs there is no event to wait for. */
static bool enough(const struct search *q)
{
	const struct sched *s = q->s;

	return q->tries >= (s->running.n + s->plan.n > MANY ? MOST_TRIES_OF_MANY : MOST_TRIES) &&
	       s->running.n;
}

/* true: it has started. */
static bool try(struct search *q, uint32_t place)
{
	struct sched *s = q->s;
	enum room room = room_for(s, &s->live[place], q->memory_used_mb);

	if (s->live[place].gone)
		return false;
	if (room != ROOM) {
		/* without a look ahead no job passes one that waits for room */
		q->stopped = room == NO_ROOM && !s->looks_ahead;
		return false;
	}
	if (s->live[place].by_chance) {
		if (start_by_chance(s, q->now_ns, place, q->out))
			return true;
	} else if (!s->looks_ahead || s->n_promised + s->n_due == 0) {
		start_at_once(s, q->now_ns, place, q->out);
		return true;
	} else if (start_unless_harmful(s, q->now_ns, place, q->out)) {
		return true;
	}
	q->tries_of_tenant++;
	q->tries++;
	return false;
}

/* The next job from `place` on that wants no more cpus than these, and no devices where all are in use.
 * Without a look ahead no job passes one that waits for room, so none is left out. */
static uint32_t next_narrow(const struct sched *s, const struct live_list *l, uint32_t place, uint64_t cpus)
{
	bool plain = s->machine.devices && !live_devices_free(s);

	if (place == NO_JOB || !s->looks_ahead ||
	    (s->live[place].r.cpus <= cpus && !(plain && s->live[place].taken.devices)))
		return place;
	return job_order_at(
		&s->queues, l->root,
		job_order_narrow(&s->queues, l->root, job_order_position(&s->queues, place), cpus, plain));
}

/* The first with a priority of this sign. */
static uint32_t first_of(const struct sched *s, const struct live_list *l, bool below)
{
	return below ? job_order_at(&s->queues, l->root, job_order_below(&s->queues, l->root)) : l->first;
}

/* A list may change during a try: a job that is held gets another seat. Its successor is then tried at the
 * next event. When enough were tried, those whose turn has come are still tried: they are among the first. */
static bool try_plan(struct search *q, bool below, uint32_t *out_place)
{
	struct sched *s = q->s;
	uint64_t free_cpus = live_free_slots(s);
	uint32_t i = next_narrow(s, &s->plan, first_of(s, &s->plan, below), free_cpus), next;

	for (q->looks = 0; i != NO_JOB && !q->stopped; i = next_narrow(s, &s->plan, next, free_cpus)) {
		next = s->live[i].next;
		if (++q->looks > (enough(q) ? SCENE_WINDOW : MOST_LOOKS))
			break;
		if ((s->live[i].r.priority < 0) == below &&
		    (!enough(q) || planned_now(s, q->now_ns, &s->live[i])) && try(q, i)) {
			*out_place = i;
			return true;
		}
	}
	return false;
}

static uint64_t free_cpus_of(const struct sched *s, const struct tenant *t)
{
	uint64_t slots = live_free_slots(s);
	uint64_t quota = t->is.max_cpus > t->cpus ? t->is.max_cpus - t->cpus : 0;

	return t->is.max_cpus && quota < slots ? quota : slots;
}

static bool try_waiting(struct search *q, bool below, uint32_t *out_place)
{
	struct sched *s = q->s;
	struct heap_entry top;

	tenants_rank(s);
	q->looks = 0;
	while (!q->stopped && !enough(q) && heap_pop(&s->standings, &top)) {
		const struct tenant *t = &s->tenant[top.payload];
		uint64_t free_cpus = free_cpus_of(s, t);
		uint32_t i = next_narrow(s, &t->waiting, first_of(s, &t->waiting, below), free_cpus);

		int looks = 0;

		q->tries_of_tenant = 0;
		for (; i != NO_JOB && (s->live[i].r.priority < 0) == below && !q->stopped && !enough(q) &&
		       (q->tries_of_tenant < MOST_TRIES_OF_A_TENANT || !s->running.n);
		     i = next_narrow(s, &t->waiting, s->live[i].next, free_cpus)) {
			if (looks++ >= MOST_LOOKS_AT_A_TENANT || q->looks++ >= MOST_LOOKS)
				break;
			if (try(q, i)) {
				*out_place = i;
				return true;
			}
		}
	}
	return false;
}

bool sched_next(struct sched *s, int64_t now_ns, uint64_t *out_id, struct decision *out)
{
	struct search q = { .s = s, .out = out };
	size_t n_due = s->n_due;
	uint32_t place;
	bool all;

	q.now_ns = now_ns = live_clock(s, now_ns);
	s->looked = s->unfinished = false;
	if (s->quiet_ns == now_ns || !sched_queued(s))
		return false;
	tenants_settle(s, now_ns);
	place = apart_next(s);
	if (place != NO_JOB) {
		start_at_once(s, now_ns, place, out);
		*out_id = s->live[place].r.id;
		return true;
	}
	all = place_due(s, now_ns);
	s->looked = s->n_due != n_due;
	all &= chance_look(s, now_ns);
	s->unfinished = !all;
	s->round++;
	if (live_free_slots(s)) {
		q.memory_used_mb = isfinite(s->machine.memory_mb) ? live_memory_used_mb(s) : 0.0;
		for (int below = 0; below < 2; below++) {
			if (try_plan(&q, below, &place) || try_waiting(&q, below, &place)) {
				*out_id = s->live[place].r.id;
				return true;
			}
		}
	}
	s->looked |= q.tries > 0;
	if (all)
		s->quiet_ns = now_ns;
	return false;
}

bool sched_looked(const struct sched *s)
{
	return s->looked;
}

bool sched_unfinished(const struct sched *s)
{
	return s->unfinished;
}

int sched_start_now(struct sched *s, int64_t now_ns, uint64_t id, struct decision *out, struct err *err)
{
	uint32_t place;
	const struct live *j = live_find(s, id, &place);

	if (!j)
		return sched_not_found(id, err);
	if (j->running)
		return err_fail(err, ERR_ARG, "job %llu runs already", (unsigned long long)id);
	if (j->taken.devices > live_devices_free(s))
		return err_fail(err, ERR_BUSY, "job %llu wants %u devices, and %u are free",
				(unsigned long long)id, j->taken.devices, live_devices_free(s));
	start_at_once(s, live_clock(s, now_ns), place, out);
	s->live[place].unstarted = false;
	return 0;
}

int sched_owner_started(struct sched *s, int64_t now_ns, uint64_t id, struct err *err)
{
	struct live *j;
	int rc = live_find_running(s, id, &j, err);

	if (rc)
		return rc;
	live_clock(s, now_ns);
	j->unstarted = false;
	live_changed(s); /* another job of this owner may start */
	return 0;
}
