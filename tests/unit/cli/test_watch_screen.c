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
	assert_true(strstr(text, "10  running") < strstr(text, " 2  queued"));
	assert_true(strstr(text, " 2  queued") < strstr(text, "11  queued"));
	assert_true(strstr(text, "11  queued") < strstr(text, " 9  done"));
	watch_screen_release(&s);
}

TEST(test_a_job_is_replaced_by_its_news)
{
	struct watch_screen s = { 0 };

	take(&s, "1", "queued");
	take(&s, "1", "running");
	assert_int_equal(s.n, 1);
	watch_screen_draw(&s, 200, 24, 0.0);
	assert_null(strstr(strbuf_text(&s.out), "queued"));
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
	assert_non_null(strstr(strbuf_text(&s.out), "30  done"));
	assert_null(strstr(strbuf_text(&s.out), "22  done"));
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
	for (size_t width = 1; width <= 60; width += 7) {
		watch_screen_draw(&s, width, 10, 0.0);
		assert_true(s.drawn <= 9);
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
	watch_screen_draw(&s, 300, 10, 0.0);
	assert_non_null(strstr(strbuf_text(&s.out), "... and 94 more"));
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
	assert_int_equal(s.drawn, 3);
	strcpy(s.notice, "draining");
	watch_screen_draw(&s, 80, 24, 0.0);
	assert_int_equal(strncmp(strbuf_text(&s.out), "\033[3A", 4), 0);
	assert_int_equal(s.drawn, 4);
	watch_screen_release(&s);
}
