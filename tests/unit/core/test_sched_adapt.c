/* What the scheduler learns from jobs that have ended, from end to end: bounds that hold at the asked
 * confidence also when the machine has changed. On the model of hand_model.h; how long a job runs is the
 * model's own time at its start, times a factor of known noise. */
#include <stdio.h>

#include "common/mem.h"
#include "common/stats.h"
#include "tests/unit/core/sched_bed.h"

#define BY(number) ((struct adapt_who){ .type = (number), .user = 0 }) /* all jobs are of one user */

#define SPREAD 0.15
#define RESIDUALS 500
#define JOBS 5000
#define MIDDLE 2500
#define AGAIN (MIDDLE + 200)
#define SLOTS 8
#define TYPES 3

/* ---- a world ---- */

struct run { /* of a job, from its arrival to its end */
	uint64_t id;
	int64_t submitted_ns, end_ns;
	double slo_s, model_s, upper_s, actual_s;
	int type;
	bool runs, tight, promised, waited;
	size_t number; /* of starts with a promise */
};

struct world {
	struct bed b;
	struct rng rng;
	struct run run[4 * SLOTS];
	double confidence, longer; /* from the middle on */
	uint64_t ids, digest;
	size_t started;
	bool bound_kept[JOBS], met[JOBS], at_once[JOBS], waited[JOBS]; /* the last two: of the tight ones */
};

/* As many residuals as a model might have, drawn from the noise itself. */
static void give_noise(struct model *m, struct rng *r)
{
	struct conformal *c = &m->time.conformal;

	free(c->score);
	c->n = RESIDUALS;
	c->score = malloc(RESIDUALS * sizeof *c->score);
	for (size_t i = 0; i < RESIDUALS; i++)
		c->score[i] = SPREAD * rng_normal(r);
	stats_sort(c->score, RESIDUALS);
	conformal_set_groups(c, RESIDUALS);
}

static struct world *new_world(uint64_t seed, double confidence, bool adapt, double longer)
{
	struct world *w = calloc(1, sizeof *w);
	struct sched_params p;

	make(&w->b, "postrider", SLOTS);
	w->rng = rng_stream(seed, 3);
	w->confidence = confidence;
	w->longer = longer;
	give_noise(w->b.m, &w->rng);
	p = params(&w->b, "postrider", SLOTS);
	p.adapt = adapt;
	remake(&w->b, &p);
	return w;
}

static void free_world(struct world *w)
{
	drop(&w->b);
	free(w);
}

static struct run *find_run(struct world *w, uint64_t id)
{
	for (size_t i = 0; i < sizeof w->run / sizeof *w->run; i++)
		if (w->run[i].id == id)
			return &w->run[i];
	return NULL;
}

/* Half of the jobs ask for the very bound that is offered, so that it alone decides whether they are in
 * time. */
static void arrive(struct world *w, int64_t now_ns)
{
	struct bed *b = &w->b;
	struct run *run = find_run(w, 0);
	struct sched_request r = job(b, ++w->ids, 1e-3);
	double room = 1.0 + 3.0 * rng_uniform(&w->rng);

	r.type = (int)rng_below(&w->rng, TYPES);
	r.confidence = w->confidence;
	if (!run || sched_what_if(b->s, now_ns, &r, &b->d, &b->verdict, NULL) || isnan(b->d.smallest_slo_s))
		return;
	r.slo_s = b->d.smallest_slo_s * (1.0 + 1e-9) * (w->ids % 2 ? 1.0 : room);
	assert_int_equal(sched_submit(b->s, now_ns, &r, &b->d, &b->verdict, NULL), 0);
	w->digest = hand_digest(w->digest, &b->d);
	if (b->verdict == SCHED_REJECTED)
		return;
	*run = (struct run){ .id = r.id,
			     .submitted_ns = now_ns,
			     .slo_s = r.slo_s,
			     .type = r.type,
			     .tight = w->ids % 2,
			     .promised = b->verdict == SCHED_PROMISED };
}

static void start_all(struct world *w, int64_t now_ns)
{
	struct decision *d = &w->b.d;
	uint64_t id;

	while (w->started < JOBS && sched_next(w->b.s, now_ns, &id, d)) {
		const struct candidate *c = &d->candidate[d->chosen];
		struct run *run = find_run(w, id);

		w->digest = hand_digest(w->digest, d);
		run->runs = true;
		run->waited = now_ns > run->submitted_ns;
		run->number = w->started;
		run->model_s = c->model_s;
		run->upper_s = c->guard_s;
		run->actual_s = c->model_s * exp(SPREAD * rng_normal(&w->rng)) *
				(w->started >= MIDDLE ? w->longer : 1.0);
		run->end_ns = now_ns + (int64_t)(1e9 * run->actual_s);
		w->started += run->promised;
	}
}

static void end(struct world *w, struct run *run)
{
	assert_int_equal(sched_remove(w->b.s, run->end_ns, run->id, NULL), 0);
	/* How long a job of this world runs is settled when it starts: the load that comes makes no
	 * difference. */
	sched_observe(w->b.s, &(struct sched_observation){ .type = run->type,
							   .confidence = w->confidence,
							   .model_s = run->model_s,
							   .upper_s = run->promised ? run->upper_s : NAN,
							   .foreseen_s = NAN,
							   .actual_s = run->actual_s });
	if (run->promised) {
		w->bound_kept[run->number] = run->actual_s <= run->upper_s;
		w->at_once[run->number] = run->tight && !run->waited;
		w->waited[run->number] = run->tight && run->waited;
		w->met[run->number] = 1e-9 * (double)(run->end_ns - run->submitted_ns) <= run->slo_s;
	}
	run->id = 0;
}

/* A job a minute: some wait and many start at once. Waits are foreseen by the look-ahead and not learnt from:
 * with a job every 20 s nearly all wait, and of limits equal to the bound 78, 85 and 90 % are met where
 * 80, 90 and 95 are asked. Those after a wait are printed, and nothing is claimed of them here. */
static void play(struct world *w)
{
	int64_t arrival_ns = 0;

	while (w->started < JOBS) {
		struct run *first = NULL;

		for (size_t i = 0; i < sizeof w->run / sizeof *w->run; i++)
			if (w->run[i].id && w->run[i].runs && (!first || w->run[i].end_ns < first->end_ns))
				first = &w->run[i];
		if (first && first->end_ns <= arrival_ns) {
			int64_t now_ns = first->end_ns;

			end(w, first);
			start_all(w, now_ns);
		} else {
			arrive(w, arrival_ns);
			start_all(w, arrival_ns);
			arrival_ns += (int64_t)(60e9 * rng_exponential(&w->rng));
		}
	}
	for (size_t i = 0; i < sizeof w->run / sizeof *w->run; i++)
		if (w->run[i].id && w->run[i].runs)
			end(w, &w->run[i]);
}

/* Percent of those that `of` names (NULL: of all). */
static double share(const bool *kept, const bool *of, size_t from, size_t to)
{
	double n = 0.0, sum = 0.0;

	for (size_t i = from; i < to; i++) {
		sum += kept[i] && (!of || of[i]);
		n += !of || of[i];
	}
	return 100.0 * sum / n;
}

static const double asked[] = { 0.8, 0.9, 0.95 };

TEST(test_promises_are_kept_at_the_asked_confidence)
{
	printf("kept of %d jobs, the model's own noise:\n  asked  bounds  objectives equal to the bound: "
	       "started at once, after a wait\n",
	       JOBS);
	for (size_t k = 0; k < 3; k++) {
		struct world *w = new_world(11 + k, asked[k], true, 1.0);
		double kept, at_once;

		play(w);
		kept = share(w->bound_kept, NULL, 0, JOBS);
		at_once = share(w->met, w->at_once, 0, JOBS);
		printf("  %5.1f  %6.2f  %6.2f  %6.2f\n", 100.0 * asked[k], kept, at_once,
		       share(w->met, w->waited, 0, JOBS));
		assert_true(fabs(kept - 100.0 * asked[k]) <= 2.0);
		assert_true(fabs(at_once - 100.0 * asked[k]) <= 2.0);
		free_world(w);
	}
}

TEST(test_a_slower_machine_is_followed_within_200_jobs)
{
	printf("20 %% longer from job %d on; bounds kept before, in the first 200, and after:\n"
	       "  asked  adapt  before  first  after\n",
	       MIDDLE);
	for (size_t k = 0; k < 3; k++) {
		for (int adapt = 0; adapt < 2; adapt++) {
			struct world *w = new_world(21 + k, asked[k], adapt, 1.2);
			double after, next;

			play(w);
			after = share(w->bound_kept, NULL, AGAIN, JOBS);
			next = share(w->bound_kept, NULL, AGAIN, AGAIN + 500);
			printf("  %5.1f  %5s  %6.2f  %5.1f  %5.2f (%.1f in the next 500)\n", 100.0 * asked[k],
			       adapt ? "on" : "off", share(w->bound_kept, NULL, 0, MIDDLE),
			       share(w->bound_kept, NULL, MIDDLE, AGAIN), after, next);
			assert_true((fabs(after - 100.0 * asked[k]) <= 3.0) == adapt);
			free_world(w);
		}
	}
}

TEST(test_the_same_events_teach_the_same)
{
	struct world *w[2];

	for (int i = 0; i < 2; i++) {
		w[i] = new_world(31, 0.9, true, 1.2);
		play(w[i]);
	}
	assert_true(w[0]->digest == w[1]->digest);
	for (int type = -1; type < TYPES; type++)
		assert_true(adapt_bias(sched_adapt(w[0]->b.s, 0), BY(type)) ==
			    adapt_bias(sched_adapt(w[1]->b.s, 0), BY(type)));
	free_world(w[0]);
	free_world(w[1]);
}

TEST(test_nothing_is_allocated_while_it_learns)
{
	struct world *w = new_world(41, 0.9, true, 1.2);
	struct sched_params p = params(&w->b, "postrider", SLOTS);

	p.adapt = true;
	remake(&w->b, &p);
	mem_fail_at(1, true);
	play(w);
	assert_false(mem_failed());
	mem_fail_at(0, false);
	free_world(w);
}

/* ---- the numbers of a decision ---- */

static void learn(struct bed *b, int type, double factor, int n)
{
	for (int i = 0; i < n; i++) {
		double noise = 0.02 * ((double)(i % 5) - 2.0);

		sched_observe(b->s, &(struct sched_observation){ .type = type,
								 .confidence = 0.9,
								 .model_s = 100.0,
								 .upper_s = NAN,
								 .foreseen_s = NAN,
								 .actual_s = 100.0 * factor * exp(noise) });
	}
}

static struct candidate ask_one(struct bed *b, const double *batch, int type)
{
	struct sched_request r = job(b, 99, NAN);

	r.batch = batch;
	r.n_batches = 1;
	r.type = type;
	assert_int_equal(sched_what_if(b->s, 0, &r, &b->d, &b->verdict, NULL), 0);
	return b->d.candidate[0];
}

static void make_adapting(struct bed *b, bool log)
{
	struct sched_params p;

	make(b, "postrider", SLOTS);
	if (!log) { /* the same bounds of a job of 100 s, by difference */
		b->m->time.conformal.log = false;
		b->m->time.conformal.base = 1.0;
		b->m->time.conformal.slope = 0.1;
		for (size_t i = 0; i < b->m->time.conformal.n; i++)
			b->m->time.conformal.score[i] = 20.0 / 11.0;
		conformal_set_groups(&b->m->time.conformal, b->m->time.conformal.n);
	}
	p = params(b, "postrider", SLOTS);
	p.adapt = true;
	remake(b, &p);
}

/* Under the load foreseen jobs would have taken 150 s, and ran for 100 s only because others ended early. */
TEST(test_the_bound_that_is_told_is_not_below_the_guard)
{
	struct candidate c;
	struct bed b;

	make_adapting(&b, true);
	for (int i = 0; i < 200; i++) {
		double noise = exp(i % 2 ? 0.01 : -0.01);

		sched_observe(b.s, &(struct sched_observation){ .confidence = 0.9,
								.model_s = 100.0,
								.upper_s = NAN,
								.foreseen_s = 150.0 * noise,
								.actual_s = 100.0 * noise });
	}
	c = ask_one(&b, &b64, 0);
	assert_true(c.guard_s > 145.0);
	assert_true(c.upper_s == c.guard_s);
	drop(&b);
}

TEST(test_times_work_and_bounds_are_corrected_together)
{
	struct bed b;

	for (int log = 0; log < 2; log++) {
		struct candidate before, after;

		make_adapting(&b, log);
		before = ask_one(&b, &b64, 1);
		near(before.time_s, 100.0);
		near(before.model_s, 100.0);
		near(before.guard_s, 120.0);
		learn(&b, 1, 1.5, 400); /* the first ones, without a bias yet, are out of the window */
		after = ask_one(&b, &b64, 1);
		near(after.model_s, 100.0);
		assert_true(fabs(after.time_s - 150.0) < 2.0);
		near(after.work_s / before.work_s, after.time_s / 100.0);
		assert_true(fabs(after.upper_s - 150.0 * exp(0.04)) < 3.0); /* the noise there is now */
		drop(&b);
	}
}

/* A runs alone, and as long as foreseen, were it not for B, which comes in the middle and shares the cores
 * with it. */
TEST(test_what_later_arrivals_add_is_not_the_model_s_error)
{
	struct bed b;

	make(&b, "postrider", 4);
	assert_int_not_equal(submit_batch(&b, 0, 1, &b64, NAN), SCHED_REJECTED);
	assert_int_equal(next(&b, 0), 1);
	near(b.d.candidate[0].time_s, 100.0);
	assert_int_not_equal(submit_batch(&b, 50, 2, &b64, NAN), SCHED_REJECTED);
	assert_int_equal(next(&b, 50), 2);
	near(b.d.candidate[0].time_s, 150.0); /* half as fast until A is gone */
	near(sched_foreseen_s(b.s, 150 * S, 1, 150.0), 100.0);
	near(sched_foreseen_s(b.s, 150 * S, 1, 75.0), 50.0); /* by its speed, whatever time it is */
	assert_int_equal(sched_remove(b.s, 150 * S, 1, NULL), 0);
	assert_true(isnan(sched_foreseen_s(b.s, 150 * S, 1, 150.0)));
	near(sched_foreseen_s(b.s, 200 * S, 2, 150.0), 150.0); /* B met what it foresaw */
	drop(&b);
}

/* Jobs end as foreseen but for later arrivals, which make them half as long again. */
TEST(test_promises_rest_on_one_bound_and_another_is_told)
{
	const double slo_s = 130.0;
	struct sched_request r;
	struct candidate c;
	struct bed b;

	make_adapting(&b, 1);
	for (int i = 0; i < 400; i++) {
		double noise = exp(0.02 * ((double)(i % 5) - 2.0));

		sched_observe(b.s, &(struct sched_observation){ .type = 1,
								.confidence = 0.9,
								.model_s = 100.0,
								.upper_s = NAN,
								.foreseen_s = 100.0 * noise,
								.actual_s = 150.0 * noise });
	}
	c = ask_one(&b, &b64, 1); /* without a limit */
	assert_true(fabs(c.time_s - 100.0) < 2.0 && fabs(c.guard_s - 100.0 * exp(0.04)) < 2.0);
	assert_true(fabs(c.upper_s - 150.0 * exp(0.04)) < 3.0);
	r = job(&b, 7, slo_s);
	r.batch = &b64;
	r.n_batches = 1;
	r.type = 1;
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	near(b.d.candidate[0].upper_s, slo_s); /* nobody is let in who would make it later */
	r.id = 8;
	r.slo_s = 102.0;
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED);
	assert_true(b.d.candidate[0].upper_s >= b.d.candidate[0].guard_s);
	drop(&b);
}

/* Jobs that had to wait took a third to a half of the time that was left to their limits, because later ones
 * with less time started before them; their runs took as long as foreseen. So the next job that has to wait
 * is told so, and one that starts at once is not. */
TEST(test_a_job_that_has_to_wait_is_told_what_such_waits_taught)
{
	const double slo_s = 1000.0;
	struct candidate now, waiting;
	struct bed b;

	for (int taught = 0; taught < 2; taught++) {
		double end_s;

		make_adapting(&b, true);
		for (int i = 0; i < 40; i++)
			sched_observe(b.s, &(struct sched_observation){ .confidence = 0.9,
									.model_s = 100.0,
									.upper_s = 120.0,
									.foreseen_s = 100.0,
									.actual_s = 100.0,
									.waited_s = taught ? 300.0 : 0.0,
									.told_s = 200.0,
									.told_upper_s = 800.0,
									.response_s = i % 2 ? 400.0 : 500.0,
									.limit_s = 800.0 });
		now = ask_one(&b, &b64, 0);
		near(now.upper_s, now.guard_s);
		for (uint64_t id = 1; id <= SLOTS; id++) /* all slots are taken */
			assert_int_not_equal(submit_batch(&b, 0, id, &b64, NAN), SCHED_REJECTED);
		while (next(&b, 0))
			;
		assert_int_equal(submit_batch(&b, 0, 50, &b64, slo_s), SCHED_PROMISED);
		waiting = b.d.candidate[0];
		assert_true(waiting.wait_s > 50.0);
		end_s = waiting.wait_s + waiting.time_s;
		/* the mean share and 1.2 of its deviations, a twelfth */
		if (taught)
			assert_true(fabs((waiting.wait_upper_s + waiting.upper_s - end_s) / (slo_s - end_s) -
					 (5.0 / 12.0 + 1.21 / 12.0)) < 0.02);
		else
			assert_true(waiting.wait_upper_s + waiting.upper_s < 1.5 * end_s);
		/* a limit of a week makes no bound of days */
		assert_int_equal(sched_remove(b.s, 0, 50, NULL), 0);
		assert_int_equal(submit_batch(&b, 0, 51, &b64, 7.0 * 86400.0), SCHED_PROMISED);
		waiting = b.d.candidate[0];
		if (taught)
			assert_true(fabs((waiting.wait_upper_s + waiting.upper_s) / end_s - 1.0 -
					 8.0 * (5.0 / 12.0 + 1.21 / 12.0)) < 0.2);
		drop(&b);
	}
}

TEST(test_without_observations_the_model_speaks)
{
	struct bed b, plain;

	for (int log = 0; log < 2; log++) {
		make_adapting(&b, log);
		make_adapting(&plain, log);
		learn(&plain, 1, 1.5, 200);
		assert_int_equal(sched_what_if(b.s, 0, &(struct sched_request){ 0 }, &b.d, &b.verdict, NULL),
				 -ERR_ARG);
		near(ask_one(&b, &b128, 0).guard_s, log ? 60.0 : 50.0 + 20.0 / 11.0 * 6.0);
		/* a type that none was seen of follows the others */
		assert_true(ask_one(&plain, &b128, 2).time_s > 70.0);
		drop(&plain);
		drop(&b);
	}
}

TEST(test_adaptation_is_for_policies_with_bounds)
{
	struct bed b;
	struct sched_params p;

	make(&b, "courier", SLOTS);
	p = params(&b, "courier", SLOTS);
	p.adapt = true;
	remake(&b, &p);
	assert_null(sched_adapt(b.s, 0));
	learn(&b, 1, 1.5, 200);
	near(ask_one(&b, &b64, 1).time_s, 100.0);
	drop(&b);
	make(&b, "postrider", SLOTS);
	assert_null(sched_adapt(b.s, 0)); /* off */
	learn(&b, 1, 1.5, 200);
	near(ask_one(&b, &b64, 1).time_s, 100.0);
	drop(&b);
}

TEST(test_another_model_begins_anew_and_the_same_does_not)
{
	struct bed b;
	struct sched_params p;
	struct model *other;

	make_adapting(&b, true);
	learn(&b, 1, 1.5, 200);
	p = params(&b, "postrider", SLOTS);
	p.adapt = true;
	assert_int_equal(sched_use(b.s, 0, &p, NULL, NULL, NULL), 0);
	assert_true(ask_one(&b, &b64, 1).time_s > 145.0);
	other = hand_model(&hand_hybrid);
	p.model = other;
	assert_int_equal(sched_use(b.s, 0, &p, NULL, NULL, NULL), 0);
	near(ask_one(&b, &b64, 1).time_s, 100.0);
	assert_true(adapt_bias(sched_adapt(b.s, 0), BY(1)) == 1.0);
	p.adapt = false;
	assert_int_equal(sched_use(b.s, 0, &p, NULL, NULL, NULL), 0);
	assert_null(sched_adapt(b.s, 0));
	model_free(b.m);
	b.m = other;
	drop(&b);
}

TEST(test_too_little_memory_is_said)
{
	struct bed b;
	struct sched_params p;

	make(&b, "postrider", SLOTS);
	p = params(&b, "postrider", SLOTS);
	for (unsigned long k = 1;; k++) {
		struct sched *s = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = sched_new(&p, &s, &b.err);
		if (!mem_failed()) {
			mem_fail_at(0, false);
			assert_int_equal(rc, 0);
			sched_free(s);
			break;
		}
		assert_int_equal(rc, -ERR_NOMEM);
		assert_null(s);
	}
	drop(&b);
}
