/* Tenants: what each has used, where it stands, and its quotas. sched.h says what the numbers mean. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/core/sched_internal.h"

struct tenant *tenant_of(const struct sched *s, const struct sched_request *r)
{
	return &s->tenant[s->tenants_given ? r->tenant : 0];
}

uint32_t tenant_most_cpus(const struct sched *s, const struct sched_request *r)
{
	uint32_t quota = tenant_of(s, r)->is.max_cpus;

	return quota && quota < s->machine.slots ? quota : s->machine.slots;
}

uint32_t tenant_most_devices(const struct sched *s, const struct sched_request *r)
{
	uint32_t quota = tenant_of(s, r)->is.max_devices;

	return quota && quota < s->machine.devices ? quota : s->machine.devices;
}

uint32_t tenant_free_devices(const struct tenant *t)
{
	if (!t->is.max_devices)
		return UINT32_MAX;
	return t->devices < t->is.max_devices ? (uint32_t)(t->is.max_devices - t->devices) : 0;
}

/* ---- the roll of them ---- */

static int make_room(struct sched *s, size_t n)
{
	size_t cap = n + n / 2;
	struct tenant *tenant;
	struct fluid_group *group;
	uint64_t *bits;

	if (n <= s->tenants_cap)
		return 0;
	tenant = mem_resize(s->tenant, cap, sizeof *tenant);
	s->tenant = tenant ? tenant : s->tenant;
	group = mem_resize(s->group, cap, sizeof *group);
	s->group = group ? group : s->group;
	bits = mem_resize(s->has_waiting, cap / 64 + 1, sizeof *bits);
	s->has_waiting = bits ? bits : s->has_waiting;
	if (!tenant || !group || !bits || heap_reserve(&s->standings, cap))
		return -1;
	for (size_t i = s->tenants_cap ? s->tenants_cap / 64 + 1 : 0; i <= cap / 64; i++)
		bits[i] = 0;
	s->tenants_cap = cap;
	return 0;
}

/* No job changes its tenant, so none is looked at: a new user costs the others little. */
static void set_all(struct sched *s, const struct sched_tenant *tenant, size_t n)
{
	s->quotas = false;
	for (size_t i = 0; i < n; i++) {
		const struct sched_tenant *is = &tenant[i];

		if (i >= s->n_tenants)
			s->tenant[i] = (struct tenant){
				.due = NO_JOB,
				.waiting = { .first = NO_JOB, .last = NO_JOB, .root = JOB_ORDER_NONE }
			};
		s->tenant[i].is = *is;
		s->group[i] =
			(struct fluid_group){ .cpus = is->max_cpus ? is->max_cpus : UINT32_MAX,
					      .devices = is->max_devices ? is->max_devices : UINT32_MAX };
		s->quotas |= is->max_cpus > 0 || is->max_devices > 0;
	}
	s->n_tenants = n;
}

int tenants_init(struct sched *s)
{
	const struct sched_tenant all = { .weight = 1.0 };

	if (make_room(s, 1))
		return -1;
	set_all(s, &all, 1);
	return 0;
}

void sched_tenants_release(struct sched *s)
{
	free(s->tenant);
	free(s->group);
	free(s->has_waiting);
	heap_release(&s->standings);
}

int sched_set_tenants(struct sched *s, int64_t now_ns, const struct sched_tenant *tenant, size_t n,
		      struct err *err)
{
	if (n < s->n_tenants || n > SCHED_MAX_TENANTS)
		return err_fail(err, ERR_ARG, "%zu tenants: need %zu to %d", n, s->n_tenants,
				SCHED_MAX_TENANTS);
	if (!s->tenants_given && s->n_spare < s->max_jobs)
		return err_fail(err, ERR_ARG, "tenants are set before the first job comes");
	for (size_t i = 0; i < n; i++)
		if (!(tenant[i].weight > 0.0 && tenant[i].weight <= 1e9))
			return err_fail(err, ERR_ARG,
					"tenant %zu has weight %g: need more than 0, at most 1e9", i,
					tenant[i].weight);
	if (make_room(s, n))
		return err_nomem(err, "%zu tenants", n);
	if (s->last_ns != INT64_MIN) /* restoring comes later, and is no event */
		tenants_settle(s, live_clock(s, now_ns));
	set_all(s, tenant, n);
	s->tenants_given = true;
	live_changed(s);
	return 0;
}

/* ---- where they stand ---- */

/* The part of a usage that is left since it was settled. */
static double kept(const struct sched *s, int64_t now_ns)
{
	return now_ns > s->usage_ns ? exp(-1e-9 * (double)(now_ns - s->usage_ns) / s->window_s) : 1.0;
}

static double usage_at(const struct sched *s, const struct tenant *t, double part)
{
	return t->usage * part + (double)t->cpus * s->window_s * (1.0 - part);
}

void tenants_settle(struct sched *s, int64_t now_ns)
{
	double part = kept(s, now_ns);

	for (size_t i = 0; i < s->n_tenants && part < 1.0; i++)
		s->tenant[i].usage = usage_at(s, &s->tenant[i], part);
	if (now_ns > s->usage_ns)
		s->usage_ns = now_ns;
}

static double claim(const struct sched *s, const struct tenant *t)
{
	return t->usage + s->window_s * (double)t->cpus;
}

double tenant_standing(const struct sched *s, const struct tenant *t)
{
	return claim(s, t) / t->is.weight;
}

double tenants_mean(struct sched *s)
{
	double claims = 0.0, weights = 0.0;

	if (s->mean_standing.changes == s->changes + 1 && s->mean_standing.usage_ns == s->usage_ns)
		return s->mean_standing.value;

	for (size_t i = 0; i < s->n_tenants; i++) {
		const struct tenant *t = &s->tenant[i];

		if (t->n_queued || t->n_running) {
			claims += claim(s, t);
			weights += t->is.weight;
		}
	}
	s->mean_standing.changes = s->changes + 1;
	s->mean_standing.usage_ns = s->usage_ns;
	s->mean_standing.value = weights > 0.0 ? claims / weights : NAN;
	return s->mean_standing.value;
}

size_t tenants_next_waiting(const struct sched *s, size_t i)
{
	for (; i < s->n_tenants; i = (i / 64 + 1) * 64) {
		uint64_t bits = s->has_waiting[i / 64] >> i % 64;

		if (bits) {
			i += (size_t)__builtin_ctzll(bits);
			return i < s->n_tenants ? i : s->n_tenants;
		}
	}
	return s->n_tenants;
}

void tenants_note_waiting(struct sched *s, const struct tenant *t)
{
	size_t i = (size_t)(t - s->tenant);
	uint64_t bit = (uint64_t)1 << i % 64;

	if (t->waiting.n)
		s->has_waiting[i / 64] |= bit;
	else
		s->has_waiting[i / 64] &= ~bit;
}

void tenants_rank(struct sched *s)
{
	heap_reset(&s->standings);
	for (size_t i = tenants_next_waiting(s, 0); i < s->n_tenants; i = tenants_next_waiting(s, i + 1))
		heap_push(&s->standings, tenant_standing(s, &s->tenant[i]), (uint32_t)i);
}

int sched_share(struct sched *s, int64_t now_ns, uint32_t tenant, struct sched_share *out, struct err *err)
{
	const struct tenant *t;

	if (tenant >= s->n_tenants)
		return err_fail(err, ERR_NOTFOUND, "there is no tenant %u", tenant);
	t = &s->tenant[tenant];
	tenants_settle(s, live_clock(s, now_ns));
	*out = (struct sched_share){ .usage_cpu_s = t->usage,
				     .standing = tenant_standing(s, t),
				     .mean_standing = tenants_mean(s),
				     .cpus = t->cpus,
				     .devices = t->devices,
				     .queued = t->n_queued,
				     .running = t->n_running };
	return 0;
}
