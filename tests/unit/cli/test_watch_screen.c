/* scheduler/cli/watch_screen: the picture stays within the terminal and is drawn over itself. */
#include <stdio.h>
#include <string.h>

#include "scheduler/cli/client/watch_screen.h"
#include "tests/support/test.h"

static void take(struct watch_screen *s, const char *id, const char *state)
{
	char text[256];
	struct json *v = NULL;
	struct err err = { 0 };

	snprintf(text, sizeof text,
		 "{\"job\":\"%s\",\"state\":\"%s\",\"type\":\"\xc3\xa4\xc3\xb6\xc3\xbc-digits\",\"reason\":"
		 "\"a rather long reason "
		 "to be cut where the terminal ends, whatever it is\"}",
		 id, state);
	assert_int_equal(json_parse("t", text, strlen(text), &v, &err), 0);
	assert_int_equal(watch_screen_take(s, v, v), 0);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

TEST(test_running_before_queued_before_ended)
{
	struct watch_screen s = { 0 };
	const char *text;

	take(&s, "9", "done");
	take(&s, "11", "queued");
	take(&s, "10", "running");
	take(&s, "2", "queued");
	watch_screen_draw(&s, 200, 24, 0.0);
	text = strbuf_text(&s.out);
	assert_non_null(strstr(text, "1 running, 2 waiting"));
	assert_true(strstr(text, "\033[K\nrunning") < strstr(text, "\n10  "));
	assert_true(strstr(text, "\n10  ") < strstr(text, "\nwaiting"));
	assert_true(strstr(text, "\nwaiting") < strstr(text, "\n 2  "));
	assert_true(strstr(text, "\n 2  ") < strstr(text, "\n11  "));
	assert_true(strstr(text, "\n11  ") < strstr(text, "\nended"));
	assert_true(strstr(text, "\nended") < strstr(text, "\n 9  "));
	watch_screen_release(&s);
}

TEST(test_a_job_is_replaced_by_its_news)
{
	struct watch_screen s = { 0 };

	take(&s, "1", "queued");
	take(&s, "1", "running");
	assert_int_equal(s.n, 1);
	watch_screen_draw(&s, 200, 24, 0.0);
	assert_non_null(strstr(strbuf_text(&s.out), "1 running, 0 waiting"));
	assert_null(strstr(strbuf_text(&s.out), "\nwaiting"));
	watch_screen_release(&s);
}

TEST(test_only_the_latest_ended_stay)
{
	struct watch_screen s = { 0 };
	char id[12];

	for (int i = 1; i <= 30; i++) {
		snprintf(id, sizeof id, "%d", i);
		take(&s, id, "done");
	}
	assert_int_equal(s.n, 8);
	watch_screen_draw(&s, 200, 24, 0.0);
	assert_non_null(strstr(strbuf_text(&s.out), "\n30  "));
	assert_null(strstr(strbuf_text(&s.out), "\n22  "));
	watch_screen_release(&s);
}

TEST(test_the_picture_fits_the_terminal)
{
	struct watch_screen s = { 0 };
	char id[12], *line;

	for (int i = 1; i <= 100; i++) {
		snprintf(id, sizeof id, "%d", i);
		take(&s, id, "queued");
	}
	for (int i = 101; i <= 140; i++) {
		snprintf(id, sizeof id, "%d", i);
		take(&s, id, i % 2 ? "running" : "done");
	}
	for (size_t width = 1; width <= 60; width += 7) {
		size_t height = 2 + width % 23;

		watch_screen_draw(&s, width, height, 0.0);
		assert_true(s.drawn < height);
		line = s.out.text;
		for (char *end; (end = strchr(line, '\n')); line = end + 1) {
			size_t shown = 0;

			for (char *p = line; p < end; p++) {
				if (*p == '\033') {
					p += strcspn(p, "AJKlhm"); /* sequences take no room */
					continue;
				}
				shown += ((unsigned char)*p & 0xc0) != 0x80;
			}
			assert_true(shown < width || (shown == 0 && width == 1));
		}
	}
	watch_screen_draw(&s, 300, 24, 0.0);
	assert_non_null(strstr(strbuf_text(&s.out), "... and 98 more")); /* of those that wait */
	watch_screen_release(&s);
}

static void take_text(struct watch_screen *s, const char *text)
{
	struct json *v = NULL;

	assert_int_equal(json_parse("t", text, strlen(text), &v, NULL), 0);
	assert_int_equal(watch_screen_take(s, v, v), 0);
}

TEST(test_a_running_job_has_a_bar_and_the_time_that_is_left)
{
	struct watch_screen s = { 0 };

	/* 30 s behind it, 90 s left */
	take_text(
		&s,
		"{\"job\":\"1\",\"state\":\"running\",\"type\":\"digits\",\"batch\":64,\"epochs\":10,\"slo_"
		"s\":"
		"300,\"confidence\":0.9,\"started_at\":\"1970-01-01T00:16:40Z\",\"estimate\":{\"start_s\":0,"
		"\"end_s\":90,"
		"\"end_low_s\":80,\"end_high_s\":100,\"late\":false},\"progress\":{\"epoch\":3,\"epochs\":10,"
		"\"accuracy\":0.9}}");
	s.row[0].came_s = 1030.0; /* the object is that old */
	watch_screen_draw(&s, 200, 24, 1030.0);
	assert_non_null(strstr(strbuf_text(&s.out), "64 x 10"));
	assert_non_null(strstr(strbuf_text(&s.out), "25 %  #####  "));
	assert_non_null(strstr(strbuf_text(&s.out), "epoch 3 of 10, 90 s left"));
	watch_screen_draw(&s, 200, 24, 1060.0); /* half a minute later, without news */
	assert_non_null(strstr(strbuf_text(&s.out), "50 %  ##########  "));
	assert_non_null(strstr(strbuf_text(&s.out), "60 s left"));
	watch_screen_draw(&s, 200, 24, 2000.0); /* long over its time: not at its end before it ends */
	assert_non_null(strstr(strbuf_text(&s.out), "99 %  "));
	watch_screen_release(&s);
}

TEST(test_promises_that_end_meanwhile_are_counted_and_coloured)
{
	struct watch_screen s = { .colour = true };

	for (int i = 1; i <= 3; i++) {
		char text[300];

		snprintf(text, sizeof text, "{\"job\":\"%d\",\"state\":\"running\",\"verdict\":\"promised\"}",
			 i);
		take_text(&s, text);
		snprintf(text, sizeof text,
			 "{\"job\":\"%d\",\"state\":\"done\",\"exit_code\":0,\"verdict\":\"promised\",\"slo_"
			 "outcome\":"
			 "\"%s\"}",
			 i, i == 2 ? "missed" : "met");
		take_text(&s, text);
		take_text(&s, text); /* the same news twice is one promise */
	}
	watch_screen_draw(&s, 200, 24, 0.0);
	assert_non_null(strstr(strbuf_text(&s.out), "since you look 2 of 3 promises kept"));
	assert_int_equal(count(strbuf_text(&s.out), "\033[31m"), 1);
	assert_int_equal(count(strbuf_text(&s.out), "\033[32m"), 2);
	watch_screen_release(&s);
}

TEST(test_each_picture_is_drawn_over_the_last)
{
	struct watch_screen s = { 0 };

	watch_screen_draw(&s, 80, 24, 0.0);
	assert_non_null(strstr(strbuf_text(&s.out), "no job is queued or running"));
	assert_int_equal(count(strbuf_text(&s.out), "\033[?25l"), 1);
	take(&s, "1", "running");
	take(&s, "2", "queued");
	watch_screen_draw(&s, 80, 24, 0.0);
	assert_int_equal(strncmp(strbuf_text(&s.out), "\033[1A", 4), 0);
	assert_int_equal(s.drawn, 5); /* the summary, two names, two jobs */
	strcpy(s.notice, "draining");
	watch_screen_draw(&s, 80, 24, 0.0);
	assert_int_equal(strncmp(strbuf_text(&s.out), "\033[5A", 4), 0);
	assert_int_equal(s.drawn, 6);
	watch_screen_release(&s);
}
