/* The parts of `postrider automl`. */
#ifndef AUTOML_CLI_VERB_H
#define AUTOML_CLI_VERB_H

#include "automl/automl.h"
#include "scheduler/cli/cli.h"

/* The table on the screen. */
void automl_view(const struct automl *a, const struct cli *c, struct strbuf *out);

#define AUTOML_MAX_PARTS 64
struct automl_spread {
	const char *executor, *config; /* the engine, and the file that has it; config NULL: none */
	size_t parts;
	bool lenient, restart;
};
/* Runs the experiments as jobs of an engine, each a part of them in DIR/part-K, and waits for their end. If a
 * part fails, a note says so, and its experiments run here. */
int automl_spread(const struct cli *c, const char *dir, const struct automl_spread *s, struct err *err);

int verb_automl(int argc, char **argv);
int automl_predict(int argc, char **argv); /* `postrider automl predict`; argv[0] is "predict" */

#endif
