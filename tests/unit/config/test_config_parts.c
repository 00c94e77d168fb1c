/* scheduler/config: admins, tenants, notices and learning, key by key. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/support/test.h"
#include "tests/unit/config/config_text.h"

/* ---- tenants ---- */

struct groups { /* who is in which group, and how often that was asked */
	uid_t uid;
	gid_t gid[2];
	int asked;
};

static bool in_group(void *owner, uid_t uid, gid_t gid)
{
	struct groups *g = owner;

	g->asked++;
	return uid == g->uid && (gid == g->gid[0] || gid == g->gid[1]);
}

TEST(test_without_tenants_everybody_is_their_own)
{
	struct config *c = must("{}");
	struct groups g = { .uid = 5 };

	assert_int_equal(config_tenant_of(c, 0, in_group, &g), -1);
	assert_int_equal(config_tenant_of(c, 5, in_group, &g), -1);
	assert_int_equal(g.asked, 0);
	config_free(c);
}

TEST(test_a_user_goes_before_a_group_and_the_first_group_before_the_second)
{
	struct config *c = must("{\"tenants\":{\"a\":{\"groups\":[10]},\"b\":{\"groups\":[20,30]},"
				"\"c\":{\"users\":[7,8]}}}");
	struct groups g = { .uid = 7, .gid = { 10, 30 } };

	assert_int_equal(config_tenant_of(c, 7, in_group, &g), 2);
	assert_int_equal(g.asked, 0); /* named: no group is looked at */
	g.uid = 9;
	assert_int_equal(config_tenant_of(c, 9, in_group, &g), 0);
	g.gid[0] = 99;
	assert_int_equal(config_tenant_of(c, 9, in_group, &g), 1);
	assert_int_equal(config_tenant_of(c, 9, NULL, NULL), -1);
	assert_int_equal(config_tenant_of(c, 6, in_group, &g), -1);
	assert_int_equal(config_tenant_find(c, "b"), 1);
	assert_int_equal(config_tenant_find(c, "d"), -1);
	config_free(c);
}

TEST(test_everybody_else_is_in_the_default_tenant)
{
	struct config *c =
		must("{\"default_tenant\":\"rest\",\"tenants\":{\"a\":{\"users\":[7]},\"rest\":{}}}");

	assert_int_equal(config_tenant_of(c, 7, NULL, NULL), 0);
	assert_int_equal(config_tenant_of(c, 8, NULL, NULL), 1);
	config_free(c);
	refuses("{\"default_tenant\":\"rset\",\"tenants\":{\"rest\":{}}}",
		"c.json: default_tenant: ", "did you mean 'rest'?");
	refuses("{\"default_tenant\":\"x\"}", "c.json: default_tenant: ", "there is no tenant 'x'");
}

TEST(test_mistakes_in_tenants_have_a_place)
{
	struct strbuf text = { 0 };

	refuses("{\"tenants\":[]}", "c.json: tenants: ", "object");
	refuses("{\"tenants\":{\"A\":{}}}", "c.json: tenants.A: ", "name of a tenant");
	refuses("{\"tenants\":{\"uid:5\":{}}}", "c.json: tenants.uid:5: ", "name of a tenant");
	refuses("{\"tenants\":{\"a\":null}}", "c.json: tenants.a: ", "object");
	refuses("{\"tenants\":{\"a\":{\"user\":[]}}}", "c.json: tenants.a: ", "did you mean 'users'?");
	refuses("{\"tenants\":{\"a\":{\"users\":[\"nobody-here\"]}}}",
		"c.json: tenants.a.users[0]: ", "there is no user");
	refuses("{\"tenants\":{\"a\":{\"groups\":[1,-1]}}}",
		"c.json: tenants.a.groups[1]: ", "number of a group");
	refuses("{\"tenants\":{\"a\":{\"weight\":0}}}",
		"c.json: tenants.a.weight: ", "must be a number from");
	refuses("{\"tenants\":{\"a\":{\"weight\":1e7}}}",
		"c.json: tenants.a.weight: ", "must be a number from");
	refuses("{\"tenants\":{\"a\":{\"max_queued\":-1}}}",
		"c.json: tenants.a.max_queued: ", "whole number");
	refuses("{\"tenants\":{\"a\":{\"max_cpus\":1.5}}}", "c.json: tenants.a.max_cpus: ", "whole number");
	refuses("{\"tenants\":{\"a\":{\"on_late\":\"notfy\"}}}", "c.json: tenants.a.on_late: ", "'notify'");
	refuses("{\"on_late\":\"kill\"}", "c.json: on_late: ", "nothing, notify, stop_best_effort");
	refuses("{\"tenants\":{\"a\":{\"users\":[5]},\"b\":{\"users\":[4,5]}}}", "c.json: tenants.",
		"named twice");
	refuses("{\"tenants\":{\"a\":{\"users\":[5,5]}}}", "c.json: tenants.a: ", "named twice");
	refuses("{\"tenants\":{\"a\":{\"groups\":[5]},\"b\":{\"groups\":[5]}}}", "c.json: tenants.",
		"the group");
	/* a user and a group of the same number are not the same */
	config_free(must("{\"tenants\":{\"a\":{\"groups\":[5]},\"b\":{\"users\":[5]}}}"));
	strbuf_puts(&text, "{\"tenants\":{\"t\":{}");
	for (int i = 0; i < CONFIG_MAX_TENANTS; i++)
		strbuf_printf(&text, ",\"t%d\":{}", i);
	strbuf_puts(&text, "}}");
	refuses(text.text, "c.json: tenants: ", "at most 1024");
	strbuf_release(&text);
}

/* ---- notify ---- */

TEST(test_notify_is_filled_in_word_by_word)
{
	struct config *c =
		must("{\"notify\":[\"mail\",\"-s\",\"{event}: {job} ({type}, {tenant})\",\"{{{slo_s}}\","
		     "\"{late_s}\"]}");
	struct config_notice n = { .job = 42,
				   .type = "digits",
				   .tenant = "vision",
				   .event = "late",
				   .slo_s = 90.0,
				   .late_s = 12.34567 };
	char **argv = NULL;

	assert_int_equal(config_notify_argv(c, &n, &argv, NULL), 0);
	assert_string_equal(argv[0], "mail");
	assert_string_equal(argv[1], "-s");
	assert_string_equal(argv[2], "late: 42 (digits, vision)");
	assert_string_equal(argv[3], "{90.000}");
	assert_string_equal(argv[4], "12.346");
	assert_null(argv[5]);
	argv_free(argv);
	/* what is not known leaves the words where they are: a script counts on their number */
	n = (struct config_notice){ .job = 7, .slo_s = NAN, .late_s = NAN };
	assert_int_equal(config_notify_argv(c, &n, &argv, NULL), 0);
	assert_string_equal(argv[2], ": 7 (, )");
	assert_string_equal(argv[4], "");
	assert_null(argv[5]);
	argv_free(argv);
	config_free(c);
}

TEST(test_without_notify_there_is_nothing_to_run)
{
	static const char *const text[] = { "{}", "{\"notify\":null}", "{\"notify\":[]}" };
	char **argv = NULL;

	for (size_t i = 0; i < 3; i++) {
		struct config *c = must(text[i]);

		assert_int_equal(config_notify_argv(c, &(struct config_notice){ .job = 1 }, &argv, NULL),
				 -ERR_NOTFOUND);
		config_free(c);
	}
}

TEST(test_mistakes_in_notify_have_a_place)
{
	refuses("{\"notify\":\"mail\"}", "c.json: notify: ", "list");
	refuses("{\"notify\":[\"mail\",1]}", "c.json: notify[1]: ", "string");
	refuses("{\"notify\":[\"{job}\"]}", "c.json: notify[0]: ", "is the program");
	refuses("{\"notify\":[\"\"]}", "c.json: notify[0]: ", "empty");
	refuses("{\"notify\":[\"mail\",\"{jbo}\"]}", "c.json: notify[1]: ", "did you mean {job}?");
	refuses("{\"notify\":[\"mail\",\"{batches}\"]}", "c.json: notify[1]: ", "job, type, tenant");
	refuses("{\"notify\":[\"mail\",\"{\"]}", "c.json: notify[1]: ", "{{");
}

/* ---- learning ---- */

TEST(test_ranges_of_learning_are_checked)
{
	static const struct {
		const char *key, *low, *high, *below, *above;
	} range[] = {
		{ "retrain_after", "0", "1000000", "-1", "1000001" },
		{ "min_observations", "2", "1000000", "1", "1000001" },
		{ "test_jobs", "5", "100000", "4", "100001" },
		{ "significance", "1e-6", "0.5", "0", "0.51" },
		{ "keep_versions", "1", "1000", "0", "1001" },
		{ "promise_after", "0", "1000000", "-1", "1000001" },
		{ "adapt", "true", "false", "1", "\"no\"" },
	};

	for (size_t i = 0; i < sizeof range / sizeof range[0]; i++) {
		const char *value[] = { range[i].low, range[i].high, range[i].below, range[i].above };

		for (size_t k = 0; k < 4; k++) {
			char text[128], start[64];

			snprintf(start, sizeof start, "c.json: learning.%s: ", range[i].key);
			snprintf(text, sizeof text, "{\"learning\":{\"%s\":%s}}", range[i].key, value[k]);
			if (k < 2)
				config_free(must(text));
			else
				refuses(text, start, "must be");
		}
	}
	refuses("{\"learning\":{\"tables\":1}}", "c.json: learning: ", "did you mean 'table'?");
	refuses("{\"learning\":{\"curves\":\"c.csv\"}}", "c.json: learning.curves: ", "belong to a table");
}

TEST(test_a_test_that_can_never_succeed_is_refused)
{
	/* 1/2^5 = 0.03125, 1/2^7 = 0.0078125 */
	config_free(must("{\"learning\":{\"test_jobs\":5,\"significance\":0.032}}"));
	refuses("{\"learning\":{\"test_jobs\":5,\"significance\":0.03125}}",
		"c.json: learning.test_jobs: ", "take 6 or more");
	refuses("{\"learning\":{\"test_jobs\":6,\"significance\":0.01}}",
		"c.json: learning.test_jobs: ", "take 7 or more");
	config_free(must("{\"learning\":{\"test_jobs\":7,\"significance\":0.01}}"));
}

TEST(test_running_out_of_memory_for_a_notice_is_told)
{
	struct config *c = must("{\"notify\":[\"mail\",\"{job}{event}\"]}");
	bool failed = true;

	for (unsigned long k = 1; failed; k++) {
		struct config_notice n = { .job = 1, .event = "late" };
		char **argv = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = config_notify_argv(c, &n, &argv, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		argv_free(argv);
	}
	config_free(c);
}
