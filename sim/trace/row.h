/* One job of our own trace format, field by field as text: what the readers of CSV, JSON lines and history
 * share. docs/TRACE_FORMAT.md has the fields. */
#ifndef SIM_TRACE_ROW_H
#define SIM_TRACE_ROW_H

#include "sim/trace/build.h"

enum trace_field {
	TRACE_ARRIVAL, TRACE_SLO, TRACE_CPUS, TRACE_ID, TRACE_CONFIDENCE, TRACE_TENANT, TRACE_WEIGHT,
	TRACE_TYPE, TRACE_PRIORITY, TRACE_BEST_EFFORT, TRACE_RECURRING, TRACE_BATCHES, TRACE_EPOCHS,
	TRACE_MEMORY, TRACE_MEMORY_PER_RECORD, TRACE_VALUE, TRACE_MAY_STOP, TRACE_CHANCE,
	TRACE_STEER,
	TRACE_FIELDS,               /* any other name: a column of values */
};
extern const char *const trace_field_name[TRACE_FIELDS + 1]; /* ended by NULL */
enum trace_field trace_field_of(const char *name);

enum arrival_style { ARRIVAL_UNKNOWN, ARRIVAL_SECONDS, ARRIVAL_TIME };

struct trace_row {
	struct trace_build *build;  /* borrowed */
	enum arrival_style style;   /* of all rows, by the first */
	/* of this row: */
	uint32_t line;
	bool has_arrival;
	struct trace_job job;
	const char *tenant, *type;  /* borrowed until the row is added */
	double weight;
	struct trace_kind_text kind;
	const char *value[TRACE_MAX_COLUMNS];
	double batch[TRACE_MAX_BATCHES];
};

void trace_row_init(struct trace_row *r, struct trace_build *b);
void trace_row_begin(struct trace_row *r, uint32_t line);
/* One field; an empty text is as good as none. `column` is the index of its column of values, for
 * TRACE_EPOCHS and TRACE_FIELDS; texts are borrowed until the row is added. The error is the reason alone. */
int trace_row_field(struct trace_row *r, enum trace_field f, size_t column, const char *text,
                    struct err *err);
/* The job into the trace; errors have the place in front. */
int trace_row_add(struct trace_row *r, const char *name, struct err *err);
/* The sentence for a trace without arrivals, from the names it has instead. */
int trace_row_no_arrival(const char *name, uint32_t line, const char *const *have, struct err *err);
/* "tennant" is a column of values, but perhaps not meant to be one: a notice where it looks so. */
int trace_row_doubt(struct trace_build *b, const char *column, struct err *err);

/* Decimal seconds, to the nanosecond: no double on the way. False: not a number from 0 to
 * TRACE_MAX_ARRIVAL_S. */
bool trace_seconds_parse(const char *text, int64_t *out_ns);
char *trace_seconds_text(int64_t ns, char *buf); /* the other way; buf of at least 32 bytes */

#endif
