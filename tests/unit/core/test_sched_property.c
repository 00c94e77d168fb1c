/* What must hold for every schedule, on ten thousand small random ones played to their end with jobs that
 * have just the work that was predicted (hand_model.h): promises are kept, whatever was started before its
 * turn; nobody is kept waiting beyond the rules of sched.h; quotas hold; the machine is not idle without a
 * reason. */
#include "tests/support/support.h"
#include "tests/unit/core/hand_model.h"

#define SCHEDULES effort(10000)
#define MOST_JOBS 24
#define MOST_TENANTS 4
#define S 1e9

struct player {
	struct sched_request r;
	int64_t submitted_ns, started_ns, deadline_ns;
	bool lives, running, promised, due, by_chance;
	int64_t due_start_ns; /* as planned when it became due */
	struct fluid_job job; /* work left */
	uint32_t devices; /* of the batch it was admitted with, or started with */
	double batch[5];
};

struct theatre {
	struct model *m;
	struct job_values values;
	struct sched *s;
	struct fluid_machine machine;
	struct sched_tenant tenant[MOST_TENANTS];
	double usage[MOST_TENANTS]; /* our own account of it */
	size_t n_tenants;
	double window_s, other_load;
	bool priorities;
	struct rng rng;
	int64_t now_ns;
	struct player player[MOST_JOBS];
	size_t n, arrived;
	uint64_t digest, seed;
	struct decision d;
	/* what was seen over all schedules */
	size_t promised, held, passed, due, ended, full, by_chance, hopeless, equipped, lacked;
};

static const double batches[] = { 32, 64, 128, 256, 512 };

static void make_jobs(struct theatre *t)
{
	int64_t at_ns = 0;

	struct rng own =
		rng_stream(t->seed, 4712); /* for what came later: the other draws stay as they were */
	bool chances = rng_below(&own, 2);

	t->n = 8 + rng_below(&t->rng, MOST_JOBS - 8 + 1);
	for (size_t i = 0; i < t->n; i++) {
		struct player *p = &t->player[i];
		size_t first = rng_below(&t->rng, 5), n = 1 + rng_below(&t->rng, (uint32_t)(5 - first));
		uint32_t widest = t->machine.slots < 4 ? t->machine.slots : 4;

		*p = (struct player){ .submitted_ns = at_ns };
		memcpy(p->batch, batches + first, n * sizeof *p->batch);
		p->r = (struct sched_request){
			.id = i + 1,
			.values = &t->values,
			.cpus = 1 + rng_below(&t->rng, widest),
			.batch = p->batch,
			.n_batches = n,
			.slo_s = rng_below(&t->rng, 5) < 3 ? 20.0 + 400.0 * rng_exponential(&t->rng) : NAN,
			.confidence = 0.9,
			.best_effort = rng_below(&t->rng, 2),
			.tenant = rng_below(&t->rng, (uint32_t)t->n_tenants),
			.priority = t->priorities ? (int)rng_below(&t->rng, 3) - 1 : 0,
			.memory_mb = NAN,
			.memory_mb_per_record = NAN,
			.max_memory_mb = NAN,
		};
		if (chances && rng_below(&own, 3))
			p->r.chance = 0.4 * rng_uniform(&own);
		if (t->machine.devices && rng_below(&own, 2))
			p->r.device = (struct device_need){ .least = rng_below(&own, 3),
							    .records_each = rng_below(&own, 2)
										    ? 32 << rng_below(&own, 4)
										    : 0 };
		at_ns += (int64_t)(S * (rng_below(&t->rng, 4) ? 60.0 * rng_exponential(&t->rng) : 0.0));
	}
}

static void open_house(struct theatre *t, uint64_t seed)
{
	struct sched_params p = {
		.policy = hand_policy("postrider"), .model = t->m, .max_jobs = MOST_JOBS, .seed = seed
	};
	struct err err = { 0 };
	struct rng own;

	t->rng = rng_stream(seed, 4711);
	t->now_ns = 0;
	t->arrived = 0;
	t->digest = seed;
	t->window_s = 30.0 + 300.0 * rng_exponential(&t->rng);
	t->priorities = rng_below(&t->rng, 4) == 0;
	hand_disk = rng_below(&t->rng, 2) ? 0.25 : 0.0;
	p.machine = (struct sched_machine){ .cores = 2,
					    .slots = 2 + rng_below(&t->rng, 6),
					    .memory_mb = INFINITY };
	p.window_s = t->window_s;
	own = rng_stream(seed, 4713);
	p.machine.devices = rng_below(&own, 2) ? rng_below(&own, 5) : 0;
	t->machine = decide_machine(t->m, 2, p.machine.slots);
	t->machine.devices = p.machine.devices;
	t->n_tenants = 1 + rng_below(&t->rng, MOST_TENANTS);
	t->other_load = rng_below(&t->rng, 4) ? 0.0 : 2.0 * rng_uniform(&t->rng);
	for (size_t i = 0; i < t->n_tenants; i++) {
		t->tenant[i] = (struct sched_tenant){
			.weight = 1.0 + rng_below(&t->rng, 3),
			.max_queued = rng_below(&t->rng, 3) ? 0 : 1 + rng_below(&t->rng, 4),
			.max_cpus = rng_below(&t->rng, 3) ? 0 : 2 + rng_below(&t->rng, 4)
		};
		if (p.machine.devices && rng_below(&own, 3) == 0)
			t->tenant[i].max_devices = 1 + rng_below(&own, 3);
		t->usage[i] = 0.0;
	}
	make_jobs(t);
	if (sched_new(&p, &t->s, &err) || sched_set_tenants(t->s, 0, t->tenant, t->n_tenants, &err) ||
	    sched_set_other_load(t->s, 0, t->other_load, &err))
		fail_msg("%s", err.text);
}

/* ---- our own account ---- */

static uint64_t cpus_of(const struct theatre *t, size_t tenant)
{
	uint64_t cpus = 0;

	for (size_t i = 0; i < t->arrived; i++)
		if (t->player[i].running && (tenant == SIZE_MAX || t->player[i].r.tenant == tenant))
			cpus += t->player[i].r.cpus;
	return cpus;
}

static uint64_t devices_of(const struct theatre *t, size_t tenant)
{
	uint64_t devices = 0;

	for (size_t i = 0; i < t->arrived; i++)
		if (t->player[i].running && (tenant == SIZE_MAX || t->player[i].r.tenant == tenant))
			devices += t->player[i].devices;
	return devices;
}

static double standing(const struct theatre *t, size_t tenant)
{
	return (t->usage[tenant] + t->window_s * (double)cpus_of(t, tenant)) / t->tenant[tenant].weight;
}

static double mean_standing(const struct theatre *t)
{
	double claims = 0.0, weights = 0.0;

	for (size_t k = 0; k < t->n_tenants; k++) {
		bool has_jobs = false;

		for (size_t i = 0; i < t->arrived; i++)
			has_jobs |= t->player[i].lives && t->player[i].r.tenant == k;
		if (has_jobs) {
			claims += standing(t, k) * t->tenant[k].weight;
			weights += t->tenant[k].weight;
		}
	}
	return claims / weights;
}

static bool waits(const struct player *p)
{
	return p->lives && !p->running;
}

static bool devices_fit(const struct theatre *t, const struct player *p, bool quota)
{
	uint32_t most = t->tenant[p->r.tenant].max_devices;

	if (quota)
		return !most || devices_of(t, p->r.tenant) + p->devices <= most;
	return devices_of(t, SIZE_MAX) + p->devices <= t->machine.devices;
}

/* Slots, devices and quota are there for it. */
static bool fits(const struct theatre *t, const struct player *p)
{
	uint32_t quota = t->tenant[p->r.tenant].max_cpus;

	return devices_fit(t, p, false) && devices_fit(t, p, true) &&
	       cpus_of(t, SIZE_MAX) + p->r.cpus <= t->machine.slots &&
	       (!quota || cpus_of(t, p->r.tenant) + p->r.cpus <= quota);
}

static bool promise_lives(const struct theatre *t)
{
	for (size_t i = 0; i < t->arrived; i++)
		if (t->player[i].lives && t->player[i].promised)
			return true;
	return false;
}

/* Asked, not remembered: a job becomes due within a call that starts another. */
static bool due_waits(const struct theatre *t)
{
	for (size_t i = 0; i < t->arrived; i++) {
		struct sched_waiting w;

		if (waits(&t->player[i]) && !sched_waiting(t->s, t->now_ns, t->player[i].r.id, &w, NULL) &&
		    w.due)
			return true;
	}
	return false;
}

/* ---- claims ---- */

/* With nothing to protect, whoever starts is of a tenant that stands no higher than any other that could
 * start. (One taken by chance may have lost it.) */
static void check_fair(const struct theatre *t, const struct player *p)
{
	double waited_s = 1e-9 * (double)(t->now_ns - p->submitted_ns);

	/* one that has waited for a window may have become due, and started, in one call */
	if (promise_lives(t) || due_waits(t) || p->due || p->r.priority > 0 || waited_s >= t->window_s - 1e-6)
		return;
	for (size_t i = 0; i < t->arrived; i++) {
		const struct player *q = &t->player[i];

		if (waits(q) && !q->by_chance && q->r.priority >= p->r.priority && fits(t, q) &&
		    !(standing(t, p->r.tenant) <= standing(t, q->r.tenant) * (1 + 1e-9) + 1e-9))
			fail_msg("schedule %llu: job %llu starts at standing %g, and %llu could at %g",
				 (unsigned long long)t->seed, (unsigned long long)p->r.id,
				 standing(t, p->r.tenant), (unsigned long long)q->r.id,
				 standing(t, q->r.tenant));
	}
}

static void check_quotas(const struct theatre *t)
{
	assert_true(cpus_of(t, SIZE_MAX) <= t->machine.slots);
	assert_true(devices_of(t, SIZE_MAX) <= t->machine.devices);
	assert_int_equal(devices_of(t, SIZE_MAX), sched_devices_used(t->s));
	for (size_t k = 0; k < t->n_tenants; k++) {
		size_t queued = 0;

		for (size_t i = 0; i < t->arrived; i++)
			queued += waits(&t->player[i]) && t->player[i].r.tenant == k;
		assert_true(!t->tenant[k].max_cpus || cpus_of(t, k) <= t->tenant[k].max_cpus);
		assert_true(!t->tenant[k].max_devices || devices_of(t, k) <= t->tenant[k].max_devices);
		assert_true(!t->tenant[k].max_queued || queued <= t->tenant[k].max_queued);
	}
}

/* Nothing more starts now. */
static void check_rest(struct theatre *t)
{
	bool free = !promise_lives(t) && !due_waits(t);

	for (size_t i = 0; i < t->arrived; i++) {
		struct player *p = &t->player[i];
		struct sched_waiting w;

		if (!waits(p))
			continue;
		if (free && fits(t, p) && !(p->by_chance && sched_running(t->s)))
			fail_msg("schedule %llu: job %llu could start", (unsigned long long)t->seed,
				 (unsigned long long)p->r.id);
		assert_int_equal(sched_waiting(t->s, t->now_ns, p->r.id, &w, NULL), 0);
		assert_int_not_equal(w.why, SCHED_WAIT_NOT);
		if (w.why == SCHED_WAIT_HELD) {
			assert_true(w.job && w.job != p->r.id && sched_lives(t->s, w.job) && fits(t, p));
			t->held++;
		}
		if (w.why == SCHED_WAIT_DEVICES) {
			assert_true(w.needed > w.available);
			t->lacked++;
		}
		assert_int_equal(w.why == SCHED_WAIT_QUOTA,
				 t->tenant[p->r.tenant].max_cpus && cpus_of(t, p->r.tenant) + p->r.cpus >
									    t->tenant[p->r.tenant].max_cpus);
	}
}

/* The first to wait of a tenant that is not above its share is due after a window, and then never starts
 * later than was planned at that moment. */
static void check_due(struct theatre *t)
{
	double mean = mean_standing(t);

	for (size_t k = 0; k < t->n_tenants; k++) {
		struct player *first = NULL;
		bool one_is_due = false;

		for (size_t i = 0; i < t->arrived; i++) {
			struct player *p = &t->player[i];
			struct sched_estimate e;
			struct sched_waiting w;

			if (!waits(p) || p->promised || p->r.tenant != k)
				continue;
			sched_waiting(t->s, t->now_ns, p->r.id, &w, NULL);
			if (p->by_chance) { /* its limit ends its wait */
				assert_false(w.due);
				continue;
			}
			if (w.due && !p->due) {
				sched_estimate(t->s, t->now_ns, p->r.id, &e, NULL);
				assert_true(isfinite(e.start_s));
				p->due_start_ns = t->now_ns + (int64_t)(S * e.start_s);
				t->due++;
			}
			p->due = w.due;
			one_is_due |= w.due && p->r.priority <= 0;
			if (!w.due && (!first || p->r.priority > first->r.priority))
				first = p;
		}
		if (first && !one_is_due &&
		    1e-9 * (double)(t->now_ns - first->submitted_ns) > t->window_s + 1e-6)
			assert_true(standing(t, k) > mean * (1 - 1e-9));
	}
}

/* ---- the play ---- */

static void pass_time(struct theatre *t, int64_t to_ns)
{
	double for_s = 1e-9 * (double)(to_ns - t->now_ns), kept = exp(-for_s / t->window_s);
	double processes = (double)cpus_of(t, SIZE_MAX) + t->other_load;

	for (size_t k = 0; k < t->n_tenants; k++)
		t->usage[k] = t->usage[k] * kept + (double)cpus_of(t, k) * t->window_s * (1.0 - kept);
	for (size_t i = 0; i < t->arrived; i++) {
		struct player *p = &t->player[i];

		if (p->running)
			p->job.work_s -= for_s / decide_stretch(&t->machine, &p->job, processes);
	}
	t->now_ns = to_ns;
}

static int64_t next_end_ns(const struct theatre *t)
{
	double processes = (double)cpus_of(t, SIZE_MAX) + t->other_load, first_s = INFINITY;

	for (size_t i = 0; i < t->arrived; i++)
		if (t->player[i].running)
			first_s = fmin(first_s,
				       t->player[i].job.work_s *
					       decide_stretch(&t->machine, &t->player[i].job, processes));
	return isinf(first_s) ? INT64_MAX : t->now_ns + (int64_t)ceil(S * fmax(first_s, 0.0));
}

static void end_those_done(struct theatre *t)
{
	for (size_t i = 0; i < t->arrived; i++) {
		struct player *p = &t->player[i];

		if (!p->running || p->job.work_s > 2e-9)
			continue;
		assert_int_equal(sched_remove(t->s, t->now_ns, p->r.id, NULL), 0);
		p->running = p->lives = false;
		t->ended++;
		if (p->promised && t->now_ns > p->deadline_ns + 1000)
			fail_msg("schedule %llu: job %llu was promised to end %g s earlier",
				 (unsigned long long)t->seed, (unsigned long long)p->r.id,
				 1e-9 * (double)(t->now_ns - p->deadline_ns));
	}
}

static void arrive(struct theatre *t)
{
	struct player *p = &t->player[t->arrived];
	size_t queued = 0;
	enum sched_verdict verdict;
	struct err err = { 0 };
	int rc = sched_submit(t->s, t->now_ns, &p->r, &t->d, &verdict, &err);

	for (size_t i = 0; i < t->arrived; i++)
		queued += waits(&t->player[i]) && t->player[i].r.tenant == p->r.tenant;
	t->arrived++;
	if (rc == -ERR_BUSY) {
		assert_true(queued >= t->tenant[p->r.tenant].max_queued);
		assert_non_null(strstr(err.text, "of tenant"));
		t->full++;
		return;
	}
	if (rc)
		fail_msg("%s", err.text);
	t->digest = hand_digest(t->digest ^ verdict, &t->d);
	p->lives = verdict != SCHED_REJECTED;
	p->promised = verdict == SCHED_PROMISED;
	p->by_chance = verdict == SCHED_CHANCE;
	if (p->by_chance) {
		assert_true(p->r.chance > 0.0 && t->d.candidate[t->d.chosen].chance >= p->r.chance);
		t->by_chance++;
	}
	p->devices = p->lives ? t->d.candidate[t->d.chosen].devices : 0;
	t->equipped += p->devices > 0;
	p->deadline_ns = p->submitted_ns + (int64_t)(S * p->r.slo_s);
	t->promised += p->promised;
}

static void start_all(struct theatre *t)
{
	uint64_t id;

	while (sched_next(t->s, t->now_ns, &id, &t->d)) {
		struct player *p = &t->player[id - 1];

		assert_true(waits(p));
		if (!p->promised)
			check_fair(t, p);
		for (size_t i = 0; i + 1 < id; i++)
			t->passed += waits(&t->player[i]);
		if (p->due && !t->priorities && t->now_ns > p->due_start_ns + 1000)
			fail_msg("schedule %llu: job %llu was due and starts %g s late",
				 (unsigned long long)t->seed, (unsigned long long)id,
				 1e-9 * (double)(t->now_ns - p->due_start_ns));
		t->digest = hand_digest(t->digest ^ id, &t->d);
		p->running = true;
		p->started_ns = t->now_ns;
		p->job = decide_fluid_job(&t->d.candidate[t->d.chosen], p->r.cpus);
		p->devices = p->job.devices;
		assert_int_equal(p->devices,
				 device_need_count(&p->r.device, t->d.candidate[t->d.chosen].decision));
		check_quotas(t);
	}
}

/* Those without a chance leave; they would still not be in time if they started now, alone. */
static bool drop_hopeless(struct theatre *t)
{
	size_t before = t->hopeless;
	uint64_t id;

	while (sched_hopeless(t->s, &id)) {
		struct player *p = &t->player[id - 1];

		assert_true(waits(p) && p->by_chance);
		assert_int_equal(sched_remove(t->s, t->now_ns, id, NULL), 0);
		p->lives = false;
		t->hopeless++;
	}
	return t->hopeless > before;
}

static uint64_t perform(struct theatre *t, uint64_t seed)
{
	open_house(t, seed);
	for (;;) {
		int64_t end_ns = next_end_ns(t);
		int64_t arrival_ns = t->arrived < t->n ? t->player[t->arrived].submitted_ns : INT64_MAX;

		if (end_ns == INT64_MAX && arrival_ns == INT64_MAX)
			break;
		pass_time(t, end_ns < arrival_ns ? end_ns : arrival_ns);
		end_those_done(t);
		while (t->arrived < t->n && t->player[t->arrived].submitted_ns <= t->now_ns)
			arrive(t);
		do {
			start_all(t);
		} while (drop_hopeless(t));
		check_quotas(t);
		check_due(t);
		check_rest(t);
	}
	assert_int_equal(sched_queued(t->s), 0); /* all have ended */
	assert_int_equal(sched_running(t->s), 0);
	sched_free(t->s);
	t->s = NULL;
	return t->digest;
}

TEST(test_ten_thousand_schedules_keep_to_the_rules)
{
	static struct theatre t;
	uint64_t seed;
	const char *only = getenv("SCHED_SEED");

	memset(&t, 0, sizeof t);
	t.m = hand_model(&hand_hybrid);
	t.values = hand_values(t.m);
	for (int i = 0; i < 8; i++) /* the bound stays, and there are chances below it */
		t.m->time.conformal.score[i] = log(1.2) - 0.2 * (8 - i);
	conformal_set_groups(&t.m->time.conformal, 9);
	for (seed = only ? strtoull(only, NULL, 10) : 1; seed <= SCHEDULES; seed++) {
		uint64_t digest;

		t.seed = seed;
		digest = perform(&t, seed);

		if (seed % 10 == 0)
			assert_true(digest == perform(&t, seed));
		if (only)
			break;
	}
	print_message("%zu by chance, of which %zu lost it; ", t.by_chance, t.hopeless);
	print_message("%zu with devices, %zu waits for some; ", t.equipped, t.lacked);
	print_message("%zu promised, %zu held, %zu passed, %zu due, %zu refused by quota, %zu ended\n",
		      t.promised, t.held, t.passed, t.due, t.full, t.ended);
	if (!only) /* the rules were put to the test */
		assert_true(t.promised > SCHEDULES && t.held > SCHEDULES && t.passed > SCHEDULES &&
			    t.due > SCHEDULES / 5 && t.full > SCHEDULES / 5 && t.by_chance > SCHEDULES / 10 &&
			    t.hopeless > SCHEDULES / 100 && t.equipped > SCHEDULES &&
			    t.lacked > SCHEDULES / 5);
	job_values_release(&t.values);
	model_free(t.m);
}
