/* What forest, tree and boost share as models: prediction, importances, file. */
#include "predictors/trees/ensemble_model.h"

#include <stdlib.h>

#include "common/mem.h"

/* Mean over the trees of each tree's shares, as scikit-learn has it: a tree without a split has none. */
static void sum_importances(const struct tree *tree, size_t n_trees, size_t p, double *out)
{
	double total = 0.0;

	for (size_t t = 0; t < n_trees; t++) {
		double sum = 0.0;
		for (size_t f = 0; f < p; f++)
			sum += tree[t].importance[f];
		for (size_t f = 0; f < p && sum > 0.0; f++)
			out[f] += tree[t].importance[f] / sum;
	}
	for (size_t f = 0; f < p; f++)
		total += out[f];
	for (size_t f = 0; f < p && total > 0.0; f++)
		out[f] /= total;
}

int ensemble_model_new(const struct tree *tree, size_t n_trees, size_t n_features, double base,
		       double divisor, struct ensemble_model **out, struct err *err)
{
	struct ensemble_model *m = mem_calloc(1, sizeof *m);
	int status;

	if (!m || !(m->importance = mem_calloc(n_features, sizeof *m->importance))) {
		ensemble_model_free(m);
		return err_nomem(err, "%zu trees", n_trees);
	}
	sum_importances(tree, n_trees, n_features, m->importance);
	status = ensemble_new(tree, n_trees, n_features, base, divisor, &m->ensemble, err);
	if (status) {
		ensemble_model_free(m);
		return status;
	}
	*out = m;
	return 0;
}

void ensemble_model_free(void *self)
{
	struct ensemble_model *m = self;

	if (!m)
		return;
	ensemble_free(m->ensemble);
	free(m->importance);
	free(m->oob);
	free(m);
}

void ensemble_model_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	ensemble_predict(((const struct ensemble_model *)self)->ensemble, x, n_rows, out);
}

int ensemble_model_compile(void *self, struct err *err)
{
	return ensemble_compile(((struct ensemble_model *)self)->ensemble, err);
}

const double *ensemble_model_oob(const void *self)
{
	return ((const struct ensemble_model *)self)->oob;
}

void ensemble_model_importances(const void *self, double *out)
{
	const struct ensemble_model *m = self;

	for (size_t f = 0; f < m->ensemble->n_features; f++)
		out[f] = m->importance ? m->importance[f] : 0.0;
}

void ensemble_model_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct ensemble *e = ((const struct ensemble_model *)self)->ensemble;
	size_t cells = ensemble_cells(e);

	(void)names;
	json_kv_int(w, "trees", (long long)e->n_trees);
	json_kv_int(w, "nodes", (long long)e->n_nodes);
	json_put_key(w, "lookup_cells");
	if (cells <= LOOKUP_MAX_CELLS)
		json_put_int(w, (long long)cells);
	else
		json_put_null(w);
}

int ensemble_model_save(const void *self, struct writer *w, struct err *err)
{
	return ensemble_save(((const struct ensemble_model *)self)->ensemble, w, err);
}

int ensemble_model_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	struct ensemble_model *m = mem_calloc(1, sizeof *m);
	int status;

	if (!m)
		return err_nomem(err, "trees");
	status = ensemble_load(r, n_features, &m->ensemble, err);
	if (status) {
		ensemble_model_free(m);
		return status;
	}
	*out_self = m;
	return 0;
}
