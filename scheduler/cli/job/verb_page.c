/* `postrider page`: the page of the user's own daemon, in a browser. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/io.h"
#include "scheduler/cli/job/own_daemon.h"

/* The address has a token in it, and the words of a command are seen by every user: the browser gets a file
 * that only this user can read, and that leads there. */
static bool show(const char *url)
{
	struct strbuf page = { 0 };
	struct own_daemon own;
	char path[PATH_MAX + 16];
	bool made;
	pid_t pid;

	if (own_daemon_find(&own, NULL))
		return false;
	snprintf(path, sizeof path, "%s/page.html", own.dir);
	strbuf_printf(
		&page,
		"<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\"><a href=\"%s\">the page"
		"</a>\n",
		url, url);
	made = !page.failed && !io_write_file(path, page.text, page.len, NULL);
	strbuf_release(&page);
	if (!made)
		return false;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		setsid();
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(127);
		execlp("xdg-open", "xdg-open", path, (char *)NULL);
		_exit(127);
	}
	return pid > 0;
}

static bool has_screen(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	return isatty(STDOUT_FILENO) && ((x && *x) || (wayland && *wayland));
}

int verb_page(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	bool only_print = false;
	const struct cli_option option[] = {
		{ 0, "print", CLI_FLAG, NULL, "print the address, and open no browser", &only_print },
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "page",
		.synopsis = "[--print]",
		.what = "Opens the page of your own daemon, the one of 'postrider run', in a browser, and "
			"prints\n"
			"its address. The page is for this machine only, at a free port, unless \"http\" in "
			"the\n"
			"daemon's configuration says otherwise. The address has a token in it: a person who "
			"has it\n"
			"may do there what you may.",
		.option = option,
		.examples = "  postrider page\n"
			    "  postrider page --print\n",
	};
	struct client *client = NULL;
	struct json *reply = NULL;
	struct client_fault f;
	const char *url;
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	code = own_daemon_page(&c, &at, &client, &f);
	if (!code) {
		client_begin(client, "token");
		code = client_call(client, &reply, &f);
	}
	url = code ? NULL : json_string(json_get(reply, "url"), NULL);
	if (code)
		client_say(&f);
	else if (!url)
		code = cli_fail(&(struct err){
			ERR_ARG, "the page of your daemon has no address of its own: \"http\" in its "
				 "configuration names a socket" });
	else
		printf("%s\n", url);
	if (url && !only_print && has_screen())
		show(url);
	json_free(reply);
	client_close(client);
	return code;
}
