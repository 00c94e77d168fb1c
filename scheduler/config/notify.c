/* `notify`: the command that is run, without a shell, when a promised job is predicted to be late. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/config/config_parts.h"
#include "scheduler/process/template.h"

static const char *const placeholder[] = { "job", "type", "tenant", "slo_s", "late_s", "event", NULL };

static bool known(const void *owner, const struct piece *p)
{
	(void)owner;
	for (size_t i = 0; placeholder[i]; i++) {
		if (piece_is(p, placeholder[i]))
			return true;
	}
	return false;
}

void notify_read(struct fields *f, const char *name, void *object)
{
	const struct template_rules rules = { .known = known, .names = placeholder };
	struct config *c = object;
	size_t n = json_size(fields_get(f, name));

	if (!fields_get(f, name))
		return;
	if (!n || n > JOB_TYPE_MAX_ARGS)
		n = JOB_TYPE_MAX_ARGS; /* no list, or one that is refused */
	c->notify = mem_calloc(n + 1, sizeof *c->notify);
	if (!c->notify)
		fields_nomem(f, name);
	else
		template_read(f, name, &rules, c->notify, &c->n_notify);
}

void notify_write(const void *object, struct json_writer *w)
{
	const struct config *c = object;

	put_strings(w, c->notify, c->n_notify);
}

/* ---- filling in ---- */

static void put_seconds(struct strbuf *out, double s)
{
	if (isfinite(s))
		strbuf_printf(out, "%.3f", s);
}

static void put_value(struct strbuf *out, const struct config_notice *n, const struct piece *p)
{
	if (piece_is(p, "job"))
		strbuf_printf(out, "%" PRIu64, n->job);
	else if (piece_is(p, "type"))
		strbuf_puts(out, n->type ? n->type : "");
	else if (piece_is(p, "tenant"))
		strbuf_puts(out, n->tenant ? n->tenant : "");
	else if (piece_is(p, "event"))
		strbuf_puts(out, n->event ? n->event : "");
	else if (piece_is(p, "slo_s"))
		put_seconds(out, n->slo_s);
	else if (piece_is(p, "late_s"))
		put_seconds(out, n->late_s);
}

int config_notify_argv(const struct config *c, const struct config_notice *n, char ***out, struct err *err)
{
	struct strbuf word = { 0 };
	char **argv;
	int rc = 0;

	if (!c->n_notify)
		return err_fail(err, ERR_NOTFOUND, "notify: no command is configured");
	argv = mem_calloc(c->n_notify + 1, sizeof *argv);
	if (!argv)
		rc = err_fail(err, ERR_NOMEM, "out of memory for the command of notify");
	for (size_t i = 0; i < c->n_notify && !rc; i++) {
		const char *at = c->notify[i];
		enum piece_kind kind;
		struct piece p;

		strbuf_reset(&word);
		while ((kind = piece_next(&at, &p)) == PIECE_TEXT || kind == PIECE_NAME) {
			if (kind == PIECE_TEXT)
				strbuf_add(&word, p.text, p.len);
			else
				put_value(&word, n, &p);
		}
		argv[i] = word.failed ? NULL : mem_strdup(strbuf_text(&word));
		if (!argv[i])
			rc = err_fail(err, ERR_NOMEM, "out of memory for the command of notify");
	}
	strbuf_release(&word);
	if (rc) {
		job_argv_free(argv);
		return rc;
	}
	*out = argv;
	return 0;
}
