/* Tries every point of a grid on the same folds. Points that one fit can serve are a family; a worker takes
 * one family and one fold at a time. */
#include "predictors/search/search.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/trees/boost.h"
#include "predictors/trees/forest.h"

/* A family is a set of grid points that one fit per fold serves. */
struct family {
	size_t *point; /* indexes into the grid */
	size_t n;
};

struct failure {
	struct err err;
	size_t fold;
};

struct search {
	const struct search_params *p;
	struct family *family;
	size_t n_families;
	struct score *score; /* per point and fold */
	struct failure *failure; /* per point; code 0: fitted in all folds so far */
	pthread_mutex_t lock; /* failure[] and progress */
	size_t done;
};

/* ---- families ---- */

/* May two settings share a fit? Everything but the named settings must be equal; max_features by what it
 * means for this table (with five features sqrt and log2 are both 2). */
static bool same_but(const struct settings *a, const struct settings *b, const char *const *apart)
{
	for (size_t i = 0; a->spec[i].name; i++) {
		bool skip = false;
		for (size_t k = 0; apart[k]; k++)
			skip |= strcmp(a->spec[i].name, apart[k]) == 0;
		if (!skip && a->value[i] != b->value[i])
			return false;
	}
	return true;
}

static bool share_a_fit(const struct search *s, const struct grid_point *a, const struct grid_point *b)
{
	static const char *const forest_apart[] = { "trees", "depth", "max_features", NULL };
	static const char *const boost_apart[] = { "trees", NULL };
	size_t p = s->p->data->n_features;

	if (a->ops != b->ops)
		return false;
	if (a->ops == &forest_ops)
		return same_but(&a->settings, &b->settings, forest_apart) &&
		       forest_params_of(&a->settings, 1, p).grow.max_features ==
			       forest_params_of(&b->settings, 1, p).grow.max_features;
	/* Early stopping looks back from where it stopped, so those runs are not prefixes of each other. */
	if (a->ops == &boost_ops)
		return settings_get(&a->settings, "validation") == 0 &&
		       same_but(&a->settings, &b->settings, boost_apart);
	return false;
}

static int find_families(struct search *s)
{
	const struct grid *g = s->p->grid;

	s->family = mem_calloc(g->n, sizeof *s->family);
	if (!s->family)
		return -1;
	for (size_t i = 0; i < g->n; i++) {
		size_t f = 0;

		while (f < s->n_families && !share_a_fit(s, &g->point[s->family[f].point[0]], &g->point[i]))
			f++;
		if (f == s->n_families) {
			s->family[f].point = mem_array(g->n - i, sizeof *s->family[f].point);
			if (!s->family[f].point)
				return -1;
			s->n_families++;
		}
		s->family[f].point[s->family[f].n++] = i;
	}
	return 0;
}

/* ---- one family on one fold ---- */

static size_t collect_sorted(const struct search *s, const struct family *f, const char *setting, size_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		double d = settings_get(&s->p->grid->point[f->point[i]].settings, setting);
		/* depth 0 means no limit: the deepest of all */
		size_t v = d == 0 ? SIZE_MAX : (size_t)d, at = 0;

		while (at < n && out[at] < v)
			at++;
		if (at < n && out[at] == v)
			continue;
		memmove(out + at + 1, out + at, (n - at) * sizeof *out);
		out[at] = v;
		n++;
	}
	return n;
}

static size_t setting_of(const struct search *s, size_t point, const char *name)
{
	double d = settings_get(&s->p->grid->point[point].settings, name);

	return d == 0 ? SIZE_MAX : (size_t)d;
}

/* Adds the tree's value for row x at each of the depths. */
static void add_by_depth(const struct tree *t, const double *x, const size_t *depth, size_t n_depths,
			 double *sum, size_t stride)
{
	size_t d = 0, k = 0;
	uint32_t at = 0;

	for (;; d++) {
		const struct tree_node *n = &t->node[at];
		double v = n->left ? x[n->feature] : 0.0;

		for (; k < n_depths && (depth[k] == d || !n->left); k++)
			sum[k * stride] += t->value[at];
		if (k == n_depths)
			return;
		at = n->left + (isnan(v) ? !n->missing_left : v > n->threshold);
	}
}

struct forest_path {
	struct forest_params p;
	struct bins *bins;
	struct grower *grower;
	uint32_t *order, *weight;
	size_t *depth, n_depths;
	double *sum, *mean; /* n_depths x test rows; test rows */
	struct tree tree;
};

static void forest_path_release(struct forest_path *w)
{
	tree_release(&w->tree);
	grower_free(w->grower);
	bins_free(w->bins);
	free(w->order);
	free(w->weight);
	free(w->depth);
	free(w->sum);
	free(w->mean);
}

static int forest_path_init(struct forest_path *w, const struct search *s, const struct family *f,
			    const struct dataset *train, const struct dataset *test, struct err *err)
{
	size_t deepest;
	int status;

	*w = (struct forest_path){ .p = forest_params_of(&s->p->grid->point[f->point[0]].settings,
							 train->n_rows, train->n_features) };
	w->depth = mem_array(f->n, sizeof *w->depth);
	w->order = mem_array(train->n_rows, sizeof *w->order);
	w->weight = mem_array(train->n_rows, sizeof *w->weight);
	w->mean = mem_array(test->n_rows, sizeof *w->mean);
	if (w->depth)
		w->n_depths = collect_sorted(s, f, "depth", w->depth);
	w->sum = mem_calloc(w->n_depths * test->n_rows, sizeof *w->sum);
	if (!w->depth || !w->order || !w->weight || !w->mean || !w->sum)
		return err_fail(err, ERR_NOMEM, "out of memory to grow forests on %zu rows", train->n_rows);
	deepest = w->depth[w->n_depths - 1];
	w->p.grow.max_depth = deepest > UINT32_MAX ? UINT32_MAX : (uint32_t)deepest;
	for (size_t i = 0; i < f->n; i++) {
		size_t trees = setting_of(s, f->point[i], "trees");
		w->p.n_trees = trees > w->p.n_trees ? trees : w->p.n_trees;
	}
	status = bins_order(train->y, train->n_rows, w->order, err);
	if (!status)
		status = bins_new(train, NULL, &w->bins, err);
	if (!status)
		status = grower_new(w->bins, &w->p.grow,
				    w->p.grow.criterion == CRITERION_ABSOLUTE ? w->order : NULL, &w->grower,
				    err);
	return status;
}

static int run_forest_family(struct search *s, const struct family *f, size_t fold,
			     const struct dataset *train, const struct dataset *test, struct err *err)
{
	struct forest_path w;
	int status = forest_path_init(&w, s, f, train, test, err);

	for (size_t t = 0; !status && t < w.p.n_trees; t++) {
		uint64_t key = forest_draw(s->p->ctx.seed, t, w.p.bootstrap, train->n_rows, w.weight);

		status = err_if_stopped(s->p->ctx.stop, err);
		if (!status)
			status = grower_tree(w.grower, train->y, w.weight, key, &w.tree, err);
		for (size_t i = 0; !status && i < test->n_rows; i++)
			add_by_depth(&w.tree, test->x + i * test->n_features, w.depth, w.n_depths, w.sum + i,
				     test->n_rows);
		for (size_t i = 0; !status && i < f->n; i++) {
			size_t k = 0, depth = setting_of(s, f->point[i], "depth");

			if (setting_of(s, f->point[i], "trees") != t + 1)
				continue;
			while (w.depth[k] != depth)
				k++;
			for (size_t j = 0; j < test->n_rows; j++)
				w.mean[j] = 0.0 + w.sum[k * test->n_rows + j] / (double)(t + 1);
			s->score[f->point[i] * s->p->split->n_folds + fold] =
				score_of(test->y, w.mean, test->n_rows);
		}
	}
	forest_path_release(&w);
	return status;
}

static int run_boost_family(struct search *s, const struct family *f, size_t fold,
			    const struct dataset *train, const struct dataset *test, struct err *err)
{
	size_t *stage = mem_array(f->n, sizeof *stage),
	       n_stages = stage ? collect_sorted(s, f, "trees", stage) : 0;
	double *predicted = mem_array(n_stages * test->n_rows, sizeof *predicted);
	int status = -1;

	if (!stage || !predicted)
		status = err_fail(err, ERR_NOMEM, "out of memory to boost on %zu rows", train->n_rows);
	else
		status = boost_staged(&s->p->grid->point[f->point[0]].settings, train, test, &s->p->ctx,
				      stage, n_stages, predicted, err);
	for (size_t i = 0; !status && i < f->n; i++) {
		size_t k = 0;
		while (stage[k] != setting_of(s, f->point[i], "trees"))
			k++;
		s->score[f->point[i] * s->p->split->n_folds + fold] =
			score_of(test->y, predicted + k * test->n_rows, test->n_rows);
	}
	free(stage);
	free(predicted);
	return status;
}

/* A row without an answer makes a model unfit to be chosen. Brings those with one to the front of `test` and
 * `predicted`, for the score. */
static int check_answers(const struct predictor *m, struct dataset *test, double *predicted, size_t *out_n,
			 struct err *err)
{
	char why[sizeof err->text] = "";
	size_t n = 0;

	for (size_t i = 0; m->ops->why_none && i < test->n_rows; i++) {
		if (!isnan(predicted[i])) {
			test->y[n] = test->y[i];
			predicted[n++] = predicted[i];
		} else if (!why[0]) {
			m->ops->why_none(m->self, test->x + i * test->n_features, why, sizeof why);
		}
	}
	if (!why[0])
		return 0;
	*out_n = n;
	return err_fail(err, ERR_UNSTABLE, "%s", why);
}

static int run_single(struct search *s, size_t point, size_t fold, const struct dataset *train,
		      struct dataset *test, struct err *err)
{
	const struct grid_point *g = &s->p->grid->point[point];
	struct fit_context ctx = s->p->ctx;
	struct predictor model = { 0 };
	double *predicted = mem_array(test->n_rows, sizeof *predicted);
	size_t n = test->n_rows;
	int status;

	if (!predicted)
		return err_nomem(err, "%zu predictions", test->n_rows);
	ctx.want_oob = false;
	ctx.no_importances = true;
	status = predictor_fit(g->ops, &g->settings, train, &ctx, &model, err);
	if (!status) {
		predictor_predict(&model, test->x, test->n_rows, predicted);
		status = check_answers(&model, test, predicted, &n, err);
		s->score[point * s->p->split->n_folds + fold] = score_of(test->y, predicted, n);
	}
	predictor_release(&model);
	free(predicted);
	return status;
}

static void run_task(void *ctx, size_t task, size_t worker)
{
	struct search *s = ctx;
	const struct family *f = &s->family[task / s->p->split->n_folds];
	size_t fold = task % s->p->split->n_folds;
	const struct fold *rows = &s->p->split->fold[fold];
	const struct predictor_ops *ops = s->p->grid->point[f->point[0]].ops;
	struct dataset *train = NULL, *test = NULL;
	struct err err = { 0 };
	int status;

	(void)worker;
	if (err_if_stopped(s->p->ctx.stop, NULL))
		return; /* search_run() reports it */
	status = dataset_subset(s->p->data, rows->train, rows->n_train, &train, &err);
	if (!status)
		status = dataset_subset(s->p->data, rows->test, rows->n_test, &test, &err);
	if (!status)
		status = dataset_forget_strangers(train, test, &err);
	if (!status && ops == &forest_ops)
		status = run_forest_family(s, f, fold, train, test, &err);
	else if (!status && ops == &boost_ops && f->n > 1)
		status = run_boost_family(s, f, fold, train, test, &err);
	else if (!status)
		status = run_single(s, f->point[0], fold, train, test, &err);
	dataset_free(train);
	dataset_free(test);
	pthread_mutex_lock(&s->lock);
	/* The reason of the first fold that failed, whichever worker came first: always the same report. */
	for (size_t i = 0; status && i < f->n; i++) {
		struct failure *first = &s->failure[f->point[i]];
		if (!first->err.code || fold < first->fold)
			*first = (struct failure){ err, fold };
	}
	s->done += f->n;
	if (s->p->on_progress)
		s->p->on_progress(s->p->owner, s->done, s->p->grid->n * s->p->split->n_folds);
	pthread_mutex_unlock(&s->lock);
}

/* ---- the whole ---- */

static int collect_results(struct search *s, struct search_result **out, struct err *err)
{
	size_t n = s->p->grid->n, folds = s->p->split->n_folds, failed = 0, unstable = 0;
	struct search_result *r = mem_calloc(n, sizeof *r);

	if (!r)
		return err_nomem(err, "%zu results", n);
	for (size_t i = 0; i < n; i++) {
		r[i].score = score_summarise(s->score + i * folds, folds);
		/* A model that overflows to infinity is no candidate either. */
		r[i].failed = s->failure[i].err.code || !isfinite(r[i].score.mean.mse);
		if (s->failure[i].err.code)
			snprintf(r[i].why, sizeof r[i].why, "%.*s", (int)sizeof r[i].why - 1,
				 s->failure[i].err.text);
		else if (r[i].failed)
			snprintf(r[i].why, sizeof r[i].why, "its predictions are not finite");
		failed += r[i].failed;
		unstable += s->failure[i].err.code == ERR_UNSTABLE && isfinite(r[i].score.mean.mse);
	}
	if (failed == n && unstable < n) {
		int status = err_fail(err, s->failure[0].err.code ? s->failure[0].err.code : ERR_NUMERIC,
				      "none of %zu settings could be fitted; the first: %s", n, r[0].why);
		free(r);
		return status;
	}
	*out = r;
	return 0;
}

int search_run(const struct search_params *p, struct search_result **out, struct err *err)
{
	struct search s = { .p = p };
	size_t folds = p->split->n_folds;
	int status;

	pthread_mutex_init(&s.lock, NULL);
	s.score = mem_calloc(p->grid->n * folds, sizeof *s.score);
	s.failure = mem_calloc(p->grid->n, sizeof *s.failure);
	if (!s.score || !s.failure || find_families(&s)) {
		status = err_fail(err, ERR_NOMEM, "out of memory to try %zu settings", p->grid->n);
	} else {
		for (size_t i = 0; i < p->grid->n * folds; i++) /* what is not fitted has no score */
			s.score[i] = (struct score){ NAN, NAN, NAN, NAN, NAN };
		pool_run(p->ctx.pool, s.n_families * folds, run_task, &s);
		status = err_if_stopped(p->ctx.stop, err);
		if (!status)
			status = collect_results(&s, out, err);
	}
	for (size_t f = 0; f < s.n_families; f++)
		free(s.family[f].point);
	free(s.family);
	free(s.score);
	free(s.failure);
	pthread_mutex_destroy(&s.lock);
	return status;
}

const char *const search_by_name[] = { "mse", "log-mse", "mape", "mae", "r2", NULL };

double search_measure(const struct search_result *r, enum search_by by)
{
	const struct score *s = &r->score.mean;
	double v = by == SEARCH_BY_LOG    ? s->log_mse
		   : by == SEARCH_BY_MAPE ? s->mape
		   : by == SEARCH_BY_MAE  ? s->mae
		   : by == SEARCH_BY_R2   ? 1.0 - s->r2
					  : s->mse;

	return isnan(v) ? s->mse : v;
}

size_t search_best(const struct search_result *r, size_t n, enum search_by by)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < n; i++)
		if (!r[i].failed &&
		    (best == SIZE_MAX || search_measure(&r[i], by) < search_measure(&r[best], by)))
			best = i;
	return best;
}
