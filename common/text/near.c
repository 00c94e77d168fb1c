/* "Did you mean ...?": the known name that is nearest to a name that is not known. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

#define NEAREST_MAX 64 /* longer names are not compared */

static char fold(char c)
{
	return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

/* Edit distance where swapping two neighbours counts once (optimal string alignment). */
static int edit_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	int row[3][NEAREST_MAX + 1];
	int *before = row[0], *last = row[1], *now = row[2];

	for (size_t j = 0; j <= n_b; j++)
		last[j] = (int)j;
	for (size_t i = 1; i <= n_a; i++) {
		int *t;

		now[0] = (int)i;
		for (size_t j = 1; j <= n_b; j++) {
			int best = last[j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
			    fold(a[i - 2]) == fold(b[j - 1]) && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		t = before;
		before = last;
		last = now;
		now = t;
	}
	return last[n_b];
}

const char *text_nearest(const char *s, const char *const *names)
{
	size_t n_s = strlen(s);
	const char *best = NULL;
	int best_distance = 0;

	if (n_s == 0 || n_s > NEAREST_MAX)
		return NULL;
	for (; *names; names++) {
		size_t n = strlen(*names), longer = n > n_s ? n : n_s;
		int distance;

		if (n > NEAREST_MAX)
			continue;
		distance = edit_distance(s, n_s, *names, n);
		/* One slip in three letters still looks like the word that was meant. */
		if (distance > (int)(longer + 2) / 3 || distance >= (int)longer)
			continue;
		if (!best || distance < best_distance) {
			best = *names;
			best_distance = distance;
		}
	}
	return best;
}

char *text_hint(const char *s, const char *const *names, char *buf)
{
	const char *near = s ? text_nearest(s, names) : NULL;

	buf[0] = '\0';
	if (near)
		snprintf(buf, TEXT_HINT, "; did you mean '%s'?", near);
	return buf;
}
