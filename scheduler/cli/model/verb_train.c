/* `postrider train`: reads a table of runs, writes a model file, and prints which models were tried.
 * predictors/search/train.c does the work; this file has the options, the grids and the output. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pool.h"
#include "common/text/text.h"
#include "common/version.h"
#include "predictors/data/curves.h"
#include "predictors/search/doubt.h"
#include "scheduler/cli/cli.h"
#include "scheduler/cli/model/views.h"
#include "scheduler/core/policy/recipe.h"
#include "scheduler/process/machine.h"

#define GRID_FILE_MAX ((size_t)1 << 20)
#define NOT_GIVEN UINT64_MAX
#define SEARCH_ROWS 5000 /* of a search without a policy, which tries some hundred models */

struct options {
	bool measured_here; /* the table is one of `postrider profile` */
	const char *schema, *grid, *model, *policy, *set, *group, *split, *curves, *select, *plot;
	struct cli_list exclude;
	uint64_t seed, search_rows;
	double time_limit_s; /* NaN: none */
	bool plain_bounds, believe_all, learning_curve, dry_run;
	bool in_words; /* no tables: notes say what was chosen, and warn */
	enum search_by by_score; /* of --select */
	const struct policy *by; /* of --policy */
	bool searches; /* the policy has a choice of models or settings, and --set says nothing */
};

/* ---- options into parameters ---- */

static const struct predictor_ops *model_by_name(const char *name, struct err *err)
{
	const struct predictor_ops *ops = predictor_find(name);
	const char *known[64] = { NULL };
	char hint[TEXT_HINT];

	if (ops)
		return ops;
	for (size_t i = 0; i < 63 && predictor_all[i]; i++)
		known[i] = predictor_all[i]->name;
	err_fail(err, ERR_ARG, "--model %s: there is no such model%s; the models are: %s", name,
		 text_hint(name, known, hint), predictor_names());
	return NULL;
}

/* A file with "time" or "accuracy" at the top has a grid for each; otherwise one grid is used for both. */
static int grids_read(const char *path, struct grid **out_time, struct grid **out_accuracy, struct err *err)
{
	static const char *const parts[] = { "time", "accuracy", NULL };
	const struct json *time, *accuracy;
	struct json *root;
	int rc = json_read_settings(path, GRID_FILE_MAX, &root, err);

	if (rc)
		return rc;
	time = accuracy = root;
	if (json_get(root, "time") || json_get(root, "accuracy")) {
		rc = json_known_keys(root, path, parts, err);
		if (rc)
			goto out;
		time = json_get(root, "time");
		accuracy = json_get(root, "accuracy");
	}
	if (time)
		rc = grid_from_json(path, time, out_time, err);
	if (!rc && accuracy)
		rc = grid_from_json(path, accuracy, out_accuracy, err);
out:
	json_free(root);
	return rc;
}

struct plan { /* what to try; the points are used if there is no search */
	struct grid *time, *accuracy; /* owned */
	struct grid one_time, one_accuracy;
	struct grid_point time_point, accuracy_point;
};

static int plan_fixed(struct plan *p, const struct options *o, struct err *err)
{
	p->time_point.ops = model_by_name(o->model, err);
	if (!p->time_point.ops)
		return -ERR_ARG;
	settings_init(&p->time_point.settings, p->time_point.ops->spec);
	if (!o->by && recipe_log_time(&p->time_point, err))
		return -ERR_ARG;
	if (o->by && o->by->settings && settings_parse(&p->time_point.settings, o->by->settings, err))
		return err_prefix(err, "--policy %s", o->by->name);
	if (o->set && settings_parse(&p->time_point.settings, o->set, err))
		return err_prefix(err, "--set");
	p->one_time = (struct grid){ &p->time_point, 1 };
	p->one_accuracy = (struct grid){ &p->accuracy_point, 1 };
	return recipe_accuracy(o->by, o->curves != NULL, &p->accuracy_point, err);
}

/* The models that a policy wants. Cores that are given, or else those of this machine, are tried beside cores
 * that are estimated, and the error on rows that were held out decides: on jobs that do not use the cpu the
 * estimate may do better. A table from elsewhere knows nothing of this machine. */
static int plan_policy(struct plan *p, const struct options *o, struct err *err)
{
	struct settings cores = { 0 };
	double given = o->measured_here ? machine_cores() : 0.0;
	int rc = 0;

	if (o->set) {
		settings_init(&cores, predictor_find(o->by->predictor)->spec);
		rc = settings_parse(&cores, o->set, err);
		if (rc)
			return err_prefix(err, "--set");
		given = settings_get(&cores, "cores");
	}
	rc = recipe_search_time(o->by, given, &p->time, err);
	return rc ? rc : recipe_search_accuracy(o->by, o->curves != NULL, &p->accuracy, err);
}

static int plan_make(struct plan *p, const struct options *o, struct err *err)
{
	int rc = 0;

	if (o->searches)
		return plan_policy(p, o, err);
	if (o->model)
		return plan_fixed(p, o, err);
	if (o->grid)
		rc = grids_read(o->grid, &p->time, &p->accuracy, err);
	if (!rc && !p->time)
		rc = recipe_search_time(NULL, 0.0, &p->time, err);
	if (!rc && !p->accuracy)
		rc = recipe_search_accuracy(NULL, o->curves != NULL, &p->accuracy, err);
	return rc;
}

static void plan_release(struct plan *p)
{
	grid_free(p->time);
	grid_free(p->accuracy);
}

#define LINES_NAMED 12

/* "2 rows look wrong, lines 48, 54: ...", for one reason. */
static void say_doubted(const struct cli *c, const struct train_report *r, enum doubt why, const char *what)
{
	struct strbuf lines = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < r->n_doubted; i++)
		if (r->doubted[i].why == why && n++ < LINES_NAMED)
			strbuf_printf(&lines, "%s%u", n > 1 ? ", " : "", (unsigned)r->doubted[i].line);
	if (n)
		cli_notice(c,
			   "%zu row%s wrong, line%s %s%s: %s; not used in the fit (--believe-all uses them)",
			   n, n == 1 ? " looks" : "s look", n == 1 ? "" : "s", strbuf_text(&lines),
			   n > LINES_NAMED ? ", ..." : "", what);
	strbuf_release(&lines);
}

static void say_choice(const struct cli *c, const struct model *m, const struct table *t)
{
	int at = schema_find(t->schema, t->schema->decision);
	const double *batch = at >= 0 ? t->column[at].number : NULL;
	double least = INFINITY, most = -INFINITY; /* of the accuracies */
	size_t without = 0, with_accuracy = 0;

	for (size_t i = 0; i < t->n_rows; i++) {
		without += batch && isnan(batch[i]);
		if (!t->accuracy || isnan(t->accuracy[i]))
			continue;
		least = fmin(least, t->accuracy[i]);
		most = fmax(most, t->accuracy[i]);
		with_accuracy++;
	}
	if (without)
		cli_notice(c, "%zu of %zu rows have no %s; they say nothing about the choice of one", without,
			   t->n_rows, t->schema->decision);
	if (m->n_candidates == 1)
		cli_notice(c, "the table has one %s only: there is nothing to choose", t->schema->decision);
	else if (with_accuracy > 1 && least == most)
		cli_notice(c, "all accuracies are equal: there is nothing to choose but the fastest %s",
			   t->schema->decision);
}

/* in_words: of the notices about models only those of what was chosen, and how good it is. */
static void say_notices(const struct cli *c, const struct model *m, const struct train_report *r,
			bool in_words)
{
	say_doubted(c, r, DOUBT_REPEATED,
		    "the time is that of another setting to the last digit, where it fits better");
	say_doubted(c, r, DOUBT_FAR, "the time is far from what all other rows say");
	for (size_t i = 0; i < r->n_notices; i++)
		if (!in_words || r->choices >> i & 1)
			cli_notice(c, "%s", r->notice[i]);
	if (r->leaks)
		cli_notice(c, "training and test rows have equal settings, so the scores are too good; "
			      "--group COLUMNS keeps replications together");
	if (!m->accuracy.predictor.ops)
		cli_notice(c, "no accuracy to learn from: this model predicts time alone, so the fastest "
			      "batch size will be chosen");
}

/* ---- the verb ---- */

/* --policy means the model it needs. */
static int policy_means(struct options *o, struct err *err)
{
	struct policy_choice by;
	int rc = policy_parse(o->policy, &by, err);

	if (rc)
		return err_prefix(err, "--policy");
	if (!by.policy->predictor)
		return err_fail(err, ERR_ARG, "--policy %s: this policy needs no model; use any",
				by.policy->name);
	o->by = by.policy;
	o->model = by.policy->predictor;
	o->searches = !by.policy->settings &&
		      (!o->set ||
		       (by.policy->or_predictor && !strncmp(o->set, "cores=", 6) && !strchr(o->set, ',')));
	return 0;
}

/* ---- --curves ---- */

struct joined { /* the runs, each with its state after fewer epochs */
	struct csv *csv; /* of the curves */
	struct curves *curves;
	struct table *table;
};

static void say_joined(const struct cli *c, const struct options *o, const struct curves *j)
{
	cli_notice(c, "%zu runs and their curves make %zu rows; rows of one run stay together", j->n_runs,
		   j->csv->n_rows);
	if (j->n_without || j->n_unfinished)
		cli_notice(c,
			   "%zu runs have no curve in %s and %zu have one that ends before their last epoch; "
			   "these runs are used without a curve",
			   j->n_without, cli_clean(o->curves), j->n_unfinished);
	if (j->n_strangers)
		cli_notice(c, "%zu rows of %s belong to no run in %s", j->n_strangers, cli_clean(o->curves),
			   cli_clean(c->arg[0]));
}

static int join_open(struct joined *j, const struct cli *c, const struct options *o,
		     const struct cli_input *in, struct err *err)
{
	int rc = csv_read_file(o->curves, &j->csv, err);

	if (!rc)
		rc = curves_join(in->csv, j->csv, in->schema, &j->curves, err);
	if (!rc)
		rc = table_read(j->curves->csv, in->schema, true, &j->table, err);
	if (!rc && !o->in_words)
		say_joined(c, o, j->curves);
	return rc;
}

static void joined_release(struct joined *j)
{
	table_free(j->table);
	curves_free(j->curves);
	csv_free(j->csv);
}

struct call { /* of the verb, and what comes of it */
	const struct cli *c;
	const struct options *o;
	const struct table *table;
	const uint32_t *run; /* as in train.h */
	struct model *m;
	struct train_report report;
	struct learning learning;
};

static int train(struct call *k, struct err *err)
{
	const struct cli *c = k->c;
	const struct options *o = k->o;
	struct cli_progress progress = { .off = c->quiet };
	struct train_params p = recipe_params(o->seed);
	struct plan plan = { 0 };
	const char *group[TRAIN_MAX_GROUPS];
	struct train_split levels;
	char group_text[1024], created[32];
	double from_s = clock_monotonic_s();
	int rc;

	rc = plan_make(&plan, o, err);
	if (!rc && o->group)
		rc = train_groups_parse(o->group, group_text, sizeof group_text, group, &p.n_groups, err);
	if (!rc && o->split)
		rc = train_split_parse(o->split, k->table, &levels, &p.split, err);
	if (!rc)
		rc = cli_created(created, sizeof created, err);
	if (!rc)
		rc = pool_new((size_t)c->threads, &p.ctx.pool, err);
	if (rc)
		goto out;
	p.table = k->table;
	p.run = k->run;
	p.plain_bounds = o->plain_bounds;
	p.believe_all = o->believe_all;
	p.select = o->select ? &o->by_score : NULL;
	if (o->search_rows != NOT_GIVEN)
		p.search_rows = (size_t)o->search_rows;
	else if (!o->by)
		p.search_rows = SEARCH_ROWS;
	p.ctx.stop = cli_time_limit(o->time_limit_s);
	p.on_progress = cli_on_progress;
	p.owner = &progress;
	p.data_name = c->arg[0];
	p.program = postrider_program;
	p.grid = plan.time ? plan.time : &plan.one_time;
	p.accuracy_grid = plan.accuracy ? plan.accuracy : &plan.one_accuracy;
	p.group = group;
	p.created = created;
	rc = train_model(&p, &k->m, &k->report, err);
	cli_progress_end(&progress);
	if (!rc && o->learning_curve)
		rc = learning_run(&p, &k->report.time_grid->point[k->report.time_best], &k->learning, err);
	if (!rc && c->verbose)
		cli_notice(c, "%zu models of time and %zu of accuracy in %.2f s on %zu threads", p.grid->n,
			   k->report.accuracy_grid ? k->report.accuracy_grid->n : 0,
			   clock_monotonic_s() - from_s, pool_threads(p.ctx.pool));
out:
	pool_free(p.ctx.pool);
	plan_release(&plan);
	return rc;
}

/* The model is written first, so that "written to" is true when it is printed. */
static int deliver(const struct call *k, const struct table *t, struct err *err)
{
	const struct cli *c = k->c;
	const struct options *o = k->o;
	const struct model *m = k->m;
	const struct learning *l = o->learning_curve ? &k->learning : NULL;
	struct writer file = { 0 };
	struct strbuf text = { 0 };
	int rc = 0;

	if (!o->dry_run) {
		rc = model_encode(m, &file, err);
		if (!rc)
			rc = cli_write(c->output, &file.out, err);
	}
	if (!rc) {
		say_notices(c, m, &k->report, o->in_words);
		say_choice(c, m, t);
		if (c->json)
			train_view_json(&text, c, o->dry_run, m, &k->report, l);
		else if (!c->quiet && !o->in_words)
			train_view_text(&text, c, o->dry_run, m, &k->report, l);
		if (text.len || text.failed)
			rc = cli_write(NULL, &text, err);
		if (!rc && o->plot)
			rc = learning_plot(l, m, o->plot, err);
	}
	strbuf_release(&file.out);
	strbuf_release(&text);
	return rc;
}

static bool select_parse(const char *text, enum search_by *out)
{
	for (size_t i = 0; search_by_name[i]; i++)
		if (!strcmp(search_by_name[i], text)) {
			*out = (enum search_by)i;
			return true;
		}
	return false;
}

static int check_usage(const struct cli *c, struct options *o)
{
	if (!c->output && !o->dry_run)
		return cli_usage_error(c, "no output file: add -o MODEL, or -n to write none");
	if (o->set && !o->model && !o->policy)
		return cli_usage_error(c, "--set needs --model or --policy");
	if (o->plot && !o->learning_curve)
		return cli_usage_error(c, "--plot draws the learning curve: add --learning-curve");
	if (o->select && !select_parse(o->select, &o->by_score))
		return cli_usage_error(c, "--select %s: write mse, log-mse, mape, mae or r2", o->select);
	if (o->learning_curve && o->curves)
		return cli_usage_error(c, "--learning-curve counts runs: leave out --curves");
	if (o->grid && o->model)
		return cli_usage_error(c, "give either --grid or --model");
	if (o->policy && (o->model || o->grid))
		return cli_usage_error(c, "--policy determines the model; leave out --%s",
				       o->model ? "model" : "grid");
	if (c->output && !strcmp(c->output, "-") && !o->dry_run && (c->json || !c->quiet))
		return cli_usage_error(
			c, "-o - sends the model to standard output; add -q and leave out --json");
	return 0;
}

#define AT(member) CLI_AT(struct options, member)
static const struct cli_option option[] = {
	{ 0, "schema", CLI_TEXT, "FILE", "a schema file: what the columns mean (default: built in)",
	  AT(schema) },
	{ 0, "model", CLI_TEXT, "NAME", "use this model of time instead of searching", AT(model) },
	{ 0, "policy", CLI_TEXT, "NAME", "train the model that this policy needs", AT(policy) },
	{ 0, "set", CLI_TEXT, "K=V,...", "settings of the model, with --model or --policy", AT(set) },
	{ 0, "grid", CLI_TEXT, "FILE", "a JSON file with the models and settings to try", AT(grid) },
	{ 0, "search-rows", CLI_COUNT, "N",
	  "search on at most N rows (default: 5000, with --policy\n2000; 0: all)", AT(search_rows) },
	{ 0, "group", CLI_TEXT, "COLS", "keep rows together that are equal in these columns", AT(group) },
	{ 0, "split", CLI_TEXT, "HOW",
	  "how test rows are chosen: kfold:5 (default),\nholdout:20:0.2, leave-group, "
	  "interpolate:COLUMN[:L,L],\n"
	  "extrapolate:COLUMN[:BOUND]",
	  AT(split) },
	{ 0, "select", CLI_TEXT, "SCORE",
	  "choose the best by mse, log-mse, mape, mae or r2 (default:\nlog-mse for time, mse for accuracy)",
	  AT(select) },
	{ 0, "learning-curve", CLI_FLAG, NULL, "how many runs are needed: the error against the runs",
	  AT(learning_curve) },
	{ 0, "plot", CLI_TEXT, "FILE.svg", "draw the learning curve", AT(plot) },
	{ 0, "curves", CLI_TEXT, "FILE",
	  "accuracy and time per epoch, as `profile` writes them:\nlearns from every epoch of a run",
	  AT(curves) },
	{ 0, "exclude", CLI_LIST, "COL=VALUE", "leave these rows out; may be repeated", AT(exclude) },
	{ 0, "seed", CLI_COUNT, "N", "seed of the random numbers (default: 1)", AT(seed) },
	{ 0, "time-limit", CLI_DURATION, "TIME", "give up after this long, with exit code 124 and no model",
	  AT(time_limit_s) },
	{ 0, "plain-bounds", CLI_FLAG, NULL, "upper bounds of the same width for short and long jobs",
	  AT(plain_bounds) },
	{ 0, "believe-all", CLI_FLAG, NULL, "learn from rows whose times look wrong, too", AT(believe_all) },
	{ 'n', "dry-run", CLI_FLAG, NULL, "train and report, but write no model", AT(dry_run) },
	{ 0 },
};

static const struct cli_usage usage = {
	.verb = "train",
	.synopsis = "DATA.csv -o MODEL [options]",
	.what = "Learns response time and accuracy from a table of runs. Without --model or --policy it\n"
		"tries many models, tests each on rows that it has not seen, and keeps the one with the\n"
		"lowest mean squared error, for times that of their logarithms. With -q it prints only what "
		"--json asks for.",
	.option = option,
	.json = true,
	.threads = true,
	.output = "write the model here",
	.min_args = 1,
	.max_args = 1,
	.examples = "  postrider train runs.csv -o runs.model\n"
		    "  postrider train runs.csv -o runs.model --curves curves.csv\n"
		    "  postrider train runs.csv -o f.model --model forest --set trees=500,depth=9\n"
		    "  postrider train runs.csv -o paper.model --policy courier\n"
		    "  postrider train runs.csv -n --split extrapolate:njobs --json\n",
};

static int train_verb(int argc, char **argv, bool in_words)
{
	struct options o = { .seed = 1, .search_rows = NOT_GIVEN, .time_limit_s = NAN, .in_words = in_words };
	struct cli_input in = { 0 };
	struct joined joined = { 0 };
	struct err err = { 0 };
	struct cli c;
	struct call k = { .c = &c, .o = &o };
	int code, rc;

	if (!cli_parse_into(&c, &usage, &o, argc, argv, &code))
		return code;
	code = check_usage(&c, &o);
	if (code)
		return code;
	rc = o.dry_run ? 0 : cli_check_output(c.output, &err);
	if (!rc)
		rc = cli_check_output(o.plot, &err);
	if (!rc && o.policy)
		rc = policy_means(&o, &err);
	if (!rc)
		rc = cli_input_open(&in, &c,
				    &(struct cli_input_params){ .path = c.arg[0],
								.schema_path = o.schema,
								.policy = o.by,
								.exclude = &o.exclude,
								.need_targets = true },
				    &err);
	if (!rc)
		o.measured_here = schema_is_measured(in.csv);
	if (!rc && o.curves)
		rc = join_open(&joined, &c, &o, &in, &err);
	if (!rc) {
		k.table = o.curves ? joined.table : in.table;
		k.run = o.curves ? joined.curves->run : NULL;
		rc = train(&k, &err);
	}
	if (!rc)
		rc = deliver(&k, in.table, &err);
	code = rc == -ERR_STOPPED ? cli_out_of_time(o.time_limit_s, "no model is written")
	       : rc               ? cli_fail(&err)
				  : 0;
	train_report_release(&k.report);
	model_free(k.m);
	joined_release(&joined);
	cli_input_release(&in);
	return code;
}

int verb_train(int argc, char **argv)
{
	return train_verb(argc, argv, false);
}

int train_in_words(int argc, char **argv)
{
	return train_verb(argc, argv, true);
}
