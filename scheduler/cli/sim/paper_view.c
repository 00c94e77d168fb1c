/* Prints the tables and figures of the paper's experiment. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/sim/compare_view.h"

/* "93.86 %" */
static char *percent2(double v, char *buf)
{
	if (isnan(v))
		strcpy(buf, "-");
	else
		snprintf(buf, 32, "%.2f %%", 100.0 * v);
	return buf;
}

static const struct paper_outcome *of(const struct paper_set *s, enum paper_policy k, size_t i)
{
	return &s->outcome[(size_t)k * s->n + i];
}

/* ---- what it is ---- */

static void print_head(const struct paper_result *r, struct strbuf *out)
{
	char split[256];

	strbuf_printf(out, "The experiment of the Courier paper (section 5) in the world %s; seed %llu.\n",
		      cli_clean(r->spec), (unsigned long long)r->seed);
	if (r->own_table)
		strbuf_puts(out, "Limits as in the paper: Normal(300, 100) s.\n");
	else
		strbuf_printf(out,
			      "This is another table than the paper's: its mean time is %.3g s, the paper's "
			      "298.7 s, so "
			      "limits are\nscaled by %.4g: Normal(%.3g, %.3g) s.\n",
			      r->table_mean_s, r->scale, 300.0 * r->scale, 100.0 * r->scale);
	if (r->cpus_moved)
		strbuf_puts(out, "Some jobs of Table 9 have more cpus than this table knows: the nearest "
				 "level is taken.\n");
	if (r->n_left_out)
		strbuf_printf(out, "%zu of %zu settings have no accuracy in the table and are not drawn.\n",
			      r->n_left_out, r->n_left_out + r->n_settings);
	world_split_text(r->world, 0, split, sizeof split);
	strbuf_printf(out, "%s\n", cli_clean(split));
	strbuf_printf(out,
		      "Each job: njobs equal jobs start together, %d replications, means count. Where no "
		      "batch meets the "
		      "limit, the\nfastest one runs, as in the paper, and nothing is promised. postrider "
		      "decides on the "
		      "%g %% bound, the others on the\nexpected time.\n\n",
		      PAPER_REPLICATIONS, 100.0 * r->confidence);
}

/* ---- Table 9 ---- */

static void print_table9(const struct paper_result *r, bool colour, struct strbuf *out)
{
	static const enum paper_policy shown[] = { PAPER_COURIER, PAPER_POSTRIDER };
	const struct paper_set *five = &r->set[0];
	struct strbuf job = { 0 };
	struct cli_table t;
	char a[32];

	paper_job_text(r, &five->job[0], &job);
	strbuf_printf(out,
		      "Table 9: the five jobs, what is chosen and predicted (*), and what happened (%s)\n",
		      cli_clean(strbuf_text(&job)));
	strbuf_release(&job);
	cli_table_init(&t, "rrrrlrrrrrrl");
	compare_view_row(&t, "N", "cpus", "njobs", "limit s", "by", "batch*", "acc.*", "time* s", "bound* s",
			 "acc.", "time s", " ", NULL);
	for (size_t i = 0; i < five->n; i++) {
		const struct paper_row *p = &paper_table9[i];

		cli_table_add(&t, "%zu", i + 1);
		cli_table_add(&t, "%g", p->cpus);
		cli_table_add(&t, "%g", p->njobs);
		cli_table_add(&t, "%s", cli_number(p->slo_s, a));
		cli_table_add(&t, "the paper");
		cli_table_add(&t, "%g", p->batch);
		cli_table_add(&t, "%s", percent2(p->accuracy, a));
		cli_table_add(&t, "%s", cli_number(p->time_s, a));
		for (int k = 0; k < 4; k++)
			cli_table_add(&t, "%s", "");
		for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
			const struct paper_outcome *o = of(five, shown[k], i);

			cli_table_add(&t, "%s", "");
			cli_table_add(&t, "%u", r->trace->kind[five->job[i].kind].cpus);
			cli_table_add(&t, "%g", five->job[i].njobs);
			cli_table_add(&t, "%s", cli_number(five->job[i].slo_s, a));
			cli_table_add(&t, "%s", r->policy[shown[k]].name);
			cli_table_add(&t, "%g", o->batch);
			cli_table_add(&t, "%s", percent2(o->predicted_accuracy, a));
			cli_table_add(&t, "%s", cli_number(o->predicted_s, a));
			cli_table_add(&t, "%s",
				      r->policy[shown[k]].choice.policy->bounds ? cli_number(o->upper_s, a)
										: "");
			cli_table_add(&t, "%s", percent2(o->accuracy, a));
			cli_table_add(&t, "%s", cli_number(o->time_s, a));
			cli_table_add(&t, "%s%s", o->met ? "met" : "missed",
				      o->promised ? "" : ", not promised");
		}
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

/* ---- Table 11 ---- */

static void score_row(struct cli_table *t, const char *model, const char *what, const struct score *s)
{
	char a[32];

	cli_table_add(t, "%s", model);
	cli_table_add(t, "%s", what);
	cli_table_add(t, "%s", cli_number(s->mse, a));
	cli_table_add(t, "%s", cli_number(s->r2, a));
	cli_table_add(t, "%s", cli_percent(s->mape, a));
}

static void print_table11(const struct paper_result *r, bool colour, struct strbuf *out)
{
	static const struct {
		const char *model, *what;
		struct score s;
	} paper[] = {
		{ "the paper's Courier", "accuracy", { 1.3590e-5, 0.9711, NAN, NAN, NAN } },
		{ "the paper's Courier", "time", { 376.659, 0.9861, NAN, NAN, NAN } },
		{ "the paper's boosting", "accuracy", { 1.3592e-5, 0.9711, NAN, NAN, NAN } },
		{ "the paper's boosting", "time", { 3024.48, 0.8887, NAN, NAN, NAN } },
	};
	struct cli_table t;
	char name[SIM_POLICY_NAME + 64];

	strbuf_printf(out, "\nTable 11: predictors on rows they have not seen (%s)\n",
		      r->n_scores ? cli_clean(r->score[0].scored_by) : "none");
	cli_table_init(&t, "llrrr");
	compare_view_row(&t, "model", "of", "MSE", "R2", "MAPE", NULL);
	for (size_t i = 0; i < sizeof paper / sizeof *paper; i++)
		score_row(&t, paper[i].model, paper[i].what, &paper[i].s);
	for (size_t i = 0; i < r->n_scores; i++) {
		const struct paper_score *s = &r->score[i];

		snprintf(name, sizeof name, "%s (%s%s)", s->policy->name, s->model,
			 s->policy->choice.policy->without_load ? ", without the load" : "");
		score_row(&t, name, "time", &s->time);
		if (!s->accuracy_model)
			continue;
		snprintf(name, sizeof name, "%s (%s)", s->policy->name, s->accuracy_model);
		score_row(&t, name, "accuracy", &s->accuracy);
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

/* ---- Figures 9 and 10 ---- */

static void print_figure9(const struct paper_result *r, bool colour, struct strbuf *out)
{
	static const enum paper_policy shown[] = { PAPER_COURIER, PAPER_NAIVE, PAPER_POSTRIDER };
	const struct paper_set *five = &r->set[0];
	struct cli_table t;
	char a[32];

	strbuf_puts(out, "\nFigure 9: time as a part of the limit (above 100 % it is missed) and accuracy\n");
	cli_table_init(&t, "rrrrrrr");
	cli_table_add(&t, "N");
	for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
		cli_table_add(&t, "%s", r->policy[shown[k]].name);
		cli_table_add(&t, "acc.");
	}
	for (size_t i = 0; i < five->n; i++) {
		cli_table_add(&t, "%zu", i + 1);
		for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
			const struct paper_outcome *o = of(five, shown[k], i);

			cli_table_add(&t, "%s", cli_percent(o->time_s / five->job[i].slo_s, a));
			cli_table_add(&t, "%s", percent2(o->accuracy, a));
		}
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

static void print_figure10(const struct paper_result *r, bool colour, struct strbuf *out)
{
	static const enum paper_policy shown[] = { PAPER_COURIER, PAPER_BOOST, PAPER_BOOST_FULL,
						   PAPER_POSTRIDER };
	const struct paper_set *five = &r->set[0];
	struct cli_table t;
	char a[32];

	strbuf_puts(out, "\nFigure 10: absolute error of what was predicted for the batch chosen\n");
	cli_table_init(&t, "rrrrrrrrr");
	cli_table_add(&t, "N");
	for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
		cli_table_add(&t, "%s s", r->policy[shown[k]].name);
		cli_table_add(&t, "acc.");
	}
	for (size_t i = 0; i < five->n; i++) {
		cli_table_add(&t, "%zu", i + 1);
		for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
			const struct paper_outcome *o = of(five, shown[k], i);

			cli_table_add(&t, "%s", cli_number(fabs(o->predicted_s - o->time_s), a));
			cli_table_add(&t, "%s", percent2(fabs(o->predicted_accuracy - o->accuracy), a));
		}
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

/* ---- the two sets ---- */

static void add_accuracy(struct cli_table *t, const struct interval *v)
{
	char a[64];

	if (isnan(v->low))
		cli_table_add(t, "%s", cli_number(v->mean, a));
	else
		cli_table_add(t, "%.4f [%.4f, %.4f]", v->mean, v->low, v->high);
}

static void print_set(const struct paper_result *r, const struct paper_set *set, bool colour,
		      struct strbuf *out)
{
	struct cli_table t;
	char a[64];

	strbuf_printf(out, "\n%zu jobs%s (%g %% intervals, Wilson's for shares)\n", set->n,
		      set == &r->set[0] ? ", those of Table 9" : " from the paper's generator",
		      100.0 * r->level);
	cli_table_init(&t, "lrrrrrrrr");
	compare_view_row(&t, "policy", "met of all", "kept of promised", "of the oracle's",
			 "accuracy, a miss is 0", "of the met", "regret", "MSE s\u00b2", "MAPE", NULL);
	for (int k = 0; k < PAPER_POLICIES; k++) {
		const struct paper_summary *s = &set->summary[k];

		cli_table_add(&t, "%s", r->policy[k].name);
		cli_table_add(&t, "%s", compare_view_share(&s->met_share, a));
		if (s->promised)
			cli_table_add(&t, "%zu of %zu, %.1f %%", s->kept, s->promised,
				      100.0 * s->kept_share.mean);
		else
			cli_table_add(&t, "promises nothing");
		cli_table_add(&t, "%s", cli_percent(s->oracle_share.mean, a));
		add_accuracy(&t, &s->accuracy_zero);
		cli_table_add(&t, "%s", cli_number(s->accuracy_met, a));
		cli_table_add(&t, "%.4f", s->regret);
		cli_table_add(&t, "%s", k == PAPER_ORACLE ? "" : cli_number(s->mse_s2, a));
		cli_table_add(&t, "%s", k == PAPER_ORACLE ? "" : cli_percent(s->mape, a));
	}
	for (size_t b = 0; b < set->n_fixed; b++) {
		const struct paper_fixed *f = &set->fixed[b];

		cli_table_add(&t, "fixed:%g", f->batch);
		cli_table_add(&t, "%s", compare_view_share(&f->met_share, a));
		cli_table_add(&t, "promises nothing");
		cli_table_add(&t, "%s", "");
		add_accuracy(&t, &f->accuracy_zero);
		for (size_t k = 0; k < 4; k++)
			cli_table_add(&t, "%s", "");
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
	if (set->summary[0].with_accuracy < set->n)
		strbuf_printf(out,
			      "Of %zu jobs the table knows no accuracy: they are not in the accuracies.\n",
			      set->n - set->summary[0].with_accuracy);
}

static void print_bounds(const struct paper_result *r, const struct paper_set *set, struct strbuf *out)
{
	static const enum paper_policy shown[] = { PAPER_COURIER, PAPER_POSTRIDER, PAPER_BOOST,
						   PAPER_BOOST_FULL };

	for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
		const struct paper_summary *s = &set->summary[shown[k]];

		if (!s->promised)
			continue;
		strbuf_printf(out,
			      "%s broke %zu of %zu promises: with %g %% confidence its true rate is below "
			      "%.1f %%.\n",
			      r->policy[shown[k]].name, s->promised - s->kept, s->promised, 100.0 * r->level,
			      100.0 * s->miss_bound);
	}
}

static void print_versus(const struct paper_result *r, const struct paper_set *set, struct strbuf *out)
{
	strbuf_puts(out, "\nAgainst courier, job by job:\n");
	for (int k = 0; k < PAPER_POLICIES; k++) {
		const struct paper_summary *s = &set->summary[k];

		if (k == PAPER_COURIER)
			continue;
		strbuf_printf(out,
			      "  %-10s meets %zu that courier misses and misses %zu that it meets; accuracy "
			      "with a miss as 0 "
			      "%+.4f [%+.4f, %+.4f]\n",
			      r->policy[k].name, s->wins, s->losses, s->accuracy_versus.difference,
			      s->accuracy_versus.low, s->accuracy_versus.high);
	}
}

void paper_view_print(const struct paper_result *r, bool colour, struct strbuf *out)
{
	print_head(r, out);
	print_table9(r, colour, out);
	print_table11(r, colour, out);
	print_figure9(r, colour, out);
	print_figure10(r, colour, out);
	print_set(r, &r->set[0], colour, out);
	strbuf_printf(out,
		      "Five jobs say little: 0 misses of 5 only bound the miss rate below %.0f %% (Clopper "
		      "and Pearson, one-sided, "
		      "%g %%).\n",
		      100.0 * paper_rate_bound(0, PAPER_FIVE, r->level), 100.0 * r->level);
	print_set(r, &r->set[1], colour, out);
	print_bounds(r, &r->set[1], out);
	print_versus(r, &r->set[1], out);
}
