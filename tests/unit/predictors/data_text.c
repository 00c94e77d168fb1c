/* Schemas and tables as text. See data_text.h. */
#include "tests/unit/predictors/data_text.h"

#include <string.h>

#include "tests/support/test.h"

struct schema *default_schema;

struct schema *schema_of(const char *text)
{
	struct json *v = NULL;
	struct schema *s = NULL;
	struct err err = { 0 };

	if (!text ? schema_default(&s, &err)
		  : json_parse("s.json", text, strlen(text), &v, &err) ||
			    schema_from_json("s.json", v, &s, &err))
		fail_msg("%s", err.text);
	json_free(v);
	return s;
}

struct csv *csv_of(const char *text)
{
	struct csv *csv = NULL;
	struct err err = { 0 };

	if (csv_parse("t.csv", text, strlen(text), &csv, &err))
		fail_msg("%s", err.text);
	return csv;
}

int open_default_schema(void **state)
{
	(void)state;
	return schema_default(&default_schema, NULL);
}

int close_default_schema(void **state)
{
	(void)state;
	schema_free(default_schema);
	return 0;
}
