/* Putting a trace together job by job: the readers and the generators do. Kinds, tenants and types are found
 * again by their contents, so that equal ones are kept once. */
#ifndef SIM_TRACE_BUILD_H
#define SIM_TRACE_BUILD_H

#include "sim/trace/trace.h"

struct trace_build;

/* Columns are known beforehand; `name` is copied. */
int trace_build_new(const char *name, const char *const *column, size_t n_columns,
                    struct trace_build **out, struct err *err);
void trace_build_free(struct trace_build *b);
/* The column of that name, there already or new: jobs before it have no value in it. ERR_FORMAT: too many,
 * or no fit name. A kind with open epochs needs the column `epochs`. */
int trace_build_column(struct trace_build *b, const char *name, size_t *out, struct err *err);
size_t trace_build_columns(const struct trace_build *b);
size_t trace_build_jobs(const struct trace_build *b);
/* Arrivals are moments since 1970; the earliest becomes 0 in the end. Before the first job. */
void trace_build_absolute(struct trace_build *b);

struct trace_kind_text {          /* borrowed for the length of a call */
	const char *const *value; /* by column; NULL: not given */
	uint32_t cpus;
	const double *batch; size_t n_batches;
	double epochs_from, epochs_to, memory_mb, memory_mb_per_record; /* NaN: none */
};
/* The index of the kind, the tenant (NULL: "default"), the type (NULL: -1). */
int trace_build_kind(struct trace_build *b, const struct trace_kind_text *k, uint32_t *out, struct err *err);
/* weight NaN: as it is, or 1 */
int trace_build_tenant(struct trace_build *b, const char *name, double weight, uint32_t *out,
                       struct err *err);
int trace_build_type(struct trace_build *b, const char *name, int32_t *out, struct err *err);
/* A job; id 0: the number of jobs so far plus 1. Jobs may come in any order of arrival. ERR_FORMAT: a value
 * out of range or an id that was there before, naming file, line and field. */
int trace_build_job(struct trace_build *b, const struct trace_job *j, struct err *err);
int trace_build_notice(struct trace_build *b, struct err *err, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));
/* Sorts, numbers kinds, tenants and types by first use, fingerprints. `about` says where it comes from; the
 * trace's own puts the counts before it ("1,000 jobs over 2 h, 3 tenants, generated: ..."; NULL: the counts
 * alone). The builder is empty afterwards and still to be freed. ERR_FORMAT: no job in it. */
int trace_build_done(struct trace_build *b, const char *about, struct trace **out, struct err *err);

/* Of all but name, about, notices and lines: the same trace in another file is the same trace. */
uint64_t trace_fingerprint(const struct trace *t);
/* The counts, as above; to be freed. NULL: no memory. */
char *trace_about(const struct trace *t, const char *source);
/* A copy of a kind with all of `n_columns` columns, in one block that begins at value[]; those from n_have
 * on are not given. */
int trace_kind_copy(const struct trace_kind *k, size_t n_have, size_t n_columns, struct trace_kind *out);

#endif
