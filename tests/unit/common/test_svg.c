/* common/svg: what is drawn is well-formed whatever the names and numbers; axes are round. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/draw/svg.h"
#include "tests/support/test.h"

static const char *escaped(const char *text)
{
	static struct strbuf b;

	strbuf_reset(&b);
	svg_escape(&b, text);
	return strbuf_text(&b);
}

TEST(test_escape_leaves_nothing_that_xml_would_obey)
{
	assert_string_equal(escaped("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&apos;");
	assert_string_equal(escaped("plain \xc2\xb5s \xe2\x80\x93 \xf0\x9f\x90\x8e"),
			    "plain \xc2\xb5s \xe2\x80\x93 \xf0\x9f\x90\x8e");
	assert_string_equal(escaped(""), "");
}

TEST(test_escape_replaces_what_xml_does_not_allow)
{
	static const char *const bad[] = {
		"\x01", "\x1b", "\x7f", "\x80", "\xff", "\xc0", "\xf8",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_string_equal(escaped(bad[i]), "\xef\xbf\xbd");
	/* overlong '<', a surrogate, U+FFFF, beyond U+10FFFF, cut short: one replacement a byte, no markup */
	assert_string_equal(escaped("\xc0\xbc"), "\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(escaped("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(escaped("\xef\xbf\xbf"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(escaped("\xf4\x90\x80\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(escaped("\xe2\x80"), "\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(escaped("\xc2\x85x"),
			    "\xef\xbf\xbd\xef\xbf\xbdx"); /* a control character in two bytes */
}

TEST(test_document_is_one_element_without_scripts)
{
	struct strbuf b = { 0 };
	struct svg_point p[] = { { 1, 2 }, { 3.456, NAN }, { -INFINITY, 1e300 } };
	const char *text;

	svg_begin(&b, 300, 200, "a <b>", "d");
	svg_open(&b, "panel", "x & y");
	svg_series_line(&b, 0, p, 3);
	svg_series_line(&b, 0, p, 1); /* a line needs two points */
	svg_series_bar(&b, 9, 0, 0, 10, -4);
	svg_whisker(&b, 1, 5, 6, NAN);
	for (size_t k = 0; k < 10; k++)
		svg_marker(&b, k, 1, 1);
	svg_text(&b, "tick", 1.0 / 3.0, -0.001, SVG_END, 90, "t");
	svg_close(&b);
	svg_end(&b);
	text = strbuf_text(&b);
	assert_true(strncmp(text, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39) == 0);
	assert_non_null(strstr(text, "</svg>\n"));
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	assert_null(strstr(text, "\"-0\""));
	assert_non_null(strstr(text, "<title>a &lt;b&gt;</title>"));
	assert_non_null(strstr(text, "prefers-color-scheme:dark"));
	assert_non_null(strstr(text, "points=\"1,2 3.46,0 0,1e+07\""));
	assert_non_null(
		strstr(text, "x=\"0.33\" y=\"0\" text-anchor=\"end\" transform=\"rotate(-90 0.33 0)\""));
	strbuf_release(&b);
}

static void check_axis(double low, double high, bool log, const double *tick, size_t n)
{
	struct svg_axis a;

	svg_axis_init(&a, low, high, log, 5);
	assert_int_equal(a.n_ticks, n);
	for (size_t i = 0; i < n; i++)
		assert_true(fabs(a.tick[i] - tick[i]) <= 1e-9 * fabs(tick[i]));
}

TEST(test_ticks_are_round_numbers_that_enclose_the_data)
{
	check_axis(0.0, 10.0, false, (double[]){ 0, 2, 4, 6, 8, 10 }, 6);
	check_axis(93.7, 611.2, false, (double[]){ 0, 200, 400, 600, 800 }, 5);
	check_axis(-0.13, 0.21, false, (double[]){ -0.2, -0.1, 0, 0.1, 0.2, 0.3 }, 6);
	check_axis(120.0, 1400.0, true, (double[]){ 100, 200, 300, 500, 1000, 2000 }, 6);
	check_axis(0.5, 4000.0, true, (double[]){ 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000 }, 10);
}

TEST(test_axis_survives_any_range)
{
	static const double value[] = { -INFINITY, -DBL_MAX, -1e300,        -2.37, -1e-300, 0.0,      5e-324,
					1e-300,    2.37,     2.37000000001, 1e300, DBL_MAX, INFINITY, NAN };
	size_t n = sizeof value / sizeof *value;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			for (int log = 0; log < 2; log++) {
				struct svg_axis a;
				char buf[32];

				svg_axis_init(&a, value[i], value[j], log, 5);
				assert_true(a.n_ticks <= SVG_MAX_TICKS);
				assert_true(a.low < a.high);
				for (size_t k = 0; k < a.n_ticks; k++) {
					double at = svg_axis_at(&a, a.tick[k]);

					assert_true(at >= 0.0 && at <= 1.0);
					assert_true(strlen(svg_tick_label(&a, a.tick[k], buf)) > 0);
				}
			}
}

TEST(test_axis_maps_its_ends_and_clamps_beyond)
{
	struct svg_axis a;

	svg_axis_init(&a, 0.0, 10.0, false, 5);
	a.from = 200.0;
	a.to = 100.0;
	assert_true(svg_axis_at(&a, 0.0) == 200.0);
	assert_true(svg_axis_at(&a, 2.5) == 175.0);
	assert_true(svg_axis_at(&a, 10.0) == 100.0);
	assert_true(svg_axis_at(&a, 99.0) == 100.0);
	assert_true(isnan(svg_axis_at(&a, NAN)));
	svg_axis_init(&a, 1.0, 100.0, true, 5);
	assert_true(fabs(svg_axis_at(&a, 10.0) - 0.5) < 1e-12);
}

TEST(test_tick_labels_have_the_decimals_of_the_step)
{
	struct svg_axis a;
	char buf[32];

	svg_axis_init(&a, 0.0, 1.0, false, 5);
	assert_string_equal(svg_tick_label(&a, 0.6000000000000001, buf), "0.6");
	assert_string_equal(svg_tick_label(&a, 0.0, buf), "0.0");
	svg_axis_init(&a, 0.0, 700.0, false, 7);
	assert_string_equal(svg_tick_label(&a, 300.0, buf), "300");
	svg_axis_init(&a, 0.0, 4e7, false, 4);
	assert_string_equal(svg_tick_label(&a, 2e7, buf), "2e+07");
}

TEST(test_long_text_is_cut_between_characters)
{
	char longer[600];
	const char *cut;

	assert_string_equal(svg_fit("short", 12, 200), "short");
	cut = svg_fit("a very long network name indeed", 12, 80);
	assert_true(strlen(cut) < 20);
	assert_string_equal(cut + strlen(cut) - 3, "\xe2\x80\xa6");
	assert_true(svg_text_width(cut, 12) <= 80);
	for (size_t i = 0; i + 2 < sizeof longer; i += 2)
		memcpy(longer + i, "\xc2\xb5", 3);
	longer[sizeof longer - 2] = '\0';
	cut = svg_fit(longer, 12, 1e9);
	assert_null(strstr(escaped(cut), "\xef\xbf\xbd"));
	assert_string_equal(svg_fit("anything", 12, 0), "\xe2\x80\xa6");
}

TEST(test_no_memory_is_seen_at_the_end)
{
	struct strbuf b = { 0 };

	mem_fail_at(1, true);
	svg_begin(&b, 10, 10, "t", "d");
	svg_marker(&b, 0, 1, 1);
	svg_end(&b);
	mem_fail_at(0, false);
	assert_true(b.failed);
	strbuf_release(&b);
}

TEST(test_parts_of_a_page_share_one_style_sheet)
{
	struct strbuf b = { 0 };

	svg_begin_inside(&b, "chart wide", 344.0, 120.5, "a <title>", "what it shows");
	svg_end(&b);
	assert_string_equal(strbuf_text(&b),
			    "<svg class=\"chart wide\" role=\"img\" viewBox=\"0 0 344 120.5\" width=\"344\" "
			    "height=\"120.5\">\n<title>a &lt;title&gt;</title>\n<desc>what it shows</desc>\n"
			    "</svg>\n");
	strbuf_reset(&b);
	svg_begin(&b, 10.0, 10.0, "t", "d");
	assert_non_null(strstr(strbuf_text(&b), svg_style())); /* a drawing that stands alone carries it */
	strbuf_release(&b);
}

TEST(test_marks_take_colour_and_shape_apart)
{
	struct strbuf a = { 0 }, b = { 0 };

	svg_marker(&a, 3, 5.0, 6.0);
	svg_mark(&b, 3, 3, 5.0, 6.0);
	assert_string_equal(strbuf_text(&a), strbuf_text(&b));
	strbuf_reset(&b);
	svg_mark(&b, 3 + SVG_SERIES, 1, 5.0, 6.0);
	assert_string_equal(strbuf_text(&b), "<path class=\"f3\" d=\"M5 6m-4 -4h8v8h-8z\"/>\n");
	strbuf_release(&a);
	strbuf_release(&b);
}

TEST(test_dots_are_one_element_however_many)
{
	const struct svg_point point[] = { { 1.0, 2.0 }, { 3.456, NAN } };
	struct strbuf b = { 0 };

	svg_dots(&b, 9, point, 0);
	assert_string_equal(strbuf_text(&b), "");
	svg_dots(&b, 9, point, 2);
	assert_string_equal(strbuf_text(&b), "<path class=\"dots c1\" d=\"M1 2h0M3.46 0h0\"/>\n");
	strbuf_release(&b);
}

TEST(test_a_hatch_stays_within_its_box)
{
	struct strbuf b = { 0 };

	svg_hatch(&b, 10.0, 20.0, 0.0, 5.0);
	svg_hatch(&b, 10.0, 20.0, NAN, 5.0);
	assert_string_equal(strbuf_text(&b), "");
	svg_hatch(&b, 10.0, 20.0, 9.5, 5.0); /* strokes at 11 and 17; the second is cut at 19.5 */
	assert_string_equal(strbuf_text(&b), "<path class=\"hatch\" d=\"M11 25l5 -5M17 25l2.5 -2.5\"/>\n");
	strbuf_reset(&b);
	svg_hatch(&b, 0.0, 0.0, 1e9, 5.0); /* ends */
	assert_true(b.len < 20000);
	strbuf_release(&b);
}

TEST(test_a_whisker_across_has_its_ends_upright)
{
	struct strbuf b = { 0 };

	svg_whisker_across(&b, 2, 30.0, 10.0, 20.0);
	assert_string_equal(strbuf_text(&b),
			    "<path class=\"whisker c2\" d=\"M10 25V35M10 30H20M20 25V35\"/>\n");
	strbuf_release(&b);
}
