/* The table of engines, and calls of their programs: words, quoting. See ops.h. */
#include "common/mem.h"
#include "common/text/template.h"
#include "scheduler/engines/ops.h"

static const struct engine_ops *const engine_all[] = { &engine_command, &engine_slurm, NULL };

const struct engine_ops *engine_ops_of(enum engine_kind kind)
{
	for (size_t i = 0; engine_all[i]; i++) {
		if (engine_all[i]->kind == kind)
			return engine_all[i];
	}
	return NULL;
}

bool engine_word_add(char ***argv, const char *fmt, ...)
{
	struct strbuf word = { 0 };
	size_t n = 0;
	char **more;
	va_list ap;

	if (!fmt)
		return true;
	while (*argv && (*argv)[n])
		n++;
	va_start(ap, fmt);
	strbuf_vprintf(&word, fmt, ap);
	va_end(ap);
	more = word.failed ? NULL : mem_resize(*argv, n + 2, sizeof *more);
	if (!more) {
		strbuf_release(&word);
		return false;
	}
	more[n] = word.text;
	more[n + 1] = NULL;
	*argv = more;
	return true;
}

void engine_quote(struct strbuf *out, const char *word)
{
	strbuf_puts(out, "'");
	for (; *word; word++)
		strbuf_printf(out, *word == '\'' ? "'\\''" : "%c", *word);
	strbuf_puts(out, "'");
}

void engine_call_release(struct engine_call *c)
{
	argv_free(c->argv);
	strbuf_release(&c->input);
	*c = (struct engine_call){ 0 };
}
