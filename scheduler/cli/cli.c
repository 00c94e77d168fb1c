/* Shared by the verbs: option tables, text tables, input, output, talk. See cli.h. */
#include "scheduler/cli/cli.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text/text.h"

/* ---- talk ---- */

int cli_fail(const struct err *err)
{
	/* A message is never empty: an error without words still names its kind. */
	fprintf(stderr, "postrider: %s\n",
		err->text[0] ? cli_clean(err->text) : "it failed without saying why");
	return err_exit_code(err->code) ? err_exit_code(err->code) : 1;
}

int cli_usage_error(const struct cli *c, const char *fmt, ...)
{
	va_list ap;
	char text[1024];

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "postrider %s: %s\nTry 'postrider %s --help'.\n", c->usage->verb, cli_clean(text),
		c->usage->verb);
	return 2;
}

void cli_notice(const struct cli *c, const char *fmt, ...)
{
	va_list ap;
	char text[1024];

	if (c->quiet)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "postrider: note: %s\n", cli_clean(text));
}

/* ---- options ---- */

enum { COMMON_MAX = 7 };

/* The options every verb has, in the order the help shows them; returns how many. */
static size_t common_options(struct cli *c, bool *help, struct cli_option *out)
{
	const struct cli_usage *u = c->usage;
	size_t n = 0;

	if (u->output)
		out[n++] = (struct cli_option){ 'o', "output", CLI_TEXT, "FILE", u->output, &c->output };
	if (u->json)
		out[n++] =
			(struct cli_option){ 0, "json", CLI_FLAG, NULL, "print one JSON object", &c->json };
	if (u->threads)
		out[n++] = (struct cli_option){ 0,
						"threads",
						CLI_COUNT,
						"N",
						"worker threads; never changes a result (default: all cores)",
						&c->threads };
	out[n++] = (struct cli_option){ 'q', "quiet", CLI_FLAG, NULL, "no notes, no progress", &c->quiet };
	out[n++] = (struct cli_option){ 'v', "verbose", CLI_FLAG, NULL, "say more", &c->verbose };
	out[n++] =
		(struct cli_option){ 0,           "no-color", CLI_FLAG, NULL, "no colour, even on a terminal",
				     &c->no_color };
	out[n++] = (struct cli_option){ 'h', "help", CLI_FLAG, NULL, "this text", help };
	return n;
}

static void print_options(const struct cli_option *o, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char left[64], letter[8] = "   ";

		if (o[i].letter)
			snprintf(letter, sizeof letter, "-%c,", o[i].letter);
		snprintf(left, sizeof left, "%s --%s%s%s", letter, o[i].name, o[i].arg ? " " : "",
			 o[i].arg ? o[i].arg : "");
		printf("  %-26s ", left);
		/* A long description goes on below its own column. */
		for (const char *s = o[i].help; *s; s++) {
			putchar(*s);
			if (*s == '\n')
				printf("%29s", "");
		}
		putchar('\n');
	}
}

static size_t option_count(const struct cli_option *o)
{
	size_t n = 0;

	while (o && o[n].name)
		n++;
	return n;
}

static void print_help(const struct cli_usage *u, const struct cli_option *common, size_t n_common)
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
	print_options(u->option, option_count(u->option));
	print_options(common, n_common);
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
		cli_usage_error(c, "--%s: '%s' is no time to wait; it must be more than 0", o->name, value);
		return false;
	}
	return false;
}

static bool unknown_option(const struct cli *c, const char *given, const struct cli_option *own, size_t n_own,
			   const struct cli_option *common, size_t n_common)
{
	const char *name[128];
	const char *near;
	size_t n = 0, len = strcspn(given, "=");
	char bare[64];

	for (size_t i = 0; i < n_own && n < 127; i++)
		name[n++] = own[i].name;
	for (size_t i = 0; i < n_common && n < 127; i++)
		name[n++] = common[i].name;
	name[n] = NULL;
	snprintf(bare, sizeof bare, "%.*s", (int)(len < 60 ? len : 60), given);
	near = text_nearest(bare, name);
	if (near)
		cli_usage_error(c, "there is no option --%s; did you mean --%s?", bare, near);
	else
		cli_usage_error(c, "there is no option --%s", bare);
	return false;
}

/* One argument that starts with a dash: a long option or a cluster of letters. */
static bool parse_option(const struct cli *c, int argc, char **argv, int *at, const struct cli_option *own,
			 size_t n_own, const struct cli_option *common, size_t n_common)
{
	const char *a = argv[*at];

	if (a[1] == '-') {
		const char *name = a + 2, *eq = strchr(name, '=');
		size_t len = eq ? (size_t)(eq - name) : strlen(name);
		const struct cli_option *o = option_find(own, n_own, 0, name, len);

		if (!o)
			o = option_find(common, n_common, 0, name, len);
		if (!o)
			return unknown_option(c, name, own, n_own, common, n_common);
		if (o->kind == CLI_FLAG) {
			if (eq) {
				cli_usage_error(c, "--%s takes no value", o->name);
				return false;
			}
			return option_store(c, o, "");
		}
		if (!eq && *at + 1 >= argc) {
			cli_usage_error(c, "--%s needs a value: --%s %s", o->name, o->name, o->arg);
			return false;
		}
		return option_store(c, o, eq ? eq + 1 : argv[++*at]);
	}
	for (const char *s = a + 1; *s; s++) {
		const struct cli_option *o = option_find(own, n_own, *s, NULL, 0);

		if (!o)
			o = option_find(common, n_common, *s, NULL, 0);
		if (!o) {
			cli_usage_error(c, "there is no option -%c", *s);
			return false;
		}
		if (o->kind == CLI_FLAG) {
			option_store(c, o, "");
			continue;
		}
		if (!s[1] && *at + 1 >= argc) {
			cli_usage_error(c, "-%c needs a value: -%c %s", o->letter, o->letter, o->arg);
			return false;
		}
		return option_store(c, o, s[1] ? s + 1 : argv[++*at]); /* -oFILE or -o FILE */
	}
	return true;
}

bool cli_parse(struct cli *c, const struct cli_usage *u, int argc, char **argv, int *out_exit)
{
	struct cli_option common[COMMON_MAX];
	size_t n_own = option_count(u->option), n_common, n_args = 0;
	bool help = false, only_args = false;

	*c = (struct cli){ .usage = u };
	n_common = common_options(c, &help, common);
	*out_exit = 2;
	for (int i = 1; i < argc; i++) {
		if (only_args || argv[i][0] != '-' || !argv[i][1]) {
			argv[n_args++] = argv[i]; /* n_args < i: never overtakes the reading */
		} else if (!strcmp(argv[i], "--")) {
			only_args = true;
		} else if (!parse_option(c, argc, argv, &i, u->option, n_own, common, n_common)) {
			return false;
		}
		if (help) {
			print_help(u, common, n_common);
			*out_exit = 0;
			return false;
		}
	}
	c->arg = argv;
	c->n_args = n_args;
	if (n_args < u->min_args) {
		cli_usage_error(c, "something is missing: postrider %s %.*s", u->verb,
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

/* ---- results ---- */

int cli_write(const char *path, const struct strbuf *text, struct err *err)
{
	struct stat st;
	sigset_t stop, before;
	bool to_file = path && strcmp(path, "-");
	/* A signal between the temporary file and its rename would leave the former behind. A pipe may
	 * block for ever, so there Ctrl-C must work. */
	bool hold = to_file && (stat(path, &st) || S_ISREG(st.st_mode));
	int rc;

	if (text->failed)
		return err_fail(err, ERR_NOMEM, "out of memory while the result was put together");
	fflush(stdout);
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGHUP);
	if (hold)
		pthread_sigmask(SIG_BLOCK, &stop, &before);
	rc = io_write_file(to_file ? path : "-", strbuf_text(text), text->len, err);
	if (hold)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int cli_finish(const struct cli *c, const struct strbuf *text)
{
	struct err err = { 0 };

	return cli_write(c->output, text, &err) ? cli_fail(&err) : 0;
}

int cli_check_output(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat st;

	if (!strcmp(path, "-"))
		return 0;
	if (!stat(path, &st)) {
		if (S_ISDIR(st.st_mode))
			return err_fail(err, ERR_IO, "%s: is a folder; name a file to write", path);
		if (!S_ISREG(st.st_mode))
			return 0;
	}
	if (slash && (size_t)(slash - path) >= sizeof folder)
		return err_fail(err, ERR_IO, "%s: the path is too long", path);
	if (slash)
		snprintf(folder, sizeof folder, "%.*s", (int)(slash == path ? 1 : slash - path), path);
	else
		snprintf(folder, sizeof folder, ".");
	if (access(folder, W_OK | X_OK))
		return err_fail(err, errno == EACCES || errno == EPERM || errno == EROFS ? ERR_PERM : ERR_IO,
				"%s: can not be written: folder %s: %s", text_tail(path, 200),
				text_tail(folder, 200), strerror(errno));
	return 0;
}

bool cli_colour_stdout(const struct cli *c)
{
	return !c->no_color && log_stream_wants_colour(STDOUT_FILENO);
}

bool cli_colour(const struct cli *c)
{
	return (!c->output || !strcmp(c->output, "-")) && cli_colour_stdout(c);
}

static bool speaks_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

const char *cli_plus_minus(void)
{
	return speaks_utf8() ? "\u00b1" : "+/-";
}

void cli_bar(struct strbuf *out, double share, int width)
{
	bool utf8 = speaks_utf8();
	int full = share > 0.0 ? (int)lround((share < 1.0 ? share : 1.0) * width) : 0;

	if (full == 0 && share > 0.0)
		full = 1; /* little is not nothing */
	for (int i = 0; i < full; i++)
		strbuf_puts(out, utf8 ? "\u2588" : "#");
}

char *cli_number(double v, char *buf)
{
	double a = fabs(v);

	if (isnan(v))
		strcpy(buf, "-");
	else if (a == 0.0)
		strcpy(buf, "0");
	else if (a >= 1e7 || a < 1e-3)
		snprintf(buf, 32, "%.2e", v);
	else
		snprintf(buf, 32, "%.*f", a >= 1000.0 ? 0 : 3 - (int)floor(log10(a)), v);
	return buf;
}

char *cli_spread(double mean, double sd, char *buf)
{
	char a[32], b[32];
	const char *point;

	if (isnan(mean))
		return cli_number(mean, buf);
	cli_number(mean, a);
	point = strchr(a, '.');
	if (isnan(sd) || strchr(a, 'e'))
		cli_number(sd, b);
	else /* as many decimals as the mean: the digits beyond say nothing about it */
		snprintf(b, sizeof b, "%.*f", point ? (int)strlen(point + 1) : 0, sd);
	snprintf(buf, CLI_SPREAD_SIZE, "%s %s %s", a, cli_plus_minus(), b);
	return buf;
}

char *cli_percent(double share, char *buf)
{
	if (isnan(share))
		strcpy(buf, "-");
	else
		snprintf(buf, 32, "%.1f %%", 100.0 * share);
	return buf;
}

const char *cli_clean(const char *text)
{
	static _Thread_local char ring[8][1200];
	static _Thread_local unsigned turn;
	char *out = ring[turn++ % 8];
	size_t n = 0;

	for (const unsigned char *s = (const unsigned char *)text; *s && n < sizeof ring[0] - 4; s++) {
		if (*s < 0x20 || *s == 0x7f) {
			out[n++] = '?';
		} else if (*s == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0) { /* the C1 controls, CSI among them */
			out[n++] = '?';
			s++;
		} else {
			out[n++] = (char)*s;
		}
	}
	out[n] = '\0';
	return out;
}

void cli_table_init(struct cli_table *t, const char *align)
{
	*t = (struct cli_table){ .align = align };
}

void cli_table_add(struct cli_table *t, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	void *cells = t->cell;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (t->failed || mem_grow(&cells, &t->cap, t->n_cells + 1, sizeof *t->cell)) {
		t->failed = true;
		return;
	}
	t->cell = cells;
	t->cell[t->n_cells] = mem_strdup(cli_clean(text));
	if (!t->cell[t->n_cells])
		t->failed = true;
	else
		t->n_cells++;
}

void cli_table_mark(struct cli_table *t)
{
	void *marks = t->mark;

	if (t->failed || !t->n_cells || mem_grow(&marks, &t->mark_cap, t->n_marks + 1, sizeof *t->mark)) {
		t->failed = true;
		return;
	}
	t->mark = marks;
	t->mark[t->n_marks++] = (t->n_cells - 1) / strlen(t->align);
}

/* Columns on the screen; every code point counts one, which wide scripts do not quite obey. */
static size_t display_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void put_blanks(struct strbuf *out, size_t n)
{
	while (n--)
		strbuf_puts(out, " ");
}

void cli_table_print(const struct cli_table *t, struct strbuf *out, bool colour)
{
	size_t n_columns = strlen(t->align), n_rows = t->n_cells / n_columns;
	size_t width[64] = { 0 };
	bool shown[64] = { false };

	if (t->failed || n_columns > 64 || t->n_cells % n_columns) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < t->n_cells; i++) {
		size_t w = display_width(t->cell[i]);

		if (w > width[i % n_columns])
			width[i % n_columns] = w;
		if (i >= n_columns && w > 0)
			shown[i % n_columns] = true;
	}
	for (size_t r = 0; r < n_rows; r++) {
		bool marked = false, begun = false;
		size_t owed = 0; /* blanks that are written once something follows them */

		for (size_t i = 0; i < t->n_marks; i++)
			marked |= t->mark[i] == r;
		if (colour && (r == 0 || marked))
			strbuf_puts(out, r == 0 ? "\033[1m" : "\033[1;32m");
		for (size_t c = 0; c < n_columns; c++) {
			const char *cell = t->cell[r * n_columns + c];
			size_t pad = width[c] - display_width(cell);

			if (!shown[c])
				continue;
			owed += (begun ? 2 : 0) + (t->align[c] == 'r' ? pad : 0);
			begun = true;
			if (cell[strspn(cell, " ")]) {
				put_blanks(out, owed);
				owed = 0;
				strbuf_puts(out, cell);
			} else {
				owed += display_width(cell);
			}
			owed += t->align[c] == 'l' ? pad : 0;
		}
		if (colour && (r == 0 || marked))
			strbuf_puts(out, "\033[0m");
		strbuf_puts(out, "\n");
	}
}

void cli_table_release(struct cli_table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cell[i]);
	free(t->cell);
	free(t->mark);
	*t = (struct cli_table){ 0 };
}

const struct score *cli_score(const struct score_summary *s)
{
	static const struct score none = { NAN, NAN, NAN, NAN };

	return s->n_folds ? &s->mean : &none;
}

void cli_json_score(struct json_writer *w, const char *key, const struct score *s)
{
	json_put_key(w, key);
	json_open(w, '{');
	json_kv_number(w, "mse", s->mse);
	json_kv_number(w, "r2", s->r2);
	json_kv_number(w, "mape", s->mape);
	json_kv_number(w, "mae", s->mae);
	json_close(w, '}');
}

void cli_json_summary(struct json_writer *w, const struct score_summary *s)
{
	cli_json_score(w, "scores", cli_score(s));
	cli_json_score(w, "spread", s->n_folds ? &s->sd : cli_score(s));
}

void cli_json_target(struct json_writer *w, const char *key, const struct model_target *t)
{
	json_put_key(w, key);
	if (!t->predictor.ops) {
		json_put_null(w);
		return;
	}
	json_open(w, '{');
	json_kv_string(w, "name", t->predictor.ops->name);
	json_put_key(w, "settings");
	settings_to_json(&t->predictor.settings, w);
	cli_json_score(w, "scores", cli_score(&t->score));
	json_close(w, '}');
}

void cli_json_copy(struct json_writer *w, const struct json *v)
{
	switch (json_type(v)) {
	case JSON_ABSENT:
	case JSON_NULL: json_put_null(w); break;
	case JSON_BOOL: json_put_bool(w, json_bool(v, false)); break;
	case JSON_NUMBER: json_put_number(w, json_number(v, NAN)); break;
	case JSON_STRING: json_put_string(w, json_string(v, "")); break;
	case JSON_ARRAY:
		json_open(w, '[');
		for (const struct json *e = json_first(v); e; e = json_next(e))
			cli_json_copy(w, e); /* no deeper than JSON_MAX_DEPTH: it was parsed */
		json_close(w, ']');
		break;
	case JSON_OBJECT:
		json_open(w, '{');
		cli_json_members(w, v, (const char *const[]){ NULL });
		json_close(w, '}');
		break;
	}
}

void cli_json_members(struct json_writer *w, const struct json *object, const char *const *without)
{
	for (const struct json *m = json_first(object); m; m = json_next(m)) {
		bool left_out = false;

		for (size_t i = 0; without[i]; i++)
			left_out |= !strcmp(without[i], json_key(m));
		if (left_out)
			continue;
		json_put_key(w, json_key(m));
		cli_json_copy(w, m);
	}
}

void cli_importances(const struct model *m, const double *importance, double *out)
{
	size_t n = m->schema->n_columns + m->schema->n_derived;

	for (size_t i = 0; i < n; i++)
		out[i] = NAN;
	for (size_t i = 0; i < m->features->n; i++) {
		double *sum = &out[m->features->feature[i].source];

		*sum = (isnan(*sum) ? 0.0 : *sum) + importance[i];
	}
}

/* ---- input ---- */

/* Beside the other rules of its column: a schema is written with one list of values a column. */
static int schema_add_exclude(struct schema *s, const char *column, const char *value, struct err *err)
{
	struct schema_exclude *all, one;
	size_t at = s->n_excludes;

	for (size_t i = 0; i < s->n_excludes; i++) {
		if (strcmp(s->exclude[i].column, column))
			continue;
		if (!strcmp(s->exclude[i].value, value))
			return 0;
		at = i + 1;
	}
	all = mem_resize(s->exclude, s->n_excludes + 1, sizeof *all);
	if (!all)
		return err_nomem(err, NULL);
	s->exclude = all;
	one = (struct schema_exclude){ mem_strdup(column), mem_strdup(value) };
	if (!one.column || !one.value) {
		free(one.column);
		free(one.value);
		return err_nomem(err, NULL);
	}
	memmove(all + at + 1, all + at, (s->n_excludes - at) * sizeof *all);
	all[at] = one;
	s->n_excludes++;
	return 0;
}

/* A rule of a schema may name a column that a table lacks; one typed here is then a slip. */
static int exclude_from_option(struct schema *s, const struct csv *csv, const char *rule, struct err *err)
{
	const char *eq = strchr(rule, '='), *near;
	char column[SCHEMA_MAX_NAME + 1], shown[64];
	const char **name;

	if (!eq || eq == rule || !eq[1])
		return err_fail(err, ERR_ARG, "--exclude %s: write COLUMN=VALUE, for example suspect=yes",
				text_printable(rule, shown, sizeof shown));
	if (eq - rule > SCHEMA_MAX_NAME || strlen(eq + 1) > SCHEMA_MAX_NAME)
		return err_fail(err, ERR_ARG, "--exclude %s: a name and a value have at most %d bytes",
				text_printable(rule, shown, sizeof shown), SCHEMA_MAX_NAME);
	snprintf(column, sizeof column, "%.*s", (int)(eq - rule), rule);
	if (schema_find(s, column) >= 0 || csv_column(csv, column) >= 0)
		return schema_add_exclude(s, column, eq + 1, err);
	name = mem_calloc(csv->n_columns + 1, sizeof *name);
	if (!name)
		return err_nomem(err, NULL);
	for (size_t i = 0; i < csv->n_columns; i++)
		name[i] = csv->header[i];
	near = text_nearest(column, name);
	free(name);
	return err_fail(err, ERR_ARG, "--exclude: %s has no column '%s'%s%s%s", text_tail(csv->name, 200),
			column, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void note_table(const struct cli *c, const struct table *t, const struct cli_input_params *p)
{
	const char *path = p->path;
	struct strbuf names = { 0 };

	for (size_t i = 0; i < t->n_ignored; i++)
		strbuf_printf(&names, "%s%s", i ? ", " : "", t->ignored[i]);
	if (t->n_ignored && !p->keeps_columns)
		cli_notice(c, "%s: ignored, as the schema does not name %s: %s", path,
			   t->n_ignored == 1 ? "this column" : "these columns", strbuf_text(&names));
	strbuf_reset(&names);
	for (size_t i = 0; i < t->schema->n_excludes; i++)
		strbuf_printf(&names, "%s%s=%s", i ? ", " : "", t->schema->exclude[i].column,
			      t->schema->exclude[i].value);
	if (t->n_excluded)
		cli_notice(c, "%s: %zu of %zu rows left out (%s)", path, t->n_excluded,
			   t->n_excluded + t->n_rows, strbuf_text(&names));
	strbuf_release(&names);
}

int cli_input_open(struct cli_input *in, const struct cli *c, const struct cli_input_params *p,
		   struct err *err)
{
	int rc;

	*in = (struct cli_input){ .schema = p->schema, .borrowed = p->schema != NULL };
	if (!in->schema) {
		rc = p->schema_path ? schema_read_file(p->schema_path, &in->schema, err)
				    : schema_default(&in->schema, err);
		if (rc)
			return rc;
	}
	rc = csv_read_file(p->path, &in->csv, err);
	if (rc)
		return rc;
	for (size_t i = 0; p->exclude && i < p->exclude->n; i++) {
		rc = exclude_from_option(in->schema, in->csv, p->exclude->item[i], err);
		if (rc)
			return rc;
	}
	rc = table_read(in->csv, in->schema, p->need_targets, &in->table, err);
	if (rc)
		return rc;
	if (in->table->n_rows == 0)
		return in->table->n_excluded
			       ? err_fail(err, ERR_FORMAT, "%s: all %zu rows are left out by exclude rules",
					  p->path, in->table->n_excluded)
			       : err_fail(err, ERR_FORMAT, "%s: has a header and no rows", p->path);
	note_table(c, in->table, p);
	return 0;
}

void cli_input_release(struct cli_input *in)
{
	table_free(in->table);
	csv_free(in->csv);
	if (!in->borrowed)
		schema_free(in->schema);
	*in = (struct cli_input){ 0 };
}

int cli_model_open(const char *path, struct model **out, struct err *err)
{
	int rc = model_load(path, out, err);

	if (!rc && !(*out)->time.predictor.ops) {
		model_free(*out);
		*out = NULL;
		return err_fail(err, ERR_FORMAT, "%s: holds no model of time", path);
	}
	return rc;
}

/* ---- progress ---- */

void cli_on_progress(void *owner, const char *stage, size_t done, size_t total)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct cli_progress *p = owner;

	if (p->off)
		return;
	pthread_mutex_lock(&lock);
	if (strncmp(p->stage, stage, sizeof p->stage - 1)) {
		progress_free(p->bar);
		snprintf(p->stage, sizeof p->stage, "%s", stage);
		p->bar = progress_new(p->stage, total);
		p->done = 0;
		p->total = total;
	}
	if (total != p->total) {
		progress_total(p->bar, total);
		p->total = total;
	}
	if (done > p->done) {
		progress_add(p->bar, done - p->done);
		p->done = done;
	}
	pthread_mutex_unlock(&lock);
}

void cli_progress_end(struct cli_progress *p)
{
	progress_free(p->bar);
	p->bar = NULL;
	p->stage[0] = '\0';
}
