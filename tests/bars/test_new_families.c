/* What one short run is worth in a context that was never measured. Each family of a table is kept aside in
 * turn; a model of the others promises jobs of it: without a run of the family, after one probe (the middle
 * batch) and after two. The runs that were kept aside say what would have happened. The machine is otherwise
 * empty.
 *
 * Limits are drawn in two ways. Those of users who do not know the family lie anywhere in the range of the
 * table's times: promises hold as often as they say, with and without a probe. Those of users who know it lie
 * where its batches differ. Then what is promised is above all what was believed to be faster than it is, so
 * without a probe fewer promises hold than the bounds cover; it has to be right once a probe has told.
 *
 * Three tables. Two are real, with networks x cpus as families. In the third, a made one, each of four
 * networks suits each of four kinds of GPU better or worse by a factor of its own (30 %), which no other pair
 * tells. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "scheduler/core/policy/recipe.h"
#include "scheduler/core/sched.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define CONFIDENCE 0.9
/* as `postrider profile` writes it: what is before the time is a factor */
#define MADE_HEAD                                                                                            \
	"network,gpu,cpus,njobs,batch,time_s,accuracy,other_load,cpu_mean,job_cpu_mean,max_rss_mb,"          \
	"replication,copy,status,started_at"
#define BEYOND 1.3 /* of the range of limits, each way */
#define MOST_PROBES 2
#define MAX_ROWS 1024
#define N_BATCHES 4
#define JOBS 60 /* a family and draw */

struct row {
	char line[160], family[48]; /* family: its columns as settings "a=b,c=d" */
	int cpus, njobs, b; /* b: of the batch 64 << b */
	double time_s, accuracy;
};

struct table_of_runs {
	struct row row[MAX_ROWS];
	char family[32][48];
	size_t n, n_families;
	const char *head;
	double cores;
};

enum limits { ANYWHERE, AROUND_IT, N_LIMITS };

struct result {
	struct {
		double jobs, promised, kept, gained;
	} by[N_LIMITS];
	double rows, covered;
};

static double number(const struct csv *c, size_t row, const char *name, double missing)
{
	int at = csv_column(c, name);
	double v = missing;

	if (at >= 0)
		assert_int_equal(csv_number(c, row, (size_t)at, &v, NULL), 0);
	return v;
}

static void add_family(struct table_of_runs *t, const struct row *r)
{
	size_t f = 0;

	while (f < t->n_families && strcmp(t->family[f], r->family))
		f++;
	if (f == t->n_families)
		memcpy(t->family[t->n_families++], r->family, sizeof *t->family);
}

static void make_table(struct table_of_runs *t, uint64_t seed)
{
	struct rng rng = rng_stream(support_seed(3), seed);

	*t = (struct table_of_runs){ .cores = 8.0, .head = MADE_HEAD };
	for (int f = 0; f < 16; f++) {
		double suits = exp(0.3 * rng_normal(&rng));

		for (int k = 0; k < 2 * N_BATCHES; k++) {
			struct row *r = &t->row[t->n++];

			*r = (struct row){ .cpus = 1,
					   .njobs = 1,
					   .b = k % N_BATCHES,
					   .time_s = 4.0 * (1 + f / 4) / (1 + f % 4) * suits *
						     (1.0 + 120.0 / (64 << k % N_BATCHES)) *
						     exp(0.03 * rng_normal(&rng)),
					   .accuracy = 0.9 - 0.06 * (k % N_BATCHES) };
			snprintf(r->family, sizeof r->family, "network=n%d,gpu=g%d,cpus=1", f / 4, f % 4);
			snprintf(r->line, sizeof r->line, "n%d,g%d,1,1,%d,%.6f,%.4f,0,,,,1,1,ok,\n", f / 4,
				 f % 4, 64 << r->b, r->time_s, r->accuracy);
			add_family(t, r);
		}
	}
}

static void open_table(struct table_of_runs *t, const char *path, double cores)
{
	struct csv *c = NULL;
	struct err err = { 0 };

	*t = (struct table_of_runs){ .cores = cores,
				     .head = "network,cpus,njobs,batch,replication,time_s,accuracy" };
	if (csv_read_file(path, &c, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < c->n_rows; i++) {
		struct row *r = &t->row[t->n++];
		const char *network = csv_cell(c, i, (size_t)csv_column(c, "network"));

		r->cpus = (int)number(c, i, csv_column(c, "cpus") < 0 ? "cpu" : "cpus", NAN);
		r->njobs = (int)number(c, i, "njobs", NAN);
		r->b = (int)lround(log2(number(c, i, "batch", NAN) / 64.0));
		r->time_s = number(c, i, "time_s", NAN);
		r->accuracy = number(c, i, "accuracy", NAN);
		if (isnan(r->accuracy)) /* Courier's table: 43 values are known as means over the cpus only */
			r->accuracy = number(c, i, "accuracy_mean_over_cpu", NAN);
		snprintf(r->family, sizeof r->family, "network=%s,cpus=%d", network, r->cpus);
		snprintf(r->line, sizeof r->line, "%s,%d,%d,%d,%g,%.17g,%.17g\n", network, r->cpus, r->njobs,
			 64 << r->b, number(c, i, "replication", 1.0), r->time_s, r->accuracy);
		add_family(t, r);
	}
	csv_free(c);
}

/* As `train --policy postrider` does it, from the rows of the other families. */
static struct model *learn_others(const struct table_of_runs *t, const char *family, uint64_t seed)
{
	struct train_params p = recipe_params(seed);
	struct policy_choice choice;
	struct recipe recipe;
	struct train_report report;
	struct schema *schema;
	struct model *m = NULL;
	struct strbuf text = { 0 };
	struct table *rows = NULL;
	struct csv *csv = NULL;
	struct err err = { 0 };
	struct grid *time = NULL, accuracy = { .n = 1 };

	strbuf_printf(&text, "%s\n", t->head);
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->row[i].family, family))
			strbuf_puts(&text, t->row[i].line);
	assert_int_equal(policy_parse("postrider", &choice, &err), 0);
	assert_int_equal(recipe_make(choice.policy, NULL, false, &recipe, &err), 0);
	assert_int_equal(recipe_search_time(choice.policy, t->cores, &time, &err), 0);
	accuracy.point = &recipe.accuracy;
	if (csv_parse("rows", text.text, text.len, &csv, &err) || schema_for_table(csv, &schema, &err) ||
	    table_read(csv, schema, TABLE_NEEDS_TARGETS, &rows, &err))
		fail_msg("%s", err.text);
	p.table = rows;
	p.grid = time;
	p.accuracy_grid = &accuracy;
	p.data_name = "rows";
	if (train_model(&p, &m, &report, &err))
		fail_msg("%s", err.text);
	train_report_release(&report);
	grid_free(time);
	table_free(rows);
	csv_free(csv);
	schema_free(schema);
	strbuf_release(&text);
	return m;
}

static const struct row *draw_run(const struct table_of_runs *t, const char *family, int b, int njobs,
				  struct rng *rng)
{
	const struct row *taken = NULL;
	uint32_t seen = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->row[i];

		if (!strcmp(r->family, family) && r->b == b && r->njobs == njobs && !rng_below(rng, ++seen))
			taken = r;
	}
	return taken;
}

struct bench {
	const struct table_of_runs *t;
	const char *family;
	struct model *m;
	struct sched *s;
	struct job_values v;
	struct sched_request ask;
	double batch[N_BATCHES];
	struct decision *d;
};

static void decide_for(struct bench *b, const double *batch, size_t n, double slo_s, enum sched_verdict *out)
{
	struct sched_request q = b->ask;
	struct err err = { 0 };

	q.batch = batch;
	q.n_batches = n;
	q.slo_s = slo_s;
	if (sched_what_if(b->s, 0, &q, b->d, out, &err))
		fail_msg("%s", err.text);
}

static void teach(struct bench *b, struct rng *rng)
{
	const double middle = 64 << (N_BATCHES / 2 - 1);
	const struct row *r = draw_run(b->t, b->family, N_BATCHES / 2 - 1, 1, rng);
	enum sched_verdict verdict;

	decide_for(b, &middle, 1, NAN, &verdict);
	sched_observe(b->s, &(struct sched_observation){ .confidence = CONFIDENCE,
							 .values = &b->v,
							 .cpus = b->ask.cpus,
							 .model_s = b->d->candidate[0].model_s,
							 .upper_s = NAN,
							 .foreseen_s = NAN,
							 .actual_s = r->time_s });
}

static void judge_bounds(struct bench *b, struct result *out)
{
	for (size_t i = 0; i < b->t->n; i++) {
		const struct row *r = &b->t->row[i];
		double batch = 64 << r->b;
		enum sched_verdict verdict;

		if (strcmp(r->family, b->family) || r->njobs != 1)
			continue;
		decide_for(b, &batch, 1, NAN, &verdict);
		out->rows++;
		out->covered += r->time_s <= b->d->candidate[0].guard_s;
	}
}

static void judge_jobs(struct bench *b, uint64_t draw, enum limits limits, struct result *all)
{
	struct rng rng =
		rng_stream(support_seed(2 + 2 * limits), draw); /* the same jobs with and without probes */
	__typeof__(all->by[0]) *out = &all->by[limits];
	double low = INFINITY, high = 0.0;

	for (size_t i = 0; i < b->t->n; i++)
		if (b->t->row[i].njobs == 1 &&
		    (limits == ANYWHERE || !strcmp(b->t->row[i].family, b->family))) {
			low = fmin(low, b->t->row[i].time_s);
			high = fmax(high, b->t->row[i].time_s);
		}
	for (int j = 0; j < JOBS; j++) {
		double slo_s = low / BEYOND * pow(high / low * BEYOND * BEYOND, rng_uniform(&rng));
		enum sched_verdict verdict;
		const struct row *r;

		decide_for(b, b->batch, N_BATCHES, slo_s, &verdict);
		out->jobs++;
		if (verdict != SCHED_PROMISED)
			continue;
		r = draw_run(b->t, b->family,
			     (int)lround(log2(b->d->candidate[b->d->chosen].decision / 64.0)), 1, &rng);
		out->promised++;
		out->kept += r->time_s <= slo_s;
		out->gained += r->time_s <= slo_s ? r->accuracy : 0.0;
	}
}

static void play_family(const struct table_of_runs *t, const char *family, uint64_t draw, struct result *out)
{
	struct rng rng = rng_stream(support_seed(1), draw);
	struct bench b = {
		.t = t, .family = family, .m = learn_others(t, family, draw + 1), .d = malloc(sizeof *b.d)
	};
	struct sched_params p = {
		.model = b.m,
		.adapt = true,
		.machine = { .cores = t->cores > 0.0 ? t->cores : 8.0, .slots = 64, .memory_mb = INFINITY },
		.max_jobs = 4
	};
	struct err err = { 0 };

	assert_non_null(b.d);
	assert_int_equal(policy_parse("postrider", &p.policy, &err), 0);
	if (sched_new(&p, &b.s, &err) || job_values_init(&b.v, b.m->schema, &err) ||
	    job_values_parse(&b.v, b.m->schema, family, &err))
		fail_msg("%s", err.text);
	for (int k = 0; k < N_BATCHES; k++)
		b.batch[k] = 64 << k;
	b.ask = (struct sched_request){ .id = 1,
					.values = &b.v,
					.slo_s = NAN,
					.confidence = CONFIDENCE,
					.cpus = (uint32_t)atoi(strstr(family, "cpus=") + 5),
					.memory_mb = NAN,
					.memory_mb_per_record = NAN,
					.max_memory_mb = NAN };
	for (int probes = 0; probes <= MOST_PROBES; probes++) {
		if (probes)
			teach(&b, &rng);
		assert_int_equal(sched_family_known(b.s, &b.ask), probes);
		judge_bounds(&b, &out[probes]);
		for (enum limits limits = 0; limits < N_LIMITS; limits++)
			judge_jobs(&b, draw, limits, &out[probes]);
	}
	sched_free(b.s);
	job_values_release(&b.v);
	model_free(b.m);
	free(b.d);
}

static void show(const char *what, const struct result *r)
{
	static const char *const name[] = { "anywhere", "around it" };

	for (enum limits l = 0; l < N_LIMITS; l++)
		for (int k = 0; k <= MOST_PROBES; k++)
			printf("%-10s limits %-9s %d probes: promised %.1f %%, kept %.1f %%, accuracy with a "
			       "refusal or "
			       "a miss as 0 %.3f, bounds cover %.1f %%\n",
			       what, name[l], k, 100.0 * r[k].by[l].promised / r[k].by[l].jobs,
			       100.0 * r[k].by[l].kept / r[k].by[l].promised,
			       r[k].by[l].gained / r[k].by[l].jobs, 100.0 * r[k].covered / r[k].rows);
	for (enum limits l = 0; l < N_LIMITS; l++) {
		for (int k = l == AROUND_IT; k <= MOST_PROBES; k++)
			assert_true(r[k].by[l].kept >= CONFIDENCE * r[k].by[l].promised);
		assert_true(r[1].by[l].promised >= r[0].by[l].promised &&
			    r[2].by[l].promised >= r[1].by[l].promised);
	}
}

static struct table_of_runs runs;

static void judge(uint64_t draws, struct result *out)
{
	for (uint64_t draw = 0; draw < draws; draw++)
		for (size_t f = 0; f < runs.n_families; f++)
			play_family(&runs, runs.family[f], draw, out);
}

TEST(test_networks_and_gpus_that_never_met)
{
	struct result r[MOST_PROBES + 1] = { { .rows = 0 } };

	for (uint64_t seed = 1; seed <= 3; seed++) {
		make_table(&runs, seed);
		judge(1, r);
	}
	show("made", r);
	assert_true(r[1].by[AROUND_IT].promised > 1.2 * r[0].by[AROUND_IT].promised);
	assert_true(r[0].covered >= 0.86 * r[0].rows);
}

TEST(test_families_of_the_two_core_profile)
{
	struct result r[MOST_PROBES + 1] = { { .rows = 0 } };

	open_table(&runs, "configs/profiles/two-cores/runs.csv", 2.0);
	judge(2, r);
	show("two cores", r);
}

TEST(test_families_of_the_published_table)
{
	const char *path = support_shared_data("courier-bigdl/fullfactorial_rep1.csv");
	struct result r[MOST_PROBES + 1] = { { .rows = 0 } };

	if (!path)
		skip();
	open_table(&runs, path, 0.0);
	judge(1, r);
	show("published", r);
}
