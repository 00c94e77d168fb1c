/* GET /api/events: server-sent events. All open pages get the same text, written once a tick: with a token
 * the sums, the running jobs, the next to start and the latest that ended; without one the sums alone. Job
 * objects are those of `list`, the sums those of `stats`. A page that does not read is passed over, and
 * hears the next update. See http.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/daemon/http/http_internal.h"
#include "scheduler/daemon/ops/ops.h"

#define TICK_MS 1000 /* where nothing happens */
#define SOON_MS 5 /* after something happened; the jobs that start in its place are told with it */
#define GAP_MS 40 /* between two updates at least */
#define PER_PAGE_MS 2 /* and for each page, so that many pages do not fill the loop */
#define MAX_UNREAD (1 << 20) /* bytes; a page with more hears nothing for now */
#define LOOKED_AT 200 /* queued jobs, to find the next */
#define RUNNING_SHOWN 64
#define NEXT_SHOWN 60
#define ENDED_SHOWN 30

struct page {
	struct page *next;
	struct http *h;
	struct evhttp_request *request;
	struct http_who who;
	uint64_t dropped; /* tokens, when its own was looked for last */
};

static void drop_page(struct page *p)
{
	struct page **at = &p->h->pages;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	p->h->n_pages--;
	free(p);
}

static void on_gone(struct evhttp_connection *connection, void *arg)
{
	struct page *p = arg;

	(void)connection;
	http_drop(p->request);
	drop_page(p);
}

/* ---- what pages get ---- */

static void put_jobs(struct daemon *d, struct json_writer *w, const char *key, const struct job **job,
		     size_t n)
{
	json_kv_open(w, key, '[');
	for (size_t i = 0; i < n; i++) {
		struct job_live live;

		estimates_live(d, job[i], &live);
		job_json(w, &job[i]->row, &live);
	}
	json_close(w, ']');
}

struct planned {
	const struct job *job;
	double start_s;
};

/* Of the oldest queued jobs those that start first, by their estimates. */
static size_t next_jobs(struct daemon *d, struct planned *out)
{
	size_t n = 0, seen = 0;

	for (const struct job *j = d->jobs.live.first; j && seen < LOOKED_AT; j = j->after) {
		struct job_live live;
		double start_s;
		size_t at;

		if (j->row.state != JOB_QUEUED)
			continue;
		seen++;
		estimates_live(d, j, &live);
		start_s = live.has_estimate && !isnan(live.start_s) ? live.start_s : INFINITY;
		if (n == NEXT_SHOWN && start_s >= out[n - 1].start_s)
			continue;
		at = n < NEXT_SHOWN ? n++ : n - 1;
		for (; at > 0 && out[at - 1].start_s > start_s; at--)
			out[at] = out[at - 1];
		out[at] = (struct planned){ j, start_s };
	}
	return n;
}

static void put_known(struct daemon *d, struct json_writer *w)
{
	const struct job *list[RUNNING_SHOWN + NEXT_SHOWN + ENDED_SHOWN];
	struct planned next[NEXT_SHOWN];
	size_t n = 0, seen = 0, running = d->jobs.count[JOB_RUNNING];

	for (const struct job *j = d->jobs.live.first; j && n < RUNNING_SHOWN && seen < running;
	     j = j->after) {
		if (j->row.state == JOB_RUNNING) {
			list[n++] = j;
			seen++;
		}
	}
	put_jobs(d, w, "running", list, n);
	n = next_jobs(d, next);
	for (size_t i = 0; i < n; i++)
		list[i] = next[i].job;
	put_jobs(d, w, "next", list, n);
	n = 0;
	for (const struct job *j = d->jobs.ended.last; j && n < ENDED_SHOWN; j = j->before)
		list[n++] = j;
	put_jobs(d, w, "ended", list, n);
}

/* "data: {...}\n\n" */
static void write_update(struct daemon *d, bool known, struct strbuf *out)
{
	struct json_writer w;

	strbuf_puts(out, "data: ");
	json_begin(&w, out, false);
	json_open(&w, '{');
	json_kv_moment(&w, "now", daemon_now_ns(d));
	json_kv_bool(&w, "known", known);
	json_kv_open(&w, "stats", '{');
	stats_json(d, &w, !known);
	history_json(&d->tally.history, daemon_now_ns(d), &w);
	json_close(&w, '}');
	if (known)
		put_known(d, &w);
	json_close(&w, '}');
	strbuf_puts(out, "\n\n");
}

/* One text for all pages, freed when the last of them has sent it. */
struct shared {
	size_t users;
	struct strbuf text;
};

static void release(const void *bytes, size_t len, void *arg)
{
	struct shared *s = arg;

	(void)bytes;
	(void)len;
	if (--s->users)
		return;
	strbuf_release(&s->text);
	free(s);
}

static void send_to(struct page *p, struct shared *s)
{
	struct evhttp_connection *c = evhttp_request_get_connection(p->request);
	struct evbuffer *unread = bufferevent_get_output(evhttp_connection_get_bufferevent(c));
	struct evbuffer *chunk;

	if (s->text.failed || evbuffer_get_length(unread) > MAX_UNREAD)
		return;
	chunk = evbuffer_new();
	if (chunk && !evbuffer_add_reference(chunk, s->text.text, s->text.len, release, s)) {
		s->users++;
		evhttp_send_reply_chunk(p->request, chunk);
	}
	if (chunk)
		evbuffer_free(chunk);
}

static void end_page(struct page *p)
{
	struct evhttp_connection *c = evhttp_request_get_connection(p->request);

	evhttp_connection_set_closecb(c, NULL, NULL);
	evhttp_connection_set_timeout(c, HTTP_TIMEOUT_S);
	evhttp_send_reply_end(p->request);
	drop_page(p);
}

/* A token that was revoked, or has expired, opens no page any more, and so does not keep one open. */
static void end_without_token(struct http *h)
{
	int64_t now_s = daemon_now_ns(h->d) / 1000000000;

	for (struct page *p = h->pages, *next; p; p = next) {
		next = p->next;
		if (!p->who.known || (p->dropped == h->tokens.dropped && p->who.token.expires_s > now_s))
			continue;
		p->dropped = h->tokens.dropped;
		if (!tokens_hold(&h->tokens, &p->who.token, now_s))
			end_page(p);
	}
}

static void tick(struct http *h, struct page *only)
{
	bool wanted[2] = { false, false };
	struct daemon_span span = daemon_span_begin();

	for (struct page *p = only ? only : h->pages; p; p = only ? NULL : p->next)
		wanted[p->who.known] = true;
	for (int known = 0; known < 2; known++) {
		struct shared *s = wanted[known] ? mem_calloc(1, sizeof *s) : NULL;

		if (!s)
			continue;
		s->users = 1;
		write_update(h->d, known, &s->text);
		for (struct page *p = only ? only : h->pages, *next; p; p = next) {
			next = only ? NULL : p->next;
			if (p->who.known == (known == 1))
				send_to(p, s);
		}
		release(NULL, 0, s);
	}
	h->told_ns = clock_monotonic_ns();
	daemon_span_end(h->d, span);
}

static void plan(struct http *h, int ms)
{
	struct timeval t = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	event_add(h->tick, &t);
}

void events_tick(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;

	(void)fd;
	(void)what;
	h->changed = false;
	end_without_token(h);
	if (!h->pages)
		return;
	tick(h, NULL);
	plan(h, TICK_MS);
}

void http_changed(struct http *h)
{
	int64_t since_ms;
	int gap_ms;

	if (!h || !h->pages || h->changed)
		return;
	h->changed = true;
	since_ms = (clock_monotonic_ns() - h->told_ns) / 1000000;
	gap_ms = GAP_MS + PER_PAGE_MS * (int)h->n_pages;
	plan(h, since_ms + SOON_MS >= gap_ms ? SOON_MS : gap_ms - (int)since_ms);
}

/* Without a token a page is open for as long as nobody else wants its place. False: there is none. */
static bool end_oldest_unknown(struct http *h)
{
	struct page *oldest = NULL;

	for (struct page *p = h->pages; p; p = p->next) /* the latest is the first */
		oldest = p->who.known ? oldest : p;
	if (oldest)
		end_page(oldest);
	return oldest != NULL;
}

static bool has_place(struct http *h, const struct http_who *who)
{
	size_t of_user = 0;

	for (const struct page *p = h->pages; p && who->known; p = p->next)
		of_user += p->who.known && p->who.token.uid == who->token.uid;
	if (of_user && of_user >= http_share(h))
		return false;
	return h->n_pages + HTTP_SPARE < h->max_open || end_oldest_unknown(h);
}

void events_open(struct http *h, struct evhttp_request *r, const struct http_who *who)
{
	struct page *p = mem_calloc(1, sizeof *p);
	struct evhttp_connection *c = evhttp_request_get_connection(r);

	if (!p || !has_place(h, who)) {
		free(p);
		http_error(r, 503, "too_many_connections", "too many pages are open");
		return;
	}
	*p = (struct page){
		.next = h->pages, .h = h, .request = r, .who = *who, .dropped = h->tokens.dropped
	};
	h->pages = p;
	h->n_pages++;
	guard_headers(r, "text/event-stream");
	evhttp_connection_set_timeout(c, 0); /* it stays open for as long as the page does */
	evhttp_connection_set_closecb(c, on_gone, p);
	evhttp_send_reply_start(r, 200, NULL);
	tick(h, p);
	if (!event_pending(h->tick, EV_TIMEOUT, NULL))
		plan(h, TICK_MS);
}

void events_close(struct http *h)
{
	while (h->pages)
		end_page(h->pages);
}
