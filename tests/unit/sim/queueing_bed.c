/* A small trace by hand, and the worlds `queueing` and `fluid` by their table of operations. */
#include "tests/unit/sim/queueing_bed.h"

#include <math.h>
#include <string.h>

#include "common/io.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

void bed_trace_init(struct bed_trace *b)
{
	*b = (struct bed_trace){ .column = { "network", "samples", "epochs" } };
	b->trace = (struct trace){
		.name = "t.csv", .column = b->column, .n_columns = 3, .kind = b->kind, .job = b->job
	};
}

uint32_t bed_kind(struct bed_trace *b, const char *network, const char *samples, const char *epochs,
		  uint32_t cpus)
{
	size_t i = b->trace.n_kinds++;

	assert_true(i < BED_KINDS);
	b->value[i][0] = (char *)(uintptr_t)network;
	b->value[i][1] = (char *)(uintptr_t)samples;
	b->value[i][2] = (char *)(uintptr_t)epochs;
	b->kind[i] = (struct trace_kind){
		.value = b->value[i], .cpus = cpus, .epochs_from = NAN, .epochs_to = NAN
	};
	b->job[i] = (struct trace_job){ .id = 100 + i, .kind = (uint32_t)i, .line = 10 + (uint32_t)i };
	b->trace.n_jobs = b->trace.n_kinds;
	return (uint32_t)i;
}

struct bed bed_open(const struct world_ops *ops, struct world_open o)
{
	struct bed b = { .ops = ops };
	struct world_machines whole;
	struct err err = { 0 };

	if (ops->open(&o, &b.world, &whole, &err))
		fail_msg("%s", err.text);
	b.given = whole.given;
	b.cluster = whole.cluster;
	if (o.trace && ops->run_new(b.world, 0, &b.run, &err))
		fail_msg("%s", err.text);
	return b;
}

void bed_fresh(struct bed *b)
{
	struct err err = { 0 };

	b->ops->run_free(b->run);
	if (b->ops->run_new(b->world, 0, &b->run, &err))
		fail_msg("%s", err.text);
}

void bed_close(struct bed *b)
{
	if (b->run)
		b->ops->run_free(b->run);
	b->ops->close(b->world);
}

const char *bed_file(const char *text)
{
	const char *path = support_path(support_temp_dir(), "world.json");
	struct err err = { 0 };

	if (io_write_file(path, text, strlen(text), &err))
		fail_msg("%s", err.text);
	return path;
}

struct world_job bed_job(uint64_t id, uint32_t kind, double batch, uint64_t seed)
{
	return (struct world_job){
		.id = id, .kind = kind, .batch = batch, .epochs = NAN, .draws = draws_of(NULL, seed, id)
	};
}

void bed_start(struct bed *b, double now_s, struct world_job j)
{
	struct err err = { 0 };

	if (b->ops->start(b->run, now_s, &j, &err))
		fail_msg("%s", err.text);
}

double bed_time_of(struct bed *b, struct world_job j, struct world_end *e)
{
	double at_s;

	bed_fresh(b);
	bed_start(b, 0.0, j);
	assert_true(b->ops->end(b->run, e, &at_s));
	return at_s;
}
