/* How far off a model may be: residuals of rows that it has not seen, the bounds that follow from them, and
 * how much worse it gets when a column is shuffled. For train.c. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "predictors/models/spread.h"
#include "predictors/models/widening.h"
#include "predictors/search/train_internal.h"

#define PERMUTATIONS 5 /* shuffles of each column and fold ... */
#define MANY_ROWS 1000 /* from so many on five parts are held out instead of ten */
#define MANY_TESTS 200 /* ... but one where a fold has so many rows: the folds are repetitions enough */

/* ---- held-out predictions and permutation importances, from one fit per fold ---- */

struct cross_fit {
	const struct dataset *d;
	const struct grid_point *best;
	const struct split *split;
	struct fit_context ctx;
	const uint8_t *doubted; /* per row: no model learns from it; NULL: from all */
	double *predicted; /* per row; NaN where it was never held out */
	uint8_t *knows; /* optional, per row: what the other rows of the table knew of it (spread.h) */
	double *spread; /* optional, per row: how far off the model thought to be */
	bool shuffle; /* find importances, too */
	double *rise; /* per fold and feature: rise of the MSE */
	struct err *error; /* per fold */
};

/* `test` has its columns shuffled one after the other, and put back. */
static int permute_columns(const struct cross_fit *c, size_t fold, const struct predictor *m,
			   struct dataset *test, double *predicted, struct err *err)
{
	size_t n = test->n_rows, p = test->n_features;
	double before = score_of(test->y, predicted, n).mse, *rise = c->rise + fold * p;
	double *kept = mem_array(n, sizeof *kept);
	uint32_t *order = mem_array(n, sizeof *order);
	int status = 0, shuffles = n < MANY_TESTS ? PERMUTATIONS : 1;

	if (!kept || !order)
		status = err_fail(err, ERR_NOMEM, "out of memory to shuffle %zu rows", n);
	for (size_t f = 0; !status && f < p; f++) {
		struct rng rng = rng_stream(c->ctx.seed + fold, f);

		for (size_t i = 0; i < n; i++) {
			kept[i] = test->x[i * p + f];
			order[i] = (uint32_t)i;
		}
		rise[f] = 0.0;
		for (int k = 0; k < shuffles; k++) {
			rng_shuffle(&rng, order, n);
			for (size_t i = 0; i < n; i++)
				test->x[i * p + f] = kept[order[i]];
			predictor_predict(m, test->x, n, predicted);
			rise[f] += (score_of(test->y, predicted, n).mse - before) / shuffles;
		}
		for (size_t i = 0; i < n; i++)
			test->x[i * p + f] = kept[i];
		status = err_if_stopped(c->ctx.stop, err);
	}
	free(kept);
	free(order);
	return status;
}

/* What the rows that a model was fitted to know of those that it is asked about. */
static int note_familiarity(const struct cross_fit *c, const struct fold *rows, const struct dataset *train,
			    const struct dataset *test, struct err *err)
{
	struct spread *s = NULL;
	int status = c->knows ? spread_make(train, &s, err) : 0;

	for (size_t i = 0; s && i < rows->n_test; i++)
		c->knows[rows->test[i]] = (uint8_t)spread_knows(s, test->x + i * test->n_features);
	spread_free(s);
	return status;
}

/* The rows of a fold that a model may learn from. */
static int learn_rows(const struct cross_fit *c, const struct fold *rows, struct dataset **out,
		      struct err *err)
{
	uint32_t *row;
	size_t n = 0;
	int status;

	if (!c->doubted)
		return dataset_subset(c->d, rows->train, rows->n_train, out, err);
	row = mem_array(rows->n_train, sizeof *row);
	if (!row)
		return err_nomem(err, "%zu rows", rows->n_train);
	for (size_t i = 0; i < rows->n_train; i++)
		if (!c->doubted[rows->train[i]])
			row[n++] = rows->train[i];
	status = dataset_subset(c->d, row, n, out, err);
	free(row);
	return status;
}

static void cross_fit_fold(void *ctx, size_t fold, size_t worker)
{
	struct cross_fit *c = ctx;
	const struct fold *rows = &c->split->fold[fold];
	struct fit_context fit = c->ctx;
	struct dataset *train = NULL, *test = NULL;
	struct predictor m = { 0 };
	double *predicted = mem_array(rows->n_test, sizeof *predicted);
	struct err *err = &c->error[fold];
	int status = predicted ? 0 : err_nomem(err, "%zu predictions", rows->n_test);

	(void)worker;
	fit.want_oob = false;
	fit.no_importances = true;
	if (!status)
		status = learn_rows(c, rows, &train, err);
	if (!status)
		status = dataset_subset(c->d, rows->test, rows->n_test, &test, err);
	if (!status)
		status = dataset_forget_strangers(train, test, err);
	if (!status)
		status = note_familiarity(c, rows, train, test, err);
	if (!status)
		status = predictor_fit(c->best->ops, &c->best->settings, train, &fit, &m, err);
	if (!status) {
		predictor_predict(&m, test->x, test->n_rows, predicted);
		for (size_t i = 0; i < rows->n_test; i++) {
			c->predicted[rows->test[i]] = predicted[i];
			if (c->spread)
				c->spread[rows->test[i]] =
					m.ops->spread ? m.ops->spread(m.self, test->x + i * test->n_features)
						      : 1.0;
		}
		if (c->shuffle)
			permute_columns(c, fold, &m, test, predicted, err);
	}
	predictor_release(&m);
	dataset_free(train);
	dataset_free(test);
	free(predicted);
}

static int cross_fit(struct cross_fit *c, double *permutation, struct err *err)
{
	size_t folds = c->split->n_folds, p = c->d->n_features;
	int status = 0;

	c->rise = mem_calloc(folds * p, sizeof *c->rise);
	c->error = mem_calloc(folds, sizeof *c->error);
	if (!c->rise || !c->error)
		status = err_fail(err, ERR_NOMEM, "out of memory to hold out %zu parts", folds);
	for (size_t i = 0; i < c->d->n_rows; i++)
		c->predicted[i] = NAN;
	if (!status)
		pool_run(c->ctx.pool, folds, cross_fit_fold, c);
	for (size_t k = 0; !status && k < folds; k++) {
		if (c->error[k].code)
			status = err_fail(err, c->error[k].code, "%s", c->error[k].text);
		for (size_t f = 0; c->shuffle && f < p; f++)
			permutation[f] += c->rise[k * p + f] / (double)folds;
	}
	free(c->rise);
	free(c->error);
	return status;
}

/* Fewer groups than parts make fewer parts. 0: nothing can be held out. */
size_t train_possible_folds(size_t asked, size_t groups)
{
	size_t folds = asked < groups ? asked : groups;

	return folds < 2 ? 0 : folds;
}

/* More parts for small tables, whose models suffer most from what is held out. */
static size_t folds_of(const struct dataset *d, size_t groups)
{
	return train_possible_folds(d->n_rows < MANY_ROWS ? 10 : 5, groups);
}

enum keep {
	KEEP_ANY, /* a row drawn at random: residuals that are as large as those of all rows */
	KEEP_LATEST, /* the one that takes longest beyond its prediction: a bound that holds for it holds for
	              * all */
	KEEP_LATEST_SHARE, /* the same, as a share of the prediction */
};

static double lateness(enum keep how, double y, double predicted)
{
	return how == KEEP_LATEST_SHARE && predicted > 0.0 ? y / predicted - 1.0 : y - predicted;
}

/* Leaves the prediction of one row a run; NaN for the others. */
static int keep_one_a_run(const struct training *tr, const struct dataset *d, const uint32_t *first,
			  enum keep how, double *predicted, struct err *err)
{
	struct rng rng = rng_stream(tr->p->ctx.seed, UINT64_MAX - 2);
	size_t n_rows = tr->p->table->n_rows;
	uint32_t *kept = mem_array(n_rows, sizeof *kept), *seen = mem_calloc(n_rows, sizeof *seen);

	if (!kept || !seen) {
		free(kept);
		free(seen);
		return err_nomem(err, "the residuals of %zu rows", d->n_rows);
	}
	for (size_t i = 0; i < d->n_rows; i++) {
		uint32_t *k = &kept[first[i]], *n = &seen[first[i]];
		bool take;

		if (isnan(predicted[i]))
			continue;
		if (++*n == 1)
			take = true;
		else if (how == KEEP_ANY)
			take = rng_below(&rng, *n) == 0; /* each of n with the same chance */
		else
			take = lateness(how, d->y[i], predicted[i]) > lateness(how, d->y[*k], predicted[*k]);
		if (take && *n > 1)
			predicted[*k] = NAN;
		if (take)
			*k = (uint32_t)i;
		else
			predicted[i] = NAN;
	}
	free(kept);
	free(seen);
	return 0;
}

/* ---- the distribution of residuals ---- */

/* Scores of the residuals, as wide for every job. */
static int score_residuals(const struct bounds_job *b, const struct dataset *d, const double *predicted,
			   size_t groups, struct err *err)
{
	int status = conformal_fit(d->y, predicted, d->n_rows, b->is_time && !b->tr->p->plain_bounds,
				   &b->out->conformal, err);

	if (!status)
		conformal_set_groups(&b->out->conformal, groups);
	return status;
}

#define PRIOR_GROUPS 4.0 /* what is known better errs as much as what is known less, until so many show it */
#define MOST_SCORES 5000 /* kept of the residuals */
#define FAR_SIZES 3.0
#define NORMAL_MAD 1.4826 /* the median of the sizes of normal errors, to their standard deviation */

struct residuals { /* in log time, of rows that were held out in some way */
	double *value, *spread; /* spread: the model's own, at that row */
	uint8_t *knows;
	size_t n, room, n_strangers; /* of n: whose name was held out */
	size_t groups[N_FAMILIARITIES];
	struct {
		double square, product; /* mean square; mean product of two settings' */
		size_t n; /* families with two settings or more */
	} family;
};

static double student_factor(double groups)
{
	double g = fmax(groups, 2.0);

	return gsl_cdf_tdist_Pinv(0.9, g - 1.0) * sqrt(1.0 + 1.0 / g);
}

#define MOST_SHARED 0.95

/* The part of a new family's errors that all its jobs share; drawn to 0 while few families say so. */
static double find_shared(const struct residuals *r)
{
	double n = (double)r->family.n, shared = r->family.product / r->family.square;

	return n >= 3.0 && shared > 0.0 ? fmin(shared * n / (n + 1.0), MOST_SHARED) : 0.0;
}

/* The mean square of the residuals of one case, over the model's spread to the power of `trust`. Those beyond
 * FAR_SIZES typical sizes count as if they were there: a few rows that the model has no idea of must not
 * widen the bounds of all others. size: room for all. NaN: there are none. */
static double mean_square(const struct residuals *r, int knows, double trust, double *size)
{
	double sum = 0.0, far;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->knows[i] == knows)
			size[n++] = fabs(r->value[i]) / pow(r->spread[i], trust);
	if (!n)
		return NAN;
	far = FAR_SIZES * NORMAL_MAD * stats_median(size, n); /* sorts or not: all are still there */
	for (size_t i = 0; i < n; i++)
		sum += far > 0.0 && size[i] > far ? far * far : size[i] * size[i];
	return sum / (double)n;
}

/* One scale for each case. A case that has few groups leans on the case that is known less, and is widened by
 * what Student's t asks for beyond the one with the most groups. What is known better does not err more. */
static size_t find_scales(const struct residuals *r, double trust, double *size, double out[N_FAMILIARITIES])
{
	double behind[N_FAMILIARITIES], wider = NAN, wider_groups = 0.0;
	size_t most = 0;

	for (int k = N_FAMILIARITIES - 1; k >= 0; k--) {
		double g = (double)r->groups[k], s2 = mean_square(r, k, trust, size);

		if (!isnan(wider) && g > 0.0) {
			out[k] = fmin(wider,
				      sqrt((g * s2 + PRIOR_GROUPS * wider * wider) / (g + PRIOR_GROUPS)));
			behind[k] = g + fmin(PRIOR_GROUPS, wider_groups);
		} else {
			out[k] = g > 0.0 ? sqrt(s2) : wider;
			behind[k] = g > 0.0 ? g : wider_groups;
		}
		wider = out[k];
		wider_groups = behind[k];
		most = r->groups[k] > most ? r->groups[k] : most;
	}
	for (int k = 0; k + 1 < N_FAMILIARITIES; k++)
		if (isnan(out[k + 1])) /* nothing less known was ever held out */
			out[k + 1] = out[k], behind[k + 1] = behind[k];
	for (int k = 0; k < N_FAMILIARITIES; k++) {
		out[k] *= student_factor(behind[k]) / student_factor((double)most);
		if (!(out[k] > 1e-6)) /* times that are known to the last digit: any scale will do */
			out[k] = 1e-6;
	}
	return most;
}

/* Rows whose name was held out have a scale, and no say in the shape of all errors: several of them share one
 * that is large. If there are no others they count. */
static bool has_say(const struct residuals *r, size_t i)
{
	return r->knows[i] != KNOWS_NO_NAME || r->n_strangers == r->n;
}

/* How far the model's own spread tells large errors from small ones: as it is, its root, or not at all.
 * The likelihood of a Laplace law decides, because a few large errors do not sway it. */
static double find_trust(const struct residuals *r, double *size)
{
	static const double tried[] = { 1.0, 0.5, 0.0 };
	double best = INFINITY, trust = 1.0;

	for (size_t t = 0; t < sizeof tried / sizeof *tried; t++) {
		double scale[N_FAMILIARITIES], logs = 0.0, sizes = 0.0;
		size_t n = 0;

		find_scales(r, tried[t], size, scale);
		for (size_t i = 0; i < r->n; i++) {
			double at = scale[r->knows[i]] * pow(r->spread[i], tried[t]);

			if (!has_say(r, i))
				continue;
			n++;
			logs += log(at);
			sizes += fabs(r->value[i]) / at;
		}
		logs = logs / (double)n + log(fmax(sizes / (double)n, 1e-12));
		if (logs < best - 1e-9) {
			best = logs;
			trust = tried[t];
		}
	}
	return trust;
}

/* Adds the residuals of one way to hold rows out. */
static void add_residuals(struct residuals *r, const struct cross_fit *c, const uint32_t *group)
{
	size_t n_rows = c->d->n_rows;
	uint8_t *seen = mem_calloc(n_rows + 1, 1); /* by group, bits of the cases met */

	for (size_t i = 0; i < n_rows && r->n < r->room; i++) {
		double e = log(c->d->y[i]) - log(c->predicted[i]);
		uint8_t k = c->knows[i];

		if (isnan(c->predicted[i]) || !isfinite(e) || !(c->spread[i] > 0.0))
			continue;
		r->value[r->n] = e;
		r->spread[r->n] = c->spread[i];
		r->n_strangers += k == KNOWS_NO_NAME;
		r->knows[r->n++] = k;
		if (seen && !(seen[group[i]] & 1 << k)) {
			seen[group[i]] |= (uint8_t)(1 << k);
			r->groups[k]++;
		}
	}
	free(seen);
}

/* What the errors of families that were held out have in common. Every family counts alike. Two rows of one
 * setting err alike for another reason, so they are no pair. */
static void add_families(struct residuals *r, const struct cross_fit *c, const uint32_t *family,
			 const uint32_t *setting, size_t n_families)
{
	for (size_t f = 0; f < n_families; f++) {
		double square = 0.0, product = 0.0;
		size_t n = 0, pairs = 0;

		for (size_t i = 0; i < c->d->n_rows; i++) {
			double e = family[i] == f ? log(c->d->y[i]) - log(c->predicted[i]) : NAN;

			if (!isfinite(e) || c->knows[i] != KNOWS_NOTHING)
				continue;
			square += e * e;
			n++;
			for (size_t j = 0; j < i; j++) {
				double with = family[j] == f && setting[j] != setting[i]
						      ? log(c->d->y[j]) - log(c->predicted[j])
						      : NAN;

				if (isfinite(with)) {
					product += e * with;
					pairs++;
				}
			}
		}
		if (!pairs)
			continue;
		r->family.n++;
		r->family.product += (product / (double)pairs - r->family.product) / (double)r->family.n;
		r->family.square += (square / (double)n - r->family.square) / (double)r->family.n;
	}
}

/* Holds out `n` groups, as they are labelled in c->d. Of the rows of a run one stays, as `how` says. */
static int hold_out_groups(const struct bounds_job *b, struct cross_fit *c, size_t n, uint64_t seed,
			   enum keep how, struct err *err)
{
	const struct target_rows *rows = b->rows;
	struct split_params params = { .kind = SPLIT_KFOLD,
				       .folds = folds_of(c->d, n),
				       .seed = b->tr->p->ctx.seed + seed };
	struct split *split = NULL;
	int status = split_make(c->d, &params, &split, err);

	c->split = split;
	if (!status)
		status = cross_fit(c, b->out->permutation, err);
	if (!status && rows->first)
		status = keep_one_a_run(b->tr, c->d, rows->first, how, c->predicted, err);
	if (!status && rows->copies)
		status = keep_one_a_run(b->tr, c->d, rows->copies, KEEP_ANY, c->predicted, err);
	c->split = NULL;
	split_free(split);
	return status;
}

/* Holds out the names of each category in turn. With two of them the other one alone would be left to learn
 * from, which says nothing about a third. */
static int hold_out_names(const struct bounds_job *b, struct cross_fit *c, uint32_t *group,
			  struct residuals *r, struct err *err)
{
	size_t n, end;
	int status = 0;

	c->shuffle = false;
	for (size_t f = 0; !status && f < c->d->n_features; f = end) {
		n = train_name_label(b->rows, f, &end, group);
		if (n < 3)
			continue;
		status = hold_out_groups(b, c, n, KNOWS_NEITHER, KEEP_LATEST_SHARE, err);
		if (!status)
			add_residuals(r, c, group);
	}
	return status;
}

/* Holds out families, contexts, settings and runs in turn, and sorts what was wrong by what was known. Names
 * are held out apart where no family has one of its own. */
static int hold_out_all(const struct bounds_job *b, struct residuals *r, struct err *err)
{
	struct dataset d = *b->rows->d;
	struct spread *spread = b->out->spread;
	struct cross_fit c = { .d = &d, .best = b->best, .ctx = b->tr->p->ctx, .doubted = b->rows->doubted };
	uint32_t *group = mem_array(d.n_rows, sizeof *group), *other = mem_array(d.n_rows, sizeof *other);
	size_t before = 0;
	int status = 0;

	c.predicted = mem_array(d.n_rows, sizeof *c.predicted);
	c.knows = mem_calloc(d.n_rows, 1);
	c.spread = mem_array(d.n_rows, sizeof *c.spread);
	if (!group || !other || !c.predicted || !c.knows || !c.spread)
		status = err_nomem(err, "the residuals of %zu rows", d.n_rows);
	d.group = group;
	for (int k = KNOWS_NOTHING; !status && k >= 0; k--) {
		size_t n = train_hold_out_label(b->rows, spread, (enum familiarity)k, group);
		/* families alone, if they are not what contexts are */
		bool apart = k == KNOWS_NOTHING &&
			     n != train_hold_out_label(b->rows, spread, KNOWS_NEITHER, other);

		/* of two the other one is left to learn from, which says nothing; equal groups are one */
		if (!folds_of(&d, n) || n == before || (k >= KNOWS_CONTEXT && n < 3))
			continue;
		c.shuffle = !apart && (k == KNOWS_CONTEXT || before == 0);
		before = apart ? before : n;
		status = hold_out_groups(b, &c, n, (uint64_t)(k < KNOWS_NEITHER ? k : KNOWS_NEITHER),
					 KEEP_LATEST_SHARE, err);
		if (!status)
			add_residuals(r, &c, group);
		if (!status && k == KNOWS_NOTHING) {
			spread_label(spread, &d, KNOWS_CONTEXT, other);
			add_families(r, &c, group, other, n);
		}
		if (!status && !apart)
			snprintf(b->out->residuals_by, sizeof b->out->residuals_by, "%zu-fold",
				 folds_of(&d, n));
	}
	if (!status && !r->groups[KNOWS_NO_NAME])
		status = hold_out_names(b, &c, group, r, err);
	free(group);
	free(other);
	free(c.predicted);
	free(c.knows);
	free(c.spread);
	return status;
}

/* Of the case that was held out most: the others lean on it. */
static size_t most_groups(const struct residuals *r)
{
	size_t most = 0;

	for (int k = 0; k < N_FAMILIARITIES; k++)
		most = r->groups[k] > most ? r->groups[k] : most;
	return most;
}

/* A table of few settings has fewer than three errors of a case, which is too few to tell their size. What is
 * missing is filled up with errors of this size, so that a single run carries a wide bound. */
#define UNTOLD_GROUPS 3
#define UNTOLD_SIZE 0.2 /* in log time: a run again takes up to 1.6 times as long, in 9 of 10 */

static void fill_up(struct residuals *r, char *by, size_t by_size)
{
	if (most_groups(r) < UNTOLD_GROUPS)
		snprintf(by + strlen(by), by_size - strlen(by), "%sassumed", *by ? " and " : "");
	for (int k = KNOWS_SETTING; k <= KNOWS_CONTEXT; k++)
		while (r->groups[k] < UNTOLD_GROUPS) {
			for (int sign = -1; sign <= 1; sign += 2) {
				r->value[r->n] = sign * UNTOLD_SIZE;
				r->spread[r->n] = 1.0;
				r->knows[r->n++] = (uint8_t)k;
			}
			r->groups[k]++;
		}
}

static size_t few_levels(const struct dataset *d, size_t f)
{
	double at[2];
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows && n < WIDENING_LEVELS; i++) {
		double v = d->x[i * d->n_features + f];

		if (isnan(v) || (n > 0 && v == at[0]) || (n > 1 && v == at[1]))
			continue;
		if (n < 2)
			at[n] = v;
		n++;
	}
	return n;
}

/* An end that is held out of a few settings tells what a model of even fewer gets wrong. What the others err
 * by tells nothing of a column that never varied, unless it is work, which adds up. Of work with two levels
 * no end can be held out: what is not known of their slope widens by how far it carries (model.c). */
static double widening_of_few(const struct dataset *d, size_t f, double scale, double found)
{
	bool work = d->role && (d->role[f] == ROLE_EPOCHS || d->role[f] == ROLE_SAMPLES);
	size_t levels = few_levels(d, f);

	if (work && levels == 2)
		return 1.0;
	if (work || levels > 1)
		return fmin(found, WIDENING_UNKNOWN);
	return WIDENING_UNKNOWN * fmax(1.0, UNTOLD_SIZE / scale);
}

static void thin_scores(struct residuals *r)
{
	size_t kept = r->n < MOST_SCORES ? r->n : MOST_SCORES;

	stats_sort(r->value, r->n);
	for (size_t i = 0; i < kept; i++)
		r->value[i] = r->value[i * (r->n - 1) / (kept > 1 ? kept - 1 : 1)];
	r->n = kept;
}

/* The 90 % point of the scores; that of a normal law where they are too few to tell, or all of one side. */
static double q90_of(const struct conformal *c)
{
	double q;

	return !conformal_quantile(c, 0.9, &q, NULL) && q > 0.0 ? q : gsl_cdf_ugaussian_Pinv(0.9);
}

/* Families, contexts, settings, runs, and the names of each category. */
static size_t most_hold_outs(const struct dataset *d)
{
	size_t n = N_FAMILIARITIES;

	for (size_t f = 0; d->role && f < d->n_features; f++)
		n += d->role[f] == ROLE_CATEGORY && (!f || !d->column || d->column[f] != d->column[f - 1]);
	return n;
}

/* Bounds of a model that errs by a factor: scales by what is known of a job, and how much wider they are
 * outside the table. */
static int find_log_bounds(const struct bounds_job *b, struct err *err)
{
	const struct dataset *all = b->believed, *d = b->rows->d;
	struct model_target *out = b->out;
	size_t room = most_hold_outs(d) * d->n_rows + 4 * UNTOLD_GROUPS;
	struct residuals r = { .value = mem_array(room, sizeof *r.value),
			       .spread = mem_array(room, sizeof *r.spread),
			       .knows = mem_array(room, 1),
			       .room = room };
	double scale[N_FAMILIARITIES], squares = 0.0, plain = 0.0, trust;
	double *size = mem_array(room, sizeof *size);
	size_t groups = 0, kept = 0;
	bool few;
	int status = r.value && r.spread && r.knows && size
			     ? spread_make(all, &out->spread, err)
			     : err_nomem(err, "the residuals of %zu rows", d->n_rows);

	if (!status)
		status = hold_out_all(b, &r, err);
	if (status)
		goto out;
	trust = most_groups(&r) < UNTOLD_GROUPS ? 0.0 : find_trust(&r, size);
	few = most_groups(&r) < conformal_needed(0.9);
	if (few)
		fill_up(&r, out->residuals_by, sizeof out->residuals_by);
	groups = find_scales(&r, trust, size, scale);
	for (size_t i = 0; i < r.n; i++) {
		double score = r.value[i] / (scale[r.knows[i]] * pow(r.spread[i], trust));

		if (!has_say(&r, i))
			continue;
		plain += r.value[i] * r.value[i];
		squares += score * score;
		r.value[kept++] = score;
	}
	r.n = kept;
	spread_set(out->spread, scale, squares > 0.0 ? sqrt(fmax(plain / squares, 1e-12)) : 1.0, trust);
	spread_set_shared(out->spread, find_shared(&r));
	thin_scores(&r);
	status = conformal_take(r.value, r.n, groups, &out->conformal, err);
	if (status)
		goto out;
	r.value = NULL;
	out->widening = mem_array(d->n_features, sizeof *out->widening);
	status = out->widening ? widening_estimate(b->best, all, &b->tr->p->ctx, out->spread,
						   q90_of(&out->conformal), out->widening, err)
			       : err_nomem(err, "%zu features", d->n_features);
	if (!status && !r.groups[KNOWS_NO_NAME])
		widening_of_names(out->widening, b->tr->model->features);
	for (size_t f = 0; !status && few && f < d->n_features; f++)
		out->widening[f] = widening_of_few(all, f, scale[KNOWS_CONTEXT], out->widening[f]);
out:
	free(r.value);
	free(r.spread);
	free(size);
	free(r.knows);
	return status;
}

static int find_bounds(const struct bounds_job *b, struct err *err)
{
	const struct dataset *d = b->rows->d;
	struct model_target *out = b->out;
	size_t groups = train_count_groups(d);
	struct cross_fit c = {
		.d = d, .best = b->best, .ctx = b->tr->p->ctx, .doubted = b->rows->doubted, .shuffle = true
	};
	const double *oob = out->predictor.ops->oob ? out->predictor.ops->oob(out->predictor.self) : NULL;
	int status;

	if (b->is_time && b->best->ops->log_errors && !b->tr->p->plain_bounds)
		return find_log_bounds(b, err);
	if (groups < 2)
		return 0;
	c.predicted = mem_array(d->n_rows, sizeof *c.predicted);
	if (!c.predicted)
		return err_nomem(err, "the residuals of %zu rows", d->n_rows);
	status = hold_out_groups(b, &c, groups, 0,
				 !b->is_time              ? KEEP_ANY
				 : b->tr->p->plain_bounds ? KEEP_LATEST
							  : KEEP_LATEST_SHARE,
				 err);
	if (!status && oob && !d->group) {
		snprintf(out->residuals_by, sizeof out->residuals_by, "out-of-bag");
		status = score_residuals(b, b->believed, oob, b->believed->n_rows, err);
	} else if (!status) {
		snprintf(out->residuals_by, sizeof out->residuals_by, "%zu-fold", folds_of(d, groups));
		status = score_residuals(b, d, c.predicted, groups, err);
	}
	free(c.predicted);
	return status;
}

#define MOST_HELD_OUT 2000 /* rows: so many errors say as much about bounds as a million */

/* Residuals of rows a model has not seen: out of bag where there is a bag and no groups to keep apart,
 * otherwise from a grouped k-fold, one a run. Of a large table a part is used: models of a part err a little
 * more, so bounds are rather too wide. */
int train_find_bounds(const struct bounds_job *asked, struct err *err)
{
	const struct dataset *d = asked->rows->d;
	struct bounds_job b = *asked;
	struct target_rows part = { 0 };
	int status = 0;

	b.out->permutation = mem_calloc(d->n_features, sizeof *b.out->permutation);
	if (!b.out->permutation)
		return err_nomem(err, "%zu features", d->n_features);
	if (d->n_rows > MOST_HELD_OUT) {
		status = train_thin_rows(b.rows, MOST_HELD_OUT, b.tr->p->ctx.seed, &part, err);
		b.rows = &part;
	}
	if (!status)
		status = find_bounds(&b, err);
	train_release_rows(&part);
	return status;
}
