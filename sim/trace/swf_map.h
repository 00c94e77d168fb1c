/* From the fields of the Standard Workload Format to jobs of ours: the mapping, read from JSON and checked.
 * configs/traces/swf-map.json is the built-in one; docs/TRACE_FORMAT.md explains every member. */
#ifndef SIM_TRACE_SWF_MAP_H
#define SIM_TRACE_SWF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"
#include "sim/trace/trace.h"

#define SWF_MAP_MAX_BYTES (1 << 20)

enum swf_field {                  /* in the order of the format, from 0 */
	SWF_JOB, SWF_SUBMIT, SWF_WAIT, SWF_RUN, SWF_ALLOCATED, SWF_CPU_TIME, SWF_MEMORY, SWF_REQUESTED,
	SWF_REQUESTED_TIME, SWF_REQUESTED_MEMORY, SWF_STATUS, SWF_USER, SWF_GROUP, SWF_EXECUTABLE, SWF_QUEUE,
	SWF_PARTITION, SWF_PRECEDING, SWF_THINK_TIME,
	SWF_FIELDS,               /* as a choice: none */
};
extern const char *const swf_field_name[SWF_FIELDS + 1]; /* the last is NULL */

enum { SWF_FAILED, SWF_COMPLETED, SWF_CANCELLED, SWF_UNKNOWN, SWF_STATES };

struct swf_values {               /* of one column */
	const char *name;         /* borrowed from the document */
	enum swf_field by;        /* SWF_FIELDS: the same for all */
	const struct json *map;   /* number of the field -> value; NULL: none */
	/* whatever is not in the map is drawn from these by a hash of the field */
	const char **of; size_t n_of;
};

struct swf_map {
	struct json *root;        /* the document, owned */
	char **number; size_t n_numbers, cap_numbers; /* numbers among the values, as text */
	double divisor;           /* of processors */
	uint32_t cap;
	enum swf_field tenant, type; /* SWF_FIELDS: none */
	struct swf_values column[TRACE_MAX_COLUMNS]; size_t n_columns;
	char size[TRACE_MAX_VALUE + 1]; /* column of the size; empty: none */
	double records_per_cpu_second, size_min, size_max;
	int digits;               /* kept of it, so that kinds of jobs stay few */
	double slo_factor;        /* NaN: no limits */
	bool take[SWF_STATES];
};
/* text NULL: the built-in mapping. ERR_FORMAT: "NAME: member: reason". Release after failure too. */
int swf_map_parse(const char *name, const char *text, size_t len, struct swf_map *out, struct err *err);
void swf_map_release(struct swf_map *m);

#endif
