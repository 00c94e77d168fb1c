/* configs/README.md against the tables of keys: every key has a row with its default and range, and no row is
 * left. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "scheduler/config/config_parts.h"
#include "scheduler/config/type_parts.h"
#include "tests/support/test.h"

static char *readme;

static int read_document(void **state)
{
	size_t len;
	struct err err = { 0 };

	(void)state;
	if (io_read_file("configs/README.md", 1 << 20, &readme, &len, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int drop_document(void **state)
{
	(void)state;
	free(readme);
	return 0;
}

TEST_GROUP(read_document, drop_document);

/* Cell i (0: the key) of the row of `key` in a section; "" where there is none. */
static const char *cell(const char *section, const char *key, int i, char *out, size_t size)
{
	const char *from = strstr(readme, section), *end, *row;
	char start[96];

	assert_non_null(from);
	end = strstr(from + 1, "\n##");
	snprintf(start, sizeof start, "\n| `%s` |", key);
	row = strstr(from, start);
	if (!row || (end && row > end))
		return "";
	for (row++; i > 0; i--)
		row = strchr(row + 1, '|');
	row += 1 + strspn(row + 1, " ");
	snprintf(out, size, "%.*s", (int)strcspn(row, "|\n"), row);
	while (*out && out[strlen(out) - 1] == ' ')
		out[strlen(out) - 1] = '\0';
	return out;
}

/* "2^30", "1e7", "0.05", "`true`"; NaN: something else. */
static double number_of(const char *text)
{
	char *end;
	double v;

	if (!strcmp(text, "`true`") || !strcmp(text, "`false`"))
		return !strcmp(text, "`true`");
	v = strtod(text, &end);
	if (end == text)
		return NAN;
	return *end == '^' ? pow(v, strtod(end + 1, NULL)) : v;
}

/* Read by its kind alone, so that default and range are in the table. */
static bool is_number(const struct key *k)
{
	return !k->read && (k->kind == KEY_NUMBER || k->kind == KEY_SIZE || k->kind == KEY_UINT64 ||
			    k->kind == KEY_UINT32 || k->kind == KEY_INT);
}

static void check_range(const char *key, const struct key *k, const char *range)
{
	const char *to = strstr(range, " to ");
	bool low_is_a_key = range[0] == '`'; /* "`min` to 4096" */

	if (!to)
		fail_msg("%s: '%s' is no range", key, range);
	if ((!low_is_a_key && number_of(range) != k->min) || (to[4] != '`' && number_of(to + 4) != k->max))
		fail_msg("%s: the range is %g to %g, not %s", key, k->min, k->max, range);
}

static void check_key(const char *section, const char *key, const struct key *k)
{
	char text[512];
	const char *given;
	bool found_out = is_number(k) && (isnan(k->initial) || k->initial < k->min);

	if (!*cell(section, key, 0, text, sizeof text))
		fail_msg("%s: %s has no row", section, key);
	given = cell(section, key, 2, text, sizeof text);
	if (is_number(k) && !found_out && number_of(given) != k->initial)
		fail_msg("%s: the default is %g, not %s", key, k->initial, given);
	if (k->kind == KEY_BOOL && number_of(given) != k->initial)
		fail_msg("%s: the default is %g, not %s", key, k->initial, given);
	if (k->kind == KEY_CHOICE && given[0] == '`') {
		char name[64];

		snprintf(name, sizeof name, "`%s`", k->choice[(int)k->initial]);
		assert_string_equal(given, name);
	}
	if (k->initial_text && !strstr(given, k->initial_text))
		fail_msg("%s: the default is %s, not %s", key, k->initial_text, given);
	if (is_number(k))
		check_range(key, k, cell(section, key, 3, text, sizeof text));
}

static void check_table(const char *section, const char *prefix, const struct key *keys)
{
	for (const struct key *k = keys; k->name; k++) {
		char key[96];

		snprintf(key, sizeof key, "%s%s", prefix, k->name);
		if (k->kind == KEY_PART && !strcmp(k->name, "learning")) {
			check_table("### Learning", "", k->part);
		} else if (k->kind == KEY_PART) {
			strcat(key, ".");
			check_table(section, key, k->part);
		} else if (k->kind == KEY_RETIRED) {
			char text[512];

			if (*cell(section, key, 0, text, sizeof text))
				fail_msg("%s: a retired key has a row", key);
		} else if (!strcmp(key, "params") || !strcmp(key, "env")) {
			strcat(key, ".NAME");
			check_key(section, key, k);
		} else {
			check_key(section, key, k);
		}
	}
}

TEST(test_every_key_is_documented_with_its_default_and_range)
{
	check_table("## The daemon", "", config_keys);
	check_table("### Tenants", "", tenant_keys);
	check_table("### Engines", "", engine_keys);
	check_table("### Job types", "", job_type_keys);
}

TEST(test_the_document_names_the_keys_that_need_a_restart)
{
	const char *from = strstr(readme, "A reload (SIGHUP) takes everything but"), *end;

	assert_non_null(from);
	end = strstr(from, "which need a restart");
	assert_non_null(end);
	for (const struct key *k = config_keys; k->name; k++) {
		char name[64];
		const char *at;

		snprintf(name, sizeof name, "`%s`", k->name);
		at = strstr(from, name);
		if ((at && at < end) != k->restart)
			fail_msg("%s: needs a restart or not, and the document says otherwise", k->name);
	}
}

TEST(test_tables_fit_and_no_key_is_there_twice)
{
	static const struct key *const all[] = { config_keys, tenant_keys, job_type_keys, engine_keys };

	for (size_t t = 0; t < 4; t++) {
		const char *name[KEYS_MAX + 1];
		size_t n = 0;

		keys_names(all[t], name);
		for (; name[n]; n++) {
			for (size_t i = 0; i < n; i++)
				assert_string_not_equal(name[i], name[n]);
		}
		assert_null(all[t][n].name); /* none was cut off */
	}
}

/* ---- retired keys ---- */

struct part {
	bool old_b, old_c;
	double kept;
};

struct whole {
	bool old_a;
	struct part part;
};

static const struct key part_keys[] = {
	{ "b", KEY_RETIRED, .at = offsetof(struct part, old_b) },
	{ "kept", KEY_NUMBER, .at = offsetof(struct part, kept), 0.0, 9.0, 2.5 },
	{ "c", KEY_RETIRED, .at = offsetof(struct part, old_c) },
	{ 0 },
};

static const struct key whole_keys[] = {
	{ "a", KEY_RETIRED, .at = offsetof(struct whole, old_a) },
	{ "part", KEY_PART, .at = offsetof(struct whole, part), .part = part_keys },
	{ 0 },
};

static void note(void *owner, const char *key)
{
	strbuf_printf(owner, "%s ", key);
}

static void retired_of(const char *text, double kept, const char *expected, const char *written)
{
	const char *known[KEYS_MAX + 1];
	struct strbuf told = { 0 }, out = { 0 };
	struct json_writer w;
	struct whole x;
	struct json *v = NULL;
	struct fields f;

	assert_int_equal(json_parse("c", text, strlen(text), &v, NULL), 0);
	keys_names(whole_keys, known);
	keys_default(whole_keys, &x);
	fields_open(&f, "c", ": ", v, known, NULL);
	keys_read(&f, whole_keys, &x);
	assert_int_equal(f.rc, 0);
	assert_true(x.part.kept == kept);
	keys_retired(whole_keys, &x, note, &told);
	assert_string_equal(strbuf_text(&told), expected);
	json_begin(&w, &out, false);
	json_open(&w, '{');
	keys_write(whole_keys, &x, &w);
	json_close(&w, '}');
	assert_string_equal(strbuf_text(&out), written);
	json_free(v);
	strbuf_release(&told);
	strbuf_release(&out);
}

TEST(test_retired_keys_are_accepted_and_named_and_not_written)
{
	retired_of("{}", 2.5, "", "{\"part\":{\"kept\":2.5}}");
	retired_of("{\"a\":[1,\"x\"],\"part\":{\"kept\":4,\"c\":-7}}", 4.0, "a part.c ",
		   "{\"part\":{\"kept\":4}}");
	retired_of("{\"part\":{\"b\":0.5}}", 2.5, "part.b ", "{\"part\":{\"kept\":2.5}}");
}
