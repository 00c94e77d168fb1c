/* `postrider train`: reads a table of runs, writes a model file, and prints which models were tried.
 * predictors/search/train.c does the work; this file has the options, the grids and the output. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pool.h"
#include "common/text/text.h"
#include "predictors/data/curves.h"
#include "scheduler/cli/cli.h"
#include "scheduler/core/recipe.h"

#define GRID_FILE_MAX ((size_t)1 << 20)
#define GROUP_MAX 32
#define BAR_WIDTH 24

struct options {
	const char *schema, *grid, *model, *policy, *set, *group, *split, *curves;
	struct cli_list exclude;
	uint64_t seed, search_rows;
	bool plain_bounds, dry_run;
};

/* ---- options into parameters ---- */

static const struct predictor_ops *model_by_name(const char *name, struct err *err)
{
	const struct predictor_ops *ops = predictor_find(name);
	const char *known[64] = { NULL };
	const char *near;

	if (ops)
		return ops;
	for (size_t i = 0; i < 63 && predictor_all[i]; i++)
		known[i] = predictor_all[i]->name;
	near = text_nearest(name, known);
	if (near)
		err_fail(err, ERR_ARG, "--model %s: there is no such model; did you mean '%s'? There are: %s",
			 name, near, predictor_names());
	else
		err_fail(err, ERR_ARG, "--model %s: there is no such model; there are: %s", name,
			 predictor_names());
	return NULL;
}

/* A file with "time" or "accuracy" at the top has a grid for each; otherwise one grid is used for both. */
static int grids_read(const char *path, struct grid **out_time, struct grid **out_accuracy, struct err *err)
{
	static const char *const parts[] = { "time", "accuracy", NULL };
	const struct json *time, *accuracy;
	struct json *root;
	int rc = json_read_file(path, GRID_FILE_MAX, &root, err);

	if (rc)
		return rc;
	time = accuracy = root;
	if (json_get(root, "time") || json_get(root, "accuracy")) {
		rc = json_known_keys(root, path, parts, err);
		if (rc)
			goto out;
		time = json_get(root, "time");
		accuracy = json_get(root, "accuracy");
	}
	if (time)
		rc = grid_from_json(path, time, out_time, err);
	if (!rc && accuracy)
		rc = grid_from_json(path, accuracy, out_accuracy, err);
out:
	json_free(root);
	return rc;
}

struct plan { /* what to try; the points are used if there is no search */
	struct grid *time, *accuracy; /* owned */
	struct grid one_time, one_accuracy;
	struct grid_point time_point, accuracy_point;
};

static int plan_fixed(struct plan *p, const struct options *o, struct err *err)
{
	p->time_point.ops = model_by_name(o->model, err);
	if (!p->time_point.ops)
		return -ERR_ARG;
	settings_init(&p->time_point.settings, p->time_point.ops->spec);
	if (o->set && settings_parse(&p->time_point.settings, o->set, err))
		return err_prefix(err, "--set");
	p->one_time = (struct grid){ &p->time_point, 1 };
	p->one_accuracy = (struct grid){ &p->accuracy_point, 1 };
	return recipe_accuracy(o->curves != NULL, &p->accuracy_point, err);
}

static int plan_make(struct plan *p, const struct options *o, struct err *err)
{
	int rc = 0;

	if (o->model)
		return plan_fixed(p, o, err);
	if (o->grid)
		rc = grids_read(o->grid, &p->time, &p->accuracy, err);
	if (!rc && !p->time)
		rc = recipe_search_time(NULL, 0.0, &p->time, err);
	if (!rc && !p->accuracy)
		rc = recipe_search_accuracy(&p->accuracy, err);
	return rc;
}

static void plan_release(struct plan *p)
{
	grid_free(p->time);
	grid_free(p->accuracy);
}

static int split_column(const char *text, const char *column, const struct table *t, size_t *out,
			struct err *err)
{
	struct features *f;
	const char **name;
	const char *near;
	size_t n = 0;
	int at = schema_find(t->schema, column);
	int rc = features_fit(t, &f, err);

	if (rc)
		return rc;
	name = mem_calloc(f->n + 1, sizeof *name);
	if (!name) {
		features_free(f);
		return err_nomem(err, NULL);
	}
	if (at >= 0)
		column = t->schema->column[at].name; /* an alias stands for its column */
	rc = -ERR_ARG;
	for (size_t i = 0; i < f->n && rc; i++) {
		if (feature_is_category(&f->feature[i]))
			continue;
		name[n++] = f->feature[i].name;
		if (!strcmp(f->feature[i].name, column)) {
			*out = i;
			rc = 0;
		}
	}
	if (rc) {
		near = text_nearest(column, name);
		rc = err_fail(err, ERR_ARG, "--split %s: the table has no column of numbers '%s'%s%s%s", text,
			      column, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	free(name);
	features_free(f);
	return rc;
}

static int split_parse(const char *text, const struct table *t, struct split_params *out, struct err *err)
{
	char buf[256], *part[4] = { NULL }, *rest = buf;
	size_t n = 0;
	uint64_t folds;

	if (strlen(text) >= sizeof buf)
		return err_fail(err, ERR_ARG, "--split: longer than any way to split");
	strcpy(buf, text);
	while (rest && n < 4)
		part[n++] = strsep(&rest, ":");
	if (rest)
		return err_fail(err, ERR_ARG, "--split %s: too many parts", text);
	if (!strcmp(part[0], "kfold") && n <= 2) {
		out->kind = SPLIT_KFOLD;
		out->folds = 5;
		if (n == 2) {
			if (!text_uint64(part[1], &folds) || folds < 2 || folds > 100000)
				return err_fail(err, ERR_ARG, "--split %s: '%s' folds; need 2 or more", text,
						part[1]);
			out->folds = (size_t)folds;
		}
		return 0;
	}
	if (!strcmp(part[0], "holdout") && n <= 3) {
		out->kind = SPLIT_HOLDOUT;
		out->folds = 20;
		out->share = 0.2;
		if (n > 1) {
			if (!text_uint64(part[1], &folds) || folds < 1 || folds > 100000)
				return err_fail(err, ERR_ARG, "--split %s: '%s' repetitions; need 1 or more",
						text, part[1]);
			out->folds = (size_t)folds;
		}
		if (n > 2 && (!text_number(part[2], &out->share) || !(out->share > 0.0 && out->share < 1.0)))
			return err_fail(err, ERR_ARG, "--split %s: the share '%s' is not between 0 and 1",
					text, part[2]);
		return 0;
	}
	if (!strcmp(part[0], "leave-group") && n == 1) {
		out->kind = SPLIT_LEAVE_GROUP;
		return 0;
	}
	if (!strcmp(part[0], "interpolate") && n == 2) {
		out->kind = SPLIT_INTERPOLATE;
		return split_column(text, part[1], t, &out->feature, err);
	}
	if (!strcmp(part[0], "extrapolate") && (n == 2 || n == 3)) {
		out->kind = SPLIT_EXTRAPOLATE;
		out->bound = NAN;
		if (n == 3 && !text_number(part[2], &out->bound))
			return err_fail(err, ERR_ARG, "--split %s: the bound '%s' is not a number", text,
					part[2]);
		return split_column(text, part[1], t, &out->feature, err);
	}
	return err_fail(err, ERR_ARG,
			"--split %s: write kfold:5, holdout:20:0.2, leave-group, interpolate:COLUMN or "
			"extrapolate:COLUMN[:BOUND]",
			text);
}

/* "network,cpus" into names inside `buf`. */
static int groups_parse(const char *text, char *buf, size_t size, const char **out, size_t *out_n,
			struct err *err)
{
	char *rest = buf, *one;

	if (strlen(text) >= size)
		return err_fail(err, ERR_ARG, "--group: the list is too long");
	strcpy(buf, text);
	*out_n = 0;
	while ((one = strsep(&rest, ","))) {
		if (!*one)
			return err_fail(err, ERR_ARG, "--group %s: an empty name; write COLUMN,COLUMN", text);
		if (*out_n == GROUP_MAX)
			return err_fail(err, ERR_ARG, "--group %s: more than %d columns", text, GROUP_MAX);
		out[(*out_n)++] = one;
	}
	return 0;
}

/* Now, or SOURCE_DATE_EPOCH, so that a build can be repeated to the byte. */
static int created_text(char *out, size_t size, struct err *err)
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	time_t now = time(NULL);
	struct tm tm;
	uint64_t s;

	if (epoch && *epoch) {
		if (!text_uint64(epoch, &s) || s > 253402300799ULL) /* the year 9999 ends there */
			return err_fail(err, ERR_ARG,
					"SOURCE_DATE_EPOCH is '%s'; it must be seconds since 1970", epoch);
		now = (time_t)s;
	}
	gmtime_r(&now, &tm);
	strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return 0;
}

/* ---- what people read ---- */

struct ranked {
	const struct search_result *result;
	size_t index; /* in the grid */
};

/* The lowest mean MSE comes first, failures last; equals stay in the order of the grid. */
static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	double p = x->result->failed ? INFINITY : x->result->score.mean.mse;
	double q = y->result->failed ? INFINITY : y->result->score.mean.mse;

	if (p != q)
		return p < q ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static bool family_seen(const struct grid *g, const struct ranked *rank, size_t n, size_t index)
{
	for (size_t i = 0; i < n; i++) {
		if (g->point[rank[i].index].ops == g->point[index].ops)
			return true;
	}
	return false;
}

static void add_score(struct cli_table *t, double mean, double sd, size_t n_folds, double scale)
{
	char text[CLI_SPREAD_SIZE];

	if (n_folds > 1 && !isnan(mean))
		cli_table_add(t, "%s", cli_spread(scale * mean, scale * sd, text));
	else
		cli_table_add(t, "%s", cli_number(scale * mean, text));
}

static void print_tried(struct strbuf *out, const struct cli *c, const struct grid *g,
			const struct search_result *r, size_t best)
{
	struct ranked *rank = mem_array(g->n, sizeof *rank);
	struct cli_table t;
	char settings[256];

	if (!rank) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		rank[i] = (struct ranked){ &r[i], i };
	qsort(rank, g->n, sizeof *rank, by_rank);
	cli_table_head(&t, "lllrrrrl", " ", "model", "settings", "MSE", "R2", "MAPE %", "MAE", "remark");
	for (size_t k = 0; k < g->n; k++) {
		size_t i = rank[k].index;
		const struct score_summary *s = &r[i].score;
		const struct score *mean = cli_score(s);

		if (!c->verbose && i != best && family_seen(g, rank, k, i))
			continue;
		cli_table_add(&t, "%s", i == best ? "*" : " ");
		cli_table_add(&t, "%s", g->point[i].ops->name);
		settings_describe(&g->point[i].settings, settings, sizeof settings);
		cli_table_add(&t, "%s", settings[0] ? settings : "(defaults)");
		if (r[i].failed) {
			for (int dash = 0; dash < 4; dash++)
				cli_table_add(&t, "-");
			cli_table_add(&t, "%s", r[i].why);
			continue;
		}
		add_score(&t, mean->mse, s->sd.mse, s->n_folds, 1.0);
		add_score(&t, mean->r2, s->sd.r2, s->n_folds, 1.0);
		add_score(&t, mean->mape, s->sd.mape, s->n_folds, 100.0);
		add_score(&t, mean->mae, s->sd.mae, s->n_folds, 1.0);
		cli_table_add(&t, "%s", "");
		if (i == best)
			cli_table_mark(&t);
	}
	cli_table_print(&t, out, cli_colour_stdout(c));
	cli_table_release(&t);
	free(rank);
}

static void print_importances(struct strbuf *out, const struct cli *c, const struct model *m,
			      const struct model_target *target)
{
	size_t n = m->schema->n_columns + m->schema->n_derived;
	double *impurity = mem_array(n, sizeof *impurity), *permutation = mem_array(n, sizeof *permutation);
	double most_impurity = 0.0, most_permutation = 0.0;
	struct strbuf bar = { 0 };
	struct cli_table t;
	char a[32];

	if (!impurity || !permutation)
		out->failed = true;
	if (out->failed || (!target->importance && !target->permutation))
		goto out;
	for (size_t i = 0; i < n; i++)
		impurity[i] = permutation[i] = NAN;
	if (target->importance)
		cli_importances(m, target->importance, impurity);
	if (target->permutation)
		cli_importances(m, target->permutation, permutation);
	for (size_t i = 0; i < n; i++) {
		most_impurity = fmax(most_impurity, impurity[i]);
		most_permutation = fmax(most_permutation, permutation[i]);
	}
	cli_table_head(&t, "lrlrl", "column", target->importance ? "importance" : "", " ",
		       target->permutation ? "MSE if shuffled" : "", " ");
	for (size_t i = 0; i < n; i++) {
		if (isnan(impurity[i]) && isnan(permutation[i]))
			continue;
		cli_table_add(&t, "%s", schema_source_name(m->schema, i));
		cli_table_add(&t, "%s", target->importance ? cli_percent(impurity[i], a) : "");
		strbuf_reset(&bar);
		cli_bar(&bar, most_impurity > 0.0 ? impurity[i] / most_impurity : 0.0, BAR_WIDTH);
		cli_table_add(&t, "%s", strbuf_text(&bar));
		if (target->permutation)
			cli_table_add(&t, "%s%s", permutation[i] > 0.0 ? "+" : "",
				      cli_number(permutation[i], a));
		else
			cli_table_add(&t, "%s", "");
		strbuf_reset(&bar);
		cli_bar(&bar, most_permutation > 0.0 ? permutation[i] / most_permutation : 0.0, BAR_WIDTH);
		cli_table_add(&t, "%s", strbuf_text(&bar));
	}
	strbuf_puts(out, "\n");
	cli_table_print(&t, out, cli_colour_stdout(c));
	cli_table_release(&t);
out:
	strbuf_release(&bar);
	free(impurity);
	free(permutation);
}

static void print_target(struct strbuf *out, const struct cli *c, const struct model *m,
			 const struct model_target *target, const char *column, const struct grid *g,
			 const struct search_result *r, size_t best)
{
	strbuf_printf(out, "%s: %zu row%s, %zu model%s tried, %s%s\n\n", cli_clean(column), target->n_rows,
		      target->n_rows == 1 ? "" : "s", g->n, g->n == 1 ? "" : "s",
		      target->scored_by[0] ? "scored by " : "no scores", cli_clean(target->scored_by));
	print_tried(out, c, g, r, best);
	print_importances(out, c, m, target);
	strbuf_puts(out, "\n");
}

static void print_people(struct strbuf *out, const struct cli *c, const struct options *o,
			 const struct model *m, const struct train_report *r)
{
	print_target(out, c, m, &m->time, m->schema->time, r->time_grid, r->time_result, r->time_best);
	if (m->accuracy.predictor.ops)
		print_target(out, c, m, &m->accuracy, m->schema->accuracy, r->accuracy_grid,
			     r->accuracy_result, r->accuracy_best);
	if (m->time.conformal.n)
		strbuf_printf(out,
			      "Bounds are based on %zu test errors (%s); 90 %% needs at least %zu, 99 %% "
			      "needs %zu.\n",
			      m->time.conformal.n, cli_clean(m->time.residuals_by), conformal_needed(0.9),
			      conformal_needed(0.99));
	if (o->dry_run)
		strbuf_puts(out, "Dry run: no model was written.\n");
	else
		strbuf_printf(out, "Model written to %s (%s%s%s, seed %llu).\n", cli_clean(c->output),
			      m->time.predictor.ops->name, m->accuracy.predictor.ops ? " and " : "",
			      m->accuracy.predictor.ops ? m->accuracy.predictor.ops->name : "",
			      (unsigned long long)m->seed);
}

/* ---- what programs read ---- */

static void json_importances(struct json_writer *w, const char *key, const struct model *m,
			     const double *importance)
{
	size_t n = m->schema->n_columns + m->schema->n_derived;
	double *sum = importance ? mem_array(n, sizeof *sum) : NULL;

	json_kv_open(w, key, '{');
	if (sum) {
		cli_importances(m, importance, sum);
		for (size_t i = 0; i < n; i++) {
			if (!isnan(sum[i]))
				json_kv_number(w, schema_source_name(m->schema, i), sum[i]);
		}
	} else if (importance) {
		w->out->failed = true;
	}
	json_close(w, '}');
	free(sum);
}

/* Members "chosen", "models", "importances", ... of the object that is open. */
static void json_tried(struct json_writer *w, const struct model *m, const struct model_target *t,
		       const struct grid *g, const struct search_result *r)
{
	cli_json_target(w, "chosen", t);
	json_kv_open(w, "models", '[');
	for (size_t i = 0; i < g->n; i++) {
		json_open(w, '{');
		json_kv_string(w, "name", g->point[i].ops->name);
		json_put_key(w, "settings");
		settings_to_json(&g->point[i].settings, w);
		if (r[i].failed) {
			json_put_key(w, "scores");
			json_put_null(w);
			json_kv_string(w, "failed", r[i].why);
		} else {
			cli_json_summary(w, &r[i].score);
		}
		json_close(w, '}');
	}
	json_close(w, ']');
	json_importances(w, "importances", m, t->importance);
	json_importances(w, "permutation_importances", m, t->permutation);
	json_kv_int(w, "rows", (long long)t->n_rows);
	json_kv_string(w, "scored_by", t->scored_by);
	json_kv_int(w, "residuals", (long long)t->conformal.n);
}

static void print_json(struct strbuf *out, const struct cli *c, const struct options *o,
		       const struct model *m, const struct train_report *r)
{
	struct json_writer w;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_tried(&w, m, &m->time, r->time_grid, r->time_result);
	json_put_key(&w, "accuracy");
	if (m->accuracy.predictor.ops) {
		json_open(&w, '{');
		json_tried(&w, m, &m->accuracy, r->accuracy_grid, r->accuracy_result);
		json_close(&w, '}');
	} else {
		json_put_null(&w);
	}
	json_kv_int(&w, "seed", (long long)m->seed);
	json_kv_string(&w, "created", m->created);
	json_kv_string(&w, "model", o->dry_run ? NULL : c->output);
	json_kv_bool(&w, "leaks", r->leaks);
	json_kv_open(&w, "notices", '[');
	for (size_t i = 0; i < r->n_notices; i++)
		json_put_string(&w, r->notice[i]);
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

static void say_notices(const struct cli *c, const struct model *m, const struct train_report *r)
{
	for (size_t i = 0; i < r->n_notices; i++)
		cli_notice(c, "%s", r->notice[i]);
	if (r->leaks)
		cli_notice(c,
			   "training and test rows have equal settings, so the scores are too good; --group "
			   "COLUMNS keeps replications together");
	if (!m->accuracy.predictor.ops)
		cli_notice(c,
			   "no accuracy to learn from: this model predicts time alone, so the fastest batch "
			   "size will be chosen");
}

/* ---- the verb ---- */

/* --policy means the model it needs, and a schema without the load if the policy ignores the load. */
static int policy_means(struct options *o, struct schema **out_schema, struct err *err)
{
	struct policy_choice by;
	struct schema *given;
	int rc = policy_parse(o->policy, &by, err);

	if (rc)
		return err_prefix(err, "--policy");
	if (!by.policy->predictor)
		return err_fail(err, ERR_ARG, "--policy %s: this policy needs no model; use any",
				by.policy->name);
	o->model = by.policy->predictor;
	if (!by.policy->without_load)
		return 0;
	rc = o->schema ? schema_read_file(o->schema, &given, err) : schema_default(&given, err);
	if (rc)
		return rc;
	rc = policy_schema(by.policy, given, out_schema, err);
	schema_free(given);
	return rc;
}

/* ---- --curves ---- */

struct joined { /* the runs, each with its state after fewer epochs */
	struct csv *csv; /* of the curves */
	struct curves *curves;
	struct table *table;
};

static void say_joined(const struct cli *c, const struct options *o, const struct curves *j)
{
	cli_notice(c, "%zu runs and their curves make %zu rows; rows of one run stay together", j->n_runs,
		   j->csv->n_rows);
	if (j->n_without || j->n_unfinished)
		cli_notice(c,
			   "%zu runs have no curve in %s and %zu have one that ends before their last epoch; "
			   "these "
			   "runs are used without a curve",
			   j->n_without, cli_clean(o->curves), j->n_unfinished);
	if (j->n_strangers)
		cli_notice(c, "%zu rows of %s belong to no run in %s", j->n_strangers, cli_clean(o->curves),
			   cli_clean(c->arg[0]));
}

static int join_open(struct joined *j, const struct cli *c, const struct options *o,
		     const struct cli_input *in, struct err *err)
{
	int rc = csv_read_file(o->curves, &j->csv, err);

	if (!rc)
		rc = curves_join(in->csv, j->csv, in->schema, &j->curves, err);
	if (!rc)
		rc = table_read(j->curves->csv, in->schema, true, &j->table, err);
	if (!rc)
		say_joined(c, o, j->curves);
	return rc;
}

static void joined_release(struct joined *j)
{
	table_free(j->table);
	curves_free(j->curves);
	csv_free(j->csv);
}

/* run: as in train.h. */
static int train(const struct cli *c, const struct options *o, const struct table *t, const uint32_t *run,
		 struct model **out_model, struct train_report *report, struct err *err)
{
	struct cli_progress progress = { .off = c->quiet };
	struct train_params p = recipe_params(o->seed);
	struct plan plan = { 0 };
	const char *group[GROUP_MAX];
	char group_text[1024], created[32];
	double from_s = clock_monotonic_s();
	int rc;

	rc = plan_make(&plan, o, err);
	if (!rc && o->group)
		rc = groups_parse(o->group, group_text, sizeof group_text, group, &p.n_groups, err);
	if (!rc && o->split)
		rc = split_parse(o->split, t, &p.split, err);
	if (!rc)
		rc = created_text(created, sizeof created, err);
	if (!rc)
		rc = pool_new((size_t)c->threads, &p.ctx.pool, err);
	if (rc)
		goto out;
	p.table = t;
	p.run = run;
	p.plain_bounds = o->plain_bounds;
	p.search_rows = (size_t)o->search_rows;
	p.on_progress = cli_on_progress;
	p.owner = &progress;
	p.data_name = c->arg[0];
	p.program = "postrider " POSTRIDER_VERSION;
	p.grid = plan.time ? plan.time : &plan.one_time;
	p.accuracy_grid = plan.accuracy ? plan.accuracy : &plan.one_accuracy;
	p.group = group;
	p.created = created;
	rc = train_model(&p, out_model, report, err);
	cli_progress_end(&progress);
	if (!rc && c->verbose)
		cli_notice(c, "%zu models of time and %zu of accuracy in %.2f s on %zu threads", p.grid->n,
			   report->accuracy_grid ? report->accuracy_grid->n : 0, clock_monotonic_s() - from_s,
			   pool_threads(p.ctx.pool));
out:
	pool_free(p.ctx.pool);
	plan_release(&plan);
	return rc;
}

/* The model is written first, so that "written to" is true when it is printed. */
static int deliver(const struct cli *c, const struct options *o, const struct model *m,
		   const struct train_report *r, struct err *err)
{
	struct writer file = { 0 };
	struct strbuf text = { 0 };
	int rc = 0;

	if (!o->dry_run) {
		rc = model_encode(m, &file, err);
		if (!rc)
			rc = cli_write(c->output, &file.out, err);
	}
	if (!rc) {
		say_notices(c, m, r);
		if (c->json)
			print_json(&text, c, o, m, r);
		else if (!c->quiet)
			print_people(&text, c, o, m, r);
		if (text.len || text.failed)
			rc = cli_write(NULL, &text, err);
	}
	strbuf_release(&file.out);
	strbuf_release(&text);
	return rc;
}

int verb_train(int argc, char **argv)
{
	struct options o = { .seed = 1, .search_rows = 5000 };
	const struct cli_option option[] = {
		{ 0, "schema", CLI_TEXT, "FILE", "a schema file: what the columns mean (default: built in)",
		  &o.schema },
		{ 0, "model", CLI_TEXT, "NAME", "use this model of time instead of searching", &o.model },
		{ 0, "policy", CLI_TEXT, "NAME", "train the model that this policy needs", &o.policy },
		{ 0, "set", CLI_TEXT, "K=V,...", "settings of the model, with --model or --policy", &o.set },
		{ 0, "grid", CLI_TEXT, "FILE", "a JSON file with the models and settings to try", &o.grid },
		{ 0, "search-rows", CLI_COUNT, "N", "search on at most N rows (default: 5000; 0: all)",
		  &o.search_rows },
		{ 0, "group", CLI_TEXT, "COLS", "keep rows together that are equal in these columns",
		  &o.group },
		{ 0, "split", CLI_TEXT, "HOW",
		  "how test rows are chosen: kfold:5 (default),\nholdout:20:0.2, leave-group, "
		  "interpolate:COLUMN,\n"
		  "extrapolate:COLUMN[:BOUND]",
		  &o.split },
		{ 0, "curves", CLI_TEXT, "FILE",
		  "accuracy and time per epoch, as `profile` writes them:\nlearns from every epoch of a run",
		  &o.curves },
		{ 0, "exclude", CLI_LIST, "COL=VALUE", "leave these rows out; may be repeated", &o.exclude },
		{ 0, "seed", CLI_COUNT, "N", "seed of the random numbers (default: 1)", &o.seed },
		{ 0, "plain-bounds", CLI_FLAG, NULL, "upper bounds of the same width for short and long jobs",
		  &o.plain_bounds },
		{ 'n', "dry-run", CLI_FLAG, NULL, "train and report, but write no model", &o.dry_run },
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "train",
		.synopsis = "DATA.csv -o MODEL [options]",
		.what = "Learns response time and accuracy from a table of runs. Without --model or --policy "
			"it\n"
			"tries many models, tests each on rows that it has not seen, and keeps the one with "
			"the\n"
			"lowest mean squared error. With -q it prints only what --json asks for.",
		.option = option,
		.json = true,
		.threads = true,
		.output = "write the model here",
		.min_args = 1,
		.max_args = 1,
		.examples = "  postrider train runs.csv -o runs.model\n"
			    "  postrider train runs.csv -o runs.model --curves curves.csv\n"
			    "  postrider train runs.csv -o f.model --model forest --set trees=500,depth=9\n"
			    "  postrider train runs.csv -o paper.model --policy courier\n"
			    "  postrider train runs.csv -n --split extrapolate:njobs --json\n",
	};
	struct cli_input in = { 0 };
	struct joined joined = { 0 };
	struct train_report report = { 0 };
	struct schema *schema = NULL;
	struct model *m = NULL;
	struct err err = { 0 };
	struct cli c;
	int code, rc;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!c.output && !o.dry_run)
		return cli_usage_error(&c, "no output file: add -o MODEL, or -n to write none");
	if (o.set && !o.model && !o.policy)
		return cli_usage_error(&c, "--set needs --model or --policy");
	if (o.grid && o.model)
		return cli_usage_error(&c, "give either --grid or --model");
	if (o.policy && (o.model || o.grid))
		return cli_usage_error(&c, "--policy determines the model; leave out --%s",
				       o.model ? "model" : "grid");
	if (c.output && !strcmp(c.output, "-") && !o.dry_run && (c.json || !c.quiet))
		return cli_usage_error(
			&c, "-o - sends the model to standard output; add -q and leave out --json");
	rc = o.dry_run ? 0 : cli_check_output(c.output, &err);
	if (!rc && o.policy)
		rc = policy_means(&o, &schema, &err);
	if (!rc)
		rc = cli_input_open(&in, &c,
				    &(struct cli_input_params){ .path = c.arg[0],
								.schema_path = o.schema,
								.schema = schema,
								.exclude = &o.exclude,
								.need_targets = true },
				    &err);
	if (!rc && o.curves)
		rc = join_open(&joined, &c, &o, &in, &err);
	if (!rc)
		rc = train(&c, &o, o.curves ? joined.table : in.table, o.curves ? joined.curves->run : NULL,
			   &m, &report, &err);
	if (!rc)
		rc = deliver(&c, &o, m, &report, &err);
	code = rc ? cli_fail(&err) : 0;
	train_report_release(&report);
	model_free(m);
	joined_release(&joined);
	cli_input_release(&in);
	schema_free(schema);
	return code;
}
