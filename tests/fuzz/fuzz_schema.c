/* Schema files: whatever is taken must write to a text that reads back to the same schema. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/data/features.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct schema *parse(const char *text, size_t len)
{
	struct json *v = NULL;
	struct schema *s = NULL;
	struct err err = { 0 };

	if (!json_parse("fuzz", text, len, &v, &err) && schema_from_json("fuzz", v, &s, &err) && !err.text[0])
		abort(); /* a refusal without a reason */
	json_free(v);
	return s;
}

static struct strbuf written(const struct schema *s)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	json_begin(&w, &out, false);
	schema_to_json(s, &w);
	return out;
}

/* A job that names every column. */
static void try_job(const struct schema *s)
{
	struct strbuf text = { 0 };
	struct job_values v;

	for (size_t i = 0; i < s->n_columns; i++)
		strbuf_printf(&text, "%s%s=%zu", i ? "," : "", s->column[i].name, i);
	if (!job_values_init(&v, s, NULL)) {
		if (job_values_parse(&v, s, strbuf_text(&text), NULL))
			abort(); /* a name the command line could not say */
		for (size_t i = 0; i < s->n_derived; i++)
			v.number[s->n_columns + i] = schema_derive(&s->derived[i], v.number);
		job_values_release(&v);
	}
	strbuf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct schema *s = parse((const char *)data, size), *t;
	struct strbuf a, b;

	if (!s)
		return 0;
	a = written(s);
	t = parse(strbuf_text(&a), a.len);
	if (!t)
		abort();
	b = written(t);
	if (a.len != b.len || memcmp(a.text, b.text, a.len) != 0)
		abort();
	try_job(s);
	strbuf_release(&a);
	strbuf_release(&b);
	schema_free(s);
	schema_free(t);
	return 0;
}
