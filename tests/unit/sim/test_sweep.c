/* What-ifs: keys, values, ranges, and the search for the least number that will do. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/compare/capacity.h"
#include "sim/compare/sweep.h"
#include "tests/support/test.h"

/* ---- settings ---- */

TEST(test_a_setting_is_read_into_its_key)
{
	struct what_if w = { 0 };

	assert_int_equal(what_if_parse(&w, "cluster.cores=2.5", NULL), 0);
	assert_int_equal(what_if_parse(&w, "slo.scale=0.37", NULL), 0);
	assert_true(w.value[WHAT_CORES] == 2.5 && w.value[WHAT_SLO] == 0.37);
	assert_true(w.set[WHAT_CORES] && w.set[WHAT_SLO]);
	assert_false(w.set[WHAT_SLOTS] || w.set[WHAT_LOAD] || w.set[WHAT_NOISE]);
}

TEST(test_bad_settings_say_what_is_wrong)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "cluster.cores", "key=value" },     { "cluster.coers=4", "'cluster.cores'?" },
		{ "cores=4", "there are:" },          { "cluster.cores=four", "'four' is not a number" },
		{ "cluster.cores=0", "above 0" },     { "cluster.cores=-1", "above 0" },
		{ "cluster.cores=1e9", "at most" },   { "cluster.slots=2.5", "whole" },
		{ "cluster.slots=0", "from 1" },      { "slo.scale=0", "above 0" },
		{ "slo.scale=nan", "not a number" },  { "load.scale=inf", "not a number" },
		{ "noise=-0.1", "from 0" },           { "=4", "there is nothing called ''" },
		{ "cluster.cores=", "not a number" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct what_if w = { 0 };
		struct err err = { 0 };

		assert_int_equal(what_if_parse(&w, bad[i].text, &err), -ERR_ARG);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: no '%s' in: %s", bad[i].text, bad[i].says, err.text);
		for (int k = 0; k < WHAT_KEYS; k++)
			assert_false(w.set[k]);
	}
}

TEST(test_a_key_can_be_set_once)
{
	struct what_if w = { 0 };
	struct err err = { 0 };

	assert_int_equal(what_if_parse(&w, "noise=0", NULL), 0);
	assert_int_equal(what_if_parse(&w, "noise=0.1", &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "twice"));
	assert_true(w.value[WHAT_NOISE] == 0.0);
}

TEST(test_settings_change_what_they_name_and_nothing_else)
{
	const struct cluster given = { .cores = 2, .slots = 5, .nodes = 1, .memory_mb = INFINITY };
	struct cluster m = given;
	struct what_if w = { 0 };

	assert_int_equal(what_if_machine(&w, &m, NULL), 0);
	assert_true(m.cores == 2.0 && m.slots == 5 && m.nodes == 1 && isinf(m.memory_mb));
	assert_true(what_if_or(&w, WHAT_LOAD, 0.7) == 0.7);
	what_if_set(&w, WHAT_CORES, 4, NULL);
	what_if_set(&w, WHAT_LOAD, 1.2, NULL);
	assert_int_equal(what_if_machine(&w, &m, NULL), 0);
	assert_true(m.cores == 4.0 && m.slots == 10 && m.nodes == 1); /* slots by their ratio */
	assert_true(what_if_or(&w, WHAT_LOAD, 0.7) == 1.2 && what_if_or(&w, WHAT_NOISE, 0.2) == 0.2);
	what_if_set(&w, WHAT_SLOTS, 7, NULL);
	what_if_set(&w, WHAT_MEMORY, 2000, NULL);
	m = given;
	assert_int_equal(what_if_machine(&w, &m, NULL), 0);
	assert_true(m.cores == 4.0 && m.slots == 7 &&
		    m.memory_mb == 2000); /* set ones stay as they are set */
}

/* ---- sweeps ---- */

static void values_are(const char *text, const double *value, size_t n)
{
	struct sweep s;
	struct err err = { 0 };

	if (sweep_parse(text, &s, &err))
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(s.n, n);
	for (size_t i = 0; i < n; i++)
		if (fabs(s.value[i] - value[i]) > 1e-12)
			fail_msg("%s: value %zu is %g, not %g", text, i, s.value[i], value[i]);
}

TEST(test_a_range_includes_its_ends)
{
	values_are("slo.scale=0.5..2", (double[]){ 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2 }, 7);
	values_are("slo.scale=0.5..2:3", (double[]){ 0.5, 1.25, 2 }, 3);
	values_are("load.scale=1..1.5:2", (double[]){ 1, 1.5 }, 2);
}

TEST(test_a_range_of_whole_numbers_has_no_fractions_and_no_repeats)
{
	values_are("cluster.slots=2..5", (double[]){ 2, 3, 4, 5 }, 4); /* 2, 2.5, 3, 3.5, ...: to the even */
	values_are("cluster.cores=1..3:5", (double[]){ 1, 2, 3 }, 3);
	values_are("cluster.cores=0.5..1.5:3", (double[]){ 0.5, 1, 1.5 }, 3); /* the ends say so */
}

TEST(test_a_list_is_taken_as_given)
{
	values_are("cluster.cores=16,2,4", (double[]){ 16, 2, 4 }, 3);
	values_are("noise=0", (double[]){ 0 }, 1);
}

TEST(test_bad_sweeps_say_what_is_wrong)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "slo.scale", "key=value" },       { "slo.sclae=1..2", "'slo.scale'?" },
		{ "slo.scale=2..1", "rise" },       { "slo.scale=1..1", "rise" },
		{ "slo.scale=1..x", "'x'" },        { "slo.scale=..2", "''" },
		{ "slo.scale=1..2:1", "2 to" },     { "slo.scale=1..2:101", "2 to" },
		{ "slo.scale=1..2:two", "'two'" },  { "slo.scale=1,2,1", "twice" },
		{ "slo.scale=1,,2", "''" },         { "slo.scale=", "''" },
		{ "cluster.slots=1,2.5", "whole" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct sweep s = { .n = 77 };
		struct err err = { 0 };

		assert_int_equal(sweep_parse(bad[i].text, &s, &err), -ERR_ARG);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: no '%s' in: %s", bad[i].text, bad[i].says, err.text);
		assert_int_equal(s.n, 77); /* untouched */
	}
}

TEST(test_a_list_may_be_as_long_as_the_limit_and_no_longer)
{
	char text[1024] = "noise=";
	struct sweep s;

	for (int i = 0; i < SWEEP_MAX_POINTS; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d.%02d", i ? "," : "", i / 100,
			 i % 100);
	assert_int_equal(sweep_parse(text, &s, NULL), 0);
	assert_int_equal(s.n, SWEEP_MAX_POINTS);
	strcat(text, ",1.5");
	assert_int_equal(sweep_parse(text, &s, NULL), -ERR_ARG);
}

/* ---- capacity ---- */

struct curve {
	double (*of)(double v);
	size_t calls;
	double fails_at; /* 0: never */
};

static int measure(void *owner, double value, struct interval *out, struct err *err)
{
	struct curve *c = owner;

	c->calls++;
	if (c->fails_at == value)
		return err_fail(err, ERR_FORMAT, "no world at %g", value);
	*out = (struct interval){ c->of(value), c->of(value) - 0.01, c->of(value) + 0.01 };
	return 0;
}

static double saturates(double v)
{
	return v / (v + 3.0); /* 0.9 at 27 */
}

static double falls(double v)
{
	return 1000.0 / v;
}

static double humps(double v)
{
	return v >= 40.0 && v <= 60.0 ? 0.95 : 0.5;
}

static double nothing(double v)
{
	(void)v;
	return NAN;
}

static struct capacity search(struct curve *c, double from, double to, double target, int better)
{
	struct capacity found;
	struct err err = { 0 };

	if (capacity_search(&(struct capacity_params){ .from = from,
						       .to = to,
						       .target = target,
						       .better = better,
						       .measure = measure,
						       .owner = c },
			    &found, &err))
		fail_msg("%s", err.text);
	for (size_t i = 1; i < found.n; i++)
		assert_true(found.point[i - 1].value < found.point[i].value);
	return found;
}

static bool tried(const struct capacity *c, double v, bool holds)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->point[i].value == v)
			return c->point[i].holds == holds;
	return false;
}

TEST(test_the_least_value_that_holds_is_found_with_its_neighbours)
{
	struct curve c = { .of = saturates };
	struct capacity found = search(&c, 1, 1000, 0.9, 1);

	assert_true(found.answer == 27.0);
	assert_true(tried(&found, 26, false) && tried(&found, 27, true) && tried(&found, 28, true));
	assert_true(tried(&found, 1, false) && tried(&found, 1000, true));
	assert_false(found.contradicts);
	assert_true(c.calls == found.n && c.calls <= 14); /* log2(1000), the ends, a neighbour; none twice */
}

TEST(test_less_can_be_better)
{
	struct curve c = { .of = falls };
	struct capacity found = search(&c, 1, 200, 30.0, -1);

	assert_true(found.answer == 34.0); /* 1000 / 33 is 30.3 */
	assert_false(found.contradicts);
}

TEST(test_a_range_whose_first_value_will_do_needs_no_search)
{
	struct curve c = { .of = saturates };
	struct capacity found = search(&c, 30, 90, 0.9, 1);

	assert_true(found.answer == 30.0);
	assert_int_equal(found.n, 3); /* the ends and its neighbour */
}

TEST(test_no_value_within_the_range_will_do)
{
	struct curve c = { .of = saturates };
	struct capacity found = search(&c, 1, 26, 0.9, 1);

	assert_true(isnan(found.answer));
	assert_false(found.contradicts);
	for (size_t i = 0; i < found.n; i++)
		assert_false(found.point[i].holds);
	c = (struct curve){ .of = nothing };
	found = search(&c, 1, 8, 0.9, 1);
	assert_true(isnan(found.answer)); /* not a number holds nothing */
}

TEST(test_a_range_of_one_value_is_asked_once)
{
	struct curve c = { .of = saturates };
	struct capacity found = search(&c, 27, 27, 0.9, 1);

	assert_true(found.answer == 27.0);
	assert_int_equal(c.calls, 1);
}

TEST(test_points_that_contradict_more_is_better_are_said_to)
{
	struct curve c = { .of = humps };
	struct capacity found = search(&c, 1, 100, 0.9, 1);

	assert_true(found.contradicts);
	assert_true(found.answer == 40.0); /* the rising side of the hump, though the largest value fails */
}

TEST(test_a_failed_measurement_ends_the_search)
{
	struct curve c = { .of = saturates, .fails_at = 1000 };
	struct capacity found;
	struct err err = { 0 };

	assert_int_equal(capacity_search(&(struct capacity_params){ .from = 1,
								    .to = 1000,
								    .target = 0.9,
								    .better = 1,
								    .measure = measure,
								    .owner = &c },
					 &found, &err),
			 -ERR_FORMAT);
	assert_string_equal(err.text, "no world at 1000");
}

TEST(test_a_range_that_makes_no_sense_is_refused)
{
	static const double range[][2] = {
		{ 0, 5 }, { 5, 4 }, { 1.5, 4 }, { 1, 4.5 }, { -3, 3 }, { NAN, 3 }
	};
	struct curve c = { .of = saturates };
	struct capacity found;

	for (size_t i = 0; i < sizeof range / sizeof *range; i++)
		assert_int_equal(capacity_search(&(struct capacity_params){ .from = range[i][0],
									    .to = range[i][1],
									    .target = 0.9,
									    .better = 1,
									    .measure = measure,
									    .owner = &c },
						 &found, NULL),
				 -ERR_ARG);
	assert_int_equal(c.calls, 0);
}

TEST(test_a_question_that_has_no_answer_is_refused)
{
	static const struct {
		struct capacity_question q;
		const char *says;
	} bad[] = {
		{ { .of = METRIC_UTILISATION, .by = WHAT_CORES, .target = 0.5 }, "utilisation: no target" },
		{ { .of = METRIC_REGRET, .by = WHAT_CORES, .target = 0.5 }, "oracle" },
		{ { .of = METRIC_ATTAINMENT_ALL, .by = WHAT_SLO, .target = 0.5 },
		  "whole numbers of a machine" },
		{ { .of = METRIC_ATTAINMENT_ALL, .by = WHAT_CORES, .target = 1.2 }, "120% is not between" },
		{ { .of = METRIC_ATTAINMENT_ALL, .by = WHAT_CORES, .target = 0.0 }, "0% is not between" },
	};
	const struct capacity_question good[] = {
		{ .of = METRIC_ATTAINMENT_ALL, .by = WHAT_CORES, .target = 1.0 },
		{ .of = METRIC_RESPONSE_P95, .by = WHAT_MEMORY, .target = 20.0 },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err err = { 0 };

		assert_int_equal(capacity_check(&bad[i].q, &err), -ERR_ARG);
		if (!strstr(err.text, bad[i].says))
			fail_msg("case %zu says: %s", i, err.text);
	}
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(capacity_check(&good[i], NULL), 0);
}

TEST(test_the_range_goes_to_eight_times_the_machine)
{
	const struct cluster m = { .cores = 2.5, .slots = 5, .nodes = 3, .memory_mb = INFINITY };
	const struct {
		enum what_key by;
		double to;
	} expected[] = {
		{ WHAT_CORES, 20.0 }, { WHAT_SLOTS, 40.0 }, { WHAT_NODES, 24.0 }, { WHAT_MEMORY, 8e6 }
	};
	struct capacity_question q = { .by = WHAT_CORES, .from = 30 };

	for (size_t i = 0; i < 4; i++) {
		struct capacity_question one = { .by = expected[i].by };

		assert_int_equal(capacity_fill_range(&one, &m, NULL), 0);
		assert_true(one.from == 1.0 && one.to == expected[i].to);
	}
	assert_int_equal(capacity_fill_range(&q, &m, NULL), 0);
	assert_true(q.from == 30.0 && q.to == 30.0);
	q.to = 29.0;
	assert_int_equal(capacity_fill_range(&q, &m, NULL), -ERR_ARG);
	q = (struct capacity_question){ .by = WHAT_NODES, .to = 1e9 };
	assert_int_equal(capacity_fill_range(&q, &m, NULL),
			 -ERR_ARG); /* more nodes than a cluster may have */
}
