/* Test cases that register themselves. A program of tests is one file of them; test.c has its main().
 *
 *   TEST(test_name) { ... }                          a case
 *   TEST_WITH(test_name, set_up, tear_down) { ... }  the same between two functions, which share `void
 *   **state` with
 *                                                    it; NULL: none
 *   TEST_GROUP(set_up, tear_down);                   what comes before the first case and after the last;
 *   once a file
 *
 * Cases run in the order of the file, through cmocka. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

/* cmocka.h needs the others before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct test_case {
	struct CMUnitTest unit;
	int line;
	struct test_case *next;
};

void test_register(struct test_case *c);

#define TEST_DEFINE(name, set_up, tear_down, state)                                                          \
	static void name(void **state);                                                                      \
	__attribute__((constructor)) static void register_##name(void)                                       \
	{                                                                                                    \
		static struct test_case self = {                                                             \
			.unit = cmocka_unit_test_setup_teardown(name, set_up, tear_down), .line = __LINE__   \
		};                                                                                           \
		test_register(&self);                                                                        \
	}                                                                                                    \
	static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_DEFINE(name, NULL, NULL, no_state)
#define TEST_WITH(name, set_up, tear_down) TEST_DEFINE(name, set_up, tear_down, state)

struct test_group {
	CMFixtureFunction set_up, tear_down;
};

extern const struct test_group test_group;

#define TEST_GROUP(up, down) const struct test_group test_group = { .set_up = up, .tear_down = down }

/* A program that learns some of its cases when it starts defines this, and calls test_add() for each. */
void test_more_cases(void);

/* Adds a case behind all others. `name` and `state` must stay valid. */
void test_add(const char *name, CMUnitTestFunction run, void *state);

#endif
