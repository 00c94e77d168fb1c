/* The training of a new model and the trial of one on fresh observations. */
#include "scheduler/daemon/learn/learner_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

int learner_train(const struct recipe *recipe, const struct learner_table *t, uint64_t seed,
		  const char *data_name, const char *created, const char *program, const atomic_bool *stop,
		  struct model **out, struct err *err)
{
	struct grid_point time = recipe->time, accuracy = recipe->accuracy;
	const struct grid time_grid = { &time, 1 }, accuracy_grid = { &accuracy, 1 };
	struct train_params p = recipe_params(seed);
	struct train_report report = { 0 };
	int rc;

	p.table = t->table;
	p.run = t->run;
	p.grid = &time_grid;
	p.accuracy_grid = &accuracy_grid;
	p.ctx.stop = stop;
	p.data_name = data_name;
	p.created = created;
	p.program = program;
	rc = train_model(&p, out, &report, err);
	train_report_release(&report);
	return rc;
}

/* ---- a trial ---- */

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

int learner_ask(const struct model *m, const struct table *test, double *predicted, struct err *err)
{
	return predict_rows(&m->time.predictor, m->features, test, predicted, err);
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

int learner_trial(const struct recipe *recipe, const struct learner_table *t, const struct table *test,
		  uint64_t seed, const atomic_bool *stop, double *predicted, struct err *err)
{
	struct fit_context ctx = { .seed = seed, .stop = stop };
	struct feature_meaning meaning = { 0 };
	struct predictor fitted = { 0 };
	struct features *f = NULL;
	struct dataset *d = NULL;
	double *x = NULL;
	int rc = features_fit(t->table, &f, err);

	if (!rc)
		rc = features_meaning(f, &meaning, err);
	if (!rc)
		rc = features_encode_table(f, t->table, &x, err);
	if (!rc)
		rc = rows_with_time(t->table, x, f->n, &meaning, &d, err);
	if (!rc)
		rc = predictor_fit(recipe->time.ops, &recipe->time.settings, d, &ctx, &fitted, err);
	if (!rc)
		rc = predict_rows(&fitted, f, test, predicted, err);
	predictor_release(&fitted);
	dataset_free(d);
	free(x);
	feature_meaning_release(&meaning);
	features_free(f);
	return rc;
}
