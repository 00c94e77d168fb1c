/* The numbers in what a training command prints: its accuracy and its epochs. One reader for the profiler,
 * the daemon and `postrider init`. A line may be a JSON object, or text such as "epoch 3/10 val_acc=0.93" or
 * "Test accuracy: 93.1%"; or a regular expression says where the accuracy is.
 * Seconds of its phases (common/phases.h) are found by their names, in both.
 *
 * Accuracies are shares of 1. A number with a percent sign is divided by 100, and so are the numbers of a
 * command that prints one above 1: `percent` says that this happened. */
#ifndef SCHEDULER_PROCESS_OUTPUT_LINE_H
#define SCHEDULER_PROCESS_OUTPUT_LINE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/phases.h"

#define OUTPUT_MAX_LINE 65536     /* bytes; longer lines are passed over */
#define OUTPUT_MAX_NAME 128       /* bytes of a name or a path */
#define OUTPUT_FOUND (OUTPUT_MAX_NAME + 16)
#define OUTPUT_MAX_REGEX 1024     /* bytes of a regular expression */
#define OUTPUT_MAX_REGEX_LINE 4096 /* bytes of a line that one is tried on; a longer line has no match */

/* Python keeps lines for a file back until it has 8 kB of them, unless this variable is set: nobody would see
 * an epoch end. */
#define OUTPUT_UNBUFFERED "PYTHONUNBUFFERED"

enum output_scale {
	OUTPUT_AUTO,     /* numbers above 1 are percent, and so are all of that command from then on */
	OUTPUT_FRACTION, /* as they are, except for a percent sign */
	OUTPUT_PERCENT,  /* all are percent */
	OUTPUT_SMALLER,  /* of a loss or a perplexity v, from 0 on, less is better: it is 1 / (1 + v) */
};
extern const char *const output_scale_name[]; /* by it; NULL after the last */

/* Where a command's numbers are. In a design, and in a job type, it is the object "result". */
struct output_spec {
	/* A name in text, a path like "metrics.top1" in JSON. NULL: the usual names of an accuracy, those of
	 * data held out before others; "epoch". */
	char *accuracy, *epoch;
	char *regex;       /* instead of `accuracy`: the first group of its last match in a line */
	char *epoch_regex; /* the same for the epoch */
	enum output_scale scale;
};
void output_spec_release(struct output_spec *s);
/* Is it an extended regular expression with a (group)? ERR_ARG says why not. */
int output_regex_check(const char *regex, struct err *err);

struct output_point {            /* NaN: the line has none */
	double accuracy, epoch;  /* the epoch that has ended, counted from 1 */
	double loss, elapsed_s;
	double batch;            /* of the epoch that has ended; NaN also where the line does not ask */
	bool asks;               /* a JSON line that ends an epoch: the job wants to know how to go on */
};

/* How long the run spent in its phases. In a line that ends an epoch they are those of the epoch and are
 * added up; in another line they are those of the whole run so far. */
struct output_phases {
	unsigned told; /* 1 << each that was */
	double s[N_PHASES];
};

struct output_reader {
	char *accuracy_name, *epoch_name;
	regex_t regex, epoch_regex;
	bool has_regex, has_epoch_regex;
	enum output_scale scale;

	double accuracy;         /* the last one; NaN: none was found */
	double epoch;            /* the latest that ended; NaN: none was found */
	bool percent;            /* a number above 1 was taken as percent */
	char found[OUTPUT_FOUND]; /* where the accuracy was: "val_acc", "JSON accuracy"; "": nowhere */
	int rank;                /* how likely `accuracy` is the one that is meant: see output_line.c */
	double announced;        /* an epoch that was named and has not ended; NaN: none */
	struct output_phases phases;
	double from;             /* what the epochs in text are counted from, 0 or 1; NaN: not known */
	bool named;              /* a number was called an epoch, so that counts without a name are not */
	double told;             /* how many epochs the output says there are, "3/14"; NaN: it does not */
	double epochs;           /* how many there are, if the owner knows and sets it; NaN: not known */
};

int output_reader_init(struct output_reader *r, const struct output_spec *s, struct err *err);
void output_reader_release(struct output_reader *r);
/* Returns false if the line has neither an accuracy nor the end of an epoch. An epoch that is not later than
 * the one before is left out of *out. */
bool output_reader_line(struct output_reader *r, const char *line, size_t len, struct output_point *out);

#endif
