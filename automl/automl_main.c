/* `postrider-automl`: campaigns, with the libraries that they alone need. `postrider` becomes this program
 * for the verb `automl`, so messages say `postrider`, and the arguments are as the user gave them. */
#include <cblas.h>
#include <gsl/gsl_errno.h>
#include <stdio.h>
#include <string.h>

#include "automl/cli/verb.h"

int main(int argc, char **argv)
{
	char *ask_help[] = { (char[]){ "automl" }, (char[]){ "--help" }, NULL };

	cli_set_up();
	gsl_set_error_handler_off();
	openblas_set_num_threads(1); /* small matrices, and our own pool does the threading */
	if (argc > 2 && !strcmp(argv[1], "help") && !strcmp(argv[2], "automl"))
		return verb_automl(2, ask_help);
	if (argc > 1 && !strcmp(argv[1], "automl"))
		return verb_automl(argc - 1, argv + 1);
	fputs("postrider-automl: this is a part of postrider: 'postrider automl --help'\n", stderr);
	return 2;
}
