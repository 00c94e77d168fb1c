/* The folder of one job: everything Postrider knows about a user's command. `init` makes it, `profile FOLDER`
 * measures and trains in it, `run FOLDER` runs the command from it. */
#ifndef SCHEDULER_CLI_JOB_JOB_FOLDER_H
#define SCHEDULER_CLI_JOB_JOB_FOLDER_H

#include <limits.h>
#include <stdbool.h>

#include "common/err.h"
#include "common/strbuf.h"
#include "scheduler/profiler/design.h"

#define JOB_FOLDER_NAME 64 /* bytes of the name of its job type */

struct job_folder {
	char dir[PATH_MAX];                     /* absolute */
	char shown[PATH_MAX];                   /* as the user wrote it */
	char name[JOB_FOLDER_NAME + 1];         /* of the job type */
	char job[PATH_MAX], readme[PATH_MAX];   /* the description; what to do next */
	char table[PATH_MAX], curves[PATH_MAX]; /* what profile measures */
	char model[PATH_MAX], config[PATH_MAX]; /* of train; of the daemon */
	char state[PATH_MAX], log[PATH_MAX];    /* of the daemon */
	char socket[PATH_MAX];
	char shown_epochs[PATH_MAX];            /* the epochs that a user gave last, to `run` */
};

bool job_folder_is(const char *path); /* a folder with a description in it */
/* Finds the names in a folder, which need not exist. The name of the type is in its configuration; `name`:
 * what it will be; NULL: read it. */
int job_folder_open(struct job_folder *f, const char *dir, const char *name, struct err *err);
bool job_folder_has(const char *file); /* is it there, and not empty? */

/* What a command is called: "train" for "python3 ./train.py --epochs 3". */
void job_folder_name(char *const *word, size_t n, char *out);

/* Writes description, configuration and README. `notes`: lines about the trial, for the description. */
struct job_folder_notes {
	char accuracy[256]; /* where the accuracy is; "": nothing is known */
	char time[256];
};
int job_folder_write(const struct job_folder *f, const struct profile_design *d,
                     const struct job_folder_notes *notes, struct err *err);
/* The configuration alone. */
int job_folder_configure(const struct job_folder *f, struct err *err);
/* Has the table runs that the model has not seen? So it is where measuring was killed. */
bool job_folder_untrained(const struct job_folder *f);
/* Trains the model on the tables and configures it. Returns the exit code of `train`. */
int job_folder_train(const struct job_folder *f, bool quiet);
/* The batches of the description, as "16, 32": those that `profile` measured and no run ever ended well with
 * (`failed`), and the others. Both are empty if none failed, or all did. */
void job_folder_batches(const struct job_folder *f, struct strbuf *out_working, struct strbuf *out_failed);
/* The job type as a configuration names it: `"NAME": {...}`. Its model is in the folder, or the daemon
 * trains one from the first run on. */
void job_folder_type(const struct job_folder *f, const char *name, struct strbuf *out);
/* A limit to try, as a user types it: "20s". Returns buf, of 32 bytes. */
char *job_folder_slo(double s, char *buf);

#endif
