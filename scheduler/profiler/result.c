/* Reads the accuracy of a copy and the curve over its epochs from what it printed. See run.h. */
#include "scheduler/profiler/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "scheduler/process/output.h"

#define LOG_MAX ((size_t)64 << 20) /* bytes of output that are looked at */

/* A point of the curve must be of a later epoch than the one before. */
static int add_epoch(struct profile_copy *c, size_t *cap, const struct output_numbers *n, struct err *err)
{
	void *list = c->epoch;

	if (isnan(n->accuracy) || isnan(n->epoch) || c->n_epochs == PROFILE_MAX_EPOCHS ||
	    (c->n_epochs && n->epoch <= c->epoch[c->n_epochs - 1].epoch))
		return 0;
	if (mem_grow(&list, cap, c->n_epochs + 1, sizeof *c->epoch))
		return err_nomem(err, "a curve");
	c->epoch = list;
	c->epoch[c->n_epochs++] = (struct profile_epoch){ n->epoch, n->accuracy, n->loss, n->elapsed_s };
	return 0;
}

int profile_result_parse(const struct profile_design *d, const char *text, size_t len, struct profile_copy *c,
			 struct err *err)
{
	struct output_rules rules = { .accuracy_path = d->accuracy_path, .epoch_path = d->epoch_path };
	size_t cap = 0;
	regex_t re;
	int rc = 0;

	c->accuracy = NAN;
	if (d->regex && regcomp(&re, d->regex, REG_EXTENDED))
		return err_nomem(err, "a regular expression");
	rules.regex = d->regex ? &re : NULL;
	for (size_t at = 0; at < len && !rc;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = (end ? (size_t)(end - text) : len) - at;
		struct output_numbers found;

		if (output_line(&rules, text + at, n, &found)) {
			c->accuracy = isnan(found.accuracy) ? c->accuracy : found.accuracy;
			rc = add_epoch(c, &cap, &found, err);
		}
		at += n + 1;
	}
	if (d->regex)
		regfree(&re);
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
