/* What a job says on its standard output: JSON lines with its epoch and its accuracy, by the rules of
 * `postrider profile`. Reads the job's log as it grows, a bounded piece at a time, without holding any of it: the
 * start of a line that is not whole yet is read again with its rest. Used by exec_local.c.
 *
 * The log belongs to the user of the job and may be anything: a fifo, a link, gigabytes without a newline. */
#ifndef SCHEDULER_PROCESS_OUTPUT_H
#define SCHEDULER_PROCESS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

#define JOB_OUTPUT_MAX_LINE 65536   /* bytes; longer lines are passed over */
#define JOB_OUTPUT_MAX_BEHIND (1 << 20) /* bytes; further behind, the older ones are passed over */

struct job_output {
	char *path, *accuracy_path, *epoch_path;
	int fd;              /* -1: not open yet, or not to be opened */
	bool unfit;          /* it is no regular file: not looked at again */
	int64_t at;          /* where the next line starts */
	int64_t looked;      /* how far it was looked at, a line that was not whole included */
	bool inside;         /* of a line that is passed over */

	double accuracy;     /* the last number there; NaN: none */
	double epoch;        /* the latest; NaN: none. One that is not later than the one before is passed over. */
	double epoch_accuracy; /* that came with it; NaN: none */
	int64_t epoch_ns;    /* when its line was written, as far as the file tells: 1970, UTC */
	bool news;           /* `epoch` rose since this was last set to false */
};

/* Paths NULL: "accuracy", "epoch". */
int job_output_init(struct job_output *o, const char *dir, const char *accuracy_path, const char *epoch_path,
                    struct err *err);
void job_output_release(struct job_output *o);

/* Looks at the next piece; `scratch` has JOB_OUTPUT_MAX_LINE + 1 bytes. `ended`: nothing will be added, so a last line
 * needs no newline. Gives the bytes read; *out_more: there is more to be read right away. */
size_t job_output_read(struct job_output *o, char *scratch, bool ended, bool *out_more);

/* The last line of the job's standard error, fit to be shown; "" where there is none. Returns out. */
char *job_last_words(const char *dir, char *out, size_t size);

#endif
