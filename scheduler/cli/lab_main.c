/* `postrider-lab`: the verbs of `postrider` that compute, with the libraries that they need. `postrider`
 * becomes this program where one of them is asked for, so messages say `postrider`, and the arguments are as
 * the user gave them. */
#include <cblas.h>
#include <gsl/gsl_errno.h>
#include <stdio.h>
#include <string.h>

#include "common/version.h"
#include "scheduler/cli/cli.h"

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

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
} verb_all[] = {
	{ "init", verb_init },       { "profile", verb_profile },
	{ "run", verb_run },         { "page", verb_page },
	{ "train", verb_train },     { "evaluate", verb_evaluate },
	{ "predict", verb_predict }, { "anova", verb_anova },
	{ "model", verb_model },     { "check-config", verb_check_config },
	{ "replay", verb_replay },   { "compare", verb_compare },
	{ "report", verb_report },   { "trace", verb_trace },
	{ "doctor", verb_doctor },   { "version", verb_version },
};

int main(int argc, char **argv)
{
	char *ask_help[] = { NULL, (char[]){ "--help" }, NULL };
	bool help = argc > 2 && !strcmp(argv[1], "help");
	const char *name = argc < 2 ? "" : argv[help ? 2 : 1];

	cli_set_up();
	gsl_set_error_handler_off();
	openblas_set_num_threads(1); /* small matrices, and our own pool does the threading */
	for (size_t i = 0; i < sizeof verb_all / sizeof verb_all[0]; i++) {
		if (strcmp(verb_all[i].name, name))
			continue;
		ask_help[0] = argv[help ? 2 : 1];
		return help ? verb_all[i].run(2, ask_help) : verb_all[i].run(argc - 1, argv + 1);
	}
	fputs("postrider-lab: this is a part of postrider, which has the verbs: 'postrider --help'\n",
	      stderr);
	return 2;
}
