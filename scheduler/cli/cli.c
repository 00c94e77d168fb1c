/* Shared by the verbs: messages, writing results, numbers as text, progress. See cli.h. */
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
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text/text.h"

/* ---- before any verb ---- */

/* Wipes the progress bar, says what happened and dies of the signal, so that a shell sees 130. There is
 * nothing to undo: cli_write() blocks the signal while it writes a file. */
static void interrupted(int number)
{
	static const char bar[] = "\r\033[K",
			  text[] = "postrider: interrupted; no file was left half-written\n";
	ssize_t ignored = 0;

	if (isatty(STDERR_FILENO))
		ignored = write(STDERR_FILENO, bar, sizeof bar - 1);
	ignored += write(STDERR_FILENO, text, sizeof text - 1);
	(void)ignored;
	signal(number, SIG_DFL);
	raise(number);
}

void cli_set_up(void)
{
	struct sigaction stop = { .sa_handler = interrupted }, old;

	setlocale(LC_CTYPE, ""); /* which characters the terminal shows; numbers stay as in C */
	/* `postrider ... | head` ends quietly, even if our parent ignores the signal. */
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN); /* a file-size limit is then a failed write, which we report */
	/* A job started in the background ignores Ctrl-C; leave it so. */
	if (!sigaction(SIGINT, NULL, &old) && old.sa_handler == SIG_DFL)
		sigaction(SIGINT, &stop, NULL);
	log_set_program("postrider");
}

/* ---- talk ---- */

int cli_fail(const struct err *err)
{
	fprintf(stderr, "postrider: %s\n",
		err->text[0] ? cli_clean(err->text) : "it failed for an unknown reason");
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

/* ---- results ---- */

int cli_write(const char *path, const struct strbuf *text, struct err *err)
{
	struct stat st;
	sigset_t stop, before;
	bool to_file = path && strcmp(path, "-");
	/* A signal between the temporary file and its rename would leave the temporary file behind. Writing
	 * to a pipe may block for ever, so Ctrl-C must work there. */
	bool hold = to_file && (stat(path, &st) || S_ISREG(st.st_mode));
	int rc;

	if (text->failed)
		return err_nomem(err, "the result");
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

int cli_created(char *out, size_t size, struct err *err)
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	time_t now = time(NULL);
	struct tm tm;
	uint64_t s;

	if (epoch && *epoch) {
		if (!text_uint64(epoch, &s) || s > 253402300799ULL) /* the year 9999 ends there */
			return err_fail(err, ERR_ARG,
					"SOURCE_DATE_EPOCH is '%s'; it must be seconds since 1970", epoch);
		now = (time_t)s;
	}
	gmtime_r(&now, &tm);
	strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return 0;
}

int cli_finish(const struct cli *c, const struct strbuf *text)
{
	struct err err = { 0 };

	return cli_write(c->output, text, &err) ? cli_fail(&err) : 0;
}

int cli_check_output(const char *path, struct err *err)
{
	const char *slash;
	char folder[PATH_MAX];
	struct stat st;

	if (!path || !strcmp(path, "-"))
		return 0;
	slash = strrchr(path, '/');
	if (!stat(path, &st)) {
		if (S_ISDIR(st.st_mode))
			return err_fail(err, ERR_IO, "%s is a folder; give the name of a file", path);
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
				"%s: cannot be written: folder %s: %s", text_tail(path, 200),
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

void cli_bar(struct strbuf *out, double share, int width)
{
	bool utf8 = speaks_utf8();
	int full = share > 0.0 ? (int)lround((share < 1.0 ? share : 1.0) * width) : 0;

	if (full == 0 && share > 0.0)
		full = 1; /* a small share still shows */
	for (int i = 0; i < full; i++)
		strbuf_puts(out, utf8 ? "\u2588" : "#");
}

static char *significant(double v, int digits, char *buf)
{
	double a = fabs(v);

	if (isnan(v))
		strcpy(buf, "-");
	else if (a == 0.0)
		strcpy(buf, "0");
	else if (a >= 1e7 || a < 1e-3)
		snprintf(buf, 32, "%.2e", v);
	else
		snprintf(buf, 32, "%.*f", (int)fmax(0.0, digits - 1 - floor(log10(a))), v);
	return buf;
}

char *cli_number(double v, char *buf)
{
	return significant(v, 4, buf);
}

char *cli_short(double v, char *buf)
{
	return significant(v, 3, buf);
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
	else /* as many decimals as the mean has */
		snprintf(b, sizeof b, "%.*f", point ? (int)strlen(point + 1) : 0, sd);
	snprintf(buf, CLI_SPREAD_SIZE, "%s %s %s", a, speaks_utf8() ? "\u00b1" : "+/-", b);
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

char *cli_chance(double chance, char *buf)
{
	double percent = floor(100.0 * chance + 1e-9);

	if (isnan(chance))
		snprintf(buf, 32, "-");
	else if (percent < 1.0)
		snprintf(buf, 32, "< 1 %%");
	else
		snprintf(buf, 32, "%.0f %%", percent);
	return buf;
}

char *cli_slo_up(double s, char *buf)
{
	if (s > 600.0)
		snprintf(buf, 32, "%.0fm", ceil(s / 60.0));
	else
		snprintf(buf, 32, "%.*fs", s < 10.0, s < 10.0 ? ceil(10.0 * s) / 10.0 : ceil(s));
	return buf;
}

const char *cli_clean(const char *text)
{
	static _Thread_local char ring[8][1200];
	static _Thread_local unsigned turn;

	return text_printable(text, ring[turn++ % 8], sizeof ring[0]);
}

double cli_json_number(const struct json *object, const char *key)
{
	return json_number(json_get(object, key), NAN);
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
		progress_add(p->bar, 0); /* drawn at once: the first unit of work may take long */
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

/* ---- a limit of time ---- */

static atomic_bool out_of_time;

static void on_alarm(int number)
{
	(void)number;
	atomic_store(&out_of_time, true);
}

const atomic_bool *cli_time_limit(double s)
{
	struct sigaction how = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval when = { .it_value = { .tv_sec = (time_t)s,
						.tv_usec = (suseconds_t)(1e6 * (s - floor(s))) } };

	if (isnan(s))
		return NULL;
	if (s < 1e-6)
		when.it_value.tv_usec = 1; /* zero would mean never */
	sigaction(SIGALRM, &how, NULL);
	setitimer(ITIMER_REAL, &when, NULL);
	return &out_of_time;
}

int cli_out_of_time(double s, const char *without)
{
	char buf[32];

	fprintf(stderr, "postrider: stopped after %s, as --time-limit says; %s\n", text_seconds(s, buf),
		without);
	return 124;
}
