/* common/json/lines: a journal reads back line by line; what is torn is cut, what is damaged is refused, and
 * a line that could not be written leaves nothing behind. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/io.h"
#include "common/json/lines.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

struct seen {
	double sum;
	size_t lines;
};

static int take(void *owner, const struct json *v, size_t line, struct err *err)
{
	struct seen *s = owner;
	double n = json_number(json_get(v, "n"), -1.0);

	if (n == 99.0)
		return err_fail(err, ERR_FORMAT, "line %zu is of another campaign", line);
	if (n < 0.0)
		return JSON_LINES_STRANGE;
	s->sum += n;
	s->lines++;
	return 0;
}

static void put(const char *text)
{
	assert_int_equal(
		io_write_file(support_path(support_temp_dir(), "journal.jsonl"), text, strlen(text), NULL),
		0);
}

static void holds(const char *want)
{
	char *text;
	size_t len;

	assert_int_equal(
		io_read_file(support_path(support_temp_dir(), "journal.jsonl"), 1 << 20, &text, &len, NULL),
		0);
	assert_string_equal(text, want);
	free(text);
}

static int look(struct json_lines *f, struct seen *s, const char *busy, struct err *err)
{
	const struct json_lines_reader r = { 1 << 20, take, s, "this is no number" };
	int rc = json_lines_open(f, support_temp_dir(), busy, err);

	return rc ? rc : json_lines_read(f, &r, err);
}

static int add(struct json_lines *f, const char *text, bool sync, struct err *err)
{
	struct strbuf line = { 0 };
	int rc;

	strbuf_puts(&line, text);
	rc = json_lines_append(f, &line, sync, err);
	strbuf_release(&line);
	return rc;
}

TEST(test_what_was_appended_is_read_back)
{
	struct json_lines f;
	struct seen s = { 0 };

	put("");
	assert_int_equal(look(&f, &s, "is testing with it", NULL), 0);
	assert_int_equal(add(&f, "{\"n\":2.5}\n", false, NULL), 0);
	assert_int_equal(add(&f, "{\"n\":4}\n", true, NULL), 0);
	json_lines_close(&f);
	assert_int_equal(look(&f, &s, NULL, NULL), 0);
	assert_true(s.sum == 6.5 && s.lines == 2 && f.len == 18 && f.torn == 0);
	json_lines_close(&f);
}

TEST(test_a_reader_finds_nothing_where_there_is_no_file)
{
	struct json_lines f;
	struct seen s = { 0 };
	const struct json_lines_reader r = { 1 << 20, take, &s, "" };

	assert_int_equal(json_lines_open(&f, "no/such/folder", NULL, NULL), 0);
	assert_int_equal(json_lines_read(&f, &r, NULL), 0);
	assert_true(f.len == 0 && f.torn == 0 && s.lines == 0);
	json_lines_close(&f);
	assert_int_equal(json_lines_open(&f, "no/such/folder", "is here", NULL), -ERR_IO);
	json_lines_close(&f);
}

TEST(test_a_torn_line_is_cut_off)
{
	static const char *const torn[] = { "{\"n\":1", "{\"n\":1}", "garbage\n", "{\"m\":1}\n", "\n" };

	for (size_t i = 0; i < sizeof torn / sizeof *torn; i++) {
		struct json_lines f;
		struct seen s = { 0 };
		char text[64];

		snprintf(text, sizeof text, "{\"n\":3}\n%s", torn[i]);
		put(text);
		assert_int_equal(look(&f, &s, "is here", NULL), 0);
		assert_int_equal(f.torn, strlen(torn[i]));
		assert_true(s.lines == 1);
		assert_int_equal(json_lines_cut(&f, NULL), 0);
		holds("{\"n\":3}\n");
		json_lines_close(&f);
	}
}

TEST(test_damage_is_refused_with_its_line)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "{\"n\":1}\ngarbage\n{\"n\":2}\n", "journal.jsonl:2: the line is damaged" },
		{ "{\"n\":1}\n{\"m\":1}\n{\"n\":2}\n", "journal.jsonl:2: this is no number" },
		{ "{\"n\":99}\n", "line 1 is of another campaign" }, /* the last one, too */
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct json_lines f;
		struct seen s = { 0 };
		struct err err = { 0 };

		put(bad[i].text);
		assert_int_equal(look(&f, &s, "is here", &err), -ERR_FORMAT);
		if (!strstr(err.text, bad[i].why))
			fail_msg("'%s' is not in: %s", bad[i].why, err.text);
		json_lines_close(&f);
		holds(bad[i].text);
	}
}

TEST(test_one_writer_at_a_time)
{
	struct json_lines f, other;
	struct seen s = { 0 };
	struct err err = { 0 };

	put("{\"n\":1}\n");
	assert_int_equal(look(&f, &s, "is at this campaign", NULL), 0);
	assert_int_equal(look(&other, &s, "is at this campaign", &err), -ERR_BUSY);
	assert_non_null(strstr(err.text, "another postrider is at this campaign"));
	json_lines_close(&other);
	assert_int_equal(look(&other, &s, NULL, NULL), 0);
	json_lines_close(&other);
	json_lines_close(&f);
}

/* The disk takes the first half of a line. Another thread's line must not follow that half. */
TEST(test_half_a_line_does_not_stay)
{
	struct rlimit was, small;
	struct json_lines f;
	struct seen s = { 0 };
	struct err err = { 0 };

	put("{\"n\":1}\n");
	assert_int_equal(look(&f, &s, "is here", NULL), 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	small = was;
	small.rlim_cur = 12;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(add(&f, "{\"n\":22222}\n", false, &err), -ERR_IO);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_non_null(strstr(err.text, "cannot write"));
	holds("{\"n\":1}\n");
	assert_int_equal(add(&f, "{\"n\":5}\n", false, NULL), 0);
	json_lines_close(&f);
	s = (struct seen){ 0 };
	assert_int_equal(look(&f, &s, NULL, NULL), 0);
	assert_true(s.lines == 2 && s.sum == 6.0 && f.torn == 0);
	json_lines_close(&f);
}
