/* `postrider logs`: prints what a job wrote, and follows it while it runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/cli/client/job_log.h"

static int show(const struct cli *c, struct client *client, bool follow, bool raw, uint64_t tail,
		struct client_fault *f)
{
	struct json *reply = NULL, *last = NULL;
	struct job_log log = { .fd = { -1, -1 } };
	struct job_view job;
	int rc = job_log_open(&log, client, c->arg[0], f);

	log.raw = raw;
	if (!rc) {
		json_kv_string(client_begin(client, "watch"), "job", c->arg[0]);
		rc = client_call(client, &reply, f);
	}
	if (!rc && (!job_view_read(json_at(json_get(reply, "jobs"), 0), &job) || strcmp(job.id, c->arg[0])))
		rc = client_bad_reply(f, "the job to watch is not in it");
	if (!rc && tail != UINT64_MAX)
		job_log_tail(&log, tail);
	if (!rc)
		rc = follow ? job_log_follow(&log, client, &job, &last, &job, f) : job_log_copy(&log, f);
	if (!rc && log.fd[0] < 0 && log.fd[1] < 0)
		cli_notice(c, "job %s is %s and has no output yet", c->arg[0], job_state_name[job.r.state]);
	job_log_close(&log);
	json_free(last);
	json_free(reply);
	return rc;
}

int verb_logs(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	uint64_t tail = UINT64_MAX;
	bool follow = false, raw = false;
	const struct cli_option option[] = {
		{ 'f', "follow", CLI_FLAG, NULL, "print new output as it comes, until the job has ended",
		  &follow },
		{ 0, "raw", CLI_FLAG, NULL,
		  "all bytes as they are; otherwise control characters are escaped on a terminal", &raw },
		{ 0, "tail", CLI_COUNT, "N", "begin with the last N lines", &tail },
		CLIENT_OPTIONS(at),
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "logs",
		.synopsis = "[-f] [--tail N] [--raw] JOB",
		.what = "Prints what a job wrote: its standard output to ours, its standard error to ours. "
			"The files\n"
			"belong to the user of the job, and are in the folder jobs/JOB of the daemon's "
			"state.",
		.option = option,
		.min_args = 1,
		.max_args = 1,
		.examples = "  postrider logs -f 12\n",
	};
	struct client *client = NULL;
	struct client_fault f;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!job_ids_check(&c))
		return 2;
	client_catch_signals();
	code = client_open(&at, &client, &f);
	if (!code)
		code = show(&c, client, follow, raw, tail, &f);
	client_close(client);
	return code ? client_say(&f) : 0;
}
