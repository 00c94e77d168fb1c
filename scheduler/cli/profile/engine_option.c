/* Finds the engine that --executor names. See engine_option.h. */
#include "scheduler/cli/profile/engine_option.h"

#include "common/json/json.h"
#include "common/strbuf.h"

/* A configuration that has nothing but the name of its executor. */
static int config_of_name(const char *name, struct config **out, struct err *err)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	struct json *v = NULL;
	int rc;

	json_begin(&w, &text, false);
	json_open(&w, '{');
	json_kv_string(&w, "executor", name);
	json_close(&w, '}');
	rc = text.failed ? err_nomem(err, "a name") : json_parse("--executor", text.text, text.len, &v, err);
	if (!rc)
		rc = config_from_json("--executor", v, out, err);
	json_free(v);
	strbuf_release(&text);
	return rc;
}

int cli_engine(const char *name, const char *path, struct config **out,
	       const struct config_engine **out_engine, struct err *err)
{
	int rc = path ? config_read(path, out, err) : 0;

	*out_engine = !rc && path ? config_engine(*out, name) : NULL;
	if (!rc && !*out_engine) {
		config_free(*out);
		*out = NULL;
		rc = config_of_name(name, out, err);
		*out_engine = rc ? NULL : config_engine(*out, name);
	}
	if (!rc && !*out_engine)
		rc = err_fail(err, ERR_NOTFOUND, "there is no engine '%s'", name);
	return rc;
}
