/* Moments as people write them: with and without a day, by the local clock or with an offset. See when.h. */
#include "scheduler/cli/client/when.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/text/text.h"

#define SECOND_NS 1000000000

/* A day, a time of day, or both, in local time; false: it is neither. */
static bool local_parts(const char *text, struct tm *out, bool *out_day, bool *out_time)
{
	int used = 0;

	memset(out, 0, sizeof *out);
	*out_day = strlen(text) >= 10 &&
		   sscanf(text, "%4d-%2d-%2d%n", &out->tm_year, &out->tm_mon, &out->tm_mday, &used) == 3 &&
		   used == 10;
	out->tm_year -= 1900;
	out->tm_mon--;
	text += *out_day ? used + (text[used] == ' ' || text[used] == 'T') : 0;
	used = 0;
	*out_time = sscanf(text, "%2d:%2d%n", &out->tm_hour, &out->tm_min, &used) == 2 && used == 5;
	return (*out_day || *out_time) && !text[used] && out->tm_hour >= 0 && out->tm_hour < 24 &&
	       out->tm_min >= 0 && out->tm_min < 60 &&
	       (!*out_day ||
		(out->tm_mon >= 0 && out->tm_mon < 12 && out->tm_mday >= 1 && out->tm_mday <= 31));
}

static bool local_moment(const char *text, bool to_come, int64_t *out_ns)
{
	time_t now = time(NULL), at;
	bool day, hours;
	struct tm tm, today;

	if (!local_parts(text, &tm, &day, &hours) || (to_come && !hours) || !localtime_r(&now, &today))
		return false;
	if (!day) {
		tm.tm_year = today.tm_year;
		tm.tm_mon = today.tm_mon;
		tm.tm_mday = today.tm_mday;
	}
	tm.tm_isdst = -1; /* the C library knows whether it is summer time then */
	at = mktime(&tm);
	if (to_come && !day && at <= now) {
		tm.tm_mday++;
		tm.tm_isdst = -1;
		at = mktime(&tm);
	}
	*out_ns = (int64_t)at * SECOND_NS;
	return at != (time_t)-1;
}

bool when_past(const char *text, int64_t *out_ns)
{
	struct err ignored = { 0 };
	double back_s;

	if (text_utc_parse(text, out_ns) || local_moment(text, false, out_ns))
		return true;
	if (text_duration(text, &back_s, &ignored))
		return false;
	*out_ns = (int64_t)time(NULL) * SECOND_NS - (int64_t)((back_s < 1e9 ? back_s : 1e9) * 1e9);
	return true;
}

bool when_to_come(const char *text, int64_t *out_ns)
{
	return text_utc_parse(text, out_ns) || local_moment(text, true, out_ns);
}
