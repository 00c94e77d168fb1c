/* Ops that change the daemon, for admins: reload, drain, retrain, rollback; and `models`, which any user may
 * ask. */
#include <string.h>

#include "scheduler/daemon/learn/learning.h"
#include "scheduler/daemon/learn/versions.h"
#include "scheduler/daemon/ops/ops.h"

void op_reload(struct request *r)
{
	struct later *l;
	struct err err = { 0 };

	if (r->d->loader) {
		reply_error(r, "wrong_state", NULL, NULL, "a reload is under way");
		return;
	}
	l = later_new(r);
	if (l && daemon_reload(r->d, l, NULL, &err))
		later_error(l, "internal", err.text);
}

void ops_reload_done(struct later *l, const struct err *err)
{
	struct json_writer w;

	if (err) { /* what is wrong with the files, or with the machine */
		later_error(l, err->code == ERR_NOMEM || err->code == ERR_IO ? "internal" : "bad_field",
			    err->text);
		return;
	}
	later_begin(l, &w);
	json_kv_bool(&w, "reloaded", true);
	json_kv_string(&w, "model", l->d->setup->slot[0].name[0] ? l->d->setup->slot[0].name : NULL);
	later_send(l, &w);
}

/* ---- models ---- */

void op_retrain(struct request *r)
{
	const char *type = NULL;
	struct err err = { 0 };

	request_text(r, "type", JOB_TYPE_MAX_NAME, &type);
	if (!request_fine(r))
		return;
	if (learning_retrain(r->d->learning, type, "asked for", &err)) {
		reply_error(r,
			    err.code == ERR_BUSY  ? "wrong_state"
			    : err.code == ERR_ARG ? "bad_field"
						  : "internal",
			    err.code == ERR_ARG ? "type" : NULL, NULL, "%s", err.text);
		return;
	}
	reply_begin(r);
	json_kv_bool(&r->w, "retraining", true);
	reply_send(r, 0);
}

void op_models(struct request *r)
{
	reply_begin(r);
	learning_models_json(r->d->learning, &r->w);
	reply_send(r, 0);
}

void op_rollback(struct request *r)
{
	uint64_t version = UINT64_MAX;
	const char *type = NULL;
	struct later *l;
	struct err err = { 0 };

	request_text(r, "type", JOB_TYPE_MAX_NAME, &type);
	field_whole(&r->f, "version", 0, VERSIONS_MAX_NUMBER, &version);
	if (!r->f.rc && version == UINT64_MAX)
		fields_fail(&r->f, ERR_ARG, "version",
			    "is needed: the number of a version, 0 for the configuration's");
	if (!request_fine(r))
		return;
	l = later_new(r);
	if (!l || !learning_rollback(r->d->learning, type, (uint32_t)version, l, &err))
		return;
	later_error(l,
		    err.code == ERR_BUSY                              ? "wrong_state"
		    : err.code == ERR_NOTFOUND || err.code == ERR_ARG ? "bad_field"
								      : "internal",
		    err.text);
}

void op_drain(struct request *r)
{
	bool off = false, stop = false;

	field_bool(&r->f, "off", &off);
	field_bool(&r->f, "stop", &stop);
	if (!request_fine(r))
		return;
	if (off && r->d->leaving) {
		reply_error(r, "wrong_state", NULL, NULL, "a signal has asked the daemon to stop");
		return;
	}
	daemon_drain(r->d, !off, (stop || r->d->leaving) && !off);
	reply_begin(r);
	json_kv_bool(&r->w, "draining", r->d->draining);
	json_kv_int(&r->w, "running", (long long)sched_running(r->d->sched));
	reply_send(r, 0);
}
