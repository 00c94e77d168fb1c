/* The model `boost`: trees fitted one after the other to what those before leave. Read grow.c next. */
#include "predictors/trees/boost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "predictors/trees/ensemble_model.h"

enum loss { LOSS_SQUARED, LOSS_ABSOLUTE, LOSS_HUBER };

static const char *const loss_words[] = { "squared", "absolute", "huber", NULL };
static const char *const no_yes[] = { "no", "yes", NULL };

static const struct setting_spec boost_spec[] = {
	{ .name = "trees",
	  .otherwise = 100,
	  .min = 1,
	  .max = ENSEMBLE_MAX_TREES,
	  .integer = true,
	  .help = "rounds of boosting, one tree each" },
	{ .name = "depth",
	  .otherwise = 3,
	  .min = 1,
	  .max = 10000,
	  .integer = true,
	  .help = "levels below the root of each tree" },
	{ .name = "loss",
	  .otherwise = 0,
	  .min = 0,
	  .max = 2,
	  .words = loss_words,
	  .help = "squared, absolute or huber" },
	{ .name = "rate",
	  .otherwise = 0.1,
	  .min = 1e-6,
	  .max = 1,
	  .help = "share of each tree that is added" },
	{ .name = "subsample",
	  .otherwise = 1,
	  .min = 0.01,
	  .max = 1,
	  .help = "share of the rows, drawn without replacement, each tree sees" },
	{ .name = "alpha",
	  .otherwise = 0.9,
	  .min = 0.01,
	  .max = 0.99,
	  .help = "huber: residuals above this quantile count linearly" },
	{ .name = "min_samples_split",
	  .otherwise = 2,
	  .min = 2,
	  .max = 1e9,
	  .integer = true,
	  .help = "rows a node needs to be split" },
	{ .name = "min_samples_leaf",
	  .otherwise = 1,
	  .min = 1,
	  .max = 1e9,
	  .integer = true,
	  .help = "rows each side of a split must keep" },
	{ .name = "validation",
	  .otherwise = 0,
	  .min = 0,
	  .max = 0.5,
	  .help = "share of the rows held back for early stopping; 0: no early stopping" },
	{ .name = "patience",
	  .otherwise = 10,
	  .min = 1,
	  .max = 100000,
	  .integer = true,
	  .help = "rounds without improvement on the held-back rows before stopping" },
	{ .name = "log",
	  .max = 1,
	  .integer = true,
	  .words = no_yes,
	  .help = "fit the logarithm of the target" },
	{ .name = NULL },
};

/* The state of a run, round after round. */
struct boosting {
	const struct dataset *d;
	enum loss loss;
	double rate, subsample, alpha;
	struct bins *bins;
	struct grower *grower;
	double *score; /* the model's prediction so far, per row */
	double *gradient; /* what the next tree is fitted to */
	double *work;
	uint32_t *weight, *pick, *leaf, *start;
	double base, threshold; /* threshold: where Huber's loss turns linear, this round */
};

static void boosting_release(struct boosting *b)
{
	grower_free(b->grower);
	bins_free(b->bins);
	free(b->score);
	free(b->gradient);
	free(b->work);
	free(b->weight);
	free(b->pick);
	free(b->leaf);
	free(b->start);
}

static int boosting_init(struct boosting *b, const struct settings *s, const struct dataset *d,
			 struct pool *pool, struct err *err)
{
	struct grow_params grow = {
		.criterion = CRITERION_SQUARED, /* equals Friedman's improvement: same order of splits */
		.max_depth = (uint32_t)settings_get(s, "depth"),
		.max_features = (uint32_t)d->n_features,
		.min_split = (uint32_t)settings_get(s, "min_samples_split"),
		.min_leaf = (uint32_t)settings_get(s, "min_samples_leaf"),
	};
	size_t n = d->n_rows;
	int status;

	*b = (struct boosting){ .d = d,
				.loss = (enum loss)settings_get(s, "loss"),
				.rate = settings_get(s, "rate"),
				.subsample = settings_get(s, "subsample"),
				.alpha = settings_get(s, "alpha") };
	status = bins_new(d, pool, &b->bins, err);
	if (!status)
		status = grower_new(b->bins, &grow, NULL, &b->grower, err);
	if (status)
		return status;
	b->score = mem_array(n, sizeof *b->score);
	b->gradient = mem_array(n, sizeof *b->gradient);
	b->work = mem_array(n, sizeof *b->work);
	b->weight = mem_array(n, sizeof *b->weight);
	b->pick = mem_array(n, sizeof *b->pick);
	b->leaf = mem_array(n, sizeof *b->leaf);
	b->start = mem_array(2 * n + 1, sizeof *b->start); /* a tree on n rows has at most 2n-1 nodes */
	if (!b->score || !b->gradient || !b->work || !b->weight || !b->pick || !b->leaf || !b->start)
		return err_fail(err, ERR_NOMEM, "out of memory to boost on %zu rows", n);
	memcpy(b->work, d->y, n * sizeof *b->work);
	/* The lower median of an even number, as in scikit-learn: predictions then mean the same there and
	 * here. */
	b->base = b->loss == LOSS_SQUARED ? stats_mean(d->y, n) : stats_percentile(b->work, n, 50.0);
	for (size_t i = 0; i < n; i++)
		b->score[i] = b->base;
	return 0;
}

static void draw_rows(struct boosting *b, struct rng *rng)
{
	size_t n = b->d->n_rows, take = (size_t)(b->subsample * (double)n);

	if (b->subsample >= 1.0 || take < 1) {
		for (size_t i = 0; i < n; i++)
			b->weight[i] = 1;
		return;
	}
	memset(b->weight, 0, n * sizeof *b->weight);
	for (size_t i = 0; i < n; i++)
		b->pick[i] = (uint32_t)i;
	for (size_t i = 0; i < take; i++) { /* the first `take` places of a shuffle */
		size_t j = i + rng_below(rng, (uint32_t)(n - i));
		uint32_t row = b->pick[j];
		b->pick[j] = b->pick[i];
		b->weight[row] = 1;
	}
}

static void find_gradient(struct boosting *b)
{
	const double *y = b->d->y;
	size_t n = b->d->n_rows, kept = 0;

	if (b->loss == LOSS_HUBER) {
		for (size_t i = 0; i < n; i++)
			if (b->weight[i])
				b->work[kept++] = fabs(y[i] - b->score[i]);
		b->threshold = stats_percentile(b->work, kept, 100.0 * b->alpha);
	}
	for (size_t i = 0; i < n; i++) {
		double r = y[i] - b->score[i];
		if (b->loss == LOSS_ABSOLUTE)
			r = (r > 0.0) - (r < 0.0);
		else if (b->loss == LOSS_HUBER && fabs(r) > b->threshold)
			r = copysign(b->threshold, r);
		b->gradient[i] = r;
	}
}

/* The step that minimises the loss over one leaf's rows, whose residuals are work[0..n). */
static double leaf_step(const struct boosting *b, double *residual, size_t n)
{
	double median = n ? stats_percentile(residual, n, 50.0) : 0.0, sum = 0.0;

	if (n == 0 || b->loss == LOSS_ABSOLUTE)
		return median;
	for (size_t i = 0; i < n; i++) {
		double r = residual[i] - median;
		sum += fabs(r) > b->threshold ? copysign(b->threshold, r) : r;
	}
	return median + sum / (double)n;
}

/* Residuals of the rows each leaf was grown on, leaf after leaf in work[]; start[node] where its begin. */
static void gather_by_leaf(struct boosting *b, const struct tree *t)
{
	const struct dataset *d = b->d;

	memset(b->start, 0, (t->n_nodes + 1) * sizeof *b->start);
	for (size_t i = 0; i < d->n_rows; i++)
		b->start[b->leaf[i] + 1] += b->weight[i];
	for (size_t node = 0; node < t->n_nodes; node++)
		b->start[node + 1] += b->start[node];
	for (size_t i = 0; i < d->n_rows; i++)
		if (b->weight[i])
			b->work[b->start[b->leaf[i]]++] = d->y[i] - b->score[i];
	for (size_t node = t->n_nodes; node > 0; node--) /* each start moved to its end: shift back */
		b->start[node] = b->start[node - 1];
	b->start[0] = 0;
}

/* For the squared loss the tree's own means are the step; otherwise each leaf is solved again. */
static void set_leaves(struct boosting *b, struct tree *t)
{
	const struct dataset *d = b->d;

	for (size_t i = 0; i < d->n_rows; i++)
		b->leaf[i] = tree_leaf(t->node, d->x + i * d->n_features);
	if (b->loss != LOSS_SQUARED) {
		gather_by_leaf(b, t);
		for (size_t node = 0; node < t->n_nodes; node++)
			if (!t->node[node].left)
				t->value[node] = leaf_step(b, b->work + b->start[node],
							   b->start[node + 1] - b->start[node]);
	}
	for (size_t node = 0; node < t->n_nodes; node++)
		t->value[node] *= b->rate;
	for (size_t i = 0; i < d->n_rows; i++)
		b->score[i] += t->value[b->leaf[i]];
}

static int boosting_round(struct boosting *b, const struct fit_context *ctx, size_t round, struct tree *t,
			  struct err *err)
{
	struct rng rng = rng_stream(ctx->seed, round);
	uint64_t key = rng_next(&rng);
	int status = err_if_stopped(ctx->stop, err);

	if (status)
		return status;
	draw_rows(b, &rng);
	find_gradient(b);
	status = grower_tree(b->grower, b->gradient, b->weight, key, t, err);
	if (!status)
		set_leaves(b, t);
	return status;
}

int boost_staged(const struct settings *s, const struct dataset *train, const struct dataset *test,
		 const struct fit_context *ctx, const size_t *stage, size_t n_stages, double *out,
		 struct err *err)
{
	bool log = predictor_logs(&boost_ops, s);
	struct dataset d = *train;
	struct boosting b = { 0 };
	struct tree t = { 0 };
	double *sum = mem_calloc(test->n_rows, sizeof *sum), *logs = NULL;
	int status = sum ? 0 : err_nomem(err, "%zu test rows", test->n_rows);

	if (!status && log)
		status = dataset_logs(train, &logs, err);
	d.y = log ? logs : train->y;
	if (!status)
		status = boosting_init(&b, s, &d, ctx->pool, err);
	for (size_t round = 0, k = 0; !status && k < n_stages; round++) {
		status = boosting_round(&b, ctx, round, &t, err);
		for (size_t i = 0; !status && i < test->n_rows; i++)
			sum[i] += t.value[tree_leaf(t.node, test->x + i * test->n_features)];
		for (; !status && k < n_stages && stage[k] == round + 1; k++)
			for (size_t i = 0; i < test->n_rows; i++)
				out[k * test->n_rows + i] = log ? exp(b.base + sum[i]) : b.base + sum[i];
	}
	tree_release(&t);
	boosting_release(&b);
	free(sum);
	free(logs);
	return status;
}

/* ---- early stopping: a share of the rows is held back and the loss on it is watched ---- */

static double mean_loss(const struct boosting *b, const struct dataset *d, const double *score)
{
	double sum = 0.0;

	for (size_t i = 0; i < d->n_rows; i++) {
		double r = fabs(d->y[i] - score[i]);
		if (b->loss == LOSS_SQUARED)
			sum += r * r;
		else if (b->loss == LOSS_ABSOLUTE)
			sum += r;
		else
			sum += r <= b->threshold ? r * r / 2.0 : b->threshold * (r - b->threshold / 2.0);
	}
	return sum / (double)d->n_rows;
}

struct watch {
	struct dataset *fit, *held; /* NULL: nothing is held back */
	double *score;
	double best;
	size_t best_round, patience;
};

static void watch_release(struct watch *w)
{
	dataset_free(w->fit);
	dataset_free(w->held);
	free(w->score);
}

static int watch_init(struct watch *w, const struct settings *s, const struct dataset *d, uint64_t seed,
		      struct err *err)
{
	size_t n = d->n_rows, held = (size_t)(settings_get(s, "validation") * (double)n);
	struct rng rng = rng_stream(seed, UINT64_MAX);
	uint32_t *row;
	int status;

	*w = (struct watch){ .best = INFINITY, .patience = (size_t)settings_get(s, "patience") };
	if (held < 1 || held >= n)
		return 0;
	row = mem_array(n, sizeof *row);
	if (!row)
		return err_fail(err, ERR_NOMEM, "out of memory to hold back %zu rows", held);
	for (size_t i = 0; i < n; i++)
		row[i] = (uint32_t)i;
	rng_shuffle(&rng, row, n);
	status = dataset_subset(d, row, held, &w->held, err);
	if (!status)
		status = dataset_subset(d, row + held, n - held, &w->fit, err);
	free(row);
	if (!status && !(w->score = mem_array(held, sizeof *w->score)))
		status = err_fail(err, ERR_NOMEM, "out of memory to hold back %zu rows", held);
	return status;
}

/* True: time to stop; the rounds after the best one are dropped. */
static bool watch_round(struct watch *w, const struct boosting *b, const struct tree *t, size_t round)
{
	double loss;

	for (size_t i = 0; i < w->held->n_rows; i++)
		w->score[i] += t->value[tree_leaf(t->node, w->held->x + i * w->held->n_features)];
	loss = mean_loss(b, w->held, w->score);
	if (loss < w->best) {
		w->best = loss;
		w->best_round = round;
	}
	return round - w->best_round >= w->patience;
}

static int boost_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		     void **out_self, struct err *err)
{
	size_t most = (size_t)settings_get(s, "trees"), n_trees = 0;
	struct tree *tree = mem_calloc(most, sizeof *tree);
	struct ensemble_model *m = NULL;
	struct boosting b = { 0 };
	struct watch w = { 0 };
	int status = tree ? watch_init(&w, s, d, ctx->seed, err)
			  : err_nomem(err, "%zu rounds of boosting", most);

	if (!status)
		status = boosting_init(&b, s, w.fit ? w.fit : d, ctx->pool, err);
	for (size_t i = 0; !status && w.held && i < w.held->n_rows; i++)
		w.score[i] = b.base;
	while (!status && n_trees < most) {
		status = boosting_round(&b, ctx, n_trees, &tree[n_trees], err);
		n_trees++;
		if (!status && w.held && watch_round(&w, &b, &tree[n_trees - 1], n_trees - 1)) {
			n_trees = w.best_round + 1;
			break;
		}
	}
	if (!status)
		status = ensemble_model_new(tree, n_trees, d->n_features, b.base, 1.0, &m, err);
	if (!status && !ctx->no_importances)
		status = leaf_masks_build(m->ensemble, err);
	if (!status)
		*out_self = m;
	else
		ensemble_model_free(m);
	for (size_t t = 0; tree && t < most; t++)
		tree_release(&tree[t]);
	free(tree);
	boosting_release(&b);
	watch_release(&w);
	return status;
}

const struct predictor_ops boost_ops = {
	.name = "boost",
	.title = "gradient boosting",
	.spec = boost_spec,
	.fit = boost_fit,
	ENSEMBLE_MODEL_OPS,
};
