/* Finds rows whose times look wrong. See doubt.h. */
#include "predictors/search/doubt.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"

#define LEAST_ROWS 20
#define MOST_SHARE 0.2
#define SAME 1e-6 /* in log time: six digits agree */
#define NEAR 1e-2 /* in log time: how many rows are so near says how many agree by chance */
#define CHANCE 1e-3 /* repeats that chance explains better than this are left alone */
#define ALIAS_PAIRS 3 /* so many pairs of settings that differ in two names alone took the same time ... */
#define ALIAS_SHARE 0.2 /* ... and this share of such pairs: there, the names mean one thing */
#define MOST_NAMES 64 /* pairs of names that are looked at */
#define FAR_SPREADS 6.0
#define FAR_LEAST 0.693 /* log 2: whatever the spread, no row nearer than this looks wrong */
#define MAD 1.4826 /* the median of the sizes of normal errors, to their standard deviation */
#define ROUNDS 5
/* Medians in leaves of three: a wrong row does not drag its neighbours along. */
#define JUDGE "trees=100,criterion=absolute,min_samples_leaf=3"

/* ---- what the other rows say ---- */

struct judge { /* a model of the rows that are believed so far */
	struct predictor m;
	bool logs; /* it was fitted to logarithms */
};

static int judge_fit(struct judge *j, const char *model, const struct dataset *d,
		     const struct fit_context *ctx, bool oob, struct err *err)
{
	const struct predictor_ops *ops = predictor_find(model);
	struct fit_context own = *ctx;
	struct settings s;
	int rc;

	own.want_oob = oob;
	own.no_importances = true;
	settings_init(&s, ops->spec);
	rc = settings_parse(&s, JUDGE, err);
	return rc ? rc : predictor_fit(ops, &s, d, &own, &j->m, err);
}

/* The hybrid where the columns have the roles that it needs, else a forest of log time. */
static int judge_make(struct judge *j, const struct dataset *d, const struct fit_context *ctx, bool oob,
		      struct err *err)
{
	struct dataset logs = *d;
	struct err why = { 0 };
	int rc;

	*j = (struct judge){ .logs = false };
	rc = judge_fit(j, "hybrid", d, ctx, oob, &why);
	if (rc && rc != -ERR_NODATA)
		return err_fail(err, why.code, "%s", why.text);
	if (!rc)
		return 0;
	logs.y = mem_array(d->n_rows, sizeof *logs.y);
	if (!logs.y)
		return err_nomem(err, "%zu rows", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++)
		logs.y[i] = log(d->y[i]);
	j->logs = true;
	rc = judge_fit(j, "forest", &logs, ctx, oob, err);
	free(logs.y);
	return rc;
}

static double judge_error(const struct judge *j, double time_s, double said)
{
	return log(time_s) - (j->logs ? said : log(said));
}

static int believed_rows(const struct dataset *d, const uint8_t *doubt, uint32_t *row, struct dataset **out,
			 struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		if (!doubt[i])
			row[n++] = (uint32_t)i;
	return dataset_subset(d, row, n, out, err);
}

/* ---- repeats ---- */

struct timed {
	double log_t;
	uint32_t row;
};

static int by_time(const void *a, const void *b)
{
	const struct timed *x = a, *y = b;

	if (x->log_t != y->log_t)
		return x->log_t < y->log_t ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static bool same_setting(const struct dataset *d, size_t a, size_t b)
{
	const double *x = d->x + a * d->n_features, *y = d->x + b * d->n_features;

	for (size_t f = 0; f < d->n_features; f++)
		if (x[f] != y[f] && !(isnan(x[f]) && isnan(y[f])))
			return false;
	return true;
}

/* Do rows i and k differ as a and b do, in the name of one category alone? Names are 0/1 columns, so that is
 * a difference in one of them or two. */
static bool differ_alike(const struct dataset *d, size_t a, size_t b, size_t i, size_t k)
{
	size_t p = d->n_features, n = 0;

	for (size_t f = 0; d->role && f < p; f++) {
		double va = d->x[a * p + f], vb = d->x[b * p + f], vi = d->x[i * p + f], vk = d->x[k * p + f];
		bool differ = va != vb && !(isnan(va) && isnan(vb));

		if (differ && (d->role[f] != ROLE_CATEGORY || vi != va || vk != vb))
			return false;
		if (!differ && vi != vk && !(isnan(vi) && isnan(vk)))
			return false;
		n += differ;
	}
	return n == 1 || n == 2;
}

/* Do the names in which a and b differ mean one thing? One worker takes as long whether or not workers share
 * a machine, and a table may say so for every network: those rows were not read twice. */
static bool are_aliases(const struct dataset *d, size_t a, size_t b)
{
	size_t n = 0, same = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		for (size_t k = 0; k < d->n_rows; k++)
			if (differ_alike(d, a, b, i, k)) {
				n++;
				same += fabs(log(d->y[i]) - log(d->y[k])) <= SAME;
			}
	return same >= ALIAS_PAIRS && (double)same >= ALIAS_SHARE * (double)n;
}

/* Pairs of names that were looked at. */
struct names {
	struct {
		size_t a, b; /* rows */
		bool aliases;
	} pair[MOST_NAMES];
	size_t n;
};

static bool names_alias(struct names *names, const struct dataset *d, size_t a, size_t b)
{
	for (size_t i = 0; i < names->n; i++)
		if (differ_alike(d, names->pair[i].a, names->pair[i].b, a, b))
			return names->pair[i].aliases;
	if (names->n == MOST_NAMES || !differ_alike(d, a, b, a, b))
		return false;
	names->pair[names->n].a = a;
	names->pair[names->n].b = b;
	return names->pair[names->n++].aliases = are_aliases(d, a, b);
}

/* Doubts both rows of each pair of settings that share a time. t is sorted. */
static void doubt_pairs(const struct dataset *d, const struct timed *t, uint8_t *doubt)
{
	struct names names = { .n = 0 };

	for (size_t i = 0; i < d->n_rows; i++)
		for (size_t k = i + 1; k < d->n_rows && t[k].log_t - t[i].log_t <= SAME; k++) {
			size_t a = t[i].row, b = t[k].row;

			if (!same_setting(d, a, b) && !names_alias(&names, d, a, b))
				doubt[a] = doubt[b] = DOUBT_REPEATED;
		}
}

/* The step in which the times were written, as powers of ten go. */
static double written_step(const struct dataset *d)
{
	double step = 1.0;

	for (size_t i = 0; i < d->n_rows; i++)
		while (step > 1e-9 && fabs(d->y[i] / step - round(d->y[i] / step)) > 1e-4)
			step /= 10.0;
	return step;
}

/* Pairs of different settings within `reach` of each other; t is sorted. */
static size_t count_pairs(const struct dataset *d, const struct timed *t, double reach)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		for (size_t k = i + 1; k < d->n_rows && t[k].log_t - t[i].log_t <= reach; k++)
			n += !same_setting(d, t[i].row, t[k].row);
	return n;
}

/* Are there more repeats than chance explains? */
static bool repeats_tell(const struct dataset *d, const struct timed *t)
{
	size_t same = count_pairs(d, t, SAME), near = count_pairs(d, t, NEAR);
	double middle = exp(t[d->n_rows / 2].log_t), grain = fmax(SAME, written_step(d) / middle);

	return same && gsl_cdf_poisson_Q((unsigned)(same - 1), (double)near * grain / NEAR) < CHANCE;
}

/* Of rows that share a time the one nearest to what the others say is believed. */
static int doubt_repeats(const struct dataset *d, const struct fit_context *ctx, struct timed *t,
			 uint32_t *row, uint8_t *doubt, struct err *err)
{
	struct dataset *others = NULL;
	struct judge judge = { 0 };
	size_t to;
	int rc;

	for (size_t i = 0; i < d->n_rows; i++)
		t[i] = (struct timed){ log(d->y[i]), (uint32_t)i };
	qsort(t, d->n_rows, sizeof *t, by_time);
	if (!repeats_tell(d, t))
		return 0;
	doubt_pairs(d, t, doubt);
	rc = believed_rows(d, doubt, row, &others, err);
	if (!rc && others->n_rows >= LEAST_ROWS)
		rc = judge_make(&judge, others, ctx, false, err);
	for (size_t i = 0; i < d->n_rows && !rc; i = to) {
		double best = INFINITY, said;
		size_t keep = i;

		for (to = i; to < d->n_rows && (to == i || t[to].log_t - t[to - 1].log_t <= SAME); to++) {
			double e = INFINITY;

			if (doubt[t[to].row] && judge.m.self) {
				predictor_predict(&judge.m, d->x + t[to].row * d->n_features, 1, &said);
				e = fabs(judge_error(&judge, d->y[t[to].row], said));
			}
			if (e < best) {
				best = e;
				keep = to;
			}
		}
		if (judge.m.self)
			doubt[t[keep].row] = DOUBT_NONE;
	}
	predictor_release(&judge.m);
	dataset_free(others);
	return rc;
}

/* ---- far rows ---- */

/* One round: doubts the farthest rows of those believed. *out_n: how many. */
static int doubt_far(const struct dataset *d, const struct fit_context *ctx, uint32_t *row, uint8_t *doubt,
		     size_t *out_n, struct err *err)
{
	struct dataset *part = NULL;
	struct judge judge = { 0 };
	double *e = mem_array(d->n_rows, 2 * sizeof *e), *size = e + d->n_rows, limit, most = 0.0;
	const double *said;
	size_t n = 0;
	int rc = e ? believed_rows(d, doubt, row, &part, err) : err_nomem(err, "%zu rows", d->n_rows);

	*out_n = 0;
	if (!rc)
		rc = judge_make(&judge, part, ctx, true, err);
	said = rc ? NULL : judge.m.ops->oob(judge.m.self);
	for (size_t i = 0; said && i < part->n_rows; i++) {
		e[i] = fabs(judge_error(&judge, part->y[i], said[i]));
		if (isfinite(e[i])) {
			size[n++] = e[i];
			most = fmax(most, e[i]);
		}
	}
	if (n) {
		/* neighbours of a row that is far off may look wrong as well: their turn comes next */
		limit = fmax(fmax(FAR_SPREADS * MAD * stats_median(size, n), FAR_LEAST), 0.5 * most);
		for (size_t i = 0; i < part->n_rows; i++)
			if (isfinite(e[i]) && e[i] > limit) {
				doubt[row[i]] = DOUBT_FAR;
				++*out_n;
			}
	}
	predictor_release(&judge.m);
	dataset_free(part);
	free(e);
	return rc;
}

int doubt_find(const struct dataset *d, const struct fit_context *ctx, uint8_t *out, size_t *out_n,
	       struct err *err)
{
	struct timed *t;
	uint32_t *row;
	size_t more = 1;
	int rc;

	memset(out, DOUBT_NONE, d->n_rows);
	*out_n = 0;
	if (d->n_rows < LEAST_ROWS || d->n_rows > DOUBT_MAX_ROWS)
		return 0;
	t = mem_array(d->n_rows, sizeof *t);
	row = mem_array(d->n_rows, sizeof *row);
	rc = t && row ? doubt_repeats(d, ctx, t, row, out, err) : err_nomem(err, "%zu rows", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++)
		*out_n += out[i] != DOUBT_NONE;
	for (int round = 0; round < ROUNDS && !rc && more && d->n_rows - *out_n >= LEAST_ROWS; round++) {
		rc = doubt_far(d, ctx, row, out, &more, err);
		*out_n += more;
	}
	if (!rc && (double)*out_n > MOST_SHARE * (double)d->n_rows) {
		memset(out, DOUBT_NONE, d->n_rows);
		*out_n = 0;
	}
	free(t);
	free(row);
	return rc;
}
