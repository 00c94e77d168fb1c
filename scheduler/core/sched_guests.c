/* A cluster that others use as well: how many slots it has for us, and the jobs of others in them. sched.h
 * says what they are to the look-ahead. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/core/sched_internal.h"

#define OVERDUE_S 5.0 /* of one that is past its end: an engine ends it, and looks a few times a minute */

struct fluid_job guest_job(const struct sched_guest *g, int64_t now_ns)
{
	double left_s = fmax(live_until_s(g->end_ns, now_ns), OVERDUE_S);

	/* All of its time is `rest`: what others do does not move its end. */
	return (struct fluid_job){ .work_s = fmin(left_s, FLUID_MAX_WORK_S), .cpus = g->cpus };
}

/* ---- those that matter ---- */

static int by_end(const void *a, const void *b)
{
	const struct sched_guest *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->cpus > y->cpus) - (x->cpus < y->cpus);
}

size_t sched_fit_guests(struct sched_guest *guest, size_t n, uint64_t spare)
{
	size_t each, kept = 0;

	qsort(guest, n, sizeof *guest, by_end);
	while (n && spare) {
		uint32_t *cpus = &guest[n - 1].cpus;

		if (*cpus > spare) {
			*cpus -= (uint32_t)spare;
			break;
		}
		spare -= *cpus;
		n--;
	}
	each = (n + SCHED_MAX_GUESTS - 1) / SCHED_MAX_GUESTS;
	for (size_t i = 0; i < n; i += each, kept++) {
		struct sched_guest all = { 0 };

		for (size_t k = i; k < n && k < i + each; k++) {
			all.cpus += guest[k].cpus < UINT32_MAX - all.cpus ? guest[k].cpus
									  : UINT32_MAX - all.cpus;
			all.end_ns = guest[k].end_ns;
		}
		guest[kept] = all;
	}
	return kept;
}

/* ---- events ---- */

uint32_t guest_slots(const struct sched *s)
{
	return s->cluster_slots && s->cluster_slots < s->most_slots ? s->cluster_slots : s->most_slots;
}

static void set_slots(struct sched *s, uint32_t slots)
{
	if (slots == s->machine.slots)
		return;
	s->machine.slots = s->fluid.slots = slots;
	for (size_t i = 0; i < s->live_end; i++) {
		struct live *j = &s->live[i];

		if (j->r.id && !j->running && !j->r.apart) {
			live_weigh(s, j);
			live_reorder(s, (uint32_t)i);
		}
	}
}

static bool is_same(const struct sched *s, const struct sched_guest *guest, size_t n)
{
	if (n != s->n_guests)
		return false;
	for (size_t i = 0; i < n; i++)
		if (guest[i].cpus != s->guest[i].cpus || guest[i].end_ns != s->guest[i].end_ns)
			return false;
	return true;
}

int sched_set_cluster(struct sched *s, int64_t now_ns, uint32_t slots, const struct sched_guest *guest,
		      size_t n, struct err *err)
{
	if (!slots || n > SCHED_MAX_GUESTS)
		return err_fail(err, ERR_ARG,
				"a cluster of %u slots and %zu guests: need 1 or more, and at most %d", slots,
				n, SCHED_MAX_GUESTS);
	for (size_t i = 0; i < n; i++)
		if (!guest[i].cpus)
			return err_fail(err, ERR_ARG, "a guest with 0 cpus: need at least 1");
	if (slots == s->cluster_slots && is_same(s, guest, n))
		return 0;
	if (s->last_ns != INT64_MIN || s->running.n) /* else there was no job to slow down */
		live_settle(s, live_clock(s, now_ns));
	s->n_guests = n;
	s->guest_cpus = 0;
	for (size_t i = 0; i < n; i++) {
		s->guest[i] = guest[i];
		s->guest_cpus += guest[i].cpus;
	}
	s->cluster_slots = slots;
	set_slots(s, guest_slots(s));
	live_set_speeds(s);
	live_changed(s);
	return 0;
}

int sched_set_idle(struct sched *s, int64_t now_ns, uint64_t id, bool idle, struct err *err)
{
	struct live *j;
	int rc = live_find_running(s, id, &j, err);

	if (rc)
		return rc;
	if (j->idle == idle)
		return 0;
	now_ns = live_clock(s, now_ns);
	live_settle(s, now_ns);
	j->idle = idle;
	if (!idle)
		live_begun(j);
	j->plain_s = 0.0;
	s->met_from[j - s->live] = pairs_start(s->pairs, &s->met);
	j->done_s = 0.0; /* what was counted until somebody said that it waits was not done */
	live_changed(s);
	return 0;
}

int sched_set_lag(struct sched *s, double lag_s, struct err *err)
{
	if (!(lag_s >= 0.0 && lag_s <= 1e9))
		return err_fail(err, ERR_ARG, "a lag of %g s: need 0 to 1e9", lag_s);
	s->lag_s = s->policy.without & LAYER_START_LAG ? 0.0 : lag_s;
	return 0;
}

/* ---- questions ---- */

uint64_t sched_guest_cpus(const struct sched *s)
{
	return s->guest_cpus;
}

uint32_t sched_slots(const struct sched *s)
{
	return s->machine.slots;
}
