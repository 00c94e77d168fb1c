/* The `postrider` command: the table of verbs and the help. It does itself what talks to the daemon, and
 * starts in a millisecond. What computes is done by postrider-lab (lab_main.c), and campaigns by
 * postrider-automl (automl/automl_main.c). This program becomes one of them where a verb asks for it: loading
 * the libraries of linear algebra takes longer than a submit. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/places.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv); /* NULL: another program's */
	const char *help;
} verb_all[] = {
	{ "init", NULL, "make a job out of your own training command" },
	{ "profile", NULL, "measure a training command in a designed experiment" },
	{ "run", NULL, "run your own command with the best batch size that ends in time" },
	{ "page", NULL, "open the page of your own daemon in a browser" },
	{ "train", NULL, "train models of time and accuracy from a table of runs" },
	{ "evaluate", NULL, "test a model on a table it has not seen" },
	{ "predict", NULL, "predict a table, or choose the batch size for one job" },
	{ "anova", NULL, "analysis of variance: which factors matter" },
	{ "automl", NULL, "try techniques and their settings on a table, by a campaign file" },
	{ "model", NULL, "show, check and compare models; retrain and roll back" },
	{ "check-config", NULL, "check a configuration of the daemon and show its settings" },
	{ "doctor", NULL, "check the installation, the daemon, its model and the machine" },
	{ "submit", verb_submit, "give a job to the daemon, which chooses its batch size" },
	{ "status", verb_status, "show one job: state, promise, expected end" },
	{ "types", verb_types, "show what may be submitted, with parameters and ranges" },
	{ "list", verb_list, "list jobs, newest first" },
	{ "logs", verb_logs, "print what a job wrote" },
	{ "cancel", verb_cancel, "stop jobs" },
	{ "wait", verb_wait, "wait until jobs have ended" },
	{ "watch", verb_watch, "show what happens, live" },
	{ "explain", verb_explain, "show why a job got its batch size" },
	{ "stats", verb_stats, "time limits met, coverage of the bounds, queue, storage" },
	{ "reload", verb_reload, "make the daemon read its configuration again" },
	{ "drain", verb_drain, "make the daemon take no more jobs" },
	{ "fill", verb_fill, "fill in the placeholders of a file and run a command with it" },
	{ "token", verb_token, "a token for the daemon's page in a browser" },
	{ "next", verb_next, "inside a job: how to run the next epoch" },
	{ "replay", NULL, "what one policy would have done to the jobs of a trace" },
	{ "compare", NULL, "policies side by side on the same jobs; the paper's experiment" },
	{ "report", NULL, "a comparison as one HTML page with figures" },
	{ "trace", NULL, "check a trace, say what is in it, write it in our own format" },
	{ "version", NULL, "print the version of this program" },
};
enum { N_VERBS = sizeof verb_all / sizeof verb_all[0] };

static const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < N_VERBS; i++) {
		if (!strcmp(verb_all[i].name, name))
			return &verb_all[i];
	}
	return NULL;
}

static void help(FILE *to)
{
	fprintf(to, "usage: postrider VERB [options]\n"
		    "\n"
		    "Chooses the batch size of training jobs: the most accurate one that is fast enough.\n"
		    "\n");
	for (size_t i = 0; i < N_VERBS; i++)
		fprintf(to, "  %-13s %s\n", verb_all[i].name, verb_all[i].help);
	fprintf(to,
		"\n"
		"  'postrider VERB --help', 'postrider help VERB' and 'man postrider' tell more.\n"
		"\n"
		"Results go to standard output, messages to standard error. Exit codes: 0 done,\n"
		"1 failed, 2 wrong usage, 3 no batch size meets the time limit, 4 no such job, model\n"
		"or file, 5 daemon not reachable, 6 invalid configuration, data or model, 7 not\n"
		"permitted, 8 refused for now, 9 accepted without the promise that was asked for, 124\n"
		"--timeout is over, 130 interrupted. 'wait' and 'submit --wait' end with the exit code of\n"
		"the job.\n");
}

static int unknown_verb(const char *given)
{
	const char *name[N_VERBS + 1] = { NULL };
	char hint[TEXT_HINT];

	for (size_t i = 0; i < N_VERBS; i++)
		name[i] = verb_all[i].name;
	fprintf(stderr, "postrider: there is no verb '%s'%s\npostrider: 'postrider --help' lists the verbs\n",
		cli_clean(given), text_hint(given, name, hint));
	return 2;
}

/* Comes back only where it fails, with the exit code. */
static int become(const struct verb *v, char **argv)
{
	const char *program = strcmp(v->name, "automl") ? "postrider-lab" : "postrider-automl";
	char path[PATH_MAX];

	if (!place_program(program, path, sizeof path)) {
		fprintf(stderr,
			"postrider: '%s' needs %s, which is neither beside this program, nor in "
			"../libexec/postrider, nor in " PLACE_LIBEXEC "\n",
			v->name, program);
		return 1;
	}
	execv(path, argv);
	fprintf(stderr, "postrider: cannot run %s: %s\n", text_tail(path, 200), strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	const struct verb *v;
	char *ask_help[] = { NULL, (char[]){ "--help" }, NULL };

	cli_set_up();
	if (argc < 2) {
		help(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (!strcmp(argv[1], "help") && argc == 2)) {
		help(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version"))
		argv[1] += 2;
	if (!strcmp(argv[1], "help")) {
		v = verb_find(argv[2]);
		if (!v)
			return unknown_verb(argv[2]);
		if (!v->run)
			return become(v, argv);
		ask_help[0] = argv[2];
		return v->run(2, ask_help);
	}
	if (argv[1][0] == '-') {
		fprintf(stderr,
			"postrider: the verb comes first: postrider VERB [options]; 'postrider --help' "
			"lists the verbs\n");
		return 2;
	}
	v = verb_find(argv[1]);
	if (!v)
		return unknown_verb(argv[1]);
	return v->run ? v->run(argc - 1, argv + 1) : become(v, argv);
}
