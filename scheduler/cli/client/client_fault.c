/* What ends a conversation with the daemon early: refusals as exit codes, our messages, and signals. See
 * client.h. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/cli/cli.h"
#include "scheduler/cli/client/client.h"

/* ---- faults ---- */

static const struct {
	const char *code;
	int exit_code;
} exit_code_of[] = {
	{ "bad_json", 2 },       { "line_too_long", 2 },
	{ "bad_version", 2 },    { "unknown_op", 2 },
	{ "unknown_field", 2 },  { "bad_field", 2 },
	{ "unknown_type", 4 },   { "unknown_job", 4 },
	{ "wrong_state", 1 },    { "not_permitted", 7 },
	{ "queue_full", 8 },     { "draining", 8 },
	{ "storage_failed", 8 }, { "too_many_connections", 8 },
	{ "idle_timeout", 1 },   { "slow_reader", 1 },
	{ "no_model", 6 },       { "internal", 1 },
};

int client_exit_code(const char *code)
{
	for (size_t i = 0; i < sizeof exit_code_of / sizeof exit_code_of[0]; i++) {
		if (!strcmp(exit_code_of[i].code, code))
			return exit_code_of[i].exit_code;
	}
	return CLIENT_FAILED;
}

int client_fail(struct client_fault *f, int exit_code, const char *fmt, ...)
{
	va_list ap;

	*f = (struct client_fault){ .exit_code = exit_code };
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof f->text, fmt, ap);
	va_end(ap);
	return exit_code;
}

int client_bad_reply(struct client_fault *f, const char *what)
{
	return client_fail(f, CLIENT_FAILED, "the daemon's reply is not what the protocol promises: %s",
			   what);
}

int client_say(const struct client_fault *f)
{
	if (f->exit_code == CLIENT_INTERRUPTED)
		return f->exit_code;
	fprintf(stderr, "postrider: %s\n",
		f->text[0] ? cli_clean(f->text) : "it failed for an unknown reason");
	if (f->hint[0])
		fprintf(stderr, "postrider: hint: %s\n", cli_clean(f->hint));
	return f->exit_code;
}

/* ---- signals ---- */

static volatile sig_atomic_t stop_seen;

static void on_stop(int number)
{
	static const char show_cursor[] = "\033[?25h";
	ssize_t ignored = 0;

	if (stop_seen) { /* the first one did not help: something blocks */
		if (isatty(STDOUT_FILENO))
			ignored = write(STDOUT_FILENO, show_cursor, sizeof show_cursor - 1);
		(void)ignored;
		signal(number, SIG_DFL);
		raise(number);
	}
	stop_seen = 1;
}

void client_catch_signals(void)
{
	static const int number[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction stop = { .sa_handler = on_stop }, old; /* no SA_RESTART: a wait must end */

	for (size_t i = 0; i < 3; i++) {
		if (!sigaction(number[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(number[i], &stop, NULL);
	}
}

bool client_interrupted(void)
{
	return stop_seen;
}

void client_last_words(void)
{
	stop_seen = 0;
}
