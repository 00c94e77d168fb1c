/* sim/trace_csv, trace_jsonl, trace_write: our own format is read field by field, refused with its place,
 * and what is written reads back as the same trace. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "sim/trace/trace.h"
#include "sim/trace/row.h"
#include "tests/support/test.h"
#include "tests/unit/sim/trace_bed.h"

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	return 0;
}

static struct trace *csv(const char *text)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	if (trace_parse_csv("t.csv", text, strlen(text), &t, &err))
		fail_msg("refused: %s", err.text);
	return t;
}

static struct trace *jsonl(const char *text)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	if (trace_parse_jsonl("t.jsonl", text, strlen(text), &t, &err))
		fail_msg("refused: %s", err.text);
	return t;
}

static void refuse_csv(const char *text, const char *want)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	assert_int_equal(trace_parse_csv("t.csv", text, strlen(text), &t, &err), -ERR_FORMAT);
	assert_int_equal(err.code, ERR_FORMAT);
	assert_string_equal(err.text, want);
	assert_null(t);
}

static void refuse_jsonl(const char *text, const char *want)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	assert_int_equal(trace_parse_jsonl("t.jsonl", text, strlen(text), &t, &err), -ERR_FORMAT);
	assert_string_equal(err.text, want);
	assert_null(t);
}

/* ---- fields ---- */

TEST(test_every_field_is_read)
{
	struct trace *t = csv(
		"arrival_s,slo_s,cpus,id,confidence,tenant,weight,type,priority,best_effort,recurring,"
		"batches,epochs,memory_mb,memory_mb_per_record,value,may_stop,steer,chance,network\n"
		"2.37,5m,4,17,0.95,lab,2.5,digits,-3,1,9,256|64|128,1..4,300,0.25,2.37,1,yes,0.55,lenet5\n");
	const struct trace_job *j = &t->job[0];
	const struct trace_kind *k = &t->kind[j->kind];

	assert_int_equal(t->n_jobs, 1);
	assert_int_equal(j->arrival_ns, 2370000000);
	assert_true(j->slo_s == 300.0);
	assert_int_equal(j->id, 17);
	assert_true(j->confidence == 0.95);
	assert_string_equal(t->tenant[j->tenant], "lab");
	assert_true(t->weight[j->tenant] == 2.5);
	assert_string_equal(t->type[j->type], "digits");
	assert_int_equal(j->priority, -3);
	assert_true(j->best_effort);
	assert_int_equal(j->recurring, 9);
	assert_true(trace_value(j) == 2.37 && j->may_stop && j->steer && j->chance == 0.55);
	assert_int_equal(j->line, 2);
	assert_int_equal(k->cpus, 4);
	assert_int_equal(k->n_batches, 3);
	assert_true(k->batch[0] == 64.0 && k->batch[1] == 128.0 && k->batch[2] == 256.0);
	assert_true(k->epochs_from == 1.0 && k->epochs_to == 4.0);
	assert_null(value(t, 0, "epochs"));
	assert_true(k->memory_mb == 300.0 && k->memory_mb_per_record == 0.25);
	assert_string_equal(value(t, 0, "network"), "lenet5");
	assert_int_equal(t->n_columns, 2);
	trace_free(t);
}

TEST(test_what_is_left_out_has_its_default)
{
	struct trace *t = csv("arrival_s,slo_s,network\n0,,\n");
	const struct trace_job *j = &t->job[0];

	assert_true(isnan(j->slo_s) && isnan(j->confidence) && trace_value(j) == 1.0);
	assert_int_equal(j->id, 1);
	assert_int_equal(j->type, -1);
	assert_int_equal(j->priority, 0);
	assert_false(j->best_effort);
	assert_string_equal(t->tenant[j->tenant], "default");
	assert_true(t->weight[0] == 1.0);
	assert_int_equal(t->kind[0].cpus, 1);
	assert_int_equal(t->kind[0].n_batches, 0);
	assert_true(isnan(t->kind[0].epochs_from) && isnan(t->kind[0].memory_mb));
	assert_null(value(t, 0, "network"));
	trace_free(t);
}

TEST(test_fixed_epochs_are_a_value)
{
	struct trace *t = csv("arrival_s,epochs\n0,4\n1,1..4\n");

	assert_string_equal(value(t, 0, "epochs"), "4");
	assert_true(isnan(t->kind[t->job[0].kind].epochs_from));
	assert_null(value(t, 1, "epochs"));
	assert_true(t->kind[t->job[1].kind].epochs_to == 4.0);
	trace_free(t);
}

TEST(test_times_count_from_the_earliest)
{
	struct trace *t = csv("arrival_s,cpus\n2026-11-16T09:00:04+01:00,2\n2026-11-16T08:00:01.5Z,3\n");

	assert_int_equal(t->job[0].arrival_ns, 0);
	assert_int_equal(t->kind[t->job[0].kind].cpus, 3);
	assert_int_equal(t->job[1].arrival_ns, 2500000000);
	trace_free(t);
}

TEST(test_jobs_come_by_arrival_and_equal_ones_as_in_the_file)
{
	struct trace *t = csv("arrival_s,id\n5,1\n2,2\n5,3\n0,4\n2,5\n");
	const uint64_t want[] = { 4, 2, 5, 1, 3 };

	for (size_t i = 0; i < 5; i++)
		assert_int_equal(t->job[i].id, want[i]);
	trace_free(t);
}

TEST(test_nanoseconds_survive_a_hundred_years)
{
	int64_t ns = 0;
	char buf[32];

	assert_true(trace_seconds_parse("3199999999.123456789", &ns));
	assert_true(ns == 3199999999123456789);
	assert_string_equal(trace_seconds_text(ns, buf), "3199999999.123456789");
	assert_true(trace_seconds_parse("0.0000000005", &ns) && ns == 1);
	assert_true(trace_seconds_parse("1e-3", &ns) && ns == 1000000);
	assert_false(trace_seconds_parse("3200000001", &ns));
	assert_false(trace_seconds_parse("-1", &ns));
	assert_false(trace_seconds_parse("", &ns));
	assert_false(trace_seconds_parse("99999999999999999999", &ns));
	assert_string_equal(trace_seconds_text(0, buf), "0");
	assert_string_equal(trace_seconds_text(1500000000, buf), "1.5");
}

TEST(test_equal_jobs_are_one_kind)
{
	struct trace *t = csv("arrival_s,cpus,network,batches\n0,2,a,\n1,2,a,\n2,2,b,\n3,2,a,64\n4,2,a,\n");

	assert_int_equal(t->n_kinds, 3);
	assert_int_equal(t->job[0].kind, t->job[4].kind);
	assert_int_not_equal(t->job[0].kind, t->job[3].kind);
	trace_free(t);
}

/* ---- refusals ---- */

TEST(test_bad_csv_is_refused_with_line_field_and_reason)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "arival_s,slo_s\n1,2\n", "t.csv:1: field arrival_s: missing: the trace must say when each "
					   "job arrives; did you mean that by "
					   "'arival_s'?" },
		{ "slo_s\n2\n",
		  "t.csv:1: field arrival_s: missing: the trace must say when each job arrives" },
		{ "arrival_s\n", "t.csv: there is no job in it" },
		{ "arrival_s,slo_s\n1,2\n,3\n",
		  "t.csv:3: field arrival_s: it is empty: when did the job arrive?" },
		{ "arrival_s\nsoon\n",
		  "t.csv:2: field arrival_s: 'soon' is not a number of seconds from 0 to 3.2e9 or a "
		  "time such as 2026-11-16T10:00:00Z" },
		{ "arrival_s\n-1\n",
		  "t.csv:2: field arrival_s: '-1' is not a number of seconds from 0 to 3.2e9 or a "
		  "time such as 2026-11-16T10:00:00Z" },
		{ "arrival_s\n1\n2026-11-16T08:00:00Z\n",
		  "t.csv:3: field arrival_s: '2026-11-16T08:00:00Z' is not a number of seconds, as the ones "
		  "before are" },
		{ "arrival_s\n2026-11-16T08:00:00Z\n1\n",
		  "t.csv:3: field arrival_s: '1' is not a time, as the ones before are" },
		{ "arrival_s,chance\n1,1\n",
		  "t.csv:2: field chance: '1' is not a number from 0 to 0.9999, such as 0.5" },
		{ "arrival_s,chance\n1,-0.1\n",
		  "t.csv:2: field chance: '-0.1' is not a number from 0 to 0.9999, such as 0.5" },
		{ "arrival_s,value\n1,0\n", "t.csv:2: field value: '0' is not a number from 0.001 to 1000" },
		{ "arrival_s,value\n1,1001\n",
		  "t.csv:2: field value: '1001' is not a number from 0.001 to 1000" },
		{ "arrival_s,slo_s\n1,x\n", "t.csv:2: field slo_s: 'x' is not a duration: 300, 5m, 2h" },
		{ "arrival_s,slo_s\n1,0\n", "t.csv:2: field slo_s: '0' is not above 0 and at most 3.2e9 s" },
		{ "arrival_s,slo_s\n1,-5\n",
		  "t.csv:2: field slo_s: '-5' is not above 0 and at most 3.2e9 s" },
		{ "arrival_s,cpus\n1,0\n", "t.csv:2: field cpus: '0' is not a whole number from 1 to 65536" },
		{ "arrival_s,cpus\n1,1.5\n",
		  "t.csv:2: field cpus: '1.5' is not a whole number from 1 to 65536" },
		{ "arrival_s,cpus\n1,65537\n",
		  "t.csv:2: field cpus: '65537' is not a whole number from 1 to 65536" },
		{ "arrival_s,id\n1,0\n", "t.csv:2: field id: '0' is not a whole number above 0" },
		{ "arrival_s,id\n1,7\n2,8\n3,7\n", "t.csv:4: field id: 7 was there before; ids must differ" },
		{ "arrival_s,confidence\n1,1\n",
		  "t.csv:2: field confidence: '1' is not a number between 0 and 1, such as 0.9" },
		{ "arrival_s,weight\n1,0\n",
		  "t.csv:2: field weight: '0' is not a number above 0, at most 1e6" },
		{ "arrival_s,tenant,weight\n1,a,2\n2,a,3\n",
		  "t.csv:3: tenant 'a' has weight 3, but had 2 before" },
		{ "arrival_s,best_effort\n1,perhaps\n",
		  "t.csv:2: field best_effort: 'perhaps' is not true or false" },
		{ "arrival_s,priority\n1,high\n",
		  "t.csv:2: field priority: 'high' is not a whole number from -1000000000 to 1000000000" },
		{ "arrival_s,batches\n1,64|64\n",
		  "t.csv:2: field batches: '64|64' is not a list of different sizes" },
		{ "arrival_s,batches\n1,64|x\n",
		  "t.csv:2: field batches: 'x' is not a number from 0 to 1000000000000" },
		{ "arrival_s,epochs\n1,4..1\n",
		  "t.csv:2: field epochs: '4..1' is not a range of epochs such as 1..4, from 1 to 1e6" },
		{ "arrival_s,epochs\n1,many\n",
		  "t.csv:2: field epochs: 'many' is not a number above 0, at most 1e12" },
		{ "arrival_s,memory_mb\n1,-1\n",
		  "t.csv:2: field memory_mb: '-1' is not a number from 0 to 1e12" },
		{ "arrival_s,cpus\n1\n", "t.csv:2:1: 1 cells in this row, but 2 columns in the header" },
		{ "arrival_s,network\n1,a\x01"
		  "b\n",
		  "t.csv:2: value of column 'network' 'a\\x01b' has a control character in it" },
		{ "arrival_s,network\n1,\xff\n",
		  "t.csv:2: value of column 'network' '\\xff' has a byte that is not UTF-8 in it" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		refuse_csv(cases[i].text, cases[i].want);
}

TEST(test_limits_hold_on_both_sides)
{
	char text[4000], value_text[TRACE_MAX_VALUE + 2];
	struct strbuf wide = { 0 };
	struct trace *t = NULL;
	struct err err = { 0 };

	memset(value_text, 'x', sizeof value_text);
	value_text[TRACE_MAX_VALUE] = '\0';
	snprintf(text, sizeof text, "arrival_s,network\n1,%s\n", value_text);
	trace_free(csv(text));
	value_text[TRACE_MAX_VALUE] = 'x';
	value_text[TRACE_MAX_VALUE + 1] = '\0';
	snprintf(text, sizeof text, "arrival_s,network\n1,%s\n", value_text);
	assert_int_equal(trace_parse_csv("t.csv", text, strlen(text), &t, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "is longer than 128 bytes"));

	strbuf_puts(&wide, "arrival_s");
	for (int i = 0; i < TRACE_MAX_COLUMNS; i++)
		strbuf_printf(&wide, ",column%d", i);
	strbuf_puts(&wide, "\n1");
	for (int i = 0; i < TRACE_MAX_COLUMNS; i++)
		strbuf_puts(&wide, ",1");
	trace_free(csv(wide.text));
	strbuf_reset(&wide);
	strbuf_puts(&wide, "arrival_s");
	for (int i = 0; i <= TRACE_MAX_COLUMNS; i++)
		strbuf_printf(&wide, ",column%d", i);
	assert_int_equal(trace_parse_csv("t.csv", wide.text, wide.len, &t, &err), -ERR_FORMAT);
	assert_string_equal(err.text, "t.csv: more than 64 columns");
	strbuf_release(&wide);
}

TEST(test_a_doubtful_column_is_noticed)
{
	struct trace *t = csv("arrival_s,tennant,network\n1,a,b\n");

	assert_int_equal(t->n_notices, 1);
	assert_string_equal(t->notice[0],
			    "column 'tennant' is taken for a property of the jobs; did you mean 'tenant'?");
	trace_free(t);
}

/* ---- JSON lines ---- */

TEST(test_json_lines_say_the_same_as_csv)
{
	struct trace *a = csv("arrival_s,slo_s,cpus,id,tenant,best_effort,batches,network,epochs,samples\n"
			      "0.1,300,1,5,lab,false,64|128,lenet5,4,12000\n"
			      "2,,2,6,lab,true,,simplenet,1..4,12000\n");
	struct trace *b = jsonl(
		"{\"arrival_s\":0.1,\"slo_s\":\"5m\",\"cpus\":1,\"id\":5,\"tenant\":\"lab\","
		"\"batches\":[64,128],\"network\":\"lenet5\",\"epochs\":4,\"samples\":12000}\n\n"
		"{\"arrival_s\":2.0,\"cpus\":2,\"id\":\"6\",\"tenant\":\"l\\u0061b\",\"best_effort\":true,"
		"\"network\":\"simplenet\",\"epochs\":\"1..4\",\"samples\":12e3}\r\n");

	assert_true(a->fingerprint == b->fingerprint);
	assert_int_equal(b->job[1].line, 3);
	trace_free(a);
	trace_free(b);
}

/* Odd values are read or refused the same way in a line with and without an escape. */
TEST(test_an_escape_changes_nothing_else_in_its_line)
{
	static const char *const tail[] = {
		"\"n\":0.10}",
		"\"n\":-0}",
		"\"n\":100000000000000000000}",
		"\"n\":0.00001}",
		"\"n\":1.5e3}",
		"\"n\":true}",
		"\"n\":null}",
		"\"n\":\"\"}",
		"\"n\":01}",
		"\"n\":1.}",
		"\"n\":.5}",
		"\"n\":tru}",
		"\"n\":1,}",
		"\"n\":1}x",
		"\"n\":1} ",
		"\"n\":1,\"n\":2}",
		"\"n\":[1]}",
		"\"n\":{}}",
		"\"n\":\"\x7f\"}",
		"\"n\":\"\xc3\xa9\"}",
		"\"n\":\"\xff\"}",
		"\"n\":1",
		"\"n\" 1}",
		"\"n\":123456789012345.5}",
		"\"n\":0.1234567890123456789}",
		"\"batches\":[64,128.0]}",
		"\"batches\":[]}",
		"\"batches\":[64,]}",
		"\"batches\":[64",
	};
	const char *first = "{\"arrival_s\":0,\"n\":1,\"batches\":[1],\"k\":\"a\"}\n";

	for (size_t i = 0; i < sizeof tail / sizeof *tail; i++) {
		char plain[400], escaped[400];
		struct trace *a = NULL, *b = NULL;
		struct err err_a = { 0 }, err_b = { 0 };
		int rc_a, rc_b;

		snprintf(plain, sizeof plain, "%s{\"arrival_s\":1,\"k\":\"a\",%s\n", first, tail[i]);
		snprintf(escaped, sizeof escaped, "%s{\"arrival_s\":1,\"k\":\"\\u0061\",%s\n", first,
			 tail[i]);
		rc_a = trace_parse_jsonl("t", plain, strlen(plain), &a, &err_a);
		rc_b = trace_parse_jsonl("t", escaped, strlen(escaped), &b, &err_b);
		assert_int_equal(rc_a, rc_b);
		if (rc_a == 0 && a->fingerprint != b->fingerprint)
			fail_msg("another trace for %s", tail[i]);
		trace_free(a);
		trace_free(b);
	}
}

TEST(test_bad_json_lines_are_refused_with_their_place)
{
	refuse_jsonl("{\"arrival_s\":1}\n{\"arrival_s\":2,}\n",
		     "t.jsonl:2:16: '}' where a key in quotes was expected");
	refuse_jsonl("[1]\n", "t.jsonl:1: need an object: {\"arrival_s\":0,...}");
	refuse_jsonl("{\"arival_s\":1}\n", "t.jsonl:1: field arrival_s: missing: the trace must say when "
					   "each job arrives; did you mean that "
					   "by 'arival_s'?");
	refuse_jsonl("{\"arrival_s\":1}\n{\"arrival_s\":2,\"cpus\":\"two\"}\n",
		     "t.jsonl:2: field cpus: 'two' is not a whole number from 1 to 65536");
	refuse_jsonl("{\"arrival_s\":1,\"network\":{}}\n",
		     "t.jsonl:1: field network: need text, a number, true, false or null");
	refuse_jsonl("{\"arrival_s\":1,\"batches\":[\"64\"]}\n",
		     "t.jsonl:1: field batches: need an array of numbers");
	refuse_jsonl("", "t.jsonl: there is no job in it");
}

TEST(test_a_column_may_come_late)
{
	struct trace *t =
		jsonl("{\"arrival_s\":0,\"a\":1}\n{\"arrival_s\":1,\"b\":2}\n{\"arrival_s\":2,\"a\":1}\n");

	assert_int_equal(t->n_columns, 2);
	assert_int_equal(t->n_kinds, 2);
	assert_int_equal(t->job[0].kind, t->job[2].kind);
	assert_null(value(t, 0, "b"));
	assert_null(value(t, 1, "a"));
	assert_string_equal(value(t, 1, "b"), "2");
	trace_free(t);
}

/* ---- writing ---- */

static void assert_reads_back(const struct trace *t)
{
	struct strbuf out = { 0 };
	struct trace *again;

	trace_write_csv(t, &out);
	again = csv(out.text);
	assert_true(again->fingerprint == t->fingerprint);
	trace_free(again);
	strbuf_reset(&out);
	trace_write_jsonl(t, &out);
	again = jsonl(out.text);
	assert_true(again->fingerprint == t->fingerprint);
	trace_free(again);
	strbuf_release(&out);
}

TEST(test_what_is_written_reads_back_as_the_same)
{
	static const char *const traces[] = {
		"arrival_s\n0\n",
		"arrival_s,id\n5,900\n0,2\n3,18446744073709551615\n",
		"arrival_s,a,b\n0,,\n1,,x\n",
		"arrival_s,value,may_stop\n0,,1\n1,0.123456789012345678,\n2,1000,0\n",
		"arrival_s,steer\n0,\n1,true\n2,no\n",
		"arrival_s,chance\n0,\n1,0.123456789012345678\n2,0\n3,0.9999\n",
		"arrival_s,epochs,a\n0,1..4,\" x, \"\"y\"\" \"\n1,4.0,\xc3\xa9\n2,1e3,-0\n",
		"arrival_s,tenant,weight,type,slo_s\n9,b,2,t,0.1\n1,a,,,\n1,b,2,u,1e-3\n",
		"arrival_s,confidence,priority,best_effort,recurring,batches,memory_mb,memory_mb_per_record\n"
		"12345678.123456789,0.123456789012345678,-5,1,77,3|1|2.5,0,0.1\n3199999999.999999999,,,,,,,"
		"\n",
		"arrival_s,cpus\n2026-11-16T08:00:00.123456789Z,1\n2026-11-16T07:00:00Z,2\n",
	};

	for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
		struct trace *t = csv(traces[i]);

		assert_reads_back(t);
		trace_free(t);
	}
}

TEST(test_fingerprints_differ_where_traces_do)
{
	static const char *const traces[] = {
		"arrival_s,slo_s,cpus,network,tenant\n0,1,1,a,x\n1,1,1,a,x\n",
		"arrival_s,slo_s,cpus,network,tenant\n0,1,1,a,x\n1.000000001,1,1,a,x\n",
		"arrival_s,slo_s,cpus,network,tenant\n0,1,1,a,x\n1,1.5,1,a,x\n",
		"arrival_s,slo_s,cpus,network,tenant\n0,1,1,a,x\n1,,1,a,x\n",
		"arrival_s,slo_s,cpus,network,tenant\n0,1,1,a,x\n1,1,2,a,x\n",
		"arrival_s,slo_s,cpus,network,tenant\n0,1,1,a,x\n1,1,1,b,x\n",
		"arrival_s,slo_s,cpus,network,tenant\n0,1,1,a,x\n1,1,1,a,y\n",
		"arrival_s,slo_s,cpus,network,tenant,weight\n0,1,1,a,x,2\n1,1,1,a,x,2\n",
		"arrival_s,slo_s,cpus,netwrk,tenant\n0,1,1,a,x\n1,1,1,a,x\n",
		"arrival_s,slo_s,cpus,network,tenant,id\n0,1,1,a,x,1\n1,1,1,a,x,3\n",
		"arrival_s,slo_s,cpus,network,tenant,may_stop\n0,1,1,a,x,\n1,1,1,a,x,1\n",
		"arrival_s,slo_s,cpus,network,tenant,steer\n0,1,1,a,x,\n1,1,1,a,x,1\n",
		"arrival_s,slo_s,cpus,network,tenant,chance\n0,1,1,a,x,\n1,1,1,a,x,0.5\n",
		"arrival_s,slo_s,cpus,network,tenant,value\n0,1,1,a,x,\n1,1,1,a,x,2\n",
		"arrival_s,slo_s,cpus,network,tenant,best_effort\n0,1,1,a,x,0\n1,1,1,a,x,1\n",
	};
	enum { N = sizeof traces / sizeof *traces };
	uint64_t print[N];

	for (size_t i = 0; i < N; i++) {
		struct trace *t = csv(traces[i]);

		print[i] = t->fingerprint;
		trace_free(t);
		for (size_t k = 0; k < i; k++)
			assert_true(print[i] != print[k]);
	}
}

/* ---- no memory ---- */

TEST_WITH(test_no_allocation_that_fails_does_harm, NULL, disarm)
{
	static const char *const traces[] = {
		"arrival_s,tenant,type,epochs,tennant,batches\n3,a,t,1..4,x,64|128\n1,b,u,4,y,\n2,a,,,,\n",
		"{\"arrival_s\":3,\"a\":1,\"tenant\":\"x\"}\n{\"arrival_s\":1,\"b\":\"\\u0061\",\"batches\":["
		"1,2]}\n",
	};

	for (size_t i = 0; i < 2; i++) {
		for (unsigned long k = 1;; k++) {
			struct trace *t = NULL;
			struct err err = { 0 };
			int rc;

			mem_fail_at(k, k % 2);
			rc = i ? trace_parse_jsonl("t", traces[i], strlen(traces[i]), &t, &err)
			       : trace_parse_csv("t", traces[i], strlen(traces[i]), &t, &err);
			if (!mem_failed()) {
				mem_fail_at(0, false);
				assert_int_equal(rc, 0);
				trace_free(t);
				assert_true(k > 10);
				break;
			}
			mem_fail_at(0, false);
			assert_int_equal(rc, -ERR_NOMEM);
			assert_null(t);
		}
	}
}
