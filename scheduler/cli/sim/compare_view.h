/* Comparisons, sweeps and capacities as people read them. Only compare_view_talk() prints times of the wall
 * clock. */
#ifndef SCHEDULER_CLI_SIM_COMPARE_VIEW_H
#define SCHEDULER_CLI_SIM_COMPARE_VIEW_H

#include "scheduler/cli/cli.h"
#include "scheduler/cli/sim/sim_options.h"
#include "sim/compare/paper_experiment.h"

/* Where the numbers come from, the two tables, and the paired tests against the baseline: wins and losses. */
void compare_view_print(const struct compare_result *r, const struct compare_params *p, bool colour,
                        struct strbuf *out);
/* Decision times, on stderr, because they depend on the machine and the moment. */
void compare_view_talk(const struct cli *c, const struct compare_result *r);

/* A table of values x policies, filled point by point. */
struct sweep_view {
	const struct sweep *sweep;
	const struct compare_params *p;
	struct interval *all, *zero; /* [point * n_policies + policy]: attainment_all, accuracy_zero */
};
int sweep_view_init(struct sweep_view *v, const struct sweep *sweep, const struct compare_params *p,
                    struct err *err);
void sweep_view_release(struct sweep_view *v);
void sweep_view_point(struct sweep_view *v, size_t i, const struct compare_result *r);
void sweep_view_print(const struct sweep_view *v, bool colour, struct strbuf *out);

void capacity_view_print(const struct capacity_question *q, const struct sim_policy *p,
                         const struct capacity *c, bool colour, struct strbuf *out);
/* An object of the open array. */
void capacity_view_json(const struct sim_policy *p, const struct capacity *c, struct json_writer *w);

/* A row of texts, such as the header; NULL ends the list. */
void compare_view_row(struct cli_table *t, const char *first, ...) __attribute__((sentinel));
/* "94.4 % [93.1, 95.6]"; buf of 64 bytes. */
char *compare_view_share(const struct interval *v, char *buf);

/* ---- paper_view.c ---- */
/* The paper's experiment as people read it: our Table 9, Table 11, the data of Figures 9 and 10, and the
 * same with many jobs. */
void paper_view_print(const struct paper_result *r, bool colour, struct strbuf *out);

#endif
