/* Replies: the members every one has, errors, replies that come later, and what the server says by itself. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/version.h"
#include "scheduler/daemon/ops/ops.h"

static void head(struct strbuf *out, struct json_writer *w, const char *id, bool ok)
{
	json_begin(w, out, false);
	json_open(w, '{');
	json_kv_int(w, "v", 1);
	if (*id) {
		json_put_key(w, "id");
		json_put_raw(w, id);
	}
	json_kv_bool(w, "ok", ok);
}

static void begin(struct strbuf *out, struct json_writer *w, const char *id, bool ok)
{
	strbuf_reset(out);
	head(out, w, id, ok);
}

void reply_head(struct json_writer *w, struct strbuf *out, const char *id)
{
	head(out, w, id, true);
}

void reply_begin(struct request *r)
{
	begin(&r->d->out, &r->w, r->id, true);
}

/* False: there was no memory for all of it. The connection ends then, or replies would no longer match
 * requests. */
static bool finish(struct strbuf *out, struct json_writer *w)
{
	json_close(w, '}');
	strbuf_puts(out, "\n");
	return !out->failed;
}

void reply_send(struct request *r, uint64_t ticket)
{
	if (finish(&r->d->out, &r->w))
		conn_reply(r->conn, r->d->out.text, r->d->out.len, ticket);
	else
		conn_close(r->conn);
}

static void put_error(struct json_writer *w, const char *code, const char *message, const char *field,
		      const char *hint)
{
	json_kv_open(w, "error", '{');
	json_kv_string(w, "code", code);
	json_kv_string(w, "message", message);
	if (field)
		json_kv_string(w, "field", field);
	if (hint)
		json_kv_string(w, "hint", hint);
	json_close(w, '}');
}

void reply_error(struct request *r, const char *code, const char *field, const char *hint, const char *fmt,
		 ...)
{
	char message[600];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof message, fmt, args);
	va_end(args);
	tally_error(&r->d->tally, code);
	begin(&r->d->out, &r->w, r->id, false);
	put_error(&r->w, code, message, field, hint);
	reply_send(r, r->ticket);
}

void reply_err(struct request *r, const struct err *err, const char *field)
{
	static const char *const code[] = {
		[ERR_NOMEM] = "internal",     [ERR_ARG] = "bad_field",     [ERR_IO] = "internal",
		[ERR_FORMAT] = "bad_field",   [ERR_NUMERIC] = "bad_field", [ERR_UNSTABLE] = "bad_field",
		[ERR_NODATA] = "no_model",    [ERR_BUSY] = "queue_full",   [ERR_NOTFOUND] = "unknown_job",
		[ERR_PERM] = "not_permitted",
	};

	reply_error(r, err->code > ERR_NONE && err->code <= ERR_PERM ? code[err->code] : "internal", field,
		    NULL, "%s", err->text);
}

struct later *later_new(struct request *r)
{
	struct later *l = mem_calloc(1, sizeof *l);

	if (!l) {
		reply_error(r, "internal", NULL, NULL, "out of memory");
		return NULL;
	}
	l->d = r->d;
	memcpy(l->id, r->id, sizeof l->id);
	l->reply = conn_hold(r->conn);
	if (!l->reply) {
		free(l);
		return NULL;
	}
	return l;
}

void later_begin(struct later *l, struct json_writer *w)
{
	begin(&l->d->out, w, l->id, true);
}

void later_send(struct later *l, struct json_writer *w)
{
	static const char memory[] =
		"{\"v\":1,\"ok\":false,\"error\":{\"code\":\"internal\",\"message\":\"out of "
		"memory\"}}\n";

	if (finish(&l->d->out, w))
		reply_fill(l->reply, l->d->out.text, l->d->out.len);
	else
		reply_fill(l->reply, memory, sizeof memory - 1);
	free(l);
}

void later_error(struct later *l, const char *code, const char *message)
{
	struct json_writer w;

	tally_error(&l->d->tally, code);
	begin(&l->d->out, &w, l->id, false);
	put_error(&w, code, message, NULL, NULL);
	later_send(l, &w);
}

void put_job(struct request *r, const struct job *job)
{
	struct job_live live;

	estimates_live(r->d, job, &live);
	json_put_key(&r->w, "job");
	job_json(&r->w, &job->row, &live);
}

void reply_job(struct request *r, const struct job *job, uint64_t ticket)
{
	reply_begin(r);
	put_job(r, job);
	reply_send(r, ticket);
}

/* ---- what the server says by itself ---- */

const char *ops_greeting(void *owner, struct conn *c, size_t *out_len)
{
	struct daemon *d = owner;
	struct json_writer w;

	(void)c;
	strbuf_reset(&d->text);
	json_begin(&w, &d->text, false);
	json_open(&w, '{');
	json_kv_int(&w, "v", 1);
	json_kv_string(&w, "greeting", "postriderd");
	json_kv_string(&w, "version", postrider_version);
	json_kv_string(&w, "policy", d->setup->config->policy);
	json_kv_int(&w, "max_line", SERVER_MAX_LINE);
	json_close(&w, '}');
	strbuf_puts(&d->text, "\n");
	*out_len = d->text.failed ? 0 : d->text.len;
	return strbuf_text(&d->text);
}

const char *ops_refusal(void *owner, const char *code, const char *message, size_t *out_len)
{
	struct daemon *d = owner;
	struct json_writer w;

	tally_error(&d->tally, code);
	begin(&d->text, &w, "", false);
	put_error(&w, code, message, NULL, NULL);
	*out_len = finish(&d->text, &w) ? d->text.len : 0;
	return strbuf_text(&d->text);
}
