/* Parses the options of a verb from its table and prints its help. See cli.h. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/cli.h"

#define ALL_MAX 64 /* options of a verb */

/* All options of a verb: its own, then those that every verb has, in the order of the help. `into` is where
 * CLI_AT() counts from; NULL: the verb's own have pointers. Returns how many there are. */
static size_t all_options(struct cli *c, void *into, bool *help, struct cli_option *out)
{
	const struct cli_usage *u = c->usage;
	const struct cli_option common[] = {
		{ 'o', u->output ? "output" : NULL, CLI_TEXT, "FILE", u->output, &c->output },
		{ 0, u->json ? "json" : NULL, CLI_FLAG, NULL, "print one JSON object", &c->json },
		{ 0, u->threads ? "threads" : NULL, CLI_COUNT, "N",
		  "worker threads (default: all cores); they do not change results", &c->threads },
		{ 'q', "quiet", CLI_FLAG, NULL, "no notes, no progress", &c->quiet },
		{ 'v', "verbose", CLI_FLAG, NULL, "print more details", &c->verbose },
		{ 0, "no-color", CLI_FLAG, NULL, "no colour, even on a terminal", &c->no_color },
		{ 'h', "help", CLI_FLAG, NULL, "print this text", help },
	};
	size_t n = 0;

	for (const struct cli_option *o = u->option; o && o->name && n < ALL_MAX - 7; o++) {
		out[n] = *o;
		if (into)
			out[n].out = (char *)into + (uintptr_t)o->out;
		n++;
	}
	for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
		if (common[i].name)
			out[n++] = common[i];
	}
	return n;
}

static void print_options(const struct cli_option *o, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char left[64], letter[8] = "   ";

		if (o[i].kind == CLI_RETIRED)
			continue;
		if (o[i].letter)
			snprintf(letter, sizeof letter, "-%c,", o[i].letter);
		snprintf(left, sizeof left, "%s --%s%s%s", letter, o[i].name, o[i].arg ? " " : "",
			 o[i].arg ? o[i].arg : "");
		printf("  %-26s ", left);
		/* The next lines of a description start below the first. */
		for (const char *s = o[i].help; *s; s++) {
			putchar(*s);
			if (*s == '\n')
				printf("%29s", "");
		}
		putchar('\n');
	}
}

static void print_help(const struct cli_usage *u, const struct cli_option *all, size_t n_all)
{
	const char *line = u->synopsis;
	const char *head = "usage:";

	while (*line) {
		size_t len = strcspn(line, "\n");

		printf("%s postrider %s %.*s\n", head, u->verb, (int)len, line);
		head = "      ";
		line += len + (line[len] == '\n');
	}
	printf("\n%s\n\n", u->what);
	print_options(all, n_all);
	if (u->examples)
		printf("\nExamples:\n%s", u->examples);
}

static const struct cli_option *option_find(const struct cli_option *o, size_t n, char letter,
					    const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		if (name ? strlen(o[i].name) == len && !memcmp(o[i].name, name, len) : o[i].letter == letter)
			return &o[i];
	}
	return NULL;
}

static bool confidence_parse(const char *text, double *out)
{
	char buf[64];
	size_t len = strlen(text);
	bool percent = len > 0 && text[len - 1] == '%';

	if (len - percent >= sizeof buf)
		return false;
	memcpy(buf, text, len - percent);
	buf[len - percent] = '\0';
	while (percent && len > 1 && buf[len - 2] == ' ') /* "90 %" */
		buf[--len - 1] = '\0';
	if (!text_number(buf, out))
		return false;
	if (percent)
		*out /= 100.0;
	return *out > 0.0 && *out < 1.0;
}

/* Stores one option's value; false after explaining what is wrong with it. */
static bool option_store(const struct cli *c, const struct cli_option *o, const char *value)
{
	struct err err = { 0 };
	struct cli_list *list;

	switch (o->kind) {
	case CLI_FLAG: *(bool *)o->out = true; return true;
	case CLI_TEXT:
		if (!*value) {
			cli_usage_error(c, "--%s: the value is empty", o->name);
			return false;
		}
		*(const char **)o->out = value;
		return true;
	case CLI_LIST:
		list = o->out;
		if (list->n == CLI_LIST_MAX) {
			cli_usage_error(c, "--%s: given more than %d times", o->name, CLI_LIST_MAX);
			return false;
		}
		list->item[list->n++] = value;
		return true;
	case CLI_COUNT:
		if (text_uint64(value, o->out) && *(uint64_t *)o->out <= CLI_SEED_MAX)
			return true;
		cli_usage_error(c, "--%s: '%s' is not a whole number from 0 to 2^53", o->name, value);
		return false;
	case CLI_CONFIDENCE:
		if (confidence_parse(value, o->out))
			return true;
		cli_usage_error(c, "--%s: '%s' is not between 0 and 1; write 0.9 or 90%%", o->name, value);
		return false;
	case CLI_DURATION:
		if (text_duration(value, o->out, &err)) {
			cli_usage_error(c, "--%s: %s", o->name, err.text);
			return false;
		}
		if (*(double *)o->out > 0.0)
			return true;
		cli_usage_error(c, "--%s: '%s' must be more than 0", o->name, value);
		return false;
	case CLI_POSITIVE:
		if (text_number(value, o->out) && *(double *)o->out > 0.0 && isfinite(*(double *)o->out))
			return true;
		cli_usage_error(c, "--%s: '%s' is not a number above 0", o->name, value);
		return false;
	case CLI_RETIRED: return false; /* parse_option() has said so */
	}
	return false;
}

struct words { /* the command line, and how far it was read */
	const struct cli *c;
	const struct cli_option *all;
	size_t n_all;
	char **argv;
	int argc, at;
};

static bool unknown_option(const struct words *w, const char *given)
{
	const char *name[ALL_MAX + 1] = { NULL };
	const char *near;
	char bare[64];

	for (size_t i = 0, n = 0; i < w->n_all; i++)
		if (w->all[i].kind != CLI_RETIRED)
			name[n++] = w->all[i].name;
	snprintf(bare, sizeof bare, "%.*s", (int)strcspn(given, "="), given);
	near = text_nearest(bare, name);
	cli_usage_error(w->c, "there is no option --%s%s%s%s", bare, near ? "; did you mean --" : "",
			near ? near : "", near ? "?" : "");
	return false;
}

/* Stores the option, given as `name`, whose value starts at `value`, or is the next argument if that is
 * NULL. */
static bool take_value(struct words *w, const struct cli_option *o, const char *name, const char *value)
{
	if (!value && w->at + 1 >= w->argc) {
		cli_usage_error(w->c, "%s needs a value: %s %s", name, name, o->arg);
		return false;
	}
	return option_store(w->c, o, value ? value : w->argv[++w->at]);
}

static bool long_option(struct words *w, const char *a)
{
	const char *eq = strchr(a, '=');
	const struct cli_option *o = option_find(w->all, w->n_all, 0, a + 2, strcspn(a + 2, "="));
	char name[64];

	if (!o)
		return unknown_option(w, a + 2);
	if (o->kind == CLI_RETIRED) {
		cli_usage_error(w->c, "--%s was removed: %s", o->name, o->help);
		return false;
	}
	if (o->kind == CLI_FLAG && eq) {
		cli_usage_error(w->c, "--%s takes no value", o->name);
		return false;
	}
	if (o->kind == CLI_FLAG)
		return option_store(w->c, o, "");
	snprintf(name, sizeof name, "--%s", o->name);
	return take_value(w, o, name, eq ? eq + 1 : NULL);
}

/* One argument that starts with a dash: a long option or several letters. */
static bool parse_option(struct words *w)
{
	const char *a = w->argv[w->at];

	if (a[1] == '-')
		return long_option(w, a);
	for (const char *s = a + 1; *s; s++) {
		const struct cli_option *o = option_find(w->all, w->n_all, *s, NULL, 0);

		if (!o) {
			cli_usage_error(w->c, "there is no option -%c", *s);
			return false;
		}
		if (o->kind != CLI_FLAG) /* -oFILE or -o FILE */
			return take_value(w, o, (char[]){ '-', *s, '\0' }, s[1] ? s + 1 : NULL);
		option_store(w->c, o, "");
	}
	return true;
}

int cli_words(int argc, char **argv, char ***out_word, size_t *out_n)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		*out_word = argv + i + 1;
		*out_n = (size_t)(argc - i - 1);
		return i;
	}
	*out_n = 0;
	return argc;
}

bool cli_parse_into(struct cli *c, const struct cli_usage *u, void *into, int argc, char **argv,
		    int *out_exit)
{
	struct cli_option all[ALL_MAX];
	struct words w = { .c = c, .all = all, .argv = argv, .argc = argc, .at = 1 };
	size_t n_args = 0;
	bool help = false, only_args = false;

	*c = (struct cli){ .usage = u };
	w.n_all = all_options(c, into, &help, all);
	*out_exit = 2;
	for (; w.at < argc; w.at++) {
		char *a = argv[w.at];

		if (only_args || a[0] != '-' || !a[1]) {
			argv[n_args++] = a; /* n_args < at: writing never overtakes reading */
		} else if (!strcmp(a, "--")) {
			only_args = true;
		} else if (!parse_option(&w)) {
			return false;
		}
		if (help) {
			print_help(u, all, w.n_all);
			*out_exit = 0;
			return false;
		}
	}
	c->arg = argv;
	c->n_args = n_args;
	if (n_args < u->min_args) {
		cli_usage_error(c, "an argument is missing: postrider %s %.*s", u->verb,
				(int)strcspn(u->synopsis, "\n"), u->synopsis);
		return false;
	}
	if (n_args > u->max_args) {
		cli_usage_error(c, "'%s' is one argument too many", argv[u->max_args]);
		return false;
	}
	*out_exit = 0;
	return true;
}

bool cli_parse(struct cli *c, const struct cli_usage *u, int argc, char **argv, int *out_exit)
{
	return cli_parse_into(c, u, NULL, argc, argv, out_exit);
}
