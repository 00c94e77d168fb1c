/* What happens when a promised job is predicted to be late: `notify`, a command without a shell, and `on_late`. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/template.h"
#include "scheduler/config/config_parts.h"
#include "scheduler/config/type_parts.h"

const char *const on_late_name[] = { "nothing", "notify", "stop_best_effort", NULL };
static const char *const placeholder[] = { "job", "type", "tenant", "slo_s", "late_s", "event", NULL };

const char *config_on_late_name(enum config_on_late v)
{
	return on_late_name[v];
}

void late_release(struct config *c)
{
	argv_free(c->notify);
}

void late_read(struct fields *f, struct config *c)
{
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
		command_read(f, "notify", placeholder, c->notify, &c->n_notify);
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

static bool put_value(const void *owner, const char *name, struct strbuf *out)
{
	const struct config_notice *n = owner;

	if (!strcmp(name, "job"))
		strbuf_printf(out, "%" PRIu64, n->job);
	else if (!strcmp(name, "type"))
		strbuf_puts(out, n->type ? n->type : "");
	else if (!strcmp(name, "tenant"))
		strbuf_puts(out, n->tenant ? n->tenant : "");
	else if (!strcmp(name, "event"))
		strbuf_puts(out, n->event ? n->event : "");
	else
		put_seconds(out, !strcmp(name, "slo_s") ? n->slo_s : n->late_s);
	return true;
}

int config_notify_argv(const struct config *c, const struct config_notice *n, char ***out, struct err *err)
{
	if (!c->n_notify)
		return err_fail(err, ERR_NOTFOUND, "notify: no command is configured");
	return template_argv(c->notify, c->n_notify, put_value, n, SIZE_MAX, out, err);
}
