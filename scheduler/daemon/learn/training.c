/* One training with its test, or one rollback, from files to files. Runs in the thread of
 * training_thread.c. */
#include "scheduler/daemon/learn/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/core/learn/paired.h"
#include "scheduler/core/policy/recipe.h"
#include "scheduler/daemon/learn/training_data.h"

#define NO_ANSWER 1e-3 /* of the time it took */

/* ---- a training ---- */

struct training {
	const struct training_task *w;
	struct model *current;
	struct schema *schema;
	struct recipe recipe;
	struct training_base base;
	struct training_rows rows;
	char chosen[128]; /* for people: the model of time, and how good it is */
};

static void training_release(struct training *t)
{
	training_rows_release(&t->rows);
	training_base_release(&t->base);
	schema_free(t->schema);
	model_free(t->current);
}

/* ---- a trial: a model of time alone, fitted to a table and asked about another ---- */

static int predict_rows(const struct predictor *p, const struct features *f, const struct table *test,
			double *predicted, struct err *err)
{
	double *x = NULL, *y = mem_array(test->n_rows, sizeof *y);
	int rc = y ? features_encode_table(f, test, &x, err) : err_nomem(err, "a trial");

	if (!rc) {
		predictor_predict(p, x, test->n_rows, y);
		for (size_t i = 0; i < test->n_rows; i++)
			predicted[test->row[i]] = y[i];
	}
	free(x);
	free(y);
	return rc;
}

/* The rows that have a time. */
static int rows_with_time(const struct table *t, double *x, size_t n_features,
			  const struct feature_meaning *m, struct dataset **out, struct err *err)
{
	struct dataset all = { .n_rows = t->n_rows,
			       .n_features = n_features,
			       .x = x,
			       .y = t->time,
			       .name = m->name,
			       .factor = m->factor,
			       .role = m->role };
	uint32_t *row = mem_array(t->n_rows, sizeof *row);
	size_t n = 0;
	int rc;

	if (!row)
		return err_nomem(err, "%zu rows", t->n_rows);
	for (size_t i = 0; i < t->n_rows; i++) {
		if (!isnan(t->time[i]))
			row[n++] = (uint32_t)i;
	}
	rc = dataset_subset(&all, row, n, out, err);
	free(row);
	return rc;
}

/* No scores and no bounds, so it is quick. predicted[] is by row of the csv of `test`; rows that its table
 * leaves out are not touched. */
static int training_trial(const struct training *g, const struct table *t, const struct table *test,
			  double *predicted, struct err *err)
{
	struct fit_context ctx = { .seed = g->w->seed, .stop = g->w->stop };
	struct feature_meaning meaning = { 0 };
	struct predictor fitted = { 0 };
	struct features *f = NULL;
	struct dataset *d = NULL;
	double *x = NULL;
	int rc = features_fit(t, &f, err);

	if (!rc)
		rc = features_meaning(f, &meaning, err);
	if (!rc)
		rc = features_encode_table(f, t, &x, err);
	if (!rc)
		rc = rows_with_time(t, x, f->n, &meaning, &d, err);
	if (!rc)
		rc = predictor_fit(g->recipe.time.ops, &g->recipe.time.settings, d, &ctx, &fitted, err);
	if (!rc)
		rc = predict_rows(&fitted, f, test, predicted, err);
	predictor_release(&fitted);
	dataset_free(d);
	free(x);
	feature_meaning_release(&meaning);
	features_free(f);
	return rc;
}

/* ---- a training, from its data to its file ---- */

/* Where the policy has a choice of models: which points have the least error on rows of this table held out.
 * Those of the model in use win ties. */
static int choose_points(struct training *t, const struct training_table *data, struct err *err)
{
	const struct policy *policy = t->w->policy->policy;
	struct grid *time = NULL, *accuracy = NULL;
	struct train_params p = recipe_params(t->w->seed);
	int rc = 0;

	if (!policy->or_predictor)
		return 0;
	rc = recipe_search_time(policy, t->w->cores, &time, err);
	if (!rc)
		rc = recipe_prefer(time, &t->recipe.time, err);
	if (!rc)
		rc = recipe_search_accuracy(policy, data->run != NULL, &accuracy, err);
	if (!rc)
		rc = recipe_prefer(accuracy, &t->recipe.accuracy, err);
	if (!rc) {
		p.table = data->table;
		p.run = data->run;
		p.grid = time;
		p.accuracy_grid = accuracy;
		p.ctx.stop = t->w->stop;
		p.data_name = MODEL_LEARNT_FROM_JOBS;
		rc = train_choose(&p, &t->recipe.time, &t->recipe.accuracy, err);
	}
	grid_free(time);
	grid_free(accuracy);
	return rc;
}

/* The schema to train under: the operator's, that of the model in use, or the default; as the policy wants
 * it. */
static int find_schema(struct training *t, struct err *err)
{
	const struct config_learning *c = t->w->learning;
	struct schema *given = NULL;
	int rc = 0;

	if (c->schema)
		rc = schema_read_file(c->schema, &given, err);
	else if (!t->current && t->w->schema)
		rc = schema_clone(t->w->schema, &given, err);
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
	const struct training_task *k = t->w;
	int rc = 0;

	if (k->model_path)
		rc = model_load(k->model_path, &t->current, err);
	if (!rc)
		rc = find_schema(t, err);
	if (!rc)
		rc = recipe_make(t->w->policy->policy, t->current, c->curves != NULL, &t->recipe, err);
	if (!rc)
		rc = training_base_read(c->table, c->curves, t->schema, &t->base, err);
	if (!rc)
		rc = training_rows_find(k->observations, k->len, t->schema,
					t->current ? t->current->schema : NULL, &t->rows, err);
	if (!rc)
		rc = training_rows_share(&t->rows, t->current, t->base.runs ? t->base.runs->n_rows : 0, err);
	return rc;
}

/* How many of the latest jobs the models are compared on; 0: there is nothing to compare with. ERR_NODATA: so
 * few that not even all of them could show anything. */
static int count_tests(struct training *t, size_t *out, struct err *err)
{
	const struct config_learning *c = t->w->learning;
	size_t rows = t->rows.n + (t->base.runs ? t->base.runs->n_rows : 0);
	size_t n = t->rows.n / 2 < c->test_jobs ? t->rows.n / 2 : c->test_jobs;

	*out = 0;
	if (rows < c->min_observations)
		return err_fail(err, ERR_NODATA, "%zu runs and observations to learn from; %zu are needed",
				rows, c->min_observations);
	if (!t->current || training_is_young(t->current, c))
		return 0;
	if (exp2(-(double)n) >= c->significance)
		return err_fail(
			err, ERR_NODATA,
			"%zu observations: too few to tell whether a new model is better than the one in use",
			t->rows.n);
	training_rows_spread(&t->rows, n);
	*out = n;
	return 0;
}

/* Both models on the last n observations. The times to predict are in `said`: actual, old, new, each by
 * row. */
static int predict_both(struct training *t, size_t n, double *said, struct err *err)
{
	size_t first = t->rows.n - n;
	struct training_table old = { 0 }, fresh = { 0 }, rest = { 0 };
	int rc = training_table_make(NULL, &t->rows, first, n, t->current->schema, &old, err);

	if (!rc)
		rc = training_table_make(NULL, &t->rows, first, n, t->schema, &fresh, err);
	if (!rc)
		rc = training_table_make(&t->base, &t->rows, 0, first, t->schema, &rest, err);
	for (size_t i = 0; i < 3 * n; i++)
		said[i] = NAN;
	if (!rc)
		rc = predict_rows(&t->current->time.predictor, t->current->features, old.table, said + n,
				  err);
	if (!rc)
		rc = choose_points(t, &rest, err); /* the jobs of the test have no part in it */
	if (!rc)
		rc = training_trial(t, rest.table, fresh.table, said + 2 * n, err);
	for (size_t i = 0; !rc && i < fresh.table->n_rows; i++)
		said[fresh.table->row[i]] = fresh.table->time[i];
	training_table_release(&old);
	training_table_release(&fresh);
	training_table_release(&rest);
	return rc;
}

/* A model without an answer (an unstable queue), or with one that no job can have, is as wrong as can be;
 * left out of the comparison it would have got away with it. */
static void punish(const double *actual, double *said, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (actual[i] > 0.0 && !(said[i] > 0.0 && isfinite(said[i])))
			said[i] = NO_ANSWER * actual[i];
	}
}

static int compare(struct training *t, size_t n, struct model_version *v, struct err *err)
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

static void describe_choice(const struct model *m, double r2, char *out, size_t size)
{
	const struct model_target *t = &m->time;
	double off = t->score.n_folds ? 100.0 * expm1(sqrt(t->score.mean.log_mse)) : NAN;
	int n = snprintf(out, size, "; the time is by %s", t->predictor.ops->name);

	if (isfinite(off))
		n += snprintf(out + n, size - (size_t)n, ", off by %.1f %% on rows held out", off);
	if (r2 < TRAIN_LITTLE_R2 && m->time.n_rows >= TRAINING_YOUNG)
		snprintf(out + n, size - (size_t)n, ", and explains little (R2 %.2f)", r2);
}

static int training_fit(struct training *g, const struct training_table *t, const char *created,
			struct model **out, struct err *err)
{
	struct grid_point time = g->recipe.time, accuracy = g->recipe.accuracy;
	const struct grid time_grid = { &time, 1 }, accuracy_grid = { &accuracy, 1 };
	struct train_params p = recipe_params(g->w->seed);
	struct train_report report = { 0 };
	int rc;

	p.table = t->table;
	p.run = t->run;
	p.grid = &time_grid;
	p.accuracy_grid = &accuracy_grid;
	p.ctx.stop = g->w->stop;
	p.data_name = MODEL_LEARNT_FROM_JOBS;
	p.created = created;
	p.program = g->w->program;
	rc = train_model(&p, out, &report, err);
	if (!rc)
		describe_choice(*out, report.time_r2, g->chosen, sizeof g->chosen);
	train_report_release(&report);
	return rc;
}

/* Everything, bounds included, into a file and back. */
static int train_and_save(struct training *t, const char *path, struct model_version *v, struct model **out,
			  struct err *err)
{
	struct training_table all = { 0 };
	struct model *trained = NULL, *back = NULL;
	int rc = training_table_make(&t->base, &t->rows, 0, t->rows.n, t->schema, &all, err);

	if (!rc && !t->current)
		rc = choose_points(t, &all, err);
	if (!rc)
		rc = training_fit(t, &all, v->created, &trained, err);
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
	training_table_release(&all);
	return rc;
}

static void describe(const struct training *t, struct model_version *v)
{
	char unusable[160] = "";
	int n = 0;

	if (t->rows.n_unusable)
		n = snprintf(unusable, sizeof unusable, "; %zu observations could not be used",
			     t->rows.n_unusable);
	if (t->rows.n_left_out)
		snprintf(unusable + n, sizeof unusable - (size_t)n,
			 "; %zu were left out, of users who disagree with the others or have more than all "
			 "others",
			 t->rows.n_left_out);
	if (!v->tested)
		snprintf(v->message, sizeof v->message, "%s, from %zu row%s%s%s",
			 t->current ? "a model of one run more" : "the first model", v->rows,
			 v->rows == 1 ? "" : "s", t->chosen, unusable);
	else
		snprintf(v->message, sizeof v->message,
			 "on the last %zu jobs the new model is off by %.1f %% where the old one is by %.1f "
			 "%% (p %.2g): "
			 "%s%s%s",
			 v->tested, 100.0 * expm1(v->new_error), 100.0 * expm1(v->old_error), v->p,
			 v->accepted ? "taken" : "not taken", t->chosen, unusable);
}

static void now_text(char *out, size_t size)
{
	char text[40];

	text_utc(clock_wall_ns(), text);
	snprintf(out, size, "%.31s", text);
}

static void version_begin(const struct training_task *w, struct model_version *v)
{
	*v = (struct model_version){ .number = versions_next(w->versions),
				     .rolled_back_to = UINT32_MAX,
				     .old_error = NAN,
				     .new_error = NAN,
				     .p = NAN };
	now_text(v->created, sizeof v->created);
	snprintf(v->reason, sizeof v->reason, "%s", w->reason);
}

int training_run(const struct training_task *w, struct training_result *r, struct err *err)
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
			unlink(path); /* without its line in the journal the file would mean nothing */
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

int training_roll_back(const struct training_task *w, struct training_result *r, struct err *err)
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
	*r = (struct training_result){ .accepted = true, .version = v, .path = path, .model = model };
	return 0;
}
