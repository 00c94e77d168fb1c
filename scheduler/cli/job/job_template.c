/* Rewrites a command whose settings are in a file. See job_template.h. */
#include "scheduler/cli/job/job_template.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/places.h"
#include "common/strbuf.h"
#include "common/text/placeholder.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/profiler/design.h"

#define FILE_MAX (1 << 20)
#define COPY "{{file}" /* what `fill` reads as {file} */

struct words {
	char **word;
	size_t n;
	bool failed;
};

static void put(struct words *w, const char *text)
{
	if (w->n < PROFILE_MAX_ARGS)
		w->word[w->n] = mem_strdup(text);
	w->failed |= w->n >= PROFILE_MAX_ARGS || !w->word[w->n];
	w->n += !w->failed;
}

/* "NAME={NAME}" for each placeholder, once. */
static void put_names(struct words *w, const char *text)
{
	struct placeholder p;
	size_t first = w->n;

	for (const char *at = text; placeholder_next(text, at, &p); at = p.end) {
		char pair[2 * sizeof p.name + 4];
		bool is = false;

		snprintf(pair, sizeof pair, "%s={%s}", p.name, p.name);
		for (size_t i = first; i < w->n; i++)
			is |= !strcmp(w->word[i], pair);
		if (!is)
			put(w, pair);
	}
}

/* Where the word names the file, as a whole or behind '='; NULL: it does not. */
static const char *names_file(const char *word, const char *file)
{
	const char *eq = word[0] == '-' ? strchr(word, '=') : NULL, *at = eq ? eq + 1 : word;
	size_t len = strlen(file), bare = len > 3 && !strcmp(file + len - 3, ".in") ? len - 3 : len;

	return !strcmp(at, file) || (strlen(at) == bare && !strncmp(at, file, bare)) ? at : NULL;
}

static bool put_command(struct words *w, const char *file, char *const *word, size_t n)
{
	bool named = false;

	for (size_t i = 0; i < n; i++) {
		const char *at = i ? names_file(word[i], file) : NULL;
		struct strbuf text = { 0 };

		strbuf_add(&text, word[i], at ? (size_t)(at - word[i]) : strlen(word[i]));
		strbuf_puts(&text, at ? COPY : "");
		named |= at != NULL;
		if (text.failed)
			w->failed = true;
		else
			put(w, strbuf_text(&text));
		strbuf_release(&text);
	}
	return named;
}

int job_template_words(const char *file, char *const *word, size_t n, char ***out, size_t *out_n,
		       struct err *err)
{
	struct words w = { .word = mem_calloc(PROFILE_MAX_ARGS + 1, sizeof *w.word) };
	char program[PATH_MAX], *text = NULL, *path = NULL;
	struct placeholder p;
	size_t len;
	int rc = w.word ? 0 : err_nomem(err, "the command");

	for (size_t i = 0; !rc && !file && i < n; i++)
		put(&w, word[i]);
	if (!rc && file)
		rc = io_read_file(file, FILE_MAX, &text, &len, err);
	if (!rc && file && !placeholder_next(text, text, &p))
		rc = err_fail(err, ERR_FORMAT,
			      "%s has no placeholder: write {batch} in it where the batch size goes",
			      text_tail(file, 200));
	if (!rc && file)
		rc = place_absolute(file, &path, err);
	if (!rc && file && !place_program("postrider", program, sizeof program))
		rc = err_fail(err, ERR_NOTFOUND, "postrider itself is not beside this program");
	if (!rc && file) {
		put(&w, program);
		put(&w, "fill");
		put(&w, path);
		put_names(&w, text);
		put(&w, "--");
		if (!put_command(&w, file, word, n))
			rc = err_fail(err, ERR_ARG,
				      "no word of the command is %s, with or without .in: the one that names "
				      "the file stands for its copy",
				      text_tail(file, 150));
	}
	if (!rc && w.failed)
		rc = n >= PROFILE_MAX_ARGS - 70 ? err_fail(err, ERR_ARG, "the command has too many words")
						: err_nomem(err, "the command");
	free(text);
	free(path);
	if (rc) {
		argv_free(w.word);
		return rc;
	}
	*out = w.word;
	*out_n = w.n;
	return 0;
}
