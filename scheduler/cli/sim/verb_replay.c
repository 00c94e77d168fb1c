/* `postrider replay`: what one policy would have done to the jobs of a trace. sim_verb.c does it. */
#include <string.h>

#include "scheduler/cli/sim/sim_options.h"

int verb_replay(int argc, char **argv)
{
	struct cli_option option[SIM_OPTIONS + 1] = { { 0 } };
	char help[SIM_POLICY_HELP];
	const char *policy = NULL;
	struct sim_options o;
	struct strbuf command = { 0 };
	const struct cli_usage usage = {
		.verb = "replay",
		.synopsis = "TRACE --policy P --world W [--cluster C] [--seed N] [-o DIR] [--json]\n"
			    "--from-history PATH --policy P --world W [options]",
		.what = "Replays the jobs of a trace in virtual time: the code of the daemon decides about "
			"each\n"
			"job, and a simulated world determines what happens. TRACE is a file (.csv, .jsonl, "
			".swf), a\n"
			"daemon's database, '-' for CSV on standard input, or gen:KIND,key=value,... for a "
			"generated\n"
			"trace. The same input and seed give the same bytes, for any number of threads.",
		.option = option,
		.json = true,
		.threads = true,
		.output = "a folder for compare.json, jobs.csv and more (postrider report)",
		.max_args = 1,
		.examples =
			"  postrider replay gen:poisson,jobs=500,gap=20 --policy postrider --world fluid \\\n"
			"      --cluster cores=16\n"
			"  postrider replay --from-history /var/lib/postrider --policy courier \\\n"
			"      --world measured:runs.csv --cluster cores=2,slots=5 -o last-month\n"
			"  postrider replay jobs.csv --policy postrider --world fluid --capacity 99%\n",
	};
	struct cli c;
	size_t n;
	int code;

	sim_options_init(&o);
	sim_command(argc, argv, &command);
	option[0] = (struct cli_option){ 0,
					 "policy",
					 CLI_TEXT,
					 "P",
					 sim_policy_help("courier, courier-tuned, card, postrider, greedy, "
							 "naive, boost,\nboost-full, queueing, anova, "
							 "fixed:B, greedy-oracle,\npriced-oracle or optimum",
							 help),
					 &policy };
	n = 1 + sim_options_list(&o, &option[1]);
	option[n] = (struct cli_option){ .name = NULL };
	if (!cli_parse(&c, &usage, argc, argv, &code))
		goto out;
	if (!policy)
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
