/* `notify`: the command that is run, without a shell, when a job will be late, is lost or has ended. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/template.h"
#include "scheduler/config/config_parts.h"
#include "scheduler/config/type_parts.h"

static const char *const placeholder[] = {
	"job", "type", "tenant", "slo_s", "late_s", "event", "state", NULL
};

void notify_read(struct fields *f, const char *name, void *object)
{
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
		command_read(f, name, placeholder, c->notify, &c->n_notify);
}

void notify_write(const void *object, struct json_writer *w)
{
	const struct config *c = object;

	put_strings(w, c->notify, c->n_notify);
}

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
	else if (!strcmp(name, "state"))
		strbuf_puts(out, n->state ? n->state : "");
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
