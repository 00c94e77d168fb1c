/* Reads campaign files. See ini.h. */
#include "automl/ini.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"

struct lines {
	struct ini *f;
	const char *at, *end;
	unsigned line; /* of the text at `at` */
	struct err *err;
};

void ini_free(struct ini *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		struct ini_section *s = &f->section[i];

		for (size_t k = 0; k < s->n; k++) {
			free(s->key[k].name);
			literal_release(&s->key[k].value);
		}
		free(s->key);
		free(s->name);
	}
	free(f->section);
	free(f->file);
	free(f);
}

const struct ini_section *ini_section(const struct ini *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->section[i].name, name))
			return &f->section[i];
	return NULL;
}

const struct ini_key *ini_key(const struct ini_section *s, const char *name)
{
	for (size_t i = 0; s && i < s->n; i++)
		if (!strcmp(s->key[i].name, name))
			return &s->key[i];
	return NULL;
}

int ini_fail(const struct ini *f, const struct ini_section *s, const struct ini_key *key, struct err *err,
	     const char *fmt, ...)
{
	char reason[320], place[24] = "";
	unsigned line = key ? key->line : s ? s->line : 0;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
	if (line)
		snprintf(place, sizeof place, ":%u", line);
	return err_fail(err, ERR_FORMAT, "%s%s:%s%.40s%s%s%.40s%s %s", text_tail(f->file, INI_FILE_SHOWN),
			place, s ? " [" : "", s ? s->name : "", s ? "]" : "", key ? " " : "",
			key ? key->name : "", s ? ":" : "", reason);
}

static int line_fail(struct lines *l, unsigned line, const char *reason)
{
	return err_fail(l->err, ERR_FORMAT, "%s:%u: %s", text_tail(l->f->file, INI_FILE_SHOWN), line, reason);
}

static int add_section(struct ini *f, const char *name, size_t len, unsigned line, struct err *err)
{
	struct ini_section s = { .line = line };

	if (f->n >= INI_MAX_SECTIONS)
		return err_fail(err, ERR_FORMAT, "%s: more than %d sections",
				text_tail(f->file, INI_FILE_SHOWN), INI_MAX_SECTIONS);
	s.name = mem_strndup(name, len);
	if (!s.name || mem_grow((void **)&f->section, &f->cap, f->n + 1, sizeof s)) {
		free(s.name);
		return err_nomem(err, "a section");
	}
	f->section[f->n++] = s;
	for (size_t i = 0; i + 1 < f->n; i++)
		if (!strcmp(f->section[i].name, s.name))
			return ini_fail(f, &f->section[f->n - 1], NULL, err,
					"this section was there before, in line %u", f->section[i].line);
	return 0;
}

/* Takes the value, also when it fails. */
static int add_key(struct ini *f, const char *name, size_t len, struct ini_key k, struct err *err)
{
	struct ini_section *s = &f->section[f->n - 1];

	k.name = s->n < INI_MAX_KEYS ? mem_strndup(name, len) : NULL;
	if (!k.name || mem_grow((void **)&s->key, &s->cap, s->n + 1, sizeof k)) {
		free(k.name);
		literal_release(&k.value);
		if (s->n >= INI_MAX_KEYS)
			return ini_fail(f, s, NULL, err, "more than %d keys", INI_MAX_KEYS);
		return err_nomem(err, "a key");
	}
	for (size_t i = 0; i < s->n; i++) {
		if (!strcmp(s->key[i].name, k.name)) {
			unsigned before = s->key[i].line;

			s->key[s->n++] = k; /* so that it is freed */
			return ini_fail(f, s, &s->key[s->n - 1], err, "this key was there before, in line %u",
					before);
		}
	}
	s->key[s->n++] = k;
	return 0;
}

/* ---- the .ini dialect ---- */

static size_t line_length(const struct lines *l)
{
	const char *nl = memchr(l->at, '\n', (size_t)(l->end - l->at));

	return nl ? (size_t)(nl - l->at) : (size_t)(l->end - l->at);
}

static void next_line(struct lines *l)
{
	size_t n = line_length(l);

	l->at += n + (l->at + n < l->end);
	l->line++;
}

/* A line of blanks, or a comment. */
static bool nothing_there(const char *s, size_t n)
{
	while (n && isspace((unsigned char)*s)) {
		s++;
		n--;
	}
	return n == 0 || *s == '#' || *s == ';';
}

/* Adds a piece of a value; "%%" is one percent sign, a single one would refer to another key. */
static int add_text(struct lines *l, struct strbuf *value, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '%') {
			if (i + 1 >= n || s[i + 1] != '%')
				return line_fail(l, l->line,
						 "'%' refers to another key, which is not supported; "
						 "write '%%' for the character");
			i++;
		}
		strbuf_add(value, &s[i], 1);
	}
	return 0;
}

/* "key = value", with the indented lines that follow. */
static int read_key(struct lines *l)
{
	const char *name = l->at;
	size_t n = line_length(l), name_len, from;
	struct strbuf text = { 0 };
	struct literal value = { 0 };
	unsigned line = l->line;
	struct err why = { 0 };
	int rc;

	for (name_len = 0; name_len < n && name[name_len] != '=' && name[name_len] != ':'; name_len++)
		;
	if (name_len == n)
		return line_fail(l, line, "there should be '[section]' or 'key = value'");
	from = name_len + 1;
	while (name_len && isspace((unsigned char)name[name_len - 1]))
		name_len--;
	if (!name_len)
		return line_fail(l, line, "there is no key before the '='");
	rc = add_text(l, &text, l->at + from, n - from);
	next_line(l);
	while (!rc && l->at < l->end) {
		n = line_length(l);
		if (nothing_there(l->at, n)) { /* configparser passes over them inside a value */
			const char *at = l->at;
			unsigned here = l->line;

			next_line(l);
			if (l->at < l->end && isspace((unsigned char)*l->at) &&
			    !nothing_there(l->at, line_length(l)))
				continue;
			l->at = at;
			l->line = here;
			break;
		}
		if (!isspace((unsigned char)*l->at))
			break;
		strbuf_puts(&text, "\n");
		rc = add_text(l, &text, l->at, n);
		next_line(l);
	}
	if (!rc && text.failed)
		rc = err_nomem(l->err, "a value");
	if (!rc)
		rc = literal_parse_or_word(strbuf_text(&text), &value, &why);
	if (rc && why.code)
		*l->err = why;
	if (!rc) {
		const char *v = value.text ? value.text : "";
		bool odd = value.bare && *v && strchr("[{('\"", *v) && strcmp(v, "[*]");
		struct ini_key k = { .value = value, .line = line };

		snprintf(k.why, sizeof k.why, "%.*s", (int)sizeof k.why - 1, odd ? why.text : "");
		rc = add_key(l->f, name, name_len, k, l->err);
	}
	strbuf_release(&text);
	return rc;
}

static int read_ini(struct ini *f, const char *text, size_t len, struct err *err)
{
	struct lines l = { .f = f, .at = text, .end = text + len, .line = 1, .err = err };
	int rc = 0;

	while (!rc && l.at < l.end) {
		size_t n = line_length(&l);
		const char *closing;

		if (nothing_there(l.at, n)) {
			next_line(&l);
			continue;
		}
		if (isspace((unsigned char)*l.at)) {
			rc = line_fail(&l, l.line,
				       "an indented line continues a value, and there is none before it");
		} else if (*l.at == '[') {
			closing = memchr(l.at, ']', n);
			if (!closing || closing == l.at + 1 ||
			    !nothing_there(closing + 1, n - (size_t)(closing + 1 - l.at)))
				rc = line_fail(&l, l.line, "a section is '[name]', and nothing follows it");
			else
				rc = add_section(f, l.at + 1, (size_t)(closing - l.at - 1), l.line, err);
			next_line(&l);
		} else if (!f->n) {
			rc = line_fail(&l, l.line, "a key before the first [section]");
		} else {
			rc = read_key(&l);
		}
	}
	return rc;
}

/* ---- JSON ---- */

static int read_json(struct ini *f, const char *text, size_t len, struct err *err)
{
	struct json *root;
	int rc = json_parse(text_tail(f->file, INI_FILE_SHOWN), text, len, &root, err);

	if (rc)
		return rc;
	for (const struct json *s = json_first(root); s && !rc; s = json_next(s)) {
		rc = add_section(f, json_key(s), strlen(json_key(s)), 0, err);
		if (!rc && json_type(s) != JSON_OBJECT)
			rc = ini_fail(f, &f->section[f->n - 1], NULL, err,
				      "a section must be an object of keys");
		for (const struct json *k = rc ? NULL : json_first(s); k && !rc; k = json_next(k)) {
			struct literal value = { 0 };

			rc = literal_from_json(k, &value, err);
			if (!rc)
				rc = add_key(f, json_key(k), strlen(json_key(k)),
					     (struct ini_key){ .value = value }, err);
		}
	}
	json_free(root);
	return rc;
}

int ini_parse(const char *file, const char *text, size_t len, struct ini **out, struct err *err)
{
	struct ini *f = mem_calloc(1, sizeof *f);
	size_t blank = 0;
	int rc;

	if (f)
		f->file = mem_strdup(file);
	if (!f || !f->file) {
		ini_free(f);
		return err_nomem(err, "a campaign");
	}
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { /* a byte-order mark */
		text += 3;
		len -= 3;
	}
	while (blank < len && isspace((unsigned char)text[blank]))
		blank++;
	if (memchr(text, '\0', len))
		rc = err_fail(err, ERR_FORMAT, "%s: there is a NUL byte in it",
			      text_tail(file, INI_FILE_SHOWN));
	else if (blank < len && text[blank] == '{')
		rc = read_json(f, text, len, err);
	else
		rc = read_ini(f, text, len, err);
	if (rc) {
		ini_free(f);
		return rc;
	}
	*out = f;
	return 0;
}

int ini_read_file(const char *path, struct ini **out, struct err *err)
{
	char *text;
	size_t len;
	int rc = io_read_file(path, INI_MAX_BYTES, &text, &len, err);

	if (rc)
		return rc;
	rc = ini_parse(path, text, len, out, err);
	free(text);
	return rc;
}
