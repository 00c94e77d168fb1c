/* The command line of the reference training job: options, workers, progress, results. See program.h. */
#include "workloads/program.h"

#include <cblas.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/progress.h"
#include "common/text/text.h"
#include "workloads/digits.h"
#include "workloads/tcp.h"
#include "workloads/train.h"

#define SEED_MAX ((uint64_t)1 << 53) /* a seed must survive JSON, whose numbers are doubles */
#define EPOCHS_MAX 1000000
#define THREADS_MAX 64
#define TEST_DIGITS 10000
#define NO_RANK UINT64_MAX

struct options {
	const char *network, *data, *make_digits, *peers;
	uint64_t batch, epochs, workers, threads, samples, test, seed, test_every, rank;
	double rate, decay, link_mbit;
	bool json, direct, quiet;
};

static struct program *program;

static void help(FILE *to)
{
	fprintf(to,
		"usage: %s [--network NAME] [--batch N] [--epochs N] [options]\n"
		"       %s --make-digits DIR [--samples N] [--test N] [--seed N]\n"
		"\n"
		"Trains a network on handwritten digits, data-parallel over worker processes: each batch is "
		"read\n"
		"from disk, shared out, and the workers' gradients are averaged before every step.\n"
		"\n"
		"      --network NAME     simplenet or lenet5 (lenet5)\n"
		"      --batch N          records a step, all workers together (64)\n"
		"      --epochs N         times through the data (10)\n"
		"      --lr X             learning rate (0.01)\n"
		"      --decay X          step t = 0, 1, ... has the rate lr / (1 + t * decay) (0)\n",
		program->name, program->name);
	if (!program->workers)
		fprintf(to,
			"      --workers N        processes, at most one a record of a batch (1)\n"
			"      --peers LIST       workers on several machines instead, which meet over TCP: "
			"HOST:PORT\n"
			"                         of each, commas between; each is started with the same "
			"list.\n"
			"                         slurm: the tasks of this step of srun\n"
			"      --rank N           which of --peers this one is, from 0 (SLURM_PROCID, as "
			"srun "
			"sets it)\n");
	fprintf(to,
		"      --threads N        threads of each worker for the products of matrices (1)\n"
		"      --samples N        train with the first N records only (all)\n"
		"      --data DIR         IDX files as MNIST has them: train-images-idx3-ubyte and its "
		"siblings\n"
		"                         (digits drawn by this program, kept in the user's cache)\n"
		"      --link MBIT        the workers meet over a link of this rate: a step waits as long as "
		"the "
		"gradients\n"
		"                         take to a server and back (no such wait)\n"
		"      --direct-io        read past the page cache, so that the disk is really used\n"
		"      --seed N           of the first weights and the order (1); same seed and number of\n"
		"                         workers, same result\n"
		"      --test-every N     epochs from one test to the next (1); 0: after the last only\n"
		"      --json             JSON lines: one an epoch, then the result\n"
		"      --make-digits DIR  draw digits into DIR instead: --samples N (60000) to train with "
		"and\n"
		"                         --test N (10000) to test\n"
		"  -q, --quiet            no progress bar, no notices\n"
		"  -h, --help             this text\n"
		"\n"
		"On SIGTERM or SIGINT it finishes the current step, tests, reports the result, and ends\n"
		"with exit code 143 or 130. A second signal ends it at once.\n");
}

static int usage_error(const char *what, const char *value)
{
	if (!program->silent)
		fprintf(stderr, "%s: %s%s%s%s\n%s: see --help\n", program->name, what, value ? " '" : "",
			value ? value : "", value ? "'" : "", program->name);
	return 2;
}

/* A whole number from low to high; complains otherwise. */
static bool count(const char *name, const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
	char what[128];

	if (text_uint64(text, out) && *out >= low && *out <= high)
		return true;
	snprintf(what, sizeof what, "--%s needs a whole number from %llu to %llu, not", name,
		 (unsigned long long)low, (unsigned long long)high);
	usage_error(what, text);
	return false;
}

/* srun numbers the tasks that it starts: the rank where none was given. */
static void rank_of_srun(struct options *o)
{
	const char *text = getenv("SLURM_PROCID");

	if (o->peers && o->rank == NO_RANK && text &&
	    (!text_uint64(text, &o->rank) || o->rank >= TCP_MAX_WORKERS))
		o->rank = NO_RANK;
}

/* Options that need one another, or exclude one another. */
static bool fit_together(const struct options *o, bool workers)
{
	if (o->peers && (workers || program->workers))
		usage_error(workers ? "--peers says how many workers there are; leave out --workers"
				    : "MPI connects the workers; leave out --peers",
			    NULL);
	else if ((o->peers != NULL) != (o->rank != NO_RANK))
		usage_error(o->peers ? "--peers needs --rank N: which of them this one is"
				     : "--rank needs --peers LIST",
			    NULL);
	else if (o->test && !o->make_digits)
		usage_error("--test N needs --make-digits; training always tests with all test records",
			    NULL);
	else
		return true;
	return false;
}

enum {
	OPT_NETWORK = 256,
	OPT_BATCH,
	OPT_EPOCHS,
	OPT_LR,
	OPT_DECAY,
	OPT_WORKERS,
	OPT_PEERS,
	OPT_RANK,
	OPT_THREADS,
	OPT_SAMPLES,
	OPT_DATA,
	OPT_LINK,
	OPT_DIRECT,
	OPT_SEED,
	OPT_TEST_EVERY,
	OPT_JSON,
	OPT_DIGITS,
	OPT_TEST,
};

/* One option, and optarg its value. False: it has complained. */
static bool take(struct options *o, int c)
{
	bool good = true;

	switch (c) {
	case OPT_NETWORK: o->network = optarg; break;
	case OPT_BATCH: return count("batch", optarg, 1, IDX_MAX_RECORDS, &o->batch);
	case OPT_EPOCHS: return count("epochs", optarg, 1, EPOCHS_MAX, &o->epochs);
	case OPT_WORKERS:
		if (!program->workers)
			return count("workers", optarg, 1, COMM_MAX_WORKERS, &o->workers);
		usage_error("mpirun sets the number of workers; leave out --workers", NULL);
		return false;
	case OPT_PEERS: o->peers = optarg; break;
	case OPT_RANK: return count("rank", optarg, 0, TCP_MAX_WORKERS - 1, &o->rank);
	case OPT_THREADS: return count("threads", optarg, 1, THREADS_MAX, &o->threads);
	case OPT_SAMPLES: return count("samples", optarg, 1, IDX_MAX_RECORDS, &o->samples);
	case OPT_TEST: return count("test", optarg, 1, DIGITS_MAX, &o->test);
	case OPT_SEED: return count("seed", optarg, 0, SEED_MAX, &o->seed);
	case OPT_TEST_EVERY: return count("test-every", optarg, 0, EPOCHS_MAX, &o->test_every);
	case OPT_LR:
		good = text_number(optarg, &o->rate) && o->rate > 0.0 && o->rate <= 1e6;
		if (!good)
			usage_error("--lr needs a number above 0, not", optarg);
		break;
	case OPT_DECAY:
		good = text_number(optarg, &o->decay) && o->decay >= 0.0 && o->decay <= 1e6;
		if (!good)
			usage_error("--decay needs a number from 0 on, not", optarg);
		break;
	case OPT_LINK:
		good = text_number(optarg, &o->link_mbit) && o->link_mbit > 0.0 && o->link_mbit <= 1e6;
		if (!good)
			usage_error("--link needs a number of Mbit/s above 0, at most 1000000, not", optarg);
		break;
	case OPT_DATA: o->data = optarg; break;
	case OPT_DIRECT: o->direct = true; break;
	case OPT_JSON: o->json = true; break;
	case OPT_DIGITS: o->make_digits = optarg; break;
	case 'q': o->quiet = true; break;
	default:
		if (!program->silent)
			fprintf(stderr, "%s: see --help\n", program->name);
		return false;
	}
	return good;
}

/* True: go on. False: leave with *out_exit. */
static bool parse(struct options *o, int argc, char **argv, int *out_exit)
{
	static const struct option option[] = {
		{ "network", required_argument, NULL, OPT_NETWORK },
		{ "batch", required_argument, NULL, OPT_BATCH },
		{ "epochs", required_argument, NULL, OPT_EPOCHS },
		{ "lr", required_argument, NULL, OPT_LR },
		{ "decay", required_argument, NULL, OPT_DECAY },
		{ "workers", required_argument, NULL, OPT_WORKERS },
		{ "peers", required_argument, NULL, OPT_PEERS },
		{ "rank", required_argument, NULL, OPT_RANK },
		{ "threads", required_argument, NULL, OPT_THREADS },
		{ "samples", required_argument, NULL, OPT_SAMPLES },
		{ "data", required_argument, NULL, OPT_DATA },
		{ "link", required_argument, NULL, OPT_LINK },
		{ "direct-io", no_argument, NULL, OPT_DIRECT },
		{ "seed", required_argument, NULL, OPT_SEED },
		{ "test-every", required_argument, NULL, OPT_TEST_EVERY },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "make-digits", required_argument, NULL, OPT_DIGITS },
		{ "test", required_argument, NULL, OPT_TEST },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool workers = false;
	int c;

	*out_exit = 2;
	opterr = !program->silent;
	while ((c = getopt_long(argc, argv, "qh", option, NULL)) != -1) {
		if (c == 'h') {
			if (!program->silent)
				help(stdout);
			*out_exit = 0;
			return false;
		}
		if (!take(o, c))
			return false;
		workers |= c == OPT_WORKERS;
	}
	if (optind < argc) {
		usage_error("takes no argument, got", argv[optind]);
		return false;
	}
	rank_of_srun(o);
	return fit_together(o, workers);
}

static int complain(const struct err *err)
{
	/* Every rank of MPI prints it: a file may be missing on one machine only. */
	fprintf(stderr, "%s: %s\n", program->name, err->text);
	return err_exit_code(err->code);
}

static void notice_digits(const char *dir)
{
	if (!program->silent)
		fprintf(stderr, "%s: note: drawing digits into %s, once\n", program->name, dir);
}

/* ---- worker 0 talks ---- */

struct talk {
	const struct train_params *p;
	bool json;
	struct progress *bar;
	size_t unshown; /* records that the bar does not show yet: it moves in hundreds */
};

static void on_epoch(void *ctx, const struct train_epoch *e)
{
	struct talk *t = ctx;

	report_epoch(stdout, t->json, t->p, e);
}

static void on_records(void *ctx, size_t n)
{
	struct talk *t = ctx;

	t->unshown += n;
	if (t->unshown < 512)
		return;
	progress_add(t->bar, t->unshown);
	t->unshown = 0;
}

static int train(const struct options *o, struct err *err)
{
	struct net net;
	struct data train_data = { .image.fd = -1 }, test_data = { .image.fd = -1 };
	struct talk talk = { .json = o->json };
	struct train_params p = { .net = &net,
				  .train = &train_data,
				  .test = &test_data,
				  .batch = o->batch,
				  .epochs = o->epochs,
				  .rate = o->rate,
				  .decay = o->decay,
				  .seed = o->seed,
				  .test_every = o->test_every,
				  .link_mbit = o->link_mbit,
				  .workers = program->workers ? program->workers : (unsigned)o->workers,
				  .on_epoch = on_epoch,
				  .on_records = on_records,
				  .ctx = &talk };
	struct train_result result = { 0 };
	char *cached = NULL;
	int rc = net_find(o->network, &net, err);

	if (!rc && !o->data)
		rc = digits_cached(&cached, o->quiet ? NULL : notice_digits, err);
	if (!rc)
		rc = data_open(o->data ? o->data : cached, DATA_TRAIN, o->samples, o->direct, &train_data,
			       err);
	if (!rc)
		rc = data_open(o->data ? o->data : cached, DATA_TEST, 0, false, &test_data, err);
	if (!rc) {
		talk.p = &p;
		talk.bar = o->quiet || program->silent ? NULL
						       : progress_new("training", o->epochs * train_data.n);
		rc = train_run(&p, program->run, &result, err);
		progress_free(talk.bar);
	}
	if (!rc && result.here)
		report_result(stdout, o->json, &p, &result);
	if (!rc && result.here && ferror(stdout))
		rc = err_fail(err, ERR_IO, "cannot write the report to standard output");
	data_close(&train_data);
	data_close(&test_data);
	free(cached);
	return rc ? rc : result.stopped_by;
}

/* Workers on several machines: this process is one of them, and only the first talks. */
static int join_peers(const struct options *o, struct err *err)
{
	struct strbuf found = { 0 };
	bool ask_slurm = !strcmp(o->peers, "slurm");
	int rc = ask_slurm ? slurm_peers((unsigned)o->rank, &found, err) : 0;

	if (!rc)
		rc = tcp_setup(ask_slurm ? found.text : o->peers, (unsigned)o->rank, &program->workers, err);
	strbuf_release(&found);
	if (rc)
		return rc;
	program->run = tcp_run;
	program->silent = o->rank != 0;
	return 0;
}

int program_main(const struct program *p, int argc, char **argv)
{
	struct program this = *p;
	struct options o = { .network = "lenet5",
			     .batch = 64,
			     .epochs = 10,
			     .workers = 1,
			     .threads = 1,
			     .seed = 1,
			     .test_every = 1,
			     .rank = NO_RANK,
			     .rate = 0.01 };
	struct err err = { 0 };
	int code, rc;

	program = &this;
	if (!parse(&o, argc, argv, &code))
		return code;
	if (o.make_digits) {
		rc = this.silent ? 0
				 : digits_write(o.make_digits, o.samples ? o.samples : 60000,
						o.test ? o.test : TEST_DIGITS, o.seed, &err);
		return rc ? complain(&err) : 0;
	}
	/* The workers run in parallel already; more threads than one compete with them unless cores are
	 * left. */
	openblas_set_num_threads((int)o.threads);
	rc = o.peers ? join_peers(&o, &err) : 0;
	if (!rc)
		rc = train(&o, &err);
	tcp_release();
	if (rc < 0)
		return complain(&err);
	return rc ? 128 + rc : 0;
}
