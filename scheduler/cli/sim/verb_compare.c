/* `postrider compare`: policies side by side on the same jobs and the same random numbers (sim_verb.c), and
 * the experiment of the Courier paper by name (--paper). */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/places.h"
#include "scheduler/cli/sim/compare_view.h"
#include "scheduler/cli/sim/sim_options.h"
#include "sim/compare/folder.h"

#define DEFAULT_POLICIES "fixed:best,courier,postrider,naive,boost,boost-full,queueing,greedy-oracle"
#define DEFAULT_REPLICATIONS 20
#define OWN_TABLE "profiles/two-cores/runs.csv"
#define OWN_CLUSTER "cores=2,slots=4" /* that table was measured on */
#define PAPER_CLUSTER "cores=48" /* three workers with 16 each: section 3 of the paper */

struct compare_options {
	struct sim_options sim;
	uint64_t jobs;
	bool paper;
};

/* ---- the paper's experiment ---- */

/* The measurements that come with the program: in the source tree, or beside the installed program. */
static bool own_table(char *out, size_t size)
{
	snprintf(out, size, "configs/" OWN_TABLE);
	return !access(out, R_OK) || place_shared(OWN_TABLE, out, size);
}

static int paper_results(const struct cli *c, const struct paper_result *r, const char *command,
			 struct strbuf *out, struct err *err)
{
	struct strbuf json = { 0 }, jobs = { 0 };
	struct json_writer w;
	int rc = 0;

	json_begin(&w, &json, true);
	paper_json(r, SIM_PROGRAM, command, &w);
	strbuf_puts(&json, "\n");
	if (c->json)
		strbuf_add(out, strbuf_text(&json), json.len);
	else
		paper_view_print(r, cli_colour_stdout(c), out);
	if (c->output) {
		paper_jobs_csv(r, &jobs);
		rc = sim_write_files(
			c->output,
			(struct sim_file[]){ { "paper_jobs.csv", &jobs }, { "paper.json", &json } }, 2, err);
	}
	strbuf_release(&jobs);
	strbuf_release(&json);
	return rc;
}

static int paper_prepare_world(struct compare_options *o, struct sim_setup *s, const struct cli *c,
			       char *world, size_t size, struct err *err)
{
	struct world_params *p = &s->params.world;
	char table[PATH_MAX];

	s->params = o->sim.params;
	if (!p->spec) {
		if (!own_table(table, sizeof table))
			return err_fail(err, ERR_NOTFOUND,
					"neither configs/" OWN_TABLE " nor an installed one is there: name a "
					"table with --world measured:TABLE.csv");
		snprintf(world, size, "measured:%s", table);
		p->spec = world;
		if (!o->sim.cluster)
			o->sim.cluster = OWN_CLUSTER;
	}
	if (!o->sim.cluster && !strncmp(p->spec, "measured:", strlen("measured:"))) {
		cli_notice(c, "the machine that the table was measured on is not said (--cluster): the "
			      "paper's is taken, " PAPER_CLUSTER);
		o->sim.cluster = PAPER_CLUSTER;
	}
	return sim_setup_open_world(s, c, &o->sim, err);
}

static int run_paper(const struct cli *c, struct compare_options *o, const char *command)
{
	struct sim_setup s = { .pool = NULL };
	struct paper_result *r = NULL;
	struct strbuf out = { 0 };
	struct err err = { 0 };
	char world[PATH_MAX + 16];
	int code = 0, rc = c->output ? folder_check(c->output, &err) : 0;

	if (!rc)
		rc = paper_prepare_world(o, &s, c, world, sizeof world, &err);
	if (!rc && o->sim.dry_run) {
		strbuf_printf(&out,
			      "The experiment of the Courier paper in %s: its 5 jobs and %llu more, seed "
			      "%llu.\nNothing was run.\n",
			      cli_clean(s.params.world.spec), (unsigned long long)o->jobs,
			      (unsigned long long)s.params.seed);
	} else if (!rc) {
		rc = paper_run(&(struct paper_params){ .world = s.params.world,
						       .jobs = (size_t)o->jobs,
						       .seed = s.params.seed,
						       .confidence = s.params.settings.confidence,
						       .level = s.params.level,
						       .pool = s.pool,
						       .on_progress = cli_on_progress,
						       .owner = &s.progress },
			       &r, &err);
		cli_progress_end(&s.progress);
		pool_free(s.pool);
		s.pool = NULL;
		if (!rc)
			rc = paper_results(c, r, command, &out, &err);
	}
	if (!rc)
		rc = cli_write(NULL, &out, &err);
	if (rc)
		code = cli_fail(&err);
	strbuf_release(&out);
	paper_free(r);
	sim_setup_release(&s);
	return code;
}

/* What --paper fixes itself. */
static const char *not_with_paper(const struct cli *c, const struct compare_options *o)
{
	const struct sim_options *s = &o->sim;

	if (c->n_args)
		return "a trace";
	if (s->policies)
		return "--policies";
	if (s->baseline)
		return "--baseline";
	if (s->replications)
		return "--replications";
	if (s->history)
		return "--from-history";
	if (s->model)
		return "--model";
	if (s->set.n)
		return "--set";
	if (s->sweep)
		return "--sweep";
	if (s->capacity || s->of || s->by || s->from || s->to)
		return "--capacity";
	if (s->params.drift || s->params.stragglers || s->params.failures || s->noise)
		return "a disturbance";
	if (s->params.trace.resample)
		return "--resample";
	return s->params.trace.map ? "--map" : NULL;
}

/* ---- the verb ---- */

static const struct cli_usage usage = {
	.verb = "compare",
	.synopsis = "TRACE --world W [--policies P,...] [--replications N] [--cluster C] [-o DIR]\n"
		    "--from-history PATH --world W [options]\n"
		    "--paper [--world measured:TABLE.csv] [--jobs N] [-o DIR] [--json]",
	.what = "Replays the same jobs under several policies and prints how the policies differ, with\n"
		"confidence intervals and paired tests. Every policy gets the same jobs and the same random\n"
		"numbers. TRACE is written as for 'postrider replay'. Models are trained here, never on the\n"
		"data that happens. The same input and seed give the same bytes, for any number of threads.",
	.json = true,
	.threads = true,
	.output = "a folder for compare.json, jobs.csv and more (postrider report)",
	.max_args = 1,
	.examples = "  postrider compare gen:poisson,jobs=1000,gap=2 --world measured:runs.csv \\\n"
		    "      --cluster cores=2,slots=5 -o DIR\n"
		    "  postrider compare jobs.csv --world fluid --sweep slo.scale=0.5..2\n"
		    "  postrider compare jobs.csv --world fluid --policies postrider --capacity 99%\n"
		    "  postrider compare --paper\n",
};

int verb_compare(int argc, char **argv)
{
	struct cli_option option[SIM_OPTIONS + 1] = { { 0 } };
	struct compare_options o = { 0 };
	struct strbuf command = { 0 };
	char help[SIM_POLICY_HELP];
	const struct cli_option own[] = {
		{ 0, "policies", CLI_TEXT, "P,...",
		  sim_policy_help("(default: " DEFAULT_POLICIES ");\nalso fixed:B, fixed:best, fifo, edf,\n"
				  "courier-waits, anova and optimum",
				  help),
		  &o.sim.policies },
		{ 0, "baseline", CLI_TEXT, "P",
		  "the policy that the others are tested against (default: the first fixed:B,\n"
		  "what is done today; else courier)",
		  &o.sim.baseline },
		{ 0, "replications", CLI_COUNT, "N",
		  "repetitions, each with other random numbers (default: 20)", &o.sim.replications },
		{ 0, "paper", CLI_FLAG, NULL,
		  "the experiment of the Courier paper: Tables 9 and 11, Figures 9 and 10", &o.paper },
		{ 0, "jobs", CLI_COUNT, "N", "jobs of --paper beside the paper's five (default: 1000)",
		  &o.jobs },
	};
	enum { N_OWN = sizeof own / sizeof own[0] };
	struct cli_usage u = usage;
	const char *clash;
	struct cli c;
	size_t n;
	int code;

	sim_options_init(&o.sim);
	sim_command(argc, argv, &command);
	memcpy(option, own, sizeof own);
	n = N_OWN + sim_options_list(&o.sim, &option[N_OWN]);
	option[n] = (struct cli_option){ .name = NULL };
	u.option = option;
	if (!cli_parse(&c, &u, argc, argv, &code))
		goto out;
	clash = o.paper ? not_with_paper(&c, &o) : NULL;
	if (clash) {
		code = cli_usage_error(
			&c, "--paper says itself which jobs and policies there are: leave out %s", clash);
	} else if (o.paper) {
		o.jobs = o.jobs ? o.jobs : PAPER_JOBS;
		code = run_paper(&c, &o, strbuf_text(&command));
	} else if (o.jobs) {
		code = cli_usage_error(
			&c,
			"--jobs goes with --paper; a generated trace says it itself: gen:poisson,jobs=%llu",
			(unsigned long long)o.jobs);
	} else {
		o.sim.usual_policies = !o.sim.policies;
		o.sim.policies = o.sim.policies ? o.sim.policies : DEFAULT_POLICIES;
		o.sim.replications = o.sim.replications ? o.sim.replications : DEFAULT_REPLICATIONS;
		code = sim_verb_run(&c, &o.sim, "compare", strbuf_text(&command));
	}
out:
	strbuf_release(&command);
	return code;
}
