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

static struct fluid_group group_with(const struct sched_tenant *is)
{
	return (struct fluid_group){ .cpus = is->max_cpus ? is->max_cpus : UINT32_MAX,
				     .devices = is->max_devices ? is->max_devices : UINT32_MAX };
}

/* ---- the roll of them ---- */

struct roll {
	struct tenant *tenant;
	struct fluid_group *group;
	uint64_t *has_waiting;
};

static void roll_release(struct roll *t)
{
	free(t->tenant);
	free(t->group);
	free(t->has_waiting);
}

static struct tenant newcomer(const struct sched_tenant *is)
{
	return (struct tenant){ .is = *is,
				.due = NO_JOB,
				.waiting = { .first = NO_JOB, .last = NO_JOB, .root = JOB_ORDER_NONE } };
}

static int roll_make(struct sched *s, const struct sched_tenant *tenant, size_t n, struct roll *out)
{
	out->tenant = mem_array(n, sizeof *out->tenant);
	out->group = mem_array(n, sizeof *out->group);
	out->has_waiting = mem_calloc(n / 64 + 1, sizeof *out->has_waiting);
	if (!out->tenant || !out->group || !out->has_waiting || heap_reserve(&s->standings, n)) {
		roll_release(out);
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		out->tenant[i] = newcomer(&tenant[i]);
		out->group[i] = group_with(&tenant[i]);
	}
	return 0;
}

static void roll_use(struct sched *s, const struct roll *t, size_t n)
{
	free(s->tenant);
	free(s->group);
	free(s->has_waiting);
	s->tenant = t->tenant;
	s->group = t->group;
	s->has_waiting = t->has_waiting;
	s->n_tenants = n;
	s->tenants_cap = n;
	for (size_t i = 0; i < n; i++)
		tenants_note_waiting(s, &s->tenant[i]);
	s->quotas = false;
	for (size_t i = 0; i < n; i++)
		s->quotas |= t->tenant[i].is.max_cpus > 0 || t->tenant[i].is.max_devices > 0;
}

int tenants_init(struct sched *s)
{
	const struct sched_tenant all = { .weight = 1.0 };
	struct roll t;

	if (roll_make(s, &all, 1, &t))
		return -1;
	roll_use(s, &t, 1);
	return 0;
}

void sched_tenants_release(struct sched *s)
{
	free(s->tenant);
	free(s->group);
	free(s->has_waiting);
	heap_release(&s->standings);
}

static int check_tenants(const struct sched *s, const struct sched_tenant *tenant, size_t n, bool jobs,
			 struct err *err)
{
	if (!n || n > SCHED_MAX_TENANTS)
		return err_fail(err, ERR_ARG, "%zu tenants: need 1 to %d", n, SCHED_MAX_TENANTS);
	for (size_t i = 0; i < n; i++)
		if (!(tenant[i].weight > 0.0 && tenant[i].weight <= 1e9))
			return err_fail(err, ERR_ARG,
					"tenant %zu has weight %g: need more than 0, at most 1e9", i,
					tenant[i].weight);
	for (size_t i = 0; jobs && i < s->live_end; i++)
		if (s->live[i].r.id && s->live[i].r.tenant >= n)
			return err_fail(err, ERR_ARG, "live job %llu is of tenant %u, and there are %zu",
					(unsigned long long)s->live[i].r.id, s->live[i].r.tenant, n);
	return 0;
}

/* Before the first call all jobs are one tenant's; now each goes to its own. */
static void move_over(struct sched *s, const struct roll *to, size_t n)
{
	for (size_t i = 0; i < n && i < s->n_tenants && s->tenants_given; i++)
		to->tenant[i].usage = s->tenant[i].usage;
	for (size_t i = 0; i < s->live_end; i++) {
		const struct live *j = &s->live[i];
		struct tenant *t = &to->tenant[j->r.tenant < n ? j->r.tenant : 0];

		if (!j->r.id)
			continue;
		if (tenant_of(s, &j->r)->due == i)
			t->due = (uint32_t)i;
		t->cpus += j->running ? j->r.cpus : 0;
		t->devices += j->running ? j->taken.devices : 0;
		t->n_running += j->running;
		t->n_queued += !j->running;
	}
	for (size_t k = 0; k < s->n_tenants; k++) { /* in their order */
		for (uint32_t i = s->tenant[k].waiting.first, next; i != NO_JOB; i = next) {
			struct live_list *l = &to->tenant[s->live[i].r.tenant].waiting;

			next = s->live[i].next;
			live_enlist(s, l, l->n, i);
		}
	}
}

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
	for (size_t i = s->tenants_cap / 64 + 1; i <= cap / 64; i++)
		bits[i] = 0;
	s->tenants_cap = cap;
	return 0;
}

/* No job changes its tenant, so none is looked at: a new user costs the others little. */
static void change_all(struct sched *s, const struct sched_tenant *tenant, size_t n)
{
	s->quotas = false;
	for (size_t i = 0; i < n; i++) {
		if (i >= s->n_tenants)
			s->tenant[i] = newcomer(&tenant[i]);
		s->tenant[i].is = tenant[i];
		s->group[i] = group_with(&tenant[i]);
		s->quotas |= tenant[i].max_cpus > 0 || tenant[i].max_devices > 0;
	}
	s->n_tenants = n;
}

int sched_set_tenants(struct sched *s, int64_t now_ns, const struct sched_tenant *tenant, size_t n,
		      struct err *err)
{
	bool grows = s->tenants_given && n >= s->n_tenants;
	struct roll t;
	int rc = check_tenants(s, tenant, n, !grows, err);

	if (rc)
		return rc;
	if (grows ? make_room(s, n) : roll_make(s, tenant, n, &t))
		return err_nomem(err, "%zu tenants", n);
	if (s->last_ns != INT64_MIN) /* restoring comes later, and is no event */
		tenants_settle(s, live_clock(s, now_ns));
	if (grows) {
		change_all(s, tenant, n);
	} else {
		move_over(s, &t, n);
		roll_use(s, &t, n);
	}
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

static struct sched_share share_of(const struct sched *s, const struct tenant *t, double mean)
{
	return (struct sched_share){ .usage_cpu_s = t->usage,
				     .standing = tenant_standing(s, t),
				     .mean_standing = mean,
				     .cpus = t->cpus,
				     .devices = t->devices,
				     .queued = t->n_queued,
				     .running = t->n_running };
}

int sched_share(struct sched *s, int64_t now_ns, uint32_t tenant, struct sched_share *out, struct err *err)
{
	if (tenant >= s->n_tenants)
		return err_fail(err, ERR_NOTFOUND, "there is no tenant %u", tenant);
	tenants_settle(s, live_clock(s, now_ns));
	*out = share_of(s, &s->tenant[tenant], tenants_mean(s));
	return 0;
}

void sched_shares(struct sched *s, int64_t now_ns, sched_share_fn *tell, void *owner)
{
	double mean;

	tenants_settle(s, live_clock(s, now_ns));
	mean = tenants_mean(s);
	for (size_t i = 0; i < s->n_tenants; i++) {
		struct sched_share share = share_of(s, &s->tenant[i], mean);

		tell(owner, (uint32_t)i, &share);
	}
}
