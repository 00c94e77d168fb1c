/* A decision as the daemon sends it: read from JSON, put into a table, its reasons in words. See
 * decision_view.h. */
#include "scheduler/cli/client/decision_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/cli.h"

static struct decide_out_of_range read_out_of_range(const struct json *v)
{
	return (struct decide_out_of_range){ .column = json_string(json_get(v, "column"), NULL),
					     .category = json_bool(json_get(v, "category"), false),
					     .value = cli_json_number(v, "value"),
					     .least = cli_json_number(v, "least"),
					     .most = cli_json_number(v, "most") };
}

bool candidate_view_read(const struct json *v, struct candidate_view *out)
{
	if (json_type(v) != JSON_OBJECT || json_type(json_get(v, "batch")) != JSON_NUMBER)
		return false;
	*out = (struct candidate_view){
		.batch = cli_json_number(v, "batch"),
		.epochs = cli_json_number(v, "epochs"),
		.lr = cli_json_number(v, "lr"),
		.wait_s = cli_json_number(v, "wait_s"),
		.wait_upper_s = cli_json_number(v, "wait_upper_s"),
		.time_s = cli_json_number(v, "time_s"),
		.upper_s = cli_json_number(v, "upper_s"),
		.accuracy = cli_json_number(v, "accuracy"),
		.chance = cli_json_number(v, "chance"),
		.cost = cli_json_number(v, "cost"),
		.memory_mb = cli_json_number(v, "memory_mb"),
		.delays_s = cli_json_number(v, "delays_s"),
		.headroom_s = cli_json_number(v, "headroom_s"),
		.breaks = json_string(json_get(v, "breaks"), NULL),
		.behind = json_string(json_get(v, "behind"), NULL),
		.feasible = json_bool(json_get(v, "feasible"), false),
		.extrapolated = json_bool(json_get(v, "extrapolated"), false),
		.out_of_range = read_out_of_range(json_get(v, "outside")),
		.reasons = json_get(v, "reasons"),
	};
	return true;
}

bool decision_view_read(const struct json *v, struct decision_view *out)
{
	const struct json *all = json_get(v, "candidates"), *chosen = json_get(v, "chosen");
	struct candidate_view k;
	double at = json_number(chosen, -1.0);

	if (json_type(all) != JSON_ARRAY)
		return false;
	*out = (struct decision_view){
		.at = json_string(json_get(v, "at"), NULL),
		.when = json_string(json_get(v, "when"), NULL),
		.policy = json_string(json_get(v, "policy"), NULL),
		.model = json_string(json_get(v, "model"), NULL),
		.confidence = cli_json_number(v, "confidence"),
		.accuracy_error = cli_json_number(v, "accuracy_error"),
		.slo_s = cli_json_number(v, "slo_s"),
		.smallest_slo_s = cli_json_number(v, "smallest_slo_s"),
		.took_us = cli_json_number(v, "took_us"),
		.price = cli_json_number(v, "price"),
		.value = cli_json_number(v, "value"),
		.other_load = cli_json_number(v, "other_load"),
		.other_factor = cli_json_number(v, "other_factor"),
		.candidates = all,
		.failing = json_get(v, "failing"),
		.n_candidates = json_size(all),
		.chosen = -1,
	};
	alternatives_read(v, &out->beside);
	if (!candidate_view_read(json_get(v, "offer"), &out->offer))
		out->offer.chance = NAN;
	for (const struct json *c = json_first(all); c; c = json_next(c)) {
		if (!candidate_view_read(c, &k))
			return false;
		out->costs |= k.cost > 0.0;
	}
	if (json_type(chosen) != JSON_NUMBER)
		return true;
	if (!(at >= 0.0 && at < (double)out->n_candidates) || at != floor(at))
		return false;
	out->chosen = (long)at;
	return candidate_view_read(json_at(all, (size_t)at), &out->taken);
}

void decision_view_other(const struct decision_view *d, const char *before, struct strbuf *out)
{
	if (!(d->other_load > 0.0) || isnan(d->other_factor))
		return;
	strbuf_printf(out, "%sother programs (%.1f processes) ", before, d->other_load);
	if (d->other_factor >= 1.05) /* below that rounding says once */
		strbuf_printf(out, "make it %.1f times slower\n", d->other_factor);
	else
		strbuf_puts(out, "hardly slow it down\n");
}

void decision_view_price(const struct decision_view *d, struct strbuf *out)
{
	if (d->price > 0.0)
		strbuf_printf(
			out,
			"capacity costs %.3g of accuracy a process-second, by what recent jobs took from "
			"others\n",
			d->price);
	if (d->value > 0.0)
		strbuf_printf(out, "in time it is worth %.3g times a usual job\n", d->value);
}

static bool has_reason(const struct json *reasons, const char *code)
{
	for (const struct json *r = json_first(reasons); r; r = json_next(r))
		if (!strcmp(json_string(r, ""), code))
			return true;
	return false;
}

static bool is_impossible(const struct json *reasons)
{
	return has_reason(reasons, "unstable") || has_reason(reasons, "memory") ||
	       has_reason(reasons, "too_wide") || has_reason(reasons, "devices");
}

bool decision_view_impossible(const struct decision_view *d)
{
	for (const struct json *c = json_first(d->candidates); c; c = json_next(c))
		if (!is_impossible(json_get(c, "reasons")))
			return false;
	return d->n_candidates > 0;
}

/* ---- why ---- */

static void why_slow(const struct decision_view *d, const struct candidate_view *k, struct strbuf *out)
{
	char a[32], b[32], c[32];

	if (k->wait_upper_s > 0.0)
		strbuf_printf(out, "waits up to %s and takes up to %s: over the limit of %s",
			      text_seconds(k->wait_upper_s, a), text_seconds(k->upper_s, b),
			      text_seconds(d->slo_s, c));
	else if (!isnan(k->upper_s))
		strbuf_printf(out, "bound %s is over the limit of %s", text_seconds(k->upper_s, a),
			      text_seconds(d->slo_s, b));
	else
		strbuf_printf(out, "time %s is over the limit of %s", text_seconds(k->time_s, a),
			      text_seconds(d->slo_s, b));
}

/* "128", or "128 with 12 epochs" where they were chosen, too. */
static char *pair(const struct candidate_view *k, char *buf, size_t size)
{
	char a[32], b[32];

	if (isnan(k->epochs))
		snprintf(buf, size, "%s", text_shortest(k->batch, a));
	else
		snprintf(buf, size, "%s with %s epochs", text_shortest(k->batch, a),
			 text_shortest(k->epochs, b));
	return buf;
}

static void why_not_best(const struct decision_view *d, const struct candidate_view *k, bool slower,
			 struct strbuf *out)
{
	char a[32], b[32], c[80], error[48] = "";

	if (!isnan(d->accuracy_error))
		snprintf(error, sizeof error, " of %s", cli_short(d->accuracy_error, a));
	if (d->chosen < 0)
		strbuf_puts(out, slower ? "not clearly better than another one, and slower"
					: "another one is more accurate");
	else if (slower)
		strbuf_printf(out, "within the model's error%s of batch %s, which takes %s instead of %s",
			      error, pair(&d->taken, c, sizeof c), text_seconds(d->taken.time_s, a),
			      text_seconds(k->time_s, b));
	else
		strbuf_printf(out, "accuracy %s is below the %s of batch %s", text_accuracy(k->accuracy, a),
			      text_accuracy(d->taken.accuracy, b), pair(&d->taken, c, sizeof c));
}

static void why_memory(const struct candidate_view *k, struct strbuf *out)
{
	char a[32];

	if (isnan(k->memory_mb))
		strbuf_puts(out, "needs more memory than allowed");
	else
		strbuf_printf(out, "needs %s MB of memory, more than allowed", cli_short(k->memory_mb, a));
}

static void why_too_costly(const struct candidate_view *k, struct strbuf *out)
{
	char a[32];

	strbuf_puts(out, "other jobs can use its capacity better");
	if (!isnan(k->cost))
		strbuf_printf(out, ": it would cost them %s of accuracy", cli_short(k->cost, a));
}

void decision_out_of_range(const struct candidate_view *k, struct strbuf *out)
{
	struct strbuf text = { 0 };

	decide_out_of_range_text(&k->out_of_range, &text);
	strbuf_puts(out, cli_clean(strbuf_text(&text)));
	strbuf_release(&text);
}

void decision_reason(const struct decision_view *d, const struct candidate_view *k, const char *code,
		     struct strbuf *out)
{
	if (!strcmp(code, "slo_exceeded"))
		why_slow(d, k, out);
	else if (!strcmp(code, "no_bound"))
		strbuf_printf(out, "too few past runs for a bound at %g %%", 100.0 * d->confidence);
	else if (!strcmp(code, "extrapolated"))
		decision_out_of_range(k, out);
	else if (!strcmp(code, "beyond_model"))
		strbuf_puts(out, "too far outside the training table for a promise");
	else if (!strcmp(code, "lower_accuracy"))
		why_not_best(d, k, false, out);
	else if (!strcmp(code, "slower"))
		why_not_best(d, k, true, out);
	else if (!strcmp(code, "unstable"))
		strbuf_puts(out, "the model predicts no time above 0, or a queue without a steady state");
	else if (!strcmp(code, "memory"))
		why_memory(k, out);
	else if (!strcmp(code, "breaks_promise") && k->breaks)
		strbuf_printf(out, "job %s would miss its promise", cli_clean(k->breaks));
	else if (!strcmp(code, "breaks_promise"))
		strbuf_puts(out, "another job would miss its promise");
	else if (!strcmp(code, "too_wide"))
		strbuf_puts(out, "needs more cpus than the machine has for jobs");
	else if (!strcmp(code, "devices"))
		strbuf_puts(out, "needs more gpus than it may have, or more of their memory");
	else if (!strcmp(code, "not_picked"))
		strbuf_printf(out, "policy %s chooses by another rule",
			      d->policy ? cli_clean(d->policy) : "");
	else if (!strcmp(code, "price"))
		why_too_costly(k, out);
	else if (!strcmp(code, "not_tried"))
		strbuf_puts(out, "not tried: about as much work as one that was too slow");
	else
		strbuf_puts(out, cli_clean(code));
}

void decision_offer(const struct decision_view *d, const char *before, struct strbuf *out)
{
	char a[32], b[80];

	strbuf_printf(out, "%s%s chance with batch %s", before, cli_chance(d->offer.chance, a),
		      pair(&d->offer, b, sizeof b));
	if (!isnan(d->offer.accuracy))
		strbuf_printf(out, ", accuracy %s", text_accuracy(d->offer.accuracy, a));
}

/* ---- the table ---- */

#define CANDIDATES_SHOWN 24 /* more are shown only in part */

/* Is `k` one end of its batch, or of what is feasible, seen from its neighbour? */
static bool is_edge(const struct candidate_view *k, const struct json *neighbour)
{
	struct candidate_view n;

	return !candidate_view_read(neighbour, &n) || n.batch != k->batch || n.feasible != k->feasible;
}

static bool is_telling(const struct decision_view *d, const struct candidate_view *k, long i,
		       const struct json *before, const struct json *after)
{
	return (d->chosen >= 0 && labs(i - d->chosen) <= 1) || is_edge(k, before) || is_edge(k, after);
}

static void table_header(const struct decision_view *d, struct cli_table *t)
{
	static const char *const name[] = { " ", "batch", "epochs", "lr", "wait", "time", NULL };

	for (size_t i = 0; name[i]; i++)
		cli_table_add(t, "%s", name[i]);
	if (isnan(d->confidence))
		cli_table_add(t, "bound");
	else
		cli_table_add(t, "bound (%g %%)", 100.0 * d->confidence);
	cli_table_add(t, "accuracy");
	cli_table_add(t, "chance");
	cli_table_add(t, "headroom");
	cli_table_add(t, "delays others");
	if (d->costs)
		cli_table_add(t, "costs others");
	cli_table_add(t, "why");
}

static void table_row(const struct decision_view *d, const struct candidate_view *k, bool chosen,
		      struct cli_table *t)
{
	struct strbuf why = { 0 };
	char buf[32];

	if (chosen)
		strbuf_puts(&why, "chosen");
	if (chosen && k->behind)
		strbuf_printf(&why, ": starts behind job %s, in %s", cli_clean(k->behind),
			      text_seconds(k->wait_s, buf));
	for (const struct json *r = json_first(k->reasons); r; r = json_next(r)) {
		if (why.len)
			strbuf_puts(&why, "; ");
		decision_reason(d, k, json_string(r, "?"), &why);
	}
	cli_table_add(t, "%s", chosen ? "*" : " ");
	cli_table_add(t, "%s", text_shortest(k->batch, buf));
	cli_table_add(t, "%s", isnan(k->epochs) ? "" : text_shortest(k->epochs, buf));
	if (isnan(k->lr))
		cli_table_add(t, "%s", "");
	else
		cli_table_add(t, "%.4g", k->lr);
	cli_table_seconds(t, k->wait_s);
	cli_table_seconds(t, k->time_s);
	cli_table_seconds(t, k->upper_s);
	cli_table_accuracy(t, k->accuracy);
	cli_table_add(t, "%s", isnan(k->chance) ? "" : cli_chance(k->chance, buf));
	cli_table_seconds(t, k->headroom_s);
	cli_table_seconds(t, k->delays_s > 0.0 ? k->delays_s : NAN);
	if (d->costs)
		cli_table_add(t, "%s", isnan(k->cost) ? "" : cli_short(k->cost, buf));
	cli_table_add(t, "%s", strbuf_text(&why));
	if (chosen)
		cli_table_mark(t);
	strbuf_release(&why);
}

void decision_view_table(const struct decision_view *d, struct strbuf *out, bool colour, bool every)
{
	bool all = every || d->n_candidates <= CANDIDATES_SHOWN;
	const struct json *before = NULL;
	struct candidate_view k;
	struct cli_table t;
	size_t n_left_out = 0;
	long i = 0;

	cli_table_init(&t, d->costs ? "lrrrrrrrrrrrl" : "lrrrrrrrrrrl");
	table_header(d, &t);
	for (const struct json *c = json_first(d->candidates); c; before = c, c = json_next(c), i++) {
		if (!candidate_view_read(c, &k))
			continue;
		if (all || is_telling(d, &k, i, before, json_next(c)))
			table_row(d, &k, i == d->chosen, &t);
		else
			n_left_out++;
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
	if (n_left_out)
		strbuf_printf(out, "(%zu candidates in between left out; -v shows all)\n", n_left_out);
}
