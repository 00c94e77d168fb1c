#include "scheduler/daemon/learn/learner_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/core/paired.h"
#include "scheduler/daemon/learn/learner_train.h"

#define NO_ANSWER 1e-3 /* of the time it took */

/* ---- a training ---- */

struct training {
	const struct learner_work *w;
	struct model *current;
	struct schema *schema;
	struct recipe recipe;
	struct learner_base base;
	struct learner_rows rows;
};

static void training_release(struct training *t)
{
	learner_rows_release(&t->rows);
	learner_base_release(&t->base);
	schema_free(t->schema);
	model_free(t->current);
}

/* The schema to train under: the operator's, that of the model in use, or the default; as the policy wants it. */
static int find_schema(struct training *t, struct err *err)
{
	const struct config_learning *c = t->w->learning;
	struct schema *given = NULL;
	int rc = 0;

	if (c->schema)
		rc = schema_read_file(c->schema, &given, err);
	else if (!t->current)
		rc = schema_default(&given, err);
	if (!rc)
		rc = policy_schema(t->w->policy->policy, given ? given : t->current->schema, &t->schema, err);
	schema_free(given);
	return rc;
}

static int prepare(struct training *t, struct err *err)
{
	const struct config_learning *c = t->w->learning;
	const struct learner_work *k = t->w;
	int rc = 0;

	if (k->model_path)
		rc = model_load(k->model_path, &t->current, err);
	if (!rc)
		rc = find_schema(t, err);
	if (!rc)
		rc = recipe_make(t->w->policy->policy, t->current, c->curves != NULL, &t->recipe, err);
	if (!rc)
		rc = learner_base_read(c->table, c->curves, t->schema, &t->base, err);
	if (!rc)
		rc = learner_rows_find(k->observations, k->len, t->schema,
				       t->current ? t->current->schema : NULL, &t->rows, err);
	return rc;
}

/* How many of the latest jobs the models are compared on; 0: there is nothing to compare with. ERR_NODATA: so few that
 * not even all of them could show anything. */
static int count_tests(const struct training *t, size_t *out, struct err *err)
{
	const struct config_learning *c = t->w->learning;
	size_t rows = t->rows.n + (t->base.runs ? t->base.runs->n_rows : 0);
	size_t n = t->rows.n / 2 < c->test_jobs ? t->rows.n / 2 : c->test_jobs;

	*out = 0;
	if (rows < c->min_observations)
		return err_fail(err, ERR_NODATA, "%zu runs and observations to learn from; %zu are needed",
				rows, c->min_observations);
	if (!t->current)
		return 0;
	if (exp2(-(double)n) >= c->significance)
		return err_fail(
			err, ERR_NODATA,
			"%zu observations: too few to tell whether a new model is better than the one in use",
			t->rows.n);
	*out = n;
	return 0;
}

/* Both models on the last n observations. The times to predict are in `said`: actual, old, new, each by row. */
static int predict_both(const struct training *t, size_t n, double *said, struct err *err)
{
	size_t first = t->rows.n - n;
	struct learner_table old = { 0 }, fresh = { 0 }, rest = { 0 };
	int rc = learner_table_make(NULL, &t->rows, first, n, t->current->schema, &old, err);

	if (!rc)
		rc = learner_table_make(NULL, &t->rows, first, n, t->schema, &fresh, err);
	if (!rc)
		rc = learner_table_make(&t->base, &t->rows, 0, first, t->schema, &rest, err);
	for (size_t i = 0; i < 3 * n; i++)
		said[i] = NAN;
	if (!rc)
		rc = learner_ask(t->current, old.table, said + n, err);
	if (!rc)
		rc = learner_trial(&t->recipe, &rest, fresh.table, t->w->seed, t->w->stop, said + 2 * n, err);
	for (size_t i = 0; !rc && i < fresh.table->n_rows; i++)
		said[fresh.table->row[i]] = fresh.table->time[i];
	learner_table_release(&old);
	learner_table_release(&fresh);
	learner_table_release(&rest);
	return rc;
}

/* A model without an answer (an unstable queue), or with one that no job can have, is as wrong as can be; left out of the
 * comparison it would have got away with it. */
static void punish(const double *actual, double *said, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (actual[i] > 0.0 && !(said[i] > 0.0 && isfinite(said[i])))
			said[i] = NO_ANSWER * actual[i];
	}
}

static int compare(const struct training *t, size_t n, struct model_version *v, struct err *err)
{
	double *said = mem_array(4 * n, sizeof *said);
	struct paired_jobs jobs = { .n = n, .actual_s = said, .old_s = said + n, .new_s = said + 2 * n };
	struct paired_result result;
	int rc = said ? predict_both(t, n, said, err) : err_nomem(err, "learning");

	if (!rc) {
		punish(said, said + n, n);
		punish(said, said + 2 * n, n);
		rc = paired_compare(&jobs, said + 3 * n, &result, err);
	}
	free(said);
	if (rc)
		return rc;
	v->tested = result.n;
	v->old_error = result.old_error;
	v->new_error = result.new_error;
	v->p = result.p;
	return 0;
}

/* Everything, bounds included, into a file and back. */
static int train_and_save(struct training *t, const char *path, struct model_version *v, struct model **out,
			  struct err *err)
{
	struct learner_table all = { 0 };
	struct model *trained = NULL, *back = NULL;
	int rc = learner_table_make(&t->base, &t->rows, 0, t->rows.n, t->schema, &all, err);

	if (!rc)
		rc = learner_train(&t->recipe, &all, t->w->seed, "runs and observations", v->created,
				   t->w->program, t->w->stop, &trained, err);
	if (!rc)
		rc = policy_accepts(t->w->policy, trained, err);
	if (!rc) {
		rc = model_save(trained, path, err);
		if (!rc) /* what is used from now on is what a restart will find */
			rc = model_load(path, &back, err);
		if (!rc)
			rc = model_compile(back, err);
		if (rc)
			unlink(path);
	}
	if (!rc) {
		v->rows = all.table->n_rows;
		*out = back;
		back = NULL;
	}
	model_free(back);
	model_free(trained);
	learner_table_release(&all);
	return rc;
}

static void describe(const struct training *t, struct model_version *v)
{
	char unusable[64] = "";

	if (t->rows.n_unusable)
		snprintf(unusable, sizeof unusable, "; %zu observations could not be used",
			 t->rows.n_unusable);
	if (!v->tested)
		snprintf(v->message, sizeof v->message, "the first model, from %zu rows%s", v->rows,
			 unusable);
	else
		snprintf(v->message, sizeof v->message,
			 "on the last %zu jobs the new model is off by %.1f %% where the old one is by %.1f "
			 "%% (p %.2g): "
			 "%s%s",
			 v->tested, 100.0 * expm1(v->new_error), 100.0 * expm1(v->old_error), v->p,
			 v->accepted ? "taken" : "not taken", unusable);
}

static void now_text(char *out, size_t size)
{
	char text[40];

	text_utc(clock_wall_ns(), text);
	snprintf(out, size, "%.31s", text);
}

static void version_begin(const struct learner_work *w, struct model_version *v)
{
	*v = (struct model_version){ .number = versions_next(w->versions),
				     .rolled_back_to = UINT32_MAX,
				     .old_error = NAN,
				     .new_error = NAN,
				     .p = NAN };
	now_text(v->created, sizeof v->created);
	snprintf(v->reason, sizeof v->reason, "%s", w->reason);
}

int learner_work_train(const struct learner_work *w, struct learner_result *r, struct err *err)
{
	struct training t = { .w = w };
	struct model_version v;
	struct model *model = NULL;
	char *path = NULL;
	size_t tests = 0;
	int rc = prepare(&t, err);

	version_begin(w, &v);
	if (!rc)
		rc = count_tests(&t, &tests, err);
	if (!rc && tests)
		rc = compare(&t, tests, &v, err);
	v.observations = t.rows.n;
	v.rows = t.rows.n + (t.base.runs ? t.base.runs->n_rows : 0);
	v.accepted = !tests || v.p < w->learning->significance;
	if (!rc && v.accepted && !(path = versions_path(w->versions, v.number)))
		rc = err_nomem(err, "learning");
	if (!rc && v.accepted)
		rc = train_and_save(&t, path, &v, &model, err);
	if (!rc) {
		describe(&t, &v);
		rc = versions_add(w->versions, &v, err);
		if (rc && v.accepted)
			unlink(path); /* nobody would know where it came from */
	}
	training_release(&t);
	if (rc || !v.accepted) {
		free(path);
		model_free(model);
	} else {
		r->path = path;
		r->model = model;
		versions_prune(w->versions, w->learning->keep_versions);
	}
	if (!rc) {
		r->accepted = v.accepted;
		r->version = v;
	}
	return rc;
}

/* ---- a rollback ---- */

int learner_work_roll_back(const struct learner_work *w, struct learner_result *r, struct err *err)
{
	uint32_t to = w->back_to;
	struct model *model = NULL;
	struct model_version v;
	char *path = to ? versions_path(w->versions, to) : NULL;
	int rc = to && !path ? err_nomem(err, "learning") : 0;

	if (!rc && to)
		rc = model_load(path, &model, err);
	if (!rc && to)
		rc = policy_accepts(w->policy, model, err);
	if (!rc && to)
		rc = model_compile(model, err);
	version_begin(w, &v);
	v.rolled_back_to = to;
	if (to)
		snprintf(v.message, sizeof v.message, "back to version %u", (unsigned)to);
	else
		snprintf(v.message, sizeof v.message, "back to the configuration's model");
	if (!rc)
		rc = versions_add(w->versions, &v, err);
	if (rc) {
		free(path);
		model_free(model);
		return rc;
	}
	*r = (struct learner_result){ .accepted = true, .version = v, .path = path, .model = model };
	return 0;
}
