/* Lists of numbers and ranges, in the one form that options, traces and generators share. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/stats.h"
#include "common/text/text.h"

char *text_limits(const struct text_limits *l, char *buf)
{
	char low[TEXT_NUMBER], high[TEXT_NUMBER];

	if (isinf(l->min) && isinf(l->max))
		snprintf(buf, TEXT_LIMITS, "a %snumber", l->whole ? "whole " : "");
	else
		snprintf(buf, TEXT_LIMITS, "a %snumber from %s to %s", l->whole ? "whole " : "",
			 text_shortest(l->min, low), text_shortest(l->max, high));
	return buf;
}

bool text_within(double v, const struct text_limits *l)
{
	return v >= l->min && v <= l->max && (!l->whole || v == floor(v));
}

int text_distinct(double *v, size_t n, struct err *err)
{
	char number[TEXT_NUMBER];

	stats_sort(v, n);
	for (size_t i = 1; i < n; i++) {
		if (v[i] == v[i - 1])
			return err_fail(err, ERR_ARG, "%s appears twice", text_shortest(v[i], number));
	}
	return 0;
}

/* The number in the first `len` bytes of `s`. */
static bool number_in(const char *s, size_t len, double *out)
{
	char one[TEXT_NUMBER + 32];

	if (len >= sizeof one)
		return false;
	memcpy(one, s, len);
	one[len] = '\0';
	return text_number(one, out);
}

/* "A..B" in the first `len` bytes of `s`. */
static bool range_in(const char *s, size_t len, double *out_from, double *out_to)
{
	const char *dots = strstr(s, "..");

	return dots && dots + 2 <= s + len && dots[2] != '.' && number_in(s, (size_t)(dots - s), out_from) &&
	       number_in(dots + 2, len - (size_t)(dots + 2 - s), out_to);
}

bool text_range(const char *s, double *out_from, double *out_to)
{
	double from, to;

	if (!range_in(s, strlen(s), &from, &to))
		return false;
	*out_from = from;
	*out_to = to;
	return true;
}

char *text_range_put(double from, double to, char *buf)
{
	char low[TEXT_NUMBER], high[TEXT_NUMBER];

	snprintf(buf, TEXT_RANGE, "%s..%s", text_shortest(from, low), text_shortest(to, high));
	return buf;
}

int text_list(const char *s, char separator, const struct text_limits *l, size_t max, double *out,
	      size_t *out_n, struct err *err)
{
	char end[2] = { separator, '\0' }, want[TEXT_LIMITS], shown[48];
	size_t n = 0;

	for (;; s++) {
		size_t len = strcspn(s, end);
		double from, to;

		if (number_in(s, len, &from))
			to = from;
		else if (!l->ranges || !range_in(s, len, &from, &to) || from != floor(from) || from > to)
			from = to = NAN;
		if (!text_within(from, l) || !text_within(to, l)) {
			snprintf(shown, sizeof shown, "%.*s", (int)(len < 40 ? len : 40), s);
			return err_fail(err, ERR_ARG, "'%s' is not %s",
					text_printable(shown, shown, sizeof shown), text_limits(l, want));
		}
		for (double v = from; v <= to; v++) {
			if (n == max)
				return err_fail(err, ERR_ARG, "more than %zu numbers", max);
			out[n++] = v + 0.0; /* "-0" becomes 0 */
		}
		s += len;
		if (!*s)
			break;
	}
	*out_n = n;
	return 0;
}
