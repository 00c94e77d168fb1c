/* common/text: numbers bit for bit as strtod reads them, durations, names that were nearly right. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/text/text.h"
#include "tests/support/test.h"

TEST(test_text_number_reads_decimal_notation)
{
	static const char *const good[] = { "0",
					    "-0",
					    "7",
					    "+2.37",
					    ".5",
					    "5.",
					    "-1e3",
					    "1E+3",
					    "6.02e23",
					    "1e-400",
					    "00012.50",
					    "1e22",
					    "1e23",
					    "9007199254740993",
					    "123456789012345678901234567890",
					    "4.9e-324",
					    "2.2250738585072011e-308",
					    "1.7976931348623157e308",
					    "0.000000000000000000000000000001",
					    "1e0000000000000000000005",
					    "0.1e-0",
					    "0e999999999999" };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		double v = -77.0, want = strtod(good[i], NULL);

		if (!text_number(good[i], &v))
			fail_msg("'%s' refused", good[i]);
		assert_memory_equal(&v, &want, sizeof v); /* also the sign of zero */
	}
}

TEST(test_text_number_refuses_everything_else)
{
	static const char *const bad[] = { "",         " ",     "-",   "+",     ".",       "e5",    "1e",
					   "1e+",      " 1",    "1 ",  "1\n",   "0x10",    "inf",   "nan",
					   "infinity", "-inf",  "1,5", "1.2.3", "--1",     "1e400", "-1e400",
					   "1e5.5",    "12abc", "NaN", "1_000", "\xc2\xb2" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		double v = -77.25;

		if (text_number(bad[i], &v))
			fail_msg("'%s' accepted", bad[i]);
		assert_true(v == -77.25); /* results are written only on success */
	}
}

TEST(test_text_number_agrees_with_strtod_to_the_last_bit)
{
	struct rng r = rng_stream(1990, 1);
	char text[96];

	for (int i = 0; i < 300000; i++) {
		uint64_t a = rng_next(&r), b = rng_next(&r);
		double v, want;

		switch (i % 6) {
		case 0:
			snprintf(text, sizeof text, "%u.%u", (unsigned)a % 100000, (unsigned)b % 10000);
			break;
		case 1:
			snprintf(text, sizeof text, "%llue%d", (unsigned long long)a, (int)(b % 80) - 40);
			break;
		case 2:
			snprintf(text, sizeof text, "0.000%llu%llu", (unsigned long long)a,
				 (unsigned long long)b);
			break;
		case 3:
			snprintf(text, sizeof text, "-%llu.%llue-%u", (unsigned long long)(a >> 11),
				 (unsigned long long)(b >> 40), (unsigned)(a % 30));
			break;
		case 4: snprintf(text, sizeof text, "%.17g", rng_normal(&r) * 1e-5); break;
		default: snprintf(text, sizeof text, "%llu000", (unsigned long long)(a >> 12)); break;
		}
		want = strtod(text, NULL);
		if (!text_number(text, &v) || v != want)
			fail_msg("%s read as %.17g, not %.17g", text, v, want);
	}
}

TEST(test_text_uint64_takes_digits_and_nothing_else)
{
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "18446744073709551616", "99999999999999999999"
	};
	uint64_t v = 5;

	assert_true(text_uint64("18446744073709551615", &v) && v == UINT64_MAX);
	assert_true(text_uint64("007", &v) && v == 7);
	assert_true(text_uint64("0", &v) && v == 0);
	v = 5;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (text_uint64(bad[i], &v))
			fail_msg("'%s' accepted", bad[i]);
		assert_int_equal(v, 5);
	}
}

TEST(test_text_shortest_reads_back_as_the_same_double)
{
	struct rng r = rng_stream(1990, 2);
	char buf[32];

	for (int i = 0; i < 200000; i++) {
		uint64_t bits = rng_next(&r);
		double v, back;

		memcpy(&v, &bits, sizeof v);
		if (!isfinite(v))
			continue;
		assert_ptr_equal(text_shortest(v, buf), buf);
		assert_true(strlen(buf) < 32);
		if (!text_number(buf, &back) || memcmp(&back, &v, sizeof v) != 0)
			fail_msg("%.17g became %s", v, buf);
	}
}

TEST(test_text_shortest_is_short_where_it_can_be)
{
	static const struct {
		double v;
		const char *text;
	} known[] = {
		{ 0.1, "0.1" },
		{ 2.37, "2.37" },
		{ -0.0, "-0" },
		{ 1e22, "1e+22" },
		{ 100000, "100000" },
		{ 123456789012345, "123456789012345" },
		{ 1.0 / 3.0, "0.3333333333333333" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ DBL_MAX, "1.7976931348623157e+308" },
		{ -5e-5, "-5e-05" },
		{ INFINITY, "inf" },
	};
	char buf[32];

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		assert_string_equal(text_shortest(known[i].v, buf), known[i].text);
}

TEST(test_text_duration_reads_every_documented_form)
{
	static const struct {
		const char *text;
		double s;
	} known[] = {
		{ "90", 90 },         { "90s", 90 },           { "1.5m", 90 },
		{ "2h", 7200 },       { "1d", 86400 },         { "0", 0 },
		{ "0s", 0 },          { "2.37", 2.37 },        { "1-02:03:04", 93784 },
		{ "02:03:04", 7384 }, { "100:00:01", 360001 }, { "03:04", 184 },
		{ "90:00", 5400 },    { "0:59", 59 },          { "10-00:00:00", 864000 },
		{ "1e3", 1000 },
	};
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		double s = -1.0;

		assert_int_equal(text_duration(known[i].text, &s, &err), 0);
		if (s != known[i].s)
			fail_msg("%s is %g s, not %g", known[i].text, s, known[i].s);
	}
}

TEST(test_text_duration_refuses_the_rest_and_says_what_it_takes)
{
	static const char *const bad[] = {
		"",
		"s",
		"-5",
		"-1-00:00:00",
		"1x",
		"5 m",
		"1:60",
		"1:2:3:4",
		"1:60:00",
		"1-24:00:00",
		"1-00:00",
		"1-5",
		":30",
		"30:",
		"1::2",
		"1.5:00",
		"1e308d",
		"nan",
		"inf",
		"1:00s",
		"2-",
		"9999999999:00",
		"1-2-03:04:05",
		"1000000000000000000000000000000000000000000000000000000000000000"
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err err = { 0 };
		double s = -1.0;

		if (text_duration(bad[i], &s, &err) != -ERR_ARG)
			fail_msg("'%s' accepted as %g s", bad[i], s);
		assert_true(s == -1.0);
		assert_non_null(strstr(err.text, "is not a duration"));
		assert_non_null(strstr(err.text, "D-HH:MM:SS"));
	}
}

TEST(test_text_seconds_is_for_people)
{
	static const struct {
		double s;
		const char *text;
	} known[] = {
		{ 90, "90 s" },
		{ 0.0123, "12.3 ms" },
		{ 7500, "2 h 05 min" },
		{ 0, "0 s" },
		{ 2.374, "2.37 s" },
		{ 2.5, "2.5 s" },
		{ 99.96, "100 s" },
		{ 119.49, "119 s" },
		{ 119.6, "2 min 00 s" },
		{ 125.4, "2 min 05 s" },
		{ 7199.4, "119 min 59 s" },
		{ 7199.9, "2 h 00 min" },
		{ 3e5, "3 d 11 h" },
		{ 172799, "2 d 00 h" },
		{ 0.99949, "999 ms" },
		{ 0.9996, "1 s" },
		{ 45.6e-6, "45.6 us" },
		{ 0.00099949, "999 us" },
		{ 3e-9, "3e-09 s" },
		{ -90, "-90 s" },
		{ 1e300, "1.16e+295 d" },
		{ NAN, "unknown" },
		{ INFINITY, "inf d" },
		{ 9.996, "10 s" },
	};
	char buf[32];

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		assert_string_equal(text_seconds(known[i].s, buf), known[i].text);
}

TEST(test_text_seconds_fits_its_buffer_for_any_double)
{
	struct rng r = rng_stream(1990, 3);
	char buf[40];

	for (int i = 0; i < 100000; i++) {
		uint64_t bits = rng_next(&r);
		double v;

		memcpy(&v, &bits, sizeof v);
		memset(buf, '~', sizeof buf);
		text_seconds(v, buf);
		assert_true(memchr(buf, '\0', 32) != NULL);
		assert_int_equal(buf[32], '~');
	}
}

TEST(test_text_nearest_finds_what_was_meant)
{
	static const char *const names[] = { "forest", "boost", "linear", "svr", "batch-size", NULL };

	assert_string_equal(text_nearest("forset", names), "forest");
	assert_string_equal(text_nearest("Forest", names), "forest");
	assert_string_equal(text_nearest("LINEAR", names), "linear");
	assert_string_equal(text_nearest("lineer", names), "linear");
	assert_string_equal(text_nearest("bosst", names), "boost");
	assert_string_equal(text_nearest("batch_size", names), "batch-size");
	assert_string_equal(text_nearest("batchsiz", names), "batch-size");
	assert_string_equal(text_nearest("sv", names), "svr");
}

TEST(test_text_nearest_keeps_quiet_when_nothing_is_near)
{
	static const char *const names[] = { "forest", "boost", "k", NULL }, *const none[] = { NULL };
	char long_name[200];

	assert_null(text_nearest("gradient", names));
	assert_null(text_nearest("", names));
	assert_null(text_nearest("z", names)); /* one letter for another is no likeness */
	assert_null(text_nearest("forest", none));
	memset(long_name, 'f', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	assert_null(text_nearest(long_name, names));
	assert_null(text_nearest("forest", (const char *const[]){ long_name, NULL }));
}

TEST(test_text_nearest_works_at_the_longest_names_it_compares)
{
	char a[65], b[65];

	memset(a, 'a', 64);
	memset(b, 'a', 64);
	a[64] = b[64] = '\0';
	b[31] = 'b';
	assert_string_equal(text_nearest(b, (const char *const[]){ a, NULL }), a);
}

TEST(test_text_printable_hides_what_a_terminal_would_obey)
{
	char buf[16], tiny[3];

	assert_string_equal(text_printable("a\033[31m\n\x7f", buf, sizeof buf), "a?[31m??");
	assert_string_equal(text_printable("exactly fifteen", buf, sizeof buf), "exactly fifteen");
	assert_string_equal(text_printable("exactly sixteen!", buf, sizeof buf), "exactly sixt...");
	/* a character of two bytes is not cut in half */
	assert_string_equal(text_printable("eleven char\xc3\xa9s and more", buf, sizeof buf),
			    "eleven char...");
	assert_string_equal(text_printable("long", tiny, sizeof tiny), "lo");
	assert_string_equal(text_printable("", tiny, sizeof tiny), "");
}

TEST(test_text_tail_keeps_the_end)
{
	assert_string_equal(text_tail("models/run.json", 8), "run.json");
	assert_string_equal(text_tail("run.json", 8), "run.json");
	assert_string_equal(text_tail("", 8), "");
}

TEST(test_text_utc_writes_and_reads_moments)
{
	static const struct {
		const char *text;
		int64_t ns;
	} known[] = {
		{ "1970-01-01T00:00:00.000000Z", 0 },
		{ "2000-02-29T12:34:56.000007Z", 951827696000007000 },
		{ "2024-12-31T23:59:59.999999Z", 1735689599999999000 },
		{ "2100-03-01T00:00:00.000000Z", 4107542400000000000 }, /* 2100 is no leap year */
	};
	char buf[40];
	int64_t ns;

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		assert_string_equal(text_utc(known[i].ns, buf), known[i].text);
		assert_true(text_utc_parse(known[i].text, &ns));
		assert_int_equal(ns, known[i].ns);
	}
	assert_true(text_utc_parse("2024-12-31T23:59:59.5-01:30", &ns));
	assert_string_equal(text_utc(ns, buf), "2025-01-01T01:29:59.500000Z");
	assert_true(text_utc_parse("2024-12-31t23:59:59z", &ns));
}

TEST(test_text_utc_refuses_what_is_no_moment)
{
	static const char *const bad[] = { "",
					   "2024",
					   "2024-12-31",
					   "2024-12-31T23:59:59",
					   "2024-13-01T00:00:00Z",
					   "2023-02-29T00:00:00Z",
					   "2024-02-30T00:00:00Z",
					   "2024-12-31T24:00:00Z",
					   "2024-12-31T23:60:00Z",
					   "2024-12-31T23:59:59.Z",
					   "2024-12-31T23:59:59+1:00",
					   "2024-12-31T23:59:59+24:00",
					   "2024-12-31T23:59:59Zz",
					   "1969-12-31T23:59:59Z",
					   "2201-01-01T00:00:00Z",
					   "tomorrow" };
	int64_t ns = 7;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_false(text_utc_parse(bad[i], &ns));
		assert_int_equal(ns, 7);
	}
}
