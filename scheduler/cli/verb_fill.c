/* `postrider fill`: a command whose settings are in a file. The file's placeholders are filled in, the copy
 * goes into the folder of the run, and this program becomes the command. `init` and `run` write such commands
 * (job/job_template.c). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/text/placeholder.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"

#define FILE_MAX (1 << 20)
#define COPIES_MAX 100000 /* of one name in a folder */
#define MARK "{file}"

/* The value in NAME=VALUE; NULL: there is none. */
static const char *value_of(const char *name, char *const *pair, size_t n)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < n; i++) {
		if (!strncmp(pair[i], name, len) && pair[i][len] == '=')
			return pair[i] + len + 1;
	}
	return NULL;
}

static int fill_in(const char *path, char *const *pair, size_t n, struct strbuf *out, struct err *err)
{
	struct placeholder p;
	char *text = NULL;
	size_t len = 0;
	int rc = io_read_file(path, FILE_MAX, &text, &len, err);
	const char *at = text;

	if (!rc && strlen(text) != len)
		rc = err_fail(err, ERR_FORMAT, "%s is no text: it has a zero byte", text_tail(path, 150));
	while (!rc && placeholder_next(text, at, &p)) {
		const char *value = value_of(p.name, pair, n);

		if (!value) {
			rc = err_fail(
				err, ERR_FORMAT,
				"%s:%zu: {%s} has no value; 'postrider init' asks for it where the file has "
				"it already",
				text_tail(path, 150), p.line, p.name);
			break;
		}
		strbuf_add(out, at, (size_t)(p.begin - at));
		strbuf_puts(out, value);
		at = p.end;
	}
	if (!rc)
		strbuf_puts(out, at);
	free(text);
	return !rc && out->failed ? err_nomem(err, "%s", text_tail(path, 150)) : rc;
}

/* Where the run's own files are: the folder that its supervisor names, or the one its output goes to, under
 * the name of the output; else that of temporary files. */
static void place_of(char *folder, size_t size, char *prefix)
{
	char *dir = getenv("POSTRIDER_DIR"), *tmp = getenv("TMPDIR"), log[PATH_MAX], *name;
	ssize_t n = readlink("/proc/self/fd/1", log, sizeof log - 1);
	struct stat st;

	prefix[0] = '\0';
	snprintf(folder, size, "%s", dir ? dir : tmp && *tmp ? tmp : "/tmp");
	if (dir || n <= 0 || fstat(STDOUT_FILENO, &st) || !S_ISREG(st.st_mode))
		return;
	log[n] = '\0';
	name = strrchr(log, '/');
	if (!name || access(log, F_OK))
		return;
	*name++ = '\0';
	snprintf(folder, size, "%s", log);
	if (strrchr(name, '.'))
		*strrchr(name, '.') = '\0';
	snprintf(prefix, NAME_MAX, "%.150s.", name);
}

/* "config.yaml.in" becomes config.yaml, or config-2.yaml where a copy of the run has the first. */
static int write_copy(const char *path, const struct strbuf *text, char *out, size_t size, struct err *err)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char folder[PATH_MAX], prefix[NAME_MAX], name[NAME_MAX], *dot;
	int fd = -1;

	place_of(folder, sizeof folder, prefix);
	snprintf(name, sizeof name, "%s", base);
	dot = strrchr(name, '.');
	if (dot && !strcmp(dot, ".in"))
		*dot = '\0';
	dot = strrchr(name, '.');
	for (int i = 1; fd < 0 && i < COPIES_MAX && (i == 1 || errno == EEXIST); i++) {
		char number[16] = "";

		if (i > 1)
			snprintf(number, sizeof number, "-%d", i);
		snprintf(out, size, "%s/%s%.*s%s%s", folder, prefix, (int)(dot ? dot - name : NAME_MAX), name,
			 number, dot ? dot : "");
		fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	}
	if (fd < 0)
		return err_fail(err, ERR_IO, "cannot write %s: %s", text_tail(out, 200), strerror(errno));
	close(fd); /* the name is ours */
	return io_write_file(out, strbuf_text(text), text->len, err);
}

/* The word with the path of the copy where it says {file}. */
static char *with_path(char *word, const char *path)
{
	struct strbuf out = { 0 };
	const char *at = word, *mark = strstr(word, MARK);

	if (!mark)
		return word;
	for (; mark; at = mark + strlen(MARK), mark = strstr(at, MARK)) {
		strbuf_add(&out, at, (size_t)(mark - at));
		strbuf_puts(&out, path);
	}
	strbuf_puts(&out, at);
	return out.failed ? word : out.text; /* this process becomes another: nothing is freed */
}

int verb_fill(int argc, char **argv)
{
	const struct cli_usage usage = {
		.verb = "fill",
		.synopsis = "FILE [NAME=VALUE...] -- PROGRAM ARGUMENT...",
		.what = "Fills in the placeholders of a file and runs a command with the copy: {NAME} in the "
			"file\n"
			"becomes VALUE, and " MARK
			" in the command the path of the copy, which is in the folder of the\n"
			"run. Other braces stay as they are. 'init' and 'run' with --template write such "
			"commands.",
		.min_args = 1,
		.max_args = 64,
		.examples = "  postrider fill config.yaml.in batch=64 -- ./train.py " MARK "\n",
	};
	struct strbuf text = { 0 };
	struct err err = { 0 };
	char **word, path[PATH_MAX + 2 * NAME_MAX + 64];
	size_t n_words;
	struct cli c;
	int code, rc;

	argc = cli_words(argc, argv, &word, &n_words);
	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!n_words)
		return cli_usage_error(&c, "no command: write it after --");
	for (size_t i = 1; i < c.n_args; i++) {
		if (!strchr(c.arg[i], '='))
			return cli_usage_error(&c, "%s is no NAME=VALUE", cli_clean(c.arg[i]));
	}
	rc = fill_in(c.arg[0], c.arg + 1, c.n_args - 1, &text, &err);
	if (!rc)
		rc = write_copy(c.arg[0], &text, path, sizeof path, &err);
	strbuf_release(&text);
	if (rc)
		return cli_fail(&err);
	for (size_t i = 0; i < n_words; i++)
		word[i] = with_path(word[i], path);
	execvp(word[0], word);
	err_fail(&err, errno == ENOENT ? ERR_NOTFOUND : ERR_IO, "cannot run %s: %s", text_tail(word[0], 200),
		 strerror(errno));
	return cli_fail(&err);
}
