/* The error of a model against the number of runs. See train.h. */
#include "predictors/search/train.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "predictors/data/groups.h"
#include "predictors/search/doubt.h"
#include "predictors/search/train_internal.h"

#define LEAST_RUNS 20
#define LEAST_SETTINGS 5
#define FIRST_SIZE 12
#define TEST_SHARE 0.2
#define STEP 1.41421356237309515 /* two sizes to a doubling */
#define STILL 0.03 /* a doubling that takes off less than this part of the error is the end of it */

struct work {
	const struct train_params *p;
	const struct grid_point *model;
	struct feature_meaning meaning;
	struct features *features;
	double *x;
	struct calibrate_seen *seen; /* NULL: nothing was measured */
	uint32_t *run, *group; /* per row; group: of its setting, or by --group */
	uint8_t *doubt;
	struct dataset d;
	size_t n_runs, n_groups;
	size_t size[LEARNING_MAX_SIZES], n_sizes;
	double *mape; /* [repeat * n_sizes + size]; NaN: not fitted */
	struct err *error; /* per repeat */
};

/* Labels that every row has: its own number where there are none. */
static int own_labels(uint32_t **label, size_t n, struct err *err)
{
	if (*label)
		return 0;
	*label = mem_array(n, sizeof **label);
	if (!*label)
		return err_nomem(err, "%zu rows", n);
	for (size_t i = 0; i < n; i++)
		(*label)[i] = (uint32_t)i;
	return 0;
}

static int work_open(struct work *w, struct err *err)
{
	const struct table *t = w->p->table;
	size_t n_doubted, n = t->n_rows;
	int rc = features_fit(t, &w->features, err);

	if (!rc)
		rc = features_meaning(w->features, &w->meaning, err);
	if (!rc)
		rc = features_encode_table(w->features, t, &w->x, err);
	if (!rc)
		rc = table_seen(t, &w->seen, err);
	if (rc)
		return rc;
	w->d = (struct dataset){ .n_rows = n,
				 .n_features = w->features->n,
				 .x = w->x,
				 .y = t->time,
				 .seen = w->seen,
				 .name = w->meaning.name,
				 .factor = w->meaning.factor,
				 .role = w->meaning.role,
				 .column = w->meaning.column };
	w->doubt = mem_calloc(n + 1, 1);
	rc = w->doubt ? groups_runs(t, &w->run, &w->n_runs, err) : err_nomem(err, "%zu rows", n);
	if (!rc)
		rc = w->p->n_groups ? train_label_groups(w->p, &w->group, err)
				    : train_label_settings(&w->d, &w->group, err);
	if (!rc)
		rc = own_labels(&w->run, n, err);
	if (!rc)
		rc = own_labels(&w->group, n, err);
	if (!rc && !w->p->believe_all)
		rc = doubt_find(&w->d, &w->p->ctx, w->doubt, &n_doubted, err);
	for (size_t i = 0; !rc && i < n; i++)
		w->n_groups = w->group[i] >= w->n_groups ? w->group[i] + 1 : w->n_groups;
	return rc;
}

static void work_close(struct work *w)
{
	feature_meaning_release(&w->meaning);
	features_free(w->features);
	free(w->x);
	free(w->run);
	free(w->group);
	free(w->seen);
	free(w->doubt);
	free(w->mape);
	free(w->error);
}

static int order_of(uint64_t seed, size_t repeat, uint64_t what, size_t n, uint32_t **out, struct err *err)
{
	struct rng rng = rng_stream(seed ^ what, repeat);
	uint32_t *order = mem_array(n, sizeof *order);

	if (!order)
		return err_nomem(err, "%zu runs", n);
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	rng_shuffle(&rng, order, n);
	*out = order;
	return 0;
}

/* Fits to the rows of the first `size` runs that may be learnt from, and scores the rows held out. */
static int score_size(const struct work *w, const uint32_t *place, const uint8_t *held, size_t size,
		      const struct dataset *test, uint32_t *row, double *out, struct err *err)
{
	struct fit_context ctx = w->p->ctx;
	struct predictor m = { 0 };
	struct dataset *train = NULL;
	double *said = mem_array(test->n_rows, sizeof *said);
	size_t n = 0;
	int rc;

	ctx.want_oob = false;
	ctx.no_importances = true;
	ctx.pool = NULL; /* the repetitions run beside each other */
	for (size_t i = 0; i < w->d.n_rows; i++)
		if (!held[w->group[i]] && !w->doubt[i] && place[w->run[i]] < size)
			row[n++] = (uint32_t)i;
	rc = said ? dataset_subset(&w->d, row, n, &train, err) : err_nomem(err, "%zu rows", n);
	if (!rc)
		rc = predictor_fit(w->model->ops, &w->model->settings, train, &ctx, &m, err);
	if (!rc) {
		predictor_predict(&m, test->x, test->n_rows, said);
		*out = score_of(test->y, said, test->n_rows).mape;
	}
	if (rc == -ERR_NODATA || rc == -ERR_NUMERIC) { /* too few runs for this model: no point there */
		*err = (struct err){ 0 };
		rc = 0;
	}
	predictor_release(&m);
	dataset_free(train);
	free(said);
	return rc;
}

/* place: the number of each run among those that may be learnt from; SIZE as a run held out. */
static void place_runs(const struct work *w, const uint32_t *order, const uint8_t *held, uint32_t *place)
{
	uint32_t next = 0;

	for (size_t r = 0; r < w->n_runs; r++)
		place[r] = UINT32_MAX;
	for (size_t i = 0; i < w->d.n_rows; i++) /* a run is in one setting, so its first row tells */
		if (!held[w->group[i]])
			place[w->run[i]] = 0;
	for (size_t k = 0; k < w->n_runs; k++)
		if (place[order[k]] == 0)
			place[order[k]] = next++;
}

static void repeat(void *owner, size_t k, size_t worker)
{
	struct work *w = owner;
	struct err *err = &w->error[k];
	uint32_t *groups = NULL, *runs = NULL, *place = mem_array(w->n_runs, sizeof *place);
	uint32_t *row = mem_array(w->d.n_rows, sizeof *row);
	uint8_t *held = mem_calloc(w->n_groups, 1);
	struct dataset *test = NULL;
	size_t n = 0, n_held = (size_t)fmax(1.0, round(TEST_SHARE * (double)w->n_groups));
	int rc = place && row && held ? order_of(w->p->ctx.seed, k, 0x1ea51, w->n_groups, &groups, err)
				      : err_nomem(err, "%zu runs", w->n_runs);

	(void)worker;
	if (!rc)
		rc = order_of(w->p->ctx.seed, k, 0x1ea52, w->n_runs, &runs, err);
	for (size_t g = 0; !rc && g < n_held; g++)
		held[groups[g]] = 1;
	for (size_t i = 0; !rc && i < w->d.n_rows; i++)
		if (held[w->group[i]] && !w->doubt[i])
			row[n++] = (uint32_t)i;
	if (!rc && n)
		rc = dataset_subset(&w->d, row, n, &test, err);
	if (!rc && n)
		place_runs(w, runs, held, place);
	for (size_t s = 0; !rc && n && s < w->n_sizes; s++)
		rc = score_size(w, place, held, w->size[s], test, row, &w->mape[k * w->n_sizes + s], err);
	dataset_free(test);
	free(groups);
	free(runs);
	free(place);
	free(row);
	free(held);
}

static void choose_sizes(struct work *w)
{
	double most = floor((1.0 - TEST_SHARE) * (double)w->n_runs);
	double steps = floor(log(most / FIRST_SIZE) / log(STEP));

	steps = fmin(fmax(steps, 0.0), LEARNING_MAX_SIZES - 1);
	for (double k = steps; k >= 0.0; k--) /* the largest is the table, so that its error is there */
		w->size[w->n_sizes++] = (size_t)round(most / pow(STEP, k));
}

static void summarise(const struct work *w, struct learning *out)
{
	*out = (struct learning){ .runs = w->n_runs, .last_gain = NAN, .next = NAN };
	for (size_t s = 0; s < w->n_sizes; s++) {
		struct learning_point p = { .runs = w->size[s] };
		double squares = 0.0;

		for (size_t k = 0; k < LEARNING_REPEATS; k++) {
			double v = w->mape[k * w->n_sizes + s], before = p.mape;

			if (!isfinite(v))
				continue;
			p.mape += (v - p.mape) / (double)++p.n;
			squares += (v - before) * (v - p.mape);
		}
		if (p.n < 2)
			continue;
		p.half = gsl_cdf_tdist_Pinv(0.975, (double)p.n - 1.0) *
			 sqrt(squares / (double)(p.n - 1) / (double)p.n);
		out->point[out->n++] = p;
	}
	if (out->n >= 3) {
		const struct learning_point *p = &out->point[out->n - 1];

		out->last_gain = p[-2].mape - p->mape;
	}
	if (out->n >= 5 && out->last_gain > 0.0) {
		const struct learning_point *p = &out->point[out->n - 1];
		double before = p[-4].mape - p[-2].mape,
		       shrink = before > 0.0 ? out->last_gain / before : 1.0;

		out->next = fmax(p->mape - out->last_gain * fmin(shrink, 1.0), 0.0);
	}
}

int learning_run(const struct train_params *p, const struct grid_point *model, struct learning *out,
		 struct err *err)
{
	struct work w = { .p = p, .model = model };
	int rc = work_open(&w, err);

	if (!rc && (w.n_runs < LEAST_RUNS || w.n_groups < LEAST_SETTINGS))
		rc = err_fail(err, ERR_NODATA,
			      "a learning curve needs %d runs of %d settings; %s has %zu runs of %zu",
			      LEAST_RUNS, LEAST_SETTINGS, p->data_name, w.n_runs, w.n_groups);
	if (!rc) {
		choose_sizes(&w);
		w.mape = mem_array(LEARNING_REPEATS * w.n_sizes, sizeof *w.mape);
		w.error = mem_calloc(LEARNING_REPEATS, sizeof *w.error);
		if (!w.mape || !w.error)
			rc = err_nomem(err, "a learning curve");
	}
	for (size_t i = 0; !rc && i < LEARNING_REPEATS * w.n_sizes; i++)
		w.mape[i] = NAN;
	if (!rc)
		pool_run(p->ctx.pool, LEARNING_REPEATS, repeat, &w);
	for (size_t k = 0; !rc && k < LEARNING_REPEATS; k++)
		if (w.error[k].code)
			rc = err_fail(err, w.error[k].code, "%s", w.error[k].text);
	if (!rc)
		summarise(&w, out);
	work_close(&w);
	return rc;
}

void learning_text(const struct learning *l, struct strbuf *out)
{
	const struct learning_point *p = l->n ? &l->point[l->n - 1] : NULL;

	if (!p) {
		strbuf_puts(out, "The model could not be fitted to a part of the runs: there is no curve.\n");
		return;
	}
	strbuf_printf(out, "With %zu of %zu runs the error on new settings is %.1f %%", p->runs, l->runs,
		      100.0 * p->mape);
	if (isnan(l->last_gain))
		strbuf_puts(out, ".\n");
	else if (l->last_gain <= STILL * p->mape || l->last_gain <= p->half)
		strbuf_printf(out,
			      "; %zu runs gave %.1f %%, so more runs of these settings will hardly help.\n",
			      p[-2].runs, 100.0 * p[-2].mape);
	else if (isnan(l->next))
		strbuf_printf(out, "; %zu runs gave %.1f %%, so more runs help.\n", p[-2].runs,
			      100.0 * p[-2].mape);
	else
		strbuf_printf(out,
			      "; %zu runs gave %.1f %%. Twice as many runs may bring it to about %.1f %%.\n",
			      p[-2].runs, 100.0 * p[-2].mape, 100.0 * l->next);
}
