/* Makes model bundles of what a campaign has found. See select.h. */
#include "automl/select.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "predictors/models/pipeline.h"

#define RESIDUAL_FOLDS 5
#define MOST_CANDIDATES 64

/* ---- schema and features ---- */

/* The columns of the table that the campaign uses, once each. */
static size_t used_sources(const struct prepared *p, size_t *source)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_columns; i++) {
		bool seen = p->column[i].by != MADE_NUMBER && p->column[i].by != MADE_CLASS;

		for (size_t k = 0; k < n && !seen; k++)
			seen = source[k] == p->column[i].source;
		if (!seen)
			source[n++] = p->column[i].source;
	}
	return n;
}

static bool is_category(const struct prepared *p, size_t source)
{
	for (size_t i = 0; i < p->n_columns; i++)
		if (p->column[i].by == MADE_CLASS && p->column[i].source == source)
			return true;
	return false;
}

/* The column of numbers that Postrider would choose: what the campaign says, else the batch, else the
 * first. */
static const char *decision_of(const struct campaign *c, const struct prepared *p)
{
	const char *first = NULL;

	if (c->decision)
		return c->decision;
	for (size_t i = 0; i < p->n_columns; i++) {
		if (p->column[i].by != MADE_NUMBER || is_category(p, p->column[i].source))
			continue;
		if (automl_role(c, p, i) == ROLE_BATCH)
			return p->column[i].name;
		first = first ? first : p->column[i].name;
	}
	return first;
}

static void put_roles(const struct campaign *c, const struct prepared *p, struct json_writer *w)
{
	bool taken[N_ROLES] = { 0 };

	json_kv_open(w, "roles", '{');
	for (size_t i = 0; i < p->n_columns; i++) {
		enum feature_role role = p->column[i].by == MADE_NUMBER &&
							 !is_category(p, p->column[i].source)
						 ? automl_role(c, p, i)
						 : ROLE_NONE;

		if (role == ROLE_NONE || role == ROLE_BATCH || role >= N_ROLES || taken[role])
			continue;
		taken[role] = true;
		json_kv_string(w, schema_role_name[role], p->column[i].name);
	}
	json_close(w, '}');
}

static int make_schema(const struct campaign *c, const struct prepared *p, struct schema **out,
		       struct err *err)
{
	const char *decision = decision_of(c, p);
	size_t *source = mem_array(p->csv->n_columns + 1, sizeof *source), n;
	struct strbuf text = { 0 };
	struct json_writer w;
	struct json *v;
	int rc;

	if (!source)
		return err_nomem(err, "a schema");
	n = used_sources(p, source);
	json_begin(&w, &text, false);
	json_open(&w, '{');
	json_kv_open(&w, "columns", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(&w, '{');
		json_kv_string(&w, "name", p->name[source[i]]);
		json_kv_string(&w, "kind", is_category(p, source[i]) ? "category" : "number");
		if (strcmp(p->name[source[i]], p->csv->header[source[i]])) {
			json_kv_open(&w, "alias", '[');
			json_put_string(&w, p->csv->header[source[i]]);
			json_close(&w, ']');
		}
		json_close(&w, '}');
	}
	json_close(&w, ']');
	free(source);
	if (decision)
		json_kv_string(&w, "decision", decision);
	if (c->candidates) {
		json_put_key(&w, "candidates");
		literal_to_json(c->candidates, &w);
	}
	json_kv_open(&w, "targets", '{');
	json_kv_string(&w, "time", c->y);
	json_close(&w, '}');
	put_roles(c, p, &w);
	json_close(&w, '}');
	if (text.failed)
		rc = err_nomem(err, "a schema");
	else if (!decision)
		rc = err_fail(err, ERR_NODATA,
			      "a model file needs a column of numbers to decide on, and the table has none");
	else
		rc = json_parse("schema", text.text, text.len, &v, err);
	if (!rc) {
		rc = schema_from_json("the schema of the campaign", v, out, err);
		json_free(v);
	}
	strbuf_release(&text);
	return rc;
}

/* The rows that are used, under the schema, without the target. */
static int make_table(const struct prepared *p, const struct schema *s, struct table **out, struct err *err)
{
	size_t *source = mem_array(p->csv->n_columns + 1, sizeof *source), n = 0;
	struct table_value *value = mem_calloc(p->csv->n_columns + 1, sizeof *value);
	struct table_builder *b = NULL;
	int rc = source && value ? table_builder_new(p->csv->name, s, &b, err) : err_nomem(err, "a table");

	if (!rc)
		n = used_sources(p, source);
	for (size_t i = 0; i < p->all.n && !rc; i++) {
		for (size_t k = 0; k < n; k++) {
			const char *cell = csv_cell(p->csv, p->all.row[i], source[k]);

			value[k] = (struct table_value){ .name = p->name[source[k]], .text = cell };
			if (!is_category(p, source[k])) { /* True and False are numbers here */
				for (size_t c = 0; c < p->n_columns; c++)
					if (p->column[c].by == MADE_NUMBER &&
					    p->column[c].source == source[k])
						value[k] = (struct table_value){
							.name = p->name[source[k]],
							.number = p->column[c].value[p->all.row[i]]
						};
			}
		}
		rc = table_builder_row(b, value, n, err);
	}
	if (!rc)
		rc = table_builder_finish(b, TABLE_NEEDS_FACTORS, out, err);
	table_builder_free(b);
	free(source);
	free(value);
	return rc;
}

/* ---- the pipeline ---- */

/* The feature of the bundle that stands for a column of the table (and a value of it). */
static bool find_feature(const struct features *f, const struct prepared *p, const struct made_column *col,
			 struct pipe_column *out)
{
	int source = schema_find(f->schema, p->name[col->source]);

	for (size_t i = 0; i < f->n; i++) {
		const struct feature *at = &f->feature[i];

		if ((int)at->source != source)
			continue;
		out->feature = (uint32_t)i;
		out->equals = 1.0;
		if (col->by == MADE_NUMBER)
			return true;
		if (at->category && !strcmp(at->category, col->class))
			return true;
		if (at->category_zero && !strcmp(at->category_zero, col->class)) {
			out->equals = 0.0;
			return true;
		}
	}
	return false;
}

/* Columns that are kept, and where: those that the technique sees, and what they are made from. */
static size_t number_columns(const struct prepared *p, const struct feature_list *x, uint32_t *place)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_columns; i++)
		place[i] = UINT32_MAX;
	for (size_t j = 0; j < x->n; j++)
		place[x->column[j]] = 0;
	for (size_t i = p->n_columns; i-- > 0;)
		for (size_t k = 0; place[i] != UINT32_MAX && k < p->column[i].n_of; k++)
			place[p->column[i].of[k]] = 0;
	for (size_t i = 0; i < p->n_columns; i++)
		if (place[i] != UINT32_MAX)
			place[i] = (uint32_t)n++;
	return n;
}

static int copy_columns(const struct features *f, const struct prepared *p, const uint32_t *place,
			struct pipeline *m, struct err *err)
{
	for (size_t i = 0; i < p->n_columns; i++) {
		const struct made_column *from = &p->column[i];
		struct pipe_column *c = place[i] == UINT32_MAX ? NULL : &m->column[place[i]];

		if (!c)
			continue;
		c->by = from->by;
		c->n_of = (uint32_t)from->n_of;
		if (from->n_of && !(c->of = mem_array(from->n_of, sizeof *c->of)))
			return err_nomem(err, "a model");
		for (size_t k = 0; k < from->n_of; k++)
			c->of[k] = place[from->of[k]];
		if ((from->by == MADE_NUMBER || from->by == MADE_CLASS) && !find_feature(f, p, from, c))
			return err_fail(err, ERR_FORMAT, "column '%.60s' has no place in the model file",
					from->name);
	}
	return 0;
}

static int make_pipeline(const struct features *f, const struct attempt *t, struct fitted *fit,
			 const double *mean, struct pipeline **out, struct err *err)
{
	const struct prepared *p = t->p;
	struct pipeline *m = mem_calloc(1, sizeof *m);
	uint32_t *place = mem_array(p->n_columns, sizeof *place);
	int rc = m && place ? 0 : err_nomem(err, "a model");

	if (!rc) {
		snprintf(m->technique, sizeof m->technique, "%s", t->plan->technique->name);
		m->n_features = f->n;
		m->n_columns = number_columns(p, &fit->features, place);
		m->n_x = fit->features.n;
		m->y = fit->y;
		m->fill = mem_array(f->n, sizeof *m->fill);
		m->column = mem_calloc(m->n_columns, sizeof *m->column);
		m->x = mem_array(m->n_x, sizeof *m->x);
		if (!m->fill || !m->column || !m->x)
			rc = err_nomem(err, "a model");
	}
	if (!rc)
		rc = copy_columns(f, p, place, m, err);
	if (rc) {
		pipeline_free(m);
		free(place);
		return rc;
	}
	memcpy(m->fill, mean, f->n * sizeof *m->fill);
	for (size_t j = 0; j < m->n_x; j++)
		m->x[j] = place[fit->features.column[j]];
	m->scale = fit->x;
	fit->x = NULL;
	m->inner = fit->model;
	fit->model = (struct predictor){ 0 };
	free(place);
	*out = m;
	return 0;
}

/* ---- bounds and scores ---- */

/* Predictions of rows by models that have not seen them. */
static int cross_predict(const struct attempt *t, const struct outcome *o, double *out, struct score *fold,
			 size_t *n_folds, struct err *err)
{
	size_t n = t->rows->n < RESIDUAL_FOLDS ? t->rows->n : RESIDUAL_FOLDS, at = 0;
	struct row_list left = { .row = mem_array(t->rows->n, sizeof *left.row), .n = t->rows->n };
	struct rng rng = rng_stream(t->seed, 5);
	struct row_list held = { 0 }, rest = { 0 };
	double *y = mem_array(t->rows->n, sizeof *y), *predicted = mem_array(t->rows->n, sizeof *predicted);
	uint32_t *place =
		mem_calloc(t->p->n_rows, sizeof *place); /* of a row of the table among those used */
	int rc = left.row && y && predicted && place ? 0 : err_nomem(err, "%zu rows", t->rows->n);

	for (size_t i = 0; i < t->rows->n && !rc; i++)
		place[t->rows->row[i]] = (uint32_t)i;
	if (!rc) {
		memcpy(left.row, t->rows->row, t->rows->n * sizeof *left.row);
		if (!t->p->group)
			rng_shuffle(&rng, left.row, left.n);
	}
	for (size_t k = 0; k < n && n > 1 && !rc; k++) {
		struct attempt part = *t;
		struct fitted f = { 0 };

		part.rows = &rest;
		rc = folds_contiguous(&left, k, n, &held, &rest, err);
		if (!rc)
			rc = attempt_fit(&part, o, &f, err);
		if (!rc)
			rc = fitted_predict(&f, t->p, &held, predicted, err);
		fitted_release(&f);
		for (size_t i = 0; i < held.n && !rc; i++) {
			y[i] = t->p->y[held.row[i]];
			out[place[held.row[i]]] = predicted[i];
		}
		if (!rc)
			fold[at++] = score_of(y, predicted, held.n);
	}
	*n_folds = at;
	free(place);
	free(left.row);
	free(held.row);
	free(rest.row);
	free(y);
	free(predicted);
	return rc;
}

static int find_bounds(const struct attempt *t, const struct outcome *o, struct model_target *out,
		       struct err *err)
{
	size_t n = t->rows->n, n_folds = 0;
	double *predicted = mem_array(n, sizeof *predicted), *y = mem_array(n, sizeof *y);
	struct score fold[RESIDUAL_FOLDS];
	int rc = predicted && y ? 0 : err_nomem(err, "%zu rows", n);

	for (size_t i = 0; i < n && !rc; i++) {
		y[i] = t->p->y[t->rows->row[i]];
		predicted[i] = NAN;
	}
	if (!rc && cross_predict(t, o, predicted, fold, &n_folds, err)) {
		if (err->code == ERR_NOMEM)
			rc = -ERR_NOMEM;
		else /* too few rows to leave some out: no bounds, and no scores */
			*err = (struct err){ 0 };
		n_folds = 0;
	}
	if (!rc && n_folds) {
		out->score = score_summarise(fold, n_folds);
		rc = conformal_fit(y, predicted, n, true, &out->conformal, err);
		snprintf(out->scored_by, sizeof out->scored_by, "%zu-fold", n_folds);
		snprintf(out->residuals_by, sizeof out->residuals_by, "%zu-fold", n_folds);
	}
	free(predicted);
	free(y);
	return rc;
}

/* ---- the whole ---- */

static int find_candidates(const struct campaign *c, const struct table *t, struct model *m, struct err *err)
{
	int at = schema_find(m->schema, m->schema->decision);
	size_t n = c->candidates ? c->candidates->n : t->n_rows, kept = 0;
	double *v = mem_array(n ? n : 1, sizeof *v);

	if (!v)
		return err_nomem(err, "candidates");
	for (size_t i = 0; i < n; i++)
		v[i] = c->candidates ? c->candidates->item[i].number : t->column[at].number[i];
	stats_sort(v, n);
	for (size_t i = 0; i < n; i++)
		if (!kept || v[i] != v[kept - 1])
			v[kept++] = v[i];
	if (kept > MOST_CANDIDATES) {
		for (size_t i = 0; i < MOST_CANDIDATES; i++)
			v[i] = v[i * (kept - 1) / (MOST_CANDIDATES - 1)];
		kept = MOST_CANDIDATES;
	}
	m->candidate = v;
	m->n_candidates = kept;
	return 0;
}

static int column_means(const struct features *f, const struct table *t, double **out, struct err *err)
{
	double *x, *mean = mem_calloc(f->n + 1, sizeof *mean);
	int rc = mean ? features_encode_table(f, t, &x, err) : err_nomem(err, "a model");

	if (rc) {
		free(mean);
		return rc;
	}
	for (size_t i = 0; i < t->n_rows; i++)
		for (size_t j = 0; j < f->n; j++)
			mean[j] += x[i * f->n + j] / (double)t->n_rows;
	free(x);
	*out = mean;
	return 0;
}

int bundle_make(const struct automl *a, size_t technique, const struct attempt *t, struct fitted *f,
		struct model **out, struct err *err)
{
	struct model *m = mem_calloc(1, sizeof *m);
	struct table *table = NULL;
	struct pipeline *pipe = NULL;
	double *mean = NULL;
	int rc = m ? make_schema(a->c, a->p, &m->schema, err) : err_nomem(err, "a model");

	if (!rc)
		rc = make_table(a->p, m->schema, &table, err);
	if (!rc)
		rc = features_fit(table, &m->features, err);
	if (!rc)
		rc = column_means(m->features, table, &mean, err);
	if (!rc)
		rc = make_pipeline(m->features, t, f, mean, &pipe, err);
	if (!rc) {
		m->time.predictor =
			(struct predictor){ .ops = &automl_ops, .n_features = m->features->n, .self = pipe };
		settings_init(&m->time.predictor.settings, automl_ops.spec);
		m->time.n_rows = a->p->all.n;
		rc = find_bounds(t, &a->outcome[STAGE_MODEL][technique], &m->time, err);
	}
	if (!rc)
		rc = find_candidates(a->c, table, m, err);
	if (!rc) {
		m->seed = a->c->seed;
		m->data_rows = a->p->all.n;
		m->data_fingerprint = table->fingerprint;
		snprintf(m->data_name, sizeof m->data_name, "%s", a->c->input_path);
	}
	table_free(table);
	free(mean);
	if (rc) {
		model_free(m);
		return rc;
	}
	*out = m;
	return 0;
}
