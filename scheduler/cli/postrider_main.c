/* The `postrider` command: the table of verbs, the set-up before any of them, and the help. */
#include <cblas.h>
#include <gsl/gsl_errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/text/text.h"
#include "common/version.h"
#include "scheduler/cli/cli.h"

static int verb_version(int argc, char **argv);

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} verb_all[] = {
	{ "profile", verb_profile, "measure a training command in a designed experiment" },
	{ "train", verb_train, "train models of time and accuracy from a table of runs" },
	{ "evaluate", verb_evaluate, "test a model on a table it has not seen" },
	{ "predict", verb_predict, "predict a table, or choose the batch size for one job" },
	{ "anova", verb_anova, "analysis of variance: which factors matter" },
	{ "automl", verb_automl, "try techniques and their settings on a table, by a campaign file" },
	{ "model", verb_model, "show, check and compare models; retrain and roll back" },
	{ "check-config", verb_check_config, "check a configuration of the daemon and show its settings" },
	{ "submit", verb_submit, "give a job to the daemon, which chooses its batch size" },
	{ "status", verb_status, "show one job: state, promise, expected end" },
	{ "list", verb_list, "list jobs, newest first" },
	{ "cancel", verb_cancel, "stop jobs" },
	{ "wait", verb_wait, "wait until jobs have ended" },
	{ "watch", verb_watch, "show what happens, live" },
	{ "explain", verb_explain, "show why a job got its batch size" },
	{ "stats", verb_stats, "time limits met, coverage of the bounds, queue, storage" },
	{ "replay", verb_replay, "what one policy would have done to the jobs of a trace" },
	{ "compare", verb_compare, "policies side by side on the same jobs; the paper's experiment" },
	{ "report", verb_report, "a comparison as one HTML page with figures" },
	{ "trace", verb_trace, "check a trace, say what is in it, write it in our own format" },
	{ "version", verb_version, "print the version of this program" },
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
	fprintf(to, "\n"
		    "  'postrider VERB --help', 'postrider help VERB' and 'man postrider' tell more.\n"
		    "\n"
		    "Results go to standard output, messages to standard error. Exit codes: 0 done,\n"
		    "1 failed, 2 wrong usage, 3 no batch size meets the time limit, 4 no such job, model\n"
		    "or file, 5 daemon not reachable, 6 invalid configuration, data or model, 7 not\n"
		    "permitted, 8 refused for now, 124 --timeout is over, 130 interrupted. 'wait' and\n"
		    "'submit --wait' end with the exit code of the job.\n");
}

static int verb_version(int argc, char **argv)
{
	static const struct cli_usage usage = {
		.verb = "version",
		.synopsis = "[--json]",
		.what = "Prints the version of the program; with --json also the model format it writes.",
		.json = true,
	};
	struct strbuf out = { 0 };
	struct json_writer w;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (c.json) {
		json_begin(&w, &out, true);
		json_open(&w, '{');
		json_kv_string(&w, "program", "postrider");
		json_kv_string(&w, "version", postrider_version);
		json_kv_int(&w, "model_format", MODEL_FORMAT_VERSION);
		json_kv_open(&w, "models", '[');
		for (size_t i = 0; predictor_all[i]; i++)
			json_put_string(&w, predictor_all[i]->name);
		json_close(&w, ']');
		json_close(&w, '}');
		strbuf_puts(&out, "\n");
	} else {
		strbuf_puts(&out, postrider_program);
		strbuf_puts(&out, "\n");
		if (c.verbose)
			strbuf_printf(&out, "model format %d\nmodels: %s\n", MODEL_FORMAT_VERSION,
				      predictor_names());
	}
	code = cli_finish(&c, &out);
	strbuf_release(&out);
	return code;
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

/* Wipes the progress bar, says what happened and dies of the signal, so that a shell sees 130. There is
 * nothing to undo: cli_write() blocks the signal while it writes a file. */
static void interrupted(int number)
{
	static const char bar[] = "\r\033[K",
			  text[] = "postrider: interrupted; no file was left half-written\n";
	ssize_t ignored = 0;

	if (isatty(STDERR_FILENO))
		ignored = write(STDERR_FILENO, bar, sizeof bar - 1);
	ignored += write(STDERR_FILENO, text, sizeof text - 1);
	(void)ignored;
	signal(number, SIG_DFL);
	raise(number);
}

static void set_up(void)
{
	struct sigaction stop = { .sa_handler = interrupted }, old;

	setlocale(LC_CTYPE, ""); /* which characters the terminal shows; numbers stay as in C */
	gsl_set_error_handler_off();
	openblas_set_num_threads(1); /* small matrices, and our own pool does the threading */
	/* `postrider ... | head` ends quietly, even if our parent ignores the signal. */
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN); /* a file-size limit is then a failed write, which we report */
	/* A job started in the background ignores Ctrl-C; leave it so. */
	if (!sigaction(SIGINT, NULL, &old) && old.sa_handler == SIG_DFL)
		sigaction(SIGINT, &stop, NULL);
	log_set_program("postrider");
}

int main(int argc, char **argv)
{
	const struct verb *v;
	char *ask_help[] = { NULL, (char[]){ "--help" }, NULL };

	set_up();
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
	return v ? v->run(argc - 1, argv + 1) : unknown_verb(argv[1]);
}
