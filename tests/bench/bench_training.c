/* Benches of the reference training job: an epoch of each network against PyTorch, one thread each, on the
 * same digits. Ours reads every record from the file, as a job does; the peer has them in memory. */
#include "tests/bench/bench.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "workloads/digits.h"
#include "workloads/train.h"

#define SAMPLES 20000
#define ROUNDS 3
#define EPOCHS 2 /* a round */

static void on_epoch(void *ctx, const struct train_epoch *e)
{
	double *best_s = ctx;

	*best_s = fmin(*best_s, e->phases.fetch_s + e->phases.compute_s + e->phases.sync_s);
}

static int train_seconds(const char *dir, const char *network, size_t batch, double *io_best_s,
			 struct err *err)
{
	struct data train = { .image.fd = -1 }, test = { .image.fd = -1 };
	struct net net;
	struct train_params p = { .net = &net,
				  .train = &train,
				  .test = &test,
				  .batch = batch,
				  .epochs = EPOCHS,
				  .rate = 0.01,
				  .seed = 1,
				  .workers = 1,
				  .on_epoch = on_epoch,
				  .ctx = io_best_s };
	struct train_result result;
	int status = net_find(network, &net, err);

	openblas_set_num_threads(1);
	if (!status)
		status = data_open(dir, DATA_TRAIN, SAMPLES, false, &train, err);
	if (!status)
		status = data_open(dir, DATA_TEST, 0, false, &test, err);
	if (!status)
		status = train_run(&p, allreduce_run, &result, err);
	if (!status && result.stopped_by)
		status = err_fail(err, ERR_IO, "a signal stopped the bench");
	data_close(&train);
	data_close(&test);
	return status;
}

static int bench_epoch(struct bench_env *env, const char *network, struct bench_result *out, struct err *err)
{
	static const size_t batch[] = { 64, 512 };
	double ours_s[2] = { INFINITY, INFINITY }, peer_s[2] = { INFINITY, INFINITY };
	struct bench_rival rival = { .seconds = INFINITY };
	char *dir = NULL, size[32], samples[32];
	int status = digits_cached(&dir, NULL, err);

	out->bar = 1;
	out->unit = "s";
	snprintf(samples, sizeof samples, "%d", SAMPLES);
	for (int i = 0; !status && i < ROUNDS; i++) {
		for (size_t k = 0; !status && k < 2; k++) {
			double s = INFINITY;

			status = train_seconds(dir, network, batch[k], &ours_s[k], err);
			if (status || rival.missing)
				continue;
			snprintf(size, sizeof size, "%zu", batch[k]);
			status = bench_peer_run(env, PEER_TORCH, &s, NULL, err, dir, network, size, samples,
						NULL);
			status = bench_rival_add(&rival, PEER_TORCH, status, s);
			peer_s[k] = fmin(peer_s[k], s);
		}
	}
	free(dir);
	if (status)
		return status;
	/* Both batches must hold: the one with the smaller ratio is the result. */
	size_t worse = peer_s[1] / ours_s[1] < peer_s[0] / ours_s[0];

	bench_what(out, "train %s for an epoch of %d digits, 1 thread, against PyTorch: batch 64 %.3g s",
		   network, SAMPLES, ours_s[0]);
	if (!rival.missing)
		bench_what(out, " (%.3g s)", peer_s[0]);
	bench_what(out, ", batch 512 %.3g s", ours_s[1]);
	if (!rival.missing)
		bench_what(out, " (%.3g s)", peer_s[1]);
	out->ours = ours_s[worse];
	rival.seconds = peer_s[worse];
	bench_judge(out, &rival, true);
	return 0;
}

int bench_training_simplenet(struct bench_env *env, struct bench_result *out, struct err *err)
{
	return bench_epoch(env, "simplenet", out, err);
}

int bench_training_lenet5(struct bench_env *env, struct bench_result *out, struct err *err)
{
	return bench_epoch(env, "lenet5", out, err);
}
