/* One line in, one reply out: the table of ops, who may use each and which members it knows, and the readers
 * of members that only requests have. Each op has a file: op_submit.c, op_status.c, op_list.c, op_report.c,
 * op_watch.c, op_hello.c, op_stats.c, op_admin.c. Replies are in reply.c. */
#include "scheduler/daemon/ops/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text/text.h"

#define WHAT_IF                                                                                              \
	"type", "params", "cpus", "gpus", "slo_s", "deadline", "confidence", "batches", "best_effort",       \
		"chance", "value", "epochs", "priority", "may_stop", "max_memory_mb"

enum who { ANYBODY, OWNER /* of the job that "job" names, and admins */, ADMIN };

static const struct op {
	const char *name;
	enum who may;
	void (*run)(struct request *r);
	const char *known[30]; /* members, beside v, op and id */
} op_all[] = {
	{ "predict", ANYBODY, op_predict, { WHAT_IF } },
	{ "submit",
	  ANYBODY,
	  op_submit,
	  { WHAT_IF, "mode", "key", "tag", "dry_run", "watch", "after", "after_ok", "retry", "index" } },
	{ "status", ANYBODY, op_status, { "job" } },
	{ "list", ANYBODY, op_list, { "state", "type", "mine", "limit", "before" } },
	{ "explain", ANYBODY, op_explain, { "job" } },
	{ "output", ANYBODY, op_output, { "job" } },
	{ "cancel", OWNER, op_cancel, { "job" } },
	{ "started", OWNER, op_started, { "job" } },
	{ "finished", OWNER, op_finished, { "job", "exit_code", "accuracy", "run_s" } },
	{ "progress", OWNER, op_progress, { "job", "done" } },
	{ "watch", ANYBODY, op_watch, { "job" } },
	{ "unwatch", ANYBODY, op_unwatch, { NULL } },
	{ "hello", ANYBODY, op_hello, { NULL } },
	{ "stats", ANYBODY, op_stats, { "history" } },
	{ "token", ANYBODY, op_token, { "days", "revoke" } },
	{ "reload", ADMIN, op_reload, { NULL } },
	{ "retrain", ADMIN, op_retrain, { "type" } },
	{ "models", ANYBODY, op_models, { NULL } },
	{ "rollback", ADMIN, op_rollback, { "version", "type" } },
	{ "drain", ADMIN, op_drain, { "stop", "off" } },
};
enum { N_OPS = sizeof op_all / sizeof op_all[0] };

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
	const char *known[32] = { NULL };
	size_t n = 0;

	for (; op->known[n]; n++)
		known[n] = op->known[n];
	for (size_t i = 0; i < 3; i++)
		known[n + i] = common[i];
	for (const struct json *m = json_first(r->v); m; m = json_next(m)) {
		const char *key = json_key(m), *near;
		char shown[64], hint[80];
		size_t i = 0;

		/* as in json_get(): most differ in their first byte */
		while (known[i] && (known[i][0] != key[0] || strcmp(known[i], key) != 0))
			i++;
		if (known[i])
			continue;
		near = text_nearest(key, known);
		if (near)
			snprintf(hint, sizeof hint, "did you mean '%s'?", near);
		text_printable(key, shown, sizeof shown);
		reply_error(r, "unknown_field", shown, near ? hint : NULL, "'%s' has no member '%s'",
			    op->name, shown);
		return false;
	}
	return true;
}

/* False: answered. */
static bool may_use(struct request *r, const struct op *op)
{
	if (op->may == ADMIN && !request_admin(r)) {
		reply_error(r, "not_permitted", NULL, NULL, "only admins may do that");
		return false;
	}
	if (op->may != OWNER)
		return true;
	r->job = request_job(r, NULL);
	if (!r->job || conn_uid(r->conn) == r->job->row.uid || request_admin(r))
		return r->job != NULL;
	reply_error(r, "not_permitted", NULL, NULL,
		    "job %llu belongs to uid %u; only its owner or an admin may do that",
		    (unsigned long long)r->job->id, (unsigned)r->job->row.uid);
	return false;
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
	fields_open(&r->f, "", "", r->v, NULL, &r->err);
	r->f.numbers_only = true;
	op = find_op(name);
	if (!op)
		unknown_op(r, name);
	else if (check_members(r, op) && may_use(r, op))
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

/* ---- members ---- */

bool request_fine(struct request *r)
{
	char field[64];

	if (!r->f.rc)
		return true;
	/* "batches[2]: reason" is about the member "batches" */
	snprintf(field, sizeof field, "%.*s", (int)strcspn(r->err.text, ":[."), r->err.text);
	reply_error(r, r->f.rc == -ERR_NOMEM ? "internal" : "bad_field", field, NULL, "%s", r->err.text);
	return false;
}

void request_text(struct request *r, const char *name, size_t max, const char **out)
{
	const struct json *v = fields_get(&r->f, name);
	const char *s = json_string(v, "");

	if (v && (!*s || strlen(s) > max))
		fields_fail(&r->f, ERR_ARG, name, "must be a string of 1 to %zu bytes", max);
	else if (v)
		*out = s;
}

void request_id(struct request *r, const char *name, uint64_t *out)
{
	const struct json *v = fields_get(&r->f, name);
	double x = json_number(v, 0.0);

	if (x >= 1.0 && x <= (double)FIELDS_MAX_WHOLE && x == floor(x))
		*out = (uint64_t)x;
	else if (!text_uint64(json_string(v, ""), out) || *out == 0)
		fields_fail(&r->f, ERR_ARG, name, "must be the number of a job, digits in quotes");
}

bool request_admin(const struct request *r)
{
	const struct config *c = r->d->setup->config;

	if (config_is_admin(c, conn_uid(r->conn)))
		return true;
	for (size_t i = 0; i < c->admin_groups.n; i++) {
		if (conn_in_group(r->conn, c->admin_groups.id[i]))
			return true;
	}
	return false;
}

struct job *request_job(struct request *r, uint64_t *out_old)
{
	struct job *job = NULL;
	uint64_t id = 0;

	if (out_old)
		*out_old = 0;
	request_id(r, "job", &id);
	if (!request_fine(r))
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
