/* Puts the report together: who made it and how, the summary, the table, the figures. See report.h. */
#include "sim/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text/text.h"
#include "common/draw/html.h"
#include "sim/report/chart.h"
#include "sim/compare/folder.h"
#include "sim/report/data.h"

static const struct report_figure_ops *const figure[] = {
	&report_fig_attainment,  &report_fig_tradeoff, &report_fig_predicted, &report_fig_residuals,
	&report_fig_importances, &report_fig_anova,    &report_fig_timeline,  &report_fig_calibration,
	&report_fig_coverage,    &report_fig_sweep,
};

/* ---- facts ---- */

static void put_fact(struct strbuf *out, const char *term, const char *text, bool code)
{
	if (!text || !*text)
		return;
	html_element(out, "dt", term);
	strbuf_puts(out, code ? "<dd><code>" : "<dd>");
	html_text(out, text);
	strbuf_puts(out, code ? "</code></dd>\n" : "</dd>\n");
}

/* Scalars of an object as "key value, key value", but for its name and title; what is not a scalar is left
 * to the JSON. */
static void put_scalars(struct strbuf *out, const struct json *object)
{
	size_t n = 0;

	for (const struct json *v = json_first(object); v; v = json_next(v)) {
		enum json_type t = json_type(v);

		if (!strcmp(json_key(v), "name") || !strcmp(json_key(v), "title") ||
		    (t != JSON_NUMBER && t != JSON_STRING && t != JSON_BOOL))
			continue;
		strbuf_printf(out, "%s%s ", n++ ? ", " : "", json_key(v));
		if (t == JSON_NUMBER)
			strbuf_puts(out, word_number(json_number(v, NAN)));
		else if (t == JSON_BOOL)
			strbuf_puts(out, json_bool(v, false) ? "yes" : "no");
		else
			strbuf_puts(out, json_string(v, ""));
	}
}

static bool all_zero(const struct json *object)
{
	for (const struct json *v = json_first(object); v; v = json_next(v))
		if (json_number(v, 1.0) != 0.0)
			return false;
	return json_first(object) != NULL;
}

static void put_object(struct strbuf *out, const char *term, const struct json *object)
{
	struct strbuf text = { 0 };

	if (all_zero(object))
		strbuf_puts(&text, "none");
	else
		put_scalars(&text, object);
	put_fact(out, term, strbuf_text(&text), false);
	out->failed |= text.failed;
	strbuf_release(&text);
}

static void put_world(struct strbuf *out, const struct json *world)
{
	const struct json *splits = json_get(world, "splits");
	struct strbuf text = { 0 };

	strbuf_puts(&text, json_string(json_get(world, "name"), ""));
	if (json_string(json_get(world, "title"), NULL))
		strbuf_printf(&text, ": %s", json_string(json_get(world, "title"), ""));
	if (json_size(world) > 1) {
		strbuf_puts(&text, "; ");
		put_scalars(&text, world);
	}
	put_fact(out, "world", strbuf_text(&text), false);
	strbuf_reset(&text);
	for (const struct json *v = json_first(splits); v; v = json_next(v))
		strbuf_printf(&text, "%s%s", text.len ? "; " : "", json_string(v, ""));
	put_fact(out, "learnt from, happens", strbuf_text(&text), false);
	out->failed |= text.failed;
	strbuf_release(&text);
}

static void put_trace(struct strbuf *out, const struct json *trace)
{
	const char *about = json_string(json_get(trace, "about"), NULL);
	struct strbuf text = { 0 };

	strbuf_puts(&text, json_string(json_get(trace, "name"), ""));
	if (about)
		strbuf_printf(&text, ": %s", about);
	if (json_string(json_get(trace, "fingerprint"), NULL))
		strbuf_printf(&text, " (fingerprint %s)", json_string(json_get(trace, "fingerprint"), ""));
	put_fact(out, "trace", strbuf_text(&text), false);
	out->failed |= text.failed;
	strbuf_release(&text);
}

static void put_machine(struct strbuf *out, const struct json *timing)
{
	const struct json *m = json_get(timing, "machine");
	double cores = json_number(json_get(m, "cores"), NAN);
	char text[512];

	if (!m) {
		put_fact(out, "machine", "not known: timing.json is not in the folder", false);
		return;
	}
	snprintf(text, sizeof text, "%.200s, %.200s, %s cores",
		 json_string(json_get(m, "system"), "system unknown"),
		 json_string(json_get(m, "processor"), "processor unknown"), word_number(cores));
	put_fact(out, "machine", text, false);
	put_fact(out, "ran", json_string(json_get(timing, "created"), NULL), false);
}

static void put_policies(struct strbuf *out, const struct report_data *d)
{
	html_element(out, "dt", d->policies.n > 1 ? "policies" : "policy");
	strbuf_puts(out, "<dd>");
	for (size_t i = 0; i < d->policies.n; i++) {
		strbuf_puts(out, i ? "; <b>" : "<b>");
		html_text(out, d->policies.policy[i].name);
		strbuf_puts(out, "</b>");
		if (d->policies.policy[i].title) {
			strbuf_puts(out, " ");
			html_text(out, d->policies.policy[i].title);
		}
		if (i == d->baseline)
			strbuf_puts(out, " (baseline)");
	}
	strbuf_puts(out, "</dd>\n");
}

/* Seeds above 2^53 come as text. */
static void put_seed(struct strbuf *out, const struct json *seed)
{
	char number[32];

	if (json_type(seed) == JSON_NUMBER)
		put_fact(out, "seed", text_shortest(json_number(seed, 0.0), number), false);
	else
		put_fact(out, "seed", json_string(seed, NULL), false);
}

static void put_confidence(struct strbuf *out, const struct report_data *d)
{
	double asked = json_number(json_get(d->compare, "confidence"), NAN);
	char text[128];

	if (isnan(asked))
		return;
	snprintf(text, sizeof text, "%s asked of bounds%s; intervals of %s", word_percent(asked),
		 json_bool(json_get(d->compare, "adapt"), false) ? ", which adapt to what happens" : "",
		 word_percent(d->level));
	put_fact(out, "confidence", text, false);
}

static void put_facts(struct strbuf *out, const struct report_data *d)
{
	const struct json *c = d->compare;

	strbuf_puts(out, "<dl class=\"facts\">\n");
	put_policies(out, d);
	put_trace(out, json_get(c, "trace"));
	put_world(out, json_get(c, "world"));
	put_object(out, "cluster", json_get(c, "cluster"));
	put_object(out, "disturbances", json_get(c, "disturbances"));
	put_seed(out, json_get(c, "seed"));
	put_fact(out, "replications", word_count(d->replications), false);
	put_confidence(out, d);
	put_fact(out, "program", json_string(json_get(c, "program"), NULL), false);
	put_fact(out, "command", json_string(json_get(c, "command"), NULL), true);
	put_machine(out, d->timing);
	strbuf_puts(out, "</dl>\n");
}

/* ---- figures ---- */

static void figure_release(struct report_figure *f)
{
	strbuf_release(&f->see);
	strbuf_release(&f->csv);
	strbuf_release(&f->svg);
}

static int write_figure(struct strbuf *out, const struct report_figure_ops *ops,
			const struct report_figure *f, size_t number, struct err *err)
{
	int rc = 0;

	strbuf_printf(out, "<figure id=\"%s\"%s>\n<figcaption>\n<h3>%zu. ", ops->id,
		      f->missing ? " class=\"missing\"" : "", number);
	html_text(out, ops->title);
	strbuf_puts(out, "</h3>\n<p class=\"see\">");
	if (f->missing)
		html_text(out, f->missing);
	strbuf_puts(out, f->missing ? " " : "");
	html_text(out, strbuf_text(&f->see));
	strbuf_puts(out, "</p>\n</figcaption>\n");
	if (!f->missing) {
		strbuf_add(out, strbuf_text(&f->svg), f->svg.len);
		strbuf_puts(out, "<p class=\"data\">Data: ");
		html_csv_link(out, ops->id, &f->csv);
		strbuf_puts(out, "</p>\n");
		if (f->table) {
			strbuf_puts(out, "<details><summary>The data as a table</summary>\n");
			rc = html_csv_table(out, ops->title, &f->csv, err);
			strbuf_puts(out, "</details>\n");
		}
	}
	strbuf_puts(out, "</figure>\n");
	return rc;
}

static int put_figures(struct strbuf *out, const struct report_data *d, struct err *err)
{
	size_t number = 0;
	int rc = 0;

	for (size_t i = 0; i < sizeof figure / sizeof *figure && !rc; i++) {
		struct report_figure f = { 0 };

		rc = figure[i]->make(d, &f, err);
		if (!rc && (f.see.failed || f.csv.failed || f.svg.failed))
			rc = err_nomem(err, "a figure");
		if (!rc && !f.skip)
			rc = write_figure(out, figure[i], &f, ++number, err);
		figure_release(&f);
	}
	return rc;
}

static int write_page(const struct report_data *d, struct strbuf *out, struct err *err)
{
	bool compared = d->policies.n > 1;
	char title[160];
	int rc;

	if (compared)
		snprintf(title, sizeof title, "Comparison of %zu policies", d->policies.n);
	else
		snprintf(title, sizeof title, "Replay under %.100s", d->policies.policy[0].name);
	html_begin(out, title);
	strbuf_puts(out, "<header>\n");
	html_element(out, "h1", title);
	report_put_summary(d, out);
	strbuf_puts(out, "<p class=\"soft\">Seed, version, machine, command line, world and trace: <a "
			 "href=\"#run\">what was "
			 "run</a>.</p>\n</header>\n");
	strbuf_puts(out,
		    compared ? "<h2>The comparison in numbers</h2>\n" : "<h2>The replay in numbers</h2>\n");
	report_put_tables(d, out);
	strbuf_puts(out, "<h2>Figures</h2>\n");
	rc = put_figures(out, d, err);
	strbuf_puts(out, "<h2>Decision times</h2>\n");
	report_put_decision_times(d, out);
	strbuf_puts(out, "<h2 id=\"run\">What was run</h2>\n");
	put_facts(out, d);
	strbuf_puts(out,
		    "<footer><p class=\"soft\">Written by postrider report from the files of one folder. The "
		    "numbers are those of compare.json; nothing in this page is loaded from elsewhere.</p>"
		    "</footer>\n");
	html_end(out);
	return rc;
}

/* Is the folder one of `compare --paper`? */
static int read_paper(const char *dir, struct json **out, struct err *err)
{
	char *path = folder_path(dir, "paper.json", err), *other = folder_path(dir, "compare.json", err);
	int rc = path && other ? 0 : -ERR_NOMEM;

	*out = NULL;
	if (!rc && !access(path, F_OK) && access(other, F_OK))
		rc = json_read_file(path, REPORT_MAX_JSON, out, err);
	free(path);
	free(other);
	return rc;
}

int report_make(const char *dir, struct strbuf *out, struct err *err)
{
	struct report_data *d = NULL;
	struct json *paper;
	int rc = read_paper(dir, &paper, err);

	if (!rc && paper)
		rc = report_paper(paper, out, err);
	else if (!rc)
		rc = report_data_read(dir, &d, err);
	if (!rc && d)
		rc = write_page(d, out, err);
	json_free(paper);
	if (!rc && out->failed)
		rc = err_nomem(err, "a report");
	report_data_free(d);
	return rc;
}
