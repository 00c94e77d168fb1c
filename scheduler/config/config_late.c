/* What happens when a promised job is predicted to be late: `notify`, a command without a shell, and `on_late`. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/config/config_parts.h"
#include "scheduler/process/template.h"

const char *const on_late_name[] = { "nothing", "notify", "stop_best_effort", NULL };
static const char *const placeholder[] = { "job", "type", "tenant", "slo_s", "late_s", "event", NULL };

const char *config_on_late_name(enum config_on_late v)
{
	return on_late_name[v];
}

void late_release(struct config *c)
{
	job_argv_free(c->notify);
}

static bool known(const void *owner, const struct piece *p)
{
	(void)owner;
	for (size_t i = 0; placeholder[i]; i++) {
		if (piece_is(p, placeholder[i]))
			return true;
	}
	return false;
}

void late_read(struct fields *f, struct config *c)
{
	const struct template_rules rules = { .known = known, .names = placeholder };
	size_t n = json_size(fields_get(f, "notify"));
	int on_late = (int)c->on_late;

	field_choice(f, "on_late", on_late_name, &on_late);
	c->on_late = (enum config_on_late)on_late;
	if (!n || n > JOB_TYPE_MAX_ARGS)
		n = JOB_TYPE_MAX_ARGS; /* no list, or one that is refused */
	if (f->rc || !fields_get(f, "notify"))
		return;
	c->notify = mem_calloc(n + 1, sizeof *c->notify);
	if (!c->notify)
		fields_nomem(f, "notify");
	else
		template_read(f, "notify", &rules, c->notify, &c->n_notify);
}

void late_write(const struct config *c, struct json_writer *w)
{
	json_put_key(w, "notify");
	if (c->n_notify) {
		json_open(w, '[');
		for (size_t i = 0; i < c->n_notify; i++)
			json_put_string(w, c->notify[i]);
		json_close(w, ']');
	} else {
		json_put_null(w);
	}
	json_kv_string(w, "on_late", on_late_name[c->on_late]);
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
		rc = err_nomem(err, "the command of notify");
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
			rc = err_nomem(err, "the command of notify");
	}
	strbuf_release(&word);
	if (rc) {
		job_argv_free(argv);
		return rc;
	}
	*out = argv;
	return 0;
}
