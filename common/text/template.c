/* Reading and filling in words with placeholders. See template.h. */
#include "common/text/template.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

enum piece_kind { PIECE_END, PIECE_TEXT, PIECE_NAME, PIECE_BAD };

struct piece {
	const char *text; /* between two placeholders */
	size_t len;
	char name[TEMPLATE_MAX_NAME + 1];
};

/* The piece at *at, which moves behind it. */
static enum piece_kind next_piece(const char **at, struct piece *out)
{
	const char *s = *at;
	size_t len;

	if (!*s)
		return PIECE_END;
	if (s[0] != '{' || s[1] == '{') {
		out->text = s;
		out->len = s[0] == '{' ? 1 : strcspn(s, "{");
		*at = s + out->len + (s[0] == '{');
		return PIECE_TEXT;
	}
	len = strspn(s + 1, NAME_CHARS);
	if (len == 0 || len > TEMPLATE_MAX_NAME || s[1 + len] != '}')
		return PIECE_BAD;
	memcpy(out->name, s + 1, len);
	out->name[len] = '\0';
	*at = s + len + 2;
	return PIECE_NAME;
}

static bool is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static int unknown(const char *name, const char *const *names, struct err *err)
{
	const char *near = text_nearest(name, names);
	char shown[64], all[160] = "";
	size_t used = 0;

	text_printable(name, shown, sizeof shown);
	if (near)
		return err_fail(err, ERR_FORMAT, "there is no {%s}; did you mean {%s}?", shown, near);
	for (size_t i = 0; names[i] && used < sizeof all; i++)
		used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
	return err_fail(err, ERR_FORMAT, "there is no {%s}: it is none of %s", shown, all);
}

int template_check(const char *word, const char *const *names, struct err *err)
{
	enum piece_kind kind;
	struct piece p;

	while ((kind = next_piece(&word, &p)) != PIECE_END) {
		if (kind == PIECE_BAD)
			return err_fail(err, ERR_FORMAT,
					"has a '{' that opens no placeholder; write {{ for the brace itself");
		if (kind == PIECE_NAME && !is_among(p.name, names))
			return unknown(p.name, names, err);
	}
	return 0;
}

bool template_uses(const char *word, const char *name)
{
	enum piece_kind kind;
	struct piece p;

	while ((kind = next_piece(&word, &p)) == PIECE_TEXT || kind == PIECE_NAME) {
		if (kind == PIECE_NAME && (!name || strcmp(p.name, name) == 0))
			return true;
	}
	return false;
}

bool template_fill(const char *word, template_put *put, const void *owner, struct strbuf *out)
{
	enum piece_kind kind;
	struct piece p;

	while ((kind = next_piece(&word, &p)) == PIECE_TEXT || kind == PIECE_NAME) {
		if (kind == PIECE_TEXT)
			strbuf_add(out, p.text, p.len);
		else if (!put(owner, p.name, out))
			return false;
	}
	return true;
}

void argv_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

/* "--epochs", whose value is the next word; not "--epochs=3", not "--", not a lone "-". */
static bool is_flag(const char *word)
{
	return word[0] == '-' && word[1] && strcmp(word, "--") && !strchr(word, '=');
}

int template_argv(char *const *word, size_t n_words, template_put *put, const void *owner, size_t max_bytes,
		  char ***out, struct err *err)
{
	char **argv = mem_calloc(n_words + 1, sizeof *argv);
	size_t n = 0, flag_at = SIZE_MAX; /* argv[flag_at] is a flag and the last word so far */
	struct strbuf text = { 0 };
	int rc = argv ? 0 : err_nomem(err, "the command");

	for (size_t i = 0; i < n_words && !rc; i++) {
		strbuf_reset(&text);
		if (!template_fill(word[i], put, owner, &text)) {
			/* A flag that waits for this value makes no sense alone; "--x={y}" is whole in itself. */
			if (word[i][0] != '-' && flag_at == n - 1 && n > 1) {
				free(argv[--n]);
				argv[n] = NULL;
			}
			flag_at = SIZE_MAX;
			continue;
		}
		if (text.len > max_bytes) {
			rc = err_fail(err, ERR_ARG,
				      "word %zu of the command has %zu bytes; at most %zu are allowed", i,
				      text.len, max_bytes);
			break;
		}
		argv[n] = text.failed ? NULL : mem_strdup(strbuf_text(&text));
		if (!argv[n])
			rc = err_nomem(err, "the command");
		else if (is_flag(word[i]))
			flag_at = n++;
		else
			n++;
	}
	strbuf_release(&text);
	if (rc) {
		argv_free(argv);
		return rc;
	}
	*out = argv;
	return 0;
}
