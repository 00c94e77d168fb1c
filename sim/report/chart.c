/* What the figures of the report share: axes, legends, rows, grids of panels, numbers in words. */
#include "sim/report/chart.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/csv.h"
#include "common/text/text.h"

void chart_both(struct report_figure *f, chart_draw *draw, const void *what)
{
	const char *see = strbuf_text(&f->see);

	draw(&f->svg, &(struct chart_size){ "chart wide", CHART_WIDE, false, see }, what);
	draw(&f->svg, &(struct chart_size){ "chart narrow", CHART_NARROW, true, see }, what);
}

void chart_begin(struct strbuf *out, const struct chart_size *s, double height, const char *title)
{
	svg_begin_inside(out, s->role, s->width, height, title, s->see);
}

void chart_cells(struct strbuf *csv, const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		strbuf_puts(csv, ",");
		csv_put_number(csv, v[i]);
	}
	strbuf_puts(csv, "\n");
}

/* ---- legend ---- */

void chart_patch(struct strbuf *out, size_t colour, size_t shape, double x, double y, double width,
		 double height)
{
	char role[32];

	if (shape == LEGEND_OPEN) {
		snprintf(role, sizeof role, "open c%zu", colour % SVG_SERIES);
		svg_box(out, role, x, y, width, height);
		return;
	}
	svg_series_bar(out, colour, x, y, width, height);
	if (shape == LEGEND_HATCHED)
		svg_hatch(out, x, y, width, height);
}

double chart_legend(struct strbuf *out, const struct legend_entry *e, size_t n, double left, double top,
		    double width)
{
	double x = left, y = top + 10.0;

	for (size_t i = 0; i < n; i++) {
		const char *text = svg_fit(e[i].text, CHART_TICK, width - 20.0);
		double need = svg_text_width(text, CHART_TICK) + 34.0;

		if (x > left && x + need - 14.0 > left + width) {
			x = left;
			y += 19.0;
		}
		if (out && e[i].shape >= LEGEND_OPEN)
			chart_patch(out, e[i].colour, e[i].shape, x, y - 5.0, 13.0, 10.0);
		else if (out)
			svg_mark(out, e[i].colour, e[i].shape, x + 6.0, y);
		if (out)
			svg_text(out, "tick", x + 17.0, y + 4.0, SVG_START, 0.0, text);
		x += need;
	}
	return n ? y + 14.0 - top : 0.0;
}

/* ---- rows ---- */

#define ROW_PITCH 18.0
#define ROW_VALUES 76.0 /* room for the numbers on the right */

static double rows_label_width(const struct chart_rows *r)
{
	double most = 0.0;

	for (size_t i = 0; i < r->n_rows; i++)
		most = fmax(most, svg_text_width(r->label[i], CHART_LABEL));
	return most + 10.0;
}

static void rows_axis(struct chart *c, const struct chart_rows *r)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t i = 0; i < r->n_rows * r->n_series; i++) {
		const struct interval *v = &r->value[i];

		if (isnan(v->mean))
			continue;
		low = fmin(low, isnan(v->low) ? v->mean : fmin(v->low, v->mean));
		high = fmax(high, isnan(v->high) ? v->mean : fmax(v->high, v->mean));
	}
	for (size_t i = 0; r->target && i < r->n_rows; i++) {
		low = fmin(low, r->target[i]);
		high = fmax(high, r->target[i]);
	}
	/* a little room, so that noise is not read as a difference */
	svg_axis_init(&c->x, fmax(low - 0.01, 0.0), fmin(high + 0.01, 1.0), false,
		      c->right - c->left > 400.0 ? 8 : 4);
	c->percent_x = true;
}

/* `label` is where the name goes: beside the values, or above them. */
static void draw_row(struct strbuf *out, const struct chart *c, const struct chart_rows *r, size_t row,
		     double top, struct svg_point label, double label_width)
{
	svg_text(out, "label", label.x, label.y, SVG_START, 0.0,
		 svg_fit(r->label[row], CHART_LABEL, label_width));
	if (r->target)
		svg_line(out, "target", chart_x(c, r->target[row]), top, chart_x(c, r->target[row]),
			 top + ROW_PITCH * (double)r->n_series);
	for (size_t k = 0; k < r->n_series; k++) {
		const struct interval *v = &r->value[row * r->n_series + k];
		double y = top + ROW_PITCH * ((double)k + 0.5);

		if (!isnan(v->low) && !isnan(v->high))
			svg_whisker_across(out, k, y, chart_x(c, v->low), chart_x(c, v->high));
		if (!isnan(v->mean))
			svg_marker(out, k, chart_x(c, v->mean), y);
		svg_text(out, "tick", c->right + 14.0, y + 4.0, SVG_START, 0.0, word_percent(v->mean));
	}
}

static void draw_rows_in(struct strbuf *out, const struct chart *c, const struct chart_rows *r, double pitch,
			 bool above)
{
	double values = ROW_PITCH * (double)r->n_series;

	for (size_t i = 0; i < r->n_rows; i++) {
		double top = c->top + 6.0 + pitch * (double)i;

		if (above)
			draw_row(out, c, r, i, top + ROW_PITCH,
				 (struct svg_point){ c->left + 6.0, top + 12.0 }, c->right - c->left);
		else
			draw_row(out, c, r, i, top, (struct svg_point){ 2.0, top + values / 2.0 + 4.0 },
				 c->left - 8.0);
	}
}

void chart_draw_rows(struct strbuf *out, const struct chart_size *s, const void *what)
{
	const struct chart_rows *r = what;
	struct legend_entry entry[SVG_SERIES];
	size_t n_entries = r->n_series > 1 ? r->n_series : 0;
	/* long names on a phone go above their values: cut ones would look alike */
	bool above = rows_label_width(r) > 0.36 * s->width;
	struct chart c = { .left = above ? 24.0 : rows_label_width(r), .right = s->width - ROW_VALUES };
	double pitch = ROW_PITCH * (double)(r->n_series + above) + 8.0;

	for (size_t k = 0; k < n_entries; k++)
		entry[k] = (struct legend_entry){ r->series[k], k, k };
	c.top = chart_legend(NULL, entry, n_entries, 2.0, 0.0, s->width - 4.0) + 6.0;
	c.bottom = c.top + pitch * (double)r->n_rows + 4.0;
	chart_begin(out, s, c.bottom + 46.0, r->title);
	chart_legend(out, entry, n_entries, 2.0, 0.0, s->width - 4.0);
	rows_axis(&c, r);
	c.y = (struct svg_axis){ .low = 0.0, .high = 1.0 };
	chart_frame(out, &c, r->x_label, NULL, false);
	draw_rows_in(out, &c, r, pitch, above);
	svg_end(out);
}

/* ---- grids of panels ---- */

void chart_grid_fit(struct chart_grid *g, size_t n, double width, size_t most_columns, double aspect)
{
	size_t rows;

	*g = (struct chart_grid){
		.width = width, .n = n, .left = 46.0, .top = 24.0, .gap = 26.0, .head = 44.0, .foot = 30.0
	};
	rows = (n + most_columns - 1) / most_columns;
	g->columns = rows ? (n + rows - 1) / rows : 1; /* 4 panels as 2 + 2 rather than 3 + 1 */
	g->panel_width = (width - g->left - 16.0 - g->gap * (double)(g->columns - 1)) / (double)g->columns;
	g->panel_width = fmin(g->panel_width, 560.0);
	g->panel_height = g->panel_width * aspect;
}

double chart_grid_height(const struct chart_grid *g)
{
	double rows = (double)((g->n + g->columns - 1) / g->columns);

	return g->top + rows * (g->head + g->panel_height + g->foot) + 24.0;
}

void chart_grid_place(const struct chart_grid *g, size_t i, struct chart *c)
{
	double column = (double)(i % g->columns), row = (double)(i / g->columns);

	c->left = g->left + column * (g->panel_width + g->gap);
	c->right = c->left + g->panel_width;
	c->top = g->top + g->head + row * (g->head + g->panel_height + g->foot);
	c->bottom = c->top + g->panel_height;
}

bool chart_grid_first(const struct chart_grid *g, size_t i)
{
	return i % g->columns == 0;
}

void chart_grid_labels(struct strbuf *out, const struct chart_grid *g, const char *x_label,
		       const char *y_label)
{
	double right = g->left + (double)g->columns * (g->panel_width + g->gap) - g->gap;

	svg_text(out, "label", 2.0, 14.0, SVG_START, 0.0, svg_fit(y_label, CHART_LABEL, g->width - 4.0));
	svg_text(out, "label", right, chart_grid_height(g) - 10.0, SVG_END, 0.0,
		 svg_fit(x_label, CHART_LABEL, right - 2.0));
}

void chart_grid_head(struct strbuf *out, const struct chart *c, const char *title, const char *note)
{
	svg_text(out, "head", c->left, c->top - 24.0, SVG_START, 0.0,
		 svg_fit(title, CHART_HEAD, c->right - c->left));
	svg_text(out, "tick", c->left, c->top - 8.0, SVG_START, 0.0,
		 svg_fit(note, CHART_TICK, c->right - c->left));
}

/* ---- words ---- */

#define DASH "\xe2\x80\x93"

/* `fmt` has one number; NaN is a dash. */
static const char *word(double v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static char *next_word(void)
{
	static _Thread_local char ring[16][48];
	static _Thread_local unsigned turn;

	return ring[turn++ % 16];
}

static const char *word(double v, const char *fmt, ...)
{
	char *buf = next_word();
	va_list args;

	if (isnan(v))
		return DASH;
	va_start(args, fmt);
	vsnprintf(buf, 48, fmt, args);
	va_end(args);
	return buf;
}

const char *word_percent(double share)
{
	return word(share, "%.*f\xc2\xa0%%", fabs(share) < 1000.0 ? 1 : 0, fmin(100.0 * share, 1e12));
}

const char *word_points(double share)
{
	return word(share, "%s%.1f points", share < 0.0 ? "\xe2\x88\x92" : "+",
		    fmin(fabs(100.0 * share), 1e12));
}

const char *word_number(double v)
{
	return word(v, "%.4g", v);
}

const char *word_short(double v)
{
	return word(v, "%.2g", v);
}

const char *word_seconds(double s)
{
	if (fabs(s) >= 1e-3 || s == 0.0)
		return text_seconds(s, next_word());
	return word(s, "%.3g \xc2\xb5s", 1e6 * s);
}

/* Thousands are grouped by commas. */
const char *word_count(double n)
{
	char digits[32], *buf = next_word();
	size_t len, at = 0;

	if (!(n >= 0.0 && n < 1e15 && n == floor(n)))
		return word_number(n);
	len = (size_t)snprintf(digits, sizeof digits, "%.0f", n);
	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

const char *word_p(double p)
{
	return isnan(p) ? "p unknown" : p < 1e-4 ? "p < 0.0001" : word(p, "p %.2g", p);
}

bool word_is_share(enum metric m)
{
	switch (m) {
	case METRIC_ATTAINMENT:
	case METRIC_ATTAINMENT_ALL:
	case METRIC_ATTAINMENT_ADMITTED:
	case METRIC_ATTAINMENT_ORACLE:
	case METRIC_UTILISATION:
	case METRIC_COVERAGE:
	case METRIC_MAPE: return true;
	default: return false;
	}
}

const char *word_metric(enum metric m, double v)
{
	if (word_is_share(m))
		return word_percent(v);
	if (!strcmp(metric_info[m].unit, "jobs"))
		return word_count(v);
	if (!strcmp(metric_info[m].unit, "s"))
		return word_seconds(v);
	if (m == METRIC_MSE || isnan(v))
		return word_number(v);
	return word(v, "%.4f", fmax(fmin(v, 1e12), -1e12)); /* accuracies and indexes */
}
