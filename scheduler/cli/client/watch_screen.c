/* See watch_screen.h. Nothing but cursor up, erase to the end of the line and of the screen: what was above
 * the picture stays, and the last picture stays when the program leaves. */
#include "scheduler/cli/client/watch_screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

#define ENDED_SHOWN 8
#define BAR 20 /* columns */

static int rank(const struct job_view *j)
{
	return j->r.state == JOB_RUNNING ? 0 : j->r.state == JOB_QUEUED ? 1 : 2;
}

/* Running, queued, ended; each in the order of arrival, which is that of the ids. */
static int by_state(const void *a, const void *b)
{
	const struct job_view *x = &((const struct watch_row *)a)->job,
			      *y = &((const struct watch_row *)b)->job;
	size_t n = strlen(x->id), m = strlen(y->id);

	if (rank(x) != rank(y))
		return rank(x) - rank(y);
	return n != m ? (n < m ? -1 : 1) : strcmp(x->id, y->id);
}

static void forget(struct watch_screen *s, size_t i)
{
	json_free(s->row[i].line);
	memmove(s->row + i, s->row + i + 1, (s->n - i - 1) * sizeof *s->row);
	s->n--;
}

/* Of the ended ones the oldest news goes first. */
static void forget_ended(struct watch_screen *s)
{
	for (;;) {
		size_t n = 0, oldest = 0;

		for (size_t i = 0; i < s->n; i++) {
			if (!job_view_ended(&s->row[i].job))
				continue;
			if (!n++ || s->row[i].came_s < s->row[oldest].came_s)
				oldest = i;
		}
		if (n <= ENDED_SHOWN)
			return;
		forget(s, oldest);
	}
}

static void count_promise(struct watch_screen *s, const struct job_view *j)
{
	if (!job_view_ended(j) || j->r.verdict != VERDICT_PROMISED)
		return;
	s->kept += j->r.slo_outcome == SLO_MET;
	s->broken += j->r.slo_outcome == SLO_MISSED;
}

int watch_screen_take(struct watch_screen *s, struct json *line, const struct json *job)
{
	struct watch_row fresh = { .line = line, .came_s = job_now() };
	void *rows = s->row;

	if (!job_view_read(job, &fresh.job)) {
		json_free(line);
		return 0;
	}
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->row[i].job.id, fresh.job.id))
			continue;
		if (!job_view_ended(&s->row[i].job))
			count_promise(s, &fresh.job);
		json_free(s->row[i].line);
		s->row[i] = fresh;
		forget_ended(s);
		return 0;
	}
	if (mem_grow(&rows, &s->cap, s->n + 1, sizeof *s->row)) {
		json_free(line);
		return -1;
	}
	s->row = rows;
	s->row[s->n++] = fresh;
	forget_ended(s);
	return 0;
}

/* ---- the picture ---- */

enum tone { TONE_PLAIN, TONE_HEAD, TONE_GOOD, TONE_BAD };

/* One line of the text, cut to the width, over what stood there. */
static void put_line(struct watch_screen *s, const char *text, size_t len, size_t width, enum tone tone)
{
	static const char *const colour[] = { "", "\033[1m", "\033[32m", "\033[31m" };
	size_t bytes = 0, shown = 0;

	while (bytes < len && shown + 1 < width) {
		bytes++;
		while (bytes < len && ((unsigned char)text[bytes] & 0xc0) == 0x80)
			bytes++;
		shown++;
	}
	if (s->colour)
		strbuf_puts(&s->out, colour[tone]);
	strbuf_add(&s->out, text, bytes);
	strbuf_puts(&s->out, s->colour && tone ? "\033[0m\033[K\n" : "\033[K\n");
	s->drawn++;
}

static void put_words(struct watch_screen *s, const char *text, size_t width, enum tone tone)
{
	put_line(s, text, strlen(text), width, tone);
}

static void add_running(struct cli_table *t, const struct job_view *j, double age_s, double now_s)
{
	double share = job_view_share(j, age_s, now_s);
	struct strbuf text = { 0 };
	char buf[JOB_VIEW_SPAN];

	if (isnan(share)) {
		cli_table_add(t, "%s", "");
	} else {
		share = fmin(share, 0.99);
		strbuf_printf(&text, "%2.0f %%  ", 100.0 * share);
		cli_bar(&text, share, BAR);
		for (int i = (int)fmax(lround(share * BAR), 1); i < BAR; i++)
			strbuf_puts(&text, " "); /* columns stay where they are */
		cli_table_add(t, "%s", strbuf_text(&text));
		strbuf_reset(&text);
	}
	job_view_progress(j, age_s, &text);
	if (!text.len)
		strbuf_printf(&text, "ends %s", job_view_end(j, age_s, buf));
	if (j->live.late)
		strbuf_puts(&text, ", predicted to be late");
	cli_table_add(t, "%s", strbuf_text(&text));
	strbuf_release(&text);
}

static void add_queued(struct cli_table *t, const struct job_view *j, double age_s)
{
	char buf[JOB_VIEW_SPAN];

	if (!(j->live.start_s > age_s))
		cli_table_add(t, "%s", isnan(j->live.start_s) ? "" : "starts now");
	else
		cli_table_add(t, "starts in %s", text_seconds(j->live.start_s - age_s, buf));
	if (j->live.waiting_message)
		cli_table_add(t, "%s", j->live.waiting_message);
	else
		cli_table_add(t, "ends %s", job_view_end(j, age_s, buf));
}

static void add_ended(struct cli_table *t, const struct job_view *j)
{
	struct strbuf text = { 0 };
	const char *words;

	job_view_result(j, true, &text);
	words = strbuf_text(&text);
	cli_table_add(t, "%s", job_state_name[j->r.state]);
	cli_table_add(t, "%s", words + strspn(words, " ,:"));
	strbuf_release(&text);
}

static void add_row(struct cli_table *t, const struct watch_row *row, double now_s)
{
	const struct job_view *j = &row->job;
	char batch[32], epochs[32], limit[32];

	cli_table_add(t, "%s", j->id);
	cli_table_add(t, "%s%s%s", j->r.type ? j->r.type : "", j->r.tag ? " " : "", j->r.tag ? j->r.tag : "");
	if (isnan(j->r.batch))
		cli_table_add(t, "%s", "");
	else if (isnan(j->r.epochs))
		cli_table_add(t, "%s", text_shortest(j->r.batch, batch));
	else
		cli_table_add(t, "%s x %s", text_shortest(j->r.batch, batch),
			      text_shortest(j->r.epochs, epochs));
	if (isnan(j->r.slo_s))
		cli_table_add(t, "%s", "");
	else
		cli_table_add(t, "limit %s", text_seconds(j->r.slo_s, limit));
	if (rank(j) == 0)
		add_running(t, j, now_s - row->came_s, now_s);
	else if (rank(j) == 1)
		add_queued(t, j, now_s - row->came_s);
	else
		add_ended(t, j);
}

static enum tone tone_of(const struct job_view *j)
{
	if (j->live.late || j->r.slo_outcome == SLO_MISSED || j->r.state == JOB_FAILED ||
	    j->r.state == JOB_LOST)
		return TONE_BAD;
	return j->r.slo_outcome == SLO_MET ? TONE_GOOD : TONE_PLAIN;
}

/* Of the rows of each rank as many as fit into `room` lines: two of each first, then the running ones. */
static void share_out(const size_t n[3], size_t room, size_t out[3])
{
	size_t left = room;

	for (int i = 0; i < 3; i++) {
		out[i] = n[i] < 2 ? n[i] : 2;
		out[i] = out[i] < left ? out[i] : left;
		left -= out[i];
	}
	for (int i = 0; i < 3; i++) {
		size_t more = n[i] - out[i] < left ? n[i] - out[i] : left;

		out[i] += more;
		left -= more;
	}
}

static void put_summary(struct watch_screen *s, const size_t n[3], size_t width)
{
	char text[200];
	int at = snprintf(text, sizeof text, "%zu running, %zu waiting", n[0], n[1]);

	if (s->kept + s->broken)
		snprintf(text + at, sizeof text - (size_t)at, "; since you look %zu of %zu promises kept",
			 s->kept, s->kept + s->broken);
	put_words(s, n[0] + n[1] + n[2] ? text : "no job is queued or running", width, TONE_HEAD);
}

static void put_sections(struct watch_screen *s, const char *rows, const size_t n[3], const size_t shown[3],
			 size_t width)
{
	static const char *const name[3] = { "running", "waiting", "ended" };
	size_t first = 0;

	for (int i = 0; i < 3; first += n[i++]) {
		char more[64];

		if (!shown[i])
			continue;
		put_words(s, name[i], width, TONE_HEAD);
		for (size_t k = 0; k < shown[i] && *rows; k++) {
			size_t len = strcspn(rows, "\n");

			put_line(s, rows, len, width, tone_of(&s->row[first + k].job));
			rows += len + 1;
		}
		snprintf(more, sizeof more, "... and %zu more", n[i] - shown[i]);
		if (shown[i] < n[i])
			put_words(s, more, width, TONE_PLAIN);
	}
}

void watch_screen_draw(struct watch_screen *s, size_t width, size_t height, double now_s)
{
	size_t n[3] = { 0 }, shown[3], first = 0;
	size_t other = 2 + (s->notice[0] != '\0'); /* lines: the summary, the notice, the cursor's own */
	struct strbuf text = { 0 };
	const char *rows;
	struct cli_table t;

	strbuf_reset(&s->out);
	if (!s->hidden)
		strbuf_puts(&s->out, "\033[?25l");
	s->hidden = true;
	if (s->n)
		qsort(s->row, s->n, sizeof *s->row, by_state);
	for (size_t i = 0; i < s->n; i++)
		n[rank(&s->row[i].job)]++;
	for (int i = 0; i < 3; i++)
		other += n[i] ? 2 : 0; /* its name, and "more" */
	share_out(n, height > other ? height - other : 0, shown);
	cli_table_head(&t, "rlrrll", "", "", "", "", "", "");
	for (int i = 0; i < 3; first += n[i++])
		for (size_t k = 0; k < shown[i]; k++)
			add_row(&t, &s->row[first + k], now_s);
	cli_table_print(&t, &text, false);
	cli_table_release(&t);
	if (s->drawn)
		strbuf_printf(&s->out, "\033[%zuA", s->drawn);
	s->drawn = 0;
	put_summary(s, n, width);
	rows = strchr(strbuf_text(&text), '\n'); /* behind the head, which says nothing */
	put_sections(s, rows ? rows + 1 : "", n, shown, width);
	if (s->notice[0])
		put_words(s, s->notice, width, TONE_PLAIN);
	strbuf_puts(&s->out, "\033[J");
	if (text.failed)
		s->out.failed = true;
	strbuf_release(&text);
}

void watch_screen_release(struct watch_screen *s)
{
	for (size_t i = 0; i < s->n; i++)
		json_free(s->row[i].line);
	free(s->row);
	strbuf_release(&s->out);
	*s = (struct watch_screen){ 0 };
}
