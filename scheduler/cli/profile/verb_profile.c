/* `postrider profile`: a designed experiment on a training command. This file parses the options, shows
 * progress and prints the plan and the summary; scheduler/profiler measures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "scheduler/cli/job/job_folder.h"
#include "scheduler/cli/model/views.h"
#include "scheduler/cli/profile/campaign_view.h"
#include "scheduler/cli/profile/engine_option.h"
#include "scheduler/cli/profile/neighbours.h"
#include "scheduler/engines/profile_run.h"

#define SUGGEST_MAX 1000

struct options {
	struct cli_list factor;
	const char *design, *command, *accuracy, *regex, *curves, *workdir, *max_spread, *model, *executor,
		*config;
	double timeout_s, budget_s; /* 0: not given */
	uint64_t replications, seed, tries, suggest; /* UINT64_MAX: not given */
	bool dry_run, restart, retry, warm_up, no_mixed;
	char **word;
	size_t n_words; /* the words after -- */
};

struct verb {
	const struct cli *c;
	const struct options *o;
	struct profile_campaign k;
	struct job_folder folder;
	bool in_folder; /* the argument is the folder of a job */
	bool bar; /* show progress */
	double told_s, training_s; /* when it was last said what could be promised, and how long that took */
	struct config *config; /* of the engine; NULL: the runs are on this machine */
	struct engine_runner runner;
	struct neighbours neighbours;
};

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

static bool is_local(const struct options *o)
{
	return !o->executor || !strcmp(o->executor, ENGINE_LOCAL);
}

/* Who may run beside the job. What was measured beside somebody else is in the table already, so that
 * measuring again is not another experiment. */
static int find_neighbours(struct verb *v, struct err *err)
{
	const struct options *o = v->o;
	struct profile_design *d = &v->k.design;
	int rc = 0;

	if (!o->no_mixed && is_local(o) && (v->in_folder || o->config))
		rc = neighbours_find(&v->neighbours, o->config, v->in_folder ? v->folder.job : NULL, err);
	d->neighbour = v->neighbours.of;
	d->n_neighbours = v->neighbours.n;
	return rc;
}

static void tell_neighbours(const struct verb *v)
{
	const struct profile_campaign *k = &v->k;
	struct strbuf names = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < k->plan.n; i++)
		n += k->plan.run[i].neighbour && !k->journal.run[i].done;
	for (size_t i = 0; i < k->design.n_neighbours; i++)
		strbuf_printf(&names, "%s%s", i ? ", " : "", k->design.neighbour[i].name);
	if (n)
		cli_notice(v->c,
			   "%zu of the runs %s beside a job of type %s, to see what it does to this one; "
			   "--no-mixed leaves them out",
			   n, n == 1 ? "is" : "are", strbuf_text(&names));
	strbuf_release(&names);
}

static int campaign_prepare(struct verb *v, struct err *err)
{
	const struct options *o = v->o;
	const char *output = v->c->output ? v->c->output : v->in_folder ? v->folder.table : "";
	struct profile_campaign *k = &v->k;
	int n = o->workdir ? snprintf(k->dir, sizeof k->dir, "%s", o->workdir)
			   : snprintf(k->dir, sizeof k->dir, "%s.profile", output);
	int rc = 0;

	k->budget_s = o->budget_s;
	k->table = v->c->output ? v->c->output : v->in_folder ? v->folder.table : NULL;
	k->curves = o->curves ? o->curves : v->in_folder ? v->folder.curves : NULL;
	if (v->c->n_args)
		rc = profile_design_read(&k->design, v->in_folder ? v->folder.job : v->c->arg[0], err);
	if (!rc)
		rc = flags_into_design(&k->design, o, err);
	if (!rc)
		rc = find_neighbours(v, err);
	if (!rc)
		rc = profile_campaign_plan(k, err);
	if (!rc && n >= (int)sizeof k->dir - 64)
		rc = err_fail(err, ERR_ARG, "the path of the work folder is too long");
	return rc;
}

/* ---- where the runs are ---- */

static int choose_executor(struct verb *v, struct err *err)
{
	const char *name = v->o->executor;
	const struct config_engine *e = NULL;
	int rc;

	if (is_local(v->o))
		return 0;
	if (v->k.design.mixed)
		return err_fail(err, ERR_ARG, "mixed runs need this machine: leave out --executor");
	rc = cli_engine(name, v->o->config, &v->config, &e, err);
	if (!rc)
		rc = engine_runner_init(&v->runner, e, err);
	if (rc)
		return rc;
	v->k.run = engine_profile_run;
	v->k.runner = &v->runner;
	v->k.design.executor = e->name;
	return 0;
}

/* ---- progress ---- */

static void bar_wipe(const struct verb *v)
{
	if (v->bar)
		fprintf(stderr, "\r\033[K");
}

static void on_tick(void *owner, double elapsed_s)
{
	const struct verb *v = owner;
	const struct profile_campaign *k = &v->k;
	double expected = k->at == SIZE_MAX
				  ? NAN
				  : profile_estimate_run_s(&k->estimate, &k->design, &k->plan.run[k->at]);
	double left = k->left_s - fmin(elapsed_s, isnan(expected) ? 0.0 : expected);
	char line[600], a[32], b[48];
	struct winsize size = { 0 };
	int width;

	if (!v->bar)
		return;
	width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
	snprintf(line, sizeof line, "%zu/%zu %s  %s%s%s%s%s%s", k->journal.n_done, k->plan.n, k->shown,
		 v->runner.waits[0] ? "waiting for " : "", v->runner.waits, v->runner.waits[0] ? "  " : "",
		 text_seconds(elapsed_s, a), isnan(left) ? "" : ", ",
		 isnan(left) ? "" : strcat(text_seconds(fmax(left, 0.0), b), " left"));
	fprintf(stderr, "\r%.*s\033[K", width < (int)sizeof line ? width : (int)sizeof line - 1, line);
	fflush(stderr);
}

/* What could be promised already, and how much more time would narrow it by. Returns 0 with *out and *setting
 * (to be released). */
static int outlook_of(const struct verb *v, struct profile_outlook *out, struct strbuf *setting)
{
	struct model *m = NULL;
	int rc = cli_model_open(v->folder.model, &m, NULL);

	if (!rc)
		rc = profile_outlook(&v->k, m, out, NULL);
	if (!rc)
		profile_describe(&v->k.design, &out->point, setting);
	model_free(m);
	return rc;
}

static void put_outlook(const struct profile_outlook *o, const struct strbuf *setting, struct strbuf *out)
{
	char a[32], b[32];

	strbuf_printf(out, "%s: about %s, ", cli_clean(strbuf_text((struct strbuf *)setting)),
		      text_seconds(o->time_s, a));
	if (o->upper_s > 0.0)
		strbuf_printf(out, "at most %s at 90 %%", text_seconds(o->upper_s, b));
	else
		strbuf_puts(out, "without a bound so far");
}

#define TELL_EVERY_S 10.0
#define TELL_SHARE 50.0 /* training for it takes a fiftieth of the time at most */

/* After a run, where it is time: the model of what was measured so far is in use from then on, and what it
 * promises is told. */
static void tell_as_it_goes(struct verb *v)
{
	double now_s = clock_monotonic_s();
	struct strbuf setting = { 0 }, line = { 0 };
	struct profile_outlook o;

	if (!v->in_folder || v->c->output || v->c->quiet || v->k.journal.n_done == v->k.plan.n ||
	    now_s - v->told_s < fmax(TELL_EVERY_S, TELL_SHARE * v->training_s))
		return;
	if (!job_folder_train(&v->folder, true) && !outlook_of(v, &o, &setting)) {
		put_outlook(&o, &setting, &line);
		bar_wipe(v);
		fprintf(stderr, "postrider: after %zu of %zu runs, %s\n", v->k.journal.n_done, v->k.plan.n,
			strbuf_text(&line));
	}
	strbuf_release(&setting);
	strbuf_release(&line);
	v->told_s = clock_monotonic_s();
	v->training_s = v->told_s - now_s;
}

static void on_run(void *owner, size_t run)
{
	struct verb *v = owner;
	const struct profile_campaign *k = &v->k;
	const struct profile_outcome *o = &k->journal.run[run];
	char a[32], b[32];

	tell_as_it_goes(v);
	if (!v->c->verbose || v->c->quiet)
		return;
	bar_wipe(v);
	fprintf(stderr, "postrider: run %zu of %zu: %s, replication %u: %s%s%s, %s", run + 1, k->plan.n,
		cli_clean(k->shown), k->plan.run[run].replication, profile_status_name(o->status),
		o->why[0] ? ": " : "", cli_clean(o->why), text_seconds(profile_outcome_time(o), a));
	if (k->left_s > 0.0)
		fprintf(stderr, ", about %s left", text_seconds(k->left_s, b));
	fputs("\n", stderr);
}

static void on_note(void *owner, const char *text)
{
	cli_notice(((struct verb *)owner)->c, "%s", text);
}

/* ---- results ---- */

static int print_plan(const struct verb *v, struct err *err)
{
	struct strbuf out = { 0 };
	int rc = v->c->json ? profile_plan_json(&v->k, &out, err) : profile_plan_text(&v->k, v->c, &out, err);

	if (!rc)
		rc = cli_write(NULL, &out, err);
	strbuf_release(&out);
	return rc;
}

static int print_summary(const struct verb *v, const struct model *model, struct err *err)
{
	size_t n_suggest = v->o->suggest == UINT64_MAX ? 0 : (size_t)v->o->suggest;
	struct profile_summary m = { 0 };
	struct strbuf out = { 0 };
	int rc = profile_summary_make(&v->k, model, n_suggest, &m, err);

	if (rc)
		return rc;
	if (m.no_time.text[0])
		cli_notice(v->c, "no analysis of time: %s", m.no_time.text);
	if (m.no_accuracy.text[0] && v->c->verbose)
		cli_notice(v->c, "no analysis of accuracy: %s", m.no_accuracy.text);
	if (n_suggest && !m.n_suggestions)
		cli_notice(v->c, "nothing to suggest: no run has a result yet, and there is no --model");
	if (v->c->json)
		profile_summary_json(&v->k, &m, &out);
	else if (!v->c->quiet)
		profile_summary_text(&v->k, &m, v->c, &out);
	if (out.len || out.failed)
		rc = cli_write(NULL, &out, err);
	strbuf_release(&out);
	profile_summary_release(&m);
	return rc;
}

/* ---- the verb ---- */

static int run_campaign(struct verb *v, struct err *err)
{
	const char *term = getenv("TERM");
	struct profile_campaign *k = &v->k;
	struct model *model = NULL;
	int rc = cli_check_output(k->table, err);

	if (!rc)
		rc = cli_check_output(k->curves, err);
	if (!rc && v->o->model)
		rc = cli_model_open(v->o->model, &model, err);
	else if (!rc && v->in_folder && v->o->suggest != UINT64_MAX && job_folder_has(v->folder.model))
		cli_model_open(v->folder.model, &model, NULL); /* if it cannot be read: without one */
	if (rc)
		return rc;
	v->told_s = clock_monotonic_s();
	k->by_value = v->in_folder;
	v->bar = !v->c->quiet && isatty(STDERR_FILENO) && !(term && !strcmp(term, "dumb"));
	profile_signals_hold(&k->signals);
	rc = profile_campaign_open(k, v->o->restart ? PROFILE_RESTART : PROFILE_RESUME, v->o->retry, err);
	if (!rc) {
		tell_neighbours(v);
		if (k->run)
			engine_runner_clean(&v->runner, k->dir);
		rc = profile_campaign_run(k, err);
		bar_wipe(v);
		if (rc && k->journal.n_done < k->plan.n)
			cli_notice(v->c, "%zu of %zu runs are saved in %s; the same command continues there",
				   k->journal.n_done, k->plan.n, k->journal.file.path);
	}
	if (!rc && k->signal)
		fprintf(stderr,
			"postrider: interrupted; the current run is dropped, %zu of %zu runs are saved in "
			"%s; the same command continues there\n",
			k->journal.n_done, k->plan.n, cli_clean(k->journal.file.path));
	profile_signals_release(&k->signals);
	if (!rc && k->spent)
		fprintf(stderr,
			"postrider: the budget is spent, with %zu of %zu runs; the same command continues "
			"there\n",
			k->journal.n_done, k->plan.n);
	if (!rc && !k->signal)
		rc = print_summary(v, model, err);
	model_free(model);
	return rc;
}

/* ---- the model of a job's folder ---- */

static double mean_time(const struct profile_campaign *k)
{
	double sum = 0.0;
	size_t n = 0;

	for (size_t i = 0; i < k->plan.n; i++) {
		if (k->journal.run[i].done && k->journal.run[i].status == PROFILE_OK) {
			sum += profile_outcome_time(&k->journal.run[i]);
			n++;
		}
	}
	return n ? sum / (double)n : NAN;
}

/* What the time has bought, and what more of it would. */
static void tell_outlook(const struct verb *v)
{
	const struct profile_campaign *k = &v->k;
	struct profile_outlook o;
	struct strbuf setting = { 0 }, line = { 0 };
	size_t left = k->plan.n - k->journal.n_done;
	char a[32], b[32], c[32];

	if (outlook_of(v, &o, &setting))
		return;
	put_outlook(&o, &setting, &line);
	printf("%s.\n", strbuf_text(&line));
	if (left && k->left_s > 0.0) {
		printf("Another %s would measure the other %zu runs", text_seconds(k->left_s, a), left);
		if (o.narrow_s < 0.98 * o.upper_s)
			printf(": at most %s -> about %s", text_seconds(o.upper_s, b),
			       text_seconds(o.narrow_s, c));
		printf(".\n");
	}
	strbuf_release(&setting);
	strbuf_release(&line);
}

/* Trains what was measured and hands it to the daemon. Returns the exit code. */
static int train_folder(struct verb *v)
{
	struct job_folder *f = &v->folder;
	struct strbuf working = { 0 }, failed = { 0 };
	int code = job_folder_train(f, v->c->quiet);
	char a[32];

	job_folder_batches(f, &working, &failed);
	if (failed.len)
		cli_notice(v->c, "no run with batch %s ended well; 'postrider run' chooses among %s",
			   strbuf_text(&failed), strbuf_text(&working));
	strbuf_release(&working);
	strbuf_release(&failed);
	if (code || v->c->quiet || v->c->json)
		return code;
	tell_outlook(v);
	printf("Model written to %s.\n\nnext  postrider run %s --slo %s\n", cli_clean(f->model),
	       cli_clean(f->shown), job_folder_slo(2.0 * mean_time(&v->k), a));
	return fflush(stdout) ? 1 : 0;
}

static int exit_code(const struct profile_campaign *k)
{
	if (k->signal)
		return 128 + k->signal;
	/* Unstable runs are left out; the table is good without them. */
	return k->verdict.n_failed + k->verdict.n_timeout || !k->verdict.n_ok ? 1 : 0;
}

/* Also where nothing else is said: the table has less in it than the plan. */
static void tell_unstable(const struct profile_campaign *k)
{
	size_t n = k->verdict.n_unstable;

	if (n && k->verdict.n_ok)
		fprintf(stderr,
			"postrider: %zu of %zu runs stayed unstable and %s left out of the table; --retry "
			"measures %s again\n",
			n, k->journal.n_done, n == 1 ? "is" : "are", n == 1 ? "it" : "them");
}

static int check_usage(const struct cli *c, const struct options *o)
{
	/* a folder or design that is not there is said first */
	if (!c->output && !o->dry_run &&
	    !(c->n_args && (job_folder_is(c->arg[0]) || access(c->arg[0], F_OK))))
		return cli_usage_error(c, "no output file: add -o OUT.csv, or -n to see the plan");
	if (c->output && !strcmp(c->output, "-"))
		return cli_usage_error(c, "-o -: the table grows run by run, so it needs a file");
	if (o->curves && !strcmp(o->curves, "-"))
		return cli_usage_error(c, "--curves -: the table grows run by run, so it needs a file");
	if (o->command && o->n_words)
		return cli_usage_error(c,
				       "the command comes from --command or from what follows --, not both");
	if (o->budget_s > 0.0 && !is_local(o))
		return cli_usage_error(c, "--budget needs this machine: leave out --executor");
	if (o->restart && o->retry)
		return cli_usage_error(
			c, "give either --restart (measures everything) or --retry (measures what failed)");
	if (o->model && o->suggest == UINT64_MAX)
		return cli_usage_error(c, "--model needs --suggest N");
	if (o->suggest != UINT64_MAX && (o->suggest < 1 || o->suggest > SUGGEST_MAX))
		return cli_usage_error(c, "--suggest: 1 to %d settings", SUGGEST_MAX);
	return 0;
}

/* Returns the exit code. */
static int profile(struct verb *v)
{
	const struct cli *c = v->c;
	const struct options *o = v->o;
	struct err err = { 0 };
	int code, rc;

	profile_campaign_init(&v->k);
	v->k.owner = v;
	v->k.on_tick = on_tick;
	v->k.on_run = on_run;
	v->k.on_note = on_note;
	v->in_folder = c->n_args && job_folder_is(c->arg[0]);
	rc = v->in_folder ? job_folder_open(&v->folder, c->arg[0], NULL, &err) : 0;
	if (!rc)
		rc = campaign_prepare(v, &err);
	if (!rc)
		rc = choose_executor(v, &err);
	if (!rc && o->dry_run)
		rc = profile_campaign_open(&v->k, PROFILE_LOOK, o->retry, &err);
	if (!rc)
		rc = o->dry_run ? print_plan(v, &err) : run_campaign(v, &err);
	code = rc ? cli_fail(&err) : o->dry_run ? 0 : exit_code(&v->k);
	if (!rc && !o->dry_run)
		tell_unstable(&v->k);
	if (!rc && v->in_folder && !o->dry_run && !c->output && v->k.verdict.n_ok) {
		int trained = train_folder(v);

		code = code ? code : trained;
	}
	profile_campaign_release(&v->k);
	neighbours_release(&v->neighbours);
	config_free(v->config);
	return code;
}

#define AT(member) CLI_AT(struct options, member)
static const struct cli_option option[] = {
	{ 0, "factor", CLI_LIST, "NAME=A,B",
	  "a factor and its levels; one level is a fixed value.\nMay be repeated; overrides the design file",
	  AT(factor) },
	{ 0, "design", CLI_TEXT, "HOW",
	  "full: every combination (default); 2k: the lowest and\nhighest levels; lhs:N: a Latin hypercube "
	  "of N runs",
	  AT(design) },
	{ 0, "replications", CLI_COUNT, "R", "how often each setting is measured (default: 1)",
	  AT(replications) },
	{ 0, "seed", CLI_COUNT, "N", "seed of the order, the hypercube and {seed} (default: 1)", AT(seed) },
	{ 0, "command", CLI_TEXT, "'WORDS'", "the command, with {factor} placeholders; no shell is used",
	  AT(command) },
	{ 0, "accuracy", CLI_TEXT, "NAME",
	  "name of the accuracy in the output, in text or in JSON lines\n(default: the usual names, val_acc "
	  "before acc)",
	  AT(accuracy) },
	{ 0, "regex", CLI_TEXT, "RE", "or a regular expression whose (group) is the accuracy", AT(regex) },
	{ 0, "curves", CLI_TEXT, "FILE", "write the accuracy per epoch to this file", AT(curves) },
	{ 0, "workdir", CLI_TEXT, "DIR", "folder for journal and logs (default: OUT.csv.profile)",
	  AT(workdir) },
	{ 0, "timeout", CLI_DURATION, "TIME", "time limit of one run, for example 300s (default: 1h)",
	  AT(timeout_s) },
	{ 0, "budget", CLI_DURATION, "TIME",
	  "end after this time, for example 3m, with the runs that tell\nmost; a run is cut at the end of an "
	  "epoch",
	  AT(budget_s) },
	{ 0, "tries", CLI_COUNT, "K", "measure an unstable run at most K times (default: 3)", AT(tries) },
	{ 0, "max-spread", CLI_TEXT, "SHARE",
	  "a run is unstable if (longest - shortest) / mean of its\ncopies or replications is larger "
	  "(default: 0.3; 0: never)",
	  AT(max_spread) },
	{ 0, "warm-up", CLI_FLAG, NULL, "run the first setting once, unmeasured, before the others",
	  AT(warm_up) },
	{ 0, "retry", CLI_FLAG, NULL, "measure failed and unstable runs again", AT(retry) },
	{ 0, "restart", CLI_FLAG, NULL, "start again; the old journal becomes journal.jsonl.old",
	  AT(restart) },
	{ 0, "suggest", CLI_COUNT, "N", "print the N settings that are most worth measuring", AT(suggest) },
	{ 0, "model", CLI_TEXT, "FILE", "use the uncertainty of this model for --suggest", AT(model) },
	{ 0, "executor", CLI_TEXT, "NAME",
	  "run the copies on a cluster: slurm, or an engine of --config\n(default: local, this machine)",
	  AT(executor) },
	{ 0, "config", CLI_TEXT, "FILE",
	  "the configuration that has the engine of --executor, or whose\ntypes may run beside the job "
	  "(default: those of run)",
	  AT(config) },
	{ 0, "no-mixed", CLI_FLAG, NULL, "measure no runs beside other types of jobs", AT(no_mixed) },
	{ 'n', "dry-run", CLI_FLAG, NULL, "print the plan and its duration, but run nothing", AT(dry_run) },
	{ 0 },
};

static const struct cli_usage usage = {
	.verb = "profile",
	.synopsis = "FOLDER [options]\n[DESIGN.json] -o OUT.csv [options] [-- PROGRAM ARGUMENT...]",
	.what = "Runs a designed experiment on a training command and writes a table of runs for train and\n"
		"anova. Each run starts njobs copies of the command at the same time. Every finished run is\n"
		"saved before the next one starts: if it is interrupted, the same command continues where\n"
		"it stopped. The exit code is 1 if a run failed. In a FOLDER that init\n"
		"made, the tables and the model that is trained on them are written there.",
	.option = option,
	.json = true,
	.output = "write the table here, one row per copy",
	.min_args = 0,
	.max_args = 1,
	.examples = "  postrider profile train-postrider\n"
		    "  postrider profile configs/designs/courier-small.json -n -o runs.csv\n"
		    "  postrider profile configs/designs/courier-small.json -o runs.csv --curves curves.csv\n"
		    "  postrider profile --factor batch=64,512 --factor njobs=1,3 --replications 3 \\\n"
		    "          -o runs.csv -- ./train.sh --batch {batch} --seed {seed}\n"
		    "  postrider profile design.json -o runs.csv --executor slurm\n",
};

int verb_profile(int argc, char **argv)
{
	struct options o = {
		.replications = UINT64_MAX, .seed = UINT64_MAX, .tries = UINT64_MAX, .suggest = UINT64_MAX
	};
	struct cli c;
	struct verb v = { .c = &c, .o = &o };
	int code;

	argc = cli_words(argc, argv, &o.word, &o.n_words);
	if (!cli_parse_into(&c, &usage, &o, argc, argv, &code))
		return code;
	code = check_usage(&c, &o);
	if (code)
		return code;
	return profile(&v);
}
