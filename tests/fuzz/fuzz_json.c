/* Any bytes into the JSON reader: it must not crash, leak or accept what its own writer would not
 * write again. An accepted value is written, read once more and written again: both texts are equal. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "fuzz_json: %s\n", what);
	abort();
}

static void copy_value(struct json_writer *w, const struct json *v)
{
	switch (json_type(v)) {
	case JSON_ABSENT: must(false, "an accepted text holds an absent value"); break;
	case JSON_NULL: json_put_null(w); break;
	case JSON_BOOL: json_put_bool(w, json_bool(v, false)); break;
	case JSON_NUMBER: json_put_number(w, json_number(v, 0.0)); break;
	case JSON_STRING: json_put_string(w, json_string(v, NULL)); break;
	case JSON_ARRAY:
		json_open(w, '[');
		for (const struct json *e = json_first(v); e; e = json_next(e))
			copy_value(w, e);
		json_close(w, ']');
		break;
	case JSON_OBJECT:
		json_open(w, '{');
		for (const struct json *m = json_first(v); m; m = json_next(m)) {
			json_put_key(w, json_key(m));
			copy_value(w, m);
		}
		json_close(w, '}');
		break;
	}
}

/* Keys are unique, so looking one up must find the member it came from. Quadratic: small objects only. */
static void check_lookup(const struct json *v)
{
	if (json_type(v) == JSON_OBJECT && json_size(v) <= 64)
		for (const struct json *m = json_first(v); m; m = json_next(m))
			must(json_get(v, json_key(m)) == m, "a key finds another member");
	for (const struct json *m = json_first(v); m; m = json_next(m))
		check_lookup(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json *first = NULL, *second = NULL;
	struct strbuf once = { 0 }, twice = { 0 };
	struct json_writer w;
	struct err err = { 0 };

	if (json_parse("fuzz", (const char *)data, size, &first, &err)) {
		must(err.code == ERR_FORMAT && strncmp(err.text, "fuzz:", 5) == 0,
		     "an error without its place");
		return 0;
	}
	check_lookup(first);
	json_begin(&w, &once, size % 2 != 0);
	copy_value(&w, first);
	if (json_parse("again", once.text, once.len, &second, &err)) {
		fprintf(stderr, "%s\n%s\n", err.text, once.text);
		must(false, "what was written is refused");
	}
	json_begin(&w, &twice, size % 2 != 0);
	copy_value(&w, second);
	must(once.len == twice.len && memcmp(once.text, twice.text, once.len) == 0,
	     "a value changes by writing and reading");
	json_free(first);
	json_free(second);
	strbuf_release(&once);
	strbuf_release(&twice);
	return 0;
}
