/* What the figures of the report share: their frame on the page, two sizes, legends, small multiples. Axes
 * are in common/draw/frame.h. */
#ifndef SIM_REPORT_CHART_H
#define SIM_REPORT_CHART_H

#include "common/draw/frame.h"
#include "sim/report/data.h"

#define CHART_WIDE 960.0   /* a desk or paper */
#define CHART_NARROW 344.0 /* a phone */

/* A figure on its way: made by its file, written out by report.c. */
struct report_figure {
	struct strbuf see;       /* the sentence that says what to see: text */
	struct strbuf csv;       /* its data */
	struct strbuf svg;       /* HTML: the drawings */
	const char *missing;     /* why there is none; NULL: it is there. Static. */
	bool table;              /* the data are few: shown as a table, too */
	bool skip;               /* not even worth a word */
};
struct report_figure_ops {
	const char *id, *title;
	int (*make)(const struct report_data *d, struct report_figure *f, struct err *err);
};
extern const struct report_figure_ops report_fig_attainment, report_fig_tradeoff, report_fig_predicted,
	report_fig_residuals, report_fig_importances, report_fig_anova, report_fig_timeline,
	report_fig_calibration, report_fig_coverage, report_fig_sweep;

/* A figure is drawn twice: for a desk or paper, and for a phone. */
struct chart_size {
	const char *role;
	double width;
	bool narrow;
	const char *see;         /* the description of the drawing */
};
typedef void chart_draw(struct strbuf *out, const struct chart_size *s, const void *what);
void chart_both(struct report_figure *f, chart_draw *draw, const void *what);
/* svg_end() ends it */
void chart_begin(struct strbuf *out, const struct chart_size *s, double height, const char *title);
/* ",1.5,...": cells behind the first, and the line end */
void chart_cells(struct strbuf *csv, const double *v, size_t n);

/* Where entries of a legend go: left to right, then on the next line. Returns the height used; out NULL:
 * measures only. */
struct legend_entry {
	const char *text;
	size_t colour, shape;
};
/* As a shape: a patch of the colour; hatched; its outline. */
#define LEGEND_BAR SIZE_MAX
#define LEGEND_HATCHED (SIZE_MAX - 1)
#define LEGEND_OPEN (SIZE_MAX - 2)
/* The patch itself, of any size. */
void chart_patch(struct strbuf *out, size_t colour, size_t shape, double x, double y, double width,
                 double height);
double chart_legend(struct strbuf *out, const struct legend_entry *e, size_t n, double left, double top,
                    double width);

/* Values by rows, with intervals: policies down, a share across. */
struct chart_rows {
	const char **label; size_t n_rows;
	const char *const *series; size_t n_series;
	const struct interval *value; /* row-major; mean NaN: none */
	const double *target;         /* per row, drawn as a stroke; NULL: none */
	const char *x_label, *title;
};
chart_draw chart_draw_rows; /* of a struct chart_rows */

/* Small multiples: panels of equal size in a grid. */
struct chart_grid {
	double width;                 /* of the whole */
	size_t n, columns;
	/* head: title and a line; foot: numbers */
	double left, top, gap, head, foot, panel_width, panel_height;
};
void chart_grid_fit(struct chart_grid *g, size_t n, double width, size_t most_columns, double aspect);
double chart_grid_height(const struct chart_grid *g);
void chart_grid_place(const struct chart_grid *g, size_t i, struct chart *c);
bool chart_grid_first(const struct chart_grid *g, size_t i); /* of its row */
/* The labels that all panels share, and the two lines above a panel. */
void chart_grid_labels(struct strbuf *out, const struct chart_grid *g, const char *x_label,
                       const char *y_label);
void chart_grid_head(struct strbuf *out, const struct chart *c, const char *title, const char *note);

/* ---- words ---- */
/* In a ring of 16 buffers of 48 bytes. */
const char *word_percent(double share);  /* "93.4 %" */
const char *word_points(double share);   /* "+3.4 points" */
const char *word_number(double v);       /* four digits */
const char *word_short(double v);        /* two digits */
const char *word_seconds(double s);
const char *word_count(double n);        /* "1,000" */
const char *word_p(double p);            /* "p < 0.0001", "p 0.023" */
/* A metric's value as its unit wants it. */
const char *word_metric(enum metric m, double v);
bool word_is_share(enum metric m);       /* shown in percent */

#endif
