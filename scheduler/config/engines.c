/* "engines" and "executor". See engines.h. */
#include "scheduler/config/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/config/config_parts.h"
#include "scheduler/config/type_parts.h"

const char *const engine_kind_name[] = { "command", "slurm", NULL };
const char *const engine_submit_names[] = { "command",   "job",    "identity", "type",    "tenant",    "cpus",
					    "memory_mb", "time_s", "gres",     "account", "partition", NULL };
const char *const engine_cancel_names[] = { "id", "identity", "job", NULL };
static const char *const no_names[] = { NULL };

static void read_command(struct fields *f, const char *key, const char *const *names,
			 struct engine_command *out)
{
	size_t n = json_size(fields_get(f, key));

	if (!fields_get(f, key))
		return;
	out->word = mem_calloc((!n || n > JOB_TYPE_MAX_ARGS ? JOB_TYPE_MAX_ARGS : n) + 1, sizeof *out->word);
	if (!out->word)
		fields_nomem(f, key);
	else
		command_read(f, key, names, out->word, &out->n);
}

/* {command} is all the words of a command: it can not be a part of one. */
static void read_submit(struct fields *f, const char *name, void *object)
{
	struct engine_command *c = &((struct config_engine *)object)->submit;
	char key[FIELDS_MAX_KEY];

	read_command(f, name, engine_submit_names, c);
	for (size_t i = 0; i < c->n && !f->rc; i++) {
		if (template_uses(c->word[i], "command") && strcmp(c->word[i], "{command}"))
			fields_fail(f, ERR_FORMAT, fields_element(name, i, key),
				    "{command} stands for several words, so it must be alone");
	}
}

static void read_cancel(struct fields *f, const char *name, void *object)
{
	read_command(f, name, engine_cancel_names, &((struct config_engine *)object)->cancel);
}

static void read_poll(struct fields *f, const char *name, void *object)
{
	read_command(f, name, no_names, &((struct config_engine *)object)->poll);
}

static void read_options(struct fields *f, const char *name, void *object)
{
	struct engine_command *c = &((struct config_engine *)object)->options;
	const struct json *list = fields_list(f, name, 0, JOB_TYPE_MAX_ARGS);
	char key[FIELDS_MAX_KEY];

	if (!list)
		return;
	c->word = mem_calloc(json_size(list) + 1, sizeof *c->word);
	if (!c->word)
		fields_nomem(f, name);
	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		fields_element(name, c->n, key);
		field_text_value(f, key, e, JOB_TYPE_MAX_ARG, &c->word[c->n]);
		if (!f->rc && (!c->word[c->n] || strncmp(c->word[c->n], "--", 2)))
			fields_fail(f, ERR_FORMAT, key,
				    "must be an option in one word, such as \"--qos=short\"");
		c->n++;
	}
}

static void write_submit(const void *object, struct json_writer *w)
{
	const struct engine_command *c = &((const struct config_engine *)object)->submit;

	put_strings(w, c->word, c->n);
}

static void write_cancel(const void *object, struct json_writer *w)
{
	const struct engine_command *c = &((const struct config_engine *)object)->cancel;

	put_strings(w, c->word, c->n);
}

static void write_poll(const void *object, struct json_writer *w)
{
	const struct engine_command *c = &((const struct config_engine *)object)->poll;

	put_strings(w, c->word, c->n);
}

static void write_options(const void *object, struct json_writer *w)
{
	const struct engine_command *c = &((const struct config_engine *)object)->options;

	put_strings(w, c->word, c->n);
}

#define AT(member) .at = offsetof(struct config_engine, member)
const struct key engine_keys[] = {
	{ "engine", KEY_CHOICE, AT(kind), .choice = engine_kind_name, .initial = ENGINE_COMMAND },
	{ "submit", KEY_OTHER, .read = read_submit, .write = write_submit },
	{ "cancel", KEY_OTHER, .read = read_cancel, .write = write_cancel },
	{ "poll", KEY_OTHER, .read = read_poll, .write = write_poll },
	{ "options", KEY_OTHER, .read = read_options, .write = write_options },
	{ "account", KEY_TEXT, AT(account), .max = ENGINE_MAX_WORD, .read = engine_account_read },
	{ "partition", KEY_TEXT, AT(partition), .max = ENGINE_MAX_WORD, .read = engine_partition_read },
	{ "bin", KEY_PATH, AT(bin) },
	{ "supervisor", KEY_PATH, AT(supervisor) },
	{ "poll_s", KEY_NUMBER, AT(poll_s), 0.2, 3600.0, 2.0 },
	{ "look_s", KEY_NUMBER, AT(look_s), 0.0, 3600.0, 5.0 },
	{ "timeout_s", KEY_NUMBER, AT(timeout_s), 1.0, 600.0, 30.0 },
	{ "record_grace_s", KEY_NUMBER, AT(record_grace_s), 0.0, 3600.0, 10.0 },
	{ "time_factor", KEY_NUMBER, AT(time_factor), 1.0, 100.0, 2.0 },
	{ "time_margin_s", KEY_NUMBER, AT(time_margin_s), 0.0, 1e7, 60.0 },
	{ 0 },
};
#undef AT

/* ---- names that become words of a command line ---- */

static void read_word(struct fields *f, const char *name, char **out)
{
	field_text(f, name, ENGINE_MAX_WORD, out);
	if (!f->rc && *out && !param_word_is_safe(*out))
		fields_fail(f, ERR_FORMAT, name,
			    "must be of letters, digits and _ . + -, the first neither - nor .");
}

void engine_account_read(struct fields *f, const char *name, void *object)
{
	read_word(f, name, &((struct config_engine *)object)->account);
}

void engine_partition_read(struct fields *f, const char *name, void *object)
{
	read_word(f, name, &((struct config_engine *)object)->partition);
}

void tenant_account_read(struct fields *f, const char *name, void *object)
{
	read_word(f, name, &((struct config_tenant *)object)->account);
}

void tenant_partition_read(struct fields *f, const char *name, void *object)
{
	read_word(f, name, &((struct config_tenant *)object)->partition);
}

/* ---- all of them ---- */

static void need(struct fields *f, const struct config_engine *e, const char *key,
		 const struct engine_command *c)
{
	if (!f->rc && e->kind == ENGINE_COMMAND && !c->n)
		fields_fail(f, ERR_FORMAT, key, "is needed by the engine \"command\"");
	else if (!f->rc && e->kind != ENGINE_COMMAND && c->n)
		fields_fail(f, ERR_FORMAT, key, "is for the engine \"command\" alone");
}

static void read_engine(struct fields *all, const char *name, void *one, void *owner)
{
	struct config_engine *e = one;
	const char *known[KEYS_MAX + 1];
	struct fields f;

	(void)owner;
	if (!name_is_good(name) || !strcmp(name, ENGINE_LOCAL)) {
		fields_fail(all, ERR_FORMAT, name,
			    "is not a name of an engine: " NAME_RULE " %d, and not \"" ENGINE_LOCAL "\"",
			    JOB_TYPE_MAX_NAME);
		return;
	}
	e->name = mem_strdup(name);
	if (!e->name) {
		fields_nomem(all, name);
		return;
	}
	keys_default(engine_keys, e);
	keys_names(engine_keys, known);
	if (!fields_open_member(&f, all, name, known)) {
		fields_fail(all, ERR_FORMAT, name, "must be an object { ... }"); /* null */
		return;
	}
	if (!strcmp(name, "slurm"))
		e->kind = ENGINE_SLURM; /* so that an engine called slurm need not say so */
	keys_read(&f, engine_keys, e);
	need(&f, e, "submit", &e->submit);
	need(&f, e, "cancel", &e->cancel);
	need(&f, e, "poll", &e->poll);
	if (!f.rc && e->kind != ENGINE_SLURM && e->options.n)
		fields_fail(&f, ERR_FORMAT, "options", "are for the engine \"slurm\" alone");
	fields_close(&f, all);
}

void engines_read(struct fields *f, const char *name, void *object)
{
	static const struct named_list engines = { "engines", CONFIG_MAX_ENGINES,
						   sizeof(struct config_engine), read_engine };
	struct config *c = object;

	named_read(f, name, &engines, NULL, (void **)&c->engine, &c->n_engines);
}

void engines_write(const void *object, struct json_writer *w)
{
	const struct config *c = object;

	json_open(w, '{');
	for (size_t i = 0; i < c->n_engines; i++) {
		json_kv_open(w, c->engine[i].name, '{');
		keys_write(engine_keys, &c->engine[i], w);
		json_close(w, '}');
	}
	json_close(w, '}');
}

void engines_release(struct config *c)
{
	for (size_t i = 0; i < c->n_engines; i++) {
		struct config_engine *e = &c->engine[i];

		free(e->name);
		argv_free(e->submit.word);
		argv_free(e->cancel.word);
		argv_free(e->poll.word);
		argv_free(e->options.word);
		keys_release(engine_keys, e);
	}
	free(c->engine);
}

const struct config_engine *config_engine(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_engines; i++) {
		if (!strcmp(c->engine[i].name, name))
			return &c->engine[i];
	}
	return NULL;
}

/* An executor that is named must be there; "slurm" is, with all defaults. */
static void resolve(struct fields *f, struct config *c, const char *key, const char *name)
{
	const char *known[CONFIG_MAX_ENGINES + 3] = { ENGINE_LOCAL, "slurm" };
	char hint[TEXT_HINT], shown[64];
	struct config_engine *more;

	if (f->rc || !name || !strcmp(name, ENGINE_LOCAL) || config_engine(c, name))
		return;
	if (!strcmp(name, "slurm") && c->n_engines < CONFIG_MAX_ENGINES) {
		more = mem_resize(c->engine, c->n_engines + 1, sizeof *more);
		if (!more) {
			fields_nomem(f, key);
			return;
		}
		c->engine = more;
		more += c->n_engines++;
		*more = (struct config_engine){ .name = mem_strdup(name) };
		keys_default(engine_keys, more);
		more->kind = ENGINE_SLURM;
		if (!more->name)
			fields_nomem(f, key);
		return;
	}
	for (size_t i = 0; i < c->n_engines; i++)
		known[i + 2] = c->engine[i].name;
	fields_fail(f, ERR_FORMAT, key, "there is no engine '%s' in \"engines\"%s",
		    text_printable(name, shown, sizeof shown), text_hint(name, known, hint));
}

void executors_resolve(struct fields *f, struct config *c)
{
	char key[JOB_TYPE_MAX_NAME + 32];

	resolve(f, c, "executor", c->executor);
	for (size_t i = 0; i < c->n_types; i++) {
		snprintf(key, sizeof key, "types.%s.executor", c->type[i].name);
		resolve(f, c, key, c->type[i].executor);
	}
}
