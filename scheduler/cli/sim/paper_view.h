/* The paper's experiment as people read it: our Table 9, Table 11, the data of Figures 9 and 10, and the
 * same with many jobs. */
#ifndef SCHEDULER_CLI_SIM_PAPER_VIEW_H
#define SCHEDULER_CLI_SIM_PAPER_VIEW_H

#include "scheduler/cli/cli.h"
#include "sim/compare/paper_experiment.h"

void paper_view_print(const struct paper_result *r, bool colour, struct strbuf *out);

#endif
