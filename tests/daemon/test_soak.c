/* Memory and descriptors stay as they are, however many jobs go through: the soak of tests/daemon/drills.c in
 * short. */
#include <stdio.h>

#include "tests/daemon/drills.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

TEST(test_memory_and_descriptors_are_flat_over_many_jobs)
{
	const struct drill d = { .seed = 7, .to = stdout };

	assert_int_equal(drill_soak(&d, sanitized() ? 8000 : 20000, 100), 0);
}
