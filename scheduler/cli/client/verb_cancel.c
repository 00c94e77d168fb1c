/* `postrider cancel`: cancels queued jobs at once and asks running ones to stop. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/template.h"
#include "scheduler/cli/client/job_talk.h"

static void put_json(struct json_writer *w, const char *id, const struct json *reply,
		     const struct client_fault *f)
{
	if (reply) {
		cli_json_copy(w, json_get(reply, "job"));
		return;
	}
	json_open(w, '{');
	json_kv_string(w, "job", id);
	json_kv_open(w, "error", '{');
	json_kv_string(w, "code", f->code);
	json_kv_string(w, "message", f->text);
	json_close(w, '}');
	json_close(w, '}');
}

static void put_line(struct strbuf *out, const struct job_view *j)
{
	if (j->r.state == JOB_RUNNING)
		strbuf_printf(out, "job %s was asked to stop; 'postrider wait %s' waits for its end\n", j->id,
			      j->id);
	else
		strbuf_printf(out, "job %s %s\n", j->id, job_state_name[j->r.state]);
}

int verb_cancel(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	const char *tag = NULL;
	bool all = false;
	const struct cli_option option[] = {
		{ 0, "all", CLI_FLAG, NULL, "all jobs of yours that have not ended", &all },
		{ 0, "tag", CLI_TEXT, "TAG", "those of them with this tag", &tag },
		CLIENT_OPTIONS(at),
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "cancel",
		.synopsis = "JOB... [--json]\n--all | --tag TAG [--json]",
		.what = "Cancels jobs. A queued job is cancelled at once. A running job gets SIGTERM, then "
			"SIGKILL\n"
			"after the daemon's grace period, and is cancelled when it has ended. Only the owner "
			"of a\n"
			"job and admins may cancel it. Every job is tried; the exit code is that of the "
			"first\n"
			"failure.",
		.option = option,
		.json = true,
		.max_args = 10000,
		.examples = "  postrider cancel 12 13\n  postrider cancel --tag sweep-3\n",
	};
	struct client *client = NULL;
	struct strbuf out = { 0 };
	struct client_fault f;
	struct json_writer w;
	struct cli c;
	char **live = NULL;
	int code, first = 0;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!c.n_args == !(all || tag))
		return cli_usage_error(&c, "name jobs, or give --all or --tag TAG");
	if (!job_ids_check(&c))
		return 2;
	code = job_ids_open(&c, &at, tag, "there is no such job of yours", &client, &live);
	if (code)
		return code;
	json_begin(&w, &out, true);
	if (c.json) {
		json_open(&w, '{');
		json_kv_open(&w, "jobs", '[');
	}
	for (size_t i = 0; i < c.n_args; i++) {
		struct json *reply = NULL;
		struct job_view job;

		code = job_ask(client, "cancel", c.arg[i], &reply, &job, &f);
		if (code)
			client_say(&f);
		if (c.json)
			put_json(&w, c.arg[i], reply, &f);
		else if (!code && !c.quiet)
			put_line(&out, &job);
		json_free(reply);
		if (!first)
			first = code;
		if (code &&
		    !f.code[0]) /* the connection is gone, so the other jobs cannot be asked for either */
			break;
	}
	if (c.json) {
		json_close(&w, ']');
		json_close(&w, '}');
		strbuf_puts(&out, "\n");
	}
	code = cli_finish(&c, &out);
	strbuf_release(&out);
	client_close(client);
	argv_free(live);
	return first ? first : code;
}
