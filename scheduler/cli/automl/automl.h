/* The parts of `postrider automl`. */
#ifndef SCHEDULER_CLI_AUTOML_AUTOML_H
#define SCHEDULER_CLI_AUTOML_AUTOML_H

#include "predictors/automl/automl.h"
#include "scheduler/cli/cli.h"

/* The table on the screen. */
void automl_view(const struct automl *a, const struct cli *c, struct strbuf *out);

int automl_predict(int argc, char **argv); /* `postrider automl predict`; argv[0] is "predict" */

#endif
