/* A job type as text. See type_text.h. */
#include "tests/unit/config/type_text.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/test.h"

int type_read(const char *text, struct job_type *out, struct err *err)
{
	struct json *v = NULL;
	int rc = json_parse("c.json", text, strlen(text), &v, err);

	if (!rc)
		rc = job_type_from_json(TYPE_WHERE, "digits", v, out, err);
	json_free(v);
	return rc;
}

struct job_type type_must(const char *text)
{
	struct job_type t = { 0 };
	struct err err = { 0 };

	if (type_read(text, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

void type_refused(const char *text, const char *place, const char *say)
{
	struct job_type t = { .name = (char[]){ "untouched" } };
	struct err err = { 0 };
	char expected[256];

	if (type_read(text, &t, &err) != -ERR_FORMAT)
		fail_msg("taken, or another code: %s: %s", text, err.text);
	assert_string_equal(t.name, "untouched");
	snprintf(expected, sizeof expected, TYPE_WHERE "%s: ", place);
	if (strncmp(err.text, expected, strlen(expected)))
		fail_msg("'%s' does not start with '%s'", err.text, expected);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}
