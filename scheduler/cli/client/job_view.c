/* See job_view.h. */
#define _GNU_SOURCE
#include "scheduler/cli/client/job_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/text/text.h"

const char *const job_states[] = { "queued",    "running",  "done", "failed",
				   "cancelled", "rejected", "lost", NULL };

/* ---- reading ---- */

static double number(const struct json *object, const char *key)
{
	return json_number(json_get(object, key), NAN);
}

static const char *string(const struct json *object, const char *key)
{
	return json_string(json_get(object, key), NULL);
}

bool job_id_valid(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n <= 20 && !text[n];
}

static void read_estimate(const struct json *e, struct job_view *out)
{
	out->start_s = number(e, "start_s");
	out->end_s = number(e, "end_s");
	out->end_low_s = number(e, "end_low_s");
	out->end_high_s = number(e, "end_high_s");
	out->late = json_bool(json_get(e, "late"), false);
}

static void read_outcome(const struct json *v, struct job_view *out)
{
	out->wait_s = number(v, "wait_s");
	out->run_s = number(v, "run_s");
	out->response_s = number(v, "response_s");
	out->accuracy = number(v, "accuracy");
	out->exit_code = number(v, "exit_code");
	out->signal = number(v, "signal");
	out->max_rss_mb = number(v, "max_rss_mb");
	out->slack_s = number(v, "slack_s");
	out->outcome = string(v, "slo_outcome");
	out->reason = string(v, "reason");
	out->pid = number(v, "pid");
}

bool job_view_read(const struct json *v, struct job_view *out)
{
	const struct json *progress = json_get(v, "progress"), *waiting = json_get(v, "waiting");
	const char *id = string(v, "job"), *state = string(v, "state");
	bool known = false;

	for (size_t i = 0; state && job_states[i]; i++)
		known |= !strcmp(job_states[i], state);
	if (!id || !job_id_valid(id) || !known)
		return false;
	*out = (struct job_view){ .id = id, .state = state };
	out->type = string(v, "type");
	out->mode = string(v, "mode");
	out->tag = string(v, "tag");
	out->verdict = string(v, "verdict");
	out->policy = string(v, "policy");
	out->model = string(v, "model");
	out->submitted_at = string(v, "submitted_at");
	out->started_at = string(v, "started_at");
	out->ended_at = string(v, "ended_at");
	out->deadline_at = string(v, "deadline_at");
	out->params = json_get(v, "params");
	out->best_effort = json_bool(json_get(v, "best_effort"), false);
	out->may_stop = json_bool(json_get(v, "may_stop"), false);
	out->tenant = string(v, "tenant");
	out->priority = number(v, "priority");
	out->chosen_epochs = number(v, "epochs");
	out->stopped_epoch = number(v, "stopped_epoch");
	out->uid = number(v, "uid");
	out->cpus = number(v, "cpus");
	out->slo_s = number(v, "slo_s");
	out->confidence = number(v, "confidence");
	out->batch = number(v, "batch");
	out->lr = number(v, "lr");
	out->max_memory_mb = number(v, "max_memory_mb");
	out->predicted_s = number(v, "predicted_s");
	out->upper_s = number(v, "upper_s");
	out->predicted_accuracy = number(v, "predicted_accuracy");
	out->waiting_code = string(waiting, "code");
	out->waiting = string(waiting, "message");
	out->epoch = number(progress, "epoch");
	out->epochs = number(progress, "epochs");
	out->epoch_accuracy = number(progress, "accuracy");
	read_estimate(json_get(v, "estimate"), out);
	read_outcome(v, out);
	return true;
}

static bool is(const struct job_view *j, const char *state)
{
	return !strcmp(j->state, state);
}

bool job_view_ended(const struct job_view *j)
{
	return !is(j, "queued") && !is(j, "running");
}

int job_view_exit_code(const struct job_view *j)
{
	double code = j->exit_code;

	if (is(j, "rejected"))
		return 3;
	if (is(j, "done"))
		return code >= 0.0 && code < 256.0 ? (int)code : 0; /* an advised job may not say one */
	if (is(j, "failed") && code >= 1.0 && code < 256.0)
		return (int)code;
	return 1;
}

/* ---- moments ---- */

bool job_moment(const char *rfc3339, double *out_s)
{
	int64_t ns;

	if (!text_utc_parse(rfc3339, &ns))
		return false;
	*out_s = 1e-9 * (double)ns;
	return true;
}

double job_now(void)
{
	return (double)clock_wall_ns() / 1e9;
}

char *job_clock(double s, const char *format, char *buf)
{
	struct tm t;
	time_t whole = fabs(s) < 1e12 ? (time_t)floor(s)
				      : 0; /* also for NaN: 0 shows that it is not a time */

	if (!localtime_r(&whole, &t) || !strftime(buf, JOB_CLOCK, format, &t))
		strcpy(buf, "-");
	return buf;
}

/* "2026-11-16 10:00:00" in local time; a text that is not a time stays as it is. */
static const char *local_time(const char *at, char *buf)
{
	double s;

	return job_moment(at, &s) ? job_clock(s, "%Y-%m-%d %H:%M:%S", buf) : cli_clean(at);
}

/* How long ago; NaN if that is not known. A clock that was set back gives 0, not a negative age. */
static double age_of(const char *at, double now_s)
{
	double s;

	if (!at || !job_moment(at, &s))
		return NAN;
	return now_s > s ? now_s - s : 0.0;
}

/* ---- words ---- */

static char *in_seconds(double s, char *buf)
{
	char t[32];

	if (isnan(s))
		strcpy(buf, "unknown");
	else if (s <= 0.0)
		strcpy(buf, "now");
	else
		snprintf(buf, 40, "in %s", text_seconds(s, t));
	return buf;
}

static double nearer(double s, double age_s)
{
	return s > age_s ? s - age_s : isnan(s) ? NAN : 0.0;
}

char *job_view_end(const struct job_view *j, double age_s, char *buf)
{
	char end[40], low[32], high[32];

	in_seconds(nearer(j->end_s, age_s), end);
	if (nearer(fmax(j->end_s, j->end_high_s), age_s) <= 0.0) /* behind all that was predicted */
		snprintf(buf, JOB_VIEW_SPAN, "any moment");
	else if (isnan(j->end_high_s))
		snprintf(buf, JOB_VIEW_SPAN, "%s", end);
	else if (isnan(j->end_low_s))
		snprintf(buf, JOB_VIEW_SPAN, "%s (at most %s)", end,
			 text_seconds(nearer(j->end_high_s, age_s), high));
	else
		snprintf(buf, JOB_VIEW_SPAN, "%s (%s to %s)", end,
			 text_seconds(nearer(j->end_low_s, age_s), low),
			 text_seconds(nearer(j->end_high_s, age_s), high));
	return buf;
}

static const char *verdict_words(const struct job_view *j)
{
	if (!j->verdict)
		return "";
	return strcmp(j->verdict, "best_effort") ? cli_clean(j->verdict) : "best effort";
}

/* "met, 19.6 s to spare", "missed by 3 s"; empty where there is nothing to say. */
static char *outcome_words(const struct job_view *j, char *buf, size_t size)
{
	char t[32];

	if (!j->outcome)
		buf[0] = '\0';
	else if (!strcmp(j->outcome, "met") && j->slack_s >= 0.0)
		snprintf(buf, size, "met, %s to spare", text_seconds(j->slack_s, t));
	else if (!(j->slack_s < 0.0)) /* it failed in time, or it is not known */
		snprintf(buf, size, "%s", cli_clean(j->outcome));
	else
		snprintf(buf, size, "%s by %s", cli_clean(j->outcome), text_seconds(-j->slack_s, t));
	return buf;
}

/* "exit code 3", "signal 9". */
static char *ending_words(const struct job_view *j, char *buf, size_t size)
{
	if (j->signal > 0.0 && j->signal < 128.0)
		snprintf(buf, size, "ended by signal %d (%s)", (int)j->signal, strsignal((int)j->signal));
	else if (j->exit_code >= 0.0 && j->exit_code < 256.0)
		snprintf(buf, size, "exit code %d", (int)j->exit_code);
	else
		buf[0] = '\0';
	return buf;
}

/* ---- a block ---- */

static void label(struct strbuf *out, const char *name)
{
	strbuf_printf(out, "  %-11s ", name);
}

/* Of a tenant of the configuration; a user in none of them is a tenant of their own, which says nothing
 * new. */
static bool in_tenant(const struct job_view *j)
{
	return j->tenant && strncmp(j->tenant, "uid ", 4) != 0;
}

static void put_params(const struct job_view *j, struct strbuf *out)
{
	char buf[32];

	label(out, "job");
	strbuf_printf(out, "%s", cli_clean(j->type ? j->type : "-"));
	for (const struct json *m = json_first(j->params); m; m = json_next(m)) {
		strbuf_printf(out, " %s=", cli_clean(json_key(m) ? json_key(m) : "?"));
		if (json_type(m) == JSON_NUMBER)
			strbuf_puts(out, text_shortest(json_number(m, NAN), buf));
		else
			strbuf_puts(out, cli_clean(json_string(m, "?")));
	}
	if (!isnan(j->cpus))
		strbuf_printf(out, ", %g %s", j->cpus, j->cpus == 1.0 ? "cpu" : "cpus");
	if (j->mode && strcmp(j->mode, "run"))
		strbuf_printf(out, ", %s", cli_clean(j->mode));
	if (j->tag)
		strbuf_printf(out, ", tag %s", cli_clean(j->tag));
	if (!isnan(j->uid))
		strbuf_printf(out, ", of user %.0f", j->uid);
	if (in_tenant(j))
		strbuf_printf(out, ", tenant %s", cli_clean(j->tenant));
	if (j->priority < 0.0 || j->priority > 0.0)
		strbuf_printf(out, ", priority %g", j->priority);
	strbuf_puts(out, "\n");
}

static void put_moment(struct strbuf *out, const char *name, const char *at, double now_s)
{
	char when[JOB_CLOCK], ago[32];
	double age = age_of(at, now_s);

	if (!at)
		return;
	label(out, name);
	strbuf_puts(out, local_time(at, when));
	if (!isnan(age))
		strbuf_printf(out, ", %s ago", text_seconds(age, ago));
}

static void put_batch(const struct job_view *j, struct strbuf *out)
{
	char buf[32];

	if (isnan(j->batch))
		return;
	label(out, "batch");
	strbuf_printf(out, "%s", text_shortest(j->batch, buf));
	if (!isnan(j->lr))
		strbuf_printf(out, ", learning rate %s", text_shortest(j->lr, buf));
	if (!isnan(j->chosen_epochs))
		strbuf_printf(out, ", %s epochs", text_shortest(j->chosen_epochs, buf));
	if (is(j, "queued"))
		strbuf_puts(out, " (decided again when it starts)");
	else if (j->may_stop && !job_view_ended(j))
		strbuf_puts(out, ", may stop early");
	strbuf_puts(out, "\n");
}

static void put_promise(const struct job_view *j, struct strbuf *out)
{
	char slo[32], a[32], b[32];

	label(out, "objective");
	if (isnan(j->slo_s)) {
		strbuf_puts(out, "none\n");
	} else {
		strbuf_printf(out, "%s", text_seconds(j->slo_s, slo));
		if (!isnan(j->confidence))
			strbuf_printf(out, " at %g %%", 100.0 * j->confidence);
		if (j->verdict)
			strbuf_printf(out, ": %s", verdict_words(j));
		strbuf_puts(out, "\n");
	}
	if (isnan(j->predicted_s))
		return;
	label(out, "predicted");
	strbuf_printf(out, "%s in all", text_seconds(j->predicted_s, a));
	if (!isnan(j->upper_s))
		strbuf_printf(out, ", at most %s", text_seconds(j->upper_s, b));
	if (!isnan(j->predicted_accuracy))
		strbuf_printf(out, ", accuracy %s", cli_number(j->predicted_accuracy, a));
	strbuf_puts(out, " (when it arrived)\n");
}

static void put_live(const struct job_view *j, struct strbuf *out)
{
	char buf[JOB_VIEW_SPAN], number_buf[32];

	if (is(j, "queued")) {
		label(out, "starts");
		strbuf_printf(out, "%s\n", in_seconds(j->start_s, buf));
		if (j->waiting || j->waiting_code) {
			label(out, "waits");
			strbuf_printf(out, "%s\n", cli_clean(j->waiting ? j->waiting : j->waiting_code));
		}
	}
	label(out, "ends");
	strbuf_printf(out, "%s%s\n", job_view_end(j, 0.0, buf),
		      j->late ? ": predicted to miss its objective" : "");
	if (!isnan(j->epoch)) {
		label(out, "progress");
		strbuf_printf(out, "epoch %g", j->epoch);
		if (!isnan(j->epochs))
			strbuf_printf(out, " of %g", j->epochs);
		if (!isnan(j->epoch_accuracy))
			strbuf_printf(out, ", accuracy %s", cli_number(j->epoch_accuracy, number_buf));
		strbuf_puts(out, "\n");
	}
}

static void put_ending(const struct job_view *j, double now_s, struct strbuf *out)
{
	char buf[160], a[32];

	if (j->ended_at && !is(j, "rejected")) {
		put_moment(out, "ended", j->ended_at, now_s);
		if (!isnan(j->run_s))
			strbuf_printf(out, ", ran %s", text_seconds(j->run_s, a));
		if (!isnan(j->response_s))
			strbuf_printf(out, ", %s since it was submitted", text_seconds(j->response_s, a));
		strbuf_puts(out, "\n");
	}
	if (ending_words(j, buf, sizeof buf)[0] || !isnan(j->accuracy) || !isnan(j->max_rss_mb)) {
		const char *comma = buf[0] ? ", " : "";

		label(out, "result");
		strbuf_puts(out, buf);
		if (!isnan(j->accuracy)) {
			strbuf_printf(out, "%saccuracy %s", comma, cli_number(j->accuracy, a));
			comma = ", ";
		}
		if (!isnan(j->max_rss_mb))
			strbuf_printf(out, "%smemory %s MB", comma, cli_number(j->max_rss_mb, a));
		strbuf_puts(out, "\n");
	}
	if (!isnan(j->stopped_epoch)) {
		label(out, "stopped");
		strbuf_printf(out, "after epoch %g, to be in time\n", j->stopped_epoch);
	}
	if (j->outcome) {
		label(out, "outcome");
		strbuf_printf(out, "objective %s\n", outcome_words(j, buf, sizeof buf));
	}
	if (j->reason) {
		label(out, "reason");
		strbuf_printf(out, "%s\n", cli_clean(j->reason));
	}
}

void job_view_block(const struct job_view *j, double now_s, struct strbuf *out)
{
	char a[32];

	strbuf_printf(out, "job %s: %s\n", cli_clean(j->id), cli_clean(j->state));
	put_params(j, out);
	put_moment(out, "submitted", j->submitted_at, now_s);
	if (j->submitted_at)
		strbuf_puts(out, "\n");
	put_promise(j, out);
	put_batch(j, out);
	if (j->started_at) {
		put_moment(out, "started", j->started_at, now_s);
		if (!isnan(j->wait_s))
			strbuf_printf(out, ", waited %s", text_seconds(j->wait_s, a));
		if (is(j, "running") && !isnan(j->pid))
			strbuf_printf(out, ", process %.0f", j->pid);
		strbuf_puts(out, "\n");
	}
	if (job_view_ended(j))
		put_ending(j, now_s, out);
	else
		put_live(j, out);
}

/* ---- a line ---- */

void job_view_line(const struct job_view *j, double age_s, struct strbuf *out)
{
	char buf[JOB_VIEW_SPAN], a[40];

	strbuf_printf(out, "job %s %s", cli_clean(j->id), cli_clean(j->state));
	if (!isnan(j->batch) && !is(j, "rejected"))
		strbuf_printf(out, ", batch %s", text_shortest(j->batch, a));
	if (!isnan(j->chosen_epochs) && !is(j, "rejected"))
		strbuf_printf(out, ", %s epochs", text_shortest(j->chosen_epochs, a));
	if (is(j, "queued"))
		strbuf_printf(out, ", starts %s", in_seconds(nearer(j->start_s, age_s), a));
	if (!job_view_ended(j)) {
		if (!isnan(j->epoch) && !isnan(j->epochs))
			strbuf_printf(out, ", epoch %g of %g", j->epoch, j->epochs);
		strbuf_printf(out, ", ends %s", job_view_end(j, age_s, buf));
		if (j->late)
			strbuf_puts(out, ", predicted to be late");
		return;
	}
	if (!isnan(j->response_s) && !is(j, "rejected"))
		strbuf_printf(out, " after %s", text_seconds(j->response_s, a));
	/* The daemon's reason often is how it ended. */
	if (ending_words(j, buf, sizeof buf)[0] && !(j->reason && strstr(j->reason, buf)))
		strbuf_printf(out, ", %s", buf);
	if (!isnan(j->accuracy))
		strbuf_printf(out, ", accuracy %s", cli_number(j->accuracy, a));
	if (!isnan(j->stopped_epoch))
		strbuf_printf(out, ", stopped after epoch %g", j->stopped_epoch);
	if (j->outcome)
		strbuf_printf(out, ", objective %s", outcome_words(j, buf, sizeof buf));
	if (j->reason)
		strbuf_printf(out, ": %s", cli_clean(j->reason));
}

/* ---- a row ---- */

void job_view_header(struct cli_table *t)
{
	static const char *const name[] = { "job",           "state",   "type", "tenant", "batch",
					    "epochs",        "cpus",    "slo",  "age",    "start",
					    "predicted end", "outcome", "note" };

	for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
		cli_table_add(t, "%s", name[i]);
}

static void add_seconds(struct cli_table *t, double s)
{
	char buf[32];

	cli_table_add(t, "%s", isnan(s) ? "" : text_seconds(s, buf));
}

static void add_note(struct cli_table *t, const struct job_view *j)
{
	char ending[160];

	if (j->late)
		cli_table_add(t, "late%s%s", j->tag ? ", " : "", j->tag ? j->tag : "");
	else if (is(j, "queued") && (j->waiting || j->waiting_code))
		cli_table_add(t, "%s", j->waiting ? j->waiting : j->waiting_code);
	else if (is(j, "running") && !isnan(j->epoch) && !isnan(j->epochs))
		cli_table_add(t, "epoch %g of %g", j->epoch, j->epochs);
	else if (j->reason)
		cli_table_add(t, "%s", j->reason);
	else if (is(j, "failed"))
		cli_table_add(t, "%s", ending_words(j, ending, sizeof ending));
	else if (job_view_ended(j) && !isnan(j->stopped_epoch))
		cli_table_add(t, "stopped after epoch %g", j->stopped_epoch);
	else if (job_view_ended(j) && !isnan(j->accuracy))
		cli_table_add(t, "accuracy %s", cli_number(j->accuracy, ending));
	else
		cli_table_add(t, "%s", j->tag ? j->tag : "");
}

void job_view_row(struct cli_table *t, const struct job_view *j, double age_s, double now_s)
{
	char buf[JOB_VIEW_SPAN];
	bool live = !job_view_ended(j);

	cli_table_add(t, "%s", j->id);
	cli_table_add(t, "%s", j->state);
	cli_table_add(t, "%s", j->type ? j->type : "");
	cli_table_add(t, "%s", in_tenant(j) ? j->tenant : "");
	cli_table_add(t, "%s", isnan(j->batch) ? "" : text_shortest(j->batch, buf));
	cli_table_add(t, "%s", isnan(j->chosen_epochs) ? "" : text_shortest(j->chosen_epochs, buf));
	cli_table_add(t, "%s", isnan(j->cpus) ? "" : text_shortest(j->cpus, buf));
	add_seconds(t, j->slo_s);
	add_seconds(t, age_of(j->submitted_at, now_s));
	cli_table_add(t, "%s", is(j, "queued") ? in_seconds(nearer(j->start_s, age_s), buf) : "");
	cli_table_add(t, "%s", live ? job_view_end(j, age_s, buf) : "");
	if (j->outcome)
		cli_table_add(t, "%s", outcome_words(j, buf, sizeof buf));
	else
		cli_table_add(t, "%s", j->verdict && !strcmp(j->verdict, "best_effort") ? "best effort" : "");
	add_note(t, j);
}
