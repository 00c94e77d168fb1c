/* The kinds of a trace in the worlds `queueing` and `fluid`: which values of the world's categories they
 * have, and what a job of one takes. */
#ifndef SIM_WORLD_QUEUEING_KINDS_H
#define SIM_WORLD_QUEUEING_KINDS_H

#include <stdint.h>

#include "common/err.h"
#include "sim/world/draws.h"
#include "sim/trace/trace.h"
#include "sim/world/file.h"

#define QKINDS_MAX_CYCLES 1e9 /* of all processes of a job together, where every one is simulated */

struct qkind {
	const struct world_value *value[WORLD_FILE_MAX_CATEGORIES]; /* by category of the file */
	uint32_t cpus;
	uint32_t gpus;            /* the column of that name; 0: none */
	double samples;
	double epochs;            /* given or the file's; where they are open, as many as it may have */
	const double *batch; size_t n_batches; /* its own, or the file's; ascending */
};

/* One a kind of the trace; columns the world does not know are ignored. The result borrows from trace and
 * file. ERR_FORMAT: the line of the first job of the kind that is wrong, the column, and what is known. */
int qkinds_bind(const struct world_file *f, const struct trace *t, struct qkind **out, struct err *err);
/* Is it one of the kind's or one of the file's? ERR_ARG says which there are. */
int qkind_check_batch(const struct world_file *f, const struct qkind *k, double batch, struct err *err);
/* epochs NaN: the kind's. */
struct world_work qkind_work(const struct world_file *f, const struct qkind *k, double batch, double epochs);
/* NaN: not known. The same draw for every batch, so that no batch gains by chance. */
double qkind_accuracy(const struct world_file *f, const struct qkind *k, double iterations,
                      const struct draws *draws);

#endif
