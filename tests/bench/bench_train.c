/* Bench of `postrider train --policy postrider`: search, fit, bounds and importances, on a small, a large and
 * a very large table. The peer makes what comes nearest: predictions of held-out rows by one forest of 300
 * trees, ten folds. Both are measured in processor time, because wall time would show what else the machine
 * does. Ours has two threads, the peer would have two processes: half of the processor time is what each
 * would take alone on two cores, if nothing is lost between them. */
#include "tests/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/rng.h"

#define SMALL_TABLE 96
#define LARGE_TABLE 100000
#define THREADS 2
#define SMALL_LIMIT_S 1.0
#define HUGE_LIMIT_S 180.0
#define HUGE_LIMIT_MB 2048.0

struct cost {
	double processor_s, wall_s, peak_mb;
};

/* Runs of three networks on a machine of 16 cores by a known law, with noise; no two rows are equal. */
static int write_table(const char *path, size_t rows, struct err *err)
{
	static const char *const network[] = { "lenet5", "resnet", "simplenet" };
	static const double per_record[] = { 1e-4, 3e-4, 6e-5 };
	struct rng r = rng_stream(7, 0);
	FILE *f = fopen(path, "w");

	if (!f)
		return err_fail(err, ERR_IO, "%s: %s", path, strerror(errno));
	fputs("network,cpus,njobs,batch,epochs,samples,time_s,accuracy\n", f);
	for (size_t i = 0; i < rows; i++) {
		uint32_t kind = rng_below(&r, 3), cpus = 1u << rng_below(&r, 4), njobs = 1 + rng_below(&r, 8);
		uint32_t batch = 16u << rng_below(&r, 6), epochs = 1 + rng_below(&r, 10);
		uint32_t samples = 10000 + rng_below(&r, 40000);
		double processes = cpus * njobs, iterations = (double)epochs * samples / batch;
		double time_s = (0.002 + per_record[kind] * batch / pow(cpus, 0.8)) *
				fmax(1.0, processes / 16);

		time_s = 0.3 + iterations * (time_s + 0.0003 * (1.0 + processes / 20));
		fprintf(f, "%s,%u,%u,%u,%u,%u,%.6f,%.5f\n", network[kind], cpus, njobs, batch, epochs,
			samples, time_s * exp(0.08 * rng_normal(&r)),
			0.95 - 0.3 * exp(-iterations / 800) - 2e-4 * batch + 0.01 * rng_normal(&r));
	}
	if (fclose(f))
		return err_fail(err, ERR_IO, "%s: %s", path, strerror(errno));
	return 0;
}

static int train_once(const char *table, const char *model, struct cost *out, struct err *err)
{
	char threads[16];
	struct rusage used;
	double start_s = bench_now_s();
	int status;
	pid_t child = fork();

	if (child < 0)
		return err_fail(err, ERR_IO, "fork: %s", strerror(errno));
	if (child == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 2);
		snprintf(threads, sizeof threads, "%d", THREADS);
		execl("build/postrider", "postrider", "train", table, "-o", model, "--policy", "postrider",
		      "--threads", threads, "-q", (char *)NULL);
		_exit(127);
	}
	bench_child = child;
	while (wait4(child, &status, 0, &used) < 0 && errno == EINTR)
		continue;
	bench_child = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_fail(err, ERR_IO, "postrider train %s failed (status %d)", table, status);
	out->wall_s = bench_now_s() - start_s;
	out->processor_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			   1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	out->peak_mb = (double)used.ru_maxrss / 1024.0;
	return 0;
}

static int train_rows(const struct bench_env *env, size_t rows, char *table, size_t size, struct cost *out,
		      struct err *err)
{
	char model[320];
	int status;

	snprintf(table, size, "%s/runs-%zu.csv", env->dir, rows);
	snprintf(model, sizeof model, "%s/runs-%zu.model", env->dir, rows);
	bench_say("training on %zu rows", rows);
	status = write_table(table, rows, err);
	return status ? status : train_once(table, model, out, err);
}

int bench_train_policy(struct bench_env *env, struct bench_result *out, struct err *err)
{
	struct bench_rival rival = { .seconds = INFINITY };
	struct cost small, large, huge;
	char table[320], huge_table[320];
	double peer_s = INFINITY;
	bool also;
	int status = train_rows(env, SMALL_TABLE, table, sizeof table, &small, err);

	out->bar = 5;
	out->unit = "s";
	if (!status)
		status = train_rows(env, env->large_rows, huge_table, sizeof huge_table, &huge, err);
	if (!status)
		status = train_rows(env, LARGE_TABLE, table, sizeof table, &large, err);
	if (status)
		return status;
	unlink(huge_table);
	status = bench_peer_run(env, PEER_SKLEARN, &peer_s, NULL, err, "forest-cv", table, NULL);
	status = bench_rival_add(&rival, PEER_SKLEARN, status, peer_s / THREADS);
	if (status)
		return status;
	also = small.processor_s <= SMALL_LIMIT_S && huge.processor_s / THREADS <= HUGE_LIMIT_S &&
	       huge.peak_mb <= HUGE_LIMIT_MB;
	out->ours = large.processor_s / THREADS;
	bench_what(
		out,
		"train --policy postrider, the whole recipe, on %d rows, against scikit-learn's 10-fold "
		"predictions of one forest of 300 trees (two folds of 20000 rows, scaled); processor time "
		"over %d threads; %d rows %.3g s on one (at most %g); %zu rows %.3g s, peak %.0f MB (at most "
		"%g s, %g MB); wall times %.3g, %.3g, %.3g s",
		LARGE_TABLE, THREADS, SMALL_TABLE, small.processor_s, SMALL_LIMIT_S, env->large_rows,
		huge.processor_s / THREADS, huge.peak_mb, HUGE_LIMIT_S, HUGE_LIMIT_MB, small.wall_s,
		large.wall_s, huge.wall_s);
	bench_judge(out, &rival, also);
	return 0;
}
