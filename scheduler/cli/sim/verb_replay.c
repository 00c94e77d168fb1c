/* `postrider replay`: what one policy would have done to the jobs of a trace. sim_verb.c does it. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/places.h"
#include "common/text/text.h"

#include "scheduler/cli/sim/sim_options.h"

/* The daemon's own code makes its decisions again: it is postriderd that does it. Comes back only where that
 * fails. */
static int become_daemon(const struct cli *c, const char *dir, double at_least)
{
	char program[PATH_MAX], share[40];
	const char *arg[8] = { "postriderd", "--verify", dir };
	size_t n = 3;

	if (!place_program("postriderd", program, sizeof program)) {
		fputs("postrider: --verify needs postriderd, which is neither beside this program nor "
		      "installed\n",
		      stderr);
		return 1;
	}
	snprintf(share, sizeof share, "%.17g", at_least);
	if (!isnan(at_least)) {
		arg[n++] = "--at-least";
		arg[n++] = share;
	}
	if (c->json)
		arg[n++] = "--json";
	execv(program, (char *const *)arg);
	fprintf(stderr, "postrider: cannot run %s: %s\n", text_tail(program, 200), strerror(errno));
	return 1;
}

#define N_OWN 4 /* options of this verb, and the end of the list */
#define POLICIES                                                                                             \
	"courier, courier-tuned, card, postrider, greedy, naive, boost,\nboost-full, queueing, anova, "      \
	"fixed:B, greedy-oracle,\npriced-oracle or optimum"
#define VERIFY "make the decisions of the daemon of --from-history\nagain, and compare them"
#define AT_LEAST "of --verify: exit code 1 if a smaller share of the\njobs agrees: 0.99 or 99%"

static const struct cli_usage usage = {
	.verb = "replay",
	.synopsis = "TRACE --policy P --world W [--cluster C] [--seed N] [-o DIR] [--json]\n"
		    "--from-history PATH --policy P --world W [options]\n"
		    "--from-history PATH --verify [--at-least SHARE] [--json]",
	.what = "Replays the jobs of a trace in virtual time: the code of the daemon decides about each\n"
		"job, and a simulated world determines what happens. TRACE is a file (.csv, .jsonl, .swf), "
		"a\n"
		"daemon's database, '-' for CSV on standard input, or gen:KIND,key=value,... for a "
		"generated\n"
		"trace. The same input and seed give the same bytes, for any number of threads.\n"
		"\n"
		"With --verify the daemon's own decisions are made again, from what it recorded: the share "
		"of\n"
		"jobs whose verdict, batch and epochs come out the same is printed, with each job that "
		"differs\n"
		"and the first number that does. The daemon may run; nothing is changed.",
	.json = true,
	.threads = true,
	.output = "a folder for compare.json, jobs.csv and more (postrider report)",
	.max_args = 1,
	.examples = "  postrider replay gen:poisson,jobs=500,gap=20 --policy postrider --world fluid \\\n"
		    "      --cluster cores=16\n"
		    "  postrider replay --from-history /var/lib/postrider --policy courier \\\n"
		    "      --world measured:runs.csv --cluster cores=2,slots=5 -o last-month\n"
		    "  postrider replay jobs.csv --policy postrider --world fluid --capacity 99%\n"
		    "  postrider replay --from-history /var/lib/postrider --verify --at-least 99%\n",
};

int verb_replay(int argc, char **argv)
{
	struct cli_option option[SIM_OPTIONS + N_OWN] = { { 0 } };
	char help[SIM_POLICY_HELP];
	const char *policy = NULL;
	double at_least = NAN;
	bool verify = false;
	struct sim_options o;
	struct cli_usage u = usage;
	struct strbuf command = { 0 };
	struct cli c;
	size_t n;
	int code;

	sim_options_init(&o);
	sim_command(argc, argv, &command);
	option[0] =
		(struct cli_option){ 0, "policy", CLI_TEXT, "P", sim_policy_help(POLICIES, help), &policy };
	n = 1 + sim_options_list(&o, &option[1]);
	option[n++] = (struct cli_option){ 0, "verify", CLI_FLAG, NULL, VERIFY, &verify };
	option[n++] = (struct cli_option){ 0, "at-least", CLI_CONFIDENCE, "SHARE", AT_LEAST, &at_least };
	option[n] = (struct cli_option){ .name = NULL };
	u.option = option;
	if (!cli_parse(&c, &u, argc, argv, &code))
		goto out;
	if (!verify && !isnan(at_least))
		code = cli_usage_error(&c, "--at-least is of --verify");
	else if (verify && (!o.history || policy || c.n_args))
		code = cli_usage_error(
			&c, "--verify needs --from-history PATH, and neither a trace nor a policy");
	else if (verify)
		code = become_daemon(&c, o.history, at_least);
	else if (!policy)
		code = cli_usage_error(&c,
				       "which policy? --policy postrider; there are: %s, greedy-oracle, "
				       "priced-oracle, optimum",
				       policy_names());
	else if (strchr(policy, ','))
		code = cli_usage_error(
			&c, "--policy %s: one at a time; 'postrider compare' puts several side by side",
			policy);
	else {
		o.policies = o.baseline = policy;
		o.replications = 1;
		code = sim_verb_run(&c, &o, "replay", strbuf_text(&command));
	}
out:
	strbuf_release(&command);
	return code;
}
