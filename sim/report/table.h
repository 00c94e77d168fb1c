/* The comparison in numbers: the summary, the table, decision times. */
#ifndef SIM_REPORT_TABLE_H
#define SIM_REPORT_TABLE_H

#include "common/strbuf.h"
#include "sim/report/data.h"

void report_put_summary(const struct report_data *d, struct strbuf *out);
/* Every cell of a number has data-policy, data-metric and data-value (and data-low, data-high): the very numbers of
 * compare.json, for whoever reads the page by program. */
void report_put_tables(const struct report_data *d, struct strbuf *out);
void report_put_decision_times(const struct report_data *d, struct strbuf *out);

#endif
