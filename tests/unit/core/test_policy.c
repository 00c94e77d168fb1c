/* The table of policies: names, arguments, which model each wants, and the schema of that model. */
#include <stdio.h>

#include "common/mem.h"
#include "tests/support/test.h"
#include "tests/unit/core/hand_model.h"

TEST(test_every_policy_is_found_by_its_name)
{
	struct policy_choice c;
	char text[64];

	for (size_t i = 0; policy_all[i]; i++) {
		const struct policy *p = policy_all[i];

		snprintf(text, sizeof text, "%s%s", p->name, p->takes_batch ? ":96.5" : "");
		assert_int_equal(policy_parse(text, &c, NULL), 0);
		assert_ptr_equal(c.policy, p);
		assert_true(p->takes_batch ? c.batch == 96.5 : isnan(c.batch));
		assert_non_null(strstr(policy_names(), p->name));
		assert_true(strlen(p->title) > 10);
		if (p->predictor)
			assert_non_null(predictor_find(p->predictor));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(p->name, policy_all[k]->name);
	}
	assert_non_null(strstr(policy_names(), "fixed:B"));
}

TEST(test_a_policy_may_have_a_chance)
{
	assert_true(hand_policy("postrider").chance == 0.0);
	assert_true(hand_policy("postrider:chance=0.5").chance == 0.5);
	assert_string_equal(hand_policy("courier:chance=0.25").policy->name, "courier");
	assert_true(hand_policy("fixed:128").chance == 0.0 && hand_policy("fixed:128").batch == 128.0);
}

TEST(test_parts_of_a_policy_can_be_switched_off)
{
	struct policy_choice c = hand_policy("postrider:model=forest,bounds=no,look_ahead=no,price=no");
	struct policy p = policy_resolve(&c), whole;

	assert_string_equal(p.predictor, "forest");
	assert_null(p.or_predictor);
	assert_false(p.bounds || p.looks_ahead || p.priced);
	c = hand_policy("postrider");
	whole = policy_resolve(&c);
	assert_true(whole.bounds && whole.looks_ahead && whole.priced);
	assert_string_equal(whole.predictor, "hybrid");
	c = hand_policy("greedy");
	assert_false(policy_resolve(&c).priced);
	assert_true(policy_resolve(&c).bounds);
	c = hand_policy("postrider:price=0.002,bounds=yes");
	assert_true(c.price == 0.002 && policy_resolve(&c).bounds);
}

TEST(test_bad_policies_are_refused_with_a_hint)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "curier", "did you mean 'courier'?" },
		{ "", "there are: courier" },
		{ "fixed", "fixed:128" },
		{ "fixed:", "not a number above 0" },
		{ "fixed:-1", "'-1'" },
		{ "fixed:0", "above 0" },
		{ "fixed:nan", "not a number" },
		{ "fixed:1e99", "not a number above 0" },
		{ "courier:3", "'3' is not a setting like chance=0.5" },
		{ "courier:price=no", "courier has no setting 'price'; it has chance, model" },
		{ "greedy:price=no", "it has chance, model, bounds, look_ahead" },
		{ "postrider:price=-1", "'-1' is neither yes, no, nor a price above 0" },
		{ "postrider:bounds=2", "'2' is neither yes nor no (bounds)" },
		{ "postrider:bounds=no,", "'' is not a setting" },
		{ "postrider:model=forrest", "'forrest' is not the name of a model" },
		{ "postrider:chance=1", "the chance '1' is neither no nor a number between 0 and 1" },
		{ "postrider:chance=", "the chance '' is neither" },
		{ "naive:chance=0.5", "naive has no setting 'chance'; it has none" },
		{ "fixed:chance=0.5", "the batch 'chance=0.5' is not" },
		{ "post\trider:", "no policy 'post\\x09rider'" },
		{ "a name far longer than any policy has, and longer than the buffers that show it, too",
		  "a name far" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct policy_choice c = { 0 };
		struct err err = { 0 };

		assert_int_equal(policy_parse(bad[i].text, &c, &err), -ERR_ARG);
		assert_null(c.policy);
		if (!strstr(err.text, bad[i].says))
			fail_msg("'%s': %s", bad[i].text, err.text);
	}
}

TEST(test_a_policy_accepts_what_it_wants)
{
	struct model *m = hand_model(&hand_hybrid);
	struct predictor_ops boost = hand_hybrid;
	struct policy_choice c;
	struct err err = { 0 };

	settings_init(&m->time.predictor.settings, predictor_find("hybrid")->spec);
	for (size_t i = 0; policy_all[i]; i++) {
		c = (struct policy_choice){ .policy = policy_all[i], .batch = 1 };
		if (!policy_all[i]->predictor ||
		    (!strcmp(policy_all[i]->predictor, "hybrid") && !policy_all[i]->open_queue))
			assert_int_equal(policy_accepts(&c, m, NULL), 0);
		else
			assert_int_equal(policy_accepts(&c, m, NULL), -ERR_ARG);
		assert_int_equal(policy_accepts(&c, NULL, NULL), policy_all[i]->predictor ? -ERR_ARG : 0);
	}
	c = hand_policy("courier");
	policy_accepts(&c, m, &err);
	assert_non_null(strstr(err.text, "postrider train DATA.csv --policy courier"));
	assert_non_null(strstr(err.text, "wants the model forest of response time, and this one is hybrid"));
	boost.name = "boost";
	m->time.predictor.ops = &boost;
	c = hand_policy("boost-full");
	assert_int_equal(policy_accepts(&c, m, NULL), 0);
	c = hand_policy("boost"); /* this one has njobs and processes */
	assert_int_equal(policy_accepts(&c, m, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "nothing of the load"));
	m->features->n = 3;
	m->features->feature[HAND_NJOBS].source = m->features->feature[HAND_PROCESSES].source;
	assert_int_equal(policy_accepts(&c, m, NULL), -ERR_ARG); /* processes alone are the load, too */
	m->features->n = 2; /* the network and the cpus are left */
	assert_int_equal(policy_accepts(&c, m, NULL), 0);
	m->features->n = HAND_FEATURES;
	model_free(m);
}

static struct schema *schema_of(const char *text)
{
	struct json *v;
	struct schema *s;
	struct err err = { 0 };

	if (json_parse("test", text, strlen(text), &v, &err) || schema_from_json("test", v, &s, &err))
		fail_msg("%s", err.text);
	json_free(v);
	return s;
}

static bool ignores(const struct schema *s, const char *name)
{
	for (size_t i = 0; i < s->n_ignores; i++)
		if (!strcmp(s->ignore[i], name))
			return true;
	return false;
}

static const char crowded[] =
	"{\"columns\":[{\"name\":\"tenants\",\"kind\":\"number\",\"alias\":[\"others\"]},"
	"{\"name\":\"batch\",\"kind\":\"number\"},{\"name\":\"cpus\",\"kind\":\"number\"},"
	"{\"name\":\"njobs\",\"kind\":\"number\"},{\"name\":\"epochs\",\"kind\":\"number\"}],"
	"\"derived\":[{\"name\":\"all\",\"product\":[\"tenants\",\"cpus\"]},{\"name\":\"work\",\"product\":["
	"\"epochs\",\"batch\"]},"
	"{\"name\":\"log_all\",\"log\":\"all\"},{\"name\":\"log_work\",\"log\":\"work\"}],"
	"\"decision\":\"batch\",\"targets\":{\"time\":\"t\"},\"roles\":{\"njobs\":\"tenants\",\"processes\":"
	"\"all\"}}";

TEST(test_the_load_and_all_that_is_made_of_it_leaves_the_schema)
{
	struct schema *s = schema_of(crowded), *made;
	const double number[] = { 8, 2, 5, 40, NAN }; /* batch, cpus, epochs, work, its logarithm */

	assert_int_equal(policy_schema(hand_policy("boost").policy, s, &made, NULL), 0);
	assert_int_equal(made->n_columns, 3);
	assert_int_equal(made->n_derived, 2);
	assert_int_equal(schema_role(made, ROLE_NJOBS), -1); /* the other column of that name went too */
	assert_int_equal(schema_role(made, ROLE_PROCESSES), -1);
	assert_int_equal(schema_find_any(made, "log_work"), 4);
	assert_true(schema_derive(&made->derived[0], number) == 40); /* the sources moved along */
	assert_true(schema_derive(&made->derived[1], number) == log(40));
	assert_true(ignores(made, "tenants") && ignores(made, "others") && ignores(made, "njobs") &&
		    ignores(made, "all") && ignores(made, "log_all") && !ignores(made, "work"));
	assert_int_equal(s->n_columns, 5); /* the given one stays as it was */
	schema_free(made);
	assert_int_equal(policy_schema(hand_policy("courier").policy, s, &made, NULL), 0);
	assert_int_equal(made->n_columns, 5);
	assert_int_equal(made->n_derived, 4);
	schema_free(made);
	schema_free(s);
}

TEST(test_a_schema_that_decides_on_the_load_is_refused)
{
	struct schema
		*s = schema_of(
			"{\"columns\":[{\"name\":\"njobs\",\"kind\":\"number\"}],\"decision\":\"njobs\","
			"\"targets\":{\"time\":\"t\"}}"),
		*made;

	assert_int_equal(policy_schema(hand_policy("boost").policy, s, &made, NULL), -ERR_ARG);
	schema_free(s);
}

TEST(test_a_schema_without_memory_is_an_error_and_no_leak)
{
	struct schema *s = schema_of(crowded), *made;

	for (unsigned long k = 1;; k++) {
		int rc;

		mem_fail_at(k, false);
		rc = policy_schema(hand_policy("boost").policy, s, &made, NULL);
		mem_fail_at(0, false);
		if (!rc)
			break;
		assert_int_equal(rc, -ERR_NOMEM);
	}
	schema_free(made);
	schema_free(s);
}
