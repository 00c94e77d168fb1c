/* Reads the accuracy of a copy and the curve over its epochs from what it printed. See run.h. */
#include "scheduler/profiler/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"

#define LOG_MAX ((size_t)64 << 20) /* bytes of output that are looked at */

static int add_epoch(struct profile_copy *c, size_t *cap, const struct output_point *p, struct err *err)
{
	void *list = c->epoch;

	if (isnan(p->accuracy) || isnan(p->epoch) || c->n_epochs == PROFILE_MAX_EPOCHS)
		return 0;
	if (mem_grow(&list, cap, c->n_epochs + 1, sizeof *c->epoch))
		return err_nomem(err, "a curve");
	c->epoch = list;
	c->epoch[c->n_epochs++] = (struct profile_epoch){ p->epoch, p->accuracy, p->loss, p->elapsed_s };
	return 0;
}

/* The first number above 1 says that those before it were percent as well. */
static void rescale(struct profile_copy *c)
{
	for (size_t i = 0; i < c->n_epochs; i++)
		c->epoch[i].accuracy /= 100.0;
}

int profile_result_parse(const struct profile_design *d, const char *text, size_t len, struct profile_copy *c,
			 struct err *err)
{
	struct output_reader r;
	size_t cap = 0;
	int rc = output_reader_init(&r, &d->result, err);

	c->accuracy = NAN;
	c->asks = false;
	if (rc)
		return rc;
	for (size_t at = 0; at < len && !rc;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = (end ? (size_t)(end - text) : len) - at;
		bool percent = r.percent;
		struct output_point p;

		if (n <= OUTPUT_MAX_LINE && output_reader_line(&r, text + at, n, &p)) {
			if (r.percent && !percent)
				rescale(c);
			c->asks |= p.asks;
			rc = add_epoch(c, &cap, &p, err);
		}
		at += n + 1;
	}
	c->accuracy = r.accuracy;
	c->percent = r.percent;
	c->phases = r.phases;
	snprintf(c->found, sizeof c->found, "%s", r.found);
	output_reader_release(&r);
	return rc;
}

int profile_result_read(const struct profile_design *d, const char *path, struct profile_copy *c,
			struct err *err)
{
	char *text;
	size_t len;
	int rc = io_read_file(path, LOG_MAX, &text, &len, err);

	if (rc)
		return rc;
	rc = profile_result_parse(d, text, len, c, err);
	free(text);
	return rc;
}
