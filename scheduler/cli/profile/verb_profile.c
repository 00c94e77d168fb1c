/* `postrider profile`: a designed experiment on a training command, from its plan to its table. Here are the
 * options, the loop over the runs, progress, and what people read; the parts are in profile_*.c, in the order in
 * which they are used: design, journal, run (with load and result), table, summary. */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "scheduler/profiler/run.h"
#include "scheduler/profiler/summary.h"

#define TERMS_SHOWN 6
#define SHARE_SHOWN 0.0005 /* what would print as 0.0 % says nothing */
#define BAD_SHOWN 10
#define SUGGEST_MAX 1000

struct options {
	struct cli_list factor;
	const char *design, *command, *accuracy, *regex, *curves, *workdir, *max_spread, *model;
	double timeout_s; /* 0: not given */
	uint64_t replications, seed, tries, suggest; /* UINT64_MAX: not given */
	bool dry_run, restart, retry, warm_up;
	char **word;
	size_t n_words; /* what came after -- */
};

struct campaign {
	const struct cli *c;
	const struct options *o;
	struct profile_design design;
	struct profile_plan plan;
	struct profile_journal journal;
	struct profile_signals signals;
	struct profile_verdict verdict;
	struct profile_estimate estimate;
	struct model *model;
	char dir[PATH_MAX];
	size_t n_resumed;
	int signal; /* that stopped us */
	/* progress */
	bool bar;
	size_t at; /* the run that is measured; SIZE_MAX: none */
	char shown[256]; /* the setting that runs */
	double left_s;
};

static struct profile_state state_of(const struct campaign *k)
{
	return (struct profile_state){ &k->design, &k->plan, &k->journal };
}

/* ---- the design from file and flags ---- */

static int flags_into_design(struct profile_design *d, const struct options *o, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < o->factor.n && !rc; i++)
		rc = profile_design_factor(d, o->factor.item[i], err);
	if (!rc && o->design)
		rc = profile_design_kind(d, o->design, err);
	if (!rc && o->command)
		rc = profile_design_command(d, o->command, err);
	if (!rc && o->n_words)
		rc = profile_design_argv(d, o->word, o->n_words, err);
	if (!rc)
		rc = profile_design_result(d, o->accuracy, o->regex, err);
	if (rc)
		return rc;
	if (o->replications != UINT64_MAX)
		d->replications = o->replications > SIZE_MAX ? SIZE_MAX : (size_t)o->replications;
	if (o->seed != UINT64_MAX)
		d->seed = o->seed;
	d->warm_up |= o->warm_up;
	if (o->timeout_s > 0.0)
		d->timeout_s = o->timeout_s;
	if (o->tries != UINT64_MAX) {
		if (o->tries < 1 || o->tries > 100)
			return err_fail(err, ERR_ARG, "--tries %llu: 1 to 100 are possible",
					(unsigned long long)o->tries);
		d->tries = (size_t)o->tries;
	}
	if (o->max_spread && (!text_number(o->max_spread, &d->max_spread) || d->max_spread < 0.0))
		return err_fail(err, ERR_ARG, "--max-spread %s: a share such as 0.3, or 0 for no bound",
				o->max_spread);
	return 0;
}

static int design_make(struct campaign *k, struct err *err)
{
	int rc = 0;

	if (k->c->n_args)
		rc = profile_design_read(&k->design, k->c->arg[0], err);
	if (!rc)
		rc = flags_into_design(&k->design, k->o, err);
	if (!rc)
		rc = profile_design_check(&k->design, err);
	if (!rc)
		rc = profile_plan_make(&k->design, &k->plan, err);
	return rc;
}

static int folder_name(struct campaign *k, struct err *err)
{
	const char *given = k->o->workdir, *output = k->c->output;
	int n = given ? snprintf(k->dir, sizeof k->dir, "%s", given)
		      : snprintf(k->dir, sizeof k->dir, "%s.profile", output ? output : "");

	if (n >= (int)sizeof k->dir - 64)
		return err_fail(err, ERR_ARG, "the path of the work folder is too long");
	return 0;
}

/* ---- progress ---- */

static void bar_wipe(struct campaign *k)
{
	if (k->bar)
		fprintf(stderr, "\r\033[K");
}

static void bar_draw(void *owner, double elapsed_s)
{
	struct campaign *k = owner;
	double expected = k->at == SIZE_MAX
				  ? NAN
				  : profile_estimate_run_s(&k->estimate, &k->design, &k->plan.run[k->at]);
	double left = k->left_s - fmin(elapsed_s, isnan(expected) ? 0.0 : expected);
	char line[400], a[32], b[32];
	struct winsize size = { 0 };
	int width;

	if (!k->bar)
		return;
	width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
	snprintf(line, sizeof line, "%zu/%zu %s  %s%s%s%s", k->journal.n_done, k->plan.n, k->shown,
		 text_seconds(elapsed_s, a), isnan(left) ? "" : ", ",
		 isnan(left) ? "" : text_seconds(fmax(left, 0.0), b), isnan(left) ? "" : " left");
	fprintf(stderr, "\r%.*s\033[K", width < (int)sizeof line ? width : (int)sizeof line - 1, line);
	fflush(stderr);
}

static void say_run(struct campaign *k, size_t run)
{
	const struct profile_outcome *o = &k->journal.run[run];
	char a[32], b[32];

	if (!k->c->verbose || k->c->quiet)
		return;
	bar_wipe(k);
	fprintf(stderr, "postrider: run %zu of %zu: %s, replication %u: %s%s%s, %s%s%s\n", run + 1, k->plan.n,
		cli_clean(k->shown), k->plan.run[run].replication, profile_status_name(o->status),
		o->why[0] ? ": " : "", cli_clean(o->why), text_seconds(profile_outcome_time(o), a),
		k->left_s > 0.0 ? ", left about " : "", k->left_s > 0.0 ? text_seconds(k->left_s, b) : "");
}

/* ---- the loop ---- */

static int write_tables(struct campaign *k, struct err *err)
{
	struct profile_state s = state_of(k);
	struct strbuf table = { 0 }, curves = { 0 };
	int rc;

	profile_verdict_release(&k->verdict);
	rc = profile_judge(&s, &k->verdict, err);
	if (rc)
		return rc;
	profile_put_table(&s, &k->verdict, &table);
	rc = cli_write(k->c->output, &table, err);
	if (!rc && k->o->curves) {
		profile_put_curves(&s, &k->verdict, &curves);
		rc = cli_write(k->o->curves, &curves, err);
	}
	strbuf_release(&table);
	strbuf_release(&curves);
	profile_estimate_make(&s, &k->estimate);
	k->left_s = profile_estimate_left_s(&k->estimate, &s);
	return rc;
}

static int measure(struct campaign *k, size_t run, struct err *err)
{
	struct profile_outcome outcome = { 0 };
	struct strbuf shown = { 0 };
	char name[64];
	struct profile_run_params p = { .design = &k->design,
					.point = &k->plan.run[run],
					.signals = &k->signals,
					.dir = k->dir,
					.name = name,
					.on_tick = bar_draw,
					.owner = k };
	int rc;

	snprintf(name, sizeof name, "run-%04zu.try-%zu", run + 1, k->journal.run[run].tries + 1);
	profile_describe(&k->design, p.point->level, &shown);
	snprintf(k->shown, sizeof k->shown, "%s", strbuf_text(&shown));
	strbuf_release(&shown);
	k->at = run;
	bar_draw(k, 0.0);
	rc = profile_run(&p, &outcome, &k->signal, err);
	if (!rc && !k->signal)
		rc = profile_journal_append(&k->journal, &k->design, &k->plan, run, &outcome, err);
	if (!rc && !k->signal)
		rc = write_tables(k, err);
	if (!rc && !k->signal)
		say_run(k, run);
	profile_outcome_release(&outcome);
	return rc;
}

/* The first run of a program pays for what later ones find ready: files in the page cache, data it prepares. */
static int warm_up(struct campaign *k, struct err *err)
{
	struct profile_outcome outcome = { 0 };
	struct profile_run_params p = { .design = &k->design,
					.point = &k->plan.run[0],
					.signals = &k->signals,
					.dir = k->dir,
					.name = "warm-up",
					.on_tick = bar_draw,
					.owner = k };
	int rc;

	snprintf(k->shown, sizeof k->shown, "warm-up");
	rc = profile_run(&p, &outcome, &k->signal, err);
	if (!rc && !k->signal && outcome.status != PROFILE_OK)
		cli_notice(k->c, "the warm-up did not go well: %s", outcome.why);
	profile_outcome_release(&outcome);
	return rc;
}

static int measure_all(struct campaign *k, struct err *err)
{
	struct profile_state s = state_of(k);
	size_t run;
	int rc = k->journal.n_done ? write_tables(k, err) : 0;

	if (!rc && k->design.warm_up && k->journal.n_done < k->plan.n)
		rc = warm_up(k, err);
	for (size_t i = 0; i < k->plan.n && !rc && !k->signal; i++) {
		k->signal = profile_signals_pending(&k->signals);
		if (!k->signal && !k->journal.run[i].done)
			rc = measure(k, i, err);
	}
	/* At the end, not at once: what disturbed a run may disturb the next minute, too. */
	while (!rc && !k->signal && (run = profile_repeat(&s, &k->verdict)) != SIZE_MAX) {
		k->signal = profile_signals_pending(&k->signals);
		if (!k->signal)
			rc = measure(k, run, err);
	}
	bar_wipe(k);
	return rc;
}

/* What went wrong last time is measured once more. */
static void forget_bad(struct campaign *k)
{
	for (size_t i = 0; i < k->plan.n; i++) {
		struct profile_outcome *o = &k->journal.run[i];

		if (o->done && k->verdict.status[i] != PROFILE_OK) {
			o->done = false;
			k->journal.n_done--;
		}
	}
}

/* Measurements are dear: a table that no journal here stands behind is somebody's, and is not written over. */
static int check_table_is_ours(const struct campaign *k, struct err *err)
{
	char path[PATH_MAX + 16];
	struct stat st;

	snprintf(path, sizeof path, "%s/journal.jsonl", k->dir);
	if (k->o->restart || !access(path, F_OK) || stat(k->c->output, &st) || !S_ISREG(st.st_mode) ||
	    !st.st_size)
		return 0;
	return err_fail(
		err, ERR_ARG,
		"%s is there already and %s holds no journal of it; write to another file, or add --restart",
		text_tail(k->c->output, 150), text_tail(k->dir, 150));
}

static int open_journal(struct campaign *k, struct err *err)
{
	struct profile_state s = state_of(k);
	int rc = profile_journal_open(&k->journal, k->dir, &k->design, &k->plan,
				      k->o->dry_run   ? PROFILE_LOOK
				      : k->o->restart ? PROFILE_RESTART
						      : PROFILE_RESUME,
				      err);

	if (rc)
		return rc;
	k->n_resumed = k->journal.n_done;
	if (k->journal.n_cut)
		cli_notice(
			k->c,
			"%s: the last line was torn, %zu bytes; it is cut off and its run is measured again",
			k->journal.path, k->journal.n_cut);
	if (k->journal.existed && !k->o->dry_run)
		cli_notice(k->c, "resuming: %zu of %zu runs are already in %s", k->n_resumed, k->plan.n,
			   k->journal.path);
	rc = profile_judge(&s, &k->verdict, err);
	if (!rc && k->o->retry)
		forget_bad(k);
	return rc;
}

/* ---- the plan, for people and programs ---- */

static void json_setting(struct json_writer *w, const struct profile_design *d, const uint16_t *level)
{
	json_put_key(w, "setting");
	json_open(w, '{');
	for (size_t i = 0; i < d->n_factors; i++) {
		if (d->factor[i].number)
			json_kv_number(w, d->factor[i].name, atof(d->factor[i].level[level[i]]));
		else
			json_kv_string(w, d->factor[i].name, d->factor[i].level[level[i]]);
	}
	json_close(w, '}');
}

static int json_command(struct json_writer *w, const struct campaign *k, size_t run, struct err *err)
{
	char **word;
	int rc = profile_argv(&k->design, &k->plan.run[run], 1, &word, err);

	if (rc)
		return rc;
	json_put_key(w, "command");
	json_open(w, '[');
	for (size_t i = 0; word[i]; i++)
		json_put_string(w, word[i]);
	json_close(w, ']');
	argv_free(word);
	return 0;
}

static int plan_json(const struct campaign *k, struct strbuf *out, struct err *err)
{
	struct json_writer w;
	int rc = 0;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_put_key(&w, "runs");
	json_open(&w, '[');
	for (size_t i = 0; i < k->plan.n && !rc; i++) {
		const struct profile_point *p = &k->plan.run[i];

		json_open(&w, '{');
		json_kv_int(&w, "run", (long long)i + 1);
		json_kv_int(&w, "replication", p->replication);
		json_setting(&w, &k->design, p->level);
		json_kv_int(&w, "copies", (long long)profile_jobs(&k->design, p->level));
		json_kv_bool(&w, "done", k->journal.run[i].done);
		json_kv_number(&w, "expected_s", profile_estimate_run_s(&k->estimate, &k->design, p));
		rc = json_command(&w, k, i, err);
		json_close(&w, '}');
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

static int plan_text(const struct campaign *k, struct strbuf *out, struct err *err)
{
	const struct profile_design *d = &k->design;
	char align[PROFILE_MAX_FACTORS + 5] = "rr", a[32];
	struct cli_table t;
	char **word;
	int rc = profile_argv(d, &k->plan.run[0], 1, &word, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < d->n_factors; i++)
		strcat(align, d->factor[i].number ? "r" : "l");
	strcat(align, "rr");
	cli_table_init(&t, align);
	cli_table_add(&t, "run");
	cli_table_add(&t, "replication");
	for (size_t i = 0; i < d->n_factors; i++)
		cli_table_add(&t, "%s", d->factor[i].name);
	cli_table_add(&t, "expected s");
	cli_table_add(&t, "done");
	for (size_t i = 0; i < k->plan.n; i++) {
		const struct profile_point *p = &k->plan.run[i];

		cli_table_add(&t, "%zu", i + 1);
		cli_table_add(&t, "%u", p->replication);
		for (size_t f = 0; f < d->n_factors; f++)
			cli_table_add(&t, "%s", d->factor[f].level[p->level[f]]);
		cli_table_add(&t, "%s",
			      k->estimate.n ? cli_number(profile_estimate_run_s(&k->estimate, d, p), a) : "");
		cli_table_add(&t, "%s", k->journal.run[i].done ? "yes" : "");
	}
	cli_table_print(&t, out, cli_colour_stdout(k->c));
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
		strbuf_printf(out, "At most %s by the time limit; an estimate comes with the first run.\n",
			      text_seconds((double)k->plan.n * d->timeout_s, a));
	return 0;
}

static int print_plan(struct campaign *k, struct err *err)
{
	struct profile_state s = state_of(k);
	struct strbuf out = { 0 };
	int rc;

	profile_estimate_make(&s, &k->estimate);
	k->left_s = profile_estimate_left_s(&k->estimate, &s);
	rc = k->c->json ? plan_json(k, &out, err) : plan_text(k, &out, err);
	if (!rc)
		rc = cli_write(NULL, &out, err);
	strbuf_release(&out);
	return rc;
}

/* ---- the summary ---- */

struct summary {
	struct profile_data data;
	struct anova *time, *accuracy; /* NULL: there is nothing to say */
	struct profile_suggestion *suggestion;
	size_t n_suggestions;
	double median_cv, max_cv; /* NaN without replications */
};

static int summary_make(struct campaign *k, struct summary *m, struct err *err)
{
	struct profile_state s = state_of(k);
	struct strbuf text = { 0 };
	struct err why = { 0 };
	int rc = 0;

	m->median_cv = m->max_cv = NAN;
	for (size_t i = 0; i < k->verdict.n_cv; i++)
		m->max_cv = fmax(m->max_cv, k->verdict.cv[i]);
	if (k->verdict.n_cv)
		m->median_cv = stats_median(k->verdict.cv, k->verdict.n_cv);
	profile_put_table(&s, &k->verdict, &text);
	if (k->verdict.n_ok && k->design.n_factors) {
		rc = profile_data_open(&m->data, &k->design, &text, err);
		if (!rc && profile_anova(&m->data, "time", &m->time, &why))
			cli_notice(k->c, "no analysis of time: %s", why.text);
		if (!rc && profile_anova(&m->data, "accuracy", &m->accuracy, &why) && k->c->verbose)
			cli_notice(k->c, "no analysis of accuracy: %s", why.text);
	}
	if (!rc && k->o->suggest != UINT64_MAX) {
		if (k->model || (m->data.table && m->data.table->n_rows > 1))
			rc = profile_suggest(&s, &k->verdict, &m->data, k->model, (size_t)k->o->suggest,
					     &m->suggestion, &m->n_suggestions, err);
		else
			cli_notice(k->c, "nothing to suggest: no run with a result yet, and no --model");
	}
	strbuf_release(&text);
	return rc;
}

static void summary_release(struct summary *m)
{
	anova_free(m->time);
	anova_free(m->accuracy);
	free(m->suggestion);
	profile_data_release(&m->data);
}

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

static void put_shares(struct strbuf *out, const struct campaign *k, const struct anova *a, const char *what)
{
	const struct anova_term *term[ANOVA_MAX_TERMS];
	struct strbuf bar = { 0 };
	struct cli_table t;
	char x[32];
	size_t n;

	if (!a)
		return;
	n = largest_terms(a, term);
	cli_table_init(&t, "lrl");
	cli_table_add(&t, "%s goes with", what);
	cli_table_add(&t, "share");
	cli_table_add(&t, " ");
	for (size_t i = 0; i <= n; i++) {
		double share = i < n               ? term[i]->share
			       : a->total_ss > 0.0 ? a->residual_ss / a->total_ss
						   : NAN;

		cli_table_add(&t, "%s", i < n ? term[i]->name : "(noise)");
		cli_table_add(&t, "%s", cli_percent(share, x));
		strbuf_reset(&bar);
		cli_bar(&bar, share, 24);
		cli_table_add(&t, "%s", strbuf_text(&bar));
	}
	strbuf_puts(out, "\n");
	cli_table_print(&t, out, cli_colour_stdout(k->c));
	cli_table_release(&t);
	strbuf_release(&bar);
}

static void put_bad(struct strbuf *out, const struct campaign *k)
{
	size_t shown = 0, all = k->verdict.n_failed + k->verdict.n_timeout + k->verdict.n_unstable;
	struct strbuf setting = { 0 };
	char a[32];

	for (size_t i = 0; i < k->plan.n && shown < BAD_SHOWN; i++) {
		const struct profile_outcome *o = &k->journal.run[i];

		if (!o->done || k->verdict.status[i] == PROFILE_OK)
			continue;
		strbuf_reset(&setting);
		profile_describe(&k->design, k->plan.run[i].level, &setting);
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

static void put_suggestions(struct strbuf *out, const struct campaign *k, const struct summary *m)
{
	const struct profile_design *d = &k->design;
	char align[PROFILE_MAX_FACTORS + 5] = "", a[32];
	struct cli_table t;

	if (!m->n_suggestions)
		return;
	for (size_t i = 0; i < d->n_factors; i++)
		strcat(align, d->factor[i].number ? "r" : "l");
	strcat(align, "rrrl");
	cli_table_init(&t, align);
	for (size_t i = 0; i < d->n_factors; i++)
		cli_table_add(&t, "%s", d->factor[i].name);
	cli_table_add(&t, "expected s");
	cli_table_add(&t, "%s", k->model ? "bound above it" : "trees disagree by");
	cli_table_add(&t, "measured");
	cli_table_add(&t, "remark");
	for (size_t i = 0; i < m->n_suggestions; i++) {
		const struct profile_suggestion *s = &m->suggestion[i];
		uint16_t level[PROFILE_MAX_FACTORS];

		profile_grid_at(d, s->setting, level);
		for (size_t f = 0; f < d->n_factors; f++)
			cli_table_add(&t, "%s", d->factor[f].level[level[f]]);
		cli_table_add(&t, "%s", cli_number(s->time_s, a));
		cli_table_add(&t, "%s", cli_percent(s->uncertainty, a));
		cli_table_add(&t, "%zu", s->replications);
		cli_table_add(&t, "%s", s->extrapolated ? "outside what the model was trained on" : "");
	}
	strbuf_puts(out, "\nMeasure next, the least certain first:\n");
	cli_table_print(&t, out, cli_colour_stdout(k->c));
	cli_table_release(&t);
}

static void summary_text(const struct campaign *k, const struct summary *m, struct strbuf *out)
{
	const struct profile_verdict *v = &k->verdict;
	char a[32], b[32];

	strbuf_printf(
		out, "%zu runs of %zu settings: %zu ok, %zu failed, %zu over the time limit, %zu unstable",
		k->journal.n_done, k->plan.n_settings, v->n_ok, v->n_failed, v->n_timeout, v->n_unstable);
	if (k->n_resumed)
		strbuf_printf(out, "; %zu of them from before", k->n_resumed);
	strbuf_puts(out, ".\n");
	put_bad(out, k);
	if (v->n_cv)
		strbuf_printf(out,
			      "Between replications the time of a setting varies by %s (median of %zu; at "
			      "most %s).\n",
			      cli_percent(m->median_cv, a), v->n_cv, cli_percent(m->max_cv, b));
	put_shares(out, k, m->time, "time");
	put_shares(out, k, m->accuracy, "accuracy");
	put_suggestions(out, k, m);
	strbuf_printf(out, "\nTable written to %s; journal and logs are in %s.\n", cli_clean(k->c->output),
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

static void json_bad(struct json_writer *w, const struct campaign *k)
{
	json_put_key(w, "problems");
	json_open(w, '[');
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

static void summary_json(const struct campaign *k, const struct summary *m, struct strbuf *out)
{
	const struct profile_verdict *v = &k->verdict;
	struct json_writer w;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_kv_string(&w, "table", k->c->output);
	json_kv_string(&w, "curves", k->o->curves);
	json_kv_string(&w, "journal", k->journal.path);
	json_kv_int(&w, "seed", (long long)k->design.seed);
	json_kv_int(&w, "settings", (long long)k->plan.n_settings);
	json_kv_int(&w, "runs", (long long)k->journal.n_done);
	json_kv_int(&w, "resumed", (long long)k->n_resumed);
	json_kv_int(&w, "ok", (long long)v->n_ok);
	json_kv_int(&w, "failed", (long long)v->n_failed);
	json_kv_int(&w, "timeout", (long long)v->n_timeout);
	json_kv_int(&w, "unstable", (long long)v->n_unstable);
	json_bad(&w, k);
	json_put_key(&w, "noise");
	json_open(&w, '{');
	json_kv_int(&w, "settings", (long long)v->n_cv);
	json_kv_number(&w, "median_cv", m->median_cv);
	json_kv_number(&w, "max_cv", m->max_cv);
	json_close(&w, '}');
	json_put_key(&w, "anova");
	json_open(&w, '{');
	json_terms(&w, "time_s", m->time);
	json_terms(&w, "accuracy", m->accuracy);
	json_close(&w, '}');
	json_put_key(&w, "suggestions");
	json_open(&w, '[');
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
		json_close(&w, '}');
	}
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

static int print_summary(struct campaign *k, struct err *err)
{
	struct summary m = { 0 };
	struct strbuf out = { 0 };
	int rc = summary_make(k, &m, err);

	if (!rc && k->c->json)
		summary_json(k, &m, &out);
	else if (!rc && !k->c->quiet)
		summary_text(k, &m, &out);
	if (!rc && (out.len || out.failed))
		rc = cli_write(NULL, &out, err);
	strbuf_release(&out);
	summary_release(&m);
	return rc;
}

/* ---- the verb ---- */

static int run_campaign(struct campaign *k, struct err *err)
{
	const char *term = getenv("TERM");
	int rc = cli_check_output(k->c->output, err);

	if (!rc && k->o->curves)
		rc = cli_check_output(k->o->curves, err);
	if (!rc)
		rc = check_table_is_ours(k, err);
	if (!rc && k->o->model)
		rc = cli_model_open(k->o->model, &k->model, err);
	if (rc)
		return rc;
	k->bar = !k->c->quiet && isatty(STDERR_FILENO) && !(term && !strcmp(term, "dumb"));
	profile_signals_hold(&k->signals);
	rc = open_journal(k, err);
	if (!rc) {
		rc = measure_all(k, err);
		if (rc && k->journal.n_done < k->plan.n)
			cli_notice(k->c,
				   "%zu of %zu runs are saved in %s; the same command goes on from there",
				   k->journal.n_done, k->plan.n, k->journal.path);
	}
	if (!rc && k->signal)
		fprintf(stderr,
			"postrider: interrupted; the run that was on its way is dropped, %zu of %zu are "
			"saved in %s; "
			"the same command goes on from there\n",
			k->journal.n_done, k->plan.n, cli_clean(k->journal.path));
	profile_signals_release(&k->signals);
	if (!rc && !k->signal)
		rc = print_summary(k, err);
	return rc;
}

static int exit_code(const struct campaign *k)
{
	if (k->signal)
		return 128 + k->signal;
	return k->verdict.n_failed + k->verdict.n_timeout + k->verdict.n_unstable ? 1 : 0;
}

static int check_usage(const struct cli *c, const struct options *o)
{
	if (!c->output && !o->dry_run)
		return cli_usage_error(c, "where shall the table go? Add -o OUT.csv, or -n to see the plan");
	if (c->output && !strcmp(c->output, "-"))
		return cli_usage_error(c, "-o -: the table grows run by run, so it needs a file");
	if (o->curves && !strcmp(o->curves, "-"))
		return cli_usage_error(c, "--curves -: the table grows run by run, so it needs a file");
	if (o->command && o->n_words)
		return cli_usage_error(c,
				       "the command comes from --command or from what follows --, not both");
	if (o->restart && o->retry)
		return cli_usage_error(
			c, "--restart measures everything anew, --retry what failed; give one of them");
	if (o->model && o->suggest == UINT64_MAX)
		return cli_usage_error(c, "--model is what --suggest N asks; add it");
	if (o->suggest != UINT64_MAX && (o->suggest < 1 || o->suggest > SUGGEST_MAX))
		return cli_usage_error(c, "--suggest: 1 to %d settings", SUGGEST_MAX);
	return 0;
}

int verb_profile(int argc, char **argv)
{
	struct options o = {
		.replications = UINT64_MAX, .seed = UINT64_MAX, .tries = UINT64_MAX, .suggest = UINT64_MAX
	};
	const struct cli_option option[] = {
		{ 0, "factor", CLI_LIST, "NAME=A,B",
		  "a factor and its levels; one level: a fixed value.\nMay be repeated; wins over the design "
		  "file",
		  &o.factor },
		{ 0, "design", CLI_TEXT, "HOW",
		  "full: every combination (default); 2k: lowest and\nhighest levels; lhs:N: a Latin "
		  "hypercube of N runs",
		  &o.design },
		{ 0, "replications", CLI_COUNT, "R", "of every setting (default: 1)", &o.replications },
		{ 0, "seed", CLI_COUNT, "N", "of the order, the hypercube and {seed} (default: 1)", &o.seed },
		{ 0, "command", CLI_TEXT, "'WORDS'", "what is measured, with {factor} placeholders; no shell",
		  &o.command },
		{ 0, "accuracy", CLI_TEXT, "PATH", "where its JSON lines have it (default: accuracy)",
		  &o.accuracy },
		{ 0, "regex", CLI_TEXT, "RE", "or an expression whose (group) it is, in any output",
		  &o.regex },
		{ 0, "curves", CLI_TEXT, "FILE", "write accuracy per epoch there", &o.curves },
		{ 0, "workdir", CLI_TEXT, "DIR", "journal and logs (default: OUT.csv.profile)", &o.workdir },
		{ 0, "timeout", CLI_DURATION, "TIME", "of one run, for example 300s (default: 1h)",
		  &o.timeout_s },
		{ 0, "tries", CLI_COUNT, "K", "measure an unstable run so often at most (default: 3)",
		  &o.tries },
		{ 0, "max-spread", CLI_TEXT, "SHARE",
		  "(longest - shortest) / mean of copies or replications\nabove which a run is unstable "
		  "(default: 0.3; 0: none)",
		  &o.max_spread },
		{ 0, "warm-up", CLI_FLAG, NULL, "run the first setting once before measuring", &o.warm_up },
		{ 0, "retry", CLI_FLAG, NULL, "measure failed and unstable runs once more", &o.retry },
		{ 0, "restart", CLI_FLAG, NULL, "begin anew; the old journal stays as journal.jsonl.old",
		  &o.restart },
		{ 0, "suggest", CLI_COUNT, "N", "name the N settings whose time is least certain",
		  &o.suggest },
		{ 0, "model", CLI_TEXT, "FILE", "take the uncertainty for --suggest from this model",
		  &o.model },
		{ 'n', "dry-run", CLI_FLAG, NULL, "print the plan and how long it will take, run nothing",
		  &o.dry_run },
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "profile",
		.synopsis = "[DESIGN.json] -o OUT.csv [options] [-- PROGRAM ARGUMENT...]",
		.what = "Runs a designed experiment on a training command and writes the table of runs that\n"
			"train and anova read. Each run starts njobs copies of the command at the same "
			"time.\n"
			"Every finished run is in a journal before the next begins: the same command goes "
			"on\n"
			"where it was killed. Exit code 1 if a run failed or stayed unstable.",
		.option = option,
		.json = true,
		.output = "write the table here, one row a copy",
		.min_args = 0,
		.max_args = 1,
		.examples =
			"  postrider profile configs/designs/courier-small.json -n -o runs.csv\n"
			"  postrider profile configs/designs/courier-small.json -o runs.csv --curves "
			"curves.csv\n"
			"  postrider profile --factor batch=64,512 --factor njobs=1,3 --replications 3 \\\n"
			"          -o runs.csv -- ./train.sh --batch {batch} --seed {seed}\n",
	};
	struct campaign k = { .o = &o, .journal = { .fd = -1 }, .at = SIZE_MAX, .left_s = NAN };
	struct err err = { 0 };
	struct cli c;
	int code, rc;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		o.word = argv + i + 1;
		o.n_words = (size_t)(argc - i - 1);
		argc = i;
	}
	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	code = check_usage(&c, &o);
	if (code)
		return code;
	k.c = &c;
	profile_design_init(&k.design);
	rc = design_make(&k, &err);
	if (!rc)
		rc = folder_name(&k, &err);
	if (!rc && o.dry_run) {
		rc = open_journal(&k, &err);
		if (!rc)
			rc = print_plan(&k, &err);
		code = rc ? cli_fail(&err) : 0;
	} else {
		if (!rc)
			rc = run_campaign(&k, &err);
		code = rc ? cli_fail(&err) : exit_code(&k);
	}
	model_free(k.model);
	profile_verdict_release(&k.verdict);
	profile_journal_close(&k.journal);
	profile_plan_release(&k.plan);
	profile_design_release(&k.design);
	return code;
}
