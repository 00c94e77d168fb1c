/* SVG elements, one style sheet, and axes with round numbers. See svg.h. */
#include "common/draw/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One place for looks. Okabe and Ito's colours on white; on black the same hues, lighter where they
 * need it. */
/* clang-format off */
static const char style[] =
	"text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif;fill:#1a1a1a}"
	".title{font-size:24px;font-weight:600}.section{font-size:18px;font-weight:600}"
	".head{font-size:15px;font-weight:600}.label{font-size:13px}"
	".tick{font-size:12px;fill:#444}.note{font-size:12.5px;fill:#444}"
	".back,.open{fill:#fff}.frame{fill:none;stroke:#999}.axis{stroke:#444}.grid{stroke:#e3e3e3}"
	".mean{stroke:#888;stroke-dasharray:5 4}.line{fill:none;stroke-width:2;stroke-linejoin:round}"
	".whisker{fill:none;stroke-width:1.5}.mark{stroke-width:2}"
	".dots{fill:none;stroke-width:3;stroke-linecap:round;stroke-opacity:.5}"
	".hatch{fill:none;stroke:#fff;stroke-width:1.5}"
	".c0{stroke:#0072b2}.c1{stroke:#d55e00}.c2{stroke:#009e73}.c3{stroke:#b8538c}"
	".c4{stroke:#b87a00}.c5{stroke:#3a9bd4}.c6{stroke:#555}.c7{stroke:#7a5230}"
	".f0{fill:#0072b2}.f1{fill:#d55e00}.f2{fill:#009e73}.f3{fill:#b8538c}"
	".f4{fill:#b87a00}.f5{fill:#3a9bd4}.f6{fill:#555}.f7{fill:#7a5230}"
	"@media (prefers-color-scheme:dark){"
	"text{fill:#eee}.tick,.note{fill:#bbb}"
	".back,.open{fill:#15181c}.hatch{stroke:#15181c}.frame{stroke:#777}.axis{stroke:#bbb}"
	".grid{stroke:#30353c}.mean{stroke:#999}"
	".c0{stroke:#5aa9e6}.c1{stroke:#ff8a3d}.c2{stroke:#2ecc9b}.c3{stroke:#e394c3}"
	".c4{stroke:#f0b429}.c5{stroke:#9ad7ff}.c6{stroke:#bbb}.c7{stroke:#c79a72}"
	".f0{fill:#5aa9e6}.f1{fill:#ff8a3d}.f2{fill:#2ecc9b}.f3{fill:#e394c3}"
	".f4{fill:#f0b429}.f5{fill:#9ad7ff}.f6{fill:#bbb}.f7{fill:#c79a72}}";
/* clang-format on */

/* Two decimals place a pixel; -0.00 and what is not finite become 0. */
static double at(double v)
{
	double r = isfinite(v) ? round(fmax(fmin(v, 1e7), -1e7) * 100.0) / 100.0 : 0.0;

	return r == 0.0 ? 0.0 : r;
}

/* The length of the character that starts at s, 0 if there is none that XML allows. */
static size_t character(const unsigned char *s)
{
	unsigned code, low;
	size_t len;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f ? 1 : 0;
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		len = 2;
		code = s[0] & 0x1fu;
		low = 0xa0; /* below lie control characters */
	} else if (s[0] >= 0xe0 && s[0] <= 0xef) {
		len = 3;
		code = s[0] & 0x0fu;
		low = 0x800;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		len = 4;
		code = s[0] & 0x07u;
		low = 0x10000;
	} else {
		return 0;
	}
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	if (code < low || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) || (code & 0xfffe) == 0xfffe)
		return 0;
	return len;
}

void svg_escape(struct strbuf *out, const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t len = character(s);

		if (!len) {
			strbuf_puts(out, "\xef\xbf\xbd");
			s++;
			continue;
		}
		switch (*s) {
		case '<': strbuf_puts(out, "&lt;"); break;
		case '>': strbuf_puts(out, "&gt;"); break;
		case '&': strbuf_puts(out, "&amp;"); break;
		case '"': strbuf_puts(out, "&quot;"); break;
		case '\'': strbuf_puts(out, "&apos;"); break;
		default: strbuf_add(out, s, len); break;
		}
		s += len;
	}
}

/* Advance of a character, in units of the font size, in the wider ones of the usual sans-serif fonts. */
static double advance(unsigned char c)
{
	if (strchr("iljtfI.,:;'|!()[] ", c))
		return 0.36;
	if (c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '%')
		return 0.92;
	if (c >= 'A' && c <= 'Z')
		return 0.7;
	return c < 0x80 ? 0.62 : 0.8;
}

double svg_text_width(const char *text, double size)
{
	double sum = 0.0;

	for (const unsigned char *s = (const unsigned char *)text; *s; s++)
		if ((*s & 0xc0) != 0x80)
			sum += advance(*s);
	return sum * size;
}

const char *svg_fit(const char *text, double size, double width)
{
	static _Thread_local char ring[8][256];
	static _Thread_local unsigned turn;
	char *buf = ring[turn++ % 8];
	double sum = 0.0;
	size_t n = 0;

	if (svg_text_width(text, size) <= width && strlen(text) < sizeof ring[0])
		return memcpy(buf, text, strlen(text) + 1);
	width -= 0.9 * size; /* the ellipsis */
	while (text[n] && n < sizeof ring[0] - 8) {
		double w = ((unsigned char)text[n] & 0xc0) == 0x80 ? 0.0
								   : advance((unsigned char)text[n]) * size;

		if (w > 0.0 && sum + w > width)
			break;
		sum += w;
		n++;
	}
	while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--; /* the ring ended inside a character */
	memcpy(buf, text, n);
	memcpy(buf + n, "\xe2\x80\xa6", 4);
	return buf;
}

/* ---- elements ---- */

static void put_size(struct strbuf *out, double width, double height)
{
	strbuf_printf(out, " role=\"img\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\">\n", at(width),
		      at(height), at(width), at(height));
}

static void put_about(struct strbuf *out, const char *title, const char *description)
{
	strbuf_puts(out, "<title>");
	svg_escape(out, title);
	strbuf_puts(out, "</title>\n<desc>");
	svg_escape(out, description);
	strbuf_puts(out, "</desc>\n");
}

void svg_begin(struct strbuf *out, double width, double height, const char *title, const char *description)
{
	strbuf_puts(out, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
	put_size(out, width, height);
	put_about(out, title, description);
	strbuf_printf(out, "<style>%s</style>\n", style);
	svg_box(out, "back", 0.0, 0.0, width, height);
}

void svg_begin_inside(struct strbuf *out, const char *role, double width, double height, const char *title,
		      const char *description)
{
	strbuf_printf(out, "<svg class=\"%s\"", role);
	put_size(out, width, height);
	put_about(out, title, description);
}

const char *svg_style(void)
{
	return style;
}

void svg_end(struct strbuf *out)
{
	strbuf_puts(out, "</svg>\n");
}

void svg_open(struct strbuf *out, const char *role, const char *title)
{
	strbuf_printf(out, "<g class=\"%s\">", role);
	if (title) {
		strbuf_puts(out, "<title>");
		svg_escape(out, title);
		strbuf_puts(out, "</title>");
	}
	strbuf_puts(out, "\n");
}

void svg_close(struct strbuf *out)
{
	strbuf_puts(out, "</g>\n");
}

void svg_line(struct strbuf *out, const char *role, double x1, double y1, double x2, double y2)
{
	strbuf_printf(out, "<line class=\"%s\" x1=\"%g\" y1=\"%g\" x2=\"%g\" y2=\"%g\"/>\n", role, at(x1),
		      at(y1), at(x2), at(y2));
}

void svg_box(struct strbuf *out, const char *role, double x, double y, double width, double height)
{
	strbuf_printf(out, "<rect class=\"%s\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"/>\n", role, at(x),
		      at(y), fmax(at(width), 0.0), fmax(at(height), 0.0));
}

void svg_text(struct strbuf *out, const char *role, double x, double y, enum svg_anchor anchor, double turn,
	      const char *text)
{
	static const char *const name[] = { "start", "middle", "end" };

	strbuf_printf(out, "<text class=\"%s\" x=\"%g\" y=\"%g\" text-anchor=\"%s\"", role, at(x), at(y),
		      name[anchor]);
	if (turn != 0.0)
		strbuf_printf(out, " transform=\"rotate(%g %g %g)\"", at(-turn), at(x), at(y));
	strbuf_puts(out, ">");
	svg_escape(out, text);
	strbuf_puts(out, "</text>\n");
}

void svg_series_line(struct strbuf *out, size_t series, const struct svg_point *point, size_t n)
{
	if (n < 2)
		return;
	strbuf_printf(out, "<polyline class=\"line c%zu\" points=\"", series % SVG_SERIES);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(out, "%s%g,%g", i ? " " : "", at(point[i].x), at(point[i].y));
	strbuf_puts(out, "\"/>\n");
}

void svg_series_bar(struct strbuf *out, size_t series, double x, double y, double width, double height)
{
	char role[16];

	snprintf(role, sizeof role, "f%zu", series % SVG_SERIES);
	svg_box(out, role, x, y, width, height);
}

void svg_whisker(struct strbuf *out, size_t series, double x, double low_y, double high_y)
{
	strbuf_printf(out, "<path class=\"whisker c%zu\" d=\"M%g %gH%gM%g %gV%gM%g %gH%g\"/>\n",
		      series % SVG_SERIES, at(x - 5.0), at(low_y), at(x + 5.0), at(x), at(low_y), at(high_y),
		      at(x - 5.0), at(high_y), at(x + 5.0));
}

void svg_whisker_across(struct strbuf *out, size_t series, double y, double low_x, double high_x)
{
	strbuf_printf(out, "<path class=\"whisker c%zu\" d=\"M%g %gV%gM%g %gH%gM%g %gV%g\"/>\n",
		      series % SVG_SERIES, at(low_x), at(y - 5.0), at(y + 5.0), at(low_x), at(y), at(high_x),
		      at(high_x), at(y - 5.0), at(y + 5.0));
}

void svg_marker(struct strbuf *out, size_t series, double x, double y)
{
	svg_mark(out, series, series, x, y);
}

void svg_dots(struct strbuf *out, size_t series, const struct svg_point *point, size_t n)
{
	if (!n)
		return;
	strbuf_printf(out, "<path class=\"dots c%zu\" d=\"", series % SVG_SERIES);
	for (size_t i = 0; i < n; i++) /* a line of no length is its round cap */
		strbuf_printf(out, "M%g %gh0", at(point[i].x), at(point[i].y));
	strbuf_puts(out, "\"/>\n");
}

void svg_hatch(struct strbuf *out, double x, double y, double width, double height)
{
	static const double pitch = 6.0;
	static const size_t most = 400; /* strokes: a page is no wider */

	if (!(width > 0.0) || !(height > 0.0))
		return;
	strbuf_puts(out, "<path class=\"hatch\" d=\"");
	for (size_t i = 0; i < most; i++) {
		/* from the foot upwards to the right, cut at the right edge */
		double from = x + 1.0 + (double)i * pitch, run = fmin(height, x + width - from);

		if (run <= 0.0)
			break;
		strbuf_printf(out, "M%g %gl%g %g", at(from), at(y + height), at(run), at(-run));
	}
	strbuf_puts(out, "\"/>\n");
}

void svg_mark(struct strbuf *out, size_t colour, size_t shape_index, double x, double y)
{
	/* relative paths around the point: disc, square, triangle, diamond, triangle down, ring, cross,
	 * plus */
	static const char *const shape[SVG_SERIES] = {
		"m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
		"m-4 -4h8v8h-8z",
		"m0 -5.5l5 9h-10z",
		"m0 -5.5l5 5.5l-5 5.5l-5 -5.5z",
		"m0 5.5l5 -9h-10z",
		"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
		"m-4 -4l8 8m0 -8l-8 8",
		"m-5 0h10m-5 -5v10",
	};
	size_t k = shape_index % SVG_SERIES, c = colour % SVG_SERIES;

	if (k == 5)
		strbuf_printf(out, "<path class=\"mark open c%zu\" d=\"M%g %g%s\"/>\n", c, at(x), at(y),
			      shape[k]);
	else if (k > 5)
		strbuf_printf(out, "<path class=\"mark c%zu\" fill=\"none\" d=\"M%g %g%s\"/>\n", c, at(x),
			      at(y), shape[k]);
	else
		strbuf_printf(out, "<path class=\"f%zu\" d=\"M%g %g%s\"/>\n", c, at(x), at(y), shape[k]);
}

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten, not below v > 0. */
static double round_step(double v)
{
	double base = pow(10.0, floor(log10(v))), x = v / base;

	return base * (x <= 1.0 + 1e-9 ? 1.0 : x <= 2.0 + 1e-9 ? 2.0 : x <= 5.0 + 1e-9 ? 5.0 : 10.0);
}

static void linear_ticks(struct svg_axis *a, size_t n)
{
	double step = round_step((a->high - a->low) / (double)n), first;

	a->low = floor(a->low / step + 1e-9) * step;
	a->high = ceil(a->high / step - 1e-9) * step;
	first = a->low;
	for (size_t i = 0; a->n_ticks < SVG_MAX_TICKS; i++) {
		double v = first + (double)i * step;

		if (v > a->high + 0.5 * step)
			break;
		a->tick[a->n_ticks++] = fabs(v) < 1e-9 * step ? 0.0 : v;
	}
}

static void log_ticks(struct svg_axis *a)
{
	static const double step[3][4] = { { 1, 2, 3, 5 }, { 1, 3, 0, 0 }, { 1, 0, 0, 0 } };
	static const size_t n_steps[3] = { 4, 2, 1 };
	double decades = log10(a->high / a->low);
	size_t kind = decades < 2.0 ? 0 : decades < 5.0 ? 1 : 2;
	double stride = kind == 2 ? ceil(decades / 8.0) : 1.0, below = 0.0, above = INFINITY;
	double start = floor(log10(a->low)) - 1.0, end = ceil(log10(a->high)) + 1.0;

	/* the ends move to the nearest round values outside, then the round values between are ticks */
	for (int pass = 0; pass < 2; pass++) {
		for (double d = start; d <= end; d += stride)
			for (size_t k = 0; k < n_steps[kind]; k++) {
				double v = step[kind][k] * pow(10.0, d);

				if (!pass && v <= a->low * (1.0 + 1e-9))
					below = fmax(below, v);
				if (!pass && v >= a->high * (1.0 - 1e-9))
					above = fmin(above, v);
				if (pass && v >= a->low * (1.0 - 1e-9) && v <= a->high * (1.0 + 1e-9) &&
				    a->n_ticks < SVG_MAX_TICKS)
					a->tick[a->n_ticks++] = v;
			}
		if (below > 0.0)
			a->low = below;
		if (isfinite(above))
			a->high = above;
	}
}

void svg_axis_init(struct svg_axis *a, double low, double high, bool log, size_t n)
{
	*a = (struct svg_axis){ .low = low, .high = high, .to = 1.0, .log = log && low > 0.0 };
	if (!isfinite(low) || !isfinite(high) || low > high) {
		a->low = 0.0;
		a->high = 1.0;
		a->log = false;
	}
	a->low = fmax(fmin(a->low, 1e306), -1e306);
	a->high = fmax(fmin(a->high, 1e306), -1e306);
	/* a range that rounding would swallow, or whose steps would */
	if (!(a->high - a->low > fmax(1e-12 * fmax(fabs(a->low), fabs(a->high)), 1e-290))) {
		double room = fabs(a->low) < 1e-280 ? 1.0 : 0.1 * fabs(a->low);

		a->low -= room;
		a->high += room;
	}
	if (a->log && a->low > 1e-290 && a->high < 1e290)
		log_ticks(a);
	else {
		a->log = false;
		linear_ticks(a, n ? n : 5);
	}
}

double svg_axis_at(const struct svg_axis *a, double value)
{
	double share;

	if (isnan(value))
		return NAN;
	value = fmax(fmin(value, a->high), a->low);
	share = a->log ? log(value / a->low) / log(a->high / a->low) : (value - a->low) / (a->high - a->low);
	return a->from + share * (a->to - a->from);
}

char *svg_tick_label(const struct svg_axis *a, double value, char *buf)
{
	double top = fmax(fabs(a->low), fabs(a->high)), step;
	int decimals = 0;

	if (a->log || a->n_ticks < 2 || top >= 1e6 || top < 1e-3) {
		snprintf(buf, 32, "%.4g", value);
		return buf;
	}
	for (step = a->tick[1] - a->tick[0]; decimals < 9 && fabs(step - round(step)) > 1e-6 * step;
	     decimals++)
		step *= 10.0;
	snprintf(buf, 32, "%.*f", decimals, value);
	return buf;
}
