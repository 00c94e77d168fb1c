/* The models of the benches: what `postrider train --policy postrider` writes, so that the benches measure
 * what users get. There are four tables to learn from: the committed profiles, a table like that of `make
 * run`, which is played here instead of measured, and the designed experiment of the world `fluid`. */
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/io.h"
#include "common/rng.h"
#include "predictors/model.h"
#include "sim/world/campaign.h"
#include "sim/world/queueing_machine.h"
#include "sim/world/world.h"

#define SEED 1
#define NOISE 0.05 /* of a run; replications of the committed profile differ by as much */
#define REPLICATIONS 2
#define MIXED 16
#define OTHER_LOAD 0.05 /* processes of other programs, on average: a desktop at rest */

/* The design of configs/designs/quick.json in the world of configs/worlds/two-cores.json. */
static const char demo_world[] =
	"{\"cluster\":{\"cores\":2,\"slots\":20},\"defaults\":{\"samples\":8000,\"epochs\":4},"
	"\"batches\":[32,128,512],\"levels\":{\"cpus\":[1,2],\"njobs\":[1,2,3]},"
	"\"costs\":{\"fixed_s\":4.4e-5,\"record_s\":3.06e-5,\"exponent\":0.91,\"disk_s\":2e-5,"
	"\"disk_record_s\":1e-6},\"factors\":{\"network\":{\"lenet5\":{\"record\":1,\"fixed\":1},"
	"\"simplenet\":{\"record\":0.31,\"fixed\":3.7}}},\"accuracy\":{"
	"\"lenet5\":{\"best\":0.975,\"half_iterations\":100,\"noise\":0.02},"
	"\"simplenet\":{\"best\":0.918,\"half_iterations\":15,\"noise\":0.004}}}";

/* ---- a table like the demo's ---- */

/* The columns of campaign_run(), and last the other work during the run, which slows it down. */
static void put_row(struct strbuf *out, const char *network, double number[9], double cores, double other)
{
	enum { TIME = 5, PROCESSES = 7 };
	double processes = number[PROCESSES];

	number[TIME] *= fmax(cores, processes + other) / fmax(cores, processes);
	strbuf_puts(out, network);
	for (size_t i = 0; i < 9; i++) {
		strbuf_puts(out, ",");
		csv_put_number(out, number[i]);
	}
	strbuf_printf(out, ",%.6f\n", other);
}

static int put_copies(const struct world_file *f, struct rng *r, struct strbuf *out, struct err *err)
{
	struct campaign_params p = { .file = f,
				     .cluster = &f->cluster,
				     .noise = NOISE,
				     .replications = REPLICATIONS,
				     .seed = SEED,
				     .play = campaign_play_queueing };
	struct csv *table = NULL;
	double other = 0.0, copies = 0.0;
	int status = campaign_run(&p, &table, err);

	for (size_t i = 0; !status && i < table->n_rows; i++) {
		double number[9];

		for (size_t k = 0; !status && k < 9; k++)
			status = csv_number(table, i, k + 1, &number[k], err);
		if (status)
			break;
		if (copies == 0.0) { /* the next run; its copies have the same other work beside them */
			copies = number[1];
			other = OTHER_LOAD * rng_exponential(r);
		}
		copies--;
		put_row(out, csv_cell(table, i, 0), number, f->cluster.cores, other);
	}
	csv_free(table);
	return status;
}

static struct qkind draw_kind(const struct world_file *f, struct rng *r, double *out_batch)
{
	struct qkind k = { .cpus = (uint32_t)f->cpus.v[rng_below(r, (uint32_t)f->cpus.n)],
			   .samples = f->samples,
			   .epochs = f->epochs,
			   .batch = f->batch.v,
			   .n_batches = f->batch.n };

	k.value[0] = &f->category[0].value[rng_below(r, (uint32_t)f->category[0].n_values)];
	*out_batch = f->batch.v[rng_below(r, (uint32_t)f->batch.n)];
	return k;
}

static int start(struct qmachine *m, const struct world_file *f, const struct qkind *k, double batch,
		 uint64_t id, double at_s, double slow, struct rng *r, struct err *err)
{
	struct world_work work = qkind_work(f, k, batch, NAN);
	struct qmachine_job j = { .id = id,
				  .cpus = k->cpus,
				  .cycles = (uint64_t)work.iterations,
				  .compute_s = work.compute_s * slow,
				  .disk_s = work.disk_s * slow,
				  .seed = rng_next(r) };

	return qmachine_start(m, at_s, &j, err);
}

/* One job beside others of another kind, which are started again until it ends. */
static int put_mixed(const struct world_file *f, struct rng *r, struct strbuf *out, struct err *err)
{
	struct qmachine_params machine = { .node_cores = f->cluster.cores, .nodes = 1, .law = f->disk_law };
	double batch, other_batch;
	struct qkind kind = draw_kind(f, r, &batch), other = draw_kind(f, r, &other_batch);
	uint64_t n_others = 1 + rng_below(r, 2);
	struct draws draws = draws_of(&(struct disturbances){ .noise = NOISE }, SEED, rng_next(r));
	struct qmachine_end end = { .id = 1 };
	struct qmachine *m = NULL;
	int status = qmachine_new(&machine, &m, err);

	if (!status)
		status = start(m, f, &kind, batch, 0, 0.0, draws.slow, r, err);
	for (uint64_t i = 1; !status && i <= n_others; i++)
		status = start(m, f, &other, other_batch, i, 0.0, 1.0, r, err);
	while (!status && qmachine_end(m, &end) && end.id)
		status = start(m, f, &other, other_batch, end.id, end.at_s, 1.0, r, err);
	if (!status) {
		double iterations = qkind_work(f, &kind, batch, NAN).iterations;
		double number[9] = { kind.cpus,
				     (double)(1 + n_others),
				     batch,
				     kind.epochs,
				     kind.samples,
				     end.at_s,
				     qkind_accuracy(f, &kind, iterations, &draws),
				     kind.cpus + (double)n_others * other.cpus,
				     REPLICATIONS + 1 };

		put_row(out, kind.value[0]->name, number, f->cluster.cores, OTHER_LOAD * rng_exponential(r));
	}
	qmachine_free(m);
	return status;
}

static int demo_table(const char *path, struct err *err)
{
	struct rng r = rng_stream(SEED, 0);
	struct strbuf text = { 0 };
	struct world_file *f = NULL;
	int status = world_file_parse("demo", demo_world, sizeof demo_world - 1, &f, err);

	strbuf_puts(&text, "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,processes,replication,"
			   "other_load\n");
	if (!status)
		status = put_copies(f, &r, &text, err);
	for (int i = 0; !status && i < MIXED; i++)
		status = put_mixed(f, &r, &text, err);
	if (!status)
		status = text.failed ? err_fail(err, ERR_NOMEM, "no memory for a table")
				     : io_write_file(path, text.text, text.len, err);
	strbuf_release(&text);
	world_file_free(f);
	return status;
}

/* ---- what the simulator learns from ---- */

static int world_table(const char *path, struct err *err)
{
	struct strbuf text = { 0 };
	struct world *w = NULL;
	struct csv *t = NULL;
	int status = world_open(&(struct world_params){ .spec = "fluid" }, &w, err);

	if (!status)
		status = world_training(w, 0, SEED, &t, err);
	for (size_t k = 0; !status && k < t->n_columns; k++) {
		strbuf_puts(&text, k ? "," : "");
		csv_put(&text, t->header[k]);
	}
	for (size_t i = 0; !status && i < t->n_rows; i++)
		for (size_t k = 0; k < t->n_columns; k++) {
			strbuf_puts(&text, k ? "," : "\n");
			csv_put(&text, csv_cell(t, i, k));
		}
	strbuf_puts(&text, "\n");
	if (!status)
		status = text.failed ? err_fail(err, ERR_NOMEM, "no memory for a table")
				     : io_write_file(path, text.text, text.len, err);
	strbuf_release(&text);
	csv_free(t);
	world_free(w);
	return status;
}

/* ---- training ---- */

static int name_of(const char *path, char *out, size_t size, struct err *err)
{
	struct model *m = NULL;
	int status = model_load(path, &m, err);

	if (!status)
		snprintf(out, size, "%s for time, %s for accuracy", m->time.predictor.ops->name,
			 m->accuracy.predictor.ops ? m->accuracy.predictor.ops->name : "nothing");
	model_free(m);
	return status;
}

int bench_model(struct bench_env *env, enum bench_table from, const struct bench_model **out, struct err *err)
{
	static const char *const of[] = { [BENCH_PROFILE] = "two-cores",
					  [BENCH_NODES] = "four-nodes",
					  [BENCH_DEMO] = "demo",
					  [BENCH_WORLD] = "world" };
	struct bench_model *m = &env->model[from];
	char program[4200], table[sizeof env->dir + 32], path[sizeof env->dir + 32];
	const char *const argv[] = { program,     "train",
				     table,       "-o",
				     path,        "--policy",
				     "postrider", "-q",
				     "--json",    from == BENCH_WORLD ? "--set" : NULL,
				     "cores=2",   /* as the simulator says them */ NULL };
	struct json *answer = NULL;
	int status = 0;

	*out = m;
	if (m->path[0])
		return 0;
	bench_say("training the default model (%s)", of[from]);
	bench_beside(env, "postrider", program, sizeof program);
	snprintf(path, sizeof path, "%s/%s.model", env->dir, of[from]);
	snprintf(table, sizeof table, "%s/%s.csv", env->dir, of[from]);
	if (from == BENCH_PROFILE || from == BENCH_NODES)
		snprintf(table, sizeof table, "configs/profiles/%s/runs.csv", of[from]);
	else
		status = from == BENCH_DEMO ? demo_table(table, err) : world_table(table, err);
	if (!status)
		status = bench_run_json(argv, &answer, err);
	json_free(answer);
	if (!status)
		status = name_of(path, m->name, sizeof m->name, err);
	if (!status)
		snprintf(m->path, sizeof m->path, "%s", path);
	return status;
}
