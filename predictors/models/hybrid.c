/* The model `hybrid`: the calibrated queueing model times a forest on its log residuals. See hybrid.h. */
#include "predictors/models/hybrid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "predictors/trees/ensemble_model.h"
#include "predictors/data/features.h"
#include "predictors/trees/forest.h"
#include "predictors/models/effects.h"
#include "predictors/models/queueing_models.h"
#include "predictors/models/reach.h"
#include "predictors/data/ranges.h"

#define EFFECTS_SINCE 4 /* version of the model file */
#define PASS_CELLS 2048 /* the rows predicted at a time live on the stack: 16 KiB each */

struct hybrid {
	struct queue_model queue;
	struct effects *effects; /* NULL in files of earlier versions */
	struct ensemble_model *forest;
	size_t n_features;
	double share; /* of the prior's logarithm that is taken; the forest learns the rest */
	double middle; /* of that rest; outside its ranges the forest falls back on it */
	struct ranges ranges;
	unsigned shows; /* a bit for each of work_role: shows_work() */
	double *oob; /* per row; NULL unless asked for */
	double *importance; /* NULL after loading, and where they are not wanted */
};

static const enum feature_role work_role[] = { ROLE_EPOCHS, ROLE_SAMPLES };
#define N_WORK (sizeof work_role / sizeof *work_role)

static const struct setting_spec hybrid_spec[] = {
	FOREST_SETTINGS(300, 1, "number of trees on the log residual"),
	QUEUE_CORES_SETTING,
	QUEUE_SIZE_SETTINGS,
	QUEUE_KIND_SETTING,
	{ .name = "effects",
	  .otherwise = 0,
	  .min = 0,
	  .max = 1,
	  .words = forest_no_yes,
	  .help = "random effects in log time between the queue and the forest" },
	{ .name = "prior",
	  .otherwise = 1,
	  .min = 0,
	  .max = 1,
	  .help = "share of the queue and the effects, in log time, that is taken; the forest learns the "
		  "rest" },
	{ .name = NULL },
};

static void hybrid_destroy(void *self)
{
	struct hybrid *h = self;

	if (!h)
		return;
	effects_free(h->effects);
	ensemble_model_free(h->forest);
	ranges_release(&h->ranges);
	free(h->oob);
	free(h->importance);
	free(h);
}

/* The logarithm of what the forest corrects. effect: effects_at(x), 0 without effects. */
static double log_prior(const struct hybrid *h, const double *x, double effect)
{
	return h->middle + h->share * (log(queue_model_time_s(&h->queue, x)) + effect);
}

/* What the forest has to learn of a row. */
static double log_rest(const struct hybrid *h, const double *x, double time_s)
{
	return log(time_s) - log_prior(h, x, h->effects ? effects_at(h->effects, x) : 0.0);
}

/* The time of a row within the table. */
static double inside_s(const struct hybrid *h, const double *x)
{
	double inside[FEATURES_MAX], rest, shrink = 1.0 / (1.0 + ranges_pull_in(&h->ranges, x, inside));

	ensemble_predict(h->forest->ensemble, inside, 1, &rest);
	return exp(log_prior(h, x, h->effects ? effects_at(h->effects, x) : 0.0) + shrink * rest);
}

/* How many times as long the work of column f takes as the most of the table, which row `most` has. */
static double times_of(const struct hybrid *h, const double *most, int f, double work)
{
	double low = h->ranges.low[f], high = h->ranges.high[f], least[FEATURES_MAX], grew;

	if (!(high > REACH_BY_TABLE * low))
		return work / high;
	memcpy(least, most, h->n_features * sizeof *least);
	least[f] = low;
	grew = 1.0 - inside_s(h, least) / inside_s(h, most);
	return 1.0 + fmax(grew, 0.0) * (work - high) / (high - low);
}

/* Without a queue nothing says what more work takes than was ever measured. Where work hardly varied it is
 * linear from there on, which counts a start-up more than once, but never too little. Where the table shows
 * runs that differ in their work alone, it goes on as it grew from the least to the most: effects are lines
 * in logarithms, and a start-up bends these, so that far outside they would say too little. Elsewhere the
 * work of a row goes with what else it is, and the effects have sorted that out. Brings the epochs and
 * samples of x back to the most that the table has, in out, and returns the logarithm of what was taken
 * away. */
static double take_work(const struct hybrid *h, const double *x, double *out)
{
	double more = 0.0;
	unsigned taken = 0;

	for (size_t k = 0; h->queue.kind == QUEUE_NONE && k < N_WORK; k++) {
		int f = h->queue.map.at[work_role[k]];
		double most = f >= 0 ? h->ranges.high[f] : NAN;

		if (!(f >= 0 && most > 0.0 && x[f] > most) ||
		    !(h->shows >> k & 1 || most <= REACH_BY_TABLE * h->ranges.low[f]))
			continue;
		if (!taken)
			memcpy(out, x, h->n_features * sizeof *out);
		taken |= 1u << k;
		out[f] = most;
	}
	for (size_t k = 0; k < N_WORK; k++)
		if (taken >> k & 1) {
			int f = h->queue.map.at[work_role[k]];

			more += log(times_of(h, out, f, x[f]));
		}
	return more;
}

static void hybrid_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct hybrid *h = self;
	double inside[PASS_CELLS], shrink[PASS_CELLS], effect[PASS_CELLS], most[FEATURES_MAX];
	size_t per_pass = PASS_CELLS / h->n_features; /* FEATURES_MAX leaves room for two */

	for (size_t done = 0; done < n_rows; done += per_pass) {
		size_t n = n_rows - done < per_pass ? n_rows - done : per_pass;

		for (size_t i = 0; i < n; i++) {
			const double *row = x + (done + i) * h->n_features;

			if (take_work(h, row, most) > 0.0)
				row = most;
			shrink[i] = 1.0 / (1.0 + ranges_pull_in(&h->ranges, row, inside + i * h->n_features));
		}
		ensemble_predict(h->forest->ensemble, inside, n, out + done);
		if (h->effects)
			effects_at_rows(h->effects, x + done * h->n_features, n, h->n_features, effect);
		for (size_t i = 0; i < n; i++) {
			const double *row = x + (done + i) * h->n_features;
			double more = take_work(h, row, most);

			if (more > 0.0)
				row = most;
			if (more > 0.0 && h->effects)
				effect[i] = effects_at(h->effects, row);
			out[done + i] = exp(log_prior(h, row, h->effects ? effect[i] : 0.0) +
					    shrink[i] * out[done + i] + more);
		}
	}
}

/* ---- fit ---- */

/* Out-of-bag predictions of all rows. The queueing part has seen every row; its leverage h says how much a
 * row drew the fit towards itself, and e / (1 - h) is the residual without that (Cook and Weisberg, Residuals
 * and Influence in Regression, 1982, section 2.2). */
static int complete_oob(struct hybrid *h, const struct dataset *d, const uint32_t *row, size_t n,
			const double *leverage, struct err *err)
{
	h->oob = mem_array(d->n_rows, sizeof *h->oob);
	if (!h->oob)
		return err_nomem(err, "the out-of-bag predictions");
	for (size_t i = 0; i < d->n_rows; i++)
		h->oob[i] = NAN;
	for (size_t k = 0; k < n; k++) {
		size_t i = row[k];
		double e = log_rest(h, d->x + i * d->n_features, d->y[i]) - h->forest->oob[k];

		e /= 1.0 - fmin(leverage[i], 0.9); /* a row that makes its own fit tells nothing of others */
		h->oob[i] = d->y[i] * exp(-e);
	}
	return 0;
}

/* Of more rows the forest learns from so many, drawn at random: it corrects a law, and leaves of a few rows
 * each from a million would be gigabytes of noise. */
#define MOST_ROWS 50000

static int thin_rest(struct dataset **rest, uint32_t *row, size_t n, uint64_t seed, struct err *err)
{
	struct rng rng = rng_stream(seed, UINT64_MAX - 5);
	uint32_t *at = mem_array(n, sizeof *at);
	struct dataset *few = NULL;
	int rc = at ? 0 : err_nomem(err, "%zu rows", n);

	for (size_t i = 0; i < n && !rc; i++)
		at[i] = (uint32_t)i;
	if (!rc) {
		rng_shuffle(&rng, at, n);
		rc = dataset_subset(*rest, at, MOST_ROWS, &few, err);
	}
	if (!rc) {
		for (size_t k = 0; k < MOST_ROWS; k++)
			at[k] = row[at[k]];
		memcpy(row, at, MOST_ROWS * sizeof *row);
		dataset_free(*rest);
		*rest = few;
	}
	free(at);
	return rc;
}

static int fit_forest(struct hybrid *h, const struct settings *s, const struct dataset *d,
		      const struct fit_context *ctx, const double *leverage, struct err *err)
{
	uint32_t *row = mem_array(d->n_rows, sizeof *row);
	struct dataset *rest = NULL;
	size_t n = 0;
	void *forest = NULL;
	int rc;

	if (!row)
		return err_nomem(err, "%zu rows", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++)
		if (!isnan(leverage[i])) /* left out of the calibration: no time, no residual */
			row[n++] = (uint32_t)i;
	if (!n) { /* only the paper's queue has no answer at all */
		free(row);
		return err_fail(err, ERR_UNSTABLE, "%s: the paper's queue is unstable in every row",
				hybrid_ops.title);
	}
	rc = dataset_subset(d, row, n, &rest, err);
	if (!rc) {
		for (size_t i = 0; i < n; i++)
			rest->y[i] = log_rest(h, rest->x + i * d->n_features, rest->y[i]);
		if (h->share < 1.0 || h->queue.kind == QUEUE_NONE)
			h->middle = stats_mean(rest->y, n);
		for (size_t i = 0; i < n; i++)
			rest->y[i] -= h->middle;
		rc = ranges_find(rest, &h->ranges, err);
	}
	if (!rc && n > MOST_ROWS) {
		rc = thin_rest(&rest, row, n, ctx->seed, err);
		n = MOST_ROWS;
	}
	if (!rc)
		rc = forest_ops.fit(s, rest, ctx, &forest, err);
	h->forest = forest;
	if (!rc && h->forest->oob)
		rc = complete_oob(h, d, row, n, leverage, err);
	dataset_free(rest);
	free(row);
	return rc;
}

/* What the queue gets wrong in a way that adds up in log time; without a queue, the law itself. */
static int fit_effects(struct hybrid *h, const struct dataset *d, struct err *err)
{
	double *y = mem_array(d->n_rows, sizeof *y);
	int rc;

	if (!y)
		return err_nomem(err, "%zu rows", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++) {
		y[i] = log(d->y[i]) - log(queue_model_time_s(&h->queue, d->x + i * d->n_features));
		if (!isfinite(y[i]))
			y[i] = NAN;
	}
	rc = effects_fit(d, y, h->queue.kind == QUEUE_NONE, &h->effects, err);
	free(y);
	return rc;
}

/* ---- which work the table shows ---- */

struct alike {
	uint64_t key; /* of all that a row has but its work */
	double work;
};

static int by_key(const void *a_, const void *b_)
{
	const struct alike *a = a_, *b = b_;

	return a->key != b->key ? (a->key > b->key) - (a->key < b->key)
				: (a->work > b->work) - (a->work < b->work);
}

static uint64_t key_without(const struct dataset *d, size_t row, size_t without)
{
	uint64_t key = 1;

	for (size_t f = 0; f < d->n_features; f++) {
		uint64_t bits = 0;
		double v = d->x[row * d->n_features + f];

		if (f == without || (d->factor && !d->factor[f]) || (d->role && d->role[f] == ROLE_OTHER))
			continue;
		if (!isnan(v) && v != 0.0) /* -0 */
			memcpy(&bits, &v, sizeof bits);
		key = rng_mix((key + (isnan(v) ? 0xd1b54a32d192ed03ULL : 0x9e3779b97f4a7c15ULL)) ^ bits);
	}
	return key;
}

/* Has at least half of the rows others that are alike but for the work of column f, with more than
 * REACH_BY_TABLE times as much between the least and the most of them? A few such rows are an accident. */
static int shows_work(const struct dataset *d, size_t f, bool *out, struct err *err)
{
	struct alike *row = mem_array(d->n_rows, sizeof *row);
	size_t shown = 0;

	if (!row)
		return err_nomem(err, "%zu rows", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++)
		row[i] = (struct alike){ key_without(d, i, f), d->x[i * d->n_features + f] };
	qsort(row, d->n_rows, sizeof *row, by_key);
	for (size_t first = 0, end; first < d->n_rows; first = end) {
		for (end = first + 1; end < d->n_rows && row[end].key == row[first].key; end++)
			;
		if (row[end - 1].work > REACH_BY_TABLE * row[first].work)
			shown += end - first;
	}
	*out = 2 * shown >= d->n_rows;
	free(row);
	return 0;
}

static int find_shows(struct hybrid *h, const struct dataset *d, struct err *err)
{
	int rc = 0;

	for (size_t k = 0; !rc && h->queue.kind == QUEUE_NONE && k < N_WORK; k++) {
		int f = h->queue.map.at[work_role[k]];
		bool shows = false;

		if (f >= 0)
			rc = shows_work(d, (size_t)f, &shows, err);
		h->shows |= (unsigned)shows << k;
	}
	return rc;
}

static int hybrid_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		      void **out_self, struct err *err)
{
	struct hybrid *h = mem_calloc(1, sizeof *h);
	double *leverage = mem_array(d->n_rows, sizeof *leverage);
	struct calibrate_params how = { .leverage = leverage, .stop = ctx->stop, .memo = ctx->memo };
	enum queue_kind kind = (enum queue_kind)settings_get(s, "queue");
	int rc;

	if (!h || !leverage) {
		free(h);
		free(leverage);
		return err_nomem(err, "a hybrid of %zu rows", d->n_rows);
	}
	h->n_features = d->n_features;
	h->share = settings_get(s, "prior");
	rc = kind == QUEUE_NONE && ctx->no_importances
		     ? queue_model_none(hybrid_ops.title, s, d, leverage, &h->queue, err)
		     : queue_model_fit(hybrid_ops.title, s, d, kind, &how, &h->queue, err);
	if (!rc)
		rc = find_shows(h, d, err);
	if (!rc && settings_get(s, "effects") > 0.0)
		rc = fit_effects(h, d, err);
	if (!rc)
		rc = fit_forest(h, s, d, ctx, leverage, err);
	if (!rc && !ctx->no_importances)
		rc = queue_importances(hybrid_predict, h, d, &h->importance, err);
	free(leverage);
	if (rc)
		hybrid_destroy(h);
	else
		*out_self = h;
	return rc;
}

/* ---- the rest ---- */

static void hybrid_shares(const void *self, const double *x, struct work_shares *out)
{
	queue_model_shares(&((const struct hybrid *)self)->queue, x, out);
}

static void hybrid_why_none(const void *self, const double *x, char *out, size_t size)
{
	queue_model_why_none(&((const struct hybrid *)self)->queue, x, out, size);
}

static double hybrid_spread(const void *self, const double *x)
{
	const struct hybrid *h = self;

	return queue_model_spread(&h->queue, x) * (h->effects ? effects_spread(h->effects, x) : 1.0);
}

static void hybrid_machine(const void *self, double *out_cores, double *out_disk_saturation)
{
	queue_model_machine(&((const struct hybrid *)self)->queue, out_cores, out_disk_saturation);
}

static int hybrid_compile(void *self, struct err *err)
{
	struct hybrid *h = self;

	calibrate_tabulate(&h->queue.c);
	return ensemble_compile(h->forest->ensemble, err);
}

static const double *hybrid_oob(const void *self)
{
	return ((const struct hybrid *)self)->oob;
}

static void hybrid_importances(const void *self, double *out)
{
	const struct hybrid *h = self;

	for (size_t f = 0; f < h->n_features; f++)
		out[f] = h->importance ? h->importance[f] : 0.0;
}

static void hybrid_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct hybrid *h = self;

	queue_model_describe(&h->queue, names, w);
	if (h->effects)
		effects_describe(h->effects, w);
	ensemble_model_describe(h->forest, names, w);
}

static void hybrid_remark(const void *self, const struct dataset *names, char *out, size_t size)
{
	(void)names;
	queue_model_remark(&((const struct hybrid *)self)->queue, out, size);
}

static int hybrid_save(const void *self, struct writer *w, struct err *err)
{
	const struct hybrid *h = self;

	queue_model_save(&h->queue, w);
	write_f64(w, h->share);
	write_f64(w, h->middle);
	write_u8(w, (uint8_t)((h->effects != NULL) | h->shows << 1));
	if (h->effects)
		effects_save(h->effects, w);
	ranges_save(&h->ranges, w);
	return ensemble_model_save(h->forest, w, err);
}

static int hybrid_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	struct hybrid *h = mem_calloc(1, sizeof *h);
	bool since = !r->version || r->version >= EFFECTS_SINCE;
	void *forest = NULL;
	uint8_t parts;
	int rc;

	if (!h)
		return err_nomem(err, "a hybrid");
	h->n_features = n_features;
	if (n_features == 0 || n_features > FEATURES_MAX) {
		rc = err_fail(err, ERR_FORMAT, "%zu features; need 1 to %d", n_features, FEATURES_MAX);
		goto out;
	}
	rc = queue_model_load(r, n_features, &h->queue, err);
	h->share = since ? read_f64(r) : 1.0;
	h->middle = since ? read_f64(r) : 0.0;
	if (!rc && !(h->share >= 0.0 && h->share <= 1.0 && isfinite(h->middle)))
		rc = err_fail(err, ERR_FORMAT, "share %g of the prior and middle %g: need 0 to 1, and finite",
			      h->share, h->middle);
	parts = since ? read_u8(r) : 0;
	h->shows = parts >> 1;
	if (!rc && h->shows >> N_WORK)
		rc = err_fail(err, ERR_FORMAT, "a hybrid of the parts %u; need 0 to 7", parts);
	if (!rc && parts & 1)
		rc = effects_load(r, n_features, &h->effects, err);
	if (!rc)
		rc = ranges_load(r, n_features, &h->ranges, err);
	if (!rc)
		rc = ensemble_model_load(r, n_features, &forest, err);
	h->forest = forest;
out:
	if (rc)
		hybrid_destroy(h);
	else
		*out_self = h;
	return rc;
}

const struct predictor_ops hybrid_ops = {
	.name = "hybrid",
	.title = "calibrated queueing model times a forest",
	.spec = hybrid_spec,
	.log_errors = true,
	.fit = hybrid_fit,
	.predict = hybrid_predict,
	.spread = hybrid_spread,
	.why_none = hybrid_why_none,
	.shares = hybrid_shares,
	.machine = hybrid_machine,
	.compile = hybrid_compile,
	.oob = hybrid_oob,
	.importances = hybrid_importances,
	.describe = hybrid_describe,
	.remark = hybrid_remark,
	.save = hybrid_save,
	.load = hybrid_load,
	.destroy = hybrid_destroy,
};
