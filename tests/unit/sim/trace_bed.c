/* Looking into a trace. See trace_bed.h. */
#include "tests/unit/sim/trace_bed.h"

#include <string.h>

#include "tests/support/test.h"

const char *value(const struct trace *t, size_t job, const char *column)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (strcmp(t->column[i], column) == 0)
			return t->kind[t->job[job].kind].value[i];
	fail_msg("no column %s", column);
	return NULL;
}
