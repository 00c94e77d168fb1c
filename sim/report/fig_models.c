/* Figures of what the models learnt: importances of their features, and the analysis of variance of the
 * table that they learnt from. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/mem.h"
#include "predictors/anova/anova.h"
#include "common/draw/html.h"
#include "sim/report/chart.h"

#define MAX_BARS 8 /* of a panel */
#define BAR_PITCH 22.0
#define MAX_PANELS 12
#define MAX_NAMED 6 /* policies in a sentence */

struct bar {
	const char *name;
	double share;
};

static int by_share(const void *a, const void *b)
{
	const struct bar *x = a, *y = b;

	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Bars with their names on the left and their shares at their ends. */
static void draw_bars(struct strbuf *out, const struct bar *bar, size_t n, double left, double top,
		      double width, double most)
{
	double names = 0.0, room;

	for (size_t i = 0; i < n; i++)
		names = fmax(names, svg_text_width(bar[i].name, CHART_TICK));
	names = fmin(names, 0.45 * width) + 8.0;
	room = width - names - 58.0;
	for (size_t i = 0; i < n; i++) {
		double y = top + BAR_PITCH * (double)i, length = fmax(room * bar[i].share / most, 1.0);

		svg_text(out, "tick", left, y + 14.0, SVG_START, 0.0,
			 svg_fit(bar[i].name, CHART_TICK, names - 6.0));
		svg_series_bar(out, 0, left + names, y + 3.0, length, BAR_PITCH - 8.0);
		svg_text(out, "tick", left + names + length + 6.0, y + 14.0, SVG_START, 0.0,
			 word_percent(bar[i].share));
	}
}

/* ---- importances ---- */

struct importance_panel {
	const struct report_policy *policy;
	struct bar bar[MAX_BARS];
	size_t n, n_all;
};

struct importances {
	struct importance_panel panel[MAX_PANELS];
	size_t n;
};

/* Negative ones (permutations that helped by chance) count as nothing. */
static int panel_of(const struct report_policy *p, struct importance_panel *out, struct err *err)
{
	struct bar *all = mem_calloc(json_size(p->importances), sizeof *all);
	double sum = 0.0;

	if (!all)
		return err_nomem(err, "a figure");
	*out = (struct importance_panel){ .policy = p };
	for (const struct json *v = json_first(p->importances); v; v = json_next(v)) {
		all[out->n_all] = (struct bar){ json_key(v), fmax(json_number(v, 0.0), 0.0) };
		sum += all[out->n_all++].share;
	}
	qsort(all, out->n_all, sizeof *all, by_share);
	for (; out->n < out->n_all && out->n < MAX_BARS && all[out->n].share > 0.0; out->n++)
		out->bar[out->n] = (struct bar){ all[out->n].name, all[out->n].share / sum };
	free(all);
	return 0;
}

/* The height of a row of panels: that of its longest. */
static double row_height(const struct importance_panel *panel, size_t n, size_t columns, size_t row)
{
	size_t most = 1;

	for (size_t k = row * columns; k < n && k < (row + 1) * columns; k++)
		most = panel[k].n > most ? panel[k].n : most;
	return 26.0 + BAR_PITCH * (double)most + 14.0;
}

static void draw_importances(struct strbuf *out, const struct chart_size *s, const void *what)
{
	const struct importance_panel *panel = ((const struct importances *)what)->panel;
	size_t n = ((const struct importances *)what)->n, columns = s->narrow ? 1 : n < 3 ? n : 3;
	double panel_width = (s->width - 40.0 * (double)(columns - 1)) / (double)columns, height = 0.0,
	       top = 0.0;
	double most = 1e-9;

	for (size_t k = 0; k < n; k++) {
		most = panel[k].n ? fmax(most, panel[k].bar[0].share) : most;
		height += k % columns ? 0.0 : row_height(panel, n, columns, k / columns);
	}
	chart_begin(out, s, height, "Importances of features");
	for (size_t k = 0; k < n; k++) {
		double left = 2.0 + (double)(k % columns) * (panel_width + 40.0);

		svg_text(out, "head", left, top + 17.0, SVG_START, 0.0,
			 svg_fit(panel[k].policy->name, CHART_HEAD, panel_width));
		draw_bars(out, panel[k].bar, panel[k].n, left, top + 26.0, fmin(panel_width - 4.0, 640.0),
			  most);
		if (k % columns == columns - 1)
			top += row_height(panel, n, columns, k / columns);
	}
	svg_end(out);
}

static void say_importances(const struct importance_panel *panel, size_t n, struct strbuf *out)
{
	strbuf_puts(out, "The feature that weighs most in the model of run time:");
	for (size_t k = 0; k < n && k < MAX_NAMED; k++) {
		if (panel[k].n)
			strbuf_printf(out, "%s %.60s for %s (%s)", k ? "," : "", panel[k].bar[0].name,
				      panel[k].policy->name, word_percent(panel[k].bar[0].share));
		else
			strbuf_printf(out, "%s none for %s", k ? "," : "", panel[k].policy->name);
	}
	if (n > MAX_NAMED)
		strbuf_printf(out, " and so on for %zu more", n - MAX_NAMED);
	strbuf_puts(out, ". Shares of each model add up to one.");
}

static int make_importances(const struct report_data *d, struct report_figure *f, struct err *err)
{
	struct importances *all = mem_calloc(1, sizeof *all);
	int rc = 0;

	if (!all)
		return err_nomem(err, "a figure");
	strbuf_puts(&f->csv, "policy,feature,importance\n");
	for (size_t i = 0; i < d->policies.n && !rc; i++) {
		const struct report_policy *p = &d->policies.policy[i];

		if (!p->importances)
			continue;
		for (const struct json *v = json_first(p->importances); v; v = json_next(v)) {
			csv_put(&f->csv, p->name);
			strbuf_puts(&f->csv, ",");
			csv_put(&f->csv, json_key(v));
			chart_cells(&f->csv, (double[]){ json_number(v, NAN) }, 1);
		}
		if (all->n < MAX_PANELS)
			rc = panel_of(p, &all->panel[all->n++], err);
	}
	if (!rc && !all->n)
		f->missing = "No policy has a model that weighs its features.";
	if (!rc && all->n) {
		say_importances(all->panel, all->n, &f->see);
		chart_both(f, draw_importances, all);
		f->table = true;
	}
	free(all);
	return rc;
}

const struct report_figure_ops report_fig_importances = { "importances", "Importances of features",
							  make_importances };

/* ---- analysis of variance ---- */

#define MAX_TERMS 10

struct terms {
	const struct bar *bar;
	size_t n;
};

static void draw_terms(struct strbuf *out, const struct chart_size *s, const void *what)
{
	const struct bar *bar = ((const struct terms *)what)->bar;
	size_t n = ((const struct terms *)what)->n;

	chart_begin(out, s, 30.0 + BAR_PITCH * (double)n + 10.0, "Shares of the variation");
	svg_text(out, "head", 2.0, 17.0, SVG_START, 0.0, "Share of the variation by term");
	draw_bars(out, bar, n, 2.0, 28.0, fmin(s->width - 6.0, 760.0), n ? fmax(bar[0].share, 1e-9) : 1.0);
	svg_end(out);
}

static void anova_csv(const struct anova *a, struct strbuf *csv)
{
	strbuf_puts(csv, "term,df,ss,share,f,p\n");
	for (size_t i = 0; i < a->n_terms; i++) {
		const struct anova_term *t = &a->term[i];
		const double v[] = { t->ss, t->share, t->f, t->p };

		csv_put(csv, t->name);
		strbuf_printf(csv, ",%zu", t->df);
		chart_cells(csv, v, sizeof v / sizeof *v);
	}
	strbuf_printf(csv, "residual,%zu,", a->residual_df);
	csv_put_number(csv, a->residual_ss);
	strbuf_puts(csv, ",");
	csv_put_number(csv, a->total_ss > 0.0 ? a->residual_ss / a->total_ss : NAN);
	strbuf_puts(csv, ",,\n");
}

static int draw_anova(const struct anova *a, struct report_figure *f, struct err *err)
{
	struct bar *bar = mem_calloc(a->n_terms + 1, sizeof *bar);
	size_t n = 0, shown;
	int rc;

	if (!bar)
		return err_nomem(err, "a figure");
	for (; n < a->n_terms; n++)
		bar[n] = (struct bar){ a->term[n].name, a->term[n].share };
	qsort(bar, n, sizeof *bar, by_share);
	shown = n < MAX_TERMS ? n : MAX_TERMS;
	strbuf_printf(&f->see, "Of the variation of %s%s in the training table, %s goes with %s",
		      a->log ? "the logarithm of " : "", a->target, word_percent(bar[0].share), bar[0].name);
	if (n > 1)
		strbuf_printf(&f->see, " and %s with %s", word_percent(bar[1].share), bar[1].name);
	strbuf_printf(&f->see, "; the model of %zu terms leaves %s unexplained (%s runs of %s settings).",
		      a->n_terms, word_percent(1.0 - a->r2), word_count((double)a->n),
		      word_count((double)a->n_settings));
	if (shown < n)
		strbuf_printf(&f->see, " Drawn are the %zu terms with the largest shares.", shown);
	chart_both(f, draw_terms, &(struct terms){ bar, shown });
	free(bar);
	html_scroll_begin(&f->svg, "Effects and interactions");
	strbuf_puts(&f->svg, "<div class=\"fixed\">\n");
	rc = anova_plot(a, &f->svg, err);
	strbuf_puts(&f->svg, "</div>\n");
	html_scroll_end(&f->svg);
	anova_csv(a, &f->csv);
	f->table = a->n_terms <= 40;
	return rc;
}

/* A table without an answer (nothing varies, too few rows, columns of another schema) must not prevent the
 * report. */
static bool is_answer(const struct err *e)
{
	return e->code == ERR_NODATA || e->code == ERR_NUMERIC || e->code == ERR_FORMAT || e->code == ERR_ARG;
}

static int make_anova(const struct report_data *d, struct report_figure *f, struct err *err)
{
	struct schema *schema = NULL;
	struct table *table = NULL;
	struct anova *a = NULL;
	struct err why = { 0 };
	int rc;

	if (!d->training) {
		f->missing = "training.csv is not in the folder.";
		return 0;
	}
	rc = schema_default(&schema, &why);
	if (!rc)
		rc = table_read(d->training, schema, true, &table, &why);
	if (!rc)
		rc = anova_run(&(struct anova_params){ .table = table, .order = 2, .log = true }, &a, &why);
	if (!rc)
		rc = draw_anova(a, f, &why);
	if (rc && is_answer(&why)) {
		f->missing = "The training table allows no analysis of variance:";
		strbuf_reset(&f->see);
		strbuf_puts(&f->see, why.text);
		rc = 0;
	} else if (rc && err) {
		*err = why;
	}
	anova_free(a);
	table_free(table);
	schema_free(schema);
	return rc;
}

const struct report_figure_ops report_fig_anova = { "anova", "What moves the run time: analysis of variance",
						    make_anova };
