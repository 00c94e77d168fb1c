/* The results of a campaign as one HTML page: errors of the techniques, predicted against real values, the
 * learning curve, chosen settings, and what the preparation did. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/draw/frame.h"
#include "common/draw/html.h"
#include "common/mem.h"
#include "automl/select.h"

#define FEW_POINTS 150 /* of a panel: more are drawn as small dots */
#define SHOWN 8 /* techniques of a chart: as many as there are colours */

/* A chart is drawn twice: for a desk or paper, and for a phone (common/draw/html.c shows one of them). */
struct size {
	const char *role;
	double width;
	bool narrow;
};
static const struct size sizes[] = { { "chart wide", 960.0, false }, { "chart narrow", 344.0, true } };

/* ---- errors ---- */

static double mean_mape(const struct automl *a, size_t t, enum automl_set set)
{
	size_t n = a->c->runs * a->n_validation;
	double sum = 0.0;

	for (size_t f = 0; f < n; f++)
		sum += a->outcome[STAGE_VALIDATION][f * a->c->n_plans + t].score[set].mape / (double)n;
	return sum;
}

static void draw_errors(const struct automl *a, const struct size *size, struct strbuf *out)
{
	static const enum automl_set set[] = { SET_HP_SELECTION, SET_VALIDATION };
	double from = size->narrow ? 118.0 : 190.0, top = size->narrow ? 60.0 : 40.0;
	double most = 0.0, height = top + 30.0 + 46.0 * (double)a->c->n_plans;
	double room = size->width - from - (size->narrow ? 60.0 : 110.0); /* for the longest bar */
	double second_x = size->narrow ? 0.0 : 260.0,
	       second_y = size->narrow ? 22.0 : 0.0; /* of the legend */
	char text[40];

	for (size_t t = 0; t < a->c->n_plans; t++)
		for (size_t s = 0; s < 2; s++)
			if (isfinite(mean_mape(a, t, set[s])))
				most = fmax(most, mean_mape(a, t, set[s]));
	most = most > 0.0 ? most : 1.0;
	svg_begin_inside(
		out, size->role, size->width, height, "MAPE of each technique",
		"Bars: mean absolute percentage error on the rows of hp_selection and of validation");
	svg_series_bar(out, 0, from, 8, 14, 14);
	svg_text(out, "label", from + 20, 20, SVG_START, 0, "hp_selection (chosen by this)");
	svg_series_bar(out, 1, from + second_x, 8 + second_y, 14, 14);
	svg_text(out, "label", from + second_x + 20, 20 + second_y, SVG_START, 0, "validation");
	for (size_t t = 0; t < a->c->n_plans; t++) {
		double y = top + 46.0 * (double)t;

		svg_text(out, t == a->best ? "head" : "label", from - 12, y + 22, SVG_END, 0,
			 a->c->plan[t].technique->name);
		for (size_t s = 0; s < 2; s++) {
			double mape = mean_mape(a, t, set[s]);
			double width = isfinite(mape) ? room * mape / most : 0.0;

			if (isfinite(mape))
				snprintf(text, sizeof text, "%.3g %%", 100.0 * mape);
			else
				snprintf(text, sizeof text, "failed");
			svg_series_bar(out, s, from, y + 18.0 * (double)s, width, 15);
			svg_text(out, "tick", from + width + 6, y + 18.0 * (double)s + 12, SVG_START, 0,
				 text);
		}
	}
	svg_end(out);
}

/* ---- predicted against real ---- */

struct cloud {
	size_t technique, n;
	struct svg_point *point; /* real, predicted */
};

/* The chosen point of a technique on the first validation fold of the first run, fitted again. */
static int predict_fold(const struct automl *a, size_t t, struct cloud *out, struct err *err)
{
	const struct outcome *o = &a->outcome[STAGE_VALIDATION][t];
	struct feature_list all = { .column = a->p->x, .n = a->p->n_x };
	struct feature_list *features =
		a->c->selection == SELECT_XGBOOST ? &a->outcome[STAGE_FEATURES][0].features : &all;
	struct fold_rows rows = { 0 };
	struct fitted f = { 0 };
	double *predicted = NULL;
	int rc = fold_rows_make(a->c, a->p, (struct fold){ 0 }, &rows, err);

	*out = (struct cloud){ .technique = t };
	if (!rc) {
		struct attempt try = { .c = a->c,
				       .p = a->p,
				       .plan = &a->c->plan[t],
				       .point = a->chosen[t].point,
				       .rows = &rows.both,
				       .features = features,
				       .seed = automl_seed(a, 0, AUTOML_VALIDATION_FOLD) };

		rc = attempt_fit(&try, o, &f, err);
	}
	if (!rc) {
		predicted = mem_array(rows.validation.n, sizeof *predicted);
		out->point = mem_array(rows.validation.n, sizeof *out->point);
		rc = predicted && out->point ? fitted_predict(&f, a->p, &rows.validation, predicted, err)
					     : err_nomem(err, "a figure");
	}
	for (size_t i = 0; i < rows.validation.n && !rc; i++)
		out->point[out->n++] = (struct svg_point){ a->p->y[rows.validation.row[i]], predicted[i] };
	free(predicted);
	fitted_release(&f);
	fold_rows_release(&rows);
	return rc;
}

static void draw_scatter(const struct automl *a, const struct cloud *c, struct svg_point *room,
			 struct svg_point corner, double size, struct strbuf *out)
{
	struct chart at = { .left = corner.x + 70,
			    .top = corner.y + 44,
			    .right = corner.x + size - 10,
			    .bottom = corner.y + size - 52 };
	double low = INFINITY, high = -INFINITY, end_low, end_high;

	for (size_t i = 0; i < c->n; i++) {
		low = fmin(low, fmin(c->point[i].x, c->point[i].y));
		high = fmax(high, fmax(c->point[i].x, c->point[i].y));
	}
	svg_axis_init(&at.x, low, high, false, 4);
	svg_axis_init(&at.y, low, high, false, 4);
	svg_text(out, "head", at.left, corner.y + 16, SVG_START, 0, a->c->plan[c->technique].technique->name);
	svg_text(out, "label", at.left, at.top - 10, SVG_START, 0, "predicted");
	chart_frame(out, &at, "real", NULL, true);
	end_low = fmax(at.x.low, at.y.low);
	end_high = fmin(at.x.high, at.y.high);
	svg_line(out, "mean", chart_x(&at, end_low), chart_y(&at, end_low), chart_x(&at, end_high),
		 chart_y(&at, end_high));
	for (size_t i = 0; i < c->n; i++)
		room[i] = chart_point(&at, c->point[i].x, c->point[i].y);
	for (size_t i = 0; i < c->n && c->n <= FEW_POINTS; i++)
		svg_marker(out, c->technique, room[i].x, room[i].y);
	if (c->n > FEW_POINTS)
		svg_dots(out, c->technique, room, c->n);
}

static void draw_clouds(const struct automl *a, const struct size *size, const struct cloud *cloud, size_t n,
			struct svg_point *room, struct strbuf *out)
{
	size_t columns = size->narrow ? 1 : 3, rows = (n + columns - 1) / columns;
	double panel = size->width / (double)columns;

	svg_begin_inside(out, size->role, size->width, panel * (double)rows + 10,
			 "Predicted against real values",
			 "One panel for each technique: rows of the first validation fold, and the line "
			 "where both are equal");
	for (size_t i = 0; i < n; i++)
		draw_scatter(
			a, &cloud[i], room,
			(struct svg_point){ panel * (double)(i % columns), panel * (double)(i / columns) },
			panel, out);
	svg_end(out);
}

static int draw_predicted(const struct automl *a, struct strbuf *out, struct err *err)
{
	struct cloud cloud[SHOWN + 1] = { 0 };
	size_t n = 0, most = 0, n_plans = a->c->n_plans < SHOWN + 1 ? a->c->n_plans : SHOWN + 1;
	struct svg_point *room = NULL;
	int rc = 0;

	for (size_t t = 0; t < n_plans && !rc; t++) {
		if (a->outcome[STAGE_VALIDATION][t].failed)
			continue;
		rc = predict_fold(a, t, &cloud[n], err);
		most = cloud[n].n > most ? cloud[n].n : most;
		n++;
	}
	if (!rc && !(room = mem_array(most + 1, sizeof *room)))
		rc = err_nomem(err, "a figure");
	for (size_t k = 0; k < 2 && !rc; k++)
		draw_clouds(a, &sizes[k], cloud, n, room, out);
	for (size_t i = 0; i < n; i++)
		free(cloud[i].point);
	free(room);
	return rc;
}

/* ---- learning curve ---- */

static double curve_at(const struct automl *a, size_t t, size_t k)
{
	double sum = 0.0;

	for (size_t r = 0; r < CURVE_REPEATS; r++)
		sum += a->outcome[STAGE_CURVE][(t * CURVE_SIZES + k) * CURVE_REPEATS + r]
			       .score[SET_VALIDATION]
			       .mape;
	return sum / CURVE_REPEATS;
}

static void draw_curve(const struct automl *a, const struct size *size, struct strbuf *out)
{
	struct chart at = { .left = size->narrow ? 56 : 80,
			    .top = 40,
			    .right = size->width - (size->narrow ? 12 : 190),
			    .bottom = size->narrow ? 300 : 380,
			    .percent_y = true };
	/* of the legend: beside the lines, or below them */
	double legend_x = size->narrow ? at.left + 8 : at.right + 24;
	double legend_y = size->narrow ? at.bottom + 64 : at.top;
	double height = size->narrow ? legend_y + 24.0 * (double)a->c->n_plans : 430.0;
	double low = INFINITY, high = 0.0;

	for (size_t t = 0; t < a->c->n_plans; t++)
		for (size_t k = 0; k < CURVE_SIZES; k++) {
			double mape = curve_at(a, t, k);

			if (isfinite(mape) && mape > 0.0) {
				low = fmin(low, mape);
				high = fmax(high, fmin(mape, 10.0));
			}
		}
	svg_begin_inside(
		out, size->role, size->width, fmax(height, legend_y + 24.0 * (double)a->c->n_plans),
		"Learning curve",
		"MAPE on held-out rows against the number of rows to learn from, for each technique");
	svg_axis_init(&at.x, (double)a->curve_rows[0], (double)a->curve_rows[CURVE_SIZES - 1], true,
		      size->narrow ? 4 : 6);
	svg_axis_init(&at.y, isfinite(low) ? low : 0.01, high > 0.0 ? high : 1.0, true, 6);
	chart_frame(out, &at, "rows to learn from", "MAPE on rows held back", true);
	for (size_t t = 0; t < a->c->n_plans; t++) {
		struct svg_point point[CURVE_SIZES];
		size_t n = 0;
		double y = legend_y + 24.0 * (double)t;

		for (size_t k = 0; k < CURVE_SIZES; k++) {
			double mape = curve_at(a, t, k);

			if (isfinite(mape) && mape > 0.0)
				point[n++] = chart_point(&at, (double)a->curve_rows[k], fmin(mape, 10.0));
		}
		svg_series_line(out, t, point, n);
		for (size_t k = 0; k < n; k++)
			svg_mark(out, t, t + t / SVG_SERIES, point[k].x, point[k].y);
		svg_mark(out, t, t + t / SVG_SERIES, legend_x, y);
		svg_text(out, "label", legend_x + 12, y + 4, SVG_START, 0, a->c->plan[t].technique->name);
	}
	svg_end(out);
}

/* ---- tables ---- */

/* On a phone a row becomes a list, in which each cell says its column. The last column is of words. */
static void table_begin(struct strbuf *out, const char *label, const char *const *head)
{
	html_scroll_begin(out, label);
	strbuf_puts(out, "<table class=\"cards\"><thead><tr>");
	for (; *head; head++)
		html_element(out, head[1] ? "th scope=\"col\"" : "th scope=\"col\" style=\"text-align:left\"",
			     *head);
	strbuf_puts(out, "</tr></thead><tbody>\n");
}

static void table_end(struct strbuf *out)
{
	strbuf_puts(out, "</tbody></table>\n");
	html_scroll_end(out);
}

static void cell(struct strbuf *out, const char *column, const char *format, double v)
{
	char text[40] = "-", tag[80];

	if (isfinite(v))
		snprintf(text, sizeof text, format, v);
	snprintf(tag, sizeof tag, "td data-label=\"%s\"", column);
	html_element(out, tag, text);
}

static void words(struct strbuf *out, const char *column, const struct strbuf *text)
{
	char tag[120];

	snprintf(tag, sizeof tag, "td data-label=\"%s\" style=\"text-align:left;white-space:normal\"",
		 column);
	html_element(out, tag, strbuf_text(text));
}

static void put_scores(const struct automl *a, struct strbuf *out)
{
	static const char *const head[] = { "technique",
					    "run",
					    "hp_selection MAPE, %",
					    "validation MAPE, %",
					    "spread",
					    "RMSE",
					    "R2",
					    "chosen settings",
					    NULL };

	table_begin(out, "Scores", head);
	for (size_t t = 0; t < a->c->n_plans; t++)
		for (size_t r = 0; r < a->c->runs; r++) {
			struct run_scores s = automl_run_scores(a, r, t);
			size_t at = automl_fold(a, r, 0) * a->c->n_plans + t;
			const struct outcome *o = &a->outcome[STAGE_VALIDATION][at];
			struct strbuf settings = { 0 };

			strbuf_puts(out, "<tr>");
			html_element(out, "th scope=\"row\"", a->c->plan[t].technique->name);
			cell(out, head[1], "%.0f", (double)r);
			cell(out, head[2], "%.3g", 100.0 * s.mean[SET_HP_SELECTION].mape);
			cell(out, head[3], "%.3g", 100.0 * s.mean[SET_VALIDATION].mape);
			cell(out, head[4], "%.2g", s.n > 1 ? 100.0 * s.sd[SET_VALIDATION].mape : NAN);
			cell(out, head[5], "%.4g", s.mean[SET_VALIDATION].rmse);
			cell(out, head[6], "%.4f", s.mean[SET_VALIDATION].r2);
			if (a->chosen[at].point == SIZE_MAX)
				strbuf_printf(&settings, "failed: %s", o->why);
			else
				plan_point_text(&a->c->plan[t], a->chosen[at].point,
						o->n_tuned ? o->tuned : NULL, &settings);
			words(out, head[7], &settings);
			strbuf_puts(out, "</tr>\n");
			strbuf_release(&settings);
		}
	table_end(out);
}

static void put_by_validation(const struct automl *a, struct strbuf *out)
{
	static const char *const head[] = {
		"technique", "run", "hp_selection MAPE, %", "validation MAPE, %", "R2", "settings", NULL
	};

	strbuf_puts(out,
		    "<details><summary>If chosen by validation, as aMLLibrary does for the models that it "
		    "saves</summary>\n<p>The single experiment with the least error on the validation rows. "
		    "That figure has seen those rows.</p>\n");
	table_begin(out, "If chosen by validation", head);
	for (size_t t = 0; t < a->c->n_plans; t++) {
		size_t best = automl_best_by_validation(a, t);
		struct experiment e;
		const struct outcome *o = &a->outcome[STAGE_EXPERIMENT][best == SIZE_MAX ? 0 : best];
		struct strbuf settings = { 0 };

		if (best == SIZE_MAX)
			continue;
		e = automl_experiment(a, best);
		plan_point_text(&a->c->plan[t], e.point, o->n_tuned ? o->tuned : NULL, &settings);
		strbuf_puts(out, "<tr>");
		html_element(out, "th scope=\"row\"", a->c->plan[t].technique->name);
		cell(out, head[1], "%.0f", (double)e.fold.run);
		cell(out, head[2], "%.3g", 100.0 * o->score[SET_HP_SELECTION].mape);
		cell(out, head[3], "%.3g", 100.0 * o->score[SET_VALIDATION].mape);
		cell(out, head[4], "%.4f", o->score[SET_VALIDATION].r2);
		words(out, head[5], &settings);
		strbuf_puts(out, "</tr>\n");
		strbuf_release(&settings);
	}
	table_end(out);
	strbuf_puts(out, "</details>\n");
}

static void section(struct strbuf *out, const char *title, const char *text)
{
	html_element(out, "h2", title);
	html_element(out, "p", text);
}

int automl_page(const struct automl *a, struct strbuf *out, struct err *err)
{
	struct strbuf log = { 0 };
	int rc;

	html_begin(out, "Campaign");
	html_element(out, "h1", "Campaign");
	strbuf_puts(out, "<p class=\"lead\">Best by hp_selection: <b>");
	html_text(out, a->c->plan[a->best].technique->name);
	strbuf_printf(out, "</b>, validation MAPE %.3g %%.</p>\n<dl class=\"facts\"><dt>table</dt><dd>",
		      100.0 * mean_mape(a, a->best, SET_VALIDATION));
	html_text(out, a->c->input_path);
	strbuf_printf(out, ": %zu rows, %zu features</dd><dt>target</dt><dd>", a->p->all.n, a->p->n_x);
	html_text(out, a->c->y);
	strbuf_printf(out,
		      "</dd><dt>splits</dt><dd>hp_selection %s, validation %s, runs %zu, seed %llu</dd>"
		      "<dt>experiments</dt><dd>%zu</dd></dl>\n",
		      holdout_name[a->c->hp_selection], holdout_name[a->c->validation], a->c->runs,
		      (unsigned long long)a->c->seed, a->n[STAGE_EXPERIMENT]);
	section(out, "Errors",
		"Mean absolute percentage error. Settings and technique are chosen on the rows of "
		"hp_selection; the rows "
		"of validation are looked at once, after that.");
	for (size_t k = 0; k < 2; k++)
		draw_errors(a, &sizes[k], out);
	put_scores(a, out);
	put_by_validation(a, out);
	section(out, "Predicted against real values",
		"Rows of the first validation fold. On the dashed line a prediction is right.");
	rc = draw_predicted(a, out, err);
	if (a->n[STAGE_CURVE]) {
		section(out, "How many measurements are enough?",
			"The chosen settings fitted to growing parts of the table, and scored on a fifth of "
			"the rows that was "
			"held back: means of five draws. Where a curve is flat, more rows do not help that "
			"technique.");
		for (size_t k = 0; k < 2; k++)
			draw_curve(a, &sizes[k], out);
	}
	section(out, "Preparation", "What each step did, and which experiments failed.");
	automl_log(a, &log);
	strbuf_puts(out, "<ul class=\"soft\">\n");
	for (char *rest = log.text, *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n"))
		html_element(out, "li", line);
	strbuf_puts(out, "</ul>\n");
	strbuf_release(&log);
	html_end(out);
	if (!rc && out->failed)
		rc = err_nomem(err, "the page");
	return rc;
}
