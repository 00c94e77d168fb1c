/* The line that says how a job is to go on. See next.h. */
#include "scheduler/process/next.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

static size_t put(char *out, size_t at, const char *name, double v)
{
	char number[TEXT_NUMBER];

	if (isnan(v))
		return at;
	return at + (size_t)snprintf(out + at, JOB_NEXT_MAX + 1 - at, "%s%s=%s", at ? " " : "", name,
				     text_shortest(v, number));
}

char *next_line(const struct next *n, char out[JOB_NEXT_MAX + 1])
{
	size_t at = 0;

	out[0] = '\0';
	at = put(out, at, "batch", n->batch);
	at = put(out, at, "lr", n->lr);
	put(out, at, "last", n->last);
	return out;
}

static bool take(const char *word, size_t len, struct next *out)
{
	const struct {
		const char *name;
		double *at;
	} part[] = { { "batch=", &out->batch },
		     { "lr=", &out->lr },
		     { "last=", &out->last },
		     { JOB_NEXT_AFTER, &out->after } };
	char number[TEXT_NUMBER];

	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		size_t n = strlen(part[i].name);

		if (len <= n || strncmp(word, part[i].name, n))
			continue;
		snprintf(number, sizeof number, "%.*s", (int)(len - n), word + n);
		return len - n < sizeof number && text_number(number, part[i].at) && *part[i].at >= 0.0;
	}
	return true; /* a later version may say more */
}

bool next_read(const char *text, struct next *out)
{
	bool good = true;

	*out = (struct next){ NAN, NAN, NAN, NAN };
	while (*text && good) {
		size_t n = strcspn(text, " \n");

		good = take(text, n, out);
		text += n + (text[n] != '\0');
	}
	return good && out->batch >= 1.0;
}
