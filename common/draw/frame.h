/* A plotting area with two axes, ticks and labels, and sheets: drawings that stand alone with a few panels of
 * points and lines. The report (sim/report/chart.h), the page of a campaign, `anova --residuals`, `evaluate
 * --plot` and `train --learning-curve` draw with it. */
#ifndef COMMON_DRAW_FRAME_H
#define COMMON_DRAW_FRAME_H

#include <stdint.h>

#include "common/draw/svg.h"

#define CHART_TICK 12.0    /* sizes of letters, as in svg.c */
#define CHART_LABEL 13.0
#define CHART_HEAD 15.0

struct chart {                   /* a plotting area inside a drawing */
	double left, top, right, bottom;
	struct svg_axis x, y;
	bool percent_x, percent_y; /* shares are labelled in percent */
};
/* Lays the axes into the area, then grid, ticks and labels (above the y axis, below the x axis; NULL: none).
 * Numbers that would touch another are left out. */
void chart_frame(struct strbuf *out, struct chart *c, const char *x_label, const char *y_label,
                 bool y_numbers);
double chart_x(const struct chart *c, double v);
double chart_y(const struct chart *c, double v);
struct svg_point chart_point(const struct chart *c, double x, double y);

struct sheet_panel {
	const char *title, *note, *x_label, *y_label; /* note: NULL for none */
	const struct svg_point *point; size_t n;      /* values; marked */
	const uint8_t *series;                        /* of each point; NULL: all of one */
	const struct svg_point *line; size_t n_line;  /* joined */
	const double *half;                           /* of an interval about each point of the line; NULL */
	bool log_x, log_y;
	bool zero;                                    /* a dashed line at y = 0 */
	bool diagonal;                                /* one at y = x, and equal axes */
};
/* Panels two by two, title and note above; one panel alone is larger. */
void sheet_draw(struct strbuf *out, const char *title, const char *note, const struct sheet_panel *panel,
                size_t n);

#endif
