/* `list`: jobs by state, type and owner, the newest first, in pages. Jobs that are no longer in memory come
 * from the store's reader. The reply is made in parts, so that a long list keeps neither the loop nor much
 * memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/daemon/ops/ops.h"

#define LIST_DEFAULT 100
#define LIST_MAX 1000
#define PAGE 32 /* jobs that the store is asked for at a time */
#define PART_BYTES 8192 /* of a reply that are made at a time, */
#define PART_NS 200000 /* and how long that may take */

struct listing {
	struct store_filter filter;
	bool state[N_JOB_STATES], any_state;
};

static void read_state(struct request *r, struct listing *l, const char *name)
{
	for (int s = 0; name && s < N_JOB_STATES; s++) {
		if (!strcmp(job_state_name[s], name)) {
			l->state[s] = true;
			return;
		}
	}
	fields_fail(&r->f, ERR_ARG, "state",
		    "must be queued, running, done, failed, cancelled, rejected or lost");
}

static void read_states(struct request *r, struct listing *l)
{
	const struct json *v = fields_get(&r->f, "state");

	l->any_state = !v;
	if (v && json_type(v) != JSON_ARRAY)
		read_state(r, l, json_string(v, NULL));
	else
		for (const struct json *item = json_first(v); item; item = json_next(item))
			read_state(r, l, json_string(item, NULL));
}

/* False: answered. */
static bool read_listing(struct request *r, struct listing *l)
{
	const char *type = "";
	bool mine = false;

	*l = (struct listing){ .filter = { .uid = -1, .limit = LIST_DEFAULT } };
	read_states(r, l);
	field_size(&r->f, "limit", 1, LIST_MAX, &l->filter.limit);
	request_text(r, "type", JOB_TYPE_MAX_NAME, &type);
	field_bool(&r->f, "mine", &mine);
	if (fields_get(&r->f, "before"))
		request_id(r, "before", &l->filter.before_id);
	snprintf(l->filter.type, sizeof l->filter.type, "%s", type);
	if (mine)
		l->filter.uid = conn_uid(r->conn);
	return request_fine(r);
}

static bool matches(const struct listing *l, const struct job *job)
{
	const struct store_filter *f = &l->filter;

	return (l->any_state || l->state[job->row.state]) &&
	       (f->uid < 0 || f->uid == (int64_t)job->row.uid) &&
	       (!f->type[0] || !strcmp(f->type, job->row.type)) && (!f->before_id || job->id < f->before_id);
}

/* ---- the reply, in parts ---- */

/* Live jobs are all in memory, and a cursor walks through them. Otherwise the ids are walked through
 * downwards: a job in memory is listed as it is now; where one is not in memory, the store is asked for a
 * page of older ones. */
struct list_reply {
	struct daemon *d;
	struct reply *reply;
	struct listing l;
	char id[OPS_MAX_ID * 6 + 8];
	struct json_writer w;
	bool begun, released, live_only, asked, no_more;
	struct err err; /* of the store */
	size_t n; /* jobs told */
	struct job_cursor cursor;
	uint64_t next_id; /* to be looked at */
	struct strbuf page; /* lines of job objects from the store, */
	size_t page_at; /* and how far they are told */
};

static void put_live(struct list_reply *p, const struct job *job)
{
	struct job_live live;

	estimates_live(p->d, job, &live);
	job_json(&p->w, &job->row, &live);
	p->n++;
}

static void put_text(struct list_reply *p, const char *text, size_t len)
{
	if (p->w.need_comma)
		strbuf_puts(p->w.out, ",");
	strbuf_add(p->w.out, text, len);
	p->w.need_comma = true;
	p->n++;
}

static void page_came(void *owner, uint64_t token, const struct strbuf *text, const struct err *err)
{
	struct list_reply *p = owner;

	(void)token;
	p->asked = false;
	if (p->released) {
		strbuf_release(&p->page);
		free(p);
		return;
	}
	strbuf_reset(&p->page);
	p->page_at = 0;
	strbuf_add(&p->page, strbuf_text(text), text->len);
	p->no_more = text->len == 0 && !err->code;
	p->err = *err;
	if (p->page.failed)
		err_nomem(&p->err, "a page of jobs");
	reply_wake(p->reply);
}

/* Asks for older jobs than those told so far. */
static enum reply_part ask_page(struct list_reply *p)
{
	struct store_filter f = p->l.filter;

	f.limit = PAGE;
	f.before_id = p->next_id + 1;
	p->asked = true;
	if (ops_ask(p->d, STORE_LIST, 0, &f, page_came, p, 0, &p->err))
		p->asked = false;
	return p->asked ? REPLY_WAITS : REPLY_COMPLETE;
}

/* The next job of the page. False: it has no more. */
static bool take_line(struct list_reply *p, const char **out_line, size_t *out_len, uint64_t *out_id)
{
	static const char before_id[] = "{\"job\":\"";
	const char *line = strbuf_text(&p->page) + p->page_at, *end;

	if (p->page_at >= p->page.len)
		return false;
	end = strchr(line, '\n');
	*out_line = line;
	*out_len = end ? (size_t)(end - line) : strlen(line);
	/* sscanf() would measure all of the text that is left, for every line */
	*out_id = strncmp(line, before_id, sizeof before_id - 1)
			  ? 0
			  : strtoull(line + sizeof before_id - 1, NULL, 10);
	p->page_at += *out_len + 1;
	return true;
}

/* Looks at one job. REPLY_COMPLETE: there is no job left, or one more than asked for. */
static enum reply_part look_at_live(struct list_reply *p)
{
	const struct job *job = jobs_cursor_next(&p->d->jobs, &p->cursor);

	if (!job)
		p->no_more = true;
	else if (matches(&p->l, job) && p->n == p->l.filter.limit)
		return REPLY_COMPLETE;
	else if (matches(&p->l, job))
		put_live(p, job);
	return job ? REPLY_MORE : REPLY_COMPLETE;
}

static enum reply_part look_at_any(struct list_reply *p)
{
	const struct job *job;
	const char *line = NULL;
	size_t len = 0;
	uint64_t id = p->next_id;
	bool from_page = take_line(p, &line, &len, &id);

	if (!from_page && (id == 0 || p->no_more)) {
		p->no_more = true;
		return REPLY_COMPLETE;
	}
	job = id ? jobs_find(&p->d->jobs, id) : NULL;
	if (!job && !from_page)
		return ask_page(p);
	p->next_id = id ? id - 1 : 0;
	if (job && !matches(&p->l, job))
		return REPLY_MORE;
	if (p->n == p->l.filter.limit)
		return REPLY_COMPLETE;
	if (job)
		put_live(p, job);
	else
		put_text(p, line, len);
	return REPLY_MORE;
}

static enum reply_part make_part(void *owner, struct strbuf *out)
{
	struct list_reply *p = owner;
	int64_t until_ns = clock_monotonic_ns() + PART_NS;
	enum reply_part state = p->err.code ? REPLY_COMPLETE : REPLY_MORE;

	p->w.out = out;
	if (!p->begun) {
		p->begun = true;
		reply_head(&p->w, out, p->id);
		json_kv_open(&p->w, "jobs", '[');
		if (p->live_only)
			jobs_cursor_open(&p->d->jobs, &p->cursor, false);
	}
	while (state == REPLY_MORE && out->len < PART_BYTES && clock_monotonic_ns() < until_ns)
		state = p->live_only ? look_at_live(p) : look_at_any(p);
	if (state != REPLY_COMPLETE)
		return state;
	json_close(&p->w, ']');
	json_kv_bool(&p->w, "more", !p->no_more);
	if (p->err.code) /* the beginning has gone out: it cannot be an error any more */
		json_kv_string(&p->w, "incomplete", p->err.text);
	json_close(&p->w, '}');
	strbuf_puts(out, "\n");
	return REPLY_COMPLETE;
}

static void release(void *owner)
{
	struct list_reply *p = owner;

	jobs_cursor_close(&p->d->jobs, &p->cursor);
	p->released = true;
	if (p->asked) /* page_came() frees it */
		return;
	strbuf_release(&p->page);
	free(p);
}

/* The states for the store, as it reads them. */
static void join_states(struct listing *l)
{
	for (int s = 0; s < N_JOB_STATES; s++) {
		size_t used = strlen(l->filter.state);

		if (l->state[s])
			snprintf(l->filter.state + used, sizeof l->filter.state - used, "%s%s",
				 used ? "," : "", job_state_name[s]);
	}
}

void op_list(struct request *r)
{
	struct reply_source source = { .make = make_part, .release = release };
	struct list_reply *p;
	struct listing l;
	size_t n_states = 0;

	if (!read_listing(r, &l))
		return;
	for (int s = 0; s < N_JOB_STATES; s++)
		n_states += l.state[s];
	p = mem_calloc(1, sizeof *p);
	if (!p) {
		reply_error(r, "internal", NULL, NULL, "out of memory");
		return;
	}
	*p = (struct list_reply){ .d = r->d, .l = l };
	p->live_only = !l.any_state && n_states == (size_t)l.state[JOB_QUEUED] + l.state[JOB_RUNNING];
	if (!l.filter.before_id || l.filter.before_id > r->d->next_id)
		p->l.filter.before_id = r->d->next_id; /* a job that comes later is not part of it */
	p->next_id = p->l.filter.before_id - 1;
	join_states(&p->l);
	memcpy(p->id, r->id, sizeof p->id);
	p->reply = conn_hold(r->conn);
	if (!p->reply) {
		free(p);
		return;
	}
	source.owner = p;
	reply_stream(p->reply, &source);
}
