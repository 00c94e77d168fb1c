/* The log of a job that runs: its numbers as they come (output_line.h finds them in a line), and its last
 * words.
 *
 * A log belongs to the user of the job and may be anything: a fifo, a link, gigabytes without a newline. */
#ifndef SCHEDULER_PROCESS_OUTPUT_H
#define SCHEDULER_PROCESS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/strbuf.h"
#include "scheduler/process/output_line.h"

/* The last line of the file at `path`, fit to be shown; "" if there is none. Returns out. */
char *output_last_words(const char *path, char *out, size_t size);
char *job_last_words(const char *dir, char *out, size_t size); /* of the standard error of the job in `dir` */

/* ---- a log that grows ---- */
#define JOB_OUTPUT_MAX_LINE OUTPUT_MAX_LINE
/* bytes; if the reader is further behind, the older ones are skipped */
#define JOB_OUTPUT_MAX_BEHIND (1 << 20)

/* Reads the two logs of a job a bounded piece at a time and keeps none of them: the start of a line that is
 * not complete yet is read again with its rest. Progress bars and loggers write to standard error, so that
 * counts where standard output names no epoch, or no accuracy. */
struct output_log {
	char *path;
	int fd;              /* -1: not open yet, or not to be opened */
	bool unfit;          /* it is not a regular file, and is not looked at again */
	int64_t at;          /* where the next line starts */
	int64_t looked;      /* how far it was looked at, a line that was not complete included */
	bool inside;         /* we are inside a line that is skipped */
	struct output_reader reader;
};

struct job_output {
	struct output_log log[2]; /* standard output, standard error */
	double accuracy, epoch; /* the latest; NaN: none was found */
	double told;         /* how many epochs the output says there are; NaN: it does not */
	double epoch_accuracy; /* that came with it; NaN: none */
	double epoch_loss, epoch_elapsed_s; /* the same */
	int64_t epoch_ns;    /* when its line was written, as far as the file tells: 1970, UTC */
	bool news;           /* `epoch` rose since this was last set to false */
	void (*on_epoch)(void *owner, double epoch, int64_t written_ns); /* each time it rises; may be NULL */
	void *owner;
};

/* spec NULL: the usual names. It is not looked at again. epochs: how many the job has, NaN where that is not
 * known. */
int job_output_init(struct job_output *o, const char *dir, const struct output_spec *spec, double epochs,
                    struct err *err);
/* The same of two files anywhere. */
int job_output_open(struct job_output *o, const char *out_path, const char *err_path,
                    const struct output_spec *spec, double epochs, struct err *err);
void job_output_release(struct job_output *o);

/* Looks at the next piece of each log; `scratch` has JOB_OUTPUT_MAX_LINE + 1 bytes. `ended`: nothing
 * will be added, so the last line needs no newline. Returns the bytes read, at most twice as many; *out_more:
 * there is more to be read right away. */
size_t job_output_read(struct job_output *o, char *scratch, bool ended, bool *out_more);

/* ---- a log as it is now, to be shown ---- */
#define OUTPUT_MAX_POINTS 1000 /* of a curve; of more, every other one is left out */
struct output_curve { struct output_point *point; size_t n, cap; unsigned skip, seen; };
/* Adds every epoch that the two logs have (their last JOB_OUTPUT_MAX_BEHIND bytes). */
int output_curve_read(struct job_output *o, struct output_curve *out, struct err *err);
void output_curve_release(struct output_curve *c);
/* Adds the last `max` bytes of a log of the job in `dir`, from the start of a line. A file with a second name
 * might be somebody else's, whom the job's user may not read: of it nothing is added. */
void output_tail(const char *dir, const char *name, size_t max, struct strbuf *out);

#endif
