/* A daemon for a bench: started on an empty folder, asked, stopped. */
#define _GNU_SOURCE
#include "tests/bench/bench_daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"

#define LEAVE_S 10.0
#define START_S 10.0
#define FILL_AT_ONCE 100
#define FIRST_HELD 1000000 /* the number of the first job that is held, in its key and id */

volatile sig_atomic_t bench_servers[BENCH_MAX_SERVERS];

/* ---- servers ---- */

/* In the child: what cannot be set up shows as an exit. */
static _Noreturn void become(const char *const *argv, int log, int cpu, int tell)
{
	cpu_set_t set;
	int error;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the bench, no server stays behind */
	CPU_ZERO(&set);
	if (cpu >= 0)
		CPU_SET((size_t)cpu, &set);
	if (cpu < 0 || !sched_setaffinity(0, sizeof set, &set)) {
		dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
		execvp(argv[0], (char *const *)argv);
	}
	error = errno;
	if (write(tell, &error, sizeof error) != sizeof error)
		_exit(126);
	_exit(127);
}

/* 0: the program runs; else the errno of what failed in the child. */
static int hear(int fd)
{
	int error = 0;
	ssize_t n;

	do {
		n = read(fd, &error, sizeof error);
	} while (n < 0 && errno == EINTR);
	return n == sizeof error ? error : 0;
}

static size_t free_seat(void)
{
	size_t i = 0;

	while (i + 1 < BENCH_MAX_SERVERS && bench_servers[i])
		i++;
	return i;
}

int bench_server_start(struct bench_server *s, const char *const *argv, const char *log, int cpu,
		       struct err *err)
{
	int fd[2], log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), error;
	pid_t pid;

	*s = (struct bench_server){ .seat = free_seat() };
	if (log_fd < 0)
		return err_fail(err, ERR_IO, "cannot write %s: %s", log, strerror(errno));
	if (pipe2(fd, O_CLOEXEC)) {
		close(log_fd);
		return err_fail(err, ERR_IO, "cannot make a pipe: %s", strerror(errno));
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become(argv, log_fd, cpu, fd[1]);
	error = pid < 0 ? errno : 0;
	close(log_fd);
	close(fd[1]);
	if (pid > 0)
		error = hear(fd[0]);
	close(fd[0]);
	if (!error) {
		s->pid = pid;
		bench_servers[s->seat] = pid;
		return 0;
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return err_fail(err, error == ENOENT ? ERR_NOTFOUND : ERR_IO, "cannot start %s: %s", argv[0],
			strerror(error));
}

static bool left_within(pid_t pid, double seconds)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	double until_s = bench_now_s() + seconds;

	do {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return true;
		nanosleep(&pause, NULL);
	} while (bench_now_s() < until_s);
	return false;
}

void bench_server_stop(struct bench_server *s)
{
	if (!s->pid)
		return;
	kill(s->pid, SIGTERM);
	if (!left_within(s->pid, LEAVE_S)) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	bench_servers[s->seat] = 0;
	s->pid = 0;
}

/* A file of /proc; "" when it is not there. */
static void read_proc(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, size - 1);
		close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
}

double bench_server_cpu_s(const struct bench_server *s)
{
	char text[1024], *rest;
	unsigned long user, system;

	read_proc(s->pid, "stat", text, sizeof text);
	rest = strrchr(text, ')'); /* the name may hold anything */
	if (!rest ||
	    sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return NAN;
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

double bench_server_busy_s(const struct bench_server *s)
{
	char path[64], text[256];
	unsigned long long ns = 0, one;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", (int)s->pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof path, "task/%.20s/schedstat", e->d_name);
		read_proc(s->pid, path, text, sizeof text);
		if (e->d_name[0] != '.' && sscanf(text, "%llu", &one) == 1)
			ns += one;
	}
	if (dir)
		closedir(dir);
	return dir ? 1e-9 * (double)ns : NAN;
}

double bench_server_rss_mb(const struct bench_server *s)
{
	unsigned long pages;
	char text[256];

	read_proc(s->pid, "statm", text, sizeof text);
	if (sscanf(text, "%*u %lu", &pages) != 1)
		return NAN;
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

/* ---- a daemon ---- */

/* A job lasts as long as the folder of the site: longer than the bench, and no longer if that is cut short.
 * The batch is there because the daemon wants every command to be told of it. */
static int write_config(const struct bench_site *s, const char *path, const char *model, unsigned slots,
			struct err *err)
{
	char text[4096];
	int n = snprintf(
		text, sizeof text,
		"{\"socket\":\"%s\",\"state_dir\":\"%s/state\",\"model\":\"%s\",\"policy\":\"postrider\",\n"
		"\"cores\":2,\"slots\":%u,\"pin\":false,\"max_queued\":250000,"
		"\"max_connections\":12000,\n"
		"\"max_connections_per_uid\":12000,\"socket_mode\":\"0666\",\"idle_timeout_s\":0,\n"
		"\"kill_grace_s\":1,\"durability\":\"always\",\"types\":{\"digits\":{\n"
		"\"argv\":[\"/bin/sh\",\"-c\",\"while [ -e \\\"$0\\\" ]; do sleep 1; "
		"done\",\"%s/config.json\",\"{batch}\"],\"params\":{\n"
		"\"network\":{\"kind\":\"word\",\"values\":[\"lenet5\",\"simplenet\"],\"required\":true},\n"
		"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":100,\"default\":4},\n"
		"\"samples\":{\"kind\":\"integer\",\"min\":100,\"max\":60000,\"default\":12000}},\n"
		"\"cpus\":{\"min\":1,\"max\":2,\"default\":1},\"batches\":[64,128,256,512],\n"
		"\"lr\":{\"rule\":\"none\",\"base\":0.01,\"base_batch\":64}}}}\n",
		s->socket, s->dir, model, slots, s->dir);

	if (n < 0 || (size_t)n >= sizeof text)
		return err_fail(err, ERR_ARG, "the temporary folder %s has too long a name", s->dir);
	return io_write_file(path, text, (size_t)n, err);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	remove(path);
	return 0;
}

int bench_site_connect(const struct bench_site *s, struct bench_client *out, struct err *err)
{
	const char *greeting;
	size_t len;
	int status = bench_client_open(out, s->socket, FRAMING_LINE, START_S, err);

	if (status)
		return status;
	status = bench_client_ask(out, "", 0, &greeting, &len, err);
	if (!status && !memmem(greeting, len, "\"greeting\"", 10))
		status = err_fail(err, ERR_FORMAT, "the daemon greets with: %.*s", (int)(len < 80 ? len : 80),
				  greeting);
	if (status)
		bench_client_close(out);
	return status;
}

/* The end of its talk mostly says why a daemon did not come up. */
static void say_last_words(const struct bench_site *s)
{
	struct err ignored = { 0 };
	char *text = NULL, *last;
	size_t len = 0;

	if (io_read_file(s->log, (size_t)1 << 24, &text, &len, &ignored))
		return;
	while (len && text[len - 1] == '\n')
		text[--len] = '\0';
	last = strrchr(text, '\n');
	if (len)
		bench_say("the daemon's last words: %s", last ? last + 1 : text);
	free(text);
}

/* A daemon that does not like its configuration leaves, and is not waited for. */
static int wait_for_socket(struct bench_site *s, struct err *err)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	double until_s = bench_now_s() + START_S;

	while (access(s->socket, F_OK)) {
		if (waitpid(s->server.pid, NULL, WNOHANG) != 0) {
			bench_servers[s->server.seat] = 0;
			s->server.pid = 0;
			return err_fail(err, ERR_IO, "the daemon left at once");
		}
		if (bench_now_s() > until_s)
			return err_fail(err, ERR_IO, "the daemon opens no socket");
		nanosleep(&pause, NULL);
	}
	return 0;
}

int bench_site_open(struct bench_site *s, struct bench_env *env, unsigned slots, int cpu, struct err *err)
{
	char program[4200], config[sizeof s->dir + 16];
	const char *const argv[] = { program, "--config", config, NULL };
	const struct bench_model *model = NULL;
	int status;

	*s = (struct bench_site){ .client.fd = -1 };
	snprintf(s->dir, sizeof s->dir, "%s/d", env->dir);
	snprintf(s->socket, sizeof s->socket, "%s/s", s->dir);
	snprintf(s->log, sizeof s->log, "%s/log", s->dir);
	snprintf(config, sizeof config, "%s/config.json", s->dir);
	bench_beside(env, "postriderd", program, sizeof program);
	status = bench_model(env, BENCH_PROFILE, &model, err);
	s->model = model->name;
	if (!status && mkdir(s->dir, 0711))
		status = err_fail(err, ERR_IO, "cannot make the folder %s: %s", s->dir, strerror(errno));
	if (!status)
		status = write_config(s, config, model->path, slots, err);
	if (!status)
		status = bench_server_start(&s->server, argv, s->log, cpu, err);
	if (!status)
		status = wait_for_socket(s, err);
	if (!status)
		status = bench_site_connect(s, &s->client, err);
	if (status) {
		say_last_words(s);
		bench_site_close(s);
	}
	return status;
}

int bench_site_ask(struct bench_site *s, const char *request, struct json **out, struct err *err)
{
	const char *reply, *why;
	struct json *v = NULL;
	size_t len;
	int status = bench_client_ask(&s->client, request, strlen(request), &reply, &len, err);

	if (!status)
		status = json_parse("the daemon's reply", reply, len, &v, err);
	if (status)
		return status;
	if (json_bool(json_get(v, "ok"), false)) {
		*out = v;
		return 0;
	}
	why = json_string(json_get(json_get(v, "error"), "message"), "it does not say why");
	status = err_fail(err, ERR_IO, "the daemon refused %.60s: %s", request, why);
	json_free(v);
	return status;
}

/* Cancels what runs; nothing starts in its place, because the daemon drains. */
static void end_jobs(struct bench_site *s)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	double until_s = bench_now_s() + LEAVE_S;
	size_t left = 1;

	while (left && bench_now_s() < until_s) {
		struct json *answer = NULL, *ignored = NULL;
		const struct json *job;

		if (bench_site_ask(s, "{\"op\":\"drain\"}\n", &ignored, NULL))
			return;
		json_free(ignored);
		if (bench_site_ask(s, "{\"op\":\"list\",\"state\":\"running\"}\n", &answer, NULL))
			return;
		left = json_size(json_get(answer, "jobs"));
		for (job = json_first(json_get(answer, "jobs")); job; job = json_next(job)) {
			char request[96];

			snprintf(request, sizeof request, "{\"op\":\"cancel\",\"job\":\"%.20s\"}\n",
				 json_string(json_get(job, "job"), ""));
			ignored = NULL;
			bench_site_ask(s, request, &ignored, NULL);
			json_free(ignored);
		}
		json_free(answer);
		if (left)
			nanosleep(&pause, NULL);
	}
}

void bench_site_close(struct bench_site *s)
{
	if (s->client.fd >= 0)
		end_jobs(s);
	bench_client_close(&s->client);
	bench_server_stop(&s->server);
	if (s->dir[0])
		nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	s->dir[0] = '\0';
}

bool bench_reply_ok(const char *reply, size_t len, bool has_id, size_t id)
{
	char start[64];
	int n = has_id ? snprintf(start, sizeof start, "{\"v\":1,\"id\":%zu,\"ok\":true,", id)
		       : snprintf(start, sizeof start, "{\"v\":1,\"ok\":true,");

	return len >= (size_t)n && !memcmp(reply, start, (size_t)n);
}

/* ---- jobs that are held ---- */

/* The key makes it a whole one: a client that must not submit twice has to give one. */
size_t bench_write_submit(char *out, size_t size, size_t id)
{
	return (size_t)snprintf(
		out, size,
		"{\"op\":\"submit\",\"id\":%zu,\"type\":\"digits\",\"params\":{\"network\":\"%s\"},"
		"\"slo_s\":2592000,\"key\":\"bench-%zu\"}\n",
		id, id % 2 ? "lenet5" : "simplenet", id);
}

bool bench_is_promised(const char *reply, size_t len, size_t id)
{
	return bench_reply_ok(reply, len, true, id) && memmem(reply, len, "\"verdict\":\"promised\"", 20);
}

int bench_site_fill(struct bench_site *s, size_t from, size_t n, struct err *err)
{
	char text[FILL_AT_ONCE * 256];
	int status = 0;

	for (size_t done = 0; !status && done < n;) {
		size_t len = 0, some = n - done < FILL_AT_ONCE ? n - done : FILL_AT_ONCE;
		const char *reply;
		size_t reply_len;

		for (size_t i = 0; i < some; i++)
			len += bench_write_submit(text + len, sizeof text - len,
						  FIRST_HELD + from + done + i);
		status = bench_client_send(&s->client, text, len, err);
		for (size_t i = 0; !status && i < some; i++, done++) {
			status = bench_client_ask(&s->client, "", 0, &reply, &reply_len, err);
			if (!status && !bench_is_promised(reply, reply_len, FIRST_HELD + from + done))
				status = err_fail(err, ERR_IO, "a job to be held was answered with %.*s",
						  (int)(reply_len < 120 ? reply_len : 120), reply);
		}
	}
	return status;
}

double bench_stat(const struct json *stats, const char *group, const char *name)
{
	return json_number(json_get(json_get(stats, group), name), NAN);
}
