/* Reading a result from the output of a command. See profile_result.h. */
#include "scheduler/profiler/result.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/json/path.h"
#include "common/mem.h"
#include "common/text/text.h"

static int add_epoch(struct profile_copy *c, size_t *cap, const struct json *v, double epoch, double accuracy,
		     struct err *err)
{
	void *list = c->epoch;

	if (c->n_epochs == PROFILE_MAX_EPOCHS || (c->n_epochs && epoch <= c->epoch[c->n_epochs - 1].epoch))
		return 0;
	if (mem_grow(&list, cap, c->n_epochs + 1, sizeof *c->epoch))
		return err_nomem(err, "a curve");
	c->epoch = list;
	c->epoch[c->n_epochs++] =
		(struct profile_epoch){ .epoch = epoch,
					.accuracy = accuracy,
					.loss = json_number(json_get(v, "loss"), NAN),
					.elapsed_s = json_number(json_get(v, "elapsed_s"), NAN) };
	return 0;
}

static int take_json(const struct profile_design *d, const char *line, size_t len, struct profile_copy *c,
		     size_t *cap, struct err *err)
{
	const char *accuracy_path = d->accuracy_path ? d->accuracy_path : "accuracy";
	const char *epoch_path = d->epoch_path ? d->epoch_path : "epoch";
	struct json *v;
	double accuracy, epoch;
	int rc = 0;

	if (json_parse("line", line, len, &v, NULL))
		return 0; /* a brace may open a sentence, too */
	accuracy = json_number(json_path(v, accuracy_path), NAN);
	epoch = json_number(json_path(v, epoch_path), NAN);
	if (!isnan(accuracy))
		c->accuracy = accuracy;
	if (!isnan(accuracy) && !isnan(epoch))
		rc = add_epoch(c, cap, v, epoch, accuracy, err);
	json_free(v);
	return rc;
}

static void take_match(const regex_t *re, const char *line, struct profile_copy *c)
{
	regmatch_t m[2];
	char number[64];
	int flags = 0;

	while (!regexec(re, line, 2, m, flags)) {
		size_t len = m[1].rm_so < 0 ? 0 : (size_t)(m[1].rm_eo - m[1].rm_so);

		if (len && len < sizeof number) {
			memcpy(number, line + m[1].rm_so, len);
			number[len] = '\0';
			text_number(number, &c->accuracy);
		}
		if (m[0].rm_eo == 0)
			return;
		line += m[0].rm_eo;
		flags = REG_NOTBOL;
	}
}

int profile_result_parse(const struct profile_design *d, const char *text, size_t len, struct profile_copy *c,
			 struct err *err)
{
	struct strbuf line = { 0 };
	size_t cap = 0;
	regex_t re;
	int rc = 0;

	c->accuracy = NAN;
	if (d->regex && regcomp(&re, d->regex, REG_EXTENDED))
		return err_nomem(err, "a regular expression");
	for (size_t at = 0; at < len && !rc;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = (end ? (size_t)(end - text) : len) - at;

		if (d->regex) {
			strbuf_reset(&line);
			strbuf_add(&line, text + at, n);
			take_match(&re, strbuf_text(&line), c);
		} else if (text[at] == '{') {
			rc = take_json(d, text + at, n, c, &cap, err);
		}
		at += n + 1;
	}
	if (!rc && line.failed)
		rc = err_nomem(err, "a line of output");
	strbuf_release(&line);
	if (d->regex)
		regfree(&re);
	return rc;
}

int profile_result_read(const struct profile_design *d, const char *path, struct profile_copy *c,
			struct err *err)
{
	char *text;
	size_t len;
	int rc = io_read_file(path, PROFILE_LOG_MAX, &text, &len, err);

	if (rc)
		return rc;
	rc = profile_result_parse(d, text, len, c, err);
	free(text);
	return rc;
}
