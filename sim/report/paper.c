/* The report of `compare --paper -o DIR`: Figures 9 and 10 of the Courier paper as pictures, its Tables 4, 6,
 * 8 and 11 beside ours, and why they differ. Reads paper.json (docs/REPLAY_OUTPUT.md). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/draw/html.h"
#include "common/mem.h"
#include "sim/report/chart.h"
#include "sim/report/data.h"

#define MAX_JOBS 16
#define MAX_SERIES SVG_SERIES

struct bars { /* a value for each policy and job */
	const char *policy[MAX_SERIES];
	size_t n_policies;
	size_t n_jobs;
	double value[MAX_SERIES][MAX_JOBS]; /* NaN: not known */
	bool miss[MAX_SERIES][MAX_JOBS];
	const char *y_label, *title;
	double line; /* dashed; NaN: none */
};

/* ---- reading ---- */

static size_t policy_at(struct bars *b, const char *name)
{
	size_t k = 0;

	while (k < b->n_policies && strcmp(b->policy[k], name))
		k++;
	if (k == b->n_policies && k < MAX_SERIES)
		b->policy[b->n_policies++] = name;
	return k;
}

static int read_bars(const struct json *root, const char *figure, const char *member, struct bars *b,
		     struct err *err)
{
	const struct json *list = json_get(root, figure);

	if (json_type(list) != JSON_ARRAY)
		return err_fail(err, ERR_FORMAT, "paper.json: %s: a list is expected", figure);
	for (size_t k = 0; k < MAX_SERIES; k++)
		for (size_t i = 0; i < MAX_JOBS; i++)
			b->value[k][i] = NAN;
	for (const struct json *v = json_first(list); v; v = json_next(v)) {
		const char *name = json_string(json_get(v, "policy"), NULL);
		double job = json_number(json_get(v, "job"), NAN);
		size_t k = name ? policy_at(b, name) : MAX_SERIES;

		if (k >= MAX_SERIES || !(job >= 1.0 && job <= MAX_JOBS) || job != floor(job))
			return err_fail(err, ERR_FORMAT,
					"paper.json: %s: each has a policy and a job from 1 to %d", figure,
					MAX_JOBS);
		b->value[k][(size_t)job - 1] = json_number(json_get(v, member), NAN);
		b->miss[k][(size_t)job - 1] = !json_bool(json_get(v, "met"), true);
		b->n_jobs = (size_t)job > b->n_jobs ? (size_t)job : b->n_jobs;
	}
	if (!b->n_jobs)
		return err_fail(err, ERR_FORMAT, "paper.json: %s: is empty", figure);
	return 0;
}

/* ---- drawing ---- */

static void draw_bars(struct strbuf *out, const struct chart_size *s, const void *what)
{
	const struct bars *b = what;
	struct legend_entry entry[MAX_SERIES];
	struct chart c = { .left = 58.0, .right = s->width - 12.0 };
	double most = isnan(b->line) ? 0.0 : b->line, step, width;
	char text[32];

	for (size_t k = 0; k < b->n_policies; k++) {
		entry[k] = (struct legend_entry){ b->policy[k], k, LEGEND_BAR };
		for (size_t i = 0; i < b->n_jobs; i++)
			if (b->value[k][i] > most)
				most = b->value[k][i];
	}
	c.top = chart_legend(NULL, entry, b->n_policies, 2.0, 0.0, s->width - 4.0) + 34.0;
	c.bottom = c.top + (s->narrow ? 190.0 : 260.0);
	chart_begin(out, s, c.bottom + 46.0, b->title);
	chart_legend(out, entry, b->n_policies, 2.0, 0.0, s->width - 4.0);
	svg_axis_init(&c.y, 0.0, most > 0.0 ? most : 1.0, false, 5);
	c.x = (struct svg_axis){ .low = 0.0, .high = (double)b->n_jobs };
	chart_frame(out, &c, NULL, b->y_label, true);
	step = (c.right - c.left) / (double)b->n_jobs;
	width = 0.8 * step / (double)b->n_policies;
	for (size_t i = 0; i < b->n_jobs; i++) {
		snprintf(text, sizeof text, s->narrow ? "%zu" : "job %zu", i + 1);
		svg_text(out, "tick", c.left + ((double)i + 0.5) * step, c.bottom + 18.0, SVG_MIDDLE, 0.0,
			 text);
		for (size_t k = 0; k < b->n_policies; k++) {
			double x = c.left + ((double)i + 0.1) * step + (double)k * width, y;

			if (!isfinite(b->value[k][i]))
				continue;
			y = chart_y(&c, b->value[k][i]);
			chart_patch(out, k, LEGEND_BAR, x, y, width - 1.0, c.bottom - y);
			/* a hatch is as high as wide: a high bar takes several */
			for (double at = y; b->miss[k][i] && at < c.bottom; at += width - 1.0)
				svg_hatch(out, x, at, width - 1.0, fmin(width - 1.0, c.bottom - at));
		}
	}
	if (!isnan(b->line))
		svg_line(out, "mean", c.left, chart_y(&c, b->line), c.right, chart_y(&c, b->line));
	svg_end(out);
}

static void bars_csv(const struct bars *b, const char *name, struct strbuf *csv)
{
	strbuf_printf(csv, "policy,job,%s\n", name);
	for (size_t k = 0; k < b->n_policies; k++)
		for (size_t i = 0; i < b->n_jobs; i++) {
			strbuf_printf(csv, "%s,%zu", b->policy[k], i + 1);
			chart_cells(csv, &b->value[k][i], 1);
		}
}

/* One part of a figure: its sentence, the drawing and the data. */
static int put_part(struct strbuf *out, const struct json *root, const char *figure, const char *member,
		    const char *id, const char *see, struct bars *b, struct err *err)
{
	struct report_figure f = { 0 };
	int rc = read_bars(root, figure, member, b, err);

	if (!rc) {
		strbuf_puts(&f.see, see);
		bars_csv(b, member, &f.csv);
		chart_both(&f, draw_bars, b);
		strbuf_printf(out, "<figure id=\"%s\">\n<figcaption><h3>", id);
		html_text(out, b->title);
		strbuf_puts(out, "</h3>\n<p class=\"see\">");
		html_text(out, see);
		strbuf_puts(out, "</p></figcaption>\n");
		strbuf_add(out, strbuf_text(&f.svg), f.svg.len);
		strbuf_puts(out, "<p class=\"data\">Data: ");
		html_csv_link(out, id, &f.csv);
		strbuf_puts(out, "</p>\n</figure>\n");
		if (f.see.failed || f.csv.failed || f.svg.failed)
			rc = err_nomem(err, "a figure");
	}
	strbuf_release(&f.see);
	strbuf_release(&f.csv);
	strbuf_release(&f.svg);
	return rc;
}

/* ---- tables ---- */

struct printed { /* what the paper prints of models of time on its test rows */
	const char *table, *what, *policy; /* policy: whose model is ours; NULL: none in this experiment */
	double mse, r2;
};
static const struct printed printed[] = {
	{ "4", "linear model with all products", NULL, 9928.175, 0.64005 },
	{ "6", "queueing model (here: the calibrated one)", "queueing", 4538.05, 0.8330 },
	{ "8, 11", "forest, 2000 trees of depth 6", "courier", 376.659, 0.9861 },
	{ "11", "boosting without the load", "boost", 3024.48, 0.8887 },
	{ NULL, "boosting with the load", "boost-full", NAN, NAN },
	{ NULL, "queueing model times a forest", "postrider", NAN, NAN },
};

static const struct json *score_of_policy(const struct json *root, const char *policy)
{
	for (const struct json *v = json_first(json_get(root, "table11")); v && policy; v = json_next(v))
		if (!strcmp(json_string(json_get(v, "policy"), ""), policy))
			return json_get(v, "time");
	return NULL;
}

static void put_cell(struct strbuf *out, double v)
{
	strbuf_puts(out, "<td>");
	html_text(out, isnan(v) ? "" : word_number(v));
	strbuf_puts(out, "</td>");
}

static void put_scores(struct strbuf *out, const struct json *root)
{
	html_element(out, "h2", "Models of time on rows they have not seen");
	html_scroll_begin(out, "models of time");
	strbuf_puts(
		out,
		"<table>\n"
		"<thead><tr><th>model</th><th>table of the paper</th><th>MSE, paper</th><th>R2, paper</th>"
		"<th>MSE, ours</th><th>R2, ours</th><th>MAPE, ours</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
		const struct json *ours = score_of_policy(root, printed[i].policy);
		double mape = json_number(json_get(ours, "mape"), NAN);

		strbuf_puts(out, "<tr><th>");
		html_text(out, printed[i].what);
		strbuf_printf(out, "</th><td>%s</td>", printed[i].table ? printed[i].table : "");
		put_cell(out, printed[i].mse);
		put_cell(out, printed[i].r2);
		put_cell(out, json_number(json_get(ours, "mse"), NAN));
		put_cell(out, json_number(json_get(ours, "r2"), NAN));
		strbuf_puts(out, "<td>");
		html_text(out, isnan(mape) ? "" : word_percent(mape));
		strbuf_puts(out, "</td></tr>\n");
	}
	strbuf_puts(out, "</tbody></table>\n");
	html_scroll_end(out);
	strbuf_puts(out,
		    "<p>Why the numbers differ: the paper splits its three "
		    "replications of each "
		    "setting at random, so that replicates of a test row are among the training rows, and a "
		    "forest "
		    "repeats them. Two of the three replications were never published, so here a setting is "
		    "in the table once, and what is scored are settings that the model has not seen. Ours "
		    "are also "
		    "learnt from a part of the table, because the other part is what happens.</p>\n");
}

static void put_many(struct strbuf *out, const struct json *root)
{
	for (const struct json *e = json_first(json_get(root, "experiments")); e; e = json_next(e)) {
		char title[96];

		snprintf(title, sizeof title, "%s jobs", word_count(json_number(json_get(e, "jobs"), NAN)));
		html_element(out, "h3", title);
		html_scroll_begin(out, title);
		strbuf_puts(out, "<table>\n<thead><tr><th>policy</th><th>met</th><th>kept of "
				 "promised</th><th>accuracy, a miss is 0</th></tr></thead>\n<tbody>\n");
		for (const struct json *p = json_first(json_get(e, "policies")); p; p = json_next(p)) {
			strbuf_puts(out, "<tr><th>");
			html_text(out, json_string(json_get(p, "name"), ""));
			strbuf_printf(out, "</th><td>%s</td>",
				      word_percent(json_number(json_get(p, "attainment_all"), NAN)));
			strbuf_printf(out, "<td>%s</td>",
				      word_percent(json_number(json_get(p, "attainment"), NAN)));
			put_cell(out, json_number(json_get(p, "accuracy_zero"), NAN));
			strbuf_puts(out, "</tr>\n");
		}
		strbuf_puts(out, "</tbody></table>\n");
		html_scroll_end(out);
	}
}

int report_paper(const struct json *root, struct strbuf *out, struct err *err)
{
	struct bars b[4] = {
		{ .title = "Figure 9: fulfilment of the limit",
		  .y_label = "response time / limit",
		  .line = 1.0 },
		{ .title = "Figure 9: accuracy", .y_label = "accuracy", .line = NAN },
		{ .title = "Figure 10: error of the predicted time",
		  .y_label = "absolute error (s)",
		  .line = NAN },
		{ .title = "Figure 10: error of the predicted accuracy",
		  .y_label = "absolute error",
		  .line = NAN },
	};
	int rc;

	if (strcmp(json_string(json_get(root, "kind"), ""), "paper"))
		return err_fail(err, ERR_FORMAT, "paper.json: kind: \"paper\" is expected");
	html_begin(out, "The experiment of the Courier paper");
	strbuf_puts(out, "<header>\n");
	html_element(out, "h1", "The experiment of the Courier paper");
	strbuf_puts(out, "<p>Five jobs of its Table 9 and many of its generator, each decided by every "
			 "policy and played "
			 "three times. Made by <code>");
	html_text(out, json_string(json_get(root, "command"), ""));
	strbuf_puts(out, "</code></p>\n</header>\n<h2>The five jobs</h2>\n");
	rc = put_part(out, root, "figure9", "of_slo", "figure9-time",
		      "Below the dashed line the limit is met; a hatched bar missed it.", &b[0], err);
	if (!rc)
		rc = put_part(out, root, "figure9", "accuracy", "figure9-accuracy",
			      "What the jobs reached; a hatched bar missed its limit.", &b[1], err);
	if (!rc)
		rc = put_part(out, root, "figure10", "time_error_s", "figure10-time",
			      "How far the time predicted for the chosen batch was from the measured one.",
			      &b[2], err);
	if (!rc)
		rc = put_part(out, root, "figure10", "accuracy_error", "figure10-accuracy",
			      "The same of the accuracy, where the table has one.", &b[3], err);
	if (rc)
		return rc;
	put_scores(out, root);
	strbuf_puts(out, "<h2>All jobs</h2>\n");
	put_many(out, root);
	html_end(out);
	return 0;
}
