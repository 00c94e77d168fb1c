/* `postrider submit`: sends one job or many, prints the decision, and waits for the end if asked. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/client/submit.h"

/* ---- one job, for people ---- */

static char *objective(const struct submit_answer *a, char *buf, size_t size)
{
	double slo_s = a->has_job ? a->job.r.slo_s : a->decision.slo_s;
	double confidence = a->has_job ? a->job.r.confidence : a->decision.confidence;
	char t[32];

	snprintf(buf, size, "%s at %g %%", text_seconds(slo_s, t), 100.0 * confidence);
	return buf;
}

/* Which jobs it waits for. */
static void put_awaited(const struct submit_answer *a, struct strbuf *out)
{
	size_t more = json_size(a->after_more);

	strbuf_printf(out, "waits until job%s %llu", more ? "s" : "", (unsigned long long)a->job.r.after);
	for (const struct json *v = json_first(a->after_more); v; v = json_next(v))
		strbuf_printf(out, "%s%s", json_next(v) ? ", " : " and ", cli_clean(json_string(v, "?")));
	strbuf_printf(out, " %s ended%s; what can be promised is decided then\n", more ? "have" : "has",
		      a->job.r.after_ok ? " well" : "");
}

/* Why it was not taken; NULL: nobody said. */
static const char *why(const struct submit_answer *a)
{
	return a->has_job ? a->job.r.reason : a->reason;
}

static void put_headline(const struct submit_answer *a, bool dry_run, struct strbuf *out)
{
	bool any_objective = !isnan(a->has_job ? a->job.r.slo_s : a->decision.slo_s);
	char want[80];

	objective(a, want, sizeof want);
	if (a->has_job)
		strbuf_printf(out, "job %s ", a->job.id);
	else
		strbuf_puts(out, dry_run ? "it would be " : "");
	if (a->duplicate)
		strbuf_puts(out, "exists already under this key: ");
	switch (a->verdict) {
	case SUBMIT_PROMISED: strbuf_printf(out, "admitted: %s is promised\n", want); break;
	case SUBMIT_BEST_EFFORT:
		if (any_objective && (a->reason || (a->has_job && a->job.r.reason)))
			strbuf_printf(out, "admitted as best effort, without a promise of %s\n", want);
		else if (any_objective)
			strbuf_printf(out, "admitted as best effort: %s cannot be promised\n", want);
		else
			strbuf_puts(out, "admitted as best effort: it has no limit\n");
		break;
	case SUBMIT_CHANCE: strbuf_printf(out, "admitted by chance: %s cannot be promised\n", want); break;
	case SUBMIT_REJECTED:
		if (a->has_decision && isnan(a->decision.smallest_slo_s) && why(a))
			strbuf_printf(out, "rejected: %s\n", cli_clean(why(a)));
		else if (any_objective)
			strbuf_printf(out, "rejected: no batch meets %s\n", want);
		else
			strbuf_puts(out, "rejected: no batch can be run\n");
		break;
	case SUBMIT_WAITING: put_awaited(a, out); break;
	}
}

static void put_taken(const struct submit_answer *a, struct strbuf *out)
{
	const struct candidate_view *k = &a->decision.taken;
	char x[32], y[32];

	strbuf_printf(out, "  batch      %s", text_shortest(k->batch, x));
	if (!isnan(k->lr))
		strbuf_printf(out, ", learning rate %s", text_shortest(k->lr, x));
	strbuf_puts(out, "\n");
	if (!isnan(k->epochs))
		strbuf_printf(out, "  epochs     %s\n", text_shortest(k->epochs, x));
	if (!isnan(k->wait_s))
		strbuf_printf(out, "  start      %s%s%s%s\n", k->wait_s > 0.0 ? "in " : "at once",
			      k->wait_s > 0.0 ? text_seconds(k->wait_s, x) : "",
			      k->behind ? ", behind job " : "", k->behind ? cli_clean(k->behind) : "");
	if (!isnan(k->time_s)) {
		double wait_s = isnan(k->wait_s) ? 0.0 : k->wait_s;
		double upper_s = k->upper_s + (isnan(k->wait_upper_s) ? wait_s : k->wait_upper_s);

		strbuf_printf(out, "  end        in %s", text_seconds(wait_s + k->time_s, x));
		if (!isnan(upper_s))
			strbuf_printf(out, ", at most %s", text_seconds(upper_s, y));
		strbuf_puts(out, "\n");
	}
	if (!isnan(k->headroom_s))
		strbuf_printf(out, "  headroom   %s\n", text_seconds(k->headroom_s, x));
	if (a->verdict == SUBMIT_CHANCE && !isnan(k->chance))
		strbuf_printf(out, "  chance     %s to be in time\n", cli_chance(k->chance, x));
	if (!isnan(k->accuracy))
		strbuf_printf(out, "  accuracy   %s expected\n", text_accuracy(k->accuracy, x));
	if ((a->verdict == SUBMIT_BEST_EFFORT || a->verdict == SUBMIT_CHANCE) && !isnan(a->decision.slo_s) &&
	    !isnan(a->decision.smallest_slo_s))
		strbuf_printf(out, "  shortest   with %s it could be promised\n",
			      text_seconds_up(a->decision.smallest_slo_s, x));
	alternatives_text(&a->decision.beside, "  ", out);
	for (const struct json *b = json_first(a->decision.failing); b; b = json_next(b))
		strbuf_printf(out, "  left out   batch %s: runs with it failed\n",
			      text_shortest(json_number(b, NAN), x));
	if (k->extrapolated) {
		strbuf_puts(out, "  note       ");
		decision_out_of_range(k, out);
		strbuf_puts(out, "\n");
	}
}

static void put_refusal(const struct submit_answer *a, struct strbuf *out)
{
	bool impossible = a->has_decision && decision_view_impossible(&a->decision);
	char up[32];

	if (a->has_decision && !isnan(a->decision.smallest_slo_s))
		strbuf_printf(out, "  the shortest limit that could be promised: %s\n",
			      text_seconds_up(a->decision.smallest_slo_s, up));
	else if (a->has_decision && !impossible && !why(a))
		strbuf_puts(out, "  no limit could be promised at that confidence\n");
	if (a->has_decision)
		alternatives_text(&a->decision.beside, "  ", out);
	if (a->has_decision)
		decision_view_other(&a->decision, "  ", out);
	if (a->has_decision && !isnan(a->decision.offer.chance)) {
		decision_offer(&a->decision, "  without a promise: ", out);
		/* rounded down: by the time it is asked for, the chance may be a little smaller */
		strbuf_printf(out, "; --chance %.2g accepts it\n",
			      fmax(floor(20.0 * a->decision.offer.chance - 0.5) / 20.0, 0.02));
	}
	if (a->has_job)
		strbuf_printf(out, "  'postrider explain %s' shows why no batch size was chosen\n",
			      a->job.id);
	if (!impossible)
		strbuf_puts(out, "  --best-effort accepts it without a promise\n");
}

void submit_answer_put(const struct submit_answer *a, bool dry_run, const struct cli *c, struct strbuf *out)
{
	put_headline(a, dry_run, out);
	if (a->verdict == SUBMIT_REJECTED)
		put_refusal(a, out);
	else if (a->has_decision && a->decision.chosen >= 0)
		put_taken(a, out);
	else if (a->duplicate)
		job_view_line(&a->job, 0.0, out), strbuf_puts(out, "\n");
	/* The daemon accepts a job of a new kind to learn from it. */
	if (a->verdict == SUBMIT_BEST_EFFORT && a->has_job && a->job.r.reason && !a->duplicate)
		strbuf_printf(out, "  note       %s\n", cli_clean(a->job.r.reason));
	else if (a->reason && a->verdict != SUBMIT_REJECTED)
		strbuf_printf(out, "  note       %s\n", cli_clean(a->reason));
	if (a->probe)
		strbuf_printf(out,
			      "  probe      job %s, a short run of this context, which was never measured; "
			      "what it takes corrects the bounds of later jobs\n",
			      cli_clean(a->probe));
	if (dry_run && a->has_decision) {
		strbuf_puts(out, "\n");
		decision_view_table(&a->decision, out, cli_colour(c), c->verbose);
	}
}

/* ---- waiting for it ---- */

/* A job found by its key is not watched by having been submitted. */
static int watch_duplicate(struct client *client, const char *id, struct json **out, struct job_view *job,
			   struct client_fault *f)
{
	int rc;

	json_kv_string(client_begin(client, "watch"), "job", id);
	rc = client_call(client, out, f);
	if (!rc && (!job_view_read(json_at(json_get(*out, "jobs"), 0), job) || strcmp(job->id, id)))
		rc = client_bad_reply(f, "the job to watch is not in it");
	return rc;
}

int submit_print_ended(const struct cli *c, const struct json *reply, const struct json *job)
{
	struct strbuf out = { 0 };
	struct json_writer w;
	int code;

	json_begin(&w, &out, true);
	json_open(&w, '{');
	cli_json_members(&w, reply, (const char *const[]){ "v", "id", "ok", "job", NULL });
	json_put_key(&w, "job");
	cli_json_copy(&w, job);
	json_close(&w, '}');
	strbuf_puts(&out, "\n");
	code = cli_finish(c, &out);
	strbuf_release(&out);
	return code;
}

static int wait_for(const struct cli *c, struct client *client, const struct json *reply,
		    const struct submit_answer *a, struct client_fault *f)
{
	struct json *watched = NULL, *last = NULL;
	struct job_view job = a->job;
	struct strbuf out = { 0 };
	int rc = 0, wrote = 0;

	if (a->duplicate)
		rc = watch_duplicate(client, a->job.id, &watched, &job, f);
	if (!rc)
		rc = job_follow(client, &job, c->quiet, &last, &job, f);
	if (rc == CLIENT_INTERRUPTED)
		fprintf(stderr,
			"postrider: job %s goes on; 'postrider wait %s' waits again, 'postrider cancel %s' "
			"stops it\n",
			a->job.id, a->job.id, a->job.id);
	else if (rc == CLIENT_TIMED_OUT)
		client_fail(f, rc, "--timeout is over and job %s has not ended; it goes on", a->job.id);
	if (rc) {
		client_say(f);
	} else {
		if (c->json) {
			wrote = submit_print_ended(c, reply,
						   last      ? json_get(last, "job")
						   : watched ? json_at(json_get(watched, "jobs"), 0)
							     : json_get(reply, "job"));
		} else if (!c->quiet) {
			job_view_line(&job, 0.0, &out);
			strbuf_puts(&out, "\n");
			wrote = cli_finish(c, &out);
		}
		rc = job_view_exit_code(&job);
	}
	strbuf_release(&out);
	json_free(last);
	json_free(watched);
	return rc ? rc : wrote;
}

/* A limit was given, no promise was made, and that was not asked for. */
static bool is_unpromised(const struct submit_options *o, const struct json *object,
			  const struct submit_answer *a)
{
	bool objective = !isnan(a->has_job ? a->job.r.slo_s : a->decision.slo_s);
	bool asked = o->best_effort || json_bool(json_get(object, "best_effort"), false);

	return objective && !asked && !a->duplicate && a->verdict == SUBMIT_BEST_EFFORT;
}

static int submit_one(const struct cli *c, const struct submit_options *o, struct client *client,
		      const struct json *object)
{
	bool dry_run = o->dry_run || json_bool(json_get(object, "dry_run"), false);
	struct strbuf out = { 0 };
	struct json *reply = NULL;
	struct submit_answer a;
	struct client_fault f;
	int rc;

	submit_request(client, o, object);
	rc = client_call(client, &reply, &f);
	if (!rc)
		rc = submit_answer_read(reply, dry_run, &a, &f);
	if (rc) {
		if (rc == CLIENT_INTERRUPTED)
			fprintf(stderr, "postrider: interrupted before the answer came; 'postrider list "
					"--mine' shows whether the job was accepted\n");
		client_say(&f);
		json_free(reply);
		return rc;
	}
	if (c->quiet && a.has_job && !c->json)
		strbuf_printf(&out, "%s\n", a.job.id);
	else if (!c->quiet && !c->json)
		submit_answer_put(&a, dry_run, c, &out);
	if (c->json && (!o->wait || a.verdict == SUBMIT_REJECTED))
		rc = job_print_reply(c, reply);
	else if (out.len || out.failed)
		rc = cli_finish(c, &out); /* the id is out before the wait */
	if (!rc && a.verdict == SUBMIT_REJECTED)
		rc = CLIENT_REJECTED;
	else if (!rc && o->wait)
		rc = wait_for(c, client, reply, &a, &f);
	else if (!rc && is_unpromised(o, object, &a))
		rc = CLIENT_UNPROMISED;
	strbuf_release(&out);
	json_free(reply);
	return rc;
}

/* ---- the verb ---- */

static int submit(const struct cli *c, const struct submit_options *o)
{
	struct client *client = NULL;
	struct json *object = NULL;
	struct client_fault f;
	struct err err = { 0 };
	int code;

	if (o->file && (json_read_settings(o->file, CLIENT_MAX_REQUEST, &object, &err) ||
			submit_object_check(o->file, object, &err))) {
		json_free(object);
		return cli_fail(&err);
	}
	if (o->wait || o->jsonl || o->array)
		client_catch_signals();
	code = client_open(&o->at, &client, &f);
	if (code)
		client_say(&f);
	else
		code = o->jsonl || o->array ? submit_many(c, o, client, object)
					    : submit_one(c, o, client, object);
	client_close(client);
	json_free(object);
	return code;
}

int verb_submit(int argc, char **argv)
{
	struct submit_options o = SUBMIT_OPTIONS_NONE;
	const struct cli_option option[] = {
		SUBMIT_OPTIONS(o),
		{ 0, "mode", CLI_TEXT, "MODE", "run (the daemon starts it) or advise (you do)", &o.mode },
		{ 0, "file", CLI_TEXT, "JOB.json", "the job as a JSON object; options override it", &o.file },
		{ 0, "jsonl", CLI_TEXT, "FILE", "many jobs, one JSON object per line; - is standard input",
		  &o.jsonl },
		{ 0, "array", CLI_TEXT, "A-B[:STEP]",
		  "many jobs, one for each number; {index} in --set, --tag and\n--key, and in the type's "
		  "command, is the "
		  "number",
		  &o.array },
		{ 0, "wait", CLI_FLAG, NULL, "wait for its end and exit with its exit code", &o.wait },
		CLIENT_OPTIONS(o.at),
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "submit",
		.synopsis = "TYPE [--set K=V,...] [--slo TIME | --deadline MOMENT] [options]\n"
			    "--file JOB.json [options]\n"
			    "--jsonl FILE [options]",
		.what = "Gives a job to the daemon. The daemon chooses the most accurate batch size that "
			"meets the\n"
			"time limit, promises it, and runs the job. If no batch size is fast enough, the "
			"exit code\n"
			"is 3 and the shortest limit that could be promised is printed. Without a limit the "
			"job is\n"
			"accepted as best effort. If it was accepted without the promise that was asked for, "
			"because\n"
			"its type is not known yet or the policy makes none, the exit code is 9, unless "
			"--best-effort\n"
			"was given. With -q only the job's id is printed.",
		.option = option,
		.json = true,
		.max_args = 1,
		.examples =
			"  postrider submit digits --set network=lenet5,epochs=4 --cpus 2 --slo 60s\n"
			"  postrider submit digits --set network=lenet5 --epochs 3..20 --may-stop --slo 5m\n"
			"  id=$(postrider submit digits --slo 5m -q) && postrider wait $id\n"
			"  postrider submit --jsonl jobs.jsonl -q > ids\n"
			"  postrider submit digits --array 1-20 --set seed={index} --retry 2\n"
			"  postrider submit digits --after 12,13:ok --slo 5m\n",
	};
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	o.type = c.n_args ? c.arg[0] : NULL;
	return submit_options_check(&c, &o) ? submit(&c, &o) : 2;
}
