/* Figures of policies against each other: accuracy against attainment, and a sweep of a setting. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/mem.h"
#include "sim/report/chart.h"

/* Policies keep their colour and marker in all figures of this file. */
static struct legend_entry *entries(const struct report_policies *p)
{
	struct legend_entry *e = mem_calloc(p->n, sizeof *e);

	for (size_t i = 0; e && i < p->n; i++)
		e[i] = (struct legend_entry){ p->policy[i].name, i, i + i / SVG_SERIES };
	return e;
}

static void stretch(double *low, double *high, const struct interval *v)
{
	if (isnan(v->mean))
		return;
	*low = fmin(*low, isnan(v->low) ? v->mean : v->low);
	*high = fmax(*high, isnan(v->high) ? v->mean : v->high);
}

/* ---- accuracy against attainment ---- */

static bool has_both(const struct report_policy *p)
{
	return !isnan(p->metric[METRIC_ATTAINMENT_ALL].mean) && !isnan(p->metric[METRIC_ACCURACY_MET].mean);
}

/* No other policy (the oracle aside) is at least as good in both and better in one. */
static bool undominated(const struct report_policies *p, size_t i)
{
	double x = p->policy[i].metric[METRIC_ATTAINMENT_ALL].mean,
	       y = p->policy[i].metric[METRIC_ACCURACY_MET].mean;

	for (size_t k = 0; k < p->n; k++) {
		double u = p->policy[k].metric[METRIC_ATTAINMENT_ALL].mean,
		       v = p->policy[k].metric[METRIC_ACCURACY_MET].mean;

		if (k != i && has_both(&p->policy[k]) && !p->policy[k].oracle && u >= x && v >= y &&
		    (u > x || v > y))
			return false;
	}
	return true;
}

#define MAX_NAMED 6 /* policies in a list of a sentence */

static void say_more(struct strbuf *out, size_t n)
{
	if (n > MAX_NAMED)
		strbuf_printf(out, " and %zu more", n - MAX_NAMED);
}

static void say_tradeoff(const struct report_policies *p, struct strbuf *out)
{
	size_t n = 0, beaten = 0;

	strbuf_puts(out, "No other policy is better in both:");
	for (size_t i = 0; i < p->n; i++)
		if (has_both(&p->policy[i]) && !p->policy[i].oracle && undominated(p, i) && n++ < MAX_NAMED)
			strbuf_printf(out, "%s %s (%s met, accuracy %s)", n > 1 ? "," : "", p->policy[i].name,
				      word_percent(p->policy[i].metric[METRIC_ATTAINMENT_ALL].mean),
				      word_metric(METRIC_ACCURACY_MET,
						  p->policy[i].metric[METRIC_ACCURACY_MET].mean));
	say_more(out, n);
	strbuf_puts(out, n ? "." : " none.");
	for (size_t i = 0; i < p->n; i++)
		if (has_both(&p->policy[i]) && !p->policy[i].oracle && !undominated(p, i) &&
		    beaten++ < MAX_NAMED)
			strbuf_printf(out, "%s %s",
				      beaten > 1 ? "," : " Another does at least as well in both as",
				      p->policy[i].name);
	say_more(out, beaten);
	strbuf_puts(out, beaten ? ". Up and to the right is better." : " Up and to the right is better.");
}

struct drawn { /* what both figures of this file draw */
	const struct report_data *d;
	const struct legend_entry *e;
};

static void draw_tradeoff(struct strbuf *out, const struct chart_size *s, const void *what)
{
	const struct legend_entry *e = ((const struct drawn *)what)->e;
	const struct report_policies *p = &((const struct drawn *)what)->d->policies;
	double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
	struct chart c = { .left = 58.0, .right = s->width - 34.0, .percent_x = true };

	c.top = chart_legend(NULL, e, p->n, 2.0, 0.0, s->width - 4.0) + 34.0;
	c.bottom = c.top + (s->narrow ? 230.0 : 340.0);
	chart_begin(out, s, c.bottom + 46.0, "Accuracy against limits met");
	chart_legend(out, e, p->n, 2.0, 0.0, s->width - 4.0);
	for (size_t i = 0; i < p->n; i++) {
		stretch(&low_x, &high_x, &p->policy[i].metric[METRIC_ATTAINMENT_ALL]);
		stretch(&low_y, &high_y, &p->policy[i].metric[METRIC_ACCURACY_MET]);
	}
	svg_axis_init(&c.x, fmax(low_x - 0.01, 0.0), fmin(high_x + 0.01, 1.0), false, s->narrow ? 4 : 8);
	svg_axis_init(&c.y, low_y, high_y, false, s->narrow ? 5 : 7);
	chart_frame(out, &c, "limits met of all", "mean accuracy of the jobs that met theirs", true);
	for (size_t i = 0; i < p->n; i++) {
		const struct interval *x = &p->policy[i].metric[METRIC_ATTAINMENT_ALL],
				      *y = &p->policy[i].metric[METRIC_ACCURACY_MET];

		if (!has_both(&p->policy[i]))
			continue;
		svg_open(out, "point", p->policy[i].name);
		if (!isnan(x->low) && !isnan(x->high))
			svg_whisker_across(out, e[i].colour, chart_y(&c, y->mean), chart_x(&c, x->low),
					   chart_x(&c, x->high));
		if (!isnan(y->low) && !isnan(y->high))
			svg_whisker(out, e[i].colour, chart_x(&c, x->mean), chart_y(&c, y->low),
				    chart_y(&c, y->high));
		svg_mark(out, e[i].colour, e[i].shape, chart_x(&c, x->mean), chart_y(&c, y->mean));
		svg_close(out);
	}
	svg_end(out);
}

static void tradeoff_csv(const struct report_policies *p, struct strbuf *csv)
{
	strbuf_puts(csv, "policy,attainment_all,attainment_all_low,attainment_all_high,accuracy_met,"
			 "accuracy_met_low,accuracy_met_high\n");
	for (size_t i = 0; i < p->n; i++) {
		const struct interval *x = &p->policy[i].metric[METRIC_ATTAINMENT_ALL],
				      *y = &p->policy[i].metric[METRIC_ACCURACY_MET];
		const double v[] = { x->mean, x->low, x->high, y->mean, y->low, y->high };

		csv_put(csv, p->policy[i].name);
		chart_cells(csv, v, sizeof v / sizeof *v);
	}
}

static int make_tradeoff(const struct report_data *d, struct report_figure *f, struct err *err)
{
	const struct report_policies *p = &d->policies;
	struct legend_entry *e;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += has_both(&p->policy[i]);
	f->skip = p->n == 1; /* a single point compares nothing */
	if (!n)
		f->missing = "No policy has both an attainment and an accuracy.";
	if (f->skip || f->missing)
		return 0;
	e = entries(p);
	if (!e)
		return err_nomem(err, "a figure");
	tradeoff_csv(p, &f->csv);
	say_tradeoff(p, &f->see);
	chart_both(f, draw_tradeoff, &(struct drawn){ d, e });
	f->table = true;
	free(e);
	return 0;
}

const struct report_figure_ops report_fig_tradeoff = { "tradeoff", "Accuracy against attainment",
						       make_tradeoff };

/* ---- sweep ---- */

static const enum metric sweep_metric[] = { METRIC_ATTAINMENT_ALL, METRIC_ACCURACY_ZERO };
#define N_SWEPT (sizeof sweep_metric / sizeof *sweep_metric)

static double swept(const struct report_data *d, size_t point, const char *policy, enum metric m)
{
	size_t i = report_find(&d->sweep[point], policy);

	return i == SIZE_MAX ? NAN : d->sweep[point].policy[i].metric[m].mean;
}

static void draw_sweep_panel(struct strbuf *out, const struct report_data *d, const struct legend_entry *e,
			     const struct chart *c, enum metric m)
{
	const struct report_policies *p = &d->sweep[0];

	for (size_t i = 0; i < p->n; i++) {
		struct svg_point point[REPORT_MAX_SWEEP];
		size_t n = 0;

		for (size_t k = 0; k < d->n_sweep; k++) {
			double v = swept(d, k, p->policy[i].name, m);

			if (!isnan(v))
				point[n++] = chart_point(c, d->sweep_value[k], v);
		}
		svg_open(out, "point", p->policy[i].name);
		svg_series_line(out, e[i].colour, point, n);
		for (size_t k = 0; k < n; k++)
			svg_mark(out, e[i].colour, e[i].shape, point[k].x, point[k].y);
		svg_close(out);
	}
}

static void draw_sweep(struct strbuf *out, const struct chart_size *s, const void *what)
{
	const struct legend_entry *e = ((const struct drawn *)what)->e;
	const struct report_data *d = ((const struct drawn *)what)->d;
	bool narrow = s->narrow;
	struct chart_grid g;

	chart_grid_fit(&g, N_SWEPT, s->width, narrow ? 1 : 2, narrow ? 0.7 : 0.62);
	g.top = chart_legend(NULL, e, d->sweep[0].n, 2.0, 0.0, s->width - 4.0) + 4.0;
	g.gap = 60.0;
	g.head = 30.0;
	g.foot = 44.0;
	if (!narrow)
		g.panel_width -= 17.0; /* numbers on the axis of the second panel */
	chart_begin(out, s, chart_grid_height(&g), "Sweep");
	chart_legend(out, e, d->sweep[0].n, 2.0, 0.0, s->width - 4.0);
	for (size_t k = 0; k < N_SWEPT; k++) {
		enum metric m = sweep_metric[k];
		struct chart c = { .percent_y = word_is_share(m) };
		double low = INFINITY, high = -INFINITY, from = INFINITY, to = -INFINITY;

		for (size_t i = 0; i < d->n_sweep; i++) {
			from = fmin(from, d->sweep_value[i]);
			to = fmax(to, d->sweep_value[i]);
			for (size_t j = 0; j < d->sweep[i].n; j++)
				stretch(&low, &high,
					&(struct interval){ d->sweep[i].policy[j].metric[m].mean, NAN, NAN });
		}
		svg_axis_init(&c.x, from, to, false, narrow ? 5 : 6);
		svg_axis_init(&c.y, low, high, false, 6);
		chart_grid_place(&g, k, &c);
		svg_text(out, "label", c.left, c.top - 12.0, SVG_START, 0.0,
			 svg_fit(metric_info[m].title, CHART_LABEL, c.right - c.left));
		chart_frame(out, &c, d->sweep_key, NULL, true);
		draw_sweep_panel(out, d, e, &c, m);
	}
	svg_end(out);
}

static void say_sweep(const struct report_data *d, struct strbuf *out)
{
	const char *focus = d->policies.policy[d->focus].name;
	size_t last = d->n_sweep - 1, ahead = 0, known = 0;

	strbuf_printf(out, "As %s goes from %s to %s, %s meets %s to %s of all limits", d->sweep_key,
		      word_number(d->sweep_value[0]), word_number(d->sweep_value[last]), focus,
		      word_percent(swept(d, 0, focus, METRIC_ATTAINMENT_ALL)),
		      word_percent(swept(d, last, focus, METRIC_ATTAINMENT_ALL)));
	if (d->baseline != SIZE_MAX && d->baseline != d->focus) {
		const char *base = d->policies.policy[d->baseline].name;

		for (size_t k = 0; k < d->n_sweep; k++) {
			double a = swept(d, k, focus, METRIC_ACCURACY_ZERO),
			       b = swept(d, k, base, METRIC_ACCURACY_ZERO);

			known += !isnan(a) && !isnan(b);
			ahead += a > b;
		}
		strbuf_printf(
			out,
			"; with missed ones counted as zero it is more accurate than %s at %zu of %zu points",
			base, ahead, known);
	}
	strbuf_puts(out, ".");
}

static void sweep_csv(const struct report_data *d, struct strbuf *csv)
{
	double mean[METRICS];

	strbuf_puts(csv, "value,policy");
	for (size_t m = 0; m < METRICS; m++)
		strbuf_printf(csv, ",%s", metric_info[m].name);
	strbuf_puts(csv, "\n");
	for (size_t k = 0; k < d->n_sweep; k++)
		for (size_t i = 0; i < d->sweep[k].n; i++) {
			csv_put_number(csv, d->sweep_value[k]);
			strbuf_puts(csv, ",");
			csv_put(csv, d->sweep[k].policy[i].name);
			for (size_t m = 0; m < METRICS; m++)
				mean[m] = d->sweep[k].policy[i].metric[m].mean;
			chart_cells(csv, mean, METRICS);
		}
}

static int make_sweep(const struct report_data *d, struct report_figure *f, struct err *err)
{
	struct legend_entry *e;

	f->skip = d->n_sweep == 0;
	if (f->skip)
		return 0;
	e = entries(&d->sweep[0]);
	if (!e)
		return err_nomem(err, "a figure");
	sweep_csv(d, &f->csv);
	say_sweep(d, &f->see);
	chart_both(f, draw_sweep, &(struct drawn){ d, e });
	f->table = d->n_sweep * d->sweep[0].n <= 60;
	free(e);
	return 0;
}

const struct report_figure_ops report_fig_sweep = { "sweep", "Sweep", make_sweep };
