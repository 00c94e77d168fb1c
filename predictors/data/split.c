/* Folds, made by putting groups of rows on one side or the other. Used by search.c and train.c.
 *
 * Every kind of split answers one question per fold: which groups are held out? Rows without group
 * labels are each a group of one. The two kinds that split by a level of a feature ask it of rows; a
 * group that lies on both sides there keeps its held-out rows and loses the others. */
#include "predictors/data/split.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

enum side { SIDE_TRAIN, SIDE_TEST, SIDE_NEITHER };

/* Rows by group: dense group numbers in the order of the labels. */
struct grouping {
	uint32_t *of; /* n_rows: dense number of each row's group */
	uint32_t *size; /* n rows in each */
	size_t n;
};

static void grouping_release(struct grouping *g)
{
	free(g->of);
	free(g->size);
}

struct labelled {
	uint32_t label, row;
};

static int compare_labelled(const void *a, const void *b)
{
	const struct labelled *x = a, *y = b;

	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static int grouping_init(struct grouping *g, const struct dataset *d, struct err *err)
{
	struct labelled *sorted = d->group ? mem_array(d->n_rows, sizeof *sorted) : NULL;

	*g = (struct grouping){ 0 };
	g->of = mem_array(d->n_rows, sizeof *g->of);
	g->size = mem_calloc(d->n_rows, sizeof *g->size);
	if (!g->of || !g->size || (d->group && !sorted)) {
		free(sorted);
		grouping_release(g);
		*g = (struct grouping){ 0 };
		return err_nomem(err, "the groups of %zu rows", d->n_rows);
	}
	if (!d->group) {
		for (size_t i = 0; i < d->n_rows; i++) {
			g->of[i] = (uint32_t)i;
			g->size[i] = 1;
		}
		g->n = d->n_rows;
		return 0;
	}
	for (size_t i = 0; i < d->n_rows; i++)
		sorted[i] = (struct labelled){ d->group[i], (uint32_t)i };
	qsort(sorted, d->n_rows, sizeof *sorted, compare_labelled);
	for (size_t i = 0; i < d->n_rows; i++) {
		if (!i || sorted[i].label != sorted[i - 1].label)
			g->n++;
		g->of[sorted[i].row] = (uint32_t)(g->n - 1);
		g->size[g->n - 1]++;
	}
	free(sorted);
	return 0;
}

static int split_alloc(size_t n_folds, size_t n_rows, struct split **out, struct err *err)
{
	struct split *s;

	if (n_folds > SPLIT_MAX_FOLDS)
		return err_fail(err, ERR_ARG, "%zu folds: at most %d", n_folds, SPLIT_MAX_FOLDS);
	if (n_rows && n_folds > SPLIT_MAX_INDEXES / n_rows)
		return err_fail(err, ERR_ARG, "%zu folds of %zu rows: at most %zu row numbers in all",
				n_folds, n_rows, SPLIT_MAX_INDEXES);
	s = mem_calloc(1, sizeof *s);
	if (s) {
		s->n_folds = n_folds;
		s->fold = mem_calloc(n_folds, sizeof *s->fold);
	}
	if (!s || !s->fold) {
		free(s);
		return err_nomem(err, "%zu folds", n_folds);
	}
	*out = s;
	return 0;
}

void split_free(struct split *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_folds; i++) {
		free(s->fold[i].train);
		free(s->fold[i].test);
	}
	free(s->fold);
	free(s);
}

/* Fills a fold, rows in ascending order on both sides. */
static int fold_fill(struct fold *f, const uint8_t *side, size_t n_rows, struct err *err)
{
	size_t count[3] = { 0 };

	for (size_t i = 0; i < n_rows; i++)
		count[side[i]]++;
	if (!count[SIDE_TRAIN] || !count[SIDE_TEST])
		return err_fail(err, ERR_NODATA, "a fold would train on %zu rows and hold out %zu of %zu",
				count[SIDE_TRAIN], count[SIDE_TEST], n_rows);
	f->train = mem_array(count[SIDE_TRAIN], sizeof *f->train);
	f->test = mem_array(count[SIDE_TEST], sizeof *f->test);
	if (!f->train || !f->test)
		return err_nomem(err, "a fold of %zu rows", n_rows);
	for (size_t i = 0; i < n_rows; i++) {
		if (side[i] == SIDE_TRAIN)
			f->train[f->n_train++] = (uint32_t)i;
		else if (side[i] == SIDE_TEST)
			f->test[f->n_test++] = (uint32_t)i;
	}
	return 0;
}

/* Everything split_make holds while it works. */
struct work {
	const struct dataset *d;
	const struct split_params *p;
	struct grouping group;
	uint32_t *order; /* group.n: groups in random order */
	uint32_t *fold_of; /* group.n: which fold holds the group out */
	uint8_t *side; /* n_rows */
};

static int shuffle_groups(struct work *w, uint64_t stream, struct err *err)
{
	struct rng rng = rng_stream(w->p->seed, stream);

	if (!w->order)
		w->order = mem_array(w->group.n, sizeof *w->order);
	if (!w->order)
		return err_nomem(err, "the order of %zu groups", w->group.n);
	for (size_t i = 0; i < w->group.n; i++)
		w->order[i] = (uint32_t)i;
	rng_shuffle(&rng, w->order, w->group.n);
	return 0;
}

/* One fold per value of fold_of. */
static int fill_by_group(struct work *w, struct split *s, struct err *err)
{
	for (size_t k = 0; k < s->n_folds; k++) {
		int rc;

		for (size_t i = 0; i < w->d->n_rows; i++)
			w->side[i] = w->fold_of[w->group.of[i]] == k ? SIDE_TEST : SIDE_TRAIN;
		rc = fold_fill(&s->fold[k], w->side, w->d->n_rows, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Groups in random order, the large ones first, each into the fold that has fewest rows so far: folds
 * then differ by at most one group. With more groups than folds none stays empty. */
static int make_kfold(struct work *w, struct split **out, struct err *err)
{
	size_t folds = w->p->folds, n = w->group.n, largest = 0;
	uint32_t *sorted = NULL;
	size_t *start = NULL, *rows = NULL;
	int rc;

	if (folds < 2)
		return err_fail(err, ERR_ARG, "%zu folds: need at least 2", folds);
	if (n < folds)
		return err_fail(err, ERR_NODATA, "%zu %s cannot fill %zu folds", n,
				w->d->group ? "groups" : "rows", folds);
	rc = split_alloc(folds, w->d->n_rows, out, err);
	if (rc)
		return rc;
	rc = shuffle_groups(w, 0, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++)
		largest = w->group.size[i] > largest ? w->group.size[i] : largest;
	sorted = mem_array(n, sizeof *sorted);
	start = mem_calloc(largest + 2, sizeof *start);
	rows = mem_calloc(folds, sizeof *rows);
	if (!sorted || !start || !rows) {
		rc = err_nomem(err, "%zu groups in %zu folds", n, folds);
		goto out;
	}
	/* counting sort by descending size: stable, so equal sizes stay in random order */
	for (size_t i = 0; i < n; i++)
		start[largest - w->group.size[i] + 1]++;
	for (size_t i = 1; i <= largest + 1; i++)
		start[i] += start[i - 1];
	for (size_t i = 0; i < n; i++)
		sorted[start[largest - w->group.size[w->order[i]]]++] = w->order[i];
	for (size_t i = 0; i < n; i++) {
		size_t least = 0;

		for (size_t k = 1; k < folds; k++)
			if (rows[k] < rows[least])
				least = k;
		w->fold_of[sorted[i]] = (uint32_t)least;
		rows[least] += w->group.size[sorted[i]];
	}
	rc = fill_by_group(w, *out, err);
out:
	free(sorted);
	free(start);
	free(rows);
	return rc;
}

static int make_holdout(struct work *w, struct split **out, struct err *err)
{
	size_t n = w->group.n, held;
	int rc;

	if (w->p->folds < 1)
		return err_fail(err, ERR_ARG, "hold-out needs at least 1 repetition");
	if (!(w->p->share > 0.0 && w->p->share < 1.0))
		return err_fail(err, ERR_ARG, "share %g held out: need more than 0 and less than 1",
				w->p->share);
	held = (size_t)floor(w->p->share * (double)n + 0.5);
	if (held < 1 || held >= n)
		return err_fail(err, ERR_NODATA, "a share of %g of %zu %s holds out %zu", w->p->share, n,
				w->d->group ? "groups" : "rows", held);
	rc = split_alloc(w->p->folds, w->d->n_rows, out, err);
	if (rc)
		return rc;
	for (size_t k = 0; k < w->p->folds; k++) {
		rc = shuffle_groups(w, k, err); /* a stream per repetition: adding some keeps the first */
		if (rc)
			return rc;
		for (size_t i = 0; i < n; i++)
			w->fold_of[w->order[i]] = i < held;
		for (size_t i = 0; i < w->d->n_rows; i++)
			w->side[i] = w->fold_of[w->group.of[i]] ? SIDE_TEST : SIDE_TRAIN;
		rc = fold_fill(&(*out)->fold[k], w->side, w->d->n_rows, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int make_leave_group(struct work *w, struct split **out, struct err *err)
{
	size_t n = w->group.n;
	int rc;

	if (n < 2)
		return err_fail(err, ERR_NODATA, "leaving a group out needs 2 groups, there %s %zu",
				n == 1 ? "is" : "are", n);
	if (n > SPLIT_MAX_FOLDS)
		return err_fail(err, ERR_ARG, "leaving each of %zu groups out: at most %d", n,
				SPLIT_MAX_FOLDS);
	rc = split_alloc(n, w->d->n_rows, out, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++)
		w->fold_of[i] = (uint32_t)i;
	return fill_by_group(w, *out, err);
}

/* Is it a level that is held out? Of a list, where there is one. */
static bool is_held(const struct work *w, double x, double low, double high)
{
	if (!w->p->n_levels)
		return x >= low && x <= high;
	for (size_t i = 0; i < w->p->n_levels; i++)
		if (x == w->p->level[i])
			return true;
	return false;
}

/* Holds out the rows with low <= x <= high; groups they share with other rows leave the training side. */
static int fill_by_level(struct work *w, double low, double high, struct fold *f, struct err *err)
{
	const struct dataset *d = w->d;

	memset(w->fold_of, 0, w->group.n * sizeof *w->fold_of);
	for (size_t i = 0; i < d->n_rows; i++) {
		double x = d->x[i * d->n_features + w->p->feature];

		w->side[i] = is_held(w, x, low, high) ? SIDE_TEST : SIDE_TRAIN; /* NaN has no level: train */
		if (w->side[i] == SIDE_TEST)
			w->fold_of[w->group.of[i]] = 1;
	}
	for (size_t i = 0; i < d->n_rows; i++)
		if (w->side[i] == SIDE_TRAIN && w->fold_of[w->group.of[i]])
			w->side[i] = SIDE_NEITHER;
	return fold_fill(f, w->side, d->n_rows, err);
}

static const char *feature_name(const struct work *w)
{
	return w->d->name ? w->d->name[w->p->feature] : "the feature";
}

/* The levels given, all at once; each must be one, and another must be left. */
static int make_by_list(struct work *w, const double *level, size_t n, struct split **out, struct err *err)
{
	int rc;

	for (size_t i = 0; i < w->p->n_levels; i++) {
		size_t k = 0;

		while (k < n && level[k] != w->p->level[i])
			k++;
		if (k == n)
			return err_fail(err, ERR_NODATA, "%s has no level %g: its levels run from %g to %g",
					feature_name(w), w->p->level[i], level[0], level[n - 1]);
	}
	if (w->p->n_levels >= n)
		return err_fail(err, ERR_NODATA, "%s has %zu levels: holding all of them out leaves no row",
				feature_name(w), n);
	rc = split_alloc(1, w->d->n_rows, out, err);
	return rc ? rc : fill_by_level(w, NAN, NAN, &(*out)->fold[0], err);
}

static int make_by_level(struct work *w, struct split **out, struct err *err)
{
	double *level = NULL, bound = w->p->bound;
	size_t n;
	int rc;

	if (w->p->feature >= w->d->n_features)
		return err_fail(err, ERR_ARG, "no feature number %zu: there are %zu", w->p->feature,
				w->d->n_features);
	level = mem_array(w->d->n_rows, sizeof *level);
	if (!level)
		return err_nomem(err, "the levels of %zu rows", w->d->n_rows);
	n = dataset_levels(w->d, w->p->feature, level);
	if (w->p->kind == SPLIT_INTERPOLATE && w->p->n_levels) {
		rc = n ? make_by_list(w, level, n, out, err)
		       : err_fail(err, ERR_NODATA, "%s has no level", feature_name(w));
	} else if (w->p->kind == SPLIT_INTERPOLATE) {
		if (n < 3) {
			rc = err_fail(err, ERR_NODATA, "%s has %zu levels: an inner one needs 3",
				      feature_name(w), n);
			goto out;
		}
		rc = split_alloc(n - 2, w->d->n_rows, out, err);
		for (size_t k = 0; !rc && k < n - 2; k++)
			rc = fill_by_level(w, level[k + 1], level[k + 1], &(*out)->fold[k], err);
	} else {
		size_t first = 0;

		if (n < 2) {
			rc = err_fail(err, ERR_NODATA, "%s has %zu levels: holding out the highest needs 2",
				      feature_name(w), n);
			goto out;
		}
		if (isnan(bound))
			bound = level[n - 2];
		while (first < n && level[first] <= bound)
			first++;
		if (first == 0 || first == n) {
			rc = err_fail(err, ERR_NODATA,
				      "%s > %g holds out %s row: its levels run from %g to %g",
				      feature_name(w), bound, first ? "no" : "every", level[0], level[n - 1]);
			goto out;
		}
		rc = split_alloc(1, w->d->n_rows, out, err);
		if (!rc)
			rc = fill_by_level(w, level[first], level[n - 1], &(*out)->fold[0], err);
	}
out:
	free(level);
	return rc;
}

int split_make(const struct dataset *d, const struct split_params *p, struct split **out, struct err *err)
{
	struct work w = { .d = d, .p = p };
	struct split *s = NULL;
	int rc;

	if (!d->n_rows)
		return err_fail(err, ERR_NODATA, "no rows to split");
	assert(d->n_rows <= UINT32_MAX);
	rc = grouping_init(&w.group, d, err);
	if (rc)
		return rc;
	w.fold_of = mem_array(w.group.n, sizeof *w.fold_of);
	w.side = mem_array(d->n_rows, sizeof *w.side);
	if (!w.fold_of || !w.side) {
		rc = err_nomem(err, "a split of %zu rows", d->n_rows);
		goto out;
	}
	switch (p->kind) {
	case SPLIT_KFOLD: rc = make_kfold(&w, &s, err); break;
	case SPLIT_HOLDOUT: rc = make_holdout(&w, &s, err); break;
	case SPLIT_LEAVE_GROUP: rc = make_leave_group(&w, &s, err); break;
	case SPLIT_INTERPOLATE:
	case SPLIT_EXTRAPOLATE: rc = make_by_level(&w, &s, err); break;
	default: rc = err_fail(err, ERR_ARG, "no split of kind %d", (int)p->kind); break;
	}
out:
	grouping_release(&w.group);
	free(w.order);
	free(w.fold_of);
	free(w.side);
	if (rc)
		split_free(s);
	else
		*out = s;
	return rc;
}

struct hashed {
	uint64_t hash;
	uint32_t row;
};

static int compare_hashed(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	return (x->hash > y->hash) - (x->hash < y->hash);
}

static uint64_t row_hash(const double *x, size_t n)
{
	uint64_t h = 0, bits;

	for (size_t i = 0; i < n; i++) {
		double v = isnan(x[i]) ? NAN : x[i] + 0.0; /* every NaN is one, and -0 is 0 */

		memcpy(&bits, &v, sizeof bits);
		h = rng_mix(h ^ bits) + 0x9e3779b97f4a7c15ULL;
	}
	return h;
}

/* Equal rows are found by a 64-bit hash alone: among a million different rows two agree by chance once in
 * tens of millions of tables, and the answer is a warning to people. */
bool split_leaks(const struct dataset *d, const struct split *s)
{
	struct hashed *sorted = mem_array(d->n_rows, sizeof *sorted);
	uint32_t *kind = mem_array(d->n_rows, sizeof *kind); /* equal rows have the same */
	uint32_t *stamp = mem_calloc(d->n_rows, sizeof *stamp);
	uint32_t n_kinds = 0;
	bool leaks = false;

	if (!sorted || !kind || !stamp) {
		leaks = true; /* not known: the careful answer */
		goto out;
	}
	for (size_t i = 0; i < d->n_rows; i++)
		sorted[i] = (struct hashed){ row_hash(d->x + i * d->n_features, d->n_features), (uint32_t)i };
	qsort(sorted, d->n_rows, sizeof *sorted, compare_hashed);
	for (size_t i = 0; i < d->n_rows; i++) {
		if (i && sorted[i].hash != sorted[i - 1].hash)
			n_kinds++;
		kind[sorted[i].row] = n_kinds;
	}
	for (size_t k = 0; k < s->n_folds && !leaks; k++) {
		const struct fold *f = &s->fold[k];

		for (size_t i = 0; i < f->n_train; i++)
			stamp[kind[f->train[i]]] = (uint32_t)k + 1;
		for (size_t i = 0; i < f->n_test && !leaks; i++)
			leaks = stamp[kind[f->test[i]]] == k + 1;
	}
out:
	free(sorted);
	free(kind);
	free(stamp);
	return leaks;
}
