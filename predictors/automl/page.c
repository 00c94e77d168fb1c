/* The results of a campaign as one HTML page: errors of the techniques, predicted against real values, the
 * learning curve, chosen settings, and what the preparation did. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/draw/html.h"
#include "common/draw/svg.h"
#include "common/mem.h"
#include "predictors/automl/select.h"

#define WIDTH 960.0
#define FEW_POINTS 150 /* of a panel: more are drawn as small dots */
#define SHOWN 8 /* techniques of a chart: as many as there are colours */

struct area {
	double left, top, right, bottom;
	struct svg_axis x, y;
};

/* Grid, ticks and labels; `percent_y`: shares are labelled in percent. */
static void frame(struct strbuf *out, struct area *a, const char *x_label, const char *y_label,
		  bool percent_y)
{
	char text[40];

	a->x.from = a->left;
	a->x.to = a->right;
	a->y.from = a->bottom;
	a->y.to = a->top;
	for (size_t i = 0; i < a->y.n_ticks; i++) {
		double y = svg_axis_at(&a->y, a->y.tick[i]);

		svg_line(out, "grid", a->left, y, a->right, y);
		if (percent_y)
			snprintf(text, sizeof text, "%g %%", 100.0 * a->y.tick[i]);
		else
			svg_tick_label(&a->y, a->y.tick[i], text);
		svg_text(out, "tick", a->left - 6, y + 4, SVG_END, 0, text);
	}
	for (size_t i = 0; i < a->x.n_ticks; i++) {
		double x = svg_axis_at(&a->x, a->x.tick[i]);

		svg_line(out, "grid", x, a->top, x, a->bottom);
		svg_tick_label(&a->x, a->x.tick[i], text);
		svg_text(out, "tick", x, a->bottom + 16, SVG_MIDDLE, 0, text);
	}
	svg_line(out, "axis", a->left, a->bottom, a->right, a->bottom);
	svg_line(out, "axis", a->left, a->top, a->left, a->bottom);
	svg_text(out, "label", 0.5 * (a->left + a->right), a->bottom + 36, SVG_MIDDLE, 0, x_label);
	svg_text(out, "label", a->left, a->top - 10, SVG_START, 0, y_label);
}

/* ---- errors ---- */

static double mean_mape(const struct automl *a, size_t t, enum automl_set set)
{
	size_t n = a->c->runs * a->n_validation;
	double sum = 0.0;

	for (size_t f = 0; f < n; f++)
		sum += a->outcome[STAGE_VALIDATION][f * a->c->n_plans + t].score[set].mape / (double)n;
	return sum;
}

static void draw_errors(const struct automl *a, struct strbuf *out)
{
	static const enum automl_set set[] = { SET_HP_SELECTION, SET_VALIDATION };
	double most = 0.0, height = 70.0 + 46.0 * (double)a->c->n_plans, from = 190.0;
	char text[40];

	for (size_t t = 0; t < a->c->n_plans; t++)
		for (size_t s = 0; s < 2; s++)
			if (isfinite(mean_mape(a, t, set[s])))
				most = fmax(most, mean_mape(a, t, set[s]));
	most = most > 0.0 ? most : 1.0;
	svg_begin_inside(
		out, "chart", WIDTH, height, "MAPE of each technique",
		"Bars: mean absolute percentage error on the rows of hp_selection and of validation");
	svg_series_bar(out, 0, from, 8, 14, 14);
	svg_text(out, "label", from + 20, 20, SVG_START, 0, "hp_selection (chosen by this)");
	svg_series_bar(out, 1, from + 260, 8, 14, 14);
	svg_text(out, "label", from + 280, 20, SVG_START, 0, "validation");
	for (size_t t = 0; t < a->c->n_plans; t++) {
		double y = 40.0 + 46.0 * (double)t;

		svg_text(out, t == a->best ? "head" : "label", from - 12, y + 22, SVG_END, 0,
			 a->c->plan[t].technique->name);
		for (size_t s = 0; s < 2; s++) {
			double mape = mean_mape(a, t, set[s]);
			double width = isfinite(mape) ? (WIDTH - from - 110.0) * mape / most : 0.0;

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

/* The chosen point of a technique on the first validation fold of the first run, fitted again. */
static int predict_fold(const struct automl *a, size_t t, struct svg_point **out, size_t *out_n,
			struct err *err)
{
	const struct outcome *o = &a->outcome[STAGE_VALIDATION][t];
	struct feature_list all = { .column = a->p->x, .n = a->p->n_x };
	struct feature_list *features =
		a->c->selection == SELECT_XGBOOST ? &a->outcome[STAGE_FEATURES][0].features : &all;
	struct fold_rows rows = { 0 };
	struct fitted f = { 0 };
	double *predicted = NULL;
	int rc = fold_rows_make(a->c, a->p, 0, 0, 0, &rows, err);

	*out = NULL;
	*out_n = 0;
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
		*out = mem_array(rows.validation.n, sizeof **out);
		rc = predicted && *out ? fitted_predict(&f, a->p, &rows.validation, predicted, err)
				       : err_nomem(err, "a figure");
	}
	for (size_t i = 0; i < rows.validation.n && !rc; i++)
		(*out)[(*out_n)++] = (struct svg_point){ a->p->y[rows.validation.row[i]], predicted[i] };
	free(predicted);
	fitted_release(&f);
	fold_rows_release(&rows);
	return rc;
}

static void draw_scatter(const struct automl *a, struct strbuf *out, size_t t, struct svg_point *point,
			 size_t n, double left, double top, double size)
{
	struct area at = {
		.left = left + 70, .top = top + 44, .right = left + size - 10, .bottom = top + size - 52
	};
	double low = INFINITY, high = -INFINITY, end_low, end_high;

	for (size_t i = 0; i < n; i++) {
		low = fmin(low, fmin(point[i].x, point[i].y));
		high = fmax(high, fmax(point[i].x, point[i].y));
	}
	svg_axis_init(&at.x, low, high, false, 4);
	svg_axis_init(&at.y, low, high, false, 4);
	svg_text(out, "head", left + 70, top + 16, SVG_START, 0, a->c->plan[t].technique->name);
	frame(out, &at, "real", "predicted", false);
	end_low = fmax(at.x.low, at.y.low);
	end_high = fmin(at.x.high, at.y.high);
	svg_line(out, "mean", svg_axis_at(&at.x, end_low), svg_axis_at(&at.y, end_low),
		 svg_axis_at(&at.x, end_high), svg_axis_at(&at.y, end_high));
	for (size_t i = 0; i < n; i++)
		point[i] =
			(struct svg_point){ svg_axis_at(&at.x, point[i].x), svg_axis_at(&at.y, point[i].y) };
	for (size_t i = 0; i < n && n <= FEW_POINTS; i++)
		svg_marker(out, t, point[i].x, point[i].y);
	if (n > FEW_POINTS)
		svg_dots(out, t, point, n);
}

static int draw_predicted(const struct automl *a, struct strbuf *out, struct err *err)
{
	double size = WIDTH / 3.0;
	size_t shown = 0, n_plans = a->c->n_plans < SHOWN + 1 ? a->c->n_plans : SHOWN + 1;
	size_t rows = (n_plans + 2) / 3;
	int rc = 0;

	svg_begin_inside(out, "chart", WIDTH, size * (double)rows + 10, "Predicted against real values",
			 "One panel for each technique: rows of the first validation fold, and the line "
			 "where both are equal");
	for (size_t t = 0; t < n_plans && !rc; t++) {
		struct svg_point *point = NULL;
		size_t n = 0;

		if (a->outcome[STAGE_VALIDATION][t].failed)
			continue;
		rc = predict_fold(a, t, &point, &n, err);
		if (!rc) {
			draw_scatter(a, out, t, point, n, size * (double)(shown % 3),
				     size * (double)(shown / 3), size);
			shown++;
		}
		free(point);
	}
	svg_end(out);
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

static void draw_curve(const struct automl *a, struct strbuf *out)
{
	struct area at = { .left = 80, .top = 40, .right = WIDTH - 190, .bottom = 380 };
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
		out, "chart", WIDTH, 430, "Learning curve",
		"MAPE on held-out rows against the number of rows to learn from, for each technique");
	svg_axis_init(&at.x, (double)a->curve_rows[0], (double)a->curve_rows[CURVE_SIZES - 1], true, 6);
	svg_axis_init(&at.y, isfinite(low) ? low : 0.01, high > 0.0 ? high : 1.0, true, 6);
	frame(out, &at, "rows to learn from", "MAPE on rows held back", true);
	for (size_t t = 0; t < a->c->n_plans; t++) {
		struct svg_point point[CURVE_SIZES];
		size_t n = 0;
		double y = at.top + 24.0 * (double)t;

		for (size_t k = 0; k < CURVE_SIZES; k++) {
			double mape = curve_at(a, t, k);

			if (isfinite(mape) && mape > 0.0)
				point[n++] = (struct svg_point){ svg_axis_at(&at.x, (double)a->curve_rows[k]),
								 svg_axis_at(&at.y, fmin(mape, 10.0)) };
		}
		svg_series_line(out, t, point, n);
		for (size_t k = 0; k < n; k++)
			svg_mark(out, t, t + t / SVG_SERIES, point[k].x, point[k].y);
		svg_mark(out, t, t + t / SVG_SERIES, at.right + 24, y);
		svg_text(out, "label", at.right + 36, y + 4, SVG_START, 0, a->c->plan[t].technique->name);
	}
	svg_end(out);
}

/* ---- tables ---- */

static void table_begin(struct strbuf *out, const char *label, const char *const *head)
{
	html_scroll_begin(out, label);
	strbuf_puts(out, "<table><thead><tr>");
	for (; *head; head++)
		html_element(out, "th scope=\"col\"", *head);
	strbuf_puts(out, "</tr></thead><tbody>\n");
}

static void table_end(struct strbuf *out)
{
	strbuf_puts(out, "</tbody></table>\n");
	html_scroll_end(out);
}

static void cell(struct strbuf *out, const char *format, double v)
{
	char text[40] = "-";

	if (isfinite(v))
		snprintf(text, sizeof text, format, v);
	html_element(out, "td", text);
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
			cell(out, "%.0f", (double)r);
			cell(out, "%.3g", 100.0 * s.mean[SET_HP_SELECTION].mape);
			cell(out, "%.3g", 100.0 * s.mean[SET_VALIDATION].mape);
			cell(out, "%.2g", s.n > 1 ? 100.0 * s.sd[SET_VALIDATION].mape : NAN);
			cell(out, "%.4g", s.mean[SET_VALIDATION].rmse);
			cell(out, "%.4f", s.mean[SET_VALIDATION].r2);
			if (a->chosen[at].point == SIZE_MAX)
				strbuf_printf(&settings, "failed: %s", o->why);
			else
				plan_point_text(&a->c->plan[t], a->chosen[at].point,
						o->n_tuned ? o->tuned : NULL, &settings);
			html_element(out, "td style=\"text-align:left;white-space:normal\"",
				     strbuf_text(&settings));
			strbuf_puts(out, "</tr>\n");
			strbuf_release(&settings);
		}
	table_end(out);
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
	draw_errors(a, out);
	put_scores(a, out);
	section(out, "Predicted against real values",
		"Rows of the first validation fold. On the dashed line a prediction is right.");
	rc = draw_predicted(a, out, err);
	if (a->n[STAGE_CURVE]) {
		section(out, "How many measurements are enough?",
			"The chosen settings fitted to growing parts of the table, and scored on a fifth of "
			"the rows that was "
			"held back: means of five draws. Where a curve is flat, more rows do not help that "
			"technique.");
		draw_curve(a, out);
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
