/* Figures of single runs: predicted against actual run time, and what is left of it by the load. One panel a
 * policy, all panels with the same axes. Sentences are of all runs; drawn are at most POINTS of them, evenly
 * picked from the rows of jobs.csv, so that the same folder gives the same picture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/mem.h"
#include "common/stats.h"
#include "sim/report/chart.h"

#define POINTS 2000
#define MAX_PANELS 9
#define MAX_BINS 8
#define MIN_PER_BIN 10

struct run_point {
	uint32_t job; /* index in the data */
	double x, y; /* predicted and actual; or processes and their ratio */
};

struct run_panel {
	uint32_t policy;
	struct run_point *point; /* all, in the order of the file */
	size_t n;
	size_t n_shown;
	double value; /* what the sentence is about */
	struct svg_point bin[MAX_BINS];
	size_t n_bins;
};

struct run_panels {
	const struct report_data *d;
	bool load; /* residuals by the load; else predicted against actual */
	struct run_panel panel[MAX_PANELS];
	size_t n, n_left_out; /* policies without a panel, though they predict */
	struct run_point *all;
	double *scratch;
};

static bool usable(const struct report_job *j, bool load)
{
	if (!(j->predicted_s > 0.0) || !(j->run_s > 0.0) || !isfinite(j->run_s) || !isfinite(j->predicted_s))
		return false;
	if (j->state == OUTCOME_FAILED) /* cut short: its time says nothing of the prediction */
		return false;
	return !load || (j->processes > 0.0 && isfinite(j->processes));
}

static void panels_free(struct run_panels *s)
{
	if (s) {
		free(s->all);
		free(s->scratch);
	}
	free(s);
}

static struct run_point point_of(const struct report_data *d, size_t i, bool load)
{
	const struct report_job *j = &d->job[i];

	return (struct run_point){ .job = (uint32_t)i,
				   .x = load ? j->processes : j->predicted_s,
				   .y = load ? j->run_s / j->predicted_s : j->run_s };
}

/* The oracle looks ahead in the world itself: its predictions prove nothing. */
static int panels_collect(struct run_panels *s, struct err *err)
{
	const struct report_data *d = s->d;
	bool load = s->load;
	size_t used = 0;

	s->all = mem_calloc(d->n_jobs + 1, sizeof *s->all);
	s->scratch = mem_calloc(d->n_jobs + 1, sizeof *s->scratch);
	if (!s->all || !s->scratch)
		return err_nomem(err, "a figure");
	for (size_t p = 0; p < d->policies.n; p++) {
		struct run_panel *panel = &s->panel[s->n];
		size_t from = used;

		if (d->policies.policy[p].oracle && d->policies.n > 1)
			continue;
		for (size_t i = 0; i < d->n_jobs; i++)
			if (d->job[i].policy == p && usable(&d->job[i], load))
				s->all[used++] = point_of(d, i, load);
		if (used == from)
			continue;
		if (s->n == MAX_PANELS) {
			s->n_left_out++;
			used = from;
			continue;
		}
		*panel =
			(struct run_panel){ .policy = (uint32_t)p, .point = s->all + from, .n = used - from };
		s->n++;
	}
	for (size_t k = 0; k < s->n; k++)
		s->panel[k].n_shown = s->panel[k].n < POINTS / s->n ? s->panel[k].n : POINTS / s->n;
	return 0;
}

/* The i-th of the points shown: evenly picked. */
static const struct run_point *shown_point(const struct run_panel *p, size_t i)
{
	return &p->point[(size_t)((double)i * (double)p->n / (double)p->n_shown)];
}

static const char *panel_name(const struct report_data *d, const struct run_panel *p)
{
	return d->policies.policy[p->policy].name;
}

static void panels_range(const struct run_panels *s, double low[2], double high[2])
{
	low[0] = low[1] = INFINITY;
	high[0] = high[1] = -INFINITY;
	for (size_t k = 0; k < s->n; k++)
		for (size_t i = 0; i < s->panel[k].n_shown; i++) {
			const struct run_point *p = shown_point(&s->panel[k], i);

			low[0] = fmin(low[0], p->x);
			high[0] = fmax(high[0], p->x);
			low[1] = fmin(low[1], p->y);
			high[1] = fmax(high[1], p->y);
		}
}

static void draw_dots(struct strbuf *out, const struct chart *c, const struct run_panel *p)
{
	struct svg_point point[256];
	size_t n = 0;

	for (size_t i = 0; i < p->n_shown; i++) {
		const struct run_point *r = shown_point(p, i);

		point[n++] = chart_point(c, r->x, r->y);
		if (n == sizeof point / sizeof *point || i + 1 == p->n_shown) {
			svg_dots(out, 0, point, n);
			n = 0;
		}
	}
}

static void panels_csv(const struct run_panels *s, const char *header, struct strbuf *csv)
{
	const struct report_data *d = s->d;
	int job = csv_column(d->jobs, "job");

	strbuf_printf(csv, "policy,replication,job,%s\n", header);
	for (size_t k = 0; k < s->n; k++)
		for (size_t i = 0; i < s->panel[k].n_shown; i++) {
			const struct run_point *p = shown_point(&s->panel[k], i);
			const struct report_job *j = &d->job[p->job];

			csv_put(csv, panel_name(d, &s->panel[k]));
			strbuf_printf(csv, ",%u,", j->replication);
			csv_put(csv, job < 0 ? "" : csv_cell(d->jobs, j->row, (size_t)job));
			chart_cells(csv, (double[]){ p->x, p->y }, 2);
		}
}

static void say_shown(const struct run_panels *s, struct strbuf *out)
{
	size_t n = 0, shown = 0;

	for (size_t k = 0; k < s->n; k++) {
		n += s->panel[k].n;
		shown += s->panel[k].n_shown;
	}
	if (shown < n)
		strbuf_printf(out, " Drawn are %s of %s runs, evenly picked.", word_count((double)shown),
			      word_count((double)n));
	if (s->n_left_out)
		strbuf_printf(out, " Not drawn: %zu more polic%s.", s->n_left_out,
			      s->n_left_out == 1 ? "y" : "ies");
}

static void extremes(const struct run_panels *s, size_t *out_low, size_t *out_high)
{
	*out_low = *out_high = 0;
	for (size_t k = 1; k < s->n; k++) {
		if (s->panel[k].value < s->panel[*out_low].value)
			*out_low = k;
		if (s->panel[k].value > s->panel[*out_high].value)
			*out_high = k;
	}
}

/* ---- predicted against actual ---- */

static void median_errors(struct run_panels *s)
{
	for (size_t k = 0; k < s->n; k++) {
		struct run_panel *p = &s->panel[k];

		for (size_t i = 0; i < p->n; i++)
			s->scratch[i] = fabs(p->point[i].y - p->point[i].x) / p->point[i].y;
		p->value = stats_median(s->scratch, p->n);
	}
}

static void say_predicted(const struct run_panels *s, struct strbuf *out)
{
	const struct report_data *d = s->d;
	size_t low, high;

	extremes(s, &low, &high);
	strbuf_printf(out, "Half of the runs under %s end within %s of what was predicted at their start",
		      panel_name(d, &s->panel[low]), word_percent(s->panel[low].value));
	if (high != low)
		strbuf_printf(out, ", the nearest of the policies; the farthest is %s with %s",
			      panel_name(d, &s->panel[high]), word_percent(s->panel[high].value));
	strbuf_puts(out, ". On the diagonal the prediction was right; above it the run took longer.");
	say_shown(s, out);
}

static void draw_medians(struct strbuf *out, const struct chart *c, const struct run_panel *p)
{
	struct svg_point line[MAX_BINS];

	for (size_t i = 0; i < p->n_bins; i++)
		line[i] = chart_point(c, p->bin[i].x, p->bin[i].y);
	svg_series_line(out, 1, line, p->n_bins);
	for (size_t i = 0; i < p->n_bins; i++)
		svg_marker(out, 1, line[i].x, line[i].y);
}

static void draw_panel(struct strbuf *out, const struct chart_size *size, const struct chart_grid *g,
		       const struct run_panels *s, size_t k, const double low[2], const double high[2])
{
	const struct run_panel *p = &s->panel[k];
	struct chart c = { 0 };
	char note[64];

	if (s->load) {
		svg_axis_init(&c.x, fmin(low[0], 0.0), high[0], false, size->narrow ? 3 : 5);
		svg_axis_init(&c.y, fmin(low[1], 0.9), fmax(high[1], 1.1), true, 5);
		snprintf(note, sizeof note, "%s runs", word_count((double)p->n));
	} else {
		svg_axis_init(&c.x, fmin(low[0], low[1]), fmax(high[0], high[1]), true, 5);
		c.y = c.x;
		snprintf(note, sizeof note, size->narrow ? "%s off" : "median error %s",
			 word_percent(p->value));
	}
	chart_grid_place(g, k, &c);
	chart_grid_head(out, &c, panel_name(s->d, p), note);
	chart_frame(out, &c, NULL, NULL, chart_grid_first(g, k));
	if (s->load)
		svg_line(out, "mean", c.left, chart_y(&c, 1.0), c.right, chart_y(&c, 1.0));
	else
		svg_line(out, "mean", c.left, c.bottom, c.right, c.top);
	draw_dots(out, &c, p);
	if (s->load)
		draw_medians(out, &c, p);
}

static void draw_panels(struct strbuf *out, const struct chart_size *size, const void *what)
{
	const struct run_panels *s = what;
	double low[2], high[2], aspect = s->load ? 0.7 : 0.8;
	struct chart_grid g;

	chart_grid_fit(&g, s->n, size->width, size->narrow ? 2 : 3, size->narrow && s->n > 1 ? 1.0 : aspect);
	chart_begin(out, size, chart_grid_height(&g),
		    s->load ? "Residuals by processes" : "Predicted against actual run time");
	if (s->load)
		chart_grid_labels(out, &g, "mean number of processes during the run",
				  "actual / predicted run time");
	else
		chart_grid_labels(out, &g, "predicted run time (s)", "actual run time (s)");
	panels_range(s, low, high);
	for (size_t k = 0; k < s->n; k++)
		draw_panel(out, size, &g, s, k, low, high);
	svg_end(out);
}

/* *out NULL without an error: there is nothing to draw, and the figure says why. */
static int panels_open(const struct report_data *d, bool by_load, const char *none, struct report_figure *f,
		       struct run_panels **out, struct err *err)
{
	struct run_panels *s;
	int rc;

	*out = NULL;
	if (!d->jobs) {
		f->missing = "jobs.csv is not in the folder.";
		return 0;
	}
	s = mem_calloc(1, sizeof *s);
	if (!s)
		return err_nomem(err, "a figure");
	s->d = d;
	s->load = by_load;
	rc = panels_collect(s, err);
	if (!rc && s->n) {
		*out = s;
		return 0;
	}
	if (!rc)
		f->missing = none;
	panels_free(s);
	return rc;
}

static int make_predicted(const struct report_data *d, struct report_figure *f, struct err *err)
{
	struct run_panels *s;
	int rc = panels_open(d, false, "No run in jobs.csv has a prediction.", f, &s, err);

	if (rc || !s)
		return rc;
	median_errors(s);
	panels_csv(s, "predicted_s,run_s", &f->csv);
	say_predicted(s, &f->see);
	chart_both(f, draw_panels, s);
	panels_free(s);
	return rc;
}

const struct report_figure_ops report_fig_predicted = { "predicted", "Predicted against actual run time",
							make_predicted };

/* ---- residuals by processes ---- */

static int by_load(const void *a, const void *b)
{
	const struct run_point *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? -1 : 1;
	return (p->job > q->job) - (p->job < q->job);
}

static struct svg_point median_of(struct run_panels *s, const struct run_point *sorted, size_t from,
				  size_t to)
{
	struct svg_point m;

	for (size_t i = from; i < to; i++)
		s->scratch[i - from] = sorted[i].x;
	m.x = stats_median(s->scratch, to - from);
	for (size_t i = from; i < to; i++)
		s->scratch[i - from] = sorted[i].y;
	m.y = stats_median(s->scratch, to - from);
	return m;
}

/* Medians of about as many runs each, from few processes to many; neighbours whose loads are nearly the same
 * are put together. `value` is how far the medians lie apart, as a factor. */
static int bin_medians(struct run_panels *s, struct run_panel *p, struct err *err)
{
	struct run_point *sorted = mem_array(p->n, sizeof *sorted);
	size_t n = p->n / MIN_PER_BIN < MAX_BINS ? p->n / MIN_PER_BIN : MAX_BINS, from = 0;
	double near, low = INFINITY, high = 0.0;

	if (!sorted)
		return err_nomem(err, "a figure");
	n = n ? n : 1;
	memcpy(sorted, p->point, p->n * sizeof *sorted);
	qsort(sorted, p->n, sizeof *sorted, by_load);
	near = 0.04 * (sorted[p->n - 1].x - sorted[0].x);
	for (size_t b = 0; b < n; b++) {
		size_t start = p->n * b / n, to = p->n * (b + 1) / n;
		struct svg_point m = median_of(s, sorted, start, to);

		if (p->n_bins && m.x - p->bin[p->n_bins - 1].x <= near) {
			p->bin[p->n_bins - 1] = median_of(s, sorted, from, to);
			continue;
		}
		from = start;
		p->bin[p->n_bins++] = m;
	}
	for (size_t i = 0; i < p->n_bins; i++) {
		low = fmin(low, p->bin[i].y);
		high = fmax(high, p->bin[i].y);
	}
	p->value = high / low;
	free(sorted);
	return 0;
}

static void say_residuals(const struct run_panels *s, struct strbuf *out)
{
	const struct report_data *d = s->d;
	size_t low, high;

	extremes(s, &low, &high);
	strbuf_printf(out,
		      "Under %s the median of actual over predicted goes from %s at a load of %s processes "
		      "to %s at %s",
		      panel_name(d, &s->panel[low]), word_number(s->panel[low].bin[0].y),
		      word_number(s->panel[low].bin[0].x),
		      word_number(s->panel[low].bin[s->panel[low].n_bins - 1].y),
		      word_number(s->panel[low].bin[s->panel[low].n_bins - 1].x));
	if (high != low)
		strbuf_printf(out,
			      ": the steadiest over the load. It moves most under %s: its medians differ by "
			      "a factor of "
			      "%.3g",
			      panel_name(d, &s->panel[high]), s->panel[high].value);
	strbuf_puts(out, ". Above 1 the run took longer than predicted; the line joins medians of runs at a "
			 "like load.");
	say_shown(s, out);
}

static int make_residuals(const struct report_data *d, struct report_figure *f, struct err *err)
{
	struct run_panels *s;
	int rc = panels_open(d, true, "No run in jobs.csv has a prediction and the load it met.", f, &s, err);

	if (rc || !s)
		return rc;
	for (size_t k = 0; k < s->n && !rc; k++)
		rc = bin_medians(s, &s->panel[k], err);
	if (!rc) {
		panels_csv(s, "processes,actual_over_predicted", &f->csv);
		say_residuals(s, &f->see);
		chart_both(f, draw_panels, s);
	}
	panels_free(s);
	return rc;
}

const struct report_figure_ops report_fig_residuals = { "residuals", "Residuals by processes",
							make_residuals };
