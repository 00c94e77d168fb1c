/* The kinds of a trace in the terms of a measured table: which categories, and where on each axis. A kind that the
 * table knows nothing of is refused here, before anything runs. */
#ifndef SIM_WORLD_MEASURED_KINDS_H
#define SIM_WORLD_MEASURED_KINDS_H

#include "sim/world/measured_fold.h"
#include "sim/trace/trace.h"

struct measured_kinds {
	uint32_t *combo;         /* by kind */
	double *value;           /* by kind and axis; NaN: chosen when a job starts */
	double *batch; size_t n_batches; /* measured ones that every kind may have, ascending */
};

/* trace NULL: no kinds, and all measured batches. ERR_FORMAT names the trace, the line of the kind's first job, the column,
 * what it says and what was measured. */
int measured_kinds_bind(const struct measured_table *t, const struct measured_fold *fold, const struct trace *trace,
                        struct measured_kinds *out, struct err *err);
void measured_kinds_release(struct measured_kinds *k);

/* ERR_ARG: v lies outside of what was measured of these categories, and the text says what was; the caller names the axis. */
int measured_check_range(const struct measured_table *t, uint32_t combo, size_t axis, double v, struct err *err);

#endif
