/* The live jobs: their places, the queue and those that run, and how far the work of each has come.
 *
 * Work is counted in seconds alone. While P processes run, a job's grows by 1 / S(P) a second (queueing/fluid.h), so
 * it is settled only when somebody starts or ends: in between it is a straight line. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

/* A job that is past its expected work has this part of what it has done still before it: the longer it is late,
 * the less is known of its end, but it never counts as nothing. */
#define LATE_REST 0.05

/* ---- places and lists ---- */

struct live *live_find(struct sched *s, uint64_t id, uint32_t *out_place)
{
	uint32_t place = job_index_find(&s->index, id);

	*out_place = place;
	return place == JOB_INDEX_NONE ? NULL : &s->live[place];
}

uint32_t live_add(struct sched *s, const struct sched_request *r, int64_t submitted_ns)
{
	uint32_t place = s->spare[--s->n_spare];
	struct live *j = &s->live[place];

	*j = (struct live){ .r = *r,
			    .submitted_ns = submitted_ns,
			    .deadline_ns = SCHED_NEVER,
			    .prev = NOBODY,
			    .next = NOBODY };
	if (!isnan(r->slo_s)) {
		/* up, and one more: a job that just fits is not to fail by the rounding of its deadline */
		double ns = ceil(r->slo_s * 1e9) + 1.0;

		if (ns < -4e18)
			j->deadline_ns = INT64_MIN / 2;
		else if (ns < 4e18 && __builtin_add_overflow(submitted_ns, (int64_t)ns, &j->deadline_ns))
			j->deadline_ns = SCHED_NEVER;
	}
	job_index_put(&s->index, r->id, place);
	return place;
}

void live_forget(struct sched *s, uint32_t place)
{
	job_index_remove(&s->index, s->live[place].r.id);
	s->spare[s->n_spare++] = place;
}

static void link_after(struct sched *s, struct live_list *l, uint32_t before, uint32_t place)
{
	uint32_t after = before == NOBODY ? l->first : s->live[before].next;

	s->live[place].prev = before;
	s->live[place].next = after;
	*(before == NOBODY ? &l->first : &s->live[before].next) = place;
	*(after == NOBODY ? &l->last : &s->live[after].prev) = place;
	l->n++;
}

void live_append(struct sched *s, struct live_list *l, uint32_t place)
{
	link_after(s, l, l->last, place);
}

void live_unlink(struct sched *s, struct live_list *l, uint32_t place)
{
	struct live *j = &s->live[place];

	*(j->prev == NOBODY ? &l->first : &s->live[j->prev].next) = j->next;
	*(j->next == NOBODY ? &l->last : &s->live[j->next].prev) = j->prev;
	j->prev = j->next = NOBODY;
	l->n--;
}

void live_insert_running(struct sched *s, uint32_t place)
{
	uint32_t before = s->running.last;

	while (before != NOBODY && s->live[before].started_ns > s->live[place].started_ns)
		before = s->live[before].prev;
	link_after(s, &s->running, before, place);
}

void live_weigh(struct sched *s, struct live *j)
{
	struct fluid_job f = decide_fluid_job(&j->taken, j->r.cpus);
	bool never = j->r.cpus > s->machine.slots;
	/* With others like it, so many slots are in use: where three of four are, the fourth counts as well. */
	double used = never ? 1.0 : s->machine.slots - s->machine.slots % j->r.cpus;
	double ns = 1e9 * f.cpus * f.work_s * decide_stretch(&s->fluid, &f, used) * (s->machine.slots / used);

	j->slot_cpus = never ? 0 : j->r.cpus;
	j->slot_ns = never ? 0 : ns < 9e18 ? (uint64_t)ns : (uint64_t)9e18;
}

void live_enqueue(struct sched *s, uint32_t place)
{
	struct live *j = &s->live[place];

	live_weigh(s, j);
	s->queue_slot_ns += j->slot_ns;
	s->queue_cpus += j->slot_cpus;
	live_append(s, &s->queue, place);
}

void live_dequeue(struct sched *s, uint32_t place)
{
	s->queue_slot_ns -= s->live[place].slot_ns;
	s->queue_cpus -= s->live[place].slot_cpus;
	live_unlink(s, &s->queue, place);
}

/* ---- what was decided ---- */

void live_take(struct live *j, const struct candidate *c)
{
	j->taken = *c;
	j->ratio = c->time_s > 0.0 && c->upper_s > 0.0 ? c->upper_s / c->time_s : NAN;
	j->prior_s = j->total_s = c->work_s;
}

const double *live_batches(const struct sched *s, const struct sched_request *r, size_t *out_n)
{
	*out_n = r->batch ? r->n_batches : s->model ? s->model->n_candidates : 0;
	return r->batch ? r->batch : s->model ? s->model->candidate : NULL;
}

void live_measure(struct sched *s, struct live *j)
{
	static const struct policy by_bound = { .name = "none", .bounds = true };
	const struct policy_choice alone = { .policy = &by_bound, .batch = NAN };
	struct decide_scene scene = {
		.policy = &alone, .machine = s->fluid, .cpus = j->r.cpus, .memory_limit_mb = INFINITY
	};
	struct decide_params p = { .model = s->model,
				   .job = j->r.values,
				   .candidate = &j->taken.decision,
				   .n_candidates = 1,
				   .slo_s = NAN,
				   .confidence = j->r.confidence,
				   .scene = &scene };
	struct decision d;

	if (!s->model || !j->r.values || decide(&p, &d, NULL))
		return;
	live_take(j, &d.candidate[0]);
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

	for (uint32_t i = s->running.first; i != end; i = s->live[i].next)
		s->live[i].done_s += for_s * s->live[i].speed;
	s->since_ns = now_ns;
}

void live_settle(struct sched *s, int64_t now_ns)
{
	settle_until(s, now_ns, NOBODY);
}

static void set_speeds_until(struct sched *s, uint64_t processes, uint32_t end)
{
	for (uint32_t i = s->running.first; i != end; i = s->live[i].next) {
		struct live *j = &s->live[i];
		struct fluid_job f = decide_fluid_job(&j->taken, j->r.cpus);

		j->speed = 1.0 / decide_stretch(&s->fluid, &f, (double)processes);
	}
}

void live_set_speeds(struct sched *s)
{
	set_speeds_until(s, s->slots_used, NOBODY);
}

/* Runs the starts of restored jobs again, as far as they are known: jobs that ended before the restart are gone,
 * and what they slowed down is not. */
static void settle_restored(struct sched *s, int64_t now_ns)
{
	uint64_t processes = 0;

	s->unsettled = false;
	for (uint32_t i = s->running.first; i != NOBODY; i = s->live[i].next) {
		int64_t at_ns = s->live[i].started_ns < now_ns ? s->live[i].started_ns : now_ns;

		if (s->live[i].prev == NOBODY)
			s->since_ns = at_ns;
		settle_until(s, at_ns, i);
		processes += s->live[i].r.cpus;
		set_speeds_until(s, processes, s->live[i].next);
	}
}

int64_t live_clock(struct sched *s, int64_t now_ns)
{
	if (s->last_ns == INT64_MIN)
		s->since_ns = now_ns;
	if (now_ns > s->last_ns)
		s->last_ns = now_ns;
	if (s->unsettled)
		settle_restored(s, s->last_ns);
	return s->last_ns;
}

double live_left_s(const struct sched *s, const struct live *j, int64_t now_ns)
{
	double for_s = now_ns > s->since_ns ? 1e-9 * (double)(now_ns - s->since_ns) : 0.0;
	double done_s = j->done_s + for_s * j->speed;

	return fmax(j->total_s - done_s, LATE_REST * done_s);
}

/* ---- memory ---- */

double live_memory_mb(const struct sched_request *r, double batch)
{
	return (isnan(r->memory_mb) ? 0.0 : r->memory_mb) +
	       (isnan(r->memory_mb_per_record) || isnan(batch) ? 0.0 : r->memory_mb_per_record * batch);
}

/* Added up anew each time: a running sum would drift by the rounding of what came and went. */
double live_memory_used_mb(const struct sched *s)
{
	double sum = 0.0;

	for (uint32_t i = s->running.first; i != NOBODY; i = s->live[i].next)
		sum += live_memory_mb(&s->live[i].r, s->live[i].taken.decision);
	return sum;
}
