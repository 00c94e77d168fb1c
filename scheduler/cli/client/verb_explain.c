/* `postrider explain`: the decisions made for a job, with all candidates and why they were not chosen, and
 * how the estimate of its end moved. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/client/decision_view.h"
#include "scheduler/cli/client/job_talk.h"

#define ESTIMATES_SHOWN 12 /* the first and the last half of them, unless -v asks for all */

static void put_decision(const struct decision_view *d, const struct job_view *job, struct strbuf *out,
			 bool colour, bool every)
{
	char when[JOB_CLOCK], a[32], b[32];
	double at_s;
	bool start = d->when && !strcmp(d->when, "start");

	strbuf_printf(out, "\ndecided at %s", d->when ? cli_clean(d->when) : "an unknown time");
	if (d->at && job_moment(d->at, &at_s))
		strbuf_printf(out, ", %s", job_clock(at_s, "%Y-%m-%d %H:%M:%S", when));
	if (d->policy)
		strbuf_printf(out, ", policy %s", cli_clean(d->policy));
	if (d->model)
		strbuf_printf(out, ", model %s", cli_clean(d->model));
	if (!isnan(d->took_us))
		strbuf_printf(out, ", in %s", text_seconds(1e-6 * d->took_us, a));
	strbuf_puts(out, "\n");
	if (!isnan(d->slo_s))
		strbuf_printf(out, "limit %s%s\n", text_seconds(d->slo_s, a), start ? " left" : "");
	decision_view_other(d, "", out);
	decision_view_price(d, out);
	decision_view_table(d, out, colour, every);
	alternatives_text(&d->beside, "", out);
	/* At a start no job is refused: a promise that was made is kept as well as possible. */
	if (d->chosen < 0 || job->r.verdict == VERDICT_REJECTED) {
		if (isnan(d->smallest_slo_s))
			strbuf_puts(out, "no limit could have been promised\n");
		else
			strbuf_printf(out, "the shortest limit that could have been promised: %s\n",
				      text_seconds_up(d->smallest_slo_s, b));
		if (!isnan(d->offer.chance)) {
			decision_offer(d, "without a promise: ", out);
			strbuf_puts(out, "\n");
		}
	}
}

/* ---- estimates ---- */

static void add_clock(struct cli_table *t, double s)
{
	char buf[JOB_CLOCK];

	cli_table_add(t, "%s", isnan(s) ? "" : job_clock(s, "%H:%M:%S", buf));
}

static void put_estimate(struct cli_table *t, const struct json *e, double *last_end_s)
{
	double at_s = NAN, end_s, moved_s;
	char buf[32];

	if (!job_moment(json_string(json_get(e, "at"), ""), &at_s))
		at_s = NAN;
	end_s = at_s + json_number(json_get(e, "end_s"), NAN);
	moved_s = end_s - *last_end_s;
	add_clock(t, at_s);
	add_clock(t, at_s + json_number(json_get(e, "start_s"), NAN));
	add_clock(t, end_s);
	add_clock(t, at_s + json_number(json_get(e, "end_low_s"), NAN));
	add_clock(t, at_s + json_number(json_get(e, "end_high_s"), NAN));
	if (isnan(moved_s))
		cli_table_add(t, "%s", "");
	else
		cli_table_add(t, "%s%s", moved_s > 0.0 ? "+" : "", text_seconds(moved_s, buf));
	cli_table_add(t, "%s", json_string(json_get(e, "why"), ""));
	if (!isnan(end_s))
		*last_end_s = end_s;
}

static void put_estimates(const struct json *all, bool every, struct strbuf *out, bool colour)
{
	static const char *const name[] = { "at", "start", "end", "from", "to", "moved", "why", NULL };
	size_t n = json_size(all), i = 0;
	bool cut = !every && n > ESTIMATES_SHOWN;
	double last_end_s = NAN;
	struct cli_table t;

	if (!n)
		return;
	strbuf_puts(out, "\nhow the estimate moved\n");
	cli_table_init(&t, "llllrrl");
	for (size_t k = 0; name[k]; k++)
		cli_table_add(&t, "%s", name[k]);
	for (const struct json *e = json_first(all); e; e = json_next(e), i++) {
		struct cli_table unseen = { .failed = true };

		if (!cut || i < ESTIMATES_SHOWN / 2 || i >= n - ESTIMATES_SHOWN / 2)
			put_estimate(&t, e, &last_end_s);
		else
			put_estimate(&unseen, e, &last_end_s); /* what came next moved from here */
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
	if (cut)
		strbuf_printf(out, "(%zu in the middle left out; -v shows all)\n", n - ESTIMATES_SHOWN);
}

static int explain(const struct cli *c, const struct json *reply, const struct job_view *job)
{
	struct client_fault f;
	struct strbuf out = { 0 };
	struct decision_view d;
	bool colour = cli_colour(c);
	int rc = 0;

	job_view_block(job, job_now(), &out);
	for (const struct json *v = json_first(json_get(reply, "decisions")); v && !rc; v = json_next(v)) {
		if (decision_view_read(v, &d))
			put_decision(&d, job, &out, colour, c->verbose);
		else
			rc = client_bad_reply(&f, "one of its decisions lacks its candidates");
	}
	job_view_steered(job, &out);
	put_estimates(json_get(reply, "estimates"), c->verbose, &out, colour);
	if (rc)
		client_say(&f);
	else
		rc = cli_finish(c, &out);
	strbuf_release(&out);
	return rc;
}

int verb_explain(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	const struct cli_option option[] = { CLIENT_OPTIONS(at), { 0 } };
	const struct cli_usage usage = {
		.verb = "explain",
		.synopsis = "JOB [-v] [--json]",
		.what = "Shows why a job got its batch size and epochs, or why it was rejected: the "
			"decisions at its\n"
			"arrival and at its start, every candidate with its wait, time, bound, accuracy, "
			"chance and\nheadroom, "
			"why it was not chosen, and how the estimate of the end changed. -v shows all "
			"candidates and\n"
			"estimates.",
		.option = option,
		.json = true,
		.min_args = 1,
		.max_args = 1,
		.examples = "  postrider explain 12\n",
	};
	struct json *reply = NULL;
	struct job_view job;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	code = job_ask_once(&c, &at, "explain", &reply, &job);
	if (!code)
		code = c.json ? job_print_reply(&c, reply) : explain(&c, reply, &job);
	json_free(reply);
	return code;
}
