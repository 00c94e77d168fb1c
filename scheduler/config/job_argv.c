/* The command of a job type: which placeholders it has, reading it, and filling it in for a job. Everything
 * that can be wrong with a command is found when it is read. Filling it in fails only when a word becomes too
 * long, when memory runs out, or when the job leaves its epochs open and none was chosen. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/places.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/config/type_parts.h"

static const char *const builtin[] = { "batch", "cpus", "lr", "job", "dir", "seed", NULL };
/* Unless a parameter is called so. */
static const char *const yielding[] = { "index", "gpus", "devices" };
enum { N_YIELDING = sizeof yielding / sizeof *yielding };

bool job_type_uses(const struct job_type *t, const char *name)
{
	for (size_t i = 0; i < t->n_argv; i++) {
		if (template_uses(t->argv[i], name))
			return true;
	}
	return false;
}

/* ---- reading ---- */

void program_absolute(struct fields *f, const char *key, const char *dir, char **argv)
{
	struct strbuf path = { 0 };
	struct err why = { 0 };
	char *whole = NULL, place[64];

	snprintf(place, sizeof place, "%s[0]", key);
	if (!argv[0][0]) {
		fields_fail(f, ERR_FORMAT, place, "is empty; it names the program");
		return;
	}
	if (!strchr(argv[0], '/'))
		return;
	if (dir && argv[0][0] != '/')
		strbuf_printf(&path, "%s/%s", dir, !strncmp(argv[0], "./", 2) ? argv[0] + 2 : argv[0]);
	else
		strbuf_puts(&path, argv[0]);
	if (path.failed)
		fields_nomem(f, place);
	else if (place_absolute(path.text, &whole, &why))
		fields_fail(f, why.code, place, "%s", why.text);
	strbuf_release(&path);
	if (!whole)
		return;
	free(argv[0]);
	argv[0] = whole;
}

void command_read(struct fields *f, const char *key, const char *const *names, char **argv, size_t *n)
{
	const struct json *list = fields_list(f, key, 0, JOB_TYPE_MAX_ARGS);
	struct err why = { 0 };
	char place[64];

	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		const char *s = json_string(e, NULL);

		snprintf(place, sizeof place, "%s[%zu]", key, *n);
		if (!s)
			fields_fail(f, ERR_FORMAT, place, "must be a string");
		else if (strlen(s) > JOB_TYPE_MAX_ARG)
			fields_fail(f, ERR_FORMAT, place, "has %zu bytes; at most %d are allowed", strlen(s),
				    JOB_TYPE_MAX_ARG);
		else if (*n == 0 && template_uses(s, NULL))
			fields_fail(f, ERR_FORMAT, place,
				    "is the program: no placeholder may say which one is run");
		else if (template_check(s, names, &why))
			fields_fail(f, why.code, place, "%s", why.text);
		else if (!(argv[*n] = mem_strdup(s)))
			fields_nomem(f, place);
		else
			++*n;
	}
	if (*n && !f->rc)
		program_absolute(f, key, NULL, argv);
}

void argv_read(struct fields *f, struct job_type *t)
{
	const char *name[JOB_TYPE_MAX_PARAMS + sizeof builtin / sizeof *builtin + N_YIELDING] = { NULL };
	size_t n = 0;

	for (; builtin[n]; n++)
		name[n] = builtin[n];
	for (size_t i = 0; i < t->n_params; i++)
		name[n++] = t->param[i].name;
	for (size_t i = 0; i < N_YIELDING; i++)
		name[n++] = yielding[i];
	command_read(f, "argv", name, t->argv, &t->n_argv);
	if (t->n_argv && !f->rc && !job_type_uses(t, "batch"))
		fields_fail(f, ERR_FORMAT, "argv",
			    "has no {batch}: the batch that is chosen would not reach the job");
}

/* ---- filling in ---- */

struct filling {
	const struct job_type *type;
	const struct job_params *params;
	const struct job_argv_values *v;
};

/* "3..20" must never reach a command: the number that was chosen does. */
static bool is_open(const struct filling *f, const struct job_param *param)
{
	return job_params_open(f->params) && f->type->epochs_param &&
	       !strcmp(param->name, f->type->epochs_param);
}

static bool put_number(struct strbuf *out, double v)
{
	char buf[TEXT_NUMBER];

	if (isfinite(v))
		strbuf_puts(out, text_shortest(v, buf));
	return isfinite(v);
}

static bool put_text(struct strbuf *out, const char *text)
{
	if (text)
		strbuf_puts(out, text);
	return text != NULL;
}

static bool put_value(const void *owner, const char *name, struct strbuf *out)
{
	const struct filling *f = owner;
	const struct job_param *param = param_find(f->type, name, strlen(name));

	if (!strcmp(name, "batch"))
		return put_number(out, f->v->batch);
	if (!strcmp(name, "lr") && (!param || isfinite(f->v->lr))) /* a rule wins over a parameter */
		return put_number(out, f->v->lr);
	if (!strcmp(name, "job"))
		return put_text(out, f->v->job);
	if (!strcmp(name, "dir"))
		return put_text(out, f->v->dir);
	if (!strcmp(name, "cpus"))
		return strbuf_printf(out, "%" PRIu32, f->v->cpus), true;
	if (!strcmp(name, "seed"))
		return strbuf_printf(out, "%" PRIu64, f->v->seed), true;
	if (param && is_open(f, param))
		return strbuf_printf(out, "%.0f", f->v->epochs), true;
	if (!param && !strcmp(name, "index"))
		return put_number(out, f->v->index);
	if (!param && !strcmp(name, "gpus"))
		return strbuf_printf(out, "%" PRIu32, f->v->gpus), true;
	if (!param && !strcmp(name, "devices"))
		return put_text(out, f->v->devices);
	return param && put_text(out, f->params->value[param - f->type->param]);
}

int job_type_argv(const struct job_type *t, const struct job_params *p, const struct job_argv_values *v,
		  char ***out, struct err *err)
{
	struct filling f = { t, p, v };

	if (job_params_open(p) && !(v->epochs >= p->epochs_from && v->epochs <= p->epochs_to))
		return err_fail(err, ERR_ARG, "%s are open, from %g to %g, and none of them was chosen",
				t->epochs_param, p->epochs_from, p->epochs_to);
	return template_argv(t->argv, t->n_argv, put_value, &f, JOB_TYPE_MAX_ARG, out, err);
}
