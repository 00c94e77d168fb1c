/* A real daemon in a temporary folder, and a client that speaks the protocol as text. See harness.h. */
#define _GNU_SOURCE
#include "tests/daemon/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "tests/support/support.h"

#define MAX_ARGS 16

/* ---- small tools ---- */

/* Daemons that still run; whatever ends the program, they go too. */
static struct fixture *open_fixture[16];

static void end_daemons(void)
{
	for (size_t i = 0; i < sizeof open_fixture / sizeof open_fixture[0]; i++) {
		if (open_fixture[i] && open_fixture[i]->pid > 0)
			kill(open_fixture[i]->pid, SIGKILL);
	}
}

void die(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "FAILED: ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\n");
	for (size_t i = 0; i < sizeof open_fixture / sizeof open_fixture[0]; i++) {
		char command[256];

		if (!open_fixture[i])
			continue;
		fprintf(stderr, "the last lines of %s:\n", open_fixture[i]->log);
		snprintf(command, sizeof command, "tail -n 25 '%s' >&2", open_fixture[i]->log);
		if (system(command))
			fprintf(stderr, "(none)\n");
	}
	exit(1);
}

double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sleep_s(double s)
{
	struct timespec t = { .tv_sec = (time_t)s, .tv_nsec = (long)((s - floor(s)) * 1e9) };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

const char *program(const char *name)
{
	static char ring[4][512];
	static unsigned next;
	const char *bin = getenv("BIN");
	char *path = ring[next++ % 4];

	snprintf(path, sizeof ring[0], "%s/%s", bin && *bin ? bin : "build", name);
	return path;
}

static int code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int run_program(const char *const *argv, const char *output)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0) {
		int fd = open(output ? output : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0666);

		dup2(fd, 1);
		dup2(fd, 2);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- a daemon and its place ---- */

void fixture_open(struct fixture *y)
{
	static unsigned number;
	static bool cleaning;

	*y = (struct fixture){ 0 };
	snprintf(y->dir, sizeof y->dir, "%s/%u", support_temp_dir(), number++);
	if (mkdir(y->dir, 0755) || chmod(y->dir, 0755) || chmod(support_temp_dir(), 0755))
		die("%s: %s", y->dir, strerror(errno));
	snprintf(y->config, sizeof y->config, "%s/config.json", y->dir);
	snprintf(y->socket, sizeof y->socket, "%s/socket", y->dir);
	snprintf(y->state, sizeof y->state, "%s/state", y->dir);
	snprintf(y->log, sizeof y->log, "%s/log", y->dir);
	snprintf(y->runs, sizeof y->runs, "%s/runs", y->dir);
	for (size_t i = 0; i < sizeof open_fixture / sizeof open_fixture[0]; i++) {
		if (!open_fixture[i]) {
			open_fixture[i] = y;
			break;
		}
	}
	if (!cleaning)
		atexit(end_daemons);
	cleaning = true;
	fixture_configure(y, "", "");
}

void fixture_train(struct fixture *y)
{
	char table[128];
	const char *make[] = { program("postrider-synthetic"), "-o", table, NULL };
	const char *train[] = { program("postrider"), "train", table,    "--model", "hybrid", "--set",
				"trees=10",           "-o",    y->model, NULL };

	snprintf(table, sizeof table, "%s/runs.csv", y->dir);
	snprintf(y->model, sizeof y->model, "%s/runs.model", y->dir);
	if (run_program(make, NULL) || run_program(train, NULL))
		die("no model: could not make %s and train on it", table);
	fixture_configure(y, "", "");
}

void fixture_learn(struct fixture *y, const struct strbuf *rows)
{
	struct strbuf all = { 0 };
	struct err err = { 0 };
	char table[sizeof y->dir + 16];
	const char *train[] = { program("postrider"), "train", table,    "--model", "hybrid", "--set",
				"trees=20",           "-o",    y->model, "-q",      NULL };

	snprintf(table, sizeof table, "%s/own.csv", y->dir);
	snprintf(y->model, sizeof y->model, "%s/own.model", y->dir);
	strbuf_puts(&all, "network,cpus,njobs,batch,epochs,samples,time_s,accuracy\n");
	strbuf_puts(&all, strbuf_text(rows));
	if (io_write_file(table, all.text, all.len, &err))
		die("%s", err.text);
	strbuf_release(&all);
	if (run_program(train, NULL))
		die("no model: could not train on %s", table);
}

/* Jobs of other users write there too. */
static void make_runs(const struct fixture *y)
{
	int fd = open(y->runs, O_WRONLY | O_CREAT, 0666);

	if (fd < 0 || fchmod(fd, 0666))
		die("%s: %s", y->runs, strerror(errno));
	close(fd);
}

void fixture_configure(const struct fixture *y, const char *settings, const char *types)
{
	struct strbuf b = { 0 };
	struct err err = { 0 };

	make_runs(y);
	strbuf_printf(&b, "{\"socket\":\"%s\",\"socket_mode\":\"0666\",\"state_dir\":\"%s\",\"cores\":2,%s%s",
		      y->socket, y->state, strstr(settings, "outside_load") ? "" : "\"outside_load\":false,",
		      settings);
	if (y->model[0])
		strbuf_printf(&b, "\"policy\":\"postrider\",\"model\":\"%s\",\n\"types\":{\n", y->model);
	else
		strbuf_puts(&b, "\"policy\":\"fixed:64\",\n\"types\":{\n");
	strbuf_printf(
		&b,
		"\"line\":{\"argv\":[\"/bin/sh\",\"-c\",\"echo B {job} {name} >>%s; [ {seconds} = 0 ] || "
		"sleep {seconds}; echo E {job} {name} >>%s\",\"{batch}\"],\n  "
		"\"params\":{\"name\":{\"kind\":\"word\","
		"\"default\":\"x\"},\"seconds\":{\"kind\":\"number\",\"min\":0,\"max\":60,\"default\":0},\n"
		"  \"network\":{\"kind\":\"word\",\"default\":\"lenet5\"}},\"batches\":[64,128]},\n",
		y->runs, y->runs);
	strbuf_puts(
		&b,
		"\"stubborn\":{\"argv\":[\"/bin/sh\",\"-c\",\"trap '' TERM; echo up; while :; do sleep 0.1; "
		"done\",\"{batch}\"],\"batches\":[64]},\n"
		"\"fails\":{\"argv\":[\"/bin/sh\",\"-c\",\"exit 3\",\"{batch}\"],\"batches\":[64]},\n"
		"\"missing\":{\"argv\":[\"/nowhere/"
		"there-is-no-such-program\",\"{batch}\"],\"batches\":[64]},\n"
		"\"hasty\":{\"argv\":[\"/bin/sh\",\"-c\",\"exec sleep "
		"60\",\"{batch}\"],\"batches\":[64],\"max_time_s\":1},\n");
	strbuf_puts(
		&b,
		"\"epochs\":{\"argv\":[\"/bin/sh\",\"-c\",\"for e in 1 2 3; do echo '{{\\\"epoch\\\":'$e', "
		"\\\"accuracy\\\":0.'$e'}'; sleep 1.1; done\",\"{batch}\"],\"batches\":[64],\n"
		"  "
		"\"params\":{\"n\":{\"kind\":\"integer\",\"min\":1,\"max\":3,\"default\":3}},\"epochs_"
		"param\":\"n\"},\n"
		"\"advised\":{\"batches\":[64,128],\"params\":{\"network\":{\"kind\":\"word\",\"default\":"
		"\"lenet5\"}}}");
	strbuf_printf(&b, "%s}}\n", types);
	if (b.failed || io_write_file(y->config, b.text, b.len, &err))
		die("%s: %s", y->config, err.text);
	strbuf_release(&b);
}

/* Another user may not be able to reach the programs: the project may lie in a folder that only root may
 * enter. Copies in the fixture are within everybody's reach. */
static const char *reachable_daemon(const struct fixture *y)
{
	static const char *const name[] = { "postrider-supervisor", "postriderd" };
	static char path[256];

	snprintf(path, sizeof path, "%s/bin", y->dir);
	if (mkdir(path, 0755) && errno != EEXIST)
		die("%s: %s", path, strerror(errno));
	for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
		const char *copy[] = { "/bin/cp", program(name[i]), path, NULL };

		snprintf(path, sizeof path, "%s/bin/%s", y->dir, name[i]);
		if (run_program(copy, NULL) || chmod(path, 0755))
			die("could not copy %s to %s", program(name[i]), path);
	}
	return path;
}

void fixture_spawn(struct fixture *y)
{
	const char *argv[MAX_ARGS] = { y->uid ? reachable_daemon(y) : program("postriderd"), "--config",
				       y->config };
	size_t n = 3;

	for (size_t i = 0; i < 4 && y->flag[i]; i++)
		argv[n++] = y->flag[i];
	fflush(stdout);
	y->pid = fork();
	if (y->pid < 0)
		die("fork: %s", strerror(errno));
	if (y->pid == 0) {
		int fd = open(y->log, O_WRONLY | O_CREAT | O_APPEND, 0666);

		dup2(fd, 2);
		close(fd);
		fd = open("/dev/null", O_RDWR);
		dup2(fd, 0);
		dup2(fd, 1);
		if (y->uid && (setgid(y->uid) || setuid(y->uid)))
			_exit(126);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that crashes leaves no daemon behind */
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
}

bool fixture_greeted(struct fixture *y, double patience_s)
{
	double until = now_s() + patience_s;

	while (now_s() < until) {
		struct talk *t = talk_try(y, 0.0);
		int status;

		if (t) {
			talk_close(t);
			return true;
		}
		if (waitpid(y->pid, &status, WNOHANG) == y->pid) {
			y->pid = 0;
			return false;
		}
		sleep_s(0.001);
	}
	return false;
}

double fixture_start(struct fixture *y)
{
	double began = now_s();

	fixture_spawn(y);
	if (!fixture_greeted(y, PATIENCE_S))
		die(y->pid ? "the daemon did not come up in %g s"
			   : "the daemon left before it came up (%g s)",
		    now_s() - began);
	return now_s() - began;
}

int fixture_wait(struct fixture *y)
{
	double until = now_s() + PATIENCE_S;
	int status;

	while (waitpid(y->pid, &status, WNOHANG) != y->pid) {
		if (now_s() > until)
			die("the daemon did not leave in %g s", PATIENCE_S);
		sleep_s(0.0005);
	}
	y->pid = 0;
	return code_of(status);
}

int fixture_stop(struct fixture *y, int signal)
{
	kill(y->pid, signal);
	return fixture_wait(y);
}

int fixture_refused(struct fixture *y)
{
	fixture_spawn(y);
	return fixture_wait(y);
}

static char *read_all(const char *path)
{
	char *text = NULL;
	size_t len;

	if (io_read_file(path, (size_t)1 << 28, &text, &len, NULL))
		return mem_strdup("");
	return text;
}

bool fixture_logged(const struct fixture *y, const char *text)
{
	char *log = read_all(y->log);
	bool found = strstr(log, text) != NULL;

	free(log);
	return found;
}

size_t fixture_runs(const struct fixture *y, char mark, const char *job)
{
	char *text = read_all(y->runs), *save = NULL;
	size_t n = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t len = strlen(job);

		n += line[0] == mark && line[1] == ' ' && !strncmp(line + 2, job, len) &&
		     line[2 + len] == ' ';
	}
	free(text);
	return n;
}

const char *fixture_record(const struct fixture *y, uint64_t job, const char *suffix)
{
	static char path[2][400];
	static int turn;
	char pattern[400];
	glob_t found;

	turn = !turn;
	snprintf(pattern, sizeof pattern, "%s/jobs/%llu.*%s", y->state, (unsigned long long)job, suffix);
	if (glob(pattern, 0, NULL, &found))
		die("there is no %s", pattern);
	snprintf(path[turn], sizeof path[turn], "%s", found.gl_pathv[0]);
	globfree(&found);
	return path[turn];
}

/* What is left of jobs: the records beside their folders name the leaders of their groups. */
static void end_jobs(const struct fixture *y)
{
	char jobs[160];
	struct dirent *e;
	DIR *d;

	snprintf(jobs, sizeof jobs, "%s/jobs", y->state);
	d = opendir(jobs);
	while (d && (e = readdir(d))) {
		const char *dot = strrchr(e->d_name, '.');
		char path[512], record[512], *text, *line;
		int pid;

		if (!dot || strcmp(dot, ".started"))
			continue;
		snprintf(record, sizeof record, "%s/%.*s.exit", jobs, (int)(dot - e->d_name), e->d_name);
		if (!access(record, F_OK))
			continue;
		snprintf(path, sizeof path, "%s/%s", jobs, e->d_name);
		text = read_all(path);
		line = strstr(text, "\njob ");
		if (line && sscanf(line, "\njob %d", &pid) == 1 && pid > 1)
			kill(-pid, SIGKILL);
		/* Its supervisor writes that down, and must not do so in a folder that is being removed. */
		for (int i = 0; i < 200 && access(record, F_OK); i++)
			sleep_s(0.005);
		free(text);
	}
	if (d)
		closedir(d);
}

void fixture_close(struct fixture *y)
{
	if (y->pid > 0)
		fixture_stop(y, SIGKILL);
	end_jobs(y);
	if (fixture_logged(y, "Sanitizer") || fixture_logged(y, "runtime error"))
		die("a sanitizer complained");
	for (size_t i = 0; i < sizeof open_fixture / sizeof open_fixture[0]; i++) {
		if (open_fixture[i] == y)
			open_fixture[i] = NULL;
	}
}

/* ---- a client ---- */

struct talk {
	int fd;
	char *text; /* what was read; a line handed out stays until the next call */
	size_t len, cap, used;
};

void talk_close(struct talk *t)
{
	if (!t)
		return;
	close(t->fd);
	free(t->text);
	free(t);
}

struct talk *talk_try(const struct fixture *y, double patience_s)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	double until = now_s() + patience_s;
	struct talk *t = mem_calloc(1, sizeof *t);

	if (!t)
		die("out of memory");
	snprintf(at.sun_path, sizeof at.sun_path, "%.107s", y->socket);
	for (;;) {
		t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (t->fd < 0)
			die("socket: %s", strerror(errno));
		if (!connect(t->fd, (struct sockaddr *)&at, sizeof at) && talk_hear(t, PATIENCE_S))
			return t;
		close(t->fd);
		t->len = t->used = 0;
		if (now_s() >= until)
			break;
		sleep_s(0.002);
	}
	free(t->text);
	free(t);
	return NULL;
}

struct talk *talk_open(const struct fixture *y)
{
	struct talk *t = talk_try(y, PATIENCE_S);

	if (!t)
		die("%s: no daemon there", y->socket);
	return t;
}

int talk_fd(const struct talk *t)
{
	return t->fd;
}

bool send_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

static bool say(struct talk *t, const char *fmt, va_list args)
{
	char *line = NULL;
	int len = vasprintf(&line, fmt, args);
	bool good;

	if (len < 0)
		die("out of memory");
	line[len] = '\n'; /* instead of the NUL */
	good = send_all(t->fd, line, (size_t)len + 1);
	free(line);
	return good;
}

bool talk_say(struct talk *t, const char *fmt, ...)
{
	va_list args;
	bool good;

	va_start(args, fmt);
	good = say(t, fmt, args);
	va_end(args);
	return good;
}

char *talk_hear(struct talk *t, double patience_s)
{
	double until = now_s() + patience_s;
	size_t seen = 0;

	if (t->used)
		memmove(t->text, t->text + t->used, t->len - t->used);
	t->len -= t->used;
	t->used = 0;
	for (;;) {
		char *end = t->len > seen ? memchr(t->text + seen, '\n', t->len - seen) : NULL;
		struct pollfd p = { .fd = t->fd, .events = POLLIN };
		double left = until - now_s();
		ssize_t n;

		if (end) {
			*end = 0;
			t->used = (size_t)(end - t->text) + 1;
			return t->text;
		}
		seen = t->len;
		if (left < 0.0 || mem_grow((void **)&t->text, &t->cap, t->len + 65536, 1))
			return NULL;
		if (poll(&p, 1, (int)ceil(left * 1e3)) == 0)
			return NULL;
		n = read(t->fd, t->text + t->len, t->cap - t->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		t->len += (size_t)n;
	}
}

struct json *talk_hear_json(struct talk *t, double patience_s)
{
	char *line = talk_hear(t, patience_s);
	struct json *v = NULL;
	struct err err = { 0 };

	if (line && json_parse("reply", line, strlen(line), &v, &err))
		die("%s, in %.2000s", err.text, line);
	return v;
}

struct json *talk_ask(struct talk *t, const char *fmt, ...)
{
	struct json *v;
	va_list args;
	bool said;

	va_start(args, fmt);
	said = say(t, fmt, args);
	va_end(args);
	v = said ? talk_hear_json(t, PATIENCE_S) : NULL;
	if (!v)
		die("no answer to: %s", fmt);
	return v;
}

const char *text_at(const struct json *v, const char *path)
{
	return json_string(json_path(v, path), "");
}

double number_at(const struct json *v, const char *path)
{
	return json_number(json_path(v, path), NAN);
}

bool is_ok(const struct json *v)
{
	return json_bool(json_get(v, "ok"), false);
}

const char *error_of(const struct json *v)
{
	return text_at(v, "error.code");
}

uint64_t submit(struct talk *t, const char *members)
{
	struct json *v = talk_ask(t, "{\"op\":\"submit\"%s}", members);
	uint64_t id = strtoull(text_at(v, "job.job"), NULL, 10);

	json_free(v);
	return id;
}

void state_of(struct talk *t, uint64_t job, char out[16])
{
	struct json *v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);

	snprintf(out, 16, "%s", text_at(v, "job.state"));
	json_free(v);
}

struct json *await(struct talk *t, uint64_t job, const char *state)
{
	double until = now_s() + PATIENCE_S;
	char was[16] = "";

	while (now_s() < until) {
		struct json *v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);

		if (!strcmp(text_at(v, "job.state"), state))
			return v;
		snprintf(was, sizeof was, "%s", text_at(v, "job.state"));
		json_free(v);
		sleep_s(0.01);
	}
	die("job %llu is not %s after %g s but '%s'", (unsigned long long)job, state, PATIENCE_S, was);
}

void await_reason(struct talk *t, uint64_t job)
{
	double until = now_s() + PATIENCE_S;

	while (now_s() < until) {
		struct json *v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);
		bool known = *text_at(v, "job.waiting.code");

		json_free(v);
		if (known)
			return;
		sleep_s(0.01);
	}
	die("nothing says why job %llu waits", (unsigned long long)job);
}

double stat_of(struct talk *t, const char *path)
{
	struct json *v = talk_ask(t, "{\"op\":\"stats\"}");
	double x = number_at(v, path);

	json_free(v);
	return x;
}

void await_idle(struct talk *t, double patience_s)
{
	double until = now_s() + patience_s;

	for (;;) {
		struct json *v = talk_ask(t, "{\"op\":\"stats\"}");
		double live = number_at(v, "jobs.queued") + number_at(v, "jobs.running");

		json_free(v);
		if (live == 0.0)
			return;
		if (now_s() > until)
			die("%g jobs still live after %g s", live, patience_s);
		sleep_s(0.05);
	}
}

/* ---- the machine ---- */

size_t count_fds(pid_t pid)
{
	char path[64];
	size_t n = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

double rss_mb(pid_t pid)
{
	char path[64], *text;
	unsigned long pages = 0;

	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	text = read_all(path);
	sscanf(text, "%*u %lu", &pages);
	free(text);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

double without_core_s(pid_t pid)
{
	unsigned long long ns = 0;
	char path[64], *text;

	snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
	text = read_all(path);
	sscanf(text, "%*u %llu", &ns);
	free(text);
	return (double)ns / 1e9;
}

char *ask_database(const struct fixture *y, const char *sql)
{
	char path[160], *answer = NULL;
	sqlite3 *db = NULL;
	sqlite3_stmt *q = NULL;

	snprintf(path, sizeof path, "%s/postrider.db", y->state);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) ||
	    sqlite3_prepare_v2(db, sql, -1, &q, NULL))
		die("%s: %s", path, db ? sqlite3_errmsg(db) : "out of memory");
	if (sqlite3_step(q) == SQLITE_ROW && sqlite3_column_text(q, 0))
		answer = mem_strdup((const char *)sqlite3_column_text(q, 0));
	sqlite3_finalize(q);
	sqlite3_close(db);
	return answer ? answer : mem_strdup("");
}
