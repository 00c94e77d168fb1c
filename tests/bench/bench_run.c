/* How a bench measures: repeats, quantiles, and the row it prints. */
#define _GNU_SOURCE
#include "tests/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ARGS 32
#define MAX_ANSWER (1 << 20)

volatile sig_atomic_t bench_child;

double bench_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("bench: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

void bench_what(struct bench_result *r, const char *fmt, ...)
{
	size_t used = strlen(r->what);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->what + used, sizeof r->what - used, fmt, ap);
	va_end(ap);
}

/* ---- other programs ---- */

/* Everything from `fd` until its end, or the first MAX_ANSWER bytes. */
static void read_all(int fd, struct strbuf *out)
{
	char piece[4096];
	ssize_t n;

	while ((n = read(fd, piece, sizeof piece)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || out->len > MAX_ANSWER)
			break;
		strbuf_add(out, piece, (size_t)n);
	}
}

void bench_beside(const struct bench_env *env, const char *name, char *out, size_t size)
{
	const char *slash = strrchr(env->self, '/');

	snprintf(out, size, "%.*s%s", slash ? (int)(slash - env->self + 1) : 0, env->self, name);
}

int bench_run_json(const char *const *argv, struct json **out, struct err *err)
{
	struct strbuf text = { 0 };
	struct json *v = NULL;
	int fd[2], status;
	pid_t child, waited;

	fflush(NULL);
	if (pipe2(fd, O_CLOEXEC))
		return err_fail(err, ERR_IO, "cannot make a pipe: %s", strerror(errno));
	child = fork();
	if (child < 0) {
		close(fd[0]);
		close(fd[1]);
		return err_fail(err, ERR_IO, "cannot start %s: %s", argv[0], strerror(errno));
	}
	if (child == 0) {
		dup2(fd[1], STDOUT_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	bench_child = child;
	close(fd[1]);
	read_all(fd[0], &text);
	close(fd[0]);
	do {
		waited = waitpid(child, &status, 0);
	} while (waited < 0 && errno == EINTR);
	bench_child = 0;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		status = err_fail(err, ERR_NOTFOUND, "%s is not installed", argv[0]);
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		status = err_fail(err, ERR_IO, "%s %s failed (status %d)", argv[0], argv[1],
				  WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	else if (text.failed)
		status = err_fail(err, ERR_NOMEM, "no memory for the answer of %s", argv[1]);
	else
		status = json_parse(argv[1], strbuf_text(&text), text.len, &v, err);
	strbuf_release(&text);
	if (status)
		return status;
	if (!json_bool(json_get(v, "installed"), true)) {
		json_free(v);
		return err_fail(err, ERR_NOTFOUND, "%s: what it needs is not installed", argv[1]);
	}
	*out = v;
	return 0;
}

/* The interpreter is Debian's, where `make bench-peers` puts the packages; the first python3 in the
 * path may be another one. BENCH_PYTHON and BENCH_RSCRIPT say otherwise. */
static const struct peer {
	const char *name, *script, *variable, *interpreter;
} peer_all[] = {
	[PEER_SKLEARN] = { "scikit-learn", "sklearn_peer.py", "BENCH_PYTHON", "/usr/bin/python3" },
	[PEER_XGBOOST] = { "XGBoost", "xgboost_peer.py", "BENCH_PYTHON", "/usr/bin/python3" },
	[PEER_RANGER] = { "ranger", "ranger_peer.R", "BENCH_RSCRIPT", "Rscript" },
	[PEER_SIMPY] = { "SimPy", "simpy_peer.py", "BENCH_PYTHON", "/usr/bin/python3" },
	[PEER_TORCH] = { "PyTorch", "torch_peer.py", "BENCH_PYTHON", "/usr/bin/python3" },
};

const char *bench_peer_name(enum bench_peer p)
{
	return peer_all[p].name;
}

int bench_peer_run(const struct bench_env *env, enum bench_peer p, double *out_s, struct json **out_answer,
		   struct err *err, ...)
{
	const struct peer *peer = &peer_all[p];
	const char *other = getenv(peer->variable);
	const char *argv[MAX_ARGS + 1];
	char script[512];
	struct json *answer = NULL;
	size_t n = 0;
	double s;
	va_list ap;
	int status;

	snprintf(script, sizeof script, "%s/%s", env->peers, peer->script);
	if (access(script, R_OK))
		return err_fail(err, ERR_IO,
				"no %s: run this from the root of the repository, or say --peers DIR",
				script);
	argv[n++] = other && *other ? other : peer->interpreter;
	argv[n++] = script;
	va_start(ap, err);
	while (n < MAX_ARGS && (argv[n] = va_arg(ap, const char *)))
		n++;
	va_end(ap);
	argv[n] = NULL;
	status = bench_run_json(argv, &answer, err);
	if (status)
		return status;
	s = json_number(json_get(answer, "seconds"), NAN);
	if (!(s > 0.0))
		status = err_fail(err, ERR_FORMAT, "%s: the answer has no seconds", script);
	else
		*out_s = s;
	if (!status && out_answer)
		*out_answer = answer;
	else
		json_free(answer);
	return status;
}

/* ---- the verdict ---- */

int bench_rival_add(struct bench_rival *v, enum bench_peer p, int status, double seconds)
{
	if (status == -ERR_NOTFOUND) {
		bench_say("%s is not installed (make bench-peers)", bench_peer_name(p));
		v->missing = true;
		return 0;
	}
	if (!status && seconds < v->seconds) {
		v->seconds = seconds;
		v->fastest = p;
	}
	return status;
}

void bench_judge(struct bench_result *r, const struct bench_rival *v, bool also)
{
	bool measured = isfinite(v->seconds);

	r->peer = measured ? v->seconds : NAN;
	r->ratio = measured ? v->seconds / r->ours : NAN;
	/* Losing against one peer is a loss even if others are missing; winning needs a time from each. */
	if (!also || (measured && !(r->ratio >= r->bar)))
		r->holds = HOLDS_NO;
	else
		r->holds = measured && !v->missing ? HOLDS_YES : HOLDS_UNKNOWN;
	if (v->missing)
		bench_what(r, "; a peer is not installed (make bench-peers)");
}
