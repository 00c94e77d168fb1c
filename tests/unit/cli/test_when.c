/* scheduler/cli/client/when: moments as people write them. */
#include <stdlib.h>
#include <time.h>

#include "scheduler/cli/client/when.h"
#include "tests/support/test.h"

#define DAY_S 86400

static int64_t past_s(const char *text)
{
	int64_t ns = -1;

	if (!when_past(text, &ns))
		fail_msg("'%s' is refused", text);
	return ns / 1000000000;
}

static int64_t to_come_s(const char *text)
{
	int64_t ns = -1;

	if (!when_to_come(text, &ns))
		fail_msg("'%s' is refused", text);
	return ns / 1000000000;
}

static void in_zone(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

TEST(test_a_day_and_a_time_are_those_of_the_local_clock)
{
	in_zone("EET-2"); /* two hours ahead of Greenwich */
	assert_int_equal(past_s("2026-11-16T10:00:00Z"), 1794823200);
	assert_int_equal(past_s("2026-11-16 12:00"), 1794823200);
	assert_int_equal(past_s("2026-11-16T12:00"), 1794823200);
	assert_int_equal(past_s("2026-11-16"), 1794823200 - 12 * 3600);
	assert_int_equal(to_come_s("2026-11-16 12:00"), 1794823200);
	in_zone("UTC0");
	assert_int_equal(past_s("2026-11-16 12:00"), 1794823200 + 7200);
}

TEST(test_a_time_to_come_is_the_next_one)
{
	time_t now;
	struct tm tm;
	char text[8];
	int64_t at;

	in_zone("UTC0");
	for (int hour = 0; hour < 24; hour++) {
		char time_of_day[8] = { (char)('0' + hour / 10), (char)('0' + hour % 10), ':', '3', '0' };

		now = time(NULL);
		at = to_come_s(time_of_day);
		assert_true(at > now && at <= now + DAY_S + 1);
		assert_int_equal(at % DAY_S, hour * 3600 + 1800);
		at = past_s(time_of_day);
		assert_int_equal(at % DAY_S, hour * 3600 + 1800);
	}
	now = time(NULL) - 60;
	gmtime_r(&now, &tm);
	strftime(text, sizeof text, "%H:%M", &tm); /* a minute ago: tomorrow */
	assert_true(to_come_s(text) > now + DAY_S - 120);
}

TEST(test_durations_go_back_and_nothing_else_is_a_moment)
{
	static const char *const bad[] = { "",
					   "never",
					   "24:00",
					   "12:60",
					   "1:30",
					   "12:3",
					   "-1:00",
					   "2026-13-01",
					   "2026-00-10",
					   "2026-11-32",
					   "12:30x",
					   "2026-11-1x",
					   "2026-11-16 ",
					   "2026-11-16 12:00x" };
	int64_t ns, now = time(NULL);

	assert_true(past_s("2h") <= now - 7199 && past_s("2h") >= now - 7201);
	assert_false(when_to_come("2h", &ns));
	assert_false(when_to_come("2026-11-16", &ns));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (when_to_come(bad[i], &ns))
			fail_msg("'%s' is taken for a moment to come", bad[i]);
	}
	assert_false(when_past("never", &ns));
	assert_false(when_past("2026-13-01", &ns));
}
