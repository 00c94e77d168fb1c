/* jobs.csv, row by row; for record.c alone. */
#ifndef SIM_COMPARE_RECORD_JOBS_H
#define SIM_COMPARE_RECORD_JOBS_H

#include "sim/compare/record.h"

bool record_jobs_kept(const struct compare_result *r); /* are all outcomes there? */
#define JOBS_PART "jobs.csv.part"
/* The same bytes as record_jobs_csv(), piece by piece to JOBS_PART, which takes the place of the file when it is whole. */
int record_jobs_write(const char *dir, const char *name, const struct compare_result *r, struct err *err);

#endif
