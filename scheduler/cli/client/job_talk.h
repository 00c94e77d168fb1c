/* Questions about a job that several verbs ask, and following a job until it has ended. */
#ifndef SCHEDULER_CLI_CLIENT_JOB_TALK_H
#define SCHEDULER_CLI_CLIENT_JOB_TALK_H

#include <stdbool.h>

#include "scheduler/cli/client/client.h"
#include "scheduler/cli/client/job_view.h"

/* True if every argument is a job id. Otherwise it prints what is wrong, and the verb ends with 2. */
bool job_ids_check(const struct cli *c);

/* Asks {"op":OP,"job":ID} and reads the job object of the reply. *out owns what *out_job borrows. */
int job_ask(struct client *c, const char *op, const char *id, struct json **out, struct job_view *out_job,
            struct client_fault *f);

/* job_ask() for the id in the arguments, on its own connection. It prints what went wrong and returns the
 * exit code. */
int job_ask_once(const struct cli *c, const struct client_params *at, const char *op, struct json **out,
                 struct job_view *out_job);

/* A line on the terminal (standard error), drawn over itself. */
struct job_line {
	bool on;             /* there is a terminal, and it is wanted */
	bool drawn;
	struct strbuf text;
};
struct job_line job_line_begin(bool quiet);
void job_line_draw(struct job_line *l); /* its text, cut to the width */
void job_line_wipe(struct job_line *l);
void job_line_end(struct job_line *l);

/* Follows a watched job, now in the state of `now`, until it has ended. *out_last is the event that told its
 * end (to be freed), *out_job its job. If it had ended already, *out_last is NULL and *out_job = *now. If
 * stderr is a terminal, a line there shows the progress, unless `quiet`. */
int job_follow(struct client *c, const struct job_view *now, bool quiet, struct json **out_last,
               struct job_view *out_job, struct client_fault *f);

/* Opens a connection for the jobs that the arguments name. If they name none, these are all jobs of the user
 * that have not ended (with a tag: those that have it), in `*out_live`, to be freed with argv_free(). `none`
 * is the message if there is no such job. Prints what went wrong and returns the exit code. */
int job_ids_open(struct cli *c, const struct client_params *at, const char *tag, const char *none,
                 struct client **out, char ***out_live);

/* Prints the reply as one JSON object, without the members of the protocol ("v", "id", "ok"). */
int job_print_reply(const struct cli *c, const struct json *reply);

#endif
