/* The engine `command`: submit, cancel and poll are commands of the configuration. docs/ENGINES.md has the
 * contract. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/config/job_type.h"
#include "scheduler/engines/ops.h"

#define TRY_LATER 75 /* EX_TEMPFAIL of sysexits.h */

struct values {
	const struct engine_task *task;
	const char *id;
};

static bool put_text(struct strbuf *out, const char *s)
{
	strbuf_puts(out, s ? s : "");
	return s != NULL;
}

static bool put_whole(struct strbuf *out, double v)
{
	if (!isnan(v))
		strbuf_printf(out, "%.0f", ceil(v));
	return !isnan(v);
}

static bool put_value(const void *owner, const char *name, struct strbuf *out)
{
	const struct values *v = owner;
	const struct engine_task *t = v->task;

	if (!strcmp(name, "id"))
		return put_text(out, v->id);
	if (!strcmp(name, "identity"))
		return put_text(out, t->identity);
	if (!strcmp(name, "type"))
		return put_text(out, t->type);
	if (!strcmp(name, "tenant"))
		return put_text(out, t->tenant);
	if (!strcmp(name, "account"))
		return put_text(out, t->account);
	if (!strcmp(name, "partition"))
		return put_text(out, t->partition);
	if (!strcmp(name, "gres"))
		return put_text(out, t->gres);
	if (!strcmp(name, "memory_mb"))
		return put_whole(out, t->memory_mb);
	if (!strcmp(name, "time_s"))
		return put_whole(out, t->limit_s);
	strbuf_printf(out, "%" PRIu64, !strcmp(name, "cpus") ? t->cpus : t->job); /* cpus, job */
	return true;
}

static int command_submit(const struct config_engine *c, const struct engine_task *t, struct engine_call *out,
			  struct err *err)
{
	const struct values v = { .task = t };
	size_t at = 0;
	char **tail = NULL;
	int rc;

	/* {command} is several words: what is before it and after it is filled in apart. */
	while (at < c->submit.n && strcmp(c->submit.word[at], "{command}"))
		at++;
	rc = template_argv(c->submit.word, at, put_value, &v, JOB_TYPE_MAX_ARG, &out->argv, err);
	for (size_t i = 0; !rc && at < c->submit.n && t->command[i]; i++) {
		if (!engine_word_add(&out->argv, "%s", t->command[i]))
			rc = err_nomem(err, "job %" PRIu64, t->job);
	}
	if (!rc && at + 1 < c->submit.n)
		rc = template_argv(c->submit.word + at + 1, c->submit.n - at - 1, put_value, &v,
				   JOB_TYPE_MAX_ARG, &tail, err);
	for (size_t i = 0; !rc && tail && tail[i]; i++) {
		if (!engine_word_add(&out->argv, "%s", tail[i]))
			rc = err_nomem(err, "job %" PRIu64, t->job);
	}
	argv_free(tail);
	/* The same as a script, for those who want one. */
	strbuf_puts(&out->input, "#!/bin/sh\nexec");
	for (size_t i = 0; t->command[i]; i++) {
		strbuf_puts(&out->input, " ");
		engine_quote(&out->input, t->command[i]);
	}
	strbuf_puts(&out->input, "\n");
	return rc ? rc : out->input.failed ? err_nomem(err, "job %" PRIu64, t->job) : 0;
}

static enum engine_answer command_answer(int exit_code, const char *output, const char *complaint, char *out,
					 size_t size)
{
	char id[ENGINE_MAX_ID + 2];
	int n = 0;

	if (exit_code == 0 && sscanf(output, " %64s%n", id, &n) == 1 && strlen(id) <= ENGINE_MAX_ID) {
		text_printable(id, out, size);
		return ENGINE_YES;
	}
	if (exit_code == 0) /* it may have the job */
		snprintf(out, size, "submit said no id");
	else
		snprintf(out, size, "exit code %d of submit%s%s", exit_code, *complaint ? ": " : "",
			 complaint);
	return exit_code == 0 || exit_code == TRY_LATER ? ENGINE_UNSURE : ENGINE_NO;
}

static int command_cancel(const struct config_engine *c, uint64_t job, const char *identity, const char *id,
			  struct engine_call *out, struct err *err)
{
	const struct engine_task t = { .job = job, .identity = identity };
	const struct values v = { .task = &t, .id = id };

	return template_argv(c->cancel.word, c->cancel.n, put_value, &v, JOB_TYPE_MAX_ARG, &out->argv, err);
}

static int command_poll(const struct config_engine *c, struct engine_call *out, struct err *err)
{
	return template_argv(c->poll.word, c->poll.n, put_value, NULL, JOB_TYPE_MAX_ARG, &out->argv, err);
}

/* "IDENTITY ID STATE [WORDS...]" */
static bool command_line(const char *line, struct engine_line *out)
{
	static const struct {
		const char *name;
		enum engine_word word;
	} state[] = { { "waiting", ENGINE_WAITS },
		      { "running", ENGINE_RUNS },
		      { "ended", ENGINE_ENDED },
		      { "failed", ENGINE_FAILED },
		      { "time_limit", ENGINE_TIME_LIMIT },
		      { "memory", ENGINE_MEMORY },
		      { "node", ENGINE_NODE },
		      { "preempted", ENGINE_PREEMPTED },
		      { "cancelled", ENGINE_CANCELLED } };
	char word[32];
	int said = 0;

	*out = (struct engine_line){ 0 };
	if (sscanf(line, "%32s %63s %31s %n", out->identity, out->id, word, &said) != 3 ||
	    strlen(out->identity) != 32)
		return false;
	out->word = ENGINE_UNKNOWN;
	for (size_t i = 0; i < sizeof state / sizeof *state; i++) {
		if (!strcmp(word, state[i].name))
			out->word = state[i].word;
	}
	text_printable(line[said] ? line + said : word, out->said, sizeof out->said);
	return out->word != ENGINE_UNKNOWN;
}

const struct engine_ops engine_command = {
	.kind = ENGINE_COMMAND,
	.hands = 1, /* its programs are run one at a time */
	.submit = command_submit,
	.answer = command_answer,
	.cancel = command_cancel,
	.poll = command_poll,
	.line = command_line,
};
