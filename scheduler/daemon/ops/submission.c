/* Reading what `submit` and `predict` ask for. See submission.h. */
#include "scheduler/daemon/ops/submission.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/daemon/ops/decision_json.h"

#define SLO_MIN_S 1e-6
#define SLO_MAX_S 3e9 /* a century */
#define PRIORITY_MAX 100
#define RETRY_MAX 100
#define VALUE_MIN 0.001
#define VALUE_MAX 1000.0

bool submission_read_handling(struct request *r, struct submission *out)
{
	out->mode = "run";
	request_text(r, "mode", 16, &out->mode);
	request_text(r, "key", JOBS_MAX_KEY, &out->key);
	request_text(r, "tag", JOBS_MAX_TAG, &out->tag);
	field_bool(&r->f, "dry_run", &out->dry_run);
	field_bool(&r->f, "watch", &out->watch);
	if (!r->f.rc && !executor_find(out->mode))
		fields_fail(&r->f, ERR_ARG, "mode", "must be \"run\" or \"advise\"");
	return request_fine(r);
}

static void unknown_type(struct request *r, const char *name)
{
	const struct config *c = r->d->setup->config;
	const char *near = config_nearest_type(c, name);
	char shown[80], hint[240] = "there are: ";
	size_t used = strlen(hint);

	if (near)
		snprintf(hint, sizeof hint, "did you mean '%s'?", near);
	for (size_t i = 0; !near && i < c->n_types && used < sizeof hint; i++)
		used += (size_t)snprintf(hint + used, sizeof hint - used, "%s%s", i ? ", " : "",
					 c->type[i].name);
	reply_error(r, "unknown_type", "type", near || c->n_types ? hint : NULL, "there is no job type '%s'",
		    text_printable(name, shown, sizeof shown));
}

static bool in_group(void *owner, uid_t uid, gid_t gid)
{
	(void)uid;
	return conn_in_group(owner, gid);
}

/* False: answered. */
static bool read_objective(struct request *r, struct submission *out)
{
	const struct json *v = fields_get(&r->f, "deadline");
	int64_t at_ns = 0;

	out->slo_s = NAN;
	field_number(&r->f, "slo_s", SLO_MIN_S, SLO_MAX_S, &out->slo_s);
	if (!v || r->f.rc)
		return request_fine(r);
	if (!isnan(out->slo_s)) {
		fields_fail(&r->f, ERR_ARG, "deadline", "slo_s is given too; one of them is enough");
	} else if (!text_utc_parse(json_string(v, ""), &at_ns)) {
		reply_error(r, "bad_field", "deadline", "for example 2026-11-16T10:05:00Z",
			    "deadline: must be a moment as in RFC 3339");
		return false;
	}
	if (isnan(out->slo_s)) {
		out->slo_s = (double)(at_ns - out->now_ns) / 1e9;
		if (out->slo_s <= 0.0)
			fields_fail(&r->f, ERR_ARG, "deadline", "it is %.0f s ago", -out->slo_s);
	}
	return request_fine(r);
}

/* Whose job it is, and how urgent: only admins put one before others'. False: answered. */
static bool read_priority(struct request *r, struct submission *out)
{
	struct daemon *d = r->d;
	int at = config_tenant_of(d->setup->config, conn_uid(r->conn), in_group, r->conn);
	struct err err = { 0 };
	double priority = 0.0;
	char own[4 + TEXT_NUMBER] = "uid ";

	field_number(&r->f, "priority", -PRIORITY_MAX, PRIORITY_MAX, &priority);
	if (!r->f.rc && priority != floor(priority))
		fields_fail(&r->f, ERR_ARG, "priority", "must be a whole number from %d to %d", -PRIORITY_MAX,
			    PRIORITY_MAX);
	field_bool(&r->f, "may_stop", &out->may_stop);
	if (!request_fine(r))
		return false;
	if (priority > 0.0 && !request_admin(r)) {
		reply_error(r, "not_permitted", "priority", NULL, "only admins may put a job before others");
		return false;
	}
	out->priority = (int)priority;
	text_decimal(false, conn_uid(r->conn), 0, own + 4);
	if (tenants_named(&d->tenants, d->setup->config, d->sched, out->now_ns,
			  at >= 0 ? d->setup->config->tenant[at].name : own, &out->tenant, &err)) {
		reply_err(r, &err, NULL);
		return false;
	}
	return true;
}

static void read_epochs(struct request *r, struct submission *out)
{
	const struct json *v = fields_get(&r->f, "epochs");

	if (v && !out->type->epochs_param)
		fields_fail(&r->f, ERR_ARG, "epochs", "jobs of this type have none");
	else if (v && json_type(v) != JSON_NUMBER && json_type(v) != JSON_STRING)
		fields_fail(&r->f, ERR_ARG, "epochs", "must be a number, or a range as text: \"3..20\"");
	out->input.epochs = v;
}

/* The chance of a request that says none: its tenant's, the configuration's or the policy's; 0: none. */
static double default_chance(const struct request *r)
{
	const struct config *c = r->d->setup->config;
	int at = config_tenant_of(c, conn_uid(r->conn), in_group, r->conn);
	double chance = at >= 0 ? c->tenant[at].chance : c->chance;

	return chance > 0.0 ? chance : r->d->setup->policy.chance;
}

/* What it is worth beside others. A job may step back; above 1 it takes from its tenant's budget, for a value
 * costs others what it brings to this one. Admins are not asked, and their jobs count. False: answered. */
static bool read_value(struct request *r, struct submission *out)
{
	const struct config *c = r->d->setup->config;
	int at = config_tenant_of(c, conn_uid(r->conn), in_group, r->conn);
	double budget = at >= 0 ? c->tenant[at].value_budget : 0.0, left;

	out->value = NAN;
	field_number(&r->f, "value", VALUE_MIN, VALUE_MAX, &out->value);
	if (!request_fine(r))
		return false;
	if (!(out->value > 1.0) || request_admin(r))
		return true;
	left = fmax(0.0, budget - jobs_claimed(&r->d->jobs, tenants_name(&r->d->tenants, out->tenant)));
	if (out->value - 1.0 <= left + 1e-9)
		return true;
	if (budget > 0.0)
		reply_error(r, "not_permitted", "value", "the value of a job is free again when it ends",
			    "the live jobs of %s may state %.6g above the usual value of 1, and %.6g of that "
			    "is left",
			    tenants_name(&r->d->tenants, out->tenant), budget, left);
	else
		reply_error(r, "not_permitted", "value", "an admin may give your tenant a value_budget",
			    "a value above 1 is for admins and for tenants with a budget of value");
	return false;
}

/* The ids of `after`, one or a list of them; returns how many. */
static size_t read_after(struct request *r, struct submission *out, uint64_t id[WAITING_MAX])
{
	const struct json *v = fields_get(&r->f, "after");
	struct strbuf more = { 0 };
	size_t n = 0;

	if (!v)
		return 0;
	if (json_type(v) != JSON_ARRAY) {
		request_id(r, "after", &out->after);
		id[0] = out->after;
		return 1;
	}
	if (json_size(v) < 1 || json_size(v) > WAITING_MAX) {
		fields_fail(&r->f, ERR_ARG, "after", "must be a job, or a list of 1 to %d of them",
			    WAITING_MAX);
		return 0;
	}
	for (const struct json *at = json_first(v); at && !r->f.rc; at = json_next(at)) {
		if (!text_uint64(json_string(at, ""), &id[n]) || id[n] == 0)
			fields_fail(&r->f, ERR_ARG, "after",
				    "has an element that is not the number of a job, digits in quotes");
		if (n++)
			strbuf_printf(&more, "%s\"%llu\"", n > 2 ? "," : "[", (unsigned long long)id[n - 1]);
	}
	out->after = id[0];
	if (n > 1)
		snprintf(out->after_more, sizeof out->after_more, "%s]", strbuf_text(&more));
	if (more.failed)
		fields_nomem(&r->f, "after");
	strbuf_release(&more);
	return n;
}

/* One of the jobs that have to end first. False: answered, since it never will, or not as it should. */
static bool check_after(struct request *r, struct submission *out, uint64_t id)
{
	const struct job *first = jobs_find(&r->d->jobs, id);
	bool lives = first && job_state_live(first->row.state);

	out->waits |= lives;
	if (!first && id >= r->d->next_id)
		reply_error(r, "unknown_job", "after", NULL, "there is no job %llu", (unsigned long long)id);
	else if (out->after_ok && !first)
		reply_error(r, "bad_field", "after", NULL, "after: how job %llu ended is not known any more",
			    (unsigned long long)id);
	else if (out->after_ok && !lives && first->row.state != JOB_DONE)
		reply_error(r, "bad_field", "after", NULL, "after: job %llu did not end well: it is %s",
			    (unsigned long long)id, job_state_name[first->row.state]);
	else
		return true;
	return false;
}

/* What has to come first, and what if it fails. False: answered. */
static bool read_sequence(struct request *r, struct submission *out)
{
	uint64_t id[WAITING_MAX] = { 0 };
	size_t n;

	out->index = NAN;
	field_whole(&r->f, "retry", 0, RETRY_MAX, &out->retry);
	field_number(&r->f, "index", -1e9, 1e9, &out->index);
	field_bool(&r->f, "after_ok", &out->after_ok);
	n = read_after(r, out, id);
	if (!r->f.rc && out->after_ok && !out->after)
		fields_fail(&r->f, ERR_ARG, "after_ok", "of which job? \"after\" is needed");
	if (!r->f.rc && out->after && fields_get(&r->f, "deadline"))
		fields_fail(
			&r->f, ERR_ARG, "deadline",
			"the time limit of a job that waits counts from the end of the other: give slo_s");
	if (!r->f.rc && out->retry && !strcmp(out->mode, "advise"))
		fields_fail(&r->f, ERR_ARG, "retry", "its owner runs an advised job, and repeats it");
	if (!request_fine(r))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!check_after(r, out, id[i]))
			return false;
	}
	return true;
}

bool submission_read(struct request *r, struct submission *out)
{
	const struct config *c = r->d->setup->config;
	const char *type = json_string(fields_get(&r->f, "type"), NULL);
	uint64_t cpus, gpus;

	out->now_ns = daemon_now_ns(r->d);
	out->confidence = c->confidence;
	out->max_memory_mb = NAN;
	if (!type) {
		reply_error(r, "bad_field", "type", NULL, "type: must be the name of a job type, as text");
		return false;
	}
	out->type = config_type(c, type);
	if (!out->type) {
		unknown_type(r, type);
		return false;
	}
	cpus = out->type->cpus_default;
	field_whole(&r->f, "cpus", out->type->cpus_min, out->type->cpus_max, &cpus);
	gpus = out->type->gpus;
	field_whole(&r->f, "gpus", 0, out->type->max_gpus, &gpus);
	out->gpus = (uint32_t)gpus;
	if (!request_fine(r) || !read_objective(r, out))
		return false;
	field_number(&r->f, "confidence", 1e-6, 0.9999, &out->confidence);
	field_number(&r->f, "max_memory_mb", 1e-6, 1e12, &out->max_memory_mb);
	field_bool(&r->f, "best_effort", &out->best_effort);
	out->chance = default_chance(r);
	field_number(&r->f, "chance", 0.0, 0.9999, &out->chance);
	read_epochs(r, out);
	out->input.type = type;
	out->input.params = fields_get(&r->f, "params");
	out->input.batches = fields_get(&r->f, "batches");
	out->input.cpus = (uint32_t)cpus;
	return request_fine(r) && read_priority(r, out) && read_value(r, out) && read_sequence(r, out);
}
