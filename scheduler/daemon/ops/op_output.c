/* `output`: the epochs and the last lines of a job, for its owner and admins. A log may be long, and on a
 * slow disk, so a thread reads it. It is started by the first question. See ops.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/orders.h"
#include "scheduler/daemon/ops/ops.h"
#include "scheduler/process/output.h"
#include "scheduler/process/record_format.h"

#define SHOWN_BYTES 16384 /* of each log */

struct outputs {
	struct orders orders; /* first */
	struct event *back;
};

struct look {
	struct order order; /* first */
	struct later *later; /* NULL: answered */
	char dir[4096];
	struct job_output from; /* has what it takes from the job type, which a reload may free */
	struct output_curve curve;
	struct strbuf text[2];
	struct err err;
};

static const char *const log_name[2] = { JOB_STDOUT, JOB_STDERR };

/* ---- the thread ---- */

static void read_logs(struct orders *q, struct order *order)
{
	struct look *l = (struct look *)order;

	(void)q;
	output_curve_read(&l->from, &l->curve, &l->err);
	for (int i = 0; i < 2; i++)
		output_tail(l->dir, log_name[i], SHOWN_BYTES, &l->text[i]);
}

static void free_look(struct order *order)
{
	struct look *l = (struct look *)order;

	if (l->later)
		later_error(l->later, "draining", "the daemon is stopping");
	job_output_release(&l->from);
	output_curve_release(&l->curve);
	strbuf_release(&l->text[0]);
	strbuf_release(&l->text[1]);
	free(l);
}

/* ---- the loop ---- */

static void answer(struct look *l)
{
	struct later *later = l->later;
	struct json_writer w;

	l->later = NULL;
	if (l->err.code || l->text[0].failed || l->text[1].failed) {
		later_error(later, "internal", l->err.code ? l->err.text : "out of memory");
		return;
	}
	later_begin(later, &w);
	json_kv_open(&w, "curve", '[');
	for (size_t i = 0; i < l->curve.n; i++) {
		const struct output_point *p = &l->curve.point[i];

		json_open(&w, '{');
		json_kv_number(&w, "epoch", p->epoch);
		json_kv_number(&w, "accuracy", p->accuracy);
		json_kv_number(&w, "loss", p->loss);
		json_kv_number(&w, "elapsed_s", p->elapsed_s);
		json_close(&w, '}');
	}
	json_close(&w, ']');
	json_kv_number(&w, "epochs", l->from.told);
	for (int i = 0; i < 2; i++)
		json_kv_string(&w, log_name[i], strbuf_text(&l->text[i]));
	later_send(later, &w);
}

static void on_back(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;
	struct daemon_span span = daemon_span_begin();
	struct order *list = orders_returned(&d->outputs->orders), *o;

	(void)fd;
	(void)what;
	while ((o = order_next(&list))) {
		answer((struct look *)o);
		free_look(o);
	}
	daemon_span_end(d, span);
}

static int outputs_new(struct daemon *d, struct err *err)
{
	static const struct orders_work work = { NULL, read_logs, free_look };
	struct outputs *o = mem_calloc(1, sizeof *o);
	int rc = o ? orders_start(&o->orders, &work, "reading logs", err) : err_nomem(err, "reading logs");

	if (!rc && !(o->back = event_new(d->base, orders_fd(&o->orders), EV_READ | EV_PERSIST, on_back, d))) {
		orders_stop(&o->orders);
		rc = err_nomem(err, "reading logs");
	}
	if (rc) {
		free(o);
		return rc;
	}
	event_add(o->back, NULL);
	d->outputs = o;
	return 0;
}

void outputs_free(struct daemon *d)
{
	if (!d->outputs)
		return;
	event_free(d->outputs->back);
	orders_stop(&d->outputs->orders);
	free(d->outputs);
	d->outputs = NULL;
}

static void look(struct later *later, uint64_t id, const char *type, double epochs)
{
	struct daemon *d = later->d;
	const struct config *c = d->setup->config;
	const struct job_type *t = type ? config_type(c, type) : NULL;
	struct err err = { 0 };
	struct look *l;

	if (!d->outputs && outputs_new(d, &err)) {
		later_error(later, "internal", err.text);
		return;
	}
	l = mem_calloc(1, sizeof *l);
	if (!l) {
		later_error(later, "internal", "out of memory");
		return;
	}
	l->later = later;
	snprintf(l->dir, sizeof l->dir, "%s/jobs/%llu", c->state_dir, (unsigned long long)id);
	if (job_output_init(&l->from, l->dir, t ? &t->result : NULL, epochs, &err)) {
		l->later = NULL;
		later_error(later, "internal", err.text);
		free_look(&l->order);
		return;
	}
	orders_add(&d->outputs->orders, &l->order);
}

/* ---- whose job it is ---- */

struct asker { /* of a job that is no longer in memory */
	struct later *later;
	uid_t uid;
	bool admin;
};

static const char no_right[] = "the output of a job is for its owner and for admins";

static void on_job(void *owner, uint64_t id, const struct strbuf *text, const struct err *err)
{
	struct asker a = *(struct asker *)owner;
	struct json *v = NULL;

	free(owner);
	if (err->code || !text->len || json_parse("job", text->text, text->len, &v, NULL))
		later_error(a.later, err->code ? "internal" : "unknown_job",
			    err->code ? err->text : "there is no such job");
	else if (!a.admin && json_number(json_get(v, "uid"), -1.0) != (double)a.uid)
		later_error(a.later, "not_permitted", no_right);
	else
		look(a.later, id, json_string(json_get(v, "type"), NULL),
		     json_number(json_get(v, "epochs"), NAN));
	json_free(v);
}

void op_output(struct request *r)
{
	uint64_t old;
	struct job *job = request_job(r, &old);
	bool admin = request_admin(r);
	struct later *later;
	struct asker *a;
	struct err err = { 0 };

	if (job && job->row.uid != conn_uid(r->conn) && !admin)
		reply_error(r, "not_permitted", NULL, NULL, "%s", no_right);
	else if (job && (later = later_new(r)))
		look(later, job->id, job->row.type, job->epochs);
	if (job || !old || !(later = later_new(r)))
		return;
	a = mem_alloc(sizeof *a);
	if (a)
		*a = (struct asker){ later, conn_uid(r->conn), admin };
	if (!a) {
		later_error(later, "internal", "out of memory");
	} else if (ops_ask(r->d, STORE_JOB, old, NULL, on_job, a, old, &err)) {
		free(a);
		later_error(later, "internal", err.text);
	}
}
