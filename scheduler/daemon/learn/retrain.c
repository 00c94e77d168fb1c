/* When to train, the result of a training, and putting a model to use. See learning.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "common/version.h"
#include "scheduler/daemon/learn/training.h"
#include "scheduler/daemon/learn/training_data.h"
#include "scheduler/daemon/learn/learning_internal.h"
#include "scheduler/daemon/ops/ops.h"

#define PUT_AGAIN_US 20000 /* while a reload is under way */

bool learner_train_busy(const struct learner *e)
{
	bool being_put = e->l->d->loader && e->own_number != e->in_use;

	return e->asking || e->put || being_put || trainer_busy(e->trainer);
}

bool learning_training(const struct learning *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (learner_train_busy(l->learner[i]))
			return true;
	}
	return false;
}

static const char *of_what(const struct learner *e, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s", e->type ? " of type " : "", e->type ? e->type : "");
	return buf;
}
#define OF_WHAT (JOB_TYPE_MAX_NAME + 16)

/* ---- putting a model to use ---- */

static void put_to_use(struct learner *e)
{
	struct timeval again = { .tv_usec = PUT_AGAIN_US };
	struct later *answer = e->answer;
	struct setup_source from = { .type = e->type, .model = e->next_model };
	struct err err = { 0 };

	if (!e->put)
		return;
	if (e->l->d->loader) { /* its thread reads which versions are in use */
		event_add(e->put_timer, &again);
		return;
	}
	free(e->own);
	e->own = e->next;
	e->own_number = e->next_number;
	e->own_since_ns = clock_wall_ns();
	e->next = NULL;
	e->answer = NULL;
	e->put = false;
	e->next_model = NULL; /* the reload's */
	if (daemon_reload(e->l->d, answer, &from, &err)) {
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

static int replace(char **at, const char *path, struct err *err)
{
	char *copy = mem_strdup(path);

	if (!copy)
		return err_nomem(err, "the configuration");
	free(*at);
	*at = copy;
	return 0;
}

/* An operator's model that came after ours was put to use is meant to be used. */
static bool is_younger(const char *path, int64_t than_ns)
{
	struct stat st;

	return path && !stat(path, &st) &&
	       (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec > than_ns;
}

int learning_override(const struct learning *l, struct config *c, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; l && i < l->n && !rc; i++) {
		const struct learner *e = l->learner[i];
		struct job_type *t = e->type ? (struct job_type *)config_type(c, e->type) : NULL;

		if (!e->own || (e->type && (!t || !job_type_has_model(t))) ||
		    is_younger(t ? t->model : c->model, e->own_since_ns))
			continue;
		rc = replace(t ? &t->model : &c->model, e->own, err);
	}
	return rc;
}

/* ---- the training thread ---- */

/* What is trained from: the configuration's, or the type's. Borrowed. */
static struct config_learning sources_of(const struct learner *e, const struct config *c)
{
	const struct job_type *t = e->type ? config_type(c, e->type) : NULL;
	struct config_learning s = c->learning;

	if (t) {
		s.table = t->table;
		s.schema = t->schema;
		s.curves = t->curves;
		if (t->first_after && t->first_after < s.min_observations)
			s.min_observations = t->first_after;
	}
	return s;
}

/* The settings of the training thread, as one text that can be compared. */
static char *settings_of(const struct learner *e, const struct config *c)
{
	const struct config_learning from = sources_of(e, c), *s = &from;
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

/* The schema of a first model: the parameters of the type are the factors. */
static int schema_of_type(const struct job_type *t, struct schema **out, struct err *err)
{
	struct schema *s = NULL;
	int rc = schema_default(&s, err), at;

	for (size_t i = 0; i < t->n_params && !rc; i++) {
		if (!t->param[i].free && schema_find_any(s, t->param[i].name) < 0)
			rc = schema_add(s, t->param[i].name,
					t->param[i].kind == PARAM_WORD ? COLUMN_CATEGORY : COLUMN_NUMBER,
					err);
	}
	at = rc ? -1 : schema_find(s, "network");
	for (size_t i = 0; i < t->n_params && at >= 0; i++) {
		if (schema_find(s, t->param[i].name) == at)
			at = -1; /* it is a parameter */
	}
	if (at >= 0)
		rc = schema_drop(s, (size_t)at, false, err);
	if (rc)
		schema_free(s);
	else
		*out = s;
	return rc;
}

static int folder_of(const struct learner *e, const struct config *c, char *out, size_t size, struct err *err)
{
	int n = snprintf(out, size, "%s/models%s%s", c->state_dir, e->type ? "/type-" : "",
			 e->type ? e->type : "");

	return (size_t)n < size ? 0 : err_fail(err, ERR_ARG, "%s: the path is too long", c->state_dir);
}

static void on_result(evutil_socket_t fd, short what, void *owner);

/* Replaces the training thread by one with the settings of that setup. */
static int renew(struct learner *e, const struct setup *s, struct err *err)
{
	const struct config *c = s->config;
	const struct config_learning from = sources_of(e, c);
	char folder[4096], *settings = settings_of(e, c);
	struct trainer_params p = { .learning = &from,
				    .cores = c->cores,
				    .policy = s->policy,
				    .folder = folder,
				    .seed = c->seed,
				    .program = postrider_program };
	struct trainer *fresh = NULL;
	struct event *result = NULL;
	int rc = settings ? folder_of(e, c, folder, sizeof folder, err) : err_nomem(err, "learning");

	if (!rc && e->type && config_type(c, e->type))
		rc = schema_of_type(config_type(c, e->type), &p.schema, err);
	if (!rc)
		rc = trainer_new(&p, &fresh, err);
	if (!rc) {
		result = event_new(e->l->d->base, trainer_fd(fresh), EV_READ | EV_PERSIST, on_result, e);
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
	if (e->result)
		event_free(e->result);
	trainer_free(e->trainer);
	free(e->settings);
	e->trainer = fresh;
	e->result = result;
	e->settings = settings;
	return 0;
}

static void renew_if_changed(struct learner *e)
{
	char *now = settings_of(e, e->l->d->setup->config);
	struct err err = { 0 };

	if (!learner_train_busy(e) && now && strcmp(now, e->settings) && renew(e, e->l->d->setup, &err))
		log_warn("learning keeps its old settings: %s", err.text);
	free(now);
}

/* ---- a training ---- */

static void ended_with(struct learner *e, const struct training_result *r)
{
	bool failed = r->err.code && r->err.code != ERR_NODATA;
	char of[OF_WHAT];

	snprintf(e->outcome, sizeof e->outcome, "%s", r->err.code ? r->err.text : r->version.message);
	e->took_s = r->seconds;
	if (failed)
		log_error("training%s (%s) failed: %s", of_what(e, of, sizeof of), e->reason, e->outcome);
	else
		log_info("training%s (%s), %.1f s: %s", of_what(e, of, sizeof of), e->reason, r->seconds,
			 e->outcome);
	watch_tell(e->l->d, "retrained", NULL);
}

static void on_result(evutil_socket_t fd, short what, void *owner)
{
	struct learner *e = owner;
	struct daemon *d = e->l->d;
	int64_t since = daemon_now_ns(d);
	struct training_result r;
	bool training;
	double ms;

	(void)fd;
	(void)what;
	if (!trainer_poll(e->trainer, &r))
		return;
	training = r.version.rolled_back_to == UINT32_MAX || r.err.code;
	if (r.accepted) {
		e->put = true;
		e->next = r.path;
		e->next_number = training ? r.version.number : r.version.rolled_back_to;
		e->next_model = r.model;
		r.path = NULL;
		r.model = NULL;
	}
	if (e->answer && r.err.code) {
		log_error("not rolled back: %s", r.err.text);
		later_error(e->answer, "internal", r.err.text);
		e->answer = NULL;
	} else if (training) {
		ended_with(e, &r);
	} else {
		log_info("%s", r.version.message);
		e->since_training = 0; /* the next training is not at once: somebody went back on purpose */
	}
	training_result_release(&r);
	put_to_use(e);
	renew_if_changed(e);
	ms = (double)(daemon_now_ns(d) - since) / 1e6;
	d->tally.max_block_ms = fmax(d->tally.max_block_ms, ms);
}

static void failed_with(struct learner *e, const struct err *err)
{
	struct training_result r = { .err = *err, .seconds = NAN };

	ended_with(e, &r);
}

/* The learner that asked the store; NULL: its type is not configured any more. One training at a time, so it
 * is the only one. */
static struct learner *who_asked(const struct learning *l)
{
	for (size_t i = 0; l && i < l->n; i++) {
		if (l->learner[i]->asking)
			return l->learner[i];
	}
	return NULL;
}

/* `owner` is the daemon: the answer may come when there is no learning any more. */
static void on_observations(void *owner, uint64_t token, const struct strbuf *text, const struct err *err)
{
	struct daemon *d = owner;
	struct learner *e = who_asked(d->learning);
	struct err why = { 0 };
	char *copy = NULL;

	(void)token;
	if (!e)
		return;
	e->asking = false;
	if (d->leaving && err->code)
		return;
	if (err->code) {
		failed_with(e, err);
		return;
	}
	copy = mem_alloc(text->len + 1);
	if (copy) {
		memcpy(copy, strbuf_text((struct strbuf *)text), text->len);
		copy[text->len] = '\0';
	}
	if (trainer_start(e->trainer, copy, text->len, learner_slot(e)->model ? learner_slot(e)->path : NULL,
			  e->reason, &why))
		failed_with(e, &why);
}

/* The types that have their own models, ",a,b,"; NULL: none has. Kept with the names. */
static const char *other_types(const struct learning *l)
{
	struct strbuf b = { 0 };
	const char *kept;

	if (l->n < 2)
		return NULL;
	for (size_t i = 1; i < l->n; i++)
		strbuf_printf(&b, ",%s", l->learner[i]->type);
	strbuf_puts(&b, ",");
	kept = b.failed ? NULL : names_keep(&l->d->jobs.names, strbuf_text(&b));
	strbuf_release(&b);
	return kept;
}

static int train(struct learner *e, const char *reason, struct err *err)
{
	struct store_filter latest = { .limit = TRAINING_MAX_OBSERVATIONS, .uid = -1 };
	struct daemon *d = e->l->d;
	int rc;

	if (learning_training(e->l))
		return err_fail(err, ERR_BUSY, "a training is under way");
	if (e->type)
		snprintf(latest.type, sizeof latest.type, "%s", e->type);
	else
		latest.except = other_types(e->l);
	e->asking = true; /* first: the answer may come from inside the call */
	snprintf(e->reason, sizeof e->reason, "%s", reason);
	rc = ops_ask(d, STORE_OBSERVATIONS, 0, &latest, on_observations, d, 0, err);
	if (rc)
		e->asking = false;
	else
		e->since_training = 0;
	return rc;
}

static int no_learner(const char *type, struct err *err)
{
	return err_fail(err, ERR_ARG, "type: '%s' is not a job type with its own model", type);
}

int learning_retrain(struct learning *l, const char *type, const char *reason, struct err *err)
{
	struct learner **e = learner_find(l, type);

	return e ? train(*e, reason, err) : no_learner(type, err);
}

bool learner_is_young(const struct learner *e)
{
	const struct config_learning from = sources_of(e, e->l->d->setup->config);

	return e->type && training_is_young(learner_slot(e)->model, &from);
}

size_t learner_train_after(const struct learner *e)
{
	const struct job_type *t = learner_type(e);
	size_t after = e->l->d->setup->config->learning.retrain_after;

	/* Without a model there is nothing to be better than: the first training is asked for by an admin,
	 * unless the type says after how many jobs. */
	if (!learner_slot(e)->model)
		return t && e->l->d->setup->policy.policy->predictor ? t->first_after : 0;
	return after && learner_is_young(e) ? 1 : after;
}

static void train_if_due(struct learner *e)
{
	size_t after = learner_train_after(e);
	struct err err = { 0 };
	char reason[64];

	if (!after || e->since_training < after || e->l->d->leaving || e->l->d->params.played ||
	    learning_training(e->l))
		return;
	snprintf(reason, sizeof reason, "%zu job%s", e->since_training, e->since_training == 1 ? "" : "s");
	if (train(e, reason, &err))
		log_warn("no training: %s", err.text);
}

void learner_train_due(struct learner *e)
{
	e->since_training++;
	train_if_due(e);
}

int learning_rollback(struct learning *l, const char *type, uint32_t version, struct later *answer,
		      struct err *err)
{
	struct learner **e = learner_find(l, type);
	int rc;

	if (!e)
		return no_learner(type, err);
	if (learning_training(l))
		return err_fail(err, ERR_BUSY, "a training is under way");
	rc = trainer_rollback((*e)->trainer, version, "asked for", err);
	if (!rc)
		(*e)->answer = answer;
	return rc;
}

/* ---- beginning, changing, leaving ---- */

static int64_t moment_of(const char *text)
{
	int64_t at = 0;

	return text_utc_parse(text, &at) ? at : 0;
}

static const struct job_values *no_values(void *owner, uint64_t id, uint32_t *out_model)
{
	(void)owner;
	(void)id;
	*out_model = 0;
	return NULL;
}

/* The version the journal says is in use, at the start of the daemon; there are no jobs yet. */
static int use_version(struct learner *e, struct err *err)
{
	struct daemon *d = e->l->d;
	const struct setup_source from = { .before = d->setup };
	const struct model *own[SETUP_MAX_SLOTS];
	struct sched_params sched;
	struct setup *fresh = NULL;
	int rc = daemon_read_setup(d, e->l, &from, &fresh, err);

	if (rc)
		return rc;
	setup_sched_params(fresh, own, &sched);
	rc = sched_use(d->sched, daemon_now_ns(d), &sched, no_values, NULL, err);
	if (rc) {
		setup_free(fresh);
		return rc;
	}
	if (daemon_configure_engines(d, fresh->config, NULL))
		log_error("an engine is not there until the next reload: out of memory");
	setup_free(d->setup);
	d->setup = fresh;
	return 0;
}

/* An operator's model that is younger than ours was trained with it in sight: it is meant to be used. */
static bool is_outdated(const struct learner *e, uint32_t number)
{
	const struct model *m = learner_slot(e)->model;
	struct model_version *all = mem_array(VERSIONS_MAX, sizeof *all);
	size_t n = all ? trainer_versions(e->trainer, all, VERSIONS_MAX) : 0;
	bool outdated = false;

	for (size_t i = 0; i < n; i++) {
		if (all[i].number == number && m && m->created[0])
			outdated = moment_of(m->created) > moment_of(all[n - 1].created);
	}
	free(all);
	return outdated;
}

int learner_train_new(struct learner *e, const struct setup *s, struct err *err)
{
	int rc = renew(e, s, err);

	if (rc)
		return rc;
	e->is_new = true;
	e->put_timer = event_new(e->l->d->base, -1, 0, on_put, e);
	return e->put_timer ? 0 : err_nomem(err, "learning");
}

/* The version that is to be used, and its path in *out (to be freed); 0: the configuration's. */
static uint32_t version_to_use(struct learner *e, char **out)
{
	uint32_t current = trainer_current(e->trainer);
	char of[OF_WHAT];

	*out = NULL;
	e->is_new = false;
	e->own_since_ns = clock_wall_ns();
	if (current && is_outdated(e, current)) {
		log_info("the configuration's model%s is newer than version %u, and is used",
			 of_what(e, of, sizeof of), (unsigned)current);
		return 0;
	}
	if (current)
		*out = trainer_path(e->trainer, current);
	return *out ? current : 0;
}

void learning_use_versions(struct learning *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct learner *e = l->learner[i];
		uint32_t number = version_to_use(e, &e->own);
		struct err why = { 0 };
		char of[OF_WHAT];

		if (!number)
			continue;
		if (use_version(e, &why)) {
			log_warn("model version %u%s cannot be used, the configuration's is: %s",
				 (unsigned)number, of_what(e, of, sizeof of), why.text);
			free(e->own);
			e->own = NULL;
			continue;
		}
		e->own_number = e->in_use = number;
		log_info("model version %u%s is used, not the configuration's", (unsigned)number,
			 of_what(e, of, sizeof of));
	}
}

void learner_train_restore(struct learner *e)
{
	const struct model *m = learner_slot(e)->model;
	int64_t since = m ? moment_of(m->created) : 0;
	struct model_version last;

	if (trainer_versions(e->trainer, &last, 1) && moment_of(last.created) > since)
		since = moment_of(last.created);
	for (const struct job *job = e->l->d->jobs.ended.first; job; job = job->after)
		e->since_training += learner_of(e->l, job) == e && learning_is_observation(&job->row) &&
				     job->row.ended_ns > since;
}

void learner_train_changed(struct learner *e)
{
	char of[OF_WHAT];

	if (e->is_new) { /* its type has come with this reload, perhaps again */
		e->next_number = version_to_use(e, &e->next);
		e->put = e->next != NULL;
		put_to_use(e);
		return;
	}
	if (e->own && (!learner_slot(e)->path || strcmp(learner_slot(e)->path, e->own))) {
		log_info("the configuration's model%s is newer than version %u, and is used",
			 of_what(e, of, sizeof of), (unsigned)e->own_number);
		free(e->own);
		e->own = NULL;
		e->own_number = 0;
		e->since_training = 0;
	}
	if (e->in_use != e->own_number && e->own_number)
		log_info("model version %u%s is used, not the configuration's", (unsigned)e->own_number,
			 of_what(e, of, sizeof of));
	e->in_use = e->own_number;
	renew_if_changed(e);
	if (learner_is_young(e)) /* jobs that ended while it was made count as well */
		train_if_due(e);
}

void learner_train_release(struct learner *e)
{
	if (e->answer)
		later_error(e->answer, "internal", "the daemon is leaving");
	if (e->put_timer)
		event_free(e->put_timer);
	if (e->result)
		event_free(e->result);
	trainer_free(e->trainer);
	free(e->own);
	free(e->next);
	model_free(e->next_model);
	free(e->settings);
}

/* ---- telling ---- */

static void put_versions(const struct learner *e, struct json_writer *w)
{
	struct model_version *all = mem_array(VERSIONS_MAX, sizeof *all);
	size_t n = all ? trainer_versions(e->trainer, all, VERSIONS_MAX) : 0;

	json_kv_int(w, "current", e->in_use);
	json_kv_string(w, "model", learner_slot(e)->name[0] ? learner_slot(e)->name : NULL);
	json_kv_bool(w, "training", learner_train_busy(e));
	json_kv_open(w, "models", '[');
	for (size_t i = 0; i < n; i++)
		model_version_to_json(&all[i], true, w);
	json_close(w, ']');
	free(all);
}

void learning_models_json(struct learning *l, struct json_writer *w)
{
	put_versions(l->learner[0], w);
	json_kv_open(w, "types", '[');
	for (size_t i = 1; i < l->n; i++) {
		json_open(w, '{');
		json_kv_string(w, "type", l->learner[i]->type);
		put_versions(l->learner[i], w);
		json_close(w, '}');
	}
	json_close(w, ']');
}
