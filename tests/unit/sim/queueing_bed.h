/* Shared by the tests of the worlds `queueing` and `fluid`: a small trace, and worlds by their table of
 * operations. */
#ifndef TESTS_UNIT_SIM_QUEUEING_BED_H
#define TESTS_UNIT_SIM_QUEUEING_BED_H

#include "sim/world/ops.h"

#define BED_KINDS 16

struct bed_trace {
	struct trace trace;
	char *column[3];
	struct trace_kind kind[BED_KINDS];
	char *value[BED_KINDS][3];
	struct trace_job job[BED_KINDS];
};

/* Columns network, samples, epochs; kinds are added by bed_kind(). */
void bed_trace_init(struct bed_trace *b);
/* NULL: not given. Returns the number of the kind. */
uint32_t bed_kind(struct bed_trace *b, const char *network, const char *samples, const char *epochs,
                  uint32_t cpus);

struct bed {
	const struct world_ops *ops;
	void *world, *run;
	struct cluster given, cluster;
};

struct bed bed_open(const struct world_ops *ops, struct world_open o);
void bed_fresh(struct bed *b); /* another run */
void bed_close(struct bed *b);
const char *bed_file(const char *text); /* the path of a file with this text */
struct world_job bed_job(uint64_t id, uint32_t kind, double batch, uint64_t seed);
void bed_start(struct bed *b, double now_s, struct world_job j);
/* When the job ends that is alone in a fresh run. */
double bed_time_of(struct bed *b, struct world_job j, struct world_end *e);

#endif
