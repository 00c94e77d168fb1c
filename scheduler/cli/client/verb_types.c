/* `postrider types`: what may be submitted, with parameters, batches and cpus. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "scheduler/cli/client/client.h"

static void put_numbers(const struct json *list, struct strbuf *out)
{
	char a[TEXT_NUMBER];

	for (const struct json *v = json_first(list); v; v = json_next(v))
		strbuf_printf(out, "%s%s", v == json_first(list) ? "" : " ",
			      text_shortest(json_number(v, 0.0), a));
}

/* "epochs 1 to 8, default 4", "network lenet5, simplenet", "name any word, required" */
static void put_param(const struct json *p, struct strbuf *out)
{
	const struct json *otherwise = json_get(p, "default"), *values = json_get(p, "values");
	double min = cli_json_number(p, "min"), max = cli_json_number(p, "max");
	char a[TEXT_NUMBER], b[TEXT_NUMBER];
	const char *kind = json_string(json_get(p, "kind"), "");

	strbuf_printf(out, "  %-12s ", cli_clean(json_string(json_get(p, "name"), "?")));
	if (!strcmp(kind, "word") && json_size(values)) {
		for (const struct json *v = json_first(values); v; v = json_next(v))
			strbuf_printf(out, "%s%s", v == json_first(values) ? "" : " | ",
				      cli_clean(json_string(v, "?")));
	} else if (!strcmp(kind, "word")) {
		strbuf_puts(out, "any word");
	} else if (!isnan(min) && !isnan(max)) {
		strbuf_printf(out, "%s from %s to %s",
			      !strcmp(kind, "integer") ? "a whole number" : "a number", text_shortest(min, a),
			      text_shortest(max, b));
	} else {
		strbuf_puts(out, !strcmp(kind, "integer") ? "a whole number" : "a number");
		if (!isnan(min) || !isnan(max))
			strbuf_printf(out, " %s %s", isnan(min) ? "up to" : "from",
				      text_shortest(isnan(min) ? max : min, a));
	}
	if (json_bool(json_get(p, "required"), false))
		strbuf_puts(out, ", required");
	else if (json_type(otherwise) == JSON_STRING)
		strbuf_printf(out, ", default %s", cli_clean(json_string(otherwise, "")));
	else if (json_type(otherwise) == JSON_NUMBER)
		strbuf_printf(out, ", default %s", text_shortest(json_number(otherwise, 0.0), a));
	strbuf_puts(out, "\n");
}

static void put_gpus(const struct json *gpus, struct strbuf *out)
{
	double usual = cli_json_number(gpus, "default"), max = cli_json_number(gpus, "max");
	double each = cli_json_number(gpus, "records_each");

	if (!(max > 0.0) && isnan(each))
		return;
	strbuf_printf(out, "\n  gpus         %.0f", usual);
	if (max > usual)
		strbuf_printf(out, ", at most %.0f on request", max);
	if (!isnan(each))
		strbuf_printf(out, ", one more for every %.0f records of a batch", each);
}

static void put_type(const struct json *t, struct strbuf *out)
{
	const char *about = json_string(json_get(t, "about"), NULL);
	const struct json *cpus = json_get(t, "cpus");
	double min = cli_json_number(cpus, "min"), max = cli_json_number(cpus, "max");

	strbuf_printf(out, "%s%s%s\n  batches      ", cli_clean(json_string(json_get(t, "name"), "?")),
		      about ? ": " : "", about ? cli_clean(about) : "");
	if (json_size(json_get(t, "batches")))
		put_numbers(json_get(t, "batches"), out);
	else
		strbuf_puts(out, "those the model was trained on");
	strbuf_printf(out, "\n  cpus         %.0f", min);
	if (max > min)
		strbuf_printf(out, " to %.0f, default %.0f", max, cli_json_number(cpus, "default"));
	put_gpus(json_get(t, "gpus"), out);
	strbuf_puts(out, "\n");
	for (const struct json *p = json_first(json_get(t, "params")); p; p = json_next(p))
		put_param(p, out);
	if (json_type(json_get(t, "own_model")) == JSON_NULL)
		strbuf_puts(out, "  no model yet: jobs run without a promise, and teach the first one\n");
	else if (json_type(json_get(t, "own_model")) == JSON_OBJECT)
		strbuf_printf(out, "  model        its own, from %.0f runs\n",
			      cli_json_number(json_get(t, "own_model"), "rows"));
	if (json_size(json_get(t, "mode")) == 1)
		strbuf_puts(out, "  (the daemon has no command for it: --mode advise)\n");
}

int verb_types(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	const struct cli_option option[] = { CLIENT_OPTIONS(at), { 0 } };
	const struct cli_usage usage = {
		.verb = "types",
		.synopsis = "[TYPE] [--json]",
		.what = "Shows what may be submitted: each job type with its batch sizes, cpus and "
			"parameters.",
		.option = option,
		.json = true,
		.max_args = 1,
	};
	struct strbuf out = { 0 };
	struct json *reply = NULL;
	struct json_writer w;
	struct cli c;
	size_t n = 0;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	code = client_ask(&at, &(struct client_question){ .op = "hello", .expects = "types" }, &reply);
	if (code)
		return code;
	json_begin(&w, &out, true);
	if (c.json) {
		json_open(&w, '{');
		json_kv_open(&w, "types", '[');
	}
	for (const struct json *t = json_first(json_get(reply, "types")); t; t = json_next(t)) {
		if (c.n_args && strcmp(c.arg[0], json_string(json_get(t, "name"), "")))
			continue;
		n++;
		if (c.json)
			cli_json_copy(&w, t);
		else if (c.quiet)
			strbuf_printf(&out, "%s\n", cli_clean(json_string(json_get(t, "name"), "?")));
		else
			put_type(t, &out);
	}
	if (c.json) {
		json_close(&w, ']');
		json_close(&w, '}');
		strbuf_puts(&out, "\n");
	}
	if (c.n_args && !n) {
		fprintf(stderr, "postrider: there is no job type '%s'; 'postrider types' lists them\n",
			cli_clean(c.arg[0]));
		code = 4;
	} else {
		code = cli_finish(&c, &out);
	}
	strbuf_release(&out);
	json_free(reply);
	return code;
}
