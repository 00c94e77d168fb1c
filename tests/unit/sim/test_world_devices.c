/* Jobs with devices in the worlds queueing and fluid: the time they spend there against what theory says of a
 * closed network with a place to wait, and that a replay hands no device out twice. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world/queueing_machine.h"
#include "tests/support/closed.h"
#include "tests/support/test.h"
#include "tests/unit/sim/replay_bed.h"

#define WORLD "fluid:configs/worlds/gpus.json"

/* The mean cycle of n processes that go from the disk to the cores to their devices. */
static double played_s(uint32_t n, double cores, double compute_s, double disk_s, double device_s)
{
	struct qmachine_params p = { .node_cores = cores, .nodes = 1, .law = WORLD_DISK_EXPONENTIAL };
	struct qmachine_job j = { .cpus = n,
				  .cycles = 20000,
				  .compute_s = compute_s,
				  .disk_s = disk_s,
				  .device_s = device_s,
				  .seed = 5 };
	struct qmachine *m = NULL;
	struct qmachine_end e;

	assert_int_equal(qmachine_new(&p, &m, NULL), 0);
	assert_int_equal(qmachine_start(m, 0.0, &j, NULL), 0);
	assert_true(qmachine_end(m, &e));
	qmachine_free(m);
	return e.at_s / 20000.0;
}

static double theory_s(uint32_t n, unsigned cores, double compute_s, double disk_s, double device_s)
{
	const struct closed_station station[] = { { CLOSED_QUEUE, 1 },
						  { CLOSED_QUEUE, cores },
						  { CLOSED_DELAY, 0 } };
	const double demand_s[] = { disk_s, compute_s, device_s };
	const struct closed_network net = {
		.n_stations = 3, .n_classes = 1, .station = station, .demand_s = demand_s, .population = &n
	};
	struct closed_solution s;
	double cycle_s;

	assert_int_equal(closed_exact(&net, NULL, &s, NULL), 0);
	cycle_s = s.response_s[0];
	closed_solution_release(&s);
	return cycle_s;
}

TEST(test_a_process_alone_takes_the_sum_of_its_parts)
{
	struct qmachine_params p = { .node_cores = 1, .nodes = 1, .law = WORLD_DISK_CONSTANT };
	struct qmachine_job j = {
		.cpus = 1, .cycles = 10, .compute_s = 0.25, .disk_s = 0.125, .device_s = 0.5
	};
	struct qmachine *m = NULL;
	struct qmachine_end e;

	assert_int_equal(qmachine_new(&p, &m, NULL), 0);
	assert_int_equal(qmachine_start(m, 0.0, &j, NULL), 0);
	assert_true(qmachine_end(m, &e));
	assert_true(e.at_s == 8.75);
	assert_true(qmachine_busy_s(m) == 2.5); /* the cores do not work while the devices do */
	j.device_s = -1.0;
	assert_int_equal(qmachine_start(m, 10.0, &j, NULL), -ERR_ARG);
	qmachine_free(m);
}

/* Within 2 %: 20,000 cycles of each process, and the job ends with its last one. */
TEST(test_the_cycle_is_that_of_a_closed_network)
{
	static const struct {
		uint32_t n;
		unsigned cores;
		double compute_s, disk_s, device_s;
	} c[] = { { 1, 2, 1.0, 0.3, 2.0 },
		  { 3, 1, 1.0, 0.2, 3.0 },
		  { 6, 2, 1.0, 0.4, 2.5 },
		  { 8, 2, 0.7, 0.1, 6.0 },
		  { 12, 4, 1.0, 0.5, 0.5 } };

	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		double played = played_s(c[i].n, c[i].cores, c[i].compute_s, c[i].disk_s, c[i].device_s);
		double theory = theory_s(c[i].n, c[i].cores, c[i].compute_s, c[i].disk_s, c[i].device_s);

		print_message("%u processes, %u cores: %.4f s, theory %.4f s\n", c[i].n, c[i].cores, played,
			      theory);
		assert_true(fabs(played / theory - 1.0) < 0.02);
	}
}

/* ---- replays ---- */

static uint32_t gpus_of(const struct replay_bed *b, size_t job)
{
	uint32_t gpus = 0;

	assert_int_equal(trace_kind_gpus(b->trace, b->trace->job[job].kind, &gpus, NULL), 0);
	return gpus;
}

TEST(test_no_gpu_is_handed_out_twice)
{
	struct replay_bed b = { 0 };
	size_t kept = 0, promised = 0, wide = 0;
	struct replay_result r;
	struct moment *m;
	long used = 0, most = 0;
	size_t n;

	replay_bed_open(&b,
			"gen:poisson,jobs=400,rate=0.5,cpus=1|2,network=lenet5|resnet,gpus=0|1|2|5,epochs=4,"
			"samples=12000,slo=lognormal:25:0.6",
			WORLD, NULL, "queueing");
	r = replay_bed_run(&b, 0, 1);
	m = replay_bed_moments(&r, &n);
	for (size_t i = 0; i < r.n; i++) {
		const struct outcome *o = &r.outcome[i];

		wide += gpus_of(&b, i) == 5;
		assert_true(gpus_of(&b, i) < 5 || o->state == OUTCOME_REJECTED); /* there are four */
		promised += o->promised;
		kept += o->promised && o->state == OUTCOME_MET;
	}
	for (size_t i = 0; i < n; i++) {
		used += m[i].change * (long)gpus_of(&b, m[i].job);
		most = used > most ? used : most;
		assert_in_range(used, 0, 4);
	}
	print_message("%zu of %zu promises kept, %zu jobs wider than the machine\n", kept, promised, wide);
	assert_true(wide > 50 && most == 4 && promised > 100 && kept > promised * 85 / 100);
	free(m);
	replay_result_release(&r);
	replay_bed_close(&b);
}

TEST(test_gpus_that_are_no_number_are_refused)
{
	static const char text[] = "arrival_s,gpus\n0,1\n1,many\n";
	struct trace *t = NULL;
	struct err err = { 0 };
	uint32_t gpus = 9;

	assert_int_equal(trace_parse_csv("t.csv", text, strlen(text), &t, &err), 0);
	assert_int_equal(trace_kind_gpus(t, t->job[0].kind, &gpus, &err), 0);
	assert_int_equal(gpus, 1);
	assert_int_equal(trace_kind_gpus(t, t->job[1].kind, &gpus, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "t.csv:3: field gpus: 'many'"));
	trace_free(t);
}
