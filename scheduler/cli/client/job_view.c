/* See job_view.h. */
#define _GNU_SOURCE
#include "scheduler/cli/client/job_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/text/text.h"

/* ---- reading ---- */

bool job_id_valid(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n <= 20 && !text[n];
}

bool job_view_read(const struct json *v, struct job_view *out)
{
	*out = (struct job_view){ .id = json_string(json_get(v, "job"), NULL),
				  .params = json_get(v, "params") };
	return job_json_read(v, &out->r, &out->t, &out->live);
}

bool job_view_ended(const struct job_view *j)
{
	return !job_state_live(j->r.state);
}

int job_view_exit_code(const struct job_view *j)
{
	int code = j->r.exit_code;

	if (j->r.state == JOB_REJECTED)
		return 3;
	if (j->r.state == JOB_DONE)
		return code >= 0 && code < 256 ? code : 0; /* an advised job may not say one */
	if (j->r.state == JOB_FAILED && code >= 1 && code < 256)
		return code;
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

/* How long ago; NaN where that is not known. A clock that was set back a little gives 0, not a negative
 * age. */
static double age_of(int64_t at_ns, double now_s)
{
	double s = 1e-9 * (double)at_ns;

	return at_ns == 0 ? NAN : now_s > s ? now_s - s : 0.0;
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

	in_seconds(nearer(j->live.end_s, age_s), end);
	if (nearer(fmax(j->live.end_s, j->live.end_high_s), age_s) <= 0.0) /* behind all that was predicted */
		snprintf(buf, JOB_VIEW_SPAN, "any moment");
	else if (isnan(j->live.end_high_s))
		snprintf(buf, JOB_VIEW_SPAN, "%s", end);
	else if (isnan(j->live.end_low_s))
		snprintf(buf, JOB_VIEW_SPAN, "%s (at most %s)", end,
			 text_seconds(nearer(j->live.end_high_s, age_s), high));
	else
		snprintf(buf, JOB_VIEW_SPAN, "%s (%s to %s)", end,
			 text_seconds(nearer(j->live.end_low_s, age_s), low),
			 text_seconds(nearer(j->live.end_high_s, age_s), high));
	return buf;
}

void job_view_progress(const struct job_view *j, double age_s, struct strbuf *out)
{
	char t[32];

	if (job_view_ended(j) || isnan(j->live.epoch))
		return;
	strbuf_printf(out, "epoch %g", j->live.epoch);
	if (!isnan(j->live.epochs))
		strbuf_printf(out, " of %g", j->live.epochs);
	if (!isnan(j->live.end_s))
		strbuf_printf(out, ", %s left", text_seconds(nearer(j->live.end_s, age_s), t));
	if (!isnan(j->live.end_high_s) && !isnan(j->r.confidence))
		strbuf_printf(out, ", at most %s at %g %%",
			      text_seconds(nearer(j->live.end_high_s, age_s), t), 100.0 * j->r.confidence);
}

/* Seconds from now to the limit, negative once it is over. */
static double limit_in_s(const struct job_view *j, double now_s)
{
	return 1e-9 * (double)j->r.submitted_ns + j->r.slo_s - now_s;
}

enum job_outlook job_view_outlook(const struct job_view *j, double age_s, double now_s)
{
	double left_s = limit_in_s(j, now_s);

	if (j->r.state != JOB_RUNNING || j->r.verdict == VERDICT_PROMISED || isnan(left_s) ||
	    isnan(j->live.epoch) || isnan(j->live.end_low_s) || isnan(j->live.end_high_s))
		return OUTLOOK_NONE;
	if (nearer(j->live.end_high_s, age_s) <= left_s)
		return OUTLOOK_HOLDS;
	/* A start-up may be in the first epoch, so that it makes too much of the others. */
	return nearer(j->live.end_low_s, age_s) > left_s && j->live.epoch >= 2.0 ? OUTLOOK_MISSED
										 : OUTLOOK_OPEN;
}

/* As many epochs as end in time at its confidence; epochs are alike. */
static double epochs_in_time(const struct job_view *j, double high_s, double left_s)
{
	double more = floor((j->live.epochs - j->live.epoch) * left_s / high_s);

	return j->live.epoch + fmax(more, 0.0);
}

void job_view_outlook_put(const struct job_view *j, double age_s, double now_s, struct strbuf *out)
{
	static const char *const will[] = { "", "will hold", "may hold or not", "will not hold" };
	enum job_outlook o = job_view_outlook(j, age_s, now_s);
	double left_s = limit_in_s(j, now_s), high_s = nearer(j->live.end_high_s, age_s), epochs;
	char slo[32], t[32], u[32];

	if (o == OUTLOOK_NONE)
		return;
	strbuf_printf(out, "the limit of %s %s: it takes %s, at most %s at %g %%",
		      text_seconds(j->r.slo_s, slo), will[o],
		      text_seconds(fmax(j->r.slo_s - left_s + nearer(j->live.end_s, age_s), 0.0), t),
		      text_seconds(j->r.slo_s - left_s + high_s, u), 100.0 * j->r.confidence);
	if (o == OUTLOOK_HOLDS)
		return;
	epochs = epochs_in_time(j, high_s, left_s);
	if (left_s > 0.0 && epochs < j->live.epochs)
		strbuf_printf(out, "; %g epochs would be in time, or --slo %s for all %g", epochs,
			      cli_slo_up(j->r.slo_s - left_s + high_s, t), j->live.epochs);
	else
		strbuf_printf(out, "; --slo %s would hold", cli_slo_up(j->r.slo_s - left_s + high_s, t));
}

static const char *verdict_words(const struct job_view *j)
{
	switch (j->r.verdict) {
	case VERDICT_BEST_EFFORT: return "best effort";
	case VERDICT_CHANCE: return "by chance, not promised";
	case VERDICT_WAITING: return "not decided yet";
	default: return job_verdict_name[j->r.verdict];
	}
}

/* "met, 19.6 s to spare", "missed by 3 s"; empty where there is nothing to say. */
static char *outcome_words(const struct job_view *j, char *buf, size_t size)
{
	char t[32];

	if (!j->r.slo_outcome)
		buf[0] = '\0';
	else if (j->r.slo_outcome == SLO_MET && j->t.slack_s >= 0.0)
		snprintf(buf, size, "met, %s to spare", text_seconds(j->t.slack_s, t));
	else if (!(j->t.slack_s < 0.0)) /* it failed in time, or it is not known */
		snprintf(buf, size, "%s", slo_outcome_name[j->r.slo_outcome]);
	else
		snprintf(buf, size, "%s by %s", slo_outcome_name[j->r.slo_outcome],
			 text_seconds(-j->t.slack_s, t));
	return buf;
}

/* "exit code 3", "signal 9". */
static char *ending_words(const struct job_view *j, char *buf, size_t size)
{
	if (j->r.exit_signal > 0 && j->r.exit_signal < 128)
		snprintf(buf, size, "ended by signal %d (%s)", j->r.exit_signal, strsignal(j->r.exit_signal));
	else if (j->r.exit_code >= 0 && j->r.exit_code < 256)
		snprintf(buf, size, "exit code %d", j->r.exit_code);
	else
		buf[0] = '\0';
	return buf;
}

/* Who ended it, if it was cancelled. */
static const char *reason_words(const struct job_view *j)
{
	if (!strcmp(j->r.reason, "cancelled"))
		return job_view_ended(j) ? "on request" : "it is being stopped on request";
	if (!strcmp(j->r.reason, "no_chance"))
		return "given up by the daemon: it had no chance any more to be in time";
	return cli_clean(j->r.reason);
}

/* ---- a block ---- */

static void label(struct strbuf *out, const char *name)
{
	strbuf_printf(out, "  %-11s ", name);
}

/* Of a tenant of the configuration; a user in none of them is a separate tenant, which says nothing new. */
static bool in_tenant(const struct job_view *j)
{
	return j->r.tenant && strncmp(j->r.tenant, "uid ", 4) != 0;
}

static void put_params(const struct job_view *j, struct strbuf *out)
{
	char user[64];
	char buf[32];

	label(out, "job");
	strbuf_printf(out, "%s", cli_clean(j->r.type ? j->r.type : "-"));
	for (const struct json *m = json_first(j->params); m; m = json_next(m)) {
		strbuf_printf(out, " %s=", cli_clean(json_key(m) ? json_key(m) : "?"));
		if (json_type(m) == JSON_NUMBER)
			strbuf_puts(out, text_shortest(json_number(m, NAN), buf));
		else
			strbuf_puts(out, cli_clean(json_string(m, "?")));
	}
	if (j->r.cpus)
		strbuf_printf(out, ", %u %s", j->r.cpus, j->r.cpus == 1 ? "cpu" : "cpus");
	if (j->r.gpus)
		strbuf_printf(out, ", %u %s", j->r.gpus, j->r.gpus == 1 ? "gpu" : "gpus");
	if (j->r.devices)
		strbuf_printf(out, " (%s)", cli_clean(j->r.devices));
	if (j->r.mode && strcmp(j->r.mode, "run"))
		strbuf_printf(out, ", %s", cli_clean(j->r.mode));
	if (j->r.tag)
		strbuf_printf(out, ", tag %s", cli_clean(j->r.tag));
	if (j->r.uid != (uid_t)-1)
		strbuf_printf(out, ", of user %s", job_user(j->r.uid, user, sizeof user));
	if (in_tenant(j))
		strbuf_printf(out, ", tenant %s", cli_clean(j->r.tenant));
	if (j->r.priority)
		strbuf_printf(out, ", priority %d", j->r.priority);
	if (!isnan(j->r.array_index))
		strbuf_printf(out, ", index %.0f", j->r.array_index);
	if (j->r.after)
		strbuf_printf(out, ", after job %llu%s", (unsigned long long)j->r.after,
			      j->r.after_ok ? " ended well" : "");
	if (j->r.retry)
		strbuf_printf(out, ", attempt %d of %d", j->r.attempt + 1, j->r.retry + 1);
	strbuf_puts(out, "\n");
}

static void put_moment(struct strbuf *out, const char *name, int64_t at_ns, double now_s)
{
	char when[JOB_CLOCK], ago[32];

	label(out, name);
	strbuf_printf(out, "%s, %s ago", job_clock(1e-9 * (double)at_ns, "%Y-%m-%d %H:%M:%S", when),
		      text_seconds(age_of(at_ns, now_s), ago));
}

#define FOR_OTHERS " for other jobs"

/* It ended early because its time was worth more to other jobs. */
static bool gave_back(const struct job_view *j)
{
	return !isnan(j->r.stopped_epoch) && j->r.reason && !strcmp(j->r.reason, "gave_back");
}

static void put_batch(const struct job_view *j, struct strbuf *out)
{
	char buf[32];

	if (isnan(j->r.batch))
		return;
	label(out, "batch");
	strbuf_printf(out, "%s", text_shortest(j->r.batch, buf));
	if (!isnan(j->r.lr))
		strbuf_printf(out, ", learning rate %s", text_shortest(j->r.lr, buf));
	if (!isnan(j->r.epochs))
		strbuf_printf(out, ", %s epochs", text_shortest(j->r.epochs, buf));
	if (j->r.state == JOB_QUEUED)
		strbuf_puts(out, " (decided again when it starts)");
	else if (j->r.may_stop && !job_view_ended(j))
		strbuf_puts(out, ", may stop early");
	strbuf_puts(out, "\n");
}

static void put_promise(const struct job_view *j, struct strbuf *out)
{
	char slo[32], a[32], b[32];

	label(out, "limit");
	if (isnan(j->r.slo_s)) {
		strbuf_puts(out, "none\n");
	} else {
		strbuf_printf(out, "%s", text_seconds(j->r.slo_s, slo));
		if (!isnan(j->r.confidence))
			strbuf_printf(out, " at %g %%", 100.0 * j->r.confidence);
		if (j->r.verdict)
			strbuf_printf(out, ": %s", verdict_words(j));
		strbuf_puts(out, "\n");
	}
	if (isnan(j->r.predicted_s))
		return;
	label(out, "predicted");
	strbuf_printf(out, "%s in all", text_seconds(j->r.predicted_s, a));
	if (!isnan(j->r.upper_s))
		strbuf_printf(out, ", at most %s", text_seconds(j->r.upper_s, b));
	if (!isnan(j->r.predicted_accuracy))
		strbuf_printf(out, ", accuracy %s", text_accuracy(j->r.predicted_accuracy, a));
	strbuf_puts(out, " (when it arrived)\n");
}

static void put_live(const struct job_view *j, double now_s, struct strbuf *out)
{
	char buf[JOB_VIEW_SPAN], number_buf[32];

	if (j->r.state == JOB_QUEUED) {
		label(out, "starts");
		strbuf_printf(out, "%s\n", in_seconds(j->live.start_s, buf));
	}
	if (j->live.waiting_message || j->live.waiting_code) {
		label(out, "waits");
		strbuf_printf(
			out, "%s\n",
			cli_clean(j->live.waiting_message ? j->live.waiting_message : j->live.waiting_code));
	}
	label(out, "ends");
	strbuf_printf(out, "%s%s\n", job_view_end(j, 0.0, buf),
		      j->live.late ? ": predicted to miss its limit" : "");
	if (!isnan(j->live.epoch)) {
		label(out, "progress");
		strbuf_printf(out, "epoch %g", j->live.epoch);
		if (!isnan(j->live.epochs))
			strbuf_printf(out, " of %g", j->live.epochs);
		if (!isnan(j->live.accuracy))
			strbuf_printf(out, ", accuracy %s", text_accuracy(j->live.accuracy, number_buf));
		if (!isnan(j->live.final_accuracy))
			strbuf_printf(out, ", %s expected at its end",
				      text_accuracy(j->live.final_accuracy, number_buf));
		strbuf_puts(out, "\n");
	}
	if (job_view_outlook(j, 0.0, now_s)) {
		label(out, "outlook");
		job_view_outlook_put(j, 0.0, now_s, out);
		strbuf_puts(out, "\n");
	}
}

/* A model of accuracy cannot learn from it, and the user should know. */
static bool without_accuracy(const struct job_view *j)
{
	return j->r.state == JOB_DONE && isnan(j->r.accuracy) && isnan(j->r.stopped_epoch);
}
#define NO_ACCURACY "no accuracy found in its output"

static void put_ending(const struct job_view *j, double now_s, struct strbuf *out)
{
	char buf[160], a[32];

	if (j->r.ended_ns && j->r.state != JOB_REJECTED) {
		put_moment(out, "ended", j->r.ended_ns, now_s);
		if (!isnan(j->t.run_s))
			strbuf_printf(out, ", ran %s", text_seconds(j->t.run_s, a));
		if (!isnan(j->t.response_s))
			strbuf_printf(out, ", %s since it was submitted", text_seconds(j->t.response_s, a));
		strbuf_puts(out, "\n");
	}
	if (ending_words(j, buf, sizeof buf)[0] || !isnan(j->r.accuracy) || !isnan(j->r.max_rss_mb) ||
	    without_accuracy(j)) {
		const char *comma = buf[0] ? ", " : "";

		label(out, "result");
		strbuf_puts(out, buf);
		if (!isnan(j->r.accuracy)) {
			strbuf_printf(out, "%saccuracy %s", comma, text_accuracy(j->r.accuracy, a));
			comma = ", ";
		} else if (without_accuracy(j)) {
			strbuf_printf(out, "%s" NO_ACCURACY, comma);
			comma = ", ";
		}
		if (!isnan(j->r.max_rss_mb))
			strbuf_printf(out, "%smemory %s MB", comma, cli_short(j->r.max_rss_mb, a));
		strbuf_puts(out, "\n");
	}
	if (!isnan(j->r.stopped_epoch)) {
		label(out, "stopped");
		strbuf_printf(out, "after epoch %g, %s\n", j->r.stopped_epoch,
			      gave_back(j) ? "because its time was worth more to other jobs"
					   : "to be in time");
	}
	if (j->r.slo_outcome) {
		label(out, "outcome");
		strbuf_printf(out, "limit %s\n", outcome_words(j, buf, sizeof buf));
	}
	if (j->r.reason && !gave_back(j)) {
		label(out, "reason");
		strbuf_printf(out, "%s\n", reason_words(j));
	}
}

void job_view_block(const struct job_view *j, double now_s, struct strbuf *out)
{
	char a[32];

	strbuf_printf(out, "job %s: %s\n", cli_clean(j->id), job_state_name[j->r.state]);
	put_params(j, out);
	if (j->r.submitted_ns) {
		put_moment(out, "submitted", j->r.submitted_ns, now_s);
		strbuf_puts(out, "\n");
	}
	put_promise(j, out);
	put_batch(j, out);
	if (j->r.started_ns) {
		put_moment(out, "started", j->r.started_ns, now_s);
		if (!isnan(j->t.wait_s))
			strbuf_printf(out, ", waited %s", text_seconds(j->t.wait_s, a));
		if (j->r.state == JOB_RUNNING && j->live.pid)
			strbuf_printf(out, ", process %d", (int)j->live.pid);
		strbuf_puts(out, "\n");
	}
	if (job_view_ended(j))
		put_ending(j, now_s, out);
	else
		put_live(j, now_s, out);
}

/* ---- a line ---- */

double job_view_share(const struct job_view *j, double age_s, double now_s)
{
	double left_s = nearer(j->live.end_s, age_s), behind_s = age_of(j->r.started_ns, now_s);

	if (j->r.state != JOB_RUNNING)
		return NAN;
	if (!isnan(left_s) && behind_s + left_s > 0.0)
		return behind_s / (behind_s + left_s);
	return j->live.epochs > 0.0 ? j->live.epoch / j->live.epochs : NAN;
}

void job_view_result(const struct job_view *j, bool brief, struct strbuf *out)
{
	bool well = brief && j->r.state == JOB_DONE && j->r.exit_code == 0;
	char buf[JOB_VIEW_SPAN], a[40];

	if (!isnan(j->t.response_s) && j->r.state != JOB_REJECTED)
		strbuf_printf(out, " after %s", text_seconds(j->t.response_s, a));
	/* The daemon's reason often is how it ended. */
	if (!well && ending_words(j, buf, sizeof buf)[0] && !(j->r.reason && strstr(j->r.reason, buf)))
		strbuf_printf(out, ", %s", buf);
	if (!isnan(j->r.accuracy))
		strbuf_printf(out, ", accuracy %s", text_accuracy(j->r.accuracy, a));
	else if (without_accuracy(j))
		strbuf_puts(out, ", " NO_ACCURACY);
	if (!isnan(j->r.stopped_epoch))
		strbuf_printf(out, ", stopped after epoch %g%s", j->r.stopped_epoch,
			      gave_back(j) ? FOR_OTHERS : "");
	if (j->r.slo_outcome)
		strbuf_printf(out, ", limit %s", outcome_words(j, buf, sizeof buf));
	if (j->r.reason && !gave_back(j))
		strbuf_printf(out, ": %s", reason_words(j));
}

void job_view_line(const struct job_view *j, double age_s, struct strbuf *out)
{
	char buf[JOB_VIEW_SPAN], a[40];

	strbuf_printf(out, "job %s %s", cli_clean(j->id), job_state_name[j->r.state]);
	if (!isnan(j->r.batch) && j->r.state != JOB_REJECTED)
		strbuf_printf(out, ", batch %s", text_shortest(j->r.batch, a));
	if (!isnan(j->r.epochs) && j->r.state != JOB_REJECTED)
		strbuf_printf(out, ", %s epochs", text_shortest(j->r.epochs, a));
	if (j->r.state == JOB_QUEUED)
		strbuf_printf(out, ", starts %s", in_seconds(nearer(j->live.start_s, age_s), a));
	if (!job_view_ended(j)) {
		if (!isnan(j->live.epoch) && !isnan(j->live.epochs))
			strbuf_printf(out, ", epoch %g of %g", j->live.epoch, j->live.epochs);
		strbuf_printf(out, ", ends %s", job_view_end(j, age_s, buf));
		if (j->live.late)
			strbuf_puts(out, ", predicted to be late");
		return;
	}
	job_view_result(j, false, out);
}

/* ---- a row ---- */

void job_view_header(struct cli_table *t)
{
	static const char *const name[] = { "job",      "state",         "type",    "tenant", "batch",
					    "epochs",   "cpus",          "limit",   "age",    "start",
					    "progress", "predicted end", "outcome", "note" };

	for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
		cli_table_add(t, "%s", name[i]);
}

static void add_note(struct cli_table *t, const struct job_view *j)
{
	char ending[160];

	if (j->live.late)
		cli_table_add(t, "late%s%s", j->r.tag ? ", " : "", j->r.tag ? j->r.tag : "");
	else if (j->live.waiting_message || j->live.waiting_code)
		cli_table_add(t, "%s",
			      j->live.waiting_message ? j->live.waiting_message : j->live.waiting_code);
	else if (gave_back(j))
		cli_table_add(t, "stopped after epoch %g" FOR_OTHERS, j->r.stopped_epoch);
	else if (j->r.reason)
		cli_table_add(t, "%s", reason_words(j));
	else if (j->r.state == JOB_FAILED)
		cli_table_add(t, "%s", ending_words(j, ending, sizeof ending));
	else if (job_view_ended(j) && !isnan(j->r.stopped_epoch))
		cli_table_add(t, "stopped after epoch %g", j->r.stopped_epoch);
	else if (job_view_ended(j) && !isnan(j->r.accuracy))
		cli_table_add(t, "accuracy %s", text_accuracy(j->r.accuracy, ending));
	else if (without_accuracy(j) && !j->r.tag)
		cli_table_add(t, NO_ACCURACY);
	else
		cli_table_add(t, "%s", j->r.tag ? j->r.tag : "");
}

/* "3 of 50", or by the time that is left; how far a job came that was stopped. */
static void add_progress(struct cli_table *t, const struct job_view *j, double age_s, double now_s)
{
	double share = job_view_share(j, age_s, now_s);

	if (j->r.state == JOB_RUNNING && !isnan(j->live.epoch) && !isnan(j->live.epochs))
		cli_table_add(t, "%g of %g", j->live.epoch, j->live.epochs);
	else if (!isnan(share))
		cli_table_add(t, "%.0f %%", 100.0 * fmin(share, 0.99));
	else if (job_view_ended(j) && !isnan(j->r.stopped_epoch) && !isnan(j->r.epochs))
		cli_table_add(t, "%g of %g", j->r.stopped_epoch, j->r.epochs);
	else
		cli_table_add(t, "%s", "");
}

void job_view_row(struct cli_table *t, const struct job_view *j, double age_s, double now_s)
{
	char buf[JOB_VIEW_SPAN];
	bool live = !job_view_ended(j);

	cli_table_add(t, "%s", j->id);
	cli_table_add(t, "%s", job_state_name[j->r.state]);
	cli_table_add(t, "%s", j->r.type ? j->r.type : "");
	cli_table_add(t, "%s", in_tenant(j) ? j->r.tenant : "");
	cli_table_add(t, "%s", isnan(j->r.batch) ? "" : text_shortest(j->r.batch, buf));
	cli_table_add(t, "%s", isnan(j->r.epochs) ? "" : text_shortest(j->r.epochs, buf));
	if (j->r.gpus)
		cli_table_add(t, "%u + %u %s", j->r.cpus, j->r.gpus, j->r.gpus == 1 ? "gpu" : "gpus");
	else
		cli_table_add(t, "%s", j->r.cpus ? text_shortest(j->r.cpus, buf) : "");
	cli_table_seconds(t, j->r.slo_s);
	cli_table_seconds(t, age_of(j->r.submitted_ns, now_s));
	cli_table_add(t, "%s",
		      j->r.state == JOB_QUEUED ? in_seconds(nearer(j->live.start_s, age_s), buf) : "");
	add_progress(t, j, age_s, now_s);
	cli_table_add(t, "%s", live ? job_view_end(j, age_s, buf) : "");
	if (j->r.slo_outcome)
		cli_table_add(t, "%s", outcome_words(j, buf, sizeof buf));
	else
		cli_table_add(t, "%s",
			      j->r.verdict == VERDICT_BEST_EFFORT ? "best effort"
			      : j->r.verdict == VERDICT_CHANCE    ? "by chance"
			      : j->r.verdict == VERDICT_WAITING   ? "waits"
								  : "");
	add_note(t, j);
}
