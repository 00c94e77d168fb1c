/* Reading words with placeholders. Everything that could be wrong with a template is found here, so that filling it
 * in can only fail for the length of a word or for want of memory. */
#include "scheduler/process/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/job_type.h"
#include "common/places.h"

enum piece_kind piece_next(const char **at, struct piece *out)
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

bool piece_is(const struct piece *p, const char *name)
{
	return strlen(name) == p->len && !memcmp(name, p->text, p->len);
}

static void unknown_placeholder(struct fields *f, const struct template_rules *rules, const char *key,
				const struct piece *p)
{
	char name[JOB_TYPE_MAX_NAME + 1], shown[64], all[160] = "";
	const char *near;
	size_t used = 0;

	snprintf(name, sizeof name, "%.*s", (int)(p->len < sizeof name ? p->len : sizeof name - 1), p->text);
	near = text_nearest(name, rules->names);
	text_printable(name, shown, sizeof shown);
	if (near) {
		fields_fail(f, ERR_FORMAT, key, "there is no {%s}; did you mean {%s}?", shown, near);
		return;
	}
	for (size_t i = 0; rules->names[i] && used < sizeof all; i++)
		used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "",
					 rules->names[i]);
	fields_fail(f, ERR_FORMAT, key, "there is no {%s}: it is none of %s", shown, all);
}

static void word_check(struct fields *f, const struct template_rules *rules, const char *key,
		       const char *word, bool program)
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
		else if (kind == PIECE_NAME && !rules->known(rules->owner, &p))
			unknown_placeholder(f, rules, key, &p);
		if (kind == PIECE_BAD)
			return;
	}
}

/* A program with a slash in its name is found from here, not from where it will run. */
static void program_absolute(struct fields *f, const char *key, char **argv)
{
	struct err why = { 0 };
	char *whole = NULL, place[64];

	snprintf(place, sizeof place, "%s[0]", key);
	if (!argv[0][0]) {
		fields_fail(f, ERR_FORMAT, place, "is empty; it names the program");
		return;
	}
	if (!strchr(argv[0], '/'))
		return;
	if (place_absolute(argv[0], &whole, &why)) {
		fields_fail(f, why.code, place, "%s", why.text);
		return;
	}
	free(argv[0]);
	argv[0] = whole;
}

void template_read(struct fields *f, const char *key, const struct template_rules *rules, char **argv,
		   size_t *n)
{
	const struct json *list = fields_list(f, key, 0, JOB_TYPE_MAX_ARGS);
	char place[64];

	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		const char *s = json_string(e, NULL);

		snprintf(place, sizeof place, "%s[%zu]", key, *n);
		if (!s) {
			fields_fail(f, ERR_FORMAT, place, "must be a string");
			return;
		}
		if (strlen(s) > JOB_TYPE_MAX_ARG) {
			fields_fail(f, ERR_FORMAT, place, "has %zu bytes; at most %d are allowed", strlen(s),
				    JOB_TYPE_MAX_ARG);
			return;
		}
		word_check(f, rules, place, s, *n == 0);
		argv[*n] = f->rc ? NULL : mem_strdup(s);
		if (!argv[*n]) {
			fields_nomem(f, place);
			return;
		}
		++*n;
	}
	if (*n && !f->rc)
		program_absolute(f, key, argv);
}
