/* Figures of shares by policy: SLOs kept, and how often run times stayed within their bounds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/mem.h"
#include "sim/report/chart.h"

/* ---- attainment ---- */

static bool promises(const struct report_policy *p)
{
	return !(p->metric[METRIC_PROMISED].mean == 0.0);
}

/* The highest of those that can be compared, `but` aside (SIZE_MAX: none). */
static size_t highest(const struct report_policies *p, enum metric m, size_t but)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < p->n; i++) {
		const struct report_policy *q = &p->policy[i];

		if (i == but || (q->oracle && p->n > 1) || isnan(q->metric[m].mean) ||
		    (m == METRIC_ATTAINMENT && !promises(q)))
			continue;
		if (best == SIZE_MAX || q->metric[m].mean > p->policy[best].metric[m].mean)
			best = i;
	}
	return best;
}

static void say_who_promises_nothing(const struct report_policies *p, struct strbuf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		if (!promises(&p->policy[i]))
			strbuf_printf(
				out, "%s%s",
				n++ ? ", "
				    : " Of policies that promise nothing, the share is of the jobs taken: ",
				p->policy[i].name);
	if (n)
		strbuf_puts(out, ".");
}

/* Others that have the very share of the first. */
static void say_equals(const struct report_policies *p, enum metric m, size_t best, struct strbuf *out)
{
	double share = p->policy[best].metric[m].mean;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += i != best && !p->policy[i].oracle && p->policy[i].metric[m].mean == share &&
		     (m != METRIC_ATTAINMENT || promises(&p->policy[i]));
	if (n > 1)
		strbuf_printf(out, ", and so do %zu others", n);
	else
		strbuf_printf(out, ", and so does %s", p->policy[highest(p, m, best)].name);
}

/* Who is first by a share, by how much, and whether that is more than the intervals leave open. */
static void say_first(const struct report_data *d, enum metric m, const char *what, struct strbuf *out)
{
	const struct report_policies *p = &d->policies;
	size_t best = highest(p, m, SIZE_MAX), second;
	double gap;

	if (best == SIZE_MAX)
		return;
	strbuf_printf(out, "%s%s %s %s", out->len ? " " : "", p->policy[best].name, what,
		      word_percent(p->policy[best].metric[m].mean));
	second = d->note ? SIZE_MAX : highest(p, m, best);
	if (second == SIZE_MAX) {
		strbuf_puts(out, ".");
		return;
	}
	gap = p->policy[best].metric[m].mean - p->policy[second].metric[m].mean;
	if (gap == 0.0)
		say_equals(p, m, best, out);
	else
		strbuf_printf(out, ", %s points ahead of %s", word_short(100.0 * gap),
			      p->policy[second].name);
	if (gap > 0.0 && p->policy[best].metric[m].low <= p->policy[second].metric[m].high)
		strbuf_puts(out, ", and their intervals overlap");
	strbuf_puts(out, ".");
}

static int make_attainment(const struct report_data *d, struct report_figure *f, struct err *err)
{
	static const char *const series[] = { "promises kept", "met of all limits" };
	static const enum metric metric[] = { METRIC_ATTAINMENT, METRIC_ATTAINMENT_ALL };
	const struct report_policies *p = &d->policies;
	const char **label = mem_calloc(p->n, sizeof *label);
	struct interval *value = mem_calloc(p->n * 2, sizeof *value);
	struct chart_rows rows = { .label = label,
				   .n_rows = p->n,
				   .series = series,
				   .n_series = 2,
				   .value = value,
				   .x_label = "share of jobs with a limit",
				   .title = "promises kept and limits met by policy" };
	int rc = 0;

	if (label && value) {
		strbuf_puts(&f->csv, "policy,attainment,attainment_low,attainment_high,attainment_all,"
				     "attainment_all_low,attainment_all_high\n");
		for (size_t i = 0; i < p->n; i++) {
			label[i] = p->policy[i].name;
			csv_put(&f->csv, label[i]);
			for (size_t k = 0; k < 2; k++)
				value[2 * i + k] = p->policy[i].metric[metric[k]];
			chart_cells(&f->csv,
				    (double[]){ value[2 * i].mean, value[2 * i].low, value[2 * i].high,
						value[2 * i + 1].mean, value[2 * i + 1].low,
						value[2 * i + 1].high },
				    6);
		}
		say_first(d, METRIC_ATTAINMENT_ALL, d->policies.n > 1 ? "meets most, with" : "meets",
			  &f->see);
		say_first(d, METRIC_ATTAINMENT,
			  d->policies.n > 1 ? "keeps most of what it promises, with"
					    : "keeps of what it promises",
			  &f->see);
		say_who_promises_nothing(p, &f->see);
		chart_both(f, chart_draw_rows, &rows);
		f->table = true;
	} else {
		rc = err_nomem(err, "a figure");
	}
	free(label);
	free(value);
	return rc;
}

const struct report_figure_ops report_fig_attainment = { "attainment", "promises kept and limits met",
							 make_attainment };

/* ---- calibration ---- */

#define MAX_ROWS 60 /* drawn; all are in the CSV */
#define MAX_SAID 3 /* in words */

struct calibration_row {
	const struct report_policy *policy;
	struct report_calibration c;
	struct interval within;
};

/* Below, within or above what was asked, by the interval. */
static const char *kept_word(const struct calibration_row *r)
{
	if (r->within.high < r->c.confidence)
		return "fewer than asked";
	return r->within.low > r->c.confidence ? "more than asked" : "as asked, within chance";
}

static void say_calibration(const struct report_data *d, const struct calibration_row *row, size_t n,
			    struct strbuf *out)
{
	size_t as_asked = 0, fewer = 0, said = 0;

	for (size_t i = 0; i < n; i++) {
		fewer += row[i].within.high < row[i].c.confidence;
		as_asked += row[i].within.low <= row[i].c.confidence &&
			    row[i].within.high >= row[i].c.confidence;
	}
	for (size_t i = 0; i < n; i++)
		if (row[i].policy == &d->policies.policy[d->focus] && said++ < MAX_SAID)
			strbuf_printf(out,
				      "%s asked for %s and %s of %s runs stayed within their bound: %s. ",
				      row[i].policy->name, word_percent(row[i].c.confidence),
				      word_percent(row[i].within.mean), word_count(row[i].c.runs),
				      kept_word(&row[i]));
	strbuf_printf(
		out,
		"Of %zu row%s, %zu %s what was asked for in %s interval, %zu lie%s below it and %zu above.",
		n, n == 1 ? "" : "s", as_asked, as_asked == 1 ? "has" : "have",
		as_asked == 1 ? "its" : "their", fewer, fewer == 1 ? "s" : "", n - as_asked - fewer);
}

static size_t collect_calibration(const struct report_data *d, struct calibration_row *row)
{
	size_t n = 0;

	for (size_t i = 0; i < d->policies.n; i++)
		for (size_t k = 0; k < d->policies.policy[i].n_calibrations; k++) {
			const struct report_calibration *c = &d->policies.policy[i].calibration[k];

			if (row)
				row[n] = (struct calibration_row){ &d->policies.policy[i], *c,
								   metrics_wilson(c->within, c->runs,
										  d->level) };
			n++;
		}
	return n;
}

static void calibration_csv(const struct calibration_row *row, size_t n, struct strbuf *csv)
{
	strbuf_puts(csv, "policy,confidence,runs,within,share,low,high\n");
	for (size_t i = 0; i < n; i++) {
		csv_put(csv, row[i].policy->name);
		chart_cells(csv,
			    (double[]){ row[i].c.confidence, row[i].c.runs, row[i].c.within,
					row[i].within.mean, row[i].within.low, row[i].within.high },
			    6);
	}
}

static int make_calibration(const struct report_data *d, struct report_figure *f, struct err *err)
{
	static const char *const series[] = { "share within the bound" };
	size_t n = collect_calibration(d, NULL), shown = n < MAX_ROWS ? n : MAX_ROWS;
	struct calibration_row *row = mem_calloc(n + 1, sizeof *row);
	char(*text)[96] = mem_calloc(shown + 1, sizeof *text);
	const char **label = mem_calloc(shown + 1, sizeof *label);
	struct interval *value = mem_calloc(shown + 1, sizeof *value);
	double *target = mem_calloc(shown + 1, sizeof *target);
	struct chart_rows rows = { .label = label,
				   .n_rows = shown,
				   .series = series,
				   .n_series = 1,
				   .value = value,
				   .target = target,
				   .x_label = "within their bound; stroke: asked",
				   .title = "Calibration of the bounds" };
	int rc = 0;

	if (!row || !text || !label || !value || !target) {
		rc = err_nomem(err, "a figure");
	} else if (!n) {
		f->missing = "No policy gave a bound for a run time.";
	} else {
		collect_calibration(d, row);
		for (size_t i = 0; i < shown; i++) {
			snprintf(text[i], sizeof text[i], "%.70s %g %%", row[i].policy->name,
				 100.0 * row[i].c.confidence);
			label[i] = text[i];
			value[i] = row[i].within;
			target[i] = row[i].c.confidence;
		}
		calibration_csv(row, n, &f->csv);
		say_calibration(d, row, n, &f->see);
		chart_both(f, chart_draw_rows, &rows);
		f->table = n <= MAX_ROWS;
	}
	free(row);
	free(text);
	free(label);
	free(value);
	free(target);
	return rc;
}

const struct report_figure_ops report_fig_calibration = { "calibration", "Calibration of the bounds",
							  make_calibration };
