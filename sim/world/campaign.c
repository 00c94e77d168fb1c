/* The designed experiment that models learn from in the worlds queueing and fluid: every combination of
 * levels. */
#include "sim/world/campaign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "sim/world/queueing_machine.h"

#define CAMPAIGN_STREAM 0x63616d706169676eULL /* replays draw from draws_of(seed, job) itself */

struct campaign {
	const struct campaign_params *params;
	struct disturbances noise;
	uint64_t seed;
	uint64_t job; /* number of the last one: rows so far */
	double share;
	struct draws *draws; /* of the copies of a setting */
	double *time_s;
	struct strbuf text;
};

/* ---- the factorial: odometer over categories, samples, epochs, cpus, gpus, njobs, batches ---- */

enum { SAMPLES = WORLD_FILE_MAX_CATEGORIES, EPOCHS, CPUS, GPUS, NJOBS, BATCH, FACTORS };

struct odometer {
	size_t at[FACTORS], n[FACTORS];
	const struct world_value
		*value[WORLD_FILE_MAX_CATEGORIES][WORLD_FILE_MAX_VALUES]; /* in the campaign */
};

static void odometer_init(struct odometer *o, const struct world_file *f)
{
	memset(o, 0, sizeof *o);
	for (size_t k = 0; k < WORLD_FILE_MAX_CATEGORIES; k++)
		o->n[k] = k < f->n_categories ? 0 : 1;
	for (size_t k = 0; k < f->n_categories; k++)
		for (size_t i = 0; i < f->category[k].n_values; i++)
			if (f->category[k].value[i].in_campaign)
				o->value[k][o->n[k]++] = &f->category[k].value[i];
	o->n[SAMPLES] = f->samples_levels.n;
	o->n[EPOCHS] = f->epochs_levels.n;
	o->n[CPUS] = f->cpus.n;
	o->n[GPUS] = f->gpus.n;
	o->n[NJOBS] = f->njobs.n;
	o->n[BATCH] = f->batch.n;
}

static bool odometer_next(struct odometer *o)
{
	for (size_t i = FACTORS; i-- > 0;) {
		if (++o->at[i] < o->n[i])
			return true;
		o->at[i] = 0;
	}
	return false;
}

static struct campaign_setting setting_at(const struct odometer *o, const struct world_file *f)
{
	struct campaign_setting s = {
		.kind = { .cpus = (uint32_t)f->cpus.v[o->at[CPUS]],
			  .gpus = (uint32_t)f->gpus.v[o->at[GPUS]],
			  .samples = f->samples_levels.v[o->at[SAMPLES]],
			  .epochs = f->epochs_levels.v[o->at[EPOCHS]],
			  .batch = f->batch.v,
			  .n_batches = f->batch.n },
		.batch = f->batch.v[o->at[BATCH]],
		.njobs = (size_t)f->njobs.v[o->at[NJOBS]],
		.share = 1.0,
	};

	for (size_t k = 0; k < f->n_categories; k++)
		s.kind.value[k] = o->value[k][o->at[k]];
	return s;
}

/* Rows, and events if everything is played whole. */
static void measure(const struct campaign_params *p, struct odometer *o, double *out_rows, double *out_events)
{
	*out_rows = *out_events = 0.0;
	do {
		struct campaign_setting s = setting_at(o, p->file);
		double copies = (double)(s.njobs * p->replications);

		*out_rows += copies;
		*out_events += 2.0 * copies * s.kind.cpus *
			       qkind_work(p->file, &s.kind, s.batch, NAN).iterations;
	} while (*out_rows <= CAMPAIGN_MAX_ROWS && odometer_next(o));
	odometer_init(o, p->file);
}

/* ---- rows ---- */

static void write_header(struct campaign *c)
{
	const struct world_file *f = c->params->file;

	for (size_t k = 0; k < f->n_categories; k++) {
		csv_put(&c->text, f->category[k].column);
		strbuf_puts(&c->text, ",");
	}
	strbuf_puts(&c->text, world_file_has_devices(f) ? "gpus," : "");
	strbuf_puts(&c->text, "cpus,njobs,batch,epochs,samples,time_s,accuracy,processes,replication\n");
}

static void write_row(struct campaign *c, const struct campaign_setting *s, size_t copy, size_t replication)
{
	const struct world_file *f = c->params->file;
	double iterations = qkind_work(f, &s->kind, s->batch, NAN).iterations;
	double number[] = { s->kind.cpus,
			    (double)s->njobs,
			    s->batch,
			    s->kind.epochs,
			    s->kind.samples,
			    c->time_s[copy],
			    qkind_accuracy(f, &s->kind, iterations, &c->draws[copy]),
			    (double)s->njobs * s->kind.cpus,
			    (double)replication };

	for (size_t k = 0; k < f->n_categories; k++) {
		csv_put(&c->text, s->kind.value[k]->name);
		strbuf_puts(&c->text, ",");
	}
	if (world_file_has_devices(f))
		strbuf_printf(&c->text, "%u,", s->kind.gpus);
	for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
		if (i)
			strbuf_puts(&c->text, ",");
		csv_put_number(&c->text, number[i]);
	}
	strbuf_puts(&c->text, "\n");
}

static int play_setting(struct campaign *c, struct campaign_setting *s, struct err *err)
{
	const struct campaign_params *p = c->params;
	double iterations = qkind_work(p->file, &s->kind, s->batch, NAN).iterations;

	s->share = fmin(1.0, fmax(c->share, CAMPAIGN_LEAST_ITERATIONS / iterations));
	for (size_t r = 1; r <= p->replications; r++) {
		int rc;

		for (size_t i = 0; i < s->njobs; i++)
			c->draws[i] = draws_of(&c->noise, c->seed, ++c->job);
		rc = p->play(p, s, c->draws, c->time_s, err);
		if (rc)
			return rc;
		for (size_t i = 0; i < s->njobs; i++)
			write_row(c, s, i, r);
	}
	return 0;
}

static int play_all(struct campaign *c, struct odometer *o, struct err *err)
{
	int rc = 0;

	write_header(c);
	do {
		struct campaign_setting s = setting_at(o, c->params->file);

		rc = play_setting(c, &s, err);
	} while (!rc && odometer_next(o));
	if (!rc && c->text.failed)
		rc = err_nomem(err, "the table of a campaign");
	return rc;
}

int campaign_run(const struct campaign_params *p, struct csv **out, struct err *err)
{
	struct campaign c = { .params = p,
			      .noise.noise = p->noise,
			      .seed = rng_stream(p->seed, CAMPAIGN_STREAM).state };
	size_t most = (size_t)p->file->njobs.v[p->file->njobs.n - 1];
	struct odometer *o = mem_alloc(sizeof *o);
	double rows = 0.0, events = 0.0;
	int rc = 0;

	c.draws = mem_array(most, sizeof *c.draws);
	c.time_s = mem_array(most, sizeof *c.time_s);
	if (!o || !c.draws || !c.time_s)
		rc = err_nomem(err, "a campaign");
	if (!rc) {
		odometer_init(o, p->file);
		measure(p, o, &rows, &events);
		c.share = CAMPAIGN_MAX_EVENTS / events;
		if (rows > CAMPAIGN_MAX_ROWS)
			rc = err_fail(
				err, ERR_FORMAT,
				"%.200s: levels: the experiment that models learn from has more than %d "
				"rows: give fewer levels",
				p->file->name, CAMPAIGN_MAX_ROWS);
	}
	if (!rc)
		rc = play_all(&c, o, err);
	if (!rc)
		rc = csv_parse("campaign", c.text.text, c.text.len, out, err);
	strbuf_release(&c.text);
	free(c.draws);
	free(c.time_s);
	free(o);
	return rc;
}

/* ---- iteration by iteration ---- */

int campaign_play_queueing(const struct campaign_params *p, const struct campaign_setting *s,
			   const struct draws *draws, double *out_time_s, struct err *err)
{
	struct world_work work = qkind_work(p->file, &s->kind, s->batch, NAN);
	double cycles = fmax(1.0, ceil(work.iterations * s->share - 1e-9));
	struct qmachine_params machine = {
		.node_cores = p->cluster->cores / p->cluster->nodes,
		.nodes = p->cluster->nodes,
		.barrier = p->file->barrier,
		.law = p->file->disk_law,
		.measured = p->file->measured.v,
		.n_measured = p->file->measured.n,
	};
	struct qmachine *m = NULL;
	struct qmachine_end e;
	int rc = qmachine_new(&machine, &m, err);

	for (size_t i = 0; i < s->njobs && !rc; i++) {
		struct qmachine_job j = {
			.id = i,
			.cpus = s->kind.cpus,
			.cycles = (uint64_t)cycles,
			.compute_s = work.compute_s * draws[i].slow,
			.disk_s = work.disk_s * draws[i].slow,
			.device_s = work.device_s * draws[i].slow,
			.seed = draws[i].seed,
		};

		rc = qmachine_start(m, 0.0, &j, err);
	}
	while (!rc && qmachine_end(m, &e))
		out_time_s[e.id] = e.at_s * work.iterations / cycles;
	qmachine_free(m);
	return rc;
}
