/* The results of a campaign as JSON (docs/AUTOML.md has its members), and its log. */
#include <math.h>

#include "automl/automl.h"

#define FAILURES_LISTED 100

static void put_score(struct json_writer *w, const char *key, const struct automl_score *s)
{
	json_kv_open(w, key, '{');
	json_kv_number(w, "mape", s->mape);
	json_kv_number(w, "rmse", s->rmse);
	json_kv_number(w, "r2", s->r2);
	json_close(w, '}');
}

/* The features that were selected: for this fit (SFS), or for all fits to the rows of the fold (XGBoost). */
static void put_features(const struct automl *a, const struct outcome *o, size_t technique, size_t fold,
			 struct json_writer *w)
{
	const struct feature_list *f = &o->features;

	if (a->c->selection == SELECT_XGBOOST && !a->c->plan[technique].technique->by_meaning)
		f = &a->outcome[STAGE_FEATURES][fold].features;
	if (!f->n)
		return;
	json_kv_open(w, "features", '[');
	for (size_t i = 0; i < f->n; i++)
		json_put_string(w, a->p->column[f->column[i]].name);
	json_close(w, ']');
}

static const double *tuned_of(const struct outcome *o)
{
	return o->n_tuned ? o->tuned : NULL;
}

/* A technique in a run: the settings of its first fold, and of all where they differ. */
static void put_technique(const struct automl *a, size_t run, size_t t, struct json_writer *w)
{
	const struct plan *plan = &a->c->plan[t];
	struct run_scores s = automl_run_scores(a, run, t);
	size_t first = automl_fold(a, run, 0) * a->c->n_plans + t;

	json_open(w, '{');
	json_kv_string(w, "name", plan->technique->name);
	json_put_key(w, "settings");
	if (a->chosen[first].point == SIZE_MAX)
		json_put_null(w);
	else
		plan_point_json(plan, a->chosen[first].point, tuned_of(&a->outcome[STAGE_VALIDATION][first]),
				w);
	put_features(a, &a->outcome[STAGE_VALIDATION][first], t, automl_fold(a, run, 0), w);
	for (size_t set = 0; set < N_SETS; set++)
		put_score(w, automl_set_name[set], &s.mean[set]);
	if (s.why)
		json_kv_string(w, "failed", s.why);
	if (a->n_validation > 1) {
		json_kv_open(w, "spread", '{');
		for (size_t set = 0; set < N_SETS; set++)
			put_score(w, automl_set_name[set], &s.sd[set]);
		json_close(w, '}');
		json_kv_open(w, "fold_settings", '[');
		for (size_t v = 0; v < a->n_validation; v++) {
			size_t at = automl_fold(a, run, v) * a->c->n_plans + t;

			if (a->chosen[at].point == SIZE_MAX)
				json_put_null(w);
			else
				plan_point_json(plan, a->chosen[at].point,
						tuned_of(&a->outcome[STAGE_VALIDATION][at]), w);
		}
		json_close(w, ']');
	}
	json_close(w, '}');
}

static void put_runs(const struct automl *a, struct json_writer *w)
{
	json_kv_open(w, "runs", '[');
	for (size_t r = 0; r < a->c->runs; r++) {
		size_t best = automl_best_of_run(a, r);

		json_open(w, '{');
		json_kv_open(w, "techniques", '[');
		for (size_t t = 0; t < a->c->n_plans; t++)
			put_technique(a, r, t, w);
		json_close(w, ']');
		json_kv_string(w, "best", best == SIZE_MAX ? NULL : a->c->plan[best].technique->name);
		json_close(w, '}');
	}
	json_close(w, ']');
}

/* Over all runs. */
static void put_summary(const struct automl *a, struct json_writer *w)
{
	json_kv_open(w, "techniques", '[');
	for (size_t t = 0; t < a->c->n_plans; t++) {
		const struct outcome *model = &a->outcome[STAGE_MODEL][t];
		struct automl_score sum = { 0 };
		double squares = 0.0, n = (double)a->c->runs;

		for (size_t r = 0; r < a->c->runs; r++) {
			struct automl_score s = automl_run_scores(a, r, t).mean[SET_VALIDATION];

			sum.mape += s.mape / n;
			sum.rmse += s.rmse / n;
			sum.r2 += s.r2 / n;
		}
		for (size_t r = 0; r < a->c->runs; r++) {
			double e = automl_run_scores(a, r, t).mean[SET_VALIDATION].mape - sum.mape;

			squares += e * e;
		}
		json_open(w, '{');
		json_kv_string(w, "name", a->c->plan[t].technique->name);
		json_put_key(w, "settings");
		if (a->final[t].point == SIZE_MAX)
			json_put_null(w);
		else
			plan_point_json(&a->c->plan[t], a->final[t].point, tuned_of(model), w);
		put_features(a, model, t, a->c->runs * a->n_validation, w);
		json_kv_number(w, "hp_selection_mape", a->final[t].hp_mape);
		put_score(w, "validation", &sum);
		json_kv_number(w, "validation_mape_spread", n > 1.0 ? sqrt(squares / (n - 1.0)) : 0.0);
		put_score(w, "all_rows", &model->score[SET_TRAINING]);
		if (model->failed)
			json_kv_string(w, "failed", model->why);
		json_close(w, '}');
	}
	json_close(w, ']');
	json_kv_string(w, "best", a->best == SIZE_MAX ? NULL : a->c->plan[a->best].technique->name);
}

size_t automl_best_by_validation(const struct automl *a, size_t technique)
{
	size_t best = SIZE_MAX;
	double least = INFINITY;

	for (size_t i = 0; i < a->n[STAGE_EXPERIMENT]; i++) {
		const struct outcome *o = &a->outcome[STAGE_EXPERIMENT][i];

		if (automl_experiment(a, i).technique == technique && !o->failed &&
		    o->score[SET_VALIDATION].mape < least) {
			least = o->score[SET_VALIDATION].mape;
			best = i;
		}
	}
	return best;
}

static void put_by_validation(const struct automl *a, struct json_writer *w)
{
	json_kv_open(w, "if_chosen_by_validation", '[');
	for (size_t t = 0; t < a->c->n_plans; t++) {
		size_t best = automl_best_by_validation(a, t);
		struct experiment e;

		if (best == SIZE_MAX)
			continue;
		e = automl_experiment(a, best);
		json_open(w, '{');
		json_kv_string(w, "name", a->c->plan[t].technique->name);
		json_kv_int(w, "run", (long long)e.fold.run);
		json_put_key(w, "settings");
		plan_point_json(&a->c->plan[t], e.point, tuned_of(&a->outcome[STAGE_EXPERIMENT][best]), w);
		put_score(w, "hp_selection", &a->outcome[STAGE_EXPERIMENT][best].score[SET_HP_SELECTION]);
		put_score(w, "validation", &a->outcome[STAGE_EXPERIMENT][best].score[SET_VALIDATION]);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static void put_failures(const struct automl *a, struct json_writer *w)
{
	size_t n = 0, listed = 0;
	struct experiment e;

	json_kv_open(w, "failures", '[');
	for (size_t i = 0; i < a->n[STAGE_EXPERIMENT]; i++) {
		const struct outcome *o = &a->outcome[STAGE_EXPERIMENT][i];

		if (!o->failed)
			continue;
		n++;
		if (listed++ >= FAILURES_LISTED)
			continue;
		e = automl_experiment(a, i);
		json_open(w, '{');
		json_kv_string(w, "technique", a->c->plan[e.technique].technique->name);
		json_kv_int(w, "run", (long long)e.fold.run);
		json_kv_int(w, "validation_fold", (long long)e.fold.validation);
		json_kv_int(w, "hp_fold", (long long)e.fold.hp);
		json_put_key(w, "settings");
		plan_point_json(&a->c->plan[e.technique], e.point, NULL, w);
		json_kv_string(w, "why", o->why);
		json_close(w, '}');
	}
	json_close(w, ']');
	json_kv_int(w, "experiments", (long long)a->n[STAGE_EXPERIMENT]);
	json_kv_int(w, "failed_experiments", (long long)n);
}

static void put_curve(const struct automl *a, struct json_writer *w)
{
	if (!a->n[STAGE_CURVE])
		return;
	json_kv_open(w, "learning_curve", '[');
	for (size_t t = 0; t < a->c->n_plans; t++) {
		json_open(w, '{');
		json_kv_string(w, "name", a->c->plan[t].technique->name);
		json_kv_open(w, "points", '[');
		for (size_t k = 0; k < CURVE_SIZES; k++) {
			double sum = 0.0;

			for (size_t r = 0; r < CURVE_REPEATS; r++)
				sum += a->outcome[STAGE_CURVE][(t * CURVE_SIZES + k) * CURVE_REPEATS + r]
					       .score[SET_VALIDATION]
					       .mape;
			json_open(w, '{');
			json_kv_int(w, "rows", (long long)a->curve_rows[k]);
			json_kv_number(w, "mape", sum / CURVE_REPEATS);
			json_close(w, '}');
		}
		json_close(w, ']');
		json_close(w, '}');
	}
	json_close(w, ']');
}

void automl_results_json(const struct automl *a, struct strbuf *out)
{
	struct json_writer w;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_kv_string(&w, "campaign", a->c->ini->file);
	json_kv_string(&w, "table", a->p->csv->name);
	json_kv_int(&w, "rows", (long long)a->p->all.n);
	json_kv_int(&w, "features", (long long)a->p->n_x);
	json_kv_int(&w, "seed", (long long)a->c->seed);
	json_kv_string(&w, "target", a->c->y);
	json_kv_string(&w, "hp_selection", holdout_name[a->c->hp_selection]);
	json_kv_string(&w, "validation", holdout_name[a->c->validation]);
	json_kv_string(&w, "rule", "chosen by hp_selection MAPE, validated once");
	put_runs(a, &w);
	put_summary(a, &w);
	put_by_validation(a, &w);
	put_failures(a, &w);
	put_curve(a, &w);
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

void automl_log(const struct automl *a, struct strbuf *out)
{
	struct experiment e;

	for (size_t i = 0; i < a->c->n_notices; i++)
		strbuf_printf(out, "note: %s\n", a->c->notice[i]);
	strbuf_puts(out, strbuf_text(&a->p->log));
	for (size_t i = 0; i < a->n[STAGE_EXPERIMENT]; i++) {
		const struct outcome *o = &a->outcome[STAGE_EXPERIMENT][i];

		if (!o->failed)
			continue;
		e = automl_experiment(a, i);
		strbuf_printf(out, "failed: %s ", a->c->plan[e.technique].technique->name);
		plan_point_text(&a->c->plan[e.technique], e.point, NULL, out);
		strbuf_printf(out, " (run %zu, validation fold %zu, hp fold %zu): %s\n", e.fold.run,
			      e.fold.validation, e.fold.hp, o->why);
	}
}
