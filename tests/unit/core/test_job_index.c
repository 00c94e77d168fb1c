/* The index of ids: what was put is found, what was removed is not, whatever the order. */
#include <stdbool.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/rng.h"
#include "scheduler/core/job_index.h"
#include "tests/support/test.h"

#define IDS 500

TEST(test_index_agrees_with_a_plain_table)
{
	struct rng rng = rng_stream(1, 2);
	struct job_index x = { 0 };
	uint32_t place[IDS + 1];
	size_t n = 0;

	assert_int_equal(job_index_init(&x, 100), 0);
	for (int i = 0; i <= IDS; i++)
		place[i] = JOB_INDEX_NONE;
	for (int i = 0; i < 200000; i++) {
		uint64_t id = 1 + rng_below(&rng, IDS);

		if (place[id] != JOB_INDEX_NONE) {
			job_index_remove(&x, id);
			place[id] = JOB_INDEX_NONE;
			n--;
		} else if (n < 100) {
			place[id] = rng_below(&rng, 1000);
			job_index_put(&x, id, place[id]);
			n++;
		}
		id = 1 + rng_below(&rng, IDS);
		assert_int_equal(job_index_find(&x, id), place[id]);
	}
	for (uint64_t id = 1; id <= IDS; id++)
		assert_int_equal(job_index_find(&x, id), place[id]);
	job_index_remove(&x, 999999); /* not there: nothing happens */
	assert_int_equal(job_index_find(&x, 0), JOB_INDEX_NONE);
	assert_int_equal(job_index_find(&x, UINT64_MAX), JOB_INDEX_NONE);
	job_index_release(&x);
	job_index_release(NULL);
}

TEST(test_index_says_that_there_is_no_memory)
{
	for (unsigned long k = 1; k <= 2; k++) {
		struct job_index x = { 0 };

		mem_fail_at(k, false);
		assert_int_equal(job_index_init(&x, 10), -1);
		mem_fail_at(0, false);
		job_index_release(&x);
	}
}
