/* Questions about a job, and following it until it ends. See job_talk.h. */
#include "scheduler/cli/client/job_talk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text/template.h"

#define REDRAW_S 1.0 /* the time left shrinks even where nothing happens */

bool job_ids_check(const struct cli *c)
{
	for (size_t i = 0; i < c->n_args; i++) {
		if (!job_id_valid(c->arg[i])) {
			cli_usage_error(
				c, "'%s' is not a job id; ids are numbers, as 'postrider list' shows them",
				c->arg[i]);
			return false;
		}
	}
	return true;
}

int job_ask(struct client *c, const char *op, const char *id, struct json **out, struct job_view *out_job,
	    struct client_fault *f)
{
	int rc;

	json_kv_string(client_begin(c, op), "job", id);
	rc = client_call(c, out, f);
	if (rc)
		return rc;
	if (job_view_read(json_get(*out, "job"), out_job))
		return 0;
	json_free(*out);
	*out = NULL;
	return client_bad_reply(f, "there is no job object in it");
}

int job_ask_once(const struct cli *c, const struct client_params *at, const char *op, struct json **out,
		 struct job_view *out_job)
{
	struct client *client = NULL;
	struct client_fault f;
	int rc;

	if (!job_ids_check(c))
		return 2;
	rc = client_open(at, &client, &f);
	if (!rc)
		rc = job_ask(client, op, c->arg[0], out, out_job, &f);
	client_close(client);
	return rc ? client_say(&f) : 0;
}

/* ---- following ---- */

struct job_line job_line_begin(bool quiet)
{
	const char *term = getenv("TERM");

	return (struct job_line){ .on = !quiet && isatty(STDERR_FILENO) && (!term || strcmp(term, "dumb")) };
}

void job_line_draw(struct job_line *l)
{
	struct winsize size;
	size_t width = 80, shown = 0, bytes = 0;
	const char *s;

	if (!l->on)
		return;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		width = size.ws_col;
	s = strbuf_text(&l->text);
	/* Never the last column, and never half a character. */
	while (s[bytes] && shown + 1 < width) {
		bytes++;
		while (((unsigned char)s[bytes] & 0xc0) == 0x80)
			bytes++;
		shown++;
	}
	fprintf(stderr, "\r%.*s\033[K", (int)bytes, s);
	fflush(stderr);
	l->drawn = true;
}

void job_line_wipe(struct job_line *l)
{
	if (l->drawn)
		fputs("\r\033[K", stderr);
	l->drawn = false;
}

void job_line_end(struct job_line *l)
{
	job_line_wipe(l);
	strbuf_release(&l->text);
}

int job_follow(struct client *c, const struct job_view *now, bool quiet, struct json **out_last,
	       struct job_view *out_job, struct client_fault *f)
{
	struct job_line line = job_line_begin(quiet);
	struct json *event = NULL, *last = NULL;
	struct job_view job = *now, heard;
	double came_s = job_now();
	int rc = 0;

	while (!job_view_ended(&job)) {
		strbuf_reset(&line.text);
		job_view_line(&job, job_now() - came_s, &line.text);
		job_line_draw(&line);
		rc = client_event(c, line.on ? REDRAW_S : NAN, &event, f);
		if (rc)
			break;
		if (!event)
			continue;
		/* Events of other jobs and of the daemon itself may come along. */
		if (job_view_read(json_get(event, "job"), &heard) && !strcmp(heard.id, now->id)) {
			json_free(last);
			last = event;
			job = heard;
			came_s = job_now();
		} else {
			json_free(event);
		}
	}
	job_line_end(&line);
	if (rc) {
		json_free(last);
		return rc;
	}
	*out_last = last;
	*out_job = job;
	return 0;
}

int job_print_reply(const struct cli *c, const struct json *reply)
{
	struct strbuf out = { 0 };
	struct json_writer w;
	int code;

	json_begin(&w, &out, true);
	json_open(&w, '{');
	cli_json_members(&w, reply, (const char *const[]){ "v", "id", "ok", NULL });
	json_close(&w, '}');
	strbuf_puts(&out, "\n");
	code = cli_finish(c, &out);
	strbuf_release(&out);
	return code;
}

#define LIVE_PAGE 50

/* One page behind the last id of the list; *out_more: there may be another. */
static int live_page(struct client *c, const char *tag, char before[24], char ***out, size_t *out_n,
		     size_t *cap, bool *out_more, struct client_fault *f)
{
	struct json_writer *w = client_begin(c, "list");
	struct json *reply = NULL;
	struct job_view job;
	int rc;

	json_kv_open(w, "state", '[');
	json_put_string(w, job_state_name[JOB_QUEUED]);
	json_put_string(w, job_state_name[JOB_RUNNING]);
	json_close(w, ']');
	json_kv_bool(w, "mine", true);
	json_kv_int(w, "limit", LIVE_PAGE);
	if (before[0])
		json_kv_string(w, "before", before);
	rc = client_call(c, &reply, f);
	if (rc)
		return rc;
	*out_more = json_bool(json_get(reply, "more"), false) && json_size(json_get(reply, "jobs"));
	for (const struct json *v = json_first(json_get(reply, "jobs")); v && !rc; v = json_next(v)) {
		void *list = *out;

		if (!job_view_read(v, &job)) {
			rc = client_bad_reply(f, "an entry of its list is not a job");
			break;
		}
		snprintf(before, 24, "%s", job.id);
		if (tag && (!job.r.tag || strcmp(job.r.tag, tag)))
			continue;
		if (mem_grow(&list, cap, *out_n + 2, sizeof **out)) {
			rc = client_fail(f, CLIENT_FAILED, "out of memory");
			break;
		}
		*out = list;
		(*out)[*out_n] = mem_strdup(job.id);
		(*out)[*out_n + 1] = NULL;
		if ((*out)[*out_n])
			++*out_n;
		else
			rc = client_fail(f, CLIENT_FAILED, "out of memory");
	}
	json_free(reply);
	return rc;
}

static int ids_live(struct client *c, const char *tag, char ***out, size_t *out_n, struct client_fault *f)
{
	char before[24] = "";
	bool more = true;
	size_t cap = 0;
	int rc = 0;

	*out = NULL;
	*out_n = 0;
	while (!rc && more)
		rc = live_page(c, tag, before, out, out_n, &cap, &more, f);
	if (rc) {
		argv_free(*out);
		*out = NULL;
	}
	return rc;
}

int job_ids_open(struct cli *c, const struct client_params *at, const char *tag, const char *none,
		 struct client **out, char ***out_live)
{
	struct client_fault f;
	int code = client_open(at, out, &f);

	*out_live = NULL;
	if (!code && !c->n_args) {
		code = ids_live(*out, tag, out_live, &c->n_args, &f);
		c->arg = *out_live;
		if (!code && !c->n_args)
			cli_notice(c, "%s", none);
	}
	if (!code)
		return 0;
	client_close(*out);
	return client_say(&f);
}
