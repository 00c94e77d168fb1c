/* `postrider stats`: promises kept, coverage of the bounds, use of the machine, health of the storage. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/client/job_talk.h"

static void label(struct strbuf *out, const char *name)
{
	strbuf_printf(out, "%-12s ", name);
}

/* "3 queued, 2 running, 40 done": what is not zero. */
static void put_counts(struct strbuf *out, const struct json *object)
{
	const char *comma = "";

	for (const struct json *m = json_first(object); m; m = json_next(m)) {
		const char *name = json_key(m);

		if (!(json_number(m, 0.0) > 0.0) || !name)
			continue;
		strbuf_printf(out, "%s%.0f %s", comma, json_number(m, 0.0),
			      !strcmp(name, "best_effort") ? "best effort"
			      : !strcmp(name, "chance")    ? "by chance"
							   : cli_clean(name));
		comma = ", ";
	}
	strbuf_puts(out, comma[0] ? "\n" : "none\n");
}

static void put_queue(struct strbuf *out, const struct json *q, const struct json *other_load)
{
	double processes = cli_json_number(other_load, "processes");
	char a[32];

	label(out, "machine");
	strbuf_printf(out, "%.0f of %.0f cpus in use, %.0f running", cli_json_number(q, "slots_used"),
		      cli_json_number(q, "slots"), cli_json_number(q, "running"));
	if (cli_json_number(q, "gpus") > 0.0)
		strbuf_printf(out, "; %.0f of %.0f gpus in use", cli_json_number(q, "gpus_used"),
			      cli_json_number(q, "gpus"));
	if (!isnan(cli_json_number(q, "utilisation")))
		strbuf_printf(out, "; used so far: %s", cli_percent(cli_json_number(q, "utilisation"), a));
	strbuf_puts(out, "\n");
	if (processes > 0.0) {
		label(out, "other load");
		strbuf_printf(out, "%.3g processes of other programs use the machine\n", processes);
	}
}

/* What the engine says that the cluster has; absent where none is watched. */
static void put_cluster(struct strbuf *out, const struct json *cluster)
{
	const struct json *others = json_get(cluster, "others");
	const char *error = json_string(json_get(cluster, "error"), NULL);
	char a[32];

	if (!cluster)
		return;
	label(out, "cluster");
	if (isnan(cli_json_number(cluster, "age_s"))) {
		strbuf_printf(out, "not known yet: %s\n", cli_clean(error ? error : "no answer"));
		return;
	}
	strbuf_printf(out, "%s: %.0f nodes", cli_clean(json_string(json_get(cluster, "engine"), "-")),
		      cli_json_number(cluster, "nodes"));
	if (cli_json_number(cluster, "nodes_away") > 0.0)
		strbuf_printf(out, " (%.0f away)", cli_json_number(cluster, "nodes_away"));
	strbuf_printf(out, ", %.0f cpus", cli_json_number(cluster, "cpus"));
	if (cli_json_number(cluster, "gpus") > 0.0)
		strbuf_printf(out, ", %.0f of %.0f GPUs in use", cli_json_number(cluster, "gpus_used"),
			      cli_json_number(cluster, "gpus"));
	strbuf_printf(out, "; others run %.0f jobs on %.0f cpus", cli_json_number(others, "running"),
		      cli_json_number(others, "cpus"));
	if (!isnan(cli_json_number(others, "next_end_s")))
		strbuf_printf(out, ", the next ends within %s",
			      text_seconds(cli_json_number(others, "next_end_s"), a));
	if (cli_json_number(others, "waiting") > 0.0)
		strbuf_printf(out, ", %.0f wait", cli_json_number(others, "waiting"));
	strbuf_puts(out, "\n");
	if (error) {
		label(out, "");
		strbuf_printf(out, "as of %s ago: %s\n", text_seconds(cli_json_number(cluster, "age_s"), a),
			      cli_clean(error));
	}
}

static void put_promises(struct strbuf *out, const struct json *slo)
{
	double met = cli_json_number(slo, "met"), missed = cli_json_number(slo, "missed");
	char a[32];

	label(out, "promises");
	if (!(met + missed > 0.0))
		strbuf_puts(out, "no promised job has ended yet\n");
	else
		strbuf_printf(out, "%.0f of %.0f kept: %s\n", met, met + missed,
			      cli_percent(cli_json_number(slo, "attainment"), a));
}

/* Refused at once, and waiting now. */
static void put_others(struct strbuf *out, const struct json *jobs, const struct json *queue,
		       const struct json *wait)
{
	double refused = cli_json_number(jobs, "rejected"), waiting = cli_json_number(queue, "length");
	char a[32], b[32];

	label(out, "refused");
	strbuf_printf(out, refused > 0.0 ? "%.0f: no batch size was in time\n" : "none\n", refused);
	label(out, "waiting");
	strbuf_printf(out, waiting > 0.0 ? "%.0f" : "none", waiting);
	if (!isnan(cli_json_number(wait, "mean_s")))
		strbuf_printf(out, "; so far a wait was %s on average, 95 %% at most %s",
			      text_seconds(cli_json_number(wait, "mean_s"), a),
			      text_seconds(cli_json_number(wait, "p95_s"), b));
	strbuf_puts(out, "\n");
}

static void put_chances(struct strbuf *out, const struct json *chances)
{
	double met = cli_json_number(chances, "met"), ended = cli_json_number(chances, "ended");

	if (!(ended > 0.0))
		return;
	label(out, "by chance");
	strbuf_printf(out, "%.0f of %.0f met, without a promise\n", met, ended);
}

/* Of interest to who runs the daemon; unless `every`, only what is wrong. */
static void put_health(struct strbuf *out, const struct json *v, bool every)
{
	const struct json *store = json_get(v, "store"), *decision = json_get(v, "decision");
	char a[32], b[32];

	if (!every && !json_bool(json_get(store, "failed"), false))
		return;
	if (cli_json_number(decision, "n") > 0.0) {
		label(out, "decisions");
		strbuf_printf(out, "%.0f, %s on average, 99 %% within %s\n", cli_json_number(decision, "n"),
			      text_seconds(1e-6 * cli_json_number(decision, "mean_us"), a),
			      text_seconds(1e-6 * cli_json_number(decision, "p99_us"), b));
	}
	label(out, "storage");
	if (json_bool(json_get(store, "failed"), false))
		strbuf_puts(out, "FAILED: no job is accepted until it is repaired");
	else
		strbuf_puts(out, "well");
	if (cli_json_number(store, "commits") > 0.0)
		strbuf_printf(out, "; %.0f commits, %s on average, at most %s",
			      cli_json_number(store, "commits"),
			      text_seconds(1e-3 * cli_json_number(store, "mean_commit_ms"), a),
			      text_seconds(1e-3 * cli_json_number(store, "max_commit_ms"), b));
	if (cli_json_number(store, "pending") > 0.0)
		strbuf_printf(out, "; %.0f rows not written yet", cli_json_number(store, "pending"));
	strbuf_puts(out, "\n");
	label(out, "daemon");
	strbuf_printf(out, "up %s, %.0f connections, %.0f MB, policy %s",
		      text_seconds(cli_json_number(v, "uptime_s"), a), cli_json_number(v, "connections"),
		      cli_json_number(v, "rss_mb"), cli_clean(json_string(json_get(v, "policy"), "-")));
	strbuf_printf(out, ", model %s", cli_clean(json_string(json_get(v, "model"), "none")));
	if (cli_json_number(json_get(v, "loop"), "max_block_ms") > 0.0)
		strbuf_printf(out, "; longest turn %s",
			      text_seconds(1e-3 * cli_json_number(json_get(v, "loop"), "max_block_ms"), b));
	strbuf_puts(out, "\n");
}

static void put_coverage(struct strbuf *out, const struct json *all, bool colour)
{
	struct cli_table t;
	char a[32];

	if (!json_size(all))
		return;
	cli_table_head(&t, "rrrr", "confidence", "jobs", "within bound", "share");
	for (const struct json *e = json_first(all); e; e = json_next(e)) {
		cli_table_add(&t, "%s", cli_percent(cli_json_number(e, "confidence"), a));
		cli_table_add(&t, "%.0f", cli_json_number(e, "n"));
		cli_table_add(&t, "%.0f", cli_json_number(e, "inside"));
		cli_table_add(&t, "%s", cli_percent(cli_json_number(e, "share"), a));
	}
	strbuf_puts(out, "\ncoverage of the bounds\n");
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

static void put_types(struct strbuf *out, const struct json *all, bool colour)
{
	struct cli_table t;
	char a[32];

	if (!json_size(all))
		return;
	cli_table_head(&t, "lrrrrr", "type", "jobs", "error (MAPE)", "bias", "limits met", "accuracy");
	for (const struct json *e = json_first(all); e; e = json_next(e)) {
		cli_table_add(&t, "%s", json_string(json_get(e, "type"), "?"));
		cli_table_add(&t, "%.0f", cli_json_number(e, "n"));
		cli_table_add(&t, "%s", cli_percent(cli_json_number(e, "mape"), a));
		cli_table_add(&t, "%s", cli_percent(cli_json_number(e, "bias"), a));
		cli_table_add(&t, "%s", cli_percent(cli_json_number(e, "attainment"), a));
		cli_table_add(&t, "%s", text_accuracy(cli_json_number(e, "mean_accuracy"), a));
	}
	strbuf_puts(out, "\npredictions by type\n");
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

/* A user alone, of no tenant of the configuration: there is nobody to share with. */
static bool lone_user(const struct json *tenants)
{
	const char *name = json_string(json_get(json_first(tenants), "tenant"), "");

	return json_size(tenants) == 1 && !strncmp(name, "uid ", 4);
}

static void put_tenants(struct strbuf *out, const struct json *all, bool colour)
{
	struct cli_table t;
	char a[32];

	if (!json_size(all))
		return;
	cli_table_head(&t, "lrrrrrr", "tenant", "weight", "queued", "running", "cpus in use", "cpu seconds",
		       "standing (cpu s / weight)");
	for (const struct json *e = json_first(all); e; e = json_next(e)) {
		cli_table_add(&t, "%s", json_string(json_get(e, "tenant"), "?"));
		cli_table_add(&t, "%s", text_shortest(cli_json_number(e, "weight"), a));
		cli_table_add(&t, "%.0f", cli_json_number(e, "queued"));
		cli_table_add(&t, "%.0f", cli_json_number(e, "running"));
		cli_table_add(&t, "%.0f", cli_json_number(e, "cpus"));
		cli_table_add(&t, "%.0f", cli_json_number(e, "usage_cpu_s"));
		cli_table_add(&t, "%.0f", cli_json_number(e, "standing"));
	}
	strbuf_puts(out, "\ntenants: the one with the lowest standing is next\n");
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

/* ---- learning ---- */

static void put_alarm(struct strbuf *out, const struct json *drift, const char *of)
{
	char a[32];

	if (!json_bool(json_get(drift, "alarm"), false))
		return;
	label(out, "drift");
	strbuf_printf(out, "%s take %s %s than predicted, for %.0f of %.0f jobs\n", of,
		      cli_percent(0.01 * fabs(cli_json_number(drift, "shift_percent")), a),
		      json_bool(json_get(drift, "slower"), false) ? "longer" : "less",
		      cli_json_number(drift, "since"), cli_json_number(drift, "jobs"));
}

static void put_learning(struct strbuf *out, const struct json *v)
{
	double since = cli_json_number(v, "since_training"), after = cli_json_number(v, "retrain_after");
	const char *last = json_string(json_get(v, "last"), NULL);
	char a[32];

	if (json_type(v) != JSON_OBJECT)
		return;
	label(out, "learning");
	strbuf_printf(out, "%s",
		      json_bool(json_get(v, "adapt"), false) ? "bounds follow the latest jobs"
							     : "bounds are the model's own");
	if (json_bool(json_get(v, "training"), false))
		strbuf_puts(out, "; another model is being trained");
	else if (after > 0.0)
		strbuf_printf(out, "; another model is trained after %.0f more jobs",
			      fmax(after - since, 0.0));
	strbuf_puts(out, "\n");
	if (last) {
		label(out, "");
		strbuf_printf(out, "last training: %s", cli_clean(last));
		if (!isnan(cli_json_number(v, "last_took_s")))
			strbuf_printf(out, " (%s)", text_seconds(cli_json_number(v, "last_took_s"), a));
		strbuf_puts(out, "\n");
	}
	put_alarm(out, json_get(v, "drift"), "all jobs together");
	for (const struct json *m = json_first(json_get(v, "models")); m; m = json_next(m)) {
		const char *model = json_string(json_get(m, "model"), NULL);

		label(out, m == json_first(json_get(v, "models")) ? "own models" : "");
		strbuf_printf(out, "%s: ", cli_clean(json_string(json_get(m, "type"), "?")));
		strbuf_puts(out, model ? cli_clean(model) : "none yet");
		since = cli_json_number(m, "since_training");
		after = cli_json_number(m, "retrain_after");
		if (json_bool(json_get(m, "training"), false))
			strbuf_puts(out, "; another one is being trained");
		else if (after > 0.0)
			strbuf_printf(out, "; %s after %.0f more jobs", model ? "the next" : "the first",
				      fmax(after - since, 0.0));
		strbuf_puts(out, "\n");
	}
	for (const struct json *t = json_first(json_get(v, "types")); t; t = json_next(t)) {
		char of[96];

		snprintf(of, sizeof of, "jobs of type %.64s",
			 cli_clean(json_string(json_get(t, "type"), "?")));
		put_alarm(out, json_get(t, "drift"), of);
	}
}

static void put_kept(struct strbuf *out, const struct json *all, bool colour)
{
	struct cli_table t;
	char a[32];

	if (!json_size(all))
		return;
	cli_table_head(&t, "rrrrr", "confidence", "jobs", "within bound", "share", "lately");
	for (const struct json *e = json_first(all); e; e = json_next(e)) {
		cli_table_add(&t, "%s", cli_percent(cli_json_number(e, "confidence"), a));
		cli_table_add(&t, "%.0f", cli_json_number(e, "n"));
		cli_table_add(&t, "%.0f", cli_json_number(e, "kept"));
		cli_table_add(&t, "%s", cli_percent(cli_json_number(e, "share"), a));
		cli_table_add(&t, "%s", cli_percent(cli_json_number(e, "recent_share"), a));
	}
	strbuf_puts(out, "\nrun times within their bounds\n");
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

static int stats(const struct cli *c, const struct json *v)
{
	struct strbuf out = { 0 };
	bool colour = cli_colour(c);
	const struct json *kept;
	int code;

	put_promises(&out, json_get(v, "slo"));
	put_chances(&out, json_get(v, "by_chance"));
	put_others(&out, json_get(v, "jobs"), json_get(v, "queue"), json_get(v, "wait"));
	label(&out, "jobs");
	put_counts(&out, json_get(v, "jobs"));
	label(&out, "submitted");
	put_counts(&out, json_get(v, "submissions"));
	put_queue(&out, json_get(v, "queue"), json_get(v, "outside"));
	put_cluster(&out, json_get(v, "cluster"));
	put_health(&out, v, c->verbose);
	put_learning(&out, json_get(v, "learning"));
	kept = json_get(json_get(v, "learning"), "kept");
	if (c->verbose || !json_size(kept)) /* else it says the same, without what was so lately */
		put_coverage(&out, json_get(v, "coverage"), colour);
	put_kept(&out, kept, colour);
	put_types(&out, json_get(v, "types"), colour);
	if (c->verbose || !lone_user(json_get(v, "tenants")))
		put_tenants(&out, json_get(v, "tenants"), colour);
	code = cli_finish(c, &out);
	strbuf_release(&out);
	return code;
}

int verb_stats(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	const struct cli_option option[] = { CLIENT_OPTIONS(at), { 0 } };
	const struct cli_usage usage = {
		.verb = "stats",
		.synopsis = "[-v] [--json]",
		.what = "Shows how well the daemon works: promises kept, how often the bounds held at "
			"each\n"
			"confidence, the error of predictions by job type, the queue, the tenants that share "
			"the\n"
			"machine, what was learned from the jobs, and with -v (or where it failed) the "
			"health of the "
			"storage.",
		.option = option,
		.json = true,
		.examples = "  postrider stats --json\n",
	};
	struct json *reply = NULL;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	code = client_ask(&at, &(struct client_question){ .op = "stats", .expects = "slo" }, &reply);
	if (!code)
		code = c.json ? job_print_reply(&c, reply) : stats(&c, reply);
	json_free(reply);
	return code;
}
