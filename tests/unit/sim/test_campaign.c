/* The designed experiment: its rows, its random numbers, and what a larger machine does to it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <time.h>

#include "common/stats.h"
#include "sim/world/campaign.h"
#include "tests/support/des.h"
#include "tests/support/test.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/support/support.h"
#include "tests/unit/sim/queueing_bed.h"

/* Costs without a disk: every time is known. */
#define SMALL                                                                                                \
	"{\"cluster\":{\"cores\":2},\"defaults\":{\"samples\":100,\"epochs\":1},\"batches\":[10,50],"        \
	"\"levels\":{\"cpus\":[1,2],\"njobs\":[1,2,4],\"epochs\":[1,3]},\"costs\":{\"fixed_s\":1,\"record_"  \
	"s\":0},"                                                                                            \
	"\"factors\":{\"network\":{\"a\":{},\"b\":{\"fixed\":2}},\"data\":{\"x\":{},\"y\":{},\"z\":{}}},"    \
	"\"accuracy\":{\"a\":{\"best\":0.8,\"half_iterations\":5,\"noise\":0.01}}}"

static struct world_file *file_of(const char *text)
{
	struct world_file *f = NULL;
	struct err err = { 0 };

	if (world_file_parse("w.json", text, strlen(text), &f, &err))
		fail_msg("%s", err.text);
	return f;
}

static struct csv *run(const struct world_file *f, double noise, uint64_t seed)
{
	struct campaign_params p = { .file = f,
				     .cluster = &f->cluster,
				     .noise = noise,
				     .replications = 3,
				     .seed = seed,
				     .play = campaign_play_queueing };
	struct csv *t = NULL;
	struct err err = { 0 };

	if (campaign_run(&p, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static double number(const struct csv *t, size_t row, const char *column)
{
	struct err err = { 0 };
	double v = NAN;
	int c = csv_column(t, column);

	assert_true(c >= 0);
	if (csv_number(t, row, (size_t)c, &v, &err))
		fail_msg("%s", err.text);
	return v;
}

static const char *cell(const struct csv *t, size_t row, const char *column)
{
	return csv_cell(t, row, (size_t)csv_column(t, column));
}

TEST(test_every_setting_is_played_and_every_copy_is_a_row)
{
	struct world_file *f = file_of(SMALL);
	struct csv *t = run(f, 0.0, 1);

	/* networks, data, epochs, cpus, batches, copies of 1, 2, 4 jobs, replications */
	assert_int_equal(t->n_rows, 2 * 3 * 2 * 2 * 2 * (1 + 2 + 4) * 3);
	assert_string_equal(t->header[0], "network");
	assert_string_equal(t->header[1], "data");
	assert_int_equal(t->n_columns, 11);
	for (size_t i = 0; i < t->n_rows; i++) {
		double cpus = number(t, i, "cpus"), njobs = number(t, i, "njobs");
		double iterations = 100.0 / number(t, i, "batch") * number(t, i, "epochs");
		double each_s = *cell(t, i, "network") == 'b' ? 2.0 : 1.0;
		double want = iterations * each_s * fmax(1.0, cpus * njobs / 2.0);

		assert_true(fabs(number(t, i, "time_s") / want - 1.0) < 1e-9);
		assert_true(number(t, i, "processes") == cpus * njobs);
		assert_true(number(t, i, "samples") == 100.0);
		assert_in_range((int)number(t, i, "replication"), 1, 3);
		if (*cell(t, i, "network") == 'a') /* of the other nothing is known */
			assert_true(fabs(number(t, i, "accuracy") - 0.8 * iterations / (iterations + 5.0)) <
				    0.06);
		else
			assert_string_equal(cell(t, i, "accuracy"), "");
	}
	csv_free(t);
	world_file_free(f);
}

TEST(test_the_seed_and_nothing_else_is_chance)
{
	struct world_file *f = file_of(SMALL);
	struct csv *one = run(f, 0.1, 7), *again = run(f, 0.1, 7), *other = run(f, 0.1, 8);
	size_t same = 0;
	double lengths[3] = { number(one, 0, "time_s"), number(one, 1, "time_s"), number(one, 2, "time_s") };

	for (size_t i = 0; i < one->n_rows; i++) {
		assert_string_equal(cell(one, i, "time_s"), cell(again, i, "time_s"));
		assert_string_equal(cell(one, i, "accuracy"), cell(again, i, "accuracy"));
		same += !strcmp(cell(one, i, "time_s"), cell(other, i, "time_s"));
	}
	assert_int_equal(same, 0);
	assert_true(lengths[0] != lengths[1] && lengths[1] != lengths[2]); /* replications differ */
	csv_free(one);
	csv_free(again);
	csv_free(other);
	world_file_free(f);
}

TEST(test_no_run_has_the_draws_of_the_campaign)
{
	struct world_file *f = file_of(SMALL);
	struct csv *t = run(f, 0.1, 7);
	struct disturbances d = { .noise = 0.1 };

	/* alone on the machine time is iterations times draws: no job of the same seed has had the same */
	for (size_t i = 0; i < 3; i++)
		for (uint64_t job = 0; job < 10000; job++)
			assert_true(fabs(number(t, i, "time_s") / (10.0 * draws_of(&d, 7, job).slow) - 1.0) >
				    1e-12);
	csv_free(t);
	world_file_free(f);
}

TEST(test_worlds_learn_on_the_given_machine_without_disturbances)
{
	static const struct world_ops *const ops[] = { &world_queueing, &world_fluid };
	struct cluster larger = { .cores = 8.0, .slots = 20, .nodes = 1, .memory_mb = INFINITY };
	struct disturbances d = {
		.drift = 5.0, .stragglers = 0.5, .straggler_factor = 50.0, .failures = 0.9
	};
	double mean[2][2] = { { 0.0 } };

	for (size_t k = 0; k < 2; k++)
		for (int what_if = 0; what_if < 2; what_if++) {
			struct bed b = bed_open(
				ops[k], (struct world_open){
						.cluster = what_if ? &larger : NULL,
						.disturbances = what_if ? d : (struct disturbances){ 0 } });
			struct timespec from, to;
			struct csv *t = NULL;
			struct err err = { 0 };
			char text[256];

			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
			if (ops[k]->training(b.world, 0, 3, &t, &err))
				fail_msg("%s", err.text);
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
			assert_int_equal(t->n_rows, 2 * 3 * 4 * (1 + 3 + 5) * 3);
			for (size_t i = 0; i < t->n_rows; i++)
				mean[k][what_if] += number(t, i, "time_s") / (double)t->n_rows;
			printf("%s: %zu rows, mean %.4f s, in %.2f s\n", ops[k]->name, t->n_rows,
			       mean[k][what_if],
			       (double)(to.tv_sec - from.tv_sec) +
				       1e-9 * (double)(to.tv_nsec - from.tv_nsec));
			ops[k]->split_text(b.world, 0, text, sizeof text);
			assert_non_null(strstr(text, "other random numbers"));
			csv_free(t);
			bed_close(&b);
		}
	assert_true(mean[0][0] == mean[0][1] && mean[1][0] == mean[1][1]);
	assert_true(fabs(mean[0][0] / mean[1][0] - 1.0) < 0.01);
}

/* The median over replications of each setting, in the order of the table. */
static double *medians(const struct csv *t, size_t *out_n)
{
	double *m = mem_array(t->n_rows, sizeof *m), v[64];
	size_t n = 0, k;

	for (size_t i = 0; i < t->n_rows; i += k) {
		size_t copies = 3 * (size_t)number(t, i, "njobs");

		for (k = 0; k < copies; k++)
			v[k] = number(t, i + k, "time_s");
		m[n++] = stats_median(v, copies);
	}
	*out_n = n;
	return m;
}

TEST(test_a_long_campaign_is_cut_short_and_stays_the_same_on_average)
{
	static const char form[] = "{\"cluster\":{\"cores\":4,\"nodes\":2},\"defaults\":{\"samples\":%d,"
				   "\"epochs\":1},\"batches\":[100],"
				   "\"levels\":{\"cpus\":[1,4],\"njobs\":[1,5]},\"costs\":{\"fixed_s\":0.01,"
				   "\"record_s\":0,\"disk_s\":0.004}}";
	char text[512];
	double *m[2], from = 0.0;
	size_t n[2];

	if (des_thrift() > 1) /* too long for a sanitized run */
		skip();
	for (size_t k = 0; k < 2; k++) { /* 2,000 iterations, and 1,000 times as many */
		struct world_file *f;
		struct timespec now;
		struct csv *t;

		snprintf(text, sizeof text, form, k ? 200000000 : 200000);
		f = file_of(text);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
		from = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
		t = run(f, 0.0, 1);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
		printf("%zu rows in %.2f s\n", t->n_rows,
		       (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - from);
		m[k] = medians(t, &n[k]);
		csv_free(t);
		world_file_free(f);
	}
	assert_int_equal(n[0], 4);
	for (size_t i = 0; i < 4; i++) {
		printf("%.3f s and %.1f s: a thousand times %.4f\n", m[0][i], m[1][i],
		       m[1][i] / m[0][i] / 1000.0);
		assert_true(fabs(m[1][i] / m[0][i] / 1000.0 - 1.0) < 0.03);
	}
	free(m[0]);
	free(m[1]);
}

TEST(test_a_campaign_beyond_all_bounds_is_refused)
{
	struct world_file *f = file_of(SMALL);
	struct campaign_params p = { .file = f,
				     .cluster = &f->cluster,
				     .replications = 4000,
				     .seed = 1,
				     .play = campaign_play_queueing };
	struct csv *t = NULL;
	struct err err = { 0 };

	assert_int_equal(campaign_run(&p, &t, &err), -ERR_FORMAT);
	assert_non_null(
		strstr(err.text,
		       "w.json: levels: the experiment that models learn from has more than 1000000 rows"));
	assert_null(t);
	world_file_free(f);
}

TEST(test_every_failure_of_memory_is_said)
{
	static const char text[] =
		"{\"cluster\":{\"cores\":2},\"defaults\":{\"samples\":100,\"epochs\":1},\"batches\":[10],"
		"\"levels\":{\"cpus\":[2],\"njobs\":[2]},\"costs\":{\"fixed_s\":1,\"record_s\":0}}";
	struct world_file *f = file_of(text);
	bool failed = true;

	for (unsigned long k = 1; failed; k++) {
		struct campaign_params p = {
			.file = f, .cluster = &f->cluster, .replications = 1, .play = campaign_play_queueing
		};
		struct csv *t = NULL;
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = campaign_run(&p, &t, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		csv_free(t);
	}
	world_file_free(f);
}
