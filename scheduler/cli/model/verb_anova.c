/* `postrider anova`: which factors and interactions move the response time (or another column), as a
 * table, as JSON and as pictures. The arithmetic is in predictors/anova/anova.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/anova/anova.h"
#include "scheduler/cli/cli.h"

struct options {
	const char *schema, *target, *factors, *as, *plot, *residuals;
	uint64_t order;
	bool log, two_level;
	struct cli_list exclude;
};

/* "A,B,C" to a list; the pieces lie in *out_text, to be freed after use. */
static int split_names(const char *names, char **out_text, const char **out, size_t *out_n, struct err *err)
{
	char *text = mem_strdup(names), *rest = text;
	size_t n = 0;

	if (!text)
		return err_nomem(err, NULL);
	for (;;) {
		char *piece = rest, *comma = strchr(rest, ','), *end;

		if (comma)
			*comma = '\0';
		piece += strspn(piece, " ");
		for (end = piece + strlen(piece); end > piece && end[-1] == ' ';)
			*--end = '\0';
		if (!*piece || n == ANOVA_MAX_FACTORS) {
			free(text);
			return n == ANOVA_MAX_FACTORS
				       ? err_fail(err, ERR_ARG, "--factors: more than %d names",
						  ANOVA_MAX_FACTORS)
				       : err_fail(err, ERR_ARG, "--factors %.200s: a name is empty", names);
		}
		out[n++] = piece;
		if (!comma)
			break;
		rest = comma + 1;
	}
	*out_text = text;
	*out_n = n;
	return 0;
}

/* ---- text ---- */

static const char *stars(double p)
{
	return p < 0.001 ? "***" : p < 0.01 ? "**" : p < 0.05 ? "*" : "";
}

static void put_heading(struct strbuf *out, const struct anova *a)
{
	strbuf_printf(out, "%s%s%s ~ ", a->log ? "log(" : "", cli_clean(a->target), a->log ? ")" : "");
	for (size_t i = 0; i < a->n_factors; i++)
		strbuf_printf(out, "%s%s", i ? " * " : "", cli_clean(a->factor[i].name));
	if (a->order < a->n_factors)
		strbuf_printf(out, ", interactions up to order %zu", a->order);
	strbuf_printf(out, "\n%zu runs of %zu settings", a->n, a->n_settings);
	if (a->min_replications == a->max_replications)
		strbuf_printf(out, ", %zu of each", a->min_replications);
	else
		strbuf_printf(out, ", %zu to %zu of each", a->min_replications, a->max_replications);
	if (a->n_copies)
		strbuf_printf(out, "; a run is the mean of its copies, %zu rows in all", a->n_copies);
	strbuf_puts(out, "\n\n");
}

static void add_number(struct cli_table *t, double v)
{
	char buf[32];

	cli_table_add(t, "%s", cli_number(v, buf));
}

static void add_row(struct cli_table *t, const char *name, size_t df, double ss, double ms, double share)
{
	char buf[32];

	cli_table_add(t, "%s", name);
	cli_table_add(t, "%zu", df);
	add_number(t, ss);
	if (isnan(ms))
		cli_table_add(t, "%s", "");
	else
		add_number(t, ms);
	cli_table_add(t, "%s", isnan(share) ? "" : cli_percent(share, buf));
}

static void put_terms(struct strbuf *out, const struct anova *a, bool colour)
{
	struct cli_table t;

	cli_table_head(&t, "lrrrrrrl", "term", "df", "sum of squares", "mean square", "share", "F", "p", "");
	for (size_t i = 0; i < a->n_terms; i++) {
		const struct anova_term *x = &a->term[i];

		add_row(&t, x->name, x->df, x->ss, x->ms, x->share);
		add_number(&t, x->f);
		add_number(&t, x->p);
		cli_table_add(&t, "%s", stars(x->p));
		if (x->p < 0.05)
			cli_table_mark(&t);
	}
	add_row(&t, "residual", a->residual_df, a->residual_ss, a->residual_ms, a->residual_ss / a->total_ss);
	for (int i = 0; i < 3; i++)
		cli_table_add(&t, "%s", "");
	add_row(&t, "total", a->n - 1, a->total_ss, NAN, NAN);
	for (int i = 0; i < 3; i++)
		cli_table_add(&t, "%s", "");
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

/* "-1 and +1: cpus 1 and 8, network lenet5 and simplenet." */
static void put_signs(struct strbuf *out, const struct anova *a)
{
	strbuf_puts(out, "-1 and +1 are");
	for (size_t i = 0; i < a->n_factors; i++) {
		const struct anova_factor *f = &a->factor[i];

		strbuf_printf(out, "%s %s ", i ? "," : "", cli_clean(f->name));
		strbuf_printf(out, "%s and ", cli_clean(f->label[0]));
		strbuf_puts(out, cli_clean(f->label[1]));
	}
	strbuf_puts(out, ".\nAn effect is half the change from -1 to +1; that of a product, how much one "
			 "factor changes that of the other.\n\n");
}

static void put_coefficients(struct strbuf *out, const struct anova *a, bool colour)
{
	struct cli_table t;

	if (a->signs)
		put_signs(out, a);
	cli_table_head(&t, "lrrrrlrr", a->signs ? "effect" : "coefficient", "estimate", "std. error", "t",
		       "p", "", "2.5 %", "97.5 %");
	for (size_t i = 0; i < a->n_coefficients; i++) {
		const struct anova_coefficient *c = &a->coefficient[i];

		cli_table_add(&t, "%s", c->name);
		add_number(&t, c->estimate);
		add_number(&t, c->se);
		add_number(&t, c->t);
		add_number(&t, c->p);
		cli_table_add(&t, "%s", stars(c->p));
		add_number(&t, c->low);
		add_number(&t, c->high);
		if (i && c->p < 0.05)
			cli_table_mark(&t);
	}
	cli_table_print(&t, out, colour);
	cli_table_release(&t);
}

static void put_model(struct strbuf *out, const struct anova *a)
{
	char b[4][32];

	strbuf_printf(out, "R2 %.4f, adjusted %.4f; ", a->r2, a->adjusted_r2);
	strbuf_printf(out, "F %s on %zu and %zu df, p %s; residual sd %s\n", cli_number(a->f, b[0]),
		      a->model_df, a->residual_df, cli_number(a->p, b[1]), cli_number(a->residual_sd, b[2]));
	if (a->has_lack_of_fit)
		strbuf_printf(out, "lack of fit: F %s on %zu and %zu df, p %s%s\n",
			      cli_number(a->lack_f, b[0]), a->lack_df, a->pure_df,
			      cli_number(a->lack_p, b[3]),
			      a->lack_p < 0.05 ? " (the replications agree better than the model does)" : "");
}

static void put_text(struct strbuf *out, const struct cli *c, const struct anova *a,
		     const struct anova_check *check)
{
	put_heading(out, a);
	put_terms(out, a, cli_colour(c));
	strbuf_puts(out, "\n");
	put_coefficients(out, a, cli_colour(c));
	strbuf_puts(out, "\n");
	put_model(out, a);
	anova_check_text(a, check, out);
	strbuf_puts(out, "Sums of squares of type II. * p < 0.05, ** p < 0.01, *** p < 0.001.\n");
}

/* ---- JSON ---- */

static void json_factors(struct json_writer *w, const struct anova *a)
{
	json_kv_open(w, "factors", '[');
	for (size_t i = 0; i < a->n_factors; i++) {
		json_open(w, '{');
		json_kv_string(w, "name", a->factor[i].name);
		json_kv_string(w, "as",
			       a->factor[i].signs    ? "signs"
			       : a->factor[i].levels ? "levels"
						     : "numbers");
		json_kv_int(w, "levels", (long long)a->factor[i].n_levels);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static void json_terms(struct json_writer *w, const struct anova *a)
{
	json_kv_open(w, "terms", '[');
	for (size_t i = 0; i < a->n_terms; i++) {
		const struct anova_term *t = &a->term[i];

		json_open(w, '{');
		json_kv_string(w, "term", t->name);
		json_kv_int(w, "df", (long long)t->df);
		json_kv_number(w, "ss", t->ss);
		json_kv_number(w, "ms", t->ms);
		json_kv_number(w, "f", t->f);
		json_kv_number(w, "p", t->p);
		json_kv_number(w, "share", t->share);
		json_close(w, '}');
	}
	json_close(w, ']');
	json_kv_open(w, "residual", '{');
	json_kv_int(w, "df", (long long)a->residual_df);
	json_kv_number(w, "ss", a->residual_ss);
	json_kv_number(w, "ms", a->residual_ms);
	json_kv_number(w, "share", a->residual_ss / a->total_ss);
	json_close(w, '}');
	json_kv_open(w, "total", '{');
	json_kv_int(w, "df", (long long)a->n - 1);
	json_kv_number(w, "ss", a->total_ss);
	json_close(w, '}');
}

static void json_coefficients(struct json_writer *w, const struct anova *a)
{
	json_kv_open(w, "coefficients", '[');
	for (size_t i = 0; i < a->n_coefficients; i++) {
		const struct anova_coefficient *c = &a->coefficient[i];

		json_open(w, '{');
		json_kv_string(w, "term", c->name);
		json_kv_number(w, "estimate", c->estimate);
		json_kv_number(w, "se", c->se);
		json_kv_number(w, "t", c->t);
		json_kv_number(w, "p", c->p);
		json_kv_number(w, "low", c->low);
		json_kv_number(w, "high", c->high);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static void json_model(struct json_writer *w, const struct anova *a)
{
	json_kv_open(w, "model", '{');
	json_kv_number(w, "r2", a->r2);
	json_kv_number(w, "adjusted_r2", a->adjusted_r2);
	json_kv_number(w, "f", a->f);
	json_kv_number(w, "p", a->p);
	json_kv_int(w, "n", (long long)a->n);
	json_kv_int(w, "rows", (long long)(a->n_copies ? a->n_copies : a->n));
	json_kv_int(w, "df", (long long)a->model_df);
	json_kv_int(w, "residual_df", (long long)a->residual_df);
	json_kv_number(w, "residual_sd", a->residual_sd);
	json_kv_int(w, "order", (long long)a->order);
	json_close(w, '}');
	json_kv_open(w, "replications", '{');
	json_kv_int(w, "settings", (long long)a->n_settings);
	json_kv_int(w, "min", (long long)a->min_replications);
	json_kv_int(w, "max", (long long)a->max_replications);
	json_close(w, '}');
	json_put_key(w, "lack_of_fit");
	if (!a->has_lack_of_fit) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_int(w, "df", (long long)a->lack_df);
	json_kv_int(w, "pure_df", (long long)a->pure_df);
	json_kv_number(w, "ss", a->lack_ss);
	json_kv_number(w, "pure_ss", a->pure_ss);
	json_kv_number(w, "f", a->lack_f);
	json_kv_number(w, "p", a->lack_p);
	json_close(w, '}');
}

static void json_check(struct json_writer *w, const struct anova_check *c)
{
	json_put_key(w, "residual_checks");
	if (c->none) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_number(w, "spread_rank_correlation", c->spread);
	json_kv_number(w, "spread_p", c->spread_p);
	json_kv_number(w, "largest_over_smallest", c->ratio);
	json_kv_number(w, "normal_correlation", c->normal);
	json_kv_number(w, "order_correlation", c->after);
	json_kv_number(w, "order_limit", c->after_limit);
	json_kv_bool(w, "log_advised", c->wants_log);
	json_close(w, '}');
}

static void put_json(struct strbuf *out, const struct anova *a, const struct anova_check *check)
{
	struct json_writer w;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_kv_string(&w, "target", a->target);
	json_kv_bool(&w, "log", a->log);
	json_kv_bool(&w, "signs", a->signs);
	json_factors(&w, a);
	json_terms(&w, a);
	json_coefficients(&w, a);
	json_model(&w, a);
	json_check(&w, check);
	json_kv_open(&w, "notes", '[');
	for (size_t i = 0; i < a->n_notes; i++)
		json_put_string(&w, a->note[i]);
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

/* ---- the verb ---- */

/* check: NULL for the effects, else the residuals are drawn. */
static int write_plot(const struct anova *a, const struct anova_check *check, const char *path,
		      struct err *err)
{
	struct strbuf svg = { 0 };
	int rc = check ? anova_residual_plot(a, check, &svg, err) : anova_plot(a, &svg, err);

	if (!rc)
		rc = cli_write(path, &svg, err);
	strbuf_release(&svg);
	return rc;
}

static int analyse(const struct options *o, const struct table *t, struct anova **out, struct err *err)
{
	const char *name[ANOVA_MAX_FACTORS];
	char *names = NULL;
	struct anova_params p = {
		.table = t,
		.target = o->target,
		.coding = o->as && !strcmp(o->as, "levels") ? ANOVA_LEVELS : ANOVA_NUMBERS,
		.order = (size_t)o->order,
		.log = o->log,
		.extremes = o->two_level,
	};
	int rc = 0;

	if (o->factors) {
		p.factor = name;
		rc = split_names(o->factors, &names, name, &p.n_factors, err);
	}
	if (!rc)
		rc = anova_run(&p, out, err);
	free(names);
	return rc;
}

static int deliver(const struct cli *c, const struct options *o, const struct anova *a, struct err *err)
{
	struct strbuf out = { 0 };
	struct anova_check check;
	int rc = anova_check(a, &check, err);

	if (rc)
		return rc;
	if (o->two_level && !a->signs)
		cli_notice(c, "--2k: a factor has more than two levels, so not every coefficient is an "
			      "effect at -1 and +1");
	if (a->n_not_extreme)
		cli_notice(c, "--2k: %zu rows between the extremes left out", a->n_not_extreme);
	for (size_t i = 0; i < a->n_notes; i++)
		cli_notice(c, "%s", a->note[i]);
	if (c->json)
		put_json(&out, a, &check);
	else
		put_text(&out, c, a, &check);
	rc = cli_write(c->output, &out, err);
	if (!rc && o->plot)
		rc = write_plot(a, NULL, o->plot, err);
	if (!rc && o->residuals && check.none)
		cli_notice(c, "the model fits exactly, so there are no residuals: %s is not written",
			   cli_clean(o->residuals));
	else if (!rc && o->residuals)
		rc = write_plot(a, &check, o->residuals, err);
	strbuf_release(&out);
	return rc;
}

#define AT(member) CLI_AT(struct options, member)
static const struct cli_option option[] = {
	{ 0, "schema", CLI_TEXT, "FILE", "a schema file: what the columns mean (default: built in)",
	  AT(schema) },
	{ 0, "target", CLI_TEXT, "COLUMN",
	  "the column to explain: time (default), accuracy, or any\ncolumn of numbers", AT(target) },
	{ 0, "factors", CLI_TEXT, "A,B,C", "columns that explain it (default: all that vary)", AT(factors) },
	{ 0, "as", CLI_TEXT, "HOW", "numbers: one coefficient per factor (default);\nlevels: one per level",
	  AT(as) },
	{ 0, "order", CLI_COUNT, "N", "highest order of interactions (default: all)", AT(order) },
	{ 0, "log", CLI_FLAG, NULL, "explain the logarithm of the target", AT(log) },
	{ 0, "2k", CLI_FLAG, NULL,
	  "use only rows where every number is its lowest or\nhighest: the 2^k r design, with effects at -1 "
	  "and +1",
	  AT(two_level) },
	{ 0, "exclude", CLI_LIST, "COL=VALUE", "leave these rows out; may be repeated", AT(exclude) },
	{ 0, "plot", CLI_TEXT, "FILE.svg", "draw the main effects and the interactions", AT(plot) },
	{ 0, "residuals", CLI_TEXT, "FILE.svg",
	  "draw the residuals: against fitted values, normal\nquantiles, the order of runs, the mean",
	  AT(residuals) },
	{ 0 },
};

static const struct cli_usage usage = {
	.verb = "anova",
	.synopsis = "DATA.csv [options]",
	.what = "Analysis of variance of a designed experiment: how much of the variation of the response\n"
		"time each factor and each interaction of factors explains, and whether that is more than\n"
		"chance. Numbers count as numbers unless you give --as levels; words are always levels.",
	.option = option,
	.json = true,
	.output = "write the result here",
	.min_args = 1,
	.max_args = 1,
	.examples = "  postrider anova runs.csv\n"
		    "  postrider anova runs.csv --factors cpus,batch --as levels --plot effects.svg\n"
		    "  postrider anova runs.csv --target accuracy --order 2 --json\n",
};

int verb_anova(int argc, char **argv)
{
	struct options o = { 0 };
	struct cli_input in = { 0 };
	struct anova *a = NULL;
	struct err err = { 0 };
	struct cli c;
	int code, rc = 0;

	if (!cli_parse_into(&c, &usage, &o, argc, argv, &code))
		return code;
	if (o.as && strcmp(o.as, "numbers") && strcmp(o.as, "levels"))
		return cli_usage_error(&c, "--as %s: write numbers or levels", o.as);
	if (o.plot && !strcmp(o.plot, "-") && (!c.output || !strcmp(c.output, "-")))
		return cli_usage_error(
			&c, "--plot - sends the picture to standard output; add -o FILE for the table");
	if (o.residuals && !strcmp(o.residuals, "-"))
		return cli_usage_error(&c, "--residuals - : name a file");
	rc = cli_check_output(o.plot, &err);
	if (!rc)
		rc = cli_check_output(o.residuals, &err);
	if (!rc)
		rc = cli_check_output(c.output, &err);
	if (!rc)
		rc = cli_input_open(&in, &c,
				    &(struct cli_input_params){ .path = c.arg[0],
								.schema_path = o.schema,
								.exclude = &o.exclude },
				    &err);
	if (!rc)
		rc = analyse(&o, in.table, &a, &err);
	if (!rc)
		rc = deliver(&c, &o, a, &err);
	code = rc ? cli_fail(&err) : 0;
	anova_free(a);
	cli_input_release(&in);
	return code;
}
