/* Bench of a long replay: a million jobs in the fluid world under `postrider`, training included, in a
 * process of its own. Bars: 30 s, 1 GB, and ten times the jobs in no more time than n log n allows. */
#define _GNU_SOURCE
#include "tests/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS 1000000
#define FEW 100000 /* for the growth */
#define NONE 1000 /* what is not the replay: training, reading, writing */
#define BAR_S 30.0
#define BAR_MB 1000.0 /* 10^6 bytes */
#define GROWTH_SLACK 1.1 /* a shared machine: times of two runs differ by so much */

struct run {
	double wall_s, cpu_s, mb;
};

static int replay(const struct bench_env *env, size_t jobs, struct run *out, struct err *err)
{
	char trace[128], program[512];
	const char *slash = strrchr(env->self, '/');
	struct rusage u;
	double start_s = bench_now_s();
	pid_t child, waited;
	int status;

	snprintf(program, sizeof program, "%.*s/postrider", slash ? (int)(slash - env->self) : 1,
		 slash ? env->self : ".");
	snprintf(trace, sizeof trace, "gen:poisson,jobs=%zu,load=0.8,work=1.5,cores=2,slo=lognormal:6:0.5",
		 jobs);
	fflush(NULL);
	child = fork();
	if (child < 0)
		return err_fail(err, ERR_IO, "cannot start %s: %s", program, strerror(errno));
	if (child == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDOUT_FILENO);
		execl(program, program, "replay", trace, "--policy", "postrider", "--world", "fluid",
		      "--json", "-q", (char *)NULL);
		_exit(127);
	}
	bench_child = child;
	do {
		waited = wait4(child, &status, 0, &u);
	} while (waited < 0 && errno == EINTR);
	bench_child = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_fail(err, ERR_IO, "%s replay failed (status %d)", program,
				WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	*out = (struct run){ .wall_s = bench_now_s() - start_s,
			     .cpu_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
				      1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec),
			     .mb = (double)u.ru_maxrss * 1024.0 / 1e6 };
	return 0;
}

int bench_replay_million(struct bench_env *env, struct bench_result *out, struct err *err)
{
	double allowed = (double)JOBS * log(JOBS) / ((double)FEW * log(FEW)), grew;
	struct run none, few, many;
	int status;

	out->kind = BAR_AT_MOST;
	out->bar = BAR_S;
	out->unit = "s";
	status = replay(env, NONE, &none, err);
	if (!status)
		status = replay(env, FEW, &few, err);
	if (!status)
		status = replay(env, JOBS, &many, err);
	if (status)
		return status;
	grew = (many.cpu_s - none.cpu_s) / fmax(few.cpu_s - none.cpu_s, 1e-3);
	out->ours = many.wall_s;
	out->holds = many.wall_s <= BAR_S && many.mb <= BAR_MB && grew <= GROWTH_SLACK * allowed ? HOLDS_YES
												 : HOLDS_NO;
	bench_what(out,
		   "a replay of %d jobs in the fluid world under postrider, training included: %.3g us of "
		   "processor time "
		   "a job, %.0f MB (bar %.0f); without the training ten times "
		   "the jobs take %.3g times as long (n log n: %.3g)",
		   JOBS, 1e6 * many.cpu_s / JOBS, many.mb, BAR_MB, grew, allowed);
	return 0;
}
