/* The plan and the summary of a campaign, for people and for programs. See campaign_view.h. */
#include "scheduler/cli/profile/campaign_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/template.h"
#include "common/text/text.h"
#include "predictors/anova/anova.h"

#define TERMS_SHOWN 6
#define SHARE_SHOWN 0.0005 /* a smaller share would print as 0.0 % */
#define BAD_SHOWN 10

/* ---- settings, for people and programs ---- */

/* Starts a table whose columns are `before`, one for each factor, and `after`. */
static void table_begin(struct cli_table *t, char *align, const struct profile_design *d, const char *before,
			const char *after)
{
	strcpy(align, before);
	for (size_t i = 0; i < d->n_factors; i++)
		strcat(align, d->factor[i].number ? "r" : "l");
	strcat(align, after);
	cli_table_init(t, align);
}

/* The names of the factors, or their levels. */
static void table_setting(struct cli_table *t, const struct profile_design *d, const uint16_t *level)
{
	for (size_t i = 0; i < d->n_factors; i++)
		cli_table_add(t, "%s", level ? d->factor[i].level[level[i]] : d->factor[i].name);
}

static void json_setting(struct json_writer *w, const struct profile_design *d, const uint16_t *level)
{
	json_kv_open(w, "setting", '{');
	for (size_t i = 0; i < d->n_factors; i++) {
		if (d->factor[i].number)
			json_kv_number(w, d->factor[i].name, atof(d->factor[i].level[level[i]]));
		else
			json_kv_string(w, d->factor[i].name, d->factor[i].level[level[i]]);
	}
	json_close(w, '}');
}

/* ---- the plan ---- */

int profile_plan_json(const struct profile_campaign *k, struct strbuf *out, struct err *err)
{
	struct json_writer w;
	char **word;
	int rc = 0;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_kv_open(&w, "runs", '[');
	for (size_t i = 0; i < k->plan.n && !rc; i++) {
		const struct profile_point *p = &k->plan.run[i];

		rc = profile_argv(&k->design, p, 1, &word, err);
		if (rc)
			break;
		json_open(&w, '{');
		json_kv_int(&w, "run", (long long)i + 1);
		json_kv_int(&w, "replication", p->replication);
		json_setting(&w, &k->design, p->level);
		json_kv_int(&w, "copies", (long long)profile_copies(&k->design, p));
		if (p->mixed) {
			json_kv_open(&w, "beside", '{');
			if (p->neighbour)
				json_kv_string(&w, "type", k->design.neighbour[p->neighbour - 1].name);
			json_setting(&w, profile_beside(&k->design, p), p->beside);
			json_close(&w, '}');
		}
		json_kv_bool(&w, "done", k->journal.run[i].done);
		json_kv_number(&w, "expected_s", profile_estimate_run_s(&k->estimate, &k->design, p));
		json_kv_open(&w, "command", '[');
		for (size_t j = 0; word[j]; j++)
			json_put_string(&w, word[j]);
		json_close(&w, ']');
		json_close(&w, '}');
		argv_free(word);
	}
	json_close(&w, ']');
	json_kv_int(&w, "settings", (long long)k->plan.n_settings);
	json_kv_int(&w, "replications", (long long)k->design.replications);
	json_kv_int(&w, "seed", (long long)k->design.seed);
	json_kv_int(&w, "done", (long long)k->journal.n_done);
	json_kv_number(&w, "left_s", k->left_s);
	json_kv_number(&w, "at_most_s", (double)(k->plan.n - k->journal.n_done) * k->design.timeout_s);
	json_close(&w, '}');
	strbuf_puts(out, "\n");
	return rc;
}

/* Who runs beside the one that is measured; "": copies of it. */
static void table_beside(struct cli_table *t, const struct profile_design *d, const struct profile_point *p)
{
	static const char before[] = " beside ";
	struct strbuf text = { 0 };
	const char *at;

	profile_describe(d, p, &text);
	at = strstr(strbuf_text(&text), before);
	cli_table_add(t, "%s", p->mixed && at ? cli_clean(at + sizeof before - 1) : "");
	strbuf_release(&text);
}

int profile_plan_text(const struct profile_campaign *k, const struct cli *c, struct strbuf *out,
		      struct err *err)
{
	const struct profile_design *d = &k->design;
	char align[PROFILE_MAX_FACTORS + 6], a[32];
	struct cli_table t;
	char **word;
	bool mixed = k->plan.n && k->plan.run[k->plan.n - 1].mixed; /* they are the last */
	int rc = profile_argv(d, &k->plan.run[0], 1, &word, err);

	if (rc)
		return rc;
	table_begin(&t, align, d, "rr", mixed ? "lrr" : "rr");
	cli_table_add(&t, "run");
	cli_table_add(&t, "replication");
	table_setting(&t, d, NULL);
	if (mixed)
		cli_table_add(&t, "beside");
	cli_table_add(&t, "expected s");
	cli_table_add(&t, "done");
	for (size_t i = 0; i < k->plan.n; i++) {
		const struct profile_point *p = &k->plan.run[i];
		double expected_s = profile_estimate_run_s(&k->estimate, d, p);

		cli_table_add(&t, "%zu", i + 1);
		cli_table_add(&t, "%u", p->replication);
		table_setting(&t, d, p->level);
		if (mixed)
			table_beside(&t, d, p);
		cli_table_add(&t, "%s", k->estimate.n ? cli_short(expected_s, a) : "");
		cli_table_add(&t, "%s", k->journal.run[i].done ? "yes" : "");
	}
	cli_table_print(&t, out, cli_colour_stdout(c));
	cli_table_release(&t);
	strbuf_puts(out, "\nThe first command:");
	for (size_t i = 0; word[i]; i++)
		strbuf_printf(out, " %s", cli_clean(word[i]));
	argv_free(word);
	strbuf_printf(out, "\n%zu runs of %zu settings, seed %llu; %zu done. ", k->plan.n, k->plan.n_settings,
		      (unsigned long long)d->seed, k->journal.n_done);
	if (k->estimate.n)
		strbuf_printf(out, "The rest takes about %s.\n", text_seconds(k->left_s, a));
	else
		strbuf_printf(out,
			      "The time limit allows at most %s; an estimate comes after the first run.\n",
			      text_seconds((double)k->plan.n * d->timeout_s, a));
	return 0;
}

/* ---- the summary ---- */

static int by_share(const void *a, const void *b)
{
	const struct anova_term *x = *(const struct anova_term *const *)a,
				*y = *(const struct anova_term *const *)b;

	return (x->share < y->share) - (x->share > y->share);
}

/* The terms with the largest shares; returns how many. */
static size_t largest_terms(const struct anova *a, const struct anova_term **out)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_terms; i++)
		out[i] = &a->term[i];
	qsort(out, a->n_terms, sizeof *out, by_share);
	while (n < a->n_terms && n < TERMS_SHOWN && (n == 0 || out[n]->share >= SHARE_SHOWN))
		n++;
	return n;
}

static void put_shares(struct strbuf *out, const struct cli *c, const struct anova *a, const char *what)
{
	const struct anova_term *term[ANOVA_MAX_TERMS];
	struct strbuf bar = { 0 };
	struct cli_table t;
	double noise, shared;
	char x[32];
	size_t n;

	if (!a)
		return;
	n = largest_terms(a, term);
	noise = a->total_ss > 0.0 ? a->residual_ss / a->total_ss : NAN;
	shared = 1.0 - noise; /* an unbalanced design cannot tell all of it apart */
	cli_table_init(&t, "lrl");
	cli_table_add(&t, "%s depends on", what);
	cli_table_add(&t, "share");
	cli_table_add(&t, " ");
	for (size_t i = 0; i < n; i++)
		shared -= term[i]->share;
	for (size_t i = 0; i < n + 2; i++) {
		double share = i < n ? term[i]->share : i == n ? shared : noise;

		if (i == n && !(share >= SHARE_SHOWN))
			continue;
		cli_table_add(&t, "%s",
			      i < n    ? term[i]->name
			      : i == n ? "(shared between factors)"
				       : "(noise and interactions)");
		cli_table_add(&t, "%s", cli_percent(share, x));
		strbuf_reset(&bar);
		cli_bar(&bar, share, 24);
		cli_table_add(&t, "%s", strbuf_text(&bar));
	}
	strbuf_puts(out, "\n");
	cli_table_print(&t, out, cli_colour_stdout(c));
	cli_table_release(&t);
	strbuf_release(&bar);
}

static void put_bad(struct strbuf *out, const struct profile_campaign *k)
{
	size_t shown = 0, all = k->verdict.n_failed + k->verdict.n_timeout + k->verdict.n_unstable;
	struct strbuf setting = { 0 };
	char a[32];

	for (size_t i = 0; i < k->plan.n && shown < BAD_SHOWN; i++) {
		const struct profile_outcome *o = &k->journal.run[i];

		if (!o->done || k->verdict.status[i] == PROFILE_OK)
			continue;
		strbuf_reset(&setting);
		profile_describe(&k->design, &k->plan.run[i], &setting);
		strbuf_printf(out,
			      "%s: run %zu, %s, replication %u: ", profile_status_name(k->verdict.status[i]),
			      i + 1, cli_clean(strbuf_text(&setting)), k->plan.run[i].replication);
		if (k->verdict.status[i] == PROFILE_UNSTABLE)
			strbuf_printf(out, "%s; %zu tries spread more than %g of their mean\n",
				      text_seconds(profile_outcome_time(o), a), o->tries,
				      k->design.max_spread);
		else
			strbuf_printf(out, "%s (logs/run-%04zu.try-%zu.*)\n", cli_clean(o->why), i + 1,
				      o->tries);
		shown++;
	}
	if (all > shown)
		strbuf_printf(out, "and %zu more.\n", all - shown);
	out->failed |= setting.failed;
	strbuf_release(&setting);
}

static void put_suggestions(struct strbuf *out, const struct cli *c, const struct profile_design *d,
			    const struct profile_summary *m)
{
	char align[PROFILE_MAX_FACTORS + 5], a[32];
	struct cli_table t;

	if (!m->n_suggestions)
		return;
	table_begin(&t, align, d, "", "rrrl");
	table_setting(&t, d, NULL);
	cli_table_add(&t, "expected s");
	cli_table_add(&t, "%s", m->by_model ? "bound above it" : "trees disagree by");
	cli_table_add(&t, "measured");
	cli_table_add(&t, "remark");
	for (size_t i = 0; i < m->n_suggestions; i++) {
		const struct profile_suggestion *s = &m->suggestion[i];
		uint16_t level[PROFILE_MAX_FACTORS];

		profile_grid_at(d, s->setting, level);
		table_setting(&t, d, level);
		cli_table_add(&t, "%s", cli_short(s->time_s, a));
		cli_table_add(&t, "%s", cli_percent(s->uncertainty, a));
		cli_table_add(&t, "%zu", s->replications);
		if (s->family)
			cli_table_add(&t, "a context the model has never seen: tells of %zu more settings",
				      s->tells);
		else
			cli_table_add(&t, "%s",
				      s->extrapolated ? "outside the data the model was trained on" : "");
	}
	strbuf_printf(out, "\nMeasure next (%s come first):\n",
		      m->by_model ? "runs that narrow the bounds most for each second they take"
				  : "the least certain settings");
	cli_table_print(&t, out, cli_colour_stdout(c));
	cli_table_release(&t);
}

/* How many good runs have a copy without an accuracy. */
static size_t without_accuracy(const struct profile_campaign *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->plan.n; i++) {
		const struct profile_outcome *o = &k->journal.run[i];
		bool none = false;

		for (size_t c = 0; o->done && o->status == PROFILE_OK && c < o->n_copies; c++)
			none |= isnan(o->copy[c].accuracy);
		n += none;
	}
	return n;
}

static void put_accuracy_found(struct strbuf *out, const struct profile_campaign *k)
{
	size_t none = without_accuracy(k), good = k->verdict.n_ok + k->verdict.n_unstable;

	if (none && none == good)
		strbuf_puts(out, "No accuracy was found in the output of any run: the table has times only. "
				 "--accuracy NAME or --regex says where it is.\n");
	else if (none)
		strbuf_printf(out, "No accuracy was found in the output of %zu of %zu runs.\n", none, good);
}

void profile_summary_text(const struct profile_campaign *k, const struct profile_summary *m,
			  const struct cli *c, struct strbuf *out)
{
	const struct profile_verdict *v = &k->verdict;
	char a[32], b[32];

	strbuf_printf(
		out, "%zu runs of %zu settings: %zu ok, %zu failed, %zu over the time limit, %zu unstable",
		k->journal.n_done, k->plan.n_settings, v->n_ok, v->n_failed, v->n_timeout, v->n_unstable);
	if (k->n_resumed)
		strbuf_printf(out, "; %zu of them were measured before", k->n_resumed);
	strbuf_puts(out, ".\n");
	put_bad(out, k);
	if (v->n_cv)
		strbuf_printf(out,
			      "Between replications the time of a setting varies by %s (median of %zu; at "
			      "most %s).\n",
			      cli_percent(m->median_cv, a), v->n_cv, cli_percent(m->max_cv, b));
	if (m->other_max > 0.0)
		strbuf_printf(
			out,
			"Other work on the machine: %.1f processes beside a run (%.1f to %.1f); the column "
			"other_load has it for each.\n",
			m->other_mean, m->other_min, m->other_max);
	put_accuracy_found(out, k);
	put_shares(out, c, m->time, "log time");
	put_shares(out, c, m->accuracy, "accuracy");
	put_suggestions(out, c, &k->design, m);
	strbuf_printf(out, "\nTable written to %s; journal and logs are in %s.\n", cli_clean(k->table),
		      cli_clean(k->dir));
}

static void json_terms(struct json_writer *w, const char *key, const struct anova *a)
{
	json_put_key(w, key);
	if (!a) {
		json_put_null(w);
		return;
	}
	json_open(w, '[');
	for (size_t i = 0; i < a->n_terms; i++) {
		json_open(w, '{');
		json_kv_string(w, "term", a->term[i].name);
		json_kv_number(w, "share", a->term[i].share);
		json_kv_number(w, "p", a->term[i].p);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static void json_bad(struct json_writer *w, const struct profile_campaign *k)
{
	json_kv_open(w, "problems", '[');
	for (size_t i = 0; i < k->plan.n; i++) {
		const struct profile_outcome *o = &k->journal.run[i];

		if (!o->done || k->verdict.status[i] == PROFILE_OK)
			continue;
		json_open(w, '{');
		json_kv_int(w, "run", (long long)i + 1);
		json_kv_int(w, "replication", k->plan.run[i].replication);
		json_setting(w, &k->design, k->plan.run[i].level);
		json_kv_string(w, "status", profile_status_name(k->verdict.status[i]));
		json_kv_string(w, "why", o->why[0] ? o->why : NULL);
		json_kv_int(w, "tries", (long long)o->tries);
		json_close(w, '}');
	}
	json_close(w, ']');
}

void profile_summary_json(const struct profile_campaign *k, const struct profile_summary *m,
			  struct strbuf *out)
{
	const struct profile_verdict *v = &k->verdict;
	struct json_writer w;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_kv_string(&w, "table", k->table);
	json_kv_string(&w, "curves", k->curves);
	json_kv_string(&w, "journal", k->journal.file.path);
	json_kv_int(&w, "seed", (long long)k->design.seed);
	json_kv_int(&w, "settings", (long long)k->plan.n_settings);
	json_kv_int(&w, "runs", (long long)k->journal.n_done);
	json_kv_int(&w, "resumed", (long long)k->n_resumed);
	json_kv_int(&w, "ok", (long long)v->n_ok);
	json_kv_int(&w, "failed", (long long)v->n_failed);
	json_kv_int(&w, "timeout", (long long)v->n_timeout);
	json_kv_int(&w, "unstable", (long long)v->n_unstable);
	json_kv_int(&w, "without_accuracy", (long long)without_accuracy(k));
	json_bad(&w, k);
	json_kv_open(&w, "noise", '{');
	json_kv_int(&w, "settings", (long long)v->n_cv);
	json_kv_number(&w, "median_cv", m->median_cv);
	json_kv_number(&w, "max_cv", m->max_cv);
	json_close(&w, '}');
	json_kv_open(&w, "other_load", '{');
	json_kv_number(&w, "mean", m->other_mean);
	json_kv_number(&w, "min", m->other_min);
	json_kv_number(&w, "max", m->other_max);
	json_close(&w, '}');
	json_kv_open(&w, "anova", '{');
	json_terms(&w, "time_s", m->time);
	json_terms(&w, "accuracy", m->accuracy);
	json_close(&w, '}');
	json_kv_open(&w, "suggestions", '[');
	for (size_t i = 0; i < m->n_suggestions; i++) {
		const struct profile_suggestion *s = &m->suggestion[i];
		uint16_t level[PROFILE_MAX_FACTORS];

		profile_grid_at(&k->design, s->setting, level);
		json_open(&w, '{');
		json_setting(&w, &k->design, level);
		json_kv_number(&w, "time_s", s->time_s);
		json_kv_number(&w, "uncertainty", s->uncertainty);
		json_kv_int(&w, "replications", (long long)s->replications);
		json_kv_bool(&w, "extrapolated", s->extrapolated);
		if (m->by_model) {
			json_kv_number(&w, "value", s->value);
			json_kv_bool(&w, "new_context", s->family != 0);
		}
		json_close(&w, '}');
	}
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}
