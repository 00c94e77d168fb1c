/* Names of policies on the command line of a simulation. */
#include <stdio.h>

#include <string.h>

#include "sim/replay/policies.h"
#include "tests/support/test.h"

TEST(test_list_of_policies_is_read_in_its_order)
{
	struct sim_policy p[SIM_MAX_POLICIES];
	struct err err = { 0 };
	size_t n;

	assert_int_equal(sim_policies_parse("courier,fixed:96,greedy-oracle", p, SIM_MAX_POLICIES, &n, &err),
			 0);
	assert_int_equal(n, 3);
	assert_string_equal(p[0].choice.policy->name, "courier");
	assert_string_equal(p[1].name, "fixed:96");
	assert_true(p[1].choice.batch == 96.0);
	assert_true(p[2].oracle && !p[0].oracle);
}

TEST(test_old_name_of_the_oracle_is_the_new_one)
{
	struct sim_policy p[SIM_MAX_POLICIES];
	struct err err = { 0 };
	size_t n;

	assert_int_equal(sim_policies_parse("naive,oracle", p, SIM_MAX_POLICIES, &n, &err), 0);
	assert_string_equal(p[1].name, "greedy-oracle");
	assert_true(p[1].oracle && p[1].old_name && !p[0].old_name);
	assert_int_equal(sim_policies_parse("greedy-oracle", p, SIM_MAX_POLICIES, &n, &err), 0);
	assert_true(p[0].oracle && !p[0].old_name);
	assert_int_equal(sim_policies_parse("priced-oracle,greedy-oracle", p, SIM_MAX_POLICIES, &n, &err), 0);
	assert_true(p[0].oracle && p[0].priced && p[1].oracle && !p[1].priced);
	assert_int_equal(sim_policies_parse("oracle,greedy-oracle", p, SIM_MAX_POLICIES, &n, &err), -ERR_ARG);
}

TEST(test_settings_of_a_policy_stay_with_it)
{
	struct sim_policy p[SIM_MAX_POLICIES];
	struct err err = { 0 };
	size_t n;

	assert_int_equal(sim_policies_parse("postrider:model=forest,bounds=no,price=no,courier,"
					    "postrider:chance=0.25,fixed:64,greedy-oracle",
					    p, SIM_MAX_POLICIES, &n, &err),
			 0);
	assert_int_equal(n, 5);
	assert_string_equal(p[0].name, "postrider:model=forest,bounds=no,price=no");
	assert_int_equal(p[0].choice.without, LAYER_BOUNDS | LAYER_PRICE);
	assert_string_equal(p[0].choice.model, "forest");
	assert_string_equal(p[1].name, "courier");
	assert_true(p[2].choice.chance == 0.25 && p[3].choice.batch == 64.0 && p[4].oracle);
	assert_int_equal(sim_policies_parse("courier,bounds=no", p, SIM_MAX_POLICIES, &n, &err), -ERR_ARG);
}

TEST(test_a_policy_without_all_of_its_layers_has_a_name)
{
	struct sim_policy p[SIM_MAX_POLICIES];
	char names[LAYERS_TEXT], text[SIM_POLICY_NAME];
	size_t n;

	snprintf(text, sizeof text, "postrider:chance=0.25,without=%s", layers_print(LAYERS_ALL, "+", names));
	assert_int_equal(sim_policies_parse(text, p, SIM_MAX_POLICIES, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(p[0].choice.without, LAYERS_ALL);
	assert_string_equal(p[0].name, text);
}

TEST(test_unknown_policy_is_refused_with_those_there_are)
{
	struct sim_policy p[SIM_MAX_POLICIES];
	struct err err = { 0 };
	size_t n = 77;

	assert_int_equal(sim_policies_parse("courier,curier", p, SIM_MAX_POLICIES, &n, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "did you mean 'courier'"));
	assert_non_null(strstr(err.text, "oracle"));
	assert_int_equal(n, 77);
}

TEST(test_same_policy_twice_is_refused)
{
	struct sim_policy p[SIM_MAX_POLICIES];
	struct err err = { 0 };
	size_t n;

	assert_int_equal(sim_policies_parse("naive,naive", p, SIM_MAX_POLICIES, &n, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "twice"));
	assert_int_equal(sim_policies_parse("fixed:64,fixed:128", p, SIM_MAX_POLICIES, &n, &err), 0);
}

TEST(test_empty_and_endless_names_are_refused)
{
	struct sim_policy p[2];
	struct err err = { 0 };
	char longest[200];
	size_t n;

	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(sim_policies_parse("", p, 2, &n, &err), -ERR_ARG);
	assert_int_equal(sim_policies_parse("naive,", p, 2, &n, &err), -ERR_ARG);
	assert_int_equal(sim_policies_parse(longest, p, 2, &n, &err), -ERR_ARG);
	assert_int_equal(sim_policies_parse("naive,greedy-oracle,courier", p, 2, &n, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "at most 2"));
}
