/* What the tests of traces ask a trace. */
#ifndef TESTS_UNIT_SIM_TRACE_BED_H
#define TESTS_UNIT_SIM_TRACE_BED_H

#include "sim/trace/trace.h"

const char *value(const struct trace *t, size_t job, const char *column); /* or the test fails */

#endif
