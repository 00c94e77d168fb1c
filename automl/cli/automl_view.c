/* The results of a campaign as a table for people. */
#include <math.h>
#include <stdlib.h>

#include "automl/cli/verb.h"

static void put_share(struct cli_table *t, double mean, double sd)
{
	if (isnan(mean))
		cli_table_add(t, "-");
	else if (sd > 0.0)
		cli_table_add(t, "%.3g +- %.2g %%", 100.0 * mean, 100.0 * sd);
	else
		cli_table_add(t, "%.3g %%", 100.0 * mean);
}

/* Mean and spread of a measure over all runs and validation folds of a technique. */
static void over_folds(const struct automl *a, size_t technique, double (*of)(const struct automl_score *),
		       enum automl_set set, double *mean, double *sd)
{
	size_t n = a->c->runs * a->n_validation;
	double sum = 0.0, squares = 0.0;

	for (size_t f = 0; f < n; f++)
		sum += of(&a->outcome[STAGE_VALIDATION][f * a->c->n_plans + technique].score[set]) /
		       (double)n;
	for (size_t f = 0; f < n; f++) {
		double e = of(&a->outcome[STAGE_VALIDATION][f * a->c->n_plans + technique].score[set]) - sum;

		squares += e * e;
	}
	*mean = sum;
	*sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0.0;
}

static double mape_of(const struct automl_score *s)
{
	return s->mape;
}

static double rmse_of(const struct automl_score *s)
{
	return s->rmse;
}

static double r2_of(const struct automl_score *s)
{
	return s->r2;
}

static void put_row(struct cli_table *t, const struct automl *a, size_t technique)
{
	const struct plan *plan = &a->c->plan[technique];
	const struct outcome *model = &a->outcome[STAGE_MODEL][technique];
	struct strbuf settings = { 0 };
	double mean, sd;
	char number[32];

	cli_table_add(t, "%s", plan->technique->name);
	over_folds(a, technique, mape_of, SET_HP_SELECTION, &mean, &sd);
	put_share(t, mean, sd);
	over_folds(a, technique, mape_of, SET_VALIDATION, &mean, &sd);
	put_share(t, mean, sd);
	over_folds(a, technique, rmse_of, SET_VALIDATION, &mean, &sd);
	cli_table_add(t, "%s", cli_number(mean, number));
	over_folds(a, technique, r2_of, SET_VALIDATION, &mean, &sd);
	cli_table_add(t, "%s", cli_number(mean, number));
	if (a->final[technique].point == SIZE_MAX)
		cli_table_add(t, "failed: %.60s", model->why);
	else {
		plan_point_text(plan, a->final[technique].point, model->n_tuned ? model->tuned : NULL,
				&settings);
		cli_table_add(t, "%s", strbuf_text(&settings));
	}
	strbuf_release(&settings);
	if (technique == a->best)
		cli_table_mark(t);
}

/* The second table, for those who compare with aMLLibrary: the models that it saves are chosen so. */
static void view_by_validation(const struct automl *a, const struct cli *c, struct strbuf *out)
{
	struct cli_table t;

	strbuf_puts(out, "\nif chosen by validation, as aMLLibrary does for the models that it saves (these "
			 "figures have seen the validation rows):\n\n");
	cli_table_head(&t, "lrrrrl", "technique", "run", "hp_selection MAPE", "validation MAPE", "R2",
		       "settings");
	for (size_t k = 0; k < a->c->n_plans; k++) {
		size_t best = automl_best_by_validation(a, k);
		struct experiment e;
		const struct outcome *o = &a->outcome[STAGE_EXPERIMENT][best == SIZE_MAX ? 0 : best];
		struct strbuf settings = { 0 };
		char number[32];

		if (best == SIZE_MAX)
			continue;
		e = automl_experiment(a, best);
		plan_point_text(&a->c->plan[k], e.point, o->n_tuned ? o->tuned : NULL, &settings);
		cli_table_add(&t, "%s", a->c->plan[k].technique->name);
		cli_table_add(&t, "%zu", e.fold.run);
		put_share(&t, o->score[SET_HP_SELECTION].mape, 0.0);
		put_share(&t, o->score[SET_VALIDATION].mape, 0.0);
		cli_table_add(&t, "%s", cli_number(o->score[SET_VALIDATION].r2, number));
		cli_table_add(&t, "%s", strbuf_text(&settings));
		strbuf_release(&settings);
	}
	cli_table_print(&t, out, cli_colour(c));
	cli_table_release(&t);
}

void automl_view(const struct automl *a, const struct cli *c, struct strbuf *out)
{
	struct cli_table t;
	size_t failed = 0;

	strbuf_printf(out, "%s: %zu rows, %zu features; hp_selection %s, validation %s; %zu experiments\n\n",
		      cli_clean(a->p->csv->name), a->p->all.n, a->p->n_x, holdout_name[a->c->hp_selection],
		      holdout_name[a->c->validation], a->n[STAGE_EXPERIMENT]);
	cli_table_head(&t, "lrrrrl", "technique", "hp_selection MAPE", "validation MAPE", "RMSE", "R2",
		       "chosen settings");
	for (size_t k = 0; k < a->c->n_plans; k++)
		put_row(&t, a, k);
	cli_table_print(&t, out, cli_colour(c));
	cli_table_release(&t);
	strbuf_printf(out, "\nbest by hp_selection: %s\n", a->c->plan[a->best].technique->name);
	for (size_t i = 0; i < a->n[STAGE_EXPERIMENT]; i++)
		failed += a->outcome[STAGE_EXPERIMENT][i].failed;
	if (failed)
		strbuf_printf(out, "%zu experiments failed; log.txt says why\n", failed);
	if (c->verbose)
		view_by_validation(a, c, out);
}
