/* Drawing charts as SVG that stands alone: no script, no outside font or style, light or dark as the viewer
 * prefers. Callers say where and in which role; colours, fonts and line widths live in one style sheet here.
 *
 * Roles (CSS classes): "title" "section" "head" "label" "tick" "note" for text, "axis" "grid" "mean" for
 * lines, "frame" for boxes. Series have numbers: a colour that colour-blind readers can tell apart (Okabe and
 * Ito, 2008) and a marker with another shape, so that a chart also reads in grey. Nothing is checked call by
 * call: strbuf's `failed` tells at the end. Coordinates that are not finite are drawn at 0. */
#ifndef COMMON_DRAW_SVG_H
#define COMMON_DRAW_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "common/strbuf.h"

#define SVG_SERIES 8     /* series k looks like series k % 8 */
#define SVG_MAX_TICKS 12

/* Title and description are for screen readers; the drawing is `width` x `height` units and scales. */
void svg_begin(struct strbuf *out, double width, double height, const char *title, const char *description);
/* The same as a part of an HTML page that has the style sheet once, in its own <style>: `role` is
 * its class. */
void svg_begin_inside(struct strbuf *out, const char *role, double width, double height, const char *title,
                      const char *description);
const char *svg_style(void);
void svg_end(struct strbuf *out);

void svg_open(struct strbuf *out, const char *role, const char *title); /* a group; title may be NULL */
void svg_close(struct strbuf *out);

void svg_line(struct strbuf *out, const char *role, double x1, double y1, double x2, double y2);
void svg_box(struct strbuf *out, const char *role, double x, double y, double width, double height);

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };
/* turn: degrees, anticlockwise, about (x, y). Names from outside are safe here. */
void svg_text(struct strbuf *out, const char *role, double x, double y, enum svg_anchor anchor, double turn,
              const char *text);

struct svg_point {
	double x, y;
};
void svg_series_line(struct strbuf *out, size_t series, const struct svg_point *point, size_t n);
void svg_series_bar(struct strbuf *out, size_t series, double x, double y, double width, double height);
void svg_whisker(struct strbuf *out, size_t series, double x, double low_y, double high_y);
void svg_whisker_across(struct strbuf *out, size_t series, double y, double low_x, double high_x);
void svg_marker(struct strbuf *out, size_t series, double x, double y);
/* Colour and shape apart: series k of more than 8 stay apart as (k, k + k / 8). */
void svg_mark(struct strbuf *out, size_t colour, size_t shape, double x, double y);
/* Thousands of small points as one element. */
void svg_dots(struct strbuf *out, size_t series, const struct svg_point *point, size_t n);
/* Diagonal lines in the colour of the background over a box: a second sign beside its colour. */
void svg_hatch(struct strbuf *out, double x, double y, double width, double height);

/* Text in which everything that XML does not allow is replaced: markup, control characters, bytes that are
 * not UTF-8. */
void svg_escape(struct strbuf *out, const char *text);
/* The text cut to fit `width` units at a font size, with an ellipsis; in a ring of 8 buffers. */
const char *svg_fit(const char *text, double size, double width);
double svg_text_width(const char *text, double size); /* an estimate: no font is at hand */

/* ---- axes ---- */
struct svg_axis {
	double low, high;   /* values */
	double from, to;    /* where they lie */
	bool log;
	double tick[SVG_MAX_TICKS];
	size_t n_ticks;
};
/* Widens low..high to round numbers (2, 3, 5 times powers of ten under log) and places ticks, about
 * `n` of them. Equal or non-finite ends are helped to a sensible range. */
void svg_axis_init(struct svg_axis *a, double low, double high, bool log, size_t n);
/* Where a value lies; ends beyond the axis clamp. */
double svg_axis_at(const struct svg_axis *a, double value);
char *svg_tick_label(const struct svg_axis *a, double value, char *buf); /* buf of 32 bytes; returns it */

#endif
