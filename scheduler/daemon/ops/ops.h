/* What the handlers of the protocol's ops share: one request, its reply, its errors. Read ops.c for the table
 * of ops, docs/PROTOCOL.md for what they mean. */
#ifndef SCHEDULER_DAEMON_OPS_OPS_H
#define SCHEDULER_DAEMON_OPS_OPS_H

#include "scheduler/daemon/daemon.h"

#define OPS_MAX_ID 64 /* bytes of a request's id */

struct request {
	struct daemon *d;
	struct conn *conn;
	const struct json *v;         /* the request object */
	char id[OPS_MAX_ID * 6 + 8];  /* as it is echoed, JSON; "": none */
	struct json_writer w;         /* writes the reply into d->out */
};

/* {"v":1,"id":...,"ok":true, and then the caller's members, until reply_send(). */
void reply_begin(struct request *r);
void reply_send(struct request *r, uint64_t ticket);
/* field and hint may be NULL. */
void reply_error(struct request *r, const char *code, const char *field, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void reply_err(struct request *r, const struct err *err, const char *field); /* the code that suits err->code */

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

/* Members of the request; null is as good as leaving one out. False: it is given and wrong, and that is answered. */
bool request_given(const struct json *v);
bool request_bool(struct request *r, const char *field, bool *out);                    /* false where it is not given */
bool request_text(struct request *r, const char *field, size_t max, const char **out); /* 1 to max bytes; NULL likewise */
bool request_id(struct request *r, const char *field, uint64_t *out); /* of a job; digits as text, or a whole number */
bool request_number(struct request *r, const char *field, double low, double high, double otherwise,
                    double *out); /* in (low, high] */

/* A question to the store's reader, asked when everything collected so far is on disk. As store_ask(). */
int ops_ask(struct daemon *d, enum store_question question, uint64_t job, const struct store_filter *f,
            store_answer *fn, void *owner, uint64_t token, struct err *err);

/* The job that "job" names. False: answered with an error, or (where `old` is not NULL and the job is no longer
 * in memory) *out_old is its id and the caller asks the store. */
struct job *request_job(struct request *r, uint64_t *out_old);
bool request_may_change(struct request *r, const struct job *job); /* owner or admin; else answered */
bool request_admin(const struct request *r);
void put_job(struct request *r, const struct job *job); /* member "job" */

void op_submit(struct request *r);
void op_predict(struct request *r);
void op_status(struct request *r);
void op_explain(struct request *r);
void op_list(struct request *r);
void op_cancel(struct request *r);
void op_started(struct request *r);
void op_finished(struct request *r);
void op_progress(struct request *r);
void op_watch(struct request *r);
void op_unwatch(struct request *r);
void op_hello(struct request *r);
void op_stats(struct request *r);
void op_reload(struct request *r);
void op_retrain(struct request *r);
void op_models(struct request *r);
void op_rollback(struct request *r);
void op_drain(struct request *r);

#endif
