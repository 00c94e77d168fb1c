/* The comparison in numbers. See report.h.
 *
 * A difference from the baseline counts as better or worse where the paired test says so at the level of the
 * intervals; else the page says that there is no clear difference. Losses are marked like wins. */
#include "sim/report/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/csv.h"
#include "common/text/text.h"
#include "common/draw/html.h"
#include "sim/report/chart.h"

#define EN_DASH "\xe2\x80\x93"
#define STAR "\xe2\x98\x85"
#define UP "\xe2\x96\xb2"
#define DOWN "\xe2\x96\xbc"

static const enum metric main_metric[] = {
	METRIC_ATTAINMENT,   METRIC_ATTAINMENT_ALL, METRIC_ATTAINMENT_ORACLE, METRIC_ACCURACY_ZERO,
	METRIC_ACCURACY_MET, METRIC_REGRET,         METRIC_REJECTED,          METRIC_RESPONSE_MEAN,
	METRIC_RESPONSE_P95, METRIC_WAIT_MEAN,      METRIC_UTILISATION,       METRIC_COVERAGE,
	METRIC_MAPE,
};
#define N_MAIN (sizeof main_metric / sizeof *main_metric)
#define FEW_JOBS 200.0 /* of fewer, a difference that could be chance is no wonder */
#define N_FIRST 6 /* of them are about limits and accuracy; two tables fit a page where one would not */

static enum verdict verdict_of(const struct report_data *d, size_t policy, enum metric m)
{
	const struct paired_result *v = &d->policies.policy[policy].versus[m];

	if (d->baseline == SIZE_MAX || policy == d->baseline)
		return VERDICT_UNKNOWN;
	return metrics_verdict(v, m, d->level);
}

/* Not clearly different: unclear, or the same in every replication. */
static bool is_undecided(enum verdict v)
{
	return v == VERDICT_UNCLEAR || v == VERDICT_SAME;
}

static size_t rivals(const struct report_data *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->policies.n; i++)
		n += !d->policies.policy[i].oracle;
	return n;
}

/* ---- summary ---- */

/* "a, b and c" as it goes on. */
static void put_item(struct strbuf *out, size_t i, size_t n, const char *text)
{
	if (i)
		strbuf_puts(out, i + 1 == n ? " and " : ", ");
	strbuf_puts(out, text);
}

static void put_difference(const struct report_data *d, enum metric m, char *buf, size_t size)
{
	const struct paired_result *v = &d->policies.policy[d->focus].versus[m];
	const char *p = word_p(v->p_holm);

	if (word_is_share(m))
		snprintf(buf, size, "%s (%s, %s)", metric_info[m].title, word_points(v->difference), p);
	else
		snprintf(buf, size, "%s (%s%s, %s)", metric_info[m].title,
			 v->difference > 0.0 ? "+" : "\xe2\x88\x92", word_metric(m, fabs(v->difference)), p);
}

/* " better in a (+1 point, p 0.01) and b (...)"; returns how many there are. */
static size_t put_verdicts(const struct report_data *d, enum verdict want, const char *before,
			   struct strbuf *out)
{
	size_t n = 0, i = 0;

	for (size_t k = 0; k < N_MAIN; k++)
		n += verdict_of(d, d->focus, main_metric[k]) == want;
	if (n)
		strbuf_puts(out, before);
	for (size_t k = 0; k < N_MAIN; k++) {
		char item[192];

		if (verdict_of(d, d->focus, main_metric[k]) != want)
			continue;
		put_difference(d, main_metric[k], item, sizeof item);
		put_item(out, i++, n, item);
	}
	return n;
}

static void put_against_baseline(const struct report_data *d, struct strbuf *out)
{
	size_t same = 0, said = 0;

	if (d->note) {
		strbuf_printf(out, " There is %s: read the figures as what happened in this table.", d->note);
		return;
	}
	if (d->baseline == SIZE_MAX || d->focus == d->baseline)
		return;
	for (size_t k = 0; k < N_MAIN; k++)
		same += is_undecided(verdict_of(d, d->focus, main_metric[k]));
	strbuf_printf(out, " Against the baseline %s, %s is", d->policies.policy[d->baseline].name,
		      d->policies.policy[d->focus].name);
	said += put_verdicts(d, VERDICT_BETTER, " better in ", out);
	said += put_verdicts(d, VERDICT_WORSE, said ? "; worse in " : " worse in ", out);
	if (same)
		strbuf_printf(out, "%s not clearly different in %zu of the measures below", said ? ";" : "",
			      same);
	else if (!said)
		strbuf_puts(out, " not tested: there are too few replications");
	strbuf_puts(out, ".");
}

static void put_leader(const struct report_data *d, struct strbuf *out)
{
	size_t best = report_best(&d->policies, METRIC_ACCURACY_ZERO, 1);

	if (best == SIZE_MAX || rivals(d) < 2 || d->note)
		return;
	strbuf_printf(
		out,
		" With a missed limit or a refusal counted as accuracy zero, %s is the most accurate (%s)",
		d->policies.policy[best].name,
		word_metric(METRIC_ACCURACY_ZERO,
			    d->policies.policy[best].metric[METRIC_ACCURACY_ZERO].mean));
	for (size_t i = 0; i < d->policies.n; i++)
		if (d->policies.policy[i].oracle &&
		    !isnan(d->policies.policy[i].metric[METRIC_ACCURACY_ZERO].mean))
			strbuf_printf(out, "; the oracle, which knows what will happen, has %s",
				      word_metric(METRIC_ACCURACY_ZERO,
						  d->policies.policy[i].metric[METRIC_ACCURACY_ZERO].mean));
	strbuf_puts(out, ".");
}

/* "93.1 % of all limits met, accuracy 0.85 with the others counted as zero" */
static void put_merits(struct strbuf *out, const struct report_policy *p)
{
	strbuf_printf(out,
		      "it meets %s of all limits, and its accuracy is %s with those it misses or "
		      "rejects counted as zero",
		      word_percent(p->metric[METRIC_ATTAINMENT_ALL].mean),
		      word_metric(METRIC_ACCURACY_ZERO, p->metric[METRIC_ACCURACY_ZERO].mean));
}

static bool is_fixed(const struct report_policy *p)
{
	return !strncmp(p->name, "fixed:", 6);
}

/* What is done without us: the best single batch for all jobs; where there is none, the baseline. */
static size_t find_today(const struct report_data *d)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < d->policies.n; i++) {
		double v = d->policies.policy[i].metric[METRIC_ACCURACY_ZERO].mean;

		if (is_fixed(&d->policies.policy[i]) && !isnan(v) &&
		    (best == SIZE_MAX || v > d->policies.policy[best].metric[METRIC_ACCURACY_ZERO].mean))
			best = i;
	}
	return best == SIZE_MAX ? d->baseline : best;
}

static void put_today(const struct report_data *d, size_t today, struct strbuf *out)
{
	const struct report_policy *p = &d->policies.policy[today];

	if (!isnan(p->batch))
		strbuf_printf(out, "one batch for all jobs, as is done today (%s: %s, the best on a pilot)",
			      p->name, word_number(p->batch));
	else if (!is_fixed(p))
		strbuf_printf(out, "%s, the baseline", p->name);
	else
		strbuf_printf(out, "%s, which is %s", p->name,
			      today == d->baseline ? "what you do today"
						   : "the best single batch for all jobs");
}

/* "54.3 % and 0.61" */
static void put_pair(struct strbuf *out, const struct report_policy *p)
{
	strbuf_printf(out, "%s and %s", word_percent(p->metric[METRIC_ATTAINMENT_ALL].mean),
		      word_metric(METRIC_ACCURACY_ZERO, p->metric[METRIC_ACCURACY_ZERO].mean));
}

/* Ours, where another one leads, and the other single batches. */
static void put_others(const struct report_data *d, size_t best, size_t other, struct strbuf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < d->policies.n; i++) {
		if (i == best || i == other || (i != d->focus && !is_fixed(&d->policies.policy[i])))
			continue;
		strbuf_printf(out, n++ ? "; %s: " : " %s: ", d->policies.policy[i].name);
		put_pair(out, &d->policies.policy[i]);
	}
	if (n)
		strbuf_puts(out, ".");
}

/* Jobs that were really seen: of those that were drawn from a history, the jobs of the history. */
static double jobs_seen(const struct report_data *d)
{
	static const char drawn[] = "drawn from ";
	const struct json *trace = json_get(d->compare, "trace");
	const char *about = strstr(json_string(json_get(trace, "about"), ""), drawn);
	double n = NAN;

	if (!about || sscanf(about + sizeof drawn - 1, "%lf jobs", &n) != 1)
		n = d->policies.policy[d->focus].metric[METRIC_JOBS].mean;
	return round(n);
}

/* Could chance have made the difference between the two? Only what was paired with the baseline can be
 * told. */
static void put_sure(const struct report_data *d, size_t first, size_t second, struct strbuf *out)
{
	size_t tested = second == d->baseline ? first : first == d->baseline ? second : SIZE_MAX;
	enum verdict v = tested == SIZE_MAX ? VERDICT_UNKNOWN : verdict_of(d, tested, METRIC_ACCURACY_ZERO);
	const struct report_policy *a = &d->policies.policy[first], *b = &d->policies.policy[second];
	double difference = a->metric[METRIC_ACCURACY_ZERO].mean - b->metric[METRIC_ACCURACY_ZERO].mean;
	bool few = jobs_seen(d) < FEW_JOBS;
	struct strbuf text = { 0 };

	strbuf_printf(&text, "How sure is that? The difference of %s in accuracy between %s and %s ",
		      word_metric(METRIC_ACCURACY_ZERO, fabs(difference)), a->name, b->name);
	if (v == VERDICT_BETTER || v == VERDICT_WORSE)
		strbuf_printf(&text, "is hardly chance (%s).",
			      word_p(d->policies.policy[tested].versus[METRIC_ACCURACY_ZERO].p_holm));
	else if (v == VERDICT_UNCLEAR || v == VERDICT_SAME)
		strbuf_printf(&text, "could be chance: %s jobs are %s.", word_count(jobs_seen(d)),
			      few ? "few" : "too few for it");
	else
		strbuf_printf(&text, "was not tested: %s.",
			      d->replications < 2.0 ? "there is one replication" : "neither is the baseline");
	html_element(out, "p class=\"lead\" id=\"sure\"", strbuf_text(&text));
	strbuf_puts(out, "\n");
	out->failed |= text.failed;
	strbuf_release(&text);
}

/* Which policy should I use? The one whose users get most: the highest accuracy, a missed or rejected
 * limit counted as zero. Its numbers first, beside those of one batch for all; then how sure that is. */
static void put_answer(const struct report_data *d, struct strbuf *out)
{
	size_t best = report_best(&d->policies, METRIC_ACCURACY_ZERO, 1), today = find_today(d), other;
	struct strbuf text = { 0 };

	if (best == SIZE_MAX || today == SIZE_MAX || rivals(d) < 2)
		return;
	other = best == today ? d->focus : today;
	if (d->note) {
		strbuf_printf(&text, "Which policy to use cannot be told from this: there is %s.", d->note);
	} else {
		strbuf_puts(&text, best == today ? "Stay with " : "Use ");
		if (best == today)
			put_today(d, today, &text);
		else
			strbuf_puts(&text, d->policies.policy[best].name);
		strbuf_puts(&text, ": ");
		put_merits(&text, &d->policies.policy[best]);
		strbuf_puts(&text, ".");
		if (other != best) {
			bool plain = other != today || isnan(d->policies.policy[other].batch);

			strbuf_puts(&text, " With ");
			if (other == today)
				put_today(d, today, &text);
			else
				strbuf_puts(&text, d->policies.policy[other].name);
			strbuf_puts(&text, plain ? ", that is " : " that is ");
			put_pair(&text, &d->policies.policy[other]);
			strbuf_puts(&text, ".");
		}
		put_others(d, best, other, &text);
	}
	html_element(out, "p class=\"lead\" id=\"answer\"", strbuf_text(&text));
	strbuf_puts(out, "\n");
	out->failed |= text.failed;
	strbuf_release(&text);
	/* Where another one leads, ours is the one that was paired. */
	if (!d->note && best != d->baseline && other != d->baseline && today != d->focus &&
	    d->focus == d->baseline)
		put_sure(d, d->focus, today, out);
	else if (!d->note && other != best)
		put_sure(d, best, other, out);
}

void report_put_summary(const struct report_data *d, struct strbuf *out)
{
	const struct report_policy *focus = &d->policies.policy[d->focus];
	double jobs = focus->metric[METRIC_JOBS].mean;
	struct strbuf text = { 0 };

	put_answer(d, out);
	if (d->policies.n > 1)
		strbuf_printf(&text, "%zu policies met the same jobs (%s with a limit)", d->policies.n,
			      word_count(round(jobs)));
	else
		strbuf_printf(&text, "%s met %s jobs with a limit", focus->name, word_count(round(jobs)));
	if (d->replications > 1.0)
		strbuf_printf(&text, " in each of %s replications", word_count(d->replications));
	strbuf_puts(&text, ".");
	if (d->training)
		strbuf_printf(&text, " Models learnt from %s rows.", word_count((double)d->training->n_rows));
	if (!isnan(focus->metric[METRIC_ATTAINMENT].mean))
		strbuf_printf(&text, " %s kept %s of its promises", focus->name,
			      word_percent(focus->metric[METRIC_ATTAINMENT].mean));
	if (!isnan(focus->metric[METRIC_ATTAINMENT].mean) &&
	    !isnan(focus->metric[METRIC_ATTAINMENT_ALL].mean))
		strbuf_printf(&text, " and met %s of all",
			      word_percent(focus->metric[METRIC_ATTAINMENT_ALL].mean));
	if (!isnan(focus->metric[METRIC_ATTAINMENT].mean))
		strbuf_puts(&text, ".");
	put_leader(d, &text);
	put_against_baseline(d, &text);
	html_element(out, "p class=\"lead\" id=\"summary\"", strbuf_text(&text));
	strbuf_puts(out, "\n");
	out->failed |= text.failed;
	strbuf_release(&text);
}

/* ---- tables ---- */

static void put_attribute(struct strbuf *out, const char *name, double v)
{
	char buf[32];

	strbuf_printf(out, " %s=\"%s\"", name, isnan(v) ? "null" : text_shortest(v, buf));
}

static void put_interval(struct strbuf *out, enum metric m, const struct interval *v)
{
	if (isnan(v->low) || isnan(v->high))
		return;
	strbuf_puts(out, "<small>");
	if (word_is_share(m)) /* the sign once */
		strbuf_printf(out, "%.1f" EN_DASH "%s", 100.0 * v->low, word_percent(v->high));
	else
		strbuf_printf(out, "%s " EN_DASH " %s", word_metric(m, v->low), word_metric(m, v->high));
	strbuf_puts(out, "</small>");
}

static void put_versus(const struct report_data *d, size_t policy, enum metric m, struct strbuf *out)
{
	const char *p = word_p(d->policies.policy[policy].versus[m].p_holm);

	p = p[1] == ' ' && p[2] == '<' ? "p &lt; 0.0001" : p;
	switch (verdict_of(d, policy, m)) {
	case VERDICT_BETTER: strbuf_printf(out, "<small class=\"win\">" UP " better, %s</small>", p); break;
	case VERDICT_WORSE: strbuf_printf(out, "<small class=\"loss\">" DOWN " worse, %s</small>", p); break;
	case VERDICT_UNCLEAR:
	case VERDICT_SAME:
		if (d->policies.policy[policy].versus[m].difference == 0.0)
			strbuf_puts(out, "<small>= the same</small>");
		else
			strbuf_printf(out, "<small>= unclear, %s</small>", p);
		break;
	case VERDICT_UNKNOWN: break;
	}
}

static bool is_best(const struct report_data *d, size_t policy, enum metric m)
{
	const struct report_policy *p = &d->policies.policy[policy];
	size_t best;

	if (!metric_info[m].better || p->oracle || rivals(d) < 2 || d->note || isnan(p->metric[m].mean))
		return false;
	best = report_best(&d->policies, m, metric_info[m].better);
	return p->metric[m].mean == d->policies.policy[best].metric[m].mean; /* equal ones share it */
}

static void put_cell(const struct report_data *d, size_t policy, enum metric m, struct strbuf *out)
{
	const struct report_policy *p = &d->policies.policy[policy];
	const struct interval *v = &p->metric[m];
	bool best = is_best(d, policy, m);

	strbuf_puts(out, "<td data-label=\"");
	html_text(out, metric_info[m].title);
	strbuf_puts(out, "\" data-policy=\"");
	html_text(out, p->name);
	strbuf_printf(out, "\" data-metric=\"%s\"", metric_info[m].name);
	put_attribute(out, "data-value", v->mean);
	put_attribute(out, "data-low", v->low);
	put_attribute(out, "data-high", v->high);
	strbuf_puts(out, best ? "><b><abbr title=\"best\">" STAR "</abbr>&nbsp;" : ">");
	html_text(out, word_metric(m, v->mean));
	if (best)
		strbuf_puts(out, "</b>");
	put_interval(out, m, v);
	put_versus(d, policy, m, out);
	strbuf_puts(out, "</td>");
}

static void put_table(const struct report_data *d, const enum metric *metric, size_t n, const char *label,
		      struct strbuf *out)
{
	html_scroll_begin(out, label);
	strbuf_puts(out, "<table class=\"cards\">\n");
	html_element(out, "caption", label);
	strbuf_puts(out, "\n<thead><tr><th scope=\"col\">policy</th>");
	for (size_t k = 0; k < n; k++) {
		strbuf_puts(out, "<th scope=\"col\">");
		html_text(out, metric_info[metric[k]].title);
		if (metric_info[metric[k]].better)
			strbuf_printf(out, "<small>%s is better</small>",
				      metric_info[metric[k]].better > 0 ? "more" : "less");
		strbuf_puts(out, "</th>");
	}
	strbuf_puts(out, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < d->policies.n; i++) {
		strbuf_puts(out, "<tr><th scope=\"row\">");
		html_text(out, d->policies.policy[i].name);
		if (i == d->baseline)
			strbuf_puts(out, "<small>baseline</small>");
		strbuf_puts(out, "</th>\n");
		for (size_t k = 0; k < n; k++) {
			put_cell(d, i, metric[k], out);
			strbuf_puts(out, "\n");
		}
		strbuf_puts(out, "</tr>\n");
	}
	strbuf_puts(out, "</tbody>\n</table>\n");
	html_scroll_end(out);
}

static bool anybody_has(const struct report_data *d, enum metric m)
{
	for (size_t i = 0; i < d->policies.n; i++)
		if (!isnan(d->policies.policy[i].metric[m].mean))
			return true;
	return false;
}

static void put_csv(const struct report_data *d, struct strbuf *out)
{
	strbuf_puts(out, "policy,metric,value,low,high,difference,difference_low,difference_high,p,p_holm\n");
	for (size_t i = 0; i < d->policies.n; i++)
		for (size_t m = 0; m < METRICS; m++) {
			const struct report_policy *p = &d->policies.policy[i];
			const double number[] = { p->metric[m].mean, p->metric[m].low,
						  p->metric[m].high, p->versus[m].difference,
						  p->versus[m].low,  p->versus[m].high,
						  p->versus[m].p,    p->versus[m].p_holm };

			csv_put(out, p->name);
			strbuf_printf(out, ",%s", metric_info[m].name);
			chart_cells(out, number, sizeof number / sizeof *number);
		}
}

static void put_legend(const struct report_data *d, struct strbuf *out)
{
	strbuf_puts(out, "<p class=\"soft\">");
	if (d->replications > 1.0)
		strbuf_printf(
			out,
			"Means over %s replications; below each the %g\xc2\xa0%% interval (of the mean over "
			"replications). ",
			word_count(d->replications), 100.0 * d->level);
	if (rivals(d) > 1 && !d->note)
		strbuf_puts(out, STAR " is the best of a column, the oracle aside. ");
	if (d->baseline != SIZE_MAX && d->tests) {
		strbuf_puts(out, UP " and " DOWN " are better and worse than the baseline ");
		html_text(out, d->policies.policy[d->baseline].name);
		strbuf_printf(out,
			      " by a paired test on the same random numbers (p below %.2g). p is corrected "
			      "for the %zu tests of this comparison (Holm 1979); measures without a word are "
			      "not tested.",
			      1.0 - d->level, d->tests);
	}
	strbuf_puts(out, "</p>\n");
}

/* A table of those that at least one policy has. */
static void put_main(const struct report_data *d, size_t from, size_t to, const char *label,
		     struct strbuf *out)
{
	enum metric shown[N_MAIN];
	size_t n = 0;

	for (size_t k = from; k < to; k++)
		if (anybody_has(d, main_metric[k]))
			shown[n++] = main_metric[k];
	if (n)
		put_table(d, shown, n, label, out);
}

void report_put_tables(const struct report_data *d, struct strbuf *out)
{
	enum metric all[METRICS];
	struct strbuf csv = { 0 };
	size_t n = 0;

	for (size_t m = 0; m < METRICS; m++)
		if (!metric_info[m].rare || anybody_has(d, (enum metric)m))
			all[n++] = (enum metric)m;
	put_main(d, 0, N_FIRST, "Limits and accuracy", out);
	put_main(d, N_FIRST, N_MAIN, "Times, load and predictions", out);
	put_legend(d, out);
	put_csv(d, &csv);
	strbuf_puts(out, "<p class=\"data\">Every measure with its interval and test: ");
	html_csv_link(out, "comparison", &csv);
	strbuf_puts(out, "</p>\n<details><summary>All measures</summary>\n");
	put_table(d, all, n, "All measures", out);
	strbuf_puts(out, "</details>\n");
	out->failed |= csv.failed;
	strbuf_release(&csv);
}

/* ---- decision times ---- */

void report_put_decision_times(const struct report_data *d, struct strbuf *out)
{
	const struct json *list = json_get(d->timing, "decision_s");

	if (!json_first(list)) {
		strbuf_puts(out, "<p class=\"soft\">timing.json is not in the folder: decision times are not "
				 "known.</p>\n");
		return;
	}
	strbuf_puts(out, "<p>Wall-clock time of a decision on this machine, arrival and start of a job "
			 "together. It is no part of the reproducible result.</p>\n");
	html_scroll_begin(out, "Decision times");
	strbuf_puts(out, "<table>\n<thead><tr><th scope=\"col\">policy</th><th scope=\"col\">mean</th>"
			 "<th scope=\"col\">99th percentile</th></tr></thead>\n<tbody>\n");
	for (const struct json *v = json_first(list); v; v = json_next(v)) {
		strbuf_puts(out, "<tr>");
		html_element(out, "th scope=\"row\"", json_key(v));
		html_element(out, "td", word_seconds(json_number(json_get(v, "mean"), NAN)));
		html_element(out, "td", word_seconds(json_number(json_get(v, "p99"), NAN)));
		strbuf_puts(out, "</tr>\n");
	}
	strbuf_puts(out, "</tbody>\n</table>\n");
	html_scroll_end(out);
}
