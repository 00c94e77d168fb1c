/* The main() of every program of tests:
 *
 *   test_x           runs all cases
 *   test_x PART      runs the cases with PART in their name
 *   test_x --list    writes the names of all cases, and runs none */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

/* Weak: what a program defines itself takes their place. */
__attribute__((weak)) const struct test_group test_group = { NULL, NULL };

__attribute__((weak)) void test_more_cases(void)
{
}

static struct test_case *first;
static size_t n_cases;

/* The line decides: a compiler may run constructors in any order, and gcc -flto runs them backwards. */
void test_register(struct test_case *c)
{
	struct test_case **at = &first;

	while (*at && (*at)->line <= c->line)
		at = &(*at)->next;
	c->next = *at;
	*at = c;
	n_cases++;
}

/* Memory for n elements. It comes from calloc() itself: tests make mem_calloc() fail. */
static void *room(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return p;
}

void test_add(const char *name, CMUnitTestFunction run, void *state)
{
	struct test_case *c = room(1, sizeof *c);

	c->unit = (struct CMUnitTest){ .name = name, .test_func = run, .initial_state = state };
	c->line = INT_MAX;
	test_register(c);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *part = argc > 1 ? argv[1] : "";
	struct CMUnitTest *unit;
	size_t n = 0;
	int failed;

	test_more_cases();
	if (!strcmp(part, "--list")) {
		for (const struct test_case *c = first; c; c = c->next)
			puts(c->unit.name);
		return 0;
	}
	unit = room(n_cases, sizeof *unit);
	for (const struct test_case *c = first; c; c = c->next) {
		if (strstr(c->unit.name, part))
			unit[n++] = c->unit;
	}
	if (!n) {
		fprintf(stderr, "no case has \"%s\" in its name\n", part);
		free(unit);
		return 1;
	}
	failed = _cmocka_run_group_tests(slash ? slash + 1 : argv[0], unit, n, test_group.set_up,
					 test_group.tear_down);
	free(unit);
	return failed;
}
