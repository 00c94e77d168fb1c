/* Values of a campaign file: the literals of Python that aMLLibrary's files are written in. Numbers, strings,
 * lists, dictionaries, True, False and None; tuples and sets are read as lists. A text that is not a literal
 * is a bare word: `KFold`, `inf` and `inputs/a.csv` are strings with or without quotes. */
#ifndef AUTOML_LITERAL_H
#define AUTOML_LITERAL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/json/json.h"
#include "common/strbuf.h"

#define LITERAL_MAX_DEPTH 16
#define LITERAL_MAX_ITEMS 100000 /* of a list or a dictionary */

enum literal_kind {
	LITERAL_NONE,
	LITERAL_BOOL,
	LITERAL_INT,
	LITERAL_FLOAT,
	LITERAL_STRING,
	LITERAL_LIST,
	LITERAL_DICT, /* item[2i] is a key, item[2i+1] its value */
};

struct literal {
	enum literal_kind kind;
	bool bare;            /* LITERAL_STRING: it was not a literal, and is taken as it stands */
	double number;        /* BOOL, INT, FLOAT */
	char *text;           /* STRING */
	struct literal *item; /* LIST, DICT */
	size_t n;             /* items; of a dictionary keys and values together */
};

/* One literal and nothing after it but blanks and a comment. ERR_FORMAT says what is wrong and where. */
int literal_parse(const char *text, struct literal *out, struct err *err);
/* The same; a text that is not a literal becomes a bare word, without the blanks around it. It fails only
 * without memory. */
int literal_parse_or_word(const char *text, struct literal *out, struct err *err);
int literal_from_json(const struct json *v, struct literal *out, struct err *err);
int literal_string(const char *text, struct literal *out, struct err *err);
void literal_release(struct literal *v); /* accepts an all-zero one, which is None */

/* As Python would print it. */
void literal_write(const struct literal *v, struct strbuf *out);
void literal_to_json(const struct literal *v, struct json_writer *w);

static inline bool literal_is_number(const struct literal *v)
{
	return v->kind == LITERAL_INT || v->kind == LITERAL_FLOAT;
}
bool literal_is_text(const struct literal *v, const char *text); /* that string? */
const struct literal *literal_get(const struct literal *dict, const char *key); /* NULL: no such key */
const char *literal_kind_name(const struct literal *v); /* "a number", "a list", ... */

#endif
