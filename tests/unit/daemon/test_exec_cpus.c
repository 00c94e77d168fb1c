/* Handing out cpus to jobs, and their lists as text. */
#define _GNU_SOURCE
#include <string.h>

#include "scheduler/daemon/exec/cpus.h"
#include "tests/support/test.h"

static struct cpus with(const char *list)
{
	struct cpus c;

	cpus_init(&c);
	assert_true(CPU_COUNT(&c.all) > 0);
	assert_true(cpus_parse(list, &c.all));
	return c;
}

static const char *text(const cpu_set_t *set)
{
	static char buf[8192];

	assert_true(cpus_format(set, buf, sizeof buf));
	return buf;
}

TEST(test_lowest_free_cpus_are_taken)
{
	struct cpus c = with("2-4,7");
	cpu_set_t a, b, d;

	assert_true(cpus_take(&c, 2, &a));
	assert_string_equal(text(&a), "2-3");
	assert_true(cpus_take(&c, 1, &b));
	assert_string_equal(text(&b), "4");
	assert_false(cpus_take(&c, 2, &d));
	assert_string_equal(text(&d), "");
	cpus_give_back(&c, &a);
	assert_true(cpus_take(&c, 3, &d));
	assert_string_equal(text(&d), "2-3,7");
	assert_false(cpus_take(&c, 0, &a));
}

TEST(test_marked_cpus_are_not_handed_out)
{
	struct cpus c = with("0-3");
	cpu_set_t old, fresh;

	assert_true(cpus_parse("0,2,900", &old));
	cpus_mark(&c, &old);
	assert_true(cpus_take(&c, 2, &fresh));
	assert_string_equal(text(&fresh), "1,3");
}

TEST(test_lists_survive_the_way_to_text_and_back)
{
	static const char *const list[] = { "0", "0-1", "5,7,9", "0-3,8,10-11", "1023", "0-1023" };
	cpu_set_t set, odd, again;
	char small[8];

	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
		assert_true(cpus_parse(list[i], &set));
		assert_string_equal(text(&set), list[i]);
	}
	CPU_ZERO(&odd);
	for (int i = 1; i < CPU_SETSIZE; i += 2)
		CPU_SET(i, &odd);
	assert_true(cpus_parse(text(&odd), &again));
	assert_true(CPU_EQUAL(&odd, &again));
	assert_true(strlen(text(&odd)) <= 4095); /* RECORD_MAX_CPUS: the longest there can be */
	assert_false(cpus_format(&odd, small, sizeof small));
	assert_false(cpus_format(&odd, small, 0));
}

TEST(test_what_is_no_list_is_refused)
{
	static const char *const bad[] = { "",       "-",     ",",   "1,",
					   ",1",     "1-",    "2-1", "1024",
					   "a",      "1 2",   " 1",  "+1",
					   "1--2",   "1-2-3", "0x1", "99999999999999999999",
					   "0-1024", "1,,2" };
	cpu_set_t set;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (cpus_parse(bad[i], &set))
			fail_msg("'%s' was taken for a list", bad[i]);
	}
}
