/* The plan of a campaign: every run in order, the same for the same design. Used by the journal, the tables
 * and the campaign itself. */
#ifndef SCHEDULER_PROFILER_PLAN_H
#define SCHEDULER_PROFILER_PLAN_H

#include "scheduler/profiler/design.h"

#define PROFILE_MAX_GRID ((size_t)1 << 31) /* settings are 32-bit numbers */

struct profile_point {
	uint16_t level[PROFILE_MAX_FACTORS];
	uint32_t setting;     /* equal for equal levels: the index in the full grid; of a mixed run one of
	                         its own behind those */
	uint32_t replication; /* from 1 */
	bool mixed;           /* one job of the setting, and beside it njobs - 1 of `beside`, which are
	                         started again when they end and are not measured */
	uint16_t beside[PROFILE_MAX_FACTORS];
	uint32_t neighbour;   /* of a mixed run: `beside` is a setting of the neighbour with this number, from
	                         1 on; 0: of the same design */
};
struct profile_plan {
	struct profile_point *run; size_t n; /* in the order in which they are run */
	size_t n_settings;                   /* different ones among them */
};
/* Replication by replication, each in its own random order: stopped early, every setting was measured about
 * as often as every other, and a drift of the machine does not look like an effect. */
int profile_plan_make(const struct profile_design *d, struct profile_plan *out, struct err *err);
void profile_plan_release(struct profile_plan *p);
size_t profile_settings_planned(const struct profile_design *d); /* before replication; SIZE_MAX: too many */
size_t profile_grid_size(const struct profile_design *d); /* of the full grid; SIZE_MAX: too large */
void profile_grid_at(const struct profile_design *d, size_t setting, uint16_t *out_level);

/* A factor's or a fixed value at a point; NULL: the design has no such name. */
const char *profile_value(const struct profile_design *d, const uint16_t *level, const char *name);
size_t profile_jobs(const struct profile_design *d, const uint16_t *level);
size_t profile_copies(const struct profile_design *d, const struct profile_point *p); /* that are measured */
/* The design of the jobs beside those of a mixed run. */
const struct profile_design *profile_beside(const struct profile_design *d, const struct profile_point *p);
/* Who runs beside it, if that is another kind of job (predictors/models/mixed.h); nothing: it is not. */
void profile_put_beside(const struct profile_design *d, const struct profile_point *p, struct strbuf *out);
/* Of all jobs of the run; 0: the design has no cpus. */
double profile_processes(const struct profile_design *d, const struct profile_point *p);
/* "cpus=2 batch=64", "cpus=2 batch=64 beside cpus=1 batch=512" */
void profile_describe(const struct profile_design *d, const struct profile_point *p, struct strbuf *out);

/* The seed a copy (from 1) gets: another one for each copy, replication and setting. If settings shared their
 * seeds, what a seed does to a time would look like an effect of the setting, and the errors of settings that
 * are held out would not show it. */
uint64_t profile_seed(const struct profile_design *d, const struct profile_point *p, size_t copy);

/* The command of one copy with its placeholders filled in; to be freed with argv_free(). */
int profile_argv(const struct profile_design *d, const struct profile_point *p, size_t copy, char ***out_word,
                 struct err *err);

#endif
