/* The options of replay and compare, and the command line as the record keeps it. */
#include "scheduler/cli/sim/sim_options.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_SEED 1
#define HELP_COLUMNS 70 /* of the text beside an option */

/* ---- the options ---- */

void sim_options_init(struct sim_options *o)
{
	*o = (struct sim_options){
		.params = { .seed = DEFAULT_SEED, .level = 0.95, .settings = { .confidence = 0.9 } }
	};
}

const char *sim_policy_help(const char *first, char *out)
{
	size_t used = (size_t)snprintf(out, SIM_POLICY_HELP,
				       "%s;\npostrider:without=NAME+NAME leaves layers out:\n", first),
	       line = used;

	for (const struct layer_entry *l = layer_all; l->name && used < SIM_POLICY_HELP; l++) {
		bool full = used - line + strlen(l->name) > HELP_COLUMNS;

		used += (size_t)snprintf(out + used, SIM_POLICY_HELP - used, "%s%s",
					 l == layer_all ? ""
					 : full         ? ",\n"
							: ", ",
					 l->name);
		line = full ? used - strlen(l->name) : line;
	}
	return out;
}

size_t sim_options_list(struct sim_options *o, struct cli_option *out)
{
	const struct cli_option all[] = {
		{ 0, "world", CLI_TEXT, "W",
		  "the simulated world: measured:TABLE.csv, queueing[:FILE.json] or\nfluid[:FILE.json]",
		  &o->params.world.spec },
		{ 0, "cluster", CLI_TEXT, "C",
		  "the machine: cores=16,slots=32 or a file (default: the one of the world's file);\n"
		  "a cluster with jobs that stay on one node: cores=800,nodes=100,place=promise",
		  &o->cluster },
		{ 0, "daemons", CLI_TEXT, "N[:HOW]",
		  "N daemons share the cluster: parts (each has its own nodes, the default),\n"
		  "asked (a job that is not promised asks the others, too) or shared (all use all\n"
		  "nodes)",
		  &o->daemons },
		{ 0, "from-history", CLI_TEXT, "PATH",
		  "take the jobs from a daemon's database or state folder, instead of TRACE", &o->history },
		{ 0, "resample", CLI_COUNT, "N",
		  "draw N jobs from those of the trace in each replication, and gaps between them:\n"
		  "for a history of few jobs",
		  &o->params.trace.resample },
		{ 0, "map", CLI_TEXT, "FILE", "how fields of the Standard Workload Format become jobs (JSON)",
		  &o->params.trace.map },
		{ 0, "schema", CLI_TEXT, "FILE",
		  "columns of the table of a measured world (default: the built-in ones)", &o->schema },
		{ 0, "model", CLI_TEXT, "FILE",
		  "use this trained model for the policies that accept it (default: with\n"
		  "--from-history the daemon's, otherwise none); none: train them here",
		  &o->model },
		{ 0, "confidence", CLI_CONFIDENCE, "C",
		  "the confidence of jobs that give none (default: 0.9)", &o->params.settings.confidence },
		{ 0, "strict", CLI_FLAG, NULL,
		  "refuse a trace with jobs that the world does not know (default: leave\n"
		  "them out and say how many)",
		  &o->strict },
		{ 0, "no-adapt", CLI_FLAG, NULL, "do not adapt the bounds to what happens", &o->no_adapt },
		{ 0, "hysteresis", CLI_RETIRED, "X", "a recurring job gets the best batch, too", NULL },
		{ 0, "explore", CLI_RETIRED, "X", "every job gets the best batch", NULL },
		{ 0, "noise", CLI_TEXT, "X",
		  "spread of a random factor on each job's work: 0.1 is about 10 %", &o->noise },
		{ 0, "drift", CLI_TEXT, "D", "the machine gets slower: 20%@3600, or 20%@50% of the trace",
		  &o->params.drift },
		{ 0, "stragglers", CLI_TEXT, "S",
		  "some jobs take longer: 2%x3 (2 % of them, 3 times as long)", &o->params.stragglers },
		{ 0, "failures", CLI_TEXT, "F", "some jobs fail: 1%", &o->params.failures },
		{ 0, "seed", CLI_COUNT, "N", "the seed of all random numbers (default: 1)", &o->params.seed },
		{ 0, "level", CLI_CONFIDENCE, "L", "the confidence level of the intervals (default: 0.95)",
		  &o->params.level },
		{ 0, "set", CLI_LIST, "KEY=VALUE",
		  "change something: cluster.cores, cluster.slots, cluster.nodes,\n"
		  "cluster.memory_mb, slo.scale, load.scale, noise; may be repeated",
		  &o->set },
		{ 0, "sweep", CLI_TEXT, "KEY=A..B",
		  "compare for several values of a key: slo.scale=0.5..2 (or 0.5..2:STEPS),\n"
		  "cluster.cores=2,4,8",
		  &o->sweep },
		{ 0, "capacity", CLI_TEXT, "SHARE", "find the smallest machine that reaches this target: 99%",
		  &o->capacity },
		{ 0, "of", CLI_TEXT, "METRIC",
		  "the metric that must reach the target (default: attainment_all)", &o->of },
		{ 0, "by", CLI_TEXT, "KEY", "what --capacity may change (default: cluster.cores)", &o->by },
		{ 0, "from", CLI_COUNT, "N", "the smallest value that --capacity tries (default: 1)",
		  &o->from },
		{ 0, "to", CLI_COUNT, "N", "the largest value (default: eight times the machine)", &o->to },
		{ 'n', "dry-run", CLI_FLAG, NULL,
		  "read and check everything, print what would run, run nothing", &o->dry_run },
	};

	memcpy(out, all, sizeof all);
	return sizeof all / sizeof all[0];
}

/* ---- the command line, for the record ---- */

/* 0: it changes a result; 1: it does not; 2: nor does its value, the next argument. */
static int changes_nothing(const char *a)
{
	static const char
		*const flag[] = { "--json", "-q", "--quiet", "-v", "--verbose", "--no-color", NULL },
		       *const value[] = { "-o", "--output", "--threads", NULL };

	for (size_t i = 0; flag[i]; i++)
		if (!strcmp(a, flag[i]))
			return 1;
	for (size_t i = 0; value[i]; i++) {
		size_t len = strlen(value[i]);

		if (!strcmp(a, value[i]))
			return 2;
		if (!strncmp(a, value[i], len) && (a[len] == '=' || a[1] != '-'))
			return 1;
	}
	return 0;
}

static bool is_plain(const char *s)
{
	static const char fine[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%^";

	return *s && s[strspn(s, fine)] == '\0';
}

static void put_quoted(struct strbuf *out, const char *s)
{
	if (is_plain(s)) {
		strbuf_puts(out, s);
		return;
	}
	strbuf_puts(out, "'");
	for (; *s; s++) {
		if (*s == '\'')
			strbuf_puts(out, "'\\''");
		else
			strbuf_add(out, s, 1);
	}
	strbuf_puts(out, "'");
}

void sim_command(int argc, char **argv, struct strbuf *out)
{
	bool only_args = false;

	strbuf_puts(out, "postrider");
	for (int i = 0; i < argc; i++) {
		int skip = only_args ? 0 : changes_nothing(argv[i]);

		only_args |= !strcmp(argv[i], "--");
		if (skip) {
			i += skip - 1;
			continue;
		}
		strbuf_puts(out, " ");
		put_quoted(out, argv[i]);
	}
}
