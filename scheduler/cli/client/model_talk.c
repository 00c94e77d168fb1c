/* `postrider model list`, `retrain` and `rollback`: the models that the daemon trained. See model_talk.h. */
#include "scheduler/cli/client/model_talk.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/client/job_talk.h"

#define MAX_VERSION 999999999

/* ---- list ---- */

static void add_count(struct cli_table *t, double n)
{
	if (n > 0.0)
		cli_table_add(t, "%.0f", n);
	else
		cli_table_add(t, "%s", "");
}

/* "2026-11-16 10:00:00", in the reader's time zone. */
static void add_moment(struct cli_table *t, const char *at)
{
	char buf[JOB_CLOCK];
	double s;

	cli_table_add(t, "%s", !at ? "" : job_moment(at, &s) ? job_clock(s, "%Y-%m-%d %H:%M:%S", buf) : at);
}

static const char *fate_of(const struct json *m)
{
	if (json_type(json_get(m, "rolled_back_to")) == JSON_NUMBER)
		return "went back";
	if (!json_bool(json_get(m, "accepted"), false))
		return "not taken";
	return json_bool(json_get(m, "kept"), true) ? "taken" : "taken, file removed";
}

static void add_version(struct cli_table *t, const struct json *m, double current)
{
	double p = cli_json_number(m, "p");

	/* The line of a rollback has a number, but no model. */
	bool in_use = cli_json_number(m, "version") == current &&
		      json_type(json_get(m, "rolled_back_to")) != JSON_NUMBER;

	cli_table_add(t, "%s", in_use ? "*" : "");
	cli_table_add(t, "%.0f", cli_json_number(m, "version"));
	add_moment(t, json_string(json_get(m, "created"), NULL));
	cli_table_add(t, "%s", json_string(json_get(m, "reason"), ""));
	add_count(t, cli_json_number(m, "rows"));
	add_count(t, cli_json_number(m, "observations"));
	add_count(t, cli_json_number(m, "tested"));
	cli_table_percent(t, cli_json_number(m, "old_error"));
	cli_table_percent(t, cli_json_number(m, "new_error"));
	if (isnan(p))
		cli_table_add(t, "%s", "");
	else
		cli_table_add(t, "%.3g", p);
	cli_table_add(t, "%s", fate_of(m));
	cli_table_add(t, "%s", json_string(json_get(m, "message"), ""));
	if (in_use)
		cli_table_mark(t);
}

/* type NULL: the configuration's model. */
static void put_versions(const struct cli *c, const struct json *reply, const char *type, struct strbuf *out)
{
	const struct json *all = json_get(reply, "models");
	double current = cli_json_number(reply, "current");
	struct cli_table t;

	cli_table_head(&t, "lrllrrrrrrll", "", "version", "made", "because", "rows", "own runs", "tested",
		       "error before", "error now", "p", "was", "result");
	for (const struct json *m = json_first(all); m; m = json_next(m))
		add_version(&t, m, current);
	if (json_size(all))
		cli_table_print(&t, out, cli_colour(c));
	cli_table_release(&t);
	if (!json_size(all))
		strbuf_puts(out, "the daemon has trained no model yet\n");
	if (current > 0.0)
		strbuf_printf(out, "version %.0f is in use\n", current);
	else if (type && !json_string(json_get(reply, "model"), NULL))
		strbuf_puts(out, "there is no model of such jobs yet\n");
	else
		strbuf_puts(out, "the configuration's model (version 0) is in use\n");
	if (json_bool(json_get(reply, "training"), false))
		strbuf_puts(out, "another one is being trained\n");
}

static int put_list(const struct cli *c, const struct json *reply)
{
	const struct json *types = json_get(reply, "types");
	struct strbuf out = { 0 };
	int code;

	/* Where all types have their own models, there may be no other. */
	if (!json_size(types) || json_size(json_get(reply, "models")) ||
	    json_string(json_get(reply, "model"), NULL))
		put_versions(c, reply, NULL, &out);
	for (const struct json *t = json_first(types); t; t = json_next(t)) {
		const char *name = json_string(json_get(t, "type"), "?");

		strbuf_printf(&out, "%sjobs of type %s:\n", out.len ? "\n" : "", cli_clean(name));
		put_versions(c, t, name, &out);
	}
	code = cli_finish(c, &out);
	strbuf_release(&out);
	return code;
}

int model_list(const struct cli *c, const struct client_params *at)
{
	struct json *reply = NULL;
	int code = client_ask(at, &(struct client_question){ .op = "models", .expects = "models" }, &reply);

	if (!code)
		code = c->json ? job_print_reply(c, reply) : put_list(c, reply);
	json_free(reply);
	return code;
}

/* ---- changes ---- */

/* Prints the daemon's message; `otherwise` if it sent none. */
static int put_outcome(const struct cli *c, const struct json *reply, const char *otherwise)
{
	struct strbuf out = { 0 };
	int code;

	if (c->json)
		return job_print_reply(c, reply);
	if (c->quiet)
		return 0;
	strbuf_printf(&out, "%s\n", cli_clean(json_string(json_get(reply, "message"), otherwise)));
	code = cli_finish(c, &out);
	strbuf_release(&out);
	return code;
}

int model_retrain(const struct cli *c, const struct client_params *at, const char *type)
{
	struct json *reply = NULL;
	int code = client_ask(at, &(struct client_question){ .op = "retrain", .type = type }, &reply);

	if (!code)
		code = put_outcome(c, reply,
				   "training has begun; 'postrider watch' shows when it is done, 'postrider "
				   "model list' shows the result");
	json_free(reply);
	return code;
}

int model_rollback(const struct cli *c, const struct client_params *at, const char *type, const char *version)
{
	struct json *reply = NULL;
	char otherwise[64];
	uint64_t n;
	int code;

	if (!text_uint64(version, &n) || n > MAX_VERSION)
		return cli_usage_error(c,
				       "'%s' is not a version; 'postrider model list' shows them, 0 is the "
				       "configuration's model",
				       version);
	code = client_ask(at, &(struct client_question){ .op = "rollback", .version = &n, .type = type },
			  &reply);
	snprintf(otherwise, sizeof otherwise, "version %llu is in use again", (unsigned long long)n);
	if (!code)
		code = put_outcome(c, reply, n ? otherwise : "the configuration's model is in use again");
	json_free(reply);
	return code;
}
