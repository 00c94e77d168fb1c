/* `postrider wait`: waits until jobs have ended; the exit code is that of the job. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/template.h"
#include "scheduler/cli/client/job_talk.h"

/* Watches one job to its end. The connection watches nothing afterwards, so that the next one can be asked
 * for. */
static int wait_for(struct client *client, const struct cli *c, const char *id, struct json_writer *w,
		    int *out_code, struct client_fault *f)
{
	struct json *reply = NULL, *last = NULL, *done = NULL;
	struct job_view now, job;
	struct strbuf line = { 0 };
	int rc;

	json_kv_string(client_begin(client, "watch"), "job", id);
	rc = client_call(client, &reply, f);
	if (rc)
		return rc;
	if (!job_view_read(json_at(json_get(reply, "jobs"), 0), &now) || strcmp(now.id, id))
		rc = client_bad_reply(f, "the job to watch is not in it");
	if (!rc)
		rc = job_follow(client, &now, c->quiet, &last, &job, f);
	if (rc == CLIENT_TIMED_OUT)
		client_fail(f, rc, "--timeout is over and job %s is still %s; it goes on", id,
			    job_state_name[now.r.state]);
	if (!rc) {
		*out_code = job_view_exit_code(&job);
		if (c->json) {
			cli_json_copy(w, last ? json_get(last, "job") : json_at(json_get(reply, "jobs"), 0));
		} else if (!c->quiet) {
			job_view_line(&job, 0.0, &line);
			printf("%s\n", strbuf_text(&line));
			fflush(stdout);
		}
		client_begin(client, "unwatch");
		rc = client_call(client, &done, f);
	}
	strbuf_release(&line);
	json_free(done);
	json_free(last);
	json_free(reply);
	return rc;
}

static int wait_for_all(struct client *client, const struct cli *c, struct json_writer *w)
{
	struct client_fault f;
	int first = 0;

	for (size_t i = 0; i < c->n_args; i++) {
		int code = 0, rc = wait_for(client, c, c->arg[i], w, &code, &f);

		if (rc == CLIENT_INTERRUPTED)
			fprintf(stderr, "postrider: stopped waiting; the jobs go on\n");
		else if (rc)
			client_say(&f);
		if (!first)
			first = rc ? rc : code;
		if (rc && !f.code[0])
			return rc == CLIENT_INTERRUPTED ? rc : first;
	}
	return first;
}

int verb_wait(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	const struct cli_option option[] = { CLIENT_OPTIONS(at), { 0 } };
	const struct cli_usage usage = {
		.verb = "wait",
		.synopsis = "[JOB...] [--timeout TIME] [--json]",
		.what = "Waits until all the jobs have ended and prints how; without a job, until all of "
			"yours\n"
			"have that have not ended yet. The exit code is that of the "
			"job: 1 if\n"
			"a signal ended it, or it was cancelled or lost; 3 if it was rejected. With several "
			"jobs it\n"
			"is the first exit code that is not 0. Ctrl-C stops the waiting, not the jobs.",
		.option = option,
		.json = true,
		.max_args = 10000,
		.examples = "  postrider wait 12 --timeout 10m && echo done\n",
	};
	struct client *client = NULL;
	struct strbuf out = { 0 };
	struct json_writer w;
	struct cli c;
	char **live = NULL;
	int code, wrote = 0;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!job_ids_check(&c))
		return 2;
	client_catch_signals();
	code = job_ids_open(&c, &at, NULL, "no job of yours is queued or running", &client, &live);
	if (code)
		return code;
	json_begin(&w, &out, true);
	json_open(&w, '{');
	json_kv_open(&w, "jobs", '[');
	code = wait_for_all(client, &c, &w);
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(&out, "\n");
	if (c.json)
		wrote = cli_finish(&c, &out);
	strbuf_release(&out);
	client_close(client);
	argv_free(live);
	return code ? code : wrote;
}
