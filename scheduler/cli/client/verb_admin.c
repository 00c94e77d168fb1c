/* `postrider reload` and `postrider drain`: for the admins of a daemon. */
#include <math.h>
#include <stdio.h>

#include "scheduler/cli/cli.h"
#include "scheduler/cli/client/job_talk.h"

int verb_reload(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	const struct cli_option option[] = { CLIENT_OPTIONS(at), { 0 } };
	const struct cli_usage usage = {
		.verb = "reload",
		.synopsis = "[--json]",
		.what = "Makes the daemon read its configuration and its model again, as SIGHUP does. If one "
			"of\nthem is wrong, the reason is printed and nothing changes. For admins.",
		.option = option,
		.json = true,
	};
	struct json *reply = NULL;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	code = client_ask(&at, &(struct client_question){ .op = "reload", .expects = "reloaded" }, &reply);
	if (code)
		return code;
	if (c.json)
		code = job_print_reply(&c, reply);
	else if (!c.quiet)
		printf("reloaded; model %s\n", cli_clean(json_string(json_get(reply, "model"), "none")));
	json_free(reply);
	return code;
}

int verb_drain(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	bool off = false, stop = false;
	const struct cli_option option[] = {
		{ 0, "off", CLI_FLAG, NULL, "take jobs again", &off },
		{ 0, "stop", CLI_FLAG, NULL, "and end the daemon when the last running job has ended",
		  &stop },
		CLIENT_OPTIONS(at),
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "drain",
		.synopsis = "[--stop | --off] [--json]",
		.what = "Makes the daemon accept no more jobs and start none. Running jobs go on. For "
			"admins.",
		.option = option,
		.json = true,
	};
	struct json *reply = NULL;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (off && stop)
		return cli_usage_error(&c, "--off and --stop: give one of them");
	code = client_ask(&at,
			  &(struct client_question){ .op = "drain",
						     .flag = off    ? "off"
							     : stop ? "stop"
								    : NULL },
			  &reply);
	if (code)
		return code;
	if (c.json)
		code = job_print_reply(&c, reply);
	else if (!c.quiet)
		printf("%s; %.0f jobs run\n",
		       json_bool(json_get(reply, "draining"), false) ? "draining: no job is taken or started"
								     : "taking jobs",
		       cli_json_number(reply, "running"));
	json_free(reply);
	return code;
}
