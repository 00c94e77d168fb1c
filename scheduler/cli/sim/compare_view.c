/* Prints comparisons, sweeps and capacities. */
#include "scheduler/cli/sim/compare_view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

void compare_view_row(struct cli_table *t, const char *first, ...)
{
	va_list args;

	va_start(args, first);
	for (const char *cell = first; cell; cell = va_arg(args, const char *))
		cli_table_add(t, "%s", cell);
	va_end(args);
}

char *compare_view_share(const struct interval *v, char *buf)
{
	if (isnan(v->mean))
		strcpy(buf, "-");
	else if (isnan(v->low) || isnan(v->high))
		snprintf(buf, 64, "%.1f %%", 100.0 * v->mean);
	else
		snprintf(buf, 64, "%.1f %% [%.1f, %.1f]", 100.0 * v->mean, 100.0 * v->low, 100.0 * v->high);
	return buf;
}

static char *accuracy(const struct interval *v, char *buf)
{
	if (isnan(v->mean))
		strcpy(buf, "-");
	else if (isnan(v->low) || isnan(v->high))
		snprintf(buf, 64, "%.4f", v->mean);
	else
		snprintf(buf, 64, "%.4f [%.4f, %.4f]", v->mean, v->low, v->high);
	return buf;
}

static char *fixed4(double v, char *buf)
{
	if (isnan(v))
		strcpy(buf, "-");
	else
		snprintf(buf, 32, "%.4f", v);
	return buf;
}

/* ---- the two tables ---- */

/* "17 of 24" jobs, over the replications on average. */
static void put_chances(struct cli_table *t, const struct interval *m)
{
	char a[32], b[32];

	if (isnan(m[METRIC_CHANCES].mean))
		cli_table_add(t, "%s", "");
	else
		cli_table_add(t, "%s of %s", cli_number(m[METRIC_CHANCES_MET].mean, a),
			      cli_number(m[METRIC_CHANCES].mean, b));
}

static void print_best_fixed(const struct compare_result *r, struct strbuf *out)
{
	for (size_t i = 0; i < r->n_policies; i++)
		if (r->policy[i].policy.best_fixed)
			strbuf_printf(
				out, "fixed:best is fixed:%g, the best on a pilot that is not counted here\n",
				r->policy[i].policy.choice.batch);
}

/* The optimum plays its schedule, or says what no schedule exceeds. */
static void print_about_optimum(const struct compare_result *r, struct strbuf *out)
{
	for (size_t i = 0; i < r->n_policies; i++) {
		size_t bounds = 0;

		for (size_t k = 0; r->policy[i].policy.optimum && k < r->replications; k++)
			bounds += r->policy[i].run[k].is_bound;
		if (bounds)
			strbuf_printf(out,
				      "optimum: in %zu of %zu replications an upper bound, which no schedule "
				      "exceeds; "
				      "exact up to 8 jobs\n",
				      bounds, r->replications);
	}
}

static void print_objectives(const struct compare_result *r, bool colour, struct strbuf *out)
{
	bool has_oracle = false, has_optimum = false, chances = false;
	struct cli_table t;
	char a[64], align[] = "lrrrrrrrrr";

	for (size_t i = 0; i < r->n_policies; i++) {
		has_oracle |= r->policy[i].policy.oracle;
		has_optimum |= r->policy[i].policy.optimum;
		chances |= replay_takes_chances(&r->policy[i].policy, r->trace[0]);
	}
	align[8 + has_optimum + chances] = '\0';
	cli_table_init(&t, align);
	compare_view_row(&t, "policy", "kept of promised", "met of all", "of the oracle's",
			 "accuracy, a miss is 0", NULL);
	if (has_optimum)
		cli_table_add(&t, "of the optimum's");
	compare_view_row(&t, "of the met", "regret", "rejected", chances ? "met by chance" : NULL, NULL);
	for (size_t i = 0; i < r->n_policies; i++) {
		const struct interval *m = r->policy[i].metric;

		cli_table_add(&t, "%s", r->policy[i].policy.name);
		cli_table_add(&t, "%s%s", compare_view_share(&m[METRIC_ATTAINMENT], a),
			      m[METRIC_PROMISED].mean > 0.0 || isnan(m[METRIC_ATTAINMENT].mean) ? "" : " *");
		cli_table_add(&t, "%s", compare_view_share(&m[METRIC_ATTAINMENT_ALL], a));
		cli_table_add(&t, "%s", has_oracle ? cli_percent(m[METRIC_ATTAINMENT_ORACLE].mean, a) : "");
		cli_table_add(&t, "%s", accuracy(&m[METRIC_ACCURACY_ZERO], a));
		if (has_optimum)
			cli_table_add(&t, "%s", compare_view_share(&m[METRIC_OF_OPTIMUM], a));
		cli_table_add(&t, "%s", fixed4(m[METRIC_ACCURACY_MET].mean, a));
		cli_table_add(&t, "%s", has_oracle ? fixed4(m[METRIC_REGRET].mean, a) : "");
		cli_table_add(&t, "%s", cli_percent(m[METRIC_REJECTED].mean / m[METRIC_JOBS].mean, a));
		if (chances)
			put_chances(&t, m);
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
	for (size_t i = 0; i < r->n_policies; i++) {
		const struct interval *m = r->policy[i].metric;

		if (m[METRIC_PROMISED].mean > 0.0 || isnan(m[METRIC_ATTAINMENT].mean))
			continue;
		strbuf_puts(out, "* promises nothing: of the jobs taken\n");
		break;
	}
	print_best_fixed(r, out);
	print_about_optimum(r, out);
}

static void print_times(const struct compare_result *r, bool colour, struct strbuf *out)
{
	struct cli_table t;
	char a[64];

	cli_table_init(&t, "lrrrrrrrr");
	compare_view_row(&t, "policy", "response s", "p95 s", "p99 s", "wait s", "utilisation", "fairness",
			 "coverage", "MAPE", NULL);
	for (size_t i = 0; i < r->n_policies; i++) {
		const struct interval *m = r->policy[i].metric;

		cli_table_add(&t, "%s", r->policy[i].policy.name);
		cli_table_add(&t, "%s", cli_number(m[METRIC_RESPONSE_MEAN].mean, a));
		cli_table_add(&t, "%s", cli_number(m[METRIC_RESPONSE_P95].mean, a));
		cli_table_add(&t, "%s", cli_number(m[METRIC_RESPONSE_P99].mean, a));
		cli_table_add(&t, "%s", cli_number(m[METRIC_WAIT_MEAN].mean, a));
		cli_table_add(&t, "%s", cli_percent(m[METRIC_UTILISATION].mean, a));
		cli_table_add(&t, "%s", fixed4(m[METRIC_FAIRNESS].mean, a));
		cli_table_add(&t, "%s", cli_percent(m[METRIC_COVERAGE].mean, a));
		cli_table_add(&t, "%s", cli_percent(m[METRIC_MAPE].mean, a));
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

/* ---- paired tests ---- */

static void paired_row(struct cli_table *t, const struct compare_policy *c, enum metric m, double level)
{
	static const char *const word[] = { "worse", "not told apart", "better" };
	const struct paired_result *p = &c->versus[m];
	bool share = !strcmp(metric_info[m].unit, "share") && m != METRIC_ACCURACY_ZERO &&
		     m != METRIC_FAIRNESS;
	char a[32], b[32], d[32];

	cli_table_add(t, "%s", c->policy.name);
	cli_table_add(t, "%s", metric_info[m].title);
	if (share) {
		cli_table_add(t, "%+.1f points", 100.0 * p->difference);
		cli_table_add(t, "[%+.1f, %+.1f]", 100.0 * p->low, 100.0 * p->high);
	} else {
		cli_table_add(t, "%s%s%s", p->difference > 0.0 ? "+" : "", cli_number(p->difference, a),
			      !strcmp(metric_info[m].unit, "s") ? " s" : "");
		cli_table_add(t, "[%s, %s]", cli_number(p->low, a), cli_number(p->high, b));
	}
	snprintf(d, sizeof d, "%.3g", p->p_holm);
	cli_table_add(t, "%s", p->p_holm < 1e-4 ? "< 0.0001" : d);
	cli_table_add(t, "%s", word[metrics_verdict(p, m, level)]);
}

static void print_paired(const struct compare_result *r, double level, bool colour, struct strbuf *out)
{
	const char *baseline = r->policy[r->baseline].policy.name;
	struct cli_table t;

	if (r->n_policies < 2)
		return;
	if (r->replications < 2) {
		strbuf_printf(
			out,
			"\nOne replication: nothing can be tested against %s; --replications 20 could.\n",
			baseline);
		return;
	}
	if (*r->note) {
		strbuf_printf(out, "\nAgainst %s there is %s.\n", baseline, r->note);
		return;
	}
	strbuf_printf(
		out,
		"\nAgainst %s, replication by replication (%g %% intervals, paired t; p is corrected for "
		"%zu tests, Holm 1979):\n",
		baseline, 100.0 * level, r->tests);
	cli_table_init(&t, "llrrrl");
	compare_view_row(&t, "policy", "what", "difference", "interval", "p", "verdict", NULL);
	for (size_t i = 0; i < r->n_policies; i++)
		for (size_t k = 0; k < METRICS_TESTED && i != r->baseline; k++) {
			enum metric m = metric_tested[k];

			if (metrics_verdict(&r->policy[i].versus[m], m, level) < VERDICT_SAME)
				paired_row(&t, &r->policy[i], m, level);
		}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
	strbuf_puts(out, "\n");
	for (size_t i = 0; i < r->n_policies; i++) {
		size_t n[VERDICT_UNKNOWN + 1];

		if (i == r->baseline)
			continue;
		compare_verdicts(r, i, level, n);
		strbuf_printf(out, "%s against %s: %zu better, %zu worse, %zu not told apart, %zu the same\n",
			      r->policy[i].policy.name, baseline, n[VERDICT_BETTER], n[VERDICT_WORSE],
			      n[VERDICT_UNCLEAR], n[VERDICT_SAME]);
	}
}

/* ---- a comparison ---- */

static void print_source(const struct compare_result *r, const struct compare_params *p, struct strbuf *out)
{
	const struct cluster *m = world_whole(r->world[0]);
	const struct trace *t = r->trace[0];
	bool anew = r->replications > 1 && r->trace[1] != t;
	char split[256];

	strbuf_printf(out, "%s%s\n", cli_clean(t->about ? t->about : t->name),
		      anew ? "; drawn again in each replication" : "");
	strbuf_printf(out, "world %s on %g cores with %u slots", world_name(r->world[0]), m->cores, m->slots);
	if (m->place != PLACE_SPREAD)
		strbuf_printf(out, " on %u nodes (%s)", m->nodes, cluster_place_name[m->place]);
	if (p->settings.daemons > 1)
		strbuf_printf(out, ", %u daemons (%s)", p->settings.daemons,
			      daemons_share_name[p->settings.share]);
	strbuf_printf(out, "; seed %llu", (unsigned long long)p->seed);
	if (r->replications > 1)
		strbuf_printf(out, ", %zu replications, %g %% intervals", r->replications, 100.0 * p->level);
	world_split_text(r->world[0], 0, split, sizeof split);
	strbuf_printf(out, "\n%s%s\n\n", cli_clean(split),
		      world_folds(r->world[0]) > 1 && r->replications > 1 ? "; in turn" : "");
}

void compare_view_print(const struct compare_result *r, const struct compare_params *p, bool colour,
			struct strbuf *out)
{
	print_source(r, p, out);
	print_objectives(r, colour, out);
	strbuf_puts(out, "\n");
	print_times(r, colour, out);
	print_paired(r, p->level, colour, out);
}

void compare_view_talk(const struct cli *c, const struct compare_result *r)
{
	for (size_t i = 0; i < r->n_policies; i++)
		if (!isnan(r->policy[i].decision_mean_s))
			cli_notice(c,
				   "%s: decisions took %.1f us in the mean, 99 %% of them at most %.1f us, "
				   "here and now",
				   r->policy[i].policy.name, 1e6 * r->policy[i].decision_mean_s,
				   1e6 * r->policy[i].decision_p99_s);
}

/* ---- sweeps ---- */

int sweep_view_init(struct sweep_view *v, const struct sweep *sweep, const struct compare_params *p,
		    struct err *err)
{
	size_t n = sweep->n * p->n_policies;

	*v = (struct sweep_view){ .sweep = sweep,
				  .p = p,
				  .all = mem_calloc(n, sizeof *v->all),
				  .zero = mem_calloc(n, sizeof *v->zero) };
	if (v->all && v->zero)
		return 0;
	sweep_view_release(v);
	return err_nomem(err, "a sweep");
}

void sweep_view_release(struct sweep_view *v)
{
	free(v->all);
	free(v->zero);
	v->all = v->zero = NULL;
}

void sweep_view_point(struct sweep_view *v, size_t i, const struct compare_result *r)
{
	for (size_t k = 0; k < r->n_policies; k++) {
		v->all[i * r->n_policies + k] = r->policy[k].metric[METRIC_ATTAINMENT_ALL];
		v->zero[i * r->n_policies + k] = r->policy[k].metric[METRIC_ACCURACY_ZERO];
	}
}

static void sweep_table(const struct sweep_view *v, bool shares, bool colour, struct strbuf *out)
{
	const struct sweep *s = v->sweep;
	size_t n = v->p->n_policies;
	char align[SIM_MAX_POLICIES + 2], a[64], number[32];
	struct cli_table t;

	memset(align, 'r', sizeof align);
	align[n + 1] = '\0';
	cli_table_init(&t, align);
	cli_table_add(&t, "%s", what_key_name[s->key]);
	for (size_t k = 0; k < n; k++)
		cli_table_add(&t, "%s", v->p->policy[k].name);
	for (size_t i = 0; i < s->n; i++) {
		snprintf(number, sizeof number, "%.6g", s->value[i]);
		cli_table_add(&t, "%s", number);
		for (size_t k = 0; k < n; k++) {
			size_t at = i * n + k;

			cli_table_add(&t, "%s",
				      shares ? compare_view_share(&v->all[at], a)
					     : accuracy(&v->zero[at], a));
		}
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

void sweep_view_print(const struct sweep_view *v, bool colour, struct strbuf *out)
{
	strbuf_puts(out, "limits met of all:\n");
	sweep_table(v, true, colour, out);
	strbuf_puts(out, "\nAccuracy, missed and rejected as 0:\n");
	sweep_table(v, false, colour, out);
}

/* ---- capacity ---- */

static char *metric_text(enum metric m, const struct interval *v, char *buf)
{
	char a[32], b[32], c[32];

	if (!strcmp(metric_info[m].unit, "share"))
		return compare_view_share(v, buf);
	if (isnan(v->low) || isnan(v->high))
		snprintf(buf, 64, "%s", cli_number(v->mean, a));
	else
		snprintf(buf, 64, "%.18s [%.18s, %.18s]", cli_number(v->mean, a), cli_number(v->low, b),
			 cli_number(v->high, c));
	return buf;
}

static void answer(const struct capacity_question *q, const struct sim_policy *p, const struct capacity *c,
		   struct strbuf *out)
{
	const char *key = what_key_name[q->by],
		   *than = metric_info[q->of].better > 0 ? "at least" : "at most";
	bool share = !strcmp(metric_info[q->of].unit, "share");
	char target[32];

	snprintf(target, sizeof target, share ? "%g %%" : "%g", share ? 100.0 * q->target : q->target);
	if (isnan(c->answer))
		strbuf_printf(out, "%s: no %s from %g to %g gives %s of %s %s.\n", p->name, key, q->from,
			      q->to, metric_info[q->of].name, than, target);
	else
		strbuf_printf(out, "%s: %s=%g for %s of %s %s.\n", p->name, key, c->answer,
			      metric_info[q->of].name, than, target);
	if (c->contradicts)
		strbuf_printf(
			out,
			"More is not always better here: among the values tried a larger one fails where a "
			"smaller one does, so the\nanswer is one that will do, and perhaps not the least. "
			"More "
			"replications, or --sweep %s=%g..%g, say more.\n",
			key, q->from, q->to);
	for (size_t i = 0; i < c->n; i++) {
		const struct capacity_point *t = &c->point[i];

		if (t->value == c->answer && (t->metric.low < q->target && q->target < t->metric.high)) {
			strbuf_printf(out,
				      "The target lies within the interval of %s=%g: chance may have a hand "
				      "in it.\n",
				      key, t->value);
			break;
		}
	}
}

void capacity_view_print(const struct capacity_question *q, const struct sim_policy *p,
			 const struct capacity *c, bool colour, struct strbuf *out)
{
	struct cli_table t;
	char a[64];

	answer(q, p, c, out);
	cli_table_init(&t, "rrl");
	cli_table_add(&t, "%s", what_key_name[q->by]);
	cli_table_add(&t, "%s", metric_info[q->of].name);
	cli_table_add(&t, " ");
	for (size_t i = 0; i < c->n; i++) {
		cli_table_add(&t, "%g", c->point[i].value);
		cli_table_add(&t, "%s", metric_text(q->of, &c->point[i].metric, a));
		cli_table_add(&t, "%s", c->point[i].holds ? "enough" : "not enough");
		if (c->point[i].value == c->answer)
			cli_table_mark(&t);
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

void capacity_view_json(const struct sim_policy *p, const struct capacity *c, struct json_writer *w)
{
	json_open(w, '{');
	json_kv_string(w, "policy", p->name);
	json_kv_number(w, "answer", c->answer);
	json_kv_bool(w, "contradicts", c->contradicts);
	json_kv_open(w, "points", '[');
	for (size_t i = 0; i < c->n; i++) {
		json_open(w, '{');
		json_kv_number(w, "value", c->point[i].value);
		json_kv_number(w, "mean", c->point[i].metric.mean);
		json_kv_number(w, "low", c->point[i].metric.low);
		json_kv_number(w, "high", c->point[i].metric.high);
		json_kv_bool(w, "holds", c->point[i].holds);
		json_close(w, '}');
	}
	json_close(w, ']');
	json_close(w, '}');
}
