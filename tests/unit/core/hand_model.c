/* The model of hand_model.h. */
#include "tests/unit/core/hand_model.h"

double hand_disk, hand_start = NAN;

static void hand_time(const void *self, const double *x, size_t n_rows, double *out)
{
	(void)self;
	for (size_t i = 0; i < n_rows; i++, x += HAND_FEATURES) {
		double cpu = fmax(2.0, x[HAND_PROCESSES]) / fmax(2.0, x[HAND_CPUS]);
		double disk = (4.0 + x[HAND_PROCESSES]) / (4.0 + x[HAND_CPUS]);

		out[i] = 6400.0 / x[HAND_BATCH] * ((1.0 - hand_disk) * cpu + hand_disk * disk);
	}
}

static void hand_accuracy(const void *self, const double *x, size_t n_rows, double *out)
{
	(void)self;
	for (size_t i = 0; i < n_rows; i++)
		out[i] = 1.0 - x[i * HAND_FEATURES + HAND_BATCH] / 10000.0;
}

static void hand_shares(const void *self, const double *x, struct work_shares *out)
{
	(void)self;
	(void)x;
	*out = (struct work_shares){ .cpu = 1.0 - hand_disk, .disk = hand_disk, .start = hand_start };
}

static void hand_machine(const void *self, double *out_cores, double *out_disk_saturation)
{
	(void)self;
	*out_cores = 2.0;
	*out_disk_saturation = 4.0;
}

static void hand_destroy(void *self)
{
	(void)self;
}

const struct predictor_ops hand_hybrid = {
	.name = "hybrid",
	.title = "by hand",
	.predict = hand_time,
	.shares = hand_shares,
	.machine = hand_machine,
	.destroy = hand_destroy,
};
const struct predictor_ops hand_forest = {
	.name = "forest", .title = "by hand", .predict = hand_time, .destroy = hand_destroy
};
static const struct predictor_ops hand_accurate = {
	.name = "forest", .title = "by hand", .predict = hand_accuracy, .destroy = hand_destroy
};

struct model *hand_model(const struct predictor_ops *time)
{
	static const char text[] = "network,cpus,njobs,batch,time_s,accuracy\n"
				   "a,1,1,32,1,1\na,8,9,6400,1,1\n";
	struct model *m = calloc(1, sizeof *m);
	struct csv *csv;
	struct table *table;

	assert_int_equal(schema_default(&m->schema, NULL), 0);
	assert_int_equal(csv_parse("t", text, strlen(text), &csv, NULL), 0);
	assert_int_equal(table_read(csv, m->schema, true, &table, NULL), 0);
	assert_int_equal(features_fit(table, &m->features, NULL), 0);
	assert_int_equal(m->features->n, HAND_FEATURES);
	table_free(table);
	csv_free(csv);
	m->time.predictor = (struct predictor){ .ops = time, .n_features = HAND_FEATURES };
	m->accuracy.predictor = (struct predictor){ .ops = &hand_accurate, .n_features = HAND_FEATURES };
	m->time.conformal =
		(struct conformal){ .n = 9, .base = 1, .log = true, .score = calloc(9, sizeof(double)) };
	for (int i = 0; i < 9; i++)
		m->time.conformal.score[i] = log(1.2);
	conformal_set_groups(&m->time.conformal, 9);
	m->n_candidates = 5;
	m->candidate = malloc(5 * sizeof(double));
	for (int i = 0; i < 5; i++)
		m->candidate[i] = 32 << i;
	return m;
}

struct job_values hand_values(const struct model *m)
{
	struct job_values v;

	assert_int_equal(job_values_init(&v, m->schema, NULL), 0);
	assert_int_equal(job_values_parse(&v, m->schema, "network=a", NULL), 0);
	return v;
}

struct policy_choice hand_policy(const char *name)
{
	struct policy_choice c;
	struct err err = { 0 };

	if (policy_parse(name, &c, &err))
		fail_msg("%s", err.text);
	return c;
}

/* A number that differs where two decisions do. */
static uint64_t digest_number(uint64_t h, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	return rng_mix(h ^ (isnan(v) ? 1 : bits));
}

uint64_t hand_digest(uint64_t h, const struct decision *d)
{
	h = rng_mix(h ^ (uint64_t)d->n_candidates ^ (uint64_t)(d->chosen + 2) << 32);
	h = digest_number(h, d->smallest_slo_s);
	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];
		const double v[] = { c->decision,  c->wait_s,     c->wait_upper_s, c->time_s,
				     c->upper_s,   c->accuracy,   c->memory_mb,    c->work_s,
				     c->cpu_share, c->disk_share, c->delays_s };

		for (size_t k = 0; k < sizeof v / sizeof *v; k++)
			h = digest_number(h, v[k]);
		h = rng_mix(h ^ c->breaks ^ (uint64_t)c->reasons << 32 ^ (uint64_t)c->feasible << 62);
	}
	return h;
}
