/* Lays panels out and draws them with common/svg. See anova.h. */
#include "predictors/anova/anova.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/draw/svg.h"

#define MAX_PLACES 12 /* levels beside each other on an axis; more are put together */
#define MAX_LINES 6 /* lines in one panel */
#define MAX_PAIRS 12 /* interaction panels */
#define WIDTH 1200.0
#define LABEL_MAX 96
#define MARGIN 28.0
#define GUTTER 26.0 /* between panels */
#define AXIS_ROOM 62.0 /* tick labels and the label of the y axis, left of each row */
#define PLOT_HEIGHT 200.0
#define TICK_SIZE 12.0
#define LABEL_SIZE 13.0

/* Levels of a factor as they are drawn: as they are, or put together where they are many. */
struct groups {
	size_t n;
	uint32_t *of; /* per level */
	char label[MAX_PLACES][LABEL_MAX];
};

struct cell {
	size_t n;
	double sum;
};

struct panel {
	const struct anova_factor *across, *by; /* by: NULL for a main effect */
	struct groups x, line;
	struct cell cell[MAX_PLACES * MAX_PLACES]; /* line-major */
	const struct anova_term *term; /* NULL: not in the model */
};

/* The unit that the end of a name tells, or NULL; *out_len is the length of the name before it. */
static const char *unit_of(const char *name, size_t *out_len)
{
	static const struct {
		const char *end, *unit;
	} known[] = { { "_s", "s" },   { "_ms", "ms" }, { "_us", "\xc2\xb5s" }, { "_mb", "MB" },
		      { "_gb", "GB" }, { "_j", "J" },   { "_w", "W" },          { "_percent", "%" } };
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		size_t end = strlen(known[i].end);

		if (len > end && !strcmp(name + len - end, known[i].end)) {
			*out_len = len - end;
			return known[i].unit;
		}
	}
	*out_len = len;
	return NULL;
}

/* "time_s" is shown as "time (s)". */
static void put_label(char *buf, size_t size, const char *name)
{
	size_t len;
	const char *unit = unit_of(name, &len);

	if (unit)
		snprintf(buf, size, "%.*s (%s)", (int)len, name, unit);
	else
		snprintf(buf, size, "%s", name);
}

/* ---- groups ---- */

struct counted {
	uint32_t level;
	size_t n;
};

static int by_count(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return (x->level > y->level) - (x->level < y->level);
}

/* Cuts between characters where the text is too long. */
static void copy_label(char *label, const char *text)
{
	size_t len = strlen(text);

	if (len >= LABEL_MAX)
		for (len = LABEL_MAX - 1; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
	memcpy(label, text, len);
	label[len] = '\0';
}

/* Words: the most frequent keep their place, the others become one group. */
static void group_words(const struct anova_factor *f, struct counted *count, size_t max, struct groups *g)
{
	qsort(count, f->n_levels, sizeof *count, by_count);
	for (size_t i = 0; i < f->n_levels; i++) {
		g->of[count[i].level] = (uint32_t)(i < max - 1 ? i : max - 1);
		if (i < max - 1)
			copy_label(g->label[i], f->label[count[i].level]);
	}
	snprintf(g->label[max - 1], sizeof g->label[max - 1], "%zu others", f->n_levels - (max - 1));
	g->n = max;
}

/* The label of a level, rounded where it is long; buf of 32 bytes. */
static const char *short_number(const struct anova_factor *f, size_t level, char *buf)
{
	if (strlen(f->label[level]) <= 6)
		return f->label[level];
	snprintf(buf, 32, "%.3g", f->value[level]);
	return buf;
}

/* Numbers: neighbours together, about as many observations in each group. */
static void group_numbers(const struct anova_factor *f, const struct counted *count, size_t n, size_t max,
			  struct groups *g)
{
	size_t seen = 0, from = 0;

	for (size_t i = 0; i < f->n_levels; i++) {
		g->of[i] = (uint32_t)g->n;
		seen += count[i].n;
		if (i + 1 == f->n_levels || (g->n + 1 < max && seen * max >= (g->n + 1) * n)) {
			char low[32], high[32];

			if (from == i)
				copy_label(g->label[g->n], short_number(f, i, low));
			else
				snprintf(g->label[g->n], sizeof g->label[0], "%s\xe2\x80\x93%s",
					 short_number(f, from, low), short_number(f, i, high));
			from = i + 1;
			g->n++;
		}
	}
}

static int make_groups(const struct anova *a, const struct anova_factor *f, size_t max, struct groups *g,
		       struct err *err)
{
	struct counted *count = mem_calloc(f->n_levels, sizeof *count);

	g->of = mem_array(f->n_levels, sizeof *g->of);
	if (!count || !g->of) {
		free(count);
		return err_nomem(err, "a plot");
	}
	for (size_t i = 0; i < f->n_levels; i++)
		count[i].level = (uint32_t)i;
	for (size_t i = 0; i < a->n; i++)
		count[f->at[i]].n++;
	if (f->n_levels <= max) {
		for (size_t i = 0; i < f->n_levels; i++) {
			g->of[i] = (uint32_t)i;
			copy_label(g->label[i], f->label[i]);
		}
		g->n = f->n_levels;
	} else if (f->category) {
		group_words(f, count, max, g);
	} else {
		group_numbers(f, count, a->n, max < 6 ? max : 6, g);
	}
	free(count);
	return 0;
}

/* ---- panels ---- */

static const struct anova_term *find_term(const struct anova *a, uint32_t factors)
{
	for (size_t i = 0; i < a->n_terms; i++)
		if (a->term[i].factors == factors)
			return &a->term[i];
	return NULL;
}

static void panel_release(struct panel *p)
{
	free(p->x.of);
	free(p->line.of);
}

/* Main effect of factor i, or interaction of i and j: the one with fewer levels becomes the lines. */
static int panel_init(struct panel *p, const struct anova *a, size_t i, size_t j, struct err *err)
{
	bool pair = i != j;
	int rc;

	if (pair && a->factor[j].n_levels > a->factor[i].n_levels) {
		size_t swap = i;

		i = j;
		j = swap;
	}
	p->across = &a->factor[i];
	p->by = pair ? &a->factor[j] : NULL;
	p->term = find_term(a, (uint32_t)1 << i | (uint32_t)1 << j);
	rc = make_groups(a, p->across, MAX_PLACES, &p->x, err);
	if (!rc && pair)
		rc = make_groups(a, p->by, MAX_LINES, &p->line, err);
	if (rc)
		return rc;
	if (!pair)
		p->line.n = 1;
	for (size_t k = 0; k < a->n; k++) {
		size_t line = pair ? p->line.of[p->by->at[k]] : 0;
		struct cell *c = &p->cell[line * MAX_PLACES + p->x.of[p->across->at[k]]];

		c->n++;
		c->sum += a->y[k];
	}
	return 0;
}

static double cell_mean(const struct cell *c)
{
	return c->n ? c->sum / (double)c->n : NAN;
}

static double shown(const struct anova *a, double y)
{
	return a->log ? exp(y) : y;
}

static void stretch(double *low, double *high, double v)
{
	if (isfinite(v)) {
		*low = fmin(*low, v);
		*high = fmax(*high, v);
	}
}

/* One axis for all panels of a kind, so that their heights can be compared. */
static void common_axis(struct svg_axis *y, const struct anova *a, const struct panel *panel, size_t n)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t i = 0; i < n; i++)
		for (size_t line = 0; line < panel[i].line.n; line++)
			for (size_t x = 0; x < panel[i].x.n; x++) {
				const struct cell *c = &panel[i].cell[line * MAX_PLACES + x];
				double reach = panel[i].by ? 0.0 : anova_interval(a, c->n);

				stretch(&low, &high, shown(a, cell_mean(c) - reach));
				stretch(&low, &high, shown(a, cell_mean(c) + reach));
			}
	svg_axis_init(y, low, high, a->log, 7);
}

struct place {
	double x, y, width, height; /* of the plotting area */
};

static double slot(const struct place *at, const struct panel *p, size_t i)
{
	return at->x + at->width * ((double)i + 0.5) / (double)p->x.n;
}

/* Labels that would run into each other are turned. */
static bool labels_turn(const struct panel *p, double width)
{
	for (size_t i = 0; i < p->x.n; i++)
		if (svg_text_width(p->x.label[i], TICK_SIZE) > width / (double)p->x.n - 6.0)
			return true;
	return false;
}

static void draw_axes(struct strbuf *out, const struct place *at, const struct panel *p,
		      const struct svg_axis *y, bool first)
{
	bool turned = labels_turn(p, at->width);
	char buf[256];

	for (size_t i = 0; i < y->n_ticks; i++) {
		double v = svg_axis_at(y, y->tick[i]);

		svg_line(out, "grid", at->x, v, at->x + at->width, v);
		if (first)
			svg_text(out, "tick", at->x - 8.0, v + 4.0, SVG_END, 0.0,
				 svg_tick_label(y, y->tick[i], buf));
	}
	for (size_t i = 0; i < p->x.n; i++) {
		double x = slot(at, p, i), floor_y = at->y + at->height;

		svg_line(out, "axis", x, floor_y, x, floor_y + 4.0);
		if (turned)
			svg_text(out, "tick", x + 4.0, floor_y + 17.0, SVG_END, 35.0,
				 svg_fit(p->x.label[i], TICK_SIZE, 72.0));
		else
			svg_text(out, "tick", x, floor_y + 18.0, SVG_MIDDLE, 0.0, p->x.label[i]);
	}
	svg_line(out, "axis", at->x, at->y + at->height, at->x + at->width, at->y + at->height);
	put_label(buf, sizeof buf, p->across->name);
	svg_text(out, "label", at->x + at->width / 2.0, at->y + at->height + (turned ? 66.0 : 38.0),
		 SVG_MIDDLE, 0.0, svg_fit(buf, LABEL_SIZE, at->width));
}

static void draw_line(struct strbuf *out, const struct anova *a, const struct place *at,
		      const struct panel *p, const struct svg_axis *y, size_t line)
{
	struct svg_point point[MAX_PLACES];
	size_t n = 0;

	for (size_t i = 0; i < p->x.n; i++) {
		const struct cell *c = &p->cell[line * MAX_PLACES + i];

		if (c->n)
			point[n++] =
				(struct svg_point){ slot(at, p, i), svg_axis_at(y, shown(a, cell_mean(c))) };
	}
	/* between words there is nothing to interpolate, but a line shows which points belong together */
	svg_series_line(out, line, point, n);
	for (size_t i = 0; i < p->x.n && !p->by; i++) {
		const struct cell *c = &p->cell[line * MAX_PLACES + i];
		double reach = anova_interval(a, c->n);

		if (c->n)
			svg_whisker(out, line, slot(at, p, i), svg_axis_at(y, shown(a, cell_mean(c) - reach)),
				    svg_axis_at(y, shown(a, cell_mean(c) + reach)));
	}
	for (size_t i = 0; i < n; i++)
		svg_marker(out, line, point[i].x, point[i].y);
}

/* "njobs  o 1  # 3  ^ 5", above the plot; entries that do not fit go to a second line. */
static void draw_legend(struct strbuf *out, const struct place *at, const struct panel *p)
{
	double x = at->x, y = at->y - 30.0;
	char buf[256];

	put_label(buf, sizeof buf, p->by->name);
	svg_text(out, "tick", x, y + 4.0, SVG_START, 0.0, svg_fit(buf, TICK_SIZE, 100.0));
	x += svg_text_width(svg_fit(buf, TICK_SIZE, 100.0), TICK_SIZE) + 18.0;
	for (size_t i = 0; i < p->line.n; i++) {
		const char *label = svg_fit(p->line.label[i], TICK_SIZE, 110.0);
		double width = svg_text_width(label, TICK_SIZE) + 28.0;

		if (x + width > at->x + at->width + 14.0 && y < at->y - 20.0) {
			x = at->x + 10.0;
			y += 17.0;
		}
		svg_marker(out, i, x, y);
		svg_text(out, "tick", x + 9.0, y + 4.0, SVG_START, 0.0, label);
		x += width;
	}
}

static void panel_title(const struct panel *p, char *buf, size_t size)
{
	char name[160];

	if (p->by)
		snprintf(name, sizeof name, "%.70s \xc3\x97 %.70s", p->across->name, p->by->name);
	else
		snprintf(name, sizeof name, "%.150s", p->across->name);
	snprintf(buf, size, "%s", name);
}

static void panel_facts(const struct panel *p, char *buf, size_t size)
{
	const struct anova_term *t = p->term;

	if (!t)
		snprintf(buf, size, "not in the model");
	else if (isnan(t->p))
		snprintf(buf, size, "%.1f %% of the variation", 100.0 * t->share);
	else if (t->p < 1e-4)
		snprintf(buf, size, "%.1f %% of the variation, p < 0.0001", 100.0 * t->share);
	else
		snprintf(buf, size, "%.1f %% of the variation, p %.2g", 100.0 * t->share, t->p);
}

static void draw_panel(struct strbuf *out, const struct anova *a, const struct place *at,
		       const struct panel *p, const struct svg_axis *y, bool first)
{
	double top = at->y - (p->by ? 50.0 : 12.0), mean = 0.0;
	char title[256], facts[96];

	panel_title(p, title, sizeof title);
	panel_facts(p, facts, sizeof facts);
	svg_open(out, "panel", title);
	svg_text(out, "head", at->x, top - 16.0, SVG_START, 0.0, svg_fit(title, 15.0, at->width));
	svg_text(out, "tick", at->x, top, SVG_START, 0.0, svg_fit(facts, TICK_SIZE, at->width));
	draw_axes(out, at, p, y, first);
	if (!p->by) {
		for (size_t i = 0; i < a->n; i++)
			mean += (a->y[i] - mean) / (double)(i + 1);
		mean = svg_axis_at(y, shown(a, mean));
		svg_line(out, "mean", at->x, mean, at->x + at->width, mean);
	} else {
		draw_legend(out, at, p);
	}
	for (size_t line = 0; line < p->line.n; line++)
		draw_line(out, a, at, p, y, line);
	svg_close(out);
}

struct section {
	struct panel *panel;
	size_t n, per_row;
	double head, foot; /* room above and below a plot */
};

static double plot_width(const struct section *s)
{
	return (WIDTH - 2.0 * MARGIN - AXIS_ROOM - GUTTER * (double)(s->per_row - 1)) / (double)s->per_row;
}

static void section_fit(struct section *s)
{
	s->foot = 62.0;
	for (size_t i = 0; i < s->n; i++)
		if (labels_turn(&s->panel[i], plot_width(s)))
			s->foot = 90.0;
}

static double section_height(const struct section *s)
{
	size_t rows = (s->n + s->per_row - 1) / s->per_row;

	return s->n ? 34.0 + (double)rows * (s->head + PLOT_HEIGHT + s->foot) : 0.0;
}

static void draw_section(struct strbuf *out, const struct anova *a, const struct section *s, double top,
			 const char *title, const char *y_label)
{
	double width = plot_width(s);
	struct svg_axis y;

	svg_text(out, "section", MARGIN, top + 20.0, SVG_START, 0.0, title);
	common_axis(&y, a, s->panel, s->n);
	for (size_t i = 0; i < s->n; i++) {
		size_t row = i / s->per_row, column = i % s->per_row;
		struct place at = { .x = MARGIN + AXIS_ROOM + (double)column * (width + GUTTER),
				    .y = top + 34.0 + s->head +
					 (double)row * (s->head + PLOT_HEIGHT + s->foot),
				    .width = width,
				    .height = PLOT_HEIGHT };

		y.from = at.y + at.height;
		y.to = at.y;
		if (!column)
			svg_text(out, "label", MARGIN + 10.0, at.y + at.height / 2.0, SVG_MIDDLE, 90.0,
				 svg_fit(y_label, LABEL_SIZE, PLOT_HEIGHT + 40.0));
		draw_panel(out, a, &at, &s->panel[i], &y, !column);
	}
}

/* ---- choosing pairs ---- */

struct pair {
	size_t i, j;
	double ss;
};

static int by_ss(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->ss != y->ss)
		return x->ss > y->ss ? -1 : 1;
	if (x->i != y->i)
		return x->i < y->i ? -1 : 1;
	return (x->j > y->j) - (x->j < y->j);
}

/* The pairs to draw, those that explain most first. */
static size_t choose_pairs(const struct anova *a, struct pair *pair)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_factors; i++)
		for (size_t j = i + 1; j < a->n_factors; j++) {
			const struct anova_term *t = find_term(a, (uint32_t)1 << i | (uint32_t)1 << j);

			pair[n++] = (struct pair){ i, j, t ? t->ss : -1.0 };
		}
	qsort(pair, n, sizeof *pair, by_ss);
	return n;
}

static size_t per_row(size_t n, size_t most)
{
	size_t rows = (n + most - 1) / most;

	return n ? (n + rows - 1) / rows : 1; /* 6 panels as 3 + 3 rather than 4 + 2 */
}

static void draw(struct strbuf *out, const struct anova *a, const struct section *main,
		 const struct section *pairs, size_t n_pairs)
{
	char label[200], y_label[256], title[320], note[512];
	size_t len;
	double height = 96.0 + section_height(main) + section_height(pairs) + 12.0;

	put_label(label, sizeof label, a->target);
	snprintf(y_label, sizeof y_label, "%s %s", a->log ? "geometric mean of" : "mean", label);
	unit_of(a->target, &len);
	snprintf(title, sizeof title, "What moves %.*s", (int)(len < 250 ? len : 250), a->target);
	snprintf(note, sizeof note,
		 "%zu runs of %zu settings; R\xc2\xb2 %.3f. Whiskers: 95 %% intervals from the residual of "
		 "the model (%zu "
		 "degrees of freedom); dashed: mean of all runs.",
		 a->n, a->n_settings, a->r2, a->residual_df);
	svg_begin(out, WIDTH, height, title, note);
	svg_text(out, "title", MARGIN, 42.0, SVG_START, 0.0, svg_fit(title, 24.0, WIDTH - 2.0 * MARGIN));
	svg_text(out, "note", MARGIN, 66.0, SVG_START, 0.0, note);
	draw_section(out, a, main, 88.0, "Main effects", y_label);
	if (pairs->n) {
		if (n_pairs > pairs->n)
			snprintf(title, sizeof title, "Interactions: the %zu of %zu pairs that explain most",
				 pairs->n, n_pairs);
		else
			snprintf(title, sizeof title, "Interactions");
		draw_section(out, a, pairs, 88.0 + section_height(main) + 12.0, title, y_label);
	}
	svg_end(out);
}

int anova_plot(const struct anova *a, struct strbuf *out, struct err *err)
{
	struct pair pair[ANOVA_MAX_FACTORS * ANOVA_MAX_FACTORS / 2];
	size_t n_pairs = choose_pairs(a, pair), n_drawn = n_pairs < MAX_PAIRS ? n_pairs : MAX_PAIRS;
	struct panel *panel = mem_calloc(a->n_factors + n_drawn, sizeof *panel);
	struct section main = {
		.panel = panel, .n = a->n_factors, .per_row = per_row(a->n_factors, 4), .head = 46.0
	};
	struct section pairs = { .n = n_drawn, .per_row = per_row(n_drawn, 3), .head = 84.0 };
	int rc = 0;

	if (!panel)
		return err_nomem(err, "a plot");
	pairs.panel = panel + a->n_factors;
	for (size_t i = 0; i < main.n && !rc; i++)
		rc = panel_init(&panel[i], a, i, i, err);
	for (size_t i = 0; i < n_drawn && !rc; i++)
		rc = panel_init(&pairs.panel[i], a, pair[i].i, pair[i].j, err);
	if (!rc) {
		section_fit(&main);
		section_fit(&pairs);
		draw(out, a, &main, &pairs, n_pairs);
		if (out->failed)
			rc = err_nomem(err, "a plot");
	}
	for (size_t i = 0; i < a->n_factors + n_drawn; i++)
		panel_release(&panel[i]);
	free(panel);
	return rc;
}
