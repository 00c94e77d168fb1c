/* See watch_screen.h. Nothing but cursor up, erase to the end of the line and of the screen: what was above
 * the picture stays, and the last picture stays when the program leaves. */
#include "scheduler/cli/client/watch_screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define ENDED_SHOWN 8

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

/* One line of the text, cut to the width, over what stood there. */
static void put_line(struct strbuf *out, const char *text, size_t len, size_t width, bool bold)
{
	size_t bytes = 0, shown = 0;

	while (bytes < len && shown + 1 < width) {
		bytes++;
		while (bytes < len && ((unsigned char)text[bytes] & 0xc0) == 0x80)
			bytes++;
		shown++;
	}
	if (bold)
		strbuf_puts(out, "\033[1m");
	strbuf_add(out, text, bytes);
	strbuf_puts(out, bold ? "\033[0m\033[K\n" : "\033[K\n");
}

static void put_text(struct watch_screen *s, double now_s, size_t n_rows, struct strbuf *text)
{
	struct cli_table t;

	cli_table_init(&t, JOB_VIEW_ALIGN);
	job_view_header(&t);
	for (size_t i = 0; i < n_rows; i++)
		job_view_row(&t, &s->row[i].job, now_s - s->row[i].came_s, now_s);
	if (n_rows)
		cli_table_print(&t, text, false);
	else
		strbuf_puts(text, "no job is queued or running\n");
	cli_table_release(&t);
	if (n_rows < s->n)
		strbuf_printf(text, "... and %zu more\n", s->n - n_rows);
	if (s->notice[0])
		strbuf_printf(text, "%s\n", s->notice);
}

void watch_screen_draw(struct watch_screen *s, size_t width, size_t height, double now_s)
{
	size_t room = height > 5 ? height - 4 : 1,
	       lines = 0; /* header, "more", notice, and the cursor's own */
	struct strbuf text = { 0 };
	const char *at, *end;

	strbuf_reset(&s->out);
	if (!s->hidden)
		strbuf_puts(&s->out, "\033[?25l");
	s->hidden = true;
	if (s->n)
		qsort(s->row, s->n, sizeof *s->row, by_state);
	put_text(s, now_s, s->n < room ? s->n : room, &text);
	if (s->drawn)
		strbuf_printf(&s->out, "\033[%zuA", s->drawn);
	for (at = strbuf_text(&text); *at; at = end + 1, lines++) {
		end = strchr(at, '\n');
		if (!end)
			break;
		put_line(&s->out, at, (size_t)(end - at), width, s->colour && lines == 0 && s->n > 0);
	}
	strbuf_puts(&s->out, "\033[J");
	s->drawn = lines;
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
