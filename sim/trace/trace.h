/* A trace: the jobs of a simulation, in the order in which they arrive. Read from our own format (CSV or
 * JSON lines, docs/TRACE_FORMAT.md), from the daemon's database, from the Standard Workload Format, or made
 * by a generator (generate.h). A reader gets a whole, checked trace: a bad one is refused with line,
 * field and reason before anything runs. Immutable afterwards, so threads may share it.
 *
 * Traces are long and their jobs repeat themselves: what a job trains (columns of the observation table such
 * as network, epochs, samples; its cpus; what it may choose from) is kept once a kind, and a job says
 * which. */
#ifndef SIM_TRACE_TRACE_H
#define SIM_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/strbuf.h"

#define TRACE_MAX_JOBS 20000000
#define TRACE_MAX_KINDS 1000000
#define TRACE_MAX_COLUMNS 64      /* of values, beside those of the format itself */
#define TRACE_MAX_TENANTS 65536
#define TRACE_MAX_TYPES 4096
#define TRACE_MAX_CPUS 65536
#define TRACE_GPUS "gpus" /* the column of values that is also a number of devices: trace_kind_gpus() */
#define TRACE_MAX_BATCHES 64
#define TRACE_MAX_VALUE 128       /* bytes of a value or a name */
#define TRACE_MIN_VALUE 0.001     /* of a job, as the daemon takes it */
#define TRACE_MAX_WORTH 1000.0
#define TRACE_MAX_CHANCE 0.9999   /* a job may ask for, as the daemon takes it */
#define TRACE_MAX_ARRIVAL_S 3.2e9 /* a hundred years; nanoseconds of it fit */

struct trace_kind {
	char **value;             /* by column of the trace; NULL: not given */
	uint32_t cpus;            /* at least 1 */
	double *batch; size_t n_batches; /* it may have, ascending; none: whatever the model has */
	/* open epochs ("1..4" in a column `epochs`, whose value[] is NULL then); NaN: not open */
	double epochs_from, epochs_to;
	double memory_mb, memory_mb_per_record; /* NaN: not known */
};

struct trace_job {
	uint64_t id;              /* > 0, unique in the trace */
	int64_t arrival_ns;       /* from the beginning of the trace on, >= 0 */
	uint64_t recurring;       /* jobs with the same number > 0 are the same one come again; 0: none */
	double slo_s;             /* from arrival to end; NaN: no limit */
	double confidence;        /* NaN: the replay's own */
	double chance;            /* for which it wants to be taken without a promise; 0: it does not */
	double value;             /* what it is worth in time, where 1 is usual; 0 counts as 1 */
	uint32_t kind, tenant;    /* indexes below */
	int32_t type;             /* -1: none */
	int32_t priority;
	bool best_effort;
	bool steer;               /* it asks for its batch after each epoch: scheduler/core/steer.h */
	bool may_stop;            /* it may end after an earlier epoch than it was to */
	uint32_t line;            /* in its file; 0: it was made */
};

struct trace {
	char *name;               /* what errors and reports call it */
	char *about;              /* a sentence: "1,000 jobs over 2 h, 3 tenants, generated: poisson ..." */
	char **column; size_t n_columns;
	struct trace_kind *kind; size_t n_kinds;
	struct trace_job *job; size_t n_jobs; /* by arrival; equal ones in the order of the file */
	/* at least 1: "default" where the trace has no tenants */
	char **tenant; double *weight; size_t n_tenants;
	char **type; size_t n_types;
	uint64_t fingerprint;     /* of all of the above but name and about */
	size_t n_left_out;        /* jobs that trace_leave_out() took away */
	char **notice; size_t n_notices; /* for people: columns or records left out, and why */
};
void trace_free(struct trace *t);

static inline double trace_value(const struct trace_job *j)
{
	return j->value > 0.0 ? j->value : 1.0;
}

struct trace_source {             /* what the command line says of it */
	/* a file (.csv, .jsonl, .swf, a daemon's postrider.db or its folder, "-" for CSV on standard input),
	 * or "gen:KIND,key=value,..." (generate.h) */
	const char *spec;
	const char *map;          /* SWF: JSON file of the mapping; NULL: the built-in one */
	uint64_t seed;            /* of a generator, and of what is drawn */
	uint64_t resample;        /* so many jobs are drawn from those of the trace; 0: all as they are */
	bool history;             /* spec is the daemon's database or state folder, whatever its name */
};
int trace_open(const struct trace_source *s, struct trace **out, struct err *err);

int trace_read_csv(const char *path, struct trace **out, struct err *err);
int trace_read_jsonl(const char *path, struct trace **out, struct err *err);
int trace_read_swf(const char *path, const char *map_path, struct trace **out, struct err *err);
/* read-only, also while the daemon runs */
int trace_read_history(const char *path, struct trace **out, struct err *err);
/* The same two on memory; `name` is what errors call it. For tests and fuzzing too. */
int trace_parse_csv(const char *name, const char *text, size_t len, struct trace **out, struct err *err);
int trace_parse_jsonl(const char *name, const char *text, size_t len, struct trace **out, struct err *err);
int trace_parse_swf(const char *name, const char *text, size_t len, const char *map_name,
                    const char *map_text, /* map_text NULL: the built-in one */ size_t map_len,
                    struct trace **out, struct err *err);

/* Reads back as the same trace (fingerprints are equal). */
void trace_write_csv(const struct trace *t, struct strbuf *out);
void trace_write_jsonl(const struct trace *t, struct strbuf *out);

/* Every limit times slo_scale and every gap between arrivals times 1 / load_scale; both > 0. After an
 * error the trace can only be freed. */
int trace_scale(struct trace *t, double slo_scale, double load_scale, struct err *err);

/* n jobs instead of those that are there: jobs, and gaps between arrivals, drawn with replacement.
 * ERR_FORMAT: fewer than 2 jobs. After an error the trace can only be freed. */
int trace_resample(struct trace *t, size_t n, uint64_t seed, struct err *err);

/* Leaves out the kinds that are marked and their jobs, and says so in `about` and a notice with the reason.
 * Kinds get new numbers. ERR_FORMAT: no job is left. */
int trace_leave_out(struct trace *t, const bool *kind, const char *reason, struct err *err);

/* The devices that jobs of a kind hold: the value of its column `gpus`, 0 where there is none. ERR_FORMAT:
 * not a whole number from 0 to TRACE_MAX_CPUS. */
int trace_kind_gpus(const struct trace *t, size_t kind, uint32_t *out, struct err *err);

#endif
