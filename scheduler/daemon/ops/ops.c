/* One line in, one reply out: the table of ops, the members each one knows, and errors. The handlers are in
 * ops_submit.c, ops_job.c and ops_daemon.c. */
#include "scheduler/daemon/ops/ops.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text/text.h"

static const struct op {
	const char *name;
	void (*run)(struct request *r);
	const char *known[20]; /* members, beside v, op and id */
} op_all[] = {
	{ "predict",
	  op_predict,
	  { "type", "params", "cpus", "slo_s", "deadline", "confidence", "batches", "best_effort", "epochs",
	    "priority", "may_stop", "max_memory_mb" } },
	{ "submit",
	  op_submit,
	  { "type", "params", "cpus", "slo_s", "deadline", "confidence", "batches", "best_effort", "epochs",
	    "priority", "may_stop", "max_memory_mb", "mode", "key", "tag", "dry_run", "watch" } },
	{ "status", op_status, { "job" } },
	{ "list", op_list, { "state", "type", "mine", "limit", "before" } },
	{ "explain", op_explain, { "job" } },
	{ "cancel", op_cancel, { "job" } },
	{ "started", op_started, { "job" } },
	{ "finished", op_finished, { "job", "exit_code", "accuracy", "run_s" } },
	{ "progress", op_progress, { "job", "done" } },
	{ "watch", op_watch, { "job" } },
	{ "unwatch", op_unwatch, { NULL } },
	{ "hello", op_hello, { NULL } },
	{ "stats", op_stats, { NULL } },
	{ "reload", op_reload, { NULL } },
	{ "retrain", op_retrain, { NULL } },
	{ "models", op_models, { NULL } },
	{ "rollback", op_rollback, { "version" } },
	{ "drain", op_drain, { "stop", "off" } },
};
enum { N_OPS = sizeof op_all / sizeof op_all[0] };

/* ---- replies ---- */

static void begin(struct strbuf *out, struct json_writer *w, const char *id, bool ok)
{
	strbuf_reset(out);
	json_begin(w, out, false);
	json_open(w, '{');
	json_kv_int(w, "v", 1);
	if (*id) {
		json_put_key(w, "id");
		json_put_raw(w, id);
	}
	json_kv_bool(w, "ok", ok);
}

void reply_begin(struct request *r)
{
	begin(&r->d->out, &r->w, r->id, true);
}

/* What could not be written for want of memory is no reply: the connection ends instead of being out of step. */
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
	json_put_key(w, "error");
	json_open(w, '{');
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
	begin(&r->d->out, &r->w, r->id, false);
	put_error(&r->w, code, message, field, hint);
	reply_send(r, 0);
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

	begin(&l->d->out, &w, l->id, false);
	put_error(&w, code, message, NULL, NULL);
	later_send(l, &w);
}

/* ---- requests ---- */

/* The id as it will be echoed; false: it is none. */
static bool take_id(struct request *r, const struct json *id)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	bool good = true;

	r->id[0] = 0;
	if (json_type(id) == JSON_ABSENT || json_type(id) == JSON_NULL)
		return true;
	if (json_type(id) == JSON_NUMBER) {
		text_shortest(json_number(id, 0.0), r->id);
		return true;
	}
	if (json_type(id) != JSON_STRING || strlen(json_string(id, "")) > OPS_MAX_ID)
		return false;
	json_begin(&w, &text, false);
	json_put_string(&w, json_string(id, ""));
	if (text.failed || text.len >= sizeof r->id)
		good = false;
	else
		memcpy(r->id, text.text, text.len + 1);
	strbuf_release(&text);
	return good;
}

static const struct op *find_op(const char *name)
{
	for (size_t i = 0; i < N_OPS; i++) {
		if (!strcmp(op_all[i].name, name))
			return &op_all[i];
	}
	return NULL;
}

static void unknown_op(struct request *r, const char *given)
{
	const char *name[N_OPS + 1] = { NULL }, *near;
	char shown[64], hint[80];

	for (size_t i = 0; i < N_OPS; i++)
		name[i] = op_all[i].name;
	near = text_nearest(given, name);
	if (near)
		snprintf(hint, sizeof hint, "did you mean '%s'?", near);
	reply_error(r, "unknown_op", "op", near ? hint : NULL, "there is no op '%s'",
		    text_printable(given, shown, sizeof shown));
}

/* True: every member is one that the op knows. */
static bool check_members(struct request *r, const struct op *op)
{
	static const char *const common[] = { "v", "op", "id" };
	const char *known[24] = { NULL };
	size_t n = 0;

	for (; op->known[n]; n++)
		known[n] = op->known[n];
	for (size_t i = 0; i < 3; i++)
		known[n + i] = common[i];
	for (const struct json *m = json_first(r->v); m; m = json_next(m)) {
		const char *key = json_key(m), *near;
		char shown[64], hint[80];
		size_t i = 0;

		while (known[i] && strcmp(known[i], key))
			i++;
		if (known[i])
			continue;
		near = text_nearest(key, known);
		if (near)
			snprintf(hint, sizeof hint, "did you mean '%s'?", near);
		text_printable(key, shown, sizeof shown);
		reply_error(r, "unknown_field", shown, near ? hint : NULL, "'%s' knows no member '%s'",
			    op->name, shown);
		return false;
	}
	return true;
}

static void run(struct request *r)
{
	const struct op *op;
	const char *name;

	if (json_type(r->v) != JSON_OBJECT) {
		reply_error(r, "bad_json", NULL, NULL, "a request is a JSON object");
		return;
	}
	if (!take_id(r, json_get(r->v, "id"))) {
		reply_error(r, "bad_field", "id", NULL, "need a number, or a string of at most %d bytes",
			    OPS_MAX_ID);
		return;
	}
	if (json_type(json_get(r->v, "v")) != JSON_ABSENT && json_number(json_get(r->v, "v"), NAN) != 1.0) {
		reply_error(r, "bad_version", "v", NULL, "this daemon speaks version 1");
		return;
	}
	name = json_string(json_get(r->v, "op"), NULL);
	if (!name) {
		reply_error(r, "bad_field", "op", NULL, "need the name of an op, as text");
		return;
	}
	op = find_op(name);
	if (!op)
		unknown_op(r, name);
	else if (check_members(r, op))
		op->run(r);
}

void ops_line(void *owner, struct conn *c, char *line, size_t len)
{
	struct request r = { .d = owner, .conn = c };
	struct err err = { 0 };
	struct json *v = NULL;

	if (json_parse("request", line, len, &v, &err)) {
		reply_error(&r, err.code == ERR_NOMEM ? "internal" : "bad_json", NULL, NULL, "%s", err.text);
		return;
	}
	r.v = v;
	run(&r);
	json_free(v);
}

/* ---- what handlers share ---- */

bool request_given(const struct json *v)
{
	return json_type(v) != JSON_ABSENT && json_type(v) != JSON_NULL;
}

/* A number within (low, high], or `otherwise` where it is not given. False: answered. */
bool request_number(struct request *r, const char *field, double low, double high, double otherwise,
		    double *out)
{
	const struct json *v = json_get(r->v, field);
	double x = json_number(v, NAN);

	*out = otherwise;
	if (!request_given(v))
		return true;
	if (!(x > low && x <= high)) {
		reply_error(r, "bad_field", field, NULL, "%s: need a number above %g, at most %g", field, low,
			    high);
		return false;
	}
	*out = x;
	return true;
}

bool request_bool(struct request *r, const char *field, bool *out)
{
	const struct json *v = json_get(r->v, field);

	*out = json_bool(v, false);
	if (!request_given(v) || json_type(v) == JSON_BOOL)
		return true;
	reply_error(r, "bad_field", field, NULL, "%s: need true or false", field);
	return false;
}

/* Text of at most `max` bytes, NULL where it is not given. */
bool request_text(struct request *r, const char *field, size_t max, const char **out)
{
	const struct json *v = json_get(r->v, field);

	*out = json_string(v, NULL);
	if (!request_given(v) || (*out && **out && strlen(*out) <= max))
		return true;
	reply_error(r, "bad_field", field, NULL, "%s: need text of 1 to %zu bytes", field, max);
	return false;
}

/* An id is text; a whole number that a double holds exactly is as good. */
bool request_id(struct request *r, const char *field, uint64_t *out)
{
	const struct json *v = json_get(r->v, field);
	double x = json_number(v, 0.0);

	if (x >= 1.0 && x <= 9007199254740992.0 && x == floor(x)) {
		*out = (uint64_t)x;
		return true;
	}
	if (text_uint64(json_string(v, ""), out) && *out > 0)
		return true;
	reply_error(r, "bad_field", field, NULL, "%s: need the id of a job, digits as text", field);
	return false;
}

bool request_admin(const struct request *r)
{
	const struct config *c = r->d->setup->config;
	uid_t uid = conn_uid(r->conn);

	if (uid == 0 || uid == geteuid())
		return true;
	for (size_t i = 0; i < c->n_admin_uids; i++) {
		if (c->admin_uid[i] == uid)
			return true;
	}
	for (size_t i = 0; i < c->n_admin_gids; i++) {
		if (conn_in_group(r->conn, c->admin_gid[i]))
			return true;
	}
	return false;
}

bool request_may_change(struct request *r, const struct job *job)
{
	if (conn_uid(r->conn) == job->row.uid || request_admin(r))
		return true;
	reply_error(r, "not_permitted", NULL, NULL,
		    "job %llu belongs to uid %u; only its owner or an admin may do that",
		    (unsigned long long)job->id, (unsigned)job->row.uid);
	return false;
}

struct job *request_job(struct request *r, uint64_t *out_old)
{
	struct job *job = NULL;
	uint64_t id;

	if (out_old)
		*out_old = 0;
	if (!request_id(r, "job", &id))
		return NULL;
	if (id < r->d->next_id)
		job = jobs_find(&r->d->jobs, id);
	if (job)
		return job;
	if (id < r->d->next_id && out_old)
		*out_old = id;
	else if (id < r->d->next_id)
		reply_error(r, "wrong_state", "job", NULL, "job %llu has ended", (unsigned long long)id);
	else
		reply_error(r, "unknown_job", "job", NULL, "there is no job %llu", (unsigned long long)id);
	return NULL;
}

void put_job(struct request *r, const struct job *job)
{
	struct job_live live;

	estimates_live(r->d, job, &live);
	json_put_key(&r->w, "job");
	job_json(&r->w, &job->row, &live);
}

/* ---- what the server says itself ---- */

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
	json_kv_string(&w, "version", DAEMON_VERSION);
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

	begin(&d->text, &w, "", false);
	put_error(&w, code, message, NULL, NULL);
	*out_len = finish(&d->text, &w) ? d->text.len : 0;
	return strbuf_text(&d->text);
}
