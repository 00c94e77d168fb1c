/* The job object of docs/PROTOCOL.md, written in one place for live jobs and for those read back from the store. */
#ifndef SCHEDULER_STORE_JOB_JSON_H
#define SCHEDULER_STORE_JOB_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/json/json.h"
#include "scheduler/store/store.h"

/* What only the running daemon knows of a job; all zero: nothing. */
struct job_live {
	bool has_estimate;
	double start_s, end_s, end_low_s, end_high_s; /* from now; NaN: not known */
	bool late;
	const char *waiting_code;    /* NULL: it does not wait */
	const char *waiting_message;
	bool has_progress;
	double epoch, epochs, accuracy; /* NaN: not said */
	pid_t pid;                   /* 0: none */
};

void job_json(struct json_writer *w, const struct store_job *j, const struct job_live *live); /* live may be NULL */

/* The pieces it is made of, for other objects of the protocol. */
void json_kv_moment(struct json_writer *w, const char *key, int64_t at_ns); /* 0: null */
/* A value that is JSON already (NULL: null); its line ends become blanks, so that an object stays on its line. */
void json_put_raw(struct json_writer *w, const char *text);

#endif
