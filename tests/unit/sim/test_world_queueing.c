/* The world queueing: the machine against closed forms and a small simulation by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>

#include "tests/support/closed.h"
#include "queueing/mm1.h"
#include "sim/world/queueing_machine.h"
#include "tests/support/des.h"
#include "tests/support/test.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/support/support.h"
#include "tests/unit/sim/queueing_bed.h"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

static struct qmachine *machine(struct qmachine_params p)
{
	struct qmachine *m = NULL;
	struct err err = { 0 };

	if (!p.nodes)
		p.nodes = 1;
	if (qmachine_new(&p, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

static void start(struct qmachine *m, double now_s, struct qmachine_job j)
{
	struct err err = { 0 };

	if (qmachine_start(m, now_s, &j, &err))
		fail_msg("%s", err.text);
}

static struct qmachine_end ends(struct qmachine *m)
{
	struct qmachine_end e = { 0 };

	assert_true(qmachine_end(m, &e));
	return e;
}

/* ---- what can be counted by hand ---- */

TEST(test_alone_without_disk_a_job_takes_its_iterations)
{
	struct qmachine *m = machine((struct qmachine_params){ .node_cores = 2.0 });
	struct qmachine_end e;

	start(m, 1.5,
	      (struct qmachine_job){ .id = 7, .cpus = 2, .cycles = 40, .compute_s = 0.25, .tag = 3.0 });
	e = ends(m);
	assert_true(e.id == 7 && e.tag == 3.0);
	close_to(e.at_s, 11.5, 1e-12);
	close_to(e.processes, 2.0, 1e-12);
	close_to(e.njobs, 1.0, 1e-12);
	close_to(qmachine_busy_s(m), 20.0, 1e-12);
	assert_false(qmachine_end(m, &e));
	assert_true(qmachine_next_s(m) == INFINITY);
	qmachine_free(m);
}

TEST(test_more_processes_than_cores_share_them_evenly)
{
	struct qmachine *m = machine((struct qmachine_params){ .node_cores = 2.0 });

	/* three of 2 s on two cores: 1.5 times as long; equal ends come by id */
	start(m, 0.0, (struct qmachine_job){ .id = 3, .cpus = 1, .cycles = 1, .compute_s = 2.0 });
	start(m, 0.0, (struct qmachine_job){ .id = 1, .cpus = 1, .cycles = 1, .compute_s = 2.0 });
	start(m, 0.0, (struct qmachine_job){ .id = 2, .cpus = 1, .cycles = 1, .compute_s = 4.0 });
	for (uint64_t id = 1; id <= 3; id += 2) {
		struct qmachine_end e = ends(m);

		assert_true(e.id == id);
		close_to(e.at_s, 3.0, 1e-12);
		close_to(e.processes, 3.0, 1e-12);
	}
	close_to(ends(m).at_s, 5.0, 1e-12); /* 2 s done by then, 2 s alone */
	close_to(qmachine_busy_s(m), 8.0, 1e-12);
	qmachine_free(m);
}

TEST(test_a_part_of_a_core_is_that_much_slower)
{
	struct qmachine *m = machine((struct qmachine_params){ .node_cores = 0.25 });

	start(m, 0.0, (struct qmachine_job){ .id = 1, .cpus = 1, .cycles = 3, .compute_s = 1.0 });
	close_to(ends(m).at_s, 12.0, 1e-12);
	qmachine_free(m);
}

TEST(test_a_constant_disk_serves_one_after_the_other)
{
	struct qmachine *m =
		machine((struct qmachine_params){ .node_cores = 4.0, .law = WORLD_DISK_CONSTANT });

	for (uint64_t id = 1; id <= 4; id++)
		start(m, 0.0,
		      (struct qmachine_job){
			      .id = id, .cpus = 1, .cycles = 1, .compute_s = 1.0, .disk_s = 10.0 });
	for (uint64_t id = 1; id <= 4; id++) {
		struct qmachine_end e = ends(m);

		assert_true(e.id == id);
		close_to(e.at_s, 10.0 * (double)id + 1.0, 1e-12);
	}
	qmachine_free(m);
}

TEST(test_measured_services_are_those_given)
{
	static const double measured[] = { 0.5, 0.5, 2.0 };
	struct qmachine *m = machine((struct qmachine_params){
		.node_cores = 1.0, .law = WORLD_DISK_MEASURED, .measured = measured, .n_measured = 3 });
	size_t long_ones = 0;

	for (uint64_t id = 1; id <= 3000; id++) {
		double from = (double)id * 100.0, took;

		start(m, from,
		      (struct qmachine_job){ .id = id,
					     .cpus = 1,
					     .cycles = 1,
					     .compute_s = 1.0,
					     .disk_s = 4.0,
					     .seed = id });
		took = ends(m).at_s - from - 1.0;
		if (fabs(took - 8.0) < 1e-9)
			long_ones++;
		else
			assert_true(fabs(took - 2.0) < 1e-9);
	}
	assert_in_range(long_ones, 900, 1100);
	qmachine_free(m);
}

/* ---- who is where, seen from outside ---- */

#define WATCH_NODES 3
#define WATCH_PROCESSES 64

struct watch {
	double cores, last_s;
	double arrived_s[WATCH_PROCESSES], at_cpu_s[WATCH_PROCESSES];
	uint64_t line[WATCH_NODES][WATCH_PROCESSES]; /* who stands at the disk, in order */
	size_t n_line[WATCH_NODES], n_cpu[WATCH_NODES];
	double left_s[WATCH_NODES]; /* when the disk became free, or its first began */
	double number_s; /* integral of those at the disks */
	double sojourn_s; /* sum over those who left */
	size_t left;
	double compute_s, disk_s; /* of all jobs here; disk constant */
	double core_s; /* integral of the cores that may be busy */
	uint32_t placed[WATCH_PROCESSES];
};

static void watch_event(void *owner, double at_s, enum qmachine_what what, uint32_t node, uint64_t job,
			uint32_t process)
{
	struct watch *w = owner;
	size_t who = (size_t)job * 8 + process;

	assert_true(who < WATCH_PROCESSES && node < WATCH_NODES);
	assert_true(at_s >= w->last_s);
	for (size_t k = 0; k < WATCH_NODES; k++) {
		w->number_s += (double)w->n_line[k] * (at_s - w->last_s);
		w->core_s += fmin(w->cores, (double)w->n_cpu[k]) * (at_s - w->last_s);
	}
	w->last_s = at_s;
	w->placed[who] = node;
	switch (what) {
	case QMACHINE_AT_DEVICE: /* test_world_devices.c */
	case QMACHINE_DEVICE_DONE: break;
	case QMACHINE_AT_DISK:
		if (!w->n_line[node])
			w->left_s[node] = at_s;
		w->line[node][w->n_line[node]++] = who;
		w->arrived_s[who] = at_s;
		break;
	case QMACHINE_DISK_DONE:
		assert_true(w->n_line[node] && w->line[node][0] == who); /* first come first served */
		if (w->disk_s > 0.0) /* one at a time: a service lies between the one before and the end */
			assert_true(fabs(at_s - w->left_s[node] - w->disk_s) < 1e-9);
		w->left_s[node] = at_s;
		memmove(w->line[node], w->line[node] + 1, --w->n_line[node] * sizeof **w->line);
		w->sojourn_s += at_s - w->arrived_s[who];
		w->left++;
		break;
	case QMACHINE_AT_CPU:
		w->n_cpu[node]++;
		w->at_cpu_s[who] = at_s;
		break;
	case QMACHINE_CPU_DONE:
		assert_true(w->n_cpu[node] > 0);
		w->n_cpu[node]--;
		assert_true(at_s - w->at_cpu_s[who] >= w->compute_s - 1e-9); /* never more than one core */
		break;
	}
}

TEST(test_capacity_is_never_exceeded_and_little_holds)
{
	static const enum world_disk_law law[] = { WORLD_DISK_CONSTANT, WORLD_DISK_EXPONENTIAL };

	for (size_t l = 0; l < 2; l++)
		for (int barrier = 0; barrier < 2; barrier++) {
			struct watch w = { .cores = 1.5,
					   .compute_s = 0.01,
					   .disk_s = law[l] == WORLD_DISK_CONSTANT ? 0.004 : 0.0 };
			struct qmachine *m = machine((struct qmachine_params){ .node_cores = 1.5,
									       .nodes = 3,
									       .law = law[l],
									       .barrier = barrier,
									       .hook = watch_event,
									       .owner = &w });
			struct qmachine_end e;
			double work_s = 0.0;

			for (uint64_t id = 0; id < 7; id++) {
				uint32_t cpus = 1 + id % 4;

				start(m, 0.3 * (double)id,
				      (struct qmachine_job){ .id = id,
							     .cpus = cpus,
							     .cycles = 500,
							     .compute_s = 0.01,
							     .disk_s = 0.004,
							     .seed = 77 + id });
				work_s += cpus * 500 * 0.01;
			}
			while (qmachine_end(m, &e)) {}
			/* Little: the integral of the number there is the sum of the times spent there. */
			assert_int_equal(w.left, 500 * (1 + 2 + 3 + 4 + 1 + 2 + 3));
			close_to(w.number_s, w.sojourn_s, 1e-9);
			/* All cores that could work did, no others, and what they did is the work there
			 * was. */
			close_to(w.core_s, work_s, 1e-9);
			close_to(qmachine_busy_s(m), work_s, 1e-9);
			assert_true(w.core_s <= 4.5 * w.last_s);
			qmachine_free(m);
		}
}

TEST(test_processes_go_where_there_are_fewest)
{
	struct watch w = { .cores = 1.0 };
	struct qmachine *m = machine(
		(struct qmachine_params){ .node_cores = 1.0, .nodes = 3, .hook = watch_event, .owner = &w });

	start(m, 0.0, (struct qmachine_job){ .id = 0, .cpus = 4, .cycles = 1, .compute_s = 1.0 });
	start(m, 0.0, (struct qmachine_job){ .id = 1, .cpus = 2, .cycles = 1, .compute_s = 100.0 });
	assert_true(w.placed[0] == 0 && w.placed[1] == 1 && w.placed[2] == 2 && w.placed[3] == 0);
	assert_true(w.placed[8] == 1 && w.placed[9] == 2);
	assert_true(ends(m).id == 0); /* nodes have 0, 1, 1 now */
	start(m, 10.0, (struct qmachine_job){ .id = 2, .cpus = 2, .cycles = 1, .compute_s = 1.0 });
	assert_true(w.placed[16] == 0 && w.placed[17] == 0);
	qmachine_free(m);
}

struct lockstep {
	double begun_s;
	size_t begun;
};

static void watch_lockstep(void *owner, double at_s, enum qmachine_what what, uint32_t node, uint64_t job,
			   uint32_t process)
{
	struct lockstep *l = owner;

	(void)node;
	(void)job;
	(void)process;
	if (what != QMACHINE_AT_DISK)
		return;
	if (l->begun++ % 4 == 0)
		l->begun_s = at_s;
	assert_true(at_s == l->begun_s);
}

TEST(test_with_a_barrier_iterations_start_together_and_take_longer)
{
	struct lockstep l = { 0 };
	struct qmachine_job j = {
		.id = 1, .cpus = 4, .cycles = 300, .compute_s = 0.02, .disk_s = 0.01, .seed = 5
	};
	struct qmachine *with = machine((struct qmachine_params){
		.node_cores = 2.0, .nodes = 2, .barrier = true, .hook = watch_lockstep, .owner = &l });
	struct qmachine *without = machine((struct qmachine_params){ .node_cores = 2.0, .nodes = 2 });
	double with_s, without_s;

	start(with, 0.0, j);
	start(without, 0.0, j);
	with_s = ends(with).at_s;
	without_s = ends(without).at_s;
	printf("300 iterations of 4 processes: %.3f s free, %.3f s with a barrier\n", without_s, with_s);
	assert_int_equal(l.begun, 1200);
	assert_true(with_s > 1.05 * without_s);
	qmachine_free(with);
	qmachine_free(without);
}

/* ---- against theory ---- */

/* Cycle time and its standard error, of `n` processes for ever: the mean over jobs of one process each. */
static double cycle_s(double cores, uint32_t n, double compute_s, double disk_s, uint64_t cycles)
{
	struct qmachine *m = machine((struct qmachine_params){ .node_cores = cores });
	struct qmachine_end e;
	double sum = 0.0;

	for (uint32_t i = 0; i < n; i++)
		start(m, 0.0,
		      (struct qmachine_job){ .id = i,
					     .cpus = 1,
					     .cycles = cycles,
					     .compute_s = compute_s,
					     .disk_s = disk_s,
					     .seed = 1000 + i });
	while (qmachine_end(m, &e))
		sum += e.at_s;
	qmachine_free(m);
	return sum / (double)n / (double)cycles;
}

TEST(test_means_are_those_of_the_closed_network)
{
	static const struct {
		unsigned cores;
		uint32_t n;
		double compute_s, disk_s;
	} c[] = { { 1, 1, 1.0, 1.0 },   { 1, 4, 1.0, 0.5 },   { 2, 3, 1.0, 1.0 }, { 2, 6, 1.0, 0.2 },
		  { 4, 20, 1.0, 0.24 }, { 16, 13, 1.0, 0.1 }, { 8, 5, 0.1, 1.0 }, { 3, 30, 1.0, 0.4 } };
	uint64_t events = 400000 / des_thrift();

	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		uint64_t cycles = events / c[i].n;
		double want = closed_cycle_s(c[i].cores, c[i].n, c[i].compute_s, c[i].disk_s);
		double got = cycle_s(c[i].cores, c[i].n, c[i].compute_s, c[i].disk_s, cycles);
		/* n * cycles services of the disk are its randomness, the rest follows; 4 standard errors */
		double error = 4.0 * c[i].disk_s * sqrt((double)(c[i].n * cycles)) / (double)cycles / want;

		printf("%2u cores %2u processes: %.5f s a cycle, closed network %.5f s, %+.2f %% (+-%.2f "
		       "%%)\n",
		       c[i].cores, c[i].n, got, want, 100.0 * (got / want - 1.0), 100.0 * error);
		assert_true(fabs(got / want - 1.0) < error);
	}
}

struct sojourns {
	double arrived_s[512], sum_s;
	size_t n;
};

static void watch_sojourns(void *owner, double at_s, enum qmachine_what what, uint32_t node, uint64_t job,
			   uint32_t process)
{
	struct sojourns *s = owner;

	(void)node;
	(void)process;
	if (what == QMACHINE_AT_DISK)
		s->arrived_s[job] = at_s;
	if (what != QMACHINE_DISK_DONE)
		return;
	s->sum_s += at_s - s->arrived_s[job];
	s->n++;
}

/* Very many processes that compute for long and each on a core of its own come to the disk nearly as a
 * Poisson stream: the M/M/1 queue. */
TEST(test_a_crowd_makes_the_disk_an_mm1_queue)
{
	static const double disk_s = 0.001, load = 0.6;
	static struct sojourns s;
	struct qmachine *m =
		machine((struct qmachine_params){ .node_cores = 512.0, .hook = watch_sojourns, .owner = &s });
	double between_s = 512 * disk_s / load, want_s, elapsed_s = 0.0, arrivals_per_s;
	struct qmachine_end e;
	struct err err = { 0 };

	for (uint64_t i = 0; i < 512; i++) /* not all at once */
		start(m, between_s * (double)i / 512.0,
		      (struct qmachine_job){ .id = i,
					     .cpus = 1,
					     .cycles = 1000 / des_thrift(),
					     .compute_s = between_s,
					     .disk_s = disk_s,
					     .seed = i });
	while (qmachine_end(m, &e))
		elapsed_s = e.at_s;
	arrivals_per_s = (double)s.n / elapsed_s;
	assert_int_equal(mm1_mean_response_s(arrivals_per_s, disk_s, &want_s, &err), 0);
	printf("load %.3f: %.6f s at the disk, M/M/1 %.6f s\n", arrivals_per_s * disk_s,
	       s.sum_s / (double)s.n, want_s);
	close_to(s.sum_s / (double)s.n, want_s, 0.05 * sqrt(des_thrift()));
	qmachine_free(m);
}

/* ---- the world ---- */

TEST(test_chance_is_the_jobs_own)
{
	struct bed_trace t;
	struct cluster two = { .cores = 2, .slots = 8, .nodes = 2, .memory_mb = INFINITY };
	struct bed b;
	struct world_end e;
	double alone_s, at_s = 0.0, other_s = 0.0;

	bed_trace_init(&t);
	bed_kind(&t, "lenet5", NULL, NULL, 1);
	b = bed_open(&world_queueing, (struct world_open){ .trace = &t.trace, .cluster = &two });
	bed_start(&b, 0.0, bed_job(5, 0, 64.0, 1));
	assert_true(b.ops->end(b.run, &e, &alone_s));
	bed_fresh(&b); /* on the other node, and behind another job: the same draws */
	bed_start(&b, 0.0, bed_job(1, 0, 64.0, 1));
	bed_start(&b, 0.0, bed_job(5, 0, 64.0, 1));
	assert_true(b.ops->end(b.run, &e, &at_s) && b.ops->end(b.run, &e, &other_s));
	assert_true(at_s == alone_s || other_s == alone_s);
	assert_true(at_s != other_s);
	bed_close(&b);
}

/* A course of events: starts at random moments, ends in between; what it says as text. `ask`: asks for the
 * next end even when it does not matter. */
static void course(struct bed *b, uint32_t n_kinds, size_t n, bool ask, uint64_t seed, struct strbuf *out)
{
	struct rng rng = rng_stream(seed, 1);
	double now_s = 0.0, at_s;
	struct world_end e;

	for (size_t i = 0; i < n; i++) {
		now_s += 0.4 * rng_exponential(&rng);
		while (b->ops->next_s(b->run) <= now_s) {
			assert_true(b->ops->end(b->run, &e, &at_s));
			strbuf_printf(out, "%llu %a %a %a\n", (unsigned long long)e.id, at_s, e.processes,
				      e.accuracy);
		}
		bed_start(b, now_s, bed_job(i + 1, rng_below(&rng, n_kinds), 128.0, seed));
		for (int k = 0; ask && k < 3; k++)
			b->ops->next_s(b->run);
	}
	while (b->ops->end(b->run, &e, &at_s))
		strbuf_printf(out, "%llu %a %a %a\n", (unsigned long long)e.id, at_s, e.processes,
			      e.accuracy);
}

static struct bed mixed_bed(struct bed_trace *t, const struct world_ops *ops)
{
	bed_trace_init(t);
	bed_kind(t, "lenet5", "2000", "1", 1);
	bed_kind(t, "simplenet", "4000", "2", 2);
	bed_kind(t, "lenet5", "3000", "1", 4);
	return bed_open(ops, (struct world_open){ .trace = &t->trace });
}

TEST(test_the_same_seed_gives_the_same_course)
{
	struct strbuf first = { 0 }, again = { 0 }, other = { 0 };
	struct bed_trace t;
	struct bed b = mixed_bed(&t, &world_queueing);

	course(&b, 3, 60, false, 1, &first);
	bed_fresh(&b);
	course(&b, 3, 60, true, 1, &again); /* asking ahead changes nothing */
	bed_fresh(&b);
	course(&b, 3, 60, false, 2, &other);
	assert_string_equal(strbuf_text(&first), strbuf_text(&again));
	assert_string_not_equal(strbuf_text(&first), strbuf_text(&other));
	strbuf_release(&first);
	strbuf_release(&again);
	strbuf_release(&other);
	bed_close(&b);
}

static void drain(struct bed *b, void *run, struct strbuf *out)
{
	struct world_end e;
	double at_s;

	while (b->ops->end(run, &e, &at_s))
		strbuf_printf(out, "%llu %a %a %a\n", (unsigned long long)e.id, at_s, e.processes, e.njobs);
	strbuf_printf(out, "%a %llu\n", b->ops->count(run).busy_s,
		      (unsigned long long)b->ops->count(run).events);
}

TEST(test_a_copy_goes_on_like_the_original)
{
	struct strbuf one = { 0 }, two = { 0 };
	struct bed_trace t;
	struct bed b = mixed_bed(&t, &world_queueing);
	struct err err = { 0 };
	struct world_end e;
	void *copy = NULL;
	double at_s;

	assert_int_equal(b.ops->run_new(b.world, 0, &copy, &err), 0);
	for (uint32_t i = 0; i < 6; i++)
		bed_start(&b, 0.01 * i, bed_job(i + 1, i % 3, 64.0, 9));
	assert_true(b.ops->end(b.run, &e, &at_s));
	b.ops->next_s(b.run);
	assert_int_equal(b.ops->copy(copy, b.run, &err), 0);
	{
		struct world_job j = bed_job(40, 1, 256.0, 9);

		assert_int_equal(b.ops->start(copy, at_s, &j, &err), 0);
		bed_start(&b, at_s, j);
	}
	drain(&b, copy, &two); /* the copy first: it leaves the original alone */
	drain(&b, b.run, &one);
	assert_string_equal(strbuf_text(&one), strbuf_text(&two));
	strbuf_release(&one);
	strbuf_release(&two);
	b.ops->run_free(copy);
	bed_close(&b);
}

TEST(test_draws_slows_and_fails)
{
	struct world_job j = bed_job(1, 0, 128.0, 3);
	struct bed_trace t;
	struct bed b = mixed_bed(&t, &world_queueing);
	struct world_end e;
	double plain_s = bed_time_of(&b, j, &e), failed_s;

	assert_false(e.failed);
	assert_true(e.accuracy > 0.0 && e.accuracy < 1.0);
	j.draws.slow = 3.0;
	close_to(bed_time_of(&b, j, &e), 3.0 * plain_s, 1e-9); /* the same draws, three times as long */
	j.draws.slow = 1.0;
	j.draws.fails_at = 0.5;
	failed_s = bed_time_of(&b, j, &e);
	assert_true(e.failed && isnan(e.accuracy));
	close_to(failed_s, 0.5 * plain_s, 0.15);
	j.draws.fails_at = 0.0; /* not even an iteration, and yet it takes a moment */
	assert_true(bed_time_of(&b, j, &e) > 0.0);
	assert_true(e.failed);
	bed_close(&b);
}

TEST(test_drift_stretches_what_comes_after_it)
{
	struct bed_trace t;
	struct bed b = mixed_bed(&t, &world_queueing), d;
	struct world_end e;
	double plain_s = bed_time_of(&b, bed_job(1, 0, 128.0, 3), &e), at_s = 0.4 * plain_s;

	d = bed_open(&world_queueing,
		     (struct world_open){ .trace = &t.trace,
					  .disturbances = { .drift = 0.5, .drift_at_s = at_s } });
	/* one service may have begun before */
	close_to(bed_time_of(&d, bed_job(1, 0, 128.0, 3), &e), at_s + 1.5 * (plain_s - at_s), 0.03);
	bed_close(&d);
	d = bed_open(&world_queueing,
		     (struct world_open){ .trace = &t.trace,
					  .disturbances = { .drift = 0.5, .drift_at_s = 0.0 } });
	close_to(bed_time_of(&d, bed_job(1, 0, 128.0, 3), &e), 1.5 * plain_s, 1e-9);
	bed_close(&d);
	bed_close(&b);
}

TEST(test_accuracy_grows_with_the_iterations_and_differs_from_run_to_run)
{
	struct bed_trace t;
	struct bed b = mixed_bed(&t, &world_queueing);
	double sum[2] = { 0.0, 0.0 }, squares = 0.0;
	struct world_end e;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		bed_time_of(&b, bed_job(seed, 0, 512.0, seed), &e);
		sum[0] += e.accuracy / 200.0;
		bed_time_of(&b, bed_job(seed, 0, 64.0, seed), &e);
		sum[1] += e.accuracy / 200.0;
		squares += e.accuracy * e.accuracy / 200.0;
	}
	/* 2000 samples: 4 and 32 iterations of 100 at half the best */
	close_to(sum[0], 0.975 * 4.0 / 104.0, 0.12);
	close_to(sum[1], 0.975 * 32.0 / 132.0, 0.03);
	close_to(sqrt(squares - sum[1] * sum[1]), 0.02, 0.25); /* five times what 200 runs leave open */
	bed_close(&b);
}

TEST(test_open_epochs_are_chosen_and_otherwise_all)
{
	struct world_job j = bed_job(1, 0, 128.0, 3);
	struct bed_trace t;
	struct world_end e;
	struct bed b;
	double all_s;

	bed_trace_init(&t);
	bed_kind(&t, "lenet5", "2000", NULL, 1);
	t.kind[0].epochs_from = 1.0;
	t.kind[0].epochs_to = 6.0;
	b = bed_open(&world_queueing, (struct world_open){ .trace = &t.trace });
	all_s = bed_time_of(&b, j, &e);
	j.epochs = 6.0;
	assert_true(bed_time_of(&b, j, &e) == all_s);
	j.epochs = 2.0;
	close_to(bed_time_of(&b, j, &e), all_s / 3.0, 0.1);
	bed_close(&b);
}

/* ---- what is refused ---- */

static void refuses_open(struct world_open o, enum err_code code, const char *say)
{
	struct world_machines whole;
	struct err err = { 0 };
	void *w = NULL;
	int rc = world_queueing.open(&o, &w, &whole, &err);

	if (rc != -(int)code || w)
		fail_msg("taken, or code %d", rc);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
	assert_true(world_fluid.open(&o, &w, &whole, &err) == rc || strstr(say, "fluid"));
	if (w)
		world_fluid.close(w);
}

TEST(test_kinds_that_the_world_does_not_know_are_refused)
{
	struct bed_trace t;
	double odd[] = { 0.5, 64.0 };

	bed_trace_init(&t);
	bed_kind(&t, "lenet5", NULL, NULL, 1);
	bed_kind(&t, "resnet", NULL, NULL, 1);
	refuses_open((struct world_open){ .trace = &t.trace }, ERR_FORMAT,
		     "t.csv:11: network: 'resnet' is not known to the world, which has lenet5, simplenet");
	t.value[1][0] = NULL;
	refuses_open((struct world_open){ .trace = &t.trace }, ERR_FORMAT,
		     "t.csv:11: network: is not given; the world has lenet5, simplenet");
	t.job[1].line = 0;
	refuses_open((struct world_open){ .trace = &t.trace }, ERR_FORMAT, "t.csv: job 101: network");
	t.value[1][0] = "simplenet";
	t.value[1][1] = "many";
	refuses_open((struct world_open){ .trace = &t.trace }, ERR_FORMAT, "samples: 'many': need a number");
	t.value[1][1] = "0";
	refuses_open((struct world_open){ .trace = &t.trace }, ERR_FORMAT,
		     "samples: '0': need a number from 1");
	t.value[1][1] = NULL;
	t.value[1][2] = "1e9";
	refuses_open((struct world_open){ .trace = &t.trace }, ERR_FORMAT, "epochs: '1e9'");
	t.value[1][2] = NULL;
	t.kind[1].batch = odd;
	t.kind[1].n_batches = 2;
	refuses_open((struct world_open){ .trace = &t.trace }, ERR_FORMAT, "a batch of 0.5");
	t.kind[1].n_batches = 0;
	t.value[1][1] = "1000000000";
	t.value[1][2] = "1000";
	refuses_open((struct world_open){ .trace = &t.trace }, ERR_FORMAT, "the world fluid takes it");
	refuses_open((struct world_open){ .argument = "/nowhere/w.json" }, ERR_NOTFOUND, "/nowhere/w.json");
}

TEST(test_columns_it_does_not_know_are_ignored)
{
	struct bed_trace t;
	struct bed b;

	bed_trace_init(&t);
	t.column[1] = "lr";
	bed_kind(&t, "lenet5", "fast", NULL, 1);
	b = bed_open(&world_queueing, (struct world_open){ .trace = &t.trace });
	bed_close(&b);
}

TEST(test_batches_are_the_kinds_or_the_worlds)
{
	static const struct world_ops *const ops[] = { &world_queueing, &world_fluid };
	double own[] = { 48.0 };
	struct bed_trace t;

	bed_trace_init(&t);
	bed_kind(&t, "lenet5", "2000", "1", 1);
	t.kind[0].batch = own;
	t.kind[0].n_batches = 1;
	for (size_t i = 0; i < 2; i++) {
		struct bed b = bed_open(ops[i], (struct world_open){ .trace = &t.trace });
		struct world_job j = bed_job(1, 0, 100.0, 1);
		struct err err = { 0 };
		const double *batch;

		assert_int_equal(b.ops->start(b.run, 0.0, &j, &err), -ERR_ARG);
		assert_non_null(strstr(err.text,
				       "job 1: a batch of 100: neither the job nor the world has it; "
				       "the world has 64, 128, 256, 512"));
		bed_start(&b, 0.0, bed_job(1, 0, 48.0, 1));
		bed_start(&b, 0.0, bed_job(2, 0, 512.0, 1));
		j.batch = 64.0;
		j.kind = 1;
		assert_int_equal(b.ops->start(b.run, 0.0, &j, &err), -ERR_ARG);
		assert_int_equal(b.ops->batches(b.world, &batch), 4);
		assert_true(batch[3] == 512.0);
		bed_close(&b);
	}
}

TEST(test_every_failure_of_memory_is_survived)
{
	struct bed_trace t;
	bool failed = true;

	bed_trace_init(&t);
	bed_kind(&t, "lenet5", "500", "1", 3);
	for (unsigned long k = 1; failed; k++) {
		struct world_open o = { .trace = &t.trace };
		struct world_machines whole;
		struct err err = { 0 };
		struct world_job j = bed_job(1, 0, 128.0, 1);
		void *w = NULL, *run = NULL, *copy = NULL;
		struct world_end e;
		double at_s;
		size_t n = 0;
		int rc;

		mem_fail_at(k, false);
		rc = world_queueing.open(&o, &w, &whole, &err);
		if (!rc)
			rc = world_queueing.run_new(w, 0, &run, &err);
		if (!rc)
			rc = world_queueing.run_new(w, 0, &copy, &err);
		for (; !rc && n < 5; n++) {
			j.id = n + 1;
			rc = world_queueing.start(run, 0.0, &j, &err);
			if (rc) /* the machine is as it was: so many jobs end below */
				break;
		}
		if (!rc)
			rc = world_queueing.copy(copy, run, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		while (run && world_queueing.end(run, &e, &at_s))
			n--;
		assert_true(!run || n == 0);
		if (run)
			world_queueing.run_free(run);
		if (copy)
			world_queueing.run_free(copy);
		if (w)
			world_queueing.close(w);
	}
}

/* ---- speed ---- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

TEST(test_events_are_cheap)
{
	uint32_t nodes[] = { 1, 3 };

	for (size_t k = 0; k < 2; k++) {
		struct qmachine *m =
			machine((struct qmachine_params){ .node_cores = 8.0, .nodes = nodes[k] });
		struct qmachine_end e;
		double from = seconds(), rate;

		for (uint64_t i = 0; i < 20; i++)
			start(m, 0.0,
			      (struct qmachine_job){ .id = i,
						     .cpus = 2,
						     .cycles = 25000 / des_thrift(),
						     .compute_s = 0.01 + 0.0001 * (double)i,
						     .disk_s = 0.0008,
						     .seed = i });
		while (qmachine_end(m, &e)) {}
		rate = (double)qmachine_events(m) / (seconds() - from);
		printf("%u nodes, 40 processes: %.2f million events per second\n", nodes[k], rate / 1e6);
		assert_true(rate > 3e6 || des_thrift() > 1);
		qmachine_free(m);
	}
}
