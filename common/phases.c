/* The names of the phases of a run. See phases.h. */
#include "common/phases.h"

#include <string.h>

const char *const phase_name[N_PHASES] = { "fetch_s", "compute_s", "sync_s", "test_s" };

int phase_find(const char *name, size_t len)
{
	for (int i = 0; i < N_PHASES; i++) {
		if (strlen(phase_name[i]) == len && !memcmp(phase_name[i], name, len))
			return i;
	}
	return -1;
}
