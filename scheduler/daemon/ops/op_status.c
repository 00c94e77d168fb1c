/* `status` and `explain` of one job. The store's reader is asked about jobs that are no longer in memory. */
#include <stdio.h>
#include <string.h>

#include "scheduler/daemon/ops/ops.h"

static void ask(struct request *r, enum store_question q, uint64_t id, const struct store_filter *f,
		store_answer *fn)
{
	struct later *l = later_new(r);
	struct err err = { 0 };

	if (l && ops_ask(r->d, q, id, f, fn, l, id, &err))
		later_error(l, "internal", err.text);
}

static bool answered_badly(struct later *l, uint64_t id, const struct strbuf *text, const struct err *err)
{
	char message[80];

	if (!err->code && text->len > 0)
		return false;
	snprintf(message, sizeof message, "there is no job %llu", (unsigned long long)id);
	later_error(l, err->code ? "internal" : "unknown_job", err->code ? err->text : message);
	return true;
}

static void answer_status(void *owner, uint64_t id, const struct strbuf *text, const struct err *err)
{
	struct later *l = owner;
	struct json_writer w;

	if (answered_badly(l, id, text, err))
		return;
	later_begin(l, &w);
	json_put_key(&w, "job");
	json_put_raw(&w, strbuf_text(text));
	later_send(l, &w);
}

void op_status(struct request *r)
{
	uint64_t old;
	struct job *job = request_job(r, &old);

	if (job)
		reply_job(r, job, 0);
	else if (old)
		ask(r, STORE_JOB, old, NULL, answer_status);
}

/* {"job":...,"decisions":[...],"estimates":[...]}: its members become the reply's. A job in memory is written
 * as it is now. */
static void answer_explain(void *owner, uint64_t id, const struct strbuf *text, const struct err *err)
{
	struct later *l = owner;
	struct job *job = jobs_find(&l->d->jobs, id);
	const char *history;
	struct job_live live;
	struct json_writer w;

	if (answered_badly(l, id, text, err))
		return;
	history = strstr(strbuf_text(text),
			 ",\"decisions\":["); /* inside a string the quotes would be escaped */
	later_begin(l, &w);
	if (job && history) {
		estimates_live(l->d, job, &live);
		json_put_key(&w, "job");
		job_json(&w, &job->row, &live);
		strbuf_add(w.out, history, strlen(history) - 1);
	} else {
		strbuf_puts(w.out, ",");
		strbuf_add(w.out, strbuf_text(text) + 1, text->len - 2);
	}
	later_send(l, &w);
}

void op_explain(struct request *r)
{
	uint64_t id;
	struct job *job = request_job(r, &id);

	if (job)
		id = job->id;
	if (id)
		ask(r, STORE_EXPLAIN, id, NULL, answer_explain);
}
