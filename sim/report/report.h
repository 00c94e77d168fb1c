/* The report: one self-contained HTML file from the folder of a comparison (record.h). No script, nothing
 * from outside, inline SVG (common/draw/svg.h), light and dark, readable in print and on a phone.
 *
 * report.c puts the page together; data.c and jobs.c read the folder, html.c is the page's
 * frame, table.c the comparison in numbers, chart.c axes and legends, report_fig_*.c the
 * figures. */
#ifndef SIM_REPORT_REPORT_H
#define SIM_REPORT_REPORT_H

#include "common/err.h"
#include "common/strbuf.h"

/* Reads dir/compare.json, jobs.csv, training.csv, timing.json, sweep.json (all but the first may be missing:
 * figures that need them say so). ERR_NOTFOUND: no compare.json. ERR_FORMAT: file, place, reason. */
int report_make(const char *dir, struct strbuf *out, struct err *err);

#endif
