/* A configuration as text. See config_text.h. */
#include "tests/unit/config/config_text.h"

#include <string.h>

#include "tests/support/test.h"

int read_text(const char *text, struct config **out, struct err *err)
{
	struct json *v = NULL;
	int rc = json_parse("c.json", text, strlen(text), &v, err);

	if (!rc)
		rc = config_from_json("c.json", v, out, err);
	json_free(v);
	return rc;
}

struct config *must(const char *text)
{
	struct config *c = NULL;
	struct err err = { 0 };

	if (read_text(text, &c, &err))
		fail_msg("%s", err.text);
	return c;
}

void refuses(const char *text, const char *start, const char *say)
{
	struct config *c = NULL;
	struct err err = { 0 };

	if (read_text(text, &c, &err) != -ERR_FORMAT || c)
		fail_msg("taken, or another code: %s: %s", text, err.text);
	if (strncmp(err.text, start, strlen(start)))
		fail_msg("'%s' does not start with '%s'", err.text, start);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}
