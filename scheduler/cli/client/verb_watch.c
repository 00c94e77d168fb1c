/* `postrider watch`: on a terminal a picture that is kept up to date, elsewhere one line per event. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "scheduler/cli/client/job_talk.h"
#include "scheduler/cli/client/watch_screen.h"

#define REDRAW_S 0.25 /* at most four pictures a second */
#define REFRESH_S 1.0 /* at least one, as the times left shrink */

struct watch {
	const struct cli *c;
	const char *id; /* NULL: all jobs */
	bool jsonl, live;
	bool ended; /* the one job has */
	struct watch_screen screen;
};

/* ---- one line per event ---- */

/* What the daemon says of itself comes with a sentence where there is more to say than its name. */
static const char *message_of(const struct json *event)
{
	return json_string(json_get(event, "message"), NULL);
}

static void say_event(const struct watch *w, const struct json *event)
{
	const char *name = json_string(json_get(event, "event"), "?"),
		   *at = json_string(json_get(event, "at"), "");
	struct strbuf line = { 0 };
	struct json_writer j;
	struct job_view job;

	if (w->jsonl) {
		json_begin(&j, &line, false);
		json_open(&j, '{');
		cli_json_members(&j, event, (const char *const[]){ "v", NULL });
		json_close(&j, '}');
	} else {
		strbuf_printf(&line, "%s %s", cli_clean(at), cli_clean(name));
		if (job_view_read(json_get(event, "job"), &job)) {
			strbuf_puts(&line, ": ");
			job_view_line(&job, 0.0, &line);
		}
		if (message_of(event))
			strbuf_printf(&line, ": %s", cli_clean(message_of(event)));
	}
	printf("%s\n", strbuf_text(&line));
	fflush(stdout);
	strbuf_release(&line);
}

/* A job that exists when the watch begins has no event. */
static void say_current(const struct watch *w, const struct json *v)
{
	struct strbuf line = { 0 };
	struct json_writer j;
	struct job_view job;

	if (w->jsonl) {
		json_begin(&j, &line, false);
		json_open(&j, '{');
		json_kv_string(&j, "event", "current");
		json_put_key(&j, "job");
		cli_json_copy(&j, v);
		json_close(&j, '}');
	} else if (job_view_read(v, &job)) {
		strbuf_puts(&line, "now: ");
		job_view_line(&job, 0.0, &line);
	}
	printf("%s\n", strbuf_text(&line));
	fflush(stdout);
	strbuf_release(&line);
}

/* ---- a table ---- */

static void put(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno == EINTR && !client_interrupted())
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static void draw(struct watch *w)
{
	struct winsize size;
	size_t width = 80, height = 24;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
		width = size.ws_col;
		height = size.ws_row;
	}
	watch_screen_draw(&w->screen, width, height, job_now());
	if (!w->screen.out.failed)
		put(w->screen.out.text, w->screen.out.len);
}

static void leave_screen(struct watch *w)
{
	static const char show_cursor[] = "\033[?25h";

	if (w->screen.hidden)
		put(show_cursor, sizeof show_cursor - 1);
	watch_screen_release(&w->screen);
}

/* ---- what comes ---- */

/* A copy, because a reply with many jobs is one document. */
static int take_current(struct watch *w, const struct json *v, struct client_fault *f)
{
	struct strbuf text = { 0 };
	struct json *copy = NULL;
	struct err err = { 0 };
	struct json_writer j;
	struct job_view job;

	if (!job_view_read(v, &job))
		return client_bad_reply(f, "an entry of its list is not a job");
	if (w->id && !strcmp(job.id, w->id))
		w->ended = job_view_ended(&job);
	if (!w->live) {
		say_current(w, v);
		return 0;
	}
	json_begin(&j, &text, false);
	cli_json_copy(&j, v);
	if (text.failed || json_parse("job", text.text, text.len, &copy, &err) ||
	    watch_screen_take(&w->screen, copy, copy)) {
		strbuf_release(&text);
		return client_fail(f, CLIENT_FAILED, "out of memory");
	}
	strbuf_release(&text);
	return 0;
}

/* Takes the event. */
static int take_event(struct watch *w, struct json *event, struct client_fault *f)
{
	struct job_view job;
	bool about_job = job_view_read(json_get(event, "job"), &job);

	if (w->id && about_job && strcmp(job.id, w->id)) {
		json_free(event);
		return 0;
	}
	if (w->id && about_job)
		w->ended = job_view_ended(&job);
	if (!w->live) {
		say_event(w, event);
		json_free(event);
		return 0;
	}
	if (!about_job) {
		snprintf(w->screen.notice, sizeof w->screen.notice, "%.40s %.40s%s%.120s",
			 cli_clean(json_string(json_get(event, "at"), "")),
			 cli_clean(json_string(json_get(event, "event"), "?")), message_of(event) ? ": " : "",
			 message_of(event) ? cli_clean(message_of(event)) : "");
		json_free(event);
		return 0;
	}
	return watch_screen_take(&w->screen, event, json_get(event, "job"))
		       ? client_fail(f, CLIENT_FAILED, "out of memory")
		       : 0;
}

static int follow(struct watch *w, struct client *client, struct client_fault *f)
{
	double drawn_s = -INFINITY;
	struct json *event;
	bool news = true;
	int rc = 0;

	while (!rc && !w->ended) {
		double left_s = NAN;

		if (w->live) {
			left_s = drawn_s + (news ? REDRAW_S : REFRESH_S) - job_now();
			if (!(left_s > 0.0) || left_s > REFRESH_S) { /* or the clock was set back */
				draw(w);
				drawn_s = job_now();
				news = false;
				left_s = REFRESH_S;
			}
		}
		rc = client_event(client, left_s, &event, f);
		if (!rc && event) {
			rc = take_event(w, event, f);
			news = true;
		}
	}
	if (w->live)
		draw(w); /* the last news */
	return rc;
}

static int watch(struct watch *w, struct client *client, struct client_fault *f)
{
	struct json_writer *j = client_begin(client, "watch");
	struct json *reply = NULL;
	int rc;

	if (w->id)
		json_kv_string(j, "job", w->id);
	rc = client_call(client, &reply, f);
	if (rc)
		return rc;
	if (json_type(json_get(reply, "jobs")) != JSON_ARRAY)
		rc = client_bad_reply(f, "there is no list of jobs in it");
	for (const struct json *v = json_first(json_get(reply, "jobs")); v && !rc; v = json_next(v))
		rc = take_current(w, v, f);
	json_free(reply);
	return rc ? rc : follow(w, client, f);
}

int verb_watch(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	struct watch w = { 0 };
	const struct cli_option option[] = {
		{ 0, "jsonl", CLI_FLAG, NULL, "print each event as a JSON object, also on a terminal",
		  &w.jsonl },
		CLIENT_OPTIONS(at),
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "watch",
		.synopsis = "[JOB] [--jsonl] [--timeout TIME]",
		.what = "Shows what happens: on a terminal running jobs with their progress, those that wait "
			"and the\n"
			"latest that ended, kept up to date; elsewhere one line per event. With a job it "
			"ends when\n"
			"the job has ended, otherwise with Ctrl-C (exit code 130) or --timeout (124). If "
			"the\n"
			"daemon stops, the exit code is 5.",
		.option = option,
		.max_args = 1,
		.examples = "  postrider watch\n"
			    "  postrider watch --jsonl | jq -c 'select(.event == \"late\")'\n",
	};
	const char *term = getenv("TERM");
	struct client *client = NULL;
	struct client_fault f;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!job_ids_check(&c))
		return 2;
	w.c = &c;
	w.id = c.n_args ? c.arg[0] : NULL;
	w.live = !w.jsonl && isatty(STDOUT_FILENO) && (!term || strcmp(term, "dumb"));
	w.screen.colour = cli_colour_stdout(&c);
	client_catch_signals();
	code = client_open(&at, &client, &f);
	if (!code)
		code = watch(&w, client, &f);
	leave_screen(&w);
	if (code)
		client_say(&f);
	client_close(client);
	return code;
}
