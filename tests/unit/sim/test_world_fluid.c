/* The world fluid: its laws against queueing theory and against the world queueing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>

#include "tests/support/closed.h"
#include "sim/world/fluid_laws.h"
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

/* ---- the laws ---- */

static struct fluid_laws *laws_of(const struct world_file *f, double cores, uint32_t nodes, double most)
{
	struct cluster c = { .cores = cores, .nodes = nodes, .slots = 1 };
	struct fluid_laws *l = NULL;
	struct err err = { 0 };

	if (fluid_laws_new(f, &c, most, &l, &err))
		fail_msg("%s", err.text);
	return l;
}

static uint32_t law_of(struct fluid_laws *l, uint32_t cpus, double compute_s, double disk_s)
{
	struct err err = { 0 };
	uint32_t law = 0;

	if (fluid_laws_add(l, cpus, &(struct world_work){ 1.0, compute_s, disk_s, 0.0 }, &law, &err))
		fail_msg("%s", err.text);
	return law;
}

TEST(test_a_law_is_mean_value_analysis)
{
	static const struct world_file plain;
	static const unsigned cores[] = { 1, 2, 7, 48 };
	static const double disk_s[] = { 0.0, 0.001, 0.3, 1.0, 40.0 };

	for (size_t c = 0; c < 4; c++) {
		struct fluid_laws *l = laws_of(&plain, cores[c], 1, 2000.0);

		for (size_t d = 0; d < 5; d++) {
			uint32_t law = law_of(l, 1, 1.0, disk_s[d]);

			for (uint32_t n = 1; n <= FLUID_EXACT; n++)
				close_to(fluid_laws_cycle_s(l, law, n),
					 closed_cycle_s(cores[c], n, 1.0, disk_s[d]), 1e-10);
			for (uint32_t n = 100; n <= 2000; n += 633) /* between two points of the table */
				close_to(fluid_laws_cycle_s(l, law, n),
					 closed_cycle_s(cores[c], n, 1.0, disk_s[d]), 1e-3);
			close_to(fluid_laws_cycle_s(l, law, 9000.0), /* beyond it */
				 closed_cycle_s(cores[c], 9000, 1.0, disk_s[d]), 1e-2);
		}
		fluid_laws_free(l);
	}
}

TEST(test_equal_laws_are_kept_once)
{
	static const struct world_file plain;
	struct fluid_laws *l = laws_of(&plain, 2.0, 1, 20.0);

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 1000; i++)
			assert_int_equal(law_of(l, 1 + i % 7, 1.0 + i, 0.5), i);
	close_to(fluid_laws_cycle_s(l, 999, 1.0), 1000.5, 1e-12);
	fluid_laws_free(l);
}

TEST(test_processes_spread_over_the_nodes)
{
	static const struct world_file plain;
	struct fluid_laws *l = laws_of(&plain, 3.0, 3, 40.0);
	uint32_t one = law_of(l, 1, 1.0, 0.2), four = law_of(l, 4, 1.0, 0.2);
	double alone = closed_cycle_s(1, 1, 1.0, 0.2), two = closed_cycle_s(1, 2, 1.0, 0.2);

	for (double p = 1.0; p <= 3.0; p++)
		close_to(fluid_laws_cycle_s(l, one, p), alone, 1e-12);
	close_to(fluid_laws_cycle_s(l, four, 4.0), two, 1e-12); /* waits for the two that share a node */
	close_to(fluid_laws_cycle_s(l, one, 4.0), (two + 2.0 * alone) / 3.0, 1e-12);
	close_to(fluid_laws_cycle_s(l, one, 6.0), two, 1e-12);
	for (double p = 1.0; p < 100.0; p++) /* never faster with more */
		assert_true(fluid_laws_cycle_s(l, one, p + 1.0) >= fluid_laws_cycle_s(l, one, p));
	fluid_laws_free(l);
}

/* ---- the two worlds side by side ---- */

/* Mean response of njobs equal jobs that start together, over seeds. */
static double mean_response_s(struct bed *b, uint32_t kind, size_t njobs, double batch, size_t seeds)
{
	double sum = 0.0, at_s;
	struct world_end e;

	for (size_t s = 1; s <= seeds; s++) {
		bed_fresh(b);
		for (size_t i = 0; i < njobs; i++)
			bed_start(b, 0.0, bed_job(i + 1, kind, batch, s));
		while (b->ops->end(b->run, &e, &at_s))
			sum += at_s;
	}
	return sum / (double)(njobs * seeds);
}

static void compare_equal_jobs(const char *file, const char *epochs, double allowed)
{
	static const uint32_t cpus[] = { 1, 2, 4 };
	static const size_t njobs[] = { 1, 3, 5 };
	static const double batch[] = { 64.0, 512.0 };
	static const char *const network[] = { "lenet5", "simplenet" };
	struct bed_trace t;
	struct bed q, f;
	double worst = 0.0;

	bed_trace_init(&t);
	for (size_t n = 0; n < 2; n++)
		for (size_t c = 0; c < 3; c++)
			bed_kind(&t, network[n], NULL, epochs, cpus[c]);
	q = bed_open(&world_queueing, (struct world_open){ .argument = file, .trace = &t.trace });
	f = bed_open(&world_fluid, (struct world_open){ .argument = file, .trace = &t.trace });
	for (uint32_t k = 0; k < t.trace.n_kinds; k++)
		for (size_t j = 0; j < 3; j++)
			for (size_t i = 0; i < 2; i++) {
				double got = mean_response_s(&q, k, njobs[j], batch[i], 5),
				       want = mean_response_s(&f, k, njobs[j], batch[i], 1);
				double off = want / got - 1.0;

				printf("%-9s %u cpus %zu jobs batch %3g: queueing %9.4f s, fluid %9.4f s, "
				       "%+.2f %%\n",
				       network[k / 3], t.kind[k].cpus, njobs[j], batch[i], got, want,
				       100.0 * off);
				worst = fmax(worst, fabs(off));
			}
	printf("at most %.2f %% apart\n", 100.0 * worst);
	assert_true(worst < allowed);
	bed_close(&q);
	bed_close(&f);
}

TEST(test_equal_jobs_take_as_long_as_in_the_queueing_world)
{
	compare_equal_jobs(NULL, NULL, 0.03);
}

TEST(test_the_same_on_three_nodes)
{
	compare_equal_jobs("configs/worlds/bigdl.json", "1", 0.03);
}

/* With a barrier, or a disk that is not exponential, the laws come from the machine itself. */
static void compare_played(const char *what, const char *service, const char *barrier)
{
	char text[1024];
	struct bed_trace t;
	struct bed q, f;
	const char *path;

	snprintf(text, sizeof text,
		 "{\"cluster\":{\"cores\":4,\"slots\":32,\"nodes\":2},\"defaults\":{\"samples\":12800,"
		 "\"epochs\":1},"
		 "\"batches\":[64],\"costs\":{\"fixed_s\":0.002,\"record_s\":0.0001,\"disk_s\":0.002},"
		 "\"service\":{\"disk\":%s},\"barrier\":%s}",
		 service, barrier);
	path = bed_file(text);
	bed_trace_init(&t);
	bed_kind(&t, NULL, NULL, NULL, 1);
	bed_kind(&t, NULL, NULL, NULL, 4);
	q = bed_open(&world_queueing, (struct world_open){ .argument = path, .trace = &t.trace });
	f = bed_open(&world_fluid, (struct world_open){ .argument = path, .trace = &t.trace });
	for (uint32_t k = 0; k < 2; k++)
		for (size_t njobs = 1; njobs <= 7; njobs += 2) {
			double got = mean_response_s(&q, k, njobs, 64.0, 10),
			       want = mean_response_s(&f, k, njobs, 64.0, 1);

			printf("%s: %u cpus %zu jobs: queueing %.4f s, fluid %.4f s, %+.2f %%\n", what,
			       t.kind[k].cpus, njobs, got, want, 100.0 * (want / got - 1.0));
			assert_true(fabs(want / got - 1.0) < 0.05);
		}
	bed_close(&q);
	bed_close(&f);
}

TEST(test_barriers_and_other_disks_are_played)
{
	compare_played("barrier", "\"exponential\"", "true");
	compare_played("constant disk", "\"constant\"", "false");
	compare_played("measured disk", "{\"measured\":[1,1,1,1,1,1,1,1,1,20]}", "false");
}

struct counts {
	double response_s, run_s, busy_s, end_s, processes;
	size_t n;
};

/* Jobs arrive as a Poisson stream, wait in line for their slots, and run. */
static struct counts play_line(struct bed *b, const struct bed_trace *t, size_t n, double between_s,
			       uint64_t seed)
{
	static const double batch[] = { 64.0, 128.0, 256.0, 512.0 };
	struct rng rng = rng_stream(seed, 5);
	struct counts out = { 0 };
	double *arrival_s = mem_array(n, sizeof *arrival_s), *start_s = mem_array(n, sizeof *start_s);
	struct world_job *job = mem_array(n, sizeof *job);
	uint32_t used = 0;
	size_t arrived = 0, started = 0;
	double now_s = 0.0;

	for (size_t i = 0; i < n; i++) {
		now_s += between_s * rng_exponential(&rng);
		arrival_s[i] = now_s;
		job[i] = bed_job(i, rng_below(&rng, (uint32_t)t->trace.n_kinds), batch[rng_below(&rng, 4)],
				 seed);
	}
	now_s = 0.0;
	while (out.n < n) {
		double next_s = b->ops->next_s(b->run), at_s;
		struct world_end e;

		if (arrived < n && arrival_s[arrived] <= next_s) {
			now_s = fmax(now_s, arrival_s[arrived++]);
		} else {
			assert_true(b->ops->end(b->run, &e, &at_s));
			assert_true(at_s >= start_s[e.id] && e.processes >= t->kind[job[e.id].kind].cpus);
			used -= t->kind[job[e.id].kind].cpus;
			out.response_s += at_s - arrival_s[e.id];
			out.run_s += at_s - start_s[e.id];
			out.processes += e.processes;
			out.end_s = fmax(out.end_s, at_s);
			out.n++;
			now_s = fmax(now_s, at_s);
		}
		while (started < arrived && used + t->kind[job[started].kind].cpus <= b->cluster.slots) {
			used += t->kind[job[started].kind].cpus;
			start_s[started] = now_s;
			bed_start(b, now_s, job[started]);
			started++;
		}
	}
	out.busy_s = b->ops->count(b->run).busy_s;
	out.response_s /= (double)n;
	out.run_s /= (double)n;
	out.processes /= (double)n;
	free(arrival_s);
	free(start_s);
	free(job);
	return out;
}

static void compare_mixture(const char *file, const char *epochs, double between_s, double allowed)
{
	struct bed_trace t;
	struct bed q, f;
	struct counts a, b;

	bed_trace_init(&t);
	for (uint32_t c = 1; c <= 4; c *= 2) {
		bed_kind(&t, "lenet5", NULL, epochs, c);
		bed_kind(&t, "simplenet", NULL, epochs, c);
	}
	q = bed_open(&world_queueing, (struct world_open){ .argument = file, .trace = &t.trace });
	f = bed_open(&world_fluid, (struct world_open){ .argument = file, .trace = &t.trace });
	a = play_line(&q, &t, 300, between_s, 1);
	b = play_line(&f, &t, 300, between_s, 1);
	printf("300 mixed jobs, one in %g s: response %.3f and %.3f s (%+.2f %%), run %.3f and %.3f s (%+.2f "
	       "%%), "
	       "processes met %.2f and %.2f, busy %.2f and %.2f core-seconds, end %.2f and %.2f s\n",
	       between_s, a.response_s, b.response_s, 100.0 * (b.response_s / a.response_s - 1.0), a.run_s,
	       b.run_s, 100.0 * (b.run_s / a.run_s - 1.0), a.processes, b.processes, a.busy_s, b.busy_s,
	       a.end_s, b.end_s);
	close_to(b.response_s, a.response_s, allowed);
	close_to(b.run_s, a.run_s, allowed);
	close_to(b.busy_s, a.busy_s, 1e-6); /* the same work */
	assert_true(a.busy_s <= q.cluster.cores * a.end_s);
	bed_close(&q);
	bed_close(&f);
}

TEST(test_a_mixture_that_arrives_takes_about_as_long)
{
	compare_mixture(NULL, NULL, 1.0, 0.02); /* some load */
	compare_mixture(NULL, NULL, 0.62, 0.02); /* a line forms */
	compare_mixture(NULL, NULL, 0.0, 0.02); /* all at once */
	/* Here the disk is what jobs wait for, and jobs differ in what they ask of it. */
	compare_mixture("configs/worlds/bigdl.json", "1", 9.0, 0.10);
	compare_mixture("configs/worlds/bigdl.json", "1", 6.0, 0.10);
	compare_mixture("configs/worlds/bigdl.json", "1", 0.0, 0.10);
	/* On the brink a few per cent of service make a multiple of it in waiting. */
	compare_mixture("configs/worlds/bigdl.json", "1", 4.0, 0.20);
}

/* ---- the world ---- */

static struct bed plain_bed(struct bed_trace *t, struct disturbances d)
{
	bed_trace_init(t);
	bed_kind(t, "lenet5", NULL, NULL, 1);
	bed_kind(t, "simplenet", NULL, NULL, 2);
	return bed_open(&world_fluid, (struct world_open){ .trace = &t->trace, .disturbances = d });
}

TEST(test_draws_slow_down_and_fail_jobs)
{
	struct world_job j = bed_job(1, 0, 128.0, 3);
	struct bed_trace t;
	struct bed b = plain_bed(&t, (struct disturbances){ 0 });
	struct world_end e;
	double plain_s = bed_time_of(&b, j, &e), busy_s = b.ops->count(b.run).busy_s;

	assert_true(!e.failed && e.accuracy > 0.6 && e.accuracy < 0.9);
	close_to(e.processes, 1.0, 1e-12);
	/* 94 x 4 iterations, of the costs in the file */
	close_to(busy_s, 376.0 * (4.4e-5 + 3.06e-5 * 128.0), 1e-12);
	close_to(plain_s, busy_s + 376.0 * (2e-5 + 1e-6 * 128.0), 1e-12);
	j.draws.slow = 3.0;
	close_to(bed_time_of(&b, j, &e), 3.0 * plain_s, 1e-9);
	j.draws.slow = 1.0;
	j.draws.fails_at = 0.25;
	close_to(bed_time_of(&b, j, &e), 0.25 * plain_s, 1e-9);
	assert_true(e.failed && isnan(e.accuracy));
	close_to(b.ops->count(b.run).busy_s, 0.25 * busy_s, 1e-9);
	bed_close(&b);
}

TEST(test_jobs_of_one_kind_differ_in_accuracy_by_the_noise_of_the_file)
{
	struct bed_trace t;
	struct bed b = plain_bed(&t, (struct disturbances){ 0 });
	struct world_end first, second;

	bed_time_of(&b, bed_job(1, 0, 128.0, 3), &first);
	bed_time_of(&b, bed_job(2, 0, 128.0, 3), &second);
	assert_true(first.accuracy != second.accuracy);
	close_to(first.accuracy, second.accuracy, 0.2); /* five times the noise of 0.02, both ways */
	bed_close(&b);
}

TEST(test_drift_stretches_what_comes_after_it)
{
	struct bed_trace t;
	struct bed b = plain_bed(&t, (struct disturbances){ 0 });
	struct world_end e;
	double plain_s = bed_time_of(&b, bed_job(1, 0, 128.0, 3), &e), busy_s = b.ops->count(b.run).busy_s;

	bed_close(&b);
	b = plain_bed(&t, (struct disturbances){ .drift = 0.5, .drift_at_s = 0.4 * plain_s });
	close_to(bed_time_of(&b, bed_job(1, 0, 128.0, 3), &e), (0.4 + 1.5 * 0.6) * plain_s, 1e-9);
	close_to(b.ops->count(b.run).busy_s, (0.4 + 1.5 * 0.6) * busy_s, 1e-9);
	bed_close(&b);
}

TEST(test_a_copy_goes_on_like_the_original)
{
	struct bed_trace t;
	struct bed b = plain_bed(&t, (struct disturbances){ 0 });
	struct err err = { 0 };
	struct world_end e, f;
	double at_s, copy_s;
	void *copy = NULL;

	assert_int_equal(b.ops->run_new(b.world, 0, &copy, &err), 0);
	for (uint32_t i = 0; i < 9; i++)
		bed_start(&b, 0.1 * i, bed_job(i + 1, i % 2, 64.0, 4));
	assert_true(b.ops->end(b.run, &e, &at_s));
	assert_int_equal(b.ops->copy(copy, b.run, &err), 0);
	while (b.ops->end(b.run, &e, &at_s)) {
		assert_true(b.ops->end(copy, &f, &copy_s));
		assert_true(e.id == f.id && at_s == copy_s && e.processes == f.processes &&
			    e.accuracy == f.accuracy);
	}
	assert_false(b.ops->end(copy, &f, &copy_s));
	assert_true(b.ops->count(copy).busy_s == b.ops->count(b.run).busy_s);
	assert_true(b.ops->count(copy).events == b.ops->count(b.run).events);
	b.ops->run_free(copy);
	bed_close(&b);
}

TEST(test_a_larger_machine_is_a_what_if)
{
	struct cluster larger = { .cores = 8.0, .slots = 20, .nodes = 1, .memory_mb = INFINITY };
	struct bed_trace t;
	struct bed b = plain_bed(&t, (struct disturbances){ 0 }), l;
	double small_s, large_s;

	l = bed_open(&world_fluid, (struct world_open){ .trace = &t.trace, .cluster = &larger });
	assert_true(l.given.cores == 2.0 && l.cluster.cores == 8.0);
	small_s = mean_response_s(&b, 0, 8, 128.0, 1);
	large_s = mean_response_s(&l, 0, 8, 128.0, 1);
	assert_true(large_s < 0.45 * small_s);
	bed_close(&b);
	bed_close(&l);
}

TEST(test_too_many_sorts_of_jobs_are_refused)
{
	struct world_file barrier = { .barrier = true };
	struct fluid_laws *l = laws_of(&barrier, 2.0, 1, 2.0);
	struct err err = { 0 };
	uint32_t law;

	for (size_t i = 0; i < FLUID_MAX_PLAYED; i++)
		assert_int_equal(fluid_laws_add(l, 1, &(struct world_work){ 1.0, 1.0 + (double)i, 0.0, 0.0 },
						&law, &err),
				 0);
	assert_int_equal(fluid_laws_add(l, 1, &(struct world_work){ 1.0, 0.5, 0.0, 0.0 }, &law, &err),
			 -ERR_ARG);
	assert_non_null(strstr(err.text, "the world queueing takes them"));
	assert_int_equal(fluid_laws_add(l, 1, &(struct world_work){ 1.0, 1.0, 0.0, 0.0 }, &law, &err),
			 0); /* one of those there are */
	assert_int_equal(law, 0);
	fluid_laws_free(l);
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
		void *w = NULL, *run = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = world_fluid.open(&o, &w, &whole, &err);
		if (!rc)
			rc = world_fluid.run_new(w, 0, &run, &err);
		if (!rc)
			rc = world_fluid.start(run, 0.0, &j, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		if (run)
			world_fluid.run_free(run);
		if (w)
			world_fluid.close(w);
	}
}

TEST(test_a_start_and_an_end_take_under_a_microsecond)
{
	size_t n = 300000 / des_thrift();
	struct bed_trace t;
	struct bed b = plain_bed(&t, (struct disturbances){ 0 });
	struct timespec from, to;
	struct world_end e;
	double at_s = 0.0, each_s;

	for (uint32_t i = 0; i < 20; i++)
		bed_start(&b, 0.0, bed_job(i + 1, i % 2, 64.0, 4));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (size_t i = 0; i < n; i++) {
		struct world_job j = { .id = 100 + i,
				       .kind = (uint32_t)(i * 7 % 3 == 0),
				       .batch = 128.0,
				       .epochs = NAN,
				       .draws = { .slow = 1.0, .fails_at = NAN, .seed = i } };

		b.ops->next_s(b.run);
		b.ops->end(b.run, &e, &at_s);
		b.ops->start(b.run, at_s, &j, NULL);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	each_s = ((double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec)) / (double)n;
	printf("a start and an end among 20 jobs: %.0f ns\n", 1e9 * each_s);
	assert_true(each_s < 1e-6 || des_thrift() > 1);
	bed_close(&b);
}
