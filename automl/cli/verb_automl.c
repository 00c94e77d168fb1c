/* `postrider automl`: runs a campaign and writes its results into a folder. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/version.h"
#include "common/clock.h"
#include "common/io.h"
#include "common/version.h"
#include "automl/techniques/models.h"
#include "automl/cli/verb.h"

#define DEFAULT_PARTS 8

struct options {
	const char *dir, *part, *executor, *config;
	uint64_t parts; /* 0: none */
	size_t part_at, part_of; /* of --part */
	bool lenient, restart, prepared, dry_run;
};

static void on_progress(void *owner, size_t done, size_t total)
{
	cli_on_progress(owner, "experiments", done, total);
}

static int make_folder(const char *dir, struct err *err)
{
	struct stat st;

	if (mkdir(dir, 0777) && errno != EEXIST)
		return err_fail(err, errno == EACCES ? ERR_PERM : ERR_IO, "%s: cannot make the folder: %s",
				dir, strerror(errno));
	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return err_fail(err, ERR_ARG, "%s is not a folder", dir);
	return 0;
}

static int write_into(const char *dir, const char *name, const char *suffix, const struct strbuf *text,
		      struct err *err)
{
	struct strbuf path = { 0 };
	int rc;

	strbuf_printf(&path, "%s/%s%s", dir, name, suffix);
	rc = path.failed || text->failed ? err_nomem(err, "%s", name)
					 : cli_write(strbuf_text(&path), text, err);
	strbuf_release(&path);
	return rc;
}

static int write_models(const struct automl *a, const char *dir, struct err *err)
{
	int rc = 0;

	for (size_t t = 0; t < a->c->n_plans && !rc; t++) {
		struct writer w = { 0 };

		if (!a->model[t])
			continue;
		rc = model_encode(a->model[t], &w, err);
		if (!rc)
			rc = write_into(dir, a->c->plan[t].technique->name, ".model", &w.out, err);
		if (!rc && t == a->best)
			rc = write_into(dir, "best", ".model", &w.out, err);
		strbuf_release(&w.out);
	}
	return rc;
}

/* The results last: where they are, everything is. */
static int deliver(const struct cli *c, const struct options *o, const struct automl *a, struct err *err)
{
	struct strbuf text = { 0 }, json = { 0 }, page = { 0 }, log = { 0 };
	int rc = write_models(a, o->dir, err);

	automl_log(a, &log);
	automl_results_json(a, &json);
	automl_view(a, c, &text);
	if (!rc)
		rc = automl_page(a, &page, err);
	if (!rc)
		rc = write_into(o->dir, "log", ".txt", &log, err);
	if (!rc)
		rc = write_into(o->dir, "report", ".html", &page, err);
	if (!rc)
		rc = write_into(o->dir, "results", ".json", &json, err);
	if (!rc && (c->json || !c->quiet))
		rc = cli_write(NULL, c->json ? &json : &text, err);
	strbuf_release(&text);
	strbuf_release(&json);
	strbuf_release(&page);
	strbuf_release(&log);
	return rc;
}

static void say_before(const struct cli *c, const struct campaign *campaign, const struct prepared *p)
{
	char *line = NULL, *rest;

	for (size_t i = 0; i < campaign->n_notices; i++)
		cli_notice(c, "%s", campaign->notice[i]);
	for (size_t t = 0; t < campaign->n_plans; t++)
		if (!strcmp(campaign->plan[t].technique->name, "XGBoost") && !xgboost_available())
			cli_notice(c, "libxgboost is not installed (Debian: libxgboost-dev): XGBoost is our "
				      "own boosting, which has no gamma, lambda, alpha and min_child_weight");
	if (c->verbose && (line = strdup(strbuf_text(&p->log)))) {
		rest = line;
		for (char *one = strsep(&rest, "\n"); one && *one; one = strsep(&rest, "\n"))
			cli_notice(c, "%s", one);
	}
	free(line);
}

static int run(const struct cli *c, const struct options *o, struct err *err)
{
	struct campaign_params how = { .lenient = o->lenient };
	struct cli_progress progress = { .off = c->quiet };
	struct campaign *campaign = NULL;
	struct prepared *prepared = NULL;
	struct automl *a = NULL;
	struct pool *pool = NULL;
	struct strbuf table = { 0 };
	double from_s = clock_monotonic_s();
	char created[32], *path = NULL;
	int rc = campaign_read(c->arg[0], &how, &campaign, err);

	if (!rc)
		rc = prepare_find_input(campaign, &path, err);
	if (!rc)
		rc = prepare(campaign, path, &prepared, err);
	if (!rc)
		say_before(c, campaign, prepared);
	if (!rc && !o->dry_run)
		rc = make_folder(o->dir, err);
	if (!rc && o->prepared) {
		prepared_write(prepared, campaign, &table);
		rc = o->dry_run ? cli_write(NULL, &table, err)
				: write_into(o->dir, "prepared", ".csv", &table, err);
	}
	if (rc || o->dry_run)
		goto out;
	rc = cli_created(created, sizeof created, err);
	if (!rc)
		rc = pool_new((size_t)c->threads, &pool, err);
	if (!rc && o->executor)
		rc = automl_spread(c, o->dir,
				   &(struct automl_spread){ .executor = o->executor,
							    .config = o->config,
							    .parts = (size_t)o->parts,
							    .lenient = o->lenient,
							    .restart = o->restart },
				   err);
	if (!rc)
		rc = automl_run(&(struct automl_params){ .c = campaign,
							 .p = prepared,
							 .pool = pool,
							 .dir = o->dir,
							 .restart = o->restart,
							 .part = o->part_at,
							 .n_parts = o->part_of,
							 .from_parts = (size_t)o->parts,
							 .program = postrider_program,
							 .created = created,
							 .on_progress = on_progress,
							 .owner = &progress },
				&a, err);
	cli_progress_end(&progress);
	if (!rc && a->n_resumed)
		cli_notice(c, "%zu parts were done before; continued from there", a->n_resumed);
	if (!rc && !o->part)
		rc = deliver(c, o, a, err);
	if (!rc && c->verbose)
		cli_notice(c, "%zu experiments in %.2f s on %zu threads", a->n[STAGE_EXPERIMENT],
			   clock_monotonic_s() - from_s, pool_threads(pool));
out:
	strbuf_release(&table);
	automl_free(a);
	pool_free(pool);
	prepared_free(prepared);
	campaign_free(campaign);
	free(path);
	return rc;
}

#define AT(member) CLI_AT(struct options, member)
static const struct cli_option option[] = {
	{ 'o', "output", CLI_TEXT, "DIR", "the folder for models, results.json, report.html and the journal",
	  AT(dir) },
	{ 0, "lenient", CLI_FLAG, NULL, "ignore unknown keys and sections", AT(lenient) },
	{ 0, "restart", CLI_FLAG, NULL, "start again, and ignore what the folder has", AT(restart) },
	{ 0, "prepared", CLI_FLAG, NULL, "write the prepared table too (prepared.csv; with -n to stdout)",
	  AT(prepared) },
	{ 0, "executor", CLI_TEXT, "NAME",
	  "spread the experiments over a cluster: slurm, or an engine of\n--config", AT(executor) },
	{ 0, "config", CLI_TEXT, "FILE", "the configuration that has the engine of --executor", AT(config) },
	{ 0, "parts", CLI_COUNT, "N",
	  "with --executor: the number of jobs (default: 8). Without it:\ntake over the results of "
	  "DIR/part-1 to DIR/part-N",
	  AT(parts) },
	{ 0, "part", CLI_TEXT, "K/N",
	  "run part K of N of the experiments, and nothing after them;\nDIR is part-K in the folder of the "
	  "whole",
	  AT(part) },
	{ 'n', "dry-run", CLI_FLAG, NULL, "check the campaign and prepare the table; run nothing",
	  AT(dry_run) },
	{ 0 },
};

static const struct cli_usage usage = {
	.verb = "automl",
	.synopsis = "CAMPAIGN.ini -o DIR [options]\npredict MODEL CAMPAIGN.ini|DATA.csv [options]",
	.what = "Tries techniques and hyper-parameters on a table, as a campaign file of aMLLibrary (or the "
		"same\nas JSON) says, and keeps the best model of each technique. If it is killed, the same "
		"command\ncontinues where it stopped. 'postrider automl predict --help' explains "
		"predictions.",
	.option = option,
	.json = true,
	.threads = true,
	.min_args = 1,
	.max_args = 1,
	.examples = "  postrider automl campaign.ini -o results\n"
		    "  postrider automl campaign.ini -o results --executor slurm --parts 16\n"
		    "  postrider automl campaign.ini -n --prepared | head\n"
		    "  postrider automl predict results/best.model new.csv\n",
};

int verb_automl(int argc, char **argv)
{
	struct options o = { 0 };
	struct err err = { 0 };
	struct cli c;
	int code, end = 0;

	if (argc > 1 && !strcmp(argv[1], "predict"))
		return automl_predict(argc - 1, argv + 1);
	if (!cli_parse_into(&c, &usage, &o, argc, argv, &code))
		return code;
	if (!o.dir && !o.dry_run)
		return cli_usage_error(&c, "no folder for the results: add -o DIR, or -n to run nothing");
	if (!o.executor && o.config)
		return cli_usage_error(&c, "--config is for --executor NAME");
	if (o.part && (o.executor || o.parts))
		return cli_usage_error(&c, "--part is one job: give it without --executor and --parts");
	if (o.executor && !o.parts)
		o.parts = DEFAULT_PARTS;
	if (o.parts > AUTOML_MAX_PARTS)
		return cli_usage_error(&c, "--parts: 1 to %d", AUTOML_MAX_PARTS);
	if (o.part && (sscanf(o.part, "%4zu/%4zu%n", &o.part_at, &o.part_of, &end) != 2 || o.part[end] ||
		       !o.part_at || o.part_at > o.part_of))
		return cli_usage_error(&c, "--part %s: a part and their number, such as 1/8", o.part);
	return run(&c, &o, &err) ? cli_fail(&err) : 0;
}
