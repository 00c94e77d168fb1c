/* `postrider status`: shows one job, with its expected end or its result. */
#include <math.h>

#include "scheduler/cli/client/job_talk.h"

int verb_status(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	const struct cli_option option[] = { CLIENT_OPTIONS(at), { 0 } };
	const struct cli_usage usage = {
		.verb = "status",
		.synopsis = "JOB [--json]",
		.what = "Shows one job: its state, when it is expected to start and end, why it waits, what "
			"was\n"
			"promised, and how it ended. With -q it prints only the state. The exit code is 4 if "
			"there\n"
			"is no such job.",
		.option = option,
		.json = true,
		.min_args = 1,
		.max_args = 1,
		.examples = "  postrider status 12\n"
			    "  test \"$(postrider status -q 12)\" = running\n",
	};
	struct json *reply = NULL;
	struct strbuf out = { 0 };
	struct json_writer w;
	struct job_view job;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	code = job_ask_once(&c, &at, "status", &reply, &job);
	if (code)
		return code;
	if (c.json) {
		json_begin(&w, &out, true);
		cli_json_copy(&w, json_get(reply, "job"));
		strbuf_puts(&out, "\n");
	} else if (c.quiet) {
		strbuf_printf(&out, "%s\n", job_state_name[job.r.state]);
	} else {
		job_view_block(&job, job_now(), &out);
	}
	code = cli_finish(&c, &out);
	strbuf_release(&out);
	json_free(reply);
	return code;
}
