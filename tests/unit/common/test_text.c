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

static void check_double(double v)
{
	char have[TEXT_NUMBER], want[TEXT_NUMBER];

	for (int digits = 15; digits <= 17; digits++) { /* printf's way */
		snprintf(want, sizeof want, "%.*g", digits, v);
		if (strtod(want, NULL) == v)
			break;
	}
	if (strcmp(text_shortest(v, have), want))
		fail_msg("%.20g: %s instead of %s", v, have, want);
}

TEST(test_text_shortest_is_what_printf_writes)
{
	static const double edge[] = { 0.0,
				       -0.0,
				       -2.37,
				       1e-3,
				       1e-2,
				       0.1,
				       0.3,
				       1.0 / 3.0,
				       0.999999999999999,
				       0.99999999999999989,
				       1.0,
				       9.9999999999999982,
				       10.0,
				       1024.0,
				       0.0009765625,
				       999999999.99999988,
				       1e9,
				       1e15,
				       1e22,
				       5e-324,
				       1e308 };
	struct rng r = rng_stream(3, 9);

	for (size_t i = 0; i < sizeof edge / sizeof *edge; i++) {
		check_double(edge[i]);
		check_double(nextafter(edge[i], 0.0));
		check_double(nextafter(edge[i], INFINITY));
	}
	for (double v = 0x1p-12; v < 0x1p+32; v *= 2.0) { /* the gap below is half of that above */
		check_double(nextafter(v, 0.0));
		check_double(v);
		check_double(nextafter(v, INFINITY));
	}
	for (int i = 0; i < 200000; i++) {
		double v = exp(30.0 * rng_uniform(&r) - 8.0);

		check_double(i % 2 ? v : -v);
		check_double(floor(v * 1000.0) / 1000.0); /* few digits, as most measured ones */
	}
}

TEST(test_text_decimal_is_exact)
{
	static const struct {
		int64_t ns;
		const char *text;
	} known[] = { { 0, "0" },
		      { 1, "0.000000001" },
		      { -1, "-0.000000001" },
		      { 2500000000, "2.5" },
		      { 10000000000, "10" },
		      { INT64_MAX, "9223372036.854775807" },
		      { INT64_MIN, "-9223372036.854775808" } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		int64_t ns = known[i].ns;
		char buf[TEXT_NUMBER];

		assert_string_equal(text_decimal(ns < 0, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, 9, buf),
				    known[i].text);
	}
}

TEST(test_text_fixed_rounds_as_printf_does)
{
	struct rng r = rng_stream(3, 10);

	for (int i = 0; i < 100000; i++) {
		double v = exp(40.0 * rng_uniform(&r) - 20.0) * (i % 2 ? 1.0 : -1.0), back;
		char have[TEXT_NUMBER], want[64];
		int decimals = i % 10;

		if (fabs(v) >= 1e9)
			continue;
		snprintf(want, sizeof want, "%.*f", decimals, v);
		assert_true(text_number(text_fixed(v, decimals, have), &back));
		if (back != strtod(want, NULL))
			fail_msg("%.20g with %d decimals: %s instead of %s", v, decimals, have, want);
	}
	{
		static const struct {
			double v;
			int decimals;
			const char *text;
		} known[] = { { 2.5, 0, "2" },          { 3.5, 0, "4" },          { 0.125, 2, "0.12" },
			      { -0.04, 1, "0" },        { -0.06, 1, "-0.1" },     { 5e-324, 9, "0" },
			      { 0.0, 3, "0" },          { -0.0, 3, "0" },         { 10.0, 3, "10" },
			      { 1e9, 3, "1000000000" }, { 123.456, 9, "123.456" } };

		for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
			char buf[TEXT_NUMBER];

			assert_string_equal(text_fixed(known[i].v, known[i].decimals, buf), known[i].text);
		}
	}
}

static const struct text_limits sizes = { .min = 1, .max = 1000, .whole = true };

TEST(test_text_list_reads_numbers_between_separators)
{
	struct text_limits open = sizes;
	double v[4];
	size_t n = 0;

	assert_int_equal(text_list("64,128", ',', &sizes, 4, v, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_true(v[0] == 64.0 && v[1] == 128.0);
	assert_int_equal(text_list("7", '|', &sizes, 4, v, &n, NULL), 0);
	assert_int_equal(n, 1);
	open.ranges = true;
	assert_int_equal(text_list("2..4|9", '|', &open, 4, v, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_true(v[0] == 2.0 && v[1] == 3.0 && v[2] == 4.0 && v[3] == 9.0);
}

TEST(test_text_list_refuses_the_rest_and_says_what_it_wants)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{ "", "'' is not a whole number from 1 to 1000" },
		{ "64,", "'' is not a whole number from 1 to 1000" },
		{ "64,1.5", "'1.5' is not a whole number from 1 to 1000" },
		{ "0", "'0' is not a whole number from 1 to 1000" },
		{ "1001", "'1001' is not a whole number from 1 to 1000" },
		{ "64 128", "'64 128' is not a whole number from 1 to 1000" },
		{ "1..4", "'1..4' is not a whole number from 1 to 1000" },
		{ "1,2,3,4,5", "more than 4 numbers" },
	};
	struct text_limits open = sizes;
	double v[4];
	size_t n = 77;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err err = { 0 };

		assert_int_equal(text_list(bad[i].text, ',', &sizes, 4, v, &n, &err), -ERR_ARG);
		assert_string_equal(err.text, bad[i].message);
		assert_int_equal(n, 77);
	}
	open.ranges = true;
	assert_int_equal(text_list("4..2", ',', &open, 4, v, &n, NULL), -ERR_ARG);
	assert_int_equal(text_list("1..5", ',', &open, 4, v, &n, NULL), -ERR_ARG);
	assert_int_equal(text_list("1..1000000000", ',', &open, 4, v, &n, NULL), -ERR_ARG);
}

TEST(test_text_distinct_sorts_and_finds_twins)
{
	double v[] = { 128.0, 2.5, 64.0 }, twins[] = { 3.0, 2.5, 3.0 };
	struct err err = { 0 };

	assert_int_equal(text_distinct(v, 3, &err), 0);
	assert_true(v[0] == 2.5 && v[1] == 64.0 && v[2] == 128.0);
	assert_int_equal(text_distinct(twins, 3, &err), -ERR_ARG);
	assert_string_equal(err.text, "3 appears twice");
}

TEST(test_text_range_is_two_numbers)
{
	static const char *const bad[] = {
		"", "3", "..", "3..", "..3", "a..b", "3..20..", "3...20", "3 .. 20"
	};
	double from = -7.0, to = -7.0;
	char buf[TEXT_RANGE];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (text_range(bad[i], &from, &to))
			fail_msg("'%s' is no range", bad[i]);
	assert_true(from == -7.0 && to == -7.0);
	assert_true(text_range("3..20", &from, &to));
	assert_true(from == 3.0 && to == 20.0);
	assert_string_equal(text_range_put(from, to, buf), "3..20");
	assert_true(text_range("20..3", &from, &to)); /* comparing them is the caller's business */
}

TEST(test_text_hint_ends_a_sentence)
{
	static const char *const names[] = { "forest", "boost", NULL };
	char buf[TEXT_HINT];

	assert_string_equal(text_hint("forset", names, buf), "; did you mean 'forest'?");
	assert_string_equal(text_hint("linear", names, buf), "");
	assert_string_equal(text_hint(NULL, names, buf), "");
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
		{ "1e3", 1000 },      { "500ms", 0.5 },        { "20us", 20e-6 },
		{ "20min", 1200 },    { "1h30m", 5400 },       { "1d12h", 129600 },
		{ "1m2.5s", 62.5 },   { "1h30min15s", 5415 },  { "1e-3s", 1e-3 },
		{ "20 s", 20 },       { "2 h 05 min", 7500 },  { "500 ms", 0.5 },
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
		"1:60",
		"1:2:3:4",
		"1:60:00",
		" 20s",
		"20s ",
		"20 ",
		"1 5s",
		"1 h 30",
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
		"1h30",
		"30m1h",
		"1h1h",
		"1m1min",
		"1hm",
		"m",
		"5ns",
		"5MS",
		"1h-30m",
		"1.5.2m",
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

TEST(test_text_show_escapes_what_hides_or_is_obeyed)
{
	static const struct {
		const char *text, *shown;
	} with[] = {
		{ "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x9a\x80", "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x9a\x80" },
		{ "a\xff\xc3", "a\\xff\\xc3" }, /* no UTF-8; a character that is cut */
		{ "\xc2\x9b"
		  "31m",
		  "\\u009b31m" }, /* CSI as one character */
		{ "\x9b"
		  "31m",
		  "\\x9b31m" }, /* and as a byte */
		{ "ok\xe2\x80\xae"
		  "gpj.exe",
		  "ok\\u202egpj.exe" },
		{ "\xe2\x81\xa6x\xd8\x9c", "\\u2066x\\u061c" },
		{ "a\xe2\x80\x8b"
		  "b\xe2\x80\xa8",
		  "a\\u200bb\\u2028" },
		{ "\xf3\xa0\x81\x81", "\\ue0041" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* a surrogate */
	};
	char buf[64];

	for (size_t i = 0; i < sizeof with / sizeof with[0]; i++)
		assert_string_equal(text_printable(with[i].text, buf, sizeof buf), with[i].shown);
}

TEST(test_text_printable_hides_what_a_terminal_would_obey)
{
	char buf[16], tiny[3];

	assert_string_equal(text_printable("a\033[3m\n", buf, sizeof buf), "a\\x1b[3m\\x0a");
	assert_string_equal(text_printable("an escape \033[3m", buf, sizeof buf), "an escape ...");
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
