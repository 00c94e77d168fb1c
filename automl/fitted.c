/* Fitting and scoring one technique on some rows. See fitted.h. */
#include "automl/fitted.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/features.h"

void fitted_release(struct fitted *f)
{
	predictor_release(&f->model);
	free(f->features.column);
	free(f->x);
	*f = (struct fitted){ 0 };
}

/* ---- what columns mean ---- */

enum feature_role automl_role(const struct campaign *c, const struct prepared *p, size_t column)
{
	static const struct {
		const char *name;
		enum feature_role role;
	} known[] = {
		{ "batch", ROLE_BATCH },         { "batch_size", ROLE_BATCH },   { "b", ROLE_BATCH },
		{ "cpus", ROLE_CPUS },           { "cpu", ROLE_CPUS },           { "cores", ROLE_CPUS },
		{ "num_CPUs", ROLE_CPUS },       { "num_cpus", ROLE_CPUS },      { "njobs", ROLE_NJOBS },
		{ "processes", ROLE_PROCESSES }, { "epochs", ROLE_EPOCHS },      { "e", ROLE_EPOCHS },
		{ "samples", ROLE_SAMPLES },     { "num_images", ROLE_SAMPLES }, { "datasize", ROLE_SAMPLES },
	};
	const struct made_column *col = &p->column[column];
	const struct literal *said;

	if (col->by == MADE_CLASS)
		return ROLE_CATEGORY;
	if (c->roles) {
		said = literal_get(c->roles, col->name);
		for (size_t r = 0; said && r < N_ROLES; r++)
			if (schema_role_name[r] && !strcmp(schema_role_name[r], said->text))
				return (enum feature_role)r;
		return ROLE_NONE;
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].name, col->name))
			return known[i].role;
	return ROLE_NONE;
}

int features_by_meaning(const struct campaign *c, const struct prepared *p, struct feature_list *out,
			struct err *err)
{
	out->column = mem_array(p->n_columns, sizeof *out->column);
	out->n = 0;
	(void)c;
	if (!out->column)
		return err_nomem(err, "%zu columns", p->n_columns);
	for (size_t i = 0; i < p->n_columns; i++) {
		const struct made_column *col = &p->column[i];
		bool encoded = false;

		for (size_t k = 0; k < p->n_columns && col->by == MADE_NUMBER && !encoded; k++)
			encoded = p->column[k].by == MADE_CLASS && p->column[k].source == col->source;
		if (col->by == MADE_CLASS || (col->by == MADE_NUMBER && col->value && !encoded))
			out->column[out->n++] = (uint32_t)i;
	}
	return 0;
}

/* ---- data ---- */

static void gather(const struct fitted *f, const struct prepared *p, const struct row_list *rows, double *x)
{
	size_t n = f->features.n;

	for (size_t j = 0; j < n; j++) {
		const double *v = p->column[f->features.column[j]].value;

		for (size_t i = 0; i < rows->n; i++)
			x[i * n + j] = v[rows->row[i]];
		for (size_t i = 0; f->x && i < rows->n; i++)
			x[i * n + j] = (x[i * n + j] - f->x[j].mean) / f->x[j].scale;
	}
}

/* Mean and population standard deviation; a constant is left as large as it is. */
static struct scaling scaling_of(const double *v, const struct row_list *rows)
{
	struct scaling s = { .scale = 1.0 };
	double squares = 0.0, n = (double)rows->n;

	for (size_t i = 0; i < rows->n; i++)
		s.mean += v[rows->row[i]] / n;
	for (size_t i = 0; i < rows->n; i++)
		squares += (v[rows->row[i]] - s.mean) * (v[rows->row[i]] - s.mean) / n;
	if (squares > 0.0 && sqrt(squares) > 10.0 * DBL_EPSILON * fabs(s.mean))
		s.scale = sqrt(squares);
	return s;
}

static int choose_features(const struct fit_request *q, struct fitted *f, struct err *err)
{
	if (q->technique->by_meaning)
		return features_by_meaning(q->c, q->p, &f->features, err);
	f->features.column = mem_array(q->features->n ? q->features->n : 1, sizeof *f->features.column);
	if (!f->features.column)
		return err_nomem(err, "%zu features", q->features->n);
	memcpy(f->features.column, q->features->column, q->features->n * sizeof *f->features.column);
	f->features.n = q->features->n;
	return 0;
}

static int choose_scaling(const struct fit_request *q, struct fitted *f, struct err *err)
{
	f->y = (struct scaling){ .scale = 1.0 };
	if (!q->c->normalization || q->technique->by_meaning)
		return 0;
	f->x = mem_array(f->features.n, sizeof *f->x);
	if (!f->x)
		return err_nomem(err, "%zu features", f->features.n);
	for (size_t j = 0; j < f->features.n; j++)
		f->x[j] = scaling_of(q->p->column[f->features.column[j]].value, q->rows);
	f->y = scaling_of(q->p->y, q->rows);
	return 0;
}

int fitted_make(const struct fit_request *q, struct fitted *out, struct err *err)
{
	struct fitted f = { 0 };
	struct dataset d = { .n_rows = q->rows->n };
	const char **name = NULL;
	uint8_t *role = NULL;
	int rc = choose_features(q, &f, err);

	if (!rc && q->technique->by_meaning && f.features.n > FEATURES_MAX)
		rc = err_fail(err, ERR_ARG, "%zu features; %s takes %d at most", f.features.n,
			      q->technique->name, FEATURES_MAX);
	if (!rc)
		rc = choose_scaling(q, &f, err);
	if (rc)
		goto out;
	d.n_features = f.features.n;
	d.x = mem_array(d.n_rows * d.n_features, sizeof *d.x);
	d.y = mem_array(d.n_rows, sizeof *d.y);
	if (!d.x || !d.y) {
		rc = err_nomem(err, "%zu rows", d.n_rows);
		goto out;
	}
	gather(&f, q->p, q->rows, d.x);
	for (size_t i = 0; i < d.n_rows; i++)
		d.y[i] = (q->p->y[q->rows->row[i]] - f.y.mean) / f.y.scale;
	if (q->technique->by_meaning) {
		name = mem_array(d.n_features, sizeof *name);
		role = mem_array(d.n_features, sizeof *role);
		if (!name || !role) {
			rc = err_nomem(err, "%zu features", d.n_features);
			goto out;
		}
		for (size_t j = 0; j < d.n_features; j++) {
			name[j] = q->p->column[f.features.column[j]].name;
			role[j] = (uint8_t)automl_role(q->c, q->p, f.features.column[j]);
		}
		d.name = name;
		d.role = role;
	}
	rc = predictor_fit(q->technique->ops, q->settings, &d, &q->ctx, &f.model, err);
out:
	free(d.x);
	free(d.y);
	free(name);
	free(role);
	if (rc)
		fitted_release(&f);
	else
		*out = f;
	return rc;
}

int fitted_predict(const struct fitted *f, const struct prepared *p, const struct row_list *rows, double *out,
		   struct err *err)
{
	double *x = mem_array(rows->n * f->features.n, sizeof *x);

	if (!x)
		return err_nomem(err, "%zu rows", rows->n);
	gather(f, p, rows, x);
	predictor_predict(&f->model, x, rows->n, out);
	free(x);
	for (size_t i = 0; i < rows->n; i++)
		out[i] = out[i] * f->y.scale + f->y.mean;
	return 0;
}

/* ---- scores ---- */

struct automl_score automl_score_of(const double *y, const double *predicted, size_t n)
{
	double mean = 0.0, total = 0.0, squares = 0.0, shares = 0.0;

	for (size_t i = 0; i < n; i++)
		mean += y[i] / (double)n;
	for (size_t i = 0; i < n; i++) {
		double e = predicted[i] - y[i];

		squares += e * e;
		total += (y[i] - mean) * (y[i] - mean);
		shares += fabs(e) / fmax(fabs(y[i]), DBL_EPSILON);
	}
	return (struct automl_score){ .mape = n ? shares / (double)n : NAN,
				      .rmse = n ? sqrt(squares / (double)n) : NAN,
				      .r2 = total > 0.0 ? 1.0 - squares / total : NAN };
}

int fitted_score(const struct fitted *f, const struct prepared *p, const struct row_list *rows,
		 struct automl_score *out, struct err *err)
{
	double *predicted = mem_array(rows->n ? rows->n : 1, sizeof *predicted);
	double *y = mem_array(rows->n ? rows->n : 1, sizeof *y);
	int rc = predicted && y ? fitted_predict(f, p, rows, predicted, err)
				: err_nomem(err, "%zu rows", rows->n);

	for (size_t i = 0; i < rows->n && !rc; i++) {
		y[i] = p->y[rows->row[i]];
		if (!isfinite(predicted[i]))
			rc = err_fail(err, ERR_NUMERIC, "the model has no answer for line %u of the table",
				      p->csv->line[rows->row[i]]);
	}
	if (!rc)
		*out = automl_score_of(y, predicted, rows->n);
	free(predicted);
	free(y);
	return rc;
}

int fitted_cross(const struct fit_request *q, size_t folds, struct automl_score *out, struct err *err)
{
	struct row_list held = { 0 }, rest = { 0 };
	struct automl_score sum = { 0 };
	size_t n = folds < q->rows->n ? folds : q->rows->n, with_r2 = 0;
	int rc = n < 2 ? err_fail(err, ERR_NODATA, "%zu rows cannot be split", q->rows->n) : 0;

	for (size_t k = 0; k < n && !rc; k++) {
		struct fit_request part = *q;
		struct automl_score s;
		struct fitted f = { 0 };

		part.rows = &rest;
		rc = folds_contiguous(q->rows, k, n, &held, &rest, err);
		if (!rc)
			rc = fitted_make(&part, &f, err);
		if (!rc)
			rc = fitted_score(&f, q->p, &held, &s, err);
		fitted_release(&f);
		if (rc)
			break;
		sum.mape += s.mape / (double)n;
		sum.rmse += s.rmse / (double)n;
		if (!isnan(s.r2)) {
			sum.r2 += s.r2;
			with_r2++;
		}
	}
	if (!rc) {
		*out = sum;
		out->r2 = with_r2 ? sum.r2 / (double)with_r2 : -sum.rmse; /* folds of one row have no R2 */
	}
	free(held.row);
	free(rest.row);
	return rc;
}
