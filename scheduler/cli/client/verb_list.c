/* `postrider list`: jobs in a table, newest first, read page by page. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/places.h"
#include "common/text/text.h"
#include "scheduler/cli/client/job_talk.h"
#include "scheduler/cli/client/outcome_view.h"
#include "scheduler/cli/client/when.h"

#define LIST_PAGE 50 /* jobs a reply, so that one stays well below what a line may hold */
#define LIST_LIMIT 100 /* unless --limit or --all says otherwise */

struct options {
	struct client_params at;
	struct cli_list state;
	const char *type, *since, *until, *user;
	bool mine, all, jsonl, outcomes, csv;
	uint64_t limit;
	int64_t since_ns, until_ns; /* 0 and INT64_MAX: no limit */
	uint32_t uid; /* of --user */
};

struct result { /* what the pages are put into */
	const struct cli *c;
	const struct options *o;
	struct strbuf out;
	struct json_writer w;
	struct cli_table table;
	struct outcome_sums sums;
	double now_s;
	uint64_t n;
	char before[24]; /* id of the last job */
	bool more;
	bool past; /* a job before --since was seen: those behind it are older */
};

/* --state may be given several times, and may have several names: checked here, written below. */
static bool states_check(const struct cli *c, const struct cli_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const char *s = list->item[i];

		for (;;) {
			size_t len = strcspn(s, ",");
			bool known = false;
			char one[32], hint[TEXT_HINT];

			snprintf(one, sizeof one, "%.*s", (int)(len < 31 ? len : 31), s);
			for (size_t k = 0; job_state_name[k]; k++)
				known |= !strcmp(job_state_name[k], one);
			if (!known) {
				cli_usage_error(c, "--state: there is no state '%s'%s", one,
						text_hint(one, job_state_name, hint));
				return false;
			}
			if (!s[len])
				break;
			s += len + 1;
		}
	}
	return true;
}

static void put_states(struct json_writer *w, const struct cli_list *list)
{
	char one[32];

	if (!list->n)
		return;
	json_kv_open(w, "state", '[');
	for (size_t i = 0; i < list->n; i++) {
		for (const char *s = list->item[i]; *s;) {
			size_t len = strcspn(s, ",");

			snprintf(one, sizeof one, "%.*s", (int)len, s);
			json_put_string(w, one);
			s += len + (s[len] == ',');
		}
	}
	json_close(w, ']');
}

static int take_job(struct result *r, const struct json *v, struct client_fault *f)
{
	struct job_view job;
	struct json_writer w;

	if (!job_view_read(v, &job))
		return client_bad_reply(f, "an entry of its list is not a job");
	snprintf(r->before, sizeof r->before, "%s", job.id);
	r->past |= job.r.submitted_ns < r->o->since_ns;
	if (job.r.submitted_ns < r->o->since_ns || job.r.submitted_ns > r->o->until_ns ||
	    (r->o->user && job.r.uid != r->o->uid))
		return 0;
	if (r->o->csv) {
		job_csv_row(&job, &r->out);
	} else if (r->c->json) {
		cli_json_copy(&r->w, v);
	} else if (r->o->jsonl) {
		json_begin(&w, &r->out, false);
		cli_json_copy(&w, v);
		strbuf_puts(&r->out, "\n");
	} else if (r->c->quiet) {
		strbuf_printf(&r->out, "%s\n", job.id);
	} else if (r->o->outcomes) {
		outcome_row(&r->table, &job, &r->sums);
	} else {
		job_view_row(&r->table, &job, 0.0, r->now_s);
	}
	r->n++;
	return 0;
}

static int take_page(struct result *r, struct client *client, struct client_fault *f)
{
	const struct options *o = r->o;
	bool filtered = o->user || o->since || o->until;
	uint64_t left = o->all || filtered ? LIST_PAGE : o->limit - r->n;
	char before[sizeof r->before];
	struct json_writer *w = client_begin(client, "list");
	struct json *reply = NULL;
	int rc;

	put_states(w, &o->state);
	if (o->type)
		json_kv_string(w, "type", o->type);
	if (o->mine)
		json_kv_bool(w, "mine", true);
	json_kv_int(w, "limit", left < LIST_PAGE ? (long long)left : LIST_PAGE);
	if (r->before[0])
		json_kv_string(w, "before", r->before);
	memcpy(before, r->before, sizeof before);
	rc = client_call(client, &reply, f);
	if (rc)
		return rc;
	if (json_type(json_get(reply, "jobs")) != JSON_ARRAY)
		rc = client_bad_reply(f, "there is no list of jobs in it");
	for (const struct json *v = json_first(json_get(reply, "jobs"));
	     v && !rc && (o->all || r->n < o->limit); v = json_next(v))
		rc = take_job(r, v, f);
	/* A page without a job cannot lead to a next one. */
	r->more = !rc && json_bool(json_get(reply, "more"), false) && strcmp(before, r->before) && !r->past;
	json_free(reply);
	return rc;
}

static int list(const struct cli *c, const struct options *o, struct client *client, struct client_fault *f)
{
	struct result r = { .c = c, .o = o, .now_s = job_now() };
	int rc;

	if (o->outcomes) {
		outcome_header(&r.table);
	} else {
		cli_table_init(&r.table, JOB_VIEW_ALIGN);
		job_view_header(&r.table);
	}
	json_begin(&r.w, &r.out, true);
	if (c->json) {
		json_open(&r.w, '{');
		json_kv_open(&r.w, "jobs", '[');
	}
	if (o->csv)
		job_csv_header(&r.out);
	do
		rc = take_page(&r, client, f);
	while (!rc && r.more && (o->all || r.n < o->limit));
	if (!rc && c->json) {
		json_close(&r.w, ']');
		json_kv_bool(&r.w, "more", r.more);
		json_close(&r.w, '}');
		strbuf_puts(&r.out, "\n");
	} else if (!rc && !o->jsonl && !o->csv && !c->quiet && r.n) {
		cli_table_print(&r.table, &r.out, cli_colour(c));
		if (o->outcomes)
			outcome_summary(&r.sums, &r.out);
	}
	if (!rc) {
		rc = cli_finish(c, &r.out);
		*f = (struct client_fault){ .exit_code = rc };
		if (!rc && !r.n && !c->json && !o->jsonl && !o->csv)
			cli_notice(c, "no jobs");
		if (!rc && r.more)
			cli_notice(c, "there are more; use --all or --limit N");
	} else {
		client_say(f);
	}
	cli_table_release(&r.table);
	strbuf_release(&r.out);
	return rc;
}

static bool moment(const struct cli *c, const char *option, const char *text, int64_t *out_ns)
{
	if (when_past(text, out_ns))
		return true;
	cli_usage_error(c,
			"--%s %s: a moment such as 2026-11-16T10:00:00Z, a day 2026-11-16, a time 10:30 or a "
			"duration back, 2h",
			option, cli_clean(text));
	return false;
}

static bool user_of(const struct cli *c, const char *name, uint32_t *out)
{
	struct err why = { 0 };
	uid_t uid;

	if (place_user(name, &uid, &why)) {
		cli_usage_error(c, "--user %s: %s", cli_clean(name), why.text);
		return false;
	}
	*out = uid;
	return true;
}

int verb_list(int argc, char **argv)
{
	struct options o = { .at = { .timeout_s = NAN }, .limit = UINT64_MAX, .until_ns = INT64_MAX };
	const struct cli_option option[] = {
		{ 0, "state", CLI_LIST, "STATE,...",
		  "only these states: queued, running, done, failed,\ncancelled, rejected, lost; may be "
		  "repeated",
		  &o.state },
		{ 0, "type", CLI_TEXT, "TYPE", "only jobs of this type", &o.type },
		{ 0, "mine", CLI_FLAG, NULL, "only my jobs", &o.mine },
		{ 0, "since", CLI_TEXT, "WHEN", "submitted at or after: 2026-11-16, 10:30, or 2h ago as 2h",
		  &o.since },
		{ 0, "until", CLI_TEXT, "WHEN", "submitted at or before", &o.until },
		{ 0, "user", CLI_TEXT, "NAME", "only jobs of this user", &o.user },
		{ 0, "csv", CLI_FLAG, NULL, "print comma-separated values, users by name", &o.csv },
		{ 0, "limit", CLI_COUNT, "N", "at most N jobs (default: 100)", &o.limit },
		{ 0, "all", CLI_FLAG, NULL, "all jobs", &o.all },
		{ 0, "outcomes", CLI_FLAG, NULL, "show predictions and promises beside the results",
		  &o.outcomes },
		{ 0, "jsonl", CLI_FLAG, NULL, "print one JSON object per line", &o.jsonl },
		CLIENT_OPTIONS(o.at),
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "list",
		.synopsis = "[--state STATE,...] [--type TYPE] [--mine | --user NAME] [--since WHEN] "
			    "[--until WHEN] "
			    "[--limit N | --all] [--outcomes] [--json | --jsonl | --csv]",
		.what = "Lists jobs, newest first. Jobs that have not ended are shown with their expected "
			"start and\n"
			"end and why they wait. With -q it prints only the ids.",
		.option = option,
		.json = true,
		.examples = "  postrider list --state queued,running\n"
			    "  postrider cancel $(postrider list -q --mine --state queued)\n",
	};
	struct client *client = NULL;
	struct client_fault f;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!states_check(&c, &o.state))
		return 2;
	if (o.jsonl && c.json)
		return cli_usage_error(&c, "--json and --jsonl: give one of them");
	if (o.csv && (o.jsonl || c.json || o.outcomes))
		return cli_usage_error(&c,
				       "--csv has its own columns; leave out --json, --jsonl and --outcomes");
	if ((o.since && !moment(&c, "since", o.since, &o.since_ns)) ||
	    (o.until && !moment(&c, "until", o.until, &o.until_ns)) ||
	    (o.user && !user_of(&c, o.user, &o.uid)))
		return 2;
	if (!o.limit)
		return cli_usage_error(&c, "--limit: at least 1");
	if (o.all && o.limit != UINT64_MAX)
		return cli_usage_error(&c, "--limit and --all: give one of them");
	if (o.limit == UINT64_MAX)
		o.limit = LIST_LIMIT;
	if (o.mine && o.user)
		return cli_usage_error(&c, "--mine and --user: give one of them");
	code = client_open(&o.at, &client, &f);
	code = code ? client_say(&f) : list(&c, &o, client, &f);
	client_close(client);
	return code;
}
