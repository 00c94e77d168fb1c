/* What a campaign says once it has measured: which factors matter, and what to measure next. See
 * campaign.h. */
#define _GNU_SOURCE /* qsort_r() */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text/text.h"
#include "predictors/anova/anova.h"
#include "predictors/data/features.h"
#include "predictors/model.h"
#include "scheduler/core/decide.h"
#include "scheduler/profiler/campaign.h"

#define SUGGEST_CONFIDENCE 0.9
#define TREES 64 /* their disagreement is the uncertainty */

/* ---- the table ---- */

struct data { /* the table under a schema made from the design; only rows with status ok are in it */
	struct schema *schema;
	struct csv *csv;
	struct table *table;
};

/* Every factor is a column. batch is the decision; a design without a batch has njobs, which is a number.
 * Names of factors are words, so they need no quoting. */
static void put_schema(const struct profile_design *d, struct strbuf *out)
{
	const struct profile_factor *batch = profile_factor_find(d, "batch");
	const char *comma = "";

	strbuf_puts(out, "{\"columns\":[");
	for (size_t i = 0; i < d->n_factors + d->n_fixed; i++) {
		const struct profile_factor *f = profile_factor_at(d, i);

		if (f->free)
			continue;
		strbuf_printf(out, "%s{\"name\":\"%s\",\"kind\":\"%s\"}", comma, f->name,
			      f->number ? "number" : "category");
		comma = ",";
	}
	strbuf_printf(out,
		      "],\"decision\":\"%s\",\"targets\":{\"time\":\"time_s\",\"accuracy\":\"accuracy\"},"
		      "\"exclude\":{\"status\":[\"%s\",\"%s\",\"%s\"]}}",
		      batch && batch->number ? "batch" : "njobs", profile_status_name(PROFILE_FAILED),
		      profile_status_name(PROFILE_TIMEOUT), profile_status_name(PROFILE_UNSTABLE));
}

static int data_open(struct data *p, const struct profile_design *d, const struct strbuf *text,
		     struct err *err)
{
	struct strbuf schema = { 0 };
	struct json *v = NULL;
	int rc;

	*p = (struct data){ 0 };
	put_schema(d, &schema);
	rc = schema.failed || text->failed ? err_nomem(err, "the table")
					   : json_parse("schema", strbuf_text(&schema), schema.len, &v, err);
	if (!rc)
		rc = schema_from_json("schema", v, &p->schema, err);
	if (!rc)
		rc = csv_parse("table", strbuf_text(text), text->len, &p->csv, err);
	if (!rc)
		rc = table_read(p->csv, p->schema, true, &p->table, err);
	json_free(v);
	strbuf_release(&schema);
	return rc;
}

static void data_release(struct data *p)
{
	table_free(p->table);
	csv_free(p->csv);
	schema_free(p->schema);
	*p = (struct data){ 0 };
}

/* Main effects, each value a level. For the time they are effects on its logarithm: factors multiply it, and
 * long runs would hide the others. */
static int analyse(const struct data *p, const char *target, struct anova **out, struct err *err)
{
	struct anova_params a = { .table = p->table,
				  .target = target,
				  .coding = ANOVA_LEVELS,
				  .order = 1,
				  .log = !strcmp(target, "time") };

	return anova_run(&a, out, err);
}

/* ---- what to measure next ---- */

/* The values of a setting. Factors that the schema does not know are left out. */
static int job_of(const struct profile_design *d, size_t setting, const struct schema *schema,
		  struct job_values *out, struct err *err)
{
	const char *name[2 * PROFILE_MAX_FACTORS], *text[2 * PROFILE_MAX_FACTORS];
	uint16_t level[PROFILE_MAX_FACTORS];
	size_t n = d->n_factors + d->n_fixed;
	int rc = job_values_init(out, schema, err);

	if (rc)
		return rc;
	profile_grid_at(d, setting, level);
	for (size_t i = 0; i < n; i++) {
		name[i] = profile_factor_at(d, i)->name;
		text[i] = profile_factor_at(d, i)->level[i < d->n_factors ? level[i] : 0];
	}
	rc = job_values_bind(out, schema, name, text, n, err);
	if (rc)
		job_values_release(out);
	return rc;
}

/* What a run of this very setting takes off the width of its bound. */
static double narrowed(const struct model *m, const double *x, double width)
{
	const struct spread *s = m->time.spread;

	return s ? width * fmax(1.0 - spread_scale(s, KNOWS_SETTING) / spread_at(s, x), 0.0) : width;
}

/* The work of others is no factor, and the next run meets what it meets: as much as the table did. */
static void give_other_load(const struct model *m, struct job_values *job)
{
	const struct feature *f = m->features->other >= 0 ? &m->features->feature[m->features->other] : NULL;

	if (f && isnan(job->number[f->source]))
		job->number[f->source] = 0.5 * (f->min + f->max);
}

static int ask_model(const struct profile_design *d, const struct model *m, struct profile_suggestion *one,
		     size_t n, struct err *err)
{
	int at = schema_find(m->schema, m->schema->decision);
	struct decision *out = mem_calloc(1, sizeof *out);
	double *x = mem_array(m->features->n ? m->features->n : 1, sizeof *x);
	int rc = out && x ? 0 : err_nomem(err, "a decision");

	for (size_t i = 0; i < n && !rc; i++) {
		struct job_values job;
		struct decide_params q = { .model = m,
					   .job = &job,
					   .n_candidates = 1,
					   .slo_s = NAN,
					   .confidence = SUGGEST_CONFIDENCE };

		rc = job_of(d, one[i].setting, m->schema, &job, err);
		if (rc)
			break;
		give_other_load(m, &job);
		q.candidate = &job.number[at];
		if (isnan(*q.candidate))
			rc = err_fail(err, ERR_ARG, "the design has no %s, which the model decides on",
				      m->schema->decision);
		else
			rc = decide(&q, out, err);
		if (!rc) {
			const struct candidate *c = &out->candidate[0];

			one[i].time_s = c->time_s;
			one[i].uncertainty = (c->upper_s - c->time_s) / c->time_s;
			one[i].extrapolated = c->extrapolated;
			features_encode_job(m->features, &job, x);
			one[i].family = spread_new_family(m->time.spread, x);
			one[i].value = c->upper_s > c->time_s ? narrowed(m, x, log(c->upper_s / c->time_s))
							      : INFINITY;
		}
		job_values_release(&job);
	}
	free(out);
	free(x);
	return rc;
}

int profile_outlook(const struct profile_campaign *k, const struct model *m, struct profile_outlook *out,
		    struct err *err)
{
	struct profile_suggestion one = { 0 };
	int rc;

	*out = (struct profile_outlook){ .point = profile_plain_case(&k->design) };
	one.setting = out->point.setting;
	rc = ask_model(&k->design, m, &one, 1, err);
	if (rc)
		return rc;
	out->time_s = one.time_s;
	out->upper_s = one.time_s * (1.0 + one.uncertainty);
	out->narrow_s = isfinite(one.value) ? out->upper_s * exp(-one.value) : NAN;
	return 0;
}

static int good_rows(const struct data *p, const struct features *f, struct dataset **out, struct err *err)
{
	const struct table *t = p->table;
	struct dataset all = { .n_rows = t->n_rows, .n_features = f->n };
	uint32_t *row = mem_array(t->n_rows, sizeof *row);
	size_t n = 0;
	int rc = features_encode_table(f, t, &all.x, err);

	all.y = mem_array(t->n_rows, sizeof *all.y);
	if (!rc && (!row || !all.y))
		rc = err_nomem(err, "%zu rows", t->n_rows);
	for (size_t i = 0; i < t->n_rows && !rc; i++) {
		all.y[i] = log(t->time[i]);
		if (isfinite(all.y[i]))
			row[n++] = (uint32_t)i;
	}
	if (!rc && n == 0)
		rc = err_fail(err, ERR_NODATA, "no row to learn from");
	if (!rc)
		rc = dataset_subset(&all, row, n, out, err);
	free(all.x);
	free(all.y);
	free(row);
	return rc;
}

static int encode_grid(const struct profile_design *d, const struct data *p, const struct features *f,
		       const struct profile_suggestion *one, size_t n, double **out, struct err *err)
{
	double *x = mem_array(n * (f->n ? f->n : 1), sizeof *x);
	int rc = x ? 0 : err_nomem(err, "a grid of %zu settings", n);

	for (size_t i = 0; i < n && !rc; i++) {
		struct job_values job;

		rc = job_of(d, one[i].setting, p->schema, &job, err);
		if (rc)
			break;
		features_encode_job(f, &job, x + i * f->n);
		job_values_release(&job);
	}
	if (rc)
		free(x);
	else
		*out = x;
	return rc;
}

/* Welford's sums over the trees: time_s holds the mean and uncertainty the variance until the end. */
static int ask_trees(const struct dataset *data, const double *x, uint64_t seed,
		     struct profile_suggestion *one, size_t n, struct err *err)
{
	const struct predictor_ops *ops = predictor_find("forest");
	double *predicted = mem_array(n, sizeof *predicted);
	struct settings settings;
	int rc = predicted && ops ? 0 : err_nomem(err, "%zu predictions", n);

	if (!rc) {
		settings_init(&settings, ops->spec);
		rc = settings_parse(&settings, "trees=1", err);
	}
	for (size_t t = 0; t < TREES && !rc; t++) {
		struct fit_context ctx = { .seed = seed + t };
		struct predictor tree = { 0 };

		rc = predictor_fit(ops, &settings, data, &ctx, &tree, err);
		if (rc)
			break;
		predictor_predict(&tree, x, n, predicted);
		for (size_t i = 0; i < n; i++) {
			double step = predicted[i] - one[i].time_s;

			one[i].time_s += step / (double)(t + 1);
			one[i].uncertainty += step * (predicted[i] - one[i].time_s);
		}
		predictor_release(&tree);
	}
	for (size_t i = 0; i < n && !rc; i++) {
		one[i].time_s = exp(one[i].time_s);
		one[i].uncertainty = sqrt(one[i].uncertainty / (TREES - 1));
	}
	free(predicted);
	return rc;
}

static int ask_forest(const struct profile_design *d, const struct data *p, struct profile_suggestion *one,
		      size_t n, struct err *err)
{
	struct features *f = NULL;
	struct dataset *data = NULL;
	double *x = NULL;
	int rc = features_fit(p->table, &f, err);

	if (!rc)
		rc = good_rows(p, f, &data, err);
	if (!rc)
		rc = encode_grid(d, p, f, one, n, &x, err);
	if (!rc)
		rc = ask_trees(data, x, d->seed, one, n, err);
	free(x);
	dataset_free(data);
	features_free(f);
	return rc;
}

/* What a run is worth: for each second that it takes, or without a model what is uncertain about it. A
 * setting without a bound is the least certain. */
static double need(const struct profile_suggestion *x, bool by_model)
{
	if (by_model)
		return x->time_s > 0.0 ? x->value / x->time_s : INFINITY;
	return isnan(x->uncertainty) ? INFINITY : x->uncertainty;
}

static int by_need(const void *a, const void *b, void *by_model)
{
	const struct profile_suggestion *x = a, *y = b;
	double p = need(x, by_model), q = need(y, by_model);

	if (x->extrapolated != y->extrapolated)
		return x->extrapolated ? -1 : 1;
	if (p != q)
		return p > q ? -1 : 1;
	if (x->replications != y->replications)
		return x->replications < y->replications ? -1 : 1;
	return (x->setting > y->setting) - (x->setting < y->setting);
}

static int by_family(const void *a, const void *b)
{
	const struct profile_suggestion *x = a, *y = b;

	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	/* the run that is worth most by itself comes first: the shortest, as a rule */
	return (need(x, true) < need(y, true)) - (need(x, true) > need(y, true));
}

/* The runs of a new family tell of all its settings, each next one less. */
static void value_families(const struct model *m, struct profile_suggestion *one, size_t n)
{
	double shared = spread_shared(m->time.spread);

	qsort(one, n, sizeof *one, by_family);
	for (size_t from = 0, to; from < n; from = to) {
		double widths = 0.0;

		for (to = from; to < n && one[to].family == one[from].family; to++)
			widths += one[to].uncertainty > 0.0 ? log1p(one[to].uncertainty) : 0.0;
		for (size_t i = from; one[from].family && i < to; i++) {
			one[i].tells = to - from - 1;
			one[i].value += widths * (spread_level(shared, (double)(i - from), 0.0).narrow -
						  spread_level(shared, (double)(i - from) + 1.0, 0.0).narrow);
		}
	}
}

static int suggest(const struct profile_campaign *k, const struct data *p, const struct model *m, size_t n,
		   struct profile_summary *out, struct err *err)
{
	size_t size = profile_grid_size(&k->design);
	struct profile_suggestion *one;
	int rc;

	if (size > PROFILE_MAX_RUNS)
		return err_fail(err, ERR_ARG, "--suggest: the full grid has %zu settings; the limit is %d",
				size, PROFILE_MAX_RUNS);
	one = mem_calloc(size, sizeof *one);
	if (!one)
		return err_nomem(err, "a grid of %zu settings", size);
	for (size_t i = 0; i < size; i++)
		one[i].setting = i;
	for (size_t i = 0; i < k->plan.n; i++)
		if (!k->plan.run[i].mixed)
			one[k->plan.run[i].setting].replications += k->journal.run[i].done &&
								    k->verdict.status[i] == PROFILE_OK;
	rc = m ? ask_model(&k->design, m, one, size, err) : ask_forest(&k->design, p, one, size, err);
	if (rc) {
		free(one);
		return rc;
	}
	if (m)
		value_families(m, one, size);
	qsort_r(one, size, sizeof *one, by_need, (void *)m);
	out->suggestion = one;
	out->n_suggestions = n < size ? n : size;
	return 0;
}

/* Of the good runs; the journal of an older version does not have it. */
static void summarize_other_load(const struct profile_campaign *k, struct profile_summary *s)
{
	size_t n = 0;

	s->other_mean = s->other_min = s->other_max = NAN;
	for (size_t i = 0; i < k->plan.n; i++) {
		double v = k->journal.run[i].done && k->verdict.status[i] == PROFILE_OK
				   ? k->journal.run[i].other_load
				   : NAN;

		if (isnan(v))
			continue;
		s->other_mean = n++ ? s->other_mean + (v - s->other_mean) / (double)n : v;
		s->other_min = fmin(s->other_min, v);
		s->other_max = fmax(s->other_max, v);
	}
}

int profile_summary_make(const struct profile_campaign *k, const struct model *m, size_t n_suggest,
			 struct profile_summary *out, struct err *err)
{
	const struct profile_verdict *v = &k->verdict;
	struct profile_summary s = { .median_cv = NAN, .max_cv = NAN, .by_model = m != NULL };
	struct strbuf text = { 0 };
	struct data data = { 0 };
	int rc = 0;

	summarize_other_load(k, &s);
	for (size_t i = 0; i < v->n_cv; i++)
		s.max_cv = fmax(s.max_cv, v->cv[i]);
	if (v->n_cv)
		s.median_cv = stats_median(v->cv, v->n_cv);
	if (v->n_ok && k->design.n_factors) {
		profile_put_table(&k->journal, v, &text);
		rc = data_open(&data, &k->design, &text, err);
		if (!rc) { /* a table that is too small is not a failure: the summary says why */
			analyse(&data, "time", &s.time, &s.no_time);
			analyse(&data, "accuracy", &s.accuracy, &s.no_accuracy);
		}
	}
	if (!rc && n_suggest && (m || (data.table && data.table->n_rows > 1)))
		rc = suggest(k, &data, m, n_suggest, &s, err);
	data_release(&data);
	strbuf_release(&text);
	if (rc)
		profile_summary_release(&s);
	else
		*out = s;
	return rc;
}

void profile_summary_release(struct profile_summary *s)
{
	anova_free(s->time);
	anova_free(s->accuracy);
	free(s->suggestion);
	*s = (struct profile_summary){ 0 };
}
