/* `list`: jobs by state, type and owner, the newest first, in pages. Ended jobs come from the store's
 * reader. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/daemon/ops/ops.h"

#define LIST_DEFAULT 100
#define LIST_MAX 1000

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

/* Estimates of all live jobs come from one play: a listing of a thousand would otherwise make a thousand. */
void list_live_of(struct daemon *d, const struct job *job, size_t n_played, struct job_live *out)
{
	const struct sched_estimate *e = job->played < n_played ? &d->estimate[job->played] : NULL;

	*out = (struct job_live){ 0 };
	if (e && d->estimate_id[job->played] == job->id && !isnan(e->end_s)) {
		out->has_estimate = true;
		out->start_s = e->start_s;
		out->end_s = e->end_s;
		out->end_low_s = e->end_low_s;
		out->end_high_s = e->end_high_s;
		out->late = e->late;
	}
	estimates_facts(d, job, out);
}

static bool matches(const struct listing *l, const struct job *job)
{
	const struct store_filter *f = &l->filter;

	return (l->any_state || l->state[job->row.state]) &&
	       (f->uid < 0 || f->uid == (int64_t)job->row.uid) &&
	       (!f->type[0] || !strcmp(f->type, job->row.type)) && (!f->before_id || job->id < f->before_id);
}

/* Only live ones are wanted: they are all in memory. */
static void list_live(struct request *r, const struct listing *l)
{
	size_t n = 0, n_played = estimates_play(r->d);
	const struct job *job = r->d->jobs.live.last;

	reply_begin(r);
	json_kv_open(&r->w, "jobs", '[');
	for (; job && n < l->filter.limit; job = job->before) {
		struct job_live live;

		if (!matches(l, job))
			continue;
		list_live_of(r->d, job, n_played, &live);
		job_json(&r->w, &job->row, &live);
		n++;
	}
	while (job && !matches(l, job))
		job = job->before;
	json_close(&r->w, ']');
	json_kv_bool(&r->w, "more", job != NULL);
	reply_send(r, 0);
}

struct listing_later {
	struct later *later;
	size_t limit;
};

/* Lines of job objects; those still in memory are told as they are now. */
static void answer_list(void *owner, uint64_t token, const struct strbuf *text, const struct err *err)
{
	struct listing_later *ll = owner;
	struct later *l = ll->later;
	const char *line = strbuf_text(text), *end;
	size_t n = 0, n_played;
	struct json_writer w;

	(void)token;
	if (err->code) {
		later_error(l, "internal", err->text);
		free(ll);
		return;
	}
	n_played = estimates_play(l->d);
	later_begin(l, &w);
	json_kv_open(&w, "jobs", '[');
	for (; *line && n < ll->limit; line = end + 1, n++) {
		static const char before_id[] = "{\"job\":\"";
		struct job *job;

		end = strchr(line, '\n');
		if (!end)
			break;
		/* sscanf() would measure all of the text that is left, for every line */
		job = strncmp(line, before_id, sizeof before_id - 1)
			      ? NULL
			      : jobs_find(&l->d->jobs, strtoull(line + sizeof before_id - 1, NULL, 10));
		if (job) {
			struct job_live live;

			list_live_of(l->d, job, n_played, &live);
			job_json(&w, &job->row, &live);
		} else {
			if (n > 0)
				strbuf_puts(w.out, ",");
			strbuf_add(w.out, line, (size_t)(end - line));
			w.need_comma = true;
		}
	}
	json_close(&w, ']');
	json_kv_bool(&w, "more", *line != 0);
	later_send(l, &w);
	free(ll);
}

void op_list(struct request *r)
{
	struct listing l;
	struct listing_later *ll;
	struct err err = { 0 };
	size_t n_states = 0;

	if (!read_listing(r, &l))
		return;
	for (int s = 0; s < N_JOB_STATES; s++)
		n_states += l.state[s];
	if (!l.any_state && n_states == (size_t)l.state[JOB_QUEUED] + l.state[JOB_RUNNING]) {
		list_live(r, &l);
		return;
	}
	for (int s = 0; s < N_JOB_STATES; s++) {
		size_t used = strlen(l.filter.state);

		if (l.state[s])
			snprintf(l.filter.state + used, sizeof l.filter.state - used, "%s%s", used ? "," : "",
				 job_state_name[s]);
	}
	ll = mem_calloc(1, sizeof *ll);
	if (!ll) {
		reply_error(r, "internal", NULL, NULL, "out of memory");
		return;
	}
	ll->limit = l.filter.limit++; /* one more than asked for: it tells whether there are more */
	ll->later = later_new(r);
	if (!ll->later) {
		free(ll);
	} else if (ops_ask(r->d, STORE_LIST, 0, &l.filter, answer_list, ll, 0, &err)) {
		later_error(ll->later, "internal", err.text);
		free(ll);
	}
}
