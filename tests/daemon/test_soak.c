/* Memory and descriptors stay as they are, however many jobs go through: the soak of tests/daemon/drills.c in short. */
#include <stdio.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/daemon/drills.h"

static void test_memory_and_descriptors_are_flat_over_many_jobs(void **state)
{
	const struct drill d = { .seed = 7, .to = stdout };

	(void)state;
	assert_int_equal(drill_soak(&d, 8000, 100), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_and_descriptors_are_flat_over_many_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
