/* What the ops of the protocol share: one request, its reply, its errors. The table of ops is in ops.c; what
 * they mean is in docs/PROTOCOL.md. */
#ifndef SCHEDULER_DAEMON_OPS_OPS_H
#define SCHEDULER_DAEMON_OPS_OPS_H

#include "common/json/fields.h"
#include "scheduler/daemon/daemon.h"

#define OPS_MAX_ID 64 /* bytes of a request's id */

struct request {
	struct daemon *d;
	struct conn *conn;
	const struct json *v;         /* the request object */
	struct fields f;              /* its members; failures go to err */
	struct err err;
	struct job *job;              /* of ops for the owner of a job; else NULL */
	char id[OPS_MAX_ID * 6 + 8];  /* as it is echoed, JSON; "": none */
	struct json_writer w;         /* writes the reply into d->out */
	uint64_t ticket;              /* an error leaves when this is on disk; 0: at once */
};

/* {"v":1,"id":...,"ok":true, and then the caller's members, until reply_send(). */
void reply_begin(struct request *r);
void reply_send(struct request *r, uint64_t ticket);
/* The same beginning for a reply that is made in parts (net/server.h). */
void reply_head(struct json_writer *w, struct strbuf *out, const char *id);
/* field and hint may be NULL. */
void reply_error(struct request *r, const char *code, const char *field, const char *hint, const char *fmt,
                 ...)
	__attribute__((format(printf, 5, 6)));
/* the code that suits err->code */
void reply_err(struct request *r, const struct err *err, const char *field);

/* A reply that comes later: remembers the id and the place in the order. */
struct later {
	struct daemon *d;
	struct reply *reply;
	char id[OPS_MAX_ID * 6 + 8];
};
struct later *later_new(struct request *r); /* NULL: the request was answered with an error */
void later_begin(struct later *l, struct json_writer *w); /* into d->out, as reply_begin() */
void later_send(struct later *l, struct json_writer *w);  /* frees l */
void later_error(struct later *l, const char *code, const char *message); /* frees l */

/* Members are read with the field_...() of fields.h from r->f, and with these; a member that is absent or
 * null leaves *out as it was. The first failure stays: request_fine() answers it, and says whether there was
 * none. */
bool request_fine(struct request *r);
/* 1 to max bytes; borrowed */
void request_text(struct request *r, const char *name, size_t max, const char **out);
void request_id(struct request *r, const char *name, uint64_t *out); /* of a job, which must be given: digits
                                                                        as text, or a whole number */

/* A question to the store's reader, asked when everything collected so far is on disk. As store_ask(). */
int ops_ask(struct daemon *d, enum store_question question, uint64_t job, const struct store_filter *f,
            store_answer *fn, void *owner, uint64_t token, struct err *err);

/* The members of `stats`, of the tenants the first 100. sums: without those that name types, tenants or what
 * was trained. */
void stats_json(struct daemon *d, struct json_writer *w, bool sums);

/* The job that "job" names. NULL: answered with an error, or (where out_old is not NULL and the job is no
 * longer in memory) *out_old is its id and the caller asks the store. */
struct job *request_job(struct request *r, uint64_t *out_old);
bool request_admin(const struct request *r);
void put_job(struct request *r, const struct job *job); /* member "job" */
void reply_job(struct request *r, const struct job *job, uint64_t ticket); /* the job alone */

void op_submit(struct request *r);
void op_predict(struct request *r);
void op_status(struct request *r);
void op_explain(struct request *r);
void op_output(struct request *r);
void outputs_free(struct daemon *d); /* its thread, if there is one */
void op_list(struct request *r);
void op_cancel(struct request *r);
void op_started(struct request *r);
void op_finished(struct request *r);
void op_progress(struct request *r);
void op_watch(struct request *r);
void op_unwatch(struct request *r);
void op_hello(struct request *r);
void op_stats(struct request *r);
void op_token(struct request *r);
void op_reload(struct request *r);
void op_retrain(struct request *r);
void op_models(struct request *r);
void op_rollback(struct request *r);
void op_drain(struct request *r);

#endif
