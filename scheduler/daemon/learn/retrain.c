/* When to train, what came of a training, and putting a model to use. See learning.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "common/version.h"
#include "scheduler/daemon/learn/training_data.h"
#include "scheduler/daemon/learn/learning_internal.h"
#include "scheduler/daemon/ops/ops.h"

#define PUT_AGAIN_US 20000 /* while a reload is under way */

bool learning_train_busy(const struct learning *l)
{
	return l->asking || l->put || trainer_busy(l->trainer);
}

/* ---- putting a model to use ---- */

static void put_to_use(struct learning *l)
{
	struct timeval again = { .tv_usec = PUT_AGAIN_US };
	struct later *answer = l->answer;
	struct model *model = l->next_model;
	struct err err = { 0 };

	if (!l->put)
		return;
	if (l->d->loader) { /* its thread reads d->params */
		event_add(l->put_timer, &again);
		return;
	}
	free(l->own);
	l->own = l->next;
	l->own_number = l->next_number;
	l->next = NULL;
	l->answer = NULL;
	l->put = false;
	l->next_model = NULL; /* the reload's */
	l->d->params.model = l->own ? l->own : l->given;
	if (daemon_reload(l->d, answer, model, &err)) {
		log_error("the new model is not in use: %s", err.text);
		if (answer)
			later_error(answer, "internal", err.text);
	}
}

static void on_put(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	put_to_use(owner);
}

/* ---- the training thread ---- */

/* The settings of the training thread, as one text that can be compared. */
static char *settings_of(const struct config *c)
{
	const struct config_learning *s = &c->learning;
	struct strbuf b = { 0 };

	strbuf_printf(&b, "%s|%s|%s|%s|%llu|", c->policy, s->table ? s->table : "",
		      s->schema ? s->schema : "", s->curves ? s->curves : "", (unsigned long long)c->seed);
	strbuf_printf(&b, "%zu|%zu|%.17g|%zu", s->min_observations, s->test_jobs, s->significance,
		      s->keep_versions);
	if (b.failed) {
		strbuf_release(&b);
		return NULL;
	}
	return b.text;
}

static void on_result(evutil_socket_t fd, short what, void *owner);

/* Replaces the training thread by one with the settings of the configuration in use. */
static int renew(struct learning *l, struct err *err)
{
	const struct config *c = l->d->setup->config;
	char folder[4096], *settings = settings_of(c);
	struct trainer_params p = { .learning = &c->learning,
				    .policy = l->d->setup->policy,
				    .folder = folder,
				    .seed = c->seed,
				    .program = postrider_program };
	struct trainer *fresh = NULL;
	struct event *result = NULL;
	int rc = 0;

	if (!settings)
		rc = err_nomem(err, "learning");
	else if ((size_t)snprintf(folder, sizeof folder, "%s/models", c->state_dir) >= sizeof folder)
		rc = err_fail(err, ERR_ARG, "%s: the path is too long", c->state_dir);
	if (!rc)
		rc = trainer_new(&p, &fresh, err);
	if (!rc) {
		result = event_new(l->d->base, trainer_fd(fresh), EV_READ | EV_PERSIST, on_result, l);
		if (!result || event_add(result, NULL))
			rc = err_nomem(err, "learning");
	}
	if (rc) {
		if (result)
			event_free(result);
		trainer_free(fresh);
		free(settings);
		return rc;
	}
	if (l->result)
		event_free(l->result);
	trainer_free(l->trainer);
	free(l->settings);
	l->trainer = fresh;
	l->result = result;
	l->settings = settings;
	return 0;
}

static void renew_if_changed(struct learning *l)
{
	char *now = settings_of(l->d->setup->config);
	struct err err = { 0 };

	if (!learning_train_busy(l) && now && strcmp(now, l->settings) && renew(l, &err))
		log_warn("learning goes on with the settings it had: %s", err.text);
	free(now);
}

/* ---- a training ---- */

static void ended_with(struct learning *l, const struct training_result *r)
{
	bool failed = r->err.code && r->err.code != ERR_NODATA;

	snprintf(l->outcome, sizeof l->outcome, "%s", r->err.code ? r->err.text : r->version.message);
	l->took_s = r->seconds;
	if (failed)
		log_error("training (%s) failed: %s", l->reason, l->outcome);
	else
		log_info("training (%s), %.1f s: %s", l->reason, r->seconds, l->outcome);
	watch_tell(l->d, "retrained", NULL);
}

static void on_result(evutil_socket_t fd, short what, void *owner)
{
	struct learning *l = owner;
	int64_t since = daemon_now_ns(l->d);
	struct training_result r;
	bool training;
	double ms;

	(void)fd;
	(void)what;
	if (!trainer_poll(l->trainer, &r))
		return;
	training = r.version.rolled_back_to == UINT32_MAX || r.err.code;
	if (r.accepted) {
		l->put = true;
		l->next = r.path;
		l->next_number = training ? r.version.number : r.version.rolled_back_to;
		l->next_model = r.model;
		r.path = NULL;
		r.model = NULL;
	}
	if (l->answer && r.err.code) {
		log_error("not rolled back: %s", r.err.text);
		later_error(l->answer, "internal", r.err.text);
		l->answer = NULL;
	} else if (training) {
		ended_with(l, &r);
	} else {
		log_info("%s", r.version.message);
	}
	training_result_release(&r);
	put_to_use(l);
	renew_if_changed(l);
	ms = (double)(daemon_now_ns(l->d) - since) / 1e6;
	l->d->stats.max_block_ms = fmax(l->d->stats.max_block_ms, ms);
}

static void failed_with(struct learning *l, const struct err *err)
{
	struct training_result r = { .err = *err, .seconds = NAN };

	ended_with(l, &r);
}

/* `owner` is the daemon: the answer may come when there is no learning any more. */
static void on_observations(void *owner, uint64_t token, const struct strbuf *text, const struct err *err)
{
	struct daemon *d = owner;
	struct learning *l = d->learning;
	struct err why = { 0 };
	char *copy = NULL;

	(void)token;
	if (!l)
		return;
	l->asking = false;
	if (d->leaving && err->code)
		return;
	if (err->code) {
		failed_with(l, err);
		return;
	}
	copy = mem_alloc(text->len + 1);
	if (copy) {
		memcpy(copy, strbuf_text((struct strbuf *)text), text->len);
		copy[text->len] = '\0';
	}
	if (trainer_start(l->trainer, copy, text->len, d->setup->config->model, l->reason, &why))
		failed_with(l, &why);
}

int learning_retrain(struct learning *l, const char *reason, struct err *err)
{
	struct store_filter latest = { .limit = TRAINING_MAX_OBSERVATIONS, .uid = -1 };
	int rc;

	if (learning_train_busy(l))
		return err_fail(err, ERR_BUSY, "a training is under way");
	l->asking = true; /* first: the answer may come from inside the call */
	snprintf(l->reason, sizeof l->reason, "%s", reason);
	rc = ops_ask(l->d, STORE_OBSERVATIONS, 0, &latest, on_observations, l->d, 0, err);
	if (rc)
		l->asking = false;
	else
		l->since_training = 0;
	return rc;
}

void learning_train_due(struct learning *l)
{
	size_t after = l->d->setup->config->learning.retrain_after;
	struct err err = { 0 };
	char reason[64];

	l->since_training++;
	/* Without a model there is nothing to be better than: the first training is asked for by an admin. */
	if (!after || !l->d->setup->model || l->since_training < after || l->d->leaving ||
	    learning_train_busy(l))
		return;
	snprintf(reason, sizeof reason, "%zu jobs", l->since_training);
	if (learning_retrain(l, reason, &err))
		log_warn("no training: %s", err.text);
}

int learning_rollback(struct learning *l, uint32_t version, struct later *answer, struct err *err)
{
	int rc;

	if (learning_train_busy(l))
		return err_fail(err, ERR_BUSY, "a training is under way");
	rc = trainer_rollback(l->trainer, version, "asked for", err);
	if (!rc)
		l->answer = answer;
	return rc;
}

/* ---- beginning, changing, leaving ---- */

static int64_t moment_of(const char *text)
{
	int64_t at = 0;

	return text_utc_parse(text, &at) ? at : 0;
}

static const struct job_values *no_values(void *owner, uint64_t id)
{
	(void)owner;
	(void)id;
	return NULL;
}

/* The version the journal says is in use, at the start of the daemon; there are no jobs yet. */
static int use_version(struct learning *l, struct err *err)
{
	struct daemon *d = l->d;
	struct sched_params sched;
	struct setup *fresh = NULL;
	int rc;

	d->params.model = l->own;
	rc = daemon_read_setup(&d->params, NULL, &fresh, err);
	if (rc)
		return rc;
	setup_sched_params(fresh, &sched);
	rc = sched_use(d->sched, daemon_now_ns(d), &sched, no_values, NULL, err);
	if (rc) {
		setup_free(fresh);
		return rc;
	}
	setup_free(d->setup);
	d->setup = fresh;
	return 0;
}

/* An operator's model that is younger than ours was trained with it in sight: it is meant to be used. */
static bool is_outdated(const struct learning *l, uint32_t number)
{
	const struct model *m = l->d->setup->model;
	struct model_version *all = mem_array(VERSIONS_MAX, sizeof *all);
	size_t n = all ? trainer_versions(l->trainer, all, VERSIONS_MAX) : 0;
	bool outdated = false;

	for (size_t i = 0; i < n; i++) {
		if (all[i].number == number && m && m->created[0])
			outdated = moment_of(m->created) > moment_of(all[n - 1].created);
	}
	free(all);
	return outdated;
}

int learning_train_new(struct learning *l, struct err *err)
{
	struct err why = { 0 };
	uint32_t current;
	int rc = renew(l, err);

	if (rc)
		return rc;
	l->given = l->d->params.model;
	l->put_timer = event_new(l->d->base, -1, 0, on_put, l);
	if (!l->put_timer)
		return err_nomem(err, "learning");
	current = trainer_current(l->trainer);
	if (!current)
		return 0;
	if (is_outdated(l, current)) {
		log_info("the configuration's model is younger than version %u, and is used",
			 (unsigned)current);
		return 0;
	}
	l->own = trainer_path(l->trainer, current);
	if (!l->own)
		return err_nomem(err, "learning");
	if (use_version(l, &why)) {
		log_warn("model version %u cannot be used, the configuration's is: %s", (unsigned)current,
			 why.text);
		free(l->own);
		l->own = NULL;
		l->d->params.model = l->given;
		return 0;
	}
	l->own_number = l->in_use = current;
	log_info("model version %u is used, not the configuration's", (unsigned)current);
	return 0;
}

void learning_train_restore(struct learning *l)
{
	const struct setup *s = l->d->setup;
	int64_t since = s->model ? moment_of(s->model->created) : 0;
	struct model_version last;

	if (trainer_versions(l->trainer, &last, 1) && moment_of(last.created) > since)
		since = moment_of(last.created);
	for (const struct job *job = l->d->jobs.ended.first; job; job = job->after)
		l->since_training += learning_is_observation(&job->row) && job->row.ended_ns > since;
}

void learning_train_changed(struct learning *l)
{
	l->in_use = l->own_number;
	if (l->in_use)
		log_info("model version %u is used, not the configuration's", (unsigned)l->in_use);
	renew_if_changed(l);
}

void learning_train_release(struct learning *l)
{
	if (l->answer)
		later_error(l->answer, "internal", "the daemon is leaving");
	if (l->put_timer)
		event_free(l->put_timer);
	if (l->result)
		event_free(l->result);
	trainer_free(l->trainer);
	if (l->own && l->d->params.model == l->own)
		l->d->params.model = l->given;
	free(l->own);
	free(l->next);
	model_free(l->next_model);
	free(l->settings);
}

/* ---- telling ---- */

void learning_models_json(struct learning *l, struct json_writer *w)
{
	struct model_version *all = mem_array(VERSIONS_MAX, sizeof *all);
	size_t n = all ? trainer_versions(l->trainer, all, VERSIONS_MAX) : 0;

	json_kv_int(w, "current", l->in_use);
	json_kv_string(w, "model", l->d->setup->model_name[0] ? l->d->setup->model_name : NULL);
	json_kv_bool(w, "training", learning_train_busy(l));
	json_kv_open(w, "models", '[');
	for (size_t i = 0; i < n; i++)
		model_version_to_json(&all[i], true, w);
	json_close(w, ']');
	free(all);
}
