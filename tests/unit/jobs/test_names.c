/* scheduler/jobs/names and tenants: every name is itself, however many there are. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/jobs/tenants.h"
#include "tests/support/test.h"

#define MANY 5000 /* once the table had room for 1,024 */

static const char *nth(char *text, size_t size, const char *what, unsigned i)
{
	snprintf(text, size, "%s %u", what, i);
	return text;
}

TEST(test_names_stay_apart_however_many_there_are)
{
	struct names t = { 0 };
	const char *kept[MANY];
	char text[32];

	for (unsigned i = 0; i < MANY; i++) {
		kept[i] = names_keep(&t, nth(text, sizeof text, "model", i));
		assert_string_equal(kept[i], text);
	}
	for (unsigned i = 0; i < MANY; i++) {
		assert_ptr_equal(names_keep(&t, nth(text, sizeof text, "model", i)), kept[i]);
		assert_int_equal(names_number(&t, text), i);
	}
	assert_int_equal(t.n, MANY);
	assert_null(names_keep(&t, NULL));
	assert_int_equal(names_number(&t, NULL), -1);
	names_release(&t);
}

TEST(test_names_refuse_a_name_too_many_and_keep_those_they_have)
{
	struct names t = { 0 };
	char text[32];

	for (unsigned i = 0; i < NAMES_MAX; i++)
		assert_int_equal(names_number(&t, nth(text, sizeof text, "n", i)), i);
	assert_null(names_keep(&t, "one more"));
	assert_string_equal(names_keep(&t, "n 7"), "n 7");
	assert_int_equal(t.n, NAMES_MAX);
	names_release(&t);
}

TEST(test_names_survive_any_failed_allocation)
{
	for (unsigned long k = 1; k < 30; k++) {
		struct names t = { 0 };
		char text[32];

		mem_fail_at(k, false);
		for (unsigned i = 0; i < 100; i++) {
			const char *name = names_keep(&t, nth(text, sizeof text, "n", i));

			if (name)
				assert_string_equal(name, text);
		}
		mem_fail_at(0, false);
		assert_int_equal(t.n, k <= 105 ? 99 : 100);
		names_release(&t);
	}
}

/* ---- tenants ---- */

static struct sched *scheduler(void)
{
	struct sched_params p = { .machine = { .cores = 4.0, .slots = 4, .memory_mb = 1e6 }, .max_jobs = 4 };
	struct sched *s;

	assert_int_equal(policy_parse("fixed:32", &p.policy, NULL), 0);
	assert_int_equal(sched_new(&p, &s, NULL), 0);
	return s;
}

TEST(test_tenants_keep_one_number_each_beyond_a_thousand)
{
	struct sched *s = scheduler();
	struct config *c;
	struct tenants t = { 0 };
	char text[32];
	uint32_t number;

	assert_int_equal(config_default(&c, NULL), 0);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 1500; i++) {
			assert_int_equal(
				tenants_named(&t, c, s, 1, nth(text, sizeof text, "uid", i), &number, NULL),
				0);
			assert_int_equal(number, i);
			assert_string_equal(tenants_name(&t, number), text);
		}
	}
	assert_int_equal(t.n, 1500);
	assert_string_equal(tenants_name(&t, 1500), "?");
	tenants_free(&t);
	config_free(c);
	sched_free(s);
}

TEST(test_tenants_beyond_what_the_scheduler_holds_are_refused_by_name)
{
	struct sched *s = scheduler();
	struct config *c;
	struct tenants t = { 0 };
	struct err err = { 0 };
	char text[32];
	uint32_t number;

	assert_int_equal(config_default(&c, NULL), 0);
	for (unsigned i = 0; i < SCHED_MAX_TENANTS; i++)
		assert_int_equal(names_number(&t.names, nth(text, sizeof text, "uid", i)), i);
	assert_int_equal(tenants_named(&t, c, s, 1, "uid 65535", &number, NULL), 0);
	assert_int_equal(number, 65535);
	assert_int_equal(tenants_named(&t, c, s, 1, "one more", &number, &err), -ERR_NOMEM);
	assert_string_equal(err.text, "no room for another tenant");
	assert_int_equal(tenants_named(&t, c, s, 1, "uid 3", &number, NULL), 0);
	assert_int_equal(number, 3);
	tenants_free(&t);
	config_free(c);
	sched_free(s);
}

/* A configuration whose tenant `vision` has these numbers. */
static struct config *with_tenant(double weight, unsigned max_cpus)
{
	struct config *c;
	struct json *v;
	char text[128];

	snprintf(text, sizeof text,
		 "{\"tenants\":{\"vision\":{\"users\":[1],\"weight\":%g,\"max_cpus\":%u}}}", weight,
		 max_cpus);
	assert_int_equal(json_parse("test", text, strlen(text), &v, NULL), 0);
	assert_int_equal(config_from_json("test", v, &c, NULL), 0);
	json_free(v);
	return c;
}

TEST(test_tenants_are_as_the_configuration_says_also_after_a_reload)
{
	struct sched *s = scheduler();
	struct config *before = with_tenant(2.5, 3), *after = with_tenant(1.5, 2);
	struct tenants t = { 0 };
	uint32_t vision, other;

	assert_int_equal(tenants_named(&t, before, s, 1, "uid 9", &other, NULL), 0);
	assert_int_equal(tenants_named(&t, before, s, 1, "vision", &vision, NULL), 0);
	assert_true(t.tenant[vision].weight == 2.5 && t.tenant[vision].max_cpus == 3);
	assert_true(t.tenant[other].weight == 1.0 && t.tenant[other].max_cpus == 0);
	assert_int_equal(tenants_refresh(&t, after, s, 2, NULL), 0);
	assert_true(t.tenant[vision].weight == 1.5 && t.tenant[vision].max_cpus == 2);
	tenants_free(&t);
	config_free(before);
	config_free(after);
	sched_free(s);
}
