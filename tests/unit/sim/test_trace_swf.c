/* sim/trace_swf: logs in the Standard Workload Format become jobs as the mapping says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "sim/trace/trace.h"
#include "sim/trace/swf_map.h"
#include "tests/support/test.h"
#include "tests/unit/sim/trace_bed.h"

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	return 0;
}

/* job submit wait run alloc cpu mem reqprocs reqtime reqmem status user group exe queue part prec think */
#define LINE_1 "1 0 2 40 2 -1 -1 4 100 -1 1 7 3 5 1 -1 -1 -1\n"

static int parse(const char *text, const char *map, struct trace **out, struct err *err)
{
	return trace_parse_swf("log.swf", text, strlen(text), map ? "map.json" : NULL, map,
			       map ? strlen(map) : 0, out, err);
}

static struct trace *read_with(const char *text, const char *map)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	if (parse(text, map, &t, &err))
		fail_msg("refused: %s", err.text);
	return t;
}

static void refuse(const char *text, const char *map, const char *want)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	assert_int_equal(parse(text, map, &t, &err), -ERR_FORMAT);
	assert_string_equal(err.text, want);
	assert_null(t);
}

static bool has_notice(const struct trace *t, const char *text)
{
	for (size_t i = 0; i < t->n_notices; i++)
		if (strcmp(t->notice[i], text) == 0)
			return true;
	return false;
}

TEST(test_the_built_in_mapping)
{
	struct trace *t = read_with("; Computer: a machine\n; MaxJobs: 1\n" LINE_1, NULL);
	const struct trace_job *j = &t->job[0];

	assert_int_equal(j->id, 1);
	assert_int_equal(j->line, 3);
	assert_int_equal(j->arrival_ns, 0);
	assert_int_equal(t->kind[j->kind].cpus, 2); /* allocated, not requested */
	assert_true(j->slo_s == 150.0); /* 1.5 x requested time */
	assert_string_equal(t->tenant[j->tenant], "user-7");
	assert_string_equal(t->type[j->type], "executable-5");
	assert_string_equal(value(t, 0, "samples"), "800000"); /* 40 s x 2 x 10000 */
	assert_string_equal(value(t, 0, "epochs"), "4");
	assert_string_equal(t->about, "1 job over 0 s, from a log in SWF of a machine");
	assert_int_equal(t->n_notices, 0);
	trace_free(t);
}

static bool is_same(const struct json *a, const struct json *b)
{
	if (!a || !b)
		return a == b;
	if (json_type(a) != json_type(b) || json_number(a, 0.0) != json_number(b, 0.0) ||
	    strcmp(json_string(a, ""), json_string(b, "")) != 0 || json_size(a) != json_size(b))
		return false;
	for (a = json_first(a), b = json_first(b); a && b; a = json_next(a), b = json_next(b))
		if ((json_key(a) && strcmp(json_key(a), json_key(b)) != 0) || !is_same(a, b))
			return false;
	return true;
}

TEST(test_the_built_in_mapping_is_the_file_in_configs)
{
	struct swf_map built_in, from_file;
	char *text = NULL;
	size_t len = 0;
	struct err err = { 0 };

	if (io_read_file("configs/traces/swf-map.json", 1 << 20, &text, &len, &err))
		fail_msg("%s", err.text);
	assert_int_equal(swf_map_parse(NULL, NULL, 0, &built_in, &err), 0);
	assert_int_equal(swf_map_parse("swf-map.json", text, len, &from_file, &err), 0);
	assert_int_equal(json_size(built_in.root), 7);
	assert_true(is_same(built_in.root, from_file.root));
	swf_map_release(&built_in);
	swf_map_release(&from_file);
	free(text);
}

TEST(test_unknown_fields_have_stand_ins)
{
	struct trace *t = read_with("1 0 -1 40 -1 -1 -1 4 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n", NULL);
	const struct trace_job *j = &t->job[0];

	assert_int_equal(t->kind[j->kind].cpus, 4); /* requested */
	assert_true(j->slo_s == 60.0); /* 1.5 x run time */
	assert_string_equal(t->tenant[j->tenant], "default");
	assert_int_equal(j->type, -1);
	trace_free(t);
}

TEST(test_records_that_are_no_jobs_are_counted)
{
	struct trace *t = read_with(LINE_1
				    "2 1 0 5 1 -1 -1 1 9 -1 5 7 3 5 1 -1 -1 -1\n" /* cancelled */
				    "3 1 0 5 1 -1 -1 1 9 -1 2 7 3 5 1 -1 -1 -1\n" /* a part */
				    "3 1 0 5 1 -1 -1 1 9 -1 4 7 3 5 1 -1 -1 -1\n"
				    "4 1 0 -1 1 -1 -1 1 9 -1 1 7 3 5 1 -1 -1 -1\n" /* no run time */
				    "5 1 0 5 -1 -1 -1 -1 9 -1 1 7 3 5 1 -1 -1 -1\n" /* no processors */
				    "6 -1 0 5 1 -1 -1 1 9 -1 1 7 3 5 1 -1 -1 -1\n" /* no submit time */
				    "7 1 0 0 1 -1 -1 1 9 -1 0 7 3 5 1 -1 -1 -1\n", /* failed at once: a job */
				    NULL);

	assert_int_equal(t->n_jobs, 2);
	assert_true(has_notice(t, "1 record left out: cancelled"));
	assert_true(has_notice(t, "2 records left out: parts of jobs that have their own line"));
	assert_true(has_notice(t, "1 record left out: no run time"));
	assert_true(has_notice(t, "1 record left out: no processors"));
	assert_true(has_notice(t, "1 record left out: no submit time"));
	assert_true(has_notice(t, "1 record with a size that was cut to the bounds of the mapping"));
	assert_string_equal(value(t, 1, "samples"), "1000");
	trace_free(t);
}

TEST(test_a_mapping_of_ones_own)
{
	const char *map =
		"{\"cpus\":{\"divisor\":4,\"cap\":2},\"tenant\":\"queue\",\"type\":\"none\","
		"\"values\":{\"network\":{\"by\":\"executable\",\"map\":{\"5\":\"lenet5\",\"6\":7},\"of\":["
		"\"other\"]},"
		"\"epochs\":2.5},\"size\":{\"column\":\"rows\",\"records_per_cpu_second\":3.7,\"min\":1,"
		"\"max\":100000,\"digits\":3},\"slo\":null,\"take\":[\"cancelled\",\"completed\"]}";
	struct trace *t = read_with(LINE_1 "2 1 0 5 16 -1 -1 1 9 -1 5 7 3 6 2 -1 -1 -1\n"
					   "3 2 0 5 1 -1 -1 1 9 -1 0 7 3 6 2 -1 -1 -1\n"
					   "4 3 0 5 1 -1 -1 1 9 -1 1 7 3 9 2 -1 -1 -1\n",
				    map);

	assert_int_equal(t->n_jobs, 3); /* the failed one is not taken */
	assert_int_equal(t->kind[t->job[0].kind].cpus, 1);
	assert_int_equal(t->kind[t->job[1].kind].cpus, 2);
	assert_true(has_notice(t, "1 record with more cpus than the cap of the mapping"));
	assert_string_equal(t->tenant[t->job[1].tenant], "queue-2");
	assert_int_equal(t->job[0].type, -1);
	assert_true(isnan(t->job[0].slo_s));
	assert_string_equal(value(t, 0, "network"), "lenet5");
	assert_string_equal(value(t, 1, "network"), "7");
	assert_string_equal(value(t, 2, "network"), "other");
	assert_string_equal(value(t, 0, "epochs"), "2.5");
	assert_string_equal(value(t, 0, "rows"), "296"); /* 40 x 2 x 3.7 */
	trace_free(t);
}

/* Drawn by a hash: about evenly, and always the same for the same job. */
TEST(test_values_are_drawn_evenly_and_stay)
{
	struct strbuf text = { 0 };
	struct trace *t, *again;
	size_t first = 0;

	for (int i = 1; i <= 4000; i++)
		strbuf_printf(&text, "%d %d 0 4 1 -1 -1 1 9 -1 1 %d 3 5 1 -1 -1 -1\n", i, i, i % 5);
	t = read_with(text.text, NULL);
	for (size_t i = 0; i < t->n_jobs; i++)
		first += strcmp(value(t, i, "network"), "lenet5") == 0;
	/* Binomial(4000, 1/2): five standard deviations are 158. */
	assert_true(first > 2000 - 158 && first < 2000 + 158);
	assert_int_equal(t->n_tenants, 5);
	again = read_with(text.text, NULL);
	assert_true(t->fingerprint == again->fingerprint);
	trace_free(t);
	trace_free(again);
	strbuf_release(&text);
}

TEST(test_bad_lines_are_refused_with_their_place)
{
	refuse("; a\n1 2 3\n", NULL, "log.swf:2: 3 fields: a line needs 18, with -1 for unknown");
	refuse("1 0 2 40 2 -1 -1 4 100 -1 1 7 3 5 1 -1 -1 -1 9\n", NULL,
	       "log.swf:1: more than the 18 fields of the format");
	refuse("1 0 2 40 two -1 -1 4 100 -1 1 7 3 5 1 -1 -1 -1\n", NULL,
	       "log.swf:1: field 5 (allocated processors): 'two' is not a number");
	refuse(LINE_1 LINE_1, NULL, "log.swf:2: field id: 1 was there before; ids must differ");
	refuse("0 0 2 40 2 -1 -1 4 100 -1 1 7 3 5 1 -1 -1 -1\n", NULL,
	       "log.swf:1: field 1 (job): '0' is not a whole number above 0");
	refuse("1 9e9 2 40 2 -1 -1 4 100 -1 1 7 3 5 1 -1 -1 -1\n", NULL,
	       "log.swf:1: field 2 (submit time): '9e9' is not a number of seconds, at most 3.2e9");
	refuse("; nothing\n", NULL, "log.swf: there is no job in it");
}

TEST(test_bad_mappings_are_refused_by_member)
{
	refuse(LINE_1, "[]", "map.json: must be an object { ... }");
	refuse(LINE_1, "{\"tenants\":\"user\"}", "map.json: unknown key 'tenants'; did you mean 'tenant'?");
	refuse(LINE_1, "{\"tenant\":\"house\"}",
	       "map.json: tenant: need user, group, executable, queue, partition or none");
	refuse(LINE_1, "{\"cpus\":{\"cap\":0}}",
	       "map.json: cpus.cap: is 0; it must be a number from 1 to 65536");
	refuse(LINE_1, "{\"values\":{\"cpus\":1}}",
	       "map.json: values.cpus: is a field of the job, not a column of values");
	refuse(LINE_1, "{\"values\":{\"n\":{\"of\":[1]}}}",
	       "map.json: values.n.by: which field? user, group, executable, queue, partition or job");
	refuse(LINE_1, "{\"values\":{\"n\":{\"by\":\"job\",\"of\":[]}}}",
	       "map.json: values.n.of: has 0 entries; it needs 1 to 256");
	refuse(LINE_1, "{\"values\":{\"n\":{\"by\":\"job\",\"map\":{\"x\":1}}}}",
	       "map.json: values.n.map: need numbers of the field as names, texts or numbers as values");
	refuse(LINE_1, "{\"size\":{\"column\":\"samples\"}}",
	       "map.json: size.records_per_cpu_second: is not given");
	refuse(LINE_1, "{\"size\":{\"column\":\"samples\",\"records_per_cpu_second\":1,\"min\":9,\"max\":8}}",
	       "map.json: size.max: is 8; it must be a number from 9 to 1000000000000");
	refuse(LINE_1, "{\"slo\":{\"factor\":0}}",
	       "map.json: slo.factor: is 0; it must be a number from 1e-06 to 1000000");
	refuse(LINE_1, "{\"take\":[\"lost\"]}",
	       "map.json: take: need a list of completed, failed, cancelled, unknown");
	refuse(LINE_1, "{\"values\":{\"epochs\":\"many\"}}", "log.swf: epochs 'many': need a number above 0");
}

TEST(test_the_example_is_read)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	if (trace_read_swf("configs/traces/small.swf", "configs/traces/swf-map.json", &t, &err))
		fail_msg("%s", err.text);
	assert_int_equal(t->n_jobs, 9);
	trace_free(t);
	assert_int_equal(trace_read_swf("configs/traces/small.swf", "nowhere.json", &t, &err), -ERR_NOTFOUND);
}

TEST_WITH(test_no_allocation_that_fails_does_harm, NULL, disarm)
{
	for (unsigned long k = 1;; k++) {
		struct trace *t = NULL;
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, k % 2);
		rc = parse(LINE_1, "{\"values\":{\"a\":{\"by\":\"job\",\"of\":[1,2]}},\"tenant\":\"user\"}",
			   &t, &err);
		if (!mem_failed()) {
			mem_fail_at(0, false);
			assert_int_equal(rc, 0);
			assert_true(k > 10);
			trace_free(t);
			return;
		}
		mem_fail_at(0, false);
		assert_int_equal(rc, -ERR_NOMEM);
		assert_null(t);
	}
}
