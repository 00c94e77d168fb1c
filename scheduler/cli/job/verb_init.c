/* `postrider init`: looks at a user's command, runs it once, asks what it could not find out, and writes the
 * folder of the job. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/places.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/cli/job/job_command.h"
#include "scheduler/cli/job/job_folder.h"
#include "scheduler/cli/job/job_template.h"
#include "scheduler/process/machine.h"
#include "scheduler/process/output.h"
#include "scheduler/profiler/run.h"

#define RUNS_MIN 16 /* a bound of 90 % needs test errors of 9 runs */
#define RUNS_MAX 60
#define BUDGET_S 300.0 /* how long measuring should take */
#define ANSWER_MAX 1024
#define CPUS_FROM 1.5 /* mean cpus from which a command is taken to use more than one */

struct options {
	struct cli_list factor;
	const char *accuracy, *metric, *goal, *regex, *name, *template;
	bool alone, steer; /* never two at once; its batch may change while it runs */
	double budget_s, timeout_s;
	bool yes, force;
	char **word;
	size_t n_words;
};

struct init {
	const struct cli *c;
	const struct options *o;
	struct profile_design d;
	struct job_folder folder;
	struct profile_outcome trial;
	double runs_s; /* how long measuring will take */
	bool asks;
};

/* ---- questions ---- */

/* The answer, or `otherwise` for an empty line and at the end of the input. */
static char *ask(const struct init *in, const char *question, const char *otherwise, char *out)
{
	size_t len;

	snprintf(out, ANSWER_MAX, "%s", otherwise);
	if (!in->asks)
		return out;
	fprintf(stderr, "%s%s%s%s: ", question, *otherwise ? " [" : "", otherwise, *otherwise ? "]" : "");
	fflush(stderr);
	if (!fgets(out, ANSWER_MAX, stdin)) {
		fputs("\n", stderr);
		snprintf(out, ANSWER_MAX, "%s", otherwise);
		return out;
	}
	len = strlen(out);
	while (len && strchr(" \t\r\n", out[len - 1]))
		out[--len] = '\0';
	if (!len)
		snprintf(out, ANSWER_MAX, "%s", otherwise);
	return out;
}

/* A list such as "16, 32, 64" becomes the levels of a factor; asked again until it is one. */
static int ask_factor(struct init *in, const char *name, const char *question, const char *otherwise,
		      struct err *err)
{
	char answer[ANSWER_MAX], text[ANSWER_MAX + 64];
	struct err why = { 0 };
	int rc;

	for (int tries = 0; tries < 5; tries++) {
		size_t k = 0;

		ask(in, question, otherwise, answer);
		for (const char *s = answer; *s; s++) {
			if (*s != ' ')
				answer[k++] = *s;
		}
		answer[k] = '\0';
		snprintf(text, sizeof text, "%s=%s", name, answer);
		rc = profile_design_factor(&in->d, text, &why);
		if (!rc || rc == -ERR_NOMEM || !in->asks)
			break;
		fprintf(stderr, "postrider: %s\n", why.text);
	}
	return rc ? err_fail(err, why.code, "%s", why.text) : 0;
}

/* ---- what varies ---- */

static int find_factors(struct init *in, struct err *err)
{
	char *name[PROFILE_MAX_FACTORS], levels[256], question[256];
	size_t n = job_command_names(&in->d, name, PROFILE_MAX_FACTORS);
	int rc = 0;

	for (size_t i = 0; i < in->o->factor.n && !rc; i++)
		rc = job_command_factor(&in->d, in->o->factor.item[i], err);
	for (size_t i = 0; i < n && !rc; i++) {
		if (profile_factor_find(&in->d, name[i]))
			continue;
		job_command_levels(&in->d, name[i], in->o->word, in->o->n_words, levels, sizeof levels);
		if (!strcmp(name[i], "cpus"))
			snprintf(levels, sizeof levels, machine_cores() >= 2.0 ? "1,2" : "1");
		if (!*levels && !in->asks)
			rc = err_fail(err, ERR_ARG, "which values may {%s} have? Add --factor %s=A,B,C",
				      name[i], name[i]);
		snprintf(question, sizeof question,
			 !strcmp(name[i], "batch")    ? "batch sizes to choose from"
			 : !strcmp(name[i], "epochs") ? "numbers of epochs to measure"
						      : "values of %s",
			 name[i]);
		if (!rc)
			rc = ask_factor(in, name[i], question, levels, err);
	}
	job_command_names_free(name, n);
	return rc;
}

/* ---- the trial ---- */

/* The level at `place` of the sorted ones: 0 the smallest, 1 the middle. */
static uint16_t level_at(const struct profile_factor *f, bool middle)
{
	size_t want = middle ? f->n_levels / 2 : 0, best = 0;

	if (!f->number)
		return 0;
	for (size_t i = 0; i < f->n_levels; i++) {
		size_t below = 0;

		for (size_t k = 0; k < f->n_levels; k++)
			below += atof(f->level[k]) < atof(f->level[i]);
		if (below == want)
			best = i;
	}
	return (uint16_t)best;
}

static int run_trial(struct init *in, struct err *err)
{
	struct profile_point point = { .replication = 1 };
	struct profile_signals signals;
	struct profile_run_params p = {
		.design = &in->d, .point = &point, .signals = &signals, .dir = in->folder.dir, .name = "trial"
	};
	struct strbuf setting = { 0 };
	int stopped = 0, rc;

	for (size_t i = 0; i < in->d.n_factors; i++)
		point.level[i] = level_at(&in->d.factor[i], !strcmp(in->d.factor[i].name, "batch"));
	profile_describe(&in->d, &point, &setting);
	if (!in->c->quiet)
		fprintf(stderr, "running the command once, with %s ...\n", cli_clean(strbuf_text(&setting)));
	strbuf_release(&setting);
	profile_signals_hold(&signals);
	rc = profile_run(&p, &in->trial, &stopped, err);
	profile_signals_release(&signals);
	if (!rc && stopped)
		rc = err_fail(err, ERR_BUSY, "interrupted; nothing was written");
	if (!rc && in->trial.status != PROFILE_OK)
		rc = err_fail(err, ERR_IO, "the command failed: %.180s (its output is in %s/logs)",
			      in->trial.why, text_tail(in->folder.dir, 150));
	return rc;
}

static const struct profile_copy *copy_of(const struct init *in)
{
	return &in->trial.copy[0];
}

static double cpus_of(const struct init *in)
{
	double cpus = copy_of(in)->job_cpu_mean / 100.0;

	if (in->o->alone) /* beside it nothing else is started */
		return machine_cores();
	return cpus >= CPUS_FROM ? fmin(round(cpus), machine_cores()) : 1.0;
}

/* Looks at the output of the trial again, with another name or expression. */
static int read_again(struct init *in, struct err *err)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/logs/trial.copy-1.out", in->folder.dir);
	free(in->trial.copy[0].epoch);
	in->trial.copy[0].epoch = NULL;
	in->trial.copy[0].n_epochs = 0;
	return profile_result_read(&in->d, path, &in->trial.copy[0], err);
}

static int ask_for_accuracy(struct init *in, struct err *err)
{
	char answer[ANSWER_MAX], path[PATH_MAX + 64], words[200];
	struct err why = { 0 };
	int rc = 0;

	snprintf(path, sizeof path, "%s/logs/trial.copy-1.out", in->folder.dir);
	while (in->asks && isnan(copy_of(in)->accuracy) && !rc) {
		fprintf(stderr, "no accuracy was found in the output, whose last line is: %s\n",
			output_last_words(path, words, sizeof words));
		ask(in, "name of the accuracy, or a regular expression with a (group); empty: there is none",
		    "", answer);
		if (!*answer)
			break;
		rc = strchr(answer, '(') ? profile_design_result(&in->d, NULL, answer, &why)
					 : profile_design_result(&in->d, answer, NULL, &why);
		if (rc == -ERR_ARG) {
			fprintf(stderr, "postrider: %s\n", why.text);
			rc = 0;
		} else if (!rc) {
			rc = read_again(in, &why);
		}
	}
	if (rc)
		return err_fail(err, why.code, "%s", why.text);
	if (isnan(copy_of(in)->accuracy))
		cli_notice(in->c,
			   "no accuracy was found in the output: the fastest batch will always be "
			   "chosen. --accuracy "
			   "NAME or --regex says where it is; --metric loss --goal min if less is better");
	return 0;
}

static void put_trial(const struct init *in, struct strbuf *out)
{
	const struct profile_copy *c = copy_of(in);
	char a[32], b[32];

	strbuf_printf(out, "  time      %s\n", text_seconds(c->time_s, a));
	if (isnan(c->accuracy))
		strbuf_puts(out, "  accuracy  none was found\n");
	else
		strbuf_printf(out, "  accuracy  %s, found as %s%s\n", text_accuracy(c->accuracy, a),
			      cli_clean(c->found),
			      c->percent                             ? ", in percent"
			      : in->d.result.scale == OUTPUT_SMALLER ? ", v counts as 1 / (1 + v)"
								     : "");
	if (c->n_epochs)
		strbuf_printf(out, "  epochs    %zu with an accuracy, so a learning curve can be fitted\n",
			      c->n_epochs);
	else
		strbuf_puts(
			out,
			"  epochs    none were found with an accuracy, so a run tells little before its end; "
			"if it prints\n            some, \"result\": {\"epoch_regex\": \"round ([0-9]+)\"} "
			"in "
			"job.json finds them\n");
	strbuf_printf(out, "  memory    %s MB\n", cli_short(c->max_rss_mb, a));
	if (c->threads)
		strbuf_printf(out, "  threads   %zu%s\n", c->threads,
			      c->threads > 1 ? " in one process" : "");
	strbuf_printf(out, "  cpus      %s in the mean, so %.0f %s counted for a job\n",
		      cli_short(c->job_cpu_mean / 100.0, b), cpus_of(in), cpus_of(in) > 1.0 ? "are" : "is");
	if (in->d.steer)
		strbuf_printf(out, "  steer     yes%s\n",
			      c->asks ? ", it asked how to go on" : ", though it did not ask how to go on");
	if (in->trial.other_load > 0.5)
		strbuf_printf(out, "  others    %.1f processes of other programs wanted a cpu meanwhile\n",
			      in->trial.other_load);
}

/* ---- the design ---- */

static double mean_level(const struct profile_factor *f)
{
	double sum = 0.0;

	for (size_t i = 0; i < f->n_levels; i++)
		sum += atof(f->level[i]) / (double)f->n_levels;
	return sum;
}

/* Seconds of one run, from the trial: more epochs take longer, and so do jobs that share the cpus. */
static double run_s(const struct init *in)
{
	const struct profile_factor *epochs = profile_factor_find(&in->d, "epochs"),
				    *jobs = profile_factor_find(&in->d, "njobs");
	double s = copy_of(in)->time_s;

	if (epochs && epochs->n_levels > 1)
		s *= mean_level(epochs) / atof(epochs->level[level_at(epochs, false)]);
	if (jobs && jobs->n_levels > 1)
		s *= fmax(1.0, mean_level(jobs) * cpus_of(in) / machine_cores());
	return s;
}

/* What was typed is not asked for. */
static bool has_njobs(const struct init *in)
{
	bool has = in->o->alone;

	for (size_t i = 0; i < in->o->factor.n; i++)
		has |= !strncmp(in->o->factor.item[i], "njobs=", 6);
	return has;
}

/* Without it nobody knows how much of the work is left. */
static bool has_epochs(const struct profile_design *d)
{
	for (size_t i = 0; i < d->n_factors + d->n_fixed; i++) {
		if (!strcmp(profile_factor_at(d, i)->name, "epochs"))
			return true;
	}
	return false;
}

static int complete_design(struct init *in, struct err *err)
{
	double most = fmax(2.0, floor(machine_cores() / cpus_of(in)));
	char text[64], otherwise[32];
	size_t grid, runs;
	int rc = in->o->alone ? profile_design_factor(&in->d, "njobs=1", err) : 0;

	if (!rc && !profile_factor_find(&in->d, "cpus")) {
		snprintf(text, sizeof text, "cpus=%.0f", cpus_of(in));
		rc = profile_design_factor(&in->d, text, err);
	}
	snprintf(otherwise, sizeof otherwise, "1,%.0f", fmin(most, PROFILE_MAX_JOBS));
	if (!rc && in->d.n_factors < PROFILE_MAX_FACTORS && !has_njobs(in))
		rc = ask_factor(in, "njobs", "how many jobs at the same time are measured", otherwise, err);
	if (!rc)
		rc = profile_design_check(&in->d, err);
	if (rc)
		return rc;
	if (copy_of(in)->percent)
		in->d.result.scale = OUTPUT_PERCENT;
	in->d.steer = in->o->steer || (copy_of(in)->asks && has_epochs(&in->d));
	grid = profile_grid_size(&in->d);
	runs = (size_t)fmin(fmax(in->o->budget_s / fmax(run_s(in), 1e-3), RUNS_MIN), RUNS_MAX);
	if (grid > runs) {
		in->d.kind = PROFILE_LHS;
		in->d.lhs_runs = runs;
	} else {
		runs = grid;
		if (grid < RUNS_MIN) {
			in->d.replications = (RUNS_MIN + grid - 1) / grid;
			runs = grid * in->d.replications;
		}
	}
	in->runs_s = (double)runs * run_s(in);
	in->d.max_spread = 1.0; /* a first table should not lose runs because the machine was busy */
	in->d.timeout_s = fmax(60.0, ceil(20.0 * run_s(in) + 20.0 * copy_of(in)->time_s));
	return 0;
}

/* ---- the folder ---- */

static int make_folder(const struct init *in, struct err *err)
{
	if (job_folder_is(in->folder.dir) && !in->o->force)
		return err_fail(err, ERR_ARG,
				"%s is the folder of a job already; choose another with -o, or add --force",
				text_tail(in->folder.dir, 200));
	if (mkdir(in->folder.dir, 0777) && errno != EEXIST)
		return err_fail(err, errno == EACCES ? ERR_PERM : ERR_IO, "cannot make the folder %s: %s",
				text_tail(in->folder.dir, 200), strerror(errno));
	return 0;
}

static size_t runs_of(const struct profile_design *d)
{
	return profile_settings_planned(d) * d->replications;
}

static void print_text(const struct init *in, struct strbuf *out)
{
	char a[32];

	put_trial(in, out);
	strbuf_printf(out,
		      "\n%s/ has the description of the job (job.json) and what to do next (README.md).\n\n",
		      cli_clean(in->folder.shown));
	strbuf_printf(out,
		      "next  postrider profile %s\n      measures %zu runs, about %s, and trains the model\n",
		      cli_clean(in->folder.shown), runs_of(&in->d), text_seconds(in->runs_s, a));
	if (in->runs_s > in->o->budget_s)
		strbuf_printf(out, "      with --budget %s it ends in time, with the runs that tell most\n",
			      job_folder_slo(in->o->budget_s, a));
	strbuf_printf(out, "then  postrider run %s --slo %s\n", cli_clean(in->folder.shown),
		      job_folder_slo(3.0 * run_s(in), a));
}

static void print_json(const struct init *in, struct strbuf *out)
{
	const struct profile_copy *c = copy_of(in);
	struct json_writer w;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_kv_string(&w, "folder", in->folder.dir);
	json_kv_string(&w, "type", in->folder.name);
	json_kv_string(&w, "job", in->folder.job);
	json_kv_string(&w, "config", in->folder.config);
	json_kv_open(&w, "trial", '{');
	json_kv_number(&w, "time_s", c->time_s);
	json_kv_number(&w, "accuracy", c->accuracy);
	json_kv_string(&w, "accuracy_found", c->found[0] ? c->found : NULL);
	json_kv_bool(&w, "accuracy_in_percent", c->percent);
	json_kv_int(&w, "epochs_found", (long long)c->n_epochs);
	json_kv_bool(&w, "asks", c->asks);
	json_kv_number(&w, "max_rss_mb", c->max_rss_mb);
	if (c->threads)
		json_kv_int(&w, "threads", (long long)c->threads);
	json_kv_number(&w, "cpus_mean", c->job_cpu_mean / 100.0);
	json_kv_number(&w, "other_load", in->trial.other_load);
	json_close(&w, '}');
	json_kv_number(&w, "cpus", cpus_of(in));
	json_kv_int(&w, "runs", (long long)runs_of(&in->d));
	json_kv_number(&w, "runs_s", in->runs_s);
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

static int write_folder(struct init *in, struct err *err)
{
	const struct profile_copy *c = copy_of(in);
	struct job_folder_notes notes = { 0 };
	char a[32];

	if (isnan(c->accuracy))
		snprintf(notes.accuracy, sizeof notes.accuracy,
			 "No accuracy was found in the output; \"accuracy\": \"NAME\" or "
			 "\"regex\": \"...(group)...\" says where it is.");
	else
		snprintf(notes.accuracy, sizeof notes.accuracy, "Found in the output as %s%s.", c->found,
			 c->percent ? ", in percent" : "");
	snprintf(notes.time, sizeof notes.time, "%zu runs, about %s.", runs_of(&in->d),
		 text_seconds(in->runs_s, a));
	return job_folder_write(&in->folder, &in->d, &notes, err);
}

/* ---- the verb ---- */

static int init(struct init *in, struct err *err)
{
	const struct options *o = in->o;
	char name[JOB_FOLDER_NAME + 1], dir[PATH_MAX];
	struct strbuf out = { 0 };
	struct job_typed typed;
	char **word = NULL;
	size_t n_words = 0;
	int rc = job_template_words(o->template, o->word, o->n_words, &word, &n_words, err);

	if (!rc)
		rc = job_command_take(&in->d, word, n_words, in->c, &typed, err);
	argv_free(word);
	if (rc)
		return rc;
	in->d.epochs = typed.epochs[0] ? mem_strdup(typed.epochs) : NULL; /* what was typed is what runs */
	if (typed.epochs[0] && !in->d.epochs)
		return err_nomem(err, "the epochs");
	job_folder_name(o->word, o->n_words, name);
	if (o->name)
		snprintf(name, sizeof name, "%s", o->name);
	snprintf(dir, sizeof dir, "%s%s", in->c->output ? in->c->output : name,
		 in->c->output ? "" : "-postrider");
	rc = job_folder_open(&in->folder, dir, name, err);
	if (!rc)
		rc = place_absolute(".", &in->d.work_dir, err);
	if (!rc)
		rc = profile_design_result(&in->d, o->accuracy, o->regex, err);
	if (!rc)
		rc = job_command_metric(&in->d, o->metric, o->goal, err);
	in->d.result_given = false; /* the trial shows whether it is there, and asks */
	in->d.timeout_s = o->timeout_s;
	if (!rc)
		rc = find_factors(in, err);
	if (!rc)
		rc = profile_design_check(&in->d, err);
	if (!rc && o->steer && !has_epochs(&in->d))
		rc = err_fail(err, ERR_ARG,
			      "--steer: write {epochs} into the command, or nobody knows how much "
			      "of the work is left");
	if (!rc)
		rc = make_folder(in, err);
	if (!rc)
		rc = run_trial(in, err);
	if (!rc)
		rc = ask_for_accuracy(in, err);
	if (!rc)
		rc = complete_design(in, err);
	if (!rc)
		rc = write_folder(in, err);
	if (rc)
		return rc;
	if (in->c->json)
		print_json(in, &out);
	else if (!in->c->quiet)
		print_text(in, &out);
	rc = out.len || out.failed ? cli_write(NULL, &out, err) : 0;
	strbuf_release(&out);
	return rc;
}

static bool name_is_good(const char *s)
{
	size_t len = strlen(s);

	return len >= 1 && len <= JOB_FOLDER_NAME &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == len && s[0] != '.' && s[0] != '-' &&
	       s[0] != '_';
}

int verb_init(int argc, char **argv)
{
	struct options o = { .budget_s = BUDGET_S, .timeout_s = 3600.0 };
	const struct cli_option option[] = {
		{ 0, "factor", CLI_LIST, "NAME=A,B", "values of a placeholder; may be repeated", &o.factor },
		{ 0, "template", CLI_TEXT, "FILE",
		  "a file of settings with {batch} and the like in it; the word of\nthe command that "
		  "names it becomes a copy, filled in",
		  &o.template },
		{ 0, "accuracy", CLI_TEXT, "NAME",
		  "name of the accuracy in the output (default: the usual\nnames, in JSON lines and in text)",
		  &o.accuracy },
		{ 0, "metric", CLI_TEXT, "NAME",
		  "the same of a number that is no accuracy, such as f1 or loss", &o.metric },
		{ 0, "goal", CLI_TEXT, "min|max",
		  "min: of the metric less is better (a loss v counts as the\naccuracy 1 / (1 + v))",
		  &o.goal },
		{ 0, "regex", CLI_TEXT, "RE", "or a regular expression whose (group) is the accuracy",
		  &o.regex },
		{ 0, "name", CLI_TEXT, "NAME", "name of the job type (default: that of the script)",
		  &o.name },
		{ 0, "budget", CLI_DURATION, "TIME", "how long measuring should take (default: 5m)",
		  &o.budget_s },
		{ 0, "timeout", CLI_DURATION, "TIME", "time limit of the trial (default: 1h)", &o.timeout_s },
		{ 0, "alone", CLI_FLAG, NULL, "never start another job beside it", &o.alone },
		{ 0, "steer", CLI_FLAG, NULL,
		  "it asks after each epoch how to go on (found out by the trial)", &o.steer },
		{ 'y', "yes", CLI_FLAG, NULL, "ask nothing, take the defaults", &o.yes },
		{ 'f', "force", CLI_FLAG, NULL, "write over the folder of a job", &o.force },
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "init",
		.synopsis = "[-o FOLDER] [options] -- PROGRAM ARGUMENT...",
		.what = "Makes the folder of a job out of your own training command. {batch} stands where "
			"the batch\n"
			"size goes, {epochs} where the epochs go, and {NAME} for anything else that varies. "
			"The\n"
			"command runs once as a short trial, to see how long it takes and where it prints "
			"its "
			"accuracy. On a\n"
			"terminal init asks what it cannot find out. The folder has a description of the job "
			"for\n"
			"profile, train and the daemon, and a README that says what to do next.",
		.option = option,
		.json = true,
		.output = "the folder (default: NAME-postrider here)",
		.min_args = 0,
		.max_args = 0,
		.examples =
			"  postrider init -- ./train.py --batch-size {batch} --epochs {epochs}\n"
			"  postrider init --yes --factor hidden=16,64 -- python3 train.py {batch} {hidden}\n"
			"  postrider init --template config.yaml.in -- ./train.py config.yaml\n",
	};
	struct cli c;
	struct init in = { .c = &c, .o = &o };
	struct err err = { 0 };
	int code, rc;

	argc = cli_words(argc, argv, &o.word, &o.n_words);
	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!o.n_words)
		return cli_usage_error(&c, "no command: write it after --");
	if (!!o.accuracy + !!o.metric + !!o.regex > 1)
		return cli_usage_error(
			&c, "--accuracy, --metric and --regex say where the same number is: give one");
	if (o.name && !name_is_good(o.name))
		return cli_usage_error(&c,
				       "--name %s: small letters, digits and _ . -, a letter or digit first",
				       cli_clean(o.name));
	in.asks = !o.yes && !c.json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	profile_design_init(&in.d);
	rc = init(&in, &err);
	code = rc ? cli_fail(&err) : 0;
	profile_outcome_release(&in.trial);
	profile_design_release(&in.d);
	return code;
}
