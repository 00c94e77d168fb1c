/* Moments as RFC 3339 text, without the C library's time zones and locales. */
#include <string.h>

#include "common/text/text.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Days since 1970-01-01 of a date of the Gregorian calendar, counting years from March so that the leap day
 * comes last. */
static int64_t days_of(int64_t year, int month, int day)
{
	int64_t y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static char *put_digits(char *at, int64_t v, int n)
{
	for (int i = n; i-- > 0; v /= 10)
		at[i] = (char)('0' + v % 10);
	return at + n;
}

char *text_utc(int64_t ns, char *buf)
{
	int64_t us = ns / 1000 - (ns % 1000 < 0), second = us / 1000000 - (us % 1000000 < 0);
	int64_t day = second / 86400 - (second % 86400 < 0), of_day = second - day * 86400;
	int64_t z = day + 719468, era = z / 146097, of_era = z - era * 146097; /* years 0 and later only */
	int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t m = (5 * of_year + 2) / 153, month = m < 10 ? m + 3 : m - 9;
	char *at = put_digits(buf, year_of_era + era * 400 + (month <= 2), 4);

	*at++ = '-';
	at = put_digits(at, month, 2);
	*at++ = '-';
	at = put_digits(at, of_year - (153 * m + 2) / 5 + 1, 2);
	*at++ = 'T';
	at = put_digits(at, of_day / 3600, 2);
	*at++ = ':';
	at = put_digits(at, of_day / 60 % 60, 2);
	*at++ = ':';
	at = put_digits(at, of_day % 60, 2);
	*at++ = '.';
	at = put_digits(at, us - second * 1000000, 6);
	strcpy(at, "Z");
	return buf;
}

/* n digits at *s, which moves behind them; -1: they are not there. */
static int take_digits(const char **s, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++, (*s)++) {
		if (!is_digit(**s))
			return -1;
		v = 10 * v + (**s - '0');
	}
	return v;
}

static bool take_char(const char **s, const char *any)
{
	if (!**s || !strchr(any, **s))
		return false;
	(*s)++;
	return true;
}

bool text_utc_parse(const char *s, int64_t *out_ns)
{
	static const int length[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year, month, day, hour, minute, second, offset = 0, sign, h, m;
	int64_t fraction = 0, unit = 100000000;
	bool leap;

	if ((year = take_digits(&s, 4)) < 0 || !take_char(&s, "-") || (month = take_digits(&s, 2)) < 0 ||
	    !take_char(&s, "-") || (day = take_digits(&s, 2)) < 0 || !take_char(&s, "Tt ") ||
	    (hour = take_digits(&s, 2)) < 0 || !take_char(&s, ":") || (minute = take_digits(&s, 2)) < 0 ||
	    !take_char(&s, ":") || (second = take_digits(&s, 2)) < 0)
		return false;
	if (*s == '.') {
		s++;
		if (!is_digit(*s))
			return false;
		for (; is_digit(*s); s++, unit /= 10)
			fraction += unit * (*s - '0');
	}
	if (*s == '+' || *s == '-') {
		sign = *s++ == '-' ? -1 : 1;
		if ((h = take_digits(&s, 2)) < 0 || !take_char(&s, ":") || (m = take_digits(&s, 2)) < 0 ||
		    h > 23 || m > 59)
			return false;
		offset = sign * (60 * h + m);
	} else if (!take_char(&s, "Zz")) {
		return false;
	}
	leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	if (*s || year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 ||
	    day > length[month - 1] + (month == 2 && leap) || hour > 23 || minute > 59 || second > 60)
		return false;
	*out_ns = ((days_of(year, month, day) * 1440 + hour * 60 + minute - offset) * 60 + second) *
			  1000000000 +
		  fraction;
	return true;
}
