/* The jobs of the paper's experiment: what the table behind the world varies, the five of Table 9, and as
 * many more as asked for. Called by paper_experiment.c. */
#include "sim/compare/paper_experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "common/text/text.h"
#include "predictors/data/table.h"
#include "sim/trace/build.h"

#define SLO_MEAN_S 300.0
#define SLO_SD_S 100.0
#define SLO_MIN_S 10.0 /* the normal distribution has 2 in 1,000 below it: drawn again */
#define MAX_LEVELS 256
#define STREAM_JOB 0x9a9e01

const struct paper_row paper_table9[PAPER_FIVE] = {
	{ 1, 5, 422, 128, 0.9386, 280.19 }, { 2, 1, 412, 128, 0.9444, 299.59 },
	{ 4, 1, 254, 128, 0.9388, 240.56 }, { 4, 2, 342, 128, 0.9475, 280.23 },
	{ 8, 3, 166, 512, 0.8927, 112.70 },
};

/* ---- what the table varies ---- */

struct settings_list { /* distinct values of all factors but batch, cpus and the load */
	size_t column[TRACE_MAX_COLUMNS]; /* of the schema */
	size_t n_columns;
	uint32_t row[PAPER_MAX_SETTINGS]; /* of the table: one that has the setting */
	bool has_accuracy[PAPER_MAX_SETTINGS];
	size_t n;
	double cpus[MAX_LEVELS];
	size_t n_cpus;
};

static bool drawn_apart(const struct schema *s, size_t column)
{
	static const enum feature_role apart[] = { ROLE_CPUS, ROLE_NJOBS, ROLE_PROCESSES, ROLE_BATCH,
						   ROLE_OTHER };

	for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
		if (schema_role(s, apart[i]) == (int)column)
			return true;
	return !strcmp(s->column[column].name, s->decision);
}

static bool same_cell(const struct table_column *c, size_t a, size_t b)
{
	if (c->kind == COLUMN_CATEGORY)
		return c->category[a] && c->category[b] ? !strcmp(c->category[a], c->category[b])
							: c->category[a] == c->category[b];
	return c->number[a] == c->number[b] || (isnan(c->number[a]) && isnan(c->number[b]));
}

static int add_setting(const struct table *t, struct settings_list *l, size_t row, struct err *err)
{
	size_t i, k;

	for (i = 0; i < l->n; i++) {
		for (k = 0; k < l->n_columns && same_cell(&t->column[l->column[k]], l->row[i], row);)
			k++;
		if (k == l->n_columns)
			break;
	}
	if (i == l->n) {
		if (l->n == PAPER_MAX_SETTINGS)
			return err_fail(err, ERR_ARG,
					"%s: more than %d settings beside cpus, jobs and batch; the "
					"experiment is meant for a designed table",
					t->csv->name, PAPER_MAX_SETTINGS);
		l->has_accuracy[l->n] = false;
		l->row[l->n++] = (uint32_t)row;
	}
	l->has_accuracy[i] |= t->accuracy && !isnan(t->accuracy[row]);
	return 0;
}

static int add_cpus(const struct table *t, struct settings_list *l, double cpus, struct err *err)
{
	for (size_t i = 0; i < l->n_cpus; i++)
		if (l->cpus[i] == cpus)
			return 0;
	if (!(cpus >= 1.0 && cpus <= TRACE_MAX_CPUS && cpus == floor(cpus)) || l->n_cpus == MAX_LEVELS)
		return err_fail(err, ERR_ARG, "%s: %g cpus: need at most %d levels, whole numbers from 1 on",
				t->csv->name, cpus, MAX_LEVELS);
	l->cpus[l->n_cpus++] = cpus;
	return 0;
}

static int settings_find(const struct table *t, struct settings_list *l, struct err *err)
{
	int cpus = schema_role(t->schema, ROLE_CPUS), rc = 0;

	*l = (struct settings_list){ 0 };
	if (cpus < 0 || !t->column[cpus].present)
		return err_fail(err, ERR_ARG,
				"%s: the experiment draws cpus, and the table has no such column",
				t->csv->name);
	for (size_t i = 0; i < t->schema->n_columns; i++) {
		if (!t->column[i].present || drawn_apart(t->schema, i))
			continue;
		if (l->n_columns == TRACE_MAX_COLUMNS)
			return err_fail(err, ERR_ARG, "%s: more than %d columns", t->csv->name,
					TRACE_MAX_COLUMNS);
		l->column[l->n_columns++] = i;
	}
	for (size_t r = 0; r < t->n_rows && !rc; r++) {
		rc = add_setting(t, l, r, err);
		if (!rc && !isnan(t->column[cpus].number[r]))
			rc = add_cpus(t, l, t->column[cpus].number[r], err);
	}
	if (!rc && (!l->n || !l->n_cpus))
		rc = err_fail(err, ERR_FORMAT, "%s: no rows to take settings from", t->csv->name);
	stats_sort(l->cpus, l->n_cpus);
	return rc;
}

/* Where some settings have no accuracy in the whole table (the paper's simplenet), those are not drawn: what
 * a batch does for them could not be told. */
static size_t drop_without_accuracy(struct settings_list *l)
{
	size_t kept = 0, n = l->n;

	for (size_t i = 0; i < n; i++)
		kept += l->has_accuracy[i];
	if (kept == 0 || kept == n)
		return 0;
	kept = 0;
	for (size_t i = 0; i < n; i++)
		if (l->has_accuracy[i])
			l->row[kept++] = l->row[i];
	l->n = kept;
	return n - kept;
}

/* Kind s * n_cpus + c is setting s with the c-th level of cpus. */
static int build_trace(const struct table *t, const struct settings_list *l, struct trace **out,
		       struct err *err)
{
	const char *name[TRACE_MAX_COLUMNS], *value[TRACE_MAX_COLUMNS];
	char number[TRACE_MAX_COLUMNS][32];
	struct trace_build *b = NULL;
	int rc;

	for (size_t i = 0; i < l->n_columns; i++)
		name[i] = t->schema->column[l->column[i]].name;
	rc = trace_build_new("the paper's experiment", name, l->n_columns, &b, err);
	for (size_t s = 0; s < l->n && !rc; s++) {
		for (size_t i = 0; i < l->n_columns; i++) {
			const struct table_column *c = &t->column[l->column[i]];

			if (c->kind == COLUMN_CATEGORY)
				value[i] = c->category[l->row[s]];
			else
				value[i] = isnan(c->number[l->row[s]])
						   ? NULL
						   : text_shortest(c->number[l->row[s]], number[i]);
		}
		for (size_t k = 0; k < l->n_cpus && !rc; k++) {
			struct trace_kind_text kind = { .value = value,
							.cpus = (uint32_t)l->cpus[k],
							.epochs_from = NAN,
							.epochs_to = NAN,
							.memory_mb = NAN,
							.memory_mb_per_record = NAN };
			struct trace_job job = { .slo_s = NAN, .confidence = NAN, .type = -1 };

			rc = trace_build_kind(b, &kind, &job.kind, err);
			if (!rc)
				rc = trace_build_tenant(b, NULL, NAN, &job.tenant, err);
			if (!rc)
				rc = trace_build_job(b, &job, err);
		}
	}
	if (!rc)
		rc = trace_build_done(b, "one job of each kind; the experiment draws from them", out, err);
	trace_build_free(b);
	return rc;
}

/* ---- the table behind the world ---- */

static double mean_time_s(const struct csv *csv, const struct schema *s)
{
	int column = csv_column(csv, s->time);
	double sum = 0.0, v;
	size_t n = 0;

	/* All rows, also those that the schema leaves out: the paper's own mean is of all of its table. */
	for (size_t r = 0; column >= 0 && r < csv->n_rows; r++) {
		if (csv_number(csv, r, (size_t)column, &v, NULL) || !(v > 0.0))
			continue;
		sum += v;
		n++;
	}
	return n ? sum / (double)n : NAN;
}

/* The table of a measured world; of the others the designed experiment that models learn from. */
static int open_table(const struct world_params *p, uint64_t seed, struct csv **out, struct err *err)
{
	static const char measured[] = "measured:";
	struct world *w = NULL;
	int rc;

	if (!strncmp(p->spec, measured, sizeof measured - 1))
		return csv_read_file(p->spec + sizeof measured - 1, out, err);
	rc = world_open(p, &w, err);
	if (!rc)
		rc = world_training(w, 0, seed, out, err);
	world_free(w);
	return rc;
}

int paper_prepare(const struct paper_params *p, const struct schema *schema, struct paper_result *r,
		  struct err *err)
{
	struct settings_list *l = mem_calloc(1, sizeof *l);
	struct world_params wp = p->world;
	struct table *table = NULL;
	struct csv *csv = NULL;
	int rc = l ? open_table(&p->world, p->seed, &csv, err) : err_nomem(err, NULL);

	if (!rc)
		rc = table_read(csv, schema, true, &table, err);
	if (!rc)
		rc = settings_find(table, l, err);
	if (rc)
		goto out;
	r->n_left_out = drop_without_accuracy(l);
	r->n_settings = l->n;
	r->n_cpus = l->n_cpus;
	r->table_mean_s = mean_time_s(csv, schema);
	r->scale = r->table_mean_s / PAPER_TABLE_MEAN_S;
	r->own_table = fabs(r->scale - 1.0) < 1e-4;
	if (r->own_table)
		r->scale = 1.0;
	r->cpus = mem_array(l->n_cpus, sizeof *r->cpus);
	if (!r->cpus) {
		rc = err_nomem(err, "the levels of cpus");
		goto out;
	}
	memcpy(r->cpus, l->cpus, l->n_cpus * sizeof *r->cpus);
	if (!(r->scale > 0.0 && isfinite(r->scale)))
		rc = err_fail(err, ERR_FORMAT, "%s: no time to scale the limits by", csv->name);
	if (!rc)
		rc = build_trace(table, l, &r->trace, err);
	if (!rc) {
		wp.trace = r->trace;
		rc = world_open(&wp, &r->world, err);
	}
out:
	table_free(table);
	csv_free(csv);
	free(l);
	return rc;
}

/* ---- jobs ---- */

/* The kind of a setting and a number of cpus; the nearest level by ratio where there is none. */
static uint32_t kind_of(const struct paper_result *r, size_t setting, double cpus, bool *out_moved)
{
	size_t best = 0;

	for (size_t i = 1; i < r->n_cpus; i++)
		if (fabs(log(r->cpus[i] / cpus)) < fabs(log(r->cpus[best] / cpus)))
			best = i;
	*out_moved |= r->cpus[best] != cpus;
	return (uint32_t)(setting * r->n_cpus + best);
}

/* Table 9 does not say the network; its accuracies are those of lenet5, which is taken where there is one. */
static size_t network_of_table9(const struct paper_result *r)
{
	for (size_t k = 0; k < r->trace->n_kinds; k++)
		for (size_t i = 0; i < r->trace->n_columns; i++)
			if (r->trace->kind[k].value[i] && !strcmp(r->trace->kind[k].value[i], "lenet5"))
				return k / r->n_cpus;
	return 0;
}

static void draw_job(const struct paper_result *r, size_t i, struct paper_job *out)
{
	struct rng rng = rng_stream(r->seed ^ STREAM_JOB, i);
	size_t setting = rng_below(&rng, (uint32_t)r->n_settings);
	double slo_s;

	out->kind = (uint32_t)(setting * r->n_cpus + rng_below(&rng, (uint32_t)r->n_cpus));
	out->njobs = 1.0 + rng_below(&rng, PAPER_MAX_NJOBS);
	do
		slo_s = SLO_MEAN_S + SLO_SD_S * rng_normal(&rng);
	while (slo_s < SLO_MIN_S);
	out->slo_s = slo_s * r->scale;
}

int paper_make_sets(struct paper_result *r, size_t n_jobs, struct err *err)
{
	size_t network = network_of_table9(r);

	r->set[0].n = PAPER_FIVE;
	r->set[1].n = n_jobs;
	for (int s = 0; s < 2; s++) {
		r->set[s].job = mem_calloc(r->set[s].n, sizeof *r->set[s].job);
		r->set[s].outcome = mem_calloc(r->set[s].n * PAPER_POLICIES, sizeof *r->set[s].outcome);
		r->set[s].summary = mem_calloc(PAPER_POLICIES, sizeof *r->set[s].summary);
		if (!r->set[s].job || !r->set[s].outcome || !r->set[s].summary)
			return err_nomem(err, "%zu jobs", r->set[s].n);
	}
	for (size_t i = 0; i < PAPER_FIVE; i++)
		r->set[0].job[i] =
			(struct paper_job){ .kind = kind_of(r, network, paper_table9[i].cpus, &r->cpus_moved),
					    .njobs = paper_table9[i].njobs,
					    .slo_s = paper_table9[i].slo_s * r->scale };
	for (size_t i = 0; i < n_jobs; i++)
		draw_job(r, i, &r->set[1].job[i]);
	return 0;
}
