/* The text format of Prometheus. See exposition.h. */
#include "scheduler/daemon/metrics/exposition.h"

#include <math.h>
#include <string.h>

#include "common/text/text.h"

void exposition_family(struct strbuf *out, const char *name, const char *type, const char *help)
{
	strbuf_puts(out, "# HELP ");
	strbuf_puts(out, name);
	strbuf_puts(out, " ");
	strbuf_puts(out, help);
	strbuf_puts(out, "\n# TYPE ");
	strbuf_puts(out, name);
	strbuf_puts(out, " ");
	strbuf_puts(out, type);
	strbuf_puts(out, "\n");
}

static void put_value(struct strbuf *out, double v)
{
	char text[40];

	/* Most are counts, and those are quick to write. */
	if (v == floor(v) && fabs(v) < 9e15)
		text_decimal(v < 0.0, (uint64_t)fabs(v), 0, text);
	else
		text_shortest(v, text);
	strbuf_add(out, " ", 1);
	strbuf_puts(out, text);
	strbuf_add(out, "\n", 1);
}

void exposition_sample(struct strbuf *out, const char *name, const char *labels, double v)
{
	if (!isfinite(v))
		return;
	strbuf_puts(out, name);
	if (*labels) {
		strbuf_puts(out, "{");
		strbuf_puts(out, labels);
		strbuf_puts(out, "}");
	}
	put_value(out, v);
}

void exposition_escape(struct strbuf *out, const char *value)
{
	size_t plain = strcspn(value, "\\\"\n"); /* all of nearly every value */

	strbuf_add(out, value, plain);
	for (value += plain; *value; value++) {
		if (*value == '\\' || *value == '"')
			strbuf_add(out, "\\", 1);
		if (*value == '\n')
			strbuf_puts(out, "\\n");
		else
			strbuf_add(out, value, 1);
	}
}

void exposition_labelled(struct strbuf *out, const char *name, const char *label, const char *value, double v)
{
	if (!isfinite(v))
		return;
	strbuf_puts(out, name);
	strbuf_puts(out, "{");
	strbuf_puts(out, label);
	strbuf_puts(out, "=\"");
	exposition_escape(out, value);
	strbuf_puts(out, "\"}");
	put_value(out, v);
}

void exposition_histogram(struct strbuf *out, const char *name, const struct histogram *h)
{
	uint64_t below = 0;
	char bound[40];

	for (size_t i = 0; i <= h->n; i++) {
		below += h->count[i];
		strbuf_puts(out, name);
		strbuf_puts(out, "_bucket{le=\"");
		strbuf_puts(out, i < h->n ? text_shortest(h->bound[i], bound) : "+Inf");
		strbuf_puts(out, "\"}");
		put_value(out, (double)below);
	}
	strbuf_puts(out, name);
	strbuf_puts(out, "_sum");
	put_value(out, h->sum);
	strbuf_puts(out, name);
	strbuf_puts(out, "_count");
	put_value(out, (double)h->total);
}
