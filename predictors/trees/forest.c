/* The models `forest` and `tree`: bags of rows, a tree on each, and the rows that were out of a bag. Read
 * grow.c next. */
#include "predictors/trees/forest.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "predictors/trees/ensemble_model.h"

const char *const forest_criterion_words[] = { "squared", "absolute", NULL };
const char *const forest_max_features_words[] = { "all", "sqrt", "log2", NULL };
const char *const forest_no_yes[] = { "no", "yes", NULL };

static const struct setting_spec forest_spec[] = {
	FOREST_SETTINGS(100, 1, "number of trees"),
	{ .name = NULL },
};

static const struct setting_spec tree_spec[] = {
	FOREST_GROWTH_SETTINGS(1),
	{ .name = NULL },
};

/* ---- settings ---- */

static uint32_t rows_of(double setting, size_t n_rows, uint32_t least)
{
	double rows = setting < 1.0 ? ceil(setting * (double)n_rows) : ceil(setting);

	return rows < least ? least : rows > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)rows;
}

static uint32_t max_features_of(double setting, size_t p)
{
	double n;

	if (setting == -1)
		n = (double)p;
	else if (setting == -2)
		n = floor(sqrt((double)p));
	else if (setting == -3)
		n = floor(log2((double)p));
	else
		n = setting < 1.0 ? floor(setting * (double)p) : floor(setting);
	return n < 1 ? 1 : n > (double)p ? (uint32_t)p : (uint32_t)n;
}

struct forest_params forest_params_of(const struct settings *s, size_t n_rows, size_t n_features)
{
	bool single = s->spec == tree_spec, absolute = settings_get(s, "criterion") == 1;
	double depth = settings_get(s, "depth");

	return (struct forest_params){
		.grow = {
			.criterion = absolute ? CRITERION_ABSOLUTE : CRITERION_SQUARED,
			.max_depth = depth == 0 ? UINT32_MAX : (uint32_t)depth,
			.max_features = max_features_of(settings_get(s, "max_features"), n_features),
			.min_split = rows_of(settings_get(s, "min_samples_split"), n_rows, 2),
			.min_leaf = rows_of(settings_get(s, "min_samples_leaf"), n_rows, 1),
		},
		.n_trees = single ? 1 : (size_t)settings_get(s, "trees"),
		.bootstrap = !single && settings_get(s, "bootstrap") == 1,
	};
}

uint64_t forest_draw(uint64_t seed, size_t tree, bool bootstrap, size_t n_rows, uint32_t *weight)
{
	struct rng rng = rng_stream(seed, tree);
	uint64_t key = rng_next(&rng);

	if (!bootstrap) {
		for (size_t i = 0; i < n_rows; i++)
			weight[i] = 1;
		return key;
	}
	memset(weight, 0, n_rows * sizeof *weight);
	for (size_t i = 0; i < n_rows; i++)
		weight[rng_below(&rng, (uint32_t)n_rows)]++;
	return key;
}

/* ---- fit ---- */

struct forest_job {
	const struct dataset *data;
	const struct fit_context *ctx;
	struct forest_params p;
	struct grower **grower; /* per worker */
	uint32_t **weight; /* per worker */
	struct tree *tree; /* per tree */
	uint8_t *in_bag; /* a bit per tree and row; NULL unless out-of-bag predictions are wanted */
	size_t bag_stride;
	atomic_int failed; /* an enum err_code */
};

static void grow_one(void *ctx, size_t t, size_t worker)
{
	struct forest_job *job = ctx;
	uint32_t *weight = job->weight[worker];
	uint64_t key;
	int status;

	if (atomic_load_explicit(&job->failed, memory_order_relaxed))
		return;
	status = err_if_stopped(job->ctx->stop, NULL);
	if (status) {
		atomic_store(&job->failed, -status);
		return;
	}
	key = forest_draw(job->ctx->seed, t, job->p.bootstrap, job->data->n_rows, weight);
	status = grower_tree(job->grower[worker], job->data->y, weight, key, &job->tree[t], NULL);
	if (status) {
		atomic_store(&job->failed, -status);
		return;
	}
	if (job->in_bag)
		for (size_t i = 0; i < job->data->n_rows; i++)
			if (weight[i])
				job->in_bag[t * job->bag_stride + i / 8] |= (uint8_t)(1 << i % 8);
}

struct oob_job {
	const struct forest_job *grown;
	double *out;
};

#define OOB_CHUNK 256

static void oob_rows(void *ctx, size_t chunk, size_t worker)
{
	struct oob_job *job = ctx;
	const struct forest_job *grown = job->grown;
	const struct dataset *d = grown->data;
	size_t end = (chunk + 1) * OOB_CHUNK < d->n_rows ? (chunk + 1) * OOB_CHUNK : d->n_rows;

	(void)worker;
	for (size_t i = chunk * OOB_CHUNK; i < end; i++) {
		double sum = 0.0;
		size_t n = 0;

		for (size_t t = 0; t < grown->p.n_trees; t++)
			if (!(grown->in_bag[t * grown->bag_stride + i / 8] >> i % 8 & 1)) {
				const struct tree *tree = &grown->tree[t];
				sum += tree->value[tree_leaf(tree->node, d->x + i * d->n_features)];
				n++;
			}
		job->out[i] = n ? sum / (double)n : NAN;
	}
}

static int forest_collect(struct forest_job *job, struct ensemble_model **out, struct err *err)
{
	const struct dataset *d = job->data;
	struct ensemble_model *m = NULL;
	int status = ensemble_model_new(job->tree, job->p.n_trees, d->n_features, 0.0, (double)job->p.n_trees,
					&m, err);

	/* A single tree is walked sooner than the words of its masks are found. */
	if (!status && !job->ctx->no_importances && job->p.n_trees > 1)
		status = leaf_masks_build(m->ensemble, err);
	if (status) {
		ensemble_model_free(m);
		return status;
	}
	if (job->in_bag) {
		struct oob_job oob = { job, NULL };

		m->oob = oob.out = mem_array(d->n_rows, sizeof *m->oob);
		if (!m->oob) {
			ensemble_model_free(m);
			return err_nomem(err, "the out-of-bag predictions");
		}
		pool_run(job->ctx->pool, (d->n_rows + OOB_CHUNK - 1) / OOB_CHUNK, oob_rows, &oob);
	}
	*out = m;
	return 0;
}

static int forest_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		      void **out_self, struct err *err)
{
	struct forest_job job = { .data = d, .ctx = ctx };
	size_t workers = pool_threads(ctx->pool);
	struct bins *own = NULL, **bins = ctx->bins ? ctx->bins : &own;
	struct ensemble_model *forest = NULL;
	uint32_t *order = NULL;
	int status;

	job.p = forest_params_of(s, d->n_rows, d->n_features);
	status = *bins ? 0 : bins_new(d, ctx->pool, bins, err);
	if (status)
		return status;
	status = err_nomem(err, "a forest of %zu trees", job.p.n_trees);
	job.grower = mem_calloc(workers, sizeof *job.grower);
	job.weight = mem_calloc(workers, sizeof *job.weight);
	job.tree = mem_calloc(job.p.n_trees, sizeof *job.tree);
	if (!job.grower || !job.weight || !job.tree)
		goto out;
	if (ctx->want_oob && job.p.bootstrap) {
		job.bag_stride = (d->n_rows + 7) / 8;
		job.in_bag = mem_calloc(job.p.n_trees, job.bag_stride);
		if (!job.in_bag)
			goto out;
	}
	if (job.p.grow.criterion == CRITERION_ABSOLUTE) {
		order = mem_array(d->n_rows, sizeof *order);
		if (!order || bins_order(d->y, d->n_rows, order, err))
			goto out;
	}
	for (size_t i = 0; i < workers; i++) {
		job.weight[i] = mem_array(d->n_rows, sizeof **job.weight);
		if (!job.weight[i] || grower_new(*bins, &job.p.grow, order, &job.grower[i], err))
			goto out;
	}
	pool_run(ctx->pool, job.p.n_trees, grow_one, &job);
	status = -atomic_load(&job.failed);
	if (status == -ERR_STOPPED)
		err_fail(err, ERR_STOPPED, "stopped");
	else if (status)
		err_fail(err, (enum err_code) - status, "no memory for a forest of %zu trees", job.p.n_trees);
	else
		status = forest_collect(&job, &forest, err);
	if (!status) {
		if (err)
			*err = (struct err){ 0 };
		*out_self = forest;
	}
out:
	for (size_t i = 0; i < workers; i++) {
		if (job.grower)
			grower_free(job.grower[i]);
		if (job.weight)
			free(job.weight[i]);
	}
	for (size_t t = 0; job.tree && t < job.p.n_trees; t++)
		tree_release(&job.tree[t]);
	free(job.grower);
	free(job.weight);
	free(job.tree);
	free(job.in_bag);
	free(order);
	bins_free(own);
	return status;
}

const struct predictor_ops forest_ops = {
	.name = "forest",
	.title = "random forest",
	.spec = forest_spec,
	.fit = forest_fit,
	ENSEMBLE_MODEL_OPS,
};

const struct predictor_ops tree_ops = {
	.name = "tree",
	.title = "decision tree",
	.spec = tree_spec,
	.fit = forest_fit,
	ENSEMBLE_MODEL_OPS,
};
