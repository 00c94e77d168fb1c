/* The count of waiting jobs by user, against a plain array. */
#include "common/mem.h"
#include "common/rng.h"
#include "scheduler/jobs/users.h"
#include "tests/support/test.h"

#define USERS 300

TEST(test_users_are_counted_as_in_a_plain_array)
{
	struct rng r = rng_stream(3, 9);
	struct users u = { 0 };
	size_t queued[USERS] = { 0 };

	assert_int_equal(users_queued(&u, 7), 0);
	users_count(&u, 7, -1); /* not known: nothing happens */
	for (int i = 0; i < 20000; i++) {
		uid_t uid = rng_below(&r, USERS);
		int by = queued[uid] && rng_below(&r, 2) ? -1 : 1;

		assert_int_equal(users_know(&u, uid * 65536), 0); /* ids with the same low bits */
		users_count(&u, uid * 65536, by);
		queued[uid] += (size_t)by;
		uid = rng_below(&r, USERS);
		assert_int_equal(users_queued(&u, uid * 65536), queued[uid]);
	}
	users_release(&u);
	assert_int_equal(users_queued(&u, 0), 0);
}

TEST(test_users_without_memory_are_not_counted)
{
	struct users u = { 0 };

	mem_fail_at(1, false);
	assert_int_equal(users_know(&u, 1), -1);
	mem_fail_at(0, false);
	users_count(&u, 1, 1);
	assert_int_equal(users_queued(&u, 1), 0);
	users_release(&u);
}
