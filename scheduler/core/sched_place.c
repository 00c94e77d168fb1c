/* Places in the plan: where a job that asks for a promise would stand, whether it has to wait there for the
 * end of another, what could be promised instead; and the places of jobs without a promise that are due. */
#include <math.h>

#include "scheduler/core/decide_internal.h"
#include "scheduler/core/sched_internal.h"

#define MOST_OFFERS 4 /* limits tried to find one that would be taken */
/* Seats found for jobs that are due, in one call: each may take several plays of the plan. */
#define MOST_DUE 16
#define MOST_DUE_OF_MANY 4 /* with more than MANY jobs to play each time */

int place_ask(struct sched *s, int64_t now_ns, const struct sched_request *r, double slo_s,
	      const struct scene_place *at, struct decision *out, struct err *err)
{
	struct decide_scene scene;
	struct decide_params p = { .model = model_of(s, r),
				   .job = r->values,
				   .epochs = r->epochs,
				   .n_epochs = r->n_epochs,
				   .slo_s = slo_s,
				   .confidence = r->confidence,
				   .scene = &scene };

	p.candidate = live_batches(s, r, &p.n_candidates);
	scene_make(s, now_ns, r, at, &scene);
	return decide(&p, out, err);
}

/* ---- seats ---- */

/* Before the first in the plan, from `from` on, whose turn is later. */
static size_t position_of(const struct sched *s, int priority, int64_t turn_ns, size_t from)
{
	return job_order_later(&s->queues, s->plan.root, from, priority, turn_ns);
}

/* Behind all jobs, and not before the last promise has been kept, as far as the plan was played: a job in
 * that seat breaks none. */
static struct seat safest_seat(struct sched *s, int64_t now_ns)
{
	const struct live_list *list[] = { &s->running, &s->plan };
	struct seat seat = { .position = s->plan.n, .after = NO_JOB };
	double last_s = -INFINITY, shift_s;

	if (!plan_know(s, now_ns, &shift_s))
		return seat;
	for (int k = 0; k < 2; k++) {
		size_t left = k ? SCENE_WINDOW : SIZE_MAX;

		for (uint32_t i = list[k]->first; i != NO_JOB && left--; i = s->live[i].next) {
			const struct live *j = &s->live[i];

			if (j->promised && !j->plan.never && j->plan.end_s >= last_s) {
				last_s = j->plan.end_s;
				seat.after = i;
			}
		}
	}
	return seat;
}

/* The next seat to try when this one harms job `id`; false: there is none. */
static bool seat_behind(struct sched *s, uint64_t id, int priority, int64_t turn_ns, struct seat *seat)
{
	uint32_t place;
	const struct live *j = live_find(s, id, &place);
	size_t behind;

	if (!j || place == seat->after)
		return false;
	behind = j->running ? 0 : live_plan_position(s, place) + 1;
	if (j->due) {
		if (behind <= seat->position)
			return false;
		seat->position = position_of(s, priority, turn_ns, behind);
		return true;
	}
	seat->after = place;
	if (behind > seat->position)
		seat->position = behind;
	return true;
}

void place_take(struct sched *s, uint32_t place, const struct seat *seat)
{
	struct live *j = &s->live[place];

	j->turn_ns = j->promised ? j->deadline_ns : j->turn_ns;
	live_plan(s, place, seat->position, seat->after);
}

/* ---- arrivals ---- */

/* Whom the candidate that could be promised soonest would harm; 0: holding helps none. */
static uint64_t whom_to_wait_for(const struct decision *d, double slo_s)
{
	double least_s = INFINITY;
	uint64_t id = 0;

	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];
		double time_s = isnan(c->guard_s) ? c->time_s : c->guard_s;

		if (c->breaks && time_s <= slo_s && time_s < least_s) {
			least_s = time_s;
			id = c->breaks;
		}
	}
	return id;
}

static double lesser(double a, double b) /* of what is known */
{
	return isnan(a) || b < a ? b : a;
}

/* Decides with the limit slo_s, in the seats that it might have; d->smallest_slo_s is the smallest need
 * in them, and d->offer the offer in the first, which is the soonest. */
static int try_seats(struct sched *s, int64_t now_ns, const struct sched_request *r, double slo_s,
		     struct decision *d, struct seat *seat, struct err *err)
{
	int64_t turn_ns = live_deadline_ns(now_ns, slo_s);
	struct candidate offer = { .chance = NAN };
	double smallest_s = NAN;

	*seat = (struct seat){ .position = position_of(s, r->priority, turn_ns, 0), .after = NO_JOB };
	for (int k = 0; k <= MOST_HOLDS; k++) {
		const struct scene_place at = { .seat = *seat, .promises = true };
		uint64_t harmed;
		int rc = place_ask(s, now_ns, r, slo_s, &at, d, err);

		if (rc)
			return rc;
		smallest_s = lesser(smallest_s, d->smallest_slo_s);
		d->smallest_slo_s = smallest_s;
		offer = k ? offer : d->offer;
		d->offer = offer;
		if (d->chosen >= 0 || !s->looks_ahead || k == MOST_HOLDS || s->policy.without & LAYER_SEATS)
			return 0;
		harmed = whom_to_wait_for(d, slo_s);
		if (k == MOST_HOLDS - 1 || !harmed || !seat_behind(s, harmed, r->priority, turn_ns, seat)) {
			if (!harmed && !isnan(smallest_s))
				return 0;
			*seat = safest_seat(s, now_ns);
			k = MOST_HOLDS - 1; /* the last one */
		}
	}
	return 0;
}

/* The limit with which it would stand behind all of its priority, if it needs no more. */
static double last_turn_s(const struct sched *s, int64_t now_ns, int priority)
{
	size_t n = position_of(s, priority, SCHED_NEVER, 0);
	uint32_t last = n ? job_order_at(&s->queues, s->plan.root, n - 1) : NO_JOB;

	return last == NO_JOB ? 0.0 : fmax(0.0, live_until_s(s->live[last].turn_ns, now_ns));
}

/* With a later deadline it would stand further back. A limit is offered only if it would be taken; where
 * the deadlines of others lie in between, a smaller one may be taken as well. */
static int find_offer(struct sched *s, int64_t now_ns, const struct sched_request *r, const struct seat *seat,
		      struct decision *d, struct err *err)
{
	double slo_s = d->smallest_slo_s;
	struct seat other;

	if (isnan(slo_s) || !s->looks_ahead ||
	    (seat->after == NO_JOB && !d->costs && /* a longer time may cost too much */
	     position_of(s, r->priority, live_deadline_ns(now_ns, slo_s), 0) == seat->position))
		return 0;
	d->smallest_slo_s = NAN;
	for (int k = 0; k < MOST_OFFERS && !isnan(slo_s); k++) {
		int rc = try_seats(s, now_ns, r, slo_s, s->trial, &other, err);

		if (rc)
			return rc;
		if (s->trial->chosen >= 0) {
			d->smallest_slo_s = slo_s;
			return 0;
		}
		if (k + 2 < MOST_OFFERS && s->trial->smallest_slo_s > slo_s)
			slo_s = s->trial->smallest_slo_s;
		else
			slo_s = fmax(fmax(slo_s, s->trial->smallest_slo_s),
				     last_turn_s(s, now_ns, r->priority));
	}
	return 0;
}

/* What it could have behind all promises, among the jobs that have none: no more than in the first seat of
 * the plan, whose offer is in `out`. Among very many jobs the play takes as long as the decision, so there it
 * is made only for a job that asks for a chance. */
static int without_promise(struct sched *s, int64_t now_ns, const struct sched_request *r,
			   struct decision *out, struct err *err)
{
	struct scene_place at = { .seat.after = NO_JOB, .by_chance = true };
	bool many = (s->running.n + s->n_queued + 1) * out->n_candidates > DECIDE_PLAY_ALL;
	int rc, likeliest;

	s->trial->n_candidates = 0;
	if (!(out->offer.chance >= r->chance) || (many && r->chance == 0.0)) {
		out->offer.chance = s->n_queued && many ? NAN : out->offer.chance;
		return 0;
	}
	tenants_settle(s, now_ns);
	at.seat.position = order_around(s, r);
	rc = place_ask(s, now_ns, r, r->slo_s, &at, s->trial, err);
	if (rc)
		return rc;
	likeliest = decide_likeliest(s->trial, 0.0, REASONS_NO_ROOM);
	out->offer.chance = NAN;
	if (likeliest >= 0)
		out->offer = s->trial->candidate[likeliest];
	return 0;
}

/* The decision without a promise takes the place of the one with, if it has the chance that is asked for. */
static bool take_chance(const struct sched *s, const struct sched_request *r, struct decision *d)
{
	int likeliest = r->chance > 0.0 ? decide_likeliest(s->trial, r->chance, REASONS_NO_ROOM) : -1;
	double smallest_slo_s = d->smallest_slo_s;

	if (likeliest < 0)
		return false;
	*d = *s->trial;
	d->chosen = likeliest;
	d->smallest_slo_s = smallest_slo_s;
	return true;
}

/* An engine has it at once. */
static int arrival_apart(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
			 bool *out_by_chance, struct err *err)
{
	const struct scene_place at = { .seat.after = NO_JOB };
	int rc, likeliest;

	rc = place_ask(s, now_ns, r, r->slo_s, &at, out, err);
	if (rc || isnan(r->slo_s))
		return rc;
	likeliest = out->chosen < 0 && r->chance > 0.0 ? decide_likeliest(out, r->chance, REASONS_NO_ROOM)
						       : -1;
	*out_by_chance = likeliest >= 0;
	if (*out_by_chance)
		out->chosen = likeliest;
	return 0;
}

int place_arrival(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
		  struct seat *out_seat, bool *out_by_chance, struct err *err)
{
	struct scene_place at = { .seat.after = NO_JOB };
	int rc;

	*out_by_chance = false;
	if (r->apart)
		return arrival_apart(s, now_ns, r, out, out_by_chance, err);
	if (isnan(r->slo_s)) {
		tenants_settle(s, now_ns);
		at.seat.position = order_around(s, r);
		return place_ask(s, now_ns, r, NAN, &at, out, err);
	}
	rc = try_seats(s, now_ns, r, r->slo_s, out, out_seat, err);
	if (rc || out->chosen >= 0 || s->policy.policy->admits_all)
		return rc;
	rc = without_promise(s, now_ns, r, out, err);
	if (rc)
		return rc;
	*out_by_chance = take_chance(s, r, out);
	return *out_by_chance ? 0 : find_offer(s, now_ns, r, out_seat, out, err);
}

void place_restored(struct sched *s, uint32_t place)
{
	struct live *j = &s->live[place];
	struct seat seat = { .after = NO_JOB };

	if (!j->promised || j->r.apart) {
		live_wait(s, place);
		return;
	}
	seat.position = position_of(s, j->r.priority, j->deadline_ns, 0);
	place_take(s, place, &seat);
}

/* ---- those that are due ---- */

/* The job that this one would harm in the seat; 0: none. */
static uint64_t harm(struct sched *s, int64_t now_ns, const struct live *j, const struct seat *seat)
{
	const struct scene_place at = { .seat = *seat, .promises = true };
	const struct fluid_job job = decide_fluid_job(&j->taken, j->r.cpus);
	struct decide_scene scene;
	uint64_t id;

	scene_make(s, now_ns, &j->r, &at, &scene);
	return decide_probe(&scene, &job, &id, NULL, NULL) ? 0 : id;
}

void place_unpromised(struct sched *s, int64_t now_ns, uint32_t place)
{
	struct live *j = &s->live[place];
	struct seat seat = { .after = NO_JOB };

	seat.position = position_of(s, j->r.priority, j->turn_ns, 0);
	if (s->looks_ahead && s->n_promised + s->n_due && harm(s, now_ns, j, &seat)) {
		seat.position = s->plan.n;
		for (int k = 0; k <= MOST_HOLDS; k++) {
			uint64_t harmed = harm(s, now_ns, j, &seat);

			if (!harmed)
				break;
			if (k >= MOST_HOLDS - 1 || !seat_behind(s, harmed, j->r.priority, j->turn_ns, &seat))
				seat = safest_seat(s, now_ns);
		}
	}
	place_take(s, place, &seat);
}

bool place_due(struct sched *s, int64_t now_ns)
{
	double mean = NAN;
	int left = s->running.n + s->plan.n > MANY ? MOST_DUE_OF_MANY : MOST_DUE;

	for (size_t i = tenants_next_waiting(s, 0); i < s->n_tenants; i = tenants_next_waiting(s, i + 1)) {
		struct tenant *t = &s->tenant[i];
		uint32_t first = t->waiting.first;
		double since_s;

		if (t->due != NO_JOB)
			continue;
		if (s->live[first].by_chance)
			first = job_order_at(&s->queues, t->waiting.root,
					     job_order_not_by_chance(&s->queues, t->waiting.root));
		if (first == NO_JOB)
			continue;
		since_s = live_until_s(now_ns, s->live[first].submitted_ns);
		if (since_s < s->window_s || s->live[first].r.cpus > tenant_most_cpus(s, &s->live[first].r) ||
		    live_devices_wanted(s, &s->live[first]) > tenant_most_devices(s, &s->live[first].r))
			continue;
		mean = isnan(mean) ? tenants_mean(s) : mean;
		if (tenant_standing(s, t) > mean * (1.0 + 1e-12))
			continue;
		if (!left--)
			return false;
		live_dequeue(s, first);
		s->live[first].turn_ns = live_deadline_ns(s->live[first].submitted_ns, s->window_s);
		place_unpromised(s, now_ns, first);
		t->due = first;
	}
	return true;
}
