/* A plotting area with two axes, and sheets of such areas. See frame.h. */
#include "common/draw/frame.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- a frame with two axes ---- */

static const char *tick_text(const struct svg_axis *a, double v, bool percent, char *buf)
{
	struct svg_axis scaled = *a;
	size_t len;

	if (!percent)
		return svg_tick_label(a, v, buf);
	scaled.low *= 100.0;
	scaled.high *= 100.0;
	for (size_t i = 0; i < a->n_ticks; i++)
		scaled.tick[i] *= 100.0;
	svg_tick_label(&scaled, 100.0 * v, buf);
	len = strlen(buf);
	snprintf(buf + len, 32 - len, " %%");
	return buf;
}

static void draw_x_ticks(struct strbuf *out, const struct chart *c)
{
	double free_from = -INFINITY;
	char buf[40];

	for (size_t i = 0; i < c->x.n_ticks; i++) {
		double x = svg_axis_at(&c->x, c->x.tick[i]), half;
		const char *text = tick_text(&c->x, c->x.tick[i], c->percent_x, buf);

		svg_line(out, "grid", x, c->top, x, c->bottom);
		half = svg_text_width(text, CHART_TICK) / 2.0;
		if (x - half < free_from)
			continue;
		svg_text(out, "tick", x, c->bottom + 17.0, SVG_MIDDLE, 0.0, text);
		free_from = x + half + 6.0;
	}
}

static void draw_y_ticks(struct strbuf *out, const struct chart *c, bool numbers)
{
	double free_below = INFINITY;
	char buf[40];

	for (size_t i = 0; i < c->y.n_ticks; i++) {
		double y = svg_axis_at(&c->y, c->y.tick[i]);

		svg_line(out, "grid", c->left, y, c->right, y);
		if (!numbers || y > free_below)
			continue;
		svg_text(out, "tick", c->left - 7.0, y + 4.0, SVG_END, 0.0,
			 tick_text(&c->y, c->y.tick[i], c->percent_y, buf));
		free_below = y - 17.0;
	}
}

void chart_frame(struct strbuf *out, struct chart *c, const char *x_label, const char *y_label,
		 bool y_numbers)
{
	c->x.from = c->left;
	c->x.to = c->right;
	c->y.from = c->bottom;
	c->y.to = c->top;
	draw_x_ticks(out, c);
	draw_y_ticks(out, c, y_numbers);
	svg_line(out, "axis", c->left, c->bottom, c->right, c->bottom);
	svg_line(out, "axis", c->left, c->top, c->left, c->bottom);
	if (x_label)
		svg_text(out, "label", c->right, c->bottom + 37.0, SVG_END, 0.0,
			 svg_fit(x_label, CHART_LABEL, c->right));
	if (y_label)
		svg_text(out, "label", 2.0, c->top - 12.0, SVG_START, 0.0,
			 svg_fit(y_label, CHART_LABEL, c->right));
}

double chart_x(const struct chart *c, double v)
{
	return svg_axis_at(&c->x, v);
}

double chart_y(const struct chart *c, double v)
{
	return svg_axis_at(&c->y, v);
}

struct svg_point chart_point(const struct chart *c, double x, double y)
{
	return (struct svg_point){ chart_x(c, x), chart_y(c, y) };
}

/* ---- sheets ---- */

#define SHEET_WIDTH 1100.0
#define SHEET_LEFT 74.0
#define SHEET_GAP 92.0
#define SHEET_HEAD 92.0 /* above a panel: title, note, label of its y axis */
#define SHEET_FOOT 62.0
#define SHEET_TOP 84.0

static void widen(const struct sheet_panel *p, double low[2], double high[2])
{
	for (size_t i = 0; i < p->n + p->n_line; i++) {
		const struct svg_point *v = i < p->n ? &p->point[i] : &p->line[i - p->n];
		double reach = i >= p->n && p->half ? p->half[i - p->n] : 0.0;

		low[0] = fmin(low[0], v->x);
		high[0] = fmax(high[0], v->x);
		low[1] = fmin(low[1], p->log_y && v->y - reach <= 0.0 ? v->y : v->y - reach);
		high[1] = fmax(high[1], v->y + reach);
	}
	if (p->zero) {
		low[1] = fmin(low[1], 0.0);
		high[1] = fmax(high[1], 0.0);
	}
	if (p->diagonal)
		for (int i = 0; i < 2; i++) {
			low[i] = fmin(low[0], low[1]);
			high[i] = fmax(high[0], high[1]);
		}
}

static void draw_sheet_panel(struct strbuf *out, struct chart *c, const struct sheet_panel *p)
{
	double low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY };
	double width = c->right - c->left;

	widen(p, low, high);
	svg_axis_init(&c->x, low[0], high[0], p->log_x, 5);
	svg_axis_init(&c->y, low[1], high[1], p->log_y, 5);
	svg_text(out, "section", c->left, c->top - 62.0, SVG_START, 0.0, svg_fit(p->title, 18.0, width));
	if (p->note)
		svg_text(out, "note", c->left, c->top - 42.0, SVG_START, 0.0, svg_fit(p->note, 12.5, width));
	svg_text(out, "label", c->left - 60.0, c->top - 14.0, SVG_START, 0.0,
		 svg_fit(p->y_label, CHART_LABEL, width));
	chart_frame(out, c, p->x_label, NULL, true);
	if (p->zero)
		svg_line(out, "mean", c->left, chart_y(c, 0.0), c->right, chart_y(c, 0.0));
	if (p->diagonal)
		svg_line(out, "mean", c->left, c->bottom, c->right, c->top);
	for (size_t i = 0; i < p->n; i++)
		svg_mark(out, p->series ? p->series[i] : 0, p->series ? p->series[i] : 0,
			 chart_x(c, p->point[i].x), chart_y(c, p->point[i].y));
	for (size_t i = 0; i + 1 < p->n_line; i++) {
		struct svg_point two[2] = { chart_point(c, p->line[i].x, p->line[i].y),
					    chart_point(c, p->line[i + 1].x, p->line[i + 1].y) };

		svg_series_line(out, 1, two, 2);
	}
	for (size_t i = 0; p->half && i < p->n_line; i++) {
		svg_whisker(out, 1, chart_x(c, p->line[i].x), chart_y(c, p->line[i].y - p->half[i]),
			    chart_y(c, p->line[i].y + p->half[i]));
		svg_marker(out, 1, chart_x(c, p->line[i].x), chart_y(c, p->line[i].y));
	}
}

/* Writes the text in lines of at most `width`; returns how many. out NULL: only counts. */
static size_t wrap(struct strbuf *out, const char *text, double x, double y, double width)
{
	char line[512];
	size_t lines = 0;

	while (*text) {
		size_t len = 0, end = 0;

		for (;; len++) { /* as many words as fit, one at least */
			if (text[len] && text[len] != ' ')
				continue;
			snprintf(line, sizeof line, "%.*s", (int)(len < 500 ? len : 500), text);
			if (end && svg_text_width(line, 12.5) > width)
				break;
			end = len;
			if (!text[len])
				break;
		}
		snprintf(line, sizeof line, "%.*s", (int)(end < 500 ? end : 500), text);
		if (out)
			svg_text(out, "note", x, y + 18.0 * (double)lines, SVG_START, 0.0, line);
		lines++;
		text += end + (text[end] == ' ');
	}
	return lines;
}

void sheet_draw(struct strbuf *out, const char *title, const char *note, const struct sheet_panel *panel,
		size_t n)
{
	size_t columns = n > 1 ? 2 : 1, rows = (n + columns - 1) / columns;
	double width = n > 1 ? (SHEET_WIDTH - SHEET_LEFT - SHEET_GAP - 24.0) / 2.0 : 560.0;
	double whole = n > 1 ? SHEET_WIDTH : SHEET_LEFT + width + 24.0;
	double height = n > 1 ? 0.62 * width : 0.8 * width;
	double top = SHEET_TOP + 18.0 * ((double)wrap(NULL, note, 0.0, 0.0, whole - 28.0) - 1.0);

	svg_begin(out, whole, top + (double)rows * (SHEET_HEAD + height + SHEET_FOOT), title, note);
	svg_text(out, "title", 14.0, 42.0, SVG_START, 0.0, svg_fit(title, 24.0, whole - 28.0));
	wrap(out, note, 14.0, 66.0, whole - 28.0);
	for (size_t i = 0; i < n; i++) {
		struct chart c = { .left = SHEET_LEFT + (double)(i % columns) * (width + SHEET_GAP) };

		c.right = c.left + width;
		c.top = top + SHEET_HEAD + (double)(i / columns) * (SHEET_HEAD + height + SHEET_FOOT);
		c.bottom = c.top + height;
		draw_sheet_panel(out, &c, &panel[i]);
	}
	svg_end(out);
}
