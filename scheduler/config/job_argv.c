/* The template of a job's command (template.h): which placeholders it has, and filling it in. A job can only
 * fail for the length of a word, for want of memory, or for epochs that are open and that nobody chose. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/process/template.h"
#include "scheduler/config/type_parts.h"

static const char *const builtin[] = { "batch", "cpus", "lr", "job", "dir", "seed", NULL };

static bool piece_known(const struct job_type *t, const struct piece *p)
{
	for (size_t i = 0; builtin[i]; i++) {
		if (piece_is(p, builtin[i]))
			return true;
	}
	return param_find(t, p->text, p->len) != NULL;
}

bool job_type_uses(const struct job_type *t, const char *name)
{
	for (size_t i = 0; i < t->n_argv; i++) {
		const char *at = t->argv[i];
		enum piece_kind kind;
		struct piece p;

		while ((kind = piece_next(&at, &p)) == PIECE_TEXT || kind == PIECE_NAME) {
			if (kind == PIECE_NAME && piece_is(&p, name))
				return true;
		}
	}
	return false;
}

/* ---- reading ---- */

static bool known(const void *owner, const struct piece *p)
{
	return piece_known(owner, p);
}

void argv_read(struct fields *f, struct job_type *t)
{
	const char *name[JOB_TYPE_MAX_PARAMS + sizeof builtin / sizeof *builtin] = { NULL };
	const struct template_rules rules = { .known = known, .owner = t, .names = name };
	size_t n = 0;

	for (; builtin[n]; n++)
		name[n] = builtin[n];
	for (size_t i = 0; i < t->n_params; i++)
		name[n++] = t->param[i].name;
	template_read(f, "argv", &rules, t->argv, &t->n_argv);
	if (t->n_argv && !f->rc && !job_type_uses(t, "batch"))
		fields_fail(f, ERR_FORMAT, "argv",
			    "has no {batch}: the batch that is chosen would not reach the job");
}

/* ---- filling in ---- */

/* "3..20" must never reach a command: what was chosen does. */
static bool is_open(const struct job_type *t, const struct job_params *params, const struct job_param *param)
{
	return job_params_open(params) && t->epochs_param && !strcmp(param->name, t->epochs_param);
}

/* The text of a placeholder, in buf (32 bytes) where it has to be made; NULL: it has no value. */
static const char *piece_value(const struct job_type *t, const struct job_params *params,
			       const struct job_argv_values *v, const struct piece *p, char *buf)
{
	const struct job_param *param;

	if (piece_is(p, "batch"))
		return isfinite(v->batch) ? text_shortest(v->batch, buf) : NULL;
	if (piece_is(p, "lr"))
		return isfinite(v->lr) ? text_shortest(v->lr, buf) : NULL;
	if (piece_is(p, "job"))
		return v->job;
	if (piece_is(p, "dir"))
		return v->dir;
	if (piece_is(p, "cpus")) {
		snprintf(buf, 32, "%" PRIu32, v->cpus);
		return buf;
	}
	if (piece_is(p, "seed")) {
		snprintf(buf, 32, "%" PRIu64, v->seed);
		return buf;
	}
	param = param_find(t, p->text, p->len);
	if (param && is_open(t, params, param)) {
		snprintf(buf, 32, "%.0f", v->epochs);
		return buf;
	}
	return param ? params->value[param - t->param] : NULL;
}

/* False: a placeholder has no value, so the word is to be left out. */
static bool word_fill(const struct job_type *t, const struct job_params *params,
		      const struct job_argv_values *v, const char *word, struct strbuf *out)
{
	enum piece_kind kind;
	struct piece p;
	char buf[32];

	strbuf_reset(out);
	while ((kind = piece_next(&word, &p)) == PIECE_TEXT || kind == PIECE_NAME) {
		const char *value;

		if (kind == PIECE_TEXT) {
			strbuf_add(out, p.text, p.len);
			continue;
		}
		value = piece_value(t, params, v, &p, buf);
		if (!value)
			return false;
		strbuf_puts(out, value);
	}
	return true;
}

/* "--epochs", whose value is the next word; not "--epochs=3", not "--", not a lone "-". */
static bool is_flag(const char *word)
{
	return word[0] == '-' && word[1] && strcmp(word, "--") && !strchr(word, '=');
}

int job_type_argv(const struct job_type *t, const struct job_params *p, const struct job_argv_values *v,
		  char ***out, struct err *err)
{
	size_t n = 0, flag_at = SIZE_MAX; /* argv[flag_at] is a flag and the last word so far */
	struct strbuf word = { 0 };
	char **argv;
	int rc;

	if (job_params_open(p) && !(v->epochs >= p->epochs_from && v->epochs <= p->epochs_to))
		return err_fail(err, ERR_ARG, "%s are open, from %g to %g, and none of them was chosen",
				t->epochs_param, p->epochs_from, p->epochs_to);
	argv = mem_calloc(t->n_argv + 1, sizeof *argv);
	rc = argv ? 0 : err_nomem(err, "the command");

	for (size_t i = 0; i < t->n_argv && !rc; i++) {
		const char *given = t->argv[i];

		if (!word_fill(t, p, v, given, &word)) {
			/* A flag that waits for this value makes no sense alone; "--x={y}" is whole in itself. */
			if (given[0] != '-' && flag_at == n - 1 && n > 1) {
				free(argv[--n]);
				argv[n] = NULL;
			}
			flag_at = SIZE_MAX;
			continue;
		}
		if (word.len > JOB_TYPE_MAX_ARG) {
			rc = err_fail(err, ERR_ARG,
				      "word %zu of the command has %zu bytes; at most %d are allowed", i,
				      word.len, JOB_TYPE_MAX_ARG);
			break;
		}
		argv[n] = word.failed ? NULL : mem_strdup(strbuf_text(&word));
		if (!argv[n])
			rc = err_nomem(err, "the command");
		else if (is_flag(given))
			flag_at = n++;
		else
			n++;
	}
	strbuf_release(&word);
	if (rc) {
		job_argv_free(argv);
		return rc;
	}
	*out = argv;
	return 0;
}

void job_argv_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}
