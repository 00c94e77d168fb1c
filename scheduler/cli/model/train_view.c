/* The output of `postrider train`: which models were tried, how good they are and which columns matter, for
 * people and for programs. See views.h. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "predictors/search/doubt.h"
#include "scheduler/cli/model/views.h"

#define BAR_WIDTH 24

/* ---- what people read ---- */

#define SHOWN_AT_MOST 12

struct ranked {
	double error; /* that models are chosen by */
	size_t index; /* in the grid */
};

/* The lowest error comes first, failures last; equals stay in the order of the grid. */
static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->error != y->error)
		return x->error < y->error ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Of several kinds of models the best of each is shown, of one kind all that were tried. */
static bool of_one_kind(const struct grid *g)
{
	for (size_t i = 1; i < g->n; i++)
		if (g->point[i].ops != g->point[0].ops)
			return false;
	return g->n <= SHOWN_AT_MOST;
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
			const struct search_result *r, size_t best, enum search_by by)
{
	struct ranked *rank = mem_array(g->n, sizeof *rank);
	struct cli_table t;
	char settings[256];

	if (!rank) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		rank[i] = (struct ranked){ r[i].failed ? INFINITY : search_measure(&r[i], by), i };
	qsort(rank, g->n, sizeof *rank, by_rank);
	/* the error that a search by logarithms goes by, as a share: what is best must look best */
	if (by == SEARCH_BY_LOG)
		cli_table_head(&t, "lllrrrrrl", " ", "model", "settings", "log error %", "MSE", "R2",
			       "MAPE %", "MAE", "remark");
	else
		cli_table_head(&t, "lllrrrrl", " ", "model", "settings", "MSE", "R2", "MAPE %", "MAE",
			       "remark");
	for (size_t k = 0; k < g->n; k++) {
		size_t i = rank[k].index;
		const struct score_summary *s = &r[i].score;
		const struct score *mean = cli_score(s);

		if (!c->verbose && !of_one_kind(g) && i != best && family_seen(g, rank, k, i))
			continue;
		cli_table_add(&t, "%s", i == best ? "*" : " ");
		cli_table_add(&t, "%s", g->point[i].ops->name);
		settings_describe(&g->point[i].settings, settings, sizeof settings);
		cli_table_add(&t, "%s", settings[0] ? settings : "(defaults)");
		if (r[i].failed && !(i == best && isfinite(mean->mse))) {
			for (int dash = 0; dash < 4 + (by == SEARCH_BY_LOG); dash++)
				cli_table_add(&t, "-");
			cli_table_add(&t, "%s", r[i].why);
			continue;
		}
		if (by == SEARCH_BY_LOG)
			cli_table_add(&t, "%s", cli_number(100.0 * expm1(sqrt(s->mean.log_mse)), settings));
		add_score(&t, mean->mse, s->sd.mse, s->n_folds, 1.0);
		add_score(&t, mean->r2, s->sd.r2, s->n_folds, 1.0);
		add_score(&t, mean->mape, s->sd.mape, s->n_folds, 100.0);
		add_score(&t, mean->mae, s->sd.mae, s->n_folds, 1.0);
		/* asked for by name and unstable somewhere: the scores count only the rows with an answer */
		cli_table_add(&t, "%s", r[i].failed ? r[i].why : "");
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
			 const struct train_report *r, bool is_time)
{
	const struct model_target *target = is_time ? &m->time : &m->accuracy;
	const char *column = is_time ? m->schema->time : m->schema->accuracy;
	const struct grid *g = is_time ? r->time_grid : r->accuracy_grid;

	strbuf_printf(out, "%s: %zu row%s, %zu model%s tried, %s%s\n\n", cli_clean(column), target->n_rows,
		      target->n_rows == 1 ? "" : "s", g->n, g->n == 1 ? "" : "s",
		      target->scored_by[0] ? "scored by " : "no scores", cli_clean(target->scored_by));
	print_tried(out, c, g, is_time ? r->time_result : r->accuracy_result,
		    is_time ? r->time_best : r->accuracy_best, is_time ? r->time_by : r->accuracy_by);
	print_importances(out, c, m, target);
	strbuf_puts(out, "\n");
}

void train_view_text(struct strbuf *out, const struct cli *c, bool dry_run, const struct model *m,
		     const struct train_report *r, const struct learning *l)
{
	print_target(out, c, m, r, true);
	if (m->accuracy.predictor.ops)
		print_target(out, c, m, r, false);
	if (m->time.conformal.n)
		strbuf_printf(out,
			      "Bounds are based on %zu test errors, %zu of them independent (%s); 90 %% "
			      "needs at least %zu, 99 %% needs %zu.\n",
			      m->time.conformal.n, m->time.conformal.groups, cli_clean(m->time.residuals_by),
			      conformal_least(0.9), conformal_least(0.99));
	if (l)
		learning_view_text(out, c, l);
	if (dry_run)
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

void train_view_json(struct strbuf *out, const struct cli *c, bool dry_run, const struct model *m,
		     const struct train_report *r, const struct learning *l)
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
	json_kv_string(&w, "model", dry_run ? NULL : c->output);
	json_kv_bool(&w, "leaks", r->leaks);
	if (l)
		learning_view_json(&w, l);
	json_kv_string(&w, "selected_by", search_by_name[r->time_by]);
	json_kv_open(&w, "doubted", '[');
	for (size_t i = 0; i < r->n_doubted; i++) {
		json_open(&w, '{');
		json_kv_int(&w, "line", (long long)r->doubted[i].line);
		json_kv_string(&w, "why", r->doubted[i].why == DOUBT_REPEATED ? "repeated" : "far");
		json_close(&w, '}');
	}
	json_close(&w, ']');
	json_kv_open(&w, "notices", '[');
	for (size_t i = 0; i < r->n_notices; i++)
		json_put_string(&w, r->notice[i]);
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}
