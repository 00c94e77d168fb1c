/* `postrider status`: one job, with what is expected of it or what became of it. */
#include <math.h>

#include "scheduler/cli/client/job_talk.h"

int verb_status(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	const struct cli_option option[] = { CLIENT_OPTIONS(at), { 0 } };
	const struct cli_usage usage = {
		.verb = "status",
		.synopsis = "JOB [--json]",
		.what = "Shows one job: its state, when it is predicted to start and to end (an interval at "
			"its\n"
			"confidence), why it waits, what it was promised, and how it ended. Under -q the "
			"state\n"
			"is printed alone. Exit code 4: there is no such job.",
		.option = option,
		.json = true,
		.min_args = 1,
		.max_args = 1,
		.examples = "  postrider status 12\n"
			    "  test \"$(postrider status -q 12)\" = running\n",
	};
	struct client *client = NULL;
	struct json *reply = NULL;
	struct strbuf out = { 0 };
	struct client_fault f;
	struct json_writer w;
	struct job_view job;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!job_ids_check(&c))
		return 2;
	code = client_open(&at, &client, &f);
	if (!code)
		code = job_ask(client, "status", c.arg[0], &reply, &job, &f);
	if (code) {
		client_say(&f);
	} else {
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
	}
	strbuf_release(&out);
	json_free(reply);
	client_close(client);
	return code;
}
