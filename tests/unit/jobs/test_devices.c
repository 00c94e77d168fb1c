/* Which job has which device. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "scheduler/jobs/devices.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static char *const three[] = { "0", "GPU-b", "2" };

static void takes(struct devices *d, uint64_t job, uint32_t n, const char *expected)
{
	struct strbuf out = { 0 };

	assert_true(devices_take(d, job, n, &out));
	assert_string_equal(strbuf_text(&out), expected);
	strbuf_release(&out);
}

TEST(test_the_first_free_ones_are_taken_in_order)
{
	struct devices d = { 0 };
	struct strbuf out = { 0 };

	assert_int_equal(devices_set(&d, three, 3, NULL), 0);
	takes(&d, 7, 1, "0");
	takes(&d, 8, 1, "GPU-b");
	devices_give_back(&d, 7);
	takes(&d, 9, 2, "0,2");
	assert_int_equal(devices_free_count(&d), 0);
	assert_false(devices_take(&d, 10, 1, &out));
	assert_int_equal(out.len, 0);
	devices_give_back(&d, 10); /* it has none */
	devices_give_back(&d, 9);
	assert_int_equal(devices_free_count(&d), 2);
	assert_false(devices_take(&d, 10, 3, &out)); /* and none of the two is taken */
	assert_int_equal(devices_free_count(&d), 2);
	devices_release(&d);
}

TEST(test_devices_without_names_have_numbers)
{
	struct devices d = { 0 };

	assert_int_equal(devices_set(&d, NULL, 12, NULL), 0);
	takes(&d, 1, 12, "0,1,2,3,4,5,6,7,8,9,10,11");
	devices_release(&d);
	assert_int_equal(devices_set(&d, NULL, 0, NULL), 0);
	assert_int_equal(devices_free_count(&d), 0);
	devices_release(&d);
}

TEST(test_what_a_row_names_is_held_again)
{
	struct devices d = { 0 };

	assert_int_equal(devices_set(&d, three, 3, NULL), 0);
	devices_hold(&d, 4, "GPU-b,gone,2"); /* one is no longer configured */
	assert_int_equal(devices_free_count(&d), 1);
	takes(&d, 5, 1, "0");
	devices_give_back(&d, 4);
	takes(&d, 6, 2, "GPU-b,2");
	devices_hold(&d, 7, ""); /* damaged */
	devices_hold(&d, 7, ",,");
	devices_hold(&d, 7, "GPU"); /* part of a name is no name */
	assert_int_equal(devices_free_count(&d), 0);
	devices_release(&d);
}

/* Jobs come and go, and now and then the table is made anew from what they were given: no device ever has two
 * holders, by our own account. */
TEST(test_no_device_has_two_holders)
{
	struct devices d = { 0 };
	struct rng r = rng_stream(5, 18);
	char *has[40] = { NULL };
	int holders[16];

	assert_int_equal(devices_set(&d, NULL, 16, NULL), 0);
	for (int step = 0; step < 4000; step++) {
		uint32_t job = rng_below(&r, 40);
		struct strbuf out = { 0 };

		if (has[job]) {
			devices_give_back(&d, job + 1);
			free(has[job]);
			has[job] = NULL;
		} else if (devices_take(&d, job + 1, 1 + rng_below(&r, 4), &out)) {
			has[job] = out.text;
		}
		if (step % 100 == 0) {
			assert_int_equal(devices_set(&d, NULL, 16, NULL), 0);
			for (uint32_t i = 0; i < 40; i++)
				if (has[i])
					devices_hold(&d, i + 1, has[i]);
		}
		memset(holders, 0, sizeof holders);
		for (uint32_t i = 0; i < 40; i++)
			for (const char *s = has[i]; s && *s; s += strcspn(s, ","), s += *s == ',')
				holders[atoi(s)]++;
		for (uint32_t i = 0; i < 16; i++) {
			assert_true(holders[i] <= 1);
			assert_int_equal(holders[i], d.holder[i] != 0);
		}
	}
	for (uint32_t i = 0; i < 40; i++)
		free(has[i]);
	devices_release(&d);
}
