/* Benches of long replays under `postrider`, training included, each in a process of its own.
 *
 * replay.million: a million jobs on one machine, in the fluid world. Bars: 30 s, 1 GB, and ten times the jobs
 * in no more time than n log n allows.
 * replay.cluster: a million jobs of one day on 10,000 nodes (configs/worlds/ten-thousand-nodes.json). Bars: 5
 * minutes of processor time, 4 GB. */
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
#define CLUSTER_BAR_S 300.0
#define CLUSTER_BAR_MB 4000.0
#define GROWTH_SLACK 1.1 /* a shared machine: times of two runs differ by so much */

struct run {
	double wall_s, cpu_s, mb;
};

/* The JSON of the replay goes to `json`; NULL: nowhere. */
static int replay(const struct bench_env *env, const char *trace, const char *world, const char *json,
		  struct run *out, struct err *err)
{
	char program[512];
	const char *slash = strrchr(env->self, '/');
	struct rusage u;
	double start_s = bench_now_s();
	pid_t child, waited;
	int status;

	snprintf(program, sizeof program, "%.*s/postrider", slash ? (int)(slash - env->self) : 1,
		 slash ? env->self : ".");
	fflush(NULL);
	child = fork();
	if (child < 0)
		return err_fail(err, ERR_IO, "cannot start %s: %s", program, strerror(errno));
	if (child == 0) {
		int to = open(json ? json : "/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0600);

		dup2(to, STDOUT_FILENO);
		execl(program, program, "replay", trace, "--policy", "postrider", "--world", world, "--json",
		      "-q", (char *)NULL);
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

static int replay_jobs(const struct bench_env *env, size_t jobs, struct run *out, struct err *err)
{
	char trace[128];

	snprintf(trace, sizeof trace, "gen:poisson,jobs=%zu,load=0.8,work=1.5,cores=2,slo=lognormal:6:0.5",
		 jobs);
	return replay(env, trace, "fluid", NULL, out, err);
}

int bench_replay_million(struct bench_env *env, struct bench_result *out, struct err *err)
{
	double allowed = (double)JOBS * log(JOBS) / ((double)FEW * log(FEW)), grew;
	const struct bench_model *model = NULL;
	struct run none, few, many;
	int status;

	out->kind = BAR_AT_MOST;
	out->bar = BAR_S;
	out->unit = "s";
	status = bench_model(env, BENCH_WORLD, &model, err); /* for its name: the replay trains its own */
	if (!status)
		status = replay_jobs(env, NONE, &none, err);
	if (!status)
		status = replay_jobs(env, FEW, &few, err);
	if (!status)
		status = replay_jobs(env, JOBS, &many, err);
	if (status)
		return status;
	grew = (many.cpu_s - none.cpu_s) / fmax(few.cpu_s - none.cpu_s, 1e-3);
	out->ours = many.cpu_s; /* not less than by the clock: training uses all cores, and nothing sleeps */
	out->holds = many.cpu_s <= BAR_S && many.mb <= BAR_MB && grew <= GROWTH_SLACK * allowed ? HOLDS_YES
												: HOLDS_NO;
	bench_what(
		out,
		"a replay of %d jobs in the fluid world under postrider, training of its default model "
		"included (%s, %.3g s of processor time with a replay of %d jobs): processor time, %.3g us "
		"a job, %.3g s by the clock, %.0f MB (bar %.0f); without the training ten times "
		"the jobs take %.3g times as long (n log n: %.3g)",
		JOBS, model->name, none.cpu_s, NONE, 1e6 * many.cpu_s / JOBS, many.wall_s, many.mb, BAR_MB,
		grew, allowed);
	return 0;
}

/* Shares of the only policy in the JSON of a replay. */
static int shares_of(const char *path, double *out_met, double *out_kept, double *out_rejected,
		     struct err *err)
{
	struct json *v = NULL;
	const struct json *policy;
	int status = json_read_settings(path, (size_t)1 << 24, &v, err);

	if (status)
		return status;
	policy = json_at(json_get(v, "policies"), 0);
	*out_met = json_number(json_get(policy, "attainment_all"), NAN);
	*out_kept = json_number(json_get(policy, "attainment"), NAN);
	*out_rejected = json_number(json_get(policy, "rejected"), NAN) / JOBS;
	json_free(v);
	return 0;
}

int bench_replay_cluster(struct bench_env *env, struct bench_result *out, struct err *err)
{
	double met = NAN, kept = NAN, rejected = NAN;
	char path[300];
	struct run r;
	int status;

	out->kind = BAR_AT_MOST;
	out->bar = CLUSTER_BAR_S;
	out->unit = "s";
	snprintf(path, sizeof path, "%s/cluster.json", env->dir);
	status = replay(env,
			"gen:daily,jobs=1000000,depth=0.5,cpus=1|2|4|8,samples=60000,epochs=60,"
			"slo=lognormal:2400:0.5",
			"fluid:configs/worlds/ten-thousand-nodes.json", path, &r, err);
	if (!status)
		status = shares_of(path, &met, &kept, &rejected, err);
	if (status)
		return status;
	out->ours = r.cpu_s;
	out->holds = r.cpu_s <= CLUSTER_BAR_S && r.mb <= CLUSTER_BAR_MB ? HOLDS_YES : HOLDS_NO;
	bench_what(out,
		   "a day of %d jobs on 10,000 nodes of 8 cores in the fluid world under postrider, placed "
		   "where the promise holds, training included: processor time; %.0f s by the clock, %.0f MB "
		   "(bar "
		   "%.0f); %.2f %% of the objectives met, %.2f %% of the promises kept, %.2f %% of the jobs "
		   "rejected",
		   JOBS, r.wall_s, r.mb, CLUSTER_BAR_MB, 100.0 * met, 100.0 * kept, 100.0 * rejected);
	return 0;
}
