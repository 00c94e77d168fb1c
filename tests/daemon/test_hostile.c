/* What a single client can say to hurt: every line is answered, with the right code, and the daemon is as
 * well afterwards as before. Crowds of clients are in test_crowd.c. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "tests/daemon/hostile.h"
#include "tests/support/test.h"

#define MORE_MB 64.0 /* for whatever a test leaves behind: jobs in memory, buffers kept */

static struct health daemon_;
static struct talk *t;

static int start(void **state)
{
	static struct fixture school;

	(void)state;
	fixture_open(&school);
	fixture_train(&school);
	/* Advised jobs that a test leaves behind keep their slots. */
	health_start(&daemon_, school.model, "\"slots\":256,");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	health_stop(&daemon_);
	return 0;
}

TEST_GROUP(start, stop);

static int connect_one(void **state)
{
	(void)state;
	t = talk_open(&daemon_.fixture);
	return 0;
}

static int check_after(void **state)
{
	(void)state;
	talk_close(t);
	health_check(&daemon_, MORE_MB);
	return 0;
}

/* The code of the error that the line is answered with; "" for none. */
static const char *code_for(const char *line, size_t len)
{
	static char code[64];
	struct json *v = ask_bytes(t, line, len);

	snprintf(code, sizeof code, "%s", error_of(v));
	json_free(v);
	return code;
}

static char *repeat(const char *what, size_t n)
{
	struct strbuf b = { 0 };

	for (size_t i = 0; i < n; i++)
		strbuf_puts(&b, what);
	if (b.failed)
		die("out of memory");
	return b.text;
}

/* ---- bytes ---- */

TEST_WITH(test_binary_noise_is_refused_line_by_line, connect_one, check_after)
{
	struct rng rng = rng_stream(20261116, 1);
	uint8_t noise[2048];

	for (int round = 0; round < 200; round++) {
		size_t n = 1 + rng_below(&rng, sizeof noise);
		struct json *v;

		for (size_t i = 0; i < n; i++)
			noise[i] = (uint8_t)rng_below(&rng, 256);
		assert_true(send_bytes(t, noise, n));
		assert_true(talk_say(t, "\n{\"op\":\"hello\",\"id\":%d}", round));
		while ((v = talk_hear_json(t, PATIENCE_S)) && !is_ok(v)) {
			assert_string_equal(error_of(v), "bad_json");
			json_free(v);
		}
		assert_true(number_at(v, "id") == round);
		json_free(v);
	}
}

TEST_WITH(test_what_is_no_json_is_bad_json, connect_one, check_after)
{
#define LINE(s)                                                                                              \
	{                                                                                                    \
		s, sizeof s - 1                                                                              \
	}
	static const struct {
		const char *text;
		size_t len;
	} line[] = {
		LINE("{"),
		LINE("null"),
		LINE("7"),
		LINE("\"hello\""),
		LINE("[]"),
		LINE("hello"),
		LINE("{\"op\":\"hello\"} x"),
		LINE("{\"op\":\"hello\"}{\"op\":\"hello\"}"),
		LINE("{\"op\":\"hello\",}"),
		LINE("{'op':'hello'}"),
		LINE("\0"),
		LINE("{\"op\":\"hello\"}\0"),
		LINE("{\"op\":\"hel\0lo\"}"),
		LINE("{\"op\":\"hello\\u0000\"}"),
		LINE("{\"op\":\"hello\xff\"}"),
		LINE("{\"op\":\"\xc0\xaf\"}"), /* a slash in too many bytes */
		LINE("{\"op\":\"\xed\xa0\x80\"}"), /* half a surrogate pair */
		LINE("{\"op\":\"\\ud800\"}"),
		LINE("\xef\xbb\xbf{\"op\":\"hello\"}"), /* a byte order mark */
		LINE("{\"op\":\"hello\",\"op\":\"stats\"}"),
		LINE("{\"op\":\"hello\",\"\\u006fp\":\"stats\"}"), /* the same name in disguise */
		LINE("{\"op\":\"submit\",\"slo_s\":1e999}"),
		LINE("{\"op\":\"submit\",\"slo_s\":-1e999}"),
		LINE("{\"op\":\"submit\",\"slo_s\":NaN}"),
		LINE("{\"op\":\"submit\",\"slo_s\":Infinity}"),
		LINE("{\"op\":\"submit\",\"slo_s\":01}"),
		LINE("{\"op\":\"submit\",\"slo_s\":+1}"),
		LINE("{\"op\":\"submit\",\"slo_s\":0x10}"),
		LINE("{\"op\":\"submit\",\"slo_s\":1.}"),
		LINE("{\"op\":\"submit\",\"slo_s\":"
		     "1111111111111111111111111111111111111111111111111111111111111111}"), /* 64 digits */
		LINE("{\"op\":\"hello\",\t\"id\":\"a\tb\"}"), /* a control character in a string */
	};
#undef LINE
	for (size_t i = 0; i < sizeof line / sizeof line[0]; i++) {
		const char *code = code_for(line[i].text, line[i].len);

		if (strcmp(code, "bad_json"))
			fail_msg("line %zu is answered with '%s': %s", i, code, line[i].text);
	}
}

TEST_WITH(test_depth_is_bounded, connect_one, check_after)
{
	char *deep = repeat("[", 60000), line[256], *open, *close;

	assert_string_equal(code_for(deep, 60000), "bad_json");
	free(deep);
	for (size_t depth = 31; depth <= 32; depth++) { /* the object itself is the first of 32 levels */
		open = repeat("[", depth);
		close = repeat("]", depth);
		snprintf(line, sizeof line, "{\"op\":\"hello\",\"id\":%s%s}", open, close);
		assert_string_equal(code_for(line, strlen(line)), depth == 31 ? "bad_field" : "bad_json");
		free(open);
		free(close);
	}
}

TEST_WITH(test_empty_lines_and_carriage_returns_are_nothing, connect_one, check_after)
{
	static const char lines[] = "\n\r\n\n\r\n{\"op\":\"hello\",\"id\":1}\r\n";
	struct json *v;

	assert_true(send_bytes(t, lines, sizeof lines - 1));
	v = talk_hear_json(t, PATIENCE_S);
	assert_true(is_ok(v) && number_at(v, "id") == 1.0);
	json_free(v);
}

/* {"op":"hello","id":"   "} padded with blanks to this length. */
static char *padded(size_t len)
{
	char *line = mem_alloc(len + 1);

	if (!line)
		die("out of memory");
	memset(line, ' ', len);
	memcpy(line, "{\"op\":\"hello\",\"id\":7", 20);
	line[len - 1] = '}';
	line[len] = '\0';
	return line;
}

TEST_WITH(test_a_line_has_65536_bytes_and_not_one_more, connect_one, check_after)
{
	for (size_t len = 65535; len <= 65538; len++) {
		char *line = padded(len);

		assert_string_equal(code_for(line, len), len <= 65536 ? "" : "line_too_long");
		line[len] = '\r'; /* which does not count */
		assert_string_equal(code_for(line, len + 1), len <= 65536 ? "" : "line_too_long");
		free(line);
	}
}

TEST_WITH(test_a_line_without_end_costs_no_memory, connect_one, check_after)
{
	char *much = repeat("x", (size_t)1 << 20);
	struct json *v;
	double before = rss_mb(daemon_.fixture.pid);

	for (int i = 0; i < 64; i++)
		assert_true(send_bytes(t, much, (size_t)1 << 20));
	assert_true(sanitized() || rss_mb(daemon_.fixture.pid) - before < 4.0);
	assert_true(talk_say(t, "\n{\"op\":\"hello\",\"id\":\"after\"}"));
	v = talk_hear_json(t, PATIENCE_S);
	assert_string_equal(error_of(v), "line_too_long"); /* once */
	json_free(v);
	v = talk_hear_json(t, PATIENCE_S);
	assert_string_equal(text_at(v, "id"), "after");
	json_free(v);
	free(much);
}

TEST_WITH(test_one_byte_at_a_time_is_a_request, connect_one, check_after)
{
	static const char line[] = "{\"op\":\"predict\",\"type\":\"any\",\"slo_s\":900,\"id\":\"slow\"}\n";
	struct json *v;

	for (size_t i = 0; i < sizeof line - 1; i++) {
		assert_true(send_bytes(t, line + i, 1));
		sleep_s(0.001);
	}
	v = talk_hear_json(t, PATIENCE_S);
	assert_true(is_ok(v));
	assert_string_equal(text_at(v, "id"), "slow");
	json_free(v);
}

TEST_WITH(test_a_closed_side_still_gets_its_answers, connect_one, check_after)
{
	static const char lines[] =
		"{\"op\":\"submit\",\"type\":\"any\",\"mode\":\"advise\",\"id\":1}\n"
		"{\"op\":\"list\",\"limit\":1,\"id\":2}\n{\"op\":\"hello\",\"id\":3}"; /* no newline */

	assert_true(send_bytes(t, lines, sizeof lines - 1));
	shutdown(talk_fd(t), SHUT_WR);
	for (int i = 1; i <= 3; i++) {
		struct json *v = talk_hear_json(t, PATIENCE_S);

		assert_true(is_ok(v) && number_at(v, "id") == i);
		json_free(v);
	}
	assert_null(talk_hear(t, PATIENCE_S)); /* and then the end */
}

TEST_WITH(test_ten_thousand_requests_before_the_first_is_read, connect_one, check_after)
{
	enum { N = 10000 };
	double began = now_s();
	struct talk *other;
	pid_t writer = fork();

	if (writer ==
	    0) { /* blocks when the daemon stops reading, as it must while nobody reads its answers */
		bool good = true;

		for (int i = 0; i < N && good; i++)
			good = i % 10 ? talk_say(t, "{\"op\":\"hello\",\"id\":%d}", i)
				      : talk_say(t, "{\"op\":\"explain\",\"job\":\"1\",\"id\":%d}", i);
		_exit(good ? 0 : 1);
	}
	sleep_s(0.3);
	other = talk_open(&daemon_.fixture);
	json_free(talk_ask(other, "{\"op\":\"hello\"}")); /* others are served */
	assert_true(rss_mb(daemon_.fixture.pid) - daemon_.rss_mb < MORE_MB || sanitized());
	talk_close(other);
	for (int i = 0; i < N; i++) {
		struct json *v = talk_hear_json(t, PATIENCE_S);

		assert_non_null(v);
		assert_true(number_at(v, "id") == i); /* in order, none left out */
		json_free(v);
	}
	assert_int_equal(waitpid(writer, &(int){ 0 }, 0), writer);
	printf("# %d pipelined requests answered in %.2f s\n", N, now_s() - began);
}

/* ---- members ---- */

TEST_WITH(test_ids_of_all_kinds_come_back, connect_one, check_after)
{
	static const char *const good[] = { "0",
					    "-0.5",
					    "7",
					    "1e308",
					    "9007199254740992",
					    "\"\"",
					    "\"a\"",
					    "\"\\\"\\\\/\\b\\f\\n\\r\\t\"",
					    "\"\\u00e9\\u20ac\\ud83d\\ude00\"",
					    "\"\\u0001\\u001f\\u007f\"",
					    "\"{\\\"ok\\\":true}\"" };
	static const char *const bad[] = { "true", "[]", "{}", "[1]", "{\"a\":1}" };
	char *long_id = repeat("\\u0001", 64), *too_long = repeat("x", 65);
	char line[1024];
	struct json *v, *sent = NULL;

	for (size_t i = 0; i <= sizeof good / sizeof good[0]; i++) {
		snprintf(line, sizeof line, "{\"op\":\"hello\",\"id\":%s%s%s}", i ? "" : "\"",
			 i ? good[i - 1] : long_id, i ? "" : "\"");
		v = ask_bytes(t, line, strlen(line));
		assert_int_equal(json_parse("sent", line, strlen(line), &sent, NULL), 0);
		assert_true(is_ok(v));
		assert_string_equal(text_at(v, "id"), text_at(sent, "id"));
		assert_true(json_type(json_get(v, "id")) == json_type(json_get(sent, "id")));
		assert_true(json_number(json_get(v, "id"), 0) == json_number(json_get(sent, "id"), 0));
		json_free(v);
		json_free(sent);
	}
	for (size_t i = 0; i <= sizeof bad / sizeof bad[0]; i++) {
		snprintf(line, sizeof line, "{\"op\":\"hello\",\"id\":%s%s%s}", i ? "" : "\"",
			 i ? bad[i - 1] : too_long, i ? "" : "\"");
		v = ask_bytes(t, line, strlen(line));
		assert_string_equal(error_of(v), "bad_field");
		assert_string_equal(text_at(v, "error.field"), "id");
		assert_null(json_get(v, "id"));
		json_free(v);
	}
	v = talk_ask(t, "{\"op\":\"hello\",\"id\":null}");
	assert_true(is_ok(v) && !json_get(v, "id"));
	json_free(v);
	free(long_id);
	free(too_long);
}

TEST_WITH(test_other_versions_are_refused, connect_one, check_after)
{
	static const char *const version[] = {
		"2", "0", "1.5", "-1", "1e300", "\"1\"", "true", "null", "[1]"
	};

	for (size_t i = 0; i < sizeof version / sizeof version[0]; i++) {
		struct json *v = talk_ask(t, "{\"v\":%s,\"op\":\"hello\",\"id\":%zu}", version[i], i);

		assert_string_equal(error_of(v), "bad_version");
		assert_true(number_at(v, "id") == (double)i);
		json_free(v);
	}
	json_free(talk_ask(t, "{\"v\":1.0,\"op\":\"hello\"}"));
}

TEST_WITH(test_unknown_ops_and_members_are_refused, connect_one, check_after)
{
	static const char *const op[] = { "hello",  "submit",  "predict",  "status",   "explain", "list",
					  "cancel", "started", "finished", "progress", "watch",   "unwatch",
					  "stats",  "reload",  "retrain",  "drain" };
	char *name = repeat("n", 60000);

	for (size_t i = 0; i < sizeof op / sizeof op[0]; i++) {
		struct json *v = talk_ask(t, "{\"op\":\"%s\",\"%%n%%s\\n\":1}", op[i]);

		assert_string_equal(error_of(v), "unknown_field");
		json_free(v);
		v = talk_ask(t, "{\"op\":\"%s\",\"%s\":1}", op[i], name);
		assert_string_equal(error_of(v), "unknown_field");
		assert_true(strlen(text_at(v, "error.field")) < 100);
		json_free(v);
	}
	{
		static const char *const no_op[] = { "\"\"", "\"HELLO\"", "\"hello \"", "\"../hello\"",
						     "\"op_hello\"" };

		for (size_t i = 0; i < sizeof no_op / sizeof no_op[0]; i++) {
			struct json *v = talk_ask(t, "{\"op\":%s}", no_op[i]);

			assert_string_equal(error_of(v), "unknown_op");
			json_free(v);
		}
	}
	free(name);
}

/* Whatever is in a field, the answer is a decision or says which field is at fault; never "internal". */
static void abuse_field(const char *before, const char *field, const char *after)
{
	static const char *const value[] = { "-1",
					     "0",
					     "-0.0",
					     "0.5",
					     "1.5",
					     "1e-308",
					     "5e-324",
					     "1e308",
					     "-1e308",
					     "4294967297",
					     "9007199254740993",
					     "18446744073709551616",
					     "\"1\"",
					     "\"\"",
					     "\"NaN\"",
					     "true",
					     "false",
					     "[]",
					     "[1]",
					     "{}",
					     "{\"a\":1}",
					     "null" };

	for (size_t i = 0; i < sizeof value / sizeof value[0]; i++) {
		struct json *v = talk_ask(t, "{%s\"%s\":%s%s}", before, field, value[i], after);
		const char *code = error_of(v);

		if (!is_ok(v) && strcmp(code, "bad_field") && strcmp(code, "unknown_job") &&
		    strcmp(code, "wrong_state"))
			fail_msg("%s %s: answered with %s", field, value[i], code);
		if (!strcmp(code, "bad_field"))
			assert_string_equal(text_at(v, "error.field"), field);
		json_free(v);
	}
}

TEST_WITH(test_numbers_in_every_field, connect_one, check_after)
{
	static const char *const of_submit[] = { "cpus",    "slo_s",    "confidence",  "max_memory_mb",
						 "batches", "deadline", "best_effort", "dry_run" };
	static const char *const of_finished[] = { "exit_code", "accuracy", "run_s" };
	char before[160], id[24];

	for (size_t i = 0; i < sizeof of_submit / sizeof of_submit[0]; i++) {
		bool dry = !strcmp(of_submit[i], "dry_run");

		abuse_field("\"op\":\"submit\",\"type\":\"any\",\"mode\":\"advise\",", of_submit[i],
			    dry ? "" : ",\"dry_run\":true");
		if (!dry)
			abuse_field("\"op\":\"predict\",\"type\":\"any\",", of_submit[i], "");
	}
	for (size_t i = 0; i < sizeof of_finished / sizeof of_finished[0]; i++) {
		snprintf(
			id, sizeof id, "%llu",
			(unsigned long long)submit(t, ",\"type\":\"any\",\"mode\":\"advise\",\"slo_s\":1e6"));
		json_free(talk_ask(t, "{\"op\":\"started\",\"job\":\"%s\"}", id));
		snprintf(before, sizeof before, "\"op\":\"progress\",\"job\":\"%s\",", id);
		abuse_field(before, "done", "");
		snprintf(before, sizeof before, "\"op\":\"finished\",\"job\":\"%s\",", id);
		abuse_field(before, of_finished[i], "");
		json_free(await(t, strtoull(id, NULL, 10), "done"));
	}
	abuse_field("\"op\":\"list\",", "limit", "");
	abuse_field("\"op\":\"list\",", "before", "");
	abuse_field("\"op\":\"list\",", "state", "");
	abuse_field("\"op\":\"list\",", "type", "");
	abuse_field("\"op\":\"list\",", "mine", "");
	abuse_field("\"op\":\"status\",", "job", "");
	abuse_field("\"op\":\"explain\",", "job", "");
	abuse_field("\"op\":\"cancel\",", "job", "");
	abuse_field("\"op\":\"watch\",", "job", "");
	abuse_field("\"op\":\"drain\",", "stop", ",\"off\":true");
	json_free(talk_ask(t, "{\"op\":\"drain\",\"off\":true}"));
}

TEST_WITH(test_numbers_in_parameters, connect_one, check_after)
{
	static const char *const bad[] = { "0",      "10",     "1.5",     "-1",      "1e308",   "\"\"",
					   "\" 1\"", "\"1 \"", "\"0x1\"", "\"1e1\"", "\"nan\"", "\"inf\"",
					   "true",   "null",   "[]",      "{}",      "\"1;2\"" };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct json *v = talk_ask(
			t, "{\"op\":\"submit\",\"type\":\"named\",\"params\":{\"name\":\"x\",\"count\":%s}}",
			bad[i]);

		if (strcmp(error_of(v), "bad_field") || strcmp(text_at(v, "error.field"), "count"))
			fail_msg("count %s: answered with '%s'", bad[i], error_of(v));
		json_free(v);
	}
}

/* ---- words that want to be something else ---- */

TEST_WITH(test_words_cannot_be_commands_options_or_paths, connect_one, check_after)
{
	static const char *const bad[] = {
		"",
		" ",
		"a b",
		";reboot",
		"$(reboot)",
		"`reboot`",
		"a|b",
		"a&b",
		"a>b",
		"a<b",
		"$HOME",
		"${batch}",
		"{job}",
		"-rf",
		"--help",
		"-",
		"..",
		"../../etc/passwd",
		"/etc/passwd",
		".ssh",
		"a/b",
		"a\\\\b",
		"a\\nb",
		"a\\tb",
		"a'b",
		"a\\\"b",
		"\\u00e9",
		"*",
		"?",
		"~root",
		"a=b",
		"#a",
		"!a",
		"%s",
		"a\\u007fb",
		"%n%n%n",
	};
	static const char *const good[] = { "a", "a-b", "a..b", "A_1.2+3-4", "0", "+x", "_" };
	char *longest = repeat("w", 128), *too_long = repeat("w", 129);

	for (size_t i = 0; i <= sizeof bad / sizeof bad[0]; i++) {
		const char *word = i ? bad[i - 1] : too_long;
		struct json *v = talk_ask(
			t, "{\"op\":\"submit\",\"type\":\"named\",\"params\":{\"name\":\"%s\"}}", word);

		if (strcmp(error_of(v), "bad_field") || strcmp(text_at(v, "error.field"), "name"))
			fail_msg("the word '%s' is answered with '%s'", word, error_of(v));
		json_free(v);
	}
	for (size_t i = 0; i <= sizeof good / sizeof good[0]; i++) {
		const char *word = i ? good[i - 1] : longest;
		struct json *v = talk_ask(
			t, "{\"op\":\"submit\",\"type\":\"named\",\"params\":{\"name\":\"%s\"}}", word);

		assert_true(is_ok(v));
		assert_string_equal(text_at(v, "job.params.name"), word);
		json_free(await(t, strtoull(text_at(v, "job.job"), NULL, 10), "done"));
		json_free(v);
	}
	free(longest);
	free(too_long);
}

TEST_WITH(test_keys_and_tags_have_128_bytes, connect_one, check_after)
{
	static const char *const field[] = { "key", "tag" };
	char *longest = repeat("k", 128), *too_long = repeat("k", 129);

	for (size_t i = 0; i < 2; i++) {
		struct json *v =
			talk_ask(t, "{\"op\":\"submit\",\"type\":\"any\",\"mode\":\"advise\",\"%s\":\"%s\"}",
				 field[i], longest);

		assert_true(is_ok(v));
		json_free(v);
		v = talk_ask(t, "{\"op\":\"submit\",\"type\":\"any\",\"mode\":\"advise\",\"%s\":\"%s\"}",
			     field[i], too_long);
		assert_string_equal(error_of(v), "bad_field");
		assert_string_equal(text_at(v, "error.field"), field[i]);
		json_free(v);
		abuse_field("\"op\":\"submit\",\"type\":\"any\",\"mode\":\"advise\",\"dry_run\":true,",
			    field[i], "");
	}
	free(longest);
	free(too_long);
}

TEST_WITH(test_a_tag_is_told_as_it_was_given, connect_one, check_after)
{
	static const char tag[] = "\",\"admin\":true,\"x\":\"\n\x01 \xe2\x82\xac </script> ,\"decisions\":[";
	struct strbuf line = { 0 };
	struct json_writer w;
	struct json *v;
	unsigned long long id;

	json_begin(&w, &line, false);
	json_open(&w, '{');
	json_kv_string(&w, "op", "submit");
	json_kv_string(&w, "type", "any");
	json_kv_string(&w, "mode", "advise");
	json_kv_string(&w, "tag", tag);
	json_kv_string(&w, "key", tag);
	json_close(&w, '}');
	v = ask_bytes(t, line.text, line.len);
	assert_string_equal(text_at(v, "job.tag"), tag);
	id = strtoull(text_at(v, "job.job"), NULL, 10);
	json_free(v);
	v = talk_ask(t, "{\"op\":\"explain\",\"job\":\"%llu\"}", id);
	assert_string_equal(text_at(v, "job.tag"), tag);
	assert_true(json_type(json_get(v, "decisions")) == JSON_ARRAY);
	json_free(v);
	v = talk_ask(t, "{\"op\":\"list\",\"limit\":1}");
	assert_string_equal(text_at(json_first(json_get(v, "jobs")), "tag"), tag);
	json_free(v);
	v = ask_bytes(t, line.text, line.len);
	assert_true(json_bool(json_get(v, "duplicate"), false));
	json_free(v);
	strbuf_release(&line);
}

static void ask_batches(size_t n, size_t first, const char *code)
{
	struct strbuf list = { 0 };
	struct json *v;

	for (size_t i = 0; i < n; i++)
		strbuf_printf(&list, "%s%zu", i ? "," : "", first + n - i); /* any order will do */
	v = talk_ask(t, "{\"op\":\"predict\",\"type\":\"any\",\"batches\":[%s]}", strbuf_text(&list));
	assert_string_equal(error_of(v), code);
	if (!*code)
		assert_int_equal(json_size(json_get(json_get(v, "decision"), "candidates")), n);
	json_free(v);
	strbuf_release(&list);
}

TEST_WITH(test_64_batches_are_the_most, connect_one, check_after)
{
	static const char *const bad[] = { "64,64",  "0",    "-64",  "64.5",   "1e10",
					   "\"64\"", "null", "[64]", "64,true" };

	ask_batches(1, 999999999, "");
	ask_batches(64, 1, "");
	ask_batches(65, 1, "bad_field");
	ask_batches(0, 1, "bad_field");
	ask_batches(8000, 1, "bad_field");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct json *v =
			talk_ask(t, "{\"op\":\"predict\",\"type\":\"any\",\"batches\":[%s]}", bad[i]);

		assert_string_equal(error_of(v), "bad_field");
		assert_string_equal(text_at(v, "error.field"), "batches");
		json_free(v);
	}
}
