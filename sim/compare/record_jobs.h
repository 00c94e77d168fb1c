/* jobs.csv, row by row; for record.c alone. */
#ifndef SIM_COMPARE_RECORD_JOBS_H
#define SIM_COMPARE_RECORD_JOBS_H

#include "sim/compare/record.h"

bool record_jobs_kept(const struct compare_result *r); /* are all outcomes there? */
/* The same bytes as record_jobs_csv(), piece by piece to a file beside `path` that takes its place when it is whole. */
int record_jobs_write(const char *path, const struct compare_result *r, struct err *err);

#endif
