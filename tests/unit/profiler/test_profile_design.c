/* scheduler/cli/profile_design: what a design may say, which runs it gives, and how two designs differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/template.h"
#include "scheduler/profiler/plan.h"
#include "tests/support/test.h"

#define COMMAND "\"command\":[\"t\",\"{cpus}\",\"{batch}\",\"{network}\"]"
#define FACTORS "\"factors\":{\"cpus\":[1,2,4],\"batch\":[64,512],\"network\":[\"a\",\"b\"]}"

static int from_text(struct profile_design *d, const char *text, struct err *err)
{
	struct json *v = NULL;
	int rc = json_parse("d.json", text, strlen(text), &v, err);

	profile_design_init(d);
	if (!rc)
		rc = profile_design_from_json(d, "d.json", v, err);
	if (!rc)
		rc = profile_design_check(d, err);
	json_free(v);
	return rc;
}

static void must(struct profile_design *d, const char *text)
{
	struct err err = { 0 };

	if (from_text(d, text, &err))
		fail_msg("refused: %s", err.text);
}

static void refuses(const char *text, const char *want)
{
	struct profile_design d;
	struct err err = { 0 };

	if (!from_text(&d, text, &err))
		fail_msg("accepted: %s", text);
	if (!strstr(err.text, want))
		fail_msg("'%s' is not in: %s", want, err.text);
	profile_design_release(&d);
}

static struct profile_plan plan_of(const struct profile_design *d)
{
	struct profile_plan p = { 0 };
	struct err err = { 0 };

	if (profile_plan_make(d, &p, &err))
		fail_msg("no plan: %s", err.text);
	return p;
}

TEST(test_full_design_has_every_setting_once_a_replication)
{
	struct profile_design d;
	struct profile_plan p;
	int seen[4][12] = { { 0 } };

	must(&d, "{" FACTORS ",\"replications\":3,\"seed\":5," COMMAND "}");
	p = plan_of(&d);
	assert_int_equal(p.n, 36);
	assert_int_equal(p.n_settings, 12);
	for (size_t i = 0; i < p.n; i++) {
		assert_int_equal(p.run[i].replication, i / 12 + 1); /* block by block */
		assert_int_equal(++seen[p.run[i].replication][p.run[i].setting], 1);
	}
	profile_plan_release(&p);
	profile_design_release(&d);
}

TEST(test_order_comes_from_the_seed)
{
	struct profile_design d;
	struct profile_plan a, b, c;

	must(&d, "{" FACTORS ",\"replications\":2,\"seed\":5," COMMAND "}");
	a = plan_of(&d);
	b = plan_of(&d);
	d.seed = 6;
	c = plan_of(&d);
	assert_memory_equal(a.run, b.run, a.n * sizeof *a.run);
	assert_memory_not_equal(a.run, c.run, a.n * sizeof *a.run);
	/* and the two blocks are not in the same order */
	assert_memory_not_equal(a.run[0].level, a.run[12].level, sizeof a.run[0].level);
	profile_plan_release(&a);
	profile_plan_release(&b);
	profile_plan_release(&c);
	profile_design_release(&d);
}

TEST(test_two_level_design_takes_the_extremes_in_any_order)
{
	struct profile_design d;
	struct profile_plan p;

	must(&d, "{\"factors\":{\"cpus\":[2,16,4,1],\"batch\":[512,64]},\"design\":\"2k\","
		 "\"command\":[\"t\",\"{cpus}\",\"{batch}\"]}");
	p = plan_of(&d);
	assert_int_equal(p.n, 4);
	assert_int_equal(p.n_settings, 4);
	for (size_t i = 0; i < p.n; i++) {
		const char *cpus = profile_value(&d, p.run[i].level, "cpus");

		assert_true(!strcmp(cpus, "1") || !strcmp(cpus, "16"));
	}
	profile_plan_release(&p);
	profile_design_release(&d);
}

TEST(test_latin_hypercube_uses_each_level_evenly)
{
	struct profile_design d;
	struct profile_plan p;
	int count[2][4] = { { 0 } };

	must(&d, "{\"factors\":{\"cpus\":[1,2,4,8],\"batch\":[64,128,256]},\"design\":\"lhs:6\",\"seed\":3,"
		 "\"command\":[\"t\",\"{cpus}\",\"{batch}\"]}");
	p = plan_of(&d);
	assert_int_equal(p.n, 6);
	assert_int_equal(p.n_settings, 6); /* 64 draws find one without a setting twice */
	for (size_t i = 0; i < p.n; i++) {
		count[0][p.run[i].level[0]]++;
		count[1][p.run[i].level[1]]++;
	}
	for (int l = 0; l < 4; l++)
		assert_in_range(count[0][l], 1, 2);
	for (int l = 0; l < 3; l++)
		assert_int_equal(count[1][l], 2);
	profile_plan_release(&p);
	profile_design_release(&d);
}

/* Two rows of a table that agree in everything would be one run, and train refuses their curves. */
TEST(test_a_setting_drawn_twice_has_two_replications)
{
	bool seen[4][5] = { { false } };
	struct profile_design d;
	struct profile_plan p;

	must(&d, "{\"factors\":{\"cpus\":[1,2],\"batch\":[64,128]},\"design\":\"lhs:6\",\"replications\":2,"
		 "\"command\":[\"t\",\"{cpus}\",\"{batch}\"]}");
	p = plan_of(&d);
	assert_int_equal(p.n, 12);
	assert_int_equal(p.n_settings, 4);
	for (size_t i = 0; i < p.n; i++) {
		bool *is = &seen[p.run[i].setting][p.run[i].replication];

		assert_in_range(p.run[i].replication, 1, 4);
		assert_false(*is);
		*is = true;
	}
	profile_plan_release(&p);
	profile_design_release(&d);
}

TEST(test_a_design_without_njobs_runs_one_copy)
{
	struct profile_design d;
	uint16_t level[PROFILE_MAX_FACTORS] = { 0 };

	must(&d, "{" FACTORS "," COMMAND "}");
	assert_int_equal(profile_jobs(&d, level), 1);
	assert_string_equal(profile_value(&d, level, "njobs"), "1");
	assert_null(profile_value(&d, level, "epochs"));
	profile_design_release(&d);
}

TEST(test_placeholders_are_filled_in_and_other_braces_left)
{
	struct profile_design d;
	struct profile_point p = { .level = { 1 }, .replication = 2 };
	struct err err = { 0 };
	char **word;

	must(&d, "{\"factors\":{\"batch\":[64,512]},\"fixed\":{\"lr\":0.01},\"seed\":7,"
		 "\"command\":[\"t\",\"--b={batch}/"
		 "{lr}\",\"{{\\\"x\\\":{batch}}\",\"{seed}\",\"{copy}-{replication}\"]}");
	assert_int_equal(profile_argv(&d, &p, 3, &word, &err), 0);
	assert_string_equal(word[1], "--b=512/0.01");
	assert_string_equal(word[2], "{\"x\":512}");
	assert_int_equal(strtoull(word[3], NULL, 10), profile_seed(&d, &p, 3));
	assert_string_equal(word[4], "3-2");
	assert_null(word[5]);
	argv_free(word);
	profile_design_release(&d);
}

/* Settings that shared a seed would err alike, and bounds would be too narrow. */
TEST(test_no_two_copies_share_a_seed)
{
	struct profile_design d = { .seed = 7 };
	uint64_t seed[2 * 3 * 4];
	size_t n = 0;

	for (uint32_t setting = 0; setting < 2; setting++)
		for (uint32_t replication = 1; replication <= 3; replication++)
			for (size_t copy = 1; copy <= 4; copy++) {
				struct profile_point p = { .setting = setting, .replication = replication };

				seed[n] = profile_seed(&d, &p, copy);
				assert_in_range(seed[n], 7, UINT32_MAX);
				assert_int_equal(seed[n], profile_seed(&d, &p, copy));
				for (size_t i = 0; i < n; i++)
					assert_int_not_equal(seed[i], seed[n]);
				n++;
			}
}

TEST(test_a_command_line_is_split_without_a_shell)
{
	struct profile_design d;
	struct err err = { 0 };

	profile_design_init(&d);
	assert_int_equal(profile_design_command(&d, " a  'b c' \"d \\\"e\\\"\" f\\ g '' $HOME;x", &err), 0);
	assert_int_equal(d.n_command, 6);
	assert_string_equal(d.command[0], "a");
	assert_string_equal(d.command[1], "b c");
	assert_string_equal(d.command[2], "d \"e\"");
	assert_string_equal(d.command[3], "f g");
	assert_string_equal(d.command[4], "");
	assert_string_equal(d.command[5], "$HOME;x");
	assert_int_equal(profile_design_command(&d, "a 'b", &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "not closed"));
	profile_design_release(&d);
}

TEST(test_flags_replace_what_the_file_said)
{
	struct profile_design d;
	struct err err = { 0 };
	uint16_t level[PROFILE_MAX_FACTORS] = { 0 };

	must(&d, "{" FACTORS "," COMMAND "}");
	assert_int_equal(profile_design_factor(&d, "batch=32,64,128", &err), 0);
	assert_string_equal(d.factor[1].name, "batch"); /* where it stood */
	assert_int_equal(d.factor[1].n_levels, 3);
	assert_int_equal(profile_design_factor(&d, "cpus=2", &err), 0);
	assert_int_equal(d.n_factors, 2);
	assert_string_equal(profile_value(&d, level, "cpus"), "2");
	assert_int_equal(profile_design_factor(&d, "cpus=1,2.0,4", &err), 0);
	assert_int_equal(d.n_factors, 3);
	assert_string_equal(d.factor[2].level[1], "2");
	assert_int_equal(profile_design_factor(&d, "cpus", &err), -ERR_ARG);
	assert_int_equal(profile_design_factor(&d, "cpus=1,,2", &err), -ERR_ARG);
	assert_int_equal(profile_design_factor(&d, "cpus=1,1.0", &err), -ERR_ARG);
	assert_int_equal(profile_design_factor(&d, "time_s=1,2", &err), -ERR_ARG);
	assert_int_equal(profile_design_kind(&d, "lhs:0", &err), -ERR_ARG);
	assert_int_equal(profile_design_kind(&d, "half", &err), -ERR_ARG);
	profile_design_release(&d);
}

TEST(test_bad_designs_are_refused_by_name)
{
	refuses("[]", "object");
	refuses("{\"factor\":{}," COMMAND "}", "factors");
	refuses("{\"factors\":[1]," COMMAND "}", "factors: must be an object");
	refuses("{\"factors\":{\"cpus\":2}," COMMAND "}", "levels of cpus must be a list");
	refuses("{\"factors\":{\"cpus\":[]}," COMMAND "}", "cpus has no level");
	refuses("{\"factors\":{\"cpus\":[1,1]}," COMMAND "}", "cpus has the level 1 twice");
	refuses("{\"factors\":{\"cpus\":[true]}," COMMAND "}", "neither a number nor a string");
	refuses("{\"factors\":{\"a-b\":[1]}," COMMAND "}", "not a name for a factor");
	refuses("{\"factors\":{\"accuracy\":[1,2]}," COMMAND "}", "'accuracy' is measured");
	refuses("{\"factors\":{\"cpus\":[1,2]},\"fixed\":{\"cpus\":1}," COMMAND "}",
		"both a factor and fixed");
	refuses("{" FACTORS "}", "no command");
	refuses("{" FACTORS ",\"command\":[]}", "command: has 0 entries");
	refuses("{" FACTORS ",\"command\":[1]}", "command[0]: must be a string");
	refuses("{" FACTORS ",\"command\":[\"t\",\"{cpus}\"]}", "factor batch changes nothing");
	refuses("{" FACTORS ",\"command\":[\"t\",\"{cpus}{batch}{netwrk}\"]}", "did you mean {network}?");
	/* one placeholder language for designs and job types: a brace itself is written twice */
	refuses("{" FACTORS ",\"command\":[\"t\",\"{cpus}{batch}{network}\",\"{x y}\"]}",
		"word 3 of the command: has a '{' that opens no placeholder; write {{ for the brace itself");
	refuses("{" FACTORS ",\"command\":[\"t\",\"{{cpus}{batch}{network}\"]}",
		"factor cpus changes nothing");
	refuses("{" FACTORS ",\"fixed\":{\"njobs\":0}," COMMAND "}", "njobs=0");
	refuses("{" FACTORS ",\"fixed\":{\"njobs\":2.5}," COMMAND "}", "njobs=2.5");
	refuses("{" FACTORS ",\"replications\":0," COMMAND "}", "replications: is 0; it must be");
	refuses("{" FACTORS ",\"replications\":1.5," COMMAND "}",
		"replications: is 1.5; it must be a whole number");
	refuses("{" FACTORS ",\"seed\":-1," COMMAND "}", "seed: is -1; it must be");
	refuses("{" FACTORS ",\"epochs\":0," COMMAND "}", "epochs: must be a whole number, or a range");
	refuses("{" FACTORS ",\"epochs\":2.5," COMMAND "}", "epochs: must be a whole number, or a range");
	refuses("{" FACTORS ",\"epochs\":\"many\"," COMMAND "}",
		"epochs: must be a whole number, or a range");
	refuses("{" FACTORS ",\"warm_up\":1," COMMAND "}", "warm_up: must be");
	refuses("{" FACTORS ",\"timeout_s\":0," COMMAND "}", "timeout_s");
	refuses("{" FACTORS ",\"design\":\"some\"," COMMAND "}", "d.json: design");
	refuses("{" FACTORS ",\"design\":\"lhs:99999\",\"replications\":2," COMMAND "}",
		"more than 100000 runs");
	refuses("{" FACTORS ",\"result\":{\"acuracy\":\"x\"}," COMMAND "}", "accuracy");
	refuses("{" FACTORS ",\"result\":{\"accuracy\":\"a\",\"regex\":\"(b)\"}," COMMAND "}", "not both");
	refuses("{" FACTORS ",\"result\":{\"regex\":\"b\"}," COMMAND "}", "no (group)");
	refuses("{" FACTORS ",\"result\":{\"regex\":\"(b\"}," COMMAND "}", "regular expression");
}

static void differs(const char *now, const char *want)
{
	struct profile_design a, b;
	struct strbuf text = { 0 };
	struct json *before = NULL;
	char out[400];

	must(&a, "{" FACTORS ",\"fixed\":{\"epochs\":3},\"seed\":1," COMMAND "}");
	must(&b, now);
	profile_design_canonical(&a, &text);
	assert_int_equal(json_parse("a", strbuf_text(&text), text.len, &before, NULL), 0);
	assert_int_equal(profile_design_differs(&b, before, out, sizeof out), want != NULL);
	if (want)
		assert_true(profile_design_fingerprint(&a) != profile_design_fingerprint(&b));
	if (want && !strstr(out, want))
		fail_msg("'%s' is not in: %s", want, out);
	json_free(before);
	strbuf_release(&text);
	profile_design_release(&a);
	profile_design_release(&b);
}

TEST(test_what_differs_is_named)
{
	differs("{" FACTORS ",\"fixed\":{\"epochs\":3},\"timeout_s\":9,\"tries\":2,\"max_spread\":1," COMMAND
		"}",
		NULL); /* patience is no part of a design */
	/* a value that the command does not use is a column and no more */
	differs("{" FACTORS ",\"fixed\":{\"epochs\":4}," COMMAND "}", NULL);
	differs("{" FACTORS ",\"fixed\":{\"lr\":1,\"epochs\":3}," COMMAND "}", NULL);
	differs("{" FACTORS "," COMMAND "}", NULL);
	differs("{" FACTORS ",\"fixed\":{\"epochs\":3,\"njobs\":2}," COMMAND "}", "njobs was 1 and is 2");
	differs("{" FACTORS ",\"fixed\":{\"epochs\":3},\"seed\":2," COMMAND "}", "seed was 1 and is 2");
	differs("{" FACTORS ",\"fixed\":{\"epochs\":3},\"design\":\"2k\"," COMMAND "}",
		"design was full and is 2k");
	differs("{\"factors\":{\"cpus\":[1,2],\"batch\":[64,512],\"network\":[\"a\",\"b\"]},\"fixed\":{"
		"\"epochs\":3}," COMMAND "}",
		"factor cpus was 1,2,4 and is 1,2");
	differs("{\"factors\":{\"batch\":[64,512],\"cpus\":[1,2,4],\"network\":[\"a\",\"b\"]},\"fixed\":{"
		"\"epochs\":3}," COMMAND "}",
		"the order of the factors changed");
	differs("{" FACTORS ",\"fixed\":{\"epochs\":3},\"result\":{\"regex\":\"(x)\"}," COMMAND "}",
		"regex was none and is (x)");
}

TEST(test_running_out_of_memory_is_said_and_leaks_nothing)
{
	static const char text[] = "{" FACTORS ",\"design\":\"lhs:5\",\"replications\":2," COMMAND "}";

	for (unsigned long k = 1; k < 200; k++) {
		struct profile_design d;
		struct profile_plan p = { 0 };
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = from_text(&d, text, &err);
		if (!rc)
			rc = profile_plan_make(&d, &p, &err);
		if (rc)
			assert_true(err.text[0]);
		profile_plan_release(&p);
		profile_design_release(&d);
		if (!mem_failed())
			break;
	}
	mem_fail_at(0, false);
}
