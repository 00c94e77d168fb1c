/* postrider-synthetic: an example table of training runs to try the programs on. Nothing in it was
 * measured. It has the design of the Courier paper (Albo Martinez, Bobde, Motyka, Chen, ICPE '21): 4
 * levels of cpus x 4 of batch x 3 of njobs x 2 networks, each some times over; times and
 * accuracies follow the figures that the paper prints, as said at each constant below. */
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "common/io.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "common/text/text.h"

#define PROGRAM "postrider-synthetic"
#define MAX_REPLICATIONS 10000

/* Section 5.4: every experiment ran 10 epochs. The data set is MNIST, whose training part has 60,000
 * images; 240.56 s for job 3 of Table 9 are then 51 ms an iteration, which suits Table 5. */
#define EPOCHS 10
#define SAMPLES 60000

/* Table 1 */
static const int cpus_level[] = { 1, 2, 4, 8 };
static const int batch_level[] = { 64, 128, 256, 512 };
static const int njobs_level[] = { 1, 3, 5 };

/* Table 5 gives 0.0400, 0.0383, 0.0449, 0.0502 s of computing an iteration at batch 64, 128, 256, 512.
 * Least squares: 0.0371 s + 2.58e-5 s x batch. */
#define ITERATION_S 0.0371

/* The part that grows with the batch is work its cpus share. Table 5 is a mean over cpus, and the mean
 * of 1/cpus over the levels 1, 2, 4, 8 is 0.469: 2.58e-5 / 0.469. */
#define RECORD_S 5.5e-5

/* Section 4.2 has each process ask the disk of its worker once an iteration, and spreads the processes over
 * N_w = 3 workers, at least 1 each. Serving one request takes this long, and a request waits for the others
 * of its worker. How much a further process adds to an iteration can be had from three places: jobs 3 and 4
 * of Table 9 (one job more of 4 cpus at batch 128 is 39.67 s more: 2.1 ms a process); the F value of njobs in
 * Table 3 (42.8 over a residual variance of about 9928, Table 4: 23.5 s a job at 3.75 cpus and 4394
 * iterations on average: 1.4 ms); the coefficient of cpu:njobs with that of cpu:batch:njobs in Table 13 (11 s
 * a process at batch 64: 1.2 ms). 5 ms / 3 workers = 1.7 ms is amid these, and lets the largest time be "over
 * a thousand" seconds, as section 4 says. */
#define DISK_S 0.005
#define WORKERS 3.0

/* The rest of an iteration, synchronisation above all: the median of what Table 9's five times leave
 * over the terms above is 7.6 ms. With it four of the five are met within 9 %, job 2 within 17 %. */
#define SYNC_S 0.0075

/* Accuracy is a matter of batch and network (section 3.3), nearly linear in the batch (R2 0.957, Table
 * 4). Table 9 has two pairs at batch 128, 93.9 and 94.6 % on average, taken for the shallow and
 * the deep network; with 89.27 % at batch 512 the deep one loses 1.39e-4 a record. */
#define ACCURACY_SLOPE 1.39e-4

static const struct network {
	const char *name;
	double extra_s; /* on top of an iteration */
	double accuracy_at_128;
} network_all[] = {
	/* Table 3: F 5.108 for the network over a variance of about 9928 is a difference of some 28 s
	 * between the two means; over 4394 iterations 6.4 ms, half of it on either side of Table 5. */
	{ "lenet5", 0.0032, 0.946 },
	{ "simplenet", -0.0032, 0.939 },
};

/* Table 8: an R2 of 0.971 leaves the accuracy 1.359e-5 of variance, so 0.0037 is as noisy as it can
 * be; 376.7 s2 are 19.4 s, 6.5 % of the mean time here, part of which is the forest's own error. */
#define DEFAULT_NOISE 0.05 /* of a time, relative */
#define ACCURACY_NOISE 0.0037 /* at DEFAULT_NOISE, and in proportion to --noise */

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static double time_s(const struct network *net, int cpus, int njobs, int batch)
{
	double iterations = (double)SAMPLES * EPOCHS / batch;
	double on_one_worker = fmax(1.0, cpus * njobs / WORKERS);

	return iterations *
	       (ITERATION_S + RECORD_S * batch / cpus + SYNC_S + net->extra_s + DISK_S * on_one_worker);
}

static double accuracy(const struct network *net, int batch)
{
	return net->accuracy_at_128 - ACCURACY_SLOPE * (batch - 128);
}

static void put_row(struct strbuf *out, const struct network *net, int cpus, int njobs, int batch,
		    int replication, double noise, struct rng *rng)
{
	/* Log-normal, so that a time stays positive whatever the noise. */
	double took_s = time_s(net, cpus, njobs, batch) * exp(noise * rng_normal(rng));
	double share = accuracy(net, batch) + noise / DEFAULT_NOISE * ACCURACY_NOISE * rng_normal(rng);

	/* Four digits of accuracy and milliseconds: as many as a training log has. */
	strbuf_printf(out, "%s,%d,%d,%d,%d,%d,%.3f,%.4f,%d\n", net->name, cpus, njobs, batch, EPOCHS, SAMPLES,
		      took_s, fmin(fmax(share, 0.0), 1.0), replication);
}

static void put_table(struct strbuf *out, uint64_t seed, double noise, int replications)
{
	uint64_t row = 0;

	strbuf_puts(out, "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,replication\n");
	for (int r = 1; r <= replications; r++) {
		for (size_t i = 0;
		     i < COUNT(network_all) * COUNT(cpus_level) * COUNT(njobs_level) * COUNT(batch_level);
		     i++) {
			size_t at = i;
			int batch = batch_level[at % COUNT(batch_level)];
			int njobs = njobs_level[(at /= COUNT(batch_level)) % COUNT(njobs_level)];
			int cpus = cpus_level[(at /= COUNT(njobs_level)) % COUNT(cpus_level)];
			const struct network *net = &network_all[at / COUNT(cpus_level)];
			/* A stream a row: more replications leave the earlier rows as they were. */
			struct rng rng = rng_stream(seed, row++);

			put_row(out, net, cpus, njobs, batch, r, noise, &rng);
		}
	}
}

static void help(FILE *to)
{
	fprintf(to,
		"usage: " PROGRAM " [-o FILE] [--seed N] [--noise SHARE] [--replications R]\n"
		"\n"
		"Writes a synthetic table of training runs (CSV), made to resemble the figures printed in\n"
		"the Courier paper. Nothing in it was measured.\n"
		"\n"
		"  -o, --output FILE      where to (standard output)\n"
		"      --seed N           of the noise (1); the same seed gives the same table\n"
		"      --noise SHARE      relative standard deviation of a time, 0 to 1 (%g)\n"
		"      --replications R   runs of each of the 96 settings, 1 to %d (3)\n"
		"  -h, --help             this text\n",
		DEFAULT_NOISE, MAX_REPLICATIONS);
}

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, PROGRAM ": %s%s%s%s\n" PROGRAM ": --help says more\n", what, value ? " '" : "",
		value ? value : "", value ? "'" : "");
	return 2;
}

int main(int argc, char **argv)
{
	enum { OPT_SEED = 256, OPT_NOISE, OPT_REPLICATIONS };
	static const struct option option[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "seed", required_argument, NULL, OPT_SEED },
		{ "noise", required_argument, NULL, OPT_NOISE },
		{ "replications", required_argument, NULL, OPT_REPLICATIONS },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *path = "-";
	uint64_t seed = 1, replications = 3;
	double noise = DEFAULT_NOISE;
	struct strbuf out = { 0 };
	struct err err = { 0 };
	int c, code = 0;

	while ((c = getopt_long(argc, argv, "o:h", option, NULL)) != -1) {
		switch (c) {
		case 'o': path = optarg; break;
		case OPT_SEED:
			if (!text_uint64(optarg, &seed))
				return usage_error("--seed needs a whole number from 0 on, not", optarg);
			break;
		case OPT_NOISE:
			if (!text_number(optarg, &noise) || !(noise >= 0.0 && noise <= 1.0))
				return usage_error("--noise needs a number from 0 to 1, not", optarg);
			break;
		case OPT_REPLICATIONS:
			if (!text_uint64(optarg, &replications) || replications < 1 ||
			    replications > MAX_REPLICATIONS)
				return usage_error("--replications needs a whole number from 1 to 10000, not",
						   optarg);
			break;
		case 'h': help(stdout); return 0;
		default: fprintf(stderr, PROGRAM ": --help says more\n"); return 2;
		}
	}
	if (optind < argc)
		return usage_error("takes no argument, got", argv[optind]);
	if (!*path)
		return usage_error("-o needs the name of a file", NULL);

	put_table(&out, seed, noise, (int)replications);
	if (out.failed)
		err_nomem(&err, NULL);
	else
		io_write_file(path, out.text, out.len, &err);
	if (err.code) {
		fprintf(stderr, PROGRAM ": %s\n", err.text);
		code = err_exit_code(err.code);
	}
	strbuf_release(&out);
	return code;
}
