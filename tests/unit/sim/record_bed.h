/* jobs.csv of a comparison as text, for the tests that look at its bytes. */
#ifndef TESTS_UNIT_SIM_RECORD_BED_H
#define TESTS_UNIT_SIM_RECORD_BED_H

#include "common/strbuf.h"
#include "sim/compare/record.h"

/* Appends the file that record_jobs_write() makes; what that returned. */
int record_bed_jobs(const struct compare_result *r, struct strbuf *out, struct err *err);

#endif
