/* What must hold for any sequence of events: random ones, on the model of hand_model.h. */
#include "common/mem.h"
#include "tests/support/test.h"
#include "tests/unit/core/hand_model.h"
#include "tests/unit/core/whole_order.h"

#define MAX_LIVE 2000

struct world {
	struct model *m;
	struct job_values values;
	struct sched *s;
	struct sched_machine machine;
	struct rng rng;
	int64_t now_ns;
	uint64_t ids, digest;
	uint64_t running[MAX_LIVE];
	size_t n_running;
	size_t promised, rejected, best_effort;
	bool bounds;
	struct decision d;
};

static const double batches[] = { 32, 64, 128, 256, 512 };

static void make(struct world *w, uint64_t seed, const char *policy, uint32_t slots, double memory_mb)
{
	struct sched_params p;
	struct err err = { 0 };

	memset(w, 0, sizeof *w);
	hand_disk = 0.25;
	w->bounds = hand_policy(policy).policy->bounds;
	w->m = hand_model(!strcmp(policy, "courier") ? &hand_forest : &hand_hybrid);
	w->values = hand_values(w->m);
	w->machine = (struct sched_machine){ .cores = 2, .slots = slots, .memory_mb = memory_mb };
	w->rng = rng_stream(seed, 1);
	p = (struct sched_params){ .policy = hand_policy(policy),
				   .model = w->m,
				   .machine = w->machine,
				   .max_jobs = MAX_LIVE,
				   .seed = seed };
	if (sched_new(&p, &w->s, &err))
		fail_msg("%s", err.text);
}

static void drop(struct world *w)
{
	sched_free(w->s);
	job_values_release(&w->values);
	model_free(w->m);
}

static struct sched_request request(struct world *w)
{
	size_t first = rng_below(&w->rng, 5), n = 1 + rng_below(&w->rng, (uint32_t)(5 - first));

	return (struct sched_request){
		.id = ++w->ids,
		.values = &w->values,
		.cpus = 1 + rng_below(&w->rng, w->machine.slots < 4 ? w->machine.slots : 4),
		.batch = batches + first,
		.n_batches = n,
		.slo_s = rng_below(&w->rng, 4) ? 10.0 + 400.0 * rng_exponential(&w->rng) : NAN,
		.confidence = 0.9,
		.best_effort = rng_below(&w->rng, 4) == 0,
		.memory_mb = rng_below(&w->rng, 2) ? 100.0 * rng_uniform(&w->rng) : NAN,
		.memory_mb_per_record = rng_below(&w->rng, 2) ? rng_uniform(&w->rng) : NAN,
		.max_memory_mb = rng_below(&w->rng, 8) ? NAN : 300.0,
	};
}

static bool in_list(const struct sched_request *r, const struct decision *d)
{
	for (size_t i = 0; i < r->n_batches; i++)
		if (r->batch[i] == d->candidate[d->chosen].decision)
			return true;
	return false;
}

static void check_admitted(const struct world *w, const struct sched_request *r, enum sched_verdict verdict)
{
	const struct decision *d = &w->d;
	const struct candidate *c = &d->candidate[d->chosen];

	assert_true(in_list(r, d));
	assert_false(c->reasons & (REASON_MEMORY | REASON_TOO_WIDE));
	if (verdict == SCHED_PROMISED)
		assert_false(c->reasons & REASON_BREAKS_PROMISE);
	assert_true(isfinite(c->time_s) && isfinite(c->work_s) && isfinite(c->wait_s));
	if (verdict == SCHED_PROMISED) {
		assert_true(c->feasible);
		if (w->bounds)
			assert_true(c->wait_upper_s + c->upper_s <= r->slo_s);
		else
			assert_true(c->time_s <= r->slo_s);
	}
}

/* A rejection names a limit that could be promised: it is taken at its word. */
static void check_rejected(struct world *w, const struct sched_request *r)
{
	struct sched_request again = *r;
	enum sched_verdict verdict;
	struct decision d = w->d;

	if (isnan(d.smallest_slo_s)) {
		for (size_t i = 0; i < d.n_candidates; i++)
			assert_true(d.candidate[i].reasons &
				    (REASON_MEMORY | REASON_TOO_WIDE | REASON_BREAKS_PROMISE | REASON_PRICE));
		return;
	}
	assert_true(d.smallest_slo_s > r->slo_s);
	again.slo_s = d.smallest_slo_s;
	assert_int_equal(sched_what_if(w->s, w->now_ns, &again, &d, &verdict, NULL), 0);
	assert_int_equal(verdict, SCHED_PROMISED);
	again.slo_s = nextafter(r->slo_s, 0.0); /* and one that is smaller than what was rejected is not */
	assert_int_equal(sched_what_if(w->s, w->now_ns, &again, &d, &verdict, NULL), 0);
	assert_int_not_equal(verdict, SCHED_PROMISED);
}

static void arrive(struct world *w, bool look_at_rejections)
{
	struct sched_request r = request(w);
	enum sched_verdict verdict;
	struct err err = { 0 };

	if (sched_queued(w->s) + sched_running(w->s) == MAX_LIVE)
		return;
	if (sched_submit(w->s, w->now_ns, &r, &w->d, &verdict, &err))
		fail_msg("%s", err.text);
	w->digest = hand_digest(w->digest ^ verdict, &w->d);
	assert_int_equal(sched_lives(w->s, r.id), verdict != SCHED_REJECTED);
	if (verdict != SCHED_REJECTED)
		check_admitted(w, &r, verdict);
	else if (look_at_rejections)
		check_rejected(w, &r);
	*(verdict == SCHED_PROMISED   ? &w->promised
	  : verdict == SCHED_REJECTED ? &w->rejected
				      : &w->best_effort) += 1;
}

static void start_all(struct world *w)
{
	uint64_t id;

	while (sched_next(w->s, w->now_ns, &id, &w->d)) {
		assert_in_range(w->d.chosen, 0, (int)w->d.n_candidates - 1);
		assert_true(isfinite(w->d.candidate[w->d.chosen].time_s));
		w->digest = hand_digest(w->digest ^ id, &w->d);
		w->running[w->n_running++] = id;
	}
	assert_int_equal(w->n_running, sched_running(w->s));
	assert_true(sched_slots_used(w->s) <= w->machine.slots);
}

static void end_one(struct world *w, size_t at)
{
	assert_int_equal(sched_remove(w->s, w->now_ns, w->running[at], NULL), 0);
	w->running[at] = w->running[--w->n_running];
}

static void step(struct world *w, uint32_t arrivals, bool look_at_rejections)
{
	uint32_t what = rng_below(&w->rng, 10);

	w->now_ns += (int64_t)(4e9 * rng_exponential(&w->rng));
	if (what < arrivals) {
		arrive(w, look_at_rejections);
	} else if (what < 9 && w->n_running) {
		end_one(w, rng_below(&w->rng, (uint32_t)w->n_running));
	} else if (w->n_running) {
		uint64_t id = w->running[rng_below(&w->rng, (uint32_t)w->n_running)];

		assert_int_equal(sched_progress(w->s, w->now_ns, id, rng_uniform(&w->rng), NULL), 0);
	} else if (sched_queued(w->s)) { /* a cancel, of whoever is last */
		for (uint64_t id = w->ids; id; id--) {
			if (sched_lives(w->s, id)) {
				sched_remove(w->s, w->now_ns, id, NULL);
				break;
			}
		}
	}
	start_all(w);
}

static uint64_t many_events(uint64_t seed, size_t n)
{
	struct world *w = malloc(sizeof *w);
	uint64_t digest;

	make(w, seed, "postrider", 6, 500.0);
	for (size_t i = 0; i < n; i++)
		step(w, 6, false);
	digest = w->digest;
	assert_true(w->promised > n / 20 && w->rejected > n / 20 && w->best_effort > n / 20);
	drop(w);
	free(w);
	return digest;
}

TEST(test_the_same_events_give_the_same_bytes)
{
	uint64_t first = many_events(1, 10000);

	assert_true(first == many_events(1, 10000));
	assert_true(first != many_events(2, 10000));
}

TEST(test_the_smallest_objective_named_is_one_that_is_taken)
{
	struct world *w = malloc(sizeof *w);

	for (uint64_t seed = 1; seed <= 20; seed++) {
		make(w, seed, seed % 5 ? "postrider" : "courier", 2 + (uint32_t)seed % 7, 400.0);
		for (int i = 0; i < 200; i++)
			step(w, 4 + (uint32_t)seed % 4, true);
		assert_true(w->rejected > 5);
		drop(w);
	}
	free(w);
}

/* More jobs than are played one by one for each candidate, and later than the window of a scene. */
TEST(test_it_is_also_taken_when_few_candidates_are_played)
{
	struct world *w = malloc(sizeof *w);
	size_t queued[] = { 300, 700 };

	for (int k = 0; k < 2; k++) {
		make(w, 3, "postrider", 8, INFINITY);
		while (sched_queued(w->s) < queued[k]) {
			struct sched_request r = request(w);
			enum sched_verdict verdict;

			r.slo_s = rng_below(&w->rng, 2) ? 1e5 : NAN;
			r.max_memory_mb = NAN;
			assert_int_equal(sched_submit(w->s, 0, &r, &w->d, &verdict, NULL), 0);
			start_all(w);
		}
		for (int i = 0; i < 40; i++) {
			struct sched_request r = request(w);
			enum sched_verdict verdict;
			size_t played = 0;

			r.batch = batches;
			r.n_batches = 5;
			r.max_memory_mb = NAN;
			r.slo_s = 10.0 * i * i;
			r.best_effort = false;
			assert_int_equal(sched_submit(w->s, 0, &r, &w->d, &verdict, NULL), 0);
			for (int c = 0; c < 5; c++)
				played += !isnan(w->d.candidate[c].delays_s);
			assert_in_range(played, 1, 5);
			if (verdict == SCHED_REJECTED)
				check_rejected(w, &r);
			else
				check_admitted(w, &r, verdict);
		}
		drop(w);
	}
	free(w);
}

TEST(test_nothing_is_allocated_on_the_way)
{
	struct world *w = malloc(sizeof *w);
	static uint64_t id[MAX_LIVE];
	static struct sched_estimate e[MAX_LIVE];

	make(w, 5, "postrider", 6, 500.0);
	mem_fail_at(1, true);
	for (int i = 0; i < 500; i++)
		step(w, 7, true);
	for (int i = 0; i < 800; i++)
		arrive(w, false);
	assert_true(whole_estimates(w->s, w->now_ns, id, e, MAX_LIVE) > 0);
	assert_int_equal(sched_estimate(w->s, w->now_ns, id[0], e, NULL), 0);
	assert_false(mem_failed());
	mem_fail_at(0, false);
	drop(w);
	free(w);
}

TEST(test_every_queued_job_starts_in_the_end)
{
	struct world *w = malloc(sizeof *w);

	make(w, 6, "postrider", 5, 300.0);
	for (int i = 0; i < 300; i++)
		step(w, 9, false);
	assert_true(sched_queued(w->s) > 20);
	while (w->n_running || sched_queued(w->s)) {
		w->now_ns += 1000000000;
		end_one(w, rng_below(&w->rng, (uint32_t)w->n_running));
		start_all(w);
		assert_true(w->n_running > 0 || !sched_queued(w->s));
	}
	drop(w);
	free(w);
}

/* With a queue longer than the window, waits are those of the exact play of everybody. */
TEST(test_a_long_queue_is_seen_almost_as_it_is)
{
	struct world *w = malloc(sizeof *w);
	static uint64_t id[MAX_LIVE];
	static struct sched_estimate all[MAX_LIVE], one;
	const uint32_t slots[] = { 3, 8, 70 };

	for (int k = 0; k < 3; k++) {
		enum sched_verdict verdict;
		size_t n;

		make(w, 9, "postrider", slots[k], INFINITY);
		while (sched_queued(w->s) < 1800) {
			struct sched_request r = request(w);

			r.slo_s = NAN;
			r.max_memory_mb = NAN;
			assert_int_equal(sched_submit(w->s, 0, &r, &w->d, &verdict, NULL), 0);
			start_all(w);
		}
		n = whole_estimates(w->s, 0, id, all, MAX_LIVE);
		for (size_t i = 0; i < n; i += 113) {
			assert_int_equal(sched_estimate(w->s, 0, id[i], &one, NULL), 0);
			if (!(fabs(one.end_s - all[i].end_s) <= 0.05 * all[i].end_s))
				fail_msg("%u slots, job %zu of %zu: %g, exactly %g", slots[k], i, n,
					 one.end_s, all[i].end_s);
		}
		for (size_t i = 0; i < w->d.n_candidates; i++) /* of the last one that came */
			assert_true(fabs(w->d.candidate[i].wait_s - all[n - 1].start_s) <=
				    0.05 * all[n - 1].start_s);
		drop(w);
	}
	free(w);
}

/* A plan longer than the window is worked off to its end, by deadlines. */
TEST(test_a_long_plan_is_worked_off_by_deadlines)
{
	struct world *w = malloc(sizeof *w);
	enum sched_verdict verdict;
	uint64_t last = 0;

	make(w, 11, "postrider", 2, INFINITY);
	while (sched_queued(w->s) < 700) {
		struct sched_request r = request(w);

		r.cpus = 2;
		r.batch = batches + 4;
		r.n_batches = 1;
		r.max_memory_mb = NAN;
		r.slo_s = 1e6 + (double)r.id; /* one behind the other */
		assert_int_equal(sched_submit(w->s, 0, &r, &w->d, &verdict, NULL), 0);
		assert_int_equal(verdict, SCHED_PROMISED);
		start_all(w);
	}
	while (w->n_running) {
		assert_int_equal(w->n_running, 1);
		assert_true(w->running[0] > last);
		last = w->running[0];
		w->now_ns += 13000000000;
		end_one(w, 0);
		start_all(w);
	}
	assert_int_equal(sched_queued(w->s), 0);
	drop(w);
	free(w);
}
