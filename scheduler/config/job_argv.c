/* The template of a job's command: words with placeholders. `{name}` stands for a value, `{{` for a brace, a
 * lone `}` for itself. Everything that could be wrong with a template is found when it is read, so that a
 * job can only fail for the length of a word or for want of memory. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "scheduler/config/places.h"
#include "scheduler/config/type_parts.h"

static const char *const builtin[] = { "batch", "cpus", "lr", "job", "dir", "seed", NULL };

enum piece_kind { PIECE_END, PIECE_TEXT, PIECE_NAME, PIECE_BAD };

struct piece {
	const char *text; /* what it stands for, or the placeholder's name */
	size_t len;
};

/* The piece at *at, which moves on. */
static enum piece_kind piece_next(const char **at, struct piece *out)
{
	const char *s = *at;
	size_t len;

	if (!*s)
		return PIECE_END;
	if (s[0] != '{' || s[1] == '{') {
		len = s[0] == '{' ? 1 : strcspn(s, "{");
		*out = (struct piece){ s, len };
		*at = s + len + (s[0] == '{');
		return PIECE_TEXT;
	}
	len = strcspn(s + 1, "{}");
	*out = (struct piece){ s + 1, len };
	if (len == 0 || s[1 + len] != '}')
		return PIECE_BAD;
	*at = s + len + 2;
	return PIECE_NAME;
}

static bool piece_is(const struct piece *p, const char *name)
{
	return strlen(name) == p->len && !memcmp(name, p->text, p->len);
}

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

static void unknown_placeholder(struct fields *f, const struct job_type *t, const char *key,
				const struct piece *p)
{
	const char *known[JOB_TYPE_MAX_PARAMS + 8] = { NULL };
	char name[JOB_TYPE_MAX_NAME + 1], shown[64];
	size_t n = 0;
	const char *near;

	for (; builtin[n]; n++)
		known[n] = builtin[n];
	for (size_t i = 0; i < t->n_params; i++)
		known[n++] = t->param[i].name;
	snprintf(name, sizeof name, "%.*s", (int)(p->len < sizeof name ? p->len : sizeof name - 1), p->text);
	near = text_nearest(name, known);
	text_printable(name, shown, sizeof shown);
	if (near)
		fields_fail(f, ERR_FORMAT, key, "there is no {%s}; did you mean {%s}?", shown, near);
	else
		fields_fail(
			f, ERR_FORMAT, key,
			"there is no {%s}: neither a parameter nor one of batch, cpus, lr, job, dir, seed",
			shown);
}

static void word_check(struct fields *f, const struct job_type *t, const char *key, const char *word,
		       bool program)
{
	enum piece_kind kind;
	const char *at = word;
	struct piece p;

	while (!f->rc && (kind = piece_next(&at, &p)) != PIECE_END) {
		if (kind == PIECE_BAD)
			fields_fail(f, ERR_FORMAT, key,
				    "has a '{' that opens no placeholder; write {{ for the brace itself");
		else if (kind == PIECE_NAME && program)
			fields_fail(f, ERR_FORMAT, key,
				    "is the program: no placeholder may say which one is run");
		else if (kind == PIECE_NAME && !piece_known(t, &p))
			unknown_placeholder(f, t, key, &p);
		if (kind == PIECE_BAD)
			return;
	}
}

/* A program with a slash in its name is found from here, not from where the job will run. */
static void program_absolute(struct fields *f, struct job_type *t)
{
	struct err why = { 0 };
	char *whole = NULL;

	if (!t->argv[0][0]) {
		fields_fail(f, ERR_FORMAT, "argv[0]", "is empty; it names the program");
		return;
	}
	if (!strchr(t->argv[0], '/'))
		return;
	if (place_absolute(t->argv[0], &whole, &why)) {
		fields_fail(f, why.code, "argv[0]", "%s", why.text);
		return;
	}
	free(t->argv[0]);
	t->argv[0] = whole;
}

void argv_read(struct fields *f, struct job_type *t)
{
	const struct json *list = fields_list(f, "argv", 0, JOB_TYPE_MAX_ARGS);
	char key[32];

	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		const char *s = json_string(e, NULL);

		snprintf(key, sizeof key, "argv[%zu]", t->n_argv);
		if (!s) {
			fields_fail(f, ERR_FORMAT, key, "must be a string");
			return;
		}
		if (strlen(s) > JOB_TYPE_MAX_ARG) {
			fields_fail(f, ERR_FORMAT, key, "has %zu bytes; at most %d are allowed", strlen(s),
				    JOB_TYPE_MAX_ARG);
			return;
		}
		word_check(f, t, key, s, t->n_argv == 0);
		t->argv[t->n_argv] = f->rc ? NULL : mem_strdup(s);
		if (!t->argv[t->n_argv]) {
			fields_nomem(f, key);
			return;
		}
		t->n_argv++;
	}
	if (!t->n_argv || f->rc)
		return;
	program_absolute(f, t);
	if (!job_type_uses(t, "batch"))
		fields_fail(f, ERR_FORMAT, "argv",
			    "has no {batch}: the batch that is chosen would not reach the job");
}

/* ---- filling in ---- */

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
	char **argv = mem_calloc(t->n_argv + 1, sizeof *argv);
	struct strbuf word = { 0 };
	size_t n = 0, flag_at = SIZE_MAX; /* argv[flag_at] is a flag and the last word so far */
	int rc = argv ? 0 : err_fail(err, ERR_NOMEM, "out of memory for the command");

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
			rc = err_fail(err, ERR_NOMEM, "out of memory for the command");
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
