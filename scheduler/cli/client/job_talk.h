/* What several verbs ask the daemon about a job: one question by id, and following it until it has ended. */
#ifndef SCHEDULER_CLI_CLIENT_JOB_TALK_H
#define SCHEDULER_CLI_CLIENT_JOB_TALK_H

#include <stdbool.h>

#include "scheduler/cli/client/client.h"
#include "scheduler/cli/client/job_view.h"

/* True when every argument is a job id; else what is wrong was said, and the verb ends with 2. */
bool job_ids_check(const struct cli *c);

/* {"op":OP,"job":ID}, and the job object of the reply. *out owns what *out_job borrows. */
int job_ask(struct client *c, const char *op, const char *id, struct json **out, struct job_view *out_job,
            struct client_fault *f);

/* job_ask() for the one id in the arguments, on its own connection: it says what went wrong and returns the
 * exit code. */
int job_ask_once(const struct cli *c, const struct client_params *at, const char *op, struct json **out,
                 struct job_view *out_job);

/* The watched job `id` from its object `now` on, until it has ended: *out_last is the line that said so (to
 * be freed), *out_job its job. NULL, with *out_job = *now, when it had ended already. A line about it on
 * stderr where that is a terminal, unless `quiet`. */
int job_follow(struct client *c, const struct job_view *now, bool quiet, struct json **out_last,
               struct job_view *out_job, struct client_fault *f);

/* The reply without what belongs to the protocol alone ("v", "id", "ok"), as one JSON object on stdout. */
int job_print_reply(const struct cli *c, const struct json *reply);

#endif
