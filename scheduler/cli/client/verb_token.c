/* `postrider token`: a token by which the daemon's page knows its user. */
#include <math.h>
#include <stdio.h>

#include "scheduler/cli/cli.h"
#include "scheduler/cli/client/client.h"

static void put_text(struct strbuf *out, const struct json *reply, bool revoke, bool quiet)
{
	const char *url = json_string(json_get(reply, "url"), NULL);

	if (revoke) {
		if (!quiet)
			strbuf_puts(out, "all your tokens are revoked\n");
		return;
	}
	strbuf_printf(out, "%s\n", json_string(json_get(reply, "token"), ""));
	if (quiet)
		return;
	strbuf_printf(out, "  good until  %s\n", json_string(json_get(reply, "expires_at"), "?"));
	if (url)
		strbuf_printf(out, "  page        %s\n", url);
}

int verb_token(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	uint64_t days = 0;
	bool revoke = false;
	const struct cli_option option[] = {
		{ 0, "days", CLI_COUNT, "N", "how long it is valid (default: 30; at most 3650)", &days },
		{ 0, "revoke", CLI_FLAG, NULL, "make no token, and end all of yours", &revoke },
		CLIENT_OPTIONS(at),
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "token",
		.synopsis = "[--days N | --revoke] [--json]",
		.what = "Prints a token for the daemon's page in a browser, and the address of the page with "
			"it.\n"
			"A person who has it sees and may do there what you may: keep it secret. The daemon "
			"keeps\nonly its hash. Without a token the page shows sums only.",
		.option = option,
		.json = true,
		.examples = "  postrider token\n"
			    "  postrider token -q --days 1 >~/.postrider-token\n",
	};
	struct json *reply = NULL;
	struct strbuf out = { 0 };
	struct json_writer text;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	code = client_ask(
		&at,
		&(struct client_question){ .op = "token", .days = days, .flag = revoke ? "revoke" : NULL },
		&reply);
	if (code)
		return code;
	if (c.json) {
		json_begin(&text, &out, true);
		cli_json_copy(&text, reply);
		strbuf_puts(&out, "\n");
	} else {
		put_text(&out, reply, revoke, c.quiet);
	}
	code = cli_finish(&c, &out);
	strbuf_release(&out);
	json_free(reply);
	return code;
}
