/* Reading and filling in words with placeholders. See template.h. */
#include "common/text/template.h"

#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

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
	len = strcspn(s + 1, "{}");
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

bool template_fill(const char *word, template_put *put, void *owner, struct strbuf *out)
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
