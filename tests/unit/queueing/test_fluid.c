/* queueing/fluid: the look-ahead against a slow reference and against its own balance of work. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "queueing/fluid.h"
#include "tests/support/test.h"

#define MOST 2500

/* fluid.c leaves out less than 2e-12 of the work of each band; some hundred events add rounding. */
#define EXACT 1e-10
#define HAND 2e-12 /* a band or two, as above, and a handful of operations */

static struct fluid_workspace *space;

static int set_up(void **state)
{
	(void)state;
	return fluid_workspace_new(MOST, &space, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	fluid_workspace_free(space);
	return 0;
}

TEST_GROUP(set_up, tear_down);

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

static struct fluid_job job(double work_s, double cpu_share, double disk_share, uint32_t cpus)
{
	return (struct fluid_job){
		.work_s = work_s, .cpu_share = cpu_share, .disk_share = disk_share, .cpus = cpus
	};
}

static struct fluid_machine machine(double cores, uint32_t slots, double disk_saturation)
{
	return (struct fluid_machine){ .cores = cores, .disk_saturation = disk_saturation, .slots = slots };
}

static void play(const struct fluid_scene *s, const struct fluid_job *candidate, struct fluid_times *out)
{
	struct err err = { 0 };

	if (fluid_play(s, candidate, space, out, &err))
		fail_msg("%s", err.text);
}

/* ---- the plain way, step by step and job by job: O(n^2) ---- */

static double stretch(const struct fluid_machine *m, const struct fluid_job *j, double processes)
{
	double shared = fmax(1.0, processes / m->cores) / fmax(1.0, j->cpus / m->cores);
	double disk = (1.0 + processes / m->disk_saturation) / (1.0 + j->cpus / m->disk_saturation);

	return 1.0 - j->cpu_share - j->disk_share + j->cpu_share * shared + j->disk_share * disk;
}

static const struct fluid_job *nth(const struct fluid_scene *s, const struct fluid_job *candidate, size_t i)
{
	if (i < s->n_running)
		return &s->running[i];
	i -= s->n_running;
	return i < s->n_queued ? &s->queued[i] : candidate;
}

/* Slots, or devices, that the running jobs of a group hold; group UINT32_MAX: of all. */
static uint64_t held_by(const struct fluid_scene *s, const struct fluid_job *candidate, const bool *runs,
			size_t n, uint32_t group, bool devices)
{
	uint64_t held = 0;

	for (size_t i = 0; i < n; i++) {
		const struct fluid_job *j = nth(s, candidate, i);

		if (runs[i] && (group == UINT32_MAX || j->group == group))
			held += devices ? j->devices : j->cpus;
	}
	return held;
}

static bool devices_are_free(const struct fluid_scene *s, const struct fluid_job *candidate, const bool *runs,
			     size_t n, const struct fluid_job *j)
{
	if (held_by(s, candidate, runs, n, UINT32_MAX, true) + j->devices > s->machine.devices)
		return false;
	return !j->group ||
	       held_by(s, candidate, runs, n, j->group, true) + j->devices <= s->group[j->group - 1].devices;
}

/* What the running kinds do to a job; 1 without kinds. */
static double slowed(const struct fluid_scene *s, const struct fluid_job *candidate, const bool *runs,
		     size_t n, const struct fluid_job *j, double processes)
{
	double sum = 0.0;

	for (size_t i = 0; i < n && s->kinds && j->feels; i++) {
		const struct fluid_job *other = nth(s, candidate, i);

		if (runs[i] && other->kind)
			sum += s->kinds->slow[other->kind - 1][j->feels - 1] * other->cpus;
	}
	return s->kinds ? 1.0 + sum / fmax(s->kinds->room, processes) : 1.0;
}

static void play_plainly(const struct fluid_scene *s, const struct fluid_job *candidate,
			 struct fluid_times *out)
{
	static double left_s[MOST], end_s[MOST], takes[MOST];
	static bool runs[MOST], over[MOST];
	size_t n = s->n_running + s->n_queued + (candidate ? 1 : 0), first = s->n_running, running = first;
	double now_s = 0.0, held = 0.0;

	for (size_t i = 0; i < n; i++) {
		left_s[i] = nth(s, candidate, i)->work_s;
		runs[i] = i < first;
		held += runs[i] ? nth(s, candidate, i)->cpus : 0.0;
		out[i] = (struct fluid_times){ 0 };
		over[i] = false;
	}
	for (;;) {
		double first_s = INFINITY, processes;
		bool lacking = false;

		for (size_t next = first; next < n; next++) {
			const struct fluid_job *j = nth(s, candidate, next);
			const struct fluid_group *g = j->group ? &s->group[j->group - 1] : NULL;
			double cpus = j->cpus, quota = g ? g->cpus : INFINITY;

			if (runs[next] || over[next])
				continue;
			if (cpus > s->machine.slots || cpus > quota || j->devices > s->machine.devices ||
			    (g && j->devices > g->devices)) {
				out[next].never = true;
				over[next] = true;
				continue;
			}
			if (held + cpus > s->machine.slots || (j->after && !over[j->after - 1]) ||
			    (g && (double)held_by(s, candidate, runs, n, j->group, false) + cpus > quota))
				break;
			if (j->devices && (lacking || !devices_are_free(s, candidate, runs, n, j))) {
				lacking = true;
				continue;
			}
			held += cpus;
			runs[next] = true;
			running++;
			out[next].start_s = now_s;
		}
		if (!running)
			break;
		processes = held + s->other_load;
		for (size_t i = 0; i < n; i++) {
			const struct fluid_job *j = nth(s, candidate, i);

			takes[i] = stretch(&s->machine, j, processes) *
				   slowed(s, candidate, runs, n, j, processes);
			end_s[i] = runs[i] ? left_s[i] * takes[i] : INFINITY;
			first_s = fmin(first_s, end_s[i]);
		}
		for (size_t i = 0; i < n; i++)
			if (runs[i])
				left_s[i] -= first_s / takes[i];
		now_s += first_s;
		for (size_t i = 0; i < n; i++) {
			left_s[i] = fmax(left_s[i], 0.0);
			if (runs[i] && end_s[i] <= first_s) {
				runs[i] = false;
				running--;
				over[i] = true;
				held -= nth(s, candidate, i)->cpus;
				out[i].end_s = now_s;
			}
		}
	}
}

/* ---- scenes by chance ---- */

struct stage {
	struct fluid_job job[MOST];
	struct fluid_scene scene;
	struct fluid_job candidate;
};

static struct fluid_job any_job(struct rng *r, uint32_t widest, bool few_mixes)
{
	double cpu = rng_uniform(r), disk = rng_uniform(r), rest = rng_uniform(r), sum;

	if (few_mixes) {
		cpu = rng_below(r, 3);
		disk = rng_below(r, 3);
		rest = 0.25;
	}
	sum = cpu + disk + rest;
	return job(300.0 * rng_exponential(r), cpu / sum, disk / sum, 1 + rng_below(r, widest));
}

/* Small and large machines, over- and undersubscribed, with and without a queue. */
static void any_stage(struct rng *r, size_t most_jobs, struct stage *out)
{
	uint32_t widest = 1u << rng_below(r, 5), held = 0;
	bool few_mixes = rng_below(r, 2);
	size_t n = rng_below(r, (uint32_t)most_jobs), n_running = rng_below(r, (uint32_t)n + 1);

	for (size_t i = 0; i < n; i++) {
		out->job[i] = any_job(r, widest, few_mixes);
		if (i && rng_below(r, 8) == 0)
			out->job[i] = out->job[i - 1];
		if (rng_below(r, 20) == 0)
			out->job[i].work_s = 0.0;
		held += i < n_running ? out->job[i].cpus : 0;
	}
	out->candidate = any_job(r, widest, few_mixes);
	out->scene = (struct fluid_scene){
		.machine = machine((0.1 + rng_uniform(r)) * (held + 8.0), 1 + rng_below(r, held + 20),
				   (0.02 + rng_uniform(r)) * (held + 8.0)),
		.running = out->job,
		.n_running = n_running,
		.queued = out->job + n_running,
		.n_queued = n - n_running,
	};
}

/* Some wait for others, some share a quota, and others use the machine. */
static void entangle(struct rng *r, struct stage *stage, struct fluid_group *group, size_t n_groups)
{
	size_t n = stage->scene.n_running + stage->scene.n_queued;

	for (size_t i = 0; i < n_groups; i++)
		group[i] = (struct fluid_group){ .cpus = 1 + rng_below(r, 40) };
	for (size_t i = 0; i < n; i++) {
		stage->job[i].group = rng_below(r, (uint32_t)n_groups + 1);
		if (i >= stage->scene.n_running && i && rng_below(r, 4) == 0)
			stage->job[i].after = 1 + rng_below(r, (uint32_t)i);
	}
	stage->scene.group = group;
	stage->scene.n_groups = n_groups;
	stage->scene.other_load = rng_below(r, 2) ? 5.0 * rng_uniform(r) : 0.0;
}

/* Some want devices, and there are few. */
static void equip(struct rng *r, struct stage *stage)
{
	size_t n = stage->scene.n_running + stage->scene.n_queued;

	stage->scene.machine.devices = rng_below(r, 8);
	for (size_t i = 0; i < stage->scene.n_groups; i++)
		stage->scene.group[i].devices = rng_below(r, 6);
	for (size_t i = 0; i < n; i++)
		stage->job[i].devices = rng_below(r, 3) == 0 ? 1 + rng_below(r, 3) : 0;
	stage->candidate.devices = rng_below(r, 3);
}

/* Kinds that disturb each other, some of them not at all; a few jobs have none. */
static void mix_kinds(struct rng *r, struct stage *stage, struct fluid_kinds *k)
{
	size_t n = stage->scene.n_running + stage->scene.n_queued;

	*k = (struct fluid_kinds){ .n = 1 + rng_below(r, FLUID_MAX_KINDS), .room = 1.0 + rng_below(r, 60) };
	for (size_t g = 0; g < k->n; g++) {
		for (size_t i = 0; i < k->n; i++) {
			double slow = i == g || rng_below(r, 3) == 0 ? 0.0 : 1.4 * rng_uniform(r) - 0.45;

			k->slow[g][i] = rint(slow / FLUID_SLOW_UNIT) * FLUID_SLOW_UNIT;
			k->least[i] = fmin(k->least[i], k->slow[g][i]);
			k->most[i] = fmax(k->most[i], k->slow[g][i]);
		}
	}
	for (size_t i = 0; i <= n; i++) {
		struct fluid_job *j = i < n ? &stage->job[i] : &stage->candidate;

		j->kind = (uint16_t)rng_below(r, (uint32_t)k->n + 1);
		j->feels = rng_below(r, 4) ? j->kind : 0;
	}
	stage->scene.kinds = k;
}

/* ---- known answers ---- */

/* The second kind makes the first 1.5 times as slow where it has the whole machine; it has half of it. */
TEST(test_a_neighbour_slows_by_its_kind_and_its_part_of_the_machine)
{
	struct fluid_kinds k = { .n = 2, .room = 4.0, .slow = { [1] = { 0.5 } }, .most = { 0.5 } };
	struct fluid_job two[] = { job(10.0, 1, 0, 2), job(100.0, 1, 0, 2) };
	struct fluid_scene s = { .machine = machine(4, 4, 9), .running = two, .n_running = 2, .kinds = &k };
	struct fluid_times t[2];

	two[0].kind = two[0].feels = 1;
	two[1].kind = two[1].feels = 2;
	play(&s, NULL, t);
	close_to(t[0].end_s, 12.5, HAND);
	close_to(t[1].end_s, 100.0, HAND); /* it does not feel the other */
	two[0].feels = 0;
	play(&s, NULL, t);
	close_to(t[0].end_s, 10.0, HAND);
}

TEST(test_kinds_agree_with_the_reference)
{
	static struct fluid_times fast[MOST], slow[MOST];
	static struct fluid_kinds k;
	static struct stage stage;
	struct fluid_group group[3];
	double worst = 0.0;

	for (uint64_t seed = 0; seed < 300; seed++) {
		struct rng r = rng_stream(77, seed);
		size_t n;

		any_stage(&r, 60, &stage);
		entangle(&r, &stage, group, 3);
		mix_kinds(&r, &stage, &k);
		n = stage.scene.n_running + stage.scene.n_queued + 1;
		play(&stage.scene, &stage.candidate, fast);
		play_plainly(&stage.scene, &stage.candidate, slow);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(fast[i].never, slow[i].never);
			worst = fmax(worst, fabs(fast[i].end_s - slow[i].end_s) / fmax(slow[i].end_s, 1e-9));
		}
	}
	assert_true(worst < 1e-9);
}

TEST(test_kinds_out_of_their_range_are_refused)
{
	struct fluid_kinds k = { .n = 1, .room = 4.0 };
	struct fluid_job one = job(10.0, 1, 0, 2);
	struct fluid_scene s = { .machine = machine(4, 4, 9), .running = &one, .n_running = 1, .kinds = &k };
	struct fluid_times t[1];

	one.kind = 2;
	assert_int_equal(fluid_play(&s, NULL, space, t, NULL), -ERR_ARG);
	one.kind = 1;
	k.least[0] = -1.0;
	assert_int_equal(fluid_play(&s, NULL, space, t, NULL), -ERR_ARG);
	k.least[0] = k.room = 0.0;
	assert_int_equal(fluid_play(&s, NULL, space, t, NULL), -ERR_ARG);
}

TEST(test_two_equal_jobs_on_one_core_take_twice_the_time)
{
	struct fluid_job two[] = { job(2.37, 1, 0, 1), job(2.37, 1, 0, 1) };
	struct fluid_scene s = { .machine = machine(1, 2, 9), .running = two, .n_running = 2 };
	struct fluid_times t[2];

	play(&s, NULL, t);
	close_to(t[0].end_s, 4.74, HAND);
	assert_true(t[1].end_s == t[0].end_s);
	assert_true(t[0].start_s == 0.0 && t[1].start_s == 0.0);
}

TEST(test_the_shorter_of_two_leaves_the_core_to_the_longer)
{
	struct fluid_job two[] = { job(3.5, 1, 0, 1), job(1.1, 1, 0, 1) };
	struct fluid_scene s = { .machine = machine(1, 2, 9), .running = two, .n_running = 2 };
	struct fluid_times t[2];

	play(&s, NULL, t);
	close_to(t[1].end_s, 2.2, HAND);
	close_to(t[0].end_s, 4.6, HAND); /* the core is never idle */
}

TEST(test_a_job_never_gets_more_than_its_own_processes)
{
	struct fluid_job two[] = { job(7.3, 1, 0, 2), job(5.1, 1, 0, 1) };
	struct fluid_scene s = { .machine = machine(4, 4, 9), .running = two, .n_running = 2 };
	struct fluid_times t[2];

	play(&s, NULL, t); /* 3 processes on 4 cores: nobody notices the other */
	close_to(t[0].end_s, 7.3, HAND);
	close_to(t[1].end_s, 5.1, HAND);
	s.machine.cores = INFINITY;
	play(&s, NULL, t);
	close_to(t[0].end_s, 7.3, HAND);
	close_to(t[1].end_s, 5.1, HAND);
}

TEST(test_the_disk_stretches_with_the_processes)
{
	struct fluid_job two[] = { job(2.5, 0, 1, 1), job(5, 0, 1, 1) };
	struct fluid_scene s = { .machine = machine(8, 8, 4), .running = two, .n_running = 2 };
	struct fluid_times t[2];

	play(&s, NULL, t); /* (4 + 2) / (4 + 1) = 1.2 */
	close_to(t[0].end_s, 3.0, HAND);
	close_to(t[1].end_s, 5.5, HAND);
	s.machine.disk_saturation = INFINITY;
	play(&s, NULL, t);
	close_to(t[0].end_s, 2.5, HAND);
	close_to(t[1].end_s, 5.0, HAND);
}

TEST(test_mixed_jobs_match_the_sum_done_by_hand)
{
	struct fluid_job two[] = { job(10, 0.5, 0.3, 2), job(4, 1, 0, 3) };
	struct fluid_scene s = { .machine = machine(4, 8, 6), .running = two, .n_running = 2 };
	struct fluid_times t[2];

	play(&s, NULL, t);
	/* 5 processes on 4 cores: 1.25 for the second, 0.2 + 0.5 x 1.25 + 0.3 x 11/8 = 1.2375 for the
	 * first */
	close_to(t[1].end_s, 5.0, HAND);
	close_to(t[0].end_s, 5.0 + 10.0 - 5.0 / 1.2375, HAND);
}

TEST(test_a_job_alone_takes_its_work_whatever_its_mix)
{
	struct rng r = rng_stream(11, 0);

	for (int i = 0; i < 200; i++) {
		struct fluid_job one = any_job(&r, 40, false); /* also wider than the cores */
		struct fluid_scene s = { .machine = machine(7.5, 1, 3.2), .running = &one, .n_running = 1 };
		struct fluid_times t;

		play(&s, NULL, &t);
		close_to(t.end_s, one.work_s, HAND);
	}
}

/* One job alone is not played in bands. Kinds that do nothing take the long way. */
TEST(test_a_job_alone_has_the_times_of_a_whole_play)
{
	const struct fluid_kinds none = { .room = 1.0 };
	struct rng r = rng_stream(5, 3);

	for (int i = 0; i < 500; i++) {
		struct fluid_job one = any_job(&r, 6, false);
		struct fluid_scene s = { .machine = machine(1.0 + 4.0 * rng_uniform(&r), 4,
							    i % 3 ? 3.7 : INFINITY),
					 .running = &one,
					 .n_running = 1 };
		struct fluid_times alone, whole, queued;

		s.other_load = i % 2 ? 3.0 * rng_uniform(&r) : 0.0;
		play(&s, NULL, &alone);
		s.kinds = &none;
		play(&s, NULL, &whole);
		assert_true(alone.start_s == 0.0 && alone.end_s == whole.end_s && !alone.never);
		s = (struct fluid_scene){
			.machine = s.machine, .other_load = s.other_load, .queued = &one, .n_queued = 1
		};
		play(&s, NULL, &queued);
		assert_true(queued.never == (one.cpus > 4));
		assert_true(queued.never || queued.end_s == whole.end_s);
	}
}

TEST(test_a_queue_of_three_on_one_slot_goes_one_by_one)
{
	struct fluid_job three[] = { job(2.1, 1, 0, 1), job(3.2, 0, 1, 1), job(4.3, 0.5, 0.5, 1) };
	struct fluid_scene s = { .machine = machine(1, 1, 9), .queued = three, .n_queued = 3 };
	struct fluid_times t[3];

	play(&s, NULL, t);
	assert_true(t[0].start_s == 0.0);
	close_to(t[0].end_s, 2.1, HAND);
	assert_true(t[1].start_s == t[0].end_s);
	close_to(t[1].end_s, 5.3, HAND);
	assert_true(t[2].start_s == t[1].end_s);
	close_to(t[2].end_s, 9.6, HAND);
}

TEST(test_a_wide_job_at_the_head_keeps_narrow_ones_waiting)
{
	struct fluid_job running[] = { job(3.5, 1, 0, 1), job(6.5, 1, 0, 1) };
	struct fluid_job queued[] = { job(1, 1, 0, 3), job(1, 1, 0, 1) };
	struct fluid_scene s = { .machine = machine(4, 4, 9),
				 .running = running,
				 .n_running = 2,
				 .queued = queued,
				 .n_queued = 2 };
	struct fluid_times t[4];

	play(&s, NULL, t);
	close_to(t[2].start_s, 3.5, HAND); /* 3 free slots when the first ends */
	close_to(t[3].start_s, 4.5, HAND); /* one was free all the time, but its turn comes later */
	close_to(t[3].end_s, 5.5, HAND);
	close_to(t[1].end_s, 6.5, HAND);
}

TEST(test_a_candidate_delays_those_it_shares_with)
{
	struct fluid_job running[] = { job(6.4, 1, 0, 1), job(0.7, 0, 0, 1) }, candidate = job(2.2, 1, 0, 1);
	struct fluid_scene s = { .machine = machine(1, 3, 9), .running = running, .n_running = 1 };
	struct fluid_times without[2], with[3];

	play(&s, NULL, without);
	play(&s, &candidate, with);
	close_to(without[0].end_s, 6.4, HAND);
	close_to(with[1].end_s, 4.4, HAND);
	close_to(with[0].end_s, 8.6, HAND);
	assert_true(with[1].start_s == 0.0);

	/* time that is neither on the cpus nor at the disk never stretches, but its process has a share:
	 * thirds of the core until 0.7, halves until the candidate ends, then all of it */
	s.n_running = 2;
	play(&s, NULL, without);
	play(&s, &candidate, with);
	close_to(without[1].end_s, 0.7, HAND);
	close_to(with[1].end_s, 0.7, HAND);
	close_to(without[0].end_s, 0.7 + 6.4 - 0.35, HAND);
	close_to(with[2].end_s, 0.7 + 2.0 * (2.2 - 0.7 / 3.0), HAND);
	close_to(with[0].end_s, 0.7 + 2.0 * (2.2 - 0.7 / 3.0) + 6.4 - 2.2, HAND);
}

TEST(test_a_candidate_behind_a_queue_waits_and_delays_nobody)
{
	struct fluid_job running = job(5.5, 1, 0, 2), queued = job(3.25, 0.4, 0.6, 2),
			 candidate = job(1, 1, 0, 2);
	struct fluid_scene s = { .machine = machine(2, 2, 9),
				 .running = &running,
				 .n_running = 1,
				 .queued = &queued,
				 .n_queued = 1 };
	struct fluid_times without[2], with[3];

	play(&s, NULL, without);
	play(&s, &candidate, with);
	assert_true(with[0].end_s == without[0].end_s && with[1].end_s == without[1].end_s);
	close_to(with[2].start_s, 8.75, HAND);
	close_to(with[2].end_s, 9.75, HAND);
}

/* ---- limits ---- */

TEST(test_no_jobs_are_no_times)
{
	struct fluid_scene s = { .machine = machine(4, 4, 9) };
	struct fluid_times t = { 7, 7, true };

	play(&s, NULL, &t);
	assert_true(t.start_s == 7 && t.end_s == 7 && t.never);
}

TEST(test_nothing_left_to_do_ends_at_once)
{
	struct fluid_job running[] = { job(0, 1, 0, 3), job(4.5, 1, 0, 3) },
			 queued[] = { job(0, 0, 1, 3), job(2, 1, 0, 3) };
	struct fluid_scene s = { .machine = machine(6, 6, 9),
				 .running = running,
				 .n_running = 2,
				 .queued = queued,
				 .n_queued = 2 };
	struct fluid_times t[4];

	play(&s, NULL, t);
	assert_true(t[0].end_s == 0.0);
	assert_true(t[2].start_s == 0.0 && t[2].end_s == 0.0);
	assert_true(t[3].start_s == 0.0);
	close_to(t[3].end_s, 2, HAND);
	close_to(t[1].end_s, 4.5, HAND);
}

TEST(test_a_job_larger_than_the_machine_never_starts)
{
	struct fluid_job running = job(3.5, 1, 0, 2), queued[] = { job(1, 1, 0, 5), job(2, 1, 0, 4) };
	struct fluid_job candidate = job(1, 1, 0, UINT32_MAX);
	struct fluid_scene s = { .machine = machine(4, 4, 9),
				 .running = &running,
				 .n_running = 1,
				 .queued = queued,
				 .n_queued = 2 };
	struct fluid_times t[4];

	play(&s, &candidate, t);
	assert_true(t[1].never && t[1].start_s == 0.0 && t[1].end_s == 0.0);
	assert_true(t[3].never && t[3].start_s == 0.0 && t[3].end_s == 0.0);
	assert_false(t[0].never || t[2].never);
	close_to(t[2].start_s, 3.5, HAND); /* not held up by the one before it */
	close_to(t[2].end_s, 5.5, HAND);
	s.n_running = 0;
	s.n_queued = 1;
	play(&s, NULL, t);
	assert_true(t[0].never);
}

TEST(test_running_jobs_may_hold_more_than_the_slots)
{
	struct fluid_job running[] = { job(2.5, 0, 0, 4), job(4.5, 0, 0, 6) }, queued = job(1, 0, 0, 2);
	struct fluid_scene s = { .machine = machine(4, 3, 9),
				 .running = running,
				 .n_running = 2,
				 .queued = &queued,
				 .n_queued = 1 };
	struct fluid_times t[3];

	play(&s, NULL, t);
	close_to(t[2].start_s, 4.5, HAND); /* 6 of 3 slots are still in use at 2.5 */
}

static void refused(const struct fluid_scene *s, const struct fluid_job *candidate, const char *word)
{
	struct fluid_times t[4] = { { 7, 7, true } };
	struct err err = { 0 };

	assert_int_equal(fluid_play(s, candidate, space, t, &err), -ERR_ARG);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
	assert_true(t[0].start_s == 7 && t[0].end_s == 7 && t[0].never);
	assert_int_equal(fluid_play(s, candidate, space, t, NULL), -ERR_ARG);
}

TEST(test_machines_that_make_no_sense_are_refused)
{
	static const double bad_cores[] = { 0, -1, NAN, -INFINITY };
	static const double bad_disk[] = { 0, -3, NAN, -INFINITY };
	struct fluid_scene s = { .machine = machine(1, 1, 1) };

	for (size_t i = 0; i < sizeof bad_cores / sizeof *bad_cores; i++) {
		s.machine = machine(bad_cores[i], 1, 1);
		refused(&s, NULL, "cores");
	}
	for (size_t i = 0; i < sizeof bad_disk / sizeof *bad_disk; i++) {
		s.machine = machine(1, 1, bad_disk[i]);
		refused(&s, NULL, "disk saturation");
	}
	s.machine = machine(1, 0, 1);
	refused(&s, NULL, "0 slots");
}

TEST(test_jobs_that_make_no_sense_are_refused_by_number)
{
	struct fluid_job good = job(1, 0.5, 0.5, 1);
	struct fluid_job bad[] = {
		job(-1, 0.5, 0.5, 1),   job(NAN, 0.5, 0.5, 1),    job(INFINITY, 0.5, 0.5, 1),
		job(2e15, 0.5, 0.5, 1), job(1, 0.5, 0.5, 0),      job(1, -0.1, 0.5, 1),
		job(1, 0.5, -0.1, 1),   job(1, NAN, 0.5, 1),      job(1, 0.5, NAN, 1),
		job(1, 0.6, 0.5, 1),    job(1, INFINITY, 0.5, 1), job(1, 0, 1.1, 1),
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct fluid_job some[] = { good, good, bad[i] };
		struct fluid_scene running = { .machine = machine(1, 1, 1), .running = some, .n_running = 3 };
		struct fluid_scene queued = { .machine = machine(1, 1, 1), .queued = some, .n_queued = 3 };

		refused(&running, NULL, "running job 2");
		refused(&queued, NULL, "queued job 2");
		running.n_running = 2;
		refused(&running, &bad[i], "candidate job");
	}
	bad[0] = job(1, 0.5 + 1e-12, 0.5, 1); /* rounding, not nonsense */
	assert_int_equal(
		fluid_play(
			&(struct fluid_scene){ .machine = machine(1, 1, 1), .running = bad, .n_running = 1 },
			NULL, space, &(struct fluid_times){ 0 }, NULL),
		0);
}

TEST(test_a_workspace_too_small_is_refused)
{
	struct fluid_job some[3] = { job(1, 1, 0, 1), job(1, 1, 0, 1), job(1, 1, 0, 1) };
	struct fluid_scene s = {
		.machine = machine(1, 1, 1), .running = some, .n_running = 1, .queued = some, .n_queued = 2
	};
	struct fluid_workspace *small = NULL;
	struct fluid_times t[4];
	struct err err = { 0 };

	assert_int_equal(fluid_workspace_new(3, &small, NULL), 0);
	assert_int_equal(fluid_play(&s, NULL, small, t, NULL), 0);
	assert_int_equal(fluid_play(&s, some, small, t, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "for 3"));
	s.n_queued = SIZE_MAX;
	assert_int_equal(fluid_play(&s, some, small, t, NULL), -ERR_ARG);
	s.n_running = SIZE_MAX;
	assert_int_equal(fluid_play(&s, NULL, small, t, NULL), -ERR_ARG);
	fluid_workspace_free(small);

	assert_int_equal(fluid_workspace_new(0, &small, NULL), 0);
	s.n_running = s.n_queued = 0;
	assert_int_equal(fluid_play(&s, NULL, small, t, NULL), 0);
	assert_int_equal(fluid_play(&s, some, small, t, NULL), -ERR_ARG);
	fluid_workspace_free(small);
	fluid_workspace_free(NULL);
	assert_int_equal(fluid_workspace_new((size_t)FLUID_MAX_JOBS + 1, &small, &err), -ERR_ARG);
}

TEST(test_no_memory_is_said)
{
	struct fluid_workspace *w = NULL;
	bool failed = true;

	for (unsigned long k = 1; failed; k++) {
		int status;

		mem_fail_at(k, false);
		status = fluid_workspace_new(10, &w, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(status, failed ? -ERR_NOMEM : 0);
	}
	fluid_workspace_free(w);
}

TEST(test_huge_and_tiny_values_give_finite_times)
{
	static const double size[] = { 1e-300, 1e-9, 1, 3e5, 1.7e308, INFINITY };
	static const double disk[] = { 1e-300, 1e-9, 1, 1e9, 1.7e308, INFINITY };
	static const double work_s[] = { 0, 5e-324, 1e-300, 1e-9, 1, 1e9, FLUID_MAX_WORK_S };
	static const uint32_t cpus[] = { 1, 3, 1u << 20, UINT32_MAX };
	struct fluid_job some[7 * 4 * 3];
	struct fluid_times t[7 * 4 * 3];
	size_t n = 0;

	for (size_t i = 0; i < 7; i++)
		for (size_t k = 0; k < 4; k++)
			for (size_t m = 0; m < 3; m++)
				some[n++] = job(work_s[i], m / 2.0, 1.0 - m / 2.0, cpus[k]);
	for (size_t c = 0; c < 6; c++)
		for (size_t d = 0; d < 6; d++)
			for (size_t running = 0; running <= n; running += n / 2) {
				struct fluid_scene s = {
					.machine = machine(size[c], UINT32_MAX, disk[d]),
					.running = some,
					.n_running = running,
					.queued = some + running,
					.n_queued = n - running,
				};

				play(&s, NULL, t);
				for (size_t i = 0; i < n; i++) {
					assert_true(isfinite(t[i].start_s) && isfinite(t[i].end_s) &&
						    !t[i].never);
					assert_true(t[i].start_s >= 0.0 && t[i].end_s >= t[i].start_s);
					assert_true(t[i].end_s - t[i].start_s >=
						    some[i].work_s * (1 - 1e-9) - t[i].end_s * 1e-12);
				}
			}
}

TEST(test_a_job_waits_for_the_end_of_another_and_keeps_those_behind_it_waiting)
{
	struct fluid_job running = job(7.5, 0, 0, 1), queued[] = { job(2.25, 0, 0, 1), job(1, 0, 0, 1) };
	struct fluid_scene s = { .machine = machine(4, 4, 9),
				 .running = &running,
				 .n_running = 1,
				 .queued = queued,
				 .n_queued = 2 };
	struct fluid_times t[3];
	struct err err = { 0 };

	queued[0].after = 1;
	play(&s, NULL, t);
	close_to(t[1].start_s, 7.5, EXACT);
	close_to(t[1].end_s, 9.75, EXACT);
	close_to(t[2].start_s, 7.5, EXACT);
	queued[0].after = 2; /* itself */
	assert_int_equal(fluid_play(&s, NULL, space, t, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "waits for"));
}

TEST(test_a_group_stays_within_its_quota)
{
	struct fluid_group group[] = { { .cpus = 2 } };
	struct fluid_job running = job(3.5, 0, 0, 2), queued[] = { job(2.25, 0, 0, 1), job(1, 0, 0, 3) };
	struct fluid_scene s = { .machine = machine(4, 8, 9),
				 .running = &running,
				 .n_running = 1,
				 .queued = queued,
				 .n_queued = 2,
				 .group = group,
				 .n_groups = 1 };
	struct fluid_times t[3];

	running.group = queued[0].group = queued[1].group = 1;
	play(&s, NULL, t);
	close_to(t[1].start_s, 3.5, EXACT);
	assert_true(t[2].never); /* three of two */
	queued[0].group = 2;
	assert_int_equal(fluid_play(&s, NULL, space, t, NULL), -ERR_ARG);
}

TEST(test_one_that_waits_for_a_device_lets_those_pass_that_want_none)
{
	struct fluid_job running = job(3.5, 0, 0, 1);
	struct fluid_job queued[] = { job(2, 0, 0, 1), job(1, 0, 0, 1), job(1.5, 0, 0, 1), job(1, 0, 0, 1) };
	struct fluid_scene s = { .machine = machine(8, 8, 9),
				 .running = &running,
				 .n_running = 1,
				 .queued = queued,
				 .n_queued = 4 };
	struct fluid_times t[5];

	s.machine.devices = 2;
	running.devices = 1;
	queued[0].devices = 2; /* one is free */
	queued[1].devices = 1; /* it could have that one, and would be unfair to the first */
	queued[3].devices = 3; /* more than there are */
	play(&s, NULL, t);
	close_to(t[1].start_s, 3.5, EXACT);
	close_to(t[2].start_s, 5.5, EXACT);
	close_to(t[3].start_s, 0, EXACT);
	assert_true(t[4].never);
}

TEST(test_devices_of_a_group_are_its_quota)
{
	struct fluid_job running = job(3.5, 0, 0, 1), queued[] = { job(2, 0, 0, 1), job(2, 0, 0, 1) };
	struct fluid_group group = { .cpus = 9, .devices = 1 };
	struct fluid_scene s = { .machine = machine(8, 8, 9),
				 .running = &running,
				 .n_running = 1,
				 .queued = queued,
				 .n_queued = 2,
				 .group = &group,
				 .n_groups = 1 };
	struct fluid_times t[3];

	s.machine.devices = 4;
	running.group = queued[0].group = queued[1].group = 1;
	running.devices = queued[0].devices = 1;
	queued[1].devices = 2;
	play(&s, NULL, t);
	close_to(t[1].start_s, 3.5, EXACT);
	assert_true(t[2].never); /* two of one */
}

TEST(test_others_on_the_machine_slow_all_down_and_take_no_slots)
{
	struct fluid_job running = job(3.5, 1, 0, 1), queued = job(2, 1, 0, 1);
	struct fluid_scene s = { .machine = machine(2, 2, 9),
				 .running = &running,
				 .n_running = 1,
				 .queued = &queued,
				 .n_queued = 1,
				 .other_load = 2.5 };
	struct fluid_times t[2];

	play(&s, NULL, t);
	close_to(t[1].end_s, 2 * 4.5 / 2, EXACT); /* among 4.5 processes on 2 cores */
	close_to(t[0].end_s, 4.5 + 1.5 * 3.5 / 2, EXACT);
	s.other_load = -1;
	assert_int_equal(fluid_play(&s, NULL, space, t, NULL), -ERR_ARG);
	s.other_load = NAN;
	assert_int_equal(fluid_play(&s, NULL, space, t, NULL), -ERR_ARG);
}

/* ---- relations ---- */

static void same_times(const struct fluid_times *a, const struct fluid_times *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_true(a[i].start_s == b[i].start_s && a[i].end_s == b[i].end_s &&
			    a[i].never == b[i].never);
}

TEST(test_a_thousand_scenes_agree_with_the_plain_way)
{
	static struct fluid_times fast[MOST], plain[MOST];
	static struct stage stage;
	struct rng r = rng_stream(2024, 3);

	for (int k = 0; k < 1000; k++) {
		struct fluid_group group[3];
		const struct fluid_job *candidate;
		size_t n;

		any_stage(&r, k < 900 ? 60 : 400, &stage);
		if (k % 2)
			entangle(&r, &stage, group, 3);
		if (k % 4 < 2)
			equip(&r, &stage);
		candidate = rng_below(&r, 2) ? &stage.candidate : NULL;
		n = stage.scene.n_running + stage.scene.n_queued + (candidate ? 1 : 0);
		play(&stage.scene, candidate, fast);
		play_plainly(&stage.scene, candidate, plain);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(fast[i].never, plain[i].never);
			close_to(fast[i].start_s, plain[i].start_s, EXACT);
			close_to(fast[i].end_s, plain[i].end_s, EXACT);
		}
	}
}

/* The worst that can be done to the bands: wide jobs come and go among many narrow ones, over the kink. */
TEST(test_a_play_for_some_tells_of_them_what_the_whole_one_does)
{
	static struct fluid_times whole[MOST], part[MOST];
	static struct stage stage;
	static bool wanted[MOST];
	struct rng r = rng_stream(2024, 33);
	size_t open = 0;

	for (int k = 0; k < 300; k++) {
		struct fluid_group group[3];
		double last_s = 0.0;
		size_t n;

		any_stage(&r, 60, &stage);
		if (k % 2)
			entangle(&r, &stage, group, 3);
		if (k % 3 == 0)
			equip(&r, &stage);
		n = stage.scene.n_running + stage.scene.n_queued;
		play(&stage.scene, NULL, whole);
		for (size_t i = 0; i < n; i++) {
			wanted[i] = rng_below(&r, 20) == 0;
			last_s = wanted[i] ? fmax(last_s, whole[i].end_s) : last_s;
		}
		stage.scene.wanted = wanted;
		play(&stage.scene, NULL, part);
		for (size_t i = 0; i < n; i++) {
			bool ended = !isinf(part[i].end_s), started = !isinf(part[i].start_s);

			assert_true(ended || !wanted[i]);
			if (ended && !whole[i].never)
				assert_true(part[i].end_s == whole[i].end_s);
			else if (!whole[i].never)
				assert_true(whole[i].end_s >= last_s);
			if (started && !whole[i].never)
				assert_true(part[i].start_s == whole[i].start_s);
			open += !ended;
		}
	}
	assert_true(open > 1000);
}

TEST(test_swings_of_the_population_agree_with_the_plain_way)
{
	static struct fluid_times fast[MOST], plain[MOST];
	static struct fluid_job some[600];
	struct rng r = rng_stream(5, 5);
	struct fluid_scene s = { .machine = machine(350, 600, 90),
				 .running = some,
				 .n_running = 300,
				 .queued = some + 300,
				 .n_queued = 300 };

	for (size_t i = 0; i < 600; i++) {
		some[i] = any_job(&r, 1, false);
		some[i].work_s = i < 300 ? 500.0 + some[i].work_s : 4.0 * rng_uniform(&r);
		if (i >= 300)
			some[i].cpus = 20 + rng_below(&r, 280);
	}
	play(&s, NULL, fast);
	play_plainly(&s, NULL, plain);
	for (size_t i = 0; i < 600; i++) {
		close_to(fast[i].start_s, plain[i].start_s, EXACT);
		close_to(fast[i].end_s, plain[i].end_s, EXACT);
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Whatever made the times: with P(t) read off the starts and ends, each job must have done its work. */
TEST(test_work_is_conserved)
{
	static struct fluid_times t[MOST];
	static double moment_s[2 * MOST], done_s[1500];
	static struct fluid_job some[1500];
	struct rng r = rng_stream(77, 1);
	struct fluid_scene s = { .machine = machine(2500, 3600, 700),
				 .running = some,
				 .n_running = 1000,
				 .queued = some + 1000,
				 .n_queued = 500 };

	for (size_t i = 0; i < 1500; i++)
		some[i] = any_job(&r, 6, false);
	play(&s, NULL, t);
	for (size_t i = 0; i < 1500; i++) {
		moment_s[2 * i] = t[i].start_s;
		moment_s[2 * i + 1] = t[i].end_s;
	}
	qsort(moment_s, 3000, sizeof *moment_s, ascending);
	for (size_t k = 1; k < 3000; k++) {
		double from_s = moment_s[k - 1], to_s = moment_s[k], processes = 0.0;

		if (from_s == to_s)
			continue;
		for (size_t i = 0; i < 1500; i++)
			if (t[i].start_s <= from_s && t[i].end_s >= to_s)
				processes += some[i].cpus;
		assert_true(processes <= 3600 || from_s < t[1000].start_s);
		for (size_t i = 0; i < 1500; i++)
			if (t[i].start_s <= from_s && t[i].end_s >= to_s)
				done_s[i] += (to_s - from_s) / stretch(&s.machine, &some[i], processes);
	}
	for (size_t i = 0; i < 1500; i++) /* a short job late in the day: its two times are rounded */
		if (!(fabs(done_s[i] - some[i].work_s) <= EXACT * some[i].work_s + 1e-12 * t[i].end_s))
			fail_msg("job %zu did %.17g of %.17g s", i, done_s[i], some[i].work_s);
}

TEST(test_a_shared_core_is_never_idle)
{
	static struct fluid_times t[500];
	static struct fluid_job some[500];
	struct rng r = rng_stream(8, 1);
	struct fluid_scene s = { .machine = machine(1, 500, 9),
				 .running = some,
				 .n_running = 300,
				 .queued = some + 300,
				 .n_queued = 200 };
	double work_s = 0.0, last_s = 0.0;

	for (size_t i = 0; i < 500; i++) {
		some[i] = job(rng_exponential(&r), 1, 0, 1);
		work_s += some[i].work_s;
	}
	play(&s, NULL, t);
	for (size_t i = 0; i < 500; i++)
		last_s = fmax(last_s, t[i].end_s);
	close_to(last_s, work_s, EXACT);
}

TEST(test_a_candidate_never_makes_anyone_end_earlier)
{
	static struct fluid_times without[MOST], with[MOST];
	static struct stage stage;
	struct rng r = rng_stream(99, 0);

	for (int k = 0; k < 1000; k++) {
		size_t n;

		any_stage(&r, 120, &stage);
		n = stage.scene.n_running + stage.scene.n_queued;
		play(&stage.scene, NULL, without);
		play(&stage.scene, &stage.candidate, with);
		for (size_t i = 0; i < n; i++) {
			assert_true(with[i].end_s >= without[i].end_s * (1 - EXACT));
			assert_true(with[i].start_s >= without[i].start_s * (1 - EXACT));
		}
	}
}

TEST(test_more_work_never_ends_earlier)
{
	static struct fluid_times less[MOST], more[MOST];
	static struct stage stage;
	struct rng r = rng_stream(98, 0);

	for (int k = 0; k < 300; k++) {
		any_stage(&r, 120, &stage);
		play(&stage.scene, &stage.candidate, less);
		stage.candidate.work_s *= 1.5;
		play(&stage.scene, &stage.candidate, more);
		for (size_t i = 0; i <= stage.scene.n_running + stage.scene.n_queued; i++)
			assert_true(more[i].end_s >= less[i].end_s * (1 - EXACT));
	}
}

TEST(test_the_same_scene_gives_the_same_times)
{
	static struct fluid_times first[MOST], again[MOST], other[MOST];
	static struct stage stage, between;
	struct fluid_workspace *fresh;
	struct rng r = rng_stream(4, 2);

	for (int k = 0; k < 50; k++) {
		size_t n;

		any_stage(&r, 300, &stage);
		any_stage(&r, 300, &between);
		n = stage.scene.n_running + stage.scene.n_queued + 1;
		play(&stage.scene, &stage.candidate, first);
		play(&between.scene, NULL, other); /* what the workspace was used for does not show */
		play(&stage.scene, &stage.candidate, again);
		same_times(first, again, n);
		assert_int_equal(fluid_workspace_new(n, &fresh, NULL), 0);
		assert_int_equal(fluid_play(&stage.scene, &stage.candidate, fresh, again, NULL), 0);
		same_times(first, again, n);
		fluid_workspace_free(fresh);
	}
}

TEST(test_the_order_of_running_jobs_does_not_matter)
{
	static struct fluid_times straight[MOST], mixed[MOST];
	static struct stage stage;
	static struct fluid_job shuffled[MOST];
	static uint32_t order[MOST];
	struct rng r = rng_stream(6, 6);

	for (int k = 0; k < 200; k++) {
		struct fluid_scene s;

		any_stage(&r, 200, &stage);
		s = stage.scene;
		for (uint32_t i = 0; i < s.n_running; i++)
			order[i] = i;
		rng_shuffle(&r, order, s.n_running);
		for (size_t i = 0; i < s.n_running; i++)
			shuffled[i] = stage.job[order[i]];
		play(&s, &stage.candidate, straight);
		s.running = shuffled;
		play(&s, &stage.candidate, mixed);
		for (size_t i = 0; i < s.n_running; i++) /* to the last bit */
			assert_true(mixed[i].end_s == straight[order[i]].end_s);
		same_times(straight + s.n_running, mixed + s.n_running, s.n_queued + 1);
	}
}

TEST(test_equal_jobs_end_together)
{
	static struct fluid_times t[900];
	static struct fluid_job some[900];
	struct rng r = rng_stream(13, 1);
	struct fluid_scene s = { .machine = machine(700, 2000, 50), .running = some, .n_running = 900 };

	for (size_t i = 0; i < 300; i++)
		some[i] = some[i + 300] = some[i + 600] = any_job(&r, 3, false);
	play(&s, NULL, t);
	for (size_t i = 0; i < 300; i++)
		assert_true(t[i].end_s == t[i + 300].end_s && t[i].end_s == t[i + 600].end_s);
	for (size_t i = 0; i < 900; i++)
		some[i] = some[0];
	play(&s, NULL, t);
	for (size_t i = 1; i < 900; i++)
		assert_true(t[i].end_s == t[0].end_s);
}

TEST(test_nothing_is_allocated_while_playing)
{
	static struct fluid_times t[MOST];
	static struct stage stage;
	struct rng r = rng_stream(14, 1);

	mem_fail_at(1, true);
	for (int k = 0; k < 20; k++) {
		any_stage(&r, 300, &stage);
		play(&stage.scene, &stage.candidate, t);
	}
	assert_false(mem_failed());
	mem_fail_at(0, false);
}
